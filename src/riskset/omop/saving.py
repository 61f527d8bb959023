"""Populations and covariates from a CDM, with the settings that made them, on disk and back."""

import os
from pathlib import Path
from typing import Any

from riskset.cohort import saving
from riskset.data.result_folder import classes_of, read_object, write_object
from riskset.omop.covariate_settings import CovariateSettings
from riskset.omop.covariates import Covariates
from riskset.omop.eligibility import Eligibility
from riskset.omop.events import Diagnosis
from riskset.omop.exposures import Cohorts, CohortTable, NewUserCohort
from riskset.omop.risk import StudyPopulation, TimeAtRisk
from riskset.omop.study_cohort import StudyCohort

__all__ = ["load", "save"]

CLASSES = saving.CLASSES | classes_of(
    CohortTable,
    Cohorts,
    CovariateSettings,
    Covariates,
    Diagnosis,
    Eligibility,
    NewUserCohort,
    StudyCohort,
    StudyPopulation,
    TimeAtRisk,
)


def save(result: object, folder: str | os.PathLike[str]) -> None:
    """Save a result of `riskset.omop` or `riskset.cohort`; see `riskset.cohort.save`.

    Arrow tables, and tables in the database of an open `Cdm`, become separate Parquet files.

    Parameters
    ----------
    result : Cohorts, StudyCohort, StudyPopulation, Covariates, Eligibility, TimeAtRisk, ...
        A result, or a list or mapping of results.
    folder : path

    Raises
    ------
    InputError
        If the folder has other contents, or if `result`, or a data frame in its settings, cannot be
        saved.

    Examples
    --------
    >>> import tempfile
    >>> import riskset as rs
    >>> with tempfile.TemporaryDirectory() as place:
    ...     rs.omop.save(rs.omop.TimeAtRisk(risk_end=None), place)
    ...     rs.omop.load(place).words
    'as started: from 1 day after the start of exposure to the end of observation'
    """
    write_object(Path(folder), result, CLASSES)


def load(folder: str | os.PathLike[str]) -> Any:
    """Load what `save` of `riskset.omop` or `riskset.cohort` has written.

    Raises
    ------
    InputError
        If the folder does not exist, is damaged, or was written by another version.

    Examples
    --------
    >>> import tempfile
    >>> import riskset as rs
    >>> with tempfile.TemporaryDirectory() as place:
    ...     rs.omop.save({"risk": rs.omop.TimeAtRisk(min_days_at_risk=2)}, place)
    ...     rs.omop.load(place)["risk"].min_days_at_risk
    2
    """
    return read_object(Path(folder), CLASSES)
