"""What a minimisation asks of the rows, of the host's or of those on a device.

Linear predictors and what is made of them stay where they are: to `solve.prox_newton` they are
opaque.
"""

import functools
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from riskset._types import Features, Index, Rows
from riskset.kernels.cuda.backend import Array
from riskset.model.design_sums import DesignSums, HostSums
from riskset.solve.optimality import Problem

__all__ = ["DeviceRows", "HostRows", "RowOperator", "EtaTooWide"]


class EtaTooWide(Exception):  # noqa: N818  (no error: the host can go on)
    """The linear predictors span more than a device's kernels hold."""


class RowOperator(Protocol):
    """Passes over the rows, `eta` and `along` being theirs."""

    sums: DesignSums

    def at(self, beta: Features) -> Any:
        """The linear predictor of coefficients in stored units, offset included."""

    def evaluate(self, eta: Any) -> Any:
        """The likelihood, with `log_likelihood` and `expected`."""

    def cross(self, now: Any, columns: Index | None = None) -> Features:
        """Gradient of the log likelihood."""

    def along(self, step: Features, columns: Index) -> Any:
        """What a step adds to the linear predictor."""

    def span(self, along: Any) -> float:
        """Its range over all rows."""

    def moved(self, eta: Any, share: float, along: Any) -> Any:
        """``eta + share along``."""

    def home(self, eta: Any) -> Rows:
        """A linear predictor in the memory of the host."""


class HostRows:
    """Passes by the CPU."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.sums: DesignSums = HostSums(problem.design, problem.loss.runtime)

    def at(self, beta: Features) -> Any:
        """See `RowOperator`."""
        problem = self.problem
        if not beta.any():
            return problem.loss.offset.copy()
        return problem.loss.offset + problem.design.product(beta, runtime=problem.loss.runtime)

    def evaluate(self, eta: Any) -> Any:
        """See `RowOperator`."""
        return self.problem.loss.evaluate(eta)

    def cross(self, now: Any, columns: Index | None = None) -> Features:
        """See `RowOperator`."""
        return self.sums.cross(now.residual, columns)

    def along(self, step: Features, columns: Index) -> Any:
        """See `RowOperator`."""
        return self.problem.design.product(step, columns, runtime=self.problem.loss.runtime)

    def span(self, along: Any) -> float:
        """See `RowOperator`."""
        return float(np.ptp(along))

    def moved(self, eta: Any, share: float, along: Any) -> Any:
        """See `RowOperator`."""
        return eta + share * along

    def home(self, eta: Any) -> Rows:
        """See `RowOperator`."""
        return np.asarray(eta)


@dataclass(frozen=True)
class _DeviceEvaluated:
    """The likelihood at a linear predictor on a device."""

    passes: "DeviceRows"
    eta: Array
    log_likelihood: float

    @functools.cached_property
    def expected(self) -> Rows:
        """Expected events of each row, on the host."""
        loss = self.passes.loss
        return self.passes.column(loss.expected(self.passes.residual(self)))


class DeviceRows:
    """Passes by a device, in one lane."""

    def __init__(self, problem: Problem) -> None:
        assert problem.on_device is not None
        self.loss, self.design = problem.device_loss, problem.on_device
        self.sums = problem.sums
        self._backend = self.design.backend
        self._latest: tuple[Array, Array] | None = None
        """Where residuals were computed last, and they."""
        self._chosen = self.design.choose(np.zeros(0, dtype=np.int64))

    def column(self, x: Array) -> Rows:
        """Numbers (n, 1), on the host."""
        return np.asarray(self._backend.download(x)[:, 0])

    def at(self, beta: Features) -> Any:
        """See `RowOperator`."""
        offset = self._backend.upload(self.loss.offset[:, None])
        columns = np.flatnonzero(beta)
        return self.moved(offset, 1.0, self.along(beta[columns], columns))

    def evaluate(self, eta: Any) -> Any:
        """See `RowOperator`; raises `EtaTooWide`."""
        now = self.loss.evaluate(eta)
        if not now.is_safe[0]:
            self._latest = None
            raise EtaTooWide
        self._latest = eta, now.residual
        return _DeviceEvaluated(self, eta, float(now.log_likelihood[0]))

    def residual(self, now: Any) -> Array:
        """Residuals (n, 1), which another evaluation may have written over."""
        if self._latest is None or self._latest[0] is not now.eta:
            self._latest = now.eta, self.loss.evaluate(now.eta).residual
        return self._latest[1]

    def cross(self, now: Any, columns: Index | None = None) -> Features:
        """See `RowOperator`."""
        found = self.design.cross(self.residual(now), columns)
        return np.asarray(self._backend.download(found)[0])

    def along(self, step: Features, columns: Index) -> Any:
        """See `RowOperator`."""
        if not np.array_equal(columns, self._chosen.columns):
            self._chosen = self.design.choose(columns)
        return self.design.product(self._backend.upload(step[None]), self._chosen)

    def span(self, along: Any) -> float:
        """See `RowOperator`."""
        return float(self.loss.sums.span(along)[0])

    def moved(self, eta: Any, share: float, along: Any) -> Any:
        """See `RowOperator`."""
        out = self._backend.empty(eta.shape, eta.dtype)
        self.loss.sums.launch(
            "move_rows", eta=eta, along=along, share=self._backend.upload(np.array([share])),
            n_rows=eta.shape[0], n_lanes=1, moved=out,
        )  # fmt: skip
        return out

    def home(self, eta: Any) -> Rows:
        """See `RowOperator`."""
        return self.column(eta)
