"""Where a plot is drawn: the axes that the caller gives, or new ones that notebooks show."""

from collections.abc import Callable
from functools import wraps
from io import BytesIO
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from riskset._errors import InputError
from riskset.plot._style import STYLE

__all__ = ["Axes", "PlotAxes", "PlotFigure", "canvas", "save_plot", "styled", "wrong_result"]

P = ParamSpec("P")
R = TypeVar("R")

DOTS = 200
"""Dots per inch of the picture in a notebook, for screens with fine pixels."""
SHOWN_DOTS = 96
"""Pixels per inch at which a notebook shows it."""


class PlotFigure(Figure):
    """A figure that a notebook shows as a picture, and that pyplot does not know."""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        """The picture and its size in pixels, for Jupyter."""
        target = BytesIO()
        self.savefig(target, format="png", dpi=DOTS)
        width, height = (round(inches * SHOWN_DOTS) for inches in self.get_size_inches())
        return target.getvalue(), {"width": width, "height": height}


class PlotAxes(Axes):
    """Axes that a notebook shows as the picture of their figure."""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]] | None:
        figure = self.get_figure(root=True)
        return figure._repr_png_() if isinstance(figure, PlotFigure) else None


def styled(draw: Callable[P, R]) -> Callable[P, R]:
    """Decorator of functions that draw: they do so in the style of all plots."""

    @wraps(draw)
    def draw_in_style(*args: P.args, **keywords: P.kwargs) -> R:
        with matplotlib.rc_context(STYLE):
            return draw(*args, **keywords)

    return draw_in_style


def canvas(ax: Axes | None, width: float, height: float) -> Axes:
    """The given axes, or the axes of an empty figure of so many inches."""
    if ax is None:
        figure = PlotFigure(figsize=(width, height), layout="constrained")
        axes: Any = figure.add_subplot(axes_class=PlotAxes)
        return axes  # type: ignore[no-any-return]
    if not isinstance(ax, Axes):
        raise InputError(
            f"`ax` must be Axes of matplotlib, but it is {type(ax).__name__}.",
            hint="`figure, ax = matplotlib.pyplot.subplots()` makes a figure and its axes; of "
            "several axes, pass one.",
        )
    return ax


def wrong_result(name: str, wanted: str, given: object) -> InputError:
    """The error for something else than the result that a plot shows."""
    return InputError(
        f"riskset.plot.{name} shows what {wanted} gives, but it was given {type(given).__name__}.",
        hint=f"pass the result of {wanted}.",
    )


def save_plot(axes: Axes, path: Path, dpi: float = DOTS) -> None:
    """Write the figure of some axes to a file, in the format that its name ends in."""
    figure = axes.get_figure(root=True)
    if figure is None:
        raise ValueError("the axes are in no figure")
    figure.savefig(path, dpi=dpi)
