"""Maxima over risk sets, with the row that attains them, on the CPU. See `separation_ref`."""

import math

import numpy as np
from numpy.typing import NDArray

from riskset._types import Index, Pointer, Rows
from riskset.kernels._jit import kernel

__all__ = ["attaining", "peaks_cover", "peaks_nested"]


@kernel
def peaks_nested(
    z: Rows, group_ptr: Pointer, starts: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], Index]:
    n_groups = starts.size
    peak, at = np.empty(n_groups), np.empty(n_groups, np.int64)
    best, where = -math.inf, -1
    for g in range(n_groups):
        if starts[g]:
            best, where = -math.inf, -1
        for i in range(group_ptr[g], group_ptr[g + 1]):
            if z[i] > best:
                best, where = z[i], i
        peak[g], at[g] = best, where
    return peak, at


@kernel
def peaks_cover(
    z: Rows, own: Index, end: Index, level_rows: Index, level_ptr: Pointer, n_groups: int
) -> tuple[NDArray[np.float64], Index]:
    """See `separation_ref.peaks_cover`; by the tails and heads of `late_entry_cpu`."""
    peak, at = np.full(n_groups, -math.inf), np.full(n_groups, -1)
    for k in range(level_ptr[0], level_ptr[1]):
        i = level_rows[k]
        if z[i] > peak[own[i]]:
            peak[own[i]], at[own[i]] = z[i], i
    tail, head = np.empty(n_groups, np.int64), np.empty(n_groups, np.int64)
    for level in range(1, level_ptr.size - 1):
        if level_ptr[level] == level_ptr[level + 1]:
            continue
        tail[:] = -1
        head[:] = -1
        for k in range(level_ptr[level], level_ptr[level + 1]):
            i = level_rows[k]
            if tail[own[i]] < 0 or z[i] > z[tail[own[i]]]:
                tail[own[i]] = i
            if head[end[i] - 1] < 0 or z[i] > z[head[end[i] - 1]]:
                head[end[i] - 1] = i
        half = 1 << (level - 1)
        for left in range(0, n_groups, 2 * half):
            middle, stop = min(left + half, n_groups), min(left + 2 * half, n_groups)
            best = -1
            for g in range(left, middle):
                if tail[g] >= 0 and (best < 0 or z[tail[g]] > z[best]):
                    best = tail[g]
                if best >= 0 and z[best] > peak[g]:
                    peak[g], at[g] = z[best], best
            best = -1
            for g in range(stop - 1, middle - 1, -1):
                if head[g] >= 0 and (best < 0 or z[head[g]] > z[best]):
                    best = head[g]
                if best >= 0 and z[best] > peak[g]:
                    peak[g], at[g] = z[best], best
    return peak, at


@kernel
def _minima(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], Pointer]:
    """Minima of aligned blocks of 1, 2, 4, ... values, and where each size begins."""
    n_levels = 1
    while (1 << (n_levels - 1)) < values.size:
        n_levels += 1
    ptr = np.zeros(n_levels + 1, np.int64)
    for level in range(n_levels):
        ptr[level + 1] = ptr[level] + ((values.size - 1) >> level) + 1
    table = np.empty(ptr[n_levels])
    table[: values.size] = values
    for level in range(1, n_levels):
        below = table[ptr[level - 1] : ptr[level]]
        for block in range(ptr[level + 1] - ptr[level]):
            last = min(2 * block + 1, below.size - 1)
            table[ptr[level] + block] = min(below[2 * block], below[last])
    return table, ptr


@kernel
def _next(
    table: NDArray[np.float64], ptr: Pointer, bound: float, strictly: bool, g: int, stop: int
) -> int:
    """First place from g up to stop with a value below the bound, or at it; by whole blocks."""
    level = 0
    while g < stop:
        block = g >> level
        least = table[ptr[level] + block]
        if least < bound or (least == bound and not strictly):
            if level == 0:
                return g
            level -= 1
        else:
            g = (block + 1) << level
            if g & ((2 << level) - 1) == 0 and level < ptr.size - 2:
                level += 1
    return stop


@kernel
def _runs(
    z: Rows,
    peak: NDArray[np.float64],
    own: Index,
    end: Index,
    rows: Index,
    begin: Index,
    stop: Index,
) -> int:
    """Number of runs, and as many of them as there is room for."""
    low, ptr = _minima(peak)
    minus_high, _ = _minima(-peak)
    k = 0
    for i in range(z.size):
        g = _next(low, ptr, z[i], False, own[i], end[i])
        while g < end[i]:
            past = _next(minus_high, ptr, -z[i], True, g, end[i])
            if k < rows.size:
                rows[k], begin[k], stop[k] = i, g, past
            k += 1
            g = _next(low, ptr, z[i], False, past, end[i])
    return k


def attaining(
    z: Rows, peak: NDArray[np.float64], own: Index, end: Index
) -> tuple[Index, Index, Index]:
    """See `separation_ref.attaining`; O(log G) for each row and run."""
    none = np.empty(0, dtype=np.int64)
    n_runs = _runs(z, peak, own, end, none, none, none)
    rows, begin, stop = np.empty((3, n_runs), dtype=np.int64)
    _runs(z, peak, own, end, rows, begin, stop)
    return rows, begin, stop
