"""Plots of survival and cumulative incidence by group."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, PercentFormatter
from numpy.typing import NDArray

from riskset._errors import InputError
from riskset._ticks import nice_ticks
from riskset._types import Rows
from riskset.curves._result import C, GroupCurves
from riskset.curves.aalen_johansen import AalenJohansen, IncidenceCurve
from riskset.curves.kaplan_meier import KaplanMeier, SurvivalCurve
from riskset.plot._style import ACCENT, COLOURS, INK, AxisLabel, frame, label_ends, short, styled

__all__ = ["incidence_by_group", "survival_by_group"]

# Lines differ in dashes too, so that the picture can be read without colour.
DASHES = ("solid", (0, (6, 2)), (0, (1.5, 1.5)), (0, (7, 2, 1.5, 2)), (0, (3, 1.5)))

MAX_LABEL_LENGTH = 22
"""Longest label of a group, characters."""

MAX_STEPS_OF_LINE = 4000
"""Most steps of a line; a picture 7 inches wide has fewer dots at 600 to the inch."""

MAX_LINES = 30
"""With more lines, neither lines nor numbers at risk are readable."""

ROW_HEIGHT = 0.19
"""Height of a row of the table, inches."""


class Line(NamedTuple):
    """A step function with a band and numbers at risk."""

    label: str
    time: Rows
    value: Rows
    lower: Rows
    upper: Rows


@styled
def survival_by_group(
    result: KaplanMeier,
    *,
    groups: Sequence[object] | None = None,
    until: float | None = None,
    ticks: Sequence[float] | None = None,
    bands: bool = True,
    at_risk: bool = True,
    ylim: tuple[float, float] = (0.0, 1.0),
    title: str | None = None,
    xlabel: str = "time",
    ylabel: str = "survival",
) -> Figure:
    """Plot Kaplan-Meier curves with their intervals, and numbers at risk below the axis.

    Parameters
    ----------
    result : KaplanMeier
        Result of `riskset.kaplan_meier`.
    groups : sequence of labels, optional
        Groups to draw, in this order. Default: all, sorted.
    until : float, optional
        End of the time axis. Default: the last time at which a group still has a tenth of its
        largest number at risk, because later estimates rest on few rows. ``inf`` draws everything.
    ticks : sequence of float, optional
        Times of the ticks and of the table.
    bands, at_risk : bool
        Whether to draw intervals and the table of numbers at risk. Weighted numbers are rounded.
    ylim : (float, float)
        Limits of the vertical axis.
    title, xlabel, ylabel : str
        Texts in the figure.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    InputError
        If the time axis is empty, or there are more than 30 groups.

    Examples
    --------
    >>> import riskset as rs
    >>> y = rs.Surv([5.0, 8.0, 12.0, 3.0, 9.0, 11.0], [True, False, True, True, True, False])
    >>> result = rs.kaplan_meier(y, ["treated"] * 3 + ["untreated"] * 3)
    >>> figure = rs.plot.survival_by_group(result, xlabel="months")
    """
    curves = _chosen(result, groups, KaplanMeier)
    lines = [
        Line(str(c.label), *_from_start(c.time, 1.0, c.survival, c.lower, c.upper)) for c in curves
    ]
    picture = _Picture(lines, _end(curves) if until is None else until, ticks, bands)
    return picture.draw(curves if at_risk else [], ylim, title, xlabel, ylabel)


@styled
def incidence_by_group(
    result: AalenJohansen,
    cause: int | str | None = None,
    *,
    cause_names: Mapping[int | str, str] | None = None,
    groups: Sequence[object] | None = None,
    until: float | None = None,
    ticks: Sequence[float] | None = None,
    bands: bool = True,
    at_risk: bool = True,
    ylim: tuple[float, float] | None = None,
    title: str | None = None,
    xlabel: str = "time",
    ylabel: str | None = None,
) -> Figure:
    """Plot cumulative incidence with intervals, and numbers at risk below the axis.

    Parameters
    ----------
    result : AalenJohansen
        Result of `riskset.aalen_johansen`.
    cause : int, optional
        Cause to draw, with one line per group. Optional if there is one cause. With one group, the
        default is all causes.
    cause_names : dict of int or str to str, optional
        Names of the causes in the figure.
    groups, until, ticks, bands, at_risk, title, xlabel
        As for `survival_by_group`.
    ylim : (float, float), optional
        Limits of the vertical axis. Default: from 0 to slightly above the highest band.
    ylabel : str, optional
        Label of the vertical axis. Default: the name of the cause.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    InputError
        If the cause does not occur or must be chosen, the time axis is empty, or there are more
        than 30 groups.

    Examples
    --------
    >>> import riskset as rs
    >>> y = rs.Surv([5.0, 8.0, 12.0, 3.0, 9.0, 11.0], [1, 2, 1, 1, 0, 2])
    >>> figure = rs.plot.incidence_by_group(rs.aalen_johansen(y), cause_names={1: "relapse"})
    """
    curves = _chosen(result, groups, AalenJohansen)
    given = cause_names or {}
    names = {c: given.get(c, _name_of(c)) for c in result.causes.tolist()}
    causes = result.causes.tolist() if cause is None else [cause]
    if len(causes) > 1 and len(curves) > 1:
        raise InputError(
            f"there are {len(causes)} causes and {len(curves)} groups, so say which cause to draw.",
            hint=f"pass `cause`, one of {', '.join(map(str, causes))}.",
        )
    by_cause = len(causes) > 1
    lines = []
    for curve in curves:
        for code in causes:
            k = curve.position(code)
            steps = (curve.incidence[k], curve.lower[k], curve.upper[k])
            label = names[code] if by_cause else str(curve.label)
            lines.append(Line(label, *_from_start(curve.time, 0.0, *steps)))
    picture = _Picture(lines, _end(curves) if until is None else until, ticks, bands)
    top = picture.highest()
    if ylabel is None:
        ylabel = "cumulative incidence" + ("" if by_cause else f" of {names[causes[0]]}")
    limits = (0.0, min(1.0, 1.06 * top) if top > 0 else 1.0) if ylim is None else ylim
    return picture.draw(curves if at_risk else [], limits, title, xlabel, ylabel)


def _chosen(
    result: GroupCurves[C], groups: Sequence[object] | None, kind: type[GroupCurves[C]]
) -> list[C]:
    if not isinstance(result, kind):
        maker = "kaplan_meier" if kind is KaplanMeier else "aalen_johansen"
        raise InputError(
            f"this picture shows what riskset.{maker} gives, but it was given a "
            f"{type(result).__name__}.",
            hint=f"call riskset.{maker}(y, group) first.",
        )
    curves = list(result) if groups is None else [result[label] for label in groups]
    if len(curves) > MAX_LINES:
        raise InputError(
            f"{len(curves):,} groups do not fit one picture, which has room for {MAX_LINES}.",
            hint=f"choose at most {MAX_LINES} of them with `groups`.",
        )
    return curves


def _end(curves: Sequence[SurvivalCurve | IncidenceCurve]) -> float:
    """Last time at which a tenth is left, as Pocock, Clayton & Altman (2002) advise."""
    ends = [c.time[c.n_at_risk >= 0.1 * c.n_at_risk.max()][-1] for c in curves]
    return float(max(ends))


def _from_start(time: Rows, first: float, *steps: Rows) -> tuple[Rows, Rows, Rows, Rows]:
    """A curve, its lower and its upper end, from time 0."""
    value, lower, upper = (np.append(first, step) for step in steps)
    return np.append(min(0.0, float(time[0])), time), value, lower, upper


class _Picture:
    """Lines over a common time axis."""

    def __init__(
        self,
        lines: list[Line],
        until: float,
        ticks: Sequence[float] | None,
        bands: bool,
    ) -> None:
        self.start = min(float(line.time[0]) for line in lines)
        last = max(float(line.time[-1]) for line in lines)
        self.until = min(last, float(until)) if until == float("inf") else float(until)
        if not self.until > self.start:
            raise InputError(
                f"the time axis would be empty: it starts at {self.start:g} and `until` is "
                f"{self.until:g}.",
                hint="pass a later `until`.",
            )
        self.lines = [_thin(_cut(line, self.until)) for line in lines]
        if ticks is None:
            ticks = nice_ticks(self.start, self.until, 6, (1, 2, 2.5, 3, 5, 6))
        at: Rows = np.asarray(ticks, dtype=np.float64)
        self.ticks: Rows = at[(at >= self.start) & (at <= self.until)]
        self.bands = bands

    def highest(self) -> float:
        """The highest point of any line or band."""
        tops = [np.nanmax(line.upper if self.bands else line.value) for line in self.lines]
        return float(max(tops))

    def draw(
        self,
        curves: Sequence[SurvivalCurve | IncidenceCurve],
        ylim: tuple[float, float],
        title: str | None,
        xlabel: str,
        ylabel: str,
    ) -> Figure:
        """The picture; with curves, their numbers at risk stand below it."""
        header = 0.7 if len(curves) > 1 else 0.1
        table = ROW_HEIGHT * (len(curves) + 0.5 + header) if curves else 0.0
        figure = Figure(figsize=(self._width(), 4.4 + table), layout="constrained")
        if curves:
            grid = figure.add_gridspec(2, 1, height_ratios=[4.0, table], hspace=0.02)
            axes = figure.add_subplot(grid[0])
            below = figure.add_subplot(grid[1], sharex=axes)
            colours = [_colour(k) for k in range(len(curves))]
            if len(curves) < len(self.lines):  # lines are causes of one group
                colours = [INK]
            self._write_table(below, curves, colours)
        else:
            axes = figure.add_subplot()
        self._draw_lines(axes, ylim)
        frame(axes, title, xlabel, ylabel)
        return figure

    def _width(self) -> float:
        """Inches: long labels on either side take nothing from the axes."""
        return 6.2 + 0.13 * max(len(short(line.label, MAX_LABEL_LENGTH)) for line in self.lines)

    def _draw_lines(self, axes: Axes, ylim: tuple[float, float]) -> None:
        ends = []
        for k, line in enumerate(self.lines):
            colour = _colour(k)
            if self.bands:
                axes.fill_between(
                    line.time, line.lower, line.upper, step="post", color=colour, alpha=0.14, lw=0
                )
            axes.step(
                line.time,
                line.value,
                where="post",
                color=colour,
                linewidth=1.6,
                linestyle=DASHES[k % len(DASHES)],
            )
            text = "" if line.label == "all" else short(line.label, MAX_LABEL_LENGTH)
            ends.append(
                AxisLabel(float(line.value[-1]), text, colour, False, x=float(line.time[-1]))
            )
        axes.set_xlim(self.start, self.until)
        axes.set_ylim(*ylim)
        axes.set_xticks(self.ticks)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,g}"))
        height = ylim[1] - ylim[0]
        decimals = 0 if height > 0.08 else 1 if height > 0.008 else 2
        axes.yaxis.set_major_formatter(PercentFormatter(1, decimals))
        label_ends(axes, ends, gap=0.049)

    def _write_table(
        self, axes: Axes, curves: Sequence[SurvivalCurve | IncidenceCurve], colours: list[str]
    ) -> None:
        """Numbers at risk, under the ticks of the axis above."""
        is_headed = len(curves) > 1
        axes.set_ylim(len(curves) - 0.4, -1.1 if is_headed else -0.5)
        for row, (curve, colour) in enumerate(zip(curves, colours, strict=True)):
            for x, n in zip(self.ticks, _at_risk(curve, self.ticks), strict=True):
                axes.text(x, row, f"{n:,.0f}", ha="center", va="center_baseline", color=colour)
        labels = [short(str(c.label), MAX_LABEL_LENGTH) if is_headed else "at risk" for c in curves]
        axes.set_yticks(range(len(curves)), labels)
        for text, colour in zip(axes.get_yticklabels(), colours, strict=True):
            text.set_color(colour)
        if is_headed:
            axes.text(self.start, -1, "at risk", ha="left", va="center", fontweight="bold")
        # The numbers under the first tick reach to the left of the axis.
        axes.tick_params(axis="both", length=0, labelbottom=False)
        axes.tick_params(axis="y", pad=24)
        axes.spines[:].set_visible(False)


def _cut(line: Line, until: float) -> Line:
    """The line up to a time, where it goes on flat if its follow-up does."""
    kept = line.time <= until
    cut = Line(line.label, *(column[kept] for column in line[1:]))
    if line.time[-1] <= until:
        return cut
    last = (column[-1:] for column in cut[2:])
    ended = (np.append(column, end) for column, end in zip(cut[2:], last, strict=True))
    return Line(line.label, np.append(cut.time, until), *ended)


def _thin(line: Line) -> Line:
    """At most `MAX_STEPS_OF_LINE` steps: the last of those that no printer can separate."""
    if line.time.size <= MAX_STEPS_OF_LINE:
        return line
    start, end = line.time[0], line.time[-1]
    cell = np.floor((line.time - start) / (end - start) * MAX_STEPS_OF_LINE)
    kept = np.append(cell[1:] != cell[:-1], True)
    kept[0] = True
    return Line(line.label, *(column[kept] for column in line[1:]))


def _at_risk(
    curve: SurvivalCurve | IncidenceCurve, times: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Numbers just before each time; at the start, those who enter then count too."""
    entered = curve.at_risk(np.nextafter(times, np.inf))
    return np.asarray(
        np.where(times <= 0, np.maximum(curve.at_risk(times), entered), curve.at_risk(times))
    )


def _colour(k: int) -> str:
    return (COLOURS[0], ACCENT, *COLOURS[1:])[k % (1 + len(COLOURS))]


def _name_of(cause: object) -> str:
    return cause if isinstance(cause, str) else f"cause {cause}"
