"""The pooled result of models that were fitted to completed data sets."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from riskset._errors import InputError, counted
from riskset._types import Features, Index, Matrix, is_number
from riskset.cohort.effects.estimate import Estimate
from riskset.data.frame import data_frame
from riskset.estimators._inference import HazardModel
from riskset.estimators._interval import ConfidenceInterval
from riskset.infer.rubin import (
    FTest,
    PooledVariance,
    is_definite,
    pooled_test,
    t_p_value,
    t_quantile,
)
from riskset.infer.wald import check_level

__all__ = ["PooledEstimates", "pool"]

TREATMENT = ("treatment",)
"""Name of the coefficient of a `riskset.cohort.Estimate`."""


@dataclass(frozen=True, eq=False, repr=False)
class PooledEstimates:
    r"""Coefficients of several completed data sets, pooled by Rubin's rules. Made by `pool`.

    The covariance is :math:`T = \bar U + (1 + 1/m) B`, the mean of the covariances within the data
    sets and the covariance of the coefficients between them. Intervals and p values are those of
    Student's t with the degrees of freedom of Barnard and Rubin (1999). A coefficient that is
    infinite or not estimated in one of the data sets is NaN.

    Attributes
    ----------
    covariates_ : tuple of str
        Names of the coefficients.
    n_datasets : int
    df_complete : float
        Degrees of freedom that complete data would have.

    References
    ----------
    Rubin (1987), Multiple Imputation for Nonresponse in Surveys, Wiley.
    Barnard and Rubin (1999), Biometrika 86, 948-955, doi:10.1093/biomet/86.4.948.

    Examples
    --------
    >>> import numpy as np
    >>> import riskset as rs
    >>> y = rs.Surv([4, 3, 1, 2, 6, 5], [1, 1, 1, 0, 1, 1])
    >>> fits = [rs.Cox().fit(np.array([[1.0], [2], [4], [3], [2], [k]]), y) for k in (1, 2, 3)]
    >>> pooled = rs.pool(fits)
    >>> pooled.coef_.round(2), pooled.standard_error_.round(2)
    (array([0.74]), array([0.88]))
    >>> pooled.test("x0").p_value
    0.5
    """

    covariates_: tuple[str, ...]
    n_datasets: int
    df_complete: float
    _pooled: PooledVariance
    _library: str | None = field(default=None)

    @property
    def coef_(self) -> Features:
        """Log hazard ratios (p,)."""
        return self._pooled.coef

    @property
    def within_variance_(self) -> Matrix:
        """Mean covariance within the data sets (p, p)."""
        return self._pooled.within

    @property
    def between_variance_(self) -> Matrix:
        """Covariance of the coefficients between the data sets (p, p)."""
        return self._pooled.between

    @property
    def variance_(self) -> Matrix:
        """Total covariance (p, p)."""
        return self._pooled.total

    @property
    def standard_error_(self) -> Features:
        """Standard errors (p,)."""
        return np.asarray(np.sqrt(np.diag(self._pooled.total)))

    @property
    def df_(self) -> Features:
        """Degrees of freedom of Barnard and Rubin (p,)."""
        return self._pooled.df

    @property
    def relative_increase_(self) -> Features:
        """Relative increase of each variance by missing values (p,)."""
        return self._pooled.relative_increase

    @property
    def fraction_missing_(self) -> Features:
        """Fraction of missing information of each coefficient (p,)."""
        return self._pooled.fraction_missing

    def __repr__(self) -> str:
        return (
            f"PooledEstimates({counted(self.n_datasets, 'data set')}, "
            f"{counted(len(self.covariates_), 'coefficient')})"
        )

    def summary(self, *, level: float = 0.95) -> Any:
        """Return a data frame with one row per coefficient.

        Columns: ``covariate``, ``coef``, ``hazard_ratio``, ``hazard_ratio_lower``,
        ``hazard_ratio_upper``, ``standard_error``, ``df``, ``t``, ``p``,
        ``fraction_missing`` (of the information) and ``relative_increase`` (of the variance).

        Examples
        --------
        >>> import numpy as np
        >>> import riskset as rs
        >>> y = rs.Surv([4, 3, 1, 2, 6, 5], [1, 1, 1, 0, 1, 1])
        >>> fits = [rs.Cox().fit(np.array([[1.0], [2], [4], [3], [2], [k]]), y) for k in (1, 2, 3)]
        >>> pooled = rs.pool(fits)
        >>> pooled.n_datasets, pooled.fraction_missing_.round(1)
        (3, array([0.5]))
        """
        interval = self.confidence_interval(level=level)
        error = self.standard_error_
        with np.errstate(over="ignore"):
            ratios = [np.exp(values) for values in (self.coef_, interval.lower, interval.upper)]
        columns = {
            "covariate": np.array(self.covariates_, dtype=object),
            "coef": self.coef_,
            "hazard_ratio": ratios[0],
            "hazard_ratio_lower": ratios[1],
            "hazard_ratio_upper": ratios[2],
            "standard_error": error,
            "df": self.df_,
            "t": self.coef_ / error,
            "p": t_p_value(self.coef_ / error, self.df_),
            "fraction_missing": self.fraction_missing_,
            "relative_increase": self.relative_increase_,
        }
        return data_frame(columns, self._library)

    def confidence_interval(
        self, parameters: str | Sequence[str] | None = None, *, level: float = 0.95
    ) -> ConfidenceInterval:
        """Intervals of log hazard ratios, by Student's t.

        Parameters
        ----------
        parameters : str or sequence of str, optional
            Covariates. Default: all.
        level : float
            Coverage.
        """
        check_level(level)
        at = self._positions(parameters)
        half = t_quantile(level, self.df_[at]) * self.standard_error_[at]
        names = tuple(self.covariates_[j] for j in at)
        coef = self.coef_[at]
        return ConfidenceInterval("pooled", level, names, coef - half, coef + half)

    def test(self, parameters: str | Sequence[str] | None = None) -> FTest:
        r"""Wald test that coefficients are 0, such as those of all levels of a category.

        The statistic is D1 of Li, Raghunathan and Rubin (1991), doi:10.1080/01621459.1991.10475152:
        it takes the fraction of missing information to be the same for all of these coefficients,
        which makes it reliable with few data sets.

        Parameters
        ----------
        parameters : str or sequence of str, optional
            Covariates. Default: all.

        Returns
        -------
        FTest
            ``statistic``, ``df``, ``df_residual``, ``p_value``.

        Raises
        ------
        InputError
            If no coefficient is named, one is named twice or unknown, is not estimated in every
            data set or has no variance within them, or one follows from the others.
        """
        at = self._positions(parameters)
        names = [self.covariates_[j] for j in at]
        if not names:
            raise InputError(
                "`parameters` names no coefficient, so there is nothing to test.",
                hint="name one or more, or leave it out to test all.",
            )
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise InputError(f"`parameters` names {twice!r} twice.", hint="name each once.")
        unknown = [self.covariates_[j] for j in at if np.isnan(self.coef_[j])]
        if unknown:
            raise InputError(
                f"coefficient {unknown[0]!r} is not estimated in every data set.",
                hint="name the coefficients to test.",
            )
        within = self._pooled.within[np.ix_(at, at)]
        if not is_definite(within):
            raise InputError(
                f"the variance within the data sets of {', '.join(map(repr, names))} is singular: "
                "one of the coefficients has no variance, or follows from the others.",
                hint="name fewer coefficients.",
            )
        own = PooledVariance(
            self.n_datasets,
            self.coef_[at],
            within,
            self._pooled.between[np.ix_(at, at)],
            self.df_complete,
        )
        return pooled_test(own, np.zeros(at.size))

    def _positions(self, parameters: str | Sequence[str] | None) -> Index:
        if parameters is None:
            return np.arange(len(self.covariates_), dtype=np.int64)
        names = [parameters] if isinstance(parameters, str) else list(parameters)
        for name in names:
            if name not in self.covariates_:
                raise InputError.unknown_name("covariate", name, self.covariates_)
        return np.array([self.covariates_.index(name) for name in names], dtype=np.int64)


def pool(results: Sequence[object], *, df_complete: float | None = None) -> PooledEstimates:
    """Pool models that were fitted to completed data sets, by Rubin's rules.

    Parameters
    ----------
    results : sequence of fitted `Cox` or `FineGray`, or of `riskset.cohort.Estimate`
        One for each data set, all with the same settings and covariates, without a penalty. Of an
        `Estimate` the log hazard ratio of the treatment is pooled. Variances are robust where
        `summary` uses robust ones.
    df_complete : float, optional
        Degrees of freedom that complete data would have. Default: the number of events minus the
        number of coefficients, as in R's mice; `math.inf` for large samples.

    Returns
    -------
    PooledEstimates

    Raises
    ------
    InputError
        If there are fewer than two results in a list, they are not of the same kind, a fit is
        penalised, or an estimate has a status other than "ok".

    Examples
    --------
    >>> import numpy as np
    >>> import riskset as rs
    >>> y = rs.Surv([4, 3, 1, 2, 6, 5], [1, 1, 1, 0, 1, 1])
    >>> fits = [rs.Cox().fit(np.array([[1.0], [2], [4], [3], [2], [k]]), y) for k in (1, 2, 3)]
    >>> rs.pool(fits).confidence_interval()["x0"]
    (-2.48, 3.96)
    """
    if isinstance(results, HazardModel | Estimate):
        results = [results]
    if not isinstance(results, Iterable):
        raise InputError(
            f"`results` must be a list of results, but it is {type(results).__name__}.",
            hint="pass one result for each completed data set.",
        )
    results = list(results)
    if len(results) < 2:
        raise InputError(
            f"there {'is' if len(results) == 1 else 'are'} {counted(len(results), 'result')}, but "
            "pooling needs two or more.",
            hint="pass one result for each completed data set.",
        )
    if df_complete is not None and not (is_number(df_complete) and df_complete > 0):
        raise InputError(
            f"`df_complete` must be a number above 0, but it is {df_complete!r}.",
            hint="leave it out, or pass math.inf for large samples.",
        )
    read = [_Read.of(result, k) for k, result in enumerate(results)]
    first = read[0]
    for k, other in enumerate(read):
        if (other.kind, other.names, other.is_robust) != (
            first.kind,
            first.names,
            first.is_robust,
        ):
            raise InputError(
                f"result {k} is not of the same kind as result 0, or has other covariates.",
                hint="fit the same model, with the same settings, to every data set.",
            )
    coef, covariance = (np.array(part) for part in ([r.coef for r in read], [r.var for r in read]))
    whole = min(r.df for r in read) if df_complete is None else float(df_complete)
    pooled = PooledVariance.of(coef, covariance, whole)
    return PooledEstimates(first.names, len(read), whole, pooled, first.library)


@dataclass(frozen=True, eq=False)
class _Read:
    """What one result brings."""

    kind: str
    names: tuple[str, ...]
    coef: Features
    var: Matrix
    df: float
    is_robust: bool
    library: str | None = None

    @classmethod
    def of(cls, result: object, number: int) -> "_Read":
        if isinstance(result, Estimate):
            if result.status != "ok":
                raise InputError(
                    f"result {number} has the status {result.status!r}: {result.reason}",
                    hint="pool estimates with the status 'ok'.",
                )
            events = result.target.outcomes + result.comparator.outcomes
            coef, var = np.array([result.log_hr]), np.array([[result.se**2]])
            kind = f"{result.model}, {result.reading}"
            used = 1 + (0 if result.penalty is not None else len(result.names))
            return cls(kind, TREATMENT, coef, var, max(1.0, events - used), False)
        if not isinstance(result, HazardModel):
            raise InputError(
                f"result {number} is a {type(result).__name__}, which cannot be pooled.",
                hint="pass fitted Cox or FineGray models, or results of `fit_outcome`.",
            )
        result._defined("pooling")
        var = result.robust_variance_ if result.is_robust_ else result.variance_
        lost = np.isnan(np.diag(var))
        coef = np.where(lost, np.nan, result.coef_)
        return cls(
            type(result).__name__,
            result.covariates_,
            coef,
            np.asarray(var),
            max(1.0, float(result.n_events_ - np.count_nonzero(~lost))),
            result.is_robust_,
            result._library,
        )
