r"""The inverse of the curvature in the log frailties, :math:`H = D - B`.

D is diagonal and holds the penalty; B (`model.cluster_curvature`) has few eigenvalues of any size,
because risk sets change slowly. With :math:`\tilde B = D^{-1/2} B D^{-1/2}`, its leading
eigenvectors V with eigenvalues :math:`\lambda`, and what they leave, R,

.. math::
    D^{1/2} H^{-1} D^{1/2} = I + V \mathrm{diag}\left(\frac{\lambda}{1 - \lambda}\right) V'
        + R + R^2 (I - R)^{-1}

The diagonal of the first three terms is exact, since that of B is known, and the last is smaller
than R by the largest eigenvalue left: its traces are means over random signs. Hutchinson (1990),
Communications in Statistics 19, 433-450, doi:10.1080/03610919008812866; Lanczos with
reorthogonalisation: Parlett (1998), The Symmetric Eigenvalue Problem, chapter 13,
doi:10.1137/1.9781611971163.
"""

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.linalg as sla
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from riskset._types import Index, Matrix
from riskset.model.frailty import Clusters

__all__ = ["ClusterInverse", "invert", "linked_clusters"]

MAX_BLOCK = 1000
"""Of fewer clusters that share strata the matrix is made, if that takes few passes over rows."""
MAX_BLOCK_WORK = 2e7
"""Most clusters of such a block times rows for that."""
MAX_LARGE_BLOCK = 3000
MAX_LARGE_WORK = 5e8
"""The same where leading eigenvectors leave too much."""
MAX_VECTORS = 150
CHECK_EVERY = 10
RITZ_ACCURACY = 1e-10
TAIL_SHARE = 1e-9
"""A trace is known to so much per cluster before signs are drawn."""
N_SIGNS = 32
N_QUADRATURE = 40
SOLVE_ACCURACY = 1e-11
MAX_SOLVE_STEPS = 500

Product = Callable[[Clusters], Clusters]


class ClusterInverse(ABC):
    """Inverse of the curvature of the clusters, as far as variances need it."""

    @abstractmethod
    def solve(self, right: Matrix) -> Matrix:
        """Inverse times the columns of a matrix (n_clusters, m)."""

    @abstractmethod
    def trace(self, weight: Clusters) -> float:
        """Sum of the diagonal of the inverse times `weight`."""

    trace_error: float = 0.0
    """Standard error of a trace with weights 1, where signs were drawn."""

    @property
    @abstractmethod
    def diagonal(self) -> Clusters:
        """Diagonal of the inverse."""

    @property
    @abstractmethod
    def log_determinant(self) -> float:
        """Log of the determinant of the curvature itself."""


def linked_clusters(cluster: Index, stratum: Index, n_clusters: int) -> Index:
    """Number (n_clusters,) of the part of each cluster: parts share no stratum."""
    n_strata = int(stratum.max(initial=0)) + 1
    if n_strata == 1:
        return np.zeros(n_clusters, dtype=np.int64)
    shape = (n_clusters + n_strata, n_clusters + n_strata)
    links = sp.coo_array((np.ones(cluster.size), (cluster, n_clusters + stratum)), shape=shape)
    return np.asarray(connected_components(links, directed=False)[1][:n_clusters], dtype=np.int64)


def invert(
    product: Product, diagonal: Clusters, shared: Clusters, part: Index, n_rows: int
) -> ClusterInverse:
    """Invert D - B, from the map B, D and the diagonal of B.

    D, the `diagonal`, is larger than B in every direction, and B is 0 between clusters of different
    parts.
    """
    root = np.sqrt(diagonal)

    def scaled(v: Clusters) -> Clusters:
        return product(v / root) / root

    largest = int(np.bincount(part).max())
    if largest <= MAX_BLOCK and largest * n_rows <= MAX_BLOCK_WORK:
        return _Blocks.of(root, scaled, part)
    left = shared / diagonal
    values, vectors, is_small = _leading(scaled, diagonal.size, float(left.sum()))
    if not is_small and largest <= MAX_LARGE_BLOCK and largest * n_rows <= MAX_LARGE_WORK:
        return _Blocks.of(root, scaled, part)
    return _Deflated(root, scaled, left, values, vectors, is_small)


class _Block(NamedTuple):
    """Parts of one size: their clusters (m, s), and of each a Cholesky factor and an inverse."""

    clusters: Index
    factor: NDArray[np.float64]
    inverse: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class _Blocks(ClusterInverse):
    """Whole matrices I less the scaled B, of each part."""

    root: Clusters
    blocks: tuple[_Block, ...]

    @classmethod
    def of(cls, root: Clusters, scaled: Product, part: Index) -> "_Blocks":
        """One cluster of each part at once: as many products as the largest part has clusters."""
        order = np.argsort(part, kind="stable")
        sizes = np.bincount(part)
        first = np.cumsum(sizes) - sizes
        place = np.zeros(part.size, dtype=np.int64)
        place[order] = np.arange(part.size) - first[part[order]]
        columns = [scaled((place == k).astype(np.float64)) for k in range(int(sizes.max()))]
        blocks = []
        for size in np.unique(sizes[sizes > 0]):
            clusters = order[first[sizes == size][:, None] + np.arange(size)]
            b = np.stack([column[clusters] for column in columns[:size]], axis=2)
            matrix = np.eye(size) - (b + b.transpose(0, 2, 1)) / 2
            factor = np.linalg.cholesky(matrix)
            blocks.append(_Block(clusters, factor, np.linalg.inv(matrix)))
        return cls(root, tuple(blocks))

    def solve(self, right: Matrix) -> Matrix:
        out = np.zeros_like(right)
        for block in self.blocks:
            root = self.root[block.clusters][:, :, None]
            out[block.clusters] = block.inverse @ (right[block.clusters] / root) / root
        return out

    def trace(self, weight: Clusters) -> float:
        return float(weight @ self.diagonal)

    @property
    def diagonal(self) -> Clusters:
        out = np.zeros(self.root.size)
        for block in self.blocks:
            out[block.clusters] = np.diagonal(block.inverse, axis1=1, axis2=2)
        return out / self.root**2

    @property
    def log_determinant(self) -> float:
        found = float(np.log(self.root).sum())
        for block in self.blocks:
            found += float(np.log(np.diagonal(block.factor, axis1=1, axis2=2)).sum())
        return 2.0 * found


@dataclass(frozen=True, eq=False)
class _Deflated(ClusterInverse):
    root: Clusters
    scaled: Product
    shared: Clusters
    """Diagonal of the scaled B."""
    values: Clusters
    vectors: Matrix
    is_small: bool
    """Whether what R squared adds to a trace is below `TAIL_SHARE`."""

    @property
    def _known(self) -> Clusters:
        """Diagonal of the first three terms, scaled."""
        square = self.vectors**2
        gain = self.values / (1.0 - self.values)
        return 1.0 + square @ gain + np.maximum(self.shared - square @ self.values, 0.0)

    def _rest(self, v: Clusters) -> Clusters:
        """R times a vector."""
        v = v - self.vectors @ (self.vectors.T @ v)
        out = self.scaled(v)
        return out - self.vectors @ (self.vectors.T @ out)

    def _signs(self) -> Iterator[Clusters]:
        """The same random signs in each call; none where they would add next to nothing."""
        draw = np.random.default_rng(1)
        for _ in range(0 if self.is_small else N_SIGNS):
            yield np.where(draw.integers(0, 2, self.root.size) > 0, 1.0, -1.0)

    def _tails(self, weight: Clusters) -> list[float]:
        r"""Of each sign vector what estimates the weighted trace of :math:`R^2 (I - R)^{-1}`."""
        out = []
        for signs in self._signs():
            beyond = _conjugate_gradients(lambda v: v - self._rest(v), signs)
            out.append(float((weight * signs) @ (beyond - signs - self._rest(signs))))
        return out

    @functools.cached_property
    def trace_error(self) -> float:  # type: ignore[override]
        """From the spread over signs."""
        tails = self._tails(1.0 / self.root**2)
        return float(np.std(tails, ddof=1) / np.sqrt(len(tails))) if tails else 0.0

    def solve(self, right: Matrix) -> Matrix:
        return np.array([self._solve(column) for column in right.T]).T.reshape(right.shape)

    def _solve(self, right: Clusters) -> Clusters:
        """The leading eigenvectors have their inverse from the start."""
        gain = self.values / (1.0 - self.values)

        def near(v: Clusters) -> Clusters:
            return v + self.vectors @ (gain * (self.vectors.T @ v))

        found = _conjugate_gradients(lambda v: v - self.scaled(v), right / self.root, near)
        return np.asarray(found / self.root)

    def trace(self, weight: Clusters) -> float:
        weight = weight / self.root**2
        tails = self._tails(weight)
        return float(weight @ self._known) + (sum(tails) / len(tails) if tails else 0.0)

    @property
    def diagonal(self) -> Clusters:
        """Without the last term, which is next to nothing of a cluster."""
        return np.asarray(self._known / self.root**2)

    @property
    def log_determinant(self) -> float:
        led = float(np.log1p(-self.values).sum())
        rest = float(self.shared.sum() - self.values.sum())
        tails = [_log_tail(self._rest, signs) for signs in self._signs()]
        tail = sum(tails) / len(tails) if tails else 0.0
        return 2.0 * float(np.log(self.root).sum()) + led - rest + tail


def _leading(scaled: Product, n: int, trace: float) -> tuple[Clusters, Matrix, bool]:
    """Eigenvalues and eigenvectors (n, k), by Lanczos, and whether they leave a small rest."""
    most = min(MAX_VECTORS, n)
    basis = np.zeros((most + 1, n))
    start = 1.0 + 0.5 * np.random.default_rng(0).standard_normal(n)
    basis[0] = start / np.linalg.norm(start)
    along, across = np.zeros(most), np.zeros(most)
    for k in range(most):
        image = scaled(basis[k])
        along[k] = float(basis[k] @ image)
        for _ in range(2):
            image = image - basis[: k + 1].T @ (basis[: k + 1] @ image)
        across[k] = float(np.linalg.norm(image))
        is_last = k + 1 == most or across[k] <= RITZ_ACCURACY
        if is_last or (k + 1) % CHECK_EVERY == 0:
            values, inner = sla.eigh_tridiagonal(along[: k + 1], across[:k])
            is_right = across[k] * np.abs(inner[-1]) <= RITZ_ACCURACY
            worst = float(np.abs(values[~is_right]).max(initial=0.0))
            rest = trace - float(values[is_right].sum())
            is_small = worst * max(rest, 0.0) <= TAIL_SHARE * n
            if is_last or is_small:
                return values[is_right], basis[: k + 1].T @ inner[:, is_right], is_small
        basis[k + 1] = image / across[k]
    raise AssertionError


def _conjugate_gradients(product: Product, b: Clusters, near: Product = np.copy) -> Clusters:
    """Solve with a positive definite map, and `near` its inverse."""
    x = near(b)
    left = b - product(x)
    z = near(left)
    towards, size, goal = z, float(left @ z), SOLVE_ACCURACY**2 * float(b @ near(b))
    for _ in range(MAX_SOLVE_STEPS):
        if size <= goal:
            break
        image = product(towards)
        step = size / float(towards @ image)
        x, left = x + step * towards, left - step * image
        z = near(left)
        size, before = float(left @ z), size
        towards = z + size / before * towards
    return x


def _log_tail(rest: Product, signs: Clusters) -> float:
    r"""Estimate of the trace of :math:`\log(I - R) + R` by Lanczos's quadrature.

    Golub & Meurant (2010), Matrices, Moments and Quadrature, chapter 11,
    doi:10.1515/9781400833887.
    """
    total = float(signs @ signs)
    basis = np.zeros((N_QUADRATURE + 1, signs.size))
    basis[0] = signs / np.sqrt(total)
    along, across = np.zeros(N_QUADRATURE), np.zeros(N_QUADRATURE)
    n = 0
    for k in range(N_QUADRATURE):
        n = k + 1
        image = rest(basis[k])
        along[k] = float(basis[k] @ image)
        image = image - basis[:n].T @ (basis[:n] @ image)
        across[k] = float(np.linalg.norm(image))
        if across[k] <= RITZ_ACCURACY:
            break
        basis[n] = image / across[k]
    values, inner = sla.eigh_tridiagonal(along[:n], across[: n - 1])
    return total * float((inner[0] ** 2) @ (np.log1p(-values) + values))
