"""The step of the propensity score: tidy covariates, the model, and what both say of themselves."""

import re
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from riskset._errors import CohortError, InputError, RisksetWarning
from riskset._messages import Note
from riskset._types import Features, Index
from riskset.cohort.adjustment import Adjustment
from riskset.cohort.covariate_filter import TidyInfo, tidy
from riskset.cohort.overlap import auc, equipoise
from riskset.cohort.population import Population
from riskset.cohort.propensity_checks import TreatmentCovariates
from riskset.cohort.propensity_model import propensity_score
from riskset.cohort.propensity_result import PropensityScore
from riskset.cohort.settings import Tidy
from riskset.data.column_statistics import select_columns
from riskset.data.design import Design
from riskset.infer.crossval.checkpoint import CheckpointError
from riskset.infer.crossval.result import CrossValidation
from riskset.model.penalty import Penalty
from riskset.model.references import without_levels
from riskset.study.cohorts import Cohort
from riskset.study.sections import PropensitySection
from riskset.study.steps import Result

__all__ = [
    "as_keys",
    "coefficient_rows",
    "curve_rows",
    "fit_score",
    "given_score",
    "notes_of",
    "snake",
    "status_of",
    "strengths",
    "tidy_covariates",
]

USABLE = ("ok", "ps_constant", "separated")
"""Statuses of scores with which a study can go on."""


def status_of(error: InputError) -> dict[str, str]:
    """Status and reason of a step that could not be done."""
    code = snake(error.code) if isinstance(error, CohortError) else "bad_input"
    return {"status": code, "reason": as_keys(str(error)).replace("\nHint: ", " Hint: ")}


def as_keys(text: str) -> str:
    """A message with arguments of Python as keys of the specification.

    Examples
    --------
    >>> as_keys("use estimand='ato', or descendants=False.")
    'use estimand: ato, or descendants: false.'
    """

    def written(found: "re.Match[str]") -> str:
        name, value = found[1], found[2]
        return f"{name}: {value.strip(chr(39)) if value[0] == chr(39) else value.lower()}"

    return re.sub(r"\b([a-z]\w*)=('[^']*'|True|False|None)", written, text)


def snake(code: str) -> str:
    """HighCorrelation -> high_correlation."""
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in code).removeprefix("_")


def notes_of(notes: tuple[Note, ...]) -> list[dict[str, str]]:
    """Remarks as JSON has them."""
    return [{"code": note.code, "message": as_keys(note.message)} for note in notes]


def given_score(cohort: Cohort) -> Result:
    """The facts of scores that came with the data."""
    facts = _facts("ok", cohort, source="given")
    population = cohort.people.population
    facts["row"] |= _overlap(population)
    return Result(facts, {"score": population.score})


def fit_score(
    cohort: Cohort,
    people: Adjustment,
    own: PropensitySection,
    tidying: Tidy,
    seed: int,
    checkpoint: Path | None = None,
) -> Result:
    """Fit the score to those of a cohort who are left, and predict everybody's.

    `checkpoint` is a file for replicates of the cross-validation that are done.
    """
    try:
        info, design = tidy_covariates(cohort, people, tidying, own.exclude)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RisksetWarning)  # the notes say it
            found = propensity_score(
                people,
                design,
                settings=own.model(seed),
                checkpoint=checkpoint if own.cross_validate else None,
                progress=False,
            )
    except CheckpointError:
        raise
    except InputError as error:
        facts = _facts("", cohort, "fitted") | status_of(error)
        facts["row"] |= status_of(error)
        if isinstance(error, CohortError) and error.code == "HighCorrelation":
            facts["flagged"] = _flagged_by(error.details)
        return Result(facts)
    return _described(cohort, found, info, own, seed)


def tidy_covariates(
    cohort: Cohort, people: Adjustment, own: Tidy, exclude: tuple[str, ...] = ()
) -> tuple[TidyInfo, Design]:
    """The covariates that a model may use."""
    design = cohort.design
    unwanted = set(exclude)
    known = {*design.names, *map(str, design.keys)}
    for name in exclude:
        if name not in known:
            raise InputError.unknown_name("covariate to exclude", name, design.names)
    if unwanted:
        named = zip(design.names, design.keys, strict=True)
        design = without_levels(design, {n for n, key in named if {n, str(key)} & unwanted})
    analyses = {key: made[0] for key, made in cohort.analyses.items()}
    info = tidy(
        design,
        people,
        settings=own,
        analysis=analyses or None,
    )
    return info, info.design


def _facts(status: str, cohort: Cohort, source: str) -> dict[str, Any]:
    people = cohort.people
    row: dict[str, object] = {"status": status, "source": source}
    row |= {"n_target": people.n_target, "n_comparator": people.n_comparator}
    return {"status": status, "reason": None, "row": row, "notes": []} | {
        name: [] for name in ("coefficients", "cross_validation", "flagged")
    }


def _described(
    cohort: Cohort, found: PropensityScore, info: TidyInfo, own: PropensitySection, seed: int
) -> Result:
    facts = _facts(found.status, cohort, "fitted")
    if found.status not in USABLE:
        facts["reason"] = next(n.message for n in found.notes if n.code == found.status)
    facts["notes"] = notes_of(found.notes)
    facts["row"] |= {
        "reason": next((n.message for n in found.notes if n.code == found.status), None),
        "n_covariates": len(found.names),
        "n_used": int(np.count_nonzero(found.coef)),
        "n_excluded": len(found.excluded),
        "penalty": own.penalty,
        "chosen_by": "cross-validation" if found.cross_validation is not None else "given",
        "intercept": found.intercept,
        "log_likelihood": found.log_likelihood,
        "kkt": found.kkt,
        "removed_empty": len(info.removed_empty),
        "removed_redundant": len(info.removed_redundant),
        "removed_rare": len(info.removed_rare),
        "removed_duplicate": len(info.aliases),
    }
    if found.penalty is not None:
        facts["row"] |= strengths(found.penalty)
    if found.cross_validation is not None:
        facts["row"] |= {"folds": own.folds, "repeats": own.repeats, "seed": seed}
        facts["cross_validation"] = curve_rows(found.cross_validation)
    for kind, flagged in (
        ("high_correlation", found.high_correlation),
        ("one_arm_only", found.one_arm_only),
    ):
        facts["flagged"] += _flagged(kind, flagged, found.excluded)
    if found.status in ("one_arm_empty", "no_covariates"):
        return Result(facts)
    facts["row"] |= _overlap(found.population)
    factors = np.array([info.norm_factors.get(key, 1.0) for key in found.keys])
    facts["coefficients"] = coefficient_rows(
        cohort.design, cohort.people.population, found.keys, found.coef / factors
    )
    facts["share"] = found.population.share
    return Result(facts, {"score": found.score})


def _overlap(people: Any) -> dict[str, object]:
    found = auc(people)
    lower, upper = found.interval()
    return {
        "auc": found.auc,
        "auc_lower": lower,
        "auc_upper": upper,
        "equipoise": equipoise(people),
    }


def strengths(penalty: Penalty) -> dict[str, object]:
    """Strengths on the total log likelihood, and the variance that Cyclops calls them by."""
    l1, l2 = penalty.l1, penalty.l2
    return {"l1": l1, "l2": l2, "variance": _variance(l1, l2)}


def _variance(l1: float, l2: float) -> float | None:
    if (l1 > 0) == (l2 > 0):
        return None
    return 2 / l1**2 if l1 > 0 else 1 / l2


def curve_rows(curve: CrossValidation) -> list[dict[str, object]]:
    """Every penalty that was tried, the strongest first."""
    rows = []
    for k, penalty in enumerate(curve.penalties):
        assert penalty is not None
        rows.append(
            strengths(penalty)
            | {"mean": float(curve.mean[k]), "se": float(curve.se[k]), "chosen": k == curve.chosen}
        )
    return sorted(rows, key=lambda row: (-float(row["l1"]), -float(row["l2"])))  # type: ignore[arg-type]


def coefficient_rows(
    design: Design,
    people: Population,
    keys: Sequence[int | str],
    coef: Features,
    rows: Index | None = None,
) -> list[dict[str, object]]:
    """Coefficients other than 0, the largest first, with the means of their covariates.

    Parameters
    ----------
    design : Design
        All covariates as they came.
    keys, coef : (p,)
        Of the covariates of a model; coefficients per unit of `design`.
    rows : (k,) int64, optional
        Of the people whose means these are; default: everybody.
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
    found: list[dict[str, object]] = []
    for rank, k in enumerate(np.lexsort((used, -np.abs(coef))), start=1):
        found.append(
            {
                "rank": rank,
                "covariate_id": str(means.keys[k]),
                "name": means.names[k],
                "coef": float(coef[k]),
                "mean_target": float(means.mean_target[k]),
                "mean_comparator": float(means.mean_comparator[k]),
                "is_binary": bool(is_binary[k]),
            }
        )
    return found


def _flagged(
    kind: str, found: TreatmentCovariates, excluded: tuple[str, ...]
) -> list[dict[str, object]]:
    return [
        {
            "kind": kind,
            "covariate_id": str(found.keys[k]),
            "name": name,
            "correlation": float(found.correlation[k]),
            "mean_target": float(found.mean_target[k]),
            "mean_comparator": float(found.mean_comparator[k]),
            "excluded": kind == "high_correlation" and name in excluded,
        }
        for k, name in enumerate(found.names)
    ]


def _flagged_by(details: Mapping[str, Any]) -> list[dict[str, object]]:
    """The covariates that an error names."""
    names = ("name", "correlation", "mean_target", "mean_comparator")
    return [
        {"kind": "high_correlation", "covariate_id": str(id_), "excluded": False}
        | {name: details[name][k] for name in names}
        for k, id_ in enumerate(details["covariate_id"])
    ]
