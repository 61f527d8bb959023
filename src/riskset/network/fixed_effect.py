r"""One effect for all sites: the maximum of the sum of their log likelihoods.

.. math:: \hat\beta = \arg\max_x \sum_j \ell_j(x), \qquad
    \left\{x: 2 \left(\max \sum_j \ell_j - \sum_j \ell_j(x)\right) \le \chi^2_{1, level}\right\}

The likelihood of a Cox model that is stratified by site is that sum, so nothing is lost if the
sites share whole profiles (Schuemie et al. 2022, doi:10.1177/09622802211060518).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.stats import chi2

from riskset.infer.wald import normal_quantile
from riskset.network.likelihood import SiteLikelihood

__all__ = ["FixedEffect", "fixed_effect"]

LIMIT = 30.0
"""Log ratios beyond this are infinite."""


@dataclass(frozen=True)
class FixedEffect:
    """An estimate by the sum of log likelihoods, on the log scale.

    It is infinite where the sum rises without end, and so are limits of its interval. `se` is the
    length of the interval divided by that of a standard normal distribution. `p` is that of the
    likelihood-ratio test of no effect. `top` is the maximum or supremum of the sum. Where the sum
    is flat, the estimate is NaN, and the interval has no end.
    """

    log_hr: float
    lower: float
    upper: float
    se: float
    p: float
    top: float


def fixed_effect(likelihoods: Sequence[SiteLikelihood], level: float = 0.95) -> FixedEffect:
    """Maximise the sum, and find where it has fallen by half the chi-square quantile."""

    def value(x: float) -> float:
        return float(sum(float(one(x)) for one in likelihoods))

    def slope(x: float) -> float:
        return float(sum(float(one.derivative(x)) for one in likelihoods))

    low, high = -LIMIT, LIMIT
    z = normal_quantile(level)
    if all(np.ptp(one.values) == 0 and one.top == one.values[0] for one in likelihoods):
        return FixedEffect(np.nan, -np.inf, np.inf, np.inf, 1.0, value(0.0))
    if slope(low) <= 0 or slope(high) >= 0:
        best = -np.inf if slope(low) <= 0 else np.inf
        top = float(sum(one.top for one in likelihoods))
    else:
        best = float(brentq(slope, low, high, xtol=1e-13, rtol=1e-14))
        top = value(best)
    target = top - 0.5 * z**2

    def end(side: int) -> float:
        if best == side * np.inf:
            return best
        start = best if np.isfinite(best) else -side * LIMIT
        if value(side * LIMIT) >= target:
            return side * np.inf
        if value(start) <= target:  # flat up to here
            return start
        return float(brentq(lambda x: value(x) - target, start, side * LIMIT, xtol=1e-12))

    lower, upper = end(-1), end(1)
    ratio = max(2 * (top - value(0.0)), 0.0)
    return FixedEffect(best, lower, upper, (upper - lower) / (2 * z), float(chi2.sf(ratio, 1)), top)
