"""Plot of time-dependent ROC curves."""

from collections.abc import Mapping

from matplotlib.axes import Axes
from scipy.special import ndtri

from riskset._errors import InputError
from riskset.infer.wald import check_level
from riskset.metrics._roc import ROC
from riskset.plot._canvas import canvas, styled, wrong_result
from riskset.plot._curve_axes import line_colour, line_style
from riskset.plot._style import QUIET, frame, short

__all__ = ["roc"]

MAX_CURVES = 10


@styled
def roc(
    result: ROC | Mapping[str, ROC],
    *,
    level: float = 0.95,
    ax: Axes | None = None,
    title: str | None = None,
) -> Axes:
    """Plot time-dependent ROC curves: the true against the false positive rate of a score.

    The legend has the area under each curve with its normal interval, cut at 0 and 1.

    Parameters
    ----------
    result : ROC, or mapping of str to ROC
        Result of `riskset.metrics.roc`. A mapping has names as keys, such as models or times.
    level : float
        Confidence level of the intervals.
    ax : matplotlib Axes, optional
        Default: new axes, which a notebook shows.
    title : str, optional

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    InputError
        If there is nothing to draw, or there are more than 10 curves.

    Examples
    --------
    >>> import riskset as rs
    >>> y = rs.Surv([1.0, 2.0, 3.0, 4.0], [1, 1, 1, 0])
    >>> ax = rs.plot.roc(rs.metrics.roc(y, [0.9, 0.3, 0.5, 0.1], 2.0))
    """
    found = {"": result} if isinstance(result, ROC) else result
    is_right = isinstance(found, Mapping) and bool(found)
    if not is_right or not all(isinstance(one, ROC) for one in found.values()):
        raise wrong_result("roc", "riskset.metrics.roc", result)
    check_level(level)
    if len(found) > MAX_CURVES:
        raise InputError(
            f"a picture has room for {MAX_CURVES} curves, but there are {len(found)}.",
            hint="draw fewer at a time.",
        )
    axes, z = canvas(ax, 5.0, 5.0), float(ndtri(0.5 + level / 2))
    axes.plot([0, 1], [0, 1], color=QUIET, linewidth=0.9, zorder=0)
    for k, (name, one) in enumerate(found.items()):
        half = z * one.standard_error
        ends = f"{max(one.auc - half, 0):.3f} to {min(one.auc + half, 1):.3f}"
        head = f"{short(name, 28)}: " if name else f"time {one.time:g}: "
        axes.plot(
            one.false_positive_rate,
            one.true_positive_rate,
            color=line_colour(k),
            linestyle=line_style(k),
            linewidth=1.6,
            label=f"{head}AUC {one.auc:.3f} ({ends})",
        )
    axes.set_xlim(-0.01, 1.01)
    axes.set_ylim(-0.01, 1.01)
    if ax is None:
        axes.set_box_aspect(1)
    axes.legend(frameon=False, loc="lower right", bbox_to_anchor=(1.0, 0.02))
    frame(axes, title, "false positive rate (1 − specificity)", "true positive rate (sensitivity)")
    return axes
