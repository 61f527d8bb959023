"""Fits of one design under many case weights: the folds of a cross-validation, resamples.

A replicate is a likelihood with other case weights; the design is shared, and a replicate in flight
costs a few numbers a row. Each starts from the solution on the whole data at the same penalty, so
its answer depends neither on the other replicates nor on those before it.
"""

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from riskset._errors import DeviceError
from riskset._runtime import Runtime
from riskset._types import Features, Index, Matrix
from riskset.data.device import DeviceDesign
from riskset.data.working_columns import WorkingColumns
from riskset.engine import Workers
from riskset.kernels.cuda.backend import Backend
from riskset.model.device import DeviceLoss
from riskset.model.loss import Loss
from riskset.model.replicates_likelihood import LANES, LaneLoss, ReplicateWeights
from riskset.solve.exact import Direction
from riskset.solve.finiteness import (
    MAX_PROOF_SPAN,
    FreeColumns,
    ProofFrame,
    RoundingBounds,
    extents,
)
from riskset.solve.fit import fit_by_newton
from riskset.solve.optimality import Problem, in_stored_units
from riskset.solve.replicates_bundle import (
    BundleResult,
    BundleStart,
    ReplicateBundle,
    ReplicateLanes,
)
from riskset.solve.replicates_device import DeviceLanes, bytes_needed
from riskset.solve.replicates_host import HostLanes
from riskset.solve.result import Solution, Status

__all__ = ["ReplicateWeights", "Replicate", "fit_replicates"]

Measure = Callable[
    [Sequence[ReplicateWeights], Matrix, Sequence[Direction], Backend | None], Sequence[Any]
]
"""Called with the rows of some replicates, their linear predictors on *all* rows (n, m), offset
included, if their estimates are infinite the directions of the one, and the device that fitted
them, if any; one answer for each."""

MIN_SHARED_ROWS = 5_000
"""Smaller data are fitted one replicate after the other, with exact curvature."""
MAX_SHARED_COLUMNS = 12_288
"""Of a working set, three times the support: its curvature takes 1.2 GB. With more, replicates are
fitted alone, each with a curvature of its own."""
MIN_ALONE_COLUMNS = 1024
ENTRIES_PER_SQUARE = 10.0
"""On the host, so are those with fewer entries in the support, of size s, than this times s^2:
products with the support then take less time than a matrix."""
NEAR_SHARE, MAX_COPIED_SHARE = 0.6, 0.5
"""Columns whose gradient reaches this share of their penalty are copied for all replicates
together, unless that is a larger share of the design."""
MAX_DEVICE_LANES = 256
"""On a device; more gain nothing."""
MAX_HOST_NUMBERS = 1 << 27
"""Rows times lanes: weights and linear predictors of a batch pass through the host's memory."""
MAX_SPREADS_PER_EVENT = 10.0
"""Spreads by which an event adds to a gradient, at most, when all are taken together."""


@dataclass(frozen=True)
class Replicate:
    """The answer of one replicate; see `Solution`.

    Coefficients are in the user's units, and infinite only if infinite estimates were looked for.
    The residual and the likelihood are those of the replicate's own rows. `measured` is what
    `measure` returned.
    """

    coef: Features
    status: Status
    kkt: float
    n_iter: int
    log_likelihood: float
    measured: Any = None


def fit_replicates(
    problem: Problem,
    whole: Solution,
    l1: Features,
    l2: Features,
    parts: Sequence[Callable[[], ReplicateWeights]],
    *,
    tol: float = 1e-5,
    max_iter: int = 200,
    separation: bool = False,
    measure: Measure | None = None,
    workers: Workers | None = None,
) -> Iterator[Replicate]:
    """Fit every replicate, and yield the answers in order.

    The runtime of the `problem` of the whole data says how many threads work. `whole` is the
    solution on the whole data at the same penalty, which has the strengths `l1` and `l2` (p,) in
    the user's units, on the total log likelihood. `parts` make the weights of a replicate when it
    is its turn. `tol` is a bound on the relative KKT residual of each replicate, over all columns.
    Without `separation`, an unpenalised coefficient whose estimate is infinite stays at a finite
    value that satisfies the conditions to `tol`. Fits run in `workers`, if there are any, instead
    of threads and a GPU.
    """
    runtime = problem.loss.runtime
    tasks = _ReplicateTasks(problem, whole, l1, l2, parts, tol, max_iter, separation, measure)
    if workers is None:
        tasks.on_device = problem.on_device
    if tasks.can_share():
        tasks.share()
    if workers is not None:
        for answers in workers.map(tasks.run, tasks.bundles(workers.n_workers)):
            yield from answers
        return
    n_threads = 1
    if tasks.shared is None or tasks.on_device is None:
        n_threads = min(runtime.n_threads, len(parts))
    if tasks.shared is None:
        tasks.copied  # noqa: B018 - once, before the threads ask for it
    bundles = tasks.bundles(n_threads)
    for first in range(0, len(bundles), max(1, n_threads)):
        for answers in runtime.map(tasks.run, bundles[first : first + n_threads]):
            yield from answers


@dataclass
class _ReplicateTasks:
    """The work on the replicates of one penalty."""

    problem: Problem
    whole: Solution
    l1: Features
    l2: Features
    parts: Sequence[Callable[[], ReplicateWeights]]
    tol: float
    max_iter: int
    separation: bool
    measure: Measure | None
    shared: BundleStart | None = None
    on_device: DeviceDesign | None = None
    """Where lanes are fitted, if not on the host."""
    batch: int = LANES
    """How many at once."""
    ranges: Features = field(init=False)
    sizes: Features = field(init=False)
    """Of the columns that are `free`: see `finite.extents`."""

    @functools.cached_property
    def free(self) -> Index:
        """Columns without a penalty that vary."""
        return np.flatnonzero((self.l1 == 0) & (self.l2 == 0) & self.problem.informative)

    def can_share(self) -> bool:
        """Whether replicates are worth fitting in lanes.

        Whatever their number: a replicate that a resumed run fits alone has the same bits.
        """
        problem = self.problem
        support = np.flatnonzero(self.whole.coef) if self.l1.any() else np.arange(self.l1.size)
        return (
            problem.loss.outcome.n_rows >= MIN_SHARED_ROWS
            and bool(problem.informative.any())
            and bool(np.isfinite(self.whole.coef).all())
            and 3 * support.size <= MAX_SHARED_COLUMNS
            and (self.on_device is not None or not self._is_sparse(support))
            and (LaneLoss.can_be_made(problem.loss) or self.on_device is not None)
        )

    @functools.cached_property
    def copied(self) -> tuple[Index, WorkingColumns] | None:
        """Columns that working sets of most replicates have, if these are large."""
        problem, whole = self.problem, self.whole
        l1, l2 = in_stored_units(problem.design, self.l1, self.l2)
        beta = np.where(np.isfinite(whole.coef), whole.coef, 0.0) * problem.design.scale
        near = np.abs(whole.gradient - l2 * beta) >= NEAR_SHARE * l1
        columns = np.flatnonzero((beta != 0) | near)
        if columns.size <= MIN_ALONE_COLUMNS or columns.size > MAX_COPIED_SHARE * beta.size:
            return None
        return columns, problem.working_columns(columns)

    def _is_sparse(self, support: Index) -> bool:
        """Whether a matrix for all columns that may enter takes longer than products with them."""
        most = ENTRIES_PER_SQUARE * float(support.size) ** 2
        is_wide = min(3 * support.size, self.l1.size) > MIN_ALONE_COLUMNS
        return is_wide and self.problem.design.n_entries(support) <= most

    def share(self) -> None:
        problem = self.problem
        self.ranges, self.sizes = extents(problem.design, problem.loss, self.free)
        self.shared = self._prepared()
        if self.on_device is None:
            return
        self.batch = self._batch(self.shared, self.on_device)
        if self.batch == 0:
            self._go_home()

    def _prepared(self) -> BundleStart:
        def prepare() -> BundleStart:
            return BundleStart.prepare(self.problem, self.whole, self.l1, self.l2)

        try:
            return prepare()
        except DeviceError:
            if not self.problem.give_up_device():
                raise
            return prepare()

    def _go_home(self) -> None:
        """Fit on the host."""
        self.on_device, self.batch = None, LANES
        self.shared = self.shared if LaneLoss.can_be_made(self.problem.loss) else None

    def _batch(self, shared: BundleStart, design: DeviceDesign) -> int:
        """How many lanes the device has memory for; 0: none, and it need not be the device."""
        once, each = bytes_needed(shared, self.problem.loss)
        free = design.backend.memory().free
        count = max(0, free - once) // each
        if count == 0 and self.problem.loss.runtime.device == "cuda":
            raise DeviceError(
                f"one replicate needs {once + each:,} bytes of the GPU's memory in addition to "
                f"the design, but {free:,} are free.",
                hint="use `device='cpu'`, or end other programs that use the GPU (nvidia-smi).",
            )
        most = max(4, min(MAX_DEVICE_LANES, MAX_HOST_NUMBERS // design.design.n_rows))
        return min(count, most) // 4 * 4 or min(count, 1)

    def bundles(self, n_threads: int) -> list[range]:
        """Replicates by the bundle, shared out evenly among the threads."""
        n = len(self.parts)
        if self.shared is None:
            return [range(k, k + 1) for k in range(n)]
        count = -(-n // self.batch)
        count = min(n, -(-count // n_threads) * n_threads)
        return [range(n * b // count, n * (b + 1) // count) for b in range(count)]

    def run(self, numbers: range) -> list[Replicate]:
        """Fit a bundle, on the host if a device fails that was not asked for by name."""
        if self.on_device is not None:
            try:
                return self._run(numbers)
            except DeviceError:
                if not self.problem.give_up_device():
                    raise
            self._go_home()
        # A bundle of a device may be larger than those of the host.
        size = 1 if self.shared is None else self.batch
        starts = range(numbers.start, numbers.stop, size)
        return [one for a in starts for one in self._run(range(a, min(a + size, numbers.stop)))]

    def _run(self, numbers: range) -> list[Replicate]:
        """Fit a bundle, and alone whoever has to be."""
        parts = [self.parts[k]() for k in numbers]
        if self.shared is None:
            return [self._alone(part) for part in parts]
        if self.on_device is None:
            lanes: ReplicateLanes = HostLanes(self.shared, parts)
        else:
            loss = DeviceLoss(self.problem.loss, parts, self.on_device.backend)
            lanes = DeviceLanes(self.shared, self.on_device, loss)
        found = ReplicateBundle(self.shared, lanes, self.tol, self.max_iter).solve()
        # Lanes of the host keep one thread busy, those of a device leave all of them free.
        runtime = Runtime(1) if self.on_device is None else self.problem.loss.runtime
        information = lanes.information(self.free, self.ranges) if self.free.size else None
        is_plain = runtime.map(
            lambda k: (
                bool(found.is_done[k])
                and self._is_plain(
                    found, k, parts[k], None if information is None else information[k]
                )
            ),
            range(len(parts)),
        )
        good = [k for k, plain in enumerate(is_plain) if plain]
        del lanes  # which would take the memory of a device
        backend = None if self.on_device is None else self.on_device.backend
        measured = runtime.map(
            lambda own: self._measure(
                [parts[k] for k in own],
                found.eta if len(own) == found.eta.shape[1] else found.eta[:, own],
                (),
                backend,
            ),
            [good[a : a + self.batch] for a in range(0, len(good), self.batch)],
        )
        of_lanes = {
            k: Replicate(
                found.coef[:, k].copy(),
                "converged",
                float(found.kkt[k]),
                int(found.n_iter[k]),
                float(found.log_likelihood[k]),
                value,
            )
            for k, value in zip(good, itertools.chain(*measured), strict=True)
        }
        return runtime.map(lambda k: of_lanes.get(k) or self._alone(parts[k]), range(len(parts)))

    def _measure(
        self,
        parts: Sequence[ReplicateWeights],
        eta: Matrix,
        directions: Sequence[Direction] = (),
        backend: Backend | None = None,
    ) -> Sequence[Any]:
        if self.measure is None or not parts:
            return [None] * len(parts)
        return self.measure(parts, eta, directions, backend)

    def _is_plain(
        self, found: BundleResult, lane: int, part: ReplicateWeights, information: Matrix | None
    ) -> bool:
        """Whether the unpenalised coefficients are estimable, and finite beyond doubt.

        `information` is theirs (q, q), if it is known.
        """
        problem, design, columns = self.problem, self.problem.design, self.free
        if columns.size == 0:
            return True
        spread, n_events = problem.spread[columns], float(found.n_events[lane])
        eta = np.ascontiguousarray(found.eta[:, lane])

        def likelihood() -> Loss:
            return problem.loss.replicate(part.weight, part.censoring, runtime=Runtime(1))

        if information is None:
            information = likelihood().information(design, eta, columns)
        if not np.isfinite(information).all():
            return False
        free = FreeColumns.of(design, columns, information)
        if not free.are_estimable(spread, n_events):
            return False
        if not self.separation:
            return True
        # Hardly ever does it take the gradient itself to see that a step is short.
        reach = np.maximum(self.ranges, self.sizes)
        rounding = RoundingBounds.of(problem.loss, reach)._replace(n_events=n_events)
        unit = MAX_SPREADS_PER_EVENT * (n_events + problem.kkt_scale)
        most = found.kkt[lane] * unit * spread
        if free.most(most, self.ranges, rounding) < MAX_PROOF_SPAN:
            return True
        return ProofFrame.at(design, likelihood(), eta, columns).is_proof()

    def _alone(self, part: ReplicateWeights) -> Replicate:
        """Fit one replicate by the solver for one likelihood."""
        loss: Loss = self.problem.loss.replicate(part.weight, part.censoring, runtime=Runtime(1))
        problem = Problem.prepare(self.problem.design, loss, self.copied)

        def fit(start: Solution | None) -> Solution:
            return fit_by_newton(
                self.problem.design,
                loss,
                self.l1,
                self.l2,
                tol=self.tol,
                max_iter=self.max_iter,
                start=start,
                problem=problem,
                separate=self.separation,
            )

        solution = fit(self.whole)
        if solution.status == "max_iter":
            # The solution on the whole data may be a bad place to start from, as with huge weights.
            cold = fit(None)
            solution = cold if cold.status != "max_iter" or cold.kkt < solution.kkt else solution
        return Replicate(
            solution.coef,
            solution.status,
            solution.kkt,
            solution.n_iter,
            solution.log_likelihood,
            self._measure([part], solution.eta[:, None], solution.directions)[0],
        )
