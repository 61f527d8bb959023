"""Standard errors of predictions that depend on all increments of one or several hazards."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from riskset._types import Index, Matrix, Rows
from riskset.infer.hazard_influence import FittedHazard, joint_covariance
from riskset.infer.residuals import column_blocks
from riskset.infer.variance import cluster_sums

__all__ = ["AveragedFunctional", "functional_predictions"]

ROUNDING = 1e-10
"""Share of a row of sensitivities that a basis may leave out."""

Functional = Callable[[Index], tuple[Matrix, list[NDArray[np.float64]]]]
"""Predictions (b, m) of rows, and their derivatives for each fit (b, m, M)."""


def functional_predictions(
    fits: Sequence[FittedHazard],
    roots: Sequence[Matrix],
    stratum: int,
    predict: Functional,
    blocks: Sequence[Index],
    covariates: Callable[[Index], Matrix],
    *,
    is_robust: bool,
) -> Iterator[tuple[Index, Matrix, Matrix]]:
    r"""Predictions (b, m) for each block of rows, and their standard errors by the delta method.

    `predict` gives them with their derivatives in the log of each increment of each hazard, one (b,
    m, M) for each fit. With u those of a row and :math:`x` its covariates, the prediction changes
    with the log increments at known coefficients and with the coefficients by

    .. math:: \sum_g u_g \, d\log h_g + \Big( \sum_g u_g (x - \bar x_g) \Big)' d\beta

    summed over the fits. By the inverse information, the increments and coefficients of different
    causes are uncorrelated. The robust variance adds up what each row, or cluster, does to all of
    them. `roots` are those of the covariances of the coefficients.

    Notes
    -----
    Sensitivities are smooth in the linear predictors, so those of all rows lie close to a space of
    few dimensions r: O(n (r + p)) time for the influence of rows, however many are predicted.
    """
    if not is_robust:
        for rows in blocks:
            estimate, slopes = predict(rows)
            total = np.zeros(estimate.shape)
            for fit, root, u in zip(fits, roots, slopes, strict=True):
                total += _model_variance(fit, root, u, stratum, covariates(rows))
            yield rows, estimate, np.sqrt(total)
        return
    bases = [np.zeros((0, fit.steps.hazard[fit.steps.own(stratum)].size)) for fit in fits]
    for rows in blocks:
        for k, u in enumerate(predict(rows)[1]):
            bases[k] = _extended(bases[k], u.reshape(u.shape[0] * u.shape[1], u.shape[2]))
    covariance = joint_covariance(fits, stratum, bases)
    undefined = any(np.isnan(root).any() for root in roots)
    for rows in blocks:
        x, parts = covariates(rows), []
        estimate, slopes = predict(rows)
        for fit, basis, u in zip(fits, bases, slopes, strict=True):
            along = u @ basis.T
            mean = basis @ fit.steps.mean[fit.steps.own(stratum)]
            parts += [along, u.sum(axis=2)[:, :, None] * x[:, None, :] - along @ mean]
        joint = np.concatenate(parts, axis=2)
        variance = np.einsum("bmq,bmq->bm", joint @ covariance, joint)
        error = np.sqrt(np.maximum(variance, 0.0))
        yield rows, estimate, np.full_like(error, np.nan) if undefined else error


class AveragedFunctional:
    r"""The weighted mean of predictions of many rows (m,), and its standard error.

    Rows of any strata are added one block after the other. The covariates of the rows count as
    known: the standard error is that of the estimated hazards and coefficients. With :math:`w_i`
    the weights, it follows from the derivatives of the mean, :math:`\sum_i w_i u_i` in the log
    increments and :math:`\sum_i w_i \sum_g u_{ig} (x_i - \bar x_g)` in the coefficients, as in
    `functional_predictions`.
    """

    def __init__(self, fits: Sequence[FittedHazard], n_times: int) -> None:
        self._fits = fits
        self.estimate = np.zeros(n_times)
        self._slopes: list[dict[int, Matrix]] = [{} for _ in fits]
        self._scores = [np.zeros((n_times, fit.design.n_features)) for fit in fits]

    def add(
        self,
        stratum: int,
        weight: Rows,
        covariates: Matrix,
        found: tuple[Matrix, list[NDArray[np.float64]]],
    ) -> None:
        """Add rows of a stratum with their weights (b,), covariates and what predicts them."""
        estimate, slopes = found
        self.estimate += weight @ estimate
        for k, (fit, u) in enumerate(zip(self._fits, slopes, strict=True)):
            mean = np.tensordot(weight, u, axes=1)
            own = fit.steps.mean[fit.steps.own(stratum)]
            self._scores[k] += (weight[:, None] * u.sum(axis=2)).T @ covariates - mean @ own
            known = self._slopes[k]
            known[stratum] = known[stratum] + mean if stratum in known else mean

    def standard_error(self, roots: Sequence[Matrix], *, is_robust: bool) -> Rows:
        """Standard error (m,); `roots` are those of the covariances of the coefficients."""
        if any(np.isnan(root).any() for root in roots):
            return np.full_like(self.estimate, np.nan)
        if not is_robust:
            total = np.zeros(self.estimate.size)
            for fit, root, slopes, score in zip(
                self._fits, roots, self._slopes, self._scores, strict=True
            ):
                total += ((score @ root) ** 2).sum(axis=1)
                for stratum, u in slopes.items():
                    total += u**2 @ fit.steps.variance[fit.steps.own(stratum)]
            return np.asarray(np.sqrt(total))
        outcome = self._fits[0].loss.outcome
        moved = np.zeros((outcome.n_rows, self.estimate.size))
        for fit, slopes, score in zip(self._fits, self._slopes, self._scores, strict=True):
            moved += fit.of_hazards(slopes)
            columns = np.arange(fit.design.n_features)
            for block in column_blocks(outcome.n_rows, columns):
                moved += fit.of_coefficients(columns[block]) @ score[:, block].T
        sums = cluster_sums(moved, outcome.cluster)
        return np.asarray(np.sqrt((sums**2).sum(axis=0)))


def _model_variance(
    fit: FittedHazard, root: Matrix, u: NDArray[np.float64], stratum: int, covariates: Matrix
) -> Matrix:
    """Variances (b, m) by the inverse information."""
    own = fit.steps.own(stratum)
    score = u.sum(axis=2)[:, :, None] * (covariates @ root)[:, None, :]
    score -= u @ (fit.steps.mean[own] @ root)
    return np.asarray(u**2 @ fit.steps.variance[own] + (score**2).sum(axis=2))


def _extended(basis: Matrix, rows: Matrix) -> Matrix:
    """Orthonormal rows (r, M) that span those of `basis` and, but for rounding, some others."""
    size = np.sqrt((rows**2).sum(axis=1, keepdims=True))
    rows = rows[size[:, 0] > 0] / size[size[:, 0] > 0]
    while True:
        rest = rows - (rows @ basis.T) @ basis
        rest = rest[_norms(rest) > ROUNDING]
        if not rest.shape[0]:
            return basis
        if rest.shape[0] > rest.shape[1]:
            values, vectors = np.linalg.eigh(rest.T @ rest)
            more = vectors[:, values > 1e-12 * values[-1]].T
        else:
            values, vectors = np.linalg.eigh(rest @ rest.T)
            more = vectors[:, values > 1e-12 * values[-1]].T @ rest
        # Lengths of 1 before they are made orthogonal, so that none is lost beside another.
        more /= _norms(more)[:, None]
        basis = np.linalg.qr(np.concatenate([basis, more]).T)[0].T


def _norms(rows: Matrix) -> Rows:
    return np.asarray(np.sqrt((rows**2).sum(axis=1)))
