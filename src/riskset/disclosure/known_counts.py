"""Numbers of events and of people at risk that readers know of an arm, from all tables.

They come from tables of the same people: of other comparisons and analyses, too.
"""

from bisect import insort
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from riskset.disclosure.rows import Named, Results, number, run_of
from riskset.disclosure.same_people import ArmOfRun, SamePeople, place_of
from riskset.disclosure.small_cells import is_near_shown, is_small
from riskset.results.columns import ResultRow
from riskset.results.rows import (
    ArmRow,
    AtRiskRow,
    EffectAtTimeRow,
    IntervalRow,
    ModelledRiskRow,
    RestrictedMeanRow,
    RiskRow,
    WeekRow,
)

__all__ = [
    "CAUSES",
    "KnownCounts",
    "KnownOfArm",
    "arms_of",
    "events_apart",
    "is_close",
    "kinds_of",
]

CAUSES = {1: "outcomes", 2: "competing"}
SIDES = {True: "after", False: "before"}


@dataclass(frozen=True)
class KnownOfArm:
    """What readers know of an arm from other tables; NaN is not known.

    `events` are numbers of people with each kind of event by some times, `at_risk` those at risk at
    some times, `everybody` the people of the arm, `hidden` names of numbers that are hidden, and
    `end` the time from which few are known to be at risk.
    """

    events: Mapping[str, Sequence[float]] = field(
        default_factory=lambda: dict.fromkeys(CAUSES.values(), ())
    )
    at_risk: Sequence[float] = ()
    everybody: float = float("nan")
    hidden: Set[str] = frozenset()
    end: float = float("inf")


def arms_of(results: Results, row: Named, *, is_adjusted: bool = True) -> ArmRow:
    """The row of the table `arms` that a row of a run belongs to; empty if there is none."""
    arms = results.shown(ArmRow, side=SIDES[is_adjusted], **run_of(row))
    return arms[0] if arms else ArmRow()


def events_apart(
    events: Sequence[float] | NDArray[np.float64],
    others: Sequence[float] | NDArray[np.float64],
    least: int,
) -> list[int]:
    """Places of times at which a curve may be shown: none has few events since another one.

    `events` (n,) are the people with an event by each time, and `others` are numbers of events by
    some times that readers know, such as the total.

    Examples
    --------
    >>> events_apart([0, 1, 4, 6, 6, 8, 11], [16], 5)
    [0, 3, 4, 6]
    """
    shown = sorted(n for n in (0.0, *others) if not np.isnan(n))
    found = []
    for k, n in enumerate(events):
        if not is_near_shown(float(n), shown, least):
            found.append(k)
            if not np.isnan(n):
                insort(shown, float(n))
    return found


def is_close(count: float, shown: Sequence[float], least: int) -> bool:
    """Whether a count differs by few from one that is shown; NaN does not."""
    return bool(is_small(np.abs(np.array(shown) - count), least).any())


def kinds_of(row: Named) -> Sequence[str]:
    """Kinds of events that a restricted mean reveals: all, if it is the time without any event."""
    if "measure" not in row:
        return ("outcomes",)  # a risk by outcome models
    kinds = {"competing_time_lost": ("competing",)} | dict.fromkeys(
        ("risk", "time_lost"), ("outcomes",)
    )
    return kinds.get(row["measure"], tuple(CAUSES.values()))


class KnownCounts:
    """What some tables, and all totals, reveal about the people of an arm, in all their runs.

    Values of models and means reveal numbers of people with the same follow-up only.
    """

    def __init__(self, results: Results, *tables: type[ResultRow]) -> None:
        self._results, self._tables = results, tables
        self._people = SamePeople(results)
        self._followed = SamePeople(results, followed=True)
        self._found: dict[tuple[ArmOfRun, type[ResultRow]], list[tuple[str, float]]] = {}

    @property
    def least(self) -> int:
        """Counts above 0 and below it are small."""
        return self._results.least

    def events(self, row: Named, arm: str) -> dict[str, list[float]]:
        """People of an arm with each kind of event by some time."""
        place = place_of(row, arm)
        found: dict[str, list[float]] = {kind: [] for kind in CAUSES.values()}
        tables: tuple[type[ResultRow], ...] = (ArmRow, *self._tables)
        for table in tables:
            is_value = table in VALUES
            for other in (self._followed if is_value else self._people).places(place):
                for kind, count in self._revealed(other, table):
                    found[kind].append(count)
        return found

    def at_risk(self, row: Named, arm: str) -> list[float]:
        """People of an arm at risk at some times, as their own table shows them."""
        return [
            number(one.people)
            for place in self._people.places(place_of(row, arm))
            for one in self._results.shown(
                AtRiskRow, adjusted=place.side == "after", arm=place.arm, **place.run
            )
        ]

    def _revealed(self, place: ArmOfRun, table: type[ResultRow]) -> list[tuple[str, float]]:
        if (place, table) not in self._found:
            self._found[(place, table)] = list(REVEALS[table](self._results, place))
        return self._found[(place, table)]


def _totals(results: Results, place: ArmOfRun) -> Iterator[tuple[str, float]]:
    for row in results.shown(ArmRow, side=place.side, **place.run):
        for kind in CAUSES.values():
            yield kind, number(row[f"{place.arm}_{kind}"])


def _of_risks(results: Results, place: ArmOfRun) -> Iterator[tuple[str, float]]:
    for row in results.shown(RiskRow, adjusted=place.side == "after", **place.run):
        yield "outcomes", number(row[f"{place.arm}_outcomes"])


def _of_means(results: Results, place: ArmOfRun) -> Iterator[tuple[str, float]]:
    keys = {**place.run, "adjusted": place.side == "after"}
    own = results.raw(RestrictedMeanRow, **keys)  # counts that go along are never shared
    for mean, of_mean in zip(results.shown(RestrictedMeanRow, **keys), own, strict=True):
        if mean[f"{place.arm}_mean"] is not None:
            for kind in kinds_of(mean):
                yield kind, number(of_mean[f"{place.arm}_{kind}"])


def _of_models(results: Results, place: ArmOfRun) -> Iterator[tuple[str, float]]:
    if place.side == "after":
        own = results.raw(ModelledRiskRow, **place.run)
        for risk, of_risk in zip(results.shown(ModelledRiskRow, **place.run), own, strict=True):
            if risk[f"{place.arm}_risk"] is not None:
                yield "outcomes", number(of_risk[f"{place.arm}_outcomes"])


def _of_intervals(
    table: type[IntervalRow] | type[EffectAtTimeRow],
) -> Callable[[Results, ArmOfRun], Iterator[tuple[str, float]]]:
    def revealed(results: Results, place: ArmOfRun) -> Iterator[tuple[str, float]]:
        if place.side == "after":
            rows = results.shown(table, **place.run)
            for count in accumulate(number(row[f"{place.arm}_outcomes"]) for row in rows):
                yield "outcomes", count

    return revealed


def _of_weeks(results: Results, place: ArmOfRun) -> Iterator[tuple[str, float]]:
    """Outcomes by the end of a week, from the first week and from the total."""
    if place.side == "before":
        weeks = results.shown(WeekRow, arm=place.arm, **place.run)
        counts = [number(row.events) for row in weeks]
        total = number(arms_of(results, place.run, is_adjusted=False)[f"{place.arm}_outcomes"])
        for count in (*accumulate(counts), *(total - n for n in accumulate(reversed(counts)))):
            yield "outcomes", count


REVEALS: Mapping[type[ResultRow], Callable[[Results, ArmOfRun], Iterator[tuple[str, float]]]] = {
    ArmRow: _totals,
    RiskRow: _of_risks,
    RestrictedMeanRow: _of_means,
    ModelledRiskRow: _of_models,
    IntervalRow: _of_intervals(IntervalRow),
    EffectAtTimeRow: _of_intervals(EffectAtTimeRow),
    WeekRow: _of_weeks,
}
VALUES = (RestrictedMeanRow, ModelledRiskRow)
