"""Exponentials and logarithms of many numbers, in vector code (see `_vector`)."""

from typing import Any

import numpy as np

from riskset._types import Matrix
from riskset.kernels._vector import VectorCode, in_vectors
from riskset.kernels._vector_sums import _exp, _log

__all__ = ["exponentials", "logarithms"]


def _emit(function: Any) -> Any:
    def emit(e: VectorCode) -> None:
        x, out = e.data("x", "out")

        def row(k: Any, totals: list[Any]) -> list[Any]:
            e.store(function(e.builder, e.load(x, k)), out, k)
            return totals

        e.loop(e.values["first"], e.values["last"], [], row)

    return emit


@in_vectors(_emit(_exp))
def exponentials(x: Matrix, first: int, last: int, out: Matrix) -> None:
    """exp(x) of rows of x (m, 8) between -700 and 700, which may be `out`."""
    out[first:last] = np.exp(x[first:last])


@in_vectors(_emit(_log))
def logarithms(x: Matrix, first: int, last: int, out: Matrix) -> None:
    """log(x) of rows of x (m, 8), normal positive numbers; may be `out`."""
    out[first:last] = np.log(x[first:last])
