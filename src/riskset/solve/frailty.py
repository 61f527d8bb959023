r"""Cox models with a shared frailty: the variance of the frailties, and all that follows from it.

Gamma: the variance maximises the likelihood that is integrated over the frailties. Log-normal: it
maximises Laplace's approximation of that ("ml"), or solves

.. math:: n \theta = \sum_i w_i^2 + \mathrm{tr}_w K ("reml")

with K the inverse of the second derivatives in coefficients and log frailties together. Therneau,
Grambsch & Pankratz (2003), doi:10.1198/1061860031365; Ripatti & Palmgren (2000),
doi:10.1111/j.0006-341X.2000.01016.x.
"""

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.polynomial import Polynomial
from scipy.optimize import brentq, minimize_scalar

from riskset._messages import Note, Value
from riskset._runtime import one_blas_thread
from riskset._types import Index
from riskset.data.design import Design
from riskset.model.cluster_curvature import ClusterEntries, shared_variance
from riskset.model.frailty import (
    FRAILTIES,
    Clusters,
    FrailtyName,
    GammaFrailty,
)
from riskset.model.loss import Loss, rounding_of
from riskset.solve.cluster_inverse import linked_clusters
from riskset.solve.frailty_newton import ClusterProblem, FrailtyMaximum, FrailtyVariances
from riskset.solve.optimality import Problem
from riskset.solve.result import Solution

__all__ = [
    "MAX_VARIANCE",
    "FrailtyCriterion",
    "FrailtyFit",
    "VarianceMethod",
    "fit_shared_frailty",
]

VarianceMethod = Literal["ml", "reml"]

MIN_VARIANCE = 1e-7
"""A smaller variance is 0."""
MAX_VARIANCE = 1e6
"""With a larger one, clusters have baseline hazards of their own in all but name."""
FIRST_VARIANCES = (0.02, 1.0)
"""The variance that is guessed from the model without frailties is moved between these."""
SOUGHT_VARIANCES = (0.02, 0.15, 1.0, 6.0, 50.0)
"""Where the criterion falls from a variance of 0 on, it may rise again near one of these."""
FACTOR = 4.0
"""Between the variances that are tried until the best one lies between two."""
LOG_ACCURACY = 1e-9
"""Of the log of a variance whose slope is known."""
VALUE_ACCURACY = 1e-3
"""The same if values are compared, which have half the digits there; then a curve goes through."""
CURVE_STEP = 0.02
"""Between logs of variances through whose values the curve goes: large against their rounding."""
VALUE_TOL = 1e-2
"""Share of the tolerance, where values of a criterion are compared."""
NEWTON_STEPS = 4
"""To the maximum of that curve, near which they begin."""
NO_SLOPE = 1e-12
"""Largest slope per event in the log frailties that is rounding."""
NO_RISE = 1e-10
"""Largest slope per event and cluster of a criterion that is rounding."""

OF_BASE = (
    "the model without frailties, from which the fit starts and which shows whether an estimate is "
    "infinite, "
)
"""Beginning of the note on it."""

Report = Callable[[int, float], object]


class FrailtyFit(NamedTuple):
    """A Cox model with a shared frailty.

    `solution` is about the coefficients; its likelihood has the frailties in its offset. `w`
    (n_clusters,) are the log frailties, `events` (n_clusters,) weighted numbers of events.
    `integrated` is the log likelihood without the frailties, and `variances` is None where their
    variance is 0.
    """

    solution: Solution
    variance: float
    w: Clusters
    events: Clusters
    integrated: float
    variances: FrailtyVariances | None


@dataclass
class FrailtyCriterion:
    """The maximum of the penalised likelihood as a function of the variance."""

    clusters: ClusterProblem
    method: VarianceMethod
    events: Clusters
    start: FrailtyMaximum
    tol: float
    max_iter: int
    report: Report | None = None
    n_iter: int = 0
    n_passes: int = 0
    reached: dict[float, FrailtyMaximum] = field(default_factory=dict)

    def at(self, variance: float) -> FrailtyMaximum:
        """The maximum, from that of the nearest variance on."""
        if variance in self.reached:
            return self.reached[variance]
        # The digits of a value near its maximum are those of the frailties.
        tol = self.tol if self.has_slope else VALUE_TOL * self.tol
        known = sorted(self.reached, key=lambda v: abs(np.log(v / variance)))
        begin = self.reached[known[0]] if known else self.start
        found = self.clusters.maximum(
            begin.beta, begin.w, variance, tol, self.max_iter, self.report
        )
        self.n_iter += found.n_iter
        self.n_passes += found.n_passes
        self.reached = {v: self.reached[v] for v in known[:3]} | {variance: found}
        return found

    def integrated(self, variance: float) -> float:
        """Log likelihood without the frailties: exact for gamma, Laplace's for log-normal."""
        at, kind = self.at(variance), self.clusters.distribution
        if isinstance(kind, GammaFrailty):
            return kind.integrated(at.now.log_likelihood, at.w, self.events, variance)
        inverse = self.clusters.cluster_inverse(at, variance)
        volume = at.w.size * float(np.log(variance)) + inverse.log_determinant
        return at.value - 0.5 * volume

    @property
    def has_slope(self) -> bool:
        """Whether `slope` is 0 at the estimate; otherwise `integrated` is largest there."""
        return isinstance(self.clusters.distribution, GammaFrailty) or self.method == "reml"

    @property
    def is_likelihood(self) -> bool:
        """Whether the estimate has the largest `integrated`."""
        return self.method == "ml"

    def slope(self, variance: float) -> float:
        """Derivative of the criterion in the log of the variance, up to a positive factor."""
        at, kind = self.at(variance), self.clusters.distribution
        if isinstance(kind, GammaFrailty):
            return kind.integrated_slope(at.w, self.events, variance)
        trace = self.clusters.variances(at, variance).trace
        return (float(at.w @ at.w) + trace) / variance - at.w.size

    def flat(self, variance: float) -> float:
        """Largest slope that is rounding.

        Where clusters share no risk set, no variance is better than another.
        """
        return NO_RISE * min(1.0, variance) * self.size

    @property
    def size(self) -> float:
        """Number of events and clusters."""
        return float(self.events.sum()) + self.events.size

    @property
    def rounding(self) -> float:
        """How much of a log likelihood may be rounding."""
        now = self.start.now
        return rounding_of(now.log_likelihood, self.size, float(np.ptp(self.start.eta)))


@one_blas_thread
def fit_shared_frailty(
    design: Design,
    loss: Loss,
    base: Solution,
    cluster: Index,
    n_clusters: int,
    distribution: FrailtyName,
    *,
    variance: float | None = None,
    method: VarianceMethod = "ml",
    tol: float = 1e-8,
    max_iter: int = 200,
    report: Report | None = None,
) -> FrailtyFit:
    """Fit a Cox model with a frailty of each cluster (n,), from the one without, `base`, on.

    Without `variance` it is estimated. Coefficients that are infinite without frailties are so with
    them, in the same directions, because log frailties are always finite. Never raises for want of
    convergence.
    """
    rows = None if base.likelihood.is_limit else loss.risk.order
    fitted = base.likelihood
    clusters = _cluster_problem(design, fitted, base, cluster, n_clusters, distribution, rows)
    sorted_loss = clusters.loss
    outcome = sorted_loss.outcome
    events = clusters.sums(np.where(outcome.is_event, outcome.weight, 0.0))
    begin = (base.finite_part * design.scale)[clusters.columns]
    now = sorted_loss.evaluate(clusters._eta(begin, np.zeros(n_clusters)))
    start = FrailtyMaximum(begin, np.zeros(n_clusters), now.residual, now, 0.0, np.inf, 0, 1)
    criterion = FrailtyCriterion(clusters, method, events, start, tol, max_iter, report)
    if variance is None:
        variance, notes = _estimate(criterion, base)
    else:
        notes = []
    if variance == 0.0:
        if base.status != "max_iter":  # where the fit stopped too early, nothing is known
            base = replace(base, notes=(*base.notes, *notes))
        solution = base
        zeros = np.zeros(n_clusters)
        return FrailtyFit(solution, 0.0, zeros, events, base.log_likelihood, None)
    at = criterion.at(variance)
    if not notes or loss.offset.any():  # a variance without bound sets clusters far apart
        clusters.check_reach(at)
    variances = clusters.variances(at, variance)
    solution = _solution(design, fitted, base, clusters, criterion, at, rows, tol)
    if notes:  # the cause of whatever else did not converge
        solution = replace(solution, status="max_iter", notes=(*_others(solution.notes), *notes))
    solution = replace(
        solution,
        loss=_with_frailties(fitted, at.w, cluster),
        notes=(*solution.notes, *_drawn_note(variances, variance)),
    )
    return FrailtyFit(solution, variance, at.w, events, criterion.integrated(variance), variances)


def _drawn_note(variances: FrailtyVariances, variance: float) -> list[Note]:
    """A note if a trace is a mean over random signs."""
    error = variances.inverse.trace_error / variance
    if error == 0.0:
        return []
    text = (
        "clusters have so many strata in common that the trace of a matrix is estimated with "
        "random signs: the degrees of freedom of the frailties, and of log-normal ones the "
        "variance, have a relative error of about {share:.1g}."
    )
    return [Note("drawn_trace", (), text, {"share": Value("measure", error / variances.df)})]


def _with_frailties(loss: Loss, w: Clusters, cluster: Index) -> Loss:
    """The likelihood with the log frailties in its offset."""
    return loss.shifted(loss.offset + w[cluster], loss.runtime)


def _cluster_problem(
    design: Design,
    loss: Loss,
    base: Solution,
    cluster: Index,
    n_clusters: int,
    distribution: FrailtyName,
    rows: Index | None,
) -> ClusterProblem:
    """In risk order if `rows` has it: passes then read and write in sequence."""
    left_out = base.aliased | (base.infinite != 0)
    if rows is not None:
        design, loss, cluster = design.take_rows(rows), loss.in_risk_order(), cluster[rows]
    problem = Problem.prepare(design, loss).without(left_out)
    columns = np.flatnonzero(~left_out)
    entries = ClusterEntries.of(loss.risk, cluster, n_clusters)
    eta = design.product(base.finite_part * design.scale, runtime=loss.runtime) + loss.offset
    residual = np.bincount(cluster, loss.evaluate(eta).residual, n_clusters)
    largest = float(np.abs(residual).max(initial=0.0))
    scale = largest if largest > NO_SLOPE * loss.n_events else 1.0
    kind = FRAILTIES[distribution]
    part = linked_clusters(cluster, loss.outcome.stratum, n_clusters)
    return ClusterProblem(problem, loss, columns, cluster, n_clusters, kind, entries, part, scale)


# -------------------------------------------------------------------------------- the variance


def _estimate(criterion: FrailtyCriterion, base: Solution) -> tuple[float, list[Note]]:
    """The variance, and a note if it is 0 or has no bound."""
    guess, rises = _first_guess(criterion)
    if criterion.has_slope:
        found = _root(criterion, guess, rises)
        if not rises and found > 0.0 and criterion.is_likelihood:
            reached = criterion.integrated(min(found, MAX_VARIANCE))
            found = found if reached > base.log_likelihood + criterion.rounding else 0.0
    else:
        value = functools.cache(criterion.integrated)
        found = _highest(value, base.log_likelihood + criterion.rounding, guess, rises)
    if found == 0.0:
        text = (
            "the estimated variance of the frailties is 0, the smallest possible: the data show "
            "no more variation between clusters than within them, and the estimates are those "
            "of the model without frailties."
        )
        return 0.0, [Note("no_frailty", (), text)]
    if not np.isfinite(found):
        text = (
            "the variance of the frailties has no estimate: the likelihood keeps rising up to a "
            "variance of {variance:,.0f}, which the fit has. Clusters are too different, such as "
            "some with all of the events: use `riskset.Cox` with the clusters as `strata`, or pass "
            "`frailty_variance`."
        )
        values = {"variance": Value("setting", MAX_VARIANCE)}
        return MAX_VARIANCE, [Note("max_iter", (), text, values)]
    return found, []


def _first_guess(criterion: FrailtyCriterion) -> tuple[float, bool]:
    r"""A variance to begin with, and whether the criterion rises from a variance of 0.

    The slope at 0 is half of :math:`\sum_i r_i^2` less its expectation, with the residuals r of the
    clusters.
    """
    clusters, now = criterion.clusters, criterion.start.now
    residual, expected = clusters.sums(now.residual), clusters.sums(now.expected)
    mean = expected
    if not isinstance(clusters.distribution, GammaFrailty):
        eta = clusters._eta(criterion.start.beta, criterion.start.w)
        mean = expected - shared_variance(clusters.loss, eta, clusters.entries)
    excess = float(residual @ residual - mean.sum())
    guess = excess / max(float(expected @ expected), 1e-300)
    return float(np.clip(guess, *FIRST_VARIANCES)), excess > NO_RISE * criterion.size


def _root(criterion: FrailtyCriterion, guess: float, rises: bool) -> float:
    """Where the slope turns from positive to negative; 0 or infinity if it does not."""
    slope = functools.cache(criterion.slope)

    def is_rising(variance: float) -> bool:
        return slope(variance) > criterion.flat(variance)

    starts = (guess,) if rises else SOUGHT_VARIANCES
    for start in starts:
        low = high = start
        if is_rising(start):
            while is_rising(high):
                low, high = high, high * FACTOR
                if high > MAX_VARIANCE:
                    return float("inf")
            break
    else:
        if not rises:
            return 0.0
        while not is_rising(low):
            low, high = low / FACTOR, low
            if low < MIN_VARIANCE:
                return 0.0
    while slope(high) >= 0.0:  # by no more than rounding
        low, high = high, high * FACTOR
        if high > MAX_VARIANCE:
            return float("inf")
    log_variance = brentq(
        lambda x: slope(float(np.exp(x))), np.log(low), np.log(high), xtol=LOG_ACCURACY
    )
    return float(np.exp(log_variance))


def _highest(value: Callable[[float], float], at_zero: float, guess: float, rises: bool) -> float:
    """The variance with the largest value; 0 or infinity if it rises towards that."""
    start = guess
    if not rises:
        found = [v for v in SOUGHT_VARIANCES if value(v) > at_zero]
        if not found:
            return 0.0
        start = max(found, key=value)
    low, middle, high = start / FACTOR, start, start * FACTOR
    while value(high) > value(middle):
        low, middle, high = middle, high, high * FACTOR
        if high > MAX_VARIANCE:
            return float("inf")
    while value(low) > value(middle):
        low, middle, high = low / FACTOR, low, middle
        if low < MIN_VARIANCE:
            return 0.0
    if not value(low) < value(middle) > value(high):  # equal: no digit says which is larger
        return middle
    found_at = minimize_scalar(
        lambda x: -value(float(np.exp(x))),
        bracket=(np.log(low), np.log(middle), np.log(high)),
        tol=VALUE_ACCURACY,
    )
    return float(np.exp(_top_of_curve(value, float(found_at.x))))


def _top_of_curve(value: Callable[[float], float], near: float) -> float:
    """The maximum of the quartic through values around a maximum.

    Values know a maximum to half of their digits, and slopes to almost all.
    """
    steps = np.arange(-2.0, 3.0)
    values = np.array([value(float(np.exp(near + CURVE_STEP * step))) for step in steps])
    curve = Polynomial(np.linalg.solve(np.vander(steps, increasing=True), values - values[2]))
    slope, bend = curve.deriv(), curve.deriv(2)
    if bend(0.0) >= 0.0:
        return near
    moved = 0.0
    for _ in range(NEWTON_STEPS):
        moved -= float(slope(moved) / bend(moved))
    return near + CURVE_STEP * moved if abs(moved) <= steps[-1] else near


# -------------------------------------------------------------------------------- the solution


def _solution(
    design: Design,
    loss: Loss,
    base: Solution,
    clusters: ClusterProblem,
    criterion: FrailtyCriterion,
    at: FrailtyMaximum,
    rows: Index | None,
    tol: float,
) -> Solution:
    """The answer about the coefficients, for rows in the caller's order."""
    beta = np.zeros(design.n_features)
    beta[clusters.columns] = at.beta
    finite = beta / design.scale
    finite = np.where(base.infinite != 0, base.finite_part, finite)
    eta = at.eta
    if rows is not None:
        eta = np.empty_like(at.eta)
        eta[rows] = at.eta
    status, notes = base.status, base.notes
    if at.residual > tol:
        status = "max_iter"
        notes = (*_others(notes), _stopped("", criterion.n_iter, at.residual, tol))
    elif status == "max_iter":
        notes = (*_others(notes), _stopped(OF_BASE, base.n_iter, base.kkt, tol))
    return replace(
        base,
        coef=np.where(base.infinite != 0, base.coef, finite),
        finite_part=finite,
        status=status,
        kkt=at.residual,
        kkt_absolute=at.residual * clusters.problem.kkt_scale,
        kkt_column=-1,
        log_likelihood=at.now.log_likelihood,
        objective=-at.value,
        n_iter=base.n_iter + criterion.n_iter,
        n_passes=base.n_passes + criterion.n_passes,
        eta=eta,
        notes=notes,
        curvature=None,
    )


def _others(notes: Iterable[Note]) -> tuple[Note, ...]:
    """The notes that do not say that a fit stopped early."""
    return tuple(note for note in notes if note.code != "max_iter")


def _stopped(of: str, n_iter: int, kkt: float, tol: float) -> Note:
    """A note on a fit that stopped early; `of` says which."""
    text = of + "stopped after {n:step|steps} with relative KKT residual {kkt:.2g} > tol {tol:.2g}."
    values = {
        "n": Value("things", n_iter), "kkt": Value("measure", kkt), "tol": Value("setting", tol)
    }  # fmt: skip
    return Note("max_iter", (), text, values)
