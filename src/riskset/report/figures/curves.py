"""Risks of the arms over time, with bands and the numbers at risk under the axis."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

from riskset._ticks import nice_ticks, time_ticks
from riskset._time_units import DAYS_A_YEAR, TimeUnit
from riskset.report.axes import AxisScale, bottom_axis, left_axis, legend, mark_of
from riskset.report.markup import Markup, join
from riskset.report.number_format import short_percent
from riskset.report.svg import LEFT, RIGHT, DrawnFigure, band, fit, step, text, thin
from riskset.report.translations import Translations

__all__ = ["ends_of", "risk_curves", "time_axis"]

PANEL = 280.0
LONG = 2 * DAYS_A_YEAR
"""Days from which on an axis counts years in a report in days."""
Curve = Mapping[str, Any]
"""Lists of times and values of one arm, as in `report.json`."""


def time_axis(last: float, unit: TimeUnit) -> tuple[list[float], float, TimeUnit]:
    """Ticks in the unit of the report, how many of these the unit of the axis has, and its name.

    >>> time_axis(800, "days")[1:], time_axis(60, "months")[1:]
    ((365.25, 'years'), (1.0, 'months'))
    """
    if unit != "days" or last <= LONG:
        return time_ticks(last, unit), 1.0, unit
    return [t * DAYS_A_YEAR for t in time_ticks(last / DAYS_A_YEAR, "years")], DAYS_A_YEAR, "years"


def risk_curves(
    panels: Sequence[tuple[str, Sequence[Curve]]],
    at_risk: Sequence[tuple[str, Sequence[str]]],
    ticks: Sequence[float],
    last: float,
    names: Mapping[str, str],
    say: Translations,
    shown: str,
    unit: TimeUnit,
) -> DrawnFigure:
    """Panels with a title, one below the other, and lines of numbers at risk, one at each tick.

    The curves are `shown` as "risk" or "survival". Times are in `unit`. The axis of survival ends
    at 1, and starts at 0 unless all values are above a half.
    """
    _, scale, of_axis = time_axis(last, unit)
    x = AxisScale(0, last)
    parts = [legend(names)]
    top = 44.0
    for name, curves in panels:
        low, high = ends_of(curves, shown)
        y = AxisScale(low, high, top + 26 + PANEL, top + 26)
        parts.append(text(LEFT, top + 14, fit(name, RIGHT - LEFT, 15), "label strong"))
        ends = nice_ticks(low, high)
        parts.append(left_axis(y, x, ends, say(f"axis.{shown}"), short_percent))
        parts += [_curve(c, shown, x, y, ticks) for c in curves]
        top += 26 + PANEL
        last_panel = name == panels[-1][0]
        axis_title = say("axis.time", **say.units(of_axis)) if last_panel else ""
        parts.append(bottom_axis(x, top, ticks, axis_title, lambda t: f"{t / scale:g}"))
        top += 50 if last_panel else 34
    parts.append(text(0, top + 18, say("curves.at_risk"), "label strong"))
    for label, numbers in at_risk:
        top += 20
        parts.append(text(0, top + 16, fit(label, RIGHT), "small"))
        top += 18
        parts += [
            text(x(t), top + 16, number, "tick", "middle")
            for t, number in zip(ticks, numbers, strict=True)
        ]
    return DrawnFigure(top + 26, join(*parts))


def ends_of(curves: Sequence[Curve], shown: str) -> tuple[float, float]:
    """Ends of the axis: from 0 unless little would then be seen."""
    values = [v for c in curves for column in _columns(c, shown) for v in column]
    if shown == "risk":
        return 0.0, min(1.05 * (max(values, default=0.0) or 0.01), 1.0)
    lowest = min(values, default=0.0)
    return (max(lowest - 0.05 * (1 - lowest), 0.0) if lowest > 0.5 else 0.0), 1.0


def _columns(curve: Curve, shown: str) -> list[list[float]]:
    """Values, and the ends of the band, which adjusted curves have."""
    return [curve[name] for name in ((shown, "lower", "upper") if curve["adjusted"] else (shown,))]


def _curve(curve: Curve, shown: str, x: AxisScale, y: AxisScale, ticks: Sequence[float]) -> Markup:
    columns = _columns(curve, shown)
    kept = thin(columns, y.high - y.low)
    times = [x(curve["time"][k]) for k in kept]
    value, *ends = ([y(column[k]) for k in kept] for column in columns)
    arm, letter = curve["arm"], curve["arm"][0]
    points = list(zip(times, value, strict=True))
    if not ends:
        return step(points, f"{letter} thin")
    inside = [t for t in ticks if 0 < t <= curve["time"][-1]]
    at = [curve[shown][max(bisect_right(curve["time"], t) - 1, 0)] for t in inside]
    marks = [mark_of(arm, x(t), y(v)) for t, v in zip(inside, at, strict=True)]
    lower, upper = ends
    return join(band(times, lower, upper, f"{letter}band"), step(points, letter), *marks)
