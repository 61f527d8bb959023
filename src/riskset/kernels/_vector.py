"""Eight numbers at a time: inner loops that a compiler does not vectorise by itself.

An array (n, 8) has one row of eight lanes for each row, column or group. A row is 64 bytes, one
vector or two, loaded and stored at once; each lane sees the additions in the order of a plain loop.

A *lane* is one of the eight numbers of such a vector. Here it stands for a replicate of a fit (a
fold of a cross-validation, a resample): replicates share the design, so an entry of the design that
was read from memory, which is what takes the time, serves eight of them.

Why the compiler's own language (LLVM's intermediate representation): numba's compiler does not turn
the loop over the lanes of ``out[m, k] += r[i, k]`` into vector instructions, because it cannot rule
out that `out` and `r` overlap. Written in vectors, the sums stay in registers from the first entry
of a column to the last. Nothing is reordered, so the bits are those of the plain loops below, which
run if compilation is disabled.
"""

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from riskset._types import AnyArray, Matrix, Rows

__all__ = [
    "LANES",
    "VectorCode",
    "gather_dense",
    "gather_rows",
    "gather_scaled",
    "lane_rows",
    "scatter_dense",
    "scatter_rows",
    "scatter_scaled",
]

LANES = 8
LINE = 64
"""Bytes of a cache line, and of a row."""


def lane_rows(n: int) -> Matrix:
    """An (n, 8) array without values, each row of which is one cache line and not half of two."""
    raw = np.empty(n * LANES + LINE // 8)
    start = (-raw.ctypes.data % LINE) // 8
    return raw[start : start + n * LANES].reshape(n, LANES)


_I64, _F64 = ir.IntType(64), ir.DoubleType()
_ROW = ir.VectorType(_F64, LANES)
_BYTES = ir.IntType(8).as_pointer()


class VectorCode:
    """What a loop over rows is made of, in the words of the compiler."""

    def __init__(self, context: Any, builder: Any, signature: Any, args: Any) -> None:
        self.context, self.builder = context, builder
        self.signature, self.args = signature, args

    def data(self, k: int) -> Any:
        array = self.context.make_array(self.signature.args[k])
        return array(self.context, self.builder, self.args[k]).data

    def element(self, data: Any, index: Any) -> Any:
        return self.builder.load(self.builder.gep(data, [index]))

    def row_at(self, data: Any, index: Any) -> Any:
        first = self.builder.mul(index, ir.Constant(_I64, LANES))
        return self.builder.bitcast(self.builder.gep(data, [first]), _ROW.as_pointer())

    def load(self, data: Any, index: Any) -> Any:
        # Alignment of 8: arrays of a caller need not begin at a cache line, those of `lane_rows`
        # do.
        return self.builder.load(self.row_at(data, index), align=8)

    def store(self, value: Any, data: Any, index: Any) -> None:
        self.builder.store(value, self.row_at(data, index), align=8)

    def fetch(self, data: Any, index: Any) -> None:
        """Have a row brought into the cache, to be read soon."""
        b, word = self.builder, ir.IntType(32)
        place = b.bitcast(b.gep(data, [b.mul(index, ir.Constant(_I64, LANES))]), _BYTES)
        kind = ir.FunctionType(ir.VoidType(), [_BYTES, word, word, word])
        prefetch = b.module.declare_intrinsic("llvm.prefetch", [_BYTES], kind)
        b.call(prefetch, [place, *(ir.Constant(word, k) for k in (0, 3, 1))])

    def spread(self, number: Any) -> Any:
        """A number in all lanes."""
        one = self.builder.insert_element(
            ir.Constant(_ROW, ir.Undefined), number, ir.Constant(ir.IntType(32), 0)
        )
        mask = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
        return self.builder.shuffle_vector(one, ir.Constant(_ROW, ir.Undefined), mask)

    def loop(
        self, first: Any, last: Any, totals: list[Any], body: Callable[[Any, list[Any]], list[Any]]
    ) -> list[Any]:
        """``for k in range(first, last): totals = body(k, totals)``."""
        # Totals are phi nodes: values that are `totals` at the first turn and what the body
        # returned at later ones. So they never touch memory between the turns.
        b = self.builder
        entry = b.block
        head, inside, after = (b.append_basic_block(name) for name in ("head", "inside", "after"))
        b.branch(head)
        b.position_at_end(head)
        k = b.phi(_I64)
        k.add_incoming(first, entry)
        current = [b.phi(total.type) for total in totals]
        for now, total in zip(current, totals, strict=True):
            now.add_incoming(total, entry)
        b.cbranch(b.icmp_signed("<", k, last), inside, after)
        b.position_at_end(inside)
        for now, new in zip(current, body(k, current), strict=True):
            now.add_incoming(new, b.block)
        k.add_incoming(b.add(k, ir.Constant(_I64, 1)), b.block)
        b.branch(head)
        b.position_at_end(after)
        return current


def _gather(
    emit: VectorCode, first: Any, last: Any, row: Any, value: Any, base: Any, at: int
) -> Any:
    """``out[m] += sum_k value[k] r[base + row[k]]`` with r, out, m the arguments from `at` on."""
    b = emit.builder
    r, out, m = emit.data(at), emit.data(at + 1), emit.args[at + 2]

    def body(k: Any, totals: list[Any]) -> list[Any]:
        i = b.zext(emit.element(row, k), _I64) if row is not None else k
        term = emit.load(r, b.add(base, i))
        if value is not None:
            term = b.fmul(emit.spread(emit.element(value, k)), term)
        return [b.fadd(totals[0], term)]

    (total,) = emit.loop(first, last, [emit.load(out, m)], body)
    emit.store(total, out, m)
    return emit.context.get_dummy_value()


def _scatter(
    emit: VectorCode, first: Any, last: Any, row: Any, value: Any, base: Any, at: int
) -> Any:
    """``out[base + row[k]] += value[k] v[m]`` with v, m, out the arguments from `at` on."""
    b = emit.builder
    v, m, out = emit.data(at), emit.args[at + 1], emit.data(at + 2)
    x = emit.load(v, m)

    def body(k: Any, _: list[Any]) -> list[Any]:
        i = b.add(base, b.zext(emit.element(row, k), _I64) if row is not None else k)
        term = x if value is None else b.fmul(emit.spread(emit.element(value, k)), x)
        emit.store(b.fadd(emit.load(out, i), term), out, i)
        return []

    emit.loop(first, last, [], body)
    return emit.context.get_dummy_value()


_ZERO = ir.Constant(_I64, 0)
_INT = types.int64

if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]

    def gather_rows(
        row: AnyArray, first: int, last: int, base: int, r: Matrix, out: Matrix, m: int
    ) -> None:
        """``out[m] += sum r[base + row[k]]`` over k in [first, last)."""
        for k in range(first, last):
            out[m] += r[base + int(row[k])]

    def gather_scaled(
        row: AnyArray, value: Rows, first: int, last: int, base: int, r: Matrix, out: Matrix, m: int
    ) -> None:
        """``out[m] += sum value[k] r[base + row[k]]``."""
        for k in range(first, last):
            out[m] += value[k] * r[base + int(row[k])]

    def gather_dense(x: Rows, n: int, base: int, r: Matrix, out: Matrix, m: int) -> None:
        """``out[m] += sum x[k] r[base + k]`` over k in [0, n)."""
        for k in range(n):
            out[m] += x[k] * r[base + k]

    def scatter_rows(
        row: AnyArray, first: int, last: int, base: int, v: Matrix, m: int, out: Matrix
    ) -> None:
        """``out[base + row[k]] += v[m]``."""
        for k in range(first, last):
            out[base + int(row[k])] += v[m]

    def scatter_scaled(
        row: AnyArray, value: Rows, first: int, last: int, base: int, v: Matrix, m: int, out: Matrix
    ) -> None:
        """``out[base + row[k]] += value[k] v[m]``."""
        for k in range(first, last):
            out[base + int(row[k])] += value[k] * v[m]

    def scatter_dense(x: Rows, n: int, base: int, v: Matrix, m: int, out: Matrix) -> None:
        """``out[base + k] += x[k] v[m]``."""
        for k in range(n):
            out[base + k] += x[k] * v[m]

else:

    @intrinsic
    def gather_rows(typing, row, first, last, base, r, out, m):  # type: ignore[no-untyped-def]
        """``out[m] += sum r[base + row[k]]`` over k in [first, last)."""

        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            e = VectorCode(context, builder, signature, args)
            return _gather(e, args[1], args[2], e.data(0), None, args[3], 4)

        return types.void(row, _INT, _INT, _INT, r, out, _INT), emit

    @intrinsic
    def gather_scaled(typing, row, value, first, last, base, r, out, m):  # type: ignore[no-untyped-def]
        """``out[m] += sum value[k] r[base + row[k]]``."""

        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            e = VectorCode(context, builder, signature, args)
            return _gather(e, args[2], args[3], e.data(0), e.data(1), args[4], 5)

        return types.void(row, value, _INT, _INT, _INT, r, out, _INT), emit

    @intrinsic
    def gather_dense(typing, x, n, base, r, out, m):  # type: ignore[no-untyped-def]
        """``out[m] += sum x[k] r[base + k]`` over k in [0, n)."""

        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            e = VectorCode(context, builder, signature, args)
            return _gather(e, _ZERO, args[1], None, e.data(0), args[2], 3)

        return types.void(x, _INT, _INT, r, out, _INT), emit

    @intrinsic
    def scatter_rows(typing, row, first, last, base, v, m, out):  # type: ignore[no-untyped-def]
        """``out[base + row[k]] += v[m]``."""

        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            e = VectorCode(context, builder, signature, args)
            return _scatter(e, args[1], args[2], e.data(0), None, args[3], 4)

        return types.void(row, _INT, _INT, _INT, v, _INT, out), emit

    @intrinsic
    def scatter_scaled(typing, row, value, first, last, base, v, m, out):  # type: ignore[no-untyped-def]
        """``out[base + row[k]] += value[k] v[m]``."""

        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            e = VectorCode(context, builder, signature, args)
            return _scatter(e, args[2], args[3], e.data(0), e.data(1), args[4], 5)

        return types.void(row, value, _INT, _INT, _INT, v, _INT, out), emit

    @intrinsic
    def scatter_dense(typing, x, n, base, v, m, out):  # type: ignore[no-untyped-def]
        """``out[base + k] += x[k] v[m]``."""

        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            e = VectorCode(context, builder, signature, args)
            return _scatter(e, _ZERO, args[1], None, e.data(0), args[2], 3)

        return types.void(x, _INT, _INT, v, _INT, out), emit
