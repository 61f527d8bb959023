"""One coordinate of the partial likelihood on the CPU. The specification is `ccd_ref`.

The paper scans all rows for each coordinate. Here the sums of N / D and N / D^2 over the groups
that a row is at risk in are kept, so that the derivatives of a column are one pass over its
entries; only a coordinate that moves costs a pass over the groups of the strata it has entries in.

A group's own sum is corrected by what its rows change, which a trust region keeps within a few
digits (`solve.ccd`), and a new state sums anew; running sums only add.

Fine and Gray's model (``fg_*``) is treated alike, but for the sum of squares: rows up to their time
and rows after a competing event meet in each risk set, so that it takes one scan in each direction
over the groups of the strata in which the column has entries.
"""

import math

import numpy as np

from riskset._types import AnyArray, Features, Index, RiskSets, Rows
from riskset.kernels import ccd_ref
from riskset.kernels._jit import kernel
from riskset.kernels.ccd_ref import CompetingStay, CoxState, FineGrayState

__all__ = [
    "CompetingStay",
    "CoxState",
    "FineGrayState",
    "coordinate_step",
    "cox_fused",
    "cox_move",
    "cox_state",
    "cox_sweep",
    "fg_fused",
    "fg_move",
    "fg_state",
    "fg_sweep",
]


coordinate_step = kernel(ccd_ref.coordinate_step)


@kernel
def stratum_bounds(starts_stratum: AnyArray, group_ptr: Index) -> tuple[AnyArray, Index, Index]:
    """Group of each row, and the groups of the stratum of each group: first, end."""
    n_groups = starts_stratum.size
    own = np.empty(group_ptr[n_groups], np.int32)
    first, end = np.empty(n_groups, np.int64), np.empty(n_groups, np.int64)
    start = 0
    for g in range(n_groups):
        if starts_stratum[g]:
            start = g
        first[g] = start
        own[group_ptr[g] : group_ptr[g + 1]] = g
    stop = n_groups
    for g in range(n_groups - 1, -1, -1):
        end[g] = stop
        if starts_stratum[g]:
            stop = g
    return own, first, end


@kernel
def _sum_breslow(touched: AnyArray, state: CoxState, risk: RiskSets) -> None:
    """Totals and hazards of the strata in which the rows at some places changed."""
    own, firsts, ends, alive = state.own, state.first, state.end, state.alive
    total, hazard, square = state.total, state.hazard, state.square
    group_events = risk.group_events
    end = 0
    for i in touched:
        start = own[i]
        if start < end:
            continue
        first, end = firsts[start], ends[start]
        running = total[start - 1] if start > first else 0.0
        for g in range(start, end):
            running += alive[g]
            total[g] = running
        h = a = 0.0
        for g in range(end - 1, first - 1, -1):
            if group_events[g] > 0.0:
                inverse = 1.0 / total[g]
                increment = group_events[g] * inverse
                h += increment
                a += increment * inverse
            hazard[g] = h
            square[g] = a


@kernel
def _sum_efron(touched: AnyArray, state: CoxState, risk: RiskSets) -> None:
    """As `_sum_breslow`; a group's terms are sums of what survives and of what its events count."""
    own, firsts, ends, alive, tied = state.own, state.first, state.end, state.alive, state.tied
    total, hazard, hazard_tied, square = state.total, state.hazard, state.hazard_tied, state.square
    square_shared, square_tied = state.square_shared, state.square_tied
    group_events, group_tied = risk.group_events, risk.group_tied
    end = 0
    for i in touched:
        start = own[i]
        if start < end:
            continue
        first, end = firsts[start], ends[start]
        running = total[start - 1] if start > first else 0.0
        for g in range(start, end):
            running += alive[g] + tied[g]
            total[g] = running
        h = a = 0.0
        for g in range(end - 1, first - 1, -1):
            m = group_tied[g]
            rest = alive[g] + (total[g - 1] if g > first else 0.0)
            whole = at_own = shared = twice = 0.0
            for k in range(m):
                lost = k / m
                inverse = 1.0 / (rest + (1.0 - lost) * tied[g])
                increment = group_events[g] / m * inverse
                whole += increment
                at_own += (1.0 - lost) * increment
                a += increment * inverse
                shared += lost * increment * inverse
                twice += lost * lost * increment * inverse
            hazard_tied[g] = h + at_own
            h += whole
            hazard[g], square[g] = h, a
            square_shared[g], square_tied[g] = shared, twice


@kernel
def cox_state(eta: Rows, shift: float, risk: RiskSets, efron: bool) -> CoxState:
    n_rows, n_groups = risk.order.size, risk.group_events.size
    own, first, end = stratum_bounds(risk.starts_stratum, risk.group_ptr)
    r, alive, tied = np.empty(n_rows), np.zeros(n_groups), np.zeros(n_groups)
    for i in range(n_rows):
        r[i] = risk.weight[i] * math.exp(eta[risk.order[i]] - shift)
        if efron and risk.event_weight[i] > 0.0:
            tied[own[i]] += r[i]
        else:
            alive[own[i]] += r[i]
    z = np.zeros((6, n_groups))
    state = CoxState(r, own, first, end, alive, tied, z[0], z[1], z[2], z[3], z[4], z[5])
    if efron:
        _sum_efron(risk.group_ptr[:-1], state, risk)
    else:
        _sum_breslow(risk.group_ptr[:-1], state, risk)
    return state


@kernel
def cox_fused(
    place: AnyArray, value: Rows, state: CoxState, risk: RiskSets, efron: bool
) -> tuple[float, float]:
    r, own, hazard, square = state.r, state.own, state.hazard, state.square
    event_weight, is_binary = risk.event_weight, value.size == 0
    gradient = hessian = 0.0
    before = own_events = 0.0  # sums of x r in the stratum, and over the events of the group
    last, stop = -1, 0
    for k in range(place.size):
        i = place[k]
        x = 1.0 if is_binary else value[k]
        g = own[i]
        if efron and g != last:
            if own_events != 0.0:
                hessian += own_events * (
                    2.0 * before * state.square_shared[last] - own_events * state.square_tied[last]
                )
                own_events = 0.0
            last = g
        if g >= stop:
            before, stop = 0.0, state.end[g]
        u = x * r[i]
        seen = hazard[g]
        if efron and event_weight[i] > 0.0:
            seen = state.hazard_tied[g]
            own_events += u
        gradient += x * event_weight[i] - u * seen
        hessian += u * (x * seen - (2.0 * before + u) * square[g])
        before += u
    if own_events != 0.0:
        hessian += own_events * (
            2.0 * before * state.square_shared[last] - own_events * state.square_tied[last]
        )
    return gradient, hessian


@kernel
def cox_move(
    place: AnyArray, value: Rows, step: float, state: CoxState, risk: RiskSets, efron: bool
) -> None:
    r, own, alive, tied = state.r, state.own, state.alive, state.tied
    event_weight, is_binary = risk.event_weight, value.size == 0
    factor, gain = math.exp(step), math.expm1(step)
    for k in range(place.size):
        i = place[k]
        g = own[i]
        if not is_binary:
            factor, gain = math.exp(step * value[k]), math.expm1(step * value[k])
        change = r[i] * gain
        r[i] *= factor
        if efron and event_weight[i] > 0.0:
            tied[g] = max(tied[g] + change, r[i])
        else:
            alive[g] = max(alive[g] + change, r[i])
    if efron:
        _sum_efron(place, state, risk)
    else:
        _sum_breslow(place, state, risk)


@kernel
def cox_sweep(
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
    state: CoxState,
    risk: RiskSets,
    efron: bool,
) -> None:
    is_binary = value.size == 0
    for k in range(columns.size):
        j, a, b = columns[k], begin[k], stop[k]
        rows, x = place[a:b], value if is_binary else value[a:b]
        gradient, hessian = cox_fused(rows, x, state, risk, efron)
        curvature[j] = hessian
        step, width[j] = coordinate_step(gradient, hessian, beta[j], l1[j], l2[j], width[j])
        if step != 0.0:
            beta[j] += step
            cox_move(rows, x, step, state, risk, efron)


# ------------------------------------------------------------------------------------- Fine-Gray


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
    n_rows, n_groups, n_curves = risk.order.size, risk.group_events.size, stay.survival.shape[0]
    own, first, end = stratum_bounds(risk.starts_stratum, risk.group_ptr)
    r, alive, leaving = np.empty(n_rows), np.zeros(n_groups), np.zeros((n_curves, n_groups))
    for i in range(n_rows):
        r[i] = risk.weight[i] * math.exp(eta[risk.order[i]] - shift)
        alive[own[i]] += r[i]
        if stay.later[i] > 0.0:
            leaving[stay.curve[i], own[i]] += r[i] * stay.later[i]
    z, curves = np.zeros((4, n_groups)), np.zeros((2, n_curves, n_groups))
    state = FineGrayState(
        r, own, first, end, alive, leaving, z[0], z[1], curves[0], z[2], z[3], curves[1]
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
