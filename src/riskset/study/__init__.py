"""Comparative cohort studies from one specification to their results.

`Study` is the specification, `run` runs it, and `StudyResults` contains everything that a report
needs.
"""

from riskset.results.folder import StudyResults
from riskset.study.examples import example
from riskset.study.execution import check_data, run
from riskset.study.importing.specification import ImportedStudies, import_specification
from riskset.study.specification.study_definition import Study

__all__ = [
    "ImportedStudies",
    "Study",
    "StudyResults",
    "check_data",
    "example",
    "import_specification",
    "run",
]
