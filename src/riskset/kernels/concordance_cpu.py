"""The fast twin of `concordance_ref`: O(n log n) with trees of sums over the scores."""

import numpy as np
from numpy.typing import NDArray

from riskset._runtime import Runtime
from riskset._types import Index, Matrix, Pointer, Rows
from riskset.kernels._jit import kernel
from riskset.kernels._vector import LANES
from riskset.kernels._vector_tree import add_from

__all__ = ["count_pairs", "sums_by_rank"]


_Rows = tuple[Index, Rows, NDArray[np.bool_], Rows, Rows]
"""Scores, times, events, entries and weights."""

BITS = 3
CHILD = LANES - 1


@kernel
def _levels(n: int) -> Index:
    """First node of each level of a tree over n scores, eight scores in a node of the first."""
    start = np.zeros(1, np.int64)
    while n > 1 or start.size == 1:
        n = (n + CHILD) >> BITS
        start = np.append(start, start[-1:] + n)
    return start


@kernel
def _put(tree: Matrix, start: Index, at: NDArray[np.float64], k: int, weight: float) -> None:
    # Each number of a node is the sum of the children up to its own, so that the sum over all
    # scores below one takes one number of each level, and a node is one line of the cache.
    at[k] += weight
    for level in range(start.size - 1):
        add_from(tree, start[level] + (k >> BITS), k & CHILD, weight)
        k >>= BITS


@kernel
def _below(tree: Matrix, start: Index, k: int) -> float:
    total = 0.0
    for level in range(start.size - 1):
        child = k & CHILD
        k >>= BITS
        if child:
            total += tree[start[level] + k, child - 1]
    return total


def count_pairs(
    score: Index,
    time: Rows,
    event: NDArray[np.bool_],
    entry: Rows,
    weight: Rows,
    stratum_ptr: Pointer,
    runtime: Runtime,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    # The trees hold sums of case weights, exact for counts. Rows are taken out again when they
    # have not entered yet, and "above" is all minus the others: with fractional weights that
    # leaves an error of a few ulp of the whole weight, which no exponential can amplify.
    counts, influence = np.zeros(5), np.zeros((2, time.size, 3))
    runtime.run(
        _half_of_pairs, 2, score, time, event, entry, weight, stratum_ptr, counts, influence
    )
    influence[0] += influence[1]
    return counts, influence[0]


@kernel
def _half_of_pairs(
    first: int,
    last: int,
    score: Index,
    time: Rows,
    event: NDArray[np.bool_],
    entry: Rows,
    weight: Rows,
    stratum_ptr: Pointer,
    counts: NDArray[np.float64],
    influence: NDArray[np.float64],
) -> None:
    """As those who have the event (0), as the others (1)."""
    for half in range(first, last):
        for s in range(stratum_ptr.size - 1):
            a, b = stratum_ptr[s], stratum_ptr[s + 1]
            n_scores = 0
            for i in range(a, b):
                n_scores = max(n_scores, score[i] + 1)
            by_entry = np.argsort(entry[a:b]) + a if entry.size else np.empty(0, dtype=np.int64)
            rows = (score, time, event, entry, weight)
            if half == 0:
                _of_events(rows, a, b, n_scores, by_entry, counts, influence[0])
            else:
                _of_others(rows, a, b, n_scores, by_entry, influence[1])


@kernel
def _of_events(
    rows: _Rows,
    a: int,
    b: int,
    n_scores: int,
    by_entry: Index,
    counts: NDArray[np.float64],
    influence: NDArray[np.float64],
) -> None:
    score, time, event, entry, weight = rows
    # Backwards in time; the tree holds the rows that outlive the current time and have entered.
    start = _levels(n_scores)
    tree, at = np.zeros((start[-1], LANES)), np.zeros(n_scores)
    total = 0.0
    entering = by_entry.size - 1
    i = a
    while i < b:
        last = i
        while last < b and time[last] == time[i]:
            last += 1
        first_event = i
        while first_event < last and not event[first_event]:
            _put(tree, start, at, score[first_event], weight[first_event])
            total += weight[first_event]
            first_event += 1
        while entering >= 0 and entry[by_entry[entering]] >= time[i]:
            j = by_entry[entering]
            _put(tree, start, at, score[j], -weight[j])
            total -= weight[j]
            entering -= 1
        tied = equal = 0.0
        for k in range(first_event, last):
            below, same = _below(tree, start, score[k]), at[score[k]]
            influence[k, 0] += below
            influence[k, 1] += max(0.0, total - below - same)
            influence[k, 2] += same
            for c in range(3):
                counts[c] += weight[k] * influence[k, c]
            equal = equal if k > first_event and score[k] == score[k - 1] else 0.0
            counts[4] += weight[k] * equal
            counts[3] += weight[k] * (tied - equal)
            equal += weight[k]
            tied += weight[k]
        for k in range(first_event, last):
            _put(tree, start, at, score[k], weight[k])
            total += weight[k]
        i = last


@kernel
def _of_others(
    rows: _Rows,
    a: int,
    b: int,
    n_scores: int,
    by_entry: Index,
    influence: NDArray[np.float64],
) -> None:
    score, time, event, entry, weight = rows
    # Forwards in time; the tree holds the events before the current time. What it holds when a
    # row enters is not the row's to compare with.
    start = _levels(n_scores)
    tree, at = np.zeros((start[-1], LANES)), np.zeros(n_scores)
    total = 0.0
    entering = 0
    i = b - 1
    while i >= a:
        first = i
        while first >= a and time[first] == time[i]:
            first -= 1
        first += 1
        while entering < by_entry.size and entry[by_entry[entering]] < time[i]:
            j = by_entry[entering]
            _compare(tree, start, at, total, score[j], -1.0, influence[j])
            entering += 1
        k = i
        while k >= first and event[k]:
            _compare(tree, start, at, total, score[k], 1.0, influence[k])
            k -= 1
        for j in range(k + 1, i + 1):
            _put(tree, start, at, score[j], weight[j])
            total += weight[j]
        while k >= first:
            _compare(tree, start, at, total, score[k], 1.0, influence[k])
            k -= 1
        i = first - 1


@kernel
def _compare(
    tree: Matrix,
    start: Index,
    at: NDArray[np.float64],
    total: float,
    k: int,
    sign: float,
    row: NDArray[np.float64],
) -> None:
    below, same = _below(tree, start, k), at[k]
    row[0] += sign * (total - below - same)
    row[1] += sign * below
    row[2] += sign * same


@kernel
def sums_by_rank(
    rank: Index,
    key: Index,
    weight: Rows,
    asks: NDArray[np.bool_],
    stratum_ptr: Pointer,
) -> NDArray[np.float64]:
    sums = np.zeros((rank.size, 3))
    for s in range(stratum_ptr.size - 1):
        a, b = stratum_ptr[s], stratum_ptr[s + 1]
        n_ranks = 0
        for i in range(a, b):
            n_ranks = max(n_ranks, rank[i] + 1)
        start = _levels(n_ranks)
        tree, at = np.zeros((start[-1], LANES)), np.zeros(n_ranks)
        total = 0.0
        i = a
        while i < b:
            last = i
            while last < b and key[last] == key[i]:
                if asks[last]:
                    below, same = _below(tree, start, rank[last]), at[rank[last]]
                    sums[last, 0], sums[last, 1] = below, same
                    sums[last, 2] = max(0.0, total - below - same)
                last += 1
            for k in range(i, last):
                if weight[k] > 0:
                    _put(tree, start, at, rank[k], weight[k])
                    total += weight[k]
            i = last
    return sums
