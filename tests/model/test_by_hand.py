"""Two to four rows, with the answer written out as fractions."""

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose

from riskset._runtime import Runtime
from riskset.data.design import Design
from riskset.data.outcome import Outcome
from riskset.model.cox import CoxLoss, Ties

RUNTIME = Runtime(1)


def check(
    outcome: Outcome,
    ties: Ties,
    hazard_ratio: list[int],
    *,
    likelihood: Fraction,
    expected: list[Fraction],
    hazard: list[Fraction | None],
    x: list[float],
    information: Fraction,
) -> None:
    """The whole evaluation, and again with eta so large that exp overflows.

    `hazard` has an entry for each group, latest first; None for a group without events.
    """
    loss = CoxLoss(outcome, ties, RUNTIME)
    design = Design.from_columns({"x": np.array(x)})
    observed = outcome.weight * outcome.is_event
    want = np.array([float(e) for e in expected])
    for shift in (0.0, 800.0, -800.0):
        eta = np.log(hazard_ratio) + shift
        now = loss.evaluate(eta)
        # Rounding eta + 800 costs digits: 800 has three of the sixteen.
        tolerance = {"rtol": 1e-12 if shift else 1e-14, "atol": 1e-12 if shift else 1e-15}
        assert_allclose(now.log_likelihood, math.log(likelihood), **tolerance)
        assert_allclose(now.expected, want, **tolerance)
        assert_allclose(now.residual, observed - want, **tolerance)
        logs = [-math.inf if h is None else math.log(h) for h in hazard]
        assert_allclose(now.log_hazard + shift, logs, **tolerance)
        found = loss.information(design, eta, np.array([0])) * design.scale**2
        assert_allclose(found, float(information), **tolerance)


@pytest.mark.parametrize("ties", ["breslow", "efron"])
def test_two_rows(ties: Ties) -> None:
    """The first to have the event is one of two with hazards 3 and 1."""
    check(
        Outcome.build([1, 2], [1, 0]),
        ties,
        [3, 1],
        likelihood=Fraction(3, 4),
        expected=[Fraction(3, 4), Fraction(1, 4)],
        hazard=[Fraction(1, 4)],
        x=[1, 0],
        information=Fraction(3, 16),
    )


@pytest.mark.parametrize("ties", ["breslow", "efron"])
def test_one_row(ties: Ties) -> None:
    check(
        Outcome.build([5], [1]),
        ties,
        [7],
        likelihood=Fraction(1),
        expected=[Fraction(1)],
        hazard=[Fraction(1, 7)],
        x=[1],
        information=Fraction(0),
    )


def test_a_tie_by_breslow() -> None:
    """Hazards 1 and 2 have the event at once, beside 3: D = 6 twice."""
    check(
        Outcome.build([1, 1, 2], [1, 1, 0]),
        "breslow",
        [1, 2, 3],
        likelihood=Fraction(1 * 2, 6 * 6),
        expected=[Fraction(2, 6), Fraction(4, 6), Fraction(6, 6)],
        hazard=[Fraction(2, 6)],
        x=[1, 0, 0],
        information=2 * Fraction(1, 6) * Fraction(5, 6),
    )


def test_a_tie_by_efron() -> None:
    """The same; the second term has half of both tied rows: D = 6, then 9/2."""
    seen, seen_tied = (
        Fraction(1, 6) + Fraction(2, 9),
        Fraction(1, 6) + Fraction(1, 2) * Fraction(2, 9),
    )
    check(
        Outcome.build([1, 1, 2], [1, 1, 0]),
        "efron",
        [1, 2, 3],
        likelihood=Fraction(1 * 2) / (6 * Fraction(9, 2)),
        expected=[seen_tied, 2 * seen_tied, 3 * seen],
        hazard=[seen],
        x=[1, 0, 0],
        information=Fraction(1, 6) * Fraction(5, 6) + Fraction(1, 9) * Fraction(8, 9),
    )


@pytest.mark.parametrize("ties", ["breslow", "efron"])
def test_late_entry(ties: Ties) -> None:
    """The third row enters at the first event's time, and is not at risk there."""
    check(
        Outcome.build([1, 3, 4], [1, 1, 0], entry=[0, 0, 1]),
        ties,
        [1, 2, 4],
        likelihood=Fraction(1, 3) * Fraction(2, 6),
        expected=[Fraction(1, 3), Fraction(2, 3) + Fraction(2, 6), Fraction(4, 6)],
        hazard=[Fraction(1, 6), Fraction(1, 3)],
        x=[0, 1, 0],
        information=Fraction(1, 3) * Fraction(2, 3) + Fraction(2, 6) * Fraction(4, 6),
    )


@pytest.mark.parametrize("ties", ["breslow", "efron"])
def test_strata(ties: Ties) -> None:
    """Two strata with one event each, and a third of one censored row."""
    check(
        Outcome.build([1, 2, 2, 3, 9], [1, 0, 1, 0, 0], stratum=["a", "a", "b", "b", "c"]),
        ties,
        [1, 1, 3, 1, 5],
        likelihood=Fraction(1, 2) * Fraction(3, 4),
        expected=[Fraction(1, 2), Fraction(1, 2), Fraction(3, 4), Fraction(1, 4), Fraction(0)],
        hazard=[Fraction(1, 2), Fraction(1, 4), None],
        x=[1, 0, 1, 0, 1],
        information=Fraction(1, 4) + Fraction(3, 16),
    )


@pytest.mark.parametrize("ties", ["breslow", "efron"])
def test_case_weights(ties: Ties) -> None:
    """Weights 2 and 3 at equal hazards: D = 5, and the event counts twice."""
    check(
        Outcome.build([1, 2], [1, 0], weight=[2, 3]),
        ties,
        [1, 1],
        likelihood=Fraction(1, 5**2),
        expected=[2 * Fraction(2, 5), 2 * Fraction(3, 5)],
        hazard=[Fraction(2, 5)],
        x=[1, 0],
        information=2 * Fraction(2, 5) * Fraction(3, 5),
    )


def test_weighted_efron_takes_the_mean_weight_of_the_tied() -> None:
    """Tied weights 1 and 3 beside 2, and a tied row of weight 0, which does not count: m = 2."""
    seen, seen_tied = (
        Fraction(2, 6) + Fraction(2, 4),
        Fraction(2, 6) + Fraction(1, 2) * Fraction(2, 4),
    )
    check(
        Outcome.build([1, 1, 2, 1], [1, 1, 0, 1], weight=[1, 3, 2, 0]),
        "efron",
        [1, 1, 1, 1],
        likelihood=Fraction(1, (6 * 4) ** 2),
        expected=[seen_tied, 3 * seen_tied, 2 * seen, Fraction(0)],
        hazard=[seen],
        x=[1, 0, 0, 0],
        information=2 * (Fraction(1, 6) * Fraction(5, 6) + Fraction(1, 8) * Fraction(7, 8)),
    )


@pytest.mark.parametrize("ties", ["breslow", "efron"])
def test_censored_at_an_event_time_is_still_at_risk(ties: Ties) -> None:
    check(
        Outcome.build([2, 2, 1, 3], [1, 0, 0, 0]),
        ties,
        [1, 1, 9, 2],
        likelihood=Fraction(1, 4),
        expected=[Fraction(1, 4), Fraction(1, 4), Fraction(0), Fraction(2, 4)],
        hazard=[Fraction(1, 4), None],
        x=[1, 0, 1, 0],
        information=Fraction(1, 4) * Fraction(3, 4),
    )


def test_the_sizes_of_eta_that_one_exponent_cannot_hold() -> None:
    """Hazards e^1000, 1 and e^-1000, in this order and in reverse: products of 1 and of e^-1000."""
    loss = CoxLoss(Outcome.build([1, 2, 3], [1, 1, 1]), "efron", RUNTIME)
    assert loss.evaluate(np.array([1000.0, 0.0, -1000.0])).log_likelihood == 0.0
    now = loss.evaluate(np.array([-1000.0, 0.0, 1000.0]))
    assert now.log_likelihood == -2000.0 - 1000.0
    assert_allclose(now.residual, [1.0, 1.0, -2.0], rtol=0, atol=1e-300)
