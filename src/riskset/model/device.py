"""The likelihood of many replicates at once, in the memory of a device.

As `model.replicates_likelihood` for the CPU, but for Efron's ties and late entry, too, and for any
number of lanes. Only a few numbers for each lane leave the device.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from riskset._types import Matrix, Rows
from riskset.kernels.cuda import scan_plan
from riskset.kernels.cuda.backend import FLOAT, Array, Backend
from riskset.kernels.cuda.launch import STRIDE
from riskset.kernels.cuda.reductions import LaneReductions
from riskset.kernels.risk_sets_cpu import MAX_ETA_SPAN, MIN_TOTAL
from riskset.model.loss import Loss
from riskset.model.replicates_likelihood import ReplicateWeights, tails_of

__all__ = ["DeviceEvaluation", "DeviceLoss"]


class DeviceEvaluation(NamedTuple):
    """The partial likelihood of each lane (R,), and residuals (n, R) in the caller's order.

    The next evaluation writes over the residuals. Where `is_safe` is False, eta spans too much for
    one shift, and the other numbers are not valid.
    """

    log_likelihood: Rows
    residual: Array
    is_safe: NDArray[np.bool_]


class _RunningSum:
    """A `scan_plan.ScanPlan` on the device."""

    def __init__(self, scan: scan_plan.ScanPlan, backend: Backend) -> None:
        self.arrays = {
            name: backend.upload(array) for name, array in zip(scan._fields, scan, strict=True)
        }
        self.n_pieces = scan.piece_ptr.size - 1
        self.n_chunks = scan.chunk_ptr.size - 1

    def of(self, *names: str) -> dict[str, Array]:
        return {name: self.arrays[name] for name in names}


@dataclass(frozen=True)
class _DeviceTail:
    """Rows with a competing event after it, by position; `group` of each."""

    scan: _RunningSum
    row: Array
    place: Array
    group: Array
    weight: Array
    survival: Array
    n_places: int


@dataclass(frozen=True)
class _LateEntryLevel:
    """A `scan_plan.LevelPlan` on the device."""

    half: int
    scan: _RunningSum
    row: Array
    first: Array
    end: Array


class DeviceLoss:
    """Log partial likelihood and its gradient in eta, lane by lane.

    There is a lane for each of the `parts` of the `loss` of the whole data, and `n_lanes` may be
    more: those have weight 0. `carry_on` is as in `Loss.replicate`.
    """

    def __init__(
        self,
        loss: Loss,
        parts: Sequence[ReplicateWeights],
        backend: Backend,
        *,
        carry_on: bool = False,
    ) -> None:
        assert self.can_be_made(loss)
        self.backend = backend
        self.sums = LaneReductions(backend)
        self._launch = self.sums.launch
        self.n_lanes = len(parts) if len(parts) < 2 else -(-len(parts) // 4) * 4
        outcome, risk = loss.outcome, loss.risk
        self.n_rows, self.n_groups = outcome.n_rows, risk.group_events.size
        self._efron = int(loss.efron)
        weight = np.zeros((self.n_rows, self.n_lanes))
        for k, part in enumerate(parts):
            weight[:, k] = part.weight
        self.total_weight: Rows = weight.sum(axis=0)
        self.weight = backend.upload(weight)
        self.is_event = backend.upload(outcome.is_event.astype(np.uint8))
        self.offset = loss.offset
        self._row = backend.upload(risk.order.astype(np.int32))
        group = np.zeros(self.n_rows, dtype=np.int32)
        group[risk.order] = risk.group
        self._group = backend.upload(group)
        self._starts_scan = _RunningSum(
            scan_plan.nested(risk, outcome.is_event, loss.efron), backend
        )
        self._tails = self._upload_tails(loss, parts, weight, carry_on)
        self._levels: list[_LateEntryLevel] = []
        if risk.own.size:
            self._levels = [
                _LateEntryLevel(
                    level.half, _RunningSum(level.scan, backend), *map(backend.upload, level[2:])
                )
                for level in scan_plan.levels(risk, outcome.is_event, loss.efron)
            ]
        self._events = [
            backend.upload(array) for array in scan_plan.events_by_group(risk, outcome.is_event)
        ]
        self._sum_events()

    @staticmethod
    def can_be_made(loss: Loss) -> bool:
        """Whether this likelihood has the form that the kernels are written for."""
        return not (loss.has_intercept or loss.is_limit or loss.approximation is not loss)

    # ------------------------------------------------------------------------------ preparation

    def _upload_tails(
        self, loss: Loss, parts: Sequence[ReplicateWeights], weight: Matrix, carry_on: bool
    ) -> list[_DeviceTail]:
        if loss.censoring is None:
            return []
        tails, backend = [], self.backend
        for rows, ptr, own, survival in tails_of(loss, parts, weight.shape[1], carry_on):
            group = np.repeat(np.arange(self.n_groups, dtype=np.int32), np.diff(ptr))
            tails.append(
                _DeviceTail(
                    _RunningSum(scan_plan.tail(ptr, loss.risk.starts_stratum), backend),
                    backend.upload(rows.astype(np.int32)),
                    backend.upload(np.arange(rows.size, dtype=np.int32)),
                    backend.upload(group),
                    backend.upload(own),
                    backend.upload(survival),
                    rows.size,
                )
            )
        return tails

    def _sum_events(self) -> None:
        self._group_events = self._groups()
        shape = (self.n_groups if self._efron else 0, self.n_lanes)
        self._group_tied = self.backend.empty(shape, np.dtype(np.int32))
        self._launch(
            "sum_events",
            weight=self.weight,
            event_ptr=self._events[0],
            event_row=self._events[1],
            n_groups=self.n_groups,
            is_efron=self._efron,
            n_lanes=self.n_lanes,
            group_events=self._group_events,
            group_tied=self._group_tied,
        )
        self.n_events = self.sums.total(self._group_events)

    def _groups(self) -> Array:
        return self.backend.empty((self.n_groups, self.n_lanes), FLOAT)

    @functools.cached_property
    def _scratch(self) -> tuple[Array, Array, Array, Array, list[Array]]:
        """Sums over risk sets, tied ones, those of tails or levels, residuals, risks of tails."""
        tied = self._groups() if self._efron else self.backend.empty((0, self.n_lanes), FLOAT)
        residual = self.backend.empty((self.n_rows, self.n_lanes), FLOAT)
        risks = [self.backend.empty(tail.weight.shape, FLOAT) for tail in self._tails]
        return self._groups(), tied, self._groups(), residual, risks

    # ------------------------------------------------------------------------------ evaluation

    def repeated(self, x: Rows) -> Array:
        """The same numbers (n,) for every lane."""
        out = self.backend.empty((self.n_rows, self.n_lanes), FLOAT)
        self._launch(
            "repeat_rows",
            x=self.backend.upload(x),
            n_rows=self.n_rows,
            n_lanes=self.n_lanes,
            out=out,
        )
        return out

    def evaluate(self, eta: Array) -> DeviceEvaluation:
        """Likelihood and residuals at `eta` (n, R), offset included."""
        low, shift = self.sums.extremes(eta)
        rest, tied, other, residual, tail_risks = self._scratch
        self._risks(eta, shift, tail_risks)
        if self._levels:
            self._add_levels(rest, tied)
        else:
            self._add_nested(rest, tied)
        for tail, r in zip(self._tails, tail_risks, strict=True):
            self._add_tail(tail, r, rest)
        value, least, handed = self._hazards(rest, tied)
        seen = [self._seen_after(tail, rest) for tail in self._tails]
        if self._levels:
            self._late_residuals(rest, tied, other)
        else:
            self._nested_residuals(rest, tied, handed)
        for tail, r, s in zip(self._tails, tail_risks, seen, strict=True):
            self._launch(
                "tail_residuals", row=tail.row, group=tail.group, r=r, seen=s,
                n_places=tail.n_places, n_lanes=self.n_lanes, residual=residual,
            )  # fmt: skip
        span = self.backend.download(shift)[0] - self.backend.download(low)[0]
        smallest = self.backend.download(self.sums.extremes(least)[0])[0]
        is_safe = (span < MAX_ETA_SPAN) & (smallest > MIN_TOTAL)
        return DeviceEvaluation(self._score(eta, shift) + self.sums.total(value), residual, is_safe)

    def expected(self, residual: Array) -> Array:
        """Expected events of each row (n, R)."""
        out = self.backend.empty((self.n_rows, self.n_lanes), FLOAT)
        self._launch(
            "expected_rows", weight=self.weight, is_event=self.is_event, residual=residual,
            n_rows=self.n_rows, n_lanes=self.n_lanes, expected=out,
        )  # fmt: skip
        return out

    def _score(self, eta: Array, shift: Array) -> Rows:
        row = self._events[1]
        sums = self.backend.empty((-(-row.size // STRIDE), self.n_lanes), FLOAT)
        self._launch(
            "score", eta=eta, shift=shift, weight=self.weight, event_row=row, n_events=row.size,
            n_lanes=self.n_lanes, sums=sums,
        )  # fmt: skip
        return self.sums.total(sums)

    def _risks(self, eta: Array, shift: Array, tail_risks: list[Array]) -> None:
        residual = self._scratch[3]
        own = (self._row, self._row, self.weight, self.n_rows, residual)
        tails = [
            (tail.row, tail.place, tail.weight, tail.n_places, r)
            for tail, r in zip(self._tails, tail_risks, strict=True)
        ]
        for row, place, weight, n_places, r in [own, *tails]:
            self._launch(
                "risks", eta=eta, shift=shift, row=row, place=place, weight=weight,
                n_places=n_places, n_lanes=self.n_lanes, r=r,
            )  # fmt: skip

    def _pieces(self, scan: _RunningSum, r: Array) -> Array:
        sums = self.backend.empty((scan.n_pieces, self.n_lanes), FLOAT)
        self._launch(
            "sum_pieces", r=r, **scan.of("place", "piece_ptr"), n_pieces=scan.n_pieces,
            n_lanes=self.n_lanes, sums=sums,
        )  # fmt: skip
        return sums

    def _carried(self, scan: _RunningSum, handed: Array, *, backward: bool) -> Array:
        self._launch(
            "carry", **scan.of("has_start"), n_chunks=scan.n_chunks, is_backward=int(backward),
            n_lanes=self.n_lanes, handed=handed,
        )  # fmt: skip
        return handed

    def _chunks(self, scan: _RunningSum) -> Array:
        return self.backend.empty((scan.n_chunks, self.n_lanes), FLOAT)

    def _carried_pieces(self, scan: _RunningSum, sums: Array, *, backward: bool) -> Array:
        handed = self._chunks(scan)
        self._launch(
            "sum_chunks", sums=sums, **scan.of("group_piece", "starts", "chunk_ptr"),
            n_chunks=scan.n_chunks, is_backward=int(backward), n_lanes=self.n_lanes,
            handed=handed,
        )  # fmt: skip
        return self._carried(scan, handed, backward=backward)

    def _add_nested(self, rest: Array, tied: Array) -> None:
        scan = self._starts_scan
        sums = self._pieces(scan, self._scratch[3])
        self._launch(
            "add_nested", sums=sums, carried=self._carried_pieces(scan, sums, backward=False),
            **scan.of("group_piece", "tied_piece", "starts", "chunk_ptr"),
            n_chunks=scan.n_chunks, is_efron=self._efron, n_lanes=self.n_lanes, rest=rest,
            tied=tied,
        )  # fmt: skip

    def _add_tail(self, tail: _DeviceTail, r: Array, total: Array) -> None:
        scan = tail.scan
        sums = self._pieces(scan, r)
        self._launch(
            "add_tail", sums=sums, carried=self._carried_pieces(scan, sums, backward=True),
            **scan.of("group_piece", "starts", "chunk_ptr"), survival=tail.survival,
            n_chunks=scan.n_chunks, n_lanes=self.n_lanes, total=total,
        )  # fmt: skip

    def _add_levels(self, rest: Array, tied: Array) -> None:
        residual, sizes = self._scratch[3], {"n_groups": self.n_groups, "n_lanes": self.n_lanes}
        self._launch("fill", value=0.0, n_rows=self.n_groups, n_lanes=self.n_lanes, x=rest)
        if self._efron:
            ptr, row = self._events
            self._launch("sum_tied", r=residual, event_ptr=ptr, event_row=row, tied=tied, **sizes)
        for level in self._levels:
            scan = level.scan
            sums = self._pieces(scan, residual)
            self._launch(
                "add_level", sums=sums, carried=self._carried_pieces(scan, sums, backward=False),
                **scan.of("group_piece", "tied_piece", "starts", "chunk_ptr"),
                n_chunks=scan.n_chunks, half=level.half, rest=rest, **sizes,
            )  # fmt: skip

    def _hazards(self, rest: Array, tied: Array) -> tuple[Array, Array, Array]:
        scan = self._starts_scan
        value, least, handed = (self._chunks(scan) for _ in range(3))
        self._launch(
            "hazards", group_events=self._group_events, group_tied=self._group_tied,
            **scan.of("starts", "chunk_ptr"), n_chunks=scan.n_chunks, is_efron=self._efron,
            n_lanes=self.n_lanes, rest=rest, tied=tied, value=value, least=least, handed=handed,
        )  # fmt: skip
        return value, least, handed

    def _seen_after(self, tail: _DeviceTail, hazard: Array) -> Array:
        scan, seen, handed = tail.scan, self._groups(), self._chunks(tail.scan)
        shared = {"hazard": hazard, "survival": tail.survival, **scan.of("starts", "chunk_ptr")}
        sizes = {"n_chunks": scan.n_chunks, "n_lanes": self.n_lanes}
        self._launch("sum_tail_hazards", **shared, **sizes, handed=handed)
        carried = self._carried(scan, handed, backward=False)
        self._launch("seen_after", **shared, **sizes, carried=carried, seen=seen)
        return seen

    def _nested_residuals(self, hazard: Array, tied: Array, handed: Array) -> None:
        scan = self._starts_scan
        self._launch(
            "seen_nested", **scan.of("starts", "chunk_ptr"),
            carried=self._carried(scan, handed, backward=True), n_chunks=scan.n_chunks,
            is_efron=self._efron, n_lanes=self.n_lanes, hazard=hazard, hazard_tied=tied,
        )  # fmt: skip
        self._launch(
            "residuals", weight=self.weight, is_event=self.is_event, group=self._group,
            seen=hazard, seen_tied=tied, n_rows=self.n_rows, is_efron=self._efron,
            n_lanes=self.n_lanes, residual=self._scratch[3],
        )  # fmt: skip

    def _late_residuals(self, hazard: Array, tied: Array, seen: Array) -> None:
        for level in self._levels:
            scan, sizes = level.scan, {"half": level.half, "n_lanes": self.n_lanes}
            if level.half:
                shared = {"hazard": hazard, **scan.of("starts", "chunk_ptr")}
                counts = {"n_chunks": scan.n_chunks, "n_groups": self.n_groups, **sizes}
                handed = self._chunks(scan)
                self._launch("sum_level", **shared, **counts, handed=handed)
                carried = self._carried(scan, handed, backward=True)
                self._launch("seen_level", **shared, **counts, carried=carried, seen=seen)
            self._launch(
                "level_residuals", row=level.row, first=level.first, end=level.end,
                weight=self.weight, is_event=self.is_event, hazard=hazard, hazard_tied=tied,
                seen=seen, n_places=level.row.size, is_efron=self._efron,
                residual=self._scratch[3], **sizes,
            )  # fmt: skip
