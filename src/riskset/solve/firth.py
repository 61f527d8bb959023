r"""Firth's penalised likelihood, which has a finite maximum where the likelihood has none.

.. math:: \ell^*(\beta) = \ell(\beta) + \tfrac12 \log \det I(\beta)

Quasi-Newton steps that begin with the information of the likelihood in place of the second
derivative. Firth (1993), Biometrika 80, 27-38, doi:10.1093/biomet/80.1.27; Heinze & Schemper
(2001), Biometrics 57, 114-119, doi:10.1111/j.0006-341X.2001.00114.x.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.linalg as sla

from riskset._messages import Note, Value
from riskset._runtime import one_blas_thread
from riskset._types import Features, Index, Matrix, Rows
from riskset.data.design import Design
from riskset.model.cox import Evaluation, Prepared
from riskset.model.jeffreys import jeffreys_slope
from riskset.model.loss import Loss, rounding_of
from riskset.solve import aliasing
from riskset.solve.optimality import Problem
from riskset.solve.prox_newton import ResidualReport
from riskset.solve.result import Solution

__all__ = ["FirthMaximum", "FirthProblem", "fit_by_firth"]

MAX_HALVINGS = 40
MAX_STEP = 2.0
"""In spreads of a column."""
MAX_IDLE_STEPS = 20
"""Steps in a row without a smaller residual: it is rounding."""
MIN_SECANT = 1e-3
"""A pair that shows a smaller share of the curvature is left out."""


class FirthMaximum(NamedTuple):
    """Where a maximisation ended: coefficients (q,) in stored units, and what holds there.

    `residual` is the largest slope per spread of a column that moves, relative to the gradient of
    the likelihood at 0.
    """

    beta: Features
    eta: Rows
    now: Evaluation
    value: float
    residual: float
    n_iter: int
    n_passes: int


class _Point(NamedTuple):
    beta: Features
    eta: Rows
    now: Evaluation
    root: Matrix
    """L with L L' the information (q, q)."""
    value: float


@dataclass(frozen=True)
class FirthProblem:
    """The penalised likelihood of some columns, which all have a part in the determinant."""

    problem: Problem
    columns: Index

    def _point(self, beta: Features) -> _Point | None:
        """None where the information is not positive definite."""
        design, loss = self.problem.design, self.problem.loss
        eta = design.product(beta, self.columns, runtime=loss.runtime) + loss.offset
        if not np.isfinite(eta).all():
            return None
        now = loss.evaluate(eta)
        information = loss.information(design, eta, self.columns, Prepared(now))
        size = np.sqrt(np.maximum(information.diagonal(), 1e-300))
        try:
            root = size[:, None] * np.linalg.cholesky(information / size / size[:, None])
        except np.linalg.LinAlgError:
            return None
        value = now.log_likelihood + float(np.log(root.diagonal()).sum())
        return _Point(beta, eta, now, root, value)

    def _slope(self, at: _Point) -> Features:
        """Derivative (q,) of the penalised likelihood, in stored units."""
        design, loss = self.problem.design, self.problem.loss
        inverse = sla.solve_triangular(at.root, np.eye(self.columns.size), lower=True)
        combinations = (design.product(a, self.columns, runtime=loss.runtime) for a in inverse)
        pull = at.now.residual + jeffreys_slope(loss, at.eta, combinations)
        return design.cross(pull, self.columns, runtime=loss.runtime)

    def value_at(self, beta: Features) -> float:
        """The penalised likelihood in stored units; -inf without information."""
        point = self._point(beta)
        return -np.inf if point is None else point.value

    @one_blas_thread
    def maximum(
        self,
        start: Features,
        moves: Index,
        tol: float,
        max_iter: int,
        report: ResidualReport | None = None,
    ) -> FirthMaximum | None:
        """Maximise over the columns at `moves`; None if there is no information at the start."""
        at, n_passes, n_idle, least = self._point(start), 1, 0, np.inf
        if at is None:
            return None
        before: tuple[_Point, Features] | None = None
        curvature = np.zeros((moves.size, moves.size))
        for n_iter in range(max_iter + 1):
            spread = self.problem.unit_spread(at.now, self.columns)[moves]
            slope = self._slope(at)[moves]
            residual = float(np.abs(slope / spread).max(initial=0.0)) / self.problem.kkt_scale
            if report:
                report(n_iter, residual)
            n_idle, least = (0, residual) if residual < 0.9 * least else (n_idle + 1, least)
            found = None
            if residual > tol and n_iter < max_iter and n_idle <= MAX_IDLE_STEPS:
                curvature = _corrected(curvature, at, before, moves, slope)
                found = self._step(at, moves, curvature, slope, spread)
            if found is None:
                return FirthMaximum(at.beta, at.eta, at.now, at.value, residual, n_iter, n_passes)
            before = at, slope
            at, n_passes = found[0], n_passes + found[1]
        raise AssertionError

    def _step(
        self, at: _Point, moves: Index, curvature: Matrix, slope: Features, spread: Features
    ) -> tuple[_Point, int] | None:
        """A point that is no worse but for rounding, and the passes that it took."""
        step = sla.solve(curvature, slope, assume_a="pos")
        step /= max(1.0, float(np.abs(step * spread).max(initial=0.0)) / MAX_STEP)
        loss = self.problem.loss
        slack = rounding_of(at.value, loss.n_events, float(np.ptp(at.eta)))
        for k in range(MAX_HALVINGS):
            beta = at.beta.copy()
            beta[moves] += 0.5**k * step
            point = self._point(beta)
            if point is not None and point.value >= at.value - slack:
                return point, k + 1
        return None


def _corrected(
    curvature: Matrix,
    at: _Point,
    before: tuple[_Point, Features] | None,
    moves: Index,
    slope: Features,
) -> Matrix:
    """The information at first, then corrected by secant (BFGS) pairs.

    The prior adds as much curvature as there is, where a single event has all information.
    """
    if before is not None:
        s, y = (at.beta - before[0].beta)[moves], before[1] - slope
        image = curvature @ s
        along, known = float(s @ y), float(s @ image)
        if along > MIN_SECANT * known > 0.0:
            return curvature + np.outer(y, y) / along - np.outer(image, image) / known
    return np.asarray((at.root @ at.root.T)[np.ix_(moves, moves)])


def fit_by_firth(
    design: Design,
    loss: Loss,
    *,
    tol: float = 1e-8,
    max_iter: int = 200,
    start: Solution | None = None,
    report: ResidualReport | None = None,
) -> Solution:
    """Maximise Firth's penalised likelihood of a Cox model; never raises for want of convergence.

    Columns that cannot be estimated are left out, as without the penalty. ``solution.objective`` is
    the negative of the penalised likelihood, in the user's units.
    """
    problem = Problem.prepare(design, loss)
    none = np.zeros(design.n_features)
    aliased, notes = aliasing.find_aliased(problem, none, none)
    columns = np.flatnonzero(~aliased)
    firth = FirthProblem(problem, columns)
    zero = np.zeros(columns.size)
    begin = zero if start is None else (start.coef * design.scale)[columns]
    found = firth.maximum(begin, np.arange(columns.size), tol, max_iter, report)
    if found is None:
        point = problem.null
        found = FirthMaximum(zero, loss.offset, point, point.log_likelihood, np.inf, 0, 1)
    beta = np.zeros(design.n_features)
    beta[columns] = found.beta
    if aliased.any() and not problem.informative.any():
        status = "not_estimable"
        notes = [*notes, aliasing.not_estimable_note(problem, np.flatnonzero(aliased))]
    elif found.residual <= tol:
        status = "converged"
    else:
        status = "max_iter"
        text = "stopped after {n:step|steps} with relative KKT residual {kkt:.2g} > tol {tol:.2g}."
        if np.isinf(found.residual):
            text = (
                "the fit cannot start: at coefficients of 0, the data hold next to no information "
                "on some combination of the covariates."
            )
        values = {
            "n": Value("things", found.n_iter),
            "kkt": Value("measure", found.residual),
            "tol": Value("setting", tol),
        }
        notes = [*notes, Note("max_iter", (), text, values)]
    units = float(np.log(design.scale[columns]).sum())
    coef = beta / design.scale
    return Solution(
        coef=coef,
        finite_part=coef,
        status=status,  # type: ignore[arg-type]
        kkt=found.residual,
        kkt_absolute=found.residual * problem.kkt_scale,
        kkt_column=-1,
        log_likelihood=found.now.log_likelihood,
        null_log_likelihood=problem.null.log_likelihood,
        objective=0.0 - (found.value + units),
        n_iter=found.n_iter,
        n_passes=found.n_passes,
        gradient=design.cross(found.now.residual, runtime=loss.runtime),
        gradient_at_zero=problem.gradient_at_zero,
        eta=found.eta,
        infinite=np.zeros(design.n_features, dtype=np.int8),
        directions=(),
        aliased=aliased,
        loss=loss,
        notes=tuple(notes),
        penalized_gain=found.value - firth.value_at(zero),
    )
