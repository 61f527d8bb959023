"""Means of covariates over the risk sets of every term of the likelihood. See `term_means_ref`.

A risk set is again the rows with an event in the group (tied) and the rest; Efron's terms are sums
of the two, and nothing is subtracted.
"""

import math

import numpy as np

from riskset._types import Index, Matrix, RiskSets, Rows
from riskset.kernels import late_entry_cpu as late_entry
from riskset.kernels import means_cpu
from riskset.kernels._jit import kernel
from riskset.kernels.risk_sets_cpu import SPAN

__all__ = ["means_nested", "n_terms", "risk_set_means"]


def n_terms(risk: RiskSets, efron: bool, first: int = 0, last: int | None = None) -> int:
    """See `term_means_ref.n_terms`."""
    tied = risk.group_tied[first:last]
    return int(tied.sum() if efron else np.count_nonzero(tied))


def risk_set_means(eta: Rows, risk: RiskSets, efron: bool, x: Matrix) -> tuple[Matrix, Rows]:
    """See `term_means_ref.risk_set_means`."""
    if risk.own.size:
        return _means_late(eta, risk, efron, x)
    terms = n_terms(risk, efron)
    means, weights = np.empty((terms, x.shape[1])), np.empty(terms)
    with np.errstate(divide="ignore"):
        log_r = np.log(risk.weight) + eta[risk.order]
    state, peak_total = np.zeros(x.shape[1]), np.array([-np.inf, 0.0])
    means_nested(
        log_r, x, 0, risk, efron, 0, risk.group_events.size, state, peak_total, means, weights
    )
    return means, weights


def _means_late(eta: Rows, risk: RiskSets, efron: bool, x: Matrix) -> tuple[Matrix, Rows]:
    used = np.flatnonzero(risk.group_tied > 0)
    m = risk.group_tied[used] if efron else np.ones(used.size, dtype=np.int64)
    g, size = np.repeat(used, m), np.repeat(m, m)
    k = np.arange(g.size) - np.repeat(np.cumsum(m) - m, m)
    left = (size - k) / size
    weights = risk.group_events[g] / size
    ordered = eta[risk.order]
    high = float(ordered.max())
    if high - float(ordered.min()) < SPAN:
        return _ratios(risk.weight * np.exp(ordered - high), risk, efron, x, g, left), weights
    # Each term's mean is a mixture of those of the tied rows and of the rest.
    parts = means_cpu.risk_set_means(x, ordered, risk)
    with np.errstate(over="ignore"):
        share = left / (left + np.exp(parts.log_rest[g] - parts.log_tied[g]))
    means = (1.0 - share)[:, None] * parts.mean_rest[g]
    means += share[:, None] * parts.mean_tied[g]
    return means, weights


def _ratios(r: Rows, risk: RiskSets, efron: bool, x: Matrix, g: Index, left: Rows) -> Matrix:
    """Sums of r x over sums of r, rest + left tied, for each term's group g."""
    tied_rows = np.flatnonzero(risk.event_weight > 0)
    rest = np.empty(risk.group_events.size)

    def sums(y: Rows) -> Rows:
        late_entry.sum_at_risk(y, risk, efron, rest)
        if not efron:
            return rest[g]
        tied = np.bincount(risk.own[tied_rows], y[tied_rows], rest.size)
        total: Rows = rest[g] + left * tied[g]
        return total

    means = np.empty((g.size, x.shape[1]))
    total = sums(r)
    for s in range(x.shape[1]):
        means[:, s] = sums(r * x[:, s]) / total
    return means


@kernel
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
    """See `term_means_ref.means_nested`."""
    q = x.shape[1]
    tied = np.empty(q)
    t = 0
    peak, total = peak_total[0], peak_total[1]
    for g in range(first, last):
        if risk.starts_stratum[g]:
            peak, total = -math.inf, 0.0
            state[:] = 0.0
        begin, stop = risk.group_ptr[g], risk.group_ptr[g + 1]
        top = peak
        for i in range(begin, stop):
            top = max(top, log_r[i])
        if top > peak:
            fade = math.exp(peak - top)
            total *= fade
            for s in range(q):
                state[s] *= fade
            peak = top
        # Without Efron's shares the tied rows are part of the rest.
        tied[:] = 0.0
        tied_total = 0.0
        for i in range(begin, stop):
            if log_r[i] == -math.inf:
                continue
            r = math.exp(log_r[i] - peak)
            xi = x[i - row0]
            if efron and risk.event_weight[i] > 0.0:
                tied_total += r
                for s in range(q):
                    tied[s] += r * xi[s]
            else:
                total += r
                for s in range(q):
                    state[s] += r * xi[s]
        if risk.group_tied[g] > 0:
            m = risk.group_tied[g] if efron else 1
            for k in range(m):
                share = (m - k) / m
                d = total + share * tied_total
                for s in range(q):
                    means[t, s] = (state[s] + share * tied[s]) / d
                weights[t] = risk.group_events[g] / m
                t += 1
        total += tied_total
        for s in range(q):
            state[s] += tied[s]
    peak_total[0], peak_total[1] = peak, total
