"""The model of a propensity score: logistic regression, its penalty chosen by cross-validation."""

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from scipy.special import expit

from riskset._errors import InputError, RisksetWarning
from riskset._runtime import Runtime
from riskset._types import AnyArray, Features, Rows
from riskset.cohort.covariates import as_design
from riskset.cohort.population import EXTREME_LOGIT, Population
from riskset.cohort.propensity import preference_score
from riskset.cohort.propensity_checks import Covariates, OnHighCorrelation, TreatmentCovariates
from riskset.data.output import data_frame
from riskset.estimators._folding import Folding
from riskset.estimators._input import Columns, Data
from riskset.infer.crossval.explore import Plan, Rule, Search, explore
from riskset.infer.crossval.result import CrossValidation
from riskset.model.logistic import LogisticLoss
from riskset.model.penalty import L1, Penalty
from riskset.solve import newton
from riskset.solve.optimality import NO_SIGNAL, Problem
from riskset.solve.result import Note, Solution

__all__ = ["PropensityScore", "ScoreStatus", "propensity_score"]

ScoreStatus = Literal[
    "ok", "one_arm_empty", "no_covariates", "ps_constant", "separated", "not_converged"
]
TOL_REPLICATES = 1e-5
"""Bound on the relative KKT residual of each replicate."""
REASONS = {
    "one_arm_empty": "an arm has nobody, so there is no score.",
    "no_covariates": "no covariate differs between people, so there is no score.",
    "ps_constant": "no covariate was chosen: all scores are the share of the target.",
    "separated": "covariates tell some people of the two arms apart for certain, with scores of 0 "
    "or 1 (see the note `infinite`): leave these covariates out, or use a penalty.",
    "not_converged": "the fit did not converge: see the note `max_iter`.",
}


@dataclass(frozen=True, eq=False, repr=False)
class PropensityScore:
    """What `propensity_score` found.

    Attributes
    ----------
    population : Population
        With the scores, if there are any: for `trim`, `match`, `stratify`, `weight` and `balance`.
    status : str
        "ok", or why there are no scores ("one_arm_empty", "no_covariates"), or why they should not
        be used as they are ("ps_constant", "separated", "not_converged").
    logit : (n,) float64
        Log odds of the scores, at most 34.5 in size; NaN without scores.
    intercept : float
    coef : (p,) float64
        Of the covariates `names`, in the user's units; infinite where the estimate is.
    names, keys : tuple
        Covariates of the model, those excluded not among them.
    penalty : Penalty or None
        As chosen, or as given.
    cross_validation : CrossValidation or None
    log_likelihood, kkt : float
        Of the fit, and its certificate, the largest relative violation of the optimality
        conditions over all covariates.
    high_correlation : TreatmentCovariates
        Covariates that nearly determine the treatment.
    one_arm_only : TreatmentCovariates
        Covariates that at least 25 people have, all of one arm; they stay in the model.
    excluded : tuple of str
        Covariates left out because of `high_correlation`.
    notes : tuple of Note
    """

    population: Population
    status: ScoreStatus
    logit: Rows
    intercept: float
    coef: Features
    names: tuple[str, ...]
    keys: tuple[int | str, ...]
    penalty: Penalty | None
    cross_validation: CrossValidation | None
    log_likelihood: float
    kkt: float
    high_correlation: TreatmentCovariates
    one_arm_only: TreatmentCovariates
    excluded: tuple[str, ...]
    notes: tuple[Note, ...]

    @property
    def score(self) -> Rows:
        """Probability of the target given the covariates (n,)."""
        return self.population.score

    @property
    def preference(self) -> Rows:
        """See `preference_score` (n,)."""
        return preference_score(self.population)

    def columns(self) -> dict[str, AnyArray]:
        """The scores as columns of a table."""
        people = self.population
        return {
            "row_id": people.row_id,
            "person_id": people.person_id,
            "treatment": people.treatment,
            "ps": people.score,
            "logit": self.logit,
            "preference": self.preference,
        }

    def to_frame(self, library: str | None = None) -> Any:
        """A data frame with a row for each person; "pandas", "polars" or "pyarrow"."""
        return data_frame(self.columns(), library)

    def coefficients(self, library: str | None = None) -> Any:
        """A data frame of the coefficients other than 0, the largest in size first."""
        used = np.flatnonzero(self.coef)
        used = used[np.argsort(-np.abs(self.coef[used]), kind="stable")]
        columns: dict[str, AnyArray] = {
            "covariate_id": np.array([self.keys[j] for j in used], dtype=object),
            "name": np.array([self.names[j] for j in used], dtype=object),
            "coef": self.coef[used],
        }
        return data_frame(columns, library)

    def __repr__(self) -> str:
        chosen = f"{int(np.count_nonzero(self.coef)):,} of {len(self.names):,} covariates"
        noted = "".join(f"\n  {note.code}: {note.message}" for note in self.notes)
        return f"PropensityScore({self.status!r}, {chosen}, penalty {self.penalty!r}){noted}"


def propensity_score(
    population: Population | Sequence[int] | AnyArray,
    X: object,
    penalty: Penalty | None = None,
    *,
    cross_validate: bool = True,
    folds: object = 10,
    repeats: int = 10,
    search: Search = "auto",
    rule: Rule = "min",
    stratify: bool = True,
    seed: int = 1,
    on_high_correlation: OnHighCorrelation = "error",
    max_correlation: float = 0.5,
    checkpoint: str | os.PathLike[str] | None = None,
    n_threads: int | None = None,
    tol: float = 1e-8,
    max_iter: int = 200,
    progress: bool | None = None,
) -> PropensityScore:
    r"""Estimate everybody's probability of the target by a penalised logistic regression.

    .. math::
        \min_{b, \beta} \; -\sum_i \bigl(t_i \eta_i - \log(1 + e^{\eta_i})\bigr)
        + \sum_j f_j (\lambda_1 |\beta_j| + \tfrac12 \lambda_2 \beta_j^2), \qquad
        \eta_i = b + x_i'\beta

    The intercept has no penalty. No outcome is looked at.

    Parameters
    ----------
    population : Population, or treatment (n,) of 1 (target) and 0 (comparator)
    X : Design, Dataset, data frame, sparse matrix or array (n, p)
        Covariates of everybody, in the order of the population.
    penalty : L1, L2 or ElasticNet, optional
        The kind, the unpenalised columns and the factors; default L1. Its strength matters without
        cross-validation only, where None means maximum likelihood.
    cross_validate : bool
        Choose the strength by cross-validation.
    folds, repeats, search, rule, stratify, seed, checkpoint
        As for `riskset.CoxCV`; the score is the log likelihood of the people left out. `stratify`
        spreads the arms evenly over the folds. The rows of a person who enters twice stay together.
    on_high_correlation : {"error", "exclude", "warn"}
        What to do with covariates whose correlation with the treatment is at least
        `max_correlation` in size: they may be the treatment by another name, and weighting or
        matching on them leaves nobody. They are named in any case.
    max_correlation : float
    n_threads, tol, max_iter, progress
        As for `riskset.Cox`. Results have the same bits for any number of threads.

    Returns
    -------
    PropensityScore

    Raises
    ------
    CohortError
        "HighCorrelation", with the covariates in ``details``; "BadCovariates", "BadSetting" or
        "BadTreatment".
    InputError
        If the covariates or the options cannot be used.

    Warns
    -----
    RisksetWarning
        If the status is not "ok", or covariates determine the treatment and stay.

    Notes
    -----
    A propensity score of 0 or 1 comes of separation without a penalty only (status "separated").

    References
    ----------
    Rosenbaum and Rubin (1983), Biometrika 70, 41-55, doi:10.1093/biomet/70.1.41.
    Tian, Schuemie and Suchard (2018), International Journal of Epidemiology 47, 2005-2014,
    doi:10.1093/ije/dyy120.

    Examples
    --------
    >>> import riskset as rs
    >>> x = [[0]] * 6 + [[1]] * 6
    >>> treatment = [1, 1, 0, 0, 0, 0] + [1, 1, 1, 0, 0, 0]
    >>> found = rs.cohort.propensity_score(treatment, x, cross_validate=False)
    >>> found.score.round(3).tolist()[5:7]
    [0.333, 0.5]
    """
    if on_high_correlation not in get_args(OnHighCorrelation):
        raise InputError.wrong_option(
            "on_high_correlation", on_high_correlation, get_args(OnHighCorrelation)
        )
    plan = Plan.build(L1(1.0) if penalty is None else penalty, search=search, rule=rule)
    folding = Folding(
        folds, repeats, "held_out", None, stratify, "training", checkpoint, seed, TOL_REPLICATES
    )
    folding.check()
    people = population if isinstance(population, Population) else Population(population)
    design = as_design(X, people.n_rows)
    covariates = Covariates.check(design, people, on_high_correlation, max_correlation)
    runtime = Runtime.select(n_threads=n_threads)
    task = _Task(people, covariates, runtime, tol, max_iter, progress)
    found = task.run(penalty, plan, folding) if cross_validate else task.run(penalty)
    for note in found.notes:
        is_kept = note.code == "high_correlation" and on_high_correlation == "warn"
        if is_kept or note.code == found.status:
            warnings.warn(note.message, RisksetWarning, stacklevel=2)
    return found


@dataclass(frozen=True)
class _Task:
    """The fit of one score."""

    people: Population
    covariates: Covariates
    runtime: Runtime
    tol: float
    max_iter: int
    progress: bool | None

    def run(
        self, penalty: Penalty | None, plan: Plan | None = None, folding: Folding | None = None
    ) -> PropensityScore:
        """With the penalty given or, if there is a plan, one that it leads to."""
        target, design = self.people.is_target, self.covariates.design
        if target.all() or not target.any():
            return self._nothing("one_arm_empty")
        problem = Problem.prepare(design, LogisticLoss.of(target, self.runtime))
        if not problem.informative.any():
            return self._nothing("no_covariates")
        cv, start, notes = None, None, []
        if plan is not None and folding is not None:
            penalty = plan.kind
            signal = np.abs(problem.gradient_at_zero / problem.spread)[problem.informative]
            if signal.max() > NO_SIGNAL * target.size:
                cv, start = self._choose(problem, plan, folding)
                penalty, notes = cv.penalties[cv.chosen], cv.notes()
        zero = np.zeros(design.n_features)
        l1, l2 = (zero, zero) if penalty is None else penalty.arrays(design.names)
        solution = newton.fit(
            design,
            problem.loss,
            l1,
            l2,
            tol=self.tol,
            max_iter=self.max_iter,
            start=start,
            problem=problem,
        )
        return self._result(solution, penalty, cv, notes)

    def _choose(
        self, problem: Problem, plan: Plan, folding: Folding
    ) -> tuple[CrossValidation, Solution | None]:
        design, persons = problem.design, self.people.person_id
        several = np.unique(persons).size < persons.size
        folding = replace(folding, groups=persons if several else None)
        data = Data(design, problem.loss.outcome, Columns(design.names), (), {})
        with folding.scoring(
            problem, data, max_iter=self.max_iter, progress=self.progress, n_penalties=None
        ) as engine:
            scored, best, chosen = explore(engine, plan)
        found = CrossValidation.gather(
            scored, design.names, engine.scorer.folds, "held_out", best, chosen
        )
        return found, engine.start_for(found.penalties[chosen])

    def _result(
        self,
        solution: Solution,
        penalty: Penalty | None,
        cv: CrossValidation | None,
        notes: list[Note],
    ) -> PropensityScore:
        design, loss, target = self.covariates.design, solution.loss, self.people.is_target
        assert isinstance(loss, LogisticLoss)
        intercept = loss.evaluate(solution.eta).intercept
        log_odds = solution.eta + intercept
        certain = np.where(target, np.inf, -np.inf)  # those whom a limit left out
        log_odds = np.where(loss.outcome.weight > 0, log_odds, certain)
        status: ScoreStatus = "ok"
        if solution.status == "max_iter":
            status = "not_converged"
        elif solution.infinite.any():
            status = "separated"
        elif not solution.coef.any():
            status = "ps_constant"
        return self._found(
            status,
            [*notes, *map(_reworded, solution.notes)],
            population=self.people.with_score(expit(log_odds)),
            logit=np.clip(log_odds, -EXTREME_LOGIT, EXTREME_LOGIT),
            intercept=intercept - float(design.center @ solution.finite_part),
            coef=solution.coef,
            penalty=penalty,
            cross_validation=cv,
            log_likelihood=solution.log_likelihood,
            kkt=solution.kkt,
        )

    def _nothing(self, status: ScoreStatus) -> PropensityScore:
        nan = float("nan")
        return self._found(
            status,
            [],
            population=self.people,
            logit=np.full(self.people.n_rows, nan),
            intercept=nan,
            coef=np.zeros(self.covariates.design.n_features),
            penalty=None,
            cross_validation=None,
            log_likelihood=nan,
            kkt=nan,
        )

    def _found(self, status: ScoreStatus, notes: list[Note], **fitted: Any) -> PropensityScore:
        own = self.covariates
        reason = [] if status == "ok" else [Note(status, (), REASONS[status])]
        return PropensityScore(
            status=status,
            names=own.design.names,
            keys=own.design.keys,
            high_correlation=own.high_correlation,
            one_arm_only=own.one_arm_only,
            excluded=own.excluded,
            notes=(*reason, *own.notes, *notes),
            **fitted,
        )


def _reworded(note: Note) -> Note:
    """Without the risk sets that other likelihoods have."""
    return replace(note, message=note.message.replace("constant within every risk set", "constant"))
