r"""Pooling of estimates and standard errors: the normal approximations that stand beside profiles.

With estimates :math:`b_j`, variances :math:`v_j` and :math:`w_j = 1 / (v_j + \tau^2)`,

.. math:: \hat\mu = \sum w_j b_j / \sum w_j, \quad
    Q = \sum \frac{(b_j - \hat\mu_0)^2}{v_j}, \quad
    I^2 = \max\left(0, \frac{Q - (k - 1)}{Q}\right)

where :math:`\hat\mu_0` is the estimate with :math:`\tau = 0`. Sites without an outcome in one arm
have no such estimate, so they are left out: that is what these methods miss.

References
----------
DerSimonian and Laird (1986), Controlled Clinical Trials 7, 177-188,
doi:10.1016/0197-2456(86)90046-2. Higgins and Thompson (2002), Statistics in Medicine 21, 1539-1558,
doi:10.1002/sim.1186. Hartung and Knapp (2001), Statistics in Medicine 20, 3875-3889,
doi:10.1002/sim.1009. Viechtbauer (2005), Journal of Educational and Behavioral Statistics 30,
261-293, doi:10.3102/10769986030003261. Higgins, Thompson and Spiegelhalter (2009), Journal of the
Royal Statistical Society A 172, 137-159, doi:10.1111/j.1467-985X.2008.00552.x.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.stats import chi2, norm, t

from riskset._types import Rows

__all__ = ["NormalHeterogeneity", "NormalPool", "heterogeneity_of", "pooled_normal"]

NONE = float("nan")
GRID = 400
"""Places at which the score of tau^2 is looked at for changes of its sign."""


@dataclass(frozen=True)
class NormalHeterogeneity:
    """How much the estimates differ: `q` with its `p`, and `i2` with its 95 % limits.

    `tau_dl` and `tau_reml` are standard deviations of the effects by DerSimonian and Laird, and by
    restricted maximum likelihood. With one site all are NaN.
    """

    q: float
    df: int
    p: float
    i2: float
    i2_lower: float
    i2_upper: float
    tau_dl: float
    tau_reml: float


@dataclass(frozen=True)
class NormalPool:
    """A pooled estimate on the log scale, with its interval and the prediction interval.

    The limits of a prediction (Higgins, Thompson and Spiegelhalter 2009) need three sites.
    """

    log_hr: float
    lower: float
    upper: float
    se: float
    p: float
    tau: float
    predicted_lower: float = NONE
    predicted_upper: float = NONE


def pooled_normal(
    b: Rows, se: Rows, tau: float = 0.0, *, hartung_knapp: bool = False, level: float = 0.95
) -> NormalPool:
    r"""Pool estimates (k,) with standard errors (k,) and a standard deviation of the effects.

    With `hartung_knapp` the variance is :math:`\sum w_j (b_j - \hat\mu)^2 / ((k - 1) \sum w_j)`,
    and the interval that of a t distribution with k - 1 degrees of freedom.
    """
    k = b.size
    w = 1 / (se**2 + tau**2)
    mean = float(w @ b / w.sum())
    own = float(np.sqrt(1 / w.sum()))
    quantile, tail = float(norm.ppf(0.5 + level / 2)), norm.sf
    if hartung_knapp:
        if k < 2:
            return NormalPool(mean, NONE, NONE, NONE, NONE, tau)
        own = float(np.sqrt(w @ (b - mean) ** 2 / (k - 1) / w.sum()))
        quantile, tail = float(t.ppf(0.5 + level / 2, k - 1)), t(k - 1).sf
    p = 2 * float(tail(abs(mean) / own)) if own > 0 else NONE
    reach = NONE
    if k >= 3:
        reach = float(t.ppf(0.5 + level / 2, k - 2)) * float(np.hypot(tau, own))
    ends = mean - quantile * own, mean + quantile * own
    return NormalPool(mean, *ends, own, p, tau, mean - reach, mean + reach)


def heterogeneity_of(b: Rows, se: Rows) -> NormalHeterogeneity:
    """Q, I2 and the standard deviation of the effects."""
    k = b.size
    if k < 2:
        return NormalHeterogeneity(NONE, 0, NONE, NONE, NONE, NONE, NONE, NONE)
    w = 1 / se**2
    mean = w @ b / w.sum()
    q, df = float(w @ (b - mean) ** 2), k - 1
    spread = float(w.sum() - w @ w / w.sum())
    tau2 = max(0.0, (q - df) / spread)
    lower, upper = (max(0.0, 1 - 1 / h**2) for h in _h_limits(q, k))
    return NormalHeterogeneity(
        q,
        df,
        float(chi2.sf(q, df)),
        max(0.0, (q - df) / q) if q > 0 else 0.0,
        lower,
        upper,
        float(np.sqrt(tau2)),
        float(np.sqrt(_reml(b, se**2))),
    )


def _h_limits(q: float, k: int) -> tuple[float, float]:
    """Limits of H, whose square is Q / (k - 1), by Higgins and Thompson's test-based method."""
    if q <= 0:
        return 1.0, 1.0
    log_h = 0.5 * np.log(q / (k - 1))
    if q > k:
        spread = 0.5 * (np.log(q) - np.log(k - 1)) / (np.sqrt(2 * q) - np.sqrt(2 * k - 3))
    elif k > 2:
        spread = np.sqrt(1 / (2 * (k - 2)) * (1 - 1 / (3 * (k - 2) ** 2)))
    else:
        return 1.0, float("inf")
    z = float(norm.ppf(0.975))
    return tuple(max(1.0, float(np.exp(log_h + s * z * spread))) for s in (-1, 1))  # type: ignore[return-value]


def _reml(b: Rows, v: Rows) -> float:
    """The variance of the effects that maximises the restricted likelihood: a root, or 0."""

    def at(square: float) -> tuple[float, float]:
        """The restricted log likelihood, and twice its derivative."""
        w = 1 / (v + square)
        total = w.sum()
        away = (b - w @ b / total) ** 2
        value = 0.5 * float(np.log(w).sum() - np.log(total) - w @ away)
        return value, float(w**2 @ away - total + (w**2).sum() / total)

    spread = float(np.ptp(b)) ** 2 + float(v.max())
    places = np.geomspace(1e-10 * float(v.min()), 4 * spread, GRID)
    scores = np.array([at(float(one))[1] for one in places])
    candidates = [0.0]
    for k in np.flatnonzero(np.sign(scores[:-1]) != np.sign(scores[1:])):
        root = brentq(lambda s: at(s)[1], places[k], places[k + 1], xtol=1e-300, rtol=1e-14)
        candidates.append(float(root))
    return max(candidates, key=lambda s: at(s)[0])
