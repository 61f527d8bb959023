"""Plot of a path: coefficients against the strength of the penalty."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from riskset._errors import InputError
from riskset._types import Features
from riskset.estimators.path import PathResult
from riskset.plot._canvas import canvas, styled, wrong_result
from riskset.plot._style import (
    ACCENT,
    COLOURS,
    DASHED,
    FAINT,
    INK,
    QUIET,
    AxisLabel,
    frame,
    label_ends,
    set_log_ticks,
    short,
    write_at,
)

__all__ = ["STRENGTH", "coefficient_path", "mark_strength"]

STRENGTH = "penalty strength (weaker to the right)"
"""Title of an axis."""


@styled
def coefficient_path(
    path: PathResult,
    *,
    scale: Features | None = None,
    emphasised: Sequence[str] | None = None,
    chosen: int | None = None,
    n_labels: int = 8,
    ax: Axes | None = None,
    title: str | None = None,
    ylabel: str = "log hazard ratio",
) -> Axes:
    """Plot coefficients against the strength of the penalty, strong on the left.

    Parameters
    ----------
    path : PathResult
        Result of `riskset.path`. A solution without a penalty is left out, because the axis is
        logarithmic.
    scale : (p,) numbers, optional
        Factors of the coefficients, such as the standard deviations of covariates in different
        units.
    emphasised : sequence of str, optional
        Covariates drawn in bold and always labelled. Default: those without a penalty.
    chosen : int, optional
        Position on the path of the solution to mark.
    n_labels : int
        Number of further covariates to label: those with the largest coefficients at the weakest
        penalty.
    ax : matplotlib Axes, optional
        Default: new axes, which a notebook shows.
    title, ylabel : str
        Texts.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    InputError
        If a name or a position is unknown, `scale` has another length, or no penalty is positive.

    Examples
    --------
    >>> import riskset as rs
    >>> penalty = rs.L1(1.0, unpenalized=["swang1"])
    >>> path = rs.path(rs.Cox(penalty), rs.load_rhc(), n_penalties=5)
    >>> ax = rs.plot.coefficient_path(path, chosen=3)
    """
    if not isinstance(path, PathResult):
        raise wrong_result("coefficient_path", "riskset.path(model, data)", path)
    names = path.names
    factors = np.ones(len(names)) if scale is None else np.asarray(scale, dtype=float)
    _check(path, factors, chosen)
    drawn = np.flatnonzero(path.strengths > 0)
    drawn = drawn[np.argsort(-path.strengths[drawn], kind="stable")]
    free = path.penalties[0].unpenalized if emphasised is None else emphasised
    bold = [_position(name, names) for name in free if emphasised is not None or name in names]
    strength = path.strengths[drawn]
    coef = path.coefs[drawn] * factors
    coef = np.where(np.isfinite(coef), coef, np.nan)
    last = np.nan_to_num(coef[-1])
    ranked = [int(j) for j in np.argsort(-np.abs(last), kind="stable") if last[j] and j not in bold]

    axes = canvas(ax, 8.0, 5.0)
    axes.set_xscale("log")
    axes.axhline(0, color=QUIET, linewidth=0.8, zorder=1)
    if chosen is not None:
        mark_strength(axes, float(path.strengths[chosen]))
    if ranked[n_labels:]:
        axes.plot(strength, coef[:, ranked[n_labels:]], color=FAINT, linewidth=0.8, zorder=2)
    labels = []
    for k, j in enumerate(ranked[:n_labels]):
        colour = COLOURS[k % len(COLOURS)]
        axes.plot(strength, coef[:, j], color=colour, linewidth=1.2, zorder=3)
        labels.append(AxisLabel(last[j], short(path.labels[j]), colour, False))
    for j in bold:
        axes.plot(strength, coef[:, j], color=ACCENT, linewidth=2.4, zorder=4)
        labels.append(AxisLabel(last[j], short(path.labels[j]), ACCENT, True))
    axes.set_xlim(strength[0] * 1.02, strength[-1])
    set_log_ticks(axes.xaxis, strength[-1], strength[0])
    frame(axes, title, STRENGTH, ylabel)
    label_ends(axes, labels)
    return axes


def _check(path: PathResult, scale: Features, chosen: int | None) -> None:
    n = len(path)
    if scale.shape != (len(path.names),):
        raise InputError(
            f"`scale` must have one number for each of the {len(path.names)} covariates, but its "
            f"shape is {scale.shape}.",
            hint="the order is that of `path.names`.",
        )
    if not (path.strengths > 0).any():
        raise InputError(
            "no penalty of the path is positive, so none can be drawn on a logarithmic axis.",
            hint="pass a path with positive penalties.",
        )
    if chosen is not None and not -n <= chosen < n:
        raise InputError(
            f"`chosen` must be a position on the path, 0 to {n - 1}, but it is {chosen!r}.",
            hint="it is the position of a solution, not a strength.",
        )
    if chosen is not None and not path.strengths[chosen] > 0:
        raise InputError(
            "the chosen solution has no penalty, so it has no place on a logarithmic axis.",
            hint="leave `chosen` out.",
        )


def _position(name: object, names: Sequence[str]) -> int:
    if name not in names:
        raise InputError.unknown_name("covariate", str(name), names)
    return list(names).index(str(name))


def mark_strength(axes: Axes, strength: float, word: str = "chosen", colour: str = INK) -> None:
    """A dashed line at a penalty."""
    axes.axvline(strength, color=colour, linewidth=0.8, linestyle=DASHED, zorder=1)
    write_at(axes, word, (strength, 0), (4, 4), color=colour)
