"""The step of weights for deviation, and the estimates that use them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtr

from riskset._errors import InputError
from riskset._messages import Note, Value
from riskset._time_units import TimeUnit
from riskset._types import AnyArray
from riskset.cohort.effects.estimate import Estimate
from riskset.cohort.protocol.artificial_censoring import DeviationWeights
from riskset.cohort.protocol.per_protocol import fit_per_protocol
from riskset.disclosure.rows import known
from riskset.results.rows import CensoringWeightRow
from riskset.study.cache import StepResult
from riskset.study.sources.source import AnalysedOutcome
from riskset.study.steps.deviation_weights import WeightedRows
from riskset.study.steps.estimate_step import NO_TIME_EFFECT, EstimateStep, estimate_row, step_of
from riskset.study.steps.propensity_step import status_of
from riskset.study.steps.time_effect_rows import time_effect_rows, time_effect_settings

__all__ = ["CensoringWeightStep", "protocol_estimates", "protocol_subgroups", "weigh"]


@dataclass(frozen=True, eq=False, kw_only=True)
class CensoringWeightStep(StepResult, step="censoring weights"):
    """The distribution of the weights of one outcome."""

    rows: list[CensoringWeightRow]


def weigh(rows: WeightedRows) -> CensoringWeightStep:
    """Fit the models of deviation, and describe the weights that follow."""
    try:
        weights = rows.weights
        own = rows.notes()  # whose remedies are keys of the study
        said = {note.code for note in own}
        notes = (*(note for note in weights.notes if note.code not in said), *own)
    except InputError as error:
        status, reason = status_of(error)
        return CensoringWeightStep(status=status, reason=reason, rows=[])
    table = weights.summary("pyarrow").to_pylist()
    described = [
        CensoringWeightRow.of({name: known(value) for name, value in line.items()})
        for line in table
    ]
    return CensoringWeightStep(rows=described, notes=notes)


def protocol_estimates(
    people: AnalysedOutcome, is_of_interest: bool, unit: TimeUnit, rows: WeightedRows
) -> EstimateStep:
    """The per-protocol estimate, and what it would be with other weights for deviation.

    Outcomes of interest also have it as a function of time, if that is asked for.
    """
    try:
        of_time = time_effect_settings(people, unit) if is_of_interest else {}
        main = _fit(people, rows, rows.weights, of_time=of_time)
        others = [(_fit(people, rows, weights), label) for weights, label in _other_weights(rows)]
    except InputError as error:
        status, reason = status_of(error)
        return EstimateStep(status=status, reason=reason, rows=[])
    asked = [(main, "main", "per protocol")]
    asked += [(one, "weights", f"per protocol, {label}") for one, label in others]
    found = [
        estimate_row(one, role, label, people).changed({"n_covariates": len(one.names)})
        for one, role, label in asked
    ]
    return step_of(main, rows=found, **time_effect_rows(main, people))


def protocol_subgroups(people: AnalysedOutcome, rows: WeightedRows, column: str) -> EstimateStep:
    """The effect at each level of a column of labels, with the weights of all people.

    Each level has an outcome model of its own. The levels have no people in common, so that the
    difference of the effects at a level and at the first one has the sum of both variances.
    """
    labels = people.cohort.labels[column]
    levels = labels.present(people.people.kept)
    if len(levels) < 2:
        return EstimateStep(rows=[])
    at = labels.values[rows.person]
    try:
        found = {level: _fit(people, rows, rows.weights, at == level) for level in levels}
    except InputError as error:
        values = {
            "column": Value("name", repr(column)),
            "reason": Value("sentence", status_of(error)[1]),
        }
        note = Note("subgroups", (), "no subgroups of {column}: {reason}", values)
        return EstimateStep(rows=[], notes=(note,))
    known_levels = [level for level in levels if found[level].status == "ok"]
    first = found[known_levels[0]] if known_levels else None
    p = {level: _p_of_difference(found[level], first) for level in known_levels[1:]}
    if len(p) == 1:  # of two levels, both rows have it
        p[known_levels[0]] = next(iter(p.values()))
    about = {level: {"level": str(level), "interaction_p": p.get(level)} for level in levels}
    return EstimateStep(
        rows=[
            estimate_row(one, "subgroup", f"{column}: {level}", people).changed(about[level])
            for level, one in found.items()
        ]
    )


def _p_of_difference(one: Estimate, first: Estimate | None) -> float | None:
    if first is None:
        return None
    error = float(np.hypot(one.se, first.se))
    return known(float(2 * ndtr(-abs(one.log_hr - first.log_hr) / error))) if error > 0 else None


def _fit(
    people: AnalysedOutcome,
    rows: WeightedRows,
    weights: DeviationWeights,
    inside: AnyArray | None = None,
    of_time: Mapping[str, Any] = NO_TIME_EFFECT,
) -> Estimate:
    """The estimate with some weights, of all rows or those `inside` (m,)."""
    settings = people.analysis.model
    resampled = inside is None and settings.interval == "bootstrap"
    found = fit_per_protocol(
        weights,
        covariates=rows.baseline,
        sample_weight=rows.sample_weight * (1.0 if inside is None else inside),
        interval="bootstrap" if resampled else "robust",
        level=settings.level,
        ties="efron" if settings.ties == "efron" else "breslow",
        replicates=settings.replicates,
        seed=people.seed,
        **of_time,
    )
    own = [note for note in found.notes if note not in weights.notes]  # their step says these
    return replace(
        found,
        model=settings.model,
        estimand=people.people.estimand,
        notes=(*people.people.notes, *own),
    )


def _other_weights(rows: WeightedRows) -> Iterator[tuple[DeviationWeights, str]]:
    """The weights without truncation, and none at all: they show what the weights do."""
    weights = rows.weights
    if weights.limits is not None:
        yield rows.without_truncation(), "weights not truncated"
    yield rows.without_weights(), "without weights for deviation"
