r"""One fit whose rows live in blocks elsewhere, too many for one machine.

`solve.prox_newton` keeps the coefficients and takes the steps; rows and linear predictors stay
where they are. One pass is

1. a step to every block, local sums of :math:`e^\eta`, a few numbers back (`Block.risks`);
2. what other blocks hand on, local hazards, a few numbers back (`Block.hazards`): the likelihood;
3. the same for hazards, and one vector of length P back (`Block.gradient`), if the step is taken.

The sums have the same terms as on one machine, added up in another order.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from riskset._errors import InputError
from riskset._messages import Note
from riskset._types import Features, Index, Matrix
from riskset.solve.block_rows import BlockRows
from riskset.solve.finiteness import (
    EPSILON,
    EXTRA_OPERATIONS,
    MAX_PROOF_SPAN,
    FreeColumns,
    RoundingBounds,
)
from riskset.solve.optimality import MIN_SIGNAL_PER_EVENT, MIN_SPREAD_SHARE, Problem
from riskset.solve.prox_newton import Minimisation
from riskset.solve.result import Solution
from riskset.solve.rows import RowOperator
from riskset.solve.separation import MAX_PROOF_WORK

__all__ = ["BlockProblem", "BlockMinimisation"]


@dataclass(frozen=True)
class BlockProblem(Problem):
    """As `Problem`, of rows elsewhere; `design` has no entries, and `loss` is `rows`."""

    rows: Any = None

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
        gradient = rows.gradient(null)
        scale = float(np.abs(gradient / spread)[informative].max(initial=0.0))
        scale = scale if scale > MIN_SIGNAL_PER_EVENT * rows.n_events else 1.0
        return cls(
            head, cast(Any, rows), spread, informative, cast(Any, null), gradient, scale, rows
        )

    @property
    def on_device(self) -> None:
        """No GPU."""

    def spread_at_risk(self, now: Any, sums: Any = None) -> Features:
        """See `Problem.spread_at_risk`."""
        spread = self.spread.copy()
        others = np.flatnonzero(~self.design.is_binary)
        if others.size:
            weighted, own = self.rows.deviation(others, now), spread[others]
            spread[others] = np.where(weighted > MIN_SPREAD_SHARE * own, weighted, own)
        return spread

    def sampled_information(
        self, eta: Any, columns: Index, n_samples: int, *, raise_rare: bool = True
    ) -> Matrix:
        """See `Problem.sampled_information`."""
        return cast(Matrix, self.rows.sampled_information(eta, columns, n_samples, raise_rare))

    @property
    def bare(self) -> Any:
        """The likelihood as it is: without offsets at rest, but with its weights."""
        return self.rows

    def at_rest(self) -> Any:
        """See `Problem.at_rest`."""
        return self.rows.at_rest()

    def varies(self, weights: Features, tolerance: float) -> bool:
        """See `Problem.varies`."""
        return bool(self.rows.range_of(weights) > tolerance)


class BlockPasses(RowOperator):
    """Passes by the blocks."""

    def __init__(self, rows: BlockRows) -> None:
        self.rows = rows
        self.sums = cast(Any, None)

    def at(self, beta: Features) -> Any:
        """See `RowOperator`."""
        return self.moved(None, 1.0, self.along(beta, np.arange(beta.size)))

    def evaluate(self, eta: Any) -> Any:
        """See `RowOperator`."""
        return self.rows.evaluate(eta)

    def cross(self, now: Any, columns: Index | None = None) -> Features:
        """See `RowOperator`."""
        return self.rows.gradient(now, columns)

    def along(self, step: Features, columns: Index) -> Any:
        """See `RowOperator`."""
        return self.rows.along(step, columns)

    def span(self, along: Any) -> float:
        """See `RowOperator`."""
        return float(along.span)

    def moved(self, eta: Any, share: float, along: Any) -> Any:
        """See `RowOperator`."""
        return self.rows.moved(eta, share, along)

    def home(self, eta: Any) -> Any:
        """Never asked for: linear predictors stay where they are."""
        raise NotImplementedError


class BlockMinimisation(Minimisation):
    """A minimisation with passes by blocks."""

    can_multiply: ClassVar[bool] = False

    def _fastest_passes(self) -> RowOperator:
        return BlockPasses(self.problem.rows)  # type: ignore[attr-defined]

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
        if found.status != "max_iter" or not self.problem.rows.was_too_wide:  # type: ignore[attr-defined]
            return found
        what = (
            "on the way to the answer linear predictors span 500 or more, which a fit in blocks "
            "cannot hold. Fit on one machine, or look for rows far from all others."
        )
        return replace(found, notes=(*found.notes, Note("max_iter", (), what)))

    def _is_finite(self, free: Index) -> bool:
        """Whether the Newton step of the free columns proves it (`solve.finiteness`)."""
        problem = self.problem
        rows: BlockRows = problem.rows  # type: ignore[attr-defined]
        if float(problem.design.n_rows) * free.size**2 > MAX_PROOF_WORK * rows.crew.n_blocks:
            return False
        found = FreeColumns.at(problem.design, problem.loss, self.eta, free)
        if not found.are_estimable(problem.spread[free], problem.loss.n_events):
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
