"""Risks by outcome models: standardised, and doubly robust."""

from typing import Any

from riskset.disclosure.rows import ARMS
from riskset.report.markup import Markup, join
from riskset.report.number_format import percent
from riskset.report.page import Facts, Page, ReportRow, TableColumn
from riskset.report.source import ReportPart, masks, record
from riskset.results.rows import ModelledRiskRow

__all__ = ["collect", "render"]

OF_BOTH = (
    *("difference", "difference_lower", "difference_upper", "difference_p"),
    *("ratio", "ratio_lower", "ratio_upper", "ratio_p"),
)  # fmt: skip
KEYS = (
    "reading", "time", *(f"{arm}_{end}" for arm in ARMS for end in ("risk", "lower", "upper")),
    *OF_BOTH,
)  # fmt: skip


def collect(part: ReportPart) -> dict[str, Any]:
    """Risks of both arms."""
    return {"tables": {"risks": [_row(row) for row in part.read(ModelledRiskRow)]}}


def _row(row: ModelledRiskRow) -> ReportRow:
    out = record(row, KEYS)
    for arm in ARMS:
        name = f"{arm}_risk"
        if row[name] is None and name not in masks(row) and not row.blinded:
            keys = (name, f"{arm}_lower", f"{arm}_upper", *OF_BOTH)
            out["suppressed"] |= dict.fromkeys(keys, "unfollowed")
    return out


def render(page: Page, content: Facts) -> Markup | None:
    """The table, and when which estimate is right."""
    say, rows = page.say, content["tables"]["risks"]
    if not rows:
        return None
    columns = [
        TableColumn(say("modelled_risks.time"), ("time",), page.duration, False),
        *(
            TableColumn.interval(label, (f"{arm}_risk", f"{arm}_lower", f"{arm}_upper"), percent)
            for arm, label in page.arms.items()
        ),
        *page.columns(
            ModelledRiskRow,
            *("difference", "difference_p", "ratio", "ratio_p"),
            difference="modelled_risks.difference",
            difference_p="column.p",
            ratio="modelled_risks.ratio",
            ratio_p="column.p",
        ),
    ]
    shown = [row | {"side": say(f"modelled_risks.{row['reading']}")} for row in rows]
    return join(
        page.heading(say("modelled_risks.heading"), "modelled-risks"),
        page.table("risks", say("modelled_risks.table"), columns, shown, sections="side"),
        page.paragraph("modelled_risks.words", "note"),
    )
