r"""The distributions of censoring and of entry, which weight rows after a competing event.

A row with a competing event at s stays in the risk set of an event at t > s with the chance
:math:`G(t-) / G(s-)` that it would not have been censored by then, G the Kaplan-Meier estimate of
the censoring distribution. Where rows enter late, those with an event before they would have
entered are missing, the fewer the later: then the weight is :math:`G(t-) H(t-) / (G(s-) H(s-))`, H
the Kaplan-Meier estimate of the distribution of entry in reversed time. In what follows G is their
product.

References
----------
Geskus (2011), Biometrics 67, 39-49, doi:10.1111/j.1541-0420.2010.01420.x.
Zhang, Zhang & Fine (2011), Statistics in Medicine 30, 1933-1951, doi:10.1002/sim.4264.
"""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from riskset._errors import InputError
from riskset._runtime import Runtime
from riskset._types import Index, Rows
from riskset.data.outcome import Outcome
from riskset.data.start_stop.person_rows import PersonRows
from riskset.kernels import censoring_cpu as kernels
from riskset.kernels.sorting_cpu import distinct_in_order

__all__ = [
    "BeyondSupport",
    "CensoringDistribution",
    "CensoringTies",
    "CensoringTimes",
    "CensoringWeights",
    "ObservationTimes",
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
class ObservationTimes(CensoringTimes):
    """As `CensoringTimes`, of rows that enter late.

    `time` (k,) has the entries, too, and `since` (m,) is the number of distinct times before each
    row's entry. `is_first` (m,): the row is not the continuation of another; `is_censored` only
    where no other row continues it.
    """

    since: Index
    is_event: NDArray[np.bool_]
    is_first: NDArray[np.bool_]

    @classmethod
    def at_risk(cls, rows: Index, outcome: Outcome, people: PersonRows) -> "ObservationTimes":
        """Of some rows (m,) of an outcome with entries."""
        assert outcome.entry is not None
        order, values, _ = distinct_in_order(outcome.time[rows], Runtime.select())
        rows = rows[order]
        entry, is_event = outcome.entry[rows], outcome.event[rows] != 0
        time = np.union1d(values, entry)
        at, since = (np.searchsorted(time, x) for x in (outcome.time[rows], entry))
        is_censored = ~is_event & people.is_last[rows]
        return cls(rows, at, time, is_censored, since, is_event, people.is_first[rows])

    def observed(self, weight: Rows, ties: CensoringTies) -> NDArray[np.float64]:
        """See `censoring_ref.observed`."""
        return kernels.observed(
            self.since, self.at, self.time.size, self.is_censored, self.is_event, self.is_first,
            weight[self.rows], ties == "crr",
        )  # fmt: skip

    def survival(self, weight: Rows, ties: CensoringTies) -> NDArray[np.float64]:
        r"""G(t) H(t) after 0, 1, ..., k distinct times (k + 1,).

        .. math:: G(t) = \prod_{u \le t} \left(1 - \frac{c_u}{Y_u}\right), \qquad
                  H(t) = \prod_{u > t} \left(1 - \frac{e_u}{Z_u}\right)

        with :math:`c_u, Y_u` as for `CensoringTimes`, :math:`e_u` the weight that enters at u, and
        :math:`Z_u` the weight that has entered by u and stays longer. Where all of :math:`Z_u`
        enters at u, nobody was at risk before, and :math:`H(t) / H(s)` is not known for s < u <= t:
        the factor is left out, and so is one of G that is 0 before later entries. What is left are
        the ratios between times on the same side; see `breaks`.
        """
        censored, staying, entering, entered = self.observed(weight, ties)
        entry = self.since[weight[self.rows] > 0]
        is_end = np.arange(self.time.size) > entry.max(initial=-1)
        g, h = np.ones((2, self.time.size))
        np.divide(
            staying, staying + censored, out=g, where=(staying > 0) | (is_end & (censored > 0))
        )
        np.divide(entered, entered + entering, out=h, where=entered > 0)
        before = np.append(np.cumprod(h[::-1])[::-1], 1.0)
        return np.asarray(np.append(1.0, np.cumprod(g)) * before)

    def breaks(self, weight: Rows) -> NDArray[np.float64]:
        """Times of entries before which nobody was at risk, increasing; the first of all is one."""
        _, _, entering, entered = self.observed(weight, "crr")
        return np.asarray(self.time[(entering > 0) & (entered == 0)])


@dataclass(frozen=True)
class CensoringDistribution:
    """G(t-) for each row's own time and for the time of each group of events.

    `group` (n,) is the censoring group of each row, 0..K-1, `own` (n,) is G(time-) of its group at
    its own time, and `at_events` (K, G) is G(t-) of each censoring group at the time of each group
    of events. `weight` (n,) of each row in the estimate is None, and `times` of the groups are
    empty, if G was given. The other fields are as in `estimate`. Where rows enter late, G is the
    product of the distributions of censoring and of entry.
    """

    group: Index
    own: Rows
    at_events: NDArray[np.float64]
    weight: Rows | None = None
    ties: CensoringTies = "crr"
    beyond: BeyondSupport = "zero"
    weights: CensoringWeights = "case"
    times: tuple[CensoringTimes, ...] = ()
    people: PersonRows | None = None

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
        people: PersonRows | None = None,
    ) -> "CensoringDistribution":
        """Kaplan-Meier estimates of the censoring distribution, one for each `group` (n,).

        `ties`: see `CensoringTimes.survival`. After a group's last time its rows count no longer
        (``beyond="zero"``, as crr and finegray have it), or with the last positive value ("last").
        Case weights count in the estimate (``weights="case"``) or not ("none"); they are those of
        `source`, or the outcome's. With `carry_on`, G is its last positive value where the rows
        that it was estimated from have all left. `times` of each group save their preparation.
        With late entry, `people` says which rows continue others; None: none does.
        """
        n = outcome.n_rows
        group = np.zeros(n, dtype=np.int64) if group is None else group
        case = outcome.weight if source is None else source
        case = case if weights == "case" else (case > 0).astype(np.float64)
        is_event = ~np.isnan(outcome.group_time)
        times = times or _by_group(outcome, group, people)
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
        return cls(group, own, at_events, case, ties, beyond, weights, times, people)

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
            people=self.people,
        )

    def times_of(self, outcome: Outcome) -> tuple[CensoringTimes, ...]:
        """The times of each censoring group of an outcome, whose rows are those of G."""
        return self.times or _by_group(outcome, self.group, self.people)

    def unlinked(self, outcome: Outcome) -> tuple[float, int] | None:
        """Of late entry: a time before which nobody is at risk, and how many rows that cuts off.

        They have a competing event by that time, and there are events of interest after it in the
        risk sets that they would be in, with a weight that the data do not determine. The time is
        the last such. None: there is none.
        """
        if self.weight is None:
            return None
        last_event = np.full(outcome.n_strata, -np.inf)
        events = np.flatnonzero(outcome.is_event & (outcome.weight > 0))
        np.maximum.at(last_event, outcome.stratum[events], outcome.time[events])
        competing = (outcome.event != 0) & ~outcome.is_event & (outcome.weight > 0)
        found, n_rows = -np.inf, 0
        for times in self.times:
            if not isinstance(times, ObservationTimes):
                continue
            breaks = np.append(times.breaks(self.weight), np.inf)
            rows = times.rows[competing[times.rows]]
            end = last_event[outcome.stratum[rows]]
            # The last break before the last event; a row is cut off if it ends no later.
            at = breaks[np.maximum(np.searchsorted(breaks, end) - 1, 0)]
            time = outcome.time[rows]
            at = np.where((self.own[rows] == 0) & (time < end), time, at)  # underflow
            is_cut = (time <= at) & (at < end)
            n_rows += int(np.count_nonzero(is_cut))
            found = max(found, float(at[is_cut].max(initial=-np.inf)))
        return (found, n_rows) if n_rows else None

    def taken(self, rows: Index) -> "CensoringDistribution":
        """G of some rows, or of all in another order."""
        weight = None if self.weight is None else self.weight[rows]
        people = None if self.people is None else self.people.taken(rows)
        own = self.own[rows]
        return replace(
            self, group=self.group[rows], own=own, weight=weight, times=(), people=people
        )

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


def _by_group(
    outcome: Outcome, group: Index, people: PersonRows | None
) -> tuple[CensoringTimes, ...]:
    """The times of each censoring group."""
    order = outcome.risk.order  # neighbours in time are neighbours in the curve, too
    of_groups = [order[group[order] == k] for k in range(int(group.max()) + 1)]
    if outcome.entry is None:
        return tuple(CensoringTimes.of(rows, outcome.time, outcome.event) for rows in of_groups)
    people = people or PersonRows.alone(outcome.n_rows)
    return tuple(ObservationTimes.at_risk(rows, outcome, people) for rows in of_groups)
