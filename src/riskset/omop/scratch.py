"""Temporary tables that a question about a CDM makes in the embedded database, and drops."""

from collections.abc import Iterable, Sequence
from typing import Any

from riskset.data.database import Database, StoredTable, file_errors, text

__all__ = ["CDM", "Scratch"]

CDM = "a table of the CDM"
"""What messages call the data of a statement about several tables."""


class Scratch:
    """Temporary tables of a database that are dropped together."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._kept: list[str] = []
        self._frames: list[StoredTable] = []

    def keep(self, query: str) -> str:
        """The answer of a query as a temporary table; its name."""
        name = self._database.new_name()
        with file_errors(CDM, is_own=True):
            self._database.execute(f"CREATE TEMP TABLE {name} AS {query}")
        self._kept.append(name)
        return name

    def add(self, frame: object) -> str:
        """A data frame as a view; its name."""
        self._frames.append(self._database.add(frame))
        return self._frames[-1].view

    def values(self, columns: str, rows: Iterable[Sequence[object]], types: Sequence[str]) -> str:
        """A few rows as a table ``name(columns)``, of SQL types."""
        lines = []
        for row in rows:
            literals = ("NULL" if value is None else text(str(value)) for value in row)
            cells = zip(literals, types, strict=True)
            lines.append(f"({', '.join(f'CAST({cell} AS {type_})' for cell, type_ in cells)})")
        if not lines:
            named = zip(columns.split(","), types, strict=True)
            none = ", ".join(f"CAST(NULL AS {t}) AS {c}" for c, t in named)
            return self.keep(f"SELECT {none} WHERE false")
        return self.keep(f"SELECT * FROM (VALUES {', '.join(lines)}) AS v({columns})")

    def arrow(self, query: str) -> Any:
        """The answer of a query as an Arrow table."""
        with file_errors(CDM, is_own=True):
            return self._database.sql(query).to_arrow_table()

    def row(self, query: str) -> tuple[Any, ...]:
        """The only row of a query."""
        with file_errors(CDM, is_own=True):
            return self._database.row(query)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """The few rows of a query."""
        with file_errors(CDM, is_own=True):
            return [tuple(row) for row in self._database.sql(query).fetchall()]

    def drop(self) -> None:
        """Forget them all."""
        for name in self._kept:
            self._database.execute(f"DROP TABLE IF EXISTS {name}")
        for stored in self._frames:
            self._database.forget(stored)
        self._kept, self._frames = [], []
