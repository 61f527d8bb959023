"""The curvature a Newton method works with: exact, or sampled once and corrected as it goes."""

import functools
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from riskset._types import Features, Index, Matrix, Rows
from riskset.kernels import descent_cpu
from riskset.kernels.cuda.backend import Array
from riskset.model.cox import Evaluation
from riskset.model.curvature import affordable
from riskset.solve.active_factor import ActiveFactor
from riskset.solve.kept_curvature import KeptCurvature
from riskset.solve.optimality import NewtonProblem
from riskset.solve.row_space import RowSpace

__all__ = ["RIDGE_FACTOR", "CurvatureModel"]

EXACT_WORK = 3e8
"""Curvature is exact below this many multiplications, n q^2."""
EXACT_WORK_IF_DENSE = 1e9
"""The same where no column is binary: a sample then gains little."""
WORK_OF_TIES = 50
"""Where ties are exact, each row and column takes as much work as so many columns for each row of
the largest tie."""
RENEWED_COLUMNS = 30
RENEWED_WORK = 2e8
"""Exact curvature is made at every step for few columns, or for fewer multiplications than this,
n q (q - 30): then it takes no longer than the passes over the rows that it saves."""
MAX_NEW_COLUMN_SHARE = 0.1
"""A working set that grows by less keeps its curvature; the new columns get their own block."""
RIDGE_FACTOR = 1.0 + 1e-12
"""Factor of the diagonal of exact curvature, so that rounding leaves it positive definite."""
SLOW_IF_KEPT = 0.1
MAX_SLOW_STEPS = 3
"""Steps that did not halve the residual before the curvature is made anew."""
EXACT_WORK_IF_SLOW = 2e10
"""Then it is exact below this many multiplications: a sample says little where few rows carry much
of the risk, as with weak penalties and few events."""
FIRST_SAMPLES = 3
"""Samples that are drawn at the first steps, one at each, where they are cheap."""
CHEAP_SAMPLE = 3200
"""A sample is if its multiplications, m q^2 for m rows, are no more for each row of the data: they
are made 64 at a time, and then take no longer than a pass."""


def _no_columns(columns: Index, most: int) -> Index:
    """Of columns that may enter a working set: none."""
    return np.zeros(0, dtype=np.int64)


class CurvatureModel:
    """Curvature of the negative log likelihood on a working set that may grow.

    Its `matrix` on `columns` is positive semidefinite. `each` are the rows of a sample for each
    column. `is_exact` says whether the matrix is the information where it was last asked for, but
    for `RIDGE_FACTOR`. `spread` (p,) is `NewtonProblem.unit_spread` where it was last asked for,
    NaN if it never was.

    If it `learns`, exact curvature that takes long is kept and learns from gradients, as a sampled
    one does. That is fastest where columns enter one by one. Else it is made anew at every step,
    and the last step of a fit gains as many digits as there are. Where it learns and has no more
    columns than rows, and exact curvature of all columns is affordable, `kept` has it for more
    columns than the working set. `ended` is the likelihood where the last fit ended, if known.
    """

    def __init__(self, problem: NewtonProblem, each: int = 50, *, learns: bool = False) -> None:
        self.problem, self.each, self.learns = problem, each, learns
        self.columns: Index = np.zeros(0, dtype=np.int64)
        self.matrix: Matrix = np.zeros((0, 0))
        self.spread: Features = np.full(problem.design.n_features, np.nan)
        self._is_coarse = False
        self._work = EXACT_WORK
        self._n_slow = 0
        self._n_made = 0
        self._last = np.inf
        self._taken_at = np.inf
        self._is_kept = False
        self.is_exact = False
        self.ended: Evaluation | None = None
        n, p = problem.design.n_rows, problem.design.n_features
        keeps = learns and p <= n and self._is_exact(np.arange(p))
        self.kept = KeptCurvature(n) if keeps else None
        self.active = ActiveFactor()
        self._row_space: RowSpace | None = None

    def row_space(self, l1: Features, l2: Features) -> RowSpace | None:
        """Where steps on columns with these penalties are solved, if rows are fewer; else None."""
        problem = self.problem
        if not (problem.has_map and RowSpace.suits(problem.design, l1, l2)):
            return None
        if self._row_space is None:
            self._row_space = RowSpace(problem.design)
        return self._row_space

    def copy(self, *, learns: bool) -> "CurvatureModel":
        """The same for a fit that starts here: neighbouring penalties have much the same."""
        other = CurvatureModel(self.problem, self.each, learns=learns)
        other.columns, other.matrix = self.columns, self.matrix.copy()
        other.spread = self.spread.copy()
        other.active, other._is_kept = self.active.copy(), self._is_kept
        other._is_coarse, other._work = self._is_coarse, self._work
        other._n_made = self._n_made
        if self.kept is not None and other.kept is not None:
            other.kept = self.kept.copy()
        if self._row_space is not None:
            other._row_space = self._row_space.copy()
        return other

    @classmethod
    def given(cls, problem: NewtonProblem, columns: Index, matrix: Matrix) -> "CurvatureModel":
        """That of some columns, as made elsewhere: as good as a sample of this problem."""
        made = cls(problem)
        made.columns, made.matrix, made._n_made = columns, matrix, FIRST_SAMPLES
        return made

    def at(
        self,
        columns: Index,
        eta: Rows | Array,
        now: object,
        residual: float,
        target: float = 0.0,
        *,
        is_cold: bool,
        nearest: Callable[[Index, int], Index] = _no_columns,
    ) -> Matrix:
        """The curvature to use for the next step.

        `eta` is that of the host, or of the device of the problem, and `now` the likelihood there.
        A relative KKT `residual` that shrinks too slowly is the sign of a bad model; steps end at
        `target`. If `is_cold`, no step was made yet: the curvature there is soon replaced, so it
        may be coarse. `nearest` names so many columns that may enter the working set next.
        """
        self.is_exact = self._is_exact(columns)
        was_kept, self._is_kept = self._is_kept, self.kept is not None and self.is_exact
        if was_kept and not self._is_kept:
            self.active.forget()
        if self.kept is not None and self._is_kept:
            exact = functools.partial(self._exact, eta=eta, now=now)
            matrix, self.is_exact = self.kept.at(columns, residual, exact, nearest)
            if self.is_exact:
                self.active.forget()
            self._take(columns, matrix)
            return matrix
        suffices = self._suffices(columns, residual, target)
        if self.is_exact and self._is_renewed(columns) and not suffices:
            self._renew(columns, self._exact(columns, eta, now))
            self._taken_at = residual
            return self.matrix
        # With a good model a step of Newton's method more than halves the residual. With one that
        # is kept, steps that gain less than a digit take longer than to make it anew.
        enough = SLOW_IF_KEPT if self.learns and self.is_exact else 0.5
        self._n_slow = self._n_slow + 1 if residual > enough * self._last else 0
        self._last = residual
        if self._n_slow >= MAX_SLOW_STEPS and not self._is_coarse:
            self._work = EXACT_WORK_IF_SLOW
            self.is_exact = self._is_exact(columns)
        if self._is_coarse or self._n_slow >= MAX_SLOW_STEPS or not self._extend(columns, eta, now):
            if self.is_exact:
                self._renew(columns, self._exact(columns, eta, now))
            else:
                self._renew(columns, self._sample(columns, eta, now, is_coarse=is_cold))
            self._n_made += 1
            self._is_coarse = is_cold or self._is_soon_replaced(columns)
            self._n_slow = 0
        else:
            self.is_exact = False
        return self.matrix

    def part(self, columns: Index) -> Matrix | None:
        """The curvature of some columns as it is; None if it is missing or too coarse."""
        at = np.searchsorted(self.columns, columns)
        known = at < self.columns.size
        known[known] = self.columns[at[known]] == columns[known]
        if self._is_coarse or not known.all():
            return None
        return self.matrix[np.ix_(at, at)]

    def learn(self, step: Features, image: Features, y: Features) -> None:
        """BFGS update from a step s: B s = image, and y the change of the gradient along it."""
        if not self.learns and self._is_exact(self.columns):
            return
        # The secant equation B s = y, kept positive definite: Nocedal & Wright (2006), chapter 6.
        # The likelihood is concave, so s'y < 0 is rounding, and the pair is left out.
        sy, sbs = float(y @ step), float(step @ image)
        if not (sy > 1e-14 * abs(sbs) and sbs > 0):
            return
        if self._is_kept and self.kept is not None:
            self.kept.learn(step, image, y, sy, sbs)
        else:
            descent_cpu.secant_update(self.matrix, y, image, sy, sbs)
        self.active.learn(self.columns, y, image, sy, sbs)

    def _is_soon_replaced(self, columns: Index) -> bool:
        """Whether the next step has a sample of its own, because that saves passes over the rows.

        Curvature changes most in the first steps.
        """
        if self.learns or self.is_exact or self._n_made >= FIRST_SAMPLES:
            return False
        work = float(self._n_samples(columns)) * columns.size**2
        return work <= CHEAP_SAMPLE * self.problem.design.n_rows

    def _is_renewed(self, columns: Index) -> bool:
        """Whether exact curvature at every step costs less than the steps that it saves."""
        n, q = self.problem.design.n_rows, columns.size
        return not self.learns or float(n) * q * (q - RENEWED_COLUMNS) <= RENEWED_WORK

    def _suffices(self, columns: Index, residual: float, target: float) -> bool:
        """Whether one more step with the curvature as it is reaches the target.

        Such a step leaves a share of the residual that is about the change of the curvature since
        it was exact, which is about the residual of then.
        """
        return (
            self.learns
            and self._taken_at * residual <= target
            and np.array_equal(columns, self.columns)
        )

    def _is_exact(self, columns: Index) -> bool:
        """Whether exact curvature is cheap, or no dearer than a sample."""
        n, q = self.problem.design.n_rows, columns.size
        work = self._work_of(q)
        if work <= self._work:
            return True
        if EXACT_WORK == 0 or self._has_exact_ties:
            return False
        share = float(np.mean(~self.problem.design.is_binary[columns]))
        if share == 1 and work <= EXACT_WORK_IF_DENSE:
            return True
        n_samples = affordable(self.problem.design, columns, self._n_samples(columns))
        # Pairs of binary columns are counted 64 rows at a time.
        return bool(n <= n_samples * max(share, 1 / 64))

    @property
    def _has_exact_ties(self) -> bool:
        loss = self.problem.whole_loss
        return loss is not None and loss.approximation is not loss

    def _work_of(self, q: int) -> float:
        """Multiplications for the exact curvature of q columns."""
        loss, width = self.problem.whole_loss, float(q)
        if loss is not None and self._has_exact_ties:
            width += WORK_OF_TIES * loss.largest_tie
        return float(self.problem.design.n_rows) * q * width

    def _n_samples(self, columns: Index, *, is_coarse: bool = False) -> int:
        each = self.each // 2 if is_coarse else self.each
        return int(np.clip(each * columns.size, 1000 * each, 250_000))

    def _take(self, columns: Index, matrix: Matrix) -> None:
        self.columns, self.matrix = columns, matrix

    def _renew(self, columns: Index, matrix: Matrix) -> None:
        """As `_take`; the factor is of another matrix."""
        self.active.forget()
        self._take(columns, matrix)

    def _extend(self, columns: Index, eta: Rows | Array, now: object) -> bool:
        """Leave out columns and make room for a few new ones; False if too many are new."""
        if np.array_equal(columns, self.columns):
            return True
        at, old = np.searchsorted(self.columns, columns), np.isin(columns, self.columns)
        n_new = columns.size - int(np.count_nonzero(old))
        if n_new > max(8, MAX_NEW_COLUMN_SHARE * self.columns.size):
            return False
        matrix = np.zeros((columns.size, columns.size))
        descent_cpu.copy_block(self.matrix, at[old], matrix, np.flatnonzero(old))
        if n_new:
            matrix[np.ix_(~old, ~old)] = self._block(columns[~old], eta, now)
        self._take(columns, matrix)
        return True

    def _block(self, columns: Index, eta: Rows | Array, now: object) -> Matrix:
        """Exact by the host, if that does not take long compared with the passes."""
        is_cheap = self._work_of(columns.size) <= EXACT_WORK
        if is_cheap or (self.problem.on_device is None and not self._has_exact_ties):
            return self._exact(columns, eta, now)
        return self._sample(columns, eta, now, is_coarse=False)

    def _exact(self, columns: Index, eta: Rows | Array, now: object = None) -> Matrix:
        out = self.problem.information(eta, columns, now)
        out[np.diag_indices(columns.size)] *= RIDGE_FACTOR
        return out

    def _sample(self, columns: Index, eta: Rows | Array, now: object, *, is_coarse: bool) -> Matrix:
        n_samples = self._n_samples(columns, is_coarse=is_coarse)
        return self.problem.sampled_information(eta, columns, n_samples, now)


def largest(candidates: NDArray[np.bool_], size: Features, most: int) -> NDArray[np.bool_]:
    """The candidates, or the `most` largest of them."""
    if int(np.count_nonzero(candidates)) <= most:
        return candidates
    ranked = np.where(candidates, size, -np.inf)
    out = np.zeros_like(candidates)
    out[np.argpartition(ranked, -most)[-most:]] = True
    return out
