"""E-values: how strong unmeasured confounding has to be to explain an estimate."""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from riskset._errors import CohortError, InputError
from riskset._types import is_number
from riskset.cohort.estimate import Estimate

__all__ = ["EValue", "RatioScale", "e_value", "is_common", "of_interval"]

RatioScale = Literal["hazard", "odds", "rate", "risk"]

RARE = 0.15
"""Below this proportion of people with the outcome, odds and hazard ratios are close to risk
ratios (VanderWeele and Ding 2017)."""


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
    if not (common is None or isinstance(common, bool)):
        raise CohortError("BadEstimates", f"`common` must be True or False, but it is {common!r}.")
    if isinstance(estimate, Estimate):
        _refuse_more(lower, upper, scale)
        found = (estimate.hr, estimate.hr_lower, estimate.hr_upper)
        if common is None:
            arms = (estimate.target, estimate.comparator)
            common = any(is_common(arm.outcomes, arm.exposures) for arm in arms)
        return of_interval(found, estimate.scale, common)
    if scale is None:
        raise CohortError(
            "BadEstimates",
            "`scale` is missing: a number does not say what it is a ratio of.",
            hint="pass scale='hazard', 'odds', 'rate' or 'risk'.",
        )
    if scale not in get_args(RatioScale):
        raise InputError.wrong_option("scale", scale, get_args(RatioScale))
    if common is None and scale in ("hazard", "odds"):
        raise CohortError(
            "BadEstimates",
            "`common` is missing: whether the outcome is common decides how the ratio becomes a "
            "risk ratio.",
            hint="pass common=True if at least 15 % of the people have the outcome by the end of "
            "follow-up, otherwise common=False.",
        )
    return of_interval(_checked(estimate, lower, upper), scale, bool(common))


def _refuse_more(lower: float | None, upper: float | None, scale: str | None) -> None:
    for name, value in (("lower", lower), ("upper", upper), ("scale", scale)):
        if value is not None:
            raise CohortError(
                "BadEstimates",
                f"`{name}` was given together with an Estimate, which has it.",
                hint="leave it out.",
            )


def is_common(outcomes: float, exposures: float) -> bool:
    """Whether at least 15 % of the rows of an arm have the outcome."""
    return outcomes >= RARE * exposures > 0


def _checked(ratio: float, lower: float | None, upper: float | None) -> tuple[float, float, float]:
    named = {"estimate": ratio, "lower": lower, "upper": upper}
    for name, value in named.items():
        is_least = name == "lower" and value == 0
        if value is None and name != "estimate":
            continue
        if not (is_number(value) and (value > 0 or is_least)):
            raise CohortError(
                "BadEstimates",
                f"`{name}` must be a positive number, but it is {value!r}.",
                hint="pass a ratio, not its logarithm.",
            )
    low, high = (np.nan if end is None else float(end) for end in (lower, upper))
    if low > ratio or ratio > high:
        raise CohortError(
            "BadEstimates",
            f"the estimate {ratio:g} is outside of its interval from {low:g} to {high:g}.",
            hint="pass the ratio, the lower and the upper limit, in this order.",
        )
    return float(ratio), low, high


def of_interval(found: tuple[float, float, float], scale: RatioScale, common: bool) -> EValue:
    """The E-value of a ratio with its limits, NaN where unknown."""
    is_converted = common and scale in ("hazard", "odds")
    ratio, lower, upper = (_risk_ratio(x, scale if is_converted else "risk") for x in found)
    if ratio >= 1:
        limit = np.nan if np.isnan(lower) else _of_ratio(max(lower, 1.0))
    else:
        limit = np.nan if np.isnan(upper) else _of_ratio(min(upper, 1.0))
    if np.isnan(ratio):
        limit = np.nan
    return EValue(_of_ratio(ratio), limit, ratio, lower, upper, scale, is_converted)


def _risk_ratio(ratio: float, scale: RatioScale) -> float:
    """The risk ratio that stands for a ratio of a common outcome."""
    if scale == "odds":
        return float(np.sqrt(ratio))
    if scale == "hazard":
        with np.errstate(divide="ignore"):
            root = np.sqrt(np.float64(ratio))
            return float(np.expm1(-np.log(2) * root) / np.expm1(-np.log(2) / root))
    return ratio


def _of_ratio(ratio: float) -> float:
    """The E-value of a risk ratio."""
    if ratio < 1:
        ratio = 1 / ratio if ratio > 0 else np.inf
    return float(ratio + np.sqrt(ratio) * np.sqrt(ratio - 1))
