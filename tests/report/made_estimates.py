"""Made estimates of a study that never was, with their curves, controls and diagnostics."""

import math
from typing import Any

Row = dict[str, Any]
Tables = dict[str, list[Row]]
RUN = {"target": "thz", "comparator": "ace", "outcome": "hf", "analysis": "matched"}
ARMS = ("target", "comparator")
COVARIATES = {
    "n_covariates": 160, "n_used": 48, "l1": 5.24, "l2": 0.0, "variance": 0.0728,
    "chosen_by": "cross-validation", "folds": 10, "repeats": 10, "seed": 1,
}  # fmt: skip


def arms(events: tuple[int, int], people: tuple[int, int] = (241, 439)) -> Row:
    """Counts of both arms, and rates that follow from them."""
    row: Row = {}
    for arm, n, e in zip(ARMS, people, events, strict=True):
        days = 500.0 * n
        years = days / 365.25 / 1000
        row |= {f"{arm}_persons": n, f"{arm}_exposures": n, f"{arm}_days": days}
        row |= {f"{arm}_outcomes": e, f"{arm}_competing": e // 2 + 1}
        for weighted in ("", "weighted_"):
            half = 1.96 * math.sqrt(e)
            row |= {
                f"{arm}_{weighted}rate": e / years,
                f"{arm}_{weighted}rate_lower": max(e - half, 0) / years,
                f"{arm}_{weighted}rate_upper": (e + half if e else 3.689) / years,
            }
    return row


def effect(log_hr: float, se: float, prefix: str = "") -> Row:
    """A hazard ratio with its interval of 95 %."""
    ends = (log_hr - 1.96 * se, log_hr + 1.96 * se)
    return {
        f"{prefix}hr": math.exp(log_hr),
        f"{prefix}hr_lower": math.exp(ends[0]),
        f"{prefix}hr_upper": math.exp(ends[1]),
        f"{prefix}log_hr": log_hr,
        f"{prefix}se": se,
        f"{prefix}p": math.erfc(abs(log_hr / se) / math.sqrt(2)),
        f"{prefix}one_sided_p": 0.5 * math.erfc(log_hr / se / math.sqrt(2)),
    }


def estimate(number: int, role: str, label: str, log_hr: float, se: float, **changes: Any) -> Row:
    """A row of the estimates."""
    is_calibrated = role in ("main", "model")
    away = math.exp(abs(log_hr))
    e_value = {"e_value": away + math.sqrt(away * (away - 1)), "e_value_limit": 1.0}
    calibrated = effect(log_hr - 0.1, math.hypot(se, 0.16), "calibrated_") if is_calibrated else {}
    return {
        **RUN,
        "number": number,
        "role": role,
        "label": label,
        "model": "cox",
        "reading": "stratified",
        "status": "ok",
        **effect(log_hr, se),
        "interval": "profile",
        "interval_level": 0.95,
        **calibrated,
        **(e_value | {"e_value_common": False} if role == "main" else {}),
        "mdrr": 2.35,
        "expected_se": 0.305,
        "proportionality_p": 0.41,
        "informative_strata": 41,
        "informative_people": 82,
        "n_covariates": 0,
        "kkt": 3.1e-12,
        **arms((8, 47)),
        "suppressed": "",
        "blinded": False,
    } | changes


def curves() -> tuple[list[Row], list[Row]]:
    steps, at_risk = [], []
    for adjusted in (True, False):
        for arm, rate in zip(ARMS, (0.00011, 0.00026), strict=True):
            rate *= 1.0 if adjusted else 1.3
            for cause, share in ((1, 1.0), (2, 0.6)):
                for time in range(0, 701, 7):
                    value = share * (1 - math.exp(-rate * time))
                    half = 0.35 * value
                    steps.append(
                        {
                            **RUN,
                            "adjusted": adjusted,
                            "kind": "incidence",
                            "arm": arm,
                            "cause": cause,
                        }
                        | {"time": float(time), "value": value, "standard_error": half / 1.96}
                        | {"lower": value - half, "upper": value + half}
                    )
            n = 241 if arm == "target" else 439
            for time in range(0, 701, 50):
                left = round(n * math.exp(-time / 330))
                at_risk.append(
                    {**RUN, "adjusted": adjusted, "arm": arm, "time": float(time), "people": left}
                    | {"weighted": float(left), "effective": float(left), "suppressed": ""}
                )
    return steps, at_risk


def controls() -> list[Row]:
    rows = []
    for k in range(30):
        se = 0.08 + 0.4 * abs(math.sin(2.1 * k))
        log_hr = 0.1 + 0.14 * math.sin(5 * k) + se * math.sin(3.3 * k)
        own = effect(log_hr, se)
        rows.append(
            {key: RUN[key] for key in ("target", "comparator", "analysis")}
            | {"model": "cox", "reading": "stratified", "outcome": f"nc{k}", "true_hr": 1.0}
            | {
                "status": "ok",
                **{n: own[n] for n in ("hr", "hr_lower", "hr_upper", "log_hr", "se", "p")},
            }
            | {"calibrated_p": 0.4, "used": k != 7, "reason": "balance" if k == 7 else None}
            | _by_others(log_hr - 0.1, math.hypot(se, 0.16))
            | {"null_mean_without": 0.104 + k / 1000, "null_sd_without": 0.16 - k / 1000}
        )
    return rows


def _by_others(log_hr: float, se: float) -> Row:
    own = effect(log_hr, se, "calibrated_")
    return {name: own[name] for name in own if "calibrated_hr" in name}


def calibration(**changes: Any) -> Row:
    """The systematic error of the main model."""
    return (
        {key: RUN[key] for key in ("target", "comparator", "analysis")}
        | {
            "model": "cox",
            "reading": "stratified",
            "status": "ok",
            "n_negative": 29,
            "n_positive": 0,
        }
        | {
            "null_mean": 0.104,
            "null_sd": 0.16,
            "posterior_mean": 0.105,
            "posterior_mean_lower": 0.02,
        }
        | {"posterior_mean_upper": 0.19, "posterior_sd": 0.158, "posterior_sd_lower": 0.09}
        | {"posterior_sd_upper": 0.25, "ease": 0.1565, "ease_lower": 0.1111, "ease_upper": 0.2191}
        | {"coverage": 0.82, "calibrated_coverage": 0.94, "interval_level": 0.95}
        | {
            "region_se": [0.0, 0.5, 1.0],
            "region_lower": [-0.21, -0.92, -1.88],
            "region_upper": [0.42, 1.13, 2.09],
        }
        | changes
    )


def confounders(log_hr: float = -0.52, se: float = 0.34) -> list[Row]:
    """Confounders in both directions, and an estimate without their bias."""
    rows: list[Row] = []
    kinds: list[Row] = [{"target_prevalence": p1, "comparator_prevalence": p0}
                        for p1, p0 in ((0.1, 0.4), (0.4, 0.1))]  # fmt: skip
    kinds += [{"difference": d} for d in (0.25, -0.25)]
    for of in kinds:
        for risk in (1.5, 4.0):
            bias = risk ** of.get("difference", 0.0)
            if "target_prevalence" in of:
                means = [1 + (risk - 1) * share for share in of.values()]
                bias = means[0] / means[1]
            own = effect(log_hr - math.log(bias), se)
            rows.append(
                {**RUN, "number": len(rows) + 1, "effect": risk, "bias": bias, "common": False}
                | {"kind": "normal" if "difference" in of else "binary", **of}
                | {"ratio": own["hr"], "ratio_lower": own["hr_lower"]}
                | {"ratio_upper": own["hr_upper"], "tips": True, "n_needed": 0.0}
                | {"tipping_effect": 1.0, "tipping_effect_of_estimate": 5.5}
            )
    return rows


def bias_bounds() -> list[Row]:
    """What errors of the controls would do."""
    rows = []
    for basis, low, high in (("null", -0.21, 0.42), ("largest", -0.5, 0.8)):
        size = max(-low, high)
        for direction, a, b in (("seen", low, high), ("either", -size, size)):
            worst = math.exp(size)
            rows.append(
                {**RUN, "basis": basis, "direction": direction, "includes_1": True}
                | {"bias_lower": math.exp(a), "bias_upper": math.exp(b)}
                | {"ratio_lower": math.exp(-0.52 - b), "ratio_upper": math.exp(-0.52 - a)}
                | {"limit_lower": math.exp(-1.19 - b), "limit_upper": math.exp(0.15 - a)}
                | {"e_value": worst + math.sqrt(worst * (worst - 1)), "beyond": 1.0}
                | {"n_controls": 29, "range_level": 0.95}
            )
    return rows


def diagnostics(**verdicts: str) -> list[Row]:
    """The checks; verdicts by name."""
    known = [
        ("balance", 0.0931, 0.1, "pass"),
        ("equipoise", 0.612, 0.2, "pass"),
        ("mdrr", 2.35, 10.0, "pass"),
        ("ease", 0.1565, 0.25, "pass"),
        ("generalisability", 0.19, None, "not_evaluated"),
        ("proportional_hazards", 0.41, None, "not_evaluated"),
    ]
    return [
        {
            **RUN,
            "name": name,
            "value": value,
            "limit": limit,
            "verdict": verdicts.get(name, verdict),
        }
        for name, value, limit, verdict in known
    ]


def over_time() -> list[Row]:
    """Five intervals of 11 outcomes, whose mean log ratio is -0.52."""
    rows = []
    for k, (end, target) in enumerate(zip((40, 100, 190, 340, 690), (1, 2, 1, 2, 2), strict=True)):
        log_hr, se = -0.52 + 0.3 * (k - 2), 0.34 * math.sqrt(5)
        own = {name: v for name, v in effect(log_hr, se).items() if "p" not in name}
        own |= {"interval": k + 1, "start": float((0, 40, 100, 190, 340)[k]), "end": float(end)}
        own |= {"target_outcomes": target + 5, "comparator_outcomes": 11 - target}
        rows.append(RUN | own | {"interval_level": 0.95, "hr_upper": math.exp(log_hr + 1.96 * se)})
    return rows


def at_times() -> list[Row]:
    """The log ratio falls from 0.2 by 0.6 in each tenfold time."""
    rows = []
    for k, time in enumerate((10.0, 100.0, 500.0)):
        own = effect(0.8 - 0.6 * math.log10(time), 0.3)
        own = {name: v for name, v in own.items() if "p" not in name} | {"number": k + 1}
        own |= {"start": None, "time": time, "target_outcomes": None, "comparator_outcomes": None}
        rows.append(
            RUN | own | {"interval_level": 0.95, "hr_upper": math.exp(own["log_hr"] + 0.588)}
        )
    return rows
