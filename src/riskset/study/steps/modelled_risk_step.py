"""The step of risks and restricted means by outcome models: standardised, and doubly robust."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from riskset._errors import InputError
from riskset._messages import Note
from riskset._time_units import TimeUnit
from riskset.cohort.adjustments.adjustment import Adjustment, restrict
from riskset.cohort.arms.arm_models import last_times
from riskset.cohort.arms.augmented_estimates import DoublyRobustEstimates, doubly_robust
from riskset.cohort.arms.curves import ARMS, followed_arms
from riskset.cohort.arms.risks import end_notes
from riskset.cohort.arms.standardization import ModelledEstimates, standardize
from riskset.data.design import Design
from riskset.disclosure.rows import known
from riskset.results.rows import ModelledRiskRow, RestrictedMeanRow
from riskset.study.cache import StepResult
from riskset.study.sources.source import AnalysedOutcome
from riskset.study.specification.keys import KEYS_OF_RISKS, KEYS_OF_STANDARDIZED, SpecificationKeys
from riskset.study.steps.propensity_step import score_covariates, status_of, tidy_covariates
from riskset.study.steps.restricted_mean_step import pooled_rows

__all__ = ["ModelledRiskStep", "modelled_risks", "pooled_modelled_risks"]

RISK = "risk"
POPULATIONS = ("ate", "att", "atu")
"""Estimands whose population is known without a score."""
ModelledReading = Literal["outcome_models", "doubly_robust"]


@dataclass(frozen=True, eq=False, kw_only=True)
class ModelledRiskStep(StepResult, step="risks by outcome models"):
    """Risks of one outcome, and restricted means."""

    risks: list[ModelledRiskRow]
    means: list[RestrictedMeanRow]


def modelled_risks(
    outcome: AnalysedOutcome,
    standardized: tuple[float, ...],
    robust: tuple[float, ...],
    unit: TimeUnit = "days",
) -> ModelledRiskStep:
    """Standardised and doubly robust estimates by times in days, of the people who are adjusted."""
    design = tidy_covariates(outcome)[1]
    risks: list[ModelledRiskRow] = []
    means: list[RestrictedMeanRow] = []
    notes: dict[Note, None] = {}
    asked: tuple[tuple[ModelledReading, tuple[float, ...], Any, SpecificationKeys], ...] = (
        ("outcome_models", standardized, _standardized, KEYS_OF_STANDARDIZED),
        ("doubly_robust", robust, _doubly_robust, KEYS_OF_RISKS),
    )
    for reading, times, estimate, keys in asked:
        if not times:
            continue
        try:
            found: ModelledEstimates = estimate(outcome, design, times)
        except InputError as error:
            reason = status_of(error, keys)[1]
            notes[Note(f"no_{reading}", (), reason.template, reason.values)] = None
            continue
        own_risks, own_means = _rows(found, reading)
        risks += own_risks
        means += own_means
        notes |= dict.fromkeys(_notes(outcome, found, unit))
    return ModelledRiskStep(risks=risks, means=means, notes=tuple(notes))


def _model(outcome: AnalysedOutcome) -> Literal["cox", "cause-specific", "finegray"]:
    """Outcome models of the kind of the main model, which has risks."""
    if outcome.analysis.model.model == "finegray":
        return "finegray"
    followed = followed_arms(outcome.followed.outcome, outcome.people, None)[1]
    has_competing = bool((followed.status[outcome.people.kept] == 2).any())
    return "cause-specific" if has_competing else "cox"


def _without_weights(outcome: AnalysedOutcome) -> tuple[Adjustment, Any]:
    """The people who are adjusted, without weights and sets, and the population of the effect."""
    made = outcome.people
    if made.kind in ("none", "trimming"):
        return made, "ate"
    people = restrict(outcome.followed.people, made.kept, "adjusted")
    return people, made.estimand if made.estimand in POPULATIONS else "ate"


def _settings(outcome: AnalysedOutcome) -> dict[str, Any]:
    own = outcome.analysis.model
    return {
        "model": _model(outcome),
        "interval": "bootstrap" if own.interval == "bootstrap" else "robust",
        "level": own.level,
        "ties": "efron" if own.ties == "exact" else own.ties,  # they predict, by Breslow's hazards
        "replicates": own.replicates,
        "seed": outcome.seed,
    }


def _standardized(
    outcome: AnalysedOutcome, design: Design, times: tuple[float, ...]
) -> ModelledEstimates:
    people, estimand = _without_weights(outcome)
    y, how = outcome.followed.outcome, _settings(outcome)
    return standardize(y, people, design, times, estimand=estimand, **how)


def _doubly_robust(
    outcome: AnalysedOutcome, design: Design, times: tuple[float, ...]
) -> DoublyRobustEstimates:
    own, people, more = outcome.analysis.model, outcome.people, _settings(outcome)
    penalty = None if own.risk_penalty == "none" else own.risk_penalty
    more |= {"censoring": own.risk_censoring, "penalty": penalty, "folds": own.risk_folds}
    if own.risk_folds is not None:
        people, more["estimand"] = _without_weights(outcome)
        people = replace(people, population=people.population.with_score(None))
    is_estimated = people.kind in ("none", "trimming") and not people.population.has_score
    if is_estimated:
        more |= {"score_penalty": penalty, "score_covariates": score_covariates(outcome)}
        more |= _about_high_correlations(outcome)
    return doubly_robust(outcome.followed.outcome, people, design, times, **more)


def _about_high_correlations(outcome: AnalysedOutcome) -> dict[str, Any]:
    """What the score of the study does with covariates that nearly determine the treatment."""
    own = outcome.analysis.propensity
    names = ("on_high_correlation", "max_correlation")
    return {} if own is None else {name: getattr(own, name) for name in names}


def _rows(
    found: ModelledEstimates, reading: ModelledReading
) -> tuple[list[ModelledRiskRow], list[RestrictedMeanRow]]:
    """A row for each time, of risks and of each restricted mean."""
    columns = found.columns()
    about = {"reading": reading, "interval": found.interval, "interval_level": found.level}
    risks, means = [], []
    for k in range(columns["time"].size):
        values = {name: known(column[k : k + 1].tolist()[0]) for name, column in columns.items()}
        is_risk = values["measure"] == RISK
        for arm in ARMS:
            values[f"{arm}_{'risk' if is_risk else 'mean'}"] = values.pop(arm)
        if is_risk:
            del values["measure"]
            gone = [f"{arm}_competing" for arm in ARMS]
            values = {name: value for name, value in values.items() if name not in gone}
            more = {"model": found.model, "estimand": found.estimand}
            risks.append(ModelledRiskRow.of(values | about | more))
        else:
            means.append(RestrictedMeanRow.of(values | about | {"adjusted": True}))
    return risks, means


def _notes(outcome: AnalysedOutcome, found: ModelledEstimates, unit: TimeUnit) -> list[Note]:
    """Notes of the estimates, with times in the unit of the report."""
    notes = [note for note in found.notes if note.code != "follow_up_ends"]
    outcomes = followed_arms(outcome.followed.outcome, outcome.people, None)[1]
    ends = dict(zip(ARMS, last_times(outcomes, outcome.people).tolist(), strict=True))
    key = "doubly_robust" if isinstance(found, DoublyRobustEstimates) else "standardize"
    for note in end_notes(found.times, ends, unit):
        text = f"{note.template} Choose earlier times in `{key}`."
        notes.append(replace(note, template=text))
    return notes


def pooled_modelled_risks(steps: Sequence[ModelledRiskStep]) -> ModelledRiskStep:
    """The rows that all data sets have, pooled by Rubin's rules with normal intervals."""
    return ModelledRiskStep(
        risks=pooled_rows([step.risks for step in steps], ("reading", "time"), "risk"),
        means=pooled_rows(
            [step.means for step in steps], ("adjusted", "reading", "measure", "time"), "mean"
        ),
    )
