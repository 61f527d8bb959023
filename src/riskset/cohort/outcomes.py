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
from riskset._time_units import DAYS_A_YEAR
from riskset._types import Index, Rows, is_count
from riskset.cohort.adjustment import Adjustment, People, start
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
    "followup",
    "poisson_interval",
]

SHARES = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Follow-up of every row of a population (n,).

    Times are days at risk, including the first and the last; the status is 0 = censored, 1 =
    outcome or 2 = competing event.
    """

    time: Rows
    status: Index

    @classmethod
    def read(
        cls,
        y: object,
        adjustment: Adjustment,
        cause: int | str | None = None,
        *,
        only_time: bool = False,
    ) -> "Outcomes":
        """Check `riskset.Surv(time, status)` of all rows of a population, which may have none.

        All events other than `cause` are competing. Without it, codes are 0, 1 = outcome and 2 =
        competing event, or there is only one label. With `only_time` the kind of event does not
        matter. Errors have the code "BadOutcome".
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
        if rows.entry is not None:
            raise CohortError(
                "BadOutcome",
                "`y` has late entries, but people of a cohort study are followed from day 1.",
                hint="leave `entry` out.",
            )
        for bad, what, hint in (
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
        return cls(rows.time, rows.event)

    def life_table(self, rows: Index, weight: Rows) -> LifeTable:
        """The table of some rows, as one group, with their weights; outcome and competing events.

        Squares of its weights are numbers.
        """
        followup = Followup(
            self.time[rows],
            self.status[rows],
            None,
            weight,
            np.zeros(rows.size, dtype=np.int64),
            (EVERYBODY,),
            {},
        )
        return LifeTable.build(followup, np.array([1, 2])).squarable()

    def take(self, rows: Index) -> "Outcomes":
        """Those of some rows, which may be repeated."""
        return Outcomes(self.time[rows], self.status[rows])


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
    time, status = outcomes.time[rows], outcomes.status[rows]
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
    potential_target, potential_comparator : (k,) float64
        Quantiles of the days until the end of follow-up if nobody had the outcome, by
        `riskset.reverse_kaplan_meier`; that of 0.5 is the median follow-up. NaN if not reached.
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


def followup(y: object, adjustment: People, end_reason: object = None) -> FollowUpTime:
    """Describe the follow-up of each arm, with each kept row counted once.

    Parameters
    ----------
    y : (n,) structured array
        `riskset.Surv(time, status)` of the whole population.
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
    outcomes = Outcomes.read(y, adjustment, None, only_time=True)
    reasons = None
    if end_reason is not None:
        try:
            reasons = as_labels(end_reason, "end_reason", outcomes.time.size, Places())
        except InputError as error:
            raise CohortError("BadOutcome", error.message, hint=error.hint) from None
    quantiles, days, ends = [], [], []
    potential: list[Rows] = []
    for rows in adjustment.arms:
        time = outcomes.time[rows]
        quantiles.append(np.quantile(time, SHARES) if time.size else np.full(len(SHARES), np.nan))
        days.append(float(time.sum()))
        potential += _potential_days(time, outcomes.status[rows])
        ends.append({} if reasons is None else dict(Counter(sorted(map(str, reasons[rows])))))
    return FollowUpTime(
        SHARES, quantiles[0], quantiles[1], days[0], days[1], potential[0], potential[2],
        potential[1], potential[3], ends[0], ends[1],
    )  # fmt: skip


def _potential_days(time: Rows, status: Index) -> tuple[Rows, Rows]:
    """Quantiles of the days until the end of follow-up without an event, and those at risk then."""
    if not time.size:
        return np.full(len(SHARES), np.nan), np.zeros(len(SHARES))
    curve = reverse_kaplan_meier(Surv(time, status))["all"]
    inner = [curve.quantile(share)[0] if 0 < share < 1 else np.nan for share in SHARES]
    found = np.array(inner)
    known = np.isfinite(found)
    followed = np.zeros(found.size)
    followed[known] = curve.at_risk(found[known])
    return found, followed
