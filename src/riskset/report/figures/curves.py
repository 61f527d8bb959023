"""Risks of the arms over time, with bands and the numbers at risk under the axis."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from riskset._ticks import nice_ticks
from riskset.report.axes import AxisScale, bottom_axis, left_axis, legend, mark_of
from riskset.report.markup import Markup, join
from riskset.report.number_format import short_percent
from riskset.report.svg import LEFT, RIGHT, DrawnFigure, band, fit, step, text, thin
from riskset.report.translations import Translations

__all__ = ["RiskCurve", "risk_curves", "survival_ends", "time_ticks"]

PANEL = 280.0
YEAR = 365.25
LONG = 2 * YEAR
"""Days from which on an axis counts years."""


@dataclass(frozen=True)
class RiskCurve:
    """One arm of a panel: a step function and its band, whose ends are empty if it has none."""

    arm: str
    time: list[float]
    value: list[float]
    lower: list[float]
    upper: list[float]
    is_adjusted: bool = True


def time_ticks(last: float) -> tuple[list[float], float, str]:
    """Times in days for an axis, the days of its unit, and the name of the unit.

    >>> time_ticks(800)[1:]
    (365.25, 'years')
    """
    unit, name = (YEAR, "years") if last > LONG else (1.0, "days")
    return [t * unit for t in nice_ticks(0, last / unit, 8)], unit, name


def risk_curves(
    panels: Sequence[tuple[str, Sequence[RiskCurve]]],
    at_risk: Sequence[tuple[str, Sequence[str]]],
    ticks: Sequence[float],
    last: float,
    names: Mapping[str, str],
    say: Translations,
    is_survival: bool = False,
) -> DrawnFigure:
    """Panels with a title, one below the other, and lines of numbers at risk, one at each tick.

    Times are days. The axis of survival ends at 1, and starts at 0 unless all values are above a
    half.
    """
    _, unit, unit_name = time_ticks(last)
    x = AxisScale(0, last)
    parts = [legend(names)]
    top = 44.0
    for name, curves in panels:
        low, high = survival_ends(curves) if is_survival else (0.0, _highest(curves))
        y = AxisScale(low, high, top + 26 + PANEL, top + 26)
        parts.append(text(LEFT, top + 14, fit(name, RIGHT - LEFT, 15), "label strong"))
        what = say("axis.survival" if is_survival else "axis.risk")
        parts.append(left_axis(y, x, nice_ticks(low, high), what, short_percent))
        parts += [_curve(c, x, y, ticks) for c in curves]
        top += 26 + PANEL
        last_panel = name == panels[-1][0]
        axis_title = say(f"axis.{unit_name}") if last_panel else ""
        parts.append(bottom_axis(x, top, ticks, axis_title, lambda t: f"{t / unit:g}"))
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


def _highest(curves: Sequence[RiskCurve]) -> float:
    highest = max((v for c in curves for v in (*c.upper, *c.value)), default=0.0) or 0.01
    return min(highest * 1.05, 1.0)


def survival_ends(curves: Sequence[RiskCurve]) -> tuple[float, float]:
    """Ends of the axis: from 0 unless little would then be seen."""
    lowest = min((v for c in curves for v in (*c.lower, *c.value)), default=0.0)
    return (max(lowest - 0.05 * (1 - lowest), 0.0) if lowest > 0.5 else 0.0), 1.0


def _curve(curve: RiskCurve, x: AxisScale, y: AxisScale, ticks: Sequence[float]) -> Markup:
    has_band = bool(curve.lower)
    columns = [curve.value, curve.lower, curve.upper] if has_band else [curve.value]
    kept = thin(columns, y.high - y.low)
    times = [x(curve.time[k]) for k in kept]
    letter = curve.arm[0]
    parts: list[Markup] = []
    if has_band:
        lower, upper = ([y(ends[k]) for k in kept] for ends in (curve.lower, curve.upper))
        parts.append(band(times, lower, upper, f"{letter}band"))
    points = [(a, y(curve.value[k])) for a, k in zip(times, kept, strict=True)]
    parts.append(step(points, letter if curve.is_adjusted else f"{letter} thin"))
    if curve.is_adjusted and curve.time:
        inside = [t for t in ticks if 0 < t <= curve.time[-1]]
        parts += [mark_of(curve.arm, x(t), y(_at(curve, t))) for t in inside]
    return join(*parts)


def _at(curve: RiskCurve, time: float) -> float:
    return curve.value[max(bisect_right(curve.time, time) - 1, 0)]
