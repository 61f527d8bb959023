"""The step of a Newton method: minimise the penalised quadratic on a working set."""

import math

import numpy as np
import scipy.linalg as sla

from riskset._types import Features, NewtonQuadratic
from riskset.kernels import active_set_cpu
from riskset.kernels import descent_cpu as kernels

__all__ = ["newton_step"]

MAX_SWEEPS = 30
"""Sweeps of coordinate descent where it is not known which coordinates are off zero."""
SWEEP_COST = 60
"""Where it is, m coordinates of q are off zero and at most m^2 / (60 q) sweeps are tried first:
they take a twentieth of the multiplications of the factor of an active set, one at a time."""
SWEEPS_AT_ONCE = 2
"""After so many sweeps their progress says whether those that are allowed will suffice."""
MAX_MOVES = 100
"""Moves of an active set before coordinate descent takes its turn."""
MAX_ROUNDS = 20


def newton_step(problem: NewtonQuadratic, tolerance: float) -> tuple[Features, Features]:
    """Minimiser of a quadratic, and its image under B.

    Coordinate descent finds which coordinates are not at zero; if it is slow, because columns are
    correlated, the equations of those coordinates are solved at once.
    """
    # Coordinate descent is fast where columns are hardly correlated, or where it is not known which
    # coordinates are off zero; else an active set is. In turns, each does its part.
    step, image = np.zeros((2, problem.beta.size))
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
        if _finish(problem, tolerance, step, image):
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


def _finish(problem: NewtonQuadratic, tolerance: float, step: Features, image: Features) -> bool:
    """Go on from the coordinates that are off zero and inside the box; whether that is the end."""
    curvature, _, beta, l1, l2, box = problem
    free = np.flatnonzero(((beta + step != 0.0) | (l1 == 0.0)) & (np.abs(step) < box))
    n = free.size
    b = np.empty((n, n))
    kernels.copy_block(curvature, free, b, np.arange(n))
    b[np.diag_indices(n)] += l2[free]
    lower, failed = sla.lapack.dpotrf(b.T, lower=1, clean=0, overwrite_a=1)
    if failed or not np.isfinite(np.diag(lower)).all():
        return False
    capacity = min(n + MAX_MOVES, beta.size)
    factor, active = np.empty((capacity, capacity)), np.empty(capacity, dtype=np.int64)
    factor[:n, :n], active[:n] = lower.T, free
    return active_set_cpu.minimise_active(
        problem, tolerance, MAX_MOVES, active, n, factor, step, image
    )
