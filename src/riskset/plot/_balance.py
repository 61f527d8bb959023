"""Plots of covariate balance: a love plot, and differences before against after."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes

from riskset._errors import InputError, counted
from riskset._types import Features, Matrix, is_count
from riskset.cohort.covariates.covariate_balance import Balance
from riskset.plot._canvas import canvas, styled, wrong_result
from riskset.plot._style import (
    ACCENT,
    COLOURS,
    DASHED,
    FAINT,
    INK,
    QUIET,
    AxisLabel,
    frame,
    in_two_lines,
    label_ends,
    short,
)

__all__ = ["Differences", "balance_scatter", "draw_balance_scatter", "draw_love_plot", "love_plot"]

MAX_NAME = 44
"""Longest line of the name of a covariate, characters."""
MANY = 2000
"""With more points, they become pixels in a PDF or SVG file."""
SMD = "standardised mean difference"


class Differences(NamedTuple):
    """Standardised mean differences of covariates (p,), and the threshold of balance."""

    names: Sequence[str]
    before: Features
    after: Features
    threshold: float

    @classmethod
    def of(cls, balance: object, plot: str) -> "Differences":
        """Of the result of `riskset.cohort.balance`, for one of the plots."""
        if not isinstance(balance, Balance):
            raise wrong_result(plot, "riskset.cohort.balance(X, adjustment)", balance)
        return cls(balance.names, balance.before.smd, balance.after.smd, balance.threshold)

    def known(self, is_needed: Sequence[str] = ("before",)) -> "Differences":
        """Covariates with a finite difference before adjustment (and after it)."""
        kept = np.logical_and.reduce([np.isfinite(getattr(self, side)) for side in is_needed])
        names = [name for name, keep in zip(self.names, kept, strict=True) if keep]
        if not names:
            raise InputError(
                f"no covariate has a known difference {' and '.join(is_needed)} adjustment.",
                hint="look at the status of the adjustment, and at the covariates.",
            )
        return Differences(names, self.before[kept], self.after[kept], self.threshold)


@styled
def love_plot(
    balance: Balance,
    *,
    n_covariates: int = 30,
    absolute: bool = True,
    ax: Axes | None = None,
    title: str | None = None,
) -> Axes:
    """Plot the balance of covariates before and after adjustment (a love plot).

    Each covariate has an open circle for its standardised mean difference before, and a disc for
    that after adjustment. Covariates are sorted by the difference before.

    Parameters
    ----------
    balance : Balance
        Result of `riskset.cohort.balance`.
    n_covariates : int
        Draw so many covariates: those with the largest differences, before or after. The axis says
        how many there are.
    absolute : bool
        Whether to draw sizes of differences, without their signs.
    ax : matplotlib Axes, optional
        Default: new axes, which a notebook shows.
    title : str, optional

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    InputError
        If no difference before adjustment is known.

    Examples
    --------
    >>> import riskset as rs
    >>> people = rs.cohort.Population([1, 1, 0, 0], [0.5, 0.5, 0.4, 0.4])
    >>> balance = rs.cohort.balance([[1.0], [3.0], [0.0], [2.0]], rs.cohort.weight(people))
    >>> ax = rs.plot.love_plot(balance)
    """
    if not is_count(n_covariates):
        raise InputError(
            f"`n_covariates` must be a whole number of at least 1, but it is {n_covariates!r}.",
            hint="30 fit a page.",
        )
    found = Differences.of(balance, "love_plot")
    return draw_love_plot(found, n_covariates, absolute=absolute, ax=ax, title=title)


@styled
def draw_love_plot(
    differences: Differences,
    n_covariates: int,
    *,
    of: int | None = None,
    absolute: bool = True,
    ax: Axes | None = None,
    title: str | None = None,
) -> Axes:
    """The love plot of some differences, which are the largest `of` so many covariates."""
    known = differences.known()
    size = np.fmax(np.abs(known.before), np.nan_to_num(np.abs(known.after), posinf=np.inf))
    chosen = np.argsort(-size, kind="stable")[:n_covariates]
    before, after = known.before[chosen], known.after[chosen]
    if absolute:
        before, after = np.abs(before), np.abs(after)
    order = np.argsort(-before, kind="stable")
    names = [in_two_lines(known.names[chosen[k]], MAX_NAME) for k in order]
    before, after = before[order], after[order]
    y = np.arange(len(names))
    widest = max(len(line) for name in names for line in name.split("\n"))
    height = 0.34 if any("\n" in name for name in names) else 0.2
    axes = canvas(ax, 4.6 + 0.075 * widest, 1.5 + height * len(names))
    _threshold_lines(axes.axvline, known.threshold, absolute=absolute)
    axes.hlines(y, before, after, color=FAINT, linewidth=0.9, zorder=1)
    dot: dict[str, Any] = {"linestyle": "none", "markersize": 5, "clip_on": False}
    axes.plot(before, y, marker="o", color=INK, markerfacecolor="white", label="before", **dot)
    axes.plot(after, y, marker="o", color=COLOURS[0], label="after adjustment", **dot)
    axes.set_yticks(y, names)
    axes.set_ylim(len(names) - 0.3, -0.7)
    if absolute:
        axes.set_xlim(left=0)
    n = len(differences.names) if of is None else of
    axes.legend(
        frameon=False, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2, borderaxespad=0.2
    )
    what = f"absolute {SMD}" if absolute else SMD
    some = "" if len(names) == n else f"\n({len(names)} of {counted(n, 'covariate')})"
    frame(axes, None, what + some)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", color=FAINT, linewidth=0.4, alpha=0.5)
    axes.set_axisbelow(True)
    if title:
        axes.set_title(title, pad=24)
    return axes


@styled
def balance_scatter(
    balance: Balance,
    *,
    n_labels: int = 5,
    ax: Axes | None = None,
    title: str | None = None,
) -> Axes:
    """Plot the absolute standardised differences of all covariates, after against before.

    Points below the diagonal became better balanced. A line marks the threshold of balance.

    Parameters
    ----------
    balance : Balance
        Result of `riskset.cohort.balance`.
    n_labels : int
        Write so many names: those of the largest differences after adjustment.
    ax : matplotlib Axes, optional
        Default: new axes, which a notebook shows.
    title : str, optional

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    InputError
        If no difference is known both before and after adjustment.

    Examples
    --------
    >>> import riskset as rs
    >>> people = rs.cohort.Population([1, 1, 0, 0], [0.5, 0.5, 0.4, 0.4])
    >>> balance = rs.cohort.balance([[1.0], [3.0], [0.0], [2.0]], rs.cohort.weight(people))
    >>> ax = rs.plot.balance_scatter(balance)
    """
    found = Differences.of(balance, "balance_scatter")
    return draw_balance_scatter(found, n_labels, ax=ax, title=title)


@styled
def draw_balance_scatter(
    differences: Differences,
    n_labels: int,
    *,
    others: Matrix | None = None,
    ax: Axes | None = None,
    title: str | None = None,
) -> Axes:
    """The scatter of some differences.

    `others` (k, 3) are places before and after with the numbers of covariates around them, which
    have small differences and no points of their own.
    """
    known = differences.known(("before", "after"))
    before, after = np.abs(known.before), np.abs(known.after)
    axes = canvas(ax, 6.4, 4.4)
    n_others = 0
    if others is not None and others.size:
        n_others = int(others[:, 2].sum())
        area = 40 * (others[:, 2] / others[:, 2].max()).clip(min=0.1)
        axes.scatter(others[:, 0], others[:, 1], area, FAINT, marker="h", linewidths=0, zorder=1)
    is_many = before.size > MANY
    axes.plot(
        before,
        after,
        "o",
        color=COLOURS[0],
        alpha=0.25 if is_many else 0.6,
        markersize=3 if is_many else 4,
        markeredgewidth=0,
        rasterized=is_many,
    )
    top = 1.08 * max(float(after.max()), 1.5 * known.threshold)
    right = 1.05 * max(float(before.max()), 1.5 * known.threshold)
    end = min(top, right)
    axes.plot([0, end], [0, end], color=QUIET, linewidth=0.9, linestyle=DASHED, zorder=0)
    axes.set_xlim(0, right)
    axes.set_ylim(0, top)
    _threshold_lines(axes.axhline, known.threshold, absolute=True)
    worst = np.argsort(-after, kind="stable")[:n_labels]
    axes.plot(before[worst], after[worst], "o", color=INK, markerfacecolor="none", markersize=6)
    labels = [
        AxisLabel(float(after[k]), short(known.names[k], 30), INK, False, x=float(before[k]))
        for k in worst
    ]
    label_ends(axes, labels, gap=0.05)
    frame(axes, title, f"absolute {SMD} before", f"absolute {SMD} after")
    n, above = after.size + n_others, int(np.count_nonzero(after > known.threshold))
    words = f"{counted(n, 'covariate')}, {above:,} above {known.threshold:g} after adjustment"
    axes.text(0.0, 1.01, words, transform=axes.transAxes, color=QUIET, ha="left", va="bottom")
    if title:
        axes.set_title(title, pad=20)
    return axes


def _threshold_lines(draw: object, threshold: float, *, absolute: bool) -> None:
    """The threshold, and on an axis with signs also 0 and the threshold below it."""
    for at in (threshold,) if absolute else (-threshold, threshold):
        draw(at, color=ACCENT, linewidth=0.9, linestyle=DASHED, zorder=0)  # type: ignore[operator]
    if not absolute:
        draw(0, color=QUIET, linewidth=0.8, zorder=0)  # type: ignore[operator]
