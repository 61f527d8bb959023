"""Plot of predicted functions of time: survival, or cumulative incidence."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from riskset._errors import InputError, counted
from riskset.model.step_function import StepFunction
from riskset.plot._canvas import canvas, styled, wrong_result
from riskset.plot._curve_axes import MAX_LINES, line_colour, line_style
from riskset.plot._style import AxisLabel, frame, label_ends, short

__all__ = ["predicted_curves"]

MAX_STEPS = 4000
"""Most times at which a curve is drawn."""


@styled
def predicted_curves(
    functions: StepFunction | Sequence[StepFunction] | Mapping[str, StepFunction],
    *,
    labels: Sequence[str] | None = None,
    until: float | None = None,
    ax: Axes | None = None,
    title: str | None = None,
    xlabel: str = "time",
    ylabel: str = "survival",
) -> Axes:
    """Plot predicted survival, or any other predicted probability, as step functions of time.

    Parameters
    ----------
    functions : StepFunction, or a sequence or mapping of them
        Result of ``model.predict_survival_function(X)``, or of ``predict_cumulative_incidence``. A
        mapping has the labels as keys.
    labels : sequence of str, optional
        One label per function, written at its end. Default: "row 0", "row 1", ...
    until : float, optional
        End of the time axis. Default: the last event time of the fit.
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
        If there are no functions or more than 30, or the labels do not match them.

    Examples
    --------
    >>> import riskset as rs
    >>> cohort = rs.load_rhc()
    >>> model = rs.Cox(rs.L1(20.0, unpenalized=["swang1"])).fit(cohort)
    >>> ax = rs.plot.predicted_curves(model.predict_survival_function(cohort)[:3])
    """
    if isinstance(functions, StepFunction):
        functions, labels = [functions], [""] if labels is None else labels
    if isinstance(functions, Mapping):
        labels = list(functions) if labels is None else labels
        functions = list(functions.values())
    is_list = isinstance(functions, Sequence | np.ndarray)
    if not is_list or not all(isinstance(one, StepFunction) for one in functions):
        raise wrong_result("predicted_curves", "model.predict_survival_function(X)", functions)
    chosen = list(functions)
    names = [f"row {k}" for k in range(len(chosen))] if labels is None else list(labels)
    if not 0 < len(chosen) <= MAX_LINES:
        raise InputError(
            f"a picture has room for 1 to {MAX_LINES} curves, but there are {len(chosen):,}.",
            hint="pass some rows of what the prediction gives, such as [:5].",
        )
    if len(names) != len(chosen):
        raise InputError(
            f"there are {counted(len(chosen), 'curve')}, but {counted(len(names), 'label')}.",
            hint="pass one label for each curve.",
        )
    axes, ends = canvas(ax, 7.0, 4.4), []
    last = max(float(one.x[-1]) for one in chosen) if until is None else float(until)
    for k, (function, name) in enumerate(zip(chosen, names, strict=True)):
        times = np.unique(np.append([0.0, last], function.x[function.x <= last]))
        if times.size > MAX_STEPS:
            times = times[np.linspace(0, times.size - 1, MAX_STEPS).round().astype(int)]
        value, colour = function(times), line_colour(k)
        style = line_style(k)
        axes.step(times, value, where="post", color=colour, linewidth=1.6, linestyle=style)
        ends.append(AxisLabel(float(value[-1]), short(str(name)), colour, False))
    axes.set_xlim(0, last)
    axes.set_ylim(0, 1)
    axes.yaxis.set_major_formatter(PercentFormatter(1, 0))
    frame(axes, title, xlabel, ylabel)
    label_ends(axes, ends)
    return axes
