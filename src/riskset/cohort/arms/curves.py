"""Survival and cumulative incidence of the arms, with the weights of an adjustment."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from riskset._errors import CohortError, InputError
from riskset._messages import Note, Value
from riskset._types import AnyArray, Rows
from riskset.cohort.adjustments.adjustment import Adjustment, People, start
from riskset.cohort.effects.outcome_data import belong_together
from riskset.cohort.outcomes import Outcomes
from riskset.curves._result import as_times
from riskset.curves.aalen_johansen import AalenJohansen, aalen_johansen
from riskset.curves.comparison import GroupTest, gray_test
from riskset.curves.intervals import ProbabilityIntervalType
from riskset.curves.kaplan_meier import KaplanMeier, kaplan_meier
from riskset.data.frame import data_frame
from riskset.data.outcome import Surv

__all__ = ["ARMS", "ArmCurves", "followed_arms", "gray", "incidence", "outcome_notes", "survival"]

ARMS = ("target", "comparator")


@dataclass(frozen=True, eq=False, repr=False)
class ArmCurves:
    """Survival or cumulative incidence of the arms, from `survival` or `incidence`.

    Attributes
    ----------
    curves : KaplanMeier or AalenJohansen
        ``curves["target"]`` and ``curves["comparator"]``. Cause 1 is the outcome, cause 2 competing
        events.
    limit : float
        Time at which a tenth of the people are still followed. Show curves up to this time.

    Examples
    --------
    >>> import riskset as rs
    >>> people = rs.cohort.Population([1, 1, 0, 0])
    >>> curves = rs.cohort.survival(rs.Surv([1.0, 3.0, 2.0, 4.0], [1, 0, 0, 1]), people)
    >>> curves.columns([2.0])["survival"]
    array([0.5, 1. ])
    """

    curves: KaplanMeier | AalenJohansen
    limit: float
    _outcomes: Mapping[str, Outcomes]
    _event_time: Mapping[tuple[str, int], Rows]

    def __repr__(self) -> str:
        return f"ArmCurves up to {self.limit:g}: {self.curves!r}"

    def columns(self, times: object) -> dict[str, AnyArray]:
        """Return one row per arm (and cause) and time.

        Returns
        -------
        dict
            ``arm``, ``cause`` (of an incidence), ``time``, ``at_risk`` (weighted), ``survival`` or
            ``incidence``, ``standard_error``, ``lower``, ``upper``, and ``people_at_risk``. If the
            survival is 1, the interval is [1, 1]. If it is 0, the interval is [0, 0] and the
            standard error NaN. After the end of follow-up of an arm, all are NaN.
        """
        at = as_times(times)
        parts: list[dict[str, AnyArray]] = []
        for arm in ARMS:
            own = self.curves[arm].columns(at)
            size = own["time"].size
            if "survival" in own:
                gone = own["survival"] == 0
                own |= {end: np.where(gone, 0.0, own[end]) for end in ("lower", "upper")}
                own["standard_error"] = np.where(gone, np.nan, own["standard_error"])
            everybody = np.arange(self._outcomes[arm].time.size)
            n_at_risk = self._outcomes[arm].n_at_risk(everybody, own["time"])
            own["people_at_risk"] = n_at_risk.astype(np.float64)
            parts.append({"arm": np.full(size, arm, dtype=object)} | own)
        wanted = [name for name in parts[0] if not name.startswith("cumulative_hazard")]
        return {name: np.concatenate([part[name] for part in parts]) for name in wanted}

    def events(self, arm: str, cause: int, times: Rows) -> Rows:
        """Return the number of people of an arm with an event of a cause by each time."""
        found = np.searchsorted(self._event_time[arm, cause], times, side="right")
        return found.astype(np.float64)

    def to_frame(self, times: object, *, library: str | None = None) -> Any:
        """Return `columns` as a data frame."""
        return data_frame(self.columns(times), library)


def survival(
    y: object,
    adjustment: People,
    *,
    cause: int | str | None = None,
    level: float = 0.95,
    interval: ProbabilityIntervalType = "log-log",
    clustered: bool = False,
) -> ArmCurves:
    """Estimate Kaplan-Meier curves of the arms with the weights of an adjustment.

    Standard errors are those of Xie and Liu; with equal weights, Greenwood's. If `clustered`, they
    come from the infinitesimal jackknife.

    Parameters
    ----------
    y : (n,) structured array
        `riskset.Surv(time, status)` of the whole population, with `entry` if people come under
        observation later.
    adjustment : Adjustment or Population
    cause : int or str, optional
        Code or label of the outcome in `y`. All other events compete with it. Required if `y` has
        labels; otherwise 1 is the outcome and 2 a competing event.
    level, interval
        As of `riskset.kaplan_meier`.
    clustered : bool
        Let standard errors allow for rows of an arm that belong together: those of one matched set,
        such as several comparators of a target, or otherwise those of one person.

    Raises
    ------
    CohortError
        "BadOutcome"; "EmptyArm" if an arm is empty; "LateEntry" if nobody of an arm is followed
        across some time before others enter; "CompetingEvents", because 1 - survival is then not a
        risk: use `incidence`.

    References
    ----------
    Tsai, Jewell and Wang (1987), Biometrika 74, 883-886, doi:10.1093/biomet/74.4.883, on late
    entry.

    Examples
    --------
    >>> import riskset as rs
    >>> people = rs.cohort.Population([1, 0, 0], [0.8, 0.5, 0.2])
    >>> y = rs.Surv([3.0, 1.0, 4.0], [0, 1, 0])
    >>> found = rs.cohort.survival(y, rs.cohort.weight(people, "ate"))
    >>> found.curves["comparator"].at([2.0]).round(4)
    array([0.3846])
    """
    adjustment, outcomes = followed_arms(y, adjustment, cause, allow_late=True)
    if (outcomes.status[adjustment.kept] == 2).any():
        raise CohortError(
            "CompetingEvents",
            "there are competing events, so one minus a survival curve is not a risk.",
            hint="use riskset.cohort.incidence.",
        )
    names, of_arms, event_time, limit = _arms(outcomes, adjustment)
    curves = kaplan_meier(
        outcomes.y,
        names,
        adjustment.weight,
        level,
        interval=interval,
        variance="robust" if clustered else "xie-liu",
        cause=1,
        cluster=adjustment.cluster if clustered else None,
    )
    return ArmCurves(curves, limit, of_arms, event_time)


def incidence(
    y: object,
    adjustment: People,
    *,
    cause: int | str | None = None,
    level: float = 0.95,
    interval: ProbabilityIntervalType = "log-log",
    clustered: bool = False,
) -> ArmCurves:
    """Estimate the cumulative incidence of the outcome and of competing events, by arm.

    Standard errors come from the infinitesimal jackknife over rows, or over clusters, with weights
    treated as known.

    Parameters
    ----------
    y, adjustment, cause, level, interval, clustered
        As of `survival`.

    Raises
    ------
    CohortError
        "BadOutcome", "EmptyArm", "LateEntry".

    Examples
    --------
    >>> import riskset as rs
    >>> people = rs.cohort.Population([1, 1, 0, 0])
    >>> found = rs.cohort.incidence(rs.Surv([1.0, 2.0, 3.0, 4.0], [1, 2, 1, 0]), people)
    >>> found.curves["target"].at([2.0]), found.curves["comparator"].at([3.0])
    (array([[0.5],
           [0.5]]), array([[0.5],
           [0. ]]))
    """
    adjustment, outcomes = followed_arms(y, adjustment, cause, allow_late=True)
    names, of_arms, event_time, limit = _arms(outcomes, adjustment)
    curves = aalen_johansen(
        outcomes.y,
        names,
        adjustment.weight,
        level,
        interval=interval,
        variance="robust",
        cluster=adjustment.cluster if clustered else None,
    )
    return ArmCurves(curves, limit, of_arms, event_time)


def gray(y: object, adjustment: People, cause: int | str | None = None) -> GroupTest:
    """Perform Gray's test that the incidence of a cause is equal in both arms.

    Parameters
    ----------
    y, adjustment, cause
        As of `survival`.

    Raises
    ------
    InputError
        If rows of an arm have different weights, because the test has no weights; or if rows belong
        together, those of a matched set or of one person, because its variance takes rows as
        independent.

    Examples
    --------
    >>> import riskset as rs
    >>> people = rs.cohort.Population([1, 1, 0, 0])
    >>> found = rs.cohort.gray(rs.Surv([1.0, 2.0, 3.0, 4.0], [1, 2, 1, 0]), people)
    >>> found.groups, found.n_events
    ((0, 1), array([1, 1]))
    """
    adjustment, outcomes = followed_arms(y, adjustment, cause)
    if adjustment.is_weighted:
        raise InputError(
            f"Gray's test takes no weights, but the adjustment by {adjustment.kind} has them.",
            hint="compare the incidences themselves, by `riskset.cohort.risk_difference`.",
        )
    kept = adjustment.kept
    rows = np.flatnonzero(kept)
    if belong_together(adjustment, rows, "marginal"):
        is_matched = adjustment.kind == "matching"
        of = "a matched set" if is_matched else "a person"
        raise InputError(
            f"Gray's test takes rows as independent, but the rows of {of} belong together.",
            hint="compare the incidences themselves, by `riskset.cohort.risk_difference`"
            + (", or hazards within the sets, by `riskset.logrank_test`." if is_matched else "."),
        )
    arm = adjustment.population.treatment[kept]
    return gray_test(Surv(outcomes.time[kept], outcomes.status[kept]), arm)


def _arms(
    outcomes: Outcomes, adjustment: Adjustment
) -> tuple[AnyArray, dict[str, Outcomes], dict[tuple[str, int], Rows], float]:
    """Names of the arms by row; outcomes and times of events, and where curves end."""
    names = np.where(adjustment.population.is_target, *ARMS).astype(object)
    own = dict(zip(ARMS, adjustment.arms, strict=True))
    of_arms = {arm: outcomes.take(np.flatnonzero(rows)) for arm, rows in own.items()}
    event_time = {
        (arm, cause): np.sort(outcomes.time[rows & (outcomes.status == cause)])
        for arm, rows in own.items()
        for cause in (1, 2)
    }
    return names, of_arms, event_time, float(np.quantile(outcomes.time[adjustment.kept], 0.9))


def outcome_notes(outcomes: Outcomes, adjustment: Adjustment) -> tuple[Note, ...]:
    """A note if nobody who is left has the outcome, as with a code of `cause` that no row has."""
    if (outcomes.status[adjustment.kept] == 1).any():
        return ()
    text = "nobody who is left has the outcome: its risk and the time lost to it are 0, "
    return (Note("no_outcome", (), text + "and their intervals have no meaning."),)


def followed_arms(
    y: object, people: People, cause: int | str | None, *, allow_late: bool = False
) -> tuple[Adjustment, Outcomes]:
    """An adjustment that leaves people in both arms, and their outcomes.

    With `allow_late`, people may enter late, if in each arm some are always under observation.
    """
    adjustment = start(people, allow_weights=True)
    outcomes = Outcomes.read(y, adjustment, cause, allow_late=allow_late)
    if not adjustment.n_target or not adjustment.n_comparator:
        raise CohortError(
            "EmptyArm",
            "the arms have {target:,} and {comparator:,} people left, and cannot be compared.",
            hint="look at the attrition; the status is {status}.",
            values={
                "target": Value("count", adjustment.n_target),
                "comparator": Value("count", adjustment.n_comparator),
                "status": Value("name", repr(adjustment.status)),
            },
        )
    for arm, rows in zip(ARMS, adjustment.arms, strict=True):
        outcomes.check_followed(rows, arm)
    return adjustment, outcomes
