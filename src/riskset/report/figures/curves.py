"""Risks of the arms over time, with bands and the people still followed under the axis."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from riskset.report.axes import AxisScale, bottom_axis, left_axis, nice_ticks
from riskset.report.markup import Markup, join
from riskset.report.number_format import short_percent
from riskset.report.page import DrawnFigure
from riskset.report.svg import band, fit, line, mark, step, text, thin
from riskset.report.translations import Translations

__all__ = ["RiskCurve", "legend", "risk_curves", "survival_ends", "time_ticks"]

LEFT, RIGHT, PANEL = 74.0, 706.0, 280.0
YEAR = 365.25
LONG = 2 * YEAR
"""Days from which on an axis counts years."""


@dataclass(frozen=True)
class RiskCurve:
    """One arm of a panel: points of a step function and of its band.

    Attributes
    ----------
    arm : {"target", "comparator"}
    time, value, lower, upper : list of float
        Without a band the ends are empty.
    """

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


def legend(names: Mapping[str, str], y: float, x: float = LEFT) -> Markup:
    """A line with its mark for each arm, one above the other."""
    parts: list[Markup] = []
    for k, arm in enumerate(("target", "comparator")):
        at = y + 19 * k
        parts.append(line(x, at, x + 44, at, arm[0]))
        parts.append(_mark(arm, x + 22, at))
        parts.append(text(x + 54, at + 4.5, fit(names[arm], RIGHT - x - 54)))
    return join(*parts)


def risk_curves(
    panels: Sequence[tuple[str, Sequence[RiskCurve]]],
    at_risk: Sequence[tuple[str, Sequence[str]]],
    ticks: Sequence[float],
    last: float,
    names: Mapping[str, str],
    say: Translations,
    title: str,
    desc: str,
    is_survival: bool = False,
) -> DrawnFigure:
    """Panels of curves, one below the other, with one table of numbers at risk.

    Parameters
    ----------
    panels : sequence of (title, curves)
    at_risk : sequence of (label, numbers)
        A number for each tick.
    ticks : days
    last : float
        Where the axis ends, in days.
    is_survival : bool
        Values start at 1; the axis then ends there, and starts at 0 unless all are above a half.
    """
    unit, unit_name = (YEAR, "years") if last > LONG else (1.0, "days")
    x = AxisScale(0, last, LEFT, RIGHT)
    parts = [legend(names, 10)]
    top = 44.0
    for name, curves in panels:
        low, high = survival_ends(curves) if is_survival else (0.0, _highest(curves))
        y = AxisScale(low, high, top + 26 + PANEL, top + 26)
        parts.append(text(LEFT, top + 14, fit(name, RIGHT - LEFT, 15), "label strong"))
        what = say("axis.survival" if is_survival else "axis.risk")
        parts.append(left_axis(y, LEFT, nice_ticks(low, high), what, short_percent, RIGHT))
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
    return DrawnFigure(top + 26, join(*parts), title, desc)


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
    if curve.is_adjusted:
        parts += [_mark(curve.arm, x(t), y(_at(curve, t))) for t in ticks if _holds(curve, t)]
    return join(*parts)


def _holds(curve: RiskCurve, time: float) -> bool:
    return bool(curve.time) and 0 < time <= curve.time[-1]


def _at(curve: RiskCurve, time: float) -> float:
    return next(
        (v for t, v in zip(reversed(curve.time), reversed(curve.value), strict=True) if t <= time),
        curve.value[0],
    )


def _mark(arm: str, x: float, y: float) -> Markup:
    """A disc for the target, an open square for the comparator."""
    return mark("circle" if arm == "target" else "square", x, y, 4.0, f"{arm[0]}mark")
