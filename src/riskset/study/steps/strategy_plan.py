"""When clones deviate from the strategies of their arms, and when they can."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from riskset._types import Index, Rows
from riskset.cohort.protocol.strategies import GraceStrategy

__all__ = ["StrategyPlan"]


@dataclass(frozen=True, eq=False)
class StrategyPlan:
    """The strategies of both arms in days, and when the people of a cohort (n,) start.

    `began` is infinite for people who never start; `is_target` says in which arm a clone is.
    """

    began: Rows
    is_target: NDArray[np.bool_]
    target: GraceStrategy
    comparator: GraceStrategy

    @property
    def arms(self) -> tuple[tuple[GraceStrategy, NDArray[np.bool_]], ...]:
        """Each strategy with the clones who follow it."""
        return (self.target, self.is_target), (self.comparator, ~self.is_target)

    @property
    def borders(self) -> Rows:
        """Days after the start at which rows are cut, because who can deviate changes then."""
        times = {time for strategy, _ in self.arms for time in strategy.borders}
        return np.array(sorted(time for time in times if time > 0))

    def moved(self, move: Callable[[Rows], Rows]) -> "StrategyPlan":
        """The same with times moved, such as to borders that they are but for rounding."""

        def of_arm(strategy: GraceStrategy) -> GraceStrategy:
            grace, opens = move(np.array([strategy.grace, strategy.opens])).tolist()
            return replace(strategy, grace=grace, opens=opens)

        arms = of_arm(self.target), of_arm(self.comparator)
        return StrategyPlan(move(self.began), self.is_target, *arms)

    def deviation(self) -> Rows:
        """Days at which clones deviate (n,); infinite: never."""
        at = np.empty(self.began.size)
        for strategy, here in self.arms:
            at[here] = strategy.deviation(self.began[here])
        return at

    def can_deviate(
        self, row: Index, entry: Rows, time: Rows, has_event: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Whether rows in (entry, time] of clones (m,) can end with a deviation."""
        found = np.zeros(row.size, dtype=bool)
        for strategy, of_arm in self.arms:
            here = of_arm[row]
            found[here] = strategy.can_deviate(
                entry[here], time[here], has_event[here], self.began[row[here]]
            )
        return found
