"""Steps (2) to (4) of the paper's section 2.7 in three forms, one thread each.

For one covariate, from the vectors r, x r and x^2 r in risk order: their running sums S, the terms
:math:`G = S_1 / S_0` and :math:`S_2 / S_0 - G^2`, and the sums of both over the events.
"""

from riskset._types import Rows
from riskset.kernels._jit import kernel

__all__ = ["fused", "reduce", "scan", "transform", "transform_reduce", "tuple_scan"]


@kernel
def scan(values: Rows, out: Rows) -> None:
    """Running sums of one vector."""
    total = 0.0
    for i in range(values.size):
        total += values[i]
        out[i] = total


@kernel
def transform(s0: Rows, s1: Rows, s2: Rows, event: Rows, first: Rows, second: Rows) -> None:
    """Terms of the gradient and of the curvature, written to memory."""
    for i in range(s0.size):
        g = s1[i] / s0[i]
        first[i] = event[i] * g
        second[i] = event[i] * (s2[i] / s0[i] - g * g)


@kernel
def reduce(values: Rows) -> float:
    """The sum of one vector."""
    total = 0.0
    for i in range(values.size):
        total += values[i]
    return total


@kernel
def tuple_scan(r: Rows, xr: Rows, xxr: Rows, s0: Rows, s1: Rows, s2: Rows) -> None:
    """Running sums of three vectors in one pass."""
    a = b = c = 0.0
    for i in range(r.size):
        a += r[i]
        b += xr[i]
        c += xxr[i]
        s0[i] = a
        s1[i] = b
        s2[i] = c


@kernel
def transform_reduce(s0: Rows, s1: Rows, s2: Rows, event: Rows) -> tuple[float, float]:
    """Both sums in one pass, their terms never written."""
    first = second = 0.0
    for i in range(s0.size):
        g = s1[i] / s0[i]
        first += event[i] * g
        second += event[i] * (s2[i] / s0[i] - g * g)
    return first, second


@kernel
def fused(r: Rows, xr: Rows, xxr: Rows, event: Rows) -> tuple[float, float]:
    """Everything in one pass, nothing written."""
    a = b = c = 0.0
    first = second = 0.0
    for i in range(r.size):
        a += r[i]
        b += xr[i]
        c += xxr[i]
        g = b / a
        first += event[i] * g
        second += event[i] * (c / a - g * g)
    return first, second
