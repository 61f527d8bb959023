"""What a processor can do at most: loops that do one thing, over and over.

Each is called for chunks [first, last), one for each thread. A table of numbers or of rows of eight
belongs to one chunk, the next one's beginning `stride` further on, or with a stride of 0 to all.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from riskset._types import AnyArray, Matrix, Rows
from riskset.kernels._jit import kernel
from riskset.kernels._vector import gather_rows, scatter_rows

__all__ = ["copy", "elementary", "gather", "gather_eight", "popcount", "read",
           "repeated", "triad", "update",
           "update_eight"]  # fmt: skip

RUN = 8
"""Rows that are added to one sum before the next one's turn: several sums are under way at once."""


@kernel
def read(first: int, last: int, n_chunks: int, x: NDArray[np.int64], out: AnyArray) -> None:
    """Sum of whole numbers, which a compiler makes vector instructions of."""
    for c in range(first, last):
        own = x[x.size * c // n_chunks : x.size * (c + 1) // n_chunks]
        total = 0
        for i in range(own.size):
            total += own[i]
        out[c] = total


@kernel
def copy(first: int, last: int, n_chunks: int, x: Rows, out: Rows) -> None:
    """``out = x``."""
    a, b = x.size * first // n_chunks, x.size * last // n_chunks
    out[a:b] = x[a:b]


@kernel
def triad(first: int, last: int, n_chunks: int, x: Rows, y: Rows, out: Rows) -> None:
    """``out = x + 3 y``."""
    a, b = x.size * first // n_chunks, x.size * last // n_chunks
    own, other, to = x[a:b], y[a:b], out[a:b]
    for i in range(own.size):
        to[i] = own[i] + 3.0 * other[i]


@kernel
def gather(first: int, last: int, index: AnyArray, table: Rows, stride: int, out: Matrix) -> None:
    """Sum of the numbers at the places of `index` (chunks, a multiple of 8)."""
    for c in range(first, last):
        at, own = index[c], table[c * stride :]
        s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
        for k in range(0, at.size, 8):
            s0 += own[at[k]]
            s1 += own[at[k + 1]]
            s2 += own[at[k + 2]]
            s3 += own[at[k + 3]]
            s4 += own[at[k + 4]]
            s5 += own[at[k + 5]]
            s6 += own[at[k + 6]]
            s7 += own[at[k + 7]]
        out[c, 0] = ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7))


@kernel
def update(first: int, last: int, index: AnyArray, table: Rows, stride: int, v: Matrix) -> None:
    """Add v[c, 0] to the numbers at the places of `index` (chunks, a multiple of 4)."""
    for c in range(first, last):
        at, own, x = index[c], table[c * stride :], v[c, 0]
        for k in range(0, at.size, 4):
            own[at[k]] += x
            own[at[k + 1]] += x
            own[at[k + 2]] += x
            own[at[k + 3]] += x


@kernel
def gather_eight(
    first: int, last: int, index: AnyArray, table: Matrix, stride: int, out: Matrix
) -> None:
    """`gather` of rows of eight; `out` (chunks x 8, 8) has eight sums for each chunk."""
    for c in range(first, last):
        at = index[c]
        for k in range(0, at.size, RUN):
            m = c * RUN + (k // RUN) % RUN
            gather_rows(at, None, k, min(k + RUN, at.size), c * stride, table, out, m)


@kernel
def update_eight(
    first: int, last: int, index: AnyArray, table: Matrix, stride: int, v: Matrix
) -> None:
    """Add v[c] to the rows of `table` at the places of `index`."""
    for c in range(first, last):
        scatter_rows(index[c], None, 0, index[c].size, c * stride, v, c, table)


@kernel
def popcount(
    first: int, last: int, words: NDArray[np.uint64], mask: np.uint64, turns: int, out: AnyArray
) -> None:
    """Ones that words (chunks, n) have in common with a mask, which another turn has another of."""
    for c in range(first, last):
        own = words[c]
        ones = np.uint64(0)
        for t in range(turns):
            other = mask ^ np.uint64(t)
            for k in range(own.size):
                x = own[k] & other
                x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
                x = (x & np.uint64(0x3333333333333333)) + (
                    (x >> np.uint64(2)) & np.uint64(0x3333333333333333)
                )
                x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
                ones += (x * np.uint64(0x0101010101010101)) >> np.uint64(56)
        out[c] = ones


def elementary(first: int, last: int, function: np.ufunc, x: Matrix, out: Matrix) -> None:
    """A function of the rows of x (chunks, n), by NumPy, whose code is of the best there is."""
    for c in range(first, last):
        function(x[c], out[c])


def repeated(first: int, last: int, often: int, loop: Callable[..., None], *args: object) -> None:
    """The same again in the same thread: it takes a while until each thread has a core."""
    for _ in range(often):
        loop(first, last, *args)
