"""Sums over risk sets, written as the formulas read.

Clear, not fast: every function builds the (G, n) table of who is at risk when. `risk_sets_cpu`
gives the same numbers in O(n), or in O(n + G log G) with late entry.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from riskset._runtime import Runtime
from riskset._types import Matrix, NDArray, RiskSets, Rows

__all__ = ["CoxPass", "cox_pass", "risk_set_means"]


class CoxPass(NamedTuple):
    """One evaluation of the partial likelihood.

    Attributes
    ----------
    log_likelihood : float
    residual : (n,) float64
        Observed minus expected weighted events, in the caller's order: the gradient of the log
        likelihood in eta.
    expected : (n,) float64
        Expected weighted events, in risk order.
    log_total : (G,) float64
        Log of the weighted sum of exp(eta) over the risk set.
    log_hazard : (G,) float64
        Log of the increment of the cumulative hazard at eta = 0; -inf for groups without events.
    """

    log_likelihood: float
    residual: Rows
    expected: Rows
    log_total: NDArray[np.float64]
    log_hazard: NDArray[np.float64]


def _at_risk(risk: RiskSets) -> NDArray[np.bool_]:
    n_groups, n = risk.group_ptr.size - 1, risk.order.size
    group = np.arange(n_groups)[:, None]
    if risk.own.size:
        return (risk.own <= group) & (group < risk.end)
    own = np.repeat(np.arange(n_groups), np.diff(risk.group_ptr))
    stratum = np.cumsum(risk.starts_stratum)
    return (own[None, :] <= group) & (stratum[own][None, :] == stratum[:, None]) & (n > 0)


def cox_pass(eta: Rows, risk: RiskSets, efron: bool, runtime: Runtime) -> CoxPass:
    r"""Log partial likelihood and its gradient in `eta`.

    With :math:`r_i = w_i e^{\eta_i}`, :math:`D_g` the sum of r over the risk set of group g,
    :math:`E_g` its part from the :math:`m_g` rows with an event, :math:`N_g` their weight, and
    :math:`\bar w_g = N_g / m_g`, Efron's likelihood is

    .. math::
        \ell = \sum_i w_i d_i \eta_i
               - \sum_g \bar w_g \sum_{k=0}^{m_g - 1} \log(D_g - \tfrac{k}{m_g} E_g)

    and Breslow's is the same with :math:`E_g = 0`. The expected events of row i are its share of
    every risk set it belongs to, where a row with an event in g counts :math:`1 - k/m_g`.

    Parameters
    ----------
    eta : (n,) float64
        Log hazard ratio, in the caller's order. Any finite value; never exponentiated unshifted.
    risk : RiskSets
    efron : bool
        Efron's treatment of ties instead of Breslow's.
    runtime : Runtime

    Returns
    -------
    CoxPass
        The residuals sum to 0.

    References
    ----------
    Breslow (1974), Biometrics 30, 89-99, doi:10.2307/2529620.
    Efron (1977), JASA 72, 557-565, doi:10.1080/01621459.1977.10480613.
    """
    at_risk = _at_risk(risk)
    ordered = eta[risk.order]
    with np.errstate(divide="ignore"):
        log_r = np.log(risk.weight) + ordered
    is_event = risk.event_weight > 0
    own = np.repeat(np.arange(risk.group_ptr.size - 1), np.diff(risk.group_ptr))
    n_groups = risk.group_ptr.size - 1
    log_total = np.array(
        [logsumexp(log_r[at_risk[g]]) if at_risk[g].any() else -np.inf for g in range(n_groups)]
    )
    log_hazard = np.full(n_groups, -np.inf)
    expected = np.zeros(eta.size)
    value = 0.0
    for g in range(n_groups):
        dead = is_event & (own == g)
        m = int(dead.sum())
        value += float((risk.event_weight[dead] * ordered[dead]).sum())
        for k in range(m):
            part = k / m if efron else 0.0
            left = np.where(dead, 1.0 - part, 1.0)
            log_d = logsumexp(log_r[at_risk[g]], b=left[at_risk[g]])
            step = risk.group_events[g] / m
            value -= step * log_d
            log_hazard[g] = np.logaddexp(log_hazard[g], np.log(step) - log_d)
            expected[at_risk[g]] += step * left[at_risk[g]] * np.exp(log_r[at_risk[g]] - log_d)
    residual = np.empty(eta.size)
    residual[risk.order] = risk.event_weight - expected
    return CoxPass(value, residual, expected, log_total, log_hazard)


def risk_set_means(eta: Rows, risk: RiskSets, efron: bool, x: Matrix) -> tuple[Matrix, Rows]:
    r"""Mean of x over every risk set of the likelihood, and the weight of each term.

    One row for each group with events (Breslow), or for each event (Efron, in the order k = 0, 1,
    ... within a group):

    .. math:: \bar x = \sum_{i \in R_g} (1 - \tfrac{k}{m} d_i) r_i x_i \Big/
                       \sum_{i \in R_g} (1 - \tfrac{k}{m} d_i) r_i

    Parameters
    ----------
    x : (n, q) float64
        Columns in **risk order**.

    Returns
    -------
    means : (terms, q) float64
    weights : (terms,) float64
        N_g, or N_g / m_g for each of Efron's terms.
    """
    at_risk = _at_risk(risk)
    with np.errstate(divide="ignore"):
        log_r = np.log(risk.weight) + eta[risk.order]
    own = np.repeat(np.arange(risk.group_ptr.size - 1), np.diff(risk.group_ptr))
    means, weights = [], []
    for g in np.flatnonzero(risk.group_events > 0):
        dead = (risk.event_weight > 0) & (own == g)
        m = int(risk.group_tied[g])
        for k in range(m if efron else 1):
            left = np.where(dead, 1.0 - k / m, 1.0) * at_risk[g]
            share = left * np.exp(np.where(at_risk[g], log_r, -np.inf) - log_r[at_risk[g]].max())
            means.append(share @ x / share.sum())
            weights.append(risk.group_events[g] / (m if efron else 1))
    return np.array(means).reshape(-1, x.shape[1]), np.array(weights)
