"""Risks of the arms at given times, and their difference with an interval."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from riskset._errors import InputError, counted
from riskset._keywords import takes
from riskset._messages import Note, Value
from riskset._settings import Settings, bad_setting, same_as, setting, settings
from riskset._time_units import DAYS_IN, TimeUnit
from riskset._types import AnyArray, Index, Rows
from riskset.cohort.adjustments.adjustment import Adjustment, People, are_of_one
from riskset.cohort.arms.arm_rows import ArmRows
from riskset.cohort.arms.curves import ARMS, followed_arms, outcome_notes
from riskset.cohort.outcomes import Outcomes
from riskset.cohort.propensity.estimated_score import (
    EstimatedScore,
    check_score_covariates,
    score_of_weights,
)
from riskset.cohort.resampling import Readjust, counts_of_resamples, readjusted
from riskset.cohort.settings import OutcomeModel, too_few_replicates
from riskset.curves._result import as_times
from riskset.curves.influence import incidence_influence, influence_at
from riskset.curves.variance import survival_before
from riskset.data.frame import data_frame
from riskset.infer.variance import cluster_sums
from riskset.infer.wald import normal_quantile

__all__ = ["RiskDifference", "end_notes", "risk_difference"]


@dataclass(frozen=True, eq=False, repr=False)
class RiskDifference:
    """Risks of the outcome at given times, the result of `risk_difference`; all (k,).

    Attributes
    ----------
    times : float64
    target, comparator : float64
        Risk of each arm with the weights of the adjustment and with competing events. NaN after the
        end of follow-up of the arm, unless all its people have had an event.
    difference : float64
        Target minus comparator.
    se, lower, upper : float64
        Standard error of the difference, and its interval; of resamples, their standard deviation
        and percentiles. NaN if the difference is, or with fewer than two usable resamples.
    target_outcomes, comparator_outcomes : int64
        People with the outcome by each time, counted once.
    target_at_risk, comparator_at_risk : int64
        People at risk just before each time.
    level : float
    n_left_out : int
        Number of resamples with an empty arm.
    notes : tuple of Note
        "follow_up_ends": times after the end of follow-up of an arm. "no_outcome": nobody has the
        outcome.
    interval : str

    Examples
    --------
    >>> import riskset as rs
    >>> people = rs.cohort.Population([1, 1, 0, 0])
    >>> y = rs.Surv([1.0, 4.0, 2.0, 4.0], [1, 0, 0, 1])
    >>> found = rs.cohort.risk_difference(y, people, [3], replicates=50)
    >>> found.target, found.comparator, found.difference
    (array([0.5]), array([0.]), array([0.5]))
    """

    times: Rows
    target: Rows
    comparator: Rows
    difference: Rows
    se: Rows
    lower: Rows
    upper: Rows
    target_outcomes: Index
    comparator_outcomes: Index
    target_at_risk: Index
    comparator_at_risk: Index
    level: float
    n_left_out: int
    notes: tuple[Note, ...] = ()
    interval: str = "bootstrap"

    def columns(self) -> dict[str, AnyArray]:
        """Return one row per time."""
        names = ["target", "comparator", "difference", "se", "lower", "upper"]
        names += [f"{arm}_{what}" for what in ("outcomes", "at_risk") for arm in names[:2]]
        return {"time": self.times} | {name: getattr(self, name) for name in names}

    def to_frame(self, library: str | None = None) -> Any:
        """Return `columns` as a data frame."""
        return data_frame(self.columns(), library)

    def __repr__(self) -> str:
        lines = [
            f"  by {t:g}: {a:.4f} - {b:.4f} = {d:.4f} ({low:.4f} to {high:.4f})"
            for t, a, b, d, low, high in zip(
                self.times,
                self.target,
                self.comparator,
                self.difference,
                self.lower,
                self.upper,
                strict=True,
            )
        ]
        left = counted(self.n_left_out, "resample")
        more = [f"  {left} left out"] if self.n_left_out else []
        more += [f"  {note.message}" for note in self.notes]
        return "\n".join([f"RiskDifference ({self.level:.0%} intervals)", *lines, *more])


@settings
class RiskDifferenceOptions(Settings):
    """How intervals of differences of risks are computed."""

    interval: Literal["bootstrap", "robust", "stacked"] = setting(
        "how standard errors and intervals are computed; stacked: robust, with the estimation of "
        "the propensity scores, which must be unpenalised",
        "bootstrap",
    )
    level: float = same_as(OutcomeModel, "level")
    replicates: int = same_as(OutcomeModel, "replicates")
    seed: int = same_as(OutcomeModel, "seed")

    def contradictions(self) -> Iterator[InputError]:
        """Percentiles need replicates."""
        if self.interval == "bootstrap":
            yield from too_few_replicates(self.replicates, self.level)


@takes(RiskDifferenceOptions)
def risk_difference(
    y: object,
    adjustment: People,
    times: object,
    *,
    settings: RiskDifferenceOptions,
    cause: int | str | None = None,
    readjust: Readjust | None = None,
    score_covariates: object = None,
) -> RiskDifference:
    r"""Estimate risks of the outcome by arm, and their difference with an interval.

    .. math:: RD(t) = F_1(t) - F_0(t), \qquad
        F(t) = \sum_{s \le t} S(s-) \frac{d_1(s)}{Y(s)}

    where :math:`d_1` is the weighted number of outcomes, :math:`Y` the weighted number at risk, and
    S the probability of no event of any type. This is the Aalen-Johansen estimate, or 1 -
    Kaplan-Meier without competing events. After the end of follow-up of an arm, it is NaN, with a
    note, unless all people still followed then have an event.

    With `interval="bootstrap"`, matched sets are resampled, otherwise persons with all their rows.
    The limits of the interval are the percentiles (1 - level) / 2 and (1 + level) / 2 (type 7).
    Robust standard errors come from the infinitesimal jackknife over the same units, and limits are
    normal. Weights count as known, but with "stacked" the estimation of the scores counts, too.

    Parameters
    ----------
    y, adjustment, cause
        As for `survival`.
    times : number or (k,) numbers
    settings : RiskDifferenceOptions
    readjust : callable, optional
        As for `fit_outcome`. Persons of the whole population are then resampled.
    score_covariates : Design, data frame, matrix or array (n, p), optional
        As for `fit_outcome`, with `interval="stacked"`.

    Raises
    ------
    CohortError
        "BadOutcome", "BadSetting"; "EmptyArm" if an arm is empty; "LateEntry" as for `survival`.

    References
    ----------
    Aalen and Johansen (1978), Scandinavian Journal of Statistics 5, 141-150.
    Austin and Small (2014), Statistics in Medicine 33, 4306-4319, doi:10.1002/sim.6276, on drawing
    matched sets.

    Examples
    --------
    >>> import riskset as rs
    >>> people = rs.cohort.Population([1, 1, 0, 0])
    >>> y = rs.Surv([1.0, 4.0, 2.0, 4.0], [1, 0, 0, 1])
    >>> rs.cohort.risk_difference(y, people, 3, replicates=50).difference
    array([0.5])
    """
    check_score_covariates(settings.interval, score_covariates)
    if readjust is not None and settings.interval != "bootstrap":
        raise bad_setting(
            "readjust",
            "`readjust` adjusts resamples, but the interval does not use any.",
            hint="add `interval='bootstrap'`, or leave `readjust` out.",
        )
    adjustment, outcomes = followed_arms(y, adjustment, cause, allow_late=True)
    at = as_times(times)
    arms = _arms(outcomes, adjustment)
    target, comparator = (
        np.where(at > arm.end, np.nan, arm.risk(adjustment.weight, at)) for arm in arms
    )
    difference = target - comparator
    if settings.interval == "bootstrap":
        found = _resampled(adjustment, outcomes, arms, at, settings, readjust)
    else:
        is_stacked = settings.interval == "stacked"
        score = score_of_weights(adjustment, score_covariates) if is_stacked else None
        error = _robust_error(adjustment, outcomes, at, score)
        half = normal_quantile(settings.level) * error
        found = _Spread(error, difference - half, difference + half, 0)
    for values in found[:3]:
        values[np.isnan(difference)] = np.nan
    ends = {name: arm.end for name, arm in zip(ARMS, arms, strict=True)}
    return RiskDifference(
        times=at,
        target=target,
        comparator=comparator,
        difference=difference,
        se=found.standard_error,
        lower=found.lower,
        upper=found.upper,
        target_outcomes=arms[0].events_by(at),
        comparator_outcomes=arms[1].events_by(at),
        target_at_risk=arms[0].at_risk(at),
        comparator_at_risk=arms[1].at_risk(at),
        level=settings.level,
        n_left_out=found.n_left_out,
        notes=(*outcome_notes(outcomes, adjustment), *end_notes(at, ends)),
        interval=settings.interval,
    )


class _Spread(NamedTuple):
    standard_error: Rows
    lower: Rows
    upper: Rows
    n_left_out: int


def _resampled(
    adjustment: Adjustment,
    outcomes: Outcomes,
    arms: Sequence[ArmRows],
    at: Rows,
    settings: RiskDifferenceOptions,
    readjust: Readjust | None,
) -> _Spread:
    """Standard deviation and percentiles of resamples.

    A resample that happens to end earlier keeps its last value: without it those in which the
    people who are followed longest are drawn would count alone.
    """
    draws = []
    replicates, seed = settings.replicates, settings.seed
    if readjust is None:
        rows = np.flatnonzero(adjustment.kept)
        weight = np.zeros(adjustment.weight.size)
        for counts in counts_of_resamples(adjustment.cluster[rows], replicates, seed):
            weight[rows] = adjustment.weight[rows] * counts
            draws.append(arms[0].risk(weight, at) - arms[1].risk(weight, at))
    else:
        for own, made in readjusted(adjustment, readjust, replicates, seed):
            again = _arms(outcomes.take(own), made)
            draws.append(again[0].risk(made.weight, at) - again[1].risk(made.weight, at))
    found = np.array(draws).reshape(-1, at.size)
    good = found[~np.isnan(found).any(axis=1)]
    n_left_out = len(found) - len(good)
    if len(good) < 2:
        error, lower, upper = np.full((3, at.size), np.nan)
        return _Spread(error, lower, upper, n_left_out)
    tail = (1 - settings.level) / 2
    lower, upper = np.quantile(good, [tail, 1 - tail], axis=0)
    return _Spread(good.std(axis=0, ddof=1), lower, upper, n_left_out)


def _robust_error(
    adjustment: Adjustment, outcomes: Outcomes, at: Rows, score: EstimatedScore | None
) -> Rows:
    """Standard errors (k,) by the infinitesimal jackknife over matched sets, or persons."""
    rows = np.flatnonzero(adjustment.kept)
    arm = np.where(adjustment.population.is_target[rows], 0, 1)
    moved = np.zeros((rows.size, at.size))
    for code, sign in ((0, 1.0), (1, -1.0)):
        own = arm == code
        place = rows[own]
        table = outcomes.life_table(place, adjustment.weight[place])
        incidence = np.cumsum(survival_before(table)[0] * table.events[0] / table.at_risk)
        influence = incidence_influence(table, 0, incidence)
        moved[own] = sign * influence_at(table, influence, incidence, at)
    if score is not None:
        sums = score.cluster_sums(moved)
    else:
        _, cluster = np.unique(adjustment.cluster[rows], return_inverse=True)
        if are_of_one(cluster):
            return np.full(at.size, np.nan)
        sums = cluster_sums(moved, cluster)
    return np.asarray(np.sqrt((sums**2).sum(axis=0)))


def end_notes(times: Rows, ends: Mapping[str, float], unit: TimeUnit = "days") -> tuple[Note, ...]:
    """A note for each arm whose risk is not known at some of the times (k,), by its end.

    All are days; the note has the times in `unit`.
    """
    at = "by day {times}" if unit == "days" else f"at {{times}} {unit}"
    notes = []
    for arm, end in ends.items():
        late = times[times > end]
        if late.size:
            text = (
                "the follow-up of the {arm} ends after {end:g} {end:?day|days}, so its risk "
                f"{at} is not known."
            )
            values = {
                "arm": Value("name", arm),
                "end": Value("count", end),
                "times": Value("setting", ", ".join(f"{time / DAYS_IN[unit]:g}" for time in late)),
            }
            notes.append(Note("follow_up_ends", (), text, values))
    return tuple(notes)


def _arms(outcomes: Outcomes, adjustment: Adjustment) -> list[ArmRows]:
    return [ArmRows.of(outcomes, np.flatnonzero(arm)) for arm in adjustment.arms]
