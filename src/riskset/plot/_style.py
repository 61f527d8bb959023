"""Colours, frames and labels that all pictures share."""

import textwrap
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from scipy.optimize import isotonic_regression

from riskset._ticks import log_ticks
from riskset._types import AnyArray

__all__ = [
    "ACCENT",
    "COLOURS",
    "DASHED",
    "FAINT",
    "INK",
    "QUIET",
    "STYLE",
    "AxisLabel",
    "frame",
    "in_two_lines",
    "label_ends",
    "set_log_ticks",
    "set_ratio_axis",
    "short",
    "width_of",
    "write_at",
]

DASHED = (0, (4, 3))
INK = "#22262b"
QUIET = "#8a929c"
FAINT = "#cbd0d6"
ACCENT = "#c2410c"
# Distinct without colour vision too (Okabe and Ito's palette, darkened for thin lines).
COLOURS = ("#0072b2", "#009e73", "#b0527f", "#7b5ea7", "#8a7300", "#56707f", "#00838f", "#5c7c3a")
STYLE: dict[Any, Any] = {
    "axes.edgecolor": QUIET,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "font.size": 9,
    "text.color": INK,
    "text.parse_math": False,  # a dollar sign in a name is a dollar sign
    "xtick.color": INK,
    "ytick.color": INK,
}


class AxisLabel(NamedTuple):
    """Text at the right end of a line, in data units; `x` is the edge of the axes if not given."""

    y: float
    text: str
    colour: str
    is_bold: bool
    x: float | None = None


def short(text: str, limit: int = 26) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def in_two_lines(text: str, width: int) -> str:
    """A text on at most two lines; a longer one loses its middle.

    Names of covariates of a CDM begin with an analysis and end with a concept.
    """
    lines = textwrap.wrap(text, width)
    if len(lines) > 2:
        end = textwrap.wrap(text.strip()[::-1], width - 2)[0][::-1]
        lines = [lines[0], f"… {end}"]
    return "\n".join(lines)


def frame(axes: Axes, title: str | None, xlabel: str = "", ylabel: str = "") -> None:
    """What surrounds the axes."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(length=3, width=0.8)
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    if title:
        axes.set_title(title, pad=10)


def write_at(
    axes: Axes,
    words: str,
    at: tuple[float, float],
    shift: tuple[float, float],
    coords: str | tuple[str, str] = ("data", "axes fraction"),
    **style: Any,
) -> None:
    """Words that stand so many points from a place."""
    axes.annotate(words, at, shift, xycoords=coords, textcoords="offset points", **style)


def set_log_ticks(axis: Axis, low: float, high: float) -> None:
    """Ticks of a logarithmic axis at round numbers, written plainly."""
    axis.set_major_locator(FixedLocator(log_ticks(low, high)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,g}"))


def set_ratio_axis(axes: Axes, low: float, high: float) -> None:
    """A logarithmic horizontal axis of ratios, with a line at 1."""
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    axes.axvline(1, color=QUIET, linewidth=0.8, zorder=1)
    set_log_ticks(axes.xaxis, low, high)


def width_of(words: str, *, is_bold: bool = False) -> float:
    """Width of words in points, in the type of all plots."""
    if not words.strip():
        return 0.0
    font = FontProperties(weight="bold" if is_bold else "normal", size=STYLE["font.size"])
    path = TextPath((0, 0), words.replace("$", r"\$"), prop=font, usetex=False)
    return float(path.get_extents().width)


def label_ends(axes: Axes, labels: Sequence[AxisLabel], gap: float = 0.043) -> None:
    """Write each label next to the end of its line; labels that would overlap are moved apart.

    The gap between two is a share of the axes: a line of 9 point type, with some air, is 0.043 of
    axes 300 points high.
    """
    ordered = sorted((label for label in labels if label.text), key=lambda label: label.y)
    if not ordered:
        return
    low, high = axes.get_ylim()
    wanted = np.array([(label.y - low) / (high - low) for label in ordered])
    placed = _within(_spread(wanted, gap), gap)
    for label, start, end in zip(ordered, wanted, placed, strict=True):
        axes.annotate(
            label.text,
            xy=(1, start) if label.x is None else (label.x, label.y),
            xytext=(1.035, end),
            xycoords="axes fraction" if label.x is None else "data",
            textcoords="axes fraction",
            va="center",
            color=label.colour,
            fontweight="bold" if label.is_bold else "normal",
            arrowprops={
                "arrowstyle": "-",
                "color": label.colour,
                "linewidth": 0.6,
                "alpha": 0.6,
                "shrinkA": 1,
                "shrinkB": 1,
            },
            annotation_clip=False,
        )


def _spread(wanted: AnyArray, gap: float) -> AnyArray:
    """Positions at least `gap` apart, in the same order, nearest to `wanted` in least squares.

    With k gaps taken off position k, the condition is that positions do not decrease.
    """
    gaps = gap * np.arange(wanted.size)
    spread: AnyArray = isotonic_regression(wanted - gaps).x + gaps
    return spread


def _within(placed: AnyArray, gap: float) -> AnyArray:
    """Positions between 0 and 1, `gap` apart, as far as there is room for all."""
    rank = np.arange(placed.size)
    lowest: AnyArray = np.maximum(placed, gap * rank)
    return lowest if placed.size * gap > 1 else np.minimum(lowest, 1 - gap * rank[::-1])
