"""One look at each column, fast. The specification is `columns_ref`."""

import numpy as np

from riskset._runtime import Runtime
from riskset._types import AnyArray, Features, Index, Matrix, Rows
from riskset.kernels._jit import kernel
from riskset.kernels._vector_columns import scatter_four, store_four, sum_table
from riskset.kernels.columns_ref import HAS_ZERO, NOT_FINITE, ONES, VALUES

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

TABLE_ROWS = 64


@kernel
def _describe(
    first: int,
    last: int,
    n_chunks: int,
    indptr: Index,
    values: Rows,
    kind: AnyArray,
    squares: Features,
) -> None:
    p = kind.size
    for j in range(p * first // n_chunks, p * last // n_chunks):
        found = ONES
        total = 0.0
        for k in range(indptr[j], indptr[j + 1]):
            x = values[k]
            total += x * x
            if x != 1.0:
                found = max(found, HAS_ZERO if x == 0.0 else VALUES)
                if not np.isfinite(x):
                    found = NOT_FINITE
        kind[j] = found
        squares[j] = total


def describe(indptr: Index, values: Rows, runtime: Runtime) -> tuple[AnyArray, Features]:
    p = indptr.size - 1
    kind, squares = np.zeros(p, dtype=np.int8), np.zeros(p)
    n_chunks = max(1, min(32, p))
    runtime.run(_describe, n_chunks, n_chunks, indptr, values, kind, squares)
    return kind, squares


@kernel
def divide(block_ptr: Index, value: Rows, scale: Features) -> None:
    for b in range(block_ptr.shape[0]):
        for s in range(scale.size):
            for k in range(block_ptr[b, s], block_ptr[b, s + 1]):
                value[k] /= scale[s]


@kernel
def to_csc(
    block_ptr: Index, row: AnyArray, value: Rows, shift: int, place: Index
) -> tuple[Index, Index, Rows]:
    n_blocks, q = block_ptr.shape[0], block_ptr.shape[1] - 1
    indptr = np.zeros(q + 1, np.int64)
    for b in range(n_blocks):
        for s in range(q):
            for k in range(block_ptr[b, s], block_ptr[b, s + 1]):
                if place[(b << shift) + row[k]] >= 0:
                    indptr[s + 1] += 1
    for s in range(q):
        indptr[s + 1] += indptr[s]
    indices = np.empty(indptr[q], np.int64)
    kept = np.empty(indptr[q] if value.size else 0, np.float64)
    at = indptr[:-1].copy()
    for b in range(n_blocks):
        for s in range(q):
            for k in range(block_ptr[b, s], block_ptr[b, s + 1]):
                i = place[(b << shift) + row[k]]
                if i >= 0:
                    indices[at[s]] = i
                    if value.size:
                        kept[at[s]] = value[k]
                    at[s] += 1
    return indptr, indices, kept


@kernel
def size_about(x: Rows, center: float) -> tuple[float, float]:
    peak = 0.0
    for i in range(x.size):
        peak = max(peak, abs(x[i] - center))
    if peak == 0.0:
        return 0.0, 0.0
    s0 = s1 = s2 = s3 = 0.0
    i = 0
    while i + 4 <= x.size:
        a, b = (x[i] - center) / peak, (x[i + 1] - center) / peak
        c, d = (x[i + 2] - center) / peak, (x[i + 3] - center) / peak
        s0 += a * a
        s1 += b * b
        s2 += c * c
        s3 += d * d
        i += 4
    while i < x.size:
        a = (x[i] - center) / peak
        s0 += a * a
        i += 1
    return peak, ((s0 + s1) + (s2 + s3)) / x.size


@kernel
def store_dense(x: Rows, center: float, scale: float, slot: int, blocks: AnyArray) -> None:
    block_rows = blocks.shape[2]
    unit = 1.0 / scale  # exact, and so is the product with it
    for b in range(blocks.shape[0]):
        out, part = blocks[b, slot], x[b * block_rows : (b + 1) * block_rows]
        for i in range(part.size):
            out[i] = (part[i] - center) * unit


@kernel
def _table_sums(
    first: int, last: int, n_chunks: int, x: Matrix, center: Features, out: AnyArray
) -> None:
    n = x.shape[0]
    for c in range(first, last):
        sum_table(x, center, n * c // n_chunks, n * (c + 1) // n_chunks, out[c])


def table_sums(x: Matrix, center: Features, runtime: Runtime) -> Matrix:
    n_chunks = max(1, min(32, x.shape[0] // 4096))
    out = np.zeros((n_chunks, 3, x.shape[1]))
    runtime.run(_table_sums, n_chunks, n_chunks, x, center, out)
    sums: Matrix = out.sum(axis=0)
    return sums


@kernel
def _store_table(
    first: int,
    last: int,
    x: Matrix,
    columns: Index,
    center: Features,
    scale: Features,
    blocks: AnyArray,
) -> None:
    q, block_rows = columns.size, blocks.shape[2]
    unit = 1.0 / scale
    for b in range(first, last):
        rows = x[b * block_rows : (b + 1) * block_rows]
        # So few rows at a time that they stay in the cache until all columns were taken from them.
        for a in range(0, rows.shape[0], TABLE_ROWS):
            part = rows[a : a + TABLE_ROWS]
            n, s = part.shape[0], 0
            while s < q:
                some, begin = 1, 0
                if s + 4 <= q and columns[s + 3] == columns[s] + 3:
                    some, begin = 4, n - n % 4
                    store_four(part, columns[s], center, unit, s, begin, a, blocks[b])
                for m in range(s, s + some):
                    out, j, c, u = blocks[b, m], columns[m], center[m], unit[m]
                    for i in range(begin, n):
                        out[a + i] = (part[i, j] - c) * u
                s += some


def store_table(
    x: Matrix,
    columns: Index,
    center: Features,
    scale: Features,
    blocks: AnyArray,
    runtime: Runtime,
) -> None:
    runtime.run(_store_table, blocks.shape[0], x, columns, center, scale, blocks)


@kernel
def fill_dense(blocks: AnyArray, slots: Index, out: Matrix) -> None:
    block_rows = blocks.shape[2]
    for b in range(blocks.shape[0]):
        rows = out[b * block_rows : (b + 1) * block_rows]
        n, q = rows.shape
        # Four columns at a time: a line of the cache that is written to holds eight numbers.
        for m in range(0, q - 3, 4):
            x0, x1 = blocks[b, slots[m]], blocks[b, slots[m + 1]]
            x2, x3 = blocks[b, slots[m + 2]], blocks[b, slots[m + 3]]
            for i in range(n):
                rows[i, m] = x0[i]
                rows[i, m + 1] = x1[i]
                rows[i, m + 2] = x2[i]
                rows[i, m + 3] = x3[i]
        for m in range(q - q % 4, q):
            x = blocks[b, slots[m]]
            for i in range(n):
                rows[i, m] = x[i]


@kernel
def _place_dense(
    first: int, last: int, blocks: AnyArray, slots: Index, place: Index, out: Matrix
) -> None:
    block_rows, q = blocks.shape[2], slots.size
    is_run = q > 0 and slots[q - 1] - slots[0] == q - 1
    for m in range(1, q):
        is_run = is_run and slots[m] > slots[m - 1]
    for b in range(first, last):
        block, base = blocks[b], b * block_rows
        n = min(block_rows, place.size - base)
        k = 0
        while k < n:
            i = base + k
            # Four numbers, for the least of a slice takes a third of a second to compile.
            has_four = is_run and k + 4 <= n and place[i] >= 0 and place[i + 1] >= 0
            if has_four and place[i + 2] >= 0 and place[i + 3] >= 0:
                scatter_four(block, slots[0], q, k, place, i, out)
                for j in range(k, k + 4):
                    for m in range(q - q % 4, q):
                        out[place[base + j], m] = block[slots[m], j]
                k += 4
                continue
            if place[i] >= 0:
                for m in range(q):
                    out[place[i], m] = block[slots[m], k]
            k += 1


def place_dense(
    blocks: AnyArray, slots: Index, place: Index, out: Matrix, runtime: Runtime
) -> None:
    runtime.run(_place_dense, blocks.shape[0], blocks, slots, place, out)
