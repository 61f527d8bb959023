"""Infinite estimates: found exactly when they exist, with the right limits."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from riskset.data.outcome import Outcome
from riskset.solve.fit import fit_by_newton
from riskset.solve.result import Solution
from solve.problems import RUNTIME, Random, separated_problems

pytestmark = pytest.mark.portability


def solve(problem: Random) -> Solution:
    return fit_by_newton(problem.design, problem.loss, problem.l1, problem.l2, tol=1e-10)


def climb(problem: Random, solution: Solution, reach: float) -> float:
    """Objective far out: finite coefficients re-fitted with the infinite ones held at +-reach."""
    infinite = ~np.isfinite(solution.coef)
    fixed = problem.x[:, infinite] @ (
        reach * np.sign(solution.coef[infinite]) / problem.spread[infinite]
    )
    rest = Random(
        problem.x[:, ~infinite],
        problem.outcome.replace(offset=problem.outcome.offset + fixed),
        problem.ties,
        problem.l1[~infinite],
        problem.l2[~infinite],
    )
    if not rest.x.shape[1]:
        return -rest.pass_at(np.zeros(0)).log_likelihood
    return solve(rest).objective


N_LIMITS = 40


def test_there_are_separated_problems() -> None:
    assert len(separated_problems()) >= N_LIMITS


@pytest.mark.parametrize("number", range(N_LIMITS))
def test_the_limit_is_the_limit(number: int) -> None:
    problem = list(separated_problems().values())[number]
    solution = solve(problem)
    assert solution.status == "infinite_estimate"
    infinite = ~np.isfinite(solution.coef)
    assert np.array_equal(infinite, solution.infinite != 0)
    assert "infinite" in {note.code for note in solution.notes}
    # No point does better than the limit, and points far out along one covariate approach it.
    if infinite.sum() == 1:
        far = climb(problem, solution, 1e5)
        assert far >= solution.objective - 1e-9 * max(1.0, abs(solution.objective))
        assert_allclose(far, solution.objective, rtol=1e-7, atol=1e-7)


def test_events_in_both_arms_do_not_hide_separation() -> None:
    # Everybody with x = 1 fails before anybody with x = 0: events in both arms.
    time = np.array([1.0, 2, 3, 4, 5, 6, 7, 8])
    x = np.array([[1.0, 1, 1, 1, 0, 0, 0, 0]]).T
    problem = Random(x, Outcome.build(time, np.ones(8)), "breslow", np.zeros(1), np.zeros(1))
    solution = solve(problem)
    assert solution.coef[0] == np.inf
    # In the limit each event is drawn from its own arm: 1/4! twice.
    assert_allclose(solution.log_likelihood, -2 * np.log(24), rtol=1e-14)


def test_a_direction_of_two_columns() -> None:
    # Neither column separates; their sum does: an event always has the largest x1 + x2 at risk.
    x = np.array([[2.0, 1], [1, 2], [2, 0], [0, 2], [0, 1], [1, 0]])
    time = np.array([1.0, 1, 2, 2, 3, 3])
    problem = Random(x, Outcome.build(time, np.ones(6)), "breslow", np.zeros(2), np.zeros(2))
    solution = solve(problem)
    assert solution.status == "infinite_estimate"
    assert solution.coef.tolist() == [np.inf, np.inf]


def test_late_entry_can_separate_and_can_undo_it() -> None:
    time = np.array([2.0, 4, 6, 8])
    event = np.array([1, 1, 1, 1])
    x = np.array([[1.0], [0.0], [1.0], [0.0]])
    whole = Random(x, Outcome.build(time, event), "breslow", np.zeros(1), np.zeros(1))
    assert solve(whole).status == "converged"
    entry = np.array([0.0, 0, 4, 0])  # row 2 is not at risk when row 1 fails
    late = Random(x, Outcome.build(time, event, entry=entry), "breslow", np.zeros(1), np.zeros(1))
    solution = solve(late)
    assert solution.coef[0] == np.inf
    # The limit: 1 of 1 exposed at t = 2; 1 of 2 unexposed at t = 4; 1 of 1 at 6; 1 of 1 at 8.
    assert_allclose(solution.log_likelihood, -np.log(2), rtol=1e-14)


def test_a_row_can_leave_and_return_in_the_limit() -> None:
    # x'd of the risk set's maximum is not monotone in time when rows enter late, so a row may
    # count in two runs of risk sets; the limit must add up both.
    time = np.array([10.0, 3, 5, 8, 9])
    entry = np.array([0.0, 0, 3, 0, 5])
    x = np.array([[0.0], [0.0], [1.0], [0.0], [0.0]])
    event = np.array([0, 1, 1, 1, 0])
    outcome = Outcome.build(time, event, entry=entry)
    solution = solve(Random(x, outcome, "breslow", np.zeros(1), np.zeros(1)))
    assert solution.coef[0] == np.inf
    # t = 3: rows 0, 1, 3 (all x = 0); t = 5: row 2 alone in the limit; t = 8: rows 0, 3, 4.
    assert_allclose(solution.log_likelihood, -2 * np.log(3), rtol=1e-14)


def test_a_strong_finite_effect_is_no_false_alarm() -> None:
    rng = np.random.default_rng(1)
    n = 300
    x = np.c_[rng.random(n) < 0.5, rng.normal(size=n)].astype(float)
    time = rng.exponential(np.exp(-6 * x[:, 0] - 2 * x[:, 1]))
    time[:2] = [1e-9, 1e9]  # one early event without the exposure, one late with it
    x[:2, 0] = [0, 1]
    problem = Random(x, Outcome.build(time, np.ones(n)), "efron", np.zeros(2), np.zeros(2))
    assert not problem.is_separated()
    solution = solve(problem)
    assert solution.status == "converged"
    assert problem.kkt(solution.coef) < 1e-8
    assert RUNTIME.n_threads == 1
