"""Sums of products of two rows of numbers, eight at a time.

numba's compiler does not turn such sums into vector instructions, because that reorders them. Here
the order is written down, so the bits are the same on every processor.
"""

from typing import Any

from llvmlite import ir

from riskset._types import Rows
from riskset.kernels._jit import kernel
from riskset.kernels._vector import LANES, VectorCode, in_vectors

__all__ = ["dot", "moments"]

_I64 = ir.IntType(64)
_NOTHING = ir.Constant(ir.VectorType(ir.DoubleType(), LANES), [0.0] * LANES)
PAIR = 2 * LANES
"""Numbers that a turn of the loop takes: two vectors, whose sums do not wait for each other."""


def _emit_dot(e: VectorCode) -> None:
    b = e.builder
    x, r = e.data("x", "r")

    def body(k: Any, totals: list[Any]) -> list[Any]:
        first = b.mul(k, ir.Constant(_I64, 2))
        at = first, b.add(first, ir.Constant(_I64, 1))
        terms = [b.fmul(e.load(x, i), e.load(r, i)) for i in at]
        return [b.fadd(total, term) for total, term in zip(totals, terms, strict=True)]

    one, two = e.loop(ir.Constant(_I64, 0), e.values["n_pairs"], [_NOTHING, _NOTHING], body)
    e.store(b.fadd(one, two), e.data("out"), ir.Constant(_I64, 0))


def _emit_moments(e: VectorCode) -> None:
    b = e.builder
    x, r = e.data("x", "r")

    def body(k: Any, totals: list[Any]) -> list[Any]:
        value = e.load(x, k)
        first = b.fmul(value, e.load(r, k))
        return [b.fadd(totals[0], first), b.fadd(totals[1], b.fmul(first, value))]

    sums = e.loop(ir.Constant(_I64, 0), e.values["n_rows"], [_NOTHING, _NOTHING], body)
    for k, total in enumerate(sums):
        e.store(total, e.data("out"), ir.Constant(_I64, k))


@in_vectors(_emit_dot)
def _dot_in_lanes(x: Rows, r: Rows, n_pairs: int, out: Rows) -> None:
    """Sums over every eighth number of the first ``16 n_pairs``, in `out` (8,)."""
    for k in range(LANES):
        one = two = 0.0
        for i in range(k, PAIR * n_pairs, PAIR):
            one += x[i] * r[i]
            two += x[i + LANES] * r[i + LANES]
        out[k] = one + two


@in_vectors(_emit_moments)
def _moments_in_lanes(x: Rows, r: Rows, n_rows: int, out: Rows) -> None:
    """Sums of x r and x^2 r over every eighth of the first ``8 n_rows``, in `out` (16,)."""
    for k in range(LANES):
        one = two = 0.0
        for i in range(k, LANES * n_rows, LANES):
            one += x[i] * r[i]
            two += x[i] * r[i] * x[i]
        out[k], out[LANES + k] = one, two


@kernel
def _total(lanes: Rows, first: int) -> float:
    a = (lanes[first] + lanes[first + 4]) + (lanes[first + 2] + lanes[first + 6])
    b = (lanes[first + 1] + lanes[first + 5]) + (lanes[first + 3] + lanes[first + 7])
    total: float = a + b
    return total


@kernel
def dot(x: Rows, r: Rows, lanes: Rows) -> float:
    """Sum of x r over all numbers of r; `lanes` (16,) is room to work in."""
    n = r.size
    n_pairs = n // PAIR
    _dot_in_lanes(x, r, n_pairs, lanes)
    total = _total(lanes, 0)
    for i in range(PAIR * n_pairs, n):
        total += x[i] * r[i]
    return total


@kernel
def moments(x: Rows, r: Rows, lanes: Rows) -> tuple[float, float]:
    """Sums of x r and x^2 r over all numbers of r; `lanes` (16,) is room to work in."""
    n = r.size
    n_rows = n // LANES
    _moments_in_lanes(x, r, n_rows, lanes)
    first, second = _total(lanes, 0), _total(lanes, LANES)
    for i in range(LANES * n_rows, n):
        term = x[i] * r[i]
        first += term
        second += term * x[i]
    return first, second
