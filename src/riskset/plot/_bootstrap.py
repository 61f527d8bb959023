"""Plot of a bootstrap: the replicates of one coefficient, its estimate and interval."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from riskset._errors import InputError
from riskset.estimators._interval import ConfidenceInterval
from riskset.estimators.bootstrap import Bootstrap
from riskset.plot._canvas import canvas, styled, wrong_result
from riskset.plot._style import ACCENT, COLOURS, DASHED, INK, QUIET, frame

__all__ = ["bootstrap_distribution"]

MAX_BINS = 60
MAX_SHARE_OF_HEIGHT = 0.85
"""Bars and lines end below the words, at this share of the axes."""


@styled
def bootstrap_distribution(
    bootstrap: Bootstrap,
    parameter: str | None = None,
    *,
    interval: ConfidenceInterval | None = None,
    level: float = 0.95,
    ax: Axes | None = None,
    title: str | None = None,
    xlabel: str = "log hazard ratio",
) -> Axes:
    """Plot a histogram of bootstrap replicates of a coefficient, with its estimate and interval.

    The plot gives the numbers of infinite replicates, and of replicates without an estimate.
    Infinite or undefined limits are not drawn.

    Parameters
    ----------
    bootstrap : Bootstrap
        Result of ``model.bootstrap()``.
    parameter : str, optional
        The covariate. Default: the first.
    interval : ConfidenceInterval, optional
        Default: the percentile interval, ``bootstrap.interval(level)``.
    level : float
        Confidence level of the default interval.
    ax : matplotlib Axes, optional
        Default: new axes, which a notebook shows.
    title, xlabel : str
        Texts. The default title is the covariate.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    InputError
        If the covariate is unknown, fewer than two of its replicates are finite, or there are too
        few of them for the interval.

    Examples
    --------
    >>> import riskset as rs
    >>> model = rs.Cox(rs.L1(20.0, unpenalized=["swang1"])).fit(rs.load_rhc())
    >>> ax = rs.plot.bootstrap_distribution(model.bootstrap(100), "swang1")
    >>> ax.figure.savefig("bootstrap.png", dpi=200)  # doctest: +SKIP
    """
    if not isinstance(bootstrap, Bootstrap):
        raise wrong_result("bootstrap_distribution", "model.bootstrap()", bootstrap)
    name = bootstrap.names[0] if parameter is None else parameter
    if name not in bootstrap.names:
        raise InputError.unknown_name("covariate", name, bootstrap.names)
    j = bootstrap.names.index(name)
    values, estimate = bootstrap.replicates[:, j], float(bootstrap.coef[j])
    if np.isfinite(values).sum() < 2:
        raise InputError(
            f"at least two replicates of {name!r} must be finite, but "
            f"{int(np.isfinite(values).sum())} of {values.size} are.",
            hint="a profile-likelihood interval does not have this problem.",
        )
    bounds = bootstrap.interval(level) if interval is None else interval
    level, (lower, upper) = bounds.level, bounds[name]
    finite = values[np.isfinite(values)]
    axes = canvas(ax, 7.0, 4.0)
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
    frame(
        axes,
        bootstrap.labels[j] if title is None else title,
        xlabel,
        f"replicates (of {values.size:,}{lost})",
    )
    below, above = ((values == end).sum() for end in (-np.inf, np.inf))  # not on the axis
    if below:
        _say(axes, f"← {below:,} at −∞", "left", 0.9, color=QUIET)
    if above:
        _say(axes, f"{above:,} at +∞ →", "right", 0.9, color=QUIET)
    return axes


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
