r"""The curvature of a partial likelihood in the log frailties of clusters.

.. math:: Z' C Z = \mathrm{diag}(h) - \sum_t N_t \, p_t p_t'

with C the curvature in the linear predictors, Z the clusters of the rows, h the expected events of
each cluster, and :math:`p_t` their shares of the risk set at time t. The second part is small: a
share is about one over the number of clusters.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from riskset._types import Index, Pointer, RiskSets, Rows
from riskset.kernels.subdistribution_cpu import seen_up_to
from riskset.model.curvature_product import EfronTies
from riskset.model.frailty import Clusters
from riskset.model.loss import Loss, within_reach

__all__ = ["MAX_SQUARED_SPAN", "ClusterEntries", "shared_variance"]

MAX_SQUARED_SPAN = 300.0
"""Rows further below the largest eta count as if they were there: squares stay in range."""


@dataclass(frozen=True, eq=False)
class ClusterEntries:
    """Rows that come to or leave the risk sets of the groups, by cluster, stratum and group.

    `place` (m,) are places in risk order, `sign` 1 where the row comes and -1 where it leaves.
    `run` (m,) numbers the entries of one cluster, stratum and group, `last` are the last of each.
    `first` (m,) is the first entry of the same cluster and stratum.
    """

    cluster: Index
    place: Index
    group: Index
    sign: Rows
    first: Index
    run: Index
    last: Pointer
    n_clusters: int

    @classmethod
    def of(cls, risk: RiskSets, cluster: Index, n_clusters: int) -> Self:
        """From the cluster (n,) of each row, in the caller's order."""
        own, n = risk.group, risk.order.size
        place, group = np.arange(n), own
        if risk.own.size:
            place = np.concatenate([place, place])
            group = np.concatenate([risk.own, np.maximum(risk.own, risk.end)])
        stratum = np.cumsum(risk.starts_stratum)[own][place]
        owner = cluster[risk.order][place]
        by = np.lexsort((group, stratum, owner))
        owner, stratum, group = owner[by], stratum[by], group[by]
        starts = np.append(True, (np.diff(owner) != 0) | (np.diff(stratum) != 0))[: by.size]
        changes = starts | np.append(True, np.diff(group) != 0)[: by.size]
        at = np.flatnonzero(starts)
        return cls(
            owner,
            place[by],
            group,
            np.where(by < n, 1.0, -1.0),
            np.repeat(at, np.diff(np.append(at, by.size))),
            np.cumsum(changes) - 1,
            np.append(np.flatnonzero(changes)[1:], by.size) - 1,
            n_clusters,
        )


def shared_variance(loss: Loss, eta: Rows, entries: ClusterEntries) -> Clusters:
    r"""Diagonal (n_clusters,) of :math:`\sum_t N_t \, p_t p_t'` at `eta` (n,).

    The share of a cluster changes only where one of its rows comes or leaves: O(n).
    """
    risk = loss.risk
    eta = within_reach(loss, eta, MAX_SQUARED_SPAN)
    now, shift = loss.evaluate(eta), float(eta.max())
    with np.errstate(divide="ignore"):
        inverse = np.where(risk.group_events > 0, np.exp(shift - now.log_total), 0.0)
    r = risk.weight * np.exp(eta[risk.order] - shift)
    ties = EfronTies.of(risk, r, inverse) if loss.efron else None
    terms = (risk.group_events if ties is None else ties.moments[0]) * inverse * inverse
    change = entries.sign * r[entries.place]
    total = np.cumsum(change)
    at_risk = total - (total - change)[entries.first]
    ends = np.append(risk.starts_stratum, True)[entries.group] & (entries.sign < 0)
    later = np.where(ends, 0.0, _sums_from(terms, risk)[entries.group])
    steps = change * (2.0 * at_risk - change) * later
    out: Clusters = np.asarray(np.bincount(entries.cluster, steps, entries.n_clusters), float)
    if ties is None:
        return out
    is_event = (risk.event_weight > 0)[entries.place] & (entries.sign > 0)
    tied = np.bincount(entries.run, np.where(is_event, change, 0.0), entries.last.size)
    found = np.flatnonzero(tied)
    last = entries.last[found]
    group, tied = entries.group[last], tied[found]
    once, twice = (moment[group] * inverse[group] ** 2 for moment in ties.moments[1:])
    lacking = tied * (tied * twice - 2.0 * at_risk[last] * once)
    return np.asarray(out + np.bincount(entries.cluster[last], lacking, entries.n_clusters))


def _sums_from(terms: Rows, risk: RiskSets) -> Rows:
    """Sum (G + 1,) over each group and all after it in its stratum; 0 where no group is left."""
    n_groups = terms.size
    groups = risk._replace(
        order=np.arange(n_groups), group_ptr=np.arange(n_groups + 1), own=risk.own[:0]
    )
    return np.append(seen_up_to(terms, groups), 0.0)
