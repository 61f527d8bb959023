r"""The log likelihood of a site as a function of one log hazard ratio.

A site shares points of its profile likelihood, with values and derivatives. Between the points the
log likelihood is a cubic Hermite polynomial, and beyond them it goes on as a straight line with the
derivative at the end, as in EvidenceSynthesis. Profiles without derivatives are linear between the
points.
"""

from dataclasses import dataclass, field
from typing import Self

import numpy as np
from scipy.interpolate import PPoly
from scipy.special import log_ndtr

from riskset._errors import InputError
from riskset._types import Rows

__all__ = ["SiteLikelihood"]

FAR = 1e3
"""Log ratios as far as this have a piece of the curve; lines go on beyond it."""
NORMAL_REACH = 40.0
"""Standard errors from the mean at which the curve of a normal likelihood ends."""
GRID = np.linspace(-np.log(10.0), np.log(10.0), 401)
"""Where a parametric curve is evaluated: hazard ratios from 0.1 to 10, to which it was fitted."""


@dataclass(frozen=True, eq=False, repr=False)
class SiteLikelihood:
    r"""The log likelihood of a site, up to a constant.

    With points :math:`x_k`, values :math:`v_k`, derivatives :math:`d_k`, :math:`h = x_{k+1} - x_k`
    and :math:`t = (x - x_k) / h`, the curve between two points is

    .. math:: \ell(x) = (2t^3 - 3t^2 + 1) v_k + (t^3 - 2t^2 + t) h d_k + (3t^2 - 2t^3) v_{k+1}
        + (t^3 - t^2) h d_{k+1}

    and :math:`v_1 + (x - x_1) d_1` before the first point, and the same after the last.

    Parameters
    ----------
    points : (k,) numbers
        Log hazard ratios, ascending; two or more.
    values : (k,) numbers
        The log likelihood at the points. A constant in all values does not matter.
    derivatives : (k,) numbers, optional
        Derivatives at the points. Without them, the curve is linear between the points, and goes on
        with the slopes of the outer pieces.
    supremum : float, optional
        Least upper bound of the log likelihood, in the units of `values`, where the curve rises
        without end because one arm has no outcome. Default: see `top`.

    Attributes
    ----------
    points, values, derivatives, supremum
        As given, as arrays; `derivatives` is None without them.

    Raises
    ------
    InputError
        If there are fewer than two points, if they do not ascend, or if a number is not finite.

    References
    ----------
    Schuemie, Chen, Madigan and Suchard (2022), Combining Cox regressions across a heterogeneous
    distributed research network facing small and zero counts, Statistical Methods in Medical
    Research 31, 438-450, doi:10.1177/09622802211060518.

    Examples
    --------
    >>> import riskset as rs
    >>> site = rs.network.SiteLikelihood([1.1, 2.1], [1.0, 1.0], [0.1, -0.1])
    >>> site([0.0, 1.6, 3.0]).round(3)
    array([0.89 , 1.025, 0.91 ])
    """

    points: Rows
    values: Rows
    derivatives: Rows | None = None
    supremum: float | None = None
    _curve: PPoly = field(init=False, repr=False)
    _slope: PPoly = field(init=False, repr=False)

    def __post_init__(self) -> None:
        x, v = _column(self.points, "points"), _column(self.values, "values")
        d = None if self.derivatives is None else _column(self.derivatives, "derivatives")
        if x.size < 2 or v.size != x.size or (d is not None and d.size != x.size):
            raise InputError(
                "a profile needs two or more points, and as many values and derivatives: it has "
                f"{x.size} points and {v.size} values.",
                hint="pass the columns of one table.",
            )
        if not (np.diff(x) > 0).all():
            raise InputError(
                "the points of a profile must ascend, and no point may occur twice.",
                hint="sort the table by the log hazard ratio.",
            )
        if self.supremum is not None and not np.isfinite(self.supremum):
            raise InputError("`supremum` must be a finite number.", hint="leave it out.")
        curve = _pieces(x, v, d)
        for name, value in (("points", x), ("values", v), ("derivatives", d), ("_curve", curve)):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "_slope", curve.derivative())

    @classmethod
    def normal(cls, log_hr: float, se: float) -> Self:
        r"""Make the normal approximation :math:`-(x - b)^2 / (2 s^2)` of an estimate.

        Parameters
        ----------
        log_hr, se : float
            Estimate and standard error, finite; `se` > 0.
        """
        if not (np.isfinite(log_hr) and np.isfinite(se) and se > 0):
            raise InputError(
                f"a normal approximation needs a finite estimate and standard error, but they are "
                f"{log_hr:g} and {se:g}.",
                hint="share a likelihood profile of sites without outcomes in an arm.",
            )
        z = np.array([-NORMAL_REACH, 0.0, NORMAL_REACH])
        return cls(log_hr + se * z, -0.5 * z**2, -z / se)

    @classmethod
    def custom(cls, mu: float, sigma: float, gamma: float) -> Self:
        r"""Make EvidenceSynthesis' parametric curve from hazard ratios of 0.1 to 10.

        .. math:: -e^{\gamma (x - \mu)} \frac{(x - \mu)^2}{2 \sigma^2}

        Parameters
        ----------
        mu, sigma, gamma : float
        """
        u = GRID - mu
        scale = np.exp(gamma * u) / (2 * sigma**2)
        return cls(GRID, -scale * u**2, -scale * u * (gamma * u + 2))

    @classmethod
    def skew_normal(cls, mu: float, sigma: float, alpha: float) -> Self:
        r"""Make a skew-normal curve from hazard ratios of 0.1 to 10.

        .. math:: -\frac{(x - \mu)^2}{2 \sigma^2} + \log \Phi\left(\alpha \frac{x - \mu}{\sigma}
            \right)

        Parameters
        ----------
        mu, sigma, alpha : float
        """
        if np.isinf(sigma):
            return cls(GRID, np.zeros(GRID.size), np.zeros(GRID.size))
        u = (GRID - mu) / sigma
        log_share = log_ndtr(alpha * u)
        mills = np.exp(-0.5 * (alpha * u) ** 2 - log_share) / np.sqrt(2 * np.pi)
        return cls(GRID, -0.5 * u**2 + log_share, (-u + alpha * mills) / sigma)

    def __call__(self, log_hr: object) -> Rows:
        """Evaluate the log likelihood.

        Parameters
        ----------
        log_hr : numbers

        Returns
        -------
        numbers of the same shape
        """
        return np.asarray(self._curve(np.asarray(log_hr, dtype=np.float64)))

    def derivative(self, log_hr: object) -> Rows:
        """Evaluate the derivative by the log hazard ratio.

        Parameters
        ----------
        log_hr : numbers

        Returns
        -------
        numbers of the same shape
        """
        return np.asarray(self._slope(np.asarray(log_hr, dtype=np.float64)))

    @property
    def is_monotone(self) -> bool:
        """Whether the curve rises up to one of its ends, as if one arm has no outcome."""
        first, last = self.derivative(self.points[[0, -1]] + [-1.0, 1.0])
        return bool(first < 0 or last > 0)

    @property
    def top(self) -> float:
        r"""The supremum if it is given, else a lower bound of it.

        Without outcomes in an arm the log likelihood is :math:`c - \sum_i \log(1 + u_i)` with
        :math:`u_i = r_i e^{\pm x}`. Its slope is :math:`\sum_i u_i / (1 + u_i)` in size, which is
        at most what is missing to c. So the bound is the value at the end that rises plus the
        size of the slope there, or the largest of the values.
        """
        if self.supremum is not None:
            return float(self.supremum)
        rising = self.derivative(self.points[[0, -1]] + [-1.0, 1.0]) * [-1.0, 1.0]
        ends = self.values[[0, -1]] + np.maximum(rising, 0.0)
        return max(float(self.values.max()), float(ends.max()))

    @property
    def width(self) -> float:
        """About the distance within which the curve bends: 1 / sqrt of the largest curvature."""
        x = np.unique(np.concatenate([self.points, (self.points[:-1] + self.points[1:]) / 2]))
        d = self.derivative(x)
        bend = np.max(-np.diff(d) / np.diff(x), initial=0.0)
        return float(1 / np.sqrt(bend)) if bend > 0 else FAR

    def __repr__(self) -> str:
        low, high = np.exp(self.points[[0, -1]])
        return f"SiteLikelihood({self.points.size} points, ratios from {low:.3g} to {high:.3g})"


def _column(values: object, name: str) -> Rows:
    try:
        array = np.atleast_1d(np.asarray(values, dtype=np.float64))
    except (TypeError, ValueError):
        array = np.full(1, np.nan)
    if array.ndim != 1 or not np.isfinite(array).all():
        raise InputError(
            f"`{name}` of a profile must be one column of finite numbers.",
            hint="leave out points without a value.",
        )
    return array


def _pieces(x: Rows, v: Rows, d: Rows | None) -> PPoly:
    """Cubic pieces between the points, and a line at each end."""
    h = np.diff(x)
    rise = np.diff(v) / h
    if d is None:
        c = np.array([np.zeros(h.size), np.zeros(h.size), rise, v[:-1]])
        ends = rise[[0, -1]]
    else:
        c = np.array(
            [
                (d[:-1] + d[1:] - 2 * rise) / h**2,
                (3 * rise - 2 * d[:-1] - d[1:]) / h,
                d[:-1],
                v[:-1],
            ]
        )
        ends = d[[0, -1]]
    before = [0.0, 0.0, ends[0], v[0] - FAR * ends[0]]
    after = [0.0, 0.0, ends[1], v[-1]]
    coefficients = np.column_stack([before, c, after])
    return PPoly(coefficients, np.concatenate([[x[0] - FAR], x, [x[-1] + FAR]]))
