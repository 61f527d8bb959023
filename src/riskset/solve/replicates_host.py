"""Eight lanes of a bundle in one thread of the host: see `solve.replicates_bundle`."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from riskset._runtime import Runtime
from riskset._types import AnyArray, Features, Index, Matrix, NewtonQuadratic, Rows
from riskset.data.design import Design
from riskset.kernels import replicates_cpu as kernels
from riskset.kernels._vector import lane_rows
from riskset.model.replicates_likelihood import LANES, LaneLoss, ReplicateWeights
from riskset.solve.curvature import CurvatureModel
from riskset.solve.optimality import MIN_SPREAD_SHARE, violations
from riskset.solve.quadratic import newton_step
from riskset.solve.replicates_bundle import (
    FIRST_STEP_BOUND,
    MAX_SECANT_PAIRS,
    MAX_SWEEPS,
    MIN_STEP_BOUND,
    BundleStart,
    LaneValues,
    extended,
)

__all__ = ["HostLanes"]

MIN_PENALTY_SHARE = 0.7
"""Share of its penalty that the gradient of a column at 0 must reach to be in a curvature of a
lane's own."""
MAX_OWN_CURVATURE_COLUMNS = 4096
"""Columns of such a curvature: of more, a matrix for each lane would take too much memory."""
SAMPLES_PER_COLUMN = 25
"""Rows of its sample for each column: a step of a lane is cheap compared with the sample."""

DIFFERENCE_STEP, MAX_SPREADS_IN_RANGE = 1e-3, 1e3
"""Differences are taken by so much of a linear predictor; with columns that range over more
spreads than `MAX_SPREADS_IN_RANGE` they would lack digits."""
MAX_DIFFERENCED_COLUMNS = 16
"""Of more columns each replicate's information is as cheap."""


@dataclass
class HostLanes:
    """`ReplicateLanes` of the host; (q, 8) arrays are on the working set."""

    shared: BundleStart
    parts: Sequence[ReplicateWeights]
    loss: LaneLoss = field(init=False)
    columns: Index = field(init=False)
    curvature: Matrix = field(init=False)
    mine: NDArray[np.bool_] = field(init=False)
    beta: Matrix = field(init=False)
    box: Matrix = field(init=False)
    pairs: AnyArray = field(init=False)
    gradient: Matrix = field(init=False)
    own: list[CurvatureModel | None] = field(init=False)

    def __post_init__(self) -> None:
        self.loss = LaneLoss.build(self.shared.problem.loss, self.parts)
        self.n_events = self.loss.n_events
        self.spread = _spread(self.shared.problem.design, self.loss)
        self.eta, self._before = (lane_rows(self.shared.eta.size) for _ in range(2))

    def signal(self) -> tuple[Rows, NDArray[np.bool_]]:
        self.eta[:] = self.loss.loss.offset[:, None]
        now = self.loss.evaluate(self.eta)
        gradient = self.shared.problem.design.cross_lanes(now.residual)
        scaled = np.abs(gradient / self.spread)[self.shared.problem.informative]
        return scaled.max(axis=0, initial=0.0), now.is_safe

    def begin(self, share: Rows, unit: Rows) -> None:
        shared = self.shared
        self.share, self.unit = share, unit
        self.columns, self.curvature = shared.columns, shared.curvature
        q = self.columns.size
        self.mine = np.ones((q, LANES), dtype=bool)
        self.beta = np.repeat(shared.beta[self.columns][:, None], LANES, axis=1)
        self.box = FIRST_STEP_BOUND / self.spread[self.columns]
        self.pairs = np.zeros((q, 2 * MAX_SECANT_PAIRS, LANES))
        self.n_pairs = np.zeros(LANES, dtype=np.int64)
        self.own = [None] * LANES
        self.eta[:] = shared.eta[:, None]

    # --------------------------------------------------------------------------- the iteration

    def evaluate(self) -> LaneValues:
        now = self.loss.evaluate(self.eta)
        self._rows = now.residual
        return LaneValues(now.log_likelihood, now.is_safe)

    def differentiate(self) -> None:
        self.gradient = self.shared.problem.design.cross_lanes(self._rows, self.columns)

    def residual(self) -> Rows:
        l1, l2 = self._penalties(self.columns)
        v = violations(self.gradient, self.beta, l1, l2) / self.spread[self.columns]
        largest: Rows = np.where(self.mine, v, 0.0).max(axis=0, initial=0.0) / self.unit
        return largest

    def _penalties(self, columns: Index) -> tuple[Matrix, Matrix]:
        return self.shared.l1[columns][:, None], self.shared.l2[columns][:, None]

    def penalty(self) -> Rows:
        l1, l2 = self._penalties(self.columns)
        return np.asarray((l1 * np.abs(self.beta) + 0.5 * l2 * self.beta**2).sum(axis=0))

    def curve(self, slow: NDArray[np.bool_]) -> None:
        problem, l1 = self.shared.problem, self.shared.l1[self.columns][:, None]
        near = (self.beta != 0) | (l1 == 0) | (np.abs(self.gradient) > MIN_PENALTY_SHARE * l1)
        near &= self.mine
        for k in map(int, np.flatnonzero(slow)):
            if self.own[k] is None and np.count_nonzero(near[:, k]) <= MAX_OWN_CURVATURE_COLUMNS:
                part = self.parts[k]
                loss = problem.loss.replicate(part.weight, part.censoring, runtime=Runtime(1))
                self.own[k] = CurvatureModel(replace(problem, loss=loss), each=SAMPLES_PER_COLUMN)
                self.mine[:, k] = near[:, k]

    def step(self, live: NDArray[np.bool_], tolerance: Rows) -> Rows:
        step, image = np.zeros_like(self.beta), np.zeros_like(self.beta)
        least = np.where(self.mine, self.spread[self.columns], np.inf).min(axis=0, initial=np.inf)
        tolerance = tolerance * self.unit * least
        has_own = np.array([own is not None for own in self.own])
        if (live & ~has_own).any():
            self._joint_steps(live & ~has_own, tolerance, step, image)
        if (live & has_own).any():
            residual = self.residual()
            for k in map(int, np.flatnonzero(live & has_own)):
                self._own_step(k, float(residual[k]), float(tolerance[k]), step, image)
        self._step, self._image = step, image
        l1, l2 = self._penalties(self.columns)
        new = self.beta + step
        change = (l1 * (np.abs(new) - np.abs(self.beta)) + 0.5 * l2 * (new**2 - self.beta**2)).sum(
            axis=0
        )
        return np.asarray((self.gradient * step).sum(axis=0) - change)

    def _joint_steps(
        self, live: NDArray[np.bool_], tolerance: Rows, step: Matrix, image: Matrix
    ) -> None:
        """Steps with the curvature that lanes share, in place."""
        used = int(self.n_pairs[live].max(initial=0))
        kernels.minimise_quadratics(
            self.curvature, self.share, np.ascontiguousarray(self.pairs[:, : 2 * used]),
            self.gradient, self.beta, self.shared.l1[self.columns], self.shared.l2[self.columns],
            self.box, self.mine & live, tolerance, MAX_SWEEPS, step, image,
        )  # fmt: skip

    def _own_step(
        self, lane: int, residual: float, tolerance: float, step: Matrix, image: Matrix
    ) -> None:
        """The step of a lane that has a curvature of its own, in place."""
        own, mine = self.own[lane], self.mine[:, lane]
        assert own is not None
        at = self.columns[mine]
        eta = np.ascontiguousarray(self.eta[:, lane])
        curvature = own.at(at, eta, None, residual, is_cold=False)
        quadratic = NewtonQuadratic(
            curvature, self.gradient[mine, lane], self.beta[mine, lane],
            self.shared.l1[at], self.shared.l2[at], self.box[mine, lane],
        )  # fmt: skip
        step[mine, lane], image[mine, lane] = newton_step(quadratic, tolerance)

    def move(self, share: Rows, worse: NDArray[np.bool_] | None) -> Rows:
        if worse is None:
            self._beta, self._along = self.beta, None
            self.eta, self._before = self._before, self.eta
            np.copyto(self.eta, self._before)
            self.shared.problem.design.product_lanes(self._step, self.columns, self.eta)
        else:
            if self._along is None:
                self._along = self.eta - self._before
            np.add(self._before, share * self._along, out=self.eta, where=worse)
        self.beta = self._beta + share * self._step
        return self.penalty()

    def learn(self, share: Rows, live: NDArray[np.bool_]) -> None:
        before = self.gradient
        self.differentiate()
        step = share * self._step
        y = np.where(self.mine, before - self.gradient, 0.0)
        image = np.where(self.mine, share * self._image, 0.0)
        sy, sbs = (step * y).sum(axis=0), (step * image).sum(axis=0)
        for k in np.flatnonzero(live & (sy > 1e-14 * np.abs(sbs)) & (sbs > 0)):
            own = self.own[k]
            if own is not None:
                mine = self.mine[:, k]
                own.learn(step[mine, k], image[mine, k], y[mine, k])
                continue
            if self.n_pairs[k] == MAX_SECANT_PAIRS:
                self.n_pairs[k] = 0
                self.pairs[:, :, k] = 0.0
            at = 2 * self.n_pairs[k]
            self.pairs[:, at, k] = y[:, k] / np.sqrt(sy[k])
            self.pairs[:, at + 1, k] = image[:, k] / np.sqrt(sbs[k])
            self.n_pairs[k] += 1
        floor = MIN_STEP_BOUND / self.spread[self.columns]
        wanted = np.maximum(np.maximum(2 * np.abs(step), self.box / 2), floor)
        self.box = np.where(live, wanted, self.box)

    # ------------------------------------------------------------------------- the certificate

    def certify(self) -> Rows:
        problem, every = self.shared.problem, np.arange(self.shared.beta.size)
        self._full = self.gradient
        if self.columns.size < every.size:
            self._full = problem.design.cross_lanes(self._rows)
        beta = np.zeros_like(self._full)
        beta[self.columns] = self.beta
        l1, l2 = self._penalties(every)
        v = np.where(problem.informative[:, None], violations(self._full, beta, l1, l2), 0.0)
        violated = np.flatnonzero(v.any(axis=1))
        v[violated] /= self._unit_spread(violated)
        self._violation = v / self.unit
        return np.asarray(self._violation.max(axis=0, initial=0.0))

    def violation(self) -> tuple[Matrix, NDArray[np.bool_]]:
        inside = np.zeros_like(self._violation, dtype=bool)
        inside[self.columns] = self.mine
        return self._violation, inside

    def _unit_spread(self, columns: Index) -> Matrix:
        """`NewtonProblem.unit_spread`, lane by lane."""
        design, spread = self.shared.problem.design, self.spread[columns]
        others = np.flatnonzero(~design.is_binary[columns])
        if others.size:
            weighted = _deviation(design, self.loss.expected(self._rows), columns[others])
            whole = spread[others]
            seen = weighted > MIN_SPREAD_SHARE * whole
            spread[others] = np.where(seen, np.minimum(weighted, whole), whole)
        return spread

    def take(self, fresh: NDArray[np.bool_]) -> None:
        new = np.setdiff1d(np.flatnonzero(fresh.any(axis=1)), self.columns, assume_unique=True)
        if new.size:
            self._append(new)
        taken = fresh[self.columns]
        self.mine |= taken
        self.box = np.where(taken, FIRST_STEP_BOUND / self.spread[self.columns], self.box)
        self.gradient = self._full[self.columns]

    def _append(self, new: Index) -> None:
        """Take in columns that no lane had."""
        self.columns, self.curvature, order = extended(
            self.shared, self.columns, self.curvature, new
        )
        zero = np.zeros((new.size, LANES))
        self.mine = np.vstack([self.mine, zero.astype(bool)])[order]
        self.beta = np.vstack([self.beta, zero])[order]
        self.box = np.vstack([self.box, zero])[order]
        more = np.zeros((new.size, 2 * MAX_SECANT_PAIRS, LANES))
        self.pairs = np.concatenate([self.pairs, more])[order]

    def information(self, columns: Index, ranges: Features) -> AnyArray | None:
        """See `ReplicateLanes`; by central differences of the gradient."""
        design = self.shared.problem.design
        spread = self.spread[columns].min(axis=1, initial=np.inf)
        if columns.size > MAX_DIFFERENCED_COLUMNS or (ranges > MAX_SPREADS_IN_RANGE * spread).any():
            return None
        out = np.empty((LANES, columns.size, columns.size))
        # Two passes for each column serve eight lanes; exact information would take one pass over
        # pairs of columns for each lane alone.
        for a, reach in enumerate(DIFFERENCE_STEP / ranges):
            along = reach * design.stored(columns[a : a + 1])
            sides = []
            for side in (-along, along):
                now = self.loss.evaluate(np.add(self.eta, side, out=self._before))
                gradient = design.cross_lanes(now.residual, columns)
                sides.append(np.where(now.is_safe, gradient, np.nan))
            out[:, a] = ((sides[0] - sides[1]) / (2 * reach)).T
        return (out + out.transpose(0, 2, 1)) / 2

    def end(self) -> tuple[Matrix, Matrix]:
        beta = np.zeros((self.shared.beta.size, LANES))
        beta[self.columns] = self.beta
        return beta, self.eta


def _spread(design: Design, loss: LaneLoss) -> Matrix:
    """`Problem.spread` of each lane (p, 8)."""
    spread = np.ones((design.n_features, LANES))
    others = np.flatnonzero(~design.is_binary)
    if others.size:
        spread[others] = _deviation(design, loss.by_row(loss.sets.weight), others)
        spread[spread <= 0] = 1.0
    return spread


def _deviation(design: Design, weight: Matrix, columns: Index) -> Matrix:
    """Weighted standard deviation of stored columns, lane by lane."""
    total = np.maximum(weight.sum(axis=0), 1e-300)
    mean = design.cross_lanes(weight, columns) / total
    square = design.cross_lanes(weight, columns, power=2) / total
    return np.asarray(np.sqrt(np.maximum(square - mean**2, 0.0)))
