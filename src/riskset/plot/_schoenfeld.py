"""Plot of scaled Schoenfeld residuals: how a coefficient changes with time."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

from riskset._ticks import log_ticks, nice_ticks
from riskset.infer.proportionality import ProportionalityTest
from riskset.infer.scaled_residuals import ScaledSchoenfeldResiduals
from riskset.plot._canvas import canvas, styled, wrong_result
from riskset.plot._numbers import p_words
from riskset.plot._style import ACCENT, COLOURS, DASHED, INK, QUIET, frame

__all__ = ["schoenfeld"]

MANY = 1000
"""With more points, they are pale, and become pixels in a PDF or SVG file."""
MAX_TICKS = 8


@styled
def schoenfeld(
    test: ProportionalityTest,
    parameter: str | None = None,
    *,
    df: int = 4,
    level: float = 0.95,
    residuals: bool = True,
    ax: Axes | None = None,
    title: str | None = None,
    xlabel: str = "time",
    ylabel: str | None = None,
) -> Axes:
    """Plot the scaled Schoenfeld residuals of a covariate, with a smooth curve and its interval.

    The curve estimates the log hazard ratio over time. It is level if the hazards are proportional;
    a dashed line marks the estimate of the fit. The plot is that of R's ``cox.zph``, and has
    the p value of the test.

    Parameters
    ----------
    test : ProportionalityTest
        Result of ``model.test_proportionality(X, y)``. Its transformation spaces the times.
    parameter : str, optional
        The covariate. Default: the one with the smallest p.
    df : int
        Degrees of freedom of the curve, a natural cubic spline.
    level : float
        Confidence level of the pointwise interval.
    residuals : bool
        Whether to draw the residuals, not only the curve.
    ax : matplotlib Axes, optional
        Default: new axes, which a notebook shows.
    title, xlabel, ylabel : str
        Texts.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    InputError
        If the covariate is unknown, or there are fewer different times of events than `df`.
    NotDefinedError
        If the test was pickled.

    References
    ----------
    Grambsch and Therneau (1994), Biometrika 81, 515-526, doi:10.1093/biomet/81.3.515.

    Examples
    --------
    >>> import riskset as rs
    >>> cohort = rs.simulate_cox(500, 3, 0.5, seed=1)
    >>> y = rs.Surv(cohort.time, cohort.event)
    >>> test = rs.Cox().fit(cohort.X, y).test_proportionality(cohort.X, y)
    >>> ax = rs.plot.schoenfeld(test, "x0")
    """
    if not isinstance(test, ProportionalityTest):
        raise wrong_result("schoenfeld", "model.test_proportionality(X, y)", test)
    found = test.scaled_residuals()
    if parameter is None:
        known = np.where(np.isnan(test.p_value), np.inf, test.p_value)
        parameter = test.names[int(np.argmin(known))]
    j = found.position(parameter)
    curve = found.smooth(parameter, df=df, n_points=200, level=level)
    axes = canvas(ax, 7.0, 4.4)
    values, x = found.values[:, j], found.transformed
    if residuals:
        is_many = values.size > MANY
        axes.plot(
            x, values, "o", color=QUIET, alpha=0.25 if is_many else 0.55, zorder=1,
            markersize=2.5 if is_many else 3.5, markeredgewidth=0, rasterized=is_many,
        )  # fmt: skip
    axes.fill_between(
        curve.transformed, curve.lower, curve.upper, color=COLOURS[0], alpha=0.18, linewidth=0
    )
    axes.plot(curve.transformed, curve.coef, color=COLOURS[0], linewidth=1.8, zorder=3)
    axes.axhline(found.coef[j], color=ACCENT, linewidth=1.0, linestyle=DASHED, zorder=2)
    axes.axhline(0, color=INK, linewidth=0.6, zorder=0)
    axes.margins(x=0.01)
    places, labels = _ticks(found)
    axes.xaxis.set_major_locator(FixedLocator(places))
    axes.xaxis.set_major_formatter(FixedFormatter(labels))
    axes.xaxis.set_minor_locator(NullLocator())
    words = f"proportional hazards: {p_words(float(test.p_value[j]))}"
    axes.text(1.0, 1.01, words, transform=axes.transAxes, ha="right", va="bottom", color=INK)
    label = dict(zip(test.names, test.labels, strict=False)).get(parameter, parameter)
    frame(axes, None, xlabel, f"log hazard ratio of {label}" if ylabel is None else ylabel)
    if title:
        axes.set_title(title, pad=20)
    return axes


def _ticks(found: ScaledSchoenfeldResiduals) -> tuple[list[float], list[str]]:
    """Places on the axis of transformed time that stand for round times."""
    order = np.argsort(found.transformed, kind="stable")
    x, time = found.transformed[order], found.time[order]
    low, high = float(time[0]), float(time[-1])
    if found.transform == "log":
        times = log_ticks(low, high)
        return np.log(times).tolist(), [f"{t:,g}" for t in times]
    if found.transform == "identity":
        times = nice_ticks(low, high, MAX_TICKS)
        return list(times), [f"{t:,g}" for t in times]
    # Evenly spaced on the axis, as R does, at round times near there.
    wanted = np.interp(np.linspace(x[0], x[-1], 2 * MAX_TICKS + 1)[1::2], x, time)
    rounded = np.unique([_rounded(t, high - low) for t in wanted])
    rounded = rounded[(rounded >= low) & (rounded <= high)]
    return np.interp(rounded, time, x).tolist(), [f"{t:,g}" for t in rounded]


def _rounded(time: float, span: float) -> float:
    """A time with two digits of its own, or of the span if that is shorter."""
    size = min(abs(time), span) or span
    unit = 10.0 ** (np.floor(np.log10(size)) - 1)
    return float(np.round(time / unit) * unit)
