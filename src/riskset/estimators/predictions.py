"""Predicted values of new rows with standard errors and confidence limits."""

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from scipy.special import ndtri

from riskset._errors import InputError
from riskset._types import AnyArray, Matrix, Rows
from riskset.curves.intervals import check_interval_type, probability_interval
from riskset.data.frame import data_frame

__all__ = [
    "PredictedKind",
    "PredictionVariance",
    "Predictions",
    "check_kind",
    "check_variance",
    "chosen_interval",
    "limits",
    "of_log_hazard",
]

PredictedKind = Literal["survival", "cumulative_hazard", "cumulative_incidence"]
PredictionVariance = Literal["auto", "model", "robust"]

POSITIVE = ("log", "plain")
"""Intervals of a number that is not negative, and may be larger than 1."""


@dataclass(frozen=True, eq=False, repr=False)
class Predictions:
    """Predicted values of k rows with standard errors and confidence limits.

    The result of `predict_interval`, `predict_quantile`, `predict_restricted_mean` and
    `predict_time_lost` of a fitted model.

    Attributes
    ----------
    kind : str
        "survival", "cumulative_hazard", "cumulative_incidence", "quantile", "restricted_mean" or
        "time_lost".
    at_name : str
        What `at` is: "time", or "proportion" for quantiles.
    at : (m,) float64
        Times, or proportions.
    estimate, lower, upper : (k, m) float64
        NaN if not known, for example after the end of follow-up. A limit of a quantile is NaN if
        the interval has no limit on that side.
    standard_error : (k, m) float64 or None
        Quantiles have none.
    level : float
        Coverage of the intervals.
    interval : str
        Kind of the intervals.
    variance : str
        Method of the standard errors: "model" or "robust".

    Examples
    --------
    >>> import riskset as rs
    >>> cohort = rs.simulate_cox(200, 3, 0.5, 1)
    >>> model = rs.Cox().fit(cohort.X, rs.Surv(cohort.time, cohort.event))
    >>> found = model.predict_interval(cohort.X[:2], [0.1, 0.2])
    >>> found
    Predictions: survival of 2 rows at 2 times (95% log-log intervals, variance 'model')
    >>> bool((found.lower <= found.estimate).all()), list(found.columns())
    (True, ['row', 'time', 'estimate', 'standard_error', 'lower', 'upper'])
    """

    kind: str
    at_name: str
    at: Rows
    estimate: Matrix
    standard_error: Matrix | None
    lower: Matrix
    upper: Matrix
    level: float
    interval: str
    variance: str

    def __repr__(self) -> str:
        k, m = self.estimate.shape
        rows = f"{k:,} row{'s' * (k != 1)}"
        return (
            f"Predictions: {self.kind} of {rows} at {m:,} {self.at_name}{'s' * (m != 1)} "
            f"({self.level:.0%} {self.interval} intervals, variance {self.variance!r})"
        )

    def columns(self) -> dict[str, AnyArray]:
        """Return one row per row and time as columns: the position of the row from 0, and so on."""
        k, m = self.estimate.shape
        values = {
            "estimate": self.estimate,
            "standard_error": self.standard_error,
            "lower": self.lower,
            "upper": self.upper,
        }
        columns = {"row": np.repeat(np.arange(k), m), self.at_name: np.tile(self.at, k)}
        return columns | {name: v.ravel() for name, v in values.items() if v is not None}

    def to_frame(self, library: str | None = None) -> Any:
        """Return `columns` as a data frame, of pandas, polars or Arrow."""
        return data_frame(self.columns(), library)


def chosen_interval(interval: str | None, kind: str) -> str:
    """The kind of an interval: by default log-log for probabilities, and log for hazards."""
    if kind in ("survival", "cumulative_incidence"):
        interval = "log-log" if interval is None else interval
        check_interval_type(interval)
        return interval
    interval = "log" if interval is None else interval
    if interval not in POSITIVE:
        raise InputError.wrong_option("interval", interval, POSITIVE)
    return interval


def limits(
    estimate: Matrix, error: Matrix, level: float, interval: str, *, is_probability: bool
) -> tuple[Matrix, Matrix]:
    r"""Confidence limits of probabilities, or of other numbers that are not negative.

    With the standard error s, the latter are :math:`v e^{\pm z s / v}` (log) or :math:`v \pm z s`,
    cut at 0 (plain).
    """
    if is_probability:
        return probability_interval(estimate, error, level, interval)
    half = float(ndtri(0.5 + level / 2)) * error
    if interval == "plain":
        return np.maximum(estimate - half, 0.0), estimate + half
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        factor = np.where(half == 0, 1.0, np.exp(half / estimate))
        return estimate / factor, estimate * factor


def of_log_hazard(kind: PredictedKind, log_hazard: Matrix, error: Matrix) -> tuple[Matrix, Matrix]:
    """What a log of a cumulative hazard makes of a kind of prediction, and its standard error."""
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        hazard = np.exp(log_hazard)
        if kind == "cumulative_hazard":
            return hazard, np.where(error == 0, 0.0, hazard * error)
        slope = np.where(np.isposinf(hazard), 0.0, np.exp(log_hazard - hazard))
        estimate = np.exp(-hazard) if kind == "survival" else np.abs(np.expm1(-hazard))
        return estimate, slope * error


def check_kind(kind: str, known: tuple[str, ...]) -> None:
    """Refuse an unknown kind of prediction."""
    if kind not in known:
        raise InputError.wrong_option("kind", kind, known)


def check_variance(variance: str) -> None:
    """Refuse an unknown method of the standard errors."""
    if variance not in get_args(PredictionVariance):
        raise InputError.wrong_option("variance", variance, get_args(PredictionVariance))
