"""Exact curvature that is kept along a path of penalties, and made anew when that saves time."""

from collections.abc import Callable

import numpy as np

from riskset._types import Features, Index, Matrix
from riskset.kernels import descent_cpu

__all__ = ["KeptCurvature"]

MIN_SPARE_COLUMNS = 8
SPARE_COLUMNS_SHARE = 0.25
"""Columns that may enter next have their curvature made with that of the working set."""
FEWEST_STEPS = 2
"""Steps that a solution takes with new curvature."""
SLOW = 0.1
"""Steps that leave more of a residual are slow."""
ROW, ROW_COLUMN, ROW_PRODUCT = 60.0, 2.0, 1 / 26
"""Nanoseconds that curvature takes for each row, each number, and each product of two of a row."""
STEP, STEP_PAIR = 8e5, 8.0
"""Nanoseconds that a step takes, beside its passes, and for each pair of columns."""


class KeptCurvature:
    """Curvature (m, m) of `columns` (m,), among them those of the working set.

    After each step it learns from the change of the gradient. It is made anew for a column that it
    does not have, or when the steps that it costs take longer than making it.
    """

    def __init__(self, n_rows: int) -> None:
        self.n_rows = n_rows
        self.columns: Index = np.zeros(0, dtype=np.int64)
        self.matrix: Matrix = np.zeros((0, 0))
        self._at: Index = self.columns
        self._n_steps = 0
        """On the way to the current solution."""
        self._n_since = 0
        """Of these, since it was made."""
        self._n_solutions = 0
        """Found since it was made."""
        self._n_excess, self._last_excess = 0, 0
        """Steps beyond the fewest that those solutions took: all of them, and the last."""
        self._is_new = False
        self._residual = np.inf

    def copy(self) -> "KeptCurvature":
        """The same for the next solution of the path."""
        other = KeptCurvature(self.n_rows)
        other.columns, other.matrix, other._at = self.columns, self.matrix.copy(), self._at
        excess = max(0, self._n_steps - FEWEST_STEPS)
        other._last_excess = self._last_excess if self._is_new else excess
        other._n_solutions = self._n_solutions + 1
        other._n_excess = self._n_excess + (0 if self._is_new else excess)
        return other

    def at(
        self,
        columns: Index,
        residual: float,
        exact: Callable[[Index], Matrix],
        nearest: Callable[[Index, int], Index],
    ) -> tuple[Matrix, bool]:
        """Curvature of the working set, and whether it was made now.

        `exact` makes that of any columns, and `nearest` names so many outside a working set that
        may enter it next. The working set has a relative KKT `residual`.
        """
        self._n_steps += 1
        self._n_since += 1
        # The last solution left what it made near its end, where this one begins: the first step
        # with it is as good as with a new one.
        is_worn = self._is_worn(residual)
        self._residual = residual
        at = self._places(columns)
        if is_new := is_worn or at is None:
            n_spare = max(MIN_SPARE_COLUMNS, int(SPARE_COLUMNS_SHARE * columns.size))
            self.columns = np.union1d(columns, nearest(columns, n_spare))
            self.matrix = exact(self.columns)
            at = np.searchsorted(self.columns, columns)
            self._n_since, self._n_solutions, self._n_excess, self._is_new = 1, 0, 0, True
        assert at is not None
        self._at = at
        if at.size == self.columns.size:
            return self.matrix, is_new
        out = np.empty((at.size, at.size))
        descent_cpu.copy_block(self.matrix, at, out, np.arange(at.size))
        return out, is_new

    def learn(self, step: Features, image: Features, y: Features, sy: float, sbs: float) -> None:
        """BFGS update from a step on the working set, its image and the change of the gradient.

        The gradients of the other columns are taken to change as they would with this curvature,
        which keeps all of it positive semidefinite.
        """
        whole = np.zeros(self.columns.size)
        moved = np.flatnonzero(step)
        descent_cpu.add_products(self.matrix, self._at[moved], step[moved], whole)
        whole[self._at] = image
        seen = whole.copy()
        seen[self._at] = y
        descent_cpu.secant_update(self.matrix, seen, whole, sy, sbs)

    def _places(self, columns: Index) -> Index | None:
        """Where some columns are; None if one is missing."""
        if not self.columns.size:
            return None
        at = np.minimum(np.searchsorted(self.columns, columns), self.columns.size - 1)
        return at if np.array_equal(self.columns[at], columns) else None

    def _is_worn(self, residual: float) -> bool:
        """Whether a new one would save time.

        At the first step of a solution that is so if the last solution took more time beyond the
        least than the average since it was made, with the time to make it shared out among them:
        then the average rises. At later steps it is so if the steps are slow, and took longer than
        making it would.
        """
        if self._n_since < FEWEST_STEPS:
            return False
        n, m = self.n_rows, self.columns.size
        make = n * (ROW + m * (ROW_COLUMN + m * ROW_PRODUCT))
        step = n * (ROW + ROW_COLUMN * m) + STEP + STEP_PAIR * m * m
        if self._n_steps > FEWEST_STEPS:
            is_slow = residual > SLOW * self._residual
            return is_slow and step * (self._n_since - FEWEST_STEPS) > make
        spent = make + step * self._n_excess
        return step * self._last_excess * max(1, self._n_solutions) > spent
