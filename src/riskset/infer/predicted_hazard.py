"""Predicted hazards of new rows in windows of time, with standard errors."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from riskset._errors import NotDefinedError
from riskset._types import AnyArray, Index, Matrix, Rows
from riskset.infer.hazard_influence import FittedHazard, robust_window_moments
from riskset.infer.hazard_steps import WindowMoments, window_moments
from riskset.model.baseline import Baseline

__all__ = [
    "HazardWindows",
    "KeptWindows",
    "PredictedRows",
    "TrainedWindows",
    "hazards_of_rows",
    "predicted_hazards",
]

BLOCK_NUMBERS = 1 << 22
"""Numbers of new rows that are dense at a time (32 MB)."""


class HazardWindows(Protocol):
    """Moments of the hazard in windows of time."""

    @property
    def end(self) -> NDArray[np.float64]:
        """Last time of follow-up of each stratum (S,)."""

    def moments(self, windows: Mapping[int, Matrix]) -> dict[int, WindowMoments]:
        """Moments of the windows (after, until] of each stratum (r, 2)."""


@dataclass(frozen=True, eq=False)
class TrainedWindows:
    """From the data of the fit; `is_robust` chooses the variance."""

    fit: FittedHazard
    baseline: Baseline
    is_robust: bool

    @property
    def end(self) -> NDArray[np.float64]:
        """Last time of follow-up of each stratum (S,)."""
        return self.fit.steps.end

    def moments(self, windows: Mapping[int, Matrix]) -> dict[int, WindowMoments]:
        """Moments of the windows (after, until] of each stratum (r, 2)."""
        steps = self.fit.steps
        places: dict[int, tuple[Index, Index]] = {}
        for stratum, pairs in windows.items():
            time = self.baseline.time[steps.own(stratum)]
            first, last = (np.searchsorted(time, at, side="right") for at in pairs.T)
            places[stratum] = first, np.maximum(first, last)
        if self.is_robust:
            return robust_window_moments(self.fit, places)
        return {s: window_moments(steps, s, *pair) for s, pair in places.items()}


@dataclass(frozen=True, eq=False)
class KeptWindows:
    """From what a saved model keeps of the windows from the start to some `times` (K,).

    `mean` and `cross` are (S, K, p), `square` is (S, K).
    """

    times: Rows
    mean: NDArray[np.float64]
    square: NDArray[np.float64]
    cross: NDArray[np.float64]
    end: NDArray[np.float64]

    @classmethod
    def of(cls, windows: TrainedWindows, times: Rows) -> "KeptWindows":
        """The moments at some times, in all strata."""
        pairs = np.column_stack([np.full(times.size, -np.inf), times])
        n_strata = windows.end.size
        found = windows.moments(dict.fromkeys(range(n_strata), pairs))
        return cls(
            times,
            np.array([found[s].mean for s in range(n_strata)]),
            np.array([found[s].square for s in range(n_strata)]),
            np.array([found[s].cross for s in range(n_strata)]),
            windows.end,
        )

    def moments(self, windows: Mapping[int, Matrix]) -> dict[int, WindowMoments]:
        """Moments of the windows (after, until] of each stratum (r, 2)."""
        known = {time: k for k, time in enumerate(self.times.tolist())}
        out = {}
        for stratum, pairs in windows.items():
            unknown = [until for _, until in pairs.tolist() if until not in known]
            if unknown or not np.isneginf(pairs[:, 0]).all():
                what = "conditional survival" if not unknown else f"time {unknown[0]:g}"
                kept = ", ".join(f"{time:g}" for time in self.times[:8])
                raise NotDefinedError(
                    f"the model was saved with what intervals need at the times {kept}, which does "
                    f"not include {what}.",
                    hint="save it with all times in `interval_times` (`riskset fit "
                    "--interval-times`), or predict before saving."
                    if unknown
                    else "predict before saving.",
                )
            at = np.array([known[until] for until in pairs[:, 1].tolist()], dtype=np.int64)
            out[stratum] = WindowMoments(
                self.mean[stratum, at], self.square[stratum, at], self.cross[stratum, at]
            )
        return out


@dataclass(frozen=True, eq=False)
class PredictedRows:
    """New rows: linear predictors (k,) relative to the center, strata (k,), and their covariates.

    `covariates` gives those of some rows, relative to the center (b, p).
    """

    eta: Rows
    stratum: Index
    covariates: Callable[[Index], Matrix]
    n_features: int

    def blocks(self, stratum: int, n_numbers: int = 1) -> list[Index]:
        """Rows of a stratum, in blocks of which each has `n_numbers` and its covariates."""
        rows = np.flatnonzero(self.stratum == stratum)
        size = max(1, BLOCK_NUMBERS // max(1, self.n_features + n_numbers))
        return [rows[a : a + size] for a in range(0, rows.size, size)]


def predicted_hazards(
    baseline: Baseline,
    windows: HazardWindows,
    root: Matrix,
    new: PredictedRows,
    times: Rows,
    after: Rows | None = None,
) -> tuple[Matrix, Matrix]:
    """Log of the hazard from `after` (k,), or the start, to each time, and its standard error.

    Both are (k, m), and NaN after the last time of follow-up of the row's stratum; without an event
    in the window they are -inf and 0. `root` is that of the covariance of the coefficients.
    """
    begins = np.full(new.eta.size, -np.inf) if after is None else after
    log_hazard, error = np.full((2, new.eta.size, times.size), np.nan)
    asked = {}
    for stratum in np.unique(new.stratum).tolist():
        first = np.unique(begins[new.stratum == stratum])
        grid = np.meshgrid(first, times, indexing="ij")
        asked[stratum] = np.column_stack([part.ravel() for part in grid])
    found = windows.moments(asked)
    for stratum, pairs in asked.items():
        first = pairs[:: max(1, times.size), 0]
        for block in new.blocks(stratum, times.size):
            covariates = new.covariates(block)
            of_row = np.searchsorted(first, begins[block])
            for k in np.unique(of_row).tolist():
                at, own = slice(k * times.size, (k + 1) * times.size), of_row == k
                rows = block[own]
                log_hazard[rows], error[rows] = hazards_of_rows(
                    baseline, stratum, pairs[at], found[stratum].part(at), root,
                    new.eta[rows], covariates[own],
                )  # fmt: skip
    unknown = times > windows.end[new.stratum][:, None]
    log_hazard[unknown] = error[unknown] = np.nan
    return log_hazard, error


def hazards_of_rows(
    baseline: Baseline,
    stratum: int,
    windows: Matrix,
    moments: WindowMoments,
    root: Matrix,
    eta: Rows,
    covariates: Matrix,
) -> tuple[Matrix, Matrix]:
    """Log of the hazard of rows of a stratum in windows (k, r), and its standard error."""
    log_hazard = _log_hazard(baseline, stratum, windows) + (eta[:, None] - baseline.center)
    error = np.sqrt(moments.variance(covariates, root))
    error[np.isneginf(log_hazard)] = 0.0
    return log_hazard, error


def _log_hazard(baseline: Baseline, stratum: int, windows: Matrix) -> Rows:
    """Log of the hazard in windows (r, 2), at the center of the baseline."""
    before, upto = (baseline.log_cumulative_at(stratum, at) for at in windows.T)
    with np.errstate(invalid="ignore", divide="ignore"):
        rest = upto + np.log(-np.expm1(before - upto))
    inside: AnyArray = np.where(upto > before, rest, -np.inf)
    return np.where(np.isneginf(before), upto, inside)
