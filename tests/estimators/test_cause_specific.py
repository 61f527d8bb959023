"""Cox models of every cause at once, the incidences that follow, and totals beyond 1."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import riskset as rs
from reference import GOLDEN, matrix, read_json, read_table

TIMES = [12.0, 60.0, 120.0, 240.0]


@pytest.fixture(scope="module")
def mgus2():
    table, golden = read_table(GOLDEN / "mgus2.csv"), read_json(GOLDEN / "mgus2.json")
    X = matrix(table, golden["columns"])
    return X, rs.Surv(table["time"], table["event"].astype(int)), golden


@pytest.fixture(scope="module")
def model(mgus2):
    X, y, _ = mgus2
    return rs.CauseSpecificCox().fit(X, y)


def test_coefficients_of_both_causes(model, mgus2):
    golden = mgus2[2]
    np.testing.assert_array_equal(model.causes_, [1, 2])
    for cause in (1, 2):
        expected = golden[f"cause_specific_{cause}"]["coef"]
        np.testing.assert_allclose(model.models_[cause].coef_, list(expected.values()), atol=1e-9)
    assert model.status_ == {1: "converged", 2: "converged"}


def test_each_model_is_the_cox_model_of_its_cause(model, mgus2):
    X, y, _ = mgus2
    alone = rs.Cox(cause=2).fit(X, y)
    np.testing.assert_array_equal(model.models_[2].coef_, alone.coef_)
    np.testing.assert_array_equal(model.predict(X, 2), alone.predict(X))
    frame = model.summary()
    np.testing.assert_array_equal(frame.loc[2, "coef"], alone.coef_)
    np.testing.assert_array_equal(frame.loc[2, "p"], alone.summary()["p"])


def test_incidence_is_the_product_integral(model, mgus2):
    X, y, _ = mgus2
    grid = np.unique(y["time"])
    rows = X[[0, 5, 100]]
    hazard = [model.models_[c].predict_cumulative_hazard_function(rows, grid) for c in (1, 2)]
    step = np.diff(np.array(hazard), axis=2, prepend=0)
    expected = np.zeros((2, 3, grid.size))
    survival = np.ones(3)
    for t in range(grid.size):
        total = step[:, :, t].sum(axis=0)
        share = np.divide(step[:, :, t], total, out=np.zeros((2, 3)), where=total > 0)
        jump = survival * (1 - np.exp(-total)) * share
        expected[:, :, t] = jump + (expected[:, :, t - 1] if t else 0)
        survival = survival * np.exp(-total)
    found = model.predict_cumulative_incidence(rows, grid)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-14)
    one = model.predict_cumulative_incidence(rows, grid[::-1], cause=2)
    np.testing.assert_array_equal(one, found[1][:, ::-1])


def test_with_one_cause_it_is_one_minus_survival(mgus2):
    X, y, _ = mgus2
    y = rs.Surv(y["time"], y["event"] > 0)
    model, cox = rs.CauseSpecificCox().fit(X, y), rs.Cox().fit(X, y)
    found = model.predict_cumulative_incidence(X[:9], TIMES, cause=1)
    np.testing.assert_allclose(found, 1 - cox.predict_survival_function(X[:9], TIMES), atol=1e-13)


def test_without_effects_it_is_close_to_aalen_johansen(mgus2):
    """Equal but for exp(-h) against 1 - h at each jump."""
    X, y, _ = mgus2
    strong = rs.CauseSpecificCox(rs.L2(1e12)).fit(X, y)
    found = strong.predict_cumulative_incidence(X[:1], TIMES)[:, 0]
    np.testing.assert_allclose(found, rs.aalen_johansen(y).at(TIMES)[0], atol=2e-3)


def test_extreme_covariates_stay_within_bounds(model, mgus2):
    X = np.vstack([mgus2[0].mean(axis=0)] * 5)
    X[:, 0] = [1e5, -1e5, 1e8, 0, 300]
    X[3, 2] = -1e7
    grid = np.linspace(0, 500, 40)
    found = model.predict_cumulative_incidence(X, grid)
    assert np.isfinite(found).all()
    assert ((found >= 0) & (found <= 1)).all()
    assert (np.diff(found, axis=2) >= 0).all()
    total = found.sum(axis=0) + model.predict_survival_function(X, grid)
    np.testing.assert_allclose(total, 1, atol=1e-12)


def test_strata_weights_and_entry(mgus2, rng):
    X, y, _ = mgus2
    strata = np.where(X[:, 1] > 0, "m", "f")
    weight = rng.integers(0, 3, len(y)).astype(float)
    y = rs.Surv(y["time"] + 1, y["event"], rng.uniform(0, 1, len(y)))
    model = rs.CauseSpecificCox(ties="efron").fit(X[:, [0, 2]], y, weight, strata)
    found = model.predict_cumulative_incidence(X[:6, [0, 2]], TIMES, strata=strata[:6])
    for label in ("m", "f"):
        rows = np.flatnonzero(strata[:6] == label)
        grid = np.unique(y["time"][strata == label])
        hazard = [
            m.predict_cumulative_hazard_function(X[rows][:, [0, 2]], grid, strata=strata[rows])
            for m in model.models_.values()
        ]
        step = np.diff(np.array(hazard), axis=2, prepend=0)
        total = step.sum(axis=0)
        before = np.exp(-np.cumsum(total, axis=1) + total)
        jump = before * -np.expm1(-total) * step / np.where(total > 0, total, 1)
        at = np.searchsorted(grid, TIMES, side="right") - 1
        np.testing.assert_allclose(found[:, rows], np.cumsum(jump, axis=2)[:, :, at], rtol=1e-9)


def test_frames_datasets_and_pickles(mgus2):
    X, y, golden = mgus2
    frame = pd.DataFrame(X, columns=golden["columns"])
    frame["sex"] = np.where(frame.pop("male") > 0, "male", "female")
    model = rs.CauseSpecificCox({1: rs.L1(2.0), 2: None}).fit(frame, y)
    found = model.predict_cumulative_incidence(frame[:4], TIMES)
    assert list(model.summary().loc[1, "covariate"]) == list(model.models_[1].covariates_)
    np.testing.assert_array_equal(model.predict(frame[:4], 1), model.models_[1].predict(frame[:4]))
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_allclose(again.predict_cumulative_incidence(frame[:4], TIMES), found)

    table = frame.assign(time=y["time"], event=y["event"])
    data = rs.Dataset.from_frame(table, time="time", event="event", cause=1)
    other = rs.CauseSpecificCox({1: rs.L1(2.0), 2: None}).fit(data)
    new = other.predict_cumulative_incidence(table[:4], TIMES)
    np.testing.assert_allclose(new, found, rtol=1e-6)
    assert clone(model).get_params()["penalty"][2] is None


def test_messages(model, mgus2):
    X, y, _ = mgus2
    with pytest.raises(rs.InputError, match=r"cause 3 was not fitted \(causes: 1, 2\)"):
        model.predict_cumulative_incidence(X[:1], TIMES, cause=3)
    with pytest.raises(rs.InputError, match=r"one entry for each cause \(1, 2\), but it has 1"):
        rs.CauseSpecificCox({1: None}).fit(X, y)
    with pytest.raises(rs.InputError, match="but 7 does not occur"):
        rs.CauseSpecificCox(causes=[1, 7]).fit(X, y)
    with pytest.raises(rs.InputError, match="no events: all 2 rows"):
        rs.CauseSpecificCox().fit(X[:2], rs.Surv([1.0, 2.0], [False, False]))


def test_totals_beyond_one(mgus2):
    parts = np.array([[0.5, 0.7], [0.1, 0.2]]), np.array([[0.5, 0.6], [0.1, 0.1]])
    with pytest.warns(rs.RisksetWarning, match=r"for 1 of 2 rows \(at most 1.3\)") as caught:
        total = rs.check_total_incidence(*parts)
    assert caught[0].filename == __file__
    np.testing.assert_allclose(total, parts[0] + parts[1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rs.check_total_incidence([0.5, 0.6], [0.5, 0.4])
    with pytest.raises(rs.InputError, match="arrays of one shape"):
        rs.check_total_incidence([0.5], [0.5, 0.4])
    with pytest.raises(rs.InputError, match="not all of argument 2 are"):
        rs.check_total_incidence([0.5], [1.5])


def test_models_of_each_subdistribution_can_exceed_one(mgus2):
    X, y, _ = mgus2
    new = X[:1].copy()
    new[0, [0, 3]] = [110.0, 6.0]
    both = [rs.FineGray(cause=c).fit(X, y).predict_cumulative_incidence(new, TIMES) for c in (1, 2)]
    with pytest.warns(rs.RisksetWarning, match="add up to more than 1"):
        rs.check_total_incidence(*both)
