"""Plain line plots: profile of a likelihood, cross-validation, weeks around the index date."""

import math
from collections.abc import Mapping, Sequence

from riskset._ticks import log_ticks, nice_ticks
from riskset.report.axes import AxisScale, bottom_axis, key, left_axis, legend
from riskset.report.markup import Markup, join
from riskset.report.number_format import short, short_percent
from riskset.report.svg import (
    LEFT,
    RIGHT,
    DrawnFigure,
    circle,
    line,
    mark,
    polyline,
    step,
    text,
)
from riskset.report.translations import Translations

__all__ = ["coverage_figure", "cross_validation_figure", "profile_figure", "weeks_figure"]

TOP, BOTTOM = 30.0, 290.0
CUT = 3.841458820694124 / 2
"""Half the 95 % quantile of chi-squared with one degree of freedom."""


def profile_figure(
    points: Sequence[tuple[float, float]],
    wald: tuple[float, float] | None,
    say: Translations,
) -> DrawnFigure:
    """Log likelihood less its maximum, by log hazard ratio.

    `wald` is a log hazard ratio and its standard error, for the parabola of the normal
    approximation.
    """
    floor = -6.0
    shown = [(b, v) for b, v in points if v >= floor]
    low, high = min(b for b, _ in shown), max(b for b, _ in shown)
    x, y = AxisScale(low, high), AxisScale(floor, 0.3, BOTTOM, TOP)
    ticks = [math.log(t) for t in log_ticks(math.exp(low), math.exp(high))]
    parts: list[Markup] = [
        left_axis(y, x, nice_ticks(floor, 0), say("profile.y_axis")),
        bottom_axis(x, BOTTOM, ticks, say("forest.axis"), lambda b: short(math.exp(b))),
        line(LEFT, y(-CUT), RIGHT, y(-CUT), "dash"),
        text((LEFT + RIGHT) / 2, y(-CUT) - 6, say("profile.cut"), "small", "middle"),
    ]
    items = [(line(-18, 0, 18, 0, "t"), say("profile.curve"))]
    if wald is not None:
        mean, se = wald
        grid = [low + (high - low) * k / 80 for k in range(81)]
        parabola = [(b, -0.5 * ((b - mean) / se) ** 2) for b in grid]
        parts.append(polyline([(x(b), y(v)) for b, v in parabola if v >= floor], "c"))
        items.append((line(-18, 0, 18, 0, "c"), say("profile.wald")))
    parts.append(polyline([(x(b), y(v)) for b, v in shown], "t"))
    return DrawnFigure(BOTTOM + 50, join(*parts, key(items)[0]))


def cross_validation_figure(
    points: Sequence[Mapping[str, float | None]],
    axis: str,
    say: Translations,
) -> DrawnFigure:
    """Held-out log likelihood (``mean``, ``se``) by penalty (``at``); the chosen is a diamond."""
    known = [p for p in points if p["at"] and p["mean"] is not None]
    at = [float(p["at"] or 0) for p in known]
    values = [float(p["mean"] or 0) for p in known]
    errors = [float(p["se"] or 0) for p in known]
    best = max(values)
    # Penalties far from the best would squeeze the part that matters into a line.
    floor = min(v for v in values if v >= best - 30 * (max(errors) or 1e-3) or v == best)
    low, high = floor - max(errors), max(v + e for v, e in zip(values, errors, strict=True))
    pad = (high - low or 1.0) * 0.08
    x = AxisScale(min(at), max(at), LEFT + 14, is_log=True)
    y = AxisScale(low - pad, high + pad, BOTTOM, TOP)
    parts = [
        left_axis(y, x, nice_ticks(y.low, y.high), say("cv.y_axis"), lambda v: short(v, 5)),
        bottom_axis(x, BOTTOM, log_ticks(min(at), max(at)), axis),
        polyline([(x(a), y(v)) for a, v in zip(at, values, strict=True) if v >= low], "rule"),
    ]
    for p, a, v, e in zip(known, at, values, errors, strict=True):
        if v < low:
            continue
        parts.append(line(x(a), y(v - e), x(a), y(v + e), "axis"))
        shape = (
            mark("diamond", x(a), y(v), 6, "tbar")
            if p["chosen"]
            else circle(x(a), y(v), 3, "solid")
        )
        parts.append(shape)
    return DrawnFigure(BOTTOM + 50, join(*parts))


def coverage_figure(rows: Sequence[Mapping[str, float]], say: Translations) -> DrawnFigure:
    """Shares of intervals with the truth inside (``before``, ``after``) by their ``level``."""
    x, y = AxisScale(0, 1, end=RIGHT - 14), AxisScale(0, 1, BOTTOM, TOP)
    ticks = [k / 5 for k in range(6)]
    parts: list[Markup] = [
        left_axis(y, x, ticks, say("coverage.y_axis"), short_percent),
        bottom_axis(x, BOTTOM, ticks, say("coverage.level"), short_percent),
        polyline([(x(0), y(0)), (x(1), y(1))], "rule"),
    ]
    items = [(line(-18, 0, 18, 0, "rule"), say("coverage.nominal"))]
    for name, class_ in (("before", "c"), ("after", "t")):
        parts.append(step([(x(row["level"]), y(row[name])) for row in rows], class_))
        items.append((line(-18, 0, 18, 0, class_), say(f"coverage.{name}")))
    return DrawnFigure(BOTTOM + 50, join(*parts, key(items)[0]))


def weeks_figure(
    weeks: Mapping[str, Sequence[tuple[int, float | None]]],
    names: Mapping[str, str],
    say: Translations,
) -> DrawnFigure:
    """Outcomes per 1000 people a week, before and after the index date."""
    every = [w for of_arm in weeks.values() for w, _ in of_arm]
    rates = [r for of_arm in weeks.values() for _, r in of_arm if r is not None]
    top = 66.0
    x = AxisScale(min(every), max(every) + 1)
    y = AxisScale(0, (max(rates, default=0.0) or 1.0) * 1.08, BOTTOM, top)
    parts = [
        legend(names),
        left_axis(y, x, nice_ticks(0, y.high), say("weeks.y_axis")),
        bottom_axis(x, BOTTOM, nice_ticks(x.low, x.high, 8), say("weeks.x_axis")),
        line(x(0), BOTTOM, x(0), top - 8, "rule"),
        text(x(0), top - 13, say("weeks.index"), "small", "middle"),
    ]
    for arm, of_arm in weeks.items():
        for run in _runs(of_arm):
            parts.append(
                step([*((x(w), y(r)) for w, r in run), (x(run[-1][0] + 1), y(run[-1][1]))], arm[0])
            )
    return DrawnFigure(BOTTOM + 50, join(*parts))


def _runs(values: Sequence[tuple[int, float | None]]) -> list[list[tuple[int, float]]]:
    """Neighbouring weeks that have a number."""
    runs: list[list[tuple[int, float]]] = []
    last = None
    for week, rate in values:
        if rate is None:
            continue
        if last is None or week != last + 1:
            runs.append([])
        runs[-1].append((week, rate))
        last = week
    return runs
