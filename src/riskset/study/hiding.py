"""What of the tables may be shared: without small counts, and without effects that are withheld.

The rules are those of `riskset.cohort.hide_small` and its kin; they work on rows, because the rows
are all that is left of the people.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Any

import numpy as np

from riskset.cohort.attrition_table import hide_attrition
from riskset.cohort.sharing import share_row
from riskset.cohort.small_cells import hide_small, is_small
from riskset.study.hidden_totals import RATES, told_by_others
from riskset.study.results import TABLES

__all__ = ["hide"]

Row = dict[str, Any]
ARMS = ("target", "comparator")
EFFECT = ("hr", "hr_lower", "hr_upper", "log_hr", "se", "p", "one_sided_p", "llr")
OF_CONTROL = (*EFFECT[:-1], "calibrated_p")
COUNT = re.compile(
    r"(?<![\d.,])\d[\d,]*(?= (?:of |(?:and [\d,]+ )?"
    r"(?:people|persons?|rows?|records?|exposures?|events?|outcomes?)))"
)
"""A number of people or of what happened to them, in a sentence."""
IN_ATTRITION = {"death_before_index"}
"""Warnings whose counts the attrition has, which hides them together with others."""
CALIBRATED = tuple(f"calibrated_{name}" for name in EFFECT[:-1])


def hide(name: str, rows: Iterable[Row], least: int) -> Iterator[Row]:
    """Rows of a table as they may be shared.

    Parameters
    ----------
    name : str
        Of the table.
    rows : iterable of dict
        In the order of the table. Columns that are no part of it may help to hide; they go.
    least : int
        Counts above 0 and below it are hidden; 0 hides nothing.
    """
    known = TABLES[name].types
    for row in HIDERS.get(name, _as_they_are)(rows, least):
        yield {column: value for column, value in row.items() if column in known}


def _as_they_are(rows: Iterable[Row], least: int) -> Iterator[Row]:
    yield from rows


def _without(row: Row, names: Iterable[str]) -> Row:
    """The row with columns hidden, and told as hidden."""
    hidden = sorted({name for name in names if row.get(name) is not None})
    return row | dict.fromkeys(hidden) | {"suppressed": ", ".join(hidden)}


def _attrition(rows: Iterable[Row], least: int) -> Iterator[Row]:
    for _, group in groupby(rows, key=lambda row: row["adjustment"]):
        steps = list(group)
        hidden: list[set[str]] = [set() for _ in steps]
        for arm in ARMS:
            names = (f"{arm}_exposures", f"{arm}_persons", f"removed_{arm}")
            known = steps[0]["followed"][arm]
            masks = hide_attrition([[s[n] for s in steps] for n in names], least, known)
            for column, mask in zip(names, masks, strict=True):
                for k in np.flatnonzero(mask):
                    hidden[k].add(column)
        for step, names_hidden in zip(steps, hidden, strict=True):
            yield _without(step, names_hidden)


def _estimates(rows: Iterable[Row], least: int) -> Iterator[Row]:
    for _, group in groupby(rows, key=lambda row: tuple(row[name] for name in RUN)):
        own = list(group)
        told = told_by_others(own, least)
        for row, also in zip(own, told, strict=True):
            shown = share_row(row, min_cell_count=least)
            shown = _without(row, {*also, *shown["suppressed"].split(", ")})
            if any(name in shown["suppressed"].split(", ") for name in EFFECT):
                shown |= dict.fromkeys(CALIBRATED)
            withheld = (*EFFECT, *CALIBRATED, *RATES, "interaction_p") if row["blinded"] else ()
            yield shown | dict.fromkeys(withheld)


def _arms(rows: Iterable[Row], least: int) -> Iterator[Row]:
    for _, group in groupby(rows, key=lambda row: tuple(row[name] for name in RUN)):
        own = list(group)
        for row, also in zip(own, told_by_others(own, least), strict=True):
            shown = share_row(row, min_cell_count=least)
            shown = _without(row, {*also, *filter(None, shown["suppressed"].split(", "))})
            yield shown | dict.fromkeys(RATES if row["blinded"] else ())


def _few_outcomes(names: tuple[str, ...]) -> Callable[[Iterable[Row], int], Iterator[Row]]:
    """What tells an effect that `estimates` hides, because both arms together have few outcomes."""

    def hidden(rows: Iterable[Row], least: int) -> Iterator[Row]:
        for row in rows:
            if not is_small(row["outcomes"], least):
                yield row
            elif names:
                yield row | dict.fromkeys(names)

    return hidden


def _means(sides: tuple[str, ...]) -> Callable[[Iterable[Row], int], Iterator[Row]]:
    """Hide shares whose numerator is small; the number of people of an arm tells it."""

    def hidden(rows: Iterable[Row], least: int) -> Iterator[Row]:
        for row in rows:
            counts = row["counts"]
            gone = []
            for side in sides:
                for arm in ARMS:
                    count = counts.get(f"{side}{arm}")
                    if count is not None and is_small(count, least):
                        gone += [f"{side}mean_{arm}", f"{side}sd_{arm}", f"{side}count_{arm}"]
                        # Without a side these are names of arms.
                        gone += [f"{side}{arm}", f"{side}{arm}_sd"] if side else []
            yield _without(row, gone)

    return hidden


def _outcome_coefficients(rows: Iterable[Row], least: int) -> Iterator[Row]:
    yield from _means(("",))(_few_outcomes(())(rows, least), least)


def _over_time(rows: Iterable[Row], least: int) -> Iterator[Row]:
    """All intervals or none: those of the others and of the whole time would tell the last."""
    for _, group in groupby(rows, key=lambda row: tuple(row[name] for name in RUN)):
        own = list(group)
        if not is_small([row[f"{arm}_outcomes"] for row in own for arm in ARMS], least).any():
            yield from own


def _preference(rows: Iterable[Row], least: int) -> Iterator[Row]:
    """Bars joined until each has no small count, neither of those kept nor of those who went."""
    for _, group in groupby(rows, key=lambda row: (row["adjustment"], row["arm"])):
        yield from _joined(group, ("count", "kept", "weight"), "upper", _tells, least)


def _tells(bar: Row, least: int) -> bool:
    return bool(is_small([bar["kept"], bar["count"] - bar["kept"]], least).any())


def _follow_up(rows: Iterable[Row], least: int) -> Iterator[Row]:
    """Bins of an arm joined until none has a small count."""
    for _, group in groupby(rows, key=lambda row: tuple(row[n] for n in (*RUN, "arm"))):
        yield from _joined(
            group, ("people",), "end", lambda bar, n: bool(is_small(bar["people"], n)), least
        )


def _joined(
    bars: Iterable[Row],
    sums: tuple[str, ...],
    end: str,
    tells: Callable[[Row, int], bool],
    least: int,
) -> Iterator[Row]:
    """Neighbours joined as long as one tells a small count, but not the empty ones at the end."""

    def join(bar: Row, following: Row) -> Row:
        return bar | {n: bar[n] + following[n] for n in sums} | {end: following[end]}

    own = list(bars)
    filled = max((k for k, bar in enumerate(own, 1) if any(bar[n] for n in sums)), default=0)
    joined: list[Row] = []
    for bar in own[:filled]:
        if joined and tells(joined[-1], least):
            joined[-1] = join(joined[-1], bar)
        else:
            joined.append(dict(bar))
    while len(joined) > 1 and tells(joined[-1], least):
        last = joined.pop()
        joined[-1] = join(joined[-1], last)
    for bar in (*joined, *own[filled:]):
        yield _without(bar, sums if tells(bar, least) else ())


def _curves(rows: Iterable[Row], least: int) -> Iterator[Row]:
    """Up to the first time at which an arm has fewer people."""
    for row in rows:
        if row["people"] >= max(least, 1):
            yield row


def _risks(rows: Iterable[Row], least: int) -> Iterator[Row]:
    for row in rows:
        # Where nobody is followed so long there is nothing to hide.
        known = [arm for arm in ARMS if row[f"{arm}_risk"] is not None]
        few = [arm for arm in known if row[f"{arm}_at_risk"] < least]
        names = [f"{arm}_at_risk" for arm in few]
        for arm in ARMS:
            if arm in few or is_small(row[f"{arm}_outcomes"], least):
                names += [f"{arm}_{word}" for word in ("risk", "lower", "upper")]
                names += [f"difference{end}" for end in ("", "_lower", "_upper")]
        shown = _without(row, names)
        if row["blinded"]:
            shown |= dict.fromkeys(n for n in row if n.split("_")[-1] in ("risk", "lower", "upper"))
            shown["difference"] = None
            shown |= {f"{arm}_at_risk": row[f"{arm}_at_risk"] for arm in ARMS if arm not in few}
        yield shown


def _counts(*names: str, beside: tuple[str, ...] = ()) -> Callable[..., Iterator[Row]]:
    """Hide counts, each by itself, and what is shown beside them."""

    def hidden(rows: Iterable[Row], least: int) -> Iterator[Row]:
        for row in rows:
            small = [n for n in names if row[n] is not None and is_small(row[n], least)]
            yield _without(row, [*small, *(beside if small else ())])

    return hidden


def _scores(rows: Iterable[Row], least: int) -> Iterator[Row]:
    """The people whom a score is of, unless those who are followed tell how many were left out."""
    for row in rows:
        yield _without(
            row, [f"n_{arm}" for arm in ARMS if _tells_rest(row, f"n_{arm}", arm, least)]
        )


def _tells_rest(row: Row, name: str, arm: str, least: int) -> bool:
    """Whether a number of people is small, or so near to a number of those left."""
    n = row[name]
    numbers = [] if n is None else [n, *(n - own for own in row["left"][arm])]
    return bool(is_small(numbers, least).any())


def _adjustments(rows: Iterable[Row], least: int) -> Iterator[Row]:
    """Small whole numbers go from the details, too."""

    def shown(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: shown(own) for name, own in value.items()}
        is_count = isinstance(value, int) and not isinstance(value, bool)
        return None if is_count and is_small(value, least) else value

    for own in rows:
        few = [arm for arm in ARMS if _tells_rest(own, f"{arm}_rows", arm, least)]
        row = _without(own, [f"{arm}_{word}" for arm in few for word in ("rows", "effective")])
        details = json.dumps(shown(json.loads(row["details"])), sort_keys=True)
        yield row | {"details": details}


def _parts(by: tuple[str, ...], name: str) -> Callable[[Iterable[Row], int], Iterator[Row]]:
    """Hide counts that add up to the people of an arm, who are known."""

    def hidden(rows: Iterable[Row], least: int) -> Iterator[Row]:
        for _, group in groupby(rows, key=lambda row: tuple(row[n] for n in by)):
            own = list(group)
            counts = [row[name] for row in own]
            mask = hide_small([*counts, sum(counts)], [(len(own), range(len(own)))], least)
            for row, is_hidden in zip(own, mask, strict=False):
                yield _without(row, (name,) if is_hidden else ())

    return hidden


def _sentences(column: str) -> Callable[[Iterable[Row], int], Iterator[Row]]:
    """Sentences without their small counts."""

    def hidden(rows: Iterable[Row], least: int) -> Iterator[Row]:
        def shown(count: re.Match[str]) -> str:
            few = is_small(int(count[0].replace(",", "")), least)
            return f"fewer than {least}" if few else count[0]

        for row in rows:
            text, is_told = row[column], row.get("code") in IN_ATTRITION
            hide = (lambda _: "some") if is_told else shown
            yield row | {column: None if text is None else COUNT.sub(hide, text)}

    return hidden


RUN = ("target", "comparator", "outcome", "analysis")
HIDERS: dict[str, Callable[[Iterable[Row], int], Iterator[Row]]] = {
    "runs": _sentences("reason"),
    "warnings": _sentences("message"),
    "attrition": _attrition,
    "estimates": _estimates,
    "arms": _arms,
    "ps": _scores,
    "ps_coefficients": _means(("",)),
    "ps_flagged": _means(("",)),
    "adjustments": _adjustments,
    "preference": _preference,
    "balance": _means(("before_", "after_")),
    "table1": _means(("before_", "after_")),
    "outcome_coefficients": _outcome_coefficients,
    "outcome_cross_validation": _few_outcomes(()),
    "absolute_risks": _risks,
    "curves": _curves,
    "numbers_at_risk": _counts("people", beside=("weighted", "effective")),
    "follow_up_histogram": _follow_up,
    "follow_up_ends": _parts((*RUN, "arm"), "count"),
    "event_weeks": _counts("events", "people"),
    "calendar": _parts(("target", "comparator", "arm"), "starts"),
    "controls": _few_outcomes(OF_CONTROL),
    "effect_over_time": _over_time,
}
