"""What control outcomes say about the estimates of an analysis, and whether these may be seen."""

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from riskset.cohort.calibration import Calibration, Controls, Method, calibrate, leave_one_out
from riskset.cohort.diagnostics import BalanceFacts, Diagnostics, gate
from riskset.cohort.settings import DiagnosticLimits
from riskset.disclosure.rows import known, number
from riskset.results.column_groups import EffectColumns
from riskset.results.rows import CalibrationRow, ControlRow, EstimateRow
from riskset.study.adjustment_step import BalanceStep

__all__ = ["CalibratedOutcome", "calibrated", "checks"]

REGION_LEVEL = 0.95
REGION_POINTS = 61


@dataclass(eq=False)
class CalibratedOutcome:
    """An estimate of a control or an outcome of interest.

    Attributes
    ----------
    outcome : str
    true_hr : float or None
        Of a control.
    rows : list of EstimateRow
        Its estimates; `calibrated` replaces them by calibrated ones.
    passes : bool
        Whether it passes the diagnostics that do not depend on the controls.
    """

    outcome: str
    true_hr: float | None
    rows: list[EstimateRow]
    passes: bool


def calibrated(
    outcomes: Sequence[CalibratedOutcome], method: Method, level: float
) -> tuple[list[ControlRow], list[CalibrationRow]]:
    """Calibrate the estimates of an analysis, for every model in it.

    Returns
    -------
    controls, calibration : list of rows
        Of these tables, but for the names of the analysis.
    """
    controls = [one for one in outcomes if one.true_hr is not None]
    if not controls:
        return [], []
    models = dict.fromkeys(
        (row.model, row.reading) for one in outcomes for row in one.rows if _is_whole(row)
    )
    of_controls, summaries = [], []
    for model, reading in models:
        places = [
            (one, k)
            for one in outcomes
            for k, row in enumerate(one.rows)
            if _is_whole(row) and (row.model, row.reading) == (model, reading)
        ]
        pairs = [(one, one.rows[k]) for one, k in places if one.true_hr is not None]
        table = Controls(
            [number(row.effect.log_hr) for _, row in pairs],
            [number(row.effect.se) for _, row in pairs],
            [np.log(number(one.true_hr)) for one, _ in pairs],
            [one.outcome for one, _ in pairs],
            [one.passes and row.status == "ok" for one, row in pairs],
        )
        result = calibrate(
            table,
            [number(one.rows[k].effect.log_hr) for one, k in places],
            [number(one.rows[k].effect.se) for one, k in places],
            method=method,
            level=level,
        )
        of_controls += _control_rows(pairs, result, method)
        summaries.append(_summary(result, model, reading))
        for j, (one, k) in enumerate(places):
            one.rows[k] = dataclasses.replace(one.rows[k], calibrated=_effect(result, j))
    return of_controls, summaries


def _is_whole(row: EstimateRow) -> bool:
    """Whether an estimate is of everybody, with the adjustment."""
    return row.role in ("main", "sensitivity", "model")


def _effect(result: Calibration, k: int) -> EffectColumns:
    values = {
        "log_hr": result.log_rr[k],
        "hr": np.exp(result.log_rr[k]),
        "hr_lower": np.exp(result.lower[k]),
        "hr_upper": np.exp(result.upper[k]),
        "se": result.se[k],
        "p": result.p[k],
        "one_sided_p": result.one_sided_p[k],
    }
    return EffectColumns(**{name: known(float(value)) for name, value in values.items()})


def _control_rows(
    pairs: list[tuple[CalibratedOutcome, EstimateRow]], result: Calibration, method: Method
) -> list[ControlRow]:
    used = set(result.controls.outcome_id.tolist())
    calibrated_p: dict[str, float] = {}
    if result.status == "ok":
        negative = result.controls.outcome_id[result.controls.is_negative].tolist()
        p = leave_one_out(result.controls, method)
        calibrated_p = dict(zip(negative, p.tolist(), strict=True))
    rows = []
    for one, row in pairs:
        reason = None
        if one.outcome not in used:
            reason = "its diagnostics fail" if not one.passes else "no usable estimate"
        effect = row.effect
        rows.append(
            ControlRow(
                model=row.model,
                reading=row.reading,
                outcome=one.outcome,
                true_hr=number(one.true_hr),
                status=row.status,
                hr=effect.hr,
                hr_lower=effect.hr_lower,
                hr_upper=effect.hr_upper,
                log_hr=effect.log_hr,
                se=effect.se,
                p=effect.p,
                calibrated_p=calibrated_p.get(one.outcome),
                used=one.outcome in used,
                reason=reason,
            )
        )
    return rows


def _summary(result: Calibration, model: str, reading: str) -> CalibrationRow:
    n = int(result.controls.is_negative.sum())
    columns: dict[str, Any] = {"ease": result.ease}
    if result.null is not None:
        columns |= {"null_mean": result.null.mean, "null_sd": result.null.sd}
    if result.posterior is not None:
        for name, values in (
            ("posterior_mean", result.posterior.mean),
            ("posterior_sd", result.posterior.sd),
            ("ease", result.posterior.ease),
        ):
            columns |= {name: values[0], f"{name}_lower": values[1], f"{name}_upper": values[2]}
    if result.error_model is not None:
        for name in ("mean_intercept", "mean_slope", "sd_intercept", "sd_slope"):
            columns[f"error_{name}"] = getattr(result.error_model, name)
    return CalibrationRow(
        model=model,
        reading=reading,
        status=result.status,
        n_negative=n,
        n_positive=result.controls.log_rr.size - n,
        coverage=result.coverage,
        calibrated_coverage=result.calibrated_coverage,
        interval_level=result.level,
        **columns,
        **_region(result),
    )


def _region(result: Calibration) -> dict[str, Any]:
    """Where estimates of no effect lie whose calibrated p is at least 0.05, by standard error."""
    if result.null is None:
        return {}
    posterior, ends = result.error_posterior, []
    grid = np.linspace(0.0, 2 * float(result.controls.se.max()), REGION_POINTS)
    for se in grid.tolist():
        if posterior is not None:
            ends.append(posterior.unremarkable(se, REGION_LEVEL))
        else:
            half = float(ndtri((1 + REGION_LEVEL) / 2)) * math.hypot(result.null.sd, se)
            ends.append((result.null.mean - half, result.null.mean + half))
    lower, upper = map(list, zip(*ends, strict=True))
    return {"region_se": grid.tolist(), "region_lower": lower, "region_upper": upper}


def checks(
    limits: DiagnosticLimits,
    *,
    balance: BalanceStep | None,
    shared_balance: BalanceStep | None,
    equipoise: float | None,
    main: EstimateRow | None,
    ease: float | None,
    by_significance: bool,
) -> Diagnostics:
    """The diagnostics of an estimate, as `riskset.cohort.diagnose` has them.

    Parameters
    ----------
    main : EstimateRow or None
        The main estimate of the run.
    by_significance : bool
        Balance is judged by significance over all covariates instead of by the limit.
    """
    return gate(
        _facts(balance, by_significance),
        _facts(shared_balance, by_significance),
        equipoise=equipoise,
        mdrr=None if main is None else main.mdrr,
        ease=ease,
        proportionality_p=None if main is None else main.proportionality_p,
        limits=limits,
    )


def _facts(balance: BalanceStep | None, by_significance: bool) -> BalanceFacts:
    if balance is None:
        return BalanceFacts()
    row = balance.row
    is_balanced = balance.is_balanced if by_significance else None
    return BalanceFacts(row.after_max, is_balanced, row.generalisability_max)
