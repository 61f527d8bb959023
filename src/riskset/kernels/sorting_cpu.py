"""The order of many numbers by a radix sort, in time O(n). The specification is `sorting_ref`.

Numbers are sorted by whole numbers of 32 bits first, each in one word with its row: the bits of the
number, if those in which numbers differ are so few (as of days), else its place between the
smallest and the largest number. Neighbours with equal places are put in order afterwards. Where
those are many, as with one number far from all others, all bits are sorted, in two rounds.

The order is the only stable one, so it depends neither on threads nor on the way taken.
"""

import numpy as np
from numpy.typing import NDArray

from riskset._runtime import Runtime
from riskset._types import AnyArray, Index, Rows
from riskset.kernels._jit import kernel

__all__ = ["distinct_in_order", "sorted_words", "stable_order"]

FEW_ROWS = 10_000
"""NumPy's merge sort is as fast for so few."""
MAX_ROWS = 1 << 32
HALF = 32
"""Bits of a word that hold the row; the others are sorted."""
DIGIT = 9
"""Bits of a digit, at most: a row goes to one of so many places that stay in the cache."""
MAX_RUN = 64
"""Most numbers with one place that are put in order one by one."""
N_CHUNKS = 16
FIRST_DIGIT = 10
"""Bits by which words are shared out among parts, each of which NumPy then sorts in the cache."""
N_PARTS = 64
"""Shares of those parts, for threads that take the next when they have done one."""

_Words = NDArray[np.uint64]


@kernel
def _whole(bits: np.uint64) -> np.uint64:
    """A whole number that rises with the float of these bits; 0 and -0 have the same."""
    sign = np.uint64(1) << np.uint64(63)
    magnitude = bits & ~sign
    return sign - magnitude if bits & sign else sign + magnitude


@kernel
def _scan(
    first: int, last: int, n_chunks: int, bits: _Words, low: _Words, high: _Words, differ: _Words
) -> None:
    """Chunk by chunk: the smallest and the largest whole number, and bits in which any differ."""
    n, start = bits.size, _whole(bits[0])
    for c in range(first, last):
        least = most = start
        found = np.uint64(0)
        for i in range(n * c // n_chunks, n * (c + 1) // n_chunks):
            whole = _whole(bits[i])
            least, most = min(least, whole), max(most, whole)
            found |= whole ^ start
        low[c], high[c], differ[c] = least, most, found


@kernel
def _pack_bits(
    first: int,
    last: int,
    n_chunks: int,
    bits: _Words,
    order: Index,
    low: np.uint64,
    shift: int,
    word: _Words,
) -> None:
    """Words of 32 bits from `shift` on and of the row; rows in `order`, or in theirs if empty."""
    n, keep = bits.size, (np.uint64(1) << np.uint64(HALF)) - np.uint64(1)
    for i in range(n * first // n_chunks, n * last // n_chunks):
        row = order[i] if order.size else i
        part = ((_whole(bits[row]) - low) >> np.uint64(shift)) & keep
        word[i] = (part << np.uint64(HALF)) | np.uint64(row)


@kernel
def _pack_places(
    first: int, last: int, n_chunks: int, values: Rows, least: float, scale: float, word: _Words
) -> None:
    """Words of the place, which never falls as the number rises, and of the row."""
    n = values.size
    for i in range(n * first // n_chunks, n * last // n_chunks):
        place = np.uint64(np.int64((values[i] - least) * scale))
        word[i] = (place << np.uint64(HALF)) | np.uint64(i)


@kernel
def _count(
    first: int, last: int, n_chunks: int, word: _Words, shift: int, count: NDArray[np.int64]
) -> None:
    n, mask = word.size, np.uint64(count.shape[1] - 1)
    for c in range(first, last):
        own = count[c]
        own[:] = 0
        for i in range(n * c // n_chunks, n * (c + 1) // n_chunks):
            own[np.int64((word[i] >> np.uint64(shift)) & mask)] += 1


@kernel
def _move(
    first: int,
    last: int,
    n_chunks: int,
    word: _Words,
    shift: int,
    place: NDArray[np.int64],
    moved: _Words,
) -> None:
    n, mask = word.size, np.uint64(place.shape[1] - 1)
    for c in range(first, last):
        own = place[c]
        for i in range(n * c // n_chunks, n * (c + 1) // n_chunks):
            digit = np.int64((word[i] >> np.uint64(shift)) & mask)
            moved[own[digit]] = word[i]
            own[digit] += 1


@kernel
def _rows(first: int, last: int, n_chunks: int, word: _Words, order: Index) -> None:
    n, keep = word.size, (np.uint64(1) << np.uint64(HALF)) - np.uint64(1)
    for i in range(n * first // n_chunks, n * last // n_chunks):
        order[i] = np.int64(word[i] & keep)


@kernel
def _finish(
    first: int,
    last: int,
    n_chunks: int,
    values: Rows,
    word: _Words,
    order: Index,
    done: NDArray[np.bool_],
) -> None:
    """Rows, with those of equal places put in order; a chunk is done if they are few everywhere."""
    n, half = word.size, np.uint64(HALF)
    keep = (np.uint64(1) << half) - np.uint64(1)
    for c in range(first, last):
        # A run belongs to the chunk in which it begins.
        begin, stop = n * c // n_chunks, n * (c + 1) // n_chunks
        while 0 < begin < stop and word[begin] >> half == word[begin - 1] >> half:
            begin += 1
        done[c] = True
        while begin < stop and done[c]:
            order[begin] = np.int64(word[begin] & keep)
            i = begin + 1
            while i < n and word[i] >> half == word[begin] >> half:
                row, at = np.int64(word[i] & keep), i
                while at > begin and values[order[at - 1]] > values[row]:
                    order[at] = order[at - 1]
                    at -= 1
                order[at] = row
                i += 1
                if i - begin > MAX_RUN:
                    done[c] = False
                    break
            begin = i


def _sorted(word: _Words, width: int, runtime: Runtime) -> _Words:
    """Words by their upper halves, of which `width` bits are used, digit by digit."""
    n_digits = -(-width // DIGIT)
    other = np.empty_like(word)
    for k in range(n_digits):
        start, stop = width * k // n_digits, width * (k + 1) // n_digits
        _move_by_digit(word, HALF + start, stop - start, other, runtime)
        word, other = other, word
    return word


def distinct_in_order(values: Rows, runtime: Runtime) -> tuple[Index, Rows, Index]:
    order = stable_order(values, runtime)
    ordered = values[order]
    begins = np.ones(values.size, dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=begins[1:])
    return order, ordered[begins], np.cumsum(begins) - 1


def sorted_words(word: _Words, runtime: Runtime) -> _Words:
    if word.size < FEW_ROWS:
        return np.sort(word)
    n, width = word.size, int(word.max()).bit_length()
    shift = max(0, width - FIRST_DIGIT)
    moved = np.empty_like(word)
    ends = _move_by_digit(word, shift, FIRST_DIGIT, moved, runtime)
    if shift == 0:
        return moved

    def sort(part: int) -> None:
        first, last = np.searchsorted(ends, [n * part // N_PARTS, n * (part + 1) // N_PARTS])
        for digit in range(first, last):
            moved[ends[digit] : ends[digit + 1]].sort()

    runtime.map(sort, range(N_PARTS))
    return moved


def _move_by_digit(word: _Words, shift: int, width: int, moved: _Words, runtime: Runtime) -> Index:
    """Fill `moved` with words by their `width` bits from `shift` on; where each digit begins."""
    count = np.empty((N_CHUNKS, 1 << width), np.int64)
    runtime.run(_count, N_CHUNKS, N_CHUNKS, word, shift, count)
    flat = count.T.ravel()
    place = np.ascontiguousarray((np.cumsum(flat) - flat).reshape(-1, N_CHUNKS).T)
    ends = np.append(place[0], word.size)
    runtime.run(_move, N_CHUNKS, N_CHUNKS, word, shift, place, moved)
    return ends


def _order_by_bits(
    bits: AnyArray, low: np.uint64, shift: int, width: int, runtime: Runtime
) -> Index:
    order, word = np.empty(0, np.int64), np.empty(bits.size, np.uint64)
    for start in range(0, max(width, 1), HALF):
        runtime.run(_pack_bits, N_CHUNKS, N_CHUNKS, bits, order, low, shift + start, word)
        ready = _sorted(word, min(HALF, width - start), runtime)
        order = np.empty(bits.size, np.int64)
        runtime.run(_rows, N_CHUNKS, N_CHUNKS, ready, order)
    return order


def stable_order(values: Rows, runtime: Runtime) -> Index:
    n = values.size
    if not FEW_ROWS <= n < MAX_ROWS:
        return np.argsort(values, kind="stable").astype(np.int64)
    values = np.ascontiguousarray(values)
    bits = values.view(np.uint64)
    low, high, differ = np.empty((3, N_CHUNKS), np.uint64)
    runtime.run(_scan, N_CHUNKS, N_CHUNKS, bits, low, high, differ)
    found = int(np.bitwise_or.reduce(differ))
    shift = max(0, (found & -found).bit_length() - 1)
    width = (int(high.max()) - int(low.min())).bit_length() - shift
    least, most = float(values.min()), float(values.max())
    if width > HALF and 0 < most - least < np.inf:
        scale = float(2**HALF - 1) / (most - least)
        if np.isfinite(scale):
            word, order = np.empty(n, np.uint64), np.empty(n, np.int64)
            runtime.run(_pack_places, N_CHUNKS, N_CHUNKS, values, least, scale, word)
            done = np.empty(N_CHUNKS, np.bool_)
            word = _sorted(word, HALF, runtime)
            runtime.run(_finish, N_CHUNKS, N_CHUNKS, values, word, order, done)
            if done.all():
                return order
    return _order_by_bits(bits, low.min(), shift, width, runtime)
