"""The people of a comparison, their covariates, and what became of them, whatever the data."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

from riskset._messages import Note, Sentence
from riskset._settings import Fault
from riskset._types import AnyArray, Index, Rows
from riskset.cohort.adjustments.adjustment import Adjustment
from riskset.cohort.outcomes import ArmCounts, Outcomes, count_arms
from riskset.data.covariate_labels import CovariateLabels
from riskset.data.design import Design
from riskset.data.outcome import Surv
from riskset.results.rows import ConceptRow
from riskset.study.sources.people_of_arms import PeopleOfArms
from riskset.study.specification.sections import Analysis, Comparison
from riskset.study.specification.study_definition import Study
from riskset.study.specification.subgroup_variables import Labels
from riskset.study.specification.validation import file_fault
from riskset.study.steps.strategy_plan import StrategyPlan

__all__ = [
    "AnalysedOutcome",
    "AnalysedPeople",
    "ComparisonCohort",
    "CovariateRecords",
    "Deviations",
    "EventWeeks",
    "Followed",
    "FollowedAnyway",
    "Measurements",
    "StudySource",
    "label_file",
    "people_key",
]


@dataclass(frozen=True, eq=False)
class ComparisonCohort:
    """The people of a comparison before anybody is left out, with their covariates in `design`.

    `key` identifies what they depend on. `labels` are those to match or stratify within, and of
    subgroups; `years` the calendar years of the index dates. `analyses` has analysis id and domain
    of each covariate, where these are known, and `covariate_labels` what readers call them, which
    are the names of the design. `problem` is the status and the reason why the
    comparison cannot be studied.

    If missing values are imputed, `completed` gives the cohort in one of `n_datasets` completed
    data sets. Such a cohort has the number of its `data_set`, the key of the cohort that it comes
    from (`base`), and the covariates as they were `observed`, with indicators of missing values.

    `arms` gives the people of several exposures, of which the comparison has two.
    """

    key: str
    people: Adjustment
    design: Design
    labels: Mapping[str, Labels] = field(default_factory=dict)
    years: Index | None = None
    analyses: Mapping[int | str, tuple[int, str]] = field(default_factory=dict)
    covariate_labels: CovariateLabels = field(default_factory=CovariateLabels)
    problem: tuple[str, Sentence] | None = None
    notes: Sequence[Note] = ()
    n_datasets: int = 0
    completed: Callable[[int], "ComparisonCohort"] | None = None
    data_set: int | None = None
    base: str | None = None
    observed: Design | None = None
    arms: Callable[[Sequence[str]], PeopleOfArms] | None = None


@dataclass(frozen=True, eq=False)
class EventWeeks:
    """First outcomes of everybody in a cohort by week; week 0 begins on the index date.

    `last_week` is the week of the first outcome, or in which observation ends.
    """

    first_week: int
    last_week: Index
    has_event: AnyArray


class Measurements(NamedTuple):
    """Values of a covariate over time (k,), of rows of the cohort, at days of the follow-up."""

    row: Index
    time: Rows
    value: Rows


class CovariateRecords(Protocol):
    """Covariates that can be known at any time of the follow-up."""

    def changes(self, key: int | str) -> bool:
        """Whether a covariate may change."""

    def design(self, rows: Index, time: Rows, keys: Sequence[int | str]) -> Design:
        """The covariates `keys` of rows of the cohort (m,) as they are known at times (m,)."""


@dataclass(frozen=True, eq=False)
class Deviations:
    """When the people of a cohort deviate from their treatment, and their covariates over time.

    `time` (n,) is on the clock of the follow-up, in days; infinite if they never do. `histories`
    are measurements by the names of the covariates. `records` has covariates at any time of the
    follow-up; None if the data have them at baseline alone. `plan` is that of strategies with a
    grace period, of which everybody has a clone in each arm.
    """

    key: str
    time: Rows
    histories: Mapping[str, Measurements] = field(default_factory=dict)
    records: CovariateRecords | None = None
    notes: Sequence[Note] = ()
    plan: StrategyPlan | None = None


@dataclass(frozen=True, eq=False)
class FollowedAnyway:
    """Times and statuses of a follow-up that goes on when people deviate, and when they do."""

    time: Rows
    status: Index
    deviations: Deviations


@dataclass(frozen=True, eq=False)
class Followed:
    """The follow-up of a cohort for one outcome; `people` are those who are followed.

    `time` is in days, and 1 for the others; `status` is 0 (censored), 1 (outcome) or 2 (competing
    event); `reasons` say why follow-up ended. `entry` are the days after which people come under
    observation, if some enter late. If follow-up ends when people deviate, `anyway` is the one that
    goes on.
    """

    key: str
    people: Adjustment
    time: Rows
    status: Index
    reasons: AnyArray | None = None
    notes: Sequence[Note] = ()
    around: EventWeeks | None = None
    entry: Rows | None = None
    anyway: FollowedAnyway | None = None

    @property
    def outcome(self) -> AnyArray:
        """Time, status and entry as functions of `riskset.cohort` take them."""
        return Surv(self.time, self.status, self.entry)

    @property
    def is_cloned(self) -> bool:
        """Whether everybody is in both arms."""
        return self.anyway is not None and self.anyway.deviations.plan is not None

    @property
    def outcomes(self) -> Outcomes:
        """The same, checked."""
        return Outcomes(self.time, self.status, self.entry)

    def counts(self, people: Adjustment) -> tuple[ArmCounts, ArmCounts]:
        """Counts and rates of the target and the comparator, of some of the cohort."""
        return count_arms(self.outcomes, people)


@dataclass(frozen=True, eq=False)
class AnalysedPeople:
    """The people of a cohort who are left so far, and the analysis that they are for."""

    cohort: ComparisonCohort
    people: Adjustment
    analysis: Analysis
    seed: int


@dataclass(frozen=True, eq=False)
class AnalysedOutcome(AnalysedPeople):
    """The people of an estimate: adjusted, and followed to an outcome."""

    followed: Followed


def people_key(people: Adjustment) -> str:
    """The same for the same people, if the same steps have left them."""
    key = hashlib.sha256(people.kept.tobytes())
    key.update(repr(people.attrition).encode())
    return key.hexdigest()[:24]


def label_file(study: Study) -> tuple[Path | None, list[Fault]]:
    """The table of labels, if the study has one, and the fault if there is no such file."""
    named = study.specification.data.covariate_labels
    if named is None:
        return None, []
    file = study.folder / named
    path = ("data", "covariate_labels")
    return file, [] if file.exists() else [file_fault(path, file)]


class StudySource(Protocol):
    """Where people come from: ``name``, ``fingerprint`` and ``rows`` of the files, and cohorts.

    `provenance` is what a CDM says of itself.
    """

    sources: list[dict[str, object]]
    provenance: dict[str, str]

    def cohort(self, comparison: Comparison, analysis: Analysis) -> ComparisonCohort:
        """The people of a comparison."""

    def shared(self, comparison: Comparison, analysis: Analysis) -> Adjustment:
        """Those of them who can be followed, before anybody is left out for an outcome."""

    def follow(self, comparison: Comparison, analysis: Analysis, outcome: str) -> Followed:
        """What became of them."""

    def deviations(self, comparison: Comparison, analysis: Analysis, outcome: str) -> Deviations:
        """When people deviate from their treatment, for a per-protocol analysis."""

    def codes(self) -> list[ConceptRow]:
        """Rows of the table `codes`."""
