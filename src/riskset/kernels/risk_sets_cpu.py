"""Sums over risk sets in O(n) on the CPU. The specification is `risk_sets_ref`.

Without late entry risk sets are nested and one running sum in each direction gives everything; a
scan is cut into fixed chunks (totals, carries, chunks again). With late entry a row is at risk in a
range of groups [own, end). Taking leavers off a running total would cancel, so the range is cut in
two at the highest bit in which `own` and `end - 1` differ: a tail of one half and a head of the
next, both of which are running sums that only add (a disjoint sparse table): O(n + G log G).

`exp` is taken after one shift while eta spans less than `SPAN`; beyond it, the same sums are taken
in logarithms.
"""

import math

import numpy as np

from riskset._runtime import Runtime
from riskset._types import Index, Matrix, NDArray, Pointer, RiskSets, Rows
from riskset.kernels._jit import kernel
from riskset.kernels.risk_sets_ref import CoxPass

__all__ = ["CoxPass", "cox_pass", "risk_set_means"]

SPAN = 600.0
LOG2E = 1.4426950408889634
LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10


@kernel
def _exp_block(x, power):  # type: ignore[no-untyped-def]
    """Replace x by exp(x), for -700 < x < 700; written so that it becomes vector instructions.

    x = k ln 2 + r with \\|r\\| <= ln 2 / 2 (Cody and Waite); Taylor's series to r^13 is below half a
    unit in the last place; 2^k is made from its bits.
    """
    scale = power.view(np.float64)
    for i in range(x.size):
        k = np.floor(x[i] * LOG2E + 0.5)
        power[i] = (np.int64(k) + 1023) << 52
        r = (x[i] - k * LN2_HIGH) - k * LN2_LOW
        p = 1.6059043836821613e-10
        p = p * r + 2.08767569878681e-09
        p = p * r + 2.505210838544172e-08
        p = p * r + 2.755731922398589e-07
        p = p * r + 2.7557319223985893e-06
        p = p * r + 2.48015873015873e-05
        p = p * r + 1.984126984126984e-04
        p = p * r + 1.388888888888889e-03
        p = p * r + 8.333333333333333e-03
        p = p * r + 4.1666666666666664e-02
        p = p * r + 1.6666666666666666e-01
        p = p * r + 0.5
        p = p * r + 1.0
        p = p * r + 1.0
        x[i] = p
    for i in range(x.size):
        x[i] *= scale[i]


@kernel
def _totals(  # type: ignore[no-untyped-def]
    first, last, eta, shift, order, weight, event_weight, group_ptr, starts, chunk_ptr,
    efron, r, total, tied, chunk_sum, chunk_starts, linear,
):
    """Chunk by chunk: r, sums over nested risk sets since the chunk or stratum began."""
    x = np.empty(256)
    power = np.empty(256, np.int64)
    for c in range(first, last):
        begin, stop = group_ptr[chunk_ptr[c]], group_ptr[chunk_ptr[c + 1]]
        score = 0.0
        for a in range(begin, stop, 256):
            n = min(256, stop - a)
            for i in range(n):
                x[i] = eta[order[a + i]] - shift
                score += event_weight[a + i] * x[i]
            _exp_block(x[:n], power[:n])
            for i in range(n):
                r[a + i] = weight[a + i] * x[i]
        linear[c] = score
        running = 0.0
        chunk_starts[c] = False
        for g in range(chunk_ptr[c], chunk_ptr[c + 1]):
            if starts[g]:
                running = 0.0
                chunk_starts[c] = True
            group = dead = 0.0
            for i in range(group_ptr[g], group_ptr[g + 1]):
                group += r[i]
                if efron and event_weight[i] > 0.0:
                    dead += r[i]
            running += group
            total[g] = running
            tied[g] = dead
        chunk_sum[c] = running


@kernel
def _hazards(  # type: ignore[no-untyped-def]
    first, last, group_events, group_tied, starts, chunk_ptr, efron, carry,
    total, tied, hazard, correction, chunk_hazard, log_part,
):
    """Chunk by chunk: complete totals, hazard increments, and the sum to hand to the left."""
    for c in range(first, last):
        open_start = carry[c]
        value = handed = 0.0
        inside = True
        for g in range(chunk_ptr[c], chunk_ptr[c + 1]):
            if starts[g]:
                open_start = 0.0
                inside = False
            total[g] += open_start
            n_events = group_events[g]
            hazard[g] = correction[g] = 0.0
            if n_events > 0.0:
                if efron and group_tied[g] > 1:
                    m = group_tied[g]
                    step = n_events / m
                    for k in range(m):
                        part = k / m
                        # At least total / m, so the difference loses no more than a factor m.
                        d = total[g] - part * tied[g]
                        value -= step * math.log(d)
                        hazard[g] += step / d
                        correction[g] += part * step / d
                else:
                    value -= n_events * math.log(total[g])
                    hazard[g] = n_events / total[g]
            if inside:
                handed += hazard[g]
        chunk_hazard[c] = handed
        log_part[c] = value


@kernel
def _residuals(  # type: ignore[no-untyped-def]
    first, last, order, event_weight, group_ptr, starts, chunk_ptr, carry,
    r, hazard, correction, expected, residual,
):
    """Chunk by chunk, backwards: cumulative hazard, expected events, residuals."""
    for c in range(first, last):
        cumulative = carry[c]
        for g in range(chunk_ptr[c + 1] - 1, chunk_ptr[c] - 1, -1):
            cumulative += hazard[g]
            for i in range(group_ptr[g], group_ptr[g + 1]):
                e = r[i] * cumulative
                if event_weight[i] > 0.0:
                    e = r[i] * (cumulative - correction[g])
                expected[i] = e
                residual[order[i]] = event_weight[i] - e
            if starts[g]:
                cumulative = 0.0


@kernel
def _cover(r, own, end, level_rows, level_ptr, total):  # type: ignore[no-untyped-def]
    """Sum r over the rows that are at risk in each group: a tail and a head at every level."""
    n_groups = total.size
    total[:] = 0.0
    for k in range(level_ptr[0], level_ptr[1]):
        total[own[level_rows[k]]] += r[level_rows[k]]
    tail, head = np.empty(n_groups), np.empty(n_groups)
    for level in range(1, level_ptr.size - 1):
        if level_ptr[level] == level_ptr[level + 1]:
            continue
        tail[:] = 0.0
        head[:] = 0.0
        for k in range(level_ptr[level], level_ptr[level + 1]):
            i = level_rows[k]
            tail[own[i]] += r[i]
            head[end[i] - 1] += r[i]
        half = 1 << (level - 1)
        for left in range(0, n_groups, 2 * half):
            middle, stop = min(left + half, n_groups), min(left + 2 * half, n_groups)
            running = 0.0
            for g in range(left, middle):
                running += tail[g]
                total[g] += running
            running = 0.0
            for g in range(stop - 1, middle - 1, -1):
                running += head[g]
                total[g] += running


@kernel
def _cumulate(hazard, own, end, level_rows, level_ptr, cumulative):  # type: ignore[no-untyped-def]
    """Sum the hazard over the groups in which each row is at risk, by the same tails and heads."""
    n_groups = hazard.size
    cumulative[:] = 0.0
    for k in range(level_ptr[0], level_ptr[1]):
        i = level_rows[k]
        cumulative[i] = hazard[own[i]]
    sums = np.empty(n_groups)
    for level in range(1, level_ptr.size - 1):
        if level_ptr[level] == level_ptr[level + 1]:
            continue
        half = 1 << (level - 1)
        for left in range(0, n_groups, 2 * half):
            middle, stop = min(left + half, n_groups), min(left + 2 * half, n_groups)
            running = 0.0
            for g in range(middle - 1, left - 1, -1):
                running += hazard[g]
                sums[g] = running
            running = 0.0
            for g in range(middle, stop):
                running += hazard[g]
                sums[g] = running
        for k in range(level_ptr[level], level_ptr[level + 1]):
            i = level_rows[k]
            cumulative[i] = sums[own[i]] + sums[end[i] - 1]


@kernel
def _add(a, b):  # type: ignore[no-untyped-def]
    """log(exp(a) + exp(b)), also of -inf."""
    high, low = (a, b) if a > b else (b, a)
    if low == -math.inf:
        return high
    return high + math.log1p(math.exp(low - high))


@kernel
def _log_totals(log_r, group_ptr, starts, log_total):  # type: ignore[no-untyped-def]
    """Nested risk sets in logarithms, with a peak that rises as larger terms are met."""
    peak, total = -math.inf, 0.0
    for g in range(starts.size):
        if starts[g]:
            peak, total = -math.inf, 0.0
        for i in range(group_ptr[g], group_ptr[g + 1]):
            if log_r[i] > peak:
                total = total * math.exp(peak - log_r[i]) + 1.0
                peak = log_r[i]
            elif log_r[i] > -math.inf:
                total += math.exp(log_r[i] - peak)
        log_total[g] = peak + math.log(total) if total > 0.0 else -math.inf


@kernel
def _log_cover(log_r, own, end, level_rows, level_ptr, log_total):  # type: ignore[no-untyped-def]
    """`_cover` in logarithms."""
    n_groups = log_total.size
    log_total[:] = -math.inf
    for k in range(level_ptr[0], level_ptr[1]):
        g = own[level_rows[k]]
        log_total[g] = _add(log_total[g], log_r[level_rows[k]])
    tail, head = np.empty(n_groups), np.empty(n_groups)
    for level in range(1, level_ptr.size - 1):
        if level_ptr[level] == level_ptr[level + 1]:
            continue
        tail[:] = -math.inf
        head[:] = -math.inf
        for k in range(level_ptr[level], level_ptr[level + 1]):
            i = level_rows[k]
            tail[own[i]] = _add(tail[own[i]], log_r[i])
            head[end[i] - 1] = _add(head[end[i] - 1], log_r[i])
        half = 1 << (level - 1)
        for left in range(0, n_groups, 2 * half):
            middle, stop = min(left + half, n_groups), min(left + 2 * half, n_groups)
            running = -math.inf
            for g in range(left, middle):
                running = _add(running, tail[g])
                log_total[g] = _add(log_total[g], running)
            running = -math.inf
            for g in range(stop - 1, middle - 1, -1):
                running = _add(running, head[g])
                log_total[g] = _add(log_total[g], running)


@kernel
def _log_cumulate(log_hazard, own, end, level_rows, level_ptr, log_cumulative):  # type: ignore[no-untyped-def]
    """`_cumulate` in logarithms."""
    n_groups = log_hazard.size
    log_cumulative[:] = -math.inf
    for k in range(level_ptr[0], level_ptr[1]):
        i = level_rows[k]
        log_cumulative[i] = log_hazard[own[i]]
    sums = np.empty(n_groups)
    for level in range(1, level_ptr.size - 1):
        if level_ptr[level] == level_ptr[level + 1]:
            continue
        half = 1 << (level - 1)
        for left in range(0, n_groups, 2 * half):
            middle, stop = min(left + half, n_groups), min(left + 2 * half, n_groups)
            running = -math.inf
            for g in range(middle - 1, left - 1, -1):
                running = _add(running, log_hazard[g])
                sums[g] = running
            running = -math.inf
            for g in range(middle, stop):
                running = _add(running, log_hazard[g])
                sums[g] = running
        for k in range(level_ptr[level], level_ptr[level + 1]):
            i = level_rows[k]
            log_cumulative[i] = _add(sums[own[i]], sums[end[i] - 1])


@kernel
def _log_nested(log_hazard, group_ptr, starts, log_cumulative):  # type: ignore[no-untyped-def]
    """Cumulative hazard of nested risk sets in logarithms, backwards."""
    running = -math.inf
    for g in range(starts.size - 1, -1, -1):
        running = _add(running, log_hazard[g])
        for i in range(group_ptr[g], group_ptr[g + 1]):
            log_cumulative[i] = running
        if starts[g]:
            running = -math.inf


@kernel
def _log_hazards(  # type: ignore[no-untyped-def]
    log_r, event_weight, group_ptr, group_events, group_tied, efron, log_total,
    log_hazard, share,
):
    """Hazard increments in logarithms; share: the part of it that a tied event does not bear."""
    value = 0.0
    for g in range(group_events.size):
        log_hazard[g] = -math.inf
        share[g] = -math.inf
        if group_events[g] <= 0.0:
            continue
        m = group_tied[g]
        if not efron or m == 1:
            value -= group_events[g] * log_total[g]
            log_hazard[g] = math.log(group_events[g]) - log_total[g]
            continue
        dead = -math.inf
        for i in range(group_ptr[g], group_ptr[g + 1]):
            if event_weight[i] > 0.0:
                dead = _add(dead, log_r[i])
        step = group_events[g] / m
        ratio = math.exp(dead - log_total[g])
        for k in range(m):
            log_d = log_total[g] + math.log1p(-(k / m) * min(ratio, 1.0))
            value -= step * log_d
            log_hazard[g] = _add(log_hazard[g], math.log(step) - log_d)
            if k > 0:
                share[g] = _add(share[g], math.log(step * k / m) - log_d)
    return value


@kernel
def _log_expected(log_r, event_weight, group_ptr, log_cumulative, share, expected):  # type: ignore[no-untyped-def]
    for g in range(share.size):
        for i in range(group_ptr[g], group_ptr[g + 1]):
            expected[i] = math.exp(log_r[i] + log_cumulative[i])
            if event_weight[i] > 0.0 and share[g] > -math.inf:
                expected[i] -= math.exp(log_r[i] + share[g])


def cox_pass(eta: Rows, risk: RiskSets, efron: bool, runtime: Runtime) -> CoxPass:
    """See `risk_sets_ref.cox_pass`."""
    high = float(eta.max())
    if high - float(eta.min()) < SPAN:
        return _pass_shifted(eta, high, risk, efron, runtime)
    return _pass_log(eta, risk, efron)


def _carry(sums: NDArray[np.float64], has_start: NDArray[np.bool_]) -> NDArray[np.float64]:
    """What each chunk receives from those before it; a chunk in which a stratum starts blocks."""
    carry = np.zeros(sums.size)
    for c in range(1, sums.size):
        carry[c] = sums[c - 1] + (0.0 if has_start[c - 1] else carry[c - 1])
    return carry


def _pass_shifted(
    eta: Rows, shift: float, risk: RiskSets, efron: bool, runtime: Runtime
) -> CoxPass:
    n_groups, n_chunks = risk.group_events.size, risk.chunk_ptr.size - 1
    residual = np.empty(eta.size)
    r, expected = np.empty(risk.order.size), np.empty(risk.order.size)
    total, tied, hazard, correction = (np.empty(n_groups) for _ in range(4))
    chunk_sum, chunk_hazard, linear, log_part = (np.empty(n_chunks) for _ in range(4))
    has_start = np.empty(n_chunks, dtype=np.bool_)
    starts = risk.starts_stratum
    runtime.run(
        _totals, n_chunks, eta, shift, risk.order, risk.weight, risk.event_weight, risk.group_ptr,
        starts, risk.chunk_ptr, efron, r, total, tied, chunk_sum, has_start, linear,
    )
    carry = _carry(chunk_sum, has_start)
    late = risk.own.size > 0
    if late:
        _cover(r, risk.own, risk.end, risk.level_rows, risk.level_ptr, total)
        carry[:] = 0.0
    runtime.run(
        _hazards, n_chunks, risk.group_events, risk.group_tied, starts, risk.chunk_ptr, efron,
        carry, total, tied, hazard, correction, chunk_hazard, log_part,
    )
    if late:
        cumulative = np.empty(r.size)
        _cumulate(hazard, risk.own, risk.end, risk.level_rows, risk.level_ptr, cumulative)
        if efron:
            group = np.repeat(correction, np.diff(risk.group_ptr))
            cumulative -= np.where(risk.event_weight > 0, group, 0.0)
        expected = r * cumulative
        # A row may stand in several places here (`solve.separation`), so its parts are added up.
        residual = np.bincount(risk.order, risk.event_weight - expected, eta.size)
    else:
        back = _carry(chunk_hazard[::-1], has_start[::-1])[::-1].copy()
        runtime.run(
            _residuals, n_chunks, risk.order, risk.event_weight, risk.group_ptr, starts,
            risk.chunk_ptr, back, r, hazard, correction, expected, residual,
        )
    with np.errstate(divide="ignore"):
        log_total, log_hazard = np.log(total), np.log(hazard)
    log_total += shift
    log_hazard -= shift
    value = float(linear.sum() + log_part.sum())
    return CoxPass(value, residual, expected, log_total, log_hazard)


def _pass_log(eta: Rows, risk: RiskSets, efron: bool) -> CoxPass:
    n_groups = risk.group_events.size
    ordered = eta[risk.order]
    with np.errstate(divide="ignore"):
        log_r = np.log(risk.weight) + ordered
    log_total, log_hazard, share = (np.empty(n_groups) for _ in range(3))
    log_cumulative, expected = np.empty(log_r.size), np.empty(log_r.size)
    late = risk.own.size > 0
    if late:
        _log_cover(log_r, risk.own, risk.end, risk.level_rows, risk.level_ptr, log_total)
    else:
        _log_totals(log_r, risk.group_ptr, risk.starts_stratum, log_total)
    value = _log_hazards(
        log_r, risk.event_weight, risk.group_ptr, risk.group_events, risk.group_tied, efron,
        log_total, log_hazard, share,
    )
    if late:
        _log_cumulate(
            log_hazard, risk.own, risk.end, risk.level_rows, risk.level_ptr, log_cumulative
        )
    else:
        _log_nested(log_hazard, risk.group_ptr, risk.starts_stratum, log_cumulative)
    _log_expected(log_r, risk.event_weight, risk.group_ptr, log_cumulative, share, expected)
    residual = np.bincount(risk.order, risk.event_weight - expected, eta.size)
    value += float(risk.event_weight @ ordered)
    return CoxPass(value, residual, expected, log_total, log_hazard)


@kernel
def _means_nested(  # type: ignore[no-untyped-def]
    log_r, x, row0, event_weight, group_ptr, starts, group_events, group_tied, efron,
    first, last, state, peak_total, means, weights,
):
    """Groups first to last: running sums of r x under a peak that only rises."""
    q = x.shape[1]
    dead = np.empty(q)
    term = 0
    peak, total = peak_total[0], peak_total[1]
    for g in range(first, last):
        if starts[g]:
            peak, total = -math.inf, 0.0
            state[:] = 0.0
        top = peak
        for i in range(group_ptr[g], group_ptr[g + 1]):
            top = max(top, log_r[i])
        if top > peak:
            fade = math.exp(peak - top) if total > 0.0 else 0.0
            total *= fade
            for s in range(q):
                state[s] *= fade
            peak = top
        dead[:] = 0.0
        dead_total = 0.0
        for i in range(group_ptr[g], group_ptr[g + 1]):
            if log_r[i] == -math.inf:
                continue
            r = math.exp(log_r[i] - peak)
            total += r
            xi = x[i - row0]
            for s in range(q):
                state[s] += r * xi[s]
            if efron and event_weight[i] > 0.0:
                dead_total += r
                for s in range(q):
                    dead[s] += r * xi[s]
        if group_events[g] > 0.0:
            m = group_tied[g] if efron else 1
            for k in range(m):
                part = k / m
                d = total - part * dead_total
                for s in range(q):
                    means[term, s] = (state[s] - part * dead[s]) / d
                weights[term] = group_events[g] / m
                term += 1
    peak_total[0], peak_total[1] = peak, total


def risk_set_means(eta: Rows, risk: RiskSets, efron: bool, x: Matrix) -> tuple[Matrix, Rows]:
    """See `risk_sets_ref.risk_set_means`."""
    terms = n_terms(risk, efron)
    means, weights = np.empty((terms, x.shape[1])), np.empty(terms)
    with np.errstate(divide="ignore"):
        log_r = np.log(risk.weight) + eta[risk.order]
    if risk.own.size:
        return _means_cover(log_r, risk, efron, x)
    state, peak_total = np.zeros(x.shape[1]), np.array([-np.inf, 0.0])
    means_nested(log_r, x, 0, risk, efron, 0, risk.group_events.size, state, peak_total, means, weights)
    return means, weights


def n_terms(risk: RiskSets, efron: bool, first: int = 0, last: int | None = None) -> int:
    """Number of terms of the likelihood in groups first to last."""
    tied = risk.group_tied[first:last]
    return int(tied.sum() if efron else np.count_nonzero(tied))


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
    """The means of groups first to last, continuing from and updating `state`, `peak_total`.

    x holds the rows of these groups only, `row0` first, in risk order.
    """
    _means_nested(
        log_r, x, row0, risk.event_weight, risk.group_ptr, risk.starts_stratum, risk.group_events,
        risk.group_tied, efron, first, last, state, peak_total, means, weights,
    )


def _means_cover(
    log_r: Rows, risk: RiskSets, efron: bool, x: Matrix
) -> tuple[Matrix, Rows]:
    """With late entry: sums of exp(log_r - log_total) x over ranges, column by column."""
    n_groups = risk.group_events.size
    log_total = np.empty(n_groups)
    _log_cover(log_r, risk.own, risk.end, risk.level_rows, risk.level_ptr, log_total)
    group_of = np.repeat(np.arange(n_groups), np.diff(risk.group_ptr))
    high = float(log_r.max())
    span = high - float(log_r[log_r > -np.inf].min())
    sums = np.empty((n_groups, x.shape[1]))
    if span < SPAN:
        r = np.exp(log_r - high)
        for s in range(x.shape[1]):
            _cover(r * x[:, s], risk.own, risk.end, risk.level_rows, risk.level_ptr, sums[:, s])
        with np.errstate(divide="ignore", invalid="ignore"):
            sums /= np.exp(log_total - high)[:, None]
    else:
        _cover_scaled(log_r, x, risk.own, risk.end, log_total, sums)
    if not efron:
        used = risk.group_events > 0
        return sums[used], risk.group_events[used]
    dead = np.flatnonzero(risk.event_weight > 0)
    share = np.exp(log_r[dead] - log_total[group_of[dead]])
    dead_total = np.bincount(group_of[dead], share, n_groups)
    dead_sums = np.empty_like(sums)
    for s in range(x.shape[1]):
        dead_sums[:, s] = np.bincount(group_of[dead], share * x[dead, s], n_groups)
    used = np.flatnonzero(risk.group_events > 0)
    tied = risk.group_tied[used]
    g = np.repeat(used, tied)
    k = np.arange(g.size) - np.repeat(np.cumsum(tied) - tied, tied)
    part = (k / risk.group_tied[g])[:, None]
    means = (sums[g] - part * dead_sums[g]) / (1.0 - part * dead_total[g][:, None])
    return means, risk.group_events[g] / risk.group_tied[g]


@kernel
def _cover_scaled(log_r, x, own, end, log_total, sums):  # type: ignore[no-untyped-def]
    # Rare: late entry and an eta that spans more than SPAN. Row by row, each term at its own scale.
    sums[:, :] = 0.0
    for i in range(log_r.size):
        for g in range(own[i], end[i]):
            share = math.exp(log_r[i] - log_total[g])
            for s in range(x.shape[1]):
                sums[g, s] += share * x[i, s]
