"""Columns as rows of numbers in the order of the risk sets, kept between steps of a fit."""

import numpy as np

from riskset._types import Index, Matrix, Rows
from riskset.data.design import Design
from riskset.data.outcome import Outcome

__all__ = ["OrderedColumns", "centred_within_strata"]

MAX_KEPT_NUMBERS = 1 << 25
"""Most numbers that are kept (268 MB)."""


def centred_within_strata(z: Matrix, outcome: Outcome, weight: Rows | None = None) -> Matrix:
    """Columns less their (weighted) mean in each stratum, which changes no likelihood.

    Spread between strata would cost the information digits, and so would rows that outweigh all
    others and lie far from 0.
    """
    if weight is None and outcome.n_strata == 1:
        return z
    weight = np.ones(outcome.n_rows) if weight is None else weight
    size = np.bincount(outcome.stratum, weight, outcome.n_strata)
    means = np.zeros((outcome.n_strata, z.shape[1]))
    np.add.at(means, outcome.stratum, weight[:, None] * z)
    means /= np.where(size > 0, size, 1.0)[:, None]
    return np.asarray(z - means[outcome.stratum])


class OrderedColumns:
    """Stored columns (n, q) with the rows in a given order; the last that were asked for are kept.

    Every step of Newton's method on few columns reads all their values in the order of the risk
    sets. To sort them takes longer than to read them.
    """

    def __init__(self, design: Design, outcome: Outcome, order: Index) -> None:
        self.design, self._outcome, self._order = design, outcome, order
        self._columns: Index | None = None
        self._values: Matrix = np.zeros((0, 0))

    def of(self, columns: Index) -> Matrix:
        """Stored columns about the means of their strata, not to be written to."""
        if self._columns is not None and np.array_equal(columns, self._columns):
            return self._values
        if self._outcome.n_strata == 1:
            values = self.design.stored(columns, self._order)
        else:
            z = centred_within_strata(self.design.stored(columns), self._outcome)
            values = np.take(z, self._order, axis=0)
        if values.size <= MAX_KEPT_NUMBERS:
            self._columns, self._values = columns, values
        return values
