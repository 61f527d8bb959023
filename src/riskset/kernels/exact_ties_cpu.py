r"""The exact conditional likelihood of tied events on the CPU. See `exact_ties_ref`.

A *run* is a sequence of rows, and some places in it: those where a group ends, whose risk set is
what the run has up to there. Chances take the place of sums over sets. If row i falls into a set
with the chance :math:`p_i = \theta r_i / (1 + \theta r_i)`, independently of others, the set has k
rows with the chance :math:`f_k = \theta^k B(k, R) / \prod_i (1 + \theta r_i)`, and

.. math:: f_k \leftarrow (1 - p_i) f_k + p_i f_{k - 1}

as row i joins. All terms are positive, and no size of a tie overflows. What underflows counts for
nothing if the chance of the number of events is not tiny itself: a run whose :math:`\theta` makes
that number the expected one is always good (its chance is at least 1 / (n + 1)). A run of all
groups of a stratum has one :math:`\theta` for all; groups whose chance is tiny there get runs of
their own. Derivatives follow the recursion backwards, from states at every so many rows.
"""

import math

import numpy as np
from numpy.typing import NDArray

from riskset._runtime import Runtime
from riskset._types import Index, Matrix, RiskSets, Rows
from riskset.kernels._jit import kernel
from riskset.kernels.exact_ties_ref import ExactPass

__all__ = ["exact_pass", "exact_products"]

TINY = 1e-280
"""A chance that is smaller at the edge of those of all numbers is taken for 0."""
MIN_CHANCE = 1e-150
"""That of the number of events in a run of several groups."""
EXPECTED_SHARE = 0.37
"""Expected rows of such a run, as a share of the largest tie: then few chances underflow."""
MAX_SEARCH = 200


@kernel
def _theta(x: Rows, n: int, m: float) -> float:
    """Log of a theta with which about m of the first n rows are expected."""
    peak, least = -math.inf, math.inf
    for i in range(n):
        peak = max(peak, x[i])
        least = min(least, x[i])
    total = 0.0
    for i in range(n):
        total += math.exp(x[i] - peak)
    low = math.log(m) - peak - math.log(total)
    high = math.log(m / (n - m)) - least
    at = low
    for _ in range(MAX_SEARCH):
        mean, variance = 0.0, 0.0
        for i in range(n):
            e = math.exp(-abs(at + x[i]))
            share = e / (1.0 + e)
            variance += share / (1.0 + e)
            mean += share if at + x[i] < 0.0 else 1.0 / (1.0 + e)
        if abs(mean - m) <= 0.1 + 0.1 * math.sqrt(variance):
            break
        if mean < m:
            low = at
        else:
            high = at
        step = at + (m - mean) / variance if variance > 0.0 else math.inf
        at = step if low < step < high else 0.5 * (low + high)
    return at


@kernel
def _chances(x: Rows, n: int, theta: float, p: Rows, q: Rows, log_total: Rows) -> None:
    """Chances of each row, 1 less these, and log of the product of 1 + theta r up to each row."""
    total = 0.0
    for i in range(n):
        y = theta + x[i]
        e = math.exp(-abs(y))
        p[i], q[i] = 1.0 / (1.0 + e), e / (1.0 + e)
        if y < 0.0:
            p[i], q[i] = q[i], p[i]
        total += max(y, 0.0) + math.log1p(e)
        log_total[i] = total


@kernel
def _join(f: Rows, low: int, high: int, most: int, p: float, q: float) -> tuple[int, int]:
    """Let a row join; the chances of numbers outside low to high are 0."""
    if high < most and p * f[high] > TINY:
        high += 1
    for k in range(high, low, -1):
        f[k] = q * f[k] + p * f[k - 1]
    f[low] *= q
    while low < high and f[low] < TINY:
        f[low] = 0.0
        low += 1
    return low, high


@kernel
def _forward(
    p: Rows, q: Rows, stop: Index, chosen: Index, length: int, kept: Matrix, edge: Index,
    chance: Rows,
) -> None:  # fmt: skip
    """Chances of the events of each group, and the states before every `length` rows."""
    most = kept.shape[1] - 1
    f = np.zeros(most + 1)
    f[0] = 1.0
    low, high, s = 0, 0, 0
    for i in range(stop[-1]):
        if i % length == 0:
            block = i // length
            kept[block] = f
            edge[2 * block], edge[2 * block + 1] = low, high
        low, high = _join(f, low, high, most, p[i], q[i])
        while s < stop.size and stop[s] == i + 1:
            chance[s] = f[chosen[s]]
            s += 1


@kernel
def _leave(a: Rows, low: int, high: int, p: float, q: float) -> tuple[int, int]:
    """What a chance before a row joins is worth, from what it is worth after."""
    first = low
    if low > 0 and p * a[low] > TINY:
        first = low - 1
    for k in range(first, high):
        a[k] = q * a[k] + p * a[k + 1]
    a[high] *= q
    while high > first and a[high] < TINY:
        a[high] = 0.0
        high -= 1
    return first, high


@kernel
def _backward(
    p: Rows, q: Rows, stop: Index, chosen: Index, is_good: NDArray[np.bool_], length: int,
    kept: Matrix, edge: Index, chance: Rows, expected: Rows,
) -> None:  # fmt: skip
    """Chance of each row to be among the events, summed over the good groups of a run."""
    most = kept.shape[1] - 1
    states, edges = np.zeros((length, most + 1)), np.zeros((length, 2), np.int64)
    a = np.zeros(most + 1)
    low, high, s = 0, -1, stop.size - 1
    for block in range((stop[-1] - 1) // length, -1, -1):
        begin, end = block * length, min((block + 1) * length, stop[-1])
        states[0] = kept[block]
        edges[0, 0], edges[0, 1] = edge[2 * block], edge[2 * block + 1]
        for i in range(begin, end - 1):
            j = i - begin
            states[j + 1] = states[j]
            edges[j + 1] = _join(states[j + 1], edges[j, 0], edges[j, 1], most, p[i], q[i])
        for i in range(end - 1, begin - 1, -1):
            while s >= 0 and stop[s] == i + 1:
                if is_good[s]:
                    a[chosen[s]] += 1.0 / chance[s]
                    low = min(low, chosen[s]) if high >= 0 else chosen[s]
                    high = max(high, chosen[s])
                s -= 1
            if high < 0:
                continue
            f = states[i - begin]
            total = 0.0
            for k in range(
                max(low, edges[i - begin, 0] + 1), min(high, edges[i - begin, 1] + 1) + 1
            ):
                total += a[k] * f[k - 1]
            expected[i] += p[i] * total
            low, high = _leave(a, low, high, p[i], q[i])


@kernel
def _pushed_forward(
    p: Rows, q: Rows, z: Rows, begin: int, end: int, f: Rows, g: Rows, edges: Index
) -> None:
    """Let rows join; `g` is the derivative of `f` along z."""
    most = f.size - 1
    for i in range(begin, end):
        low, high = edges[0], edges[1]
        if high < most and p[i] * f[high] > TINY:
            high += 1
        for k in range(high, low, -1):
            g[k] = q[i] * g[k] + p[i] * (g[k - 1] + z[i] * f[k - 1])
            f[k] = q[i] * f[k] + p[i] * f[k - 1]
        g[low] *= q[i]
        f[low] *= q[i]
        while low < high and f[low] < TINY:
            f[low], g[low] = 0.0, 0.0
            low += 1
        edges[0], edges[1] = low, high


@kernel
def _derivative(
    p: Rows, q: Rows, z: Rows, stop: Index, chosen: Index, is_good: NDArray[np.bool_], length: int,
    out: Rows,
) -> None:  # fmt: skip
    """Derivative of `_backward` along a move z of the logarithms of the hazards."""
    most, n = int(chosen.max()), stop[-1]
    n_blocks = (n - 1) // length + 1
    kept, edge = np.zeros((n_blocks, 2, most + 1)), np.zeros((n_blocks, 2), np.int64)
    chance, slope = np.zeros(stop.size), np.zeros(stop.size)
    f, g, edges = np.zeros(most + 1), np.zeros(most + 1), np.zeros(2, np.int64)
    f[0] = 1.0
    s = 0
    for i in range(n):
        if i % length == 0:
            kept[i // length, 0], kept[i // length, 1], edge[i // length] = f, g, edges
        _pushed_forward(p, q, z, i, i + 1, f, g, edges)
        while s < stop.size and stop[s] == i + 1:
            chance[s], slope[s] = f[chosen[s]], g[chosen[s]]
            s += 1
    states, known = np.zeros((length, 2, most + 1)), np.zeros((length, 2), np.int64)
    a, b = np.zeros(most + 1), np.zeros(most + 1)
    low, high, s = 0, -1, stop.size - 1
    for block in range(n_blocks - 1, -1, -1):
        begin, end = block * length, min((block + 1) * length, n)
        states[0], known[0] = kept[block], edge[block]
        for i in range(begin, end - 1):
            j = i - begin
            states[j + 1], known[j + 1] = states[j], known[j]
            _pushed_forward(p, q, z, i, i + 1, states[j + 1, 0], states[j + 1, 1], known[j + 1])
        for i in range(end - 1, begin - 1, -1):
            while s >= 0 and stop[s] == i + 1:
                if is_good[s]:
                    a[chosen[s]] += 1.0 / chance[s]
                    b[chosen[s]] -= slope[s] / chance[s] / chance[s]
                    low = min(low, chosen[s]) if high >= 0 else chosen[s]
                    high = max(high, chosen[s])
                s -= 1
            if high < 0:
                continue
            f, g = states[i - begin, 0], states[i - begin, 1]
            total = 0.0
            first, last = known[i - begin, 0] + 1, known[i - begin, 1] + 1
            for k in range(max(low, first), min(high, last) + 1):
                total += (b[k] + z[i] * a[k]) * f[k - 1] + a[k] * g[k - 1]
            out[i] += p[i] * total
            begins = low - 1 if low > 0 and p[i] * a[low] > TINY else low
            for k in range(begins, high):
                b[k] = q[i] * b[k] + p[i] * (b[k + 1] + z[i] * a[k + 1])
                a[k] = q[i] * a[k] + p[i] * a[k + 1]
            a[high] *= q[i]
            b[high] *= q[i]
            low = begins
            while high > low and a[high] < TINY:
                a[high], b[high] = 0.0, 0.0
                high -= 1


@kernel
def _length(n: int, most: int) -> int:
    """Rows between two states that are kept: all of a short run."""
    return n if n * (most + 1) <= 1 << 16 else int(math.ceil(math.sqrt(n)))


@kernel
def _run(
    x: Rows, tied: Rows, stop: Index, chosen: Index, expected: Rows, is_good: NDArray[np.bool_]
) -> float:
    """Log likelihood of the good groups of a run, whose expected events are added."""
    n, most, n_groups = stop[-1], int(chosen.max()), stop.size
    theta = _theta(x, n, float(most) if n_groups == 1 else min(EXPECTED_SHARE * most, 0.5 * n))
    p, q, log_total = np.empty(n), np.empty(n), np.empty(n)
    _chances(x, n, theta, p, q, log_total)
    length = _length(n, most)
    kept = np.zeros(((n - 1) // length + 1, most + 1))
    edge, chance = np.zeros(2 * kept.shape[0], np.int64), np.zeros(n_groups)
    _forward(p, q, stop, chosen, length, kept, edge, chance)
    value = 0.0
    for s in range(n_groups):
        is_good[s] = chance[s] > MIN_CHANCE
        if is_good[s]:
            value += tied[s] + chosen[s] * theta - log_total[stop[s] - 1] - math.log(chance[s])
    _backward(p, q, stop, chosen, is_good, length, kept, edge, chance, expected)
    return value


@kernel
def _one(x: Rows, tied: float, n: int, m: int, expected: Rows) -> float:
    """Log likelihood of one group whose risk set is n rows; expected events are added."""
    if m == n:
        expected[:n] += 1.0
        return 0.0
    if m > 1:
        good = np.zeros(1, np.bool_)
        return _run(x, np.full(1, tied), np.full(1, n), np.full(1, m), expected, good)
    peak, total = -math.inf, 0.0
    for i in range(n):
        peak = max(peak, x[i])
    for i in range(n):
        total += math.exp(x[i] - peak)
    for i in range(n):
        expected[i] += math.exp(x[i] - peak) / total
    return tied - peak - math.log(total)


@kernel
def _product_of_run(
    x: Rows, z: Rows, stop: Index, chosen: Index, is_good: NDArray[np.bool_], out: Rows
) -> None:
    """Second derivative of the good groups of a run times z, added."""
    n, most, n_groups = stop[-1], int(chosen.max()), stop.size
    theta = _theta(x, n, float(most) if n_groups == 1 else min(EXPECTED_SHARE * most, 0.5 * n))
    p, q, log_total = np.empty(n), np.empty(n), np.empty(n)
    _chances(x, n, theta, p, q, log_total)
    middle, total = 0.0, 0.0
    for i in range(n):
        total += p[i]
        middle += p[i] * z[i]
    _derivative(p, q, z[:n] - middle / total, stop, chosen, is_good, _length(n, most), out)


@kernel
def _product_of_one(x: Rows, z: Rows, n: int, m: int, out: Rows) -> None:
    """Second derivative of one group times z, added."""
    if m == n:
        return
    if m > 1:
        one = np.ones(1, np.bool_)
        _product_of_run(x, z, np.full(1, n), np.full(1, m), one, out)
        return
    peak, total, mean = -math.inf, 0.0, 0.0
    for i in range(n):
        peak = max(peak, x[i])
    for i in range(n):
        total += math.exp(x[i] - peak)
    for i in range(n):
        mean += math.exp(x[i] - peak) / total * z[i]
    for i in range(n):
        out[i] += math.exp(x[i] - peak) / total * (z[i] - mean)


@kernel
def _is_shared(sizes: Index, chosen: Index) -> bool:
    """Whether one run of all groups of a stratum takes less time than a run for each."""
    alone = 0.0
    for s in range(sizes.size):
        alone += float(sizes[s]) * (chosen[s] if chosen[s] > 1 else 0.5)
    return sizes.size > 1 and float(sizes[-1]) * chosen.max() < alone


@kernel
def _stratum(
    x: Rows, z: Rows, tied: Rows, sizes: Index, chosen: Index, out: Rows, is_good: NDArray[np.bool_]
) -> float:
    """Groups whose risk sets are the first `sizes` rows: value and expected events, or products.

    Products with z if it is not empty, of the groups that are good in one run of all.
    """
    value = 0.0
    if _is_shared(sizes, chosen):
        value = _run(x, tied, sizes, chosen, out if z.size == 0 else np.zeros(x.size), is_good)
        if z.size and is_good.any():
            _product_of_run(x, z, sizes, chosen, is_good, out)
    for s in range(sizes.size):
        if is_good[s]:
            continue
        if z.size:
            _product_of_one(x, z, sizes[s], chosen[s], out)
        else:
            value += _one(x, tied[s], sizes[s], chosen[s], out)
    return value


@kernel
def _nested(
    ordered: Rows, z: Rows, copies: Index, event: Rows, group_ptr: Index, chosen: Index,
    starts: NDArray[np.bool_], out: Rows,
) -> float:  # fmt: skip
    """Strata without late entry, one after the other; arrays are in risk order."""
    n_groups, value, first = chosen.size, 0.0, 0
    while first < n_groups:
        last = first + 1
        while last < n_groups and not starts[last]:
            last += 1
        begin = group_ptr[first]
        used = np.flatnonzero(chosen[first:last]) + first
        if used.size:
            end = group_ptr[used[-1] + 1]
            count = int(copies[begin:end].sum())
            place, sizes, tied = np.empty(count, np.int64), np.empty_like(used), np.zeros(used.size)
            k, s = 0, 0
            for g in range(first, used[-1] + 1):
                for i in range(group_ptr[g], group_ptr[g + 1]):
                    for _ in range(copies[i]):
                        place[k] = i
                        k += 1
                    if chosen[g] and event[i] > 0.0:
                        tied[s] += event[i] * ordered[i]
                if chosen[g]:
                    sizes[s] = k
                    s += 1
            some = np.zeros(count)
            moves = z[place] if z.size else z
            good = np.zeros(used.size, np.bool_)
            value += _stratum(ordered[place], moves, tied, sizes, chosen[used], some, good)
            for k in range(count):
                out[place[k]] += some[k]
        first = last
    return value


@kernel
def _cover(
    ordered: Rows, z: Rows, copies: Index, event: Rows, group_ptr: Index, chosen: Index,
    end: Index, out: Rows,
) -> float:  # fmt: skip
    """With late entry: each group by itself, of the rows that are at risk then."""
    value = 0.0
    active, n_active = np.empty(int(copies.sum()), np.int64), 0
    for g in range(chosen.size):
        left = 0
        for k in range(n_active):
            if end[active[k]] > g:
                active[left] = active[k]
                left += 1
        tied = 0.0
        for i in range(group_ptr[g], group_ptr[g + 1]):
            for _ in range(copies[i] if end[i] > g else 0):
                active[left] = i
                left += 1
            tied += event[i] * ordered[i]
        n_active = left
        if chosen[g] == 0:
            continue
        place, some = active[:n_active], np.zeros(n_active)
        if z.size:
            _product_of_one(ordered[place], z[place], n_active, chosen[g], some)
        else:
            value += _one(ordered[place], tied, n_active, chosen[g], some)
        for k in range(n_active):
            out[place[k]] += some[k]
    return value


def _all_groups(ordered: Rows, z: Rows, risk: RiskSets, out: Rows) -> float:
    """Value and expected events, or products with z, in risk order, added to `out`."""
    copies = np.rint(risk.weight).astype(np.int64)
    chosen = np.rint(risk.group_events).astype(np.int64)
    common = ordered, z, copies, risk.event_weight, risk.group_ptr, chosen
    if risk.own.size:
        return _cover(*common, risk.end, out)
    return _nested(*common, risk.starts_stratum, out)


def exact_pass(eta: Rows, risk: RiskSets, runtime: Runtime) -> ExactPass:
    expected = np.zeros(risk.order.size)
    value = _all_groups(eta[risk.order], np.zeros(0), risk, expected)
    residual = np.zeros(eta.size)
    np.add.at(residual, risk.order, risk.event_weight - expected)
    return ExactPass(value, residual, expected)


def exact_products(eta: Rows, u: Matrix, risk: RiskSets, runtime: Runtime) -> Matrix:
    ordered, out = eta[risk.order], np.zeros(u.shape)

    def column(j: int) -> None:
        some = np.zeros(risk.order.size)
        _all_groups(ordered, u[risk.order, j], risk, some)
        np.add.at(out[:, j], risk.order, some)

    runtime.map(column, range(u.shape[1]))
    return out
