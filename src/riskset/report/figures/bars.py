"""Bars: starts by year and arm, and how follow-up ended."""

from collections.abc import Mapping, Sequence

from riskset._ticks import nice_ticks
from riskset.report.axes import AxisScale, key, left_axis, legend
from riskset.report.markup import Markup, join
from riskset.report.number_format import whole
from riskset.report.svg import CHARACTER, LEFT, RIGHT, DrawnFigure, box, fit, hatching, line, text
from riskset.report.translations import Translations

__all__ = ["calendar_figure", "ends_figure"]

ANGLES = (45, -45, 0, 90, 20, -20, 70, -70)
"""Of the hatching of the parts of a bar; every other one is dense."""


def calendar_figure(
    years: Sequence[tuple[int, int | None, int | None]],
    names: Mapping[str, str],
    say: Translations,
) -> DrawnFigure:
    """Starts of target and comparator by year, side by side; a hidden number has no bar."""
    bottom, top = 270.0, 56.0
    highest = max((n for _, *both in years for n in both if n is not None), default=1) or 1
    y = AxisScale(0, highest * 1.05, bottom, top)
    parts: list[Markup] = [
        legend(names, has_bars=True),
        left_axis(y, AxisScale(0, 1), nice_ticks(0, y.high), say("calendar.axis"), whole),
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
    return DrawnFigure(bottom + 50, join(*parts))


def ends_figure(
    counts: Mapping[str, Sequence[int | None]],
    reasons: Sequence[str],
    names: Mapping[str, str],
    prefix: str,
) -> DrawnFigure:
    """A bar of full width for each arm, cut by the reasons for which follow-up ended.

    `counts` has a number of people for each reason, None where it is hidden; `prefix` makes the ids
    of the hatching unique in the page.
    """
    parts = [
        hatching(f"{prefix}-{k}", "hatch", ANGLES[k % len(ANGLES)], 5 if k % 2 == 0 else 9)
        for k in range(len(reasons))
    ]
    top = 0.0
    for arm in ("target", "comparator"):
        total = sum(n or 0 for n in counts[arm]) or 1
        parts.append(text(0, top + 14, fit(names[arm], RIGHT, 14.5), "label strong"))
        x = AxisScale(0, total, 0, RIGHT)
        done = 0
        for k, n in enumerate(counts[arm]):
            if not n:
                continue
            a, b = x(done), x(done + n)
            done += n
            parts.append(box(a, top + 22, b - a, 34, "card"))
            parts.append(box(a, top + 22, b - a, 34, None, fill=f"url(#{prefix}-{k})"))
            shown = whole(n)
            room = len(shown) * CHARACTER * 13 + 8
            if b - a > room:
                middle = (a + b) / 2
                parts.append(box(middle - room / 2, top + 29, room, 20, "plate"))
                parts.append(text(middle, top + 43.5, shown, "strong", "middle"))
        top += 74
    swatches = [
        join(box(-13, -7, 26, 15, "card"), box(-13, -7, 26, 15, None, fill=f"url(#{prefix}-{k})"))
        for k in range(len(reasons))
    ]
    shown, bottom = key(list(zip(swatches, reasons, strict=True)), top + 12, 0)
    return DrawnFigure(bottom + 16, join(*parts, shown))
