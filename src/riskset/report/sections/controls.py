"""Negative controls: estimates of effects that do not exist, and the error that they reveal."""

import math
from collections.abc import Sequence
from typing import Any

from riskset.report.figures.funnel import controls_figure
from riskset.report.figures.lines import coverage_figure
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
    "outcome", "true_hr", "hr", "hr_lower", "hr_upper", "se", "p", "calibrated_hr",
    "calibrated_hr_lower", "calibrated_hr_upper", "calibrated_p", "null_mean_without",
    "null_sd_without", "used", "reason",
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
    controls = source.read(ControlRow, **keys)
    return {
        "calibration": calibration and record(calibration, FACTS),
        "estimate": estimate,
        "tables": {
            "controls": [
                record(row, CONTROL) | {"label": source.label("outcomes", row.outcome)}
                for row in controls
            ],
            "coverage": _coverage(controls),
        },
    }


def _coverage(controls: Sequence[ControlRow]) -> list[ReportRow]:
    """For levels of confidence, shares of the negative controls whose intervals have 1 inside.

    These are the normal intervals, and those that are calibrated by all other controls. An interval
    has 1 inside if p is at least 1 less its level.
    """
    p, calibrated = [], []
    for row in controls:
        is_known = row.hr and row.se and math.isfinite(row.hr) and math.isfinite(row.se)
        if row.true_hr == 1 and row.used and row.calibrated_p is not None and is_known:
            assert row.hr is not None
            assert row.se is not None
            p.append(math.erfc(abs(math.log(row.hr)) / row.se / math.sqrt(2)))
            calibrated.append(row.calibrated_p)
    if not p:
        return []
    return [
        {
            "level": level,
            "before": sum(one >= 1 - level for one in p) / len(p),
            "after": sum(one >= 1 - level for one in calibrated) / len(calibrated),
        }
        for level in (k / 100 for k in range(1, 100))
    ]


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
        _coverage_figure(page, content["tables"]["coverage"]),
        _without(page, rows),
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


def _figure(page: Page, content: Facts, negative: list[ReportRow]) -> Markup | None:
    """The funnel, if a control has an estimate that can be drawn."""
    facts, main = content["calibration"], content["estimate"]
    if not any(row["hr"] and row["se"] and math.isfinite(row["hr"]) for row in negative):
        return None
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


def _coverage_figure(page: Page, rows: list[ReportRow]) -> Markup | None:
    say = page.say
    if not rows:
        return None
    columns = [
        TableColumn(say("coverage.level"), ("level",), lambda v: percent(v, 2)),
        TableColumn(say("coverage.before"), ("before",), percent),
        TableColumn(say("coverage.after"), ("after",), percent),
    ]
    at = next(row for row in rows if row["level"] == 0.95)
    return page.figure(
        "coverage",
        coverage_figure(rows, say),
        page.table("coverage", say("coverage.table"), columns, rows),
        before=percent(at["before"], 2),
        after=percent(at["after"], 2),
    )


def _without(page: Page, rows: list[ReportRow]) -> Markup | None:
    """How far a single control decides about the systematic error."""
    known = [row for row in rows if row["null_mean_without"] is not None]
    if not known:
        return None
    words = {}
    for name in ("mean", "sd"):
        values = [row[f"null_{name}_without"] for row in known]
        low, high = significant(min(values)), significant(max(values))
        is_one = low == high
        words[name] = low if is_one else page.say("controls.between", low=low, high=high)
    return page.paragraph("controls.without", **words)


def _table(page: Page, rows: list[ReportRow]) -> Markup:
    say = page.say
    names = ["hr", "p"]
    if any(row["true_hr"] != 1 for row in rows):
        names.insert(0, "true_hr")
    columns = [
        TableColumn.text(say("controls.outcome"), "label"),
        *page.columns(ControlRow, *names),
    ]
    if any(row["calibrated_p"] is not None for row in rows):
        group = say("controls.by_others")
        titles = {name: f"column.of_{name}" for name in ("calibrated_hr", "calibrated_p")}
        columns += page.columns(ControlRow, *titles, group=group, **titles)
        columns.append(TableColumn.number(say("controls.mean"), "null_mean_without", group=group))
    columns += [
        TableColumn.text(
            say("controls.in_use"), "used", lambda v: say("word.yes" if v else "word.no")
        ),
        TableColumn.message(say("controls.why_not"), "reason"),
    ]
    return page.table("controls", say("controls.table"), columns, rows, can_sort=True)
