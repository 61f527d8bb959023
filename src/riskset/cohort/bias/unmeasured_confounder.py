"""Tipping points: which unmeasured confounder moves the interval of an estimate to 1."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from riskset._errors import CohortError, InputError, counted
from riskset._types import AnyArray, Rows
from riskset.cohort.bias.confounder_bias import BINARY, NORMAL, ConfounderValues, bias_of, solved
from riskset.cohort.bias.risk_ratios import RatioScale, RiskRatio, as_risk_ratio
from riskset.cohort.covariates.covariate_balance import Balance
from riskset.cohort.effects.estimate import Estimate
from riskset.data.checks import Places, as_numbers
from riskset.data.frame import data_frame

__all__ = [
    "ConfounderAdjusted",
    "TippingPoints",
    "adjust_for_confounder",
    "adjusted_for",
    "covariate_strengths",
    "tipping_effects",
    "tipping_points",
]

LIMITS = {
    "target_prevalence": (0.0, 1.0, "between 0 and 1"),
    "comparator_prevalence": (0.0, 1.0, "between 0 and 1"),
    "difference": (-np.inf, np.inf, "finite"),
    "effect": (np.nextafter(0, 1), np.inf, "above 0"),
}


@dataclass(frozen=True, eq=False, repr=False)
class ConfounderAdjusted:
    """Estimates without the bias of a confounder, the result of `adjust_for_confounder`.

    Attributes
    ----------
    target_prevalence, comparator_prevalence, difference, effect : (n,) float64
        The confounders: every combination of the given values. NaN where it does not apply.
    bias : (n,) float64
        Factor by which the confounder makes the ratio too large.
    ratio, lower, upper : (n,) float64
        Adjusted risk ratio and its interval, exact or approximate (`observed`).
    tips : (n,) bool
        Whether the interval contains 1 or lies on the other side of it. Without the limit that is
        closest to 1, whether the ratio does.
    n_needed : (n,) float64
        Number of independent confounders of this kind that together move the interval to 1. 0 if it
        contains 1, NaN if the confounder does not move the interval towards 1.
    observed : RiskRatio
        The estimate without any adjustment; `is_common` says whether it was converted.

    Examples
    --------
    >>> import riskset as rs
    >>> found = rs.cohort.adjust_for_confounder(
    ...     1.5, 1.2, 1.8, scale="risk", difference=0.25, effect=[1.5, 3]
    ... )
    >>> found.lower.round(3), found.tips
    (array([1.084, 0.912]), array([False,  True]))
    """

    target_prevalence: Rows
    comparator_prevalence: Rows
    difference: Rows
    effect: Rows
    bias: Rows
    ratio: Rows
    lower: Rows
    upper: Rows
    tips: AnyArray
    n_needed: Rows
    observed: RiskRatio

    def columns(self) -> dict[str, AnyArray]:
        """Return one row for each confounder."""
        return {
            name: getattr(self, name)
            for name in self.__dataclass_fields__
            if name != "observed" and not _is_unknown(getattr(self, name))
        }

    def to_frame(self, library: str | None = None) -> Any:
        """Return `columns` as a data frame."""
        return data_frame(self.columns(), library)

    def __repr__(self) -> str:
        number = counted(self.bias.size, "confounder")
        return f"ConfounderAdjusted({number}, of which {int(self.tips.sum()):,} tip the result)"


@dataclass(frozen=True, eq=False, repr=False)
class TippingPoints:
    """Tipping points of an estimate, the result of `tipping_points`.

    Attributes
    ----------
    target_prevalence, comparator_prevalence, difference, effect : (n,) float64
        The confounders: every combination of the given values, and the tipping point of the
        interval in place of `unknown`. NaN where it does not apply, or where no value is enough.
    of_estimate : (n,) float64
        The tipping point of the estimate itself.
    unknown : {"target_prevalence", "comparator_prevalence", "difference", "effect"}
        What was left out.
    observed : RiskRatio
        The estimate as a risk ratio; `is_common` says whether it was converted.

    Examples
    --------
    >>> import riskset as rs
    >>> found = rs.cohort.tipping_points(
    ...     1.5, 1.2, 1.8, scale="risk", target_prevalence=0.25, comparator_prevalence=[0.1, 0.2]
    ... )
    >>> found.effect.round(2), found.of_estimate
    (array([ 2.54, 21.  ]), array([ 6., nan]))
    """

    target_prevalence: Rows
    comparator_prevalence: Rows
    difference: Rows
    effect: Rows
    of_estimate: Rows
    unknown: str
    observed: RiskRatio

    @property
    def is_binary(self) -> bool:
        """Whether the confounder is binary; otherwise it is normal."""
        return self.unknown != "difference" and bool(np.isnan(self.difference).all())

    def columns(self) -> dict[str, AnyArray]:
        """Return one row for each confounder; ``unknown_of_estimate`` is that of the estimate."""
        names = BINARY if self.is_binary else NORMAL
        out: dict[str, AnyArray] = {name: getattr(self, name) for name in names}
        return out | {f"{self.unknown}_of_estimate": self.of_estimate}

    def to_frame(self, library: str | None = None) -> Any:
        """Return `columns` as a data frame."""
        return data_frame(self.columns(), library)

    def __repr__(self) -> str:
        kind = "binary" if self.is_binary else "normal"
        return f"TippingPoints({self.of_estimate.size:,} of a {kind} confounder: {self.unknown})"


def adjust_for_confounder(
    estimate: Estimate | float,
    lower: float | None = None,
    upper: float | None = None,
    *,
    effect: object,
    target_prevalence: object = None,
    comparator_prevalence: object = None,
    difference: object = None,
    scale: RatioScale | None = None,
    common: bool | None = None,
) -> ConfounderAdjusted:
    r"""Adjust a ratio for an unmeasured confounder of assumed strength.

    The ratio and the limits of its interval are divided by the bias

    .. math:: \frac{1 + (g - 1) p_1}{1 + (g - 1) p_0} \quad \text{or} \quad g^d

    of a binary confounder with the prevalences :math:`p_1` and :math:`p_0`, or of a normal
    confounder whose means differ by d.

    Parameters
    ----------
    estimate, lower, upper, scale, common
        The estimate, as of `e_value`.
    effect : float, or sequence of floats
        Risk ratio g of the outcome with the confounder versus without it, or per unit of a normal
        confounder, in both arms alike.
    target_prevalence, comparator_prevalence : float, or sequence of floats, in [0, 1]
        Proportions :math:`p_1` and :math:`p_0` of people with a binary confounder, given the
        measured covariates.
    difference : float, or sequence of floats
        Mean d of a normal confounder in the target less that in the comparator, in its unit (such
        as its standard deviation), given the measured covariates.

    Returns
    -------
    ConfounderAdjusted
        A row for each combination of the values.

    Raises
    ------
    CohortError
        "BadEstimates": as `e_value`. "BadConfounder": values that are missing, out of range, or of
        both kinds.

    Notes
    -----
    The formulas are exact for risk ratios of a log-linear model in which treatment and confounder
    do not interact. Hazard and odds ratios of rare outcomes are used as risk ratios; those of
    common outcomes are converted first, as by `e_value`. The interval accounts for chance only:
    the assumed values are taken as exact.

    References
    ----------
    Lin, Psaty and Kronmal (1998), Biometrics 54, 948-963, doi:10.2307/2533848.
    VanderWeele and Arah (2011), Epidemiology 22, 42-52, doi:10.1097/EDE.0b013e3181f74493.
    D'Agostino McGowan (2022), tipr: An R package for sensitivity analyses for unmeasured
    confounders, Journal of Open Source Software 7, 4495, doi:10.21105/joss.04495.

    Examples
    --------
    >>> import riskset as rs
    >>> found = rs.cohort.adjust_for_confounder(
    ...     0.87, 0.79, 0.96, scale="hazard", common=False,
    ...     target_prevalence=0.04, comparator_prevalence=0.06, effect=2,
    ... )
    >>> found.ratio.round(3), found.lower.round(3), found.upper.round(3)
    (array([0.887]), array([0.805]), array([0.978]))
    """
    observed = as_risk_ratio(estimate, lower, upper, scale=scale, common=common)
    given = _given(
        target_prevalence=target_prevalence,
        comparator_prevalence=comparator_prevalence,
        difference=difference,
        effect=effect,
    )
    kind = _kind(given)
    for name in kind:
        if name not in given:
            raise _bad(f"`{name}` is missing.", "a number, or a sequence of numbers.")
    return adjusted_for(observed, _grid(given))


def adjusted_for(observed: RiskRatio, of: ConfounderValues) -> ConfounderAdjusted:
    """The risk ratio and its interval without the bias of each confounder."""
    bias, limit = bias_of(of), observed.limit
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        ends = (observed.ratio, observed.lower, observed.upper)
        ratio, lowest, highest = (np.asarray(end / bias) for end in ends)
    nearest = lowest if observed.ratio >= 1 else highest
    nearest = ratio if np.isnan(limit) else nearest
    tips = nearest <= 1 if observed.ratio >= 1 else nearest >= 1
    return ConfounderAdjusted(
        *of,
        bias,
        ratio,
        lowest,
        highest,
        np.asarray(tips, dtype=np.bool_),
        _n_needed(bias, limit),
        observed,
    )


def tipping_points(
    estimate: Estimate | float,
    lower: float | None = None,
    upper: float | None = None,
    *,
    effect: object = None,
    target_prevalence: object = None,
    comparator_prevalence: object = None,
    difference: object = None,
    scale: RatioScale | None = None,
    common: bool | None = None,
) -> TippingPoints:
    r"""Find the unmeasured confounder that moves the interval of a ratio to 1.

    One of the values that describe a confounder is left out, and is the result: the value with
    which the bias of `adjust_for_confounder` is the limit L of the interval that is closest to 1.
    The effect of a binary confounder is

    .. math:: g = 1 + \frac{L - 1}{p_1 - L \, p_0}

    and that of a normal one :math:`L^{1 / d}`.

    Parameters
    ----------
    estimate, lower, upper, scale, common
        The estimate, as of `e_value`.
    effect, target_prevalence, comparator_prevalence
        A binary confounder, as of `adjust_for_confounder`; leave one of them out.
    difference, effect
        A normal confounder; leave one of them out.

    Returns
    -------
    TippingPoints
        A row for each combination of the values. NaN means that no value is enough. If the interval
        contains 1, its tipping point is the value without bias, such as an effect of 1.

    Raises
    ------
    CohortError
        "BadEstimates": as `e_value`. "BadConfounder": values that are out of range, of both kinds,
        or too many or too few of them.

    Notes
    -----
    See `adjust_for_confounder` for the assumptions. A tipping point does not show that there is no
    effect. If there is a confounder beyond it, the data are compatible with no effect.

    References
    ----------
    Lin, Psaty and Kronmal (1998), Biometrics 54, 948-963, doi:10.2307/2533848.
    D'Agostino McGowan (2022), Current Epidemiology Reports 9, 361-375,
    doi:10.1007/s40471-022-00308-6.

    Examples
    --------
    >>> import riskset as rs
    >>> interval = {"lower": 1.2, "upper": 1.8, "scale": "risk"}
    >>> rs.cohort.tipping_points(1.5, **interval, effect=1.5).difference.round(2)
    array([0.45])
    >>> found = rs.cohort.tipping_points(1.5, **interval, comparator_prevalence=0.1, effect=[2, 4])
    >>> found.target_prevalence.round(3)
    array([0.32 , 0.187])
    """
    observed = as_risk_ratio(estimate, lower, upper, scale=scale, common=common)
    given = _given(
        target_prevalence=target_prevalence,
        comparator_prevalence=comparator_prevalence,
        difference=difference,
        effect=effect,
    )
    kind = _kind(given)
    left = [name for name in kind if name not in given]
    if len(left) != 1:
        listed = ", ".join(f"`{name}`" for name in kind)
        raise CohortError(
            "BadConfounder",
            f"exactly one of {listed} must be left out, but {len(left)} are.",
            hint="leave out the one to compute, and give the others."
            if left
            else "use `riskset.cohort.adjust_for_confounder` if you know all of them.",
        )
    of, unknown = _grid(given), left[0]
    values = of._asdict() | {unknown: solved(unknown, of, observed.limit)}
    return TippingPoints(
        **values,
        of_estimate=solved(unknown, of, observed.ratio),
        unknown=unknown,
        observed=observed,
    )


def tipping_effects(observed: RiskRatio, of: ConfounderValues) -> tuple[Rows, Rows]:
    """Effects with which the interval reaches 1, and with which the estimate does."""
    return solved("effect", of, observed.limit), solved("effect", of, observed.ratio)


def covariate_strengths(estimate: Estimate, balance: Balance) -> dict[str, tuple[float, float]]:
    r"""Return how strong measured covariates are, to compare an unmeasured confounder with them.

    Parameters
    ----------
    estimate : Estimate
        Result of `fit_outcome` with covariates.
    balance : Balance
        Balance of the same covariates.

    Returns
    -------
    dict of str to (float, float)
        For each covariate whose coefficient is not 0: the standardised difference before
        adjustment, and the ratio of the outcome per standard deviation, :math:`e^{b s}`. Both are
        those of `difference` and `effect` of `tipping_points`.

    Raises
    ------
    CohortError
        "BadCovariates": the outcome model has no covariate of the balance.

    Notes
    -----
    The standard deviation s is the root of the mean variance of both arms before adjustment. A
    penalty makes coefficients smaller than they are. Within matched sets, covariates hardly vary,
    so take them from an estimate that is not stratified by sets (``reading="marginal"``).

    References
    ----------
    Cinelli and Hazlett (2020), Journal of the Royal Statistical Society B 82, 39-67,
    doi:10.1111/rssb.12348.

    Examples
    --------
    >>> import riskset as rs
    >>> data = rs.simulate_cox(400, 3, 0.5, seed=1)
    >>> people = rs.cohort.Population([1, 0] * 200)
    >>> y = rs.Surv(data.time, data.event)
    >>> estimate = rs.cohort.fit_outcome(y, people, covariates=data.X)
    >>> strengths = rs.cohort.covariate_strengths(estimate, rs.cohort.balance(data.X, people))
    >>> len(strengths)
    3
    """
    place = {key: k for k, key in enumerate(balance.keys)}
    side = balance.before
    spread = np.sqrt((side.sd_target**2 + side.sd_comparator**2) / 2)
    found = {}
    for key, name, coef in zip(estimate.keys, estimate.names, estimate.coef, strict=True):
        k = place.get(key)
        if k is not None and coef and np.isfinite(side.smd[k]):
            found[name] = (float(side.smd[k]), float(np.exp(coef * spread[k])))
    if not found:
        raise CohortError(
            "BadCovariates",
            "no covariate of the balance has a coefficient other than 0 in the outcome model.",
            hint="fit it with `covariates`, and balance the same ones.",
        )
    return found


def _given(**values: object) -> dict[str, Rows]:
    """The values that were given, as finite numbers within their limits."""
    return {name: _numbers(name, one) for name, one in values.items() if one is not None}


def _numbers(name: str, values: object) -> Rows:
    least, most, words = LIMITS[name]
    try:
        found = as_numbers(np.atleast_1d(values), name, None, Places())  # type: ignore[call-overload]
    except InputError as error:
        raise _bad(error.message, "a number, or a sequence of numbers.") from None
    if not found.size:
        raise _bad(f"`{name}` has no value.", "a number, or a sequence of numbers.")
    outside = found[(found < least) | (found > most)]
    if outside.size:
        among = f"{outside[0]:g} is among them" if found.size > 1 else f"it is {outside[0]:g}"
        raise _bad(f"`{name}` must be {words}, but {among}.")
    return found


def _bad(message: str, hint: str | None = None) -> CohortError:
    return CohortError("BadConfounder", message, hint=hint and f"pass {hint}")


def _kind(given: Mapping[str, Rows]) -> tuple[str, ...]:
    """What describes a confounder of the kind that was given."""
    of_binary = [name for name in BINARY[:2] if name in given]
    if of_binary and "difference" in given:
        raise CohortError(
            "BadConfounder",
            f"`{of_binary[0]}` describes a binary and `difference` a normal confounder.",
            hint="pass one of them.",
        )
    return BINARY if of_binary else NORMAL


def _grid(given: Mapping[str, Rows]) -> ConfounderValues:
    """Every combination of the values; NaN for those that were not given."""
    names = [name for name in ConfounderValues._fields if name in given]
    grid = np.meshgrid(*(given[name] for name in names), indexing="ij")
    values = {name: one.ravel() for name, one in zip(names, grid, strict=True)}
    nothing = np.full(grid[0].size, np.nan)
    return ConfounderValues(*(values.get(name, nothing) for name in ConfounderValues._fields))


def _n_needed(bias: Rows, limit: float) -> Rows:
    """How many independent confounders of a bias make the limit."""
    if limit == 1:
        return np.zeros(bias.size)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.log(limit) / np.log(bias)
    return np.where(np.isfinite(found) & (found > 0), found, np.nan)


def _is_unknown(values: AnyArray) -> bool:
    return values.dtype.kind == "f" and bool(np.isnan(values).all())
