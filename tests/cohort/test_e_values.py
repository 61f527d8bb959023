"""E-values against R, published values, and the factor by which confounding moves a ratio."""

import json
from pathlib import Path

import numpy as np
import pytest

import riskset as rs
from riskset.cohort import e_value

GOLDEN = json.loads((Path(__file__).parents[1] / "golden/e_values.json").read_text("utf-8"))


def ends(case):
    return case["estimate"], case["lower"], case["upper"]


@pytest.mark.parametrize("case", GOLDEN["cases"])
def test_as_in_r(case):
    found = e_value(*ends(case), scale=case["scale"], common=case["common"])
    assert found.risk_ratio == pytest.approx(case["risk_ratio"], rel=1e-13)
    assert found.estimate == pytest.approx(case["e_value"], rel=1e-12)
    assert found.limit == pytest.approx(case["limit"], rel=1e-12)


@pytest.mark.parametrize("case", GOLDEN["published"])
def test_as_published(case):
    found = e_value(*ends(case), scale=case["scale"])
    digits = 2 if case["e_value"] == 7.26 else 1
    assert round(found.estimate, digits) == case["e_value"]
    assert round(found.limit, 1) == case["limit"]


@pytest.mark.parametrize("ratio", [1.0, 1.3, 4.0, 0.2])
def test_a_confounder_of_this_strength_just_explains_the_ratio(ratio):
    found = e_value(ratio, scale="risk").estimate
    factor = found * found / (2 * found - 1)
    assert factor == pytest.approx(max(ratio, 1 / ratio), rel=1e-12)


def test_a_ratio_and_its_reciprocal_have_the_same_e_value():
    for scale in ("hazard", "odds", "rate"):
        one = e_value(2.5, 1.25, 5.0, scale=scale, common=True)
        other = e_value(1 / 2.5, 0.2, 0.8, scale=scale, common=True)
        assert one.estimate == pytest.approx(other.estimate, rel=1e-13)
        assert one.limit == pytest.approx(other.limit, rel=1e-13)


def test_open_intervals_and_unknown_limits():
    assert np.isnan(e_value(2.0, scale="risk").limit)
    found = e_value(0.3, 0.0, 0.8, scale="hazard", common=True)
    assert found.risk_ratio_lower == 0
    assert found.limit > 1
    assert e_value(2.0, 1.5, np.inf, scale="hazard", common=True).limit > 1
    assert e_value(2.0, 0.0, np.inf, scale="hazard", common=True).limit == 1


def test_of_an_estimate():
    people = rs.cohort.Population([1] * 20 + [0] * 20)
    y = rs.Surv(np.arange(1.0, 41.0), [1, 0, 0, 0, 0] * 8)
    estimate = rs.cohort.fit_outcome(y, people)
    found = e_value(estimate)
    limits = (estimate.hr, estimate.hr_lower, estimate.hr_upper)
    assert found == e_value(*limits, scale="hazard", common=True)
    assert e_value(estimate, common=False) == e_value(*limits, scale="hazard", common=False)
    rare = rs.Surv(np.arange(1.0, 41.0), [1, 0, 0, 0, 0, 0, 0, 0, 0, 0] * 4)
    assert not e_value(rs.cohort.fit_outcome(rare, people)).is_common
    one_arm = rs.Surv(np.arange(1.0, 41.0), [1] + [0] * 39)
    assert np.isinf(e_value(rs.cohort.fit_outcome(one_arm, people)).estimate)


@pytest.mark.parametrize(
    ("arguments", "named", "words"),
    [
        ((2.0,), {}, "`scale` is missing"),
        ((2.0,), {"scale": "hr"}, "`scale` must be"),
        ((2.0,), {"scale": "odds"}, "`common` is missing"),
        ((2.0,), {"scale": "odds", "common": "no"}, "`common` must be True or False"),
        ((None,), {"scale": "risk"}, "`estimate` must be a positive number"),
        ((-0.5,), {"scale": "risk"}, "`estimate` must be a positive number"),
        ((2.0, -0.5), {"scale": "risk"}, "`lower` must be a positive number"),
        ((2.0, 3.0, 4.0), {"scale": "risk"}, "outside of its interval"),
    ],
)
def test_refused(arguments, named, words):
    with pytest.raises(rs.InputError, match=words):
        e_value(*arguments, **named)


def test_an_estimate_has_its_limits():
    people = rs.cohort.Population([1, 0, 1, 0, 1, 0])
    estimate = rs.cohort.fit_outcome(rs.Surv([3, 5, 8, 2, 9, 7], [1, 1, 0, 1, 1, 0]), people)
    with pytest.raises(rs.CohortError, match="`lower` was given together with an Estimate"):
        e_value(estimate, 0.5)
