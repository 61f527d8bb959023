"""The products of a blocked covariate matrix, written as the formulas read.

A *part* of the matrix holds q columns of one kind over n rows that are cut into blocks of
``2**shift`` rows. Sparse parts are stored block by block, column by column: the entries of column s
in block b are ``row[block_ptr[b, s]:block_ptr[b, s + 1]]``, row numbers within the block, two bytes
each. Binary parts (all entries 1) store no values. Dense parts are stored as
``(n_blocks, q, block_rows)``.

`matrix_cpu` gives the same numbers, block by block.
"""

import numpy as np

from riskset._runtime import Runtime
from riskset._types import AnyArray, Features, Index, Matrix, Rows

__all__ = [
    "copy_slots",
    "cross_binary",
    "cross_dense",
    "moments_dense",
    "cross_valued",
    "product_binary",
    "product_dense",
    "product_valued",
    "sparse_layout",
    "taken_layout",
]


def _unblock(block_ptr: Index, row: AnyArray, value: Rows, n_rows: int, shift: int) -> Matrix:
    n_blocks, q = block_ptr.shape[0], block_ptr.shape[1] - 1
    x = np.zeros((n_rows, q))
    for b in range(n_blocks):
        for s in range(q):
            entries = slice(block_ptr[b, s], block_ptr[b, s + 1])
            x[(b << shift) + row[entries].astype(np.int64), s] = value[entries]
    return x


def _stack(blocks: AnyArray, n_rows: int) -> Matrix:
    return np.concatenate([block.T for block in blocks])[:n_rows]


def cross_binary(
    block_ptr: Index, row: AnyArray, slots: Index, r: Rows, shift: int, runtime: Runtime
) -> Features:
    r"""Sums of `r` (n,) over the rows where each of the columns `slots` (m,) of the part is 1.

    .. math:: g_s = \sum_i x_{is} r_i
    """
    return cross_valued(block_ptr, row, np.ones(row.size), slots, r, shift, runtime)


def cross_valued(
    block_ptr: Index,
    row: AnyArray,
    value: Rows,
    slots: Index,
    r: Rows,
    shift: int,
    runtime: Runtime,
    power: int = 1,
) -> Features:
    """As `cross_binary`, with a power of the value of each entry."""
    return r @ _unblock(block_ptr, row, value**power, r.size, shift)[:, slots]


def cross_dense(
    blocks: AnyArray, slots: Index, r: Rows, runtime: Runtime, power: int = 1
) -> Features:
    """As `cross_binary`, for a power of a dense part ``(n_blocks, q, block_rows)``."""
    return r @ _stack(blocks, r.size)[:, slots] ** power


def moments_dense(blocks: AnyArray, slots: Index, r: Rows, runtime: Runtime) -> Matrix:
    """`cross_dense` of the columns and of their squares (2, m)."""
    return np.stack([cross_dense(blocks, slots, r, runtime, power) for power in (1, 2)])


def product_binary(
    block_ptr: Index,
    row: AnyArray,
    slots: Index,
    v: Features,
    shift: int,
    out: Rows,
    runtime: Runtime,
) -> None:
    r"""Add the product of the columns `slots` with a vector `v` (m,) to `out` (n,).

    .. math:: out_i \mathrel{+}= \sum_s x_{is} v_s
    """
    product_valued(block_ptr, row, np.ones(row.size), slots, v, shift, out, runtime)


def product_valued(
    block_ptr: Index,
    row: AnyArray,
    value: Rows,
    slots: Index,
    v: Features,
    shift: int,
    out: Rows,
    runtime: Runtime,
) -> None:
    """As `product_binary`, with the value of each entry."""
    out += _unblock(block_ptr, row, value, out.size, shift)[:, slots] @ v


def product_dense(blocks: AnyArray, slots: Index, v: Features, out: Rows, runtime: Runtime) -> None:
    """As `product_binary`, for a dense part."""
    out += _stack(blocks, out.size)[:, slots] @ v


def sparse_layout(
    indptr: Index,
    indices: AnyArray,
    values: AnyArray,
    columns: Index,
    n_rows: int,
    shift: int,
    runtime: Runtime,
) -> tuple[Index, AnyArray, Rows]:
    """Compressed sparse columns, in any order of rows, to the blocked layout.

    Takes `columns` (q,) in the order of the part, and returns its pointers, row numbers and values;
    without values it is a binary part.
    """
    n_blocks = max(1, (n_rows + (1 << shift) - 1) >> shift)
    block_ptr = np.zeros((n_blocks, columns.size + 1), dtype=np.int64)
    rows, kept = [np.zeros(0, dtype=np.int64)], [np.zeros(0)]
    position = 0
    for b in range(n_blocks):
        block_ptr[b, 0] = position
        for s, j in enumerate(columns):
            entries = np.arange(indptr[j], indptr[j + 1])
            entries = entries[(indices[entries] >> shift) == b]
            rows.append(indices[entries] - (b << shift))
            if values.size:
                kept.append(values[entries])
            position += entries.size
            block_ptr[b, s + 1] = position
    return block_ptr, np.concatenate(rows).astype(np.uint16), np.concatenate(kept)


def copy_slots(
    block_ptr: Index, row: AnyArray, slots: Index, shift: int, new_shift: int, runtime: Runtime
) -> tuple[Index, AnyArray]:
    """Pointers and row numbers of some slots, in blocks of ``2**new_shift`` rows.

    The new blocks are as large as the old ones, or a whole number of them.
    """
    n_old, each = block_ptr.shape[0], 1 << (new_shift - shift)
    pointer, rows = [], [np.zeros(0, dtype=np.int64)]
    position = 0
    for first in range(0, n_old, each):
        pointer.append([position])
        for s in slots:
            for b in range(first, min(first + each, n_old)):
                entries = row[block_ptr[b, s] : block_ptr[b, s + 1]].astype(np.int64)
                rows.append(entries + ((b - first) << shift))
                position += entries.size
            pointer[-1].append(position)
    return np.array(pointer, dtype=np.int64), np.concatenate(rows).astype(np.uint16)


def taken_layout(
    block_ptr: Index,
    row: AnyArray,
    value: Rows,
    shift: int,
    place: Index,
    n_rows: int,
    runtime: Runtime,
) -> tuple[Index, AnyArray, Rows]:
    """The blocked layout of rows that were taken: row i is now ``place[i]``, or left out if -1.

    Entries of a column in a block keep the order that they had.
    """
    n_blocks, q = max(1, (n_rows + (1 << shift) - 1) >> shift), block_ptr.shape[1] - 1
    first = np.zeros((n_blocks, q + 1), dtype=np.int64)
    rows: list[int] = []
    kept: list[float] = []
    for b in range(n_blocks):
        first[b, 0] = len(rows)
        for s in range(q):
            for c, pointer in enumerate(block_ptr):
                for k in range(pointer[s], pointer[s + 1]):
                    i = place[(c << shift) + row[k]]
                    if i >= 0 and i >> shift == b:
                        rows.append(i & ((1 << shift) - 1))
                        kept += [value[k]] if value.size else []
            first[b, s + 1] = len(rows)
    return first, np.array(rows, dtype=np.uint16), np.array(kept, dtype=np.float64)
