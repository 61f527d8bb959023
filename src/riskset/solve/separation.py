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

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from riskset._types import Features, Index, Matrix, RiskSets, Rows
from riskset.data.risk_order import by_level
from riskset.kernels import separation_cpu as kernels
from riskset.model.curvature import ranges_after, ranges_at_risk
from riskset.model.loss import Loss
from riskset.solve.optimality import Problem

__all__ = ["Found", "find", "recedes_with", "restrict"]

MAX_ROUNDS = 200
CUTS = 64
FEW = 60
"""Up to so many free columns are searched together if those that moved give no direction."""
SAME = 1e-8
"""Values of x'd of several columns that differ by less of what they are summed from are equal, but
for the rounding of d. Those of a single column are exact: its numbers have an order."""
LINPROG = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


class Found(NamedTuple):
    """What came of a search.

    Attributes
    ----------
    direction : (p,) float64 or None
        A direction of recession, in stored units, largest entry 1 in size.
    is_decided : bool
        False if the search was cut short without one.
    """

    direction: Features | None
    is_decided: bool


def find(
    problem: Problem,
    free: NDArray[np.bool_],
    hint: Features,
    *,
    reached: Features | None,
    spread: Features,
) -> Found:
    """A direction of recession among the free columns, or none if the estimate is finite.

    Parameters
    ----------
    free : (p,) bool
        Columns without a penalty, not aliased.
    hint : (p,) float64
        What still moves, in stored units. Its largest columns are tried first, then `reached`, then
        a linear programme over the columns that move, then, if they are few, over all.
    reached : (p,) float64 or None
        Coefficients in stored units that may be a direction themselves.
    spread : (p,) float64
        Unit of each column.
    """
    size = np.where(free, np.abs(hint) * spread, 0.0)
    moving = np.flatnonzero(size > 1e-3 * size.max(initial=0.0))
    for direction in _candidates(hint, moving, size, reached):
        if _recedes(problem, direction):
            return Found(direction, True)
    every = np.flatnonzero(free)
    found = _search(problem, moving, spread)
    if found.direction is None and moving.size < every.size <= FEW:
        found = _search(problem, every, spread)
    return found


def recedes_with(problem: Problem, free: NDArray[np.bool_], column: int, sign: int) -> bool | None:
    """Whether the likelihood never falls along some direction that moves a column one way.

    Parameters
    ----------
    free : (p,) bool
        Columns that may move with it, itself among them.
    sign : {-1, 1}

    Returns
    -------
    bool or None
        None if it could not be decided.
    """
    columns = np.flatnonzero(free)
    here = int(np.searchsorted(columns, column))
    bounds = np.full((columns.size, 2), (-1.0, 1.0))
    bounds[here] = (0.0, 1.0) if sign > 0 else (-1.0, 0.0)
    d = np.zeros(columns.size)
    d[here] = sign
    spread = problem.spread[columns]
    gain = -d
    cuts = np.zeros((0, columns.size))
    for _ in range(MAX_ROUNDS):
        z = _Values.of(problem, _whole(problem, columns, d / spread))
        event, rival, gap = _violated(problem.loss, z)
        if event.size == 0:
            return True
        cuts = _with_cuts(problem, columns, spread, cuts, event, rival, gap)
        result = _programme(gain, cuts, bounds)
        if result is None:
            return None
        d = result
        if abs(d[here]) < 1e-8:
            return False
    return None


def _candidates(
    hint: Features, moving: Index, size: Features, reached: Features | None
) -> Iterator[Features]:
    for j in moving[np.argsort(-size[moving])][:5]:
        direction = np.zeros_like(hint)
        direction[j] = np.copysign(1.0, hint[j])
        yield direction
    if reached is not None and np.count_nonzero(reached) > 1:
        yield reached / np.abs(reached).max()


def _recedes(problem: Problem, direction: Features) -> bool:
    z = _Values.of(problem, direction)
    return _violated(problem.loss, z)[0].size == 0 and _strict(problem.loss, z)


def _search(problem: Problem, columns: Index, units: Features) -> Found:
    """By linear programmes over some columns; each round adds the pairs that it violates."""
    if columns.size == 0:
        return Found(None, True)
    spread = units[columns]
    score = _score(problem, columns) / spread
    score /= max(float(np.abs(score).max()), 1e-300)
    bound = np.zeros((0, columns.size))
    z = _Values.of(problem, _whole(problem, columns, score / spread))
    for _ in range(MAX_ROUNDS):
        event, rival, gap = _violated(problem.loss, z)
        if event.size == 0:
            return Found(z.direction if _strict(problem.loss, z) else None, True)
        bound = _with_cuts(problem, columns, spread, bound, event, rival, gap)
        # What the cuts themselves gain counts as well as the score, whatever its scale.
        d = _programme(bound.mean(axis=0) - score, bound, (-1.0, 1.0))
        if d is None:
            return Found(None, False)
        if not d.any():
            return Found(None, True)
        z = _Values.of(problem, _whole(problem, columns, d / spread))
    return Found(None, False)


def _with_cuts(
    problem: Problem,
    columns: Index,
    spread: Features,
    bound: Matrix,
    event: Index,
    rival: Index,
    gap: Rows,
) -> Matrix:
    """The conditions so far and those of the pairs that violate them most."""
    worst = np.argsort(gap)[::-1][:CUTS]
    pairs = np.concatenate([event[worst], rival[worst]])
    x = problem.design.stored(columns, pairs) / spread
    cuts = x[worst.size :] - x[: worst.size]
    largest = np.abs(cuts).max(axis=1, keepdims=True)
    cuts = np.unique(cuts / np.where(largest > 0, largest, 1.0), axis=0)
    return np.unique(np.concatenate([bound, cuts]), axis=0)


def _programme(cost: Features, bound: Matrix, box: object) -> Features | None:
    """Cheapest d in the box with ``bound @ d <= 0``, in units of the spread; None: not found."""
    result = linprog(
        cost,
        A_ub=bound,
        b_ub=np.zeros(bound.shape[0]),
        bounds=box,
        method="highs",
        options=LINPROG,
    )
    return np.where(np.abs(result.x) < 1e-8, 0.0, result.x) if result.status == 0 else None


def _score(problem: Problem, columns: Index) -> Features:
    """Gradient at eta = 0, whatever the offset: a direction is judged without it."""
    loss = problem.loss
    if not loss.offset.any():
        return problem.gradient_at_zero[columns]
    residual = loss.evaluate(np.zeros(problem.design.n_rows)).residual
    return problem.design.cross(residual, columns, runtime=loss.runtime)


def _whole(problem: Problem, columns: Index, d: Features) -> Features:
    direction = np.zeros(problem.design.n_features)
    direction[columns] = d / np.abs(d).max(initial=1e-300)
    return direction


class _Values(NamedTuple):
    """x'd of every row (caller's order), and how much of it may be rounding."""

    direction: Features
    z: Rows
    slack: Rows

    @classmethod
    def of(cls, problem: Problem, direction: Features) -> "_Values":
        runtime = problem.loss.runtime
        z = problem.design.product(direction, runtime=runtime)
        if np.count_nonzero(direction) == 1:
            return cls(direction, z, np.zeros_like(z))
        return cls(direction, z, SAME * problem.design.magnitude(direction, runtime=runtime))


def _violated(loss: Loss, values: _Values) -> tuple[Index, Index, Rows]:
    """Events that do not attain the maximum of z over their risk set: event, rival, gap."""
    risk = loss.risk
    peak, rival = _peaks(loss, values.z)
    group = np.repeat(np.arange(risk.group_events.size), np.diff(risk.group_ptr))
    events = np.flatnonzero(risk.event_weight > 0)
    event, rival, peak = risk.order[events], rival[group[events]], peak[group[events]]
    gap = peak - values.z[event]
    bad = gap > values.slack[event] + values.slack[rival]
    return event[bad], rival[bad], gap[bad]


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


def _strict(loss: Loss, values: _Values) -> bool:
    """Whether some risk set with events has a row below its maximum."""
    high, top = _peaks(loss, values.z)
    low, bottom = _peaks(loss, -values.z)
    used = loss.risk.group_events > 0
    slack = values.slack[top] + values.slack[bottom]
    return bool(((high + low)[used] > 10 * slack[used]).any())


def restrict(problem: Problem, direction: Features) -> Loss:
    """The likelihood in the limit: each risk set keeps the rows that attain its maximum of x'd."""
    loss = problem.loss
    values = _Values.of(problem, direction)
    peak, top = _peaks(loss, values.z)
    peak = peak - values.slack[top]
    z = values.z + values.slack
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
