"""The fast twin of `concordance_ref`: O(n log n) with Fenwick trees over the scores."""

import numpy as np
from numpy.typing import NDArray

from riskset._types import Index, Pointer, Rows
from riskset.kernels._jit import kernel

__all__ = ["count_pairs", "sums_by_rank"]


@kernel
def _put(tree: NDArray[np.float64], at: NDArray[np.float64], k: int, weight: float) -> None:
    # tree[1..]: partial sums of `at` over ranges of scores, after Fenwick (1994).
    at[k] += weight
    k += 1
    while k < tree.size:
        tree[k] += weight
        k += k & -k


@kernel
def _below(tree: NDArray[np.float64], k: int) -> float:
    total = 0.0
    while k > 0:
        total += tree[k]
        k -= k & -k
    return total


@kernel
def count_pairs(
    score: Index,
    time: Rows,
    event: NDArray[np.bool_],
    entry: Rows,
    weight: Rows,
    stratum_ptr: Pointer,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    # The trees hold sums of case weights, exact for counts. Rows are taken out again when they
    # have not entered yet, and "above" is all minus the others: with fractional weights that
    # leaves an error of a few ulp of the whole weight, which no exponential can amplify.
    counts, influence = np.zeros(5), np.zeros((time.size, 3))
    for s in range(stratum_ptr.size - 1):
        a, b = stratum_ptr[s], stratum_ptr[s + 1]
        n_scores = 0
        for i in range(a, b):
            n_scores = max(n_scores, score[i] + 1)
        by_entry = np.argsort(entry[a:b]) + a if entry.size else np.empty(0, dtype=np.int64)
        _of_events(score, time, event, entry, weight, a, b, n_scores, by_entry, counts, influence)
        _of_others(score, time, event, entry, weight, a, b, n_scores, by_entry, influence)
    return counts, influence


@kernel
def _of_events(
    score: Index,
    time: Rows,
    event: NDArray[np.bool_],
    entry: Rows,
    weight: Rows,
    a: int,
    b: int,
    n_scores: int,
    by_entry: Index,
    counts: NDArray[np.float64],
    influence: NDArray[np.float64],
) -> None:
    # Backwards in time; the tree holds the rows that outlive the current time and have entered.
    tree, at = np.zeros(n_scores + 1), np.zeros(n_scores)
    total = 0.0
    entering = by_entry.size - 1
    i = a
    while i < b:
        last = i
        while last < b and time[last] == time[i]:
            last += 1
        first_event = i
        while first_event < last and not event[first_event]:
            _put(tree, at, score[first_event], weight[first_event])
            total += weight[first_event]
            first_event += 1
        while entering >= 0 and entry[by_entry[entering]] >= time[i]:
            j = by_entry[entering]
            _put(tree, at, score[j], -weight[j])
            total -= weight[j]
            entering -= 1
        tied = equal = 0.0
        for k in range(first_event, last):
            below, same = _below(tree, score[k]), at[score[k]]
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
            _put(tree, at, score[k], weight[k])
            total += weight[k]
        i = last


@kernel
def _of_others(
    score: Index,
    time: Rows,
    event: NDArray[np.bool_],
    entry: Rows,
    weight: Rows,
    a: int,
    b: int,
    n_scores: int,
    by_entry: Index,
    influence: NDArray[np.float64],
) -> None:
    # Forwards in time; the tree holds the events before the current time. What it holds when a
    # row enters is not the row's to compare with.
    tree, at = np.zeros(n_scores + 1), np.zeros(n_scores)
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
            _compare(tree, at, total, score[j], -1.0, influence[j])
            entering += 1
        k = i
        while k >= first and event[k]:
            _compare(tree, at, total, score[k], 1.0, influence[k])
            k -= 1
        for j in range(k + 1, i + 1):
            _put(tree, at, score[j], weight[j])
            total += weight[j]
        while k >= first:
            _compare(tree, at, total, score[k], 1.0, influence[k])
            k -= 1
        i = first - 1


@kernel
def _compare(
    tree: NDArray[np.float64],
    at: NDArray[np.float64],
    total: float,
    k: int,
    sign: float,
    row: NDArray[np.float64],
) -> None:
    below, same = _below(tree, k), at[k]
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
        tree, at = np.zeros(n_ranks + 1), np.zeros(n_ranks)
        total = 0.0
        i = a
        while i < b:
            last = i
            while last < b and key[last] == key[i]:
                if asks[last]:
                    below, same = _below(tree, rank[last]), at[rank[last]]
                    sums[last, 0], sums[last, 1] = below, same
                    sums[last, 2] = max(0.0, total - below - same)
                last += 1
            for k in range(i, last):
                if weight[k] > 0:
                    _put(tree, at, rank[k], weight[k])
                    total += weight[k]
            i = last
    return sums
