"""Risks of the arms at given times, and their difference with a bootstrap interval."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from riskset._errors import counted
from riskset._keywords import takes
from riskset._messages import Note, Value
from riskset._settings import Settings, same_as, settings
from riskset._time_units import DAYS_IN, TimeUnit
from riskset._types import AnyArray, Index, Rows
from riskset.cohort.adjustment import Adjustment, People
from riskset.cohort.arm_rows import ArmRows
from riskset.cohort.curves import ARMS, followed_arms
from riskset.cohort.outcomes import Outcomes
from riskset.cohort.resampling import Readjust, counts_of_resamples, readjusted
from riskset.cohort.settings import OutcomeModel
from riskset.curves._result import as_times
from riskset.data.frame import data_frame

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
        Standard deviation and percentiles of the difference in the resamples. NaN if the difference
        is, or with fewer than two usable resamples.
    target_outcomes, comparator_outcomes : int64
        People with the outcome by each time, counted once.
    target_at_risk, comparator_at_risk : int64
        People at risk just before each time.
    level : float
    n_left_out : int
        Number of resamples with an empty arm.
    notes : tuple of Note
        "follow_up_ends": times after the end of follow-up of an arm.

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
class Resampling(Settings):
    """The resamples from which intervals of risks are computed."""

    level: float = same_as(OutcomeModel, "level")
    replicates: int = same_as(OutcomeModel, "replicates")
    seed: int = same_as(OutcomeModel, "seed")


@takes(Resampling)
def risk_difference(
    y: object,
    adjustment: People,
    times: object,
    *,
    settings: Resampling,
    cause: int | str | None = None,
    readjust: Readjust | None = None,
) -> RiskDifference:
    r"""Estimate risks of the outcome by arm, and their difference with a bootstrap interval.

    .. math:: RD(t) = F_1(t) - F_0(t), \qquad
        F(t) = \sum_{s \le t} S(s-) \frac{d_1(s)}{Y(s)}

    where :math:`d_1` is the weighted number of outcomes, :math:`Y` the weighted number at risk, and
    S the probability of no event of any type. This is the Aalen-Johansen estimate, or 1 -
    Kaplan-Meier without competing events. After the end of follow-up of an arm, it is NaN, with a
    note, unless all people still followed then have an event.

    Matched sets are resampled, otherwise persons with all their rows. The limits of the interval
    are the percentiles (1 - level) / 2 and (1 + level) / 2 (type 7).

    Parameters
    ----------
    y, adjustment, cause
        As for `survival`.
    times : number or (k,) numbers
    settings : Resampling
    readjust : callable, optional
        As for `fit_outcome`. Persons of the whole population are then resampled.

    Raises
    ------
    CohortError
        "BadOutcome", "BadSetting"; "EmptyArm" if an arm is empty.

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
    level, replicates, seed = settings.level, settings.replicates, settings.seed
    adjustment, outcomes = followed_arms(y, adjustment, cause)
    at = as_times(times)
    arms = _arms(outcomes, adjustment)
    target, comparator = (
        np.where(at > arm.end, np.nan, arm.risk(adjustment.weight, at)) for arm in arms
    )
    difference = target - comparator
    draws = []
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
    found = np.array(draws)
    good = found[~np.isnan(found).any(axis=1)]
    se, lower, upper = (np.full(at.size, np.nan) for _ in range(3))
    if len(good) > 1:
        tail = (1 - level) / 2
        se = good.std(axis=0, ddof=1)
        lower, upper = np.quantile(good, [tail, 1 - tail], axis=0)
        # A resample that happens to end earlier keeps its last value: without it those in which
        # the people who are followed longest are drawn would count alone.
        for values in (se, lower, upper):
            values[np.isnan(difference)] = np.nan
    ends = {name: arm.end for name, arm in zip(ARMS, arms, strict=True)}
    return RiskDifference(
        times=at,
        target=target,
        comparator=comparator,
        difference=difference,
        se=se,
        lower=lower,
        upper=upper,
        target_outcomes=arms[0].events_by(at),
        comparator_outcomes=arms[1].events_by(at),
        target_at_risk=arms[0].at_risk(at),
        comparator_at_risk=arms[1].at_risk(at),
        level=level,
        n_left_out=len(found) - len(good),
        notes=end_notes(at, ends),
    )


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
                f"the follow-up of the {{arm}} ends after {{end:g}} days, so its risk {at} is not "
                "known."
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
