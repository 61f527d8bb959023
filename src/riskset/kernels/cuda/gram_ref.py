"""Sums of squares of a sample of rows, as the plain formulas: the specification.

As `riskset.kernels.gram_ref`: slots of the sample are bits of words, one row of words a column.
"""

import numpy as np
from numpy.typing import NDArray

from riskset._runtime import Runtime
from riskset._types import AnyArray, Matrix, Pointer
from riskset.kernels import gram_ref

__all__ = ["bin_counts", "binary_gram", "dense_gram", "fill_bits", "mixed_gram"]

_ALONE = Runtime(1)


def fill_bits(
    block_ptr: Pointer,
    row: AnyArray,
    slots: AnyArray,
    is_drawn: AnyArray,
    start: AnyArray,
    place: AnyArray,
    n_slots: int,
    n_columns: int,
    shift: int,
    n_blocks: int,
    n_words: int,
    bits: NDArray[np.uint64],
) -> None:
    """Set bit ``place[c]`` of each column where the row sampled there has a one, no others.

    ``place[start[i]:start[i + 1]]`` are the slots of row i.
    """
    bits[:] = 0
    gram_ref.fill_bits(block_ptr, row, shift, slots, is_drawn, start, place, bits, _ALONE)


def binary_gram(bits: NDArray[np.uint64], n_columns: int, n_words: int, out: Matrix) -> None:
    """Number of slots in which both columns have a one, for all pairs of columns."""
    out[:] = gram_ref.binary_gram(bits, _ALONE)


def bin_counts(
    bits: NDArray[np.uint64],
    bin_word: AnyArray,
    n_columns: int,
    n_words: int,
    n_bins: int,
    out: Matrix,
) -> None:
    """Number of ones of each column in each bin of words (n_bins, n_columns)."""
    out[:] = gram_ref.bin_counts(bits, bin_word)


def dense_gram(a: Matrix, b: Matrix, n_rows: int, n_left: int, n_right: int, out: Matrix) -> None:
    """``a' b`` of tables (n, n_left) and (n, n_right)."""
    out[:] = a.T @ b


def mixed_gram(
    bits: NDArray[np.uint64], z: Matrix, n_columns: int, n_words: int, n_dense: int, out: Matrix
) -> None:
    """Sums of the columns of z (64 n_words, n_dense) over the slots of each binary column."""
    ones = np.unpackbits(bits.view(np.uint8), axis=1, bitorder="little")
    out[:] = ones.astype(np.float64) @ z
