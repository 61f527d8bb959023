"""Likelihood-ratio, score and Wald tests, and Wald intervals, of unpenalised estimates."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, erfc, ndtri

from riskset._errors import InputError
from riskset._runtime import one_blas_thread
from riskset._types import Features, is_number
from riskset.data.design import Design
from riskset.infer.residuals import score_contributions
from riskset.infer.variance import (
    Covariance,
    cluster_sums,
    generalized_inverse,
    information_inverse,
    null_score,
)
from riskset.model.loss import Loss

__all__ = [
    "ChiSquareTest",
    "ScoreTests",
    "check_level",
    "exponentials",
    "likelihood_ratio_test",
    "normal_p_value",
    "normal_quantile",
    "score_tests",
    "wald_interval",
    "wald_test",
]


@dataclass(frozen=True)
class ChiSquareTest:
    """A statistic that is chi-square with `df` degrees of freedom under the null hypothesis.

    Attributes
    ----------
    statistic : float
    df : int
        Number of estimable directions, not of columns.
    """

    statistic: float
    df: int

    @property
    def p_value(self) -> float:
        """Upper tail probability; NaN with no degrees of freedom."""
        return float(chdtrc(self.df, self.statistic)) if self.df > 0 else float("nan")


@dataclass(frozen=True)
class ScoreTests:
    """Score test of all coefficients being 0, and its robust version if requested."""

    score: ChiSquareTest
    robust: ChiSquareTest | None


def likelihood_ratio_test(
    log_likelihood: float, null_log_likelihood: float, df: int
) -> ChiSquareTest:
    r"""Test of nested models: :math:`2 (\ell - \ell_0)`.

    `df` is the rank of the information at the null hypothesis, which also counts infinite
    estimates.
    """
    return ChiSquareTest(max(0.0, 2.0 * (log_likelihood - null_log_likelihood)), df)


@one_blas_thread
def score_tests(loss: Loss, design: Design, *, robust: bool = False) -> ScoreTests:
    r"""Score test that all coefficients are 0, the offset being kept.

    .. math:: U(0)' I(0)^{-1} U(0)

    and with `robust` :math:`U' (\sum_c U_c U_c')^{-1} U`, where :math:`U_c` is the score of the
    rows of cluster c (of each row without clusters), times their case weights. O(n p^2 + p^3) time.
    """
    loss = loss.whole
    eta = loss.offset
    score = null_score(loss, design, eta)
    inverse = information_inverse(loss, design, eta)
    plain = ChiSquareTest(inverse.form(score), inverse.rank)
    if not robust:
        return ScoreTests(plain, None)
    rows = score_contributions(loss, design, eta) / design.scale
    rows = cluster_sums(rows, loss.outcome.cluster) @ inverse.basis
    meat = generalized_inverse(rows.T @ rows)
    return ScoreTests(plain, ChiSquareTest(meat.form(rows.sum(axis=0)), meat.rank))


@one_blas_thread
def wald_test(coef: Features, covariance: Covariance) -> ChiSquareTest:
    r"""Wald test that all coefficients are 0, on their estimable combinations C'b.

    .. math:: (C'b)' \, [C' V C]^{-1} \, C'b

    which for the inverse information is b' I b, whatever part of b the data leave open. `coef` (p,)
    is in the user's units, and finite.
    """
    contrasts = covariance.inverse.contrasts
    value = contrasts.T @ (coef * covariance.scale)
    if covariance.kind == "model":
        return ChiSquareTest(float(value @ value), covariance.rank)
    inverse = generalized_inverse(contrasts.T @ covariance.finite @ contrasts)
    return ChiSquareTest(inverse.form(value), inverse.rank)


def normal_p_value(z: NDArray[np.float64]) -> NDArray[np.float64]:
    """Two-sided tail probability of a standard normal variable, exact far into the tails."""
    return np.asarray(erfc(np.abs(z) / np.sqrt(2.0)))


def wald_interval(
    coef: Features, standard_error: Features, level: float = 0.95
) -> tuple[Features, Features]:
    r"""Symmetric normal interval :math:`b \pm z_{(1 + level)/2} \, se`."""
    half = normal_quantile(level) * standard_error
    return coef - half, coef + half


def exponentials(values: float | NDArray[np.float64]) -> NDArray[np.float64]:
    """Ratios from their logs (any shape); those too large for floating point are infinite."""
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(values))


def normal_quantile(level: float) -> float:
    """The z with probability `level` between -z and z, checked."""
    check_level(level)
    return -float(ndtri((1.0 - level) / 2.0))


def check_level(level: object) -> None:
    """Refuse a coverage that is not a probability between 0 and 1."""
    if not (is_number(level) and 0.0 < level < 1.0):
        raise InputError(
            f"`level` must be between 0 and 1, but it is {level!r}.", hint="0.95 means 95 %."
        )
