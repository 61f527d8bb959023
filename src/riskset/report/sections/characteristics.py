"""Table 1: characteristics of the arms before and after adjustment, side by side."""

from collections.abc import Mapping
from typing import Any

from riskset.report.markup import Markup
from riskset.report.number_format import MISSING, percent, significant
from riskset.report.page import Page, TableColumn
from riskset.report.source import ReportPart, ReportSource, record
from riskset.results.rows import CharacteristicRow

__all__ = ["collect", "render"]

ARMS = ("target", "comparator")
NOT_SHOWN = ("adjustment", "number", "covariate_id", "suppressed")


def collect(source: ReportSource, part: ReportPart) -> dict[str, Any]:
    """The lines, in order."""
    rows = source.of_adjustment(CharacteristicRow, part.main.adjustment)
    names = [name for name in CharacteristicRow.columns() if name not in NOT_SHOWN]
    ordered = sorted(rows, key=lambda row: row.number)
    return {"tables": {"table1": [record(row, names) for row in ordered]}}


def render(page: Page, found: Mapping[str, Any], about: Mapping[str, Any]) -> Markup:
    """The table, or why there is none."""
    say, rows = page.say, found["tables"]["table1"]
    title = say("section.characteristics")
    if not rows:
        return page.section("characteristics", title, page.paragraph("characteristics.none"))
    columns = [TableColumn.text(say("characteristics.characteristic"), "label")]
    for side in ("before", "after"):
        group = say(f"side.{side}")
        for arm in ARMS:
            keys = ("kind", f"{side}_{arm}", f"{side}_{arm}_sd")
            columns.append(TableColumn(about[arm], keys, _share_or_mean, group=group))
        columns.append(TableColumn.number(say("balance.smd"), f"{side}_smd", 2, group=group))
    caption = say("characteristics.caption")
    table = page.table("table1", caption, columns, rows, sections="section")
    return page.section(
        "characteristics", title, page.paragraph("characteristics.words", "note"), table
    )


def _share_or_mean(kind: str, value: float | None, sd: float | None) -> str:
    if value is None:
        return MISSING
    if kind == "share":
        return percent(value)
    return significant(value) if sd is None else f"{significant(value)} ({significant(sd)})"
