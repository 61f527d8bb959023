"""The results of a study as rows of OHDSI's results data model."""

import bisect
import datetime
import json
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from riskset.disclosure.rows import ARMS
from riskset.ohdsi.preference_density import DensityBars, density_of_bars
from riskset.ohdsi.results_balance import (
    balance_rows,
    covariate_analysis_rows,
    covariate_rows,
    propensity_rows,
    shared_balance_rows,
)
from riskset.ohdsi.results_model import DATABASE_FACTS, QUANTILES, ModelColumn
from riskset.ohdsi.shared_study import SharedStudy
from riskset.results.rows import (
    AdjustmentRow,
    AtRiskRow,
    AttritionRow,
    CurveRow,
    DiagnosticRow,
    EstimateRow,
    FollowUpRow,
    PreferenceRow,
    ProfilePointRow,
    RunRow,
)

__all__ = ["ROWS"]

Row = dict[str, Any]
N_SCORES = 100
Z_95 = 1.959963984540054
WORDS = {"pass": "PASS", "fail": "FAIL", "not_evaluated": "NOT EVALUATED"}
EVERYBODY = "ate"
"""Population of an effect without an adjustment."""

DIAGNOSTICS = {
    "max_sdm": "balance",
    "shared_max_sdm": "shared_balance",
    "equipoise": "equipoise",
    "mdrr": "mdrr",
    "generalizability_max_sdm": "generalisability",
    "ease": "ease",
}
"""Columns of values -> diagnostics of riskset."""
VERDICTS = {
    "balance_diagnostic": "balance",
    "shared_balance_diagnostic": "shared_balance",
    "equipoise_diagnostic": "equipoise",
    "mdrr_diagnostic": "mdrr",
    "generalizability_diagnostic": "generalisability",
    "ease_diagnostic": "ease",
}
"""Columns of verdicts -> diagnostics of riskset."""
UNUSED = "NOT EVALUATED"
UNKNOWN = "unknown"


def _attrition(shared: SharedStudy) -> Iterator[Row]:
    """People left after each step, for each outcome of interest."""
    for run in shared.runs(of_interest=True):
        names = shared.of_run(run)
        steps = sorted(shared.rows(AttritionRow, adjustment=run.adjustment), key=lambda s: s.number)
        for arm in ARMS:
            exposure = shared.numbers.exposures[getattr(run, arm)]
            for step in steps:
                subjects = shared.count(step, f"{arm}_persons")
                if subjects is not None:
                    yield names | {
                        "sequence_number": step.number,
                        "description": step.step,
                        "subjects": subjects,
                        "exposure_id": exposure,
                    }


def _follow_up(shared: SharedStudy) -> Iterator[Row]:
    """Quantiles of the days at risk. Dates are those of single people, and are not written."""
    for run in shared.runs(of_interest=True):
        days = {(row.arm, row.share): row.days for row in _of_run(shared, FollowUpRow, run)}
        if days:
            yield shared.of_run(run) | {
                f"{arm}_{name}_days": days.get((arm, share))
                for arm in ARMS
                for name, share in QUANTILES.items()
            }


def _of_run(shared: SharedStudy, kind: Any, run: RunRow, **where: object) -> Sequence[Any]:
    names = ("target", "comparator", "outcome", "analysis")
    return shared.rows(kind, **{name: run[name] for name in names}, **where)


def _analyses(shared: SharedStudy) -> Iterator[Row]:
    for name, analysis in shared.study["analyses"].items():
        yield {
            "analysis_id": shared.numbers.analyses[name],
            "description": analysis["label"],
            "definition": json.dumps(analysis["settings"], ensure_ascii=False),
        }


def _results(shared: SharedStudy) -> Iterator[Row]:
    """Main estimates of outcomes and controls."""
    for run in shared.runs():
        for row in _of_run(shared, EstimateRow, run, role="main")[:1]:
            counts = {
                f"{arm}_{theirs}": shared.count(row, f"{arm}_{ours}")
                for arm in ARMS
                for theirs, ours in (
                    ("subjects", "persons"),
                    ("days", "days"),
                    ("outcomes", "outcomes"),
                )
            }
            if None in counts.values():
                continue
            yield (
                shared.of_run(run)
                | counts
                | _effect(row, "")
                | _effect(row, "calibrated_")
                | {"llr": row.llr, "target_estimator": row.estimand or EVERYBODY}
            )


def _effect(row: EstimateRow, prefix: str) -> Row:
    """A ratio with its 95 % interval; of another level, the normal interval of the logarithm."""
    log_hr, se = row[f"{prefix}log_hr"], row[f"{prefix}se"]
    lower, upper = row[f"{prefix}hr_lower"], row[f"{prefix}hr_upper"]
    if not math.isclose(row.interval_level, 0.95):
        is_known = log_hr is not None and se is not None
        lower = math.exp(log_hr - Z_95 * se) if is_known else None
        upper = math.exp(log_hr + Z_95 * se) if is_known else None
    return {
        f"{prefix}rr": row[f"{prefix}hr"],
        f"{prefix}ci_95_lb": lower,
        f"{prefix}ci_95_ub": upper,
        f"{prefix}p": row[f"{prefix}p"],
        f"{prefix}one_sided_p": row[f"{prefix}one_sided_p"],
        f"{prefix}log_rr": log_hr,
        f"{prefix}se_log_rr": se,
    }


def _diagnostics(shared: SharedStudy) -> Iterator[Row]:
    for run in shared.runs():
        checks = {row.name: row for row in _of_run(shared, DiagnosticRow, run)}
        values = {
            column: checks[name].value if name in checks else None
            for column, name in DIAGNOSTICS.items()
        }
        if values["mdrr"] is not None and math.isinf(values["mdrr"]):
            values["mdrr"] = None
        yield (
            shared.of_run(run)
            | values
            | {
                column: WORDS[checks[name].verdict] if name in checks else UNUSED
                for column, name in VERDICTS.items()
            }
            | {
                "sdm_family_wise_min_p": _smallest_p(shared, run.adjustment)
                if run.outcome_kind == "outcome"
                else None,
                "shared_sdm_family_wise_min_p": _smallest_p(shared, run.shared_adjustment),
                "attrition_diagnostic": UNUSED,
                "unblind": int(run.unblind),
                "unblind_for_evidence_synthesis": int(run.unblind_for_evidence_synthesis),
            }
        )


def _smallest_p(shared: SharedStudy, adjustment: int | None) -> float | None:
    found = shared.rows(AdjustmentRow, adjustment=adjustment)
    return found[0].after_min_p if found else None


def _comparison_outcomes(shared: SharedStudy) -> Iterator[Row]:
    done = set()
    for run in shared.runs():
        names = shared.of_run(run)
        key = (names["target_comparator_id"], names["outcome_id"])
        if key not in done:
            done.add(key)
            yield {
                "target_comparator_id": key[0],
                "outcome_id": key[1],
                "outcome_of_interest": int(run.outcome_kind == "outcome"),
                "true_effect_size": run.true_hr,
            }


def _comparisons(shared: SharedStudy) -> Iterator[Row]:
    done = set()
    for run in shared.runs():
        number = shared.of_comparison(run)["target_comparator_id"]
        if number not in done:
            done.add(number)
            yield {
                "target_comparator_id": number,
                "target_id": shared.numbers.exposures[run.target],
                "comparator_id": shared.numbers.exposures[run.comparator],
                "nesting_cohort_id": shared.numbers.nesting_cohort(run.analysis),
            }


def _kaplan_meier(shared: SharedStudy) -> Iterator[Row]:
    """Both curves on the days on which one of them changes, and of numbers at risk.

    Of an outcome with competing events there are incidences, and no survival.
    """
    for run in shared.runs(of_interest=True):
        rows = _of_run(shared, CurveRow, run, adjusted=True)
        steps = {
            arm: sorted((row for row in rows if row.arm == arm), key=lambda row: row.time)
            for arm in ARMS
        }
        if any(row.kind != "survival" for row in rows) or not all(steps.values()):
            continue
        last = min(of_arm[-1].time for of_arm in steps.values())
        at_risk = {
            (row.arm, math.ceil(row.time)): shared.count(row, "people")
            for row in _of_run(shared, AtRiskRow, run, adjusted=True)
            if row.time <= last
        }
        days = {math.ceil(row.time) for row in rows if row.time <= last}
        names = shared.of_run(run)
        for day in sorted(days | {day for _, day in at_risk}):
            survival: Row = {}
            for arm in ARMS:
                survival |= _survival(steps[arm], arm, day)
            if None not in survival.values():
                left = {f"{arm}_at_risk": at_risk.get((arm, day)) for arm in ARMS}
                yield names | {"time_day": day} | survival | left


def _survival(steps: Sequence[CurveRow], arm: str, day: int) -> Row:
    """Survival at the end of a day; `steps` are in order, and the first one is at time 0."""
    step = steps[max(bisect.bisect_right([row.time for row in steps], day) - 1, 0)]
    return {
        f"{arm}_survival": step.value,
        f"{arm}_survival_lb": step.lower,
        f"{arm}_survival_ub": step.upper,
    }


def _profiles(shared: SharedStudy) -> Iterator[Row]:
    for row in shared.rows(ProfilePointRow):
        if row.derivative is not None:
            yield shared.of_run(row) | {
                "log_rr": row.log_hr,
                "log_likelihood": row.log_likelihood,
                "gradient": row.derivative,
            }


def _preference(shared: SharedStudy) -> Iterator[Row]:
    """Densities of the scores of each analysis, of the people of its first outcome."""
    scores = np.linspace(0.0, 1.0, N_SCORES)
    done = set()
    for run in shared.runs(of_interest=True):
        key = (run.target, run.comparator, run.analysis)
        bars = {arm: _bars(shared, run.adjustment, arm) for arm in ARMS}
        if key in done or None in bars.values():
            continue
        done.add(key)
        densities = {
            f"{arm}_density": density_of_bars(own, scores)
            for arm, own in bars.items()
            if own is not None
        }
        for k, score in enumerate(scores.tolist()):
            yield (
                shared.of_comparison(run)
                | {"preference_score": score}
                | {name: float(density[k]) for name, density in densities.items()}
            )


def _bars(shared: SharedStudy, adjustment: int | None, arm: str) -> DensityBars | None:
    """Bars of an arm; None if they are hidden, or their people have no spread."""
    rows = sorted(
        shared.rows(PreferenceRow, adjustment=adjustment, arm=arm), key=lambda row: row.lower
    )
    counts = [row.count for row in rows]
    if None in counts or sum(n or 0 for n in counts) < 2:
        return None
    numbers = [[row.lower, row.upper, row.count] for row in rows]
    return DensityBars(*np.array(numbers, dtype=np.float64).T)


def _interactions(shared: SharedStudy) -> Iterator[Row]:
    """None: a study estimates the effect within subgroups instead."""
    return iter(())


def _database(shared: SharedStudy) -> Iterator[Row]:
    """What the database says of itself, and what the specification says of it.

    The tables of viewers refuse an empty cell in a required column.
    """
    known = {
        "cdm_source_name": shared.study["data"]["name"],
        "cdm_source_abbreviation": shared.database,
        **shared.facts,
    }
    yield {column.name: _fact(column, known.get(column.name), shared) for column in FACTS} | {
        "database_id": shared.database
    }


FACTS = tuple(column for column in DATABASE_FACTS.columns if not column.is_key)


def _fact(column: ModelColumn, text: str | None, shared: SharedStudy) -> object:
    if column.type == "date":
        return _iso(text) or shared.date
    if column.type == "int":
        return int(text) if text and text.isdecimal() else None
    return text or (UNKNOWN if column.is_required else None)


def _iso(text: str | None) -> str | None:
    """The date of a text such as 2020-01-31 or 2020-01-31 00:00:00."""
    try:
        return datetime.date.fromisoformat((text or "")[:10].strip()).isoformat()
    except ValueError:
        return None


def _cohorts(shared: SharedStudy) -> Iterator[Row]:
    """Exposures, outcomes and nesting cohorts by their numbers."""
    study, numbers = shared.study, shared.numbers
    found: dict[int, tuple[str, str | None]] = {}
    groups = (
        ("targets", numbers.exposures),
        ("comparators", numbers.exposures),
        ("outcomes", numbers.outcomes),
    )
    for group, of in groups:
        for name, about in study[group].items():
            found.setdefault(of[name], (about["label"], about["description"] or None))
    for name in study["analyses"]:
        nesting = numbers.nesting_cohort(name)
        if nesting is not None:
            found.setdefault(nesting, (f"Cohort {nesting}", None))
    for number, (label, description) in found.items():
        yield {
            "cohort_definition_id": number,
            "cohort_name": label,
            "description": description,
            "subset_parent": number,
            "is_subset": 0,
        }


ROWS: dict[str, Callable[[SharedStudy], Iterator[Row]]] = {
    "cm_attrition": _attrition,
    "cm_follow_up_dist": _follow_up,
    "cm_analysis": _analyses,
    "cm_result": _results,
    "cm_interaction_result": _interactions,
    "cm_covariate": covariate_rows,
    "cm_covariate_analysis": covariate_analysis_rows,
    "cm_covariate_balance": balance_rows,
    "cm_diagnostics_summary": _diagnostics,
    "cm_target_comparator_outcome": _comparison_outcomes,
    "cm_kaplan_meier_dist": _kaplan_meier,
    "cm_likelihood_profile": _profiles,
    "cm_preference_score_dist": _preference,
    "cm_propensity_model": propensity_rows,
    "cm_shared_covariate_balance": shared_balance_rows,
    "cm_target_comparator": _comparisons,
    "database_meta_data": _database,
    "cg_cohort_definition": _cohorts,
}
"""Tables of the data model -> what makes their rows."""
