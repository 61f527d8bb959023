"""The step of estimates: the main one, and those beside it, as rows of the results."""

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from scipy.stats import chi2

from riskset._errors import InputError
from riskset.cohort.adjustment import Adjustment
from riskset.cohort.estimate import Estimate
from riskset.cohort.outcome_model import fit_outcome
from riskset.cohort.outcomes import expected_se
from riskset.data.design import Design
from riskset.data.outcome import Surv
from riskset.estimators.crossval import CoxCV, FineGrayCV
from riskset.model.penalty import L1, Penalty
from riskset.study.analysis_sections import Analysis, OutcomeModel
from riskset.study.cohorts import Cohort, Followed
from riskset.study.scores import status_of, tidy_covariates
from riskset.study.steps import Result

__all__ = ["crude", "estimates", "numbered", "subgroup_estimates"]

TREATMENT = "treatment"
REASONS = {
    "no_people": "nobody is left.",
    "one_arm_empty": "one arm has nobody left.",
    "no_events": "nobody has the outcome.",
    "events_in_one_arm": "only one arm has the outcome, so that the hazard ratio is 0 or infinite.",
    "no_informative_strata": "no stratum or set with an outcome has both arms.",
    "not_estimable": "the effect cannot be told from that of the covariates.",
    "not_converged": "the fit did not converge.",
}
NAMES = {"cox": "hazard", "cause-specific": "cause-specific hazard", "finegray": "subdistribution"}


def crude(followed: Followed, own: OutcomeModel, seed: int) -> Result:
    """The estimate without any adjustment, of all who are followed."""
    plain = dataclasses.replace(own, covariates="none", strength=None, censoring_group=None)
    try:
        found = _fit(followed, followed.people, plain, plain.kind, None, None, seed, "marginal")
    except InputError as error:
        return Result(status_of(error) | {"rows": []})
    return Result(_facts(found) | {"rows": [_row(found, "crude", "crude", 0)]})


def estimates(
    cohort: Cohort, followed: Followed, made: Adjustment, analysis: Analysis, seed: int
) -> Result:
    """The main estimate, its other reading, and those of further models."""
    own = analysis.model
    rows: list[dict[str, Any]] = []
    try:
        extra, penalty = _covariates(cohort, followed, made, analysis, seed)
        found = _fit(followed, made, own, own.kind, extra, penalty, seed)
        n = 0 if extra is None else extra.n_features
        rows.append(_row(found, "main", "adjusted", n, penalty))
        if found.sensitivity is not None:
            label = f"{found.sensitivity.reading} instead of {found.reading}"
            rows.append(_row(found.sensitivity, "sensitivity", label, n, penalty))
    except InputError as error:
        return Result(status_of(error) | {"rows": rows})
    facts = _facts(found)
    for kind in own.also:
        if kind == own.kind:
            continue
        try:
            other = _fit(followed, made, own, kind, extra, penalty, seed)
        except InputError as error:
            facts["notes"].append({"code": "model", "message": f"{kind}: {error}"})
            continue
        for one in (other, other.sensitivity):
            if one is not None:
                rows.append(_row(one, "model", f"{NAMES[kind]}, {one.reading}", n, penalty))
    return Result(facts | {"rows": rows})


def subgroup_estimates(
    cohort: Cohort, followed: Followed, made: Adjustment, own: OutcomeModel, column: str, seed: int
) -> Result:
    """The main estimate in each level of a column, with the weights and sets as they are.

    The p of interaction is that of the heterogeneity of the log hazard ratios b between levels,
    the sum of w (b - mean)^2 with w = 1 / se^2, by a chi-square of levels - 1.
    """
    labels = cohort.labels[column]
    rows: list[dict[str, Any]] = []
    plain = dataclasses.replace(own, covariates="none", strength=None)
    for level in np.unique(labels):
        inside = labels == level
        weight = np.where(inside, made.weight, 0.0)
        set_id = None if made.set_id is None else np.where(inside, made.set_id, -1)
        part = dataclasses.replace(made, weight=weight, set_id=set_id)
        try:
            found = _fit(followed, part, plain, own.kind, None, None, seed)
        except InputError:
            continue
        row = _row(found, "subgroup", f"{column}: {level}", 0)
        rows.append(row | {"column": column, "level": str(level)})
    p = _interaction_p([(r["log_hr"], r["se"]) for r in rows if r["status"] == "ok"])
    return Result({"rows": [row | {"interaction_p": p} for row in rows]})


def _interaction_p(found: list[tuple[float | None, float | None]]) -> float | None:
    known = np.array([(b, s) for b, s in found if b is not None and s is not None])
    if len(known) < 2:
        return None
    b, w = known[:, 0], 1 / known[:, 1] ** 2
    mean = (w * b).sum() / w.sum()
    return float(chi2.sf((w * (b - mean) ** 2).sum(), b.size - 1))


def _fit(
    followed: Followed,
    made: Adjustment,
    own: OutcomeModel,
    kind: str,
    extra: Design | None,
    penalty: Penalty | None,
    seed: int,
    reading: str | None = None,
) -> Estimate:
    is_finegray = kind == "finegray"
    return fit_outcome(
        Surv(followed.time, followed.status),
        made,
        kind,  # type: ignore[arg-type]
        reading=own.reading if reading is None else reading,  # type: ignore[arg-type]
        covariates=extra,
        penalty=penalty,
        ties="breslow" if is_finegray else own.ties,
        interval=own.interval,
        level=own.level,
        censoring_weights=own.censoring_weights if is_finegray else "none",
        censoring_group=own.censoring_group if is_finegray else None,
        replicates=own.replicates,
        seed=seed,
    )


def _covariates(
    cohort: Cohort, followed: Followed, made: Adjustment, analysis: Analysis, seed: int
) -> tuple[Design | None, Penalty | None]:
    """The tidy covariates of those left, and the penalty on them."""
    own = analysis.model
    if own.covariates == "none" or made.status != "ok":
        return None, None
    design = tidy_covariates(cohort, made, analysis.tidy)[1]
    if not design.n_features:
        return None, None
    if own.strength is not None:
        return design, L1(own.strength, unpenalized=[TREATMENT])
    rows = np.flatnonzero(made.kept)
    treatment = Design.from_columns({TREATMENT: made.population.treatment[rows].astype(np.float64)})
    here = Design.stack([treatment, design.take_rows(rows)])
    kind = L1(1.0, unpenalized=[TREATMENT])
    is_finegray = own.kind == "finegray"
    model = FineGrayCV(kind, seed=seed) if is_finegray else CoxCV(kind, ties=own.ties, seed=seed)
    stratified = own.reading in ("auto", "stratified") and made.set_id is not None
    status = followed.status[rows]
    model.fit(
        here,
        Surv(followed.time[rows], status if is_finegray else status == 1),
        sample_weight=None if stratified or own.reading == "pooled" else made.weight[rows],
        strata=made.set_id[rows] if stratified and made.set_id is not None else None,
    )
    return design, model.best_penalty_


def _facts(found: Estimate) -> dict[str, Any]:
    status = found.status
    notes = [{"code": n.code, "message": n.message} for n in found.notes]
    return {"status": status, "reason": REASONS.get(status), "notes": notes}


def _row(
    found: Estimate, role: str, label: str, n_covariates: int, penalty: Penalty | None = None
) -> dict[str, Any]:
    row: dict[str, Any] = dict(found.columns())
    row["interval_level"] = row.pop("level")
    events = found.target.outcomes + found.comparator.outcomes
    n1, n0 = found.target.exposures, found.comparator.exposures
    row |= {
        "role": role,
        "label": label,
        "n_covariates": n_covariates,
        "informative_people": found.informative_people,
        "expected_se": expected_se(events, n1 / (n1 + n0)) if n1 + n0 else None,
    }
    if penalty is not None:
        row |= {"l1": penalty.l1, "l2": penalty.l2}
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
