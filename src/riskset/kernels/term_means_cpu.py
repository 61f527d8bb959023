"""Covariates about the means of risk sets, fast. See `term_means_ref`.

A risk set is again the rows with an event in the group (tied) and the rest; Efron's terms are sums
of the two, and nothing is subtracted.
"""

import math

import numpy as np

from riskset._types import Index, Matrix, RiskSets, Rows
from riskset.kernels import late_entry_cpu as late_entry
from riskset.kernels import means_cpu
from riskset.kernels._jit import kernel
from riskset.kernels.risk_sets_cpu import MAX_ETA_SPAN

__all__ = ["deviations_nested", "risk_set_means"]


def risk_set_means(eta: Rows, risk: RiskSets, efron: bool, x: Matrix) -> tuple[Matrix, Rows]:
    used = np.flatnonzero(risk.group_tied > 0)
    m = risk.group_tied[used] if efron else np.ones(used.size, dtype=np.int64)
    g, size = np.repeat(used, m), np.repeat(m, m)
    k = np.arange(g.size) - np.repeat(np.cumsum(m) - m, m)
    left = (size - k) / size
    weights = risk.group_events[g] / size
    ordered = eta[risk.order]
    high = float(ordered.max())
    if risk.own.size and high - float(ordered.min()) < MAX_ETA_SPAN:
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
def _join(
    x: Matrix,
    k: int,
    amount: float,
    total: float,
    expected: float,
    mean: Rows,
    out: Matrix,
    at: int,
) -> None:
    """Let row k of x join a set of size `total`: its weighted distance from the mean, and the mean.

    Arrays go as a whole, and are copied by loops: so the compiler puts it where it is called.
    """
    if total == 0.0:
        for s in range(mean.size):
            mean[s] = x[k, s]
    whole = total + amount
    step = amount / whole
    share = math.sqrt(expected * (total / whole))
    for s in range(mean.size):
        distance = x[k, s] - mean[s]
        out[at, s] = share * distance
        mean[s] += step * distance


@kernel
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
    event_weight, ptr = risk.event_weight, risk.group_ptr
    starts, group_tied = risk.starts_stratum, risk.group_tied
    tied = np.empty((1, x.shape[1]))
    peak, total = peak_total[0], peak_total[1]
    for g in range(first, last):
        if starts[g]:
            peak, total = -math.inf, 0.0
        begin, stop = ptr[g], ptr[g + 1]
        top = peak
        for i in range(begin, stop):
            top = max(top, log_r[i])
        if top > peak:
            total *= math.exp(peak - top)
            peak = top
        apart = efron and group_tied[g] > 1
        joint, tied_total, tied_expected = -1, 0.0, 0.0
        for i in range(begin, stop):
            k = i - row0
            r = math.exp(log_r[i] - peak) if log_r[i] > -math.inf else 0.0
            if r == 0.0:
                out[k] = 0.0
            elif apart and event_weight[i] > 0.0:
                _join(x, k, r, tied_total, expected[i], tied[0], out, k)
                tied_total += r
                tied_expected += expected[i]
                joint = k if joint < 0 else joint
            else:
                _join(x, k, r, total, expected[i], state, out, k)
                total += r
        if joint >= 0:
            # The first of the tied rows has no distance of its own: it stands for all of them.
            m = group_tied[g]
            step = risk.group_events[g] / m
            weight = 0.0
            if total > 0.0:
                for j in range(m):
                    part = (m - j) / m * tied_total
                    share = part / (total + part)
                    weight += step * share * (total / (total + part))
                    tied_expected -= step * share
            before = total / (total + tied_total)
            weight = weight / before if before > 0.0 else 0.0
            weight += max(tied_expected, 0.0)
            _join(tied, 0, tied_total, total, weight, state, out, joint)
            total += tied_total
    peak_total[0], peak_total[1] = peak, total
