r"""Distributions of frailties that rows of a cluster share, as penalties on their logarithms w.

Therneau, Grambsch & Pankratz (2003), Journal of Computational and Graphical Statistics 12, 156-175,
doi:10.1198/1061860031365; Ripatti & Palmgren (2000), Biometrics 56, 1016-1022,
doi:10.1111/j.0006-341X.2000.01016.x.
"""

from abc import ABC, abstractmethod
from typing import ClassVar, Literal

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from numpy.typing import NDArray
from scipy.special import gammaln, ndtr, psi

from riskset._types import Matrix

__all__ = [
    "FRAILTIES",
    "Clusters",
    "FrailtyDistribution",
    "FrailtyName",
    "GammaFrailty",
    "LogNormalFrailty",
]

FrailtyName = Literal["gamma", "lognormal"]

Clusters = NDArray[np.float64]
"""One number for each cluster, shape (n_clusters,)."""

MAX_SUMMED_EVENTS = 10_000
"""Of a cluster with more events, gamma functions are taken from their series."""
N_NODES = 64
"""Of the quadrature over a normal distribution."""
MAX_NORMAL_VARIANCE = 1.0
"""For a larger variance, the quadrature is over the log of an exponential time."""
LOG_TIMES = np.arange(-30.0, 4.0, 0.3)
"""Equally spaced nodes of that one: its error falls as the exponential of minus 1 / spacing."""


class FrailtyDistribution(ABC):
    """What a distribution of frailties with mean or median 1 adds to a partial likelihood.

    A penalty is 0 where all w are 0, convex, and infinitely steep where the variance is 0.
    """

    name: ClassVar[FrailtyName]

    @abstractmethod
    def penalty(self, w: Clusters, variance: float) -> float:
        """Sum of the penalties of the log frailties w."""

    @abstractmethod
    def slope(self, w: Clusters, variance: float) -> Clusters:
        """Derivative of the penalty in each w."""

    @abstractmethod
    def curvature(self, w: Clusters, variance: float) -> Clusters:
        """Second derivative of the penalty in each w."""

    @abstractmethod
    def survival(self, hazard: Matrix, variance: float) -> Matrix:
        r"""Mean of :math:`e^{-zH}` over the frailties z, for cumulative hazards H."""


class GammaFrailty(FrailtyDistribution):
    r"""Frailties :math:`e^w` of a gamma distribution with mean 1 and variance :math:`\theta`.

    .. math:: \frac{1}{\theta} \sum_i (e^{w_i} - 1 - w_i)
    """

    name: ClassVar[FrailtyName] = "gamma"

    def penalty(self, w: Clusters, variance: float) -> float:
        """Sum of the penalties."""
        return float((np.expm1(w) - w).sum()) / variance

    def slope(self, w: Clusters, variance: float) -> Clusters:
        """Derivative of the penalty in each w."""
        return np.asarray(np.expm1(w) / variance)

    def curvature(self, w: Clusters, variance: float) -> Clusters:
        """Second derivative of the penalty in each w."""
        return np.asarray(np.exp(w) / variance)

    def survival(self, hazard: Matrix, variance: float) -> Matrix:
        r""":math:`(1 + \theta H)^{-1/\theta}`."""
        return np.asarray(np.exp(-np.log1p(variance * hazard) / variance))

    def integrated(
        self, log_likelihood: float, w: Clusters, events: Clusters, variance: float
    ) -> float:
        r"""Log likelihood without the frailties, maximised over baseline and coefficients.

        .. math::
            \ell + \nu \sum_i w_i + \sum_i \left(
                d_i + \log \frac{\Gamma(\nu + d_i)}{\Gamma(\nu)}
                + \nu \log \nu - (\nu + d_i) \log(\nu + d_i) \right),
            \qquad \nu = 1 / \theta

        with the log partial likelihood at the w that maximise the penalised likelihood, where
        :math:`e^{w_i} = (\nu + d_i) / (\nu + \Lambda_i)`: there the frailties, given the `events`
        d, have means :math:`e^{w_i}`. For small variances it is the log partial likelihood.
        """
        nu = 1.0 / variance
        found, times = np.unique(events, return_counts=True)
        terms = [_gamma_term(float(d), nu) for d in found]
        return log_likelihood + nu * float(w.sum()) + float(times @ np.array(terms))

    def integrated_slope(self, w: Clusters, events: Clusters, variance: float) -> float:
        r"""Derivative of `integrated` in :math:`\log \theta`.

        Those in the coefficients, the baseline and w are 0 at the maximum.
        """
        nu = 1.0 / variance
        found, times = np.unique(events, return_counts=True)
        terms = [_gamma_slope(float(d), nu) for d in found]
        return -nu * (float(w.sum()) + float(times @ np.array(terms)))


def _gamma_term(d: float, nu: float) -> float:
    if d <= MAX_SUMMED_EVENTS:
        ratio = float(np.log1p(-np.arange(1.0, d + 1.0) / (nu + d)).sum())
    else:
        ratio = float(gammaln(nu + d) - gammaln(nu)) - d * float(np.log(nu + d))
    return ratio + nu * (d / nu - float(np.log1p(d / nu)))


def _gamma_slope(d: float, nu: float) -> float:
    if d <= MAX_SUMMED_EVENTS:
        rise = float((1.0 / (nu + np.arange(d))).sum())
    else:
        rise = float(psi(nu + d) - psi(nu))
    return rise - float(np.log1p(d / nu))


class LogNormalFrailty(FrailtyDistribution):
    r"""Frailties :math:`e^w`, with w of a normal distribution with mean 0.

    Its variance is :math:`\theta`.

    .. math:: \frac{1}{2 \theta} \sum_i w_i^2
    """

    name: ClassVar[FrailtyName] = "lognormal"

    def penalty(self, w: Clusters, variance: float) -> float:
        """Sum of the penalties."""
        return 0.5 * float(w @ w) / variance

    def slope(self, w: Clusters, variance: float) -> Clusters:
        """Derivative of the penalty in each w."""
        return w / variance

    def curvature(self, w: Clusters, variance: float) -> Clusters:
        """Second derivative of the penalty in each w."""
        return np.full_like(w, 1.0 / variance)

    def survival(self, hazard: Matrix, variance: float) -> Matrix:
        r"""By Gauss-Hermite quadrature, or for large variances by an integral that they smooth.

        .. math:: E \left[ e^{-zH} \right] = P(z H < T) = E \left[
            \Phi \left( (\log T - \log H) / \sqrt\theta \right) \right]

        for an exponential time T.
        """
        if variance > MAX_NORMAL_VARIANCE:
            return _normal_survival(hazard, np.sqrt(variance))
        nodes, weights = hermegauss(N_NODES)
        out = np.zeros_like(hazard)
        for node, weight in zip(np.sqrt(variance) * nodes, weights / weights.sum(), strict=True):
            out += weight * np.exp(-np.exp(node) * hazard)
        return out


def _normal_survival(hazard: Matrix, deviation: float) -> Matrix:
    density = np.exp(LOG_TIMES - np.exp(LOG_TIMES))
    out = np.zeros_like(hazard)
    with np.errstate(divide="ignore"):
        log_hazard = np.log(hazard)
    for log_time, weight in zip(LOG_TIMES, density / density.sum(), strict=True):
        out += weight * ndtr((log_time - log_hazard) / deviation)
    return out


FRAILTIES: dict[str, FrailtyDistribution] = {
    kind.name: kind for kind in (GammaFrailty(), LogNormalFrailty())
}
