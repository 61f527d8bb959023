"""The CDM that a specification names: opened, with the tables that a study cannot do without."""

from pathlib import Path

from riskset._errors import InputError
from riskset.omop.cdm import Cdm
from riskset.omop.sources import is_file_name
from riskset.study.sections import CdmData, CdmExposure, CdmOutcome, NewUsers
from riskset.study.specification import Study

__all__ = ["cohort_file", "files_of", "open_cdm"]


def open_cdm(study: Study) -> Cdm:
    """The CDM of a study; raises `InputError` if a table that it needs is absent, with the line."""
    data = study.specification.data
    assert isinstance(data, CdmData)
    path = study.folder / data.cdm
    if not path.exists():
        study.refuse([study.no_file("data", "cdm", file=path)])
    try:
        cdm = Cdm(
            path,
            schema=data.schema,
            ignore=data.ignore,
            memory_limit=data.memory_limit,
            spill_folder=data.spill_folder and study.folder / data.spill_folder,
        )
    except InputError as error:
        raise study.placed(error, "data", "cdm") from None
    absent = [names for names in sorted(_needed(study)) if not {*names} & {*cdm.tables}]
    if absent:
        listed = "; it has no table ".join(" or ".join(names) for names in absent)
        there = ", ".join(cdm.tables) or "none"
        cdm.close()
        message = f"{path.name or path} has no table {listed}."
        raise study.fault("data", "cdm", message=message, hint=f"there are: {there}.")
    return cdm


def cohort_file(study: Study, cdm: Cdm) -> Path | None:
    """The file of the cohort table, where it is not a table of the CDM."""
    data = study.specification.data
    assert isinstance(data, CdmData)
    if data.cohort_table.lower() in cdm.tables or not is_file_name(data.cohort_table):
        return None
    path = study.folder / data.cohort_table
    if not path.is_file():
        study.refuse([study.no_file("data", "cohort_table", file=path)])
    return path


def _needed(study: Study) -> set[tuple[str, ...]]:
    """Tables, or groups of tables of which one is enough, without which nobody is found."""
    asked, data = study.specification, study.specification.data
    assert isinstance(data, CdmData)
    needed: set[tuple[str, ...]] = {("person",), ("observation_period",)}
    for exposure in asked.exposures.values():
        if isinstance(exposure, CdmExposure) and exposure.cohort is None:
            needed |= {((a.new_users or NewUsers()).source,) for a in asked.analyses.values()}
    groups = (asked.exposures, asked.outcomes, asked.competing_events)
    for member in (member for group in groups for member in group.values()):
        if getattr(member, "cohort", None) is not None:
            if not is_file_name(data.cohort_table):
                needed.add((data.cohort_table.lower(),))
        elif isinstance(member, CdmOutcome) and not member.death:
            needed.add(member.event_tables)
    return needed


def files_of(path: Path, cdm: Cdm) -> list[Path]:
    """The files of its tables; a folder may hold others, such as the results of a study."""
    if not path.is_dir():
        return [path]
    return sorted(
        file
        for file in path.rglob("*")
        if file.is_file()
        and any(part.split(".")[0].lower() in cdm.tables for part in file.relative_to(path).parts)
    )
