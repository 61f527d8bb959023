"""Rows in risk order, and the groups that they are cut into. The fast twin is `grouping_cpu`.

A group ends with the last row of a time at which somebody has an event, or of a stratum.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from riskset._runtime import Runtime
from riskset._types import AnyArray, Index, Pointer, Rows

__all__ = ["EventGroups", "count_near_ties", "cut_into_groups", "tally"]


class EventGroups(NamedTuple):
    """Rows (n,) in risk order, and groups (G,) of them; see `RiskSets` for the fields."""

    weight: Rows
    event_weight: Rows
    group_ptr: Pointer
    group_events: NDArray[np.float64]
    group_tied: Index
    starts_stratum: NDArray[np.bool_]


def cut_into_groups(
    order: Index,
    time: Rows,
    is_event: NDArray[np.bool_],
    weight: Rows,
    stratum: Index,
    runtime: Runtime,
) -> EventGroups:
    """Sort what belongs to the rows, and cut them into groups."""
    t, s, w = time[order], stratum[order], weight[order]
    event_weight = np.where(is_event[order], w, 0.0)
    last_of_stratum = np.append(s[1:] != s[:-1], True)
    last_of_time = last_of_stratum | np.append(t[1:] != t[:-1], True)
    time_ends = np.flatnonzero(last_of_time) + 1
    time_starts = np.append(0, time_ends[:-1])
    events = np.add.reduceat(event_weight, time_starts)
    tied = np.add.reduceat((event_weight > 0).astype(np.int64), time_starts)
    keep = (tied > 0) | last_of_stratum[time_ends - 1]
    group_ptr = np.append(0, time_ends[keep]).astype(np.int64)
    first_row = group_ptr[:-1]
    starts_stratum = np.append(True, s[first_row[1:]] != s[first_row[:-1]])
    return EventGroups(w, event_weight, group_ptr, events[keep], tied[keep], starts_stratum)


def count_near_ties(order: Index, time: Rows, ulps: int, runtime: Runtime) -> int:
    """Number of neighbouring times, in `order`, that differ by few units in the last place."""
    t = time[order]
    high, gap = np.maximum(t[1:], t[:-1]), np.abs(np.diff(t))
    return int(np.count_nonzero((gap > 0) & (gap <= ulps * np.spacing(high))))


def tally(
    order: Index, time: Rows, code: AnyArray, weight: Rows, n_codes: int, runtime: Runtime
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Distinct times (m,), and the weights of the rows that end there by code (n_codes, m).

    Rows stand in `order` by increasing time; their codes count from 0.
    """
    distinct, place = np.unique(time, return_inverse=True)
    sums = [np.bincount(place, weight * (code == k), distinct.size) for k in range(n_codes)]
    return distinct, np.array(sums)
