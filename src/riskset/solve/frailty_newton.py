r"""Coefficients and log frailties of a given variance: Newton steps by conjugate gradients.

Minimise the convex :math:`-\ell(X\beta + Zw) + \sum_i f(w_i)`. Its second derivative is

.. math::
    \begin{pmatrix} A & F \\ F' & D - B \end{pmatrix}, \qquad A = X'CX, \; F = X'CZ

with D diagonal. Without B it is solved directly, and B has few eigenvalues of any size, so that
conjugate gradients need few products with the curvature, each a pass over the rows.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import scipy.linalg as sla

from riskset._errors import InputError
from riskset._types import Features, Index, Matrix, Rows
from riskset.data.design import Design
from riskset.model.cluster_curvature import (
    MAX_SQUARED_SPAN,
    ClusterEntries,
    shared_variance,
)
from riskset.model.cox import Evaluation, Prepared
from riskset.model.curvature_product import curvature_product
from riskset.model.frailty import Clusters, FrailtyDistribution
from riskset.model.loss import Loss, rounding_of, within_reach
from riskset.solve.cluster_inverse import ClusterInverse, invert
from riskset.solve.optimality import Problem

__all__ = ["ClusterProblem", "FrailtyMaximum", "FrailtyVariances"]

MAX_HALVINGS = 40
STEP_ACCURACY = 1e-3
"""A step leaves so much of the slopes, in the norm of the preconditioner."""
MAX_PRODUCTS = 300
STALE_PRODUCTS = 40
"""After a step with more, the pieces of the preconditioner are made again."""
MAX_MOVED = 1e-10
"""Share of the events whose expectation may move with rows that are brought within reach."""
MAX_IDLE_STEPS = 8
"""Steps in a row without a smaller residual: it is rounding."""


class FrailtyMaximum(NamedTuple):
    """Where a maximisation of the penalised likelihood ended.

    `beta` (q,) in stored units, `w` (n_clusters,), `eta` (n,) with offsets and frailties.
    `residual` is the largest slope, of coefficients per spread and relative to the gradient of the
    model without frailties, of log frailties relative to their largest slope there.
    """

    beta: Features
    w: Clusters
    eta: Rows
    now: Evaluation
    penalty: float
    residual: float
    n_iter: int
    n_passes: int

    @property
    def value(self) -> float:
        """The penalised log partial likelihood."""
        return self.now.log_likelihood - self.penalty


class FrailtyVariances(NamedTuple):
    """What the second derivatives at a maximum say.

    `covariance` (q, q) and `sandwich` (q, q) of the coefficients, in stored units: of the inverse K
    of the second derivatives of the penalised likelihood, and of K I K with those I of the
    likelihood. `w_variance` (n_clusters,) is the diagonal of K of the log frailties, `df` their
    degrees of freedom, and `trace` the sum of that diagonal.
    """

    covariance: Matrix
    sandwich: Matrix
    w_variance: Clusters
    df: float
    trace: float
    inverse: ClusterInverse


@dataclass
class _Pieces:
    """A (q, q) and F (q, n_clusters) of some point, kept while they serve."""

    information: Matrix = field(default_factory=lambda: np.zeros((0, 0)))
    cross: Matrix = field(default_factory=lambda: np.zeros((0, 0)))
    is_made: bool = False


@dataclass(frozen=True, eq=False)
class ClusterProblem:
    """The penalised likelihood of some columns and all clusters.

    `cluster` (n,) is the cluster of each row. The `problem` says in which units residuals count.
    """

    problem: Problem
    loss: Loss
    columns: Index
    cluster: Index
    n_clusters: int
    distribution: FrailtyDistribution
    entries: ClusterEntries
    part: Index
    """See `linked_clusters`."""
    null_slope: float
    """Largest slope in a log frailty of the model without frailties."""
    pieces: _Pieces = field(default_factory=_Pieces)

    @property
    def design(self) -> Design:
        """The covariates."""
        return self.problem.design

    def sums(self, rows: Rows) -> Clusters:
        """Sums of a number of each row over the clusters."""
        return np.asarray(np.bincount(self.cluster, rows, self.n_clusters), dtype=np.float64)

    def _eta(self, beta: Features, w: Clusters) -> Rows:
        runtime = self.loss.runtime
        moved = self.design.product(beta, self.columns, runtime=runtime)
        return np.asarray(moved + w[self.cluster] + self.loss.offset)

    def _cross(self, rows: Rows) -> Features:
        return self.design.cross(rows, self.columns, runtime=self.loss.runtime)

    # -------------------------------------------------------------------------- the maximum

    def maximum(
        self,
        beta: Features,
        w: Clusters,
        variance: float,
        tol: float,
        max_iter: int,
        report: Callable[[int, float], object] | None = None,
    ) -> FrailtyMaximum:
        """Maximise from some coefficients and log frailties on."""
        eta = self._eta(beta, w)
        now, n_passes = self.loss.evaluate(eta), 1
        penalty = self.distribution.penalty(w, variance)
        n_idle, least = 0, np.inf
        for n_iter in range(max_iter + 1):
            slope = self._cross(now.residual)
            pull = self.sums(now.residual) - self.distribution.slope(w, variance)
            residual = self._residual(now, slope, pull)
            if report:
                report(n_iter, residual)
            n_idle, least = (0, residual) if residual < 0.5 * least else (n_idle + 1, least)
            found = FrailtyMaximum(beta, w, eta, now, penalty, residual, n_iter, n_passes)
            if residual <= tol or n_iter == max_iter or n_idle > MAX_IDLE_STEPS:
                return found
            b, v, n_products = self._direction(found, variance, slope, pull)
            n_passes += n_products
            slack = rounding_of(found.value, self.loss.n_events, float(np.ptp(eta)))
            for k in range(MAX_HALVINGS):
                share = 0.5**k
                after = beta + share * b, w + share * v
                with np.errstate(over="ignore", invalid="ignore"):
                    paid = self.distribution.penalty(after[1], variance)
                moved = self._eta(*after)
                n_passes += 1
                if np.isfinite(paid) and np.isfinite(moved).all():
                    there = self.loss.evaluate(moved)
                    if there.log_likelihood - paid >= found.value - slack:
                        break
            else:
                return found
            (beta, w), eta, now, penalty = after, moved, there, paid
        raise AssertionError

    def _residual(self, now: Evaluation, slope: Features, pull: Clusters) -> float:
        spread = self.problem.unit_spread(now, self.columns)
        of_columns = float(np.abs(slope / spread).max(initial=0.0)) / self.problem.kkt_scale
        return max(of_columns, float(np.abs(pull).max(initial=0.0)) / self.null_slope)

    # ------------------------------------------------------------------------------- a step

    def _direction(
        self, at: FrailtyMaximum, variance: float, slope: Features, pull: Clusters
    ) -> tuple[Features, Clusters, int]:
        """Newton's step in coefficients and log frailties, and the passes that it took."""
        of_rows = curvature_product(self.loss, at.eta)
        bend = self.distribution.curvature(at.w, variance)
        diagonal = self.sums(at.now.expected) + bend
        n_made = 0
        arrow = _Arrow.of(self.pieces, diagonal) if self.pieces.is_made else None
        if arrow is None:
            self._make_pieces(at.eta, at.now, of_rows)
            arrow, n_made = _Arrow.of(self.pieces, diagonal), self.columns.size
        if arrow is None:
            self.check_reach(at)
        assert arrow is not None  # at one point the arrow is larger than the positive curvature
        left = slope.copy(), pull.copy()
        step = np.zeros(slope.size), np.zeros(pull.size)
        z = arrow.solve(*left)
        towards, size = z, float(left[0] @ z[0] + left[1] @ z[1])
        goal, n_products = STEP_ACCURACY**2 * size, 0
        while size > goal and n_products < MAX_PRODUCTS:
            moved = self.design.product(towards[0], self.columns, runtime=self.loss.runtime)
            image = of_rows(moved + towards[1][self.cluster])
            bent = self._cross(image), self.sums(image) + bend * towards[1]
            along = float(towards[0] @ bent[0] + towards[1] @ bent[1])
            n_products += 1
            if along <= 0.0:  # rounding
                break
            share = size / along
            step = step[0] + share * towards[0], step[1] + share * towards[1]
            left = left[0] - share * bent[0], left[1] - share * bent[1]
            z = arrow.solve(*left)
            size, before = float(left[0] @ z[0] + left[1] @ z[1]), size
            towards = z[0] + size / before * towards[0], z[1] + size / before * towards[1]
        if n_products > STALE_PRODUCTS and not n_made:
            self.pieces.is_made = False
        return *step, n_products + n_made + 1

    def _make_pieces(self, eta: Rows, now: Evaluation, of_rows: Callable[[Rows], Rows]) -> None:
        pieces, q = self.pieces, self.columns.size
        prepared = Prepared(now, self.problem.ordered_columns)
        pieces.information = self.loss.information(self.design, eta, self.columns, prepared)
        pieces.cross = np.zeros((q, self.n_clusters))
        unit = np.zeros(q)
        for j in range(q):
            unit[j] = 1.0
            column = self.design.product(unit, self.columns, runtime=self.loss.runtime)
            pieces.cross[j] = self.sums(of_rows(column))
            unit[j] = 0.0
        pieces.is_made = True

    def check_reach(self, at: FrailtyMaximum) -> None:
        """Refuse hazards so far apart that the second derivatives are not those of the data."""
        near = within_reach(self.loss, at.eta, MAX_SQUARED_SPAN)
        if near is at.eta:
            return
        moved = np.abs(self.loss.evaluate(near).expected - at.now.expected)
        if not moved.max() <= MAX_MOVED * self.loss.n_events:
            raise InputError(
                "the hazards of rows, with offsets and frailties, are too far apart: within a "
                "stratum, models with frailties allow logs of hazards that span at most "
                f"{MAX_SQUARED_SPAN:,.0f}.",
                hint="an offset is on the scale of the log hazard: check its units. Without "
                "offsets, clusters and covariates separate the events: pass a small "
                "`frailty_variance`, such as 1.",
            )

    # ---------------------------------------------------------------------------- variances

    def cluster_inverse(self, at: FrailtyMaximum, variance: float) -> ClusterInverse:
        """The inverse of the curvature in the log frailties alone."""
        of_rows = curvature_product(self.loss, at.eta)
        expected = self.sums(at.now.expected)

        def shared(v: Clusters) -> Clusters:
            return np.asarray(expected * v - self.sums(of_rows(v[self.cluster])))

        diagonal = expected + self.distribution.curvature(at.w, variance)
        known = shared_variance(self.loss, at.eta, self.entries)
        return invert(shared, diagonal, known, self.part, self.cluster.size)

    def variances(self, at: FrailtyMaximum, variance: float) -> FrailtyVariances:
        """From the exact second derivatives."""
        self._make_pieces(at.eta, at.now, curvature_product(self.loss, at.eta))
        cross, inverse = self.pieces.cross, self.cluster_inverse(at, variance)
        bend = self.distribution.curvature(at.w, variance)
        solved = inverse.solve(cross.T)
        schur = self.pieces.information - cross @ solved
        size = np.sqrt(schur.diagonal())
        covariance = np.linalg.inv((schur + schur.T) / 2 / size / size[:, None])
        covariance = covariance / size / size[:, None]
        moved = solved @ covariance
        through = (moved * solved).sum(axis=1)
        sandwich = covariance - (moved * bend[:, None]).T @ moved
        of_penalty = inverse.trace(bend) + float(bend @ through)
        trace = inverse.trace(np.ones(bend.size)) + float(through.sum())
        return FrailtyVariances(
            covariance,
            sandwich,
            inverse.diagonal + through,
            self.n_clusters - of_penalty,
            trace,
            inverse,
        )


class _Arrow(NamedTuple):
    """The curvature without B: a block of coefficients, a border, and a diagonal."""

    factor: Matrix
    cross: Matrix
    diagonal: Clusters

    @classmethod
    def of(cls, pieces: _Pieces, diagonal: Clusters) -> "_Arrow | None":
        """None if pieces of another point are no curvature with this diagonal."""
        schur = pieces.information - (pieces.cross / diagonal) @ pieces.cross.T
        try:
            factor = np.asarray(np.linalg.cholesky(schur), dtype=np.float64)
        except np.linalg.LinAlgError:
            return None
        return cls(factor, pieces.cross, diagonal)

    def solve(self, slope: Features, pull: Clusters) -> tuple[Features, Clusters]:
        """Its inverse times a vector of both."""
        b = sla.cho_solve((self.factor, True), slope - self.cross @ (pull / self.diagonal))
        return b, (pull - self.cross.T @ b) / self.diagonal
