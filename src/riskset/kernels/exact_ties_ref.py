"""The exact conditional likelihood of tied events, written as the formulas read.

Clear, not fast: the sum over all sets of m rows is made by a recursion for each group, and again
without each row, and without each pair of rows. `exact_ties_cpu` gives the same numbers in time
like the rows at risk times the tied events.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from riskset._runtime import Runtime
from riskset._types import Index, Matrix, RiskSets, Rows

__all__ = ["ExactPass", "exact_pass", "exact_products"]


class ExactPass(NamedTuple):
    """One evaluation of the exact conditional likelihood.

    `residual` (n,) is observed minus expected events in the caller's order: the gradient of the log
    likelihood in eta. `expected` (n,) is in risk order.
    """

    log_likelihood: float
    residual: Rows
    expected: Rows


def exact_pass(eta: Rows, risk: RiskSets, runtime: Runtime) -> ExactPass:
    r"""Log likelihood of who has the tied events, given how many there are, and its gradient.

    A case weight is a whole number w and stands for w equal rows. With m events in group g,

    .. math::
        \ell = \sum_g \Bigl( \sum_{i \in D_g} \eta_i
               - \log \sum_{S \subseteq R_g, |S| = m_g} \prod_{j \in S} e^{\eta_j} \Bigr)

    The inner sum B(m, R) follows from rows that are added one by one,
    :math:`B(m, R \cup j) = B(m, R) + e^{\eta_j} B(m - 1, R)`, and the expected events of row j are
    its chances :math:`e^{\eta_j} B(m - 1, R \setminus j) / B(m, R)` in all groups.

    Notes
    -----
    O(n) memory, and O(n^2 m) time for each group. Computes in the precision of `eta`.

    References
    ----------
    Cox (1972), JRSS B 34, 187-220. Gail, Lubin & Rubinstein (1981), Biometrika 68, 703-707,
    doi:10.1093/biomet/68.3.703.
    """
    value = eta.dtype.type(0.0)
    expected = np.zeros(risk.order.size, dtype=eta.dtype)
    for place, m, log_r, tied in _groups(eta, risk):
        total = _log_sums(log_r, m)[m]
        value += tied - total
        for k, at in enumerate(place):
            rest = _log_sums(np.delete(log_r, k), m)
            expected[at] += np.exp(log_r[k] + rest[m - 1] - total)
    residual = np.zeros(eta.size, dtype=eta.dtype)
    np.add.at(residual, risk.order, risk.event_weight - expected)
    return ExactPass(value, residual, expected)


def exact_products(eta: Rows, u: Matrix, risk: RiskSets, runtime: Runtime) -> Matrix:
    r"""The negative second derivative C in eta times the columns of u (n, q).

    .. math:: C_{ij} = \sum_g \bigl( \pi_{gij} - \pi_{gi} \pi_{gj} \bigr)

    with the chance :math:`\pi_{gi}` that row i is among the events of group g, and
    :math:`\pi_{gij}` that both rows are, which is :math:`\pi_{gi}` for i = j. u and the result are
    in the caller's order.

    Notes
    -----
    O(n^2) memory and O(n^3 m) time for each group.
    """
    out = np.zeros(u.shape)
    for place, m, log_r, _ in _groups(eta, risk):
        total = _log_sums(log_r, m)[m]
        n = place.size
        both = np.zeros((n, n))
        for i in range(n):
            rest = _log_sums(np.delete(log_r, i), m)
            both[i, i] = np.exp(log_r[i] + rest[m - 1] - total)
            for j in range(i):
                rest = _log_sums(np.delete(log_r, [i, j]), m)
                both[i, j] = both[j, i] = (
                    0.0 if m < 2 else np.exp(log_r[i] + log_r[j] + rest[m - 2] - total)
                )
        chance = both.diagonal()
        rows = risk.order[place]
        np.add.at(out, rows, (both - np.outer(chance, chance)) @ u[rows])
    return out


def _groups(eta: Rows, risk: RiskSets) -> Iterator[tuple[Index, int, Rows, float]]:
    """Of each group with events: places at risk, each as often as it counts, events, and eta.

    The last is the sum over the events.
    """
    group = np.arange(risk.group_events.size)[:, None]
    own = risk.group
    if risk.own.size:
        at_risk = (risk.own <= group) & (group < risk.end)
    else:
        stratum = np.cumsum(risk.starts_stratum)
        at_risk = (own <= group) & (stratum[own] == stratum[:, None])
    ordered = eta[risk.order]
    copies = np.rint(risk.weight).astype(np.int64)
    for g in np.flatnonzero(risk.group_events > 0):
        place = np.repeat(np.flatnonzero(at_risk[g]), copies[at_risk[g]])
        dead = own == g
        tied = (risk.event_weight[dead] * ordered[dead]).sum()
        yield place, round(float(risk.group_events[g])), ordered[place], tied


def _log_sums(log_r: Rows, m: int) -> NDArray[np.float64]:
    """Log of the sum of the products of every set of 0, 1, ..., m numbers."""
    out = np.full(m + 1, -np.inf, dtype=log_r.dtype)
    out[0] = 0.0
    for one in log_r:
        out[1:] = np.logaddexp(out[1:], one + out[:-1])
    return out
