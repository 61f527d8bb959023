"""The steps of an adjustment and of its balance."""

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from riskset._errors import InputError
from riskset._messages import Note, Sentence, Value
from riskset._types import AnyArray, Rows, is_number
from riskset.cohort.adjustments.adjustment import Adjustment, AdjustmentStatus, Estimand, Kind, Step
from riskset.cohort.adjustments.coarsening import coarsen
from riskset.cohort.adjustments.matching import match
from riskset.cohort.adjustments.stratification import stratify
from riskset.cohort.adjustments.trimming import trim
from riskset.cohort.adjustments.weighting import weight
from riskset.cohort.covariates.covariate_balance import Balance, balance
from riskset.cohort.population import Population
from riskset.cohort.propensity.overlap import preference_score, score_bars
from riskset.results.rows import AdjustmentRow, BalanceRow, CharacteristicRow, PreferenceRow
from riskset.study.cache import StepResult
from riskset.study.sources.source import AnalysedPeople
from riskset.study.specification.report_sections import Table1Section
from riskset.study.steps.characteristic_lines import describe_people
from riskset.study.steps.propensity_step import ScoreStep, fit_score, status_of
from riskset.study.steps.treatment_weight_step import TreatmentWeightStep

__all__ = [
    "AdjustmentStep",
    "BalanceStep",
    "adjust",
    "balance_of",
    "balance_rows",
]

Weighted = tuple[TreatmentWeightStep, Adjustment]
ARMS = ("target", "comparator")
N_BARS = 100


@dataclass(frozen=True, eq=False, kw_only=True)
class AdjustmentStep(StepResult, step="adjustment"):
    """A `riskset.cohort.Adjustment`, without the population that it is of.

    `status` may have another reason to stop the run than `adjustment_status`. `score` and `share`
    are those of a score that was fitted again after trimming. `pairwise_max` and what follows are
    those of the weights of several treatments. `pooled` is the row of an adjustment
    that is the mean of those of completed data sets.
    """

    kind: Kind
    estimand: Estimand | None
    adjustment_status: AdjustmentStatus
    attrition: tuple[Step, ...]
    details: dict[str, Any]
    weight: AnyArray
    set_id: AnyArray | None
    preference: list[PreferenceRow]
    score: AnyArray | None = None
    share: float | None = None
    pooled: AdjustmentRow | None = None
    pairwise_max: float | None = None
    pairwise_worst: str | None = None
    pairwise_between: str | None = None

    def of(self, population: Population) -> Adjustment:
        """The adjustment of a population."""
        if self.score is not None:
            population = population.with_score(self.score, self.share)
        return Adjustment(
            kind=self.kind,
            estimand=self.estimand,
            population=population,
            weight=self.weight,
            set_id=self.set_id,
            status=self.adjustment_status,
            notes=self.notes,
            attrition=self.attrition,
            details=self.details,
        )

    def row(self, population: Population) -> AdjustmentRow:
        """What the table of adjustments says of it alone."""
        if self.pooled is not None:
            return self.pooled
        adjustment = self.of(population)
        target, comparator = adjustment.effective_sizes()
        details, borders = adjustment.details, None
        caliper, breaks = details.get("caliper"), details.get("breaks")
        if isinstance(breaks, Sequence) and len(breaks) == 1 and adjustment.population.has_score:
            borders = _as_preference(np.asarray(breaks[0]), adjustment.population.share)
        return AdjustmentRow(
            kind=adjustment.kind,
            estimand=adjustment.estimand,
            sampled=adjustment.population.has_sampling_weight,
            status=adjustment.status,
            target_rows=adjustment.n_target,
            comparator_rows=adjustment.n_comparator,
            target_effective=target,
            comparator_effective=comparator,
            stratum_borders=borders,
            caliper=caliper if is_number(caliper) else None,
            details=json.dumps(details, sort_keys=True),
            pairwise_max=self.pairwise_max,
            pairwise_worst=self.pairwise_worst,
            pairwise_between=self.pairwise_between,
        )


def adjust(people: AnalysedPeople, weighted: Weighted | None = None) -> AdjustmentStep:
    """Trim, match, stratify or weight people, as their analysis has it.

    `weighted` are the weights of several treatments, and the adjustment of the comparison by them.
    """
    if weighted is not None:
        step, adjustment = weighted
        largest = step.largest
        stored = _stored(adjustment, adjustment.status, _reason(adjustment))
        if largest is None:
            return stored
        return dataclasses.replace(
            stored,
            pairwise_max=largest.size,
            pairwise_worst=largest.covariate,
            pairwise_between=largest.between,
        )
    try:
        adjustment, refitted = _adjusted(people)
    except InputError as error:
        return _stored(people.people, *status_of(error))
    if refitted is not None and not refitted.is_usable:
        return _stored(adjustment, refitted.status, refitted.reason, refitted)
    return _stored(adjustment, adjustment.status, _reason(adjustment), refitted)


def _reason(adjustment: Adjustment) -> Sentence | None:
    return None if adjustment.reason is None else Sentence(adjustment.reason)


def _adjusted(people: AnalysedPeople) -> tuple[Adjustment, ScoreStep | None]:
    adjustment, analysis, refitted = people.people, people.analysis, None
    if analysis.trim is not None:
        adjustment = trim(adjustment, settings=analysis.trim)
        is_fine = adjustment.status == "ok"
        if analysis.trim.refit and is_fine and analysis.propensity is not None:
            refitted = fit_score(dataclasses.replace(people, people=adjustment))
            if not refitted.is_usable:
                return adjustment, refitted
            population = adjustment.population.with_score(refitted.score, refitted.share)
            adjustment = dataclasses.replace(adjustment, population=population)
    if adjustment.status == "ok":
        adjustment = _made_alike(people, adjustment)
    return adjustment, refitted


def _made_alike(people: AnalysedPeople, adjustment: Adjustment) -> Adjustment:
    """Matched, stratified or weighted, if the analysis asks for it."""
    analysis, labels = people.analysis, people.cohort.labels
    if analysis.match is not None:
        within = [labels[name].values for name in analysis.match.within]
        covariates = people.cohort.design if analysis.match.mahalanobis else None
        return match(adjustment, settings=analysis.match, within=within, X=covariates)
    if analysis.coarsen is not None:
        within = [labels[name].values for name in analysis.coarsen.within]
        covariates = people.cohort.design if analysis.coarsen.covariates else None
        return coarsen(adjustment, covariates, settings=analysis.coarsen, within=within)
    if analysis.stratify is not None:
        within = [labels[name].values for name in analysis.stratify.within]
        return stratify(adjustment, settings=analysis.stratify, within=within)
    if analysis.weight is not None:
        covariates = None if analysis.weight.uses_score else people.cohort.design
        return weight(adjustment, settings=analysis.weight, X=covariates)
    return adjustment


def _stored(
    adjustment: Adjustment, status: str, reason: Sentence | None, refitted: ScoreStep | None = None
) -> AdjustmentStep:
    people = adjustment.population
    has_new_score = refitted is not None and refitted.score is not None
    return AdjustmentStep(
        status=status,
        reason=reason,
        notes=adjustment.notes,
        kind=adjustment.kind,
        estimand=adjustment.estimand,
        adjustment_status=adjustment.status,
        attrition=adjustment.attrition,
        details=_plain(adjustment.details),
        weight=adjustment.weight,
        set_id=adjustment.set_id,
        preference=_histogram(adjustment) if people.has_score else [],
        score=np.asarray(people.score) if has_new_score else None,
        share=people.share if has_new_score else None,
    )


def _histogram(adjustment: Adjustment) -> list[PreferenceRow]:
    """Rows by preference score, before and after, in bars of 0.01."""
    bars = score_bars(adjustment, preference_score(adjustment.population), N_BARS)
    return [
        PreferenceRow(
            arm=arm,
            lower=k / N_BARS,
            upper=(k + 1) / N_BARS,
            count=int(own.all_rows[k]),
            kept=int(own.kept[k]),
            weight=float(own.weight[k]),
        )
        for arm, own in bars.items()
        for k in range(N_BARS)
    ]


def _as_preference(score: Rows, share: float) -> list[float]:
    odds = score / (1 - score) * (1 - share) / share
    return [float(v) for v in odds / (1 + odds)]


@dataclass(frozen=True, eq=False, kw_only=True)
class BalanceStep(StepResult, step="balance"):
    """The balance of every covariate, as `Balance.columns`, and its summary in `row`.

    `is_balanced` is by the rule of the analysis; None where no difference is known. Each of
    `factors` lists covariates that are the levels of one. `characteristics` are the lines of the
    table of characteristics.
    """

    row: AdjustmentRow
    is_balanced: bool | None
    factors: list[list[str]]
    characteristics: list[CharacteristicRow]
    columns: dict[str, AnyArray]


def balance_of(
    people: AnalysedPeople, sections: Sequence[Table1Section], most_years: int
) -> BalanceStep:
    """The balance of every covariate, as columns, and its summary."""
    measured = balance(people.cohort.design, people.people, settings=people.analysis.balance)
    characteristics, missing = _table1(people, measured, sections, most_years)
    before, after = measured.summary("before"), measured.summary("after")
    summary: dict[str, Any] = {
        "n_covariates": len(measured.names),
        "after_min_p": after["min_p"],
        "generalisability_of": measured.generalises_to,
        "generalisability_max": measured.max_generalisability,
        "threshold": measured.threshold,
        "sd": measured.sd,
    }
    for word, side in (("before", before), ("after", after)):
        summary |= {f"{word}_max": side["max"], f"{word}_worst": side["worst"]}
        summary[f"{word}_above"] = side["n_above"]
    known = ~np.isnan(measured.after.smd)
    return BalanceStep(
        notes=tuple(
            Note(
                "unknown_covariate",
                (),
                "{key} lists {name}, but no covariate has that name.",
                {"key": Value("setting", "table1"), "name": Value("name", repr(name))},
            )
            for name in missing
        ),
        row=AdjustmentRow.of(summary),
        is_balanced=bool(measured.after.balanced[known].all()) if known.any() else None,
        factors=[list(factor) for factor in measured.factors],
        characteristics=characteristics,
        columns={name: _array(column) for name, column in measured.columns().items()},
    )


def _table1(
    people: AnalysedPeople, measured: Balance, sections: Sequence[Table1Section], most_years: int
) -> tuple[list[CharacteristicRow], list[str]]:
    """The table of characteristics, of covariates as they were before missing ones were imputed."""
    observed = people.cohort.observed
    if observed is not None:
        people = dataclasses.replace(
            people, cohort=dataclasses.replace(people.cohort, design=observed)
        )
        measured = balance(observed, people.people, settings=people.analysis.balance)
    return describe_people(people, measured, sections, most_years)


def _array(column: AnyArray) -> AnyArray:
    return column.astype(np.str_) if column.dtype == object else column


def balance_rows(
    step: BalanceStep, analyses: Mapping[Any, tuple[int, str]], adjustment: int
) -> Iterator[BalanceRow]:
    """A row for each covariate; `analyses` has analysis and domain by the key of a covariate."""
    by_text = {str(key): analysis for key, analysis in analyses.items()}
    category = {n: k for k, factor in enumerate(step.factors, start=1) for n in factor}
    columns = {name: array.tolist() for name, array in step.columns.items()}
    for side in ("before", "after"):
        for arm in ARMS:
            name = f"{side}_count_{arm}"
            columns[name] = [None if np.isnan(n) else round(n) for n in columns[name]]
    for values in zip(*columns.values(), strict=True):
        row = dict(zip(columns, values, strict=True))
        analysis_id, domain = by_text.get(row["covariate_id"], (None, None))
        row |= {"analysis_id": analysis_id, "domain": domain}
        yield BalanceRow.of(row | {"adjustment": adjustment, "category": category.get(row["name"])})


def _plain(value: Any) -> Any:
    """As JSON can hold it."""
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(v) for v in value]
    return value.item() if isinstance(value, np.generic) else value
