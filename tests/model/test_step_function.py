"""Predictions as functions of time: the values at times, for every model, stratum and cause."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import riskset as rs

N = 90
rng = np.random.default_rng(8)
X = rng.normal(size=(N, 2))
TIME, EVENT = rng.integers(1, 30, N), rng.integers(0, 3, N)
Y, STRATA = rs.Surv(TIME, EVENT), rng.choice(["a", "b"], N)
AT = np.array([-1.0, 0.0, 1.0, 7.5, 12.0, 29.0, 400.0])
COX, FINE_GRAY = rs.Cox(cause=1).fit(X, Y), rs.FineGray(cause=1).fit(X, Y)
CAUSES = rs.CauseSpecificCox().fit(X, Y)
METHODS = {
    "survival": COX.predict_survival_function,
    "cumulative hazard": COX.predict_cumulative_hazard_function,
    "fine-gray survival": FINE_GRAY.predict_survival_function,
    "incidence": FINE_GRAY.predict_cumulative_incidence,
    "incidence of a cause": lambda X, t=None: CAUSES.predict_cumulative_incidence(X, t, cause=2),
    "survival of all causes": CAUSES.predict_survival_function,
}


@pytest.mark.parametrize("predict", METHODS.values(), ids=METHODS)
def test_functions_have_the_values_at_times(predict):
    functions, expected = predict(X[:9]), predict(X[:9], AT)
    assert functions.shape == (9,)
    for one, row in zip(functions, expected, strict=True):
        assert_array_equal(one(AT), row)
        assert_array_equal(one(AT.reshape(1, -1)), row[None])
        assert one(7.5).shape == ()
        assert float(one(7.5)) == row[3]
        # Constant between jumps, and no jump elsewhere.
        assert_array_equal(one(one.x), one.y)
        assert_array_equal(one(np.nextafter(one.x[1:], 0)), one.y[:-1])
        assert (np.diff(one.x) > 0).all()
        assert (np.diff(one.y) != 0).all() or predict is METHODS["incidence of a cause"]
    assert_array_equal(pickle.loads(pickle.dumps(functions[0])).y, functions[0].y)


def test_jumps_are_event_times():
    assert_array_equal(COX.predict_survival_function(X[:1])[0].x, np.unique(TIME[EVENT == 1]))
    of_all = CAUSES.predict_survival_function(X[:1])[0]
    assert_array_equal(of_all.x, np.unique(TIME[EVENT > 0]))


def test_all_causes():
    functions = CAUSES.predict_cumulative_incidence(X[:4])
    values = np.array([[one(AT) for one in row] for row in functions])
    assert_array_equal(values, CAUSES.predict_cumulative_incidence(X[:4], AT))
    survival = np.array([one(AT) for one in CAUSES.predict_survival_function(X[:4])])
    assert_allclose(values.sum(axis=0) + survival, 1, atol=1e-14)


@pytest.mark.parametrize("strata", [STRATA, [STRATA, (TIME % 2).tolist()]], ids=["one", "two"])
def test_rows_have_the_event_times_of_their_stratum(strata):
    model = rs.Cox(cause=1).fit(X, Y, strata=strata)
    expected = model.predict_survival_function(X, AT, strata=strata)
    functions = model.predict_survival_function(X, strata=strata)
    for i, one in enumerate(functions):
        assert_array_equal(one(AT), expected[i])
    if strata is STRATA:
        for i in (0, 1, 2):
            own = (STRATA[i] == STRATA) & (EVENT == 1)
            assert_array_equal(functions[i].x, np.unique(TIME[own]))
    with pytest.raises(rs.InputError, match="needs its stratum"):
        model.predict_survival_function(X)


def test_times_must_be_numbers():
    one = COX.predict_survival_function(X[:1])[0]
    with pytest.raises(rs.InputError, match="times"):
        one([1.0, np.nan])


def test_scorers_of_scikit_survival():
    metrics = pytest.importorskip("sksurv.metrics")
    y = np.array([(e == 1, t) for e, t in zip(EVENT, TIME, strict=True)], [("e", "?"), ("t", "f8")])
    scorer = metrics.as_integrated_brier_score_scorer(rs.Cox(rs.L2(1.0)), times=[5.0, 9.0, 14.0])
    score = scorer.fit(X, y).score(X, y)
    survival = rs.Cox(rs.L2(1.0)).fit(X, y).predict_survival_function(X, [5.0, 9.0, 14.0])
    assert -score == pytest.approx(metrics.integrated_brier_score(y, y, survival, [5.0, 9.0, 14.0]))
