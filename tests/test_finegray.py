"""Fine and Gray's model: hard cases, what it must equal, what it must not change by, and errors.

The expanded data set of survival's `finegray` and the robust variance of cmprsk's `crr` are built
here row by row, straight from their definitions.
"""

import pickle
import warnings
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import riskset as rs
from reference import CASES, matrix, read_json, read_table
from riskset._runtime import Runtime
from riskset.data.outcome import Outcome
from riskset.model.finegray import Censoring, FineGrayLoss

TOL = 1e-10


def case(number):
    """Expected values of a case, and its table."""
    (folder,) = CASES.glob(f"{number}-*")
    return read_json(folder / "expected.json"), read_table(folder / "input.csv")


def fit(x, y, penalty=None, *, sample_weight=None, strata=None, cluster=None, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", rs.RisksetWarning)
        model = rs.FineGray(penalty, tol=TOL, **parameters)
        return model.fit(x, y, sample_weight=sample_weight, strata=strata, cluster=cluster)


# ------------------------------------------------------------------------------------ hard cases


def test_without_censoring():
    expected, table = case("23")
    x = table["x"][:, None]
    model = fit(x, rs.Surv(table["time"], table["status"]))
    assert model.status_ == "converged"
    assert_allclose(model.coef_, expected["beta"], rtol=1e-9)
    assert_allclose(model.log_likelihood_, expected["loglik"], rtol=1e-12)
    assert_allclose(model.standard_error_, expected["model_se"], rtol=1e-8)
    # The same as if nobody with a competing event ever left.
    time = np.where(table["status"] == 2, table["time"].max() + 1, table["time"])
    cox = rs.Cox(tol=TOL).fit(x, rs.Surv(time, table["status"] == 1))
    assert_allclose(model.coef_, cox.coef_, rtol=1e-12)
    assert_allclose(model.coef_, expected["beta_cox_equivalent"], rtol=1e-9)
    assert_allclose(model.robust_variance_, cox.robust_variance_, rtol=1e-9)


def test_without_competing_events():
    expected, table = case("24")
    x, y = matrix(table, ["x1", "x2"]), rs.Surv(table["time"], table["status"])
    model = fit(x, y)
    assert_allclose(model.coef_, expected["beta"], rtol=1e-9)
    assert_allclose(model.log_likelihood_, expected["loglik"], rtol=1e-12)
    assert_allclose(model.standard_error_, expected["model_se"], rtol=1e-8)
    with pytest.raises(rs.InputError, match="code 7"):
        rs.FineGray(cause=7).fit(x, y)


@pytest.mark.parametrize("cause", [1, 2])
def test_extreme_predictions(cause):
    expected, table = case("26")
    expected = expected[f"cause{cause}"]
    model = fit(table["x"][:, None], rs.Surv(table["time"], table["status"]), cause=cause)
    assert_allclose(model.coef_, expected["beta"], rtol=1e-9)
    x = np.array([[float(value)] for value in expected["cif"]])
    got = model.predict_cumulative_incidence(x, expected["times"])
    assert_allclose(got, list(expected["cif"].values()), rtol=1e-8, atol=1e-100)
    wide = np.array([[-1e5], [-800.0], [0.0], [800.0], [1e5]])
    curves = model.predict_cumulative_incidence(wide, np.linspace(0, 12, 200))
    assert not np.isnan(curves).any()
    assert (curves >= 0).all()
    assert (curves <= 1).all()
    assert (np.diff(curves, axis=1) >= 0).all()
    assert (curves[:, 0] == 0).all()
    survival = model.predict_survival_function(wide, np.linspace(0, 12, 200))
    assert_allclose(survival, 1 - curves, atol=1e-15)


# ------------------------------------------------------------------------------- random problems


@dataclass(frozen=True, eq=False)
class Problem:
    """One small random data set with tied times."""

    x: np.ndarray
    time: np.ndarray
    event: np.ndarray
    weight: np.ndarray
    stratum: np.ndarray
    group: np.ndarray
    rng: np.random.Generator = field(repr=False)

    @property
    def y(self):
        return rs.Surv(self.time, self.event)

    def outcome(self, rows=slice(None), stratum=None):
        return Outcome.build(
            self.time[rows],
            self.event[rows],
            weight=self.weight[rows],
            stratum=None if stratum is None else stratum[rows],
            cause=1,
        )


@st.composite
def problems(draw, n=60, weighted=None):
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    x = np.column_stack([rng.normal(size=n), rng.random(n) < 0.5])
    time = np.ceil(draw(st.sampled_from([4, 12, 1000])) * rng.exponential(np.exp(-0.5 * x[:, 0])))
    event = rng.choice(3, size=n, p=draw(st.sampled_from([(0.3, 0.4, 0.3), (0.6, 0.2, 0.2)])))
    event[:6] = [1, 2, 0, 1, 2, 1]
    is_weighted = draw(st.booleans()) if weighted is None else weighted
    weight = rng.integers(1, 4, n).astype(float) if is_weighted else np.ones(n)
    return Problem(x, time, event, weight, rng.integers(0, 3, n), rng.integers(0, 2, n), rng)


def survival_before(time, event, weight, at, ties):
    """Kaplan-Meier of censoring, left limit, by its definition."""
    out = np.ones(len(at))
    for u in np.unique(time[event == 0]):
        leaves_before = (time == u) & (event != 0) & (ties == "finegray")
        at_risk = weight[(time >= u) & ~leaves_before].sum()
        factor = 1 - weight[(time == u) & (event == 0)].sum() / at_risk
        out *= np.where(np.asarray(at) > u, factor, 1.0)
    return out


def expanded(p, ties="crr", cause=1):
    """One row for each subject and time of an event at which it is at risk."""
    times = np.unique(p.time[p.event == cause])
    own = survival_before(p.time, p.event, p.weight, p.time, ties)
    at = survival_before(p.time, p.event, p.weight, times, ties)
    rows = []
    for i in range(p.time.size):
        competing = p.event[i] not in (0, cause)
        for k, t in enumerate(times):
            late = p.time[i] < t
            if late and not competing:
                break
            w = p.weight[i] * (at[k] / own[i] if late else 1.0)
            if w > 0:
                entry = times[k - 1] if k else 0.0
                rows.append((i, entry, t, p.event[i] == cause and p.time[i] == t, w))
    return [np.array(column) for column in zip(*rows, strict=True)]


@pytest.mark.parametrize("ties", ["crr", "finegray"])
@given(p=problems())
def test_it_is_weighted_cox_on_the_expanded_data(ties, p):
    model = fit(p.x, p.y, sample_weight=p.weight, censoring_ties=ties)
    row, entry, stop, event, weight = expanded(p, ties)
    y = rs.Surv(stop, event, np.where(entry == 0, -1.0, entry))
    cox = rs.Cox(tol=TOL).fit(p.x[row], y, sample_weight=weight, cluster=row)
    assert_allclose(model.coef_, cox.coef_, rtol=1e-7, atol=1e-9)
    assert_allclose(model.log_likelihood_, cox.log_likelihood_, rtol=1e-12)
    assert_allclose(model.null_log_likelihood_, cox.null_log_likelihood_, rtol=1e-12)
    assert_allclose(model.variance_, cox.variance_, rtol=1e-7)
    assert_allclose(model.tests_.score.statistic, cox.tests_.score.statistic, rtol=1e-8)
    times = np.unique(stop)
    assert_allclose(
        model.predict_cumulative_incidence(p.x[:5], times),
        1 - cox.predict_survival_function(p.x[:5], times),
        atol=1e-9,
    )
    data = {"sample_weight": p.weight}
    one = model.test_proportionality(p.x, p.y, "identity", **data)
    other = cox.test_proportionality(p.x[row], y, "identity", sample_weight=weight)
    assert_allclose(one.statistic, other.statistic, rtol=1e-6, atol=1e-8)
    assert_allclose(one.global_statistic, other.global_statistic, rtol=1e-6)

    martingale = cox.residuals(p.x[row], y, sample_weight=weight) * weight
    want = np.bincount(row, martingale, p.time.size)
    assert_allclose(model.residuals(p.x, p.y, **data) * p.weight, want, atol=1e-8)
    score = cox.residuals(p.x[row], y, "score", sample_weight=weight) * weight[:, None]
    for j in range(2):
        got = model.residuals(p.x, p.y, "score", **data)[:, j] * p.weight
        assert_allclose(got, np.bincount(row, score[:, j], p.time.size), atol=1e-8)
    one = model.residuals(p.x, p.y, "schoenfeld", **data)
    other = cox.residuals(p.x[row], y, "schoenfeld", sample_weight=weight)
    assert_array_equal(one.row, row[other.row])
    assert_allclose(one.values, other.values, atol=1e-8)

    # With G as if it were known, the robust variance is that of the expanded data by subject.
    own = survival_before(p.time, p.event, p.weight, p.time, ties)
    known = fit(p.x, p.y, sample_weight=p.weight, censoring_probability=own)
    assert_allclose(known.coef_, model.coef_, rtol=1e-8, atol=1e-10)
    assert_allclose(known.robust_variance_, cox.robust_variance_, rtol=1e-7)


def influence(p, x, eta, ties, weight_in_g, stratum, group):
    """Each row's influence on the score with G estimated, by the double sums of crr."""
    n, kinds = p.time.size, np.unique(group)
    r = p.weight * np.exp(eta)
    own = np.ones(n)
    for k in kinds:
        of = group == k
        own[of] = survival_before(p.time[of], p.event[of], weight_in_g[of], p.time[of], ties)
    out, terms = np.zeros_like(x), []
    for s in np.unique(stratum):
        for t in np.unique(p.time[(p.event == 1) & (stratum == s)]):
            at = np.ones(n)
            for k in kinds:
                of = group == k
                at[of] = survival_before(p.time[of], p.event[of], weight_in_g[of], [t], ties)
                at[of] *= t <= p.time[of].max() or kinds.size == 1
            late = (p.time < t) & (p.event == 2)
            share = np.where(p.time >= t, 1.0, np.where(late, at / own, 0.0)) * r * (stratum == s)
            mean = share @ x / share.sum()
            is_event = (p.time == t) & (p.event == 1) & (stratum == s)
            change = share * p.weight[is_event].sum() / share.sum()
            out += ((is_event * p.weight) - change)[:, None] * (x - mean)
            terms.append((t, mean, change))
    for k in kinds:
        for u in np.unique(p.time[(p.event == 0) & (group == k)]):
            q = np.zeros(x.shape[1])
            before = np.flatnonzero((p.time < u) & (p.event == 2) & (group == k))
            for t, mean, change in terms:
                q += (t >= u) * (change[before] @ (x[before] - mean))
            at_risk = (p.time >= u) & (group == k)
            if ties == "finegray":
                at_risk &= ~((p.time == u) & (p.event != 0))
            total = weight_in_g[at_risk].sum()
            censored = (p.time == u) & (p.event == 0) & (group == k)
            drift = weight_in_g[censored].sum() / total
            out += (weight_in_g * (censored - at_risk * drift))[:, None] * q / total
    return out


@pytest.mark.parametrize("ties", ["crr", "finegray"])
@pytest.mark.parametrize("weights", ["case", "none"])
@given(p=problems(n=40), stratified=st.booleans(), grouped=st.booleans())
def test_robust_variance_by_double_sums(ties, weights, p, stratified, grouped):
    parameters = {"censoring_ties": ties, "censoring_weights": weights}
    none = np.zeros(p.time.size, dtype=int)
    stratum, group = p.stratum if stratified else none, p.group if grouped else none
    data = {"sample_weight": p.weight, "strata": stratum, "censoring_group": group}
    model = fit(p.x, p.y, **data, **parameters)
    if model.status_ != "converged":
        return
    in_g = p.weight if weights == "case" else np.ones(p.time.size)
    rows = influence(p, p.x, p.x @ model.coef_, ties, in_g, stratum, group)
    assert_allclose(rows.sum(axis=0), 0, atol=1e-7)
    bread = model.variance_
    want = bread @ rows.T @ rows @ bread
    assert_allclose(model.robust_variance_, want, rtol=1e-6, atol=1e-9 * want.max())
    label = p.rng.integers(0, 9, p.time.size)
    sums = np.array([rows[label == k].sum(axis=0) for k in np.unique(label)])
    clustered = fit(p.x, p.y, cluster=label, **data, **parameters)
    want = bread @ sums.T @ sums @ bread
    assert_allclose(clustered.robust_variance_, want, rtol=1e-6, atol=1e-9 * want.max())


# ----------------------------------------------------------------------------------- equivalences


@given(p=problems(), stratified=st.booleans())
def test_without_competing_events_it_is_cox(p, stratified):
    y = rs.Surv(p.time, p.event == 1)
    data = {"sample_weight": p.weight, "strata": p.stratum if stratified else None}
    model, cox = fit(p.x, y, **data), rs.Cox(tol=TOL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        cox.fit(p.x, y, **data)
    assert model.status_ == cox.status_
    assert_allclose(model.coef_, cox.coef_, rtol=1e-9, atol=1e-12)
    assert_allclose(model.log_likelihood_, cox.log_likelihood_, rtol=1e-13)
    assert_allclose(model.variance_, cox.variance_, rtol=1e-8)
    assert_allclose(model.robust_variance_, cox.robust_variance_, rtol=1e-7)
    times = np.unique(p.time)
    strata = None if not stratified else p.stratum
    assert_allclose(
        model.predict_cumulative_incidence(p.x, times, strata=strata),
        1 - cox.predict_survival_function(p.x, times, strata=strata),
        atol=1e-12,
    )
    for kind in ("martingale", "deviance", "score"):
        one, other = (m.residuals(p.x, y, kind, **data) for m in (model, cox))
        assert_allclose(one, other, atol=1e-8)
    one, other = (m.test_proportionality(p.x, y, **data) for m in (model, cox))
    assert_allclose(one.statistic, other.statistic, rtol=1e-6, atol=1e-9)
    assert model.score(p.x, y) == cox.score(p.x, y)


@given(p=problems(weighted=True), ties=st.sampled_from(["crr", "finegray"]))
def test_weight_two_is_the_row_twice_in_g_too(p, ties):
    rows = np.repeat(np.arange(p.time.size), p.weight.astype(int))
    one = fit(p.x, p.y, sample_weight=p.weight, censoring_ties=ties, cluster=np.arange(60))
    two = fit(p.x[rows], p.y[rows], censoring_ties=ties, cluster=rows)
    assert_allclose(one.coef_, two.coef_, rtol=1e-8, atol=1e-10)
    assert_allclose(one.log_likelihood_, two.log_likelihood_, rtol=1e-12)
    assert_allclose(one.variance_, two.variance_, rtol=1e-7)
    assert_allclose(one.robust_variance_, two.robust_variance_, rtol=1e-7)


@given(p=problems())
def test_weight_zero_is_the_row_gone(p):
    weight = p.weight * (p.rng.random(60) < 0.8)
    weight[:6] = 1
    kept = weight > 0
    one = fit(p.x, p.y, sample_weight=weight)
    two = fit(p.x[kept], p.y[kept], sample_weight=weight[kept])
    assert_allclose(one.coef_, two.coef_, rtol=1e-8, atol=1e-10)
    assert_allclose(one.log_likelihood_, two.log_likelihood_, rtol=1e-12)
    assert_allclose(one.robust_variance_, two.robust_variance_, rtol=1e-7)


@given(p=problems())
def test_any_order_of_rows_and_any_monotone_time(p):
    model = fit(p.x, p.y, sample_weight=p.weight, strata=p.stratum, censoring_group=p.group)
    order = p.rng.permutation(60)
    other = fit(
        p.x[order],
        rs.Surv(np.log1p(p.time[order]), p.event[order]),
        sample_weight=p.weight[order],
        strata=p.stratum[order],
        censoring_group=p.group[order],
    )
    assert_allclose(model.coef_, other.coef_, rtol=1e-8, atol=1e-10)
    assert_allclose(model.log_likelihood_, other.log_likelihood_, rtol=1e-12)
    assert_allclose(model.robust_variance_, other.robust_variance_, rtol=1e-7)
    times = np.arange(1.0, 12.0)
    assert_allclose(
        model.predict_cumulative_incidence(p.x[order], times, strata=p.stratum[order]),
        other.predict_cumulative_incidence(p.x[order], np.log1p(times), strata=p.stratum[order]),
        rtol=1e-8,
        atol=1e-12,
    )


@given(p=problems())
def test_strata_add_up(p):
    """Risk sets within strata, G of all rows; with G by stratum, each stratum by itself."""
    outcome = p.outcome(stratum=p.stratum)
    eta = p.rng.normal(size=60)
    groups = [np.flatnonzero(p.stratum == s) for s in range(3)]
    groups = [rows for rows in groups if (p.event[rows] == 1).any()]

    pooled = Censoring.estimate(outcome)
    whole = FineGrayLoss(outcome, pooled, Runtime(1)).evaluate(eta)
    by_stratum = FineGrayLoss(
        outcome, Censoring.estimate(outcome, group=p.stratum), Runtime(1)
    ).evaluate(eta)
    total = alone = 0.0
    for rows in groups:
        part = p.outcome(rows)
        given_g = FineGrayLoss(part, Censoring.given(part, pooled.own[rows]), Runtime(1))
        total += given_g.evaluate(eta[rows]).log_likelihood
        assert_allclose(given_g.evaluate(eta[rows]).residual, whole.residual[rows], atol=1e-12)
        own_g = FineGrayLoss(part, Censoring.estimate(part), Runtime(1)).evaluate(eta[rows])
        alone += own_g.log_likelihood
        assert_allclose(own_g.residual, by_stratum.residual[rows], atol=1e-12)
    assert_allclose(whole.log_likelihood, total, rtol=1e-12)
    assert_allclose(by_stratum.log_likelihood, alone, rtol=1e-12)


@given(p=problems())
def test_gradient_by_five_points(p):
    outcome = p.outcome(stratum=p.stratum)
    loss = FineGrayLoss(outcome, Censoring.estimate(outcome, group=p.group), Runtime(1))
    eta, step = p.rng.normal(size=60), 1e-3
    residual = loss.evaluate(eta).residual
    for i in range(0, 60, 7):
        e = np.zeros(60)
        e[i] = step
        f = [loss.evaluate(eta + k * e).log_likelihood for k in (-2, -1, 1, 2)]
        want = (f[0] - 8 * f[1] + 8 * f[2] - f[3]) / (12 * step)
        assert_allclose(residual[i], want, atol=1e-8)


def simulated(rng, n=400):
    x = rng.normal(size=(n, 3))
    time = np.ceil(10 * rng.exponential(np.exp(-0.7 * x[:, 0])))
    return x, rs.Surv(time, rng.choice(3, size=n, p=[0.3, 0.4, 0.3]))


def test_same_bits_for_any_number_of_threads(rng):
    x, y = simulated(rng, 20_000)
    group = rng.integers(0, 3, len(y))
    models = [fit(x, y, n_threads=k, censoring_group=group) for k in (1, 2, 3)]
    for model in models[1:]:
        assert_array_equal(model.coef_, models[0].coef_)
        assert model.log_likelihood_ == models[0].log_likelihood_
        assert_array_equal(model.robust_variance_, models[0].robust_variance_)


# -------------------------------------------------------------------------------------- censoring


def test_groups_by_array_by_name_and_by_role(rng):
    x, y = simulated(rng)
    site = np.where(rng.random(len(y)) < 0.4, "a", "b")
    wanted = fit(x, y, censoring_group=site)
    assert wanted.log_likelihood_ != fit(x, y).log_likelihood_
    frame = pd.DataFrame(x, columns=["u", "v", "w"]).assign(
        time=y["time"], event=y["event"], site=site
    )
    data = rs.Dataset.from_frame(frame, censoring_group="site")
    for model in (fit(data, None), fit(data, None, censoring_group="site")):
        assert model.covariates_ == ("u", "v", "w")
        assert_allclose(model.coef_, wanted.coef_, rtol=1e-9)
        assert_allclose(model.log_likelihood_, wanted.log_likelihood_, rtol=1e-13)
    covariates = frame.drop(columns=["time", "event"])
    by_name = fit(covariates, y, censoring_group="site")
    by_array = fit(covariates, y, censoring_group=site)
    assert by_name.covariates_ == ("u", "v", "w", "site=b")
    assert_array_equal(by_name.coef_, by_array.coef_)
    of_stratum = rs.Dataset.from_frame(frame, strata="site")
    assert_allclose(
        fit(of_stratum, None, censoring_group="site").coef_,
        fit(x, y, strata=site, censoring_group=site).coef_,
        rtol=1e-9,
    )
    with pytest.raises(rs.InputError, match="did you mean 'site'"):
        fit(data, None, censoring_group="sit")


def test_beyond_the_last_time_of_a_group():
    """Row 0 has a competing event in a group that ends before the only event: gone, or kept."""
    time, event = np.array([1.0, 2.0, 3.0, 4.0]), np.array([2, 0, 1, 0])
    group = ["short", "short", "long", "long"]
    x = np.array([[1.0], [0.0], [0.0], [0.5]])
    y = rs.Surv(time, event)

    def null(**parameters):
        return fit(x, y, rs.L2(1.0), **parameters).null_log_likelihood_

    # G of "short" is 1 before its censoring at 2, which is its last time, and 0 after it.
    assert null(censoring_group=group) == pytest.approx(-np.log(2))
    last = null(censoring_group=group, censoring_beyond="last")
    assert last == pytest.approx(-np.log(3))
    # Of all rows G(3-) = 2/3.
    assert null() == pytest.approx(-np.log(2 + 2 / 3))


def test_weights_in_g_or_not(rng):
    x, y = simulated(rng)
    weight = rng.choice([0.5, 2.0], len(y))
    plain = survival_before(y["time"], y["event"], np.ones(len(y)), y["time"], "crr")
    one = fit(x, y, sample_weight=weight, censoring_weights="none")
    two = fit(x, y, sample_weight=weight, censoring_probability=plain)
    assert_allclose(one.coef_, two.coef_, rtol=1e-9)
    assert one.log_likelihood_ != fit(x, y, sample_weight=weight).log_likelihood_


# --------------------------------------------------------------------------------- the estimator


def test_infinite_estimate():
    """No event among the exposed: their incidence is 0, and the others' as if they were absent."""
    rng = np.random.default_rng(5)
    x, y = simulated(rng, 200)
    exposed = (np.arange(200) % 2 == 0) & (y["event"] != 1)
    own = survival_before(y["time"], y["event"], np.ones(200), y["time"], "crr")
    with pytest.warns(ConvergenceWarning, match="goes to infinity"):
        model = rs.FineGray(tol=TOL, censoring_probability=own).fit(
            np.column_stack([x[:, 0], exposed]), y
        )
    assert model.status_ == "infinite_estimate"
    assert model.coef_[1] == -np.inf
    kept = ~exposed
    alone = fit(x[kept, :1], y[kept], censoring_probability=own[kept])
    assert_allclose(model.coef_[0], alone.coef_[0], rtol=1e-7)
    assert_allclose(model.log_likelihood_, alone.log_likelihood_, rtol=1e-9)
    assert_allclose(model.robust_variance_[0, 0], alone.robust_variance_[0, 0], rtol=1e-6)
    times = np.unique(y["time"])
    got = model.predict_cumulative_incidence([[0.3, 1.0], [0.3, 0.0]], times)
    assert_array_equal(got[0], 0.0)
    assert_allclose(got[1], alone.predict_cumulative_incidence([[0.3]], times)[0], rtol=1e-7)


def test_copies_and_files(rng, tmp_path):
    x, y = simulated(rng)
    group = rng.integers(0, 2, len(y))
    model = fit(x, y, censoring_group=group, censoring_ties="finegray", cause=2)
    _ = model.robust_variance_
    model.save(tmp_path / "fit.riskset")
    times = [1.0, 5.0, 30.0]
    for again in (pickle.loads(pickle.dumps(model)), rs.load(tmp_path / "fit.riskset")):
        assert isinstance(again, rs.FineGray)
        assert again.cause == 2
        assert again.censoring_ties == "finegray"
        assert_array_equal(again.coef_, model.coef_)
        assert_array_equal(again.robust_variance_, model.robust_variance_)
        assert_array_equal(
            again.predict_cumulative_incidence(x[:4], times),
            model.predict_cumulative_incidence(x[:4], times),
        )
        assert again.tests_ == model.tests_
    assert rs.load(tmp_path / "fit.riskset").censoring_group is None
    refit = clone(model).fit(x, y)
    assert_array_equal(refit.coef_, model.coef_)


def test_path(rng):
    x, y = simulated(rng)
    result = rs.path(rs.FineGray(rs.L1(1.0)), x, y, n_penalties=6)
    assert set(result.statuses) == {"converged"}
    assert not result.coefs[0].any()
    model = result.model(-1)
    assert isinstance(model, rs.FineGray)
    alone = rs.FineGray(result.penalties[-1], tol=TOL).fit(x, y)
    assert_allclose(model.coef_, alone.coef_, atol=1e-7)
    assert np.isnan(model.robust_variance_).all()


def test_summary_is_robust(rng):
    x, y = simulated(rng)
    model = fit(x, y)
    frame = model.summary()
    assert_allclose(frame["robust_standard_error"], model.robust_standard_error_)
    assert_allclose(frame["z"], model.coef_ / model.robust_standard_error_)
    assert not np.allclose(model.standard_error_, model.robust_standard_error_, rtol=1e-6)
    assert model.tests_.robust_score is not None


def test_baseline_hazard_with_strata(rng):
    x, y = simulated(rng)
    strata = rng.integers(0, 2, len(y))
    model = fit(x, y, strata=strata)
    frame = model.baseline_hazard().reset_index()
    for s in (0, 1):
        own = frame[frame["stratum"] == s]
        assert_allclose(own["hazard"].cumsum(), own["cumulative_hazard"], rtol=1e-10)
        want = model.predict_cumulative_hazard_function(np.zeros((1, 3)), own["time"], strata=[s])
        assert_allclose(own["cumulative_hazard"], want[0], rtol=1e-10)


def test_concordance_keeps_competing_rows_in_the_comparison():
    """Events of the cause at 1 and 4; row 1 had the other event at 2 and is never overtaken."""
    y = rs.Surv([1.0, 2.0, 3.0, 4.0], [1, 2, 0, 1])
    x = np.array([[1.0], [3.0], [-1.0], [0.0]])
    model = fit(x, y, rs.L2(1e-3))
    sign = np.sign(model.coef_[0])
    # Pairs: 0 with 1, 2, 3; 3 with 1. By x: row 0 is above 2 and 3; row 3 is below 1.
    share = 2 / 4
    assert model.score(x, y) == pytest.approx(share if sign > 0 else 1 - share)


ERRORS = [
    ({"censoring_ties": "cr"}, "censoring_ties"),
    ({"censoring_beyond": "never"}, "censoring_beyond"),
    ({"censoring_weights": "all"}, "censoring_weights"),
    ({"censoring_group": [1, 2]}, "one label for each of the 8 rows"),
    ({"censoring_group": "x1"}, "x1"),
    ({"censoring_probability": [0.5] * 7}, "censoring_probability"),
    ({"censoring_probability": [1.5] * 8}, "between 0 and 1"),
    ({"censoring_probability": [0.0] * 8}, "positive at a competing event"),
    ({"censoring_probability": [1.0] * 8, "censoring_group": [1] * 8}, "together"),
    ({"cause": 3}, "code 3"),
    ({"cause": 0}, "positive whole number"),
]


@pytest.mark.parametrize(("parameters", "message"), ERRORS, ids=lambda v: str(v)[:40])
def test_errors(parameters, message):
    x = np.arange(8.0)[:, None]
    y = rs.Surv(np.arange(1.0, 9.0), [1, 2, 0, 1, 2, 0, 1, 1])
    with pytest.raises(rs.InputError, match=message):
        rs.FineGray(**parameters).fit(x, y)


def test_late_entry_is_refused():
    y = rs.Surv([2.0, 3.0, 4.0], [1, 2, 1], [0.0, 2.0, 0.0])
    x = np.arange(3.0)[:, None]
    with pytest.raises(rs.InputError, match="does not take late entry"):
        rs.FineGray().fit(x, y)
    # Entries before anything happened say nothing.
    one = fit(x, rs.Surv([2.0, 3.0, 4.0], [1, 2, 1], [0.0, 1.0, 0.0]), rs.L2(1.0))
    two = fit(x, rs.Surv([2.0, 3.0, 4.0], [1, 2, 1]), rs.L2(1.0))
    assert_array_equal(one.coef_, two.coef_)


def test_events_at_one_time_need_one_probability():
    y = rs.Surv([1.0, 1.0, 2.0, 3.0], [1, 1, 2, 0])
    with pytest.raises(rs.InputError, match="must be the same for events at one time"):
        rs.FineGray(censoring_probability=[1.0, 0.9, 0.8, 0.8]).fit(np.eye(4)[:, :1], y)
