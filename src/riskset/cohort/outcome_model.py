"""The effect of the treatment on an outcome, with the weights and sets of an adjustment."""

import os
from dataclasses import replace
from typing import Literal

import numpy as np

from riskset._errors import CohortError
from riskset._messages import Note
from riskset.cohort.adjustment import Adjustment, People, start
from riskset.cohort.covariates import as_design
from riskset.cohort.estimate import Estimate, EstimateStatus, Model, Reading
from riskset.cohort.outcome_data import Covariates
from riskset.cohort.outcome_fit import fitted
from riskset.cohort.outcome_options import (
    CensoringGroup,
    Options,
    OutcomeInterval,
    ProfileGrid,
    Readjust,
    check_options,
    readings,
)
from riskset.cohort.outcomes import Outcomes, count_arms
from riskset.model.penalty import Penalty
from riskset.model.references import without_references

__all__ = ["fit_outcome"]

FEW_EVENTS = 5


def fit_outcome(
    y: object,
    adjustment: People,
    model: Model = "cox",
    *,
    cause: int | str | None = None,
    reading: Literal["auto"] | Reading = "auto",
    covariates: object = None,
    interactions: object = None,
    penalty: Penalty | None = None,
    cross_validate: bool = False,
    folds: int = 10,
    repeats: int = 10,
    tidy: bool = True,
    ties: Literal["breslow", "efron"] = "breslow",
    interval: OutcomeInterval = "auto",
    level: float = 0.95,
    censoring_weights: Literal["none", "case"] = "none",
    censoring_group: CensoringGroup | None = None,
    profile: ProfileGrid | None = None,
    time_intervals: int = 0,
    replicates: int = 200,
    readjust: Readjust | None = None,
    seed: int = 1,
    checkpoint: str | os.PathLike[str] | None = None,
    strict: bool = False,
    tol: float = 1e-8,
) -> Estimate:
    r"""Hazard ratio of the target against the comparator.

    Parameters
    ----------
    y : (n,) structured array
        `riskset.Surv(time, status)` of the whole population: days at risk, both ends counted; 0 =
        censored, 1 = outcome, 2 = competing event, or labels.
    adjustment : Adjustment or Population
    model : {"cox", "cause-specific", "finegray"}
        The hazard, competing events censoring it (two names of one model), or the subdistribution
        hazard.
    cause : int or str, optional
        Code or label of the outcome in `y`. All other events compete with it. Required if `y` has
        labels; otherwise 1 is the outcome and 2 a competing event.
    reading : {"auto", "stratified", "marginal", "pooled"}
        "stratified": each stratum or matched set has a baseline of its own, and nobody a weight.
        "marginal": one baseline, with the weights of the adjustment, and rows of a set or person
        belonging together. "pooled": the same with everybody kept counting once. "auto": stratified
        where there are sets, with the marginal reading as `sensitivity`, for the two estimate
        different things; else marginal.
    covariates : Design, data frame, matrix or array (n, p), optional
        Adjust for these, too.
    interactions : Design, data frame, matrix or array (n, k), optional
        Covariates with which the effect may differ, such as a column of zeros and ones for a
        subgroup: each and its product with the treatment enter the model, and `subgroups` has what
        is found. Products without a finite estimate are left out and named.
    penalty : L1, L2 or ElasticNet, optional
        For the covariates; the treatment and the `interactions` have none.
    cross_validate : bool
        For many covariates: tidy them among the people left, by `tidy`, and choose the strength of
        the penalty (default: L1) by cross-validation. Matched sets and persons stay in one fold.
    folds, repeats
        As for `riskset.CoxCV`.
    tidy : bool
        Whether `cross_validate` tidies; False if they are tidy already.
    ties : {"breslow", "efron"}
        Of Cox's model.
    interval : {"auto", "profile", "robust", "wald", "bootstrap"}
        "auto": robust where there are weights, sets or people who enter twice, and for "finegray";
        else by the profile likelihood, as for stratified readings and with a penalty.
    level : float
    censoring_weights : {"none", "case"}
        Whether weights count in the censoring distribution of "finegray".
    censoring_group : {"arm", "stratum"}, optional
        Estimate the censoring distribution of "finegray" in each by itself.
    profile : {"adaptive", "grid"}, optional
        Keep the profile likelihood of log hazard ratios from log(0.1) to log(10), for evidence
        synthesis: at up to 1000 values between which linear interpolation is good, or at 8, whose
        derivatives make up for it. It takes weights for numbers of people.
    time_intervals : int
        Look how the log hazard ratio differs between at most so many intervals of time with equal
        numbers of outcomes, at least 20 in each; 0 does not look.
    replicates, seed
        Of the bootstrap, which resamples sets or people.
    readjust : callable, optional
        What to do with each resample before the fit: it is given row numbers, some of them
        repeated, and returns the adjustment of these rows, so that the interval counts the
        uncertainty of the propensity scores, too. Of a model without covariates.
    checkpoint : path, optional
        Keep the replicates of the cross-validation, as for `riskset.CoxCV`. Each reading has a file
        of its own: "work.jsonl" is "work-marginal.jsonl".
    strict : bool
        Raise instead of returning a status other than "ok".
    tol : float
        Of the fit.

    Returns
    -------
    Estimate
        ``se`` is the robust standard error, or the width of the interval over 2 z.

    Raises
    ------
    CohortError
        "BadOutcome", "BadCovariates", "BadSetting", "BadAdjustment"; with `strict`, a status other
        than "ok".

    Notes
    -----
    What goes wrong with the data is a status with its `reason`, never an exception, unless
    `strict`: a run over many outcomes does not stop.

    References
    ----------
    Austin (2014), Statistics in Medicine 33, 1242-1258, doi:10.1002/sim.5984.
    Lin and Wei (1989), Journal of the American Statistical Association 84, 1074-1078,
    doi:10.1080/01621459.1989.10478874.

    Examples
    --------
    >>> import riskset as rs
    >>> people = rs.cohort.Population([1, 0, 1, 0, 1, 0], [0.5] * 6)
    >>> y = rs.Surv([3, 5, 8, 2, 9, 7], [1, 1, 0, 1, 1, 0])
    >>> rs.cohort.fit_outcome(y, people)
    Estimate(cox, marginal: hazard ratio 0.434 (95% profile interval 0.020 to 4.574))
    """
    adjustment = start(adjustment, allow_weights=True)
    options = Options(
        model,
        interval,
        level,
        ties,
        penalty,
        cross_validate,
        folds,
        repeats,
        censoring_weights,
        censoring_group,
        profile,
        replicates,
        readjust,
        seed,
        tol,
        time_intervals,
        checkpoint,
        tidy,
    )
    wanted = readings(adjustment, reading)
    check_options(options, adjustment)
    outcomes = Outcomes.read(y, adjustment, cause)
    n = outcomes.time.size
    extra, groups = (
        None if given is None else as_design(given, n) for given in (covariates, interactions)
    )
    if readjust is not None and (extra is not None or groups is not None):
        raise CohortError(
            "BadSetting",
            "resamples that are adjusted anew have no covariates in the model.",
            hint="leave `readjust` out, or the covariates and interactions.",
        )
    # The effect itself is that of the first level of each category.
    beside = Covariates(extra, None if groups is None else without_references(groups, None))
    found = [_estimate(outcomes, adjustment, beside, r, options) for r in wanted]
    first = found[0] if len(found) == 1 else replace(found[0], sensitivity=found[1])
    if strict and first.status != "ok":
        raise CohortError(
            first.status,
            f"the {first.reading} estimate has the status {first.status!r}: {first.reason}",
            hint="leave `strict` out to get the counts all the same.",
        )
    return first


def _estimate(
    outcomes: Outcomes,
    adjustment: Adjustment,
    covariates: Covariates,
    reading: Reading,
    options: Options,
) -> Estimate:
    target, comparator = count_arms(outcomes, adjustment)
    informative = _informative(outcomes, adjustment) if reading == "stratified" else None
    empty = Estimate(
        options.model,
        reading,
        adjustment.estimand,
        "ok",
        target,
        comparator,
        level=options.level,
        informative_strata=None if informative is None else informative[0],
        informative_people=None if informative is None else informative[1],
        notes=adjustment.notes,
    )
    status = _status(empty, adjustment, options)
    if status != "ok":
        return replace(empty, status=status)
    if target.outcomes + comparator.outcomes < FEW_EVENTS:
        few = Note("few_events", (), f"there are fewer than {FEW_EVENTS} outcomes.")
        empty = replace(empty, notes=(*empty.notes, few))
    return fitted(outcomes, adjustment, covariates, options, empty)


def _status(empty: Estimate, adjustment: Adjustment, options: Options) -> EstimateStatus:
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
    return "too_few_strata_for_cv" if options.cross_validate and options.folds > units else "ok"


def _informative(outcomes: Outcomes, adjustment: Adjustment) -> tuple[int, int]:
    """Strata with both arms and an outcome, and the people in them."""
    assert adjustment.set_id is not None
    kept = adjustment.kept
    codes, own = np.unique(adjustment.set_id[kept], return_inverse=True)
    size = np.bincount(own, minlength=codes.size)
    targets = np.bincount(own, adjustment.population.is_target[kept], codes.size)
    events = np.bincount(own, outcomes.status[kept] == 1, codes.size)
    chosen = (targets > 0) & (targets < size) & (events > 0)
    return int(np.count_nonzero(chosen)), int(size[chosen].sum())
