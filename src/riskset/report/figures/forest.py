"""The forest plot: a row for each estimate, a box as large as its information, and the numbers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from riskset._ticks import ratio_ticks
from riskset.report.axes import AxisScale, bottom_axis
from riskset.report.markup import Markup, join
from riskset.report.number_format import MISSING, interval, significant
from riskset.report.svg import DrawnFigure, line, mark, polyline, text, wrap
from riskset.report.translations import Translations

__all__ = ["ForestRow", "forest"]

LEFT, RIGHT, LABELS, NUMBERS = 262.0, 560.0, 246.0, 716.0
LINE = 16.0


@dataclass(frozen=True)
class ForestRow:
    """An estimate of a kind ("main", "other", "calibrated"), or words `instead` of its numbers."""

    label: str
    hr: float | None
    lower: float | None
    upper: float | None
    se: float | None
    kind: str = "other"
    instead: str = MISSING

    @property
    def is_known(self) -> bool:
        """Whether there is something to draw."""
        return self.hr is not None and self.lower is not None and self.upper is not None

    @property
    def words(self) -> str:
        """The numbers."""
        if not self.is_known:
            return self.instead
        return interval(significant(self.hr), significant(self.lower), significant(self.upper))


def forest(rows: Sequence[ForestRow], say: Translations) -> DrawnFigure:
    """Hazard ratios on a logarithmic axis."""
    known = [r for r in rows if r.is_known]
    ends = [v for r in known for v in (r.hr, r.lower, r.upper) if v is not None]
    ticks = ratio_ticks(ends)
    scale = AxisScale(ticks[0], ticks[-1], LEFT, RIGHT, is_log=True)
    precisions = [1 / r.se**2 for r in known if r.se and math.isfinite(r.se)]
    best = max(precisions, default=1.0)
    labels = [wrap(r.label, LABELS - (14 if r.kind == "calibrated" else 0)) for r in rows]
    heights = [LINE * len(lines) + 10 for lines in labels]
    top, bottom = 30.0, 30.0 + sum(heights)
    parts: list[Markup] = [
        text(0, 18, say("forest.estimate"), "label strong"),
        text(NUMBERS, 18, say("forest.numbers"), "label strong", "end"),
    ]
    parts.append(bottom_axis(scale, bottom, ticks, say("forest.axis"), grid_to=top))
    parts.append(line(scale(1), top, scale(1), bottom, "rule"))
    y = top
    for row, lines, height in zip(rows, labels, heights, strict=True):
        parts.append(_row(row, lines, y, height, scale, best))
        y += height
    parts.append(text(LEFT, bottom + 58, f"← {say('forest.favours_target')}", "small"))
    parts.append(text(RIGHT, bottom + 58, f"{say('forest.favours_comparator')} →", "small", "end"))
    return DrawnFigure(bottom + 68, join(*parts))


def _row(
    row: ForestRow, lines: list[str], y: float, height: float, scale: AxisScale, best: float
) -> Markup:
    middle = y + height / 2
    strong = "strong" if row.kind == "main" else ""
    indent = 14.0 if row.kind == "calibrated" else 0.0
    first = middle - LINE * (len(lines) - 1) / 2 + 4.5
    parts = [text(indent, first + LINE * k, one, strong) for k, one in enumerate(lines)]
    parts.append(text(NUMBERS, middle + 4.5, row.words, strong, "end"))
    if row.hr is not None and row.lower is not None and row.upper is not None:
        parts.append(_whisker(row.lower, row.upper, middle, scale))
        information = 1 / (row.se**2 * best) if row.se and math.isfinite(row.se) else 0.0
        size = max(8.0 * math.sqrt(min(information, 1.0)), 3.0)
        if scale.holds(row.hr):
            x = scale(row.hr)
            if row.kind == "calibrated":
                parts.append(mark("diamond", x, middle, max(size, 4.0) * 0.8, "hollow"))
            else:
                parts.append(mark("square", x, middle, size, "tbar" if strong else "solid"))
    return join(*parts)


def _whisker(lower: float, upper: float, y: float, scale: AxisScale) -> Markup:
    """A line from end to end, with arrows where it goes on beyond the axis."""
    a, b = scale(lower), scale(upper)
    parts = [line(a, y, b, y, "rule")]
    if lower < scale.low:
        parts.append(polyline([(a + 6, y - 4), (a, y), (a + 6, y + 4)], "rule"))
    if upper > scale.high:
        parts.append(polyline([(b - 6, y - 4), (b, y), (b - 6, y + 4)], "rule"))
    return join(*parts)
