"""The picture of a profile shows the curve below its maximum, the cut and the ends."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import riskset as rs
from riskset.plot import profile_likelihood

CUT = 3.841458820694124 / 2
B = np.linspace(-3, 4, 141)
HEIGHT = -50 - 2 * (B - 0.5) ** 2
HALF = np.sqrt(CUT / 2)


def test_curve_cut_and_ends():
    order = np.random.default_rng(0).permutation(B.size)
    figure = profile_likelihood(
        B[order], HEIGHT[order], 0.5, 0.5 - HALF, 0.5 + HALF, maximum=-50.0, title="drug"
    )
    figure.canvas.draw()
    axes = figure.axes[0]
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


def test_infinite_ends_go_to_the_edge_and_missing_values_are_left_out():
    height = np.where(B > 3.5, np.nan, -np.log1p(np.exp(-B)))
    figure = profile_likelihood(B, height, np.inf, -1.75, np.inf, maximum=0.0)
    figure.canvas.draw()
    axes = figure.axes[0]
    assert axes.get_xlim()[1] == pytest.approx(3.5)
    assert axes.get_title(loc="left") == "hazard ratio ∞ (0.174 to ∞)"
    dots = [line for line in axes.lines if line.get_marker() == "o"]
    assert len(dots) == 1


@pytest.mark.parametrize("scale", [1e-3, 0.05, 1.0, 30.0, 1000.0])
def test_any_width_can_be_drawn(scale):
    figure = profile_likelihood(B * scale, HEIGHT, 0.5 * scale, -scale, 2 * scale)
    figure.canvas.draw()
    # Hazard ratios along the top, unless they would be beyond all reason.
    shown = [
        {float(label.get_text()) for label in top.get_xticklabels()}
        for top in figure.axes[0].child_axes
    ]
    assert shown == [] if scale > 10 else len(shown[0]) >= 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"log_likelihood": HEIGHT[1:]}, "must have the same length"),
        ({"log_likelihood": np.full(B.size, np.nan)}, "at least two finite values"),
        ({"level": 95}, "`level` must be between 0 and 1"),
    ],
)
def test_bad_profiles(change, message):
    given = {"values": B, "log_likelihood": HEIGHT, "estimate": 0.5, "lower": 0, "upper": 1}
    with pytest.raises(rs.InputError, match=message):
        profile_likelihood(**(given | change))
