"""Systematic error that depends on the effect size, from positive controls."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize
from scipy.special import ndtri

__all__ = ["ErrorModel", "fit_error_model"]

Numbers = NDArray[np.float64]

WIDEST = 100.0
"""Ends of intervals are looked for up to here."""


@dataclass(frozen=True)
class ErrorModel:
    r"""Systematic error that depends on the effect size.

    The estimate of an outcome with true log ratio :math:`\theta` has the mean :math:`a + b \theta`
    and the standard deviation :math:`c + d |\theta|` in addition to its standard error.

    Attributes
    ----------
    mean_intercept, mean_slope, sd_intercept, sd_slope : float
        a, b, c, d.
    log_likelihood : float

    Examples
    --------
    >>> import riskset as rs
    >>> true = [0.0] * 6 + [0.5] * 6
    >>> controls = rs.cohort.Controls(
    ...     [0.2, -0.1, 0.3, 0.1, 0.0, 0.25, 0.8, 0.5, 0.7, 0.4, 0.6, 0.9], [0.1] * 12, true
    ... )
    >>> model = rs.cohort.calibrate(controls, [0.5], [0.1], method="likelihood").error_model
    >>> round(model.mean_intercept, 3), round(model.mean_slope, 3)
    (0.125, 1.05)
    """

    mean_intercept: float
    mean_slope: float
    sd_intercept: float
    sd_slope: float
    log_likelihood: float

    def interval(self, log_rr: float, se: float, level: float) -> tuple[float, float, float]:
        r"""Return the calibrated log ratio and the limits of its interval.

        A limit solves :math:`(a + b \theta - y) / \sqrt{(c + d |\theta|)^2 + se^2} = \pm z` between
        -100 and 100. NaN if there is no solution.
        """
        z = float(ndtri(0.5 + level / 2))

        def distance(theta: float) -> float:
            spread = self.sd_intercept + self.sd_slope * abs(theta)
            away = self.mean_intercept + self.mean_slope * theta - log_rr
            return away / float(np.hypot(spread, se))

        def where(quantile: float) -> float:
            return _root(lambda theta: distance(theta) - quantile)

        return where(0.0), where(-z), where(z)


def fit_error_model(log_rr: Numbers, se: Numbers, true_log_rr: Numbers) -> ErrorModel:
    """Maximum likelihood, with c >= 0 and c + d |theta| >= 0 for all controls.

    Given the spread the mean is a weighted regression, so that two numbers are searched for.
    """
    b, s, theta = log_rr, se, true_log_rr
    x = np.column_stack([np.ones(b.size), theta])

    def solved(spread: Numbers) -> tuple[float, Numbers]:
        sd = spread[0] + spread[1] * np.abs(theta)
        if spread[0] < 0 or (sd < 0).any():
            return np.inf, np.zeros(2)
        w = 1 / (sd**2 + s**2)
        mean = np.linalg.lstsq(x * np.sqrt(w)[:, None], b * np.sqrt(w), rcond=None)[0]
        return 0.5 * float((np.log(2 * np.pi / w) + w * (b - x @ mean) ** 2).sum()), mean

    options = {"xatol": 1e-11, "fatol": 1e-15, "maxiter": 4000, "initial_simplex": None}
    best = None
    for start in ([0.1, 0.1], [0.3, 0.0], [0.02, 0.3]):
        options["initial_simplex"] = np.array(start) + np.array([[0, 0], [0.05, 0], [0, 0.05]])
        found = minimize(lambda v: solved(v)[0], start, method="Nelder-Mead", options=options)
        if best is None or found.fun < best.fun:
            best = found
    assert best is not None
    value, mean = solved(best.x)
    return ErrorModel(
        float(mean[0]), float(mean[1]), float(best.x[0]), float(best.x[1]), -float(value)
    )


def _root(f: Callable[[float], float]) -> float:
    if f(-WIDEST) * f(WIDEST) >= 0:
        return float("nan")
    return float(brentq(f, -WIDEST, WIDEST, xtol=1e-12, rtol=1e-14))
