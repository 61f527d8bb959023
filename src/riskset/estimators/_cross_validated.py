"""Choice of the penalty of an estimator by cross-validation."""

import math
import os
import time
from dataclasses import dataclass, replace
from typing import Any, Self, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from riskset._errors import InputError
from riskset._messages import Note
from riskset._types import Features
from riskset.data.design import Design
from riskset.data.outcome import Outcome
from riskset.estimators._base import HazardModel
from riskset.estimators._fitted import Fitted
from riskset.estimators._folding import Folding
from riskset.estimators._input import Data, frame_library
from riskset.estimators.finegray import FineGray
from riskset.estimators.fit_file import SavedFit
from riskset.infer.crossval.explore import Plan, Rule, Search, explore
from riskset.infer.crossval.folds import Folds
from riskset.infer.crossval.result import CrossValidation
from riskset.infer.crossval.scores import CensoringFrom, Score
from riskset.infer.retuning import Chosen
from riskset.model.penalty import L1, L2, Penalty
from riskset.solve.fit import fit_by_newton
from riskset.solve.optimality import Problem

__all__ = ["CrossValidated"]

OHDSI_VARIANCE = 0.01


class _ScoreName:
    """The parameter `score` beside the method `score`: the parameter is set, the method is got.

    The name of the criterion stands in the instance's ``__dict__``, where scikit-learn looks for
    parameters, and only `get_params` reads it there.
    """

    def __get__(self, model: Any, kind: type[HazardModel] | None = None) -> Any:
        return HazardModel.score if model is None else HazardModel.score.__get__(model)

    def __set__(self, model: Any, name: object) -> None:
        model.__dict__["score"] = name


class CrossValidated(HazardModel):
    """Mixin of `CoxCV` and `FineGrayCV` that chooses the penalty."""

    penalties: Any
    folds: Any
    repeats: int
    search: Search
    rule: Rule
    groups: object
    stratify: bool
    censoring: CensoringFrom
    n_penalties: int | None
    min_ratio: float | None
    start: float | None
    l1_ratio: Any
    checkpoint: str | os.PathLike[str] | None
    seed: int
    tol_replicates: float
    engine: str | None

    score = _ScoreName()

    cross_validation_: CrossValidation

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters, as scikit-learn requires."""
        parameters: dict[str, Any] = super().get_params(deep)
        return parameters | {"score": self._score_name}

    @property
    def _score_name(self) -> Score:
        return cast(Score, self.__dict__["score"])

    @classmethod
    def ohdsi(cls, penalty: Penalty | None = None, **parameters: Any) -> Self:
        """Create an estimator with the settings of OHDSI studies.

        OHDSI studies choose a penalty with Cyclops: 10 folds, 10 repetitions, an automatic search
        that starts at a prior variance of 0.01, and seed 1, ``createControl(cvType="auto", fold=10,
        cvRepetitions=10, startingVariance=0.01, seed=1)``.

        Parameters
        ----------
        penalty : Penalty, optional
            Default: L1 (a Laplace prior). The strength is not used.
        **parameters
            Other parameters of the class.

        Notes
        -----
        The held-out score of a Cox model is the score of Cyclops; for the same folds and variance,
        the values agree. The choice can differ from that of Cyclops (see also ``docs/cyclops.md``):

        * The folds come from a different random number generator.
        * Cyclops evaluates three or four variances that differ by a factor of ten, and returns the
          vertex of a parabola through them, which it never evaluates. Here the search continues
          until the neighbours of the best strength within a factor of 1.1 score no better.
        * Cyclops weights the points of the parabola by 1 / sd, and stops as soon as the parabola
          promises a gain of less than 1 % of the log likelihood, which is nearly always.
        * Cyclops leaves out folds whose best model has no covariate. Here they count.
        * Cyclops ignores the case weights when it refits after the search. Here they apply.
        * Cyclops scores the Fine-Gray model incorrectly: every competing event among the held-out
          rows counts twice, as if it were an event of the cause of interest. It estimates the
          censoring distribution once, from all rows, like ``censoring="full"``.

        Examples
        --------
        >>> import riskset as rs
        >>> round(rs.CoxCV.ohdsi(rs.L1(1.0, unpenalized=["treatment"])).start, 3)
        14.142
        """
        kind = penalty if penalty is not None else L1(1.0)
        start = 1 / OHDSI_VARIANCE if isinstance(kind, L2) else math.sqrt(2 / OHDSI_VARIANCE)
        preset = {"folds": 10, "repeats": 10, "search": "auto", "seed": 1}
        if parameters.get("penalties") is None and parameters.get("search") != "grid":
            preset["start"] = start
        return cls(penalty, **(preset | parameters))

    def _folding(self) -> Folding:
        return Folding(
            self.folds,
            self.repeats,
            self._score_name,
            self.groups,
            self.stratify,
            self.censoring,
            self.checkpoint,
            self.seed,
            self.tol_replicates,
            self.engine,
        )

    def _plan(self) -> Plan:
        return Plan.build(
            self.penalty if self.penalty is not None else L1(1.0),
            penalties=self.penalties,
            search=self.search,
            rule=self.rule,
            n_penalties=self.n_penalties,
            min_ratio=self.min_ratio,
            start=self.start,
            l1_ratio=self.l1_ratio,
        )

    def fit(
        self,
        X: object,
        y: object = None,
        sample_weight: object = None,
        strata: object = None,
        offset: object = None,
        cluster: object = None,
    ) -> Self:
        """Choose the penalty by cross-validation, and fit the model with it.

        Parameters
        ----------
        X, y, sample_weight, strata, offset, cluster
            As for `Cox.fit`. All apply in every replicate and in the final fit on all rows.

        Returns
        -------
        self

        Raises
        ------
        InputError
            As for `Cox.fit`, and if the rows cannot be divided as requested, no penalised covariate
            has information, or the checkpoint belongs to another run.
        """
        started = time.perf_counter()
        runtime = self._checked_runtime()
        self._check_can_repeat("cross-validation")
        folding, plan = self._folding(), self._plan()
        folding.check(has_censoring=isinstance(self, FineGray))
        data = self._read(X, y, sample_weight, strata, offset, cluster, None)
        loss = self._loss(data, runtime)
        problem = Problem.prepare(data.design, loss)
        prepared = time.perf_counter()
        with folding.scoring(
            problem,
            data,
            max_iter=self.max_iter,
            progress=self.progress,
            n_penalties=_expected(plan),
        ) as engine:
            scored, best, chosen = explore(engine, plan)
        result = CrossValidation.gather(
            scored,
            data.design.names,
            engine.scorer.folds,
            self._score_name,
            best,
            chosen,
            frame_library(X),
        )
        searched = time.perf_counter()
        penalty = result.penalties[chosen]
        assert penalty is not None
        l1, l2 = penalty.arrays(data.design.names)
        solution = fit_by_newton(
            data.design,
            loss,
            l1,
            l2,
            tol=self.tol,
            max_iter=self.max_iter,
            start=engine.start_for(penalty),
            problem=problem,
        )
        self._store(data, loss, solution, is_penalized=bool(l1.any() or l2.any()))
        # Of a resample nothing is kept, and it has one process.
        again = replace(folding, checkpoint=None, engine=None)
        choose = _Chooser(data, again, plan, self.max_iter)
        self._fitted = Fitted(replace(self._fitted.training, choose=choose))
        self.cross_validation_ = result
        found = [*engine.notes, *result.notes(), *_note_on_start(plan, result)]
        self.notes_ = [*self.notes_, *found]
        self._library = frame_library(X)
        self.seconds_ = {
            "prepare": prepared - started,
            "cross_validation": searched - prepared,
            "fit": time.perf_counter() - searched,
        }
        self._warn()
        return self

    def _strengths(self, design: Design) -> tuple[Features, Features]:
        return self.best_penalty_.arrays(design.names)

    # --------------------------------------------------------------------------- answers

    def _cross_validation(self) -> CrossValidation:
        check_is_fitted(self, "coef_")
        return self.cross_validation_

    @property
    def cv_results_(self) -> Any:
        """Data frame with one row per penalty and replicate; see `CrossValidation`."""
        return self._cross_validation().to_frame()

    @property
    def cv_curve_(self) -> Any:
        """Data frame with one row per penalty: mean score, standard error, size."""
        return self._cross_validation().curve()

    @property
    def best_index_(self) -> int:
        """Position of the chosen penalty in `cv_curve_`."""
        return self._cross_validation().chosen

    @property
    def best_penalty_(self) -> Penalty:
        """The chosen penalty, one of those that were evaluated."""
        found = self._cross_validation()
        return cast(Penalty, found.penalties[found.chosen])

    @property
    def best_score_(self) -> float:
        """Mean score of the chosen penalty."""
        found = self._cross_validation()
        return float(found.mean[found.chosen])

    @property
    def n_failed_(self) -> int:
        """Number of replicates without a certified solution. Their scores count nevertheless."""
        return self._cross_validation().n_failed

    def _saved(self, *, with_variances: bool = True) -> SavedFit:
        fit = super()._saved(with_variances=with_variances)
        return replace(fit, cross_validation=self._cross_validation())

    def _restore(self, fit: SavedFit) -> None:
        super()._restore(fit)
        if fit.cross_validation is None:
            raise InputError(
                "the file does not hold the cross-validation of the model.",
                hint="save the model again.",
            )
        self.cross_validation_ = fit.cross_validation


@dataclass(frozen=True)
class _Chooser:
    """The choice of the penalty for the same rows with other case weights."""

    data: Data
    folding: Folding
    plan: Plan
    max_iter: int

    def __call__(self, problem: Problem) -> Chosen:
        rows = self.data._replace(outcome=problem.loss.outcome)
        with self.folding.scoring(
            problem, rows, max_iter=self.max_iter, progress=False, n_penalties=None
        ) as engine:
            scored, _, chosen = explore(engine, self.plan)
        penalty = scored[chosen].penalty
        assert penalty is not None
        return Chosen(penalty, engine.start_for(penalty))

    def divide(self, outcome: Outcome) -> Folds:
        return self.folding.divide(self.data._replace(outcome=outcome))


def _note_on_start(plan: Plan, result: CrossValidation) -> list[Note]:
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
            f"the search did not start at the strength {plan.start:.4g}, but at the usual one: "
            f"{'stronger' if plan.start > tried.max() else 'weaker'} penalties than those of its "
            f"range are not searched (tried: {tried.min():.4g} to {tried.max():.4g}).",
        )
    ]


def _expected(plan: Plan) -> int | None:
    if plan.penalties is not None:
        return len(plan.penalties)
    if plan.search == "grid":
        return plan.n_penalties * (5 if plan.l1_ratio == "auto" else len(plan.ratios))
    return None
