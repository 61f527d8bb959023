"""Results of studies that never were, in the layout of real ones, for the report to show.

Numbers are made by plain formulas, so that they are the same everywhere.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from report.made_estimates import (
    ARMS,
    COVARIATES,
    RUN,
    Row,
    Tables,
    arms,
    at_times,
    bias_bounds,
    calibration,
    confounders,
    controls,
    curves,
    diagnostics,
    estimate,
    over_time,
)
from riskset.results.folder import write_results

WORDS = {
    "population": "Adults who start a thiazide or an ACE inhibitor after a year of observation",
    "time_at_risk": "from the day after the first prescription until it was stopped, gap 30 days",
    "washout": "365 days without either treatment",
    "estimand": "the effect in people like those who had the target",
    "propensity_score": "Logistic regression with an L1 penalty chosen by cross-validation",
    "adjustment": "One-to-one matching within a caliper of 0.2 standard deviations",
    "model": "Cox's proportional hazards model, stratified by matched set",
    "covariates": None,
}


def study(**changes: Any) -> Row:
    """`study.json`."""
    known: Row = {
        "title": "Thiazides and ACE inhibitors",
        "description": "A made-up study of blood pressure treatment.",
        "targets": {"thz": {"label": "thiazide", "description": "Any thiazide diuretic"}},
        "comparators": {"ace": {"label": "ACE inhibitor", "description": ""}},
        "comparisons": [{"target": "thz", "comparator": "ace"}],
        "outcomes": {
            "hf": {
                "label": "heart failure",
                "description": "A first diagnosis",
                "kind": "outcome",
                "true_hr": None,
            }
        }
        | {
            f"nc{k}": {
                "label": f"control outcome {k}",
                "description": "",
                "kind": "negative control",
                "true_hr": 1.0,
            }
            for k in range(30)
        },
        "competing": "death",
        "analyses": {
            "matched": {"label": "matched 1:1, on treatment", "words": WORDS, "settings": {}},
            "weighted": {"label": "overlap weights", "words": WORDS, "settings": {}},
        },
        "subgroups": {"sex": {"label": "sex"}},
        "data": {
            "name": "Made-up claims",
            "description": "",
            "kind": "omop",
            "start": "2010-01-01",
            "end": "2019-12-31",
            "sources": [{"name": "person.parquet", "fingerprint": "ab" * 32, "rows": 120000}],
        },
        "min_cell_count": 5,
        "blind": True,
        "settings": {"seed": 1, "analyses": {"matched": {"match": {"ratio": 1}}}},
        "settings_hash": "0f" * 32,
        "versions": {"riskset": "0.1.0", "python": "3.12.1", "numpy": "2.1.0"},
    }
    return known | changes


def run(**changes: Any) -> Row:
    """`run.json`."""
    steps = [
        {
            "step": "propensity score",
            "what": "thiazide, ACE inhibitor",
            "seconds": 41.5,
            "reused": False,
        },
        {"step": "estimates", "what": "heart failure", "seconds": 1.25, "reused": True},
    ]
    return {"date": "2026-03-14", "seconds": 43.0, "steps": steps} | changes


def _smds(k: int) -> tuple[float, float]:
    before = 0.9 * math.exp(-k / 30) * math.sin(k * 1.7)
    return before, before * 0.12 + 0.03 * math.sin(k * 3.1)


def balance(n: int = 160) -> list[Row]:
    """Covariates, the first of them far apart before."""
    rows = []
    for k in range(n):
        before, after = _smds(k)
        share = 0.08 + 0.4 * abs(math.sin(k))
        row: Row = {
            "adjustment": 1,
            "covariate_id": str(1000 * k + 210),
            "name": f"condition number {k}, days -365 to 0",
            "analysis_id": 210,
            "domain": "condition",
            "is_binary": True,
            "category": None,
            "suppressed": "",
        }
        for side, smd in (("before", before), ("after", after)):
            row |= {
                f"{side}_mean_target": share + smd * 0.2,
                f"{side}_mean_comparator": share - smd * 0.2,
                f"{side}_sd_target": 0.4,
                f"{side}_sd_comparator": 0.4,
                f"{side}_count_target": 60,
                f"{side}_count_comparator": 70,
                f"{side}_smd": smd,
                f"{side}_smd_current_sd": smd * 1.02,
                f"{side}_smd_variance": 0.006,
                f"{side}_p": 0.5,
                f"{side}_balanced": abs(smd) < 0.1,
            }
        for arm in (*ARMS, "both"):
            row[f"generalisability_{arm}"] = 0.2 * math.cos(k) * math.exp(-k / 50)
        rows.append(row)
    return rows


def _preference() -> list[Row]:
    rows = []
    for arm, middle in zip(ARMS, (0.58, 0.42), strict=True):
        for k in range(100):
            n = round(16 * math.exp(-0.5 * ((k / 100 + 0.005 - middle) / 0.16) ** 2))
            rows.append(
                {"adjustment": 1, "arm": arm, "lower": k / 100, "upper": (k + 1) / 100}
                | {"count": n, "kept": round(n * 0.8), "weight": n * 0.8, "suppressed": ""}
            )
    return rows


def _people() -> Tables:
    steps = [
        ("original cohorts", 411, 702),
        ("first exposure only", 380, 640),
        ("washout of 365 days", 290, 540),
        ("no prior heart failure", 268, 496),
        ("matched within the caliper", 241, 439),
    ]
    attrition = []
    for k, (step, t, c) in enumerate(steps):
        before = steps[k - 1] if k else (step, t, c)
        attrition.append(
            {
                "adjustment": 1,
                "number": k + 1,
                "step": step,
                "target_persons": t,
                "comparator_persons": c,
            }
            | {"target_exposures": t, "comparator_exposures": c, "suppressed": ""}
            | {"removed_target": before[1] - t, "removed_comparator": before[2] - c}
        )
    calendar = [
        {
            "target": "thz",
            "comparator": "ace",
            "arm": arm,
            "year": year,
            "starts": n,
            "suppressed": "",
        }
        for arm in ARMS
        for year, n in zip(
            range(2011, 2019),
            range(22, 62, 5) if arm == "target" else range(90, 10, -10),
            strict=True,
        )
    ]
    return {"attrition": attrition, "calendar": calendar}


def _coefficients(n: int, scale: float) -> list[Row]:
    return [
        {"rank": k + 1, "covariate_id": str(1000 * k + 210), "suppressed": ""}
        | {
            "name": f"condition number {k}, days -365 to 0",
            "coef": (-1) ** k * scale * math.exp(-k / 12),
        }
        | {"mean_target": 0.1 + k / 200, "mean_comparator": 0.3 - k / 300}
        for k in range(n)
    ]


def _tried(best: float) -> list[Row]:
    return [
        {"l1": 0.5 * 1.6**k, "l2": 0.0, "variance": 2 / (0.5 * 1.6**k) ** 2}
        | {"mean": best - 1.3 * (k - 5) ** 2, "se": 0.8, "chosen": k == 5}
        for k in range(12)
    ]


def _outcome_models() -> Tables:
    found: Tables = {"outcome_coefficients": [], "outcome_cross_validation": []}
    for number, scale in ((2, 0.7), (4, 0.65)):
        own = RUN | {"number": number}
        found["outcome_coefficients"] += [
            own | row | {"is_binary": True} for row in _coefficients(48, scale)
        ]
        found["outcome_cross_validation"] += [own | row for row in _tried(-31.5)]
    return found


def _scores() -> Tables:
    coefficients = [{"ps": 1} | row for row in _coefficients(50, 1.3)]
    tried = [{"ps": 1} | row for row in _tried(-402.0)]
    score = {
        "ps": 1, "target": "thz", "comparator": "ace", "status": "ok", "source": "fitted",
        "n_target": 268, "n_comparator": 496, "auc": 0.7421, "auc_lower": 0.7061,
        "auc_upper": 0.7781, "equipoise": 0.612, "n_covariates": 160, "n_used": 50, "n_excluded": 1,
        "penalty": "l1",
        "l1": 5.24, "l2": 0.0, "variance": 0.0728, "chosen_by": "cross-validation", "folds": 10,
        "repeats": 10, "seed": 1, "intercept": -0.4, "log_likelihood": -401.0, "kkt": 2e-10,
        "removed_empty": 3, "removed_redundant": 2, "removed_rare": 812, "removed_duplicate": 0,
        "suppressed": "",
    }  # fmt: skip
    flagged = [
        {
            "ps": 1,
            "kind": "high_correlation",
            "covariate_id": "974210",
            "name": "hydrochlorothiazide, days -30 to 0",
        }
        | {
            "correlation": 0.91,
            "mean_target": 0.97,
            "mean_comparator": 0.02,
            "excluded": True,
            "suppressed": "",
        }
    ]
    return {
        "ps": [score],
        "ps_coefficients": coefficients,
        "ps_cross_validation": tried,
        "ps_flagged": flagged,
    }


def _adjustments(n: int) -> list[Row]:
    sizes = [_smds(k) for k in range(n)]
    worst = [max(range(n), key=lambda k: abs(sizes[k][side])) for side in (0, 1)]
    above = [sum(abs(s[side]) > 0.1 for s in sizes) for side in (0, 1)]
    row: Row = {
        "adjustment": 1, "target": "thz", "comparator": "ace", "ps": 1, "kind": "matching",
        "estimand": "att", "status": "ok", "target_rows": 241, "comparator_rows": 439,
        "target_effective": 241.0, "comparator_effective": 401.5, "stratum_borders": [],
        "caliper": 0.243, "details": "{}", "n_covariates": n,
        "generalisability_of": "target", "generalisability_max": 0.2, "threshold": 0.1,
        "sd": "before", "has_balance": True,
        "after_min_p": 0.8, "suppressed": "",
    }  # fmt: skip
    for j, side in enumerate(("before", "after")):
        row |= {
            f"{side}_max": abs(sizes[worst[j]][j]),
            f"{side}_worst": f"condition number {worst[j]}, days -365 to 0",
            f"{side}_above": above[j],
        }
    return [row]


def _table1() -> list[Row]:
    lines = [
        ("Age", "65-69", "share"), ("Age", "70-74", "share"), ("Age", "mean, years", "mean"),
        ("Sex", "female", "share"),
        ("Medical history: general", "Type 2 diabetes mellitus", "share"),
        ("Medical history: cardiovascular", "Ischaemic heart disease", "share"),
        ("Medication use", "Statins", "share"),
    ]  # fmt: skip
    rows = []
    for k, (section, label, kind) in enumerate(lines):
        row: Row = {
            "adjustment": 1,
            "number": k + 1,
            "item": k + 1,
            "covariate_id": str(1000 * k + 210),
            "section": section,
            "label": label,
            "kind": kind,
        }
        for side, smd in (("before", 0.21 - 0.05 * k), ("after", 0.02)):
            middle = 71.3 if kind == "mean" else 0.2 + 0.05 * k
            size = 7.0 if kind == "mean" else 0.4
            row |= {
                f"{side}_target": middle + smd * size / 2,
                f"{side}_comparator": middle - smd * size / 2,
                f"{side}_target_sd": 7.1 if kind == "mean" else None,
                f"{side}_comparator_sd": 6.9 if kind == "mean" else None,
                f"{side}_smd": smd,
            }
        rows.append(row | {"suppressed": ""})
    return rows


def _follow_up() -> Tables:
    shares = (0, 0.1, 0.25, 0.5, 0.75, 0.9, 1)
    quantiles = [
        {
            **RUN,
            "arm": arm,
            "share": share,
            "days": 1 + 900 * share**2 * (1.1 if arm == "target" else 1),
        }
        for arm in ARMS
        for share in shares
    ]
    counts = {
        "target": {"outcome": 8, "competing event": 5, "cohort end": 170, "observation end": 58},
        "comparator": {
            "outcome": 47,
            "competing event": 24,
            "cohort end": 260,
            "observation end": 108,
        },
    }
    ends = [
        {**RUN, "arm": arm, "reason": reason, "count": n, "suppressed": ""}
        for arm, own in counts.items()
        for reason, n in own.items()
    ]
    weeks = [
        {**RUN, "arm": arm, "week": week, "suppressed": ""}
        | {
            "events": 6 + (abs(week * 7) % 5) + (3 if week > 0 else 0),
            "people": 241 if arm == "target" else 439,
        }
        for arm in ARMS
        for week in range(-26, 27)
    ]
    bins = [
        {**RUN, "arm": arm, "start": 30.0 * k, "end": 30.0 * (k + 1), "suppressed": ""}
        | {"people": round(n * (math.exp(-k / 11) - math.exp(-(k + 1) / 11)))}
        for arm, n in zip(ARMS, (241, 439), strict=True)
        for k in range(33)
    ]
    return {
        "follow_up": quantiles,
        "follow_up_histogram": bins,
        "follow_up_ends": ends,
        "event_weeks": weeks,
    }


def tables(n_covariates: int = 160) -> Tables:
    """Every table of a study that went well."""
    steps, at_risk = curves()
    run_row = {
        **RUN, "outcome_kind": "outcome", "status": "ok", "estimand": "att",
        "adjustment_kind": "matching", "ps": 1, "adjustment": 1, "unblind": True, "blinded": False,
        "shared_adjustment": 1, "cloned": False, "unblind_for_evidence_synthesis": True,
    }  # fmt: skip
    other = {**RUN, "analysis": "weighted"}
    estimates = [
        estimate(1, "crude", "crude", -0.93, 0.31, reading="marginal"),
        estimate(2, "main", "adjusted", -0.52, 0.34, **COVARIATES),
        estimate(
            3, "sensitivity", "marginal instead of stratified", -0.47, 0.29, reading="marginal"
        ),
        estimate(
            4, "model", "subdistribution, stratified", -0.49, 0.33, model="finegray", **COVARIATES
        ),
        estimate(
            5,
            "subgroup",
            "sex: female",
            -0.31,
            0.45,
            subgroup="sex",
            level="female",
            interaction_p=0.38,
        ),
        estimate(
            6,
            "subgroup",
            "sex: male",
            -0.88,
            0.53,
            subgroup="sex",
            level="male",
            interaction_p=0.38,
        ),
        estimate(1, "main", "adjusted", -0.38, 0.27, reading="marginal") | other,
    ]
    risks = [
        {**RUN, "adjusted": adjusted, "time": 365.0, "target_risk": t, "target_lower": t - 0.02}
        | {"target_upper": t + 0.02, "comparator_risk": c, "comparator_lower": c - 0.02}
        | {"comparator_upper": c + 0.02, "difference": t - c, "difference_lower": t - c - 0.028}
        | {"difference_upper": t - c + 0.028, "interval": "normal", "interval_level": 0.95}
        | {"target_at_risk": 80, "comparator_at_risk": 145, "suppressed": "", "blinded": False}
        for adjusted, t, c in ((True, 0.0394, 0.0905), (False, 0.0508, 0.116))
    ]
    means = [
        {**RUN, "adjusted": adjusted, "reading": "marginal", "measure": measure, "time": 365.0}
        | {"target_mean": t, "target_se": 1.4, "target_lower": t - 2.7, "target_upper": t + 2.7}
        | {"comparator_mean": c, "comparator_se": 1.1}
        | {"comparator_lower": c - 2.2, "comparator_upper": c + 2.2}
        | {"difference": t - c, "difference_se": 1.8, "difference_lower": t - c - 3.5}
        | {"difference_upper": t - c + 3.5, "difference_p": 0.0002}
        | {"ratio": t / c, "log_ratio_se": 0.1, "ratio_lower": 0.8 * t / c}
        | {"ratio_upper": 1.2 * t / c, "ratio_p": 0.0004}
        | {"interval": "robust", "interval_level": 0.95, "suppressed": "", "blinded": False}
        for adjusted in (True, False)
        for measure, t, c in (("restricted_mean", 356.0, 345.0), ("time_lost", 9.0, 20.0))
    ]
    sides = [
        {**RUN, "side": "before", **arms((10, 55), (268, 496)), "suppressed": ""},
        {**RUN, "side": "after", **arms((8, 47)), "suppressed": ""},
    ]
    profile = [
        {
            **RUN,
            "log_hr": b / 50 - 2.5,
            "log_likelihood": -0.5 * ((b / 50 - 2.5 + 0.52) / 0.34) ** 2,
            "derivative": -(b / 50 - 2.5 + 0.52) / 0.34**2,
        }
        for b in range(0, 200)
    ]
    return {
        "runs": [run_row, run_row | other],
        "unmeasured_confounding": confounders(),
        "bias_bounds": bias_bounds(),
        "arms": sides,
        "estimates": estimates,
        "absolute_risks": risks,
        "restricted_means": means,
        "curves": steps,
        "curve_tests": [
            {**RUN, "adjusted": adjusted, "test": test, "reading": "marginal", "rho": None}
            | {"gamma": None, "statistic": statistic, "p": p, "variance": "robust"}
            | {"suppressed": "", "blinded": False}
            for adjusted, test, statistic, p in (
                (False, "logrank", 9.3, 0.0023),
                (True, "logrank", 2.6, 0.107),
                (True, "gray", 2.4, 0.121),
            )
        ],
        "numbers_at_risk": at_risk,
        "controls": controls(),
        "calibration": [calibration()],
        "diagnostics": diagnostics(),
        "adjustments": _adjustments(n_covariates),
        "balance": balance(n_covariates),
        "table1": _table1(),
        "preference": _preference(),
        "likelihood_profiles": profile,
        "effect_over_time": over_time(),
        "time_effects": [
            {**RUN, "function": "log", "interval": "wald", "df": 1, "statistic": 4.21, "p": 0.0402}
        ],
        "effect_at_times": at_times(),
        "codes": [
            {"list": "thz", "concept_id": 974166, "name": "hydrochlorothiazide"}
            | {"vocabulary": "RxNorm", "excluded": False}
        ],
        "warnings": [
            {"step": "propensity score", "code": "high_correlation", "count": 2}
            | {"message": "1 covariate decides the treatment; left out.", "where": "thz, ace, hf"}
        ],
        **_people(),
        **_scores(),
        **_outcome_models(),
        **_follow_up(),
    }  # fmt: skip


def two_outcomes() -> tuple[Row, Tables]:
    """The study and its tables, each row for two outcomes."""
    about, found = study(), tables()
    about["outcomes"]["mi"] = about["outcomes"]["hf"] | {"label": "myocardial infarction"}
    for name, rows in found.items():
        if rows and rows[0].get("outcome") == "hf":
            found[name] = rows + [row | {"outcome": "mi"} for row in rows]
    return about, found


def write_made(
    folder: Path, found: Mapping[str, Any] | None = None, about: Row | None = None
) -> Path:
    """A folder of results."""
    write_results(folder, about or study(), run(), dict(found or tables()))
    return folder
