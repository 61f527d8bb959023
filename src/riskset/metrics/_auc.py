"""Time-dependent AUC: how well a score separates cases and controls at a time."""

import warnings
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from riskset._errors import InputError, RisksetWarning
from riskset._types import AnyArray, Index, Rows
from riskset.data.frame import data_frame
from riskset.data.outcome import Outcome
from riskset.metrics._censored import AtTime, Known, read_chances
from riskset.metrics._sample import Sample, distinct, read_score, read_times

__all__ = [
    "AUC",
    "ControlDefinition",
    "auc",
    "cases_and_controls",
    "check_controls",
    "weighted_area",
]

ControlDefinition = Literal["event_free", "event_free_or_competing"]


@dataclass(frozen=True, eq=False)
class AUC:
    """Result of `auc`.

    Attributes
    ----------
    times : (m,) float64
    auc : (m,) float64
        NaN if there are no cases or no controls.
    standard_error : (m,) float64
        From the infinitesimal jackknife over rows or clusters, for a score that was not fitted to
        these rows. It accounts for the estimation of G from these rows.
    n_cases, n_controls : (m,) int64
        Rows of positive weight that are known to be cases, and controls.

    Examples
    --------
    >>> import riskset as rs
    >>> y = rs.Surv([1.0, 2.0, 3.0, 4.0], [1, 1, 1, 0])
    >>> found = rs.metrics.auc(y, [0.9, 0.3, 0.5, 0.1], [2.0, 3.0])
    >>> found.auc, found.n_cases, found.n_controls
    (array([0.75, 1.  ]), array([2, 3]), array([2, 1]))
    """

    times: NDArray[np.float64]
    auc: NDArray[np.float64]
    standard_error: NDArray[np.float64]
    n_cases: Index
    n_controls: Index

    def to_frame(self, library: str | None = None) -> Any:
        """Return a data frame with one row per time."""
        columns = {
            "time": self.times,
            "auc": self.auc,
            "standard_error": self.standard_error,
            "n_cases": self.n_cases,
            "n_controls": self.n_controls,
        }
        return data_frame(columns, library)


def auc(
    y: AnyArray,
    risk_score: object,
    times: object,
    *,
    cause: int | str | None = None,
    controls: ControlDefinition = "event_free_or_competing",
    sample_weight: object = None,
    y_train: AnyArray | Outcome | None = None,
    censoring: object = None,
    censored_at_time: AtTime = "unknown",
    cluster: object = None,
) -> AUC:
    r"""Compute the cumulative/dynamic area under the curve at given times, with censored rows.

    .. math::
        AUC(t) = \frac{\sum_{i,j} W_i V_j \left( 1\{m_i > m_j\} + \tfrac12 1\{m_i = m_j\} \right)}
        {\sum_i W_i \sum_j V_j}, \qquad
        W_i = \frac{w_i 1\{time_i \le t, event_i = cause\}}{G(time_i-)}

    where m is the score. Controls j are event-free at t, :math:`V_j = w_j 1\{time_j > t\} / G(t)`,
    or have had a competing event, :math:`V_j = w_j 1\{time_j \le t, event_j \notin \{0, cause\}\} /
    G(time_j-)`. G is the Kaplan-Meier estimate of the censoring distribution. At tied times, events
    come before censorings. Rows censored at or before t are neither cases nor controls. G is one
    curve for all rows. If censoring depends on covariates, pass `censoring`.

    Parameters
    ----------
    y : (n,) structured array
        Made by `riskset.Surv`, or by scikit-survival.
    risk_score : (n,) or (n, m) numbers
        Higher means that the event by t is more likely: a linear predictor, or an incidence (1 -
        survival) at each time. Infinite scores are allowed, missing ones are not.
    times : (m,) increasing numbers, or one
    cause : int or str, optional
        Code of the event. Required if `y` has codes above 1.
    controls : {"event_free_or_competing", "event_free"}
        Whether rows with a competing event by t are controls (definition ii of Blanche et al.) or
        are left out (definition i). Without competing events, both are the same.
    sample_weight : (n,) numbers >= 0, optional
        Case weights. G uses them, too.
    y_train : structured array or Outcome, optional
        Rows from which G is estimated instead of `y`. The case weights of an `Outcome` are used.
    censoring : pair of arrays, optional
        Probabilities of being uncensored, for example from a model: just before the time of each
        row, (n,), and at `times`, (m,) or (n, m).
    censored_at_time : {"unknown", "event_free"}
        The state of a row that is censored at t. "unknown": it adds nothing, as in the formula.
        "event_free": it counts as event-free with weight :math:`1 / G(t-)`. Use this if t is the
        administrative end of follow-up.
    cluster : (n,) labels, optional
        Clusters of rows, for the standard error.

    Returns
    -------
    AUC

    Raises
    ------
    InputError
        If scores are missing or have the wrong shape, if a required G is 0, for example after the
        end of follow-up, or if rows enter late.

    Warns
    -----
    RisksetWarning
        If a time has no cases or no controls.

    Notes
    -----
    Time is O(n log n) per column of scores, and O(n) more per time.

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
    >>> rs.metrics.auc(y, [0.9, 0.3, 0.5, 0.1], 2.0).auc
    array([0.75])
    """
    sample = Sample.read(y, cause, sample_weight, cluster)
    at = read_times(times)
    score = read_score(risk_score, sample.n_rows, at.size)
    check_controls(controls)
    chances = read_chances(sample, at.size, y_train, censoring, censored_at_time)
    area, error = np.full(at.size, np.nan), np.full(at.size, np.nan)
    counts = np.zeros((2, at.size), dtype=np.int64)
    ranks = _ranks(score) if score.ndim == 1 else None
    for j in range(at.size):
        known = chances.known_at(float(at[j]), j)
        case, control = cases_and_controls(known, sample, controls)
        counts[:, j] = [np.count_nonzero(known.inverse[rows]) for rows in (case, control)]
        if counts[:, j].min() == 0:
            warnings.warn(
                f"at time {at[j]:g} there are {counts[0, j]:,} cases and {counts[1, j]:,} controls,"
                " so the AUC is not defined (NaN).",
                RisksetWarning,
                stacklevel=2,
            )
            continue
        rank = _ranks(score[:, j]) if ranks is None else ranks
        area[j], slope = weighted_area(rank, sample.weight * known.inverse, case, control)
        influence = chances.influence(known.inverse * slope, known.steps)
        error[j] = sample.standard_error(influence)
    return AUC(times=at, auc=area, standard_error=error, n_cases=counts[0], n_controls=counts[1])


def check_controls(controls: str) -> None:
    """Refuse an unknown definition of controls."""
    if controls not in get_args(ControlDefinition):
        raise InputError.unknown_name("`controls`", controls, get_args(ControlDefinition))


def cases_and_controls(
    known: Known, sample: Sample, controls: ControlDefinition
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Rows with the event by a time, and those with which they are compared."""
    case = ~known.alive & sample.is_case
    return case, ~case if controls == "event_free_or_competing" else known.alive


def _ranks(score: Rows) -> Index:
    return distinct(score)[1]


def weighted_area(
    rank: Index, weight: Rows, case: NDArray[np.bool_], control: NDArray[np.bool_]
) -> tuple[float, Rows]:
    """The area, and its derivative by the weight of each case and control."""
    n_ranks = int(rank.max()) + 1
    # Weights as shares of their kind, so that nothing overflows.
    of_cases, of_controls = weight[case].sum(), weight[control].sum()
    cases = np.bincount(rank[case], weight[case] / of_cases, n_ranks)
    controls = np.bincount(rank[control], weight[control] / of_controls, n_ranks)
    below = np.append(0.0, np.cumsum(controls)[:-1]) + controls / 2
    above = np.append(np.cumsum(cases[::-1])[::-1][1:], 0.0) + cases / 2
    area = min(float(cases @ below), 1.0)
    slope = np.zeros(rank.size)
    slope[case] = (below[rank[case]] - area) / of_cases
    slope[control] = (above[rank[control]] - area) / of_controls
    return area, slope
