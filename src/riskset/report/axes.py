"""Scales and axes: where a number lies on the page, round numbers beside it, and what they are."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from riskset.report.markup import Markup, join
from riskset.report.number_format import short
from riskset.report.svg import line, text

__all__ = ["AxisScale", "bottom_axis", "left_axis", "nice_ticks", "ratio_ticks"]

LEAST, FURTHEST = 2, 6
"""Powers of 2 to which the axis of a ratio goes on both sides of 1: at least, and at most."""
MOST_RATIOS = 6
"""Ticks of a ratio, whose words have room beside each other in a forest plot."""
TITLE = 16.0
"""Where the title of a left axis stands."""


@dataclass(frozen=True)
class AxisScale:
    """From numbers `low` to `high` to places `start` to `end` in px; logarithmic for ratios."""

    low: float
    high: float
    start: float
    end: float
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


def nice_ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers from `low` to `high`, roughly so many.

    >>> nice_ticks(0, 0.43)
    [0.0, 0.1, 0.2, 0.3, 0.4]
    """
    if not high > low:
        return [low]
    rough = (high - low) / about
    unit = 10.0 ** math.floor(math.log10(rough))
    size = next(unit * k for k in (1, 2, 5, 10) if unit * k >= rough * 0.99)
    first, last = math.ceil(low / size - 1e-9), math.floor(high / size + 1e-9)
    return [round(k * size, 12) for k in range(first, last + 1)]


def ratio_ticks(values: Sequence[float]) -> list[float]:
    """A quarter to four, and further where positive numbers lie beyond.

    They are powers of 2, or of 4 or 8 where there would be too many, so that 1 is always one.

    >>> ratio_ticks([0.2, 1.1]), ratio_ticks([0.07, 1.1])
    ([0.125, 0.25, 0.5, 1.0, 2.0, 4.0], [0.0625, 0.25, 1.0, 4.0])
    """
    powers = [math.log2(v) for v in values if math.isfinite(v) and v > 0]
    ends = (max([LEAST, *(-p for p in powers)]), max([LEAST, *powers]))
    ticks: list[float] = []
    for step in (1, 2, 3):
        below, above = (math.ceil(min(end, FURTHEST) / step) for end in ends)
        ticks = [2.0 ** (step * k) for k in range(-below, above + 1)]
        if len(ticks) <= MOST_RATIOS:
            break
    return ticks


def bottom_axis(
    scale: AxisScale,
    y: float,
    ticks: Sequence[float],
    title: str,
    show: Callable[[float], str] = short,
    grid_to: float | None = None,
) -> Markup:
    """An axis below a plot; with `grid_to`, thin lines up to there."""
    parts = [line(scale.start, y, scale.end, y, "axis")]
    for tick in ticks:
        x = scale(tick)
        if grid_to is not None:
            parts.append(line(x, y, x, grid_to, "grid"))
        parts += [line(x, y, x, y + 5, "axis"), text(x, y + 19, show(tick), "tick", "middle")]
    parts.append(text((scale.start + scale.end) / 2, y + 40, title, "label", "middle"))
    return join(*parts)


def left_axis(
    scale: AxisScale,
    x: float,
    ticks: Sequence[float],
    title: str,
    show: Callable[[float], str] = short,
    grid_to: float | None = None,
) -> Markup:
    """An axis left of a plot; with `grid_to`, thin lines to there."""
    parts = [line(x, scale.start, x, scale.end, "axis")]
    for tick in ticks:
        y = scale(tick)
        if grid_to is not None:
            parts.append(line(x, y, grid_to, y, "grid"))
        parts += [line(x - 5, y, x, y, "axis"), text(x - 8, y + 4, show(tick), "tick", "end")]
    middle = (scale.start + scale.end) / 2
    parts.append(text(TITLE, middle, title, "label", "middle", turned=True))
    return join(*parts)
