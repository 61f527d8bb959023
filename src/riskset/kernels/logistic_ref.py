"""The likelihood of a logistic regression as a function of the linear predictor, by its formulas.

The intercept is profiled: it always has its best value, so that the likelihood does not change with
a constant added to the linear predictor, and columns need no centring. `logistic_cpu` gives the
same numbers in a few passes.
"""

from typing import NamedTuple

import numpy as np

from riskset._runtime import Runtime
from riskset._types import AnyArray, Matrix, Rows

__all__ = [
    "LogisticPass",
    "fit_intercepts",
    "log_likelihoods",
    "logistic_pass",
    "residuals",
]


class LogisticPass(NamedTuple):
    """One evaluation of the likelihood.

    `residual` (n,) is observed minus expected, weighted: the gradient of the log likelihood in eta,
    which sums to 0. `variance` (n,) is the weighted variance of each row's outcome.
    """

    log_likelihood: float
    residual: Rows
    variance: Rows
    intercept: float


def _miss(z: AnyArray) -> AnyArray:
    """Probability of the outcome that was not seen, 1 / (1 + exp(z)), with all its digits."""
    u = np.exp(-np.abs(z))
    return np.asarray(np.where(z >= 0, u, 1.0) / (1.0 + u))


def _log_likelihood(z: AnyArray, weight: Rows) -> float:
    used = weight > 0
    return -float(np.sum(weight[used] * np.logaddexp(0.0, -z[used])))


def _intercept(eta: Rows, sign: Rows, weight: Rows) -> float:
    """By bisection: the sum of the residuals falls with the intercept."""
    ones, zeros = weight[sign > 0].sum(), weight[sign < 0].sum()
    if ones == 0.0 or zeros == 0.0:
        return 0.0 if ones == zeros else float(np.copysign(np.inf, ones - zeros))
    used = weight > 0
    eta, sign, weight = eta[used], sign[used], weight[used]
    level = np.log(ones / zeros)
    low, high = level - eta.max(), level - eta.min()
    while True:
        middle = 0.5 * (low + high)
        if not low < middle < high:
            return float(middle)
        slope = float(np.sum(weight * sign * _miss(sign * (eta + middle))))
        if slope == 0.0:
            return float(middle)
        low, high = (middle, high) if slope > 0 else (low, middle)


def logistic_pass(eta: Rows, sign: Rows, weight: Rows, runtime: Runtime) -> LogisticPass:
    r"""Log likelihood of a logistic regression and its derivatives in `eta`.

    With :math:`s_i` the sign, 1 for an event and -1 for none, and :math:`z_i = s_i (\eta_i + b)`,

    .. math::
        \ell = -\sum_i w_i \log(1 + e^{-z_i}), \qquad
        residual_i = \frac{w_i s_i}{1 + e^{z_i}}, \qquad
        variance_i = \frac{w_i}{(1 + e^{z_i})(1 + e^{-z_i})}

    where the intercept b makes :math:`\ell` largest, that is, the residuals sum to 0. If all rows
    of positive weight have the same sign, b is infinite, and :math:`\ell = 0`.
    """
    b = _intercept(eta, sign, weight)
    z = sign * (eta + b)
    miss = _miss(z)
    return LogisticPass(
        _log_likelihood(z, weight), weight * sign * miss, weight * miss * _miss(-z), b
    )


def fit_intercepts(eta: Matrix, sign: Rows, unit: Rows, count: AnyArray, intercept: Rows) -> None:
    """The intercept of each lane (8,), as in `logistic_pass`.

    A row weighs its `unit` times its `count` in the lane (n, 8).
    """
    for k in range(intercept.size):
        intercept[k] = _intercept(eta[:, k], sign, unit * count[:, k])


def residuals(
    eta: Matrix,
    sign: Rows,
    unit: Rows,
    count: AnyArray,
    intercept: Rows,
    residual: Matrix,
    value: Rows,
) -> None:
    """Residuals of each lane (n, 8), and its log likelihood (8,), at given intercepts."""
    log_likelihoods(eta, sign, unit, count, intercept, value)
    miss = _miss(sign[:, None] * (eta + intercept))
    residual[:] = unit[:, None] * count * sign[:, None] * miss


def log_likelihoods(
    eta: Matrix, sign: Rows, unit: Rows, count: AnyArray, intercept: Rows, value: Rows
) -> None:
    """The log likelihood of each lane alone; see `residuals`."""
    for k in range(value.size):
        value[k] = _log_likelihood(sign * (eta[:, k] + intercept[k]), unit * count[:, k])
