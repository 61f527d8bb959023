"""Figures of a study for articles: the effect over time, coverage, and the ROC of a score."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from riskset._types import Features, Matrix
from riskset.plot._canvas import canvas, styled
from riskset.plot._style import ACCENT, COLOURS, DASHED, INK, QUIET, frame, set_log_ticks

__all__ = ["draw_coverage", "draw_effect_over_time", "draw_score_roc", "draw_time_effect"]

MARGIN = 1.15
"""Room above and below the intervals, as a ratio."""


@styled
def draw_effect_over_time(
    edges: Matrix,
    ratios: Matrix,
    constant: float,
    *,
    xlabel: str,
    ylabel: str,
    words: tuple[str, str],
    ax: Axes | None = None,
) -> Axes:
    """Hazard ratios of intervals of time (scaled Schoenfeld residuals), and the constant one.

    `edges` (k, 2) are the starts and ends of the intervals, `ratios` (k, 3) hazard ratio and its
    limits, and `words` name an interval and the constant.
    """
    axes = _ratio_axes(ratios, constant, ax)
    for k, (start, end) in enumerate(edges):
        middle, label = (start + end) / 2, words[0] if k == 0 else None
        axes.fill_between(
            [start, end], ratios[k, 1], ratios[k, 2], color=COLOURS[0], alpha=0.18, linewidth=0
        )
        axes.plot([start, end], [ratios[k, 0]] * 2, color=COLOURS[0], linewidth=1.8, label=label)
        axes.plot(middle, ratios[k, 0], "o", color=COLOURS[0], markersize=4)
    _with_constant(axes, constant, words[1], float(edges.max()))
    frame(axes, None, xlabel, ylabel)
    return axes


@styled
def draw_time_effect(
    times: Features,
    ratios: Matrix,
    constant: float,
    *,
    xlabel: str,
    ylabel: str,
    words: tuple[str, str],
    ax: Axes | None = None,
) -> Axes:
    """Hazard ratio as a smooth function of time (k,), with a band of its limits (k, 3)."""
    axes = _ratio_axes(ratios, constant, ax)
    colour = COLOURS[0]
    axes.fill_between(times, ratios[:, 1], ratios[:, 2], color=colour, alpha=0.18, linewidth=0)
    axes.plot(times, ratios[:, 0], "o-", color=colour, markersize=4, linewidth=1.8, label=words[0])
    _with_constant(axes, constant, words[1], float(times.max()) * 1.02)
    frame(axes, None, xlabel, ylabel)
    return axes


def _ratio_axes(ratios: Matrix, constant: float, ax: Axes | None) -> Axes:
    """Axes with a logarithmic axis that holds all ratios."""
    axes = canvas(ax, 7.0, 4.4)
    known = ratios[np.isfinite(ratios) & (ratios > 0)]
    low, high = float(known.min()) / MARGIN, float(known.max()) * MARGIN
    axes.set_yscale("log")
    axes.set_ylim(min(low, constant / MARGIN), max(high, constant * MARGIN))
    set_log_ticks(axes.yaxis, *axes.get_ylim())
    axes.axhline(1, color=INK, linewidth=0.6, zorder=0)
    return axes


def _with_constant(axes: Axes, constant: float, word: str, last: float) -> None:
    axes.axhline(constant, color=ACCENT, linewidth=1.2, linestyle=DASHED, label=word)
    axes.set_xlim(0, last)
    axes.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=2)


@styled
def draw_coverage(
    level: Features,
    before: Features,
    after: Features,
    *,
    xlabel: str,
    ylabel: str,
    words: Sequence[str],
    ax: Axes | None = None,
) -> Axes:
    """Share of negative controls whose interval contains 1, by the level of confidence.

    `words` name the curves before and after calibration, and the line of equality.
    """
    axes = canvas(ax, 5.4, 5.0)
    axes.plot([0, 1], [0, 1], color=QUIET, linewidth=1.0, linestyle=DASHED, label=words[2])
    axes.step(level, before, where="post", color=COLOURS[1], label=words[0])
    axes.step(level, after, where="post", color=COLOURS[0], label=words[1])
    _unit_square(axes)
    frame(axes, None, xlabel, ylabel)
    return axes


@styled
def draw_score_roc(
    points: Matrix, *, xlabel: str, ylabel: str, label: str, ax: Axes | None = None
) -> Axes:
    """The ROC curve of a propensity score at the borders (k, 2) that both arms have."""
    axes = canvas(ax, 5.4, 5.0)
    axes.plot([0, 1], [0, 1], color=QUIET, linewidth=1.0, linestyle=DASHED)
    axes.plot(points[:, 0], points[:, 1], color=COLOURS[0], linewidth=1.8, label=label)
    _unit_square(axes)
    frame(axes, None, xlabel, ylabel)
    return axes


def _unit_square(axes: Axes) -> None:
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_aspect("equal")
    axes.legend(frameon=False, loc="lower right")
