r"""A proof that no estimate is infinite, at any point: the Newton step of free columns is short.

Let I s = g on the columns without a penalty, and d be a direction of recession. For term t of the
likelihood let M_t be the maximum of x'd over the risk set, which its event attains, and E_t and
Cov_t those of the distribution of who fails. Then

.. math::
    g'd = \sum_t w_t (M_t - E_t x'd) > 0, \qquad
    s'Id = \sum_t w_t \mathrm{Cov}_t(x's, x'd)
         \le \mathrm{range}(x's) \sum_t w_t (M_t - E_t x'd),

because :math:`|\mathrm{Cov}(u, z)| \le \tfrac12 \mathrm{range}(u) E|z - Ez|
\le \mathrm{range}(u) (\max z - Ez)`. Both left sides are the same number, so x's spans at least 1
wherever the fit stands, near the estimate or not. A shorter step leaves no room for a d.
"""

from dataclasses import dataclass

import numpy as np
import scipy.linalg as sla

from riskset._types import Features, Index, Matrix, Rows
from riskset.data.design import Design
from riskset.model.loss import Loss

__all__ = ["SHORT", "FreeColumns"]

SHORT = 0.5
"""A step that spans less is a proof; the rest of the way to 1 is for rounding."""
LEAST_SIZE = 1e-4
"""Least information of a column, as a share of the largest it can have, square root of both."""
LEAST_EIGENVALUE = 1e-6


@dataclass(frozen=True)
class FreeColumns:
    """Columns without a penalty and their information at some point.

    Attributes
    ----------
    columns : (q,) int64
    size : (q,) float64
        Square root of the information of each column alone, in stored units.
    eigenvalues, vectors : (q,), (q, q) float64
        Of the information in units of `size`.
    """

    design: Design
    columns: Index
    size: Features
    eigenvalues: Features
    vectors: Matrix

    @classmethod
    def at(cls, design: Design, loss: Loss, eta: Rows, columns: Index) -> "FreeColumns":
        """At the linear predictor `eta`, offset included."""
        return cls.of(design, columns, loss.information(design, eta, columns))

    @classmethod
    def of(cls, design: Design, columns: Index, information: Matrix) -> "FreeColumns":
        """From their information (q, q)."""
        size = np.sqrt(np.maximum(np.diag(information), 1e-300))
        found = sla.eigh(information / np.outer(size, size), check_finite=False)
        return cls(design, columns, size, *found)

    def are_estimable(self, spread: Features, n_events: float) -> bool:
        """Whether all carry information, none repeats others, and the numbers have digits.

        Parameters
        ----------
        spread : (q,) float64
            Unit of each column.
        """
        has_some = self.size >= LEAST_SIZE * spread * np.sqrt(n_events)
        return bool(has_some.all() and self.eigenvalues[0] > LEAST_EIGENVALUE)

    def step(self, gradient: Features) -> Features:
        """Newton step (q,) from the gradient of the log likelihood in stored units."""
        along = self.vectors.T @ (gradient / self.size) / self.eigenvalues
        return np.asarray(self.vectors @ along / self.size)

    def span(self, step: Features, loss: Loss) -> float:
        """What a step adds to the linear predictors ranges over this much."""
        return float(np.ptp(self.design.product(step, self.columns, runtime=loss.runtime)))

    def most(self, gradient: Features, ranges: Features) -> float:
        """Bound on the span of a step, from bounds on the gradient and ranges of the columns."""
        length = np.linalg.norm(gradient / self.size) / self.eigenvalues[0]
        return float(length * np.linalg.norm(ranges / self.size))
