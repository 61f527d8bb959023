"""Brier score: the mean squared error of predicted probabilities."""

import warnings
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from riskset._errors import InputError, RisksetWarning
from riskset._types import AnyArray
from riskset.data.checks import complain_rows
from riskset.data.frame import data_frame
from riskset.data.outcome import Outcome
from riskset.metrics._censored import AtTime, read_chances
from riskset.metrics._sample import PLACES, Sample, any_by_row, as_table, read_times

__all__ = ["BrierScore", "PredictionKind", "brier_score", "read_incidence"]

PredictionKind = Literal["survival", "incidence"]


@dataclass(frozen=True, eq=False)
class BrierScore:
    """Result of `brier_score`.

    Attributes
    ----------
    times : (m,) float64
    score : (m,) float64
        0 is perfect. A prediction of 0.5 for all rows scores 0.25.
    standard_error : (m,) float64
        From the infinitesimal jackknife over rows or clusters, for a prediction that was not made
        from these rows. It accounts for the estimation of G from these rows.
    reference : (m,) float64
        Score of one prediction for all rows, the Kaplan-Meier or Aalen-Johansen estimate.
    integrated : float
        Mean score between the first and the last of `times`, by the trapezoidal rule. With one
        time, the score at this time.
    integrated_standard_error : float

    Examples
    --------
    >>> import riskset as rs
    >>> y = rs.Surv([1.0, 2.0, 3.0, 4.0], [1, 1, 1, 1])
    >>> found = rs.metrics.brier_score(y, [0.9, 0.8, 0.2, 0.1], 2.0)
    >>> found.score.round(3), found.reference, found.accuracy_index.round(3)
    (array([0.725]), array([0.25]), array([-1.9]))
    """

    times: NDArray[np.float64]
    score: NDArray[np.float64]
    standard_error: NDArray[np.float64]
    reference: NDArray[np.float64]
    integrated: float
    integrated_standard_error: float

    @property
    def accuracy_index(self) -> NDArray[np.float64]:
        """Index of prediction accuracy, 1 - score / reference. NaN if the reference is 0."""
        index = np.full(self.times.size, np.nan)
        np.divide(self.reference - self.score, self.reference, out=index, where=self.reference > 0)
        return index

    def to_frame(self, library: str | None = None) -> Any:
        """Return a data frame with one row per time."""
        columns = {
            "time": self.times,
            "score": self.score,
            "standard_error": self.standard_error,
            "reference": self.reference,
            "accuracy_index": self.accuracy_index,
        }
        return data_frame(columns, library)


def brier_score(
    y: AnyArray,
    prediction: object,
    times: object,
    *,
    cause: int | str | None = None,
    prediction_is: PredictionKind | None = None,
    sample_weight: object = None,
    y_train: AnyArray | Outcome | None = None,
    censoring: object = None,
    censored_at_time: AtTime = "unknown",
    cluster: object = None,
) -> BrierScore:
    r"""Compute the Brier score of predicted probabilities at given times, with censored rows.

    .. math::
        BS(t) = \frac{1}{\sum_i w_i} \sum_i w_i \left( \frac{1\{time_i \le t, event_i \ne 0\}}
        {G(time_i-)} + \frac{1\{time_i > t\}}{G(t)} \right)
        \left( 1\{time_i \le t, event_i = cause\} - F_i(t) \right)^2

    where :math:`F_i(t)` is the predicted probability of the event by t, and G the Kaplan-Meier
    estimate of the censoring distribution. At tied times, events come before censorings. A row that
    is censored at or before t adds nothing. A row with a competing event by t counts as a row
    without the event at all later times. G is one curve for all rows. If censoring depends on
    covariates, pass `censoring`. Times after the end of follow-up raise an error.

    Parameters
    ----------
    y : (n,) structured array
        Made by `riskset.Surv`, or by scikit-survival.
    prediction : (n, m) or, for one time, (n,) numbers in [0, 1]
        Prediction for row i at ``times[j]``.
    times : (m,) increasing numbers, or one
    cause : int or str, optional
        Code of the predicted event. Required if `y` has codes above 1.
    prediction_is : {"survival", "incidence"}, optional
        "survival": the probability of no event by t. "incidence": the probability of an event of
        the cause by t. Default: "survival" without `cause`, "incidence" with it.
    sample_weight, y_train, censoring, censored_at_time, cluster
        As for `auc`.

    Returns
    -------
    BrierScore

    Raises
    ------
    InputError
        If a prediction is not a probability, or increases (survival) or decreases (incidence) with
        time. If a required G is 0, for example after the end of follow-up. If rows enter late.

    Warns
    -----
    RisksetWarning
        If no row has an event of the cause.

    Notes
    -----
    Time is O(n log n + n m).

    References
    ----------
    Graf, Schmoor, Sauerbrei and Schumacher (1999), Statistics in Medicine 18, 2529-2545,
    doi:10.1002/(SICI)1097-0258(19990915/30)18:17/18<2529::AID-SIM274>3.0.CO;2-5.
    Schoop, Beyersmann, Schumacher and Binder (2011), Biometrical Journal 53, 88-112,
    doi:10.1002/bimj.201000073.
    Kattan and Gerds (2018), Diagnostic and Prognostic Research 2, 7 (the index),
    doi:10.1186/s41512-018-0029-2.

    Examples
    --------
    >>> import riskset as rs
    >>> y = rs.Surv([1.0, 2.0, 3.0, 4.0], [1, 1, 1, 0])
    >>> rs.metrics.brier_score(y, [0.5, 0.5, 0.5, 0.5], 2.0).score
    array([0.25])
    """
    sample = Sample.read(y, cause, sample_weight, cluster)
    at = read_times(times)
    incidence = read_incidence(prediction, sample, at.size, cause, prediction_is)
    chances = read_chances(sample, at.size, y_train, censoring, censored_at_time)
    score, error, reference = np.empty(at.size), np.empty(at.size), np.empty(at.size)
    width = _trapezoid(at)
    total = sample.weight.sum()
    integrated = np.zeros(sample.n_rows)
    for j in range(at.size):
        known = chances.known_at(float(at[j]), j)
        happened = ~known.alive & sample.is_case
        loss = known.inverse * (happened - incidence[:, j]) ** 2 / total
        score[j] = sample.weight @ loss
        influence = chances.influence(loss, known.steps) - score[j] / total
        error[j] = sample.standard_error(influence)
        integrated += width[j] * influence
        reference[j] = _constant(sample.weight * known.inverse / total, happened)
    return BrierScore(
        times=at,
        score=score,
        standard_error=error,
        reference=reference,
        integrated=float(width @ score),
        integrated_standard_error=sample.standard_error(integrated),
    )


def _constant(share: NDArray[np.float64], happened: NDArray[np.bool_]) -> float:
    """Score of the weighted share with the event as a prediction for everybody."""
    event, free = share[happened].sum(), share[~happened].sum()
    return float(event * (1 - event) ** 2 + free * event**2)


def _trapezoid(times: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weight of each time in the mean over time; they sum to 1."""
    if times.size == 1:
        return np.ones(1)
    gap = np.diff(times)
    share: NDArray[np.float64] = (np.append(0.0, gap) + np.append(gap, 0.0)) / (2 * gap.sum())
    return share


def read_incidence(
    prediction: object,
    sample: Sample,
    n_times: int,
    cause: int | str | None,
    prediction_is: PredictionKind | None,
) -> NDArray[np.float64]:
    """Return predicted probabilities of the event, (n, n_times)."""
    values = as_table(prediction, "prediction")
    if values.ndim == 1 and n_times == 1:
        values = values[:, None]
    if values.shape != (sample.n_rows, n_times):
        raise InputError(
            f"`prediction` must have a row for each of the {sample.n_rows:,} rows of `y` and a "
            f"column for each of the {n_times} times, but its shape is {values.shape}.",
            hint="predict at the same times, for the same rows.",
        )
    complain_rows(
        any_by_row(~((values >= 0) & (values <= 1))),
        values,
        "`prediction`",
        "must be a probability, not missing",
        PLACES,
        hint="pass survival probabilities or cumulative incidences, not risk scores.",
    )
    kind = prediction_is or ("survival" if cause is None else "incidence")
    if kind not in ("survival", "incidence"):
        raise InputError.unknown_name("`prediction_is`", kind, ("survival", "incidence"))
    if kind == "survival" and bool(sample.is_competing.any()):
        raise InputError(
            "`prediction` is said to be survival, but `y` has competing events, so that survival "
            "is not the opposite of the event.",
            hint="pass the cumulative incidence of the cause, and `prediction_is='incidence'`.",
        )
    mean = values.mean(axis=0)
    rises = mean[-1] - mean[0]
    if abs(rises) > 1e-12 and (rises > 0) == (kind == "survival"):
        other = "incidence" if kind == "survival" else "survival"
        raise InputError(
            f"`prediction` is taken for {kind}, but its mean goes from {mean[0]:g} at the first "
            f"time to {mean[-1]:g} at the last.",
            hint=f"if it is {other}, pass prediction_is={other!r}.",
        )
    if not bool((sample.is_case & (sample.weight > 0)).any()):
        warnings.warn(
            f"no row has an event of the cause {sample.cause}.", RisksetWarning, stacklevel=3
        )
    return 1 - values if kind == "survival" else values
