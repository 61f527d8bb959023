"""Plot of tipping points: how strong an unmeasured confounder has to be, in two directions."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

from riskset._errors import InputError
from riskset._types import Rows
from riskset.cohort.bias.confounder_bias import ConfounderValues, solved
from riskset.cohort.bias.unmeasured_confounder import TippingPoints
from riskset.plot._canvas import canvas, styled, wrong_result
from riskset.plot._style import (
    ACCENT,
    COLOURS,
    DASHED,
    INK,
    QUIET,
    STYLE,
    frame,
    set_log_ticks,
    short,
    width_of,
    write_at,
)

__all__ = ["Strength", "draw_tipping", "tipping_points"]

XLABEL = "difference of means (standard deviations)"
YLABEL = "risk ratio of the outcome"
PER_SD = "per standard deviation"
WORDS = (
    "the interval reaches 1",
    "the estimate is 1",
    "measured covariate",
    "measured covariate, bias in the other direction",
)
DOTTED = (0, (1, 1.5))
LARGEST_LOG = 700.0
"""Its exponential is finite."""
POINTS = 400
MOST_NAMED = 8
"""Benchmarks with names: those that cause most bias."""
NAME_SIZE = 8
PLACES: Sequence[tuple[tuple[float, float], str]] = (
    ((6, 3), "left"),
    ((6, -11), "left"),
    ((-6, 3), "right"),
    ((-6, -11), "right"),
    ((6, 8), "left"),
    ((-6, 8), "right"),
    ((6, 14), "left"),
)
"""Points from a mark to its name, and which side of the name is at the mark."""
MOST = 10.0
"""The axis of effects reaches at most so far, unless a benchmark lies beyond."""


class Strength(NamedTuple):
    """A measured covariate: its association with the treatment, and with the outcome (a ratio)."""

    name: str
    difference: float
    effect: float


@styled
def tipping_points(
    points: TippingPoints,
    *,
    benchmarks: Mapping[str, tuple[float, float]] | None = None,
    biases: Mapping[str, float] | None = None,
    ax: Axes | None = None,
    title: str | None = None,
    xlabel: str | None = None,
    ylabel: str | None = None,
) -> Axes:
    """Plot how strong an unmeasured confounder has to be to move the interval to 1.

    Confounders on a solid line move the limit of the interval to 1, and those above it beyond. On a
    dashed line, the estimate itself becomes 1. A binary confounder has a solid line for each
    prevalence in the arm in which it is rarer: in the comparator for a ratio above 1, in the target
    below 1. Both axes are folded, so that stronger confounding is up and to the right.

    Parameters
    ----------
    points : TippingPoints
        Result of `riskset.cohort.tipping_points`, of a confounder of either kind.
    benchmarks : mapping of str to (float, float), optional
        Measured covariates as (difference, effect), such as `riskset.cohort.covariate_strengths`
        gives, with a normal confounder. Filled marks cause bias in the direction of the estimate,
        open ones in the other.
    biases : mapping of str to float, optional
        Lines of confounders that cause these biases (factors of the ratio), such as those of
        `riskset.cohort.bias_bounds`, with a normal confounder.
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
        If the interval contains 1 or has no known limit, so that there are no tipping points, or
        `benchmarks` or `biases` are given with a binary confounder.

    References
    ----------
    Lin, Psaty and Kronmal (1998), Biometrics 54, 948-963, doi:10.2307/2533848.
    D'Agostino McGowan (2022), Current Epidemiology Reports 9, 361-375,
    doi:10.1007/s40471-022-00308-6.

    Examples
    --------
    >>> import riskset as rs
    >>> points = rs.cohort.tipping_points(1.5, 1.2, 1.8, scale="risk", difference=[0.2, 0.5])
    >>> ax = rs.plot.tipping_points(points, benchmarks={"age": (0.3, 1.8)})
    """
    if not isinstance(points, TippingPoints):
        raise wrong_result("tipping_points", "riskset.cohort.tipping_points", points)
    if points.is_binary:
        for name, given in (("benchmarks", benchmarks), ("biases", biases)):
            if given:
                raise InputError(
                    f"`{name}` are for a normal confounder, but the tipping points are of a binary "
                    "one.",
                    hint="pass tipping points of a `difference`, or leave them out.",
                )
    observed = points.observed
    limit = observed.limit
    if not np.isfinite(limit) or limit in (0, 1):
        raise InputError(
            "the interval contains 1 or has no known limit, so that there are no tipping points.",
            hint="plot an estimate whose interval does not contain 1.",
        )
    if points.is_binary:
        return _draw_binary(points, ax, title, xlabel, YLABEL if ylabel is None else ylabel)
    strengths = [Strength(name, *map(float, one)) for name, one in (benchmarks or {}).items()]
    reach = np.abs(points.difference[np.isfinite(points.difference)]).max(initial=0.0)
    return draw_tipping(
        observed.ratio,
        limit,
        strengths,
        {str(name): float(bias) for name, bias in (biases or {}).items()},
        reach=float(reach),
        ax=ax,
        title=title,
        xlabel=XLABEL if xlabel is None else xlabel,
        ylabel=f"{YLABEL} {PER_SD}" if ylabel is None else ylabel,
    )


@styled
def draw_tipping(
    ratio: float,
    limit: float,
    strengths: Sequence[Strength],
    biases: Mapping[str, float],
    *,
    reach: float = 0.5,
    ax: Axes | None = None,
    title: str | None = None,
    xlabel: str = XLABEL,
    ylabel: str = f"{YLABEL} {PER_SD}",
    words: tuple[str, str, str, str] = WORDS,
) -> Axes:
    """Tipping points of a normal confounder, with measured covariates and other biases.

    A limit of 1, or one that is not known, has no line. `words` name the lines of limit and
    estimate, and covariates that cause bias in the direction of the estimate and in the other.
    """
    axes = canvas(ax, 7.0, 5.2)
    folded = [(abs(s.difference), float(np.exp(abs(np.log(s.effect))))) for s in strengths]
    right = 1.15 * max([reach, 0.5, *(x for x, _ in folded)])
    top = max([MOST, *(1.1 * y for _, y in folded if np.isfinite(y))])
    _set_axes(axes, right, top)
    x = np.linspace(right / POINTS, right, POINTS)
    lines: list[tuple[float, str, str, Any]] = [
        (limit, words[0], COLOURS[0], "-"),
        (ratio, words[1], COLOURS[0], DASHED),
    ]
    for k, (name, bias) in enumerate(biases.items()):
        lines.append((bias, short(name, 40), COLOURS[1 + k % (len(COLOURS) - 1)], DOTTED))
    handles = []
    for bias, label, colour, dashes in lines:
        size = abs(float(np.log(bias))) if bias > 0 else np.inf
        if not 0 < size < np.inf:
            continue
        y = np.exp(np.minimum(size / x, LARGEST_LOG))
        (line,) = axes.plot(x, y, color=colour, linewidth=1.6, linestyle=dashes, label=label)
        handles.append(line)
    handles += _draw_benchmarks(axes, strengths, folded, 1.0 if ratio >= 1 else -1.0, words[2:])
    _legend(axes, handles)
    frame(axes, title, xlabel, ylabel)
    return axes


def _set_axes(axes: Axes, right: float, top: float) -> None:
    axes.set_yscale("log")
    axes.set_xlim(0, right)
    axes.set_ylim(1, top)
    set_log_ticks(axes.yaxis, 1, top)


def _legend(axes: Axes, handles: Sequence[Line2D]) -> None:
    axes.legend(
        handles=handles, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.12),
        ncols=2, borderaxespad=0.2,
    )  # fmt: skip


def _draw_benchmarks(
    axes: Axes,
    strengths: Sequence[Strength],
    folded: Sequence[tuple[float, float]],
    sign: float,
    labels: Sequence[str],
) -> list[Line2D]:
    """Marks of measured covariates; those that cause most bias have names."""
    handles = []
    biases = [s.difference * float(np.log(s.effect)) for s in strengths]
    named = set(np.argsort(-np.abs(biases), kind="stable")[:MOST_NAMED].tolist())
    for is_alike, label in zip((True, False), labels, strict=True):
        own = [k for k, bias in enumerate(biases) if (sign * bias >= 0) == is_alike]
        if not own:
            continue
        style: dict[str, Any] = {
            "marker": "o",
            "markersize": 5.5,
            "linestyle": "none",
            "markeredgecolor": ACCENT,
            "markerfacecolor": ACCENT if is_alike else "white",
            "zorder": 3,
        }
        axes.plot([folded[k][0] for k in own], [folded[k][1] for k in own], **style)
        handles.append(Line2D([], [], **style, label=label))
        for k in named.intersection(own):
            name = short(strengths[k].name)
            shift, side = _free_place(axes, name, folded[k])
            text = {"color": INK, "fontsize": NAME_SIZE, "ha": side, "zorder": 4}
            write_at(axes, name, folded[k], shift, "data", **text)
    return handles


def _free_place(axes: Axes, name: str, at: tuple[float, float]) -> tuple[tuple[float, float], str]:
    """Where a name beside a mark crosses no line: points from the mark, and its side that is there.

    If it crosses one everywhere, it stands to the right.
    """
    per_point = axes.figure.dpi / 72
    x, y = axes.transData.transform(at) / per_point
    width, height = width_of(name) * NAME_SIZE / STYLE["font.size"], NAME_SIZE
    below = 0.4 * NAME_SIZE  # letters such as p, and a gap
    floor = axes.transAxes.transform((0, 0))[1] / per_point
    lines = [line for line in axes.lines if line.get_linestyle() != "None"]
    points = [axes.transData.transform(line.get_xydata()) / per_point for line in lines]
    for (right, up), side in PLACES:
        left, bottom = x + right - (width if side == "right" else 0.0), y + up
        is_crossed = any(
            np.any(
                (left <= own[:, 0]) & (own[:, 0] <= left + width)
                & (bottom - below <= own[:, 1]) & (own[:, 1] <= bottom + height)
            )
            for own in points
        )  # fmt: skip
        if not is_crossed and bottom > floor:
            return (right, up), side
    return PLACES[0]


def _draw_binary(
    points: TippingPoints, ax: Axes | None, title: str | None, xlabel: str | None, ylabel: str
) -> Axes:
    """A line for each prevalence in the arm in which the confounder is rarer."""
    axes = canvas(ax, 7.0, 5.2)
    is_above = points.observed.ratio >= 1
    rarer, other = ("comparator", "target") if is_above else ("target", "comparator")
    column = getattr(points, f"{rarer}_prevalence")
    x = np.linspace(0, 1, POINTS)
    _set_axes(axes, 1.0, MOST)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{100 * v:g} %"))
    handles = []
    for k, level in enumerate(np.unique(column[np.isfinite(column)]).tolist()):
        colour = COLOURS[k % len(COLOURS)]
        for bias, dashes in ((points.observed.limit, "-"), (points.observed.ratio, DASHED)):
            y = _effects(x, level, bias if is_above else 1 / bias)
            y = np.where(y >= 1, y, np.nan)
            axes.plot(x, y, color=colour, linewidth=1.6, linestyle=dashes)
        label = f"{100 * level:g} % in the {rarer}"
        handles.append(Line2D([], [], color=colour, label=label))
    handles += [
        Line2D([], [], color=QUIET, linestyle=style, label=label)  # type: ignore[arg-type]
        for style, label in (("-", WORDS[0]), (DASHED, WORDS[1]))
    ]
    _legend(axes, handles)
    default = f"prevalence of the confounder in the {other}"
    frame(axes, title, default if xlabel is None else xlabel, ylabel)
    return axes


def _effects(prevalence: Rows, rarer: float, bias: float) -> Rows:
    """Effects of confounders that are more common in one arm than `rarer` in the other."""
    nothing, level = np.full(prevalence.size, np.nan), np.full(prevalence.size, rarer)
    return solved("effect", ConfounderValues(prevalence, level, nothing, nothing), bias)
