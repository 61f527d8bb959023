"""The report of a comparative cohort study: one HTML file that needs nothing else, and its numbers.

It is made of the results alone, which hold nothing of single people, and can reach nothing else.
"""

from riskset.report.writing import write

__all__ = ["write"]
