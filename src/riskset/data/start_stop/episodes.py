"""Follow-up cut at given times: the pieces of each row, and search within groups of sorted numbers.

Arrays in, arrays out. Every step is one of NumPy on whole columns.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from riskset._types import Index, Pointer, Rows

__all__ = ["Cuts", "Pieces", "cut_rows", "ranges", "search_groups", "sort_groups"]


class Cuts(NamedTuple):
    """Times at which rows are cut, ascending and distinct within each group.

    Attributes
    ----------
    time : (n_cuts,) float64
    ptr : (n_groups + 1,) int64
        Cuts of group g are ``time[ptr[g]:ptr[g + 1]]``.
    """

    time: Rows
    ptr: Pointer

    @classmethod
    def common(cls, time: Rows) -> "Cuts":
        """The same cuts for all rows, which are of group 0."""
        distinct = np.unique(time)
        return cls(distinct, np.array([0, distinct.size]))

    @classmethod
    def by_group(cls, group: Index, time: Rows, n_groups: int) -> "Cuts":
        """Cuts of groups 0..n_groups-1, in any order and with repetitions."""
        order = np.lexsort((time, group))
        group, time = group[order], time[order]
        is_new = np.ones(time.size, dtype=bool)
        is_new[1:] = (group[1:] != group[:-1]) | (time[1:] != time[:-1])
        return cls(time[is_new], sort_groups(group[is_new], n_groups)[1])


class Pieces(NamedTuple):
    """Pieces of rows: those of one row follow each other, from the first to the last.

    Attributes
    ----------
    row : (n_pieces,) int64
        The row that a piece is of.
    entry, time : (n_pieces,) float64
        A piece is at risk in (entry, time].
    episode : (n_pieces,) int64
        1 before the first cut of the row's group, 2 after it, and so on.
    is_last : (n_pieces,) bool
    """

    row: Index
    entry: Rows
    time: Rows
    episode: Index
    is_last: NDArray[np.bool_]


def sort_groups(group: Index, n_groups: int) -> tuple[Index, Pointer]:
    """A stable order by group, and where each group begins in it."""
    counts = np.bincount(group, minlength=n_groups)
    return np.argsort(group, kind="stable"), np.concatenate([[0], np.cumsum(counts)])


def ranges(first: Index, count: Index) -> Index:
    """``first[i], first[i] + 1, ...``, `count[i]` numbers for each i, one after the other."""
    start = np.cumsum(count) - count
    return np.asarray(np.arange(int(count.sum())) + np.repeat(first - start, count))


def search_groups(values: Rows, ptr: Pointer, group: Index, x: Rows, *, after_equal: bool) -> Index:
    """Where each `x` would stand among the ascending values of its group.

    The result is the first place in ``ptr[group]..ptr[group + 1]`` whose value is greater
    than `x`, or at least `x` without `after_equal`.
    """
    if ptr.size == 2:
        return np.asarray(np.searchsorted(values, x, side="right" if after_equal else "left"))
    low, high = ptr[group], ptr[group + 1]
    for _ in range(int(np.diff(ptr).max(initial=0)).bit_length()):
        open_ = low < high
        middle = (low + high) >> 1
        found = values[np.where(open_, middle, 0)] if values.size else np.zeros(x.size)
        goes_right = open_ & ((found <= x) if after_equal else (found < x))
        low = np.where(goes_right, middle + 1, low)
        high = np.where(open_ & ~goes_right, middle, high)
    return low


def cut_rows(entry: Rows, time: Rows, cuts: Cuts, group: Index) -> Pieces:
    """Cut the rows (entry, time] at every cut of their group that lies strictly within.

    Parameters
    ----------
    group : (n,) int64
        The group of `cuts` of each row.
    """
    first = search_groups(cuts.time, cuts.ptr, group, entry, after_equal=True)
    n_within = search_groups(cuts.time, cuts.ptr, group, time, after_equal=False) - first
    n_within = np.maximum(n_within, 0)
    row = np.repeat(np.arange(time.size), n_within + 1)
    last = np.cumsum(n_within + 1) - 1
    is_last = np.zeros(row.size, dtype=bool)
    is_last[last] = True
    at = ranges(first, n_within + 1)  # of a piece, the cut at which it ends
    within = cuts.time[at[~is_last]]
    ends, starts = np.empty(row.size), np.empty(row.size)
    ends[~is_last], ends[is_last] = within, time
    is_first = np.roll(is_last, 1)
    starts[~is_first], starts[is_first] = within, entry
    return Pieces(row, starts, ends, at - np.repeat(cuts.ptr[group], n_within + 1) + 1, is_last)
