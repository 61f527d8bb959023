"""Round numbers for the ticks of axes, in the figures of reports and in plots."""

import math
from collections.abc import Sequence

from riskset._time_units import TimeUnit

__all__ = ["log_ticks", "nice_ticks", "ratio_ticks", "time_ticks"]

MAX_POWER = 6
"""Power of 2 to which the axis of a ratio extends at most, on both sides of 1."""
CLOSE_RATIOS = (
    (0.9, 0.95, 1.0, 1.05, 1.1),
    (0.8, 0.9, 1.0, 1.1, 1.25),
    (0.5, 0.67, 0.8, 1.0, 1.25, 1.5, 2.0),
)
"""Ticks of ratios that are close to 1, of which those are used that hold them."""
MAX_RATIOS = 6
"""Ticks of a ratio whose labels fit next to each other in a forest plot."""
MONTHS = (1, 2, 3, 6, 12, 24, 60, 120)
"""Steps of an axis of months: round parts of a year, and whole years."""


def nice_ticks(
    low: float, high: float, about: int = 5, steps: Sequence[float] = (1, 2, 5)
) -> list[float]:
    """Multiples of a round step from `low` to `high`, at most `about` steps apart.

    >>> nice_ticks(0, 0.43)
    [0.0, 0.1, 0.2, 0.3, 0.4]
    """
    if not high > low:
        return [low]
    rough = (high - low) / about
    unit = 10.0 ** math.floor(math.log10(rough))
    size = next(unit * k for k in (*steps, 10) if unit * k >= rough * 0.99)
    first, last = math.ceil(low / size - 1e-9), math.floor(high / size + 1e-9)
    digits = 12 - min(math.floor(math.log10(size)), 0)
    return [round(k * size, digits) for k in range(first, last + 1)]


def time_ticks(last: float, unit: TimeUnit, about: int = 8) -> list[float]:
    """Round times from 0 to `last` in a unit, at most `about` steps apart.

    >>> time_ticks(120, "months"), time_ticks(10, "years")
    ([0.0, 24.0, 48.0, 72.0, 96.0, 120.0], [0.0, 2.0, 4.0, 6.0, 8.0, 10.0])
    """
    if unit != "months" or last < about:
        return nice_ticks(0, last, about)
    step = next((k for k in MONTHS if last / k <= about), None)
    if step is None:
        return [12 * years for years in nice_ticks(0, last / 12, about)]
    return [float(k * step) for k in range(math.floor(last / step + 1e-9) + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """Round numbers from `low` to `high` on a logarithmic axis, denser on a short one.

    >>> log_ticks(0.6, 130), log_ticks(0.3, 0.9)
    ([1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0], [0.3, 0.4, 0.5, 0.6, 0.8])
    """
    decades = math.log10(high / low)
    steps = (1, 2, 5) if decades > 0.9 else (1, 1.2, 1.5, 2, 3, 4, 5, 6, 8)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    # As they are written: 3 * 10.0**-1 is not 0.3.
    ticks = [float(f"{k}e{power}") for power in powers for k in ((1,) if decades > 3 else steps)]
    inside = [tick for tick in ticks if low <= tick <= high]
    return inside if len(inside) > 2 else [tick for tick in nice_ticks(low, high) if tick > 0]


def ratio_ticks(values: Sequence[float]) -> list[float]:
    """Round ratios of which the first and the last hold all positive values, and 1.

    Close to 1 they are round numbers, further away powers of 2, or of 4 or 8 where there would be
    too many. None is beyond a 64th or 64.

    >>> ratio_ticks([0.59, 1.4]), ratio_ticks([0.2, 1.1]), ratio_ticks([0.07, 2.5])
    ([0.5, 0.67, 0.8, 1.0, 1.25, 1.5], [0.125, 0.25, 0.5, 1.0, 2.0], [0.0625, 0.25, 1.0, 4.0])
    """
    known = [v for v in values if math.isfinite(v) and v > 0]
    low, high = min([1.0, *known]), max([1.0, *known])
    for close in CLOSE_RATIOS:
        if close[0] <= low and high <= close[-1]:
            first = max(k for k, tick in enumerate(close) if tick <= low)
            last = min(k for k, tick in enumerate(close) if tick >= high)
            ticks = list(close[first : last + 1])
            if 1 < len(ticks) <= MAX_RATIOS:
                return ticks
    ends = (-math.log2(low), math.log2(high))
    if low == high:
        ends = (1.0, 1.0)
    ticks = []
    for step in (1, 2, 3):
        below, above = (math.ceil(min(end, MAX_POWER) / step) for end in ends)
        ticks = [2.0 ** (step * k) for k in range(-below, above + 1)]
        if len(ticks) <= MAX_RATIOS:
            break
    return ticks
