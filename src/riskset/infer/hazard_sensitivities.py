"""Restricted means and incidences from increments of hazards, and their derivatives."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from riskset._types import Index, Matrix, Rows
from riskset.model.baseline import Baseline
from riskset.model.incidence import hazard_increments

__all__ = ["JointHazards", "RestrictedMeanSlopes"]

MAX_LOG_HAZARD = 700.0
"""Hazards of larger logarithms are not finite; nobody survives a smaller one."""


@dataclass(frozen=True, eq=False)
class RestrictedMeanSlopes:
    """Mean survival times up to `until` (m,) of a stratum with event times (M,).

    `log_hazard` (M,) are the logs of the increments for a linear predictor of 0, and `eta` (k,) are
    those of the rows.
    """

    time: Rows
    log_hazard: Rows
    eta: Rows
    until: Rows

    def predict(self, rows: Index) -> tuple[Matrix, list[NDArray[np.float64]]]:
        """Means (b, m) of some rows, and their derivatives in each log increment (b, m, M)."""
        log_hazard = self.log_hazard + self.eta[rows, None]
        hazard = np.exp(np.minimum(log_hazard, MAX_LOG_HAZARD))
        mean, slopes = _restricted_mean(self.time, hazard, self.until)
        return mean, [slopes]


def _restricted_mean(time: Rows, hazard: Matrix, until: Rows) -> tuple[Matrix, NDArray[np.float64]]:
    r"""Mean survival time (b, m) up to some times (m,), and its derivatives (b, m, M).

    .. math:: \mu(\tau) = \int_0^\tau S(u) \, du, \qquad
        \frac{\partial \mu}{\partial \log h_g} = -h_g \int_{t_g}^\tau S(u) \, du

    with the increments h (b, M) of rows at the event times (M,) and :math:`S = e^{-\sum h}`.
    """
    ends = np.append(time, np.inf)[1:]
    spans = np.clip(np.minimum(ends, until[:, None]) - time, 0.0, None)
    with np.errstate(over="ignore"):
        area = np.exp(-np.cumsum(hazard, axis=1))[:, None, :] * spans
    rest = np.cumsum(area[:, :, ::-1], axis=2)[:, :, ::-1]
    start = np.minimum(until, time[0]) if time.size else until
    mean = start + area.sum(axis=2)
    with np.errstate(invalid="ignore"):
        slopes = np.where(rest > 0, -hazard[:, None, :] * rest, 0.0)
    return mean, slopes


def _survival(
    hazards: NDArray[np.float64], seen: Index
) -> tuple[Matrix, list[NDArray[np.float64]]]:
    r"""Probability of no event of any cause after `seen` (m,) of the times, and its derivatives.

    :math:`S = e^{-\sum_j \sum_u h_{ju}}` (b, m), with derivatives :math:`-h_{jg} S` (b, m, T) in
    the log of each increment of `hazards` (J, b, T).
    """
    total = np.cumsum(hazards.sum(axis=0), axis=1)
    total = np.concatenate([np.zeros((total.shape[0], 1)), total], axis=1)
    survival = np.exp(-total[:, seen])
    inside = np.arange(hazards.shape[2]) < seen[:, None]
    return survival, [np.where(inside, -h[:, None, :] * survival[:, :, None], 0.0) for h in hazards]


def _incidence(
    hazards: NDArray[np.float64], cause: int, seen: Index
) -> tuple[Matrix, list[NDArray[np.float64]]]:
    r"""Incidence (b, m) of a cause after `seen` (m,) of the times, and its derivatives.

    With :math:`h_u` the sum of the increments of all causes, S their survival and :math:`a_u = (1 -
    e^{-h_u}) / h_u`, the incidence of cause k is that of `riskset.model.incidence` and

    .. math:: \frac{\partial F_k(t)}{\partial \log h_{jg}} = h_{jg} \left( S(g-) \left(
        \delta_{jk} a_g + \frac{h_{kg}}{h_g} (e^{-h_g} - a_g) \right) - (F_k(t) - F_k(g)) \right)

    `hazards` are (J, b, T), the derivatives (b, m, T) for each cause.
    """
    incidence, direct = _increments(hazards, cause)
    padded = np.concatenate([np.zeros((incidence.shape[0], 1)), incidence], axis=1)
    found = padded[:, seen]
    inside = np.arange(incidence.shape[1]) < seen[:, None]
    later = found[:, :, None] - incidence[:, None, :]
    return found, [
        np.where(inside, hazard[:, None, :] * (own[:, None, :] - later), 0.0)
        for hazard, own in zip(hazards, direct, strict=True)
    ]


def _increments(hazards: NDArray[np.float64], cause: int) -> tuple[Matrix, list[Matrix]]:
    """Incidence (b, T) of a cause, and how each cause's increments change that of their time.

    The latter are the first terms of the derivatives of `_incidence`, without the factor
    :math:`h_{jg}`.
    """
    total = hazards.sum(axis=0)
    before = np.cumsum(total, axis=1) - total
    start = np.exp(-np.maximum(before, 0.0))
    some = total > 0
    safe = np.where(some, total, 1.0)
    a = np.where(some, -np.expm1(-total) / safe, 1.0)
    own = hazards[cause]
    incidence = np.cumsum(start * a * own, axis=1)
    shared = start * (own / safe) * (np.exp(-total) - a)
    return incidence, [shared + start * a if j == cause else shared for j in range(len(hazards))]


def _time_lost(
    hazards: NDArray[np.float64], cause: int, spans: Matrix
) -> tuple[Matrix, list[NDArray[np.float64]]]:
    r"""Mean time lost to a cause (b, m), and its derivatives (b, m, T) for each cause.

    With the lengths w of the steps of the incidence up to the ends (m, T), it is
    :math:`\int_0^\tau F_k(u) \, du = \sum_l w_l F_{kl}`, so that its derivatives are

    .. math:: h_{jg} \left( (b_{jg} + F_{kg}) \sum_{l \ge g} w_l - \sum_{l \ge g} w_l F_{kl}
        \right)

    with b the first term of the derivatives of `_incidence`.
    """
    incidence, direct = _increments(hazards, cause)
    rest = _later(spans)
    away = _later(incidence[:, None, :] * spans)
    return incidence @ spans.T, [
        hazard[:, None, :] * ((own + incidence)[:, None, :] * rest - away)
        for hazard, own in zip(hazards, direct, strict=True)
    ]


def _time_without(
    hazards: NDArray[np.float64], first: Rows, spans: Matrix
) -> tuple[Matrix, list[NDArray[np.float64]]]:
    """Mean time without an event of any cause (b, m), and its derivatives, as `_time_lost`.

    `first` (m,) is the time before the first step.
    """
    survival = np.exp(-np.cumsum(hazards.sum(axis=0), axis=1))
    area = survival[:, None, :] * spans
    rest = _later(area)
    return first + area.sum(axis=2), [-hazard[:, None, :] * rest for hazard in hazards]


def _later(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum of each value and all later ones along the last axis."""
    return np.asarray(np.cumsum(values[..., ::-1], axis=-1)[..., ::-1])


@dataclass(frozen=True, eq=False)
class JointHazards:
    """Increments of the hazards of all causes in a window of time of one stratum.

    `grid` (T,) are the event times of any cause, `log_hazard` (J, T) the logs of the increments for
    a linear predictor of 0, and `eta` (J, k) those of the rows. `own` are the positions in the grid
    of the event times of each cause, the first of which is the event time number `first` of
    `n_steps` of the cause; `seen` (m,) are the numbers of times of the grid up to those asked for.
    """

    grid: Rows
    log_hazard: Matrix
    eta: NDArray[np.float64]
    own: tuple[Index, ...]
    first: tuple[int, ...]
    n_steps: tuple[int, ...]
    seen: Index

    @classmethod
    def of(
        cls,
        baselines: Sequence[Baseline],
        stratum: int,
        eta: NDArray[np.float64],
        after: float,
        times: Rows,
    ) -> "JointHazards":
        """In the window from `after`, which is not in it, to the last of `times`."""
        grid, log_hazard = hazard_increments(baselines, stratum, float(times.max(initial=-np.inf)))
        inside = grid > after
        grid, log_hazard = grid[inside], log_hazard[:, inside]
        own, first, n_steps = [], [], []
        for baseline in baselines:
            ends = baseline.stratum_ptr[stratum : stratum + 2]
            time = baseline.time[slice(*ends)]
            start = int(np.searchsorted(time, after, side="right"))
            own.append(np.flatnonzero(np.isin(grid, time)))
            first.append(start)
            n_steps.append(time.size)
        seen = np.searchsorted(grid, times, side="right")
        return cls(grid, log_hazard, eta, tuple(own), tuple(first), tuple(n_steps), seen)

    def predict(self, rows: Index, cause: int | None) -> tuple[Matrix, list[NDArray[np.float64]]]:
        """Incidence of a cause, or survival (None), and derivatives in each cause's increments."""
        hazards = self._hazards(rows)
        if cause is None:
            found, slopes = _survival(hazards, self.seen)
        else:
            found, slopes = _incidence(hazards, cause, self.seen)
        return found, self._by_step(slopes)

    def areas(
        self, rows: Index, cause: int | None, until: Rows
    ) -> tuple[Matrix, list[NDArray[np.float64]]]:
        """Mean time lost to a cause, or without any event (None), from 0 to `until` (m,).

        With the derivatives in each cause's increments, as of `predict`.
        """
        ends = np.append(self.grid, np.inf)[1:]
        spans = np.clip(np.minimum(ends, until[:, None]) - self.grid, 0.0, None)
        if cause is None:
            first = np.minimum(until, self.grid[0]) if self.grid.size else until
            found, slopes = _time_without(self._hazards(rows), first, spans)
        else:
            found, slopes = _time_lost(self._hazards(rows), cause, spans)
        return found, self._by_step(slopes)

    def _hazards(self, rows: Index) -> NDArray[np.float64]:
        """Increments (J, b, T) of some rows."""
        log_hazards = self.log_hazard[:, None, :] + self.eta[:, rows, None]
        return np.asarray(np.exp(np.minimum(log_hazards, MAX_LOG_HAZARD)))

    def _by_step(self, slopes: list[NDArray[np.float64]]) -> list[NDArray[np.float64]]:
        """Derivatives in the increments of the grid, as those of the event times of each cause."""
        out = []
        for slope, own, first, size in zip(slopes, self.own, self.first, self.n_steps, strict=True):
            steps = np.zeros((*slope.shape[:2], size))
            steps[:, :, first : first + own.size] = slope[:, :, own]
            out.append(steps)
        return out
