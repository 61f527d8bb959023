"""The exact conditional likelihood against sums over all sets in fractions, and in closed form."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose

from model.cohorts import RUNTIME
from model.test_derivatives import slope
from riskset.data.design import Design
from riskset.data.outcome import Outcome
from riskset.kernels import exact_ties_cpu as fast
from riskset.model.cox import CoxLoss
from riskset.model.exact_ties import ExactTiesLoss
from storages import Store, each_storage


def by_sets(
    hazard: list[Fraction], time: np.ndarray, event: np.ndarray, entry: np.ndarray
) -> tuple[Fraction, list[Fraction]]:
    """The likelihood, and the chances of each row to be among the events, summed over times."""
    value, chances = Fraction(1), [Fraction(0)] * time.size
    for t in np.unique(time[event]):
        at_risk = np.flatnonzero((time >= t) & (entry < t))
        dead = np.flatnonzero(event & (time == t))
        sets = list(itertools.combinations(at_risk.tolist(), dead.size))
        weights = [math.prod((hazard[i] for i in chosen), start=Fraction(1)) for chosen in sets]
        value *= math.prod((hazard[i] for i in dead), start=Fraction(1)) / sum(weights)
        for chosen, weight in zip(sets, weights, strict=True):
            for i in chosen:
                chances[i] += weight / sum(weights)
    return value, chances


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_all_sets_in_fractions(seed: int, late: bool) -> None:
    rng = np.random.default_rng(seed)
    n = 9
    time, event = rng.integers(1, 4, n).astype(float), rng.random(n) < 0.6
    event[0] = True
    entry = time - rng.choice([0.5, 1.5, 9.0], n) if late else np.full(n, -1.0)
    hazard = [Fraction(int(k), 8) for k in rng.integers(1, 40, n)]
    value, chances = by_sets(hazard, time, event, entry)
    outcome = Outcome.build(time, event, entry=entry if late else None)
    eta = np.log(np.array(hazard, dtype=float))
    now = ExactTiesLoss(outcome, "exact", RUNTIME).evaluate(eta)
    assert_allclose(now.log_likelihood, math.log(value), rtol=1e-12)
    assert_allclose(now.residual, event - np.array(chances, dtype=float), atol=1e-13)


def several_times(n: int, *, seed: int = 1, late: bool = False, strata: int = 1) -> Outcome:
    rng = np.random.default_rng(seed)
    time, event = rng.integers(1, 9, n).astype(float), rng.random(n) < 0.5
    entry = time - rng.choice([0.5, 2.0, 20.0], n) if late else None
    return Outcome.build(time, event, entry=entry, stratum=rng.integers(0, strata, n))


@pytest.mark.parametrize("strata", [1, 6])
@pytest.mark.parametrize("late", [False, True])
def test_derivatives(late: bool, strata: int) -> None:
    n = 80
    loss = ExactTiesLoss(several_times(n, late=late, strata=strata), "exact", RUNTIME)
    rng = np.random.default_rng(2)
    eta = rng.normal(size=n)
    now = loss.evaluate(eta)
    for along in rng.normal(size=(3, n)):
        found = slope(lambda e: loss.evaluate(e).log_likelihood, eta, along, 2e-3)
        assert_allclose(now.residual @ along, found, rtol=1e-7, atol=1e-7)
        found = -slope(lambda e: loss.evaluate(e).residual, eta, along, 2e-3)
        product = fast.exact_products(eta, along[:, None], loss.risk, RUNTIME)[:, 0]
        assert_allclose(product, found, rtol=1e-6, atol=1e-8)


@each_storage
def test_the_information_is_the_slope_of_the_gradient(store: Store) -> None:
    n = 60
    rng = np.random.default_rng(3)
    x = np.column_stack(
        [rng.random(n) < 0.3, rng.normal(size=n) * (rng.random(n) < 0.5), rng.normal(size=n)]
    )
    design, loss = store(x), ExactTiesLoss(several_times(n, strata=2), "exact", RUNTIME)
    beta, columns = np.array([0.3, -0.2, 0.5]), np.arange(3)
    matrix = loss.information(design, design.dot(beta, runtime=RUNTIME), columns)

    def gradient(b: np.ndarray) -> np.ndarray:
        eta = design.dot(b, runtime=RUNTIME)
        return design.cross(loss.evaluate(eta).residual, runtime=RUNTIME) * design.scale

    for j in columns:
        found = -slope(gradient, beta, np.eye(3)[j], 1e-3)
        assert_allclose(matrix[j] * design.scale * design.scale[j], found, rtol=1e-7, atol=1e-7)


@each_storage
@pytest.mark.parametrize("late", [False, True])
def test_a_weight_of_two_is_a_row_twice(store: Store, late: bool) -> None:
    n = 40
    rng = np.random.default_rng(4)
    outcome = several_times(n, late=late)
    weight = rng.integers(0, 4, n).astype(float)
    x = np.column_stack([rng.random(n) < 0.4, rng.normal(size=n)])
    rows = np.repeat(np.arange(n), weight.astype(int))
    once = ExactTiesLoss(outcome.reweighted(weight), "exact", RUNTIME)
    entry = outcome.entry[rows] if late else None
    repeated = Outcome.build(outcome.time[rows], outcome.event[rows], entry=entry)
    often = ExactTiesLoss(repeated, "exact", RUNTIME)
    eta, columns = x @ [0.5, -0.3], np.arange(2)
    one, many = once.evaluate(eta), often.evaluate(eta[rows])
    assert_allclose(one.log_likelihood, many.log_likelihood, rtol=1e-12)
    assert_allclose(one.residual, np.bincount(rows, many.residual, n), atol=1e-12)
    a = once.information(store(x), eta, columns)
    b = often.information(store(x[rows]), eta[rows], columns)
    scale = store(x).scale / store(x[rows]).scale
    assert_allclose(a * scale * scale[:, None], b, rtol=1e-10)


def test_one_event_at_a_time_is_breslow() -> None:
    time = np.random.default_rng(5).permutation(50) + 1.0
    outcome = Outcome.build(time, time % 3 > 0, entry=time - 20.0)
    eta = np.sin(time)
    exact = ExactTiesLoss(outcome, "exact", RUNTIME).evaluate(eta)
    breslow = CoxLoss(outcome, "breslow", RUNTIME).evaluate(eta)
    assert_allclose(exact.log_likelihood, breslow.log_likelihood, rtol=1e-13)
    assert_allclose(exact.residual, breslow.residual, atol=1e-13)


@pytest.mark.parametrize("n_times", [1, 3])
def test_no_size_of_a_tie_overflows(n_times: int) -> None:
    # Of equal rows every set is equally likely: one over the number of sets.
    n, events = 6000, 1500
    time = np.repeat(np.arange(n_times) + 1.0, n // n_times)
    event = np.arange(n) % (n // n_times) < events // n_times
    loss = ExactTiesLoss(Outcome.build(time, event), "exact", RUNTIME)
    m, expected = events // n_times, 0.0
    for k in range(n_times):
        at_risk = n - k * (n // n_times)
        sets = math.lgamma(at_risk + 1) - math.lgamma(m + 1) - math.lgamma(at_risk - m + 1)
        expected -= sets
    now = loss.evaluate(np.full(n, 300.0))
    assert_allclose(now.log_likelihood, expected, rtol=1e-10)
    assert_allclose(now.expected[time == 1.0], m / n, rtol=1e-9)
    # Two kinds of rows: the variance of the number of the first kind is hypergeometric.
    x = (np.arange(n) % 2 == 0) * 1.0
    if n_times == 1:
        found = loss.information(Design.from_dense(x[:, None]), np.zeros(n), np.array([0]))
        variance = m * 0.25 * (n - m) / (n - 1)
        assert_allclose(found[0, 0], variance, rtol=1e-9)


def test_hazards_that_differ_beyond_floating_point() -> None:
    # Rows so much likelier than others that they have the events for sure, up to one.
    eta = np.array([800.0, 0.0, -800.0, 0.0, 900.0])
    event = np.array([True, True, False, False, True])
    now = ExactTiesLoss(Outcome.build(np.ones(5), event), "exact", RUNTIME).evaluate(eta)
    assert_allclose(now.log_likelihood, -math.log(2.0), rtol=1e-13)
    assert_allclose(now.expected, [1, 0.5, 0, 0.5, 1], atol=1e-15)
