r"""The profile likelihood of one coefficient: the others re-optimised while it is held fixed.

.. math:: \ell_p(b) = \max_{\beta: \beta_j = b} \ell(\beta)
    - \sum_{k \ne j} (l_{1k} |\beta_k| + \tfrac{1}{2} l_{2k} \beta_k^2)

A partial likelihood is concave, and so is its profile, with the score of column j at the inner
optimum as its derivative. Two things follow. A tangent is an upper bound and a chord a lower one,
so that root finding is safe and the error of a grid is known. And where the estimate is finite the
profile falls at least linearly on both sides, so that both ends of an interval are finite: an end
is infinite only where the estimate is, which `solve.separation` decides without any limit of size.

References
----------
Venzon and Moolgavkar (1988), Applied Statistics 37, 87-94, doi:10.2307/2347496. Heinze and Schemper
(2001), Biometrics 57, 114-119, doi:10.1111/j.0006-341X.2001.00114.x.
"""

import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from time import monotonic
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from riskset._errors import InputError, NotDefinedError, counted
from riskset._progress import ProgressBar, time_left
from riskset._runtime import Runtime
from riskset._types import Features, Index, Rows
from riskset.data.design import Design
from riskset.model.loss import Loss
from riskset.solve import aliasing, separation
from riskset.solve.fit import fit_by_newton
from riskset.solve.optimality import Problem
from riskset.solve.result import UNCERTIFIED, Solution

__all__ = ["ProfileCurve", "ProfilePoint", "ProfiledFit", "check_unpenalized"]

S = TypeVar("S")
T = TypeVar("T")

INNER_TOL = 1e-10
"""Relative KKT residual of the inner fits: far below what a root to 1e-8 can see."""
CERTIFIED_TOL = 1e-8
"""The residual that is accepted where floating point does not allow better."""


def check_unpenalized(design: Design, l1: Features, l2: Features, columns: Index) -> None:
    """Refuse to profile a covariate that has a penalty."""
    for j in columns:
        if l1[j] > 0 or l2[j] > 0:
            name = design.names[j]
            raise InputError(
                f"the covariate {name!r} is penalised, and the penalty biases its estimate, so an "
                "interval made of its profile would not have the stated coverage.",
                hint=f"fit with `unpenalized=[{name!r}]`, or pass `penalized=True` to profile it "
                "with its penalty all the same.",
            )


class ProfilePoint(NamedTuple):
    """The profile at one value of the coefficient, in the user's units, and its derivative `slope`.

    `coef` (p,) are the other coefficients, 0 for the one held fixed; `is_certified` says whether
    their fit converged.
    """

    at: float
    value: float
    slope: float
    coef: Features
    is_certified: bool = True


@dataclass(frozen=True, eq=False)
class ProfiledFit:
    """A fit whose coefficients can be profiled, in the threads of its runtime.

    The penalties `l1` and `l2` (p,) are in the user's units; that of the profiled coefficient
    counts, too. `max_iter` bounds the Newton steps of an inner fit. `report` is called after each,
    in any thread.
    """

    design: Design
    loss: Loss
    solution: Solution
    l1: Features
    l2: Features
    max_iter: int = 200
    report: Callable[[], None] = lambda: None

    @functools.cached_property
    def _limit(self) -> tuple[Problem, NDArray[np.bool_]]:
        """For a coefficient that is finite: on the risk sets that infinite ones leave."""
        return self._prepared(self.solution.likelihood)

    @functools.cached_property
    def _whole(self) -> tuple[Problem, NDArray[np.bool_]]:
        """For one that is infinite, or hidden by the limit: on all risk sets, held at a number."""
        return self._prepared(self.loss.whole)

    def _prepared(self, loss: Loss) -> tuple[Problem, NDArray[np.bool_]]:
        problem = Problem.prepare(self.design, loss)
        scale = self.design.scale
        return problem, aliasing.find_aliased(problem, self.l1 / scale, self.l2 / scale**2)[0]

    def check_certified(self, tol: float) -> None:
        """Refuse a fit, to tolerance `tol`, without a certified maximum."""
        solution = self.solution
        if solution.status == "undecided":
            raise NotDefinedError(
                "it could not be decided whether the estimate is finite, so it is not known where "
                "the profile likelihood has its maximum.",
                hint="leave out covariates that nearly repeat others, or add a penalty.",
            )
        if solution.status == "max_iter":
            raise NotDefinedError(
                f"the fit did not converge (relative KKT residual {solution.kkt:.2g}, tol "
                f"{tol:.2g}), so its profile likelihood has no certified maximum.",
                hint="raise `max_iter`, or add a penalty.",
            )

    @contextmanager
    def reported(self, title: str, expected: int, progress: bool | None) -> Iterator["ProfiledFit"]:
        """The same, with a progress bar that its fits move, in whichever thread they run."""
        lock, done, started = threading.Lock(), 0, monotonic()
        with ProgressBar(title, progress) as bar:

            def report() -> None:
                nonlocal done
                with lock:
                    done += 1
                    share = min(done / expected, 0.99)
                    words = f"{counted(done, 'fit')}, about {time_left(started, share)} left"
                    bar.update(share, words)

            yield replace(self, report=report)

    def share(self, task: Callable[[S, Runtime], T], items: Sequence[S]) -> list[T]:
        """Do tasks in parallel, each with the runtime given to it; the number of threads is free.

        What comes out does not depend on it.
        """
        runtime = self.loss.runtime
        # Fewer threads than the tasks wait for belong to another pool, so that none waits for
        # itself.
        inner = Runtime(max(1, runtime.n_threads // max(1, len(items))))
        return runtime.map(lambda item: task(item, inner), items)

    def is_estimable(self, column: int) -> bool:
        """Whether the data say anything about a coefficient."""
        return not self._setting(column)[1][column]

    def curve(self, column: int, runtime: Runtime) -> "ProfileCurve":
        """The profile of a coefficient that is estimable."""
        problem, aliased = self._setting(column)
        problem = replace(problem, loss=problem.loss.shifted(problem.loss.offset, runtime))
        held = aliased.copy()
        held[column] = True
        unit = np.zeros(self.design.n_features)
        unit[column] = self.design.scale[column]
        x = self.design.product(unit, runtime=runtime)
        is_flat: bool | None = False
        if self._needs_all(column):
            sign = int(self.solution.infinite[column]) or -1
            free = (self.l1 == 0) & (self.l2 == 0) & ~aliased
            is_flat = separation.recedes_with(problem, free, column, -sign)
        return ProfileCurve(self, column, problem.without(held), held, x, is_flat)

    def _setting(self, column: int) -> tuple[Problem, NDArray[np.bool_]]:
        return self._whole if self._needs_all(column) else self._limit

    def _needs_all(self, column: int) -> bool:
        """Whether the limit of infinite coefficients hides some of a profile.

        So it does for those coefficients themselves, and where it makes columns collinear or
        constant that are not: then others may make up for any value of this one.
        """
        solution = self.solution
        if not solution.infinite.any():
            return False
        (limit, left_out), (_, aliased) = self._limit, self._whole
        collinear = (left_out & ~aliased & limit.informative).any()
        return bool(solution.infinite[column] or left_out[column] or collinear)


@dataclass(frozen=True, eq=False)
class ProfileCurve:
    """The profile of one coefficient.

    `problem` is that of the other coefficients. `held` (p,) are the columns that are not estimated:
    this one and those without information. `x` (n,) is the column, up to a constant. `is_flat` says
    that infinite coefficients make up for any value of this one; None if that could not be decided.
    """

    source: ProfiledFit
    column: int
    problem: Problem
    held: NDArray[np.bool_]
    x: Rows
    is_flat: bool | None

    @property
    def maximum(self) -> ProfilePoint:
        """The estimate and the top of the profile, or its limit at infinity."""
        solution = self.source.solution
        coef = np.where(self.held, 0.0, solution.coef)
        return ProfilePoint(float(solution.coef[self.column]), -solution.objective, 0.0, coef)

    @property
    def curvature(self) -> float:
        """Information about this coefficient alone at a finite estimate: at least the profile's."""
        solution, design, j = self.source.solution, self.source.design, self.column
        alone = self.problem.loss.information(design, solution.eta, np.array([j]))[0, 0]
        return float(alone * design.scale[j] ** 2 + self.source.l2[j])

    def at(self, b: float, near: Features, runtime: Runtime) -> ProfilePoint:
        """The profile at b, starting from the other coefficients of a point nearby."""
        source, j = self.source, self.column
        problem = self.problem.shifted(self.problem.loss.offset + b * self.x, runtime)
        start = source.solution.moved_to(near)
        for tol in (INNER_TOL, CERTIFIED_TOL):
            solution = fit_by_newton(
                source.design,
                problem.loss,
                source.l1,
                source.l2,
                tol=tol,
                max_iter=source.max_iter,
                start=start,
                problem=problem,
                aliased=self.held,
            )
            if solution.status != "max_iter":
                break
            start = solution
        source.report()
        l1, l2 = float(source.l1[j]), float(source.l2[j])
        slope = float(solution.gradient[j] * source.design.scale[j]) - l2 * b
        # At 0 an L1 part leaves a kink: any slope between both sides will do, as near 0 as may be.
        slope = slope - l1 * np.sign(b) if b else np.sign(slope) * max(abs(slope) - l1, 0.0)
        value = -solution.objective - l1 * abs(b) - 0.5 * l2 * b * b
        return ProfilePoint(
            b, value, float(slope), solution.coef, solution.status not in UNCERTIFIED
        )
