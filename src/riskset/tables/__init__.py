"""Tables as articles print them, from any result: text, HTML, CSV, Word and LaTeX."""

from riskset.tables.content import FormattedColumn, FormattedRow
from riskset.tables.formatted_table import FormattedTable, write_tables

__all__ = ["FormattedColumn", "FormattedRow", "FormattedTable", "write_tables"]
