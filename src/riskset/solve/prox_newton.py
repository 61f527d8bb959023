"""One minimisation: proximal Newton steps on working sets, until the certificate holds."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from riskset._errors import DeviceError
from riskset._messages import Note, Value
from riskset._types import Features, Index, Matrix, NewtonQuadratic
from riskset.data.working_columns import WorkingColumns
from riskset.model.cox import Evaluation
from riskset.model.curvature_product import MAX_PRODUCT_SPAN
from riskset.model.loss import rounding_of
from riskset.solve import aliasing
from riskset.solve.conjugate import conjugate_step
from riskset.solve.curvature import RIDGE_FACTOR, CurvatureModel, largest
from riskset.solve.finiteness import ScoreAndInformation
from riskset.solve.optimality import NewtonProblem, violations
from riskset.solve.quadratic import newton_step
from riskset.solve.result import Solution
from riskset.solve.rows import EtaTooWide, HostRows, RowOperator

__all__ = ["CompleteMinimisation", "Minimisation", "PathMinimisation", "ResidualReport"]

ResidualReport = Callable[[int, float], None]
"""Called with the number of steps and the relative KKT residual."""

MAX_FULL_WORKING_SET = 1024
"""Designs up to this many columns may start with every column in the working set."""
MIN_WORKING_SET = 256
"""Size of a first working set, and of what is added to it at once."""
MAX_MATRIX_COLUMNS = 2048
"""On larger working sets steps are made by conjugate gradients, without a matrix."""
MAX_DENSE_MATRIX_COLUMNS = 4096
"""The same on dense tables, where a product takes longer beside a matrix."""
MIN_MAP_COLUMNS = 512
ENTRIES_PER_CUBE = 0.005
"""On smaller ones, too, from the first number on, with fewer entries than this share of q^3: a
sample for a matrix takes time like q^3, and all products together time like the entries."""
MAX_FALLBACK_COLUMNS = 16_384
"""Up to so many, which take 2 GB, a matrix makes the steps that conjugate gradients cannot."""
MIN_ROWS_PER_COLUMN = 2
"""With an L1 part and fewer rows, the curvature vanishes in many directions: a matrix is better."""
MAX_SLOW_STEPS = 10
"""Steps without a matrix that need not halve the residual."""
MIN_ACCURACY, MAX_ACCURACY = 0.01, 0.3
"""Of such a step."""
MAX_GROWTH = 3
"""Times the size of a large working set that may join it at once."""
MAX_HALVINGS = 60
MAX_REST_STEP = 1e-3
"""A coefficient that the last curvature would move by more of its standard error is not at rest."""
MAX_LEFT = 0.02
"""Share of the tolerance that is left where coefficients have digits to spare."""
MAX_IDLE_STEPS = 8
"""Steps below rounding of the objective that may follow the one of the least residual."""
MIN_SHARE_LEFT_OUT = 0.2
"""A smaller working set is looked at once more with all others: to leave it out takes time."""
NO_CURVATURE: Matrix = np.zeros((0, 0))
MIN_STEP_BOUND = 0.1
"""Steps up to this share of a spread are never cut: they need no guard."""


@dataclass
class Minimisation:
    """One minimisation: everything that changes while it goes on.

    `eta` and `now` are what `rows` makes of them: see `solve.rows`.
    """

    unit: ClassVar[str] = "step"
    """What is counted."""
    learns: ClassVar[bool] = False
    """See `CurvatureModel`."""

    problem: NewtonProblem
    l1: Features
    l2: Features
    tol: float
    max_iter: int
    allowed: NDArray[np.bool_]
    report: ResidualReport | None
    model: CurvatureModel = field(init=False)
    last_step: Features = field(init=False)
    beta: Features = field(init=False)
    rows: RowOperator[Any, Any, Any] = field(init=False)
    eta: Any = field(init=False)
    now: Any = field(init=False)
    gradient: Features = field(init=False)
    n_iter: int = 0
    n_passes: int = 0
    last_move: float = 0.0
    stalled: bool = False
    warm: bool = False
    score_and_information: ScoreAndInformation | None = None
    _spread_at: Any = None

    def begin(self, start: Solution | None) -> None:
        """Start at 0, or where another fit ended."""
        try:
            self._begin(start, self._fastest_rows())
        except EtaTooWide:
            self._begin(start, self.problem.final_rows())
        except DeviceError:
            if not self.problem.give_up_device():
                raise
            self._begin(start, self.problem.final_rows())

    def _fastest_rows(self) -> RowOperator[Any, Any, Any]:
        return self.problem.rows()

    def _begin(self, start: Solution | None, rows: RowOperator[Any, Any, Any]) -> None:
        problem, design = self.problem, self.problem.design
        self.model = CurvatureModel(problem, learns=self.learns)
        self.last_step = np.zeros(design.n_features)
        self.beta = np.zeros(design.n_features)
        if start is None or not start.coef.any():
            self._stand(rows)
            return
        finite = np.isfinite(start.coef) & self.allowed
        self.beta = np.where(finite, start.coef, 0.0) * design.scale
        self.beta[~finite] = 0.0
        curvature = start.curvature
        if curvature is not None and curvature.problem is problem:
            is_where_it_ended = start.gradient.size and (self.allowed | (start.coef == 0)).all()
            self._stand(rows, start if is_where_it_ended else None)
            self.model = curvature.copy(learns=self.learns)
        else:
            self._stand(rows)
        self.warm = True
        if self._objective(self.now, self.beta) > self._objective(
            problem.null, np.zeros(self.beta.size)
        ):
            self._begin(None, rows)  # worse than nothing, as after a change of the data
            self.warm = False

    def _stand(self, rows: RowOperator[Any, Any, Any], known: Solution | None = None) -> None:
        """Evaluate where `beta` is; what is `known` of a fit that ended there is not made again."""
        self.rows = rows
        if known is not None and known.eta.size and rows.has_last_word:
            self.eta = known.eta
        else:
            self.eta = rows.at(self.beta)
        at_zero = None if self.beta.any() else rows.known_at_zero()
        if at_zero is not None:
            self.now, self.gradient = at_zero
            return
        ended = known.curvature.ended if known is not None and known.curvature else None
        if ended is not None and rows.has_last_word:
            self.now = ended
        else:
            self.now = rows.evaluate(self.eta)
            self.n_passes += 1
        self.gradient = rows.cross(self.now) if known is None else known.gradient

    def _objective(self, now: Any, beta: Features) -> float:
        penalty = float(self.l1 @ np.abs(beta) + 0.5 * (self.l2 @ beta**2))
        return penalty - float(now.log_likelihood)

    def _rounding(self, objective: float) -> float:
        """Changes of the objective that may be rounding."""
        return rounding_of(objective, self.problem.n_events, self.rows.span(self.eta))

    def _violations(self) -> Features:
        """Violations; 0 for columns that are left out, because others stand for them."""
        v = violations(self.gradient, self.beta, self.l1, self.l2)
        return np.where(self.problem.informative & self.allowed, v, 0.0)

    def _residuals(self) -> Features:
        """Violations per spread, which the certificate is about."""
        v = self._violations()
        violated = np.flatnonzero(v)
        spread = self.model.spread
        if self._spread_at is not self.now:
            self._spread_at = self.now
            spread[:] = np.nan
        missing = violated[np.isnan(spread[violated])]
        if missing.size:
            spread[missing] = self.problem.unit_spread(self.now, missing, self.rows.sums)
        v[violated] /= spread[violated]
        return v

    def _residual(self) -> float:
        """The largest; the passes that spreads take are made if it may be the last one."""
        least = float((self._violations() / self.problem.spread).max(initial=0.0))
        if least > self.tol * self.problem.kkt_scale:
            return least / self.problem.kkt_scale
        return float(self._residuals().max(initial=0.0)) / self.problem.kkt_scale

    def solve(self) -> None:
        """Solve where the passes are fastest; the host has the last word."""
        if not self.rows.has_last_word:
            try:
                self._solve()
            except EtaTooWide:
                pass
            except DeviceError:
                if not self.problem.give_up_device():
                    raise
            self._stand(self.problem.final_rows())
        self._solve()
        if self.learns and isinstance(self.now, Evaluation):
            self.model.ended = self.now

    def _solve(self) -> None:
        """Solve on growing working sets until no column outside violates its condition."""
        problem = self.problem
        working = self._first_working_set()
        # Tibshirani et al. (2012): most coefficients are 0 at the answer, so steps are taken on the
        # few that may not be, and all others are looked at afterwards. A violator joins, so a
        # working set that was chosen too small costs time and never the answer.
        # The certificate covers columns left out and spreads at the solution; where it asks for
        # more than the conditions on the working set, those are tightened.
        strictness, is_first = 1.0, True
        while self.n_iter < self.max_iter and not self.stalled:
            residual = self._residual()
            if self.report:
                self.report(self.n_iter, residual)
            if residual <= self.tol:
                return
            columns = np.flatnonzero(working)
            everything = bool((working | ~self.allowed).all())
            target = max(0.5 * self.tol, 0.03 * residual)
            if is_first and self.warm:  # violators are rare, so this may be all
                target = 0.5 * self.tol
            is_first = False
            if everything:
                target = strictness * self.tol
                strictness *= 0.1
                self.stalled = strictness < 1e-9
            self._solve_on(columns, target)
            self._look_at_others(columns)
            v = self._residuals()
            fresh = (v > self.tol * problem.kkt_scale) & ~working & self.allowed
            most = max(MIN_WORKING_SET, int(np.count_nonzero(working)))
            if np.count_nonzero(fresh) > MAX_MATRIX_COLUMNS and self._may_map(fresh):
                # Without matrices on the way to so many, and in few stages: all cost products.
                most = max(MAX_GROWTH * most, MAX_MATRIX_COLUMNS)
            working |= largest(fresh, v, most)

    def _first_working_set(self) -> NDArray[np.bool_]:
        """Everything if that is little, else what is or could become different from 0."""
        if self.beta.size <= MAX_FULL_WORKING_SET and not (self.warm or self.model.kept):
            return self.allowed.copy()
        support = (self.beta != 0) | (self.l1 == 0)
        strength = np.abs(self.gradient - self.l2 * self.beta)
        # The strong rule between neighbouring penalties; violators are added anyhow.
        penalised = self.l1 > 0
        before = float((strength[penalised] / self.l1[penalised]).max(initial=1.0))
        near = (strength > max(0.7, 2.0 - before) * self.l1) & ~support & self.allowed
        most = max(MIN_WORKING_SET, 3 * int(np.count_nonzero(support)))
        excess = (strength - self.l1) / self.problem.spread
        chosen: NDArray[np.bool_] = (support | largest(near, excess, most)) & self.allowed
        return chosen

    def _nearest(self, columns: Index, most: int) -> Index:
        """Columns outside a working set whose gradients come closest to what lets them in."""
        is_outside = self.allowed & self.problem.informative
        is_outside[columns] = False
        strength = np.abs(self.gradient) / np.maximum(self.l1, 1e-300)
        return np.flatnonzero(largest(is_outside, strength, most))

    def _look_at_others(self, columns: Index) -> None:
        """Gradients of the columns outside the working set."""
        p = self.beta.size
        if columns.size < MIN_SHARE_LEFT_OUT * p:
            self.gradient = self.rows.cross(self.now)
        elif columns.size < p:
            others = np.delete(np.arange(p), columns)
            self.gradient[others] = self.rows.cross(self.now, others)

    # ------------------------------------------------------------------ on one working set

    def _solve_on(self, columns: Index, target: float) -> None:
        problem, rows = self.problem, self.rows
        q = columns.size
        l1, l2 = self.l1[columns], self.l2[columns]
        spread = self._recent_spread(columns)
        beta, gradient = self.beta[columns], self.gradient[columns]
        # No first step changes the log hazard by more than 2 standard deviations of a column: far
        # from the minimum the quadratic says little of what lies beyond.
        box = np.full(q, 2.0) / spread
        objective = self._objective(self.now, self.beta)
        least_residual, n_idle, is_last = np.inf, 0, False
        curvature = NO_CURVATURE
        working, slow_from, n_slow = self._working_columns(columns), np.inf, 0
        while self.n_iter < self.max_iter:
            v = violations(gradient, beta, l1, l2) / spread
            residual = float(v.max(initial=0.0)) / problem.kkt_scale
            if self.report:
                self.report(self.n_iter, residual)
            if residual <= target and not _may_move(v * spread, curvature, l2):
                if is_last or not self._gains_digits(residual, target):
                    break
                is_last = True
            is_slow = residual >= 0.5 * slow_from
            slow_from, n_slow = (slow_from, n_slow + 1) if is_slow else (residual, 0)
            if n_slow > MAX_SLOW_STEPS or (working is not None and self._is_wide()):
                working = self._without_map(columns, working)
            known = NewtonQuadratic(NO_CURVATURE, gradient, beta, l1, l2, box)
            least = 0.03 * residual * problem.kkt_scale * float(spread.min(initial=1.0))
            curvature, step, image = self._make_step(
                columns, working, known, least, residual, target
            )
            predicted = float(gradient @ step) - _penalty_change(beta, step, l1, l2)
            # Below rounding the objective cannot tell a better point, the residual still can.
            is_idle = residual >= least_residual and predicted <= self._rounding(objective)
            n_idle = n_idle + 1 if is_idle else 0
            least_residual = min(residual, least_residual)
            moved = None
            if step.any() and n_idle <= MAX_IDLE_STEPS:
                moved = self._search(columns, beta, step, predicted, objective)
            if moved is None:
                if working is not None and self._without_map(columns, working) is None:
                    working, n_idle = None, 0
                    continue
                self.stalled |= residual > target
                break
            share, objective = moved
            before = gradient
            gradient = rows.cross(self.now, columns)
            beta = self.beta[columns]
            # A trust region, coordinate by coordinate: twice a step that was taken, else narrower.
            box = np.maximum(np.maximum(2 * np.abs(share * step), box / 2), MIN_STEP_BOUND / spread)
            if image.size:
                self.model.learn(share * step, share * image, before - gradient)
        self.gradient = self.gradient.copy()
        self.gradient[columns] = gradient

    def _make_step(
        self,
        columns: Index,
        working: WorkingColumns | None,
        known: NewtonQuadratic,
        least: float,
        residual: float,
        target: float,
    ) -> tuple[Matrix, Features, Features]:
        """Curvature, if it is a matrix, the step, and its image under the matrix.

        `known` has all of the quadratic but its curvature.
        """
        _, gradient, beta, l1, l2, _ = known
        space = self.model.row_space(l1, l2) if working is None else None
        if space is not None:
            in_rows = self.problem.row_information(self.rows.home(self.eta), self.now)
            found = space.step(in_rows, columns, known, least)
            if found is not None:
                return NO_CURVATURE, found, np.zeros(0)
            if columns.size > MAX_FALLBACK_COLUMNS:
                working = self.problem.working_columns(columns)
        if working is not None:
            at = self.problem.curvature_map(self.rows.home(self.eta), working)
            step = conjugate_step(at, gradient, beta, l1, l2, _accuracy(residual, target))
            return NO_CURVATURE, step, np.zeros(0)
        is_cold = self.n_iter == 0 and not self.warm
        here = columns, self.eta, self.now, residual, target
        curvature = self.model.at(*here, is_cold=is_cold, nearest=self._nearest)
        self._remember(columns, curvature, gradient)
        return curvature, *newton_step(
            known._replace(curvature=curvature), least, columns, self.model.active
        )

    def _may_map(self, columns: Index | NDArray[np.bool_]) -> bool:
        """Whether steps need no matrix if working sets are large."""
        # A device makes a matrix, too, in less time than the host applies the map.
        return self.problem.has_map and (self.rows.has_last_word or not self.l1[columns].any())

    def _working_columns(self, columns: Index) -> WorkingColumns | None:
        """Columns to apply the curvature with, if that takes less time than a matrix.

        Passes of the host then read them, too.
        """
        q, is_large = columns.size, False
        has_row_space = self.model.row_space(self.l1[columns], self.l2[columns]) is not None
        if has_row_space or (self.l1[columns].any() and self._has_few_rows(q)):
            is_large = False
        elif q > MAX_MATRIX_COLUMNS:
            n_entries = self.problem.design.n_entries(columns)
            is_dense = n_entries > 0.5 * q * self.problem.design.n_rows
            is_large = not is_dense or q > MAX_DENSE_MATRIX_COLUMNS
        elif not self.learns and self.beta.size > MAX_FULL_WORKING_SET:
            most = ENTRIES_PER_CUBE * float(q) ** 3
            is_large = q >= MIN_MAP_COLUMNS and self.problem.design.n_entries(columns) <= most
        found = None
        if is_large and self._may_map(columns):
            found = self.problem.working_columns(columns)
        if isinstance(self.rows, HostRows):
            self.rows.use(columns, found)
        return found

    def _has_few_rows(self, q: int) -> bool:
        n_rows = self.problem.design.n_rows
        return q <= MAX_FALLBACK_COLUMNS and n_rows < MIN_ROWS_PER_COLUMN * q

    def _is_wide(self) -> bool:
        """Whether linear predictors lie too far apart for products with the curvature."""
        return self.rows.span(self.eta) > MAX_PRODUCT_SPAN

    def _without_map(self, columns: Index, working: WorkingColumns | None) -> WorkingColumns | None:
        """None for a matrix, where one is affordable."""
        if working is None or columns.size > MAX_FALLBACK_COLUMNS:
            return working
        if isinstance(self.rows, HostRows):
            self.rows.use(columns, None)
        return None

    def _gains_digits(self, residual: float, target: float) -> bool:
        """Whether one more step is worth it: with exact curvature it squares a residual."""
        is_final = target <= self.tol and residual > MAX_LEFT * target
        return is_final and self.model.is_exact and not self.learns

    def _recent_spread(self, columns: Index) -> Features:
        """Spreads at the last certificate, which are good enough for the way to the next."""
        spread = self.model.spread
        missing = columns[np.isnan(spread[columns])]
        if missing.size:
            spread[missing] = self.problem.unit_spread(self.now, missing, self.rows.sums)
        return spread[columns]

    def _remember(self, columns: Index, curvature: Matrix, gradient: Features) -> None:
        """Keep what may prove the estimate to be finite, if the curvature here is exact."""
        self.score_and_information = None
        drift = self.rows.intercept_drift(self.now)
        if self.model.is_exact and drift is not None:
            information = curvature.copy()
            information[np.diag_indices(columns.size)] /= RIDGE_FACTOR
            self.score_and_information = ScoreAndInformation(columns, information, gradient, drift)

    def _search(
        self,
        columns: Index,
        beta: Features,
        step: Features,
        predicted: float,
        objective: float,
    ) -> tuple[float, float] | None:
        """Halve the step until the objective falls; at rounding level any step will do."""
        along, trial = self.rows.along(step, columns), self.beta.copy()
        share = 1.0
        for _ in range(MAX_HALVINGS):
            trial[columns] = beta + share * step
            eta = self.rows.moved(self.eta, share, along)
            now = self.rows.evaluate(eta)
            self.n_passes += 1
            value = self._objective(now, trial)
            # Armijo's condition: Nocedal & Wright (2006), Numerical Optimization, equation 3.4.
            most = objective - 1e-4 * share * predicted
            if value <= most or value <= most + self._rounding(objective):
                self.beta, self.eta, self.now = trial, eta, now
                self.n_iter += 1
                self.last_move = share * self.rows.span(along)
                self.last_step[columns] = share * step
                return share, value
            share *= 0.5
        return None

    # ------------------------------------------------------------------ result

    def solution(self, aliased: NDArray[np.bool_], notes: list[Note]) -> Solution:
        """What was reached, with its certificate over all columns."""
        problem = self.problem
        v = self._residuals()
        absolute = float(v.max(initial=0.0))
        kkt = absolute / problem.kkt_scale
        free = (self.l1 == 0) & (self.l2 == 0)
        if self.beta.size and free.any() and not problem.informative.any():
            status = "not_estimable"
            notes = [*notes, aliasing.not_estimable_note(problem, np.flatnonzero(free))]
        elif kkt <= self.tol:
            status = "converged"
        else:
            status = "max_iter"
            what = (
                "no further progress in floating point" if self.stalled else "max_iter was reached"
            )
            notes = [
                *notes,
                Note(
                    "max_iter",
                    (),
                    f"stopped after {{n:{self.unit}|{self.unit}s}} with relative KKT residual "
                    f"{{kkt:.2g}} > tol {{tol:.2g}} ({what}).",
                    {
                        "n": Value("things", self.n_iter),
                        "kkt": Value("measure", kkt),
                        "tol": Value("setting", self.tol),
                    },
                ),
            ]
        coef = self.beta / problem.design.scale
        return Solution(
            coef=coef,
            finite_part=coef,
            status=status,  # type: ignore[arg-type]
            kkt=kkt,
            kkt_absolute=absolute,
            kkt_column=int(v.argmax()) if v.size else -1,
            log_likelihood=self.now.log_likelihood,
            null_log_likelihood=problem.null.log_likelihood,
            objective=self._objective(self.now, self.beta),
            n_iter=self.n_iter,
            n_passes=self.n_passes,
            gradient=self.gradient,
            gradient_at_zero=problem.gradient_at_zero,
            eta=self.rows.home(self.eta),
            infinite=np.zeros(self.beta.size, dtype=np.int8),
            directions=(),
            aliased=aliased,
            loss=problem.whole_loss,
            notes=tuple(notes),
            curvature=self.model,
        )


class PathMinimisation(Minimisation):
    """A minimisation on a path: it ends as soon as its conditions hold, with no more digits."""

    learns = True


class CompleteMinimisation(Minimisation):
    """A minimisation that keeps every column of a small design in its working set.

    For those who go on with its curvature, as replicates do.
    """

    def _first_working_set(self) -> NDArray[np.bool_]:
        if self.beta.size <= MAX_FULL_WORKING_SET:
            return self.allowed.copy()
        return super()._first_working_set()


def _accuracy(residual: float, target: float) -> float:
    """Of a step without a matrix: far from the minimum its quadratic says little, so less will do.

    Nor does it matter what is far below the target.
    """
    return max(MIN_ACCURACY, min(MAX_ACCURACY, float(np.sqrt(residual))), 0.2 * target / residual)


def _may_move(violation: Features, curvature: Matrix, l2: Features) -> bool:
    """Whether a violation that is small beside the gradient at 0 still means a coefficient is off.

    As where rows of huge weight made that gradient, and count no longer.
    """
    if not curvature.size:
        return False
    return bool(
        (violation > MAX_REST_STEP * np.sqrt(np.maximum(np.diag(curvature), 0.0) + l2)).any()
    )


def _penalty_change(beta: Features, step: Features, l1: Features, l2: Features) -> float:
    new = beta + step
    return float(l1 @ (np.abs(new) - np.abs(beta)) + 0.5 * (l2 @ (new**2 - beta**2)))
