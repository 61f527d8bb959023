"""Optimality conditions, steps and secant pairs of every lane, as the plain formulas.

Arrays (R, q) hold the columns of each lane; `column` (q,) int32 are their numbers in the design,
which decide the order of sums.
"""

import numpy as np

from riskset._types import AnyArray, Features, Matrix, Rows

__all__ = [
    "deviations",
    "learn",
    "move_columns",
    "place_columns",
    "predicted_gains",
    "violations",
    "widen",
]


def violations(
    gradient: Matrix,
    beta: Matrix,
    l1: Features,
    l2: Features,
    spread: Matrix,
    counts: AnyArray,
    unit: Rows,
    n_columns: int,
    n_lanes: int,
    violation: Matrix,
    largest: Rows,
) -> None:
    r"""Relative violation of each optimality condition, and the largest of each lane.

    With :math:`u = g - l_2 \beta`, it is :math:`|u - l_1 \mathrm{sign}(\beta)|` where :math:`\beta
    \ne 0`, else :math:`\max(|u| - l_1, 0)`; divided by the column's `spread` and the lane's `unit`.
    A gradient that is not a number violates it without bounds. Columns whose `counts` (R, q) is 0
    have no condition.
    """
    u = gradient - l2 * beta
    off = np.abs(u - l1 * np.sign(beta))
    v = np.where(beta != 0.0, off, np.maximum(np.abs(u) - l1, 0.0))
    v = np.where(np.isnan(u), np.inf, v)
    violation[:] = np.where(counts > 0, v / spread / unit[:, None], 0.0)
    largest[:] = violation.max(axis=1, initial=0.0)


def move_columns(
    column: AnyArray,
    beta: Matrix,
    step: Matrix,
    share: Rows,
    l1: Features,
    l2: Features,
    n_columns: int,
    n_lanes: int,
    moved: Matrix,
    penalties: Rows,
) -> None:
    """``beta + share step``, and its penalty (R,)."""
    moved[:] = beta + share[:, None] * step
    penalties[:] = (l1 * np.abs(moved) + 0.5 * l2 * moved**2).sum(axis=1)


def predicted_gains(
    column: AnyArray,
    gradient: Matrix,
    beta: Matrix,
    step: Matrix,
    l1: Features,
    l2: Features,
    n_columns: int,
    n_lanes: int,
    gains: Rows,
) -> None:
    """First-order gain of the whole step (R,): of the likelihood, less that of the penalty."""
    new = beta + step
    change = l1 * (np.abs(new) - np.abs(beta)) + 0.5 * l2 * (new**2 - beta**2)
    gains[:] = (gradient * step - change).sum(axis=1)


def learn(
    column: AnyArray,
    step: Matrix,
    image: Matrix,
    before: Matrix,
    gradient: Matrix,
    mine: AnyArray,
    share: Rows,
    is_live: AnyArray,
    n_columns: int,
    max_pairs: int,
    n_lanes: int,
    n_pairs: AnyArray,
    pairs: AnyArray,
) -> None:
    r"""Keep the secant pair of each lane's step, if it is a sensible one (BFGS in factored form).

    With s the step taken, Bs its image and y the change of the negative gradient along it, the lane
    gains the vectors :math:`y / \sqrt{s'y}` and :math:`Bs / \sqrt{s'Bs}` in `pairs` (R, q,
    max_pairs), of which `n_pairs` (R,) are kept. A lane without room begins anew. `mine` (R, q)
    marks the columns of the lane.
    """
    for k in range(n_lanes):
        own = mine[k] > 0
        y = np.where(own, before[k] - gradient[k], 0.0)
        s, b_s = share[k] * step[k], np.where(own, share[k] * image[k], 0.0)
        sy, sbs = s @ y, s @ b_s
        if not (is_live[k] and sy > 1e-14 * abs(sbs) and sbs > 0):
            continue
        if n_pairs[k] + 2 > max_pairs:
            n_pairs[k] = 0
            pairs[k] = 0.0
        pairs[k, :, n_pairs[k]] = y / np.sqrt(sy)
        pairs[k, :, n_pairs[k] + 1] = b_s / np.sqrt(sbs)
        n_pairs[k] += 2


def widen(
    step: Matrix,
    share: Rows,
    is_live: AnyArray,
    least: Matrix,
    n_columns: int,
    n_lanes: int,
    box: Matrix,
) -> None:
    """Bounds of the next step: twice the last one or half the last bounds, and `least` at least."""
    live = is_live > 0
    taken = np.abs(share[:, None] * step)
    box[live] = np.maximum(np.maximum(2 * taken, box / 2), least)[live]


def deviations(
    first: Matrix, second: Matrix, total: Rows, n_columns: int, n_lanes: int, deviation: Matrix
) -> None:
    """Weighted standard deviations from sums of values and of squares, and of weights (R,)."""
    mean = first / total[:, None]
    deviation[:] = np.sqrt(np.maximum(second / total[:, None] - mean**2, 0.0))


def place_columns(
    x: Matrix, to: AnyArray, n_columns: int, width: int, n_lanes: int, out: Matrix
) -> None:
    """Columns of each lane (R, q), to their places among more of them (R, width)."""
    out[:, to] = x
