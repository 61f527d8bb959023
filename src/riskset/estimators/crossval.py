"""Estimators that choose their penalty by cross-validation, and `cross_validate`."""

import os
from typing import cast

from sklearn.base import clone

from riskset._errors import InputError
from riskset.estimators._base import HazardModel
from riskset.estimators._cross_validated import CrossValidated
from riskset.estimators._folding import Folding
from riskset.estimators._input import frame_library
from riskset.estimators.cox import Cox
from riskset.estimators.finegray import FineGray
from riskset.infer.crossval.explore import Rule, Search
from riskset.infer.crossval.result import CrossValidation
from riskset.infer.crossval.scores import CensoringFrom, Score
from riskset.model.censoring import CensoringTies
from riskset.model.cox import Ties
from riskset.model.finegray import BeyondSupport, CensoringWeights
from riskset.model.penalty import Penalty
from riskset.solve.optimality import Problem

__all__ = ["CoxCV", "FineGrayCV", "cross_validate"]


class CoxCV(CrossValidated, Cox):
    r"""Cox regression with a penalty chosen by cross-validation.

    The rows are divided into folds, repeatedly. For each penalty and fold, the model is fitted to
    the other rows and scored on the held-out fold. The penalty with the best mean score (or the one
    chosen by the rule "1se") is then used for a fit on all rows. After `fit`, the estimator is this
    `Cox` model.

    Parameters
    ----------
    penalty : L1, L2, ElasticNet, optional
        Type of penalty, unpenalised columns and factors. Its strength is not used. Default: L1 on
        every covariate.
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
    ties, cause, device, n_threads, tol, max_iter, solver, progress
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
    >>> kind = rs.L1(1.0, unpenalized=["swang1"])
    >>> model = rs.CoxCV(kind, penalties=[10.0, 30.0, 90.0], folds=3, repeats=1).fit(data)
    >>> model.best_penalty_
    L1(10.0, unpenalized=('swang1',))
    """

    def __init__(
        self,
        penalty: Penalty | None = None,
        *,
        penalties: object = None,
        folds: object = 10,
        repeats: int = 10,
        search: Search = "auto",
        rule: Rule = "min",
        score: Score = "held_out",
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
        device: str = "auto",
        n_threads: int | None = None,
        tol: float = 1e-8,
        max_iter: int = 200,
        solver: str = "newton",
        progress: bool | None = None,
    ) -> None:
        super().__init__(
            penalty,
            ties=ties,
            cause=cause,
            device=device,
            n_threads=n_threads,
            tol=tol,
            max_iter=max_iter,
            solver=solver,
            progress=progress,
        )
        self.penalties = penalties
        self.folds = folds
        self.repeats = repeats
        self.search = search
        self.rule = rule
        self.score = score
        self.groups = groups
        self.stratify = stratify
        self.censoring = censoring
        self.n_penalties = n_penalties
        self.min_ratio = min_ratio
        self.start = start
        self.l1_ratio = l1_ratio
        self.checkpoint = checkpoint
        self.seed = seed
        self.tol_replicates = tol_replicates
        self.engine = engine


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
    cause, censoring_ties, censoring_group, censoring_beyond, censoring_weights
        As for `FineGray`.
    censoring_probability, device, n_threads, tol, max_iter, solver, progress
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
        penalty: Penalty | None = None,
        *,
        penalties: object = None,
        folds: object = 10,
        repeats: int = 10,
        search: Search = "auto",
        rule: Rule = "min",
        score: Score = "held_out",
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
        device: str = "auto",
        n_threads: int | None = None,
        tol: float = 1e-8,
        max_iter: int = 200,
        solver: str = "newton",
        progress: bool | None = None,
    ) -> None:
        super().__init__(
            penalty,
            cause=cause,
            censoring_ties=censoring_ties,
            censoring_group=censoring_group,
            censoring_beyond=censoring_beyond,
            censoring_weights=censoring_weights,
            censoring_probability=censoring_probability,
            device=device,
            n_threads=n_threads,
            tol=tol,
            max_iter=max_iter,
            solver=solver,
            progress=progress,
        )
        self.penalties = penalties
        self.folds = folds
        self.repeats = repeats
        self.search = search
        self.rule = rule
        self.score = score
        self.groups = groups
        self.stratify = stratify
        self.censoring = censoring
        self.n_penalties = n_penalties
        self.min_ratio = min_ratio
        self.start = start
        self.l1_ratio = l1_ratio
        self.checkpoint = checkpoint
        self.seed = seed
        self.tol_replicates = tol_replicates
        self.engine = engine


def cross_validate(
    model: Cox | FineGray,
    X: object,
    y: object = None,
    *,
    folds: object = 10,
    repeats: int = 10,
    score: Score = "held_out",
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
    if not isinstance(model, (Cox, FineGray)):
        raise InputError(
            "cross_validate takes a Cox or a FineGray model, but it was given "
            f"{'the class ' if isinstance(model, type) else ''}{model!r}.",
            hint="pass a model, such as riskset.Cox()."
            if isinstance(model, type)
            else "the models of several causes are scored one by one, as Cox(cause=...).",
        )
    if isinstance(model, CrossValidated):
        raise InputError(
            f"{type(model).__name__} cross-validates by itself.",
            hint="fit it, and see `cv_results_`; or score a Cox or FineGray of one penalty.",
        )
    model = cast(HazardModel, clone(model))
    runtime = model._checked_runtime()
    model._check_can_repeat("cross-validation")
    folding = Folding(
        folds, repeats, score, groups, stratify, censoring, checkpoint, seed, tol_replicates, engine
    )
    folding.check(has_censoring=isinstance(model, FineGray))
    data = model._read(X, y, sample_weight, strata, offset, cluster, None)
    problem = Problem.prepare(data.design, model._loss(data, runtime))
    with folding.scoring(
        problem, data, max_iter=model.max_iter, progress=model.progress, n_penalties=1
    ) as scoring:
        scored = scoring.score(model.penalty)
    return CrossValidation.gather(
        [scored], data.design.names, scoring.scorer.folds, score, 0, 0, frame_library(X)
    )
