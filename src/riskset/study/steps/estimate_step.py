"""The steps of estimates: the crude one, the main one, those of further models, and subgroups."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from riskset._errors import InputError
from riskset._messages import Note, Sentence, Value
from riskset._time_units import TimeUnit
from riskset._types import AnyArray
from riskset.cohort.covariates.covariate_filter import TidyInfo
from riskset.cohort.effects.effect_scale import COX_MODELS, HAZARD_MODELS
from riskset.cohort.effects.estimate import Estimate
from riskset.cohort.effects.outcome_data import ROBUST, held_columns
from riskset.cohort.effects.outcome_model import fit_outcome
from riskset.cohort.outcomes import ArmCounts
from riskset.cohort.settings import FRAILTY_SETTINGS, OutcomeModel
from riskset.data.column_statistics import select_columns
from riskset.data.design import Design
from riskset.disclosure.rows import known
from riskset.infer.crossval.checkpoint import CheckpointError
from riskset.infer.wald import exponentials
from riskset.model.penalty import L1, Penalty
from riskset.omop.characteristics import UNKNOWN
from riskset.results.column_groups import ArmColumns, EffectColumns
from riskset.results.rows import (
    EffectAtTimeRow,
    EstimateRow,
    IntervalRow,
    OutcomeCoefficientRow,
    OutcomePenaltyRow,
    ProfilePointRow,
    TimeEffectRow,
)
from riskset.study.cache import StepResult
from riskset.study.sources.source import AnalysedOutcome
from riskset.study.specification.keys import KEYS
from riskset.study.steps.estimate_e_values import with_e_value
from riskset.study.steps.propensity_step import (
    coefficient_rows,
    penalty_columns,
    refuse_unknown,
    score_covariates,
    status_of,
    tidy_covariates,
    tried_penalties,
)
from riskset.study.steps.time_effect_rows import time_effect_rows, time_effect_settings

__all__ = [
    "NO_TIME_EFFECT",
    "EstimateStep",
    "crude",
    "estimate_row",
    "estimates",
    "step_of",
    "subgroup_estimates",
]

NAMES = {
    "cox": "hazard",
    "cause-specific": "cause-specific hazard",
    "finegray": "subdistribution",
    "logistic": "odds",
    "poisson": "rate",
}
FITTED = ("ok", "events_in_one_arm")
"""Statuses of models whose covariates have coefficients, if that of the treatment is infinite."""
MAX_INTERVALS = 6
NO_FRAILTY = {name: getattr(OutcomeModel(), name) for name in FRAILTY_SETTINGS}
NO_TIME_EFFECT: dict[str, Any] = {"time_effect": None, "effect_times": ()}


@dataclass(frozen=True, eq=False, kw_only=True)
class EstimateStep(StepResult, step="estimate"):
    """Estimates of one outcome, and what else their models report.

    Coefficients and penalties have the number of their estimate; the others are of the main
    estimate: `over_time` in intervals, and `time_effect` as a function of time, with ratios
    `at_times`.
    """

    rows: list[EstimateRow]
    coefficients: list[OutcomeCoefficientRow] = dataclasses.field(default_factory=list)
    tried: list[OutcomePenaltyRow] = dataclasses.field(default_factory=list)
    profile: list[ProfilePointRow] = dataclasses.field(default_factory=list)
    over_time: list[IntervalRow] = dataclasses.field(default_factory=list)
    time_effect: list[TimeEffectRow] = dataclasses.field(default_factory=list)
    at_times: list[EffectAtTimeRow] = dataclasses.field(default_factory=list)


def crude(people: AnalysedOutcome) -> EstimateStep:
    """The estimate without any adjustment, of all who are followed."""
    changes = {"covariates": "none", "strength": None, "censoring_group": None, "fixed": None}
    changes |= NO_TIME_EFFECT
    if people.analysis.model.interval == "stacked":
        changes["interval"] = "auto"  # there are no weights
    model = dataclasses.replace(people.analysis.model, **changes)  # type: ignore[arg-type]
    plain = dataclasses.replace(
        people,
        cohort=dataclasses.replace(people.cohort, data_set=None),  # it uses no covariate
        people=people.followed.people,
        analysis=dataclasses.replace(people.analysis, model=model),
    )
    try:
        estimate = _fit(plain, model.model, reading="marginal")
    except InputError as error:
        return _failed(error)
    return step_of(estimate, rows=[estimate_row(estimate, "crude", "crude", plain)])


def estimates(
    people: AnalysedOutcome,
    is_of_interest: bool,
    unit: TimeUnit,
    checkpoint: Path | None = None,
) -> EstimateStep:
    """The main estimate, its other reading, and those of further models.

    The main estimate has a likelihood profile. Outcomes of interest, but not controls, which may be
    many, also have the main estimate in intervals of time and, if that is asked for, as a function
    of it, with times in `unit`, and what each model says of its covariates. `checkpoint` is a file,
    from whose name those of each cross-validation are made, for replicates that are done.
    """
    settings = people.analysis.model
    asked: list[tuple[Estimate, str, str]] = []

    def described(one: Estimate, role: str, label: str) -> EstimateRow:
        return _with_covariates(estimate_row(one, role, label, people), one, people)

    try:
        covariates, penalty, tidied = _covariates(people)
        more: dict[str, Any] = {"covariates": covariates, "penalty": penalty}
        more["checkpoint"] = checkpoint
        intervals = MAX_INTERVALS if is_of_interest else 0
        of_time = time_effect_settings(people, unit) if is_of_interest else {}
        main = _fit(
            people, settings.model, **more, profile=True, time_intervals=intervals, of_time=of_time
        )
        asked.append((main, "main", "adjusted"))
        if main.sensitivity is not None:
            label = f"{main.sensitivity.reading} instead of {main.reading}"
            asked.append((main.sensitivity, "sensitivity", label))
    except InputError as error:
        return _failed(error)
    notes = [*_notes_of_profile(main), *_notes_of_clusters(people)]
    for kind in settings.also:
        if kind == settings.model:
            continue
        try:
            other = _fit(people, kind, **more)
        except CheckpointError:
            raise
        except InputError as error:
            values = {"kind": Value("name", kind), "error": Value("sentence", error.sentence)}
            notes.append(Note("model", (), "{kind}: {error}", values))
            continue
        for one in (other, other.sensitivity):
            if one is not None:
                asked.append((one, "model", f"{NAMES[kind]}, {one.reading}"))
    step = step_of(
        main,
        rows=[described(*one) for one in asked],
        profile=_profile(main),
        over_time=_over_time(main, people),
        **time_effect_rows(main, people),
        coefficients=[
            row
            for number, (one, *_) in enumerate(asked, start=1)
            for row in _coefficients(people, one, number, tidied)
            if is_of_interest
        ],
        tried=[
            OutcomePenaltyRow.of(row | {"number": number})
            for number, (one, *_) in enumerate(asked, start=1)
            if is_of_interest and one.cross_validation is not None
            for row in tried_penalties(one.cross_validation)
        ],
    )
    return dataclasses.replace(step, notes=(*step.notes, *notes))


def _failed(error: InputError) -> EstimateStep:
    status, reason = status_of(error)
    return EstimateStep(status=status, reason=reason, rows=[])


def step_of(estimate: Estimate, **rows: Any) -> EstimateStep:
    """The step with the status, the reason and the notes of its main estimate."""
    reason = None if estimate.reason is None else Sentence(estimate.reason).spoken(KEYS)
    return EstimateStep(status=estimate.status, reason=reason, notes=estimate.notes, **rows)


def _covariates(
    people: AnalysedOutcome,
) -> tuple[Design | None, Penalty | None, TidyInfo | None]:
    """Covariates to adjust for, their penalty, and what was done to them."""
    settings = people.analysis.model
    if settings.covariates == "none" or people.people.status != "ok":
        return None, None, None
    tidied, design = tidy_covariates(people)
    return design, L1(settings.strength), tidied


def _fit(
    people: AnalysedOutcome,
    kind: str,
    *,
    covariates: Design | None = None,
    penalty: Penalty | None = None,
    interactions: Design | None = None,
    reading: str | None = None,
    profile: bool = False,
    time_intervals: int = 0,
    of_time: Mapping[str, Any] = NO_TIME_EFFECT,
    checkpoint: Path | None = None,
) -> Estimate:
    """`fit_outcome` with a kind of model, by the settings of the analysis.

    The effect as a function of time is by `of_time` alone. `covariates` are those whose
    coefficients are estimated.
    """
    is_finegray, is_hazard = kind == "finegray", kind in HAZARD_MODELS
    model = people.analysis.model
    is_stacked = model.interval == "stacked"
    is_whole = kind in COX_MODELS and model.whole_likelihood is not None
    has_frailty = kind in COX_MODELS and model.frailty is not None
    lacks_profile = is_whole and model.whole_key != "ties"
    has_profile = people.cohort.data_set is None and not lacks_profile
    if penalty is None or penalty.has_strength:
        checkpoint = None  # no cross-validation
    changes: dict[str, Any] = {
        "model": kind,
        "penalty": penalty,
        "tidy": False,
        "profile": "adaptive" if profile and has_profile else None,
        "time_intervals": time_intervals if is_hazard and not is_whole else 0,
        "seed": people.seed,
        **NO_TIME_EFFECT,
        **of_time,
    }
    changes |= {} if kind in COX_MODELS else {"ties": "breslow", "firth": False}
    changes |= {} if has_frailty else NO_FRAILTY
    changes |= {} if is_finegray else {"censoring_weights": "none", "censoring_group": None}
    changes |= {} if reading is None else {"reading": reading}
    if model.held:
        covariates = _with_held(covariates, people)
    estimate = fit_outcome(
        people.followed.outcome,
        people.people,
        settings=OutcomeModel(**model.values(OutcomeModel) | changes),
        covariates=covariates,
        interactions=interactions,
        score_covariates=score_covariates(people) if is_stacked else None,
        cluster=people.cohort.labels[str(model.cluster)].values if has_frailty else None,
        checkpoint=checkpoint and checkpoint.with_stem(f"{checkpoint.stem}-{kind}"),
    )
    return estimate if people.cohort.data_set is None else _poolable(estimate)


def _held(people: AnalysedOutcome) -> Design:
    """The covariates whose coefficients are held, in the order of the setting."""
    design, names = people.cohort.design, people.analysis.model.held
    refuse_unknown(design, names, "`fixed`")
    return select_columns(design, held_columns(design, names))


def _with_held(covariates: Design | None, people: AnalysedOutcome) -> Design:
    """Covariates of a model with those that are held, as they came."""
    held = _held(people)
    if covariates is None:
        return held
    left = [j for j, key in enumerate(covariates.keys) if key not in set(held.keys)]
    if not left:
        return held
    return Design.stack([held, select_columns(covariates, np.array(left, dtype=np.int64))])


def _poolable(estimate: Estimate) -> Estimate:
    """With the standard error of the information instead of a profile, which has none to pool."""
    if estimate.sensitivity is not None:
        estimate = dataclasses.replace(estimate, sensitivity=_poolable(estimate.sensitivity))
    if estimate.interval != "profile" or not np.isfinite(estimate.se_model):
        return estimate
    return _normal(estimate, estimate.log_hr, estimate.se_model)


def estimate_row(estimate: Estimate, role: str, label: str, people: AnalysedOutcome) -> EstimateRow:
    """A row of the table `estimates`, but for its number and its covariates."""
    is_cox, model = estimate.model in COX_MODELS, people.analysis.model
    names = (field.name for field in dataclasses.fields(EffectColumns))
    row = EstimateRow(
        role=role,
        label=label,
        model=estimate.model,
        scale=estimate.scale,
        reading=estimate.reading,
        estimand=estimate.estimand,
        status=estimate.status,
        note="; ".join(note.code for note in estimate.notes),
        effect=EffectColumns(**{name: known(getattr(estimate, name)) for name in names}),
        llr=known(estimate.llr),
        interval=estimate.interval,
        interval_level=estimate.level,
        ties=model.ties if is_cox else None,
        firth=model.firth if is_cox else None,
        frailty=model.frailty if is_cox else None,
        cluster=model.cluster if is_cox else None,
        n_clusters=estimate.n_clusters,
        frailty_variance=known(estimate.frailty_variance),
        frailty_p=known(estimate.frailty_p),
        mdrr=known(estimate.mdrr),
        expected_se=known(estimate.expected_se),
        proportionality_p=known(estimate.proportionality_p),
        informative_strata=estimate.informative_strata,
        informative_people=estimate.informative_people,
        n_covariates=0,
        kkt=known(estimate.kkt),
        target_arm=_arm(estimate.target),
        comparator_arm=_arm(estimate.comparator),
    )
    return with_e_value(row)


def _arm(counts: ArmCounts) -> ArmColumns:
    return ArmColumns(**{n: known(value) for n, value in dataclasses.asdict(counts).items()})


def _with_covariates(row: EstimateRow, estimate: Estimate, people: AnalysedOutcome) -> EstimateRow:
    """With the columns about the covariates of the model."""
    columns: dict[str, object] = {"n_covariates": len(estimate.names)}
    if estimate.names and estimate.status in FITTED:
        columns["n_used"] = int(np.count_nonzero(estimate.coef))
    if estimate.penalty is not None:
        columns |= penalty_columns(estimate.penalty)
        columns["chosen_by"] = "given" if estimate.cross_validation is None else "cross-validation"
    if estimate.cross_validation is not None:
        settings = people.analysis.model
        columns |= {"folds": settings.folds, "repeats": settings.repeats, "seed": people.seed}
    return row.changed(columns)


def _coefficients(
    people: AnalysedOutcome, estimate: Estimate, number: int, tidied: TidyInfo | None
) -> Iterator[OutcomeCoefficientRow]:
    """Coefficients other than 0 of the covariates of a model, per unit of the original ones."""
    if estimate.status not in FITTED:
        return
    coef = estimate.coef
    if tidied is not None and coef.size:
        coef = tidied.original_coef(coef, estimate.keys)
    population, kept = people.people.population, np.flatnonzero(people.people.kept)
    keys, given = list(estimate.keys), people.analysis.model.held
    held = list(_held(people).keys) if given else []
    coef = np.concatenate([coef, list(given.values())])
    for row in coefficient_rows(people.cohort.design, population, keys + held, coef, kept):
        is_fixed = row["covariate_id"] in map(str, held)
        yield OutcomeCoefficientRow.of(row | {"number": number, "fixed": is_fixed})


def _profile(estimate: Estimate) -> list[ProfilePointRow]:
    """Points of the profile likelihood, relative to the largest of them.

    The log likelihood itself would reveal numbers of people, and its constant has no meaning.
    """
    profile = estimate.profile
    if profile is None:
        return []
    is_known = np.isfinite(profile.log_likelihood)
    best = profile.log_likelihood[is_known].max(initial=-np.inf)
    columns = (profile.log_hr, profile.log_likelihood - best, profile.derivative)
    return [
        ProfilePointRow(log_hr=float(x), log_likelihood=float(value), derivative=float(slope))
        for x, value, slope in zip(*(column[is_known] for column in columns), strict=True)
    ]


def _notes_of_clusters(people: AnalysedOutcome) -> list[Note]:
    """That the people whose cluster is not known share a frailty."""
    model, labels = people.analysis.model, people.cohort.labels
    if model.frailty is None or model.cluster is None:
        return []
    unknown = (labels[model.cluster].values == UNKNOWN) & people.people.kept
    text = "{n:person has|people have} the {cluster} {unknown}, and share a frailty."
    values = {
        "n": Value("count", np.count_nonzero(unknown)),
        "cluster": Value("name", model.cluster),
        "unknown": Value("name", repr(UNKNOWN)),
    }
    return [Note("unknown_cluster", (), text, values)] if unknown.any() else []


def _notes_of_profile(estimate: Estimate) -> list[Note]:
    """That points of the profile are left out."""
    values = np.zeros(0) if estimate.profile is None else estimate.profile.log_likelihood
    lost = int(np.count_nonzero(~np.isfinite(values)))
    if not lost:
        return []
    text = (
        "{lost:,} of {n:,} points of the likelihood profile are left out, because the fit of the "
        "other coefficients did not converge there."
    )
    counts = {"lost": Value("things", lost), "n": Value("things", values.size)}
    return [Note("profile_left_out", (), text, counts)]


def _over_time(estimate: Estimate, people: AnalysedOutcome) -> list[IntervalRow]:
    """A row for each interval of time of an estimate, the first one first."""
    over_time, followed = estimate.over_time, people.followed
    if over_time is None:
        return []
    errors = over_time.se_robust if estimate.interval in ROBUST else over_time.se_model
    half = float(ndtri(0.5 + estimate.level / 2)) * errors
    hr, lower, upper = (exponentials(over_time.coef + side * half) for side in (0, -1, 1))
    is_event = people.people.kept & (followed.status == 1)
    is_target = people.people.population.is_target
    rows = []
    for k, (start, end) in enumerate(zip(over_time.start, over_time.end, strict=True)):
        inside = is_event & (start < followed.time) & (followed.time <= end)
        rows.append(
            IntervalRow(
                interval=k + 1,
                start=float(start),
                end=float(end),
                target_outcomes=int(np.count_nonzero(inside & is_target)),
                comparator_outcomes=int(np.count_nonzero(inside & ~is_target)),
                hr=float(hr[k]),
                hr_lower=float(lower[k]),
                hr_upper=float(upper[k]),
                log_hr=float(over_time.coef[k]),
                se=float(errors[k]),
                interval_level=estimate.level,
            )
        )
    return rows


def subgroup_estimates(people: AnalysedOutcome, column: str, main: EstimateRow) -> EstimateStep:
    """The effect at each level of a column of labels, from its interactions with the treatment.

    People of levels in which the effect alone has no finite estimate are left out of the model;
    weights and sets stay. Covariates that the main estimate is adjusted for are in it, with the
    penalty that was chosen there; treatment, levels and interactions have none.
    """
    levels = people.cohort.labels[column].present(people.people.kept)
    if len(levels) < 2 or people.people.status != "ok":
        return EstimateStep(rows=[])
    try:
        return EstimateStep(rows=_LevelModel(people, column, main).rows(levels))
    except InputError as error:
        values = {
            "column": Value("name", repr(column)),
            "reason": Value("sentence", status_of(error)[1]),
        }
        note = Note("subgroups", (), "no subgroups of {column}: {reason}", values)
        return EstimateStep(rows=[], notes=(note,))


@dataclass(frozen=True, eq=False)
class _LevelModel:
    people: AnalysedOutcome
    column: str
    main: EstimateRow

    def rows(self, levels: Sequence[object]) -> list[EstimateRow]:
        """A row of each level, in their order."""
        alone = {level: self._alone(level) for level in levels}
        kept = [level for level in levels if alone[level].status == "ok"]
        # Resamples, or stacked equations, would give no interval of a level.
        interval = self.people.analysis.model.interval
        other = {"bootstrap": "auto", "stacked": "robust"}.get(interval, interval)
        covariates, penalty = None, None
        if self.main.strength.l1:
            covariates = tidy_covariates(self.people)[1]
            penalty = L1(self.main.strength.l1)
        inside = self._inside(kept, interval=other)

        def joint(first: object) -> Estimate:
            """The model in which the treatment's own coefficient is the effect at one level."""
            columns = {
                f"{self.column}={level}": (self._labels == level).astype(np.float64)
                for level in kept
                if level != first
            }
            groups = Design.from_columns(columns) if columns else None
            kind = inside.analysis.model.model
            return _fit(inside, kind, covariates=covariates, penalty=penalty, interactions=groups)

        has_covariates = covariates is not None
        fitted = {level: joint(level) for level in (kept if has_covariates else kept[:1])}
        groups = {g.name: g for g in fitted[kept[0]].subgroups} if kept else {}
        rows = []
        for level in levels:
            group = groups.get(f"{self.column}={level}")
            if has_covariates and level in fitted:
                one = _of_level(fitted[level], alone[level])
            elif level in fitted:
                first = fitted[level]
                one = _normal(_of_level(first, alone[level]), first.log_hr, first.se)
            elif group is not None:
                first = _of_level(fitted[kept[0]], alone[level])
                one = _normal(first, group.log_hr, group.se_log_hr)
            else:
                one = _normal(_of_level(alone[level], alone[level]), np.nan, np.nan)
            p = group.p if group is not None else None
            if kept and level == kept[0] and len(groups) == 1:
                p = next(iter(groups.values())).p
            row = estimate_row(one, "subgroup", f"{self.column}: {level}", self.people)
            if has_covariates:
                row = _with_covariates(row, one, self.people)
                row = row.changed({"chosen_by": self.main.strength.chosen_by})
            rows.append(dataclasses.replace(row, level=str(level), interaction_p=p))
        return rows

    @property
    def _labels(self) -> AnyArray:
        return self.people.cohort.labels[self.column].values

    def _inside(self, levels: Sequence[object], **changes: Any) -> AnalysedOutcome:
        """The people of some levels, whose model has the reading of the main estimate."""
        people, analysis = self.people.people, self.people.analysis
        weight = np.where(np.isin(self._labels, np.array(levels)), people.weight, 0.0)
        changes |= {"reading": self.main.reading, "strength": None}
        model = dataclasses.replace(analysis.model, **changes)
        return dataclasses.replace(
            self.people,
            people=dataclasses.replace(people, weight=weight),
            analysis=dataclasses.replace(analysis, model=model),
        )

    def _alone(self, level: object) -> Estimate:
        """The effect in a level by itself, which shows whether there is one, and its counts."""
        inside = self._inside([level], interval="wald", covariates="none")
        target, comparator = inside.followed.counts(inside.people)
        alone = _fit(inside, inside.analysis.model.model)
        return dataclasses.replace(alone, target=target, comparator=comparator)


def _of_level(estimate: Estimate, alone: Estimate) -> Estimate:
    """The estimate of a level, with what is of the whole model left out."""
    return dataclasses.replace(
        estimate,
        target=alone.target,
        comparator=alone.comparator,
        llr=float("nan"),
        proportionality_p=float("nan"),
        kkt=float("nan"),
        frailty_variance=float("nan"),
        frailty_p=float("nan"),
        n_clusters=None,
        informative_strata=None,
        informative_people=None,
        sensitivity=None,
        notes=(),
    )


def _normal(estimate: Estimate, log_hr: float, se: float) -> Estimate:
    """With another effect, and a normal interval."""
    half = float(ndtri(0.5 + estimate.level / 2)) * se
    nothing = float("nan")
    return dataclasses.replace(
        estimate,
        log_hr=log_hr,
        lower=log_hr - half,
        upper=log_hr + half,
        se=se,
        p=float(2 * ndtr(-abs(log_hr / se))) if se > 0 else nothing,
        one_sided_p=float(ndtr(-log_hr / se)) if se > 0 else nothing,
        interval="wald",
    )
