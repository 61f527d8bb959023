"""Which penalties to score: those given, a grid, or wherever the best may be."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, cast

import numpy as np

from riskset._errors import InputError
from riskset._types import is_count, is_number
from riskset.infer.crossval.evaluator import WHOLE_TOL, PenaltyEvaluator, ScoredPenalty, are_equal
from riskset.infer.crossval.line_search import Peak, SearchGrid, maximise, strongest_within
from riskset.model.penalty import ElasticNet, Penalty, as_kind
from riskset.solve.path import strength_max

__all__ = ["NEIGHBOUR", "SearchPlan", "ChoiceRule", "SearchMethod", "explore"]

SearchMethod = Literal["auto", "grid"]
ChoiceRule = Literal["min", "1se"]

NEIGHBOUR = 1.1
"""A search ends when the best strength has neighbours within this factor that score no better."""
SEARCH_STEP = 0.5 * math.log(10.0)
N_PENALTIES = 20
"""Default number of strengths of a grid."""
START_SHARE = 0.1
"""Where a search starts by default: a share of the smallest strength with an empty model."""
MIN_RATIO = {"grid": 1e-4, "auto": 1e-5}
"""Defaults. A search goes to the end only if the score keeps rising."""
MIN_REPEATS_TO_PREVIEW = 4
"""Repetitions from which on the first one alone looks where the best penalty may be."""
RATIO_STEP, RATIO_TOL = 0.25, 0.1
MIN_L1_SHARE = 1e-3
"""Share of L1 by which the strongest penalty of a nearly pure ridge is found, as in glmnet."""
TOP_MARGIN = 1e-4
"""By so much the strongest penalty exceeds the smallest that leaves nothing, so that a fit to 1e-6
sees that every coefficient is 0 there."""


@dataclass(frozen=True)
class SearchPlan:
    """Which penalties are to be compared: `penalties`, or strengths of `kind`.

    `kind` says which columns are unpenalised, the factors, and the share of L1 unless `l1_ratio`
    does. `min_ratio` is the weakest strength over the one that leaves no penalised covariate
    (default: 1e-4, of a search 1e-5, or 0.01 with more columns than rows). A search starts at the
    strength `start` if that lies within its range.
    """

    kind: Penalty
    penalties: tuple[Penalty, ...] | None = None
    search: SearchMethod = "auto"
    rule: ChoiceRule = "min"
    n_penalties: int = N_PENALTIES
    min_ratio: float | None = None
    start: float | None = None
    l1_ratio: tuple[float, ...] | Literal["auto"] | None = None

    @classmethod
    def build(
        cls,
        kind: object,
        *,
        penalties: object = None,
        search: str = "auto",
        rule: str = "min",
        n_penalties: object = None,
        min_ratio: object = None,
        start: object = None,
        l1_ratio: object = None,
    ) -> "SearchPlan":
        """Check what a user passed."""
        kind = _checked_kind(kind)
        if search not in ("auto", "grid"):
            raise InputError.wrong_option("search", search, ("auto", "grid"))
        if rule not in ("min", "1se"):
            raise InputError.wrong_option("rule", rule, ("min", "1se"))
        if n_penalties is not None and not (is_count(n_penalties) and n_penalties >= 2):
            raise InputError(
                f"`n_penalties` must be a whole number of at least 2, but it is {n_penalties!r}.",
                hint="it counts the strengths of a grid; 20 is usual.",
            )
        if min_ratio is not None and not (is_number(min_ratio) and 0 < min_ratio < 1):
            raise InputError(
                f"`min_ratio` must be between 0 and 1, but it is {min_ratio!r}.",
                hint="it is the weakest strength divided by the strongest.",
            )
        if min_ratio is not None and search == "auto" and float(min_ratio) * NEIGHBOUR > 1:
            raise InputError(
                f"`min_ratio` is {min_ratio!r}, so there is nothing to search: strengths that are "
                f"compared differ by a factor of {NEIGHBOUR} at least.",
                hint="use a smaller one, such as 0.01.",
            )
        if start is not None and not (is_number(start) and 0 < start < math.inf):
            raise InputError(
                f"`start` must be a positive number, but it is {start!r}.",
                hint="it is the strength (l1 + l2) at which a search starts.",
            )
        given = None if penalties is None else _as_penalties(penalties, kind)
        _check_used(
            search,
            given is not None,
            {"n_penalties": n_penalties, "min_ratio": min_ratio, "start": start},
            l1_ratio,
        )
        return cls(
            kind,
            given,
            cast(SearchMethod, search),
            cast(ChoiceRule, rule),
            N_PENALTIES if n_penalties is None else int(n_penalties),
            None if min_ratio is None else float(min_ratio),
            None if start is None else float(start),
            _as_ratios(l1_ratio),
        )

    def at(self, strength: float, ratio: float) -> Penalty:
        """The penalty of one strength and one share of L1."""
        if self.l1_ratio is None:
            return self.kind.with_strength(strength)
        return ElasticNet(
            l1=strength * ratio,
            l2=strength * (1 - ratio),
            unpenalized=self.kind.unpenalized,
            factor=self.kind.factor,
            rescale=self.kind.rescale,
        )

    @property
    def ratios(self) -> tuple[float, ...]:
        """Shares of L1 to compare, if they are not searched for."""
        if self.l1_ratio is None or self.l1_ratio == "auto":
            return (self.kind.l1_ratio,)
        return self.l1_ratio

    @property
    def least_ratio(self) -> float:
        """The smallest share of L1 that is compared."""
        return 0.0 if self.l1_ratio == "auto" else min(self.ratios)


def explore(engine: PenaltyEvaluator, plan: SearchPlan) -> tuple[list[ScoredPenalty], int, int]:
    """Score penalties as planned; return them, the best and the chosen one.

    They are sorted by share of L1, then from strong to weak. A search of several repetitions begins
    with the first alone; the mean of what it alone has seen is that of the best penalty but for the
    difference in the first repetition. The positions are those of the best mean score over all
    repetitions, and of the choice of the rule.
    """
    if plan.penalties is not None:
        for penalty in sorted(plan.penalties, key=lambda p: -p.strength):
            engine.score(penalty)
    else:
        _Explorer(engine, plan).run()
    _complete(engine)
    if are_equal(np.array([one.mean for one in engine.complete])):
        engine.score(min(engine.done.values(), key=_order).penalty)
    complete = sorted(engine.complete, key=_order)
    means = np.array([one.mean for one in complete])
    # Equal up to rounding: then the strongest penalty, which keeps the fewest covariates.
    best = 0 if are_equal(means) else int(means.argmax())
    chosen = best if plan.rule == "min" else _within_one_error(complete, best)
    scored = sorted(engine.done.values(), key=_order)
    return (
        [one if one in complete else _aligned(one, complete[best], engine) for one in scored],
        scored.index(complete[best]),
        scored.index(complete[chosen]),
    )


def _complete(engine: PenaltyEvaluator) -> None:
    """Let all replicates score whatever looks better than the best so far."""
    while True:
        best = max(engine.complete, key=lambda one: one.mean)
        least = best.mean_of(engine.n_first) if math.isfinite(best.mean) else -math.inf
        others = [one for one in engine.done.values() if one not in engine.complete]
        better = [one for one in others if one.mean > least]
        if not better:
            return
        engine.score(max(better, key=lambda one: one.mean).penalty)


def _aligned(one: ScoredPenalty, best: ScoredPenalty, engine: PenaltyEvaluator) -> ScoredPenalty:
    """With mean and error of all replicates, estimated from the first ones.

    The mean differs from the best one as much, the error by the same factor, as in them.
    """
    first = engine.n_first
    mean = best.mean + (one.mean - best.mean_of(first))
    se = best.se * (one.se / best.se_of(first)) if best.se_of(first) > 0 else best.se
    return replace(one, mean=mean, se=se) if math.isfinite(mean) else one


def _order(scored: ScoredPenalty) -> tuple[float, float]:
    penalty = scored.penalty
    return (1.0, 0.0) if penalty is None else (-round(penalty.l1_ratio, 9), -penalty.strength)


def _within_one_error(scored: Sequence[ScoredPenalty], best: int) -> int:
    """Strongest penalty, of the share of L1 of the best, that is within one standard error."""
    least = scored[best].mean - scored[best].se
    ratio = _order(scored[best])[0]
    return next(k for k, one in enumerate(scored) if _order(one)[0] == ratio and one.mean >= least)


class _Explorer:
    """A grid or a search, over strengths and, if asked for, shares of L1."""

    def __init__(self, engine: PenaltyEvaluator, plan: SearchPlan) -> None:
        self.engine, self.plan = engine, plan
        problem = engine.problem
        design = problem.design
        found = strength_max(
            design,
            problem.loss,
            plan.kind.factors(design.names),
            tol=WHOLE_TOL,
            max_iter=engine.max_iter,
            problem=problem,
        )
        self.l1_max = found.strength
        engine.notes = found.notes()
        if self.l1_max == 0:
            raise InputError(
                "no penalised covariate carries information, so there is no penalty to choose.",
                hint="check `unpenalized` and the covariates.",
            )
        engine.begin_at(found.solution)
        default = MIN_RATIO[plan.search] if design.n_rows >= design.n_features else 1e-2
        self.min_ratio = default if plan.min_ratio is None else plan.min_ratio
        self.usual = math.log(START_SHARE) + self._top(1.0)
        self.start, origin = self.usual, 0.0
        if plan.start is not None:
            self.start = math.log(plan.start)
            weakest, strongest = math.log(self.l1_max * self.min_ratio), self._top(plan.least_ratio)
            origin = self.start if weakest <= self.start <= strongest else 0.0
        # Of absolute strengths: shares of `l1_max` would have its last digits.
        self.grid = SearchGrid(math.log(NEIGHBOUR), origin)

    def run(self) -> None:
        """Score whatever is needed to choose."""
        if self.plan.search == "grid":
            for ratio in self._ratios_of_grid():
                self._grid(ratio)
        elif self.plan.l1_ratio == "auto":
            maximise(self._search, 0.5, 0.0, 1.0, grid=SearchGrid(RATIO_TOL), step=RATIO_STEP)
        else:
            for ratio in self.plan.ratios:
                self._search(ratio)
        if self.plan.search == "auto" and self.plan.rule == "1se":
            self._towards_one_error()

    def _ratios_of_grid(self) -> tuple[float, ...]:
        return (1.0, 0.75, 0.5, 0.25, 0.0) if self.plan.l1_ratio == "auto" else self.plan.ratios

    def _top(self, ratio: float) -> float:
        """Logarithm of a strength that leaves no penalised covariate, hardly the smallest."""
        return math.log(self.l1_max / max(ratio, MIN_L1_SHARE)) + TOP_MARGIN

    def _mean(self, log_strength: float, ratio: float) -> float:
        return self.engine.score(self.plan.at(math.exp(log_strength), ratio)).mean

    def _first_mean(self, log_strength: float, ratio: float) -> float:
        """Over the first repetition."""
        found = self.engine.score(self.plan.at(math.exp(log_strength), ratio), first=True)
        return found.mean_of(self.engine.n_first)

    def _grid(self, ratio: float) -> None:
        steps = self.plan.n_penalties - 1
        for k in range(steps + 1):
            self._mean(self._top(ratio) + math.log(self.min_ratio) * k / steps, ratio)

    def _search(self, ratio: float) -> float:
        """Best mean score of a share of L1."""
        lower = self.grid.above(math.log(self.l1_max * self.min_ratio))
        upper = self.grid.above(self._top(ratio))
        start = self.start if lower <= self.start <= upper else self.usual
        peak = self._peak(start, lower, upper, ratio)
        # Scores hardly change near either end, and a search that started there may stay for noise.
        if (peak.low == lower or peak.high == upper) and start != self.usual:
            other = self._peak(self.usual, lower, upper, ratio)
            peak = max(peak, other, key=lambda found: self._mean(found.best, ratio))
        self.start = peak.best  # the next share begins where this one ended
        return self._mean(peak.best, ratio)

    def _peak(self, start: float, lower: float, upper: float, ratio: float) -> Peak:
        """The best strength; the first repetition shows where all of them are worth their time."""
        search = partial(maximise, lower=lower, upper=upper, grid=self.grid, step=SEARCH_STEP)
        first = self.grid.tol
        seen = None
        if self.engine.scorer.folds.repeats[-1] + 1 >= MIN_REPEATS_TO_PREVIEW:
            seen = search(lambda x: self._first_mean(x, ratio), start)
        # At an edge one repetition says too little: there all of them have to look around.
        if seen is None or seen.best in (seen.low, seen.high):
            first = SEARCH_STEP
        else:
            start = seen.best
        return search(lambda x: self._mean(x, ratio), start, first=first)

    def _towards_one_error(self) -> None:
        best = max(self.engine.complete, key=lambda s: s.mean)
        assert best.penalty is not None
        ratio = best.penalty.l1_ratio
        strongest_within(
            lambda x: self._mean(x, ratio),
            math.log(best.strength),
            best.mean - best.se,
            self.grid.above(self._top(ratio)),
            grid=self.grid,
            step=SEARCH_STEP,
        )


def _checked_kind(penalty: object) -> Penalty:
    """The kind of penalty whose strength is to be chosen; an error if nothing is to choose."""
    kind = as_kind(penalty)
    if kind is None:
        raise InputError(
            "`penalty` is None, that is no penalty, so there is no strength to choose.",
            hint="choose a kind, such as penalty='l1' or riskset.L2(), or fit without a penalty by "
            "riskset.Cox or riskset.FineGray.",
        )
    if not isinstance(kind, Penalty):
        raise InputError(
            f"`penalty` must be 'l1', 'l2', L1, L2 or ElasticNet, but it is {penalty!r}.",
            hint="for example riskset.L1(unpenalized=['treatment']).",
        )
    if kind.has_strength:
        raise InputError(
            f"`penalty` is {kind!r}, but its strength would not be used, because "
            "cross-validation chooses the strength.",
            hint=f"pass {kind.without_strength()!r}; to compare strengths of your own, add "
            f"`penalties=[{kind.strength:g}, ...]`; to use this one, fit riskset.Cox or "
            "riskset.FineGray.",
        )
    return kind


def _check_used(
    search: str, has_penalties: bool, numbers: dict[str, object], l1_ratio: object
) -> None:
    """Refuse what would not be looked at."""
    if has_penalties:
        beside = {"search": "grid" if search == "grid" else None, "l1_ratio": l1_ratio, **numbers}
        for name, value in beside.items():
            if value is not None:
                raise InputError(
                    f"`{name}` was given together with `penalties`, which are compared as they "
                    "are.",
                    hint="leave one of them out.",
                )
    name, other = ("start", "auto") if search == "grid" else ("n_penalties", "grid")
    if numbers[name] is not None:
        raise InputError(
            f"`{name}` is {numbers[name]!r}, but it is used by `search={other!r}` alone, and "
            f"`search` is {search!r}.",
            hint="leave one of them out.",
        )


def _as_penalties(given: object, kind: Penalty) -> tuple[Penalty, ...]:
    if isinstance(given, (str, Penalty)) or not isinstance(given, Iterable):
        raise InputError(
            f"`penalties` must be a sequence of penalties or strengths, not {given!r}.",
            hint="one penalty is scored by riskset.cross_validate.",
        )
    chosen = tuple(p if isinstance(p, Penalty) else kind.with_strength(p) for p in given)
    if not chosen:
        raise InputError("`penalties` is empty.", hint="leave it out for a search.")
    return chosen


def _as_ratios(given: object) -> tuple[float, ...] | Literal["auto"] | None:
    if given is None:
        return None
    if isinstance(given, str) and given == "auto":
        return "auto"
    several = not isinstance(given, str) and isinstance(given, Iterable)
    ratios = tuple(cast(Iterable[object], given)) if several else (given,)
    if not ratios or not all(is_number(r) and 0 <= r <= 1 for r in ratios):
        raise InputError(
            f"`l1_ratio` must be 'auto' or numbers between 0 and 1, but it is {given!r}.",
            hint="1 is the lasso, 0 is ridge; several are compared.",
        )
    return tuple(float(cast(float, r)) for r in ratios)
