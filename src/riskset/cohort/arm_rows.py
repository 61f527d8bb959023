"""The rows of an arm in the order of their times, ready for the curves of any weights."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from riskset._types import Index, Rows
from riskset.cohort.outcomes import Outcomes

__all__ = ["ArmRows"]


@dataclass(frozen=True, eq=False)
class ArmRows:
    """Rows of an arm (n,) and their distinct times (m,), ascending.

    `first` (m,) is the first row of each time. A row has any event, the outcome, or neither.
    """

    rows: Index
    any_event: NDArray[np.bool_]
    outcome: NDArray[np.bool_]
    time: Rows
    first: Index

    @classmethod
    def of(cls, outcomes: Outcomes, rows: Index) -> "ArmRows":
        """The given rows of a population."""
        rows = rows[np.argsort(outcomes.time[rows], kind="stable")]
        time, first = np.unique(outcomes.time[rows], return_index=True)
        status = outcomes.status[rows]
        return cls(rows, status > 0, status == 1, time, first)

    @property
    def end(self) -> float:
        """Time up to which the curves are known: for ever if all who were left had an event."""
        is_complete = bool(self.any_event[self.first[-1] :].all())
        return float("inf") if is_complete else float(self.time[-1])

    def events_by(self, at: Rows, *, competing: bool = False) -> Index:
        """People with the outcome, or with a competing event, up to each time (k,)."""
        event = self.any_event & ~self.outcome if competing else self.outcome
        events = np.append(0, np.cumsum(event))
        place = np.searchsorted(self.time, at, side="right")
        return np.asarray(events[np.append(self.first, self.rows.size)[place]])

    def at_risk(self, at: Rows) -> Index:
        """People under observation just before each time (k,)."""
        place = np.searchsorted(self.time, at, side="left")
        return self.rows.size - np.append(self.first, self.rows.size)[place]

    def curves(self, weight: Rows) -> tuple[Rows, Rows] | None:
        """Probability of no event, and risk of the outcome, from each time on; both (m,).

        `weight` are those of the whole population; None without weight.
        """
        own = weight[self.rows]
        if not own.sum() > 0:
            return None
        # Added up from the end, so that nothing is ever subtracted.
        at_risk = np.cumsum(np.add.reduceat(own, self.first)[::-1])[::-1]
        shares = []
        for event in (self.any_event, self.outcome):
            events = np.add.reduceat(own * event, self.first)
            shares.append(np.divide(events, at_risk, out=np.zeros_like(events), where=at_risk > 0))
        free = np.cumprod(1 - shares[0])
        return free, np.cumsum(np.append(1.0, free[:-1]) * shares[1])

    def risk(self, weight: Rows, at: Rows) -> Rows:
        """Risk of the outcome by each time (k,); NaN without weight."""
        curves = self.curves(weight)
        if curves is None:
            return np.full(at.size, np.nan)
        return np.append(0.0, curves[1])[np.searchsorted(self.time, at, side="right")]

    def areas(self, weight: Rows, at: Rows) -> NDArray[np.float64]:
        """Areas up to each horizon (3, k): without an event, lost to the outcome, and to others."""
        curves = self.curves(weight)
        if curves is None:
            return np.full((3, at.size), np.nan)
        free, lost = (
            self._area(steps, at, first) for steps, first in zip(curves, (1.0, 0.0), strict=True)
        )
        return np.array([free, lost, at - free - lost])

    def _area(self, steps: Rows, at: Rows, first: float) -> Rows:
        """Area from 0 to each horizon (k,) under a curve with steps (m,), `first` before them."""
        start = np.append(0.0, self.time)
        value = np.append(first, steps)
        whole = np.append(0.0, np.cumsum(value[:-1] * np.diff(start)))
        place = np.searchsorted(self.time, at, side="right")
        return np.asarray(whole[place] + value[place] * (at - start[place]))
