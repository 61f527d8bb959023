"""Counts that are hidden because others of the same meaning would tell small ones by differences.

They work on rows in which a count may be hidden already, and so serve results and their reports.
"""

from collections.abc import Sequence
from typing import Any

from riskset.cohort.small_cells import hide_small, is_small

__all__ = ["RATES", "told_by_others"]

Row = dict[str, Any]
ARMS = ("target", "comparator")
COUNTS = ("persons", "exposures", "outcomes", "competing")
RATES = tuple(
    f"{arm}_{weighted}rate{end}"
    for arm in ARMS
    for weighted in ("", "weighted_")
    for end in ("", "_lower", "_upper")
)
NAMES = tuple(f"{arm}_{word}" for arm in ARMS for word in COUNTS)
PEOPLE = tuple(f"{arm}_{word}" for arm in ARMS for word in COUNTS[:2])


def told_by_others(rows: Sequence[Row], least: int) -> list[set[str]]:
    """Names to hide in each of the rows of a run, of the table of arms or of estimates.

    Levels of a subgroup variable add up to the people of the main estimate; and people before the
    adjustment, which the crude estimate is of, less those after it are those whom it left out. The
    people of the answer stay, so that it is those before whose number is hidden. The outcomes of
    those who were left out are not looked at: effects, rates and curves of both would tell them.
    """
    hidden: list[set[str]] = [set() for _ in rows]
    sides = [_side(row) for row in rows]
    after = next((row for row, side in zip(rows, sides, strict=True) if side == "after"), None)
    if after is None:
        return hidden
    for k, side in enumerate(sides):
        if side == "before":
            hidden[k] |= _close(rows[k], after, PEOPLE, least)
    for variable in dict.fromkeys(row.get("subgroup") for row in rows):
        if variable is not None:
            places = [k for k, row in enumerate(rows) if row.get("subgroup") == variable]
            for k, own in zip(
                places, _levels([rows[k] for k in places], after, least), strict=True
            ):
                hidden[k] |= own
    return hidden


def _side(row: Row) -> str | None:
    """Whether a row is of the people before or after the adjustment."""
    if "side" in row:
        return str(row["side"])
    return {"crude": "before", "main": "after"}.get(row["role"])


def _close(before: Row, after: Row, names: Sequence[str], least: int) -> set[str]:
    known = [n for n in names if None not in (before.get(n), after.get(n))]
    return {name for name in known if is_small(before[name] - after[name], least)}


def _with_what_tells(names: set[str]) -> set[str]:
    """Days times a rate are the outcomes, and so is the detectable ratio less the other arm."""
    hidden = set(names)
    for arm in ARMS:
        if f"{arm}_outcomes" in names:
            hidden |= {"mdrr", "expected_se", *(r for r in RATES if r.startswith(arm))}
    return hidden


def _levels(rows: Sequence[Row], main: Row, least: int) -> list[set[str]]:
    """Names to hide in the levels of a variable."""
    hidden: list[set[str]] = [set() for _ in rows]
    for name in NAMES:
        counts = [main[name], *(row[name] for row in rows)]
        mask = hide_small(counts, [(0, range(1, len(counts)))], least)
        for own, is_hidden in zip(hidden, mask[1:], strict=True):
            own |= _with_what_tells({name}) if is_hidden else set()
    outcomes = [[row[f"{arm}_outcomes"] for arm in ARMS] for row in rows]
    if any(None in own or is_small(sum(own), least) for own in outcomes):
        for own in hidden:
            own.add("interaction_p")
    return hidden
