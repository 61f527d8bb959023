"""Whether hazards are proportional: curves on the scale where they are parallel, and the effect."""

import math
from collections.abc import Mapping, Sequence

from riskset.report.axes import AxisScale, bottom_axis, left_axis, nice_ticks, ratio_ticks
from riskset.report.figures.curves import legend
from riskset.report.markup import Markup, join
from riskset.report.page import DrawnFigure
from riskset.report.svg import box, circle, line, mark, step, text
from riskset.report.translations import Translations

__all__ = ["log_log_figure", "over_time_figure"]

LEFT, RIGHT, TOP, BOTTOM = 74.0, 706.0, 56.0, 320.0
DAYS = (1, 3, 10, 30, 100, 300, 1000, 3000, 10000)
MARKS = 6
"""Marks on a curve, which tell the arms apart without colour."""


def log_log_figure(
    points: Mapping[str, Sequence[tuple[float, float]]],
    names: Mapping[str, str],
    say: Translations,
    title: str,
    desc: str,
) -> DrawnFigure:
    """Step functions of log(-log S) by days on a logarithmic axis, for each arm."""
    times = [t for own in points.values() for t, _ in own]
    values = [v for own in points.values() for _, v in own]
    x = AxisScale(min(times), max(times), LEFT, RIGHT, is_log=True)
    pad = (max(values) - min(values) or 1.0) * 0.06
    y = AxisScale(min(values) - pad, max(values) + pad, BOTTOM, TOP)
    parts: list[Markup] = [
        legend(names, 10),
        left_axis(y, LEFT, nice_ticks(y.low, y.high), say("proportional.log_axis"), grid_to=RIGHT),
        _days(x, say),
    ]
    for arm, own in points.items():
        placed = [(x(t), y(v)) for t, v in own]
        parts.append(step(placed, arm[0]))
        shape = "circle" if arm == "target" else "square"
        every = -(-len(placed) // MARKS)
        parts += [mark(shape, a, b, 4.0, f"{arm[0]}mark") for a, b in placed[every // 2 :: every]]
    return DrawnFigure(BOTTOM + 50, join(*parts), title, desc)


def _days(x: AxisScale, say: Translations) -> Markup:
    ticks = [t for t in DAYS if x.holds(t)]
    return bottom_axis(
        x, BOTTOM, ticks if len(ticks) > 1 else [x.low, x.high], say("proportional.days")
    )


def over_time_figure(
    intervals: Sequence[Mapping[str, float]],
    constant: float,
    say: Translations,
    title: str,
    desc: str,
) -> DrawnFigure:
    """Hazard ratios of intervals of time with their intervals, and the constant one as a line.

    Parameters
    ----------
    intervals : records
        ``start``, ``end`` (days), ``hr``, ``hr_lower``, ``hr_upper``.
    """
    ratios = [row[key] for row in intervals for key in ("hr", "hr_lower", "hr_upper")]
    ratio = ratio_ticks([*ratios, constant])
    # As on the other figure; intervals with equal numbers of outcomes are short at the start.
    first = min(1.0, intervals[0]["end"] / 2)
    x = AxisScale(first, intervals[-1]["end"], LEFT, RIGHT, is_log=True)
    y = AxisScale(ratio[0], ratio[-1], BOTTOM, TOP, is_log=True)
    parts: list[Markup] = [
        left_axis(y, LEFT, ratio, say("forest.axis"), grid_to=RIGHT),
        _days(x, say),
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
    return DrawnFigure(BOTTOM + 50, join(*parts, _key(say)), title, desc)


def _key(say: Translations) -> Markup:
    return join(
        box(LEFT, 3, 44, 15, "region"),
        line(LEFT, 10.5, LEFT + 44, 10.5, "t"),
        circle(LEFT + 22, 10.5, 4.0, "tmark"),
        text(LEFT + 54, 15, say("proportional.key")),
        line(LEFT, 31, LEFT + 44, 31, "dash"),
        text(LEFT + 54, 35.5, say("proportional.constant")),
    )
