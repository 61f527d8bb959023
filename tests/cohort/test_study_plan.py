"""Plans of studies: their parts agree with each other, with published designs and by hand."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm

import riskset as rs
from riskset.cohort import mdrr, plan_study, power, required_events, required_people

FOLLOW_UP = {"rate": 0.03, "followup": 3.0, "accrual": 2.0, "dropout": 0.02, "competing": 0.05}


def test_published_designs():
    # Collett, Modelling Survival Data in Medical Research: 133 deaths.
    assert round(plan_study(0.57, power=0.9).events) == 133
    # gsDesign's nSurv (Lachin and Foulkes) for these arms: see test_sample_size.py.
    found = plan_study(0.5, rate=np.log(2) / 20, followup=10, accrual=20, power=0.9)
    assert abs(found.people - 227.6) < 2.5


@pytest.mark.parametrize("model", ["cox", "finegray"])
@pytest.mark.parametrize("hr", [0.6, 1.7])
def test_what_is_needed_has_the_power_that_was_asked_for(hr, model):
    test = {"alpha": 0.02, "two_sided": False, "n_outcomes": 2, "r_squared": 0.2}
    options = FOLLOW_UP | test | {"model": model, "power": 0.85}
    needed = plan_study(hr, 0.3, **options)
    assert needed.events == required_events(hr, 0.3, power=0.85, **test)
    assert needed == required_people(hr, 0.3, **options)
    exact = needed.events / (0.3 * needed.probability_target + 0.7 * needed.probability_comparator)
    back = plan_study(hr, 0.3, people=exact, **options)
    assert_allclose(back.events, needed.events, rtol=1e-12)
    assert_allclose(back.power, 0.85, rtol=1e-10)
    side = "above" if hr > 1 else "below"
    assert_allclose(getattr(back, f"detectable_{side}"), hr, rtol=1e-9)


def test_events_by_hand():
    found = plan_study(1.5, 0.5, events=100)
    z = norm.ppf(0.8) + norm.ppf(0.975)
    assert_allclose(found.detectable_above, np.exp(z * 0.2), rtol=1e-12)
    assert_allclose(found.detectable_below, np.exp(-z * 0.2), rtol=1e-12)
    assert_allclose(found.power, norm.cdf(np.log(1.5) / 0.2 - norm.ppf(0.975)), rtol=1e-12)
    assert found.detectable_above == mdrr(100, 0.5)
    assert found.power == power(1.5, 100, 0.5)
    assert found.people is None


def test_a_margin_of_non_inferiority():
    options = {"alpha": 0.025, "two_sided": False, "margin": 1.3}
    found = plan_study(1.0, events=456.1, **options)
    assert_allclose(found.power, 0.8, atol=1e-4)
    assert_allclose(found.detectable_below, 1.0, atol=1e-4)
    assert_allclose(found.detectable_above, 1.69, atol=1e-3)
    people = plan_study(1.0, people=9000, rate=0.03, followup=2, **options)
    again = plan_study(people.detectable_below, people=9000, rate=0.03, followup=2, **options)
    assert_allclose(again.power, 0.8, rtol=1e-8)


def test_people_behind_given_events():
    found = plan_study(1.4, 0.25, events=200, **FOLLOW_UP)
    back = plan_study(1.4, 0.25, people=found.people, **FOLLOW_UP)
    assert_allclose(back.events, 200, rtol=1e-12)
    assert_allclose([found.target, found.comparator], [found.people / 4, 0.75 * found.people])
    assert plan_study(None, events=200).power is None


def test_ratios_beyond_all_numbers_are_unknown():
    found = plan_study(1.5, events=1e-300)
    assert (found.detectable_above, found.detectable_below) == (None, None)
    assert_allclose(found.power, 0.025, rtol=1e-12)


def test_few_people_detect_nothing():
    found = plan_study(None, people=4, rate=0.001, followup=1.0)
    assert found.detectable_below is None
    # A larger hazard in the target cannot make events of people who are not there.
    assert found.detectable_above is None or found.detectable_above > 100


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "`hr` is missing"),
        ({"hr": 1.5, "events": 5, "people": 9}, "both given"),
        ({"hr": 1.5, "people": 9}, "`rate` is missing"),
        ({"hr": 1.5, "rate": 0.1}, "`followup` is missing"),
        ({"hr": 1.5, "people": -3, "rate": 0.1, "followup": 1}, "`people` must be"),
        ({"hr": 1.5, "share": 1}, "`share` must be"),
        ({"hr": 1.0}, "`hr` equals `margin`, the ratio of the null"),
        ({"hr": 1.5, "rate": 0.0, "followup": 1}, "`rate` must be"),
        ({"hr": 1.5, "events": 100, "rate": 0.1, "followup": 0}, "so nobody is followed"),
        ({"events": 100, "rate": 0.1, "followup": 0}, "so nobody is followed"),
        ({"people": 100, "rate": 0.1, "followup": 0}, "so nobody is followed"),
        ({"hr": 1.5, "events": 0}, "`events` must be a positive number, but it is 0"),
        ({"hr": 1.5, "events": float("nan")}, "`events` must be a positive number"),
        ({"hr": 1.5, "events": [50, 50]}, "`events` must be a positive number"),
        ({"people": 1, "rate": 0.1, "followup": 1}, "`people` must be a number of at least 2"),
        ({"hr": 1.5, "accrual": 2.0}, "`accrual` has no effect without `rate` and `followup`"),
        ({"hr": 1.5, "events": 9, "model": "finegray"}, "`model` has no effect"),
        ({"hr": 1.5, "events": 9, "model": "cause"}, "`model` must be"),
        ({"hr": 1.5, "events": 9, "power": 0.02}, "`power` must be above 0.025"),
        ({"hr": float("nan"), "events": 9}, "`hr` must be a positive number"),
    ],
)
def test_refused(options, words):
    with pytest.raises(rs.CohortError, match=words):
        plan_study(**options)
