"""Populations and covariates from a CDM, with the settings that made them, on disk and back."""

import os
from pathlib import Path
from typing import Any

from riskset.cohort import saving
from riskset.data.object_file import read_object, write_object
from riskset.omop.concepts import ConceptItem, ConceptSet
from riskset.omop.covariate_settings import CovariateSettings, CustomCovariates
from riskset.omop.covariates import Covariates
from riskset.omop.eligibility import Eligibility
from riskset.omop.events import CohortRecords, Diagnosis
from riskset.omop.exposures import Cohorts, CohortTable, NewUserCohort
from riskset.omop.groups import ConditionGroups, DrugGroups
from riskset.omop.risk import StudyPopulation, TimeAtRisk
from riskset.omop.study_cohort import StudyCohort

__all__ = ["load", "save"]

OWN = (
    CohortRecords,
    CohortTable,
    Cohorts,
    ConceptItem,
    ConceptSet,
    ConditionGroups,
    CovariateSettings,
    Covariates,
    CustomCovariates,
    Diagnosis,
    DrugGroups,
    Eligibility,
    NewUserCohort,
    StudyCohort,
    StudyPopulation,
    TimeAtRisk,
)
CLASSES: dict[str, type] = saving.CLASSES | {kind.__name__: kind for kind in OWN}


def save(result: object, folder: str | os.PathLike[str]) -> None:
    """As `riskset.cohort.save`, for what `riskset.omop` makes as well.

    Arrow tables, and tables in the database of a `Cdm` that is open, become Parquet files of their
    own.

    Parameters
    ----------
    result : Cohorts, StudyCohort, StudyPopulation, Covariates, Eligibility, TimeAtRisk, ...
        Or a list or mapping of them.
    folder : path

    Raises
    ------
    InputError
        If something else is there, or `result`, or a data frame in its settings, cannot be saved.
    """
    write_object(Path(folder), result, CLASSES)


def load(folder: str | os.PathLike[str]) -> Any:
    """What `save`, here or of `riskset.cohort`, has written.

    Raises
    ------
    InputError
        If there is no such folder, or it is damaged, or from another version.
    """
    return read_object(Path(folder), CLASSES)
