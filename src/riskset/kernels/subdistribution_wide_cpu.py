"""Fine and Gray's likelihood where eta spans more than one exponent can hold.

Sums are pairs (peak, total), as in `wide_range_cpu`; one thread, and seldom needed.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from riskset._types import RiskSets, Rows, Tail
from riskset.kernels._jit import kernel
from riskset.kernels.subdistribution_ref import FineGrayPass
from riskset.kernels.wide_range_cpu import (
    Pairs,
    add,
    expected_late,
    expected_nested,
    sum_late,
    sum_nested,
)

__all__ = ["finegray_pass_wide"]


@kernel
def _sum_before(x: Rows, sets: RiskSets, out: Pairs) -> None:
    """Sums over the rows of later groups of the stratum."""
    running = np.array([-math.inf, 0.0])
    for g in range(out.shape[0] - 1, -1, -1):
        out[g] = running
        for i in range(sets.group_ptr[g], sets.group_ptr[g + 1]):
            add(running, x[i], sets.weight[i])
        if sets.starts_stratum[g]:
            running[0], running[1] = -math.inf, 0.0


@kernel
def _combine(
    rest: Pairs,
    parts: NDArray[np.float64],
    survival: NDArray[np.float64],
    events: NDArray[np.float64],
    peak: NDArray[np.float64],
    hazard: NDArray[np.float64],
    log_total: NDArray[np.float64],
    log_hazard: NDArray[np.float64],
) -> float:
    """Add the tails to the totals; hazards in units of exp(-peak); minus the logs of totals."""
    value = 0.0
    for g in range(peak.size):
        total = rest[g]
        for k in range(parts.shape[0]):
            add(total, parts[k, g, 0], survival[k, g] * parts[k, g, 1])
        peak[g], hazard[g] = total[0], 0.0
        log_total[g] = log_hazard[g] = -math.inf
        if total[1] <= 0.0:
            continue
        log_total[g] = total[0] + math.log(total[1])
        if events[g] > 0.0:
            hazard[g] = events[g] / total[1]
            log_hazard[g] = math.log(hazard[g]) - peak[g]
            value -= events[g] * math.log(total[1])
    return value


@kernel
def _expected_after(
    x: Rows,
    sets: RiskSets,
    peak: NDArray[np.float64],
    hazard: NDArray[np.float64],
    expected: Rows,
) -> None:
    """Expected events from the groups of the stratum before each row's own."""
    running = np.array([-math.inf, 0.0])
    for g in range(peak.size):
        if sets.starts_stratum[g]:
            running[0], running[1] = -math.inf, 0.0
        for i in range(sets.group_ptr[g], sets.group_ptr[g + 1]):
            expected[i] = 0.0
            if sets.weight[i] > 0.0 and running[1] > 0.0:
                expected[i] = sets.weight[i] * running[1] * math.exp(x[i] + running[0])
        add(running, -peak[g], hazard[g])


def finegray_pass_wide(eta: Rows, risk: RiskSets, tails: Sequence[Tail]) -> FineGrayPass:
    """See `subdistribution_ref.finegray_pass`, for any finite eta."""
    n_groups = risk.group_events.size
    x = eta[risk.order]
    rest, tied, later = _nothing(n_groups), _nothing(n_groups), []
    (sum_late if risk.own.size else sum_nested)(x, risk, False, rest, tied)
    for tail in tails:
        part = _nothing(n_groups)
        if tail.sets.own.size:
            sum_late(eta[tail.sets.order], tail.sets, False, part, tied)
        else:
            _sum_before(eta[tail.sets.order], tail.sets, part)
        later.append(part)
    parts = np.array(later).reshape(len(tails), n_groups, 2)
    survival = np.array([t.survival for t in tails]).reshape(len(tails), n_groups)
    peak, hazard, log_total, log_hazard = np.empty((4, n_groups))
    value = _combine(
        rest, parts, survival, risk.group_events, peak, hazard, log_total, log_hazard
    )  # fmt: skip
    expected = np.empty(x.size)
    see = expected_late if risk.own.size else expected_nested
    see(x, risk, peak, hazard, hazard, expected)
    residual = np.zeros(eta.size)
    np.add.at(residual, risk.order, risk.event_weight - expected)
    tail_expected = []
    for tail in tails:
        seen = np.zeros(tail.sets.order.size)
        own_x, share = eta[tail.sets.order], tail.survival * hazard
        if tail.sets.own.size:
            expected_late(own_x, tail.sets, peak, share, share, seen)
        else:
            _expected_after(own_x, tail.sets, peak, share, seen)
        np.subtract.at(residual, tail.sets.order, seen)
        tail_expected.append(seen)
    events = np.flatnonzero(risk.event_weight > 0)
    own = np.searchsorted(risk.group_ptr, events, side="right") - 1
    value += float(risk.event_weight[events] @ (x[events] - peak[own]))
    return FineGrayPass(value, residual, expected, log_total, log_hazard, tuple(tail_expected))


def _nothing(n_groups: int) -> Pairs:
    out = np.zeros((n_groups, 2))
    out[:, 0] = -np.inf
    return out
