"""Fine and Gray's model: hard cases, whose answer is known."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import riskset as rs
from estimators.finegray import (
    TOL,
    case,
    fit,
)
from reference import matrix


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
