"""Estimates and descriptions of completed data sets as one.

Log hazard ratios are pooled by Rubin's rules, with Student's t by the degrees of freedom of Barnard
and Rubin; so are curves and risks, with normal intervals. p values of tests that have no standard
error, of proportional hazards, of interactions and of constant effects, are the medians of those of
the data sets (Eekhout, van de Wiel and Heymans 2017, doi:10.1186/s12874-017-0404-7). All other
numbers are means.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from scipy.special import ndtri, stdtr

from riskset._messages import Note, Value
from riskset._types import Rows
from riskset.curves.intervals import probability_interval
from riskset.infer.rubin import PooledVariance, t_p_value, t_quantile
from riskset.infer.wald import exponentials
from riskset.results.column_groups import EffectColumns
from riskset.results.rows import (
    CurveRow,
    EffectAtTimeRow,
    EstimateRow,
    FollowUpBinRow,
    IntervalRow,
    RiskRow,
    TimeEffectRow,
)
from riskset.study.steps.data_set_means import matched_means, mean_row, total_variance
from riskset.study.steps.description_step import DescriptionStep
from riskset.study.steps.estimate_e_values import with_e_value
from riskset.study.steps.estimate_step import EstimateStep

__all__ = ["pooled_description", "pooled_estimates"]

OF_ESTIMATE = ("role", "label", "subgroup", "level")
MEDIANS = ("proportionality_p", "interaction_p", "frailty_p")
IntervalOrStep = TypeVar("IntervalOrStep", IntervalRow, EffectAtTimeRow)


def pooled_estimates(
    tables: Sequence[Sequence[EstimateRow]], steps: Sequence[EstimateStep]
) -> EstimateStep:
    """Each estimate that all data sets have, pooled; `tables` have the rows of each.

    The crude estimate uses no covariate, so that it is the same in all of them.
    """
    groups: dict[tuple[Any, ...], list[EstimateRow]] = {}
    for rows in tables:
        for row in rows:
            groups.setdefault(tuple(row[name] for name in OF_ESTIMATE), []).append(row)
    whole = [group for group in groups.values() if len(group) == len(tables)]
    lost = [group[0].label for group in groups.values() if len(group) < len(tables)]
    text = "not estimated in every completed data set, so not pooled: {labels}."
    values = {"labels": Value("name", ", ".join(map(repr, lost)))}
    notes = [Note("not_pooled", (), text, values)] if lost else []
    over_time = _over_time([step.over_time for step in steps], tables, ("start", "end"))
    at_times = _over_time([step.at_times for step in steps], tables, ("start", "time"))
    lacks = not over_time and any(step.over_time for step in steps)
    if lacks or (not at_times and any(step.at_times for step in steps)):
        text = "no effect over time: its intervals differ between completed data sets."
        notes.append(Note("no_effect_over_time", (), text))
    return EstimateStep(
        status=next((step.status for step in steps if step.status != "ok"), "ok"),
        reason=next((step.reason for step in steps if step.status != "ok"), None),
        notes=tuple(notes),
        rows=[group[0] if group[0].role == "crude" else _pooled_row(group) for group in whole],
        over_time=over_time,
        time_effect=_time_effect([step.time_effect for step in steps]) if at_times else [],
        at_times=at_times,
    )


def _time_effect(tables: Sequence[Sequence[TimeEffectRow]]) -> list[TimeEffectRow]:
    """The model with the median of the p values of its test, which has no standard error."""
    rows = [row for table in tables for row in table]
    values = [row.p for row in rows if row.p is not None]
    p = float(np.median(values)) if len(values) == len(rows) else None
    return [dataclasses.replace(rows[0], statistic=None, p=p)]


def _pooled_row(rows: Sequence[EstimateRow]) -> EstimateRow:
    medians: dict[str, float | None] = {}
    for name in MEDIANS:
        known = [row[name] for row in rows if row[name] is not None]
        medians[name] = float(np.median(known)) if len(known) == len(rows) else None
    largest = max((row.kkt for row in rows if row.kkt is not None), default=None)
    notes = dict.fromkeys(code for row in rows for code in (row.note or "").split("; ") if code)
    status = next((row.status for row in rows if row.status != "ok"), "ok")
    facts = {"status": status, "note": "; ".join(notes), "llr": None, "kkt": largest}
    row = mean_row(rows).changed(facts | medians | {"n_imputations": len(rows)})
    has_all = all(one.effect.log_hr is not None and one.effect.se is not None for one in rows)
    if status != "ok" or not has_all:
        return with_e_value(dataclasses.replace(row, effect=EffectColumns()))
    events = min((r.target_arm.outcomes or 0) + (r.comparator_arm.outcomes or 0) for r in rows)
    pooled = _rubin(
        [one.effect.log_hr for one in rows], [one.effect.se for one in rows], max(1.0, events - 1)
    )
    effect = _effect(pooled, row.interval_level)
    missing = float(pooled.fraction_missing[0])
    return with_e_value(
        dataclasses.replace(row, effect=EffectColumns(**effect), fraction_missing=missing)
    )


def _rubin(log_hr: Sequence[Any], se: Sequence[Any], df_complete: float) -> PooledVariance:
    coef = np.array(log_hr, dtype=np.float64)[:, None]
    covariance = np.array(se, dtype=np.float64)[:, None, None] ** 2
    return PooledVariance.of(coef, covariance, df_complete)


def _effect(pooled: PooledVariance, level: float) -> dict[str, float]:
    log_hr, se = float(pooled.coef[0]), float(np.sqrt(pooled.total[0, 0]))
    half = float(t_quantile(level, pooled.df)[0]) * se
    t = np.array([log_hr / se])
    return {
        "hr": float(exponentials(log_hr)),
        "hr_lower": float(exponentials(log_hr - half)),
        "hr_upper": float(exponentials(log_hr + half)),
        "log_hr": log_hr,
        "se": se,
        "p": float(t_p_value(t, pooled.df)[0]),
        "one_sided_p": float(stdtr(pooled.df, -t)[0]),
    }


def _over_time(
    tables: Sequence[Sequence[IntervalOrStep]],
    estimates: Sequence[Sequence[EstimateRow]],
    ends: tuple[str, str],
) -> list[IntervalOrStep]:
    """The effect in intervals or at times, where these are the same in all data sets."""
    borders = [[tuple(row[name] for name in ends) for row in table] for table in tables]
    if not borders[0] or any(other != borders[0] for other in borders):
        return []
    events = min(
        (row.target_arm.outcomes or 0) + (row.comparator_arm.outcomes or 0)
        for rows in estimates
        for row in rows
        if row.role == "main"
    )
    out = []
    for rows in zip(*tables, strict=True):
        whole = max(1.0, events - 1)
        pooled = _rubin([row.log_hr for row in rows], [row.se for row in rows], whole)
        effect = _effect(pooled, rows[0].interval_level)
        kept = {name: effect[name] for name in ("hr", "hr_lower", "hr_upper", "log_hr", "se")}
        out.append(mean_row(rows).changed(kept))
    return out


def pooled_description(steps: Sequence[DescriptionStep], level: float) -> DescriptionStep:
    """The mean counts, and pooled curves and risks."""
    return DescriptionStep(
        arms=matched_means([step.arms for step in steps], ["side"]),
        curves=_pooled_curves([step.curves for step in steps], level),
        risks=_pooled_risks([step.risks for step in steps]),
        at_risk=matched_means([step.at_risk for step in steps], ["adjusted", "arm", "time"]),
        follow_up=matched_means([step.follow_up for step in steps], ["arm", "share"]),
        bins=_pooled_bins([step.bins for step in steps]),
        ends=matched_means([step.ends for step in steps], ["arm", "reason"], ["count"]),
        weeks=list(steps[0].weeks),
    )


def _pooled_bins(tables: Sequence[Sequence[FollowUpBinRow]]) -> list[FollowUpBinRow]:
    """Mean counts of the data sets whose bins are as wide as those of the first one."""
    width = [table[0].end - table[0].start if table else 0.0 for table in tables]
    alike = [table for table, own in zip(tables, width, strict=True) if own == width[0]]
    rows = matched_means(alike, ["arm", "start", "end"], ["people"])
    return sorted(rows, key=lambda row: (row.arm != "target", row.start))


def _pooled_curves(tables: Sequence[Sequence[CurveRow]], level: float) -> list[CurveRow]:
    """Curves at the times of all data sets, up to the end of the shortest."""
    curves: dict[tuple[Any, ...], list[list[CurveRow]]] = {}
    for table in tables:
        own: dict[tuple[Any, ...], list[CurveRow]] = {}
        for row in table:
            own.setdefault((row.adjusted, row.kind, row.arm, row.cause), []).append(row)
        for key, rows in own.items():
            curves.setdefault(key, []).append(rows)
    out = []
    for parts in curves.values():
        if len(parts) == len(tables):
            out += _pooled_curve(parts, level)
    return out


def _pooled_curve(parts: Sequence[Sequence[CurveRow]], level: float) -> list[CurveRow]:
    first = parts[0]
    if all([dict(row) for row in part] == [dict(row) for row in first] for part in parts):
        return list(first)
    last = min(part[-1].time for part in parts)
    times = np.unique([row.time for part in parts for row in part if row.time <= last])
    names = ("value", "standard_error", "people", "events")
    at: dict[str, list[Rows]] = {name: [] for name in names}
    for part in parts:
        place = np.searchsorted([row.time for row in part], times, side="right") - 1
        for name in names:
            values = np.array([np.nan if row[name] is None else row[name] for row in part])
            at[name].append(values[np.maximum(place, 0)])
    value, people, events = (np.mean(at[name], axis=0) for name in ("value", "people", "events"))
    error = np.sqrt(total_variance(at["value"], np.square(at["standard_error"])))
    lower, upper = probability_interval(value, error, level, "log-log")
    return [
        dataclasses.replace(
            first[0],
            time=float(times[k]),
            value=float(value[k]),
            standard_error=float(error[k]),
            lower=float(lower[k]),
            upper=float(upper[k]),
            people=round(float(people[k])),
            events=round(float(events[k])),
        )
        for k in range(times.size)
    ]


def _pooled_risks(tables: Sequence[Sequence[RiskRow]]) -> list[RiskRow]:
    groups: dict[tuple[Any, ...], list[RiskRow]] = {}
    for table in tables:
        for row in table:
            groups.setdefault((row.adjusted, row.time), []).append(row)
    return [_pooled_risk(rows) for rows in groups.values()]


def _pooled_risk(rows: Sequence[RiskRow]) -> RiskRow:
    """Risks and their difference; errors are those that the intervals stand for."""
    row = mean_row(rows)
    changes: dict[str, float] = {}
    z = float(ndtri(0.5 + row.interval_level / 2))
    for arm in ("target", "comparator"):
        ends = _pooled_ends(rows, (f"{arm}_risk", f"{arm}_lower", f"{arm}_upper"), z, True)
        changes |= dict(ends)
    names = ("difference", "difference_lower", "difference_upper")
    return row.changed(changes | dict(_pooled_ends(rows, names, z, False)))


def _pooled_ends(
    rows: Sequence[RiskRow], names: tuple[str, str, str], z: float, is_probability: bool
) -> Mapping[str, float]:
    """The limits of a pooled number; empty where all rows agree or one is not known.

    Limits of probabilities are taken on the scale log(-log), on which they are symmetric.
    """
    numbers = np.array([[row[name] for name in names] for row in rows], dtype=np.float64)
    if np.isnan(numbers).any() or (numbers == numbers[0]).all():
        return {}
    center = float(numbers[:, 0].mean())
    if is_probability:
        if not ((numbers > 0) & (numbers < 1)).all():
            return {}
        numbers = np.log(-np.log1p(-numbers))
    variance = ((numbers[:, 2] - numbers[:, 1]) / (2 * z)) ** 2
    half = z * np.sqrt(total_variance(numbers[:, 0], variance))
    middle = np.log(-np.log1p(-center)) if is_probability else center
    lower, upper = middle - half, middle + half
    if is_probability:
        lower, upper = (-np.expm1(-np.exp(end)) for end in (lower, upper))
    return {names[1]: float(lower), names[2]: float(upper)}
