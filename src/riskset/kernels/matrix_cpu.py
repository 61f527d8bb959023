"""Products of a blocked covariate matrix on the CPU. The specification is `matrix_ref`.

A block of rows of `r` fits the first-level cache, so that an entry costs its two-byte index and one
load. Blocks are cut into at most 32 chunks, whatever the number of threads, and the chunks' sums
are added in order: same input, same bits.
"""

import numpy as np

from riskset._runtime import Runtime
from riskset._types import AnyArray, Features, Index, Matrix, Rows
from riskset.kernels._jit import kernel
from riskset.kernels._vector import LANES
from riskset.kernels._vector_dots import dot, moments

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

MAX_CHUNKS = 32
COLUMNS_AT_ONCE = 8
"""Of which rows are taken: more, and the places written to would not stay in the cache."""


def _n_chunks(n_blocks: int) -> int:
    return max(1, min(MAX_CHUNKS, n_blocks))


@kernel
def _cross_binary(
    first: int,
    last: int,
    n_chunks: int,
    block_ptr: Index,
    row: AnyArray,
    slots: Index,
    r: Rows,
    shift: int,
    out: Matrix,
) -> None:
    n_blocks = block_ptr.shape[0]
    for c in range(first, last):
        sums = out[c]
        for b in range(n_blocks * c // n_chunks, n_blocks * (c + 1) // n_chunks):
            rb = r[b << shift :]
            for m in range(slots.size):
                s = slots[m]
                k, end = block_ptr[b, s], block_ptr[b, s + 1]
                # Four sums keep four loads in flight; they are added in a fixed order.
                s0 = s1 = s2 = s3 = 0.0
                while k + 4 <= end:
                    s0 += rb[row[k]]
                    s1 += rb[row[k + 1]]
                    s2 += rb[row[k + 2]]
                    s3 += rb[row[k + 3]]
                    k += 4
                while k < end:
                    s0 += rb[row[k]]
                    k += 1
                sums[m] += (s0 + s1) + (s2 + s3)


@kernel
def _cross_valued(
    first: int,
    last: int,
    n_chunks: int,
    block_ptr: Index,
    row: AnyArray,
    value: Rows,
    slots: Index,
    r: Rows,
    shift: int,
    out: Matrix,
) -> None:
    n_blocks = block_ptr.shape[0]
    for c in range(first, last):
        sums = out[c]
        for b in range(n_blocks * c // n_chunks, n_blocks * (c + 1) // n_chunks):
            rb = r[b << shift :]
            for m in range(slots.size):
                s = slots[m]
                k, end = block_ptr[b, s], block_ptr[b, s + 1]
                s0 = s1 = 0.0
                while k + 2 <= end:
                    s0 += value[k] * rb[row[k]]
                    s1 += value[k + 1] * rb[row[k + 1]]
                    k += 2
                if k < end:
                    s0 += value[k] * rb[row[k]]
                sums[m] += s0 + s1


@kernel
def _cross_dense(
    first: int,
    last: int,
    n_chunks: int,
    blocks: AnyArray,
    slots: Index,
    r: Rows,
    power: int,
    out: Matrix,
) -> None:
    n_blocks, _, block_rows = blocks.shape
    powers, lanes = np.empty(0 if power == 1 else block_rows), np.empty(2 * LANES)
    for c in range(first, last):
        sums = out[c]
        for b in range(n_blocks * c // n_chunks, n_blocks * (c + 1) // n_chunks):
            rb = r[b * block_rows : (b + 1) * block_rows]
            n = rb.size
            for m in range(slots.size):
                x = blocks[b, slots[m]]
                if power == 2:
                    for k in range(n):
                        powers[k] = x[k] * x[k]
                    x = powers
                elif power != 1:
                    for k in range(n):
                        powers[k] = x[k] ** power
                    x = powers
                sums[m] += dot(x, rb, lanes)


@kernel
def _moments_dense(
    first: int,
    last: int,
    n_chunks: int,
    blocks: AnyArray,
    slots: Index,
    r: Rows,
    out: AnyArray,
) -> None:
    n_blocks, _, block_rows = blocks.shape
    lanes = np.empty(2 * LANES)
    for c in range(first, last):
        for b in range(n_blocks * c // n_chunks, n_blocks * (c + 1) // n_chunks):
            rb = r[b * block_rows : (b + 1) * block_rows]
            for m in range(slots.size):
                x = blocks[b, slots[m]]
                sum_, square = moments(x, rb, lanes)
                out[c, 0, m] += sum_
                out[c, 1, m] += square


@kernel
def _product_binary(
    first: int,
    last: int,
    n_chunks: int,
    block_ptr: Index,
    row: AnyArray,
    slots: Index,
    v: Features,
    shift: int,
    out: Rows,
) -> None:
    n_blocks = block_ptr.shape[0]
    for b in range(n_blocks * first // n_chunks, n_blocks * last // n_chunks):
        ob = out[b << shift :]
        for m in range(slots.size):
            s, x = slots[m], v[m]
            k, end = block_ptr[b, s], block_ptr[b, s + 1]
            while k + 4 <= end:
                ob[row[k]] += x
                ob[row[k + 1]] += x
                ob[row[k + 2]] += x
                ob[row[k + 3]] += x
                k += 4
            while k < end:
                ob[row[k]] += x
                k += 1


@kernel
def _product_valued(
    first: int,
    last: int,
    n_chunks: int,
    block_ptr: Index,
    row: AnyArray,
    value: Rows,
    slots: Index,
    v: Features,
    shift: int,
    out: Rows,
) -> None:
    n_blocks = block_ptr.shape[0]
    for b in range(n_blocks * first // n_chunks, n_blocks * last // n_chunks):
        ob = out[b << shift :]
        for m in range(slots.size):
            s, x = slots[m], v[m]
            for k in range(block_ptr[b, s], block_ptr[b, s + 1]):
                ob[row[k]] += x * value[k]


@kernel
def _product_dense(
    first: int,
    last: int,
    n_chunks: int,
    blocks: AnyArray,
    slots: Index,
    v: Features,
    out: Rows,
) -> None:
    n_blocks, _, block_rows = blocks.shape
    for b in range(n_blocks * first // n_chunks, n_blocks * last // n_chunks):
        ob = out[b * block_rows : (b + 1) * block_rows]
        m = 0
        while m + 4 <= slots.size:
            x0, x1 = blocks[b, slots[m]], blocks[b, slots[m + 1]]
            x2, x3 = blocks[b, slots[m + 2]], blocks[b, slots[m + 3]]
            a0, a1, a2, a3 = v[m], v[m + 1], v[m + 2], v[m + 3]
            for k in range(ob.size):
                ob[k] += (a0 * x0[k] + a1 * x1[k]) + (a2 * x2[k] + a3 * x3[k])
            m += 4
        while m < slots.size:
            x, a = blocks[b, slots[m]], v[m]
            for k in range(ob.size):
                ob[k] += a * x[k]
            m += 1


@kernel
def _count(
    first: int,
    last: int,
    n_chunks: int,
    indptr: Index,
    indices: AnyArray,
    columns: Index,
    shift: int,
    counts: AnyArray,
) -> None:
    q = columns.size
    for s in range(q * first // n_chunks, q * last // n_chunks):
        j = columns[s]
        for k in range(indptr[j], indptr[j + 1]):
            counts[indices[k] >> shift, s] += 1


@kernel
def _scatter(
    first: int,
    last: int,
    n_chunks: int,
    indptr: Index,
    indices: AnyArray,
    values: AnyArray,
    columns: Index,
    shift: int,
    block_ptr: Index,
    row: AnyArray,
    value: Rows,
) -> None:
    n_blocks = block_ptr.shape[0]
    q = columns.size
    mask = (1 << shift) - 1
    at = np.empty(n_blocks, np.int64)
    for s in range(q * first // n_chunks, q * last // n_chunks):
        j = columns[s]
        for b in range(n_blocks):
            at[b] = block_ptr[b, s]
        for k in range(indptr[j], indptr[j + 1]):
            i = indices[k]
            b = i >> shift
            row[at[b]] = i & mask
            if values.size > 0:
                value[at[b]] = values[k]
            at[b] += 1


@kernel
def _copy_slots(
    first: int,
    last: int,
    each: int,
    block_ptr: Index,
    row: AnyArray,
    slots: Index,
    shift: int,
    new_ptr: Index,
    out: AnyArray,
) -> None:
    for a in range(first, last):
        begin, end = a * each, min((a + 1) * each, block_ptr.shape[0])
        for m in range(slots.size):
            s, at = slots[m], new_ptr[a, m]
            for b in range(begin, end):
                for k in range(block_ptr[b, s], block_ptr[b, s + 1]):
                    out[at] = row[k] + ((b - begin) << shift)
                    at += 1


def cross_binary(
    block_ptr: Index, row: AnyArray, slots: Index, r: Rows, shift: int, runtime: Runtime
) -> Features:
    n_chunks = _n_chunks(block_ptr.shape[0])
    out = np.zeros((n_chunks, slots.size))
    runtime.run(_cross_binary, n_chunks, n_chunks, block_ptr, row, slots, r, shift, out)
    sums: Features = out.sum(axis=0)
    return sums


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
    n_chunks = _n_chunks(block_ptr.shape[0])
    out = np.zeros((n_chunks, slots.size))
    args = (n_chunks, block_ptr, row, value, slots, r, shift, out)
    if power == 1:
        runtime.run(_cross_valued, n_chunks, *args)
    else:
        runtime.run(_cross_powers, n_chunks, *args, power)
    sums: Features = out.sum(axis=0)
    return sums


def _cross_powers(
    first: int,
    last: int,
    n_chunks: int,
    block_ptr: Index,
    row: AnyArray,
    value: Rows,
    slots: Index,
    r: Rows,
    shift: int,
    out: Matrix,
    power: int,
) -> None:
    """`_cross_valued` of a power of the values, of which one block's are copied at a time."""
    n_blocks = block_ptr.shape[0]
    for c in range(first, last):
        for b in range(n_blocks * c // n_chunks, n_blocks * (c + 1) // n_chunks):
            pointer, rb = block_ptr[b : b + 1], r[b << shift :]
            inside = slice(pointer[0, 0], pointer[0, -1])
            z, at = value[inside] ** power, row[inside]
            sums = out[c : c + 1]
            _cross_valued(0, 1, 1, pointer - pointer[0, 0], at, z, slots, rb, shift, sums)


def cross_dense(
    blocks: AnyArray, slots: Index, r: Rows, runtime: Runtime, power: int = 1
) -> Features:
    n_chunks = _n_chunks(blocks.shape[0])
    out = np.zeros((n_chunks, slots.size))
    runtime.run(_cross_dense, n_chunks, n_chunks, blocks, slots, r, power, out)
    sums: Features = out.sum(axis=0)
    return sums


def moments_dense(blocks: AnyArray, slots: Index, r: Rows, runtime: Runtime) -> Matrix:
    n_chunks = _n_chunks(blocks.shape[0])
    out = np.zeros((n_chunks, 2, slots.size))
    runtime.run(_moments_dense, n_chunks, n_chunks, blocks, slots, r, out)
    sums: Matrix = out.sum(axis=0)
    return sums


def product_binary(
    block_ptr: Index,
    row: AnyArray,
    slots: Index,
    v: Features,
    shift: int,
    out: Rows,
    runtime: Runtime,
) -> None:
    n_chunks = _n_chunks(block_ptr.shape[0])
    runtime.run(_product_binary, n_chunks, n_chunks, block_ptr, row, slots, v, shift, out)


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
    n_chunks = _n_chunks(block_ptr.shape[0])
    runtime.run(_product_valued, n_chunks, n_chunks, block_ptr, row, value, slots, v, shift, out)


def product_dense(blocks: AnyArray, slots: Index, v: Features, out: Rows, runtime: Runtime) -> None:
    n_chunks = _n_chunks(blocks.shape[0])
    runtime.run(_product_dense, n_chunks, n_chunks, blocks, slots, v, out)


def sparse_layout(
    indptr: Index,
    indices: AnyArray,
    values: AnyArray,
    columns: Index,
    n_rows: int,
    shift: int,
    runtime: Runtime,
) -> tuple[Index, AnyArray, Rows]:
    n_blocks = max(1, (n_rows + (1 << shift) - 1) >> shift)
    q = columns.size
    n_chunks = max(1, min(MAX_CHUNKS, q))
    counts = np.zeros((n_blocks, q), dtype=np.int64)
    runtime.run(_count, n_chunks, n_chunks, indptr, indices, columns, shift, counts)
    block_ptr = _pointers(counts)
    row = np.empty(int(block_ptr[-1, -1]), dtype=np.uint16)
    value = np.empty(row.size if values.size else 0)
    runtime.run(
        _scatter, n_chunks, n_chunks, indptr, indices, values, columns, shift, block_ptr, row, value
    )
    return block_ptr, row, value


def _pointers(counts: Index) -> Index:
    """Borders (n_blocks, q + 1) of the entries of each column in each block, from their numbers.

    Blocks follow each other, so the last border of one is the first of the next.
    """
    n_blocks, q = counts.shape
    borders = np.append(0, np.cumsum(counts))
    return np.asarray(borders[q * np.arange(n_blocks)[:, None] + np.arange(q + 1)])


def copy_slots(
    block_ptr: Index, row: AnyArray, slots: Index, shift: int, new_shift: int, runtime: Runtime
) -> tuple[Index, AnyArray]:
    each = 1 << (new_shift - shift)
    counts = np.zeros((-(-block_ptr.shape[0] // each), slots.size), dtype=np.int64)
    for b, own in enumerate(block_ptr):
        counts[b // each] += own[slots + 1] - own[slots]
    new_ptr = _pointers(counts)
    out = np.empty(int(new_ptr[-1, -1]), dtype=np.uint16)
    args = (each, block_ptr, row, slots, shift, new_ptr, out)
    runtime.run(_copy_slots, counts.shape[0], *args)
    return new_ptr, out


@kernel
def _count_taken(
    first: int,
    last: int,
    n_chunks: int,
    block_ptr: Index,
    row: AnyArray,
    shift: int,
    place: AnyArray,
    counts: Index,
) -> None:
    q = counts.shape[1]
    begin, stop = q * first // n_chunks, q * last // n_chunks
    for b in range(block_ptr.shape[0]):
        moved = place[b << shift :]
        for s in range(begin, stop):
            for k in range(block_ptr[b, s], block_ptr[b, s + 1]):
                i = moved[row[k]]
                if i >= 0:
                    counts[i >> shift, s] += 1


@kernel
def _take(
    first: int,
    last: int,
    n_chunks: int,
    block_ptr: Index,
    row: AnyArray,
    value: Rows,
    shift: int,
    place: AnyArray,
    taken_ptr: Index,
    taken_row: AnyArray,
    taken_value: Rows,
) -> None:
    q = block_ptr.shape[1] - 1
    begin, stop = q * first // n_chunks, q * last // n_chunks
    mask = (1 << shift) - 1
    # The next place of each column of the chunk in each block: few enough for the cache.
    at = taken_ptr[:, begin:stop].copy()
    for b in range(block_ptr.shape[0]):
        moved = place[b << shift :]
        for s in range(begin, stop):
            for k in range(block_ptr[b, s], block_ptr[b, s + 1]):
                i = moved[row[k]]
                if i >= 0:
                    to = at[i >> shift, s - begin]
                    at[i >> shift, s - begin] = to + 1
                    taken_row[to] = i & mask
                    if value.size > 0:
                        taken_value[to] = value[k]


def taken_layout(
    block_ptr: Index,
    row: AnyArray,
    value: Rows,
    shift: int,
    place: Index,
    n_rows: int,
    runtime: Runtime,
) -> tuple[Index, AnyArray, Rows]:
    n_blocks, q = max(1, (n_rows + (1 << shift) - 1) >> shift), block_ptr.shape[1] - 1
    n_chunks = max(1, min(MAX_CHUNKS, -(-q // COLUMNS_AT_ONCE)))
    counts = np.zeros((n_blocks, q), dtype=np.int64)
    runtime.run(_count_taken, n_chunks, n_chunks, block_ptr, row, shift, place, counts)
    taken_ptr = _pointers(counts)
    taken_row = np.empty(int(taken_ptr[-1, -1]), dtype=np.uint16)
    taken_value = np.empty(taken_row.size if value.size else 0)
    runtime.run(
        _take, n_chunks, n_chunks, block_ptr, row, value, shift, place, taken_ptr, taken_row,
        taken_value,
    )  # fmt: skip
    return taken_ptr, taken_row, taken_value
