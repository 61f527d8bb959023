"""The calibration of the estimates of an analysis by its control outcomes."""

import dataclasses
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from riskset.cohort.bias.calibration import (
    CalibratedEstimates,
    Controls,
    LeftOut,
    Method,
    calibrate,
    leave_each_out,
)
from riskset.disclosure.rows import known, number
from riskset.results.column_groups import EffectColumns
from riskset.results.rows import CalibrationRow, ControlRow, EstimateRow

__all__ = ["CalibratedOutcome", "calibrated"]

CONTROL_EFFECTS = ("hr", "hr_lower", "hr_upper", "log_hr", "se", "p")
REGION_LEVEL = 0.95
REGION_POINTS = 61


class CalibratedOutcome(Protocol):
    """The estimates of a control or an outcome of interest, such as an `EstimateRun`."""

    outcome_name: str
    rows: list[EstimateRow]

    @property
    def true_hr(self) -> float | None:
        """The true ratio of a control; None of an outcome of interest."""

    @property
    def passes(self) -> bool:
        """Whether it passes the diagnostics that do not depend on the controls."""


def calibrated(
    outcomes: Sequence[CalibratedOutcome], method: Method, level: float
) -> tuple[list[ControlRow], list[CalibrationRow]]:
    """Calibrate the estimates of an analysis in place, for every model in it.

    Returns rows of both tables, without the names of the analysis.
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
            [one.outcome_name for one, _ in pairs],
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


def _effect(result: CalibratedEstimates, k: int) -> EffectColumns:
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
    pairs: list[tuple[CalibratedOutcome, EstimateRow]], result: CalibratedEstimates, method: Method
) -> list[ControlRow]:
    used = set(result.controls.outcome_id.tolist())
    by_others: dict[str, dict[str, Any]] = {}
    if result.status == "ok":
        negative = result.controls.outcome_id[result.controls.is_negative].tolist()
        left_out = leave_each_out(result.controls, method, result.level)
        for name, own in zip(negative, zip(*left_out, strict=True), strict=True):
            by_others[name] = _by_others(LeftOut(*own))
    rows = []
    for one, row in pairs:
        name, reason = one.outcome_name, None
        if name not in used:
            reason = "its diagnostics fail" if not one.passes else "no usable estimate"
        effect = {column: getattr(row.effect, column) for column in CONTROL_EFFECTS}
        rows.append(
            ControlRow(
                model=row.model,
                reading=row.reading,
                outcome=name,
                true_hr=number(one.true_hr),
                status=row.status,
                used=name in used,
                reason=reason,
                **effect,
                **by_others.get(name, {}),
            )
        )
    return rows


def _by_others(own: LeftOut) -> dict[str, Any]:
    """Columns of a control that was calibrated by all others."""
    values = {
        "calibrated_p": own.p,
        "calibrated_hr": np.exp(own.log_rr),
        "calibrated_hr_lower": np.exp(own.lower),
        "calibrated_hr_upper": np.exp(own.upper),
        "null_mean_without": own.null_mean,
        "null_sd_without": own.null_sd,
    }
    return {name: known(float(value)) for name, value in values.items()}


def _summary(result: CalibratedEstimates, model: str, reading: str) -> CalibrationRow:
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


def _region(result: CalibratedEstimates) -> dict[str, Any]:
    """Where estimates of no effect lie whose calibrated p is at least 0.05, by standard error."""
    if result.null is None:
        return {}
    grid = np.linspace(0.0, 2 * float(result.controls.se.max()), REGION_POINTS)
    lower, upper = result.unremarkable(grid, REGION_LEVEL)
    ends = {"region_lower": lower.tolist(), "region_upper": upper.tolist()}
    return {"region_se": grid.tolist()} | ends
