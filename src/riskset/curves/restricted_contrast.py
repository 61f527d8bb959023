"""Differences and ratios of two restricted means, with intervals and p values."""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from riskset._types import AnyArray
from riskset.data.frame import data_frame
from riskset.infer.wald import normal_p_value, normal_quantile

__all__ = ["Contrast", "RestrictedMeanContrast", "contrast"]

ContrastKind = Literal["difference", "ratio"]


class Contrast(NamedTuple):
    """A difference or a ratio; the standard error of a ratio is that of its logarithm."""

    estimate: NDArray[np.float64]
    standard_error: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    p_value: NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class RestrictedMeanContrast:
    """Difference or ratio of the restricted means of two groups; all arrays (h,).

    It is the result of `RestrictedMeans.difference` and `RestrictedMeans.ratio`.

    Attributes
    ----------
    kind : {"difference", "ratio"}
    group, reference : object
        The group minus the reference, or the group divided by the reference.
    cause : object
        The cause to which time is lost, "any" for all of them, or None for the restricted mean.
    times : float64
        The horizons.
    estimate, lower, upper, p_value : float64
        NaN if one of the means is not known. The p value is that of a difference of 0, or a ratio
        of 1.
    standard_error : float64
        Of the difference, or of the logarithm of the ratio.
    level : float

    Examples
    --------
    >>> import riskset as rs
    >>> y = rs.Surv([1.0, 2.0, 3.0, 4.0], [1, 1, 1, 1])
    >>> found = rs.restricted_mean(y, ["a", "a", "b", "b"], times=4).difference("b", "a")
    >>> found
    RestrictedMeanContrast: difference of restricted means, 'b' and 'a' (95% intervals)
      by 4: 2 (1.02002 to 2.97998), p = 6.33e-05
    """

    kind: ContrastKind
    group: object
    reference: object
    cause: object
    times: NDArray[np.float64]
    estimate: NDArray[np.float64]
    standard_error: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    p_value: NDArray[np.float64]
    level: float

    def __repr__(self) -> str:
        whose = {None: "restricted means", "any": "time lost"}
        of = whose.get(self.cause, f"time lost to {self.cause!r}")  # type: ignore[call-overload]
        lines = [
            f"RestrictedMeanContrast: {self.kind} of {of}, {self.group!r} and {self.reference!r} "
            f"({self.level:.0%} intervals)"
        ]
        for k, time in enumerate(self.times):
            lines.append(
                f"  by {time:g}: {self.estimate[k]:.6g} ({self.lower[k]:.6g} to "
                f"{self.upper[k]:.6g}), p = {self.p_value[k]:.3g}"
            )
        return "\n".join(lines)

    def columns(self) -> dict[str, AnyArray]:
        """Return one row per horizon."""
        names = ("estimate", "standard_error", "lower", "upper", "p_value")
        return {"time": self.times} | {name: getattr(self, name) for name in names}

    def to_frame(self, *, library: str | None = None) -> Any:
        """Return `columns` as a data frame."""
        return data_frame(self.columns(), library)


def contrast(
    kind: ContrastKind,
    values: tuple[NDArray[np.float64], NDArray[np.float64]],
    variances: tuple[NDArray[np.float64], NDArray[np.float64]],
    covariance: NDArray[np.float64],
    level: float,
) -> Contrast:
    r"""Compare two estimates by the delta method.

    .. math:: a - b, \quad var = v_a + v_b - 2 c, \qquad
        \log \frac{a}{b}, \quad var = \frac{v_a}{a^2} + \frac{v_b}{b^2} - \frac{2 c}{a b}

    A ratio of which one side is 0 is NaN. Without a standard error, the interval is the estimate
    and there is no p value.
    """
    (a, b), (v_a, v_b) = values, variances
    if kind == "difference":
        center, variance = a - b, v_a + v_b - 2.0 * covariance
    else:
        a, b = (np.where(side > 0, side, np.nan) for side in (a, b))
        center = np.log(a) - np.log(b)
        variance = v_a / a**2 + v_b / b**2 - 2.0 * covariance / (a * b)
    return interval_of(kind, center, np.sqrt(np.maximum(variance, 0.0)), level)


def interval_of(
    kind: ContrastKind,
    center: NDArray[np.float64],
    standard_error: NDArray[np.float64],
    level: float,
) -> Contrast:
    """The normal interval of a difference, or of a ratio whose logarithm is `center`."""
    half = normal_quantile(level) * standard_error
    ends = (center, center - half, center + half)
    estimate, lower, upper = map(np.exp, ends) if kind == "ratio" else ends
    z = np.divide(
        center, standard_error, out=np.full_like(center, np.nan), where=standard_error > 0
    )
    return Contrast(estimate, standard_error, lower, upper, normal_p_value(z))
