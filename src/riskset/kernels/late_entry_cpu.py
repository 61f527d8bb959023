"""Sums over risk sets that rows enter late, in O(n + G log G). See `late_entry_ref`.

With late entry a row is at risk in a range of groups [own, end). Taking those not yet entered off a
running total would cancel, so each range is cut in two where the highest bit in which `own` and
`end - 1` differ changes: it is a tail of the left half and a head of the right half of one aligned
block of groups, and both are running sums that only add (a disjoint sparse table). Rows that share
the bit share a level (`RiskSets.level_ptr`); level 0 holds the ranges of a single group.
"""

import numpy as np
from numpy.typing import NDArray

from riskset._types import RiskSets, Rows
from riskset.kernels._jit import kernel

__all__ = ["sum_at_risk", "sum_seen"]


@kernel
def sum_at_risk(r: Rows, risk: RiskSets, efron: bool, rest: NDArray[np.float64]) -> None:
    own, end, event_weight = risk.own, risk.end, risk.event_weight
    rows, level_ptr = risk.level_rows, risk.level_ptr
    n_groups = rest.size
    rest[:] = 0.0
    for k in range(level_ptr[0], level_ptr[1]):
        i = rows[k]
        if not (efron and event_weight[i] > 0.0):
            rest[own[i]] += r[i]
    # Rows that start in a left half (with an event there: from the next group on), or end in a
    # right one.
    tail, tail_tied, head = np.empty(n_groups), np.empty(n_groups), np.empty(n_groups)
    for level in range(1, level_ptr.size - 1):
        if level_ptr[level] == level_ptr[level + 1]:
            continue
        tail[:] = 0.0
        tail_tied[:] = 0.0
        head[:] = 0.0
        for k in range(level_ptr[level], level_ptr[level + 1]):
            i = rows[k]
            if efron and event_weight[i] > 0.0:
                tail_tied[own[i]] += r[i]
            else:
                tail[own[i]] += r[i]
            head[end[i] - 1] += r[i]
        half = 1 << (level - 1)
        # Every range of this level crosses the middle of one block: it covers the left half from
        # its first group on, and the right half up to its last. So a running sum in each half, from
        # the outer end towards the middle, counts all of them.
        for left in range(0, n_groups, 2 * half):
            middle, stop = min(left + half, n_groups), min(left + 2 * half, n_groups)
            running = 0.0
            for g in range(left, middle):
                rest[g] += running + tail[g]
                running += tail[g] + tail_tied[g]
            running = 0.0
            for g in range(stop - 1, middle - 1, -1):
                running += head[g]
                rest[g] += running


@kernel
def sum_seen(
    hazard: NDArray[np.float64], hazard_tied: NDArray[np.float64], risk: RiskSets, seen: Rows
) -> None:
    own, end, event_weight = risk.own, risk.end, risk.event_weight
    rows, level_ptr = risk.level_rows, risk.level_ptr
    n_groups = hazard.size
    for i in range(seen.size):
        seen[i] = 0.0
        if own[i] < end[i]:
            seen[i] = hazard_tied[own[i]] if event_weight[i] > 0.0 else hazard[own[i]]
    sums = np.empty(n_groups)
    for level in range(1, level_ptr.size - 1):
        if level_ptr[level] == level_ptr[level + 1]:
            continue
        # From the group after g up to the middle, and from the middle up to g.
        half = 1 << (level - 1)
        for left in range(0, n_groups, 2 * half):
            middle, stop = min(left + half, n_groups), min(left + 2 * half, n_groups)
            running = 0.0
            for g in range(middle - 1, left - 1, -1):
                sums[g] = running
                running += hazard[g]
            running = 0.0
            for g in range(middle, stop):
                running += hazard[g]
                sums[g] = running
        for k in range(level_ptr[level], level_ptr[level + 1]):
            i = rows[k]
            seen[i] += sums[own[i]] + sums[end[i] - 1]
