"""Comparative cohort studies from one specification to their results.

`Study` is the specification, `run` runs it, and `StudyResults` contains everything that a report
needs.
"""

from riskset.results.folder import StudyResults
from riskset.study.examples import example
from riskset.study.execution import check_data, run
from riskset.study.specification import Study

__all__ = ["Study", "StudyResults", "check_data", "example", "run"]
