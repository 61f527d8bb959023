"""Newton steps with fewer rows than columns: solved for the changes of the linear predictors.

With a strength of L2 above 0 each coefficient follows from the slope that the rows leave it, and
what is to be found has the size of the rows. That is the dual of the quadratic, minimised by a
semismooth Newton method: Li, Sun & Toh (2018), SIAM Journal on Optimization 28, 433-458,
doi:10.1137/16M1097572.
"""

import numpy as np
import scipy.linalg as sla

from riskset._types import Features, Index, Matrix, NewtonQuadratic, Rows
from riskset.data.design import Design

__all__ = ["RowSpace"]

MAX_ROWS = 2048
"""A step takes time like n^3."""
MAX_NUMBERS = 100_000_000
"""Columns are dense here: 0.8 GB at most."""
MIN_COLUMNS_PER_ROW = 3
"""With fewer, steps with a matrix that is kept take less time."""
MAX_FREE_SHARE = 0.25
"""Of rows, which columns without a penalty may be."""
MAX_STEPS = 100
MAX_HALVINGS = 30
OVERSHOOT = 0.5
"""A step along which the slope ends at more than this share of where it began is cut."""
PROXIMAL_SHARE = 1e-6
"""Columns without a penalty have this share of their curvature as a ridge about where they are. It
does not move the answer: it costs the step no more than this share."""
SAME = 1e-9
"""Relative differences of the factors of columns that do not count."""


class RowSpace:
    r"""Columns of a design with few rows, and their sum of squares in the rows.

    A step d minimises :math:`-g'd + \tfrac12 d'X'WXd + h(d)`, W (n, n) being the curvature in the
    linear predictors and h the penalty of `NewtonQuadratic`, without its box. At the minimum

    .. math:: z = X s(g - X'Wz), \qquad s(t) = \arg\min_d h(d) - t'd,

    which has a closed form for each coordinate. Newton's equations for z have the matrix
    :math:`I + GW` with :math:`G = \sum_{j \in J} x_j x_j' / l_{2j}` over the coordinates that are
    off zero. `G` is kept from step to step: few columns enter or leave.
    """

    def __init__(self, design: Design) -> None:
        self.design = design
        self._forget()

    def _forget(self) -> None:
        design = self.design
        self.columns: Index = np.zeros(0, dtype=np.int64)
        self.place: Index = np.full(design.n_features, -1)
        self.values: Matrix = np.zeros((0, design.n_rows))
        self.factor: Features = np.zeros(0)
        self.squares: Matrix = np.zeros((design.n_rows, design.n_rows))

    @staticmethod
    def suits(design: Design, l1: Features, l2: Features) -> bool:
        """Whether it takes less time than a matrix of all pairs of so many columns."""
        n, is_free = design.n_rows, (l1 == 0.0) & (l2 == 0.0)
        is_wide = MIN_COLUMNS_PER_ROW * n <= l2.size <= MAX_NUMBERS // max(n, 1)
        has_few_free = int(np.count_nonzero(is_free)) <= MAX_FREE_SHARE * n
        return n <= MAX_ROWS and is_wide and has_few_free and bool((is_free | (l2 > 0.0)).all())

    def copy(self) -> "RowSpace":
        """The same for a fit that starts here."""
        other = RowSpace(self.design)
        other.columns, other.place, other.values = self.columns, self.place.copy(), self.values
        other.factor, other.squares = self.factor.copy(), self.squares.copy()
        return other

    def step(
        self, curvature: Matrix, columns: Index, known: NewtonQuadratic, tolerance: float
    ) -> Features | None:
        """The minimiser (q,), with slopes right to the tolerance; None if it cannot be found.

        `curvature` is W, and `known` has all of the quadratic but its curvature.
        """
        at = self._places(columns)
        known = self._with_ridge(curvature, known, at)
        z, pull = np.zeros(self.design.n_rows), known.gradient
        for _ in range(MAX_STEPS):
            target = _held(pull, known)
            step = target - known.beta
            left = z - self._product(step, at)
            bent = curvature @ left
            if float(np.abs(self._cross(bent, at)).max(initial=0.0)) <= tolerance:
                return step
            self._use(at, np.where(target != 0.0, 1.0 / known.l2, 0.0))
            move = self._solution(curvature, left)
            if move is None:
                return None
            along = curvature @ move
            of_slopes = self._cross(along, at)
            share = _share(move, along, of_slopes, z, pull, known)
            z, pull = z + share * move, pull - share * of_slopes
        return None

    def _with_ridge(self, curvature: Matrix, known: NewtonQuadratic, at: Index) -> NewtonQuadratic:
        """The same with a small ridge about their coefficients for columns without a penalty."""
        is_free = known.l2 == 0.0
        if not is_free.any():
            return known
        x = self.values[at[is_free]]
        own = np.maximum(((x @ curvature) * x).sum(axis=1), np.finfo(np.float64).tiny)
        l2, gradient = known.l2.copy(), known.gradient.copy()
        l2[is_free] = PROXIMAL_SHARE * own
        gradient[is_free] += l2[is_free] * known.beta[is_free]
        return known._replace(l2=l2, gradient=gradient)

    def _solution(self, curvature: Matrix, left: Rows) -> Rows | None:
        """The solution of ``(I + G W) z = -left``; None if that is singular."""
        matrix = self.squares @ curvature
        matrix[np.diag_indices_from(matrix)] += 1.0
        _, _, move, failed = sla.lapack.dgesv(matrix, -left, overwrite_a=True, overwrite_b=True)
        return None if failed or not np.isfinite(move).all() else np.asarray(move)

    def _places(self, columns: Index) -> Index:
        """Where the columns are; those that are missing join."""
        missing = columns[self.place[columns] < 0]
        n = self.columns.size
        if (n + missing.size) * self.design.n_rows > MAX_NUMBERS:
            self._forget()
            missing, n = columns, 0
        if missing.size:
            self.place[missing] = np.arange(n, n + missing.size)
            self.columns = np.append(self.columns, missing)
            self.factor = np.append(self.factor, np.zeros(missing.size))
            # A new array: copies of this go on with the old one.
            self.values = np.vstack([self.values, self.design.stored(missing).T])
        return self.place[columns]

    def _product(self, v: Features, at: Index) -> Rows:
        moved = np.flatnonzero(v)
        if 2 * moved.size < self.columns.size:
            return np.asarray(v[moved] @ self.values[at[moved]])
        whole = np.zeros(self.columns.size)
        whole[at] = v
        return np.asarray(whole @ self.values)

    def _cross(self, r: Rows, at: Index) -> Features:
        return np.asarray((self.values @ r)[at])

    def _use(self, at: Index, factor: Features) -> None:
        """Let `squares` have these factors of the columns."""
        new = np.zeros(self.columns.size)
        new[at] = factor
        both = np.flatnonzero((new > 0.0) & (self.factor > 0.0))
        if both.size:  # another strength of the same penalty
            ratio = float(np.median(new[both] / self.factor[both]))
            if abs(ratio - 1.0) > SAME:
                self.squares *= ratio
                self.factor *= ratio
        changed = np.flatnonzero(np.abs(new - self.factor) > SAME * np.maximum(new, self.factor))
        if 2 * changed.size > np.count_nonzero(new):
            self.squares[:], self.factor[:] = 0.0, 0.0
            changed = np.flatnonzero(new)
        change = new[changed] - self.factor[changed]
        x = self.values[changed]
        self.squares += (x.T * change) @ x
        self.factor[changed] = new[changed]


def _held(pull: Features, known: NewtonQuadratic) -> Features:
    """The coefficients that the slopes `pull` hold."""
    size = np.maximum(np.abs(pull) - known.l1, 0.0) / known.l2
    return np.asarray(np.copysign(size, pull))


def _share(
    move: Rows, along: Rows, of_slopes: Features, z: Rows, pull: Features, known: NewtonQuadratic
) -> float:
    """Share of a move that is made: the function falls along all of it, or nearly."""

    def slope(share: float) -> float:
        step = _held(pull - share * of_slopes, known) - known.beta
        return float(along @ (z + share * move) - step @ of_slopes)

    first, low, high = slope(0.0), 0.0, 1.0
    if first >= 0.0 or slope(1.0) <= -OVERSHOOT * first:
        return 1.0
    for _ in range(MAX_HALVINGS):
        middle = 0.5 * (low + high)
        there = slope(middle)
        if abs(there) <= -OVERSHOOT * first:
            return middle
        low, high = (middle, high) if there < 0.0 else (low, middle)
    return 0.5 * (low + high)
