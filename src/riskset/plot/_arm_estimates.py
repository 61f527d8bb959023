"""Plot of estimates of both arms at some times, with their intervals."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from riskset._errors import InputError
from riskset.cohort.arms.arm_contrasts import ArmEstimates
from riskset.cohort.arms.curves import ARMS
from riskset.plot._canvas import canvas, styled, wrong_result
from riskset.plot._curve_axes import line_colour, line_style
from riskset.plot._style import AxisLabel, frame, label_ends, short

__all__ = ["arm_estimates"]

SHIFT = 0.006
"""How far the intervals of both arms are moved apart, as a share of the last time."""


@styled
def arm_estimates(
    estimates: ArmEstimates,
    measure: str | None = None,
    *,
    labels: tuple[str, str] = ARMS,
    ax: Axes | None = None,
    title: str | None = None,
    xlabel: str = "time",
    ylabel: str | None = None,
) -> Axes:
    """Plot risks or restricted means of both arms at the times of the estimates.

    Estimates are joined by lines from 0 at time 0, and have their intervals. Both are at the same
    time, a little apart.

    Parameters
    ----------
    estimates : StandardizedEstimates, DoublyRobustEstimates or ArmRestrictedMeans
    measure : str, optional
        One of its `measures`. Default: the first.
    labels : (str, str)
        Names of the target and of the comparator, written at the ends of the lines.
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
        If the estimates lack the measure.

    Examples
    --------
    >>> import riskset as rs
    >>> people = rs.cohort.Population([1, 0] * 20)
    >>> y = rs.Surv(range(1, 41), [1] * 40)
    >>> found = rs.cohort.standardize(y, people, [[k % 3] for k in range(40)], [10, 20, 30])
    >>> ax = rs.plot.arm_estimates(found)
    """
    if not isinstance(estimates, ArmEstimates):
        raise wrong_result("arm_estimates", "riskset.cohort.standardize", estimates)
    chosen = estimates.measures[0] if measure is None else measure
    if chosen not in estimates.measures:
        raise InputError.unknown_name("measure", chosen, estimates.measures)
    q = estimates.measures.index(chosen)
    axes, ends = canvas(ax, 7.0, 4.4), []
    order = np.argsort(estimates.times)
    times = estimates.times[order]
    for k, (arm, label) in enumerate(zip(ARMS, labels, strict=True)):
        value, lower, upper = (
            getattr(estimates, f"{arm}{end}")[q, order] for end in ("", "_lower", "_upper")
        )
        colour, style = line_colour(k), line_style(k)
        axes.plot(
            np.append(0.0, times), np.append(0.0, value), color=colour, linestyle=style,
            linewidth=1.6, marker="o", markersize=3.5, markevery=slice(1, None),
        )  # fmt: skip
        at = times + (2 * k - 1) * SHIFT * times[-1]
        axes.vlines(at, lower, upper, color=colour, linewidth=1.2)
        known = np.flatnonzero(np.isfinite(value))
        if known.size:
            ends.append(AxisLabel(float(value[known[-1]]), short(str(label)), colour, False))
    axes.set_xlim(0, times[-1] * (1 + 3 * SHIFT))
    axes.set_ylim(bottom=0)
    if chosen == "risk":
        axes.yaxis.set_major_formatter(PercentFormatter(1, 0))
    words = chosen.replace("_", " ") if ylabel is None else ylabel
    frame(axes, title, xlabel, words)
    label_ends(axes, ends)
    return axes
