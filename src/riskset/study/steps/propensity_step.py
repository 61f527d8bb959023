"""The step of the propensity score: tidy covariates, the model, and what both report."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from riskset._errors import CohortError, InputError, RisksetWarning, similar
from riskset._messages import Sentence, Value
from riskset._types import AnyArray, Features, Index
from riskset.cohort.covariates.covariate_filter import TidyInfo, tidy
from riskset.cohort.population import Population
from riskset.cohort.propensity.overlap import auc, equipoise
from riskset.cohort.propensity.propensity_checks import TreatmentCovariates
from riskset.cohort.propensity.propensity_model import propensity_score
from riskset.cohort.propensity.propensity_result import PropensityScore
from riskset.data.column_statistics import select_columns
from riskset.data.design import Design
from riskset.infer.crossval.checkpoint import CheckpointError
from riskset.infer.crossval.result import CrossValidation
from riskset.model.penalty import Penalty
from riskset.model.references import without_levels
from riskset.results.columns import sentence_columns
from riskset.results.rows import FlaggedCovariateRow, ScoreCoefficientRow, ScorePenaltyRow, ScoreRow
from riskset.study.cache import StepResult
from riskset.study.sources.source import AnalysedPeople, ComparisonCohort
from riskset.study.specification.keys import KEYS, SpecificationKeys
from riskset.study.specification.sections import PropensitySection

__all__ = [
    "ScoreStep",
    "coefficient_rows",
    "fit_score",
    "given_score",
    "penalty_columns",
    "refuse_unknown",
    "status_of",
    "tidy_covariates",
    "tried_penalties",
]

USABLE = ("ok", "ps_constant", "separated")
"""Statuses of scores with which a study can go on."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ScoreStep(StepResult, step="propensity score"):
    """A propensity score, of everybody in the cohort, with the rows of its tables.

    `share` is that of the target among those that the score was fitted to.
    """

    row: ScoreRow
    coefficients: list[ScoreCoefficientRow] = field(default_factory=list)
    tried: list[ScorePenaltyRow] = field(default_factory=list)
    flagged: list[FlaggedCovariateRow] = field(default_factory=list)
    score: AnyArray | None = None
    share: float | None = None

    @property
    def is_usable(self) -> bool:
        """Whether a study can go on with it."""
        return self.status in USABLE


def status_of(error: InputError, keys: SpecificationKeys = KEYS) -> tuple[str, Sentence]:
    """Status of a step that could not be done, and its reason.

    A file of replicates that does not fit is not a matter of the data: its error is raised again.
    """
    if isinstance(error, CheckpointError):
        raise error
    code = snake(error.code) if isinstance(error, CohortError) else "bad_input"
    return code, error.sentence.spoken(keys)


def snake(code: str) -> str:
    """HighCorrelation -> high_correlation."""
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in code).removeprefix("_")


def given_score(cohort: ComparisonCohort) -> ScoreStep:
    """Scores that came with the data."""
    population = cohort.people.population
    row = _row(cohort, "given", "ok").changed(_overlap(population))
    return ScoreStep(row=row, score=np.asarray(population.score))


def fit_score(people: AnalysedPeople, checkpoint: Path | None = None) -> ScoreStep:
    """Fit the score to those of a cohort who are left, and predict everybody's.

    `checkpoint` is a file for replicates of the cross-validation that are done.
    """
    cohort, settings = people.cohort, people.analysis.propensity
    assert settings is not None
    try:
        info, design = tidy_covariates(people, settings.exclude)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RisksetWarning)  # the notes say it
            fitted = propensity_score(
                people.people,
                design,
                settings=settings.model(people.seed),
                checkpoint=checkpoint if settings.chooses_penalty else None,
                progress=False,
            )
    except InputError as error:
        status, reason = status_of(error)
        row = _row(cohort, "fitted", status).changed(sentence_columns("reason", reason))
        flagged: list[FlaggedCovariateRow] = []
        if isinstance(error, CohortError) and error.code == "HighCorrelation":
            flagged = _flagged("high_correlation", error.details)
        return ScoreStep(status=status, reason=reason, row=row, flagged=flagged)
    return _described(cohort, fitted, info, settings, people.seed)


def tidy_covariates(
    people: AnalysedPeople, exclude: tuple[str, ...] = ()
) -> tuple[TidyInfo, Design]:
    """The covariates that a model may use."""
    design = people.cohort.design
    refuse_unknown(design, exclude, "`exclude`")
    if exclude:
        named = zip(design.names, design.keys, strict=True)
        design = without_levels(design, {n for n, key in named if {n, str(key)} & {*exclude}})
    analyses = {key: analysis for key, (analysis, _) in people.cohort.analyses.items()}
    info = tidy(design, people.people, settings=people.analysis.tidy, analysis=analyses or None)
    return info, info.design


def refuse_unknown(design: Design, names: Iterable[str], key: str) -> None:
    """Refuse names that are neither a name nor a key of a covariate."""
    known = {*design.names, *map(str, design.keys)}
    for name in names:
        if name not in known:
            close = similar(name, design.names, 3)
            raise CohortError(
                "UnknownCovariate",
                f"{key} names {{name}}, which is not a covariate of these people.",
                hint="did you mean {close}?" if close else "correct the name, or leave it out.",
                values={
                    "name": Value("setting", repr(name)),
                    "close": Value("name", " or ".join(map(repr, close))),
                },
            )


def score_covariates(people: AnalysedPeople) -> Design:
    """The covariates of the score that was fitted to the people of the cohort."""
    settings = people.analysis.propensity
    everybody = replace(people, people=people.cohort.people)
    return tidy_covariates(everybody, () if settings is None else settings.exclude)[1]


def _row(cohort: ComparisonCohort, source: str, status: str) -> ScoreRow:
    people = cohort.people
    return ScoreRow(
        status=status, source=source, n_target=people.n_target, n_comparator=people.n_comparator
    )


def _described(
    cohort: ComparisonCohort,
    fitted: PropensityScore,
    info: TidyInfo,
    settings: PropensitySection,
    seed: int,
) -> ScoreStep:
    reason = next((n.sentence for n in fitted.notes if n.code == fitted.status), None)
    curve = fitted.cross_validation
    chosen_by = "given" if curve is None else "cross-validation"
    row = _row(cohort, "fitted", fitted.status).changed(
        {
            **sentence_columns("reason", reason),
            "n_covariates": len(fitted.names),
            "n_used": int(np.count_nonzero(fitted.coef)),
            "n_excluded": len(fitted.excluded),
            "penalty": settings.penalty,
            "intercept": fitted.intercept,
            "log_likelihood": fitted.log_likelihood,
            "kkt": fitted.kkt,
            "removed_empty": len(info.removed_empty),
            "removed_redundant": len(info.removed_redundant),
            "removed_rare": len(info.removed_rare),
            "removed_duplicate": len(info.aliases),
        }
    )
    row = row.changed({"chosen_by": chosen_by} | penalty_columns(fitted.penalty))
    if curve is not None:
        row = row.changed({"folds": settings.folds, "repeats": settings.repeats, "seed": seed})
    coefficients: list[ScoreCoefficientRow] = []
    score, share = None, None
    if fitted.status not in ("one_arm_empty", "no_covariates"):
        row = row.changed(_overlap(fitted.population))
        factors = np.array([info.norm_factors.get(key, 1.0) for key in fitted.keys])
        coefficients = [
            ScoreCoefficientRow.of(one)
            for one in coefficient_rows(
                cohort.design, cohort.people.population, fitted.keys, fitted.coef / factors
            )
        ]
        score, share = fitted.score, fitted.population.share
    return ScoreStep(
        status=fitted.status,
        reason=None if fitted.status in USABLE else reason,
        notes=fitted.notes,
        row=row,
        coefficients=coefficients,
        tried=[] if curve is None else [ScorePenaltyRow.of(one) for one in tried_penalties(curve)],
        flagged=[
            *_flagged("high_correlation", fitted.high_correlation.columns(), fitted.excluded),
            *_flagged("one_arm_only", fitted.one_arm_only.columns()),
        ],
        score=score,
        share=share,
    )


def _overlap(people: Population) -> dict[str, object]:
    area = auc(people)
    lower, upper = area.interval()
    return {
        "auc": area.auc, "auc_lower": lower, "auc_upper": upper, "equipoise": equipoise(people),
    }  # fmt: skip


def penalty_columns(penalty: Penalty | None) -> dict[str, object]:
    """Strengths on the total log likelihood, and the variance that Cyclops calls them by."""
    if penalty is None:
        return {}
    l1, l2 = penalty.l1, penalty.l2
    variance = None
    if (l1 > 0) != (l2 > 0):
        variance = 2 / l1**2 if l1 > 0 else 1 / l2
    return {"l1": l1, "l2": l2, "variance": variance}


def tried_penalties(curve: CrossValidation) -> list[dict[str, Any]]:
    """Columns of every penalty that a cross-validation has tried, the strongest first."""
    rows: list[dict[str, Any]] = []
    for k, penalty in enumerate(curve.penalties):
        assert penalty is not None
        scores = {"mean": float(curve.mean[k]), "se": float(curve.se[k])}
        rows.append(penalty_columns(penalty) | scores | {"chosen": k == curve.chosen})
    return sorted(rows, key=lambda row: (-row["l1"], -row["l2"]))


def coefficient_rows(
    design: Design,
    people: Population,
    keys: Sequence[int | str],
    coef: Features,
    rows: Index | None = None,
) -> list[dict[str, Any]]:
    """Columns of coefficients other than 0, the largest first, with the means of their covariates.

    `design` has all covariates as they came, and `coef` is per unit of it. The means are of the
    people in `rows`, or of everybody.
    """
    used = np.flatnonzero(coef)
    if not used.size:
        return []
    place = {key: j for j, key in enumerate(design.keys)}
    columns = np.array([place[keys[j]] for j in used.tolist()], dtype=np.int64)
    is_binary, coef = design.is_binary[columns], coef[used]
    design = select_columns(design, columns)  # before the rows: there may be millions of both
    if rows is not None:
        design, people = design.take_rows(rows), Population(people.treatment[rows])
    means = TreatmentCovariates.of(design, people, np.arange(used.size))
    return [
        {
            "rank": rank,
            "covariate_id": str(means.keys[k]),
            "name": means.names[k],
            "coef": float(coef[k]),
            "mean_target": float(means.mean_target[k]),
            "mean_comparator": float(means.mean_comparator[k]),
            "is_binary": bool(is_binary[k]),
        }
        for rank, k in enumerate(np.lexsort((used, -np.abs(coef))), start=1)
    ]


def _flagged(
    kind: str, columns: Mapping[str, Any], excluded: tuple[str, ...] = ()
) -> list[FlaggedCovariateRow]:
    """A row for each covariate, from `TreatmentCovariates.columns`."""
    rows = zip(*(np.asarray(column).tolist() for column in columns.values()), strict=True)
    covariates = [dict(zip(columns, row, strict=True)) for row in rows]
    return [
        FlaggedCovariateRow.of(
            covariate
            | {
                "kind": kind,
                "covariate_id": str(covariate["covariate_id"]),
                "excluded": covariate["name"] in excluded,
            }
        )
        for covariate in covariates
    ]
