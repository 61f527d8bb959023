"""Files of OHDSI's programs: cohort definitions, negative controls, and data of CohortMethod."""

from riskset.ohdsi.cohort_definitions import (
    CohortDefinition,
    generate_cohorts,
    read_cohort_definitions,
)
from riskset.ohdsi.cohort_method_data import CohortMethodData
from riskset.ohdsi.covariate_data import CovariateData
from riskset.ohdsi.negative_controls import NegativeControl, read_negative_controls

__all__ = [
    "CohortDefinition",
    "CohortMethodData",
    "CovariateData",
    "NegativeControl",
    "generate_cohorts",
    "read_cohort_definitions",
    "read_negative_controls",
]
