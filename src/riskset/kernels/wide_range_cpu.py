"""Partial likelihoods where eta spans more than one exponent can hold.

Second twins of `risk_sets_ref` (`cox_pass_wide`) and `subdistribution_ref` (`finegray_pass_wide`).

A sum of exponentials is kept as a pair (peak, total) that stands for exp(peak) total, peak the
largest exponent met so far. A term is then exp of a difference of two etas, so its error does not
grow with eta, as that of a sum of logarithms would: rows at eta = 2000 beside rows at -2000 keep
all digits. One thread; several times the time of `risk_sets_cpu`, and seldom needed.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from riskset._types import RiskSets, Rows, Tail
from riskset.kernels._jit import kernel
from riskset.kernels.risk_sets_ref import CoxPass
from riskset.kernels.subdistribution_ref import FineGrayPass

__all__ = [
    "add",
    "cox_pass_wide",
    "expected_late",
    "expected_nested",
    "finegray_pass_wide",
    "sum_late",
    "sum_nested",
]

Pairs = NDArray[np.float64]
"""Sums (..., 2): peak and total; (-inf, 0) is nothing."""


@kernel
def _clear(sums: Pairs) -> None:
    sums[..., 0] = -math.inf
    sums[..., 1] = 0.0


@kernel
def add(pair: Pairs, peak: float, amount: float) -> None:
    """Add exp(peak) amount."""
    if amount <= 0.0:
        return
    if peak <= pair[0]:
        pair[1] += amount * math.exp(peak - pair[0])
    else:
        pair[1] = pair[1] * math.exp(pair[0] - peak) + amount
        pair[0] = peak


@kernel
def sum_nested(x: Rows, risk: RiskSets, efron: bool, rest: Pairs, tied: Pairs) -> None:
    """Sums over each nested risk set: the rows with an event in the group (Efron), and the rest."""
    running = np.empty(2)
    for g in range(risk.starts_stratum.size):
        if risk.starts_stratum[g]:
            _clear(running)
        for i in range(risk.group_ptr[g], risk.group_ptr[g + 1]):
            if efron and risk.event_weight[i] > 0.0:
                add(tied[g], x[i], risk.weight[i])
            else:
                add(running, x[i], risk.weight[i])
        rest[g] = running
        add(running, tied[g, 0], tied[g, 1])


@kernel
def sum_late(x: Rows, risk: RiskSets, efron: bool, rest: Pairs, tied: Pairs) -> None:
    """`sum_nested` for ranges of groups, by the tails and heads of `late_entry_cpu.sum_at_risk`."""
    own, end, rows, level_ptr = risk.own, risk.end, risk.level_rows, risk.level_ptr
    n_groups = risk.group_events.size
    for i in range(x.size):
        if efron and risk.event_weight[i] > 0.0:
            add(tied[own[i]], x[i], risk.weight[i])
    for i in rows[level_ptr[0] : level_ptr[1]]:
        if not (efron and risk.event_weight[i] > 0.0):
            add(rest[own[i]], x[i], risk.weight[i])
    tail, tail_tied = np.empty((n_groups, 2)), np.empty((n_groups, 2))
    head, running = np.empty((n_groups, 2)), np.empty(2)
    for level in range(1, level_ptr.size - 1):
        if level_ptr[level] == level_ptr[level + 1]:
            continue
        _clear(tail)
        _clear(tail_tied)
        _clear(head)
        for i in rows[level_ptr[level] : level_ptr[level + 1]]:
            if efron and risk.event_weight[i] > 0.0:
                add(tail_tied[own[i]], x[i], risk.weight[i])
            else:
                add(tail[own[i]], x[i], risk.weight[i])
            add(head[end[i] - 1], x[i], risk.weight[i])
        half = 1 << (level - 1)
        for left in range(0, n_groups, 2 * half):
            middle, stop = min(left + half, n_groups), min(left + 2 * half, n_groups)
            _clear(running)
            for g in range(left, middle):
                add(running, tail[g, 0], tail[g, 1])
                add(rest[g], running[0], running[1])
                add(running, tail_tied[g, 0], tail_tied[g, 1])
            _clear(running)
            for g in range(stop - 1, middle - 1, -1):
                add(running, head[g, 0], head[g, 1])
                add(rest[g], running[0], running[1])


@kernel
def _hazards(
    x: Rows,
    risk: RiskSets,
    efron: bool,
    rest: Pairs,
    tied: Pairs,
    peak: NDArray[np.float64],
    hazard: NDArray[np.float64],
    hazard_tied: NDArray[np.float64],
    log_total: NDArray[np.float64],
    log_hazard: NDArray[np.float64],
) -> float:
    """Likelihood, and hazard increments in units of exp(-peak)."""
    value = 0.0
    for g in range(peak.size):
        peak[g] = max(rest[g, 0], tied[g, 0])
        hazard[g] = hazard_tied[g] = 0.0
        log_total[g] = log_hazard[g] = -math.inf
        if peak[g] == -math.inf:
            continue
        alive = rest[g, 1] * math.exp(rest[g, 0] - peak[g])
        dead = tied[g, 1] * math.exp(tied[g, 0] - peak[g])
        log_total[g] = peak[g] + math.log(alive + dead)
        if risk.group_tied[g] == 0:
            continue
        m = risk.group_tied[g] if efron else 1
        step = risk.group_events[g] / m
        term = 0.0
        for k in range(m):
            share = (m - k) / m
            d = alive + share * dead
            term -= step * math.log(d)
            hazard[g] += step / d
            hazard_tied[g] += share * step / d if efron else step / d
        for i in range(risk.group_ptr[g], risk.group_ptr[g + 1]):
            if risk.event_weight[i] > 0.0:
                term += risk.event_weight[i] * (x[i] - peak[g])
        value += term
        log_hazard[g] = math.log(hazard[g]) - peak[g]
    return value


@kernel
def _share(weight: float, x: float, total: float, peak: float) -> float:
    """Expected events of a row from a sum of hazards; absent rows may lie above every peak."""
    return weight * total * math.exp(x + peak) if weight > 0.0 and total > 0.0 else 0.0


@kernel
def expected_nested(
    x: Rows,
    risk: RiskSets,
    peak: NDArray[np.float64],
    hazard: NDArray[np.float64],
    hazard_tied: NDArray[np.float64],
    expected: Rows,
) -> None:
    """Expected events of rows in nested risk sets, from hazards in units of exp(-peak)."""
    running = np.empty(2)
    _clear(running)
    for g in range(peak.size - 1, -1, -1):
        for i in range(risk.group_ptr[g], risk.group_ptr[g + 1]):
            at_own = hazard_tied[g] if risk.event_weight[i] > 0.0 else hazard[g]
            expected[i] = _share(risk.weight[i], x[i], at_own, -peak[g])
            expected[i] += _share(risk.weight[i], x[i], running[1], running[0])
        add(running, -peak[g], hazard[g])
        if risk.starts_stratum[g]:
            _clear(running)


@kernel
def expected_late(
    x: Rows,
    risk: RiskSets,
    peak: NDArray[np.float64],
    hazard: NDArray[np.float64],
    hazard_tied: NDArray[np.float64],
    expected: Rows,
) -> None:
    """By the tails and heads of `late_entry_cpu.sum_seen`."""
    own, end, rows, level_ptr = risk.own, risk.end, risk.level_rows, risk.level_ptr
    n_groups = peak.size
    expected[:] = 0.0
    for i in rows:
        at_own = hazard_tied[own[i]] if risk.event_weight[i] > 0.0 else hazard[own[i]]
        expected[i] = _share(risk.weight[i], x[i], at_own, -peak[own[i]])
    sums, running = np.empty((n_groups, 2)), np.empty(2)
    for level in range(1, level_ptr.size - 1):
        if level_ptr[level] == level_ptr[level + 1]:
            continue
        half = 1 << (level - 1)
        for left in range(0, n_groups, 2 * half):
            middle, stop = min(left + half, n_groups), min(left + 2 * half, n_groups)
            _clear(running)
            for g in range(middle - 1, left - 1, -1):
                sums[g] = running
                add(running, -peak[g], hazard[g])
            _clear(running)
            for g in range(middle, stop):
                add(running, -peak[g], hazard[g])
                sums[g] = running
        for i in rows[level_ptr[level] : level_ptr[level + 1]]:
            a, b = own[i], end[i] - 1
            expected[i] += _share(risk.weight[i], x[i], sums[a, 1], sums[a, 0])
            expected[i] += _share(risk.weight[i], x[i], sums[b, 1], sums[b, 0])


def cox_pass_wide(eta: Rows, risk: RiskSets, efron: bool) -> CoxPass:
    """See `risk_sets_ref.cox_pass`, for any finite eta."""
    n_groups = risk.group_events.size
    x = eta[risk.order]
    rest, tied = np.zeros((2, n_groups, 2))
    rest[:, 0] = tied[:, 0] = -np.inf
    peak, hazard, hazard_tied, log_total, log_hazard = np.empty((5, n_groups))
    expected = np.empty(x.size)
    late = risk.own.size > 0
    (sum_late if late else sum_nested)(x, risk, efron, rest, tied)
    value = _hazards(
        x, risk, efron, rest, tied, peak, hazard, hazard_tied, log_total, log_hazard
    )  # fmt: skip
    (expected_late if late else expected_nested)(x, risk, peak, hazard, hazard_tied, expected)
    residual = np.bincount(risk.order, risk.event_weight - expected, eta.size)
    return CoxPass(value, residual.astype(np.float64, copy=False), expected, log_total, log_hazard)


# ------------------------------------------------------------------------------------- Fine-Gray


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
