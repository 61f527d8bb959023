"""Settings of a cross-validation, and the choice of a penalty with them.

`CoxCV`, `FineGrayCV`, `cross_validate` and the propensity score share them.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from time import monotonic
from typing import Any, NamedTuple, Self, get_args

import numpy as np

from riskset._errors import InputError
from riskset._messages import Note, Value
from riskset._progress import ProgressBar, time_left
from riskset._types import Index, is_number
from riskset.data.checks import Places
from riskset.data.labels import as_codes
from riskset.engine import check_engine, workers
from riskset.estimators._fixed import FixedCoefficients
from riskset.estimators._input import FittedColumns, ModelInput
from riskset.estimators.finegray import column_labels
from riskset.infer.crossval.checkpoint import Checkpoint, fingerprint
from riskset.infer.crossval.evaluator import PenaltyEvaluator
from riskset.infer.crossval.folds import Folds, check_comparable, draw_folds, given_folds
from riskset.infer.crossval.result import CrossValidation
from riskset.infer.crossval.scores import CensoringFrom, ScoreKind, Scorer
from riskset.infer.crossval.search_plan import SearchPlan, explore
from riskset.model.penalty import Penalty
from riskset.solve.optimality import Problem
from riskset.solve.result import Solution

__all__ = ["CVSettings", "PenaltyChoice", "choose_penalty"]

USUAL_SEARCH = 8
"""Penalties that a search usually needs; it says how long one may still take."""


@dataclass(frozen=True)
class CVSettings:
    """How to divide the rows, and how to fit and score replicates; see `CoxCV`."""

    folds: object = 10
    repeats: int = 10
    score: ScoreKind = "held_out"
    groups: object = None
    stratify: bool = False
    censoring: CensoringFrom = "training"
    checkpoint: str | os.PathLike[str] | None = None
    seed: int = 1
    tol_replicates: float = 1e-5
    engine: str | None = None

    @classmethod
    def take_from(cls, parameters: Mapping[str, Any]) -> Self:
        """Those among the parameters of an estimator."""
        return cls(**{field.name: parameters[field.name] for field in fields(cls)})

    def check(self, *, has_censoring: bool = False) -> None:
        """Refuse invalid values, for a model with or without a distribution of censoring."""
        check_engine(self.engine)
        for name, kind in (("score", ScoreKind), ("censoring", CensoringFrom)):
            if getattr(self, name) not in get_args(kind):
                raise InputError.wrong_option(name, getattr(self, name), get_args(kind))
        if self.censoring == "full" and not has_censoring:
            raise InputError(
                "`censoring` is 'full', but a Cox model estimates no distribution of censoring.",
                hint="leave it out; it is for Fine and Gray's model.",
            )
        if not isinstance(self.stratify, (bool, np.bool_)):
            raise InputError.wrong_option("stratify", self.stratify, ("True", "False"))
        if not (is_number(self.tol_replicates) and 0 < self.tol_replicates < 1):
            raise InputError(
                f"`tol_replicates` must be between 0 and 1, but it is {self.tol_replicates!r}.",
                hint="it bounds the relative KKT residual of each replicate; the default is 1e-5.",
            )

    @property
    def draws(self) -> bool:
        """Whether folds are drawn, instead of given by their ids."""
        return self.folds is None or isinstance(self.folds, (int, float, np.number, str))

    def divide(self, data: ModelInput) -> Folds:
        """The folds of the data."""
        groups = self._groups(data)
        if self.draws:
            return draw_folds(
                data.outcome,
                self.folds,  # type: ignore[arg-type]
                self.repeats,
                self.seed,
                groups=groups,
                stratify=self.stratify,
            )
        if groups is not None or self.stratify:
            other = "groups" if groups is not None else "stratify"
            raise InputError(
                f"`{other}` was given together with fold ids.",
                hint="it is for folds that are drawn; leave one of them out.",
            )
        return given_folds(self.folds, data.outcome)

    def _groups(self, data: ModelInput) -> Index | None:
        if self.groups is None:
            return None
        outcome = data.outcome
        if not isinstance(self.groups, str):
            return as_codes(self.groups, "groups", outcome.n_rows, Places())[0]
        roles = {
            "strata": outcome.stratum if outcome.n_strata > 1 else None,
            "cluster": outcome.cluster,
        }
        codes = roles.get(self.groups)
        if codes is not None:
            return codes
        if self.groups in roles and self.groups not in data.covariates.names:
            raise InputError(
                f"`groups` is {self.groups!r}, but the rows have no "
                f"{'strata, or a single one' if self.groups == 'strata' else 'clusters'}.",
                hint=f"give {self.groups!r} where the data are given, or labels or the name of a "
                "column as `groups`.",
            )
        labels = column_labels(self.groups, data, "groups")
        return as_codes(labels, "groups", outcome.n_rows, Places())[0]

    @contextmanager
    def scoring(
        self,
        problem: Problem,
        data: ModelInput,
        *,
        max_iter: int,
        progress: bool | None,
        n_penalties: int | None,
    ) -> Iterator[PenaltyEvaluator]:
        """What scores penalties, with a progress bar while it does."""
        folds = self.divide(data)
        if self.score == "held_out" and not problem.loss.has_intercept:
            check_comparable(folds, data.outcome)
        scorer = Scorer(
            problem.design,
            problem.loss,
            folds,
            self.score,
            self.censoring,
        )
        belongs_to = None
        if self.checkpoint is not None:
            belongs_to = fingerprint(problem, scorer, self.tol_replicates, max_iter)
        started, m = monotonic(), len(folds)
        with (
            Checkpoint(self.checkpoint, belongs_to) as checkpoint,
            workers(self.engine, problem.loss.runtime.n_threads) as processes,
            ProgressBar("Cross-validation", progress) as bar,
        ):

            def report(penalties: int, replicates: int) -> None:
                expected = n_penalties or max(USUAL_SEARCH, penalties + 2)
                share = min(1.0, (penalties + replicates / m) / expected)
                words = f"penalty {penalties + 1}, replicate {replicates} of {m}"
                bar.update(share, f"{words}, about {time_left(started, share)} left")

            yield PenaltyEvaluator(
                problem, scorer, self.tol_replicates, max_iter, checkpoint, report, processes
            )


class PenaltyChoice(NamedTuple):
    """A penalty that a cross-validation chose.

    `start` is a solution on all rows, to start a fit from. `notes` are about the covariates, the
    scores and the search.
    """

    cross_validation: CrossValidation
    penalty: Penalty
    start: Solution | None
    notes: list[Note]


def choose_penalty(
    problem: Problem,
    plan: SearchPlan,
    settings: CVSettings,
    data: ModelInput | None = None,
    *,
    max_iter: int,
    progress: bool | None,
    library: str | None = None,
) -> PenaltyChoice:
    """Choose a penalty by cross-validation, with checked settings.

    The problem is that of all rows. Columns that divide the rows are looked up by name in `data`,
    if the settings name any; `library` is for the data frames of the cross-validation.
    """
    design = problem.design
    if data is None:
        columns, nothing = FittedColumns(design.names), FixedCoefficients.of({}, design)
        data = ModelInput(design, problem.loss.outcome, columns, (), {}, design, nothing)
    with settings.scoring(
        problem, data, max_iter=max_iter, progress=progress, n_penalties=_expected(plan)
    ) as engine:
        scored, best, chosen = explore(engine, plan)
    penalty = scored[chosen].penalty
    assert penalty is not None
    found = CrossValidation.gather(
        scored, design.names, engine.scorer.folds, settings.score, best, chosen, library
    )
    notes = [*engine.notes, *found.notes(), *_note_on_start(plan, found)]
    return PenaltyChoice(found, penalty, engine.start_for(penalty), notes)


def _note_on_start(plan: SearchPlan, result: CrossValidation) -> list[Note]:
    """A start outside the range of a search was not used, or it would have been evaluated."""
    if plan.start is None or plan.search != "auto" or plan.penalties is not None:
        return []
    tried = result.strengths
    if np.isclose(tried, plan.start, rtol=1e-9).any():
        return []
    return [
        Note(
            "start_of_search",
            (),
            "the search did not start at the strength {start:.4g}, but at the usual one: "
            f"{'stronger' if plan.start > tried.max() else 'weaker'} penalties than those of its "
            "range are not searched (tried: {least:.4g} to {most:.4g}).",
            {
                "start": Value("setting", plan.start),
                "least": Value("setting", tried.min()),
                "most": Value("setting", tried.max()),
            },
        )
    ]


def _expected(plan: SearchPlan) -> int | None:
    if plan.penalties is not None:
        return len(plan.penalties)
    if plan.search == "grid":
        return plan.n_penalties * (5 if plan.l1_ratio == "auto" else len(plan.ratios))
    return None
