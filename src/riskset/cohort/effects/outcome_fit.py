"""One fit of an outcome model, and what it says of the treatment."""

import copy
import warnings
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from riskset._errors import InputError
from riskset._messages import Note, Value
from riskset._runtime import one_blas_thread
from riskset._types import Rows
from riskset.cohort.adjustments.adjustment import Adjustment
from riskset.cohort.effects.estimate import Estimate, EstimateStatus, LikelihoodProfile, Subgroup
from riskset.cohort.effects.outcome_data import (
    ROBUST,
    TREATMENT,
    FitData,
    OutcomeCovariates,
    OutcomeEstimator,
    fit_data,
    has_one_cluster,
)
from riskset.cohort.effects.time_effect import (
    TimeEffect,
    beyond_outcomes,
    function_name,
    no_time_effect,
    round_times,
    steps_of,
)
from riskset.cohort.outcomes import Outcomes, count_arms
from riskset.cohort.propensity.estimated_score import EstimatedScore
from riskset.cohort.resampling import Readjust, readjusted
from riskset.cohort.settings import OutcomeModel
from riskset.data.column_statistics import select_columns
from riskset.estimators.cox import Cox
from riskset.estimators.finegray import FineGray
from riskset.estimators.frailty import CoxFrailty
from riskset.estimators.profiling import BOUNDS, profile
from riskset.estimators.time_effects import TimeEffectCox
from riskset.infer.bootstrap_intervals import interval_ends
from riskset.infer.firth_interval import firth_gain
from riskset.infer.over_time import EffectOverTime, effect_over_time
from riskset.infer.residuals import pieces_at
from riskset.infer.variance import influence
from riskset.infer.wald import normal_quantile
from riskset.solve.result import UNCERTIFIED

__all__ = ["answer", "fitted", "with_interval"]

GRID_VALUES = 8
"""Values of the coarse profile, with whose derivatives it is known well enough in between."""

NAN = float("nan")
Ends = dict[str, tuple[float, float]]


def fitted(
    outcomes: Outcomes,
    adjustment: Adjustment,
    covariates: OutcomeCovariates,
    settings: OutcomeModel,
    empty: Estimate,
    readjust: Readjust | None,
) -> Estimate:
    """The estimate of one reading, whose counts are there already."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the status and the notes say it
        data = fit_data(outcomes, adjustment, covariates, empty.reading, settings)
        model, data, separable = _fit(data)
        first = data.design.n_features - data.n_covariates
        known = {note.code for note in data.notes}  # in the words of the model
        found = replace(
            empty,
            notes=(
                *empty.notes,
                *data.notes,
                *_separable_notes(separable),
                *(note for note in model.notes_ if note.code not in known),
            ),
            penalty=model.penalty,
            cross_validation=data.cross_validation,
            kkt=float(model.kkt_),
            names=data.design.names[first:],
            keys=data.design.keys[first:],
            coef=data.covariate_coef(model.coef_),
        )
        found, ends = answer(model, data, settings, found, readjust is not None)
        found = replace(found, notes=(*found.notes, *_notes_of_firth(settings, found)))
        if covariates.groups is not None:
            inside = covariates.groups.to_dense().T != 0
            groups = [
                _subgroup(
                    Subgroup(name, *count_arms(outcomes, _part(adjustment, rows))),
                    model,
                    data,
                    ends,
                    found,
                )
                for name, rows in zip(covariates.groups.names, inside, strict=True)
            ]
            found = replace(found, subgroups=tuple(groups))
        if readjust is not None and found.status == "ok":
            found = _resampled(found, outcomes, adjustment, settings, readjust)
    return found


def _fit(data: FitData) -> tuple[OutcomeEstimator, FitData, list[str]]:
    """The model without those interactions that have no finite estimate."""
    separable: list[str] = []
    while True:
        model = data.estimator.fit(data.design, data.y, **data.arguments)
        aliased = {name for note in model.notes_ if _is_aliased(note) for name in note.columns}
        lost = [
            name
            for name, product in data.interactions.items()
            if product in aliased or np.isinf(model.coef_[data.design.index_of(product)])
        ]
        if not lost:
            return model, data, separable
        separable += lost
        data = data.without(lost)


def _notes_of_firth(settings: OutcomeModel, found: Estimate) -> list[Note]:
    """That the ratio is finite although the likelihood has no maximum."""
    outcomes = (found.target.outcomes, found.comparator.outcomes)
    if not settings.firth or settings.whole_likelihood is None or all(outcomes):
        return []
    text = "only one arm has the outcome; the ratio is finite because of Firth's penalty."
    return [Note("finite_by_penalty", (), text)]


def _is_aliased(note: Note) -> bool:
    return note.code in ("constant", "collinear")


def _separable_notes(names: Sequence[str]) -> list[Note]:
    if not names:
        return []
    text = (
        "no finite interaction with {names}, which were left out: an arm of the subgroup has no "
        "outcome, or no people."
    )
    values = {"names": Value("name", ", ".join(map(repr, names)))}
    return [Note("separable_interaction", tuple(names), text, values)]


def answer(
    model: OutcomeEstimator,
    data: FitData,
    settings: OutcomeModel,
    found: Estimate,
    is_resampled: bool,
) -> tuple[Estimate, Ends]:
    """The estimate, and the intervals of the treatment and its interactions by their names."""
    b = float(model.coef_[0])
    if model.status_ in UNCERTIFIED:
        return replace(found, status="not_converged"), {}
    aliased = any(TREATMENT in n.columns for n in model.notes_ if _is_aliased(n))
    if model.status_ == "not_estimable" or (aliased and not np.isinf(b)):
        stratified = found.reading == "stratified" and data.design.n_features == 1
        status: EstimateStatus = "no_informative_strata" if stratified else "not_estimable"
        return replace(found, status=status), {}
    if has_one_cluster(data):
        return replace(found, status="one_cluster"), {}
    found = replace(
        found,
        log_hr=b,
        interval=data.kind,
        log_likelihood=_log_likelihood(model) + data.constant,
        null_log_likelihood=model.null_log_likelihood_ + data.constant,
    )
    if isinstance(model, CoxFrailty):
        return _with_frailties(found, model, data)
    if settings.profile is not None:
        found = replace(found, profile=_profile(model, data, settings.profile))
    if np.isinf(b):
        return _one_sided(found, model, data), {}
    changing = NAN
    has_test = found.scale == "hazard" and settings.whole_likelihood is None
    if not model._is_penalized and has_test:
        robust = data.kind in ROBUST
        test = model.test_proportionality(
            data.design, data.y, "log", robust=robust, **data.arguments
        )
        changing = float(test.p_value[0])
    se_model, se_robust = float(model.standard_error_[0]), float(model.robust_standard_error_[0])
    found = replace(
        found,
        llr=_llr(model, data),
        proportionality_p=changing,
        se_model=se_model,
        se_robust=se_robust,
        over_time=_over_time(model, data, settings.time_intervals),
    )
    found = _with_time_effect(found, model, data, settings)
    if is_resampled:
        return found, {}  # its interval is still to come
    if data.score is not None:
        se = stacked_error(model, data.score)
        half = normal_quantile(found.level) * se
        return with_interval(found, b - half, b + half, se), {}
    ends, lost = _ends(model, [TREATMENT, *data.interactions.values()], data.kind, settings)
    if lost:
        found = replace(found, notes=(*found.notes, _left_out(lost, settings.replicates)))
    se = {"robust": se_robust, "wald": se_model}.get(data.kind, NAN)
    return with_interval(found, *ends[TREATMENT], se), ends


def _log_likelihood(model: OutcomeEstimator) -> float:
    is_integrated = isinstance(model, CoxFrailty)
    return model.integrated_log_likelihood_ if is_integrated else model.log_likelihood_


def _with_frailties(found: Estimate, model: CoxFrailty, data: FitData) -> tuple[Estimate, Ends]:
    """The answer of a model with frailties, whose intervals are those of Wald."""
    found = replace(
        found,
        frailty_variance=model.frailty_variance_,
        frailty_p=model.frailty_test_.p_value,
        n_clusters=model.n_clusters_,
    )
    if np.isinf(found.log_hr):
        return replace(found, status="events_in_one_arm", interval=None), {}
    others = select_columns(data.design, np.arange(1, data.design.n_features))
    alone = copy.copy(model).fit(others, data.y, **data.arguments)
    llr = NAN
    if alone.status_ not in UNCERTIFIED:
        llr = model.integrated_log_likelihood_ - alone.integrated_log_likelihood_
    found = replace(found, llr=llr, se_model=float(model.standard_error_[0]))
    names = [TREATMENT, *data.interactions.values()]
    every = model.confidence_interval(names, level=found.level)
    ends = {name: (float(every[name][0]), float(every[name][1])) for name in names}
    return with_interval(found, *ends[TREATMENT], found.se_model), ends


def _over_time(model: Cox | FineGray, data: FitData, n: int) -> EffectOverTime | None:
    if not n:
        return None
    weight, strata, offset = (
        data.arguments.get(name) for name in ("sample_weight", "strata", "offset")
    )
    loss, design, eta = model._evaluated(data.design, data.y, weight, strata, offset, None)
    cluster = data.arguments["cluster"]
    return effect_over_time(loss, design, eta, 0, float(model.coef_[0]), n, cluster)


def _with_time_effect(
    found: Estimate, model: Cox | FineGray, data: FitData, settings: OutcomeModel
) -> Estimate:
    """With the effect as a function of time, or a note why there is none.

    Covariates that the model has left out are not in it.
    """
    asked = settings.time_effect
    if asked is None:
        return found
    assert isinstance(model, Cox)
    design = select_columns(data.design, np.flatnonzero(~model._not_estimated))
    changing = TimeEffectCox({TREATMENT: asked}, ties=model.ties, cause=model.cause, tol=model.tol)
    try:
        changing.fit(design, data.y, **data.arguments)
        if changing.status_ != "converged":
            return replace(found, notes=(*found.notes, no_time_effect()))
        is_robust = data.kind in ROBUST
        function, is_event = function_name(asked), data.y["event"] == (model.cause or 1)
        weight = data.arguments["sample_weight"]
        at = data.y["time"][is_event if weight is None else is_event & (weight > 0)]
        if isinstance(asked, tuple):
            start, time = steps_of(asked, float(at.max()))
            notes: tuple[Note, ...] = ()
        else:
            chosen = settings.effect_times or round_times(function, float(at.min()), at.max())
            start = time = np.array(chosen)
            notes = beyond_outcomes(time, at)
        effect = changing.effect(TREATMENT, time, robust=is_robust)
        effect = {name: np.asarray(effect[name]) for name in ("coef", "standard_error")}
        test = changing.test_constant_effects(TREATMENT, robust=is_robust)
    except InputError as error:
        return replace(found, notes=(*found.notes, no_time_effect(error)))
    over_time = TimeEffect(
        function, start, time, effect["coef"], effect["standard_error"],
        "robust" if is_robust else "wald", found.level, test,
    )  # fmt: skip
    return replace(found, time_effect=over_time, notes=(*found.notes, *notes))


def _llr(model: Cox | FineGray, data: FitData) -> float:
    """Log likelihood less that without the treatment, other columns re-estimated.

    With Firth's penalty, both are penalised.
    """
    if getattr(model, "firth", False):
        training = model._fitted.training
        own = (training.design, training.loss, training.solution)
        return firth_gain(*own, 0, model.max_iter)
    if data.design.n_features == 1:
        return float(model.log_likelihood_ - model.null_log_likelihood_)
    at_one = profile(model, data.design, data.y, TREATMENT, grid=[0.0], **data.arguments)
    return at_one.log_likelihood_maximum - float(at_one.log_likelihood[0])


def with_interval(found: Estimate, lower: float, upper: float, se: float) -> Estimate:
    """With an interval, the standard error that it stands for unless there is one, and p."""
    if np.isnan(se):
        se = (upper - lower) / (2 * float(ndtri(0.5 + found.level / 2)))
    if not np.isfinite(se):
        sides = "either side" if np.isinf(lower) and np.isinf(upper) else "one side"
        note = Note("ci_open", (), f"the interval has no end on {sides}.")
        if np.isnan(lower) and np.isnan(upper):
            note = Note(
                "no_interval", (), "there is no interval: too few resamples have an estimate."
            )
        found, se = replace(found, notes=(*found.notes, note)), NAN
    b = found.log_hr
    with np.errstate(divide="ignore"):
        p, one_sided_p = 2 * ndtr(-np.abs(np.divide(b, se))), ndtr(-np.divide(b, se))
    return replace(
        found, lower=lower, upper=upper, se=se, p=float(p), one_sided_p=float(one_sided_p)
    )


@one_blas_thread
def stacked_error(model: Cox | FineGray, score: EstimatedScore) -> float:
    """Standard error of the first coefficient with the estimation of the weights."""
    fitted, first = model._fitted, np.zeros(1, dtype=np.int64)
    design, eta = fitted.training.design, fitted.training.solution.eta
    loss, inverse = fitted.training.loss, fitted.covariance.inverse
    moved = influence(loss, design, eta, inverse, first)
    by_weight = None
    if loss.censoring is not None and loss.censoring.weights != "case":
        # G does not have the weights of the adjustment.
        combination = inverse.basis @ inverse.basis[0]
        values = design.product(combination, runtime=loss.runtime)[:, None]
        weight = loss.outcome.weight[:, None]
        by_weight = weight * pieces_at(loss, eta).score_residuals(values)
    sums = score.cluster_sums(moved, by_weight)
    return float(np.sqrt((sums**2).sum()) / design.scale[0])


def _ends(
    model: Cox | FineGray, names: Sequence[str], kind: str, settings: OutcomeModel
) -> tuple[Ends, int]:
    """The intervals of some columns, and the resamples without an estimate of one of them."""
    if kind == "bootstrap":
        drawn = model.bootstrap(settings.replicates, settings.seed, parameters=names)
        ends, lost = drawn.interval(settings.level), drawn.n_failed
    else:
        ends, lost = model.confidence_interval(names, method=kind, level=settings.level), 0
    return {name: (float(ends[name][0]), float(ends[name][1])) for name in names}, lost


def _left_out(lost: int, n: int) -> Note:
    return Note(
        "replicates_left_out",
        (),
        "{lost:,} of {n:resample has|resamples have} no estimate.",
        {"lost": Value("things", lost), "n": Value("things", n)},
    )


def _one_sided(found: Estimate, model: Cox | FineGray, data: FitData) -> Estimate:
    """An infinite estimate: the profile likelihood bounds it on one side, weights being counts."""
    lower = upper = NAN
    kind = None
    if data.arguments["sample_weight"] is None:
        ends = model.confidence_interval([TREATMENT], method="profile", level=found.level)
        lower, upper = (float(end) for end in ends[TREATMENT])
        kind = "profile"
    return replace(
        found,
        status="events_in_one_arm",
        lower=lower,
        upper=upper,
        interval=kind,
        llr=_llr(model, data),
    )


def _profile(model: Cox | FineGray, data: FitData, kind: str) -> LikelihoodProfile:
    grid = np.linspace(*BOUNDS, GRID_VALUES).tolist() if kind == "grid" else None
    own = profile(model, data.design, data.y, TREATMENT, grid=grid, **data.arguments)
    return LikelihoodProfile(own.values, own.log_likelihood + data.constant, own.derivative)


def _part(adjustment: Adjustment, rows: NDArray[np.bool_]) -> Adjustment:
    """Those kept of some rows, with their weights."""
    return replace(adjustment, weight=np.where(rows, adjustment.weight, 0.0))


def _subgroup(
    empty: Subgroup, model: OutcomeEstimator, data: FitData, ends: Ends, found: Estimate
) -> Subgroup:
    """A subgroup whose counts are there already."""
    if empty.name not in data.interactions:
        return replace(empty, is_separable=True)
    if found.status != "ok":
        return empty
    product = data.interactions[empty.name]
    j = data.design.index_of(product)
    own = replace(found, log_hr=float(model.coef_[j]), notes=())
    lower, upper = ends[product]
    se = NAN
    if data.kind in ("robust", "wald"):
        is_wald = data.kind == "wald"
        se = float((model.standard_error_ if is_wald else model.robust_standard_error_)[j])
    own = with_interval(own, lower, upper, se)
    is_robust = data.kind in ROBUST
    variance = model.robust_variance_ if is_robust else model.variance_
    both = float(variance[0, 0] + variance[j, j] + 2 * variance[0, j])
    return replace(
        empty,
        log_ratio=own.log_hr,
        lower=lower,
        upper=upper,
        se=own.se,
        p=own.p,
        log_hr=found.log_hr + own.log_hr,
        se_log_hr=float(np.sqrt(both)),
    )


def _resampled(
    found: Estimate,
    outcomes: Outcomes,
    adjustment: Adjustment,
    settings: OutcomeModel,
    readjust: Readjust,
) -> Estimate:
    """The percentile interval of resamples that are adjusted anew; infinite estimates count."""
    draws = []
    plain = replace(settings, interval="wald")
    for rows, made in readjusted(adjustment, readjust, settings.replicates, settings.seed):
        draws.append(_log_hr(outcomes.take(rows), made, plain, found))
    known: Rows = np.array([b for b in draws if not np.isnan(b)])
    if known.size < len(draws):
        note = _left_out(len(draws) - known.size, len(draws))
        found = replace(found, notes=(*found.notes, note))
    ends = interval_ends("percentile", found.log_hr, known, settings.level)
    return with_interval(found, ends.lower, ends.upper, NAN)


def _log_hr(outcomes: Outcomes, made: Adjustment, settings: OutcomeModel, found: Estimate) -> float:
    arms = count_arms(outcomes, made)
    if min(arm.exposures for arm in arms) == 0 or sum(arm.outcomes for arm in arms) == 0:
        return NAN
    if found.reading == "stratified" and made.set_id is None:
        return NAN
    data = fit_data(outcomes, made, OutcomeCovariates(None, None), found.reading, settings)
    model = data.estimator.fit(data.design, data.y, **data.arguments)
    return float(model.coef_[0]) if model.status_ in ("converged", "infinite_estimate") else NAN
