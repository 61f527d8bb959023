"""The exact conditional likelihood of tied events as a function of the linear predictor.

Of m tied events the likelihood asks which m of the rows at risk have them, given that there are m.
Its strata of one time are the sets of a conditional logistic regression.
"""

import functools
from dataclasses import dataclass, replace

import numpy as np

from riskset._runtime import one_blas_thread
from riskset._types import Index, Matrix, RiskSets, Rows
from riskset.data.design import Design
from riskset.data.risk_order import by_level
from riskset.kernels import exact_ties_cpu as kernels
from riskset.kernels import risk_sets_cpu, separation_cpu
from riskset.kernels.subdistribution_cpu import sum_up_to
from riskset.model.cox import NOTHING_PREPARED, CoxLoss, Evaluation, Prepared, in_blocks
from riskset.model.ordered_columns import centred_at_risk, centred_within_strata
from riskset.model.risk_set_limit import pieces, ranges_at_risk

__all__ = ["ExactTiesLoss"]


@dataclass(frozen=True)
class ExactTiesLoss(CoxLoss):
    """Log conditional likelihood, its gradient and its curvature; see `exact_ties_ref`.

    Case weights are whole numbers, and stand for as many equal rows.
    """

    @functools.cached_property
    def largest_tie(self) -> int:
        """Most rows that one term chooses together."""
        return max(1, round(float(self.risk.group_events.max(initial=1.0))))

    @property
    def work(self) -> float:
        """About how many multiplications `evaluate` takes: rows at risk times tied events.

        Without late entry, a stratum may be gone through once with its largest tie.
        """
        risk, events = self.risk, np.rint(self.risk.group_events)
        size = sum_up_to(np.rint(risk.weight), risk)
        if risk.own.size:
            return float(size @ events)
        stratum = np.cumsum(risk.starts_stratum) - 1
        alone = np.bincount(stratum, size * events)
        most, rows = np.zeros((2, alone.size))
        np.maximum.at(most, stratum, events)
        np.maximum.at(rows, stratum, size)
        return float(np.minimum(alone, most * rows).sum())

    @property
    def approximation(self) -> CoxLoss:
        """Breslow's likelihood on the same risk sets, whose curvature is rather larger."""
        return CoxLoss(self.outcome, "breslow", self.runtime, self.limit)

    def evaluate(self, eta: Rows) -> Evaluation:
        """Likelihood and residuals at `eta`, offset included, in the caller's order.

        The hazard is Breslow's.
        """
        exact = kernels.exact_pass(eta, self.risk, self.runtime)
        breslow = risk_sets_cpu.cox_pass(eta, self.risk, False, self.runtime)
        return Evaluation(*exact, breslow.log_total, breslow.log_hazard, self.risk)

    @one_blas_thread
    def information(
        self, design: Design, eta: Rows, columns: Index, prepared: Prepared = NOTHING_PREPARED
    ) -> Matrix:
        r"""Observed information of some columns (q, q), exact, in stored units.

        .. math:: I = \sum_g \mathrm{Cov}_g \Bigl( \sum_{i \in S} z_i \Bigr)

        over the sets S of as many rows as group g has events. It is made as :math:`Z'(CZ)` with the
        curvature C of the rows: O(q) passes over the rows, and O(n q^2). Columns are taken about
        the mean of the rows that count, so that one that is constant among them has none.
        """
        weight = None if prepared.now is None else prepared.now.expected

        def information(block: Index) -> Matrix:
            stored = design.stored(columns[block])
            if weight is None:
                z = centred_at_risk(stored, self.outcome, self.risk)
            else:
                z = centred_within_strata(stored, self.outcome, weight)
            found = z.T @ kernels.exact_products(eta, z, self.risk, self.runtime)
            return np.asarray((found + found.T) / 2)

        return in_blocks(design.n_rows, np.arange(columns.size), information)

    def as_partial(self) -> CoxLoss:
        """A partial likelihood with the same directions of recession.

        The likelihood never falls along d if the events of a group have its largest x'd: each of
        them the largest of a risk set of itself and those without an event.
        """
        return self._as_partial

    @functools.cached_property
    def _as_partial(self) -> CoxLoss:
        found = self.approximation
        if self.risk.group_tied.max(initial=0) < 2:
            return found
        return replace(found, limit=_one_event_each(self.risk))

    def in_limit(self, z: Rows, slack: Rows) -> "ExactTiesLoss":
        """What is left of the likelihood as coefficients go to infinity along a direction.

        Rows above the lowest event of their group have its events for sure, those below it have
        none, and both drop out. Who has the other events among those in between stays open.
        """
        risk, (own, end) = self.risk, ranges_at_risk(self.risk)
        high, low = (z + slack)[risk.order], (z - slack)[risk.order]
        is_event = risk.event_weight > 0
        group, n_groups = risk.group, risk.group_events.size
        least, most = np.full((2, n_groups), np.inf)
        np.minimum.at(least, group[is_event], low[is_event])
        np.minimum.at(most, group[is_event], high[is_event])
        rows, begin, stop = separation_cpu.attaining(high, least, own, end)
        is_sure = is_event & (low > most[group])
        begin = begin + (is_sure[rows] & (begin == own[rows]))
        left = begin < stop
        limit = pieces(risk, rows[left], begin[left], stop[left], own)
        has_event = limit.event_weight > 0
        return replace(
            self,
            limit=limit._replace(
                group_events=np.bincount(limit.group, limit.event_weight, n_groups).astype(float),
                group_tied=np.bincount(limit.group, has_event, n_groups).astype(np.int64),
            ),
        )


def _one_event_each(risk: RiskSets) -> RiskSets:
    """Risk sets of each event and of those without an event at its time."""
    own, end = ranges_at_risk(risk)
    event = np.flatnonzero(risk.event_weight > 0)
    other = np.flatnonzero(risk.event_weight <= 0)
    # A group of m events becomes m groups; one without any stays.
    first = np.append(0, np.cumsum(np.maximum(risk.group_tied, 1)))
    n_groups = int(first[-1])
    before = np.append(0, np.cumsum(risk.group_tied))
    at = first[own[event]] + np.arange(event.size) - before[own[event]]
    rows = np.concatenate([event, event, other])
    begin = np.concatenate([at, first[own[event] + 1], first[own[other]]])
    stop = np.concatenate([at + 1, first[end[event]], first[end[other]]])
    has_event = np.arange(rows.size) < event.size
    left = np.flatnonzero(begin < stop)
    left = left[np.argsort(begin[left], kind="stable")]
    rows, begin, stop, has_event = rows[left], begin[left], stop[left], has_event[left]
    events = np.zeros(n_groups)
    events[at] = risk.event_weight[event]
    starts = np.zeros(n_groups, dtype=bool)
    starts[first[:-1][risk.starts_stratum]] = True
    level_rows, level_ptr = by_level(begin, stop, n_groups)
    return risk._replace(
        order=risk.order[rows],
        weight=risk.weight[rows],
        event_weight=np.where(has_event, risk.event_weight[rows], 0.0),
        group_ptr=np.searchsorted(begin, np.arange(n_groups + 1)).astype(np.int64),
        group_events=events,
        group_tied=(events > 0).astype(np.int64),
        starts_stratum=starts,
        chunk_ptr=np.array([0, n_groups]),
        own=begin,
        end=stop,
        level_rows=level_rows,
        level_ptr=level_ptr,
    )
