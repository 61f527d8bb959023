"""The fast twin of `censoring_ref`: one pass over the rows, from the last time down."""

import numpy as np
from numpy.typing import NDArray

from riskset._types import Index, Rows
from riskset.kernels._jit import kernel

__all__ = ["survival"]


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
