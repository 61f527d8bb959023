"""scikit-learn's own checks, pipelines, searches, copies; progress."""

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from rich.console import Console
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import riskset as rs
from riskset._progress import ProgressBar

# ------------------------------------------------------------------------ scikit-learn's checks

# Every check that does not pass, and why. scikit-learn itself skips check_array_api_input unless
# SCIPY_ARRAY_API is set.
EXCUSED = {
    "check_estimators_empty_data_messages": "a model without covariates is legal: its answer is "
    "the null log likelihood and the baseline hazard",
}
OF_EFRON = "by Efron's method a weight of 2 is not the row twice: repeated events are tied"
EXCUSED_FOR_EFRON = EXCUSED | {
    "check_sample_weight_equivalence_on_dense_data": OF_EFRON,
    "check_sample_weight_equivalence_on_sparse_data": OF_EFRON,
}
OTHER_WORDS = "it is refused, in words other than those that scikit-learn looks for"
EXCUSED_FOR_CAUSES = EXCUSED | {
    "check_all_zero_sample_weights_error": OTHER_WORDS,
    "check_dtype_object": OTHER_WORDS,
    "check_requires_y_none": OTHER_WORDS,
}


class EveryCause(rs.CauseSpecificCox):
    """With what the checks take for granted: times without events, predictions without a cause."""

    def fit(self, X, y=None, sample_weight=None):
        times = np.asarray(y)
        if times.ndim == 1 and times.dtype.kind in "iuf":
            y = rs.Surv(times, np.ones(times.size))
        return super().fit(X, y, sample_weight)

    def predict(self, X):
        return super().predict(X, 1)


def excused(estimator):
    if isinstance(estimator, EveryCause):
        return EXCUSED_FOR_CAUSES
    return EXCUSED_FOR_EFRON if getattr(estimator, "ties", "breslow") == "efron" else EXCUSED


# Their data are random and small: some estimates are infinite, and the warning is right.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::riskset.RisksetWarning")
@parametrize_with_checks(
    [
        rs.Cox(),
        rs.Cox(rs.L1(1.0)),
        rs.Cox(rs.L2(0.1), ties="efron"),
        rs.FineGray(),
        rs.FineGray(rs.ElasticNet(l1=0.5, l2=0.5), censoring_ties="finegray", tol=1e-10),
        EveryCause(rs.L2(1.0)),
    ],
    expected_failed_checks=excused,
)
def test_sklearn(estimator, check):
    check(estimator)


def test_the_excused_check_fails_for_its_reason_only():
    x, y = np.empty((12, 0)), np.arange(1.0, 13.0)
    model = rs.Cox().fit(x, y)
    assert model.coef_.shape == (0,)
    with pytest.raises(rs.InputError, match="has no rows"):
        rs.Cox().fit(np.empty((0, 3)), [])


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


@pytest.mark.parametrize("kind", [rs.Cox, rs.FineGray])
@pytest.mark.parametrize("form", ["array", "sparse", "pandas"])
def test_frames_through_a_column_transformer(kind, form, rng):
    """Whatever a transformer hands on, it is the fit on the columns made by hand."""
    table = pd.DataFrame({"age": rng.normal(60, 9, 150), "site": rng.choice(list("abc"), 150)})
    y = rs.Surv(np.ceil(9 * rng.exponential(size=150)), rng.choice(2 + (kind is rs.FineGray), 150))
    encoder = OneHotEncoder(drop="first", sparse_output=form == "sparse")
    columns = ColumnTransformer(
        [("age", StandardScaler(), ["age"]), ("site", encoder, ["site"])],
        sparse_threshold=1.0 if form == "sparse" else 0.0,
    )
    if form == "pandas":
        columns.set_output(transform="pandas")
    pipeline = make_pipeline(columns, kind(rs.L2(1.0), tol=1e-10))
    by_hand = np.column_stack(
        [(table["age"] - table["age"].mean()) / table["age"].std(ddof=0)]
        + [table["site"] == level for level in "bc"]
    ).astype(float)
    wanted = kind(rs.L2(1.0), tol=1e-10).fit(by_hand, y)
    pipeline.fit(table, y)
    assert_allclose(pipeline[-1].coef_, wanted.coef_, rtol=1e-6, atol=1e-9)
    if form == "pandas":
        assert pipeline[-1].covariates_ == ("age__age", "site__site_b", "site__site_c")
    assert_allclose(pipeline.score(table, y), wanted.score(by_hand, y))
    grid = {f"{kind.__name__.lower()}__penalty": [rs.L2(0.1), rs.L2(10.0)]}
    search = GridSearchCV(pipeline, grid, cv=KFold(3)).fit(table, y)
    for k, penalty in enumerate(grid.popitem()[1]):
        scores = [
            kind(penalty).fit(columns.fit_transform(table.iloc[a]), y[a])
            .score(columns.transform(table.iloc[b]), y[b])
            for a, b in KFold(3).split(table)
        ]  # fmt: skip
        assert_allclose(search.cv_results_["mean_test_score"][k], np.mean(scores))
    assert cross_val_score(pipeline, table, y, cv=3).shape == (3,)


def test_a_search_over_the_strength_of_a_penalty(data):
    x, y = data
    strengths = [0.1, 1.0, 10.0]
    nested = GridSearchCV(rs.Cox(rs.L1(5.0)), {"penalty__strength": strengths}, cv=3).fit(x, y)
    whole = GridSearchCV(rs.Cox(), {"penalty": [rs.L1(s) for s in strengths]}, cv=3).fit(x, y)
    for key in ("mean_test_score", "std_test_score"):
        assert_array_equal(nested.cv_results_[key], whole.cv_results_[key])
    assert nested.best_params_["penalty__strength"] == whole.best_params_["penalty"].strength
    pipeline = make_pipeline(StandardScaler(), rs.FineGray(rs.ElasticNet(l1=1.0, l2=2.0)))
    grid = {"finegray__penalty__l1": [0.5, 2.0], "finegray__penalty__unpenalized": [(), (0,)]}
    best = GridSearchCV(pipeline, grid, cv=3).fit(x, y).best_estimator_[-1].penalty
    assert (best.l2, best.l1 in (0.5, 2.0)) == (2.0, True)


def test_a_penalty_that_models_share_is_not_changed_by_one_of_them():
    shared = rs.L1(1.0, unpenalized=["x"], factor={"y": 2.0})
    for kind in (rs.Cox, rs.FineGray, rs.CoxCV, rs.CauseSpecificCox):
        one, other = kind(shared), kind(shared)
        assert one.get_params()["penalty__strength"] == 1.0
        assert "penalty__strength" not in one.get_params(deep=False)
        one.set_params(penalty__strength=3.0, max_iter=7)
        assert (one.penalty.strength, one.max_iter) == (3.0, 7)
        assert other.penalty is shared
        assert one.penalty == rs.L1(3.0, unpenalized=["x"], factor={"y": 2.0})
        one.set_params(penalty=shared, penalty__strength=4.0)
        assert (one.penalty.strength, shared.strength) == (4.0, 1.0)


def test_parameters_of_a_penalty():
    net = rs.ElasticNet.from_glmnet(0.1, 0.5, 20.0, factor=[1.0, 3.0])
    for penalty in (rs.L1(2.0, factor={"x": 1}), rs.L2(np.float64(3)), net):
        copied = clone(penalty)
        assert copied == penalty
        assert copied is not penalty
        assert type(penalty)(**penalty.get_params()) == penalty
    assert copied.set_params(l1=5) is copied
    assert (copied.l1, copied.rescale, net.l1) == (5.0, True, 1.0)
    with pytest.raises(rs.InputError, match="`strength` must be a finite number, at least 0"):
        rs.L1(1.0).set_params(strength=-1)
    with pytest.raises(rs.InputError, match="(?s)parameter 'strenth' was not found.*'strength'"):
        rs.Cox(rs.L1(1.0)).set_params(penalty__strenth=2)
    with pytest.raises(rs.InputError, match="`penalty__strength` was given, but there is no pena"):
        rs.Cox().set_params(penalty__strength=2)
    by_cause = rs.CauseSpecificCox({1: rs.L1(1.0)})
    with pytest.raises(rs.InputError, match="`penalty__strength` was given, but the penalty is {"):
        by_cause.set_params(penalty__strength=2)


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
