r"""One fit whose rows live in blocks elsewhere, too many for one machine.

`solve.prox_newton` keeps the coefficients and takes the steps; rows and linear predictors stay
where they are. One pass is

1. a step to every block, local sums of :math:`e^\eta`, a few numbers back (`RowBlock.risks`);
2. what other blocks hand on, local hazards, a few numbers back (`RowBlock.hazards`): the
   likelihood;
3. the same for hazards, and one vector of length P back (`RowBlock.gradient`), if the step
   is taken.

The sums have the same terms as on one machine, added up in another order.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from riskset._errors import InputError
from riskset._messages import Note, Value
from riskset._types import Features, Index, Matrix, Rows
from riskset.data.working_columns import WorkingColumns
from riskset.model.curvature_map import CurvatureMap
from riskset.model.design_sums import DesignSums
from riskset.solve.block_rows import BlockEta, BlockEvaluation, BlockRows
from riskset.solve.finiteness import (
    EPSILON,
    EXTRA_OPERATIONS,
    MAX_PROOF_SPAN,
    FreeColumns,
    RoundingBounds,
)
from riskset.solve.optimality import MIN_SIGNAL_PER_EVENT, NewtonProblem
from riskset.solve.prox_newton import Minimisation
from riskset.solve.result import Solution
from riskset.solve.separation import MAX_PROOF_WORK

__all__ = ["BlockMinimisation", "BlockProblem"]


@dataclass(frozen=True)
class BlockProblem(NewtonProblem):
    """Rows elsewhere, and the names and units of their columns."""

    block_rows: BlockRows

    @classmethod
    def of(cls, rows: BlockRows) -> "BlockProblem":
        """Evaluate at 0 and look at every column once."""
        head = rows.head
        spread = np.ones(head.n_features)
        others = np.flatnonzero(~head.is_binary)
        if others.size:
            spread[others] = rows.deviation(others)
        informative = rows.varying()
        spread[~informative | (spread <= 0)] = 1.0
        null = rows.evaluate(rows.at_offset())
        if not np.isfinite(null.log_likelihood):
            raise InputError(
                "the offsets span 500 or more, or the weights 280 powers of ten, which a fit in "
                "blocks cannot hold.",
                hint="check how they were made.",
            )
        gradient = rows.cross(null)
        scale = float(np.abs(gradient / spread)[informative].max(initial=0.0))
        scale = scale if scale > MIN_SIGNAL_PER_EVENT * rows.n_events else 1.0
        return cls(head, spread, informative, null, gradient, scale, rows)

    @property
    def n_events(self) -> float:
        return self.block_rows.n_events

    def rows(self) -> BlockRows:
        return self.block_rows

    has_map = False
    """A product would take as many exchanges as a pass."""

    def final_rows(self) -> BlockRows:
        return self.block_rows

    def weighted_deviation(
        self, now: BlockEvaluation, columns: Index, sums: DesignSums | None
    ) -> Features:
        return self.block_rows.deviation(columns, now)

    def information(self, eta: BlockEta, columns: Index, now: object = None) -> Matrix:
        return self.block_rows.information(eta, columns)

    def sampled_information(
        self,
        eta: BlockEta,
        columns: Index,
        n_samples: int,
        now: object = None,
        *,
        raise_rare: bool = True,
    ) -> Matrix:
        return self.block_rows.sampled_information(eta, columns, n_samples, raise_rare)

    def information_at_rest(self, columns: Index, n_samples: int | None) -> Matrix:
        """See `NewtonProblem`; weights stay."""
        rest = self.block_rows.at_rest()
        if n_samples is None:
            return self.information(rest, columns)
        return self.sampled_information(rest, columns, n_samples, raise_rare=False)

    def working_columns(self, columns: Index) -> WorkingColumns:
        """See `NewtonProblem`; there is no map."""
        raise NotImplementedError

    def curvature_map(self, eta: Rows, columns: WorkingColumns) -> CurvatureMap:
        """See `NewtonProblem`; there is no map."""
        raise NotImplementedError

    def row_information(self, eta: Rows, now: Any = None) -> Matrix:
        """See `NewtonProblem`; there is no map."""
        raise NotImplementedError

    def varies(self, weights: Features, tolerance: float) -> bool:
        return bool(self.block_rows.range_of(weights) > tolerance)


class BlockMinimisation(Minimisation):
    """A minimisation over rows in blocks, which looks for a proof of finiteness at its end."""

    problem: BlockProblem

    def solution(self, aliased: NDArray[np.bool_], notes: list[Note]) -> Solution:
        """See `Minimisation.solution`; notes if the estimates are not proven to be finite."""
        free = np.flatnonzero((self.l1 == 0) & (self.l2 == 0) & ~aliased)
        if free.size and not self._is_finite(free):
            names = tuple(self.problem.design.names[j] for j in free[:10])
            what = (
                "it could not be decided whether the estimate is finite (separation): a fit in "
                "blocks looks for a proof at the answer alone, and found none. Fit on one machine, "
                "or add a penalty, which always gives a finite estimate."
            )
            notes = [*notes, Note("undecided", names, what)]
        found = super().solution(aliased, notes)
        if "undecided" in {note.code for note in notes} and found.status == "converged":
            found = replace(found, status="undecided")
        if found.status != "max_iter" or not self.problem.block_rows.was_too_wide:
            return found
        what = (
            "on the way to the answer linear predictors span {limit} or more, which a fit in "
            "blocks cannot hold. Fit on one machine, or look for rows far from all others."
        )
        note = Note("max_iter", (), what, {"limit": Value("setting", 500)})
        return replace(found, notes=(*found.notes, note))

    def _is_finite(self, free: Index) -> bool:
        """Whether the Newton step of the free columns proves it (`solve.finiteness`)."""
        problem, rows = self.problem, self.problem.block_rows
        if float(problem.design.n_rows) * free.size**2 > MAX_PROOF_WORK * rows.crew.n_blocks:
            return False
        found = FreeColumns.of(problem.design, free, problem.information(self.eta, free))
        if not found.are_estimable(problem.spread[free], rows.n_events):
            return False
        step, one = found.step(self.gradient[free]), np.eye(free.size)
        ranges = np.array([rows.extent(one[k], free) for k in range(free.size)])
        rounding = RoundingBounds(
            4 * EPSILON * (problem.design.n_rows + EXTRA_OPERATIONS),
            ranges,
            rows.n_events,
            is_difference=True,
        )
        rest = np.abs(self.gradient[free] - found.image(step))
        return found.bound(step, rest, rows.extent(step, free), ranges, rounding) < MAX_PROOF_SPAN
