"""Numbers of people before any outcome: attrition, scores, adjustments, years, diagnostics."""

import json
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from riskset.disclosure.rows import ARMS, RUN, Results, RowT, grouped, keys_of, run_of, without
from riskset.disclosure.sentences import shared_reason
from riskset.disclosure.small_cells import hide_attrition, hide_small, is_near, is_small
from riskset.results.rows import (
    TABLES,
    AdjustmentRow,
    AttritionRow,
    BalanceRow,
    DiagnosticRow,
    EstimateRow,
    PreferenceRow,
    RunRow,
    ScoreRow,
    YearRow,
)

__all__ = [
    "join_bars",
    "share_adjustments",
    "share_attrition",
    "share_calendar",
    "share_data",
    "share_diagnostics",
    "share_parts",
    "share_preference",
    "share_scores",
]

DETAILS = ("caliper", "crump", "method", "reversed", "sd")
"""Of what an adjustment found: limits that follow from everybody, and no counts."""

SAME = 1e-9
"""Relative difference of two numbers that are the same but for rounding."""


def share_attrition(rows: Sequence[AttritionRow], results: Results) -> Iterator[AttritionRow]:
    """No two numbers of people that are shown differ by a small count."""
    hidden: list[set[str]] = [set() for _ in rows]
    for places in grouped(rows, ("adjustment",)):
        followed = _estimates_of(results, "crude", adjustment=rows[places[0]].adjustment)
        adjustment = rows[places[0]].adjustment
        for arm in ARMS:
            names = (f"{arm}_exposures", f"{arm}_persons", f"removed_{arm}")
            known = [row[name] for row in followed for name in names[:2] if row[name] is not None]
            counts = [[rows[k][name] for k in places] for name in names]
            others = [
                _answers_of_others(results, adjustment, arm, name)
                for name in ("exposures", "persons")
            ]
            masks = hide_attrition(counts, results.least, known, others)
            for name, mask in zip(names, masks, strict=True):
                for k, is_hidden in zip(places, mask, strict=True):
                    hidden[k] |= {name} if is_hidden else set()
    yield from map(without, rows, hidden)


def _answers_of_others(results: Results, adjustment: int, arm: str, name: str) -> list[float]:
    """Numbers of other main estimates of the same exposure and outcomes, of one kind.

    Other analyses and comparisons may begin with the same people.
    """
    found = [results.raw(RunRow, **{f"{kind}adjustment": adjustment}) for kind in ("", "shared_")]
    runs = {keys_of(run, RUN): run for part in found for run in part}
    arms = dict.fromkeys((run.outcome, run[arm]) for run in runs.values())
    return [
        row[f"{other}_{name}"]
        for outcome, exposure in arms
        for other in ARMS
        for row in results.raw(EstimateRow, role="main", outcome=outcome, **{other: exposure})
        if keys_of(row, RUN) not in runs and row[f"{other}_{name}"] is not None
    ]


def _estimates_of(results: Results, *roles: str, **where: object) -> list[EstimateRow]:
    """Estimates of the runs with an adjustment or a propensity score."""
    runs = results.raw(RunRow, **where)
    estimates = [row for run in runs for row in results.raw(EstimateRow, **run_of(run))]
    return [row for row in estimates if row.role in roles]


def share_scores(rows: Sequence[ScoreRow], results: Results) -> Iterator[ScoreRow]:
    """Numbers of people of a score, unless the people followed reveal how many were left out."""
    least = results.least
    for row in rows:
        followed = _estimates_of(results, "crude", "main", ps=row.ps)
        hidden: set[str] = set()
        sizes = (row.n_target, row.n_comparator)
        for arm, n in zip(ARMS, sizes, strict=True):
            if _reveals_rest(n, followed, arm, least):
                hidden.add(f"n_{arm}")
            if _is_small(n, least):
                # Without covariates the model reveals the share of an arm. A proportion of all
                # people does, too: with few numbers to choose from, one alone makes it whole.
                hidden |= {"intercept", "log_likelihood", "auc", "auc_lower", "auc_upper"}
                hidden.add("equipoise")
        if row.equipoise is not None and None not in sizes:
            total = sum(n for n in sizes if n is not None)
            if is_near(round(row.equipoise * total), total, least):
                hidden.add("equipoise")
        yield without(row, hidden).changed(shared_reason(row, least))


def _reveals_rest(n: float | None, followed: Sequence[EstimateRow], arm: str, least: int) -> bool:
    """Whether a number of rows is small, or so near to a number of those who are followed."""
    left = [row[f"{arm}_exposures"] for row in followed]
    numbers = [] if n is None else [n, *(n - m for m in left if m is not None)]
    return bool(is_small(numbers, least).any())


def share_adjustments(rows: Sequence[AdjustmentRow], results: Results) -> Iterator[AdjustmentRow]:
    """Sizes, and the largest differences if they are those of covariates that are shown."""
    for row in rows:
        # An adjustment of the people whom outcomes share reveals how many each of them leaves out.
        followed = _estimates_of(results, "crude", "main", shared_adjustment=row.adjustment)
        hidden = _unknown_summaries(row, results)
        for arm in ARMS:
            if _reveals_rest(row[f"{arm}_rows"], followed, arm, results.least):
                hidden |= {f"{arm}_rows", f"{arm}_effective"}
        details = json.loads(row.details or "{}")
        kept = {name: details[name] for name in DETAILS if name in details}
        yield without(row, hidden).changed({"details": json.dumps(kept, sort_keys=True)})


def _is_small(count: float | None, least: int) -> bool:
    return count is not None and bool(is_small(count, least))


def _unknown_summaries(row: AdjustmentRow, results: Results) -> set[str]:
    """Largest differences and smallest p that no covariate shown has."""
    of = results.shown(BalanceRow, adjustment=row.adjustment)
    hidden = set()
    for side in ("before", "after"):
        if not _has(row[f"{side}_max"], [one[f"{side}_smd"] for one in of]):
            hidden |= {f"{side}_max"}
    if row.pairwise_max is not None:  # between treatments of any comparison
        every = results.shown(BalanceRow)
        if not _has(row.pairwise_max, [one.after.smd for one in every]):
            hidden |= {"pairwise_max"}
    n = row.n_covariates or 0
    smallest = [one.after.p for one in of if one.after.p is not None]
    if not _has(row.after_min_p, [min(1.0, n * min(smallest))] if smallest else []):
        hidden.add("after_min_p")
    general = [one[f"generalisability_{arm}"] for one in of for arm in (*ARMS, "both")]
    if not _has(row.generalisability_max, general):
        hidden.add("generalisability_max")
    return hidden


def _has(value: float | None, others: Sequence[float | None]) -> bool:
    known = [abs(other) for other in others if other is not None]
    return value is not None and any(math.isclose(value, k, rel_tol=SAME) for k in known)


def share_diagnostics(rows: Sequence[DiagnosticRow], results: Results) -> Iterator[DiagnosticRow]:
    """Values that are shown where they come from; verdicts stay."""
    for row in rows:
        yield row if _is_shown_elsewhere(row, results) else row.changed({"value": None})


def _is_shown_elsewhere(row: DiagnosticRow, results: Results) -> bool:
    run = run_of(row)
    if row.value is None or row.name == "ease":
        return True
    if row.name in ESTIMATED:
        main = results.shown(EstimateRow, role="main", **run)
        return any(one[ESTIMATED[row.name]] is not None for one in main)
    of = next(iter(results.raw(RunRow, **run)), RunRow())
    of_run, table, column = OF_PEOPLE.get(row.name, ("", "", ""))
    number = of.get(of_run)
    if not table or number is None:
        return False
    key = of_run.removeprefix("shared_")
    return any(one[column] is not None for one in results.shown(TABLES[table], **{key: number}))


ESTIMATED = {"mdrr": "mdrr", "proportional_hazards": "proportionality_p"}
OF_PEOPLE = {
    "balance": ("adjustment", "adjustments", "after_max"),
    "shared_balance": ("shared_adjustment", "adjustments", "after_max"),
    "equipoise": ("ps", "ps", "equipoise"),
    "generalisability": ("shared_adjustment", "adjustments", "generalisability_max"),
}
"""Diagnostics -> the number of a run that leads to them, and the table and column they are from."""


def share_preference(rows: Sequence[PreferenceRow], results: Results) -> Iterator[PreferenceRow]:
    """Bars joined until each has no small count, neither of those kept nor of those who went."""
    least = results.least

    def reveals(bar: PreferenceRow) -> bool:
        return bool(is_small([bar.kept or 0, (bar.count or 0) - (bar.kept or 0)], least).any())

    for places in grouped(rows, ("adjustment", "arm")):
        bars = [rows[k] for k in places]
        yield from join_bars(bars, ("count", "kept", "weight"), "upper", reveals)


def join_bars(
    bars: Sequence[RowT], sums: tuple[str, ...], end: str, reveals: Callable[[RowT], bool]
) -> Iterator[RowT]:
    """Neighbours joined as long as one reveals a small count, but not the empty ones at the end.

    Bars of an arm of which one is hidden already, as no joining helps, stay as they are.
    """
    if any(bar[name] is None for bar in bars for name in sums):
        yield from bars
        return

    def join(bar: RowT, following: RowT) -> RowT:
        return bar.changed({n: bar[n] + following[n] for n in sums} | {end: following[end]})

    filled = max((k for k, bar in enumerate(bars, 1) if any(bar[n] for n in sums)), default=0)
    joined: list[RowT] = []
    for bar in bars[:filled]:
        if joined and reveals(joined[-1]):
            joined[-1] = join(joined[-1], bar)
        else:
            joined.append(bar)
    while len(joined) > 1 and reveals(joined[-1]):
        last = joined.pop()
        joined[-1] = join(joined[-1], last)
    for bar in (*joined, *bars[filled:]):
        yield without(bar, sums if reveals(bar) else ())


def share_data(data: Mapping[str, Any], results: Results) -> dict[str, Any]:
    """``data`` of ``study.json`` without numbers of rows that reveal how few are in no arm."""
    firsts = results.raw(AttritionRow, number=1)
    pairs = [[row[f"{arm}_exposures"] for arm in ARMS] for row in firsts]
    totals = [sum(pair) for pair in pairs if None not in pair]

    def shown(rows: int | None) -> int | None:
        if rows is None or not results.least:
            return rows
        return None if any(is_small(rows - total, results.least) for total in totals) else rows

    sources = [{**one, "rows": shown(one.get("rows"))} for one in data.get("sources") or ()]
    return {**data, "sources": sources}


def share_calendar(rows: Sequence[YearRow], results: Results) -> Iterator[YearRow]:
    """Years, whose people add up to the people of an arm, who are known."""
    yield from share_parts(rows, results.least, ("target", "comparator", "arm"), "starts")


def share_parts(
    rows: Sequence[RowT],
    least: int,
    group: Sequence[str],
    name: str,
    known: Callable[[RowT], bool] = lambda row: False,
    has_total: Callable[[RowT, float], bool] = lambda row, total: True,
    also: Collection[int] = (),
) -> Iterator[RowT]:
    """Counts in the column `name` that add up, within a group, to a total that readers know.

    `known` says whether the count of a row appears elsewhere, too, and `has_total` whether readers
    know the sum of a group, by its first row and the sum. `also` are places of counts to hide for
    another reason.
    """
    hidden: set[int] = set()
    for places in grouped(rows, group):
        counts = [rows[k][name] for k in places]
        if None in counts:  # hidden already, together with those that would reveal it
            hidden |= {k for k, n in zip(places, counts, strict=True) if _is_small(n, least)}
            continue
        fixed = [j for j, k in enumerate(places) if known(rows[k])]
        total = len(counts)
        has_known_total = has_total(rows[places[0]], sum(counts))
        equation = [(total, range(total))] if has_known_total else []
        more = [j for j, k in enumerate(places) if k in also]
        mask = hide_small([*counts, sum(counts)], equation, least, [*fixed, total], more)
        hidden |= {k for k, is_hidden in zip(places, mask, strict=False) if is_hidden}
    for k, row in enumerate(rows):
        yield without(row, (name,) if k in hidden else ())
