"""Infinite estimates: a direction in which the likelihood never stops rising, and the limit there.

The partial likelihood has no finite maximum exactly when some d, not constant over every risk set,
has ``x_e'd = max over the risk set of x_i'd`` for every event e. Looking at the size of a
coefficient finds neither all such directions nor only these; a linear programme does, and is kept
small by adding only the (event, row) pairs that a candidate violates. Along d the likelihood tends
to the one in which a risk set keeps only the rows that attain its maximum.

References
----------
Bryson & Johnson (1981), Technometrics 23, 381-383, doi:10.2307/1268228; Heinze & Schemper (2001),
Biometrics 57, 114-119, doi:10.1111/j.0006-341X.2001.00114.x.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from riskset._types import Features, Index, Matrix, RiskSets, Rows
from riskset.data.risk_order import by_level
from riskset.kernels import separation_cpu as kernels
from riskset.model.curvature import ranges_after, ranges_at_risk
from riskset.model.loss import Loss
from riskset.solve.optimality import Problem

__all__ = ["find", "restrict"]

MAX_ROUNDS = 200
CUTS = 64
ATTAINS = 1e-7
"""How far below the maximum, relative to the largest |x'd|, a row still counts as attaining it."""


def find(problem: Problem, free: NDArray[np.bool_], eta: Rows) -> Features | None:
    """A direction of recession among the free columns, or None if the estimate is finite.

    Parameters
    ----------
    free : (p,) bool
        Columns without a penalty, not aliased.
    eta : (n,) float64
        Current X beta: its violated pairs start the search.

    Returns
    -------
    (p,) float64 or None
        In stored units, largest entry 1 in size.
    """
    columns = np.flatnonzero(free)
    score = problem.gradient_at_zero[columns] - problem.design.cross(
        _mean_shift(problem), columns, runtime=problem.loss.runtime
    )
    cuts: list[Matrix] = []
    d, z = np.zeros(columns.size), eta
    for _ in range(MAX_ROUNDS):
        event, rival, gap = _violated(problem.loss, z)
        if event.size == 0 and cuts:
            direction = _whole(problem, columns, d)
            moves = float(np.ptp(z)) > 0 and _strict(problem.loss, z)
            return direction if moves else None
        worst = np.argsort(gap)[::-1][:CUTS]
        pairs = np.concatenate([event[worst], rival[worst]])
        x = problem.design.stored(columns, pairs)
        cuts.append(x[worst.size :] - x[: worst.size])
        bound = np.concatenate(cuts)
        result = linprog(
            -score, A_ub=bound, b_ub=np.zeros(bound.shape[0]), bounds=(-1.0, 1.0), method="highs"
        )
        if result.status != 0:
            return None
        d = np.where(np.abs(result.x) < 1e-9, 0.0, result.x)
        if -result.fun <= 1e-9 * np.abs(score).sum() or not d.any():
            return None
        z = problem.design.product(d, columns, runtime=problem.loss.runtime)
    return None


def _mean_shift(problem: Problem) -> Rows:
    # The score at eta = 0, whatever the offset: a direction is judged without it.
    loss = problem.loss
    if not loss.offset.any():
        return np.zeros(problem.design.n_rows)
    return problem.null.residual - loss.evaluate(np.zeros(problem.design.n_rows)).residual


def _whole(problem: Problem, columns: Index, d: Features) -> Features:
    direction = np.zeros(problem.design.n_features)
    direction[columns] = d / np.abs(d).max()
    return direction


def _violated(loss: Loss, z: Rows) -> tuple[Index, Index, Rows]:
    """Events that do not attain the maximum of z over their risk set: event, rival, gap."""
    risk = loss.risk
    peak, rival = _peaks(loss, z)
    group = np.repeat(np.arange(risk.group_events.size), np.diff(risk.group_ptr))
    events = np.flatnonzero(risk.event_weight > 0)
    gap = peak[group[events]] - z[risk.order[events]]
    bad = gap > 1e-9 * max(float(np.abs(z).max()), 1e-300)
    return risk.order[events[bad]], rival[group[events[bad]]], gap[bad]


def _peaks(loss: Loss, z: Rows) -> tuple[NDArray[np.float64], Index]:
    """Largest z of each risk set, and a row (caller's) that has it."""
    risk = loss.risk
    n_groups = risk.group_events.size
    present = np.where(risk.weight > 0, z[risk.order], -np.inf)
    if risk.own.size:
        peak, at = kernels.peaks_cover(
            present, risk.own, risk.end, risk.level_rows, risk.level_ptr, n_groups
        )
    else:
        peak, at = kernels.peaks_nested(present, risk.group_ptr, risk.starts_stratum)
    rival = risk.order[np.maximum(at, 0)]
    for tail in loss.tails:
        sets = tail.sets
        if not sets.order.size:
            continue
        own, end = ranges_after(sets)
        own_z = np.where(sets.weight > 0, z[sets.order], -np.inf)
        top, at = kernels.peaks_cover(own_z, own, end, *by_level(own, end, n_groups), n_groups)
        higher = (top > peak) & (tail.survival > 0)
        peak = np.where(higher, top, peak)
        rival = np.where(higher, sets.order[np.maximum(at, 0)], rival)
    return peak, rival


def _strict(loss: Loss, z: Rows) -> bool:
    """Whether some risk set with events has a row below its maximum."""
    high, _ = _peaks(loss, z)
    low, _ = _peaks(loss, -z)
    used = loss.risk.group_events > 0
    return bool(((high + low)[used] > ATTAINS * np.abs(z).max()).any())


def restrict(problem: Problem, direction: Features) -> Loss:
    """The likelihood in the limit: each risk set keeps the rows that attain its maximum of x'd."""
    loss = problem.loss
    z = problem.design.product(direction, runtime=loss.runtime)
    peak, _ = _peaks(loss, z)
    z = z + ATTAINS * float(np.abs(z).max())
    tails = tuple(
        tail._replace(
            sets=_attaining(
                tail.sets, *ranges_after(tail.sets), z, np.where(tail.survival > 0, peak, np.inf)
            )
        )
        for tail in loss.tails
    )
    return loss.restricted(_attaining(loss.risk, *ranges_at_risk(loss.risk), z, peak), tails)


def _attaining(
    sets: RiskSets, own: Index, end: Index, z: Rows, peak: NDArray[np.float64]
) -> RiskSets:
    """What is left of risk sets: each row where its z reaches the peak."""
    rows, begin, stop = kernels.attaining(z[sets.order], peak, own, end)
    return _pieces(sets, rows, begin, stop, own)


def _pieces(risk: RiskSets, rows: Index, begin: Index, stop: Index, own: Index) -> RiskSets:
    """Risk sets of row pieces: position `rows[k]` is at risk in groups begin[k] to stop[k]."""
    has_event = (risk.event_weight[rows] > 0) & (begin == own[rows])
    # An event's piece must stand in its own group; the others may stand where they begin.
    by_group = np.argsort(begin, kind="stable")
    rows, begin, stop, has_event = (
        rows[by_group],
        begin[by_group],
        stop[by_group],
        has_event[by_group],
    )
    n_groups = risk.group_events.size
    group_ptr = np.searchsorted(begin, np.arange(n_groups + 1)).astype(np.int64)
    level_rows, level_ptr = by_level(begin, stop, n_groups)
    cut = np.searchsorted(group_ptr, np.linspace(0, rows.size, risk.chunk_ptr.size)[1:-1])
    chunks = np.unique(np.concatenate([[0], cut, [n_groups]])).astype(np.int64)
    return risk._replace(
        order=risk.order[rows],
        weight=risk.weight[rows],
        event_weight=np.where(has_event, risk.event_weight[rows], 0.0),
        group_ptr=group_ptr,
        chunk_ptr=chunks,
        own=begin,
        end=stop,
        level_rows=level_rows,
        level_ptr=level_ptr,
    )
