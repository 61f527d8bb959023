"""The steps of an adjustment and of its balance, as rows of the results."""

import dataclasses
import fnmatch
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from riskset._errors import InputError
from riskset._messages import Note
from riskset._types import AnyArray, Rows, is_number
from riskset.cohort.adjustment import Adjustment, Step
from riskset.cohort.covariate_balance import Balance, balance
from riskset.cohort.matching import match
from riskset.cohort.overlap import preference_score
from riskset.cohort.population import Population
from riskset.cohort.settings import BalanceOptions
from riskset.cohort.stratification import stratify
from riskset.cohort.trimming import trim
from riskset.cohort.weighting import weight
from riskset.study.cohorts import Cohort
from riskset.study.scores import USABLE, fit_score, notes_of, status_of
from riskset.study.sections import Analysis, Table1Section
from riskset.study.steps import Result

__all__ = ["adjust", "adjustment_of", "balance_of", "balance_rows", "summary_row", "table1_rows"]

ARMS = ("target", "comparator")
MOST_CHARACTERISTICS = 100
"""Shown unless the study says which."""
BINS = 100

REASONS = {
    "empty": "nobody is left.",
    "one_arm_empty": "one arm has nobody left.",
    "no_matches": "no comparator lies within the caliper of a target.",
}


def adjust(cohort: Cohort, people: Adjustment, analysis: Analysis, seed: int) -> Result:
    """Trim, match, stratify or weight people, as an analysis has it."""
    try:
        made, refitted = _adjusted(cohort, people, analysis, seed)
    except InputError as error:
        return _stored(people, status_of(error))
    facts = {"status": made.status, "reason": REASONS.get(made.status)}
    if refitted is not None and refitted.facts["status"] not in USABLE:
        facts = {name: refitted.facts[name] for name in ("status", "reason")}
    return _stored(made, facts, refitted)


def _adjusted(
    cohort: Cohort, people: Adjustment, analysis: Analysis, seed: int
) -> tuple[Adjustment, Result | None]:
    made, refitted = people, None
    if analysis.trim is not None:
        made = trim(made, settings=analysis.trim)
        if analysis.trim.refit and made.status == "ok" and analysis.propensity is not None:
            refitted = fit_score(cohort, made, analysis.propensity, analysis.tidy, seed)
            if refitted.facts["status"] not in USABLE:
                return made, refitted
            score = refitted.arrays["score"]
            population = made.population.with_score(score, refitted.facts["share"])
            made = dataclasses.replace(made, population=population)
    if made.status != "ok":
        return made, refitted
    if analysis.match is not None:
        within = [cohort.labels[name].values for name in analysis.match.within]
        return match(made, settings=analysis.match, within=within), refitted
    if analysis.stratify is not None:
        within = [cohort.labels[name].values for name in analysis.stratify.within]
        return stratify(made, settings=analysis.stratify, within=within), refitted
    if analysis.weight is not None:
        return weight(made, settings=analysis.weight), refitted
    return made, refitted


def _stored(made: Adjustment, facts: dict[str, Any], refitted: Result | None = None) -> Result:
    people = made.population
    arrays: dict[str, AnyArray] = {"weight": made.weight}
    if made.set_id is not None:
        arrays["set_id"] = made.set_id
    has_score = people.has_score
    if refitted is not None and "score" in refitted.arrays:
        arrays["score"] = people.score
        facts["share"] = people.share
    facts |= {
        "kind": made.kind,
        "estimand": made.estimand,
        "adjustment_status": made.status,
        "notes": notes_of(made.notes),
        "attrition": [dataclasses.asdict(step) for step in made.attrition],
        "details": _plain(made.details),
        "refitted": None if refitted is None else refitted.facts,
        "preference": _histogram(made) if has_score else [],
    }
    return Result(facts, arrays)


def adjustment_of(found: Result, population: Population) -> Adjustment:
    """The adjustment that a step has made of a population."""
    facts, arrays = found.facts, found.arrays
    if "score" in arrays:
        population = population.with_score(arrays["score"], facts["share"])
    return Adjustment(
        kind=facts["kind"],
        estimand=facts["estimand"],
        population=population,
        weight=arrays["weight"],
        set_id=arrays.get("set_id"),
        status=facts["adjustment_status"],
        notes=tuple(Note(n["code"], (), n["message"]) for n in facts["notes"]),
        attrition=tuple(Step(**step) for step in facts["attrition"]),
        details=facts["details"],
    )


def _histogram(made: Adjustment) -> list[dict[str, object]]:
    """Rows by preference score, before and after, in bars of 0.01."""
    people = made.population
    place = np.minimum((preference_score(people) * BINS).astype(np.int64), BINS - 1)
    rows: list[dict[str, object]] = []
    for arm, is_own in (("target", people.is_target), ("comparator", ~people.is_target)):
        counts = np.bincount(place[is_own], minlength=BINS)
        kept = np.bincount(place[is_own & made.kept], minlength=BINS)
        weight = np.bincount(place[is_own], made.weight[is_own], minlength=BINS)
        for k in range(BINS):
            row: dict[str, object] = {"arm": arm, "lower": k / BINS, "upper": (k + 1) / BINS}
            row |= {"count": int(counts[k]), "kept": int(kept[k]), "weight": float(weight[k])}
            rows.append(row)
    return rows


def summary_row(made: Adjustment) -> dict[str, object]:
    """What the table of adjustments says of an adjustment alone."""
    target, comparator = made.effective_sizes()
    row: dict[str, object] = {
        "kind": made.kind,
        "estimand": made.estimand,
        "status": made.status,
        "target_rows": made.n_target,
        "comparator_rows": made.n_comparator,
        "target_effective": target,
        "comparator_effective": comparator,
        "details": json.dumps(made.details, sort_keys=True),
    }
    caliper, breaks = made.details.get("caliper"), made.details.get("breaks")
    if is_number(caliper):
        row["caliper"] = caliper
    if isinstance(breaks, Sequence) and len(breaks) == 1 and made.population.has_score:
        row["stratum_borders"] = _as_preference(np.asarray(breaks[0]), made.population.share)
    return row


def _as_preference(score: Rows, share: float) -> list[float]:
    odds = score / (1 - score) * (1 - share) / share
    return [float(v) for v in odds / (1 + odds)]


def balance_of(
    cohort: Cohort, made: Adjustment, own: BalanceOptions, sections: Sequence[Table1Section]
) -> Result:
    """The balance of every covariate, as columns, and its summary."""
    found = balance(cohort.design, made, settings=own)
    chosen, missing = _chosen(found, sections)
    before, after = found.summary("before"), found.summary("after")
    facts = {
        "n_covariates": len(found.names),
        "threshold": found.threshold,
        "sd": found.sd,
        "after_min_p": after["min_p"],
        "generalisability_of": found.generalises_to,
        "generalisability_max": found.max_generalisability,
        "balanced": _is_balanced(found),
        "factors": [list(factor) for factor in found.factors],
        "table1": chosen,
        "notes": [
            {
                "code": "unknown_covariate",
                "message": f"table1 lists {name!r}, but no covariate has that name.",
            }
            for name in missing
        ],
    }
    for word, side in (("before", before), ("after", after)):
        facts |= {f"{word}_max": side["max"], f"{word}_worst": side["worst"]}
        facts[f"{word}_above"] = side["n_above"]
    columns = found.columns()
    arrays = {name: _array(column) for name, column in columns.items()}
    return Result(facts, arrays)


def _is_balanced(found: Balance) -> bool | None:
    """By the rule of the analysis: None where nothing is known."""
    known = ~np.isnan(found.after.smd)
    return bool(found.after.balanced[known].all()) if known.any() else None


def _array(column: AnyArray) -> AnyArray:
    return column.astype(np.str_) if column.dtype == object else column


def balance_rows(
    found: Result, analyses: Mapping[Any, tuple[int, str]]
) -> Iterator[dict[str, Any]]:
    """A row for each covariate."""
    by_text = {str(key): made for key, made in analyses.items()}
    category = {n: k for k, factor in enumerate(found.facts["factors"], start=1) for n in factor}
    columns = {name: array.tolist() for name, array in found.arrays.items()}
    for k, id_ in enumerate(columns["covariate_id"]):
        row = {name: values[k] for name, values in columns.items()}
        for side in ("before", "after"):
            for arm in ARMS:
                count = row[f"{side}_count_{arm}"]
                row[f"{side}_count_{arm}"] = None if np.isnan(count) else round(count)
        analysis_id, domain = by_text.get(id_, (None, None))
        row |= {"analysis_id": analysis_id, "domain": domain}
        yield row | {"category": category.get(row["name"])}


def _chosen(
    found: Balance, sections: Sequence[Table1Section]
) -> tuple[list[tuple[str, int]], list[str]]:
    """Section and number of the covariates of the table of characteristics; names of none."""
    if not sections:
        return _unasked(found), []
    keys = list(map(str, found.keys))
    chosen, missing = [], []
    for section in sections:
        for pattern in section.covariates:
            of_it = [
                (section.section, k)
                for k in range(len(keys))
                if pattern == keys[k] or fnmatch.fnmatchcase(found.names[k], pattern)
            ]
            chosen += of_it
            missing += [] if of_it else [pattern]
    return chosen, missing


def _unasked(found: Balance) -> list[tuple[str, int]]:
    """All covariates, or the most common ones of more than can be read."""
    p = len(found.names)
    if p <= MOST_CHARACTERISTICS:
        return [("Covariates", k) for k in range(p)]
    share = np.abs(found.before.mean_target) + np.abs(found.before.mean_comparator)
    share[~found.is_binary] = np.inf  # such as age, of which there are few
    most = np.sort(np.argsort(-share, kind="stable")[:MOST_CHARACTERISTICS])
    return [(f"The {most.size} most common of {p:,} covariates", int(k)) for k in most]


def table1_rows(found: Result) -> Iterator[dict[str, Any]]:
    """Lines of the table of characteristics."""
    columns = found.arrays
    for number, (section, k) in enumerate(found.facts["table1"], start=1):
        is_binary = bool(columns["is_binary"][k])
        row: dict[str, Any] = {
            "number": number,
            "section": section,
            "covariate_id": str(columns["covariate_id"][k]),
            "label": str(columns["name"][k]),
            "kind": "share" if is_binary else "mean",
        }
        for side in ("before", "after"):
            for arm in ARMS:
                row[f"{side}_{arm}"] = float(columns[f"{side}_mean_{arm}"][k])
                if not is_binary:
                    row[f"{side}_{arm}_sd"] = float(columns[f"{side}_sd_{arm}"][k])
            row[f"{side}_smd"] = float(columns[f"{side}_smd"][k])
        yield row


def _plain(value: Any) -> Any:
    """As JSON can hold it."""
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(v) for v in value]
    return value.item() if isinstance(value, np.generic) else value
