"""Calibration plot: observed against predicted probabilities."""

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from riskset._errors import InputError
from riskset.metrics._calibration import Calibration
from riskset.plot._canvas import canvas, styled, wrong_result
from riskset.plot._curve_axes import line_colour, line_style
from riskset.plot._numbers import interval_words
from riskset.plot._style import QUIET, frame, short

__all__ = ["calibration"]

MARKS = "osD^vP"


@styled
def calibration(
    result: Calibration | Mapping[str, Calibration],
    *,
    ax: Axes | None = None,
    title: str | None = None,
    xlabel: str | None = None,
    ylabel: str | None = None,
) -> Axes:
    """Plot observed against predicted probabilities of the event, with intervals.

    Groups are marks with intervals, a smooth curve has a band. On the diagonal, predictions agree
    with what was observed. The legend has the ratio of observed to predicted events, with its
    interval, and the mean distance between predicted and observed probabilities.

    Parameters
    ----------
    result : Calibration, or mapping of str to Calibration
        Result of `riskset.metrics.calibration`. A mapping has the names of models as keys.
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
        If there is nothing to draw.

    Examples
    --------
    >>> import riskset as rs
    >>> cohort = rs.simulate_cox(500, 3, 0.5, seed=1)
    >>> y = rs.Surv(cohort.time, cohort.event)
    >>> model = rs.Cox().fit(cohort.X, y)
    >>> at = float(cohort.time.mean())
    >>> survival = model.predict_survival_function(cohort.X, times=[at])
    >>> ax = rs.plot.calibration(rs.metrics.calibration(y, survival, at))
    """
    found = {"": result} if isinstance(result, Calibration) else result
    is_right = isinstance(found, Mapping) and bool(found)
    if not is_right or not all(isinstance(one, Calibration) for one in found.values()):
        raise wrong_result("calibration", "riskset.metrics.calibration", result)
    axes = canvas(ax, 5.2, 5.0)
    top = 0.0
    for k, (name, one) in enumerate(found.items()):
        known = np.isfinite(one.observed)
        if not known.any():
            raise InputError(
                f"no observed probability of {name or 'the result'} is known.",
                hint="choose a time up to which rows are followed.",
            )
        x, y = one.predicted[known], one.observed[known]
        lower = np.where(np.isfinite(one.lower), one.lower, one.observed)[known]
        upper = np.where(np.isfinite(one.upper), one.upper, one.observed)[known]
        colour = line_colour(k)
        label = f"{short(name, 28)}: {_words(one)}" if name else _words(one)
        if one.is_smooth:
            axes.fill_between(x, lower, upper, color=colour, alpha=0.15, linewidth=0)
            axes.plot(x, y, color=colour, linestyle=line_style(k), linewidth=1.6, label=label)
        else:
            axes.errorbar(
                x, y, [y - lower, upper - y], fmt=MARKS[k % len(MARKS)], color=colour,
                markersize=5, elinewidth=1.0, capsize=2, label=label,
            )  # fmt: skip
        top = max(top, float(x.max()), float(np.nanmax(upper)))
    end = min(1.0, 1.05 * top)
    axes.plot([0, end], [0, end], color=QUIET, linewidth=0.9, zorder=0)
    axes.set_xlim(0, end)
    axes.set_ylim(0, end)
    if ax is None:
        axes.set_box_aspect(1)
    decimals = 0 if end > 0.08 else 1
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(PercentFormatter(1, decimals))
    axes.legend(frameon=False, loc="lower right", fontsize=8, borderaxespad=0.2)
    time = next(iter(found.values())).time
    frame(
        axes,
        title,
        f"predicted probability by time {time:g}" if xlabel is None else xlabel,
        "observed probability" if ylabel is None else ylabel,
    )
    return axes


def _words(one: Calibration) -> str:
    ratio = interval_words(one.ratio, one.ratio_lower, one.ratio_upper)
    return f"observed / predicted {ratio}\nmean distance {one.mean_distance:.3f}"
