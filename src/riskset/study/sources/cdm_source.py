"""The people of a study from an OMOP CDM."""

import dataclasses
import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from riskset._messages import Sentence, Value
from riskset._settings import as_dict
from riskset._types import AnyArray, Index, Rows
from riskset.cohort.adjustments.adjustment import Adjustment, AdjustmentStatus, Step
from riskset.cohort.population import Population
from riskset.data.covariate_labels import CovariateLabels
from riskset.data.design import Design
from riskset.data.documents import checksum
from riskset.omop.characteristics import characteristics
from riskset.omop.concepts import ConceptSet
from riskset.omop.covariates import Covariates
from riskset.omop.eligibility import Eligibility
from riskset.omop.events import Diagnosis
from riskset.omop.exposures import Cohorts, CohortTable, NewUserCohort
from riskset.omop.risk import StudyPopulation, TimeAtRisk
from riskset.omop.study_cohort import StudyCohort
from riskset.omop.treatment_changes import days_to_change
from riskset.results.rows import ConceptRow
from riskset.study.cache import StepCache, StepResult, digest
from riskset.study.sources.cdm_opening import cohort_file, fetch, files_of, open_cdm
from riskset.study.sources.cohort_records import StudyCohorts
from riskset.study.sources.people_of_arms import PeopleOfArms
from riskset.study.sources.records_over_time import RecordsOverTime
from riskset.study.sources.source import (
    ComparisonCohort,
    Deviations,
    EventWeeks,
    Followed,
    label_file,
)
from riskset.study.specification.codes import Codes
from riskset.study.specification.data_sections import CdmData
from riskset.study.specification.exposure_sections import CdmExposure, NewUsers
from riskset.study.specification.outcome_sections import CdmOutcome
from riskset.study.specification.sections import Analysis, Comparison, CovariateSection
from riskset.study.specification.study_definition import Study
from riskset.study.specification.subgroup_variables import Labels, label_people
from riskset.warehouse.pull import PullListener

__all__ = ["CdmSource"]

WEEKS = 52
"""Before and after the index date, in which first outcomes are counted by week."""


@dataclass(frozen=True, eq=False, kw_only=True)
class LeftStep(StepResult, step="time at risk"):
    """Who of a cohort is left, by the ids of their rows, and the steps that left them."""

    people_status: AdjustmentStatus
    attrition: tuple[Step, ...]
    row_id: AnyArray


@dataclass(frozen=True, eq=False, kw_only=True)
class FollowUpStep(LeftStep, step="time at risk"):
    """What became of those who are left, and the first outcomes of the whole cohort by week."""

    time: AnyArray
    event: AnyArray
    end_reason: AnyArray
    first_week: int
    last_week: AnyArray
    has_event: AnyArray


@dataclass(frozen=True, eq=False, kw_only=True)
class DeviationStep(StepResult, step="deviations"):
    """Days after index on which people leave the treatment of their arm; infinite: never."""

    day: AnyArray


@dataclass(frozen=True, eq=False, kw_only=True)
class CohortStep(LeftStep, step="cohort"):
    """A cohort, and how its covariates were made; their values are in a file."""

    person_id: AnyArray
    treatment: AnyArray
    year: AnyArray
    covariate_id: AnyArray
    analysis_id: AnyArray
    domain: AnyArray


@dataclass(frozen=True, eq=False, kw_only=True)
class PlaceStep(StepResult, step="place among all arms"):
    """Where the people of a comparison (n,) are among those of all arms."""

    place: AnyArray


@dataclass(frozen=True, eq=False, kw_only=True)
class PeopleStep(StepResult, step="people"):
    """Columns of the people of a cohort, such as age."""

    columns: dict[str, AnyArray]


@dataclass(frozen=True, eq=False, kw_only=True)
class CodesStep(StepResult, step="codes"):
    """The concepts of all definitions."""

    rows: list[ConceptRow]


class CdmSource:
    """An OMOP CDM, as a `StudySource`. The cache keeps cohorts, covariates and follow-up.

    `progress` gets how far pulls from a database are.
    """

    place = "the CDM"
    """What messages call the data."""

    def __init__(
        self, study: Study, cache: StepCache, progress: PullListener = lambda pull: None
    ) -> None:
        self._study, self._cache, data = study, cache, study.specification.data
        assert isinstance(data, CdmData)
        labels, faults = label_file(study)
        study.refuse(faults)
        self._covariate_labels = CovariateLabels.read(labels)
        self._cdm = open_cdm(study, cache, progress)
        try:
            cohorts = cohort_file(study, self._cdm)
            table: object = cohorts or data.cohort_table.lower()
            fetch(study, self._cdm, table)
            files = files_of(study, self._cdm)
            files += [] if cohorts is None else [cohorts]
            files += [] if labels is None else [labels]
            self.sources: list[dict[str, object]] = [
                {"name": name, "fingerprint": fingerprint, "rows": None}
                for name, fingerprint in (
                    *((name, kept.checksum) for name, kept in sorted(self._cdm.pulled.items())),
                    *((file.name, checksum(file)) for file in files),
                )
            ]
        except BaseException:
            self.close()
            raise
        self.provenance = self._cdm.source_facts()
        self._cohorts = StudyCohorts(study.specification, study.folder, self._cdm, table)
        prints = [s["fingerprint"] for s in self.sources]
        self._print_of_labels = None if labels is None else prints[-1]
        fingerprints = prints if labels is None else prints[:-1]
        self._key = digest("cdm", fingerprints, data.schema, data.ignore, data.cohort_table)
        self._last: tuple[str, ComparisonCohort] | None = None
        self._selected: tuple[str, StudyCohort] | None = None
        self._over_time: tuple[str, RecordsOverTime] | None = None

    def close(self) -> None:
        """Let go of the files."""
        self._cdm.close()

    def cohort(self, comparison: Comparison, analysis: Analysis) -> ComparisonCohort:
        """The people of a comparison with their covariates; the last ones are remembered."""
        entry_key = self._entry_key(comparison, analysis)
        settings = analysis.covariates or CovariateSection()
        key = digest(entry_key, as_dict(settings))
        if self._last is None or self._last[0] != key:
            self._last = (key, self._read(key, comparison, analysis, settings))
        return self._last[1]

    def shared(self, comparison: Comparison, analysis: Analysis) -> Adjustment:
        """Those with a time at risk, whatever they had before it."""
        window = dataclasses.replace(analysis.window(), remove_prior_outcome=False)
        step = self._cache.get_or_compute(
            LeftStep,
            comparison.names,
            [self._entry_key(comparison, analysis), as_dict(window)],
            lambda: LeftStep(
                **_left(window.follow(self._cdm, self._select(comparison, analysis), ()))
            ),
        )
        return _people(self.cohort(comparison, analysis).people, step)

    def follow(self, comparison: Comparison, analysis: Analysis, outcome: str) -> Followed:
        """What became of them in the time at risk of an analysis."""
        event = self._study.specification.outcomes[outcome]
        assert isinstance(event, CdmOutcome)
        cohort, window = self.cohort(comparison, analysis), analysis.window(event)
        competing = list(self._study.specification.competing_events.values())
        step = self._cache.get_or_compute(
            FollowUpStep,
            f"{comparison.names}, {outcome}",
            [
                self._entry_key(comparison, analysis),
                self._definition(event),
                [self._definition(other) for other in competing],
                as_dict(window),
            ],
            functools.partial(self._follow, comparison, analysis, window, event, competing),
        )
        population = cohort.people.population
        place = np.searchsorted(population.row_id, step.row_id)
        n = population.n_rows
        time, status = np.ones(n), np.zeros(n, dtype=np.int64)
        reasons = np.full(n, "", dtype=step.end_reason.dtype)
        time[place], status[place], reasons[place] = step.time, step.event, step.end_reason
        people = _people(cohort.people, step)
        around = EventWeeks(step.first_week, step.last_week, step.has_event)
        key = digest(cohort.key, step.key)
        return Followed(key, people, time, status, reasons, step.notes, around)

    def deviations(self, comparison: Comparison, analysis: Analysis, outcome: str) -> Deviations:
        """When their exposure ends, or that of another arm starts."""
        event = self._study.specification.outcomes[outcome]
        assert isinstance(event, CdmOutcome)
        start = analysis.window(event).risk_start
        step = self._cache.get_or_compute(
            DeviationStep,
            comparison.names,
            self._entry_key(comparison, analysis),
            functools.partial(self._changes, comparison, analysis),
        )
        # The first day at risk ends at time 1.
        return Deviations(
            digest(step.key, start),
            step.day - start + 1,
            records=self._records(comparison, analysis, start - 1, step.day),
        )

    def _changes(self, comparison: Comparison, analysis: Analysis) -> DeviationStep:
        episodes = self._episodes(comparison, analysis).table
        cohort = self._select(comparison, analysis)
        return DeviationStep(day=days_to_change(self._cdm, cohort, episodes))

    def _records(
        self, comparison: Comparison, analysis: Analysis, day: int, deviates: Rows
    ) -> RecordsOverTime | None:
        """Covariates over time; `day` is the day after index with which time 0 ends.

        Those of the last cohort are remembered: outcomes have nearly the same rows.
        """
        settings = analysis.covariates or CovariateSection()
        key = digest(self._entry_key(comparison, analysis), as_dict(settings), day)
        if self._over_time is None or self._over_time[0] != key:
            select = functools.partial(self._select, comparison, analysis)
            own = RecordsOverTime(self._cdm, select, settings, day, deviates)
            self._over_time = (key, own)
        return self._over_time[1]

    def codes(self) -> list[ConceptRow]:
        """The concepts of all definitions, as they are given."""
        asked = self._study.specification
        lists: dict[str, Codes] = {
            name: member
            for members in (asked.exposures, asked.outcomes, asked.competing_events)
            for name, member in members.items()
            if isinstance(member, Codes)
        }
        definitions = {name: self._definition(member) for name, member in lists.items()}
        return self._cache.get_or_compute(
            CodesStep,
            "all definitions",
            [self._key, definitions],
            lambda: CodesStep(rows=list(self._named(lists))),
        ).rows

    def _named(self, lists: dict[str, Codes]) -> Iterator[ConceptRow]:
        sets = {name: self._set_of(codes) for name, codes in lists.items()}
        wanted = sorted({item.concept for concepts in sets.values() for item in concepts.items})
        columns = ("concept_id", "concept_name")
        view = self._cdm.view("concept", columns, ("vocabulary_id",), needed=False)
        listed = ", ".join(map(str, wanted)) or "NULL"
        with self._cdm.scratch() as work:
            known = {
                c: (name, vocabulary)
                for c, name, vocabulary in work.rows(
                    f"SELECT concept_id, concept_name, vocabulary_id FROM {view} "
                    f"WHERE concept_id IN ({listed}) ORDER BY ALL"
                )
            }
        for name, concepts in sets.items():
            for item in sorted(concepts.items, key=lambda item: item.exclude):
                unknown = (f"[unknown concept {item.concept}]", None)
                label, vocabulary = known.get(item.concept, unknown)
                yield ConceptRow(
                    list=name,
                    concept_id=item.concept,
                    name=label,
                    vocabulary=vocabulary,
                    excluded=item.exclude,
                )

    def _set_of(self, codes: Codes) -> ConceptSet:
        """Its concepts, or all those that its cohort definition lists."""
        definition = self._cohorts.definition(codes)
        if definition is None:
            return codes.as_set(self._study.folder)
        listed = definition.concept_sets.values()
        return ConceptSet(dict.fromkeys(item for one in listed for item in one.items))

    def _entry_key(self, comparison: Comparison, analysis: Analysis) -> str:
        known = self._study.specification.exposures
        arms = [known[name] for name in _arms(comparison, analysis)]
        return digest(
            self._key,
            [self._definition(arm) for arm in arms if isinstance(arm, CdmExposure)],
            as_dict(analysis.new_users or NewUsers()),
            as_dict(analysis.entry),
            *self._nesting_key(analysis),
        )

    def _nesting_key(self, analysis: Analysis) -> list[str]:
        """The definition of the nesting cohort, if the study has one."""
        number = analysis.entry.nesting_cohort
        expression = self._cohorts.expression(number) if isinstance(number, int) else None
        return [] if expression is None else [expression]

    def _entry(self, analysis: Analysis) -> Eligibility:
        """Who may enter, with the records of the nesting cohort."""
        number = analysis.entry.nesting_cohort
        if not isinstance(number, int):
            return analysis.entry
        return dataclasses.replace(analysis.entry, nesting_cohort=self._cohorts.nesting(number))

    def _select(self, comparison: Comparison, analysis: Analysis) -> StudyCohort:
        """The people of a comparison who may enter."""
        return self._select_arms(comparison, analysis).compared()

    def _select_arms(self, comparison: Comparison, analysis: Analysis) -> StudyCohort:
        """Those of all arms; done when it is needed, and the last one is remembered."""
        key = self._entry_key(comparison, analysis)
        if self._selected is None or self._selected[0] != key:
            cohort = self._entry(analysis).select(self._cdm, self._episodes(comparison, analysis))
            self._selected = (key, cohort)
        return self._selected[1]

    def _episodes(self, comparison: Comparison, analysis: Analysis) -> Cohorts:
        known, arms = self._study.specification.exposures, {}
        for name in _arms(comparison, analysis):
            arm = known[name]
            assert isinstance(arm, CdmExposure)
            arms[name] = arm
        if all(arm.is_cohort for arm in arms.values()):
            one, two, *more = (self._cohorts.number(arm) for arm in arms.values())
            source = self._cohorts.source(arms[comparison.target])
            return CohortTable(one, two, source, others=tuple(more)).read(self._cdm)
        new_users = as_dict(analysis.new_users or NewUsers())
        target, comparator, *others = (
            arm.as_set(self._study.folder, name) for name, arm in arms.items()
        )
        cohort = NewUserCohort(target, comparator, others=tuple(others), **new_users)
        return cohort.read(self._cdm)

    def _read(
        self, key: str, comparison: Comparison, analysis: Analysis, settings: CovariateSection
    ) -> ComparisonCohort:
        path = self._cache.path("covariates", f"{key}.rsd")

        def extract() -> CohortStep:
            return self._extract(comparison, self._select(comparison, analysis), settings, path)

        step = self._cache.get_or_compute(CohortStep, comparison.names, key, extract)
        if not path.exists():  # deleted by somebody
            extract()
        population = Population(step.treatment, row_id=step.row_id, person_id=step.person_id)
        people = Adjustment(
            "none",
            None,
            population,
            np.ones(population.n_rows),
            status=step.people_status,
            attrition=step.attrition,
        )
        design = Design.open(path, verify=False)
        labels = self._covariate_labels
        unknown = labels.check(design, has_long=True, place=self.place)
        design = labels.labelled(design)
        return ComparisonCohort(
            key if not labels else digest(key, self._print_of_labels),
            people,
            design,
            self._labels(comparison, analysis, design),
            years=step.year,
            analyses=_analyses(step),
            covariate_labels=labels,
            problem=_problem(step),
            notes=(*step.notes, *unknown),
            arms=functools.partial(self._people_of_arms, comparison, analysis, settings),
        )

    def _people_of_arms(
        self,
        comparison: Comparison,
        analysis: Analysis,
        settings: CovariateSection,
        names: Sequence[str],
    ) -> PeopleOfArms:
        """Everybody who enters with one of several exposures, of which a comparison has two."""
        first = Comparison(names[0], names[1])  # the same for all comparisons
        key = digest("all arms", self._entry_key(first, analysis), as_dict(settings))
        path = self._cache.path("covariates", f"{key}.rsd")

        def extract() -> CohortStep:
            return self._extract(first, self._select_arms(first, analysis), settings, path)

        def place() -> PlaceStep:
            everybody = self._select_arms(first, analysis)
            own = self._select(comparison, analysis)
            pair = [comparison.target, comparison.comparator]
            names_of = _arm_names(_column(everybody.table, "treatment"), first, analysis)
            rows = np.flatnonzero(np.isin(names_of, pair))
            among = _in_order(everybody.table, first, analysis, rows)
            found = np.empty(rows.size, dtype=np.int64)
            found[_in_order(own.table, comparison, analysis, np.arange(rows.size))] = among
            return PlaceStep(place=found)

        step = self._cache.get_or_compute(CohortStep, ", ".join(names), key, extract)
        if not path.exists():  # deleted by somebody
            extract()
        placed = self._cache.get_or_compute(
            PlaceStep, comparison.names, [key, self._entry_key(comparison, analysis)], place
        )
        return PeopleOfArms(
            key,
            _arm_names(step.treatment, first, analysis),
            placed.place,
            lambda: self._covariate_labels.labelled(Design.open(path, verify=False)),
            person_id=step.person_id,
            analyses=_analyses(step),
        )

    def _labels(
        self, comparison: Comparison, analysis: Analysis, design: Design
    ) -> dict[str, Labels]:
        names = [name for name, _ in self._study.specification.column_uses()]
        variables = self._study.specification.variables
        columns = [name for name in names if name not in variables]
        columns += [v.column for v in variables.values() if v.column is not None]
        people: dict[str, AnyArray] = {}
        if columns:
            wanted = sorted(set(columns))
            people = self._cache.get_or_compute(
                PeopleStep,
                comparison.names,
                [self._entry_key(comparison, analysis), wanted],
                lambda: PeopleStep(
                    columns=characteristics(self._cdm, self._select(comparison, analysis), wanted)
                ),
            ).columns
        where = f"the covariates of {comparison.target} and {comparison.comparator}"
        return label_people(self._study, names, lambda name, _: people[name], design, where)

    def _covariates(
        self, comparison: Comparison, cohort: StudyCohort, settings: CovariateSection
    ) -> Covariates:
        return Covariates.extract(self._cdm, cohort, settings.extraction)

    def _extract(
        self, comparison: Comparison, cohort: StudyCohort, settings: CovariateSection, path: Path
    ) -> CohortStep:
        covariates = self._covariates(comparison, cohort, settings)
        covariates.design().save(path)
        days = _column(cohort.table, "index_date").astype("datetime64[Y]")
        return CohortStep(
            notes=(*cohort.notes, *covariates.notes),
            people_status=cohort.status,
            attrition=cohort.attrition.steps,
            row_id=_column(cohort.table, "row_id"),
            person_id=_column(cohort.table, "person_id"),
            treatment=_column(cohort.table, "treatment"),
            year=days.astype(np.int64) + 1970,
            covariate_id=_column(covariates.ref, "covariate_id"),
            analysis_id=_column(covariates.ref, "analysis_id"),
            domain=_column(covariates.ref, "domain").astype(np.str_),
        )

    def _follow(
        self,
        comparison: Comparison,
        analysis: Analysis,
        window: TimeAtRisk,
        event: CdmOutcome,
        competing: Sequence[CdmOutcome],
    ) -> FollowUpStep:
        cohort = self._select(comparison, analysis)
        others = [self._event(comparison, other) for other in competing]
        own = self._event(comparison, event)
        left = window.follow(self._cdm, cohort, own, others)
        weeks = self._around(cohort, own, self._weeks_before(cohort, analysis))
        return FollowUpStep(
            notes=tuple(note for note in left.notes if note not in cohort.notes),
            **_left(left),
            time=left.column("survival_time"),
            event=left.column("status"),
            end_reason=left.column("end_reason").astype(np.str_),
            first_week=weeks.first_week,
            last_week=weeks.last_week,
            has_event=weeks.has_event,
        )

    def _weeks_before(self, cohort: StudyCohort, analysis: Analysis) -> int:
        """Weeks for which everybody is observed before the index date."""
        return analysis.entry.washout_days // 7

    def _around(self, cohort: StudyCohort, event: object, weeks_before: int) -> EventWeeks:
        """First outcomes from as many weeks before index as all are observed, up to 52."""
        first = -min(weeks_before, WEEKS)
        window = TimeAtRisk(
            risk_start=7 * first,
            risk_end=7 * WEEKS - 1,
            end_anchor="cohort start",
            remove_prior_outcome=False,
        )
        left = window.follow(self._cdm, cohort, event)
        last = first + (left.column("survival_time").astype(np.int64) - 1) // 7
        return EventWeeks(first, last, left.column("status") == 1)

    def _definition(self, codes: Codes) -> dict[str, object]:
        """What the records of an exposure or outcome depend on."""
        items = [as_dict(item) for item in codes.as_set(self._study.folder).items]
        definition: dict[str, object] = {"items": items, "cohort": codes.cohort}
        defined = self._cohorts.definition(codes)
        if defined is not None:
            definition["definition"] = defined.expression
        if isinstance(codes, CdmOutcome):
            definition |= {"first": True} if codes.first else {}
            definition |= {"inpatient": codes.inpatient, "death": codes.death}
            definition["tables"] = codes.event_tables
        return definition

    def _event(self, comparison: Comparison, outcome: CdmOutcome) -> object:
        if outcome.death:
            return "death"
        if outcome.is_cohort:
            return self._cohorts.records(outcome)
        return Diagnosis(
            outcome.as_set(self._study.folder),
            inpatient=outcome.inpatient,
            tables=outcome.event_tables,
            first=outcome.first,
        )


def _arms(comparison: Comparison, analysis: Analysis) -> list[str]:
    """The exposures of a comparison, and further ones that are weighted together with them."""
    pair, section = [comparison.target, comparison.comparator], analysis.weight_treatments
    return pair + [name for name in (section.arms if section else ()) if name not in pair]


def _arm_names(codes: AnyArray, comparison: Comparison, analysis: Analysis) -> AnyArray:
    """The exposures of codes of a `StudyCohort`: 1, 0, 2, 3, ..."""
    arms = _arms(comparison, analysis)
    return np.array([arms[1], arms[0], *arms[2:]])[codes]


def _in_order(table: Any, comparison: Comparison, analysis: Analysis, rows: Index) -> Index:
    """Rows of the table of a cohort, sorted by person, date and exposure."""
    keys = [_column(table, name) for name in ("days_to_cohort_end", "index_date", "person_id")]
    names = _arm_names(_column(table, "treatment"), comparison, analysis)
    return rows[np.lexsort([key[rows] for key in (keys[0], names, *keys[1:])])]


def _analyses(step: CohortStep) -> dict[int | str, tuple[int, str]]:
    """Analysis id and domain of each covariate."""
    columns = zip(step.covariate_id, step.analysis_id, step.domain, strict=True)
    return {int(id_): (int(number), str(domain)) for id_, number, domain in columns}


def _left(people: StudyPopulation) -> dict[str, Any]:
    """Fields of a `LeftStep`."""
    return {
        "people_status": people.status,
        "attrition": people.attrition.steps,
        "row_id": people.column("row_id"),
    }


def _people(people: Adjustment, step: LeftStep) -> Adjustment:
    """The people of a cohort of whom a step has left some."""
    keep = np.zeros(people.population.n_rows)
    keep[np.searchsorted(people.population.row_id, step.row_id)] = 1.0
    return dataclasses.replace(
        people, kind="trimming", weight=keep, attrition=step.attrition, status=step.people_status
    )


def _problem(cohort: CohortStep) -> tuple[str, Sentence] | None:
    """Which step left nobody, or nobody of an arm."""
    if cohort.people_status == "ok":
        return None
    for step in cohort.attrition:
        left = [step.target_exposures, step.comparator_exposures]
        if not all(left):
            break
    arm = f" of the {('target', 'comparator')[left.index(0)]}" if any(left) else ""
    values = {"step": Value("name", repr(step.step))}
    return cohort.people_status, Sentence(
        f"no people{arm} are left after the step {{step}}.", values
    )


def _column(table: Any, name: str) -> Any:
    return table.column(name).to_numpy(zero_copy_only=False)
