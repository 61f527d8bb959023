"""Pairs of rows whose order of events is known, counted pair by pair: O(n^2), the specification."""

import numpy as np
from numpy.typing import NDArray

from riskset._runtime import Runtime
from riskset._types import Index, Pointer, Rows

__all__ = ["count_pairs", "sums_by_rank"]


def count_pairs(
    score: Rows,
    time: Rows,
    event: NDArray[np.bool_],
    entry: Rows,
    weight: Rows,
    stratum_ptr: Pointer,
    runtime: Runtime,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Weighted pairs by agreement of score and time, and each row's part in them.

    Row i with an event at t and row j of the same stratum are comparable if j is at risk at t
    (entry_j < t) and has no event up to t: time_j > t, or time_j = t and censored. The pair is
    concordant if score_i > score_j, discordant if <, tied in the score if equal. Two events at one
    time are tied in time. A pair weighs w_i w_j.

    Times decrease within a stratum; at equal times censored rows stand before events. `entry` is
    empty without late entry. Returns the concordant pairs, the discordant ones, those tied in the
    score, in time only and in both (5,), and the derivatives of the first three in the weight of
    each row (n, 3).
    """
    counts, influence = np.zeros(5), np.zeros((time.size, 3))
    late = entry.size > 0
    for s in range(stratum_ptr.size - 1):
        rows = range(stratum_ptr[s], stratum_ptr[s + 1])
        for i in rows:
            if not event[i]:
                continue
            for j in rows:
                if j == i or (late and entry[j] >= time[i]) or time[j] < time[i]:
                    continue
                if event[j] and time[j] == time[i]:
                    if j > i:
                        counts[4 if score[i] == score[j] else 3] += weight[i] * weight[j]
                    continue
                k = 0 if score[i] > score[j] else 1 if score[i] < score[j] else 2
                counts[k] += weight[i] * weight[j]
                influence[i, k] += weight[j]
                influence[j, k] += weight[i]
    return counts, influence


def sums_by_rank(
    rank: Index,
    key: Index,
    weight: Rows,
    asks: NDArray[np.bool_],
    stratum_ptr: Pointer,
    runtime: Runtime,
) -> NDArray[np.float64]:
    r"""Weight of the rows that come before each row, by how the ranks compare (n, 3).

    .. math:: (\sum_{rank_j < rank_i} w_j, \sum_{rank_j = rank_i} w_j, \sum_{rank_j > rank_i} w_j)

    over the rows j of the stratum of i with :math:`key_j < key_i`. Ranks count from 0 within the
    stratum, in which keys do not decrease; only the rows that `asks` marks get sums, the others 0.
    """
    sums = np.zeros((rank.size, 3))
    for s in range(stratum_ptr.size - 1):
        rows = np.arange(stratum_ptr[s], stratum_ptr[s + 1])
        for i in rows[asks[rows]]:
            before = rows[key[rows] < key[i]]
            relation = np.sign(rank[before] - rank[i]) + 1
            for k in range(3):
                sums[i, k] = weight[before[relation == k]].sum()
    return sums
