"""What an outcome model takes as its events: times of hazards, or outcomes of people at risk.

A Poisson regression with an intercept (for each stratum) has the likelihood of one risk set of all
rows (of the stratum), once the intercept is profiled: given their number, the outcomes fall on
rows in proportion to time at risk times exp(x'b). So the partial likelihood with one time, the
ties of Breslow and the logarithm of the time at risk as the offset fits it. A logistic regression
conditional on its strata is the exact partial likelihood with one time.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from riskset._errors import CohortError
from riskset._messages import Note, Value
from riskset._types import AnyArray, Index, Rows
from riskset.cohort.effects.effect_scale import SCALES
from riskset.cohort.outcomes import Outcomes
from riskset.cohort.settings import OutcomeModel
from riskset.data.outcome import Surv
from riskset.model.cox import Ties

__all__ = ["ModelEvents", "model_events"]


@dataclass(frozen=True, eq=False)
class ModelEvents:
    """The outcome of the rows of one model, and the ties of its partial likelihood.

    Without ties, the likelihood is that of a logistic regression with one intercept.
    """

    y: AnyArray
    ties: Ties | None
    offset: Rows | None = None
    notes: tuple[Note, ...] = ()

    def constant(self, weight: Rows | None, strata: Index | None) -> float:
        """Log likelihood of a Poisson model less that of its risk sets: sum of D log D - D.

        D is the weighted number of outcomes of a stratum.
        """
        if self.offset is None:
            return 0.0
        events = self.y["event"].astype(np.float64) * (1.0 if weight is None else weight)
        own = np.zeros(events.size, dtype=np.int64)
        if strata is not None:
            _, own = np.unique(strata, return_inverse=True)
        totals = np.bincount(own, events)
        return float((xlogy(totals, totals) - totals).sum())


def model_events(outcomes: Outcomes, strata: Index | None, settings: OutcomeModel) -> ModelEvents:
    """The outcome as the model sees it."""
    time, status = outcomes.time, outcomes.status
    scale, at_once = SCALES[settings.model], np.ones(time.size)
    if scale == "hazard":
        return ModelEvents(outcomes.y, settings.ties)
    is_event = status == 1
    if scale == "rate":
        return ModelEvents(Surv(at_once, is_event), "breslow", np.log(outcomes.duration))
    if outcomes.entry is not None:
        raise CohortError(
            "LateEntry",
            "a logistic model needs people who are followed from the start, but some enter late.",
            hint="use a model of hazards or rates, or leave these people out.",
        )
    notes = _unequal_time(time, status)
    if strata is None:
        return ModelEvents(Surv(at_once, is_event), None, notes=notes)
    notes += _uninformative(is_event, strata)
    is_event, most = _informative(is_event, strata)
    return ModelEvents(Surv(at_once, is_event), "breslow" if most < 2 else "exact", notes=notes)


def _informative(is_event: NDArray[np.bool_], strata: Index) -> tuple[NDArray[np.bool_], int]:
    """Events of strata in which not everybody has one, and the most of a stratum.

    With one event, the exact likelihood of a stratum is that of Breslow.
    """
    _, own = np.unique(strata, return_inverse=True)
    size = np.bincount(own)
    events = np.bincount(own, is_event)
    left = is_event & (events < size)[own]
    return left, int(np.where(events < size, events, 0).max(initial=0))


def _uninformative(is_event: NDArray[np.bool_], strata: Index) -> tuple[Note, ...]:
    """That strata in which nobody or everybody has the outcome say nothing about its odds."""
    _, own = np.unique(strata, return_inverse=True)
    events, size = np.bincount(own, is_event), np.bincount(own)
    nobody, everybody = np.count_nonzero(events == 0), np.count_nonzero(events == size)
    if not nobody + everybody:
        return ()
    text = (
        "{without:,} of {n:,} strata contribute nothing to the estimates: nobody has the outcome "
        "in {nobody:,} of them, and everybody in {everybody:,}."
    )
    counts = {
        "without": nobody + everybody, "n": size.size, "nobody": nobody, "everybody": everybody,
    }  # fmt: skip
    values = {name: Value("count", count) for name, count in counts.items()}
    return (Note("strata_without_events", (), text, values),)


def _unequal_time(time: Rows, status: Index) -> tuple[Note, ...]:
    """That people count as without the outcome although their follow-up ended early."""
    n = int(np.count_nonzero((status == 0) & (time < time.max(initial=0.0))))
    if not n:
        return ()
    text = (
        "{n:row|rows} without the outcome {n:?has|have} a shorter time at risk than the longest "
        "one; a logistic model counts them as if they had been followed to the end."
    )
    return (Note("unequal_time_at_risk", (), text, {"n": Value("count", n)}),)
