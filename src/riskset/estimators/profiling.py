"""Profile likelihoods of a model, and their intervals."""

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone

from riskset._errors import InputError, RisksetWarning, counted
from riskset._types import Features, Index, is_count, is_number
from riskset.data.frame import data_frame
from riskset.estimators._base import HazardModelBase, check_model
from riskset.estimators._fixed import refuse_fixed
from riskset.estimators._input import output_library
from riskset.estimators.convergence import ConvergenceWarning
from riskset.infer.profile import (
    ProfiledFit,
    ProfileGrid,
    adaptive_grid,
    check_unpenalized,
    fixed_grid,
    profile_intervals,
)
from riskset.solve.fit import fit_by_newton

__all__ = ["Profile", "profile", "warned_intervals"]

BOUNDS = (-float(np.log(10.0)), float(np.log(10.0)))
"""Hazard ratios from 0.1 to 10, as OHDSI's CohortMethod and EmpiricalCalibration have them."""
TOLERANCE = 1e-3
USUAL_FITS = 40
"""How many values a grid usually has, for the progress bar."""


@dataclass(frozen=True, eq=False, repr=False)
class Profile:
    r"""The profile log likelihood of one coefficient.

    Attributes
    ----------
    parameter : str
        The covariate.
    label : str
        What plots call it: its label, or name.
    values : (k,) float64
        Values of its coefficient, per unit of the covariate as given: ascending, or in the order of
        the grid.
    log_likelihood : (k,) float64
        Maximum over the other coefficients, minus their penalties (and its own penalty, with
        `penalized`). NaN if the fit of the others did not converge.
    derivative : (k,) float64
        Derivative of the profile.
    maximum, log_likelihood_maximum : float
        The estimate and the profile there, or its limit if the estimate is infinite.
    error : float
        Upper bound of the error of linear interpolation between neighbouring values, from the
        derivatives of the concave profile.

    Examples
    --------
    >>> import riskset as rs
    >>> data = rs.load_rhc()
    >>> model = rs.Cox(rs.L1(20.0, unpenalized=["swang1"])).fit(data)
    >>> found = rs.profile(model, data, parameter="swang1")
    >>> found
    Profile('swang1', 295 values from -2.303 to 2.303; maximum -28416.3 at 0.1315)
    >>> round(found.maximum - float(model.coef_[model.covariates_.index("swang1")]), 6)
    0.0
    """

    parameter: str
    values: Features
    log_likelihood: Features
    derivative: Features
    maximum: float
    log_likelihood_maximum: float
    error: float
    label: str
    _source: ProfiledFit = field(repr=False)
    _column: int = field(repr=False)
    _library: str | None = field(repr=False)
    _progress: bool | None = field(repr=False)

    def __repr__(self) -> str:
        return (
            f"Profile({self.parameter!r}, {counted(self.values.size, 'value')} from "
            f"{self.values.min():.4g} to {self.values.max():.4g}; maximum "
            f"{self.log_likelihood_maximum:.6g} at {self.maximum:.4g})"
        )

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Compute the profile-likelihood confidence interval.

        It contains the values at which twice the decrease of the profile is at most the chi-square
        quantile. Further fits find its limits to 1e-8 in the log likelihood, independently of the
        grid.

        Returns
        -------
        lower, upper : float
            Infinite if the interval has no limit.
        """
        columns = np.array([self._column], dtype=np.int64)
        lower, upper = warned_intervals(self._source, columns, level, self._progress)
        return float(lower[0]), float(upper[0])

    def to_frame(self, library: str | None = None) -> Any:
        """Return a data frame with the columns coef, log_likelihood and derivative."""
        columns = {
            "coef": self.values,
            "log_likelihood": self.log_likelihood,
            "derivative": self.derivative,
        }
        return data_frame(columns, library or self._library)


def profile(
    model: HazardModelBase,
    X: object,
    y: object = None,
    parameter: str | None = None,
    bounds: tuple[float, float] | None = None,
    *,
    grid: Sequence[float] | None = None,
    tolerance: float | None = None,
    max_points: int = 1000,
    penalized: bool = False,
    sample_weight: object = None,
    strata: object = None,
    offset: object = None,
    cluster: object = None,
) -> Profile:
    r"""Compute the profile log likelihood of one coefficient, with all others re-optimised.

    .. math:: \ell_p(b) = \max_{\beta: \beta_j = b} \ell(\beta)
        - \sum_{k \ne j} f_k (\lambda_1 |\beta_k| + \tfrac{1}{2} \lambda_2 \beta_k^2)

    Parameters
    ----------
    model : Cox or FineGray
        Fitted or not; it is not changed. For a fitted model, X must have the columns of the fit.
    X, y, sample_weight, strata, offset, cluster
        As for `Cox.fit`; with a `Dataset`, write ``rs.profile(model, data, parameter="age")``.
    parameter : str
        The covariate.
    bounds : (float, float), optional
        Range of the coefficient. Default: log(0.1) to log(10). Values are added until the error of
        linear interpolation is at most `tolerance`.
    grid : sequence of float, optional
        Values to use instead.
    tolerance : float, optional
        Tolerance in the log likelihood. Default: 1e-3, or a thousandth of the decrease from the
        maximum if that is larger.
    max_points : int
        Maximum number of values for `tolerance`.
    penalized : bool
        Allow a penalised covariate, whose penalty is then part of the profile. Its interval does
        not have the nominal coverage, because a penalty biases the estimate.

    Returns
    -------
    Profile

    Raises
    ------
    InputError
        If the covariate is unknown, penalised without `penalized`, or cannot be estimated because
        it is constant or repeats others; if the fit does not converge.

    Warns
    -----
    ConvergenceWarning
        If a fit of the other coefficients does not converge. The profile is NaN there.
    RisksetWarning
        If `max_points` values do not reach the tolerance.

    Notes
    -----
    Weights count as numbers of rows. Results do not depend on the number of threads. The profile is
    finite at any value.

    Examples
    --------
    >>> import riskset as rs
    >>> penalty = rs.L1(20.0, unpenalized=["swang1"])
    >>> found = rs.profile(rs.Cox(penalty), rs.load_rhc(), parameter="swang1", bounds=(-0.5, 0.5))
    >>> lower, upper = found.interval()
    >>> round(lower, 3), round(found.maximum, 3), round(upper, 3)
    (0.056, 0.131, 0.206)
    """
    low, high = _checked(parameter, bounds, grid, tolerance, max_points)
    check_model(model, "`riskset.profile`")
    model._check_has_profile("`riskset.profile`")
    is_fitted = hasattr(model, "coef_")
    model = model if is_fitted else clone(model)
    runtime = model._checked_runtime()
    known = model._columns if is_fitted else None
    data = model._read(X, y, sample_weight, strata, offset, cluster, known)
    column = data.design.index_of(str(parameter))
    refuse_fixed(model.fixed, [str(parameter)])
    l1, l2 = model._strengths(data.design)
    if not penalized:
        check_unpenalized(data.design, l1, l2, np.array([column]))
    loss = model._loss(data, runtime)
    solution = fit_by_newton(data.design, loss, l1, l2, tol=model.tol, max_iter=model.max_iter)
    source = ProfiledFit(data.design, loss, solution, l1, l2, model.max_iter)
    source.check_certified(model.tol)
    if not source.is_estimable(column):
        raise InputError(
            f"the covariate {parameter!r} is constant within every risk set or repeats others, so "
            "it has no profile likelihood.",
            hint="leave it out, or those that it repeats.",
        )
    expected = USUAL_FITS if grid is None else len(grid)
    with source.reported(f"Profile of {parameter}", expected, model.progress) as reporting:
        curve = reporting.curve(column, runtime)
        if grid is None:
            share = TOLERANCE if tolerance is None else 0.0
            near = TOLERANCE if tolerance is None else float(tolerance)
            found = adaptive_grid(curve, low, high, near, int(max_points), share=share)
        else:
            found = fixed_grid(curve, [float(b) for b in grid])
    _warn(str(parameter), found)
    good = np.array([point.is_certified for point in found.points])
    return Profile(
        parameter=str(parameter),
        values=np.array([point.at for point in found.points]),
        log_likelihood=np.where(good, [point.value for point in found.points], np.nan),
        derivative=np.where(good, [point.slope for point in found.points], np.nan),
        maximum=curve.maximum.at,
        log_likelihood_maximum=curve.maximum.value,
        error=found.error if good.all() else float("inf"),
        label=data.columns.texts([str(parameter)])[0],
        _source=source,
        _column=column,
        _library=output_library(X),
        _progress=model.progress,
    )


def warned_intervals(
    source: ProfiledFit, columns: Index, level: float, progress: bool | None
) -> tuple[Features, Features]:
    """Profile intervals, with a warning if an inner fit did not converge."""
    lower, upper = profile_intervals(source, columns, level, progress=progress)
    lost = [
        source.design.names[j]
        for j, a, b in zip(columns, lower, upper, strict=True)
        if (np.isnan(a) or np.isnan(b)) and source.is_estimable(int(j))
    ]
    if lost:
        warnings.warn(
            f"the profile interval of {lost[0]!r}"
            + (f" and {len(lost) - 1} more" if len(lost) > 1 else "")
            + " has an end that was not found (NaN): a fit of the other coefficients did not "
            "converge.\nHint: raise `max_iter`.",
            ConvergenceWarning,
            stacklevel=4,
        )
    return lower, upper


def _checked(
    parameter: object,
    bounds: object,
    grid: object,
    tolerance: object,
    max_points: object,
) -> tuple[float, float]:
    """The bounds of the grid; what cannot be meant is refused."""
    if not isinstance(parameter, str):
        raise InputError(
            f"`parameter` must be the name of a covariate, but it is {parameter!r}.",
            hint='for example riskset.profile(model, X, y, "age"), or with a Dataset '
            'riskset.profile(model, data, parameter="age").',
        )
    if tolerance is not None and not (is_number(tolerance) and 0 < tolerance < np.inf):
        raise InputError(
            f"`tolerance` must be a positive number, but it is {tolerance!r}.",
            hint="it bounds the error of linear interpolation in the log likelihood.",
        )
    if not (is_count(max_points) and max_points >= 2):
        raise InputError(
            f"`max_points` must be a whole number of at least 2, but it is {max_points!r}."
        )
    if grid is not None:
        if bounds is not None:
            raise InputError(
                "`bounds` and `grid` were given together.",
                hint="`bounds` is for values that are chosen for you, `grid` for your own.",
            )
        values = _numbers(grid)
        if not values:
            raise InputError(
                f"`grid` must hold at least one number, and all must be finite, but it is {grid!r}."
            )
        return min(values), max(values)
    values = _numbers(BOUNDS if bounds is None else bounds)
    if len(values) != 2 or values[0] >= values[1]:
        raise InputError(
            f"`bounds` must be two finite numbers, the lower one first, but it is {bounds!r}.",
            hint="they are log hazard ratios, for example bounds=(-2.3, 2.3).",
        )
    return values[0], values[1]


def _numbers(values: object) -> list[float]:
    """Finite numbers; empty if they are anything else."""
    listed = list(values) if isinstance(values, Iterable) else []
    good = all(is_number(value) and np.isfinite(value) for value in listed)
    return [float(value) for value in listed] if good else []


def _warn(name: str, found: ProfileGrid) -> None:
    bad = [point.at for point in found.points if not point.is_certified]
    if bad:
        warnings.warn(
            f"{len(bad)} of {len(found.points)} values of the profile of {name!r} are NaN (first: "
            f"at {bad[0]:.4g}), because the fit of the other coefficients did not converge.\n"
            "Hint: raise `max_iter`.",
            ConvergenceWarning,
            stacklevel=3,
        )
    elif not found.is_fine:
        warnings.warn(
            f"{len(found.points):,} values of the profile of {name!r} leave linear interpolation "
            f"with an error of up to {found.error:.2g} in the log likelihood, more than was asked "
            "for.\nHint: narrow the bounds, or raise tolerance or max_points.",
            RisksetWarning,
            stacklevel=3,
        )
