"""Table 1: characteristics of the arms before and after adjustment, side by side."""

from collections.abc import Mapping
from typing import Any

from riskset.report.markup import Markup
from riskset.report.numerals import MISSING, percent, significant
from riskset.report.page import Column, Page
from riskset.report.source import Part, Source

__all__ = ["collect", "render"]

ARMS = ("target", "comparator")


def collect(source: Source, part: Part) -> dict[str, Any]:
    """The lines, in order."""
    number = part.main["adjustment"]
    rows = [] if number is None else source.rows("table1", adjustment=number)
    return {"tables": {"table1": [_line(row) for row in sorted(rows, key=lambda r: r["number"])]}}


def _line(row: dict[str, Any]) -> dict[str, Any]:
    """A line whose shares and means have names of their own, as they are shown differently."""
    keys = [
        f"{side}_{arm}{end}" for side in ("before", "after") for arm in ARMS for end in ("", "_sd")
    ]
    smds = ("before_smd", "after_smd")
    hidden = {k: v for k, v in row["suppressed"].items() if k in (*keys, *smds)}
    about = {key: row[key] for key in ("section", "label", "kind")}
    return about | {key: row[key] for key in (*keys, *smds)} | {"suppressed": hidden}


def render(page: Page, found: Mapping[str, Any], about: Mapping[str, Any]) -> Markup:
    """The table, or why there is none."""
    say, rows = page.say, found["tables"]["table1"]
    title = say("section.characteristics")
    if not rows:
        return page.section("characteristics", title, page.paragraph("characteristics.none"))
    columns = [Column.text(say("characteristics.characteristic"), "label")]
    for side in ("before", "after"):
        group = say(f"side.{side}")
        for arm in ARMS:
            keys = ("kind", f"{side}_{arm}", f"{side}_{arm}_sd")
            columns.append(Column(about[arm], keys, _share_or_mean, group=group))
        columns.append(Column.number(say("balance.smd"), f"{side}_smd", 2, group=group))
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
