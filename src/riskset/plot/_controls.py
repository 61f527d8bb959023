"""Plot of negative controls: effect sizes against standard errors, with contours of p = 0.05."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import NDArray
from scipy.special import ndtri

from riskset._errors import InputError
from riskset._types import Features
from riskset.cohort.bias.calibration import CalibratedEstimates
from riskset.cohort.effects.effect_scale import effect_name
from riskset.cohort.effects.estimate import Estimate
from riskset.plot._canvas import canvas, styled, wrong_result
from riskset.plot._style import ACCENT, COLOURS, DASHED, QUIET, frame, set_ratio_axis, short

__all__ = ["ControlPoints", "draw_controls", "negative_controls"]

POINTS = 121
"""Standard errors at which a contour is computed."""
MARKS = "Dsp^vP"
LEAST_RANGE = 4.0
"""The axis reaches at least from a quarter to four."""


class ControlPoints(NamedTuple):
    """Log ratios and standard errors of controls (n,), and which were used for calibration."""

    log_rr: Features
    se: Features
    is_used: NDArray[np.bool_]


@styled
def negative_controls(
    calibrated: CalibratedEstimates,
    *,
    estimates: Estimate | Mapping[str, Estimate] | None = None,
    level: float = 0.95,
    ax: Axes | None = None,
    title: str | None = None,
    xlabel: str | None = None,
) -> Axes:
    r"""Plot estimates of negative controls against their standard errors, a funnel.

    Below a dashed line, an estimate has an uncalibrated p below 1 - `level`:
    :math:`|b| > z \, se` of a log ratio b. In the coloured areas it has a calibrated p below
    1 - `level`. Without systematic error, 95 % of the controls are above the dashed lines. The plot
    is that of EmpiricalCalibration's ``plotCalibrationEffect``.

    Parameters
    ----------
    calibrated : CalibratedEstimates
        Result of `riskset.cohort.calibrate`. Positive controls are not drawn.
    estimates : Estimate, or mapping of str to Estimate, optional
        Estimates of interest, before calibration, drawn as large marks. A mapping has their names
        as keys.
    level : float
        Level of the contours.
    ax : matplotlib Axes, optional
        Default: new axes, which a notebook shows.
    title, xlabel : str
        Texts. The default of `xlabel` is the name of the ratio of `estimates`, such as "odds
        ratio"; without any, "hazard ratio".

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    InputError
        If there are no negative controls.

    References
    ----------
    Schuemie, Ryan, DuMouchel, Suchard and Madigan (2014), Statistics in Medicine 33, 209-218,
    doi:10.1002/sim.5925.

    Examples
    --------
    >>> import riskset as rs
    >>> controls = rs.cohort.Controls([0.2, -0.1, 0.3, 0.1, 0.0, 0.25], [0.1] * 6)
    >>> found = rs.cohort.calibrate(controls, [0.5], [0.1], method="likelihood")
    >>> ax = rs.plot.negative_controls(found)
    """
    if not isinstance(calibrated, CalibratedEstimates):
        raise wrong_result("negative_controls", "riskset.cohort.calibrate", calibrated)
    if isinstance(estimates, Estimate):
        estimates = {"estimate": estimates}
    shown = {} if estimates is None else estimates
    if not isinstance(shown, Mapping) or not all(isinstance(e, Estimate) for e in shown.values()):
        raise InputError(
            f"`estimates` must be an Estimate or a mapping of names to them, but it is "
            f"{type(estimates).__name__}.",
            hint="pass the result of riskset.cohort.fit_outcome.",
        )
    negative = calibrated.controls.is_negative
    log_rr, se = calibrated.controls.log_rr[negative], calibrated.controls.se[negative]
    if not se.size:
        raise InputError(
            "there are no negative controls to draw.",
            hint="`controls.set_aside` lists controls whose estimates are not used.",
        )
    points = ControlPoints(log_rr, se, np.ones(se.size, dtype=bool))
    interest = {
        name: (one.log_hr, one.se)
        for name, one in shown.items()
        if np.isfinite(one.log_hr) and np.isfinite(one.se)
    }
    if xlabel is None:
        xlabel = effect_name(one.model for one in shown.values())
    top = _top(points, interest)
    grid = np.linspace(0, top, POINTS)
    region = None if calibrated.null is None else (grid, *calibrated.unremarkable(grid, level))
    return draw_controls(points, region, interest, level=level, ax=ax, title=title, xlabel=xlabel)


def _top(points: ControlPoints, interest: Mapping[str, tuple[float, float]]) -> float:
    errors = [*points.se[np.isfinite(points.se)].tolist(), *(se for _, se in interest.values())]
    return float(1.08 * max([0.1, *errors]))


@styled
def draw_controls(
    points: ControlPoints,
    region: tuple[Features, Features, Features] | None,
    interest: Mapping[str, tuple[float, float]],
    *,
    level: float = 0.95,
    ax: Axes | None = None,
    title: str | None = None,
    xlabel: str = "hazard ratio",
) -> Axes:
    """The funnel; `region` has standard errors, and the ends of what calibration does not find."""
    axes = canvas(ax, 7.0, 5.0)
    top = _top(points, interest)
    ratios = [*points.log_rr.tolist(), *(b for b, _ in interest.values())]
    reach = max(np.log(LEAST_RANGE), 1.1 * max(np.abs(ratios), default=0.0))
    low, high = float(np.exp(-reach)), float(np.exp(reach))
    set_ratio_axis(axes, low, high)
    axes.set_ylim(0, top)
    z = float(ndtri(0.5 + level / 2))
    if region is not None:
        se, lower, upper = region
        for ends, edge in ((lower, low), (upper, high)):
            inside = np.exp(ends).clip(low, high)
            axes.fill_betweenx(
                se, inside, edge, color=COLOURS[4], alpha=0.28, linewidth=0, zorder=0
            )
            axes.plot(np.exp(ends), se, color=COLOURS[4], linewidth=1.2, zorder=1)
    errors = np.linspace(0, top, 2)
    for sign in (-1, 1):
        axes.plot(
            np.exp(sign * z * errors), errors, color=QUIET, linewidth=1.1, linestyle=DASHED,
            zorder=1,
        )  # fmt: skip
    used = points.is_used
    spot = {"markersize": 5.5, "markeredgewidth": 0.8, "linestyle": "none", "zorder": 3}
    style = spot | {"marker": "o", "markerfacecolor": COLOURS[0], "markeredgecolor": "white"}
    axes.plot(np.exp(points.log_rr[used]), points.se[used], **style)  # type: ignore[arg-type]
    handles = [Line2D([], [], **style, label="negative control")]  # type: ignore[arg-type]
    if not used.all():
        style = spot | {"marker": "x", "markeredgecolor": QUIET}
        axes.plot(np.exp(points.log_rr[~used]), points.se[~used], **style)  # type: ignore[arg-type]
        handles.append(Line2D([], [], **style, label="not used"))  # type: ignore[arg-type]
    for k, (name, (log_rr, se_of)) in enumerate(interest.items()):
        mark = {"marker": MARKS[k % len(MARKS)], "markersize": 9, "linestyle": "none"}
        style = mark | {"markerfacecolor": ACCENT, "markeredgecolor": "white", "zorder": 4}
        axes.plot(np.exp(log_rr), se_of, **style)  # type: ignore[arg-type]
        handles.append(Line2D([], [], **style, label=short(name, 34)))  # type: ignore[arg-type]
    p = f"p = {1 - level:.3g}"
    handles.append(Line2D([], [], color=QUIET, linestyle=DASHED, label=p))
    if region is not None:
        area = {"facecolor": COLOURS[4], "alpha": 0.35}
        label = f"calibrated p < {1 - level:.3g}"
        handles.append(Patch(**area, label=label))  # type: ignore[arg-type]
    axes.legend(
        handles=handles, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.13),
        ncols=min(len(handles), 4), borderaxespad=0.2,
    )  # fmt: skip
    frame(axes, title, xlabel, "standard error of the log ratio")
    return axes
