"""Scales, axes and keys: where a number lies on the page, and its labels."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from riskset.report.markup import Markup, join, tag
from riskset.report.number_format import short
from riskset.report.svg import LEFT, RIGHT, box, fit, line, mark, px, text

__all__ = ["AxisScale", "bottom_axis", "key", "left_axis", "legend", "mark_of"]

TITLE = 16.0
"""Where the title of a left axis stands."""


@dataclass(frozen=True)
class AxisScale:
    """From numbers `low` to `high` to places `start` to `end` in px; logarithmic for ratios."""

    low: float
    high: float
    start: float = LEFT
    end: float = RIGHT
    is_log: bool = False

    def __call__(self, value: float) -> float:
        """Place of a number; one beyond the ends is drawn at the end."""
        a, b, v = self.low, self.high, min(max(value, self.low), self.high)
        if self.is_log:
            a, b, v = math.log(a), math.log(b), math.log(v)
        share = (v - a) / (b - a) if b > a else 0.5
        return self.start + share * (self.end - self.start)

    def holds(self, value: float) -> bool:
        """Whether a number lies within the ends."""
        return self.low <= value <= self.high


def bottom_axis(
    x: AxisScale,
    bottom: float,
    ticks: Sequence[float],
    title: str,
    show: Callable[[float], str] = short,
    grid_to: float | None = None,
) -> Markup:
    """An axis below a plot; with `grid_to`, thin lines up to there."""
    parts = [line(x.start, bottom, x.end, bottom, "axis")]
    for tick in ticks:
        at = x(tick)
        if grid_to is not None:
            parts.append(line(at, bottom, at, grid_to, "grid"))
        parts.append(line(at, bottom, at, bottom + 5, "axis"))
        parts.append(text(at, bottom + 19, show(tick), "tick", "middle"))
    parts.append(text((x.start + x.end) / 2, bottom + 40, title, "label", "middle"))
    return join(*parts)


def left_axis(
    y: AxisScale,
    x: AxisScale,
    ticks: Sequence[float],
    title: str,
    show: Callable[[float], str] = short,
) -> Markup:
    """An axis left of a plot, and thin lines across it."""
    parts = [line(x.start, y.start, x.start, y.end, "axis")]
    for tick in ticks:
        at = y(tick)
        parts.append(line(x.start, at, x.end, at, "grid"))
        parts.append(line(x.start - 5, at, x.start, at, "axis"))
        parts.append(text(x.start - 8, at + 4, show(tick), "tick", "end"))
    parts.append(text(TITLE, (y.start + y.end) / 2, title, "label", "middle", turned=True))
    return join(*parts)


def mark_of(arm: str, x: float, y: float) -> Markup:
    """A disc for the target, an open square for the comparator."""
    return mark("circle" if arm == "target" else "square", x, y, 4.0, f"{arm[0]}mark")


def legend(names: Mapping[str, str], has_bars: bool = False) -> Markup:
    """The line with its mark, or the bar, of each arm, one above the other."""
    parts: list[Markup] = []
    for y, (arm, name) in zip((10, 29), names.items(), strict=True):
        if has_bars:
            parts.append(box(LEFT + 18, y - 6, 26, 13, f"{arm[0]}bar"))
        else:
            parts += [line(LEFT, y, LEFT + 44, y, arm[0]), mark_of(arm, LEFT + 22, y)]
        parts.append(text(LEFT + 54, y + 4.5, fit(name, RIGHT - LEFT - 54)))
    return join(*parts)


def key(
    items: Sequence[tuple[Markup, str]], y: float = 14, start: float = LEFT
) -> tuple[Markup, float]:
    """Shapes, drawn about 0 and at most 36 px wide, with their words; and where the key ends."""
    parts: list[Markup] = []
    x = start
    for shape, words in items:
        width = 44 + 6.7 * len(words)
        if x > start and x + width > RIGHT:
            x, y = start, y + 22
        parts.append(tag("g", shape, transform=f"translate({px(x + 18)} {px(y)})"))
        parts.append(text(x + 44, y + 4.5, words, "small"))
        x += width + 14
    return join(*parts), y
