"""The columns of a table, many at a time in vector code (see `_vector`).

Rows follow each other, and sums of neighbouring columns stay in registers from row to row.
"""

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba.core import cgutils

from riskset._types import Features, Index, Matrix, Rows
from riskset.kernels._vector import VectorCode, in_vectors

__all__ = ["add_rows", "gram_rows", "join_rows", "scatter_four", "store_four", "sum_table"]

WIDTHS = (16, 4, 1)
"""Columns taken together. A row has to wait for the sums of the row before: with as many columns
as registers hold, the processor has other work meanwhile."""
_I64, _I32, _F64 = ir.IntType(64), ir.IntType(32), ir.DoubleType()
_ZERO = ir.Constant(_I64, 0)


class _Lanes(VectorCode):
    """Neighbouring columns as vectors of some width."""

    width = 1

    def each(
        self,
        n_columns: Any,
        body: Callable[[Any], None],
        begin: Any = _ZERO,
        widths: Sequence[int] = WIDTHS,
    ) -> None:
        """Call `body` for the first of some columns, by the largest width that is left."""
        b = self.builder
        for width in widths:
            size = ir.Constant(_I64, width)
            n = b.sdiv(b.sub(n_columns, begin), size)

            def some(k: Any, _: list[Any], begin: Any = begin, size: Any = size) -> list[Any]:
                body(b.add(begin, b.mul(k, size)))
                return []

            self.width = width
            self.loop(_ZERO, n, [], some)
            begin = b.add(begin, b.mul(n, size))

    def all(self, number: float) -> Any:
        return ir.Constant(ir.VectorType(_F64, self.width), [number] * self.width)

    def take(self, data: Any, index: Any) -> Any:
        return self.builder.load(self._place(data, index), align=8)

    def put(self, value: Any, data: Any, index: Any) -> None:
        self.builder.store(value, self._place(data, index), align=8)

    def spread(self, number: Any) -> Any:
        nothing = ir.Constant(ir.VectorType(_F64, self.width), ir.Undefined)
        one = self.builder.insert_element(nothing, number, ir.Constant(_I32, 0))
        mask = ir.Constant(ir.VectorType(_I32, self.width), [0] * self.width)
        return self.builder.shuffle_vector(one, nothing, mask)

    def turned(self, rows: Sequence[Any]) -> list[Any]:
        """The columns of four rows of four."""

        def pair(one: Any, other: Any, *lanes: int) -> Any:
            mask = ir.Constant(ir.VectorType(_I32, 4), lanes)
            return self.builder.shuffle_vector(one, other, mask)

        even = [pair(rows[m], rows[m + 1], 0, 4, 2, 6) for m in (0, 2)]
        odd = [pair(rows[m], rows[m + 1], 1, 5, 3, 7) for m in (0, 2)]
        return [pair(*two, *half) for half in ((0, 1, 4, 5), (2, 3, 6, 7)) for two in (even, odd)]

    def _place(self, data: Any, index: Any) -> Any:
        kind = ir.VectorType(_F64, self.width).as_pointer()
        return self.builder.bitcast(self.builder.gep(data, [index]), kind)


def _emit_join(e: _Lanes) -> None:
    b = e.builder
    x, share, step, mean, out = e.data("x", "share", "step", "mean", "out")
    n_columns = e.array("mean").nitems

    def join(column: Any) -> None:
        def row(k: Any, totals: Sequence[Any]) -> list[Any]:
            at = b.add(b.mul(k, n_columns), column)
            distance = b.fsub(e.take(x, at), totals[0])
            e.put(b.fmul(e.spread(e.element(share, k)), distance), out, at)
            return [b.fadd(totals[0], b.fmul(e.spread(e.element(step, k)), distance))]

        now = e.loop(e.values["first"], e.values["last"], [e.take(mean, column)], row)
        e.put(now[0], mean, column)

    e.each(n_columns, join)


@in_vectors(_emit_join, _Lanes)
def join_rows(
    x: Matrix, share: Rows, step: Rows, first: int, last: int, mean: Rows, out: Matrix
) -> None:
    """Let the rows k from `first` to `last` join a set one by one, whose mean is `mean` (q,).

    ``out[k] = share[k] (x[k] - mean)``, and then ``mean += step[k] (x[k] - mean)``.
    """
    for k in range(first, last):
        distance = x[k] - mean
        out[k] = share[k] * distance
        mean += step[k] * distance


def _emit_add(e: _Lanes) -> None:
    b = e.builder
    x, rows, factor, high, low = e.data("x", "rows", "factor", "high", "low")
    n_columns, sign = e.array("high").nitems, e.values["sign"]

    def add(column: Any) -> None:
        def row(k: Any, totals: Sequence[Any]) -> list[Any]:
            i = e.element(rows, k)
            value = e.take(x, b.add(b.mul(i, n_columns), column))
            value = b.fmul(e.spread(b.fmul(sign, e.element(factor, i))), value)
            # Knuth's exact sum of two: what rounding takes from `total` is added to the rest.
            before, rest = totals
            total = b.fadd(before, value)
            part = b.fsub(total, before)
            lost = b.fadd(b.fsub(before, b.fsub(total, part)), b.fsub(value, part))
            return [total, b.fadd(rest, lost)]

        begin = [e.take(high, column), e.take(low, column)]
        total, rest = e.loop(e.values["first"], e.values["last"], begin, row)
        e.put(total, high, column)
        e.put(rest, low, column)

    e.each(n_columns, add)


@in_vectors(_emit_add, _Lanes)
def add_rows(
    x: Matrix, rows: Index, factor: Rows, sign: float, first: int, last: int, high: Features,
    low: Features,
) -> None:  # fmt: skip
    """Add ``sign factor[i] x[i]`` to ``high + low`` (q,), for the rows i from `first` to `last`.

    The sum of the two has twice the digits of one number.
    """
    for i in rows[first:last]:
        value = sign * factor[i] * x[i]
        before = high.copy()
        high += value
        part = high - before
        low += (before - (high - part)) + (value - part)


def _emit_gram(e: _Lanes) -> None:
    b = e.builder
    z, out, n_rows = e.data("z"), e.data("out"), e.values["n"]
    n_columns = b.extract_value(e.array("z").shape, 1)

    def rows_from(height: int, first: Any, widths: Sequence[int]) -> None:
        """So many rows of the result from `first` on, from their own column on."""

        def tile(column: Any) -> None:
            kind = ir.VectorType(_F64, e.width)
            # One instruction where the processor has it, else a product and a sum.
            fuse = cgutils.get_or_insert_function(  # type: ignore[no-untyped-call]
                b.module, ir.FunctionType(kind, [kind] * 3), f"llvm.fmuladd.v{e.width}f64"
            )
            places = [
                b.add(b.mul(b.add(first, ir.Constant(_I64, m)), n_columns), column)
                for m in range(height)
            ]

            def row(k: Any, totals: Sequence[Any]) -> list[Any]:
                begin = b.mul(k, n_columns)
                right, left = e.take(z, b.add(begin, column)), b.add(begin, first)
                factors = [
                    e.spread(e.element(z, b.add(left, ir.Constant(_I64, m)))) for m in range(height)
                ]
                return [b.call(fuse, [f, right, t]) for f, t in zip(factors, totals, strict=True)]

            sums = e.loop(_ZERO, n_rows, [e.take(out, place) for place in places], row)
            for total, place in zip(sums, places, strict=True):
                e.put(total, out, place)

        e.each(n_columns, tile, first, widths)

    first, last = e.values["first"], e.values["last"]
    for height in (4, 1):
        size = ir.Constant(_I64, height)
        n = b.sdiv(b.sub(last, first), size)

        def some(k: Any, _: list[Any], begin: Any = first, height: int = height, size: Any = size
                 ) -> list[Any]:  # fmt: skip
            rows_from(height, b.add(begin, b.mul(k, size)), (8, 4, 1))
            return []

        e.loop(_ZERO, n, [], some)
        first = b.add(first, b.mul(n, size))


@in_vectors(_emit_gram, _Lanes)
def gram_rows(z: Matrix, n: int, first: int, last: int, out: Matrix) -> None:
    """Add rows first to last of ``z[:n].T @ z[:n]`` to `out` (q, q), from the diagonal on."""
    for s in range(first, last):
        out[s, s:] += z[:n, s] @ z[:n, s:]


def _emit_sums(e: _Lanes) -> None:
    b = e.builder
    x, center, out = e.data("x", "center", "out")
    n_columns = e.array("center").nitems

    def sums(column: Any) -> None:
        places = [b.add(b.mul(n_columns, ir.Constant(_I64, k)), column) for k in range(3)]
        middle, one, zero = e.take(center, column), e.all(1.0), e.all(0.0)

        def row(i: Any, totals: Sequence[Any]) -> list[Any]:
            value = e.take(x, b.add(b.mul(i, n_columns), column))
            distance = b.fsub(value, middle)
            is_other = b.fcmp_unordered("!=", b.fmul(value, value), value)
            return [
                b.fadd(totals[0], b.fmul(distance, distance)),
                b.fadd(totals[1], b.select(b.fcmp_unordered("!=", value, zero), one, zero)),
                b.fadd(totals[2], b.select(is_other, one, zero)),
            ]

        begin = [e.take(out, place) for place in places]
        found = e.loop(e.values["first"], e.values["last"], begin, row)
        for total, place in zip(found, places, strict=True):
            e.put(total, out, place)

    e.each(n_columns, sums)


@in_vectors(_emit_sums, _Lanes)
def sum_table(x: Matrix, center: Features, first: int, last: int, out: Matrix) -> None:
    """Add the rows from `first` to `last` to the sums `out` (3, p) of `columns_ref.table_sums`."""
    for i in range(first, last):
        out[0] += (x[i] - center) ** 2
        out[1] += x[i] != 0
        out[2] += x[i] * x[i] != x[i]


def _emit_store(e: _Lanes) -> None:
    b, four = e.builder, ir.Constant(_I64, 4)
    e.width = 4
    x, center, unit, out = e.data("x", "center", "unit", "out")
    row_size, line = (b.extract_value(e.array(k).shape, 1) for k in ("x", "out"))
    column, slot, n, at = (e.values[name] for name in ("column", "slot", "n", "at"))
    middle, factor = e.take(center, slot), e.take(unit, slot)
    lines = [b.add(b.mul(b.add(slot, ir.Constant(_I64, k)), line), at) for k in range(4)]

    def some(k: Any, _: list[Any]) -> list[Any]:
        i = b.mul(k, four)
        rows = [
            e.take(x, b.add(b.mul(b.add(i, ir.Constant(_I64, m)), row_size), column))
            for m in range(4)
        ]
        rows = [b.fmul(b.fsub(row, middle), factor) for row in rows]
        for begin, values in zip(lines, e.turned(rows), strict=True):
            e.put(values, out, b.add(begin, i))
        return []

    e.loop(_ZERO, b.sdiv(n, four), [], some)


@in_vectors(_emit_store, _Lanes)
def store_four(
    x: Matrix, column: int, center: Features, unit: Features, slot: int, n: int, at: int,
    out: Matrix,
) -> None:  # fmt: skip
    """Four columns of x from `column` on, ``(x - center) unit``, as rows of `out` from `slot` on.

    Of the first n rows of x, a multiple of four, which begin at place `at` of a row of `out`.
    """
    for k in range(4):
        out[slot + k, at : at + n] = (x[:n, column + k] - center[slot + k]) * unit[slot + k]


def _emit_scatter(e: _Lanes) -> None:
    b, four = e.builder, ir.Constant(_I64, 4)
    e.width = 4
    block, place, out = e.data("block", "place", "out")
    line, row_size = (b.extract_value(e.array(k).shape, 1) for k in ("block", "out"))
    slot, at, i = e.values["slot"], e.values["at"], e.values["i"]
    places = [e.element(place, b.add(i, ir.Constant(_I64, m))) for m in range(4)]

    def some(k: Any, _: list[Any]) -> list[Any]:
        begin = b.mul(k, four)
        first = b.add(slot, begin)
        columns = [
            e.take(block, b.add(b.mul(b.add(first, ir.Constant(_I64, m)), line), at))
            for m in range(4)
        ]
        for row, values in zip(places, e.turned(columns), strict=True):
            e.put(values, out, b.add(b.mul(row, row_size), begin))
        return []

    e.loop(_ZERO, b.sdiv(e.values["q"], four), [], some)


@in_vectors(_emit_scatter, _Lanes)
def scatter_four(
    block: Matrix, slot: int, q: int, at: int, place: Index, i: int, out: Matrix
) -> None:
    """Four places of q rows of a block, from `at` on, as rows of `out`.

    The rows of the block from `slot` on become columns, a multiple of four, and place ``at + m``
    becomes row ``place[i + m]``.
    """
    for m in range(4):
        out[place[i + m], :q] = block[slot : slot + q, at + m]
