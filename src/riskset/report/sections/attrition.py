"""Who was studied: what each step left of the arms, and when people started."""

from collections.abc import Mapping
from typing import Any

from riskset.report.figures.attrition import AttritionStep, attrition_figure
from riskset.report.figures.bars import calendar_figure
from riskset.report.markup import Markup, without_spans
from riskset.report.number_format import whole
from riskset.report.page import Page, ReportRow, TableColumn
from riskset.report.source import ReportPart, ReportSource, masks, record
from riskset.results.rows import AttritionRow, YearRow

__all__ = ["collect", "render"]


def collect(source: ReportSource, part: ReportPart) -> dict[str, Any]:
    """The steps of the main adjustment and the calendar of the comparison."""
    steps = source.of_adjustment(AttritionRow, part.main.adjustment)
    starts = source.read(YearRow, target=part.target, comparator=part.comparator)
    return {"tables": {"attrition": [record(step) for step in steps], "calendar": _by_year(starts)}}


def _by_year(starts: list[YearRow]) -> list[ReportRow]:
    years: dict[int, ReportRow] = {}
    for row in starts:
        of_year = years.setdefault(row.year, {"year": row.year, "target": 0, "comparator": 0})
        of_year[row.arm] = row.starts
        for mask in masks(row).values():
            of_year.setdefault("suppressed", {})[row.arm] = mask
    return [years[year] for year in sorted(years)]


def render(page: Page, found: Mapping[str, Any], about: Mapping[str, Any]) -> Markup:
    """Boxes, their table, and the calendar."""
    say = page.say
    steps, years = found["tables"]["attrition"], found["tables"]["calendar"]
    if not steps:
        return page.section("people", say("section.people"), page.paragraph("attrition.none"))
    return page.section(
        "people", say("section.people"), _steps(page, steps, about), _calendar(page, years, about)
    )


def _shown(page: Page, row: Mapping[str, Any], key: str) -> str:
    mask = row.get("suppressed", {}).get(key)
    return page.hidden(mask) if mask else whole(row[key])


def _steps(page: Page, steps: list[ReportRow], about: Mapping[str, Any]) -> Markup:
    say = page.say
    twice = any(
        row[f"{arm}_persons"] != row[f"{arm}_exposures"]
        for row in steps
        for arm in ("target", "comparator")
    )
    boxes = [
        AttritionStep(
            without_spans(row["step"]),
            _shown(page, row, "target_exposures"),
            _shown(page, row, "comparator_exposures"),
            None if k == 0 else _removed(page, row),
        )
        for k, row in enumerate(steps)
    ]
    first, last = boxes[0], boxes[-1]
    desc = say(
        "attrition.desc",
        target=about["target"],
        comparator=about["comparator"],
        n=len(steps),
        first_t=first.target,
        first_c=first.comparator,
        last_t=last.target,
        last_c=last.comparator,
    )
    names = (about["target"], about["comparator"])
    drawn = attrition_figure(boxes, names, say("attrition.title"), desc)
    columns = [TableColumn.message(say("attrition.step"), "step")]
    for arm in ("target", "comparator"):
        if twice:
            columns.append(
                TableColumn.count(say("attrition.persons"), f"{arm}_persons", about[arm])
            )
        columns.append(
            TableColumn.count(
                say("attrition.rows" if twice else "attrition.people"),
                f"{arm}_exposures",
                about[arm],
            )
        )
        columns.append(TableColumn.count(say("attrition.left"), f"removed_{arm}", about[arm]))
    data = page.table("attrition", say("attrition.table"), columns, steps)
    return page.figure("attrition", drawn, say("attrition.caption"), data)


def _removed(page: Page, row: Mapping[str, Any]) -> str:
    shown = {arm: _shown(page, row, f"removed_{arm}") for arm in ("target", "comparator")}
    return page.say("attrition.removed", **shown)


def _calendar(page: Page, years: list[ReportRow], about: Mapping[str, Any]) -> Markup | None:
    say = page.say
    if not years:
        return page.paragraph("calendar.none", "note")
    names = {arm: about[arm] for arm in ("target", "comparator")}
    desc = say("calendar.desc", first=years[0]["year"], last=years[-1]["year"])
    bars = [(row["year"], row["target"], row["comparator"]) for row in years]
    drawn = calendar_figure(bars, names, say, say("calendar.title"), desc)
    columns = [
        TableColumn.text(say("calendar.year"), "year"),
        *(TableColumn.count(names[arm], arm) for arm in ("target", "comparator")),
    ]
    data = page.table("calendar", say("calendar.title"), columns, years)
    return page.figure("calendar", drawn, say("calendar.caption"), data)
