"""Calibration: comparison of predicted and observed probabilities of an event by a time."""

import warnings
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from riskset._errors import InputError, RisksetWarning
from riskset._types import AnyArray, Index, Rows
from riskset.curves.intervals import probability_interval
from riskset.data.frame import data_frame
from riskset.metrics._brier import PredictionKind, read_incidence
from riskset.metrics._censored import read_chances
from riskset.metrics._sample import Sample, read_times
from riskset.metrics._smooth import local_lines

__all__ = ["Calibration", "calibration"]

N_POINTS = 51


@dataclass(frozen=True, eq=False)
class Calibration:
    r"""Result of `calibration`.

    Attributes
    ----------
    time : float
    level : float
        Confidence level of the intervals.
    is_smooth : bool
        Whether it is a smooth curve, not groups.
    predicted : (g,) float64
        Mean prediction of each group, or points of the smooth curve, increasing.
    observed : (g,) float64
        Observed probability of the event by the time. NaN if follow-up ends before it.
    standard_error, lower, upper : (g,) float64
        NaN if the interval is not defined, for example without an event.
    n_rows, n_events : (g,) int64
        Rows of positive weight in the group or around the point, and how many of them are observed
        to have the event by the time.
    mean_predicted, mean_observed : float
        Mean over all rows.
    ratio, ratio_lower, ratio_upper : float
        Calibration in the large: mean_observed / mean_predicted, with an interval on the log scale
        that treats the predictions as fixed.
    mean_distance : float
        Mean over rows of \|observed - predicted\|. With a smooth curve it is the integrated
        calibration index, with groups the expected calibration error.

    Examples
    --------
    >>> import riskset as rs
    >>> y = rs.Surv([1.0, 2.0, 3.0, 4.0], [1, 1, 1, 1])
    >>> found = rs.metrics.calibration(y, [0.3, 0.3, 0.3, 0.3], 2.0, groups=1)
    >>> found.mean_predicted, found.mean_observed, round(found.ratio, 3)
    (0.7, 0.5, 0.714)
    """

    time: float
    level: float
    is_smooth: bool
    predicted: NDArray[np.float64]
    observed: NDArray[np.float64]
    standard_error: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    n_rows: Index
    n_events: Index
    mean_predicted: float
    mean_observed: float
    ratio: float
    ratio_lower: float
    ratio_upper: float
    mean_distance: float

    def to_frame(self, library: str | None = None) -> Any:
        """Return a data frame with one row per group or point."""
        columns = {
            "group": np.arange(1, self.predicted.size + 1),
            "n_rows": self.n_rows,
            "n_events": self.n_events,
            "predicted": self.predicted,
            "observed": self.observed,
            "standard_error": self.standard_error,
            "lower": self.lower,
            "upper": self.upper,
        }
        return data_frame(columns, library)


def calibration(
    y: AnyArray,
    prediction: object,
    time: float,
    *,
    cause: int | str | None = None,
    prediction_is: PredictionKind | None = None,
    groups: int | Literal["smooth"] = 10,
    span: float = 0.75,
    level: float = 0.95,
    sample_weight: object = None,
    cluster: object = None,
) -> Calibration:
    r"""Compare predicted and observed probabilities of the event by a time.

    If `groups` is a number, rows are grouped by quantiles of the predicted probability of the
    event. The mean prediction of a group is compared with the Kaplan-Meier (1 - survival) or
    Aalen-Johansen estimate within the group,

    .. math::
        F(t) = \frac{1}{\sum_i w_i} \sum_i w_i
        \frac{1\{time_i \le t, event_i = cause\}}{G(time_i-)},

    where G is the Kaplan-Meier estimate of the censoring distribution in the group. The standard
    error comes from the infinitesimal jackknife (for Kaplan-Meier without weights, from Greenwood's
    formula). The interval is symmetric on the scale of :math:`\log(-\log S)` for the survival S
    without `cause`, and of :math:`\log(-\log F)` with it.

    With ``groups="smooth"``, local straight lines smooth the pseudo-values :math:`F + (\sum w) \,
    \partial F / \partial w_i` of all rows against the prediction. Each line uses the nearest rows
    with the share `span` of the weight, and weights them by the tricube of their distance. The
    intervals are the value plus or minus z standard errors, cut at 0 and 1. Groups allow censoring
    to depend on the prediction; the smooth curve assumes one censoring distribution for all rows.

    Parameters
    ----------
    y : (n,) structured array
        Made by `riskset.Surv`, or by scikit-survival.
    prediction : (n,) numbers in [0, 1]
        Predictions at `time`.
    time : float
    cause : int or str, optional
        Code of the predicted event. Required if `y` has codes above 1.
    prediction_is : {"survival", "incidence"}, optional
        "survival": the probability of no event. "incidence": the probability of the event. Default:
        "survival" without `cause`, "incidence" with it. The result contains incidences.
    groups : int or "smooth"
        Number of groups, or "smooth". Equal predictions stay in one group, so there may be fewer
        groups.
    span : float in (0, 1]
        Share of the weight that each local line uses, for "smooth".
    level : float in (0, 1)
        Confidence level of the intervals.
    sample_weight : (n,) numbers >= 0, optional
        Case weights. Quantiles and G use them, too.
    cluster : (n,) labels, optional
        Clusters of rows, for the standard errors.

    Returns
    -------
    Calibration

    Raises
    ------
    InputError
        If a prediction is not a probability, rows enter late, or no row is followed up to `time`.

    Warns
    -----
    RisksetWarning
        If no row of a group is followed up to `time`; its observed probability is NaN. If no row
        has an event of the cause.

    Notes
    -----
    Time is O(n log n). "smooth" takes O(n) more for each of its 51 points.

    References
    ----------
    Gerds, Andersen and Kattan (2014), Statistics in Medicine 33, 3191-3203, doi:10.1002/sim.6152.
    Austin and Steyerberg (2019), Statistics in Medicine 38, 4051-4065 (the index),
    doi:10.1002/sim.8281.

    Examples
    --------
    >>> import riskset as rs
    >>> y = rs.Surv([1.0, 2.0, 3.0, 4.0], [1, 1, 0, 1])
    >>> found = rs.metrics.calibration(y, [0.2, 0.4, 0.6, 0.8], 2.0, groups=2)
    >>> found.observed, found.ratio
    (array([0., 1.]), 1.0)
    """
    sample = Sample.read(y, cause, sample_weight, cluster)
    at = float(read_times([time])[0])
    _check(groups, span, level)
    predicted = read_incidence(prediction, sample, 1, cause, prediction_is)[:, 0]
    present = np.flatnonzero(sample.weight > 0)
    sample, predicted = sample.rows(present), predicted[present]
    z = float(ndtri((1 + level) / 2))
    overall, influence = _observed(sample, at)
    if groups == "smooth":
        pseudo = overall + sample.weight.sum() * influence
        curve = _smooth(sample, predicted, pseudo, at, span, z)
    else:
        curve = _grouped(sample, predicted, at, groups, level, cause is None)
    expected = float(np.average(predicted, weights=sample.weight))
    ratio = overall / expected if expected > 0 else float("nan")
    error = sample.standard_error(influence)
    factor = float(np.exp(z * error / overall)) if overall > 0 else float("nan")
    return Calibration(
        time=at,
        level=level,
        is_smooth=groups == "smooth",
        **curve._asdict(),
        mean_predicted=expected,
        mean_observed=overall,
        ratio=ratio,
        ratio_lower=ratio / factor,
        ratio_upper=ratio * factor,
    )


class _Curve(NamedTuple):
    """Fields of `Calibration` that groups and smooth curves make in different ways."""

    predicted: NDArray[np.float64]
    observed: NDArray[np.float64]
    standard_error: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    n_rows: Index
    n_events: Index
    mean_distance: float


def _check(groups: object, span: float, level: float) -> None:
    is_number = isinstance(groups, (int, np.integer)) and not isinstance(groups, bool)
    if groups != "smooth" and not (is_number and groups >= 1):  # type: ignore[operator]
        raise InputError(
            f"`groups` must be a number of groups or 'smooth', but it is {groups!r}.",
            hint="10 is usual.",
        )
    for name, value, is_right in (
        ("span", span, 0 < span <= 1),
        ("level", level, 0 < level < 1),
    ):
        if not is_right:
            raise InputError(
                f"`{name}` must be a share between 0 and 1, but it is {value!r}.",
                hint="0.75 and 0.95 are usual for `span` and `level`.",
            )


def _observed(sample: Sample, time: float) -> tuple[float, Rows]:
    """Kaplan-Meier or Aalen-Johansen estimate, and its derivative by the weight of each row."""
    chances = read_chances(sample, 1, None, None, "event_free")
    known = chances.known_at(time, 0)
    happened = ~known.alive & sample.is_case
    total = sample.weight.sum()
    part = np.where(happened, known.inverse, 0.0) / total
    # The estimate is 1 only up to rounding if everybody has the event.
    value = min(float(sample.weight @ part), 1.0)
    return value, chances.influence(part, known.steps) - value / total


def _grouped(
    sample: Sample, predicted: Rows, time: float, n_groups: int, level: float, is_survival: bool
) -> _Curve:
    middle, code = _positions(predicted, sample.weight)
    group = np.minimum((middle * n_groups).astype(np.int64), n_groups - 1)
    _, of_row = np.unique(group[code], return_inverse=True)
    order = np.argsort(of_row, kind="stable")
    members = np.split(order, np.cumsum(np.bincount(of_row))[:-1])
    found = np.array([_of_group(sample.rows(rows), time) for rows in members])
    mean = np.array([np.average(predicted[r], weights=sample.weight[r]) for r in members])
    share = np.array([sample.weight[r].sum() for r in members]) / sample.weight.sum()
    observed, error = found[:, 0], found[:, 1]
    lower, upper = _interval(observed, error, level, is_survival)
    n_rows = np.array([rows.size for rows in members])
    happened = sample.is_case & (sample.time <= time)
    n_events = np.array([np.count_nonzero(happened[rows]) for rows in members])
    distance = float(share @ np.abs(observed - mean))
    return _Curve(mean, observed, error, lower, upper, n_rows, n_events, distance)


def _of_group(sample: Sample, time: float) -> tuple[float, float]:
    try:
        value, influence = _observed(sample, time)
    except InputError:
        warnings.warn(
            f"of the {sample.n_rows:,} rows of a group nobody is followed up to time {time:g}, so "
            "the probability that is observed there is not known (NaN).",
            RisksetWarning,
            stacklevel=4,
        )
        return float("nan"), float("nan")
    return value, sample.standard_error(influence)


def _interval(
    value: NDArray[np.float64], error: NDArray[np.float64], level: float, is_survival: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Interval as that of the curve; NaN where F is 0 or 1."""
    known = np.where((value > 0) & (value < 1), error, np.nan)
    if not is_survival:
        return probability_interval(value, known, level, "log-log")
    lower, upper = probability_interval(1 - value, known, level, "log-log")
    return 1 - upper, 1 - lower


def _smooth(
    sample: Sample, predicted: Rows, pseudo: Rows, time: float, span: float, z: float
) -> _Curve:
    middle, code = _positions(predicted, sample.weight)
    values = np.unique(predicted)
    at = np.searchsorted(middle, np.linspace(0, 1, N_POINTS)).clip(max=values.size - 1)
    points = np.unique(np.append(values[at], values[0]))
    happened = sample.is_case & (sample.time <= time)
    line = local_lines(points, predicted, pseudo, happened, sample, span)
    # A straight line may leave the range of probabilities where it has few rows.
    observed = line.value.clip(0, 1)
    lower, upper = (
        (line.value + side * z * line.standard_error).clip(0, 1) for side in (-1.0, 1.0)
    )
    distance = np.abs(np.interp(values, points, observed) - values)[code]
    mean = float(np.average(distance, weights=sample.weight))
    return _Curve(
        points, observed, line.standard_error, lower, upper, line.n_near, line.n_happened, mean
    )


def _positions(predicted: Rows, weight: Rows) -> tuple[NDArray[np.float64], Index]:
    """Where each distinct prediction stands in the weight, in (0, 1), and their codes by row."""
    _, code = np.unique(predicted, return_inverse=True)
    code = code.reshape(-1)
    of_value = np.bincount(code, weight)
    before = np.append(0.0, np.cumsum(of_value)[:-1])
    return (before + of_value / 2) / of_value.sum(), code
