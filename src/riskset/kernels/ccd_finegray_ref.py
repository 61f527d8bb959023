"""One coordinate of Fine and Gray's likelihood, and a sweep over many, as the formulas read.

As `ccd_ref` for Cox's: rows up to their time are scanned forwards, rows with a competing event,
which stay at risk after it, backwards.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from riskset._types import AnyArray, Features, Index, Matrix, RiskSets, Rows
from riskset.kernels.ccd_ref import _bounds, _column, coordinate_step
from riskset.kernels.risk_sets_ref import _at_risk, _own_group

__all__ = ["FineGrayState", "CompetingStay", "fg_fused", "fg_move", "fg_state", "fg_sweep"]


class CompetingStay(NamedTuple):
    """Rows with a competing event, which stay in the risk sets of Fine and Gray's model.

    Attributes
    ----------
    later : (n,) float64
        1 / G(time-) of such rows in risk order, 0 for the others.
    curve : (n,) int
        Their censoring curve.
    survival : (K, G) float64
        G(t-) of each curve at the time of each group.
    """

    later: Rows
    curve: AnyArray
    survival: Matrix


class FineGrayState(NamedTuple):
    """As `CoxState`, for the subdistribution hazard.

    Attributes
    ----------
    alive : (G,) float64
        Sum of r over the group's own rows.
    leaving : (K, G) float64
        Sum of r / G(time-) over its rows with a competing event, by curve.
    total, hazard : (G,) float64
    hazard_after : (K, G) float64
        Sum of G(t-) N / D over the groups of the stratum before g, which are later in time.
    square : (G,) float64
        N / D^2 of the group itself.
    sums, sums_after : (G,), (K, G) float64
        Scratch, zero between calls.
    """

    r: Rows
    own: AnyArray
    first: Index
    end: Index
    alive: NDArray[np.float64]
    leaving: Matrix
    total: NDArray[np.float64]
    hazard: NDArray[np.float64]
    hazard_after: Matrix
    square: NDArray[np.float64]
    sums: NDArray[np.float64]
    sums_after: Matrix


def _risks(r: Rows, risk: RiskSets, stay: CompetingStay) -> Matrix:
    """What each row counts in each risk set (G, n)."""
    own, group = _own_group(risk), np.arange(risk.group_events.size)[:, None]
    stratum = np.cumsum(risk.starts_stratum)
    after = (group < own) & (stratum[own] == stratum[:, None])
    weights = stay.survival[stay.curve].T * stay.later if len(stay.survival) else 0.0
    return np.asarray((_at_risk(risk) + after * weights) * r)


def fg_state(eta: Rows, shift: float, risk: RiskSets, stay: CompetingStay) -> FineGrayState:
    """The state at a linear predictor; see `cox_state`."""
    n_groups, n_curves = risk.group_events.size, len(stay.survival)
    state = FineGrayState(
        risk.weight * np.exp(eta[risk.order] - shift),
        *_bounds(risk),
        np.zeros(n_groups),
        np.zeros((n_curves, n_groups)),
        np.zeros(n_groups),
        np.zeros(n_groups),
        np.zeros((n_curves, n_groups)),
        np.zeros(n_groups),
        np.zeros(n_groups),
        np.zeros((n_curves, n_groups)),
    )
    _sum_fg(state, risk, stay)
    return state


def _sum_fg(state: FineGrayState, risk: RiskSets, stay: CompetingStay) -> None:
    n_groups = state.total.size
    state.alive[:] = np.bincount(state.own, state.r, n_groups)
    state.total[:] = _risks(state.r, risk, stay).sum(axis=1)
    used = risk.group_events > 0
    increment = np.zeros(n_groups)
    increment[used] = risk.group_events[used] / state.total[used]
    state.square[:] = 0.0
    state.square[used] = increment[used] / state.total[used]
    for g in range(n_groups):
        state.hazard[g] = increment[g : state.end[g]].sum()
        for k, survival in enumerate(stay.survival):
            before = slice(state.first[g], g)
            state.hazard_after[k, g] = survival[before] @ increment[before]
            mine = (state.own == g) & (stay.curve == k)
            state.leaving[k, g] = (state.r * stay.later)[mine].sum()


def fg_fused(
    place: AnyArray, value: Rows, state: FineGrayState, risk: RiskSets, stay: CompetingStay
) -> tuple[float, float]:
    r"""Derivatives of Fine and Gray's likelihood in one coefficient; see `cox_fused`.

    The sums over a risk set are those over rows up to their time, scanned forwards, and
    :math:`G(t_g-)` times those of :math:`r_i / G(time_i-)` over earlier competing events, scanned
    backwards.

    Notes
    -----
    `ccd_cpu`: O(m + K groups of the strata with entries), K the number of censoring curves.
    """
    x = _column(place, value, state.r.size)
    gradient, hessian = float(risk.event_weight @ x), 0.0
    for events, row in zip(risk.group_events, _risks(state.r, risk, stay), strict=True):
        if events > 0.0:
            p = row / row.sum()
            gradient -= events * float(p @ x)
            hessian += events * float(p @ x**2 - (p @ x) ** 2)
    return gradient, hessian


def fg_move(
    place: AnyArray,
    value: Rows,
    step: float,
    state: FineGrayState,
    risk: RiskSets,
    stay: CompetingStay,
) -> None:
    """See `cox_move`."""
    state.r[:] *= np.exp(step * _column(place, value, state.r.size))
    _sum_fg(state, risk, stay)


def fg_sweep(
    columns: Index,
    begin: Index,
    stop: Index,
    place: AnyArray,
    value: Rows,
    l1: Features,
    l2: Features,
    beta: Features,
    width: Features,
    curvature: Features,
    state: FineGrayState,
    risk: RiskSets,
    stay: CompetingStay,
) -> None:
    """See `cox_sweep`."""
    for k, j in enumerate(columns):
        entries = slice(begin[k], stop[k])
        rows, x = place[entries], value[entries]
        gradient, curvature[j] = fg_fused(rows, x, state, risk, stay)
        step, width[j] = coordinate_step(gradient, curvature[j], beta[j], l1[j], l2[j], width[j])
        if step != 0.0:
            beta[j] += step
            fg_move(rows, x, step, state, risk, stay)
