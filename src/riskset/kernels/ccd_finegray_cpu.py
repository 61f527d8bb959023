"""One coordinate of Fine and Gray's likelihood on the CPU. The specification is `ccd_finegray_ref`.

As `ccd_cpu`, but for the sum of squares, which takes one scan in each direction over the groups of
the strata in which the column has entries: two sums meet in each risk set.
"""

import math

import numpy as np

from riskset._types import AnyArray, Features, Index, RiskSets, Rows
from riskset.kernels._jit import kernel
from riskset.kernels.ccd_cpu import coordinate_step, stratum_bounds
from riskset.kernels.ccd_finegray_ref import CompetingStay, FineGrayState

__all__ = ["FineGrayState", "CompetingStay", "fg_fused", "fg_move", "fg_state", "fg_sweep"]


@kernel
def _sum_strata(
    touched: AnyArray, state: FineGrayState, risk: RiskSets, stay: CompetingStay
) -> None:
    """Totals and hazards of the strata in which the rows at some places changed."""
    own, firsts, ends, alive, leaving = (
        state.own,
        state.first,
        state.end,
        state.alive,
        state.leaving,
    )
    total, hazard, hazard_after, square = (
        state.total,
        state.hazard,
        state.hazard_after,
        state.square,
    )
    survival, group_events = stay.survival, risk.group_events
    end = 0
    for i in touched:
        if own[i] < end:
            continue
        first, end = firsts[own[i]], ends[own[i]]
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
def fg_state(eta: Rows, shift: float, risk: RiskSets, stay: CompetingStay) -> FineGrayState:
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
    _sum_strata(risk.group_ptr[:-1], state, risk, stay)
    return state


@kernel
def _squares(touched: AnyArray, state: FineGrayState, stay: CompetingStay) -> float:
    """Sum of N (S / D)^2 over the strata of the entries of a column; clears the scratch."""
    own, firsts, ends, square = state.own, state.first, state.end, state.square
    sums, after, survival = state.sums, state.sums_after, stay.survival
    out = 0.0
    end = 0
    for i in touched:
        if own[i] < end:
            continue
        first, end = firsts[own[i]], ends[own[i]]
        # Backwards the sums after each group, all curves in one; forwards those up to it.
        for c in range(survival.shape[0]):
            later = 0.0
            for g in range(end - 1, first - 1, -1):
                mine = survival[c, g] * later
                later += after[c, g]
                after[c, g] = 0.0
                after[0, g] += mine
        before = 0.0
        for g in range(first, end):
            before += sums[g]
            s = before
            sums[g] = 0.0
            if survival.shape[0] > 0:
                s += after[0, g]
                after[0, g] = 0.0
            out += square[g] * s * s
    return out


@kernel
def fg_fused(
    place: AnyArray, value: Rows, state: FineGrayState, risk: RiskSets, stay: CompetingStay
) -> tuple[float, float]:
    """See `ccd_finegray_ref.fg_fused`."""
    r, own, hazard, event_weight = state.r, state.own, state.hazard, risk.event_weight
    sums, sums_after, hazard_after = state.sums, state.sums_after, state.hazard_after
    later, curve, is_binary = stay.later, stay.curve, value.size == 0
    has_curves = stay.survival.shape[0] > 0
    gradient = hessian = 0.0
    for k in range(place.size):
        i = place[k]
        x = 1.0 if is_binary else value[k]
        g = own[i]
        u, w = x * r[i], later[i]
        sums[g] += u
        seen = hazard[g]
        if has_curves:  # without a branch that depends on the row, which costs more than it saves
            c = curve[i]
            sums_after[c, g] += u * w
            seen += w * hazard_after[c, g]
        gradient += x * event_weight[i] - u * seen
        hessian += u * x * seen
    return gradient, hessian - _squares(place, state, stay)


@kernel
def fg_move(
    place: AnyArray,
    value: Rows,
    step: float,
    state: FineGrayState,
    risk: RiskSets,
    stay: CompetingStay,
) -> None:
    """See `ccd_finegray_ref.fg_move`."""
    r, own, alive, leaving = state.r, state.own, state.alive, state.leaving
    later, curve, is_binary = stay.later, stay.curve, value.size == 0
    factor, gain = math.exp(step), math.expm1(step)
    for k in range(place.size):
        i = place[k]
        g = own[i]
        if not is_binary:
            factor, gain = math.exp(step * value[k]), math.expm1(step * value[k])
        change = r[i] * gain
        r[i] *= factor
        alive[g] = max(alive[g] + change, r[i])
        if later[i] > 0.0:
            c = curve[i]
            leaving[c, g] = max(leaving[c, g] + change * later[i], r[i] * later[i])
    _sum_strata(place, state, risk, stay)


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
    stay: CompetingStay,
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
