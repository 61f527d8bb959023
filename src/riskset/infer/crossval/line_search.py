"""The maximum of a function that is dear to evaluate, rough, and nearly unimodal, on an interval.

A cross-validated score is such a function of the logarithm of a penalty's strength. Every answer is
a point that was evaluated, between neighbours that were evaluated too.

All points lie on a grid. A parabola is flat at its top: an error of 1e-10 in a value moves the top
by 1e-5. Without the grid, the last digits of a score, which depend on the processor, would change
the penalty, and with it matched sets and hazard ratios.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

__all__ = ["Peak", "SearchGrid", "maximise", "strongest_within"]

GRID_POINTS = 10
"""Points of the grid within the tolerance of a search."""
GOLDEN = 0.381966
"""Smaller part of a golden section."""
EDGE_SNAP = 0.1
"""A step that ends within this share of itself from the edge goes to the edge."""
NEAR_VERTEX = 2.5
"""Steps to the vertex of a parabola within which the top itself may be much nearer."""
MAX_EVALUATIONS = 60
"""Evaluations after which a search ends, come what may."""

Function = Callable[[float], float]


@dataclass
class Peak:
    """The best point so far between its neighbours.

    All three are evaluated; at an edge, `low` or `high` equals `best`.
    """

    low: float
    best: float
    high: float

    def is_narrow(self, tol: float) -> bool:
        """Whether both neighbours are within `tol`, but for rounding."""
        return max(self.best - self.low, self.high - self.best) <= tol * (1 + 1e-9)


@dataclass(frozen=True)
class SearchGrid:
    """The points that a search may evaluate: `origin`, and others at tenths of `tol`.

    The answer of a search has evaluated neighbours within `tol`.
    """

    tol: float
    origin: float = 0.0

    def nearest(self, x: float) -> float:
        """The point nearest to x."""
        return self._point(round((x - self.origin) / self.tol * GRID_POINTS))

    def above(self, x: float) -> float:
        """The first point that is not smaller than x."""
        return self._point(math.ceil((x - self.origin) / self.tol * GRID_POINTS))

    def _point(self, k: int) -> float:
        return self.origin + k * (self.tol / GRID_POINTS)


@dataclass
class _Evaluated:
    """A function between two edges, each point evaluated once."""

    function: Function
    lower: float
    upper: float
    grid: SearchGrid
    values: dict[float, float] = field(default_factory=dict)

    def __call__(self, x: float) -> float:
        if x not in self.values:
            self.values[x] = self.function(x)
        return self.values[x]

    def point(self, x: float) -> float:
        """The point of the grid next to x, or an edge."""
        return min(max(self.grid.nearest(x), self.lower), self.upper)


def maximise(
    function: Function,
    start: float,
    lower: float,
    upper: float,
    *,
    grid: SearchGrid,
    step: float,
    first: float | None = None,
) -> Peak:
    """Bracket the maximum from a start in [lower, upper], then close in on it.

    Every point is an edge or lies on the grid, and the start is moved there. Points that look for
    the maximum are `step` apart, the first ones `first`, doubling, if the start is known to be near
    it. The answer has neighbours within `tol` on either side, with values that are not greater,
    unless it lies at an edge. If the function is flat above some point (beyond the strength at
    which all coefficients are 0), steps go down until it is not: two equal values say nothing about
    what lies below them.

    Notes
    -----
    Steps are those of the parabola through the three points, as in Brent (1973), Algorithms for
    Minimization without Derivatives, chapter 5; a neighbour at distance `tol` is tried if the
    vertex says that the best point is best, and golden sections take over if parabolas fail to
    halve the bracket in three steps.
    """
    at, tol = _Evaluated(function, lower, upper, grid), grid.tol
    first = step if first is None else min(first, step)
    peak = _bracket(at, at.point(start), (first, step))
    width, slow = peak.high - peak.low, 0
    while not peak.is_narrow(tol) and len(at.values) < MAX_EVALUATIONS:
        x = at.point(_golden(peak) if slow >= 3 else _next(at, peak, tol))
        if slow >= 3:
            slow = 0
        is_flat = x < peak.best and at(x) == at(peak.best)
        if is_flat or at(x) > at(peak.best):
            peak.low, peak.high = (peak.low, peak.best) if x < peak.best else (peak.best, peak.high)
            peak.best = x
        elif x < peak.best:
            peak.low = x
        else:
            peak.high = x
        slow = 3 if is_flat else slow + 1
        if peak.high - peak.low <= width / 2 and not is_flat:
            width, slow = peak.high - peak.low, 0
    return peak


def _bracket(at: _Evaluated, start: float, steps: tuple[float, float]) -> Peak:
    """Walk uphill first, then down, until the function falls or the interval ends.

    Far down, where the penalty is weak, the function is dearest: steps are shorter there once a
    parabola says how far the top is, and where it says that the top has been passed already, that
    is looked into before any step further down.
    """
    peak = Peak(start, start, start)
    lower, upper, tol = at.lower, at.upper, at.grid.tol
    step, widest = steps
    while peak.best < upper:
        x = at.point(peak.best + step) if upper - peak.best > (1 + EDGE_SNAP) * step else upper
        if at(x) <= at(peak.best):
            peak.high = x
            break
        peak = Peak(peak.best, x, x)
        step = min(2 * step, widest)
    if peak.low < peak.best:
        return peak
    above, least, step = peak.high, min(2 * tol, steps[0]), steps[0]
    while peak.best > lower:
        length = _way_to_vertex(at, peak, above)
        if -length > tol:
            passed = at.point(peak.best - length)
            if at(passed) > at(peak.best):
                return Peak(peak.best, passed, peak.high)
            peak, above = Peak(peak.best, peak.best, passed), peak.high
            continue
        # Where the top may be near, half a step is a lot to go beyond it, at first.
        most = max(step / 2, least) if length < NEAR_VERTEX * step else step
        length = min(max(length, least), most)
        least = min(2 * length, step) if length < step else least
        x = at.point(peak.best - length) if peak.best - lower > (1 + EDGE_SNAP) * length else lower
        if at(x) < at(peak.best):
            peak.low = x
            break
        above = peak.high
        peak = Peak(x, x, peak.best)
        step = min(2 * step, widest)
    return peak


def _way_to_vertex(at: Function, peak: Peak, above: float) -> float:
    """From the best point down to the vertex of the parabola through it and two points above."""
    if not peak.best < peak.high < above:
        return math.inf
    low, high = peak.high - peak.best, above - peak.high
    drop_low, drop_high = at(peak.high) - at(peak.best), at(peak.high) - at(above)
    if not drop_low / low + drop_high / high > 0:
        return math.inf
    return -_vertex(low, high, drop_low, drop_high) - low


def _next(at: Function, peak: Peak, tol: float) -> float:
    below, above = peak.best - peak.low, peak.high - peak.best
    if min(below, above) == 0.0:
        return _golden(peak)
    shift = _vertex(below, above, at(peak.best) - at(peak.low), at(peak.best) - at(peak.high))
    room = above if shift > 0 else below
    if abs(shift) > tol / 2 and room > tol:
        return peak.best + math.copysign(min(abs(shift), 0.9 * room), shift)
    return peak.best + tol if above > below else peak.best - tol


def _vertex(below: float, above: float, drop_below: float, drop_above: float) -> float:
    """Vertex of a parabola, from its middle point; by how much it falls to either side."""
    curvature = drop_below / below + drop_above / above
    if not 0 < curvature < math.inf:
        return 0.0
    return 0.5 * (drop_below * above / below - drop_above * below / above) / curvature


def _golden(peak: Peak) -> float:
    below, above = peak.best - peak.low, peak.high - peak.best
    return peak.best + GOLDEN * above if above >= below else peak.best - GOLDEN * below


def strongest_within(
    function: Function,
    best: float,
    least: float,
    upper: float,
    *,
    grid: SearchGrid,
    step: float,
) -> float:
    """Largest point found above `best` up to which the function is at least `least`.

    The function falls from `best` to `upper`, more or less. At some evaluated point at most `tol`
    beyond the answer it is smaller than `least`, unless the answer is `upper`.
    """
    inside, outside = best, best
    while outside < upper:
        outside = min(upper, grid.nearest(inside + step))
        if function(outside) < least:
            break
        inside = outside
    while outside - inside > grid.tol * (1 + 1e-9):
        middle = grid.nearest(0.5 * (inside + outside))
        if function(middle) >= least:
            inside = middle
        else:
            outside = middle
    return inside
