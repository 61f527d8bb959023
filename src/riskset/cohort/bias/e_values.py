"""E-values: how strong unmeasured confounding has to be to explain an estimate."""

from dataclasses import dataclass

import numpy as np

from riskset.cohort.bias.risk_ratios import RatioScale, RiskRatio, as_risk_ratio, converted
from riskset.cohort.effects.estimate import Estimate

__all__ = ["EValue", "e_value", "e_value_of", "of_interval"]


@dataclass(frozen=True)
class EValue:
    """E-value of an estimate and of its interval, the result of `e_value`.

    Attributes
    ----------
    estimate : float
        E-value of the estimate, at least 1; may be infinite.
    limit : float
        E-value of the limit of the interval that is closest to 1. It is 1 if the interval contains
        1, and NaN if the limit is unknown.
    risk_ratio, risk_ratio_lower, risk_ratio_upper : float
        Estimate and interval as risk ratios, exact or approximate.
    scale : {"hazard", "odds", "rate", "risk"}
        Scale of the estimate as given.
    is_common : bool
        Whether the approximation for common outcomes was used.

    Examples
    --------
    >>> import riskset as rs
    >>> found = rs.cohort.e_value(0.8, 0.71, 0.91, scale="risk")
    >>> round(found.estimate, 2), round(found.limit, 2)
    (1.81, 1.43)
    """

    estimate: float
    limit: float
    risk_ratio: float
    risk_ratio_lower: float
    risk_ratio_upper: float
    scale: RatioScale
    is_common: bool


def e_value(
    estimate: Estimate | float,
    lower: float | None = None,
    upper: float | None = None,
    *,
    scale: RatioScale | None = None,
    common: bool | None = None,
) -> EValue:
    r"""Compute the E-value of a ratio and of its interval.

    The E-value is the smallest risk ratio that an unmeasured confounder must have with both the
    treatment and the outcome, beyond the measured covariates, to explain the estimate completely.
    For a risk ratio above 1, and for 1 / RR below 1, it is

    .. math:: E = RR + \sqrt{RR \, (RR - 1)}

    Rate ratios, and hazard and odds ratios of rare outcomes, are used as risk ratios. With common
    outcomes, a hazard ratio h becomes :math:`(1 - 0.5^{\sqrt h}) / (1 - 0.5^{\sqrt{1/h}})`, and an
    odds ratio becomes its square root.

    Parameters
    ----------
    estimate : Estimate or float
        Result of `fit_outcome`, or a ratio.
    lower, upper : float, optional
        Limits of the interval of a ratio. An `Estimate` has them.
    scale : {"hazard", "odds", "rate", "risk"}, optional
        What a number is a ratio of. An `Estimate` knows it.
    common : bool, optional
        Whether at least 15 % of the people have the outcome by the end of follow-up. Required for a
        hazard or odds ratio that is a number. Default for an `Estimate`: whether at least 15 % of
        the rows of an arm have the outcome.

    Returns
    -------
    EValue

    Raises
    ------
    CohortError
        "BadEstimates": the ratio is not positive or is outside of its interval, or its scale is
        missing.

    Notes
    -----
    A large E-value does not show that there is no confounding, and a small one does not show that
    there is. It says nothing about measurement error, selection or chance beyond the interval. What
    strength is plausible depends on the subject, and on the covariates that the adjustment has.

    References
    ----------
    VanderWeele and Ding (2017), Annals of Internal Medicine 167, 268-274, doi:10.7326/M16-2607.
    VanderWeele (2017), On a square-root transformation of the odds ratio for a common outcome,
    Epidemiology 28, e58-e60, doi:10.1097/EDE.0000000000000733.

    Examples
    --------
    >>> import riskset as rs
    >>> found = rs.cohort.e_value(3.9, 1.8, 8.7, scale="risk")
    >>> round(found.estimate, 2), round(found.limit, 2)
    (7.26, 3.0)
    >>> people = rs.cohort.Population([1, 0, 1, 0, 1, 0])
    >>> y = rs.Surv([3, 5, 8, 2, 9, 7], [1, 1, 0, 1, 1, 0])
    >>> found = rs.cohort.e_value(rs.cohort.fit_outcome(y, people))
    >>> found.is_common, round(found.estimate, 2), found.limit
    (True, 2.95, 1.0)
    """
    found = as_risk_ratio(estimate, lower, upper, scale=scale, common=common)
    return _of_risk_ratio(found)


def of_interval(found: tuple[float, float, float], scale: RatioScale, common: bool) -> EValue:
    """The E-value of a ratio with its limits, NaN where unknown."""
    return _of_risk_ratio(converted(found, scale, common))


def _of_risk_ratio(found: RiskRatio) -> EValue:
    return EValue(
        e_value_of(found.ratio),
        np.nan if np.isnan(found.ratio) else e_value_of(found.limit),
        found.ratio,
        found.lower,
        found.upper,
        found.scale,
        found.is_common,
    )


def e_value_of(ratio: float) -> float:
    """The E-value of a risk ratio."""
    if ratio < 1:
        ratio = 1 / ratio if ratio > 0 else np.inf
    return float(ratio + np.sqrt(ratio) * np.sqrt(ratio - 1))
