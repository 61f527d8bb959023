"""Life tables in passes that read and write in sequence. The specification is `life_table_ref`.

Rows that weigh the same need not be known any more once they are counted: the time and the code of
a row are one word, and the words are sorted, without the number of the row.

Sums over times are made in chunks whose number hangs on the table alone, each from where the one
before it ends. Within a chunk, blocks stay in the cache: what each time adds is vector code, the
sums follow one time after the other.
"""

import numpy as np
from numpy.typing import NDArray

from riskset._runtime import Runtime
from riskset._types import AnyArray, Index, Rows
from riskset.kernels._jit import kernel
from riskset.kernels.grouping_cpu import tally
from riskset.kernels.life_table_ref import SurvivalSteps
from riskset.kernels.sorting_cpu import sorted_words, stable_order

__all__ = ["SurvivalSteps", "count_ends", "sum_later", "survival_steps"]

CHUNK = 8192
MAX_CHUNKS = 32
BLOCK = 512
WORD = 64

_Words = NDArray[np.uint64]


def _n_chunks(size: int) -> int:
    return max(1, min(MAX_CHUNKS, size // CHUNK))


@kernel
def _range(first: int, last: int, n_chunks: int, bits: _Words, low: _Words, high: _Words) -> None:
    """Chunk by chunk: the bits of the smallest positive and of the largest time."""
    n, sign = bits.size, np.uint64(1) << np.uint64(63)
    for c in range(first, last):
        least, most = sign, np.uint64(0)
        for i in range(n * c // n_chunks, n * (c + 1) // n_chunks):
            one = bits[i] & ~sign
            least = min(least, one if one else sign)
            most = max(most, one)
        low[c], high[c] = least, most


@kernel
def _pack(
    first: int, last: int, n_chunks: int, bits: _Words, code: AnyArray, base: np.uint64,
    width: int, word: _Words,
) -> None:  # fmt: skip
    """Words that rise with the time, then the code: 0 for time 0, others from `base` on."""
    n, keep = bits.size, ~(np.uint64(1) << np.uint64(63))
    for i in range(n * first // n_chunks, n * last // n_chunks):
        one = bits[i] & keep
        place = one - base if one else np.uint64(0)
        word[i] = (place << np.uint64(width)) | np.uint64(code[i])


@kernel
def _count(first: int, last: int, n_chunks: int, word: _Words, width: int, count: Index) -> None:
    """Number of times that begin in each chunk of sorted words."""
    n, shift = word.size, np.uint64(width)
    for c in range(first, last):
        found = np.int64(0)
        for i in range(max(1, n * c // n_chunks), n * (c + 1) // n_chunks):
            found += np.int64(word[i] >> shift != word[i - 1] >> shift)
        count[c] = found + (1 if c == 0 else 0)


@kernel
def _fill(
    first: int, last: int, n_chunks: int, word: _Words, width: int, base: np.uint64,
    start: Index, distinct: _Words, sums: NDArray[np.float64],
) -> None:  # fmt: skip
    """Times that begin in a chunk, with the words of the last that lie beyond it."""
    n, shift = word.size, np.uint64(width)
    code = (np.uint64(1) << shift) - np.uint64(1)
    for c in range(first, last):
        i, stop = n * c // n_chunks, n * (c + 1) // n_chunks
        while 0 < i < stop and word[i] >> shift == word[i - 1] >> shift:
            i += 1
        at = start[c] - 1
        while i < n:
            place = word[i] >> shift
            if at < start[c] or place != word[i - 1] >> shift:
                if i >= stop:
                    break
                at += 1
                distinct[at] = place + base if place else np.uint64(0)
            begin = i
            while i < n and word[i] == word[begin]:
                i += 1
            sums[np.int64(word[begin] & code), at] = i - begin


def count_ends(
    time: Rows, code: AnyArray, n_codes: int, runtime: Runtime
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    n_chunks, width = _n_chunks(time.size), (n_codes - 1).bit_length()
    bits = np.ascontiguousarray(time).view(np.uint64)
    low, high = np.empty((2, n_chunks), np.uint64)
    runtime.run(_range, n_chunks, n_chunks, bits, low, high)
    base = np.uint64(int(low.min()) - 1)
    if (int(high.max()) - int(base)).bit_length() + width > WORD:
        ones = np.ones(time.size)
        return tally(stable_order(time, runtime), time, code, ones, n_codes, runtime)
    word = np.empty(time.size, np.uint64)
    runtime.run(_pack, n_chunks, n_chunks, bits, code, base, width, word)
    word = sorted_words(word, runtime)
    count = np.empty(n_chunks, np.int64)
    runtime.run(_count, n_chunks, n_chunks, word, width, count)
    m = int(count.sum())
    distinct, sums = np.empty(m, np.uint64), np.zeros((n_codes, m))
    start = np.cumsum(count) - count
    runtime.run(_fill, n_chunks, n_chunks, word, width, base, start, distinct, sums)
    return distinct.view(np.float64), sums


@kernel
def _totals(first: int, last: int, n_chunks: int, sums: NDArray[np.float64], total: Rows) -> None:
    m = sums.shape[1]
    for c in range(first, last):
        total[c] = _sum_back(sums, m * c // n_chunks, m * (c + 1) // n_chunks, 0.0, total[:0])


@kernel
def _later(
    first: int, last: int, n_chunks: int, sums: NDArray[np.float64], beyond: Rows, later: Rows
) -> None:
    m = sums.shape[1]
    for c in range(first, last):
        _sum_back(sums, m * c // n_chunks, m * (c + 1) // n_chunks, beyond[c], later)


@kernel
def _sum_back(sums: NDArray[np.float64], begin: int, end: int, total: float, later: Rows) -> float:
    """The total and what stands in columns from `begin` on; `later` is filled unless empty."""
    for i in range(end - 1, begin - 1, -1):
        if later.size:
            later[i] = total
        column = 0.0
        for k in range(sums.shape[0]):
            column += sums[k, i]
        total += column
    return total


def sum_later(sums: NDArray[np.float64], runtime: Runtime) -> Rows:
    n_chunks = _n_chunks(sums.shape[1])
    total, later = np.empty(n_chunks), np.empty(sums.shape[1])
    runtime.run(_totals, n_chunks, n_chunks, sums, total)
    beyond = np.append(np.cumsum(total[:0:-1])[::-1], 0.0)
    runtime.run(_later, n_chunks, n_chunks, sums, beyond, later)
    return later


@kernel
def _block(
    events: Rows, censored: Rows, staying: Rows, begin: int, end: int,
    part: NDArray[np.float64],
) -> None:  # fmt: skip
    """Numbers at risk, and what the times of a block add: (Y - d)/Y, Greenwood's, d/Y, d/Y^2."""
    at_risk, factor, term, hazard, square = part[0], part[1], part[2], part[3], part[4]
    for j in range(end - begin):
        d = events[begin + j]
        left = staying[begin + j] + censored[begin + j]
        y = left + d
        at_risk[j] = y
        factor[j] = left / y
        hazard[j] = d / y
        square[j] = hazard[j] / y
        term[j] = hazard[j] / left if left > 0.0 else 0.0


@kernel
def _errors(part: NDArray[np.float64], n: int) -> None:
    """Standard errors in place of the sums of variances."""
    survival, variance, square = part[1], part[2], part[4]
    for j in range(n):
        s = survival[j]
        variance[j] = s * np.sqrt(variance[j]) if s > 0.0 else np.nan
        square[j] = np.sqrt(square[j])


@kernel
def _steps_of_chunks(
    first: int, last: int, n_chunks: int, events: Rows, censored: Rows, staying: Rows,
    start: NDArray[np.float64], out: NDArray[np.float64],
) -> None:  # fmt: skip
    """Sums from `start` (n_chunks, 4) on, to `out` (5, m); if that is empty, to `start`."""
    m = events.size
    part = np.empty((5, BLOCK))
    for c in range(first, last):
        survival, variance, hazard, square = start[c]
        begin, stop = m * c // n_chunks, m * (c + 1) // n_chunks
        while begin < stop:
            end = min(begin + BLOCK, stop)
            _block(events, censored, staying, begin, end, part)
            for j in range(end - begin):
                survival *= part[1, j]
                variance += part[2, j]
                hazard += part[3, j]
                square += part[4, j]
                part[1, j], part[2, j], part[3, j], part[4, j] = survival, variance, hazard, square
            if out.size:
                _errors(part, end - begin)
                for k in range(5):
                    out[k, begin:end] = part[k, : end - begin]
            begin = end
        if not out.size:
            start[c, 0], start[c, 1], start[c, 2], start[c, 3] = survival, variance, hazard, square


def survival_steps(events: Rows, censored: Rows, staying: Rows, runtime: Runtime) -> SurvivalSteps:
    n_chunks = _n_chunks(events.size)
    start, out = np.zeros((n_chunks, 4)), np.empty((5, events.size))
    start[:, 0] = 1.0
    args = (n_chunks, events, censored, staying, start)
    if n_chunks > 1:
        runtime.run(_steps_of_chunks, n_chunks, *args, out[:, :0])
        start[1:, 0] = np.cumprod(start[:-1, 0])
        start[1:, 1:] = np.cumsum(start[:-1, 1:], axis=0)
        start[0] = 1.0, 0.0, 0.0, 0.0
    runtime.run(_steps_of_chunks, n_chunks, *args, out)
    return SurvivalSteps(*out)
