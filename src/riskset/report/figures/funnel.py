"""Negative controls: estimates against standard errors, and where chance alone would put them."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from riskset._ticks import nice_ticks, ratio_ticks
from riskset.report.axes import AxisScale, bottom_axis, key, left_axis
from riskset.report.markup import Markup, join
from riskset.report.svg import DrawnFigure, box, line, mark, polygon, polyline
from riskset.report.translations import Translations

__all__ = ["controls_figure"]

TOP, BOTTOM = 40.0, 380.0
Z = 1.959963984540054


def controls_figure(
    controls: Sequence[Mapping[str, Any]],
    region: Sequence[tuple[float, float, float]] | None,
    estimate: tuple[float, float] | None,
    say: Translations,
) -> DrawnFigure:
    """Ratios (x) and standard errors (y) of control outcomes, and of the study.

    `region` has standard errors, each with the log ratios between which a calibrated p is at least
    0.05; `estimate` is a ratio and its standard error. Controls without numbers are left out.
    """
    known = [
        c
        for c in controls
        if c["hr"] and c["se"] is not None and math.isfinite(c["hr"]) and math.isfinite(c["se"])
    ]
    ratios = [c["hr"] for c in known] + ([estimate[0]] if estimate else [])
    errors = [c["se"] for c in known] + ([estimate[1]] if estimate else [])
    ticks = ratio_ticks(ratios)
    x = AxisScale(ticks[0], ticks[-1], is_log=True)
    y = AxisScale(0, max([*errors, 0.1]) * 1.08, BOTTOM, TOP)
    parts: list[Markup] = [
        left_axis(y, x, nice_ticks(0, y.high), say("controls.se_axis")),
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
    items = [(mark("circle", 0, 0, 4.2, "hollow"), say("controls.used"))]
    if any(not c["used"] for c in known):
        items.append((mark("cross", 0, 0, 4, "plain"), say("controls.unused")))
    if estimate is not None:
        items.append((mark("diamond", 0, 0, 6, "tbar"), say("controls.estimate")))
    if region:
        items.append((box(-13, -7, 26, 14, "region"), say("controls.region")))
    items.append((line(-18, 0, 18, 0, "dash"), say("controls.dashes")))
    return DrawnFigure(BOTTOM + 50, join(*parts, key(items)[0]))


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
    return polygon([*left, *reversed(right)], "region")
