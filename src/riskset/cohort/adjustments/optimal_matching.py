r"""Matching with the smallest total distance, in sets of fixed or free size.

Optimal matching is an assignment problem on the pairs within the caliper.

Full matching puts everybody who has a pair into a set of one target and its comparators, or of one
comparator and its targets. Its pairs are a minimum weight edge cover, for the parts of such a cover
are stars. With :math:`\mu` the distance of a person to the nearest one, a cover of smallest weight
is :math:`\sum \mu` less the largest sum of gains :math:`\mu_t + \mu_c - d_{tc}` of a matching
(Schrijver 2003, Combinatorial Optimization, section 19.3): those whom the matching leaves out join
the nearest one. Only pairs with a gain matter, and these are few. Where people have places on a
line, the cover follows from one pass over them in order.
"""

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import min_weight_full_bipartite_matching

from riskset._types import Index, Rows
from riskset.cohort.adjustments.matching_pairs import ArmPairs, Candidates, joined
from riskset.kernels.full_matching_cpu import cover_line

__all__ = ["fullest_pairs", "shortest_pairs"]

EXACT = 2.0**50
"""Whole numbers of this size, and sums of a few of them, are exact."""


def shortest_pairs(pairs: ArmPairs, ratio: int) -> ArmPairs:
    """As many pairs, of as many first rows, as possible, with the smallest total distance.

    A first row has up to `ratio` partners, and a partner is used once. Some choice with the most
    pairs always has the most first rows, too (Mendelsohn & Dulmage 1958).
    """
    if not pairs.first.size:
        return pairs
    first, u = np.unique(pairs.first, return_inverse=True)
    partner, v = np.unique(pairs.partner, return_inverse=True)
    n_seats = first.size * ratio
    # To leave one more seat empty costs more than all distances together, and to leave the first
    # seat of a row empty costs as much again.
    distance = pairs.distance.astype(np.float64)
    times = min(n_seats, partner.size) + 1
    distance = np.rint(distance / max(1.0, 2.0 * times * (distance.max() + 1) / EXACT))
    empty = np.full(n_seats, times * (distance.max() + 1))
    empty[: first.size] *= 2.0
    seats = np.concatenate([u + k * first.size for k in range(ratio)])
    chosen = _assigned(seats, np.tile(v, ratio), np.tile(distance, ratio), n_seats, empty)
    return pairs.take(np.sort(chosen % pairs.first.size))


def fullest_pairs(people: Candidates) -> ArmPairs:
    """The pairs of a full matching: everybody has one, at the smallest total distance."""
    if people.places is None:
        return _cover_of_line(people)
    nearest = people.nearest(1), people.swapped.nearest(1)
    least = np.full(people.first.size, -1, dtype=np.int64)
    for side in nearest:
        least[side.first] = side.distance
    pairs = joined([portion.take(_gains(portion, least) > 0) for portion in people.portions()])
    chosen = pairs.take(_most_worth(pairs, _gains(pairs, least).astype(np.float64)))
    is_alone = np.ones(people.first.size, dtype=bool)
    is_alone[chosen.first] = is_alone[chosen.partner] = False
    one, other = (side.take(is_alone[side.first]) for side in nearest)
    other = ArmPairs(other.partner, other.first, other.distance)
    every = ArmPairs(*(np.concatenate(parts) for parts in zip(chosen, one, other, strict=True)))
    _, at = np.unique(every.first * people.first.size + every.partner, return_index=True)
    return _without_bridges(every.take(at))


def _cover_of_line(people: Candidates) -> ArmPairs:
    n = people.first.size
    order = np.lexsort((np.arange(n), people.first, people.line, people.block)).astype(np.int64)
    arm = people.first[order].astype(np.int64)
    left, right = cover_line(people.line[order], arm, people.block[order], people.limit)
    is_first = arm[left] == 1
    first, partner = order[np.where(is_first, left, right)], order[np.where(is_first, right, left)]
    pairs = ArmPairs(first, partner, np.abs(people.line[first] - people.line[partner]))
    return pairs.take(np.lexsort((partner, first)))


def _gains(pairs: ArmPairs, least: Index) -> Index:
    """What pairs gain; a pair counts as one quantum longer, so that nothing is free."""
    return np.asarray(least[pairs.first] + least[pairs.partner] + 1 - pairs.distance)


def _most_worth(pairs: ArmPairs, worth: Rows) -> Index:
    """Numbers of the pairs of a matching with the largest worth."""
    first, u = np.unique(pairs.first, return_inverse=True)
    _, v = np.unique(pairs.partner, return_inverse=True)
    worth = np.rint(worth / max(1.0, (worth.max(initial=0.0) + 1) / EXACT))
    empty = worth.max(initial=0.0) + 1
    return _assigned(u, v, empty - worth, first.size, np.full(first.size, empty))


def _without_bridges(pairs: ArmPairs) -> ArmPairs:
    """Without pairs both of whose people have other pairs, which ties and rounding may leave."""
    degree = [np.bincount(side) for side in pairs[:2]]
    kept = np.ones(pairs.first.size, dtype=bool)
    bridges = (degree[0][pairs.first] > 1) & (degree[1][pairs.partner] > 1)
    for k in np.flatnonzero(bridges)[np.argsort(-pairs.distance[bridges], kind="stable")].tolist():
        i, j = pairs.first[k], pairs.partner[k]
        if degree[0][i] > 1 and degree[1][j] > 1:
            kept[k] = False
            degree[0][i] -= 1
            degree[1][j] -= 1
    return pairs.take(kept)


def _assigned(row: Index, column: Index, cost: Rows, n_rows: int, empty: Rows) -> Index:
    """Numbers of the pairs of an assignment of smallest cost; rows without one cost `empty`."""
    if not row.size:
        return np.zeros(0, dtype=np.int64)
    n_columns = int(column.max()) + 1
    spare = np.arange(n_rows)
    rows, columns = np.append(row, spare), np.append(column, n_columns + spare)
    # Costs are positive, for an assignment takes a stored 0 for no pair.
    costs = np.append(cost + 1.0, empty + 1.0)
    graph = csr_array((costs, (rows, columns)), shape=(n_rows, n_columns + n_rows))
    mine, theirs = min_weight_full_bipartite_matching(graph)
    used = theirs < n_columns
    key = row * n_columns + column
    order = np.argsort(key, kind="stable")
    wanted = mine[used].astype(np.int64) * n_columns + theirs[used]
    return np.asarray(order[np.searchsorted(key[order], wanted)], dtype=np.int64)
