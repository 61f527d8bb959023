"""The likelihood of a logistic regression as a function of the linear predictor.

The intercept is profiled (`kernels.logistic_ref`), so that the likelihood has the form of a partial
likelihood: a constant added to the linear predictor changes nothing, columns need no centring, the
curvature is a covariance, and all of the solver applies as it is.
"""

import functools
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from riskset._runtime import Runtime, one_blas_thread
from riskset._types import Index, Matrix, RiskSets, Rows, Tail
from riskset.data.design import Design
from riskset.data.outcome import Outcome
from riskset.kernels import logistic_cpu as kernels
from riskset.model.cox import (
    NOTHING_PREPARED,
    CoxLoss,
    Evaluation,
    OutcomeLikelihood,
    Prepared,
    in_blocks,
)

__all__ = ["LogisticEvaluation", "LogisticLoss"]


@dataclass(frozen=True)
class LogisticEvaluation(Evaluation):
    """The likelihood at one linear predictor.

    `expected` is what a row weighs in the curvature, as for a partial likelihood: here the variance
    of its outcome, w p (1 - p). The rows are one risk set, in their own order.
    """

    @property
    def expected(self) -> Rows:
        """What each row weighs in the curvature."""
        return self.expected_in_risk_order


@dataclass(frozen=True)
class LogisticLoss(OutcomeLikelihood):
    r"""Log likelihood of a logistic regression, its gradient and its curvature.

    .. math:: \ell(\eta) = \max_b \sum_i w_i \bigl(y_i (\eta_i + b) - \log(1 + e^{\eta_i + b})\bigr)

    The events of the outcome are the y; it has one time and one stratum (`of`). `origin` is what
    this is the limit of, without the rows whose probability became 0 or 1.
    """

    outcome: Outcome
    runtime: Runtime
    origin: "LogisticLoss | None" = None

    tails: ClassVar[tuple[Tail, ...]] = ()
    efron: ClassVar[bool] = False
    censoring: ClassVar[None] = None
    has_intercept: ClassVar[bool] = True

    @property
    def is_limit(self) -> bool:
        return self.origin is not None

    @classmethod
    def of(
        cls,
        event: NDArray[np.bool_],
        runtime: Runtime,
        *,
        weight: Rows | None = None,
        offset: Rows | None = None,
    ) -> "LogisticLoss":
        """From events, one of which at least is true, case weights and an offset (n,)."""
        time = np.zeros(event.size)
        return cls(Outcome.build(time, event, weight=weight, offset=offset), runtime)

    @property
    def risk(self) -> RiskSets:
        """All rows, as one group."""
        return self.outcome.risk

    @functools.cached_property
    def sign(self) -> Rows:
        """1 for an event, -1 for none (n,)."""
        return np.where(self.outcome.is_event, 1.0, -1.0)

    def of_rows(self, rows: Index) -> "LogisticLoss":
        """The same likelihood of some rows, in the given order."""
        return replace(self, outcome=self.outcome.of_rows(rows), origin=None)

    def in_risk_order(self) -> "LogisticLoss":
        """All rows are one risk set, in any order."""
        return replace(self, outcome=self.outcome.in_risk_order(), origin=None)

    @property
    def whole(self) -> "LogisticLoss":
        """The same likelihood on all rows."""
        return self if self.origin is None else self.origin

    def replicate(
        self,
        weight: Rows,
        censoring: Rows | None = None,
        *,
        carry_on: bool = False,
        runtime: Runtime | None = None,
    ) -> "LogisticLoss":
        """The same likelihood with other case weights."""
        outcome = self.outcome.reweighted(weight)
        return replace(self, outcome=outcome, runtime=runtime or self.runtime, origin=None)

    def restricted(self, risk: RiskSets, tails: tuple[Tail, ...]) -> "LogisticLoss":
        """The same likelihood on some of the rows, with the weights that they have there."""
        weight = np.zeros(self.outcome.n_rows)
        weight[risk.order] = risk.weight
        return replace(self, outcome=self.outcome.reweighted(weight), origin=self.whole)

    def shifted(self, offset: Rows, runtime: Runtime) -> "LogisticLoss":
        """The same likelihood with another offset, run elsewhere."""
        return replace(self, outcome=self.outcome.shifted(offset), runtime=runtime)

    def evaluate(self, eta: Rows) -> LogisticEvaluation:
        """Likelihood and residuals at `eta`, offset included."""
        done = kernels.logistic_pass(eta, self.sign, self.outcome.weight, self.runtime)
        one = np.zeros(self.risk.group_events.size)
        return LogisticEvaluation(
            done.log_likelihood,
            done.residual,
            done.variance,
            one,
            one,
            self.risk,
            intercept=done.intercept,
        )

    @one_blas_thread
    def information(
        self, design: Design, eta: Rows, columns: Index, prepared: Prepared = NOTHING_PREPARED
    ) -> Matrix:
        r"""Observed information of some columns (q, q), exact, in stored units.

        .. math:: I = \sum_i v_i (z_i - \bar z)(z_i - \bar z)', \qquad v_i = w_i p_i (1 - p_i)

        with :math:`\bar z` the mean of the rows with weights v: what the intercept leaves.
        """
        v = (prepared.now or self.evaluate(eta)).expected
        total = max(float(v.sum()), 1e-300)

        def dense(some: Index) -> Matrix:
            z = design.stored(some)
            z -= (v @ z) / total
            z *= np.sqrt(v)[:, None]
            return np.asarray(z.T @ z)

        return in_blocks(design.n_rows, columns, dense)

    @property
    def approximation(self) -> "LogisticLoss":
        return self

    def counting_draws(self) -> "LogisticLoss":
        return self

    def intercept_drift(self, now: Evaluation) -> float:
        """See `Loss.intercept_drift`: the intercept is as good as its own iteration left it."""
        return abs(float(now.residual.sum()))

    def as_partial(self) -> CoxLoss:
        """A partial likelihood with the same directions of recession.

        The likelihood never falls along d if for some c every event has x'd >= c and every other
        row x'd <= c: each event has the largest x'd of a risk set of itself and all the others.
        """
        outcome = self.outcome
        is_event = outcome.is_event & (outcome.weight > 0)
        time = np.full(outcome.n_rows, np.count_nonzero(is_event) + 1.0)
        time[is_event] = np.arange(1.0, np.count_nonzero(is_event) + 1.0)
        entry = np.where(is_event, time - 1.0, 0.0)
        pairs = Outcome.build(time, is_event, entry=entry, weight=outcome.weight)
        return CoxLoss(pairs, "breslow", self.runtime)

    def in_limit(self, z: Rows, slack: Rows) -> "LogisticLoss":
        """What is left of the likelihood as coefficients go to infinity along a direction.

        Rows above the border between events and others get probability 1, those below it 0, and
        both drop out.
        """
        outcome, used = self.outcome, self.outcome.weight > 0
        lowest = int(np.where(used & outcome.is_event, z, np.inf).argmin())
        highest = int(np.where(used & ~outcome.is_event, z, -np.inf).argmax())
        meet = z[lowest] - z[highest] <= slack[lowest] + slack[highest]
        stays = used & meet & (np.abs(z - z[highest]) <= slack + slack[highest])
        left = outcome.reweighted(np.where(stays, outcome.weight, 0.0))
        return replace(self, outcome=left, origin=self.whole)
