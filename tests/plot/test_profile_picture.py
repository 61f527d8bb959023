"""The picture of a profile shows the curve below its maximum, the cut and the ends."""

import dataclasses
from io import BytesIO

import numpy as np
import pytest
from numpy.testing import assert_allclose

import riskset as rs
from riskset.plot import profile_likelihood

CUT = 3.841458820694124 / 2
B = np.linspace(-3, 4, 141)
HEIGHT = -50 - 2 * (B - 0.5) ** 2
HALF = np.sqrt(CUT / 2)


@pytest.fixture(scope="module")
def real():
    cohort = rs.simulate_cox(60, 1, 0.9, seed=1)
    y = rs.Surv(cohort.time, cohort.event)
    model = rs.Cox().fit(cohort.X, y)
    return rs.profile(model, cohort.X, y, parameter=model.covariates_[0])


def made(real, values, height, estimate, maximum):
    """A profile with given numbers."""
    return dataclasses.replace(
        real,
        parameter="drug",
        label="drug",
        values=values,
        log_likelihood=height,
        maximum=estimate,
        log_likelihood_maximum=maximum,
    )


def test_curve_cut_and_ends(real):
    order = np.random.default_rng(0).permutation(B.size)
    profile = made(real, B[order], HEIGHT[order], 0.5, -50.0)
    axes = profile_likelihood(profile, interval=(0.5 - HALF, 0.5 + HALF))
    axes.figure.savefig(BytesIO())
    curve = next(line for line in axes.lines if len(line.get_xdata()) == B.size)
    assert_allclose(curve.get_xdata(), B)
    assert_allclose(curve.get_ydata(), HEIGHT + 50)
    cut = next(line for line in axes.lines if line.get_linestyle() == "--")
    assert_allclose(cut.get_ydata(), -CUT)
    dots = [line.get_xydata()[0] for line in axes.lines if line.get_marker() == "o"]
    assert_allclose(sorted(map(tuple, dots)), [(0.5 - HALF, -CUT), (0.5, 0), (0.5 + HALF, -CUT)])
    assert axes.get_title(loc="left") == "drug: hazard ratio 1.65 (0.619 to 4.39)"
    # To where the curve has fallen by three times the cut.
    assert_allclose(axes.get_xlim(), 0.5 + np.sqrt(3 * CUT / 2) * np.array([-1, 1]), atol=0.01)


def test_the_interval_is_that_of_the_profile(real):
    axes = profile_likelihood(real, level=0.9)
    dots = [line.get_xydata()[0] for line in axes.lines if line.get_marker() == "o"]
    cut = -2.705543454095404 / 2  # half the 90 % quantile of chi-squared
    assert_allclose(sorted(map(tuple, dots))[0], (real.interval(0.9)[0], cut))
    assert axes.get_title(loc="left").startswith(f"{real.parameter}: hazard ratio")


def test_infinite_ends_go_to_the_edge_and_missing_values_are_left_out(real):
    height = np.where(B > 3.5, np.nan, -np.log1p(np.exp(-B)))
    profile = made(real, B, height, np.inf, 0.0)
    axes = profile_likelihood(profile, interval=(-1.75, np.inf), title="")
    axes.figure.savefig(BytesIO())
    assert axes.get_xlim()[1] == pytest.approx(3.5)
    assert axes.get_title(loc="left") == "hazard ratio ∞ (0.174 to ∞)"
    dots = [line for line in axes.lines if line.get_marker() == "o"]
    assert len(dots) == 1


@pytest.mark.parametrize("scale", [1e-3, 0.05, 1.0, 30.0, 1000.0])
def test_any_width_can_be_drawn(real, scale):
    profile = made(real, B * scale, HEIGHT, 0.5 * scale, -50.0)
    axes = profile_likelihood(profile, interval=(-scale, 2 * scale))
    axes.figure.savefig(BytesIO())
    # Hazard ratios along the top, unless they would be beyond all reason.
    shown = [
        {float(label.get_text()) for label in top.get_xticklabels()} for top in axes.child_axes
    ]
    assert shown == [] if scale > 10 else len(shown[0]) >= 3


def test_bad_profiles(real):
    with pytest.raises(rs.InputError, match="at least two finite values"):
        profile_likelihood(made(real, B, np.full(B.size, np.nan), 0.5, -50.0))
    with pytest.raises(rs.InputError, match="`level` must be between 0 and 1"):
        profile_likelihood(real, level=95)
    with pytest.raises(rs.InputError, match=r"shows what riskset\.profile"):
        profile_likelihood(B)
