"""Preference scores of both arms, the target upwards and the comparator downwards."""

from collections.abc import Mapping, Sequence
from typing import Any

from riskset.report.axes import AxisScale, bottom_axis, left_axis, nice_ticks
from riskset.report.figures.curves import legend
from riskset.report.markup import Markup, join, tag
from riskset.report.number_format import short, short_percent
from riskset.report.page import DrawnFigure
from riskset.report.svg import band, box, line, step, text
from riskset.report.translations import Translations

__all__ = ["overlap_figure"]

LEFT, RIGHT, TOP, MIDDLE, BOTTOM = 74.0, 706.0, 100.0, 240.0, 380.0


WAYS = (("target", "upwards"), ("comparator", "downwards"))


def overlap_figure(
    bars: Sequence[Mapping[str, Any]],
    borders: Sequence[float],
    names: Mapping[str, str],
    key: str,
    say: Translations,
    title: str,
    desc: str,
) -> DrawnFigure:
    """Histograms as shares of an arm a hundredth of the scale.

    What an adjustment left out is hatched. Bars that were joined because few people are in them are
    as high as their mean.

    Parameters
    ----------
    bars : records
        ``arm``, ``lower``, ``upper``, ``share`` and ``kept_share``.
    borders : numbers
        Of strata.
    key : str
        A prefix of ids, unique in the page.
    """
    x = AxisScale(0, 1, LEFT, RIGHT)
    heights = [b["share"] / _hundredths(b) for b in bars if b["share"] is not None]
    highest = max(heights, default=0.01) * 1.05
    parts: list[Markup] = [
        _hatching(key, "t", 45),
        _hatching(key, "c", -45),
        box(x(0.3), TOP, x(0.7) - x(0.3), BOTTOM - TOP, "shade"),
        text(x(0.5), TOP - 8, say("overlap.equipoise"), "small", "middle"),
    ]
    for arm, end in (("target", TOP), ("comparator", BOTTOM)):
        y = AxisScale(0, highest, MIDDLE, end)
        ticks = [t for t in nice_ticks(0, highest, 3) if t > 0 or arm == "target"]
        parts.append(left_axis(y, LEFT, ticks, "", short_percent))
        parts.append(_arm([b for b in bars if b["arm"] == arm], arm[0], key, x, y))
    parts.append(text(16, MIDDLE, say("overlap.share"), "label", "middle", turned=True))
    parts.append(line(LEFT, MIDDLE, RIGHT, MIDDLE, "axis"))
    ticks = [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
    parts.append(bottom_axis(x, BOTTOM, ticks, say("overlap.axis"), short))
    parts += [line(x(b), MIDDLE - 10, x(b), MIDDLE + 10, "rule") for b in borders]
    arms = {arm: say(f"overlap.{way}", arm=names[arm]) for arm, way in WAYS}
    parts += [legend(arms, 10), _key(key, bool(borders), say)]
    return DrawnFigure(BOTTOM + 50, join(*parts), title, desc)


def _hundredths(bar: Mapping[str, Any]) -> float:
    return max(100 * (float(bar["upper"]) - float(bar["lower"])), 1e-9)


def _arm(
    bars: Sequence[Mapping[str, Any]], letter: str, key: str, x: AxisScale, y: AxisScale
) -> Markup:
    edges: list[float] = []
    total: list[float] = []
    kept: list[float] = []
    for bar in bars:
        edges.append(x(bar["lower"]))
        total.append(y((bar["share"] or 0.0) / _hundredths(bar)))
        kept.append(y((bar["kept_share"] or 0.0) / _hundredths(bar)))
    if not bars:
        return Markup("")
    edges.append(x(bars[-1]["upper"]))
    total.append(y(0))
    kept.append(y(0))
    return join(
        band(edges, kept, total, None, fill=f"url(#{key}-{letter})"),
        band(edges, [y(0)] * len(edges), kept, f"{letter}band"),
        step([(edges[0], y(0)), *zip(edges, total, strict=True)], letter),
    )


def _hatching(key: str, letter: str, angle: int) -> Markup:
    return tag(
        "defs",
        tag(
            "pattern",
            line(0, 0, 0, 6, f"{letter}hatch"),
            id=f"{key}-{letter}",
            width=6,
            height=6,
            patternUnits="userSpaceOnUse",
            patternTransform=f"rotate({angle})",
        ),
    )


def _key(key: str, has_borders: bool, say: Translations) -> Markup:
    parts = [
        box(LEFT, 50, 26, 14, None, fill=f"url(#{key}-t)"),
        text(LEFT + 34, 62, say("overlap.left_out"), "small"),
        box(LEFT + 220, 50, 26, 14, "tband"),
        text(LEFT + 254, 62, say("overlap.kept"), "small"),
    ]
    if has_borders:
        parts += [
            line(LEFT + 400, 48, LEFT + 400, 66, "rule"),
            text(LEFT + 410, 62, say("overlap.borders"), "small"),
        ]
    return join(*parts)
