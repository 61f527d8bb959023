"""Covariates about the means of risk sets, fast. See `term_means_ref`.

A risk set is again the rows with an event in the group (tied) and the rest; Efron's terms are sums
of the two, and nothing is subtracted.
"""

import math

import numpy as np

from riskset._runtime import Runtime
from riskset._types import Index, Matrix, RiskSets, Rows
from riskset.kernels import late_entry_cpu as late_entry
from riskset.kernels import means_cpu
from riskset.kernels._exponential import exp_block
from riskset.kernels._jit import kernel
from riskset.kernels._vector_columns import add_rows, gram_rows, join_rows
from riskset.kernels.risk_sets_cpu import BLOCK, MAX_ETA_SPAN

__all__ = [
    "MAX_REGISTER_COLUMNS",
    "deviations_nested",
    "information_at_risk",
    "information_nested",
    "risk_set_means",
]

MAX_REGISTER_COLUMNS = 128
"""The squares of more columns are left to BLAS, which keeps parts of them in the cache."""
MAX_BLOCK_NUMBERS = 8192
"""Distances that are made and summed at once: they never leave the cache."""
MIN_SIZE_SHARE = 2.0**-52
"""Of the largest risk set, for each row: a smaller one may have lost digits by taking rows off."""
MIN_EXPONENT = -600.0
"""The exponential of less counts as 0."""


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
def _masses(
    log_r: Rows,
    row0: int,
    risk: RiskSets,
    first: int,
    last: int,
    peak: float,
    r: Rows,
    fall: Rows,
) -> float:
    """``r = exp(log_r - peak)``; returns the last peak.

    It is the largest log_r of all rows and those before if that leaves every row its digits, else
    of a group and those before it. `fall` is what the sum of those before a group is to be
    multiplied by as the peak rises.
    """
    ptr, starts = risk.group_ptr, risk.starts_stratum
    high, low = peak, math.inf
    for i in range(row0, row0 + r.size):
        high = max(high, log_r[i])
        low = min(low, log_r[i] if log_r[i] > -math.inf else low)
    is_narrow = -math.inf < high < min(low, peak if peak > -math.inf else high) - MIN_EXPONENT
    for g in range(first, last):
        fall[g - first] = 1.0
    if is_narrow:
        fall[0] = math.exp(peak - high) if peak > -math.inf else 1.0
        peak = high
        for k in range(r.size):
            r[k] = log_r[row0 + k] - high
    for g in range(first, first if is_narrow else last):
        top = -math.inf if starts[g] else peak
        for i in range(ptr[g], ptr[g + 1]):
            top = max(top, log_r[i])
        fall[g - first] = math.exp(peak - top) if top > peak else 1.0
        peak = top
        for i in range(ptr[g], ptr[g + 1]):
            r[i - row0] = log_r[i] - peak if log_r[i] > -math.inf else -math.inf
    power = np.empty(BLOCK, np.int64)
    some = np.empty(BLOCK)
    for a in range(0, r.size, BLOCK):
        n = min(BLOCK, r.size - a)
        for k in range(n):
            some[k] = max(r[a + k], MIN_EXPONENT)
        exp_block(some[:n], power[:n])
        for k in range(n):
            r[a + k] = some[k] if r[a + k] > MIN_EXPONENT else 0.0
    return peak


@kernel
def _shares(amount: Rows, total: Rows, expected: Rows, share: Rows, step: Rows) -> None:
    """Where rows of these amounts join sets of these sizes: see `_vector_columns.join_rows`."""
    for k in range(amount.size):
        part = 1.0 / (total[k] + amount[k]) if amount[k] > 0.0 else 0.0
        share[k] = math.sqrt(expected[k] * (total[k] * part))
        step[k] = amount[k] * part


@kernel
def _sizes(
    r: Rows,
    fall: Rows,
    row0: int,
    risk: RiskSets,
    efron: bool,
    first: int,
    last: int,
    total: float,
    before: Rows,
    rest: Rows,
    tied: Rows,
) -> float:
    """Size of the set that each row finds, and of each group's: without and of its tied rows.

    Tied rows of Efron's terms make a set of their own.
    """
    ptr, starts, event_weight = risk.group_ptr, risk.starts_stratum, risk.event_weight
    for g in range(first, last):
        total = 0.0 if starts[g] else total * fall[g - first]
        apart = 0.0
        if efron and risk.group_tied[g] > 1:
            for k in range(ptr[g] - row0, ptr[g + 1] - row0):
                is_tied = event_weight[row0 + k] > 0.0
                before[k] = apart if is_tied else total
                apart += r[k] if is_tied else 0.0
                total += 0.0 if is_tied else r[k]
        else:
            for k in range(ptr[g] - row0, ptr[g + 1] - row0):
                before[k] = total
                total += r[k]
        rest[g - first], tied[g - first] = total, apart
        total += apart
    return total


@kernel
def _tied_weight(m: int, step: float, rest: float, tied: float, expected: float) -> float:
    """Weight of m tied rows as one, which join a set of size `rest` together."""
    weight = 0.0
    if rest > 0.0:
        for j in range(m):
            part = (m - j) / m * tied
            share = part / (rest + part)
            weight += step * share * (rest / (rest + part))
            expected -= step * share
    before = rest / (rest + tied)
    return (weight / before if before > 0.0 else 0.0) + max(expected, 0.0)


@kernel
def _join(
    x: Matrix, share: Rows, step: Rows, first: int, last: int, mean: Rows, out: Matrix
) -> None:
    """`join_rows`, once and for all who call it: each copy of its loops is compiled."""
    join_rows(x, share, step, first, last, mean, out)


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
    ptr, starts, event_weight = risk.group_ptr, risk.starts_stratum, risk.event_weight
    n_rows, here = x.shape[0], expected[row0 : row0 + x.shape[0]]
    # Each on its own: rows of one table would be strided as far as the compiler knows.
    r, before, share, step = np.empty(n_rows), np.empty(n_rows), np.empty(n_rows), np.empty(n_rows)
    n_groups = last - first
    fall, rest, apart = np.empty(n_groups), np.empty(n_groups), np.empty(n_groups)
    peak_total[0] = _masses(log_r, row0, risk, first, last, peak_total[0], r, fall)
    peak_total[1] = _sizes(
        r, fall, row0, risk, efron, first, last, peak_total[1], before, rest, apart
    )
    _shares(r, before, here, share, step)
    tied, one = np.empty((1, x.shape[1])), np.empty((4, 1))
    begin = 0
    for g in range(first, last):
        stop = ptr[g + 1] - row0
        if starts[g]:
            _join(x, share, step, begin, ptr[g] - row0, state, out)
            begin = ptr[g] - row0
            state[:] = 0.0
        if apart[g - first] == 0.0:
            continue
        _join(x, share, step, begin, ptr[g] - row0, state, out)
        tied[:] = 0.0
        joint, k, tied_expected = -1, ptr[g] - row0, 0.0
        while k < stop:
            begin, is_tied = k, event_weight[row0 + k] > 0.0
            while k < stop and (event_weight[row0 + k] > 0.0) == is_tied:
                if is_tied and r[k] > 0.0:
                    tied_expected += here[k]
                    joint = k if joint < 0 else joint
                k += 1
            _join(x, share, step, begin, k, tied[0] if is_tied else state, out)
        # The first of the tied rows has no distance of its own: it stands for all of them.
        m = risk.group_tied[g]
        one[0, 0], one[1, 0] = apart[g - first], rest[g - first]
        one[2, 0] = _tied_weight(
            m, risk.group_events[g] / m, rest[g - first], apart[g - first], tied_expected
        )
        _shares(one[0], one[1], one[2], share[joint : joint + 1], step[joint : joint + 1])
        _join(
            tied, share[joint : joint + 1], step[joint : joint + 1], 0, 1, state,
            out[joint : joint + 1],
        )  # fmt: skip
        begin = stop
    _join(x, share, step, begin, n_rows, state, out)


@kernel
def _log_masses(eta: Rows, risk: RiskSets) -> Rows:
    """``log(weight) + eta`` in risk order."""
    log_r = np.empty(risk.order.size)
    for i in range(log_r.size):
        w = risk.weight[i]
        log_w = math.log(w) if w > 0.0 else -math.inf
        log_r[i] = eta[risk.order[i]] + (log_w if w != 1.0 else 0.0)
    return log_r


@kernel
def _information_part(
    first: int,
    last: int,
    eta: Rows,
    expected: Rows,
    x: Matrix,
    risk: RiskSets,
    efron: bool,
    block_rows: int,
    out: Matrix,
) -> None:
    """Parts of the sum of squares: rows of the result by fours, a long one with a short one."""
    ptr, q, n_groups = risk.group_ptr, x.shape[1], risk.group_events.size
    log_r = _log_masses(eta, risk)
    state, peak_total = np.zeros(q), np.array([-math.inf, 0.0])
    scratch = np.empty((block_rows, q))
    n_fours = (q + 3) // 4
    g = 0
    while g < n_groups:
        stop = g + 1
        while stop < n_groups and ptr[stop + 1] - ptr[g] <= block_rows:
            stop += 1
        a, b = ptr[g], ptr[stop]
        if b - a > scratch.shape[0]:
            scratch = np.empty((b - a, q))
        deviations_nested(
            log_r, expected, x[a:b], a, risk, efron, g, stop, state, peak_total, scratch
        )
        for part in range(first, last):
            other = n_fours - 1 - part
            gram_rows(scratch, b - a, 4 * part, min(q, 4 * part + 4), out)
            if other > part:
                gram_rows(scratch, b - a, 4 * other, min(q, 4 * other + 4), out)
        g = stop


def information_nested(
    eta: Rows, expected: Rows, x: Matrix, risk: RiskSets, efron: bool, runtime: Runtime
) -> Matrix:
    # Every thread makes all distances, which takes little beside their squares, and no thread has
    # to know the means that the rows before its own leave behind.
    q = x.shape[1]
    block_rows = int(np.clip(MAX_BLOCK_NUMBERS // max(1, q), 16, 1024))
    half = np.zeros((q, q))
    n_parts = ((q + 3) // 4 + 1) // 2
    runtime.run(_information_part, n_parts, eta, expected, x, risk, efron, block_rows, half)
    return np.asarray(np.triu(half) + np.triu(half, 1).T)


@kernel
def _leaving(own: Index, end: Index, n_groups: int) -> tuple[Index, Index]:
    """Rows that were at risk by the group before which they leave, and where each group's begin."""
    ptr = np.zeros(n_groups + 2, np.int64)
    for i in range(end.size):
        ptr[end[i] + 1] += 1 if end[i] > own[i] else 0
    for g in range(n_groups + 1):
        ptr[g + 1] += ptr[g]
    at, rows = ptr.copy(), np.empty(end.size, np.int64)
    for i in range(end.size):
        if end[i] > own[i]:
            rows[at[end[i]]] = i
            at[end[i]] += 1
    return rows, ptr


@kernel
def _squares_about(
    x: Matrix, weight: Rows, first: int, last: int, scratch: Matrix, center: Rows, out: Matrix
) -> None:
    """Add weighted squares of distances from the weighted mean of some rows, which it returns."""
    nothing, share = np.zeros(scratch.shape[0]), np.empty(scratch.shape[0])
    step, total = np.empty(scratch.shape[0]), 0.0
    center[:] = 0.0
    for is_second in (False, True):
        for a in range(first, last, scratch.shape[0]):
            n = min(scratch.shape[0], last - a)
            for k in range(n):
                w = weight[a + k]
                total += w
                share[k] = math.sqrt(w)
                step[k] = w / total if w > 0.0 else 0.0
            if is_second:
                join_rows(x[a : a + n], share, nothing, 0, n, center, scratch)
                gram_rows(scratch, n, 0, x.shape[1], out)
            else:
                join_rows(x[a : a + n], nothing, step, 0, n, center, scratch)


@kernel
def _means_of_terms(
    r: Rows,
    x: Matrix,
    risk: RiskSets,
    efron: bool,
    leaving: Index,
    leaving_ptr: Index,
    expected: Rows,
    scratch: Matrix,
    out: Matrix,
    squares: Matrix,
) -> float:
    """Squares of rows and of the means of terms; returns the least size beside the largest.

    Sums over risk sets have twice the digits of a number: so rows may be taken off again.
    """
    ptr, end, events, q = risk.group_ptr, risk.end, risk.event_weight, x.shape[1]
    n_groups, rows = risk.group_events.size, np.arange(r.size)
    sums, tied, center = np.zeros((2, q)), np.zeros((2, q)), np.zeros(q)
    one = np.ones((r.size, 1))
    size, tied_size = np.zeros((2, 1)), np.zeros((2, 1))
    n, least, most = 0, math.inf, 0.0
    for g in range(n_groups):
        begin, stop = ptr[g], ptr[g + 1]
        if risk.starts_stratum[g]:
            if n:
                gram_rows(scratch, n, 0, q, squares)
            n, after = 0, g + 1
            while after < n_groups and not risk.starts_stratum[after]:
                after += 1
            _squares_about(x, expected, begin, ptr[after], scratch, center, out)
            sums[:], size[:] = 0.0, 0.0
        else:
            a, b = leaving_ptr[g], leaving_ptr[g + 1]
            add_rows(x, leaving, r, -1.0, a, b, sums[0], sums[1])
            add_rows(one, leaving, r, -1.0, a, b, size[0], size[1])
        m = risk.group_tied[g]
        apart = efron and m > 1
        tied[:], tied_size[:] = 0.0, 0.0
        if not apart and (end[begin:stop] > g).all():
            add_rows(x, rows, r, 1.0, begin, stop, sums[0], sums[1])
            add_rows(one, rows, r, 1.0, begin, stop, size[0], size[1])
        else:
            for i in range(begin, stop):
                if end[i] <= g:
                    continue
                if apart and events[i] > 0.0:
                    add_rows(x, rows, r, 1.0, i, i + 1, tied[0], tied[1])
                    add_rows(one, rows, r, 1.0, i, i + 1, tied_size[0], tied_size[1])
                else:
                    add_rows(x, rows, r, 1.0, i, i + 1, sums[0], sums[1])
                    add_rows(one, rows, r, 1.0, i, i + 1, size[0], size[1])
        n_steps = m if efron else min(m, 1)
        for k in range(n_steps):
            left = (n_steps - k) / n_steps
            total = size[0, 0] + size[1, 0] + left * (tied_size[0, 0] + tied_size[1, 0])
            least = min(least, total)
            weight = math.sqrt(risk.group_events[g] / n_steps)
            part = weight / total
            for s in range(q):
                mean = sums[0, s] + sums[1, s] + left * (tied[0, s] + tied[1, s])
                scratch[n, s] = mean * part - weight * center[s]
            n += 1
            if n == scratch.shape[0]:
                gram_rows(scratch, n, 0, q, squares)
                n = 0
        most = max(most, size[0, 0] + tied_size[0, 0])
        if apart:
            for i in range(begin, stop):
                if events[i] > 0.0 and end[i] > g:
                    add_rows(x, rows, r, 1.0, i, i + 1, sums[0], sums[1])
                    add_rows(one, rows, r, 1.0, i, i + 1, size[0], size[1])
    if n:
        gram_rows(scratch, n, 0, q, squares)
    return least / most if most > 0.0 else 1.0


def information_at_risk(
    eta: Rows, expected: Rows, x: Matrix, risk: RiskSets, efron: bool
) -> Matrix:
    ordered, q = eta[risk.order], x.shape[1]
    high = float(ordered.max())
    if q <= MAX_REGISTER_COLUMNS and high - float(ordered.min()) < MAX_ETA_SPAN:
        r = risk.weight * np.exp(ordered - high)
        leaving = _leaving(risk.own, risk.end, risk.group_events.size)
        of_rows, of_means = np.zeros((2, q, q))
        scratch = np.empty((int(np.clip(MAX_BLOCK_NUMBERS // max(1, q), 16, 1024)), q))
        least = _means_of_terms(r, x, risk, efron, *leaving, expected, scratch, of_rows, of_means)
        if least > MIN_SIZE_SHARE * r.size:
            half = of_rows - of_means
            return np.asarray(np.triu(half) + np.triu(half, 1).T)
    # About the means of strata: a difference, of squares as small as they can be.
    stratum = np.repeat(np.cumsum(risk.starts_stratum) - 1, np.diff(risk.group_ptr))
    size = np.bincount(stratum, expected)
    center = np.zeros((size.size, q))
    np.add.at(center, stratum, expected[:, None] * x)
    x = x - (center / np.where(size > 0, size, 1.0)[:, None])[stratum]
    means, weights = risk_set_means(eta, risk, efron, x)
    out = x.T @ (expected[:, None] * x) - means.T @ (weights[:, None] * means)
    return np.asarray((out + out.T) / 2)
