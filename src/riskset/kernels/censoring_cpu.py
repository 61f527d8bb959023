"""The fast twin of `censoring_ref`: one pass over the rows or times, from the last time down.

Where rows enter late, those who have not entered yet are taken off again. These sums have twice the
digits of a number, and the rows in them are counted, so that an empty sum is 0.
"""

import numpy as np
from numpy.typing import NDArray

from riskset._types import Index, Rows
from riskset.kernels._jit import kernel

__all__ = ["observed", "survival"]


@kernel
def survival(
    rows: Index, at: Index, n_times: int, is_censored: NDArray[np.bool_], weight: Rows, crr: bool
) -> NDArray[np.float64]:
    curve = np.ones(n_times + 1)
    staying, i = 0.0, rows.size - 1
    while i >= 0:
        t, censored, others = at[i], 0.0, 0.0
        while i >= 0 and at[i] == t:
            if is_censored[i]:
                censored += weight[rows[i]]
            else:
                others += weight[rows[i]]
            i -= 1
        if censored > 0.0:
            kept = staying + others if crr else staying
            curve[t + 1] = kept / (kept + censored)
        staying += censored + others
    for t in range(n_times):
        curve[t + 1] *= curve[t]
    return curve


@kernel
def _add(sums: NDArray[np.float64], k: int, high: float, low: float) -> None:
    """Add to number k of a table of sums (2, k): the leading digits, and those that follow."""
    total = sums[0, k] + high
    other = total - sums[0, k]
    sums[1, k] += ((sums[0, k] - (total - other)) + (high - other)) + low
    sums[0, k] = total


@kernel
def observed(
    since: Index,
    at: Index,
    n_times: int,
    is_censored: NDArray[np.bool_],
    is_event: NDArray[np.bool_],
    is_first: NDArray[np.bool_],
    weight: Rows,
    crr: bool,
) -> NDArray[np.float64]:
    out = np.zeros((4, n_times))
    left, came = np.zeros((2, n_times)), np.zeros((2, n_times))
    n_left, n_came = np.zeros((2, n_times), dtype=np.int64)
    for i in range(at.size):
        w = weight[i]
        if w <= 0.0:
            continue
        _add(left, at[i], w, 0.0)
        _add(came, since[i], w, 0.0)
        n_left[at[i]] += 1
        n_came[since[i]] += 1
        if is_censored[i]:
            out[0, at[i]] += w
        elif crr or not is_event[i]:
            out[1, at[i]] += w
        if is_first[i]:
            out[2, since[i]] += w
        else:
            out[3, since[i]] += w
    passing, n_passing = np.zeros((2, 1)), 0
    for t in range(n_times - 1, -1, -1):
        _add(passing, 0, -came[0, t], -came[1, t])
        n_passing -= n_came[t]
        within = passing[0, 0] + passing[1, 0] if n_passing > 0 else 0.0
        out[1, t] += within
        out[3, t] += within
        _add(passing, 0, left[0, t], left[1, t])
        n_passing += n_left[t]
    return out
