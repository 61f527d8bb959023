"""What a formatted table has: columns under spanners, rows in sections, a title and footnotes.

Cells are text as a reader sees it. Numbers may have a true minus sign (U+2212) and narrow spaces
(U+202F); each writer turns these characters into what its format has for them.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from riskset._errors import InputError

__all__ = ["FormattedColumn", "FormattedRow", "TableContent"]


@dataclass(frozen=True)
class FormattedColumn:
    """A column of a formatted table.

    Parameters
    ----------
    title : str
    spanner : str, optional
        A heading above this column and its neighbours with the same spanner.
    is_number : bool
        Align the column to the right.

    Examples
    --------
    >>> from riskset.tables import FormattedColumn
    >>> FormattedColumn("RHC", spanner="Before adjustment").is_number
    True
    """

    title: str
    spanner: str | None = None
    is_number: bool = True


@dataclass(frozen=True)
class FormattedRow:
    """A row of a formatted table.

    Parameters
    ----------
    cells : tuple of str
        A cell for each column, the name of the row first.
    section : str, optional
        Neighbours with the same section stand below a heading.
    indent : int
        How far the first cell is indented, such as 1 for a level of a category.
    is_bold : bool

    Examples
    --------
    >>> from riskset.tables import FormattedColumn, FormattedRow, FormattedTable
    >>> row = FormattedRow(("Female", "906 (41.5)"))
    >>> columns = [FormattedColumn("Characteristic", is_number=False), FormattedColumn("RHC")]
    >>> print(FormattedTable(columns, [row]).to_csv())
    Characteristic,RHC
    Female,906 (41.5)
    """

    cells: tuple[str, ...]
    section: str | None = None
    indent: int = 0
    is_bold: bool = False


@dataclass(frozen=True)
class TableContent:
    """Title, columns, rows and footnotes, checked; `FormattedTable` adds the writers."""

    columns: Sequence[FormattedColumn]
    rows: Sequence[FormattedRow]
    title: str = ""
    footnotes: Sequence[str] = ()

    def __post_init__(self) -> None:
        for name in ("columns", "rows", "footnotes"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if not self.columns:
            raise InputError("a formatted table needs a column.", hint="pass `columns`.")
        for k, row in enumerate(self.rows):
            if len(row.cells) != len(self.columns):
                raise InputError(
                    f"row {k} of the table has {len(row.cells)} cells, but the table has "
                    f"{len(self.columns)} columns.",
                    hint="give each row a cell for each column.",
                )

    @property
    def has_spanners(self) -> bool:
        """Whether any column stands under a spanner."""
        return any(column.spanner for column in self.columns)

    @property
    def has_sections(self) -> bool:
        """Whether any row belongs to a section."""
        return any(row.section for row in self.rows)

    def spans(self) -> Iterator[tuple[str | None, int, int]]:
        """Each spanner, or None, with its first column and the one after its last."""
        start = 0
        for spanner, members in itertools.groupby(self.columns, key=lambda one: one.spanner):
            end = start + len(list(members))
            yield spanner, start, end
            start = end

    def blocks(self) -> Iterator[tuple[str | None, list[FormattedRow]]]:
        """Each section, or None, with its rows."""
        for section, members in itertools.groupby(self.rows, key=lambda row: row.section):
            yield section, list(members)
