"""One look at each sparse column: its kind, the size of its values, the rows it keeps."""

import numpy as np

from riskset._runtime import Runtime
from riskset._types import AnyArray, Features, Index, Rows

__all__ = ["HAS_ZERO", "NOT_FINITE", "ONES", "VALUES", "describe", "divide", "to_csc"]

ONES, VALUES, HAS_ZERO, NOT_FINITE = 0, 1, 2, 3
"""Kinds of a column, by what its stored entries are; the largest one that applies."""


def describe(indptr: Index, values: Rows, runtime: Runtime) -> tuple[AnyArray, Features]:
    """Kind of each column and its sum of squares.

    Parameters
    ----------
    indptr : (p + 1,) int64
        Entries of column j: ``values[indptr[j]:indptr[j + 1]]``.
    values : (n_entries,) float64

    Returns
    -------
    kind : (p,) int8
        `ONES` for nothing but ones (or no entries), `NOT_FINITE` for any NaN or infinity,
        `HAS_ZERO` for any stored zero, `VALUES` otherwise.
    squares : (p,) float64
    """
    p = indptr.size - 1
    kind, squares = np.zeros(p, dtype=np.int8), np.zeros(p)
    for j in range(p):
        x = values[indptr[j] : indptr[j + 1]]
        squares[j] = (x**2).sum()
        if not np.isfinite(x).all():
            kind[j] = NOT_FINITE
        elif (x == 0).any():
            kind[j] = HAS_ZERO
        elif (x != 1).any():
            kind[j] = VALUES
    return kind, squares


def divide(block_ptr: Index, value: Rows, scale: Features) -> None:
    """Divide the values of each slot of a sparse part by its scale, in place.

    Parameters
    ----------
    block_ptr : (n_blocks, q + 1) int64
        See `matrix_ref`.
    value : (n_entries,) float64
        Divided in place.
    scale : (q,) float64
    """
    for b in range(block_ptr.shape[0]):
        value[block_ptr[b, 0] : block_ptr[b, -1]] /= np.repeat(scale, np.diff(block_ptr[b]))


def to_csc(
    block_ptr: Index, row: AnyArray, value: Rows, shift: int, place: Index
) -> tuple[Index, Index, Rows]:
    """Compressed sparse columns of some rows of a sparse part.

    Parameters
    ----------
    block_ptr, row, value, shift
        The part, as in `matrix_ref`; no values for a binary one.
    place : (n,) int64
        New number of each row, negative for rows left out.

    Returns
    -------
    indptr : (q + 1,) int64
    indices : (n_kept,) int64
        In the order of the part.
    values : (n_kept,) float64, or (0,)
    """
    n_blocks, q = block_ptr.shape[0], block_ptr.shape[1] - 1
    indptr = np.zeros(q + 1, dtype=np.int64)
    indices, kept = [np.zeros(0, dtype=np.int64)], [np.zeros(0)]
    for s in range(q):
        for b in range(n_blocks):
            entries = np.arange(block_ptr[b, s], block_ptr[b, s + 1])
            new = place[(b << shift) + row[entries].astype(np.int64)]
            indices.append(new[new >= 0])
            if value.size:
                kept.append(value[entries[new >= 0]])
        indptr[s + 1] = sum(part.size for part in indices)
    return indptr, np.concatenate(indices), np.concatenate(kept)
