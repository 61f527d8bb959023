r"""The distribution of the effects of sites, integrated exactly, without random numbers.

.. math:: p(\mu, \tau | data) \propto N(\mu; 0, s_\mu^2) \, N^+(\tau; 0, s_\tau^2)
    \prod_j \int L_j(\theta) \, N(\theta; \mu, \tau^2) \, d\theta

Every integral is a trapezoidal sum over evenly spaced points, which converges faster than any power
of the step for smooth integrands that vanish at both ends (Trefethen and Weideman 2014, SIAM Review
56, 385-458, doi:10.1137/130932132). Where tau is small beside the width of a likelihood, the points
are normal deviates; else they lie on the likelihood. In tau, Gauss-Legendre points cover the
part that counts. The same model, with negative controls in place of sites, is that of systematic
error (`network.bias`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline, PPoly
from scipy.optimize import brentq
from scipy.special import ndtr

from riskset._types import Rows
from riskset.network.likelihood import SiteLikelihood

__all__ = ["EffectDistribution", "PRIOR_SD", "PriorSds", "effect_distribution"]


class PriorSds(NamedTuple):
    """Standard deviations of the normal prior of mu and of the half-normal prior of tau."""

    mu: float = 2.0
    tau: float = 0.5


PRIOR_SD = PriorSds()

NEGLIGIBLE = 40.0
"""Log densities so far below the largest are left out."""
DEVIATES = np.linspace(-7.5, 7.5, 61)
"""Points of the normal distribution of effects, a quarter of a standard deviation apart."""
NORMAL_WEIGHTS = np.exp(-0.5 * DEVIATES**2) / np.exp(-0.5 * DEVIATES**2).sum()
"""Their shares of the distribution."""
WIDE_STEPS = 1.5
LEAST_MASS = 1e-14
MAX_NUMBERS = 4_000_000
"""Size of the largest array that a density is made in."""
STEPS_PER_WIDTH = 4.0
"""Points on a likelihood, for each width."""
FINER_WITH_CORNERS = 8
"""Sums converge slowly over curves with corners, which those without derivatives are."""
REACH_IN_PRIOR_SDS = 8.0
N_COARSE, N_MU, N_TAU, N_FINE = 33, 97, 40, 1025
MAX_ZOOMS = 12
LEVELS = 1e-12
"""Accuracy of quantiles."""


@dataclass(frozen=True, eq=False)
class EffectDistribution:
    """The posterior of mu and tau.

    The posterior of tau lies between the ends `tau_range`. It has the density `tau_density` (k,) at
    the points `tau` (k,), which have the `weight` (k,) in sums. Given these, mu has the `density`
    (k, n) at the points `mu` (k, n), which are evenly spaced in each row.
    """

    tau_range: tuple[float, float]
    tau: Rows
    tau_density: Rows
    weight: Rows
    mu: Rows
    density: Rows

    @property
    def mean(self) -> float:
        """Posterior mean of mu."""
        return float((self._masses * self.mu).sum())

    @property
    def sd(self) -> float:
        """Posterior standard deviation of mu."""
        return float(np.sqrt((self._masses * (self.mu - self.mean) ** 2).sum()))

    @property
    def mean_tau(self) -> float:
        """Posterior mean of tau."""
        return float(self.weight @ self.tau)

    @property
    def _masses(self) -> Rows:
        """Weights of all points of mu (k, n), which sum to 1."""
        step = self.mu[:, 1] - self.mu[:, 0]
        return self.weight[:, None] * self.density * step[:, None]

    @cached_property
    def _curves(self) -> list[PPoly]:
        """The distribution function of mu given each tau, up to a constant."""
        return [
            CubicSpline(x, p).antiderivative() for x, p in zip(self.mu, self.density, strict=True)
        ]

    def _below(self, k: int, x: Rows) -> Rows:
        """Probability that mu is below x given tau number k."""
        curve, low, high = self._curves[k], self.mu[k, 0], self.mu[k, -1]
        return np.asarray(curve(np.clip(x, low, high)) / curve(high))

    def mu_quantile(self, share: float) -> float:
        """Quantile of mu."""

        def below(x: float) -> float:
            at = np.array(x)
            shares = [float(self._below(k, at)) for k in range(self.tau.size)]
            return float(self.weight @ np.array(shares))

        return _root(lambda x: below(x) - share, float(self.mu.min()), float(self.mu.max()))

    def tau_quantile(self, share: float) -> float:
        """Quantile of tau."""
        low, high = self.tau_range
        mass = CubicSpline(self.tau, self.tau_density).antiderivative()
        start, total = float(mass(low)), float(mass(high) - mass(low))
        return _root(lambda t: (float(mass(t)) - start) / total - share, low, high)

    def predicted_quantile(self, share: float) -> float:
        r"""Quantile of the effect of a new site, :math:`N(\mu, \tau^2)` over the posterior."""
        wide = self._is_wide
        masses, mu, tau = self._masses[wide], self.mu[wide], self.tau[wide][:, None]
        narrow = np.flatnonzero(~wide).tolist()

        def below(x: float) -> float:
            found = float((masses * ndtr((x - mu) / tau)).sum())
            for k in narrow:
                at = x - self.tau[k] * DEVIATES
                found += float(self.weight[k]) * float(NORMAL_WEIGHTS @ self._below(k, at))
            return found

        reach = 10 * float(self.tau.max())
        low, high = float(self.mu.min()) - reach, float(self.mu.max()) + reach
        return _root(lambda x: below(x) - share, low, high)

    def predictive(self, at: Rows) -> Rows:
        """Density of the effect of a new site at some points (m,)."""
        wide = self._is_wide
        masses, mu = self._masses[wide].ravel(), self.mu[wide].ravel()
        tau = self.tau[wide].repeat(self.mu.shape[1])
        used = masses > LEAST_MASS
        masses, mu, tau = masses[used], mu[used], tau[used]
        scale = masses / (tau * np.sqrt(2 * np.pi))
        out = np.zeros(at.size)
        for part in np.array_split(np.arange(at.size), 1 + at.size * mu.size // MAX_NUMBERS):
            out[part] = np.exp(-0.5 * ((at[part, None] - mu) / tau) ** 2) @ scale
        for k in np.flatnonzero(~wide).tolist():
            density = self._curves[k].derivative()
            x = at[:, None] - self.tau[k] * DEVIATES
            inside = (x >= self.mu[k, 0]) & (x <= self.mu[k, -1])
            found = np.where(inside, density(x), 0.0) @ NORMAL_WEIGHTS
            out += self.weight[k] * np.maximum(found, 0.0) / float(self._curves[k](self.mu[k, -1]))
        return out

    @property
    def _is_wide(self) -> NDArray[np.bool_]:
        """Whether tau spans some of the points of mu, so that sums over these are smooth in x."""
        return np.asarray(self.tau > WIDE_STEPS * (self.mu[:, 1] - self.mu[:, 0]))


def effect_distribution(
    likelihoods: Sequence[SiteLikelihood], prior: PriorSds = PRIOR_SD
) -> EffectDistribution:
    """Integrate the posterior of mu and tau."""
    model = _Model(likelihoods, prior)
    limit = REACH_IN_PRIOR_SDS * prior.tau

    def log_at(tau: float) -> float:
        return model.of_tau(tau).log_total

    low, high = _bulk(log_at, 0.0, limit, 17)
    x, w = np.polynomial.legendre.leggauss(N_TAU)
    tau = low + (high - low) * (x + 1) / 2
    found = [model.of_tau(float(t)) for t in tau]
    log_weight = np.array([one.log_total for one in found])
    density = np.exp(log_weight - log_weight.max())
    return EffectDistribution(
        (low, high),
        tau,
        density,
        w * density / (w @ density),
        np.array([one.mu for one in found]),
        np.array([one.density for one in found]),
    )


class _Conditional(NamedTuple):
    """Given tau: the points of mu, its density there, and the log of the mass of all of it."""

    mu: Rows
    density: Rows
    log_total: float


class _Model:
    """The log posterior density of mu and tau."""

    def __init__(self, likelihoods: Sequence[SiteLikelihood], prior: PriorSds) -> None:
        self._sites = [_Site(one) for one in likelihoods]
        self._prior = prior

    def of_tau(self, tau: float) -> _Conditional:
        """The distribution of mu given tau."""
        reach = REACH_IN_PRIOR_SDS * self._prior.mu

        def log_density(mu: Rows) -> Rows:
            return self._log_density(mu, tau)

        low, high = _bulk_of(log_density, -reach, reach)
        mu = np.linspace(low, high, N_MU)
        log_p = log_density(mu)
        step = mu[1] - mu[0]
        top = log_p.max()
        log_total = float(top + np.log(np.exp(log_p - top).sum() * step))
        log_prior = -0.5 * (tau / self._prior.tau) ** 2
        return _Conditional(mu, np.exp(log_p - log_total), log_total + log_prior)

    def _log_density(self, mu: Rows, tau: float) -> Rows:
        out = -0.5 * (mu / self._prior.mu) ** 2
        for site in self._sites:
            out = out + site.log_marginal(mu, tau)
        return out


class _Site:
    r""":math:`\log \int L(\theta) N(\theta; \mu, \tau^2) d\theta` of one likelihood."""

    def __init__(self, likelihood: SiteLikelihood) -> None:
        self._likelihood = likelihood
        self._width = likelihood.width
        self._finer = 1 if likelihood.derivatives is not None else FINER_WITH_CORNERS
        self._reach = _reach(likelihood)

    def log_marginal(self, mu: Rows, tau: float) -> Rows:
        """At points of mu (m,)."""
        if tau == 0:
            return self._likelihood(mu)
        if tau <= self._width or not np.isfinite(self._reach).all():
            return self._by_deviates(mu, tau)
        step = self._width / STEPS_PER_WIDTH / self._finer
        theta = np.arange(self._reach[0], self._reach[1] + step, step)
        log_l = self._likelihood(theta)
        top = log_l.max()
        z = (theta - mu[:, None]) / tau
        # The normal density of the nearest point is divided out, so that no sum vanishes.
        least = np.min(z**2, axis=1, keepdims=True)
        found = np.exp(-0.5 * (z**2 - least)) @ np.exp(log_l - top)
        with np.errstate(divide="ignore"):
            log_sum = np.log(found)
        constant = top + np.log(step / tau / np.sqrt(2 * np.pi))
        return np.asarray(log_sum - 0.5 * least[:, 0] + constant)

    def _by_deviates(self, mu: Rows, tau: float) -> Rows:
        # On a curve that rises without end, the mass lies where it meets the normal distribution:
        # moving the points there keeps them where the integrand is.
        n = max(1, int(np.ceil(tau / self._width))) * self._finer
        z = np.linspace(DEVIATES[0], DEVIATES[-1], (DEVIATES.size - 1) * n + 1)
        log_f = self._likelihood(mu[:, None] + tau * z) - 0.5 * z**2
        top = log_f.max(axis=1)
        total = np.exp(log_f - top[:, None]).sum(axis=1)
        return np.asarray(top + np.log(total * (z[1] - z[0]) / np.sqrt(2 * np.pi)))


def _reach(likelihood: SiteLikelihood) -> Rows:
    """Between which points a likelihood is not negligible; infinite where it does not fall."""
    x = likelihood.points[[0, -1]]
    v, d = likelihood(x), likelihood.derivative(x + np.array([-1.0, 1.0]))
    least = float(likelihood.values.max()) - NEGLIGIBLE
    with np.errstate(divide="ignore", invalid="ignore"):
        beyond = x - (v - least) / d
    ends = np.where(
        v <= least, x, np.where(d * np.array([1.0, -1.0]) > 0, beyond, [-np.inf, np.inf])
    )
    if not np.isfinite(ends).all():
        return np.asarray(ends)
    fine = np.linspace(float(ends[0]), float(ends[1]), N_FINE)
    inside = np.flatnonzero(likelihood(fine) > least)
    return np.asarray(fine[[max(inside[0] - 1, 0), min(inside[-1] + 1, N_FINE - 1)]])


def _bulk_of(log_density: Callable[[Rows], Rows], low: float, high: float) -> tuple[float, float]:
    """The interval where a density that rises and then falls is not negligible."""
    for _ in range(MAX_ZOOMS):
        x = np.linspace(low, high, N_COARSE)
        log_p = log_density(x)
        used = np.flatnonzero(log_p > log_p.max() - NEGLIGIBLE)
        first, last = max(int(used[0]) - 1, 0), min(int(used[-1]) + 1, N_COARSE - 1)
        low, high = float(x[first]), float(x[last])
        if used.size >= N_COARSE // 3:
            break
    return low, high


def _bulk(
    log_density: Callable[[float], float], low: float, high: float, n: int
) -> tuple[float, float]:
    """The same for a function of one number that takes long."""
    for _ in range(3):
        x = np.linspace(low, high, n)
        log_p = np.array([log_density(float(one)) for one in x])
        used = np.flatnonzero(log_p > log_p.max() - NEGLIGIBLE)
        first, last = max(int(used[0]) - 1, 0), min(int(used[-1]) + 1, n - 1)
        low, high = float(x[first]), float(x[last])
        if used.size >= n // 2:
            break
    return low, high


def _root(f: Callable[[float], float], low: float, high: float) -> float:
    return float(brentq(f, low, high, xtol=LEVELS, rtol=1e-12))
