"""What the arms of several analyses of a study say about the same people.

Their numbers may differ by few. The follow-up of a per-protocol analysis ends when people deviate.
So its outcomes less those of the intention-to-treat analysis are the outcomes after deviation. The
same holds for times at risk one of which contains the other, and for clones of the same people who
follow different strategies. Of numbers that differ by few, that of the earlier analysis is shown.
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

from riskset.disclosure.rows import ARMS, RUN, Named, Results, keys_of
from riskset.results.rows import ArmRow, RunRow

__all__ = ["ArmOfRun", "SamePeople", "ShownBefore", "place_of", "side_of"]

SIZES = ("persons", "exposures")
FOLLOWED = ("days", "outcomes", "competing")


class ArmOfRun(NamedTuple):
    """An arm of a run, before or after the adjustment."""

    target: str
    comparator: str
    outcome: str
    analysis: str
    side: str
    arm: str

    @property
    def run(self) -> dict[str, str]:
        """The columns that name the run."""
        return dict(zip(RUN, self, strict=False))


def side_of(row: Named) -> str:
    """Whether a row is of the people "before" or "after" the adjustment."""
    if "side" in row:
        return str(row["side"])
    if "adjusted" in row:
        return "after" if row["adjusted"] else "before"
    return "before" if row.get("role") == "crude" else "after"


def place_of(row: Named, arm: str) -> ArmOfRun:
    """The arm that a row, or one of its halves, is about."""
    return ArmOfRun._make((*keys_of(row, RUN), side_of(row), arm))


class SamePeople:
    """Arms of runs that have the same people, for the same outcome.

    These are arms with the same exposure and the same numbers of people: a comparison with another
    group, another analysis, or people before an adjustment that keeps everybody. Also those of one
    adjustment. All clones are the same people, whatever strategy they follow. With `followed`, arms
    also have the same days and events, so that they have the same follow-up.
    """

    def __init__(self, results: Results, *, followed: bool = False) -> None:
        self._keys: dict[ArmOfRun, list[tuple[Any, ...]]] = {}
        self._places: dict[tuple[Any, ...], list[ArmOfRun]] = defaultdict(list)
        counts = {(keys_of(row, RUN), row.side): row for row in results.raw(ArmRow)}
        for run in results.raw(RunRow):
            for side in ("before", "after"):
                row = counts.get((keys_of(run, RUN), side), ArmRow())
                for arm in ARMS:
                    place = place_of({**run, "side": side}, arm)
                    self._keys[place] = list(_keys_of(run, place, row, followed))
                    for key in self._keys[place]:
                        self._places[key].append(place)

    def keys(self, place: ArmOfRun) -> list[tuple[Any, ...]]:
        """What the places of the same people have in common."""
        return self._keys.get(place, [])

    def places(self, place: ArmOfRun) -> list[ArmOfRun]:
        """The place itself, and all others with these people, but not the other arm of its run.

        Both strategies of a run have the same people; see `riskset.disclosure.over_time`.
        """
        others = [other for key in self.keys(place) for other in self._places[key]]
        apart = [one for one in others if one.run != place.run or one.arm == place.arm]
        return list(dict.fromkeys([place, *apart]))


def _keys_of(
    run: RunRow, place: ArmOfRun, counts: ArmRow, followed: bool
) -> Iterator[tuple[Any, ...]]:
    exposure = "" if run.cloned else run[place.arm]
    names = (*SIZES, *FOLLOWED) if followed else SIZES
    sizes = keys_of(counts, [f"{place.arm}_{name}" for name in names])
    if None not in sizes[: len(SIZES)]:
        yield (run.outcome, exposure, *sizes)
    if place.side == "after" and run.adjustment is not None and not followed:
        yield (run.outcome, place.arm, run.adjustment)


class ShownBefore:
    """Numbers that rows of earlier analyses have shown of the same people."""

    def __init__(self, results: Results, *, followed: bool = False) -> None:
        self._people = SamePeople(results, followed=followed)
        self._numbers: dict[tuple[Any, ...], list[float]] = defaultdict(list)

    def numbers(self, row: Named, arm: str, *of: object) -> list[float]:
        """Those of one kind, that `of` names, shown before."""
        keys = self._people.keys(place_of(row, arm))
        return [n for key in keys for n in self._numbers[(*key, *of)]]

    def add(self, row: Named, arm: str, number: float | None, *of: object) -> None:
        """Remember a number that is shown."""
        if number is not None:
            for key in self._people.keys(place_of(row, arm)):
                self._numbers[(*key, *of)].append(float(number))
