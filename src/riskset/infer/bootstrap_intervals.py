"""Intervals made of estimates in resamples: percentile, basic, normal and BCa.

References
----------
Efron and Tibshirani (1993), An Introduction to the Bootstrap, Chapman & Hall, chapters 13 and 14.
DiCiccio and Efron (1996), Statistical Science 11, 189-228, doi:10.1214/ss/1032280214.
Davison and Hinkley (1997), Bootstrap Methods and their Application, Cambridge, chapter 5.
"""

from typing import Literal, NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from riskset._types import Features
from riskset.infer.wald import normal_quantile

__all__ = [
    "BootstrapInterval",
    "BootstrapIntervalType",
    "bca_levels",
    "interval_ends",
    "least_replicates",
    "order_quantile",
]

BootstrapIntervalType = Literal["percentile", "basic", "bca", "normal"]


class BootstrapInterval(NamedTuple):
    """An interval, NaN if it is not defined.

    `is_extreme` says that an end lies beyond all replicates, and that the outermost stands for it.
    """

    lower: float
    upper: float
    is_extreme: bool


UNDEFINED = BootstrapInterval(float("nan"), float("nan"), False)


def least_replicates(level: float) -> int:
    r"""Least number B of replicates with :math:`(B + 1) (1 - level) / 2 \ge 1`.

    With fewer the ends of a percentile interval would lie beyond all replicates. 39 for 95 %, 199
    for 99 %.
    """
    normal_quantile(level)
    return max(2, int(np.ceil(2.0 / (1.0 - level) * (1.0 - 1e-9))) - 1)


def order_quantile(ordered: Features, share: float, side: Literal[-1, 1]) -> float:
    """Quantile of sorted replicates (B,): the order statistic :math:`x_{((B + 1) p)}`.

    The `share` is p. It is linear in between; between infinities of both signs it is that of
    `side`, and beyond the outermost replicate it is that one.
    """
    n = ordered.size
    place = (n + 1) * share
    k = round(place)
    if abs(place - k) > 1e-9 * n and 1 <= place <= n:
        k = int(np.floor(place))
        low, high = float(ordered[k - 1]), float(ordered[k])
        if low == -np.inf and high == np.inf:
            return side * np.inf
        return low if low == high else (1 - (place - k)) * low + (place - k) * high
    return float(ordered[min(max(k, 1), n) - 1])


def interval_ends(
    kind: BootstrapIntervalType,
    estimate: float,
    replicates: Features,
    level: float = 0.95,
    *,
    acceleration: float = 0.0,
) -> BootstrapInterval:
    r"""An interval of one parameter.

    With :math:`q_p` the order statistic :math:`(B + 1) p` of the replicates, :math:`\hat\theta` the
    estimate and :math:`\alpha = (1 - level) / 2`:

    * percentile: :math:`(q_\alpha, q_{1 - \alpha})`;
    * basic: :math:`(2 \hat\theta - q_{1 - \alpha}, 2 \hat\theta - q_\alpha)`;
    * normal: :math:`\hat\theta - b \pm z_{1 - \alpha} s`, with b the mean of the replicates less
      the estimate and s their standard deviation;
    * bca: percentiles at the levels of `bca_levels`.

    Replicates (B,) that are NaN are left out; infinite ones count. The interval is NaN if fewer are
    left than `least_replicates`; a basic one if the estimate is infinite; a normal one if
    replicates are; and a BCa one if the estimate is infinite or beyond all replicates. Basic and
    normal are as in Davison and Hinkley, equations 5.5 and 5.6, and R's ``boot.ci``.
    """
    ordered = np.sort(replicates[~np.isnan(replicates)])
    if ordered.size < least_replicates(level) or np.isnan(estimate):
        return UNDEFINED
    if kind == "normal":
        if not (np.isfinite(estimate) and np.isfinite(ordered).all()):
            return UNDEFINED
        centre = 2 * estimate - ordered.mean()
        half = normal_quantile(level) * ordered.std(ddof=1)
        return BootstrapInterval(float(centre - half), float(centre + half), False)
    low, high = (1 - level) / 2, (1 + level) / 2
    if kind == "bca":
        low, high = bca_levels(estimate, ordered, level, acceleration)
        if not (np.isfinite(estimate) and np.isfinite(low) and np.isfinite(high)):
            return UNDEFINED
    lower, upper = order_quantile(ordered, low, -1), order_quantile(ordered, high, 1)
    if kind == "basic":
        if not np.isfinite(estimate):
            return UNDEFINED
        return BootstrapInterval(2 * estimate - upper, 2 * estimate - lower, False)
    place = (ordered.size + 1) * np.array([low, high])
    beyond = (place < 1 - 1e-9 * ordered.size) | (place > ordered.size * (1 + 1e-9))
    return BootstrapInterval(lower, upper, bool(beyond.any()))


def bca_levels(
    estimate: float, replicates: Features, level: float, acceleration: float
) -> tuple[float, float]:
    r"""Levels at which a bias-corrected and accelerated interval takes its percentiles.

    .. math:: \Phi\left(z_0 + \frac{z_0 + z}{1 - a (z_0 + z)}\right), \qquad
        z_0 = \Phi^{-1}\left(\frac{\#\{\theta^* < \hat\theta\}
        + \tfrac{1}{2} \#\{\theta^* = \hat\theta\}}{B}\right)

    with z the lower and the upper normal quantile. Replicates that equal the estimate, as zeros of
    a lasso do, count half. NaN if all replicates lie on one side of the estimate. Efron and
    Tibshirani (1993), equations 14.10 and 14.14; DiCiccio and Efron (1996), section 2.
    """
    below = np.mean(replicates < estimate) + 0.5 * np.mean(replicates == estimate)
    z0, z = float(ndtri(below)), normal_quantile(level)
    if not np.isfinite(z0):
        return float("nan"), float("nan")
    out = []
    for end in (-z, z):
        room = 1 - acceleration * (z0 + end)
        out.append(float(ndtr(z0 + (z0 + end) / room)) if room > 0 else float("nan"))
    return out[0], out[1]
