"""Coefficients that are held at a value, against R's offset() and against offsets."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import riskset as rs
from reference import GOLDEN, matrix, read_json, read_table
from storages import Store, each_storage

NAMES = ["age", "sex", "ph.ecog", "wt.loss"]
TABLE = read_table(GOLDEN / "lung.csv")
X = matrix(TABLE, NAMES)
FRAME = pd.DataFrame(X, columns=NAMES)
Y = rs.Surv(TABLE["time"], TABLE["event"].astype(int))
FIXED = {"ph.ecog": -0.4, "age": 0.03}
PART = X[:, [0, 2]] @ [0.03, -0.4]
NEW = pd.DataFrame([[50.0, 1.0, 0.0, 0.0], [70.0, 2.0, 2.0, 10.0]], columns=NAMES)
TIMES = [5, 100, 365, 700]
FREE, HELD = [1, 3], [0, 2]
R = read_json(GOLDEN / "fixed.json")
TIES = pytest.mark.parametrize("ties", ["breslow", "efron"])


def fit(ties: str = "efron") -> rs.Cox:
    return rs.Cox(ties=ties, fixed=FIXED, tol=1e-12).fit(FRAME, Y)


@TIES
def test_a_fit_is_that_of_an_offset_in_r(ties: str) -> None:
    model, golden = fit(ties), R[ties]
    assert model.status_ == "converged"
    assert not [note for note in model.notes_ if note.code == "constant"]
    assert_array_equal(model.coef_[HELD], [0.03, -0.4])
    assert_allclose(model.coef_[FREE], golden["coef"], rtol=1e-9)
    assert_allclose(model.variance_[np.ix_(FREE, FREE)], golden["variance"], rtol=1e-8)
    assert_allclose(model.robust_variance_[np.ix_(FREE, FREE)], golden["robust"], rtol=1e-8)
    assert np.isnan(model.standard_error_[HELD]).all()
    null, top = golden["loglik"]
    assert_allclose([model.null_log_likelihood_, model.log_likelihood_], [null, top], rtol=1e-12)
    assert_allclose(model.aic_, golden["aic"], rtol=1e-12)
    assert model.tests_.lr.df == 2
    assert_allclose(model.tests_.lr.statistic, 2 * (top - null), rtol=1e-10)
    assert_allclose(model.tests_.score.statistic, golden["score"], rtol=1e-9)
    assert_allclose(model.tests_.wald.statistic, golden["wald"], rtol=1e-8)


@TIES
def test_predictions_and_residuals_are_those_of_r(ties: str) -> None:
    model, golden = fit(ties), R[ties]
    found = model.predict_interval(NEW, TIMES)
    assert_allclose(found.estimate, golden["survival"], rtol=1e-9)
    assert_allclose(found.standard_error, golden["std_err"], rtol=1e-8)
    assert_allclose(model.predict_survival_function(NEW, TIMES), golden["survival"], rtol=1e-9)
    assert_allclose(model.predict(NEW), NEW.to_numpy() @ model.coef_, rtol=1e-12)
    martingale = model.residuals(FRAME, Y)[:12]
    assert_allclose(martingale, golden["martingale"], rtol=1e-8)
    dfbeta = model.residuals(FRAME, Y, "dfbeta")
    assert_allclose(dfbeta[:6, FREE], golden["dfbeta"], rtol=1e-7, atol=1e-12)
    test = model.test_proportionality(FRAME, Y)
    assert_allclose(test.statistic[FREE], golden["zph"][:2], rtol=1e-8)
    assert_allclose(test.global_statistic, golden["zph"][2], rtol=1e-8)


@TIES
def test_a_model_with_all_coefficients_fixed_has_a_baseline(ties: str) -> None:
    fixed = dict(zip(NAMES, [0.03, 0.0, -0.4, 0.0], strict=True))
    model = rs.Cox(ties=ties, fixed=fixed).fit(FRAME, Y)
    assert (model.status_, model.kkt_, model.notes_) == ("converged", 0.0, [])
    assert_allclose(model.log_likelihood_, R[ties]["null_loglik"], rtol=1e-12)
    assert_allclose(model.residuals(FRAME, Y)[:12], R[ties]["null_martingale"], rtol=1e-9)
    assert_allclose(model.summary()["coef"], list(fixed.values()))


@each_storage
def test_a_fixed_coefficient_is_an_offset(store: Store) -> None:
    weight, strata = np.resize([1.0, 2.5, 0.5], Y.size), X[:, 1]
    fixed = {"x0": 0.03, "x2": -0.4}
    for options in ({}, {"penalty": rs.L1(4.0, factor={"x3": 0.5})}, {"penalty": rs.L2(3.0)}):
        given = {"sample_weight": weight, "strata": strata, "cluster": np.arange(Y.size) // 3}
        model = rs.Cox(fixed=fixed, tol=1e-11, **options).fit(store(X), Y, **given)
        penalty = copy.copy(options.get("penalty"))
        free = rs.Design.from_dense(X[:, FREE], ["x1", "x3"])
        plain = rs.Cox(penalty, tol=1e-11).fit(free, Y, offset=PART, **given)
        assert_allclose(model.coef_[FREE], plain.coef_, rtol=1e-7, atol=1e-12)
        assert_allclose(model.objective_, plain.objective_, rtol=1e-12)
        few = rs.Design.from_dense(X[:4, FREE], ["x1", "x3"])
        survival = plain.predict_survival_function(few, TIMES, strata=strata[:4], offset=PART[:4])
        found = model.predict_survival_function(store(X[:4]), TIMES, strata=strata[:4])
        assert_allclose(found, survival, rtol=1e-8)
        if not options:
            assert_allclose(
                model.robust_standard_error_[FREE], plain.robust_standard_error_, rtol=1e-7
            )


def test_paths_and_cross_validation_hold_it() -> None:
    fixed, free = {"x0": 0.03, "x2": -0.4}, X[:, FREE]
    found = rs.path(rs.Cox(rs.L1(), fixed=fixed), X, Y, n_penalties=6)
    plain = rs.path(rs.Cox(rs.L1()), free, Y, n_penalties=6, offset=PART)
    assert_allclose(found.strengths, plain.strengths, rtol=1e-9)
    assert_allclose(found.coefs[:, FREE], plain.coefs, atol=1e-8)
    assert_array_equal(found.coefs[:, HELD], np.tile([0.03, -0.4], (6, 1)))
    model = found.model(3)
    assert_array_equal(model.coef_[HELD], [0.03, -0.4])
    assert_allclose(model.coef_[FREE], plain.coefs[3], atol=1e-8)
    options = {"folds": 4, "repeats": 2, "penalties": [0.5, 4.0, 40.0]}
    tuned = rs.CoxCV(fixed=fixed, **options).fit(X, Y)
    other = rs.CoxCV(**options).fit(free, Y, offset=PART)
    assert_allclose(tuned.cross_validation_.mean, other.cross_validation_.mean, rtol=1e-7)
    assert tuned.best_penalty_.l1 == other.best_penalty_.l1
    assert_array_equal(tuned.coef_[HELD], [0.03, -0.4])


def test_the_lasso_with_an_offset_is_that_of_glmnet() -> None:
    names = ["sex", "wt.loss", "age", "ph.ecog"]
    golden = R["lasso"]
    strength = rs.ElasticNet.from_glmnet(golden["lambda"], 1.0, Y.size)
    order = np.argsort(np.argsort(Y["time"], kind="stable"))
    untied = rs.Surv(order + 1.0, Y["event"])
    model = rs.Cox(strength, fixed={"ph.ecog": -0.4}, tol=1e-10).fit(FRAME[names], untied)
    assert_allclose(model.coef_[:3], golden["coef"], rtol=1e-6, atol=1e-9)


def test_fine_and_gray_hold_it_as_r() -> None:
    table = read_table(GOLDEN / "mgus2.csv")
    names = ["age", "mspike", "hgb"]
    x, y = matrix(table, names), rs.Surv(table["time"], table["event"].astype(int))
    model = rs.FineGray(
        cause=1, censoring_ties="finegray", fixed={"x0": 0.02}, tol=1e-12,
        censoring_group=None,
    ).fit(x, y)  # fmt: skip
    assert_allclose(model.coef_[1:], R["finegray"]["coef"], rtol=1e-8)
    both = [model.null_log_likelihood_, model.log_likelihood_]
    assert_allclose(both, R["finegray"]["loglik"], rtol=1e-11)


def test_groups_of_censoring_may_be_named_by_a_fixed_covariate() -> None:
    y = rs.Surv(Y["time"], np.where(Y["event"] == 1, 1 + (np.arange(Y.size) % 2), 0))
    model = rs.FineGray(cause=1, fixed={"sex": -0.3}, censoring_group="sex").fit(FRAME, y)
    plain = rs.FineGray(cause=1, censoring_group=X[:, 1]).fit(
        X[:, [0, 2, 3]], y, offset=-0.3 * X[:, 1]
    )
    assert_allclose(model.coef_[[0, 2, 3]], plain.coef_, rtol=1e-6)


def test_infinite_estimates_are_found_beside_it() -> None:
    x = np.column_stack([[0.0, 0.0, 1.0, 1.0], [1.0, 2.0, 3.0, 5.0]])
    y = rs.Surv([3, 4, 1, 2], [1, 1, 1, 1])
    with pytest.warns(rs.ConvergenceWarning, match="infinite"):
        model = rs.Cox(fixed={"x1": 0.3}).fit(x, y)
    assert_array_equal(model.coef_, [np.inf, 0.3])
    with pytest.warns(rs.ConvergenceWarning):
        plain = rs.Cox().fit(x[:, :1], y, offset=0.3 * x[:, 1])
    assert_allclose(model.log_likelihood_, plain.log_likelihood_, rtol=1e-12)
    found = model.predict_survival_function(x, [1, 2, 3])
    expected = plain.predict_survival_function(x[:, :1], [1, 2, 3], offset=0.3 * x[:, 1])
    assert_allclose(found, expected, rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize("options", [{"firth": True}, {"ties": "exact"}])
def test_other_likelihoods_hold_it(options: dict[str, object]) -> None:
    weeks = rs.Surv(np.ceil(Y["time"] / 90), Y["event"])
    model = rs.Cox(fixed=FIXED, tol=1e-10, **options).fit(FRAME, weeks)
    plain = rs.Cox(tol=1e-10, **options).fit(X[:, FREE], weeks, offset=PART)
    assert_allclose(model.coef_[FREE], plain.coef_, rtol=1e-6)
    assert_allclose(model.objective_, plain.objective_, rtol=1e-10)


def test_inference_is_about_the_others() -> None:
    model = fit()
    plain = rs.Cox(ties="efron", tol=1e-12).fit(FRAME[["sex", "wt.loss"]], Y, offset=PART)
    for method in ("wald", "robust", "profile", "bootstrap"):
        found = model.confidence_interval(method=method)
        expected = plain.confidence_interval(method=method)
        assert found.names == ("sex", "wt.loss")
        assert_allclose(found.lower, expected.lower, rtol=1e-6)
        assert_allclose(found.upper, expected.upper, rtol=1e-6)
    with pytest.raises(rs.InputError, match="'age' is fixed at 0.03"):
        model.confidence_interval("age")
    with pytest.raises(rs.InputError, match="'age' is fixed at 0.03"):
        rs.profile(model, FRAME, Y, "age")
    summary = model.summary()
    assert_array_equal(summary["fixed"], [True, False, True, False])
    assert_array_equal(summary["coef"].iloc[HELD], [0.03, -0.4])
    assert summary[["hazard_ratio_lower", "hazard_ratio_upper", "p"]].iloc[HELD].isna().all().all()
    assert "fixed" not in rs.Cox().fit(FRAME, Y).summary().columns


def test_a_penalty_of_fixed_coefficients_alone_is_none() -> None:
    model = rs.Cox(rs.L1(5.0, unpenalized=["sex", "wt.loss"]), fixed=FIXED, tol=1e-12)
    model.fit(FRAME, Y)
    plain = rs.Cox(fixed=FIXED, tol=1e-12).fit(FRAME, Y)
    assert_allclose(model.coef_, plain.coef_, rtol=1e-10)
    assert_allclose(model.objective_, -plain.log_likelihood_, rtol=1e-12)
    assert_allclose(model.standard_error_, plain.standard_error_, rtol=1e-8)


def test_the_likelihood_at_coefficients_holds_it() -> None:
    model = fit()
    free = {"sex": float(model.coef_[1]), "wt.loss": float(model.coef_[3])}
    for coef in (free, free | FIXED, model.coef_):
        assert_allclose(model.log_likelihood(coef, FRAME, Y), model.log_likelihood_, rtol=1e-12)
    with pytest.raises(rs.InputError, match="fixed at 0.03"):
        model.log_likelihood(free | {"age": 1.0}, FRAME, Y)


def test_it_is_saved_and_copied(tmp_path) -> None:  # type: ignore[no-untyped-def]
    model = fit()
    model.save(tmp_path / "fit.riskset", interval_times=TIMES)
    for again in (rs.load(tmp_path / "fit.riskset"), pickle.loads(pickle.dumps(model))):
        assert again.fixed == FIXED
        assert_array_equal(again.coef_, model.coef_)
        assert_array_equal(
            again.predict_survival_function(NEW, TIMES), model.predict_survival_function(NEW, TIMES)
        )
        assert_array_equal(again.summary()["fixed"], model.summary()["fixed"])
    kept = rs.load(tmp_path / "fit.riskset").predict_interval(NEW, TIMES)
    assert_allclose(kept.standard_error, R["efron"]["std_err"], rtol=1e-8)


@pytest.mark.parametrize(
    ("fixed", "words"),
    [
        ({"height": 1.0}, "height"),
        ({"age": "much"}, "finite number"),
        ({"age": np.inf}, "finite number"),
        ([0.05], "mapping"),
        ({0: 0.05}, "names of covariates"),
    ],
)
def test_what_cannot_be_held_is_refused(fixed: object, words: str) -> None:
    with pytest.raises(rs.InputError, match=words):
        rs.Cox(fixed=fixed).fit(FRAME, Y)  # type: ignore[arg-type]
