"""Eight replicates of one likelihood, evaluated together.

The rows stand in the risk order of the whole data and in its groups: a group without an event in
a lane adds nothing there. Breslow's ties, without late entry; Fine and Gray's model too.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from riskset._types import Index, Matrix, Pointer, Rows
from riskset.kernels import lanes_cpu as kernels
from riskset.kernels._vector import LANES
from riskset.kernels.risk_sets_cpu import LEAST, SPAN
from riskset.model.cox import CoxLoss
from riskset.model.finegray import FineGrayLoss
from riskset.model.loss import Loss

__all__ = ["LANES", "LaneEvaluation", "LaneLoss", "Part"]


class Part(NamedTuple):
    """The rows of a replicate.

    Attributes
    ----------
    weight : (n,) float64 >= 0
        Case weights in the replicate.
    censoring : (n,) float64 or None
        Fine-Gray: case weights of the rows that estimate the censoring; None: those of all data.
    """

    weight: Rows
    censoring: Rows | None = None


@dataclass(frozen=True)
class LaneEvaluation:
    """The partial likelihood of each lane.

    Attributes
    ----------
    log_likelihood : (8,) float64
    residual : (n, 8) float64
        In the caller's order.
    is_safe : (8,) bool
        False where eta spans too much for one shift: the other numbers say nothing.
    """

    log_likelihood: Rows
    residual: Matrix
    is_safe: NDArray[np.bool_]


@dataclass(frozen=True)
class _Sets:
    """Rows in nested risk sets: up to their own time, or as a tail after it."""

    order: Index
    weight: Matrix
    group_ptr: Pointer
    survival: Matrix | None


@dataclass(frozen=True)
class LaneLoss:
    """Log partial likelihood and its gradient, lane by lane.

    Attributes
    ----------
    own : _Sets
        Every row up to its own time.
    tails : tuple of _Sets
        Rows with a competing event after it.
    weight : (n, 8) float64
        In the caller's order.
    events : (n, 8) float64
        Weight of the rows with an event, in the caller's order.
    group_events : (G, 8) float64
    starts_stratum : (G,) bool
    offset : (n,) float64
    """

    own: _Sets
    tails: tuple[_Sets, ...]
    weight: Matrix
    events: Matrix
    group_events: Matrix
    starts_stratum: NDArray[np.bool_]
    offset: Rows

    @staticmethod
    def can_be_made(loss: Loss) -> bool:
        """Whether this likelihood has the form that lanes are written for."""
        if isinstance(loss, CoxLoss):
            return not loss.efron and loss.limit is None and not loss.risk.own.size
        return isinstance(loss, FineGrayLoss) and loss.limit is None

    @classmethod
    def build(cls, loss: Loss, parts: Sequence[Part], *, carry_on: bool = False) -> "LaneLoss":
        """From at most eight replicates; the lanes that are left stay empty.

        Parameters
        ----------
        carry_on
            As in `Loss.replicate`.
        """
        outcome, risk = loss.outcome, loss.risk
        weight = np.zeros((outcome.n_rows, LANES))
        for k, part in enumerate(parts):
            weight[:, k] = part.weight
        placed, events = np.empty((2, *weight.shape))
        sums = np.empty((risk.group_events.size, LANES))
        kernels.into_groups(
            weight, risk.order, outcome.is_event, risk.group_ptr, placed, events, sums
        )
        own = _Sets(risk.order, placed, risk.group_ptr, None)
        tails = _tails(loss, parts, weight, carry_on) if isinstance(loss, FineGrayLoss) else ()
        return cls(own, tails, weight, events, sums, risk.starts_stratum, loss.offset)

    @property
    def n_events(self) -> Rows:
        """Weighted number of events (8,)."""
        return np.asarray(self.group_events.sum(axis=0))

    @functools.cached_property
    def _scratch(self) -> tuple[Matrix, Matrix, list[Matrix]]:
        """Sums over risk sets, of all and of a tail, and the risks of each set of rows.

        Fresh memory would cost as much as the sums; a bundle stays in one thread.
        """
        total, after = np.empty((2, *self.group_events.shape))
        return total, after, [np.empty(s.weight.shape) for s in (self.own, *self.tails)]

    def evaluate(self, eta: Matrix) -> LaneEvaluation:
        """Likelihood and residuals at `eta` (n, 8), offset included."""
        value, is_safe, hazard, risks = self._forward(eta)
        residual = self.events.copy()
        for sets, r in zip((self.own, *self.tails), risks, strict=True):
            seen = hazard if sets.survival is None else hazard * sets.survival
            kernels.add_expected(
                seen, sets.order, r, sets.group_ptr, self.starts_stratum,
                sets.survival is not None, residual,
            )  # fmt: skip
        return LaneEvaluation(value, residual, is_safe)

    def log_likelihood(self, eta: Matrix) -> tuple[Rows, NDArray[np.bool_]]:
        """Likelihood alone, and where it is safe (8,)."""
        return self._forward(eta)[:2]

    def _forward(self, eta: Matrix) -> tuple[Rows, NDArray[np.bool_], Matrix, list[Matrix]]:
        """Likelihood, where it is safe, hazards by group, and risks of each set of rows."""
        low, shift, value = np.empty((3, LANES))
        kernels.bounds(eta, low, shift)
        is_safe = shift - low < SPAN
        if not is_safe.all():
            eta, shift = np.where(is_safe, eta, 0.0), np.where(is_safe, shift, 0.0)
        kernels.score(eta, shift, self.events, value)
        total, after, risks = self._scratch
        for sets, r in zip((self.own, *self.tails), risks, strict=True):
            is_tail = sets.survival is not None
            kernels.sum_at_risk(
                eta, shift, sets.order, sets.weight, sets.group_ptr, self.starts_stratum, is_tail,
                r, after if is_tail else total,
            )  # fmt: skip
            if sets.survival is not None:
                after *= sets.survival
                total += after
        np.copyto(total, 1.0, where=self._without_events)
        kernels.bounds(total, low, np.empty(LANES))
        is_safe &= low > LEAST
        hazard = np.divide(self.group_events, total, out=after)
        np.log(total, out=total)
        value -= np.einsum("gk,gk->k", self.group_events, total)
        return value, is_safe, hazard, risks

    @functools.cached_property
    def _without_events(self) -> NDArray[np.bool_]:
        return np.asarray(self.group_events == 0)


def _tails(
    loss: FineGrayLoss, parts: Sequence[Part], weight: Matrix, carry_on: bool
) -> tuple[_Sets, ...]:
    """The tails of the whole data, weighted by each replicate's own censoring curves."""
    outcome, risk = loss.outcome, loss.risk
    curves = [
        loss.censoring
        if part.censoring is None
        else loss.censoring.replicate(outcome, part.censoring, carry_on=carry_on)
        for part in parts
    ]
    competing = (outcome.event != 0) & ~outcome.is_event & (outcome.weight > 0)
    out = []
    for group in range(loss.censoring.at_events.shape[0]):
        position = np.flatnonzero((competing & (loss.censoring.group == group))[risk.order])
        rows = risk.order[position]
        tail = np.zeros((rows.size, LANES))
        survival = np.zeros((risk.group_events.size, LANES))
        for k, curve in enumerate(curves):
            own = curve.own[rows]
            np.divide(weight[rows, k], own, out=tail[:, k], where=own > 0)
            survival[:, k] = curve.at_events[group]
        ptr = np.searchsorted(position, risk.group_ptr).astype(np.int64)
        out.append(_Sets(rows, tail, ptr, survival))
    return tuple(out)
