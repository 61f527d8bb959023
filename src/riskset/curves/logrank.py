"""Sums of the log-rank test, in time and memory that do not multiply groups by times and groups."""

from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray

from riskset._errors import InputError
from riskset._types import Index, Rows
from riskset.curves.followup import Followup, split
from riskset.infer.variance import generalized_inverse

__all__ = ["LogrankSums", "logrank_sums"]

MAX_CELLS = 1 << 22
"""Times by groups that are held at a time: 32 MB."""

Square = NDArray[np.float64]


class LogrankSums(NamedTuple):
    """Sums over all strata of a comparison of K groups: score (K,), events observed less expected.

    Groups of one `part` (K,) can be told apart: some were at risk together at a time that counts.
    """

    score: Rows
    variance: Square
    part: Index

    def statistic(self) -> tuple[float, int]:
        """Chi-square and its degrees of freedom.

        Within a part the variance is that of a connected graph, whose rank is one less than the
        number of groups; so no rank hangs on rounding, and one group of each part is left out.
        """
        total, df = 0.0, 0
        for members in split(self.part, int(self.part.max()) + 1):
            if members.size < 2:
                continue
            own = self.variance[np.ix_(members, members)]
            kept = np.delete(np.arange(members.size), int(np.argmax(own.diagonal())))
            total += _form(own[np.ix_(kept, kept)], self.score[members[kept]])
            df += kept.size
        return total, df


def logrank_sums(rows: Followup, stratum: Index, cause: int, rho: float) -> LogrankSums:
    r"""Sums of the strata in which somebody has an event of the cause, in O(n K) time.

    With :math:`C(t) = \sum_{u \le t} f_u / Y(u)^2`, f the factor of the variance at a time, the
    covariance of groups g and h is

    .. math:: -\sum_{i \in g} w_i \int_{(entry_i, time_i]} Y_h(u) \, dC(u),

    a sum over rows; the rows of the matrix add up to 0, which gives its diagonal.
    """
    n_groups = len(rows.labels)
    score, variance = np.zeros(n_groups), np.zeros((n_groups, n_groups))
    links: list[tuple[Index, Index]] = []
    n_blocks = 0
    for own in split(stratum, int(stratum.max()) + 1):
        part = rows.take(own)
        if not (part.event == cause).any():
            continue
        there, group = np.unique(part.group, return_inverse=True)
        at = _Times.of(part, cause, rho)
        score[there] += at.score(part, group, cause, there.size)
        variance[np.ix_(there, there)] += at.variance(part, group, there.size)
        linked, block = at.blocks(group)
        links.append((there[linked], block + n_blocks))
        n_blocks += at.time.size
    return LogrankSums(score, variance, _parts(links, n_groups, n_blocks))


class _Times(NamedTuple):
    """Times with an event of the cause in one stratum (m,), and the place of rows among them.

    Row i is at risk at the times first, ..., last - 1.
    """

    time: Rows
    first: Index
    last: Index
    at_risk: Rows
    events: Rows
    weight: Rows

    @classmethod
    def of(cls, rows: Followup, cause: int, rho: float) -> "_Times":
        fails = rows.event == cause
        time = np.unique(rows.time[fails])
        m = time.size
        last = np.searchsorted(time, rows.time, side="right")
        first = np.zeros_like(last)
        at_risk = _reaching(last, rows.weight, m)
        if rows.entry is not None:
            first = np.searchsorted(time, rows.entry, side="right")
            at_risk = at_risk - _reaching(first, rows.weight, m)
        events: Rows = np.bincount(last[fails] - 1, rows.weight[fails], m).astype(np.float64)
        survival = np.append(1.0, np.cumprod(1.0 - events / at_risk)[:-1])
        if rho < 0 and not survival.all():
            k = int(np.argmin(survival))
            raise InputError(
                f"the log-rank test with rho = {rho:g} is not defined here: everybody at risk had "
                f"the event before time {time[k]:g}, while others were still to enter, so the "
                "survival is 0 and its power infinite.",
                hint="pass rho=0 or a positive rho.",
            )
        return cls(time, first, last, at_risk, events, survival**rho)

    @property
    def factor(self) -> Rows:
        """Of the variance: weight^2 d (Y - d) / (Y - 1); 0 where one row alone is at risk."""
        left = self.at_risk - self.events
        spread = np.divide(left, self.at_risk - 1, out=np.zeros_like(left), where=self.at_risk > 1)
        return np.asarray(self.weight**2 * self.events * spread)

    def score(self, rows: Followup, group: Index, cause: int, n_groups: int) -> Rows:
        """Weighted events of each group less those expected."""
        fails = rows.event == cause
        observed = rows.weight[fails] * self.weight[self.last[fails] - 1]
        hazard = np.append(0.0, np.cumsum(self.weight * self.events / self.at_risk))
        expected = rows.weight * (hazard[self.last] - hazard[self.first])
        sums = np.bincount(group[fails], observed, minlength=n_groups)
        return np.asarray(sums - np.bincount(group, expected, minlength=n_groups))

    def variance(self, rows: Followup, group: Index, n_groups: int) -> Square:
        """Covariance of the scores, some groups at a time."""
        m = self.time.size
        places = [(group, self.last)]
        if rows.entry is not None:
            places.append((group, self.first))
        # Weight of each group that leaves at each place, less that which enters there.
        ends = sp.csr_array((n_groups, m + 1))
        for sign, cells in zip((1.0, -1.0), places, strict=False):
            ends = ends + sp.coo_array((sign * rows.weight, cells), (n_groups, m + 1)).tocsr()
        step = (self.factor / self.at_risk**2)[:, None]
        shared = np.empty((n_groups, n_groups))
        width = max(1, MAX_CELLS // (m + 1))
        for start in range(0, n_groups, width):
            own = slice(start, start + width)
            at_risk = np.cumsum(ends[own].toarray().T[:0:-1], axis=0)[::-1]
            passed = np.vstack([np.zeros(at_risk.shape[1]), np.cumsum(step * at_risk, axis=0)])
            shared[:, own] = ends @ passed
        shared = (shared + shared.T) / 2
        np.fill_diagonal(shared, 0.0)
        return np.diag(shared.sum(axis=1)) - shared

    def blocks(self, group: Index) -> tuple[Index, Index]:
        """Groups, and blocks of times that count, at which each of them was at risk.

        Times that follow each other are of one block if somebody was at risk at both.
        """
        counts = np.append(0, np.cumsum(self.factor > 0))
        start, end = counts[self.first], counts[self.last]
        seen = start < end
        start, end, group = start[seen], end[seen], group[seen]
        spans = np.zeros(counts[-1] + 1, dtype=np.int64)
        np.add.at(spans, start, 1)
        np.add.at(spans, end - 1, -1)  # at risk at times k and k + 1
        block = np.append(0, np.cumsum(np.cumsum(spans)[: max(counts[-1] - 1, 0)] == 0))
        return group, block[start].astype(np.int64)


def _reaching(place: Index, weight: Rows, m: int) -> Rows:
    """Weight of the rows whose place is beyond each of m times."""
    return np.asarray(np.cumsum(np.bincount(place, weight, minlength=m + 1)[:0:-1])[::-1])


def _parts(links: list[tuple[Index, Index]], n_groups: int, n_blocks: int) -> Index:
    """Number of the part of each group: groups are linked by the blocks that they share."""
    group, block = (np.concatenate([link[k] for link in links]) for k in (0, 1))
    size = n_groups + n_blocks
    graph = sp.coo_array((np.ones(group.size), (group, n_groups + block)), (size, size))
    _, part = sp.csgraph.connected_components(graph, directed=False)
    return np.unique(part[:n_groups], return_inverse=True)[1].astype(np.int64)


def _form(variance: Square, score: Rows) -> float:
    """Quadratic form of the scores in the inverse of a positive definite matrix."""
    size = np.sqrt(variance.diagonal())
    try:
        factor = scipy.linalg.cholesky(variance / size / size[:, None], lower=True)
    except np.linalg.LinAlgError:  # definite, but not within rounding
        return generalized_inverse(variance).form(score)
    half = scipy.linalg.solve_triangular(factor, score / size, lower=True)
    return float(half @ half)
