"""Who was studied: what each step left of the arms, and when people started."""

from collections.abc import Iterable
from typing import Any

from riskset.disclosure.rows import ARMS
from riskset.report.figures.attrition import AttritionStep, attrition_figure
from riskset.report.figures.bars import calendar_figure
from riskset.report.markup import Markup, without_spans
from riskset.report.number_format import whole
from riskset.report.page import Facts, Page, ReportRow, TableColumn
from riskset.report.source import ReportPart, masks, record
from riskset.results.rows import AttritionRow, YearRow

__all__ = ["collect", "render"]


def collect(part: ReportPart) -> dict[str, Any]:
    """The steps of the main adjustment and the calendar of the comparison."""
    steps = [record(step) for step in part.adjusted(AttritionRow)]
    comparison = {name: part.main[name] for name in ARMS}
    starts = part.source.read(YearRow, **comparison)
    return {"tables": {"attrition": steps, "calendar": _by_year(starts)}}


def _by_year(starts: Iterable[YearRow]) -> list[ReportRow]:
    years: dict[int, ReportRow] = {}
    for row in starts:
        of_year = years.setdefault(row.year, {"year": row.year, "target": 0, "comparator": 0})
        of_year[row.arm] = row.starts
        for mask in masks(row).values():
            of_year.setdefault("suppressed", {})[row.arm] = mask
    return [years[year] for year in sorted(years)]


def render(page: Page, content: Facts) -> Markup:
    """Boxes, their table, and the calendar."""
    steps, years = content["tables"]["attrition"], content["tables"]["calendar"]
    if not steps:
        return page.section("people", page.paragraph("attrition.none"))
    return page.section("people", _steps(page, steps), _calendar(page, years))


def _steps(page: Page, steps: list[ReportRow]) -> Markup:
    say = page.say
    boxes = []
    for k, row in enumerate(steps):
        left, removed = (
            {arm: page.shown(row, name.format(arm)) for arm in ARMS}
            for name in ("{}_exposures", "removed_{}")
        )
        excluded = say("attrition.removed", **removed) if k else None
        boxes.append(
            AttritionStep(without_spans(row["step"]), left["target"], left["comparator"], excluded)
        )
    twice = any(row[f"{a}_persons"] != row[f"{a}_exposures"] for row in steps for a in ARMS)
    columns = [TableColumn.message(say("attrition.step"), "step")]
    for arm, label in page.arms.items():
        names = [f"{arm}_exposures", f"removed_{arm}"]
        titles = {} if twice else {names[0]: "column.people"}
        persons = [f"{arm}_persons"] if twice else []
        columns += page.columns(AttritionRow, *persons, *names, group=label, **titles)
    return page.figure(
        "attrition",
        attrition_figure(boxes, page.arms.values()),
        page.table("attrition", say("attrition.title"), columns, steps),
        n=len(steps),
        first_t=boxes[0].target,
        first_c=boxes[0].comparator,
        last_t=boxes[-1].target,
        last_c=boxes[-1].comparator,
    )


def _calendar(page: Page, years: list[ReportRow]) -> Markup | None:
    say = page.say
    if not years:
        return page.paragraph("calendar.none", "note")
    bars = [(row["year"], row["target"], row["comparator"]) for row in years]
    columns = [
        TableColumn.text(say("calendar.year"), "year"),
        *(TableColumn(label, (arm,), whole) for arm, label in page.arms.items()),
    ]
    return page.figure(
        "calendar",
        calendar_figure(bars, page.arms, say),
        page.table("calendar", say("calendar.title"), columns, years),
        first=years[0]["year"],
        last=years[-1]["year"],
    )
