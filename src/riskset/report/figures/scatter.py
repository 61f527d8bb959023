"""Standardised differences before and after: points where they matter, hexagons elsewhere."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from riskset._ticks import nice_ticks
from riskset.report.axes import AxisScale, bottom_axis, left_axis
from riskset.report.markup import Markup, join
from riskset.report.number_format import short, significant
from riskset.report.svg import LEFT, DrawnFigure, circle, hexagon, line, polyline, text, wrap
from riskset.report.translations import Translations

__all__ = ["MOST_POINTS", "balance_figure", "ends_of", "hexagons"]

RIGHT, TOP, BOTTOM = 470.0, 16.0, 412.0
MOST_POINTS = 3000
SIDE = 9.0
"""Distance of the middle of a hexagon from a corner, px."""


def ends_of(points: Sequence[Mapping[str, float]], threshold: float) -> tuple[float, float]:
    """Ends of the axes, before and after."""
    ends = [max([*(p[key] for p in points), 1.5 * threshold]) for key in ("before", "after")]
    return ends[0] * 1.05, ends[1] * 1.05


def hexagons(
    points: Sequence[Mapping[str, float]], ends: tuple[float, float]
) -> list[tuple[float, float, int]]:
    """Middles of the hexagons that hold points, and how many each holds.

    Two interleaved rectangular grids have the same cells: of the two nearest middles the nearer.
    """
    units = (RIGHT - LEFT) / ends[0], (BOTTOM - TOP) / ends[1]
    width, height = math.sqrt(3) * SIDE, 3 * SIDE
    counts: Counter[tuple[int, int, int]] = Counter()
    for point in points:
        x, y = point["before"] * units[0], point["after"] * units[1]
        choices = []
        for shift in (0, 1):
            i = round(x / width - shift / 2)
            j = round(y / height - shift / 2)
            middle = ((i + shift / 2) * width, (j + shift / 2) * height)
            choices.append(((x - middle[0]) ** 2 + (y - middle[1]) ** 2, i, j, shift))
        counts[min(choices)[1:]] += 1
    return [
        ((i + s / 2) * width / units[0], (j + s / 2) * height / units[1], n)
        for (i, j, s), n in sorted(counts.items())
    ]


def balance_figure(
    points: Sequence[Mapping[str, Any]],
    rest: Sequence[Mapping[str, Any]],
    worst: Sequence[Mapping[str, Any]],
    threshold: float,
    say: Translations,
) -> DrawnFigure:
    """Sizes of differences after (y) against those before (x); the axes differ in scale.

    `points` are covariates drawn one by one, `rest` bins of the others with their counts, and
    `worst` those whose names stand at the right.
    """
    ends = ends_of([*points, *rest], threshold)
    x, y = AxisScale(0, ends[0], LEFT, RIGHT), AxisScale(0, ends[1], BOTTOM, TOP)
    parts: list[Markup] = [
        left_axis(y, x, nice_ticks(0, ends[1]), say("balance.after_axis")),
        bottom_axis(x, BOTTOM, nice_ticks(0, ends[0]), say("balance.before_axis"), grid_to=TOP),
    ]
    most = max((r["count"] for r in rest), default=1)
    parts += [
        hexagon(x(r["before"]), y(r["after"]), SIDE * math.sqrt(max(r["count"] / most, 0.1)), "hex")
        for r in rest
    ]
    parts += [circle(x(p["before"]), y(p["after"]), 2.6, "dot") for p in points]
    parts.append(polyline([(x(0), y(0)), (x(min(ends)), y(min(ends)))], "dash"))
    parts.append(line(LEFT, y(threshold), RIGHT, y(threshold), "rule"))
    parts.append(text(RIGHT + 6, y(threshold) + 4, short(threshold), "small"))
    parts.append(_names(worst, x, y, say))
    return DrawnFigure(BOTTOM + 50, join(*parts))


def _names(
    worst: Sequence[Mapping[str, Any]], x: AxisScale, y: AxisScale, say: Translations
) -> Markup:
    """Numbered rings about the worst, and their names where there is room for them."""
    left = RIGHT + 44.0
    parts = [text(left, TOP + 8, say("balance.worst"), "strong")]
    at = TOP + 32
    places = [(x(row["before"]) - 3, y(row["after"]) + 4) for row in worst]
    for k, row in enumerate(worst, start=1):
        px, py = x(row["before"]), y(row["after"])
        parts.append(circle(px, py, 5, "plain"))
        tx, ty = _free(px, py, places)
        parts.append(text(tx, ty, str(k), "strong"))
        for j, one in enumerate(wrap(row["name"], 716 - left - 16, 12.0)):
            if j == 0:
                parts.append(text(left, at, str(k), "strong"))
            parts.append(text(left + 16, at, one, "small"))
            at += 15
        parts.append(text(left + 16, at, significant(row["after"]), "small"))
        at += 24
    return join(*parts)


def _free(x: float, y: float, taken: list[tuple[float, float]]) -> tuple[float, float]:
    """A place for a digit beside its ring, if possible on no other digit and in no ring."""
    places = [(x + dx, y + dy) for dx in (8, -15, 17, -24) for dy in (-6, 14)]
    free = [
        (px, py)
        for px, py in places
        if not any(abs(px - a) < 9 and abs(py - b) < 12 for a, b in taken)
    ]
    taken.append((free or places)[0])
    return taken[-1]
