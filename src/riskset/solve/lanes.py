"""Fit eight replicates of a design together, one thread a bundle.

All lanes share one curvature, that of the whole data at its solution, scaled by the lane's events;
secant pairs of its own correct it in each lane (BFGS in factored form: Nocedal & Wright (2006),
Numerical Optimization, doi:10.1007/978-0-387-40065-5, section 6.1). A product with the design reads
the design once for all eight. Nothing that one lane does depends on another, so an answer has the
same bits in any company.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from riskset._runtime import Runtime
from riskset._types import AnyArray, Features, Index, Matrix, Rows
from riskset.data.design import Design
from riskset.kernels import lanes_cpu as kernels
from riskset.kernels._vector import lane_rows
from riskset.model.lanes import LANES, LaneEvaluation, LaneLoss
from riskset.solve.curvature import CurvatureModel, largest
from riskset.solve.optimality import NO_SIGNAL, Problem, violations
from riskset.solve.result import Solution
from riskset.solve.run import ALL_AT_ONCE

__all__ = ["Bundle", "LaneAnswers", "Shared"]

N_PAIRS = 12
"""Secant pairs kept; with one more the lane starts to collect anew."""
SWEEPS = 100
MAX_HALVINGS = 20
LEAST_BOX = 0.1
STRONG = 0.5
"""Columns whose gradient on the whole data reaches this share of their penalty are in the set."""
FEW_NEW, FEW_NEW_SHARE = 64, 0.25
"""A lane that misses more columns at once, or this share of the set, is fitted alone."""
LEAST_SHARE = 0.05
"""So is one with a smaller share of the events: the curvature of the whole says little about it."""


@dataclass(frozen=True)
class Shared:
    """What all replicates of one penalty share.

    Attributes
    ----------
    columns : (q,) int64
        The working set.
    curvature : (q, q) float64
        Of the whole data at its solution.
    l1, l2 : (p,) float64
        In stored units.
    beta : (p,) float64
        Solution on the whole data, in stored units.
    eta : (n,) float64
        Its linear predictor, offset included.
    expected : (n,) float64
        Expected events there.
    """

    problem: Problem
    columns: Index
    curvature: Matrix
    l1: Features
    l2: Features
    beta: Features
    eta: Rows
    expected: Rows

    @classmethod
    def prepare(cls, problem: Problem, whole: Solution, l1: Features, l2: Features) -> "Shared":
        """Choose the working set and evaluate its curvature."""
        design, runtime = problem.design, problem.loss.runtime
        l1, l2 = l1 / design.scale, l2 / design.scale**2
        beta = np.where(np.isfinite(whole.coef), whole.coef, 0.0) * design.scale
        eta = problem.loss.offset + design.product(beta, runtime=runtime)
        columns = np.flatnonzero(_first_columns(problem, whole, beta, l1, l2))
        curvature = None if whole.curvature is None else whole.curvature.part(columns)
        if curvature is None:
            curvature = CurvatureModel(problem).at(columns, eta, np.inf, is_cold=False)
        expected = problem.loss.evaluate(eta).expected
        return cls(problem, columns, curvature, l1, l2, beta, eta, expected)


@dataclass(frozen=True)
class LaneAnswers:
    """Where a bundle ended.

    Attributes
    ----------
    coef : (p, 8) float64
        In the user's units.
    kkt : (8,) float64
        Relative residual over all columns.
    log_likelihood : (8,) float64
    eta : (n, 8) float64
    n_iter : (8,) int64
    is_done : (8,) bool
        False: this lane has to be fitted alone.
    """

    coef: Matrix
    kkt: Rows
    log_likelihood: Rows
    eta: Matrix
    n_iter: Index
    is_done: NDArray[np.bool_]


@dataclass
class Bundle:
    """One bundle on its way; (q, 8) arrays are on the working set."""

    shared: Shared
    loss: LaneLoss
    tol: float
    max_iter: int
    columns: Index = field(init=False)
    curvature: Matrix = field(init=False)
    mine: NDArray[np.bool_] = field(init=False)
    beta: Matrix = field(init=False)
    box: Matrix = field(init=False)
    pairs: AnyArray = field(init=False)

    def __post_init__(self) -> None:
        shared, design = self.shared, self.shared.problem.design
        n_events = self.loss.n_events
        self.share = n_events / shared.problem.loss.n_events
        self.live = self.share > LEAST_SHARE
        self.is_done = self.live.copy()
        null = self._evaluate(np.repeat(self.loss.loss.offset[:, None], LANES, axis=1))
        self.spread = _spread(design, self.loss)
        gradient = design.cross_lanes(null.residual)
        scaled = np.abs(gradient / self.spread)[shared.problem.informative]
        self.kkt_scale = scaled.max(axis=0, initial=0.0)
        self.kkt_scale[self.kkt_scale < NO_SIGNAL * np.maximum(n_events, 1e-300)] = 1.0

        self.columns, self.curvature = shared.columns, shared.curvature
        q = self.columns.size
        self.mine = np.ones((q, LANES), dtype=bool)
        self.beta = np.repeat(shared.beta[self.columns][:, None], LANES, axis=1)
        self.box = 2.0 / self.spread[self.columns]
        self.pairs = np.zeros((q, 2 * N_PAIRS, LANES))
        self.n_pairs = np.zeros(LANES, dtype=np.int64)
        self.eta, self._spare = lane_rows(shared.eta.size), lane_rows(shared.eta.size)
        self.eta[:] = shared.eta[:, None]
        self.n_iter = np.zeros(LANES, dtype=np.int64)
        self.strictness = np.ones(LANES)

    # --------------------------------------------------------------------------- the iteration

    def solve(self) -> LaneAnswers:
        """Newton steps in every lane until its conditions hold over all columns."""
        now = self._evaluate(self.eta)
        gradient = self._cross(now.residual)
        while True:
            residual = self._residual(gradient)
            self.live &= (residual > self.strictness * self.tol) & (self.n_iter < self.max_iter)
            if not self.live.any():
                kkt, full = self._certify(now, gradient)
                self._extend(kkt, self.is_done)
                if not self.live.any():
                    break
                gradient = full[self.columns]
                residual = self._residual(gradient)
            step, image = self._step(gradient, residual)
            now, share = self._search(now, gradient, step)
            before, gradient = gradient, self._cross(now.residual)
            self._learn(share * step, share * image, before - gradient)
            floor = LEAST_BOX / self.spread[self.columns]
            wanted = np.maximum(np.maximum(2 * np.abs(share * step), self.box / 2), floor)
            self.box = np.where(self.live, wanted, self.box)
            self.n_iter += self.live
            # After a lane's first step its set can become much of what it will have to be.
            first = self.live & (self.n_iter == 1)
            if first.any() and self.columns.size < self.shared.beta.size:
                kkt, full = self._certify(now, gradient)
                self._extend(kkt, first)
                gradient = full[self.columns]
        design = self.shared.problem.design
        coef = np.zeros((design.n_features, LANES))
        coef[self.columns] = self.beta
        self.is_done &= kkt <= self.tol
        return LaneAnswers(
            coef / design.scale[:, None],
            kkt,
            now.log_likelihood,
            self.eta,
            self.n_iter,
            self.is_done,
        )

    def _evaluate(self, eta: Matrix) -> LaneEvaluation:
        now = self.loss.evaluate(eta)
        self.live &= now.is_safe
        self.is_done &= now.is_safe
        return now

    def _cross(self, residual: Matrix) -> Matrix:
        return self.shared.problem.design.cross_lanes(residual, self.columns)

    def _residual(self, gradient: Matrix) -> Rows:
        """Relative residual on the working set (8,)."""
        l1, l2 = self._penalty(self.columns)
        v = violations(gradient, self.beta, l1, l2) / self.spread[self.columns]
        largest: Rows = np.where(self.mine, v, 0.0).max(axis=0, initial=0.0) / self.kkt_scale
        return largest

    def _penalty(self, columns: Index) -> tuple[Matrix, Matrix]:
        return self.shared.l1[columns][:, None], self.shared.l2[columns][:, None]

    def _step(self, gradient: Matrix, residual: Rows) -> tuple[Matrix, Matrix]:
        step, image = np.zeros_like(self.beta), np.zeros_like(self.beta)
        least = np.where(self.mine, self.spread[self.columns], np.inf).min(axis=0, initial=np.inf)
        used = int(self.n_pairs.max(initial=0))
        kernels.minimise_quadratics(
            self.curvature, self.share, np.ascontiguousarray(self.pairs[:, : 2 * used]), gradient,
            self.beta, self.shared.l1[self.columns], self.shared.l2[self.columns], self.box,
            self.mine & self.live, 0.1 * residual * self.kkt_scale * least, SWEEPS, step, image,
        )  # fmt: skip
        return step, image

    def _objective(self, now: LaneEvaluation, beta: Matrix) -> Rows:
        l1, l2 = self._penalty(self.columns)
        penalty = (l1 * np.abs(beta) + 0.5 * l2 * beta**2).sum(axis=0)
        return np.asarray(penalty - now.log_likelihood)

    def _search(
        self, now: LaneEvaluation, gradient: Matrix, step: Matrix
    ) -> tuple[LaneEvaluation, Rows]:
        """Halve the step of a lane until its objective falls, by rounding level at least."""
        objective = self._objective(now, self.beta)
        l1, l2 = self._penalty(self.columns)
        new = self.beta + step
        change = (l1 * (np.abs(new) - np.abs(self.beta)) + 0.5 * l2 * (new**2 - self.beta**2)).sum(
            axis=0
        )
        predicted = (gradient * step).sum(axis=0) - change
        slack = 64 * np.finfo(np.float64).eps * np.abs(objective)
        beta, eta = self.beta, self.eta
        self.eta, self._spare = self._spare, eta
        np.copyto(self.eta, eta)
        self.shared.problem.design.product_lanes(step, self.columns, self.eta)
        along = None
        share = np.where(self.live, 1.0, 0.0)
        for _ in range(MAX_HALVINGS):
            self.beta = beta + share * step
            now = self._evaluate(self.eta)
            value = self._objective(now, self.beta)
            worse = self.live & ~(value <= objective - 1e-4 * share * predicted + slack)
            if not worse.any():
                break
            share = np.where(worse, 0.5 * share, share)
            along = self.eta - eta if along is None else along
            np.add(eta, share * along, out=self.eta)
        self.live &= ~worse
        self.is_done &= ~worse
        return now, share

    def _learn(self, step: Matrix, image: Matrix, y: Matrix) -> None:
        """Keep the secant pair of each lane that has a sensible one, on its own columns."""
        y, image = np.where(self.mine, y, 0.0), np.where(self.mine, image, 0.0)
        sy, sbs = (step * y).sum(axis=0), (step * image).sum(axis=0)
        for k in np.flatnonzero(self.live & (sy > 1e-14 * np.abs(sbs)) & (sbs > 0)):
            if self.n_pairs[k] == N_PAIRS:
                self.n_pairs[k] = 0
                self.pairs[:, :, k] = 0.0
            at = 2 * self.n_pairs[k]
            self.pairs[:, at, k] = y[:, k] / np.sqrt(sy[k])
            self.pairs[:, at + 1, k] = image[:, k] / np.sqrt(sbs[k])
            self.n_pairs[k] += 1

    # ------------------------------------------------------------------------- the certificate

    def _certify(self, now: LaneEvaluation, gradient: Matrix) -> tuple[Rows, Matrix]:
        """Relative residual over all columns (8,), and the gradient (p, 8)."""
        problem, every = self.shared.problem, np.arange(self.shared.beta.size)
        if self.columns.size < every.size:
            gradient = problem.design.cross_lanes(now.residual)
        beta = np.zeros_like(gradient)
        beta[self.columns] = self.beta
        l1, l2 = self._penalty(every)
        v = np.where(problem.informative[:, None], violations(gradient, beta, l1, l2), 0.0)
        spread = np.minimum(self.spread, self._spread_at_risk(now))
        self._violation = v / spread / self.kkt_scale
        return self._violation.max(axis=0, initial=0.0), gradient

    def _spread_at_risk(self, now: LaneEvaluation) -> Matrix:
        """See `Problem.residual`."""
        design, spread = self.shared.problem.design, self.spread.copy()
        others = np.flatnonzero(~design.is_binary)
        if others.size:
            events = self.loss.by_row(self.loss.events)
            expected = np.maximum(events - now.residual, 0.0)
            weighted = _deviation(design, expected, others)
            spread[others] = np.where(weighted > 0, weighted, spread[others])
        return spread

    def _extend(self, kkt: Rows, among: NDArray[np.bool_]) -> None:
        """Take in the columns that violate their condition, each in its own lane, of some lanes."""
        self.is_done &= ~among | (kkt <= self.tol) | (self.n_iter < self.max_iter)
        again = self.is_done & among & (kkt > self.tol)
        if not again.any():
            return
        inside = np.zeros_like(self._violation, dtype=bool)
        inside[self.columns] = self.mine
        fresh = (self._violation > self.tol) & ~inside & again
        too_many = fresh.sum(axis=0) > max(FEW_NEW, FEW_NEW_SHARE * self.shared.columns.size)
        # Where only the spread at risk asks for more, the conditions are tightened.
        tighter = again & ~fresh.any(axis=0) & ~self.live
        self.strictness = np.where(tighter, 0.3 * self.strictness, self.strictness)
        failed = again & (too_many | (self.strictness < 1e-6))
        self.is_done &= ~failed
        self.live = (self.live | again) & ~failed
        fresh &= self.live
        joined = np.flatnonzero(fresh.any(axis=1))
        new = np.setdiff1d(joined, self.columns, assume_unique=True)
        if new.size:
            self._append(new)
        taken = fresh[self.columns]
        self.mine |= taken
        self.box = np.where(taken, 2.0 / self.spread[self.columns], self.box)

    def _append(self, new: Index) -> None:
        """Columns that no lane had: a block of their own in the curvature, all in order again."""
        q = self.columns.size
        block = np.zeros((q + new.size, q + new.size))
        block[:q, :q] = self.curvature
        block[np.arange(q, q + new.size), np.arange(q, q + new.size)] = self._diagonal(new)
        columns = np.append(self.columns, new)
        order = np.argsort(columns)
        self.columns, self.curvature = columns[order], block[np.ix_(order, order)].copy()
        zero = np.zeros((new.size, LANES))
        self.mine = np.vstack([self.mine, zero.astype(bool)])[order]
        self.beta = np.vstack([self.beta, zero])[order]
        self.box = np.vstack([self.box, zero])[order]
        more = np.zeros((new.size, 2 * N_PAIRS, LANES))
        self.pairs = np.concatenate([self.pairs, more])[order]

    def _diagonal(self, columns: Index) -> Features:
        """Curvature of single columns; risk-set means taken to be the same at all times."""
        problem, runtime = self.shared.problem, Runtime(1)
        expected = self.shared.expected
        square = problem.design.cross(expected, columns, runtime=runtime, power=2)
        first = problem.design.cross(expected, columns, runtime=runtime)
        return np.asarray(square - first**2 / problem.loss.n_events)


def _first_columns(
    problem: Problem, whole: Solution, beta: Features, l1: Features, l2: Features
) -> NDArray[np.bool_]:
    """The working set: everything if that is little, else what is or could become other than 0."""
    if beta.size <= ALL_AT_ONCE:
        return problem.informative
    support = (beta != 0) | ((l1 == 0) & problem.informative)
    strength = np.abs(whole.gradient - l2 * beta)
    near = (strength > STRONG * l1) & ~support & problem.informative
    most = max(256, 3 * int(np.count_nonzero(support)))
    chosen: NDArray[np.bool_] = support | largest(near, (strength - l1) / problem.spread, most)
    return chosen


def _spread(design: Design, loss: LaneLoss) -> Matrix:
    """`Problem.spread` of each lane (p, 8)."""
    spread = np.ones((design.n_features, LANES))
    others = np.flatnonzero(~design.is_binary)
    if others.size:
        spread[others] = _deviation(design, loss.by_row(loss.unit), others)
        spread[spread <= 0] = 1.0
    return spread


def _deviation(design: Design, weight: Matrix, columns: Index) -> Matrix:
    """Weighted standard deviation of stored columns, lane by lane."""
    total = np.maximum(weight.sum(axis=0), 1e-300)
    mean = design.cross_lanes(weight, columns) / total
    square = design.cross_lanes(weight, columns, power=2) / total
    return np.asarray(np.sqrt(np.maximum(square - mean**2, 0.0)))
