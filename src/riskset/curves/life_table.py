"""Who is at risk, fails and is censored at each time: what every curve is made of.

Numbers at risk are added up and never taken off a running total, so that weights of any size, and
rows that enter late, leave no rounding of what has gone.
"""

import functools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from riskset._runtime import Runtime
from riskset._types import Index, RiskSets, Rows
from riskset.curves.clusters import ClusterPieces
from riskset.curves.followup import Followup
from riskset.data.risk_order import into_risk_sets, risk_order
from riskset.kernels.grouping_cpu import tally
from riskset.kernels.late_entry_cpu import sum_at_risk
from riskset.kernels.life_table_cpu import count_ends, sum_later
from riskset.kernels.sorting_cpu import stable_order

__all__ = ["LifeTable"]

TableSteps = NDArray[np.float64]
"""One number for each time of a life table, (m,)."""


@dataclass(frozen=True, eq=False)
class LifeTable:
    """Weighted numbers at each distinct time (m,) at which a follow-up of one group ends.

    `causes` (k,) are the codes that count as events; `sums` (k + 1, m) has the weight that fails of
    each, then the weight that is censored.
    """

    rows: Followup
    causes: Index
    time: TableSteps
    sums: NDArray[np.float64]

    @classmethod
    def build(cls, rows: Followup, causes: Index) -> "LifeTable":
        """Count the rows of one group, in O(n log n); other codes are censored."""
        runtime = Runtime.select()
        kind = np.int8 if causes.size < 128 else np.int64
        if causes.size == 1:
            code = np.not_equal(rows.event, causes[0]).view(np.int8)
        else:
            code = np.full(rows.time.size, causes.size, dtype=kind)
            for k, cause in enumerate(causes):
                code[rows.event == cause] = k
        if not rows.has_weights:
            return cls(rows, causes, *count_ends(rows.time, code, causes.size + 1, runtime))
        order = stable_order(rows.time, runtime)
        time, sums = tally(order, rows.time, code, rows.weight, causes.size + 1, runtime)
        table = cls(rows, causes, time, sums)
        table.__dict__["_order"] = order
        return table

    def squarable(self) -> "LifeTable":
        """The same table, with weights of a size whose squares are numbers."""
        exponent = self.rows.exponent
        if exponent == 0:
            return self
        rows, sums = self.rows.squarable(), np.ldexp(self.sums, exponent)
        return LifeTable(rows, self.causes, self.time, sums)

    @property
    def events(self) -> NDArray[np.float64]:
        """Weight that fails of each cause (k, m)."""
        return np.asarray(self.sums[:-1])

    @property
    def censored(self) -> TableSteps:
        """Weight that is censored (m,)."""
        return np.asarray(self.sums[-1])

    @functools.cached_property
    def staying(self) -> TableSteps:
        """Weight at risk at the time and beyond it (m,)."""
        if self.has_late_entry:
            return self.sum_staying(self.rows.weight)
        return sum_later(self.sums, Runtime.select())

    @functools.cached_property
    def _order(self) -> Index:
        return stable_order(self.rows.time, Runtime.select())

    @functools.cached_property
    def place(self) -> Index:
        """Position in `time` at which each row ends (n,)."""
        ends = self.rows.time[self._order]
        place = np.empty(ends.size, dtype=np.int64)
        place[self._order] = np.append(0, np.cumsum(ends[1:] != ends[:-1]))
        return place

    @functools.cached_property
    def n_events(self) -> TableSteps:
        """Weight that fails of any cause (m,)."""
        return np.asarray(self.events.sum(axis=0)) if self.causes.size > 1 else self.events[0]

    @functools.cached_property
    def at_risk(self) -> TableSteps:
        """Weight at risk (m,): entered before the time, and not gone before it."""
        return self.staying + self.censored + self.n_events

    @functools.cached_property
    def _risk(self) -> RiskSets | None:
        """The risk sets, if late entry matters."""
        rows = self.rows
        if rows.entry is None:
            return None
        n = rows.time.size
        everyone = np.ones(n, dtype=bool)
        stratum = np.zeros(n, dtype=np.int64)
        order = risk_order(rows.time, stratum, 1)
        risk = into_risk_sets(order, rows.time, everyone, rows.weight, rows.entry, stratum)
        return risk if risk.own.size else None

    @property
    def has_late_entry(self) -> bool:
        """Whether anybody enters after the first time."""
        return self._risk is not None

    def sum_staying(self, value: Rows) -> TableSteps:
        """Sum of a value over the rows that are at risk at each time and stay beyond it (m,)."""
        risk, m = self._risk, self.time.size
        if risk is None:
            return sum_later(self.sum_leaving(value)[None, :], Runtime.select())
        rest = np.zeros(m)
        # Everybody counts as an event here, so Efron's sum leaves out those who end at the time.
        sum_at_risk(value[risk.order], risk, True, rest)
        return rest[::-1].copy()

    def sum_leaving(self, value: Rows) -> TableSteps:
        """Sum of a value over the rows that end at each time (m,)."""
        return np.bincount(self.place, value, self.time.size).astype(np.float64, copy=False)

    @functools.cached_property
    def start(self) -> Index:
        """Position in `time` at which each row is first at risk (n,)."""
        if not self.has_late_entry:
            return np.zeros(self.rows.time.size, dtype=np.int64)
        assert self.rows.entry is not None
        return np.searchsorted(self.time, self.rows.entry, side="right")

    @functools.cached_property
    def pieces(self) -> ClusterPieces | None:
        """Pieces of the clusters of the rows, if there are clusters."""
        cluster = self.rows.cluster
        if cluster is None:
            return None
        return ClusterPieces.of(cluster, self.start, self.place, self.time.size)

    def at_entry(self, steps: TableSteps) -> Rows:
        """Value of a step function, 0 at first, when each row enters (n,)."""
        if not self.has_late_entry:
            return np.zeros(self.rows.time.size)
        return np.append(0.0, steps)[self.start]

    def at_risk_before(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """Weight under observation just before any times (t,)."""
        rows = self.rows
        if rows.entry is None:
            return np.append(self.at_risk, 0.0)[np.searchsorted(self.time, times, side="left")]
        under = [(rows.entry < t) & (rows.time >= t) for t in times]
        return np.array([rows.weight[here].sum() for here in under], dtype=np.float64)
