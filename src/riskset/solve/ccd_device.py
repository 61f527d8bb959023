"""Coordinates in the memory of a device: the method of the paper, where it was at home.

A coordinate takes four launches, and nothing returns to the host within a sweep: its entries are
spread over rows in risk order; the fused kernel scans all rows, transforms the sums at the events
and adds up the derivatives; the step is taken within the trust region; and the entries move along
it. Each coordinate costs a pass over all rows, as in the paper, where the CPU takes the entries of
its column only (`kernels.ccd_cpu`).

References
----------
Yang, Schuemie, Ji & Suchard (2024), Journal of Computational and Graphical Statistics 33, 289-302,
doi:10.1080/10618600.2023.2213279, section 2.7.
"""

from collections.abc import Sequence

import numpy as np

from riskset._errors import DeviceError
from riskset._types import AnyArray, Features, Index
from riskset.data.design import Design
from riskset.kernels.ccd_ref import CompetingStay
from riskset.kernels.cuda.backend import FLOAT, Array, Backend
from riskset.kernels.cuda.launch import TILE_ROWS, Launcher
from riskset.model.loss import Loss
from riskset.solve.risk_columns import RiskColumns, RiskOrderEntries

__all__ = ["DeviceSweeps", "stay_of"]


class DeviceSweeps:
    """Steps of single coordinates, in the memory of a backend.

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
            RiskOrderEntries(
                *e[:3], backend.upload(e.place.astype(np.int32)), backend.upload(e.value)
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
            "ticket": backend.upload(np.zeros(1, dtype=np.int32)),
            "status": backend.upload(np.zeros(tiles, dtype=np.int32)),
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
        kernel, sizes, n_chains, width = "cox_fused", {}, 1, 3
        if loss.tails:
            stay = stay_of(loss)
            survival = np.zeros((len(stay.survival), n))
            survival[:, last] = stay.survival
            curve = stay.curve.astype(np.int32)
            rows |= {"later": stay.later, "curve": curve, "survival": survival}
            kernel, sizes, n_chains = "fg_fused", {"n_curves": len(survival)}, 1 + len(survival)
        elif loss.efron:
            n_tied = np.zeros(n, dtype=np.int32)
            n_tied[last] = risk.group_tied
            rows |= {"is_tied": (risk.event_weight > 0).astype(np.uint8), "n_tied": n_tied}
            kernel, width = "efron_fused", 7
        uploaded = {name: self.backend.upload(x) for name, x in rows.items()}
        return kernel, {**uploaded, **sizes}, n_chains, width

    def sweep(
        self,
        active: Index,
        eta: Array,
        shift: Array,
        penalties: tuple[Features, Features],
        state: Sequence[Features],
    ) -> None:
        """One step of each active coordinate in turn.

        `eta` (n, 1), where the sweep starts, and the `state` (beta, width and curvature as in
        `ccd_ref.cox_sweep`) are brought up to date. `shift` (1, 1) is at least the largest eta.
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
        self,
        some: RiskOrderEntries[Array],
        k: int,
        eta: Array,
        shift: Array,
        by_column: dict[str, Array],
    ) -> None:
        """The launches of one coordinate."""
        is_binary = some.value.size == 0
        squares = self._xr if is_binary else self._xxr
        values = {"r": self._r, "xr": self._xr, "xxr": squares}
        entries: dict[str, Array | int] = {
            "place": some.place,
            "value": some.value,
            "first": int(some.begin[k]),
            "n_entries": int(some.stop[k] - some.begin[k]),
            "is_binary": int(is_binary),
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
    if loss.risk.own.size or any(tail.sets.own.size for tail in loss.tails):
        raise DeviceError(
            "`solver='ccd'` on a GPU needs rows that are all at risk from the first event on, but "
            "some of them enter later (`entry`).",
            hint="use `solver='newton'`, which takes late entry on a GPU, too, or `device='cpu'`.",
        )


def stay_of(loss: Loss) -> CompetingStay:
    """Rows with a competing event by their place in risk order, from the tails."""
    n = loss.risk.order.size
    later, curve = np.zeros(n), np.zeros(n, dtype=np.int32)
    place_of = np.empty(int(loss.risk.order.max()) + 1, dtype=np.int64)
    place_of[loss.risk.order] = np.arange(n)
    for k, tail in enumerate(loss.tails):
        place = place_of[tail.sets.order]
        later[place], curve[place] = tail.sets.weight / loss.risk.weight[place], k
    return CompetingStay(later, curve, np.array([tail.survival for tail in loss.tails]))
