"""Hard small inputs that other tools get wrong; what must happen stands in `cases/*/README.md`.

The right answers come from `cases/brute_force.py` (sums in 80-bit floats) and were checked against
R. Those of Fine and Gray's model are in `estimators/test_finegray_cases`, profiles in
`estimators/test_profile`, cross-validated scores in `infer/test_crossval`.
"""

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import riskset as rs
from reference import CASES, matrix, read_json, read_table
from storages import each_storage

pytestmark = pytest.mark.portability

TOL = 1e-11


def case(number):
    """Folder of a case, its expected values, and its main table."""
    (folder,) = CASES.glob(f"{number}-*")
    tables = {path.stem: read_table(path) for path in folder.glob("*.csv")}
    return read_json(folder / "expected.json"), tables["input"], tables


def surv(table, time="time", event="event", entry=None):
    return rs.Surv(table[time], table[event], None if entry is None else table[entry])


def fit(x, y, penalty=None, ties="breslow", **arguments):
    return rs.Cox(penalty, ties=ties, tol=TOL).fit(x, y, **arguments)


def check(model, beta, loglik=None, se=None, rtol=1e-8):
    """A converged fit with these coefficients."""
    assert model.status_ == "converged"
    assert model.kkt_ <= TOL
    assert_allclose(model.coef_, beta, rtol=rtol, atol=1e-12)
    if loglik is not None:
        assert_allclose(model.log_likelihood_, loglik, rtol=1e-10, atol=1e-12)
    if se is not None:
        assert_allclose(model.standard_error_, se, rtol=1e-6)


def test_every_case_is_tested_or_named():
    numbers = {p.name[:2] for p in CASES.glob("[0-9][0-9]-*")}
    assert len(numbers) > 10
    here = Path(__file__)
    source = "".join(
        path.read_text("utf-8")
        for path in (here, here.parent / "estimators" / "test_finegray_cases.py")
    )
    assert not {n for n in numbers if f'case("{n}")' not in source}


# ---------------------------------------------------------------------------- infinite estimates


def test_no_events_in_exposed():
    expected, table, _ = case("01")
    x, y = table["x"][:, None], surv(table)
    with pytest.warns(ConvergenceWarning, match="'x0' goes to infinity"):
        model = fit(x, y)
    assert model.status_ == "infinite_estimate"
    assert model.coef_[0] == -np.inf
    assert [(n.code, n.columns) for n in model.notes_] == [("infinite", ("x0",))]
    assert_allclose(model.log_likelihood_, expected["loglik_limit"], rtol=1e-10)
    assert_allclose(model.null_log_likelihood_, expected["loglik_at_zero"], rtol=1e-10)
    assert np.isnan(model.standard_error_[0])
    check(fit(x, y, rs.L2(1.0)), [expected["ridge_beta_l2_1"]])
    check(fit(x, y, rs.L1(0.5)), [expected["lasso_beta_l1_0_5"]])


def test_quasi_separation_leaves_the_other_coefficients():
    expected, table, _ = case("03")
    names = ["x1", "x2", "x3"]
    x, y = matrix(table, names), surv(table)
    with pytest.warns(ConvergenceWarning, match="'x0'"):
        model = fit(x, y)
    assert model.status_ == "infinite_estimate"
    assert model.coef_[0] == -np.inf
    assert_allclose(model.coef_[1:], [expected["x2"], expected["x3"]], rtol=1e-8)
    assert_allclose(
        model.standard_error_, [np.nan, expected["se_x2"], expected["se_x3"]], rtol=1e-6
    )
    assert_allclose(model.log_likelihood_, expected["loglik_limit"], rtol=1e-10)
    kept = table["x1"] == 0
    without = fit(x[kept, 1:], y[kept])
    assert_allclose(model.coef_[1:], without.coef_, rtol=1e-8)
    check(fit(x, y, rs.L2(1.0)), expected["ridge_l2_1"])


def test_rare_exposure_is_not_infinite():
    expected, table, _ = case("14")
    model = fit(table["x"][:, None], surv(table))
    check(model, expected["beta"], expected["loglik"], expected["se"])
    assert_allclose(model.null_log_likelihood_, expected["loglik_at_zero"], rtol=1e-10)
    assert not model.notes_
    # Where plain Newton steps go: the first from 0, and how far the likelihood falls there.
    x, y = table["x"][:, None], surv(table)
    start, far, _ = expected["undamped_newton_trace"]
    assert_allclose(-fit(x[:, :0], y, offset=0 * table["x"]).log_likelihood_, -start[1], rtol=1e-12)
    there = fit(x[:, :0], y, offset=far[0] * table["x"])
    assert_allclose(there.log_likelihood_, far[1], rtol=1e-12)


# ---------------------------------------------------------------------------------- late entry


@each_storage
def test_split_intervals_change_nothing(store):
    expected, table, tables = case("04")
    names = ["x1", "x2"]
    split = fit(store(matrix(table, names)), surv(table, "stop", entry="start"))
    check(split, expected["beta"], expected["loglik"], expected["se"])
    table = tables["input_unsplit"]
    whole = fit(store(matrix(table, names)), surv(table, "stop", entry="start"))
    check(whole, expected["beta_unsplit"], expected["loglik_unsplit"], expected["se"])
    assert split.n_events_ == whole.n_events_ == expected["n_events"]
    wrong = np.array(expected["WRONG_beta_when_start_ignored"])
    assert (np.abs(split.coef_ - wrong) > 1e-3).all()


def test_baseline_respects_late_entry():
    expected, table, _ = case("05")
    model = fit(table["x"][:, None], surv(table, entry="entry"))
    check(model, expected["beta"], expected["loglik"], expected["se"])
    hazard = model.predict_cumulative_hazard_function(np.zeros((1, 1)), expected["H0_times"])
    assert_allclose(hazard[0], expected["H0"], rtol=1e-8)
    assert (np.abs(hazard[0] - expected["WRONG_H0_ignoring_entry"]) > 1e-3).all()


# ------------------------------------------------------------------------------ times and ties


@pytest.mark.parametrize("ties", ["breslow", "efron"])
def test_events_at_time_zero_are_kept(ties):
    expected, table, _ = case("07")
    model = fit(matrix(table, ["x1", "x2"]), surv(table), ties=ties)
    values = expected["keep_time_zero"][ties]
    check(model, values["beta"], values["loglik"], values["se"])
    assert model.n_rows_ == table["time"].size
    assert not model.n_dropped_


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("input_negative", "must not be negative"),
        ("input_nan_time", "must be finite"),
        ("input_event_2", "must be 0 .censored. or 1 .event."),
    ],
)
def test_impossible_times_and_events_are_refused(file, message):
    _, _, tables = case("07")
    table = tables[file]
    y = np.empty(table["time"].size, dtype=[("event", int), ("time", float)])
    y["event"], y["time"] = table["event"], table["time"]
    with pytest.raises(rs.InputError, match=message):
        rs.Cox().fit(matrix(table, ["x1", "x2"]), y)


@each_storage
@pytest.mark.parametrize("ties", ["breslow", "efron", "exact"])
def test_heavy_ties(store, ties, rng):
    expected, table, _ = case("09")
    expected["exact"] = expected["exact_conditional"]
    x, y = matrix(table, ["x1", "x2"]), surv(table)
    model = fit(store(x), y, ties=ties)
    check(model, expected[ties]["beta"], expected[ties]["loglik"], expected[ties]["se"])
    for _ in range(5):
        order = rng.permutation(y.size)
        again = fit(store(x[order]), y[order], ties=ties)
        assert_allclose(again.coef_, model.coef_, rtol=1e-13)
        assert_allclose(again.log_likelihood_, model.log_likelihood_, rtol=1e-14)


# --------------------------------------------------------------------------- weights, strata


@each_storage
@pytest.mark.parametrize("ties", ["breslow", "efron"])
def test_weights_against_repeated_rows(store, ties):
    expected, table, _ = case("10")
    expected = expected[ties]
    x, y, weight = table["x"][:, None], surv(table), table["weight"]
    weighted = fit(store(x), y, ties=ties, sample_weight=weight)
    check(weighted, expected["weighted_beta"], expected["weighted_loglik"], expected["model_se"])
    robust = next(v for k, v in expected.items() if k.startswith("robust_se"))
    assert_allclose(weighted.robust_standard_error_[0], robust, rtol=1e-6)
    often = np.repeat(np.arange(y.size), weight.astype(int))
    repeated = fit(store(x[often]), y[often], ties=ties)
    check(repeated, expected["replicated_beta"], expected["replicated_loglik"])
    same = np.allclose(weighted.coef_, repeated.coef_, rtol=1e-10)
    assert same == (ties == "breslow")


def test_whole_weights_are_counts_and_others_need_the_robust_variance():
    _, table, _ = case("10")
    x, y, weight = table["x"][:, None], surv(table), table["weight"]
    assert not fit(x, y, sample_weight=weight).is_robust_
    assert fit(x, y, sample_weight=weight / 2).is_robust_


def test_matched_pairs():
    expected, table, _ = case("18")
    x, y = table["x"][:, None], surv(table)
    model = fit(x, y, strata=table["stratum"])
    check(model, expected["beta"], expected["loglik"], expected["se"])
    assert_allclose(model.coef_[0], np.log(7 / 3), rtol=1e-10)
    assert model.n_strata_ == expected["n_strata"]
    assert model.n_rows_ == y.size
    (note,) = model.notes_
    assert note.code == "strata_without_events"
    without = sum(not y["event"][table["stratum"] == s].any() for s in set(table["stratum"]))
    assert note.message.startswith(f"{without} of 19 strata")
    assert_allclose(model.log_likelihood_, expected["check_loglik"], rtol=1e-10)
    # A pair says something if both are at risk when one fails, and they differ.
    informative = []
    for s in sorted(set(table["stratum"])):
        own = table["stratum"] == s
        failed = own & (table["event"] == 1)
        if failed.any():
            at_risk = own & (table["time"] >= table["time"][failed].min())
            informative += [own] if np.ptp(table["x"][at_risk]) > 0 else []
    assert len(informative) == expected["n_informative_strata_for_beta"]
    kept = np.any(informative, axis=0)
    alone = fit(x[kept], y[kept], strata=table["stratum"][kept])
    check(alone, expected["beta"], se=expected["se"])


# --------------------------------------------------------------------------------- columns


@each_storage
def test_columns_on_very_different_scales(store):
    expected, table, _ = case("13")
    x, y = matrix(table, ["x1", "x2", "x3"]), surv(table)
    model = fit(store(x), y)
    assert model.status_ == "converged"
    assert_allclose(model.coef_, expected["beta"], rtol=1e-7)
    assert_allclose(model.standard_error_, expected["se"], rtol=1e-6)
    assert_allclose(model.log_likelihood_, expected["loglik"], rtol=1e-10)
    scale = np.array(expected["beta"]) / expected["beta_rescaled"]
    rescaled = fit(store(x * scale), y)
    assert_allclose(rescaled.coef_, expected["beta_rescaled"], rtol=1e-7)
    assert_allclose(rescaled.log_likelihood_, expected["loglik"], rtol=1e-10)


def test_duplicate_entries_of_a_long_table():
    expected, _, _ = case("15")
    (folder,) = CASES.glob("15-*")
    files = {"path": folder / "outcomes.csv", "covariates": folder / "input.csv"}
    with pytest.raises(rs.InputError, match=r"104.*2002|2002.*104"):
        rs.read_dataset(**files, id="rowId")
    summed = fit_dataset(rs.read_dataset(**files, id="rowId", duplicates="sum"))
    values = expected["silent_alternatives"]["sum"]
    check(summed, values["beta"], values["loglik"])
    assert summed.n_dropped_ == {"repeated_entries": 1}


def fit_dataset(data):
    return rs.Cox(tol=TOL).fit(data)


def breslow_information(y, x, coef):
    """Covariances of the covariates over the risk set of each event, summed."""
    risk = np.exp(x @ coef)
    total = np.zeros((x.shape[1], x.shape[1]))
    for t in y["time"][y["event"] > 0]:
        at_risk = y["time"] >= t
        total += np.cov(x[at_risk].T, aweights=risk[at_risk], ddof=0)
    return total


def test_constant_and_collinear_columns():
    expected, table, _ = case("17")
    names = ["const", "x1", "x2", "x3"]
    x, y = rs.Design.from_columns({name: table[name] for name in names}), surv(table)
    with pytest.warns(rs.RisksetWarning, match="'x3' is a linear combination of 'x1', 'x2'"):
        model = fit(x, y)
    aliased = expected["r_style_aliased"]
    check(model, [0.0, aliased["x1"], aliased["x2"], 0.0], expected["loglik"])
    notes = {note.code: note.columns for note in model.notes_}
    assert notes == {"constant": ("const",), "collinear": ("x1", "x2", "x3")}
    # The others have the errors of a fit without const and x3, here from the definition.
    two = breslow_information(y, matrix(table, ["x1", "x2"]), [aliased["x1"], aliased["x2"]])
    errors = np.sqrt(np.linalg.inv(two).diagonal())
    assert_allclose(model.standard_error_, [np.nan, *errors, np.nan], rtol=1e-8)
    assert {test.df for test in (model.tests_.lr, model.tests_.score, model.tests_.wald)} == {2}
    ridge = fit(x, y, rs.L2(2.0))
    check(ridge, expected["ridge_l2_2"])
    assert ridge.coef_[0] == 0.0
    assert_allclose(-ridge.objective_, expected["ridge_objective"], rtol=1e-10)


@each_storage
def test_dtypes_layouts_and_row_order(store):
    expected, table, _ = case("29")
    x, y = matrix(table, ["x_int8", "flag"]), surv(table)
    model = fit(store(x), y)
    check(model, expected["beta"], expected["loglik"], expected["se"])
    assert_allclose(model.predict(store(x)), expected["linear_predictor_in_input_order"], rtol=1e-9)
    small = [x.astype(dtype) for dtype in (np.int16, np.int64, np.float32)]
    layouts = [np.asfortranarray(x), sparse.csr_array(x), sparse.csc_matrix(x), sparse.coo_array(x)]
    frame = rs.Design.from_columns(
        {"a": table["x_int8"].astype(np.int8), "b": table["flag"].astype(bool)}
    )
    for other in (*small, *layouts, frame):
        again = fit(other, y)
        assert_allclose(again.coef_, model.coef_, rtol=1e-10)
    assert set(map(type, table["site"])) == {str}
    stratified = fit(store(x), y, strata=table["site"])
    check(stratified, expected["beta_stratified_by_site"], expected["loglik_stratified"])


# -------------------------------------------------------------------------------- penalties


def test_scales_of_the_lasso():
    expected, table, _ = case("22")
    x, y = matrix(table, [f"x{j}" for j in range(1, 6)]), surv(table)
    n = expected["n"]
    for row in expected["lasso_path"]:
        same = [
            rs.L1(row["lambda_total"]),
            rs.L1.from_variance(row["laplace_prior_variance"]),
            rs.ElasticNet.from_glmnet(row["lambda_over_n"], 1.0, n),
            rs.ElasticNet(l1=row["lambda_total"], l2=0.0),
        ]
        for penalty in same:
            model = fit(x, y, penalty)
            check(model, row["beta"], row["loglik"])
            assert_array_equal(model.coef_ == 0, np.array(row["beta"]) == 0)
    for penalty in (rs.L2(2.0), rs.L2.from_variance(0.5)):
        model = fit(x, y, penalty)
        check(model, expected["ridge_l2_2"])
        # The file's word for the maximum of loglik - (2/2) sum(beta^2).
        assert_allclose(-model.objective_, expected["ridge_loglik"], rtol=1e-10)


def test_first_strength_of_a_path():
    expected, table, _ = case("22")
    x, y = matrix(table, [f"x{j}" for j in range(1, 6)]), surv(table)
    result = rs.path(rs.Cox(rs.L1(1.0), tol=TOL), x, y, n_penalties=20)
    assert_allclose(result.strengths[0], expected["lambda_max_total"], rtol=1e-10)
    assert result.n_nonzero[0] == 0
    assert result.n_nonzero[1] > 0


def test_training_sets_of_folds():
    expected, table, _ = case("20")
    x, y = matrix(table, ["x1", "x2"]), surv(table)
    for row in expected["results"]:
        check(fit(x, y, rs.L2(row["l2"])), row["beta_full"])
        for k, beta in enumerate(row["beta_minus_k"], start=1):
            weight = (table["fold"] != k).astype(float)
            check(fit(x, y, rs.L2(row["l2"]), sample_weight=weight), beta)


# ----------------------------------------------------------------- likelihood far from its peak


def test_profile_far_from_the_peak():
    expected, table, _ = case("19")
    x, z, y = table["x"], table["z"][:, None], surv(table)
    model = fit(matrix(table, ["x", "z"]), y)
    check(model, expected["beta"], expected["loglik"], expected["se"])
    assert_allclose(model.confidence_interval("x0")["x0"], expected["wald_95"], rtol=1e-6)
    for b, without, profile in zip(
        expected["grid"],
        expected["loglik_with_z_fixed_at_0"],
        expected["profile_loglik_x"],
        strict=True,
    ):
        fixed = fit(z[:, :0], y, offset=b * x)
        assert_allclose(fixed.log_likelihood_, without, rtol=1e-10)
        free = fit(z, y, offset=b * x)
        assert free.status_ == "converged"
        assert_allclose(free.log_likelihood_, profile, rtol=1e-10)
        assert_allclose(free.null_log_likelihood_, without, rtol=1e-10)


# ---------------------------------------------------------------------------- too little data


def test_no_event_at_all():
    _, table, _ = case("28")
    with pytest.raises(rs.InputError, match="has no events"):
        rs.Cox().fit(table["x"][:, None], surv(table))


def test_one_event_in_a_risk_set_of_one():
    expected, _, tables = case("28")
    table = tables["input_one_event_last"]
    with pytest.warns(ConvergenceWarning, match="no coefficient can be estimated"):
        model = fit(table["x"][:, None], surv(table))
    assert model.status_ == "not_estimable"
    assert model.coef_[0] == 0.0
    assert model.log_likelihood_ == expected["one_event_last"]["loglik"]
    assert np.isnan(model.standard_error_[0])
    summary = model.summary()
    assert np.isnan(summary["z"].iloc[0])


def test_one_ordinary_event():
    expected, _, tables = case("28")
    table, expected = tables["input_one_event"], expected["one_event"]
    model = fit(table["x"][:, None], surv(table))
    check(model, expected["beta"], expected["loglik"], expected["se"])


def test_without_competing_events_the_cox_answer():
    expected, table, _ = case("24")
    x, y = matrix(table, ["x1", "x2"]), surv(table, event="status")
    check(fit(x, y), expected["beta_cox"], expected["loglik"])
    with pytest.raises(rs.InputError, match="has code 7"):
        rs.Cox(cause=7).fit(x, y)
