"""Negative controls: estimates of effects that do not exist, and the error that they reveal."""

import math
from typing import Any

from riskset.report.figures.funnel import controls_figure
from riskset.report.markup import Markup, join
from riskset.report.number_format import percent, significant, with_limits
from riskset.report.page import Facts, Page, ReportRow, TableColumn
from riskset.report.source import ReportPart, first, record
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
REGION = ("region_se", "region_lower", "region_upper")


def collect(part: ReportPart) -> dict[str, Any]:
    """Controls and calibration of the model of the main estimate."""
    source, main = part.source, part.estimate
    keys = {name: part.main[name] for name in ("target", "comparator", "analysis")}
    estimate = None
    if main is not None:
        keys |= {"model": main.model, "reading": main.reading}
        if main.effect.hr is not None and main.effect.se is not None:
            estimate = {"hr": main.effect.hr, "se": main.effect.se}
    calibration = first(source.read(CalibrationRow, **keys))
    return {
        "calibration": calibration and record(calibration, FACTS),
        "estimate": estimate,
        "tables": {
            "controls": [
                record(row, CONTROL) | {"label": source.label("outcomes", row.outcome)}
                for row in source.read(ControlRow, **keys)
            ]
        },
    }


def render(page: Page, content: Facts) -> Markup:
    """Words, figure, table."""
    rows = content["tables"]["controls"]
    if not rows:
        return page.section("controls", page.paragraph("controls.none"))
    negative = [r for r in rows if r["true_hr"] == 1]
    return page.section(
        "controls",
        _words(page, content["calibration"]),
        _figure(page, content, negative),
        _table(page, rows),
    )


def _words(page: Page, facts: Facts | None) -> Markup:
    say = page.say
    if facts is None or facts["status"] != "ok":
        used = 0 if facts is None else facts["n_negative"]
        return page.paragraph("controls.too_few", n=say.count("control", used))
    mean, sd = (
        facts[f"null_{name}"] if facts[f"posterior_{name}"] is None else facts[f"posterior_{name}"]
        for name in ("mean", "sd")
    )
    error = math.exp(mean) - 1
    direction = "controls.high" if error > 0 else "controls.low"
    tendency = say(direction, percent=percent(abs(error), 2))
    values = {"mean": significant(mean), "sd": significant(sd), "tendency": tendency}
    coverage = [facts["coverage"], facts["calibrated_coverage"]]
    before, after = (percent(share, 2) for share in coverage)
    return join(
        page.paragraph("controls.words", n=say.count("control", facts["n_negative"]), **values),
        page.paragraph("controls.ease", ease=with_limits(facts, "ease")),
        page.paragraph("controls.coverage", before=before, after=after)
        if None not in coverage
        else None,
    )


def _figure(page: Page, content: Facts, negative: list[ReportRow]) -> Markup:
    facts, main = content["calibration"], content["estimate"]
    region = None
    if facts is not None and facts["status"] == "ok" and facts["region_se"]:
        region = list(zip(*(facts[name] for name in REGION), strict=True))
    is_usable = main and main["hr"] and math.isfinite(main["hr"]) and math.isfinite(main["se"])
    estimate = (main["hr"], main["se"]) if is_usable else None
    return page.figure(
        "controls",
        controls_figure(negative, region, estimate, page.say),
        n=len(negative),
        outside=sum(1 for r in negative if r["used"] and r["p"] is not None and r["p"] < 0.05),
    )


def _table(page: Page, rows: list[ReportRow]) -> Markup:
    say = page.say
    names = ["hr", "p"]
    if any(row["true_hr"] != 1 for row in rows):
        names.insert(0, "true_hr")
    if any(row["calibrated_p"] is not None for row in rows):
        names.append("calibrated_p")
    columns = [
        TableColumn.text(say("controls.outcome"), "label"),
        *page.columns(ControlRow, *names),
        TableColumn.text(
            say("controls.in_use"), "used", lambda v: say("word.yes" if v else "word.no")
        ),
        TableColumn.message(say("controls.why_not"), "reason"),
    ]
    return page.table("controls", say("controls.table"), columns, rows, can_sort=True)
