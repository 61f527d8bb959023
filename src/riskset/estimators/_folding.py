"""How a cross-validation of an estimator divides the rows and scores what was left out."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic

import numpy as np

from riskset._errors import InputError
from riskset._progress import ProgressBar, time_left
from riskset._types import Index, is_number
from riskset.data.checks import Places
from riskset.data.labels import as_codes
from riskset.engine import check_engine, workers
from riskset.estimators._input import Data
from riskset.estimators.finegray import column_labels
from riskset.infer.crossval.checkpoint import Checkpoint, fingerprint
from riskset.infer.crossval.engine import Engine
from riskset.infer.crossval.folds import Folds, check_comparable, draw_folds, given_folds
from riskset.infer.crossval.scores import Scorer
from riskset.solve.optimality import Problem

__all__ = ["Folding"]

USUAL_SEARCH = 8
"""Penalties that a search usually needs; it says how long one may still take."""


@dataclass(frozen=True)
class Folding:
    """The parameters of `CoxCV` and `cross_validate` that concern replicates; see there."""

    folds: object
    repeats: int
    score: str
    groups: object
    stratify: bool
    censoring: str
    checkpoint: str | os.PathLike[str] | None
    seed: int
    tol_replicates: float
    engine: str | None = None

    def check(self, *, has_censoring: bool = False) -> None:
        """Refuse values that cannot be meant, before the data are looked at.

        Parameters
        ----------
        has_censoring : bool
            Whether the model has a distribution of censoring to estimate.
        """
        check_engine(self.engine)
        if self.score not in ("held_out", "difference"):
            raise InputError.wrong_option("score", self.score, ("held_out", "difference"))
        if self.censoring not in ("training", "full"):
            raise InputError.wrong_option("censoring", self.censoring, ("training", "full"))
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

    def divide(self, data: Data) -> Folds:
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
                f"`{other}` was given beside fold ids.",
                hint="it is for folds that are drawn; leave one of them out.",
            )
        return given_folds(self.folds, data.outcome)

    def _groups(self, data: Data) -> Index | None:
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
        if self.groups in roles and self.groups not in data.design.names:
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
        data: Data,
        *,
        max_iter: int,
        progress: bool | None,
        n_penalties: int | None,
    ) -> Iterator[Engine]:
        """What scores penalties, with a progress bar while it does."""
        folds = self.divide(data)
        if self.score == "held_out" and not problem.loss.has_intercept:
            check_comparable(folds, data.outcome)
        scorer = Scorer(
            problem.design,
            problem.loss,
            folds,
            self.score,  # type: ignore[arg-type]
            self.censoring,  # type: ignore[arg-type]
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

            yield Engine(
                problem, scorer, self.tol_replicates, max_iter, checkpoint, report, processes
            )
