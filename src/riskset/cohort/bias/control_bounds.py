"""Bounds of an estimate from the systematic error that negative controls show."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

from riskset._errors import CohortError, counted
from riskset._types import AnyArray, Rows
from riskset.cohort.bias.calibration import TOO_FEW, Controls
from riskset.cohort.bias.e_values import e_value_of
from riskset.cohort.bias.empirical_null.fit import Null, fit_null
from riskset.cohort.bias.risk_ratios import RatioScale, as_given, converted
from riskset.cohort.effects.estimate import Estimate
from riskset.data.frame import data_frame
from riskset.infer.wald import check_level

__all__ = ["BIAS_BASES", "BIAS_DIRECTIONS", "BiasBounds", "bias_bounds", "bounds_of_biases"]

BIAS_BASES = ("null", "largest")
BIAS_DIRECTIONS = ("seen", "either")


@dataclass(frozen=True, eq=False, repr=False)
class BiasBounds:
    """Bounds of an estimate by the bias of negative controls, the result of `bias_bounds`.

    Attributes
    ----------
    basis : (k,) str
        "null": the systematic error is in the central range of the null distribution, or "largest":
        it is in the range of the estimates of the controls.
    direction : (k,) str
        "seen": the range as it is, or "either": of the same size in both directions.
    bias_lower, bias_upper : (k,) float64
        Range of the systematic error, as factors of the ratio.
    ratio_lower, ratio_upper : (k,) float64
        Range of the ratio without a systematic error within `bias_lower` and `bias_upper`.
    lower, upper : (k,) float64
        Ends of the intervals of these ratios.
    includes_1 : (k,) bool
        Whether 1 is between `lower` and `upper`; an unknown end counts as that of the ratio.
    e_value : (k,) float64
        E-value of the larger bias: how strong a confounder has to be to cause it.
    e_value_estimate, e_value_limit : float
        E-values of the estimate and of its interval, as `e_value`.
    share_beyond : float
        Proportion of controls whose bias alone would move the interval to 1.
    probability_beyond : float
        Probability of such a bias by the null distribution. Both are 1 if the interval contains 1.
    n_controls : int
    level : float

    Examples
    --------
    >>> import riskset as rs
    >>> controls = rs.cohort.Controls([0.2, -0.1, 0.3, 0.1, 0.0, 0.25], [0.1] * 6)
    >>> found = rs.cohort.bias_bounds(controls, 2.0, 1.6, 2.5, scale="rate")
    >>> found.basis
    array(['null', 'null', 'largest', 'largest'], dtype='<U7')
    >>> found.bias_upper.round(2), found.lower.round(2)
    (array([1.38, 1.33, 1.35, 1.35]), array([1.16, 1.2 , 1.19, 1.19]))
    """

    basis: AnyArray
    direction: AnyArray
    bias_lower: Rows
    bias_upper: Rows
    ratio_lower: Rows
    ratio_upper: Rows
    lower: Rows
    upper: Rows
    includes_1: AnyArray
    e_value: Rows
    e_value_estimate: float
    e_value_limit: float
    share_beyond: float
    probability_beyond: float
    n_controls: int
    level: float

    def columns(self) -> dict[str, AnyArray]:
        """Return one row for each basis and direction."""
        names = self.__dataclass_fields__
        return {name: getattr(self, name) for name in list(names)[:10]}

    def to_frame(self, library: str | None = None) -> Any:
        """Return `columns` as a data frame."""
        return data_frame(self.columns(), library)

    def __repr__(self) -> str:
        low, high = self._ends()
        return (
            f"BiasBounds({counted(self.n_controls, 'negative control')}: {np.nanmin(low):.3f} to "
            f"{np.nanmax(high):.3f})"
        )

    def _ends(self) -> tuple[Rows, Rows]:
        """Ends of the intervals, or of the ratios where those are unknown."""
        return _known_ends(self.lower, self.ratio_lower), _known_ends(self.upper, self.ratio_upper)


def bias_bounds(
    controls: Controls,
    estimate: Estimate | float,
    lower: float | None = None,
    upper: float | None = None,
    *,
    level: float = 0.95,
    scale: RatioScale | None = None,
    common: bool | None = None,
) -> BiasBounds:
    r"""Compute bounds of a ratio if its systematic error is as large as that of negative controls.

    With systematic errors of the log ratio b between :math:`a_1` and :math:`a_2`, the log ratio
    without bias is between :math:`b - a_2` and :math:`b - a_1`, and its interval within the limits
    :math:`l - a_2` and :math:`u - a_1`. The range :math:`(a_1, a_2)` is

    * "null": :math:`\mu \pm z_{level} \sigma` of the null distribution :math:`N(\mu, \sigma^2)`, by
      maximum likelihood,
    * "largest": the smallest and the largest estimate of a control,

    or, in either direction, :math:`(-q, q)`, where q is the quantile `level` of
    :math:`|N(\mu, \sigma^2)|` or the largest absolute estimate.

    Parameters
    ----------
    controls : Controls
        Only negative controls are used.
    estimate, lower, upper, scale, common
        The estimate, as of `e_value`.
    level : float
        Probability of the range "null".

    Returns
    -------
    BiasBounds
        Rows of "null" are NaN with fewer than five negative controls.

    Raises
    ------
    CohortError
        "BadControls": there are no negative controls. "BadEstimates": as `e_value`.

    Notes
    -----
    What is assumed: confounding and other systematic errors of the outcome are like those of the
    controls (they are exchangeable; Lipsitch and others call the controls U-comparable), and are
    factors of the ratio. "seen" also assumes that their direction is alike. "largest" assumes that
    the error of the outcome is not beyond that of every control; estimates of controls also contain
    chance, so the range is wider than that of their systematic error. The probability that an
    interval of `level` c and a range of probability d miss the true ratio is at most
    (1 - c) + (1 - d).

    `calibrate` combines systematic and random error in one interval, which is usually narrower, but
    not with few or very similar controls: it counts that the distribution is estimated. Bounds show
    what the worst of the controls would do. With positive controls, see `ErrorModel`.

    References
    ----------
    Lipsitch, Tchetgen Tchetgen and Cohen (2010), Epidemiology 21, 383-388,
    doi:10.1097/EDE.0b013e3181d61eeb.
    Sofer, Richardson, Colicino, Schwartz and Tchetgen Tchetgen (2016), Statistical Science 31,
    348-361, doi:10.1214/16-STS558.
    Shi, Miao and Tchetgen Tchetgen (2020), Current Epidemiology Reports 7, 190-202,
    doi:10.1007/s40471-020-00243-4.
    Schuemie, Ryan, DuMouchel, Suchard and Madigan (2014), Statistics in Medicine 33, 209-218,
    doi:10.1002/sim.5925.

    Examples
    --------
    >>> import riskset as rs
    >>> controls = rs.cohort.Controls([0.2, -0.1, 0.3, 0.1, 0.0, 0.25], [0.1] * 6)
    >>> found = rs.cohort.bias_bounds(controls, 1.3, 1.1, 1.5, scale="rate")
    >>> found.lower.round(2), found.e_value.round(2)
    (array([0.8 , 0.82, 0.81, 0.81]), array([2.09, 2.  , 2.04, 2.04]))
    >>> round(found.share_beyond, 3), round(found.e_value_limit, 2)
    (0.667, 1.43)
    """
    check_level(level)
    if not isinstance(controls, Controls):
        raise CohortError(
            "BadControls",
            f"expected Controls, but got {type(controls).__name__}.",
            hint="make them with riskset.cohort.Controls(log_rr, se).",
        )
    given, known_scale, is_common = as_given(estimate, lower, upper, scale=scale, common=common)
    negative = controls.is_negative
    biases, errors = controls.log_rr[negative], controls.se[negative]
    if not biases.size:
        raise CohortError(
            "BadControls",
            f"there are no negative controls to use; {counted(controls.set_aside.size, 'control')} "
            "set aside.",
            hint="`controls.set_aside` lists controls whose estimates are missing, infinite or "
            "above 100; negative controls have a true log ratio of 0.",
        )
    null = fit_null(biases, errors) if biases.size >= TOO_FEW else None
    return bounds_of_biases(biases, null, given, known_scale, is_common, level)


def bounds_of_biases(
    biases: Rows,
    null: Null | None,
    given: tuple[float, float, float],
    scale: RatioScale,
    common: bool,
    level: float,
) -> BiasBounds:
    """The bounds of a ratio with its limits, by estimates of controls and their distribution."""
    ranges = np.array([*_null_ranges(null, level), *_observed_ranges(biases)])
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        log_ratio, low, high = np.log(np.array(given))
        ends = np.exp(
            np.stack([log_ratio - ranges[:, ::-1], np.array([low, high]) - ranges[:, ::-1]])
        )
    observed, beyond = converted(given, scale, common), _beyond(biases, null, given)
    largest = np.exp(np.abs(ranges).max(axis=1))
    return BiasBounds(
        basis=np.repeat(BIAS_BASES, len(BIAS_DIRECTIONS)),
        direction=np.tile(BIAS_DIRECTIONS, len(BIAS_BASES)),
        bias_lower=np.exp(ranges[:, 0]),
        bias_upper=np.exp(ranges[:, 1]),
        ratio_lower=ends[0, :, 0],
        ratio_upper=ends[0, :, 1],
        lower=ends[1, :, 0],
        upper=ends[1, :, 1],
        includes_1=(_known_ends(ends[1, :, 0], ends[0, :, 0]) <= 1)
        & (_known_ends(ends[1, :, 1], ends[0, :, 1]) >= 1),
        e_value=np.array([_e_value(bias, scale, common) for bias in largest.tolist()]),
        e_value_estimate=e_value_of(observed.ratio),
        e_value_limit=e_value_of(observed.limit),
        share_beyond=beyond[0],
        probability_beyond=beyond[1],
        n_controls=biases.size,
        level=level,
    )


def _known_ends(end: Rows, of_ratio: Rows) -> Rows:
    return np.where(np.isnan(end), of_ratio, end)


def _null_ranges(null: Null | None, level: float) -> list[tuple[float, float]]:
    if null is None:
        return [(np.nan, np.nan)] * 2
    half, size = float(ndtri(0.5 + level / 2)) * null.sd, _absolute_quantile(null, level)
    return [(null.mean - half, null.mean + half), (-size, size)]


def _observed_ranges(biases: Rows) -> list[tuple[float, float]]:
    size = float(np.abs(biases).max())
    return [(float(biases.min()), float(biases.max())), (-size, size)]


def _absolute_quantile(null: Null, level: float) -> float:
    """The quantile of the absolute value of a normal distribution."""
    mean, sd = abs(null.mean), null.sd
    if sd == 0:
        return mean

    def above(size: float) -> float:
        return float(ndtr((size - mean) / sd) - ndtr((-size - mean) / sd)) - level

    top = mean + float(ndtri(0.5 + level / 2)) * sd
    return float(brentq(above, 0.0, top, xtol=1e-14, rtol=1e-14)) if above(top) > 0 else top


def _beyond(
    biases: Rows, null: Null | None, given: tuple[float, float, float]
) -> tuple[float, float]:
    """How often a bias alone moves the interval to 1: among the controls, and by the null."""
    ratio, lower, upper = given
    limit, sign = (lower, 1.0) if ratio >= 1 else (upper, -1.0)
    if np.isnan(limit) or np.isnan(ratio):
        return np.nan, np.nan
    if sign * (limit - 1) <= 0:
        return 1.0, 1.0
    needed = abs(float(np.log(limit)))
    share = float(np.mean(sign * biases >= needed))
    if null is None:
        return share, np.nan
    if null.sd == 0:
        return share, float(sign * null.mean >= needed)
    return share, float(ndtr((sign * null.mean - needed) / null.sd))


def _e_value(bias: float, scale: RatioScale, common: bool) -> float:
    return e_value_of(converted((bias, np.nan, np.nan), scale, common).ratio)
