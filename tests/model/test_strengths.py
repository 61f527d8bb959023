"""One rule for strengths: None is no penalty, a strength is used, a missing one is chosen."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import riskset as rs

rng = np.random.default_rng(0)
X = rng.normal(size=(150, 4))
T = (rng.logistic(size=150) < X @ [1.0, -1.0, 0.0, 0.5]).astype(int)
Y = rs.Surv(rng.exponential(np.exp(-X[:, 0] - X[:, 3])), rng.integers(0, 2, 150))
QUICK = {"folds": 3, "repeats": 1}


def test_a_score_uses_the_strength_that_it_is_given():
    found = rs.cohort.propensity_score(T, X, rs.L2(3.0))
    assert (found.penalty, found.cross_validation) == (rs.L2(3.0), None)
    other = rs.cohort.propensity_score(T, X, rs.L2(300.0))
    assert np.abs(other.coef).max() < np.abs(found.coef).max() / 5


def test_a_score_without_a_penalty():
    found = rs.cohort.propensity_score(T, X, penalty=None)
    eta = found.intercept + X @ found.coef
    # Maximum likelihood: residuals have no correlation with any covariate.
    assert np.abs(np.c_[np.ones(150), X].T @ (T - 1 / (1 + np.exp(-eta)))).max() < 1e-5
    assert (found.penalty, found.cross_validation) == (None, None)


@pytest.mark.parametrize("penalty", ["l1", "l2", rs.L1(), rs.ElasticNet(l1_ratio=0.5)])
def test_a_missing_strength_is_chosen(penalty):
    score = rs.cohort.propensity_score(T, X, penalty, **QUICK)
    model = rs.CoxCV(penalty, **QUICK).fit(X, Y)
    outcome = rs.cohort.fit_outcome(
        Y, rs.cohort.Population(T), penalty=penalty, covariates=X, **QUICK
    )
    for one, ratio in (
        (score.penalty, model.best_penalty_.l1_ratio),
        (outcome.penalty, model.best_penalty_.l1_ratio),
    ):
        assert one.has_strength
        assert one.l1_ratio == pytest.approx(ratio)
    assert score.cross_validation is not None
    assert outcome.cross_validation is not None


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: rs.cohort.propensity_score(T, X, rs.L2(1.0), cross_validate=True), "not be used"),
        (lambda: rs.cohort.propensity_score(T, X, cross_validate=False), "has no strength"),
        (lambda: rs.cohort.propensity_score(T, X, None, cross_validate=True), "without a penalty"),
        (lambda: rs.cohort.propensity_score(T, X, None, checkpoint="a"), "but there is none"),
        (
            lambda: rs.cohort.fit_outcome(Y, rs.cohort.Population(T), covariates=X, checkpoint="a"),
            "but there is none",
        ),
        (
            lambda: rs.cohort.OutcomeModel(penalty=rs.L1(2.0), cross_validate=True),
            r"pass L1\(\) to have one chosen",
        ),
        (lambda: rs.CoxCV(rs.L1(2.0, unpenalized=[0])).fit(X, Y), r"pass L1\(unpenalized=\(0,\)"),
        (lambda: rs.FineGrayCV(None).fit(X, Y), "no strength to choose"),
        (lambda: rs.CoxCV("l3").fit(X, Y), "`penalty` must be"),
        (lambda: rs.Cox(rs.L1()).fit(X, Y), r"the penalty L1\(\) has no strength"),
        (lambda: rs.path(rs.Cox(), X, Y), "the model has no penalty"),
        (lambda: rs.CoxCV(min_ratio=0.999999).fit(X, Y), "nothing to search"),
        (lambda: rs.ElasticNet(l1=1.0), "needs either both"),
        (lambda: rs.ElasticNet(l1=1.0, l2=1.0, l1_ratio=0.5), "needs either both"),
        (lambda: rs.ElasticNet(l1_ratio=2.0), "must lie between 0 and 1"),
    ],
)
def test_what_contradicts_the_rule(call, words):
    with pytest.raises(rs.InputError, match=words):
        call()


def test_parts_and_share_of_an_elastic_net():
    net = rs.ElasticNet(strength=4.0, l1_ratio=0.25)
    assert net == rs.ElasticNet(l1=1.0, l2=3.0)
    assert (net.set_params(strength=8.0).l1, net.l2) == (2.0, 6.0)
    assert net.set_params(l1=1.0).get_params()["l2"] == 6.0
    assert net.set_params(l1_ratio=1.0).l1 == 7.0
    assert net.get_params()["strength"] == 7.0
    kind = rs.ElasticNet(l1_ratio=0.5, unpenalized=["x"])
    assert repr(kind) == "ElasticNet(l1_ratio=0.5, unpenalized=('x',))"
    assert clone(kind) == kind
    assert kind != rs.ElasticNet(strength=1.0, l1_ratio=0.5, unpenalized=["x"])
    assert rs.L1(3.0).without_strength() == rs.L1()


@pytest.mark.parametrize("penalty", [rs.L2(), rs.L1(1.0), rs.ElasticNet(l1_ratio=0.5)])
def test_scikit_learn_searches_the_strength(penalty):
    model = make_pipeline(StandardScaler(), rs.Cox(penalty))
    search = GridSearchCV(model, {"cox__penalty__strength": [1.0, 40.0]}, cv=2).fit(X, Y)
    assert search.best_params_["cox__penalty__strength"] in (1.0, 40.0)
    assert model[1].penalty == penalty
    again = clone(search.best_estimator_)
    assert (
        again[1].get_params()["penalty__strength"] == search.best_params_["cox__penalty__strength"]
    )


def test_a_saved_choice_keeps_its_kind(tmp_path):
    model = rs.CoxCV("l2", **QUICK).fit(X, Y)
    model.save(tmp_path / "fit.riskset")
    again = rs.load(tmp_path / "fit.riskset")
    assert again.penalty == rs.L2()
    assert_array_equal(again.fit(X, Y).coef_, model.coef_)
