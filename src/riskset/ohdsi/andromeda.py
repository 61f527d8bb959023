"""Files of R's package Andromeda: a zip archive with a database, and the attributes of an R object.

The database is DuckDB's, or before 2025 SQLite's. R keeps identifiers as floating-point numbers;
they are checked to be whole. Dates are DATE, text, or days since 1970-01-01.
"""

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from shutil import copyfileobj, disk_usage
from tempfile import TemporaryDirectory
from typing import Literal, NamedTuple, Self

from riskset._errors import CohortError, InputError, counted
from riskset.data.database import Database, StoredTable, file_errors, quoted
from riskset.data.documents import DAMAGED_ARCHIVE
from riskset.data.sqlite_file import copy_sqlite_table, sqlite_tables
from riskset.ohdsi.r_object import read_r_object
from riskset.omop.columns import cast

__all__ = ["AndromedaFile", "FileColumn"]

HINT = (
    "R's saveCohortMethodData and saveCovariateData write such files: a zip archive with a DuckDB "
    "or SQLite database in it."
)
NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "FLOAT", "DOUBLE", "DECIMAL")
LIKE = {"id": "row_id", "number": "value_as_number", "date": "index_date", "text": "name"}
"""A column of a CDM with the same content, whose cast is the rule."""

EXPECTED = {
    "id": "a whole number below 2^53",
    "number": "a number",
    "date": "a date, as 2020-01-31 or in days since 1970-01-01",
    "text": "text",
}


class FileColumn(NamedTuple):
    """A column of a table: its name in the file, what it holds, and whether it may be missing.

    `is_optional` allows the file not to have the column, `may_be_null` a row not to have a value.
    """

    name: str
    holds: Literal["id", "number", "date", "text"]
    is_optional: bool = False
    may_be_null: bool = False


class AndromedaFile:
    """An open file; a context manager. `tables` are the names of its tables in lower case."""

    def __init__(
        self,
        path: str | Path,
        memory_limit: str | None = None,
        spill_folder: str | Path | None = None,
    ) -> None:
        self.path = Path(path)
        self.name = self.path.name
        self.database = Database(memory_limit, spill_folder)
        self._folder = TemporaryDirectory(prefix="riskset-andromeda-", dir=spill_folder)
        self._views: dict[str, tuple[str, dict[str, str]]] = {}
        try:
            self._unpack()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the database and delete what was unpacked."""
        self.database.close()
        self._folder.cleanup()

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the tables in lower case."""
        return tuple(self._tables)

    def attributes(self) -> Mapping[str, object]:
        """Attributes of the R object.

        Raises MissingDependencyError without the package rdata, and CohortError "BadFile".
        """
        if self._attributes is None:
            return {}
        found = read_r_object(self._attributes)
        return found if isinstance(found, Mapping) else {}

    def _unpack(self) -> None:
        place = Path(self._folder.name)
        try:
            with zipfile.ZipFile(self.path) as archive:
                members = [one for one in archive.infolist() if _is_plain(one.filename)]
                bases = [one for one in members if _ending(one) in (".duckdb", ".sqlite")]
                if len(bases) != 1:
                    raise CohortError(
                        "BadFile",
                        f"{self.name} has {counted(len(bases), 'database')} in it, but it must "
                        "have one.",
                        hint=HINT,
                    )
                kept = [one for one in members if _ending(one) == ".rds"][:1]
                self._check_space([*bases, *kept])
                base = _unpacked(archive, bases[0], place)
                self._attributes = _unpacked(archive, kept[0], place) if kept else None
        except FileNotFoundError:
            raise CohortError("BadFile", f"there is no file {str(self.path)!r}.") from None
        except InputError:
            raise
        except DAMAGED_ARCHIVE as error:
            raise CohortError(
                "BadFile", f"{self.name} is not a complete zip archive: {error}", hint=HINT
            ) from None
        self._base = base
        self._is_sqlite = base.suffix == ".sqlite"
        try:
            self._tables = self._listed()
        except InputError as error:
            text = f"the database in {self.name} is damaged: {error.message}"
            raise CohortError("BadFile", text, hint=HINT) from None

    def _listed(self) -> dict[str, tuple[str, tuple[str, ...]]]:
        """Names of the tables in lower case; what they are called, and in SQLite their columns."""
        if self._is_sqlite:
            tables = sqlite_tables(self._base)
            return {name.lower(): (name, columns) for name, columns in tables.items()}
        alias = self.database.attach(self._base)
        return {
            name.lower(): (".".join(map(quoted, (alias, schema, name))), ())
            for schema, name in self.database.tables_of(alias)
        }

    def _check_space(self, members: Sequence[zipfile.ZipInfo]) -> None:
        """Refuse an archive that would fill the disk."""
        needed, free = sum(one.file_size for one in members), disk_usage(self._folder.name).free
        if needed > free:
            raise CohortError(
                "BadFile",
                f"{self.name} needs {needed / 1e9:,.1f} GB on the disk to be unpacked, but "
                f"the folder for it has "
                f"{free / 1e9:,.1f} GB left.",
                hint="name a folder with more space as `spill_folder`.",
            )

    def table(self, table: str, columns: Mapping[str, FileColumn]) -> StoredTable:
        """A clean view of a table, with the columns under new names, in the order of `columns`.

        Raises
        ------
        CohortError
            "MissingTable", "MissingColumn", or "BadFile" for a value that a column cannot hold.
        """
        if table.lower() not in self._tables:
            raise CohortError(
                "MissingTable",
                f"{self.name} has no table {table}; it has {', '.join(self._tables) or 'none'}.",
                hint=HINT,
                details={"table": table},
            )
        view, types = self._source(table, columns)
        known = {name.lower(): name for name in types}
        made, checks = [], []
        for new, column in columns.items():
            written = known.get(column.name.lower())
            if written is None:
                if not column.is_optional:
                    raise self._missing(table, column, types)
                made.append(f"{_absent(column)} AS {new}")
                continue
            value, is_bad = _clean(quoted(written), types[written], column)
            made.append(f"{value} AS {new}")
            checks.append((column, is_bad))
        self._check(table, view, checks)
        clean = self.database.new_name()
        self.database.execute(f"CREATE TEMP VIEW {clean} AS SELECT {', '.join(made)} FROM {view}")
        return self.database.stored(clean, self.name)

    def columns(self, table: str) -> tuple[str, ...]:
        """The columns of a table in lower case."""
        name, columns = self._tables[table.lower()]
        if not self._is_sqlite:
            columns = self.database.stored(name, self.name).columns
        return tuple(column.lower() for column in columns)

    def _source(self, table: str, columns: Mapping[str, FileColumn]) -> tuple[str, dict[str, str]]:
        """SQL name of the table as it is, and the types of its columns."""
        name, there = self._tables[table.lower()]
        if self._is_sqlite:
            wanted = {column.name.lower() for column in columns.values()}
            listed = [column for column in there if column.lower() in wanted]
            if listed:
                name = copy_sqlite_table(self.database, self._base, name, listed)
        return name, self.database.stored(name, self.name).types

    def _missing(self, table: str, column: FileColumn, types: Mapping[str, str]) -> CohortError:
        return CohortError(
            "MissingColumn",
            f"table {table} of {self.name} has no column {column.name}.",
            hint=f"it has {', '.join(types) or 'none'}.",
            details={"table": table, "column": column.name, "file": self.name},
        )

    def _check(self, table: str, view: str, checks: Sequence[tuple[FileColumn, str]]) -> None:
        """Refuse values that a column cannot hold."""
        counts = ", ".join(f"count(*) FILTER ({is_bad})" for _, is_bad in checks)
        with file_errors(self.name):
            found = self.database.row(f"SELECT {counts} FROM {view}")
        for (column, is_bad), n in zip(checks, found, strict=True):
            if not n:
                continue
            (shown,) = self.database.row(
                f"SELECT {quoted(column.name)} FROM {view} WHERE {is_bad} LIMIT 1"
            )
            raise CohortError(
                "BadFile",
                f"column {column.name} of table {table} of {self.name} must hold "
                f"{EXPECTED[column.holds]}, but {counted(n, 'value')} "
                f"{'does' if n == 1 else 'do'} not (such as {shown!r}).",
                hint="save the file again, or leave these rows out in R.",
                details={"table": table, "column": column.name, "file": self.name, "count": n},
            )


def _is_plain(name: str) -> bool:
    """Whether a member is no folder, is in none, and is no note of macOS on another member."""
    return "/" not in name and not name.startswith("._")


def _ending(member: zipfile.ZipInfo) -> str:
    return "." + member.filename.lower().rpartition(".")[2]


def _unpacked(archive: zipfile.ZipFile, member: zipfile.ZipInfo, place: Path) -> Path:
    """A member as a file of a name of ours: DuckDB takes backslashes for steps between folders."""
    path = place / f"file{_ending(member)}"
    with archive.open(member) as packed, path.open("wb") as file:
        copyfileobj(packed, file, 1 << 20)
    return path


def _clean(sql: str, type_: str, column: FileColumn) -> tuple[str, str]:
    """SQL of a value, and of whether it is bad."""
    if column.holds == "date" and type_.startswith(NUMBERS):
        value = f"(DATE '1970-01-01' + CAST(floor({sql}) AS INTEGER))"
        is_bad = f"NOT isfinite(CAST({sql} AS DOUBLE)) OR abs({sql}) > 200000"
        value = f"CASE WHEN NOT ({is_bad}) THEN {value} END"
    else:
        made = cast(sql, type_, LIKE[column.holds])
        value = made.value
        is_bad = (
            "false" if made.present is None else f"{made.present} IS NOT NULL AND {value} IS NULL"
        )
    return value, is_bad if column.may_be_null else f"({is_bad}) OR ({value}) IS NULL"


def _absent(column: FileColumn) -> str:
    types = {"id": "BIGINT", "number": "DOUBLE", "date": "DATE", "text": "VARCHAR"}
    return f"CAST(NULL AS {types[column.holds]})"
