"""Largest differences of weighted distribution functions: Kolmogorov-Smirnov statistics."""

import numpy as np

from riskset._runtime import Runtime
from riskset._types import Features, Index, Matrix
from riskset.data.design import Design

__all__ = ["ecdf_gaps"]

MOSTLY_ZERO = 0.5
EQUAL = 1e-12
"""Differences of shares that are smaller are rounding."""


def ecdf_gaps(design: Design, columns: Index, weights: Matrix, runtime: Runtime) -> list[Features]:
    """Statistics (q,) of some columns, of each two columns of weights (n, 2 k); NaN without weight.

    The weights of an arm are divided by their sum.
    """
    totals = weights.sum(axis=0)
    with np.errstate(invalid="ignore"):
        shares = weights / totals

    def gaps(column: int) -> Features:
        x = design.stored_column(column)
        rows = np.flatnonzero(x)
        w = shares
        if rows.size < MOSTLY_ZERO * x.size:  # all zeros together are one row
            x, part = np.append(x[rows], 0.0), shares[rows]
            w = np.vstack([part, 1.0 - part.sum(axis=0)])
        order = np.argsort(x, kind="stable")
        x = x[order]
        is_last = np.append(x[1:] != x[:-1], True)  # of equal values
        below = np.cumsum(w[order], axis=0)[is_last]
        apart = np.abs(below[:, 0::2] - below[:, 1::2]).max(axis=0)
        return np.where(apart > EQUAL, apart, np.where(np.isnan(apart), np.nan, 0.0))

    if not columns.size:
        return [np.zeros(0)] * (weights.shape[1] // 2)
    return list(np.array(runtime.map(gaps, columns.tolist())).T)
