"""The step of a Newton method: minimise the penalised quadratic on a working set."""

import numpy as np
import scipy.linalg as sla

from riskset._types import Features, Matrix
from riskset.kernels import descent_cpu as kernels

__all__ = ["newton_step"]

MAX_SWEEPS = 30
MAX_ROUNDS = 20


def newton_step(
    curvature: Matrix,
    gradient: Features,
    beta: Features,
    l1: Features,
    l2: Features,
    box: Features,
    tolerance: float,
) -> tuple[Features, Features]:
    """Minimiser of the quadratic in `descent_ref.minimise_quadratic`, and its image under B.

    Coordinate descent finds which coordinates are not at zero; if it is slow, because columns are
    correlated, the equations of those coordinates are solved at once.
    """
    # Coordinate descent alone may take very many sweeps where columns are correlated; a direct
    # solution alone does not know which coordinates are 0. In turns, each does its part.
    step, image = np.zeros(gradient.size), np.zeros(gradient.size)
    for round_ in range(MAX_ROUNDS):
        if round_ > 0 or not l1.any():
            _solve_free(curvature, gradient, beta, l1, l2, box, step, image)
        sweeps = kernels.minimise_quadratic(
            curvature, gradient, beta, l1, l2, box, tolerance, MAX_SWEEPS, step, image
        )
        if sweeps <= MAX_SWEEPS:
            break
    return step, image


def _solve_free(
    curvature: Matrix,
    gradient: Features,
    beta: Features,
    l1: Features,
    l2: Features,
    box: Features,
    step: Features,
    image: Features,
) -> None:
    """Move the coordinates that are off zero and inside the box to their joint optimum, in place.

    The move ends where the first of them would change its sign or leave the box.
    """
    now = beta + step
    free = np.flatnonzero(((now != 0.0) | (l1 == 0.0)) & (np.abs(step) < box))
    if free.size == 0:
        return
    b = curvature[np.ix_(free, free)]
    b[np.diag_indices(free.size)] += l2[free]
    downhill = gradient[free] - image[free] - l2[free] * now[free] - l1[free] * np.sign(now[free])
    try:
        move = sla.cho_solve(sla.cho_factor(b, check_finite=False), downhill, check_finite=False)
    except sla.LinAlgError:
        return
    if not np.isfinite(move).all():
        return
    target = now[free] + move
    with np.errstate(divide="ignore", invalid="ignore"):
        crossing = np.where(
            (l1[free] > 0) & (np.sign(target) != np.sign(now[free])), -now[free] / move, np.inf
        )
        leaving = np.where(
            move != 0.0, (box[free] - np.sign(move) * step[free]) / np.abs(move), np.inf
        )
    reach = min(1.0, float(crossing.min()), float(leaving.min()))
    step[free] += reach * move
    if reach < 1.0:
        # Land exactly on zero, so that coordinate descent sees it there.
        at_zero = free[crossing <= reach]
        step[at_zero] = -beta[at_zero]
    image[:] = curvature @ step
