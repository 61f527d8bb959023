"""Pairs of rows whose order of events is known, counted pair by pair: O(n^2), the specification."""

import numpy as np
from numpy.typing import NDArray

from riskset._types import Index, Pointer, Rows

__all__ = ["count_pairs", "sums_by_rank"]


def count_pairs(
    score: Index,
    time: Rows,
    event: NDArray[np.bool_],
    entry: Rows,
    weight: Rows,
    stratum_ptr: Pointer,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    r"""Weighted pairs by agreement of score and time, and each row's part in them.

    Row i with an event at t and row j of the same stratum are comparable if j is at risk at t
    (entry_j < t) and has no event up to t: time_j > t, or time_j = t and censored. The pair is
    concordant if score_i > score_j, discordant if <, tied in the score if equal. Two events at one
    time are tied in time. A pair weighs w_i w_j.

    Parameters
    ----------
    score : (n,) int64
        Rank of the risk score within the stratum, from 0, equal for equal scores.
    time : (n,) float64
        Decreasing within a stratum; at equal times censored rows stand before events, and events
        by increasing score.
    event : (n,) bool
    entry : (n,) float64, or (0,) without late entry
    weight : (n,) float64
    stratum_ptr : (n_strata + 1,) int64

    Returns
    -------
    counts : (5,) float64
        Concordant, discordant, tied in the score, tied in time only, tied in both.
    influence : (n, 3) float64
        Derivative of the first three counts with respect to the weight of each row.
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
) -> NDArray[np.float64]:
    r"""Weight of the rows that come before each row, by how their ranks compare with its own.

    .. math:: (\sum_{rank_j < rank_i} w_j, \sum_{rank_j = rank_i} w_j, \sum_{rank_j > rank_i} w_j)

    over the rows j of the stratum of i with :math:`key_j < key_i`.

    Parameters
    ----------
    rank : (n,) int64
        From 0 within the stratum.
    key : (n,) int64
        Not decreasing within a stratum.
    weight : (n,) float64, >= 0
    asks : (n,) bool
        Rows whose sums are wanted; the others get 0.
    stratum_ptr : (n_strata + 1,) int64

    Returns
    -------
    (n, 3) float64
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
