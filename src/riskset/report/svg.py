"""Drawing by hand: steps, bands, marks and boxes as SVG text, all coordinates to 0.1 px.

Colours are classes of the page's style sheet, so that a dark page and a printed one differ in it
alone. Nothing here knows what is drawn.
"""

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from riskset.report.markup import Markup, tag

__all__ = [
    "LEFT",
    "RIGHT",
    "DrawnFigure",
    "band",
    "box",
    "circle",
    "drawing",
    "fit",
    "hatching",
    "hexagon",
    "line",
    "mark",
    "polygon",
    "polyline",
    "px",
    "square",
    "step",
    "text",
    "thin",
    "wrap",
]

WIDTH = 720
LEFT, RIGHT = 74.0, 706.0
"""Ends of the axes of most figures."""
Points = Sequence[tuple[float, float]]
CHARACTER = 0.6
"""Width of an average character of the widest usual sans-serif font, in its height."""


@dataclass(frozen=True)
class DrawnFigure:
    """The shapes of a figure, and its height in px."""

    height: float
    content: Markup


def px(value: float) -> str:
    """A coordinate.

    >>> px(12.04), px(-0.04), px(3.25)
    ('12', '0', '3.2')
    """
    shown = f"{value:.1f}".removesuffix(".0")
    return "0" if shown == "-0" else shown


def drawing(key: str, title: str, desc: str, drawn: DrawnFigure) -> Markup:
    """An image with a title and a description, whose ids start with `key`."""
    return tag(
        "svg",
        tag("title", title, id=f"{key}-title"),
        tag("desc", desc, id=f"{key}-desc"),
        drawn.content,
        viewBox=f"0 0 {WIDTH} {px(drawn.height)}",
        role="img",
        aria_labelledby=f"{key}-title",
        aria_describedby=f"{key}-desc",
    )


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Markup:
    """A straight line."""
    return tag("line", x1=px(x1), y1=px(y1), x2=px(x2), y2=px(y2), class_=class_)


def polyline(points: Points, class_: str) -> Markup:
    """Points joined by straight lines."""
    joined = "L".join(f"{px(x)} {px(y)}" for x, y in points)
    return tag("path", d=f"M{joined}", class_=class_) if points else Markup("")


def step(points: Points, class_: str) -> Markup:
    """A right-continuous step function through its jumps."""
    return tag("path", d=_steps(points), class_=class_) if points else Markup("")


def band(
    x: Sequence[float],
    lower: Sequence[float],
    upper: Sequence[float],
    class_: str | None,
    **more: object,
) -> Markup:
    """The area between two step functions with jumps at the same places."""
    if not x:
        return Markup("")
    parts = [_steps(list(zip(x, upper, strict=True))), f"V{px(lower[-1])}"]
    for k in range(len(x) - 1, 0, -1):
        parts.append(f"H{px(x[k])}V{px(lower[k - 1])}")
    return tag("path", d="".join([*parts, f"H{px(x[0])}Z"]), class_=class_, **more)


def _steps(points: Points) -> str:
    (x0, y0), *rest = points
    return f"M{px(x0)} {px(y0)}" + "".join(f"H{px(x)}V{px(y)}" for x, y in rest)


def box(
    x: float, y: float, width: float, height: float, class_: str | None, **more: object
) -> Markup:
    """A rectangle."""
    return tag("rect", x=px(x), y=px(y), width=px(width), height=px(height), class_=class_, **more)


def circle(x: float, y: float, radius: float, class_: str) -> Markup:
    """A disc, or a ring by its class."""
    return tag("circle", cx=px(x), cy=px(y), r=px(radius), class_=class_)


def square(x: float, y: float, half: float, class_: str) -> Markup:
    """A square about its middle."""
    return box(x - half, y - half, 2 * half, 2 * half, class_)


def mark(kind: str, x: float, y: float, size: float, class_: str) -> Markup:
    """One of several marks that differ in shape: circle, square, diamond or cross."""
    if kind == "circle":
        return circle(x, y, size, class_)
    if kind == "square":
        return square(x, y, size, class_)
    if kind == "diamond":
        s = 1.3 * size
        return polygon([(x, y - s), (x + s, y), (x, y + s), (x - s, y)], class_)
    a, b, c, d = px(x - size), px(x + size), px(y - size), px(y + size)
    return tag("path", d=f"M{a} {c}L{b} {d}M{a} {d}L{b} {c}", class_=class_)


def hatching(key: str, class_: str, angle: int, gap: int = 6) -> Markup:
    """Lines for areas that are filled with ``url(#key)``."""
    pattern = tag(
        "pattern",
        line(0, 0, 0, gap, class_),
        id=key,
        width=gap,
        height=gap,
        patternUnits="userSpaceOnUse",
        patternTransform=f"rotate({angle})",
    )
    return tag("defs", pattern)


def hexagon(x: float, y: float, radius: float, class_: str) -> Markup:
    """A regular hexagon that stands on a corner."""
    corners = [(0, -1), (0.866, -0.5), (0.866, 0.5), (0, 1), (-0.866, 0.5), (-0.866, -0.5)]
    return polygon([(x + radius * a, y + radius * b) for a, b in corners], class_)


def polygon(points: Points, class_: str) -> Markup:
    """A closed area."""
    return tag("polygon", points=" ".join(f"{px(x)},{px(y)}" for x, y in points), class_=class_)


def text(
    x: float,
    y: float,
    content: object,
    class_: str = "tick",
    anchor: str | None = None,
    turned: bool = False,
) -> Markup:
    """Words at a place: its left end unless `anchor` is "middle" or "end"."""
    turn = f"rotate(-90 {px(x)} {px(y)})" if turned else None
    return tag("text", content, x=px(x), y=px(y), class_=class_, text_anchor=anchor, transform=turn)


def wrap(words: str, width: float, size: float = 13.0, most: int = 3) -> list[str]:
    """Words on lines of a width in px; what is too long for so many lines ends in an ellipsis."""
    room = _room(width, size)
    lines = textwrap.wrap(words, room, break_long_words=False, break_on_hyphens=False) or [""]
    cut = [_cut(one, room) for one in lines]
    if len(cut) > most:
        cut = [*cut[: most - 1], f"{cut[most - 1][: room - 1].rstrip()}…"]
    return cut


def fit(words: str, width: float, size: float = 13.0) -> str:
    """Words on one line of a width in px, cut if need be."""
    return _cut(words, _room(width, size))


def _room(width: float, size: float) -> int:
    return max(int(width / (CHARACTER * size)), 4)


def _cut(words: str, room: int) -> str:
    return words if len(words) <= room else f"{words[: room - 1].rstrip()}…"


def thin(y: Sequence[Sequence[float]], height: float, most: int = 1000) -> list[int]:
    """Positions of the points worth drawing: those that move by 0.1 % of the axis, at most `most`.

    `y` has a curve and the ends of its band; `height` is that of the axis.
    """
    n = len(y[0]) if y else 0
    tolerance = 0.001 * height
    while True:
        kept: list[int] = []
        for k in range(n):
            steps = [abs(c[k] - c[kept[-1]]) if kept else math.inf for c in y]
            if k == n - 1 or any(step > 0 and step >= tolerance for step in steps):
                kept.append(k)
        if len(kept) <= most:
            return kept
        tolerance = 2 * tolerance or 1e-6
