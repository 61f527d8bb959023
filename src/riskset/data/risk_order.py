"""The one place that sorts rows into risk sets, and cuts them into chunks and levels."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from riskset._runtime import Runtime
from riskset._types import Index, RiskSets, Rows
from riskset.kernels.grouping_cpu import cut_into_groups
from riskset.kernels.sorting_cpu import stable_order

__all__ = ["BlockBoundary", "by_level", "into_risk_sets", "joined", "risk_order"]

CHUNK_ROWS = 8192
MAX_CHUNKS = 32
"""A scan is cut into chunks of about so many rows, and never into more."""


def risk_order(time: Rows, stratum: Index, n_strata: int) -> Index:
    """Rows by stratum and decreasing time."""
    runtime = Runtime.select()
    order = stable_order(-time, runtime)
    if n_strata > 1:
        order = order[stable_order(stratum[order].astype(np.float64), runtime)]
    return order


def into_risk_sets(
    order: Index,
    time: Rows,
    is_event: NDArray[np.bool_],
    weight: Rows,
    entry: Rows | None,
    stratum: Index,
) -> RiskSets:
    """Cut rows in risk order into groups; see `RiskSets` for what comes of it."""
    groups = cut_into_groups(order, time, is_event, weight, stratum, Runtime.select())
    group_ptr = groups.group_ptr

    empty = np.zeros(0, dtype=np.int64)
    own = end = level_rows = empty
    level_ptr = np.zeros(1, dtype=np.int64)
    if entry is not None:
        t, s = time[order], stratum[order]
        own, end = _range_at_risk(entry[order], t, s, group_ptr)
        group_stratum = s[group_ptr[1:] - 1]
        if (end == np.searchsorted(group_stratum, s, side="right")).all():
            own = end = empty  # everybody enters before the first event: nested after all
        else:
            level_rows, level_ptr = by_level(own, end, group_ptr.size - 1)
    return RiskSets(
        order=order,
        **groups._asdict(),
        chunk_ptr=_chunks(group_ptr),
        own=own,
        end=end,
        level_rows=level_rows,
        level_ptr=level_ptr,
    )


class BlockBoundary(NamedTuple):
    """How a block of rows hangs together with the blocks before and after it in risk order.

    `continues`: its first stratum began in a block before. `incoming`: weighted number of events
    that rows of blocks before had at its first time. `is_tied_on`: its last time goes on in the
    next block, which counts the events at it.
    """

    continues: bool = False
    incoming: float = 0.0
    is_tied_on: bool = False


def joined(risk: RiskSets, n_first: int, link: BlockBoundary) -> RiskSets:
    """Risk sets of a block as a part of all: a time that is cut ends with its last row anywhere.

    `n_first` is the number of rows of the first stratum at its first time.
    """
    group_ptr, events, tied = risk.group_ptr, risk.group_events.copy(), risk.group_tied.copy()
    starts = risk.starts_stratum.copy()
    if link.incoming > 0:
        if group_ptr[1] > n_first:  # no event at that time in this stratum
            group_ptr = np.insert(group_ptr, 1, n_first)
            events, tied = np.insert(events, 0, 0.0), np.insert(tied, 0, 0)
            starts = np.insert(starts, 1, False)
        events[0] += link.incoming
        tied[0] += 1
    if link.is_tied_on:
        events[-1], tied[-1] = 0.0, 0
    return risk._replace(
        group_ptr=group_ptr,
        group_events=events,
        group_tied=tied,
        starts_stratum=starts,
        chunk_ptr=_chunks(group_ptr),
    )


def _chunks(group_ptr: Index) -> Index:
    n_rows, n_groups = int(group_ptr[-1]), group_ptr.size - 1
    n_chunks = max(1, min(MAX_CHUNKS, n_rows // CHUNK_ROWS, n_groups))
    cuts = np.searchsorted(group_ptr, np.linspace(0, n_rows, n_chunks + 1)[1:-1])
    return np.unique(np.concatenate([[0], cuts, [n_groups]])).astype(np.int64)


def _range_at_risk(entry: Rows, t: Rows, s: Index, group_ptr: Index) -> tuple[Index, Index]:
    """Groups in which each row is at risk: from its own up to the first at or before its entry."""
    n_rows, n_groups = t.size, group_ptr.size - 1
    own = np.repeat(np.arange(n_groups), np.diff(group_ptr))
    last = group_ptr[1:] - 1
    group_time, group_stratum = t[last], s[last]
    first_group = np.searchsorted(group_stratum, s, side="left")
    last_group = np.searchsorted(group_stratum, s, side="right")
    # Within a stratum group times decrease; count, by bisection, those later than the entry.
    low, high = first_group.copy(), last_group.copy()
    while True:
        active = low < high
        if not active.any():
            break
        middle = (low + high) // 2
        later = active & (group_time[np.minimum(middle, n_groups - 1)] > entry)
        low = np.where(later, middle + 1, low)
        high = np.where(active & ~later, middle, high)
    assert low.size == n_rows
    return own.astype(np.int64), np.maximum(low, own).astype(np.int64)


def by_level(own: Index, end: Index, n_groups: int) -> tuple[Index, Index]:
    """Rows sorted by the bit in which `own` and `end - 1` first differ; empty ranges are left out.

    Level 0: one group only. Level l > 0: the range spans a border between two halves of 2^(l-1)
    groups, so it is a tail of the left half and a head of the right half.
    """
    differ = np.bitwise_xor(own, np.maximum(end - 1, 0))
    level = np.zeros(own.size, dtype=np.int64)
    for bit in range(max(1, int(n_groups).bit_length())):
        level[differ >> bit > 0] = bit + 1
    level[end <= own] = -1
    n_levels = int(n_groups).bit_length() + 1
    rows = np.argsort(level, kind="stable")
    rows = rows[level[rows] >= 0]
    ptr = np.searchsorted(level[rows], np.arange(n_levels + 1))
    return rows.astype(np.int64), ptr.astype(np.int64)
