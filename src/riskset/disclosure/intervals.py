"""Outcomes in intervals of the time: effects over time and in steps, and outcomes by week."""

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import TypeVar

from riskset.disclosure.arms import few_outcomes
from riskset.disclosure.known_counts import KnownCounts, is_close
from riskset.disclosure.over_time import without_near_people
from riskset.disclosure.people import share_parts
from riskset.disclosure.rows import (
    ARMS,
    RUN,
    Results,
    grouped,
    names_hidden,
    number,
    run_of,
    without,
)
from riskset.disclosure.same_people import ShownBefore
from riskset.disclosure.small_cells import is_small
from riskset.results.rows import (
    ArmRow,
    EffectAtTimeRow,
    EstimateRow,
    IntervalRow,
    ModelledRiskRow,
    RestrictedMeanRow,
    RiskRow,
    WeekRow,
)

__all__ = ["share_effect_at_times", "share_effect_over_time", "share_weeks"]

IntervalOrStep = TypeVar("IntervalOrStep", IntervalRow, EffectAtTimeRow)
EARLIER = (RiskRow, RestrictedMeanRow, ModelledRiskRow)
OUTCOMES = tuple(f"{arm}_outcomes" for arm in ARMS)


def share_effect_over_time(rows: Sequence[IntervalRow], results: Results) -> Iterator[IntervalRow]:
    """All intervals or none: those of the others and of the whole time would reveal the last."""
    return _share_steps(rows, results, KnownCounts(results, *EARLIER))


def share_effect_at_times(
    rows: Sequence[EffectAtTimeRow], results: Results
) -> Iterator[EffectAtTimeRow]:
    """Steps are shared as intervals are. Times of a smooth function have no own outcomes."""
    return _share_steps(rows, results, KnownCounts(results, *EARLIER, IntervalRow))


def _share_steps(
    rows: Sequence[IntervalOrStep], results: Results, known: KnownCounts
) -> Iterator[IntervalOrStep]:
    """Steps of a run, if none has few outcomes.

    Their outcomes are hidden if an arm had few between the end of a step and a time of another
    table. A ratio reveals no count, but those of steps and of other tables have differences.
    """
    elsewhere = ShownBefore(results)
    for places in grouped(rows, RUN):
        steps = [rows[k] for k in places]
        keys = run_of(steps[0])
        main = next(iter(results.shown(EstimateRow, role="main", **keys)), EstimateRow())
        counts = [row[name] or 0 for row in steps for name in OUTCOMES]
        is_hidden = any(name in names_hidden(main) for name in OUTCOMES)
        few = few_outcomes(main, results.least)
        if is_hidden or few or is_small(counts, results.least).any():
            continue
        near, by_end = False, {}
        for arm in ARMS:
            shown = known.events(steps[0], arm)["outcomes"] + elsewhere.numbers(steps[0], arm)
            by_end[arm] = list(accumulate(number(row[f"{arm}_outcomes"]) for row in steps))
            near = near or any(is_close(count, shown, results.least) for count in by_end[arm])
        for arm, ends in by_end.items():
            for count in [] if near else ends:
                elsewhere.add(steps[0], arm, count)
        yield from (without(row, OUTCOMES if near else ()) for row in steps)


def share_weeks(rows: Sequence[WeekRow], results: Results) -> Iterator[WeekRow]:
    """Outcomes by week, whose sum may be known, and people whose differences would reveal them."""
    group = (*RUN, "arm")

    def has_total(row: WeekRow, total: float) -> bool:
        return _total(row, results) == total

    near = _weeks_near_others(rows, results)
    events = list(share_parts(rows, results.least, group, "events", has_total=has_total, also=near))
    return without_near_people(events, RUN, "week", ("people",), results, {"side": "before"})


def _total(row: WeekRow, results: Results) -> float:
    """Outcomes before the adjustment, which are those of all weeks that begin with follow-up."""
    arms = results.raw(ArmRow, side="before", **run_of(row))
    return number(arms[0][f"{row.arm}_outcomes"]) if arms else float("nan")


def _weeks_near_others(rows: Sequence[WeekRow], results: Results) -> set[int]:
    """Weeks with few outcomes between their end and a time of another table, and the next ones.

    Both are hidden, so that neither the weeks before nor those after reveal the number by the end.
    Of other analyses of these people, outcomes of the same week must not differ by few either.
    """
    known = KnownCounts(results, *EARLIER, IntervalRow, EffectAtTimeRow)
    elsewhere, found = ShownBefore(results), set()
    for places in grouped(rows, (*RUN, "arm")):
        weeks = [rows[k] for k in places]
        first = {**weeks[0], "side": "before"}
        counts = [number(row.events) for row in weeks]
        if sum(counts) == _total(weeks[0], results):
            others = known.events(first, weeks[0].arm)["outcomes"]
            others += elsewhere.numbers(first, weeks[0].arm)
            for j, by_end in enumerate(accumulate(counts)):
                if is_close(by_end, others, results.least):
                    found |= set(places[j : j + 2])
        for k, row in zip(places, weeks, strict=True):
            before = elsewhere.numbers(first, row.arm, row.week)
            if row.events is not None and is_close(row.events, before, results.least):
                found.add(k)
        for k, row, by_end in zip(places, weeks, accumulate(counts), strict=True):
            if k not in found:
                elsewhere.add(first, row.arm, row.events, row.week)
                elsewhere.add(first, row.arm, by_end)
    return found
