"""Infinite estimates: a direction in which the likelihood never stops rising, and the limit there.

The partial likelihood has no finite maximum exactly when some d, not constant over every risk set,
has ``x_e'd = max over the risk set of x_i'd`` for every event e. Looking at the size of a
coefficient finds neither all such directions nor only these; a linear programme does, and is kept
small by adding only the (event, row) pairs that a candidate violates. The limit along d:
`solve.limit`.

References
----------
Bryson & Johnson (1981), Technometrics 23, 381-383, doi:10.2307/1268228; Heinze & Schemper (2001),
Biometrics 57, 114-119, doi:10.1111/j.0006-341X.2001.00114.x.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from riskset._types import Features, Index, Matrix, Rows
from riskset.model.logistic import LogisticLoss
from riskset.model.loss import Loss
from riskset.solve.limit import Values, peaks
from riskset.solve.optimality import Problem

__all__ = ["Found", "find", "recedes_with"]

MAX_ROUNDS = 200
CUTS = 64
FEW = 60
"""Up to so many free columns are searched all together."""
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

    Of a few columns the answer depends on the rows and these columns alone, neither on penalised
    ones nor on where a fit ended: first on all that recede one by one, then on a linear programme.

    Parameters
    ----------
    free : (p,) bool
        Columns without a penalty, not aliased.
    hint : (p,) float64
        What still moves, in stored units. Of many columns its largest are tried first, then
        `reached`, then a linear programme over those that move.
    reached : (p,) float64 or None
        Coefficients in stored units that may be a direction themselves.
    spread : (p,) float64
        Unit of each column.
    """
    problem = _as_partial(problem)
    every = np.flatnonzero(free)
    if every.size <= FEW:
        found = _each_alone(problem, every) or _search(problem, every, spread)
        if found.is_decided:
            return found
    size = np.where(free, np.abs(hint) * spread, 0.0)
    moving = np.flatnonzero(size > 1e-3 * size.max(initial=0.0))
    for direction in _candidates(hint, moving, size, reached):
        if _recedes(problem, direction):
            return Found(direction, True)
    return _search(problem, moving, spread)


def _as_partial(problem: Problem) -> Problem:
    """With a partial likelihood that has the same directions of recession."""
    loss = problem.loss
    return replace(problem, loss=loss.as_pairs()) if isinstance(loss, LogisticLoss) else problem


def _each_alone(problem: Problem, columns: Index) -> Found | None:
    """All columns at once that recede one by one, the way that their score points."""
    direction = np.zeros(problem.design.n_features)
    for j, score in zip(columns, _score(problem, columns), strict=True):
        one = np.zeros_like(direction)
        one[j] = np.sign(score)
        if score != 0 and _recedes(problem, one):
            direction[j] = one[j] / problem.spread[j]
    return Found(direction / np.abs(direction).max(), True) if direction.any() else None


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
    problem = _as_partial(problem)
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
        z = Values.of(problem.design, problem.loss, _whole(problem, columns, d / spread))
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
    z = Values.of(problem.design, problem.loss, direction)
    return _violated(problem.loss, z)[0].size == 0 and _strict(problem.loss, z)


def _search(problem: Problem, columns: Index, units: Features) -> Found:
    """By linear programmes over some columns; each round adds the pairs that it violates."""
    if columns.size == 0:
        return Found(None, True)
    spread = units[columns]
    score = _score(problem, columns) / spread
    score /= max(float(np.abs(score).max()), 1e-300)
    bound = np.zeros((0, columns.size))
    z = Values.of(problem.design, problem.loss, _whole(problem, columns, score / spread))
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
        z = Values.of(problem.design, problem.loss, _whole(problem, columns, d / spread))
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


def _violated(loss: Loss, values: Values) -> tuple[Index, Index, Rows]:
    """Events that do not attain the maximum of z over their risk set: event, rival, gap."""
    risk = loss.risk
    peak, rival = peaks(loss, values.z)
    group = np.repeat(np.arange(risk.group_events.size), np.diff(risk.group_ptr))
    events = np.flatnonzero(risk.event_weight > 0)
    event, rival, peak = risk.order[events], rival[group[events]], peak[group[events]]
    gap = peak - values.z[event]
    bad = gap > values.slack[event] + values.slack[rival]
    return event[bad], rival[bad], gap[bad]


def _strict(loss: Loss, values: Values) -> bool:
    """Whether some risk set with events has a row below its maximum."""
    high, top = peaks(loss, values.z)
    low, bottom = peaks(loss, -values.z)
    used = loss.risk.group_events > 0
    slack = values.slack[top] + values.slack[bottom]
    return bool(((high + low)[used] > 10 * slack[used]).any())
