r"""Systematic error of a site, from the profiles of its negative controls, taken out of a profile.

The true effect of a negative control is none, so its estimate is error. With the errors
:math:`b_i \sim N(m, s^2)`, a normal prior of m and a half-normal prior of s, the profiles of the
controls give the posterior of m and s, and the distribution p(b) of the error of the next outcome.
The likelihood of the true effect of the outcome of interest is

.. math:: L^*(\theta) = \int L(\theta + b) \, p(b) \, db

This is the bias distribution of Bu, Schuemie, Nishimura, Smith, Kostka, Falconer, McLeggon, Ryan,
Hripcsak and Suchard (2024), Bayesian safety surveillance with adaptive bias correction, Statistics
in Medicine 43, 379-395, doi:10.1002/sim.9968, by sums instead of random numbers. Each site has its
own m and s, which are not shrunk towards those of other sites.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from riskset._types import Rows
from riskset.network.likelihood import FAR, SiteLikelihood
from riskset.network.random_effects import (
    PRIOR_SD,
    EffectDistribution,
    PriorSds,
    effect_distribution,
)

__all__ = ["MIN_CONTROLS", "SiteBias", "corrected", "site_bias"]

MIN_CONTROLS = 5
"""With fewer controls, the systematic error of a site is not estimated."""
REACH = np.log(30.0)
"""Points of a corrected profile lie between hazard ratios of 1/30 and 30."""
N_POINTS = 193
N_TAIL = 1e-6
"""Share of the errors beyond the ends of the sums, each side."""
N_ERRORS = 4001
STEPS = 6.0
"""Points of the error for each width of a likelihood or of the errors."""


@dataclass(frozen=True, eq=False)
class SiteBias:
    """The systematic error of log hazard ratios of a site: `mean` and `sd`, posterior means."""

    posterior: EffectDistribution
    n_controls: int

    @property
    def mean(self) -> float:
        """Posterior mean of the mean error."""
        return self.posterior.mean

    @property
    def sd(self) -> float:
        """Posterior mean of the standard deviation of the errors."""
        return self.posterior.mean_tau


def site_bias(controls: Sequence[SiteLikelihood], prior: PriorSds = PRIOR_SD) -> SiteBias | None:
    """The posterior of the error; None with fewer than `MIN_CONTROLS` negative controls."""
    if len(controls) < MIN_CONTROLS:
        return None
    return SiteBias(effect_distribution(controls, prior), len(controls))


def corrected(likelihood: SiteLikelihood, bias: SiteBias) -> SiteLikelihood:
    """The profile without the systematic error of its site."""
    found = bias.posterior
    low, high = (found.predicted_quantile(q) for q in (N_TAIL, 1 - N_TAIL))
    narrow = min(likelihood.width, float(found.tau[np.argmax(found.weight)]), FAR)
    n = int(np.clip(np.ceil((high - low) / narrow * STEPS), 201, N_ERRORS))
    error = np.linspace(low, high, n)
    log_p = np.log(np.maximum(found.predictive(error), 1e-300))
    centre = float(likelihood.points[np.argmax(likelihood.values)]) - found.mean
    reach = np.concatenate([np.linspace(-REACH, REACH, N_POINTS), _near(likelihood, centre)])
    theta = np.unique(reach)
    at = theta[:, None] + error
    log_f = likelihood(at) + log_p
    top = log_f.max(axis=1, keepdims=True)
    f = np.exp(log_f - top)
    total = f.sum(axis=1)
    slope = (f * likelihood.derivative(at)).sum(axis=1) / total
    value = top[:, 0] + np.log(total)
    return SiteLikelihood(theta, value - value.max(), slope)


def _near(likelihood: SiteLikelihood, centre: float) -> Rows:
    """More points near the top of a narrow likelihood."""
    if likelihood.width >= REACH:
        return np.zeros(0)
    near = centre + likelihood.width * np.linspace(-8, 8, 65)
    return np.asarray(near[np.abs(near) < REACH])
