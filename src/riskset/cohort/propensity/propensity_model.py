"""Propensity scores from penalised logistic regression."""

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import expit

from riskset._errors import RisksetWarning
from riskset._keywords import takes
from riskset._messages import Note
from riskset._runtime import Runtime
from riskset._settings import bad_setting
from riskset._types import AnyArray, Index
from riskset.cohort.adjustments.adjustment import Adjustment, People, start
from riskset.cohort.covariates.covariate_design import as_design
from riskset.cohort.population import EXTREME_LOGIT, Population, logit
from riskset.cohort.propensity.propensity_checks import ScoreCovariates
from riskset.cohort.propensity.propensity_result import PropensityScore, ScoreStatus
from riskset.cohort.settings import PropensityModel
from riskset.data.design import Design
from riskset.estimators._cv_settings import CVSettings, choose_penalty
from riskset.infer.crossval.result import CrossValidation
from riskset.infer.crossval.search_plan import SearchPlan
from riskset.model.logistic import LogisticLoss
from riskset.model.penalty import Penalty
from riskset.solve.fit import fit_by_newton
from riskset.solve.optimality import MIN_SIGNAL_PER_EVENT, Problem
from riskset.solve.result import UNCERTIFIED, Solution

__all__ = ["propensity_score"]

REASONS = {
    "one_arm_empty": "one arm has no people, so there is no score.",
    "no_covariates": "no covariate differs between people, so there is no score.",
    "ps_constant": "the model has no covariate, so all scores equal the proportion of the target.",
    "separated": "covariates determine the treatment of some people with certainty (see the note "
    "`infinite`); remove these covariates, or use a penalty.",
    "not_converged": "the fit did not converge (see the note `max_iter`).",
}


@takes(PropensityModel, positional=1)
def propensity_score(
    people: People | Sequence[int] | AnyArray,
    X: object,
    settings: PropensityModel,
    *,
    checkpoint: str | os.PathLike[str] | None = None,
    n_threads: int | None = None,
    progress: bool | None = None,
) -> PropensityScore:
    r"""Estimate propensity scores by penalised logistic regression.

    .. math::
        \min_{b, \beta} \; -\sum_i \bigl(t_i \eta_i - \log(1 + e^{\eta_i})\bigr)
        + \sum_j f_j (\lambda_1 |\beta_j| + \tfrac12 \lambda_2 \beta_j^2), \qquad
        \eta_i = b + x_i'\beta

    Sampling weights of the population, divided by their mean, multiply the terms of the sum. The
    intercept is not penalised. The function does not use outcomes.

    The score of the cross-validation is the log likelihood of the held-out people. Rows of a person
    who enters twice stay in one fold. Covariates that nearly determine the treatment may record the
    treatment itself, and no one could be weighted or matched on them. They are listed in any case.
    With `max_rows`, the intercept is corrected for the proportion of the target in the sample, and
    every row has a score.

    Parameters
    ----------
    people : Population, Adjustment, or treatment (n,) of 1 (target) and 0 (comparator)
        After trimming, the model is fitted to the remaining people, as recommended before
        weighting. The scores of the others are predictions, and preference scores are relative to
        the remaining people.
    X : Design, Dataset, data frame, sparse matrix or array (n, p)
        Covariates of all rows, in the order of the population.
    settings : PropensityModel
    checkpoint, n_threads, progress
        As for `riskset.CoxCV`. Results are bit-identical for any number of threads.

    Returns
    -------
    PropensityScore

    Raises
    ------
    CohortError
        "HighCorrelation", with the covariates in ``details``; "BadCovariates", "BadSetting" or
        "BadTreatment".
    InputError
        If the covariates or the options are not valid.

    Warns
    -----
    RisksetWarning
        If the status is not "ok", or if covariates determine the treatment and stay in the model.

    Notes
    -----
    Propensity scores of 0 or 1 occur only through separation without a penalty (status
    "separated").

    References
    ----------
    Rosenbaum and Rubin (1983), Biometrika 70, 41-55, doi:10.1093/biomet/70.1.41.
    Tian, Schuemie and Suchard (2018), International Journal of Epidemiology 47, 2005-2014,
    doi:10.1093/ije/dyy120.
    King and Zeng (2001), Political Analysis 9, 137-163,
    doi:10.1093/oxfordjournals.pan.a004868, equation 7, for the correction of the intercept.

    Examples
    --------
    >>> import riskset as rs
    >>> x = [[0]] * 6 + [[1]] * 6
    >>> treatment = [1, 1, 0, 0, 0, 0] + [1, 1, 1, 0, 0, 0]
    >>> found = rs.cohort.propensity_score(treatment, x, penalty=None)
    >>> found.score.round(3).tolist()[5:7]
    [0.333, 0.5]
    """
    penalty, plan = settings.kind, None
    if settings.chooses_penalty:
        plan = SearchPlan.build(penalty, search=settings.search, rule=settings.rule)
    elif checkpoint is not None:
        raise bad_setting(
            "checkpoint",
            "`checkpoint` keeps replicates of a cross-validation, but there is none.",
            hint="leave it out, or use a penalty without a strength, such as `penalty='l1'`.",
        )
    folds = CVSettings(
        settings.folds,
        settings.repeats,
        stratify=settings.stratify,
        checkpoint=checkpoint,
        seed=settings.seed,
    )
    folds.check()
    given = people if isinstance(people, (Population, Adjustment)) else Population(people)
    everybody = start(given)
    population = everybody.population
    design = as_design(X, population.n_rows)
    rows = _sampled(everybody, settings.max_rows)
    is_part = rows.size < population.n_rows
    fitted = population.take(rows) if is_part else population
    covariates = ScoreCovariates.check(
        design.take_rows(rows) if is_part else design,
        fitted,
        settings.on_high_correlation,
        settings.max_correlation,
        penalty,
    )
    runtime = Runtime.select(n_threads=n_threads)
    task = _Task(fitted, covariates, runtime, settings.tol, settings.max_iter, progress)
    found = task.run(penalty, plan, folds)
    if is_part:
        found = _for_everybody(found, given, everybody, design, rows)
    for note in found.notes:
        is_kept = note.code == "high_correlation" and settings.on_high_correlation == "warn"
        if is_kept or note.code == found.status:
            warnings.warn(note.message, RisksetWarning, stacklevel=3)
    return found


def _sampled(everybody: Adjustment, max_rows: int | None) -> Index:
    """Rows kept, at most so many of each arm."""
    people, chosen = everybody.population, everybody.kept
    if max_rows is not None:
        for arm in (0, 1):
            own = np.flatnonzero(chosen & (people.treatment == arm))
            if own.size > max_rows:
                own = own[np.argsort(people.row_id[own])]
                taken = np.arange(max_rows) * (own.size - 1) // (max_rows - 1)
                chosen[np.delete(own, taken)] = False
    return np.flatnonzero(chosen)


def _for_everybody(
    found: PropensityScore, given: People, everybody: Adjustment, design: Design, rows: Index
) -> PropensityScore:
    """A model of some rows, applied to all; where it is of a sample, the intercept corrected."""
    kept, target = everybody.kept, everybody.population.is_target
    base = everybody.population.sampling_weight
    share = float(base[kept & target].sum() / base[kept].sum()) if kept.any() else np.nan
    sampled = float(base[rows] @ target[rows] / base[rows].sum()) if rows.size else np.nan
    score, log_odds = None, np.full(kept.size, np.nan)
    intercept = found.intercept
    if np.isfinite(found.logit).all() and rows.size:
        known = {name: j for j, name in enumerate(design.names)}
        used = np.flatnonzero(np.isfinite(found.coef) & (found.coef != 0))
        columns = np.array([known[found.names[j]] for j in used], dtype=np.int64)
        # Infinite coefficients separate the fitted rows, and say nothing about the others.
        log_odds = found.intercept + design.dot(found.coef[used], columns)
        own = found.score
        log_odds[rows] = np.where((own > 0) & (own < 1), found.logit, (2 * own - 1) * np.inf)
        correction = float(logit(np.array([share]))[0] - logit(np.array([sampled]))[0])
        log_odds, intercept = log_odds + correction, intercept + correction
        score = expit(log_odds)
    population = everybody.population.with_score(score, share)
    return replace(
        found,
        people=population
        if isinstance(given, Population)
        else replace(given, population=population),
        logit=np.clip(log_odds, -EXTREME_LOGIT, EXTREME_LOGIT),
        intercept=intercept,
    )


@dataclass(frozen=True)
class _Task:
    """The fit of one score."""

    people: Population
    covariates: ScoreCovariates
    runtime: Runtime
    tol: float
    max_iter: int
    progress: bool | None

    def run(
        self,
        penalty: Penalty | None,
        plan: SearchPlan | None,
        settings: CVSettings,
    ) -> PropensityScore:
        """With the penalty given or, if there is a plan, one that it leads to."""
        target, design = self.people.is_target, self.covariates.design
        if target.all() or not target.any():
            return self._nothing("one_arm_empty")
        weight = None
        if self.people.has_sampling_weight:
            weight = self.people.sampling_weight / self.people.sampling_weight.mean()
        problem = Problem.prepare(design, LogisticLoss.of(target, self.runtime, weight=weight))
        if not problem.informative.any():
            return self._nothing("no_covariates")
        cv, start = None, None
        notes: list[Note] = []
        if plan is not None:
            signal = np.abs(problem.gradient_at_zero / problem.spread)[problem.informative]
            if signal.max() > MIN_SIGNAL_PER_EVENT * target.size:
                cv, start, notes = self._choose(problem, plan, settings)
                penalty = cv.penalties[cv.chosen]
            else:
                penalty = plan.kind.with_strength(1.0)  # any leaves all coefficients at 0
        zero = np.zeros(design.n_features)
        l1, l2 = (zero, zero) if penalty is None else penalty.arrays(design.names)
        solution = fit_by_newton(
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
        self, problem: Problem, plan: SearchPlan, settings: CVSettings
    ) -> tuple[CrossValidation, Solution | None, list[Note]]:
        persons = self.people.person_id
        if settings.draws:
            several = np.unique(persons).size < persons.size
            settings = replace(settings, groups=persons if several else None)
        else:  # they are the caller's
            settings = replace(settings, stratify=False)
        choice = choose_penalty(
            problem, plan, settings, max_iter=self.max_iter, progress=self.progress
        )
        return choice.cross_validation, choice.start, choice.notes

    def _result(
        self,
        solution: Solution,
        penalty: Penalty | None,
        cv: CrossValidation | None,
        notes: list[Note],
    ) -> PropensityScore:
        design, loss, target = self.covariates.design, solution.likelihood, self.people.is_target
        intercept = loss.evaluate(solution.eta).intercept
        log_odds = solution.eta + intercept
        certain = np.where(target, np.inf, -np.inf)  # those whom a limit left out
        log_odds = np.where(loss.outcome.weight > 0, log_odds, certain)
        status: ScoreStatus = "ok"
        if solution.status in UNCERTIFIED:
            status = "not_converged"
        elif solution.infinite.any():
            status = "separated"
        elif not solution.coef.any():
            status = "ps_constant"
        return self._found(
            status,
            [*notes, *map(_without_risk_sets, solution.notes)],
            people=self.people.with_score(expit(log_odds)),
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
            people=self.people.with_score(None),
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


def _without_risk_sets(note: Note) -> Note:
    """Other likelihoods have risk sets; in this one a column is constant everywhere."""
    return note.with_values(where="") if note.code == "constant" else note
