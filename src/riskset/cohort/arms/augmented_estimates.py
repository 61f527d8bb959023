"""Doubly robust risks and restricted means of the arms: outcome models, scores and censoring."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from riskset._errors import CohortError
from riskset._keywords import takes
from riskset._messages import Note
from riskset._settings import bad_setting
from riskset._types import Index, Rows
from riskset.cohort.adjustments.adjustment import Adjustment, People, are_of_one, start
from riskset.cohort.adjustments.weighting import weight as weighted
from riskset.cohort.arms.arm_contrasts import Cells, normal_estimates, resampled_estimates
from riskset.cohort.arms.arm_models import checked_covariates, last_times, notes_of_constants
from riskset.cohort.arms.arm_rows import counts_by
from riskset.cohort.arms.augmentation_settings import DoublyRobustOptions
from riskset.cohort.arms.augmented_arms import AugmentedArms
from riskset.cohort.arms.curves import ARMS, followed_arms
from riskset.cohort.arms.risks import end_notes
from riskset.cohort.arms.standardization import ModelledEstimates
from riskset.cohort.covariates.covariate_design import as_design
from riskset.cohort.outcomes import Outcomes
from riskset.cohort.resampling import Readjust, counts_of_resamples, readjusted
from riskset.curves.restricted_mean import as_horizons
from riskset.data.design import Design
from riskset.infer.averaged_hazards import AVERAGED
from riskset.infer.variance import cluster_sums
from riskset.model.references import without_references

__all__ = ["DoublyRobustEstimates", "doubly_robust"]


@dataclass(frozen=True, eq=False, repr=False)
class DoublyRobustEstimates(ModelledEstimates):
    """Doubly robust risks and restricted means of the arms, the result of `doubly_robust`.

    Attributes
    ----------
    measures : tuple of str, (q,)
        "risk": probability of the outcome by each time. "restricted_mean": mean time without any
        event up to it. "time_lost": mean time from the outcome to it.
    times : (k,) float64
    target, comparator : (q, k) float64
        If everybody had the target, or the comparator. NaN for times after the end of follow-up of
        the arm. Each has a standard error, such as ``target_se``, and limits of its interval, such
        as ``target_lower`` and ``target_upper``. Risks of different times are estimated separately
        and need not increase.
    difference : (q, k) float64
        Target minus comparator, with ``difference_se``, ``_lower``, ``_upper`` and the p value
        ``difference_p``.
    ratio : (q, k) float64
        Target divided by comparator, with ``ratio_lower``, ``ratio_upper``, ``ratio_p`` and
        ``log_ratio_se``, the standard error of its logarithm.
    target_outcomes, comparator_outcomes, target_competing, comparator_competing : (k,) int64
        People with the outcome, or with a competing event, by each time.
    target_at_risk, comparator_at_risk : (k,) int64
        People at risk just before each time.
    model, censoring, estimand, interval : str
    folds : int or None
    level : float
    n_left_out : int
        Number of resamples without an estimate.
    notes : tuple of Note
        "follow_up_ends": times after the end of follow-up. "constant_in_arm": covariates that do
        not vary in an arm, whose model counts 0 for them. Those of `weight`, if the weights are
        made here.

    Examples
    --------
    >>> import riskset as rs
    >>> people = rs.cohort.Population([1, 1, 1, 1, 0, 0, 0, 0], [0.5] * 8)
    >>> y = rs.Surv([1.0, 2, 3, 4, 2, 3, 4, 5], [1, 1, 1, 0, 1, 1, 1, 0])
    >>> x = [[0], [1], [0], [1], [1], [0], [1], [0]]
    >>> found = rs.cohort.doubly_robust(y, people, x, 3)
    >>> found.measures, found.difference[0].round(3)
    (('risk', 'restricted_mean', 'time_lost'), array([0.25]))
    """

    censoring: str = ""
    folds: int | None = None

    def __repr__(self) -> str:
        crossed = "" if self.folds is None else f", {self.folds} folds"
        head = (
            f"DoublyRobustEstimates ({self.model}, censoring {self.censoring}, {self.estimand}"
            f"{crossed}, {self.level:.0%} {self.interval} intervals)"
        )
        return self._described(head, self.n_left_out, self.notes)


@takes(DoublyRobustOptions)
def doubly_robust(
    y: object,
    people: People,
    X: object,
    times: object,
    *,
    settings: DoublyRobustOptions,
    cause: int | str | None = None,
    score_covariates: object = None,
    censoring_covariates: object = None,
    readjust: Readjust | None = None,
) -> DoublyRobustEstimates:
    r"""Estimate risks and restricted means of both arms by augmented inverse probability weighting.

    .. math:: \psi_a = \frac{1}{N} \sum_i r_i \, m_a(x_i)
        + \frac{1}{W_a} \sum_{i: A_i = a} w_i \, (H_i - m_a(x_i)), \qquad
        H_i = \frac{h_i \text{ or } m_i(e_i)}{G_i(e_i)} - \int_0^{e_i} m_i(u) \, d\frac{1}{G_i(u)}

    The first term is that of `standardize`: predictions :math:`m_a` of outcome models, averaged
    over the N people of the population (:math:`r_i = 1`). The second corrects them by the residuals
    of the people of the arm, with the weights of a propensity score. :math:`h_i` is the outcome by
    the time t, 1 or 0 for a risk. It is not known for people who are censored at :math:`e_i < t`.
    For them, it is replaced by :math:`m_i(u)`, its expectation by the outcome models for a person
    without an event by u. G is the probability of not being censored.

    Estimates are consistent if the outcome models are right, or if both the score and the model of
    censoring are: `standardize` needs the first, and weighted curves the second. If all are right,
    no estimator has a smaller variance in large samples. The robust standard error is that of the
    influence function, and takes the models as known. If one of them may be wrong, use
    `interval="bootstrap"`, which fits them again.

    The weights are those of an adjustment, divided by their sum in each arm (:math:`W_a`). In
    matched sets, the estimate is thus corrected for the differences of covariates that are left.
    With scores alone, the weights are those of `weight` for the estimand, and :math:`W_a = N`.
    Without scores, or with `folds`, scores are estimated from `score_covariates`. With `folds`,
    models predict only people that they were not fitted to, so they may be flexible models with a
    penalty.

    Parameters
    ----------
    y : (n,) structured array
        `riskset.Surv(time, status)` of the whole population.
    people : Population or Adjustment
        After trimming, the remaining people are the population. The weights of matching,
        stratification and weighting are used.
    X : Design, data frame, matrix or array (n, p)
        Covariates of the outcome models.
    times : number or (k,) numbers > 0
    settings : DoublyRobustOptions
    cause : int or str, optional
        Code or label of the outcome in `y`; see `survival`.
    score_covariates : Design, data frame, matrix or array (n, p), optional
        Covariates of the score, where it is estimated here. Default: `X`.
    censoring_covariates : Design, data frame, matrix or array (n, p), optional
        Covariates of the Cox model of censoring. Default: `X`.
    readjust : callable, optional
        As for `fit_outcome`, with `interval="bootstrap"`. Without it, given scores, weights and
        sets count as known.

    Returns
    -------
    DoublyRobustEstimates

    Raises
    ------
    CohortError
        "BadOutcome", "BadCovariates", "BadSetting", "EmptyArm"; "AlreadyAdjusted" for weights and
        sets with `folds`; "CompetingEvents" if the model is "cox" and there are competing events;
        "NoEvents" if an arm has no outcome to fit a model to; "NotConverged" or "InfiniteEstimate"
        if a model has no finite estimate; "HighCorrelation" as for `propensity_score`, of a score
        that is estimated here; "Positivity" as for `weight`.

    Notes
    -----
    O(n T) time for T distinct times of events and of being censored up to the last time, in
    addition to the fits. Of more than 2000 times, hazards are spread evenly within 250 cells of
    time, each with the same number of times, which changes estimates by a small part of their
    standard error.

    With "finegray", the Fine-Gray model predicts the risk, and a Cox model of any event the
    probability of being without one.

    References
    ----------
    Robins and Rotnitzky (1992), in AIDS Epidemiology: Methodological Issues, 297-331,
    doi:10.1007/978-1-4757-1229-2_14.
    Zhang and Schaubel (2012), Biometrics 68, 999-1009, doi:10.1111/j.1541-0420.2012.01759.x.
    Bai, Tsiatis, Lu and Song (2017), Lifetime Data Analysis 23, 585-604,
    doi:10.1007/s10985-016-9376-x.
    Ozenne et al. (2020), Biometrical Journal 62, 751-763, doi:10.1002/bimj.201800298, on competing
    events.
    Westling et al. (2024), Journal of the American Statistical Association 119, 1541-1553,
    doi:10.1080/01621459.2023.2205060, on cross-fitting.
    Abadie and Imbens (2011), Journal of Business and Economic Statistics 29, 1-11,
    doi:10.1198/jbes.2009.07333, on matched sets.

    Examples
    --------
    >>> import riskset as rs
    >>> data = rs.load_rhc()
    >>> x = data.design
    >>> people = rs.cohort.Population(x.to_dense()[:, x.index_of("swang1")])
    >>> y = rs.Surv(data.outcome().time, data.outcome().event)
    >>> rs.cohort.doubly_robust(y, people, x.to_dense()[:, :5], [30])
    DoublyRobustEstimates (cox, censoring cox, ate, 95% robust intervals)
      risk by 30: 0.3474 - 0.3214 = 0.0260 (0.0019 to 0.0502)
      restricted mean by 30: 23.3901 - 23.8489 = -0.4587 (-0.9690 to 0.0516)
      time lost by 30: 6.6099 - 6.1511 = 0.4587 (-0.0516 to 0.9690)
    """
    at = as_horizons(times)
    adjustment, outcomes = followed_arms(y, people, cause)
    n_rows = adjustment.population.n_rows
    design = checked_covariates(X, n_rows, outcomes, settings.model)
    if readjust is not None and settings.interval != "bootstrap":
        raise bad_setting(
            "readjust",
            "`readjust` adjusts resamples, but the interval does not use any.",
            hint="add `interval='bootstrap'`, or leave `readjust` out.",
        )
    of_score, of_censoring = (
        None if X is None else as_design(X, n_rows)
        for X in (score_covariates, censoring_covariates)
    )
    if of_censoring is not None and settings.censoring != "cox":
        raise bad_setting(
            "censoring_covariates",
            "`censoring_covariates` are for a Cox model of censoring, but the curves of the arms "
            "were requested.",
            hint="add `censoring='cox'`, or leave them out.",
        )
    given = _Given(outcomes, design, of_score, of_censoring, at, settings)
    arms, notes = given.arms(adjustment)
    if settings.interval == "bootstrap":
        cells, n_left_out = _resampled(given, arms, adjustment, readjust)
    else:
        cells, n_left_out = _robust(arms), 0
    ends = last_times(outcomes, adjustment)
    constants = notes_of_constants(design, adjustment.arms) if settings.by_arm else ()
    numbers: dict[str, Any] = {**cells}
    unknown = at > ends[:, None]
    for name, cell in numbers.items():
        of_arm = {"target": unknown[0], "comparator": unknown[1]}.get(name.split("_")[0])
        cell[:, unknown.any(axis=0) if of_arm is None else of_arm] = np.nan
    return DoublyRobustEstimates(
        measures=AVERAGED,
        times=at,
        **numbers | counts_by(adjustment, outcomes, at),
        model=settings.model,
        estimand=arms.estimand,
        interval=settings.interval,
        level=settings.level,
        n_left_out=n_left_out,
        notes=(*notes, *constants, *end_notes(at, dict(zip(ARMS, ends.tolist(), strict=True)))),
        censoring=settings.censoring,
        folds=settings.folds,
    )


@dataclass(frozen=True, eq=False)
class _Given:
    """What was given of a whole population: outcomes and covariates."""

    outcomes: Outcomes
    design: Design
    score_design: Design | None
    censoring_design: Design | None
    at: Rows
    settings: DoublyRobustOptions

    def arms(self, adjustment: Adjustment) -> tuple[AugmentedArms, tuple[Note, ...]]:
        """The people whom an adjustment keeps, and notes about weights that are made of scores."""
        found, notes = self._people(adjustment)
        return self._with_rows(found, np.flatnonzero(adjustment.kept)), notes

    def _with_rows(self, arms: AugmentedArms, rows: Index) -> AugmentedArms:
        """People with the covariates of these rows."""
        score, censoring = (
            (self.design if own is None else own).take_rows(rows)
            for own in (self.score_design, self.censoring_design)
        )
        penalty = self.settings.kind
        return replace(
            arms,
            design=without_references(self.design.take_rows(rows), penalty),
            score_design=score,
            censoring_design=without_references(censoring, penalty),
        )

    def _people(self, adjustment: Adjustment) -> tuple[AugmentedArms, tuple[Note, ...]]:
        """The same, with the covariates of the whole population."""
        has_weights = adjustment.kind not in ("none", "trimming")
        estimand = self._estimand(adjustment, has_weights)
        rows = np.flatnonzero(adjustment.kept)
        population = adjustment.population
        notes: tuple[Note, ...] = ()
        weight: Rows | None = None
        if has_weights:
            weight = adjustment.weight[rows]
        elif population.has_score and self.settings.folds is None:
            made = weighted(adjustment, estimand)
            weight = made.weight[rows]
            notes = made.notes[len(adjustment.notes) :]
        self._check_score(is_estimated=weight is None)
        people = population.take(rows)
        score = population.score[rows] if estimand in ("ato", "matching") else None
        arms = AugmentedArms(
            people=people,
            design=self.design,
            score_design=self.design,
            censoring_design=self.design,
            outcomes=self.outcomes.take(rows),
            unit=people.sampling_weight * _membership(people.is_target, score, estimand),
            weight=weight,
            is_scaled=has_weights,
            cluster=np.unique(adjustment.cluster[rows], return_inverse=True)[1],
            estimand=estimand,
            at=self.at,
            settings=self.settings,
        )
        return arms, notes

    def resampled(self, adjustment: Adjustment, drawn: Index) -> tuple[AugmentedArms, Index]:
        """The people of an adjustment of drawn rows, each once, and how often each was drawn."""
        kept = np.flatnonzero(adjustment.kept)
        own, first, place = np.unique(drawn[kept], return_index=True, return_inverse=True)
        counts = np.bincount(place)
        many = replace(self, outcomes=self.outcomes.take(drawn))
        found = many._people(adjustment)[0]

        def mean(values: Rows) -> Rows:
            return np.asarray(np.bincount(place, values) / counts)

        once = replace(
            found,
            people=found.people.take(first),
            outcomes=found.outcomes.take(first),
            unit=mean(found.unit),
            weight=None if found.weight is None else mean(found.weight),
            cluster=np.unique(found.cluster[first], return_inverse=True)[1],
        )
        return self._with_rows(once, own), counts

    def _estimand(self, adjustment: Adjustment, has_weights: bool) -> str:
        wanted = self.settings.estimand
        if not has_weights:
            return wanted or "ate"
        if self.settings.folds is not None:
            start(adjustment)  # an error
        own = str(adjustment.estimand)
        if wanted is not None and wanted != own:
            raise bad_setting(
                "estimand",
                f"`estimand` is {wanted!r}, but the weights of the adjustment are for {own!r}.",
                hint="leave `estimand` out, or pass people without weights.",
            )
        return own

    def _check_score(self, *, is_estimated: bool) -> None:
        """Settings of a score that is not estimated."""
        given = {
            "score_penalty": self.settings.score_penalty,
            "score_covariates": self.score_design,
        }
        for name, value in given.items():
            if value is not None and not is_estimated:
                raise bad_setting(
                    name,
                    f"`{name}` is for a score that this function estimates, but the people have "
                    "scores or weights.",
                    hint="leave it out, pass a Population without scores, or pass `folds`.",
                )


def _membership(target: NDArray[np.bool_], score: Rows | None, estimand: str) -> Rows:
    """How much each row counts in the population of an estimand."""
    if score is not None:
        both = score * (1 - score), np.minimum(score, 1 - score)
        return np.asarray(both[0] if estimand == "ato" else both[1])
    whole = {"att": target, "atu": ~target}.get(estimand, np.ones_like(target))
    return whole.astype(np.float64)


def _robust(arms: AugmentedArms) -> dict[str, Cells]:
    """Estimates with normal intervals from the influence function."""
    found = arms.estimated()
    n = arms.unit.size
    sums = cluster_sums(found.moved.reshape(n, -1), arms.cluster)
    if are_of_one(arms.cluster):
        sums = np.full_like(sums, np.nan)
    target, comparator = sums.reshape(-1, *found.moved.shape[1:]).swapaxes(0, 1)
    variance = np.array([(one**2).sum(axis=0) for one in (target, comparator)])
    covariance = (target * comparator).sum(axis=0)
    return normal_estimates(
        found.value, variance, covariance, arms.settings.level, _largest(arms.at)
    )


def _largest(at: Rows) -> Cells:
    return np.stack([np.ones(at.size), at, at])


def _resampled(
    given: _Given, arms: AugmentedArms, adjustment: Adjustment, readjust: Readjust | None
) -> tuple[dict[str, Cells], int]:
    """Estimates with percentiles, and the number of resamples without an estimate."""
    value = arms.estimated().value
    draws = np.array(list(_draws(given, arms, adjustment, readjust))).reshape(-1, *value.shape)
    is_good = np.isfinite(draws).all(axis=(1, 2, 3))
    cells = resampled_estimates(value, draws[is_good], arms.settings.level)
    return cells, int(np.count_nonzero(~is_good))


def _draws(
    given: _Given, arms: AugmentedArms, adjustment: Adjustment, readjust: Readjust | None
) -> Iterator[NDArray[np.float64]]:
    """Values of both arms of each resample (2, 3, k); NaN where a model has no estimate."""
    own, nothing = arms.settings, np.full((2, 3, arms.at.size), np.nan)
    if readjust is None:
        for counts in counts_of_resamples(arms.cluster, own.replicates, own.seed):
            try:
                yield arms.estimated(counts).value
            except CohortError:
                yield nothing
        return
    for rows, made in readjusted(adjustment, readjust, own.replicates, own.seed):
        try:
            again, counts = given.resampled(made, rows)
            yield again.estimated(counts).value
        except CohortError:
            yield nothing
