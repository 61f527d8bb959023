"""The columns of a design as lists of entries in risk order, for those who take one at a time."""

from collections.abc import Iterator
from typing import Generic, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp

from riskset._types import AnyArray, Features, Index
from riskset.data.column_storage import DenseColumns, SparseColumns
from riskset.data.design import Design

__all__ = ["RiskOrderEntries", "RiskColumns"]

T = TypeVar("T")
"""An array of the host, or of a device."""
MAX_DENSE_ENTRIES = 1 << 23
"""Of dense columns that are listed at once."""


class RiskOrderEntries(NamedTuple, Generic[T]):
    """The entries of some columns of the design.

    Each column has those from `begin` up to `stop`. `place` (m,) is in risk order, ascending within
    a column, and `value` in stored units; if it is empty, all are 1.
    """

    columns: Index
    begin: Index
    stop: Index
    place: T
    value: T


class RiskColumns:
    """Sparse columns sorted by risk order once; dense ones whenever they are asked for.

    `reach` (p,) is the largest absolute value of each column, in stored units.
    """

    def __init__(self, design: Design, order: Index) -> None:
        self.design, self.order = design, order
        self.reach: Features = np.zeros(design.n_features)
        self._sparse = list(self._sort())

    def _sort(self) -> Iterator[RiskOrderEntries[AnyArray]]:
        design, order = self.design, self.order
        place_of = np.full(design.n_rows, -1, dtype=np.int64)
        place_of[order] = np.arange(order.size)
        for part in design.parts:
            if isinstance(part, DenseColumns):
                self.reach[part.columns] = np.abs(part.blocks).max(axis=(0, 2), initial=0.0)
                continue
            assert isinstance(part, SparseColumns)
            ptr, place, value = part.to_csc(place_of)
            has_values = part.values.size > 0
            data = value if has_values else np.ones(place.size, dtype=np.int8)
            table = sp.csc_array(
                (data, place.astype(np.int32), ptr), shape=(order.size, part.columns.size)
            )
            table.sort_indices()
            begin, stop = ptr[:-1], ptr[1:]
            self.reach[part.columns] = [
                np.abs(table.data[a:b]).max(initial=0) for a, b in zip(begin, stop, strict=True)
            ]
            value = table.data if has_values else np.zeros(0)
            yield RiskOrderEntries(part.columns, begin, stop, table.indices, value)

    def batches(self, wanted: Index) -> Iterator[RiskOrderEntries[AnyArray]]:
        """The entries of some columns, kind by kind, sparse ones first."""
        is_wanted = np.zeros(self.design.n_features, dtype=bool)
        is_wanted[wanted] = True
        for e in self._sparse:
            used = is_wanted[e.columns]
            if used.any():
                yield RiskOrderEntries(
                    e.columns[used], e.begin[used], e.stop[used], e.place, e.value
                )
        n = self.order.size
        at_once = max(1, MAX_DENSE_ENTRIES // max(1, n))
        for part in self.design.parts:
            if not isinstance(part, DenseColumns):
                continue
            columns = part.columns[is_wanted[part.columns]]
            for a in range(0, columns.size, at_once):
                some = columns[a : a + at_once]
                z = self.design.stored(some, self.order)
                place = np.tile(np.arange(n, dtype=np.int32), some.size)
                begin = n * np.arange(some.size, dtype=np.int64)
                yield RiskOrderEntries(
                    some, begin, begin + n, place, np.ascontiguousarray(z.T).ravel()
                )
