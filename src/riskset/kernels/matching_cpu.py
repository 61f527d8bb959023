"""The fast twin of `matching_ref`: O(n log n) a round for every input.

Among the unmatched people of a block the closest pair is always a pair of neighbours in the order
of the scores, for anyone between them would be closer to one of the two. So a heap of neighbouring
pairs over a linked list is enough. People of one arm and one score are one node of the list, whose
members leave in the order of their identity.
"""

import numpy as np
from numpy.typing import NDArray

from riskset._types import Index
from riskset.kernels._jit import kernel

__all__ = ["match_closest"]


@kernel
def _less(a: Index, b: Index) -> bool:
    if a[0] != b[0]:
        return bool(a[0] < b[0])
    if a[1] != b[1]:
        return bool(a[1] < b[1])
    return bool(a[2] < b[2])


@kernel
def _sift_up(heap: NDArray[np.int64], at: int) -> None:
    moving = heap[heap.shape[0] - 1]  # a spare row
    moving[:] = heap[at]
    while at > 0:
        parent = (at - 1) >> 1
        if not _less(moving, heap[parent]):
            break
        heap[at] = heap[parent]
        at = parent
    heap[at] = moving


@kernel
def _sift_down(heap: NDArray[np.int64], size: int, at: int) -> None:
    moving = heap[heap.shape[0] - 1]  # a spare row
    moving[:] = heap[at]
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and _less(heap[child + 1], heap[child]):
            child += 1
        if not _less(heap[child], moving):
            break
        heap[at] = heap[child]
        at = child
    heap[at] = moving


@kernel
def _nodes(alive: Index, treated: Index, score: Index, block: Index, ptr: Index) -> int:
    """Boundaries of the runs of equal (block, score, arm); their number."""
    m = 0
    for k in range(alive.size):
        i, h = alive[k], alive[k - 1]
        if k == 0 or block[i] != block[h] or score[i] != score[h] or treated[i] != treated[h]:
            ptr[m] = k
            m += 1
    ptr[m] = alive.size
    return m


@kernel
def _key(
    i: int,
    j: int,
    alive: Index,
    head: Index,
    person: Index,
    treated: Index,
    score: Index,
    block: Index,
    caliper: int,
    key: Index,
) -> bool:
    """Fill (distance, treated person, control) of the pair of nodes i, j; whether it may match."""
    a, b = alive[head[i]], alive[head[j]]
    if block[a] != block[b] or treated[a] == treated[b] or score[b] - score[a] > caliper:
        return False
    key[0] = score[b] - score[a]
    key[1] = person[a] if treated[a] == 1 else person[b]
    key[2] = person[b] if treated[a] == 1 else person[a]
    key[3] = i
    return True


@kernel
def _neighbours(
    alive: Index,
    head: Index,
    person: Index,
    treated: Index,
    score: Index,
    block: Index,
    caliper: int,
    heap: NDArray[np.int64],
    queued: NDArray[np.bool_],
    key: Index,
) -> int:
    """Fill the heap with the pairs of neighbouring nodes; their number."""
    size = 0
    for i in range(head.size - 1):
        if _key(i, i + 1, alive, head, person, treated, score, block, caliper, key):
            heap[size] = key
            queued[i] = True
            size += 1
    for k in range(size // 2 - 1, -1, -1):
        _sift_down(heap, size, k)
    return size


@kernel
def _round(
    alive: Index,
    person: Index,
    treated: Index,
    score: Index,
    block: Index,
    caliper: int,
    target: Index,
    distance: Index,
    won: NDArray[np.bool_],
) -> int:
    """One round among the rows `alive`; the number of pairs."""
    ptr = np.empty(alive.size + 1, dtype=np.int64)
    m = _nodes(alive, treated, score, block, ptr)
    head = ptr[:m].copy()
    left, right = np.arange(-1, m - 1), np.arange(1, m + 1)
    # One entry at most for each left node, (distance, treated, control, node). A pair's key only
    # grows, as members leave in order and neighbours move apart, so an entry that is out of date
    # stands too high in the heap and is put right when it comes to the top.
    heap, key = np.empty((m + 1, 4), dtype=np.int64), np.empty(4, dtype=np.int64)
    queued = np.zeros(m, dtype=np.bool_)
    size = _neighbours(alive, head, person, treated, score, block, caliper, heap, queued, key)
    n_pairs = 0
    while size > 0:
        i = heap[0, 3]
        j = right[i]
        fits = (
            head[i] < ptr[i + 1]
            and j < m
            and _key(i, j, alive, head, person, treated, score, block, caliper, key)
        )
        if not fits:
            queued[i] = False
            size -= 1
            heap[0] = heap[size]
            _sift_down(heap, size, 0)
            continue
        if _less(heap[0], key):
            heap[0] = key
            _sift_down(heap, size, 0)
            continue
        a, b = alive[head[i]], alive[head[j]]
        t, c = (a, b) if treated[a] == 1 else (b, a)
        target[t], target[c], distance[c], won[t] = t, t, key[0], True
        n_pairs += 1
        head[i] += 1
        head[j] += 1
        low, high = i, j
        if head[i] == ptr[i + 1]:
            low = left[i]
        if head[j] == ptr[j + 1]:
            high = right[j]
        if low >= 0:
            right[low] = high
        if high < m:
            left[high] = low
        # The only pair that may have become one, if it was none before.
        fits = (
            low >= 0
            and high < m
            and not queued[low]
            and _key(low, high, alive, head, person, treated, score, block, caliper, key)
        )
        if fits:
            heap[size] = key
            queued[low] = True
            size += 1
            _sift_up(heap, size - 1)
    return n_pairs


@kernel
def match_closest(
    order: Index,
    person: Index,
    treated: Index,
    score: Index,
    block: Index,
    caliper: int,
    ratio: int,
) -> tuple[Index, Index]:
    n = person.size
    target, distance = np.full(n, -1, dtype=np.int64), np.zeros(n, dtype=np.int64)
    alive = order.copy()
    done = 0
    while (ratio == 0 or done < ratio) and alive.size:
        won = np.zeros(n, dtype=np.bool_)
        if not _round(alive, person, treated, score, block, caliper, target, distance, won):
            break
        # A treated person who got nothing has no unused control in reach, now or later.
        kept = 0
        for k in range(alive.size):
            i = alive[k]
            if won[i] if treated[i] == 1 else target[i] < 0:
                alive[kept] = i
                kept += 1
        alive = alive[:kept]
        done += 1
    return target, distance
