"""Posterior of the systematic error of the next estimate, without random numbers.

Given the standard deviations of the systematic error, an estimate is normal. Its distribution is a
mixture of normal distributions over a grid of standard deviations. p values and intervals come from
the same distribution, so they always agree.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import ndtr

from riskset.cohort.bias.empirical_null.regression import WIDEST

__all__ = ["ErrorPosterior", "error_posterior"]

Numbers = NDArray[np.float64]

N_SD = {1: 301, 2: 61}
"""Points of the grid in each direction, by the number of standard deviations."""
SMALLEST, LARGEST = 1e-3, 1e3
"""Ends of the grid: shares of the typical standard error, and of the spread of all controls."""
NEGLIGIBLE = 1e-13
"""Share of the greatest weight below which a point of the grid is left out."""
FAR = 40.0
"""Nothing of a normal distribution lies further from its mean, in standard deviations."""
STEP = 1.3
"""By how much each step is longer than the one before, on the way to the end of an interval."""


@dataclass(frozen=True, eq=False, repr=False)
class ErrorPosterior:
    r"""Distribution of an estimate for any true log ratio, given the controls.

    An estimate b with the standard error s has the distribution function

    .. math:: F(b; \theta, s) = \sum_k w_k \, \Phi\!\left(\frac{b - a_k - b_k \theta}
        {\sqrt{v_k(\theta) + (c_k + d_k |\theta|)^2 + s^2}}\right)

    for the true log ratio :math:`\theta`, over the points k of a grid of standard deviations with
    the posterior weights w; :math:`v_k` is the variance of :math:`a_k + b_k \theta`. Without
    positive controls :math:`b_k = 1` and :math:`d_k = 0`.

    Attributes
    ----------
    n_controls : int

    Examples
    --------
    >>> import riskset as rs
    >>> controls = rs.cohort.Controls([0.2, -0.1, 0.3, 0.1, 0.0, 0.25], [0.1] * 6)
    >>> posterior = rs.cohort.calibrate(controls, [0.5], [0.1]).error_posterior
    >>> posterior
    ErrorPosterior(6 controls)
    >>> p, one_sided_p = posterior.p_values(0.5, 0.1)
    >>> round(p, 3)
    0.077
    """

    n_controls: int
    # Of each point of the grid: mean and covariance of the intercept and the slope of the mean,
    # intercept and slope of the standard deviation, and the weight.
    _mean: Numbers = field(repr=False)
    _covariance: Numbers = field(repr=False)
    _sd: Numbers = field(repr=False)
    _weight: Numbers = field(repr=False)

    def __repr__(self) -> str:
        return f"ErrorPosterior({self.n_controls} controls)"

    def p_values(self, log_rr: float, se: float, true_log_rr: float = 0.0) -> tuple[float, float]:
        r"""Two-sided p, :math:`2 \min(F, 1 - F)`, and upper one-sided p, :math:`1 - F`.

        Parameters
        ----------
        log_rr, se : float
        true_log_rr : float
            True log ratio of the null hypothesis.
        """
        below, above = self._tails(log_rr, se, true_log_rr)
        return min(1.0, 2 * min(below, above)), above

    def unremarkable(self, se: float, level: float) -> tuple[float, float]:
        """Return the lowest and highest estimate whose p for no effect is at least 1 - `level`."""
        tail = (1 - level) / 2
        scale = np.sqrt(self._covariance[:, 0] + self._sd[:, 0] ** 2 + se**2)
        least = float((self._mean[:, 0] - FAR * scale).min())
        most = float((self._mean[:, 0] + FAR * scale).max())

        def excess(b: float, side: int) -> float:
            return self._tails(b, se, 0.0)[side] - tail

        lower, upper = (
            float(brentq(excess, least, most, (side,), xtol=1e-13, rtol=1e-14)) for side in (0, 1)
        )
        return lower, upper

    def interval(self, log_rr: float, se: float, level: float) -> tuple[float, float, float]:
        r"""Return the calibrated log ratio and the limits of its interval.

        The log ratio is the true value with a two-sided p of 1. The interval contains the true
        values around it with a two-sided p above 1 - `level`. A limit is infinite if p is above it
        up to 100, which happens if positive controls do not determine how the estimate depends on
        the effect. All three are NaN if no true value between -100 and 100 has a p of 1.
        """
        tail = (1 - level) / 2

        def excess(theta: float, side: int, share: float) -> float:
            return self._tails(log_rr, se, theta)[side] - share

        if excess(-WIDEST, 0, 0.5) <= 0 or excess(WIDEST, 0, 0.5) >= 0:
            return (float("nan"),) * 3
        center = float(brentq(excess, -WIDEST, WIDEST, (0, 0.5), xtol=1e-13, rtol=1e-14))
        ends = []
        # A true value below the estimate makes it improbably large, one above it small.
        for side, direction in ((1, -1), (0, 1)):
            inner, step = center, se
            while abs(inner) < WIDEST:
                outer = float(np.clip(inner + direction * step, -WIDEST, WIDEST))
                if excess(outer, side, tail) <= 0:
                    found = brentq(excess, inner, outer, (side, tail), xtol=1e-13, rtol=1e-14)
                    ends.append(float(found))
                    break
                inner, step = outer, STEP * step
            else:
                ends.append(direction * float("inf"))
        return center, ends[0], ends[1]

    def _tails(self, log_rr: float, se: float, theta: float) -> tuple[float, float]:
        """Chance of an estimate below, and above, the one found."""
        theta = float(np.clip(theta, -WIDEST, WIDEST))
        variance = self._covariance @ np.array([1.0, 2 * theta, theta**2])
        sd = np.maximum(self._sd[:, 0] + self._sd[:, 1] * abs(theta), 0.0)
        away = log_rr - self._mean[:, 0] - self._mean[:, 1] * theta
        z = away / np.sqrt(variance + sd**2 + se**2)
        return float(self._weight @ ndtr(z)), float(self._weight @ ndtr(-z))


def error_posterior(
    log_rr: Numbers, se: Numbers, true_log_rr: Numbers | None = None
) -> ErrorPosterior:
    r"""Posterior of the systematic error from controls.

    Without positive controls, :math:`b_i \sim N(\theta_i + \mu, \sigma^2 + s_i^2)`; with them,
    :math:`b_i \sim N(a + b \theta_i, (c + d |\theta_i|)^2 + s_i^2)` with a standard deviation that
    is not negative at any control.

    The priors are flat for the means and Jeffreys's for the standard deviations,
    :math:`\sqrt{\det I}` with their Fisher information I; for one standard deviation that is

    .. math:: \pi(\sigma) \propto \sqrt{\sum_i \frac{\sigma^2}{(\sigma^2 + s_i^2)^2}},

    the reference prior of Bodnar et al. It is 0 at 0 and falls like :math:`1 / \sigma`. A prior
    that is nearly flat in :math:`\log \sigma`, such as Gamma(1e-4, 1e-4) of the precision, keeps
    much weight at standard deviations far below the standard errors, which few controls cannot rule
    out, and its intervals are too narrow with ten controls. Without standard errors the
    distribution of the next estimate is Student's, with n - 1 degrees of freedom.

    Bodnar, Link, Arendacka, Possolo and Elster (2017), Statistics in Medicine 36, 378-399,
    doi:10.1002/sim.7156.
    """
    x, share = np.ones((log_rr.size, 1)), np.ones((log_rr.size, 1))
    y, far = log_rr, 1.0
    if true_log_rr is not None:
        x = np.column_stack([np.ones(log_rr.size), true_log_rr])
        # Of the standard deviations at 0 and at the largest effect, which are both positive.
        far = float(np.abs(true_log_rr).max())
        share = np.column_stack([1 - np.abs(true_log_rr) / far, np.abs(true_log_rr) / far])
    low, high = SMALLEST / np.sqrt(np.mean(1 / se**2)), LARGEST * (np.ptp(y) + se.max())
    axes = [(np.log(low), np.log(high))] * x.shape[1]
    for _ in range(2):
        points = [np.linspace(*ends, N_SD[len(axes)]) for ends in axes]
        log_sd = np.array(np.meshgrid(*points, indexing="ij")).reshape(len(axes), -1).T
        log_weight, mean, covariance = _posterior(np.exp(log_sd), x, share, y, se)
        weight = np.exp(log_weight - log_weight.max())
        used = weight > NEGLIGIBLE
        # Once more, on the part of the grid that has any weight.
        axes = [_around(own[used], at) for own, at in zip(log_sd.T, points, strict=True)]
    weight, mean, covariance = weight[used], mean[used], covariance[used]
    sd, nothing = np.exp(log_sd[used]), np.zeros(weight.size)
    if true_log_rr is None:
        mean = np.column_stack([mean, nothing + 1])
        covariance = np.column_stack([covariance, nothing, nothing])
        line = np.column_stack([sd, nothing])
    else:
        line = np.column_stack([sd[:, 0], (sd[:, 1] - sd[:, 0]) / far])
    return ErrorPosterior(y.size, mean, covariance, line, weight / weight.sum())


def _around(used: Numbers, points: Numbers) -> tuple[float, float]:
    """Ends of the part of an axis that is used, and one step more on either side."""
    step = points[1] - points[0]
    return max(used.min() - step, points[0]), min(used.max() + step, points[-1])


def _posterior(
    sd: Numbers, x: Numbers, share: Numbers, y: Numbers, se: Numbers
) -> tuple[Numbers, Numbers, Numbers]:
    """Log posterior of the logarithms of standard deviations, the means integrated out (k,).

    With it the mean (k, p) and the covariance of the means: the upper triangle, (k, 1) or (k, 3).
    """
    of_control = sd @ share.T
    w = 1 / (of_control**2 + se**2)
    information, of_y = _products(w, x), w @ (x * y[:, None])
    if x.shape[1] == 1:
        determinant = information[:, 0]
        covariance = 1 / information
        mean = of_y * covariance
    else:
        determinant = _determinant(information)
        covariance = information[:, [2, 1, 0]] * [1.0, -1.0, 1.0] / determinant[:, None]
        mean = np.column_stack([(covariance[:, k : k + 2] * of_y).sum(axis=1) for k in range(2)])
    away = (w * (y - mean @ x.T) ** 2).sum(axis=1)
    log_posterior = 0.5 * (np.log(w).sum(axis=1) - np.log(determinant) - away)
    prior = _products((of_control * w) ** 2, share)
    own = prior[:, 0] if prior.shape[1] == 1 else _determinant(prior)
    return log_posterior + 0.5 * np.log(own) + np.log(sd).sum(axis=1), mean, covariance


def _products(w: Numbers, x: Numbers) -> Numbers:
    """Upper triangles of the weighted products X'WX, for each row of w."""
    p = x.shape[1]
    pairs = [x[:, i] * x[:, j] for i in range(p) for j in range(i, p)]
    return np.asarray(w @ np.column_stack(pairs))


def _determinant(upper: Numbers) -> Numbers:
    return np.asarray(upper[:, 0] * upper[:, 2] - upper[:, 1] ** 2)
