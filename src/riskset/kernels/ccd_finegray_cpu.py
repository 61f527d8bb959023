"""One coordinate of Fine and Gray's likelihood on the CPU. The specification is `ccd_finegray_ref`.

As `ccd_cpu`, but for the sum of squares, which takes one scan in each direction over the groups of
the strata in which the column has entries: two sums meet in each risk set.
"""

import math

import numpy as np

from riskset._types import AnyArray, Features, Index, RiskSets, Rows
from riskset.kernels._jit import kernel
from riskset.kernels.ccd_cpu import coordinate_step, stratum_bounds
from riskset.kernels.ccd_finegray_ref import FineGrayState, Stay

__all__ = ["FineGrayState", "Stay", "fg_fused", "fg_move", "fg_state", "fg_sweep"]


@kernel
def _sum_stratum(first: int, end: int, state: FineGrayState, risk: RiskSets, stay: Stay) -> None:
    """Totals and hazards of the groups of a stratum."""
    alive, leaving, total = state.alive, state.leaving, state.total
    hazard, hazard_after, square = state.hazard, state.hazard_after, state.square
    survival, group_events = stay.survival, risk.group_events
    total[first:end] = 0.0
    for c in range(survival.shape[0]):
        later = 0.0
        for g in range(end - 1, first - 1, -1):
            total[g] += survival[c, g] * later
            later += leaving[c, g]
    before = 0.0
    for g in range(first, end):
        before += alive[g]
        total[g] += before
        hazard[g] = square[g] = 0.0
        if group_events[g] > 0.0:
            inverse = 1.0 / total[g]
            hazard[g] = group_events[g] * inverse
            square[g] = hazard[g] * inverse
    for c in range(survival.shape[0]):
        after = 0.0
        for g in range(first, end):
            hazard_after[c, g] = after
            after += survival[c, g] * hazard[g]
    h = 0.0
    for g in range(end - 1, first - 1, -1):
        h += hazard[g]
        hazard[g] = h


@kernel
def fg_state(eta: Rows, shift: float, risk: RiskSets, stay: Stay) -> FineGrayState:
    """See `ccd_finegray_ref.fg_state`."""
    n_rows, n_groups, n_curves = risk.order.size, risk.group_events.size, stay.survival.shape[0]
    own, first, end = stratum_bounds(risk.starts_stratum, risk.group_ptr)
    r, alive, leaving = np.empty(n_rows), np.zeros(n_groups), np.zeros((n_curves, n_groups))
    for i in range(n_rows):
        r[i] = risk.weight[i] * math.exp(eta[risk.order[i]] - shift)
        alive[own[i]] += r[i]
        if stay.later[i] > 0.0:
            leaving[stay.curve[i], own[i]] += r[i] * stay.later[i]
    state = FineGrayState(
        r,
        own,
        first,
        end,
        alive,
        leaving,
        np.zeros(n_groups),
        np.zeros(n_groups),
        np.zeros((n_curves, n_groups)),
        np.zeros(n_groups),
        np.zeros(n_groups),
        np.zeros((n_curves, n_groups)),
    )
    for g in range(n_groups):
        if first[g] == g:
            _sum_stratum(g, end[g], state, risk, stay)
    return state


@kernel
def _squares(first: int, end: int, state: FineGrayState, stay: Stay) -> float:
    """Sum of N (S / D)^2 over the groups of a stratum; clears the scratch."""
    sums, after, square, survival = state.sums, state.sums_after, state.square, stay.survival
    if survival.shape[0] == 0:
        out = before = 0.0
        for g in range(first, end):
            before += sums[g]
            sums[g] = 0.0
            out += square[g] * before * before
        return out
    # Backwards the sums after each group, all curves in one; forwards those up to it.
    for c in range(survival.shape[0]):
        later = 0.0
        for g in range(end - 1, first - 1, -1):
            own = after[c, g]
            after[c, g] = survival[c, g] * later
            later += own
            if c > 0:
                after[0, g] += after[c, g]
                after[c, g] = 0.0
    out = before = 0.0
    for g in range(first, end):
        before += sums[g]
        s = before + after[0, g]
        sums[g] = after[0, g] = 0.0
        out += square[g] * s * s
    return out


@kernel
def fg_fused(
    place: AnyArray, value: Rows, state: FineGrayState, risk: RiskSets, stay: Stay
) -> tuple[float, float]:
    """See `ccd_finegray_ref.fg_fused`."""
    r, own, hazard, event_weight = state.r, state.own, state.hazard, risk.event_weight
    later, curve, is_binary = stay.later, stay.curve, value.size == 0
    gradient = hessian = 0.0
    first = end = 0
    for k in range(place.size):
        i = place[k]
        x = 1.0 if is_binary else value[k]
        g = own[i]
        if g >= end:
            if end > 0:
                hessian -= _squares(first, end, state, stay)
            first, end = state.first[g], state.end[g]
        u = x * r[i]
        seen = hazard[g]
        state.sums[g] += u
        if later[i] > 0.0:
            c = curve[i]
            state.sums_after[c, g] += u * later[i]
            seen += later[i] * state.hazard_after[c, g]
        gradient += x * event_weight[i] - u * seen
        hessian += u * x * seen
    if end > 0:
        hessian -= _squares(first, end, state, stay)
    return gradient, hessian


@kernel
def fg_move(
    place: AnyArray, value: Rows, step: float, state: FineGrayState, risk: RiskSets, stay: Stay
) -> None:
    """See `ccd_finegray_ref.fg_move`."""
    r, own, is_binary = state.r, state.own, value.size == 0
    factor, gain = math.exp(step), math.expm1(step)
    first = end = 0
    for k in range(place.size):
        i = place[k]
        g = own[i]
        if g >= end:
            if end > 0:
                _sum_stratum(first, end, state, risk, stay)
            first, end = state.first[g], state.end[g]
        if not is_binary:
            factor, gain = math.exp(step * value[k]), math.expm1(step * value[k])
        change = r[i] * gain
        r[i] *= factor
        state.alive[g] = max(state.alive[g] + change, r[i])
        if stay.later[i] > 0.0:
            c, u = stay.curve[i], r[i] * stay.later[i]
            state.leaving[c, g] = max(state.leaving[c, g] + change * stay.later[i], u)
    if end > 0:
        _sum_stratum(first, end, state, risk, stay)


@kernel
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
    stay: Stay,
) -> None:
    """See `ccd_finegray_ref.fg_sweep`."""
    is_binary = value.size == 0
    for k in range(columns.size):
        j, a, b = columns[k], begin[k], stop[k]
        rows, x = place[a:b], value if is_binary else value[a:b]
        gradient, hessian = fg_fused(rows, x, state, risk, stay)
        curvature[j] = hessian
        step, width[j] = coordinate_step(gradient, hessian, beta[j], l1[j], l2[j], width[j])
        if step != 0.0:
            beta[j] += step
            fg_move(rows, x, step, state, risk, stay)
