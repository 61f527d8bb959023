"""Bounds from negative controls: by hand, by scipy's distributions, and what they cover."""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import foldnorm, norm

import riskset as rs
from riskset.cohort import Controls, bias_bounds, calibrate
from riskset.cohort.bias.control_bounds import bounds_of_biases
from riskset.cohort.bias.empirical_null.fit import Null

GOLDEN = json.loads((Path(__file__).parents[1] / "golden/confounders.json").read_text("utf-8"))

BIASES = np.log([1.25, 0.9, 1.5, 1.1, 1.0, 1.2])
CONTROLS = Controls(BIASES, [0.1] * 6)


def test_by_hand():
    found = bias_bounds(CONTROLS, 2.0, 1.6, 2.5, scale="rate")
    assert found.basis.tolist() == ["null", "null", "largest", "largest"]
    assert found.direction.tolist() == ["seen", "either"] * 2
    assert_allclose(found.bias_lower[2:], [0.9, 1 / 1.5], rtol=1e-14)
    assert_allclose(found.bias_upper[2:], [1.5, 1.5], rtol=1e-14)
    assert_allclose(found.ratio_lower[2:], 2 / 1.5, rtol=1e-14)
    assert_allclose(found.ratio_upper[2:], [2 / 0.9, 3.0], rtol=1e-14)
    assert_allclose(found.lower[2:], 1.6 / 1.5, rtol=1e-14)
    assert_allclose(found.upper[2:], [2.5 / 0.9, 2.5 * 1.5], rtol=1e-14)
    assert not found.includes_1[2:].any()
    # 1.5 + sqrt(1.5 * 0.5), and no control has a bias of 1.6 or more.
    assert_allclose(found.e_value[2:], 1.5 + np.sqrt(0.75), rtol=1e-14)
    assert found.share_beyond == 0
    assert found.n_controls == 6


def test_the_null_range_is_that_of_its_distribution():
    found = bias_bounds(CONTROLS, 1.3, 1.15, 1.5, scale="rate", level=0.9)
    null = calibrate(CONTROLS, [0.0], [0.1], method="likelihood").null
    assert null.sd > 0
    low, high = norm.ppf([0.05, 0.95], null.mean, null.sd)
    assert_allclose(np.log([found.bias_lower[0], found.bias_upper[0]]), [low, high], rtol=1e-10)
    size = foldnorm.ppf(0.9, abs(null.mean) / null.sd, scale=null.sd)
    assert_allclose(np.log([found.bias_lower[1], found.bias_upper[1]]), [-size, size], rtol=1e-9)
    assert_allclose(found.probability_beyond, norm.sf(np.log(1.15), null.mean, null.sd), rtol=1e-12)
    assert found.share_beyond == pytest.approx(3 / 6)  # 1.25, 1.5 and 1.2 are at least 1.15


@pytest.mark.parametrize("case", GOLDEN["folded"])
def test_sizes_of_errors_in_r(case):
    null = Null(case["mean"], case["sd"], 0.0, 6)
    found = bounds_of_biases(BIASES, null, (2.0, 1.6, 2.5), "rate", False, case["level"])
    assert_allclose(np.log(found.bias_upper[1]), case["quantile"], rtol=1e-9)
    assert_allclose(np.log(found.bias_lower[1]), -case["quantile"], rtol=1e-9)


def test_a_ratio_below_1_is_moved_by_biases_below_1():
    found = bias_bounds(CONTROLS, 0.7, 0.5, 0.95, scale="rate")
    assert found.share_beyond == pytest.approx(1 / 6)  # 0.9 alone is at most 0.95
    mirrored = bias_bounds(Controls(-BIASES, [0.1] * 6), 1 / 0.7, 1 / 0.95, 2.0, scale="rate")
    for name in ("share_beyond", "probability_beyond", "e_value_limit"):
        assert getattr(found, name) == pytest.approx(getattr(mirrored, name), rel=1e-12)
    assert_allclose(found.lower, 1 / mirrored.upper, rtol=1e-12)
    assert_allclose(found.bias_lower, 1 / mirrored.bias_upper, rtol=1e-12)


def test_e_values_are_those_of_the_ratio_and_of_the_biases():
    interval = {"lower": 1.2, "upper": 2.5, "scale": "hazard", "common": True}
    found = bias_bounds(CONTROLS, 1.7, **interval)
    own = rs.cohort.e_value(1.7, **interval)
    assert (found.e_value_estimate, found.e_value_limit) == (own.estimate, own.limit)
    largest = rs.cohort.e_value(1.5, scale="hazard", common=True).estimate
    assert_allclose(found.e_value[2:], largest, rtol=1e-14)


def test_a_confounder_of_the_bias_tips_the_same():
    # A confounder whose bias is that of the worst control moves the limit as the bound says.
    found = bias_bounds(CONTROLS, 2.0, 1.6, 2.5, scale="rate")
    bias = float(found.bias_upper[2])
    effect = rs.cohort.tipping_points(bias, scale="rate", difference=0.5).of_estimate
    adjusted = rs.cohort.adjust_for_confounder(
        2.0, 1.6, 2.5, scale="rate", difference=0.5, effect=effect
    )
    assert_allclose(adjusted.lower, found.lower[2], rtol=1e-12)


def test_no_spread_beyond_chance_and_few_controls():
    alike = Controls([0.2, 0.21, 0.19, 0.2, 0.2], [0.3] * 5)
    found = bias_bounds(alike, 1.5, 1.4, 1.6, scale="rate")
    assert_allclose(np.log(found.bias_lower[0]), np.log(found.bias_upper[0]), rtol=1e-12)
    assert_allclose(found.bias_upper[1], found.bias_upper[0], rtol=1e-12)
    assert found.probability_beyond == 0
    few = bias_bounds(Controls([0.2, -0.1], [0.1, 0.1]), 1.5, 1.4, 1.6, scale="rate")
    assert np.isnan(few.bias_lower[:2]).all()
    assert np.isnan(few.probability_beyond)
    assert_allclose(few.lower[2], 1.4 * np.exp(-0.2), rtol=1e-14)


def test_positive_controls_are_not_used():
    more = Controls([*BIASES, 1.0], [0.1] * 7, [0.0] * 6 + [0.7])
    one, other = (bias_bounds(c, 2.0, 1.6, 2.5, scale="rate") for c in (CONTROLS, more))
    assert_array_equal(one.lower, other.lower)
    assert other.n_controls == 6


def test_an_interval_that_contains_1():
    found = bias_bounds(CONTROLS, 1.1, 0.9, 1.3, scale="rate")
    assert found.includes_1.all()
    assert (found.share_beyond, found.probability_beyond) == (1.0, 1.0)
    unknown = bias_bounds(CONTROLS, 1.1, scale="rate")
    assert np.isnan(unknown.lower).all()
    assert np.isnan(unknown.share_beyond)


def test_an_interval_with_one_limit():
    """Biases up to exp(0.3) move a lower limit of 1.3 below 1, but not the ratio 1.6."""
    controls = rs.cohort.Controls([0.2, -0.1, 0.3, 0.1], [0.1] * 4)
    whole = bias_bounds(controls, 1.6, 1.3, 2.0, scale="rate")
    for ends, includes in (((1.3,), True), ((None, 2.0), False), ((), False), ((0.9,), True)):
        found = bias_bounds(controls, 1.6, *ends, scale="rate")
        assert found.includes_1.tolist() == [False, False, includes, includes]
    assert whole.includes_1.tolist() == [False, False, True, True]
    contained = bias_bounds(controls, 1.6, 0.9, scale="rate")
    assert contained.share_beyond == 1.0  # as of an interval with both limits
    assert bias_bounds(controls, 1.6, 1.3, scale="rate").share_beyond == 0.25
    assert repr(whole) == "BiasBounds(4 negative controls: 0.963 to 2.700)"
    alone = bias_bounds(controls, 1.6, scale="rate")
    assert repr(alone) == "BiasBounds(4 negative controls: 1.185 to 2.160)"


def test_bounds_by_the_null_hold_the_truth_as_often_as_they_say():
    rng = np.random.default_rng(4)
    null = Null(0.1, 0.15, 0.0, 100)
    inside = []
    for _ in range(400):
        se = rng.uniform(0.05, 0.3, 100)
        controls = Controls(rng.normal(null.mean, np.hypot(null.sd, se)), se)
        b, own = np.log(2) + rng.normal(null.mean, np.hypot(null.sd, 0.1)), 0.1
        ends = np.exp(b + 1.959964 * own * np.array([-1, 1]))
        found = bias_bounds(controls, float(np.exp(b)), *map(float, ends), scale="rate")
        inside.append((found.lower <= 2) & (found.upper >= 2))
    share = np.mean(inside, axis=0)
    assert (share[:2] >= 0.90).all()  # 1 - (1 - 0.95) - (1 - 0.95)
    assert (share[2:] >= 0.95).all()


@pytest.mark.parametrize(
    ("controls", "words"),
    [([0.1, 0.2], "expected Controls"), (Controls([0.5], [0.1], [0.4]), "no negative controls")],
)
def test_refused(controls, words):
    with pytest.raises(rs.CohortError, match=words) as caught:
        bias_bounds(controls, 1.5, 1.2, 1.8, scale="risk")
    assert caught.value.code == "BadControls"
    with pytest.raises(rs.CohortError, match="`scale` is missing"):
        bias_bounds(CONTROLS, 1.5, 1.2, 1.8)
