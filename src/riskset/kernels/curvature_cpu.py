"""Curvature of the likelihood over nested risk sets. The specification is `curvature_ref`."""

import numpy as np
from numpy.typing import NDArray

from riskset._types import Pointer, Rows
from riskset.kernels._jit import kernel

__all__ = ["nested_pull"]


@kernel
def nested_pull(
    ru: Rows,
    factor: NDArray[np.float64],
    group_ptr: Pointer,
    starts: NDArray[np.bool_],
) -> Rows:
    """See `curvature_ref.nested_pull`."""
    n_groups = starts.size
    share = np.empty(n_groups)
    out = np.empty(ru.size)
    total = 0.0
    for g in range(n_groups):
        if starts[g]:
            total = 0.0
        for i in range(group_ptr[g], group_ptr[g + 1]):
            total += ru[i]
        share[g] = factor[g] * total
    # Backwards, so that what is added up is never taken off again.
    total = 0.0
    for g in range(n_groups - 1, -1, -1):
        total += share[g]
        for i in range(group_ptr[g], group_ptr[g + 1]):
            out[i] = total
        if starts[g]:
            total = 0.0
    return out
