"""When is an answer an answer: the optimality conditions and the residual that certifies them."""

import functools
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from riskset._errors import DeviceError
from riskset._runtime import Runtime
from riskset._types import Features, Index, Matrix, Rows
from riskset.data.column_storage import DenseColumns
from riskset.data.design import Design
from riskset.data.device import DeviceDesign
from riskset.data.working_columns import WorkingColumns
from riskset.kernels.cuda import device
from riskset.kernels.cuda.backend import Array
from riskset.model.cox import Evaluation, Prepared
from riskset.model.curvature import sampled_information
from riskset.model.curvature_map import CurvatureMap
from riskset.model.design_sums import DesignSums, DeviceSums, HostSums
from riskset.model.device import DeviceLoss
from riskset.model.loss import Loss, bare
from riskset.model.ordered_columns import OrderedColumns
from riskset.model.replicates_likelihood import ReplicateWeights
from riskset.model.risk_set_components import components, informative_columns
from riskset.solve.rows import DeviceRows, HostRows, RowOperator

__all__ = [
    "MIN_SPREAD_SHARE",
    "NewtonProblem",
    "Problem",
    "in_stored_units",
    "in_user_units",
    "violations",
]

MIN_SIGNAL_PER_EVENT = 1e-12
MIN_DIFFERENCE_SHARE = 1e-6
"""A variance that is less of the second moment is not taken as a difference."""
MIN_VARIANCE_SHARE = 1e-16
"""One that is less yet counts as none: rounding of gradients is no smaller than that of z."""
MIN_SPREAD_SHARE = 64 * float(np.finfo(np.float64).eps)
"""Nor does a spread at risk that is less of that of all rows: gradients have no such digits."""


def violations(gradient: Features, beta: Features, l1: Features, l2: Features) -> Features:
    r"""Violation of each coordinate's optimality condition.

    With :math:`u_j = g_j - l_{2j} \beta_j`, g the gradient of the log likelihood,

    .. math::
        v_j = |u_j - l_{1j} \mathrm{sign}(\beta_j)| \text{ if } \beta_j \ne 0,
        \text{ else } \max(|u_j| - l_{1j}, 0)
    """
    u = gradient - l2 * beta
    return np.where(beta != 0.0, np.abs(u - l1 * np.sign(beta)), np.maximum(np.abs(u) - l1, 0.0))


class HasLogLikelihood(Protocol):
    """The likelihood somewhere."""

    @property
    def log_likelihood(self) -> float:
        """Its logarithm."""


@dataclass(frozen=True)
class NewtonProblem(ABC):
    """What every fit of a likelihood to a design needs to know once, wherever the rows are.

    The design has no entries if the rows are elsewhere. `spread` (p,) is the weighted standard
    deviation of each stored column, 1 for binary ones: residuals are divided by it, so that they do
    not depend on the units of a column. `informative` columns (p,) vary within at least one risk
    set. `null` is the likelihood at coefficients 0, and `kkt_scale` the largest gradient there per
    spread, the unit of the relative residual; 1 without any signal.
    """

    design: Design
    spread: Features
    informative: NDArray[np.bool_]
    null: HasLogLikelihood
    gradient_at_zero: Features
    kkt_scale: float

    @property
    @abstractmethod
    def n_events(self) -> float:
        """Weighted number of events."""

    has_map: ClassVar[bool] = True
    """Whether the curvature of the rows is had, as a map or as a matrix of all pairs."""

    @property
    def on_device(self) -> DeviceDesign | None:
        """The design in the memory of a GPU, if that is where its passes should be made."""
        return None

    def give_up_device(self) -> bool:
        """Do without the device from now on, unless it was asked for by name; whether it is so."""
        return False

    @property
    def whole_loss(self) -> Loss | None:
        """The likelihood; None if the rows are elsewhere."""
        return None

    @abstractmethod
    def rows(self) -> RowOperator[Any, Any, Any]:
        """The rows where passes over them are fastest."""

    @abstractmethod
    def final_rows(self) -> RowOperator[Any, Any, Any]:
        """The rows where the certificate is computed."""

    @abstractmethod
    def information(self, eta: Any, columns: Index, now: Any = None) -> Matrix:
        """Observed information of some columns, exact, in stored units; `now` is that at `eta`."""

    @abstractmethod
    def sampled_information(
        self, eta: Any, columns: Index, n_samples: int, now: Any = None
    ) -> Matrix:
        """See `model.curvature.sampled_information`."""

    @abstractmethod
    def information_at_rest(self, columns: Index, n_samples: int | None) -> Matrix:
        """Without offsets, at linear predictors of 0; exact, or from a sample of rows."""

    @abstractmethod
    def working_columns(self, columns: Index) -> WorkingColumns:
        """Columns to apply the curvature with."""

    @abstractmethod
    def curvature_map(self, eta: Rows, columns: WorkingColumns) -> CurvatureMap:
        """Curvature as a map, without a matrix of all pairs."""

    @abstractmethod
    def row_information(self, eta: Rows, now: Any = None) -> Matrix:
        """Observed information (n, n) of the linear predictors, exact."""

    @abstractmethod
    def varies(self, weights: Features, tolerance: float) -> bool:
        """Whether a combination of columns (p,) varies by more within some component."""

    @abstractmethod
    def weighted_deviation(self, now: Any, columns: Index, sums: DesignSums | None) -> Features:
        """Standard deviation of stored columns among those expected to fail.

        `sums` reads the design, by default the host.
        """

    def residual(
        self,
        now: Any,
        gradient: Features,
        beta: Features,
        l1: Features,
        l2: Features,
        sums: DesignSums | None = None,
    ) -> Features:
        """Violations per spread (p,), from stored units; 0 for columns that vary nowhere.

        The spread among those expected to fail counts where it is smaller: a row far from all
        others must not hide the slope that the others see.
        """
        out = np.where(self.informative, violations(gradient, beta, l1, l2), 0.0)
        violated = np.flatnonzero(out)
        out[violated] /= self.unit_spread(now, violated, sums)
        return out

    def unit_spread(self, now: Any, columns: Index, sums: DesignSums | None = None) -> Features:
        """Spread that residuals of some columns are divided by.

        That of all rows, or that among those expected to fail where it is smaller: a row far from
        all others must not hide the slope that the others see.
        """
        spread = self.spread[columns]
        others = np.flatnonzero(~self.design.is_binary[columns])
        if others.size:
            whole = spread[others]
            weighted = self.weighted_deviation(now, columns[others], sums)
            seen = weighted > MIN_SPREAD_SHARE * whole
            spread[others] = np.where(seen, np.minimum(weighted, whole), whole)
        return spread


@dataclass(frozen=True)
class Problem(NewtonProblem):
    """A design and a likelihood on this machine."""

    null: Evaluation
    loss: Loss
    copied: tuple[Index, WorkingColumns] | None = None
    """Columns that other fits have copied already, in increasing order."""

    @classmethod
    def prepare(
        cls,
        design: Design,
        loss: Loss,
        copied: tuple[Index, WorkingColumns] | None = None,
    ) -> "Problem":
        """Evaluate at 0 and look at every column once."""
        spread = _spread(design, loss)
        informative = informative_columns(design, loss)
        spread[~informative | (spread <= 0)] = 1.0
        at_zero = _at_zero(design, loss, spread, informative)
        return cls(design, spread, informative, *at_zero, loss, copied)

    @property
    def n_events(self) -> float:
        return self.loss.n_events

    @property
    def whole_loss(self) -> Loss:
        return self.loss

    def rows(self) -> RowOperator[Any, Any, Any]:
        if self.on_device is None:
            return self.final_rows()
        return DeviceRows(self.device_loss, self.on_device, self.sums)

    def final_rows(self) -> RowOperator[Any, Any, Any]:
        return HostRows(self.design, self.loss, self.null, self.gradient_at_zero)

    @functools.cached_property
    def on_device(self) -> DeviceDesign | None:
        """The design in the memory of a GPU, if that is where its passes should be made."""
        if not DeviceLoss.can_be_made(self.loss):
            return None
        where = self.loss.runtime.device
        try:
            backend = device.backend_for(where, self.design.nbytes, self.design.n_rows)
            return None if backend is None else DeviceDesign(self.design, backend)
        except DeviceError:
            if where == "cuda":
                raise
            return None

    @functools.cached_property
    def device_loss(self) -> DeviceLoss:
        """The likelihood there."""
        assert self.on_device is not None
        part = ReplicateWeights(self.loss.outcome.weight)
        return DeviceLoss(self.loss, [part], self.on_device.backend)

    @functools.cached_property
    def sums(self) -> DesignSums:
        """Who reads the design."""
        if self.on_device is None:
            return HostSums(self.design, self.loss.runtime)
        return DeviceSums(self.on_device)

    def _at_home(self, eta: Rows | Array) -> Rows:
        """Linear predictors in the memory of the host."""
        if not isinstance(eta, Array):
            return eta
        assert self.on_device is not None
        return np.asarray(self.on_device.backend.download(eta)[:, 0])

    def information(self, eta: Rows | Array, columns: Index, now: Any = None) -> Matrix:
        home = self._at_home(eta)
        at_rest = self._information_at_rest
        if at_rest is not None and np.array_equal(columns, at_rest[0]) and not home.any():
            return at_rest[1].copy()
        now = now if isinstance(now, Evaluation) else None  # and not on a device
        prepared = Prepared(now, self.ordered_columns)
        return self.loss.information(self.design, home, columns, prepared)

    def sampled_information(
        self, eta: Rows | Array, columns: Index, n_samples: int, now: Any = None
    ) -> Matrix:
        now = now if isinstance(now, Evaluation) else None  # and not on a device
        return sampled_information(
            self.loss, self.design, self._at_home(eta), columns, n_samples, sums=self.sums, now=now
        )

    def information_at_rest(self, columns: Index, n_samples: int | None) -> Matrix:
        """See `NewtonProblem`; without weights, too. By the host: it judges collinearity."""
        eta = np.zeros(self.design.n_rows)
        if n_samples is None:
            ordered = self.ordered_columns
            if not _is_bare(self.loss):
                return self.bare.information(self.design, eta, columns, Prepared(None, ordered))
            out = self.loss.information(self.design, eta, columns, Prepared(self.null, ordered))
            vars(self)["_information_at_rest"] = columns, out
            return out
        return sampled_information(
            self.loss, self.design, eta, columns, n_samples, raise_rare=False
        )

    def working_columns(self, columns: Index) -> WorkingColumns:
        if self.copied is not None:
            known, copied = self.copied
            at = np.minimum(np.searchsorted(known, columns), known.size - 1)
            if np.array_equal(known[at], columns):
                return replace(copied.some(at), runtime=self.loss.runtime)
        return WorkingColumns.of(self.design, columns, self.loss.runtime)

    def curvature_map(self, eta: Rows, columns: WorkingColumns) -> CurvatureMap:
        return CurvatureMap.at(self.loss, columns, eta)

    def row_information(self, eta: Rows, now: Any = None) -> Matrix:
        every = np.arange(self.design.n_rows)
        now = now if isinstance(now, Evaluation) else None  # and not on a device
        prepared = Prepared(now, self._ordered_rows)
        return self.loss.information(self._ordered_rows.design, eta, every, prepared)

    @functools.cached_property
    def _ordered_rows(self) -> OrderedColumns:
        """A column for each row."""
        n = self.design.n_rows
        each = DenseColumns(np.arange(n), np.eye(n)[None], n)
        names = tuple(map(str, range(n)))
        unit = Design(n, names, names, np.zeros(n), np.ones(n), (each,))
        return OrderedColumns(unit, self.loss.outcome, self.loss.risk)

    _information_at_rest: ClassVar[tuple[Index, Matrix] | None] = None
    """That of the columns of the last call of `information_at_rest`, if it is this likelihood's."""

    @functools.cached_property
    def ordered_columns(self) -> OrderedColumns:
        """Few columns in the order of the risk sets, for the steps of Newton's method."""
        return OrderedColumns(self.design, self.loss.outcome, self.loss.risk)

    @property
    def bare(self) -> Loss:
        """The likelihood without offsets and weights, which decides what can be estimated."""
        return bare(self.loss)

    def varies(self, weights: Features, tolerance: float) -> bool:
        x = self.design.product(weights, runtime=self.loss.runtime)
        rows, component = components(self.loss)
        n_components = int(component.max(initial=-1)) + 1
        high, low = np.full(n_components, -np.inf), np.full(n_components, np.inf)
        np.maximum.at(high, component, x[rows])
        np.minimum.at(low, component, x[rows])
        return bool((high - low > tolerance).any())

    def give_up_device(self) -> bool:
        """Do without the device from now on, unless it was asked for by name; whether it is so."""
        if self.loss.runtime.device == "cuda":
            return False
        self.leave_device()
        vars(self)["on_device"] = None
        return True

    def leave_device(self) -> None:
        """Give its memory back; it is taken again when it is needed."""
        for name in ("on_device", "device_loss", "sums"):
            vars(self).pop(name, None)

    def __getstate__(self) -> dict[str, Any]:
        """Another process has memory of its own."""
        own = {field.name for field in fields(self)}
        return {name: value for name, value in vars(self).items() if name in own}

    def without(self, left_out: NDArray[np.bool_]) -> "Problem":
        """The same with some coefficients held at 0, whatever their columns would gain."""
        return replace(self, informative=self.informative & ~left_out)

    def shifted(self, offset: Rows, runtime: Runtime) -> "Problem":
        """The same with another offset; the unit of residuals is never smaller than before."""
        loss = self.loss.shifted(offset, runtime)
        null, gradient, scale = _at_zero(self.design, loss, self.spread, self.informative)
        return replace(
            self,
            loss=loss,
            null=null,
            gradient_at_zero=gradient,
            kkt_scale=max(scale, self.kkt_scale),
        )

    def weighted_deviation(
        self, now: Evaluation, columns: Index, sums: DesignSums | None
    ) -> Features:
        return _deviation(sums or HostSums(self.design, self.loss.runtime), now.expected, columns)


def _is_bare(loss: Loss) -> bool:
    """Whether `model.loss.bare` changes nothing."""
    risk = loss.risk
    has_event = risk.event_weight > 0
    return not (
        loss.offset.any()
        or loss.tails
        or (risk.weight != 1).any()
        or (risk.event_weight[has_event] != 1).any()
    )


def in_stored_units(design: Design, l1: Features, l2: Features) -> tuple[Features, Features]:
    """Penalties (p,) on coefficients of stored columns, from those on the user's.

    A stored column is the user's divided by `design.scale`, so its coefficient is larger by that.
    """
    return l1 / design.scale, l2 / design.scale / design.scale


def in_user_units(design: Design, l1: Features, l2: Features) -> tuple[Features, Features]:
    """The inverse of `in_stored_units`."""
    return l1 * design.scale, l2 * design.scale * design.scale


def _at_zero(
    design: Design, loss: Loss, spread: Features, informative: NDArray[np.bool_]
) -> tuple[Evaluation, Features, float]:
    """The likelihood at coefficients 0, its gradient, and the unit of residuals."""
    null = loss.evaluate(loss.offset)
    gradient = design.cross(null.residual, runtime=loss.runtime)
    # The gradient at 0 is what the covariates have to say at all. A residual relative to it means
    # the same for a thousand rows and for a million, and whatever the units of time and columns.
    scale = float(np.abs(gradient / spread)[informative].max(initial=0.0))
    return null, gradient, scale if scale > MIN_SIGNAL_PER_EVENT * loss.n_events else 1.0


def _spread(design: Design, loss: Loss) -> Features:
    spread = np.ones(design.n_features)
    others = np.flatnonzero(~design.is_binary)
    if others.size:
        spread[others] = _deviation(HostSums(design, loss.runtime), loss.outcome.weight, others)
    return spread


def _deviation(sums: DesignSums, weight: Rows, columns: Index) -> Features:
    """Weighted standard deviation of stored columns."""
    total = float(weight.sum()) or 1.0  # training rows without an event expect none
    mean, square = sums.moments(weight, columns) / total
    # The difference costs digits where a column lies far from 0: there, once more about the mean.
    variance = square - mean**2
    for k in np.flatnonzero(variance < MIN_DIFFERENCE_SHARE * square):
        z = sums.design.stored(columns[k : k + 1])[:, 0] - mean[k]
        variance[k] = weight @ z**2 / total
    seen = variance > MIN_VARIANCE_SHARE * square
    return np.asarray(np.sqrt(np.where(seen, variance, 0.0)))
