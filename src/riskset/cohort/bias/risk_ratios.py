"""Ratios of any scale as risk ratios, which analyses of unmeasured confounding are about."""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from riskset._errors import CohortError, InputError
from riskset._types import is_number
from riskset.cohort.effects.estimate import Estimate

__all__ = ["RatioScale", "RiskRatio", "as_given", "as_risk_ratio", "converted", "is_common"]

RatioScale = Literal["hazard", "odds", "rate", "risk"]

RARE = 0.15
"""Below this proportion of people with the outcome, odds and hazard ratios are close to risk
ratios (VanderWeele and Ding 2017)."""


@dataclass(frozen=True)
class RiskRatio:
    """An estimate and its interval as risk ratios, exact or approximate.

    Attributes
    ----------
    ratio, lower, upper : float
        NaN where unknown.
    scale : {"hazard", "odds", "rate", "risk"}
        Scale of the estimate as given.
    is_common : bool
        Whether the approximation for common outcomes was used.

    Examples
    --------
    >>> import riskset as rs
    >>> interval = {"lower": 2.25, "upper": 6.25, "scale": "odds", "common": True}
    >>> found = rs.cohort.tipping_points(4.0, **interval, difference=1)
    >>> found.observed.ratio, found.observed.limit
    (2.0, 1.5)
    """

    ratio: float
    lower: float
    upper: float
    scale: RatioScale
    is_common: bool

    @property
    def limit(self) -> float:
        """The limit closest to 1: 1 if the interval contains 1, NaN if the limit is unknown."""
        if self.ratio >= 1:
            return float(np.maximum(self.lower, 1.0))
        return float(np.minimum(self.upper, 1.0))


def as_risk_ratio(
    estimate: Estimate | float,
    lower: float | None = None,
    upper: float | None = None,
    *,
    scale: RatioScale | None = None,
    common: bool | None = None,
) -> RiskRatio:
    """A ratio with its interval as a risk ratio; the arguments are those of `e_value`."""
    return converted(*as_given(estimate, lower, upper, scale=scale, common=common))


def as_given(
    estimate: Estimate | float,
    lower: float | None = None,
    upper: float | None = None,
    *,
    scale: RatioScale | None = None,
    common: bool | None = None,
) -> tuple[tuple[float, float, float], RatioScale, bool]:
    """A ratio with its interval, its scale, and whether its outcome is common, once checked."""
    if not (common is None or isinstance(common, bool | np.bool_)):
        raise CohortError("BadEstimates", f"`common` must be True or False, but it is {common!r}.")
    if isinstance(estimate, Estimate):
        _refuse_more(lower, upper, scale)
        found = (estimate.hr, estimate.hr_lower, estimate.hr_upper)
        if common is None:
            arms = (estimate.target, estimate.comparator)
            common = any(is_common(arm.outcomes, arm.exposures) for arm in arms)
        return found, estimate.scale, bool(common)
    if scale is None:
        raise CohortError(
            "BadEstimates",
            "`scale` is missing: riskset needs to know what `estimate` is a ratio of.",
            hint="pass scale='hazard', 'odds', 'rate' or 'risk'.",
        )
    if scale not in get_args(RatioScale):
        raise InputError.wrong_option("scale", scale, get_args(RatioScale))
    if common is None and scale in ("hazard", "odds"):
        raise CohortError(
            "BadEstimates",
            "`common` is missing: hazard and odds ratios are converted to risk ratios if the "
            "outcome is common.",
            hint="pass common=True if at least 15 % of the people have the outcome by the end of "
            "follow-up, otherwise common=False.",
        )
    return _checked(estimate, lower, upper), scale, bool(common)


def _refuse_more(lower: float | None, upper: float | None, scale: str | None) -> None:
    for name, value in (("lower", lower), ("upper", upper), ("scale", scale)):
        if value is not None:
            raise CohortError(
                "BadEstimates",
                f"`{name}` was given together with an Estimate, which already has it.",
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
            f"the estimate {ratio:g} is {_outside(ratio, low, high)}.",
            hint="check the ratio, and the lower and the upper limit of its interval.",
        )
    return float(ratio), low, high


def _outside(ratio: float, low: float, high: float) -> str:
    """Where an estimate lies that is not between its limits, one of which may be NaN."""
    if np.isfinite(low) and not np.isnan(high):
        return f"outside of its interval from {low:g} to {high:g}"
    return f"below its lower limit {low:g}" if low > ratio else f"above its upper limit {high:g}"


def converted(found: tuple[float, float, float], scale: RatioScale, common: bool) -> RiskRatio:
    """A ratio with its limits, NaN where unknown, as a risk ratio."""
    is_converted = common and scale in ("hazard", "odds")
    ratio, lower, upper = (_risk_ratio(x, scale if is_converted else "risk") for x in found)
    return RiskRatio(ratio, lower, upper, scale, is_converted)


def _risk_ratio(ratio: float, scale: RatioScale) -> float:
    """The risk ratio that stands for a ratio of a common outcome."""
    if scale == "odds":
        return float(np.sqrt(ratio))
    if scale == "hazard":
        with np.errstate(divide="ignore"):
            root = np.sqrt(np.float64(ratio))
            return float(np.expm1(-np.log(2) * root) / np.expm1(-np.log(2) / root))
    return ratio
