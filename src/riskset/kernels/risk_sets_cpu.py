"""The partial likelihood on the CPU. The specification is `risk_sets_ref`.

Without late entry risk sets are nested and one running sum in each direction gives everything in
O(n). Both sums are cut into fixed chunks (totals, carries, chunks again): threads share the chunks
and the bits do not depend on how many there are. With late entry the sums over risk sets come from
`late_entry_cpu`. `exp` is taken after one shift while eta spans less than `MAX_ETA_SPAN`; beyond
it, `wide_range_cpu` takes over.

A risk set is kept in two parts, the rows with an event in the group (tied) and the rest, so that
Efron's terms, rest + (1 - k/m) tied, are sums too: nothing is ever subtracted from a total.
"""

import math

import numpy as np
from numpy.typing import NDArray

from riskset._runtime import Runtime
from riskset._types import RiskSets, Rows
from riskset.kernels import late_entry_cpu as late_entry
from riskset.kernels import wide_range_cpu as wide_range
from riskset.kernels._jit import kernel
from riskset.kernels._vector import LANES
from riskset.kernels._vector_functions import exponentials, logarithms
from riskset.kernels.risk_sets_ref import CoxPass

__all__ = ["MAX_ETA_SPAN", "CoxPass", "cox_pass", "sum_totals"]

MAX_ETA_SPAN = 500.0
"""Largest range of eta under one shift: exp(-500) = 7e-218 leaves room for weights that differ by
a factor of 1e80, for the reciprocals of totals, and for sums of either."""

MIN_TOTAL = 1e-280
"""Smaller totals begin to lose digits soon."""

BLOCK = 256
"""Rows exponentiated at once. The likelihood is summed by blocks, too: the line search compares its
last digits, and sums in two levels round less."""


@kernel
def _totals(
    first: int,
    last: int,
    eta: Rows,
    shift: float,
    risk: RiskSets,
    efron: bool,
    r: Rows,
    rest: NDArray[np.float64],
    tied: NDArray[np.float64],
    chunk_total: NDArray[np.float64],
    chunk_starts: NDArray[np.bool_],
    chunk_score: NDArray[np.float64],
) -> None:
    """Chunk by chunk: r, and sums over nested risk sets since the chunk or stratum began."""
    order, weight, event_weight, ptr = risk.order, risk.weight, risk.event_weight, risk.group_ptr
    starts, chunk_ptr = risk.starts_stratum, risk.chunk_ptr
    rows = np.zeros((BLOCK // LANES, LANES))
    x = rows.reshape(BLOCK)
    for c in range(first, last):
        begin, stop = ptr[chunk_ptr[c]], ptr[chunk_ptr[c + 1]]
        chunk_score[c] = 0.0
        for a in range(begin, stop, BLOCK):
            n = min(BLOCK, stop - a)
            score = 0.0
            for i in range(n):
                x[i] = eta[order[a + i]] - shift
                score += event_weight[a + i] * x[i]
            chunk_score[c] += score
            x[n:] = 0.0
            exponentials(rows, 0, (n + LANES - 1) // LANES, rows)
            # Of slices: an index a + i might be negative as far as the compiler knows, and it would
            # gather and scatter.
            own_r, own_weight = r[a : a + n], weight[a : a + n]
            for i in range(n):
                own_r[i] = own_weight[i] * x[i]
        # Rows come by falling time, so those of a group join all that came before in the stratum:
        # the running sum is the total over the risk set of the group's time.
        running = 0.0
        chunk_starts[c] = False
        for g in range(chunk_ptr[c], chunk_ptr[c + 1]):
            if starts[g]:
                running = 0.0
                chunk_starts[c] = True
            alive = dead = 0.0
            for i in range(ptr[g], ptr[g + 1]):
                if efron and event_weight[i] > 0.0:
                    dead += r[i]
                else:
                    alive += r[i]
            rest[g] = running + alive
            if efron:
                tied[g] = dead
            running += alive + dead
        chunk_total[c] = running


@kernel
def _efron_terms(n_events: float, m: int, alive: float, dead: float) -> tuple[float, float, float]:
    """Term of the likelihood, hazard, and hazard of a tied row, of m tied events."""
    # Efron (1977), JASA 72, 557-565: of m tied events the k-th finds each of the tied rows still at
    # risk with probability 1 - k/m. A tied row is exposed to that share of each increment, so its
    # hazard (h_tied) is smaller than that of the others (h).
    step = n_events / m
    h = h_tied = term = 0.0
    for k in range(m):
        share = (m - k) / m
        d = alive + share * dead
        term += step * math.log(d)
        h += step / d
        h_tied += share * step / d
    return term, h, h_tied


@kernel
def _hazards(
    first: int,
    last: int,
    shift: float,
    risk: RiskSets,
    efron: bool,
    carry: NDArray[np.float64],
    rest: NDArray[np.float64],
    tied: NDArray[np.float64],
    hazard: NDArray[np.float64],
    hazard_tied: NDArray[np.float64],
    log_total: NDArray[np.float64],
    log_hazard: NDArray[np.float64],
    chunk_hazard: NDArray[np.float64],
    chunk_value: NDArray[np.float64],
) -> None:
    """Chunk by chunk: complete totals, hazard increments, and the sum to hand to the left.

    `hazard_tied` is the increment that a row with an event in the group is exposed to; without
    Efron's method it is `hazard`, and `tied` is not read. `hazard` may be `rest`.
    """
    group_events, group_tied = risk.group_events, risk.group_tied
    starts, chunk_ptr = risk.starts_stratum, risk.chunk_ptr
    rows, logs = np.ones((BLOCK // LANES, LANES)), np.empty((BLOCK // LANES, LANES))
    totals, log_totals = rows.reshape(BLOCK), logs.reshape(BLOCK)
    for c in range(first, last):
        before = carry[c]
        value = handed = 0.0
        inside = True
        for a in range(chunk_ptr[c], chunk_ptr[c + 1], BLOCK):
            n = min(BLOCK, chunk_ptr[c + 1] - a)
            first_start = n
            for k in range(n):
                if starts[a + k]:
                    before = 0.0
                    first_start = min(first_start, k)
                # Until a stratum starts in this chunk, its groups belong to one that began in a
                # chunk before, whose rows are at risk here, too.
                rest[a + k] += before
                total = rest[a + k] + (tied[a + k] if efron else 0.0)
                totals[k] = max(total, MIN_TOTAL)
                log_total[a + k] = total
            logarithms(rows, 0, (n + LANES - 1) // LANES, logs)
            block = 0.0
            for k in range(n):
                g = a + k
                total, log_d = log_total[g], log_totals[k]
                n_events, m = group_events[g], group_tied[g]
                h = h_tied = term = 0.0
                log_h = -math.inf
                if total < MIN_TOTAL:
                    # Where somebody has an event, `has_underflow` will see it.
                    log_d = math.log(total) if total > 0.0 and m == 0 else -math.inf
                    m = 0
                elif not total < math.inf:
                    log_d = total
                if efron and m > 1:
                    term, h, h_tied = _efron_terms(n_events, m, rest[g], tied[g])
                    log_h = math.log(h)
                elif m > 0:
                    term = n_events * log_d
                    h = h_tied = n_events / total
                    log_h = (math.log(n_events) if n_events != 1.0 else 0.0) - log_d
                hazard[g] = h
                if efron:
                    hazard_tied[g] = h_tied
                log_total[g], log_hazard[g] = log_d + shift, log_h - shift
                block -= term
                if inside and k < first_start:
                    handed += h
            value += block
            inside = inside and first_start == n
        chunk_hazard[c] = handed
        chunk_value[c] = value


@kernel
def _residuals(
    first: int,
    last: int,
    risk: RiskSets,
    efron: bool,
    carry: NDArray[np.float64],
    r: Rows,
    hazard: NDArray[np.float64],
    hazard_tied: NDArray[np.float64],
    expected: Rows,
    residual: Rows,
) -> None:
    """Chunk by chunk, backwards: cumulative hazard, expected events, residuals.

    `expected` may be `r`. Without Efron's method `hazard_tied` is not read.
    """
    order, event_weight, ptr = risk.order, risk.event_weight, risk.group_ptr
    starts, chunk_ptr = risk.starts_stratum, risk.chunk_ptr
    for c in range(first, last):
        cumulative = carry[c]
        for g in range(chunk_ptr[c + 1] - 1, chunk_ptr[c] - 1, -1):
            # From the earliest time of a stratum (its last group) on: the hazard that a row meets
            # is what the groups behind it, at earlier times, and its own add up to.
            after = cumulative
            cumulative += hazard[g]
            for i in range(ptr[g], ptr[g + 1]):
                e = r[i] * cumulative
                if efron and event_weight[i] > 0.0:
                    e = r[i] * (after + hazard_tied[g])
                expected[i] = e
                residual[order[i]] = event_weight[i] - e
            if starts[g]:
                cumulative = 0.0


def cox_pass(eta: Rows, risk: RiskSets, efron: bool, runtime: Runtime) -> CoxPass:
    high = float(eta.max())
    if high - float(eta.min()) < MAX_ETA_SPAN:
        done = _one_shift(eta, high, risk, efron, runtime)
        if not has_underflow(done.log_total, high, risk):
            return done
    return wide_range.cox_pass_wide(eta, risk, efron)


def has_underflow(log_total: NDArray[np.float64], shift: float, risk: RiskSets) -> bool:
    """Whether weights as small as hazards made a total so small that it lost digits."""
    least = np.min(log_total, initial=math.inf, where=risk.group_tied > 0)
    return not bool(least - shift > math.log(MIN_TOTAL))


def _carry(sums: NDArray[np.float64], has_start: NDArray[np.bool_]) -> NDArray[np.float64]:
    """What each chunk receives from those before it; a chunk in which a stratum starts blocks."""
    carry = np.zeros(sums.size)
    for c in range(1, sums.size):
        carry[c] = sums[c - 1] + (0.0 if has_start[c - 1] else carry[c - 1])
    return carry


def _one_shift(eta: Rows, shift: float, risk: RiskSets, efron: bool, runtime: Runtime) -> CoxPass:
    # Three passes: totals since each chunk began, then totals over risk sets and hazards, which
    # need what the chunks before hand on, then cumulative hazards, which need what the chunks
    # behind do.
    n_groups, n_chunks = risk.group_events.size, risk.chunk_ptr.size - 1
    # Memory that was never touched costs as much as a pass over it, so arrays are written over.
    r = np.empty(risk.order.size)
    rest, log_total, log_hazard = np.empty((3, n_groups))
    tied, hazard_tied = np.empty((2, n_groups if efron else 0))
    hazard = rest
    chunk_total, chunk_hazard, chunk_score, chunk_value = np.empty((4, n_chunks))
    has_start = np.empty(n_chunks, dtype=np.bool_)
    runtime.run(
        _totals, n_chunks, eta, shift, risk, efron, r, rest, tied, chunk_total, has_start,
        chunk_score,
    )  # fmt: skip
    if risk.own.size:
        late_entry.sum_at_risk(r, risk, efron, rest)
        carry = np.zeros(n_chunks)
    else:
        carry = _carry(chunk_total, has_start)
    runtime.run(
        _hazards, n_chunks, shift, risk, efron, carry, rest, tied, hazard, hazard_tied, log_total,
        log_hazard, chunk_hazard, chunk_value,
    )  # fmt: skip
    residual = np.empty(eta.size)
    if risk.own.size:
        expected = np.empty(r.size)
        late_entry.sum_seen(hazard, hazard_tied if efron else hazard, risk, expected)
        expected *= r
        # A row may stand in several places (`RiskSets` of a limit), so its parts are added up.
        residual[:] = np.bincount(risk.order, risk.event_weight - expected, eta.size)
    else:
        back = _carry(chunk_hazard[::-1], has_start[::-1])[::-1].copy()
        expected = r
        runtime.run(
            _residuals, n_chunks, risk, efron, back, r, hazard, hazard_tied, expected, residual
        )
    value = float(chunk_score.sum() + chunk_value.sum())
    return CoxPass(value, residual, expected, log_total, log_hazard)


def sum_totals(
    eta: Rows, shift: float, risk: RiskSets, runtime: Runtime
) -> tuple[Rows, float, NDArray[np.float64]]:
    n_groups, n_chunks = risk.group_events.size, risk.chunk_ptr.size - 1
    r = np.empty(risk.order.size)
    total, tied = np.empty(n_groups), np.empty(0)
    chunk_total, chunk_score = np.empty((2, n_chunks))
    has_start = np.empty(n_chunks, dtype=np.bool_)
    runtime.run(
        _totals, n_chunks, eta, shift, risk, False, r, total, tied, chunk_total, has_start,
        chunk_score,
    )  # fmt: skip
    if risk.own.size:
        late_entry.sum_at_risk(r, risk, False, total)
    else:
        before = _carry(chunk_total, has_start)
        for c in range(1, n_chunks):
            begin, end = risk.chunk_ptr[c], risk.chunk_ptr[c + 1]
            starts = np.flatnonzero(risk.starts_stratum[begin:end])
            total[begin : begin + starts[0] if starts.size else end] += before[c]
    return r, float(chunk_score.sum()), total
