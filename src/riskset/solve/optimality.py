"""When is an answer an answer: the optimality conditions and the residual that certifies them."""

import functools
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from riskset._errors import DeviceError
from riskset._runtime import Runtime
from riskset._types import Features, Index, Matrix, Rows
from riskset.data.design import Design
from riskset.data.device import DeviceDesign
from riskset.kernels.cuda import device
from riskset.model.cox import Evaluation
from riskset.model.curvature import sampled_information
from riskset.model.design_sums import DesignSums, DeviceSums, HostSums
from riskset.model.device import DeviceLoss
from riskset.model.loss import Loss, bare
from riskset.model.replicates_likelihood import ReplicateWeights
from riskset.model.risk_set_components import components, varying

__all__ = ["MIN_SPREAD_SHARE", "Problem", "violations"]

MIN_SIGNAL_PER_EVENT = 1e-12
MIN_DIFFERENCE_SHARE = 1e-6
"""A variance that is less of the second moment is not taken as a difference."""
MIN_VARIANCE_SHARE = 1e-16
"""One that is less yet counts as none: rounding of gradients is no smaller than that of z."""
MIN_SPREAD_SHARE = 64 * float(np.finfo(np.float64).eps)
"""Nor does a spread at risk that is less of that of all rows: gradients have no such digits."""


def violations(gradient: Features, beta: Features, l1: Features, l2: Features) -> Features:
    r"""Violation of each coordinate's optimality condition.

    With :math:`u_j = g_j - l_{2j} \beta_j`,

    .. math::
        v_j = |u_j - l_{1j} \mathrm{sign}(\beta_j)| \text{ if } \beta_j \ne 0,
        \text{ else } \max(|u_j| - l_{1j}, 0)

    Parameters
    ----------
    gradient : (q,) float64
        Of the log likelihood.
    """
    u = gradient - l2 * beta
    return np.where(beta != 0.0, np.abs(u - l1 * np.sign(beta)), np.maximum(np.abs(u) - l1, 0.0))


@dataclass(frozen=True)
class Problem:
    """A design and a likelihood, with what every fit on them needs to know once.

    Attributes
    ----------
    spread : (p,) float64
        Weighted standard deviation of each stored column, 1 for binary ones: residuals are
        divided by it, so that they do not depend on the units of a column.
    informative : (p,) bool
        Columns that vary within at least one risk set.
    null : Evaluation
        The likelihood at coefficients 0.
    gradient_at_zero : (p,) float64
        In stored units.
    kkt_scale : float
        Largest gradient at 0 per spread, the unit of the relative residual; 1 without any signal.
    """

    design: Design
    loss: Loss
    spread: Features
    informative: NDArray[np.bool_]
    null: Evaluation
    gradient_at_zero: Features
    kkt_scale: float

    @classmethod
    def prepare(cls, design: Design, loss: Loss) -> "Problem":
        """Evaluate at 0 and look at every column once."""
        spread = _spread(design, loss)
        informative = varying(design, *components(loss), loss.runtime)
        spread[~informative | (spread <= 0)] = 1.0
        return cls(design, loss, spread, informative, *_at_zero(design, loss, spread, informative))

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

    def sampled_information(
        self, eta: Any, columns: Index, n_samples: int, *, raise_rare: bool = True
    ) -> Matrix:
        """See `model.curvature.sampled_information`."""
        sums = self.sums if raise_rare else None  # collinearity is judged by the host
        return sampled_information(
            self.loss, self.design, eta, columns, n_samples, raise_rare=raise_rare, sums=sums
        )

    @property
    def bare(self) -> Loss:
        """The likelihood without offsets and weights, which decides what can be estimated."""
        return bare(self.loss)

    def at_rest(self) -> Any:
        """Linear predictors of 0, without the offset."""
        return np.zeros(self.design.n_rows)

    def varies(self, weights: Features, tolerance: float) -> bool:
        """Whether a combination of columns (p,) varies by more within some component."""
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

    def residual(
        self,
        now: Evaluation,
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
        spread = np.minimum(self.spread, self.spread_at_risk(now, sums))
        return np.where(self.informative, violations(gradient, beta, l1, l2), 0.0) / spread

    def spread_at_risk(self, now: Evaluation, sums: DesignSums | None = None) -> Features:
        """Standard deviation of each stored column among those expected to fail, 1 if binary.

        Parameters
        ----------
        sums : Sums, optional
            Who reads the design; by default the host.
        """
        spread = self.spread.copy()
        others = np.flatnonzero(~self.design.is_binary)
        if others.size:
            sums = sums or HostSums(self.design, self.loss.runtime)
            weighted = _deviation(sums, now.expected, others)
            own = spread[others]
            spread[others] = np.where(weighted > MIN_SPREAD_SHARE * own, weighted, own)
        return spread


def _at_zero(
    design: Design, loss: Loss, spread: Features, informative: NDArray[np.bool_]
) -> tuple[Evaluation, Features, float]:
    """The likelihood at coefficients 0, its gradient, and the unit of residuals."""
    null = loss.evaluate(loss.offset)
    gradient = design.cross(null.residual, runtime=loss.runtime)
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
    mean = sums.cross(weight, columns) / total
    square = sums.cross(weight, columns, power=2) / total
    variance = square - mean**2
    for k in np.flatnonzero(variance < MIN_DIFFERENCE_SHARE * square):
        z = sums.design.stored(columns[k : k + 1])[:, 0] - mean[k]
        variance[k] = weight @ z**2 / total
    seen = variance > MIN_VARIANCE_SHARE * square
    return np.asarray(np.sqrt(np.where(seen, variance, 0.0)))
