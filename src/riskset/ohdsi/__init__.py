"""Files of OHDSI's programs: cohorts, negative controls, data and results of CohortMethod."""

from riskset.ohdsi.cohort_definitions import (
    CohortDefinition,
    generate_cohorts,
    read_cohort_definitions,
)
from riskset.ohdsi.cohort_method_data import CohortMethodData
from riskset.ohdsi.covariate_data import CovariateData
from riskset.ohdsi.negative_controls import NegativeControl, read_negative_controls
from riskset.ohdsi.results_writer import export_results

__all__ = [
    "CohortDefinition",
    "CohortMethodData",
    "CovariateData",
    "NegativeControl",
    "export_results",
    "generate_cohorts",
    "read_cohort_definitions",
    "read_negative_controls",
]
