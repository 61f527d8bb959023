"""The partial likelihood of Fine and Gray's model, written as the formulas read.

`subdistribution_cpu` gives the same numbers in O(n), or in O(n + G log G) where rows are at risk in
ranges of groups.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from riskset._runtime import Runtime
from riskset._types import Matrix, RiskSets, Rows, Tail
from riskset.kernels.risk_sets_ref import _at_risk

__all__ = [
    "FineGrayPass",
    "finegray_information",
    "finegray_means",
    "finegray_pass",
    "seen_after",
    "seen_up_to",
    "sum_before",
    "sum_up_to",
]


class FineGrayPass(NamedTuple):
    """One evaluation of the likelihood; see `risk_sets_ref.CoxPass` for the first five.

    `expected` counts what rows are exposed to up to their own time, in risk order, `expected_tail`
    what rows with a competing event are exposed to after it, in the order of each tail.
    """

    log_likelihood: float
    residual: Rows
    expected: Rows
    log_total: NDArray[np.float64]
    log_hazard: NDArray[np.float64]
    expected_tail: tuple[Rows, ...]


def tail_at_risk(sets: RiskSets) -> NDArray[np.bool_]:
    """Who of a tail is at risk in each group (G, c)."""
    if sets.own.size:
        return _at_risk(sets)
    group, stratum = np.arange(sets.group_events.size), np.cumsum(sets.starts_stratum)
    own = sets.group
    same = stratum[:, None] == stratum[own][None, :]
    return np.asarray(same & (group[:, None] < own[None, :]))


def _log_risk(
    eta: Rows, risk: RiskSets, tails: Sequence[Tail]
) -> tuple[Matrix, list[Matrix], NDArray[np.float64]]:
    """Logs of w exp(eta), and of w exp(eta) G / G_i, over risk sets (G, n), (G, c), and of D."""
    with np.errstate(divide="ignore"):
        log_r = np.log(risk.weight) + eta[risk.order]
        plain = np.where(_at_risk(risk), log_r, -np.inf)
        later = [
            np.where(
                tail_at_risk(t.sets),
                np.log(t.sets.weight) + eta[t.sets.order] + np.log(t.survival)[:, None],
                -np.inf,
            )
            for t in tails
        ]
    every = np.concatenate([plain, *later], axis=1)
    peak = every.max(axis=1)
    safe = np.where(peak == -np.inf, 0.0, peak)
    with np.errstate(divide="ignore"):
        log_total = safe + np.log(np.exp(every - safe[:, None]).sum(axis=1))
    return plain, later, log_total


def finegray_pass(
    eta: Rows, risk: RiskSets, tails: Sequence[Tail], runtime: Runtime
) -> FineGrayPass:
    r"""Log partial likelihood of the subdistribution hazard, and its gradient in `eta` (n,).

    .. math::
        D_g = \sum_{time_i \ge t_g} r_i
              + \sum_{time_i < t_g,\, competing} r_i G(t_g-) / G(time_i-),
        \qquad \ell = \sum_i w_i d_i \eta_i - \sum_g N_g \log D_g

    with :math:`r_i = w_i e^{\eta_i}` and Breslow's treatment of ties. `risk` has the rows up to
    their own time, with the events of the cause of interest, and `tails` the rows with a competing
    event after it. The residuals sum to 0.

    References
    ----------
    Fine & Gray (1999), Journal of the American Statistical Association 94, 496-509,
    doi:10.1080/01621459.1999.10474144.
    """
    plain, later, log_total = _log_risk(eta, risk, tails)
    used = risk.group_events > 0
    events = risk.group_events[used]
    value = float(risk.event_weight @ eta[risk.order] - events @ log_total[used])
    expected = events @ np.exp(plain[used] - log_total[used, None])
    tail = tuple(events @ np.exp(part[used] - log_total[used, None]) for part in later)
    residual = np.zeros(eta.size)
    np.add.at(residual, risk.order, risk.event_weight - expected)
    for t, e in zip(tails, tail, strict=True):
        np.add.at(residual, t.sets.order, -e)
    log_hazard = np.full(used.size, -np.inf)
    log_hazard[used] = np.log(events) - log_total[used]
    return FineGrayPass(value, residual, expected, log_total, log_hazard, tail)


def finegray_means(
    eta: Rows, risk: RiskSets, tails: Sequence[Tail], x: Matrix
) -> tuple[Matrix, NDArray[np.float64]]:
    """Weighted mean of x over the risk set of every group with events, and N_g.

    `x` (n, q) is in the **caller's** order.
    """
    plain, later, log_total = _log_risk(eta, risk, tails)
    used = risk.group_events > 0
    means = np.exp(plain[used] - log_total[used, None]) @ x[risk.order]
    for t, part in zip(tails, later, strict=True):
        means += np.exp(part[used] - log_total[used, None]) @ x[t.sets.order]
    return means, risk.group_events[used]


def finegray_information(
    eta: Rows, risk: RiskSets, tails: Sequence[Tail], x: Matrix, runtime: Runtime
) -> Matrix:
    r"""Observed information of the columns of x: sum of the covariances within risk sets (q, q).

    .. math:: \sum_g N_g \sum_{i \in R_g} p_{gi} (x_i - \bar x_g)(x_i - \bar x_g)'

    `x` (n, q) is in the **caller's** order.
    """
    plain, later, log_total = _log_risk(eta, risk, tails)
    means, weights = finegray_means(eta, risk, tails, x)
    out = np.zeros((x.shape[1], x.shape[1]))
    for k, g in enumerate(np.flatnonzero(risk.group_events > 0)):
        parts = [(risk, plain), *((t.sets, part) for t, part in zip(tails, later, strict=True))]
        for sets, log_r in parts:
            z = x[sets.order] - means[k]
            out += weights[k] * z.T @ (np.exp(log_r[g] - log_total[g])[:, None] * z)
    return out


def sum_up_to(r: Rows, sets: RiskSets) -> NDArray[np.float64]:
    """Sum of r over the rows of a group and of those before it in the stratum: nested risk sets.

    Where rows are at risk in ranges of groups, over those; so do the three functions below.
    """
    return np.asarray((_at_risk(sets) * r).sum(axis=1))


def sum_before(r: Rows, sets: RiskSets) -> NDArray[np.float64]:
    """Sum of r over the rows of the groups after a group in the stratum: earlier times."""
    return np.asarray((tail_at_risk(sets) * r).sum(axis=1))


def seen_up_to(hazard: NDArray[np.float64], sets: RiskSets) -> Rows:
    """Sum of the hazard over a row's own group and those after it in the stratum."""
    return hazard @ _at_risk(sets)


def seen_after(hazard: NDArray[np.float64], sets: RiskSets) -> Rows:
    """Sum of the hazard over the groups before a row's own in the stratum: later times."""
    return hazard @ tail_at_risk(sets)
