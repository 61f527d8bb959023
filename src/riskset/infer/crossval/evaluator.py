"""Fit and score every replicate of a penalty, and gather what came of it."""

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from riskset._messages import Note
from riskset._types import Features, Index
from riskset.engine import Workers
from riskset.infer.crossval.checkpoint import Checkpoint, digest
from riskset.infer.crossval.scores import ReplicateScore, Scorer
from riskset.model.penalty import Penalty
from riskset.solve.fit import fit_by_newton
from riskset.solve.optimality import Problem
from riskset.solve.prox_newton import CompleteMinimisation
from riskset.solve.replicates import fit_replicates
from riskset.solve.result import Solution

__all__ = ["WHOLE_TOL", "PenaltyEvaluator", "ReplicateReport", "ScoredPenalty", "are_equal"]

WHOLE_TOL = 1e-6
"""Relative KKT residual of the fits on all rows, from which replicates start."""

ReplicateReport = Callable[[int, int], None]
"""Called with the number of penalties that are done and of replicates of the next one."""


@dataclass(frozen=True, eq=False)
class ScoredPenalty:
    """A penalty and its scores.

    `coef` (p,) is on all rows, to a relative KKT residual of 1e-6. The replicates are all, or those
    of the first repetition; `mean` and `se` are of their scores.
    """

    penalty: Penalty | None
    coef: Features
    replicates: tuple[ReplicateScore, ...]
    mean: float
    se: float

    def mean_of(self, count: int) -> float:
        """Mean score of the first replicates; minus infinity if one is not finite."""
        scores = np.array([one.score for one in self.replicates[:count]])
        return float(scores.mean()) if np.isfinite(scores).all() else -np.inf

    def se_of(self, count: int) -> float:
        """Standard error of the mean of the first replicates, which are one repetition."""
        scores = np.array([one.score for one in self.replicates[:count]])
        return mean_and_error(scores, np.zeros(count, dtype=np.int64))[1]

    @property
    def n_nonzero(self) -> int:
        """Number of coefficients other than 0 in the fit on all rows."""
        return int(np.count_nonzero(self.coef))

    @property
    def strength(self) -> float:
        """l1 + l2."""
        return 0.0 if self.penalty is None else self.penalty.strength


@dataclass
class PenaltyEvaluator:
    """Scores penalties one after the other, each once, in threads or by `workers`.

    `tol` bounds the relative KKT residual of every replicate. `done` holds the scored penalties by
    their strengths for each column, and `notes` what a search learnt about the covariates.
    """

    problem: Problem
    scorer: Scorer
    tol: float
    max_iter: int
    checkpoint: Checkpoint = field(default_factory=lambda: Checkpoint(None))
    report: ReplicateReport = lambda _penalties, _replicates: None
    workers: Workers | None = None
    done: dict[str, ScoredPenalty] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)
    _last: Solution | None = None
    _begun: dict[str, Solution] = field(default_factory=dict)

    @property
    def n_first(self) -> int:
        """Number of replicates of the first repetition, with which all others begin."""
        return int(np.count_nonzero(self.scorer.folds.repeats == 0))

    @property
    def complete(self) -> list[ScoredPenalty]:
        """Penalties that all replicates have scored."""
        m = len(self.scorer.folds)
        return [one for one in self.done.values() if len(one.replicates) == m]

    def score(self, penalty: Penalty | None, *, first: bool = False) -> ScoredPenalty:
        """Mean score of a penalty over all folds and repetitions, or at least the first."""
        p = self.problem.design.n_features
        names = self.problem.design.names
        l1, l2 = penalty.arrays(names) if penalty is not None else (np.zeros(p), np.zeros(p))
        key = digest(l1, l2)
        count = self.n_first if first else len(self.scorer.folds)
        known = self.done.get(key)
        if known is None or len(known.replicates) < count:
            # Where the others begin, too, but for its curvature, which may be large.
            whole = self._begun.pop(key, None) or self._fit_whole(penalty, l1, l2)
            scores = tuple(self._replicates(whole, l1, l2, count))
            repeats = self.scorer.folds.repeats[:count]
            mean, se = mean_and_error(np.array([s.score for s in scores]), repeats)
            self.done[key] = ScoredPenalty(penalty, whole.coef, scores, mean, se)
            if count < len(self.scorer.folds):
                self._begun[key] = replace(whole, curvature=None)
        return self.done[key]

    def begin_at(self, solution: Solution) -> None:
        """Start the first fit from a solution on all rows."""
        self._last = self._last or solution

    def start_for(self, penalty: Penalty | None) -> Solution | None:
        """A solution on all rows to start from: that of the nearest strength so far."""
        if self._last is None or not self.done:
            return self._last
        strength = 0.0 if penalty is None else penalty.strength
        nearest = min(
            self.done.values(),
            key=lambda s: abs(np.log(max(s.strength, 1e-300) / max(strength, 1e-300))),
        )
        return self._last.moved_to(nearest.coef)

    def _fit_whole(self, penalty: Penalty | None, l1: Features, l2: Features) -> Solution:
        self._last = fit_by_newton(
            self.problem.design,
            self.problem.loss,
            l1,
            l2,
            tol=WHOLE_TOL,
            max_iter=self.max_iter,
            start=self.start_for(penalty),
            problem=self.problem,
            separate=False,
            method=CompleteMinimisation,
        )
        return self._last

    def _replicates(
        self, whole: Solution, l1: Features, l2: Features, count: int
    ) -> Iterator[ReplicateScore]:
        """Scores of the first folds, in order, those of the checkpoint among them."""
        key = digest(l1, l2, whole.coef)
        pairs = list(self.scorer.folds)[:count]
        kept = [self.checkpoint.get(key, k) for k in range(len(pairs))]
        missing = [k for k, record in enumerate(kept) if record is None]
        fresh = fit_replicates(
            self.problem,
            whole,
            l1,
            l2,
            # Not of `self`: these go to the workers, where it cannot.
            [functools.partial(self.scorer.part, *pairs[k]) for k in missing],
            tol=self.tol,
            max_iter=self.max_iter,
            separation=self._may_be_infinite(l1, l2),
            measure=self.scorer.measure,
            workers=self.workers,
        )
        for k, record in enumerate(kept):
            score = record
            if score is None:
                score = ReplicateScore.of(next(fresh))
                self.checkpoint.add(key, k, score)
            yield score
            self.report(len(self.done), k + 1)

    def _may_be_infinite(self, l1: Features, l2: Features) -> bool:
        """Whether replicates may have infinite estimates whose limit can be scored."""
        return not self.problem.loss.has_intercept and bool(((l1 == 0) & (l2 == 0)).any())


def mean_and_error(scores: Features, repeats: Index) -> tuple[float, float]:
    r"""Mean of all scores, and its standard error from the spread among folds.

    .. math:: se = \sqrt{\frac{1}{R} \sum_r \frac{s_r^2}{K_r}}

    with :math:`s_r` the standard deviation of the :math:`K_r` folds of repetition r. Repetitions
    divide the same rows anew, so they do not count as further evidence. A score that is not finite
    makes the mean minus infinity.
    """
    if not np.isfinite(scores).all():
        return -np.inf, np.inf
    parts = [scores[repeats == r] for r in np.unique(repeats)]
    return float(scores.mean()), float(np.sqrt(np.mean([x.var(ddof=1) / x.size for x in parts])))


def are_equal(values: Features) -> bool:
    """Whether they are the same, but for the tolerance of fits and for rounding."""
    return bool(np.allclose(values, values[0], rtol=1e-9, atol=1e-9))
