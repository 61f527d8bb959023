"""The Kaplan-Meier estimates of censoring and of entry, in NumPy: what `censoring_cpu` does."""

import numpy as np
from numpy.typing import NDArray

from riskset._types import Index, Rows

__all__ = ["observed", "survival"]


def survival(
    rows: Index, at: Index, n_times: int, is_censored: NDArray[np.bool_], weight: Rows, crr: bool
) -> NDArray[np.float64]:
    """Survival after 0, 1, ..., k distinct times (k + 1,), k being `n_times`.

    `rows` (m,) of `weight` (n,) stand in the order of time, `at` is the number of distinct times
    before each row's own. With `crr`, rows with an event are at risk of the censorings at their own
    time.
    """
    w = weight[rows]
    leaving = np.bincount(at, w, n_times)
    censored = np.bincount(at, np.where(is_censored, w, 0.0), n_times)
    # Added up from the end, apart from those who leave now: nothing is taken off.
    staying = np.append(np.cumsum(leaving[::-1])[::-1][1:], 0.0)
    if crr:
        staying += np.bincount(at, np.where(is_censored, 0.0, w), n_times)
    curve = np.ones(n_times + 1)
    np.divide(staying, staying + censored, out=curve[1:], where=censored > 0)
    return np.cumprod(curve, out=curve)


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
    """Weights that censoring and entry are estimated from, at each of k times (4, k).

    Of the m rows, at risk after the time `since` up to the time `at`: who is censored at a time,
    and who is at risk of it then but not censored; who enters for the first time (`is_first`), and
    who has entered by then, and stays longer, but not for the first time at that time. A row that
    is neither censored nor has an event goes on in the next row of its person. With `crr`, rows
    with an event are at risk of the censorings at their own time. A sum over no row of positive
    weight is exactly 0.
    """
    time = np.arange(n_times)[:, None]
    passes, ends, begins = (since < time) & (time < at), time == at, time == since
    staying = ends & ~is_censored & (crr | ~is_event)
    parts = (ends & is_censored, passes | staying, begins & is_first, passes | (begins & ~is_first))
    return np.array([(part * weight).sum(axis=1) for part in parts]).reshape(4, n_times)
