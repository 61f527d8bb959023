"""The Cox partial likelihood of an outcome as a function of the linear predictor."""

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from riskset._runtime import Runtime, one_blas_thread
from riskset._types import Index, Matrix, RiskSets, Rows, Tail
from riskset.data.design import Design
from riskset.data.outcome import Outcome
from riskset.kernels import risk_sets_cpu as kernels
from riskset.kernels import term_means_cpu as term_means
from riskset.kernels.risk_sets_ref import CoxPass
from riskset.kernels.subdistribution_ref import FineGrayPass
from riskset.model.ordered_columns import OrderedColumns
from riskset.model.risk_set_limit import attaining_peaks

__all__ = [
    "CoxLoss",
    "Evaluation",
    "Prepared",
    "NOTHING_PREPARED",
    "OutcomeLikelihood",
    "PartialLikelihood",
    "Ties",
    "in_blocks",
]

Ties = Literal["breslow", "efron", "exact"]

CHUNK_ROWS = 4096
MAX_EVEN_WEIGHT_RATIO = 100.0
"""Weights of events that differ by a smaller factor leave residuals their digits."""
MAX_DENSE_NUMBERS = 1 << 27
"""Largest dense copy of columns, in numbers (1 GB)."""


@dataclass(frozen=True)
class Evaluation:
    """The likelihood at one linear predictor; arrays as in `CoxPass`.

    In Fine and Gray's model, rows stay in the risk sets of the `tails` after a competing event,
    where `expected_tail` counts their expected events. The `intercept` of a logistic regression
    belongs to the linear predictor as given; it is infinite if all rows have the same outcome.
    """

    log_likelihood: float
    residual: Rows
    expected_in_risk_order: Rows
    log_total: NDArray[np.float64]
    log_hazard: NDArray[np.float64]
    risk: RiskSets
    tails: tuple[Tail, ...] = ()
    expected_tail: tuple[Rows, ...] = ()
    intercept: float = 0.0

    @functools.cached_property
    def expected(self) -> Rows:
        """Expected weighted events of each row, in the caller's order."""
        n_rows = self.residual.size
        out = np.zeros(n_rows)
        if self.risk.own.size:  # a row may stand in several places
            out += np.bincount(self.risk.order, self.expected_in_risk_order, n_rows)
        else:
            out[self.risk.order] = self.expected_in_risk_order
        for tail, values in zip(self.tails, self.expected_tail, strict=True):
            out += np.bincount(tail.sets.order, values, n_rows)
        return out


class Prepared(NamedTuple):
    """What an information need not make again.

    The likelihood at the linear predictor, and the columns in the order of the risk sets.
    """

    now: Evaluation | None = None
    ordered: OrderedColumns | None = None


NOTHING_PREPARED = Prepared()


class OutcomeLikelihood:
    """What all likelihoods take from their outcome: see `loss.Loss`."""

    outcome: Outcome

    @property
    def offset(self) -> Rows:
        return self.outcome.offset

    @property
    def n_events(self) -> float:
        return self.outcome.sum_events

    @property
    def largest_tie(self) -> int:
        return 1


class PartialLikelihood(OutcomeLikelihood):
    """What the partial likelihoods have in common: see `loss.Loss`."""

    has_intercept: ClassVar[bool] = False

    @functools.cached_property
    def _has_heavy_rows(self) -> bool:
        """Whether the weights of events differ so much that `_balance_residuals` matters."""
        weight = self.outcome.weight
        if weight.min() == weight.max():
            return False
        weight = weight[self.outcome.is_event & (weight > 0)]
        return bool(weight.size and weight.max() > MAX_EVEN_WEIGHT_RATIO * weight.min())

    def intercept_drift(self, now: Evaluation) -> float:
        return 0.0

    def _evaluation(self, done: CoxPass | FineGrayPass, risk: RiskSets, *tails: Any) -> Evaluation:
        if self._has_heavy_rows:
            _balance_residuals(done.residual, done.expected, risk, self.outcome)
        return Evaluation(*done[:5], risk, *tails)


@dataclass(frozen=True)
class CoxLoss(PartialLikelihood):
    """Log partial likelihood, its gradient and its curvature.

    `limit` are the risk sets to use in place of the outcome's: what is left of them when a
    coefficient has gone to infinity (`solve.separation`).
    """

    outcome: Outcome
    ties: Ties
    runtime: Runtime
    limit: RiskSets | None = None

    @property
    def risk(self) -> RiskSets:
        """The risk sets of this likelihood."""
        return self.outcome.risk if self.limit is None else self.limit

    tails: ClassVar[tuple[Tail, ...]] = ()
    """No row stays in a risk set after its own time."""
    censoring: ClassVar[None] = None

    @property
    def is_limit(self) -> bool:
        return self.limit is not None

    def replicate(
        self,
        weight: Rows,
        censoring: Rows | None = None,
        *,
        carry_on: bool = False,
        runtime: Runtime | None = None,
    ) -> "CoxLoss":
        """The same likelihood with other case weights."""
        return replace(
            self,
            outcome=self.outcome.reweighted(weight),
            runtime=runtime or self.runtime,
            limit=None,
        )

    def restricted(self, risk: RiskSets, tails: tuple[Tail, ...]) -> "CoxLoss":
        """The same likelihood on what is left of the risk sets."""
        return replace(self, limit=risk)

    def in_limit(self, z: Rows, slack: Rows) -> "CoxLoss":
        return self.restricted(*attaining_peaks(self.risk, self.tails, z, slack))

    @property
    def approximation(self) -> "CoxLoss":
        """A likelihood of about the same curvature that is made of sums over risk sets."""
        return self

    def as_partial(self) -> "CoxLoss":
        """A partial likelihood with the same directions of recession."""
        return self

    def counting_draws(self) -> "CoxLoss":
        return self

    def shifted(self, offset: Rows, runtime: Runtime) -> "CoxLoss":
        """The same likelihood with another offset, run elsewhere."""
        return replace(self, outcome=self.outcome.shifted(offset), runtime=runtime)

    def of_rows(self, rows: Index) -> "CoxLoss":
        """The same likelihood of some rows, in the given order."""
        return replace(self, outcome=self.outcome.of_rows(rows), limit=None)

    def in_risk_order(self) -> "CoxLoss":
        """The same likelihood, on all risk sets, of the rows in their order."""
        return replace(self, outcome=self.outcome.in_risk_order(), limit=None)

    @property
    def whole(self) -> "CoxLoss":
        """The same likelihood on all risk sets."""
        return self if self.limit is None else replace(self, limit=None)

    @property
    def efron(self) -> bool:
        """Whether ties are treated by Efron's method."""
        return self.ties == "efron"

    def evaluate(self, eta: Rows) -> Evaluation:
        """Likelihood and residuals at `eta`, offset included, in the caller's order."""
        done = kernels.cox_pass(eta, self.risk, self.efron, self.runtime)
        return self._evaluation(done, self.risk)

    @one_blas_thread
    def information(
        self, design: Design, eta: Rows, columns: Index, prepared: Prepared = NOTHING_PREPARED
    ) -> Matrix:
        r"""Observed information of some columns (q, q), exact, in stored units.

        .. math:: I = \sum_t w_t \sum_{i \in R_t} p_{ti} (z_i - \bar z_t)(z_i - \bar z_t)'

        with one term t for each event group (Breslow) or event (Efron), :math:`p_{ti}` the share of
        row i in its risk set and :math:`\bar z_t` the mean of that. What is `prepared` is not
        made again.

        Notes
        -----
        O((n + terms) q^2). More than `MAX_DENSE_NUMBERS` numbers at once are never made dense:
        columns are then taken by pairs of blocks.

        Without late entry it is a sum of squares and has all digits, even where a few rows outweigh
        all others (`term_means_ref.deviations_nested`). With late entry it is the difference
        :math:`Z' \mathrm{diag}(h) Z - \sum_t w_t \bar z_t \bar z_t'`, h the expected events.
        """
        now = prepared.now or self.evaluate(eta)
        ordered = prepared.ordered or OrderedColumns(design, self.outcome, self.risk)

        def information(block: Index) -> Matrix:
            z, expected = ordered.of(block), now.expected_in_risk_order
            if self.risk.own.size:
                return term_means.information_at_risk(eta, expected, z, self.risk, self.efron)
            return self._information_nested(z, eta, now)

        return in_blocks(design.n_rows, columns, information)

    def _information_nested(self, z: Matrix, eta: Rows, now: Evaluation) -> Matrix:
        """Without late entry, from columns in the order of the risk sets."""
        risk, q = self.risk, z.shape[1]
        if q <= term_means.MAX_REGISTER_COLUMNS:
            expected = now.expected_in_risk_order
            return term_means.information_nested(eta, expected, z, risk, self.efron, self.runtime)
        with np.errstate(divide="ignore"):
            log_r = np.log(risk.weight) + eta[risk.order]
        out: Matrix | None = None
        state, peak_total = np.zeros(q), np.array([-np.inf, 0.0])
        for first, last in self._group_chunks:
            a, b = int(risk.group_ptr[first]), int(risk.group_ptr[last])
            x = np.empty((b - a, q))
            term_means.deviations_nested(
                log_r, now.expected_in_risk_order, z[a:b], a, risk, self.efron, first, last, state,
                peak_total, x,
            )  # fmt: skip
            if out is None:
                out = x.T @ x
            else:
                out += x.T @ x
        return np.zeros((q, q)) if out is None else out

    @functools.cached_property
    def _group_chunks(self) -> list[tuple[int, int]]:
        ptr = self.risk.group_ptr
        cuts = np.searchsorted(ptr, np.arange(0, ptr[-1], CHUNK_ROWS))
        edges = np.unique(np.append(cuts, ptr.size - 1))
        return list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))


def _balance_residuals(residual: Rows, expected: Rows, risk: RiskSets, outcome: Outcome) -> None:
    """Let the residuals of each stratum sum to 0, as they do but for rounding, in place.

    A row with an event that outweighs its risk set has a residual that is the difference of two
    nearly equal numbers; the sum of the others says it with more digits.
    """
    rounded = np.minimum(expected, risk.event_weight)  # in risk order
    if not rounded.any():
        return
    if outcome.n_strata == 1:
        residual[risk.order[rounded.argmax()]] -= residual.sum()
        return
    stratum = outcome.stratum[risk.order]
    most = np.zeros(outcome.n_strata)
    np.maximum.at(most, stratum, rounded)
    at = np.flatnonzero((rounded == most[stratum]) & (rounded > 0))
    chosen = np.zeros(outcome.n_strata, dtype=np.int64)
    chosen[stratum[at]] = risk.order[at]
    sums = np.bincount(outcome.stratum, residual, outcome.n_strata)
    has_any = most > 0
    residual[chosen[has_any]] -= sums[has_any]


def in_blocks(n_rows: int, columns: Index, information: Callable[[Index], Matrix]) -> Matrix:
    """An information matrix by pairs of blocks of columns, if all at once would be too large."""
    q = columns.size
    if n_rows * q <= MAX_DENSE_NUMBERS or q <= 2:
        return information(columns)
    half = max(1, min(q // 2, MAX_DENSE_NUMBERS // (2 * n_rows)))
    blocks = [np.arange(a, min(a + half, q)) for a in range(0, q, half)]
    out = np.empty((q, q))
    for b, rows in enumerate(blocks):
        for other in blocks[: b + 1]:
            both = np.unique(np.concatenate([rows, other]))
            out[np.ix_(both, both)] = information(columns[both])
    return out
