"""Power and sample size against published designs, closed forms and simulation."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.stats import norm

import riskset as rs
from riskset.cohort import (
    event_probability,
    expected_se,
    mdrr,
    power,
    required_events,
    required_people,
)


def test_published_numbers_of_events():
    # Collett, Modelling Survival Data in Medical Research: 133 deaths.
    assert round(required_events(0.57, 0.5, power=0.9)) == 133
    # Vignette "fixed_follow-up" of the R package lrstat: 38.7 events with an allocation of 3:1.
    assert round(required_events(0.3, 0.75, power=0.9), 1) == 38.7


def test_a_published_design_with_accrual():
    # gsDesign's nSurv(method = "LachinFoulkes"), lambdaC = log(2) / 20, hr = 0.5, T = 30, R = 20:
    # N = 227.6 and D = 88.7, whose ratio does not depend on the variance that it uses.
    rate = np.log(2) / 20
    arms = [event_probability(rate, 10, accrual=20, hr=hr) for hr in (0.5, 1.0)]
    assert_allclose(np.mean(arms), 88.7 / 227.6, rtol=6e-4)
    found = required_people(0.5, 0.5, rate, 10, accrual=20, power=0.9)
    assert abs(found.people - 227.6) < 2.5
    assert (found.probability_target, found.probability_comparator) == tuple(arms)


def test_events_power_and_detectable_ratio_are_one_formula():
    options = {"alpha": 0.01, "two_sided": False, "margin": 1.2, "n_outcomes": 3, "r_squared": 0.3}
    events = required_events(1.9, 0.3, power=0.85, **options)
    assert_allclose(power(1.9, events, 0.3, **options), 0.85, rtol=1e-12)
    assert_allclose(mdrr(events, 0.3, power=0.85, **options), 1.9, rtol=1e-12)


def test_by_hand():
    z = norm.ppf(0.8) + norm.ppf(0.975)
    assert_allclose(required_events(2.0, 0.2), z**2 / (np.log(2) ** 2 * 0.16), rtol=1e-12)
    # Five outcomes have alpha = 0.01 each, and covariates that explain a half double the events.
    assert_allclose(
        required_events(2.0, 0.2, n_outcomes=5, r_squared=0.5),
        2 * required_events(2.0, 0.2, alpha=0.01),
        rtol=1e-12,
    )
    assert required_events(0.5, 0.2) == pytest.approx(required_events(2.0, 0.2), rel=1e-12)


def test_strata_add_up():
    assert_allclose(expected_se([40, 60], [0.5, 0.2]), (40 * 0.25 + 60 * 0.16) ** -0.5, rtol=1e-14)
    events = required_events(1.5, [0.5, 0.2], strata=[4, 6])
    parts = [0.4 * events, 0.6 * events]
    assert_allclose(power(1.5, parts, [0.5, 0.2]), 0.8, rtol=1e-12)
    assert_allclose(mdrr(parts, [0.5, 0.2]), 1.5, rtol=1e-12)


def integral(rate, followup, accrual, dropout, competing, hr):
    """P(event observed), its two integrals done by QUADPACK."""
    total = rate * hr + competing + dropout

    def until(u):
        return quad(lambda t: rate * hr * np.exp(-total * t), 0, u, epsabs=1e-13)[0]

    if not accrual:
        return until(followup)
    return quad(until, followup, followup + accrual, epsabs=1e-12)[0] / accrual


@pytest.mark.parametrize("accrual", [0.0, 1.5])
@pytest.mark.parametrize(("dropout", "competing"), [(0.0, 0.0), (0.1, 0.0), (0.05, 0.3)])
@pytest.mark.parametrize("followup", [0.0, 2.0])
def test_event_probability_is_the_integral(followup, accrual, dropout, competing):
    found = event_probability(
        0.2, followup, accrual=accrual, dropout=dropout, competing=competing, hr=1.7
    )
    expected = integral(0.2, followup, accrual, dropout, competing, 1.7)
    assert_allclose(found, expected, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("accrual", [0.0, 1.5])
def test_a_subdistribution_ratio_acts_on_the_risk(accrual):
    options = {"accrual": accrual, "dropout": 0.1, "model": "finegray"}
    # Without competing events, the subdistribution is the distribution.
    for followup in (0.0, 2.0):
        assert_allclose(
            event_probability(0.2, followup, hr=0.4, **options),
            event_probability(0.2, followup, hr=0.4, accrual=accrual, dropout=0.1),
            rtol=1e-10,
            atol=1e-14,
        )
    # With a ratio of 1, the model does not matter.
    assert_allclose(
        event_probability(0.2, 2.0, competing=0.3, **options),
        event_probability(0.2, 2.0, competing=0.3, accrual=accrual, dropout=0.1),
        rtol=1e-10,
    )
    # Followed to the same time without dropout, the risk is 1 - (1 - F)^h.
    risk = event_probability(0.2, 2.0, competing=0.3)
    found = event_probability(0.2, 2.0, competing=0.3, hr=1.8, model="finegray")
    assert_allclose(found, 1 - (1 - risk) ** 1.8, rtol=1e-12)


@pytest.mark.parametrize("competing", [0.0, 0.1])
def test_a_subdistribution_ratio_with_large_hazards(competing):
    found = event_probability(1e3, 10.0, competing=competing, hr=0.1, model="finegray")
    risk = 1e3 / (1e3 + competing) * -np.expm1(-(1e3 + competing) * 10.0)
    assert_allclose(found, 1 - (1 - risk) ** 0.1, rtol=1e-10)


def test_without_information():
    assert expected_se(0, 0.5) == np.inf
    assert mdrr(0, 0.5) == np.inf
    assert str(event_probability(0.1, 0.0)) == "0.0"
    # One stratum without comparators adds nothing.
    assert_allclose(
        required_events(1.5, [0.5, 1.0], strata=[1, 1]), 2 * required_events(1.5, 0.5), rtol=1e-14
    )


def test_the_tail_of_a_test_without_an_effect():
    assert rs.cohort.RatioTest(alpha=0.06, n_outcomes=3).tail == pytest.approx(0.01, rel=1e-14)
    assert rs.cohort.RatioTest(alpha=0.06, two_sided=False).tail == pytest.approx(0.06, rel=1e-14)
    # Just above it, hardly any events are needed.
    assert 0 < required_events(1.5, 0.5, power=0.025 + 1e-6) < 1e-7


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: required_events(1.0, 0.5), "`hr` equals `margin`, the ratio of the null"),
        (lambda: required_events(-1.0, 0.5), "`hr` must be a positive number"),
        (lambda: required_events(1.5, 1.2), "`share` must be between 0 and 1"),
        (lambda: required_events(1.5, "half"), "`share` must be a number, or a number for each"),
        (lambda: required_events(1.5, []), "`share` must be a number, or a number for each"),
        (lambda: required_events(1.5, 0.5, two_sided="no"), "`two_sided` must be True or False"),
        (lambda: required_people(1.5, [0.5], 0.1, 1.0), "`share` must be a number between 0 and 1"),
        (lambda: required_events(1.5, [0.5, 0.4]), "`strata` is missing"),
        (lambda: required_events(1.5, [0.5, 0.4], strata=[1]), "`strata` must have a proportion"),
        (lambda: required_events(1.5, 0.5, power=1.0), "`power` must be a number above 0 and bel"),
        (lambda: required_events(1.5, 0.5, power=0.01), "`power` must be above 0.025"),
        (lambda: mdrr(300, 0.5, power=0.025), "`power` must be above 0.025"),
        (lambda: required_events(1.5, 0.0), "so that an arm is empty"),
        (lambda: required_events(1.5, [0.0, 1.0], strata=[1, 1]), "so that an arm is empty"),
        (lambda: power(1.5, 100, 1.0), "so that an arm is empty"),
        (lambda: power(1.5, 0, 0.5), "`events` is 0, and without events there is no test"),
        (lambda: required_events(1.5, 0.5, margin=0.0), "`margin` must be a number above 0"),
        (lambda: required_events(1.5, 0.5, margin=np.inf), "`margin` must be a number above 0"),
        (lambda: required_people(1.5, 0.5, 0.1, 0.0), "so nobody is followed"),
        (lambda: required_people(1.5, 0.5, 1e-300, 1e-300), "probability of an outcome is 0"),
        (lambda: event_probability(0.1, np.nan), "`followup` must be a number"),
        (lambda: required_events(1.5, 0.5, n_outcomes=0), "`n_outcomes` must be"),
        (lambda: required_events(1.5, 0.5, r_squared=1.0), "`r_squared` must be"),
        (lambda: power(1.5, -3, 0.5), "`events` must not be negative"),
        (lambda: power(1.5, [10, 20], 0.5), "`share` must have 2 values"),
        (lambda: mdrr(10, 0.5, alpha=0.0), "`alpha` must be a number above 0 and below 1"),
        (lambda: event_probability(0.0, 1.0), "`rate` must be a positive number"),
        (lambda: event_probability(0.1, 1.0, dropout=-1.0), "`dropout` must be a number"),
        (lambda: event_probability(0.1, 1.0, model="cause"), "`model` must be"),
    ],
)
def test_refused(call, words):
    with pytest.raises(rs.InputError, match=words):
        call()


@pytest.mark.slow  # the formulas are held to published designs above
@pytest.mark.parametrize("competing", [0.0, 0.15])
def test_power_by_simulation(competing):
    design = {"accrual": 1.0, "dropout": 0.05, "competing": competing}
    found = required_people(1.6, 0.4, 0.1, 2.0, **design)
    rng = np.random.default_rng(11)
    target = np.arange(found.people) < found.target
    n_events, significant, repeats = [], 0, 400
    for _ in range(repeats):
        hazards = (0.1 * np.where(target, 1.6, 1.0), competing + 0.05)
        event, other = (rng.exponential(1 / h, found.people) for h in hazards)
        end = np.minimum(other, 2.0 + rng.uniform(0, 1, found.people))
        y = rs.Surv(np.minimum(event, end), event <= end)
        model = rs.Cox().fit(target[:, None].astype(float), y)
        significant += model.coef_[0] / model.standard_error_[0] > norm.ppf(0.975)
        n_events.append(int((event <= end).sum()))
    assert_allclose(np.mean(n_events), found.events, rtol=0.02)
    # Four standard errors of the simulation, and the error of the approximation by Schoenfeld.
    assert abs(significant / repeats - 0.8) < 4 * np.sqrt(0.8 * 0.2 / repeats) + 0.01


def test_a_probability_is_at_most_1():
    assert rs.cohort.event_probability(0.1, 2.0, hr=200.0, model="finegray", competing=0.1) <= 1
    test = {"two_sided": np.True_}
    assert rs.cohort.mdrr(100, 0.5, **test) == rs.cohort.mdrr(100, 0.5)
