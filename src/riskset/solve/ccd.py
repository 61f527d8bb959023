"""The solver of the paper: cyclic coordinate descent with a trust region, certified as any other.

Coordinate after coordinate takes a Newton step from its exact derivatives, no longer than its trust
region (`kernels.ccd_ref`). It is kept for comparisons with Cyclops, whose method it is; proximal
Newton (`solve.fit`) needs a fraction of the time, and far fewer steps where columns are
correlated. Three things are not Cyclops':

* it stops when the optimality conditions hold over all columns, not when the objective or the
  gradient changes little from one sweep to the next;
* a trust region starts at one standard deviation of its column (for binary columns at 1, as in the
  paper), so that units do not matter;
* a sweep that raises the objective is taken back and tried again with narrower regions. Steps of
  the full width may swing ever farther across a minimum, where the curvature at their start says
  nothing of that on the way.

References
----------
Genkin, Lewis & Madigan (2007), Technometrics 49, 291-304, doi:10.1198/004017007000000245. Suchard,
Simpson, Zorych, Ryan & Madigan (2013), ACM Transactions on Modeling and Computer Simulation 23(1),
10, doi:10.1145/2414416.2414791. Yang, Schuemie, Ji & Suchard (2024), Journal of Computational and
Graphical Statistics 33, 289-302, doi:10.1080/10618600.2023.2213279.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from riskset._types import Features, Index
from riskset.kernels.ccd_cpu import coordinate_step, cox_state, cox_sweep, fg_state, fg_sweep
from riskset.kernels.risk_sets_cpu import MAX_ETA_SPAN
from riskset.solve.ccd_device import DeviceSweeps, stay_of
from riskset.solve.fit import fit_by_newton
from riskset.solve.optimality import Problem, violations
from riskset.solve.prox_newton import MAX_REST_STEP, Minimisation
from riskset.solve.result import Solution
from riskset.solve.risk_columns import RiskColumns
from riskset.solve.rows import DeviceRows, RowOperator

__all__ = ["CoordinateDescent", "fit_by_ccd"]

MIN_WIDTH_SHARE = 1e-3
"""Trust regions stay wider than this share of their first width, as in Cyclops: a coefficient that
rested for long may still set off."""
MAX_ETA_CHANGE = 8.0
"""No step changes the log hazard of a row by more. Sums within a group of events are corrected, not
summed anew, and keep all but four digits."""
MIN_KEPT_TOTAL = 1e-140
"""Kept sums hold squares of totals over risk sets, which must not underflow."""
MIN_REACH = 1e-300
WIDTH_FACTOR_AFTER_RISE = 0.25
"""Of trust regions after a sweep that raised the objective."""
MAX_CONSECUTIVE_RISES = 40
MAX_IDLE_SWEEPS = 30
"""Sweeps below rounding of the objective that may follow the one of the least residual."""


@dataclass
class CoordinateDescent(Minimisation):
    """A minimisation by sweeps over the coordinates."""

    unit: ClassVar[str] = "sweep"

    problem: Problem
    width: Features = field(init=False)
    second: Features = field(init=False)
    """Second derivatives as last met; 0 before."""
    columns: RiskColumns | None = None
    coordinates: DeviceSweeps | None = None
    """On the device, if passes are made there."""

    def _fastest_rows(self) -> RowOperator[Any, Any, Any]:
        # A coordinate by itself takes fewer operations on the host, unless it was asked otherwise.
        problem = self.problem
        return problem.rows() if problem.loss.runtime.device == "cuda" else problem.final_rows()

    def _solve(self) -> None:
        """Sweep until no column violates its condition."""
        first_width = 1.0 / self.problem.spread
        self.width, self.second = first_width.copy(), np.zeros(self.beta.size)
        objective = self._objective(self.now, self.beta)
        least_residual, n_idle, n_rises = np.inf, 0, 0
        while self.n_iter < self.max_iter:
            v = self._residuals()
            residual = float(v.max(initial=0.0)) / self.problem.kkt_scale
            if self.report:
                self.report(self.n_iter, residual)
            if residual <= self.tol and not self._may_move():
                return
            before = objective
            kept = self.width.copy()
            moved = self._sweep(np.flatnonzero(self.allowed & ((self.beta != 0.0) | (v > 0.0))))
            self.n_iter += 1
            if not moved.any():
                self.stalled = True
                return
            risen = not self._accept(moved, objective)
            n_rises = n_rises + 1 if risen else 0
            if risen:
                self.width = WIDTH_FACTOR_AFTER_RISE * kept
            else:
                objective = self._objective(self.now, self.beta)
                np.maximum(self.width, MIN_WIDTH_SHARE * first_width, out=self.width)
            is_idle = residual >= least_residual and before - objective <= self._rounding(before)
            n_idle = n_idle + 1 if is_idle and not risen else 0
            least_residual = min(residual, least_residual)
            if n_idle > MAX_IDLE_SWEEPS or n_rises > MAX_CONSECUTIVE_RISES:
                self.stalled = True
                return

    def _may_move(self) -> bool:
        """As `prox_newton._may_move`: a small violation where there is hardly any curvature."""
        v = violations(self.gradient, self.beta, self.l1, self.l2)
        size = np.sqrt(np.maximum(self.second, 0.0) + self.l2)
        return bool((self.allowed & (self.second != 0.0) & (v > MAX_REST_STEP * size)).any())

    def _accept(self, moved: Features, objective: float) -> bool:
        """Go where a sweep led, unless that is uphill."""
        columns = np.flatnonzero(moved)
        along = self.rows.along(moved[columns], columns)
        span = self.rows.span(along)
        if not np.isfinite(span):
            return False
        beta, eta = self.beta + moved, self.rows.moved(self.eta, 1.0, along)
        now = self.rows.evaluate(eta)
        self.n_passes += 1
        value = self._objective(now, beta)
        if not (value <= objective or value <= objective + self._rounding(objective)):
            return False
        self.beta, self.eta, self.now = beta, eta, now
        self.gradient = self.rows.cross(now)
        self.last_step, self.last_move = moved, span
        return True

    # ------------------------------------------------------------------------- a sweep

    def _sweep(self, active: Index) -> Features:
        """Change of the coefficients by one step of each active coordinate in turn (p,)."""
        beta = self.beta.copy()
        if not self._sweep_kept_sums(active, beta):
            self._sweep_exactly(active, beta)
        return beta - self.beta

    def _sweep_kept_sums(self, active: Index, beta: Features) -> bool:
        """By the kernels that keep sums up to date; False where they do not serve."""
        if isinstance(self.rows, DeviceRows):
            self._sweep_on_device(active, beta, self.rows)
            return True
        loss, eta = self.problem.loss, self.eta
        late = loss.risk.own.size or any(tail.sets.own.size for tail in loss.tails)
        shift = float(eta.max())
        if late or shift - float(eta.min()) >= MAX_ETA_SPAN:
            return False
        rule = stay_of(loss) if loss.tails else loss.efron
        make_state: Callable[..., Any] = fg_state if loss.tails else cox_state
        sweep: Callable[..., Any] = fg_sweep if loss.tails else cox_sweep
        state = make_state(eta, shift, loss.risk, rule)
        if state.total[loss.risk.group_tied > 0].min(initial=np.inf) < MIN_KEPT_TOTAL:
            return False
        if self.columns is None:
            self.columns = RiskColumns(self.problem.design, loss.risk.order)
        self._bound(self.columns.reach)
        for entries in self.columns.batches(active):
            sweep(*entries, self.l1, self.l2, beta, self.width, self.second, state, loss.risk, rule)
        return True

    def _sweep_on_device(self, active: Index, beta: Features, rows: DeviceRows) -> None:
        """By scans over all rows; the linear predictor that moved along is left there."""
        if self.coordinates is None:
            problem = self.problem
            self.coordinates = DeviceSweeps(problem.design, problem.loss, rows.design.backend)
        self._bound(self.coordinates.reach)
        eta = rows.moved(self.eta, 0.0, self.eta)
        shift = rows.loss.sums.extremes(eta)[1]
        state = (beta, self.width, self.second)
        self.coordinates.sweep(active, eta, shift, (self.l1, self.l2), state)

    def _bound(self, reach: Features) -> None:
        np.minimum(self.width, MAX_ETA_CHANGE / np.maximum(reach, MIN_REACH), out=self.width)

    def _sweep_exactly(self, active: Index, beta: Features) -> None:
        """By passes over all rows, which know no exceptions."""
        design, loss = self.problem.design, self.problem.loss
        eta, now = self.eta, self.now
        for j in active:
            here = np.array([j])
            gradient = float(design.cross(now.residual, here, runtime=loss.runtime)[0])
            l1, l2 = float(self.l1[j]), float(self.l2[j])
            if coordinate_step(gradient, 1.0, beta[j], l1, l2, self.width[j])[0] == 0.0:
                continue
            self.second[j] = loss.information(design, eta, here)[0, 0]
            step, self.width[j] = coordinate_step(
                gradient, self.second[j], beta[j], l1, l2, self.width[j]
            )
            beta[j] += step
            eta = eta + design.product(np.array([step]), here, runtime=loss.runtime)
            now = loss.evaluate(eta)


fit_by_ccd: Callable[..., Solution] = functools.partial(fit_by_newton, method=CoordinateDescent)
"""`fit_by_newton` with sweeps of coordinate descent in place of Newton steps.

`max_iter` is the largest number of sweeps, and `Solution.n_iter` counts them. Some 25 are usual
under an L1 penalty; correlated columns that are not penalised may take thousands. The limit of an
infinite estimate is found by Newton steps.

A coordinate costs as many operations as its column has non-zeros, and if it moves as many as there
are groups of events in the strata in which it has some. With late entry, and where eta spans more
than one exponent holds, every coordinate that moves costs two passes over all rows.

On a GPU (`solve.ccd_device`) only where ``device="cuda"`` asks for it: a coordinate then costs a
pass over all rows, as in the paper. Rows that enter late are refused there.
"""
