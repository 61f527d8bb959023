"""Whether the hazard ratio stays the same over time: the technical part of the outcome model."""

import math
from typing import Any

from riskset.disclosure.rows import ARMS
from riskset.report.figures.over_time import log_log_figure, over_time_figure
from riskset.report.markup import Markup, join
from riskset.report.number_format import significant, whole, with_limits
from riskset.report.page import Facts, Page, ReportRow, TableColumn
from riskset.report.source import ReportPart, record
from riskset.results.rows import CurveRow, IntervalRow

__all__ = ["collect", "render"]

MOST_POINTS = 60
"""Of a curve; the table has them all."""
RATIO = ("hr", "hr_lower", "hr_upper")
INTERVAL = ("interval", "start", "end", "target_outcomes", "comparator_outcomes", *RATIO)
Points = dict[str, list[tuple[float, float]]]


def collect(part: ReportPart) -> dict[str, Any]:
    """Adjusted curves of the outcome as log(-log S), and the effect in intervals of time."""
    curves = part.read(CurveRow, adjusted=True, cause=1)
    main = part.estimate
    return {
        "kind": curves[0].kind if curves else None,
        "constant": main and {key: main[key] for key in RATIO},
        "tables": {
            "log_log": [row for arm in ARMS for row in _log_log(curves, arm)],
            "over_time": [record(row, INTERVAL) for row in part.read(IntervalRow)],
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


def render(page: Page, content: Facts) -> Markup | None:
    """Both figures, as far as there are numbers."""
    rows = content["tables"]["log_log"]
    points = {
        arm: [(row["time"], row["log_log"]) for row in rows if row["arm"] == arm] for arm in ARMS
    }
    parts = []
    if min(map(len, points.values())) > 2:
        parts.append(_log_log_figure(page, content["kind"], rows, points))
    if content["tables"]["over_time"] and content["constant"]["hr"] is not None:
        parts.append(_over_time(page, content["tables"]["over_time"], content["constant"]["hr"]))
    if not parts:
        return None
    heading = page.heading(page.say("proportional.heading"), "proportional-hazards")
    return join(heading, page.paragraph("proportional.words"), *parts)


def _log_log_figure(page: Page, kind: str, rows: list[ReportRow], points: Points) -> Markup:
    say = page.say
    columns = [
        page.arm_column(),
        TableColumn.number(say("axis.days"), "time", 4),
        TableColumn.number(say(f"log_log.of_{kind}"), "survival", 4),
        TableColumn.number(say("log_log.axis"), "log_log"),
    ]
    (t_days, t), (c_days, c) = (points[arm][-1] for arm in ARMS)
    return page.figure(
        "log_log",
        log_log_figure(points, page.arms, say),
        page.table("log_log", say("log_log.title"), columns, rows),
        method=say(f"log_log.{kind}"),
        t=significant(t),
        c=significant(c),
        t_days=significant(t_days, 4),
        c_days=significant(c_days, 4),
    )


def _over_time(page: Page, rows: list[ReportRow], constant: float) -> Markup:
    say = page.say
    group = say("column.outcomes")
    columns = [
        TableColumn.number(say("column.start"), "start", 4),
        TableColumn.number(say("column.end"), "end", 4),
        *(
            TableColumn(label, (f"{arm}_outcomes",), whole, group=group)
            for arm, label in page.arms.items()
        ),
        *page.columns(IntervalRow, "hr"),
    ]
    return page.figure(
        "over_time",
        over_time_figure(rows, constant, say),
        page.table("over_time", say("over_time.title"), columns, rows),
        n=len(rows),
        first=with_limits(rows[0], "hr"),
        last=with_limits(rows[-1], "hr"),
        constant=significant(constant),
    )
