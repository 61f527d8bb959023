"""Plots of `riskset bench`: time against size, and time by step. Each returns a figure."""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from riskset._errors import InputError
from riskset.plot._canvas import styled
from riskset.plot._style import COLOURS, DASHED, FAINT, QUIET, frame, short

__all__ = ["Figure", "Panel", "time_bars", "time_curves", "time_dots"]

MARKERS = "osD^vP*Xh<>"
PER_ROW = 3
LEAST_SPAN = 5.0
"""Ratio of the ends of a vertical axis."""
MIN_DECADES_OF_POWERS = 1.0
"""An axis of fewer has its own values as ticks, not powers of ten."""


class Panel(NamedTuple):
    """One pair of axes of `time_curves`.

    Attributes
    ----------
    title, xlabel : str
    lines : mapping of str to (x, y)
        Points by the name of the line. A line may have a single point.
    is_linear : bool
        Whether a dashed line shows growth in proportion to the size.

    Examples
    --------
    >>> from riskset.plot.timings import Panel, time_curves
    >>> lines = {"riskset": ([1e4, 1e5], [0.03, 0.25])}
    >>> panel = Panel("fit", "rows", lines, is_linear=True)
    >>> figure = time_curves([panel])
    """

    title: str
    xlabel: str
    lines: Mapping[str, tuple[Sequence[float], Sequence[float]]]
    is_linear: bool = False


@styled
def time_curves(panels: Sequence[Panel], *, ylabel: str = "seconds") -> Figure:
    """Plot times, or other positive numbers, against sizes on logarithmic axes.

    Parameters
    ----------
    panels : sequence of Panel
        Panels side by side. A name has the same colour in all of them.
    ylabel : str

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    InputError
        If there is nothing to draw, or a number is not positive.

    Examples
    --------
    >>> from riskset.plot.timings import Panel, time_curves
    >>> lines = {"newton": ([1e5, 1e6], [0.2, 1.0]), "ccd": ([1e5, 1e6], [4.0, 60.0])}
    >>> figure = time_curves([Panel("Cox", "rows", lines)])
    """
    _check(panels)
    names = list(dict.fromkeys(name for panel in panels for name in panel.lines))
    n_columns = 2 if len(panels) == 4 else min(PER_ROW, len(panels))
    n_rows = -(-len(panels) // n_columns)
    figure = Figure(figsize=(4.2 * n_columns, 3.4 * n_rows + 0.4), layout="constrained")
    for k, panel in enumerate(panels):
        _curves(figure.add_subplot(n_rows, n_columns, k + 1), panel, names, ylabel)
    if len(names) > 1:
        lines = {line.get_label(): line for axes in figure.axes for line in axes.lines}
        figure.legend(
            handles=lines.values(),
            frameon=False,
            loc="outside lower center",
            ncols=min(len(names), 2 * n_columns),
        )
    return figure


@styled
def time_bars(groups: Mapping[str, Mapping[str, float]], *, xlabel: str = "seconds") -> Figure:
    """Plot times of several steps as bars, in groups, on one scale.

    Parameters
    ----------
    groups : mapping of str to mapping of str to float
        Times of the steps, by the name of the group.
    xlabel : str

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    InputError
        If there is nothing to draw.

    Examples
    --------
    >>> from riskset.plot.timings import time_bars
    >>> figure = time_bars({"Cox": {"fit": 1.2, "bootstrap": 30.0}})
    """
    if not any(groups.values()):
        raise InputError("there are no times to draw.")
    n_bars = sum(map(len, groups.values()))
    figure = Figure(figsize=(8.0, 0.4 * n_bars + 0.9 * len(groups)), layout="constrained")
    ratios = [max(1, len(steps)) for steps in groups.values()]
    grid = figure.add_gridspec(len(groups), 1, height_ratios=ratios)
    first = None
    for k, (title, steps) in enumerate(groups.items()):
        axes = figure.add_subplot(grid[k], sharex=first)
        first = first or axes
        bars = axes.barh(list(steps), list(steps.values()), color=COLOURS[k % len(COLOURS)])
        axes.bar_label(bars, fmt=_plain, padding=3)
        axes.invert_yaxis()
        axes.margins(x=0.12)
        frame(axes, title)
    figure.axes[-1].set_xlabel(xlabel)
    return figure


@styled
def time_dots(
    works: Mapping[str, Mapping[str, float]],
    *,
    unfinished: Collection[tuple[str, str]] = (),
    xlabel: str = "seconds",
) -> Figure:
    """Plot times of several programs on many different works, one line each, on one log scale.

    Parameters
    ----------
    works : mapping of str to mapping of str to float
        Times of the programs, by the name of the work. A program has one colour and mark.
    unfinished : collection of (work, program)
        Drawn as open marks: the program stopped before the optimum.
    xlabel : str

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    InputError
        If there is nothing to draw, or a number is not positive.

    Examples
    --------
    >>> from riskset.plot.timings import time_dots
    >>> works = {"fit": {"riskset": 0.1, "other": 3.0}, "path": {"riskset": 0.5, "other": 0.4}}
    >>> figure = time_dots(works, unfinished=[("path", "other")])
    """
    names = list(dict.fromkeys(name for times in works.values() for name in times))
    points = {name: ([t[name] for t in works.values() if name in t], [1.0]) for name in names}
    _check([Panel("", "", points)])
    figure = Figure(figsize=(8.0, 0.3 * len(works) + 1.4), layout="constrained")
    axes = figure.add_subplot()
    axes.set_xscale("log")
    for k, name in enumerate(names):
        mark, colour = MARKERS[k % len(MARKERS)], COLOURS[k % len(COLOURS)]
        axes.plot([], [], mark, color=colour, markersize=5, label=short(name, 32))
        for y, (work, times) in enumerate(works.items()):
            if name in times:
                inside = "white" if (work, name) in unfinished else colour
                axes.plot(times[name], y, mark, color=colour, markerfacecolor=inside, markersize=5)
    axes.set_yticks(range(len(works)), works)
    axes.invert_yaxis()
    axes.grid(True, color=FAINT, linewidth=0.5, alpha=0.6)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _plain(value)))
    frame(axes, None, xlabel)
    figure.legend(frameon=False, loc="outside lower center", ncols=min(len(names), 4))
    return figure


def _check(panels: Sequence[Panel]) -> None:
    if not any(panel.lines for panel in panels):
        raise InputError("there are no times to draw.")
    for panel in panels:
        for name, (x, y) in panel.lines.items():
            if not all(value > 0 for value in (*x, *y)):
                raise InputError(
                    f"line {name!r} of {panel.title!r} has a value that is not positive.",
                    hint="axes are logarithmic.",
                )


def _curves(axes: Axes, panel: Panel, names: Sequence[str], ylabel: str) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    for name, (x, y) in panel.lines.items():
        k = names.index(name)
        style, colour = MARKERS[k % len(MARKERS)] + "-", COLOURS[k % len(COLOURS)]
        axes.plot(x, y, style, color=colour, linewidth=1.2, markersize=4, label=short(name, 32))
    if panel.is_linear and panel.lines:
        x, y = max(panel.lines.values(), key=lambda line: max(line[0]))
        sizes, last = np.array([min(x), max(x)]), y[int(np.argmax(x))]
        axes.plot(sizes, last * sizes / sizes[1], color=QUIET, linewidth=1, linestyle=DASHED,
                  label="in proportion", zorder=0)  # fmt: skip
    axes.grid(True, color=FAINT, linewidth=0.5, alpha=0.6)
    shown = sorted({value for x, _ in panel.lines.values() for value in x})
    if shown and shown[-1] < 10**MIN_DECADES_OF_POWERS * shown[0] or len(shown) <= 5:
        axes.set_xticks(shown)
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _plain(value)))
        axes.tick_params(axis="x", which="minor", length=0)
    low, high = axes.get_ylim()
    wider = max(1.0, (LEAST_SPAN * low / high) ** 0.5)  # no small difference fills the picture
    axes.set_ylim(low / wider, high * wider)
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _plain(value)))
    axes.yaxis.set_minor_formatter(NullFormatter())
    frame(axes, panel.title, panel.xlabel, ylabel)


def _plain(value: float) -> str:
    """0.25, 100, 250k, 1.5M, 1e-06: short, as ticks are."""
    if value < 1e-3:
        return f"{value:.1e}".replace(".0e", "e")
    if value >= 1e6 and value % 1e5 == 0:
        return f"{value / 1e6:g}M"
    if value >= 1e4 and value % 1e3 == 0:
        return f"{value / 1e3:g}k"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
