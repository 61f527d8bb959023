"""Curvature of a likelihood in its coefficients as a map, for columns too many for a matrix."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from riskset._types import Features, Index, Rows
from riskset.data.working_columns import WorkingColumns
from riskset.model.cox import Evaluation
from riskset.model.curvature_product import curvature_product
from riskset.model.loss import Loss, rounding_of

__all__ = ["CurvatureMap"]


@dataclass(frozen=True)
class CurvatureMap:
    """Negative second derivative of the log likelihood, applied to vectors (q,).

    A product takes O(n + non-zeros) time and O(n + q) memory. `diagonal` (q,) is that of the
    matrix, as if risk-set means were the same at all times. The notes of `curvature_product` hold.
    """

    columns: WorkingColumns
    of_rows: Callable[[Rows], Rows]
    diagonal: Features
    missed: Callable[[Rows, Rows], float]
    """See `_missed`."""

    @classmethod
    def at(cls, loss: Loss, columns: WorkingColumns, eta: Rows) -> "CurvatureMap":
        """The map where the linear predictors are `eta`."""
        loss = loss.approximation
        now = loss.evaluate(eta)
        first, square = columns.moments(now.expected)
        pooled = square - first**2 / max(float(now.expected.sum()), 1e-300)
        of_rows, missed = curvature_product(loss, eta), partial(_missed, loss, eta, now)
        return cls(columns, of_rows, np.maximum(pooled, 0.0), missed)

    def some(self, kept: Index) -> "CurvatureMap":
        """The map of some of the columns, in increasing order."""
        return replace(self, columns=self.columns.some(kept), diagonal=self.diagonal[kept])

    def __call__(self, v: Features) -> Features:
        """The product with a vector."""
        return self.columns.cross(self.of_rows(self.columns.product(v)))


def _missed(loss: Loss, eta: Rows, now: Evaluation, move: Rows, image: Rows) -> float:
    """How much of the log likelihood the quadratic at `eta` misses after a move (n,) of it.

    `image` is the curvature of rows times the move. Less than rounding counts as 0.
    """
    change = loss.evaluate(eta + move).log_likelihood - now.log_likelihood
    quadratic = float(now.residual @ move) - 0.5 * float(image @ move)
    rounding = rounding_of(now.log_likelihood, loss.n_events, float(np.ptp(eta)))
    missed = change - quadratic
    return missed if abs(missed) > rounding else 0.0
