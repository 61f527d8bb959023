"""The Kaplan-Meier estimate of the censoring distribution, in NumPy: what `censoring_cpu` does."""

import numpy as np
from numpy.typing import NDArray

from riskset._types import Index, Rows

__all__ = ["survival"]


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
