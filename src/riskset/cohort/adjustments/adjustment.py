"""Weights and matched sets or strata, which balance, curves and models use.

Every adjustment has one weight per row (0 = left out) and, for matching and stratification, a set.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from riskset._errors import CohortError, counted
from riskset._messages import Note
from riskset._types import AnyArray, Index, Rows
from riskset.cohort.population import Population
from riskset.data.checks import Places, as_array

__all__ = [
    "Adjustment",
    "AdjustmentStatus",
    "Estimand",
    "Kind",
    "People",
    "Step",
    "are_of_one",
    "effective_size",
    "restrict",
    "start",
    "without_set",
]

Kind = Literal["none", "trimming", "matching", "stratification", "weighting"]
Estimand = Literal["ate", "att", "atu", "ato", "matching"]
AdjustmentStatus = Literal["ok", "empty", "one_arm_empty", "no_matches"]
REASONS: dict[str, str] = {
    "empty": "no people are left; the attrition shows which step removed the last ones.",
    "one_arm_empty": "one arm has no people left; the attrition shows which step removed them.",
    "no_matches": "no comparator is within the caliper of a target of the same block; use a wider "
    "caliper, or weights.",
}
"""Reasons why a study cannot go on, by status."""


@dataclass(frozen=True)
class Step:
    """Numbers after one step of building a population: a row of its attrition.

    Attributes
    ----------
    step : str
    target_persons, comparator_persons, target_exposures, comparator_exposures : int
    removed_target, removed_comparator : int
        Exposures removed by this step.

    Examples
    --------
    >>> import riskset as rs
    >>> people = rs.cohort.Population([1, 1, 0], [0.99, 0.6, 0.5])
    >>> step = rs.cohort.trim(people, symmetric=0.05).attrition[-1]
    >>> step.step, step.target_persons, step.removed_target
    ('score above 0.05 and below 0.95', 1, 1)
    """

    step: str
    target_persons: int
    comparator_persons: int
    target_exposures: int
    comparator_exposures: int
    removed_target: int = 0
    removed_comparator: int = 0


@dataclass(frozen=True, eq=False, repr=False)
class Adjustment:
    """Weights and sets of all rows of a population.

    Attributes
    ----------
    kind : {"none", "trimming", "matching", "stratification", "weighting"}
    estimand : str or None
        Population of the effect: "ate" all, "att" the target, "atu" the comparator, "ato" the
        overlap population. None for trimming only.
    population : Population
    weight : (n,) float64, >= 0
        Weights. 0 means left out.
    set_id : (n,) int64 or text, or None
        Matched set (row id of its target, or comparator if reversed), or stratum (1, 2, ...). If
        the weight is 0, it is -1 or, for row ids of text, "".
    status : {"ok", "empty", "one_arm_empty", "no_matches"}
    notes : tuple of Note
    attrition : tuple of Step
        Numbers after each step, starting with the population.
    settings : mapping
        Arguments of the adjustment.
    details : mapping
        Facts about the adjustment, such as cut-offs, the caliper or numbers of sets.

    Examples
    --------
    >>> import riskset as rs
    >>> people = rs.cohort.Population([1, 1, 0, 0], [0.50, 0.40, 0.49, 0.10])
    >>> matched = rs.cohort.match(people)
    >>> matched.n_target, matched.n_comparator
    (1, 1)
    >>> matched.kept
    array([ True, False,  True, False])
    >>> weighted = rs.cohort.weight(people, "ate")
    >>> [round(size, 3) for size in weighted.effective_sizes()]
    [1.976, 1.858]
    """

    kind: Kind
    estimand: Estimand | None
    population: Population
    weight: Rows
    set_id: AnyArray | None = None
    status: AdjustmentStatus = "ok"
    notes: tuple[Note, ...] = ()
    attrition: tuple[Step, ...] = ()
    settings: Mapping[str, object] = field(default_factory=dict)
    details: Mapping[str, object] = field(default_factory=dict)

    @property
    def reason(self) -> str | None:
        """Reason for a status other than "ok"."""
        return REASONS.get(self.status)

    @property
    def kept(self) -> NDArray[np.bool_]:
        """Rows of positive weight (n,)."""
        return self.weight > 0

    @property
    def arms(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Kept rows of the target and of the comparator, each (n,)."""
        return self.kept & self.population.is_target, self.kept & ~self.population.is_target

    @property
    def n_target(self) -> int:
        """Number of rows kept in the target arm."""
        return int(np.count_nonzero(self.arms[0]))

    @property
    def n_comparator(self) -> int:
        """Number of rows kept in the comparator arm."""
        return int(np.count_nonzero(self.arms[1]))

    @property
    def is_weighted(self) -> bool:
        """Whether rows of one arm have different weights."""
        weights = [self.weight[arm] for arm in self.arms]
        return any(w.size > 0 and bool((w != w[0]).any()) for w in weights)

    @property
    def cluster(self) -> AnyArray:
        """Clusters of rows: the matched set, otherwise the person (n,)."""
        if self.kind == "matching" and self.set_id is not None:
            return self.set_id
        return self.population.person_id

    def effective_sizes(self) -> tuple[float, float]:
        """Effective sample sizes of target and comparator; see `effective_size`."""
        arms = (self.weight[self.population.treatment == a] for a in (1, 0))
        target, comparator = (effective_size(w) for w in arms)
        return target, comparator

    def __repr__(self) -> str:
        found = "" if self.status == "ok" else f", status {self.status!r}: {self.reason}"
        about = "" if self.estimand is None else f", {self.estimand}"
        noted = "".join(f"\n  {note.code}: {note.message}" for note in self.notes)
        return (
            f"Adjustment({self.kind}{about}: {counted(self.n_target, 'target')}, "
            f"{counted(self.n_comparator, 'comparator')}{found}){noted}"
        )


People: TypeAlias = Population | Adjustment
"""A population, or what trimming left of it."""


def start(people: People, *, allow_weights: bool = False) -> Adjustment:
    """What a step starts from: everybody, or those that trimming left.

    Weights and sets, which a further step would undo, raise "AlreadyAdjusted".
    """
    if isinstance(people, Population):
        everyone = people.sampling_weight
        first = _count("population", people, everyone > 0)
        return Adjustment("none", None, people, everyone, status=_status(first), attrition=(first,))
    if not isinstance(people, Adjustment):
        raise CohortError(
            "BadPopulation",
            f"expected a Population or an Adjustment, but got {type(people).__name__}.",
            hint="make one with riskset.cohort.Population(treatment, score).",
        )
    if people.kind not in ("none", "trimming") and not allow_weights:
        raise CohortError(
            "AlreadyAdjusted",
            f"the people are already adjusted by {people.kind}.",
            hint="start from the Population, or from what `trim` left of it.",
        )
    return people


def narrowed(
    before: Adjustment,
    kind: Kind,
    steps: list[tuple[str, NDArray[np.bool_]]],
    **changes: object,
) -> Adjustment:
    """An adjustment after further steps, each with the rows that it keeps.

    `changes` are further attributes; without a weight the rows kept have their sampling weights.
    """
    people = before.population
    attrition = list(before.attrition)
    kept = before.kept
    for name, keeps in steps:
        kept = kept & keeps
        attrition.append(_count(name, people, kept, attrition[-1]))
    weight = np.where(kept, people.sampling_weight, 0.0)
    given: dict[str, object] = {"weight": weight, "estimand": None}
    given |= {"status": _status(attrition[-1]), "notes": ()} | changes
    given["notes"] = (*before.notes, *given["notes"])  # type: ignore[misc]
    if before.status != "ok":  # what went wrong first is the reason
        given["status"] = before.status
    return Adjustment(kind=kind, population=people, attrition=tuple(attrition), **given)  # type: ignore[arg-type]


def restrict(people: People, keep: object, step: str) -> Adjustment:
    """Keep selected rows, with a row in the attrition.

    Parameters
    ----------
    people : Population or Adjustment
        Weights and sets are not changed, for example for balance or effects in a subgroup.
    keep : (n,) bool
    step : str
        Reason, as shown in the attrition.

    Examples
    --------
    >>> import riskset as rs
    >>> people = rs.cohort.Population([1, 0, 0])
    >>> rs.cohort.restrict(people, [True, True, False], "no prior outcome")
    Adjustment(trimming: 1 target, 1 comparator)
    """
    before = start(people, allow_weights=True)
    chosen = as_array(keep, "`keep`", Places())
    if chosen.dtype.kind != "b" or chosen.shape != before.weight.shape:
        raise CohortError(
            "BadSelection",
            f"`keep` must be True or False for each of the {before.weight.size:,} rows, but it has "
            f"shape {chosen.shape} and type {chosen.dtype}.",
            hint="compare a column with a value, for example age >= 65.",
        )
    if before.kind in ("none", "trimming"):
        return narrowed(before, "trimming", [(step, chosen)], settings={"step": step})
    return narrowed(
        before,
        before.kind,
        [(step, chosen)],
        weight=np.where(chosen, before.weight, 0.0),
        set_id=None if before.set_id is None else without_set(before.set_id, ~chosen),
        estimand=before.estimand,
        settings={**before.settings, "step": step},
        details=before.details,
    )


def without_set(set_id: AnyArray, rows: NDArray[np.bool_]) -> AnyArray:
    """Sets, of which some rows are left out."""
    return np.where(rows, "" if set_id.dtype.kind == "U" else -1, set_id)


def effective_size(weight: Rows) -> float:
    r"""Kish's effective sample size :math:`(\sum w)^2 / \sum w^2`; 0 without weight."""
    squares = float(weight @ weight)
    return float(weight.sum()) ** 2 / squares if squares > 0 else 0.0


def _count(
    step: str, people: Population, kept: NDArray[np.bool_], before: Step | None = None
) -> Step:
    persons, exposures = [], []
    for arm in (1, 0):
        own = kept & (people.treatment == arm)
        exposures.append(int(np.count_nonzero(own)))
        alone = people.person_id is people.row_id
        persons.append(exposures[-1] if alone else np.unique(people.person_id[own]).size)
    last = exposures if before is None else [before.target_exposures, before.comparator_exposures]
    removed = [old - new for old, new in zip(last, exposures, strict=True)]
    return Step(step, persons[0], persons[1], exposures[0], exposures[1], removed[0], removed[1])


def _status(last: Step) -> AdjustmentStatus:
    target, comparator = last.target_exposures, last.comparator_exposures
    if not target and not comparator:
        return "empty"
    return "ok" if target and comparator else "one_arm_empty"


def are_of_one(cluster: Index) -> bool:
    """Whether all rows are of one matched set, or one person, which have no robust errors.

    Their influences add up to 0, and all resamples are the same.
    """
    return cluster.size > 1 and bool((cluster == cluster[0]).all())
