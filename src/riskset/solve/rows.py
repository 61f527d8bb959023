"""What a minimisation asks of the rows: of this machine, of a device, or in blocks of a cluster.

`solve.prox_newton` holds the coefficients, (p,) numbers, and decides on steps. All that has a
number for each row stays where the rows are: linear predictors, what a step adds to them, and
evaluations of the likelihood are handed back and forth unopened. So one minimisation serves
`HostRows`, the `DeviceRows` of a GPU, whose memory is far from the processor, and
`solve.block_rows.BlockRows`.
"""

import functools
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from riskset._types import Features, Index, Rows
from riskset.data.design import Design
from riskset.data.device import DeviceDesign
from riskset.data.working_columns import WorkingColumns
from riskset.kernels.cuda.backend import Array
from riskset.model.cox import Evaluation
from riskset.model.design_sums import DesignSums, HostSums
from riskset.model.device import DeviceLoss
from riskset.model.loss import Loss

__all__ = ["DeviceRows", "EtaTooWide", "HostRows", "RowOperator"]

Eta = TypeVar("Eta")
"""A linear predictor, offset included."""
Along = TypeVar("Along")
"""What a step adds to a linear predictor."""
Now = TypeVar("Now")
"""The likelihood at a linear predictor, with `log_likelihood` and `expected`."""


class EtaTooWide(Exception):  # noqa: N818  (no error: the host can go on)
    """The linear predictors span more than a device's kernels hold."""


class RowOperator(Protocol[Eta, Along, Now]):
    """Passes over the rows."""

    @property
    def has_last_word(self) -> bool:
        """Whether an answer is final that is reached here; else the host goes on from it."""

    @property
    def sums(self) -> DesignSums | None:
        """What sums over the design; None: the problem itself."""

    def at(self, beta: Features) -> Eta:
        """The linear predictor of coefficients in stored units."""

    def known_at_zero(self) -> tuple[Now, Features] | None:
        """The likelihood at coefficients 0 and its gradient, if they need no pass."""

    def evaluate(self, eta: Eta) -> Now:
        """The likelihood."""

    def cross(self, now: Now, columns: Index | None = None) -> Features:
        """Gradient of the log likelihood."""

    def along(self, step: Features, columns: Index) -> Along:
        """What a step adds to the linear predictor."""

    def span(self, vector: Along | Eta) -> float:
        """The range over all rows of `along` or of a linear predictor that was evaluated."""

    def moved(self, eta: Eta, share: float, along: Along) -> Eta:
        """``eta + share along``."""

    def home(self, eta: Eta) -> Rows:
        """A linear predictor in the memory of the host; empty if the rows never come here."""

    def intercept_drift(self, now: Now) -> float | None:
        """See `Loss.intercept_drift`.

        None where gradients lack the bounds on rounding that a proof of finiteness rests on.
        """


class HostRows:
    """Rows in the memory of the host."""

    has_last_word = True

    def __init__(self, design: Design, loss: Loss, null: Evaluation, gradient: Features) -> None:
        self.design, self.loss = design, loss
        self.sums: DesignSums | None = HostSums(design, loss.runtime)
        self._at_zero = null, gradient
        self._copied: tuple[Index, WorkingColumns] | None = None

    def use(self, columns: Index, copied: WorkingColumns | None) -> None:
        """Pass over a copy of these columns from now on, if there is one."""
        self._copied = None if copied is None else (columns, copied)

    def at(self, beta: Features) -> Rows:
        if not beta.any():
            return self.loss.offset.copy()
        return self.loss.offset + self.design.product(beta, runtime=self.loss.runtime)

    def known_at_zero(self) -> tuple[Evaluation, Features]:
        return self._at_zero

    def evaluate(self, eta: Rows) -> Evaluation:
        return self.loss.evaluate(eta)

    def cross(self, now: Evaluation, columns: Index | None = None) -> Features:
        if self._copied is not None and columns is self._copied[0]:
            return self._copied[1].cross(now.residual)
        return self.design.cross(now.residual, columns, runtime=self.loss.runtime)

    def along(self, step: Features, columns: Index) -> Rows:
        if self._copied is not None and columns is self._copied[0]:
            return self._copied[1].product(step)
        return self.design.product(step, columns, runtime=self.loss.runtime)

    def span(self, vector: Rows) -> float:
        return float(np.ptp(vector))

    def moved(self, eta: Rows, share: float, along: Rows) -> Rows:
        return eta + along if share == 1.0 else eta + share * along

    def home(self, eta: Rows) -> Rows:
        return eta

    def intercept_drift(self, now: Evaluation) -> float:
        return self.loss.intercept_drift(now)


@dataclass(frozen=True)
class _DeviceEvaluated:
    """The likelihood at a linear predictor on a device."""

    rows: "DeviceRows"
    eta: Array
    log_likelihood: float

    @functools.cached_property
    def expected(self) -> Rows:
        """Expected events of each row, on the host."""
        return self.rows.home(self.rows.loss.expected(self.rows.residual(self)))


class DeviceRows:
    """Rows in the memory of a device, in one lane."""

    has_last_word = False

    def __init__(self, loss: DeviceLoss, design: DeviceDesign, sums: DesignSums) -> None:
        self.loss, self.design = loss, design
        self.sums: DesignSums | None = sums
        self._backend = design.backend
        self._latest: tuple[Array, Array] | None = None
        """The linear predictor whose residuals were computed last, and these."""
        self._chosen = design.choose(np.zeros(0, dtype=np.int64))

    def at(self, beta: Features) -> Array:
        offset = self._backend.upload(self.loss.offset[:, None])
        columns = np.flatnonzero(beta)
        return self.moved(offset, 1.0, self.along(beta[columns], columns))

    def known_at_zero(self) -> None:
        """See `RowOperator`: residuals have to be on the device."""

    def evaluate(self, eta: Array) -> _DeviceEvaluated:
        """See `RowOperator`; raises `EtaTooWide`."""
        now = self.loss.evaluate(eta)
        if not now.is_safe[0]:
            self._latest = None
            raise EtaTooWide
        self._latest = eta, now.residual
        return _DeviceEvaluated(self, eta, float(now.log_likelihood[0]))

    def residual(self, now: _DeviceEvaluated) -> Array:
        """Residuals (n, 1), which another evaluation may have written over."""
        if self._latest is None or self._latest[0] is not now.eta:
            self._latest = now.eta, self.loss.evaluate(now.eta).residual
        return self._latest[1]

    def cross(self, now: _DeviceEvaluated, columns: Index | None = None) -> Features:
        found = self.design.cross(self.residual(now), columns)
        return np.asarray(self._backend.download(found)[0])

    def along(self, step: Features, columns: Index) -> Array:
        if not np.array_equal(columns, self._chosen.columns):
            self._chosen = self.design.choose(columns)
        return self.design.product(self._backend.upload(step[None]), self._chosen)

    def span(self, vector: Array) -> float:
        return float(self.loss.sums.span(vector)[0])

    def moved(self, eta: Array, share: float, along: Array) -> Array:
        out = self._backend.empty(eta.shape, eta.dtype)
        self.loss.sums.launch(
            "move_rows", eta=eta, along=along, share=self._backend.upload(np.array([share])),
            n_rows=eta.shape[0], n_lanes=1, moved=out,
        )  # fmt: skip
        return out

    def home(self, eta: Array) -> Rows:
        return np.asarray(self._backend.download(eta)[:, 0])

    def intercept_drift(self, now: _DeviceEvaluated) -> None:
        """See `RowOperator`: the host makes the proof."""
