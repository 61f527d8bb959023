"""An OMOP Common Data Model as the package reads it: views of clean columns over what is there.

Nothing of a CDM is changed or copied as a whole; a table is opened when a question first needs it,
and only the columns of that question are cast and checked.
"""

import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

from riskset._errors import CohortError, InputError, RisksetWarning, counted
from riskset._messages import Note, Value
from riskset.data.database import Database, StoredTable, file_errors, quoted, text
from riskset.omop.columns import absent, cast, has_zone, kind
from riskset.omop.sources import find_tables, is_file_name, open_table_file

__all__ = ["Cdm", "Scratch", "check_open"]

VERSIONS = ("5.3", "5.4")
SOURCE_FACTS = (
    "cdm_source_name", "cdm_source_abbreviation", "cdm_holder", "source_release_date",
    "cdm_release_date", "cdm_version", "cdm_etl_reference", "vocabulary_version",
)  # fmt: skip
"""Columns of cdm_source that say where the data come from."""
CODES = {"id": "BadId", "date": "BadDate", "number": "BadNumber", "whole number": "BadNumber"}
KEYS = {"person": "person_id"}
"""Tables that others are joined to by a key, which is there once in each row."""

EXPECTED = {
    "id": "a whole number of 64 bits",
    "date": "a date, as 2020-01-31 or 20200131",
    "number": "a number",
    "whole number": "a whole number",
}


class Cdm:
    """An OMOP CDM 5.3 or 5.4, opened for reading. It is a context manager.

    Parameters
    ----------
    source : path or mapping
        A folder with one Parquet, CSV or Arrow file, or one folder of Parquet files, per table; a
        zip archive of such files; a DuckDB file; or a mapping of table names to data frames. Names
        of tables and columns match in any case. Only the tables and columns in use must exist.
    schema : str or sequence of str
        Schema of a DuckDB file, or several; each table comes from the first schema that has it.
    ignore : str or sequence of str
        Tables to treat as missing.
    memory_limit : str, optional
        Memory of the embedded database before it spills to disk, such as "8GB". Default: "2GB".
    spill_folder : path, optional
        Folder for spilled data. Default: the system's temporary folder.

    Raises
    ------
    InputError
        If the source is not a CDM, `ignore` contains an unknown table, `memory_limit` is not an
        amount of memory, or the folder is not writable.
    CohortError
        When a table is first used: "MissingTable", "MissingColumn", "BadFile", "BadId" (an
        identifier is not a 64-bit integer), "BadDate" (neither ISO nor YYYYMMDD), "BadNumber",
        "DuplicateId" (a person has several rows in table person) or "AmbiguousTable" (two files for
        one table).

    Examples
    --------
    >>> import riskset as rs
    >>> with rs.omop.Cdm(rs.simulate.toy_tables(200)) as cdm:
    ...     print(cdm)
    Cdm(200 persons, version 5.4, 13 tables)
    """

    def __init__(
        self,
        source: object,
        *,
        schema: str | Sequence[str] = "main",
        ignore: str | Sequence[str] = (),
        memory_limit: str | None = None,
        spill_folder: str | Path | None = None,
    ) -> None:
        self._database = Database(memory_limit, spill_folder)
        self._folder = TemporaryDirectory(prefix="riskset-cdm-", dir=spill_folder)
        self._opened: dict[str, StoredTable] = {}
        self._views: dict[tuple[str, ...], str] = {}
        self._notes: dict[str, Note] = {}
        self._notes_of: dict[tuple[str, ...], list[Note]] = {}
        self._listening: list[dict[str, Note]] = []
        try:
            self.source = (
                str(source) if isinstance(source, str | Path) else "the mapping of data frames"
            )
            self._tables = dict(
                find_tables(self._database, source, schema, Path(self._folder.name))
            )
            for name in [ignore] if isinstance(ignore, str) else ignore:
                if name.lower() not in self._tables:
                    raise InputError.unknown_name(
                        "table", name, self._tables, place="the CDM, for `ignore`"
                    )
                del self._tables[name.lower()]
            self.version = self._version()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the files and drop everything that was computed from them."""
        self._database.close()
        self._folder.cleanup()

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the available tables, in lower case."""
        return tuple(sorted(name for name in self._tables if "." not in name))

    def has_table(self, name: str) -> bool:
        """Return whether there is a table, in any case of its name.

        A table of another schema of a DuckDB file has its schema before a dot: results.cohort.
        """
        return name.lower() in self._tables

    @property
    def notes(self) -> tuple[Note, ...]:
        """Notes, for example on missing optional tables."""
        return tuple(self._notes.values())

    def __repr__(self) -> str:
        version = "unknown version" if self.version is None else f"version {self.version}"
        persons = counted(self.n_rows("person"), "person")
        return f"Cdm({persons}, {version}, {counted(len(self.tables), 'table')})"

    def n_rows(self, table: str) -> int:
        """Return the number of rows of a table, 0 if it is missing."""
        return self._open(table).n_rows if table in self._tables else 0

    def arrow(self, table: str) -> Any:
        """Return a table without changes as an Arrow table.

        Raises
        ------
        CohortError
            "MissingTable".
        """
        stored = self._open(table)
        return stored.fetch(stored.columns)

    # ---------------------------------------------------------------- for the questions

    def note(self, code: str, template: str, **values: Value) -> None:
        """Remember something that the user should know, once."""
        self._remember(Note(code, (), template, values))

    def _remember(self, note: Note) -> None:
        for notes in (self._notes, *self._listening):
            notes.setdefault(note.message, note)

    @contextmanager
    def noting(self) -> Iterator[dict[str, Note]]:
        """The notes made in the block, by message, though they were made before."""
        heard: dict[str, Note] = {}
        self._listening.append(heard)
        try:
            yield heard
        finally:
            self._listening.pop()  # blocks end in the reverse order

    def view(
        self,
        source: object,
        columns: Sequence[str],
        optional: Sequence[str] = (),
        *,
        needed: bool = True,
    ) -> str:
        """SQL name of the clean columns of a table of the CDM, or of a file or data frame.

        `optional` columns are NULL if the table lacks them. If it is not `needed`, a table that
        does not exist is empty, with a note; and so is a table with none of `columns`, such as one
        of which only the header was loaded, as a row of data.
        """
        if isinstance(source, str) and source.lower() in self._tables:
            source = source.lower()
        if isinstance(source, str) and is_file_name(source) and source not in self._tables:
            source = Path(source)
        if isinstance(source, str) and not needed and self._is_absent(source, columns):
            listed = ", ".join(f"{absent(c)} AS {c}" for c in (*columns, *optional))
            return f"(SELECT {listed} WHERE false)"
        if not isinstance(source, str):
            return self._cast(self._open(source), _called(source), columns, optional)
        key = (source, *columns, "", *optional)
        if key not in self._views:
            with self.noting() as heard:
                view = self._cast(self._open(source), source, columns, optional)
            self._check_key(view, source, columns)
            self._views[key], self._notes_of[key] = view, list(heard.values())
        for note in self._notes_of[key]:
            self._remember(note)
        return self._views[key]

    def _is_absent(self, table: str, columns: Sequence[str]) -> bool:
        """Whether a table counts as empty; a note says so."""
        if table not in self._tables:
            self.note(
                "missing_table",
                "the CDM has no table {table}; it counts as empty.",
                table=Value("name", table),
            )
            return True
        if self._columns(table).keys().isdisjoint(columns):
            self.note(
                "missing_table",
                "table {table} has no column {columns}; it counts as empty.",
                table=Value("name", table),
                columns=Value("name", " or ".join(columns)),
            )
            return True
        return False

    def _check_key(self, view: str, table: str, columns: Sequence[str]) -> None:
        """Refuse a table that would be joined to a row more than once."""
        key = KEYS.get(table)
        if key is None or key not in columns:
            return
        again = f"SELECT {key} FROM {view} WHERE {key} IS NOT NULL GROUP BY 1 HAVING count(*) > 1"
        stored = self._open(table)
        with file_errors(stored.file):
            (n,) = self._database.row(f"SELECT count(*) FROM ({again})")
            examples = self._database.sql(f"{again} ORDER BY 1 LIMIT 3").fetchall()
        if n:
            raise CohortError(
                "DuplicateId",
                f"{_place(table, stored)} must have one row for each {key}, but "
                f"{counted(n, 'value')} {'is' if n == 1 else 'are'} there more than once (such as "
                f"{', '.join(str(k) for (k,) in examples)}).",
                hint="keep one row for each; where this table was loaded twice, look at the others "
                "as well.",
                details={"table": table, "file": stored.file, "column": key, "count": n}
                | {"ids": [k for (k,) in examples]},
            )

    def _columns(self, table: str) -> dict[str, str]:
        """Columns of a table: name in lower case -> name as it is."""
        return {column.lower(): column for column in self._open(table).columns}

    def note_absent(self, table: str, columns: Sequence[str]) -> None:
        """Note the columns that a table of the CDM lacks, and without which it says nothing."""
        if table not in self._tables:
            return
        for column in columns:
            if column not in self._columns(table):
                self.note(
                    "missing_column",
                    "table {table} has no column {column}; it counts as empty.",
                    table=Value("name", table),
                    column=Value("name", column),
                )

    def whole(self, table: str) -> str:
        """SQL name of all columns of a table, clean."""
        return self.view(table, tuple(self._columns(table)))

    @contextmanager
    def scratch(self) -> Iterator["Scratch"]:
        """Temporary tables for one question, gone when it is answered."""
        check_open(self._database, self.source)
        tables = Scratch(self._database)
        try:
            yield tables
        finally:
            tables.drop()

    @property
    def database(self) -> Database:
        """For tables that outlive a question."""
        return self._database

    # ---------------------------------------------------------------- opening and casting

    def _open(self, source: object) -> StoredTable:
        check_open(self._database, self.source)
        if isinstance(source, Path):
            return open_table_file(self._database, source)
        if not isinstance(source, str):
            return self._database.add(source)
        if source not in self._tables:
            listed = ", ".join(self.tables[:12]) or "none"
            raise CohortError(
                "MissingTable",
                f"{self.source} has no table {source}.",
                hint=f"a file or data frame of that name is needed; there are: {listed}"
                f"{', ...' if len(self.tables) > 12 else ''}.",
                details={"table": source},
            )
        if source not in self._opened:
            self._opened[source] = self._tables[source]()
        return self._opened[source]

    def _cast(
        self, stored: StoredTable, name: str, columns: Sequence[str], optional: Sequence[str]
    ) -> str:
        place = _place(name, stored)
        there = {column.lower(): column for column in stored.columns}
        for column in columns:
            if column not in there:
                raise CohortError(
                    "MissingColumn",
                    f"{place} has no column {column}.",
                    hint=f"it has {', '.join(stored.columns)}.",
                    details={"table": name, "file": stored.file, "column": column},
                )
        wanted = [c for c in (*columns, *optional) if c in there]
        casts = {c: cast(quoted(there[c]), stored.types[there[c]], c) for c in wanted}
        checks = {c: one for c, one in casts.items() if one.present is not None}
        if checks:
            bad = {c: f"{x.present} IS NOT NULL AND {x.value} IS NULL" for c, x in checks.items()}
            counts = ", ".join(f"count(*) FILTER ({test})" for test in bad.values())
            with file_errors(stored.file):
                n_bad = self._database.row(f"SELECT {counts} FROM {stored.view}")
            for column, n in zip(bad, n_bad, strict=True):
                if n:
                    raise self._complaint(stored, place, name, there[column], bad[column], n)
        self._note_zones(stored, place, [there[c] for c in wanted if kind(c) == "date"])
        listed = [
            f"{casts[c].value if c in casts else absent(c)} AS {c}" for c in (*columns, *optional)
        ]
        view = self._database.new_name()
        self._database.execute(
            f"CREATE TEMP VIEW {view} AS SELECT {', '.join(listed)} FROM {stored.view}"
        )
        return view

    def _note_zones(self, stored: StoredTable, place: str, columns: Sequence[str]) -> None:
        """Note where a day depends on a zone that is not stored."""
        for column in columns:
            if has_zone(stored.types[column]):
                clock = f"({quoted(column)} AT TIME ZONE 'UTC')"
                with file_errors(stored.file):
                    (n,) = self._database.row(
                        f"SELECT count(*) FROM {stored.view} "
                        f"WHERE {clock} <> date_trunc('day', {clock})"
                    )
                if n:
                    self.note(
                        "no_time_zone",
                        "column {column} of {place} holds points in time without the zone in "
                        "which they were written, and {n:value is|values are} not midnight in UTC. "
                        "Their dates are those in UTC; store dates where this is not meant.",
                        column=Value("name", column),
                        place=Value("name", place),
                        n=Value("count", n),
                    )

    def _complaint(
        self, stored: StoredTable, place: str, name: str, column: str, bad: str, n: int
    ) -> CohortError:
        what = kind(column.lower())
        examples = [
            str(value)
            for (value,) in self._database.sql(
                f"SELECT DISTINCT CAST({quoted(column)} AS VARCHAR) FROM {stored.view} WHERE {bad} "
                "ORDER BY 1 LIMIT 3"
            ).fetchall()
        ]
        return CohortError(
            CODES[what],
            f"column {column} of {place} must hold {EXPECTED[what]}, but {counted(n, 'value')} "
            f"{'is' if n == 1 else 'are'} not one (such as {', '.join(map(repr, examples))}).",
            hint="correct these rows where the CDM is made, or leave them out.",
            details={
                "table": name,
                "file": stored.file,
                "column": column,
                "count": n,
                "examples": examples,
            },
        )

    def source_facts(self) -> dict[str, str]:
        """What the CDM says of itself in cdm_source and vocabulary, as far as it does.

        Returns
        -------
        dict
            Columns of `SOURCE_FACTS` with a value; of several rows, the first by name.

        Examples
        --------
        >>> import riskset as rs
        >>> with rs.omop.Cdm(rs.simulate.toy_tables(200)) as cdm:
        ...     cdm.source_facts()["cdm_version"]
        'v5.4'
        """
        facts: dict[str, str] = {}
        if "cdm_source" in self._tables:
            view = self.view("cdm_source", (), SOURCE_FACTS)
            with file_errors(CDM, is_own=True):
                rows = self._database.sql(
                    f"SELECT {', '.join(SOURCE_FACTS)} FROM {view} ORDER BY ALL LIMIT 1"
                ).fetchall()
            for name, value in zip(SOURCE_FACTS, rows[0] if rows else (), strict=False):
                if value is not None and str(value).strip():
                    facts[name] = str(value)
        if "vocabulary_version" not in facts and "vocabulary" in self._tables:
            view = self.view("vocabulary", ("vocabulary_id",), ("vocabulary_version",))
            with file_errors(CDM, is_own=True):
                rows = self._database.sql(
                    f"SELECT vocabulary_version FROM {view} WHERE vocabulary_id = 'None' "
                    "AND vocabulary_version IS NOT NULL ORDER BY 1 LIMIT 1"
                ).fetchall()
            if rows:
                facts["vocabulary_version"] = str(rows[0][0])
        return facts

    def _version(self) -> str | None:
        """The number in cdm_source, which may be written 5.4 or v5.4."""
        if "cdm_source" not in self._tables:
            return None
        view = self.view("cdm_source", (), ("cdm_version",))
        with file_errors(CDM, is_own=True):
            rows = self._database.sql(
                f"SELECT cdm_version FROM {view} ORDER BY 1 LIMIT 1"
            ).fetchall()
        written = str(rows[0][0]) if rows and rows[0][0] is not None else ""
        number = re.search(r"\d+\.\d+", written)
        if number is not None and number[0] in VERSIONS:
            return number[0]
        note = Note(
            "unknown_version",
            (),
            "table cdm_source says version {version}, but riskset knows {known}; columns are taken "
            "by the names they have there.",
            {
                "version": Value("name", repr(written)),
                "known": Value("name", " and ".join(VERSIONS)),
            },
        )
        self._remember(note)
        warnings.warn(note.message, RisksetWarning, stacklevel=3)
        return number[0] if number else None


def _place(name: str, stored: StoredTable) -> str:
    return f"table {name} ({stored.file})" if stored.file else f"table {name}"


def _called(source: object) -> str:
    if isinstance(source, Path):
        return source.name
    return source if isinstance(source, str) else "from a data frame"


def check_open(database: Database, what: str) -> None:
    """Raise CohortError "Closed" if the database has been closed."""
    if database.is_closed:
        raise CohortError(
            "Closed",
            f"the Cdm of {what} is closed.",
            hint="do this within its `with` block; riskset.omop.save keeps covariates for later.",
        )


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
