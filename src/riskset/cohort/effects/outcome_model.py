"""Outcome models with the weights and sets of an adjustment."""

import os
from dataclasses import replace

import numpy as np

from riskset._errors import CohortError
from riskset._keywords import takes
from riskset._messages import Note, Value
from riskset._settings import bad_setting
from riskset._types import AnyArray
from riskset.cohort.adjustments.adjustment import Adjustment, People, start
from riskset.cohort.covariates.covariate_design import as_design
from riskset.cohort.effects.effect_scale import SCALES, EffectScale
from riskset.cohort.effects.estimate import Estimate, EstimateStatus, Reading
from riskset.cohort.effects.outcome_data import TREATMENT, OutcomeCovariates
from riskset.cohort.effects.outcome_fit import fitted
from riskset.cohort.effects.readings import is_biased, readings_of
from riskset.cohort.outcomes import Outcomes, count_arms
from riskset.cohort.propensity.estimated_score import (
    EstimatedScore,
    check_score_covariates,
    score_of_weights,
)
from riskset.cohort.resampling import Readjust
from riskset.cohort.settings import OutcomeModel
from riskset.data.checks import Places
from riskset.data.labels import as_labels
from riskset.model.references import without_references

__all__ = ["fit_outcome"]

FEW_EVENTS = 5
POISSON_SETS = (
    "follow-up ends with the outcome, so a Poisson model with an intercept for each matched set "
    "overstates the effect; `reading='marginal'` does not."
)


@takes(OutcomeModel, positional=1)
def fit_outcome(
    y: object,
    adjustment: People,
    settings: OutcomeModel,
    *,
    cause: int | str | None = None,
    covariates: object = None,
    interactions: object = None,
    readjust: Readjust | None = None,
    score_covariates: object = None,
    cluster: object = None,
    checkpoint: str | os.PathLike[str] | None = None,
    strict: bool = False,
) -> Estimate:
    r"""Estimate the hazard, odds or rate ratio of the target versus the comparator.

    The stratified and the marginal reading have different estimands. If there are sets, "auto"
    therefore returns both. The marginal reading treats the rows of a set or person as a cluster.
    "pooled" does the same but counts each kept row once. With sampling weights, "auto" is the
    marginal reading. The "auto" interval is robust with
    weights, sets or people who enter twice, and for "finegray". For stratified readings, with a
    penalty, and in all other cases it uses the profile likelihood, which treats weights as numbers
    of people. The robust variance takes weights as known. "stacked" adds what each person changes
    through the estimated propensity score: the variance of the estimating equations of the score
    and of the outcome model together.

    "logistic" estimates the odds ratio of the outcome within the time at risk, which should be the
    same for everybody, and "poisson" the ratio of the rates of first outcomes per time at risk.
    Their stratified reading is conditional on the sets: conditional logistic regression, or a
    Poisson model with an intercept for each set. If a set has several outcomes, conditional
    logistic regression has no robust or bootstrap interval and no cross-validation. A Poisson model
    of matched sets overstates the effect, because follow-up ends with the outcome, so that "auto"
    is its marginal reading alone.

    `fixed` holds coefficients of covariates at values that are known from elsewhere, as `fixed` of
    `riskset.Cox` does: their part of the linear predictor is an offset.

    With ``ties="exact"`` or ``firth=True`` the likelihood of the Cox model is not a sum over rows.
    It has no weights, "auto" is the stratified reading alone where there are sets, and intervals
    are by the profile: with `firth` that of the penalised likelihood, whose estimate is finite if
    only one arm has the outcome.

    With ``frailty="gamma"`` or ``"lognormal"``, people of a `cluster` share a frailty, as in
    `riskset.CoxFrailty`, and the ratio compares people of the same cluster. There are no weights
    either, "auto" is the stratified reading alone where there are sets, and intervals are Wald
    intervals of the penalised likelihood, which take the variance of the frailties as known.

    Parameters
    ----------
    y : (n,) structured array
        `riskset.Surv(time, status)` of the whole population: days at risk, including the first and
        the last day; 0 = censored, 1 = outcome, 2 = competing event, or labels. With `entry`, rows
        are at risk after it (left truncation); not for "logistic".
    adjustment : Adjustment or Population
    settings : OutcomeModel
    cause : int or str, optional
        Code or label of the outcome in `y`. All other events compete with it. Required if `y` has
        labels; otherwise 1 is the outcome and 2 a competing event.
    covariates : Design, data frame, matrix or array (n, p), optional
        Covariates to adjust for.
    interactions : Design, data frame, matrix or array (n, k), optional
        Covariates with which the effect may differ, such as a binary column of a subgroup. Each
        covariate and its product with the treatment enter the model; `subgroups` has the results.
        Products without a finite estimate are left out and named.
    readjust : callable, optional
        Function for each resample: it receives row numbers, some of them repeated, and returns the
        adjustment of these rows, so that the interval accounts for the uncertainty of the
        propensity scores. Only for models without covariates.
    score_covariates : Design, data frame, matrix or array (n, p), optional
        Covariates of the propensity score, an unpenalised logistic model of the weighted people,
        for `interval="stacked"`. Not with `interactions`.
    cluster : (n,) labels, optional
        Clusters of people who share a frailty, such as hospitals; required with `frailty`.
    checkpoint : path, optional
        File for the replicates of the cross-validation, as for `riskset.CoxCV`. Each reading has a
        separate file: for "work.jsonl", "work-marginal.jsonl".
    strict : bool
        Raise an error instead of returning a status other than "ok".

    Returns
    -------
    Estimate
        ``se`` is the robust standard error, or the width of the interval divided by 2 z.

    Raises
    ------
    CohortError
        "BadOutcome", "BadCovariates", "BadSetting", "BadAdjustment"; with `strict`, a status other
        than "ok".

    Notes
    -----
    Problems of the data are a status with its `reason`, not an exception (unless `strict`), so that
    an analysis of many outcomes does not stop.

    References
    ----------
    Austin (2014), Statistics in Medicine 33, 1242-1258, doi:10.1002/sim.5984.
    Lin and Wei (1989), Journal of the American Statistical Association 84, 1074-1078,
    doi:10.1080/01621459.1989.10478874.
    Hajage et al. (2018), Biometrical Journal 60, 1151-1163, doi:10.1002/bimj.201700330, and Shu,
    Young, Toh and Wang (2021), Biometrics 77, 1101-1117, doi:10.1111/biom.13332, on "stacked".
    Conditional logistic regression: Gail, Lubin and Rubinstein (1981), Biometrika 68, 703-707,
    doi:10.1093/biomet/68.3.703. Firth's penalty: Heinze and Schemper (2001), Biometrics 57,
    114-119, doi:10.1111/j.0006-341X.2001.00114.x.

    Examples
    --------
    >>> import riskset as rs
    >>> people = rs.cohort.Population([1, 0, 1, 0, 1, 0], [0.5] * 6)
    >>> y = rs.Surv([3, 5, 8, 2, 9, 7], [1, 1, 0, 1, 1, 0])
    >>> rs.cohort.fit_outcome(y, people)
    Estimate(cox, marginal: hazard ratio 0.434 (95% profile interval 0.020 to 4.574))
    >>> rs.cohort.fit_outcome(y, people, model="poisson")
    Estimate(poisson, marginal: rate ratio 0.700 (95% profile interval 0.084 to 5.831))
    """
    adjustment = start(adjustment, allow_weights=True)
    wanted = _readings(adjustment, settings)
    _check(settings, adjustment, readjust)
    outcomes = Outcomes.read(y, adjustment, cause, allow_late=True)
    n = outcomes.time.size
    extra, groups = (
        None if given is None else as_design(given, n) for given in (covariates, interactions)
    )
    if checkpoint is not None and not settings.chooses_penalty:
        raise bad_setting(
            "checkpoint",
            "`checkpoint` keeps replicates of a cross-validation, but there is none.",
            hint="leave it out, or use a penalty without a strength, such as `penalty='l1'`.",
        )
    for given in (extra, groups):
        if given is not None and TREATMENT in given.names:
            raise CohortError(
                "BadCovariates",
                f"a covariate is called {TREATMENT!r}, which is the name of the treatment in the "
                "model.",
                hint="rename it; leave it out if it is the treatment itself.",
            )
    if settings.held and extra is None:
        raise bad_setting(
            "fixed",
            "`fixed` holds coefficients of `covariates`, but there are none.",
            hint="pass the covariates that it names.",
            value=settings.fixed,
        )
    if readjust is not None and (extra is not None or groups is not None):
        raise CohortError(
            "BadSetting",
            "resamples that are adjusted anew have no covariates in the model.",
            hint="leave `readjust` out, or the covariates and interactions.",
        )
    # The effect itself is that of the first level of each category.
    beside = OutcomeCovariates(
        extra,
        None if groups is None else without_references(groups, None),
        checkpoint,
        _score(adjustment, settings, score_covariates, has_groups=groups is not None),
        _cluster_labels(cluster, n, settings),
    )
    found = [_estimate(outcomes, adjustment, beside, r, settings, readjust) for r in wanted]
    first = found[0] if len(found) == 1 else replace(found[0], sensitivity=found[1])
    if strict and first.status != "ok":
        raise CohortError(
            first.status,
            f"the {first.reading} estimate has the status {first.status!r}: {first.reason}",
            hint="leave `strict` out to get the counts all the same.",
        )
    return first


def _score(
    adjustment: Adjustment, settings: OutcomeModel, covariates: object, *, has_groups: bool
) -> EstimatedScore | None:
    """The model of the scores, if the interval is stacked."""
    check_score_covariates(settings.interval, covariates)
    if settings.interval != "stacked":
        return None
    if has_groups:
        raise bad_setting(
            "interval",
            "there are no stacked intervals of interactions.",
            hint="use `interval='robust'`, or leave the interactions out.",
        )
    return score_of_weights(adjustment, covariates) if adjustment.status == "ok" else None


def _cluster_labels(cluster: object, n: int, settings: OutcomeModel) -> AnyArray | None:
    """Who share a frailty."""
    if settings.frailty is None and cluster is not None:
        raise bad_setting(
            "cluster",
            "`cluster` has clusters of people who share a frailty, but there are no frailties.",
            hint="add `frailty='gamma'`, or leave it out. Robust intervals go by the `person_id` "
            "of the population.",
        )
    if settings.frailty is not None and cluster is None:
        raise bad_setting(
            "cluster",
            "a frailty needs the cluster of each person, but `cluster` is missing.",
            hint="pass `cluster`, such as the hospital of each person.",
        )
    return (
        None
        if cluster is None
        else as_labels(cluster, "cluster", n, Places({"cluster": "`cluster`"}))
    )


def _readings(adjustment: Adjustment, settings: OutcomeModel) -> list[Reading]:
    """The readings to fit."""
    reading = settings.reading
    if reading == "stratified" and adjustment.set_id is None:
        raise CohortError(
            "BadSetting",
            f"a stratified reading needs sets, but the adjustment is by {adjustment.kind}.",
            hint="use `reading='marginal'`, or match or stratify.",
        )
    is_sampled = adjustment.population.has_sampling_weight
    if is_sampled and reading in ("stratified", "pooled"):
        raise CohortError(
            "BadSetting",
            f"a {reading} reading has no weights, but the population has sampling weights.",
            hint="use `reading='marginal'`.",
        )
    sets = None if adjustment.set_id is None else adjustment.kind
    return readings_of(settings, sets, is_sampled=is_sampled)


def _check(settings: OutcomeModel, adjustment: Adjustment, readjust: Readjust | None) -> None:
    """Refuse what does not go with the adjustment, and weights and sets that are not valid."""
    _check_adjustment(adjustment)
    if settings.censoring_group == "stratum" and adjustment.set_id is None:
        raise bad_setting(
            "censoring_group",
            f"censoring by stratum needs strata, but the adjustment is by {adjustment.kind}.",
            hint="use `censoring_group='arm'`, or leave it out.",
        )
    if readjust is not None and settings.interval != "bootstrap":
        raise bad_setting(
            "readjust",
            "`readjust` adjusts resamples, but the interval does not use any.",
            hint="add `interval='bootstrap'`, or leave `readjust` out.",
        )


def _check_adjustment(adjustment: Adjustment) -> None:
    weight = adjustment.weight
    if not (np.isfinite(weight) & (weight >= 0)).all():
        raise CohortError(
            "BadAdjustment",
            "weights must be finite and not negative, but those of the adjustment are not.",
            hint="make it with trim, match, stratify or weight.",
        )
    is_full = adjustment.details.get("method") == "full"
    if adjustment.kind != "matching" or adjustment.set_id is None or is_full:
        return
    alone = 1 if adjustment.estimand == "atu" else 0
    own = adjustment.arms[alone]
    sets, times = np.unique(adjustment.set_id[own], return_counts=True)
    several = sets[times > 1]
    if several.size:
        word = ("target", "comparator")[alone]
        raise CohortError(
            "BadAdjustment",
            "{n:matched set has|matched sets have} more than one {arm} (first: set {set}).",
            hint="make sets with riskset.cohort.match, or call the adjustment a stratification.",
            details={"sets": several[:3].tolist(), "count": int(several.size)},
            values={
                "n": Value("count", several.size),
                "arm": Value("name", word),
                "set": Value("measure", several[0]),
            },
        )


def _estimate(
    outcomes: Outcomes,
    adjustment: Adjustment,
    covariates: OutcomeCovariates,
    reading: Reading,
    settings: OutcomeModel,
    readjust: Readjust | None,
) -> Estimate:
    target, comparator = count_arms(outcomes, adjustment)
    informative = None
    if reading == "stratified":
        informative = _informative(outcomes, adjustment, SCALES[settings.model])
    empty = Estimate(
        settings.model,
        reading,
        adjustment.estimand,
        "ok",
        target,
        comparator,
        level=settings.level,
        informative_strata=None if informative is None else informative[0],
        informative_people=None if informative is None else informative[1],
        notes=adjustment.notes,
    )
    status = _status(empty, adjustment, settings)
    if status != "ok":
        return replace(empty, status=status)
    if target.outcomes + comparator.outcomes < FEW_EVENTS:
        limit = {"limit": Value("setting", FEW_EVENTS)}
        few = Note("few_events", (), "there are fewer than {limit} outcomes.", limit)
        empty = replace(empty, notes=(*empty.notes, few))
    if is_biased(settings, reading, adjustment.kind):
        empty = replace(empty, notes=(*empty.notes, Note("poisson_sets", (), POISSON_SETS)))
    return fitted(outcomes, adjustment, covariates, settings, empty, readjust)


def _status(empty: Estimate, adjustment: Adjustment, settings: OutcomeModel) -> EstimateStatus:
    n1, n0 = empty.target.exposures, empty.comparator.exposures
    if not n1 and not n0:
        return "no_people"
    if not n1 or not n0:
        return "one_arm_empty"
    if not empty.target.outcomes and not empty.comparator.outcomes:
        return "no_events"
    if empty.informative_strata == 0:
        return "no_informative_strata"
    units = np.unique(adjustment.cluster[adjustment.kept]).size
    if empty.informative_strata is not None and adjustment.kind == "matching":
        units = empty.informative_strata
    return "too_few_strata_for_cv" if settings.chooses_penalty and settings.folds > units else "ok"


def _informative(outcomes: Outcomes, adjustment: Adjustment, scale: EffectScale) -> tuple[int, int]:
    """Strata with both arms and an outcome, and the people in them.

    A stratum in which all have the outcome says nothing about their odds.
    """
    assert adjustment.set_id is not None
    kept = adjustment.kept
    codes, own = np.unique(adjustment.set_id[kept], return_inverse=True)
    size = np.bincount(own, minlength=codes.size)
    targets = np.bincount(own, adjustment.population.is_target[kept], codes.size)
    events = np.bincount(own, outcomes.status[kept] == 1, codes.size)
    chosen = (targets > 0) & (targets < size) & (events > 0)
    if scale == "odds":
        chosen &= events < size
    return int(np.count_nonzero(chosen)), int(size[chosen].sum())
