"""Fine and Gray's likelihood of the subdistribution hazard, as `model.cox` for Cox's."""

import functools
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from riskset._runtime import Runtime, one_blas_thread
from riskset._types import Index, Matrix, RiskSets, Rows, Tail
from riskset.data.design import Design
from riskset.data.outcome import Outcome
from riskset.kernels import subdistribution_cpu as kernels
from riskset.model.censoring import CensoringDistribution
from riskset.model.cox import NOTHING_PREPARED, Evaluation, PartialLikelihood, Prepared, in_blocks
from riskset.model.ordered_columns import centred_at_risk
from riskset.model.risk_set_limit import attaining_peaks

__all__ = ["FineGrayLoss"]


@dataclass(frozen=True)
class FineGrayLoss(PartialLikelihood):
    """Log partial likelihood of the subdistribution hazard, its gradient and its curvature.

    The `cause` of the outcome is the cause of interest; every other positive code is a competing
    event. `limit` has the risk sets and tails to use in place of these, as in `CoxLoss`.
    """

    outcome: Outcome
    censoring: CensoringDistribution
    runtime: Runtime
    limit: tuple[RiskSets, tuple[Tail, ...]] | None = None

    efron: ClassVar[bool] = False
    """Ties are treated by Breslow's method."""

    @property
    def is_limit(self) -> bool:
        return self.limit is not None

    @property
    def risk(self) -> RiskSets:
        """The risk sets up to each row's own time."""
        return self.outcome.risk if self.limit is None else self.limit[0]

    @functools.cached_property
    def tails(self) -> tuple[Tail, ...]:
        """The risk sets of rows with a competing event, after it."""
        if self.limit is not None:
            return self.limit[1]
        return tuple(
            _tail(self.outcome, self.censoring, k) for k in range(self.censoring.at_events.shape[0])
        )

    def replicate(
        self,
        weight: Rows,
        censoring: Rows | None = None,
        *,
        carry_on: bool = False,
        runtime: Runtime | None = None,
    ) -> "FineGrayLoss":
        """The same likelihood with other case weights; G from `censoring` weights or as it is."""
        outcome = self.outcome.reweighted(weight)
        as_it_is = self.outcome.weight if self.censoring.weight is None else self.censoring.weight
        source = as_it_is if censoring is None else censoring
        curve = self.censoring.replicate(outcome, source, carry_on)
        return replace(
            self, outcome=outcome, censoring=curve, runtime=runtime or self.runtime, limit=None
        )

    def restricted(self, risk: RiskSets, tails: tuple[Tail, ...]) -> "FineGrayLoss":
        """The same likelihood on what is left of the risk sets."""
        return replace(self, limit=(risk, tails))

    def in_limit(self, z: Rows, slack: Rows) -> "FineGrayLoss":
        return self.restricted(*attaining_peaks(self.risk, self.tails, z, slack))

    @property
    def approximation(self) -> "FineGrayLoss":
        return self

    def as_partial(self) -> "FineGrayLoss":
        return self

    def counting_draws(self) -> "FineGrayLoss":
        if self.censoring.weights == "case":
            return self
        return replace(self, censoring=replace(self.censoring, weights="case"))

    def shifted(self, offset: Rows, runtime: Runtime) -> "FineGrayLoss":
        """The same likelihood with another offset, run elsewhere."""
        other = replace(self, outcome=self.outcome.shifted(offset), runtime=runtime)
        other.__dict__["tails"] = self.tails
        return other

    def of_rows(self, rows: Index) -> "FineGrayLoss":
        """The same likelihood of some rows, in the given order, with G of all."""
        outcome = self.outcome.of_rows(rows)
        order = self.outcome.risk.order
        place = np.empty_like(order)
        place[order] = np.arange(order.size)
        risk = outcome.risk
        last = place[rows[risk.order[risk.group_ptr[1:] - 1]]]
        group = np.searchsorted(self.outcome.risk.group_ptr, last, side="right") - 1
        censoring = self.censoring.taken(rows).at_groups(group)
        return replace(self, outcome=outcome, censoring=censoring, limit=None)

    def in_risk_order(self) -> "FineGrayLoss":
        """The same likelihood, on all risk sets, of the rows in their order."""
        censoring = self.censoring.taken(self.outcome.risk.order)
        return replace(self, outcome=self.outcome.in_risk_order(), censoring=censoring, limit=None)

    @property
    def whole(self) -> "FineGrayLoss":
        """The same likelihood on all risk sets."""
        return self if self.limit is None else replace(self, limit=None)

    def evaluate(self, eta: Rows) -> Evaluation:
        """Likelihood and residuals at `eta`, offset included, in the caller's order."""
        done = kernels.finegray_pass(eta, self.risk, self.tails, self.runtime)
        return self._evaluation(done, self.risk, self.tails, done.expected_tail)

    @one_blas_thread
    def information(
        self, design: Design, eta: Rows, columns: Index, prepared: Prepared = NOTHING_PREPARED
    ) -> Matrix:
        """Observed information of some columns, in stored units; see `CoxLoss.information`."""
        return in_blocks(design.n_rows, columns, lambda c: self._information(design, eta, c))

    def _information(self, design: Design, eta: Rows, columns: Index) -> Matrix:
        z = centred_at_risk(design.stored(columns), self.outcome, self.risk, self.tails)
        out = kernels.finegray_information(eta, self.risk, self.tails, z, self.runtime)
        return np.asarray((out + out.T) / 2)


def _tail(outcome: Outcome, censoring: CensoringDistribution, k: int) -> Tail:
    """Rows of one censoring group with a competing event, sorted by the group of their time."""
    risk = outcome.risk
    n_groups = risk.group_events.size
    competing = (outcome.event != 0) & ~outcome.is_event & (outcome.weight > 0)
    in_tail = competing & (censoring.group == k) & (censoring.own > 0)
    position = np.flatnonzero(in_tail[risk.order])
    rows = risk.order[position]
    ptr = np.searchsorted(position, risk.group_ptr).astype(np.int64)
    none = np.zeros(0, dtype=np.int64)  # after their own time all have entered: nested risk sets
    sets = risk._replace(
        order=rows,
        weight=outcome.weight[rows] / censoring.own[rows],
        event_weight=np.zeros(rows.size),
        group_ptr=ptr,
        group_tied=np.zeros(n_groups, dtype=np.int64),
        own=none,
        end=none,
        level_rows=none,
        level_ptr=np.zeros(1, dtype=np.int64),
    )
    return Tail(sets, censoring.at_events[k])
