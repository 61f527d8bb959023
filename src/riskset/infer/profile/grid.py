r"""The profile likelihood on a grid: at given values, or at as many as linear interpolation needs.

Between neighbours a < b a concave profile lies above its chord and below both tangents, which meet
at x*. So linear interpolation errs by no more than the height of that triangle,

.. math:: \left(\ell_p'(a) - \frac{\ell_p(b) - \ell_p(a)}{b - a}\right) (x^* - a)

and the grid is refined where this is too much.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from riskset._runtime import Runtime
from riskset._types import Features, Index
from riskset.infer.profile.curve import ProfileCurve, ProfilePoint

__all__ = ["ProfileGrid", "adaptive_grid", "fixed_grid"]

CHAIN = 16
"""Neighbours of a given grid that start each from the one before; chains are shared out."""
MIN_DISTANCE_SHARE = 0.1
"""A new point keeps this share of the distance from its neighbours."""
ROUNDING = 64 * np.finfo(np.float64).eps
"""Values of the profile are good to about this share of their size."""


class ProfileGrid(NamedTuple):
    """The profile at several values.

    Linear interpolation between neighbours errs by at most `error`, infinite with less than two
    points; `is_fine` says whether that is as little as requested.
    """

    points: list[ProfilePoint]
    error: float
    is_fine: bool = True


def fixed_grid(curve: ProfileCurve, values: Sequence[float]) -> ProfileGrid:
    """The profile at given values, in their order."""
    order = np.argsort(values, kind="stable")
    chains = [order[k : k + CHAIN] for k in range(0, order.size, CHAIN)]

    def follow(chain: Index, runtime: Runtime) -> list[ProfilePoint]:
        points, near = [], curve.maximum.coef
        for k in chain:
            points.append(curve.at(float(values[k]), near, runtime))
            near = points[-1].coef
        return points

    ordered = [point for chain in curve.source.share(follow, chains) for point in chain]
    given: list[ProfilePoint] = [ordered[k] for k in np.argsort(order)]
    return ProfileGrid(given, max((_gap(a, b)[0] for a, b in pairwise(ordered)), default=np.inf))


def adaptive_grid(
    curve: ProfileCurve, low: float, high: float, tolerance: float, most: int, *, share: float = 0.0
) -> ProfileGrid:
    """The profile between two values, so fine that linear interpolation errs by little.

    The error allowed is `tolerance` in the log likelihood, or the `share` of the fall below the
    maximum if that is more. There are at most `most` points: ascending, with both values, and with
    the estimate if it lies between.
    """
    top = curve.maximum
    points = _evaluated(curve, [(low, top.coef), (high, top.coef)])
    if low < top.at < high:
        points.insert(1, top)
    while True:
        gaps = [_gap(a, b) for a, b in pairwise(points)]
        falls = [top.value - max(a.value, b.value) for a, b in pairwise(points)]
        excess = [
            error / max(tolerance, share * fall)
            for (error, _), fall in zip(gaps, falls, strict=True)
        ]
        wide = [k for k in np.argsort(excess)[::-1].tolist() if excess[k] > 1]
        if not wide or len(points) >= most:
            return ProfileGrid(points, max(error for error, _ in gaps), not wide)
        worst = sorted(wide[: most - len(points)])
        fresh = _evaluated(curve, [(gaps[k][1], points[k].coef) for k in worst])
        points = sorted(points + fresh, key=lambda point: point.at)


def _evaluated(curve: ProfileCurve, wanted: Sequence[tuple[float, Features]]) -> list[ProfilePoint]:
    return curve.source.share(lambda item, runtime: curve.at(item[0], item[1], runtime), wanted)


def _gap(a: ProfilePoint, b: ProfilePoint) -> tuple[float, float]:
    """Largest error of the chord between two points, and where to look next."""
    width, rise = b.at - a.at, b.value - a.value
    slack = ROUNDING * max(abs(a.value), abs(b.value))
    fall = a.slope - b.slope
    if fall <= 0 or a.slope * width - rise <= slack or width <= 1e-12 * max(abs(a.at), abs(b.at)):
        return 0.0, a.at
    share = min(max((rise - b.slope * width) / (fall * width), 0.0), 1.0)
    error = max(a.slope * width - rise, 0.0) * share
    share = min(max(share, MIN_DISTANCE_SHARE), 1 - MIN_DISTANCE_SHARE)
    return (error if error > slack else 0.0), a.at + share * width
