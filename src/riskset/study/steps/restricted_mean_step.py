"""The step of restricted mean survival times, and of the time lost to the outcome."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from riskset._errors import InputError
from riskset._messages import Note
from riskset._time_units import TimeUnit
from riskset.cohort.adjustments.adjustment import Adjustment, People
from riskset.cohort.arms.restricted_means import ArmRestrictedMeans, horizon_notes, restricted_mean
from riskset.curves.restricted_contrast import interval_of
from riskset.disclosure.rows import ARMS, known
from riskset.infer.wald import normal_quantile
from riskset.results.columns import RowT
from riskset.results.rows import RestrictedMeanRow
from riskset.study.cache import StepResult
from riskset.study.sources.source import AnalysedOutcome
from riskset.study.steps.data_set_means import mean_row, total_variance
from riskset.study.steps.deviation_weights import WeightedRows
from riskset.study.steps.propensity_step import score_covariates, status_of
from riskset.study.steps.protocol_description import WeightedPeople

__all__ = [
    "RestrictedMeanStep",
    "interval_of_means",
    "pooled_restricted_means",
    "pooled_rows",
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
    outcome: AnalysedOutcome,
    horizons: tuple[float, ...],
    unit: TimeUnit = "days",
    weighted: WeightedRows | None = None,
) -> RestrictedMeanStep:
    """Means up to the horizons, in days, of everybody and of the adjusted people.

    Strata also have the mean over the strata. If people are censored when they deviate, what is
    adjusted has the weights of `weighted`, and without these there is nothing adjusted.
    """
    followed = outcome.followed
    sides: list[tuple[bool, Adjustment | WeightedPeople, str]] = [
        (False, followed.people, "marginal")
    ]
    if weighted is not None:
        sides.append((True, WeightedPeople.of(weighted, outcome.people), "marginal"))
    elif outcome.people.status == "ok" and followed.anyway is None:
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
    people: Adjustment | WeightedPeople,
    horizons: tuple[float, ...],
    reading: str,
    *,
    is_adjusted: bool,
) -> ArmRestrictedMeans:
    model = outcome.analysis.model
    interval = interval_of_means(model.interval)
    if interval == "stacked" and not is_adjusted:
        interval = "robust"  # there are no weights
    y, readjust = outcome.followed.outcome, None
    own: People
    if isinstance(people, WeightedPeople):
        y, own = people.y, people.population
        readjust = people.readjust if interval == "bootstrap" else None
    else:
        own = people
    return restricted_mean(
        y,
        own,
        horizons,
        readjust=readjust,
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
    keys = ("adjusted", "reading", "measure", "time")
    return RestrictedMeanStep(rows=pooled_rows([step.rows for step in steps], keys, "mean"))


def pooled_rows(
    tables: Sequence[Sequence[RowT]], keys: Sequence[str], value: Literal["mean", "risk"]
) -> list[RowT]:
    """Rows of estimates of both arms that all tables have, pooled by Rubin's rules."""
    groups: dict[tuple[Any, ...], list[RowT]] = {}
    for rows in tables:
        for row in rows:
            groups.setdefault(tuple(row[name] for name in keys), []).append(row)
    return [_pooled(rows, value) for rows in groups.values() if len(rows) == len(tables)]


def _pooled(rows: Sequence[RowT], value_name: Literal["mean", "risk"]) -> RowT:
    """Values and differences by Rubin's rules; ratios by those of their logarithms."""
    row = mean_row(rows)
    z = normal_quantile(row["interval_level"])
    largest = row["time"] if value_name == "mean" else 1.0
    changes: dict[str, float | None] = {}
    for arm in ARMS:
        names = tuple(f"{arm}_{end}" for end in (value_name, "se", "lower", "upper"))
        value, error = _rubin([(one[names[0]], one[names[1]]) for one in rows])
        ends = (max(value - z * error, 0.0), min(value + z * error, largest))
        changes |= dict(zip(names, map(known, (value, error, *ends)), strict=True))
    for kind in ("difference", "ratio"):
        is_ratio = kind == "ratio"
        error_name = "log_ratio_se" if is_ratio else "difference_se"
        pairs = [(one[kind], one[error_name]) for one in rows]
        if is_ratio:
            pairs = [(None if a is None else float(np.log(a)), b) for a, b in pairs]
        center, spread = (np.array([number]) for number in _rubin(pairs))
        names = (kind, error_name, f"{kind}_lower", f"{kind}_upper", f"{kind}_p")
        found = interval_of(kind, center, spread, row["interval_level"])
        changes |= {name: known(float(part[0])) for name, part in zip(names, found, strict=True)}
    return row.changed(changes)


def _rubin(pairs: Sequence[tuple[float | None, float | None]]) -> tuple[float, float]:
    """Pooled value and standard error; NaN if one of the data sets lacks them."""
    numbers = np.array(pairs, dtype=np.float64)
    values, errors = numbers.T
    return float(values.mean()), float(np.sqrt(total_variance(values, errors**2)))
