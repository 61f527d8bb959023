"""Sampling of risk sets and sums of squares over a sample, fast. See `gram_ref`."""

import numpy as np
from numpy.typing import NDArray

from riskset._runtime import Runtime
from riskset._types import AnyArray, Index, Matrix, Pointer, Rows
from riskset.kernels._jit import kernel
from riskset.kernels._vector import LANES
from riskset.kernels._vector_bits import AT_ONCE, common_ones

__all__ = [
    "bin_counts",
    "binary_gram",
    "draw_groups",
    "draw_mates",
    "draw_rows",
    "fill_bits",
    "fill_sparse",
]

TILE = 16
WORDS = 256
GOLDEN = 0.6180339887498949
SILVER = 0.41421356237309503
MATE_TRIES = 20


@kernel
def draw_rows(expected: Rows, n_samples: int) -> Index:
    n = expected.size
    total = 0.0
    for i in range(n):
        total += expected[i]
    row = np.empty(n_samples, np.int64)
    border = expected[0]
    i = 0
    for k in range(n_samples):
        while i < n - 1 and border <= (k + 0.5) * (total / n_samples):
            i += 1
            border += expected[i]
        row[k] = i
    return row


@kernel
def draw_groups(own: Index, end: Index, cumulative: NDArray[np.float64]) -> Index:
    group = np.empty(own.size, np.int64)
    for k in range(own.size):
        multiple = (k + 1) * GOLDEN
        part = multiple - np.floor(multiple)
        low, high = own[k], max(end[k], own[k] + 1)
        target = cumulative[low] + part * (cumulative[high] - cumulative[low])
        # The last group whose hazard begins at or before the target.
        while high - low > 1:
            middle = (low + high) >> 1
            if cumulative[middle] <= target:
                low = middle
            else:
                high = middle
        group[k] = low
    return group


@kernel
def draw_mates(
    r: Rows,
    group_ptr: Pointer,
    starts: NDArray[np.bool_],
    group: Index,
    own: Index,
    end: Index,
) -> Index:
    n_groups = starts.size
    first_row = np.empty(n_groups, np.int64)
    border = np.empty(r.size)
    begin = 0
    total = 0.0
    for g in range(n_groups):
        if starts[g]:
            begin, total = group_ptr[g], 0.0
        first_row[g] = begin
        for i in range(group_ptr[g], group_ptr[g + 1]):
            total += r[i]
            border[i] = total
    mate = np.empty(group.size, np.int64)
    for k in range(group.size):
        g = group[k]
        mate[k] = -1
        for attempt in range(MATE_TRIES):
            multiple = (k + 1) * SILVER + attempt * GOLDEN
            low, high = first_row[g], group_ptr[g + 1] - 1
            target = (multiple - np.floor(multiple)) * border[high]
            while low < high:
                middle = (low + high) >> 1
                if border[middle] <= target:
                    low = middle + 1
                else:
                    high = middle
            if own[low] <= g and g < end[low]:
                mate[k] = low
                break
    return mate


@kernel
def _fill_bits(
    first: int,
    last: int,
    n_chunks: int,
    block_ptr: Index,
    row: AnyArray,
    shift: int,
    columns: Index,
    copies: AnyArray,
    start: Pointer,
    slot: Index,
    bits: NDArray[np.uint64],
) -> None:
    q_all = columns.size
    one = np.uint64(1)
    for q in range(q_all * first // n_chunks, q_all * last // n_chunks):
        s = columns[q]
        word = bits[q]
        for b in range(block_ptr.shape[0]):
            base = b << shift
            sampled = copies[base:]
            for k in range(block_ptr[b, s], block_ptr[b, s + 1]):
                if sampled[row[k]]:
                    i = base + row[k]
                    for m in range(start[i], start[i + 1]):
                        at = slot[m]
                        word[at >> 6] |= one << np.uint64(at & 63)


def fill_bits(
    block_ptr: Index,
    row: AnyArray,
    shift: int,
    columns: Index,
    copies: AnyArray,
    start: Pointer,
    slot: Index,
    bits: NDArray[np.uint64],
    runtime: Runtime,
) -> None:
    n_chunks = max(1, min(32, columns.size))
    runtime.run(
        _fill_bits, n_chunks, n_chunks, block_ptr, row, shift, columns, copies, start, slot, bits
    )


@kernel
def fill_sparse(
    block_ptr: Index,
    row: AnyArray,
    value: Rows,
    shift: int,
    columns: Index,
    start: Pointer,
    slot: Index,
    out: Matrix,
) -> None:
    for b in range(block_ptr.shape[0]):
        for q in range(columns.size):
            s = columns[q]
            for k in range(block_ptr[b, s], block_ptr[b, s + 1]):
                i = (b << shift) + row[k]
                for m in range(start[i], start[i + 1]):
                    out[slot[m], q] = value[k] if value.size > 0 else 1.0


@kernel
def _popcount(x: np.uint64) -> np.uint64:
    """Number of ones; the compiler knows this idiom and makes it one instruction."""
    x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (x * np.uint64(0x0101010101010101)) >> np.uint64(56)


@kernel
def bin_counts(bits: NDArray[np.uint64], bin_word: Pointer) -> Matrix:
    out = np.zeros((bin_word.size - 1, bits.shape[0]))
    for q in range(bits.shape[0]):
        for b in range(bin_word.size - 1):
            ones = np.uint64(0)
            # Of a slice: an index might be negative as far as the compiler knows, and it would
            # gather.
            own = bits[q, bin_word[b] : bin_word[b + 1]]
            for x in range(own.size):
                ones += _popcount(own[x])
            out[b, q] = ones
    return out


@kernel
def _binary_gram(
    first: int,
    last: int,
    n_chunks: int,
    bits: NDArray[np.uint64],
    out: Matrix,
) -> None:
    q, n_words = bits.shape
    n_tiles = (q + TILE - 1) // TILE
    unit = 0
    ones = np.empty(AT_ONCE, np.int64)
    # Tiles of 16 x 16 columns, 256 words at a time: both sides stay in the first-level cache.
    for tile in range(n_tiles):
        for other in range(tile + 1):
            turn = unit % n_chunks
            unit += 1
            if turn < first or turn >= last:
                continue
            stop = min(q, other * TILE + TILE)
            for w0 in range(0, n_words, WORDS):
                w1 = min(n_words, w0 + WORDS)
                n = w1 - w0
                for a in range(tile * TILE, min(q, tile * TILE + TILE)):
                    left = bits[a, w0:w1]
                    c = other * TILE
                    # Four columns at once: a word of the left side is loaded once for all.
                    while c + AT_ONCE <= stop:
                        common_ones(bits, n_words, a, c, w0, n // LANES, ones)
                        for x in range(n - n % LANES, n):
                            for j in range(AT_ONCE):
                                ones[j] += np.int64(_popcount(left[x] & bits[c + j, w0 + x]))
                        for j in range(AT_ONCE):
                            out[a, c + j] += np.float64(ones[j])
                        c += AT_ONCE
                    while c < stop:
                        right = bits[c, w0:w1]
                        own = np.uint64(0)
                        for x in range(n):
                            own += _popcount(left[x] & right[x])
                        out[a, c] += np.float64(own)
                        c += 1


@kernel
def _mirror(out: Matrix) -> None:
    """Above the diagonal as below it."""
    for a in range(out.shape[0]):
        for c in range(a):
            out[c, a] = out[a, c]


def binary_gram(bits: NDArray[np.uint64], runtime: Runtime) -> Matrix:
    out = np.zeros((bits.shape[0], bits.shape[0]))
    runtime.run(_binary_gram, 32, 32, bits, out)
    _mirror(out)
    return out
