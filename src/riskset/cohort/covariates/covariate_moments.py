r"""Moments of every covariate under several weights, in one pass and without sampling.

With weights u that add to 1 and a covariate x,

.. math:: m = \sum u x, \quad \sum u (x - m)^2 = \sum u x^2 - m^2, \quad
    \sum u^2 (x - m)^2 = \sum u^2 x^2 - 2 m \sum u^2 x + m^2 \sum u^2

So four sums over the stored entries are enough, although the left sides run over everybody, and
eight lanes hold those of two arms before and after.

Whether a covariate varies at all must not hang on rounding. The sums are taken with the weights as
they are, and divided by their total afterwards. The total is added up in the same order, so that
the mean of a covariate that everybody has is exactly 1 and its spread exactly 0.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from riskset._runtime import Runtime
from riskset._types import Features, Index, Matrix, Rows
from riskset.data.design import Design

__all__ = ["Moments", "arm_moments", "counts_of_ones", "gap_of_means", "stratum_variances"]

LANES = 8
CHUNK = 256
"""Columns that a thread takes at a time."""

LOST_DIGITS = 1e-8
"""A spread this far below its raw sum of squares has lost too many digits."""

NO_SPREAD = 1e-13
"""A standard deviation this far below the values themselves is none."""

EQUAL_MEANS = 1e-12
"""Means that differ by less, relative to the larger one, are equal."""


@dataclass(frozen=True, eq=False)
class Moments:
    """Moments of every column (p,) under one set of weights u, which add to 1.

    `spread` is the sum of u (x - mean)^2, `squared` that of u^2 (x - mean)^2, and `concentration`
    that of u^2, which is 1 over the effective number of people.
    """

    mean: Features
    spread: Features
    squared: Features
    concentration: float

    @property
    def variance(self) -> Features:
        """Spread / (1 - concentration), the usual one if weights are equal; NaN for one row."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return self.spread / (1.0 - self.concentration)

    def pooled(self, other: "Moments", share: float) -> "Moments":
        """Moments of both groups together, this one with a share of the weight."""
        rest, gap = 1.0 - share, gap_of_means(self.mean, other.mean)
        # So two equal means give their own value, without rounding.
        mean = other.mean + share * gap
        spread = share * self.spread + rest * other.spread + share * rest * gap**2
        concentration = share**2 * self.concentration + rest**2 * other.concentration
        return Moments(mean, spread, np.full(mean.size, np.nan), concentration)


def gap_of_means(one: Features, other: Features) -> Features:
    """``one - other``, exactly 0 where the two differ only by rounding."""
    gap = one - other
    differ = np.abs(gap) > EQUAL_MEANS * np.maximum(np.abs(one), np.abs(other))
    return np.where(differ | np.isnan(gap), gap, 0.0)


def arm_moments(design: Design, weights: Matrix, runtime: Runtime) -> list[Moments]:
    """Moments of every column under up to 4 columns of weights (n, k), in the user's units.

    u is a column divided by its sum. Where all weights are 0 the moments are NaN.
    """
    k = weights.shape[1]
    lanes = np.zeros((design.n_rows, LANES))
    lanes[:, :k], lanes[:, k : 2 * k] = weights, weights**2
    first, second = _sums(design, lanes, runtime)
    totals = _totals(lanes)
    found = []
    for j in range(k):
        total = totals[j]
        if not total > 0:
            nothing = np.full(design.n_features, np.nan)
            found.append(Moments(nothing, nothing, nothing, 0.0))
            continue
        mean, b = first[:, j] / total, second[:, j] / total
        c, d = first[:, k + j] / total**2, second[:, k + j] / total**2
        concentration = totals[k + j] / total**2
        # Of zeros and ones the square of the mean need not be subtracted.
        spread = np.where(design.is_binary, mean * (1.0 - mean), b - mean**2)
        spread = np.maximum(spread, 0.0)
        squared = np.maximum(d - 2 * mean * c + mean**2 * concentration, 0.0)
        lost = (spread < LOST_DIGITS * b) & ~design.is_binary
        for column in np.flatnonzero(lost):
            _again(design, int(column), weights[:, j] / total, mean, spread, squared)
        none = np.sqrt(spread) <= NO_SPREAD * np.sqrt(b)
        spread[none] = squared[none] = 0.0
        scale = design.scale
        found.append(
            Moments(
                mean * scale + design.center,
                spread * scale**2,
                squared * scale**2,
                float(concentration),
            )
        )
    return found


def _totals(lanes: Matrix) -> Features:
    """Sums of the lanes by the kernel, as of a covariate that everybody has."""
    everybody = Design.from_columns({"": np.ones(lanes.shape[0])})
    return np.asarray(everybody.cross_lanes(lanes)[0])


def _again(
    design: Design, column: int, u: Rows, mean: Features, spread: Features, squared: Features
) -> None:
    """Spreads of one column about its mean, by two passes over its rows."""
    used = np.flatnonzero(u)
    x = design.stored(np.array([column]), used)[:, 0]
    u = u[used]
    # About a value of the column first, so that equal values give exactly 0.
    origin = x[0] if x.size else 0.0
    gap = float(u @ (x - origin))
    mean[column] = origin + gap
    away = (x - origin - gap) ** 2
    spread[column], squared[column] = float(u @ away), float(u**2 @ away)


def counts_of_ones(
    design: Design, groups: Sequence[NDArray[np.bool_]], runtime: Runtime
) -> list[Features]:
    """Number of ones of every binary column in groups of rows, NaN for other columns."""
    binary = np.flatnonzero(design.is_binary)
    lanes = np.zeros((design.n_rows, LANES))
    for j, group in enumerate(groups):
        lanes[:, j] = group
    sums = _sums_of_binary(design, lanes, binary, runtime)
    found = []
    for j in range(len(groups)):
        counts = np.full(design.n_features, np.nan)
        counts[binary] = sums[:, j]
        found.append(counts)
    return found


def stratum_variances(
    design: Design, stratum: Index, arm: NDArray[np.bool_], runtime: Runtime
) -> Iterator[tuple[int, Features]]:
    """Variance of the mean of every column in each stratum of one arm: (stratum, variance).

    Strata are 1, 2, ...; rows with other numbers are left out.
    """
    numbers = np.unique(stratum[arm & (stratum > 0)])
    for low in range(0, numbers.size, LANES):
        chosen = numbers[low : low + LANES]
        lanes = np.zeros((design.n_rows, LANES))
        for j, s in enumerate(chosen):
            lanes[:, j] = arm & (stratum == s)
        sizes = lanes.sum(axis=0)
        # Divided after the sums, which are whole numbers for zeros and ones.
        first, second = (sums / np.maximum(sizes, 1.0) for sums in _sums(design, lanes, runtime))
        for j in range(chosen.size):
            spread = np.maximum(second[:, j] - first[:, j] ** 2, 0.0)
            alone = sizes[j] < 2
            of_mean = np.zeros(spread.size) if alone else spread / (sizes[j] - 1)
            yield int(chosen[j]), of_mean * design.scale**2


def _sums(design: Design, lanes: Matrix, runtime: Runtime) -> tuple[Matrix, Matrix]:
    """Sums of stored columns, and of their squares, times each lane."""
    first = np.zeros((design.n_features, LANES))
    binary, others = np.flatnonzero(design.is_binary), np.flatnonzero(~design.is_binary)
    first[binary] = _sums_of_binary(design, lanes, binary, runtime)
    second = first.copy()  # a one is its own square
    if others.size:
        first[others] = design.cross_lanes(lanes, others)
        second[others] = design.cross_lanes(lanes, others, power=2)
    return first, second


def _sums_of_binary(design: Design, lanes: Matrix, columns: Index, runtime: Runtime) -> Matrix:
    """Sums of columns of zeros and ones times each lane, by threads."""
    out = np.zeros((columns.size, LANES))
    places = [slice(i, i + CHUNK) for i in range(0, columns.size, CHUNK)]
    parts = runtime.map(lambda at: design.cross_lanes(lanes, columns[at]), places)
    for at, part in zip(places, parts, strict=True):
        out[at] = part
    return out
