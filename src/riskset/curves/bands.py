"""Simultaneous confidence bands of survival curves."""

from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from riskset._errors import InputError
from riskset._types import is_number
from riskset.curves.band_limits import equal_precision_limit, hall_wellner_limit
from riskset.curves.followup import EVERYBODY
from riskset.curves.intervals import probability_limits

__all__ = ["BandRange", "BandType", "ConfidenceBand", "band_of", "checked_band"]

BandType = Literal["equal-precision", "hall-wellner"]

Steps = NDArray[np.float64]


@dataclass(frozen=True)
class ConfidenceBand:
    """What a simultaneous confidence band is; see `KaplanMeier.confidence_band`.

    Attributes
    ----------
    kind : {"equal-precision", "hall-wellner"}
    interval : str
        Scale on which it is symmetric.
    start, end : float
        First and last step of the curve in its range. The last holds until the next step.
    critical_value : float
        The c or k by which errors are multiplied.

    Examples
    --------
    >>> import riskset as rs
    >>> y = rs.Surv([1.0, 2.0, 3.0, 4.0, 5.0], [1, 1, 0, 1, 0])
    >>> band = rs.kaplan_meier(y).confidence_band()["all"].band
    >>> band.start, band.end, round(band.critical_value, 4)
    (1.0, 5.0, 2.8797)
    """

    kind: str
    interval: str
    start: float
    end: float
    critical_value: float


class BandRange(NamedTuple):
    """The range that was asked for, and the group whose curve it is."""

    start: float | None
    end: float | None
    label: object


def checked_band(kind: str) -> BandType:
    """The kind, if it is known."""
    known: tuple[BandType, ...] = get_args(BandType)
    for name in known:
        if kind == name:
            return name
    raise InputError.wrong_option("kind", kind, known)


def band_of(
    curve: tuple[Steps, Steps, Steps],
    n_rows: float,
    asked: BandRange,
    what: tuple[BandType, str, float],
) -> tuple[Steps, Steps, ConfidenceBand]:
    """Limits (m,) from times, survival and standard errors (m,) of a curve, and what they are."""
    time, survival, error = curve
    kind, interval, level = what
    start = time[0] if asked.start is None else asked.start
    end = time[-1] if asked.end is None else asked.end
    for name, value in (("start", start), ("end", end)):
        if not is_number(value) or np.isnan(value):
            raise InputError(
                f"`{name}` must be a number, but it is {value!r}.",
                hint="it is a time in the unit of the curve; leave it out for the whole curve.",
            )
    if not start <= end:
        raise InputError(
            f"`start` must not be after `end`, but they are {start:g} and {end:g}.",
            hint="leave them out for the whole curve.",
        )
    in_force = max(int(np.searchsorted(time, start, side="right")) - 1, 0)
    with np.errstate(invalid="ignore"):
        known = (survival > 0) & (error > 0) & (time >= time[in_force]) & (time <= end)
    at = np.flatnonzero(known)
    if not at.size:
        whose = "" if asked.label == EVERYBODY else f" for group {asked.label!r}"
        raise InputError(
            f"there is no band{whose}: between {start:g} and {end:g} there is "
            "no time by which some rows have had the event and others survive.",
            hint="widen the range with `start` and `end`.",
        )
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = n_rows * (error / survival) ** 2
    first, last = at[0], at[-1]
    if kind == "equal-precision":
        limit, width = (
            equal_precision_limit(np.sqrt(variance[last] / variance[first]), level),
            error,
        )
    else:
        bridge = variance[[first, last]] / (1.0 + variance[[first, last]])
        limit = hall_wellner_limit(float(bridge[0]), float(bridge[1]), level)
        width = survival * (1.0 + variance) / np.sqrt(n_rows)
    lower, upper = probability_limits(survival, np.where(known, width, np.nan), limit, interval)
    band = ConfidenceBand(kind, interval, float(time[first]), float(time[last]), limit)
    return lower, upper, band
