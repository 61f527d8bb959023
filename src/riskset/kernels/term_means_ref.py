"""Covariates about the means of the risk sets of the likelihood, as the formulas read.

They are what the observed information is made of (`model.cox`). `term_means_cpu` gives the same
numbers in O(n q), or in O((n + G log G) q) with late entry.
"""

import numpy as np

from riskset._runtime import Runtime
from riskset._types import Matrix, RiskSets, Rows
from riskset.kernels.risk_sets_ref import _at_risk

__all__ = ["deviations_nested", "information_at_risk", "information_nested", "risk_set_means"]


def risk_set_means(eta: Rows, risk: RiskSets, efron: bool, x: Matrix) -> tuple[Matrix, Rows]:
    r"""Mean of x over the risk set of every term of the likelihood, and the weight of the term.

    One row for each group with events (Breslow), or for each event (Efron, in the order k = 0, 1,
    ... within a group):

    .. math:: \bar x = \sum_{i \in R_g} (1 - \tfrac{k}{m} d_i) r_i x_i \Big/
                       \sum_{i \in R_g} (1 - \tfrac{k}{m} d_i) r_i

    `eta` (n,) is in the caller's order, `x` (n, q) in **risk order**. The weight is N_g, or N_g /
    m_g for each of Efron's terms.
    """
    at_risk, own = _at_risk(risk), risk.group
    with np.errstate(divide="ignore"):
        log_r = np.log(risk.weight) + eta[risk.order]
    terms = int(risk.group_tied.sum() if efron else (risk.group_tied > 0).sum())
    means, weights = np.empty((terms, x.shape[1])), np.empty(terms)
    t = 0
    for g in np.flatnonzero(risk.group_tied > 0):
        dead = (risk.event_weight > 0) & (own == g)
        m = int(risk.group_tied[g]) if efron else 1
        r = np.exp(np.where(at_risk[g], log_r, -np.inf) - log_r[at_risk[g]].max())
        for k in range(m):
            share = np.where(dead, (m - k) / m, 1.0) * r
            means[t] = share @ x / share.sum()
            weights[t] = risk.group_events[g] / m
            t += 1
    return means, weights


def deviations_nested(
    log_r: Rows,
    expected: Rows,
    x: Matrix,
    row0: int,
    risk: RiskSets,
    efron: bool,
    first: int,
    last: int,
    state: Rows,
    peak_total: Rows,
    out: Matrix,
) -> None:
    r"""Weighted distances whose squares sum to the information of groups first to last.

    Without late entry a risk set is the one before it and some more rows, and a row that joins a
    set of size D and mean m adds :math:`\frac{r D}{D + r} (x - m)(x - m)'` to its sum of squares
    about the mean. Over all risk sets to come, whose hazards it sees, row i adds

    .. math:: c_i (x_i - m_i)(x_i - m_i)', \qquad c_i = h_i \frac{D_i}{D_i + r_i}

    with h its expected events. Nothing cancels, whatever row dominates a risk set. Tied rows with
    Efron's shares make a set of their own, which joins as a whole, with weight

    .. math:: \sum_k \frac{N}{m} p_k (1 - p_k)
              + \Big( \sum_i h_i - \sum_k \frac{N}{m} p_k \Big) \frac{D}{D + T}

    where T is its size, :math:`p_k = s_k T / (D + s_k T)` and :math:`s_k = 1 - k / m`; the first of
    its rows stands for it.

    Parameters
    ----------
    log_r, expected : (n,) float64
        :math:`\log w_i + \eta_i` and the expected events of all rows, in risk order.
    x : (rows, q) float64
        Columns in risk order, of the rows of these groups only, the first of which is `row0`.
    state : (q,) float64
        Mean of the risk set before `first`; after the call, of the last one.
    peak_total : (2,) float64
        The largest log_r of that risk set, and :math:`\sum r_i e^{-peak}`; updated as `state`.
        (-inf, 0) at the start.
    out : (rows, q) float64
        The result, :math:`\sqrt{c_i} (x_i - m_i)`; 0 for rows that are never at risk.
    """
    x, weights = x.copy(), np.zeros(x.shape[0])
    m, d = state.copy(), _log(peak_total[1]) + peak_total[0]
    for g in range(first, last):
        if risk.starts_stratum[g]:
            m, d = state.copy(), -np.inf
        rows = np.arange(risk.group_ptr[g], risk.group_ptr[g + 1])
        rows = rows[log_r[rows] > -np.inf]
        is_tied = (risk.event_weight[rows] > 0) & (efron and risk.group_tied[g] > 1)
        for i in rows[~is_tied]:
            m, d, weights[i - row0] = _join(m, d, x[i - row0], log_r[i])
            weights[i - row0] *= expected[i]
        if not is_tied.any():
            continue
        tied, log_t = np.zeros_like(m), -np.inf
        for i in rows[is_tied]:
            tied, log_t, weights[i - row0] = _join(tied, log_t, x[i - row0], log_r[i])
            weights[i - row0] *= expected[i]
        share = 1 - np.arange(risk.group_tied[g]) / risk.group_tied[g]
        p = np.exp(-np.logaddexp(0.0, d - log_t - np.log(share)))
        step, here = risk.group_events[g] / share.size, rows[is_tied][0] - row0
        x[here] = tied
        later = max(expected[rows[is_tied]].sum() - step * p.sum(), 0.0)
        m, d, before = _join(m, d, x[here], log_t)
        weights[here] = step * (p * (1 - p)).sum() + later * before
    out[:] = np.sqrt(weights)[:, None] * x
    state[:] = m
    peak_total[:] = d, 1.0 if d > -np.inf else 0.0


def information_nested(
    eta: Rows, expected: Rows, x: Matrix, risk: RiskSets, efron: bool, runtime: Runtime
) -> Matrix:
    """Sum of the squares of `deviations_nested` over all groups (q, q)."""
    n_groups, q = risk.group_events.size, x.shape[1]
    with np.errstate(divide="ignore"):
        log_r = np.log(risk.weight) + eta[risk.order]
    state, peak_total, out = np.zeros(q), np.array([-np.inf, 0.0]), np.empty(x.shape)
    deviations_nested(log_r, expected, x, 0, risk, efron, 0, n_groups, state, peak_total, out)
    return out.T @ out


def information_at_risk(
    eta: Rows, expected: Rows, x: Matrix, risk: RiskSets, efron: bool
) -> Matrix:
    r"""Covariances of x within the risk set of every term, times its weight, summed (q, q).

    As `information_nested`, with late entry. The fast one is a difference of squares about the
    means of strata, :math:`\sum_i h_i x_i x_i' - \sum_t w_t \bar x_t \bar x_t'`.
    """
    means, weights = risk_set_means(eta, risk, efron, x)
    at_risk, own = _at_risk(risk), risk.group
    with np.errstate(divide="ignore"):
        log_r = np.log(risk.weight) + eta[risk.order]
    out, t = np.zeros((x.shape[1], x.shape[1])), 0
    for g in np.flatnonzero(risk.group_tied > 0):
        dead = (risk.event_weight > 0) & (own == g)
        m = int(risk.group_tied[g]) if efron else 1
        r = np.exp(np.where(at_risk[g], log_r, -np.inf) - log_r[at_risk[g]].max())
        for k in range(m):
            share = np.where(dead, (m - k) / m, 1.0) * r
            z = x - means[t]
            out += weights[t] * z.T @ (share[:, None] * z) / share.sum()
            t += 1
    return out


def _join(m: Rows, d: float, value: Rows, log_r: float) -> tuple[Rows, float, float]:
    """Mean and log size of a set after `value` joined it, and the share that was there before.

    `value` becomes its distance from the mean before; 0 if there was nothing.
    """
    if d == -np.inf:
        m = value.copy()
    value -= m
    both = float(np.logaddexp(d, log_r))
    return m + np.exp(log_r - both) * value, both, float(np.exp(d - both))


def _log(size: float) -> float:
    return float(np.log(size)) if size > 0 else -np.inf
