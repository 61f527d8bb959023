"""Fit many replicates of a design together: a bundle of lanes.

A lane is a place for one replicate in vectors of numbers, side by side with others:
`kernels._vector` says why. All lanes share one curvature, that of the whole data at its solution,
scaled by the lane's events; secant pairs of its own correct it in each lane (BFGS in factored form:
Nocedal & Wright (2006), Numerical Optimization, doi:10.1007/978-0-387-40065-5, section 6.1). A
product with the design reads the design once for all lanes. Nothing that one lane does depends on
another, so an answer has the same bits in any company.

What is decided for a lane is decided here, from a few numbers for each; rows and columns are the
business of `ReplicateLanes`: `replicates_host` in the memory of the host, `replicates_device` in
that of a GPU.
"""

from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from riskset._runtime import Runtime
from riskset._types import AnyArray, Features, Index, Matrix, Rows
from riskset.solve.curvature import CurvatureModel, largest
from riskset.solve.optimality import MIN_SIGNAL_PER_EVENT, Problem, in_stored_units
from riskset.solve.prox_newton import MAX_FULL_WORKING_SET
from riskset.solve.result import Solution

__all__ = ["ReplicateBundle", "BundleResult", "LaneValues", "ReplicateLanes", "BundleStart"]

MAX_SECANT_PAIRS = 12
"""Secant pairs kept; with one more the lane starts to collect anew."""
MAX_SWEEPS = 100
MAX_HALVINGS = 20
INNER_TOLERANCE = 0.01
"""Share of the residual to which quadratics are minimised. Many columns that go together, as all
common ones do, are found by small changes of each, so that much less would leave most undone."""
FIRST_STEP_BOUND, MIN_STEP_BOUND = 2.0, 0.1
"""Bounds of a step, in spreads."""
STRONG_RULE_SHARE = 0.5
"""Columns whose gradient on the whole data reaches this share of their penalty are in the set."""
MAX_NEW_COLUMNS, MAX_NEW_COLUMN_SHARE = 64, 0.25
"""A lane that misses more columns at once, or this share of the set, is fitted alone."""
MIN_EVENT_SHARE = 0.05
"""So is one with a smaller share of the events: the curvature of the whole says little about it."""
MIN_STEPS_TO_JUDGE, MAX_STEPS_TO_GO = 2, 10
"""A lane that after the first number of steps needs more than the second, at the pace of the last
one, gets a curvature of its own."""


@dataclass(frozen=True)
class BundleStart:
    """What all replicates of one penalty share.

    The working set `columns` (q,) and the `curvature` (q, q) of the whole data at its solution; the
    penalties and that solution, `beta` (p,), in stored units; its linear predictor (n,), offset
    included, and the events expected there.
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
    def prepare(
        cls, problem: Problem, whole: Solution, l1: Features, l2: Features
    ) -> "BundleStart":
        """Choose the working set and evaluate its curvature."""
        design, runtime = problem.design, problem.loss.runtime
        l1, l2 = in_stored_units(design, l1, l2)
        beta = np.where(np.isfinite(whole.coef), whole.coef, 0.0) * design.scale
        eta = problem.loss.offset + design.product(beta, runtime=runtime)
        columns = np.flatnonzero(_first_columns(problem, whole, beta, l1, l2))
        curvature = None if whole.curvature is None else whole.curvature.part(columns)
        if curvature is None:
            curvature = CurvatureModel(problem).at(columns, eta, None, np.inf, is_cold=False)
        expected = problem.loss.evaluate(eta).expected
        return cls(problem, columns, curvature, l1, l2, beta, eta, expected)

    def diagonal(self, columns: Index) -> Features:
        """Curvature of single columns; risk-set means taken to be the same at all times."""
        problem, runtime = self.problem, Runtime(1)
        square = problem.design.cross(self.expected, columns, runtime=runtime, power=2)
        first = problem.design.cross(self.expected, columns, runtime=runtime)
        return np.asarray(square - first**2 / float(self.expected.sum()))


class LaneValues(NamedTuple):
    """The partial likelihood of each lane (R,), and whether it can be relied upon."""

    log_likelihood: Rows
    is_safe: NDArray[np.bool_]


class ReplicateLanes(Protocol):
    """Rows and columns of the lanes of a bundle; every answer is (R,) if not said otherwise.

    They begin at the solution on the whole data, which every lane has columns of its own for. The
    working set `columns` (q,) has the columns of any lane.
    """

    @property
    def n_events(self) -> Rows:
        """See above."""

    columns: Index

    def signal(self) -> tuple[Rows, NDArray[np.bool_]]:
        """Largest gradient at 0 per spread among the informative columns, and if it is safe."""

    def begin(self, share: Rows, unit: Rows) -> None:
        """Stand at the solution on the whole data.

        `share` is that of its events, `unit` that of residuals.
        """

    def evaluate(self) -> LaneValues:
        """The likelihood where the lanes stand; the gradient stays as it is."""

    def differentiate(self) -> None:
        """Take the gradient on the working set from the last evaluation."""

    def residual(self) -> Rows:
        """Relative residual on each lane's own columns."""

    def penalty(self) -> Rows:
        """The penalty where the lanes stand."""

    def curve(self, slow: NDArray[np.bool_]) -> None:
        """Have lanes use a curvature of their own from now on, if that is worth it."""

    def step(self, live: NDArray[np.bool_], tolerance: Rows) -> Rows:
        """Minimise the quadratics of the live lanes; the gain that is predicted to first order.

        The largest change of a coordinate's gradient per spread that still matters is `tolerance`.
        """

    def move(self, share: Rows, worse: NDArray[np.bool_] | None) -> Rows:
        """Go a share of the step from where the lanes stood before it; the penalty there.

        After the first call for a step, `worse` are the lanes whose share has changed.
        """

    def learn(self, share: Rows, live: NDArray[np.bool_]) -> None:
        """Differentiate, keep the secant pairs of the steps taken, and set bounds for the next."""

    def certify(self) -> Rows:
        """Relative residual over all columns."""

    def violation(self) -> tuple[Matrix, NDArray[np.bool_]]:
        """What `certify` found for each column, and whether it is one of the lane's own (p, R)."""

    def take(self, fresh: NDArray[np.bool_]) -> None:
        """Give lanes more columns (p, R), and every lane the gradient that `certify` computed."""

    def information(self, columns: Index, ranges: Features) -> AnyArray | None:
        """Observed information of some columns (R, q, q), in stored units, where the lanes stand.

        None if it is as easily had from each replicate alone; not a number where it is not known.
        """

    def end(self) -> tuple[Matrix, Matrix]:
        """Coefficients in stored units (p, R), and the linear predictors (n, R)."""


@dataclass(frozen=True)
class BundleResult:
    """Where a bundle ended.

    Coefficients (p, R) are in the user's units, linear predictors are (n, R), the others (R,): the
    relative residual over all columns, and the weighted number of events. A lane that is not done
    has to be fitted alone.
    """

    coef: Matrix
    kkt: Rows
    log_likelihood: Rows
    eta: Matrix
    n_events: Rows
    n_iter: Index
    is_done: NDArray[np.bool_]


@dataclass
class ReplicateBundle:
    """One bundle on its way: what is decided for each lane (R,)."""

    shared: BundleStart
    lanes: ReplicateLanes
    tol: float
    max_iter: int
    live: NDArray[np.bool_] = field(init=False)
    is_done: NDArray[np.bool_] = field(init=False)
    n_iter: Index = field(init=False)
    strictness: Rows = field(init=False)

    def __post_init__(self) -> None:
        n_events = self.lanes.n_events
        share = n_events / self.shared.problem.loss.n_events
        self.live = share > MIN_EVENT_SHARE
        self.is_done = self.live.copy()
        unit, is_safe = self.lanes.signal()
        self._keep(is_safe)
        unit[unit < MIN_SIGNAL_PER_EVENT * np.maximum(n_events, 1e-300)] = 1.0
        self.lanes.begin(share, unit)
        self.n_iter = np.zeros(n_events.size, dtype=np.int64)
        self.strictness = np.ones(n_events.size)

    def solve(self) -> BundleResult:
        """Newton steps in every lane until its conditions hold over all columns."""
        lanes = self.lanes
        now = self._evaluate()
        lanes.differentiate()
        before = np.full(self.n_iter.size, np.inf)
        while True:
            residual = lanes.residual()
            self.live &= (residual > self.strictness * self.tol) & (self.n_iter < self.max_iter)
            if not self.live.any():
                kkt = lanes.certify()
                self._extend(kkt, self.is_done)
                if not self.live.any():
                    break
                residual = lanes.residual()
            lanes.curve(self.live & self._is_slow(before, residual))
            before = np.where(self.live, residual, before)  # a lane that rests keeps its pace
            now, share = self._search(now, lanes.step(self.live, INNER_TOLERANCE * residual))
            lanes.learn(share, self.live)
            self.n_iter += self.live
            # A look at all columns costs a pass. After a lane's first step it is worth it: the
            # gradient is then near its final value, and most columns that will be needed show.
            first = self.live & (self.n_iter == 1)
            if first.any() and lanes.columns.size < self.shared.beta.size:
                self._extend(lanes.certify(), first)
        beta, eta = lanes.end()
        self.is_done &= kkt <= self.tol
        coef = beta / self.shared.problem.design.scale[:, None]
        return BundleResult(
            coef, kkt, now.log_likelihood, eta, lanes.n_events, self.n_iter, self.is_done
        )

    def _is_slow(self, before: Rows, residual: Rows) -> NDArray[np.bool_]:
        """Lanes with many steps to go, at the pace of the last one."""
        with np.errstate(divide="ignore", invalid="ignore"):
            here = np.log(residual)  # of lanes without events it may be near the largest number
            pace, way = np.log(before) - here, here - np.log(self.tol)
        return np.asarray((self.n_iter >= MIN_STEPS_TO_JUDGE) & (MAX_STEPS_TO_GO * pace < way))

    def _keep(self, among: NDArray[np.bool_]) -> None:
        self.live &= among
        self.is_done &= among

    def _evaluate(self) -> LaneValues:
        now = self.lanes.evaluate()
        self._keep(now.is_safe)
        return now

    def _search(self, now: LaneValues, predicted: Rows) -> tuple[LaneValues, Rows]:
        """Halve the step of a lane until its objective falls, by rounding level at least."""
        objective = self.lanes.penalty() - now.log_likelihood
        slack = 64 * np.finfo(np.float64).eps * np.abs(objective)
        share = np.where(self.live, 1.0, 0.0)
        worse: NDArray[np.bool_] | None = None
        for _ in range(MAX_HALVINGS):
            penalty = self.lanes.move(share, worse)
            now = self._evaluate()
            value = penalty - now.log_likelihood
            worse = self.live & ~(value <= objective - 1e-4 * share * predicted + slack)
            if not worse.any():
                break
            share = np.where(worse, 0.5 * share, share)
        assert worse is not None
        self._keep(~worse)
        return now, share

    def _extend(self, kkt: Rows, among: NDArray[np.bool_]) -> None:
        """Take in the columns that violate their condition, each in its own lane, of some lanes."""
        self.is_done &= ~among | (kkt <= self.tol) | (self.n_iter < self.max_iter)
        again = self.is_done & among & (kkt > self.tol)
        if not again.any():
            return
        violation, inside = self.lanes.violation()
        fresh = (violation > self.tol) & ~inside & again
        # A lane far from the others would fill their common set with columns of its own.
        too_many = fresh.sum(axis=0) > max(
            MAX_NEW_COLUMNS, MAX_NEW_COLUMN_SHARE * self.shared.columns.size
        )
        # Where only the spread at risk asks for more, the conditions are tightened.
        tighter = again & ~fresh.any(axis=0) & ~self.live
        self.strictness = np.where(tighter, 0.3 * self.strictness, self.strictness)
        failed = again & (too_many | (self.strictness < 1e-6))
        self.is_done &= ~failed
        self.live = (self.live | again) & ~failed
        self.lanes.take(fresh & self.live)


def extended(
    shared: BundleStart, columns: Index, curvature: Matrix, new: Index
) -> tuple[Index, Matrix, Index]:
    """More columns in a working set: all in order, their curvature, and where each came from.

    New columns have a block of their own in the curvature, of single columns.
    """
    q = columns.size
    more = np.zeros((q + new.size, q + new.size))
    more[:q, :q] = curvature
    at = np.arange(q, q + new.size)
    more[at, at] = shared.diagonal(new)
    both = np.append(columns, new)
    order = np.argsort(both)
    return both[order], more[np.ix_(order, order)].copy(), order


def _first_columns(
    problem: Problem, whole: Solution, beta: Features, l1: Features, l2: Features
) -> NDArray[np.bool_]:
    """The working set: everything if that is little, else what is or could become other than 0."""
    if beta.size <= MAX_FULL_WORKING_SET:
        return problem.informative
    support = (beta != 0) | ((l1 == 0) & problem.informative)
    strength = np.abs(whole.gradient - l2 * beta)
    near = (strength > STRONG_RULE_SHARE * l1) & ~support & problem.informative
    most = max(256, 3 * int(np.count_nonzero(support)))
    chosen: NDArray[np.bool_] = support | largest(near, (strength - l1) / problem.spread, most)
    return chosen
