"""The step of the weights of several treatments, which all comparisons of these share."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from riskset._errors import InputError
from riskset._types import AnyArray, Index
from riskset.cohort.adjustments.adjustment import Adjustment, Estimand, narrowed, start
from riskset.cohort.adjustments.several_treatments import TreatmentWeights, weight_treatments
from riskset.cohort.covariates.covariate_balance import balance
from riskset.cohort.population import Population
from riskset.data.design import Design
from riskset.study.cache import StepResult
from riskset.study.sources.people_of_arms import PeopleOfArms
from riskset.study.sources.source import AnalysedPeople, ComparisonCohort
from riskset.study.specification.sections import Analysis, Comparison
from riskset.study.steps.data_set_means import mean_array
from riskset.study.steps.propensity_step import status_of, tidy_covariates

__all__ = [
    "LargestDifference",
    "TreatmentWeightStep",
    "mean_weights",
    "weigh_treatments",
    "weighted_pair",
]


class LargestDifference(NamedTuple):
    """The largest absolute standardised difference after the weighting, and where it is."""

    size: float
    covariate: str
    between: str


@dataclass(frozen=True, eq=False, kw_only=True)
class TreatmentWeightStep(StepResult, step="weights of treatments"):
    """Weights of everybody who has one of several treatments (n,).

    `smd` (pairs, p) are the standardised differences of the covariates `names` after the weighting,
    between the treatments of each of the `pairs`.
    """

    weight: AnyArray | None = None
    smd: AnyArray | None = None
    names: list[str] = field(default_factory=list)
    pairs: list[str] = field(default_factory=list)

    @property
    def largest(self) -> LargestDifference | None:
        """The largest difference between any two treatments, if one is known."""
        if self.smd is None:
            return None
        size = np.abs(self.smd)
        if not size.size or np.isnan(size).all():
            return None
        pair, covariate = np.unravel_index(np.nanargmax(size), size.shape)
        return LargestDifference(
            float(size[pair, covariate]), self.names[covariate], self.pairs[pair]
        )


def mean_weights(steps: Sequence[TreatmentWeightStep]) -> TreatmentWeightStep:
    """The weights of completed data sets as one: the means of weights and differences."""
    weights = [step.weight for step in steps if step.weight is not None]
    differences = [step.smd for step in steps if step.smd is not None]
    if len(weights) < len(steps) or len(differences) < len(steps):
        return next(step for step in steps if step.weight is None or step.smd is None)
    return replace(steps[0], notes=(), weight=mean_array(weights), smd=mean_array(differences))


def weigh_treatments(
    people: PeopleOfArms, analysis: Analysis, seed: int, checkpoint: Path | None = None
) -> TreatmentWeightStep:
    """The weights, by the generalised propensity scores of the tidy covariates.

    `checkpoint` is a file for replicates of the cross-validation that are done.
    """
    section = analysis.weight_treatments
    assert section is not None
    design, settings = people.design(), section.weighting(seed)
    first = Population(
        (people.treatment == section.arms[0]).astype(np.int64),
        sampling_weight=people.sampling_weight,
    )
    cohort = ComparisonCohort(people.key, start(first), design, analyses=people.analyses)
    has_search = settings.method == "score" and settings.chooses_penalty
    try:
        everybody = AnalysedPeople(cohort, cohort.people, analysis, seed)
        found = weight_treatments(
            people.treatment,
            tidy_covariates(everybody, section.exclude)[1],
            settings=settings,
            sampling_weight=people.sampling_weight,
            person_id=people.person_id,
            checkpoint=checkpoint if has_search else None,
        )
    except InputError as error:
        status, reason = status_of(error)
        return TreatmentWeightStep(status=status, reason=reason)
    return _with_balance(found, design, analysis)


def _with_balance(
    found: TreatmentWeights, design: Design, analysis: Analysis
) -> TreatmentWeightStep:
    """The weights, with the differences of all pairs."""
    pairs = list(itertools.combinations(found.treatments, 2))
    measured = [
        balance(design.take_rows(found.rows(*pair)), found.pair(*pair), settings=analysis.balance)
        for pair in pairs
    ]
    return TreatmentWeightStep(
        weight=found.weight,
        smd=np.array([one.after.smd for one in measured]),
        names=list(map(str, measured[0].names)),
        pairs=[f"{one}, {other}" for one, other in pairs],
    )


def weighted_pair(
    people: Adjustment, weights: TreatmentWeightStep, place: Index, analysis: Analysis,
    comparison: Comparison,
) -> Adjustment:  # fmt: skip
    """The people of a comparison who are left so far, with the weights of all treatments."""
    section = analysis.weight_treatments
    assert section is not None
    assert weights.weight is not None
    estimand: Estimand | None = section.estimand
    if section.estimand == "att":  # of one of the treatments, which may be neither of these
        roles: dict[object, Estimand] = {comparison.target: "att", comparison.comparator: "atu"}
        estimand = roles.get(section.target)
    weight = np.where(people.kept, weights.weight[place], 0.0)
    return narrowed(people, "weighting", [], weight=weight, estimand=estimand)
