"""Restricted means of ``riskset curves``: their horizons, their table, and what is printed."""

import math
from typing import Any

import numpy as np
from rich.table import Table

import riskset as rs
from riskset._errors import InputError
from riskset._types import AnyArray
from riskset.cli.terminal import plain_number, plain_table, short

__all__ = ["differences_table", "means_table", "parsed_horizons"]


def parsed_horizons(text: str) -> AnyArray:
    """Horizons from a list with commas."""
    try:
        times = [float(part) for part in text.split(",")]
    except ValueError:
        times = [math.nan]
    if not all(0 < time < math.inf for time in times):
        raise InputError(
            f"--rmst must be numbers above 0, separated by commas, but it is {text!r}.",
            hint="for example --rmst 365,730.",
        )
    return np.array(times)


def means_table(means: "rs.RestrictedMeans", causes: list[Any], most: int) -> Table:
    """Restricted means of the first groups, and the time lost to each cause if there are several.

    A cause of None stands for the restricted mean itself.
    """
    table = plain_table()
    table.add_column("group", no_wrap=True)
    table.add_column("mean time", no_wrap=True)
    for title in ("up to", "estimate", f"{100 * means.level:g}% interval"):
        table.add_column(title, justify="right", no_wrap=True)
    for mean in means.means[:most]:
        for cause in [None, *causes]:
            for k, time in enumerate(mean.times):
                values = _values(mean, cause, k)
                table.add_row(
                    short(str(mean.label), 20), _words(cause), plain_number(time), *_shown(*values)
                )
    return table


def differences_table(means: "rs.RestrictedMeans", causes: list[Any], most: int) -> Table:
    """Differences of the other groups from the first one."""
    table = plain_table()
    table.add_column("difference", no_wrap=True)
    table.add_column("mean time", no_wrap=True)
    for title in ("up to", "estimate", f"{100 * means.level:g}% interval", "p"):
        table.add_column(title, justify="right", no_wrap=True)
    first, *others = means.groups[:most]
    for group in others:
        for cause in [None, *causes]:
            found = means.difference(group, first, cause)
            for k, time in enumerate(found.times):
                p = found.p_value[k]
                table.add_row(
                    f"{short(str(group), 20)} - {short(str(first), 20)}",
                    _words(cause),
                    plain_number(time),
                    *_shown(found.estimate[k], found.lower[k], found.upper[k]),
                    "-" if math.isnan(p) else "< 0.0001" if p < 1e-4 else plain_number(p, 3),
                )
    return table


def _values(mean: "rs.RestrictedMean", cause: Any, k: int) -> tuple[float, float, float]:
    if cause is None:
        return float(mean.mean[k]), float(mean.lower[k]), float(mean.upper[k])
    row = mean.causes.tolist().index(cause)
    parts = (mean.time_lost, mean.time_lost_lower, mean.time_lost_upper)
    value, lower, upper = (float(part[row, k]) for part in parts)
    return value, lower, upper


def _words(cause: Any) -> str:
    return "without an event" if cause is None else f"lost to {short(str(cause), 16)}"


def _shown(value: float, lower: float, upper: float) -> tuple[str, str]:
    """The estimate and its interval; a dash where they are not known."""
    if math.isnan(value):
        return "-", "-"
    return plain_number(value), f"{plain_number(lower)} to {plain_number(upper)}"
