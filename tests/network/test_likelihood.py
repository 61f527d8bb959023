"""Curves between and beyond the points of a profile."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import riskset as rs
from network.simulated import of_site, profile, profile_of_r
from riskset.network import SiteLikelihood

AT = [-4, -2, -0.7, 0, 1.1, 3]
OF_R = [-19.228591758, -17.945791311, -17.716844247, -18.148765334, -19.781920065, -24.421089584]
"""`hermiteInterpolation` of EvidenceSynthesis 1.0.0 at these points, for site 3."""


def test_as_evidence_synthesis_between_and_beyond_the_points():
    assert_allclose(profile_of_r(3)(AT), OF_R, atol=1e-9)


def test_beyond_the_points_it_is_a_line():
    x, d = profile_of_r(2).points, profile_of_r(2).derivatives
    curve = profile_of_r(2)
    for end, slope, step in ((x[0], d[0], -1.7), (x[-1], d[-1], 5000.0)):
        assert_allclose(curve(end + step), curve(end) + step * slope, rtol=1e-12)
        assert_allclose(curve.derivative(end + step), slope, rtol=1e-12)


def test_a_cubic_is_reproduced():
    x = np.array([-1.0, 0.5, 2.0])
    curve = SiteLikelihood(x, x**3 - 2 * x, 3 * x**2 - 2)
    at = np.linspace(-1, 2, 31)
    assert_allclose(curve(at), at**3 - 2 * at, atol=1e-13)
    assert_allclose(curve.derivative(at), 3 * at**2 - 2, atol=1e-12)


def test_without_derivatives_it_is_linear():
    curve = SiteLikelihood([0.0, 1.0, 3.0], [0.0, 2.0, -2.0])
    assert_allclose(curve([-1.0, 0.5, 2.0, 4.0]), [-2.0, 1.0, 0.0, -4.0])


@pytest.mark.parametrize(
    ("curve", "at", "expected"),
    [
        # By hand: -(0.5^2) / (2 0.2^2), e^(0.3 0.4) -(0.4^2) / (2 0.5^2) and log of a normal share.
        (SiteLikelihood.normal(0.3, 0.2), 0.8, -3.125),
        (SiteLikelihood.custom(0.1, 0.5, 0.3), 0.5, -0.32 * np.exp(0.12)),
        (SiteLikelihood.skew_normal(0.0, 1.0, 0.0), 0.7, -0.245 + np.log(0.5)),
        (SiteLikelihood.skew_normal(0.0, 1.0, 2.0), 0.0, np.log(0.5)),
    ],
)
def test_parametric_forms(curve, at, expected):
    assert_allclose(curve(at), expected, atol=2e-7)
    step = 1e-5
    slope = (curve(at + step) - curve(at - step)) / (2 * step)
    assert_allclose(curve.derivative(at), slope, atol=1e-4)


def test_riskset_and_r_agree_on_values_and_derivatives():
    for k in range(1, 6):
        ours, theirs = profile(k), profile_of_r(k)
        x = theirs.points
        assert_allclose(ours(x) - ours(x[0]), theirs.values - theirs.values[0], atol=2e-4)
        assert_allclose(ours.derivative(x), theirs.derivatives, atol=2e-3)


def test_monotone_curves_are_seen():
    assert [profile(k).is_monotone for k in range(1, 6)] == [True, False, False, True, False]
    x, y = of_site(1)
    assert (y["event"][x[:, 0] == 1] == 0).all()


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (([0.0], [0.0]), "two or more points"),
        (([0.0, 0.0], [0.0, 1.0]), "must ascend"),
        (([0.0, 1.0], [0.0, np.nan]), "`values` of a profile"),
        (([0.0, 1.0], [0.0, 1.0], [1.0]), "as many values and derivatives"),
        (([0.0, 1.0], [0.0, 1.0], None, np.inf), "`supremum`"),
    ],
)
def test_profiles_that_are_none(columns, words):
    with pytest.raises(rs.InputError, match=words):
        SiteLikelihood(*columns)


def test_a_normal_approximation_needs_a_finite_estimate():
    with pytest.raises(rs.InputError, match="finite estimate"):
        SiteLikelihood.normal(-np.inf, 1.0)
