r"""Full matching of people on a line, by its definition as an edge cover of smallest cost.

Sorted people form runs of one arm. In a cover of smallest cost, pairs join neighbouring runs, the
end of one with the beginning of the next, because to uncross two pairs makes them no longer
(Colannino et al. 2007, doi:10.1007/s00373-007-0714-3). Between two runs, with distances
:math:`a_1 = 0, a_2, \dots` of the first run to its last member and :math:`b_1, b_2, \dots` of the
second run to the same place, i and j people are covered by k pairs of different people, by
:math:`i - k` pairs with the first of the second run, and by :math:`j - k` pairs with the last of
the first run. A pair costs its distance and one quantum, so that nothing is free. Where people of
both arms have the same place, a limit may make the cover one quantum longer than the shortest.
"""

import numpy as np
from numpy.typing import NDArray

from riskset._types import Index

__all__ = ["cover_line"]

INFINITE = np.iinfo(np.int64).max // 4


def cover_line(position: Index, arm: Index, block: Index, limit: int) -> tuple[Index, Index]:
    """The pairs (k,), (k,) of a full matching: numbers of people, from left to right.

    People (n,) are sorted by block and position. Those without one of the other arm within `limit`
    in their block have no pair; everybody else has one.
    """
    near = np.flatnonzero(_has_partner(position, arm, block, limit))
    x, arms, blocks = position[near], arm[near], block[near]
    is_start = np.append(True, (np.diff(arms) != 0) | (np.diff(blocks) != 0))[: near.size]
    runs = np.split(np.arange(near.size), np.flatnonzero(is_start)[1:])
    steps, begun = [], np.array([0])
    for run, following in zip(runs, runs[1:], strict=False):
        at = int(x[run[-1]])
        a, b = at - x[run[::-1]], x[following] - at
        if blocks[run[0]] != blocks[following[0]]:
            a, b = a[:0], b[:0]
        begun, step = _transition(begun, run.size, a, b, following.size, limit)
        steps.append(step)
    left, right = _traced(runs, steps, x, limit)
    return near[left], near[right]


def _has_partner(position: Index, arm: Index, block: Index, limit: int) -> NDArray[np.bool_]:
    found = np.zeros(position.size, dtype=bool)
    for k in range(position.size):
        other = position[(arm != arm[k]) & (block == block[k])]
        found[k] = bool((np.abs(other - position[k]) <= limit).any())
    return found


def _transition(
    begun: Index, size: int, a: Index, b: Index, n_next: int, limit: int
) -> tuple[Index, dict[int, tuple[int, int]]]:
    """Costs of the next run by how many of its people are covered from the left.

    `begun` are those of this run. Of each number, the step has how many people of this run have
    pairs to the right, and how many have pairs to the left.
    """
    costs = np.full(n_next + 1, INFINITE)
    costs[0] = begun[size] if begun.size > size else INFINITE
    step = {0: (0, size)}
    for j in range(1, b.size + 1):
        for i in range(1, min(a.size, size) + 1):
            if b[j - 1] > limit or a[i - 1] + b[0] > limit:
                continue
            # Whoever has no pair to the right has one to the left; others may have both.
            before = size - i + int(np.argmin(_padded(begun, size)[size - i :]))
            cost = _padded(begun, size)[before] + _cost(a[:i], b[:j], limit)
            if cost < costs[j]:
                costs[j], step[j] = cost, (i, before)
    return costs, step


def _padded(begun: Index, size: int) -> Index:
    return np.append(begun, np.full(size + 1 - begun.size, INFINITE))


def _cost(a: Index, b: Index, limit: int) -> int:
    i, j, k = a.size, b.size, _number_of_pairs(a, b, limit)
    ends = int(a.sum() + b.sum())
    return ends + (i - k) * int(b[0]) + (j - k) * int(a[0]) + i + j - k


def _number_of_pairs(a: Index, b: Index, limit: int) -> int:
    """The largest k whose nearest people can be paired: the nearest with the farthest."""
    for k in range(min(a.size, b.size), 0, -1):
        if (a[:k] + b[:k][::-1] <= limit).all():
            return k
    return 0


def _traced(
    runs: list[Index], steps: list[dict[int, tuple[int, int]]], x: Index, limit: int
) -> tuple[Index, Index]:
    pairs: list[tuple[int, int]] = []
    j = runs[-1].size
    for run, following, step in zip(runs[-2::-1], runs[:0:-1], steps[::-1], strict=True):
        i, before = step[j]
        if j:
            mine, other = run[::-1][:i], following[:j]
            at = x[run[-1]]
            k = _number_of_pairs(at - x[mine], x[other] - at, limit)
            pairs += zip(mine[:k], other[:k][::-1], strict=True)
            pairs += [(one, other[0]) for one in mine[k:]]
            pairs += [(mine[0], one) for one in other[k:]]
        j = before
    found = np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)
    return found[:, 0], found[:, 1]
