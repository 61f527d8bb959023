r"""The distribution of censoring, which weights rows after a competing event.

A row with a competing event at s stays in the risk set of an event at t > s with the chance
:math:`G(t-) / G(s-)` that it would not have been censored by then, G the Kaplan-Meier estimate of
the censoring distribution.
"""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from riskset._errors import InputError
from riskset._runtime import Runtime
from riskset._types import Index, Rows
from riskset.data.outcome import Outcome
from riskset.kernels import censoring_cpu as kernels
from riskset.kernels.sorting_cpu import distinct_in_order

__all__ = [
    "BeyondSupport",
    "CensoringDistribution",
    "CensoringTies",
    "CensoringTimes",
    "CensoringWeights",
]

CensoringTies = Literal["crr", "finegray"]
BeyondSupport = Literal["zero", "last"]
CensoringWeights = Literal["case", "none"]

ROWS_PER_LOOK = 4096
"""Rows looked at together, from the last one down."""


@dataclass(frozen=True)
class CensoringTimes:
    """The rows of one group by their distinct times: what estimates under any weights share.

    `rows` (m,) of the caller stand in the order of time, `at` is the number of distinct times
    before each row's own, and `time` (k,) are the distinct times, both increasing.
    """

    rows: Index
    at: Index
    time: NDArray[np.float64]
    is_censored: NDArray[np.bool_]

    @classmethod
    def of(cls, rows: Index, time: Rows, event: Index) -> "CensoringTimes":
        """Of some rows (m,) of `time` and `event` (n,), 0 = censored."""
        order, values, at = distinct_in_order(time[rows], Runtime.select())
        rows = rows[order]
        return cls(rows, at, values, event[rows] == 0)

    def n_before(self, time: NDArray[np.float64]) -> Index:
        """Number of distinct times before others; replicates ask for the same ones again."""
        asked, found = self.__dict__.get("_before", (None, None))
        if asked is not time:
            found = np.searchsorted(self.time, time)
            self.__dict__["_before"] = time, found
        return np.asarray(found)

    def survival(self, weight: Rows, ties: CensoringTies) -> NDArray[np.float64]:
        r"""Kaplan-Meier estimate after 0, 1, ..., k distinct times (k + 1,).

        .. math:: G(t) = \prod_{u \le t} \left(1 - \frac{c_u}{Y_u}\right)

        with :math:`c_u` the weight censored at u, and :math:`Y_u` the weight at risk of it, in
        which rows with an event at u count (``ties="crr"``: as cmprsk::crr and Cyclops) or do not,
        having left before the censorings at u ("finegray": as survival::finegray).

        References
        ----------
        Kaplan & Meier (1958), Journal of the American Statistical Association 53, 457-481,
        doi:10.1080/01621459.1958.10501452.
        """
        return kernels.survival(
            self.rows, self.at, self.time.size, self.is_censored, weight, ties == "crr"
        )

    def last(self, weight: Rows) -> int:
        """Number of distinct times before the last one of a row that counts; 0 without any."""
        for stop in range(self.rows.size, 0, -ROWS_PER_LOOK):
            counting = np.flatnonzero(weight[self.rows[max(stop - ROWS_PER_LOOK, 0) : stop]] > 0)
            if counting.size:
                return int(self.at[max(stop - ROWS_PER_LOOK, 0) + counting[-1]])
        return 0


@dataclass(frozen=True)
class CensoringDistribution:
    """G(t-) for each row's own time and for the time of each group of events.

    `group` (n,) is the censoring group of each row, 0..K-1, `own` (n,) is G(time-) of its group at
    its own time, and `at_events` (K, G) is G(t-) of each censoring group at the time of each group
    of events. `weight` (n,) of each row in the estimate is None, and `times` of the groups are
    empty, if G was given. The other fields are as in `estimate`.
    """

    group: Index
    own: Rows
    at_events: NDArray[np.float64]
    weight: Rows | None = None
    ties: CensoringTies = "crr"
    beyond: BeyondSupport = "zero"
    weights: CensoringWeights = "case"
    times: tuple[CensoringTimes, ...] = ()

    @classmethod
    def estimate(
        cls,
        outcome: Outcome,
        *,
        ties: CensoringTies = "crr",
        group: Index | None = None,
        beyond: BeyondSupport = "zero",
        weights: CensoringWeights = "case",
        source: Rows | None = None,
        carry_on: bool = False,
        times: tuple[CensoringTimes, ...] = (),
    ) -> "CensoringDistribution":
        """Kaplan-Meier estimates of the censoring distribution, one for each `group` (n,).

        `ties`: see `CensoringTimes.survival`. After a group's last time its rows count no longer
        (``beyond="zero"``, as crr and finegray have it), or with the last positive value ("last").
        Case weights count in the estimate (``weights="case"``) or not ("none"); they are those of
        `source`, or the outcome's. With `carry_on`, G is its last positive value where the rows
        that it was estimated from have all left. `times` of each group save their preparation.
        """
        n = outcome.n_rows
        group = np.zeros(n, dtype=np.int64) if group is None else group
        case = outcome.weight if source is None else source
        case = case if weights == "case" else (case > 0).astype(np.float64)
        is_event = ~np.isnan(outcome.group_time)
        times = times or _by_group(outcome, group)
        own = np.ones(n)
        at_events = np.zeros((len(times), is_event.size))
        for k, of_group in enumerate(times):
            rows, curve = of_group.rows, of_group.survival(case, ties)
            before_event = of_group.n_before(outcome.group_time)[is_event]
            here, values = curve[of_group.at], curve[before_event]
            last = of_group.last(case)
            if carry_on:
                # Just before the last time somebody is left, so nothing there is 0.
                here = np.where(here > 0, here, curve[last])
            if carry_on or beyond == "last":
                values = np.where(values > 0, values, curve[last])
            elif len(times) > 1:
                values[before_event > last] = 0.0
            own[rows] = here
            at_events[k, is_event] = values
        return cls(group, own, at_events, case, ties, beyond, weights, times)

    def replicate(self, outcome: Outcome, source: Rows, carry_on: bool) -> "CensoringDistribution":
        """G for the same rows with other weights, estimated from `source` as before."""
        if self.weight is None:
            return CensoringDistribution.given(outcome, self.own)
        return CensoringDistribution.estimate(
            outcome,
            ties=self.ties,
            group=self.group,
            beyond=self.beyond,
            weights=self.weights,
            source=source,
            carry_on=carry_on,
            times=self.times,
        )

    def taken(self, rows: Index) -> "CensoringDistribution":
        """G of some rows, or of all in another order."""
        weight = None if self.weight is None else self.weight[rows]
        return replace(self, group=self.group[rows], own=self.own[rows], weight=weight, times=())

    def at_groups(self, groups: Index) -> "CensoringDistribution":
        """G at the times of some groups of events."""
        return replace(self, at_events=self.at_events[:, groups])

    @classmethod
    def given(cls, outcome: Outcome, probability: Rows) -> "CensoringDistribution":
        """From G(time-) of each row, as the caller estimated it.

        Rows with an event at one time must agree, because theirs is the value at that time.
        """
        risk = outcome.risk
        at_events = np.zeros((1, risk.group_events.size))
        events = np.flatnonzero(risk.event_weight > 0)
        group = np.searchsorted(risk.group_ptr, events, side="right") - 1
        values = probability[risk.order[events]]
        at_events[0, group] = values
        differ = np.flatnonzero(np.abs(at_events[0, group] - values) > 1e-9 * values)
        if differ.size:
            row = int(risk.order[events[differ[0]]])
            raise InputError(
                "`censoring_probability` must be the same for events at one time, but at time "
                f"{outcome.time[row]:g} it is {values[differ[0]]:g} and "
                f"{at_events[0, group[differ[0]]]:g} (row {row}).",
                hint="it is the probability of not being censored before the row's own time.",
            )
        return cls(np.zeros(outcome.n_rows, dtype=np.int64), probability, at_events)


def _by_group(outcome: Outcome, group: Index) -> tuple[CensoringTimes, ...]:
    """The times of each censoring group."""
    order = outcome.risk.order  # neighbours in time are neighbours in the curve, too
    return tuple(
        CensoringTimes.of(order[group[order] == k], outcome.time, outcome.event)
        for k in range(int(group.max()) + 1)
    )
