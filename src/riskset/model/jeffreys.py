"""Jeffreys' prior of a partial likelihood: the slope of its logarithm."""

from collections.abc import Iterable

import numpy as np

from riskset._types import Rows
from riskset.kernels.subdistribution_cpu import seen_up_to, sum_up_to
from riskset.model.loss import Loss

__all__ = ["jeffreys_slope"]


def jeffreys_slope(loss: Loss, eta: Rows, combinations: Iterable[Rows]) -> Rows:
    r"""Derivative (n,) of :math:`\tfrac12 \log \det I` in the linear predictor, of Cox models.

    The `combinations` y (n,) of columns are those of :math:`Z A` with :math:`A A' = I^{-1}`. Term t
    of the likelihood, of weight :math:`w_t`, has the shares :math:`p_{ti}` of rows at risk, and

    .. math::
        \frac{1}{2} \sum_t w_t \, p_{ti} \sum_k \bigl( (y_{ik} - \bar y_{tk})^2 - V_{tk} \bigr)

    with the means and variances of y under p. Everything is in the caller's order, offset included.

    Notes
    -----
    O(n) time for each combination. Terms: one for each time (Breslow), or for each event (Efron).
    """
    risk, outcome = loss.risk, loss.outcome
    n_groups, group = risk.group_events.size, risk.group
    highest = np.full(outcome.n_strata, -np.inf)
    np.maximum.at(highest, outcome.stratum, eta)
    r = risk.weight * np.exp((eta - highest[outcome.stratum])[risk.order])
    if loss.efron:
        m = risk.group_tied
        at = np.repeat(np.arange(n_groups), m)
        part = (np.arange(at.size) - np.repeat(np.cumsum(m) - m, m)) / m[at]
        weight = (risk.group_events / np.maximum(m, 1))[at]
    else:
        at = np.flatnonzero(risk.group_events > 0)
        part, weight = np.zeros(at.size), risk.group_events[at]
    tied = np.flatnonzero(risk.event_weight > 0)

    def sums(v: Rows) -> Rows:
        """Sums over the rows of each term, where a tied row counts 1 less its part."""
        own = np.bincount(group[tied], v[tied], n_groups)
        return np.asarray(sum_up_to(v, risk)[at] - part * own[at])

    def seen(values: Rows) -> Rows:
        """Sums over the terms of each row."""
        out = seen_up_to(np.bincount(at, values, n_groups).astype(np.float64), risk)
        out[tied] -= np.bincount(at, part * values, n_groups)[group[tied]]
        return out

    total = sums(r)
    hazard = weight / total
    cumulative, out = seen(hazard), np.zeros(r.size)
    for y in combinations:
        z = y[risk.order]
        mean, square = sums(r * z) / total, sums(r * z * z) / total
        out += z * (z * cumulative - 2 * seen(hazard * mean))
        out += seen(hazard * (2 * mean**2 - square))
    return np.bincount(risk.order, 0.5 * r * out, eta.size).astype(np.float64)
