"""The fast twin of `concordance_ref`: O(n log n) with trees of sums that stay in the cache.

Both kernels ask the same of rows that stand by strata and keys: the weight of the rows with a
smaller (or larger) key and a higher (lower) rank. Rows take their turn by rank, each asks for the
weight of those before it that have such a key, and adds its own. One tree over all keys would be
far larger than the cache. So a tree over blocks of keys answers for whole blocks, while the rows
are moved to the lists of their blocks; then the rows of each block take their turn, in a small
tree. The turn is by chunks of rows: what lies before a chunk is known from sums over chunks.

Nothing else is needed for ties or strata: among equal ranks, rows take their turn so that no row
comes after one that it must not count, and so do strata.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from riskset._runtime import Runtime
from riskset._types import Index, Matrix, Pointer, Rows
from riskset.kernels._jit import kernel
from riskset.kernels._vector import LANES
from riskset.kernels._vector_tree import add_from
from riskset.kernels.sorting_cpu import stable_order

__all__ = ["count_pairs", "sums_by_rank"]

BITS = 3
CHILD = LANES - 1
BLOCK_BITS = 12
"""Keys of a block: its tree takes 37 KiB."""
N_CHUNKS = 16

_Flags = NDArray[np.bool_]


@kernel
def _levels(n: int) -> Index:
    """First node of each level of a tree over n keys, eight keys in a node of the first."""
    start = np.zeros(1, np.int64)
    while n > 1 or start.size == 1:
        n = (n + CHILD) >> BITS
        start = np.append(start, start[-1:] + n)
    return start


@kernel
def _put(tree: Matrix, start: Index, k: int, weight: float) -> None:
    # Each number of a node is the sum of the children up to its own, so that the sum over all
    # keys below one takes one number of each level, and a node is one line of the cache.
    for level in range(start.size - 1):
        add_from(tree, start[level] + (k >> BITS), k & CHILD, weight)
        k >>= BITS


@kernel
def _below(tree: Matrix, start: Index, k: int) -> float:
    total = 0.0
    for level in range(start.size - 1):
        child = k & CHILD
        k >>= BITS
        if child:
            total += tree[start[level] + k, child - 1]
    return total


@kernel
def _sum_blocks(
    first: int, last: int, key: Index, weight: Rows, back: bool, count: Index, sums: Matrix
) -> None:
    """Rows of each chunk of turns in each block of keys, and their weight."""
    n, n_chunks = key.size, count.shape[0]
    for c in range(first, last):
        count[c, :] = 0
        sums[c, :] = 0.0
        for t in range(n * c // n_chunks, n * (c + 1) // n_chunks):
            at = n - 1 - t if back else t
            block = (key[at] if back else n - 1 - key[at]) >> BLOCK_BITS
            count[c, block] += 1
            sums[c, block] += weight[at]


@kernel
def _ask_blocks(
    first: int, last: int, turn: Index, key: Index, weight: Rows, asks: _Flags, back: bool,
    before: Matrix, place: Index, moved: Index, added: Rows, found: Rows,
) -> None:  # fmt: skip
    """Rows in the lists of their blocks, with the weight in earlier blocks when it is their turn.

    `before` (n_chunks, n_blocks) is what lies before each chunk of turns, `place` where the list of
    a block goes on. A row is moved with its weight, its key within the block and whether it asks.
    """
    n, (n_chunks, n_blocks) = key.size, before.shape
    start, mask = _levels(n_blocks), (1 << BLOCK_BITS) - 1
    for c in range(first, last):
        tree = np.zeros((start[-1], LANES))
        for block in range(n_blocks):
            _put(tree, start, block, before[c, block])
        own = place[c]
        for t in range(n * c // n_chunks, n * (c + 1) // n_chunks):
            at = n - 1 - t if back else t
            k = key[at] if back else n - 1 - key[at]
            block = k >> BLOCK_BITS
            slot = own[block]
            own[block] += 1
            moved[slot] = (((turn[at] << BLOCK_BITS) | (k & mask)) << 1) | np.int64(asks[at])
            added[slot] = weight[at]
            if asks[at]:
                found[slot] = _below(tree, start, block)
            if weight[at] != 0.0:
                _put(tree, start, block, weight[at])


@kernel
def _ask_keys(
    first: int, last: int, ends: Pointer, moved: Index, added: Rows, found: Rows, sums: Rows
) -> None:
    """What rows of a block found in earlier ones, and the weight of earlier keys of their own."""
    mask = (1 << BLOCK_BITS) - 1
    start = _levels(min(sums.size, 1 << BLOCK_BITS))
    for block in range(first, last):
        tree = np.zeros((start[-1], LANES))
        for slot in range(ends[block], ends[block + 1]):
            k = (moved[slot] >> 1) & mask
            if moved[slot] & 1:
                sums[moved[slot] >> (BLOCK_BITS + 1)] = found[slot] + _below(tree, start, k)
            if added[slot] != 0.0:
                _put(tree, start, k, added[slot])


def _dominated(
    turn: Index, key: Index, weight: Rows, asks: _Flags, back: bool, runtime: Runtime
) -> Rows:
    """Weight of the rows of smaller key and higher rank (`back`), or of larger key and lower rank.

    Rows stand by strata and ranks, equal ranks by keys; keys are below n, and rise from one stratum
    to the next. Only rows that ask get a sum, at the place that `turn` gives.
    """
    n = key.size
    n_blocks = ((n - 1) >> BLOCK_BITS) + 1
    count, part = np.empty((N_CHUNKS, n_blocks), np.int64), np.empty((N_CHUNKS, n_blocks))
    runtime.run(_sum_blocks, N_CHUNKS, key, weight, back, count, part)
    flat = count.T.ravel()
    place = np.ascontiguousarray((np.cumsum(flat) - flat).reshape(-1, N_CHUNKS).T)
    ends = np.append(place[0], n)
    before = np.zeros_like(part)
    np.cumsum(part[:-1], axis=0, out=before[1:])
    moved, added, found, sums = np.empty(n, np.int64), np.empty(n), np.empty(n), np.zeros(n)
    args = (turn, key, weight, asks, back, before, place, moved, added, found)
    runtime.run(_ask_blocks, N_CHUNKS, *args)
    runtime.run(_ask_keys, n_blocks, ends, moved, added, found, sums)
    return sums


@kernel
def _sum_in_groups(
    turn: Index, group: Index, key: Index, weight: Rows, back: bool, sums: Rows
) -> None:
    """Weight of smaller keys (of larger ones: `back`) in the group of each row.

    Rows stand by groups and keys; `sums`, which are 0, have them as `turn` says, if it says so.
    """
    n = group.size
    total, now = 0.0, 0.0
    g, k = np.int64(-1), np.int64(-1)
    for t in range(n):
        p = n - 1 - t if back else t
        if group[p] != g:
            g, k = group[p], key[p]
            total, now = 0.0, 0.0
        elif key[p] != k:
            k = key[p]
            total, now = total + now, 0.0
        if total != 0.0:
            sums[turn[p] if turn.size else p] = total
        now += weight[p]


@kernel
def _tied_pairs(group: Index, key: Index, weight: Rows) -> float:
    """Pairs within a group with one key, of rows by groups and keys."""
    pairs, now = 0.0, 0.0
    for p in range(group.size):
        if p > 0 and (group[p] != group[p - 1] or key[p] != key[p - 1]):
            now = 0.0
        pairs += weight[p] * now
        now += weight[p]
    return pairs


@kernel
def _number(value: Rows, is_last: _Flags, stratum_ptr: Pointer, key: Index, stratum: Index) -> None:
    """Numbers of the first row with each value, and of strata.

    With `is_last`, rows it marks come after the others of a value, and have a number of their own.
    """
    for s in range(stratum_ptr.size - 1):
        for p in range(stratum_ptr[s], stratum_ptr[s + 1]):
            is_same = p > stratum_ptr[s] and value[p] == value[p - 1]
            is_same = is_same and (is_last.size == 0 or is_last[p] == is_last[p - 1])
            key[p] = key[p - 1] if is_same else p
            stratum[p] = s


@kernel
def _fetch(
    first: int, last: int, n_chunks: int, turn: Index, key: Index, weight: Rows, flag: _Flags,
    score: Rows, own_key: Index, own_weight: Rows, own_flag: _Flags, own_score: Rows,
) -> None:  # fmt: skip
    """What belongs to the rows, in their turn."""
    # In a loop that does nothing else, so that many are on their way from memory at once.
    n = turn.size
    for t in range(n * first // n_chunks, n * last // n_chunks):
        p = turn[t]
        own_key[t], own_weight[t], own_flag[t], own_score[t] = key[p], weight[p], flag[p], score[p]


class _ByScore(NamedTuple):
    """Rows by strata and scores, equal scores by keys.

    `turn` are their positions among rows by strata and keys, `group` the numbers of the first row
    with each score, and `flag` what was asked for.
    """

    turn: Index
    key: Index
    weight: Rows
    flag: _Flags
    group: Index


def _by_score(
    score: Rows, stratum: Index, key: Index, weight: Rows, flag: _Flags, ptr: Pointer,
    runtime: Runtime,
) -> _ByScore:  # fmt: skip
    n, turn = key.size, stable_order(score, runtime)
    if ptr.size > 2:
        turn = turn[stable_order(stratum[turn].astype(np.float64), runtime)]
    own = _ByScore(turn, np.empty_like(key), np.empty(n), np.empty(n, np.bool_), np.empty_like(key))
    ranked = np.empty(n)
    args = (turn, key, weight, flag, score, own.key, own.weight, own.flag, ranked)
    runtime.run(_fetch, N_CHUNKS, N_CHUNKS, *args)
    _number(ranked, flag[:0], ptr, own.group, np.empty_like(key))
    return own


@kernel
def _add_up(
    row: Index, sign: Rows, event: _Flags, weight: Rows, sums: Matrix, higher: Rows, lower: Rows,
    counts: Rows, influence: Matrix,
) -> None:  # fmt: skip
    """Rows as those who have the event, and as the others of their pairs.

    Rows of `sums` are those who outlive the row, and of these with its score; then those who have
    the event before it, and of these with its score.
    """
    for p in range(row.size):
        r, s = row[p], sign[p]
        if event[p]:
            # Concordant if their score is lower.
            below = max(0.0, sums[0, p] - higher[p] - sums[1, p])
            influence[r, 0] += below
            influence[r, 1] += higher[p]
            influence[r, 2] += sums[1, p]
            counts[0] += weight[p] * below
            counts[1] += weight[p] * higher[p]
            counts[2] += weight[p] * sums[1, p]
        # Concordant if their score is higher.
        influence[r, 0] += s * (sums[2, p] - lower[p] - sums[3, p])
        influence[r, 1] += s * lower[p]
        influence[r, 2] += s * sums[3, p]


class _Ends(NamedTuple):
    """Rows by strata and decreasing times, and those of weight -w that end at late entries.

    `row` is the number of the row, and `sign` -1 at an entry.
    """

    row: Index
    score: Rows
    time: Rows
    event: _Flags
    weight: Rows
    sign: Rows
    stratum_ptr: Pointer


def _with_entries(rows: _Ends, entry: Rows, runtime: Runtime) -> _Ends:
    """The rows and their entries, as far as those are not before all events."""
    late = np.empty(0, dtype=np.int64)
    if entry.size and rows.event.any():
        late = np.flatnonzero(entry >= rows.time[rows.event].min())
    if late.size == 0:
        return rows
    n_strata = rows.stratum_ptr.size - 1
    stratum = np.repeat(np.arange(n_strata), np.diff(rows.stratum_ptr))
    row = np.concatenate([late, rows.row])
    time = np.concatenate([entry[late], rows.time])
    # Who enters at the time of an event is not compared with it, so entries come first.
    order = stable_order(-time, runtime)
    if n_strata > 1:
        order = order[stable_order(stratum[row[order]].astype(np.float64), runtime)]
    sign = np.repeat([-1.0, 1.0], [late.size, rows.row.size])[order]
    row = row[order]
    added = np.append(0, np.cumsum(np.bincount(stratum[late], minlength=n_strata)))
    return _Ends(
        row,
        rows.score[row],
        time[order],
        rows.event[row] & (sign > 0),
        rows.weight[row] * sign,
        sign,
        rows.stratum_ptr + added,
    )


def count_pairs(
    score: Rows,
    time: Rows,
    event: _Flags,
    entry: Rows,
    weight: Rows,
    stratum_ptr: Pointer,
    runtime: Runtime,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    # Trees hold sums of case weights, exact for counts. A row that enters late is taken out again
    # by a row of weight -w that ends at its entry, and one kind of pair is all minus the others:
    # with fractional weights that leaves an error of a few ulp of the whole weight, which no
    # exponential can amplify.
    n = time.size
    rows = _Ends(np.arange(n), score, time, event, weight, np.ones(n), stratum_ptr)
    rows = _with_entries(rows, entry, runtime)
    size, ptr = rows.row.size, rows.stratum_ptr
    key, stratum = np.empty((2, size), np.int64)
    _number(rows.time, rows.event, ptr, key, stratum)
    own = _by_score(rows.score, stratum, key, rows.weight, rows.event, ptr, runtime)
    failing, own_failing = np.where(rows.event, rows.weight, 0.0), np.where(own.flag, own.weight, 0)
    sums, as_they_stand = np.zeros((4, size)), own.turn[:0]
    jobs = (
        (as_they_stand, stratum, key, rows.weight, False, sums[0]),
        (own.turn, own.group, own.key, own.weight, False, sums[1]),
        (as_they_stand, stratum, key, failing, True, sums[2]),
        (own.turn, own.group, own.key, own_failing, True, sums[3]),
    )
    runtime.map(lambda job: _sum_in_groups(*job), jobs)
    everyone = np.ones(size, np.bool_)
    higher = _dominated(own.turn, own.key, own.weight, own.flag, True, runtime)
    lower = _dominated(own.turn, own.key, own_failing, everyone, False, runtime)
    counts, influence = np.zeros(5), np.zeros((n, 3))
    _add_up(rows.row, rows.sign, rows.event, rows.weight, sums, higher, lower, counts, influence)
    counts[4] = _tied_pairs(own.group, own.key, own_failing)
    counts[3] = max(0.0, _tied_pairs(stratum, key, failing) - counts[4])
    return counts, influence


def sums_by_rank(
    rank: Index,
    key: Index,
    weight: Rows,
    asks: _Flags,
    stratum_ptr: Pointer,
    runtime: Runtime,
) -> NDArray[np.float64]:
    number, stratum = np.empty((2, rank.size), np.int64)
    _number(key.astype(np.float64), asks[:0], stratum_ptr, number, stratum)
    own = _by_score(rank.astype(np.float64), stratum, number, weight, asks, stratum_ptr, runtime)
    total, same = np.zeros((2, rank.size))
    _sum_in_groups(own.turn[:0], stratum, number, weight, False, total)
    _sum_in_groups(own.turn, own.group, own.key, own.weight, False, same)
    above = _dominated(own.turn, own.key, own.weight, own.flag, True, runtime)
    below = np.maximum(total - same - above, 0.0)
    return np.where(asks[:, None], np.stack([below, same, above], axis=1), 0.0)
