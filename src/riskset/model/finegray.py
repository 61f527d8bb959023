"""Fine and Gray's likelihood of the subdistribution hazard, as `model.cox` for Cox's."""

import functools
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from riskset._errors import InputError
from riskset._runtime import Runtime, one_blas_thread
from riskset._types import Index, Matrix, RiskSets, Rows, Tail
from riskset.data.design import Design
from riskset.data.outcome import Outcome
from riskset.kernels import subdistribution_cpu as kernels
from riskset.model.censoring import CensoringTies, CensoringTimes
from riskset.model.cox import (
    Evaluation,
    balance_residuals,
    centred_within_strata,
    has_heavy_rows,
    in_blocks,
)
from riskset.model.risk_set_limit import attaining_peaks

__all__ = [
    "BeyondSupport",
    "CensoringDistribution",
    "CensoringWeights",
    "FineGrayLoss",
]

BeyondSupport = Literal["zero", "last"]
CensoringWeights = Literal["case", "none"]


@dataclass(frozen=True)
class CensoringDistribution:
    """G(t-) for each row's own time and for the time of each group of events.

    Attributes
    ----------
    group : (n,) int64
        Censoring group of each row, 0..K-1.
    own : (n,) float64
        G(time-) of each row's own group at its own time.
    at_events : (K, G) float64
        G(t-) of each censoring group at the time of each group of events.
    weight : (n,) float64 or None
        Weight of each row in the estimate; None if G was given.
    ties, beyond, weights
        As in `estimate`.
    times : tuple of CensoringTimes
        Of each group; empty if G was given.
    """

    group: Index
    own: Rows
    at_events: NDArray[np.float64]
    weight: Rows | None = None
    ties: CensoringTies = "crr"
    beyond: BeyondSupport = "zero"
    weights: CensoringWeights = "case"
    times: tuple[CensoringTimes, ...] = ()

    @classmethod
    def estimate(
        cls,
        outcome: Outcome,
        *,
        ties: CensoringTies = "crr",
        group: Index | None = None,
        beyond: BeyondSupport = "zero",
        weights: CensoringWeights = "case",
        source: Rows | None = None,
        carry_on: bool = False,
        times: tuple[CensoringTimes, ...] = (),
    ) -> "CensoringDistribution":
        """Kaplan-Meier estimates of the censoring distribution, one for each group.

        Parameters
        ----------
        ties
            See `CensoringTimes.survival`.
        group : (n,) int64, optional
            Codes; None: one group.
        beyond : {"zero", "last"}
            After a group's last time its rows count no longer (as crr and finegray have it), or
            with the last positive value.
        weights : {"case", "none"}
            Whether case weights count in the estimate.
        source : (n,) float64, optional
            Case weights to estimate from; None: the outcome's.
        carry_on
            Where the rows that it was estimated from have all left, G is its last positive value.
        times : tuple of CensoringTimes, optional
            Of each group, if they are known.
        """
        n = outcome.n_rows
        group = np.zeros(n, dtype=np.int64) if group is None else group
        case = outcome.weight if source is None else source
        case = case if weights == "case" else (case > 0).astype(np.float64)
        is_event = ~np.isnan(outcome.group_time)
        times = times or _by_group(outcome, group)
        own = np.ones(n)
        at_events = np.zeros((len(times), is_event.size))
        for k, of_group in enumerate(times):
            rows, curve = of_group.rows, of_group.survival(case, ties)
            before_event = of_group.n_before(outcome.group_time)[is_event]
            here, values = curve[of_group.at], curve[before_event]
            last = of_group.last(case)
            if carry_on:
                # Just before the last time somebody is left, so nothing there is 0.
                here = np.where(here > 0, here, curve[last])
            if carry_on or beyond == "last":
                values = np.where(values > 0, values, curve[last])
            elif len(times) > 1:
                values[before_event > last] = 0.0
            own[rows] = here
            at_events[k, is_event] = values
        return cls(group, own, at_events, case, ties, beyond, weights, times)

    def replicate(self, outcome: Outcome, source: Rows, carry_on: bool) -> "CensoringDistribution":
        """G for the same rows with other weights, estimated from `source` as before."""
        if self.weight is None:
            return CensoringDistribution.given(outcome, self.own)
        return CensoringDistribution.estimate(
            outcome,
            ties=self.ties,
            group=self.group,
            beyond=self.beyond,
            weights=self.weights,
            source=source,
            carry_on=carry_on,
            times=self.times,
        )

    @classmethod
    def given(cls, outcome: Outcome, probability: Rows) -> "CensoringDistribution":
        """From G(time-) of each row, as the caller estimated it.

        Rows with an event at one time must agree, because theirs is the value at that time.
        """
        risk = outcome.risk
        at_events = np.zeros((1, risk.group_events.size))
        events = np.flatnonzero(risk.event_weight > 0)
        group = np.searchsorted(risk.group_ptr, events, side="right") - 1
        values = probability[risk.order[events]]
        at_events[0, group] = values
        differ = np.flatnonzero(np.abs(at_events[0, group] - values) > 1e-9 * values)
        if differ.size:
            row = int(risk.order[events[differ[0]]])
            raise InputError(
                "`censoring_probability` must be the same for events at one time, but at time "
                f"{outcome.time[row]:g} it is {values[differ[0]]:g} and "
                f"{at_events[0, group[differ[0]]]:g} (row {row}).",
                hint="it is the probability of not being censored before the row's own time.",
            )
        return cls(np.zeros(outcome.n_rows, dtype=np.int64), probability, at_events)


def _by_group(outcome: Outcome, group: Index) -> tuple[CensoringTimes, ...]:
    """The times of each censoring group."""
    order = outcome.risk.order  # neighbours in time are neighbours in the curve, too
    return tuple(
        CensoringTimes.of(order[group[order] == k], outcome.time, outcome.event)
        for k in range(int(group.max()) + 1)
    )


@dataclass(frozen=True)
class FineGrayLoss:
    """Log partial likelihood of the subdistribution hazard, its gradient and its curvature.

    Attributes
    ----------
    outcome : Outcome
        `cause` is the cause of interest; every other positive code is a competing event.
    censoring : Censoring
    runtime : Runtime
    limit : (RiskSets, tuple of Tail) or None
        As in `CoxLoss`.
    """

    outcome: Outcome
    censoring: CensoringDistribution
    runtime: Runtime
    limit: tuple[RiskSets, tuple[Tail, ...]] | None = None

    efron: ClassVar[bool] = False
    """Ties are treated by Breslow's method."""
    has_intercept: ClassVar[bool] = False

    @property
    def is_limit(self) -> bool:
        """See `Loss.is_limit`."""
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
        """See `Loss.in_limit`."""
        return self.restricted(*attaining_peaks(self.risk, self.tails, z, slack))

    def as_partial(self) -> "FineGrayLoss":
        """See `Loss.as_partial`."""
        return self

    def counting_draws(self) -> "FineGrayLoss":
        """See `Loss.counting_draws`."""
        if self.censoring.weights == "case":
            return self
        return replace(self, censoring=replace(self.censoring, weights="case"))

    def intercept_drift(self, now: Evaluation) -> float:
        """See `Loss.intercept_drift`."""
        return 0.0

    def shifted(self, offset: Rows, runtime: Runtime) -> "FineGrayLoss":
        """The same likelihood with another offset, run elsewhere."""
        other = replace(self, outcome=self.outcome.shifted(offset), runtime=runtime)
        other.__dict__["tails"] = self.tails
        return other

    @property
    def whole(self) -> "FineGrayLoss":
        """The same likelihood on all risk sets."""
        return self if self.limit is None else replace(self, limit=None)

    @property
    def offset(self) -> Rows:
        """Part of the linear predictor that is not estimated (n,)."""
        return self.outcome.offset

    @property
    def n_events(self) -> float:
        """Weighted number of events of the cause of interest."""
        return self.outcome.sum_events

    @functools.cached_property
    def _has_heavy_rows(self) -> bool:
        return has_heavy_rows(self.outcome)

    def evaluate(self, eta: Rows) -> Evaluation:
        """Likelihood and residuals at `eta`, offset included, in the caller's order."""
        done = kernels.finegray_pass(eta, self.risk, self.tails, self.runtime)
        if self._has_heavy_rows:
            balance_residuals(done.residual, done.expected, self.risk, self.outcome)
        return Evaluation(
            done.log_likelihood,
            done.residual,
            done.expected,
            done.log_total,
            done.log_hazard,
            self.risk,
            self.tails,
            done.expected_tail,
        )

    @one_blas_thread
    def information(self, design: Design, eta: Rows, columns: Index) -> Matrix:
        """Observed information of some columns, in stored units; see `CoxLoss.information`."""
        return in_blocks(design.n_rows, columns, lambda c: self._information(design, eta, c))

    def _information(self, design: Design, eta: Rows, columns: Index) -> Matrix:
        z = centred_within_strata(design.stored(columns), self.outcome)
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
    sets = risk._replace(
        order=rows,
        weight=outcome.weight[rows] / censoring.own[rows],
        event_weight=np.zeros(rows.size),
        group_ptr=ptr,
        group_tied=np.zeros(n_groups, dtype=np.int64),
    )
    return Tail(sets, censoring.at_events[k])
