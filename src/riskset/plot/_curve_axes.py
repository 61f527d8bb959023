"""Step functions with bands over a common time axis, and the numbers below it."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, PercentFormatter

from riskset._errors import InputError
from riskset._ticks import nice_ticks
from riskset._types import Rows
from riskset.plot._style import ACCENT, COLOURS, INK, QUIET, AxisLabel, label_ends, short

__all__ = [
    "MAX_LABEL_LENGTH",
    "MAX_LINES",
    "Line",
    "NumberRow",
    "TimeAxis",
    "draw_lines",
    "height_of_table",
    "line_colour",
    "line_style",
    "mark_censored",
    "mark_medians",
    "write_table",
]

# Lines differ in dashes too, so that the picture can be read without colour.
DASHES = ("solid", (0, (6, 2)), (0, (1.5, 1.5)), (0, (7, 2, 1.5, 2)), (0, (3, 1.5)))

MAX_LABEL_LENGTH = 22
"""Longest label of a group, characters."""

MAX_STEPS_OF_LINE = 4000
"""Most steps of a line; a picture 7 inches wide has fewer dots at 600 to the inch."""

MAX_LINES = 30
"""With more lines, neither lines nor numbers at risk are readable."""

ROW_POINTS, FIRST_ROW_POINTS = 13.5, 47.0
"""Height of a row of the table, and how far its first row stands below the axis, points."""
LABEL_POINTS = 24.0
"""How far the labels of the table stand left of the axis, which the first numbers reach beyond."""


class Line(NamedTuple):
    """A step function with a band, and the times at which rows of it were censored."""

    label: str
    time: Rows
    value: Rows
    lower: Rows
    upper: Rows
    censored: Rows


class NumberRow(NamedTuple):
    """A row of numbers below the axis, one at each tick; a heading has no numbers."""

    label: str
    numbers: Sequence[str] = ()
    colour: str = INK


class TimeAxis(NamedTuple):
    """Ends of the time axis, and its ticks."""

    start: float
    until: float
    ticks: Rows

    @classmethod
    def of(cls, lines: Sequence[Line], until: float, ticks: Sequence[float] | None) -> "TimeAxis":
        """From the first time of any line; with `until` infinite, to the last."""
        start = min(float(line.time[0]) for line in lines)
        last = max(float(line.time[-1]) for line in lines)
        end = min(last, float(until)) if until == float("inf") else float(until)
        if not end > start:
            raise InputError(
                f"the time axis would be empty: it starts at {start:g} and `until` is {end:g}.",
                hint="pass a later `until`.",
            )
        if ticks is None:
            ticks = nice_ticks(start, end, 6, (1, 2, 2.5, 3, 5, 6))
        at: Rows = np.asarray(ticks, dtype=np.float64)
        return cls(start, end, at[(at >= start) & (at <= end)])


def line_colour(k: int) -> str:
    """Colour of the line k."""
    return (COLOURS[0], ACCENT, *COLOURS[1:])[k % (1 + len(COLOURS))]


def line_style(k: int) -> str | tuple[int, tuple[float, ...]]:
    """Dashes of the line k."""
    return DASHES[k % len(DASHES)]


def draw_lines(
    axes: Axes,
    lines: Sequence[Line],
    axis: TimeAxis,
    *,
    bands: bool,
    ylim: tuple[float, float],
) -> list[Line]:
    """Draw lines as far as the axis goes, with their labels at their ends; return what is drawn."""
    drawn = [_thin(_cut(line, axis.until)) for line in lines]
    ends = []
    for k, line in enumerate(drawn):
        colour = line_colour(k)
        if bands:
            axes.fill_between(
                line.time, line.lower, line.upper, step="post", color=colour, alpha=0.14, lw=0
            )
        axes.step(
            line.time,
            line.value,
            where="post",
            color=colour,
            linewidth=1.6,
            linestyle=line_style(k),
        )
        text = "" if line.label == "all" else short(line.label, MAX_LABEL_LENGTH)
        ends.append(AxisLabel(float(line.value[-1]), text, colour, False, x=float(line.time[-1])))
    axes.set_xlim(axis.start, axis.until)
    axes.set_ylim(*ylim)
    axes.set_xticks(axis.ticks)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,g}"))
    height = ylim[1] - ylim[0]
    decimals = 0 if height > 0.08 else 1 if height > 0.008 else 2
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals))
    label_ends(axes, ends, gap=0.049)
    return drawn


def mark_censored(axes: Axes, lines: Sequence[Line], axis: TimeAxis) -> None:
    """A short upright stroke on each line where rows were censored."""
    for k, line in enumerate(lines):
        at = _apart(line.censored[line.censored <= axis.until], axis)
        value = line.value[np.searchsorted(line.time, at, side="right") - 1]
        axes.plot(at, value, "|", color=line_colour(k), markersize=6, markeredgewidth=0.8, zorder=4)


def mark_medians(axes: Axes, lines: Sequence[Line], axis: TimeAxis) -> None:
    """Dashed lines from a half to each curve that reaches it, and down to the time."""
    low = axes.get_ylim()[0]
    reached = []
    for k, line in enumerate(lines):
        falls = line.value[0] > 0.5
        # A half computed as a product may miss a half in its last digits.
        beyond = line.value <= 0.5 * (1 + 1e-12) if falls else line.value >= 0.5 * (1 - 1e-12)
        where = np.flatnonzero(beyond)
        if where.size and line.time[where[0]] <= axis.until:
            at = float(line.time[where[0]])
            reached.append(at)
            axes.plot(
                [at, at], [low, 0.5], color=line_colour(k), linewidth=0.9, linestyle=(0, (3, 2))
            )
    if reached and low < 0.5:
        ends = [axis.start, max(reached)]
        axes.plot(ends, [0.5, 0.5], color=QUIET, linewidth=0.9, linestyle=(0, (3, 2)), zorder=0)


def height_of_table(rows: Sequence[NumberRow]) -> float:
    """Inches below the axis."""
    return (len(rows) * ROW_POINTS + FIRST_ROW_POINTS - 33.0) / 72 if rows else 0.0


def write_table(axes: Axes, rows: Sequence[NumberRow], axis: TimeAxis) -> None:
    """Numbers under the ticks of the axis, below its title, and their labels at the left."""
    for k, row in enumerate(rows):
        down = -FIRST_ROW_POINTS - k * ROW_POINTS
        is_heading = not row.numbers
        axes.annotate(
            row.label,
            (0, 0),
            (0.0 if is_heading else -LABEL_POINTS, down),
            xycoords="axes fraction",
            textcoords="offset points",
            ha="left" if is_heading else "right",
            va="center_baseline",
            color=row.colour,
            fontweight="bold" if is_heading else "normal",
            annotation_clip=False,
        )
        for x, number in zip(axis.ticks, row.numbers, strict=not is_heading):
            axes.annotate(
                number,
                (x, 0),
                (0, down),
                xycoords=("data", "axes fraction"),
                textcoords="offset points",
                ha="center",
                va="center_baseline",
                color=row.colour,
                annotation_clip=False,
            )


def _cut(line: Line, until: float) -> Line:
    """The line up to a time, where it goes on flat if its follow-up does."""
    kept = line.time <= until
    time, *steps = (column[kept] for column in line[1:-1])
    if line.time[-1] > until:
        time = np.append(time, until)
        steps = [np.append(column, column[-1:]) for column in steps]
    value, lower, upper = steps
    return Line(line.label, time, value, lower, upper, line.censored)


def _thin(line: Line) -> Line:
    """At most `MAX_STEPS_OF_LINE` steps: the last of those that no printer can separate."""
    if line.time.size <= MAX_STEPS_OF_LINE:
        return line
    start, end = line.time[0], line.time[-1]
    cell = np.floor((line.time - start) / (end - start) * MAX_STEPS_OF_LINE)
    kept = np.append(cell[1:] != cell[:-1], True)
    kept[0] = True
    time, value, lower, upper = (column[kept] for column in line[1:-1])
    return Line(line.label, time, value, lower, upper, line.censored)


def _apart(times: Rows, axis: TimeAxis) -> Rows:
    """One of those times that no printer can separate."""
    cell = np.floor((times - axis.start) / (axis.until - axis.start) * MAX_STEPS_OF_LINE)
    return times[np.unique(cell, return_index=True)[1]]
