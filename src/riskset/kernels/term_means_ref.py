"""Means of covariates over the risk sets of every term of the likelihood, as the formulas read.

They are what the observed information is made of (`model.cox`). `term_means_cpu` gives the same
numbers in O(n q), or in O((n + G log G) q) with late entry.
"""

import numpy as np

from riskset._types import Matrix, RiskSets, Rows
from riskset.kernels.risk_sets_ref import _at_risk, _own_group

__all__ = ["means_nested", "n_terms", "risk_set_means"]


def n_terms(risk: RiskSets, efron: bool, first: int = 0, last: int | None = None) -> int:
    """Number of terms of the likelihood in groups first to last.

    One for each group with events (Breslow), or one for each event (Efron).
    """
    tied = risk.group_tied[first:last]
    return int(tied.sum() if efron else (tied > 0).sum())


def risk_set_means(eta: Rows, risk: RiskSets, efron: bool, x: Matrix) -> tuple[Matrix, Rows]:
    r"""Mean of x over the risk set of every term of the likelihood, and the weight of the term.

    One row for each group with events (Breslow), or for each event (Efron, in the order k = 0, 1,
    ... within a group):

    .. math:: \bar x = \sum_{i \in R_g} (1 - \tfrac{k}{m} d_i) r_i x_i \Big/
                       \sum_{i \in R_g} (1 - \tfrac{k}{m} d_i) r_i

    Parameters
    ----------
    eta : (n,) float64
        Log hazard ratio, in the caller's order.
    risk : RiskSets
    efron : bool
    x : (n, q) float64
        Columns in **risk order**.

    Returns
    -------
    means : (terms, q) float64
    weights : (terms,) float64
        N_g, or N_g / m_g for each of Efron's terms.
    """
    at_risk, own = _at_risk(risk), _own_group(risk)
    with np.errstate(divide="ignore"):
        log_r = np.log(risk.weight) + eta[risk.order]
    terms = n_terms(risk, efron)
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


def means_nested(
    log_r: Rows,
    x: Matrix,
    row0: int,
    risk: RiskSets,
    efron: bool,
    first: int,
    last: int,
    state: Rows,
    peak_total: Rows,
    means: Matrix,
    weights: Rows,
) -> None:
    r"""The means of groups first to last without late entry, continuing a pass over the rows.

    A caller that goes through the groups in order needs only the rows of a few groups at a time.

    Parameters
    ----------
    log_r : (n,) float64
        :math:`\log w_i + \eta_i` of all rows, in risk order.
    x : (rows, q) float64
        Columns in risk order, of the rows of these groups only; `row0` is the first of them.
    state : (q,) float64
        :math:`\sum r_i x_i e^{-peak}` over the risk set before `first`; after the call, of `last`.
        0 at the start.
    peak_total : (2,) float64
        The peak, the largest log_r of the risk set, and :math:`\sum r_i e^{-peak}`; updated as
        `state`. (-inf, 0) at the start.
    means, weights
        The result, for the `n_terms` terms of these groups; see `risk_set_means`.
    """
    t = 0
    for g in range(first, last):
        rows = np.arange(risk.group_ptr[g], risk.group_ptr[g + 1])
        if risk.starts_stratum[g]:
            state[:] = 0.0
            peak_total[:] = -np.inf, 0.0
        peak = max(peak_total[0], log_r[rows].max(initial=-np.inf))
        if peak == -np.inf:
            continue
        fade = np.exp(peak_total[0] - peak)
        r = np.exp(log_r[rows] - peak)
        state[:] = state * fade + r @ x[rows - row0]
        peak_total[:] = peak, peak_total[1] * fade + r.sum()
        m = int(risk.group_tied[g]) if efron else min(int(risk.group_tied[g]), 1)
        dead = r * (risk.event_weight[rows] > 0)
        for k in range(m):
            gone = k / m * dead
            means[t] = (state - gone @ x[rows - row0]) / (peak_total[1] - gone.sum())
            weights[t] = risk.group_events[g] / m
            t += 1
