"""Solutions along a sequence of penalties, each started from the one before and each certified."""

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from riskset._messages import Note
from riskset._runtime import one_blas_thread
from riskset._types import Features
from riskset.data.design import Design
from riskset.model.loss import Loss
from riskset.solve.fit import fit_by_newton
from riskset.solve.optimality import MIN_SIGNAL_PER_EVENT, Problem
from riskset.solve.prox_newton import PathMinimisation
from riskset.solve.result import Solution

__all__ = ["MaxStrength", "iterate_path", "strength_max"]


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
    minimise: Callable[..., Solution] | None = None,
) -> Iterator[Solution]:
    """Yield the solution of each penalty, in order.

    Penalties are arrays (p,) in the user's units; neighbours should be close, the strongest first.
    `report` is called with the number of the penalty, the number of steps on it, and the residual.
    `minimise` has the signature of `fit_by_newton`, the default.
    """
    minimise = minimise or functools.partial(fit_by_newton, method=PathMinimisation)
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
        start = solution
        yield replace(solution, curvature=None)  # one matrix for each point would be many


class MaxStrength(NamedTuple):
    """The end of a path at which it begins.

    The strength is 0 if no penalised column carries information. `is_null` says whether no
    penalised column changes the likelihood at this solution, to first order, so that it is the
    solution of every strength.
    """

    strength: float
    solution: Solution
    is_null: bool

    def notes(self) -> list[Note]:
        """What users should know about it."""
        if not self.is_null:
            return []
        text = (
            "no penalised covariate improves the likelihood: the gradient of each is 0 where all "
            "penalised coefficients are 0, so they are 0 for every strength of the penalty."
        )
        return [Note("no_signal", (), text)]


@one_blas_thread
def strength_max(
    design: Design,
    loss: Loss,
    factor: Features,
    *,
    tol: float = 1e-8,
    max_iter: int = 200,
    problem: Problem | None = None,
) -> MaxStrength:
    r"""Smallest L1 strength at which every penalised coefficient is 0, and that solution.

    .. math:: \lambda_{\max} = \max_j |g_j| / f_j

    over the penalised columns, whose factor f (p,) is above 0, with the gradient g at the fit of
    the unpenalised ones. If no gradient is larger than its rounding, every strength leaves nothing;
    the strength is then that of a gradient of the size that chance gives it, :math:`\max_j s_j
    \sqrt{d} / f_j`, with the number d of events and the standard deviation s of a column, which is
    where the training rows of a cross-validation have theirs.
    """
    problem = problem or Problem.prepare(design, loss)
    # Stronger than any gradient can be: sum over rows of |x| times the expected events.
    huge = 2.0 * np.abs(problem.gradient_at_zero * design.scale).max(initial=1.0)
    penalised = (factor > 0) & problem.informative
    while True:
        l1 = np.where(factor > 0, huge * np.maximum(factor, 1e-300), 0.0)
        solution = fit_by_newton(
            design, loss, l1, np.zeros_like(l1), tol=tol, max_iter=max_iter, problem=problem
        )
        if not solution.coef[penalised].any():
            break
        huge *= 10.0
    if not penalised.any():
        return MaxStrength(0.0, solution, False)
    gradient = np.abs(solution.gradient)
    # Of columns that are all penalised the gradient at 0 is exact, but for rounding.
    is_exact = bool((factor > 0).all())
    rounding = max(
        MIN_SIGNAL_PER_EVENT * loss.n_events, 0.0 if is_exact else tol * problem.kkt_scale
    )
    is_null = bool((gradient / problem.spread)[penalised].max() <= rounding)
    if is_null:
        gradient = problem.spread * np.sqrt(loss.n_events)
    strength = float(((gradient * design.scale)[penalised] / factor[penalised]).max())
    return MaxStrength(strength, solution, is_null)
