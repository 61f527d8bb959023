"""The proof that estimates are finite: never given where they are not, always where they are."""

from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose

from riskset.data.outcome import Outcome
from riskset.solve import aliasing
from riskset.solve.finite import FreeColumns, Rounding, extents
from riskset.solve.newton import fit
from riskset.solve.optimality import Problem
from solve.problems import Random, random_problem

PROBLEMS = [(s, p) for s in range(400) if (p := random_problem(s)) is not None and p.free.any()]
SEPARATED = [(s, p) for s, p in PROBLEMS if p.is_separated()]
FINITE = [(s, p) for s, p in PROBLEMS if not p.is_separated()]


def span_at(problem: Random, coef: np.ndarray) -> float | None:
    """Of the Newton step of the free columns, in the user's units; None without information."""
    design, loss = problem.design, problem.loss
    prepared = Problem.prepare(design, loss)
    aliased, _ = aliasing.find(
        prepared, problem.l1 / design.scale, problem.l2 / design.scale / design.scale
    )
    columns = np.flatnonzero(problem.free & ~aliased)
    if columns.size == 0:
        return None
    eta = problem.x @ coef + loss.offset
    free = FreeColumns.at(design, loss, eta, columns)
    if not free.are_estimable(prepared.spread[columns], loss.n_events):
        return None
    gradient = design.cross(loss.evaluate(eta).residual, columns, runtime=loss.runtime)
    step = free.step(gradient)
    span = free.span(step, loss)
    ranges, _ = extents(design, loss, columns)
    rounding = Rounding.of(loss, ranges)
    assert span <= free.most(np.abs(gradient), ranges, rounding) * (1 + 1e-9)
    return span


def test_one_column_by_hand() -> None:
    # One event among two rows at x = 1 and 0, at b: g = 1 - p, I = p (1 - p), so s = 1 / p > 1.
    x = np.array([[1.0], [0.0]])
    outcome = Outcome.build(np.array([1.0, 2.0]), np.array([1, 0]))
    problem = Random(x, outcome, "breslow", np.zeros(1), np.zeros(1))
    p = Fraction(3, 4)
    span = span_at(problem, np.array([np.log(3)]))
    assert span is not None
    assert_allclose(span, float(1 / p), rtol=1e-12)


@pytest.mark.parametrize("seed", [s for s, _ in SEPARATED])
def test_a_step_spans_at_least_one_wherever_an_estimate_is_infinite(seed: int) -> None:
    problem = dict(SEPARATED)[seed]
    rng = np.random.default_rng(seed)
    for size in (0.0, 0.5, 2.0):
        span = span_at(problem, size * rng.normal(size=problem.spread.size) / problem.spread)
        assert span is None or span >= 1 - 1e-6


def test_it_is_given_at_every_finite_solution() -> None:
    given = []
    for _, problem in FINITE:
        solution = fit(problem.design, problem.loss, problem.l1, problem.l2, tol=1e-9)
        if solution.status == "converged":
            span = span_at(problem, solution.coef)
            given.append(span is not None and span < 1e-2)
    assert len(given) > 100
    assert np.mean(given) > 0.95


@pytest.mark.parametrize("tol", [0.3, 1e-3, 1e-6])
def test_loose_fits_find_the_same_infinite_estimates(tol: float) -> None:
    for seed, problem in PROBLEMS:
        tight = fit(problem.design, problem.loss, problem.l1, problem.l2, tol=1e-10)
        loose = fit(problem.design, problem.loss, problem.l1, problem.l2, tol=tol)
        if "max_iter" in (tight.status, loose.status):
            continue
        assert (loose.infinite == tight.infinite).all(), seed
        again = fit(
            problem.design, problem.loss, problem.l1, problem.l2, tol=tol, start=loose
        )  # begins at its end
        assert (again.infinite == tight.infinite).all(), seed
