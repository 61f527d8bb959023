"""Studies on data in the OMOP Common Data Model: from its tables to a population and covariates.

Settings are small frozen objects, and each makes one step: `NewUserCohort` or `CohortTable` finds
the episodes of two treatments in a `Cdm`, `Eligibility` selects who may enter, `TimeAtRisk` follows
them to an outcome, and `Covariates.extract` describes them as they were at its start. What they
make holds Arrow tables.
"""

from riskset.omop.analyses import ANALYSES, DEFAULT_ANALYSES
from riskset.omop.cdm import Cdm
from riskset.omop.concepts import ConceptItem, ConceptSet
from riskset.omop.covariate_settings import CovariateSettings, CustomCovariates
from riskset.omop.covariates import Covariates
from riskset.omop.eligibility import Eligibility
from riskset.omop.events import CohortRecords, Diagnosis
from riskset.omop.exposures import Cohorts, CohortTable, NewUserCohort
from riskset.omop.groups import ConditionGroups, DrugGroups
from riskset.omop.overview import overview
from riskset.omop.risk import StudyPopulation, TimeAtRisk
from riskset.omop.saving import load, save
from riskset.omop.study_cohort import StudyCohort

__all__ = [
    "ANALYSES",
    "DEFAULT_ANALYSES",
    "Cdm",
    "CohortRecords",
    "CohortTable",
    "Cohorts",
    "ConceptItem",
    "ConceptSet",
    "ConditionGroups",
    "CovariateSettings",
    "Covariates",
    "CustomCovariates",
    "Diagnosis",
    "DrugGroups",
    "Eligibility",
    "NewUserCohort",
    "StudyCohort",
    "StudyPopulation",
    "TimeAtRisk",
    "load",
    "overview",
    "save",
]
