"""The step that describes what happened: counts, curves, risks, numbers at risk, follow-up."""

import dataclasses
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from riskset._errors import InputError
from riskset._messages import Note
from riskset._ticks import time_ticks
from riskset._time_units import DAYS_A_YEAR, DAYS_IN, TimeUnit
from riskset._types import Rows
from riskset.cohort.adjustments.adjustment import Adjustment, People, effective_size
from riskset.cohort.arms.curves import ArmCurves, incidence, survival
from riskset.cohort.arms.risks import end_notes, risk_difference
from riskset.cohort.outcomes import followup
from riskset.results.column_groups import ArmColumns
from riskset.results.rows import (
    ArmRow,
    AtRiskRow,
    CurveRow,
    DeviationRow,
    FollowUpBinRow,
    FollowUpEndRow,
    FollowUpRow,
    RiskRow,
    WeekRow,
)
from riskset.study.cache import StepResult
from riskset.study.sources.source import AnalysedOutcome, EventWeeks, Followed
from riskset.study.steps.deviation_weights import WeightedRows
from riskset.study.steps.propensity_step import status_of
from riskset.study.steps.protocol_description import (
    WeightedPeople,
    deviations_by_time,
    weighted_counts,
    weighted_curves,
)

__all__ = ["DescriptionStep", "describe", "follow_up_bins"]

ARMS = ("target", "comparator")
MAX_CURVE_STEPS = 1000
"""Of a curve: more steps than a reader can see."""

BREAKS = (1, 2, 5, 7, 10, 15, 30, 50, 100, 250)
LONG_BREAKS = tuple(DAYS_A_YEAR * years for years in (0.5, 1, 2, 5, 10))
"""Of curves longer than two years, whose axis counts years."""
MAX_BREAKS = 8
WEEK = 7
ROUNDING = 1e-9
MAX_WEEKS = 104
BIN_WIDTHS = (*BREAKS, *(DAYS_A_YEAR * years for years in (1, 2, 5, 10)))
MAX_BINS = 40


@dataclass(frozen=True, eq=False, kw_only=True)
class DescriptionStep(StepResult, step="follow-up"):
    """What happened to the people of a run, as rows of tables."""

    arms: list[ArmRow]
    curves: list[CurveRow]
    risks: list[RiskRow]
    at_risk: list[AtRiskRow]
    follow_up: list[FollowUpRow]
    bins: list[FollowUpBinRow]
    ends: list[FollowUpEndRow]
    weeks: list[WeekRow]
    deviations: list[DeviationRow] = dataclasses.field(default_factory=list)


def describe(
    outcome: AnalysedOutcome,
    risk_times: tuple[float, ...],
    unit: TimeUnit = "days",
    weighted: WeightedRows | None = None,
) -> DescriptionStep:
    """Everything about one outcome that does not need a model.

    Risks are those at `risk_times`, in days. Times of numbers at risk and bins are round in `unit`.
    If people are censored when they deviate, what is adjusted has the weights of `weighted`, and
    without these there is nothing adjusted.

    Rows of curves and risks hold how many people each arm then has and how many had an event,
    which decides how much of them is shared.
    """
    followed, adjustment, model = outcome.followed, outcome.people, outcome.analysis.model
    before = _Side(followed, followed.people, False, model.level)
    after = _Side(followed, adjustment, True, model.level, weighted)
    has_weights = followed.anyway is None or weighted is not None
    arms, curves, risks, at_risk = [], [], [], []
    deviations: list[DeviationRow] = []
    notes: list[Note] = []
    for side in (before, after):
        arms.append(side.counts())
        if side.adjusted and (adjustment.status != "ok" or not has_weights):
            continue
        try:
            both = side.estimate()
        except InputError as error:
            reason = status_of(error)[1]
            notes.append(Note("no_curves", (), reason.template, reason.values))
            continue
        curves += side.steps(both)
        breaks = _breaks(both.limit, unit)
        at_risk += side.at_risk(breaks)
        if side.weighted is not None:
            deviations = deviations_by_time(followed, adjustment, breaks)
        ends = {arm: both.curves[arm].end for arm in ARMS}
        for note in end_notes(np.array(risk_times), ends, unit):
            longer = replace(note, template=f"{note.template} Choose earlier `risk_times`.")
            notes += [] if longer in notes else [longer]
        of_side = [side.risk(both, time) for time in risk_times]
        if side.adjusted or followed.is_cloned:
            of_side = _with_differences(of_side, outcome, risk_times, side.weighted)
        risks += of_side
    return DescriptionStep(
        notes=tuple(notes),
        arms=arms,
        curves=curves,
        risks=risks,
        at_risk=at_risk,
        follow_up=_follow_up(followed, adjustment),
        bins=follow_up_bins(followed, adjustment, unit),
        ends=_ends(followed, adjustment),
        weeks=_weeks(followed),
        deviations=deviations,
    )


def _arm(people: Adjustment, arm: str) -> NDArray[np.bool_]:
    target = people.population.is_target
    return np.asarray(people.kept & (target if arm == "target" else ~target))


@dataclass(frozen=True, eq=False)
class _Side:
    """The people of a run before or after adjustment."""

    followed: Followed
    people: Adjustment
    adjusted: bool
    level: float
    weighted: WeightedRows | None = None

    def counts(self) -> ArmRow:
        """Counts and rates of both arms."""
        both = self.followed.counts(self.people)
        if self.weighted is not None:
            both = weighted_counts(self.followed, self.people, self.weighted)
        target, comparator = (ArmColumns(**dataclasses.asdict(counts)) for counts in both)
        side = "after" if self.adjusted else "before"
        return ArmRow(side=side, target_arm=target, comparator_arm=comparator)

    def estimate(self) -> ArmCurves:
        """Survival of both arms, or with competing events their incidence."""
        has_competing = bool((self.followed.status[self.people.kept] == 2).any())
        if self.weighted is not None:
            return weighted_curves(
                self.followed, self.people, self.weighted, self.level, has_competing=has_competing
            )
        curves = incidence if has_competing else survival
        return curves(self.followed.outcome, self.people, level=self.level)

    def steps(self, curves: ArmCurves) -> list[CurveRow]:
        """Rows of both curves at the times of their events, from 0 to the limit or their end."""
        rows = []
        for arm in ARMS:
            time = self.followed.time[_arm(self.people, arm) & (self.followed.status > 0)]
            last = min(curves.limit, curves.curves[arm].end)
            times = np.unique(np.concatenate([[0.0], time[time <= last], [last]]))
            if times.size > MAX_CURVE_STEPS:
                times = _thinned(curves, arm, times)
            columns = curves.columns(times)
            kind = "survival" if "survival" in columns else "incidence"
            fewest = self._fewest(columns["time"])
            events = {cause: self._events(arm, cause, columns["time"]) for cause in (1, 2)}
            for k in np.flatnonzero((columns["arm"] == arm) & (fewest > 0)):
                cause = int(columns["cause"][k]) if "cause" in columns else 1
                rows.append(
                    CurveRow(
                        adjusted=self.adjusted,
                        kind=kind,
                        arm=arm,
                        cause=cause,
                        time=float(columns["time"][k]),
                        value=float(columns[kind][k]),
                        standard_error=float(columns["standard_error"][k]),
                        lower=float(columns["lower"][k]),
                        upper=float(columns["upper"][k]),
                        people=int(fewest[k]),
                        events=int(events[cause][k]),
                    )
                )
        return rows

    def _fewest(self, times: Rows) -> NDArray[np.int64]:
        """People at risk at times, in the arm that has fewer."""
        outcomes = self.followed.outcomes
        return np.minimum(*(outcomes.n_at_risk(_arm(self.people, arm), times) for arm in ARMS))

    def _events(self, arm: str, cause: int, times: Rows) -> NDArray[np.int64]:
        """People of an arm with an event of a cause by times."""
        has_event = _arm(self.people, arm) & (self.followed.status == cause)
        return np.searchsorted(np.sort(self.followed.time[has_event]), times, side="right")

    def at_risk(self, breaks: Rows) -> list[AtRiskRow]:
        """Numbers at risk of both arms at some times."""
        rows = []
        for arm in ARMS:
            is_of_arm = _arm(self.people, arm)
            for at in breaks:
                still = self._weights_at(is_of_arm, float(at))
                rows.append(
                    AtRiskRow(
                        adjusted=self.adjusted,
                        arm=arm,
                        time=float(at),
                        people=int(still.size),
                        weighted=float(still.sum()),
                        effective=effective_size(still),
                    )
                )
        return rows

    def _weights_at(self, is_of_arm: NDArray[np.bool_], time: float) -> Rows:
        """Weights of the people of an arm who are at risk just before a time."""
        if self.weighted is not None:
            rows = self.weighted.at_risk(time) & is_of_arm[self.weighted.person]
            return self.weighted.whole_weight[rows]
        entry = self.followed.outcomes.at_risk_after
        return self.people.weight[is_of_arm & (entry < time) & (self.followed.time >= time)]

    def risk(self, curves: ArmCurves, time: float) -> RiskRow:
        """Risks up to a time and their difference, with a normal interval; None if not known."""
        row: dict[str, Any] = {}
        errors: list[float] = []
        columns = curves.columns([time])
        for arm in ARMS:
            here = columns["arm"] == arm
            if "cause" in columns:
                here &= columns["cause"] == 1
            at_risk = self.followed.outcomes.n_at_risk(_arm(self.people, arm), np.array([time]))
            row[f"{arm}_at_risk"] = int(at_risk[0])
            row[f"{arm}_outcomes"] = int(self._events(arm, 1, np.array([time]))[0])
            if time > curves.curves[arm].end:
                continue
            low = high = risk = error = 0.0  # if all that happened are competing events
            for k in np.flatnonzero(here)[:1]:
                low, high, error = (columns[n][k] for n in ("lower", "upper", "standard_error"))
                risk = columns["survival" if "survival" in columns else "incidence"][k]
                if "survival" in columns:
                    low, high, risk = 1 - high, 1 - low, 1 - risk
            errors.append(float(error))
            row[f"{arm}_risk"] = float(risk)
            row |= {f"{arm}_lower": float(low), f"{arm}_upper": float(high)}
        if len(errors) == len(ARMS):
            half = float(ndtri(0.5 + self.level / 2) * np.hypot(errors[0], errors[1]))
            difference = row["target_risk"] - row["comparator_risk"]
            row["difference"] = difference
            row |= {"difference_lower": difference - half, "difference_upper": difference + half}
        return RiskRow(
            adjusted=self.adjusted, time=time, interval="normal", interval_level=self.level, **row
        )


def _thinned(curves: ArmCurves, arm: str, times: Rows) -> Rows:
    """Times at which the curve has moved by a thousandth of its range, and both ends."""
    values = np.atleast_2d(curves.curves[arm].at(times))
    span = np.ptp(values, axis=1, keepdims=True)
    steps = np.floor(values * (MAX_CURVE_STEPS / 4) / np.where(span > 0, span, 1.0))
    moved = (np.diff(steps, axis=1) != 0).any(axis=0)
    keep = np.concatenate([[True], moved])
    keep[-1] = True
    return np.asarray(times[keep])


def _breaks(limit: float, unit: TimeUnit = "days") -> Rows:
    if unit != "days":
        return np.array(time_ticks(limit / DAYS_IN[unit], unit, MAX_BREAKS)) * DAYS_IN[unit]
    steps = BREAKS if limit <= 2 * DAYS_A_YEAR else LONG_BREAKS
    step = next((b for b in steps if limit / b <= MAX_BREAKS), None)
    if step is None:  # longer than lives
        return np.array(time_ticks(limit / DAYS_A_YEAR, "years", MAX_BREAKS)) * DAYS_A_YEAR
    return np.arange(0.0, limit + step * 1e-9, step)


def _with_differences(
    risks: list[RiskRow],
    outcome: AnalysedOutcome,
    times: tuple[float, ...],
    weighted: WeightedRows | None,
) -> list[RiskRow]:
    """Risks with the interval of their difference, where known.

    It is of resamples, which keep matched sets whole. With weights for deviation, or clones in both
    arms, it is of the robust variance of persons, unless the study asks for a bootstrap.
    """
    model, followed = outcome.analysis.model, outcome.followed
    y, is_drawn, readjust = followed.outcome, True, None
    people: People = outcome.people
    if followed.anyway is not None:
        is_drawn, people = model.interval == "bootstrap", followed.people
    if weighted is not None:
        rows = WeightedPeople.of(weighted, outcome.people)
        y, people = rows.y, rows.population
        readjust = rows.readjust if is_drawn else None
    found = risk_difference(
        y,
        people,
        times,
        interval="bootstrap" if is_drawn else "robust",
        level=model.level,
        replicates=model.replicates,
        seed=outcome.seed,
        readjust=readjust,
    )
    kind = "bootstrap" if is_drawn else "normal"
    return [
        replace(risk, difference_lower=float(low), difference_upper=float(high), interval=kind)
        if np.isfinite(low)
        else risk
        for risk, low, high in zip(risks, found.lower, found.upper, strict=True)
    ]


def _follow_up(followed: Followed, adjustment: Adjustment) -> list[FollowUpRow]:
    found = followup(followed.outcome, adjustment)
    of_arms = (
        (found.target, found.entry_target, found.potential_target, found.followed_target),
        (
            found.comparator,
            found.entry_comparator,
            found.potential_comparator,
            found.followed_comparator,
        ),
    )
    has_late = followed.entry is not None
    return [
        FollowUpRow(
            arm=arm,
            share=share,
            days=float(days),
            entry_days=float(entry) if has_late else None,
            potential_days=float(potential) if np.isfinite(potential) else None,
            potential_people=int(people),
        )
        for arm, columns in zip(ARMS, of_arms, strict=True)
        for share, days, entry, potential, people in zip(found.shares, *columns, strict=True)
    ]


def follow_up_bins(
    followed: Followed, adjustment: Adjustment, unit: TimeUnit = "days"
) -> list[FollowUpBinRow]:
    """People of each arm, of those kept, whose days at risk are in bins of equal width.

    A bin holds its end and not its start; the last one holds the longest follow-up of both arms.
    """
    duration = followed.outcomes.duration
    last = float(duration[adjustment.kept].max(initial=0.0))
    width = _bin_width(last, unit)
    edges = width * np.arange(int(np.ceil(last / width)) + 1)
    edges[-1] = max(edges[-1], last)  # the last bits of a product
    rows = []
    for arm in ARMS:
        place = np.searchsorted(edges, duration[_arm(adjustment, arm)], side="left") - 1
        counts = np.bincount(np.maximum(place, 0), minlength=edges.size - 1)
        rows += [
            FollowUpBinRow(arm=arm, start=float(a), end=float(b), people=int(n))
            for a, b, n in zip(edges[:-1], edges[1:], counts, strict=True)
        ]
    return rows


def _bin_width(last: float, unit: TimeUnit) -> float:
    """Days; round in the unit."""
    if unit == "days" or last == 0:
        return next((w for w in BIN_WIDTHS if last / w <= MAX_BINS), last / MAX_BINS)
    ticks = time_ticks(last / DAYS_IN[unit], unit, MAX_BINS)
    return ticks[1] * DAYS_IN[unit] if len(ticks) > 1 else last


def _ends(followed: Followed, adjustment: Adjustment) -> list[FollowUpEndRow]:
    """Why follow-up ended; without reasons in the data by the status alone."""
    reasons = followed.reasons
    if reasons is None:
        words = np.array(["end of follow-up", "outcome", "competing event"])
        reasons = words[followed.status]
    rows = []
    for arm in ARMS:
        names, counts = np.unique(reasons[_arm(adjustment, arm)], return_counts=True)
        rows += [
            FollowUpEndRow(arm=arm, reason=str(name), count=int(count))
            for name, count in zip(names, counts, strict=True)
        ]
    return rows


def _weeks(followed: Followed) -> list[WeekRow]:
    """Outcomes by week, of everybody in the cohort if weeks before the index date are known.

    Else of all who are followed, by week of follow-up: its first day is in week 0.
    """
    around = followed.around
    entered = np.zeros(followed.time.size, dtype=np.int64)
    if followed.entry is not None:
        entered = np.minimum(np.ceil(followed.entry / WEEK), MAX_WEEKS).astype(np.int64)
    if around is None:
        # A week holds its end; in months or years, its end may have other last digits.
        week = np.clip(np.ceil(followed.time / WEEK - ROUNDING) - 1, 0, MAX_WEEKS).astype(np.int64)
        around = EventWeeks(0, np.minimum(week, MAX_WEEKS - 1), followed.status == 1)
        around.has_event[week >= MAX_WEEKS] = False
        present = followed.people.kept
    else:
        present = np.ones(around.last_week.size, dtype=bool)
    target = followed.people.population.is_target
    rows = []
    for arm in ARMS:
        of_arm = present & (target if arm == "target" else ~target)
        week, event = around.last_week[of_arm] - around.first_week, around.has_event[of_arm]
        if not week.size:
            continue
        n = int(week.max()) + 1
        events, ends = np.bincount(week[event], minlength=n), np.bincount(week, minlength=n)
        begun = np.cumsum(np.bincount(np.minimum(entered[of_arm], week), minlength=n))
        left = begun - np.concatenate([[0], np.cumsum(ends)[:-1]])
        rows += [
            WeekRow(arm=arm, week=around.first_week + k, events=int(events[k]), people=int(left[k]))
            for k in range(n)
        ]
    return rows
