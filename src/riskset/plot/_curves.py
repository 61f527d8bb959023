"""Plots of survival and cumulative incidence by group."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from riskset._errors import InputError
from riskset._types import Rows
from riskset.cohort.arms.curves import ARMS, ArmCurves
from riskset.curves._result import C, GroupCurves
from riskset.curves.aalen_johansen import AalenJohansen, IncidenceCurve
from riskset.curves.comparison import GroupTest
from riskset.curves.kaplan_meier import KaplanMeier, SurvivalCurve
from riskset.curves.max_combo import MaxComboTest
from riskset.plot._canvas import canvas, styled
from riskset.plot._curve_axes import (
    MAX_LABEL_LENGTH,
    MAX_LINES,
    Line,
    NumberRow,
    TimeAxis,
    draw_lines,
    height_of_table,
    line_colour,
    mark_censored,
    mark_medians,
    write_table,
)
from riskset.plot._numbers import p_words
from riskset.plot._style import frame, short

__all__ = ["draw_curves", "incidence_by_group", "survival_by_group"]


@styled
def survival_by_group(
    result: KaplanMeier | ArmCurves,
    *,
    test: GroupTest | MaxComboTest | None = None,
    groups: Sequence[object] | None = None,
    labels: Mapping[object, str] | None = None,
    until: float | None = None,
    ticks: Sequence[float] | None = None,
    bands: bool = True,
    at_risk: bool = True,
    events: bool = True,
    medians: bool = False,
    censor_marks: bool = False,
    ylim: tuple[float, float] = (0.0, 1.0),
    ax: Axes | None = None,
    title: str | None = None,
    xlabel: str = "time",
    ylabel: str = "survival",
) -> Axes:
    """Plot Kaplan-Meier curves with their intervals, and numbers at risk and of events below.

    Parameters
    ----------
    result : KaplanMeier or ArmCurves
        Result of `riskset.kaplan_meier`, of its method `confidence_band`, whose simultaneous bands
        are then drawn, or of `riskset.cohort.survival`.
    test : GroupTest, optional
        Result of `riskset.logrank_test` or `riskset.max_combo_test`. Its p value is written into
        the plot.
    groups : sequence of labels, optional
        Groups to draw, in this order. Default: all, sorted; of arms, the target first.
    labels : dict, optional
        Names of groups in the plot, such as ``{"target": "new drug"}``. Default: the labels of the
        result.
    until : float, optional
        End of the time axis. Default: the last time at which a group still has a tenth of its
        largest number at risk, because later estimates rest on few rows. ``inf`` draws everything.
    ticks : sequence of float, optional
        Times of the ticks and of the table.
    bands, at_risk, events : bool
        Whether to draw intervals, and to write the numbers at risk just before each tick and the
        numbers of events up to it. Weighted numbers are rounded; with `ArmCurves` people are
        counted.
    medians : bool
        Whether dashed lines lead from a survival of a half to the median times.
    censor_marks : bool
        Whether strokes mark the times at which rows were censored.
    ylim : (float, float)
        Limits of the vertical axis.
    ax : matplotlib Axes, optional
        Default: new axes, which a notebook shows. The numbers stand below the axis, where a figure
        with ``layout="constrained"`` makes room for them.
    title, xlabel, ylabel : str
        Texts.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    InputError
        If the time axis is empty, or there are more than 30 groups.

    Examples
    --------
    >>> import riskset as rs
    >>> y = rs.Surv([5.0, 8.0, 12.0, 3.0, 9.0, 11.0], [True, False, True, True, True, False])
    >>> group = ["treated"] * 3 + ["untreated"] * 3
    >>> test = rs.logrank_test(y, group)
    >>> ax = rs.plot.survival_by_group(rs.kaplan_meier(y, group), test=test, xlabel="months")
    """
    arms = result if isinstance(result, ArmCurves) else None
    curves = _chosen(result, groups, KaplanMeier)
    named = _named(curves, labels)
    lines = [
        Line(
            named[c.label],
            *_from_start(c.time, 1.0, c.survival, c.lower, c.upper),
            c.time[c.n_censored > 0],
        )
        for c in curves
    ]
    axis = TimeAxis.of(lines, _end(curves, arms) if until is None else until, ticks)
    counts = [
        _events_by(c.time, c.n_events, axis.ticks)
        if arms is None
        else arms.events(str(c.label), 1, axis.ticks)
        for c in curves
    ]
    blocks = _at_risk_block(curves, named, axis, arms) if at_risk else {}
    if events:
        blocks["events"] = list(zip([line.label for line in lines], counts, strict=True))
    rows = _rows(blocks)
    axes = canvas(ax, _width(lines), 4.4 + height_of_table(rows))
    drawn = draw_lines(axes, lines, axis, bands=bands, ylim=ylim)
    _finish(axes, drawn, axis, rows, test, medians=medians, censor_marks=censor_marks)
    frame(axes, title, xlabel, ylabel)
    return axes


@styled
def incidence_by_group(
    result: AalenJohansen | ArmCurves,
    cause: int | str | None = None,
    *,
    test: GroupTest | None = None,
    cause_names: Mapping[int | str, str] | None = None,
    groups: Sequence[object] | None = None,
    labels: Mapping[object, str] | None = None,
    until: float | None = None,
    ticks: Sequence[float] | None = None,
    bands: bool = True,
    at_risk: bool = True,
    events: bool = True,
    medians: bool = False,
    censor_marks: bool = False,
    ylim: tuple[float, float] | None = None,
    ax: Axes | None = None,
    title: str | None = None,
    xlabel: str = "time",
    ylabel: str | None = None,
) -> Axes:
    """Plot cumulative incidence with intervals, and numbers at risk and of events below the axis.

    Parameters
    ----------
    result : AalenJohansen or ArmCurves
        Result of `riskset.aalen_johansen` or of `riskset.cohort.incidence`.
    cause : int or str, optional
        Cause to draw, with one line per group. Optional if there is one cause. With one group, the
        default is all causes.
    test : GroupTest, optional
        Result of `riskset.gray_test`. Its p value is written into the plot.
    cause_names : dict of int or str to str, optional
        Names of the causes in the plot.
    groups, labels, until, ticks, bands, at_risk, events, censor_marks, ax, title, xlabel
        As for `survival_by_group`. Events are those of the drawn causes.
    medians : bool
        Whether dashed lines lead from an incidence of a half to the times at which it is reached.
    ylim : (float, float), optional
        Limits of the vertical axis. Default: from 0 to slightly above the highest band.
    ylabel : str, optional
        Label of the vertical axis. Default: the name of the cause.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    InputError
        If the cause does not occur or must be chosen, the time axis is empty, or there are more
        than 30 groups.

    Examples
    --------
    >>> import riskset as rs
    >>> y = rs.Surv([5.0, 8.0, 12.0, 3.0, 9.0, 11.0], [1, 2, 1, 1, 0, 2])
    >>> ax = rs.plot.incidence_by_group(rs.aalen_johansen(y), cause_names={1: "relapse"})
    """
    arms = result if isinstance(result, ArmCurves) else None
    curves = _chosen(result, groups, AalenJohansen)
    named = _named(curves, labels)
    given, known = cause_names or {}, curves[0].causes.tolist()
    names = {c: given.get(c, _name_of(c)) for c in known}
    causes = known if cause is None else [cause]
    if len(causes) > 1 and len(curves) > 1:
        raise InputError(
            f"there are {len(causes)} causes and {len(curves)} groups, so say which cause to draw.",
            hint=f"pass `cause`, one of {', '.join(map(str, causes))}.",
        )
    by_cause = len(causes) > 1
    shown = [(curve, code) for curve in curves for code in causes]
    lines = []
    for curve, code in shown:
        k = curve.position(code)
        steps = (curve.incidence[k], curve.lower[k], curve.upper[k])
        label = names[code] if by_cause else named[curve.label]
        censored = curve.time[curve.n_censored > 0]
        lines.append(Line(label, *_from_start(curve.time, 0.0, *steps), censored))
    axis = TimeAxis.of(lines, _end(curves, arms) if until is None else until, ticks)
    counts = [
        _events_by(curve.time, curve.n_events[curve.position(code)], axis.ticks)
        if arms is None
        else arms.events(str(curve.label), int(code), axis.ticks)
        for curve, code in shown
    ]
    blocks = _at_risk_block(curves, named, axis, arms) if at_risk else {}
    if events:
        blocks["events"] = list(zip([line.label for line in lines], counts, strict=True))
    rows = _rows(blocks)
    limits = _limits(lines, axis, bands) if ylim is None else ylim
    if ylabel is None:
        ylabel = "cumulative incidence" + ("" if by_cause else f" of {names[causes[0]]}")
    axes = canvas(ax, _width(lines), 4.4 + height_of_table(rows))
    drawn = draw_lines(axes, lines, axis, bands=bands, ylim=limits)
    _finish(axes, drawn, axis, rows, test, medians=medians, censor_marks=censor_marks)
    frame(axes, title, xlabel, ylabel)
    return axes


@styled
def draw_curves(
    lines: Sequence[Line],
    rows: Sequence[NumberRow],
    ticks: Sequence[float] | None,
    until: float,
    *,
    is_survival: bool,
    xlabel: str,
    ylabel: str,
) -> Axes:
    """Curves that are known as lines, with the rows of numbers below them."""
    axis = TimeAxis.of(lines, until, ticks)
    axes = canvas(None, _width(lines), 4.4 + height_of_table(rows))
    limits = (0.0, 1.0) if is_survival else _limits(lines, axis, bands=True)
    draw_lines(axes, lines, axis, bands=True, ylim=limits)
    if rows:
        write_table(axes, rows, axis)
    frame(axes, None, xlabel, ylabel)
    return axes


def _chosen(
    result: GroupCurves[C] | ArmCurves,
    groups: Sequence[object] | None,
    kind: type[GroupCurves[C]],
) -> list[C]:
    found = result.curves if isinstance(result, ArmCurves) else result
    if not isinstance(found, kind):
        is_survival = kind is KaplanMeier
        maker = "kaplan_meier" if is_survival else "aalen_johansen"
        of_arms = "survival" if is_survival else "incidence"
        raise InputError(
            f"this plot shows what riskset.{maker} or riskset.cohort.{of_arms} gives, but it was "
            f"given a {type(found).__name__}.",
            hint=f"call riskset.{maker}(y, group) first.",
        )
    if groups is None and isinstance(result, ArmCurves):
        groups = ARMS
    curves = list(found) if groups is None else [found[label] for label in groups]
    if len(curves) > MAX_LINES:
        raise InputError(
            f"{len(curves):,} groups do not fit one picture, which has room for {MAX_LINES}.",
            hint=f"choose at most {MAX_LINES} of them with `groups`.",
        )
    return curves


def _end(curves: Sequence[SurvivalCurve | IncidenceCurve], arms: ArmCurves | None) -> float:
    """Last time at which a tenth is left, as Pocock, Clayton & Altman (2002) advise."""
    if arms is not None:
        return arms.limit
    ends = [c.time[c.n_at_risk >= 0.1 * c.n_at_risk.max()][-1] for c in curves]
    return float(max(ends))


def _from_start(time: Rows, first: float, *steps: Rows) -> tuple[Rows, Rows, Rows, Rows]:
    """A curve, its lower and its upper end, from time 0."""
    value, lower, upper = (np.append(first, step) for step in steps)
    return np.append(min(0.0, float(time[0])), time), value, lower, upper


def _limits(lines: Sequence[Line], axis: TimeAxis, bands: bool) -> tuple[float, float]:
    """From 0 to slightly above the highest point of any line or band that is drawn."""
    tops = [(line.upper if bands else line.value)[line.time <= axis.until] for line in lines]
    top = float(max(np.nanmax(of_line) for of_line in tops))
    return 0.0, min(1.0, 1.06 * top) if top > 0 else 1.0


def _width(lines: Sequence[Line]) -> float:
    """Inches: long labels on either side take nothing from the axes."""
    return 6.2 + 0.13 * max(len(short(line.label, MAX_LABEL_LENGTH)) for line in lines)


NumberBlock = list[tuple[str, Rows]]
"""Labels and numbers of the lines of a block below the axis."""


def _named(
    curves: Sequence[SurvivalCurve | IncidenceCurve], labels: Mapping[object, str] | None
) -> dict[object, str]:
    """What each group is called in the plot."""
    given = labels or {}
    known = [c.label for c in curves]
    for label in given:
        if label not in known:
            raise InputError.unknown_name("group", label, known)
    return {label: str(given.get(label, label)) for label in known}


def _at_risk_block(
    curves: Sequence[SurvivalCurve | IncidenceCurve],
    named: Mapping[object, str],
    axis: TimeAxis,
    arms: ArmCurves | None,
) -> dict[str, NumberBlock]:
    return {"at risk": [(named[c.label], _at_risk(c, axis, arms)) for c in curves]}


def _rows(blocks: Mapping[str, NumberBlock]) -> list[NumberRow]:
    """A block of one line has its name as label, others a heading and the labels of their lines."""
    out = []
    for name, block in blocks.items():
        if len(block) > 1:
            out.append(NumberRow(name))
        for k, (label, numbers) in enumerate(block):
            words = [f"{n:,.0f}" for n in numbers]
            if len(block) > 1:
                out.append(NumberRow(short(label, MAX_LABEL_LENGTH), words, line_colour(k)))
            else:
                out.append(NumberRow(name, words))
    return out


def _events_by(time: Rows, n_events: Rows, ticks: Rows) -> Rows:
    """Events up to each tick."""
    total = np.append(0.0, np.cumsum(n_events))
    return np.asarray(total[np.searchsorted(time, ticks, side="right")])


def _at_risk(curve: SurvivalCurve | IncidenceCurve, axis: TimeAxis, arms: ArmCurves | None) -> Rows:
    """Numbers just before each tick; at the start, those who enter then count too."""
    times = axis.ticks
    if arms is not None:
        table = arms.columns(times)
        own = (table["arm"] == curve.label) & (table.get("cause", 1) == table.get("cause", [1])[0])
        return np.asarray(table["people_at_risk"][own], dtype=np.float64)
    entered = curve.at_risk(np.nextafter(times, np.inf))
    return np.asarray(
        np.where(times <= 0, np.maximum(curve.at_risk(times), entered), curve.at_risk(times))
    )


def _finish(
    axes: Axes,
    drawn: Sequence[Line],
    axis: TimeAxis,
    rows: Sequence[NumberRow],
    test: GroupTest | MaxComboTest | None,
    *,
    medians: bool,
    censor_marks: bool,
) -> None:
    """Marks on the lines, the p value where they leave room, and the numbers below."""
    if censor_marks:
        mark_censored(axes, drawn, axis)
    if medians:
        mark_medians(axes, drawn, axis)
    if rows:
        write_table(axes, rows, axis)
    if test is None:
        return
    if not isinstance(test, GroupTest | MaxComboTest):
        raise InputError(
            f"`test` must be a GroupTest, but it is {type(test).__name__}.",
            hint="pass riskset.logrank_test(y, group), or riskset.gray_test(y, group).",
        )
    # Survival leaves room at the lower left, or where it is below a half, at the upper right.
    is_right = drawn[0].value[0] > 0.5 and medians
    is_low = drawn[0].value[0] > 0.5 and not medians
    axes.text(
        0.985 if is_right else 0.025,
        0.04 if is_low else 0.96,
        f"{test.method}: {p_words(test.p_value)}",
        transform=axes.transAxes,
        ha="right" if is_right else "left",
        va="bottom" if is_low else "top",
    )


def _name_of(cause: object) -> str:
    return cause if isinstance(cause, str) else f"cause {cause}"
