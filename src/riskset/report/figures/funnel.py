"""Negative controls: estimates against standard errors, and where chance alone would put them."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from riskset.report.axes import AxisScale, bottom_axis, left_axis, nice_ticks, ratio_ticks
from riskset.report.markup import Markup, join, tag
from riskset.report.page import DrawnFigure
from riskset.report.svg import line, mark, polyline, px, text
from riskset.report.translations import Translations

__all__ = ["controls_figure"]

LEFT, RIGHT, TOP, BOTTOM = 74.0, 706.0, 40.0, 380.0
Z = 1.959963984540054


def controls_figure(
    controls: Sequence[Mapping[str, Any]],
    region: Sequence[tuple[float, float, float]] | None,
    estimate: tuple[float, float] | None,
    say: Translations,
    title: str,
    desc: str,
) -> DrawnFigure:
    """Ratios (x) and standard errors (y) of control outcomes.

    Parameters
    ----------
    controls : records
        ``hr``, ``se`` and ``used``; those without numbers are left out.
    region : list of (standard error, lower, upper), optional
        Log ratios between which calibrated p values are at least 0.05.
    estimate : (ratio, standard error), optional
        Of the study, unless it is withheld.
    """
    known = [
        c
        for c in controls
        if c["hr"] and c["se"] is not None and math.isfinite(c["hr"]) and math.isfinite(c["se"])
    ]
    ratios = [c["hr"] for c in known] + ([estimate[0]] if estimate else [])
    errors = [c["se"] for c in known] + ([estimate[1]] if estimate else [])
    ticks = ratio_ticks(ratios)
    x = AxisScale(ticks[0], ticks[-1], LEFT, RIGHT, is_log=True)
    y = AxisScale(0, max([*errors, 0.1]) * 1.08, BOTTOM, TOP)
    parts: list[Markup] = [
        left_axis(y, LEFT, nice_ticks(0, y.high), say("controls.se_axis"), grid_to=RIGHT),
        bottom_axis(x, BOTTOM, ticks, say("forest.axis")),
    ]
    if region:
        parts.append(_region(region, x, y))
    for sign in (-1, 1):
        furthest = min(y.high, math.log(x.high) / Z)
        end = math.exp(sign * Z * furthest)
        parts.append(polyline([(x(1), y(0)), (x(end), y(furthest))], "dash"))
    parts.append(line(x(1), BOTTOM, x(1), TOP, "rule"))
    parts += [
        mark("circle", x(c["hr"]), y(c["se"]), 4.2, "hollow")
        if c["used"]
        else mark("cross", x(c["hr"]), y(c["se"]), 4, "plain")
        for c in known
    ]
    if estimate is not None:
        parts.append(mark("diamond", x(estimate[0]), y(estimate[1]), 7, "tbar"))
    parts.append(_key(bool(region), estimate is not None, any(not c["used"] for c in known), say))
    return DrawnFigure(BOTTOM + 50, join(*parts), title, desc)


def _region(region: Sequence[tuple[float, float, float]], x: AxisScale, y: AxisScale) -> Markup:
    """The region up to the upper edge of the picture, where it is cut between two of its points."""
    inside = [point for point in region if point[0] <= y.high]
    beyond = next((point for point in region if point[0] > y.high), None)
    if beyond is not None:
        share = (y.high - inside[-1][0]) / (beyond[0] - inside[-1][0])
        last = (a + share * (b - a) for a, b in zip(inside[-1], beyond, strict=True))
        inside.append((next(last), next(last), next(last)))
    left = [(x(math.exp(lower)), y(se)) for se, lower, _ in inside]
    right = [(x(math.exp(upper)), y(se)) for se, _, upper in inside]
    points = " ".join(f"{px(a)},{px(b)}" for a, b in (*left, *reversed(right)))
    return tag("polygon", points=points, class_="region")


def _key(has_region: bool, has_estimate: bool, has_others: bool, say: Translations) -> Markup:
    at, parts = LEFT, []
    items: list[tuple[Markup, str]] = [(mark("circle", 0, 0, 4.2, "hollow"), say("controls.used"))]
    if has_others:
        items.append((mark("cross", 0, 0, 4, "plain"), say("controls.unused")))
    if has_estimate:
        items.append((mark("diamond", 0, 0, 6, "tbar"), say("controls.estimate")))
    if has_region:
        items.append(
            (tag("rect", x=-9, y=-6, width=18, height=12, class_="region"), say("controls.region"))
        )
    items.append((line(-12, 0, 12, 0, "dash"), say("controls.dashes")))
    for shape, words in items:
        parts.append(tag("g", shape, transform=f"translate({px(at + 12)} 14)"))
        parts.append(text(at + 28, 18.5, words, "small"))
        at += 40 + 6.4 * len(words)
    return join(*parts)
