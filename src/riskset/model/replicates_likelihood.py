"""Eight replicates of one likelihood, evaluated together.

The rows stand in the risk order of the whole data and in its groups: a group without an event in
a lane adds nothing there. Breslow's ties, without late entry; Fine and Gray's model too, and
logistic regression.
"""

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from riskset._types import AnyArray, Index, Matrix, Pointer, RiskSets, Rows
from riskset.kernels import logistic_cpu as logistic
from riskset.kernels import replicates_cpu as kernels
from riskset.kernels._vector import LANES, lane_rows
from riskset.kernels.replicates_ref import LaneTail
from riskset.kernels.risk_sets_cpu import MAX_ETA_SPAN, MIN_TOTAL
from riskset.model.loss import Loss

__all__ = ["LANES", "LaneEvaluation", "LaneLoss", "LogisticLanes", "ReplicateWeights", "tails_of"]


class ReplicateWeights(NamedTuple):
    """Case weights (n,) of a replicate.

    `censoring` are those of the rows that estimate the distribution of censoring in Fine and Gray's
    model; None: the weights of the whole data.
    """

    weight: Rows
    censoring: Rows | None = None


@dataclass(frozen=True)
class LaneEvaluation:
    """The partial likelihood of each lane (8,), and residuals (n, 8) in the caller's order.

    The next evaluation writes over the residuals. Where `is_safe` is False, eta spans too much for
    one shift, and the other numbers are not valid.
    """

    log_likelihood: Rows
    residual: Matrix
    is_safe: NDArray[np.bool_]


@dataclass(frozen=True)
class LaneLoss:
    """Log partial likelihood and its gradient, lane by lane.

    The risk sets `sets` are those of the `loss` of the whole data, with the weight of a row that
    counts once: its case weight, or 1. `count` (n, 8), uint8 or float64 in risk order, says how
    often a row counts in a lane.
    """

    loss: Loss
    sets: RiskSets
    count: AnyArray
    tails: tuple[LaneTail, ...]

    @staticmethod
    def can_be_made(loss: Loss) -> bool:
        """Whether this likelihood has the form that lanes are written for."""
        return not (loss.efron or loss.is_limit or loss.risk.own.size)

    @classmethod
    def build(
        cls, loss: Loss, parts: Sequence[ReplicateWeights], *, carry_on: bool = False
    ) -> "LaneLoss":
        """From at most eight replicates; the other lanes stay empty."""
        risk = loss.risk
        unit, count = _counted(loss.outcome.weight, parts)
        unit, count = unit[risk.order], np.take(count, risk.order, axis=0)
        found = tails_of(loss, parts, LANES, carry_on) if loss.censoring is not None else ()
        tails = tuple(
            LaneTail(rows, weight, ptr, risk.starts_stratum, survival)
            for rows, ptr, weight, survival in found
        )
        events = np.where(loss.outcome.is_event[risk.order], unit, 0.0)
        kind = LogisticLanes if loss.has_intercept else LaneLoss
        return kind(loss, risk._replace(weight=unit, event_weight=events), count, tails)

    @property
    def n_events(self) -> Rows:
        """Weighted number of events (8,)."""
        at = np.flatnonzero(self.sets.event_weight)
        return np.asarray((self.sets.event_weight[at, None] * self.count[at]).sum(axis=0))

    def by_row(self, values: Rows) -> Matrix:
        """Numbers by position, times the counts, in the caller's order (n, 8)."""
        out = np.zeros((self.loss.outcome.n_rows, LANES))
        out[self.sets.order] = values[:, None] * self.count
        return out

    def expected(self, residual: Matrix) -> Matrix:
        """`Evaluation.expected` of each lane (n, 8), in the caller's order."""
        return np.maximum(self.by_row(self.sets.event_weight) - residual, 0.0)

    @functools.cached_property
    def _scratch(self) -> "_Scratch":
        """Fresh memory would cost as much as the sums; a bundle stays in one thread."""
        n_groups = self.sets.group_events.size
        hazard = lane_rows(n_groups)
        more = lane_rows(n_groups if self.tails else 0)
        orders = self.sets.order, *(tail.order for tail in self.tails)
        risks = [lane_rows(order.size) for order in orders]
        residual = lane_rows(self.loss.outcome.n_rows)
        residual[:] = 0.0
        return _Scratch(more, hazard, risks, residual)

    def evaluate(self, eta: Matrix) -> LaneEvaluation:
        """Likelihood and residuals at `eta` (n, 8), offset included."""
        value, is_safe = self.log_likelihood(eta)
        scratch = self._scratch
        own, *others = scratch.risks
        kernels.residuals_up_to(scratch.hazard, self.sets, self.count, own, scratch.residual)
        for tail, r in zip(self.tails, others, strict=True):
            kernels.residuals_of_tail(scratch.hazard, tail, r, scratch.residual)
        return LaneEvaluation(value, scratch.residual, is_safe)

    def log_likelihood(self, eta: Matrix) -> tuple[Rows, NDArray[np.bool_]]:
        """Likelihood alone, and where it is safe (8,)."""
        low, shift, value = np.empty((3, LANES))
        kernels.bounds(eta, low, shift)
        is_safe = shift - low < MAX_ETA_SPAN
        if not is_safe.all():
            eta, shift = np.where(is_safe, eta, 0.0), np.where(is_safe, shift, 0.0)
        scratch = self._scratch
        own, *others = scratch.risks
        more = scratch.more if self.tails else None
        if self.tails:
            scratch.more[:] = 0.0
        for tail, r in zip(self.tails, others, strict=True):
            kernels.sum_after(eta, shift, tail, r, scratch.more)
        kernels.sum_up_to(eta, shift, self.sets, self.count, more, own, scratch.hazard, low, value)
        is_safe &= low > MIN_TOTAL
        return value, is_safe


@dataclass(frozen=True)
class LogisticLanes(LaneLoss):
    """Log likelihood of a logistic regression, lane by lane.

    Each lane has an intercept of its own. No eta is too wide.
    """

    @functools.cached_property
    def _sign(self) -> Rows:
        return np.where(self.sets.event_weight > 0, 1.0, -1.0)

    @functools.cached_property
    def _residual(self) -> Matrix:
        return lane_rows(self.sets.order.size)

    def intercepts(self, eta: Matrix) -> Rows:
        """Best intercept of each lane (8,), infinite where all rows have the same outcome."""
        out = np.empty(LANES)
        logistic.fit_intercepts(eta, self._sign, self.sets.weight, self.count, out)
        return out

    def evaluate(self, eta: Matrix) -> LaneEvaluation:
        """Likelihood and residuals at `eta` (n, 8), offset included."""
        value, residual = np.empty(LANES), self._residual
        at = self.intercepts(eta)
        logistic.residuals(eta, self._sign, self.sets.weight, self.count, at, residual, value)
        return LaneEvaluation(value, residual, np.isfinite(value))

    def log_likelihood(
        self, eta: Matrix, intercepts: Rows | None = None
    ) -> tuple[Rows, NDArray[np.bool_]]:
        """Likelihood alone, with the best intercepts or those given, and where it is a number."""
        value = np.empty(LANES)
        at = self.intercepts(eta) if intercepts is None else intercepts
        logistic.log_likelihoods(eta, self._sign, self.sets.weight, self.count, at, value)
        return value, np.isfinite(value)

    def expected(self, residual: Matrix) -> Matrix:
        """Variance of each row's outcome; see `LogisticEvaluation`."""
        weight = self.by_row(self.sets.weight)
        miss = np.abs(residual)
        square = np.divide(miss**2, weight, out=np.zeros_like(miss), where=weight > 0)
        return np.asarray(miss - square)


class _Scratch(NamedTuple):
    """Arrays of a bundle that every evaluation fills anew.

    What tails add to risk sets, and increments of the hazard (G, 8); the risks of the rows up to
    their own time and of each tail (m, 8); residuals (n, 8).
    """

    more: Matrix
    hazard: Matrix
    risks: list[Matrix]
    residual: Matrix


def _counted(weight: Rows, parts: Sequence[ReplicateWeights]) -> tuple[Rows, AnyArray]:
    """How often each row counts in each lane, in one byte if that is enough, and its unit."""
    count = np.zeros((weight.size, LANES), dtype=np.uint8)
    if all(kernels.counts(part.weight, weight, k, count) for k, part in enumerate(parts)):
        return weight, count
    share = np.zeros((weight.size, LANES))
    for k, part in enumerate(parts):
        share[:, k] = part.weight
    return np.ones(weight.size), share


def tails_of(
    loss: Loss, parts: Sequence[ReplicateWeights], n_lanes: int, carry_on: bool
) -> Iterator[tuple[Index, Pointer, Matrix, Matrix]]:
    """The tails of the whole data, weighted by the censoring curves of each replicate.

    Yields for each tail the caller's rows (m,) in risk order, the rows of each group (G + 1,), case
    weights over G at the row's own time (m, R), and G at the time of each group (G, R). There may
    be more lanes R than parts.
    """
    outcome, risk, whole = loss.outcome, loss.risk, loss.censoring
    assert whole is not None
    curves = [
        whole
        if part.censoring is None
        else whole.replicate(outcome, part.censoring, carry_on=carry_on)
        for part in parts
    ]
    competing = (outcome.event != 0) & ~outcome.is_event & (outcome.weight > 0)
    for group in range(whole.at_events.shape[0]):
        position = np.flatnonzero((competing & (whole.group == group))[risk.order])
        rows = risk.order[position]
        weight = np.zeros((rows.size, n_lanes))
        survival = np.zeros((risk.group_events.size, n_lanes))
        for k, (part, curve) in enumerate(zip(parts, curves, strict=True)):
            own = curve.own[rows]
            np.divide(part.weight[rows], own, out=weight[:, k], where=own > 0)
            survival[:, k] = curve.at_events[group]
        yield rows, np.searchsorted(position, risk.group_ptr).astype(np.int64), weight, survival
