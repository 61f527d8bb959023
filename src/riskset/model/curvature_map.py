"""Curvature of a likelihood in its coefficients as a map, for columns too many for a matrix."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from riskset._types import Features, Index, Rows
from riskset.data.working_columns import WorkingColumns
from riskset.model.curvature import curvature_product
from riskset.model.loss import Loss

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

    @classmethod
    def at(cls, loss: Loss, columns: WorkingColumns, eta: Rows) -> "CurvatureMap":
        """The map where the linear predictors are `eta`."""
        expected = loss.evaluate(eta).expected
        first, square = columns.moments(expected)
        pooled = square - first**2 / max(float(expected.sum()), 1e-300)
        return cls(columns, curvature_product(loss, eta), np.maximum(pooled, 0.0))

    def some(self, kept: Index) -> "CurvatureMap":
        """The map of some of the columns, in increasing order."""
        return CurvatureMap(self.columns.some(kept), self.of_rows, self.diagonal[kept])

    def __call__(self, v: Features) -> Features:
        """The product with a vector."""
        return self.columns.cross(self.of_rows(self.columns.product(v)))
