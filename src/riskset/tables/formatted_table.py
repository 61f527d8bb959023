"""A formatted table with its writers: the one way in which tables of results leave the package."""

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from riskset._errors import InputError
from riskset.data.frame import data_frame
from riskset.data.writers import check_target, replacing
from riskset.tables.content import TableContent
from riskset.tables.latex import latex_document, latex_table
from riskset.tables.plain import csv_names, csv_text, plain_text
from riskset.tables.web import html_page, html_table

__all__ = ["FormattedTable", "write_tables"]

SUFFIXES = (".csv", ".docx", ".html", ".tex")


@dataclass(frozen=True, repr=False)
class FormattedTable(TableContent):
    r"""A table as articles print it.

    Parameters
    ----------
    columns : sequence of FormattedColumn
        The first column names the rows.
    rows : sequence of FormattedRow
        Neighbours with the same `section` stand under a heading.
    title : str
    footnotes : sequence of str
        Lines below the table.

    Raises
    ------
    InputError
        If there is no column, or a row has another number of cells than there are columns.

    Notes
    -----
    Cells are text, so whoever makes a table chooses the number of digits. Jupyter shows the table;
    `print` shows it in a terminal.

    Examples
    --------
    >>> from riskset.tables import FormattedColumn, FormattedRow, FormattedTable
    >>> table = FormattedTable(
    ...     [
    ...         FormattedColumn("Characteristic", is_number=False),
    ...         FormattedColumn("RHC", spanner="Before adjustment"),
    ...         FormattedColumn("No RHC", spanner="Before adjustment"),
    ...     ],
    ...     [
    ...         FormattedRow(("Female", "906 (41.5)", "1637 (46.1)"), section="Demographics"),
    ...         FormattedRow(("Age, years", "60.8 (15.6)", "61.8 (17.3)"), section="Demographics"),
    ...     ],
    ...     footnotes=["n (%), or mean (SD)."],
    ... )
    >>> print(table)
                       Before adjustment
    Characteristic          RHC       No RHC
    ----------------------------------------
    Demographics
    Female           906 (41.5)  1637 (46.1)
    Age, years      60.8 (15.6)  61.8 (17.3)
    ----------------------------------------
    n (%), or mean (SD).
    >>> print(table.to_csv().splitlines()[1])
    Demographics,Female,906 (41.5),1637 (46.1)
    """

    def __str__(self) -> str:
        return plain_text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_table(self)

    def to_csv(self) -> str:
        """Return the table as CSV, with one line of names.

        A column below a spanner is named "spanner: title", and sections are the first column.
        """
        return csv_text(self)

    def to_html(self) -> str:
        """Return the table as an HTML element with its style."""
        return html_table(self)

    def to_latex(self, label: str | None = None) -> str:
        r"""Return the table as a LaTeX environment for a document that loads ``booktabs``.

        A table of more than 45 rows is a ``longtable``, for which a document loads the package of
        that name, too. `label` is for ``\ref``.
        """
        return latex_table(self, label)

    def to_frame(self, library: str | None = None) -> Any:
        """Return the cells as a data frame; "pandas", "polars" or "pyarrow"."""
        sections = [[row.section or ""] if self.has_sections else [] for row in self.rows]
        lines = [[*s, *row.cells] for s, row in zip(sections, self.rows, strict=True)]
        names = csv_names(self)
        return data_frame(
            {name: np.array([line[j] for line in lines], object) for j, name in enumerate(names)},
            library,
        )

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the table to a file; see `write_tables`."""
        return write_tables([self], path)


def write_tables(tables: Sequence[FormattedTable], path: str | PathLike[str]) -> Path:
    r"""Write tables to one file, whose ending says what it is.

    Parameters
    ----------
    tables : sequence of FormattedTable
    path : str or path
        ``.csv`` (one table only), ``.html`` (a page), ``.docx`` (a Word document), or ``.tex``: one
        table is an environment for ``\input``, several are a document that compiles as it is.

    Returns
    -------
    Path
        The path.

    Raises
    ------
    InputError
        If there is no table, several are to be written to one CSV file, or the path has another
        ending or cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from riskset.tables import FormattedColumn, FormattedRow, FormattedTable, write_tables
    >>> table = FormattedTable([FormattedColumn("Sex")], [FormattedRow(("female",))])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_tables([table, table], folder + "/tables.docx").name
    'tables.docx'
    """
    target = Path(path)
    check_target(target, suffixes=SUFFIXES)
    suffix = target.suffix.lower()
    if not tables:
        raise InputError("there is no table to write.", hint="pass `tables`.")
    if suffix == ".csv" and len(tables) > 1:
        raise InputError(
            f"a CSV file holds one table, but there are {len(tables)}.",
            hint="write each to its own file, or all to a .docx, .html or .tex file.",
        )
    if suffix == ".docx":
        from riskset.tables.word import word_document  # waits for python-docx

        with replacing(target) as (temporary,):
            word_document(tables, temporary)
        return target
    if suffix == ".csv":
        text = csv_text(tables[0])
    elif suffix == ".html":
        text = html_page(tables)
    else:
        text = latex_table(tables[0]) if len(tables) == 1 else latex_document(tables)
    with replacing(target) as (temporary,):
        temporary.write_text(text, encoding="utf-8", newline="\n")
    return target
