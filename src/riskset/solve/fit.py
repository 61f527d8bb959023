"""The default solver: proximal Newton on a working set, certified on all columns.

Minimise ``-loglik(beta) + sum_j (l1_j |beta_j| + l2_j beta_j^2 / 2)``. One pass over the data gives
the exact gradient; the curvature is exact for small problems and otherwise a sampled model that
secant (BFGS) updates correct from the gradients met. Lee, Sun & Saunders (2014), SIAM J. Optim. 24,
1420-1443, doi:10.1137/130921428; working sets as Tibshirani et al. (2012), JRSS B 74, 245-266,
doi:10.1111/j.1467-9868.2011.01004.x.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from riskset._messages import Note, Value
from riskset._runtime import one_blas_thread
from riskset._types import Features
from riskset.data.column_storage import SparseColumns
from riskset.data.design import Design
from riskset.model.loss import Loss
from riskset.solve import aliasing, separation
from riskset.solve.curvature import CurvatureModel
from riskset.solve.exact import Direction
from riskset.solve.limit import restrict_to_limit
from riskset.solve.optimality import NewtonProblem, Problem, in_stored_units, in_user_units
from riskset.solve.prox_newton import Minimisation, ResidualReport
from riskset.solve.result import UNCERTIFIED, Solution

__all__ = ["ResidualReport", "fit_by_newton", "minimise"]

MIN_SORTED_ROWS = 1 << 20
"""A number for each of fewer rows (8 MB) fits in a cache."""
MAX_SORTED_ENTRIES = 16
"""With more entries a row, sorting them takes longer than it saves."""
PART = 16
"""A fit of sorted rows starts where a fit of every so many of them ends."""
PART_SAMPLES = 1 << 19
"""Of its curvature: all steps on all rows begin with that."""
MIN_PART_EVENTS = 5_000
"""With fewer, that is too far from the minimum to save a step."""
PART_TOL = 1e-3
"""Of that fit: its minimum differs from that of all rows by more."""


@one_blas_thread
def fit_by_newton(
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
    report: ResidualReport | None = None,
    separate: bool = True,
    method: Callable[..., Minimisation] = Minimisation,
) -> Solution:
    """Minimise the penalised negative log likelihood.

    Penalties (p,) of each coefficient are in the user's units, on the total log likelihood, and
    `tol` is a bound on the relative KKT residual over all columns. A `problem` of the same design
    and loss saves its preparation, and `aliased` columns to leave out save the search for those
    that cannot be estimated. If infinite estimates are not looked for (`separate`), theirs is a
    finite value that satisfies the conditions to `tol`. `method` makes the `Minimisation` that
    approaches the minimum; `solve.ccd` has another. The limit of an infinite estimate is always
    found by Newton steps.

    Never raises for want of convergence; see the status of the solution.
    """
    if problem is None and _sorts_rows(design, loss, l1, l2):
        return _fit_in_risk_order(
            design, loss, l1, l2, tol=tol, max_iter=max_iter, start=start, aliased=aliased,
            report=report, method=method,
        )  # fmt: skip
    problem = problem or Problem.prepare(design, loss)
    l1, l2 = in_stored_units(design, l1, l2)
    run, solution = minimise(
        problem, l1, l2, tol=tol, max_iter=max_iter, start=start, aliased=aliased, report=report,
        method=method,
    )  # fmt: skip
    aliased = solution.aliased
    free = (l1 == 0) & (l2 == 0) & ~aliased
    if not separate or not free.any():
        return solution
    reached = run.beta if (free | aliased).all() and _is_certain(solution, loss) else None
    hint = run.last_step if run.last_step.any() else run.beta
    found = separation.find_recession(
        problem, free, run.eta, hint=hint, reached=reached, known=run.score_and_information
    )
    if found.direction is not None:
        begin = None
        if start is not None:
            moves = found.direction.value != 0
            begin = solution.moved_to(np.where(moves, 0.0, solution.coef))
        left = restrict_to_limit(design, loss, found.direction)
        limit = fit_by_newton(
            design, left, *in_user_units(design, l1, l2), tol=tol, max_iter=max_iter, start=begin,
            # Columns that were left out stay so.
            problem=Problem.prepare(design, left).without(~problem.informative), report=report,
        )  # fmt: skip
        return _at_infinity(solution, limit, found.direction, design)
    return solution if found.is_decided else _undecided(solution, design, free)


def _sorts_rows(design: Design, loss: Loss, l1: Features, l2: Features) -> bool:
    """Whether to sort the rows by risk order first: passes then read and write in sequence.

    That pays where a number for each row does not fit in the cache, and there are few entries to
    sort. It is left where estimates may be infinite, whose limits have risk sets of their own.
    """
    if loss.outcome.n_rows < MIN_SORTED_ROWS or loss.has_intercept or loss.is_limit:
        return False
    sparse = [part for part in design.parts if isinstance(part, SparseColumns)]
    n_entries = sum(part.row.size for part in sparse)
    is_few = len(sparse) == len(design.parts) and n_entries <= MAX_SORTED_ENTRIES * design.n_rows
    return is_few and bool(((l1 > 0) | (l2 > 0)).all())


def _fit_in_risk_order(
    design: Design, loss: Loss, l1: Features, l2: Features, **options: Any
) -> Solution:
    """Fit with the rows sorted, and put their linear predictors back."""
    order = loss.risk.order
    ordered = loss.in_risk_order()
    taken = design.take_rows(order)
    problem = Problem.prepare(taken, ordered)
    if options["start"] is None:
        options["start"] = _fit_of_part(problem, l1, l2, **options)
    solution = fit_by_newton(taken, ordered, l1, l2, problem=problem, **options)
    eta = np.empty_like(solution.eta)
    eta[order] = solution.eta
    return replace(solution, eta=eta, loss=loss, curvature=None)


def _fit_of_part(whole: Problem, l1: Features, l2: Features, **options: Any) -> Solution | None:
    """The solution on every so many rows, with its curvature, as a start; None if few events."""
    rows = np.arange(PART // 2, whole.design.n_rows, PART)
    loss = whole.loss.of_rows(rows)
    if loss.outcome.n_events < MIN_PART_EVENTS:
        return None
    problem = Problem.prepare(whole.design.take_rows(rows), loss)
    share = loss.n_events / whole.n_events
    l1, l2 = in_stored_units(whole.design, share * l1, share * l2)
    options |= {"tol": max(PART_TOL, options["tol"]), "report": None}
    _, solution = minimise(problem, l1, l2, **options)
    assert solution.curvature is not None
    columns = solution.curvature.columns
    matrix = problem.sampled_information(solution.eta, columns, PART_SAMPLES) / share
    curvature = CurvatureModel.given(whole, columns, matrix)
    return replace(solution.moved_to(solution.coef), curvature=curvature)


def minimise(
    problem: NewtonProblem,
    l1: Features,
    l2: Features,
    *,
    tol: float,
    max_iter: int,
    start: Solution | None = None,
    aliased: NDArray[np.bool_] | None = None,
    report: ResidualReport | None = None,
    method: Callable[..., Minimisation] = Minimisation,
) -> tuple[Minimisation, Solution]:
    """A certified minimum, which may still be on its way to infinity; penalties in stored units.

    See `fit_by_newton`, which looks for separation, too.
    """
    notes: list[Note] = []
    if aliased is None:
        aliased, notes = aliasing.find_aliased(problem, l1, l2)
    run = method(problem, l1, l2, tol, max_iter, ~aliased, report)
    run.begin(start)
    run.solve()
    return run, run.solution(aliased, notes)


def _undecided(solution: Solution, design: Design, free: NDArray[np.bool_]) -> Solution:
    """Neither proven to be finite nor to be infinite."""
    names = tuple(design.names[j] for j in np.flatnonzero(free))
    note = Note(
        "undecided",
        names[:10],
        "it could not be decided whether the estimate is finite: there is neither a proof that it "
        "is, nor a direction in which the likelihood keeps rising (separation). The numbers do not "
        "have the digits for either, or there are too many rows and unpenalised covariates to look "
        "for one. Leave out covariates, those first that nearly repeat others{remedy}.",
        {"remedy": Value("name", ", or add a penalty, which always gives a finite estimate")},
    )
    status = "undecided" if solution.status == "converged" else solution.status
    return replace(solution, status=status, notes=(*solution.notes, note))


def _is_certain(solution: Solution, loss: Loss) -> bool:
    """Whether every event is likelier than not, so that its x'beta is above that of each rival."""
    weight = loss.risk.event_weight
    least = float(weight[weight > 0].min(initial=np.inf))
    return bool(-solution.log_likelihood < np.log(2) * least)


def _at_infinity(
    solution: Solution, limit: Solution, direction: Direction, design: Design
) -> Solution:
    """The solution along a direction in which the likelihood never stops rising, from its limit."""
    sign = np.sign(direction.value).astype(np.int8)
    sign = np.where(sign == 0, limit.infinite, sign).astype(np.int8)
    infinite = sign != 0
    coef = np.where(infinite, np.copysign(np.inf, sign), limit.coef)
    names = tuple(design.names[j] for j in np.flatnonzero(infinite))
    listed = ", ".join(f"{n!r}" for n in names[:5]) + (", ..." if len(names) > 5 else "")
    is_one = len(names) == 1
    rising = "coefficient of {names} goes" if is_one else "coefficients of {names} go"
    found = "the estimate is" if is_one else "the estimates are"
    note = Note(
        "infinite",
        names,
        f"the likelihood keeps rising as the {rising} to infinity (monotone likelihood, "
        f"separation): {found} infinite; the other coefficients and the log likelihood are their "
        "limits. {remedy}.",
        {
            "names": Value("name", listed),
            "remedy": Value("name", "A penalty or a profile-likelihood interval helps"),
        },
    )
    known = np.flatnonzero(infinite | solution.aliased)
    return replace(
        limit,
        coef=coef,
        status=limit.status if limit.status in UNCERTIFIED else "infinite_estimate",
        infinite=sign,
        directions=(direction, *limit.directions),
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
                f"in the limit {{names}} {'carries' if len(others) == 1 else 'carry'} no "
                "information: coefficient 0, which is arbitrary, and predictions for rows "
                "that differ in it are, too.",
                {"names": Value("name", aliasing.listed(others))},
            )
        elif note.code != "infinite" and (others or not note.columns):
            yield note
