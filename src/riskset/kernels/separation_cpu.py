"""Maxima over risk sets, with the row that attains them."""

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
    """Largest z over nested risk sets, and its position (-1 for none)."""
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
    """As `peaks_nested` for ranges of groups, by the tails and heads of `risk_sets_cpu`."""
    peak, at = np.full(n_groups, -math.inf), np.full(n_groups, -1)
    for k in range(level_ptr[0], level_ptr[1]):
        i = level_rows[k]
        if z[i] > peak[own[i]]:
            peak[own[i]], at[own[i]] = z[i], i
    tail, head = np.empty(n_groups, np.int64), np.empty(n_groups, np.int64)
    for level in range(1, level_ptr.size - 1):
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
def attaining(
    z: Rows, peak: NDArray[np.float64], own: Index, end: Index
) -> tuple[Index, Index, Index]:
    """Runs of groups, within each row's range, in which its z reaches the peak: row, from, to."""
    count = 0
    for i in range(z.size):
        inside = False
        for g in range(own[i], end[i]):
            reaches = z[i] >= peak[g]
            if reaches and not inside:
                count += 1
            inside = reaches
    rows, begin, stop = (
        np.empty(count, np.int64),
        np.empty(count, np.int64),
        np.empty(count, np.int64),
    )
    k = -1
    for i in range(z.size):
        inside = False
        for g in range(own[i], end[i]):
            reaches = z[i] >= peak[g]
            if reaches and not inside:
                k += 1
                rows[k], begin[k] = i, g
            if reaches:
                stop[k] = g + 1
            inside = reaches
    return rows, begin, stop
