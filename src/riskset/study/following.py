"""The step that describes what happened: counts, curves, risks, numbers at risk, follow-up."""

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from riskset._errors import InputError
from riskset._types import Rows
from riskset.cohort.adjustment import Adjustment, effective_size
from riskset.cohort.curves import ArmCurves, incidence, survival
from riskset.cohort.outcomes import Outcomes, count_arms, followup
from riskset.cohort.risks import end_notes, risk_difference
from riskset.data.outcome import Surv
from riskset.study.cohorts import Around, Followed
from riskset.study.follow_up_bins import follow_up_bins
from riskset.study.scores import status_of
from riskset.study.steps import Result

__all__ = ["describe"]

ARMS = ("target", "comparator")
MOST_STEPS = 1000
"""Of a curve; more than an eye can tell."""

YEAR = 365.25
BREAKS = (1, 2, 5, 7, 10, 15, 30, 50, 100, 250)
LONG_BREAKS = (YEAR / 2, YEAR, 2 * YEAR, 5 * YEAR, 10 * YEAR)
"""Of curves longer than two years, whose axis counts years."""
MOST_BREAKS = 8
WEEK = 7
MOST_WEEKS = 104


def describe(
    followed: Followed,
    made: Adjustment,
    risk_times: tuple[float, ...],
    level: float,
    replicates: int,
    seed: int,
) -> Result:
    """Everything about one outcome that does not need a model.

    Rows of curves and risks tell how many people each arm then has and how many had an event,
    which decides how much of them is shared.
    """
    facts: dict[str, Any] = {"arms": [], "curves": [], "risks": [], "at_risk": [], "notes": []}
    for side, people in (("before", followed.people), ("after", made)):
        facts["arms"].append({"side": side} | _counts(followed, people))
        adjusted = side == "after"
        if adjusted and made.status != "ok":
            continue
        try:
            curves = _curves(followed, people, level)
        except InputError as error:
            facts["notes"].append({"code": "no_curves", "message": status_of(error)["reason"]})
            continue
        breaks = _breaks(curves.limit)
        facts["curves"] += [r | {"adjusted": adjusted} for r in _steps(followed, people, curves)]
        facts["at_risk"] += [r | {"adjusted": adjusted} for r in _at_risk(followed, people, breaks)]
        ends = {arm: curves.curves[arm].end for arm in ARMS}
        for note in end_notes(np.array(risk_times), ends):
            own = {"code": note.code, "message": f"{note.message} Choose earlier `risk_times`."}
            facts["notes"] += [own] if own not in facts["notes"] else []
        risks = [_risk(followed, people, curves, time, level) for time in risk_times]
        if adjusted:
            _resample(risks, followed, people, risk_times, level, replicates, seed)
        facts["risks"] += [risk | {"adjusted": adjusted} for risk in risks]
    facts["follow_up"] = _follow_up(followed, made)
    facts["bins"] = follow_up_bins(followed, made)
    facts["ends"] = _ends(followed, made)
    facts["weeks"] = _weeks(followed)
    return Result(facts)


def _outcome(followed: Followed) -> Any:
    return Surv(followed.time, followed.status)


def _arm(people: Adjustment, arm: str) -> NDArray[np.bool_]:
    target = people.population.is_target
    return np.asarray(people.kept & (target if arm == "target" else ~target))


def _counts(followed: Followed, people: Adjustment) -> dict[str, object]:
    outcomes = Outcomes(followed.time, followed.status)
    row: dict[str, object] = {}
    for arm, counts in zip(ARMS, count_arms(outcomes, people), strict=True):
        row |= {f"{arm}_{name}": value for name, value in dataclasses.asdict(counts).items()}
    return row


def _curves(followed: Followed, people: Adjustment, level: float) -> ArmCurves:
    has_competing = bool((followed.status[people.kept] == 2).any())
    return (incidence if has_competing else survival)(_outcome(followed), people, level=level)


def _steps(followed: Followed, people: Adjustment, curves: ArmCurves) -> list[dict[str, Any]]:
    """Rows of both curves at the times of their own events, from 0 to the limit or their end."""
    rows = []
    for arm in ARMS:
        own = _arm(people, arm)
        time = followed.time[own & (followed.status > 0)]
        last = min(curves.limit, curves.curves[arm].end)
        times = np.unique(np.concatenate([[0.0], time[time <= last], [last]]))
        if times.size > MOST_STEPS:
            times = _thinned(curves, arm, times)
        found = curves.columns(times)
        value = found.get("survival", found.get("incidence"))
        assert value is not None
        fewest = _fewest(followed, people, found["time"])
        events = _events(followed, own, found["time"])
        for k in np.flatnonzero((found["arm"] == arm) & (fewest > 0)):
            cause = int(found["cause"][k]) if "cause" in found else 1
            rows.append(
                {
                    "kind": "survival" if "survival" in found else "incidence",
                    "arm": arm,
                    "cause": cause,
                    "time": float(found["time"][k]),
                    "value": float(value[k]),
                    "standard_error": float(found["standard_error"][k]),
                    "lower": float(found["lower"][k]),
                    "upper": float(found["upper"][k]),
                    "people": int(fewest[k]),
                    "events": int(events[cause][k]),
                }
            )
    return rows


def _thinned(curves: ArmCurves, arm: str, times: Rows) -> Rows:
    """Times at which the curve has moved by a thousandth of its range, and both ends."""
    values = np.atleast_2d(curves.curves[arm].at(times))
    span = np.ptp(values, axis=1, keepdims=True)
    steps = np.floor(values * (MOST_STEPS / 4) / np.where(span > 0, span, 1.0))
    moved = (np.diff(steps, axis=1) != 0).any(axis=0)
    keep = np.concatenate([[True], moved])
    keep[-1] = True
    return np.asarray(times[keep])


def _fewest(followed: Followed, people: Adjustment, times: Rows) -> NDArray[np.int64]:
    """People at risk at times, in the arm that has fewer."""
    counts = []
    for arm in ARMS:
        time = np.sort(followed.time[_arm(people, arm)])
        counts.append(time.size - np.searchsorted(time, times, side="left"))
    return np.minimum(*counts)


def _events(
    followed: Followed, own: NDArray[np.bool_], times: Rows
) -> dict[int, NDArray[np.int64]]:
    """People of an arm with an event of each cause by times."""
    found = {}
    for cause in (1, 2):
        time = np.sort(followed.time[own & (followed.status == cause)])
        found[cause] = np.searchsorted(time, times, side="right")
    return found


def _breaks(limit: float) -> Rows:
    steps = BREAKS if limit <= 2 * YEAR else LONG_BREAKS
    step = next((b for b in steps if limit / b <= MOST_BREAKS), steps[-1])
    return np.arange(0.0, limit + step * 1e-9, step)


def _at_risk(followed: Followed, people: Adjustment, breaks: Rows) -> list[dict[str, Any]]:
    rows = []
    for arm in ARMS:
        own = _arm(people, arm)
        time, weight = followed.time[own], people.weight[own]
        for at in breaks:
            still = weight[time >= at]
            row: dict[str, Any] = {"arm": arm, "time": float(at), "people": int(still.size)}
            row |= {"weighted": float(still.sum()), "effective": effective_size(still)}
            rows.append(row)
    return rows


def _risk(
    followed: Followed, people: Adjustment, curves: ArmCurves, time: float, level: float
) -> dict[str, Any]:
    """Risks up to a time and their difference, with a normal interval; None if not known."""
    row: dict[str, Any] = {"time": time, "interval": "normal", "interval_level": level}
    errors: list[float] = []
    found = curves.columns([time])
    for arm in ARMS:
        here = found["arm"] == arm
        if "cause" in found:
            here &= found["cause"] == 1
        people_left = int(np.count_nonzero(followed.time[_arm(people, arm)] >= time))
        row[f"{arm}_at_risk"] = people_left
        had = _arm(people, arm) & (followed.status == 1) & (followed.time <= time)
        row[f"{arm}_outcomes"] = int(np.count_nonzero(had))
        row |= dict.fromkeys(f"{arm}_{word}" for word in ("risk", "lower", "upper"))
        if time > curves.curves[arm].end:
            continue
        low = high = risk = error = 0.0  # if all that happened to anybody are competing events
        for k in np.flatnonzero(here)[:1]:
            low, high, error = (found[n][k] for n in ("lower", "upper", "standard_error"))
            risk = found["survival" if "survival" in found else "incidence"][k]
            if "survival" in found:
                low, high, risk = 1 - high, 1 - low, 1 - risk
        errors.append(float(error))
        row |= {f"{arm}_risk": float(risk), f"{arm}_lower": float(low), f"{arm}_upper": float(high)}
    row |= dict.fromkeys(("difference", "difference_lower", "difference_upper"))
    if len(errors) < len(ARMS):
        return row
    half = float(ndtri(0.5 + level / 2) * np.hypot(errors[0], errors[1]))
    difference = row["target_risk"] - row["comparator_risk"]
    row["difference"] = difference
    return row | {"difference_lower": difference - half, "difference_upper": difference + half}


def _resample(
    risks: list[dict[str, Any]],
    followed: Followed,
    people: Adjustment,
    times: tuple[float, ...],
    level: float,
    replicates: int,
    seed: int,
) -> None:
    """Replace the intervals of differences by those of resamples, which keep matched sets whole."""
    found = risk_difference(
        _outcome(followed), people, times, level=level, replicates=replicates, seed=seed
    )
    for k, risk in enumerate(risks):
        if np.isfinite(found.lower[k]):
            ends = {"difference_lower": found.lower[k], "difference_upper": found.upper[k]}
            risk |= {name: float(end) for name, end in ends.items()} | {"interval": "bootstrap"}


def _follow_up(followed: Followed, made: Adjustment) -> list[dict[str, object]]:
    found = followup(_outcome(followed), made)
    return [
        {"arm": arm, "share": share, "days": float(days)}
        for arm, own in ((ARMS[0], found.target), (ARMS[1], found.comparator))
        for share, days in zip(found.shares, own, strict=True)
    ]


def _ends(followed: Followed, made: Adjustment) -> list[dict[str, object]]:
    """Why follow-up ended; without reasons in the data by the status alone."""
    reasons = followed.reasons
    if reasons is None:
        words = np.array(["end of follow-up", "outcome", "competing event"])
        reasons = words[followed.status]
    rows: list[dict[str, object]] = []
    for arm in ARMS:
        names, counts = np.unique(reasons[_arm(made, arm)], return_counts=True)
        rows += [
            {"arm": arm, "reason": str(name), "count": int(count)}
            for name, count in zip(names, counts, strict=True)
        ]
    return rows


def _weeks(followed: Followed) -> list[dict[str, object]]:
    """Outcomes by week, of everybody in the cohort if weeks before the index date are known.

    Else of all who are followed, by week of follow-up: its first day is in week 0.
    """
    around = followed.around
    if around is None:
        week = ((followed.time - 1) // WEEK).astype(np.int64)
        around = Around(0, np.minimum(week, MOST_WEEKS - 1), followed.status == 1)
        around.has_event[week >= MOST_WEEKS] = False
        present = followed.people.kept
    else:
        present = np.ones(around.last_week.size, dtype=bool)
    target = followed.people.population.is_target
    rows: list[dict[str, object]] = []
    for arm in ARMS:
        own = present & (target if arm == "target" else ~target)
        week, event = around.last_week[own] - around.first_week, around.has_event[own]
        if not week.size:
            continue
        n = int(week.max()) + 1
        events, ends = np.bincount(week[event], minlength=n), np.bincount(week, minlength=n)
        left = week.size - np.concatenate([[0], np.cumsum(ends)])
        rows += [
            {
                "arm": arm,
                "week": around.first_week + k,
                "events": int(events[k]),
                "people": int(left[k]),
            }
            for k in range(n)
        ]
    return rows
