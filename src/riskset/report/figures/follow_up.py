"""How long people were followed: a histogram of each arm as steps."""

from collections.abc import Mapping, Sequence

from riskset.report.axes import AxisScale, bottom_axis, left_axis, nice_ticks
from riskset.report.figures.curves import legend, time_ticks
from riskset.report.markup import Markup, join
from riskset.report.number_format import short_percent
from riskset.report.page import DrawnFigure
from riskset.report.svg import band, line, step, text
from riskset.report.translations import Translations

__all__ = ["Bar", "histogram_figure"]

LEFT, RIGHT, TOP, MIDDLE, BOTTOM = 74.0, 706.0, 56.0, 190.0, 324.0
Bar = tuple[float, float, float]
"""Start and end in days, and the share of the arm."""


def histogram_figure(
    bars: Mapping[str, Sequence[Bar]],
    names: Mapping[str, str],
    say: Translations,
    title: str,
    desc: str,
) -> DrawnFigure:
    """The target upwards and the comparator downwards.

    Bars that were joined because few people are in them are as high as their mean in bars of the
    narrowest width.
    """
    width = min(end - start for own in bars.values() for start, end, _ in own)
    heights = {
        arm: [share * width / (end - start) for start, end, share in own]
        for arm, own in bars.items()
    }
    last = max(own[-1][1] for own in bars.values() if own)
    highest = max(max(own, default=0.0) for own in heights.values()) * 1.05 or 0.01
    x = AxisScale(0, last, LEFT, RIGHT)
    ticks, unit, unit_name = time_ticks(last)
    ways = (("target", "upwards", TOP), ("comparator", "downwards", BOTTOM))
    parts: list[Markup] = [
        legend({arm: say(f"overlap.{way}", arm=names[arm]) for arm, way, _ in ways}, 10)
    ]
    for arm, _, end in ways:
        y = AxisScale(0, highest, MIDDLE, end)
        own = [t for t in nice_ticks(0, highest, 3) if t > 0 or arm == "target"]
        parts.append(left_axis(y, LEFT, own, "", short_percent, RIGHT))
        parts.append(_steps(bars[arm], [y(h) for h in heights[arm]], x, arm[0]))
    parts += [
        text(16, MIDDLE, say("overlap.share"), "label", "middle", turned=True),
        line(LEFT, MIDDLE, RIGHT, MIDDLE, "axis"),
        bottom_axis(x, BOTTOM, ticks, say(f"axis.{unit_name}"), lambda t: f"{t / unit:g}"),
    ]
    return DrawnFigure(BOTTOM + 50, join(*parts), title, desc)


def _steps(bars: Sequence[Bar], tops: list[float], x: AxisScale, letter: str) -> Markup:
    if not bars:
        return Markup("")
    edges = [*(x(start) for start, _, _ in bars), x(bars[-1][1])]
    tops = [*tops, MIDDLE]
    return join(
        band(edges, [MIDDLE] * len(edges), tops, f"{letter}band"),
        step([(edges[0], MIDDLE), *zip(edges, tops, strict=True)], letter),
    )
