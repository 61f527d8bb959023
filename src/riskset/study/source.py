"""The people of a comparison, their covariates, and what became of them, whatever the data."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from riskset._messages import Note
from riskset._types import AnyArray, Index, Rows
from riskset.cohort.adjustment import Adjustment
from riskset.data.design import Design
from riskset.results.rows import ConceptRow
from riskset.study.sections import Analysis, Comparison
from riskset.study.variables import Labels

__all__ = ["ComparisonCohort", "EventWeeks", "Followed", "StudySource", "people_key"]


@dataclass(frozen=True, eq=False)
class ComparisonCohort:
    """The people of a comparison.

    Attributes
    ----------
    key : str
        What it depends on.
    people : Adjustment
        Nobody left out yet; with the steps that made it, and scores if they were given.
    design : Design
        Covariates.
    labels : mapping of str to Labels
        To match or stratify within, and of subgroups.
    years : (n,) int64 or None
        Calendar year of the index date.
    analyses : mapping of covariate key to (analysis id, domain)
        How covariates were made, where that is known.
    problem : (status, reason) or None
        Why it cannot be studied.
    notes : sequence of Note
    """

    key: str
    people: Adjustment
    design: Design
    labels: Mapping[str, Labels] = field(default_factory=dict)
    years: Index | None = None
    analyses: Mapping[int | str, tuple[int, str]] = field(default_factory=dict)
    problem: tuple[str, str] | None = None
    notes: Sequence[Note] = ()


@dataclass(frozen=True, eq=False)
class EventWeeks:
    """Weeks before and after the index date.

    Attributes
    ----------
    first_week : int
        Of the period that is looked at; week 0 begins on the index date.
    last_week : (n,) int64
        Week of the first outcome, or in which observation ends.
    has_event : (n,) bool
    """

    first_week: int
    last_week: Index
    has_event: AnyArray


@dataclass(frozen=True, eq=False)
class Followed:
    """What became of the people of a cohort, for one outcome.

    Attributes
    ----------
    key : str
        What it depends on.
    people : Adjustment
        Those who are followed.
    time : (n,) float64
        Days at risk; 1 for those who are not followed.
    status : (n,) int64
        0 = censored, 1 = outcome, 2 = competing event.
    reasons : (n,) text or None
        Why follow-up ended.
    notes : sequence of Note
    around : EventWeeks or None
        The first outcome about the index date, of everybody in the cohort.
    """

    key: str
    people: Adjustment
    time: Rows
    status: Index
    reasons: AnyArray | None = None
    notes: Sequence[Note] = ()
    around: EventWeeks | None = None


def people_key(people: Adjustment) -> str:
    """The same for the same people, if the same steps have left them."""
    key = hashlib.sha256(people.kept.tobytes())
    key.update(repr(people.attrition).encode())
    return key.hexdigest()[:24]


class StudySource(Protocol):
    """Where people come from.

    Attributes
    ----------
    sources : list of dict
        ``name``, ``fingerprint`` and ``rows`` of the files, for the results.
    """

    sources: list[dict[str, object]]

    def cohort(self, comparison: Comparison, analysis: Analysis) -> ComparisonCohort:
        """The people of a comparison."""

    def shared(self, comparison: Comparison, analysis: Analysis) -> Adjustment:
        """Those of them who can be followed, before anybody is left out for an outcome."""

    def follow(self, comparison: Comparison, analysis: Analysis, outcome: str) -> Followed:
        """What became of them."""

    def codes(self) -> list[ConceptRow]:
        """Rows of the table `codes`."""
