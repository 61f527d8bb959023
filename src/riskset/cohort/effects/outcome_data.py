"""The rows, columns and strata that one reading of an adjustment gives to an outcome model."""

import copy
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from riskset._errors import CohortError, InputError
from riskset._messages import Note, Value
from riskset._settings import bad_setting
from riskset._types import AnyArray, Features, Index, Rows
from riskset.cohort.adjustments.adjustment import Adjustment, are_of_one
from riskset.cohort.covariates.covariate_filter import TidyInfo, tidy
from riskset.cohort.effects.effect_scale import COX_MODELS
from riskset.cohort.effects.estimate import Reading
from riskset.cohort.effects.outcome_events import model_events
from riskset.cohort.outcomes import Outcomes
from riskset.cohort.propensity.estimated_score import EstimatedScore
from riskset.cohort.settings import OutcomeModel
from riskset.data.column_statistics import select_columns
from riskset.data.design import Design
from riskset.data.writers import check_target
from riskset.estimators._logistic import Logistic, LogisticCV
from riskset.estimators._parameters import shared_parameters
from riskset.estimators.cox import Cox
from riskset.estimators.crossval import CoxCV, FineGrayCV
from riskset.estimators.finegray import FineGray
from riskset.estimators.frailty import CoxFrailty
from riskset.infer.crossval.checkpoint import CheckpointError
from riskset.infer.crossval.result import CrossValidation
from riskset.model.cox import Ties
from riskset.model.penalty import Penalty
from riskset.model.references import without_references

__all__ = [
    "ROBUST",
    "TREATMENT",
    "FitData",
    "OutcomeCovariates",
    "OutcomeEstimator",
    "belong_together",
    "fit_data",
    "has_one_cluster",
    "has_weights",
    "held_columns",
    "interval_kind",
    "sparing",
]

OutcomeEstimator = Cox | FineGray | CoxFrailty

TREATMENT = "treatment"
ROBUST = ("robust", "bootstrap", "stacked")
"""Ways of intervals with which rows count as belonging together or having weights."""

WEIGHTS_AS_COUNTS = (
    "the interval takes the weights for numbers of people and is too narrow or too wide; "
    "`interval='bootstrap'` does not."
)

NO_COVARIATES = "no covariate differs between people, so the model has none."
ROWS_AS_INDEPENDENT = (
    "the interval takes rows of one person or matched set as independent, because the likelihood "
    "has no robust variance."
)


@dataclass(frozen=True, eq=False)
class OutcomeCovariates:
    """Covariates of a whole population without the treatment.

    `extra` are those to adjust for, and `groups` those with which the effect may differ. Replicates
    of a cross-validation are kept in `checkpoint`, in a separate file for each reading. `score` is
    the model of the scores, for stacked intervals. `cluster` (n,) has the labels of those who share
    a frailty.
    """

    extra: Design | None
    groups: Design | None
    checkpoint: str | os.PathLike[str] | None = None
    score: EstimatedScore | None = None
    cluster: AnyArray | None = None

    def __post_init__(self) -> None:
        if self.extra is None or self.groups is None:
            return
        for name in set(self.extra.names) & set(self.groups.names):
            a, b = (
                select_columns(one, np.array([one.index_of(name)])).to_dense()[:, 0]
                for one in (self.extra, self.groups)
            )
            top = int(np.abs(a).argmax())
            if not np.allclose(a * b[top], b * a[top], rtol=1e-9, atol=1e-12 * np.abs(b).max()):
                raise CohortError(
                    "BadCovariates",
                    f"`covariates` and `interactions` both have a covariate {name!r}, but not the "
                    "same one.",
                    hint="name the columns, as those of a data frame or `Design` are; one that is "
                    "in both is the same in both.",
                )


@dataclass(frozen=True, eq=False)
class FitData:
    """What one model is fitted to.

    The columns of the design are the treatment, the interactions and, last, `n_covariates`
    covariates. `interactions` maps each covariate of `groups` to its product with the treatment,
    `arguments` are the weights, strata, offset and clusters of `Cox.fit`, and `kind` is the method
    of the intervals. The estimator is not fitted yet; `constant` is added to its log likelihood.
    """

    design: Design
    interactions: dict[str, str]
    y: AnyArray
    arguments: dict[str, Any]
    kind: str
    estimator: OutcomeEstimator
    notes: tuple[Note, ...] = ()
    cross_validation: CrossValidation | None = None
    tidied: TidyInfo | None = None
    n_covariates: int = 0
    score: EstimatedScore | None = None
    constant: float = 0.0

    def covariate_coef(self, coef: Features) -> Features:
        """Coefficients of the covariates as they were given, from those of all columns."""
        first = self.design.n_features - self.n_covariates
        own = coef[first:]
        if self.tidied is None or not own.size:
            return own
        return self.tidied.original_coef(own, self.design.keys[first:])

    def without(self, names: Sequence[str]) -> "FitData":
        """The same without some of the interactions."""
        gone = {self.interactions[name] for name in names}
        kept = [j for j, name in enumerate(self.design.names) if name not in gone]
        left = {name: own for name, own in self.interactions.items() if name not in names}
        design = select_columns(self.design, np.array(kept, dtype=np.int64))
        estimator = copy.copy(self.estimator)
        if not isinstance(estimator, CoxFrailty):
            estimator.set_params(penalty=sparing(estimator.penalty, [], without=gone))
        return replace(self, design=design, interactions=left, estimator=estimator)


def fit_data(
    outcomes: Outcomes,
    adjustment: Adjustment,
    covariates: OutcomeCovariates,
    reading: Reading,
    settings: OutcomeModel,
) -> FitData:
    """The data of a reading; where a penalty is to be chosen, it is."""
    found, spared, settings = _assembled(outcomes, adjustment, covariates, reading, settings)
    if settings.kind is None or settings.kind.has_strength:
        return found
    # Mistakes of the caller are not a reason to leave the covariates out.
    settings.kind.factors(found.design.names)
    kept = None
    if covariates.checkpoint is not None:
        kept = Path(covariates.checkpoint)
        kept = kept.with_stem(f"{kept.stem}-{reading}")
        check_target(kept)
    unit = adjustment.cluster[adjustment.kept]
    try:
        return _with_chosen_penalty(found, unit, settings, spared, kept)
    except CheckpointError:
        raise
    except InputError as error:  # such as none that carries information
        note = Note(
            "no_penalty",
            (),
            "no penalty can be chosen, so the covariates are left out: {error}",
            {"error": Value("sentence", error.sentence)},
        )
        alone = OutcomeCovariates(None, covariates.groups)
        found = fit_data(outcomes, adjustment, alone, reading, settings)
        return replace(found, notes=(*found.notes, note))


def _assembled(
    outcomes: Outcomes,
    adjustment: Adjustment,
    covariates: OutcomeCovariates,
    reading: Reading,
    settings: OutcomeModel,
) -> tuple[FitData, list[str], OutcomeModel]:
    """The data with the penalty as it was given, columns without a penalty, and the settings.

    Without any covariate the settings that are returned have no penalty.
    """
    rows = np.flatnonzero(adjustment.kept)
    held, covariates = _held_apart(covariates, settings, rows)
    columns = _model_columns(adjustment, covariates, settings, rows)
    if columns.n_extra == 0:
        settings = replace(settings, penalty=None, cross_validate=None)
    is_stratified = reading == "stratified" and adjustment.set_id is not None
    strata = adjustment.set_id[rows] if is_stratified else None  # type: ignore[index]
    events = model_events(outcomes.take(rows), strata, settings)
    kind = interval_kind(adjustment, rows, reading, settings)
    notes = list(columns.notes)
    is_whole = events.ties == "exact" or settings.whole_likelihood is not None
    if is_whole:
        notes += _notes_of_whole(settings, adjustment, rows, reading)
        kind = settings.whole_intervals[1] if settings.interval == "auto" else kind
    weight = adjustment.weight[rows] if has_weights(adjustment, reading) else None
    if kind == "profile" and weight is not None:
        notes.append(Note("weights_as_counts", (), WEIGHTS_AS_COUNTS))
    cluster = None if is_whole else _clusters(adjustment.cluster[rows])
    cluster = cluster if covariates.cluster is None else covariates.cluster[rows]
    penalty = sparing(settings.kind, columns.spared)
    design = without_references(columns.design, penalty)
    # First levels that are left out are all of the covariates.
    n_left_out = columns.design.n_features - design.n_features
    found = FitData(
        design=design,
        interactions=columns.interactions,
        y=events.y,
        arguments={
            "sample_weight": weight,
            "strata": strata,
            "offset": _sum(events.offset, held),
            "cluster": cluster,
        },
        kind=kind,
        estimator=_estimator(adjustment, rows, settings, penalty, events.ties),
        notes=(*notes, *events.notes),
        constant=events.constant(weight, strata),
        tidied=columns.tidied,
        n_covariates=columns.n_extra and columns.n_extra - n_left_out,
        score=covariates.score,
    )
    return found, columns.spared, settings


@dataclass(frozen=True, eq=False)
class _ModelColumns:
    """The treatment, interactions and, last, `n_extra` covariates; `spared` have no penalty."""

    design: Design
    interactions: dict[str, str]
    spared: list[str]
    n_extra: int
    tidied: TidyInfo | None
    notes: tuple[Note, ...]


def _model_columns(
    adjustment: Adjustment, covariates: OutcomeCovariates, settings: OutcomeModel, rows: Index
) -> _ModelColumns:
    """The columns of a model of some rows."""
    treatment = adjustment.population.treatment[rows].astype(np.float64)
    parts, notes = [Design.from_columns({TREATMENT: treatment})], []
    extra, tidied = covariates.extra, None
    if extra is not None and settings.chooses_penalty and settings.tidy:
        tidied = tidy(extra, adjustment)
        extra = tidied.design
    if extra is not None and not extra.n_features:
        notes, extra = [Note("no_covariates", (), NO_COVARIATES)], None
    interactions, spared = {}, [TREATMENT]
    if covariates.groups is not None:
        groups = covariates.groups
        known = () if extra is None else extra.names
        interactions = {name: f"{TREATMENT}:{name}" for name in groups.names}
        columns = dict(zip(groups.names, groups.to_dense(rows=rows).T, strict=True))
        made = {interactions[name]: treatment * x for name, x in columns.items()}
        made |= {name: x for name, x in columns.items() if name not in known}
        parts.append(Design.from_columns(made))
        spared += [*interactions.values(), *groups.names]
    if extra is not None:
        parts.append(extra.take_rows(rows))
    n_extra = 0 if extra is None else extra.n_features
    return _ModelColumns(Design.stack(parts), interactions, spared, n_extra, tidied, tuple(notes))


def _clusters(own: Index) -> Index | None:
    """Codes of the sets or people, unless there is one alone, as in some subgroups."""
    return None if are_of_one(own) else own


def has_one_cluster(data: FitData) -> bool:
    """Whether a robust interval is asked for of one set or person alone, which has none."""
    return data.kind in ROBUST and data.arguments["cluster"] is None


def _sum(one: Rows | None, other: Rows | None) -> Rows | None:
    return other if one is None else one if other is None else one + other


def held_columns(design: Design, names: Iterable[str]) -> Index:
    """The columns whose coefficients `fixed` holds, by names or keys, each once."""
    place: dict[str, int] = {str(key): j for j, key in enumerate(design.keys)}
    place |= {name: j for j, name in enumerate(design.names)}
    columns: list[int] = []
    for name in names:
        if name not in place:
            raise InputError.unknown_name("covariate", name, design.names, place="`fixed`")
        if place[name] in columns:
            raise CohortError(
                "BadSetting",
                "`fixed` has two coefficients of {name}, by its name and by its key.",
                hint="leave one of them out.",
                values={"name": Value("name", repr(design.names[place[name]]))},
            )
        columns.append(place[name])
    return np.array(columns, dtype=np.int64)


def _held_apart(
    covariates: OutcomeCovariates, settings: OutcomeModel, rows: Index
) -> tuple[Rows | None, OutcomeCovariates]:
    """The part of the linear predictor that is held, of some rows, and the other covariates."""
    extra = covariates.extra
    if not settings.held or extra is None:
        return None, covariates
    columns = held_columns(extra, settings.held)
    part = extra.to_dense(columns, rows) @ np.array(list(settings.held.values()))
    gone = {extra.names[j] for j in columns.tolist()}
    free = without_references(extra, settings.kind)
    left = [j for j, name in enumerate(free.names) if name not in gone]
    chosen = select_columns(free, np.array(left, dtype=np.int64)) if left else None
    return part, replace(covariates, extra=chosen)


def _notes_of_whole(
    settings: OutcomeModel, adjustment: Adjustment, rows: Index, reading: Reading
) -> list[Note]:
    """A likelihood that is not a sum over rows has no resamples, no sandwich and no weights."""
    words = settings.whole_likelihood
    if words is not None and has_weights(adjustment, reading):
        is_sampled = adjustment.population.has_sampling_weight
        source = "sampling weights" if is_sampled else f"those of the {adjustment.kind}"
        raise CohortError(
            "BadSetting",
            f"{words} takes no weights, but the {reading} reading has {source}.",
            hint="leave it out."
            if is_sampled or adjustment.set_id is None
            else "use `reading='stratified'` or `reading='pooled'`.",
        )
    words = words or "the conditional likelihood of strata with several outcomes"
    if settings.interval in ("robust", "bootstrap"):
        raise bad_setting(
            "interval",
            f"{words} has no {settings.interval} interval.",
            hint="use `interval='profile'`, or `reading='marginal'`.",
            value=settings.interval,
        )
    if settings.chooses_penalty:
        raise bad_setting(
            "penalty",
            f"{words} has no cross-validation.",
            hint="give the strength of the penalty, or use `reading='marginal'`.",
            value=settings.penalty,
        )
    is_together = belong_together(adjustment, rows, reading)
    return [Note("rows_as_independent", (), ROWS_AS_INDEPENDENT)] if is_together else []


def _with_chosen_penalty(
    data: FitData,
    unit: Index,
    settings: OutcomeModel,
    spared: Sequence[str],
    checkpoint: Path | None,
) -> FitData:
    kind = sparing(settings.kind, spared)
    several = np.unique(unit).size < unit.size
    common: dict[str, Any] = {
        "folds": settings.folds,
        "repeats": settings.repeats,
        "groups": unit if several else None,
        "seed": settings.seed,
        "checkpoint": checkpoint,
    }
    choosers: dict[type, Any] = {FineGray: FineGrayCV, Logistic: LogisticCV, Cox: CoxCV}
    chooser = choosers[type(data.estimator)]
    own = shared_parameters(data.estimator, chooser)
    chosen = chooser(**{**own, "penalty": kind}, **common)
    chosen.fit(data.design, data.y, **data.arguments)
    estimator = copy.copy(data.estimator).set_params(penalty=chosen.best_penalty_)
    return replace(data, estimator=estimator, cross_validation=chosen.cross_validation_)


def interval_kind(
    adjustment: Adjustment, rows: Index, reading: Reading, settings: OutcomeModel
) -> str:
    """How intervals are found: where rows are weighted or belong together not by the profile."""
    if settings.is_penalized and settings.interval in ("auto", "profile"):
        return "profile"
    if settings.interval != "auto":
        return settings.interval
    together, weighted = (
        belong_together(adjustment, rows, reading),
        has_weights(adjustment, reading),
    )
    robust = together or weighted or settings.model == "finegray"
    return "robust" if robust else "profile"


def belong_together(adjustment: Adjustment, rows: Index, reading: Reading) -> bool:
    """Whether rows are of one person, or of a matched set that is not a stratum of the model."""
    person = adjustment.population.person_id[rows]
    repeats = np.unique(person).size < person.size
    return repeats or (adjustment.kind == "matching" and reading != "stratified")


def has_weights(adjustment: Adjustment, reading: Reading) -> bool:
    """Whether a reading weights the rows that are kept."""
    weight = adjustment.weight[adjustment.kept]
    return reading == "marginal" and bool((weight != 1).any())


def sparing(
    penalty: Penalty | None,
    names: Sequence[str],
    *,
    without: set[str] = frozenset(),  # type: ignore[assignment]
) -> Penalty | None:
    """A penalty that leaves some columns alone: to shrink the effect would bias it."""
    if penalty is None:
        return None
    own = [name for name in penalty.unpenalized if name not in without]
    other = copy.copy(penalty)
    object.__setattr__(other, "unpenalized", (*own, *(n for n in names if n not in own)))
    return other


def _estimator(
    adjustment: Adjustment,
    rows: Index,
    settings: OutcomeModel,
    penalty: Penalty | None,
    ties: Ties | None,
) -> OutcomeEstimator:
    if settings.frailty is not None:
        return CoxFrailty(
            settings.frailty,
            frailty_variance=settings.frailty_variance,
            frailty_method=settings.frailty_method,
            ties=str(ties),
            cause=1,
            tol=settings.tol,
        )
    if ties is None:
        return Logistic(penalty, cause=1, device="cpu", tol=settings.tol)
    if settings.model != "finegray":
        firth = settings.firth and settings.model in COX_MODELS
        return Cox(penalty, ties=ties, firth=firth, cause=1, tol=settings.tol)
    groups: dict[str | None, Rows | Index | None] = {
        None: None,
        "arm": adjustment.population.treatment,
        "stratum": adjustment.set_id,
    }
    group = groups[settings.censoring_group]
    return FineGray(
        penalty,
        cause=1,
        censoring_weights=settings.censoring_weights,
        censoring_group=None if group is None else group[rows],
        tol=settings.tol,
    )
