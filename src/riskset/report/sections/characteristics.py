"""Table 1: characteristics of the arms before and after adjustment, side by side."""

from typing import Any

from riskset.report.markup import Markup
from riskset.report.page import Facts, Page, TableColumn
from riskset.report.source import ReportPart, record
from riskset.results.rows import CharacteristicRow
from riskset.tables.cells import count, count_with_share, fixed, mean_with_sd, median_with_quartiles

__all__ = ["collect", "render"]

NOT_SHOWN = ("adjustment", "number", "item", "covariate_id", "joined", "suppressed")
INDENTED = ("level", "missing")
OVERALL = "overall"
INDENT = "\N{EM SPACE}"
NUMBERS = ("", "_count", "_sd", "_lower", "_upper")
"""Ends of the names of the numbers of an arm."""


def collect(part: ReportPart) -> dict[str, Any]:
    """The lines, in order."""
    names = [name for name in CharacteristicRow.columns() if name not in NOT_SHOWN]
    ordered = sorted(part.adjusted(CharacteristicRow), key=lambda row: row.number)
    has_overall = bool(part.source.options.get("overall"))
    if not has_overall:
        names = [name for name in names if f"_{OVERALL}" not in name]
    lines = [record(row, names) for row in ordered]
    is_sampled = part.adjustment is not None and bool(part.adjustment.sampled)
    return {
        "has_overall": has_overall,
        "weighted": "sampled" if is_sampled else "weighted",
        "tables": {"table1": lines},
    }


def render(page: Page, content: Facts) -> Markup:
    """The table, or why there is none."""
    say, rows = page.say, content["tables"]["table1"]
    if not rows:
        return page.section("characteristics", page.paragraph("characteristics.none"))

    def first(label: str, kind: str) -> str:
        indent = INDENT if kind in INDENTED else ""
        return indent + say(f"characteristics.kind_{kind}", label=label)

    title = say("characteristics.characteristic")
    columns = [TableColumn(title, ("label", "kind"), first, is_number=False)]
    has_after = any(
        row[name] is not None or name in (row.get("suppressed") or {})
        for row in rows
        for name in row
        if name.startswith("after_")
    )
    groups = {OVERALL: say("column.overall")} if content["has_overall"] else {}
    groups |= page.arms
    for side in ("before", "after") if has_after else ("before",):
        group = say(f"side.{side}") if has_after else None
        for of, label in groups.items():
            keys = ("kind", *(f"{side}_{of}{end}" for end in NUMBERS))
            columns.append(TableColumn(label, keys, _cell, group=group))
        smd = say(f"column.{side}_smd")
        columns.append(TableColumn(smd, (f"{side}_smd",), _difference, group=group))
    kinds = {row["kind"] for row in rows}
    return page.section(
        "characteristics",
        page.paragraph("characteristics.words", "note"),
        page.paragraph(f"characteristics.{content['weighted']}", "note")
        if "effective" in kinds
        else None,
        page.paragraph("characteristics.missing", "note") if "missing" in kinds else None,
        page.table(
            "table1",
            say("characteristics.caption" if has_after else "characteristics.caption_before"),
            columns,
            rows,
            sections="section",
        ),
    )


def _cell(
    kind: str,
    value: float | None,
    n: int | None,
    sd: float | None,
    lower: float | None,
    upper: float | None,
) -> str:
    """The numbers of an arm, or of both."""
    if kind == "people":
        return count(n)
    if kind == "effective":
        return fixed(value, 0)
    if kind == "category":
        return ""
    if kind == "mean":
        return mean_with_sd(value, sd)
    if kind == "median":
        return median_with_quartiles(value, lower, upper)
    return count_with_share(n, value)


def _difference(smd: float | None) -> str:
    return "" if smd is None else fixed(smd, 2)
