"""The scikit-learn surface: its own checks, kinds of input, predictions, summaries, messages."""

import inspect
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from rich.console import Console
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import riskset as rs
from riskset._progress import ProgressBar

# ------------------------------------------------------------------------ scikit-learn's checks

EXCUSED = {
    "check_estimators_empty_data_messages": "a model without covariates is legal: its answer is "
    "the null log likelihood and the baseline hazard",
}
OF_EFRON = "by Efron's method a weight of 2 is not the row twice: repeated events are tied"
EXCUSED_FOR_EFRON = EXCUSED | {
    "check_sample_weight_equivalence_on_dense_data": OF_EFRON,
    "check_sample_weight_equivalence_on_sparse_data": OF_EFRON,
}
# scikit-learn itself skips check_array_api_input unless SCIPY_ARRAY_API is set.


# Their data are random and small: some estimates are infinite, and the warning is right.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::riskset.RisksetWarning")
@parametrize_with_checks(
    [
        rs.Cox(),
        rs.Cox(rs.L1(1.0)),
        rs.Cox(rs.L2(0.1), ties="efron"),
        rs.FineGray(),
        rs.FineGray(rs.ElasticNet(l1=0.5, l2=0.5), censoring_ties="finegray"),
    ],
    expected_failed_checks=lambda e: (
        EXCUSED_FOR_EFRON if getattr(e, "ties", "breslow") == "efron" else EXCUSED
    ),
)
def test_sklearn(estimator, check):
    check(estimator)


def test_the_excused_check_fails_for_its_reason_only():
    x, y = np.empty((12, 0)), np.arange(1.0, 13.0)
    model = rs.Cox().fit(x, y)
    assert model.coef_.shape == (0,)
    with pytest.raises(rs.InputError, match="has no rows"):
        rs.Cox().fit(np.empty((0, 3)), [])


# ------------------------------------------------------------------------------------- data


def simulated(rng, n=120, p=4):
    x = rng.normal(size=(n, p))
    time = np.ceil(10 * rng.exponential(np.exp(-x[:, 0] + 0.5 * x[:, 1])))
    return x, rs.Surv(time, rng.random(n) < 0.7)


@pytest.fixture
def data(rng):
    return simulated(rng)


def frame(n=90):
    """Columns of every kind that is encoded, as a dict."""
    rng = np.random.default_rng(4)
    return {
        "age": rng.integers(40, 80, n),
        "dose": rng.normal(size=n),
        "smoker": rng.random(n) < 0.4,
        "site": rng.choice(["b", "a", "c"], n).tolist(),
    }


def frame_outcome(n=90):
    rng = np.random.default_rng(5)
    return rs.Surv(rng.exponential(size=n).round(2) + 0.01, rng.random(n) < 0.8)


def frame_matrix(columns):
    site = np.array(columns["site"])
    parts = [columns["age"], columns["dose"], columns["smoker"], site == "b", site == "c"]
    return np.column_stack(parts).astype(float)


# -------------------------------------------------------------------------------- kinds of X


def test_frames_of_every_library_are_one(data):
    columns, y = frame(), frame_outcome()
    expected = rs.Cox().fit(frame_matrix(columns), y)
    names = ("age", "dose", "smoker", "site=b", "site=c")
    frames = {
        "pandas": pd.DataFrame(columns),
        "categories": pd.DataFrame(columns).astype({"site": "category"}),
        "polars": pl.DataFrame(columns),
        "arrow": pa.table(columns),
    }
    for kind, table in frames.items():
        model = rs.Cox().fit(table, y)
        assert model.covariates_ == names, kind
        assert list(model.feature_names_in_) == list(columns)
        assert model.n_features_in_ == 4
        assert_array_equal(model.coef_, expected.coef_, kind)
        assert_array_equal(model.predict(table), expected.predict(frame_matrix(columns)), kind)
        assert model.score(table, y) == expected.score(frame_matrix(columns), y)


def test_levels_are_those_of_the_fit():
    columns, y = frame(), frame_outcome()
    table = pd.DataFrame(columns)
    model = rs.Cox().fit(table, y)
    one = table[table["site"] == "c"]
    assert_allclose(model.predict(one), model.predict(table)[table["site"] == "c"], rtol=1e-13)
    with pytest.raises(rs.InputError, match="level that was not there at the fit"):
        model.predict(table.assign(site="d"))
    with pytest.raises(rs.InputError, match="column 'site' held categories"):
        model.predict(table[["age", "dose", "smoker", "age"]].to_numpy(float))
    with pytest.raises(rs.InputError, match="yet now missing:\n- dose"):
        model.predict(table.drop(columns="dose"))


def test_names_follow_scikit_learn(data):
    x, y = data
    names = list("abcd")
    named = rs.Cox().fit(pd.DataFrame(x, columns=names), y)
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        assert_allclose(named.predict(x), named.predict(pd.DataFrame(x, columns=names)))
    plain = rs.Cox().fit(x, y)
    assert plain.covariates_ == ("x0", "x1", "x2", "x3")
    assert not hasattr(plain, "feature_names_in_")
    with pytest.warns(UserWarning, match="X has feature names, but Cox was fitted without"):
        assert_allclose(plain.predict(pl.DataFrame(x, names)), plain.predict(x))
    numbered = rs.Cox().fit(pd.DataFrame(x), y)
    assert not hasattr(numbered, "feature_names_in_")
    named.fit(x, y)
    assert not hasattr(named, "feature_names_in_")


def test_designs_keep_their_names(data):
    x, y = data
    design = rs.Design.from_sparse(sparse.csc_array(x), keys=[7, 2**53, 2**53 + 1, -1])
    model = rs.Cox(rs.L1(5.0, unpenalized=[str(2**53 + 1)])).fit(design, y)
    assert model.covariates_ == ("7", "9007199254740992", "9007199254740993", "-1")
    assert model.coef_[2] != 0
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        assert_array_equal(model.predict(design), model.predict(x))
    other = rs.Design.from_dense(x, names=["7", "a", "b", "c"])
    with pytest.raises(rs.InputError, match="'9007199254740992' is absent"):
        model.predict(other)


def test_a_data_set_brings_everything():
    columns, y = frame(), frame_outcome()
    rng = np.random.default_rng(6)
    roles = {
        "days": y["time"],
        "died": y["event"].astype(int),
        "late": np.zeros(90),
        "w": rng.integers(0, 3, 90),
        "ward": rng.choice(["u", "v"], 90).tolist(),
        "who": rng.integers(0, 30, 90),
        "shift": rng.normal(size=90),
    }
    read = rs.Dataset.from_frame(
        pd.DataFrame(roles | columns), time="days", event="died", entry="late", weight="w",
        strata="ward", cluster="who", offset="shift",
    )  # fmt: skip
    arguments = {"sample_weight": roles["w"], "strata": roles["ward"], "offset": roles["shift"]}
    surv = rs.Surv(roles["days"], roles["died"], roles["late"])
    table = pd.DataFrame(columns)
    model = rs.Cox().fit(read)
    same = rs.Cox().fit(table, surv, **arguments, cluster=roles["who"])
    assert_array_equal(model.coef_, same.coef_)
    assert_array_equal(model.robust_variance_, same.robust_variance_)
    assert model.n_dropped_ == {"rows_of_weight_0": int((roles["w"] == 0).sum())}
    assert model.score(read) == same.score(table, surv, **arguments)
    expected = same.predict_survival_function(
        table, [0.5, 1.0], strata=roles["ward"], offset=roles["shift"]
    )
    for new in (read, pd.DataFrame(roles | columns)):
        assert_array_equal(model.predict_survival_function(new, [0.5, 1.0]), expected)
        assert_array_equal(model.predict(new), same.predict(table, offset=roles["shift"]))
    assert_array_equal(
        model.residuals(read), same.residuals(table, surv, **arguments, cluster=roles["who"])
    )
    with pytest.raises(rs.InputError, match="`strata` was given beside a Dataset"):
        rs.Cox().fit(read, strata=roles["ward"])


# -------------------------------------------------------------------------------- kinds of y


def test_outcomes_of_other_packages(data):
    x, y = data
    expected = rs.Cox().fit(x, y)
    first = np.array(list(zip(y["event"], y["time"], strict=True)), [("cens", "?"), ("t", "f8")])
    last = np.array(list(zip(y["time"], y["event"], strict=True)), [("t", "f4"), ("dead", "?")])
    for other in (first, last):
        assert_array_equal(rs.Cox().fit(x, other).coef_, expected.coef_)
        assert expected.score(x, other) == expected.score(x, y)
    times = rs.Cox().fit(x, y["time"])
    everybody = rs.Cox().fit(x, rs.Surv(y["time"], np.ones(y.size)))
    assert_array_equal(times.coef_, everybody.coef_)
    assert_array_equal(rs.Cox().fit(x, pd.Series(y["time"])).coef_, everybody.coef_)


def test_competing_causes(data, rng):
    x, y = data
    codes = np.where(y["event"], rng.integers(1, 4, y.size), 0)
    several = rs.Surv(y["time"], codes)
    for cause in (1, 3):
        model = rs.Cox(cause=cause).fit(x, several)
        one = rs.Surv(y["time"], codes == cause)
        assert_array_equal(model.coef_, rs.Cox().fit(x, one).coef_)
        assert model.score(x, several) == rs.Cox().fit(x, one).score(x, one)
    with pytest.raises(rs.InputError, match="pass `cause`"):
        rs.Cox().fit(x, several)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "requires y to be passed"),
        (np.ones((5, 2)), "one time and event for each row, but its shape is .5, 2."),
        (np.ones(5, dtype=bool), "only True and False, so there are no times"),
        (np.ones(4), "X has 5 rows, but `y` has 4"),
        (np.array([1, 2, np.nan, 3, 4]), "`y` must be finite.*row 2"),
        (-np.arange(5.0), "`y` must not be negative.*row 1"),
        (np.zeros(5, [("a", "?"), ("b", "f8"), ("c", "f8")]), "fields 'event' and 'time'"),
    ],
)
def test_impossible_outcomes(y, message):
    with pytest.raises(rs.InputError, match=message):
        rs.Cox().fit(np.eye(5), y)


# ------------------------------------------------------------------------- messages about X


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.ones(5), "two dimensions.*shape is .5,."),
        (np.array([[1.0], [2], [np.nan], [4], [5]]), "'x0' contains NaN.*row 2"),
        (np.array([[1.0], [2], [np.inf], [4], [5]]), "'x0' contains infinity.*row 2"),
        (np.array([["a"], ["b"], ["c"], ["d"], ["e"]]), "row 0, column 0 has .*'a'"),
        (np.eye(5) * 1j, "Complex data not supported"),
        (pd.DataFrame({"a": [1.0, 2, None, 4, 5]}), "column 'a'.*row 2"),
    ],
)
def test_impossible_covariates(x, message):
    with pytest.raises(rs.InputError, match=message):
        rs.Cox().fit(x, np.arange(1.0, 6.0))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"penalty": 1.0}, "`penalty` must be None, L1, L2 or ElasticNet"),
        ({"penalty": rs.L1(1.0, unpenalized=["x9"])}, "'x9' was not found"),
        ({"ties": "efrom"}, "`ties` must be 'breslow' or 'efron', but it is 'efrom'.\n.*'efron'"),
        ({"ties": ["efron"]}, r"`ties` must be 'breslow' or 'efron', but it is \['efron'\]"),
        ({"tol": 0.0}, "`tol` must be between 0 and 1"),
        ({"tol": None}, "`tol` must be between 0 and 1"),
        ({"tol": "1e-8"}, "`tol` must be between 0 and 1"),
        ({"tol": np.nan}, "`tol` must be between 0 and 1"),
        ({"max_iter": np.nan}, "`max_iter` must be a whole number"),
        ({"max_iter": None}, "`max_iter` must be a whole number"),
        ({"max_iter": 0}, "`max_iter` must be a whole number"),
        ({"max_iter": 2.5}, "`max_iter` must be a whole number"),
        ({"solver": "ccd"}, "`solver` must be 'newton', but it is 'ccd'"),
        ({"device": "tpu"}, "`device` must be 'auto', 'cpu' or 'cuda', but it is 'tpu'"),
        ({"n_threads": 0}, "`n_threads` must be"),
        ({"n_threads": np.nan}, "`n_threads` must be a whole number"),
        ({"n_threads": np.inf}, "`n_threads` must be a whole number"),
        ({"n_threads": "2"}, "`n_threads` must be a whole number"),
        ({"cause": 2}, "has code 2"),
    ],
)
def test_impossible_parameters(data, parameters, message):
    with pytest.raises(rs.InputError, match=message):
        rs.Cox(**parameters).fit(*data)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sample_weight": -np.ones(120)}, "`sample_weight` must not be negative"),
        ({"sample_weight": np.zeros(120)}, "`sample_weight` is zero for every row"),
        ({"sample_weight": np.ones(119)}, "`sample_weight` must have one value for each"),
        ({"strata": np.ones(119)}, "`strata` must have one label for each"),
        ({"offset": np.full(120, np.nan)}, "`offset` must be finite"),
        ({"cluster": [None] * 120}, "`cluster` must not be missing"),
    ],
)
def test_impossible_arguments(data, arguments, message):
    with pytest.raises(rs.InputError, match=message):
        rs.Cox().fit(*data, **arguments)


def test_nothing_works_before_the_fit(data):
    x, y = data
    model = rs.Cox()
    calls = [
        lambda: model.predict(x),
        lambda: model.score(x, y),
        lambda: model.predict_survival_function(x, [1]),
        lambda: model.summary(),
        lambda: model.confidence_interval(),
        lambda: model.residuals(x, y),
        lambda: model.standard_error_,
        lambda: model.tests_,
        lambda: model.save("nowhere"),
    ]
    for call in calls:
        with pytest.raises(NotFittedError):
            call()


# ------------------------------------------------------------------------------- statuses


def test_statuses_are_warnings(data):
    x, y = data
    with pytest.warns(ConvergenceWarning, match="stopped after 1 steps"):
        model = rs.Cox(max_iter=1).fit(x, y)
    assert model.status_ == "max_iter"
    assert model.kkt_ > 1e-8
    assert model.notes_[-1].code == "max_iter"


def test_all_zero_is_an_answer(data):
    x, y = data
    model = rs.Cox(rs.L1(1e6)).fit(x, y)
    assert model.status_ == "converged"
    assert not model.coef_.any()
    assert model.kkt_ == 0
    assert model.log_likelihood_ == model.null_log_likelihood_ == -model.objective_
    assert model.score(x, y) == 0.5


def test_no_covariates(data):
    _, y = data
    for x in (np.empty((120, 0)), sparse.csr_array((120, 0)), pd.DataFrame(index=range(120))):
        model = rs.Cox().fit(x, y)
        assert (model.status_, model.kkt_) == ("converged", 0.0)
        assert model.log_likelihood_ == model.null_log_likelihood_
        assert model.variance_.shape == (0, 0)
        assert model.tests_.lr.df == 0
        assert len(model.summary()) == 0
    survival = model.predict_survival_function(np.empty((1, 0)), np.sort(y["time"]))
    assert_allclose(survival[0], nelson_aalen_survival(y), rtol=1e-12)


def nelson_aalen_survival(y):
    time = np.sort(y["time"])
    hazard = [
        sum(
            (y["time"][y["event"]] == t).sum() / (y["time"] >= t).sum()
            for t in np.unique(y["time"][y["event"]])
            if t <= s
        )
        for s in time
    ]
    return np.exp(-np.array(hazard))


def test_near_ties_are_pointed_out():
    time = np.array([0.3, 0.1 + 0.2, 1.0, 2.0, 3.0, 4.0])
    with pytest.warns(rs.RisksetWarning, match="1 neighbouring times.*time_digits"):
        model = rs.Cox().fit(np.array([[0.0], [1], [0], [1], [1], [0]]), time)
    assert [note.code for note in model.notes_] == ["near_ties"]


# ----------------------------------------------------------------------------- predictions


def test_curves_are_curves(data):
    x, y = data
    strata = x[:, 3] > 0
    model = rs.Cox(ties="efron").fit(x[:, :3], y, strata=strata)
    times = np.linspace(0, 2 * y["time"].max(), 40)
    survival = model.predict_survival_function(x[:, :3], times, strata=strata)
    hazard = model.predict_cumulative_hazard_function(x[:, :3], times, strata=strata)
    assert survival.shape == hazard.shape == (120, 40)
    assert ((survival >= 0) & (survival <= 1)).all()
    assert (np.diff(survival, axis=1) <= 0).all()
    assert (survival[:, 0] == 1).all()
    assert_allclose(survival[:, -1], survival[:, times >= y["time"].max()][:, 0])
    order = np.argsort(times)[::-1]
    shuffled = model.predict_survival_function(x[:, :3], times[order], strata=strata)
    assert_array_equal(shuffled, survival[:, order])
    with pytest.raises(rs.InputError, match="fitted with 2 strata"):
        model.predict_survival_function(x[:, :3], times)
    with pytest.raises(rs.InputError, match="'x' .row 0. was not in the fit"):
        model.predict_survival_function(x[:1, :3], times, strata=["x"])


def test_curves_do_not_depend_on_the_origin_of_a_covariate(data):
    x, y = data
    far = x + np.array([0.0, 0.0, 1.7e9, 0.0])  # as seconds since 1970
    times = np.unique(y["time"])
    near, model = rs.Cox().fit(x, y), rs.Cox().fit(far, y)
    assert_allclose(model.coef_, near.coef_, rtol=1e-5)
    survival = model.predict_survival_function(far, times)
    assert_allclose(survival, near.predict_survival_function(x, times), atol=1e-5)
    assert survival.min() < 0.9
    one = model.predict_survival_function(far[5:6], times)
    assert_allclose(one[0], survival[5], rtol=1e-12)


def test_offsets_of_new_rows(data):
    x, y = data
    shift = x[:, 0] * 0.3
    model = rs.Cox().fit(x[:, 1:], y, offset=shift)
    assert_allclose(
        model.predict(x[:, 1:], offset=shift), model.predict(x[:, 1:]) + shift, rtol=1e-12
    )
    fixed = x @ np.append(0.3, model.coef_)
    assert_allclose(model.predict(x[:, 1:], offset=shift), fixed, rtol=1e-10)
    martingale = model.residuals(x[:, 1:], y, offset=shift)
    assert_allclose(martingale.sum(), 0, atol=1e-9)
    hazard = model.predict_cumulative_hazard_function(x[:, 1:], y["time"], offset=shift)
    assert_allclose(y["event"] - np.diag(hazard), martingale, rtol=1e-9)
    first = model.predict_cumulative_hazard_function(x[:1, 1:], 5.0, offset=shift[:1])
    assert first.shape == (1, 1)


def test_residuals_belong_to_their_rows(data):
    x, y = data
    model = rs.Cox().fit(x, y)
    assert_allclose(model.residuals(x, y, "score").sum(axis=0), 0, atol=1e-7)
    schoenfeld = model.residuals(x, y, "schoenfeld")
    assert_allclose(schoenfeld.values.sum(axis=0), 0, atol=1e-7)
    assert_array_equal(np.sort(schoenfeld.row), np.flatnonzero(y["event"]))
    deviance = model.residuals(x, y, "deviance")
    assert_array_equal(np.sign(deviance), np.sign(model.residuals(x, y)))
    with pytest.raises(rs.InputError, match="`kind` must be .* 'devience'.\n.*'deviance'"):
        model.residuals(x, y, "devience")


def infinite(rng, *, sign=-1):
    """Nobody exposed has an event, or only the exposed; a second covariate is ordinary."""
    x, y = simulated(rng, p=2)
    if sign < 0:
        exposed = (rng.random(120) < 0.3) & ~y["event"]
    else:
        exposed = (rng.random(120) < 0.3) | y["event"]
    return np.column_stack([exposed, x[:, 1]]), y, exposed == (sign > 0)


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("ties", ["breslow", "efron"])
def test_infinite_coefficients_predict_their_limits(rng, sign, ties):
    """Those who can have events are as without the others, who have none for certain."""
    x, y, can = infinite(rng, sign=sign)
    with pytest.warns(ConvergenceWarning, match="'x0'"):
        model = rs.Cox(ties=ties).fit(x, y)
    alone = rs.Cox(ties=ties).fit(x[can, 1:], y[can])
    times = np.unique(y["time"])
    assert model.coef_[0] == sign * np.inf
    assert_allclose(model.coef_[1], alone.coef_[0], rtol=1e-7)
    survival = model.predict_survival_function(x, times)
    assert (survival[~can] == 1).all()
    expected = alone.predict_survival_function(x[can, 1:], times)
    assert_allclose(survival[can], expected, rtol=1e-7)
    for kind in ("martingale", "deviance", "score"):
        residual = model.residuals(x, y, kind)
        assert_allclose(residual[~can], 0, atol=1e-12)
        ours, theirs = residual[can], alone.residuals(x[can, 1:], y[can], kind)
        assert_allclose(ours[:, 1:] if kind == "score" else ours, theirs, rtol=1e-6, atol=1e-7)
    # Unlike the transform "km", the identity does not depend on rows that no longer matter.
    test = model.test_proportionality(x, y, "identity")
    expected = alone.test_proportionality(x[can, 1:], y[can], "identity").statistic[0]
    assert_allclose(test.statistic[1], expected, rtol=1e-6)
    assert np.isnan(test.statistic[0])
    assert model.score(x, y) >= alone.score(x[can, 1:], y[can])


def test_infinite_coefficients_are_told_everywhere(rng):
    x, y, can = infinite(rng)
    with pytest.warns(ConvergenceWarning, match="'x0'"):
        model = rs.Cox().fit(x, y)
    eta = model.predict(x)
    assert (eta[~can] == -np.inf).all()
    assert_allclose(eta[can], model.coef_[1] * x[can, 1], rtol=1e-12)
    assert model.tests_.lr.df == 2
    assert np.isnan(model.tests_.wald.statistic)
    assert_array_equal(np.isnan(model.confidence_interval().lower), [True, False])
    table = model.summary()
    assert table["hazard_ratio"].iloc[0] == 0
    assert np.isnan(table["p"].iloc[0])


def test_infinite_coefficients_that_cancel(rng):
    """x0 + x1 is ordinary, x0 - x1 separates: both are infinite, but not for everybody."""
    n = 100
    both = rng.normal(size=n)
    apart = (rng.random(n) < 0.4).astype(float)
    time = np.ceil(8 * rng.exponential(np.exp(-both)))
    y = rs.Surv(time, (rng.random(n) < 0.7) & (apart == 0))
    x = np.column_stack([both + apart, both - apart])
    with pytest.warns(ConvergenceWarning, match="'x0', 'x1'"):
        model = rs.Cox().fit(x, y)
    assert_array_equal(model.coef_, [-np.inf, np.inf])
    can = apart == 0
    alone = rs.Cox().fit(both[can, None], y[can])
    eta = model.predict(x)
    assert (eta[~can] == -np.inf).all()
    assert_allclose(eta[can], alone.predict(both[can, None]), rtol=1e-6)
    times = np.unique(time)
    survival = model.predict_survival_function(x, times)
    assert (survival[~can] == 1).all()
    expected = alone.predict_survival_function(both[can, None], times)
    assert_allclose(survival[can], expected, rtol=1e-6)
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict_survival_function(x, times), survival)
    assert_array_equal(again.predict(x), eta)


# ------------------------------------------------------------------------------- inference


def test_summary(data):
    x, y = data
    model = rs.Cox().fit(pd.DataFrame(x, columns=list("abcd")), y)
    table = model.summary(level=0.9)
    assert list(table.index) == list("abcd")
    assert_array_equal(table["coef"], model.coef_)
    assert_allclose(table["hazard_ratio"], np.exp(model.coef_))
    interval = model.confidence_interval(level=0.9)
    assert_allclose(table["hazard_ratio_upper"], np.exp(interval.upper))
    assert_allclose(table["hazard_ratio_lower"], np.exp(interval.lower))
    assert_allclose(table["z"], model.coef_ / model.standard_error_)
    assert (table["p"].to_numpy() < 0.05).tolist() == (abs(table["z"].to_numpy()) > 1.96).tolist()
    assert "robust_standard_error" not in table


def test_summary_speaks_the_library_of_the_user(data):
    x, y = data
    assert isinstance(rs.Cox().fit(pl.DataFrame(x), y).summary(), pl.DataFrame)
    assert isinstance(
        rs.Cox().fit(pa.table(dict(zip("abcd", x.T, strict=True))), y).summary(), pa.Table
    )
    assert isinstance(rs.Cox().fit(x, y).summary(), pd.DataFrame)


def test_summary_without_pandas(data, monkeypatch):
    monkeypatch.setattr("riskset.data.output.importlib.util.find_spec", lambda name: None)
    table = rs.Cox().fit(*data).summary()
    assert isinstance(table, pa.Table)
    assert table["covariate"].to_pylist() == ["x0", "x1", "x2", "x3"]


def test_robust_errors(data, rng):
    x, y = data
    cluster = rng.integers(0, 25, 120)
    model = rs.Cox().fit(x, y, cluster=cluster)
    table = model.summary()
    assert_array_equal(table["robust_standard_error"], model.robust_standard_error_)
    assert_allclose(table["z"], model.coef_ / model.robust_standard_error_)
    robust = model.confidence_interval(["x1"], method="robust")
    half = 1.959963984540054 * model.robust_standard_error_[1]
    assert_allclose(robust["x1"], [model.coef_[1] - half, model.coef_[1] + half])
    # By hand: score residuals, summed by cluster, times the inverse information.
    scores = np.zeros((25, 4))
    np.add.at(scores, cluster, model.residuals(x, y, "score"))
    change = scores @ model.variance_
    assert_allclose(model.robust_variance_, change.T @ change, rtol=1e-9)
    alone = rs.Cox().fit(x, y)
    assert not alone.is_robust_
    change = alone.residuals(x, y, "score") @ alone.variance_
    assert_allclose(alone.robust_variance_, change.T @ change, rtol=1e-9)


def test_penalised_fits_have_no_standard_errors(data):
    x, y = data
    model = rs.Cox(rs.L1(1.0, unpenalized=["x0"])).fit(x, y)
    assert np.isnan(model.standard_error_).all()
    assert np.isnan(model.robust_variance_).all()
    assert np.isnan(model.summary()["p"]).all()
    for call in (
        lambda: model.confidence_interval("x0"),
        lambda: model.confidence_interval("x0", method="robust"),
        lambda: model.tests_,
        lambda: model.test_proportionality(x, y),
    ):
        with pytest.raises(rs.InputError, match="not defined for a penalised fit"):
            call()
    assert not hasattr(model, "tests_")
    assert "coef_" in dict(inspect.getmembers(model))
    nothing = rs.Cox(rs.L1(0.0)).fit(x, y)
    assert_allclose(nothing.standard_error_, rs.Cox().fit(x, y).standard_error_)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "profile"}, "'profile' is not in this version"),
        ({"method": "bootstrap"}, "'bootstrap' is not in this version"),
        ({"method": "walt"}, "`method` must be 'wald' or 'robust', but it is 'walt'.\n.*'wald'"),
        ({"parameters": "x7"}, "'x7' was not found"),
        ({"parameters": 7}, "'7' was not found"),
        ({"level": 95}, "`level` must be between 0 and 1"),
    ],
)
def test_impossible_intervals(data, arguments, message):
    model = rs.Cox().fit(*data)
    with pytest.raises(rs.InputError, match=message):
        model.confidence_interval(**arguments)


def test_intervals_as_a_frame(data):
    interval = rs.Cox().fit(*data).confidence_interval(["x2", "x0"])
    assert interval.names == ("x2", "x0")
    table = interval.to_frame("polars")
    assert table.columns == ["covariate", "lower", "upper"]
    assert table["lower"].to_list() == [interval["x2"][0], interval["x0"][0]]


# ---------------------------------------------------------------- pipelines, copies, progress


def test_grid_search_over_penalties(data):
    x, y = data
    grid = {"penalty": [rs.L1(s) for s in (0.5, 5.0, 500.0)]}
    search = GridSearchCV(rs.Cox(), grid, cv=KFold(3, shuffle=True, random_state=0))
    search.fit(x, y)
    assert search.best_params_["penalty"].strength < 500
    assert search.best_estimator_.status_ == "converged"
    scores = search.cv_results_["mean_test_score"]
    assert scores[2] == 0.5
    assert scores.max() > 0.6


def test_arguments_of_the_fit_follow_the_folds(data):
    x, y = data
    strata = x[:, 3] > 0
    search = GridSearchCV(rs.Cox(), {"ties": ["efron"]}, cv=KFold(3))
    search.fit(x[:, :3], y, strata=strata, cluster=np.arange(120))
    best = search.best_estimator_
    assert best.n_strata_ == 2
    assert best.is_robust_
    assert_array_equal(best.coef_, rs.Cox(ties="efron").fit(x[:, :3], y, strata=strata).coef_)


def test_pipeline_with_weights(data, rng):
    x, y = data
    weight = rng.integers(1, 4, y.size)
    pipeline = make_pipeline(StandardScaler(), rs.Cox())
    pipeline.fit(x, y, cox__sample_weight=weight)
    model = rs.Cox().fit(x, y, sample_weight=weight)
    assert_allclose(pipeline[-1].coef_ / x.std(axis=0), model.coef_, rtol=1e-7)
    assert_allclose(pipeline.score(x, y), model.score(x, y))
    assert (cross_val_score(pipeline, x, y, cv=3) > 0.5).all()


def test_pickles_and_clones(data):
    x, y = data
    for model in (rs.Cox(), rs.Cox(rs.L2(1.0, factor={"x0": 0.5}))):
        model.fit(x, y, cluster=np.arange(120) // 2)
        again = pickle.loads(pickle.dumps(model))
        assert_array_equal(again.predict(x), model.predict(x))
        times = [1.0, 5.0]
        assert_array_equal(
            again.predict_survival_function(x, times), model.predict_survival_function(x, times)
        )
        assert_array_equal(again.summary(), model.summary())
        assert clone(model).get_params() == model.get_params()
        assert not hasattr(clone(model), "coef_")
    assert len(pickle.dumps(model)) < x.nbytes + y.nbytes


def test_a_pickle_carries_no_training_data(data):
    x, y = data
    model = pickle.loads(pickle.dumps(rs.Cox().fit(x, y)))
    assert_array_equal(np.isfinite(model.standard_error_), True)
    with pytest.raises(rs.InputError, match="training data"):
        _ = model._fitted.training


def test_fit_changes_nothing_but_the_model(data):
    x, y = data
    before = x.copy(), y.copy()
    penalty = rs.L1(1.0)
    model = rs.Cox(penalty).fit(x, y)
    assert model.penalty is penalty
    assert_array_equal(x, before[0])
    assert_array_equal(y, before[1])
    first = model.coef_.copy()
    model.summary()
    model.score(x, y)
    model.residuals(x, y)
    assert_array_equal(model.coef_, first)
    assert_array_equal(model.fit(x, y).coef_, first)


def test_progress_appears_after_two_seconds_only(monkeypatch, capfd):
    now = iter([0.0, 1.0, 3.0, 4.0])
    monkeypatch.setattr("riskset._progress.time.monotonic", lambda: next(now))
    terminal = Console(stderr=True, force_terminal=True)
    monkeypatch.setattr("riskset._progress.Console", lambda stderr: terminal)
    with ProgressBar("Fitting", True) as bar:
        bar.update(0.2, "early")
        assert bar._bar is None
        bar.update(0.5, "late")
        assert bar._bar is not None
    assert "Fitting" in capfd.readouterr().err
    with ProgressBar("Fitting", False) as bar:
        bar.update(0.5)
        assert bar._bar is None


def test_a_fit_is_silent(data, capfd):
    rs.Cox().fit(*data)
    assert capfd.readouterr() == ("", "")


# ------------------------------------------------------------------------------------- paths


def test_path_is_the_fits_one_by_one(data):
    x, y = data
    kinds = [
        rs.L1(1.0, unpenalized=["x1"]),
        rs.L2(1.0),
        rs.ElasticNet(l1=3.0, l2=1.0, factor={"x2": 2.0}),
    ]
    for kind in kinds:
        result = rs.path(rs.Cox(kind, tol=1e-10), x, y, n_penalties=8, min_ratio=1e-3)
        assert len(result) == 8
        assert set(result.statuses) == {"converged"}
        assert (result.kkt <= 1e-10).all()
        assert_allclose(result.strengths[-1] / result.strengths[0], 1e-3)
        for k in (0, 3, 7):
            cold = rs.Cox(result.penalties[k], tol=1e-10).fit(x, y)
            assert_allclose(result.coefs[k], cold.coef_, rtol=1e-6, atol=1e-8)
            assert_allclose(result.log_likelihoods[k], cold.log_likelihood_, rtol=1e-10)
            assert_allclose(result.objectives[k], cold.objective_, rtol=1e-10)


def test_path_starts_where_the_first_coefficient_enters(data):
    x, y = data
    result = rs.path(rs.Cox(rs.L1(1.0, unpenalized=["x1"])), x, y, n_penalties=3)
    assert list(result.n_nonzero)[0] == 1
    below = rs.Cox(rs.L1(0.99 * result.strengths[0], unpenalized=["x1"])).fit(x, y)
    assert np.count_nonzero(below.coef_) == 2


@pytest.mark.parametrize("l1_ratio", [0.5, 1e-3, 1e-6])
def test_path_of_an_elastic_net_starts_with_zeros(data, l1_ratio):
    x, y = data
    penalty = rs.ElasticNet(l1=l1_ratio, l2=1 - l1_ratio)
    result = rs.path(rs.Cox(penalty), x, y, n_penalties=3, min_ratio=0.9)
    assert result.n_nonzero[0] == 0
    assert result.n_nonzero[1] == 1


def test_path_of_a_ridge_starts_as_an_elastic_net_with_little_l1(data):
    x, y = data
    ridge = rs.path(rs.Cox(rs.L2(1.0)), x, y, n_penalties=1)
    lasso = rs.path(rs.Cox(rs.L1(1.0)), x, y, n_penalties=1)
    assert_allclose(ridge.strengths, 1000 * lasso.strengths, rtol=1e-12)


def test_results_show_themselves_on_one_line(data):
    x, y = data
    result = rs.path(rs.Cox(), x, y, n_penalties=3)
    assert repr(result).startswith("PathResult(3 penalties, strength ")
    assert repr(result).endswith("4 covariates, 0 to 4 not 0; 3 converged)")
    test = rs.Cox().fit(x, y).test_proportionality(x, y)
    assert repr(test).startswith("ProportionalityTest(transform='km', 4 covariates, global chi-sq")
    assert f"on 4 df, p = {test.global_p_value:.4g})" in repr(test)


def test_path_of_given_penalties(data):
    x, y = data
    by_strength = rs.path(rs.Cox(rs.L1(9.0)), x, y, penalties=[10.0, 2.0])
    by_penalty = rs.path(rs.Cox(), x, y, penalties=[rs.L1(10.0), rs.L1(2.0)])
    assert_array_equal(by_strength.coefs, by_penalty.coefs)
    assert_array_equal(by_strength.strengths, [10.0, 2.0])


def test_models_of_a_path(data):
    x, y = data
    table = pd.DataFrame(x, columns=list("abcd"))
    result = rs.path(rs.Cox(rs.L1(1.0)), table, y, n_penalties=5)
    model = result.model(-1)
    assert model.penalty == result.penalties[-1]
    assert_allclose(model.coef_, result.coefs[-1], rtol=1e-6, atol=1e-9)
    cold = rs.Cox(result.penalties[-1]).fit(table, y)
    times = np.unique(y["time"])
    assert_allclose(
        model.predict_survival_function(table, times),
        cold.predict_survival_function(table, times),
        rtol=1e-6,
    )
    frame = result.to_frame()
    assert isinstance(frame, pd.DataFrame)
    assert list(frame["n_nonzero"]) == list(result.n_nonzero)


def test_a_path_says_when_it_did_not_converge(data):
    x, y = data
    with pytest.warns(ConvergenceWarning, match=r"of 4 solutions are not 'converged'"):
        result = rs.path(rs.Cox(rs.L1(1.0), max_iter=1, tol=1e-12), x, y, n_penalties=4)
    assert "max_iter" in result.statuses


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_penalties": 0}, "`n_penalties` must be a whole number"),
        ({"n_penalties": np.nan}, "`n_penalties` must be a whole number"),
        ({"n_penalties": None}, "`n_penalties` must be a whole number"),
        ({"min_ratio": 1.0}, "`min_ratio` must be between 0 and 1"),
        ({"min_ratio": "small"}, "`min_ratio` must be between 0 and 1"),
        ({"penalties": 3.0}, "`penalties` must be a sequence"),
        ({"penalties": []}, "`penalties` is empty"),
    ],
)
def test_impossible_paths(data, arguments, message):
    with pytest.raises(rs.InputError, match=message):
        rs.path(rs.Cox(), *data, **arguments)


def test_no_path_without_information(data):
    _, y = data
    with pytest.raises(rs.InputError, match="no penalised covariate carries information"):
        rs.path(rs.Cox(), np.ones((120, 2)), y)


def test_folds_without_comparable_pairs_have_no_score(data):
    x, y = data
    model = rs.Cox().fit(x, y)
    with pytest.warns(rs.RisksetWarning, match="no pair .* is comparable"):
        assert np.isnan(model.score(x[:3], rs.Surv([1, 2, 3], [0, 0, 0])))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert model.score(x[:3], rs.Surv([1, 2, 3], [1, 0, 0])) in (0.0, 0.5, 1.0)


# ------------------------------------------------------- a frame after a Dataset, wrong options


@pytest.mark.parametrize("model", [rs.Cox(), rs.FineGray()])
def test_a_frame_and_y_after_a_fit_on_a_dataset(model, data):
    x, y = data
    table = pd.DataFrame(x, columns=list("abcd"))
    table["time"], table["event"] = y["time"], y["event"].astype(int)
    table["site"] = np.arange(len(table)) % 3
    model.fit(rs.Dataset.from_frame(table, time="time", event="event", strata="site"))
    frame = table.drop(columns=["time", "event"])
    assert_array_equal(model.residuals(frame, y), model.residuals(table))
    got, want = model.test_proportionality(frame, y), model.test_proportionality(table)
    assert_array_equal(got.statistic, want.statistic)
    assert model.score(frame, y) == model.score(table)


def test_a_frame_with_y_has_no_censoring_groups(data):
    x, y = data
    table = pd.DataFrame(x, columns=list("abcd"))
    table["time"], table["event"] = y["time"], y["event"].astype(int)
    table["site"] = np.arange(len(table)) % 2
    model = rs.FineGray().fit(rs.Dataset.from_frame(table, censoring_group="site"))
    with pytest.raises(rs.InputError, match="groups of 'site'"):
        model.residuals(table.drop(columns=["time", "event"]), y)


def test_score_refuses_what_fit_refuses(data):
    x, y = data
    codes = rs.Surv(y["time"], np.where(y["event"], 1 + np.arange(len(y)) % 3, 0))
    model = rs.Cox().fit(x, y)
    with pytest.raises(rs.InputError, match="cause"):
        model.score(x, codes)
    with pytest.raises(rs.InputError, match="cause"):
        model.fit(x, codes)
    assert 0 <= rs.Cox(cause=2).fit(x, codes).score(x, codes) <= 1


@pytest.mark.parametrize("kind", [rs.Cox, rs.FineGray])
def test_collinear_columns_leave_the_errors_of_the_others(kind, data):
    x, y = data
    both = np.column_stack([np.ones(len(y)), x[:, 0], x[:, 1], x[:, 0] + x[:, 1]])
    alone = kind().fit(x[:, :2], y)
    with pytest.warns(rs.RisksetWarning, match="linear combination"):
        model = kind().fit(both, y)
    for name in ("standard_error_", "robust_standard_error_"):
        got, want = getattr(model, name), getattr(alone, name)
        assert np.isnan(got[[0, 3]]).all()
        assert_allclose(got[1:3], want, rtol=1e-8)
    for name in ("lr", "score", "wald"):
        got, want = getattr(model.tests_, name), getattr(alone.tests_, name)
        assert got.df == want.df == 2
        assert_allclose(got.statistic, want.statistic, rtol=1e-8)
