"""Covariance of unpenalised estimates: inverse information, and the robust sandwich.

Nothing here divides by a quantity that rounding may have made: a direction of the covariates that
the data hold no information on is recognised; its covariates are marked in `Covariance.identified`
and get NaN, and the others keep the answer they would have without it.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from riskset._runtime import one_blas_thread
from riskset._types import Features, Index, Matrix, Rows
from riskset.data.design import Design
from riskset.infer.logistic_pieces import LogisticPieces
from riskset.infer.residuals import MAX_BLOCK, column_blocks, pieces_at
from riskset.infer.subdistribution import below_highest
from riskset.model.cox import Prepared
from riskset.model.loss import Loss
from riskset.model.ordered_columns import centred_at_risk, centred_within_strata

__all__ = [
    "Covariance",
    "GeneralizedInverse",
    "among",
    "cluster_sums",
    "generalized_inverse",
    "influence",
    "information_inverse",
    "model_covariance",
    "null_score",
    "robust_covariance",
    "rounding_of",
]

RANK_TOLERANCE = 1e-13
"""Share of a direction's second moment within strata below which its information is rounding."""

NOISE = 8.0 * np.finfo(np.float64).eps
"""Relative rounding of a number that users computed."""

LOOSE = 1e-6
"""Size of a covariate's part in a direction without information that makes it unidentified."""


@dataclass(frozen=True, eq=False)
class GeneralizedInverse:
    """Inverse of a positive semidefinite matrix A on the directions that carry information.

    It is ``basis @ basis.T``. `contrasts` (p, rank) are the estimable combinations of the columns:
    ``contrasts.T @ basis`` is the identity, and ``contrasts @ contrasts.T`` is A. A column is not
    `identified` (p,) if it takes part in a direction that was left out.
    """

    basis: Matrix
    contrasts: Matrix
    identified: NDArray[np.bool_]

    @property
    def rank(self) -> int:
        """Number of directions kept."""
        return int(self.basis.shape[1])

    @property
    def matrix(self) -> Matrix:
        """The inverse (p, p), finite throughout."""
        return self.basis @ self.basis.T

    def form(self, v: Features) -> float:
        """``v' A^- v``."""
        return float(np.sum((self.basis.T @ v) ** 2))


def generalized_inverse(matrix: Matrix, reference: Features | None = None) -> GeneralizedInverse:
    r"""Invert on the directions that carry information.

    The matrix is scaled to a unit diagonal and its eigenvectors v kept where

    .. math:: \lambda > 10^{-13} \sum_j v_j^2 \, reference_j / matrix_{jj}

    Parameters
    ----------
    matrix : (p, p) float64
        Positive semidefinite up to rounding.
    reference : (p,) float64, optional
        Size of the numbers whose difference the diagonal is; default: the diagonal itself. An
        information matrix is a difference of second moments and inherits their rounding errors.

    Notes
    -----
    O(p^3).
    """
    p = matrix.shape[0]
    diagonal = matrix.diagonal()
    reference = np.maximum(diagonal, 0.0) if reference is None else reference
    live = np.flatnonzero((diagonal > 0) & (diagonal > RANK_TOLERANCE * reference))
    size = np.sqrt(diagonal[live])
    scaled = matrix[np.ix_(live, live)] / size / size[:, None]
    values, vectors = np.linalg.eigh((scaled + scaled.T) / 2)
    ratio = np.maximum(reference[live] / diagonal[live], 1.0)
    keep = values > RANK_TOLERANCE * (ratio @ vectors**2)
    root = np.sqrt(values[keep])
    basis, contrasts = np.zeros((p, root.size)), np.zeros((p, root.size))
    basis[live] = vectors[:, keep] / root / size[:, None]
    contrasts[live] = vectors[:, keep] * root * size[:, None]
    identified = np.zeros(p, dtype=bool)
    identified[live] = np.sqrt((vectors[:, ~keep] ** 2).sum(axis=1)) <= LOOSE
    return GeneralizedInverse(basis, contrasts, identified)


@dataclass(frozen=True, eq=False)
class Covariance:
    """Covariance of coefficients `columns` (q,).

    It is `finite` (q, q) in stored units, in which neither huge nor tiny scales of covariates leave
    floating point, with the numbers of the pseudo-inverse if a column is not identified. `inverse`
    is the inverse information of all p columns; a coefficient in stored units is `scale` (p,) times
    that of the user.
    """

    kind: Literal["model", "robust"]
    columns: Index
    inverse: GeneralizedInverse
    finite: Matrix
    scale: Features

    @property
    def rank(self) -> int:
        """Number of estimable directions among all columns."""
        return self.inverse.rank

    @property
    def identified(self) -> NDArray[np.bool_]:
        """Which of `columns` the data determine (q,)."""
        return np.asarray(self.inverse.identified[self.columns])

    @property
    def matrix(self) -> Matrix:
        """Covariance (q, q) in the user's units, NaN where a row or column is not identified.

        With covariates of size 1e-160 it is beyond floating point: infinite. Standard errors stay.
        """
        scale = self.scale[self.columns]
        with np.errstate(over="ignore", under="ignore"):
            finite = self.finite / scale / scale[:, None]
        return np.where(self.identified[:, None] & self.identified, finite, np.nan)

    @property
    def standard_error(self) -> Features:
        """Standard errors (q,) in the user's units, NaN where not identified."""
        root = np.sqrt(np.where(self.identified, self.finite.diagonal(), np.nan))
        return np.asarray(root / self.scale[self.columns])


@one_blas_thread
def information_inverse(
    loss: Loss, design: Design, eta: Rows, columns: Index | None = None
) -> GeneralizedInverse:
    """Generalized inverse, in stored units, of the observed information of all p columns.

    `eta` (n,) includes the offset. Columns that were not estimated, such as aliased ones, are held
    fixed: 0 and not identified.
    """
    columns = np.arange(design.n_features) if columns is None else columns
    eta = below_highest(eta, loss.outcome)
    now = loss.evaluate(eta)
    information = loss.information(design, eta, columns, Prepared(now))
    reference = _second_moments(loss, design, now.expected, columns)
    return among(generalized_inverse(information, reference), columns, design.n_features)


def among(inner: GeneralizedInverse, columns: Index, n_features: int) -> GeneralizedInverse:
    """The inverse for some columns as one of all, 0 and not identified for the others."""
    shape = (n_features, inner.rank)
    basis, contrasts = np.zeros(shape), np.zeros(shape)
    identified = np.zeros(n_features, dtype=bool)
    basis[columns], contrasts[columns] = inner.basis, inner.contrasts
    identified[columns] = inner.identified
    return GeneralizedInverse(basis, contrasts, identified)


def rounding_of(second_moments: Features) -> Features:
    """What information that is a sum of squares may be lost in, for `generalized_inverse`."""
    return second_moments * (NOISE**2 / RANK_TOLERANCE)


def _second_moments(loss: Loss, design: Design, expected: Rows, columns: Index) -> Features:
    """Size of what the information may be lost in, in stored units.

    Without late entry it has all digits, unless it is rounding of the numbers themselves. With late
    entry it is a difference of second moments within strata (`Loss.information`), and where ties
    are exact, one of moments of sums.
    """
    raw = design.cross(expected, columns, runtime=loss.runtime, power=2)
    out = rounding_of(raw)
    if not loss.risk.own.size and loss.largest_tie == 1:
        return out
    if loss.outcome.n_strata == 1:
        first = design.cross(expected, columns, runtime=loss.runtime)
        about_mean = raw - first * (first / (float(expected.sum()) or 1.0))
        return np.maximum(out, loss.largest_tie * about_mean)
    for block in column_blocks(design.n_rows, columns):
        z = centred_within_strata(design.stored(columns[block]), loss.outcome, expected)
        out[block] = np.maximum(out[block], loss.largest_tie * (expected @ z**2))
    return out


def null_score(loss: Loss, design: Design, eta: Rows) -> Features:
    """Score of all columns in stored units, as exact as the spread within strata allows."""
    residual = loss.evaluate(eta).residual
    if loss.outcome.n_strata == 1:
        return design.cross(residual, runtime=loss.runtime)
    out = np.empty(design.n_features)
    columns = np.arange(design.n_features)
    for block in column_blocks(design.n_rows, columns):
        z = centred_at_risk(design.stored(columns[block]), loss.outcome, loss.risk, loss.tails)
        out[block] = residual @ z
    return out


@one_blas_thread
def model_covariance(
    loss: Loss, design: Design, eta: Rows, columns: Index | None = None
) -> Covariance:
    """Inverse of the observed information of an unpenalised fit; see `information_inverse`.

    Constant, collinear and never-at-risk columns are not identified. It takes O(n p^2 + p^3) time,
    and case weights for counts of equal rows; other weights need `robust_covariance`.
    """
    inverse = information_inverse(loss, design, eta, columns)
    columns = np.arange(design.n_features)
    return Covariance("model", columns, inverse, inverse.matrix, design.scale)


@one_blas_thread
def influence(
    loss: Loss, design: Design, eta: Rows, inverse: GeneralizedInverse, columns: Index
) -> Matrix:
    r"""Change of coefficients in stored units (n, q), to first order, per row as it is.

    .. math:: w_i U_i \, I^{-1}

    with the score residuals U; in Fine and Gray's model also through the censoring distribution.
    The score residual is linear in the covariates, so the wanted columns of :math:`I^{-1}` are
    applied first, and only q columns are ever carried over the rows: O(q nnz + n q) time.
    """
    pieces = LogisticPieces.at(loss, eta) if loss.has_intercept else pieces_at(loss, eta)
    contributions = pieces.contributions
    out = np.empty((design.n_rows, columns.size))
    for block in column_blocks(design.n_rows, columns):
        combination = inverse.basis @ inverse.basis[columns[block]].T
        out[:, block] = contributions(_products(loss, design, combination))
    return out


def _products(loss: Loss, design: Design, combination: Matrix) -> Matrix:
    """Stored columns times each column of a matrix (p, k): (n, k)."""
    n, p = design.n_rows, design.n_features
    if p <= MAX_BLOCK and 2 * design.n_entries() > n * p:  # dense: one pass instead of k
        return np.asarray(design.stored() @ combination)
    out = np.empty((n, combination.shape[1]))
    for k in range(combination.shape[1]):
        out[:, k] = design.product(combination[:, k], runtime=loss.runtime)
    return out


def cluster_sums(values: Matrix, cluster: Index | None) -> Matrix:
    """Sums of rows that belong together, (n_clusters, q); without clusters the rows themselves."""
    if cluster is None:
        return values
    n_clusters = int(cluster.max(initial=-1)) + 1
    out = np.empty((n_clusters, values.shape[1]))
    for k in range(values.shape[1]):
        out[:, k] = np.bincount(cluster, values[:, k], n_clusters)
    return out


@one_blas_thread
def robust_covariance(
    loss: Loss,
    design: Design,
    eta: Rows,
    inverse: GeneralizedInverse,
    columns: Index | None = None,
) -> Covariance:
    r"""Sandwich covariance that holds if rows, or the clusters of the outcome, are independent.

    .. math:: \sum_c D_c D_c', \qquad D_c = \sum_{i \in c} w_i U_i I^{-1}

    In Fine and Gray's model :math:`w_i U_i` also counts what row i does to the estimate of the
    censoring distribution, as cmprsk's ``crr`` (`SubdistributionPieces.contributions`). `inverse`
    is that of `model_covariance`. There is no small-sample correction, as in R's `coxph`.

    References
    ----------
    Lin and Wei (1989), Journal of the American Statistical Association 84, 1074-1078,
    doi:10.1080/01621459.1989.10478874.
    Fine and Gray (1999), Journal of the American Statistical Association 94, 496-509,
    doi:10.1080/01621459.1999.10474144.
    """
    columns = np.arange(design.n_features) if columns is None else columns
    sums = cluster_sums(influence(loss, design, eta, inverse, columns), loss.outcome.cluster)
    return Covariance("robust", columns, inverse, sums.T @ sums, design.scale)
