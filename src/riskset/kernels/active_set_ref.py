"""Minimise a penalised quadratic by an active set, written as the formulas read."""

import numpy as np

from riskset._types import Features, Index, Matrix, NewtonQuadratic

__all__ = ["exchange", "minimise_active", "update_factor"]

MIN_PIVOT = 1e-10
"""Least share of a column's curvature that the other active columns must leave it."""
JOIN_SHARE = 0.1
"""Violators join together if they violate by at least this share of the worst."""


def minimise_active(
    problem: NewtonQuadratic,
    tolerance: float,
    max_moves: int,
    active: Index,
    n_active: int,
    factor: Matrix,
    step: Features,
    image: Features,
) -> bool:
    r"""Minimise by a sequence of linear systems.

    The first `n_active` of `active` are the coordinates that are free: off zero or unpenalised, and
    inside the box. `factor` R (m, m), upper triangular, has in its first rows and columns
    :math:`R'R = B + \mathrm{diag}(l_2)` of these; m is the most that may be free. All three are
    changed, and have the coordinates that are free in the end, with -1 after the last of `active`.
    A move leads the free coordinates towards their joint minimum, up to the first that comes to
    zero or to the border of its box, and is free no more. At the joint minimum, the coordinates
    that violate their condition by more than `tolerance` become free. If there is none, `step` is
    the minimum. Returns whether it is: there may be more than `max_moves` moves, a move beyond the
    largest number, or a coordinate that should become free but repeats the free ones or finds no
    room. `factor` has digits only if it is.

    Notes
    -----
    The moves are those of Lee, Battle, Raina and Ng (2007), Advances in Neural Information
    Processing Systems 19, "Efficient sparse coding algorithms", who call it feature-sign search.
    O(m^2) a move.
    """
    curvature, gradient, beta, l1, l2, box = problem
    free = [int(j) for j in active[:n_active]]
    sign = np.sign(beta + step)
    left_out: set[int] = set()
    for _ in range(max_moves):
        hessian = curvature[np.ix_(free, free)] + np.diag(l2[free])
        slope = gradient - curvature @ step - l2 * (beta + step)
        move = np.linalg.solve(hessian, slope[free] - l1[free] * sign[free])
        if not np.isfinite(move).all():
            active[:] = -1
            return False
        hit, reach, to = -1, 1.0, 0.0
        for i, j in enumerate(free):
            x, d = beta[j] + step[j], move[i]
            if l1[j] > 0 and (x + d) * sign[j] < 0 and abs(x) <= reach * abs(d):
                hit, reach, to = i, abs(x / d), -beta[j]
            if abs(step[j] + d) > box[j]:
                border = np.copysign(box[j], d)
                if (border - step[j]) / d < reach:
                    hit, reach, to = i, max((border - step[j]) / d, 0.0), border
        step[free] += reach * move
        if hit >= 0:
            step[free.pop(hit)] = to
            continue
        image[:] = curvature @ step
        joining = _joining(problem, gradient - image, tolerance, step, [*free, *left_out])
        n_before = len(free)
        for j, side in joining:
            if len(free) == factor.shape[0] or _repeats(curvature, l2, free, j):
                left_out.add(j)
            else:
                free.append(j)
                sign[j] = side
        if len(free) == n_before:
            _store(curvature, l2, free, active, factor)
            return not left_out
    image[:] = curvature @ step
    active[:] = -1
    return False


def exchange(
    curvature: Matrix, l2: Features, active: Index, n_active: int, factor: Matrix, entering: Index
) -> bool:
    """Let coordinates leave a factor, and others enter.

    Those that leave have -1 in the first `n_active` of `active`, the others their places. `active`
    and `factor` are changed: see `minimise_active`. Returns False if a coordinate repeats others.
    """
    free = [int(j) for j in active[:n_active] if j >= 0]
    for j in entering:
        if _repeats(curvature, l2, free, int(j)):
            return False
        free.append(int(j))
    _store(curvature, l2, free, active, factor)
    return True


def update_factor(factor: Matrix, n: int, plus: Features, minus: Features) -> bool:
    """Let the first n rows and columns of R become the factor of ``R'R + uu' - vv'``, in place.

    `plus` u and `minus` v (n,) may be changed. Returns False if a pivot loses all but `MIN_PIVOT`
    of itself to v.

    References
    ----------
    Golub & Van Loan (2013), Matrix Computations, section 6.5.
    """
    square = factor[:n, :n].T @ factor[:n, :n] + np.outer(plus, plus)
    before = np.diag(np.linalg.cholesky(square)) ** 2
    try:
        lower = np.linalg.cholesky(square - np.outer(minus, minus))
    except np.linalg.LinAlgError:
        return False
    if (np.diag(lower) ** 2 <= MIN_PIVOT * before).any():
        return False
    factor[:n, :n] = lower.T
    return True


def _store(curvature: Matrix, l2: Features, free: list[int], active: Index, factor: Matrix) -> None:
    """The free coordinates and their factor, in place."""
    n = len(free)
    active[:n], active[n:] = free, -1
    hessian = curvature[np.ix_(free, free)] + np.diag(l2[free])
    factor[:n, :n] = np.linalg.cholesky(hessian).T


def _joining(
    problem: NewtonQuadratic,
    pull: Features,
    tolerance: float,
    step: Features,
    others: list[int],
) -> list[tuple[int, float]]:
    """Coordinates that become free, and the sign that each has or gets."""
    _, _, beta, l1, l2, box = problem
    x = beta + step
    slope = pull - l2 * x
    excess = np.where(
        x == 0, np.sign(slope) * np.maximum(np.abs(slope) - l1, 0), slope - l1 * np.sign(x)
    )
    excess[(np.abs(step) >= box) & (excess * step >= 0)] = 0
    excess[others] = 0
    least = max(tolerance, JOIN_SHARE * float(np.abs(excess).max(initial=0.0)))
    return [
        (int(j), float(np.sign(x[j]) if x[j] else np.sign(excess[j])))
        for j in np.flatnonzero(np.abs(excess) > tolerance)
        if abs(excess[j]) >= least
    ]


def _repeats(curvature: Matrix, l2: Features, free: list[int], j: int) -> bool:
    """Whether free coordinates leave a coordinate no curvature of its own."""
    hessian = curvature[np.ix_(free, free)] + np.diag(l2[free])
    across, whole = curvature[free, j], curvature[j, j] + l2[j]
    own = whole - across @ np.linalg.solve(hessian, across)
    return bool(own <= MIN_PIVOT * whole)
