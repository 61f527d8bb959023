"""Scaled Schoenfeld residuals, and the smooth curve through them: a coefficient over time."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from riskset._errors import InputError
from riskset._messages import counted
from riskset._types import Features, Index, Matrix, Rows, is_count
from riskset.data.frame import data_frame
from riskset.infer.variance import generalized_inverse
from riskset.infer.wald import check_level

__all__ = ["CoefficientCurve", "ScaledSchoenfeldResiduals", "natural_spline", "scaled"]


class CoefficientCurve(NamedTuple):
    """A smooth coefficient over time with its pointwise interval; all (k,).

    `transformed` is the transformed time, and `time` what it stands for.
    """

    transformed: NDArray[np.float64]
    time: NDArray[np.float64]
    coef: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class ScaledSchoenfeldResiduals:
    r"""One row per event: what each event says about the coefficients at its time.

    .. math:: r^*_i = \hat\beta + m \, V^{-1} (x_i - \bar x(t_i))

    with V the information of the fit and m the number of events, or the sum of their weights, so
    that their weighted mean is the estimate. (With weights, R's ``residuals.coxph`` takes the
    number.) If the hazards are proportional, they scatter evenly about it at all times.

    Attributes
    ----------
    names : tuple of str
        The covariates.
    transform : str
        Transformation of time.
    row : (m,) int64
        The caller's row with the event.
    time, transformed : (m,) float64
        Time of the event, plain and transformed.
    weight : (m,) float64
        Case weight of the row.
    coef : (p,) float64
        The estimates.
    values : (m, p) float64
        NaN for a covariate that is constant in the stratum of the event.
    variance : (p, p) float64
        :math:`m V^{-1}`, which would be their covariance with one weight and risk set.

    References
    ----------
    Grambsch and Therneau (1994), Biometrika 81, 515-526, doi:10.1093/biomet/81.3.515.
    """

    names: tuple[str, ...]
    transform: str
    row: Index
    time: NDArray[np.float64]
    transformed: NDArray[np.float64]
    weight: Rows
    coef: Features
    values: Matrix
    variance: Matrix

    def __repr__(self) -> str:
        n, p = self.values.shape
        size = f"{counted(n, 'event')}, {counted(p, 'covariate')}"
        return f"ScaledSchoenfeldResiduals({size}, {self.transform!r})"

    def position(self, parameter: str) -> int:
        """Return the column of a covariate.

        Raises
        ------
        InputError
            If it is unknown.
        """
        if parameter not in self.names:
            raise InputError.unknown_name("covariate", str(parameter), self.names)
        return self.names.index(parameter)

    def smooth(
        self, parameter: str, *, df: int = 4, n_points: int = 40, level: float = 0.95
    ) -> CoefficientCurve:
        r"""Fit a natural cubic spline to the residuals of a covariate, as R plots ``cox.zph``.

        With the basis B of the spline, the curve is :math:`b(t)' (B'B)^{-1} B' r^*` and its
        standard error :math:`\sqrt{v \, b(t)' (B'B)^{-1} b(t)}`, where v is the `variance` of the
        covariate. Case weights weigh the squares.

        Parameters
        ----------
        parameter : str
            The covariate.
        df : int
            Degrees of freedom of the spline, at least 2. Its inner knots are at quantiles of the
            transformed times.
        n_points : int
            Number of points, evenly spaced in transformed time.
        level : float
            Confidence level of the pointwise interval.

        Returns
        -------
        CoefficientCurve

        Raises
        ------
        InputError
            If the covariate is unknown, or there are fewer different times than `df`.
        """
        j = self.position(parameter)
        check_level(level)
        for name, value, least in (("df", df, 2), ("n_points", n_points, 2)):
            if not is_count(value) or value < least:
                raise InputError(
                    f"`{name}` must be a whole number of at least {least}, but it is {value!r}.",
                    hint="4 degrees of freedom and 40 points are usual.",
                )
        known = np.isfinite(self.values[:, j])
        x, y, weight = self.transformed[known], self.values[known, j], self.weight[known]
        if np.unique(x).size < df:
            raise InputError(
                f"a curve with {df} degrees of freedom needs as many different times of events, "
                f"but {parameter!r} has {np.unique(x).size}.",
                hint="pass a smaller `df`.",
            )
        points = np.linspace(x.min(), x.max(), n_points)
        everything = np.append(points, x)
        knots = np.quantile(everything, np.linspace(0, 1, df))
        basis, at = natural_spline(x, knots), natural_spline(points, knots)
        root = np.sqrt(weight)
        q, r = np.linalg.qr(basis * root[:, None])
        curve = at @ np.linalg.solve(r, q.T @ (y * root))
        spread = np.linalg.solve(r.T, at.T)
        error = np.sqrt(self.variance[j, j] * (spread**2).sum(axis=0))
        half = float(ndtri(0.5 + level / 2)) * error
        order = np.argsort(x, kind="stable")
        time = np.interp(points, x[order], self.time[known][order])
        return CoefficientCurve(points, time, curve, curve - half, curve + half)

    def columns(self) -> dict[str, Any]:
        """Return one row per event: ``row``, ``time``, ``transformed`` and the covariates."""
        known: Mapping[str, Any] = {
            "row": self.row,
            "time": self.time,
            "transformed": self.transformed,
        }
        return dict(known) | dict(zip(self.names, self.values.T, strict=True))

    def to_frame(self, library: str | None = None) -> Any:
        """Return `columns` as a data frame."""
        return data_frame(self.columns(), library)


def natural_spline(x: NDArray[np.float64], knots: NDArray[np.float64]) -> Matrix:
    r"""Basis (n, k) of cubic splines with k knots that are straight beyond the first and last.

    .. math:: 1, \; x, \; d_j(x) - d_{k-1}(x), \qquad
        d_j(x) = \frac{(x - \kappa_j)_+^3 - (x - \kappa_k)_+^3}{\kappa_k - \kappa_j}

    for j = 1, ..., k - 2, in units of the distance of the outer knots. Equal knots count once.
    """
    knots = np.unique(knots)
    unit = knots[-1] - knots[0]
    z, k = (x - knots[0]) / unit, (knots - knots[0]) / unit
    cubes = np.clip(z[:, None] - k, 0.0, None) ** 3
    d = (cubes[:, :-1] - cubes[:, -1:]) / (1.0 - k[:-1])
    return np.column_stack([np.ones_like(z), z, d[:, :-1] - d[:, -1:]])


def scaled(
    values: Matrix, stratum: Index, weight: Rows, information: Matrix, varies: NDArray[np.bool_]
) -> tuple[Matrix, Matrix]:
    """Schoenfeld residuals (m, p) times the inverse of the mean information of an event, and that.

    `varies` (n_strata, p) says in which strata a covariate takes several values. As in R's
    ``cox.zph``, the mean is over events of the strata in which two covariates vary, and the
    residuals of an event concern the covariates that vary in its stratum; the others are NaN.
    """
    events = np.bincount(stratum, weight, varies.shape[0])
    counted = (varies * events[:, None]).T @ varies
    mean = information / np.where(counted > 0, counted, 1.0)
    out = np.full(values.shape, np.nan)
    patterns, of_stratum = np.unique(varies, axis=0, return_inverse=True)
    of_event = of_stratum.reshape(-1)[stratum]
    for k, pattern in enumerate(patterns):
        columns, rows = np.flatnonzero(pattern), np.flatnonzero(of_event == k)
        if columns.size and rows.size:
            inverse = generalized_inverse(mean[np.ix_(columns, columns)]).matrix
            out[np.ix_(rows, columns)] = values[np.ix_(rows, columns)] @ inverse
    return out, generalized_inverse(mean).matrix
