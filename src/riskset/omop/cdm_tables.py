"""The tables of a CDM as questions ask for them, wherever they are.

Of files and data frames whole tables are read. A database has the records of everybody, so
questions say first whom and which concepts they are about, and of how many days.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from riskset._errors import InputError
from riskset.data.database import StoredTable
from riskset.data.table_store import CachedTable
from riskset.omop.sources import FileOpener, find_tables

__all__ = [
    "ALL_DAYS",
    "CdmTables",
    "DayRange",
    "FileTables",
    "ListedPeople",
    "Needs",
    "SoughtPeople",
    "RecordedPeople",
    "ignored",
]


@dataclass(frozen=True)
class DayRange:
    """Days about the exposures of a person.

    They are from `first` days after the first exposure starts (negative: before; None: any time) to
    `last` days after the last one starts (None: any time).
    """

    first: int | None = None
    last: int | None = None

    def __contains__(self, other: "DayRange") -> bool:
        return self | other == self

    def __or__(self, other: "DayRange") -> "DayRange":
        """All days of both."""
        firsts, lasts = (self.first, other.first), (self.last, other.last)
        return DayRange(
            None if None in firsts else min(day for day in firsts if day is not None),
            None if None in lasts else max(day for day in lasts if day is not None),
        )


ALL_DAYS = DayRange()


@dataclass(frozen=True)
class RecordedPeople:
    """People with a record in a table: `column` has one of the `values`, `day` is its first day."""

    table: str
    column: str
    values: tuple[int, ...]
    person: str
    day: str


@dataclass(frozen=True, eq=False)
class ListedPeople:
    """People of a data frame, whose columns `person` and `day` have ids and days."""

    frame: object
    person: str
    day: str


SoughtPeople = RecordedPeople | ListedPeople


class CdmTables(Protocol):
    """Where tables are found by their names, in lower case."""

    @property
    def names(self) -> Iterable[str]:
        """The tables that there are."""

    def ignore(self, name: str) -> None:
        """Treat a table as missing."""

    def columns(self, name: str) -> Sequence[str]:
        """The columns of a table, as they are named."""

    def n_rows(self, name: str) -> int:
        """Number of rows of a whole table."""

    def has_rows(self, name: str) -> bool:
        """Whether a whole table has any."""

    def open(self, name: str, columns: Sequence[str] | None, days: DayRange) -> StoredTable:
        """A table with at least these columns, as far as it has them; None: with all.

        It has all records that questions are about, of these days, and may have more.
        """

    def fetch(self, needs: "Needs") -> None:
        """Get ready what will be needed, for all its days at once."""

    def about(self, people: Iterable[SoughtPeople]) -> None:
        """Say whom questions are about."""

    def about_concepts(self, concepts: Iterable[int], *, descendants: bool) -> None:
        """Say which concepts, and whether all their descendants."""

    @property
    def pulled(self) -> Mapping[str, CachedTable]:
        """What was pulled from a database."""

    def close(self) -> None:
        """Let go of what was opened."""


class FileTables:
    """Tables of files or data frames, opened when they are first used."""

    def __init__(self, opener: FileOpener, source: object, schema: str | Sequence[str]) -> None:
        self._openers = dict(find_tables(opener, source, schema))
        self._opened: dict[str, StoredTable] = {}

    @property
    def names(self) -> Iterable[str]:
        """The tables that there are."""
        return self._openers.keys()

    def ignore(self, name: str) -> None:
        """Treat a table as missing."""
        del self._openers[name]

    def columns(self, name: str) -> Sequence[str]:
        """The columns of a table, as they are named."""
        return self._whole(name).columns

    def n_rows(self, name: str) -> int:
        """Number of rows of a table."""
        return self._whole(name).n_rows

    def has_rows(self, name: str) -> bool:
        """Whether a table has any."""
        return self.n_rows(name) > 0

    def open(self, name: str, columns: Sequence[str] | None, days: DayRange) -> StoredTable:
        """The whole table, whatever is asked for."""
        return self._whole(name)

    def fetch(self, needs: "Needs") -> None:
        """Files are opened when they are used."""

    def about(self, people: Iterable[SoughtPeople]) -> None:
        """Tables are whole."""

    def about_concepts(self, concepts: Iterable[int], *, descendants: bool) -> None:
        """Tables are whole."""

    @property
    def pulled(self) -> Mapping[str, CachedTable]:
        """Files are read where they are."""
        return {}

    def close(self) -> None:
        """Files are closed with the database."""

    def _whole(self, name: str) -> StoredTable:
        if name not in self._opened:
            self._opened[name] = self._openers[name]()
        return self._opened[name]


def ignored(tables: CdmTables, names: Sequence[str]) -> None:
    """Treat some tables as missing; raises `InputError` for one that is not there."""
    for name in names:
        if name.lower() not in tables.names:
            raise InputError.unknown_name(
                "table", name, tables.names, place="the CDM, for `ignore`"
            )
        tables.ignore(name.lower())


Needs = Mapping[str, DayRange]
"""Table -> the days of its records that are needed."""
