"""Inverse probability and overlap weights, and weights that balance covariates."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from riskset._errors import CohortError
from riskset._keywords import takes
from riskset._messages import Note, Value
from riskset._runtime import Runtime
from riskset._types import Rows
from riskset.cohort.adjustments.adjustment import (
    Adjustment,
    People,
    effective_size,
    narrowed,
    start,
)
from riskset.cohort.adjustments.adjustment_settings import Weight
from riskset.cohort.adjustments.balancing_weights import (
    MOST_TERMS,
    Standardised,
    balancing_score,
    means_of,
    tilted,
)
from riskset.cohort.covariates.covariate_design import as_design, columns_of
from riskset.cohort.covariates.covariate_terms import with_terms
from riskset.data.design import Design

__all__ = ["weight"]

SMALLEST = 1e-15
"""Scores of 0 and 1 count as this far from them."""

POSITIVE = 1e-10
"""A person nearer than this to the other arm's certainty has no like in it."""

# The estimands in which a target with a score of 0, or a comparator with one of 1, weighs too much.
DIVIDES_BY = {"ate": (True, True), "att": (False, True), "atu": (True, False)}

LOW_SHARE, HEAVY_SHARE, HEAVY_TIMES = 0.5, 0.01, 5


@takes(Weight, positional=1)
def weight(people: People, settings: Weight, *, X: object = None) -> Adjustment:
    r"""Weight people so that both arms resemble the same population.

    ============ ========================= =============================
    estimand     target                    comparator
    ============ ========================= =============================
    "ate"        :math:`1/e`               :math:`1/(1-e)`
    "att"        1                         :math:`e/(1-e)`
    "atu"        :math:`(1-e)/e`           1
    "ato"        :math:`1-e`               :math:`e`
    "matching"   :math:`\min(e, 1-e)/e`    :math:`\min(e, 1-e)/(1-e)`
    ============ ========================= =============================

    The default is overlap weights. They are bounded and, with scores from an unpenalised logistic
    model, balance the means of its covariates exactly. `stabilise` applies only to "ate".
    "cohortmethod" also stabilises "att", as CohortMethod does, which changes the ratio of the arms'
    totals.

    ``method="entropy"`` needs no score. Among the weights of an arm with which the covariates have
    the means that are wanted, it takes those closest to equal weights, by :math:`\sum w \log w`.
    The means are those of the target ("att"), of the comparator ("atu"), or of everybody ("ate").
    ``method="cbps"`` fits the logistic propensity score, just identified, by the condition that the
    weights of the table balance the covariates: the arms have equal totals and means. For "att" and
    "atu" both methods have the same weights. For "ate", the means of both arms are equal to each
    other ("cbps"), or to those of everybody ("entropy").

    Parameters
    ----------
    people : Population or Adjustment
        People with scores e, if the method is "score". After trimming, the remaining people are
        weighted.
    settings : Weight
    X : Design, data frame, matrix or array (n, p), optional
        Covariates of the population, which "entropy" and "cbps" balance. Differences of means that
        are left are less than 1e-8 standard deviations.

    Returns
    -------
    Adjustment
        Of "cbps", the population has the scores that were fitted. ``details``: ``method``,
        ``terms`` (numbers of covariates, powers and products that are balanced), ``cap`` and
        ``n_truncated``, ``effective_size_target`` and ``effective_size_comparator``. Notes report
        an arm whose effective size is less than half its number of people ("low_effective_size"),
        and a person with more than 1 % of the weight of an arm, if that exceeds five times an equal
        share ("heavy_person").

    Raises
    ------
    CohortError
        "Positivity" if the arm of a person was practically impossible by the score; "NoBalance" if
        no weights balance the covariates, with their names; "BadSetting" or "BadCovariates".

    Notes
    -----
    Entropy balancing and "cbps" take O(n p) for each of some ten steps, and n p^2 for its
    derivatives.

    References
    ----------
    Li, Morgan and Zaslavsky (2018), Journal of the American Statistical Association 113, 390-400,
    doi:10.1080/01621459.2016.1260466.
    Li and Greene (2013), International Journal of Biostatistics 9, 215-234,
    doi:10.1515/ijb-2012-0030.
    Hainmueller (2012), Political Analysis 20, 25-46, doi:10.1093/pan/mpr025, for "entropy".
    Imai and Ratkovic (2014), Journal of the Royal Statistical Society B 76, 243-263,
    doi:10.1111/rssb.12027, for "cbps".

    Examples
    --------
    >>> import riskset as rs
    >>> people = rs.cohort.Population([1, 0, 0], [0.8, 0.5, 0.2])
    >>> rs.cohort.weight(people, "ate").weight
    array([1.25, 2.  , 1.25])
    >>> rs.cohort.weight(people, "att", method="entropy", X=[[3], [2], [4]]).weight
    array([1. , 0.5, 0.5])
    """
    before = start(people)
    if settings.method != "score":
        return _balancing(before, settings, X)
    estimand, stabilise = settings.estimand, settings.stabilise
    population, kept = before.population, before.kept
    target = population.is_target[kept]
    score = population.score[kept]
    _check_positivity(score, target, estimand)
    own = _weights(np.clip(score, SMALLEST, 1 - SMALLEST), target, estimand)
    if stabilise and (estimand == "ate" or (estimand == "att" and stabilise == "cohortmethod")):
        base = population.sampling_weight[kept]
        share = base[target].sum() / base.sum() if target.size else np.nan
        own *= np.where(target, share, 1 - share)
    cap = _cap(settings, own)
    _check_cap(cap, own)
    details: dict[str, object] = dict(before.details)
    if cap is not None:
        details |= {"cap": cap, "n_truncated": int(np.count_nonzero(own > cap))}
        own = np.minimum(own, cap)
    return _weighted(before, own * population.sampling_weight[kept], settings, details)


def _weighted(
    before: Adjustment, own: Rows, settings: Weight, details: dict[str, object]
) -> Adjustment:
    """The adjustment with weights of the people kept."""
    population, kept = before.population, before.kept
    target, weights = population.is_target[kept], np.zeros(population.n_rows)
    weights[kept] = own
    details["method"] = settings.method
    details["effective_size_target"] = effective_size(own[target])
    details["effective_size_comparator"] = effective_size(own[~target])
    return narrowed(
        before,
        "weighting",
        [],
        weight=weights,
        estimand=settings.estimand,
        notes=_notes(own, target),
        settings=settings.values(Weight),
        details=details,
    )


def _balancing(before: Adjustment, settings: Weight, X: object) -> Adjustment:
    """Weights that balance the covariates exactly."""
    people, rows = before.population, np.flatnonzero(before.kept)
    target, base = people.is_target[rows], people.sampling_weight[rows]
    whole = _terms(X, settings, people.n_rows)
    if before.status != "ok":
        return _weighted(before, base, settings, dict(before.details))
    design = whole.take_rows(rows) if rows.size < people.n_rows else whole
    runtime = Runtime.select()
    centre, unit = means_of(design, base, runtime)
    everybody = Standardised(whole, centre, unit, runtime)
    details = {**before.details, "terms": design.n_features}
    if settings.method == "cbps" and settings.estimand == "ate":
        intercept, coef = balancing_score(replace(everybody, design=design), target, base)
        eta = intercept + everybody.product(coef)
        own = base * (1.0 + np.exp(np.where(target, -eta[rows], eta[rows])))
        return _weighted(_with_logits(before, eta), own, settings, details)
    own = base.copy()
    for arm, name in ((target, "target"), (~target, "comparator")):
        if (settings.estimand, name) in (("att", "target"), ("atu", "comparator")):
            continue
        like = base if settings.estimand == "ate" else np.where(arm, 0.0, base)
        wanted = replace(everybody, origin=means_of(design, like, runtime)[0])
        part = replace(wanted, design=design.take_rows(np.flatnonzero(arm)))
        share, coef = tilted(part, base[arm], f"the {name}")
        own[arm] = share * like.sum()
        if settings.method == "cbps":
            odds = wanted.product(coef)  # of the other arm, but for a constant
            first = int(np.argmax(own * arm))
            odds += np.log(own[first] / base[first]) - odds[rows[first]]
            before = _with_logits(before, odds if name == "comparator" else -odds)
    return _weighted(before, own, settings, details)


def _terms(X: object, settings: Weight, n_rows: int) -> Design:
    """The columns to balance."""
    if X is None:
        raise CohortError(
            "BadSetting",
            f"the method {settings.method} balances covariates, but `X` was not given.",
            hint="pass the covariates of the population as `X`.",
        )
    design = as_design(X, n_rows)
    chosen = None
    if settings.covariates:
        chosen = np.array(list(dict.fromkeys(columns_of(design, settings.covariates).tolist())))
    found = with_terms(design, chosen, settings.moments, settings.interactions).design
    if found.n_features > MOST_TERMS:
        raise CohortError(
            "BadSetting",
            f"there are {found.n_features:,} covariates and powers, but at most {MOST_TERMS:,} can "
            "be balanced.",
            hint="name some in `covariates`.",
        )
    return found


def _with_logits(before: Adjustment, eta: Rows) -> Adjustment:
    """With the scores of everybody."""
    people, kept = before.population, before.kept
    base = people.sampling_weight
    share = float(base[kept & people.is_target].sum() / base[kept].sum())
    return replace(before, population=before.population.with_score(expit(eta), share))


def _weights(e: Rows, target: NDArray[np.bool_], estimand: str) -> Rows:
    both = {
        "ate": np.ones(e.size),
        "att": e,
        "atu": 1 - e,
        "ato": e * (1 - e),
        "matching": np.minimum(e, 1 - e),
    }[estimand]
    if estimand == "ato":
        return np.where(target, 1 - e, e)
    ratio = both / np.where(target, e, 1 - e)
    return np.asarray(ratio)


def _check_positivity(score: Rows, target: NDArray[np.bool_], estimand: str) -> None:
    of_target, of_comparator = DIVIDES_BY.get(estimand, (False, False))
    low = target & (score < POSITIVE) & of_target
    high = ~target & (score > 1 - POSITIVE) & of_comparator
    found = {"target": int(low.sum()), "comparator": int(high.sum())}
    listed = [
        f"{{{arm}:{arm} with a score|{arm}s with scores}} of about {{near_{arm}}}"
        for arm, n in found.items()
        if n
    ]
    if listed:
        values = {arm: Value("count", n) for arm, n in found.items()}
        values |= {"near_target": Value("setting", 0), "near_comparator": Value("setting", 1)}
        raise CohortError(
            "Positivity",
            f"weights for {{estimand}} would be infinite or nearly so for {' and '.join(listed)}.",
            hint="trim first, use `estimand='ato'`, or match instead; and look for a covariate "
            "that determines the treatment.",
            details=found,
            values=values | {"estimand": Value("name", repr(estimand))},
        )


def _cap(settings: Weight, weights: Rows) -> float | None:
    """The largest weight, if there is a limit."""
    if settings.truncate is None:
        return None
    if settings.percentile is None:
        return float(settings.truncate)
    return float(np.quantile(weights, settings.percentile / 100)) if weights.size else np.inf


def _check_cap(cap: float | None, weights: Rows) -> None:
    """Refuse a limit that makes all weights equal, such as 0.99 for the 99th percentile."""
    if cap is None or not weights.size or cap >= weights.min() or weights.min() == weights.max():
        return
    raise CohortError(
        "BadSetting",
        "`truncate` is {cap}, but all weights are larger, so that everybody would have the same "
        "weight.",
        hint="`truncate` is the largest weight; for a percentile, pass text such as 'p99'.",
        values={"cap": Value("setting", f"{cap:g}")},
    )


def _notes(weights: Rows, target: NDArray[np.bool_]) -> tuple[Note, ...]:
    notes = []
    for name, arm in (("target", target), ("comparator", ~target)):
        own = weights[arm]
        if not own.size:
            continue
        word = Value("name", name)
        size = effective_size(own)
        if size < LOW_SHARE * own.size:
            notes.append(
                Note(
                    "low_effective_size",
                    (),
                    "the {arm} has an effective size of only {size:,.0f}, of {n:person|people}; "
                    "consider trimming or 'ato'.",
                    {"arm": word, "size": Value("count", size), "n": Value("count", own.size)},
                )
            )
        heaviest = float(own.max() / own.sum())
        if heaviest > max(HEAVY_SHARE, HEAVY_TIMES / own.size):
            notes.append(
                Note(
                    "heavy_person",
                    (),
                    "one person has {share:.1%} of the weight of the {arm}.",
                    {"arm": word, "share": Value("measure", heaviest)},
                )
            )
    return tuple(notes)
