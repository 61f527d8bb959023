"""The step of restricted mean survival times, and of the time lost to the outcome."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from riskset._errors import InputError
from riskset._messages import Note
from riskset._time_units import TimeUnit
from riskset.cohort.adjustment import Adjustment
from riskset.cohort.restricted_means import ArmRestrictedMeans, horizon_notes, restricted_mean
from riskset.curves.restricted_contrast import interval_of
from riskset.disclosure.rows import ARMS, known
from riskset.infer.wald import normal_quantile
from riskset.results.rows import RestrictedMeanRow
from riskset.study.cache import StepResult
from riskset.study.data_set_means import mean_row, total_variance
from riskset.study.propensity_step import score_covariates, status_of
from riskset.study.source import AnalysedOutcome

__all__ = [
    "RestrictedMeanStep",
    "interval_of_means",
    "pooled_restricted_means",
    "restricted_means",
]

Interval = Literal["robust", "bootstrap", "stacked"]


@dataclass(frozen=True, eq=False, kw_only=True)
class RestrictedMeanStep(StepResult, step="restricted means"):
    """Restricted means of one outcome, before and after adjustment."""

    rows: list[RestrictedMeanRow]


def interval_of_means(interval: str) -> Interval:
    """The interval of restricted means that goes with that of the model."""
    return interval if interval in ("bootstrap", "stacked") else "robust"  # type: ignore[return-value]


def restricted_means(
    outcome: AnalysedOutcome, horizons: tuple[float, ...], unit: TimeUnit = "days"
) -> RestrictedMeanStep:
    """Means up to the horizons, in days, of everybody and of the adjusted people.

    Strata also have the mean over the strata.
    """
    sides: list[tuple[bool, Adjustment, str]] = [(False, outcome.followed.people, "marginal")]
    if outcome.people.status == "ok":
        sides.append((True, outcome.people, "marginal"))
        if outcome.people.kind == "stratification":
            sides.append((True, outcome.people, "standardized"))
    rows: list[RestrictedMeanRow] = []
    notes: dict[Note, None] = {}
    for is_adjusted, people, reading in sides:
        try:
            found = _of_people(outcome, people, horizons, reading, is_adjusted=is_adjusted)
        except InputError as error:
            reason = status_of(error)[1]
            notes[Note("no_restricted_means", (), reason.template, reason.values)] = None
            continue
        rows += _rows(found, is_adjusted)
        ends = (found.target_end, found.comparator_end)
        for note in horizon_notes(found.times, ends, reading, unit):
            text = f"{note.template} Choose earlier horizons in `rmst`."
            notes[replace(note, template=text)] = None
        others = [note for note in found.notes if note.code != "follow_up_ends"]
        notes |= dict.fromkeys(others)
    return RestrictedMeanStep(rows=rows, notes=tuple(notes))


def _of_people(
    outcome: AnalysedOutcome,
    people: Adjustment,
    horizons: tuple[float, ...],
    reading: str,
    *,
    is_adjusted: bool,
) -> ArmRestrictedMeans:
    model = outcome.analysis.model
    interval = interval_of_means(model.interval)
    if interval == "stacked" and not is_adjusted:
        interval = "robust"  # there are no weights
    return restricted_mean(
        outcome.followed.outcome,
        people,
        horizons,
        reading=reading,
        interval=interval,
        level=model.level,
        replicates=model.replicates,
        seed=outcome.seed,
        score_covariates=score_covariates(outcome) if interval == "stacked" else None,
    )


def _rows(found: ArmRestrictedMeans, is_adjusted: bool) -> list[RestrictedMeanRow]:
    """A row for each measure and horizon."""
    columns = found.columns()
    for arm in ARMS:
        columns[f"{arm}_mean"] = columns.pop(arm)
    rows = []
    for k in range(columns["time"].size):
        values = {name: known(column[k : k + 1].tolist()[0]) for name, column in columns.items()}
        about = {"adjusted": is_adjusted, "reading": found.reading}
        about |= {"interval": found.interval, "interval_level": found.level}
        rows.append(RestrictedMeanRow.of(values | about))
    return rows


def pooled_restricted_means(steps: Sequence[RestrictedMeanStep]) -> RestrictedMeanStep:
    """The rows that all data sets have, pooled by Rubin's rules with normal intervals."""
    groups: dict[tuple[Any, ...], list[RestrictedMeanRow]] = {}
    for step in steps:
        for row in step.rows:
            key = (row.adjusted, row.reading, row.measure, row.time)
            groups.setdefault(key, []).append(row)
    whole = [rows for rows in groups.values() if len(rows) == len(steps)]
    return RestrictedMeanStep(rows=[_pooled(rows) for rows in whole])


def _pooled(rows: Sequence[RestrictedMeanRow]) -> RestrictedMeanRow:
    """Means and differences by Rubin's rules; ratios by those of their logarithms."""
    row = mean_row(rows)
    z = normal_quantile(row.interval_level)
    changes: dict[str, float | None] = {}
    for arm in ARMS:
        names = tuple(f"{arm}_{end}" for end in ("mean", "se", "lower", "upper"))
        value, error = _rubin([(one[names[0]], one[names[1]]) for one in rows])
        ends = (max(value - z * error, 0.0), min(value + z * error, row.time))
        changes |= dict(zip(names, map(known, (value, error, *ends)), strict=True))
    for kind in ("difference", "ratio"):
        is_ratio = kind == "ratio"
        error_name = "log_ratio_se" if is_ratio else "difference_se"
        pairs = [(one[kind], one[error_name]) for one in rows]
        if is_ratio:
            pairs = [(None if a is None else float(np.log(a)), b) for a, b in pairs]
        center, spread = (np.array([number]) for number in _rubin(pairs))
        names = (kind, error_name, f"{kind}_lower", f"{kind}_upper", f"{kind}_p")
        found = interval_of(kind, center, spread, row.interval_level)
        changes |= {name: known(float(part[0])) for name, part in zip(names, found, strict=True)}
    return row.changed(changes)


def _rubin(pairs: Sequence[tuple[float | None, float | None]]) -> tuple[float, float]:
    """Pooled value and standard error; NaN if one of the data sets lacks them."""
    numbers = np.array(pairs, dtype=np.float64)
    values, errors = numbers.T
    return float(values.mean()), float(np.sqrt(total_variance(values, errors**2)))
