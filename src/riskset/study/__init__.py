"""A whole comparative cohort study from one specification, and the results it leaves.

`Study` is what to do, `run` does it, and `StudyResults` is all that a report needs to know of it.
"""

from riskset.results.folder import StudyResults
from riskset.study.examples import example
from riskset.study.run import check_data, run
from riskset.study.specification import Study

__all__ = ["Study", "StudyResults", "check_data", "example", "run"]
