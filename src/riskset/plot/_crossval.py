"""Plot of a cross-validation: mean scores against the strength of the penalty."""

import numpy as np
from matplotlib.axes import Axes

from riskset._errors import InputError
from riskset._types import Index
from riskset.infer.crossval.result import CrossValidation
from riskset.plot._canvas import canvas, styled
from riskset.plot._path import STRENGTH, mark_strength
from riskset.plot._style import (
    ACCENT,
    COLOURS,
    INK,
    QUIET,
    frame,
    set_log_ticks,
    write_at,
)

__all__ = ["cross_validation"]

MOST_COUNTS = 14
"""Numbers of covariates along the top."""
LEAST_GAP = 0.055
"""Distance between two of them, as a share of the axes."""


@styled
def cross_validation(fitted: object, *, ax: Axes | None = None, title: str | None = None) -> Axes:
    """Plot mean score and standard error against the strength of the penalty, strong on the left.

    The line marked "chosen" is the penalty of the final fit. With the rule "1se", the best mean is
    marked as well. The numbers along the top are the numbers of non-zero coefficients. Each share
    of L1 has its own line.

    Parameters
    ----------
    fitted : CoxCV, FineGrayCV or CrossValidation
        An estimator must be fitted.
    ax : matplotlib Axes, optional
        Default: new axes, which a notebook shows.
    title : str, optional

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    InputError
        If `fitted` is something else, or there is only one penalty.

    Examples
    --------
    >>> import riskset as rs
    >>> kind = rs.L1(unpenalized=["swang1"])
    >>> model = rs.CoxCV(kind, penalties=[10, 30, 90], folds=3, repeats=1).fit(rs.load_rhc())
    >>> ax = rs.plot.cross_validation(model)
    """
    result = getattr(fitted, "cross_validation_", fitted)
    if not isinstance(result, CrossValidation):
        raise InputError(
            f"cross_validation draws a fitted CoxCV or FineGrayCV, not {type(fitted).__name__}.",
            hint="fit it first.",
        )
    drawn = np.flatnonzero(result.strengths > 0)
    if drawn.size < 2:
        raise InputError(
            f"a curve needs at least two penalties, but {drawn.size} of positive strength were "
            "scored.",
            hint="a single score stands in `mean` and `se`.",
        )
    ratios = np.round(result.l1[drawn] / result.strengths[drawn], 9)
    axes = canvas(ax, 8.0, 5.0)
    axes.set_xscale("log")
    several = np.unique(ratios)[::-1]
    for i, ratio in enumerate(several):
        label = f"{ratio:.0%} L1" if several.size > 1 else None
        _curve(axes, result, drawn[ratios == ratio], COLOURS[i % len(COLOURS)], label)
    low, high = result.strengths[drawn].min(), result.strengths[drawn].max()
    axes.set_xlim(high * 1.1, low / 1.1)
    if several.size > 1:
        axes.legend(frameon=False, loc="best")
    _mark(axes, result)
    words = {"held_out": "held-out log likelihood", "difference": "log likelihood added"}
    ylabel = f"{words[result.score_name]}, mean ± standard error"
    set_log_ticks(axes.xaxis, low / 1.1, high * 1.1)
    _counts(axes, result, drawn[np.isin(ratios, ratios[drawn == result.chosen])])
    frame(axes, None, STRENGTH, ylabel)
    if title:
        axes.set_title(title, pad=26)
    return axes


def _curve(axes: Axes, result: CrossValidation, at: Index, colour: str, label: str | None) -> None:
    x, mean, se = result.strengths[at], result.mean[at], result.se[at]
    axes.errorbar(x, mean, se, fmt="none", ecolor=QUIET, elinewidth=0.8, capsize=2, zorder=1)
    axes.plot(x, mean, "o-", color=colour, linewidth=1.2, markersize=4, label=label, zorder=2)


def _mark(axes: Axes, result: CrossValidation) -> None:
    marks = {"best": result.best, "chosen": result.chosen}
    if result.best == result.chosen:
        del marks["best"]
    for word, k in marks.items():
        colour = ACCENT if word == "chosen" else INK
        axes.plot(result.strengths[k], result.mean[k], "o", color=colour, markersize=6, zorder=3)
        mark_strength(axes, result.strengths[k], word, colour)


def _counts(axes: Axes, result: CrossValidation, at: Index) -> None:
    """Numbers of coefficients along the top, the chosen penalty's among them, apart enough."""
    left, right = np.log(axes.get_xlim())
    place = (np.log(result.strengths[at]) - left) / (right - left)
    spread = np.argsort(np.abs(at - result.chosen), kind="stable")
    shown: list[int] = []
    for i in spread:
        if len(shown) < MOST_COUNTS and all(abs(place[i] - place[j]) >= LEAST_GAP for j in shown):
            shown.append(int(i))
    for i in shown:
        colour = ACCENT if at[i] == result.chosen else INK
        words = f"{result.n_nonzero[at[i]]:,}"
        write_at(axes, words, (place[i], 1), (0, 5), "axes fraction", ha="center", color=colour)
    words = "coefficients other than 0"
    write_at(axes, words, (1, 1), (0, 17), "axes fraction", ha="right", color=QUIET)
