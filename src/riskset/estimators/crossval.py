"""Estimators that choose their penalty by cross-validation, and `cross_validate`."""

import math
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self, cast

from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from riskset._errors import InputError
from riskset._types import Features, Rows
from riskset.data.design import Design
from riskset.data.outcome import Outcome
from riskset.estimators._base import check_model
from riskset.estimators._cv_settings import CVSettings, choose_penalty
from riskset.estimators._fitted import Fitted
from riskset.estimators._inference import HazardModel
from riskset.estimators._input import ModelInput, output_library
from riskset.estimators.cox import Cox
from riskset.estimators.finegray import FineGray, Person
from riskset.estimators.fit_file import SavedFit
from riskset.infer.bootstrap_with_tuning import TunedPenalty
from riskset.infer.crossval.folds import Folds
from riskset.infer.crossval.result import CrossValidation
from riskset.infer.crossval.scores import CensoringFrom, ScoreKind
from riskset.infer.crossval.search_plan import ChoiceRule, SearchMethod, SearchPlan
from riskset.model.censoring import BeyondSupport, CensoringTies, CensoringWeights
from riskset.model.cox import Ties
from riskset.model.penalty import L2, Penalty, as_kind
from riskset.solve.fit import fit_by_newton
from riskset.solve.optimality import Problem

__all__ = ["CoxCV", "CrossValidated", "FineGrayCV", "cross_validate"]

OHDSI_VARIANCE = 0.01
"""Variance of the prior at which OHDSI's studies start a search."""
PLANNED = ("penalties", "search", "rule", "n_penalties", "min_ratio", "start", "l1_ratio")
"""Parameters that say which penalties to compare."""


class _ScoreName:
    """The parameter `score` and the method `score`: setting means the first, getting the second.

    The name of the criterion stands in the instance's ``__dict__``, where scikit-learn looks for
    parameters, and only `get_params` reads it there.
    """

    def __get__(self, model: Any, kind: type[HazardModel] | None = None) -> Any:
        return HazardModel.score if model is None else HazardModel.score.__get__(model)

    def __set__(self, model: Any, name: object) -> None:
        model.__dict__["score"] = name


class CrossValidated(HazardModel):
    """What `CoxCV` and `FineGrayCV` share: the choice of the penalty."""

    penalty: Any
    penalties: Any
    folds: Any
    repeats: int
    search: SearchMethod
    rule: ChoiceRule
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
    def _score_name(self) -> ScoreKind:
        return cast(ScoreKind, self.__dict__["score"])

    @classmethod
    def ohdsi(cls, penalty: Penalty | str = "l1", **parameters: Any) -> Self:
        """Create an estimator with the settings of OHDSI studies.

        OHDSI studies choose a penalty with Cyclops: 10 folds, 10 repetitions, an automatic search
        that starts at a prior variance of 0.01, and seed 1, ``createControl(cvType="auto", fold=10,
        cvRepetitions=10, startingVariance=0.01, seed=1)``.

        Parameters
        ----------
        penalty : Penalty without a strength, "l1" or "l2"
            "l1": a Laplace prior.
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
        >>> round(rs.CoxCV.ohdsi(rs.L1(unpenalized=["treatment"])).start, 3)
        14.142
        """
        start = (
            1 / OHDSI_VARIANCE
            if isinstance(as_kind(penalty), L2)
            else math.sqrt(2 / OHDSI_VARIANCE)
        )
        preset = {"folds": 10, "repeats": 10, "search": "auto", "seed": 1}
        if parameters.get("penalties") is None and parameters.get("search") != "grid":
            preset["start"] = start
        return cls(penalty, **(preset | parameters))

    @property
    def _kind(self) -> Penalty | None:
        return cast("Penalty | None", as_kind(self.penalty))

    def _plan(self) -> SearchPlan:
        return SearchPlan.build(
            self.penalty,
            **{name: getattr(self, name) for name in PLANNED},
        )

    def fit(
        self,
        X: object,
        y: object = None,
        sample_weight: object = None,
        strata: object = None,
        offset: object = None,
        cluster: object = None,
        *,
        init: object = None,
    ) -> Self:
        """Choose the penalty by cross-validation, and fit the model with it.

        Parameters
        ----------
        X, y, sample_weight, strata, offset, cluster
            As for `Cox.fit`. All apply in every replicate and in the final fit on all rows.
        init : None
            Not available: each fit starts where that of a neighbouring penalty ended.

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
        if init is not None:
            raise InputError(
                "`init` is not available for cross-validation.",
                hint="leave it out: each fit starts where that of a neighbouring penalty ended.",
            )
        self._check_can_repeat("cross-validation")
        settings = CVSettings.take_from(self.get_params(deep=False))
        plan = self._plan()
        settings.check(has_censoring=self.has_censoring)
        data = self._read(X, y, sample_weight, strata, offset, cluster, None)
        loss, library = self._loss(data, runtime), output_library(X)
        problem = Problem.prepare(data.design, loss)
        prepared = time.perf_counter()
        choice = choose_penalty(
            problem,
            plan,
            settings,
            data,
            max_iter=self.max_iter,
            progress=self.progress,
            library=library,
        )
        searched = time.perf_counter()
        l1, l2 = choice.penalty.arrays(data.design.names)
        solution = fit_by_newton(
            data.design,
            loss,
            l1,
            l2,
            tol=self.tol,
            max_iter=self.max_iter,
            start=choice.start,
            problem=problem,
        )
        self._store(data, loss, solution, is_penalized=bool(l1.any() or l2.any()))
        # Resamples leave no checkpoint and run in one process.
        again = replace(settings, checkpoint=None, engine=None)
        tuner = _PenaltyTuner(data, again, plan, self.max_iter)
        self._fitted = Fitted(replace(self._fitted.training, choose=tuner))
        self.cross_validation_ = choice.cross_validation
        self.notes_ = [*self.notes_, *choice.notes]
        self._library = library
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

    def _saved(
        self, *, with_variances: bool = True, interval_times: Rows | None = None
    ) -> SavedFit:
        fit = super()._saved(with_variances=with_variances, interval_times=interval_times)
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
class _PenaltyTuner:
    """The choice of the penalty for the same rows with other case weights."""

    data: ModelInput
    settings: CVSettings
    plan: SearchPlan
    max_iter: int

    def __call__(self, problem: Problem) -> TunedPenalty:
        rows = self.data._replace(outcome=problem.loss.outcome)
        choice = choose_penalty(
            problem, self.plan, self.settings, rows, max_iter=self.max_iter, progress=False
        )
        return TunedPenalty(choice.penalty, choice.start)

    def divide(self, outcome: Outcome) -> Folds:
        return self.settings.divide(self.data._replace(outcome=outcome))


class CoxCV(CrossValidated, Cox):
    r"""Cox regression with a penalty chosen by cross-validation.

    The rows are divided into folds, repeatedly. For each penalty and fold, the model is fitted to
    the other rows and scored on the held-out fold. The penalty with the best mean score (or the one
    chosen by the rule "1se") is then used for a fit on all rows. After `fit`, the estimator is this
    `Cox` model.

    Parameters
    ----------
    penalty : L1, L2 or ElasticNet without a strength, "l1" or "l2"
        Type of penalty, unpenalised columns and factors: ``L1(unpenalized=["sex"])``. "l1" and "l2"
        are ``L1()`` and ``L2()``, on every covariate. A penalty with a strength, which would not be
        used, is an error, and so is None (no penalty).
    penalties : sequence of Penalty or of float, optional
        Penalties, or strengths of `penalty`, to compare instead of a search.
    folds : int, or fold ids (n,) or (repeats, n)
        Number of folds, or the fold of each row. With ids, `repeats` and `seed` are not used.
    repeats : int
        Number of repetitions with new folds.
    search : {"auto", "grid"}
        "auto" searches the best strength on a logarithmic scale, until evaluated neighbours within
        a factor of 1.1 on both sides score no better. With four repetitions or more, only the first
        explores. All repetitions then score its best strength, the neighbours, and every strength
        that looks better than the best so far. "grid" compares `n_penalties` strengths, equally
        spaced on that scale.
    rule : {"min", "1se"}
        Choose the best mean score, or the strongest penalty (with the same share of L1) whose mean
        is within one standard error of it. A search then evaluates that penalty, too.
    score : {"held_out", "difference"}
        "held_out": the log partial likelihood of the held-out rows, with risk sets restricted to
        them (Cyclops; glmnet's ``grouped=FALSE``). "difference": the log partial likelihood of all
        rows minus that of the training rows (Verweij and van Houwelingen; glmnet's default). A fold
        without events, or of a single row, adds 0 to "held_out", so leave-one-out requires
        "difference".
    groups : (n,) labels or str, optional
        Keep rows of one group in one fold. A name is "cluster", "strata", a covariate, or a column
        of the `Dataset` with a role.
    stratify : bool
        Distribute events evenly over the folds.
    censoring : {"training", "full"}
        Estimate the censoring distribution from the training rows of each replicate, or once from
        all rows. "full" is only for `FineGrayCV`.
    n_penalties, min_ratio : int, float, optional
        For a grid: the number of strengths (default: 20), and the ratio of the weakest strength to
        the smallest strength at which all penalised coefficients are 0 (default: 1e-4, or 0.01 with
        more columns than rows). A search does not go below `min_ratio` either (default: 1e-5).
    start : float, optional
        Strength (l1 + l2) at which a search starts. A strength outside the range is not used; the
        note ``start_of_search`` says so. Default: a tenth of that smallest strength.
    l1_ratio : number, sequence of numbers, or "auto", optional
        Shares of L1 to compare. "auto" searches in [0, 1] to within 0.1. Default: the share of
        `penalty`.
    checkpoint : path, optional
        File for finished replicates. After an interruption, the same fit resumes from it, with a
        bit-identical result.
    seed : int
        Seed of the folds, which are the same for every penalty.
    tol_replicates : float
        Upper bound of the relative KKT residual of each replicate.
    engine : {"joblib", "dask", "ray"} or None
        Fit replicates in `n_threads` processes, or in the workers of the current Dask client or of
        Ray (started locally if necessary), instead of in threads. Results are bit-identical.
        Workers map the design from a file in the temporary folder (TMPDIR), or from its own file;
        all workers must be able to read it. If a worker dies, only its current replicates are lost.
    ties, cause, fixed, reference, covariate_labels, device, n_threads, tol, max_iter, solver
    progress
        As for `Cox`. The choice is bit-identical for any number of threads.

    Attributes
    ----------
    best_penalty_ : Penalty
        The chosen penalty, which was evaluated. The final fit uses it.
    best_index_, best_score_ : int, float
        Row of the chosen penalty in `cv_curve_`, and its mean score.
    cv_curve_ : data frame
        One row per penalty: l1, l2, mean score, its standard error between folds, and the number of
        non-zero coefficients.
    cv_results_ : data frame
        One row per penalty and replicate: repetition, fold, score, log likelihood of the training
        rows, number of non-zero coefficients, steps, KKT residual, status, and events left out of
        the score.
    n_failed_ : int
        Number of replicates neither "converged" nor "infinite_estimate". `notes_` says so; their
        scores count nevertheless.
    cross_validation_ : CrossValidation
        All of these results as arrays.
    coef_, status_, kkt_, ...
        Attributes of the final fit, as for `Cox`. The note ``edge_of_search`` says that the best
        penalty was the strongest or the weakest evaluated.

    Notes
    -----
    An unpenalised coefficient may be infinite on the training rows of a replicate, for example the
    coefficient of a treatment without events there. The replicate is then scored in the limit, in
    which a risk set keeps the rows with the maximum of x'd, where d is the direction of the
    infinite estimate. An event outside of these rows has likelihood 0. It is left out of the score
    and counted in `cv_results_`; the note ``infinite_in_replicates`` says so. With up to 60
    unpenalised covariates, the same events are left out at every penalty, so that scores remain
    comparable.

    See Also
    --------
    cross_validate : scores of one model.
    riskset.plot.cross_validation : the curve.

    References
    ----------
    Verweij and van Houwelingen (1993), Statistics in Medicine 12, 2305-2314,
    doi:10.1002/sim.4780122407.
    Simon, Friedman, Hastie and Tibshirani (2011), Journal of Statistical Software 39(5), 1-13,
    doi:10.18637/jss.v039.i05.

    Examples
    --------
    >>> import riskset as rs
    >>> data = rs.load_rhc()
    >>> kind = rs.L1(unpenalized=["swang1"])
    >>> model = rs.CoxCV(kind, penalties=[10.0, 30.0, 90.0], folds=3, repeats=1).fit(data)
    >>> model.best_penalty_
    L1(10.0, unpenalized=('swang1',))
    """

    def __init__(
        self,
        penalty: Penalty | str = "l1",
        *,
        penalties: object = None,
        folds: object = 10,
        repeats: int = 10,
        search: SearchMethod = "auto",
        rule: ChoiceRule = "min",
        score: ScoreKind = "held_out",
        groups: object = None,
        stratify: bool = False,
        censoring: CensoringFrom = "training",
        n_penalties: int | None = None,
        min_ratio: float | None = None,
        start: float | None = None,
        l1_ratio: object = None,
        checkpoint: str | os.PathLike[str] | None = None,
        seed: int = 1,
        tol_replicates: float = 1e-5,
        engine: str | None = None,
        ties: Ties = "breslow",
        cause: int | str | None = None,
        fixed: Mapping[str, float] | None = None,
        reference: Mapping[str, object] | None = None,
        covariate_labels: object = None,
        device: str = "auto",
        n_threads: int | None = None,
        tol: float = 1e-8,
        max_iter: int = 200,
        solver: str = "newton",
        progress: bool | None = None,
    ) -> None:
        self._set(locals())


class FineGrayCV(CrossValidated, FineGray):
    """Fine-Gray regression with a penalty chosen by cross-validation.

    Parameters
    ----------
    penalty, penalties, folds, repeats, search, rule, score, groups, stratify
        As for `CoxCV`. Only events of the cause of interest are scored. A held-out row with a
        competing event stays at risk after it.
    censoring : {"training", "full"}
        "training": estimate the censoring distribution from the training rows of each replicate. It
        also applies to the held-out rows, with its last positive value carried forward. "full":
        estimate it once from all rows. Both terms of the score "difference" use the same
        distribution.
    n_penalties, min_ratio, start, l1_ratio, checkpoint, seed, tol_replicates, engine
        As for `CoxCV`.
    cause, censoring_ties, censoring_group, censoring_beyond, censoring_weights, person
        As for `FineGray`.
    censoring_probability, fixed, reference, covariate_labels, device, n_threads, tol, max_iter
    solver, progress
        As for `FineGray`.

    Attributes
    ----------
    best_penalty_, best_index_, best_score_, cv_curve_, cv_results_, n_failed_, cross_validation_
        As of `CoxCV`.
    coef_, status_, kkt_, ...
        Attributes of the final fit, as for `FineGray`.

    Examples
    --------
    >>> import riskset as rs
    >>> cohort = rs.simulate_finegray(400, 8, 0.3, 1)
    >>> y = rs.Surv(cohort.time, cohort.event)
    >>> model = rs.FineGrayCV(folds=4, repeats=1).fit(cohort.X, y)
    >>> bool(model.best_penalty_.l1 > 0)
    True
    """

    def __init__(
        self,
        penalty: Penalty | str = "l1",
        *,
        penalties: object = None,
        folds: object = 10,
        repeats: int = 10,
        search: SearchMethod = "auto",
        rule: ChoiceRule = "min",
        score: ScoreKind = "held_out",
        groups: object = None,
        stratify: bool = False,
        censoring: CensoringFrom = "training",
        n_penalties: int | None = None,
        min_ratio: float | None = None,
        start: float | None = None,
        l1_ratio: object = None,
        checkpoint: str | os.PathLike[str] | None = None,
        seed: int = 1,
        tol_replicates: float = 1e-5,
        engine: str | None = None,
        cause: int | str = 1,
        censoring_ties: CensoringTies = "crr",
        censoring_group: object = None,
        censoring_beyond: BeyondSupport = "zero",
        censoring_weights: CensoringWeights = "case",
        censoring_probability: object = None,
        person: Person | None = None,
        fixed: Mapping[str, float] | None = None,
        reference: Mapping[str, object] | None = None,
        covariate_labels: object = None,
        device: str = "auto",
        n_threads: int | None = None,
        tol: float = 1e-8,
        max_iter: int = 200,
        solver: str = "newton",
        progress: bool | None = None,
    ) -> None:
        self._set(locals())


def cross_validate(
    model: Cox | FineGray,
    X: object,
    y: object = None,
    *,
    folds: object = 10,
    repeats: int = 10,
    score: ScoreKind = "held_out",
    groups: object = None,
    stratify: bool = False,
    censoring: CensoringFrom = "training",
    checkpoint: str | os.PathLike[str] | None = None,
    seed: int = 1,
    tol_replicates: float = 1e-5,
    engine: str | None = None,
    sample_weight: object = None,
    strata: object = None,
    offset: object = None,
    cluster: object = None,
) -> CrossValidation:
    """Score one model on held-out rows by cross-validation.

    Parameters
    ----------
    model : Cox or FineGray
        The model, with or without a penalty. It is not changed.
    X, y, sample_weight, strata, offset, cluster
        As for `Cox.fit`.
    folds, repeats, score, groups, stratify, censoring, checkpoint, seed, tol_replicates, engine
        As for `CoxCV`. To compare two models, use the same folds.

    Returns
    -------
    CrossValidation
        ``mean[0]``, ``se[0]``, and ``scores[0]`` of every replicate.

    Raises
    ------
    InputError
        If the data are not valid, or the rows cannot be divided as requested.

    Examples
    --------
    >>> import riskset as rs
    >>> data = rs.load_rhc()
    >>> found = rs.cross_validate(rs.Cox(), data, folds=5, repeats=1)
    >>> found.scores.shape
    (1, 5)
    """
    check_model(model, "`riskset.cross_validate`")
    if isinstance(model, CrossValidated):
        raise InputError(
            f"{type(model).__name__} cross-validates by itself.",
            hint="fit it, and see `cv_results_`; or score a Cox or FineGray of one penalty.",
        )
    model = clone(model)
    runtime = model._checked_runtime()
    model._check_can_repeat("cross-validation")
    settings = CVSettings(
        folds, repeats, score, groups, stratify, censoring, checkpoint, seed, tol_replicates, engine
    )
    settings.check(has_censoring=model.has_censoring)
    data = model._read(X, y, sample_weight, strata, offset, cluster, None)
    problem = Problem.prepare(data.design, model._loss(data, runtime))
    with settings.scoring(
        problem, data, max_iter=model.max_iter, progress=model.progress, n_penalties=1
    ) as scoring:
        scored = scoring.score(model.penalty)
    return CrossValidation.gather(
        [scored], data.design.names, scoring.scorer.folds, score, 0, 0, output_library(X)
    )
