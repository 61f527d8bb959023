"""The fast twin of `full_matching_ref`; its time is that of a few passes over the people."""

import numpy as np
from numpy.typing import NDArray

from riskset._types import Index
from riskset.kernels._jit import kernel

__all__ = ["cover_line"]

INFINITE = np.iinfo(np.int64).max // 4


def cover_line(position: Index, arm: Index, block: Index, limit: int) -> tuple[Index, Index]:
    """See `full_matching_ref.cover_line`."""
    near = np.flatnonzero(_has_partner(position, arm, block, limit))
    x, arms, blocks = position[near], arm[near], block[near]
    changes = (np.diff(arms) != 0) | (np.diff(blocks) != 0)
    begin = np.concatenate(([0], np.flatnonzero(changes) + 1, [near.size]))
    if near.size == 0:
        return near, near
    taken, before = _planned(x, blocks, begin, limit)
    left, right = _paired(x, begin, taken, before, limit)
    order = np.lexsort((right, left))
    return near[left[order]], near[right[order]]


@kernel
def _has_partner(position: Index, arm: Index, block: Index, limit: int) -> NDArray[np.bool_]:
    n = position.size
    found = np.zeros(n, dtype=np.bool_)
    last = np.full(2, -1, dtype=np.int64)
    for k in range(n):
        other = last[1 - arm[k]]
        if other >= 0 and block[other] == block[k] and position[k] - position[other] <= limit:
            found[k] = True
        last[arm[k]] = k
    last[:] = -1
    for k in range(n - 1, -1, -1):
        other = last[1 - arm[k]]
        if other >= 0 and block[other] == block[k] and position[other] - position[k] <= limit:
            found[k] = True
        last[arm[k]] = k
    return found


@kernel
def _planned(x: Index, block: Index, begin: Index, limit: int) -> tuple[Index, Index]:
    """The choices of smallest cost of each person, and of each number of people of a run.

    `taken` (n,): if the run is covered from the left up to this person, how many people of the run
    before have pairs to the right; 0 if that cannot be. `before` (n,): if this person and those
    after have pairs to the right, how many of the run have pairs to the left.
    """
    n = x.size
    taken, before = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    # Covered from the left up to a person; nobody of the run; and with pairs to the right, too.
    covered, none = np.full(n, INFINITE), 0
    open_cost, least = np.full(n, INFINITE), np.full(n, INFINITE)
    for r in range(begin.size - 2):
        first, middle, last = begin[r], begin[r + 1], begin[r + 2]
        whole = covered[middle - 1]
        # From the right: the fewest people with pairs to both sides come first.
        best, at = INFINITE, middle - first
        for k in range(middle - 1, first - 1, -1):
            if covered[k] <= best:
                best, at = covered[k], k + 1 - first
            is_all = k == first
            if is_all and none <= best:
                best, at = none, 0
            open_cost[k], before[k] = best, at
            if not is_all and covered[k - 1] <= best:
                open_cost[k], before[k] = covered[k - 1], k - first
        if block[first] == block[middle]:
            _choose(x, first, middle, last, limit, open_cost, least, covered, taken)
        # Costs are compared within a run alone, so that they stay small.
        none = whole
        lowest = min(none, covered[middle:last].min())
        if lowest < INFINITE:
            none = none - lowest if none < INFINITE else none
            for k in range(middle, last):
                if covered[k] < INFINITE:
                    covered[k] -= lowest
    return taken, before


@kernel
def _choose(
    x: Index, first: int, middle: int, last: int, limit: int, open_cost: Index, least: Index,
    covered: Index, taken: Index,
) -> None:  # fmt: skip
    """Costs of the run after this one, and how many people of this run they need.

    The cost of i and j people is ``A_i + B_j - min(i, j, most) c``. So the best i is that of the
    least ``A_i - i c`` up to ``min(j, most)``, or that of the least ``A_i`` from there on.
    """
    at, next_one = x[middle - 1], x[middle]
    gap = next_one - at
    if gap > limit:
        return
    n_left, n_right = _reach(x, first, middle, last, limit)
    most = _most_pairs(x, middle, n_left, n_right, limit)
    ends = 0
    for i in range(1, n_left + 1):
        ends += at - x[middle - i]
        open_cost[middle - i] = min(open_cost[middle - i] + ends + i * (gap + 1), INFINITE)
    # The least from each i on; the smallest i of equal ones.
    best = INFINITE
    for i in range(n_left, 0, -1):
        if open_cost[middle - i] <= best:
            best = open_cost[middle - i]
        least[middle - i] = best
    ends, shorter, of_shorter, of_longer = 0, INFINITE, 0, 1
    for j in range(1, n_right + 1):
        ends += x[middle + j - 1] - at
        k = min(j, most)
        if k <= n_left and k == j:
            cost = open_cost[middle - k] - k * (gap + 1)
            if open_cost[middle - k] < INFINITE and cost < shorter:
                shorter, of_shorter = cost, k
        cost, choice = shorter, of_shorter
        if k <= n_left and least[middle - k] < INFINITE:
            of_longer = max(of_longer, k)
            while open_cost[middle - of_longer] != least[middle - k]:
                of_longer += 1
            longer = least[middle - k] - k * (gap + 1)
            if longer < cost:
                cost, choice = longer, of_longer
        if cost < INFINITE:
            covered[middle + j - 1], taken[middle + j - 1] = cost + ends + j, choice


@kernel
def _reach(x: Index, first: int, middle: int, last: int, limit: int) -> tuple[int, int]:
    """People of both runs within the limit of the nearest one of the other run."""
    n_left = 0
    while middle - n_left > first and x[middle] - x[middle - n_left - 1] <= limit:
        n_left += 1
    n_right = 0
    while middle + n_right < last and x[middle + n_right] - x[middle - 1] <= limit:
        n_right += 1
    return n_left, n_right


@kernel
def _most_pairs(x: Index, middle: int, n_left: int, n_right: int, limit: int) -> int:
    """The most pairs of different people of two runs, of which those in reach are given.

    By König's theorem it is the smallest r + s so that people beyond the nearest r and s are too
    far from each other, or all people of a run.
    """
    most = min(n_left, n_right)
    r = n_left
    for s in range(n_right):
        while r > 0 and x[middle + s] - x[middle - r] > limit:
            r -= 1
        if r < n_left:
            most = min(most, r + s)
    return most


@kernel
def _paired(x: Index, begin: Index, taken: Index, before: Index, limit: int) -> tuple[Index, Index]:
    """The pairs of the best choices, from the last run to the first."""
    left, right = np.empty(x.size, dtype=np.int64), np.empty(x.size, dtype=np.int64)
    n = 0
    j = begin[-1] - begin[-2]
    for r in range(begin.size - 3, -1, -1):
        first, middle = begin[r], begin[r + 1]
        if j == 0:
            j = middle - first
            continue
        i = taken[middle + j - 1]
        k = _most_pairs(x, middle, i, j, limit)
        for m in range(max(i, j)):
            if m < i:
                left[n] = middle - 1 - m
                right[n] = middle + k - 1 - m if m < k else middle
                n += 1
            if m >= k and m < j:
                left[n], right[n] = middle - 1, middle + m
                n += 1
        j = before[middle - i]
    return left[:n], right[:n]
