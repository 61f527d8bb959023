"""Whether hazards are proportional: curves on the scale where they are parallel, and the effect."""

import math
from collections.abc import Mapping, Sequence

from riskset._ticks import log_ticks, nice_ticks, ratio_ticks
from riskset._time_units import DAYS_IN, TimeUnit
from riskset.report.axes import AxisScale, bottom_axis, key, left_axis, legend, mark_of
from riskset.report.markup import Markup, join
from riskset.report.svg import (
    LEFT,
    RIGHT,
    DrawnFigure,
    box,
    circle,
    line,
    polygon,
    polyline,
    step,
)
from riskset.report.translations import Translations

__all__ = ["log_log_figure", "over_time_figure", "time_effect_figure"]

TOP, BOTTOM = 56.0, 320.0
MARKS = 6
"""Marks on a curve, which distinguish the arms without colour."""


def log_log_figure(
    points: Mapping[str, Sequence[tuple[float, float]]],
    names: Mapping[str, str],
    say: Translations,
) -> DrawnFigure:
    """Step functions of log(-log S) by time on a logarithmic axis, for each arm."""
    times = [t for curve in points.values() for t, _ in curve]
    values = [v for curve in points.values() for _, v in curve]
    x = AxisScale(min(times), max(times), is_log=True)
    pad = (max(values) - min(values) or 1.0) * 0.06
    y = AxisScale(min(values) - pad, max(values) + pad, BOTTOM, TOP)
    parts: list[Markup] = [
        legend(names),
        left_axis(y, x, nice_ticks(y.low, y.high), say("log_log.axis")),
        _time(x, say),
    ]
    for arm, curve in points.items():
        placed = [(x(t), y(v)) for t, v in curve]
        parts.append(step(placed, arm[0]))
        every = -(-len(placed) // MARKS)
        parts += [mark_of(arm, a, b) for a, b in placed[every // 2 :: every]]
    return DrawnFigure(BOTTOM + 50, join(*parts))


def _time(x: AxisScale, say: Translations) -> Markup:
    return bottom_axis(x, BOTTOM, log_ticks(x.low, x.high), say("proportional.time"))


def over_time_figure(
    intervals: Sequence[Mapping[str, float]],
    constant: float,
    say: Translations,
    unit: TimeUnit,
) -> DrawnFigure:
    """Hazard ratios of intervals of time, in `unit`, with their limits; a line for the constant."""
    ratios = [row[key] for row in intervals for key in ("hr", "hr_lower", "hr_upper")]
    ratio = ratio_ticks([*ratios, constant])
    # As on the other figure; intervals with equal numbers of outcomes are short at the start.
    first = min(1 / DAYS_IN[unit], intervals[0]["end"] / 2)
    x = AxisScale(first, intervals[-1]["end"], is_log=True)
    y = AxisScale(ratio[0], ratio[-1], BOTTOM, TOP, is_log=True)
    parts: list[Markup] = [
        left_axis(y, x, ratio, say("forest.axis")),
        _time(x, say),
        line(LEFT, y(1), RIGHT, y(1), "axis"),
    ]
    for row in intervals:
        a, b = x(row["start"]), x(row["end"])
        low, high = y(row["hr_lower"]), y(row["hr_upper"])
        parts.append(box(a, high, b - a, low - high, "region"))
        parts.append(line(a, y(row["hr"]), b, y(row["hr"]), "t"))
        parts.append(circle((a + b) / 2, y(row["hr"]), 4.0, "tmark"))
    if math.isfinite(constant):
        parts.append(line(LEFT, y(constant), RIGHT, y(constant), "dash"))
    interval = join(
        box(-18, -7, 36, 15, "region"), line(-18, 0, 18, 0, "t"), circle(0, 0, 4.0, "tmark")
    )
    items = [
        (interval, say("over_time.key")),
        (line(-18, 0, 18, 0, "dash"), say("over_time.line")),
    ]
    return DrawnFigure(BOTTOM + 50, join(*parts, key(items)[0]))


def time_effect_figure(
    times: Sequence[Mapping[str, float]], constant: float, say: Translations, unit: TimeUnit
) -> DrawnFigure:
    """Hazard ratios at times, joined, with a band of their limits; a line for the constant."""
    ratios = [row[key] for row in times for key in ("hr", "hr_lower", "hr_upper")]
    ratio = ratio_ticks([*ratios, constant])
    x = AxisScale(times[0]["time"] / 1.1, times[-1]["time"] * 1.1, is_log=True)
    y = AxisScale(ratio[0], ratio[-1], BOTTOM, TOP, is_log=True)
    at = [x(row["time"]) for row in times]
    hr, low, high = ([y(row[key]) for row in times] for key in ("hr", "hr_lower", "hr_upper"))
    outline = [*zip(at, high, strict=True), *zip(at[::-1], low[::-1], strict=True)]
    points = list(zip(at, hr, strict=True))
    parts: list[Markup] = [
        left_axis(y, x, ratio, say("forest.axis")),
        _time(x, say),
        line(LEFT, y(1), RIGHT, y(1), "axis"),
        polygon(outline, "region"),
        polyline(points, "t"),
        *(circle(a, b, 4.0, "tmark") for a, b in points),
    ]
    if math.isfinite(constant):
        parts.append(line(LEFT, y(constant), RIGHT, y(constant), "dash"))
    curve = join(
        box(-18, -7, 36, 15, "region"), line(-18, 0, 18, 0, "t"), circle(0, 0, 4.0, "tmark")
    )
    items = [(curve, say("time_effect.key")), (line(-18, 0, 18, 0, "dash"), say("over_time.line"))]
    return DrawnFigure(BOTTOM + 50, join(*parts, key(items)[0]))
