"""Residuals of a fit, one per row or per event, in the caller's row order.

All are functions of the loss, which knows outcome and ties, and of the linear predictor (offset
included); none asks how the coefficients were found. Residuals are per row and *not* multiplied by
the case weight, as R's `survival` gives them. A row of weight 0 is absent: it gets the martingale
residual that the fitted hazard implies, the score residual 0, and no Schoenfeld residual.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from riskset._runtime import one_blas_thread
from riskset._types import Index, Matrix, Rows
from riskset.data.design import Design
from riskset.infer.subdistribution import SubdistributionPieces
from riskset.kernels import means_cpu as kernels
from riskset.kernels.means_ref import TieTerms
from riskset.model.loss import Loss

__all__ = [
    "RiskSetPieces",
    "SchoenfeldResiduals",
    "collapsed_deviance_residuals",
    "column_blocks",
    "deviance_residuals",
    "martingale_residuals",
    "pieces_at",
    "schoenfeld_residuals",
    "score_contributions",
    "score_residuals",
]

BLOCK_NUMBERS = 1 << 24
"""Numbers in a dense block of columns (128 MB)."""

MAX_BLOCK = 32
"""Columns in such a block."""


def column_blocks(n_rows: int, columns: Index) -> Iterator[slice]:
    """Slices of `columns` whose dense copy stays small."""
    width = max(1, min(MAX_BLOCK, BLOCK_NUMBERS // max(1, n_rows)))
    for a in range(0, columns.size, width):
        yield slice(a, min(a + width, columns.size))


@dataclass(frozen=True, eq=False)
class RiskSetPieces:
    """What every residual needs and no covariate changes, at one linear predictor.

    All in risk order: `eta` (n,), the log of the cumulative hazard at eta = 0 over each row's
    follow-up (n,), and the `group` of each row (n,); `ties` has hazard increments and shares of
    each group.
    """

    loss: Loss
    eta: Rows
    ties: TieTerms
    log_cumulative: Rows
    group: Index

    @classmethod
    def at(cls, loss: Loss, eta: Rows) -> "RiskSetPieces":
        """Pieces at `eta`, in the caller's order, offset included."""
        risk = loss.risk
        eta = np.ascontiguousarray(eta, dtype=np.float64)[risk.order]
        sizes = kernels.risk_set_means(np.zeros((eta.size, 0)), eta, risk)
        ties = kernels.tie_terms(
            sizes.log_rest, sizes.log_tied, risk.group_events, risk.group_tied, loss.efron
        )
        none = np.zeros((risk.group_events.size, 0))
        log_cumulative, _ = kernels.follow_up_means(
            none, none, ties.log_hazard, ties.log_hazard_tied, risk
        )
        group = risk.group
        return cls(loss, eta, ties, log_cumulative, group)

    @property
    def log_expected(self) -> Rows:
        """Log of the expected events of one such person, in risk order; -inf for none."""
        return self.eta + self.log_cumulative

    @property
    def is_event(self) -> NDArray[np.bool_]:
        """Rows with an event and positive weight, in risk order."""
        return self.loss.risk.event_weight > 0

    def means(self, values: Matrix) -> tuple[Matrix, Matrix]:
        """Risk-set means of the rest, and tied rows' mean minus it, (G, q) each.

        `values` (n, q) stand in risk order and in C order.
        """
        sizes = kernels.risk_set_means(values, self.eta, self.loss.risk)
        return sizes.mean_rest, sizes.mean_tied - sizes.mean_rest

    def caller(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sums by row, in the caller's order, of values in risk order.

        In the limit of an infinite estimate a row stands at several places, or at none.
        """
        out = np.zeros((self.loss.outcome.n_rows, *values.shape[1:]))
        if not self.loss.is_limit:
            out[self.loss.risk.order] = values
        else:
            np.add.at(out, self.loss.risk.order, values)
        return out

    def contributions(self, values: Matrix) -> Matrix:
        """Each row's influence on the score of any columns: `score_residuals` times its weight."""
        out = self.score_residuals(values)
        out *= self.loss.outcome.weight[:, None]
        return out

    def event_means(self, values: Matrix) -> tuple[Matrix, Matrix]:
        """Mean over risk sets as the events of each group meet it, and tied rows' minus the rest's.

        `values` (n, q) stand in the caller's order; both are (G, q).
        """
        rest, gap = self.means(np.ascontiguousarray(values[self.loss.risk.order]))
        return rest + self.ties.share_event[:, None] * gap, gap

    def hazard_means(self, values: Matrix) -> Matrix:
        """Mean over risk sets (G, q), over the steps of a tied group weighted by their hazards."""
        rest, gap = self.means(np.ascontiguousarray(values[self.loss.risk.order]))
        return rest + self.ties.share[:, None] * gap

    @property
    def spread(self) -> NDArray[np.float64]:
        """Variance of the share of tied rows over the steps of each group (G,)."""
        return np.maximum(self.ties.square_event - self.ties.share_event**2, 0.0)

    def expected_times(self, powers: Matrix, of_tied: Matrix | None = None) -> Matrix:
        """Expected weighted events of rows, each group counted `powers` (G, k) times: (n, k).

        Rows with an event count their own group `of_tied` (G, k) times, if given.
        """
        risk, ties = self.loss.risk, self.ties
        of_tied = powers if of_tied is None else of_tied
        log_cumulative, average = kernels.follow_up_means(
            powers, of_tied, ties.log_hazard, ties.log_hazard_tied, risk
        )
        log_expected = np.where(risk.weight > 0, self.eta + log_cumulative, -np.inf)
        return self.caller((risk.weight * np.exp(log_expected))[:, None] * average)

    @property
    def _per_event(self) -> NDArray[np.float64]:
        """Steps of each group by its weight of events (G,), 0 without events."""
        risk = self.loss.risk
        steps = risk.group_tied if self.loss.efron else np.ones(risk.group_tied.size)
        has_events = risk.group_events > 0
        return np.divide(steps, risk.group_events, out=np.zeros(steps.size), where=has_events)

    @property
    def hazard_variance(self) -> NDArray[np.float64]:
        """Variance of the log of each group's hazard at known coefficients (G,).

        With weights that count equal rows: 1 / N_g by Breslow's method.
        """
        return self._per_event * self.ties.square_hazard

    def hazard_influence(self, weights: Matrix) -> Matrix:
        r"""Influence (n, k) of rows on sums of log hazards, each group counted `weights` (G, k).

        .. math:: w_i \sum_g weights_g \frac{\partial \log h_g}{\partial w_i}
            = w_i \int \frac{weights(t)}{N(t)} \, dM_i(t)

        at known coefficients (Breslow), with M the martingale of the row and N(t) the weight of the
        events at t. By Efron's method, an event of m has a step of its own, in which tied rows
        count as in the fit.
        """
        risk, ties = self.loss.risk, self.ties
        per_event = self._per_event[:, None] * weights
        out = self.expected_times(
            per_event * ties.square_hazard[:, None], per_event * ties.square_hazard_tied[:, None]
        )
        np.negative(out, out=out)
        at = np.flatnonzero(self.is_event)
        g = self.group[at]
        share = risk.event_weight[at] / risk.group_events[g]
        np.add.at(out, risk.order[at], share[:, None] * weights[g])
        return out

    def log_expected_rows(self) -> Rows:
        """Log of the expected events of one such person (n,), in the caller's order."""
        if not self.loss.is_limit:
            return self.caller(self.log_expected)
        with np.errstate(divide="ignore"):
            return np.log(self.caller(np.exp(self.log_expected)))

    @one_blas_thread
    def score_residuals(self, values: Matrix, power: Rows | None = None) -> Matrix:
        r"""Score residuals (n, q) of any columns: each row's contribution to their score.

        .. math:: U_i = d_i (x_i - \bar x(t_i)) - \int (x_i - \bar x(t)) \, e^{\eta_i} d\Lambda(t)
                  = d_i (x_i - \bar x(t_i)) - e_i (x_i - A_i)

        with :math:`e_i` the expected events and :math:`A_i` the average of :math:`\bar x(t)` over
        the row's follow-up, weighted by the hazard. Multiplied by the case weights they sum to the
        score. `values` (n, q) are in the caller's order. With `power` (G,) it is :math:`\int g(t)
        (x_i - \bar x(t)) \, dM_i(t)`, g of each group. Ties by Efron: the event term uses the plain
        mean of the steps' means, and a tied row meets the step k of its own time with the share 1 -
        k/m. O(n q) time, or O((n + G log G) q) with late entry, and O(n q) memory.
        """
        risk, ties = self.loss.risk, self.ties
        x = np.ascontiguousarray(values[risk.order])
        rest, gap = self.means(x)
        if self.loss.efron:
            shares = (ties.share, ties.share_tied, ties.share_event)
            first, tied, of_event = (rest + share[:, None] * gap for share in shares)
        else:  # the tied rows are at risk like all others
            gap *= ties.share[:, None]
            gap += rest
            first = tied = of_event = gap
        met = [first, tied]
        if power is not None:
            met = [np.column_stack([power, power[:, None] * means]) for means in met]
        log_cumulative, average = kernels.follow_up_means(
            met[0], met[1], ties.log_hazard, ties.log_hazard_tied, risk
        )
        at = np.flatnonzero(self.is_event)
        g = self.group[at]
        observed = x[at]
        observed -= of_event[g]
        if power is not None:
            observed *= power[g, None]
            x, average = x * average[:, :1], average[:, 1:]
        log_expected = np.where(risk.weight > 0, self.eta + log_cumulative, -np.inf)
        out = np.subtract(average, x, out=x)
        out *= np.exp(log_expected)[:, None]
        out[at] += observed
        out[risk.weight == 0] = 0.0
        return self.caller(out)


def pieces_at(loss: Loss, eta: Rows) -> RiskSetPieces | SubdistributionPieces:
    """The pieces of either model at `eta`, in the caller's order, offset included."""
    if loss.censoring is not None:
        return SubdistributionPieces.at(loss, eta)
    return RiskSetPieces.at(loss, eta)


def martingale_residuals(loss: Loss, eta: Rows) -> Rows:
    r"""Observed minus expected events of each row (n,).

    .. math:: M_i = d_i - e^{\eta_i} \int_{entry_i}^{time_i} d\Lambda(t)

    and in Fine and Gray's model :math:`d_i - e^{\eta_i} \int w_i(t) \, d\Lambda(t)` over all time.
    Multiplied by the case weights they sum to 0.

    References
    ----------
    Therneau, Grambsch and Fleming (1990), Biometrika 77, 147-160, doi:10.1093/biomet/77.1.147.
    """
    with np.errstate(over="ignore"):  # a row of weight 0 may have any hazard
        return loss.outcome.is_event - np.exp(pieces_at(loss, eta).log_expected_rows())


def deviance_residuals(loss: Loss, eta: Rows) -> Rows:
    r"""Martingale residuals made nearly symmetric.

    .. math:: \mathrm{sign}(M_i) \sqrt{-2 \, [M_i + d_i \log(d_i - M_i)]}
    """
    log_expected = pieces_at(loss, eta).log_expected_rows()
    is_event = loss.outcome.is_event
    with np.errstate(over="ignore"):  # a row of weight 0 may have any hazard
        residual: Rows = is_event - np.exp(log_expected)
    with np.errstate(invalid="ignore"):
        # M + log(1 - M) loses all digits near M = 0 unless log1p sees M itself; near M = 1 the log
        # of the expected number 1 - M is at hand, even where the number underflows.
        near = np.abs(residual) < 0.5
        log_left = np.where(near, np.log1p(-np.where(near, residual, 0.0)), log_expected)
        of_event = residual + log_left
    deviance = -2.0 * np.where(is_event, of_event, residual)
    return np.asarray(np.sign(residual) * np.sqrt(np.maximum(deviance, 0.0)))


def collapsed_deviance_residuals(loss: Loss, eta: Rows, cluster: Index) -> Rows:
    r"""Deviance residuals of clusters of rows, from their events d and expected events E.

    .. math:: \mathrm{sign}(d - E) \sqrt{2 \, [d \log(d / E) - (d - E)]}

    which for one event is that of a row.
    """
    with np.errstate(over="ignore"):
        expected = np.exp(pieces_at(loss, eta).log_expected_rows())
    counts = (loss.outcome.is_event.astype(np.float64), expected)
    events, expected = (np.bincount(cluster, count) for count in counts)
    excess = events - expected
    half = xlogy(events, events) - xlogy(events, expected) - excess
    return np.asarray(np.sign(excess) * np.sqrt(np.maximum(2.0 * half, 0.0)))


def score_residuals(loss: Loss, design: Design, eta: Rows) -> Matrix:
    """Score residuals (n, p) per unit of each covariate; see `RiskSetPieces.score_residuals`."""
    return _in_blocks(pieces_at(loss, eta).score_residuals, design)


def score_contributions(loss: Loss, design: Design, eta: Rows) -> Matrix:
    """What each row contributes to the score, its case weight included; see `score_residuals`.

    In Fine and Gray's model also through the estimate of the censoring distribution.
    """
    return _in_blocks(pieces_at(loss, eta).contributions, design)


def _in_blocks(of: Callable[[Matrix], Matrix], design: Design) -> Matrix:
    columns = np.arange(design.n_features)
    out = np.empty((design.n_rows, columns.size))
    for block in column_blocks(design.n_rows, columns):
        out[:, block] = of(design.stored(columns[block])) * design.scale[columns[block]]
    return out


@dataclass(frozen=True, eq=False)
class SchoenfeldResiduals:
    """One residual per event and covariate, by stratum, then time, then the caller's row.

    Attributes
    ----------
    row : (m,) int64
        The caller's row with the event.
    time : (m,) float64
    stratum : (m,) int64
        Codes of `Outcome.stratum`.
    values : (m, q) float64
        Covariate minus its risk-set mean, in the user's units.
    """

    row: Index
    time: NDArray[np.float64]
    stratum: Index
    values: Matrix


@one_blas_thread
def schoenfeld_residuals(loss: Loss, design: Design, eta: Rows) -> SchoenfeldResiduals:
    r"""Covariates of each event minus their risk-weighted mean over its risk set.

    .. math:: x_i - \bar x(t_i)

    Tied events share one mean (Efron: the mean of the steps' means), so a residual belongs to its
    row whatever the order of rows. Multiplied by the case weights the values sum to the score.

    References
    ----------
    Schoenfeld (1982), Biometrika 69, 239-241, doi:10.1093/biomet/69.1.239.
    """
    outcome = loss.outcome
    columns = np.arange(design.n_features)
    pieces, risk = pieces_at(loss, eta), loss.risk
    rows = np.flatnonzero(outcome.is_event & (outcome.weight > 0))
    rows = rows[np.lexsort((rows, outcome.time[rows], outcome.stratum[rows]))]
    at = np.flatnonzero(risk.event_weight > 0)
    group = np.empty(outcome.n_rows, dtype=np.int64)
    group[risk.order[at]] = np.searchsorted(risk.group_ptr, at, side="right") - 1
    g = group[rows]
    values = np.empty((rows.size, columns.size))
    for block in column_blocks(design.n_rows, columns):
        stored = design.stored(columns[block])
        mean, _ = pieces.event_means(stored)
        values[:, block] = (stored[rows] - mean[g]) * design.scale[columns[block]]
    return SchoenfeldResiduals(rows, outcome.time[rows], outcome.stratum[rows], values)
