"""What happened by when: curves, risks, numbers at risk, follow-up, weeks, intervals."""

from bisect import insort
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import TypeVar

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
from riskset.disclosure.same_people import ShownBefore, analyses_of
from riskset.disclosure.small_cells import hide_totals, is_near_shown, is_small
from riskset.results.rows import (
    ArmRow,
    AtRiskRow,
    CurveRow,
    CurveTestRow,
    DeviationRow,
    EffectAtTimeRow,
    EstimateRow,
    FollowUpBinRow,
    FollowUpEndRow,
    FollowUpRow,
    IntervalRow,
    ModelledRiskRow,
    ProfilePointRow,
    RestrictedMeanRow,
    RiskRow,
    RunRow,
    WeekRow,
)

__all__ = [
    "OF_CURVE_TEST",
    "OF_MODELLED_RISK",
    "OF_RESTRICTED_MEAN",
    "OF_RISK",
    "KnownOfArm",
    "arms_of",
    "events_apart",
    "hidden_in_modelled_risks",
    "hidden_in_restricted_means",
    "hidden_in_risks",
    "share_at_risk",
    "share_curve_tests",
    "share_curves",
    "share_effect_at_times",
    "share_effect_over_time",
    "share_ends",
    "share_histogram",
    "share_modelled_risks",
    "share_profiles",
    "share_quantiles",
    "share_restricted_means",
    "share_risks",
    "share_weeks",
    "share_with_effect",
]

OF_CURVE_TEST = ("statistic", "p", "rho", "gamma")
CAUSES = {1: "outcomes", 2: "competing"}
SIDES = {True: "after", False: "before"}
IntervalOrStep = TypeVar("IntervalOrStep", IntervalRow, EffectAtTimeRow)


def arms_of(results: Results, row: Named, *, is_adjusted: bool = True) -> ArmRow:
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
        counts = arms_of(results, first, is_adjusted=first.adjusted)
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


def share_curve_tests(rows: Sequence[CurveTestRow], results: Results) -> Iterator[CurveTestRow]:
    """Tests of people whose estimate is shared.

    After adjustment both arms together need enough outcomes, and before it each of them, as for a
    crude estimate.
    """
    for row in rows:
        counts = results.raw(ArmRow, side=SIDES[row.adjusted], **run_of(row))
        few = not counts or any(few_outcomes(one, results.least) for one in counts)
        hidden = names_hidden(arms_of(results, row, is_adjusted=row.adjusted))
        if not row.adjusted:
            few = few or any(f"{arm}_outcomes" in hidden for arm in ARMS)
        yield without(row, OF_CURVE_TEST if few else ())


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
    tables = (RiskRow, RestrictedMeanRow, ModelledRiskRow)
    known_events = _known_events(results, rows[0], rows[0].arm, *tables)
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
    shown = sorted(n for n in (0.0, *others) if not np.isnan(n))
    found = []
    for k, n in enumerate(events):
        if not is_near_shown(float(n), shown, least):
            found.append(k)
            if not np.isnan(n):
                insort(shown, float(n))
    return found


def _is_close(count: float, shown: Sequence[float], least: int) -> bool:
    """Whether a count differs by few from one that is shown; NaN does not."""
    return bool(is_small(np.abs(np.array(shown) - count), least).any())


def _known_events(
    results: Results,
    row: Named,
    arm: str,
    *tables: type[RiskRow | RestrictedMeanRow | ModelledRiskRow],
    is_adjusted: bool | None = None,
) -> dict[str, list[float]]:
    """People of an arm with each kind of event by some time, as the totals and tables reveal."""
    is_adjusted = row["adjusted"] if is_adjusted is None else is_adjusted
    about = {**run_of(row), "adjusted": is_adjusted}
    analyses = (row["analysis"], *analyses_of(about, results))
    found: dict[str, list[float]] = {kind: [] for kind in CAUSES.values()}
    for name in analyses:
        counts = arms_of(results, about | {"analysis": name}, is_adjusted=is_adjusted)
        for kind, known_events in found.items():
            known_events.append(number(counts[f"{arm}_{kind}"]))
    keys = {**run_of(row), "adjusted": is_adjusted}
    if RiskRow in tables:
        risks = [
            r for name in analyses for r in results.shown(RiskRow, **keys | {"analysis": name})
        ]
        found["outcomes"] += [number(risk[f"{arm}_outcomes"]) for risk in risks]
    if RestrictedMeanRow in tables:
        own = results.raw(RestrictedMeanRow, **keys)  # counts that go along are never shared
        shown = results.shown(RestrictedMeanRow, **keys)
        for mean, of_mean in zip(shown, own, strict=True):
            if mean[f"{arm}_mean"] is not None:
                for kind in _kinds_of(mean):
                    found[kind].append(number(of_mean[f"{arm}_{kind}"]))
    if ModelledRiskRow in tables and is_adjusted:
        of_models = results.raw(ModelledRiskRow, **run_of(row))
        seen = results.shown(ModelledRiskRow, **run_of(row))
        for risk, of_risk in zip(seen, of_models, strict=True):
            if risk[f"{arm}_risk"] is not None:
                found["outcomes"].append(number(of_risk[f"{arm}_outcomes"]))
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


HiddenInEstimates = Callable[[Sequence[Named], str, int, KnownOfArm], list[set[str]]]
"""Columns to hide in the rows of an arm."""


def share_risks(rows: Sequence[RiskRow], results: Results) -> Iterator[RiskRow]:
    """Risks by a time at which each arm has enough people left, and has had enough outcomes."""
    shared, elsewhere = list(rows), ShownBefore(results)
    for places in grouped(rows, (*RUN, "adjusted")):
        first = rows[places[0]]
        counts = arms_of(results, first, is_adjusted=first.adjusted)
        at_risk = {
            arm: [number(one.people) for one in _at_risk(results, first, arm)] for arm in ARMS
        }
        events = {arm: _known_events(results, first, arm) for arm in ARMS}
        for arm in ARMS:
            if arm != ARMS[0] and is_cloned(results, first):
                end = _nested_until(results, first)
                both = [shared[k] for k in places if shared[k].time <= end]
                at_risk[arm] += [number(one[f"{ARMS[0]}_at_risk"]) for one in both]
                events[arm]["outcomes"] += [number(one[f"{ARMS[0]}_outcomes"]) for one in both]
            events[arm]["outcomes"] += elsewhere.numbers(first, f"{arm}_outcomes")
            other = KnownOfArm(
                events=events[arm],
                at_risk=[*at_risk[arm], *elsewhere.numbers(first, f"{arm}_at_risk")],
                everybody=number(counts[f"{arm}_exposures"]),
                hidden=names_hidden(counts),
            )
            hidden = hidden_in_risks([rows[k] for k in places], arm, results.least, other)
            for k, names in zip(places, hidden, strict=True):
                shared[k] = without(shared[k], names)
        for k in places:
            counts_of = [f"{arm}_{name}" for arm in ARMS for name in ("outcomes", "at_risk")]
            elsewhere.add(first, {name: shared[k][name] for name in counts_of})
    yield from shared


def _at_risk(results: Results, row: Named, arm: str) -> list[AtRiskRow]:
    """Numbers at risk of an arm that are shown, in all analyses of these people."""
    own = {**run_of(row), "adjusted": row["adjusted"], "arm": arm}
    names = (row["analysis"], *analyses_of(row, results))
    return [one for name in names for one in results.shown(AtRiskRow, **own | {"analysis": name})]


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
    rule = hidden_in_restricted_means
    yield from _share_estimates(rows, results, rule, ("adjusted",), (RiskRow,))


def share_modelled_risks(
    rows: Sequence[ModelledRiskRow], results: Results
) -> Iterator[ModelledRiskRow]:
    """Risks by outcome models, by the rule of restricted means."""
    tables = (RiskRow, RestrictedMeanRow)
    yield from _share_estimates(rows, results, hidden_in_modelled_risks, (), tables)


def _share_estimates(
    rows: Sequence[RowT],
    results: Results,
    rule: HiddenInEstimates,
    also: Sequence[str],
    tables: Sequence[type[RiskRow | RestrictedMeanRow]],
) -> Iterator[RowT]:
    """Rows of estimates up to some times without the numbers that a rule hides.

    `tables` are those from which readers know numbers of events.
    """
    shared = list(rows)
    for places in grouped(rows, (*RUN, *also)):
        first = rows[places[0]]
        is_adjusted = bool(first["adjusted"]) if also else True
        counts = arms_of(results, first, is_adjusted=is_adjusted)
        for arm in ARMS:
            other = KnownOfArm(
                events=_known_events(results, first, arm, *tables, is_adjusted=is_adjusted),
                hidden=names_hidden(counts),
                end=_end(results, first),
            )
            hidden = rule([rows[k] for k in places], arm, results.least, other)
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
    return _hidden_in_estimates(rows, arm, least, other, "mean", _kinds_of)


def hidden_in_modelled_risks(
    rows: Sequence[Named], arm: str, least: int, other: KnownOfArm
) -> list[set[str]]:
    """Columns to hide in risks by outcome models; see `hidden_in_restricted_means`."""
    return _hidden_in_estimates(rows, arm, least, other, "risk", lambda _: ("outcomes",))


def _hidden_in_estimates(
    rows: Sequence[Named],
    arm: str,
    least: int,
    other: KnownOfArm,
    value: str,
    kinds_of: Callable[[Named], Sequence[str]],
) -> list[set[str]]:
    hidden: list[set[str]] = [set() for _ in rows]
    shown = {kind: [0.0, *events] for kind, events in other.events.items()}
    for k in sorted(range(len(rows)), key=lambda k: rows[k]["time"]):
        row = rows[k]
        if known(row[f"{arm}_{value}"]) is None:
            continue
        at_risk, counts = row[f"{arm}_at_risk"], {}
        few = not row["time"] < other.end if at_risk is None else not at_risk >= least
        for kind in kinds_of(row):
            counts[kind] = number(row[f"{arm}_{kind}"])
            few = few or f"{arm}_{kind}" in other.hidden
            few = few or _is_close(counts[kind], shown[kind], least)
        if few:
            ends = (value, "se", "lower", "upper")
            hidden[k] = {f"{arm}_{end}" for end in ends} | set(OF_CONTRAST)
        else:
            for kind, n in counts.items():
                shown[kind].append(n)
    return hidden


def _kinds_of(row: Named) -> Sequence[str]:
    """Kinds of events that a restricted mean reveals: all, if it is the time without any event."""
    kinds = {"competing_time_lost": ("competing",)} | dict.fromkeys(
        ("risk", "time_lost"), ("outcomes",)
    )
    return kinds.get(row["measure"], tuple(CAUSES.values()))


OF_CONTRAST = (
    *(f"difference{end}" for end in ("", "_se", "_lower", "_upper", "_p")),
    *("ratio", "log_ratio_se", "ratio_lower", "ratio_upper", "ratio_p"),
)
OF_RESTRICTED_MEAN, OF_MODELLED_RISK = (
    (*(f"{arm}_{end}" for arm in ARMS for end in (value, "se", "lower", "upper")), *OF_CONTRAST)
    for value in ("mean", "risk")
)


def share_at_risk(rows: Sequence[AtRiskRow], results: Results) -> Iterator[AtRiskRow]:
    """No two numbers at risk of an arm differ by few people, who left in between."""
    names, elsewhere = ("people", "weighted", "effective"), ShownBefore(results)
    return _without_near_people(rows, (*RUN, "adjusted"), "time", names, results, elsewhere)


def is_cloned(results: Results, row: Named) -> bool:
    """Whether the people of both arms are the same: differences of the arms are counts, too."""
    return any(run.cloned for run in results.raw(RunRow, **run_of(row)))


def _nested_until(results: Results, row: Named) -> float:
    """A time until which the people of one arm are among those of the other, their clones.

    Until then, nobody has deviated in one of the arms.
    """
    rows = results.raw(DeviationRow, **run_of(row))
    ends = []
    for arm in ARMS:
        own = [one for one in rows if one.arm == arm and one.deviations != 0]
        first = min(own, key=lambda one: one.start, default=None)
        ends.append(float("inf") if first is None or first.end is None else first.end)
    return max(ends)


def _without_near_people(
    rows: Sequence[RowT],
    group: Sequence[str],
    order: str,
    names: Sequence[str],
    results: Results,
    elsewhere: ShownBefore | None = None,
) -> Iterator[RowT]:
    """Rows without the columns `names` where `people` of two times of an arm differ by few.

    They differ neither by few from those of other analyses of these people, if there are some. If
    everybody has a clone in each arm, numbers of both arms must not differ by few either.
    """
    hidden: set[int] = set()
    together = [
        places
        for of_both in grouped(rows, group)
        for places in (
            [of_both]
            if is_cloned(results, rows[of_both[0]])
            else [[of_both[j] for j in own] for own in grouped([rows[k] for k in of_both], ["arm"])]
        )
    ]
    for places in together:
        places = sorted(places, key=lambda k: -rows[k][order])
        first = rows[places[0]]
        arms = dict.fromkeys(rows[k]["arm"] for k in places)
        others = [n for arm in arms for n in (elsewhere.numbers(first, arm) if elsewhere else [])]
        counts = [number(rows[k]["people"]) for k in places]
        mask = hide_totals(counts, results.least, others=others)
        hidden |= {k for k, is_hidden in zip(places, mask, strict=True) if is_hidden}
        for k, n, is_hidden in zip(places, counts, mask, strict=True):
            if elsewhere and not is_hidden:
                elsewhere.numbers(first, rows[k]["arm"]).append(n)
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
        n = arms_of(results, row)[f"{row.arm}_exposures"]
        beyond = 0.0 if n is None else n * min(row.share, 1.0 - row.share)
        if beyond < results.least:
            yield row.changed({"days": None, "entry_days": None, "potential_days": None})
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
        counts = arms_of(results, row)
        return row.count in [counts[f"{row.arm}_{word}"] for word in CAUSES.values()]

    elsewhere, near = ShownBefore(results), set()
    for k, row in enumerate(rows):
        if elsewhere.near(row, ("count",), row.arm, row.reason):
            near.add(k)
        else:
            elsewhere.add(row, {"count": row.count}, row.arm, row.reason)
    yield from share_parts(rows, results.least, (*RUN, "arm"), "count", is_known, also=near)


def share_weeks(rows: Sequence[WeekRow], results: Results) -> Iterator[WeekRow]:
    """Outcomes by week, whose sum is known, and people whose differences would reveal them."""
    group = (*RUN, "arm")

    def has_total(row: WeekRow, total: float) -> bool:
        """Where weeks begin with follow-up, their outcomes are those before the adjustment."""
        counts = arms_of(results, row, is_adjusted=False)
        return bool(counts[f"{row.arm}_outcomes"] == total)

    events = list(share_parts(rows, results.least, group, "events", has_total=has_total))
    return _without_near_people(events, RUN, "week", ("people",), results)


def share_effect_over_time(
    rows: Sequence[IntervalOrStep], results: Results
) -> Iterator[IntervalOrStep]:
    """All intervals or none: those of the others and of the whole time would reveal the last.

    Times of a smooth function have no outcomes of their own.
    """
    for places in grouped(rows, RUN):
        intervals = [rows[k] for k in places]
        keys = run_of(intervals[0])
        main = next(iter(results.shown(EstimateRow, role="main", **keys)), EstimateRow())
        counts = [row[f"{arm}_outcomes"] or 0 for row in intervals for arm in ARMS]
        is_hidden = any(f"{arm}_outcomes" in names_hidden(main) for arm in ARMS)
        few = few_outcomes(main, results.least)
        if not (is_hidden or few or is_small(counts, results.least).any()):
            yield from intervals


def share_effect_at_times(
    rows: Sequence[EffectAtTimeRow], results: Results
) -> Iterator[EffectAtTimeRow]:
    """Steps as intervals are; no counts if an arm had few outcomes between an end and another time.

    A ratio reveals no count, but those of steps and of other intervals have differences.
    """
    counts = tuple(f"{arm}_outcomes" for arm in ARMS)
    for places in grouped(rows, RUN):
        own = [rows[k] for k in places]
        is_known = all(row[name] is not None for row in own for name in counts)
        hidden = counts if is_known and _is_near_others(own, results) else ()
        yield from (without(row, hidden) for row in share_effect_over_time(own, results))


def _is_near_others(steps: Sequence[EffectAtTimeRow], results: Results) -> bool:
    """Whether outcomes by the end of a step differ by few from those that other tables show."""
    tables = (RiskRow, RestrictedMeanRow, ModelledRiskRow)
    intervals = results.shown(IntervalRow, **run_of(steps[0]))
    for arm in ARMS:
        name = f"{arm}_outcomes"
        shown = _known_events(results, steps[0], arm, *tables, is_adjusted=True)["outcomes"]
        shown += np.cumsum([row[name] for row in intervals]).tolist()
        by_end = np.cumsum([row[name] for row in steps])
        if any(_is_close(count, shown, results.least) for count in by_end.tolist()):
            return True
    return False


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
