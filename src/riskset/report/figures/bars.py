"""Bars: starts by year and arm, and how follow-up ended."""

from collections.abc import Mapping, Sequence

from riskset.report.axes import AxisScale, left_axis, nice_ticks
from riskset.report.markup import Markup, join, tag
from riskset.report.number_format import whole
from riskset.report.page import DrawnFigure
from riskset.report.svg import CHARACTER, box, fit, line, text
from riskset.report.translations import Translations

__all__ = ["calendar_figure", "ends_figure"]

LEFT, RIGHT = 74.0, 706.0
ANGLES = (45, -45, 0, 90, 20, -20, 70, -70)
"""Of the hatching of the parts of a bar; every other one is dense."""


def calendar_figure(
    years: Sequence[tuple[int, int | None, int | None]],
    names: Mapping[str, str],
    say: Translations,
    title: str,
    desc: str,
) -> DrawnFigure:
    """Starts of target and comparator by year, side by side; a hidden number has no bar."""
    bottom, top = 270.0, 56.0
    highest = max((n for _, *both in years for n in both if n is not None), default=1) or 1
    y = AxisScale(0, highest * 1.05, bottom, top)
    parts: list[Markup] = [
        left_axis(y, LEFT, nice_ticks(0, y.high), say("calendar.axis"), whole, RIGHT),
        line(LEFT, bottom, RIGHT, bottom, "axis"),
        text((LEFT + RIGHT) / 2, bottom + 40, say("calendar.year"), "label", "middle"),
    ]
    slot = (RIGHT - LEFT) / max(len(years), 1)
    width = min(slot * 0.36, 34.0)
    every = 1 + int(34 / slot)
    for k, (year, target, comparator) in enumerate(years):
        middle = LEFT + slot * (k + 0.5)
        for arm, n in enumerate((target, comparator)):
            if n:
                x = middle - width if arm == 0 else middle + 1
                class_ = "tbar" if arm == 0 else "cbar"
                parts.append(box(x, y(n), width - 1, bottom - y(n), class_))
        if k % every == 0:
            parts.append(text(middle, bottom + 19, str(year), "tick", "middle"))
    for k, name in enumerate(("target", "comparator")):
        parts.append(box(LEFT, 4 + 19 * k, 26, 13, f"{name[0]}bar"))
        parts.append(text(LEFT + 34, 15 + 19 * k, fit(names[name], RIGHT - LEFT - 34)))
    return DrawnFigure(bottom + 50, join(*parts), title, desc)


def ends_figure(
    counts: Mapping[str, Sequence[int | None]],
    reasons: Sequence[str],
    names: Mapping[str, str],
    key: str,
    say: Translations,
    title: str,
    desc: str,
) -> DrawnFigure:
    """A bar of full width for each arm, cut by the reasons for which follow-up ended.

    Parameters
    ----------
    counts : mapping
        For each arm a number of people for each reason, None where it is hidden.
    """
    parts: list[Markup] = [_hatching(f"{key}-{k}", k) for k in range(len(reasons))]
    top = 0.0
    for arm in ("target", "comparator"):
        own = counts[arm]
        total = sum(n or 0 for n in own) or 1
        parts.append(text(0, top + 14, fit(names[arm], RIGHT, 14.5), "label strong"))
        x = AxisScale(0, total, 0, RIGHT)
        done = 0
        for k, n in enumerate(own):
            if not n:
                continue
            a, b = x(done), x(done + n)
            done += n
            parts.append(box(a, top + 22, b - a, 34, "card"))
            parts.append(box(a, top + 22, b - a, 34, None, fill=f"url(#{key}-{k})"))
            shown = whole(n)
            room = len(shown) * CHARACTER * 13 + 8
            if b - a > room:
                middle = (a + b) / 2
                parts.append(box(middle - room / 2, top + 29, room, 20, "plate"))
                parts.append(text(middle, top + 43.5, shown, "strong", "middle"))
        top += 74
    at_x, top = 0.0, top + 4
    for k, reason in enumerate(reasons):
        width = 40 + 6.9 * len(reason)
        if at_x + width > RIGHT:
            at_x, top = 0.0, top + 24
        parts.append(box(at_x, top, 26, 15, "card"))
        parts.append(box(at_x, top, 26, 15, None, fill=f"url(#{key}-{k})"))
        parts.append(text(at_x + 33, top + 12, reason))
        at_x += width + 14
    return DrawnFigure(top + 28, join(*parts), title, desc)


def _hatching(key: str, k: int) -> Markup:
    gap = 5 if k % 2 == 0 else 9
    return tag(
        "defs",
        tag(
            "pattern",
            line(0, 0, 0, gap, "hatch"),
            id=key,
            width=gap,
            height=gap,
            patternUnits="userSpaceOnUse",
            patternTransform=f"rotate({ANGLES[k % len(ANGLES)]})",
        ),
    )
