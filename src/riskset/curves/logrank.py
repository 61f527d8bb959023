"""Sums of log-rank tests, in time and memory that do not multiply groups by times and groups."""

from typing import Literal, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray

from riskset._errors import InputError
from riskset._types import Index, Rows
from riskset.curves.followup import Followup, split
from riskset.curves.segments import first_of_segment, running
from riskset.infer.variance import generalized_inverse

__all__ = ["ComparedTimes", "LogrankSums", "TimeWeight", "Weighting", "logrank_sums"]

MAX_CELLS = 1 << 22
"""Times by groups that are held at a time: 32 MB."""

MAX_INFLUENCES = 1 << 25
"""Rows by groups whose influence is held at a time: 256 MB."""

Square = NDArray[np.float64]
Weighting = Literal["fleming-harrington", "gehan-wilcoxon", "tarone-ware"]


class TimeWeight(NamedTuple):
    r"""How much a time counts: :math:`S^\rho (1 - S)^\gamma`, or by the number at risk."""

    rho: float = 0.0
    gamma: float = 0.0
    weighting: Weighting = "fleming-harrington"

    @property
    def name(self) -> str:
        """Name of the test."""
        if self.weighting != "fleming-harrington":
            return {"gehan-wilcoxon": "Gehan-Wilcoxon test", "tarone-ware": "Tarone-Ware test"}[
                self.weighting
            ]
        if self.gamma != 0:
            return f"Fleming-Harrington test with rho = {self.rho:g}, gamma = {self.gamma:g}"
        names = {0.0: "log-rank test", 1.0: "Peto-Peto test"}
        return names.get(float(self.rho), f"G-rho test with rho = {self.rho:g}")

    def of(self, times: "ComparedTimes") -> Rows:
        """The weight at each time (m,)."""
        if self.weighting == "gehan-wilcoxon":
            return times.at_risk
        if self.weighting == "tarone-ware":
            return np.sqrt(times.at_risk)
        if self.rho == 0 and self.gamma == 0:
            return np.ones_like(times.at_risk)
        survival = times.survival_before
        if self.rho < 0 and not survival.all():
            k = int(np.argmin(survival))
            raise InputError(
                f"the log-rank test with rho = {self.rho:g} is not defined here: everybody at risk "
                f"had the event before time {times.time[k]:g}, while others were still to enter, "
                "so the survival is 0 and its power infinite.",
                hint="pass rho=0 or a positive rho.",
            )
        return np.asarray(survival**self.rho * (1.0 - survival) ** self.gamma)


class ComparedTimes(NamedTuple):
    """Times with an event of the cause (m,), stratum after stratum, and the place of rows there.

    Row i (n,) is at risk at the times first, ..., last - 1. `stratum` (m,) is that of each time.
    """

    time: Rows
    stratum: Index
    first: Index
    last: Index
    fails: NDArray[np.bool_]
    weight: Rows
    group: Index
    cluster: Index | None
    at_risk: Rows
    events: Rows

    @classmethod
    def build(cls, rows: Followup, stratum: Index, cause: int) -> "ComparedTimes":
        """Times of the events of a cause, in O(n log n) for any number of strata."""
        fails = rows.event == cause
        times = np.unique(rows.time[fails])
        rank = np.searchsorted(times, rows.time, side="right")
        entered = np.zeros_like(rank)
        if rows.entry is not None:
            entered = np.searchsorted(times, rows.entry, side="right")
        width = times.size + 1
        keys = np.unique(stratum[fails] * width + rank[fails])
        places = (stratum * width + entered, stratum * width + rank)
        first, last = (np.searchsorted(keys, place, side="right") for place in places)
        found = (times[keys % width - 1], keys // width)
        return cls._of(found, first, last, fails, (rows.weight, rows.group, rows.cluster))

    @classmethod
    def _of(
        cls,
        found: tuple[Rows, Index],
        first: Index,
        last: Index,
        fails: NDArray[np.bool_],
        about: tuple[Rows, Index, Index | None],
    ) -> "ComparedTimes":
        m, weight = found[0].size, about[0]
        at_risk = _present(first, last, weight, m)
        events = np.bincount(last[fails] - 1, weight[fails], m).astype(np.float64)
        return cls(*found, first, last, fails, weight, *about[1:], at_risk, events)

    def only(self, rows: Index, group: Index) -> "ComparedTimes":
        """Some of the rows, with new codes of their groups, and the times of their events."""
        first, last, fails = self.first[rows], self.last[rows], self.fails[rows]
        occurs = np.zeros(self.time.size, dtype=bool)
        occurs[last[fails] - 1] = True
        rank = np.append(0, np.cumsum(occurs))
        cluster = None if self.cluster is None else self.cluster[rows]
        found = (self.time[occurs], self.stratum[occurs])
        about = (self.weight[rows], group, cluster)
        return self._of(found, rank[first], rank[last], fails, about)

    @property
    def survival_before(self) -> Rows:
        """Kaplan and Meier's survival of all groups in the stratum, just before each time."""
        starts = np.append(True, self.stratum[1:] != self.stratum[:-1])[: self.time.size]
        staying = np.maximum(1.0 - self.events / self.at_risk, 0.0)
        after: Rows = np.cumprod(staying).astype(np.float64)
        if np.count_nonzero(starts) > 1:
            after = running(np.multiply, staying, first_of_segment(starts))
        return np.where(starts, 1.0, np.append(1.0, after[:-1])[: self.time.size])

    def factor(self) -> Rows:
        """Of the variance without weights of time: d (Y - d) / (Y - 1); 0 for one row at risk."""
        left = self.at_risk - self.events
        spread = np.divide(left, self.at_risk - 1, out=np.zeros_like(left), where=self.at_risk > 1)
        return np.asarray(self.events * spread)

    def compared(self) -> NDArray[np.bool_]:
        """Times at which some fail and others stay, which are those that say something (m,)."""
        ones = np.ones(self.first.size)
        failing = np.bincount(self.last[self.fails] - 1, minlength=self.time.size)
        return np.asarray(_present(self.first, self.last, ones, self.time.size) > failing)

    def score(self, weight: Rows, n_groups: int) -> Rows:
        """Weighted events of each group less those expected."""
        own, group = self.last[self.fails] - 1, self.group
        observed = self.weight[self.fails] * weight[own]
        hazard = np.append(0.0, np.cumsum(weight * self.events / self.at_risk))
        expected = self.weight * (hazard[self.last] - hazard[self.first])
        sums = np.bincount(group[self.fails], observed, minlength=n_groups)
        return np.asarray(sums - np.bincount(group, expected, minlength=n_groups))

    def at_risk_in(self, own: NDArray[np.bool_]) -> Rows:
        """Weight at risk of some rows at each time (m,)."""
        return _present(self.first[own], self.last[own], self.weight[own], self.time.size)

    def influence(self, own: NDArray[np.bool_], weight: Rows) -> Rows:
        r"""Influence of each row, or cluster, on the score of a group whose rows are `own` (n,).

        .. math:: w_i \int K(t) \left(1_{i \in g} - Y_g(t) / Y(t)\right) dM_i(t), \qquad
            dM_i = dN_i - 1_{i\,at\,risk} \, dN / Y

        with K the `weight` (m,) of times; the influences sum to the score.
        """
        share = weight * self.at_risk_in(own) / self.at_risk
        step = self.events / self.at_risk
        gone = np.append(0.0, np.cumsum(weight * step)), np.append(0.0, np.cumsum(share * step))
        mine, all_ = (total[self.last] - total[self.first] for total in gone)
        at = self.last[self.fails] - 1
        out: Rows = np.where(own, -mine, 0.0) + all_
        out[self.fails] += np.where(own[self.fails], weight[at], 0.0) - share[at]
        out *= self.weight
        if self.cluster is None:
            return out
        sums: Rows = np.bincount(self.cluster, out).astype(np.float64)
        return sums

    def robust_variance(self, weight: Rows, n_groups: int) -> Square:
        """Sum over rows or clusters of the products of their influences on the scores."""
        used = n_groups - 1  # the influences on all groups sum to 0
        width = max(1, MAX_INFLUENCES // self.first.size)
        blocks = [range(k, min(k + width, used)) for k in range(0, used, width)]
        inner = np.empty((used, used))
        for b, block in enumerate(blocks):
            left = np.array([self.influence(self.group == g, weight) for g in block])
            for other in blocks[: b + 1]:
                right = left
                if other is not block:
                    right = np.array([self.influence(self.group == g, weight) for g in other])
                part = left @ right.T
                inner[block.start : block.stop, other.start : other.stop] = part
                inner[other.start : other.stop, block.start : block.stop] = part.T
        out = np.zeros((n_groups, n_groups))
        out[:used, :used] = inner
        out[used, :used] = out[:used, used] = -inner.sum(axis=0)
        out[used, used] = inner.sum()
        return out

    def variance(self, factor: Rows, n_groups: int) -> Square:
        """Covariance of the scores, some groups at a time."""
        m = self.time.size
        ends = sp.csr_array((n_groups, m + 1))
        # Weight of each group that leaves at each place, less that which enters there.
        for sign, place in ((1.0, self.last), (-1.0, self.first)):
            cells = (sign * self.weight, (self.group, place))
            ends = ends + sp.coo_array(cells, (n_groups, m + 1)).tocsr()
        step = (factor / self.at_risk**2)[:, None]
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

    def parts(self, counts: NDArray[np.bool_], n_groups: int) -> Index:
        """Number of the part of each group, the times that count being marked (m,).

        Times that follow each other are of one block if somebody was at risk at both, and groups
        are linked by the blocks at which they were at risk.
        """
        passed = np.append(0, np.cumsum(counts))
        start, end = passed[self.first], passed[self.last]
        seen = start < end
        start, end, group = start[seen], end[seen], self.group[seen]
        spans = np.zeros(passed[-1] + 1, dtype=np.int64)
        np.add.at(spans, start, 1)
        np.add.at(spans, end - 1, -1)  # at risk at times k and k + 1
        block = np.append(0, np.cumsum(np.cumsum(spans)[: max(passed[-1] - 1, 0)] == 0))
        size = n_groups + int(block[-1]) + 1
        cells = (np.ones(group.size), (group, n_groups + block[start]))
        _, part = sp.csgraph.connected_components(sp.coo_array(cells, (size, size)), directed=False)
        return np.unique(part[:n_groups], return_inverse=True)[1].astype(np.int64)


class LogrankSums(NamedTuple):
    """Sums over all strata of a comparison of K groups: score (K,), events observed less expected.

    Groups of one `part` (K,) can be told apart: some were at risk together at a time that counts.
    """

    score: Rows
    variance: Square
    part: Index
    is_robust: bool

    def statistic(self) -> tuple[float, int]:
        """Chi-square and its degrees of freedom.

        Within a part the variance is that of a connected graph, whose rank is one less than the
        number of groups; so no rank hangs on rounding, and one group of each part is left out. A
        robust variance may have less rank, where there are few clusters.
        """
        total, df = 0.0, 0
        for members in split(self.part, int(self.part.max()) + 1):
            if members.size < 2:
                continue
            own = self.variance[np.ix_(members, members)]
            kept = np.delete(np.arange(members.size), int(np.argmax(own.diagonal())))
            inner, score = own[np.ix_(kept, kept)], self.score[members[kept]]
            if self.is_robust:
                inverse = generalized_inverse(inner)
                total, df = total + inverse.form(score), df + inverse.rank
            else:
                total, df = total + _form(inner, score), df + kept.size
        return total, df


def logrank_sums(
    times: ComparedTimes, n_groups: int, time_weight: TimeWeight, *, robust: bool
) -> LogrankSums:
    r"""Sums of a test, the weight of each time being that of its stratum; in O(n K) time.

    With :math:`C(t) = \sum_{u \le t} K(u)^2 f_u / Y(u)^2`, f the factor of the variance at a time,
    the covariance of groups g and h is

    .. math:: -\sum_{i \in g} w_i \int_{(entry_i, time_i]} Y_h(u) \, dC(u),

    a sum over rows; the rows of the matrix add up to 0, which gives its diagonal. A robust variance
    is a sum over rows or clusters of `ComparedTimes.influence`.
    """
    weight = time_weight.of(times)
    score = times.score(weight, n_groups)
    if robust:
        counts = times.compared() & (weight != 0)
        variance = times.robust_variance(weight, n_groups)
    else:
        factor = weight**2 * times.factor()
        counts, variance = factor > 0, times.variance(factor, n_groups)
    return LogrankSums(score, variance, times.parts(counts, n_groups), robust)


def _present(first: Index, last: Index, weight: Rows, m: int) -> Rows:
    """Weight of the rows that are at risk at each of m times."""
    if not first.any():  # sums that only add
        return np.cumsum(np.bincount(last, weight, m + 1)[:0:-1])[::-1].astype(np.float64)
    change = np.bincount(first, weight, m + 1) - np.bincount(last, weight, m + 1)
    return np.cumsum(change[:m]).astype(np.float64)


def _form(variance: Square, score: Rows) -> float:
    """Quadratic form of the scores in the inverse of a positive definite matrix."""
    size = np.sqrt(variance.diagonal())
    try:
        factor = scipy.linalg.cholesky(variance / size / size[:, None], lower=True)
    except np.linalg.LinAlgError:  # definite, but not within rounding
        return generalized_inverse(variance).form(score)
    half = scipy.linalg.solve_triangular(factor, score / size, lower=True)
    return float(half @ half)
