"""Fine and Gray's likelihood on the CPU. The specification is `subdistribution_ref`.

One scan in each direction for the rows up to their own time, as for Cox, and one in each direction
for the rows with a competing event, whose risk sets grow the other way: the later the event, the
more of them came before it. The factor G(t-) belongs to the group, 1 / G(time-) to the row, so that
both scans only add.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from riskset._runtime import Runtime
from riskset._types import Matrix, RiskSets, Rows, Tail
from riskset.kernels._jit import kernel
from riskset.kernels.late_entry_cpu import sum_at_risk, sum_seen
from riskset.kernels.risk_sets_cpu import MAX_ETA_SPAN, has_underflow, sum_totals
from riskset.kernels.subdistribution_ref import FineGrayPass
from riskset.kernels.wide_range_cpu import finegray_pass_wide

__all__ = [
    "RowsBefore",
    "finegray_information",
    "finegray_means",
    "finegray_pass",
    "seen_after",
    "seen_up_to",
    "sum_before",
    "sum_up_to",
]

LEVEL_SPAN = 0.6 * MAX_ETA_SPAN
"""Range of log risks or log hazards that is summed at once beside what may be as far above."""

Scan = Callable[[NDArray[np.float64], RiskSets, NDArray[np.float64]], None]
"""Sums of numbers of rows by group, or of groups by row, to the last argument."""


def sum_up_to(r: Rows, sets: RiskSets) -> NDArray[np.float64]:
    return _sums(_sum_up_to, r, sets)


def sum_before(r: Rows, sets: RiskSets) -> NDArray[np.float64]:
    return _sums(_sum_before, r, sets)


def seen_up_to(hazard: NDArray[np.float64], sets: RiskSets) -> Rows:
    return _seen(_seen_up_to, hazard, sets)


def seen_after(hazard: NDArray[np.float64], sets: RiskSets) -> Rows:
    return _seen(_seen_after, hazard, sets)


def _sums(nested: Scan, r: Rows, sets: RiskSets) -> NDArray[np.float64]:
    out = np.empty(sets.group_events.size)
    if sets.own.size:
        sum_at_risk(r, sets, False, out)
    else:
        nested(r, sets, out)
    return out


def _seen(nested: Scan, hazard: NDArray[np.float64], sets: RiskSets) -> Rows:
    out = np.empty(sets.order.size)
    if sets.own.size:
        sum_seen(hazard, hazard, sets, out)
    else:
        nested(hazard, sets, out)
    return out


@kernel
def _sum_up_to(r: Rows, sets: RiskSets, out: NDArray[np.float64]) -> None:
    running = 0.0
    for g in range(out.size):
        if sets.starts_stratum[g]:
            running = 0.0
        for i in range(sets.group_ptr[g], sets.group_ptr[g + 1]):
            running += r[i]
        out[g] = running


@kernel
def _sum_before(r: Rows, sets: RiskSets, out: NDArray[np.float64]) -> None:
    running = 0.0
    for g in range(out.size - 1, -1, -1):
        out[g] = running
        for i in range(sets.group_ptr[g], sets.group_ptr[g + 1]):
            running += r[i]
        if sets.starts_stratum[g]:
            running = 0.0


@kernel
def _seen_after(hazard: NDArray[np.float64], sets: RiskSets, seen: Rows) -> None:
    running = 0.0
    for g in range(hazard.size):
        if sets.starts_stratum[g]:
            running = 0.0
        for i in range(sets.group_ptr[g], sets.group_ptr[g + 1]):
            seen[i] = running
        running += hazard[g]


@kernel
def _seen_up_to(hazard: NDArray[np.float64], sets: RiskSets, seen: Rows) -> None:
    running = 0.0
    for g in range(hazard.size - 1, -1, -1):
        running += hazard[g]
        for i in range(sets.group_ptr[g], sets.group_ptr[g + 1]):
            seen[i] = running
        if sets.starts_stratum[g]:
            running = 0.0


def finegray_pass(
    eta: Rows, risk: RiskSets, tails: Sequence[Tail], runtime: Runtime
) -> FineGrayPass:
    high = float(eta.max())
    done = None
    if high - float(eta.min()) < MAX_ETA_SPAN:
        done = _one_shift(eta, high, risk, tails, runtime)
    return finegray_pass_wide(eta, risk, tails) if done is None else done


def _one_shift(
    eta: Rows, shift: float, risk: RiskSets, tails: Sequence[Tail], runtime: Runtime
) -> FineGrayPass | None:
    """None if a total is too small for one shift."""
    # Fine & Gray (1999), JASA 94, 496-509: a row with a competing event at s stays at risk of an
    # event at t > s with weight G(t-) / G(s-). The first factor is `survival` of the group, the
    # second is in the weights of the tail.
    r, score, total = sum_totals(eta, shift, risk, runtime)
    parts = []
    for tail in tails:
        u = tail.sets.weight * np.exp(eta[tail.sets.order] - shift)
        total += tail.survival * sum_before(u, tail.sets)
        parts.append(u)
    has_events = risk.group_events > 0
    with np.errstate(divide="ignore"):
        log_total = np.log(total)
    if has_underflow(log_total, 0.0, risk):
        return None
    hazard = np.zeros(total.size)
    np.divide(risk.group_events, total, out=hazard, where=has_events)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_hazard = np.log(risk.group_events) - log_total
        value = score - float(risk.group_events @ log_total)
    if not np.isfinite(value):  # a group without events in which nobody is at risk
        log_hazard[~has_events] = -np.inf
        value = score - float(risk.group_events[has_events] @ log_total[has_events])

    def expect(k: int) -> Rows:
        """Expected events of the rows up to their own time (0), or of those of tail k - 1."""
        if k == 0:
            return seen_up_to(hazard, risk) * r
        return seen_after(tails[k - 1].survival * hazard, tails[k - 1].sets) * parts[k - 1]

    expected, *later = runtime.map(expect, range(1 + len(tails)))
    # The score residual of a row: its event less what it is expected to fail of, before and after a
    # competing event.
    residual = _back(eta.size, risk, risk.event_weight - expected)
    for tail, seen in zip(tails, later, strict=True):
        if tail.sets.own.size:
            residual -= _back(eta.size, tail.sets, seen)
        else:
            residual[tail.sets.order] -= seen
    return FineGrayPass(
        value, residual, expected, log_total + shift, log_hazard - shift, tuple(later)
    )


def _back(n_rows: int, sets: RiskSets, values: Rows) -> Rows:
    """Sums by row in the caller's order."""
    if sets.order.size == n_rows and not sets.own.size:
        out = np.empty(n_rows)
        out[sets.order] = values
        return out
    return np.bincount(sets.order, values, n_rows).astype(np.float64, copy=False)


@kernel
def _mean_parts(
    r: Rows, x: Matrix, sets: RiskSets, factor: NDArray[np.float64], forwards: bool, out: Matrix
) -> None:
    """Add factor times the sum of r x over each nested risk set: rows up to g, or after g."""
    n_groups, q = out.shape
    running = np.zeros(q)
    for k in range(n_groups):
        g = k if forwards else n_groups - 1 - k
        if forwards and sets.starts_stratum[g]:
            running[:] = 0.0
        if not forwards:
            for s in range(q):
                out[g, s] += factor[g] * running[s]
        for i in range(sets.group_ptr[g], sets.group_ptr[g + 1]):
            row = x[sets.order[i]]
            for s in range(q):
                running[s] += r[i] * row[s]
        if forwards:
            for s in range(q):
                out[g, s] += factor[g] * running[s]
        elif sets.starts_stratum[g]:
            running[:] = 0.0


def finegray_means(
    eta: Rows, risk: RiskSets, tails: Sequence[Tail], x: Matrix
) -> tuple[Matrix, NDArray[np.float64]]:
    used = risk.group_events > 0
    shift = float(eta.max())
    sums = _mean_sums(eta - shift, risk, tails, x)[used]
    small = sums[:, 0] < np.exp(-LEVEL_SPAN)
    if small.any():
        # One exponent does not hold all: groups by the size of their risk sets, level by level.
        log_total = finegray_pass_wide(eta, risk, tails).log_total[used]
        level = np.where(small, np.floor(log_total / LEVEL_SPAN), np.nan)
        for k in np.unique(level[small]).tolist():
            part = _mean_sums(eta - LEVEL_SPAN * k, risk, tails, x)[used]
            sums[level == k] = part[level == k]
    return sums[:, 1:] / sums[:, :1], risk.group_events[used]


def finegray_information(
    eta: Rows, risk: RiskSets, tails: Sequence[Tail], x: Matrix, runtime: Runtime
) -> Matrix:
    """See `subdistribution_ref.finegray_information`.

    Rows up to their time are nested risk sets, and so are those of each tail, the other way; each
    adds squares of distances as in `term_means_ref.deviations_nested`, and so do the distances
    between the means of these parts of each risk set.
    """
    now = finegray_pass(eta, risk, tails, runtime)
    if risk.own.size or any(tail.sets.own.size for tail in tails):
        h = _back(x.shape[0], risk, now.expected)
        for tail, seen in zip(tails, now.expected_tail, strict=True):
            h += _back(x.shape[0], tail.sets, seen)
        # A difference, of squares as small as they can be.
        x = x - h @ x / (float(h.sum()) or 1.0)
        means, weights = finegray_means(eta, risk, tails, x)
        return x.T @ (h[:, None] * x) - means.T @ (weights[:, None] * means)
    return nested_information(eta, risk, tails, x, now)


class RowsBefore(NamedTuple):
    """Mean (q,) and size of other rows that are in the first risk sets of a scan, too.

    `log_size` is the log of the sum of their w e^eta; -inf if there are none.
    """

    mean: NDArray[np.float64]
    log_size: float


def nested_information(
    eta: Rows,
    risk: RiskSets,
    tails: Sequence[Tail],
    x: Matrix,
    now: FineGrayPass,
    before: Sequence[RowsBefore] | None = None,
) -> Matrix:
    """`finegray_information` without late entry, of a pass that was made.

    Where the rows at hand are a block of more, `before` are the other rows that come before them,
    for those up to their time and for each tail.
    """
    if before is None:
        before = [RowsBefore(np.zeros(x.shape[1]), -math.inf)] * (1 + len(tails))
    used = risk.group_events > 0
    out, mean, log_size = _part_information(eta, now.expected, x, risk, True, before[0])
    mean, log_size = mean[used], log_size[used]
    for tail, expected, more in zip(tails, now.expected_tail, before[1:], strict=True):
        inside, other, log_other = _part_information(eta, expected, x, tail.sets, False, more)
        with np.errstate(divide="ignore"):
            log_other = log_other[used] + np.log(tail.survival[used])
        both = np.logaddexp(log_size, log_other)
        share, apart = np.exp(log_other - both), other[used] - mean
        weight = np.exp(both - now.log_total[used]) * share * np.exp(log_size - both)
        out += inside + apart.T @ ((risk.group_events[used] * weight)[:, None] * apart)
        mean += share[:, None] * apart
        log_size = both
    return out


def _part_information(
    eta: Rows, expected: Rows, x: Matrix, sets: RiskSets, forwards: bool, before: RowsBefore
) -> tuple[Matrix, Matrix, NDArray[np.float64]]:
    """Information about a part's own mean (q, q); mean (G, q) and log size (G,) in each group."""
    with np.errstate(divide="ignore"):
        log_r = np.log(sets.weight) + eta[sets.order]
    z, out = x[sets.order], np.empty((sets.order.size, x.shape[1]))
    n_groups = sets.group_events.size
    mean, log_size = np.empty((n_groups, x.shape[1])), np.empty(n_groups)
    first, peak = before.mean.astype(np.float64), float(before.log_size)
    _deviations(log_r, expected, z, sets, forwards, first, peak, out, mean, log_size)
    return out.T @ out, mean, log_size


@kernel
def _join(
    x: Matrix,
    k: int,
    amount: float,
    total: float,
    expected: float,
    mean: Rows,
    out: Matrix,
    at: int,
) -> None:
    """Let row k of x join a set of size `total`: its weighted distance from the mean, and the mean.

    Arrays go as a whole, and are copied by loops: so the compiler puts it where it is called.
    """
    if total == 0.0:
        for s in range(mean.size):
            mean[s] = x[k, s]
    whole = total + amount
    step = amount / whole
    share = math.sqrt(expected * (total / whole))
    for s in range(mean.size):
        distance = x[k, s] - mean[s]
        out[at, s] = share * distance
        mean[s] += step * distance


@kernel
def _deviations(
    log_r: Rows,
    expected: Rows,
    x: Matrix,
    sets: RiskSets,
    forwards: bool,
    running: NDArray[np.float64],
    peak: float,
    out: Matrix,
    mean: Matrix,
    log_size: NDArray[np.float64],
) -> None:
    """Weighted distances from the mean of the rows up to g, or after g.

    `running` and `peak` are the mean and the log size of what comes before all rows.
    """
    n_groups = log_size.size
    total = 1.0 if peak > -math.inf else 0.0
    for k in range(n_groups):
        g = k if forwards else n_groups - 1 - k
        if forwards and sets.starts_stratum[g] and k > 0:
            peak, total = -math.inf, 0.0
        if not forwards:
            mean[g] = running
            log_size[g] = peak + math.log(total) if total > 0.0 else -math.inf
        for i in range(sets.group_ptr[g], sets.group_ptr[g + 1]):
            if log_r[i] > peak:
                total *= math.exp(peak - log_r[i])
                peak = log_r[i]
            r = math.exp(log_r[i] - peak) if log_r[i] > -math.inf else 0.0
            if r > 0.0:
                _join(x, i, r, total, expected[i], running, out, i)
                total += r
            else:
                out[i] = 0.0
        if forwards:
            mean[g] = running
            log_size[g] = peak + math.log(total) if total > 0.0 else -math.inf
        elif sets.starts_stratum[g]:
            peak, total = -math.inf, 0.0


def risk_below(limit: float, eta: Rows, weight: Rows) -> Rows:
    """Weight times e^eta, but at most e^limit."""
    with np.errstate(divide="ignore"):
        return np.exp(np.minimum(eta + np.log(weight), limit))


def _mean_sums(eta: Rows, risk: RiskSets, tails: Sequence[Tail], x: Matrix) -> Matrix:
    """Sums over the risk set of each group of w e^eta and w e^eta x (G, 1 + q).

    Of groups with larger summands than e^LEVEL, some number.
    """
    n_groups = risk.group_events.size
    one = np.ones(n_groups)
    both = np.concatenate([np.ones((x.shape[0], 1)), x], axis=1)
    sums = np.zeros((n_groups, both.shape[1]))
    for sets, factor, forwards in [
        (risk, one, True),
        *((t.sets, t.survival, False) for t in tails),
    ]:
        r = risk_below(LEVEL_SPAN, eta[sets.order], sets.weight)
        if not sets.own.size:
            _mean_parts(r, both, sets, factor, forwards, sums)
            continue
        part = np.empty(n_groups)
        for s in range(both.shape[1]):
            sum_at_risk(r * both[sets.order, s], sets, False, part)
            sums[:, s] += factor * part
    return sums
