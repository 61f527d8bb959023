"""The estimator of Fine and Gray's model: answers, copies, files, errors."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import riskset as rs
from estimators.finegray import (
    TOL,
    fit,
    simulated,
    survival_before,
)


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


def test_events_at_one_time_need_one_probability():
    y = rs.Surv([1.0, 1.0, 2.0, 3.0], [1, 1, 2, 0])
    with pytest.raises(rs.InputError, match="must be the same for events at one time"):
        rs.FineGray(censoring_probability=[1.0, 0.9, 0.8, 0.8]).fit(np.eye(4)[:, :1], y)
