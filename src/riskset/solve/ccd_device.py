"""Coordinate descent in the memory of a device: the method of the paper, where it was at home.

A coordinate takes four launches, and nothing returns to the host within a sweep: its entries are
spread over rows in risk order; the fused kernel scans all rows, transforms the sums at the events
and adds up the derivatives; the step is taken within the trust region; and the entries move along
it. After a sweep the likelihood and the gradient in all coefficients are evaluated on the device by
the kernels of proximal Newton. The certificate of the answer is the one of any other solver, from a
last evaluation by the CPU.

A GPU shines where a column has many entries; each coordinate costs a pass over all rows, as in the
paper, where the CPU (`solve.ccd`) takes the entries of the column only. Rows that enter late are
refused, and eta that spans more than one exponent holds is left to the CPU's exact sweeps.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from riskset._errors import DeviceError
from riskset._types import AnyArray, Features, Index
from riskset.data.design import Design
from riskset.data.device import DeviceDesign
from riskset.kernels.cuda.backend import Array, Backend
from riskset.kernels.cuda.launch import TILE_ROWS, Launcher
from riskset.model.device import DeviceLoss
from riskset.model.lanes import Part
from riskset.model.loss import Loss
from riskset.solve import newton
from riskset.solve.ccd import MOST_GAIN, TINY, Sweeps, stay_of
from riskset.solve.optimality import Problem, violations
from riskset.solve.result import Solution
from riskset.solve.risk_columns import RiskColumns
from riskset.solve.run import Report

__all__ = ["Coordinates", "DeviceDescent", "DeviceSweeps"]

FLOAT, INT = np.dtype(np.float64), np.dtype(np.int32)
FEW_DIGITS = 1e-6
"""A variance that is less of the second moment is not taken as a difference."""


class _Columns(NamedTuple):
    """Entries of some columns: where each begins and ends, and, on the device, all of them."""

    columns: Index
    begin: Index
    stop: Index
    place: Array
    value: Array
    is_binary: bool


class Coordinates:
    """Steps of single coordinates, in the memory of a backend.

    Parameters
    ----------
    design, loss
        Of the whole data, in risk sets that nobody enters late.
    backend : Backend

    Raises
    ------
    DeviceError
        If rows enter late, or if the memory of the device is too small.
    """

    def __init__(self, design: Design, loss: Loss, backend: Backend) -> None:
        _refuse(loss)
        self.backend, self.launch = backend, Launcher(backend)
        risk, n = loss.risk, loss.risk.order.size
        self.n_rows, self.n_tiles = n, -(-n // TILE_ROWS)
        listed = RiskColumns(design, risk.order)
        every = np.arange(design.n_features)
        self.reach = listed.reach
        self._columns = [
            _Columns(
                *e[:3],
                backend.upload(e.place.astype(np.int32)),
                backend.upload(e.value),
                e.value.size == 0,
            )
            for e in listed.batches(every)
        ]
        event_weight = np.zeros(design.n_rows)
        event_weight[risk.order] = risk.event_weight
        self._score = backend.upload(design.cross(event_weight, runtime=loss.runtime))
        self._row = backend.upload(risk.order.astype(np.int32))
        self._here = backend.upload(np.arange(n, dtype=np.int32))
        self._weight = backend.upload(risk.weight[:, None])
        self._kernel, self._rows, n_chains, width = self._likelihood(loss)
        self._r, self._xr, self._xxr = (backend.empty((n, 1), FLOAT) for _ in range(3))
        for x in (self._xr, self._xxr):
            self.launch("fill", value=0.0, n_rows=n, n_lanes=1, x=x)
        tiles = (n_chains, self.n_tiles)
        self._talk = {
            "ticket": backend.upload(np.zeros(1, dtype=INT)),
            "status": backend.upload(np.zeros(tiles, dtype=INT)),
        }
        self._said = {name: backend.empty((*tiles, width), FLOAT) for name in ("own", "total")}
        self._sums = {name: backend.empty((self.n_tiles,), FLOAT) for name in ("slope", "bend")}
        self._step = backend.empty((1,), FLOAT)

    def _likelihood(self, loss: Loss) -> tuple[str, dict[str, Array | int], int, int]:
        """The kernel, what it reads of the rows, and how many chains of how many sums it has."""
        risk, n = loss.risk, self.n_rows
        last, first = risk.group_ptr[1:] - 1, risk.group_ptr[:-1]
        events, starts = np.zeros(n), np.zeros(n, dtype=np.uint8)
        events[last] = risk.group_events
        starts[first[risk.starts_stratum]] = 1
        rows: dict[str, AnyArray] = {"events": events, "starts": starts}
        if loss.tails:
            stay = stay_of(loss)
            survival = np.zeros((len(stay.survival), n))
            survival[:, last] = stay.survival
            rows |= {
                "later": stay.later,
                "curve": stay.curve.astype(np.int32),
                "survival": survival,
            }
            n_curves = len(stay.survival)
            uploaded = {name: self.backend.upload(x) for name, x in rows.items()}
            return "fg_fused", {**uploaded, "n_curves": n_curves}, 1 + n_curves, 3
        if loss.efron:
            n_tied = np.zeros(n, dtype=np.int32)
            n_tied[last] = risk.group_tied
            rows |= {"is_tied": (risk.event_weight > 0).astype(np.uint8), "n_tied": n_tied}
        uploaded = {name: self.backend.upload(x) for name, x in rows.items()}
        kernel = "efron_fused" if loss.efron else "cox_fused"
        return kernel, {**uploaded}, 1, 7 if loss.efron else 3

    def sweep(
        self,
        active: Index,
        eta: Array,
        shift: Array,
        penalties: tuple[Features, Features],
        state: Sequence[Features],
    ) -> None:
        """One step of each active coordinate in turn.

        Parameters
        ----------
        active : (q,) int64
        eta : (n, 1) Array
            Brought up to date.
        shift : (1, 1) Array
            At least the largest eta.
        penalties : l1, l2 (p,) float64
        state : beta, width, curvature (p,) float64
            As in `ccd_ref.cox_sweep`; brought up to date.
        """
        self.launch(
            "risks", eta=eta, shift=shift, row=self._row, place=self._here, weight=self._weight,
            n_places=self.n_rows, n_lanes=1, r=self._r,
        )  # fmt: skip
        uploaded = [self.backend.upload(x) for x in (*penalties, *state)]
        by_column = dict(zip(("l1", "l2", "beta", "width", "curvature"), uploaded, strict=True))
        is_active = np.zeros(self.reach.size, dtype=bool)
        is_active[active] = True
        for some in self._columns:
            for k in np.flatnonzero(is_active[some.columns]):
                self._visit(some, int(k), eta, shift, by_column)
        for x, on_device in zip(state, uploaded[2:], strict=True):
            x[:] = self.backend.download(on_device)

    def _visit(
        self, some: _Columns, k: int, eta: Array, shift: Array, by_column: dict[str, Array]
    ) -> None:
        """The launches of one coordinate."""
        squares = self._xr if some.is_binary else self._xxr
        values = {"r": self._r, "xr": self._xr, "xxr": squares}
        entries: dict[str, Array | int] = {
            "place": some.place,
            "value": some.value,
            "first": int(some.begin[k]),
            "n_entries": int(some.stop[k] - some.begin[k]),
            "is_binary": int(some.is_binary),
        }
        self.launch("spread_column", **values, **entries)
        self.launch(
            self._kernel, **values, **self._rows, n_rows=self.n_rows, n_tiles=self.n_tiles,
            **self._talk, **self._said, **self._sums,
        )  # fmt: skip
        self.launch(
            "take_step", **self._sums, score=self._score, column=int(some.columns[k]),
            n_tiles=self.n_tiles, n_status=self._talk["status"].size, **self._talk, **by_column,
            step=self._step,
        )  # fmt: skip
        self.launch(
            "move_column", row=self._row, weight=self._weight, shift=shift, **entries,
            step=self._step, eta=eta, **values,
        )  # fmt: skip


def _refuse(loss: Loss) -> None:
    if not DeviceLoss.can_be_made(loss):
        raise DeviceError(
            "a GPU has no coordinate descent for this likelihood.",
            hint="use solver='newton', or device='cpu'.",
        )
    if loss.risk.own.size or any(tail.sets.own.size for tail in loss.tails):
        raise DeviceError(
            "solver='ccd' on a GPU needs rows that are all at risk from the first event on, but "
            "some of them enter later (`entry`).",
            hint="use solver='newton', which takes late entry on a GPU, too, or device='cpu'.",
        )


@dataclass
class DeviceDescent:
    """Fits by coordinate descent on a backend, which keeps the data from one fit to the next."""

    backend: Backend
    _problem: Problem | None = field(default=None, init=False)
    _memory: "_Memory | None" = field(default=None, init=False)

    def fit(
        self,
        design: Design,
        loss: Loss,
        l1: Features,
        l2: Features,
        *,
        tol: float = 1e-8,
        max_iter: int = 200,
        start: Solution | None = None,
        problem: Problem | None = None,
        aliased: NDArray[np.bool_] | None = None,
        report: Report | None = None,
        separate: bool = True,
    ) -> Solution:
        """See `ccd.fit`."""
        _refuse(loss)
        problem = problem or Problem.prepare(design, loss)
        if self._memory is None or problem is not self._problem:
            self._memory = None  # before another takes its place
            self._problem, self._memory = problem, _Memory.of(problem, self.backend)
        return newton.fit(
            design,
            loss,
            l1,
            l2,
            tol=tol,
            max_iter=max_iter,
            start=start,
            problem=problem,
            aliased=aliased,
            report=report,
            separate=separate,
            method=partial(DeviceSweeps, memory=self._memory),
        )


@dataclass(frozen=True)
class _Memory:
    """A problem in the memory of a backend."""

    coordinates: Coordinates
    loss: DeviceLoss
    design: DeviceDesign

    @classmethod
    def of(cls, problem: Problem, backend: Backend) -> "_Memory":
        loss = problem.loss
        part = Part(loss.outcome.weight, None)
        return cls(
            Coordinates(problem.design, loss, backend),
            DeviceLoss(loss, [part], backend),
            DeviceDesign(problem.design, backend),
        )


class _Place(NamedTuple):
    """What the device knows of one linear predictor."""

    eta: Array
    log_likelihood: float
    gradient: Features
    spread: Features
    is_safe: bool


@dataclass(kw_only=True)
class DeviceSweeps(Sweeps):
    """Sweeps on a device; `eta` and `now` are those of `beta` only when the CPU had a look."""

    memory: _Memory
    place: _Place = field(init=False)
    _trial: Array | None = field(default=None, init=False)
    _is_settled: bool = field(default=True, init=False)

    def solve(self) -> None:
        """See `Sweeps.solve`."""
        self.place = self._at(self.memory.coordinates.backend.upload(self.eta[:, None]))
        super().solve()
        self._settle()

    def _at(self, eta: Array) -> _Place:
        """Evaluate on the device."""
        loss, design, backend = self.memory.loss, self.memory.design, self.memory.loss.backend
        now = loss.evaluate(eta)
        gradient = backend.download(design.cross(now.residual))[0]
        spread = self.problem.spread.copy()
        others = np.flatnonzero(~self.problem.design.is_binary)
        if others.size:
            expected = loss.expected(now.residual)
            total = float(loss.sums.total(expected)[0]) or 1.0
            first, second = (
                backend.download(design.cross(expected, others, power=power))[0] / total
                for power in (1, 2)
            )
            variance = second - first**2
            # Where digits are lost, the CPU decides in the end.
            seen = variance > FEW_DIGITS * second
            spread[others[seen]] = np.minimum(spread[others[seen]], np.sqrt(variance[seen]))
        return _Place(eta, float(now.log_likelihood[0]), gradient, spread, bool(now.is_safe[0]))

    def _settle(self) -> None:
        """Evaluate on the CPU, from the coefficients alone."""
        if not self._is_settled:
            loss = self.problem.loss
            along = self.problem.design.product(self.beta, runtime=loss.runtime)
            self.eta = loss.offset + along
            self._evaluate()
            self._is_settled = True

    def _value(self) -> float:
        if not self.place.is_safe:
            self._settle()
            return super()._value()
        return self._penalised(self.place, self.beta)

    def _penalised(self, place: _Place, beta: Features) -> float:
        penalty = float(self.l1 @ np.abs(beta) + 0.5 * (self.l2 @ beta**2))
        return penalty - place.log_likelihood

    def _violations(self) -> Features:
        if not self._is_settled and self.place.is_safe:
            v = violations(self.gradient, self.beta, self.l1, self.l2) / self.place.spread
            v = np.where(self.problem.informative & self.allowed, v, 0.0)
            if v.max(initial=0.0) > self.tol * self.problem.kkt_scale:
                return v
        self._settle()  # the certificate is the CPU's
        return super()._violations()

    def _sweep_kept_sums(self, active: Index, beta: Features) -> bool:
        coordinates, sums = self.memory.coordinates, self.memory.loss.sums
        self._trial = None
        if not self.place.is_safe:
            self._settle()
            return False
        np.minimum(self.width, MOST_GAIN / np.maximum(coordinates.reach, TINY), out=self.width)
        self._trial = self._moved(self.place.eta, self.place.eta, 0.0)
        shift = sums.extremes(self._trial)[1]
        coordinates.sweep(
            active, self._trial, shift, (self.l1, self.l2), (beta, self.width, self.second)
        )
        return True

    def _moved(self, eta: Array, along: Array, share: float) -> Array:
        """``eta + share along`` on the device, in new memory."""
        backend, n_rows = self.memory.loss.backend, eta.shape[0]
        out = backend.empty(eta.shape, FLOAT)
        self.memory.loss.sums.launch(
            "move_rows", eta=eta, along=along, share=backend.upload(np.array([share])),
            n_rows=n_rows, n_lanes=1, moved=out,
        )  # fmt: skip
        return out

    def _accept(self, moved: Features, objective: float) -> bool:
        if self._trial is None:
            return self._accept_exactly(moved, objective)
        beta, before = self.beta + moved, self.place.eta
        place = self._at(self._trial)
        self.n_passes += 1
        if not place.is_safe:
            self._settle()
            return self._accept_exactly(moved, objective)
        if not (self._penalised(place, beta) <= objective + self._rounding(objective)):
            return False
        self.beta, self.place, self.gradient = beta, place, place.gradient
        self._is_settled = False
        self.last_step = moved
        self.last_move = float(self.memory.loss.sums.span(self._moved(place.eta, before, -1.0))[0])
        return True

    def _accept_exactly(self, moved: Features, objective: float) -> bool:
        """As the CPU does; where the device can go on, it will."""
        if not super()._accept(moved, objective):
            return False
        self.place = self._at(self.memory.coordinates.backend.upload(self.eta[:, None]))
        return True
