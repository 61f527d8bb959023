"""Studies on data in the OMOP Common Data Model: from its tables to a population and covariates.

Settings are small frozen objects, and each makes one step: `NewUserCohort` or `CohortTable` finds
the episodes of two treatments in a `Cdm`, `Eligibility` selects who may enter, `TimeAtRisk` follows
them to an outcome, and `CovariateSettings` describes them before they started. What they make holds
Arrow tables.
"""

from riskset.omop.cdm import Cdm
from riskset.omop.concepts import ConceptSet
from riskset.omop.eligibility import Eligibility, StudyCohort
from riskset.omop.events import CohortRecords, Diagnosis
from riskset.omop.exposures import Cohorts, CohortTable, NewUserCohort
from riskset.omop.risk import StudyPopulation, TimeAtRisk

__all__ = [
    "Cdm",
    "CohortRecords",
    "CohortTable",
    "Cohorts",
    "ConceptSet",
    "Diagnosis",
    "Eligibility",
    "NewUserCohort",
    "StudyCohort",
    "StudyPopulation",
    "TimeAtRisk",
]
