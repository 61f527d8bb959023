"""How much of the variation of survival a prognostic index explains."""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from riskset._errors import NotDefinedError
from riskset._types import Rows
from riskset.data.design import Design
from riskset.infer.variance import model_covariance
from riskset.model.loss import Loss
from riskset.solve.fit import fit_by_newton
from riskset.solve.result import Solution

__all__ = ["ExplainedVariation", "explained_variation", "normal_scores"]

KAPPA = float(np.sqrt(8.0 / np.pi))
EXTREME_VALUE_VARIANCE = np.pi**2 / 6.0
"""Variance of the logarithm of a time with a constant hazard."""
TOL = 1e-11


@dataclass(frozen=True)
class ExplainedVariation:
    """Separation and explained variation of a prognostic index.

    Attributes
    ----------
    d, d_standard_error : float
        Royston and Sauerbrei's D: the log hazard ratio between two halves of rows with a higher and
        a lower index, if it is normal.
    r2_d : float
        Explained variation from D.
    r2_kent_oquigley : float
        Explained variation from the variance of the index.
    r2_cox_snell, r2_nagelkerke : float
        From the likelihood ratio per row; Nagelkerke's is divided by its largest possible value.
    r2_oquigley : float
        From the likelihood ratio per event, which censoring changes less.
    """

    d: float
    d_standard_error: float
    r2_d: float
    r2_kent_oquigley: float
    r2_cox_snell: float
    r2_nagelkerke: float
    r2_oquigley: float


def explained_variation(loss: Loss, index: Rows) -> ExplainedVariation:
    r"""Of a prognostic index (n,), which a Cox model calibrates to the data of the loss first.

    With the calibrated index :math:`\eta`, the slope b of a Cox model on its normal scores (Blom's
    :math:`\Phi^{-1}((i - 3/8) / (n + 1/4))` of ranks i, averaged over equal values), the likelihood
    ratio LR of the index, n rows and d events,

    .. math::
        D = b \sqrt{8 / \pi}, \quad R^2_D = \frac{b^2}{\pi^2/6 + b^2}, \quad
        R^2_{KO} = \frac{\mathrm{Var}(\eta)}{\pi^2/6 + \mathrm{Var}(\eta)}

    .. math::
        R^2_{CS} = 1 - e^{-LR/n}, \quad R^2_N = \frac{R^2_{CS}}{1 - e^{2 \ell(0) / n}}, \quad
        R^2_{O'Quigley} = 1 - e^{-LR/d}

    A case weight is a whole number w and stands for w rows.

    Raises
    ------
    NotDefinedError
        If the index is constant, or separates events so that a slope is infinite.
    """
    weight = loss.outcome.weight
    n = float(weight.sum())
    loss = loss.shifted(np.zeros(index.size), loss.runtime)
    calibrated, _ = _slope(loss, index)
    eta = calibrated.coef[0] * index
    variance = float(weight @ (eta - weight @ eta / n) ** 2) / (n - 1.0)
    scores = normal_scores(index, weight)
    found, error = _slope(loss, scores)
    square = float(found.coef[0]) ** 2
    null = calibrated.null_log_likelihood
    ratio = 2.0 * (calibrated.log_likelihood - null)
    cox_snell = -np.expm1(-ratio / n)
    return ExplainedVariation(
        d=float(found.coef[0]) * KAPPA,
        d_standard_error=error * KAPPA,
        r2_d=square / (EXTREME_VALUE_VARIANCE + square),
        r2_kent_oquigley=variance / (EXTREME_VALUE_VARIANCE + variance),
        r2_cox_snell=float(cox_snell),
        r2_nagelkerke=float(cox_snell / -np.expm1(2.0 * null / n)),
        r2_oquigley=float(-np.expm1(-ratio / loss.n_events)),
    )


def normal_scores(values: Rows, weight: Rows) -> Rows:
    """Blom's normal scores (n,) of the ranks, averaged over equal values; 0 for rows of weight 0.

    A row of weight w, a whole number, has w ranks.
    """
    _, kind = np.unique(values, return_inverse=True)
    count = np.bincount(kind, weight)
    last = np.rint(np.cumsum(count)).astype(np.int64)
    n = int(last[-1])
    summed = np.append(0.0, np.cumsum(ndtri((np.arange(1, n + 1) - 0.375) / (n + 0.25))))
    first = np.append(0, last[:-1])
    means = (summed[last] - summed[first]) / np.maximum(last - first, 1)
    return np.where(weight > 0, means[kind], 0.0)


def _slope(loss: Loss, column: Rows) -> tuple[Solution, float]:
    """A Cox model with one covariate, and the standard error of its coefficient."""
    design, none = Design.from_dense(column[:, None]), np.zeros(1)
    found = fit_by_newton(design, loss, none, none, tol=TOL)
    if found.status != "converged":
        raise NotDefinedError(
            "explained variation is not defined for this index: its slope in a Cox model has the "
            f"status {found.status!r}.",
            hint="it is so if the index is constant, or orders all events.",
        )
    covariance = model_covariance(loss, design, found.eta)
    return found, float(covariance.standard_error[0])
