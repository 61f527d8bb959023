"""Plot of a profile likelihood, with the cut and the interval."""

import numpy as np
from matplotlib.axes import Axes
from scipy.special import ndtri

from riskset._errors import InputError
from riskset._ticks import log_ticks
from riskset._types import Features, is_number
from riskset.estimators.profiling import Profile
from riskset.plot._canvas import canvas, styled, wrong_result
from riskset.plot._style import ACCENT, COLOURS, DASHED, INK, QUIET, frame, write_at

__all__ = ["profile_likelihood"]

DEPTH_IN_CUTS = 3.0
"""The picture ends where the profile has fallen by so many times the cut."""


@styled
def profile_likelihood(
    profile: Profile,
    *,
    interval: tuple[float, float] | None = None,
    level: float = 0.95,
    ax: Axes | None = None,
    title: str | None = None,
    xlabel: str = "log hazard ratio",
) -> Axes:
    """Plot the profile log likelihood of a coefficient minus its maximum, with the interval.

    The cut is half the chi-square quantile below the maximum. Infinite values are not drawn, and
    the interval extends to the edge.

    Parameters
    ----------
    profile : Profile
        Result of `riskset.profile`. Points without a value (NaN) are left out.
    interval : (float, float), optional
        Limits of the interval, if they are known. Default: ``profile.interval(level)``, which takes
        some fits.
    level : float
        Confidence level of the interval.
    ax : matplotlib Axes, optional
        Default: new axes, which a notebook shows.
    title, xlabel : str
        Texts. The hazard ratio follows the title, whose default is the covariate.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    InputError
        If fewer than two values are finite.

    Examples
    --------
    >>> import riskset as rs
    >>> cohort = rs.load_rhc()
    >>> model = rs.Cox(rs.L1(20.0, unpenalized=["swang1"])).fit(cohort)
    >>> profile = rs.profile(model, cohort, parameter="swang1")
    >>> ax = rs.plot.profile_likelihood(profile)
    """
    if not isinstance(profile, Profile):
        raise wrong_result("profile_likelihood", "riskset.profile(model, data)", profile)
    if not (is_number(level) and 0 < level < 1):
        raise InputError(
            f"`level` must be between 0 and 1, but it is {level!r}.", hint="0.95 means 95 %."
        )
    values, height = profile.values, profile.log_likelihood
    good = np.isfinite(values) & np.isfinite(height)
    if good.sum() < 2:
        raise InputError("a profile needs at least two finite values to be drawn.")
    estimate = profile.maximum
    lower, upper = profile.interval(level) if interval is None else interval
    order = np.argsort(values[good], kind="stable")
    values, height = values[good][order], height[good][order]
    height = height - profile.log_likelihood_maximum
    cut = 0.5 * float(ndtri((1 + level) / 2)) ** 2
    axes = canvas(ax, 7.0, 4.4)
    low, high = _window(values, height, -DEPTH_IN_CUTS * cut)
    ends = max(low, lower), min(high, upper)
    axes.axvspan(*ends, color=COLOURS[0], alpha=0.08, linewidth=0, zorder=0)
    axes.axhline(-cut, color=QUIET, linewidth=0.8, linestyle=DASHED, zorder=1)
    axes.plot(values, height, color=COLOURS[0], linewidth=1.8, zorder=3)
    for end in (lower, upper):
        if low < end < high:
            axes.plot([end, end], [-DEPTH_IN_CUTS * cut, -cut], color=COLOURS[0], linewidth=0.9)
            axes.plot(end, -cut, "o", color=COLOURS[0], markersize=4.5, zorder=4)
    if low < estimate < high:
        axes.plot(estimate, 0, "o", color=ACCENT, markersize=5.5, zorder=4)
    axes.set_xlim(low, high)
    axes.set_ylim(-DEPTH_IN_CUTS * cut, 0.08 * DEPTH_IN_CUTS * cut)
    words, coords = f"{100 * level:g}% cut", ("axes fraction", "data")
    write_at(axes, words, (1, -cut), (-2, 3), coords, ha="right", color=QUIET)
    frame(axes, None, xlabel, "profile log likelihood minus its maximum")
    _ratios(axes)
    axes.set_title(
        _heading(profile.label if title is None else title, estimate, lower, upper),
        pad=10,
        color=INK,
    )
    return axes


def _window(values: Features, height: Features, depth: float) -> tuple[float, float]:
    """From where to where the profile is above the lower edge, and a little more."""
    seen = np.flatnonzero(height > depth)
    if not seen.size:
        return float(values[0]), float(values[-1])
    first, last = max(int(seen[0]) - 1, 0), min(int(seen[-1]) + 1, values.size - 1)
    low, high = float(values[first]), float(values[last])
    # A coarse grid may take a long step down: follow the line to the edge only.
    if height[first] < depth:
        low = float(np.interp(depth, height[[first, first + 1]], values[[first, first + 1]]))
    if height[last] < depth:
        high = float(np.interp(depth, height[[last, last - 1]], values[[last, last - 1]]))
    return low, high


def _heading(title: str | None, estimate: float, lower: float, upper: float) -> str:
    ratio = "hazard ratio {} ({} to {})".format(*map(_ratio, (estimate, lower, upper)))
    return ratio if not title else f"{title}: {ratio}"


def _ratio(coef: float) -> str:
    with np.errstate(over="ignore"):
        value = float(np.exp(coef))
    return "∞" if np.isinf(value) else f"{value:.3g}"


def _ratios(axes: Axes) -> None:
    """Hazard ratios along the upper edge, at round numbers."""
    low, high = axes.get_xlim()
    if max(abs(low), abs(high)) > 30:
        return
    ticks = log_ticks(np.exp(low), np.exp(high))
    top = axes.secondary_xaxis("top")
    top.set_xticks(np.log(ticks), [f"{tick:.6g}" for tick in ticks])
    top.tick_params(length=3, width=0.8, colors=QUIET)
    top.spines["top"].set_visible(False)
    top.set_xlabel("hazard ratio", color=QUIET)
