"""Fine and Gray's model: the censoring distribution, and its groups and weights."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import riskset as rs
from estimators.finegray import fit, simulated, survival_before


def test_groups_by_array_by_name_and_by_role(rng):
    x, y = simulated(rng)
    site = np.where(rng.random(len(y)) < 0.4, "a", "b")
    wanted = fit(x, y, censoring_group=site)
    assert wanted.log_likelihood_ != fit(x, y).log_likelihood_
    frame = pd.DataFrame(x, columns=["u", "v", "w"]).assign(
        time=y["time"], event=y["event"], site=site
    )
    data = rs.Dataset.from_frame(frame, censoring_group="site")
    for model in (fit(data, None), fit(data, None, censoring_group="site")):
        assert model.covariates_ == ("u", "v", "w")
        assert_allclose(model.coef_, wanted.coef_, rtol=1e-9)
        assert_allclose(model.log_likelihood_, wanted.log_likelihood_, rtol=1e-13)
    covariates = frame.drop(columns=["time", "event"])
    by_name = fit(covariates, y, censoring_group="site")
    by_array = fit(covariates, y, censoring_group=site)
    assert by_name.covariates_ == ("u", "v", "w", "site=b")
    assert_array_equal(by_name.coef_, by_array.coef_)
    of_stratum = rs.Dataset.from_frame(frame, strata="site")
    assert_allclose(
        fit(of_stratum, None, censoring_group="site").coef_,
        fit(x, y, strata=site, censoring_group=site).coef_,
        rtol=1e-9,
    )
    with pytest.raises(rs.InputError, match="did you mean 'site'"):
        fit(data, None, censoring_group="sit")


def test_beyond_the_last_time_of_a_group():
    """Row 0 has a competing event in a group that ends before the only event: gone, or kept."""
    time, event = np.array([1.0, 2.0, 3.0, 4.0]), np.array([2, 0, 1, 0])
    group = ["short", "short", "long", "long"]
    x = np.array([[1.0], [0.0], [0.0], [0.5]])
    y = rs.Surv(time, event)

    def null(**parameters):
        return fit(x, y, rs.L2(1.0), **parameters).null_log_likelihood_

    # G of "short" is 1 before its censoring at 2, which is its last time, and 0 after it.
    assert null(censoring_group=group) == pytest.approx(-np.log(2))
    last = null(censoring_group=group, censoring_beyond="last")
    assert last == pytest.approx(-np.log(3))
    # Of all rows G(3-) = 2/3.
    assert null() == pytest.approx(-np.log(2 + 2 / 3))


def test_weights_in_g_or_not(rng):
    x, y = simulated(rng)
    weight = rng.choice([0.5, 2.0], len(y))
    plain = survival_before(y["time"], y["event"], np.ones(len(y)), y["time"], "crr")
    one = fit(x, y, sample_weight=weight, censoring_weights="none")
    two = fit(x, y, sample_weight=weight, censoring_probability=plain)
    assert_allclose(one.coef_, two.coef_, rtol=1e-9)
    assert one.log_likelihood_ != fit(x, y, sample_weight=weight).log_likelihood_
