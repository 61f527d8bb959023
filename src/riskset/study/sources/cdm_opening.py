"""The CDM of a study: opened where it is, checked for its tables, and fetched as far as needed."""

from collections.abc import Iterator
from pathlib import Path

from riskset._errors import InputError
from riskset.omop.analyses import CovariateAnalysis
from riskset.omop.cdm import Cdm
from riskset.omop.cdm_tables import ALL_DAYS, DayRange, Needs, SoughtPeople
from riskset.omop.concepts import ConceptSet
from riskset.omop.covariate_needs import covariate_needs, joint
from riskset.omop.exposures import cohort_members, drug_users
from riskset.omop.records import INPATIENT
from riskset.omop.sources import is_file_name
from riskset.study.cache import SPILL, StepCache
from riskset.study.specification.codes import Codes
from riskset.study.specification.data_sections import CdmConnection, CdmData
from riskset.study.specification.exposure_sections import CdmExposure, NewUsers
from riskset.study.specification.outcome_sections import CdmOutcome
from riskset.study.specification.sections import Analysis, CovariateSection
from riskset.study.specification.study_definition import Study
from riskset.study.specification.validation import file_fault
from riskset.warehouse.pull import PullListener

__all__ = ["cohort_file", "fetch", "files_of", "open_cdm"]

PEOPLE = ("person", "observation_period", "death")
"""Tables that every study reads."""


def open_cdm(
    study: Study, cache: StepCache | None = None, progress: PullListener = lambda pull: None
) -> Cdm:
    """The CDM of a study; raises `InputError` if a table that it needs is absent, with the line.

    Copies of text files, what is pulled from a database, and what the embedded database spills are
    beside the steps of the `cache`. Without one nothing is kept.
    """
    data = study.specification.data
    assert isinstance(data, CdmData)
    is_file = isinstance(data.cdm, str)
    if is_file and not _path(study).exists():
        study.refuse([file_fault(("data", "cdm"), _path(study))])
    spill = None if cache is None else cache.place(SPILL)
    if data.spill_folder is not None:
        spill = study.folder / data.spill_folder
    folder = None if cache is None else cache.place("tables")
    try:
        cdm = _opened(study, data, spill, folder, progress)
    except InputError as error:
        raise study.error("data", "cdm", error=error) from None
    absent = [names for names in sorted(_needed(study)) if not any(map(cdm.has_table, names))]
    if absent:
        listed = "; it has no table ".join(" or ".join(names) for names in absent)
        hint = f"there are: {', '.join(cdm.tables) or 'none'}."
        place = _path(study).name or _path(study) if is_file else cdm.source
        cdm.close()
        fault = InputError(f"{place} has no table {listed}.", hint=hint)
        raise study.error("data", "cdm", error=fault)
    return cdm


def _opened(
    study: Study, data: CdmData, spill: Path | None, folder: Path | None, progress: PullListener
) -> Cdm:
    if isinstance(data.cdm, CdmConnection):
        given = data.cdm
        return Cdm.connect(
            given.connection,
            schema=given.schema,
            password_variable=given.password_variable,
            keyring=given.keyring,
            ignore=data.ignore,
            memory_limit=data.memory_limit,
            spill_folder=spill,
            cache_folder=folder,
            cache_days=0 if folder is None else given.cache_days,
            progress=progress,
        )
    return Cdm(
        _path(study),
        schema=data.schema,
        ignore=data.ignore,
        memory_limit=data.memory_limit,
        spill_folder=spill,
        cache_folder=folder,
        **({"cache_days": 0} if folder is None else {}),
    )


def _path(study: Study) -> Path:
    data = study.specification.data
    assert isinstance(data, CdmData)
    assert isinstance(data.cdm, str)
    return study.folder / data.cdm


def files_of(study: Study, cdm: Cdm) -> list[Path]:
    """The files of its tables; a folder may hold others, such as the results of a study."""
    data = study.specification.data
    assert isinstance(data, CdmData)
    if isinstance(data.cdm, CdmConnection):
        return []
    path = study.folder / data.cdm
    if not path.is_dir():
        return [path]
    return sorted(
        file
        for file in path.rglob("*")
        if file.is_file()
        and any(part.split(".")[0].lower() in cdm.tables for part in file.relative_to(path).parts)
    )


def cohort_file(study: Study, cdm: Cdm) -> Path | None:
    """The file of the cohort table, where it is not a table of the CDM."""
    data = study.specification.data
    assert isinstance(data, CdmData)
    if cdm.has_table(data.cohort_table) or not is_file_name(data.cohort_table):
        return None
    path = study.folder / data.cohort_table
    if not path.is_file():
        study.refuse([file_fault(("data", "cohort_table"), path)])
    return path


def _needed(study: Study) -> set[tuple[str, ...]]:
    """Tables, or groups of tables of which one is enough, without which nobody is found."""
    asked, data = study.specification, study.specification.data
    assert isinstance(data, CdmData)
    needed: set[tuple[str, ...]] = {("person",), ("observation_period",)}
    for exposure in asked.exposures.values():
        if isinstance(exposure, CdmExposure) and not exposure.is_cohort:
            needed |= {(source,) for source in _sources(study)}
    for member in _definitions(study).values():
        if member.is_cohort:
            is_made = member.definition is not None or data.cohort_definitions is not None
            if not is_made and not is_file_name(data.cohort_table):
                needed.add((data.cohort_table.lower(),))
        elif isinstance(member, CdmOutcome) and not member.death:
            needed.add(member.event_tables)
    return needed


def _sources(study: Study) -> set[str]:
    """The tables of drug records in which the analyses look for exposures."""
    return {(a.new_users or NewUsers()).source for a in study.specification.analyses.values()}


def _definitions(study: Study) -> dict[tuple[str, str], Codes]:
    """Exposures, outcomes and competing events, by the name of their group and their own."""
    asked = study.specification
    return {
        (group, name): member
        for group in ("exposures", "outcomes", "competing_events")
        for name, member in getattr(asked, group).items()
        if isinstance(member, Codes)
    }


# -------------------------------------------------------------------- a CDM in a database


def fetch(study: Study, cdm: Cdm, cohorts: object) -> None:
    """Pull from a database all that the study will need, so that it is known what it depends on.

    It is done at once for all comparisons and analyses: no table is pulled twice. `cohorts` is the
    table or the file of the cohorts. Nothing is done for files.
    """
    data = study.specification.data
    assert isinstance(data, CdmData)
    if not isinstance(data.cdm, CdmConnection):
        return
    sets = {
        name: member.as_set(study.folder)
        for (_, name), member in _definitions(study).items()
        if not member.is_cohort
    }
    for concepts in sets.values():
        concepts.announce(cdm)
    cdm.about(*_people(study, cdm, cohorts))
    table = cohorts if isinstance(cohorts, str) else None
    needs = joint(*_needs(study, table))
    cdm.fetch(needs)
    if "visit_occurrence" in needs:
        ConceptSet(INPATIENT).announce(cdm)
    items = [item for concepts in sets.values() for item in concepts.items]
    chosen = [a for analysis in study.specification.analyses.values() for a in _chosen(analysis)]
    if any(item.mapped for item in items) or any(a.kind == "score" for a in chosen):
        cdm.fetch({"concept_relationship": ALL_DAYS})
    cdm.fetch({"concept": ALL_DAYS})


def _people(study: Study, cdm: Cdm, cohorts: object) -> Iterator[SoughtPeople]:
    """Everybody in an arm of a comparison."""
    asked = study.specification
    names = {name for c in asked.comparisons for name in (c.target, c.comparator)}
    numbers, concepts = set(), set()
    for name in names:
        exposure = asked.exposures[name]
        assert isinstance(exposure, CdmExposure)
        if exposure.cohort is not None:
            numbers.add(exposure.cohort)
        else:
            concepts |= {*exposure.as_set(study.folder).ids(cdm)}
    if numbers:
        yield cohort_members(cohorts, sorted(numbers))
    if concepts:
        for source in sorted(_sources(study)):
            yield drug_users(source, sorted(concepts))


def _needs(study: Study, cohort_table: str | None) -> Iterator[Needs]:
    """Tables and days of everything that the study asks for."""
    yield dict.fromkeys(PEOPLE, ALL_DAYS)
    whole: dict[str, DayRange] = {}
    for (group, _), member in _definitions(study).items():
        if member.cohort is not None:
            whole |= {} if cohort_table is None else {cohort_table: ALL_DAYS}
        elif group == "exposures":
            whole |= dict.fromkeys(_sources(study), ALL_DAYS)
        elif isinstance(member, CdmOutcome):
            whole |= dict.fromkeys(member.event_tables, ALL_DAYS)
            whole |= {"visit_occurrence": ALL_DAYS} if member.inpatient else {}
    yield whole
    for analysis in study.specification.analyses.values():
        if isinstance(analysis.entry.nesting_cohort, int) and cohort_table is not None:
            yield {cohort_table: ALL_DAYS}
        yield covariate_needs((analysis.covariates or CovariateSection()).extraction)


def _chosen(analysis: Analysis) -> tuple[CovariateAnalysis, ...]:
    return (analysis.covariates or CovariateSection()).extraction.chosen
