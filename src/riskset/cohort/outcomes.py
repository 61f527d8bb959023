"""What happened to the people of a study: checked once, counted by arm.

The first module that may look at outcomes.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincinv, ndtri

from riskset._errors import CohortError, InputError, counted
from riskset._messages import Value
from riskset._time_units import DAYS_A_YEAR
from riskset._types import AnyArray, Index, Rows, is_count
from riskset.cohort.adjustments.adjustment import Adjustment, People, start
from riskset.curves.followup import EVERYBODY, Followup
from riskset.curves.life_table import LifeTable
from riskset.curves.reverse_kaplan_meier import reverse_kaplan_meier
from riskset.data.causes import cause_code
from riskset.data.checks import Places
from riskset.data.labels import as_labels
from riskset.data.outcome import Surv

__all__ = [
    "ArmCounts",
    "FollowUpTime",
    "Outcomes",
    "as_status",
    "count_arms",
    "count_rows",
    "first_gap",
    "followup",
    "poisson_interval",
]

FROM_START = -1.0
"""Entry of rows that are at risk at time 0, too."""

SHARES = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Follow-up of every row of a population (n,).

    Times are days at risk, including the first and the last; the status is 0 = censored, 1 =
    outcome or 2 = competing event. `entry` are the days after which rows come under observation;
    None if all do at the start. `since` is that of the first of the rows of a person in an arm
    that follow each other.
    """

    time: Rows
    status: Index
    entry: Rows | None = None
    since: Rows | None = None

    @classmethod
    def read(
        cls,
        y: object,
        adjustment: Adjustment,
        cause: int | str | None = None,
        *,
        only_time: bool = False,
        allow_late: bool = False,
    ) -> "Outcomes":
        """Check `riskset.Surv(time, status)` of all rows of a population, which may have none.

        All events other than `cause` are competing. Without it, codes are 0, 1 = outcome and 2 =
        competing event, or there is only one label. With `only_time` the kind of event does not
        matter, and with `allow_late` rows may have an entry. Errors have the code "BadOutcome".
        """
        if not adjustment.population.n_rows and isinstance(y, np.ndarray) and not y.size:
            return cls(np.zeros(0), np.zeros(0, dtype=np.int64))
        rows = Followup.read(y)
        if only_time:
            rows = rows._replace(event=np.minimum(rows.event, 1))
        elif cause is not None or rows.causes:
            rows = rows._replace(event=as_status(rows, cause))
        n = adjustment.population.n_rows
        if (rows.weight != 1).any():
            raise CohortError(
                "BadOutcome",
                "`y` has case weights, but the weights of a study are those of its adjustment.",
                hint="pass riskset.Surv(time, event), and weights to riskset.cohort.weight.",
            )
        if rows.time.size != n:
            raise CohortError(
                "BadOutcome",
                f"`y` must have the {n:,} rows of the population, but it has {rows.time.size:,} of "
                "positive weight.",
                hint="pass the outcome of everybody, before trimming and matching.",
            )
        if rows.entry is not None and not allow_late:
            raise CohortError(
                "BadOutcome",
                "`y` has late entries, but this function needs people who are followed from the "
                "start.",
                hint="leave `entry` out.",
            )
        entry = np.zeros(n) if rows.entry is None else rows.entry
        for bad, what, hint in (
            (entry < 0, "entries must not be before the start", "let them be 0."),
            (rows.time <= 0, "times must be positive", "count the first day as 1."),
            (
                rows.event > 2,
                "status must be 0 (censored), 1 (outcome) or 2 (competing event)",
                "name the outcome with `cause`; all other events then compete with it.",
            ),
        ):
            if bad.any():
                k, count = int(np.argmax(bad)), int(np.count_nonzero(bad))
                are = "is" if count == 1 else "are"
                raise CohortError(
                    "BadOutcome",
                    f"{what}, but {counted(count, 'row')} of `y` {are} not (first: row {k}, time "
                    f"{rows.time[k]:g}, status {rows.event[k]}).",
                    hint=hint,
                    details={"rows": np.flatnonzero(bad)[:3].tolist(), "count": count},
                )
        if not (entry > 0).any():
            return cls(rows.time, rows.event)
        return cls(rows.time, rows.event, entry, _since(adjustment, rows.time, entry))

    @property
    def at_risk_after(self) -> Rows:
        """Time after which each row is at risk (n,): of those from the start, one before it."""
        if self.entry is None:
            return np.full(self.time.size, FROM_START)
        return np.where(self.entry > 0, self.entry, FROM_START)

    @property
    def duration(self) -> Rows:
        """Days under observation (n,)."""
        return self.time if self.entry is None else self.time - self.entry

    @property
    def y(self) -> AnyArray:
        """Time, status and entry, if there are any, as models and curves take them."""
        entry = None if self.entry is None else self.at_risk_after
        return Surv(self.time, self.status, entry)

    def n_at_risk(self, rows: Index | NDArray[np.bool_], at: Rows) -> Index:
        """How many of some rows are under observation just before each time (k,)."""
        left = np.sort(self.time[rows])
        gone = np.searchsorted(left, at, side="left")
        if self.entry is None:
            return np.asarray(left.size - gone)
        entered = np.searchsorted(np.sort(self.at_risk_after[rows]), at, side="left")
        return np.asarray(entered - gone)

    def check_followed(self, rows: Index | NDArray[np.bool_], arm: str) -> None:
        """Refuse rows of which nobody is followed across some time before others enter."""
        if self.entry is None:
            return
        since = self.entry if self.since is None else self.since
        gap = first_gap(self.time[rows], since[rows])
        if gap is None:
            return
        words = (
            "nobody in the {arm} is under observation from the start, so curves from the start "
            "cannot be estimated."
            if gap == 0
            else "nobody in the {arm} is at risk after {gap:g} days until others enter, so curves "
            "cannot be estimated beyond that time."
        )
        raise CohortError(
            "LateEntry",
            words,
            hint="count time from a later start, or estimate hazard ratios only.",
            values={"arm": Value("name", arm), "gap": Value("count", gap)},
        )

    def life_table(self, rows: Index, weight: Rows) -> LifeTable:
        """The table of some rows, as one group, with their weights; outcome and competing events.

        Squares of its weights are numbers.
        """
        followup = Followup(
            self.time[rows],
            self.status[rows],
            None if self.entry is None else self.at_risk_after[rows],
            weight,
            np.zeros(rows.size, dtype=np.int64),
            (EVERYBODY,),
            {},
        )
        return LifeTable.build(followup, np.array([1, 2])).squarable()

    def take(self, rows: Index) -> "Outcomes":
        """Those of some rows, which may be repeated."""
        entry, since = (None if x is None else x[rows] for x in (self.entry, self.since))
        return Outcomes(self.time[rows], self.status[rows], entry, since)


def first_gap(time: Rows, entry: Rows) -> float | None:
    """The first time that nobody is followed across although others enter then or later.

    >>> first_gap(np.array([2.0, 5.0, 9.0]), np.array([0.0, 1.0, 4.0])) is None
    True
    >>> first_gap(np.array([2.0, 5.0, 9.0]), np.array([0.0, 1.0, 6.0]))
    5.0
    """
    order = np.argsort(entry, kind="stable")
    reached = np.maximum.accumulate(np.append(0.0, time[order]))[:-1]
    late = entry[order] >= reached
    late[: int(np.count_nonzero(entry == 0))] = False
    return float(reached[np.argmax(late)]) if late.any() else None


def _since(adjustment: Adjustment, time: Rows, entry: Rows) -> Rows:
    """When the rows of a person in an arm began that each kept row follows (n,)."""
    people, kept, since = adjustment.population, adjustment.kept, entry.copy()
    person = np.unique(people.person_id, return_inverse=True)[1].reshape(-1)
    history = (2 * person + people.treatment)[kept]
    since[kept] = _first_entries(history, time[kept], entry[kept])
    return since


def _first_entries(history: Index, time: Rows, entry: Rows) -> Rows:
    """When the history of each row began, of which rows follow each other without a gap (n,).

    >>> _first_entries(np.array([1, 1, 1, 2]), np.array([2, 5, 9, 4]), np.array([1, 2, 6, 2]))
    array([1, 1, 6, 2])
    """
    order = np.lexsort((time, entry, history))
    who, begin, end = history[order], entry[order], time[order]
    is_first = np.append(True, (who[1:] != who[:-1]) | (begin[1:] != end[:-1]))
    since = np.empty_like(begin)
    since[order] = begin[np.maximum.accumulate(np.where(is_first, np.arange(who.size), 0))]
    return since


def as_status(rows: Followup, cause: int | str | None) -> Index:
    """1 = outcome, 2 = competing event, for a cause that is named; it need not occur."""
    try:
        code = cause_code(cause, rows.causes)
    except InputError as error:
        raise CohortError("BadOutcome", error.message, hint=error.hint) from None
    if not is_count(code):
        raise CohortError(
            "BadOutcome",
            f"`cause` must be a positive whole number or a label, but it is {cause!r}.",
            hint="pass the code of the outcome, 1, 2, ...",
        )
    return np.where(rows.event == code, 1, np.minimum(rows.event, 1) * 2).astype(np.int64)


@dataclass(frozen=True)
class ArmCounts:
    """Counts and rates of one arm, with each kept row counted once.

    Attributes
    ----------
    persons, exposures, outcomes, competing : int
    days : float
    rate, rate_lower, rate_upper : float
        Outcomes per 1000 person-years, and its exact Poisson interval of 95 %; NaN without days.
    weighted_rate, weighted_rate_lower, weighted_rate_upper : float
        With the weights of the adjustment, and the interval of a ratio of two weighted sums over
        persons, with all their rows, on the log scale; NaN where there are no days, its ends where
        there are no outcomes.
    """

    persons: int
    exposures: int
    days: float
    outcomes: int
    competing: int
    rate: float
    rate_lower: float
    rate_upper: float
    weighted_rate: float
    weighted_rate_lower: float
    weighted_rate_upper: float


def count_arms(outcomes: Outcomes, adjustment: Adjustment) -> tuple[ArmCounts, ArmCounts]:
    """Target and comparator of those whom an adjustment keeps."""
    person, weight = adjustment.population.person_id, adjustment.weight
    target, comparator = (count_rows(outcomes, person, weight, rows) for rows in adjustment.arms)
    return target, comparator


def count_rows(
    outcomes: Outcomes, person: Index, weight: Rows, rows: NDArray[np.bool_]
) -> ArmCounts:
    """Counts of some rows, each of which is an exposure."""
    time, status = outcomes.duration[rows], outcomes.status[rows]
    events, days = int(np.count_nonzero(status == 1)), float(time.sum())
    years = days / DAYS_A_YEAR / 1000
    lower, upper = poisson_interval(events)
    rate, rate_lower, rate_upper = (
        x / years if years > 0 else np.nan for x in (events, lower, upper)
    )
    weighted = _weighted_rate(time, status == 1, weight[rows], person[rows])
    return ArmCounts(
        persons=np.unique(person[rows]).size,
        exposures=time.size,
        days=days,
        outcomes=events,
        competing=int(np.count_nonzero(status == 2)),
        rate=rate,
        rate_lower=rate_lower,
        rate_upper=rate_upper,
        weighted_rate=weighted[0],
        weighted_rate_lower=weighted[1],
        weighted_rate_upper=weighted[2],
    )


def _weighted_rate(
    time: Rows, event: NDArray[np.bool_], weight: Rows, person: Index
) -> tuple[float, float, float]:
    """Weighted outcomes over weighted time, and its ends by the delta method on the log scale.

    The rows of a person belong together.
    """
    days, events = float(weight @ time), float(weight[event].sum())
    if not days > 0:
        return np.nan, np.nan, np.nan
    rate = events / days
    if not events:
        return 0.0, np.nan, np.nan
    _, own = np.unique(person, return_inverse=True)
    away = np.bincount(own, weight * (event - rate * time))
    error = np.sqrt((away**2).sum()) / events
    factor = float(np.exp(ndtri(0.975) * error))
    rate *= 1000 * DAYS_A_YEAR
    return rate, rate / factor, rate * factor


def poisson_interval(events: int, level: float = 0.95) -> tuple[float, float]:
    """Exact interval of the mean of a Poisson number (Garwood 1936, doi:10.1093/biomet/28.3-4.437).

    >>> poisson_interval(0)
    (0.0, 3.688...)
    """
    tail = (1 - level) / 2
    lower = 0.0 if events == 0 else float(gammaincinv(events, tail))
    return lower, float(gammaincinv(events + 1, 1 - tail))


@dataclass(frozen=True, eq=False)
class FollowUpTime:
    """Follow-up of the arms, the result of `followup`.

    Attributes
    ----------
    shares : tuple of float
        Probabilities of the quantiles.
    target, comparator : (k,) float64
        Quantiles of the days at risk (type 7). NaN for an empty arm.
    days_target, days_comparator : float
        Sum of the days at risk.
    entry_target, entry_comparator : (k,) float64
        Quantiles of the days after which rows came under observation; 0 without late entry.
    potential_target, potential_comparator : (k,) float64
        Quantiles of the days until the end of follow-up if nobody had the outcome, by
        `riskset.reverse_kaplan_meier`; that of 0.5 is the median follow-up. NaN if not reached, or
        if nobody is followed across some time before others enter.
    followed_target, followed_comparator : (k,) float64
        Number of rows that were followed until these quantiles, without an outcome before.
    ends_target, ends_comparator : mapping of str to int
        Number of rows by reason for the end of follow-up. Empty without reasons.
    """

    shares: tuple[float, ...]
    target: Rows
    comparator: Rows
    days_target: float
    days_comparator: float
    potential_target: Rows
    potential_comparator: Rows
    followed_target: Rows
    followed_comparator: Rows
    ends_target: Mapping[str, int]
    ends_comparator: Mapping[str, int]
    entry_target: Rows
    entry_comparator: Rows


def followup(y: object, adjustment: People, end_reason: object = None) -> FollowUpTime:
    """Describe the follow-up of each arm, with each kept row counted once.

    Parameters
    ----------
    y : (n,) structured array
        `riskset.Surv(time, status)` of the whole population, with `entry` if people come under
        observation later.
    adjustment : Adjustment or Population
    end_reason : (n,) text, optional
        Reason for the end of follow-up of each row.

    Raises
    ------
    CohortError
        "BadOutcome".

    Examples
    --------
    >>> import riskset as rs
    >>> people = rs.cohort.Population([1, 1, 0, 0])
    >>> found = rs.cohort.followup(rs.Surv([1.0, 3.0, 2.0, 4.0], [1, 0, 0, 1]), people)
    >>> found.days_target, found.days_comparator
    (4.0, 6.0)
    >>> float(found.potential_target[3])  # the median: the other one had the outcome before
    3.0
    """
    adjustment = start(adjustment, allow_weights=True)
    outcomes = Outcomes.read(y, adjustment, None, only_time=True, allow_late=True)
    reasons = None
    if end_reason is not None:
        try:
            reasons = as_labels(end_reason, "end_reason", outcomes.time.size, Places())
        except InputError as error:
            raise CohortError("BadOutcome", error.message, hint=error.hint) from None
    quantiles, days, ends, entries = [], [], [], []
    potential: list[Rows] = []
    for rows in adjustment.arms:
        time = outcomes.duration[rows]
        quantiles.append(_quantiles(time))
        entries.append(_quantiles(outcomes.time[rows] - time))
        days.append(float(time.sum()))
        potential += _potential_days(outcomes.take(np.flatnonzero(rows)))
        ends.append({} if reasons is None else dict(Counter(sorted(map(str, reasons[rows])))))
    return FollowUpTime(
        SHARES, quantiles[0], quantiles[1], days[0], days[1], potential[0], potential[2],
        potential[1], potential[3], ends[0], ends[1], entries[0], entries[1],
    )  # fmt: skip


def _quantiles(days: Rows) -> Rows:
    return np.quantile(days, SHARES) if days.size else np.full(len(SHARES), np.nan)


def _potential_days(outcomes: Outcomes) -> tuple[Rows, Rows]:
    """Quantiles of the days until the end of follow-up without an event, and those at risk then."""
    time, entry = outcomes.time, outcomes.entry
    if not time.size or (entry is not None and first_gap(time, entry) is not None):
        return np.full(len(SHARES), np.nan), np.zeros(len(SHARES))
    curve = reverse_kaplan_meier(outcomes.y)["all"]
    inner = [curve.quantile(share)[0] if 0 < share < 1 else np.nan for share in SHARES]
    found = np.array(inner)
    known = np.isfinite(found)
    followed = np.zeros(found.size)
    followed[known] = curve.at_risk(found[known])
    return found, followed
