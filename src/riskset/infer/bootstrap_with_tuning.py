"""The bootstrap of a fit whose penalty was chosen: the choice is repeated in every resample."""

from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

import numpy as np

from riskset._errors import InputError
from riskset._types import Index
from riskset.data.outcome import Outcome
from riskset.engine import Workers
from riskset.infer.bootstrap import (
    REPLICATE_TOL,
    ReplicateEstimate,
    ResampledUnits,
    estimate_of,
    weights_of_resamples,
)
from riskset.model.penalty import Penalty
from riskset.solve.fit import fit_by_newton
from riskset.solve.optimality import Problem
from riskset.solve.result import Solution

__all__ = ["PenaltyTuner", "TunedPenalty", "check_divisible", "retuned_estimates"]


class TunedPenalty(NamedTuple):
    """A penalty that was chosen, and a solution to start from."""

    penalty: Penalty
    start: Solution | None


class PenaltyTuner(Protocol):
    """Chooses the penalty anew for other case weights, as a fit did.

    Both raise an `InputError` if that cannot be done with these weights.
    """

    def __call__(self, problem: Problem) -> TunedPenalty:
        """The penalty of a problem."""

    def divide(self, outcome: Outcome) -> object:
        """Divide the rows into folds, without a fit."""


def retuned_estimates(
    problem: Problem,
    choose: Callable[[Problem], TunedPenalty],
    resampling: ResampledUnits,
    columns: Index,
    *,
    replicates: int,
    seed: int,
    max_iter: int = 200,
    workers: Workers | None = None,
) -> Iterator[ReplicateEstimate]:
    """As `resample_estimates`, with a penalty that is chosen for each resample.

    `choose` takes the problem of a resample, in which a row that was drawn twice is one row of
    twice the weight, so that it is in one fold. If it cannot choose, the resample has no estimate.
    """
    loss, weights = weights_of_resamples(problem.loss, resampling, seed)
    design = problem.design

    def one(number: int) -> ReplicateEstimate:
        resample = Problem.prepare(design, loss.replicate(*weights(number)))
        try:
            penalty, start = choose(resample)
        except InputError as error:
            lost = np.full(columns.size, np.nan)
            return ReplicateEstimate(lost, "no_penalty", reason=error.message)
        l1, l2 = penalty.arrays(design.names)
        solution = fit_by_newton(
            design, resample.loss, l1, l2,
            tol=REPLICATE_TOL, max_iter=max_iter, start=start, problem=resample,
        )  # fmt: skip
        lost = solution.aliased & (l1 == 0) & (l2 == 0)
        return estimate_of(solution, lost, columns)._replace(penalty=penalty)

    numbers = range(replicates)
    yield from map(one, numbers) if workers is None else workers.map(one, numbers)


def check_divisible(
    outcome: Outcome,
    divide: Callable[[Outcome], object],
    resampling: ResampledUnits,
    *,
    replicates: int,
    seed: int,
) -> None:
    """Raise InputError, with the reason of the first, if no resample can be divided into folds.

    The check ends with the first resample that can.
    """
    reason = ""
    for number in range(replicates):
        weight = outcome.weight * resampling.counts(seed, number)
        try:
            divide(outcome.reweighted(weight))
        except InputError as error:
            # The remedies for a fit are none for a resample of it, so the hint is left out.
            reason = reason or error.message
        else:
            return
    raise InputError(
        f"none of the {replicates:,} resamples can be divided into folds as the rows of the fit "
        f"were: in the first, {reason}",
        hint="rows that are drawn several times are one row of a larger weight, so that a resample "
        "has fewer; take fewer folds, or keep the penalty by leaving `retune` out.",
    )
