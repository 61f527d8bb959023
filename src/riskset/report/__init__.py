"""The report of a comparative cohort study: one self-contained HTML file, and its numbers as JSON.

`export` writes its figures and tables for articles.

It is made from the results alone, which contain no individual-level data.
"""

from riskset.report.exports import export
from riskset.report.writing import write

__all__ = ["export", "write"]
