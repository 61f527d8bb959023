"""Sums of squares over clusters of rows, of numbers that change as rows enter and leave."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from riskset._types import Index, RiskSets
from riskset.curves.segments import first_of_segment, running
from riskset.data.risk_order import by_level
from riskset.kernels.late_entry_cpu import sum_at_risk

__all__ = ["ClusterPieces"]

Numbers = NDArray[np.float64]


class ClusterPieces(NamedTuple):
    """Pieces of the m times of a table, between the times at which rows of a cluster come and go.

    Piece k covers the times ``ranges.own[k]`` up to ``ranges.end[k]``, which is left out. `order`
    sorts the beginnings of all rows, followed by their ends, by cluster and time; those from
    ``first[k]`` on begin piece k, and ``first_of_cluster[k]`` is the first piece of its cluster.
    """

    order: Index
    first: Index
    first_of_cluster: Index
    ranges: RiskSets
    n_times: int

    @classmethod
    def of(cls, cluster: Index, begin: Index, end: Index, n_times: int) -> "ClusterPieces":
        """Pieces of rows (n,) that are under observation from `begin` on and end at `end`."""
        key = np.concatenate([cluster * n_times + begin, cluster * n_times + end])
        order = np.argsort(key, kind="stable")
        key = key[order]
        first = np.flatnonzero(np.append(True, key[1:] != key[:-1]))
        owner, own = np.divmod(key[first], n_times)
        begins = np.append(True, owner[1:] != owner[:-1])
        until = np.append(np.where(begins[1:], n_times, own[1:]), n_times)
        ranges = _ranges(own, until, n_times)
        return cls(order, first, first_of_segment(begins), ranges, n_times)

    def sum_of_squares(self, during: Numbers, after: Numbers, basis: Numbers) -> Numbers:
        r"""Sum over clusters of :math:`(\sum_k c_k(t) \, basis_k(t))^2` at every time (m,).

        A row adds `during` (k, n) to the coefficients c of its cluster while it is under
        observation, and `after` from its end on. `basis` is (k, m). O(n log n) time, O(n) memory.
        """
        change = np.concatenate([during, after - during], axis=1).T[self.order]
        change = np.add.reduceat(change, self.first)
        pieces = running(np.add, change, self.first_of_cluster).T
        total, part = np.zeros(self.n_times), np.empty(self.n_times)
        for j in range(basis.shape[0]):
            for k in range(j + 1):
                product = pieces[j] * pieces[k]
                sum_at_risk(product, self.ranges, False, part)
                part *= basis[j] * basis[k]
                total += part if j == k else 2.0 * part
        return np.maximum(total, 0.0)


def _ranges(own: Index, end: Index, n_times: int) -> RiskSets:
    """Times own, ..., end - 1 of each piece, as the kernel of late entry takes them."""
    none, nowhere = np.zeros(0), np.zeros(0, dtype=np.int64)
    level_rows, level_ptr = by_level(own, end, n_times)
    return RiskSets(
        order=nowhere,
        weight=none,
        event_weight=none,
        group_ptr=nowhere,
        group_events=none,
        group_tied=nowhere,
        starts_stratum=np.zeros(0, dtype=bool),
        chunk_ptr=nowhere,
        own=own,
        end=end,
        level_rows=level_rows,
        level_ptr=level_ptr,
    )
