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

import inspect
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from riskset._types import AnyArray, Matrix, Rows

__all__ = [
    "LANES",
    "VectorCode",
    "gather_rows",
    "in_vectors",
    "lane_rows",
    "scatter_rows",
]

F = TypeVar("F", bound=Callable[..., None])

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

    def __init__(
        self, context: Any, builder: Any, kinds: dict[str, Any], values: dict[str, Any]
    ) -> None:
        self.context, self.builder, self.kinds, self.values = context, builder, kinds, values

    def is_given(self, name: str) -> bool:
        """Whether an argument is not None."""
        return bool(self.kinds[name] != types.none)

    def array(self, name: str) -> Any:
        array = self.context.make_array(self.kinds[name])
        return array(self.context, self.builder, self.values[name])

    def data(self, *names: str) -> Any:
        """Where the numbers of an array are; a list of such places for several arrays."""
        found = [self.array(name).data for name in names]
        return found if len(names) > 1 else found[0]

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


def in_vectors(
    emit: Callable[[Any], None], code: type[VectorCode] = VectorCode
) -> Callable[[F], F]:
    """Replace a function that returns nothing by the vector code that `emit` writes.

    If compilation is disabled, the function runs as it stands. Its whole numbers have 64 bits.
    """

    def replaced(plain: F) -> F:
        if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
            return plain
        parameters = inspect.signature(plain).parameters

        def typed(context: Any, *kinds: Any) -> Any:
            def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
                named = (
                    dict(zip(parameters, each, strict=True)) for each in (signature.args, args)
                )
                emit(code(context, builder, *named))
                return context.get_dummy_value()

            whole = (types.int64 if isinstance(k, types.Integer) else k for k in kinds)
            return types.void(*whole), generate

        # numba matches arguments with the names of the parameters.
        context = inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        names = inspect.Signature([context, *parameters.values()])
        typed.__signature__, typed.__name__ = names, plain.__name__  # type: ignore[attr-defined]
        return cast(F, intrinsic(typed))

    return replaced


def _emit_gather(e: VectorCode) -> None:
    b = e.builder
    r, out, m, base = e.data("r"), e.data("out"), e.values["m"], e.values["base"]
    row = e.data("row") if e.is_given("row") else None
    value = e.data("value") if e.is_given("value") else None

    def body(k: Any, totals: list[Any]) -> list[Any]:
        i = b.zext(e.element(row, k), _I64) if row is not None else k
        term = e.load(r, b.add(base, i))
        if value is not None:
            term = b.fmul(e.spread(e.element(value, k)), term)
        return [b.fadd(totals[0], term)]

    (total,) = e.loop(e.values["first"], e.values["last"], [e.load(out, m)], body)
    e.store(total, out, m)


def _emit_scatter(e: VectorCode) -> None:
    b = e.builder
    v, out, base = e.data("v"), e.data("out"), e.values["base"]
    row = e.data("row") if e.is_given("row") else None
    value = e.data("value") if e.is_given("value") else None
    x = e.load(v, e.values["m"])

    def body(k: Any, _: list[Any]) -> list[Any]:
        i = b.add(base, b.zext(e.element(row, k), _I64) if row is not None else k)
        term = x if value is None else b.fmul(e.spread(e.element(value, k)), x)
        e.store(b.fadd(e.load(out, i), term), out, i)
        return []

    e.loop(e.values["first"], e.values["last"], [], body)


@in_vectors(_emit_gather)
def gather_rows(
    row: AnyArray | None, value: Rows | None, first: int, last: int, base: int, r: Matrix,
    out: Matrix, m: int,
) -> None:  # fmt: skip
    """``out[m] += sum value[k] r[base + row[k]]`` over k in [first, last).

    Without `row` the rows follow each other, without `value` all values are 1.
    """
    for k in range(first, last):
        term = r[base + (k if row is None else int(row[k]))]
        out[m] += term if value is None else value[k] * term


@in_vectors(_emit_scatter)
def scatter_rows(
    row: AnyArray | None, value: Rows | None, first: int, last: int, base: int, v: Matrix, m: int,
    out: Matrix,
) -> None:  # fmt: skip
    """``out[base + row[k]] += value[k] v[m]`` for k in [first, last); see `gather_rows`."""
    for k in range(first, last):
        i = base + (k if row is None else int(row[k]))
        out[i] += v[m] if value is None else value[k] * v[m]
