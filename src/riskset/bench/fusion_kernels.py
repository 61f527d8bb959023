"""Steps (2) to (4) of the paper's section 2.7 in three forms, one thread each.

For one covariate, from the vectors r, x r and x^2 r in risk order: their running sums S, the terms
:math:`G = S_1 / S_0` and :math:`S_2 / S_0 - G^2`, and the sums of both over the events.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from riskset._types import Rows
from riskset.kernels._jit import kernel

__all__ = [
    "KernelForm",
    "Vectors",
    "fused",
    "reduce",
    "scan",
    "transform",
    "transform_reduce",
    "tuple_scan",
]


@dataclass(frozen=True)
class Vectors:
    """In risk order: r, x r and x^2 r, drawn from U(1, 2), and which rows have the event."""

    r: Rows
    xr: Rows
    xxr: Rows
    event: Rows

    @classmethod
    def draw(cls, n: int, seed: int) -> "Vectors":
        """The paper's input; half of the rows have the event."""
        rng = np.random.default_rng(seed)
        r, xr, xxr = rng.uniform(1, 2, (3, n))
        return cls(r, xr, xxr, (rng.random(n) < 0.5).astype(np.float64))


@dataclass(frozen=True)
class KernelForm:
    """One way to do it.

    Attributes
    ----------
    steps : mapping of str to callable
        What it consists of, in order; each can be repeated by itself once all have run.
    result : callable
        Runs all steps; the sums for gradient and curvature.
    """

    steps: Mapping[str, Callable[[], object]]
    result: Callable[[], tuple[float, float]]


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
