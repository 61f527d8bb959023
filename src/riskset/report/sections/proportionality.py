"""Whether the hazard ratio stays the same over time: the technical part of the outcome model."""

import math
from collections.abc import Mapping
from typing import Any

from riskset.report.figures.over_time import log_log_figure, over_time_figure
from riskset.report.markup import Markup, join
from riskset.report.number_format import interval, significant
from riskset.report.page import Page, ReportRow, TableColumn
from riskset.report.source import ReportPart, ReportSource, record
from riskset.results.rows import CurveRow, EstimateRow, IntervalRow

__all__ = ["collect", "render"]

ARMS = ("target", "comparator")
MOST_POINTS = 60
"""Of a curve; the table has them all."""
RATIO = ("hr", "hr_lower", "hr_upper")
INTERVAL = ("interval", "start", "end", "target_outcomes", "comparator_outcomes", *RATIO)


def collect(source: ReportSource, part: ReportPart, main: EstimateRow | None) -> dict[str, Any]:
    """Adjusted curves of the outcome as log(-log S), and the effect in intervals of time."""
    curves = source.of_run(CurveRow, part.main, adjusted=True, cause=1)
    rows = source.of_run(IntervalRow, part.main)
    return {
        "kind": curves[0].kind if curves else None,
        "constant": main and {key: main[key] for key in RATIO},
        "tables": {
            "log_log": [row for arm in ARMS for row in _log_log(curves, arm)],
            "over_time": [record(row, INTERVAL) for row in rows],
        },
    }


def _log_log(curves: list[CurveRow], arm: str) -> list[ReportRow]:
    """Where log(-log S) is finite; of many points those at which it has moved."""
    out: list[ReportRow] = []
    for row in curves:
        survival = row.value if row.kind == "survival" else 1 - row.value
        if row.arm == arm and row.time > 0 and 0 < survival < 1:
            value = math.log(-math.log(survival))
            out.append({"arm": arm, "time": row.time, "survival": survival, "log_log": value})
    if not out:
        return []
    least = (out[-1]["log_log"] - out[0]["log_log"]) / MOST_POINTS
    kept = out[:1]
    for point in out[1:]:
        if point["log_log"] - kept[-1]["log_log"] > least:
            kept.append(point)
    return kept


def render(page: Page, found: Mapping[str, Any], about: Mapping[str, Any]) -> Markup | None:
    """Both figures, as far as there are numbers."""
    tables = found["tables"]
    points = {
        arm: [(r["time"], r["log_log"]) for r in tables["log_log"] if r["arm"] == arm]
        for arm in ARMS
    }
    parts = []
    if min(map(len, points.values())) > 2:
        parts.append(_log_log_figure(page, found, points, about))
    if tables["over_time"] and found["constant"]["hr"] is not None:
        parts.append(_over_time(page, found, about))
    if not parts:
        return None
    heading = page.heading(page.say("proportional.heading"), "proportional-hazards")
    return join(heading, page.paragraph("proportional.words"), *parts)


def _log_log_figure(
    page: Page,
    found: Mapping[str, Any],
    points: dict[str, list[tuple[float, float]]],
    about: Mapping[str, Any],
) -> Markup:
    say = page.say
    names = {arm: about[arm] for arm in ARMS}
    ends = {arm: own[-1] for arm, own in points.items()}
    desc = say(
        "proportional.log_desc",
        **names,
        t=significant(ends["target"][1]),
        c=significant(ends["comparator"][1]),
        t_days=significant(ends["target"][0], 4),
        c_days=significant(ends["comparator"][0], 4),
    )  # fmt: skip
    title = say("proportional.log_title")
    drawn = log_log_figure(points, names, say, title, desc)
    columns = [
        TableColumn.text(say("result.arm"), "arm", lambda arm: names[arm]),
        TableColumn.number(say("axis.days"), "time", 4),
        TableColumn.number(say(f"proportional.{found['kind']}"), "survival", 4),
        TableColumn.number(say("proportional.log_axis"), "log_log"),
    ]
    data = page.table("log_log", title, columns, found["tables"]["log_log"])
    return page.figure("log-log", drawn, say(f"proportional.log_caption_{found['kind']}"), data)


def _over_time(page: Page, found: Mapping[str, Any], about: Mapping[str, Any]) -> Markup:
    say, rows = page.say, found["tables"]["over_time"]
    title = say("proportional.title")
    constant = significant(found["constant"]["hr"])
    first, last = (
        interval(*(significant(row[key]) for key in RATIO)) for row in (rows[0], rows[-1])
    )
    desc = say("proportional.desc", n=len(rows), first=first, last=last, constant=constant)
    drawn = over_time_figure(rows, found["constant"]["hr"], say, title, desc)
    columns = [
        TableColumn.number(say("proportional.after"), "start", 4),
        TableColumn.number(say("proportional.until"), "end", 4),
        *(
            TableColumn.count(about[arm], f"{arm}_outcomes", say("proportional.outcomes"))
            for arm in ARMS
        ),
        TableColumn.interval(say("result.hr"), RATIO),
    ]
    data = page.table("over_time", title, columns, rows)
    return page.figure("over-time", drawn, say("proportional.caption", constant=constant), data)
