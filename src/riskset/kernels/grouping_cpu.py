"""Groups of rows in two passes: what belongs to a row is fetched once. See `grouping_ref`."""

import numpy as np
from numpy.typing import NDArray

from riskset._runtime import Runtime
from riskset._types import AnyArray, Index, Pointer, Rows
from riskset.kernels._jit import kernel
from riskset.kernels.grouping_ref import EventGroups

__all__ = ["EventGroups", "count_near_ties", "cut_into_groups", "tally"]

CHUNK_ROWS = 8192
MAX_CHUNKS = 32
EPSILON, TINY = float(np.finfo(np.float64).eps), float(np.finfo(np.float64).tiny)
OF_TIME, OF_STRATUM = 1, 2
"""Marks of the last row of a time, and of a stratum."""


@kernel
def _fetch(
    first: int,
    last: int,
    n_chunks: int,
    order: Index,
    time: Rows,
    is_event: NDArray[np.bool_],
    weight: Rows,
    stratum: Index,
    sorted_weight: Rows,
    event_weight: Rows,
    ends: AnyArray,
) -> None:
    """Weights in risk order, and marks of the last rows of times and of strata."""
    n = order.size
    begin, stop = n * first // n_chunks, n * last // n_chunks
    if begin == stop:
        return
    t, s = time[order[begin]], stratum[order[begin]]
    for i in range(begin, stop):
        row = order[i]
        w = weight[row]
        sorted_weight[i] = w
        event_weight[i] = w if is_event[row] else 0.0
        ends[i] = OF_STRATUM
        if i + 1 < n:
            following = order[i + 1]
            later, other = time[following], stratum[following]
            ends[i] = OF_STRATUM if other != s else (OF_TIME if later != t else 0)
            t, s = later, other


@kernel
def _cut(
    event_weight: Rows,
    ends: AnyArray,
    group_ptr: Pointer,
    group_events: NDArray[np.float64],
    group_tied: Index,
    starts_stratum: NDArray[np.bool_],
) -> int:
    """Fill the groups, of which there are at most as many as rows, and count them."""
    g, starts = 0, True
    events, tied = 0.0, 0
    group_ptr[0] = 0
    for i in range(ends.size):
        if event_weight[i] > 0.0:
            events += event_weight[i]
            tied += 1
        if ends[i] == OF_STRATUM or (ends[i] == OF_TIME and tied > 0):
            group_ptr[g + 1] = i + 1
            group_events[g], group_tied[g], starts_stratum[g] = events, tied, starts
            g += 1
            events, tied = 0.0, 0
            starts = ends[i] == OF_STRATUM
    return g


def cut_into_groups(
    order: Index,
    time: Rows,
    is_event: NDArray[np.bool_],
    weight: Rows,
    stratum: Index,
    runtime: Runtime,
) -> EventGroups:
    n = order.size
    n_chunks = _n_chunks(n)
    sorted_weight, event_weight = np.empty(n), np.empty(n)
    ends = np.empty(n, np.int8)
    runtime.run(
        _fetch, n_chunks, n_chunks, order, time, is_event, weight, stratum, sorted_weight,
        event_weight, ends,
    )  # fmt: skip
    most = int(np.count_nonzero(ends))
    ptr, events, tied = np.empty(most + 1, np.int64), np.empty(most), np.empty(most, np.int64)
    starts = np.empty(most, np.bool_)
    g = _cut(event_weight, ends, ptr, events, tied, starts)
    if g < most:
        ptr, events, tied, starts = (
            ptr[: g + 1].copy(), events[:g].copy(), tied[:g].copy(), starts[:g].copy(),
        )  # fmt: skip
    return EventGroups(sorted_weight, event_weight, ptr, events, tied, starts)


@kernel
def _count_near_ties(
    first: int, last: int, n_chunks: int, order: Index, time: Rows, ulps: int, count: Index
) -> None:
    """Times of each chunk of rows that nearly equal the one before."""
    n = order.size
    for c in range(first, last):
        begin, stop = max(n * c // n_chunks, 1), n * (c + 1) // n_chunks
        before = time[order[begin - 1]]
        found = 0
        for i in range(begin, stop):
            now = time[order[i]]
            gap, high = abs(now - before), max(now, before)
            # No spacing is more than epsilon times the number, unless that is tiny: nearly all
            # pairs need no closer look.
            if 0.0 < gap <= ulps * (EPSILON * abs(high) + TINY) and gap <= ulps * np.spacing(high):
                found += 1
            before = now
        count[c] = found


def count_near_ties(order: Index, time: Rows, ulps: int, runtime: Runtime) -> int:
    if order.size == 0:
        return 0
    n_chunks = _n_chunks(order.size)
    count = np.empty(n_chunks, np.int64)
    runtime.run(_count_near_ties, n_chunks, n_chunks, order, time, ulps, count)
    return int(count.sum())


@kernel
def _count_times(
    first: int, last: int, n_chunks: int, order: Index, time: Rows, count: Index
) -> None:
    """Number of times that begin in each chunk of rows."""
    n = order.size
    for c in range(first, last):
        begin, stop = n * c // n_chunks, n * (c + 1) // n_chunks
        before = time[order[begin - 1]] if begin > 0 else 0.0
        found = 0
        for i in range(begin, stop):
            now = time[order[i]]
            if i == 0 or now != before:
                found += 1
            before = now
        count[c] = found


@kernel
def _tally(
    first: int,
    last: int,
    n_chunks: int,
    order: Index,
    time: Rows,
    code: AnyArray,
    weight: Rows,
    start: Index,
    distinct: NDArray[np.float64],
    sums: NDArray[np.float64],
) -> None:
    """Times that begin in a chunk of rows, with the rows of the last that lie beyond it."""
    n = order.size
    for c in range(first, last):
        i, stop = n * c // n_chunks, n * (c + 1) // n_chunks
        at = start[c] - 1
        if i > 0:
            before = time[order[i - 1]]
            while i < stop and time[order[i]] == before:
                i += 1
        before = 0.0
        while i < n:
            row = order[i]
            if at < start[c] or time[row] != before:
                if i >= stop:
                    break
                at += 1
                before = time[row]
                distinct[at] = before
            sums[code[row], at] += weight[row]
            i += 1


def tally(
    order: Index, time: Rows, code: AnyArray, weight: Rows, n_codes: int, runtime: Runtime
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    n = order.size
    n_chunks = _n_chunks(n)
    count = np.empty(n_chunks, np.int64)
    runtime.run(_count_times, n_chunks, n_chunks, order, time, count)
    m = int(count.sum())
    distinct, sums = np.empty(m), np.zeros((n_codes, m))
    start = np.cumsum(count) - count
    runtime.run(_tally, n_chunks, n_chunks, order, time, code, weight, start, distinct, sums)
    return distinct, sums


def _n_chunks(n_rows: int) -> int:
    return max(1, min(MAX_CHUNKS, n_rows // CHUNK_ROWS))
