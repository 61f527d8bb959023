"""Steps of a Newton method on working sets that are too large for a matrix.

The curvature is a map: a product costs a pass over rows and columns. Conjugate gradients minimise
the penalised quadratic over the coordinates that are not at zero; those that would change sign end
at zero, and the next round has the coordinates whose conditions are violated then. So do Byrd,
Chin, Nocedal & Oztoprak (2016), Mathematical Programming 159, 435-467,
doi:10.1007/s10107-015-0965-3.
"""

import numpy as np
from numpy.typing import NDArray

from riskset._types import Features, Rows
from riskset.model.curvature_map import CurvatureMap

__all__ = ["conjugate_step"]

MAX_ROUNDS = 8
MAX_HALVINGS = 6
MAX_PRODUCTS = 200
"""In one round."""
ROUND_ACCURACY = 0.1
"""A round ends when slopes are smaller by so much: it is time to look who changes sign."""
SHARES = (1.0, 0.5, 0.25)
"""Of a move, tried in this order."""
MAX_WORSE = 3
"""Products that may follow the one whose move gains most."""
MIN_CURVATURE = 1e-12
"""Share of what the diagonal would give from which on a direction has a curvature."""
MAX_BEND = 1.8
"""A move is made whole up to this curvature along it per slope; one of 2 would gain nothing."""


def conjugate_step(
    curvature: CurvatureMap,
    gradient: Features,
    beta: Features,
    l1: Features,
    l2: Features,
    accuracy: float,
) -> Features:
    r"""Minimise the quadratic of `NewtonQuadratic`, without a box, roughly.

    The slopes that are left are smaller than those at the start by `accuracy`, in the norm
    :math:`\sqrt{s' D^{-1} s}` with the diagonal D. Returns the step (q,).
    """
    diagonal = curvature.diagonal + l2
    diagonal[diagonal <= 0.0] = 1.0
    step, pull = np.zeros(beta.size), gradient - l2 * beta
    refused = np.zeros(beta.size, dtype=bool)
    goal = -1.0
    for _ in range(MAX_ROUNDS):
        now = beta + step
        at_zero = np.where(np.abs(pull) > l1, np.sign(pull), 0.0)
        sign = np.where(now != 0.0, np.sign(now), at_zero)
        may_move = (sign != 0.0) | (l1 == 0.0)
        slope = np.where(may_move, pull - l1 * sign, 0.0)
        goal = accuracy * _size(slope, diagonal) if goal < 0.0 else goal
        if _size(slope, diagonal) <= goal:
            break
        if _size(slope[~refused], diagonal[~refused]) <= goal:
            refused[:] = False
        free = np.flatnonzero(may_move & ~refused)
        end = max(ROUND_ACCURACY * _size(slope[free], diagonal[free]), goal)
        is_last = not l1.any() or (end == goal and not refused.any())
        whole = np.zeros(beta.size)
        whole[free] = _conjugate_gradients(
            curvature.some(free), l2[free], diagonal[free], slope[free],
            0.9 * (goal if is_last else end), looks_ahead=not l1.any(),
        )  # fmt: skip
        if is_last and not ((l1 > 0.0) & ((now + whole) * sign < 0.0)).any():
            return step + whole
        # Who would leave zero to the other side waits until the others have moved.
        crossing = (l1 > 0.0) & ((now + whole) * sign < 0.0)
        waits = crossing & (now == 0.0)
        refused |= waits
        for share in (*(0.5**k for k in range(MAX_HALVINGS)), _share_to_zero(now, whole, crossing)):
            move = share * whole
            crossing = (l1 > 0.0) & ((now + move) * sign <= 0.0) & (move != 0.0)
            crossing |= refused
            move[crossing] = -now[crossing]
            image = curvature(move) + l2 * move
            gain, bend = float(slope @ move), float(move @ image)
            if bend <= MAX_BEND * gain:
                break
        if gain > 0.0 and bend <= MAX_BEND * gain:
            step += move
            step[crossing] = -beta[crossing]
            pull -= image
        elif not waits.any():
            break
    return step


def _share_to_zero(now: Features, whole: Features, crossing: NDArray[np.bool_]) -> float:
    """Share of a move at which the first coordinate off zero comes to zero."""
    first = crossing & (now != 0.0)
    return float(np.abs(now[first] / whole[first]).min(initial=1.0))


def _size(slope: Features, diagonal: Features) -> float:
    return float(np.sqrt((slope**2 / diagonal).sum()))


def _conjugate_gradients(
    curvature: CurvatureMap,
    l2: Features,
    diagonal: Features,
    slope: Features,
    tolerance: float,
    *,
    looks_ahead: bool,
) -> Features:
    """Solution of the equations ``(B + diag(l2)) move = slope``, roughly.

    Hestenes & Stiefel (1952), doi:10.6028/jres.049.044, with the diagonal as preconditioner. If it
    `looks_ahead`, it ends soon after the move that gains most of the likelihood itself.
    """
    move = np.zeros(slope.size)
    left = slope.copy()
    scaled = left / diagonal
    direction, size = scaled.copy(), float(left @ scaled)
    ahead = _Lookahead(curvature) if looks_ahead else None
    for _ in range(MAX_PRODUCTS):
        along = curvature.columns.product(direction)
        bent_along = curvature.of_rows(along)
        bent = curvature.columns.cross(bent_along) + l2 * direction
        bend = float(direction @ bent)
        if bend <= MIN_CURVATURE * float(direction**2 @ diagonal):
            break
        share = size / bend
        move += share * direction
        if ahead is not None:
            ahead.look(move, 0.5 * share * size, share * along, share * bent_along)
            if ahead.n_worse >= MAX_WORSE:
                break
        left -= share * bent
        scaled = left / diagonal
        before, size = size, float(left @ scaled)
        if size <= tolerance**2:
            break
        direction = scaled + (size / before) * direction
    return move if ahead is None or not ahead.best.size else ahead.best


class _Lookahead:
    """The likelihood itself along the moves of conjugate gradients, which costs no product.

    `best` is the move, or share of one, that gains most.
    """

    def __init__(self, curvature: CurvatureMap) -> None:
        self.curvature = curvature
        self.of_rows: Rows | float = 0.0
        self.bent: Rows | float = 0.0
        self.quadratic_gain, self.most, self.n_worse = 0.0, 0.0, 0
        self.best: Features = np.zeros(0)

    def look(self, move: Features, gain: float, of_rows: Rows, bent: Rows) -> None:
        """One more move: what its quadratic gains beyond the last, and its changes of rows."""
        self.quadratic_gain += gain
        self.of_rows, self.bent = self.of_rows + of_rows, self.bent + bent
        self.n_worse += 1
        for share in SHARES:
            missed = self.curvature.missed(share * self.of_rows, share * self.bent)
            # The slope of the quadratic along such a move is twice what it gains.
            value = (2 * share - share**2) * self.quadratic_gain + missed
            if value > self.most:
                self.most, self.best, self.n_worse = value, share * move, 0
            if missed >= -0.5 * self.quadratic_gain:
                break
