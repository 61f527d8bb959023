"""Averages of covariates over risk sets and over follow-up, written as the formulas read.

Score and Schoenfeld residuals, the robust variance, the baseline hazard and the test of
proportional hazards are all made of the four functions here. Nothing here knows the ties method
except `tie_terms`: a *tied* row is one with an event in its own group, the *rest* of a risk set is
everybody else at risk, and a ties method only says with which share the tied rows count.

`means_cpu` gives the same numbers in O(n q), with late entry in O((n + G log G) q).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from riskset._types import Index, Matrix, RiskSets, Rows

__all__ = ["cumulate", "follow_up_means", "risk_set_means", "tie_terms"]

Groups = NDArray[np.float64]


class RiskSetMeans(NamedTuple):
    """Risk-weighted size and mean of both parts of each risk set; see `risk_set_means`."""

    log_rest: Groups
    log_tied: Groups
    mean_rest: Matrix
    mean_tied: Matrix


class TieTerms(NamedTuple):
    """What a ties method makes of each group; see `tie_terms`."""

    log_hazard: Groups
    log_hazard_tied: Groups
    share: Groups
    share_tied: Groups
    share_event: Groups
    square_event: Groups
    square_hazard: Groups
    square_hazard_tied: Groups


def _log_sum(log_size: Rows, factor: Rows) -> float:
    used = factor > 0
    if not used.any():
        return -np.inf
    peak = log_size[used].max()
    if peak == -np.inf:
        return -np.inf
    return float(peak + np.log(np.sum(factor[used] * np.exp(log_size[used] - peak))))


def _mean(values: Matrix, log_size: Rows, factor: Rows) -> NDArray[np.float64]:
    total = _log_sum(log_size, factor)
    if total == -np.inf:
        return np.zeros(values.shape[1])
    share = factor * np.exp(np.where(factor > 0, log_size, -np.inf) - total)
    return np.asarray(share @ values)


def _at_risk(risk: RiskSets, g: int) -> NDArray[np.bool_]:
    i = np.arange(risk.order.size)
    if risk.own.size:
        return np.asarray((risk.own <= g) & (g < risk.end))
    first = np.flatnonzero(risk.starts_stratum[: g + 1])[-1]
    return np.asarray((i >= risk.group_ptr[first]) & (i < risk.group_ptr[g + 1]))


def _tied(risk: RiskSets, g: int) -> NDArray[np.bool_]:
    i = np.arange(risk.order.size)
    inside = (i >= risk.group_ptr[g]) & (i < risk.group_ptr[g + 1])
    return np.asarray(inside & (risk.event_weight > 0))


def risk_set_means(values: Matrix, eta: Rows, risk: RiskSets) -> RiskSetMeans:
    r"""Size and mean of the tied rows and of the rest of every risk set, weighted by risk.

    .. math:: D_g = \sum_{i} r_i, \qquad \bar x_g = \sum_i r_i x_i / D_g, \qquad
              r_i = w_i e^{\eta_i}

    once over the rows with an event in group g (tied), once over all others at risk (rest).
    `values` (n, q) and `eta` (n,) are in risk order; q may be 0, and an eta of -inf is never at
    risk. The logs of D (G,) are -inf and the means (G, q) 0 where nobody is in that part.
    """
    n_groups = risk.group_events.size
    rest = [_at_risk(risk, g) & ~_tied(risk, g) for g in range(n_groups)]
    tied = [_tied(risk, g) for g in range(n_groups)]
    w = risk.weight
    shape = (n_groups, values.shape[1])
    return RiskSetMeans(
        np.array([_log_sum(eta, w * part) for part in rest]),
        np.array([_log_sum(eta, w * part) for part in tied]),
        np.array([_mean(values, eta, w * part) for part in rest]).reshape(shape),
        np.array([_mean(values, eta, w * part) for part in tied]).reshape(shape),
    )


def tie_terms(
    log_rest: Groups, log_tied: Groups, events: Groups, tied: Index, efron: bool
) -> TieTerms:
    r"""Hazard increments of every group, and the share of its tied rows in the risk-set means.

    A group of m tied events with total weight N is m steps with the shares :math:`c_k = 1 - k/m` of
    the tied rows still at risk (Efron), or one step with c = 1 (Breslow). With R and T the sizes of
    the rest and of the tied rows,

    .. math:: h_k = \frac{N/m}{R + c_k T}, \qquad q_k = \frac{c_k T}{R + c_k T},

    so that the risk-set mean at step k is :math:`(1 - q_k) \bar x_R + q_k \bar x_T`: a convex
    combination, and nothing is ever subtracted.

    The results are (G,): the logs of the sum of h_k, which is the hazard increment at eta = 0 (-inf
    without events), and of the sum of c_k h_k, which a tied row is exposed to; `share` and
    `share_tied`, the means of q_k weighted by h_k and by c_k h_k; `share_event` and `square_event`,
    the plain means of q_k and of its square; and the sums of the squares of h_k, relative to the
    square of their sum, and of c_k times these squares, relative to the product of both sums.

    References
    ----------
    Efron (1977), Journal of the American Statistical Association 72, 557-565,
    doi:10.1080/01621459.1977.10480613.
    """
    n_groups = events.size
    out = TieTerms(*(np.zeros(n_groups) for _ in TieTerms._fields))
    out.log_hazard[:] = out.log_hazard_tied[:] = -np.inf
    for g in range(n_groups):
        if tied[g] == 0 or log_tied[g] == -np.inf:
            continue
        steps = int(tied[g]) if efron else 1
        c = 1 - np.arange(steps) / steps
        peak = max(log_rest[g], log_tied[g])
        rest, part = np.exp(log_rest[g] - peak), c * np.exp(log_tied[g] - peak)
        h = events[g] / steps / (rest + part)
        q = part / (rest + part)
        out.log_hazard[g] = np.log(h.sum()) - peak
        out.log_hazard_tied[g] = np.log((c * h).sum()) - peak
        out.share[g] = (h * q).sum() / h.sum()
        out.share_tied[g] = (c * h * q).sum() / (c * h).sum()
        out.share_event[g] = q.mean()
        out.square_event[g] = (q**2).mean()
        out.square_hazard[g] = (h**2).sum() / h.sum() ** 2
        out.square_hazard_tied[g] = (c * h**2).sum() / (h.sum() * (c * h).sum())
    return out


def follow_up_means(
    values: Matrix, values_tied: Matrix, log_hazard: Groups, log_hazard_tied: Groups, risk: RiskSets
) -> tuple[Rows, Matrix]:
    r"""Cumulative hazard over each row's follow-up, and averages of group values weighted by it.

    .. math:: L_i = \sum_{g} h_g, \qquad A_i = \sum_{g} h_g a_g / L_i

    over the groups in which row i is at risk; in its own group a tied row takes ``log_hazard_tied``
    and ``values_tied``. Values are (G, q), q may be 0. Returns log L (n,) and A (n, q) in risk
    order, -inf and 0 for a row that sees no event.
    """
    n_rows, n_groups = risk.order.size, risk.group_events.size
    log_cumulative, mean = np.full(n_rows, -np.inf), np.zeros((n_rows, values.shape[1]))
    at_risk = np.array([_at_risk(risk, g) for g in range(n_groups)])
    tied = np.array([_tied(risk, g) for g in range(n_groups)])
    for i in range(n_rows):
        h = np.where(tied[:, i], log_hazard_tied, log_hazard)
        a = np.where(tied[:, i, None], values_tied, values)
        factor = at_risk[:, i].astype(float)
        log_cumulative[i] = _log_sum(h, factor)
        mean[i] = _mean(a, h, factor)
    return log_cumulative, mean


def cumulate(log_hazard: Groups, starts_stratum: NDArray[np.bool_]) -> Groups:
    r"""Log of the sum of hazards from the earliest group of the stratum up to each group.

    .. math:: \log H_g = \log \sum_{g' \ge g} h_{g'}

    Groups stand in risk order, latest first, so the sum runs from the end.
    """
    out = np.empty(log_hazard.size)
    stratum = np.cumsum(starts_stratum)
    for g in range(log_hazard.size):
        earlier = (np.arange(log_hazard.size) >= g) & (stratum == stratum[g])
        out[g] = _log_sum(log_hazard, earlier.astype(float))
    return out
