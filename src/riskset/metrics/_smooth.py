"""Local straight lines through the nearest rows."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from riskset._types import Index, Rows
from riskset.metrics._sample import Sample

__all__ = ["LocalLines", "local_lines"]


class LocalLines(NamedTuple):
    """A smooth curve at some points (g,), and the numbers of rows around each, all and marked."""

    value: NDArray[np.float64]
    standard_error: NDArray[np.float64]
    n_near: Index
    n_happened: Index


def local_lines(
    points: NDArray[np.float64],
    x: Rows,
    response: Rows,
    happened: NDArray[np.bool_],
    sample: Sample,
    span: float,
) -> LocalLines:
    r"""Weighted least squares around each point.

    Row i weighs :math:`w_i (1 - |x_i - p|^3 / h^3)^3`, with h the distance from the point p within
    which rows have the share `span` of the weight. The standard error is the sandwich of the
    linear smoother, from the residuals of the line, added up in clusters.

    References
    ----------
    Cleveland (1979), Journal of the American Statistical Association 74, 829-836,
    doi:10.1080/01621459.1979.10481038.
    """
    order = np.argsort(x, kind="stable")
    sample, x, response = sample.rows(order), x[order], response[order]
    marked = np.append(0, np.cumsum(happened[order]))
    first, last, width = _windows(points, x, sample.weight, span)
    value, error = np.empty(points.size), np.empty(points.size)
    for g in range(points.size):
        near = slice(first[g], last[g])
        value[g], share, residual = _line(
            x[near] - points[g], response[near], sample.weight[near], width[g]
        )
        change = share * residual
        if sample.cluster is not None:
            change = np.bincount(sample.cluster[near], change).astype(np.float64)
        error[g] = np.sqrt(np.sum(change**2))
    return LocalLines(value, error, last - first, marked[last] - marked[first])


def _windows(
    points: NDArray[np.float64], x: Rows, weight: Rows, span: float
) -> tuple[Index, Index, NDArray[np.float64]]:
    """Rows first..last-1 of increasing x within the distance that holds the share of weight."""
    mass = np.append(0.0, np.cumsum(weight))
    wanted = span * mass[-1] * (1 - 1e-12)

    def within(h: NDArray[np.float64]) -> tuple[Index, Index]:
        return np.searchsorted(x, points - h, "left"), np.searchsorted(x, points + h, "right")

    low, high = np.zeros(points.size), np.full(points.size, x[-1] - x[0])
    # To the resolution of probabilities; a bound that holds enough rows is kept.
    for _ in range(52):
        middle = (low + high) / 2
        a, b = within(middle)
        enough = mass[b] - mass[a] >= wanted
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return *within(high), high


def _line(d: Rows, response: Rows, weight: Rows, width: float) -> tuple[float, Rows, Rows]:
    """Value of the line at distance 0, each row's share in it, and the residuals."""
    k = weight
    if width > 1e-14:
        # Products, as NumPy takes a power by logarithms.
        far = np.abs(d) / width
        near = (1 - far * far * far).clip(0.0)
        k = weight * (near * near * near)
    k = k / k.sum()
    centre = k @ d
    spread = k @ (d - centre) ** 2
    mean = k @ response
    # Rows at one distance determine a mean, but no slope.
    if not spread > 1e-12 * width**2:
        return float(mean), k, response - mean
    slope = (k * (d - centre)) @ response / spread
    share = k * (1 - centre * (d - centre) / spread)
    return float(share @ response), share, response - mean - slope * (d - centre)
