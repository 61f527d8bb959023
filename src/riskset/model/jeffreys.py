"""Jeffreys' prior of a partial likelihood: the slope of its logarithm."""

from collections.abc import Iterable

import numpy as np

from riskset._types import Rows
from riskset.kernels.subdistribution_cpu import LEVEL_SPAN, risk_below, seen_up_to, sum_up_to
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
    risk = loss.risk
    n_groups, group = risk.group_events.size, risk.group
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

    ys = [y[risk.order] for y in combinations]
    out = np.zeros(risk.order.size)
    log_total = loss.evaluate(eta).log_total[at]
    # Totals of risk sets may differ by more than one exponent holds: go level by level.
    level = np.floor((log_total - log_total.min(initial=np.inf)) / LEVEL_SPAN)
    for k in np.unique(level).tolist():
        own = level == k
        unit = float(log_total[own].max())
        # Only rows that are at risk in no group of the level are cut.
        r = risk_below(LEVEL_SPAN, eta[risk.order] - unit, risk.weight)
        total = np.where(own, sums(r), 1.0)
        hazard = np.where(own, weight / total, 0.0)
        cumulative, pull = seen(hazard), np.zeros(r.size)
        for z in ys:
            mean, square = (np.where(own, sums(r * v) / total, 0.0) for v in (z, z * z))
            pull += z * (z * cumulative - 2 * seen(hazard * mean))
            pull += seen(hazard * (2 * mean**2 - square))
        out += r * pull
    return np.bincount(risk.order, 0.5 * out, eta.size).astype(np.float64)
