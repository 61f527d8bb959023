"""Products with the blocked design for all lanes, as the plain formulas: the specification.

The storage is that of `riskset.kernels.matrix_ref`. Sums over rows come in panels of `panel_blocks`
blocks, (n_panels, m, R), and are combined by `combine_panels`.
"""

import numpy as np

from riskset._types import AnyArray, Index, Matrix, Pointer

__all__ = [
    "combine_panels",
    "cross_binary",
    "cross_dense",
    "cross_valued",
    "list_rows",
    "pick_columns",
    "product_binary",
    "product_dense",
    "product_valued",
]


def cross_binary(
    block_ptr: Pointer,
    row: AnyArray,
    slots: AnyArray,
    r: Matrix,
    n_slots: int,
    n_columns: int,
    shift: int,
    n_blocks: int,
    panel_blocks: int,
    n_lanes: int,
    partial: Matrix,
) -> None:
    """Sums of `r` (n, R) over the rows of each panel where each column is 1.

    To `partial` (n_panels, n_columns, R), for the columns `slots` of the part.
    """
    ones = np.ones(row.size)
    cross_valued(
        block_ptr, row, ones, slots, r, 1, n_slots, n_columns, shift, n_blocks, panel_blocks,
        n_lanes, partial,
    )  # fmt: skip


def cross_valued(
    block_ptr: Pointer,
    row: AnyArray,
    value: AnyArray,
    slots: AnyArray,
    r: Matrix,
    power: int,
    n_slots: int,
    n_columns: int,
    shift: int,
    n_blocks: int,
    panel_blocks: int,
    n_lanes: int,
    partial: Matrix,
) -> None:
    """As `cross_binary`, with the value of each entry to the `power` 1 or 2."""
    partial[:] = 0.0
    for b in range(n_blocks):
        for k, s in enumerate(slots):
            entries = slice(block_ptr[b, s], block_ptr[b, s + 1])
            rows = (b << shift) + row[entries].astype(np.int64)
            partial[b // panel_blocks, k] += value[entries] ** power @ r[rows]


def cross_dense(
    blocks: AnyArray,
    slots: AnyArray,
    r: Matrix,
    power: int,
    n_slots: int,
    n_columns: int,
    block_rows: int,
    n_rows: int,
    n_blocks: int,
    panel_blocks: int,
    n_lanes: int,
    partial: Matrix,
) -> None:
    """As `cross_valued`, for a dense part (n_blocks, n_slots, block_rows)."""
    partial[:] = 0.0
    for b in range(n_blocks):
        rows = slice(b * block_rows, min((b + 1) * block_rows, n_rows))
        x = blocks[b, slots, : rows.stop - rows.start]
        partial[b // panel_blocks] += x**power @ r[rows]


def combine_panels(
    partial: Matrix,
    to: AnyArray,
    n_panels: int,
    n_columns: int,
    width: int,
    n_lanes: int,
    out: Matrix,
) -> None:
    """Sum of the panels; column k goes to place ``to[k]`` of `out` (R, width)."""
    out[:, to] = partial.sum(axis=0).T


def list_rows(
    block_ptr: Pointer,
    row: AnyArray,
    value: AnyArray,
    slots: AnyArray,
    base: Pointer,
    n_slots: int,
    n_columns: int,
    shift: int,
    n_rows: int,
    has_value: int,
    count: AnyArray,
    row_ptr: Pointer,
    column: AnyArray,
    kept: AnyArray,
) -> None:
    """Chosen columns of a sparse part, row by row.

    `base` (n_blocks,) counts the entries of the chosen columns in the blocks before. The results
    are the number of entries of each row, where they begin (n + 1,), the place in `slots` of each,
    in order within a row, and their values if the part has any.
    """
    at, to, entry = _entries(block_ptr, row, slots, shift)
    order = np.lexsort([to, at])
    count[:] = np.bincount(at, minlength=n_rows)
    row_ptr[:] = np.append(0, np.cumsum(count))
    column[:] = to[order]
    if has_value:
        kept[:] = value[entry[order]]


def _entries(
    block_ptr: Pointer, row: AnyArray, slots: AnyArray, shift: int
) -> tuple[Index, Index, Index]:
    """Row, place among the slots and number of each entry of the chosen columns."""
    rows, places, numbers = [np.zeros((3, 0), dtype=np.int64)[k : k + 1].ravel() for k in range(3)]
    for b in range(block_ptr.shape[0]):
        for k, s in enumerate(slots):
            entry = np.arange(block_ptr[b, s], block_ptr[b, s + 1])
            rows = np.append(rows, (b << shift) + row[entry].astype(np.int64))
            places = np.append(places, np.full(entry.size, k))
            numbers = np.append(numbers, entry)
    return rows, places, numbers


def product_binary(
    row_ptr: Pointer, column: AnyArray, v: Matrix, n_rows: int, n_lanes: int, out: Matrix
) -> None:
    """Add the product of listed columns with `v` (m, R) to `out` (n, R)."""
    product_valued(row_ptr, column, np.ones(column.size), v, n_rows, n_lanes, out)


def product_valued(
    row_ptr: Pointer,
    column: AnyArray,
    value: AnyArray,
    v: Matrix,
    n_rows: int,
    n_lanes: int,
    out: Matrix,
) -> None:
    """As `product_binary`, with the value of each entry."""
    for i in range(n_rows):
        entries = slice(row_ptr[i], row_ptr[i + 1])
        out[i] += value[entries] @ v[column[entries]]


def product_dense(
    blocks: AnyArray,
    slots: AnyArray,
    v: Matrix,
    n_slots: int,
    n_columns: int,
    block_rows: int,
    n_rows: int,
    n_lanes: int,
    out: Matrix,
) -> None:
    """As `product_binary`, for a dense part."""
    out += np.concatenate([block[slots].T for block in blocks])[:n_rows] @ v


def pick_columns(
    x: Matrix, chosen: AnyArray, width: int, n_columns: int, n_lanes: int, out: Matrix
) -> None:
    """Some columns of each lane (R, width), as the products read them (m, R)."""
    out[:] = x[:, chosen].T
