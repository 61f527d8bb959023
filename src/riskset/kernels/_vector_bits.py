"""Ones that columns of bits have in common, in vector code (see `_vector`).

Eight words at a time: a compiler that is left the choice takes four on Intel's processors, as it
does not know that these loops pay for the wider registers.
"""

from typing import Any

from llvmlite import ir
from numpy.typing import NDArray

from riskset._types import AnyArray, Index
from riskset.kernels._vector import LANES, VectorCode, in_vectors

__all__ = ["AT_ONCE", "common_ones"]

AT_ONCE = 4
"""Columns that one is compared with, whose words are then loaded once for all."""

_I64 = ir.IntType(64)
_WORDS = ir.VectorType(_I64, LANES)


def _declared(e: VectorCode, name: str, result: Any) -> Any:
    module = e.builder.module
    if name not in module.globals:
        ir.Function(module, ir.FunctionType(result, [_WORDS]), name)
    return module.globals[name]


def _emit(e: VectorCode) -> None:
    b, bits, out = e.builder, e.data("bits"), e.data("out")
    count = _declared(e, "llvm.ctpop.v8i64", _WORDS)
    summed = _declared(e, "llvm.vector.reduce.add.v8i64", _I64)
    n_words, begin = e.values["n_words"], e.values["begin"]

    def start(column: Any) -> Any:
        return b.gep(bits, [b.add(b.mul(column, n_words), begin)])

    def load(data: Any, k: Any) -> Any:
        place = b.gep(data, [b.mul(k, ir.Constant(_I64, LANES))])
        return b.load(b.bitcast(place, _WORDS.as_pointer()), align=8)

    left = start(e.values["column"])
    others = [start(b.add(e.values["others"], ir.Constant(_I64, j))) for j in range(AT_ONCE)]

    def words(k: Any, totals: list[Any]) -> list[Any]:
        own = load(left, k)
        return [
            b.add(total, b.call(count, [b.and_(own, load(other, k))]))
            for total, other in zip(totals, others, strict=True)
        ]

    none = ir.Constant(_WORDS, [0] * LANES)
    found = e.loop(ir.Constant(_I64, 0), e.values["n_rows"], [none] * AT_ONCE, words)
    for j, total in enumerate(found):
        place = b.gep(out, [ir.Constant(_I64, j)])
        b.store(b.call(summed, [total]), place)


@in_vectors(_emit)
def common_ones(
    bits: AnyArray, n_words: int, column: int, others: int, begin: int, n_rows: int, out: Index
) -> None:
    """Ones of `column` in each of the `AT_ONCE` columns from `others` on.

    Columns are the rows of `bits`, of `n_words` words; compared are rows of eight words, `n_rows`
    of them from the word `begin` on.
    """
    some = slice(begin, begin + LANES * n_rows)
    for j in range(AT_ONCE):
        both: NDArray[Any] = bits[column, some] & bits[others + j, some]
        out[j] = sum(int(word).bit_count() for word in both)
