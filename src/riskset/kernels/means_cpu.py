"""The fast twins of `means_ref`: one pass over rows and groups, numba.

A running total is a pair (peak, total) that stands for ``exp(peak) * total``, with the mean beside
it; it only grows, and no exponential is taken above its peak.
"""

import numpy as np
from numpy.typing import NDArray

from riskset._types import Index, Matrix, RiskSets, Rows
from riskset.kernels._jit import kernel
from riskset.kernels.means_ref import Groups, RiskSetMeans, TieTerms

__all__ = ["cumulate", "follow_up_means", "risk_set_means", "tie_terms"]


def risk_set_means(values: Matrix, eta: Rows, risk: RiskSets) -> RiskSetMeans:
    if risk.own.size:
        return RiskSetMeans(*_risk_set_means_late(values, eta, risk))
    return RiskSetMeans(*_risk_set_means(values, eta, risk))


def tie_terms(
    log_rest: Groups, log_tied: Groups, events: Groups, tied: Index, efron: bool
) -> TieTerms:
    terms = _tie_terms(log_rest, log_tied, events, tied, efron)
    return TieTerms(*terms)


def follow_up_means(
    values: Matrix, values_tied: Matrix, log_hazard: Groups, log_hazard_tied: Groups, risk: RiskSets
) -> tuple[Rows, Matrix]:
    if risk.own.size:
        return _follow_up_means_late(values, values_tied, log_hazard, log_hazard_tied, risk)
    return _follow_up_means(values, values_tied, log_hazard, log_hazard_tied, risk)


@kernel
def _add(
    peak: float,
    total: float,
    mean: NDArray[np.float64],
    log_size: float,
    factor: float,
    value: NDArray[np.float64],
) -> tuple[float, float]:
    # Adds a mass of factor * exp(log_size) at `value`; `mean` is updated in place.
    if factor <= 0.0 or log_size == -np.inf:
        return peak, total
    if log_size <= peak:
        part = factor * np.exp(log_size - peak)
    else:
        total *= np.exp(peak - log_size)
        peak = log_size
        part = factor
    total += part
    step = part / total
    for j in range(mean.size):
        mean[j] += step * (value[j] - mean[j])
    return peak, total


@kernel
def _tied_means(
    values: Matrix, eta: Rows, risk: RiskSets, g: int, mean: NDArray[np.float64]
) -> tuple[float, float]:
    peak, total = -np.inf, 0.0
    for i in range(risk.group_ptr[g], risk.group_ptr[g + 1]):
        peak, total = _add(peak, total, mean, eta[i], risk.event_weight[i], values[i])
    return peak, total


@kernel
def _risk_set_means(
    values: Matrix, eta: Rows, risk: RiskSets
) -> tuple[Groups, Groups, Matrix, Matrix]:
    # Invariant: (peak, total, running) is the whole risk set of the groups before g.
    n_groups, q = risk.group_events.size, values.shape[1]
    log_rest, log_tied = np.full(n_groups, -np.inf), np.full(n_groups, -np.inf)
    mean_rest, mean_tied = np.zeros((n_groups, q)), np.zeros((n_groups, q))
    running = np.zeros(q)
    peak, total = -np.inf, 0.0
    for g in range(n_groups):
        if risk.starts_stratum[g]:
            peak, total = -np.inf, 0.0
            running[:] = 0.0
        for i in range(risk.group_ptr[g], risk.group_ptr[g + 1]):
            if risk.event_weight[i] == 0.0:
                peak, total = _add(peak, total, running, eta[i], risk.weight[i], values[i])
        if total > 0.0:
            log_rest[g] = peak + np.log(total)
            mean_rest[g] = running
        tied_peak, tied_total = _tied_means(values, eta, risk, g, mean_tied[g])
        if tied_total > 0.0:
            log_tied[g] = tied_peak + np.log(tied_total)
            peak, total = _add(peak, total, running, tied_peak, tied_total, mean_tied[g])
    return log_rest, log_tied, mean_rest, mean_tied


@kernel
def _tie_terms(
    log_rest: Groups, log_tied: Groups, events: Groups, tied: Index, efron: bool
) -> tuple[Groups, Groups, Groups, Groups, Groups, Groups, Groups, Groups]:
    n_groups = events.size
    log_hazard, log_hazard_tied = np.full(n_groups, -np.inf), np.full(n_groups, -np.inf)
    share, share_tied = np.zeros(n_groups), np.zeros(n_groups)
    share_event, square_event = np.zeros(n_groups), np.zeros(n_groups)
    square_hazard, square_hazard_tied = np.zeros(n_groups), np.zeros(n_groups)
    for g in range(n_groups):
        if tied[g] == 0 or log_tied[g] == -np.inf:
            continue
        steps = tied[g] if efron else 1
        peak = max(log_rest[g], log_tied[g])
        rest, part = np.exp(log_rest[g] - peak), np.exp(log_tied[g] - peak)
        h = ch = hq = chq = hh = chh = 0.0
        for k in range(steps):
            c = (steps - k) / steps
            size = rest + c * part
            q = c * part / size
            h += 1.0 / size
            ch += c / size
            hq += q / size
            chq += c * q / size
            hh += 1.0 / (size * size)
            chh += c / (size * size)
            share_event[g] += q / steps
            square_event[g] += q * q / steps
        log_step = np.log(events[g] / steps) - peak
        log_hazard[g] = log_step + np.log(h)
        log_hazard_tied[g] = log_step + np.log(ch)
        share[g] = hq / h
        share_tied[g] = chq / ch
        square_hazard[g] = hh / (h * h)
        square_hazard_tied[g] = chh / (h * ch)
    return (
        log_hazard, log_hazard_tied, share, share_tied, share_event, square_event,
        square_hazard, square_hazard_tied,
    )  # fmt: skip


@kernel
def _follow_up_means(
    values: Matrix, values_tied: Matrix, log_hazard: Groups, log_hazard_tied: Groups, risk: RiskSets
) -> tuple[Rows, Matrix]:
    # Invariant: (peak, total, running) holds the hazards of the groups after g, which are earlier.
    n_rows, n_groups, q = risk.order.size, log_hazard.size, values.shape[1]
    log_cumulative, mean = np.full(n_rows, -np.inf), np.zeros((n_rows, q))
    running = np.zeros(q)
    peak, total = -np.inf, 0.0
    for g in range(n_groups - 1, -1, -1):
        if g == n_groups - 1 or risk.starts_stratum[g + 1]:
            peak, total = -np.inf, 0.0
            running[:] = 0.0
        for i in range(risk.group_ptr[g], risk.group_ptr[g + 1]):
            if risk.event_weight[i] > 0.0:
                mean[i] = running
                p, t = _add(peak, total, mean[i], log_hazard_tied[g], 1.0, values_tied[g])
                if t > 0.0:
                    log_cumulative[i] = p + np.log(t)
        peak, total = _add(peak, total, running, log_hazard[g], 1.0, values[g])
        if total == 0.0:
            continue
        log_total = peak + np.log(total)
        for i in range(risk.group_ptr[g], risk.group_ptr[g + 1]):
            if risk.event_weight[i] == 0.0:
                mean[i] = running
                log_cumulative[i] = log_total
    return log_cumulative, mean


@kernel
def cumulate(log_hazard: Groups, starts_stratum: NDArray[np.bool_]) -> Groups:
    n_groups = log_hazard.size
    out = np.full(n_groups, -np.inf)
    peak, total = -np.inf, 0.0
    for g in range(n_groups - 1, -1, -1):
        if g == n_groups - 1 or starts_stratum[g + 1]:
            peak, total = -np.inf, 0.0
        if log_hazard[g] > peak:
            total = total * np.exp(peak - log_hazard[g]) + 1.0
            peak = log_hazard[g]
        elif log_hazard[g] > -np.inf:
            total += np.exp(log_hazard[g] - peak)
        if total > 0.0:
            out[g] = peak + np.log(total)
    return out


# ------------------------------------------------------------------------------------ late entry
# A row is at risk in the groups first..end-1. At the level of the highest bit in which `first` and
# `end - 1` differ, that range is a tail of the left half and a head of the right half of one
# aligned block of groups. Sums over such ranges are running sums within the halves: they only add,
# where a running total over time would have to subtract those who enter.


@kernel
def _by_level(first: Index, end: Index, n_groups: int) -> tuple[Index, Index]:
    # Rows by level: 0 for a range of one group, l for a border of blocks of 2**(l - 1); rows with
    # an empty range come last, at a level of their own.
    n_levels = 1
    while (1 << (n_levels - 1)) < n_groups:
        n_levels += 1
    level = np.empty(first.size, dtype=np.int64)
    ptr = np.zeros(n_levels + 2, dtype=np.int64)
    for i in range(first.size):
        level[i] = n_levels
        if end[i] > first[i]:
            level[i] = 0
            differ = first[i] ^ (end[i] - 1)
            while differ > 0:
                level[i] += 1
                differ >>= 1
        ptr[level[i] + 1] += 1
    for l in range(n_levels + 1):  # noqa: E741
        ptr[l + 1] += ptr[l]
    position = ptr.copy()
    rows = np.empty(first.size, dtype=np.int64)
    for i in range(first.size):
        rows[position[level[i]]] = i
        position[level[i]] += 1
    return rows, ptr


@kernel
def _risk_set_means_late(
    values: Matrix, eta: Rows, risk: RiskSets
) -> tuple[Groups, Groups, Matrix, Matrix]:
    n_groups, q = risk.group_events.size, values.shape[1]
    log_rest, log_tied = np.full(n_groups, -np.inf), np.full(n_groups, -np.inf)
    mean_rest, mean_tied = np.zeros((n_groups, q)), np.zeros((n_groups, q))
    for g in range(n_groups):
        tied_peak, tied_total = _tied_means(values, eta, risk, g, mean_tied[g])
        if tied_total > 0.0:
            log_tied[g] = tied_peak + np.log(tied_total)

    first = risk.own + (risk.event_weight > 0.0)
    rows, level_ptr = _by_level(first, risk.end, n_groups)
    peak, total = np.full(n_groups, -np.inf), np.zeros(n_groups)
    for i in rows[: level_ptr[1]]:
        g = first[i]
        peak[g], total[g] = _add(peak[g], total[g], mean_rest[g], eta[i], risk.weight[i], values[i])
    at_peak, at_total, at_mean = np.empty(n_groups), np.empty(n_groups), np.empty((n_groups, q))
    running = np.zeros(q)
    for level in range(1, level_ptr.size - 2):
        if level_ptr[level] == level_ptr[level + 1]:
            continue
        block = 1 << level
        for side in range(2):
            # Side 0: the rows that start at g in a left half are at risk up to its end.
            # Side 1: the rows that end at g in a right half are at risk from its start.
            at_peak[:], at_total[:], at_mean[:] = -np.inf, 0.0, 0.0
            for i in rows[level_ptr[level] : level_ptr[level + 1]]:
                g = first[i] if side == 0 else risk.end[i] - 1
                at_peak[g], at_total[g] = _add(
                    at_peak[g], at_total[g], at_mean[g], eta[i], risk.weight[i], values[i]
                )
            run_peak, run_total = -np.inf, 0.0
            for k in range(n_groups):
                g = k if side == 0 else n_groups - 1 - k
                inside = g & (block - 1)
                if k == 0 or inside == (0 if side == 0 else block - 1):
                    run_peak, run_total = -np.inf, 0.0
                    running[:] = 0.0
                if (inside < block >> 1) != (side == 0):
                    continue
                run_peak, run_total = _add(
                    run_peak, run_total, running, at_peak[g], at_total[g], at_mean[g]
                )
                peak[g], total[g] = _add(
                    peak[g], total[g], mean_rest[g], run_peak, run_total, running
                )
    for g in range(n_groups):
        if total[g] > 0.0:
            log_rest[g] = peak[g] + np.log(total[g])
    return log_rest, log_tied, mean_rest, mean_tied


@kernel
def _follow_up_means_late(
    values: Matrix, values_tied: Matrix, log_hazard: Groups, log_hazard_tied: Groups, risk: RiskSets
) -> tuple[Rows, Matrix]:
    n_rows, n_groups, q = risk.order.size, log_hazard.size, values.shape[1]
    log_cumulative, mean = np.full(n_rows, -np.inf), np.zeros((n_rows, q))
    first = risk.own + (risk.event_weight > 0.0)
    rows, level_ptr = _by_level(first, risk.end, n_groups)
    at_peak, at_total, at_mean = np.empty(n_groups), np.empty(n_groups), np.empty((n_groups, q))
    running = np.zeros(q)
    last_level = level_ptr.size - 2
    for level in range(last_level + 1):
        if level_ptr[level] == level_ptr[level + 1]:
            continue
        if 0 < level < last_level:
            # at_*[g]: hazards from g to the border of its block (left half), or from the border
            # to g (right half).
            block = 1 << level
            for side in range(2):
                run_peak, run_total = -np.inf, 0.0
                for k in range(n_groups):
                    g = k if side == 1 else n_groups - 1 - k
                    inside = g & (block - 1)
                    if (inside < block >> 1) != (side == 0):
                        run_peak, run_total = -np.inf, 0.0
                        running[:] = 0.0
                        continue
                    run_peak, run_total = _add(
                        run_peak, run_total, running, log_hazard[g], 1.0, values[g]
                    )
                    at_peak[g], at_total[g], at_mean[g] = run_peak, run_total, running
        for i in rows[level_ptr[level] : level_ptr[level + 1]]:
            p, t = -np.inf, 0.0
            a, b = first[i], risk.end[i] - 1
            if level == 0:
                p, t = _add(p, t, mean[i], log_hazard[a], 1.0, values[a])
            elif level < last_level:
                p, t = _add(p, t, mean[i], at_peak[a], at_total[a], at_mean[a])
                p, t = _add(p, t, mean[i], at_peak[b], at_total[b], at_mean[b])
            if risk.event_weight[i] > 0.0:
                g = risk.own[i]
                p, t = _add(p, t, mean[i], log_hazard_tied[g], 1.0, values_tied[g])
            if t > 0.0:
                log_cumulative[i] = p + np.log(t)
    return log_cumulative, mean
