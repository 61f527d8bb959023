"""Negative controls: what the design finds where there is nothing to be found."""

import math
from collections.abc import Mapping
from typing import Any

from riskset.report.figures.funnel import controls_figure
from riskset.report.markup import Markup, join
from riskset.report.number_format import interval, percent, significant
from riskset.report.page import Page, ReportRow, TableColumn
from riskset.report.sections.main_result import main_estimate
from riskset.report.source import ReportPart, ReportSource, record
from riskset.results.rows import CalibrationRow, ControlRow

__all__ = ["collect", "render"]

FACTS = [
    name
    for name, column in CalibrationRow.columns().items()
    if column.kind != "id" and not name.startswith("error_")
]
CONTROL = (
    "outcome", "true_hr", "hr", "hr_lower", "hr_upper", "se", "p", "calibrated_p", "used", "reason",
)  # fmt: skip


def collect(source: ReportSource, part: ReportPart) -> dict[str, Any]:
    """Controls and calibration of the model of the main estimate."""
    main = main_estimate(source, part)
    keys = {"target": part.target, "comparator": part.comparator, "analysis": part.main.analysis}
    estimate = None
    if main is not None:
        keys |= {"model": main.model, "reading": main.reading}
        if main.effect.hr is not None and main.effect.se is not None:
            estimate = {"hr": main.effect.hr, "se": main.effect.se}
    calibration = source.read(CalibrationRow, **keys)
    return {
        "calibration": record(calibration[0], FACTS) if calibration else None,
        "estimate": estimate,
        "tables": {
            "controls": [
                record(row, CONTROL) | {"label": source.label("outcomes", row.outcome)}
                for row in source.read(ControlRow, **keys)
            ]
        },
    }


def render(page: Page, found: Mapping[str, Any], about: Mapping[str, Any]) -> Markup:
    """Words, figure, table."""
    say, facts, rows = page.say, found["calibration"], found["tables"]["controls"]
    title = say("section.controls")
    if not rows:
        return page.section("controls", title, page.paragraph("controls.none"))
    negative = [r for r in rows if r["true_hr"] == 1]
    return page.section(
        "controls",
        title,
        _words(page, facts, len(negative)),
        _figure(page, found, negative),
        _table(page, rows),
    )


def _words(page: Page, facts: Mapping[str, Any] | None, n: int) -> Markup:
    if facts is None or facts["status"] != "ok":
        used = 0 if facts is None else facts["n_negative"]
        return page.paragraph("controls.too_few", n=page.say.count("control", used))
    say = page.say
    mean = facts["posterior_mean"] if facts["posterior_mean"] is not None else facts["null_mean"]
    sd = facts["posterior_sd"] if facts["posterior_sd"] is not None else facts["null_sd"]
    error = math.exp(mean) - 1
    direction = "controls.high" if error > 0 else "controls.low"
    ease = interval(*(significant(facts[key]) for key in ("ease", "ease_lower", "ease_upper")))
    parts = [
        page.paragraph(
            "controls.words",
            n=say.count("control", facts["n_negative"]),
            tendency=say(direction, percent=percent(abs(error), 2)),
            mean=significant(mean), sd=significant(sd),
        ),
        page.paragraph("controls.ease", ease=ease),
    ]  # fmt: skip
    if facts["coverage"] is not None and facts["calibrated_coverage"] is not None:
        parts.append(
            page.paragraph(
                "controls.coverage",
                before=percent(facts["coverage"], 2),
                after=percent(facts["calibrated_coverage"], 2),
            )
        )
    return join(*parts)


def _figure(page: Page, found: Mapping[str, Any], negative: list[ReportRow]) -> Markup:
    say, facts, own = page.say, found["calibration"], found["estimate"]
    region = None
    if facts is not None and facts["status"] == "ok" and facts["region_se"]:
        ends = (facts[f"region_{name}"] for name in ("se", "lower", "upper"))
        region = list(zip(*ends, strict=True))
    usable = own is not None and own["hr"] and math.isfinite(own["hr"]) and math.isfinite(own["se"])
    estimate = (own["hr"], own["se"]) if usable and own else None
    outside = sum(1 for r in negative if r["used"] and r["p"] is not None and r["p"] < 0.05)
    desc = say("controls.desc", n=len(negative), outside=outside)
    drawn = controls_figure(negative, region, estimate, say, say("controls.title"), desc)
    return page.figure("controls", drawn, say("controls.caption"))


def _table(page: Page, rows: list[ReportRow]) -> Markup:
    say = page.say
    columns = [
        TableColumn.text(say("controls.outcome"), "label"),
        TableColumn.number(say("controls.true"), "true_hr"),
        TableColumn.interval(say("result.hr"), ("hr", "hr_lower", "hr_upper")),
        TableColumn.p(say("result.p"), "p"),
        TableColumn.p(say("controls.calibrated_p"), "calibrated_p"),
        TableColumn.text(
            say("controls.in_use"), "used", lambda v: say("word.yes" if v else "word.no")
        ),
        TableColumn.message(say("controls.why_not"), "reason"),
    ]
    if all(row["true_hr"] == 1 for row in rows):
        columns = [c for c in columns if c.keys != ("true_hr",)]
    if all(row["calibrated_p"] is None for row in rows):
        columns = [c for c in columns if c.keys != ("calibrated_p",)]
    return page.table("controls", say("controls.table"), columns, rows, can_sort=True)
