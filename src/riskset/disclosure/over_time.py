"""What happened by when: curves, risks, numbers at risk, follow-up, weeks, intervals."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from riskset.disclosure.arms import few_outcomes
from riskset.disclosure.people import join_bars, share_parts
from riskset.disclosure.rows import (
    ARMS,
    RUN,
    Named,
    Results,
    RowT,
    grouped,
    known,
    names_hidden,
    number,
    run_of,
    without,
)
from riskset.disclosure.small_cells import hide_totals, is_small
from riskset.results.rows import (
    ArmRow,
    AtRiskRow,
    CurveRow,
    EstimateRow,
    FollowUpBinRow,
    FollowUpEndRow,
    FollowUpRow,
    IntervalRow,
    ProfilePointRow,
    RestrictedMeanRow,
    RiskRow,
    WeekRow,
)

__all__ = [
    "OF_RESTRICTED_MEAN",
    "OF_RISK",
    "KnownOfArm",
    "events_apart",
    "hidden_in_restricted_means",
    "hidden_in_risks",
    "share_at_risk",
    "share_curves",
    "share_effect_over_time",
    "share_ends",
    "share_histogram",
    "share_profiles",
    "share_quantiles",
    "share_restricted_means",
    "share_risks",
    "share_weeks",
    "share_with_effect",
]

CAUSES = {1: "outcomes", 2: "competing"}
SIDES = {True: "after", False: "before"}


def _arms_of(results: Results, row: Named, *, is_adjusted: bool = True) -> ArmRow:
    """The row of the table `arms` that a row of a run belongs to; empty if there is none."""
    arms = results.shown(ArmRow, side=SIDES[is_adjusted], **run_of(row))
    return arms[0] if arms else ArmRow()


def share_curves(rows: Sequence[CurveRow], results: Results) -> Iterator[CurveRow]:
    """Curves up to the time at which an arm has few people, in steps that are not of few events.

    A step of a curve is the number of those with an event over the number at risk. A curve of few
    events in all is left out, for both arms.
    """
    kept: set[int] = set()
    for places in grouped(rows, (*RUN, "adjusted", "cause")):
        first = rows[places[0]]
        counts = _arms_of(results, first, is_adjusted=first.adjusted)
        name = CAUSES[first.cause]
        if any(f"{arm}_{name}" in names_hidden(counts) for arm in ARMS):
            continue
        end = _end(results, first)
        for of_arm in grouped([rows[k] for k in places], ("arm",)):
            here = [places[j] for j in of_arm]
            here = [k for k in here if _has_enough(rows[k], end, results.least)]
            kept |= {here[j] for j in _apart([rows[k] for k in here], results)}
    for k, row in enumerate(rows):
        if k in kept:
            yield row


def _end(results: Results, row: Named, **where: object) -> float:
    """The first time at which few are known to be at risk, in an arm or in any.

    A number that is hidden is at least as large as a later one, because nobody joins an arm after
    time 0. So results that were hidden before do not end at the first number that they hide.
    """
    at_risk = sorted(results.raw(AtRiskRow, **run_of(row), **where), key=lambda one: -one.time)
    short = float("inf")
    for places in grouped(at_risk, ("adjusted", "arm")):
        least = 0
        for one in (at_risk[k] for k in places):
            least = max(least, one.people or 0)
            if least < results.least:
                short = min(short, one.time)
    return short


def _has_enough(row: CurveRow, end: float, least: int) -> bool:
    if row.people is None:  # counts that go along with a curve are never shared
        return row.time < end
    return row.people >= max(least, 1)


def _apart(rows: Sequence[CurveRow], results: Results) -> list[int]:
    """Places of the rows between which there are no few events, nor to other tables."""
    events = [row.events for row in rows if row.events is not None]
    if len(events) < len(rows):
        return list(range(len(rows)))
    if not rows:
        return []
    known_events = _known_events(results, rows[0], rows[0].arm, RiskRow, RestrictedMeanRow)
    return events_apart(events, known_events[CAUSES[rows[0].cause]], results.least)


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
    shown = [0.0, *others]
    found = []
    for k, n in enumerate(events):
        if not _is_close(n, shown, least):
            shown.append(float(n))
            found.append(k)
    return found


def _is_close(count: float, shown: Sequence[float], least: int) -> bool:
    """Whether a count differs by few from one that is shown; NaN does not."""
    return bool(is_small(np.abs(np.array(shown) - count), least).any())


def _known_events(
    results: Results, row: Named, arm: str, *tables: type[RiskRow] | type[RestrictedMeanRow]
) -> dict[str, list[float]]:
    """People of an arm with each kind of event by some time, as the totals and tables reveal."""
    counts = _arms_of(results, row, is_adjusted=row["adjusted"])
    found = {kind: [number(counts[f"{arm}_{kind}"])] for kind in CAUSES.values()}
    keys = {**run_of(row), "adjusted": row["adjusted"]}
    if RiskRow in tables:
        risks = results.shown(RiskRow, **keys)
        found["outcomes"] += [number(risk[f"{arm}_outcomes"]) for risk in risks]
    if RestrictedMeanRow in tables:
        own = results.raw(RestrictedMeanRow, **keys)  # counts that go along are never shared
        shown = results.shown(RestrictedMeanRow, **keys)
        for mean, of_mean in zip(shown, own, strict=True):
            if mean[f"{arm}_mean"] is not None:
                for kind in _kinds_of(mean):
                    found[kind].append(number(of_mean[f"{arm}_{kind}"]))
    return found


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


def share_risks(rows: Sequence[RiskRow], results: Results) -> Iterator[RiskRow]:
    """Risks by a time at which each arm has enough people left, and has had enough outcomes."""
    shared = list(rows)
    for places in grouped(rows, (*RUN, "adjusted")):
        first = rows[places[0]]
        counts = _arms_of(results, first, is_adjusted=first.adjusted)
        keys = {**run_of(first), "adjusted": first.adjusted}
        for arm in ARMS:
            other = KnownOfArm(
                events=_known_events(results, first, arm),
                at_risk=[number(one.people) for one in results.shown(AtRiskRow, arm=arm, **keys)],
                everybody=number(counts[f"{arm}_exposures"]),
                hidden=names_hidden(counts),
            )
            hidden = hidden_in_risks([rows[k] for k in places], arm, results.least, other)
            for k, names in zip(places, hidden, strict=True):
                shared[k] = without(shared[k], names)
    yield from shared


def hidden_in_risks(
    rows: Sequence[Named], arm: str, least: int, other: KnownOfArm
) -> list[set[str]]:
    """Columns to hide in the risks of an arm by several times, of which earlier ones go first.

    Each arm has enough people at risk, and no number of outcomes, of people at risk, or of those
    who left for other reasons differs by few from another one.
    """
    hidden: list[set[str]] = [set() for _ in rows]
    outcomes = [0.0, *other.events["outcomes"]]
    at_risk = [0.0, other.everybody, *other.at_risk]
    has_total = not np.isnan(other.everybody)
    everybody, left = (other.everybody, [0.0]) if has_total else (0.0, [])
    for k in sorted(range(len(rows)), key=lambda k: rows[k]["time"]):
        row, gone = rows[k], names_hidden(rows[k])
        n, people = (number(row[f"{arm}_{name}"]) for name in ("outcomes", "at_risk"))
        # Nobody may be followed so long, so that there is no risk to hide.
        has_risk = row[f"{arm}_risk"] is not None or f"{arm}_risk" in gone
        is_short = has_risk and not (people >= least or f"{arm}_at_risk" in gone)
        if is_short or f"{arm}_outcomes" in other.hidden | gone or _is_close(n, outcomes, least):
            words = ("outcomes", "risk", "lower", "upper") if has_risk else ("outcomes",)
            hidden[k] |= {f"{arm}_{word}" for word in words}
            hidden[k] |= {name for name in OF_RISK if has_risk and name.startswith("difference")}
            n = float("nan")
        others = everybody - people - n
        if is_short or _is_close(people, at_risk, least) or _is_close(others, left, least):
            hidden[k].add(f"{arm}_at_risk")
            people = others = float("nan")
        outcomes.append(n)
        at_risk.append(people)
        left.append(others)
    return hidden


OF_RISK = tuple(
    f"{of}{end}"
    for of, ends in (
        *((f"{arm}_", ("risk", "lower", "upper")) for arm in ARMS),
        ("difference", ("", "_lower", "_upper")),
    )
    for end in ends
)


def share_restricted_means(
    rows: Sequence[RestrictedMeanRow], results: Results
) -> Iterator[RestrictedMeanRow]:
    """Means up to a horizon at which each arm has enough people left, and has had enough events.

    Numbers of people at the horizons are never shared, because they would differ by few from those
    of other tables.
    """
    shared = list(rows)
    for places in grouped(rows, (*RUN, "adjusted")):
        first = rows[places[0]]
        counts = _arms_of(results, first, is_adjusted=first.adjusted)
        for arm in ARMS:
            other = KnownOfArm(
                events=_known_events(results, first, arm, RiskRow),
                hidden=names_hidden(counts),
                end=_end(results, first),
            )
            hidden = hidden_in_restricted_means(
                [rows[k] for k in places], arm, results.least, other
            )
            for k, names in zip(places, hidden, strict=True):
                shared[k] = without(shared[k], names)
    yield from shared


def hidden_in_restricted_means(
    rows: Sequence[Named], arm: str, least: int, other: KnownOfArm
) -> list[set[str]]:
    """Columns to hide in the means of an arm, of which those up to earlier horizons go first.

    The arm has few people at risk at the horizon, or its events by then differ by few from those by
    another time: the difference of means up to two near horizons is a value of the curve. Results
    that were shared before have no counts, and `other.end` decides.
    """
    hidden: list[set[str]] = [set() for _ in rows]
    shown = {kind: [0.0, *events] for kind, events in other.events.items()}
    for k in sorted(range(len(rows)), key=lambda k: rows[k]["time"]):
        row = rows[k]
        if known(row[f"{arm}_mean"]) is None:
            continue
        at_risk, counts = row[f"{arm}_at_risk"], {}
        few = not row["time"] < other.end if at_risk is None else not at_risk >= least
        for kind in _kinds_of(row):
            counts[kind] = number(row[f"{arm}_{kind}"])
            few = few or f"{arm}_{kind}" in other.hidden
            few = few or _is_close(counts[kind], shown[kind], least)
        if few:
            hidden[k] = {f"{arm}_{end}" for end in OF_MEAN} | set(OF_CONTRAST)
        else:
            for kind, n in counts.items():
                shown[kind].append(n)
    return hidden


def _kinds_of(row: Named) -> Sequence[str]:
    """Kinds of events that a restricted mean reveals: all, if it is the time without any event."""
    kinds = {"time_lost": ("outcomes",), "competing_time_lost": ("competing",)}
    return kinds.get(row["measure"], tuple(CAUSES.values()))


OF_MEAN = ("mean", "se", "lower", "upper")
OF_CONTRAST = (
    *(f"difference{end}" for end in ("", "_se", "_lower", "_upper", "_p")),
    *("ratio", "log_ratio_se", "ratio_lower", "ratio_upper", "ratio_p"),
)
OF_RESTRICTED_MEAN = (*(f"{arm}_{end}" for arm in ARMS for end in OF_MEAN), *OF_CONTRAST)


def share_at_risk(rows: Sequence[AtRiskRow], results: Results) -> Iterator[AtRiskRow]:
    """No two numbers at risk of an arm differ by few people, who left in between."""
    names = ("people", "weighted", "effective")
    return _without_near_people(rows, (*RUN, "adjusted", "arm"), "time", names, results.least)


def _without_near_people(
    rows: Sequence[RowT], group: Sequence[str], order: str, names: Sequence[str], least: int
) -> Iterator[RowT]:
    """Rows without the columns `names` where `people` of two times of a group differ by few."""
    hidden: set[int] = set()
    for places in grouped(rows, group):
        places = sorted(places, key=lambda k: -rows[k][order])
        mask = hide_totals([number(rows[k]["people"]) for k in places], least)
        hidden |= {k for k, is_hidden in zip(places, mask, strict=True) if is_hidden}
    for k, row in enumerate(rows):
        yield without(row, names if k in hidden else ())


def share_histogram(rows: Sequence[FollowUpBinRow], results: Results) -> Iterator[FollowUpBinRow]:
    """Bins of an arm joined until none has a small count."""

    def reveals(bar: FollowUpBinRow) -> bool:
        return bool(is_small(bar.people, results.least))

    for places in grouped(rows, (*RUN, "arm")):
        yield from join_bars([rows[k] for k in places], ("people",), "end", reveals)


def share_quantiles(rows: Sequence[FollowUpRow], results: Results) -> Iterator[FollowUpRow]:
    """Quantiles with enough people on both sides: the ends are those of single people.

    A quantile of the potential follow-up also needs enough people who are still at risk then.
    """
    for row in rows:
        n = _arms_of(results, row)[f"{row.arm}_exposures"]
        beyond = 0.0 if n is None else n * min(row.share, 1.0 - row.share)
        if beyond < results.least:
            yield row.changed({"days": None, "potential_days": None})
        elif _has_few_left(row, results):
            yield row.changed({"potential_days": None})
        else:
            yield row


def _has_few_left(row: FollowUpRow, results: Results) -> bool:
    if row.potential_people is not None:
        return row.potential_people < results.least
    # Counts that go along with a quantile are never shared.
    end = _end(results, row, adjusted=True, arm=row.arm)
    return row.potential_days is not None and row.potential_days >= end


def share_ends(rows: Sequence[FollowUpEndRow], results: Results) -> Iterator[FollowUpEndRow]:
    """Reasons for the end, which add up to the people of an arm."""

    def is_known(row: FollowUpEndRow) -> bool:
        counts = _arms_of(results, row)
        return row.count in [counts[f"{row.arm}_{word}"] for word in CAUSES.values()]

    yield from share_parts(rows, results.least, (*RUN, "arm"), "count", is_known)


def share_weeks(rows: Sequence[WeekRow], results: Results) -> Iterator[WeekRow]:
    """Outcomes by week, whose sum is known, and people whose differences would reveal them."""
    group = (*RUN, "arm")

    def has_total(row: WeekRow, total: float) -> bool:
        """Where weeks begin with follow-up, their outcomes are those before the adjustment."""
        counts = _arms_of(results, row, is_adjusted=False)
        return bool(counts[f"{row.arm}_outcomes"] == total)

    events = list(share_parts(rows, results.least, group, "events", has_total=has_total))
    return _without_near_people(events, group, "week", ("people",), results.least)


def share_effect_over_time(rows: Sequence[IntervalRow], results: Results) -> Iterator[IntervalRow]:
    """All intervals or none: those of the others and of the whole time would reveal the last."""
    for places in grouped(rows, RUN):
        intervals = [rows[k] for k in places]
        keys = run_of(intervals[0])
        main = next(iter(results.shown(EstimateRow, role="main", **keys)), EstimateRow())
        counts = [row[f"{arm}_outcomes"] for row in intervals for arm in ARMS]
        is_hidden = any(f"{arm}_outcomes" in names_hidden(main) for arm in ARMS)
        few = few_outcomes(main, results.least)
        if not (is_hidden or few or is_small(counts, results.least).any()):
            yield from intervals


def share_profiles(rows: Sequence[ProfilePointRow], results: Results) -> Iterable[ProfilePointRow]:
    """Profiles of the likelihood, relative to their maximum: all of them.

    They are what a meta-analysis of several databases needs, of imprecise estimates most of all,
    and OHDSI shares them without rules for small cells. The flatness of a profile reveals roughly
    how many outcomes it is based on.
    """
    return rows


def share_with_effect(rows: Sequence[RowT], results: Results) -> Iterator[RowT]:
    """Rows that reveal an effect, which is hidden if both arms together have few outcomes."""
    for row in rows:
        keys = run_of(row) | ({"number": row["number"]} if "number" in row else {"role": "main"})
        if not any(few_outcomes(one, results.least) for one in results.raw(EstimateRow, **keys)):
            yield row
