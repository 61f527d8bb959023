"""What a solver asks of a likelihood."""

from typing import Protocol

import numpy as np

from riskset._runtime import Runtime
from riskset._types import Index, Matrix, RiskSets, Rows, Tail
from riskset.data.design import Design
from riskset.data.outcome import Outcome
from riskset.model.censoring import CensoringDistribution
from riskset.model.cox import NOTHING_PREPARED, Evaluation, Prepared

__all__ = ["Loss", "bare", "common_offset", "rounding_of", "within_reach"]


class Loss(Protocol):
    """A log likelihood of the linear predictor: `CoxLoss`, `FineGrayLoss` or `LogisticLoss`."""

    @property
    def outcome(self) -> Outcome:
        """Times, events, weights, strata."""

    @property
    def runtime(self) -> Runtime:
        """Where kernels run."""

    @property
    def risk(self) -> RiskSets:
        """Who is at risk when, up to the row's own time."""

    @property
    def tails(self) -> tuple[Tail, ...]:
        """Who stays in the risk sets after it."""

    @property
    def efron(self) -> bool:
        """Whether ties are treated by Efron's method."""

    @property
    def offset(self) -> Rows:
        """Part of the linear predictor that is not estimated (n,)."""

    @property
    def n_events(self) -> float:
        """Weighted number of events."""

    def evaluate(self, eta: Rows) -> Evaluation:
        """Likelihood and residuals at `eta`, offset included."""

    def information(
        self, design: Design, eta: Rows, columns: Index, prepared: Prepared = NOTHING_PREPARED
    ) -> Matrix:
        """Observed information of some columns, exact, in stored units."""

    def replicate(
        self,
        weight: Rows,
        censoring: Rows | None = None,
        *,
        carry_on: bool = False,
        runtime: Runtime | None = None,
    ) -> "Loss":
        """The same likelihood with other case weights (n,), as of a fold or a resample.

        In Fine and Gray's model, `censoring` (n,) are the case weights of the rows that estimate
        the distribution of censoring, by default those of this likelihood. With `carry_on`, its
        last positive value is used where those rows have all left. Kernels run in `runtime`, by
        default that of this likelihood.
        """

    def restricted(self, risk: RiskSets, tails: tuple[Tail, ...]) -> "Loss":
        """The same likelihood on other risk sets."""

    def shifted(self, offset: Rows, runtime: Runtime) -> "Loss":
        """The same likelihood with another offset, run elsewhere."""

    def of_rows(self, rows: Index) -> "Loss":
        """The same likelihood of some rows, in the given order, on all risk sets."""

    def in_risk_order(self) -> "Loss":
        """The same likelihood, on all risk sets, of the rows in the order of these."""

    @property
    def whole(self) -> "Loss":
        """The same likelihood on all risk sets."""

    @property
    def is_limit(self) -> bool:
        """Whether this is what was left of another likelihood as coefficients went to infinity."""

    def in_limit(self, z: Rows, slack: Rows) -> "Loss":
        """What is left as coefficients go to infinity along a direction d of recession.

        `z` (n,) is x'd, of which `slack` (n,) may be rounding.
        """

    def as_partial(self) -> "Loss":
        """A partial likelihood with the same directions of recession; itself if it is one."""

    @property
    def censoring(self) -> CensoringDistribution | None:
        """Fine-Gray: the distribution of censoring; None for the others."""

    def counting_draws(self) -> "Loss":
        """Fine-Gray: with case weights that count in the distribution of censoring.

        Where they do not count, the number of times that a row was drawn in a resample still does.
        """

    @property
    def largest_tie(self) -> int:
        """Most rows that one term chooses together: 1, unless ties are exact."""

    @property
    def approximation(self) -> "Loss":
        """A likelihood of about the same curvature that is made of sums over risk sets.

        Itself if it is one. Samples and products of the curvature are made of it.
        """

    @property
    def has_intercept(self) -> bool:
        """Whether an intercept is part of the model, profiled out (`LogisticLoss`)."""

    def intercept_drift(self, now: Evaluation) -> float:
        """How far the derivative in the intercept is from 0, as its iteration left it."""


def rounding_of(value: float, n_events: float, span: float) -> float:
    """How much of a log likelihood or an objective may be rounding, at linear predictors of a span.

    The term of an event is the difference of two numbers up to the span, which may cancel.
    """
    return 64 * float(np.finfo(np.float64).eps) * (abs(value) + n_events * max(1.0, span))


def within_reach(loss: Loss, eta: Rows, span: float) -> Rows:
    """Linear predictors (n,) no further than `span` below the largest of a row that counts.

    Rows that count have a hazard at the time of an event: neither rows of weight 0 nor those that
    leave before the first event, which may have any covariates. These are no further above. Strata
    that are further apart come to one level, which changes no likelihood.
    """
    if np.ptp(eta) <= span:
        return eta
    counts = loss.evaluate(eta).expected > 0.0
    stratum, largest = loss.outcome.stratum, np.full(loss.outcome.n_strata, -np.inf)
    np.maximum.at(largest, stratum[counts], eta[counts])
    level = np.where(np.isfinite(largest), largest, 0.0)[stratum]
    return np.clip(eta - level, -span, 0.0)


def bare(loss: Loss) -> Loss:
    """The same likelihood without offsets, and with weights 0 and 1.

    Which coefficients can be estimated, and which estimates are finite, depends on neither.
    """
    runtime = Runtime(loss.runtime.n_threads)
    loss = loss.shifted(np.zeros(loss.outcome.n_rows), runtime)
    tails = tuple(tail._replace(sets=_of_weight_1(tail.sets)) for tail in loss.tails)
    return loss.restricted(_of_weight_1(loss.risk), tails)


def _of_weight_1(risk: RiskSets) -> RiskSets:
    has_event = (risk.event_weight > 0).astype(np.float64)
    events = np.bincount(risk.group, has_event, risk.group_events.size)
    return risk._replace(
        weight=(risk.weight > 0).astype(np.float64),
        event_weight=has_event,
        group_events=events.astype(np.float64),
    )


def common_offset(loss: Loss) -> Rows | None:
    """The middle of the offsets in the stratum of each row (n,), which changes no estimate.

    A large one would take digits from the linear predictors. None without offsets, or with an
    intercept, which takes it up.
    """
    offset, stratum = loss.offset, loss.outcome.stratum
    if loss.has_intercept or not offset.any():
        return None
    low, high = np.full((2, loss.outcome.n_strata), np.inf) * np.array([[1.0], [-1.0]])
    np.minimum.at(low, stratum, offset)
    np.maximum.at(high, stratum, offset)
    return np.asarray((low + 0.5 * (high - low))[stratum])
