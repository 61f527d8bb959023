"""Solutions along a sequence of penalties, each started from the one before and each certified."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from riskset._runtime import one_blas_thread
from riskset._types import Features
from riskset.data.design import Design
from riskset.model.loss import Loss
from riskset.solve.newton import fit
from riskset.solve.optimality import Problem
from riskset.solve.result import Solution

__all__ = ["fit_path", "iterate_path", "strength_max"]


def iterate_path(
    design: Design,
    loss: Loss,
    penalties: Sequence[tuple[Features, Features]],
    *,
    tol: float = 1e-8,
    max_iter: int = 200,
    start: Solution | None = None,
    problem: Problem | None = None,
    report: Callable[[int, int, float], None] | None = None,
    minimise: Callable[..., Solution] = fit,
) -> Iterator[Solution]:
    """Yield the solution of each penalty, in order.

    Parameters
    ----------
    penalties : sequence of (l1, l2)
        Arrays (p,) in the user's units; neighbours should be close, the strongest first.
    report : callable, optional
        Called with the number of the penalty, the number of steps on it, and the residual.
    minimise : callable
        `newton.fit`, or another of its kind.
    """
    problem = problem or Problem.prepare(design, loss)
    for k, (l1, l2) in enumerate(penalties):
        solution = minimise(
            design,
            loss,
            l1,
            l2,
            tol=tol,
            max_iter=max_iter,
            start=start,
            problem=problem,
            report=None if report is None else lambda i, r, k=k: report(k, i, r),
        )
        start = replace(solution, curvature=None)  # one matrix for each point would be many
        yield start


def fit_path(
    design: Design,
    loss: Loss,
    penalties: Sequence[tuple[Features, Features]],
    *,
    tol: float = 1e-8,
    max_iter: int = 200,
    start: Solution | None = None,
    problem: Problem | None = None,
    report: Callable[[int, int, float], None] | None = None,
) -> list[Solution]:
    """All solutions of `iterate_path`."""
    return list(
        iterate_path(
            design,
            loss,
            penalties,
            tol=tol,
            max_iter=max_iter,
            start=start,
            problem=problem,
            report=report,
        )
    )


@one_blas_thread
def strength_max(
    design: Design,
    loss: Loss,
    factor: Features,
    *,
    tol: float = 1e-8,
    max_iter: int = 200,
    problem: Problem | None = None,
) -> tuple[float, Solution]:
    r"""Smallest L1 strength at which every penalised coefficient is 0, and that solution.

    .. math:: \lambda_{\max} = \max_j |g_j| / f_j

    over the penalised columns, with the gradient g at the fit of the unpenalised ones.

    Parameters
    ----------
    factor : (p,) float64
        Penalty factors; 0 = unpenalised.

    Returns
    -------
    strength : float
        0 if no penalised column carries information.
    solution : Solution
    """
    problem = problem or Problem.prepare(design, loss)
    # Stronger than any gradient can be: sum over rows of |x| times the expected events.
    huge = 2.0 * np.abs(problem.gradient_at_zero * design.scale).max(initial=1.0)
    penalised = (factor > 0) & problem.informative
    while True:
        l1 = np.where(factor > 0, huge * np.maximum(factor, 1e-300), 0.0)
        solution = fit(
            design, loss, l1, np.zeros_like(l1), tol=tol, max_iter=max_iter, problem=problem
        )
        if not solution.coef[penalised].any():
            break
        huge *= 10.0
    if not penalised.any():
        return 0.0, solution
    gradient = np.abs(solution.gradient * design.scale)
    return float((gradient[penalised] / factor[penalised]).max()), solution
