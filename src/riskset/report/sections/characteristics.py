"""Table 1: characteristics of the arms before and after adjustment, side by side."""

from typing import Any

from riskset.report.markup import Markup
from riskset.report.number_format import MISSING, percent, significant
from riskset.report.page import Facts, Page, TableColumn
from riskset.report.source import ReportPart, record
from riskset.results.rows import CharacteristicRow

__all__ = ["collect", "render"]

NOT_SHOWN = ("adjustment", "number", "covariate_id", "suppressed")


def collect(part: ReportPart) -> dict[str, Any]:
    """The lines, in order."""
    names = [name for name in CharacteristicRow.columns() if name not in NOT_SHOWN]
    ordered = sorted(part.adjusted(CharacteristicRow), key=lambda row: row.number)
    return {"tables": {"table1": [record(row, names) for row in ordered]}}


def render(page: Page, content: Facts) -> Markup:
    """The table, or why there is none."""
    say, rows = page.say, content["tables"]["table1"]
    if not rows:
        return page.section("characteristics", page.paragraph("characteristics.none"))
    columns = [TableColumn.text(say("characteristics.characteristic"), "label")]
    for side in ("before", "after"):
        group = say(f"side.{side}")
        for arm, label in page.arms.items():
            keys = ("kind", f"{side}_{arm}", f"{side}_{arm}_sd")
            columns.append(TableColumn(label, keys, _share_or_mean, group=group))
        columns.append(TableColumn.number(say(f"column.{side}_smd"), f"{side}_smd", 2, group))
    return page.section(
        "characteristics",
        page.paragraph("characteristics.words", "note"),
        page.table("table1", say("characteristics.caption"), columns, rows, sections="section"),
    )


def _share_or_mean(kind: str, value: float | None, sd: float | None) -> str:
    if value is None:
        return MISSING
    if kind == "share":
        return percent(value)
    return significant(value) if sd is None else f"{significant(value)} ({significant(sd)})"
