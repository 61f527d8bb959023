r"""Rubin's rules: one answer from the answers of several completed data sets.

References
----------
Rubin (1987), Multiple Imputation for Nonresponse in Surveys, Wiley.
Barnard and Rubin (1999), Small-sample degrees of freedom with multiple imputation, Biometrika 86,
948-955, doi:10.1093/biomet/86.4.948.
Li, Raghunathan and Rubin (1991), Large-sample significance levels from multiply imputed data using
moment-based statistics and an F reference distribution, Journal of the American Statistical
Association 86, 1065-1073, doi:10.1080/01621459.1991.10475152.
Reiter (2007), Small-sample degrees of freedom for multi-component significance tests with multiple
imputation for missing data, Biometrika 94, 502-508, doi:10.1093/biomet/asm028.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import fdtrc, stdtr, stdtrit

from riskset._types import Features, Matrix

__all__ = ["FTest", "PooledVariance", "is_definite", "pooled_test", "t_p_value", "t_quantile"]

ALL_OBSERVED = 1e-4
"""Share of the variance that is due to missing values below which it counts as this share."""

SINGULAR = 1e-12
"""A correlation matrix whose smallest eigenvalue is at most this is singular."""


@dataclass(frozen=True)
class FTest:
    """A statistic that has an F distribution under the null hypothesis.

    Attributes
    ----------
    statistic : float
    df, df_residual : float
        Degrees of freedom of the numerator (the number of coefficients) and of the denominator.

    Examples
    --------
    >>> FTest(4.0, 1, 100.0).p_value
    0.0482
    """

    statistic: float
    df: int
    df_residual: float

    @property
    def p_value(self) -> float:
        """Upper tail probability."""
        if np.isinf(self.df_residual):  # then the statistic times df is chi-square
            return float(fdtrc(self.df, 1e12, self.statistic))
        return float(fdtrc(self.df, self.df_residual, self.statistic))


@dataclass(frozen=True, eq=False)
class PooledVariance:
    r"""Estimates of `m` completed data sets, pooled.

    With estimates :math:`q_d` and their covariances :math:`U_d`, :math:`\bar q` is the mean of the
    estimates, :math:`\bar U` that of the covariances (`within`), `between` :math:`B = \sum (q_d -
    \bar q)(q_d - \bar q)' / (m - 1)`, and the total covariance :math:`T = \bar U + (1 + 1/m) B`.
    """

    n_datasets: int
    coef: Features
    within: Matrix
    between: Matrix
    df_complete: float

    @classmethod
    def of(cls, coef: Matrix, covariance: Matrix, df_complete: float) -> "PooledVariance":
        """From estimates (m, p) and their covariances (m, p, p)."""
        mean = coef.mean(axis=0)
        apart = coef - mean
        m = coef.shape[0]
        return cls(m, mean, covariance.mean(axis=0), apart.T @ apart / (m - 1), df_complete)

    @property
    def total(self) -> Matrix:
        """Total covariance T (p, p)."""
        return self.within + (1 + 1 / self.n_datasets) * self.between

    @property
    def relative_increase(self) -> Features:
        r"""Relative increase of each variance, :math:`r = (1 + 1/m) B / \bar U`."""
        added = (1 + 1 / self.n_datasets) * np.diag(self.between)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(added / np.diag(self.within))

    @property
    def share_missing(self) -> Features:
        r"""Share of each variance that is due to missing values, :math:`(1 + 1/m) B / T`."""
        added = (1 + 1 / self.n_datasets) * np.diag(self.between)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(added / np.diag(self.total))

    @property
    def df(self) -> Features:
        """Degrees of freedom of each t statistic (Barnard and Rubin)."""
        share = np.maximum(self.share_missing, ALL_OBSERVED)
        old = (self.n_datasets - 1) / share**2
        if np.isinf(self.df_complete):
            return np.asarray(old)
        whole = self.df_complete
        observed = (whole + 1) / (whole + 3) * whole * (1 - share)
        return np.asarray(old * observed / (old + observed))

    @property
    def fraction_missing(self) -> Features:
        r"""Fraction of missing information, :math:`(r + 2/(df + 3)) / (1 + r)`."""
        r = self.relative_increase
        with np.errstate(invalid="ignore"):
            return np.asarray((r + 2 / (self.df + 3)) / (1 + r))


def is_definite(covariance: Matrix) -> bool:
    """Whether a covariance matrix (k, k) has an inverse, whatever the units of its variables.

    >>> is_definite(np.array([[1.0, 2e6], [2e6, 9e12]])), is_definite(np.ones((2, 2)))
    (True, False)
    """
    variance = np.diag(covariance)
    if not (np.isfinite(covariance).all() and (variance > 0).all()):
        return False
    scale = np.sqrt(variance)
    return bool(np.linalg.eigvalsh(covariance / np.outer(scale, scale))[0] > SINGULAR)


def pooled_test(pooled: PooledVariance, null: Features) -> FTest:
    r"""Wald test that the coefficients are `null` (k,), the statistic D1 of Li and others.

    .. math:: D_1 = (\bar q - q_0)' \bar U^{-1} (\bar q - q_0) / [k (1 + r)], \quad
        r = (1 + 1/m) \, tr(B \bar U^{-1}) / k

    which is referred to an F distribution with k and w degrees of freedom. If complete data would
    have finitely many, w is that of Reiter (2007).
    """
    k, m = pooled.coef.size, pooled.n_datasets
    apart = pooled.coef - null
    increase = (1 + 1 / m) * float(np.trace(np.linalg.solve(pooled.within, pooled.between))) / k
    statistic = float(apart @ np.linalg.solve(pooled.within, apart)) / (k * (1 + increase))
    return FTest(statistic, k, _residual_df(k, k * (m - 1), increase, pooled.df_complete))


def _residual_df(k: int, t: int, increase: float, df_complete: float) -> float:
    """Degrees of freedom of the denominator of D1; t = k (m - 1)."""
    if increase == 0:
        return df_complete
    if np.isinf(df_complete) or t <= 4:
        if t > 4:
            return float(4 + (t - 4) * (1 + (1 - 2 / t) / increase) ** 2)
        return t * (1 + 1 / k) * (1 + 1 / increase) ** 2 / 2
    a = increase * t / (t - 2)
    whole = (df_complete + 1) / (df_complete + 3) * df_complete
    first, last = whole - 2 * (1 + a), whole - 4 * (1 + a)
    parts = (
        a**2 * first / ((1 + a) ** 2 * last)
        + 8 * a**2 * first / ((1 + a) * last**2)
        + 4 * a**2 / ((1 + a) * last)
        + 4 * a**2 / (last * first)
        + 16 * a**2 * first / last**3
        + 8 * a**2 / last**2
    )
    return float(4 + 1 / (1 / last + parts / (t - 4)))


def t_p_value(t: Features, df: Features) -> Features:
    """Two-sided tail probability of Student's t."""
    return np.asarray(2 * stdtr(df, -np.abs(t)))


def t_quantile(level: float, df: Features) -> Features:
    """The t with probability `level` between -t and t."""
    return np.asarray(-stdtrit(df, (1 - level) / 2))
