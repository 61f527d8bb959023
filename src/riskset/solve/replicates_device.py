"""All lanes of a bundle in the memory of a device: see `solve.replicates_bundle`.

Rows and columns stay there; a step brings back a few numbers for each lane. What is rare, as a
change of the working set, is arranged on the host.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from riskset._types import AnyArray, Features, Index, Matrix, Rows
from riskset.data.device import PARTIAL_NUMBERS, DeviceColumns, DeviceDesign
from riskset.kernels.cuda.backend import FLOAT, Array
from riskset.kernels.cuda.launch import Launcher
from riskset.model.device import DeviceEvaluation, DeviceLoss
from riskset.model.loss import Loss
from riskset.solve.optimality import MIN_SPREAD_SHARE
from riskset.solve.replicates_bundle import (
    FIRST_STEP_BOUND,
    MAX_SECANT_PAIRS,
    MAX_SWEEPS,
    MIN_STEP_BOUND,
    BundleStart,
    LaneValues,
    extended,
)

__all__ = ["DeviceLanes", "bytes_needed"]

NUMBERS_PER_ROW = 7
"""Numbers of a lane for each row: weight, residual, eta twice, X step; two more to certify."""


def bytes_needed(shared: BundleStart, loss: Loss) -> tuple[int, int]:
    """Largest memory of a bundle in addition to the design: for all of it, and for each lane."""
    design, q = shared.problem.design, shared.columns.size
    n, groups = design.n_rows, loss.risk.group_events.size
    later = sum(tail.sets.order.size for tail in loss.tails)
    entries = design.nbytes  # the working set row by row takes about as much as the design
    once = 2 * entries + 16 * n + 3 * 8 * q * q + 8 * PARTIAL_NUMBERS
    numbers = NUMBERS_PER_ROW * n + (8 + 2 * len(loss.tails)) * groups + 3 * later
    numbers += 10 * design.n_features + (12 + 4 * 2 * MAX_SECANT_PAIRS) * q
    return once, 8 * numbers


@dataclass
class DeviceLanes:
    """`ReplicateLanes` of a device; (R, q) arrays are on the working set."""

    shared: BundleStart
    design: DeviceDesign
    loss: DeviceLoss
    columns: Index = field(init=False)
    curvature: Matrix = field(init=False)
    mine: NDArray[np.bool_] = field(init=False)
    """(q, R), as it is on the device, too."""

    def __post_init__(self) -> None:
        self.backend = self.design.backend
        self._launch = Launcher(self.backend)
        self.n_lanes, self.n_events = self.loss.n_lanes, self.loss.n_events
        p = self.shared.beta.size
        self._others = np.flatnonzero(~self.design.design.is_binary)
        spread = np.ones((self.n_lanes, p))
        if self._others.size:
            spread[:, self._others] = self._deviation(self.loss.weight, self.loss.total_weight)
        self.spread = np.where(spread > 0, spread, 1.0)
        counts = np.repeat(self.shared.problem.informative[None], self.n_lanes, axis=0)
        self._counts = self.backend.upload(counts.astype(np.uint8))
        self._l1, self._l2 = map(self.backend.upload, (self.shared.l1, self.shared.l2))

    def _deviation(self, weight: Array, total: Rows) -> Matrix:
        """Weighted standard deviation of stored columns that are not binary (R, m)."""
        first, second = (self.design.cross(weight, self._others, power=k) for k in (1, 2))
        out = self._table(self._others.size)
        self._launch(
            "deviations", first=first, second=second, deviation=out,
            total=self.backend.upload(np.maximum(total, 1e-300)), **self._sizes(self._others.size),
        )  # fmt: skip
        return np.asarray(self.backend.download(out))

    def _sizes(self, n_columns: int) -> dict[str, int]:
        return {"n_columns": n_columns, "n_lanes": self.n_lanes}

    def _table(self, width: int) -> Array:
        return self.backend.empty((self.n_lanes, width), FLOAT)

    def _zeros(self, width: int) -> Array:
        out = self._table(width)
        self._launch("fill", value=0.0, n_rows=width, n_lanes=self.n_lanes, x=out)
        return out

    def _violations(
        self, gradient: Array, beta: Array, penalties: tuple[Array, Array], spread: Array,
        counts: Array,
    ) -> tuple[Array, Rows]:  # fmt: skip
        violation = self._table(gradient.shape[1])
        largest = self.backend.empty((self.n_lanes,), FLOAT)
        self._launch(
            "violations", gradient=gradient, beta=beta, l1=penalties[0], l2=penalties[1],
            spread=spread, counts=counts, unit=self._unit, violation=violation, largest=largest,
            **self._sizes(gradient.shape[1]),
        )  # fmt: skip
        return violation, np.asarray(self.backend.download(largest))

    def signal(self) -> tuple[Rows, NDArray[np.bool_]]:
        p = self.shared.beta.size
        now = self.loss.evaluate(self.loss.repeated(self.loss.offset))
        none = self.backend.upload(np.zeros(p))
        self._unit = self.backend.upload(np.ones(self.n_lanes))
        _, largest = self._violations(
            self.design.cross(now.residual), self._zeros(p), (none, none),
            self.backend.upload(self.spread), self._counts,
        )  # fmt: skip
        return largest, now.is_safe

    def begin(self, share: Rows, unit: Rows) -> None:
        shared, upload = self.shared, self.backend.upload
        q = shared.columns.size
        self._share, self._unit, self.unit = upload(share), upload(unit), unit
        self.curvature = shared.curvature
        self._n_pairs = upload(np.zeros(self.n_lanes, dtype=np.int32))
        self._pairs = upload(np.zeros((self.n_lanes, q, 2 * MAX_SECANT_PAIRS)))
        self._beta = upload(np.repeat(shared.beta[shared.columns][None], self.n_lanes, axis=0))
        box = FIRST_STEP_BOUND / self.spread[:, shared.columns]
        self._arrange(shared.columns, np.ones((q, self.n_lanes), dtype=bool), box)
        self._eta = self.loss.repeated(shared.eta)
        self._before = self.backend.empty(self._eta.shape, FLOAT)

    def _arrange(self, columns: Index, mine: NDArray[np.bool_], box: Matrix) -> None:
        """Put on the device what depends on the working set."""
        upload, spread = self.backend.upload, self.spread[:, columns]
        self.columns, self.mine = columns, mine
        self._chosen: DeviceColumns = self.design.choose(columns)
        self._column = upload(columns.astype(np.int32))
        self._mine = upload(np.ascontiguousarray(mine.T).astype(np.uint8))
        self._may_move, self._movers = self._mine, np.ones(self.n_lanes, dtype=bool)
        self._spread, self._least_box = upload(spread), upload(MIN_STEP_BOUND / spread)
        self._box = upload(box)
        self.least = np.where(mine.T, spread, np.inf).min(axis=1, initial=np.inf)
        self._penalties = (upload(self.shared.l1[columns]), upload(self.shared.l2[columns]))
        self._curvature = upload(self.curvature)
        self._step, self._image, self._size, self._moved = (
            self._table(columns.size) for _ in range(4)
        )

    # --------------------------------------------------------------------------- the iteration

    def evaluate(self) -> LaneValues:
        self._now: DeviceEvaluation = self.loss.evaluate(self._eta)
        return LaneValues(self._now.log_likelihood, self._now.is_safe)

    def differentiate(self) -> None:
        self._gradient = self.design.cross(self._now.residual, self.columns)

    def residual(self) -> Rows:
        return self._violations(
            self._gradient, self._beta, self._penalties, self._spread, self._mine
        )[1]

    def _moved_columns(self, beta: Array, share: Array, moved: Array) -> Rows:
        penalties = self.backend.empty((self.n_lanes,), FLOAT)
        self._launch(
            "move_columns", column=self._column, beta=beta, step=self._step, share=share,
            l1=self._penalties[0], l2=self._penalties[1], moved=moved, penalties=penalties,
            **self._sizes(self.columns.size),
        )  # fmt: skip
        return np.asarray(self.backend.download(penalties))

    def penalty(self) -> Rows:
        return self._moved_columns(
            self._beta, self.backend.upload(np.zeros(self.n_lanes)), self._moved
        )

    def curve(self, slow: NDArray[np.bool_]) -> None:
        """See `ReplicateLanes`: steps are cheap here, a matrix for each lane is not."""

    def step(self, live: NDArray[np.bool_], tolerance: Rows) -> Rows:
        if not np.array_equal(live, self._movers):
            self._may_move = self.backend.upload((self.mine & live).T.astype(np.uint8))
            self._movers = live.copy()
        enough = np.where(live, tolerance * self.unit * self.least, 0.0)
        l1, l2 = self._penalties
        self._launch(
            "minimise_quadratics", curvature=self._curvature, scale=self._share,
            pairs=self._pairs, n_pairs=self._n_pairs, gradient=self._gradient, beta=self._beta,
            l1=l1, l2=l2, box=self._box, may_move=self._may_move,
            tolerance=self.backend.upload(enough), max_pairs=2 * MAX_SECANT_PAIRS,
            max_sweeps=MAX_SWEEPS,
            size=self._size, step=self._step, image=self._image, **self._sizes(self.columns.size),
        )  # fmt: skip
        gains = self.backend.empty((self.n_lanes,), FLOAT)
        self._launch(
            "predicted_gains", column=self._column, gradient=self._gradient, beta=self._beta,
            step=self._step, l1=l1, l2=l2, gains=gains, **self._sizes(self.columns.size),
        )  # fmt: skip
        return np.asarray(self.backend.download(gains))

    def move(self, share: Rows, worse: NDArray[np.bool_] | None) -> Rows:
        if worse is None:
            self._along = self.design.product(self._step, self._chosen)
            self._eta, self._before = self._before, self._eta
            self._beta, self._moved = self._moved, self._beta
        shares = self.backend.upload(share)
        self._launch(
            "move_rows", eta=self._before, along=self._along, share=shares,
            n_rows=self._eta.shape[0], n_lanes=self.n_lanes, moved=self._eta,
        )  # fmt: skip
        return self._moved_columns(self._moved, shares, self._beta)

    def learn(self, share: Rows, live: NDArray[np.bool_]) -> None:
        del self._along  # a large table
        before, sizes = self._gradient, self._sizes(self.columns.size)
        self.differentiate()
        taken = {
            "step": self._step,
            "share": self.backend.upload(share),
            "is_live": self.backend.upload(live.astype(np.uint8)),
        }
        self._launch(
            "learn", column=self._column, image=self._image, before=before,
            gradient=self._gradient, mine=self._mine, max_pairs=2 * MAX_SECANT_PAIRS,
            n_pairs=self._n_pairs, pairs=self._pairs, **taken, **sizes,
        )  # fmt: skip
        self._launch("widen", least=self._least_box, box=self._box, **taken, **sizes)

    # ------------------------------------------------------------------------- the certificate

    def certify(self) -> Rows:
        p = self.shared.beta.size
        self._full = self.design.cross(self._now.residual)
        self._violation, largest = self._violations(
            self._full, self._placed(self._beta, self.columns, p), (self._l1, self._l2),
            self.backend.upload(self._spread_at_risk()), self._counts,
        )  # fmt: skip
        return largest

    def _spread_at_risk(self) -> Matrix:
        spread, others = self.spread, self._others
        if others.size:
            expected = self.loss.expected(self._now.residual)
            weighted = self._deviation(expected, self.loss.sums.total(expected))
            spread = spread.copy()
            own = spread[:, others]
            seen = weighted > MIN_SPREAD_SHARE * own
            spread[:, others] = np.where(seen, np.minimum(own, weighted), own)
        return spread

    def _placed(self, x: Array, to: Index, width: int) -> Array:
        """Numbers of some columns (R, q) among more of them; the rest are 0."""
        out = self._zeros(width)
        self._launch(
            "place_columns", x=x, to=self.backend.upload(to.astype(np.int32)), width=width,
            out=out, **self._sizes(to.size),
        )  # fmt: skip
        return out

    def violation(self) -> tuple[Matrix, NDArray[np.bool_]]:
        found = self.backend.download(self._violation).T
        inside = np.zeros(found.shape, dtype=bool)
        inside[self.columns] = self.mine
        return found, inside

    def take(self, fresh: NDArray[np.bool_]) -> None:
        old = self.columns
        new = np.setdiff1d(np.flatnonzero(fresh.any(axis=1)), old, assume_unique=True)
        columns, mine, box = old, self.mine, self.backend.download(self._box)
        if new.size:
            columns, mine, box = self._append(new, box)
        mine = mine | fresh[columns]
        box = np.where(fresh[columns].T, FIRST_STEP_BOUND / self.spread[:, columns], box)
        self._arrange(columns, mine, box)
        self._gradient = self.backend.upload(self.backend.download(self._full)[:, columns])

    def _append(self, new: Index, box: Matrix) -> tuple[Index, NDArray[np.bool_], Matrix]:
        """Take in columns that no lane had."""
        columns, self.curvature, _ = extended(self.shared, self.columns, self.curvature, new)
        at = np.searchsorted(columns, self.columns)

        def wider(x: AnyArray) -> AnyArray:
            out = np.zeros((x.shape[0], columns.size, *x.shape[2:]), dtype=x.dtype)
            out[:, at] = x
            return out

        for name in ("_pairs", "_beta"):
            kept = self.backend.download(getattr(self, name))
            setattr(self, name, self.backend.upload(wider(kept)))
        return columns, wider(self.mine.T).T, wider(box)

    def information(self, columns: Index, ranges: Features) -> None:
        """See `ReplicateLanes`."""

    def end(self) -> tuple[Matrix, Matrix]:
        beta = np.zeros((self.shared.beta.size, self.n_lanes))
        beta[self.columns] = self.backend.download(self._beta).T
        return beta, np.asarray(self.backend.download(self._eta))
