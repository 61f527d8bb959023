"""In which order blocks of rows follow each other, and what hangs over the borders between them.

A stratum may lie in several blocks if these follow each other by time; everything else may stand in
any order, rows within a block too.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from riskset._errors import InputError
from riskset._types import Rows
from riskset.data.risk_order import BlockBoundary
from riskset.model.block import BlockBorder, BlockFacts, CensoringTotals
from riskset.model.censoring import CensoringTies, CensoringTimes

__all__ = ["Neighbours", "backwards", "forwards", "links", "order_of", "survival_before"]

SORT = (
    "sort all rows by stratum and falling time before they are cut into blocks, as ORDER BY in the "
    "query that writes them does; within a block rows may stand in any order."
)


class Neighbours:
    """The order of blocks, and the strata that they share with those before and after them.

    `first` and `last` say of each block, in the given order, which of its strata goes on from
    another block, and in another.
    """

    def __init__(self, n_blocks: int) -> None:
        self.order: list[int] = []
        self.first: list[int | None] = [None] * n_blocks
        self.last: list[int | None] = [None] * n_blocks


def order_of(facts: Sequence[BlockFacts], names: Sequence[str]) -> Neighbours:
    """Put blocks into risk order, or name those that would have to be cut."""
    places: dict[Any, list[tuple[int, int]]] = {}
    for b, fact in enumerate(facts):
        for k, label in enumerate(fact.strata.tolist()):
            places.setdefault(label, []).append((b, k))
    found = Neighbours(len(facts))
    after: dict[int, int] = {}
    for label, where in places.items():
        # Later times first; where all rows of a block have one time, it stands between.
        where.sort(key=lambda at: (-facts[at[0]].first[at[1]], -facts[at[0]].last[at[1]]))
        for (a, i), (b, k) in pairwise(where):
            _check_apart(facts, names, (a, i), (b, k), label)
            _tell(found.last, a, i, facts, names)
            _tell(found.first, b, k, facts, names)
            after[a] = b
    begin = [b for b in range(len(facts)) if found.first[b] is None]
    for b in begin:
        found.order.append(b)
        while found.order[-1] in after:
            found.order.append(after[found.order[-1]])
    for b, fact in enumerate(facts):
        if found.first[b] is not None and found.first[b] == found.last[b] and fact.strata.size > 1:
            raise _shared(facts, names, b)
    if len(found.order) < len(facts):
        b = min(set(range(len(facts))) - set(found.order))
        raise _shared(facts, names, b)
    return found


def _check_apart(
    facts: Sequence[BlockFacts],
    names: Sequence[str],
    earlier: tuple[int, int],
    later: tuple[int, int],
    label: object,
) -> None:
    (a, i), (b, k) = earlier, later
    low, high = facts[a].last[i], facts[b].first[k]
    if low < high:
        where = (
            ""
            if len({str(x) for f in facts for x in f.strata[:2]}) == 1
            else (f" in stratum {label!r}")
        )
        raise InputError(
            f"{names[a]} and {names[b]} overlap in time: {names[a]} has times from {low:g} to "
            f"{facts[a].first[i]:g}{where}, {names[b]} from {facts[b].last[k]:g} to {high:g}.",
            hint=SORT,
        )


def _tell(
    ends: list[int | None],
    block: int,
    stratum: int,
    facts: Sequence[BlockFacts],
    names: Sequence[str],
) -> None:
    if ends[block] not in (None, stratum):
        raise _shared(facts, names, block)
    ends[block] = stratum


def _shared(facts: Sequence[BlockFacts], names: Sequence[str], block: int) -> InputError:
    own = set(facts[block].strata.tolist())
    shared = {
        label: names[b]
        for b, fact in enumerate(facts)
        if b != block
        for label in fact.strata.tolist()
        if label in own
    }
    listed = ", ".join(f"{label!r} with {name}" for label, name in list(shared.items())[:4])
    return InputError(
        f"{names[block]} shares strata with other blocks in more ways than one order of the blocks "
        f"allows ({listed}).",
        hint=SORT,
    )


def links(borders: Sequence[BlockBorder], continues: Sequence[bool]) -> list[BlockBoundary]:
    """What hangs over each border, of blocks in risk order.

    Events at a time that is cut are counted by the last block that has rows of that time.
    """
    incoming = [0.0] * len(borders)
    tied_on = [False] * len(borders)
    for b, (one, next_) in enumerate(pairwise(borders)):
        tied_on[b] = continues[b + 1] and one.last == next_.first
        if tied_on[b]:
            incoming[b + 1] = one.last_events + (incoming[b] if one.is_one else 0.0)
    return [BlockBoundary(c, n, t) for c, n, t in zip(continues, incoming, tied_on, strict=True)]


def forwards(
    sums: Sequence[NDArray[np.float64]], has_start: Sequence[bool]
) -> list[NDArray[np.float64]]:
    """What each block receives from those before it; where a stratum begins, none goes through."""
    out = [np.zeros_like(sums[0])]
    for one, blocks in zip(sums[:-1], has_start[:-1], strict=True):
        out.append(one + (0.0 if blocks else out[-1]))
    return out


def backwards(
    sums: Sequence[NDArray[np.float64]], has_start: Sequence[bool]
) -> list[NDArray[np.float64]]:
    """The same from those after it."""
    return forwards(sums[::-1], has_start[::-1])[::-1]


def survival_before(
    times: Sequence[CensoringTotals], ties: CensoringTies
) -> tuple[list[Rows], float]:
    """Kaplan-Meier estimate G of the distribution of censoring, from all blocks.

    Returns G(t-) at the distinct times of each block, and the last value of G that is positive.
    """
    time = np.concatenate([t.time for t in times])
    n = time.size
    # Two rows for each distinct time of a block stand for all of its rows at that time.
    event = np.repeat([0, 1], n)
    curve = CensoringTimes.of(np.arange(2 * n), np.tile(time, 2), event)
    weight = np.concatenate([*(t.censored for t in times), *(t.others for t in times)])
    values = curve.survival(weight, ties)
    return [values[curve.n_before(t.time)] for t in times], float(values[curve.last(weight)])
