"""The step of a Newton method: minimise the penalised quadratic on a working set."""

import math

import numpy as np

from riskset._types import Features, Index, NewtonQuadratic
from riskset.kernels import descent_cpu as kernels
from riskset.solve.active_factor import ActiveFactor

__all__ = ["newton_step"]

MAX_SWEEPS = 30
"""Sweeps of coordinate descent where it is not known which coordinates are off zero."""
SWEEP_COST = 60
"""Where it is, m coordinates of q are off zero and at most m^2 / (60 q) sweeps are tried first:
they take a twentieth of the multiplications of the factor of an active set, one at a time."""
SWEEPS_AT_ONCE = 2
"""After so many sweeps their progress says whether those that are allowed will suffice."""
MAX_ROUNDS = 20


def newton_step(
    problem: NewtonQuadratic,
    tolerance: float,
    columns: Index | None = None,
    kept: ActiveFactor | None = None,
) -> tuple[Features, Features]:
    """Minimiser of a quadratic, and its image under B.

    `columns` (q,) are the columns of the design, for a factor that is `kept` from the step before
    to the one after: with it, few coordinates change. Else coordinate descent finds which are not
    at zero; if it is slow, because columns are correlated, the equations of those coordinates are
    solved at once.
    """
    # Coordinate descent is fast where columns are hardly correlated, or where it is not known which
    # coordinates are off zero; else an active set is. In turns, each does its part.
    step, image = np.zeros((2, problem.beta.size))
    if columns is None or kept is None:
        columns, kept = np.arange(step.size), ActiveFactor()
    if kept.goes_on(problem, columns, tolerance, step, image):
        return step, image
    step[:], image[:] = 0.0, 0.0
    n_free = int(np.count_nonzero((problem.beta != 0.0) | (problem.l1 == 0.0)))
    if n_free:
        most = n_free**2 // (SWEEP_COST * step.size)
        is_done = _descend_if_fast(problem, tolerance, most, step, image)
    else:
        is_done = _descend(problem, tolerance, MAX_SWEEPS, step, image)
    if is_done:
        return step, image
    if n_free:  # sweeps that do not suffice move too many coordinates off zero
        step[:], image[:] = 0.0, 0.0
    for _ in range(MAX_ROUNDS):
        if kept.begin(problem, columns, tolerance, step, image):
            break
        if _descend(problem, tolerance, MAX_SWEEPS, step, image):
            break
    return step, image


def _descend(
    problem: NewtonQuadratic, tolerance: float, n_sweeps: int, step: Features, image: Features
) -> bool:
    """Sweeps of coordinate descent; whether that is the end."""
    return kernels.minimise_quadratic(problem, tolerance, n_sweeps, step, image) <= n_sweeps


def _descend_if_fast(
    problem: NewtonQuadratic, tolerance: float, most: int, step: Features, image: Features
) -> bool:
    """Sweeps while they will reach the end within `most` at their rate; whether they did."""
    diagonal = problem.curvature.diagonal() + problem.l2
    last, left = np.inf, most
    while left > 0:
        n, before = min(SWEEPS_AT_ONCE, left), step.copy()
        if _descend(problem, tolerance, n, step, image):
            return True
        left -= n
        moved = float((np.abs(step - before) * diagonal).max())
        if moved >= last:
            return False
        # Each batch moves by `moved / last` of what the one before moved.
        if moved > tolerance > 0:
            needed = n * math.log(moved / tolerance) / math.log(last / moved)
            if needed > left:
                return False
        last = moved
    return False
