"""The effect of the treatment on an outcome, with the weights and sets of an adjustment."""

import warnings
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from scipy.special import ndtr, ndtri

from riskset._errors import CohortError
from riskset._types import AnyArray, Index, Rows
from riskset.cohort.adjustment import Adjustment, People, start
from riskset.cohort.covariates import as_design
from riskset.cohort.estimate import Estimate, EstimateStatus, Model, Reading
from riskset.cohort.outcome_options import (
    CensoringGroup,
    Options,
    OutcomeInterval,
    check_options,
    readings,
)
from riskset.cohort.outcomes import Outcomes, count_arms
from riskset.data.design import Design
from riskset.data.outcome import Surv
from riskset.estimators.cox import Cox
from riskset.estimators.finegray import FineGray
from riskset.estimators.profiling import profile
from riskset.model.penalty import Penalty
from riskset.solve.result import Note

__all__ = ["fit_outcome"]

TREATMENT = "treatment"
FEW_EVENTS = 5


def fit_outcome(
    y: object,
    adjustment: People,
    model: Model = "cox",
    *,
    reading: Literal["auto"] | Reading = "auto",
    covariates: object = None,
    penalty: Penalty | None = None,
    ties: Literal["breslow", "efron"] = "breslow",
    interval: OutcomeInterval = "auto",
    level: float = 0.95,
    censoring_weights: Literal["none", "case"] = "none",
    censoring_group: CensoringGroup | None = None,
    replicates: int = 200,
    seed: int = 1,
    strict: bool = False,
    tol: float = 1e-8,
) -> Estimate:
    r"""Hazard ratio of the target against the comparator.

    Parameters
    ----------
    y : (n,) structured array
        `riskset.Surv(time, status)` of the whole population: days at risk, both ends counted; 0 =
        censored, 1 = outcome, 2 = competing event.
    adjustment : Adjustment or Population
    model : {"cox", "cause-specific", "finegray"}
        The hazard, competing events censoring it (two names of one model), or the subdistribution
        hazard.
    reading : {"auto", "stratified", "marginal", "pooled"}
        "stratified": each stratum or matched set has a baseline of its own, and nobody a weight.
        "marginal": one baseline, with the weights of the adjustment, and rows of a set or person
        belonging together. "pooled": the same with everybody kept counting once. "auto": stratified
        where there are sets, with the marginal reading as `sensitivity`, for the two estimate
        different things; else marginal.
    covariates : Design, data frame, matrix or array (n, p), optional
        Adjust for these, too.
    penalty : L1, L2 or ElasticNet, optional
        For the covariates; it must leave "treatment" unpenalised.
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
    replicates, seed
        Of the bootstrap, which resamples sets or people.
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
        "BadOutcome", "BadCovariates", "BadSetting", "BadAdjustment"; with `strict`, the status.

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
        censoring_weights,
        censoring_group,
        replicates,
        seed,
        tol,
    )
    wanted = readings(adjustment, reading)
    check_options(options, adjustment)
    outcomes = Outcomes.read(y, adjustment)
    extra = None if covariates is None else as_design(covariates, outcomes.time.size)
    found = [_estimate(outcomes, adjustment, extra, r, options) for r in wanted]
    first = found[0] if len(found) == 1 else replace(found[0], sensitivity=found[1])
    if strict and first.status != "ok":
        raise CohortError(
            first.status,
            f"the {first.reading} estimate has the status {first.status!r}.",
            hint="leave `strict` out to get the counts all the same.",
        )
    return first


def _estimate(
    outcomes: Outcomes,
    adjustment: Adjustment,
    extra: Design | None,
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
    status = _status(empty)
    if status != "ok":
        return replace(empty, status=status)
    if target.outcomes + comparator.outcomes < FEW_EVENTS:
        few = Note("few_events", (), f"there are fewer than {FEW_EVENTS} outcomes.")
        empty = replace(empty, notes=(*empty.notes, few))
    return _fitted(outcomes, adjustment, extra, options, empty)


def _status(empty: Estimate) -> EstimateStatus:
    n1, n0 = empty.target.exposures, empty.comparator.exposures
    if not n1 and not n0:
        return "no_people"
    if not n1 or not n0:
        return "one_arm_empty"
    if not empty.target.outcomes and not empty.comparator.outcomes:
        return "no_events"
    return "no_informative_strata" if empty.informative_strata == 0 else "ok"


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


def _fitted(
    outcomes: Outcomes,
    adjustment: Adjustment,
    extra: Design | None,
    options: Options,
    empty: Estimate,
) -> Estimate:
    rows = np.flatnonzero(adjustment.kept)
    treatment = adjustment.population.treatment[rows].astype(np.float64)
    design = Design.from_columns({TREATMENT: treatment})
    if extra is not None:
        design = Design.stack([design, extra.take_rows(rows)])
    reading = empty.reading
    kind = _interval_kind(adjustment, rows, reading, options)
    weight = adjustment.weight[rows] if _is_weighted(adjustment, reading) else None
    strata = (
        adjustment.set_id[rows]
        if reading == "stratified" and adjustment.set_id is not None
        else None
    )
    cluster = adjustment.cluster[rows] if kind != "profile" else None
    y = Surv(outcomes.time[rows], outcomes.status[rows])
    model = _estimator(adjustment, rows, options, design)
    arguments: dict[str, Any] = {"sample_weight": weight, "strata": strata, "cluster": cluster}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the status and the notes say it
        model.fit(design, y, **arguments)
        return _answer(model, design, y, arguments, kind, options, empty)


def _answer(
    model: Cox | FineGray,
    design: Design,
    y: AnyArray,
    arguments: dict[str, Any],
    kind: str,
    options: Options,
    empty: Estimate,
) -> Estimate:
    b = float(model.coef_[0])
    is_infinite = bool(np.isinf(b))
    if model.status_ == "max_iter":
        return replace(empty, status="not_converged")
    aliased = any(
        TREATMENT in n.columns for n in model.notes_ if n.code in ("constant", "collinear")
    )
    if model.status_ == "not_estimable" or (aliased and not is_infinite):
        stratified = empty.reading == "stratified" and design.n_features == 1
        return replace(empty, status="no_informative_strata" if stratified else "not_estimable")
    se_model, se_robust = float(model.standard_error_[0]), float(model.robust_standard_error_[0])
    found = replace(
        empty,
        log_hr=b,
        interval=kind,
        log_likelihood=model.log_likelihood_,
        null_log_likelihood=model.null_log_likelihood_,
        notes=(*empty.notes, *model.notes_),
    )
    if is_infinite:
        return _one_sided(found, model, arguments)
    if design.n_features == 1:
        llr = model.log_likelihood_ - model.null_log_likelihood_
    else:
        at_one = profile(model, design, y, TREATMENT, grid=[0.0], **arguments)
        llr = at_one.log_likelihood_maximum - float(at_one.log_likelihood[0])
    is_drawn = kind == "bootstrap"
    ends = model.confidence_interval(
        [TREATMENT],
        method=kind,
        level=options.level,
        replicates=options.replicates if is_drawn else None,
        seed=options.seed if is_drawn else None,
    )
    lower, upper = (float(end) for end in ends[TREATMENT])
    changing = float("nan")
    if options.penalty is None:
        test = model.test_proportionality(design, y, "log", **arguments)
        changing = float(test.p_value[0])
    z = float(ndtri(0.5 + options.level / 2))
    se = {"robust": se_robust, "wald": se_model}.get(kind, (upper - lower) / (2 * z))
    if not np.isfinite(se):
        open_end = Note("ci_open", (), "the interval has no end on one side.")
        found, se = replace(found, notes=(*found.notes, open_end)), float("nan")
    return replace(
        found,
        lower=lower,
        upper=upper,
        se=se,
        se_model=se_model,
        se_robust=se_robust,
        p=float(2 * ndtr(-abs(b / se))),
        one_sided_p=float(ndtr(-b / se)),
        llr=llr,
        proportionality_p=changing,
    )


def _one_sided(found: Estimate, model: Cox | FineGray, arguments: dict[str, Any]) -> Estimate:
    """An infinite estimate: the profile likelihood bounds it on one side, weights being counts."""
    lower = upper = float("nan")
    kind = None
    if arguments["sample_weight"] is None:
        ends = model.confidence_interval([TREATMENT], method="profile", level=found.level)
        lower, upper = (float(end) for end in ends[TREATMENT])
        kind = "profile"
    return replace(
        found,
        status="events_in_one_arm",
        lower=lower,
        upper=upper,
        interval=kind,
        llr=model.log_likelihood_ - model.null_log_likelihood_,
    )


def _interval_kind(adjustment: Adjustment, rows: Index, reading: Reading, options: Options) -> str:
    if options.penalty is not None and options.interval in ("auto", "profile"):
        return "profile"
    if options.interval != "auto":
        return options.interval
    person = adjustment.population.person_id[rows]
    repeats = np.unique(person).size < person.size
    in_sets = adjustment.kind == "matching" and reading != "stratified"
    weighted = _is_weighted(adjustment, reading)
    robust = repeats or in_sets or weighted or options.model == "finegray"
    return "robust" if robust else "profile"


def _is_weighted(adjustment: Adjustment, reading: Reading) -> bool:
    weight = adjustment.weight[adjustment.kept]
    return reading == "marginal" and bool((weight != 1).any())


def _estimator(
    adjustment: Adjustment, rows: Index, options: Options, design: Design
) -> Cox | FineGray:
    if options.penalty is not None and any(a[0] for a in options.penalty.arrays(design.names)):
        raise CohortError(
            "BadSetting",
            "`penalty` must leave the treatment alone, or its effect is shrunk.",
            hint=f"add unpenalized=[{TREATMENT!r}] to the penalty.",
        )
    if options.model != "finegray":
        return Cox(options.penalty, ties=options.ties, cause=1, tol=options.tol)  # type: ignore[arg-type]
    groups: dict[str | None, Rows | Index | None] = {
        None: None,
        "arm": adjustment.population.treatment,
        "stratum": adjustment.set_id,
    }
    group = groups[options.censoring_group]
    return FineGray(
        options.penalty,
        cause=1,
        censoring_weights=options.censoring_weights,  # type: ignore[arg-type]
        censoring_group=None if group is None else group[rows],
        tol=options.tol,
    )
