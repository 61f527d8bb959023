"""The default solver: proximal Newton on a working set, certified on all columns.

Minimise ``-loglik(beta) + sum_j (l1_j |beta_j| + l2_j beta_j^2 / 2)``. One pass over the data gives
the exact gradient; the curvature is exact for small problems and otherwise a sampled model that
secant (BFGS) updates correct from the gradients met. Lee, Sun & Saunders (2014), SIAM J. Optim. 24,
1420-1443, doi:10.1137/130921428; working sets as Tibshirani et al. (2012), JRSS B 74, 245-266,
doi:10.1111/j.1467-9868.2011.01004.x.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from riskset._runtime import one_blas_thread
from riskset._types import Features, Index, Matrix
from riskset.data.design import Design
from riskset.model.loss import Loss
from riskset.solve import aliasing, separation
from riskset.solve.finite import SHORT, FreeColumns
from riskset.solve.limit import restrict
from riskset.solve.optimality import Problem
from riskset.solve.result import Note, Solution
from riskset.solve.run import Report, Run

__all__ = ["Report", "fit"]


STILL_MOVING = 1e-2
"""A last step that moved a linear predictor by more makes us look for separation."""
WIDE = 5.0
"""So does an X beta that spans more, if it costs a direction most of its information."""
INFORMATION_LEFT = 0.02
TIGHT = 1e-7
"""A fit to a looser tolerance, or one that begins at its end, may stop short of all these signs."""
CLEARLY = 1e-7
"""Share of the objective and of an event by which likelihoods may differ by rounding."""


@one_blas_thread
def fit(
    design: Design,
    loss: Loss,
    l1: Features,
    l2: Features,
    *,
    tol: float = 1e-8,
    max_iter: int = 200,
    start: Solution | None = None,
    problem: Problem | None = None,
    aliased: NDArray[np.bool_] | None = None,
    report: Report | None = None,
    separate: bool = True,
    method: Callable[..., Run] = Run,
) -> Solution:
    """Minimise the penalised negative log likelihood.

    Parameters
    ----------
    design, loss : Design, Loss
        The offset of the outcome is part of the linear predictor.
    l1, l2 : (p,) float64
        Penalties of each coefficient in the user's units, on the total log likelihood.
    tol : float
        Bound on the relative KKT residual over all columns.
    max_iter : int
        Largest number of Newton steps.
    start : Solution, optional
        Warm start.
    problem : Problem, optional
        Of the same design and loss, to save its preparation.
    aliased : (p,) bool, optional
        Columns to leave out, to save the search for those that cannot be estimated.
    report : callable, optional
    separate : bool
        Whether to look for infinite estimates; if not, theirs is a finite value that satisfies the
        conditions to `tol`.
    method : callable
        Makes the `Run` that approaches the minimum; `solve.ccd` has another. The limit of an
        infinite estimate is always found by Newton steps.

    Returns
    -------
    Solution
        Never raises for want of convergence; see its `status`.
    """
    problem = problem or Problem.prepare(design, loss)
    l1, l2 = l1 / design.scale, l2 / design.scale / design.scale
    notes: list[Note] = []
    if aliased is None:
        aliased, notes = aliasing.find(problem, l1, l2)
    run = method(problem, l1, l2, tol, max_iter, ~aliased, report)
    run.begin(start)
    run.solve()
    solution = run.solution(aliased, notes)
    free = (l1 == 0) & (l2 == 0) & ~aliased
    hint = _moving(run, free, solution) if separate and free.any() else None
    if hint is None:
        return solution
    spread = np.minimum(problem.spread, problem.spread_at_risk(run.now))
    reached = run.beta if (free | aliased).all() and _is_certain(solution, loss) else None
    found = separation.find(problem, free, hint, reached=reached, spread=spread)
    if found.direction is not None:
        limit = restrict(design, loss, found.direction)
        # Smaller risk sets with all their events: a guard against rounding in the search.
        slack = CLEARLY * (abs(solution.log_likelihood) + loss.n_events)
        if limit.evaluate(run.eta).log_likelihood >= solution.log_likelihood - slack:
            begin = None if start is None else _without(solution, found.direction)
            return _at_infinity(
                solution, problem, found.direction, limit, l1, l2, tol, max_iter, begin, report
            )
    elif not found.is_decided:
        note = Note(
            "undecided",
            tuple(design.names[j] for j in np.flatnonzero(free & (hint != 0))[:10]),
            "it could not be decided whether the estimate is infinite (separation). A penalty "
            "gives a finite one.",
        )
        return replace(solution, notes=(*solution.notes, note))
    return solution


def _is_certain(solution: Solution, loss: Loss) -> bool:
    """Whether every event is likelier than not, so that its x'beta is above that of each rival."""
    weight = loss.risk.event_weight
    least = float(weight[weight > 0].min(initial=np.inf))
    return bool(-solution.log_likelihood < np.log(2) * least)


def _moving(run: Run, free: NDArray[np.bool_], solution: Solution) -> Features | None:
    """What still moves, or would if floating point could see it; None: all is at rest."""
    problem, design = run.problem, run.problem.design
    columns = np.flatnonzero(free)
    is_affordable = float(design.n_rows) * columns.size**2 <= aliasing.MAX_WORK
    if is_affordable and (run.tol > TIGHT or run.n_iter == 0):
        return _unless_finite(run, columns)
    if run.last_move > STILL_MOVING or solution.status == "max_iter":
        return np.where(free, run.last_step, 0.0)
    part = design.product(run.beta[columns], columns, runtime=problem.loss.runtime)
    if float(np.ptp(part)) < WIDE or not is_affordable:
        return None
    # A direction in which the likelihood flattens out has lost its information on the way.
    before = problem.loss.information(design, problem.loss.offset, columns)
    now = problem.loss.information(design, run.eta, columns)
    hint = np.zeros(design.n_features)
    found = _flattest(before, now)
    if found is None:
        hint[columns] = run.beta[columns]
        return hint
    left, lost = found
    if left > INFORMATION_LEFT:
        return None
    hint[columns] = lost * np.copysign(1.0, lost @ run.beta[columns])
    return hint


def _flattest(before: Matrix, now: Matrix) -> tuple[float, Features] | None:
    """Least share of its information that a direction has left, and that direction.

    None if some direction had none to begin with, as far as floating point can see: where an offset
    gives all the chances to one row, what is left of the others is rounding.
    """
    had = np.diag(before)
    if not had.size or had.min() <= 0.0:
        return None
    scale = np.sqrt(had)
    before, now = before / np.outer(scale, scale), now / np.outer(scale, scale)
    before[np.diag_indices(scale.size)] += 1e-9
    try:
        left, directions = sla.eigh(now, before, check_finite=False)
    except sla.LinAlgError:
        return None
    return float(left[0]), directions[:, 0] / scale


def _unless_finite(run: Run, columns: Index) -> Features | None:
    """The next step of free columns, or None: it proves that their estimates are finite."""
    problem = run.problem
    free = FreeColumns.at(problem.design, problem.loss, run.eta, columns)
    hint = np.zeros(run.beta.size)
    if not free.are_estimable(problem.spread[columns], problem.loss.n_events):
        hint[columns] = run.beta[columns]
        return hint
    hint[columns] = free.step(run.gradient[columns])
    return None if free.span(hint[columns], problem.loss) < SHORT else hint


def _without(solution: Solution, direction: Features) -> Solution:
    return replace(solution, coef=np.where(direction != 0, 0.0, solution.coef))


def _at_infinity(
    solution: Solution,
    problem: Problem,
    direction: Features,
    loss: Loss,
    l1: Features,
    l2: Features,
    tol: float,
    max_iter: int,
    start: Solution | None,
    report: Report | None,
) -> Solution:
    """The limit along a direction in which the likelihood never stops rising."""
    design = problem.design
    user_l1, user_l2 = l1 * design.scale, l2 * design.scale * design.scale
    limit = fit(
        design,
        loss,
        user_l1,
        user_l2,
        tol=tol,
        max_iter=max_iter,
        start=start,
        # Columns that were left out stay so.
        problem=Problem.prepare(design, loss).without(~problem.informative),
        report=report,
    )
    sign = np.sign(direction).astype(np.int8)
    sign = np.where(sign == 0, limit.infinite, sign).astype(np.int8)
    infinite = sign != 0
    coef = np.where(infinite, np.copysign(np.inf, sign), limit.coef)
    names = tuple(design.names[j] for j in np.flatnonzero(infinite))
    listed = ", ".join(f"{n!r}" for n in names[:5]) + (", ..." if len(names) > 5 else "")
    note = Note(
        "infinite",
        names,
        f"the likelihood keeps rising as the coefficient of {listed} goes to infinity "
        "(monotone likelihood, separation): the estimate is infinite; its other coefficients and "
        "the log likelihood are their limits. A penalty or a profile-likelihood interval helps.",
    )
    known = np.flatnonzero(infinite | solution.aliased)
    return replace(
        limit,
        coef=coef,
        status="max_iter" if limit.status == "max_iter" else "infinite_estimate",
        infinite=sign,
        directions=(direction / design.scale, *limit.directions),
        aliased=limit.aliased & ~infinite,
        null_log_likelihood=solution.null_log_likelihood,
        gradient_at_zero=solution.gradient_at_zero,
        n_iter=solution.n_iter + limit.n_iter,
        n_passes=solution.n_passes + limit.n_passes,
        notes=(note, *_notes_in_limit(solution, limit, {design.names[j] for j in known})),
    )


def _notes_in_limit(solution: Solution, limit: Solution, known: set[str]) -> Iterator[Note]:
    """Notes on the columns that are neither infinite themselves nor left out before."""
    yield from (n for n in solution.notes if n.code in ("constant", "collinear"))
    for note in limit.notes:
        others = tuple(name for name in note.columns if name not in known)
        if note.code == "constant" and others:
            yield Note(
                "constant",
                others,
                f"in the limit {aliasing.listed(others)} "
                f"{'carries' if len(others) == 1 else 'carry'} no information: coefficient 0, "
                "which is arbitrary, and predictions for rows that differ in it are, too.",
            )
        elif note.code != "infinite" and (others or not note.columns):
            yield note
