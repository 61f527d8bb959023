"""Restricted mean times of the arms up to some horizons, their differences and their ratios."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from riskset._errors import CohortError, InputError
from riskset._keywords import takes
from riskset._messages import Note, Value
from riskset._settings import Settings, bad_setting, same_as, setting, settings
from riskset._time_units import DAYS_IN, TimeUnit
from riskset._types import Index, Rows
from riskset.cohort.adjustments.adjustment import People
from riskset.cohort.arms.arm_contrasts import (
    ArmEstimates,
    Cells,
    normal_estimates,
    resampled_estimates,
)
from riskset.cohort.arms.arm_rows import ArmRows, counts_by
from riskset.cohort.arms.arm_strata import ArmStrata
from riskset.cohort.arms.curves import ARMS, followed_arms, outcome_notes
from riskset.cohort.outcomes import Outcomes
from riskset.cohort.propensity.estimated_score import (
    EstimatedScore,
    check_score_covariates,
    score_of_weights,
)
from riskset.cohort.resampling import Readjust, counts_of_resamples, readjusted
from riskset.cohort.settings import OutcomeModel, too_few_replicates
from riskset.curves.restricted_areas import RestrictedAreas, RestrictedCurves
from riskset.curves.restricted_mean import as_horizons

__all__ = ["ArmRestrictedMeans", "horizon_notes", "restricted_mean"]

MEASURES = ("restricted_mean", "time_lost", "competing_time_lost")


@settings
class RestrictedMeanOptions(Settings):
    """How restricted means are computed, and their intervals."""

    reading: Literal["marginal", "standardized"] = setting(
        "marginal: curves with the weights of the adjustment; standardized: the mean over the "
        "strata of the propensity score, each of which counts by its people",
        "marginal",
    )
    interval: Literal["robust", "bootstrap", "stacked"] = setting(
        "how standard errors and intervals are computed; stacked: robust, with the estimation of "
        "the propensity scores, which must be unpenalised",
        "robust",
    )
    level: float = same_as(OutcomeModel, "level")
    replicates: int = same_as(OutcomeModel, "replicates")
    seed: int = same_as(OutcomeModel, "seed")

    def contradictions(self) -> Iterator[InputError]:
        """Percentiles need replicates."""
        if self.interval == "bootstrap":
            yield from too_few_replicates(self.replicates, self.level)


@dataclass(frozen=True, eq=False, repr=False)
class ArmRestrictedMeans(ArmEstimates):
    """Restricted mean times of the arms, the result of `restricted_mean`.

    Attributes
    ----------
    measures : tuple of str, (q,)
        "restricted_mean": mean time without any event, from 0 to the horizon. "time_lost": mean
        time from the outcome to the horizon. "competing_time_lost": the same from a competing
        event, if there are any. They add up to the horizon.
    times : (k,) float64
        The horizons.
    target, comparator : (q, k) float64
        NaN for horizons after the end of follow-up of the arm, unless all its people have had an
        event. Each has a standard error, such as ``target_se``, and limits of its interval, such as
        ``target_lower`` and ``target_upper``.
    difference : (q, k) float64
        Target minus comparator, with ``difference_se``, ``_lower``, ``_upper`` and the p value
        ``difference_p``.
    ratio : (q, k) float64
        Target divided by comparator, with ``ratio_lower``, ``ratio_upper``, ``ratio_p`` and
        ``log_ratio_se``, the standard error of its logarithm.
    target_outcomes, comparator_outcomes, target_competing, comparator_competing : (k,) int64
        People with the outcome, or with a competing event, by each horizon.
    target_at_risk, comparator_at_risk : (k,) int64
        People at risk just before each horizon.
    target_end, comparator_end : float
        The largest horizon of each arm; infinite if all its people have had an event.
    reading, interval : str
    level : float
    n_left_out : int
        Number of resamples with an empty arm.
    notes : tuple of Note
        "follow_up_ends": horizons after the end of follow-up of an arm. "strata_left_out": strata
        without people in one of the arms. "no_outcome": nobody who is left has the
        outcome.

    Examples
    --------
    >>> import riskset as rs
    >>> people = rs.cohort.Population([1, 1, 0, 0])
    >>> y = rs.Surv([1.0, 4.0, 2.0, 4.0], [1, 0, 1, 1])
    >>> found = rs.cohort.restricted_mean(y, people, 4)
    >>> found.measures, found.difference
    (('restricted_mean', 'time_lost'), array([[-0.5],
           [ 0.5]]))
    """

    target_outcomes: Index
    comparator_outcomes: Index
    target_competing: Index
    comparator_competing: Index
    target_at_risk: Index
    comparator_at_risk: Index
    target_end: float
    comparator_end: float
    reading: str
    interval: str
    level: float
    n_left_out: int = 0
    notes: tuple[Note, ...] = ()

    def __repr__(self) -> str:
        head = f"ArmRestrictedMeans ({self.reading}, {self.level:.0%} {self.interval} intervals)"
        return self._described(head, self.n_left_out, self.notes)


@takes(RestrictedMeanOptions)
def restricted_mean(
    y: object,
    adjustment: People,
    times: object,
    *,
    settings: RestrictedMeanOptions,
    cause: int | str | None = None,
    readjust: Readjust | None = None,
    score_covariates: object = None,
) -> ArmRestrictedMeans:
    r"""Estimate restricted mean times of the arms, with their differences and ratios.

    .. math:: RMST(\tau) = \int_0^\tau S(t) \, dt, \qquad RMTL(\tau) = \int_0^\tau F(t) \, dt

    where S is the probability of no event of any type, and F the incidence of the outcome, or of
    competing events, with the weights of the adjustment. Without competing events, RMST and RMTL
    add up to the horizon :math:`\tau`. They need no proportional hazards.

    "standardized" needs strata. It takes the mean :math:`\mu_{sa}` of each stratum s and arm a
    without weights, and

    .. math:: \mu_a = \sum_s \pi_s \mu_{sa}, \qquad
        var = \sum_c \Big( \sum_{i \in c} \pi_{s_i} \psi_i
        + \frac{r_i}{N} (\mu_{s_i a} - \mu_a) \Big)^2

    where :math:`\pi_s` is the share of the stratum in the N people whom the effect is about
    (:math:`r_i = 1`: everybody for "ate", the target for "att", the comparator for "atu"), and
    :math:`\psi_i` the influence of a row on its :math:`\mu_{sa}`. Strata of equal weight keep their
    shares.

    Robust standard errors come from the infinitesimal jackknife over matched sets, otherwise
    persons with all their rows; weights count as known, but with `interval="stacked"` the
    estimation of the propensity scores counts, too. With `interval="bootstrap"`, these units are
    resampled, and the limits are percentiles; p values then are normal, with the standard
    deviation of the resamples.

    Parameters
    ----------
    y, adjustment, cause
        As for `survival`.
    times : number or (k,) numbers > 0
        The horizons, in days.
    settings : RestrictedMeanOptions
    readjust : callable, optional
        As for `fit_outcome`, with `interval="bootstrap"`. Persons of the whole population are then
        resampled.
    score_covariates : Design, data frame, matrix or array (n, p), optional
        As for `fit_outcome`, with `interval="stacked"`.

    Raises
    ------
    CohortError
        "BadOutcome", "BadSetting"; "EmptyArm" if an arm is empty; "LateEntry" as for `survival`.
    InputError
        If a horizon is not a positive number.

    References
    ----------
    Royston and Parmar (2013), BMC Medical Research Methodology 13, 152,
    doi:10.1186/1471-2288-13-152.
    Andersen (2013), Statistics in Medicine 32, 5278-5285, doi:10.1002/sim.5903, on competing
    events.
    Conner et al. (2019), Statistics in Medicine 38, 3832-3860, doi:10.1002/sim.8206, on weights.
    Hajage et al. (2018), Biometrical Journal 60, 1151-1163, doi:10.1002/bimj.201700330, on the
    estimation of weights.

    Examples
    --------
    >>> import riskset as rs
    >>> people = rs.cohort.Population([1, 1, 0, 0])
    >>> y = rs.Surv([1.0, 4.0, 2.0, 4.0], [1, 0, 1, 1])
    >>> rs.cohort.restricted_mean(y, people, 4)
    ArmRestrictedMeans (marginal, 95% robust intervals)
      restricted mean by 4: 2.5000 - 3.0000 = -0.5000 (-2.9985 to 1.9985)
      time lost by 4: 1.5000 - 1.0000 = 0.5000 (-1.9985 to 2.9985)
    """
    at = as_horizons(times)
    adjustment, outcomes = followed_arms(y, adjustment, cause, allow_late=True)
    if settings.reading == "standardized" and adjustment.kind != "stratification":
        raise CohortError(
            "BadSetting",
            f"a standardized reading needs strata, but the adjustment is by {adjustment.kind}.",
            hint="use `reading='marginal'`, or stratify.",
        )
    if readjust is not None and settings.interval != "bootstrap":
        raise bad_setting(
            "readjust",
            "`readjust` adjusts resamples, but the interval does not use any.",
            hint="add `interval='bootstrap'`, or leave `readjust` out.",
        )
    check_score_covariates(settings.interval, score_covariates)
    is_stacked = settings.interval == "stacked"
    strata = ArmStrata.of(adjustment, settings.reading)
    for arm, _, place in strata.cells():
        outcomes.check_followed(strata.rows[place], ARMS[arm])
    if settings.interval == "bootstrap":
        estimates, ends, n_left_out = _resampled(strata, outcomes, at, settings, readjust)
    else:
        score = score_of_weights(adjustment, score_covariates) if is_stacked else None
        estimates, ends, n_left_out = *_robust(strata, outcomes, at, settings.level, score), 0
    has_competing = bool((outcomes.status[strata.rows] == 2).any())
    n_measures = len(MEASURES) if has_competing else len(MEASURES) - 1
    numbers: dict[str, Any] = {name: value[:n_measures] for name, value in estimates.items()}
    return ArmRestrictedMeans(
        measures=MEASURES[:n_measures],
        times=at,
        **numbers | counts_by(adjustment, outcomes, at),
        target_end=float(ends[0]),
        comparator_end=float(ends[1]),
        reading=settings.reading,
        interval=settings.interval,
        level=settings.level,
        n_left_out=n_left_out,
        notes=(
            *strata.notes(),
            *outcome_notes(outcomes, adjustment),
            *horizon_notes(at, ends, settings.reading),
        ),
    )


def horizon_notes(
    times: Rows, ends: Sequence[float] | Rows, reading: str, unit: TimeUnit = "days"
) -> tuple[Note, ...]:
    """A note for each arm whose means up to some of the times (k,) are not known.

    All are days, `ends` (2,) the largest horizon of each arm; the note has the times in `unit`.
    """
    where = "of a stratum " if reading == "standardized" else ""
    until = "day {times}" if unit == "days" else f"{{times}} {unit}"
    notes = []
    for arm, end in zip(ARMS, ends, strict=True):
        late = times[times > end]
        if late.size:
            text = (
                f"the follow-up of the {{arm}} {where}ends after {{end:g}} {{end:?day|days}}, so "
                f"its restricted means up to {until} are not known; the largest possible horizon "
                "is {largest:g} {largest:?day|days}."
            )
            values = {
                "arm": Value("name", arm),
                "end": Value("count", end),
                "largest": Value("count", min(ends)),
                "times": Value("setting", ", ".join(f"{time / DAYS_IN[unit]:g}" for time in late)),
            }
            notes.append(Note("follow_up_ends", (), text, values))
    return tuple(notes)


def _robust(
    strata: ArmStrata, outcomes: Outcomes, at: Rows, level: float, score: EstimatedScore | None
) -> tuple[dict[str, Cells], Rows]:
    """Estimates with normal intervals from the influence of each cluster, and the ends of arms."""
    curves = {}
    for arm, stratum, place in strata.cells():
        own = strata.rows[place]
        table = outcomes.life_table(own, strata.adjustment.weight[own])
        curves[arm, stratum] = (place, RestrictedCurves.of(table))
    ends = strata.ends({key: one.end for key, (_, one) in curves.items()})
    value, variance = (np.full((2, len(MEASURES), at.size), np.nan) for _ in range(2))
    covariance = np.full((len(MEASURES), at.size), np.nan)
    for k, horizon in enumerate(at):
        areas = {
            key: (place, one.areas(float(horizon)))
            for key, (place, one) in curves.items()
            if horizon <= ends[key[0]]
        }
        for q in range(len(MEASURES)):
            sums = {}
            for arm in {arm for arm, _ in areas}:
                value[arm, q, k], influence = _mean(strata, areas, arm, q)
                sums[arm] = (
                    strata.cluster_sums(influence)
                    if score is None
                    else score.cluster_sums(influence[:, None])[:, 0]
                )
                variance[arm, q, k] = sums[arm] @ sums[arm]
            if len(sums) == len(ARMS):
                covariance[q, k] = sums[0] @ sums[1]
    found = normal_estimates(value, variance, covariance, level, at)
    return found, ends


def _mean(
    strata: ArmStrata,
    areas: Mapping[tuple[int, int], tuple[Index, RestrictedAreas]],
    arm: int,
    q: int,
) -> tuple[float, Rows]:
    """A mean of an arm, and the influence of each row on it (n,), also through the shares."""
    shares = strata.shares()
    influence = np.zeros(strata.rows.size)
    within = np.zeros(shares.size)
    for stratum in range(shares.size):
        place, area = areas[arm, stratum]
        within[stratum] = area.value[q]
        influence[place] += shares[stratum] * area.influence(q)
    mean = float(shares @ within)
    return mean, influence + strata.share_influence(within - mean)


def _resampled(
    strata: ArmStrata,
    outcomes: Outcomes,
    at: Rows,
    settings: RestrictedMeanOptions,
    readjust: Readjust | None,
) -> tuple[dict[str, Cells], Rows, int]:
    """Estimates with intervals from resamples, the ends of arms, and resamples without an arm."""
    arms = _arm_rows(strata, outcomes)
    ends = strata.ends({key: arm.end for key, arm in arms.items()})
    value = _values(strata, arms, strata.adjustment.weight, None, at)
    value[at > ends[:, None, None] + np.zeros_like(value)] = np.nan
    draws = list(_draws(strata, outcomes, arms, at, settings, readjust))
    good = np.array([draw for draw in draws if np.isfinite(draw).all()])
    found = resampled_estimates(value, good, settings.level)
    return found, ends, len(draws) - len(good)


def _draws(
    strata: ArmStrata,
    outcomes: Outcomes,
    arms: Mapping[tuple[int, int], ArmRows],
    at: Rows,
    settings: RestrictedMeanOptions,
    readjust: Readjust | None,
) -> Iterator[NDArray[np.float64]]:
    """Means of each resample (2, q, k).

    A resample that happens to end earlier keeps its last value: without it those in which the
    people who are followed longest are drawn would count alone.
    """
    adjustment = strata.adjustment
    if readjust is None:
        weight = np.zeros(adjustment.weight.size)
        unit = adjustment.cluster[strata.rows]
        for counts in counts_of_resamples(unit, settings.replicates, settings.seed):
            weight[strata.rows] = adjustment.weight[strata.rows] * counts
            yield _values(strata, arms, weight, counts, at)
        return
    for own, made in readjusted(adjustment, readjust, settings.replicates, settings.seed):
        again, drawn = ArmStrata.of(made, settings.reading), outcomes.take(own)
        yield _values(again, _arm_rows(again, drawn), made.weight, None, at)


def _arm_rows(strata: ArmStrata, outcomes: Outcomes) -> dict[tuple[int, int], ArmRows]:
    return {
        (arm, stratum): ArmRows.of(outcomes, strata.rows[place])
        for arm, stratum, place in strata.cells()
    }


def _values(
    strata: ArmStrata,
    arms: Mapping[tuple[int, int], ArmRows],
    weight: Rows,
    counts: Index | None,
    at: Rows,
) -> NDArray[np.float64]:
    """Means of the arms (2, q, k) with the weights of a population, and counts of the rows."""
    shares = strata.shares(counts)
    found = np.zeros((2, len(MEASURES), at.size))
    for (arm, stratum), rows in arms.items():
        found[arm] += shares[stratum] * rows.areas(weight, at)
    return found if len(arms) == 2 * shares.size > 0 else np.full_like(found, np.nan)
