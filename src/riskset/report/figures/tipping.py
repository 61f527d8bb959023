"""Tipping points of an unmeasured confounder: its effect by the difference of its means."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from riskset._ticks import log_ticks, nice_ticks
from riskset.report.axes import AxisScale, bottom_axis, key, left_axis
from riskset.report.markup import Markup, join
from riskset.report.svg import (
    RIGHT,
    DrawnFigure,
    circle,
    fit,
    line,
    polyline,
    text,
)
from riskset.report.translations import Translations

__all__ = ["MOST_NAMED", "tipping_figure"]

TOP, BOTTOM = 70.0, 400.0
POINTS = 120
MOST_EFFECT = 10.0
MOST_NAMED = 6
"""Covariates with names: those that cause most bias."""
NAME_WIDTH = 150.0


def tipping_figure(
    observed: Mapping[str, float],
    strengths: Sequence[Mapping[str, Any]],
    biases: Mapping[str, float],
    reach: float,
    say: Translations,
) -> DrawnFigure:
    """Effects (y) of a normal confounder by the difference of its means (x), both folded.

    `observed` has the risk ratio, and the limit closest to 1; `strengths` are measured covariates
    (``difference``, ``effect``), and `biases` factors with the words for them.
    """
    top = max([MOST_EFFECT, *(1.1 * _folded(s)[1] for s in strengths)])
    x = AxisScale(0, 1.1 * max([reach, 0.5, *(_folded(s)[0] for s in strengths)]))
    y = AxisScale(1, top, BOTTOM, TOP, is_log=True)
    parts: list[Markup] = [
        left_axis(y, x, log_ticks(1, top), say("tipping.y_axis")),
        bottom_axis(x, BOTTOM, nice_ticks(0, x.high), say("tipping.x_axis")),
    ]
    items = []
    lines = [("t", observed["limit"], say("tipping.limit"))]
    lines.append(("dash", observed["ratio"], say("tipping.estimate")))
    lines += [(c, b, w) for c, (w, b) in zip(("c", "c thin"), biases.items(), strict=False)]
    for class_, bias, words in lines:
        size = abs(math.log(bias)) if 0 < bias < math.inf else math.inf
        if 0 < size < math.inf:
            parts.append(_contour(size, x, y, class_))
            items.append((line(-18, 0, 18, 0, class_), words))
    parts.append(_covariates(strengths, observed["ratio"], x, y))
    for class_, is_alike in (("solid", True), ("hollow", False)):
        if any(_is_alike(one, observed["ratio"]) == is_alike for one in strengths):
            words = say("tipping.covariate" if is_alike else "tipping.other_direction")
            items.append((circle(0, 0, 4.2, class_), words))
    return DrawnFigure(BOTTOM + 50, join(*parts, key(items)[0]))


def _folded(strength: Mapping[str, Any]) -> tuple[float, float]:
    return abs(strength["difference"]), math.exp(abs(math.log(strength["effect"])))


def _is_alike(strength: Mapping[str, Any], ratio: float) -> bool:
    """Whether a covariate causes bias in the direction of the estimate."""
    return bool(strength["difference"] * math.log(strength["effect"]) * math.log(ratio) >= 0)


def _contour(size: float, x: AxisScale, y: AxisScale, class_: str) -> Markup:
    """Differences and effects whose product, of the logarithm, is a size."""
    first = size / math.log(y.high)
    if first >= x.high:
        return Markup("")
    # Even steps of the effect where the curve is steep, and of the difference where it is flat.
    steps = [first * (x.high / first) ** (k / POINTS) for k in range(POINTS + 1)]
    return polyline([(x(d), y(math.exp(size / d))) for d in steps], class_)


def _covariates(
    strengths: Sequence[Mapping[str, Any]], ratio: float, x: AxisScale, y: AxisScale
) -> Markup:
    parts = []
    for k, one in enumerate(strengths):
        difference, effect = _folded(one)
        a, b = x(difference), y(effect)
        parts.append(circle(a, b, 4.2, "solid" if _is_alike(one, ratio) else "hollow"))
        if k < MOST_NAMED:
            is_right = a + NAME_WIDTH > RIGHT
            place = (a - 8, "end") if is_right else (a + 8, None)
            parts.append(text(place[0], b - 5, fit(one["name"], NAME_WIDTH), "small", place[1]))
    return join(*parts)
