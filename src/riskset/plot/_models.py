"""Plots of fitted models: coefficient paths, predicted survival, hazard ratios."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from riskset._errors import InputError
from riskset._types import Features, Matrix, Rows
from riskset.plot._style import (
    ACCENT,
    COLOURS,
    DASHED,
    FAINT,
    INK,
    QUIET,
    AxisLabel,
    canvas,
    frame,
    label_ends,
    set_log_ticks,
    short,
    styled,
    write_at,
)

__all__ = ["STRENGTH", "coefficient_path", "hazard_ratios", "mark_strength", "survival_curves"]

STRENGTH = "penalty strength (weaker to the right)"
"""Title of an axis."""


@styled
def coefficient_path(
    strength: Rows,
    coef: Matrix,
    names: Sequence[str],
    *,
    emphasised: Sequence[str] = (),
    chosen: int | None = None,
    n_labels: int = 8,
    title: str | None = None,
    ylabel: str = "log hazard ratio",
) -> Figure:
    """Plot coefficients against the strength of the penalty, strong on the left.

    Parameters
    ----------
    strength : (n_penalties,) float, > 0
        Penalty strengths of the solutions, in any order.
    coef : (n_penalties, n_features) float
        Coefficients. If covariates have different scales, use comparable units.
    names : sequence of str
        Names of the columns of `coef`.
    emphasised : sequence of str
        Covariates drawn in bold and always labelled, such as the treatment.
    chosen : int, optional
        Row of `coef` to mark as the chosen solution.
    n_labels : int
        Number of further covariates to label: those with the largest coefficients at the weakest
        penalty.
    title, ylabel : str
        Texts in the figure.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    InputError
        If the shapes do not match, a strength is not positive, or a name is unknown.

    Examples
    --------
    >>> import numpy as np
    >>> from riskset.plot import coefficient_path
    >>> strength = np.array([10.0, 1.0, 0.1])
    >>> coef = np.array([[0.0, 0.0], [0.0, 0.3], [-0.1, 0.5]])
    >>> figure = coefficient_path(strength, coef, ["age", "treatment"], emphasised=["treatment"])
    """
    strength, coef = np.asarray(strength, dtype=float), np.asarray(coef, dtype=float)
    _check_path(strength, coef, names, chosen)
    bold = [_position(name, names) for name in emphasised]
    marked = None if chosen is None else strength[chosen]
    order = np.argsort(-strength, kind="stable")
    strength, coef = strength[order], np.where(np.isfinite(coef[order]), coef[order], np.nan)
    last = np.nan_to_num(coef[-1])
    ranked = [int(j) for j in np.argsort(-np.abs(last), kind="stable") if last[j] and j not in bold]

    figure, axes = canvas(8.0, 5.0)
    axes.set_xscale("log")
    axes.axhline(0, color=QUIET, linewidth=0.8, zorder=1)
    if marked is not None:
        mark_strength(axes, float(marked))
    if ranked[n_labels:]:
        axes.plot(strength, coef[:, ranked[n_labels:]], color=FAINT, linewidth=0.8, zorder=2)
    labels = []
    for k, j in enumerate(ranked[:n_labels]):
        colour = COLOURS[k % len(COLOURS)]
        axes.plot(strength, coef[:, j], color=colour, linewidth=1.2, zorder=3)
        labels.append(AxisLabel(last[j], short(names[j]), colour, False))
    for j in bold:
        axes.plot(strength, coef[:, j], color=ACCENT, linewidth=2.4, zorder=4)
        labels.append(AxisLabel(last[j], short(names[j]), ACCENT, True))
    axes.set_xlim(strength[0] * 1.02, strength[-1])
    set_log_ticks(axes.xaxis, strength[-1], strength[0])
    frame(axes, title, STRENGTH, ylabel)
    label_ends(axes, labels)
    return figure


@styled
def survival_curves(
    times: Rows,
    survival: Matrix,
    labels: Sequence[str],
    *,
    title: str | None = None,
    xlabel: str = "time",
    ylabel: str = "survival",
) -> Figure:
    """Plot survival, or any other probability, as step functions of time.

    Parameters
    ----------
    times : (n_times,) float, increasing
        Times at which the curves may step.
    survival : (n_curves, n_times) float in [0, 1]
        Value of each curve from each time on.
    labels : sequence of str
        One label per curve, written at its end.
    title, xlabel, ylabel : str
        Texts in the figure.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    InputError
        If the shapes do not match or the times do not increase.

    Examples
    --------
    >>> import numpy as np
    >>> from riskset.plot import survival_curves
    >>> curves = np.array([[1.0, 0.9, 0.6], [1.0, 0.8, 0.5]])
    >>> figure = survival_curves(np.array([0.0, 10.0, 20.0]), curves, ["untreated", "treated"])
    """
    times = np.asarray(times, dtype=float)
    survival = np.atleast_2d(np.asarray(survival, dtype=float))
    if survival.shape != (len(labels), times.size):
        raise InputError(
            f"`survival` must have one row for each of the {len(labels)} labels and one column "
            f"for each of the {times.size} times, but its shape is {survival.shape}.",
            hint="`predict_survival_function` gives rows by times.",
        )
    if times.size == 0 or (np.diff(times) <= 0).any():
        raise InputError("`times` must increase.", hint="sort them and drop repeated ones.")
    figure, axes = canvas(7.0, 4.4)
    ends = []
    for k, (curve, label) in enumerate(zip(survival, labels, strict=True)):
        colour = (ACCENT, *COLOURS)[k % (1 + len(COLOURS))]
        axes.step(times, curve, where="post", color=colour, linewidth=1.6)
        ends.append(AxisLabel(float(curve[-1]), short(label), colour, False))
    axes.set_xlim(times[0], times[-1])
    axes.set_ylim(0, 1)
    axes.yaxis.set_major_formatter(PercentFormatter(1, 0))
    frame(axes, title, xlabel, ylabel)
    label_ends(axes, ends)
    return figure


@styled
def hazard_ratios(
    names: Sequence[str],
    coef: Features,
    lower: Features,
    upper: Features,
    *,
    level: float = 0.95,
    emphasised: Sequence[str] = (),
    title: str | None = None,
) -> Figure:
    """Plot hazard ratios with their intervals on a logarithmic axis, one per line.

    Parameters
    ----------
    names : sequence of str
        Covariates, from top to bottom.
    coef, lower, upper : (q,) float
        Log hazard ratios and the limits of their intervals, finite.
    level : float
        Confidence level of the intervals.
    emphasised : sequence of str
        Covariates drawn in bold.
    title : str
        Texts in the figure.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    InputError
        If the lengths differ, or there is nothing to draw.

    Examples
    --------
    >>> import numpy as np
    >>> from riskset.plot import hazard_ratios
    >>> coef = np.array([0.16, -0.2])
    >>> figure = hazard_ratios(["treatment", "sex=m"], coef, coef - 0.1, coef + 0.1)
    """
    coef, lower, upper = (np.asarray(a, dtype=float) for a in (coef, lower, upper))
    if not coef.shape == lower.shape == upper.shape == (len(names),) or not len(names):
        raise InputError(
            f"`coef`, `lower` and `upper` must each have one number for each of the {len(names)} "
            f"names, but their shapes are {coef.shape}, {lower.shape} and {upper.shape}.",
            hint="pass the covariates of one interval, at least one.",
        )
    y = -np.arange(len(names))
    figure, axes = canvas(7.0, 1.2 + 0.24 * len(names))
    axes.set_xscale("log")
    axes.axvline(1, color=QUIET, linewidth=0.8, zorder=1)
    for k, name in enumerate(names):
        colour = ACCENT if name in emphasised else COLOURS[0]
        width = 2.0 if name in emphasised else 1.2
        axes.plot(np.exp([lower[k], upper[k]]), [y[k], y[k]], color=colour, linewidth=width)
        axes.plot(np.exp(coef[k]), y[k], "o", color=colour, markersize=3 + width)
    axes.set_yticks(y, [short(name, 34) for name in names])
    axes.set_ylim(y[-1] - 0.7, 0.7)
    set_log_ticks(axes.xaxis, *axes.get_xlim())
    frame(axes, title, f"hazard ratio with {level:.0%} interval")
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    return figure


def _check_path(strength: Rows, coef: Matrix, names: Sequence[str], chosen: int | None) -> None:
    if coef.shape != (strength.size, len(names)) or strength.size == 0:
        raise InputError(
            f"`coef` must have one row for each of the {strength.size} strengths and one column "
            f"for each of the {len(names)} names, but its shape is {coef.shape}.",
            hint="pass the coefficients of a path with one solution in each row.",
        )
    if not (strength > 0).all():
        raise InputError(
            f"strengths must be positive to be drawn on a logarithmic axis, "
            f"but one is {strength.min():g}.",
            hint="leave the unpenalised solution out.",
        )
    if chosen is not None and not -strength.size <= chosen < strength.size:
        raise InputError(
            f"`chosen` must be a row of `coef`, 0 to {strength.size - 1}, but it is {chosen}.",
            hint="it is the position of a solution, not a strength.",
        )


def _position(name: str, names: Sequence[str]) -> int:
    if name not in names:
        raise InputError.unknown_name("covariate", name, names)
    return list(names).index(name)


def mark_strength(axes: Axes, strength: float, word: str = "chosen", colour: str = INK) -> None:
    """A dashed line at a penalty."""
    axes.axvline(strength, color=colour, linewidth=0.8, linestyle=DASHED, zorder=1)
    write_at(axes, word, (strength, 0), (4, 4), color=colour)
