"""The CDM that a specification names: opened, with the tables that a study cannot do without."""

from pathlib import Path

from riskset._errors import InputError
from riskset.omop.cdm import Cdm
from riskset.study.cdm_sections import NewUsers
from riskset.study.data_sections import CdmData, CdmExposure, CdmOutcome
from riskset.study.specification import Study

__all__ = ["files_of", "open_cdm"]


def open_cdm(study: Study) -> Cdm:
    """The CDM of a study, with the tables that it cannot do without.

    Raises
    ------
    InputError
        Names the line of the specification.
    """
    own = study.specification
    assert isinstance(own.data, CdmData)
    path = study.folder / own.data.cdm
    if not path.exists():
        raise study.no_file("data", "cdm", file=path)
    try:
        cdm = Cdm(path, schema=own.data.schema)
    except InputError as error:
        raise study.placed(error, "data", "cdm") from None
    absent = _needed(study) - {*cdm.tables}
    if absent:
        there = ", ".join(cdm.tables) or "none"
        cdm.close()
        message = f"{path.name or path} has no table {sorted(absent)[0]}."
        raise study.fault("data", "cdm", message=message, hint=f"there are: {there}.")
    return cdm


def _needed(study: Study) -> set[str]:
    """Tables without which there is nobody, or no outcome."""
    own = study.specification
    needed = {"person", "observation_period"}
    for exposure in own.exposures.values():
        if isinstance(exposure, CdmExposure) and exposure.cohort is None:
            needed |= {(a.new_users or NewUsers()).source for a in own.analyses.values()}
    for member in (*own.exposures.values(), *own.outcomes.values(), *own.competing_events.values()):
        if getattr(member, "cohort", None) is not None:
            needed.add("cohort")
        elif isinstance(member, CdmOutcome) and not member.death:
            needed.add("condition_occurrence")
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
