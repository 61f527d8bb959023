"""How far a Brownian bridge strays: the critical values of simultaneous confidence bands."""

import functools
from collections.abc import Callable

import numpy as np
from numpy.polynomial.legendre import leggauss, legvander
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.optimize import brentq
from scipy.special import ndtri, wofz

__all__ = ["equal_precision_limit", "hall_wellner_limit", "stays_in_strip", "stays_in_tube"]

Numbers = NDArray[np.float64]

N_FUNCTIONS = 64
"""Even polynomials that the density of the paths that have stayed is made of."""

MAX_TERMS = 20_000
"""Of the series of the strip; more are needed only between times that are nearly equal."""


def stays_in_tube(limit: float, length: float) -> float:
    r"""Probability that a stationary Ornstein-Uhlenbeck process stays within limits for a while.

    .. math:: P(\sup_{0 \le s \le T} |X(s)| \le c), \qquad cov(X(s), X(t)) = e^{-|s - t|}

    which is that of :math:`|B(u)| \le c \sqrt{u (1 - u)}` for a Brownian bridge B, u in [a, b] and
    :math:`T = \frac12 \log \frac{b (1 - a)}{a (1 - b)}`. With :math:`\lambda_j, v_j` the
    eigenvalues and functions of :math:`-(\varphi v')' = \lambda \varphi v`, 0 at both limits, it is
    :math:`\sum_j (\int \varphi v_j)^2 e^{-\lambda_j T}`. The functions are polynomials
    (Galerkin's method), and the sum has about 10 digits.
    """
    nodes, weights, values, slopes = _polynomials()
    density = weights * np.exp(-0.5 * (limit * nodes) ** 2) * limit * np.sqrt(2.0 / np.pi)
    mass = (density[:, None] * values).T @ values
    stiffness = (density[:, None] * slopes).T @ slopes / limit**2
    inverse, vectors = eigh(mass, stiffness)
    kept = inverse > 1e-13 * inverse[-1]
    inverse, share = inverse[kept], (density @ values) @ vectors[:, kept]
    return float(np.sum(share**2 / inverse * np.exp(-length / inverse)))


@functools.cache
def _polynomials() -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Nodes and weights on (0, 1), and even polynomials that are 0 at 1 with their slopes there."""
    nodes, weights = leggauss(3 * N_FUNCTIONS)
    nodes, weights = nodes[nodes > 0], weights[nodes > 0]
    degree = 2 * np.arange(N_FUNCTIONS)
    legendre = legvander(nodes, 2 * N_FUNCTIONS)
    size = np.sqrt(2.0 * degree + 3.0)
    values = (legendre[:, degree + 2] - legendre[:, degree]) / size
    return nodes, weights, values, legendre[:, degree + 1] * size


def stays_in_strip(limit: float, first: float, last: float) -> float:
    r"""Probability that a Brownian bridge stays between -k and k from one time to another.

    .. math:: P(\sup_{a \le u \le b} |B(u)| \le k) = \frac{\sqrt{2 \pi}}{k} \sum_{n\,odd}
        e^{-\omega_n^2 (b - a) / 2} C_n(a) C_n(1 - b), \qquad \omega_n = \frac{n \pi}{2 k}, \quad
        C_n(v) = \int_{-k}^k \frac{e^{-x^2 / 2v}}{\sqrt{2 \pi v}} \cos(\omega_n x) \, dx

    by the sine series of the density of paths that stay in the strip. C is
    :math:`e^{-\omega^2 v / 2} \operatorname{Re} erf((k + i \omega v) / \sqrt{2 v})`. From 0 to 1
    this is Kolmogorov's distribution.
    """
    duration = last - first
    n_terms = int(min(MAX_TERMS, 2.0 + limit / np.pi * np.sqrt(80.0 / max(duration, 1e-300))))
    n = 2.0 * np.arange(n_terms) + 1.0
    frequency = n * np.pi / (2.0 * limit)
    # exp(-i k omega), k omega being an odd number of right angles.
    turn = np.where(np.arange(n_terms) % 2 == 0, -1j, 1j)

    def cosine(variance: float) -> Numbers:
        if variance <= 0:
            return np.ones(n_terms)
        z = (-frequency * variance + 1j * limit) / np.sqrt(2.0 * variance)
        beyond = np.exp(-(limit**2) / (2.0 * variance)) * (turn * wofz(z)).real
        return np.asarray(np.exp(-0.5 * frequency**2 * variance) - beyond)

    terms = np.exp(-0.5 * frequency**2 * duration) * cosine(first) * cosine(1.0 - last)
    return float(np.sqrt(2.0 * np.pi) / limit * terms.sum())


def equal_precision_limit(ratio: float, level: float) -> float:
    """Critical value of the equal-precision band (Nair 1984), to 8 digits.

    `ratio` is that of the standard errors of log S at the end and at the start of the band.
    """
    alone = float(ndtri(0.5 + level / 2))
    length = float(np.log(ratio))
    return _solved(lambda c: stays_in_tube(c, length), level, alone) if length > 0 else alone


def hall_wellner_limit(first: float, last: float, level: float) -> float:
    r"""Critical value of the band of Hall & Wellner (1980) from `first` to `last`, to 8 digits.

    Times are those of the bridge, :math:`n \sigma^2 / (1 + n \sigma^2)` with the variance of log S.
    """
    widest = min(max(0.5, first), last)
    alone = float(ndtri(0.5 + level / 2)) * np.sqrt(widest * (1.0 - widest))
    if last <= first:
        return float(alone)
    return _solved(lambda k: stays_in_strip(k, first, last), level, float(alone))


def _solved(stays: Callable[[float], float], level: float, low: float) -> float:
    """The limit within which a path stays with a given probability; at `low` it is less."""
    high = 1.2 * low
    while stays(high) < level:
        low, high = high, 1.2 * high
    return float(brentq(lambda limit: stays(limit) - level, low, high, xtol=1e-12, rtol=1e-11))
