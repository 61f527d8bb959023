"""What happened by when: curves, risks, restricted means, numbers at risk, follow-up."""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from riskset.disclosure.arms import few_outcomes, reveals_an_arm
from riskset.disclosure.known_counts import (
    CAUSES,
    KnownCounts,
    KnownOfArm,
    arms_of,
    events_apart,
    is_close,
    kinds_of,
)
from riskset.disclosure.people import share_parts
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
from riskset.disclosure.same_people import ShownBefore, side_of
from riskset.disclosure.small_cells import hide_totals, is_small
from riskset.results.columns import ResultRow
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
    "hidden_in_modelled_risks",
    "hidden_in_restricted_means",
    "hidden_in_risks",
    "share_at_risk",
    "share_curve_tests",
    "share_curves",
    "share_ends",
    "share_histogram",
    "share_modelled_risks",
    "share_profiles",
    "share_quantiles",
    "share_restricted_means",
    "share_risks",
    "share_with_effect",
    "without_near_people",
]

OF_CURVE_TEST = ("statistic", "p", "rho", "gamma")


def share_curves(rows: Sequence[CurveRow], results: Results) -> Iterator[CurveRow]:
    """Curves up to the time at which an arm has few people, in steps that are not of few events.

    A step of a curve is the number of those with an event over the number at risk. A curve of few
    events in all is left out, for both arms.
    """
    kept: set[int] = set()
    elsewhere = ShownBefore(results, followed=True)
    tables = (RiskRow, RestrictedMeanRow, ModelledRiskRow, IntervalRow, EffectAtTimeRow, WeekRow)
    known_counts = KnownCounts(results, *tables)
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
            kept |= {here[j] for j in _apart([rows[k] for k in here], known_counts, elsewhere)}
    for k, row in enumerate(rows):
        if k in kept:
            yield row


def share_curve_tests(rows: Sequence[CurveTestRow], results: Results) -> Iterator[CurveTestRow]:
    """Tests of people whose estimate is shared.

    After adjustment both arms together need enough outcomes, and before it each of them, as for a
    crude estimate.
    """
    for row in rows:
        counts = results.raw(ArmRow, side=side_of(row), **run_of(row))
        few = not counts or any(few_outcomes(one, results.least) for one in counts)
        hidden = names_hidden(arms_of(results, row, is_adjusted=row.adjusted))
        main = results.raw(EstimateRow, role="main", **run_of(row))
        if not row.adjusted or any(reveals_an_arm(one, results) for one in main):
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


def _apart(rows: Sequence[CurveRow], known: KnownCounts, elsewhere: ShownBefore) -> list[int]:
    """Places of the rows between which there are no few events, nor to other tables."""
    events = [row.events for row in rows if row.events is not None]
    if len(events) < len(rows):
        return list(range(len(rows)))
    if not rows:
        return []
    first, kind = rows[0], CAUSES[rows[0].cause]
    others = known.events(first, first.arm)[kind] + elsewhere.numbers(first, first.arm, kind)
    found = events_apart(events, others, known.least)
    for k in found:
        elsewhere.add(first, first.arm, events[k], kind)
    return found


HiddenInEstimates = Callable[[Sequence[Named], str, int, KnownOfArm], list[set[str]]]
"""Columns to hide in the rows of an arm."""


def share_risks(rows: Sequence[RiskRow], results: Results) -> Iterator[RiskRow]:
    """Risks by a time at which each arm has enough people left, and has had enough outcomes."""
    shared, elsewhere = list(rows), ShownBefore(results)
    known_counts, of_arm = KnownCounts(results), ("outcomes", "at_risk")
    for places in grouped(rows, (*RUN, "adjusted")):
        first = rows[places[0]]
        counts = arms_of(results, first, is_adjusted=first.adjusted)
        for arm in ARMS:
            events, at_risk = known_counts.events(first, arm), known_counts.at_risk(first, arm)
            if arm != ARMS[0] and is_cloned(results, first):
                end = _nested_until(results, first)
                both = [shared[k] for k in places if shared[k].time <= end]
                at_risk += [number(one[f"{ARMS[0]}_at_risk"]) for one in both]
                events["outcomes"] += [number(one[f"{ARMS[0]}_outcomes"]) for one in both]
            events["outcomes"] += elsewhere.numbers(first, arm, "outcomes")
            other = KnownOfArm(
                events=events,
                at_risk=[*at_risk, *elsewhere.numbers(first, arm, "at_risk")],
                everybody=number(counts[f"{arm}_exposures"]),
                hidden=names_hidden(counts),
            )
            hidden = hidden_in_risks([rows[k] for k in places], arm, results.least, other)
            for k, names in zip(places, hidden, strict=True):
                shared[k] = without(shared[k], names)
        for k, arm, name in itertools.product(places, ARMS, of_arm):
            elsewhere.add(first, arm, shared[k][f"{arm}_{name}"], name)
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
        if is_short or f"{arm}_outcomes" in other.hidden | gone or is_close(n, outcomes, least):
            words = ("outcomes", "risk", "lower", "upper") if has_risk else ("outcomes",)
            hidden[k] |= {f"{arm}_{word}" for word in words}
            hidden[k] |= {name for name in OF_RISK if has_risk and name.startswith("difference")}
            n = float("nan")
        others = everybody - people - n
        if is_short or is_close(people, at_risk, least) or is_close(others, left, least):
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
    tables: Sequence[type[ResultRow]],
) -> Iterator[RowT]:
    """Rows of estimates up to some times without the numbers that a rule hides.

    `tables` are those from which readers know numbers of events.
    """
    shared, elsewhere = list(rows), ShownBefore(results, followed=True)
    known_counts = KnownCounts(results, *tables)
    for places in grouped(rows, (*RUN, *also)):
        first = rows[places[0]]
        counts = arms_of(results, first, is_adjusted=side_of(first) == "after")
        for arm in ARMS:
            events = known_counts.events(first, arm)
            for kind in events:
                events[kind] += elsewhere.numbers(first, arm, kind)
            other = KnownOfArm(events=events, hidden=names_hidden(counts), end=_end(results, first))
            hidden = rule([rows[k] for k in places], arm, results.least, other)
            for k, names in zip(places, hidden, strict=True):
                shared[k] = without(shared[k], names)
                if not names:
                    for kind in kinds_of(rows[k]):
                        elsewhere.add(first, arm, rows[k][f"{arm}_{kind}"], kind)
    yield from shared


def hidden_in_restricted_means(
    rows: Sequence[Named], arm: str, least: int, other: KnownOfArm
) -> list[set[str]]:
    """Columns to hide in the means of an arm, of which those up to earlier horizons go first.

    The arm has few people at risk at the horizon, or its events by then differ by few from those by
    another time: the difference of means up to two near horizons is a value of the curve. Results
    that were shared before have no counts, and `other.end` decides.
    """
    return _hidden_in_estimates(rows, arm, least, other, "mean", kinds_of)


def hidden_in_modelled_risks(
    rows: Sequence[Named], arm: str, least: int, other: KnownOfArm
) -> list[set[str]]:
    """Columns to hide in risks by outcome models; see `hidden_in_restricted_means`."""
    return _hidden_in_estimates(rows, arm, least, other, "risk", kinds_of)


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
            few = few or is_close(counts[kind], shown[kind], least)
        if few:
            ends = (value, "se", "lower", "upper")
            hidden[k] = {f"{arm}_{end}" for end in ends} | set(OF_CONTRAST)
        else:
            for kind, n in counts.items():
                shown[kind].append(n)
    return hidden


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
    names = ("people", "weighted", "effective")
    return without_near_people(rows, (*RUN, "adjusted"), "time", names, results)


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


def without_near_people(
    rows: Sequence[RowT],
    group: Sequence[str],
    order: str,
    names: Sequence[str],
    results: Results,
    side: Mapping[str, object] | None = None,
) -> Iterator[RowT]:
    """Rows without the columns `names` where `people` of two times of an arm differ by few.

    They must not differ by few from those of other analyses of these people either. If
    everybody has a clone in each arm, numbers of both arms must not differ by few either. With a
    `side`, which the rows do not name, the table of numbers at risk is known.
    """
    hidden: set[int] = set()
    elsewhere, known_counts = ShownBefore(results), KnownCounts(results)
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
        first = {**rows[places[0]], **(side or {})}
        others: list[float] = []
        for arm in dict.fromkeys(rows[k]["arm"] for k in places):
            others += elsewhere.numbers(first, arm)
            others += known_counts.at_risk(first, arm) if side else []
        counts = [number(rows[k]["people"]) for k in places]
        # Everybody is at risk at the start, except those who enter late.
        everybody = arms_of(results, first, is_adjusted=side_of(first) == "after")
        people = [everybody[f"{rows[places[0]]['arm']}_exposures"]]
        totals = [*counts, *(number(n) for n in people if n is not None)]
        mask = hide_totals(totals, results.least, others=[n for n in others if n == n])[
            : len(counts)
        ]
        hidden |= {k for k, is_hidden in zip(places, mask, strict=True) if is_hidden}
        for k, n, is_hidden in zip(places, counts, mask, strict=True):
            if not is_hidden:
                elsewhere.add(first, rows[k]["arm"], n)
    for k, row in enumerate(rows):
        yield without(row, names if k in hidden else ())


def share_histogram(rows: Sequence[FollowUpBinRow], results: Results) -> Iterator[FollowUpBinRow]:
    """Bins of an arm joined until no numbers of people by their ends differ by few.

    These are people who have left by then: everybody less those at risk, and in other analyses.
    """
    elsewhere, known_counts = ShownBefore(results), KnownCounts(results)
    for places in grouped(rows, (*RUN, "arm")):
        bins = [rows[k] for k in places]
        counts = [bar.people for bar in bins if bar.people is not None]
        if len(counts) < len(bins):  # hidden already
            yield from bins
            continue
        first, by_end = bins[0], np.cumsum(counts)
        at_risk = known_counts.at_risk(first, first.arm)
        others = [by_end[-1] - n for n in at_risk] + elsewhere.numbers(first, first.arm)
        ends = events_apart(by_end, [*others, by_end[-1]], results.least)
        start = 0
        for end in dict.fromkeys([*ends, len(bins) - 1]):
            people = sum(counts[start : end + 1])
            bar = bins[start].changed({"end": bins[end].end, "people": people})
            yield without(bar, ("people",) if is_small(people, results.least) else ())
            elsewhere.add(first, first.arm, float(by_end[end]))
            start = end + 1


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

    elsewhere, shared = ShownBefore(results), list(rows)
    for places in grouped(rows, (*RUN, "arm")):
        own = [rows[k] for k in places]
        near = {j for j, row in enumerate(own) if _is_near_ends(row, elsewhere, results.least)}
        parts = share_parts(own, results.least, (*RUN, "arm"), "count", is_known, also=near)
        for k, row in zip(places, parts, strict=True):
            is_hidden = row.count is None
            shared[k] = row
            elsewhere.add(row, row.arm, rows[k].count, row.reason, is_hidden)
    yield from shared


def _is_near_ends(row: FollowUpEndRow, elsewhere: ShownBefore, least: int) -> bool:
    """Whether a count differs by few from one of these people, or stands for one that is hidden."""
    if row.count is None:
        return False
    shown, gone = (elsewhere.numbers(row, row.arm, row.reason, is_hidden) for is_hidden in (0, 1))
    return is_close(row.count, shown, least) or any(abs(row.count - n) < least for n in gone)


def share_profiles(rows: Sequence[ProfilePointRow], results: Results) -> Iterator[ProfilePointRow]:
    """Profiles of the likelihood, relative to their maximum: all of them.

    They are what a meta-analysis of several databases needs, of imprecise estimates most of all,
    and OHDSI shares them without rules for small cells. The flatness of a profile reveals roughly
    how many outcomes it is based on. That of odds or rates without weights, sets and covariates
    reveals the outcomes of an arm exactly, so it is left out if these are hidden.
    """
    for places in grouped(rows, RUN):
        main = results.raw(EstimateRow, role="main", **run_of(rows[places[0]]))
        if not any(reveals_an_arm(one, results) for one in main):
            yield from (rows[k] for k in places)


def share_with_effect(rows: Sequence[RowT], results: Results) -> Iterator[RowT]:
    """Rows that reveal an effect, which is hidden if both arms together have few outcomes."""
    for row in rows:
        keys = run_of(row) | ({"number": row["number"]} if "number" in row else {"role": "main"})
        if not any(few_outcomes(one, results.least) for one in results.raw(EstimateRow, **keys)):
            yield row
