"""Sums over nested risk sets for eight lanes, in vector code (see `_vector`).

Each loop keeps its running sums in registers; a lane sees the additions in the order of the rows.
The functions work on the arrays of `replicates_ref`.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from llvmlite import ir
from numpy.typing import NDArray

from riskset._types import AnyArray, Index, Matrix, Rows
from riskset.kernels._exponential import LN2_HIGH, LN2_LOW, LOG2E, TAYLOR
from riskset.kernels._vector import LANES, VectorCode, in_vectors

__all__ = ["residuals_of_tail", "residuals_up_to", "sum_after", "sum_up_to"]

PREFETCH_ROWS = 16
"""Rows of eta lie anywhere in memory: so many rows before its turn a row is called for."""
BLOCK = 256
"""Terms of the likelihood are summed by blocks: the line search compares its last digits."""

MAGIC = 6755399441055744.0
"""1.5 * 2^52: what is added to it is rounded to a whole number, which stands in its last bits."""
SQRT_HALF_BITS = 0x3FE6A09E667F3BCD
LOG_ODD = (1.531383769920937332e-01, 2.222219843214978396e-01, 3.999999999940941908e-01)
LOG_EVEN = (
    1.479819860511658591e-01, 1.818357216161805012e-01, 2.857142874366239149e-01,
    6.666666666666735130e-01,
)  # fmt: skip
"""Coefficients of the logarithm in fdlibm (Sun Microsystems, 1993): powers of s^4, times s^4 and
times s^2, highest first."""

_I64, _F64 = ir.IntType(64), ir.DoubleType()
_ROW, _BITS = ir.VectorType(_F64, LANES), ir.VectorType(_I64, LANES)
_ZERO = ir.Constant(_ROW, [0.0] * LANES)
_FIRST, _ONE = ir.Constant(_I64, 0), ir.Constant(_I64, 1)


def _all(number: float) -> Any:
    return ir.Constant(_ROW, [number] * LANES)


def _every(number: int) -> Any:
    return ir.Constant(_BITS, [number] * LANES)


def _polynomial(b: Any, x: Any, coefficients: Iterable[float]) -> Any:
    """By Horner's rule, highest power first."""
    first, *others = coefficients
    value = _all(first)
    for c in others:
        value = b.fadd(b.fmul(value, x), _all(c))
    return value


def _exp(b: Any, x: Any) -> Any:
    """exp(x) for -700 < x < 700: x = k ln 2 + r, |r| <= ln 2 / 2; Taylor's series to r^13."""
    # Not every processor can round a vector to whole numbers, or convert it to integers, in one
    # instruction. Adding MAGIC and taking it off does the first; its last bits give the second.
    shifted = b.fadd(b.fmul(x, _all(LOG2E)), _all(MAGIC))
    k = b.fsub(shifted, _all(MAGIC))
    r = b.fsub(b.fsub(x, b.fmul(k, _all(LN2_HIGH))), b.fmul(k, _all(LN2_LOW)))
    power = b.shl(b.add(b.bitcast(shifted, _BITS), _every(1023)), _every(52))
    return b.fmul(_polynomial(b, r, TAYLOR), b.bitcast(power, _ROW))


def _log(b: Any, x: Any) -> Any:
    """log(x) of a normal positive number, to a unit in the last place, as fdlibm does it."""
    bits = b.bitcast(x, _BITS)
    k = b.ashr(b.sub(bits, _every(SQRT_HALF_BITS)), _every(52))
    f = b.fsub(b.bitcast(b.sub(bits, b.shl(k, _every(52))), _ROW), _all(1.0))
    # k as a number: written into the last bits of 2^52 + 2048, which is taken off again.
    exponent = b.bitcast(b.add(k, _every(0x4330000000000000 + 2048)), _ROW)
    exponent = b.fsub(exponent, _all(2.0**52 + 2048))
    s = b.fdiv(f, b.fadd(_all(2.0), f))
    z = b.fmul(s, s)
    w = b.fmul(z, z)
    series = b.fadd(b.fmul(w, _polynomial(b, w, LOG_ODD)), b.fmul(z, _polynomial(b, w, LOG_EVEN)))
    half = b.fmul(_all(0.5), b.fmul(f, f))
    low = b.fadd(b.fmul(s, b.fadd(half, series)), b.fmul(exponent, _all(LN2_LOW)))
    return b.fsub(b.fmul(exponent, _all(LN2_HIGH)), b.fsub(b.fsub(half, low), f))


class _Sums(VectorCode):
    """What the loops over nested risk sets are made of."""

    def flag(self, data: Any, index: Any) -> Any:
        value = self.element(data, index)
        return self.builder.icmp_signed("!=", value, ir.Constant(value.type, 0))

    def counts(self, index: Any) -> Any:
        """A row of `count`, which has numbers of one byte or of eight, as float64."""
        data = self.data("count")
        if data.type.pointee == _F64:
            return self.load(data, index)
        first = self.builder.mul(index, ir.Constant(_I64, LANES))
        packed = ir.VectorType(data.type.pointee, LANES).as_pointer()
        row = self.builder.bitcast(self.builder.gep(data, [first]), packed)
        return self.builder.uitofp(self.builder.load(row, align=1), _ROW)

    def rows_of(self, ptr: Any, g: Any) -> tuple[Any, Any]:
        return self.element(ptr, g), self.element(ptr, self.builder.add(g, _ONE))

    def risk_row(self, eta: Any, order: Any, i: Any, end: Any, ahead: int) -> Any:
        """Row ``order[i]`` of eta; the one `ahead`, or that at the end, is called for."""
        b = self.builder
        soon = b.add(i, ir.Constant(_I64, ahead))
        is_inside = b.icmp_signed("<" if ahead > 0 else ">", soon, end)
        self.fetch(eta, self.element(order, b.select(is_inside, soon, end)))
        return self.load(eta, self.element(order, i))

    def in_blocks(self, n: Any, totals: list[Any], body: Callable[..., list[Any]]) -> list[Any]:
        """`loop` from 0 to n; the last total is summed by blocks."""
        b, size = self.builder, ir.Constant(_I64, BLOCK)

        def block(k: Any, current: list[Any]) -> list[Any]:
            first = b.mul(k, size)
            last = b.add(first, size)
            last = b.select(b.icmp_signed("<", last, n), last, n)
            *others, part = self.loop(first, last, [*current[:-1], _ZERO], body)
            return [*others, b.fadd(current[-1], part)]

        n_blocks = b.sdiv(b.add(n, b.sub(size, _ONE)), size)
        return self.loop(_FIRST, n_blocks, totals, block)


def _emit_sum_up_to(e: _Sums) -> None:
    b = e.builder
    eta, order, weight, events = e.data("eta", "order", "weight", "events")
    ptr, starts, n_groups = e.data("ptr"), e.data("starts"), e.array("starts").nitems
    r, hazard, shift = e.data("r"), e.data("hazard"), e.load(e.data("shift"), _FIRST)
    more = e.data("more") if e.is_given("more") else None
    end = b.sub(e.element(ptr, n_groups), _ONE)

    def row(i: Any, totals: list[Any]) -> list[Any]:
        running, deaths, part = totals
        count = e.counts(i)
        x = b.fsub(e.risk_row(eta, order, i, end, PREFETCH_ROWS), shift)
        risk = b.fmul(b.fmul(e.spread(e.element(weight, i)), count), _exp(b, x))
        e.store(risk, r, i)
        died = b.fmul(e.spread(e.element(events, i)), count)
        # The log likelihood is that of eta - shift: the shift cancels between x and log(total).
        part = b.fadd(part, b.fmul(died, x))
        return [b.fadd(running, risk), b.fadd(deaths, died), part]

    def group(g: Any, totals: list[Any]) -> list[Any]:
        running, least, part = totals
        running = b.select(e.flag(starts, g), _ZERO, running)
        running, deaths, part = e.loop(*e.rows_of(ptr, g), [running, _ZERO, part], row)
        total = running if more is None else b.fadd(running, e.load(more, g))
        # Without an event the total does not matter, and may be 0 in a lane whose rows at risk all
        # have weight 0: 1 gives a hazard of 0 and a logarithm of 0 without a branch.
        total = b.select(b.fcmp_ordered(">", deaths, _ZERO), total, _all(1.0))
        e.store(b.fdiv(deaths, total), hazard, g)
        # A total that is not a number must become the least, so that it shows.
        least = b.select(b.fcmp_ordered(">=", total, least), least, total)
        return [running, least, b.fsub(part, b.fmul(deaths, _log(b, total)))]

    _, least, sum_ = e.in_blocks(n_groups, [_ZERO, _all(math.inf), _ZERO], group)
    e.store(least, e.data("low"), _FIRST)
    e.store(sum_, e.data("value"), _FIRST)


def _emit_sum_after(e: _Sums) -> None:
    b = e.builder
    eta, order, weight, ptr, starts = e.data("eta", "order", "weight", "ptr", "starts")
    survival, r, total = e.data("survival", "r", "total")
    shift, n = e.load(e.data("shift"), _FIRST), e.array("starts").nitems

    def row(i: Any, totals: list[Any]) -> list[Any]:
        # Groups go from the last one down, so the rows to come lie before.
        x = b.fsub(e.risk_row(eta, order, i, _FIRST, -PREFETCH_ROWS), shift)
        risk = b.fmul(e.load(weight, i), _exp(b, x))
        e.store(risk, r, i)
        return [b.fadd(totals[0], risk)]

    def group(k: Any, totals: list[Any]) -> list[Any]:
        (running,) = totals
        g = b.sub(b.sub(n, _ONE), k)
        seen = b.fmul(running, e.load(survival, g))
        e.store(b.fadd(e.load(total, g), seen), total, g)
        (running,) = e.loop(*e.rows_of(ptr, g), [running], row)
        return [b.select(e.flag(starts, g), _ZERO, running)]

    e.loop(_FIRST, n, [_ZERO], group)


def _emit_residuals_up_to(e: _Sums) -> None:
    b = e.builder
    hazard, order, r, events = e.data("hazard", "order", "r", "events")
    ptr, starts, residual = e.data("ptr", "starts", "residual")
    n = e.array("starts").nitems

    def group(k: Any, totals: list[Any]) -> list[Any]:
        g = b.sub(b.sub(n, _ONE), k)
        seen = b.fadd(totals[0], e.load(hazard, g))

        def row(i: Any, _: list[Any]) -> list[Any]:
            died = b.fmul(e.spread(e.element(events, i)), e.counts(i))
            left = b.fsub(died, b.fmul(e.load(r, i), seen))
            e.store(left, residual, e.element(order, i))
            return []

        e.loop(*e.rows_of(ptr, g), [], row)
        return [b.select(e.flag(starts, g), _ZERO, seen)]

    e.loop(_FIRST, n, [_ZERO], group)


def _emit_residuals_of_tail(e: _Sums) -> None:
    b = e.builder
    hazard, order, r, ptr, starts = e.data("hazard", "order", "r", "ptr", "starts")
    survival, residual, n = e.data("survival"), e.data("residual"), e.array("starts").nitems

    def group(g: Any, totals: list[Any]) -> list[Any]:
        seen = b.select(e.flag(starts, g), _ZERO, totals[0])

        def row(i: Any, _: list[Any]) -> list[Any]:
            j = e.element(order, i)
            e.store(b.fsub(e.load(residual, j), b.fmul(e.load(r, i), seen)), residual, j)
            return []

        e.loop(*e.rows_of(ptr, g), [], row)
        return [b.fadd(seen, b.fmul(e.load(hazard, g), e.load(survival, g)))]

    e.loop(_FIRST, n, [_ZERO], group)


@in_vectors(_emit_sum_up_to, _Sums)
def sum_up_to(
    eta: Matrix, shift: Rows, order: Index, weight: Rows, events: Rows, count: AnyArray,
    ptr: Index, starts: NDArray[np.bool_], more: Matrix | None, r: Matrix,
    hazard: Matrix, low: Rows, value: Rows,
) -> None:  # fmt: skip
    """See `replicates_ref.sum_up_to`."""
    running = np.zeros(LANES)
    low[:], value[:] = np.inf, 0.0
    for g in range(starts.size):
        if starts[g]:
            running[:] = 0.0
        deaths = np.zeros(LANES)
        for i in range(ptr[g], ptr[g + 1]):
            x = eta[order[i]] - shift
            r[i] = weight[i] * count[i] * np.exp(x)
            running += r[i]
            deaths += events[i] * count[i]
            value += events[i] * count[i] * x
        total = running if more is None else running + more[g]
        total = np.where(deaths > 0, total, 1.0)
        hazard[g] = deaths / total
        low[:] = np.minimum(low, total)
        value -= deaths * np.log(total)


@in_vectors(_emit_sum_after, _Sums)
def sum_after(
    eta: Matrix, shift: Rows, order: Index, weight: Matrix, ptr: Index,
    starts: NDArray[np.bool_], survival: Matrix, r: Matrix, total: Matrix,
) -> None:  # fmt: skip
    """See `replicates_ref.sum_after`."""
    running = np.zeros(LANES)
    for g in range(starts.size - 1, -1, -1):
        total[g] += running * survival[g]
        for i in range(ptr[g], ptr[g + 1]):
            r[i] = weight[i] * np.exp(eta[order[i]] - shift)
            running += r[i]
        if starts[g]:
            running[:] = 0.0


@in_vectors(_emit_residuals_up_to, _Sums)
def residuals_up_to(
    hazard: Matrix, order: Index, r: Matrix, events: Rows, count: AnyArray, ptr: Index,
    starts: NDArray[np.bool_], residual: Matrix,
) -> None:  # fmt: skip
    """See `replicates_ref.residuals_up_to`."""
    seen = np.zeros(LANES)
    for g in range(starts.size - 1, -1, -1):
        seen += hazard[g]
        for i in range(ptr[g], ptr[g + 1]):
            residual[order[i]] = events[i] * count[i] - r[i] * seen
        if starts[g]:
            seen[:] = 0.0


@in_vectors(_emit_residuals_of_tail, _Sums)
def residuals_of_tail(
    hazard: Matrix, order: Index, r: Matrix, ptr: Index, starts: NDArray[np.bool_],
    survival: Matrix, residual: Matrix,
) -> None:  # fmt: skip
    """See `replicates_ref.residuals_of_tail`."""
    seen = np.zeros(LANES)
    for g in range(starts.size):
        if starts[g]:
            seen[:] = 0.0
        for i in range(ptr[g], ptr[g + 1]):
            residual[order[i]] -= r[i] * seen
        seen += hazard[g] * survival[g]
