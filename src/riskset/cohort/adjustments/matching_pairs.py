"""The pairs of people who may be matched, with their distances as whole numbers."""

import itertools
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from riskset._errors import CohortError
from riskset._types import Index, Matrix

__all__ = [
    "MOST_PAIRS",
    "NO_LIMIT",
    "QUANTUM",
    "Candidates",
    "ArmPairs",
    "joined",
    "mahalanobis_places",
]

QUANTUM = 1e10
"""Distances are compared as whole numbers of 1e-10, so that ties are exact."""

NO_LIMIT = int(np.iinfo(np.int64).max)

MOST_PAIRS = 20_000_000
"""ArmPairs that are listed at most; one takes 24 bytes."""

AT_ONCE = 1_000_000

SINGULAR = 1e-10
"""Of a correlation matrix with a smaller eigenvalue one covariate follows from others."""


class ArmPairs(NamedTuple):
    """ArmPairs of a row whose partners are sought with a partner (k,); first rows rise."""

    first: Index
    partner: Index
    distance: Index

    def take(self, chosen: Index | NDArray[np.bool_]) -> "ArmPairs":
        """Some of the pairs."""
        return ArmPairs(self.first[chosen], self.partner[chosen], self.distance[chosen])

    @property
    def closest_first(self) -> Index:
        """The order of the pairs by distance; ties go by the first row, then by the partner."""
        return np.lexsort((self.partner, self.first, self.distance)).astype(np.int64)


class Candidates(NamedTuple):
    """People who may be matched, in the order of their identities, which breaks ties.

    `first` (n,) are those whose partners are sought. Partners are within `limit` of their position
    on a `line` of whole numbers, in the same `block`. The distance is that on the line, or between
    `places` (n, k).
    """

    first: NDArray[np.bool_]
    line: Index
    block: Index
    limit: int
    places: Matrix | None

    @property
    def swapped(self) -> "Candidates":
        """The same people, with the other arm first."""
        return self._replace(first=~self.first)

    def pairs(self) -> ArmPairs:
        """All pairs within the limit."""
        return joined(self.portions())

    def portions(self) -> Iterator[ArmPairs]:
        """All pairs within the limit, of some first rows at a time."""
        first, partner = np.flatnonzero(self.first), np.flatnonzero(~self.first)
        key, levels = self._key()
        partner = partner[np.argsort(key[partner], kind="stable")]
        x, own = self.line[first], self.block[first] * (levels.size + 1)
        is_open = self.limit == NO_LIMIT
        low, high = (levels[:1], levels[-1:]) if is_open else (x - self.limit, x + self.limit)
        begin = np.searchsorted(key[partner], own + np.searchsorted(levels, low, "left"))
        end = np.searchsorted(key[partner], own + np.searchsorted(levels, high, "right"))
        size = np.maximum(end - begin, 0)
        borders = np.searchsorted(np.cumsum(size), np.arange(0, size.sum() + AT_ONCE, AT_ONCE))
        for a, b in itertools.pairwise(np.unique([*borders, first.size]).tolist()):
            yield self._listed(first[a:b], partner, begin[a:b], size[a:b])

    def nearest(self, number: int) -> ArmPairs:
        """Of each first row the `number` closest partners, who may be shared; 0: all of them."""
        if not number:
            return self.pairs()
        if self.places is not None:
            return joined(_closest(portion, number) for portion in self.portions())
        first, partner = np.flatnonzero(self.first), np.flatnonzero(~self.first)
        key, _ = self._key()
        found = []
        # On either side the next in distance come first, and of equal scores the first identity.
        for order, is_above in (
            (partner[np.argsort(key[partner], kind="stable")], True),
            (partner[np.lexsort((-partner, key[partner]))], False),
        ):
            at = np.searchsorted(key[order], key[first], "left")
            begin = at if is_above else np.maximum(at - number, 0)
            end = np.minimum(at + number, order.size) if is_above else at
            found.append(self._listed(first, order, begin, end - begin))
        both = ArmPairs(*(np.concatenate(parts) for parts in zip(*found, strict=True)))
        both = both.take(np.argsort(both.first, kind="stable"))
        same = self.block[both.first] == self.block[both.partner]
        return _closest(both.take(same & (both.distance <= self.limit)), number)

    def _key(self) -> tuple[Index, Index]:
        """Numbers in the order of block and position, and the positions that occur."""
        levels, rank = np.unique(self.line, return_inverse=True)
        return self.block * (levels.size + 1) + rank.reshape(-1), levels

    def _listed(self, first: Index, partner: Index, begin: Index, size: Index) -> ArmPairs:
        """The pairs of each first row with a range of partners."""
        mine = np.repeat(first, size)
        place = np.arange(mine.size) - np.repeat(np.cumsum(size) - size, size)
        theirs = partner[np.repeat(begin, size) + place]
        if self.places is None:
            return ArmPairs(mine, theirs, np.abs(self.line[mine] - self.line[theirs]))
        square = np.zeros(mine.size)
        for x in self.places.T:
            square += (x[mine] - x[theirs]) ** 2
        return ArmPairs(mine, theirs, np.rint(np.sqrt(square) * QUANTUM).astype(np.int64))


def joined(portions: Iterable[ArmPairs]) -> ArmPairs:
    """ArmPairs of several portions; too many raise "TooManyPairs"."""
    found, total = [], 0
    for portion in portions:
        found.append(portion)
        total += portion.first.size
        if total > MOST_PAIRS:
            raise CohortError(
                "TooManyPairs",
                f"more than {MOST_PAIRS:,} pairs of people are within the caliper, which is the "
                "most that can be compared.",
                hint="use a smaller caliper, or match within blocks of `within`; matching of the "
                "closest pairs first by the score has no such limit.",
            )
    if not found:
        return ArmPairs(*(np.zeros(0, dtype=np.int64) for _ in range(3)))
    return ArmPairs(*(np.concatenate(parts) for parts in zip(*found, strict=True)))


def _closest(pairs: ArmPairs, number: int) -> ArmPairs:
    """Of each first row the `number` closest pairs."""
    if number == 1 and pairs.first.size:  # to sort them all takes most of the time
        begin = np.flatnonzero(np.append(True, pairs.first[1:] != pairs.first[:-1]))
        least = np.minimum.reduceat(pairs.distance, begin)
        size = np.diff(np.append(begin, pairs.first.size))
        pairs = pairs.take(pairs.distance == np.repeat(least, size))
    chosen = pairs.take(np.lexsort((pairs.partner, pairs.distance, pairs.first)))
    begin = np.searchsorted(chosen.first, chosen.first, "left")
    return chosen.take(np.arange(chosen.first.size) - begin < number)


def mahalanobis_places(x: Matrix, arm: Index, names: tuple[str, ...]) -> Matrix:
    """Places (n, k) whose Euclidean distance is Mahalanobis's, by the covariance within arms."""
    # A power of two changes no digit, and keeps squares of very large or small values finite.
    x = np.ldexp(x, -np.frexp(np.abs(x).max(axis=0, initial=0.0))[1])
    centred = x - x.mean(axis=0)
    for a in (0, 1):
        own = arm == a
        if own.any():
            centred[own] -= centred[own].mean(axis=0)
    covariance = centred.T @ centred / max(x.shape[0] - 2, 1)
    spread = np.sqrt(np.diag(covariance))
    constant = [name for name, s in zip(names, spread.tolist(), strict=True) if not s > 0]
    if constant:
        raise CohortError(
            "BadSetting",
            f"`mahalanobis` names {constant[0]!r}, which does not vary within the arms.",
            hint="leave it out, or match exactly on it.",
        )
    values, vectors = np.linalg.eigh(covariance / np.outer(spread, spread))
    if values[0] < SINGULAR:
        worst = names[int(np.abs(vectors[:, 0]).argmax())]
        raise CohortError(
            "BadSetting",
            f"`mahalanobis` names {worst!r}, which follows from the other covariates.",
            hint="leave it out; of a category, leave one level out.",
        )
    return np.asarray((x - x.mean(axis=0)) / spread @ (vectors / np.sqrt(values)))
