"""Plot of the overlap of the arms: scores of the target upwards, of the comparator downwards."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter1d

from riskset._errors import InputError
from riskset._types import Features, Rows, is_count
from riskset.cohort.adjustments.adjustment import Adjustment, start
from riskset.cohort.population import Population
from riskset.cohort.propensity.overlap import auc, equipoise, preference_score, score_bars
from riskset.cohort.propensity.propensity_result import PropensityScore
from riskset.plot._canvas import canvas, styled, wrong_result
from riskset.plot._style import ACCENT, COLOURS, FAINT, INK, QUIET, frame

__all__ = ["Shares", "draw_overlap", "propensity_overlap", "smooth_density"]

OverlapScale = Literal["preference", "propensity"]
OverlapKind = Literal["histogram", "density"]

FINE = 2048
"""Cells of the scores from which a density is made."""


class Shares(NamedTuple):
    """Heights of an arm over the score.

    `edges` (k + 1,) of bars, with their heights before an adjustment and of those it keeps (k,); or
    points (k,) of curves.
    """

    edges: Features
    before: Features
    kept: Features | None


@styled
def propensity_overlap(
    people: PropensityScore | Population | Adjustment,
    *,
    scale: OverlapScale = "preference",
    kind: OverlapKind = "histogram",
    n_bars: int = 50,
    target: str = "target",
    comparator: str = "comparator",
    ax: Axes | None = None,
    title: str | None = None,
) -> Axes:
    r"""Plot the distributions of the propensity score in both arms, one above the other.

    Of an adjustment, light areas show all people and dark areas those whom it keeps, with their
    weights; a pale band shows equipoise, preference scores of 0.3 to 0.7.

    Parameters
    ----------
    people : PropensityScore, Population or Adjustment
        People with scores.
    scale : {"preference", "propensity"}
        Preference scores are propensity scores corrected for the share of the target; see
        `riskset.cohort.preference_score`.
    kind : {"histogram", "density"}
        Shares of an arm in bars, or Gaussian kernel densities, mirrored at 0 and 1, with the
        bandwidth :math:`0.9 \min(s, IQR / 1.34) n^{-1/5}` (Silverman). After an adjustment, n is
        the effective number of people.
    n_bars : int
        Number of bars.
    target, comparator : str
        Names of the arms in the plot.
    ax : matplotlib Axes, optional
        Default: new axes, which a notebook shows.
    title : str, optional

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    InputError
        If the people have no scores, or an arm is empty.

    References
    ----------
    Walker et al. (2013), Comparative Effectiveness Research 3, 11-20, doi:10.2147/CER.S40357.
    Silverman (1986), Density Estimation for Statistics and Data Analysis, section 3.4.

    Examples
    --------
    >>> import riskset as rs
    >>> people = rs.cohort.Population([1, 1, 0, 0], [0.9, 0.4, 0.5, 0.1])
    >>> ax = rs.plot.propensity_overlap(rs.cohort.weight(people), target="new", comparator="old")
    """
    given = people.people if isinstance(people, PropensityScore) else people
    if not isinstance(given, Population | Adjustment):
        raise wrong_result("propensity_overlap", "riskset.cohort.propensity_score", people)
    for name, value, known in (("scale", scale, OverlapScale), ("kind", kind, OverlapKind)):
        if value not in get_args(known):
            raise InputError.wrong_option(name, value, get_args(known))
    if not is_count(n_bars):
        raise InputError(
            f"`n_bars` must be a whole number of at least 1, but it is {n_bars!r}.",
            hint="50 are usual.",
        )
    begun = start(given, allow_weights=True)
    population = begun.population
    if not population.has_score:
        raise InputError(
            "the people have no propensity scores.",
            hint="pass the result of `riskset.cohort.propensity_score`, or a Population with "
            "scores.",
        )
    if not 0 < np.count_nonzero(population.is_target) < population.n_rows:
        raise InputError("one arm is empty, so there is no overlap.", hint="check `treatment`.")
    score = preference_score(population) if scale == "preference" else population.score
    is_adjusted = isinstance(given, Adjustment)
    make = _bars if kind == "histogram" else _densities
    shares = make(begun, score, n_bars, is_adjusted)
    words = f"{equipoise(population):.0%} in equipoise, AUC {auc(population).auc:.2f}"
    return draw_overlap(
        shares,
        {"target": target, "comparator": comparator},
        xlabel=f"{scale} score",
        ylabel="share of the arm" if kind == "histogram" else "density",
        is_share=kind == "histogram",
        equipoise=(0.3, 0.7) if scale == "preference" else None,
        words=words,
        ax=ax,
        title=title,
    )


def _bars(begun: Adjustment, score: Rows, n_bars: int, is_adjusted: bool) -> dict[str, Shares]:
    edges = np.linspace(0, 1, n_bars + 1)
    shares = {}
    for arm, bars in score_bars(begun, score, n_bars).items():
        total = bars.weight.sum()
        kept = bars.weight / total if is_adjusted and total > 0 else None
        shares[arm] = Shares(edges, bars.all_rows / bars.all_rows.sum(), kept)
    return shares


def _densities(begun: Adjustment, score: Rows, _: int, is_adjusted: bool) -> dict[str, Shares]:
    is_target = begun.population.is_target
    shares = {}
    for arm, own in (("target", is_target), ("comparator", ~is_target)):
        points, before = smooth_density(score[own])
        weight = begun.weight[own]
        kept = None
        if is_adjusted and (weight > 0).any():
            kept = smooth_density(score[own], weight)[1]
        shares[arm] = Shares(points, before, kept)
    return shares


def smooth_density(
    values: Rows, weight: Rows | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    r"""Points of [0, 1] (k,), and a Gaussian kernel density of (weighted) values there.

    The kernel is mirrored at both ends, so that the density has the area 1. Its bandwidth is
    :math:`0.9 \min(s, IQR / 1.34) n^{-1/5}` with the effective number n of values; for values
    without spread it is that of a hundredth of the range. Values count in `FINE` cells.
    """
    w = np.ones(values.size) if weight is None else weight
    mass, edges = np.histogram(values, bins=FINE, range=(0.0, 1.0), weights=w / w.sum())
    points = (edges[:-1] + edges[1:]) / 2
    mean = mass @ points
    sd = float(np.sqrt(mass @ (points - mean) ** 2))
    quartiles = np.interp([0.25, 0.75], np.cumsum(mass), points)
    spread = min(sd, float(quartiles[1] - quartiles[0]) / 1.34) or sd or 0.01
    n = float(w.sum() ** 2 / (w**2).sum())
    width = max(0.9 * spread * n**-0.2, 1 / FINE)
    smooth = gaussian_filter1d(mass * FINE, width * FINE, mode="reflect", truncate=6.0)
    return points, np.asarray(smooth)


@styled
def draw_overlap(
    shares: Mapping[str, Shares],
    names: Mapping[str, str],
    *,
    xlabel: str,
    ylabel: str,
    is_share: bool,
    equipoise: tuple[float, float] | None = None,
    borders: Sequence[float] = (),
    words: str = "",
    ax: Axes | None = None,
    title: str | None = None,
) -> Axes:
    """The target upwards and the comparator downwards, as shares or densities.

    `borders` are those of strata.
    """
    axes = canvas(ax, 7.0, 4.4)
    highest = 0.0
    if equipoise is not None:
        axes.axvspan(*equipoise, color=FAINT, alpha=0.28, linewidth=0, zorder=0)
    for arm, colour, sign in (("target", COLOURS[0], 1), ("comparator", ACCENT, -1)):
        own = shares[arm]
        is_curve = own.edges.size == own.before.size
        _area(axes, own.edges, sign * own.before, colour, 0.25 if own.kept is not None else 0.55)
        highest = max(highest, float(own.before.max(initial=0.0)))
        if own.kept is not None:
            _area(axes, own.edges, sign * own.kept, colour, 0.6)
            highest = max(highest, float(own.kept.max(initial=0.0)))
        outline: dict[str, Any] = {"color": colour, "linewidth": 1.0, "zorder": 3}
        if is_curve:
            axes.plot(own.edges, sign * own.before, **outline)
        else:
            axes.stairs(sign * own.before, own.edges, **outline)
    top = 1.22 * (highest or 1.0)  # words stand above and below
    for at in borders:
        axes.plot([at, at], [-0.06 * top, 0.06 * top], color=INK, linewidth=1.0, zorder=4)
    axes.axhline(0, color=INK, linewidth=0.8, zorder=4)
    axes.set_xlim(0, 1)
    axes.set_ylim(-top, top)
    axes.yaxis.set_major_formatter(
        FuncFormatter(lambda v, _: f"{abs(v):.3g}" if not is_share else f"{100 * abs(v):.3g}%")
    )
    for arm, colour, at, side in (
        ("target", COLOURS[0], 0.97, "top"),
        ("comparator", ACCENT, 0.03, "bottom"),
    ):
        more = " (dark: after adjustment)" if shares[arm].kept is not None else ""
        style: dict[str, Any] = {"color": colour, "fontweight": "bold", "va": side}
        axes.text(0.015, at, names[arm] + more, transform=axes.transAxes, **style)
    frame(axes, None, xlabel, ylabel)
    axes.text(1.0, 1.01, words, transform=axes.transAxes, ha="right", va="bottom", color=QUIET)
    if title:
        axes.set_title(title, pad=20)
    return axes


def _area(axes: Axes, edges: Features, height: Features, colour: str, alpha: float) -> None:
    if edges.size == height.size:
        axes.fill_between(edges, 0, height, color=colour, alpha=alpha, linewidth=0, zorder=2)
    else:
        axes.stairs(height, edges, fill=True, color=colour, alpha=alpha, linewidth=0, zorder=2)
