"""Histograms of both arms, the target upwards and the comparator downwards."""

from collections.abc import Mapping, Sequence

from riskset._ticks import nice_ticks
from riskset._time_units import TimeUnit
from riskset.report.axes import AxisScale, bottom_axis, key, left_axis, legend
from riskset.report.figures.curves import time_axis
from riskset.report.markup import Markup, join
from riskset.report.number_format import short_percent
from riskset.report.svg import (
    LEFT,
    RIGHT,
    DrawnFigure,
    band,
    box,
    hatching,
    line,
    step,
    text,
)
from riskset.report.translations import Translations

__all__ = ["Bar", "follow_up_figure", "overlap_figure"]

HEIGHT = 134.0
"""Of each half, px."""
Bar = tuple[float, float, float, float]
"""Start, end, share of the arm, and the share that an adjustment keeps."""


def overlap_figure(
    bars: Mapping[str, Sequence[Bar]],
    borders: Sequence[float],
    names: Mapping[str, str],
    prefix: str,
    say: Translations,
) -> DrawnFigure:
    """Preference scores in hundredths; what an adjustment excluded is hatched.

    `borders` are those of strata; `prefix` makes the ids of the hatching unique in the page.
    """
    top = 100.0
    middle, bottom = top + HEIGHT, top + 2 * HEIGHT
    x = AxisScale(0, 1)
    items = [
        (box(-13, -7, 26, 14, None, fill=f"url(#{prefix}-t)"), say("overlap.left_out")),
        (box(-13, -7, 26, 14, "tband"), say("overlap.kept")),
    ]
    if borders:
        items.append((line(0, -9, 0, 9, "rule"), say("overlap.borders")))
    return DrawnFigure(
        bottom + 50,
        join(
            hatching(f"{prefix}-t", "thatch", 45),
            hatching(f"{prefix}-c", "chatch", -45),
            box(x(0.3), top, x(0.7) - x(0.3), 2 * HEIGHT, "shade"),
            text(x(0.5), top - 8, say("overlap.equipoise"), "small", "middle"),
            _halves(bars, 0.01, x, top, names, say, prefix),
            bottom_axis(x, bottom, nice_ticks(0, 1, 10), say("overlap.axis")),
            *(line(x(b), middle - 10, x(b), middle + 10, "rule") for b in borders),
            key(items, 57)[0],
        ),
    )


def follow_up_figure(
    bars: Mapping[str, Sequence[Bar]], names: Mapping[str, str], say: Translations, unit: TimeUnit
) -> DrawnFigure:
    """Time at risk, in `unit`."""
    top = 56.0
    width = min(end - start for of_arm in bars.values() for start, end, *_ in of_arm)
    x = AxisScale(0, max(of_arm[-1][1] for of_arm in bars.values() if of_arm))
    ticks, scale, of_axis = time_axis(x.high, unit)
    bottom = top + 2 * HEIGHT
    content = join(
        _halves(bars, width, x, top, names, say),
        bottom_axis(
            x,
            bottom,
            ticks,
            say("axis.time", **say.units(of_axis)),
            lambda t: f"{t / scale:g}",
        ),
    )
    return DrawnFigure(bottom + 50, content)


def _halves(
    bars: Mapping[str, Sequence[Bar]],
    unit: float,
    x: AxisScale,
    top: float,
    names: Mapping[str, str],
    say: Translations,
    prefix: str | None = None,
) -> Markup:
    """Heights are shares of an arm by `unit` of the axis, so that wide bars show their mean."""
    middle, bottom = top + HEIGHT, top + 2 * HEIGHT
    every = [bar for of_arm in bars.values() for bar in of_arm]
    shares = [share * unit / (end - start) for start, end, share, _ in every]
    highest = 1.05 * max(shares, default=0.0) or 0.01
    titles = {arm: say(f"overlap.of_{arm}", arm=names[arm]) for arm in names}
    parts = [legend(titles)]
    for arm, of_arm in bars.items():
        y = AxisScale(0, highest, middle, top if arm == "target" else bottom)
        ticks = [t for t in nice_ticks(0, highest, 3) if t > 0 or arm == "target"]
        parts.append(left_axis(y, x, ticks, "", short_percent))
        if not of_arm:
            continue
        edges = [x(of_arm[0][0]), *(x(end) for _, end, *_ in of_arm)]
        total, kept = ([*(y(b[k] * unit / (b[1] - b[0])) for b in of_arm), middle] for k in (2, 3))
        if prefix is not None:
            parts.append(band(edges, kept, total, None, fill=f"url(#{prefix}-{arm[0]})"))
        parts.append(band(edges, [middle] * len(edges), kept, f"{arm[0]}band"))
        parts.append(step([(edges[0], middle), *zip(edges, total, strict=True)], arm[0]))
    parts.append(text(16, middle, say("overlap.share"), "label", "middle", turned=True))
    parts.append(line(LEFT, middle, RIGHT, middle, "axis"))
    return join(*parts)
