"""Whether the hazard ratio stays the same over time: the technical part of the outcome model."""

import math
from typing import Any

from riskset.disclosure.rows import ARMS
from riskset.report.figures.over_time import (
    log_log_figure,
    over_time_figure,
    time_effect_figure,
)
from riskset.report.markup import Markup, join
from riskset.report.number_format import p_with_sign, significant, whole, with_limits
from riskset.report.page import Facts, Page, ReportRow, TableColumn
from riskset.report.source import ReportPart, record
from riskset.results.rows import CurveRow, EffectAtTimeRow, IntervalRow, TimeEffectRow

__all__ = ["collect", "render"]

MOST_POINTS = 60
"""Of a curve; the table has them all."""
RATIO = ("hr", "hr_lower", "hr_upper")
INTERVAL = ("interval", "start", "end", "target_outcomes", "comparator_outcomes", *RATIO)
AT_TIME = ("number", "start", "time", "target_outcomes", "comparator_outcomes", *RATIO)
TIME_EFFECT = ("function", "interval", "df", "statistic", "p")
Points = dict[str, list[tuple[float, float]]]


def collect(part: ReportPart) -> dict[str, Any]:
    """Adjusted curves on the scale on which the model makes them parallel; the effect over time."""
    main = part.estimate
    curves = part.read(CurveRow, adjusted=True)
    kind, points = _survival(curves, None if main is None else main.model)
    return {
        "kind": kind,
        "constant": main and {key: main[key] for key in RATIO},
        "tables": {
            "log_log": [row for arm in ARMS for row in _log_log(points.get(arm, []), arm)],
            "over_time": [record(row, INTERVAL) for row in part.read(IntervalRow)],
            "at_times": [record(row, AT_TIME) for row in part.read(EffectAtTimeRow)],
        },
        "time_effect": next((record(row, TIME_EFFECT) for row in part.read(TimeEffectRow)), None),
    }


def _survival(curves: list[CurveRow], model: str | None) -> tuple[str | None, Points]:
    """Times and values of S of each arm, and which S it is.

    Without competing events it is survival. With them, Fine and Gray's model has 1 less the
    cumulative incidence, and Cox's the S of the cause-specific hazard.
    """
    of_arm = {arm: [row for row in curves if row.arm == arm] for arm in ARMS}
    if not curves or curves[0].kind == "survival":
        kind = "survival" if curves else None
        return kind, {arm: [(row.time, row.value) for row in of_arm[arm]] for arm in ARMS}
    if model == "finegray":
        points = {
            arm: [(row.time, 1 - row.value) for row in of_arm[arm] if row.cause == 1]
            for arm in ARMS
        }
        return "incidence", points
    return "cause_specific", {arm: _cause_specific(of_arm[arm]) for arm in ARMS}


def _cause_specific(curves: list[CurveRow]) -> list[tuple[float, float]]:
    """exp(-H), with the cumulative hazard H of the outcome that follows from both incidences.

    Of the fall of log(1 - F1 - F2) in a step, the outcome has the share of its events. Without the
    incidence of competing events, of which there may be too few to be shown, H is not known.
    """
    values: dict[float, dict[int, float]] = {}
    for row in curves:
        values.setdefault(row.time, {})[row.cause] = row.value
    if not {1, 2} <= {row.cause for row in curves}:
        return []
    before, free, hazard = {1: 0.0, 2: 0.0}, 1.0, 0.0
    points = []
    for time in sorted(values):
        now = before | values[time]
        left = 1 - now[1] - now[2]
        if left <= 0:
            break
        if now[1] > before[1]:
            share = (now[1] - before[1]) / (free - left)
            hazard += share * math.log(free / left)
            points.append((time, math.exp(-hazard)))
            before, free = now, left
    return points


def _log_log(points: list[tuple[float, float]], arm: str) -> list[ReportRow]:
    """Where log(-log S) is finite; of many points those at which it has moved."""
    out: list[ReportRow] = []
    for time, survival in points:
        if time > 0 and 0 < survival < 1:
            value = math.log(-math.log(survival))
            out.append({"arm": arm, "time": time, "survival": survival, "log_log": value})
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
    if content["tables"]["at_times"] and content["time_effect"] is not None:
        parts.append(_time_effect(page, content))
    if not parts:
        return None
    heading = page.heading(page.say("proportional.heading"), "proportional-hazards")
    return join(heading, page.paragraph("proportional.words"), *parts)


def _log_log_figure(page: Page, kind: str, rows: list[ReportRow], points: Points) -> Markup:
    say = page.say
    columns = [
        page.arm_column(),
        page.time_column("axis.time", "time"),
        TableColumn.number(say(f"log_log.of_{kind}"), "survival", 4),
        TableColumn.number(say("log_log.axis"), "log_log"),
    ]
    (t_time, t), (c_time, c) = (points[arm][-1] for arm in ARMS)
    return page.figure(
        "log_log",
        log_log_figure(points, page.arms, say),
        page.table("log_log", say("log_log.title"), columns, rows),
        method=say(f"log_log.{kind}"),
        t=significant(t),
        c=significant(c),
        t_time=page.time(t_time),
        c_time=page.time(c_time),
    )


def _over_time(page: Page, rows: list[ReportRow], constant: float) -> Markup:
    say = page.say
    group = say("column.outcomes")
    columns = [
        page.time_column("column.start", "start"),
        page.time_column("column.end", "end"),
        *(
            TableColumn(label, (f"{arm}_outcomes",), whole, group=group)
            for arm, label in page.arms.items()
        ),
        *page.columns(IntervalRow, "hr"),
    ]
    return page.figure(
        "over_time",
        over_time_figure(rows, constant, say, page.time_unit),
        page.table("over_time", say("over_time.title"), columns, rows),
        n=len(rows),
        first=with_limits(rows[0], "hr"),
        last=with_limits(rows[-1], "hr"),
        constant=significant(constant),
    )


def _time_effect(page: Page, content: Facts) -> Markup:
    """The model in which the ratio is a function of time, and the test that it is not."""
    say, rows, model = page.say, content["tables"]["at_times"], content["time_effect"]
    constant = (content["constant"] or {}).get("hr")
    has_steps = model["function"] == "steps"
    columns = [page.time_column("column.end" if has_steps else "axis.time", "time")]
    if has_steps:
        columns.insert(0, page.time_column("column.start", "start"))
        columns += [
            TableColumn(label, (f"{arm}_outcomes",), whole, group=say("column.outcomes"))
            for arm, label in page.arms.items()
        ]
    columns += page.columns(EffectAtTimeRow, "hr")
    figure = over_time_figure if has_steps else time_effect_figure
    drawn = figure(
        [row | {"end": row["time"]} for row in rows],
        math.nan if constant is None else constant,
        say,
        page.time_unit,
    )
    is_pooled = model["statistic"] is None
    return page.figure(
        "time_effect",
        drawn,
        page.table("at_times", say("time_effect.title"), columns, rows),
        function=say(f"time_effect.function_{model['function']}"),
        first=with_limits(rows[0], "hr"),
        last=with_limits(rows[-1], "hr"),
        first_time=page.time(rows[0]["time"]),
        last_time=page.time(rows[-1]["time"]),
        test=say(
            "time_effect.pooled" if is_pooled else "time_effect.test",
            statistic=significant(model["statistic"]),
            df=whole(model["df"]),
            p=p_with_sign(model["p"]),
        ),
    )
