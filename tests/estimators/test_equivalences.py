"""Changes of the input that must not change the answer, and optimality by plain sums.

Problems are random and small, with ties, late entry, strata, weights and offsets switched on and
off by hypothesis; unpenalised ones may have infinite estimates, and must have them on both sides.
Every test runs on covariates in every storage.
"""

import warnings
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

import riskset as rs
from storages import Store, as_sparse, each_storage, given_stored

pytestmark = pytest.mark.portability

TOL = 1e-10


@dataclass(frozen=True, eq=False)
class Problem:
    """One random fit."""

    x: np.ndarray
    time: np.ndarray
    event: np.ndarray
    entry: np.ndarray | None
    arguments: dict
    ties: str
    penalty: object
    rng: np.random.Generator = field(repr=False)

    @property
    def y(self):
        return rs.Surv(self.time, self.event, self.entry)

    def fit(self, store: Store, x=None, **parameters):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.simplefilter("ignore", rs.RisksetWarning)
            model = rs.Cox(self.penalty, ties=self.ties, tol=TOL, **parameters)
            return model.fit(store(self.x if x is None else x), self.y, **self.arguments)

    def rows(self, rows, **changes):
        """The problem with other rows."""
        return replace(
            self,
            x=self.x[rows],
            time=self.time[rows],
            event=self.event[rows],
            entry=None if self.entry is None else self.entry[rows],
            arguments={k: v[rows] for k, v in self.arguments.items()} | changes,
        )


PENALTIES = {
    "none": None,
    "l1": rs.L1(0.7),
    "l2": rs.L2(0.5),
    "both": rs.ElasticNet(l1=0.3, l2=0.4, unpenalized=[0], factor={1: 2.0}),
}


@st.composite
def problems(draw, ties=("breslow", "efron"), penalties=tuple(PENALTIES)):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, p = draw(st.integers(8, 60)), draw(st.integers(2, 4))
    x = np.round(rng.normal(size=(n, p)), 2)
    x[:, 0] = rng.random(n) < 0.4
    x[:, -1] *= rng.random(n) < 0.3
    time = rng.exponential(np.exp(-0.7 * x[:, 0] + 0.5 * x[:, 1])) + 0.01
    if draw(st.booleans()):
        time = np.ceil(5 * time)
    event = rng.random(n) < 0.6
    event[:3] = True
    arguments = {}
    if draw(st.booleans()):
        arguments["sample_weight"] = rng.integers(0, 4, n).astype(float)
        arguments["sample_weight"][:3] = 1.0
    if draw(st.booleans()):
        arguments["strata"] = rng.integers(0, 3, n)
    if draw(st.booleans()):
        arguments["offset"] = np.round(rng.normal(size=n), 2)
    entry = np.floor(time * rng.random(n) * 0.8 * 16) / 16 if draw(st.booleans()) else None
    return Problem(
        x=x,
        time=time,
        event=event,
        entry=entry,
        arguments=arguments,
        ties=draw(st.sampled_from(ties)),
        penalty=PENALTIES[draw(st.sampled_from(penalties))],
        rng=rng,
    )


def assert_same(one, other, unit=1.0):
    """Two fits with the same answer; coefficients of `other` are per `unit` of those of `one`."""
    assert one.status_ == other.status_
    assert_allclose(one.log_likelihood_, other.log_likelihood_, rtol=1e-8, atol=1e-8)
    assert_allclose(one.null_log_likelihood_, other.null_log_likelihood_, rtol=1e-9, atol=1e-9)
    if one.status_ == "infinite_estimate":
        # The limit is unique, but there may be several ways to it.
        assert np.isinf(other.coef_).any()
        return
    assert_allclose(one.coef_, other.coef_ * unit, rtol=1e-5, atol=1e-6)


# ---------------------------------------------------------------------------------- weights


@given_stored(problems(ties=["breslow"]))
def test_weight_two_is_the_row_twice(store, problem):
    weight = problem.rng.integers(0, 3, problem.time.size).astype(float)
    weight[:3] = 2.0
    weighted = problem.rows(slice(None), sample_weight=weight)
    often = np.repeat(np.arange(weight.size), weight.astype(int))
    repeated = problem.rows(often)
    repeated.arguments.pop("sample_weight", None)
    assert_same(weighted.fit(store), repeated.fit(store))


@given_stored(problems())
def test_weight_zero_is_the_row_gone(store, problem):
    gone = problem.rng.random(problem.time.size) < 0.3
    gone[:3] = False
    weight = problem.arguments.get("sample_weight", np.ones(gone.size))
    absent = problem.rows(slice(None), sample_weight=np.where(gone, 0.0, weight))
    assert_same(absent.fit(store), problem.rows(~gone).fit(store))


@given_stored(problems(penalties=["none"]))
def test_weights_on_another_scale(store, problem):
    weight = problem.arguments.get("sample_weight", np.ones(problem.time.size))
    doubled = problem.rows(slice(None), sample_weight=2 * weight)
    one, two = problem.fit(store), doubled.fit(store)
    assert one.status_ == two.status_
    finite = np.isfinite(one.coef_)
    assert_allclose(one.coef_[finite], two.coef_[finite], rtol=1e-5, atol=1e-6)
    if one.status_ == "converged":
        assert_allclose(one.variance_, 2 * two.variance_, rtol=1e-4, atol=1e-9)
        assert_allclose(one.robust_variance_, two.robust_variance_, rtol=1e-4, atol=1e-9)


# --------------------------------------------------------------------------- rows and times


@given_stored(problems())
def test_any_order_of_rows(store, problem):
    order = problem.rng.permutation(problem.time.size)
    model, shuffled = problem.fit(store), problem.rows(order).fit(store)
    assert_same(model, shuffled)
    if model.status_ == "converged":
        expected = model.predict(store(problem.x))[order]
        assert_allclose(shuffled.predict(store(problem.x[order])), expected, rtol=1e-5, atol=1e-5)


@given_stored(problems())
def test_any_monotone_change_of_time(store, problem):
    def change(t):
        return None if t is None else np.expm1(3 * np.sqrt(t))

    changed = replace(problem, time=change(problem.time), entry=change(problem.entry))
    assert_array_equal(changed.fit(store).coef_, problem.fit(store).coef_)


@given_stored(problems())
def test_split_intervals(store, problem):
    """A row that is cut in two at any time while it is at risk."""
    entry = np.zeros(problem.time.size) if problem.entry is None else problem.entry
    share = problem.rng.choice([0.0, 0.3, 0.9], entry.size)
    is_cut = share > 0
    cut = entry + share * (problem.time - entry)
    early = replace(
        problem.rows(is_cut), time=cut[is_cut], event=problem.event[is_cut] & False,
        entry=entry[is_cut],
    )  # fmt: skip
    late = replace(problem, entry=np.where(is_cut, cut, entry))
    arguments = {k: np.append(v, early.arguments[k]) for k, v in late.arguments.items()}
    split = replace(
        late,
        x=np.concatenate([late.x, early.x]),
        time=np.append(late.time, early.time),
        event=np.append(late.event, early.event),
        entry=np.append(late.entry, early.entry),
        arguments=arguments,
    )
    assert_same(problem.fit(store), split.fit(store))


@given_stored(problems())
def test_a_constant_in_the_offset(store, problem):
    offset = problem.arguments.get("offset", np.zeros(problem.time.size))
    moved = problem.rows(slice(None), offset=offset + 800.0)
    assert_same(problem.fit(store), moved.fit(store))


@given_stored(problems(penalties=["none", "l2"]))
def test_strata_add_up(store, problem):
    """The log likelihood at given coefficients is the sum over strata fitted alone."""
    coef = problem.rng.normal(size=problem.x.shape[1])
    eta = problem.x @ coef
    stratum = problem.rng.integers(0, 3, eta.size)
    stratum[:3] = [0, 1, 2]
    fixed = problem.rows(slice(None), offset=eta, strata=stratum)
    whole = fixed.fit(store, problem.x[:, :0]) if problem.penalty is None else None
    parts = []
    for s in range(3):
        own = fixed.rows(stratum == s)
        weight = own.arguments.get("sample_weight", np.ones(own.time.size))
        if (own.event & (weight > 0)).any():
            parts.append(replace(own, penalty=None).fit(store, own.x[:, :0]).log_likelihood_)
    if whole is not None:
        assert_allclose(whole.log_likelihood_, sum(parts), rtol=1e-10, atol=1e-10)
    # And jointly: all strata with columns of their own are the strata fitted alone.
    blocks = np.hstack([problem.x * (stratum == s)[:, None] for s in range(3)])
    joint = replace(problem.rows(slice(None), strata=stratum), penalty=rs.L2(0.5)).fit(
        store, blocks
    )
    for s, coef in enumerate(np.split(joint.coef_, 3)):
        own = replace(problem.rows(stratum == s), penalty=rs.L2(0.5))
        weight = own.arguments.get("sample_weight", np.ones(own.time.size))
        if (own.event & (weight > 0)).any():
            own.arguments["strata"] = np.zeros(own.time.size)
            assert_allclose(own.fit(store).coef_, coef, rtol=1e-5, atol=1e-6)
        else:
            assert_array_equal(coef, 0)


# ------------------------------------------------------------------------------- covariates


@given_stored(problems())
def test_any_order_of_columns(store, problem):
    order = problem.rng.permutation(problem.x.shape[1])
    place = np.argsort(order).tolist()
    penalty = problem.penalty
    if penalty is PENALTIES["both"]:
        penalty = rs.ElasticNet(
            l1=penalty.l1, l2=penalty.l2, unpenalized=[place[0]], factor={place[1]: 2.0}
        )
    moved = replace(problem, x=problem.x[:, order], penalty=penalty).fit(store)
    model = problem.fit(store)
    if any(note.code == "collinear" for note in model.notes_):
        # Another of the columns that repeat each other is left out.
        assert_allclose(moved.log_likelihood_, model.log_likelihood_, rtol=1e-8, atol=1e-8)
        return
    moved.coef_ = moved.coef_[place]
    assert_same(model, moved)


@given_stored(problems(), st.sampled_from([1e-9, 1e-3, 0.37, 1e4, 1e8]))
def test_a_rescaled_column(store, problem, unit):
    x = problem.x.copy()
    x[:, 1] *= unit
    units = np.ones(x.shape[1])
    units[1] = unit
    penalty = problem.penalty
    if penalty is not None:
        # The same penalty on x beta: l1 is per unit of beta, l2 per its square.
        l1, l2 = penalty.arrays([f"x{j}" for j in range(x.shape[1])])
        if penalty.l2 == 0:
            penalty = rs.L1(1.0, factor=l1 * units)
        elif penalty.l1 == 0:
            penalty = rs.L2(1.0, factor=l2 * units**2)
        else:
            return
    rescaled = replace(problem, x=x, penalty=penalty)
    assert_same(problem.fit(store), rescaled.fit(store), unit=units)


@given_stored(problems(), st.sampled_from([-3.0, 1e3, 1e6]))
def test_a_shifted_column(store, problem, shift):
    x = problem.x.copy()
    # Sparse columns are not centred, and lose the digits that a shift takes.
    x[:, 1] += min(shift, 1e3) if store is as_sparse else shift
    assert_same(problem.fit(store), replace(problem, x=x).fit(store))


def representations(x, y, strata):
    """The same covariates as every kind of input, and the data set read from a long table."""
    names = [f"x{j}" for j in range(x.shape[1])]
    row, column = np.nonzero(x)
    row_id = np.arange(x.shape[0]) * 7 + 2**40
    outcomes = pa.table({"rowId": row_id, "time": y["time"], "y": y["event"], "stratumId": strata})
    entries = np.random.default_rng(0).permutation(row.size)
    long = pa.table(
        {
            "rowId": row_id[row[entries]],
            "covariateId": column[entries],
            "covariateValue": x[row, column][entries],
        }
    )
    return {
        "fortran": np.asfortranarray(x),
        "csr": sparse.csr_array(x),
        "csc matrix": sparse.csc_matrix(x),
        "coo": sparse.coo_array(
            (x[row, column][entries], (row[entries], column[entries])), x.shape
        ),
        "pandas": pd.DataFrame(x, columns=names),
        "arrow": pa.table(dict(zip(names, x.T, strict=True))),
        "design": rs.Design.from_sparse(sparse.csc_array(x)),
        "long": rs.Dataset.from_long(outcomes, long),
    }


@each_storage
@pytest.mark.parametrize("penalty", PENALTIES.values(), ids=PENALTIES)
def test_sparse_is_dense_is_a_frame_is_a_long_table(store, rng, penalty):
    x = rng.normal(size=(300, 6)) * (rng.random((300, 6)) < [0.1, 0.3, 0.9, 1.0, 0.2, 0.6])
    x[:, 0] = x[:, 0] != 0
    x[:, 5] = x[:, 5] != 0
    y = rs.Surv(np.ceil(rng.exponential(20, 300)), rng.random(300) < 0.7)
    strata = rng.integers(0, 3, 300)
    model = rs.Cox(penalty, tol=TOL).fit(store(x), y, strata=strata)
    assert model.status_ == "converged"
    for kind, other in representations(x, y, strata).items():
        if kind == "long":
            if penalty is not None and penalty.unpenalized:
                # Its covariates are called 0, 1, ...: the same columns by position.
                assert other.design.names == tuple("012345")
            again = rs.Cox(penalty, tol=TOL).fit(other)
        else:
            again = rs.Cox(penalty, tol=TOL).fit(other, y, strata=strata)
        assert_allclose(again.coef_, model.coef_, rtol=1e-8, atol=1e-10, err_msg=kind)
        assert_allclose(again.log_likelihood_, model.log_likelihood_, rtol=1e-12, err_msg=kind)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            assert_allclose(again.predict(other), model.predict(store(x)), rtol=1e-7, atol=1e-9)


# ---------------------------------------------------------------------- how it is computed


@given_stored(problems(penalties=["l1", "l2", "both"]))
def test_warm_is_cold(store, problem):
    """Down a path and up again; each solution as if started from 0."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        penalties = [problem.penalty.with_strength(s) for s in (8.0, 2.0, 0.5, 2.0, 8.0)]
        model = rs.Cox(ties=problem.ties, tol=TOL)
        path = rs.path(model, store(problem.x), problem.y, penalties=penalties, **problem.arguments)
    for k, penalty in enumerate(penalties):
        cold = replace(problem, penalty=penalty).fit(store)
        assert path.statuses[k] == cold.status_
        finite = np.isfinite(cold.coef_)
        assert_allclose(path.coefs[k][finite], cold.coef_[finite], rtol=1e-5, atol=1e-6)
        assert_allclose(path.objectives[k], cold.objective_, rtol=1e-8, atol=1e-8)


@each_storage
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("ties", ["breslow", "efron"])
def test_same_bits_for_any_number_of_threads(store, rng, late, ties):
    n, p = 30_000, 12
    x = store(np.column_stack([rng.random((n, p)) < 0.2, rng.normal(size=(n, 2))]))
    time = np.ceil(rng.exponential(500, n))
    y = rs.Surv(time, rng.random(n) < 0.3, time * rng.random(n) * 0.5 if late else None)
    answers = []
    for n_threads in (1, 2, 3, 5):
        model = rs.Cox(rs.L1(5.0), ties=ties, n_threads=n_threads).fit(x, y)
        assert model.status_ == "converged"
        survival = model.predict_survival_function(x.take_rows(np.arange(5)), [10.0, 300.0])
        answers.append((model.coef_, model.log_likelihood_, model.kkt_, survival))
    for answer in answers[1:]:
        for one, other in zip(answers[0], answer, strict=True):
            assert_array_equal(one, other)


@each_storage
@pytest.mark.parametrize(("n", "p"), [(60, 130), (9000, 20)], ids=["wide", "long"])
def test_a_path_has_the_same_bits_for_any_number_of_threads(store, rng, n, p):
    x = rng.normal(size=(n, p))
    x[:, ::3] = rng.random((n, x[:, ::3].shape[1])) < 0.3
    y = rs.Surv(rng.exponential(np.exp(x[:, 0] - x[:, 1])), rng.random(n) < 0.7)
    one, *others = (rs.path(rs.Cox(rs.L1(1.0), n_threads=k), store(x), y, n_penalties=12)
                    for k in (1, 2, 3))  # fmt: skip
    assert set(one.statuses) == {"converged"}
    assert np.count_nonzero(one.coefs[-1]) > 10
    for other in others:
        assert_array_equal(other.coefs, one.coefs)
        assert_array_equal(other.objectives, one.objectives)


# ------------------------------------------------------------------------ infinite estimates


@given_stored(problems(penalties=["none", "both"]), st.integers(8, 20))
def test_the_limit_of_infinite_estimates(store, problem, n):
    """Far along the way to infinity the likelihood is at its limit, and curves add up to events."""
    # Few columns: with many, events are told apart in stages that rounding no longer does.
    problem = replace(problem.rows(np.arange(min(n, problem.time.size))), x=problem.x[:n, :2])
    model = problem.fit(store)
    if model.status_ != "infinite_estimate":
        return
    far = problem.x @ model._fitted.predicting(model.coef_)
    offset = problem.arguments.get("offset", 0.0)
    at_limit = replace(problem.rows(slice(None), offset=far + offset), penalty=None)
    reached = at_limit.fit(store, problem.x[:, :0]).log_likelihood_
    assert_allclose(reached, model.log_likelihood_, rtol=1e-6, atol=1e-6)
    martingale = model.residuals(store(problem.x), problem.y, **problem.arguments)
    weight = problem.arguments.get("sample_weight", np.ones(problem.time.size))
    present = weight > 0  # absent rows may be sure to fail at once: their residual is -inf
    assert_allclose(weight[present] @ martingale[present], 0, atol=1e-6)
    assert not np.isnan(
        model.predict(store(problem.x), offset=problem.arguments.get("offset"))
    ).any()


# ------------------------------------------------------------------------------- optimality


def plain_residuals(problem, eta):
    """Events of each row, and how many were expected, as the formulas read: O(n^2)."""
    n = eta.size
    w = problem.arguments.get("sample_weight", np.ones(n))
    s = problem.arguments.get("strata", np.zeros(n))
    entry = np.full(n, -np.inf) if problem.entry is None else problem.entry
    expected = np.zeros(n)
    events = problem.event & (w > 0)
    for stratum, t in {(a, b) for a, b in zip(s[events], problem.time[events], strict=True)}:
        own = (s == stratum) & (w > 0)
        at_risk = np.flatnonzero(own & (entry < t) & (t <= problem.time))
        tied = np.flatnonzero(own & events & (problem.time == t))
        risk = np.zeros(n)
        risk[at_risk] = w[at_risk] * np.exp(eta[at_risk] - eta[at_risk].max())
        for k in range(tied.size):
            part = risk.copy()
            if problem.ties == "efron":
                part[tied] *= 1 - k / tied.size
            expected += w[tied].mean() * part / part.sum()
    return w * events, expected


def spread_about_mean(x, weight):
    mean = weight @ x / weight.sum()
    return np.sqrt(weight @ (x - mean) ** 2 / weight.sum())


@given_stored(problems())
def test_the_certificate_by_plain_sums(store, problem):
    model = problem.fit(store)
    if model.status_ != "converged":
        return
    x, beta = problem.x, model.coef_
    offset = problem.arguments.get("offset", np.zeros(problem.time.size))
    observed, expected = plain_residuals(problem, x @ beta + offset)
    at_zero = x.T @ np.subtract(*plain_residuals(problem, offset))
    l1 = l2 = np.zeros(beta.size)
    if problem.penalty is not None:
        l1, l2 = problem.penalty.arrays(model.covariates_)
    u = x.T @ (observed - expected) - l2 * beta
    violation = np.where(beta != 0, np.abs(u - l1 * np.sign(beta)), np.maximum(np.abs(u) - l1, 0))
    spread = spread_about_mean(x, problem.arguments.get("sample_weight", np.ones(len(x))))
    spread[store(x).is_binary | (spread == 0)] = 1.0
    at_risk = spread_about_mean(x, expected)
    varies = ~store(x).is_binary & (at_risk > 1e-9 * spread)
    unit = np.where(varies, np.minimum(spread, at_risk), spread)
    scale = (np.abs(at_zero) / spread).max()
    if scale < 1e-9:
        return
    residual = (violation / unit).max() / scale
    assert residual <= 2 * TOL + 1e-12
    assert abs(residual - model.kkt_) <= 1e-11


@each_storage
def test_same_bits_for_any_number_of_blas_threads(store) -> None:
    rng = np.random.default_rng(3)
    x = store(rng.normal(size=(3000, 60)))
    y = rs.Surv(rng.exponential(size=3000), rng.random(3000) < 0.7)
    answers = []
    for n in (1, 2, 4):
        with threadpool_limits(limits=n, user_api="blas"):
            model = rs.Cox(ties="efron").fit(x, y)
            answers.append((model.coef_.tobytes(), model.standard_error_.tobytes()))
    assert answers[0] == answers[1] == answers[2]
