"""Risks and restricted means of many rows, averaged, and how hazards and coefficients move them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from riskset._runtime import one_blas_thread
from riskset._types import Matrix, Rows
from riskset.model.incidence import CHUNK

__all__ = ["AVERAGED", "Averages", "averages"]

AVERAGED = ("risk", "restricted_mean", "time_lost")
"""Incidence of the first cause, time without any event, and time lost to the first cause."""

MAX_LOG_FACTOR = 700.0
"""Hazards of larger logarithms are not finite; nobody survives a smaller one."""


@dataclass(frozen=True, eq=False)
class Averages:
    """Values of rows (N, 3, k) for the measures of `AVERAGED` at k times, and their derivatives.

    `by_eta` (J, N, 3, k) are those of each row in its linear predictors, for J causes. `by_step`
    (J, 3, k, T) are those of the weighted mean of the rows in the log of each hazard increment.
    """

    value: NDArray[np.float64]
    by_eta: NDArray[np.float64]
    by_step: NDArray[np.float64]


@one_blas_thread
def averages(
    time: Rows,
    log_step: Matrix,
    eta: Matrix,
    weight: Rows,
    until: Rows,
    *,
    before: Rows | None = None,
) -> Averages:
    r"""Predictions of rows from the hazards of J causes, of which the first is the outcome.

    Row i has the increments :math:`h_{jg} = e^{s_{jg} + \eta_{ji}}` at the times g. With their sum
    :math:`h_g`, the survival S and the incidence F of the first cause (as in
    `riskset.model.incidence`), every measure is a sum over times, :math:`c + \sum_l w_l S_l` or
    :math:`\sum_l w_l F_l`: the spans between times for areas, one time for a risk. Its derivatives
    in the log of an increment are

    .. math::
        \frac{\partial \sum_l w_l S_l}{\partial \log h_{jg}} = -h_{jg} \sum_{l \ge g} w_l S_l,
        \qquad
        \frac{\partial \sum_l w_l F_l}{\partial \log h_{jg}} = h_{jg} \Big( (b_{jg} + F_g)
        \sum_{l \ge g} w_l - \sum_{l \ge g} w_l F_l \Big)

    with b as in `riskset.infer.hazard_sensitivities`. In that, only S and F differ between rows
    other than by a factor, so that all sums over times and rows are products of matrices.

    Parameters
    ----------
    time : (T,) float64
        Times of events of any cause, ascending.
    log_step : (J, T) float64
        Logs of the increments for a linear predictor of 0; -inf without an event of the cause.
    eta : (J, N) float64
    weight : (N,) float64
        Weights of the mean; they add up to 1.
    until : (k,) float64
    before : (T,) float64, optional
        Which share of the span up to each time passes before the hazards rise; `until` must then be
        among the times. Default: all of it.

    Notes
    -----
    O(J N T) time, and for J = 1 a single exponential for each row and time. Nothing has N times T
    numbers.
    """
    n_causes, n_rows, k = eta.shape[0], eta.shape[1], until.size
    step = np.exp(np.minimum(log_step, MAX_LOG_FACTOR))
    spans, first = _spans(time, until) if before is None else _shares(time, until, before)
    last = np.zeros((k, time.size))
    seen = np.searchsorted(time, until, side="right")
    known = np.flatnonzero(seen > 0)
    last[known, seen[known] - 1] = 1.0
    found = Averages(
        np.zeros((n_rows, 3, k)), np.zeros((n_causes, n_rows, 3, k)),
        np.zeros((n_causes, 3, k, time.size)),
    )  # fmt: skip
    if not time.size:
        found.value[:, 1] = until
        return found
    size = max(1, CHUNK // (n_causes * time.size))
    for a in range(0, n_rows, size):
        rows = slice(a, a + size)
        factor = np.exp(np.clip(eta[:, rows], -MAX_LOG_FACTOR, MAX_LOG_FACTOR))
        if n_causes == 1:
            _add_single(found, rows, step[0], factor[0], weight[rows], (last, spans, first, until))
        else:
            _add_competing(found, rows, step, factor, weight[rows], (last, spans, first))
    return found


def _spans(time: Rows, until: Rows) -> tuple[Matrix, Rows]:
    """Length of the part of each step before each end (k, T), and of that before all steps (k,)."""
    ends = np.append(time, np.inf)[1:]
    spans = np.clip(np.minimum(ends, until[:, None]) - time, 0.0, None)
    return spans, np.minimum(until, time[0]) if time.size else until


def _shares(time: Rows, until: Rows, before: Rows) -> tuple[Matrix, Rows]:
    """How long the value at each time counts up to each end (k, T), and that before the first."""
    width = np.diff(time, prepend=0.0)
    own, following = (1.0 - before) * width, np.append((before * width)[1:], 0.0)
    spans = own * (time <= until[:, None]) + following * (time < until[:, None])
    return spans, np.full(until.size, before[0] * width[0])


def _later(values: Matrix) -> Matrix:
    """Sum of each value and all later ones of its row."""
    return np.asarray(np.cumsum(values[:, ::-1], axis=1)[:, ::-1])


def _add_single(
    found: Averages,
    rows: slice,
    step: Rows,
    factor: Rows,
    weight: Rows,
    shape: tuple[Matrix, Matrix, Rows, Rows],
) -> None:
    """The rows of a block with one cause, whose incidence is 1 minus the survival."""
    last, spans, first, until = shape
    cumulative = np.cumsum(step)
    survival = np.exp(-np.multiply.outer(factor, cumulative))
    pull = (weight * factor) @ survival
    for kind, weights in ((0, last), (1, spans)):
        value = survival @ weights.T
        by_eta = -factor[:, None] * (survival @ (weights * cumulative).T)
        by_step = -step * _later(pull * weights)
        if kind == 0:
            has_time = weights.any(axis=1)
            found.value[rows, 0] = np.where(has_time, 1.0 - value, 0.0)
            found.by_eta[0, rows, 0] = -by_eta
            found.by_step[0, 0] -= by_step
            continue
        found.value[rows, 1] = first + value
        found.value[rows, 2] = until - found.value[rows, 1]
        for q, sign in ((1, 1.0), (2, -1.0)):
            found.by_eta[0, rows, q] = sign * by_eta
            found.by_step[0, q] += sign * by_step


def _add_competing(
    found: Averages,
    rows: slice,
    step: Matrix,
    factor: Matrix,
    weight: Rows,
    shape: tuple[Matrix, Matrix, Rows],
) -> None:
    """The rows of a block with several causes."""
    last, spans, first = shape
    hazards = factor[:, :, None] * step[:, None, :]
    total = hazards.sum(axis=0)
    survival = np.exp(-np.cumsum(total, axis=1))
    before = np.concatenate([np.ones((survival.shape[0], 1)), survival[:, :-1]], axis=1)
    some = total > 0
    safe = np.where(some, total, 1.0)
    rate = np.where(some, -np.expm1(-total) / safe, 1.0)
    incidence = np.cumsum(before * rate * hazards[0], axis=1)
    shared = before * (hazards[0] / safe) * (np.exp(-total) - rate)
    found.value[rows, 0] = incidence @ last.T
    found.value[rows, 1] = first + survival @ spans.T
    found.value[rows, 2] = incidence @ spans.T
    for j, (own, e) in enumerate(zip(step, factor, strict=True)):
        cumulative, pull = np.cumsum(own), weight * e
        direct = shared + before * rate if j == 0 else shared
        direct = hazards[j] * (direct + incidence)
        of_survival, of_incidence = pull @ survival, pull @ incidence
        found.by_eta[j, rows, 1] = -e[:, None] * (survival @ (spans * cumulative).T)
        found.by_step[j, 1] -= own * _later(of_survival * spans)
        for q, weights in ((0, last), (2, spans)):
            rest = _later(weights)
            away = e[:, None] * (incidence @ (weights * cumulative).T)
            found.by_eta[j, rows, q] = direct @ rest.T - away
            found.by_step[j, q] += (weight @ direct) * rest - own * _later(of_incidence * weights)
