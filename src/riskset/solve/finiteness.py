r"""A proof that no estimate is infinite, at any point: the Newton step of free columns is short.

Let d be a direction of recession of the columns without a penalty. For term t of the likelihood let
M_t be the maximum of x'd over the risk set, which its event attains, and E_t and Cov_t those of the
distribution of who fails. With g the gradient, I the information and any s let r = g - I s. Then

.. math::
    D = g'd = \sum_t w_t (M_t - E_t x'd), \qquad
    s'Id = \sum_t w_t \mathrm{Cov}_t(x's, x'd) \le \mathrm{range}(x's) D, \qquad
    d'Id \le \mathrm{range}(x'd) D,

because :math:`|\mathrm{Cov}(u, z)| \le \tfrac12 \mathrm{range}(u) E|z - Ez|
\le \mathrm{range}(u) (\max z - Ez)`. Let R be the largest range of x'v over all v with v'Iv = 1.
If D > 0, then dividing :math:`(1 - \mathrm{range}(x's)) D \le r'd` by D gives

.. math:: 1 \le \mathrm{range}(x's) + R \lVert r \rVert_{I^{-1}}.

Where the right side is less than 1 there is no d, whatever the linear predictor at which g and I
were computed, and s may be any vector: a Newton step that was solved for inexactly, with r what is
left; or 0, with r what is left of g after subtracting a combination of ``x_event - x_rival`` with
weights that are not negative, as a linear programme finds (its dual). The proof of Bach (2010) and
of Sun and Tran-Dinh (2019) that a minimum exists nearby asks for as much, up to a constant.

Where ties are exact, a term chooses a set of m rows, its numbers are sums over the set, and ranges
are up to m times those of the rows.

Rounding is part of r. Every sum is one of products whose sizes are known, and the numbers of a
column are no larger than its `reach`, so with
:math:`\gamma = 4 u (n + c)` an error is at most :math:`\gamma` times the sum of the sizes.

References
----------
Bach (2010), Electronic Journal of Statistics 4, 384-414, doi:10.1214/09-EJS521; Sun & Tran-Dinh
(2019), Mathematical Programming 178, 145-213, doi:10.1007/s10107-018-1282-4.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from riskset._types import Features, Index, Matrix, RiskSets, Rows
from riskset.data.design import Design
from riskset.model.cox import MAX_DENSE_NUMBERS
from riskset.model.loss import Loss
from riskset.model.ordered_columns import centred_within_strata, rows_at_risk

__all__ = [
    "MAX_PROOF_SPAN",
    "EXTRA_OPERATIONS",
    "EPSILON",
    "ScoreAndInformation",
    "ProofFrame",
    "FreeColumns",
    "RoundingBounds",
    "extents",
]

MAX_PROOF_SPAN = 0.5
"""A step that spans less, rounding included, is a proof; 1 would do."""
MIN_INFORMATION_SHARE = 1e-4
"""Least information of a column, as a share of the largest it can have, square root of both."""
MIN_EIGENVALUE = 1e-6
MIN_EIGENVALUE_AS_GIVEN = 1e-2
"""Columns whose correlations leave a smaller eigenvalue are replaced by combinations of them."""
EPSILON = float(np.finfo(np.float64).eps)
EXTRA_OPERATIONS = 4096
"""Operations on a number besides those for each row. An exponential counts for its argument, less
than 1,000 in size: what is smaller yet counts for nothing."""
MIN_INFORMATION = 1e-100
"""Information, square root, that is no more than underflow."""
NEGLIGIBLE_EVENT_SHARE = 1e-14
"""A row that is expected to have a smaller share of the events says nothing and is left out. An
estimate that is finite on some of the rows is finite on all."""


class RoundingBounds(NamedTuple):
    """How far gradients and information of some columns may be off.

    `unit` is the error of a sum as a share of the sum of the sizes of its terms. No number of a
    column, and none that it was summed from, is larger than its `reach` (q,). `is_difference`: the
    information was computed as a difference of second moments. `drift` is the sum of the residuals,
    which is 0 where the intercept of a logistic regression is exact.
    """

    unit: float
    reach: Features
    n_events: float
    is_difference: bool
    drift: float = 0.0

    @classmethod
    def of(cls, loss: Loss, reach: Features, drift: float = 0.0) -> "RoundingBounds":
        """Of a likelihood."""
        unit = 4 * EPSILON * (loss.outcome.n_rows + EXTRA_OPERATIONS)
        n_events, is_difference = float(loss.risk.event_weight.sum()), bool(loss.tails)
        if loss.approximation is not loss:
            # Each row, once for each unit of its weight, takes part in a few recursions.
            n_counted = float(loss.risk.weight.sum()) + loss.largest_tie
            unit, is_difference = 32 * EPSILON * (n_counted + EXTRA_OPERATIONS), True
        return cls(unit, reach, n_events, bool(is_difference or loss.risk.own.size), drift)


class ScoreAndInformation(NamedTuple):
    """Gradient (q,) and information (q, q) of some ascending columns at any one linear predictor.

    Both are in stored units. The information is exact but for rounding: not a sample, nor corrected
    by secant pairs. `drift`: see `RoundingBounds`.
    """

    columns: Index
    information: Matrix
    gradient: Features
    drift: float


@dataclass(frozen=True)
class FreeColumns:
    """Columns without a penalty and their information at some point.

    `size` (q,) is the square root of the information of each column alone, in stored units;
    eigenvalues (q,) and vectors (q, q) are of the information in units of `size`.
    """

    design: Design
    columns: Index
    size: Features
    eigenvalues: Features
    vectors: Matrix

    @classmethod
    def at(cls, design: Design, loss: Loss, eta: Rows, columns: Index) -> "FreeColumns":
        """At the linear predictor `eta`, offset included."""
        return cls.of(design, columns, loss.information(design, eta, columns))

    @classmethod
    def of(cls, design: Design, columns: Index, information: Matrix) -> "FreeColumns":
        """From their information (q, q)."""
        size = np.sqrt(np.maximum(np.diag(information), 1e-300))
        found = sla.eigh(information / np.outer(size, size), check_finite=False)
        return cls(design, columns, size, *found)

    def are_estimable(self, spread: Features, n_events: float) -> bool:
        """Whether all carry information, none repeats others, and the numbers have digits.

        `spread` (q,) is the unit of each column.
        """
        has_some = self.size >= MIN_INFORMATION_SHARE * spread * np.sqrt(n_events)
        return bool(has_some.all() and self.eigenvalues[0] > MIN_EIGENVALUE)

    def step(self, gradient: Features) -> Features:
        """Newton step (q,) from the gradient of the log likelihood in stored units."""
        along = self.vectors.T @ (gradient / self.size) / self.eigenvalues
        return np.asarray(self.vectors @ along / self.size)

    def image(self, step: Features) -> Features:
        """Information times a step (q,)."""
        along = self.vectors.T @ (self.size * step) * self.eigenvalues
        return np.asarray(self.size * (self.vectors @ along))

    def span(self, step: Features, loss: Loss) -> float:
        """What a step adds to the linear predictors of a stratum ranges over this much at most."""
        return widest(loss, self.design.product(step, self.columns, runtime=loss.runtime))

    def bound(
        self,
        step: Features,
        rest: Features,
        span: float,
        ranges: Features,
        rounding: RoundingBounds,
    ) -> float:
        r"""The bound on :math:`\mathrm{range}(x's) + R \lVert r \rVert_{I^{-1}}`.

        `step` (q,) is s in stored units, `rest` (q,) is ``|g - I s|`` as computed, `span` the range
        of x's, and `ranges` (q,) those of the columns.
        """
        if not (ranges > 0).all():  # no row that is at risk differs: whatever there is, is rounding
            return np.inf
        # Sizes of the terms of gradient and information, in units of `size`: residuals sum to at
        # most 2 n_events in size, and no number of a column is larger than `reach`.
        share = np.sqrt(2 * rounding.n_events) * rounding.reach / self.size
        error = rounding.unit * np.add.outer(share, share)
        if rounding.is_difference:
            error += 2 * rounding.unit * np.outer(share, share)
        error += 16 * share.size * EPSILON
        # Weyl: rounding moves no eigenvalue by more than the norm of the error.
        least = float(self.eigenvalues[0]) - float(np.linalg.norm(error))
        if not least > 0:  # or not a number
            return np.inf
        r = rest / self.size + rounding.unit * np.sqrt(2 * rounding.n_events) * share
        r += error @ np.abs(step * self.size) + ranges / self.size * rounding.drift
        reach = float(np.linalg.norm(ranges / self.size)) / np.sqrt(least)
        return float(span + reach * (np.linalg.norm(r) / np.sqrt(least) + reach * rounding.drift))

    def most(self, gradient: Features, ranges: Features, rounding: RoundingBounds) -> float:
        """The bound for s = 0, from bounds on the gradient."""
        return self.bound(np.zeros(ranges.size), gradient, 0.0, ranges, rounding)


@dataclass(frozen=True)
class ProofFrame:
    """Well-conditioned coordinates of the free columns, some of which may be nearly collinear.

    Columns of the frame are those of the design in stored units times `transform` (q, q);
    `is_plain`: they are those of the design themselves. `gradient` (q,) is that of the log
    likelihood along them. `ranges` and `rounding`: see `FreeColumns.bound`.
    """

    loss: Loss
    transform: Matrix
    is_plain: bool
    free: FreeColumns
    ranges: Features
    rounding: RoundingBounds
    gradient: Features

    @classmethod
    def where_known(
        cls, design: Design, loss: Loss, known: ScoreAndInformation, columns: Index
    ) -> "ProofFrame | None":
        """Where gradient and information are known already: without a pass over pairs of columns.

        None if they are not known for all columns.
        """
        at = np.searchsorted(known.columns, columns)
        if at.max(initial=0) >= known.columns.size or (known.columns[at] != columns).any():
            return None
        free = FreeColumns.of(design, columns, known.information[np.ix_(at, at)])
        ranges, sizes = extents(design, loss, columns)
        rounding = RoundingBounds.of(loss, np.maximum(ranges, sizes), known.drift)
        return cls(loss, np.eye(columns.size), True, free, ranges, rounding, known.gradient[at])

    @classmethod
    def at(cls, design: Design, loss: Loss, eta: Rows, columns: Index) -> "ProofFrame":
        """At the linear predictor `eta`, offset included."""
        now = loss.evaluate(eta)
        loss = _without_negligible(loss, now.expected)
        now = loss.evaluate(eta)
        free = FreeColumns.at(design, loss, eta, columns)
        is_dense = design.n_rows * columns.size <= MAX_DENSE_NUMBERS
        has_some = bool((free.size > MIN_INFORMATION).all())
        is_plain = bool(free.eigenvalues[0] > MIN_EIGENVALUE_AS_GIVEN) or not (
            is_dense and has_some
        )
        if is_plain:
            ranges, sizes = extents(design, loss, columns)
            transform, reach, at = np.eye(columns.size), np.maximum(ranges, sizes), columns
        else:
            # Columns that nearly repeat others: in their own coordinates the smallest eigenvalue
            # would drown in the bounds on rounding. Combinations along the eigenvectors, of about
            # the same information each, span the same directions.
            x = centred_within_strata(design.stored(columns), loss.outcome, now.expected)
            scale = np.sqrt(np.maximum(free.eigenvalues, 4 * EPSILON * free.eigenvalues[-1]))
            transform = free.vectors / scale / free.size[:, None]
            design, at = Design.from_dense(x @ transform), np.arange(columns.size)
            transform = transform / design.scale
            # Twice: the columns of a design are centred once more.
            reach = 2 * loss.largest_tie * (np.abs(x) @ np.abs(transform)).max(axis=0)
            ranges = extents(design, loss, at)[0] + EPSILON * columns.size * reach
            free = FreeColumns.at(design, loss, eta, at)
        rounding = RoundingBounds.of(loss, reach, loss.intercept_drift(now))
        gradient = design.cross(now.residual, at, runtime=loss.runtime)
        return cls(loss, transform, is_plain, free, ranges, rounding, gradient)

    def is_proof(self) -> bool:
        """Whether the Newton step from here is a proof that estimates are finite."""
        free = self.free
        with np.errstate(all="ignore"):  # without information there is no step
            step = free.step(self.gradient)
            if not np.isfinite(step).all():
                return False
            rest = np.abs(self.gradient - free.image(step))
            span = free.span(step, self.loss)
            return free.bound(step, rest, span, self.ranges, self.rounding) < MAX_PROOF_SPAN

    def is_proof_with(self, rest: Features) -> bool:
        """Whether what a combination of pairs leaves of the gradient (q,) is a proof."""
        with np.errstate(all="ignore"):
            return self.free.most(np.abs(rest), self.ranges, self.rounding) < MAX_PROOF_SPAN


def widest(loss: Loss, x: Rows) -> float:
    """Largest range of numbers (n,) over the rows of a stratum that are at risk at all.

    If a term chooses several rows, of their sums.
    """
    return loss.largest_tie * _extent(loss, x, _at_risk(loss))[0]


def _extent(loss: Loss, x: Rows, used: NDArray[np.bool_] | None) -> tuple[float, float]:
    """`widest`, and the largest size of a number; `used` is None if all rows are at risk."""
    x = x if used is None else x[used]
    if x.size == 0:
        return 0.0, 0.0
    top, bottom = float(x.max()), float(x.min())
    size = max(abs(top), abs(bottom))
    if loss.outcome.n_strata == 1:
        return top - bottom, size
    stratum = loss.outcome.stratum if used is None else loss.outcome.stratum[used]
    high, low = np.full((2, loss.outcome.n_strata), -np.inf)
    np.maximum.at(high, stratum, x)
    np.maximum.at(low, stratum, -x)
    return float((high + low).max()), size


def extents(design: Design, loss: Loss, columns: Index) -> tuple[Features, Features]:
    """Range and largest size (q,) of each of some columns, in stored units, or of sums as above."""
    ranges, sizes = np.ones((2, columns.size))
    used = _at_risk(loss)
    for k in np.flatnonzero(~design.is_binary[columns]):
        ranges[k], sizes[k] = _extent(loss, design.stored_column(int(columns[k])), used)
    return loss.largest_tie * ranges, loss.largest_tie * sizes


def _at_risk(loss: Loss) -> NDArray[np.bool_] | None:
    return rows_at_risk(loss.outcome.n_rows, loss.risk, loss.tails)


def _without_negligible(loss: Loss, expected: Rows) -> Loss:
    """The likelihood without rows at risk that are hardly ever expected to fail, and do not."""
    out = expected <= NEGLIGIBLE_EVENT_SHARE * loss.n_events
    if not loss.has_intercept:
        out[loss.risk.order[loss.risk.event_weight > 0]] = False
    if not out.any():
        return loss

    def left(sets: RiskSets) -> RiskSets:
        return sets._replace(weight=np.where(out[sets.order], 0.0, sets.weight))

    tails = tuple(tail._replace(sets=left(tail.sets)) for tail in loss.tails)
    return loss.restricted(left(loss.risk), tails)
