"""scikit-learn's own checks, pipelines, searches, copies; progress."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from rich.console import Console
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import riskset as rs
from riskset._progress import ProgressBar

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
