"""Who was left after each step: two columns of boxes, with what each step removed between them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from riskset.report.markup import Markup, join
from riskset.report.svg import DrawnFigure, box, line, polyline, text, wrap

__all__ = ["AttritionStep", "attrition_figure"]

BOX, MIDDLE, WIDTH = 190.0, 360.0, 716.0
LINE = 16.0


@dataclass(frozen=True)
class AttritionStep:
    """A step in words and shown numbers; the first removes nobody."""

    step: str
    target: str
    comparator: str
    removed: str | None


def attrition_figure(steps: Sequence[AttritionStep], names: Iterable[str]) -> DrawnFigure:
    """Boxes of target (left) and comparator (right), steps between."""
    parts: list[Markup] = []
    heads = [wrap(name, BOX, 13.5, 3) for name in names]
    for x, head in zip((2 + BOX / 2, WIDTH - BOX / 2), heads, strict=True):
        parts += [
            text(x, 16 + LINE * k, one, "label strong", "middle") for k, one in enumerate(head)
        ]
    top = 12 + LINE * max(map(len, heads))
    before: float | None = None
    for step in steps:
        words = wrap(step.step, WIDTH - 2 * BOX - 40, 13.0)
        lines = [(one, "strong") for one in words]
        if step.removed is not None:
            lines += [(one, "small") for one in wrap(step.removed, WIDTH - 2 * BOX - 30, 12.0)]
        height = max(LINE * len(lines) + 10, 40.0)
        middle = top + height / 2
        if before is not None:
            parts += [_arrow(x, before, middle - 15) for x in (2 + BOX / 2, WIDTH - BOX / 2)]
        parts.append(box(2, middle - 15, BOX, 30, "tcard"))
        parts.append(box(WIDTH - BOX, middle - 15, BOX, 30, "ccard"))
        parts.append(text(2 + BOX / 2, middle + 5, step.target, "strong", "middle"))
        parts.append(text(WIDTH - BOX / 2, middle + 5, step.comparator, "strong", "middle"))
        first = middle - LINE * (len(lines) - 1) / 2 + 4.5
        parts += [
            text(MIDDLE, first + LINE * k, one, class_, "middle")
            for k, (one, class_) in enumerate(lines)
        ]
        before = middle + 15
        top += height + 12
    return DrawnFigure(top, join(*parts))


def _arrow(x: float, start: float, end: float) -> Markup:
    head = polyline([(x - 5, end - 7), (x, end), (x + 5, end - 7)], "rule")
    return join(line(x, start, x, end, "rule"), head)
