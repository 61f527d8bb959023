"""The step of estimates: the main one, and those beside it, as rows of the results."""

import dataclasses
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from riskset._errors import InputError
from riskset.cohort.adjustment import Adjustment
from riskset.cohort.covariate_filter import TidyInfo
from riskset.cohort.estimate import Estimate
from riskset.cohort.outcome_model import fit_outcome
from riskset.cohort.outcomes import expected_se
from riskset.cohort.settings import OutcomeModel
from riskset.data.design import Design
from riskset.data.outcome import Surv
from riskset.infer.crossval.checkpoint import CheckpointError
from riskset.model.penalty import L1, Penalty
from riskset.study.cohorts import Cohort, Followed
from riskset.study.outcome_covariates import covariate_columns, covariate_tables
from riskset.study.over_time import MOST_INTERVALS, over_time_rows
from riskset.study.scores import as_keys, notes_of, status_of, tidy_covariates
from riskset.study.sections import Analysis, OutcomeModelSection
from riskset.study.steps import Result

__all__ = ["crude", "estimate_row", "estimates", "fit", "numbered"]

NAMES = {"cox": "hazard", "cause-specific": "cause-specific hazard", "finegray": "subdistribution"}


def crude(followed: Followed, own: OutcomeModelSection, seed: int) -> Result:
    """The estimate without any adjustment, of all who are followed."""
    plain = dataclasses.replace(own, covariates="none", strength=None, censoring_group=None)
    try:
        found = fit(followed, followed.people, plain, plain.model, seed=seed, reading="marginal")
    except InputError as error:
        return Result(status_of(error) | {"rows": []})
    return Result(_facts(found) | {"rows": [estimate_row(found, "crude", "crude")]})


def estimates(
    cohort: Cohort,
    followed: Followed,
    made: Adjustment,
    analysis: Analysis,
    seed: int,
    is_of_interest: bool,
    checkpoint: Path | None = None,
) -> Result:
    """The main estimate, its other reading, and those of further models.

    The main estimate has a likelihood profile. Outcomes of interest, but not controls, which may be
    many, also have the main estimate in stretches of time, and what each model says of its
    covariates: ``coefficients`` and ``cross_validation``, whose ``number`` is that of the row, from
    1. `checkpoint` is a file, from whose name those of each cross-validation are made, for
    replicates that are done.
    """
    own = analysis.model
    asked: list[tuple[Estimate, str, str]] = []
    try:
        extra, penalty, tidied = _covariates(cohort, made, analysis)
        beside: dict[str, Any] = {"seed": seed, "extra": extra, "penalty": penalty}
        beside["checkpoint"] = checkpoint
        intervals = MOST_INTERVALS if is_of_interest else 0
        found = fit(
            followed, made, own, own.model, **beside, profile=True, time_intervals=intervals
        )
        asked.append((found, "main", "adjusted"))
        if found.sensitivity is not None:
            label = f"{found.sensitivity.reading} instead of {found.reading}"
            asked.append((found.sensitivity, "sensitivity", label))
    except CheckpointError:
        raise
    except InputError as error:
        return Result(status_of(error) | {"rows": []})
    facts = _facts(found) | {"profile": _profile(found)}
    facts["notes"] += _notes_of_profile(found)
    facts["over_time"] = over_time_rows(found, followed, made)
    for kind in own.also:
        if kind == own.model:
            continue
        try:
            other = fit(followed, made, own, kind, **beside)
        except CheckpointError:
            raise
        except InputError as error:
            facts["notes"].append({"code": "model", "message": f"{kind}: {error}"})
            continue
        for one in (other, other.sensitivity):
            if one is not None:
                asked.append((one, "model", f"{NAMES[kind]}, {one.reading}"))
    facts |= {"rows": [], "coefficients": [], "cross_validation": []}
    for number, (one, role, label) in enumerate(asked, start=1):
        facts["rows"].append(estimate_row(one, role, label) | covariate_columns(one, own, seed))
        if is_of_interest:
            coefficients, tried = covariate_tables(cohort, made, one, number, tidied)
            facts["coefficients"] += coefficients
            facts["cross_validation"] += tried
    return Result(facts)


def _profile(found: Estimate) -> list[dict[str, float]]:
    """Points of the profile likelihood, relative to the largest of them.

    The log likelihood itself would tell numbers of people, and its constant means nothing.
    """
    own = found.profile
    if own is None:
        return []
    known = np.isfinite(own.log_likelihood)
    best = own.log_likelihood[known].max(initial=-np.inf)
    columns = (own.log_hr, own.log_likelihood - best, own.derivative)
    names = ("log_hr", "log_likelihood", "derivative")
    return [
        dict(zip(names, map(float, point), strict=True))
        for point in zip(*(column[known] for column in columns), strict=True)
    ]


def _notes_of_profile(found: Estimate) -> list[dict[str, str]]:
    """That points of the profile are left out."""
    values = np.zeros(0) if found.profile is None else found.profile.log_likelihood
    lost = int(np.count_nonzero(~np.isfinite(values)))
    if not lost:
        return []
    text = (
        f"{lost:,} of {values.size:,} points of the likelihood profile are left out, because the "
        "fit of the other coefficients did not converge there."
    )
    return [{"code": "profile_left_out", "message": text}]


def fit(
    followed: Followed,
    made: Adjustment,
    own: OutcomeModelSection,
    kind: str,
    *,
    seed: int,
    extra: Design | None = None,
    penalty: Penalty | None = None,
    interactions: Design | None = None,
    reading: str | None = None,
    profile: bool = False,
    time_intervals: int = 0,
    checkpoint: Path | None = None,
) -> Estimate:
    """`fit_outcome` by the settings of a model."""
    is_finegray = kind == "finegray"
    changes: dict[str, Any] = {
        "model": kind,
        "penalty": penalty,
        "cross_validate": extra is not None and penalty is None,
        "tidy": False,
        "profile": "adaptive" if profile else None,
        "time_intervals": time_intervals,
        "seed": seed,
    }
    changes |= {"ties": "breslow"} if is_finegray else {}
    changes |= {} if is_finegray else {"censoring_weights": "none", "censoring_group": None}
    changes |= {} if reading is None else {"reading": reading}
    return fit_outcome(
        Surv(followed.time, followed.status),
        made,
        settings=OutcomeModel(**own.values(OutcomeModel) | changes),
        covariates=extra,
        interactions=interactions,
        checkpoint=checkpoint and checkpoint.with_stem(f"{checkpoint.stem}-{kind}"),
    )


def _covariates(
    cohort: Cohort, made: Adjustment, analysis: Analysis
) -> tuple[Design | None, Penalty | None, TidyInfo | None]:
    """Covariates to adjust for, their penalty, and what was done to them.

    Without a penalty it is to be chosen.
    """
    own = analysis.model
    if own.covariates == "none" or made.status != "ok":
        return None, None, None
    tidied, design = tidy_covariates(cohort, made, analysis.tidy)
    return design, None if own.strength is None else L1(own.strength), tidied


def _facts(found: Estimate) -> dict[str, Any]:
    reason = None if found.reason is None else as_keys(found.reason)
    return {"status": found.status, "reason": reason, "notes": notes_of(found.notes)}


def estimate_row(found: Estimate, role: str, label: str) -> dict[str, Any]:
    """A row of the table `estimates`, but for its number and its covariates."""
    row: dict[str, Any] = dict(found.columns())
    row["interval_level"] = row.pop("level")
    events = found.target.outcomes + found.comparator.outcomes
    n1, n0 = found.target.exposures, found.comparator.exposures
    row |= {
        "role": role,
        "label": label,
        "n_covariates": 0,
        "informative_people": found.informative_people,
        "kkt": None if np.isnan(found.kkt) else found.kkt,
        "expected_se": expected_se(events, n1 / (n1 + n0)) if n1 + n0 else None,
    }
    if row["log_hr"] is not None and np.isinf(row["log_hr"]):
        row |= {"hr": found.hr, "hr_lower": found.hr_lower, "hr_upper": found.hr_upper}
        row = {name: None if _is_nan(value) else value for name, value in row.items()}
    return row


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and bool(np.isnan(value))


def numbered(results: Iterable[Result]) -> Iterator[dict[str, Any]]:
    """Rows of several steps, numbered."""
    number = 0
    for result in results:
        for row in result.facts["rows"]:
            number += 1
            yield row | {"number": number}
