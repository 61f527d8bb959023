"""What control outcomes say about the estimates of an analysis, and whether these may be seen."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from riskset.cohort.calibration import Calibration, Controls, Method, calibrate, leave_one_out
from riskset.cohort.diagnostics import BalanceFacts, Diagnostics, gate
from riskset.cohort.settings import DiagnosticLimits

__all__ = ["Checked", "calibrated", "checks"]

Row = dict[str, Any]

REGION_LEVEL = 0.95
REGION_POINTS = 61


@dataclass(frozen=True, eq=False)
class Checked:
    """An estimate of a control or an outcome of interest.

    Attributes
    ----------
    outcome : str
    true_hr : float or None
        Of a control.
    rows : list of dict
        Its estimates; calibration adds to them.
    passes : bool
        Its own diagnostics.
    """

    outcome: str
    true_hr: float | None
    rows: list[Row]
    passes: bool


def calibrated(
    found: Sequence[Checked], method: Method, level: float
) -> tuple[list[Row], list[Row]]:
    """Rows of the tables `controls` and `calibration` of an analysis, for every model in it."""
    controls = [one for one in found if one.true_hr is not None]
    if not controls:
        return [], []
    kinds = dict.fromkeys(
        (row["model"], row["reading"]) for one in found for row in one.rows if _counts(row)
    )
    of_controls, summaries = [], []
    for kind in kinds:
        own = [(one, row) for one in controls for row in one.rows if _is(row, kind)]
        table = Controls(
            [_number(row["log_hr"]) for _, row in own],
            [_number(row["se"]) for _, row in own],
            [np.log(_number(one.true_hr)) for one, _ in own],
            [one.outcome for one, _ in own],
            [one.passes and row["status"] == "ok" for one, row in own],
        )
        wanted = [row for one in found for row in one.rows if _is(row, kind)]
        result = calibrate(
            table,
            [_number(row["log_hr"]) for row in wanted],
            [_number(row["se"]) for row in wanted],
            method=method,
            level=level,
        )
        _add(wanted, result)
        names = {"model": kind[0], "reading": kind[1]}
        of_controls += [row | names for row in _control_rows(own, result, method)]
        summaries.append(_summary(result) | names)
    return of_controls, summaries


def _counts(row: Row) -> bool:
    return row["role"] in ("main", "sensitivity", "model")


def _is(row: Row, kind: tuple[str, str]) -> bool:
    return _counts(row) and (row["model"], row["reading"]) == kind


def _number(value: float | None) -> float:
    return float("nan") if value is None else value


def _add(rows: Iterable[Row], result: Calibration) -> None:
    for k, row in enumerate(rows):
        row |= {
            "calibrated_log_hr": result.log_rr[k],
            "calibrated_hr": np.exp(result.log_rr[k]),
            "calibrated_hr_lower": np.exp(result.lower[k]),
            "calibrated_hr_upper": np.exp(result.upper[k]),
            "calibrated_se": result.se[k],
            "calibrated_p": result.p[k],
            "calibrated_one_sided_p": result.one_sided_p[k],
        }


def _control_rows(own: list[tuple[Checked, Row]], result: Calibration, method: Method) -> list[Row]:
    used = set(result.controls.outcome_id.tolist())
    own_p: dict[str, float] = {}
    if result.status == "ok":
        negative = result.controls.outcome_id[result.controls.is_negative].tolist()
        p = leave_one_out(result.controls, method)
        own_p = dict(zip(negative, p.tolist(), strict=True))
    rows = []
    for one, row in own:
        names = ("status", "hr", "hr_lower", "hr_upper", "log_hr", "se", "p")
        reason = None
        if one.outcome not in used:
            reason = "its diagnostics fail" if not one.passes else "no usable estimate"
        rows.append(
            {name: row[name] for name in names}
            | {"outcome": one.outcome, "true_hr": one.true_hr}
            | {"used": one.outcome in used, "reason": reason}
            | {"calibrated_p": own_p.get(one.outcome)}
            # No column of the table: it decides what may be shown.
            | {"outcomes": row.get("target_outcomes", 0) + row.get("comparator_outcomes", 0)}
        )
    return rows


def _summary(result: Calibration) -> Row:
    n = int(result.controls.is_negative.sum())
    row: Row = {
        "status": result.status,
        "n_negative": n,
        "n_positive": result.controls.log_rr.size - n,
        "ease": result.ease,
        "coverage": result.coverage,
        "calibrated_coverage": result.calibrated_coverage,
        "interval_level": result.level,
    }
    if result.null is not None:
        row |= {"null_mean": result.null.mean, "null_sd": result.null.sd}
    if result.posterior is not None:
        for name, values in (
            ("posterior_mean", result.posterior.mean),
            ("posterior_sd", result.posterior.sd),
            ("ease", result.posterior.ease),
        ):
            row |= {name: values[0], f"{name}_lower": values[1], f"{name}_upper": values[2]}
    row |= _region(result)
    if result.error_model is not None:
        for name in ("mean_intercept", "mean_slope", "sd_intercept", "sd_slope"):
            row[f"error_{name}"] = getattr(result.error_model, name)
    return row


def _region(result: Calibration) -> Row:
    """Where estimates of no effect lie whose calibrated p is at least 0.05, by standard error."""
    if result.null is None:
        return {}
    found, ends = result.error_posterior, []
    grid = np.linspace(0.0, 2 * float(result.controls.se.max()), REGION_POINTS)
    for se in grid.tolist():
        if found is not None:
            ends.append(found.unremarkable(se, REGION_LEVEL))
        else:
            half = float(ndtri((1 + REGION_LEVEL) / 2)) * math.hypot(result.null.sd, se)
            ends.append((result.null.mean - half, result.null.mean + half))
    lower, upper = zip(*ends, strict=True)
    return {"region_se": grid.tolist(), "region_lower": lower, "region_upper": upper}


def checks(
    limits: DiagnosticLimits,
    *,
    balance: Row | None,
    shared_balance: Row | None,
    equipoise: float | None,
    mdrr: float | None,
    ease: float | None,
    proportionality_p: float | None,
    by_significance: bool,
) -> Diagnostics:
    """The diagnostics of an estimate, as `riskset.cohort.diagnose` has them.

    Parameters
    ----------
    balance, shared_balance : dict or None
        Facts of the step "balance".
    by_significance : bool
        Balance is judged by significance over all covariates instead of by the limit.
    """
    return gate(
        _facts(balance, by_significance),
        _facts(shared_balance, by_significance),
        equipoise=equipoise,
        mdrr=mdrr,
        ease=ease,
        proportionality_p=proportionality_p,
        limits=limits,
    )


def _facts(found: Row | None, by_significance: bool) -> BalanceFacts:
    if found is None:
        return BalanceFacts()
    is_balanced = found["balanced"] if by_significance else None
    return BalanceFacts(found["after_max"], is_balanced, found["generalisability_max"])
