"""Posterior of the systematic error from negative controls, without random numbers.

Given the precision the posterior of the mean is normal, so that one grid of precisions and one of
normal deviates cover the distribution; results are the same in every run.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import ndtr

from riskset.cohort.bias.empirical_null.fit import expected_absolute_error

__all__ = ["NullPosterior", "null_posterior"]

Numbers = NDArray[np.float64]

PRIOR = 1e-4
"""Shape and rate of the gamma prior of the precision; the mean has a flat prior."""

N_PRECISIONS, N_DEVIATES = 4001, 401
LARGEST_PRECISION = 1e8
NEGLIGIBLE = 1e-12

LEVELS = (0.5, 0.025, 0.975)
FAR = 10.0
"""Nothing of a normal distribution lies further from its mean, in standard deviations."""


@dataclass(frozen=True, eq=False, repr=False)
class NullPosterior:
    """Posterior of the systematic error.

    Attributes
    ----------
    mean, precision, sd, ease : (3,) float64
        Median and limits of the central 95 % interval.
    n_controls : int

    Examples
    --------
    >>> import riskset as rs
    >>> controls = rs.cohort.Controls([0.2, -0.1, 0.3, 0.1, 0.0, 0.25], [0.1] * 6)
    >>> posterior = rs.cohort.calibrate(controls, [0.5], [0.1]).posterior
    >>> posterior
    NullPosterior(6 controls: mean 0.125, sd 0.091, expected absolute error 0.146 (0.062 to 0.308))
    >>> two_sided, upper = posterior.p_values(0.5, 0.1)
    >>> two_sided.round(3)
    array([0.006, 0.   , 0.334])
    """

    mean: Numbers
    precision: Numbers
    sd: Numbers
    ease: Numbers
    n_controls: int
    # For each precision: the mean and sd of the error's mean, the error's sd, and the weight.
    _center: Numbers = field(repr=False)
    _spread: Numbers = field(repr=False)
    _sd: Numbers = field(repr=False)
    _weight: Numbers = field(repr=False)

    def __repr__(self) -> str:
        return (
            f"NullPosterior({self.n_controls} controls: mean {self.mean[0]:.3f}, sd "
            f"{self.sd[0]:.3f}, expected absolute error {self.ease[0]:.3f} "
            f"({self.ease[1]:.3f} to {self.ease[2]:.3f}))"
        )

    def p_values(self, log_rr: float, se: float) -> tuple[Numbers, Numbers]:
        """Return two-sided and upper one-sided p of an estimate: median and 95 % interval (3,)."""
        # Given the precision z is normal, so that its distribution is a mixture of normal ones.
        scale = np.hypot(self._sd, se)
        center, spread = (log_rr - self._center) / scale, self._spread / scale

        def below(z: float) -> float:
            return float(self._weight @ ndtr((z - center) / spread))

        least, most = (center - FAR * spread).min(), (center + FAR * spread).max()
        z = _inverse(below, float(least), float(most))
        size = _inverse(lambda q: below(q) - below(-q), 0.0, float(max(-least, most)))
        # Both p fall as z rises.
        return 2 * ndtr(-size[[0, 2, 1]]), ndtr(-z[[0, 2, 1]])


def _inverse(share: Callable[[float], float], least: float, most: float) -> Numbers:
    """Where a distribution function reaches `LEVELS`."""
    return np.array([brentq(lambda x, p=p: share(x) - p, least, most, xtol=1e-11) for p in LEVELS])


def null_posterior(log_rr: Numbers, se: Numbers) -> NullPosterior:
    r"""Posterior of the mean and the precision :math:`1 / \sigma^2` of the systematic error.

    With :math:`b_i \sim N(\mu, \sigma^2 + se_i^2)`, a flat prior of the mean and the prior
    Gamma(1e-4, 1e-4) of the precision, as in Schuemie, Hripcsak, Ryan, Madigan and Suchard (2018),
    Proceedings of the National Academy of Sciences 115, 2571-2577, doi:10.1073/pnas.1708282114. The
    grid has 4001 log precisions times 401 normal deviates of the mean.
    """
    # From a sd of thrice the spread, at least sqrt(2), down to 1e-4.
    lowest = min(np.log(0.5), -np.log(9 * max(float(np.ptp(log_rr)), 1e-6) ** 2))
    log_precision = np.linspace(lowest, np.log(LARGEST_PRECISION), N_PRECISIONS)
    precision = np.exp(log_precision)
    w = 1 / (1 / precision[:, None] + se**2)
    total = w.sum(axis=1)
    center = (w * log_rr).sum(axis=1) / total
    away = (w * (log_rr - center[:, None]) ** 2).sum(axis=1)
    # The mean integrated out; of the prior on the log scale.
    log_weight = 0.5 * (np.log(w).sum(axis=1) - np.log(total) - away)
    log_weight += PRIOR * log_precision - PRIOR * precision
    of_precision = np.exp(log_weight - log_weight.max())
    of_precision /= of_precision.sum()

    used = of_precision > NEGLIGIBLE * of_precision.max()
    deviate = np.linspace(-6.0, 6.0, N_DEVIATES)
    of_deviate = np.exp(-(deviate**2) / 2)
    of_deviate /= of_deviate.sum()
    center, spread, weight = center[used], 1 / np.sqrt(total[used]), of_precision[used]
    sd = 1 / np.sqrt(precision[used])
    mean = (center[:, None] + deviate * spread[:, None]).ravel()
    both = (weight[:, None] * of_deviate).ravel()
    quantiles = _quantiles(precision, of_precision)
    return NullPosterior(
        mean=_quantiles(mean, both),
        precision=quantiles,
        sd=1 / np.sqrt(quantiles[[0, 2, 1]]),
        ease=_quantiles(expected_absolute_error(mean, sd.repeat(N_DEVIATES)), both),
        n_controls=log_rr.size,
        _center=center,
        _spread=spread,
        _sd=sd,
        _weight=weight / weight.sum(),
    )


def _quantiles(values: Numbers, weight: Numbers) -> Numbers:
    """Median, 2.5 % and 97.5 % of weighted values, each value in the middle of its weight."""
    order = np.argsort(values, kind="stable")
    share = np.cumsum(weight[order])
    middle = (share - weight[order] / 2) / share[-1]
    return np.interp(LEVELS, middle, values[order])
