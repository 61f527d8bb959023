"""Infinite estimates: a direction in which the likelihood never stops rising, or none.

The partial likelihood has no finite maximum exactly when some d, not constant over every risk set,
has ``x_e'd = max over the risk set of x_i'd`` for every event e. That depends on the columns, the
order of the times and the strata alone: offsets and positive weights only hide it from floating
point. Looking at the size of a coefficient finds neither all such directions nor only these.

No verdict hangs on rounding. An estimate is infinite if a direction was found whose conditions hold
in whole numbers (`solve.exact`), be it that columns were rounded in their last place. It is finite
if there is a proof with bounds on all rounding (`solve.finiteness`): at the answer, or without
offsets and weights, or from the multipliers of a linear programme that is kept small by adding only
the (event, row) pairs that a candidate violates. Where neither is found it is undecided, and a
solver says so. The limit along d: `solve.limit`.

References
----------
Bryson & Johnson (1981), Technometrics 23, 381-383, doi:10.2307/1268228; Heinze & Schemper (2001),
Biometrics 57, 114-119, doi:10.1111/j.0006-341X.2001.00114.x; Konis (2007), Linear programming
algorithms for detecting separated data in binary logistic regression models, DPhil thesis, Oxford.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from riskset._types import Features, Index, Matrix, Rows
from riskset.model.loss import Loss, bare
from riskset.model.risk_set_limit import peaks
from riskset.solve.exact import Direction, on_face, order_of, whole_rows
from riskset.solve.finiteness import ProofFrame, ScoreAndInformation
from riskset.solve.limit import DirectionValues
from riskset.solve.optimality import Problem
from riskset.solve.prox_newton import Minimisation

__all__ = ["SeparationVerdict", "find_recession", "recedes_with"]

MAX_PROOF_WORK = 2e12
"""Above this many multiplications, n q^2, no proof is sought. One takes as long as the exact
curvature of a single step."""
MAX_ROUNDS = 200
MAX_NEW_CUTS = 64
MAX_COLUMNS_TOGETHER = 60
"""Up to so many free columns are searched all together."""
MAX_FACE_COLUMNS = 200
"""Directions of more columns are taken as they come, and not moved to where ties are exact."""
MAX_SIMPLE_DENOMINATOR = 1000
"""Ratios of a direction's components up to this denominator are tried first."""
MAX_RATIO_ERROR = 1e-6
MAX_TIGHT_GAP = 1e-8
"""A condition that a direction of a linear programme meets by less is met with equality."""
LINPROG = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
REST_TOLERANCE = 1e-6
MAX_REST_STEPS = 60


class SeparationVerdict(NamedTuple):
    """What came of a search: a direction of recession, or None.

    It is decided if there is a direction, or a proof that there is none: the estimate is finite.
    """

    direction: Direction | None
    is_decided: bool


FINITE, UNDECIDED = SeparationVerdict(None, True), SeparationVerdict(None, False)


def find_recession(
    problem: Problem,
    free: NDArray[np.bool_],
    eta: Rows,
    *,
    hint: Features,
    reached: Features | None,
    known: ScoreAndInformation | None = None,
) -> SeparationVerdict:
    """A direction of recession among the free columns, or none if the estimate is finite.

    Of a few columns the direction depends on the rows and these columns alone, neither on penalised
    ones nor on where a fit ended: first on all that recede one by one, then on a linear programme.

    `free` columns (p,) have no penalty and are not aliased, and `eta` (n,) is where a fit ended.
    `hint` (p,) says what still moves, in stored units: of many columns its largest are tried first,
    then the coefficients `reached`, which may be a direction themselves, then a linear programme
    over those that move. If it is `known` where the fit took its last step, a proof there costs
    next to nothing, and is as good.
    """
    columns = np.flatnonzero(free)
    design, loss = problem.design, problem.loss
    if columns.size == 0:
        return FINITE
    frame = None if known is None else ProofFrame.where_known(design, loss, known, columns)
    if frame is not None and frame.is_proof():
        return FINITE
    # First the proofs that the estimate is finite, the cheapest first: nearly all are.
    is_affordable = float(design.n_rows) * columns.size**2 <= MAX_PROOF_WORK
    if is_affordable and ProofFrame.at(design, loss, eta, columns).is_proof():
        return FINITE
    # Then candidates for a direction, which are checked exactly.
    pairs = _as_partial(problem)
    if columns.size <= MAX_COLUMNS_TOGETHER:
        direction = _each_alone(pairs, columns)
        moving = columns
    else:
        size = np.where(free, np.abs(hint) * problem.spread, 0.0)
        moving = np.flatnonzero(size > 1e-3 * size.max(initial=0.0))
        candidates = _candidates(hint, moving, size, reached)
        direction = next((d for d in candidates if _recedes(pairs, d)), None)
    if direction is not None:
        return SeparationVerdict(direction, True)
    if not is_affordable:
        return UNDECIDED
    if _is_finite_at_rest(problem, free, columns):
        return FINITE
    found = _search(pairs, moving)
    return UNDECIDED if found.direction is None and moving.size < columns.size else found


def _as_partial(problem: Problem) -> Problem:
    """With a partial likelihood that has the same directions of recession, without its offsets."""
    return replace(problem, loss=bare(problem.loss.as_partial()))


def _is_finite_at_rest(problem: Problem, free: NDArray[np.bool_], columns: Index) -> bool:
    """Whether the minimum without offsets, weights and penalised columns proves it."""
    loss = problem.bare
    eta = np.zeros(problem.design.n_rows)
    now = loss.evaluate(eta)
    gradient = problem.design.cross(now.residual, runtime=loss.runtime)
    scale = float(np.abs(gradient / problem.spread)[columns].max(initial=0.0)) or 1.0
    rest = replace(problem, loss=loss, null=now, gradient_at_zero=gradient, kkt_scale=scale)
    none = np.zeros(problem.design.n_features)
    run = Minimisation(rest, none, none, REST_TOLERANCE, MAX_REST_STEPS, free, None)
    run.begin(None)
    run.solve()
    return ProofFrame.at(problem.design, loss, run.eta, columns).is_proof()


def _each_alone(problem: Problem, columns: Index) -> Direction | None:
    """All columns at once that recede one by one, the way that their score points."""
    found, values = [], []
    residual = problem.loss.evaluate(np.zeros(problem.design.n_rows)).residual
    scores = problem.design.cross(residual, columns, runtime=problem.loss.runtime)
    for j, score in zip(columns, scores, strict=True):
        sign = int(np.sign(score))
        if sign and _recedes(problem, Direction(np.array([j]), (sign,), problem.design.n_features)):
            found.append(int(j))
            # Units that are powers of two: any positive factor will do.
            values.append(sign / Fraction(2.0 ** round(np.log2(problem.spread[j]))))
    if not found:
        return None
    return Direction.of(problem.design.n_features, np.array(found), values)


def recedes_with(problem: Problem, free: NDArray[np.bool_], column: int, sign: int) -> bool | None:
    """Whether the likelihood never falls along some direction that moves a column one way.

    The columns that may move with it are `free` (p,), itself among them. None: it is undecided.
    """
    problem = _as_partial(problem)
    columns = np.flatnonzero(free)
    here = int(np.searchsorted(columns, column))
    bounds = np.full((columns.size, 2), (-1.0, 1.0))
    bounds[here] = (0.0, 1.0) if sign > 0 else (-1.0, 0.0)
    d = np.zeros(columns.size)
    d[here] = sign
    units = np.diag(1.0 / problem.spread[columns])
    gain = -d
    cuts = _Cuts.none(columns.size)
    for _ in range(MAX_ROUNDS):
        stored, violated = _next_cuts(problem, columns, units, d)
        if not violated.event.size:
            found = _exactly(problem, stored, cuts.tight(d))
            if found is None:
                return None
            return bool(found.value[column] * sign > 0) or None
        cuts = cuts.joined(violated)
        result = _programme(gain, cuts.bound, bounds)
        if result is None:
            return None
        d = result[0]
        if abs(d[here]) < 1e-8:
            return False
    return None


def _candidates(
    hint: Features, moving: Index, size: Features, reached: Features | None
) -> Iterator[Direction]:
    for j in moving[np.argsort(-size[moving])][:5]:
        yield Direction(np.array([j]), (int(np.copysign(1.0, hint[j])),), hint.size)
    if reached is not None and np.count_nonzero(reached) > 1:
        columns = np.flatnonzero(reached)
        yield Direction.of(hint.size, columns, map(Fraction, reached[columns].tolist()))


def _recedes(problem: Problem, direction: Direction) -> bool:
    """Whether the conditions hold, and by more than rounding for some pair if that is ignored."""
    values = DirectionValues.of(problem.design, problem.loss, direction)
    if _violated(problem.loss, values)[0].size:
        return False
    if direction.is_rounded:
        values = DirectionValues.of(problem.design, problem.loss, direction.value)
    return _is_strict(problem.loss, values)


def _search(problem: Problem, columns: Index) -> SeparationVerdict:
    """By linear programmes over some columns; each round adds the pairs that it violates."""
    if columns.size == 0:
        return FINITE
    programme = _Programme.of(problem, columns)
    if programme.frame.is_proof():
        return FINITE
    d = programme.score
    if not d.any():  # it points nowhere, and the information lacks the digits for a proof
        return UNDECIDED
    for _ in range(MAX_ROUNDS):
        stored, violated = _next_cuts(problem, columns, programme.units, d)
        if not violated.event.size:
            direction = _exactly(problem, stored, programme.cuts.tight(d))
            return UNDECIDED if direction is None else SeparationVerdict(direction, True)
        cuts = programme.cuts.joined(violated)
        programme = replace(programme, cuts=cuts)
        # What the cuts themselves gain counts as well as the score, whatever its scale.
        cost = cuts.bound.mean(axis=0) - programme.score
        found = _programme(cost, cuts.bound, (-1.0, 1.0))
        if found is None:
            return UNDECIDED
        d, multipliers = found
        if not d.any():
            return FINITE if programme.is_proof(multipliers) else UNDECIDED
    return UNDECIDED


@dataclass(frozen=True)
class _Programme:
    """A linear programme over directions, in coordinates that suit the columns.

    The frame is without offsets, at 0, and a direction d of the programme is ``units @ d`` in
    stored units. `score` (q,) is the gradient of the frame in these coordinates, largest entry 1,
    and `scale` (q,) turns such a vector into one of the frame. `cuts` are its
    conditions.
    """

    frame: ProofFrame
    units: Matrix
    score: Features
    scale: Features
    cuts: "_Cuts"

    @classmethod
    def of(cls, problem: Problem, columns: Index) -> "_Programme":
        frame = ProofFrame.at(
            problem.design, problem.loss, np.zeros(problem.design.n_rows), columns
        )
        units = np.ones(columns.size)
        if frame.is_plain:
            units = 1.0 / problem.spread[columns]
        score = frame.gradient * units
        most = max(float(np.abs(score).max()), 1e-300)
        nothing = _Cuts.none(columns.size)
        return cls(frame, frame.transform * units, score / most, most / units, nothing)

    def is_proof(self, multipliers: Rows) -> bool:
        """Whether the score is a combination of the cuts but for what is proven to be too little.

        `multipliers` (m,) are those of the programme, besides the mean of the cuts in its
        objective.
        """
        weights = np.maximum(multipliers, 0.0) + 1.0 / multipliers.size
        rest = self.score - weights @ self.cuts.bound
        rounding = 1e-15 * multipliers.size * (weights @ np.abs(self.cuts.bound))
        return self.frame.is_proof_with((np.abs(rest) + rounding) * self.scale)


@dataclass(frozen=True)
class _Cuts:
    """Conditions of a linear programme: no rival of an event is above it.

    Attributes
    ----------
    bound : (m, q) float64
        ``x_rival - x_event``, in the coordinates of the programme, times any positive factor.
    event, rival : (m,) int64
    """

    bound: Matrix
    event: Index
    rival: Index

    @classmethod
    def none(cls, n_columns: int) -> "_Cuts":
        nobody = np.zeros(0, dtype=np.int64)
        return cls(np.zeros((0, n_columns)), nobody, nobody)

    def joined(self, other: "_Cuts") -> "_Cuts":
        """These and others, each once."""
        both = np.concatenate([self.bound, other.bound])
        bound, first = np.unique(both, axis=0, return_index=True)
        return _Cuts(
            bound,
            np.concatenate([self.event, other.event])[first],
            np.concatenate([self.rival, other.rival])[first],
        )

    def tight(self, d: Features) -> tuple[Index, Index]:
        """Pairs that a direction leaves equal, but for rounding: events and rivals."""
        is_tight = np.abs(self.bound @ d) <= MAX_TIGHT_GAP * np.abs(d).max(initial=0.0)
        return self.event[is_tight], self.rival[is_tight]


def _exactly(
    problem: Problem, stored: Features, tight: tuple[Index, Index] | None = None
) -> Direction | None:
    """A direction near another one that is not a number off: of recession in whole numbers.

    With simple ratios, or where the pairs that it leaves equal but for rounding are equal, so that
    it does not depend on the last bits; else as it is, or where the pairs that rounding makes it
    violate are equal.
    """
    columns = np.flatnonzero(stored)
    d = stored[columns]
    p, design = stored.size, problem.design
    simple = [Fraction(v).limit_denominator(MAX_SIMPLE_DENOMINATOR) for v in d.tolist()]
    error = np.abs(np.array([float(v) for v in simple]) - d).max(initial=0.0)
    if error < MAX_RATIO_ERROR and any(simple):
        direction = Direction.of(p, columns, simple)
        rounded = replace(direction, is_rounded=True)
        if _recedes(problem, direction) and not _goes_by_last_bits(problem, direction, rounded):
            return direction
        if _recedes(problem, rounded):
            return rounded
        if _recedes(problem, direction):
            return direction
    if tight is not None and tight[0].size > 0 and columns.size <= MAX_FACE_COLUMNS:
        equal = _distinct(design.stored(columns, tight[0]), design.stored(columns, tight[1]))
        on_it = on_face(equal[: 4 * columns.size], d)
        if on_it is not None and _is_near(on_it, d):
            direction = Direction.of(p, columns, on_it)
            if _recedes(problem, direction):
                return direction
    near: list[Fraction] | None = list(map(Fraction, d.tolist()))
    conditions: list[list[int]] = []
    for _ in range(columns.size + 1):
        if near is None or not _is_near(near, d):
            return None
        direction = Direction.of(p, columns, near)
        values = DirectionValues.of(design, problem.loss, direction)
        event, rival, _ = _violated(problem.loss, values)
        if event.size == 0:
            return direction if _is_strict(problem.loss, values) else None
        if columns.size > MAX_FACE_COLUMNS:
            return None
        difference = _distinct(design.stored(columns, event), design.stored(columns, rival))
        conditions.extend(difference[: 4 * columns.size])
        near = on_face(conditions, d)
    return None


def _goes_by_last_bits(problem: Problem, exact: Direction, rounded: Direction) -> bool:
    """Whether rows that differ in x'd are equal but for the last places of their columns.

    Equal differences of decimals are such: what comes of the direction would hang on rounding.
    """
    runtime = problem.loss.runtime
    apart, found = (
        np.unique(order_of(problem.design, one, runtime)).size for one in (exact, rounded)
    )
    return bool(found < apart)


def _is_near(exact: list[Fraction], d: Features) -> bool:
    return bool(max(abs(float(v) - w) for v, w in zip(exact, d, strict=True)) <= MAX_RATIO_ERROR)


def _distinct(a: Matrix, b: Matrix) -> list[list[int]]:
    """Differences of rows in whole numbers, each once."""
    whole = whole_rows(np.concatenate([a, b]))
    pairs = zip(whole[: len(a)], whole[len(a) :], strict=True)
    return [list(row) for row in dict.fromkeys(
        tuple(u - v for u, v in zip(one, other, strict=True)) for one, other in pairs
    )]  # fmt: skip


def _next_cuts(
    problem: Problem, columns: Index, units: Matrix, d: Features
) -> tuple[Features, _Cuts]:
    """A direction in stored units (p,), and the conditions that it violates most."""
    stored = np.zeros(problem.design.n_features)
    stored[columns] = units @ d
    stored[columns] /= np.abs(stored).max(initial=1e-300)
    values = DirectionValues.of(problem.design, problem.loss, stored)
    event, rival, gap = _violated(problem.loss, values)
    worst = np.argsort(gap)[::-1][:MAX_NEW_CUTS]
    event, rival = event[worst], rival[worst]
    x = problem.design.stored(columns, np.concatenate([event, rival]))
    bound = (x[worst.size :] - x[: worst.size]) @ units
    largest = np.abs(bound).max(axis=1, keepdims=True, initial=0.0)
    return stored, _Cuts(bound / np.where(largest > 0, largest, 1.0), event, rival)


def _programme(cost: Features, bound: Matrix, box: object) -> tuple[Features, Rows] | None:
    """Cheapest d in the box with ``bound @ d <= 0``, and its multipliers; None: not found."""
    result = linprog(
        cost,
        A_ub=bound,
        b_ub=np.zeros(bound.shape[0]),
        bounds=box,
        method="highs",
        options=LINPROG,
    )
    if result.status != 0:
        return None
    return np.where(np.abs(result.x) < 1e-8, 0.0, result.x), -result.ineqlin.marginals


def _violated(loss: Loss, values: DirectionValues) -> tuple[Index, Index, Rows]:
    """Events that do not attain the maximum of z over their risk set: event, rival, gap."""
    risk = loss.risk
    peak, rival = peaks(loss.risk, loss.tails, values.z)
    events = np.flatnonzero(risk.event_weight > 0)
    event, rival, peak = risk.order[events], rival[risk.group[events]], peak[risk.group[events]]
    gap = peak - values.z[event]
    bad = gap > values.slack[event] + values.slack[rival]
    return event[bad], rival[bad], gap[bad]


def _is_strict(loss: Loss, values: DirectionValues) -> bool:
    """Whether some risk set with events has a row below its maximum."""
    high, top = peaks(loss.risk, loss.tails, values.z)
    low, bottom = peaks(loss.risk, loss.tails, -values.z)
    used = loss.risk.group_events > 0
    slack = values.slack[top] + values.slack[bottom]
    return bool(((high + low)[used] > 10 * slack[used]).any())
