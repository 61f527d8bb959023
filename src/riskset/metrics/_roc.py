"""Time-dependent ROC curve: sensitivity and specificity of a score at every threshold."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from riskset._errors import InputError
from riskset._types import AnyArray
from riskset.data.frame import data_frame
from riskset.data.outcome import Outcome
from riskset.metrics._auc import (
    ControlDefinition,
    cases_and_controls,
    check_controls,
    weighted_area,
)
from riskset.metrics._censored import AtTime, read_chances
from riskset.metrics._sample import Sample, distinct, read_score, read_times

__all__ = ["ROC", "roc"]


@dataclass(frozen=True, eq=False)
class ROC:
    """Result of `roc`.

    Attributes
    ----------
    time : float
    threshold : (k,) float64
        Distinct scores, descending, after infinity. A row is called a case if its score is at least
        the threshold.
    true_positive_rate, false_positive_rate : (k,) float64
        Share of the cases, and of the controls, whose scores are at least the threshold: from 0 to
        1.
    auc : float
        Area under the curve by the trapezoidal rule. It equals that of `auc`.
    standard_error : float
        Of the area, as that of `auc`.
    n_cases, n_controls : int
        Rows of positive weight that are known to be cases, and controls.

    Examples
    --------
    >>> import riskset as rs
    >>> y = rs.Surv([1.0, 2.0, 3.0, 4.0], [1, 1, 1, 0])
    >>> found = rs.metrics.roc(y, [0.9, 0.3, 0.5, 0.1], 2.0)
    >>> found.auc, found.n_cases, found.n_controls
    (0.75, 2, 2)
    """

    time: float
    threshold: NDArray[np.float64]
    true_positive_rate: NDArray[np.float64]
    false_positive_rate: NDArray[np.float64]
    auc: float
    standard_error: float
    n_cases: int
    n_controls: int

    def to_frame(self, library: str | None = None) -> Any:
        """Return a data frame with one row per threshold."""
        columns = {
            "threshold": self.threshold,
            "true_positive_rate": self.true_positive_rate,
            "false_positive_rate": self.false_positive_rate,
        }
        return data_frame(columns, library)


def roc(
    y: AnyArray,
    risk_score: object,
    time: float,
    *,
    cause: int | str | None = None,
    controls: ControlDefinition = "event_free_or_competing",
    sample_weight: object = None,
    y_train: AnyArray | Outcome | None = None,
    censoring: object = None,
    censored_at_time: AtTime = "unknown",
    cluster: object = None,
) -> ROC:
    r"""Compute the cumulative/dynamic ROC curve at a time, with censored rows.

    .. math::
        TP(c) = \frac{\sum_i W_i 1\{m_i \ge c\}}{\sum_i W_i}, \qquad
        FP(c) = \frac{\sum_j V_j 1\{m_j \ge c\}}{\sum_j V_j}

    where m is the score, and W and V are the weights of cases and controls in `auc`.

    Parameters
    ----------
    y : (n,) structured array
        Made by `riskset.Surv`, or by scikit-survival.
    risk_score : (n,) numbers
        Higher means that the event by `time` is more likely.
    time : float
    cause, controls, sample_weight, y_train, censoring, censored_at_time, cluster
        As for `auc`.

    Returns
    -------
    ROC

    Raises
    ------
    InputError
        As `auc`, and if there are no cases or no controls.

    Notes
    -----
    Time is O(n log n).

    References
    ----------
    Uno, Cai, Tian and Wei (2007), Journal of the American Statistical Association 102, 527-537,
    doi:10.1198/016214507000000149.
    Blanche, Dartigues and Jacqmin-Gadda (2013), Statistics in Medicine 32, 5381-5397,
    doi:10.1002/sim.5958.

    Examples
    --------
    >>> import riskset as rs
    >>> y = rs.Surv([1.0, 2.0, 3.0, 4.0], [1, 1, 1, 0])
    >>> found = rs.metrics.roc(y, [0.9, 0.3, 0.5, 0.1], 2.0)
    >>> found.true_positive_rate.tolist(), found.false_positive_rate.tolist()
    ([0.0, 0.5, 0.5, 1.0, 1.0], [0.0, 0.0, 0.5, 0.5, 1.0])
    """
    sample = Sample.read(y, cause, sample_weight, cluster)
    at = read_times([time])
    score = read_score(risk_score, sample.n_rows)
    check_controls(controls)
    chances = read_chances(sample, 1, y_train, censoring, censored_at_time)
    known = chances.known_at(float(at[0]), 0)
    case, control = cases_and_controls(known, sample, controls)
    n_cases, n_controls = (int(np.count_nonzero(known.inverse[rows])) for rows in (case, control))
    if not n_cases or not n_controls:
        raise InputError(
            f"at time {at[0]:g} there are {n_cases:,} cases and {n_controls:,} controls, so there "
            "is no ROC curve.",
            hint="choose a time by which some rows have had the event, and others are followed.",
        )
    values, rank = distinct(score)
    weight = sample.weight * known.inverse
    has_rows = np.bincount(rank, sample.weight, values.size) > 0
    rates = []
    for rows in (case, control):
        share = np.bincount(rank[rows], weight[rows] / weight[rows].sum(), values.size)[has_rows]
        rates.append(np.append(0.0, np.cumsum(share[::-1])).clip(max=1.0))
    area, slope = weighted_area(rank, weight, case, control)
    influence = chances.influence(known.inverse * slope, known.steps)
    return ROC(
        time=float(at[0]),
        threshold=np.append(np.inf, values[has_rows][::-1]),
        true_positive_rate=rates[0],
        false_positive_rate=rates[1],
        auc=area,
        standard_error=sample.standard_error(influence),
        n_cases=n_cases,
        n_controls=n_controls,
    )
