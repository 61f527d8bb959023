"""Study populations and covariates from data in the OMOP Common Data Model.

Each step is a small frozen settings object: `NewUserCohort` or `CohortTable` finds the episodes of
two treatments in a `Cdm`, `Eligibility` selects the study cohort, `TimeAtRisk` follows it to an
outcome, and `Covariates.extract` extracts the covariates at the index date. The results hold Arrow
tables.
"""

from riskset.omop.analyses import ANALYSES, DEFAULT_ANALYSES
from riskset.omop.cdm import Cdm
from riskset.omop.cdm_overview import overview
from riskset.omop.concepts import ConceptItem, ConceptSet
from riskset.omop.covariate_settings import CovariateSettings, CustomCovariates
from riskset.omop.covariates import Covariates
from riskset.omop.eligibility import Eligibility
from riskset.omop.events import CohortRecords, Diagnosis
from riskset.omop.exposures import Cohorts, CohortTable, NewUserCohort
from riskset.omop.groups import ConditionGroups, DrugGroups
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
