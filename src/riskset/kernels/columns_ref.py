"""One look at each column: its kind, the size of its values, the rows it keeps, where they go."""

import numpy as np

from riskset._runtime import Runtime
from riskset._types import AnyArray, Features, Index, Matrix, Rows

__all__ = [
    "HAS_ZERO",
    "NOT_FINITE",
    "ONES",
    "VALUES",
    "describe",
    "divide",
    "fill_dense",
    "place_dense",
    "size_about",
    "store_dense",
    "store_table",
    "table_sums",
    "to_csc",
]

ONES, VALUES, HAS_ZERO, NOT_FINITE = 0, 1, 2, 3
"""Kinds of a column, by what its stored entries are; the largest one that applies."""


def describe(indptr: Index, values: Rows, runtime: Runtime) -> tuple[AnyArray, Features]:
    """Kind of each column (p,) int8, and its sum of squares (p,).

    Entries of column j are ``values[indptr[j]:indptr[j + 1]]``.
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
    """Divide the values of each slot of a sparse part by its scale (q,), in place."""
    for b in range(block_ptr.shape[0]):
        value[block_ptr[b, 0] : block_ptr[b, -1]] /= np.repeat(scale, np.diff(block_ptr[b]))


def to_csc(
    block_ptr: Index, row: AnyArray, value: Rows, shift: int, place: Index
) -> tuple[Index, Index, Rows]:
    """Compressed sparse columns of some rows of a sparse part, in the order of the part.

    `place` (n,) is the new number of each row, negative for rows that are left out. Returns
    pointers (q + 1,), row numbers and values, which are empty for a binary part.
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


def size_about(x: Rows, center: float) -> tuple[float, float]:
    """Largest distance of a column (n,) from `center`, and the mean square of its share of that."""
    deviation = np.abs(x - center)
    peak = float(deviation.max(initial=0.0))
    return peak, float(np.mean((deviation / peak) ** 2)) if peak > 0 else 0.0


def store_dense(x: Rows, center: float, scale: float, slot: int, blocks: AnyArray) -> None:
    """Put ``(x - center) / scale`` into a slot of ``blocks`` (n_blocks, q, block_rows)."""
    block_rows = blocks.shape[2]
    for i in range(x.size):
        blocks[i // block_rows, slot, i % block_rows] = (x[i] - center) / scale


def table_sums(x: Matrix, center: Features, runtime: Runtime) -> Matrix:
    """Of each column of x (n, p), sums over the rows (3, p).

    Squares of the distances from `center` (p,), and how many values are other than 0, and other
    than 0 and 1.
    """
    return np.stack([
        ((x - center) ** 2).sum(axis=0), (x != 0).sum(axis=0), ((x != 0) & (x != 1)).sum(axis=0)
    ])  # fmt: skip


def store_table(
    x: Matrix,
    columns: Index,
    center: Features,
    scale: Features,
    blocks: AnyArray,
    runtime: Runtime,
) -> None:
    """`store_dense` of some columns of x (n, p), the first slots; center and scale are theirs."""
    for s, j in enumerate(columns):
        store_dense(x[:, j], center[s], scale[s], s, blocks)


def fill_dense(blocks: AnyArray, slots: Index, out: Matrix) -> None:
    """Some slots of ``blocks`` (n_blocks, q, block_rows) as the columns of `out` (n, m)."""
    block_rows = blocks.shape[2]
    for i in range(out.shape[0]):
        out[i] = blocks[i // block_rows, slots, i % block_rows]


def place_dense(
    blocks: AnyArray, slots: Index, place: Index, out: Matrix, runtime: Runtime
) -> None:
    """`fill_dense` with row i as row ``place[i]`` of `out`; negative for rows that are left out."""
    for i in np.flatnonzero(place >= 0):
        out[place[i]] = blocks[i // blocks.shape[2], slots, i % blocks.shape[2]]
