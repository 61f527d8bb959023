"""Fits of one design under many case weights: the folds of a cross-validation, resamples.

A replicate is a likelihood with other case weights; the design is shared, and a replicate in flight
costs a few numbers a row. Each starts from the solution on the whole data at the same penalty, so
its answer depends neither on the replicates beside it nor on those before it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from riskset._runtime import Runtime
from riskset._types import Features, Rows
from riskset.model.loss import Loss
from riskset.solve import newton
from riskset.solve.optimality import Problem
from riskset.solve.result import Solution, Status

__all__ = ["Part", "Replicate", "fit_replicates"]


class Part(NamedTuple):
    """The rows of a replicate.

    Attributes
    ----------
    weight : (n,) float64 >= 0
        Case weights in the replicate.
    censoring : (n,) float64 or None
        Fine-Gray: case weights of the rows that estimate the censoring; None: those of all data.
    """

    weight: Rows
    censoring: Rows | None = None


@dataclass(frozen=True)
class Replicate:
    """The answer of one replicate.

    Attributes
    ----------
    coef : (p,) float64
        In the user's units; infinite only if infinite estimates were looked for.
    status : str
        As of a `Solution`.
    kkt : float
        Relative residual over all columns, on the replicate's own rows.
    n_iter : int
    log_likelihood : float
        Of the replicate's own rows.
    measured : object
        What `measure` said.
    """

    coef: Features
    status: Status
    kkt: float
    n_iter: int
    log_likelihood: float
    measured: Any = None


def fit_replicates(
    problem: Problem,
    whole: Solution,
    l1: Features,
    l2: Features,
    parts: Sequence[Callable[[], Part]],
    *,
    tol: float = 1e-5,
    max_iter: int = 200,
    separation: bool = False,
    measure: Callable[[int, Part, Rows], Any] | None = None,
) -> Iterator[Replicate]:
    """Fit every replicate, and yield the answers in order.

    Parameters
    ----------
    problem : Problem
        Of the whole data; its runtime says how many threads work.
    whole : Solution
        On the whole data, at the same penalty.
    l1, l2 : (p,) float64
        Penalties of each coefficient in the user's units, on the total log likelihood.
    parts : sequence of functions
        Each makes the rows of a replicate, when it is its turn.
    tol : float
        Bound on the relative KKT residual of each replicate, over all columns.
    separation : bool
        Whether to look for infinite estimates. If not, an unpenalised coefficient whose estimate
        is infinite stays at a finite value that satisfies the conditions to `tol`.
    measure : callable, optional
        Called with the number of the replicate, its rows and its linear predictor on *all* rows
        (n,), offset included, where `separation` is off.
    """
    runtime = problem.loss.runtime
    size = max(1, runtime.n_threads)

    def one(k: int) -> Replicate:
        return _fit_one(problem, whole, l1, l2, parts[k](), k, tol, max_iter, separation, measure)

    for first in range(0, len(parts), size):
        yield from runtime.map(one, range(first, min(first + size, len(parts))))


def _fit_one(
    problem: Problem,
    whole: Solution,
    l1: Features,
    l2: Features,
    part: Part,
    k: int,
    tol: float,
    max_iter: int,
    separation: bool,
    measure: Callable[[int, Part, Rows], Any] | None,
) -> Replicate:
    loss: Loss = problem.loss.replicate(part.weight, part.censoring, runtime=Runtime(1))
    solution = newton.fit(
        problem.design,
        loss,
        l1,
        l2,
        tol=tol,
        max_iter=max_iter,
        start=whole,
        separate=separation,
    )
    measured = measure(k, part, solution.eta) if measure else None
    return Replicate(
        solution.coef,
        solution.status,
        solution.kkt,
        solution.n_iter,
        solution.log_likelihood,
        measured,
    )
