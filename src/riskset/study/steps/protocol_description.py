"""What happened to people who are censored when they deviate: weighted curves, and deviations."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from riskset._errors import InputError
from riskset._types import AnyArray, Index, Rows
from riskset.cohort.adjustments.adjustment import Adjustment
from riskset.cohort.arms.curves import ARMS, ArmCurves
from riskset.cohort.outcomes import ArmCounts, Outcomes, count_rows
from riskset.cohort.population import Population
from riskset.curves.aalen_johansen import AalenJohansen, aalen_johansen
from riskset.curves.kaplan_meier import KaplanMeier, kaplan_meier
from riskset.results.rows import DeviationRow
from riskset.study.sources.source import Followed
from riskset.study.steps.deviation_weights import DEVIATION, WeightedRows

__all__ = ["WeightedPeople", "deviations_by_time", "weighted_counts", "weighted_curves"]

WEIGHTED = ("weighted_rate", "weighted_rate_lower", "weighted_rate_upper")


def weighted_curves(
    followed: Followed,
    people: Adjustment,
    rows: WeightedRows,
    level: float,
    *,
    has_competing: bool,
) -> ArmCurves:
    """Survival of both arms, or their incidence, from rows whose weights change with time.

    Standard errors come from the infinitesimal jackknife over people, and take weights as known.
    """
    weight = rows.whole_weight
    used = np.flatnonzero(weight > 0)
    population = people.population
    own = rows.person[used]
    names = np.where(population.is_target, *ARMS).astype(object)[own]
    y, cluster = rows.outcome[used], population.person_id[own]
    curves: KaplanMeier | AalenJohansen
    if has_competing:
        curves = aalen_johansen(
            y, names, weight[used], level, variance="robust", cluster=cluster, interval="log-log"
        )
    else:
        curves = kaplan_meier(
            y,
            names,
            weight[used],
            level,
            variance="robust",
            cluster=cluster,
            interval="log-log",
            cause=1,
        )
    of_arm = dict(zip(ARMS, people.arms, strict=True))
    of_arms = {arm: followed.outcomes.take(np.flatnonzero(here)) for arm, here in of_arm.items()}
    events = {
        (arm, cause): np.sort(followed.time[here & (followed.status == cause)])
        for arm, here in of_arm.items()
        for cause in (1, 2)
    }
    limit = float(np.quantile(followed.time[people.kept], 0.9))
    return ArmCurves(curves, limit, of_arms, events)


@dataclass(frozen=True, eq=False)
class WeightedPeople:
    """Rows with weights as functions of `riskset.cohort` take people: each row is an exposure.

    `y` has their start and stop, and `population` their weights as sampling weights. All rows of a
    person belong together, also those of clones in both arms.
    """

    y: AnyArray
    population: Population
    readjust: Callable[[Index], Population]

    @classmethod
    def of(cls, rows: WeightedRows, people: Adjustment) -> "WeightedPeople":
        """The rows with a weight above 0; `readjust` fits the weights of a resample again."""
        weight = rows.whole_weight
        used = np.flatnonzero(weight > 0)
        own = rows.person[used]
        treatment, person = people.population.treatment[own], people.population.person_id[own]

        def readjust(drawn: Index) -> Population:
            count = np.bincount(used[drawn], minlength=weight.size)
            try:
                again = rows.weights.parts.fit(count).weight * rows.sample_weight
            except InputError:  # such as an arm in which everybody deviates: it is left out
                return Population(np.ones(drawn.size, dtype=np.int64))
            again = again[used][drawn]
            return Population(treatment[drawn], person_id=person[drawn], sampling_weight=again)

        population = Population(treatment, person_id=person, sampling_weight=weight[used])
        return cls(rows.outcome[used], population, readjust)


def weighted_counts(
    followed: Followed, people: Adjustment, rows: WeightedRows
) -> tuple[ArmCounts, ArmCounts]:
    """Counts of the target and the comparator, whose weighted rates have the weights of rows."""
    own = rows.weights.rows
    outcomes, found = Outcomes(own.time - own.entry, own.status), []
    for arm, counts in zip((1, 0), followed.counts(people), strict=True):
        weighted = count_rows(outcomes, own.person, rows.whole_weight, own.treatment == arm)
        found.append(replace(counts, **{name: getattr(weighted, name) for name in WEIGHTED}))
    return found[0], found[1]


def deviations_by_time(followed: Followed, people: Adjustment, breaks: Rows) -> list[DeviationRow]:
    """People of each arm who deviate, and whose follow-up ends otherwise, between the breaks.

    An interval has its start and not its end; the last one has all that follows.
    """
    assert followed.reasons is not None
    leaves: AnyArray = followed.reasons == DEVIATION
    ends = [*((float(a), float(b)) for a, b in pairwise(breaks)), (float(breaks[-1]), np.inf)]
    found = []
    for arm, here in zip(ARMS, people.arms, strict=True):
        for start, end in ends:
            inside = here & (start <= followed.time) & (followed.time < end)
            n = int(np.count_nonzero(inside & leaves))
            found.append(
                DeviationRow(
                    arm=arm,
                    start=start,
                    end=end if np.isfinite(end) else None,
                    deviations=n,
                    others=int(np.count_nonzero(inside)) - n,
                )
            )
    return found
