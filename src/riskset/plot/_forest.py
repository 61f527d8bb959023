"""Forest plot: ratios with their intervals, and the numbers beside them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes

from riskset._errors import InputError
from riskset.cohort.effects.effect_scale import effect_name
from riskset.cohort.effects.estimate import Estimate
from riskset.estimators._inference import HazardModel
from riskset.estimators._interval import ConfidenceInterval
from riskset.estimators.frailty import CoxFrailty
from riskset.imputation.pooling import PooledEstimates
from riskset.infer.wald import exponentials
from riskset.plot._canvas import canvas, styled
from riskset.plot._numbers import interval_words
from riskset.plot._style import ACCENT, COLOURS, INK, frame, set_ratio_axis, short, width_of

__all__ = ["ForestLine", "draw_forest", "forest"]

MAX_LABEL = 44
"""Longest label, characters."""
ROW_HEIGHT = 0.25
"""Of a line, inches."""
GAP = 14.0
"""Between two columns of numbers, points."""
WIDEST = 64.0
"""Intervals are cut, and get an arrow, beyond so many times the outermost estimate."""


@dataclass(frozen=True)
class ForestLine:
    """A ratio with its limits (NaN if there is none), and cells that stand beside its label.

    `weight` decides the size of the mark, in any unit; `instead` is written for a missing ratio.
    """

    label: str
    ratio: float
    lower: float
    upper: float
    weight: float = float("nan")
    cells: tuple[str, ...] = ()
    is_emphasised: bool = False
    instead: str = "not estimated"

    @property
    def is_known(self) -> bool:
        """Whether the ratio has a place on the axis."""
        return bool(np.isfinite(self.ratio) and self.ratio > 0)

    @property
    def words(self) -> str:
        """The numbers."""
        if np.isnan(self.ratio):
            return self.instead
        return interval_words(self.ratio, self.lower, self.upper)


@styled
def forest(
    result: HazardModel | CoxFrailty | PooledEstimates | Estimate | Mapping[str, Estimate],
    *,
    interval: ConfidenceInterval | None = None,
    level: float = 0.95,
    emphasised: Sequence[str] = (),
    target: str = "target",
    comparator: str = "comparator",
    ax: Axes | None = None,
    title: str | None = None,
    xlabel: str | None = None,
) -> Axes:
    """Plot ratios with their intervals on a logarithmic axis, and print the numbers beside.

    Estimates of cohort studies also have the number of events and of people of each arm. The area
    of a mark is proportional to the information, 1 / se^2.

    Parameters
    ----------
    result : fitted model, PooledEstimates, Estimate, or mapping of str to Estimate
        A `Cox` or `FineGray` model, or the result of `riskset.pool`, has one line per covariate.
        The result of `riskset.cohort.fit_outcome` has one line, and another with its other reading
        if it has one. A mapping has the labels as keys.
    interval : ConfidenceInterval, optional
        Of the model; only its covariates are drawn. Default: Wald intervals, robust ones where
        `summary` has them, or the intervals of pooled estimates.
    level : float
        Confidence level of the default interval of a model or of pooled estimates.
    emphasised : sequence of str
        Labels of lines in bold, or names of covariates.
    target, comparator : str
        Names of the arms, above the columns of their numbers.
    ax : matplotlib Axes, optional
        Default: new axes, which a notebook shows. Labels and numbers stand left and right of the
        axes, where a figure with ``layout="constrained"`` makes room for them.
    title, xlabel : str
        Texts. The default of `xlabel` is the name of the ratio, such as "odds ratio".

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    InputError
        If there is nothing to draw, or an emphasised label is unknown.

    Examples
    --------
    >>> import riskset as rs
    >>> cohort = rs.simulate_cox(500, 3, 0.5, seed=1)
    >>> model = rs.Cox().fit(cohort.X, rs.Surv(cohort.time, cohort.event))
    >>> ax = rs.plot.forest(model)
    """
    name = "hazard ratio"
    if isinstance(result, HazardModel | CoxFrailty):
        lines, level = _of_model(result, interval, level)
        texts = result._columns.texts(result.covariates_)
        labels = dict(zip(result.covariates_, texts, strict=True))
        emphasised = [labels.get(name, name) for name in emphasised]
        heads: tuple[str, ...] = ()
    elif isinstance(result, PooledEstimates):
        interval = interval or result.confidence_interval(level=level)
        lines = _of_coefficients(dict(zip(result.covariates_, result.coef_, strict=True)), interval)
        heads, level = (), interval.level
    else:
        lines, level, name = _of_estimates(result)
        heads = tuple(f"{short(arm, 24)}\nevents / n" for arm in (target, comparator))
    known = [line.label for line in lines]
    for label in emphasised:
        if label not in known:
            raise InputError.unknown_name("line", label, known)
    lines = [_emphasise(line) if line.label in emphasised else line for line in lines]
    xlabel = name if xlabel is None else xlabel
    return draw_forest(lines, heads, level=level, ax=ax, title=title, xlabel=xlabel)


def _of_model(
    model: HazardModel | CoxFrailty, interval: ConfidenceInterval | None, level: float
) -> tuple[list[ForestLine], float]:
    if interval is None:
        is_robust = isinstance(model, HazardModel) and model.is_robust_
        method = "robust" if is_robust else "wald"
        interval = model.confidence_interval(method=method, level=level)
    texts = model._columns.texts(model.covariates_)
    labels = dict(zip(model.covariates_, texts, strict=True))
    coef = dict(zip(model.covariates_, model.coef_, strict=True))
    return _of_coefficients(coef, interval, labels), interval.level


def _of_coefficients(
    coefficients: Mapping[str, float],
    interval: ConfidenceInterval,
    labels: Mapping[str, str] | None = None,
) -> list[ForestLine]:
    """A line for each covariate of an interval."""
    lines = []
    for name, (lower, upper) in interval.bounds.items():
        coef = float(coefficients[name])
        if np.isnan([lower, upper]).all():
            coef = float("nan")
        width = upper - lower
        weight = 1 / width**2 if np.isfinite(width) and width > 0 else float("nan")
        with np.errstate(over="ignore"):
            ratio, low, high = (float(exponentials(v)) for v in (coef, lower, upper))
        label = name if labels is None else labels[name]
        lines.append(ForestLine(short(label, MAX_LABEL), ratio, low, high, weight))
    return lines


def _of_estimates(result: object) -> tuple[list[ForestLine], float, str]:
    if isinstance(result, Estimate):
        other = result.sensitivity
        result = {result.reading: result} | ({} if other is None else {other.reading: other})
    if not isinstance(result, Mapping) or not all(
        isinstance(one, Estimate) for one in result.values()
    ):
        raise InputError(
            "riskset.plot.forest shows a fitted model, pooled estimates, or estimates of a cohort "
            f"study, but it was given {type(result).__name__}.",
            hint="pass a fitted Cox or FineGray model, or the result of riskset.pool or "
            "riskset.cohort.fit_outcome.",
        )
    lines, levels = [], set()
    for label, one in result.items():
        arms = (one.target, one.comparator)
        levels.add(one.level)
        lines.append(
            ForestLine(
                short(str(label), MAX_LABEL),
                one.hr,
                one.hr_lower,
                one.hr_upper,
                1 / one.se**2 if np.isfinite(one.se) and one.se > 0 else float("nan"),
                tuple(f"{arm.outcomes:,} / {arm.exposures:,}" for arm in arms),
                instead=one.status.replace("_", " "),
            )
        )
    if len(levels) > 1:
        raise InputError(
            f"the intervals have different levels: {', '.join(f'{x:g}' for x in sorted(levels))}.",
            hint="draw estimates of one level in a plot.",
        )
    name = effect_name(one.model for one in result.values()) if result else "hazard ratio"
    return lines, levels.pop() if levels else 0.95, name


def _emphasise(line: ForestLine) -> ForestLine:
    return ForestLine(**{**line.__dict__, "is_emphasised": True})


@styled
def draw_forest(
    lines: Sequence[ForestLine],
    heads: Sequence[str] = (),
    *,
    level: float = 0.95,
    ax: Axes | None = None,
    title: str | None = None,
    xlabel: str = "hazard ratio",
    favours: tuple[str, str] | None = None,
    head: str | None = None,
) -> Axes:
    """A line for each ratio from top to bottom; `heads` stand above the cells.

    `favours` are words for ratios below and above 1, and `head` stands above the numbers.
    """
    if not lines:
        raise InputError("there are no ratios to draw.", hint="pass at least one estimate.")
    left = max(width_of(line.label, is_bold=line.is_emphasised) for line in lines)
    cells = [_width(head, k, lines) for k, head in enumerate(heads)]
    right = max(width_of(line.words, is_bold=line.is_emphasised) for line in lines)
    head = f"{xlabel} ({level:.0%} interval)" if head is None else head
    right = max(right, width_of(head, is_bold=True))
    inches = (left + sum(cells) + right + GAP * (3 + len(cells))) / 72
    axes = canvas(ax, 3.4 + inches, 1.25 + ROW_HEIGHT * len(lines))
    low, high = _ends(lines)
    set_ratio_axis(axes, low, high)
    axes.set_ylim(len(lines) - 0.4, -0.6)
    axes.set_yticks([])
    best = max([line.weight for line in lines if np.isfinite(line.weight)], default=1.0)
    for y, line in enumerate(lines):
        _mark(axes, y, line, best)
        _write_line(axes, y, line, left, cells)
    _write_heads(axes, heads, head, cells)
    frame(axes, None, xlabel)
    axes.spines["left"].set_visible(False)
    if title:
        axes.set_title(title, pad=32)
    if favours is not None:
        axes.set_xlabel(f"← {favours[0]}      {xlabel}      {favours[1]} →")
    return axes


def _width(head: str, k: int, lines: Sequence[ForestLine]) -> float:
    """Width of a column of cells, points."""
    of_head = [width_of(words, is_bold=True) for words in head.split("\n")]
    of_cells = [width_of(line.cells[k], is_bold=line.is_emphasised) for line in lines]
    return max([*of_head, *of_cells])


def _ends(lines: Sequence[ForestLine]) -> tuple[float, float]:
    """Ends of the axis: those of the intervals and 1, but no interval fills the whole axis."""
    ratios = [line.ratio for line in lines if line.is_known] or [1.0]
    least, most = min([1.0, *ratios]), max([1.0, *ratios])
    limits = [v for line in lines for v in (line.lower, line.upper) if np.isfinite(v) and v > 0]
    low = max(min([least, *limits]), least / WIDEST)
    high = min(max([most, *limits]), most * WIDEST)
    pad = max((high / low) ** 0.05, 1.05)
    return low / pad, high * pad


def _mark(axes: Axes, y: int, line: ForestLine, best: float) -> None:
    if np.isnan(line.ratio):
        return
    colour = ACCENT if line.is_emphasised else COLOURS[0]
    low, high = axes.get_xlim()
    lower = line.lower if line.lower > 0 else 0.0
    ends = max(lower, low), min(line.upper, high)
    if not np.isnan([line.lower, line.upper]).any():
        axes.plot(ends, [y, y], color=colour, linewidth=1.4, solid_capstyle="butt", zorder=3)
        for end, is_cut, shape in zip(
            ends, (line.lower < low, line.upper > high), "<>", strict=True
        ):
            if is_cut:
                axes.plot(end, y, shape, color=colour, markersize=5, clip_on=False, zorder=4)
    if not line.is_known:
        return
    share = line.weight / best if np.isfinite(line.weight) else 0.0
    size = max(9.0 * float(np.sqrt(share)), 4.0)
    axes.plot(line.ratio, y, "s", color=colour, markersize=size, markeredgewidth=0, zorder=4)


def _write_line(axes: Axes, y: int, line: ForestLine, left: float, cells: Sequence[float]) -> None:
    weight = "bold" if line.is_emphasised else "normal"
    place = ("axes fraction", "data")
    start = -(GAP + sum(cells) + GAP * len(cells) + left)
    _write(axes, line.label, (0, y), (start, 0), place, ha="left", fontweight=weight)
    end = -(GAP + sum(cells) + GAP * max(len(cells) - 1, 0))
    for words, width in zip(line.cells, cells, strict=True):
        end += width
        _write(axes, words, (0, y), (end, 0), place, ha="right", fontweight=weight)
        end += GAP
    _write(axes, line.words, (1, y), (GAP, 0), place, ha="left", fontweight=weight)


def _write_heads(axes: Axes, heads: Sequence[str], of_numbers: str, cells: Sequence[float]) -> None:
    place = ("axes fraction", "axes fraction")
    end = -(GAP + sum(cells) + GAP * max(len(cells) - 1, 0))
    for words, width in zip(heads, cells, strict=True):
        end += width
        _write(axes, words, (0, 1), (end, 6), place, ha="right", va="bottom", fontweight="bold")
        end += GAP
    _write(axes, of_numbers, (1, 1), (GAP, 6), place, ha="left", va="bottom", fontweight="bold")


def _write(
    axes: Axes,
    words: str,
    at: tuple[float, float],
    shift: tuple[float, float],
    place: tuple[str, str],
    **style: str,
) -> None:
    options = {"va": "center_baseline", "color": INK} | style
    axes.annotate(
        words,
        at,
        shift,
        xycoords=place,
        textcoords="offset points",
        annotation_clip=False,
        **options,  # type: ignore[arg-type]
    )
