"""Columns as rows of numbers in the order of the risk sets, kept between steps of a fit."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from riskset._types import Index, Matrix, RiskSets, Rows, Tail
from riskset.data.design import Design
from riskset.data.outcome import Outcome

__all__ = ["OrderedColumns", "centred_at_risk", "centred_within_strata", "rows_at_risk"]

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


def centred_at_risk(
    z: Matrix, outcome: Outcome, risk: RiskSets, tails: Sequence[Tail] = ()
) -> Matrix:
    """Columns less the mean in each stratum of the rows that are at risk at all.

    These numbers of a column are then no larger than their range, whatever other rows have, so that
    bounds on their rounding (`solve.finiteness`) hold. With one stratum columns stay as they are
    stored, and their sizes are the bounds.
    """
    if outcome.n_strata == 1:
        return z
    used = rows_at_risk(outcome.n_rows, risk, tails)
    return centred_within_strata(z, outcome, None if used is None else used.astype(np.float64))


def rows_at_risk(
    n_rows: int, risk: RiskSets, tails: Sequence[Tail] = ()
) -> NDArray[np.bool_] | None:
    """Rows (n,) that are at risk at all; None: all of them."""
    used = np.zeros(n_rows, dtype=bool)
    for one in (risk, *(tail.sets for tail in tails)):
        used[one.order[one.weight > 0]] = True
    return None if used.all() else used


class OrderedColumns:
    """Stored columns (n, q), rows in the order of risk sets; the last ones asked for are kept.

    Every step of Newton's method on few columns reads all their values in the order of the risk
    sets. To sort them takes longer than to read them.
    """

    def __init__(self, design: Design, outcome: Outcome, risk: RiskSets) -> None:
        self.design, self._outcome, self._risk = design, outcome, risk
        self._columns: Index | None = None
        self._values: Matrix = np.zeros((0, 0))

    def of(self, columns: Index) -> Matrix:
        """Stored columns about their means in the strata, not to be written to."""
        if self._columns is not None and np.array_equal(columns, self._columns):
            return self._values
        if self._outcome.n_strata == 1:
            values = self.design.stored(columns, self._risk.order)
        else:
            z = centred_at_risk(self.design.stored(columns), self._outcome, self._risk)
            values = np.take(z, self._risk.order, axis=0)
        if values.size <= MAX_KEPT_NUMBERS:
            self._columns, self._values = columns, values
        return values
