"""The figures of a report for articles, drawn by `riskset.plot` from what the report has collected.

So nothing can be drawn that the report does not show.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from riskset.disclosure.rows import ARMS
from riskset.plot._balance import Differences, draw_balance_scatter, draw_love_plot
from riskset.plot._canvas import Axes
from riskset.plot._controls import ControlPoints, draw_controls
from riskset.plot._curve_axes import Line, NumberRow, line_colour
from riskset.plot._curves import draw_curves
from riskset.plot._forest import ForestLine, draw_forest
from riskset.plot._overlap import Shares, draw_overlap
from riskset.plot._study import (
    draw_coverage,
    draw_effect_over_time,
    draw_score_roc,
    draw_time_effect,
)
from riskset.plot._tipping import Strength, draw_tipping
from riskset.report.figures.curves import time_axis
from riskset.report.number_format import with_limits
from riskset.report.page import Facts, Page, ReportRow
from riskset.report.sections.main_result import forest_rows
from riskset.report.sections.unmeasured import control_biases, reach_of

__all__ = ["pictures"]

WORST = 20
NAMED = 5
BAR = 0.01
"""Width of a bar of preference scores, of which heights are shares."""
NOTHING = np.zeros(0)


def pictures(page: Page, part: Facts, level: float) -> Iterator[tuple[str, Axes]]:
    """Name and axes of each figure for which a part of a report has numbers.

    `level` is that of the intervals of hazard ratios.
    """
    if "result" in part and part["result"]["tables"]["estimates"]:
        rows = part["result"]["tables"]["estimates"]
        yield "forest", _forest(page, rows, level)
        of_levels = [row for row in rows if row["is_main"] or row["role"] == "subgroup"]
        if any(row["role"] == "subgroup" for row in of_levels):
            yield "subgroups", _forest(page, of_levels, level)
    if "curves" in part:
        yield from _curves(page, part["curves"])
    if "models" in part:
        yield from _over_time(page, part["models"]["proportionality"])
        yield from _time_effect(page, part["models"]["proportionality"])
    if "overlap" in part and part["overlap"]["tables"]["preference"]:
        yield "overlap", _overlap(page, part["overlap"])
        yield "roc", _roc(page, part["overlap"])
    if "balance" in part:
        yield from _balance(page, part["balance"])
    if "controls" in part:
        rows = [r for r in part["controls"]["tables"]["controls"] if r["true_hr"] == 1]
        points = _controls(rows)
        if points.se.size:
            yield "controls", _funnel(page, part["controls"], points)
        if part["controls"]["tables"].get("coverage"):
            yield "calibration", _coverage(page, part["controls"]["tables"]["coverage"])
    if "unmeasured" in part and part["unmeasured"]["observed"] is not None:
        yield "tipping-points", _tipping(page, part["unmeasured"])


def _forest(page: Page, rows: list[ReportRow], level: float) -> Axes:
    say, lines = page.say, []
    for row in rows:
        counts = tuple(
            f"{page.shown(row, f'{arm}_outcomes')} / {page.shown(row, f'{arm}_exposures')}"
            for arm in ARMS
        )
        for k, one in enumerate(forest_rows(page, row)):
            hr, low, high = (math.nan if v is None else v for v in (one.hr, one.lower, one.upper))
            is_known = one.se is not None and math.isfinite(one.se) and one.se > 0
            weight = 1 / one.se**2 if one.se is not None and is_known else math.nan
            cells = counts if k == 0 else ("", "")
            is_main = one.kind == "main"
            lines.append(ForestLine(one.label, hr, low, high, weight, cells, is_main, one.instead))
    heads = tuple(f"{label}\n{say('forest.counts')}" for label in page.arms.values())
    favours = (say("forest.favours_target"), say("forest.favours_comparator"))
    title, head = say("forest.axis"), say("forest.numbers")
    return draw_forest(lines, heads, level=level, xlabel=title, favours=favours, head=head)


def _curves(page: Page, content: Facts) -> Iterator[tuple[str, Axes]]:
    """A figure for the outcome, and one for competing events; curves of the adjustment, if any."""
    say, shown = page.say, content["shown"]
    all_curves = content["curves"]
    is_adjusted = any(c["adjusted"] for c in all_curves)
    _, unit, of_axis = time_axis(content["last"], page.time_unit)
    rows = content["tables"]["at_risk"]
    numbers = [
        NumberRow(label, [page.shown(row, f"{arm}_people") for row in rows], line_colour(k))
        for k, (arm, label) in enumerate(page.arms.items())
    ]
    table = [NumberRow(say("curves.at_risk")), *numbers] if rows else []
    for cause in sorted({c["cause"] for c in all_curves}):
        chosen = {
            c["arm"]: c
            for c in all_curves
            if c["cause"] == cause and bool(c["adjusted"]) == is_adjusted
        }
        lines = [
            _line(page.arms[arm], chosen[arm], shown, unit) for arm in page.arms if arm in chosen
        ]
        if not any(line.time[-1] > line.time[0] for line in lines):
            continue
        what = page.about["outcome"] if cause == 1 else say("column.competing")
        axes = draw_curves(
            lines,
            table,
            [row["time"] / unit for row in rows] or None,
            content["last"] / unit,
            is_survival=shown == "survival",
            xlabel=say("axis.time", **say.units(of_axis)),
            ylabel=f"{say(f'axis.{shown}')}: {what}",
        )
        yield "curves" if cause == 1 else "curves-competing", axes


def _line(label: str, curve: Mapping[str, Any], shown: str, unit: float) -> Line:
    time, value, lower, upper = (
        np.asarray(curve[name], dtype=float) for name in ("time", shown, "lower", "upper")
    )
    return Line(label, time / unit, value, lower, upper, NOTHING)


def _overlap(page: Page, content: Facts) -> Axes:
    rows = content["tables"]["preference"]
    shares = {arm: _shares([row for row in rows if row["arm"] == arm]) for arm in ARMS}
    return draw_overlap(
        shares,
        page.arms,
        xlabel=page.say("overlap.axis"),
        ylabel=page.say("overlap.share"),
        is_share=True,
        equipoise=(0.3, 0.7),
        borders=content["borders"],
    )


def _shares(rows: list[ReportRow]) -> Shares:
    """Bars by their mean height for each hundredth; where there is none, the height is 0."""
    places = {0.0, 1.0, *(r["lower"] for r in rows), *(r["upper"] for r in rows)}
    edges = np.array(sorted(places))
    before, kept = np.zeros(edges.size - 1), np.zeros(edges.size - 1)
    for row in rows:
        k = int(np.searchsorted(edges, row["lower"]))
        scale = BAR / (row["upper"] - row["lower"])
        before[k] = (row["share"] or 0.0) * scale
        kept[k] = (row["kept_share"] or 0.0) * scale
    return Shares(edges, before, kept)


def _balance(page: Page, content: Facts) -> Iterator[tuple[str, Axes]]:
    summary, tables = content["summary"], content["tables"]
    threshold = float((summary and summary["threshold"]) or 0.1)
    worst = {r["covariate_id"]: r for name in ("worst_before", "worst_after")
             for r in tables.get(name, ())}  # fmt: skip
    finite = [r for r in worst.values() if math.isfinite(r["before_smd"])]
    if finite:
        names = [r["name"] for r in finite]
        before, after = (np.array([r[f"{s}_smd"] for r in finite]) for s in ("before", "after"))
        n = int((summary and summary["n_covariates"]) or len(names))
        found = Differences(names, before, after, threshold)
        yield "love", draw_love_plot(found, 2 * WORST, of=n)
    points, rest = content["points"], content["rest"]
    if points:
        names = [p["name"] for p in points]
        before, after = (np.array([p[side] for p in points]) for side in ("before", "after"))
        others = np.array([[r["before"], r["after"], r["count"]] for r in rest]).reshape(-1, 3)
        found = Differences(names, before, after, threshold)
        yield "balance", draw_balance_scatter(found, NAMED, others=others)


def _over_time(page: Page, content: Facts) -> Iterator[tuple[str, Axes]]:
    """The hazard ratio in intervals of time, where it is known in all of them."""
    rows, constant = content["tables"]["over_time"], (content["constant"] or {}).get("hr")
    ratios = [[row[name] for name in ("hr", "hr_lower", "hr_upper")] for row in rows]
    if not rows or not constant or not all(v and math.isfinite(v) for r in ratios for v in r):
        return
    say = page.say
    axes = draw_effect_over_time(
        np.array([[row["start"], row["end"]] for row in rows]),
        np.array(ratios),
        constant,
        xlabel=say("axis.time", **say.units(page.time_unit)),
        ylabel=say("forest.axis"),
        words=(say("over_time.key"), say("over_time.line")),
    )
    yield "effect-over-time", axes


def _time_effect(page: Page, content: Facts) -> Iterator[tuple[str, Axes]]:
    """The hazard ratio as a function of time, where it is known at all times."""
    rows, model = content["tables"].get("at_times"), content.get("time_effect")
    if not rows or model is None:
        return
    ratios = [[row[name] for name in ("hr", "hr_lower", "hr_upper")] for row in rows]
    constant = (content["constant"] or {}).get("hr")
    if not constant or not all(v and math.isfinite(v) for r in ratios for v in r):
        return
    say, has_steps = page.say, model["function"] == "steps"
    x, y = say("axis.time", **say.units(page.time_unit)), say("forest.axis")
    words = (say("over_time.key" if has_steps else "time_effect.key"), say("over_time.line"))
    times = np.array([row["time"] for row in rows])
    if has_steps:
        edges = np.column_stack([[row["start"] for row in rows], times])
        axes = draw_effect_over_time(
            edges, np.array(ratios), constant, xlabel=x, ylabel=y, words=words
        )
    else:
        axes = draw_time_effect(times, np.array(ratios), constant, xlabel=x, ylabel=y, words=words)
    yield "time-effect", axes


def _roc(page: Page, content: Facts) -> Axes:
    """The ROC curve at the borders of bars that both arms have, where its points are exact."""
    rows = content["tables"]["preference"]
    of_arm = {arm: [row for row in rows if row["arm"] == arm] for arm in ARMS}
    borders = [{row["lower"] for row in own} | {row["upper"] for row in own}
               for own in of_arm.values()]  # fmt: skip
    points = [
        [sum(r["share"] or 0.0 for r in of_arm[arm] if r["lower"] >= border) for arm in ARMS[::-1]]
        for border in sorted(borders[0] & borders[1])
    ]
    say, score = page.say, content["score"] or {}
    auc = f" {with_limits(score, 'auc')}" if score.get("auc") is not None else ""
    return draw_score_roc(
        np.array([[1.0, 1.0], *points, [0.0, 0.0]]).clip(0, 1),
        xlabel=say("roc.false_positive", arm=page.arms["comparator"]),
        ylabel=say("roc.true_positive", arm=page.arms["target"]),
        label=f"{say('roc.auc')}{auc}",
    )


def _coverage(page: Page, rows: list[ReportRow]) -> Axes:
    columns = (np.array([row[name] for row in rows]) for name in ("level", "before", "after"))
    say = page.say
    words = tuple(say(f"coverage.{name}") for name in ("before", "after", "nominal"))
    title = say("coverage.level")
    return draw_coverage(*columns, xlabel=title, ylabel=say("coverage.y_axis"), words=words)


def _tipping(page: Page, content: Facts) -> Axes:
    observed, say = content["observed"], page.say
    limit = observed["limit"]
    strengths = [
        Strength(one["name"], one["difference"], one["effect"]) for one in content["strengths"]
    ]
    names = ("limit", "estimate", "covariate", "other_direction")
    return draw_tipping(
        observed["ratio"],
        1.0 if limit is None else limit,
        strengths,
        control_biases(page, content),
        reach=reach_of(content),
        xlabel=say("tipping.x_axis"),
        ylabel=say("tipping.y_axis"),
        words=tuple(say(f"tipping.{name}") for name in names),  # type: ignore[arg-type]
    )


def _controls(rows: list[ReportRow]) -> ControlPoints:
    known = [
        r for r in rows
        if r["hr"] and r["se"] and math.isfinite(r["hr"]) and math.isfinite(r["se"])
    ]  # fmt: skip
    return ControlPoints(
        np.log([r["hr"] for r in known]) if known else NOTHING,
        np.array([r["se"] for r in known]),
        np.array([bool(r["used"]) for r in known], dtype=bool),
    )


def _funnel(page: Page, content: Facts, points: ControlPoints) -> Axes:
    facts, main = content["calibration"], content["estimate"]
    region = None
    if facts is not None and facts["status"] == "ok" and facts["region_se"]:
        names = ("region_se", "region_lower", "region_upper")
        region = tuple(np.array(facts[name]) for name in names)
    interest = {}
    if main and main["hr"] and math.isfinite(main["hr"]) and math.isfinite(main["se"]):
        interest = {page.say("controls.estimate"): (math.log(main["hr"]), main["se"])}
    return draw_controls(points, region, interest, xlabel=page.say("forest.axis"))  # type: ignore[arg-type]
