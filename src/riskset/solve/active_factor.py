"""The factor of the coordinates that are off zero, carried from one Newton step to the next."""

import numpy as np
import scipy.linalg as sla

from riskset._types import Features, Index, Matrix, NewtonQuadratic
from riskset.kernels import active_set_cpu
from riskset.kernels import descent_cpu as kernels

__all__ = ["ActiveFactor"]

MAX_MOVES = 100
"""Moves of an active set before coordinate descent takes its turn."""
MIN_CARRIED = 128
"""A smaller factor is made anew at every step: that takes no longer than anything else."""
MAX_CHANGES_SHARE = 1 / 32
MAX_CHANGES = 8
"""So many more coordinates may enter and leave a factor: each takes time like n^2, and to make it
anew takes time like n^3 / 30."""


class ActiveFactor:
    """The upper triangle R of ``R'R = B + diag(l2)`` for the free coordinates of a Newton step.

    Those of the last step are nearly those of the next. If its curvature has changed by a secant
    update alone, the factor follows in time like n^2, where a new one takes n^3 / 3.

    `columns` are the columns of the design that it is made of, in its order.
    """

    def __init__(self) -> None:
        self.columns: Index = np.zeros(0, dtype=np.int64)
        self._l2: Features = np.zeros(0)
        self._factor: Matrix = np.zeros((0, 0))
        """Its first rows and columns, in memory with room for more."""

    def forget(self) -> None:
        """Let the next step make a new one: the curvature is another."""
        self.columns, self._l2 = self.columns[:0], self._l2[:0]

    def copy(self) -> "ActiveFactor":
        """The same for a fit that starts here."""
        other = ActiveFactor()
        if self.columns.size:
            other.columns, other._l2, other._factor = self.columns, self._l2, self._factor.copy()
        return other

    def goes_on(
        self,
        problem: NewtonQuadratic,
        columns: Index,
        tolerance: float,
        step: Features,
        image: Features,
    ) -> bool:
        """Minimise with the factor as it was, if few coordinates change; whether that is the end.

        `columns` (q,) are those of the design, in increasing order. `step` and `image` (q,) are 0,
        and become the minimum and its image: see `active_set_ref.minimise_active`.
        """
        active = self._follow(problem, columns)
        return active is not None and self._minimise(
            problem, columns, tolerance, active, step, image
        )

    def begin(
        self,
        problem: NewtonQuadratic,
        columns: Index,
        tolerance: float,
        step: Features,
        image: Features,
    ) -> bool:
        """As `goes_on` with a new factor of the coordinates that are off zero after `step`."""
        _, _, beta, l1, _, box = problem
        free = np.flatnonzero(((beta + step != 0.0) | (l1 == 0.0)) & (np.abs(step) < box))
        active = self._make(problem, free)
        if active is None:
            return False
        if free.size == beta.size and not l1.any() and self._leaps(problem, step, image):
            return True
        return self._minimise(problem, columns, tolerance, active, step, image)

    def _leaps(self, problem: NewtonQuadratic, step: Features, image: Features) -> bool:
        """Solve for all coordinates at once, without an L1 part; whether the box has the answer.

        So a first fit without a penalty need not compile the kernel of `_minimise`.
        """
        n = step.size
        slope = problem.gradient - problem.l2 * problem.beta
        whole, failed = sla.lapack.dpotrs(self._factor[:n, :n], slope, lower=0)
        if failed or not (np.abs(whole) <= problem.box).all():
            return False
        step[:], image[:] = whole, problem.curvature @ whole
        return True

    def _make(self, problem: NewtonQuadratic, free: Index) -> Index | None:
        """A factor of these coordinates; None if it has no digits."""
        n = free.size
        b = np.empty((n, n))
        kernels.copy_block(problem.curvature, free, b, np.arange(n))
        b[np.diag_indices(n)] += problem.l2[free]
        lower, failed = sla.lapack.dpotrf(b.T, lower=1, clean=0, overwrite_a=1)
        if failed or not np.isfinite(np.diag(lower)).all():
            self.forget()
            return None
        self._hold(lower.T, n, problem.beta.size)
        return free

    def _hold(self, factor: Matrix, n: int, q: int) -> None:
        """Hold a factor, with room for n coordinates of q and those that join them at once."""
        if self._factor.shape[0] < min(n + MAX_MOVES, q):
            room = max(min(n + 2 * MAX_MOVES, q), factor.shape[0])
            self._factor = np.empty((room, room))
        self._factor[: factor.shape[0], : factor.shape[0]] = factor

    def _follow(self, problem: NewtonQuadratic, columns: Index) -> Index | None:
        """The coordinates in the factor, once it has those that are off zero; None if it cannot."""
        n, is_free = self.columns.size, (problem.beta != 0.0) | (problem.l1 == 0.0)
        if not n:
            return None
        at = np.minimum(np.searchsorted(columns, self.columns), columns.size - 1)
        stays = (columns[at] == self.columns) & is_free[at]
        is_entering = is_free.copy()
        is_entering[at[stays]] = False
        entering = np.flatnonzero(is_entering)
        n_changes = entering.size + n - int(np.count_nonzero(stays))
        if n_changes > MAX_CHANGES + MAX_CHANGES_SHARE * n or not np.array_equal(
            problem.l2[at[stays]], self._l2[stays]
        ):
            self.forget()
            return None
        if self._factor.shape[0] < min(n + entering.size + MAX_MOVES, columns.size):
            self._hold(self._factor[:n, :n], n + entering.size, columns.size)
        active = np.full(self._factor.shape[0], -1, dtype=np.int64)
        active[:n] = np.where(stays, at, -1)
        done = active_set_cpu.exchange(
            problem.curvature, problem.l2, active, n, self._factor, entering
        )
        if not done:
            self.forget()
            return None
        return active[active >= 0]

    def _minimise(
        self,
        problem: NewtonQuadratic,
        columns: Index,
        tolerance: float,
        free: Index,
        step: Features,
        image: Features,
    ) -> bool:
        active = np.full(self._factor.shape[0], -1, dtype=np.int64)
        active[: free.size] = free
        is_end = active_set_cpu.minimise_active(
            problem, tolerance, MAX_MOVES, active, free.size, self._factor, step, image
        )
        active = active[active >= 0]
        if is_end and active.size >= MIN_CARRIED:
            self.columns, self._l2 = columns[active], problem.l2[active]
        else:
            self.forget()
        return is_end

    def learn(self, columns: Index, y: Features, image: Features, sy: float, sbs: float) -> None:
        """Follow the secant update ``B + yy' / sy - bb' / sbs`` with the image b."""
        n = self.columns.size
        if not n:
            return
        at = np.searchsorted(columns, self.columns)
        plus, minus = y[at] / np.sqrt(sy), image[at] / np.sqrt(sbs)
        if not active_set_cpu.update_factor(self._factor, n, plus, minus):
            self.forget()
