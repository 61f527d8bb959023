"""The report of a comparative cohort study: one self-contained HTML file, and its numbers as JSON.

It is made from the results alone, which contain no individual-level data.
"""

from riskset.report.writing import write

__all__ = ["write"]
