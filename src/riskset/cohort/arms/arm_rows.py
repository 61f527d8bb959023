"""The rows of an arm in the order of their times, ready for the curves of any weights."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from riskset._types import Index, Rows
from riskset.cohort.adjustments.adjustment import Adjustment
from riskset.cohort.arms.curves import ARMS
from riskset.cohort.outcomes import Outcomes, first_gap

__all__ = ["ArmRows", "counts_by"]


@dataclass(frozen=True, eq=False)
class ArmRows:
    """Rows of an arm (n,) and their distinct times (m,), ascending.

    `first` (m,) is the first row of each time. A row has any event, the outcome, or neither.
    `entry` (n,) are the days after which rows come under observation, and `since` those after which
    the first of the rows that they follow does; None without late entry.
    """

    rows: Index
    any_event: NDArray[np.bool_]
    outcome: NDArray[np.bool_]
    time: Rows
    first: Index
    entry: Rows | None = None
    since: Rows | None = None

    @classmethod
    def of(cls, outcomes: Outcomes, rows: Index) -> "ArmRows":
        """The given rows of a population."""
        rows = rows[np.argsort(outcomes.time[rows], kind="stable")]
        time, first = np.unique(outcomes.time[rows], return_index=True)
        status = outcomes.status[rows]
        late = (outcomes.entry, outcomes.since)
        entry, since = (None if column is None else column[rows] for column in late)
        return cls(rows, status > 0, status == 1, time, first, entry, since)

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
        left = self.rows.size - np.append(self.first, self.rows.size)[place]
        if self.entry is None:
            return left
        inside = np.where(self.entry > 0, self.entry, -np.inf)
        return left - (self.rows.size - np.searchsorted(np.sort(inside), at, side="left"))

    def curves(self, weight: Rows) -> tuple[Rows, Rows] | None:
        """Probability of no event, and risk of the outcome, from each time on; both (m,).

        `weight` are those of the whole population; None without weight, or if nobody with weight is
        followed across some time before others enter.
        """
        own = weight[self.rows]
        if not own.sum() > 0:
            return None
        # Added up from the end, so that nothing is ever subtracted.
        at_risk = np.cumsum(np.add.reduceat(own, self.first)[::-1])[::-1]
        if self.entry is not None:
            has_weight = own > 0
            ends = np.repeat(self.time, np.diff(np.append(self.first, own.size)))
            since = self.entry if self.since is None else self.since
            if first_gap(ends[has_weight], since[has_weight]) is not None:
                return None
            order = np.argsort(self.entry, kind="stable")
            later = np.append(np.cumsum(own[order][::-1])[::-1], 0.0)
            place = np.searchsorted(self.entry[order], self.time, side="left")
            at_risk = at_risk - later[place]
        shares = []
        for event in (self.any_event, self.outcome):
            events = np.add.reduceat(own * event, self.first)
            at_risk = np.maximum(at_risk, events)  # but for rounding of what is subtracted
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


def counts_by(adjustment: Adjustment, outcomes: Outcomes, at: Rows) -> dict[str, Index]:
    """People of each arm with events by each time (k,), and at risk then."""
    counts = {}
    for name, of_arm in zip(ARMS, adjustment.arms, strict=True):
        arm = ArmRows.of(outcomes, np.flatnonzero(of_arm))
        counts[f"{name}_outcomes"] = arm.events_by(at)
        counts[f"{name}_competing"] = arm.events_by(at, competing=True)
        counts[f"{name}_at_risk"] = arm.at_risk(at)
    return counts
