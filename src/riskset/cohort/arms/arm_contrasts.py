"""Estimates of both arms, their differences and their ratios, with intervals."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from riskset._errors import counted
from riskset._messages import Note
from riskset._types import AnyArray, Rows
from riskset.cohort.arms.curves import ARMS
from riskset.curves.restricted_contrast import Contrast, ContrastKind, contrast, interval_of
from riskset.data.frame import data_frame
from riskset.infer.wald import normal_quantile

__all__ = ["ArmEstimates", "Cells", "normal_estimates", "resampled_estimates"]

KINDS: tuple[ContrastKind, ...] = ("difference", "ratio")
Cells = NDArray[np.float64]
"""A number for each measure and time (q, k)."""


@dataclass(frozen=True, eq=False, repr=False)
class ArmEstimates:
    """Measures (q,) of the arms at times (k,), and how the arms differ; all cells are (q, k)."""

    measures: tuple[str, ...]
    times: Rows
    target: Cells
    target_se: Cells
    target_lower: Cells
    target_upper: Cells
    comparator: Cells
    comparator_se: Cells
    comparator_lower: Cells
    comparator_upper: Cells
    difference: Cells
    difference_se: Cells
    difference_lower: Cells
    difference_upper: Cells
    difference_p: Cells
    ratio: Cells
    log_ratio_se: Cells
    ratio_lower: Cells
    ratio_upper: Cells
    ratio_p: Cells

    def columns(self) -> dict[str, AnyArray]:
        """Return one row per measure and time."""
        q, k = self.difference.shape
        columns: dict[str, AnyArray] = {
            "measure": np.repeat(np.array(self.measures, dtype=object), k),
            "time": np.tile(self.times, q),
        }
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray) and field.name != "times":
                columns[field.name] = value.reshape(-1) if value.ndim == 2 else np.tile(value, q)
        return columns

    def to_frame(self, library: str | None = None) -> Any:
        """Return `columns` as a data frame."""
        return data_frame(self.columns(), library)

    def _described(self, head: str, n_left_out: int, notes: Iterable[Note]) -> str:
        """A line for each measure and time, after a head."""
        lines = [head]
        for q, measure in enumerate(self.measures):
            for k, time in enumerate(self.times):
                lines.append(
                    f"  {measure.replace('_', ' ')} by {time:g}: {self.target[q, k]:.4f} - "
                    f"{self.comparator[q, k]:.4f} = {self.difference[q, k]:.4f} "
                    f"({self.difference_lower[q, k]:.4f} to {self.difference_upper[q, k]:.4f})"
                )
        if n_left_out:
            lines.append(f"  {counted(n_left_out, 'resample')} left out")
        return "\n".join([*lines, *(f"  {note.message}" for note in notes)])


def normal_estimates(
    value: NDArray[np.float64],
    variance: NDArray[np.float64],
    covariance: Cells,
    level: float,
    largest: Rows | Cells,
) -> dict[str, Cells]:
    """The cells of `ArmEstimates` with normal intervals.

    `value` and `variance` are of the target and of the comparator (2, q, k). Limits of the arms are
    between 0 and `largest`.
    """
    z = normal_quantile(level)
    found: dict[str, Cells] = {}
    for arm, name in enumerate(ARMS):
        error = np.sqrt(variance[arm])
        found |= {name: value[arm], f"{name}_se": error}
        found[f"{name}_lower"] = np.maximum(value[arm] - z * error, 0.0)
        found[f"{name}_upper"] = np.minimum(value[arm] + z * error, largest)
    for kind in KINDS:
        values, variances = (value[0], value[1]), (variance[0], variance[1])
        found |= _named(kind, contrast(kind, values, variances, covariance, level))
    return found


def resampled_estimates(
    value: NDArray[np.float64], good: NDArray[np.float64], level: float
) -> dict[str, Cells]:
    """The cells of `ArmEstimates` (2, q, k) with percentiles of resamples (m, 2, q, k)."""
    found: dict[str, Cells] = {}
    with np.errstate(divide="ignore", invalid="ignore"):
        for arm, name in enumerate(ARMS):
            spread = _spread(good[:, arm] if len(good) else good, value[arm], level)
            found |= {name: value[arm], f"{name}_se": spread.standard_error}
            found |= {f"{name}_lower": spread.lower, f"{name}_upper": spread.upper}
        for kind in KINDS:
            of = _difference if kind == "difference" else _log_ratio
            center, drawn = of(value), of(good.swapaxes(0, 1)) if len(good) else good
            spread = _spread(drawn, center, level)
            normal = interval_of(kind, center, spread.standard_error, level)
            ends_of = (spread.lower, spread.upper)
            lower, upper = map(np.exp, ends_of) if kind == "ratio" else ends_of
            found |= _named(kind, normal._replace(lower=lower, upper=upper))
    return found


class _Spread(NamedTuple):
    standard_error: Cells
    lower: Cells
    upper: Cells


def _spread(draws: NDArray[np.float64], center: Cells, level: float) -> _Spread:
    """Standard deviation and percentiles of resamples; NaN where the estimate is not known.

    They are NaN with fewer than two resamples, and where one of them is infinite.
    """
    nothing = np.full_like(center, np.nan)
    if len(draws) < 2:
        return _Spread(nothing, nothing, nothing)
    is_known = np.isfinite(center) & np.isfinite(draws).all(axis=0)
    tail = (1 - level) / 2
    lower, upper = np.quantile(draws, [tail, 1 - tail], axis=0)
    parts = (draws.std(axis=0, ddof=1), lower, upper)
    return _Spread(*(np.where(is_known, part, np.nan) for part in parts))


def _difference(value: NDArray[np.float64]) -> NDArray[np.float64]:
    """Target minus comparator; the first axis has the arms."""
    return np.asarray(value[0] - value[1])


def _log_ratio(value: NDArray[np.float64]) -> NDArray[np.float64]:
    """Logarithm of target divided by comparator; NaN where one of them is 0."""
    a, b = (np.where(side > 0, side, np.nan) for side in value)
    return np.asarray(np.log(a) - np.log(b))


def _named(kind: ContrastKind, found: Contrast) -> dict[str, Cells]:
    error = f"{'log_' if kind == 'ratio' else ''}{kind}_se"
    names = (kind, error, f"{kind}_lower", f"{kind}_upper", f"{kind}_p")
    return dict(zip(names, found, strict=True))
