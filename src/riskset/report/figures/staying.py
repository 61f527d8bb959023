"""The proportion of people who still keep to their treatment, over time."""

from collections.abc import Mapping, Sequence

from riskset._ticks import nice_ticks
from riskset._time_units import TimeUnit
from riskset.report.axes import AxisScale, bottom_axis, left_axis, legend, mark_of
from riskset.report.figures.curves import time_axis
from riskset.report.markup import Markup, join
from riskset.report.number_format import short_percent
from riskset.report.svg import DrawnFigure, polyline
from riskset.report.translations import Translations

__all__ = ["staying_figure"]

TOP, BOTTOM = 56.0, 320.0


def staying_figure(
    points: Mapping[str, Sequence[tuple[float, float]]],
    names: Mapping[str, str],
    say: Translations,
    unit: TimeUnit,
) -> DrawnFigure:
    """Shares at some times, in `unit`, for each arm, joined by straight lines."""
    last = max(t for curve in points.values() for t, _ in curve)
    ticks, scale, of_axis = time_axis(last, unit)
    x, y = AxisScale(0, last), AxisScale(0, 1, BOTTOM, TOP)
    parts: list[Markup] = [
        legend(names),
        left_axis(y, x, nice_ticks(0, 1), say("staying.y_axis"), short_percent),
        bottom_axis(
            x, BOTTOM, ticks, say("axis.time", **say.units(of_axis)), lambda t: f"{t / scale:g}"
        ),
    ]
    for arm, curve in points.items():
        placed = [(x(t), y(share)) for t, share in curve]
        parts.append(polyline(placed, arm[0]))
        parts += [mark_of(arm, a, b) for a, b in placed]
    return DrawnFigure(BOTTOM + 50, join(*parts))
