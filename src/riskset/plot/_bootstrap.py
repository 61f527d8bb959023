"""Plot of a bootstrap: the replicates of one coefficient, its estimate and interval."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from riskset._errors import InputError
from riskset._types import Features, is_number
from riskset.plot._style import ACCENT, COLOURS, DASHED, INK, QUIET, canvas, frame, styled

__all__ = ["bootstrap_distribution"]

MAX_BINS = 60
MAX_SHARE_OF_HEIGHT = 0.85
"""Bars and lines end below the words, at this share of the axes."""


@styled
def bootstrap_distribution(
    replicates: Features,
    estimate: float,
    lower: float,
    upper: float,
    *,
    level: float = 0.95,
    title: str | None = None,
    xlabel: str = "log hazard ratio",
) -> Figure:
    """Plot a histogram of bootstrap replicates of a coefficient, with its estimate and interval.

    Parameters
    ----------
    replicates : (B,) float
        Bootstrap replicates. The figure gives the numbers of infinite replicates, and of replicates
        without an estimate (NaN).
    estimate, lower, upper : float
        Estimate and limits of its interval. Infinite or undefined limits are not drawn.
    level : float
        Confidence level of the interval.
    title, xlabel : str
        Texts in the figure.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    InputError
        If fewer than two replicates are finite.

    Examples
    --------
    >>> import numpy as np
    >>> from riskset.plot import bootstrap_distribution
    >>> replicates = np.random.default_rng(1).normal(0.2, 0.1, 500)
    >>> figure = bootstrap_distribution(replicates, 0.2, 0.01, 0.39, title="treatment")
    """
    values = np.asarray(replicates, dtype=float)
    if values.ndim != 1 or np.isfinite(values).sum() < 2:
        raise InputError(
            f"`replicates` must be a list of numbers of which at least two are finite, but "
            f"{int(np.isfinite(values).sum())} of {values.size} are.",
            hint="pass one column of the replicates of a bootstrap.",
        )
    if not all(is_number(value) for value in (estimate, lower, upper)):
        raise InputError(
            f"`estimate`, `lower` and `upper` must be numbers, but they are {estimate!r}, "
            f"{lower!r} and {upper!r}.",
            hint="the interval of one coefficient is interval[name].",
        )
    finite = values[np.isfinite(values)]
    figure, axes = canvas(7.0, 4.0)
    edges = np.histogram_bin_edges(finite, bins="fd")
    if edges.size - 1 > MAX_BINS:
        edges = np.linspace(edges[0], edges[-1], MAX_BINS + 1)
    axes.hist(finite, bins=edges.tolist(), color=COLOURS[0], alpha=0.35, edgecolor="white")
    if np.isfinite(lower) or np.isfinite(upper):
        _shade(axes, lower, upper, level)
    if np.isfinite(estimate):
        axes.axvline(estimate, ymax=MAX_SHARE_OF_HEIGHT, color=ACCENT, linewidth=2.0, zorder=4)
        _say(axes, f"estimate {estimate:.3g}", "left", 0.985, color=ACCENT, weight="bold")
    axes.margins(y=1 / MAX_SHARE_OF_HEIGHT - 1)
    failed = int(np.isnan(values).sum())
    lost = f", {failed:,} without an estimate" if failed else ""
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    frame(axes, title, xlabel, f"replicates (of {values.size:,}{lost})")
    below, above = ((values == end).sum() for end in (-np.inf, np.inf))  # not on the axis
    if below:
        _say(axes, f"← {below:,} at −∞", "left", 0.9, color=QUIET)
    if above:
        _say(axes, f"{above:,} at +∞ →", "right", 0.9, color=QUIET)
    return figure


def _shade(axes: Axes, lower: float, upper: float, level: float) -> None:
    """Dashed lines at the ends of the interval, with their values, and a bar between."""
    low, high = axes.get_xlim()
    ends = [end for end in (lower, upper) if np.isfinite(end)]
    axes.set_xlim(min(low, *ends), max(high, *ends))
    low, high = axes.get_xlim()
    for end in ends:
        axes.axvline(
            end, ymax=MAX_SHARE_OF_HEIGHT, color=INK, linewidth=0.9, linestyle=DASHED, zorder=3
        )
    start = lower if np.isfinite(lower) else low
    stop = upper if np.isfinite(upper) else high
    axes.axvspan(
        start, stop, ymax=MAX_SHARE_OF_HEIGHT, color=INK, alpha=0.05, linewidth=0, zorder=0
    )
    _say(axes, f"{100 * level:g}% interval {lower:.3g} to {upper:.3g}", "right", 0.985, color=INK)


def _say(axes: Axes, words: str, side: str, height: float, **style: Any) -> None:
    """Words at the left or the right edge of the axes."""
    share = 0.005 if side == "left" else 0.995
    axes.text(share, height, words, transform=axes.transAxes, ha=side, va="top", **style)
