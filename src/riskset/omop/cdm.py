"""An OMOP Common Data Model as the package reads it: views of clean columns over what is there.

Nothing of a CDM is changed or copied as a whole; a table is opened when a question first needs it,
and only the columns of that question are cast and checked.
"""

import functools
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

from riskset._errors import CohortError, InputError, RisksetWarning, counted
from riskset._messages import Note, Value
from riskset.data.database import Database, StoredTable, file_errors, quoted
from riskset.data.table_store import CACHE_DAYS, CachedTable, TableStore, user_cache
from riskset.omop.cdm_tables import (
    ALL_DAYS,
    CdmTables,
    DayRange,
    FileTables,
    Needs,
    SoughtPeople,
    ignored,
)
from riskset.omop.columns import absent, cast, has_zone, kind
from riskset.omop.scratch import CDM, Scratch
from riskset.omop.server_tables import ServerTables, pull_listener
from riskset.omop.sources import FileOpener, is_file_name, text_store
from riskset.warehouse.connection import Warehouse
from riskset.warehouse.pull import PullListener

__all__ = ["Cdm", "check_open"]

VERSIONS = ("5.3", "5.4")
SOURCE_FACTS = (
    "cdm_source_name", "cdm_source_abbreviation", "cdm_holder", "source_release_date",
    "cdm_release_date", "cdm_version", "cdm_etl_reference", "vocabulary_version",
    "source_description", "source_documentation_reference", "cdm_version_concept_id",
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
        Memory of the embedded database before it spills to disk, such as "8GB". Default: half of
        the memory.
    spill_folder : path, optional
        Folder for spilled data. Default: the system's temporary folder.
    cache_folder : path, optional
        Folder for Parquet copies of CSV files of 8 MB or more, which are read ten times as fast the
        next time. Only your account can read them. Default: the folder that the environment
        variable RISKSET_CACHE names, or else ``riskset`` in the user's folder of caches.
    cache_days : int
        Days for which a copy is kept. With 0, files are not copied.

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
        cache_folder: str | Path | None = None,
        cache_days: int = CACHE_DAYS,
    ) -> None:
        where = str(source) if isinstance(source, str | Path) else "the mapping of data frames"
        store = functools.cache(lambda: text_store(cache_folder, cache_days))
        self._begin(
            where,
            lambda opener: FileTables(opener, source, schema),
            store,
            ignore,
            memory_limit,
            spill_folder,
        )

    @classmethod
    def connect(
        cls,
        connection: object,
        *,
        schema: str | Sequence[str],
        dialect: str | None = None,
        password_variable: str | None = None,
        keyring: str | None = None,
        ignore: str | Sequence[str] = (),
        memory_limit: str | None = None,
        spill_folder: str | Path | None = None,
        cache_folder: str | Path | None = None,
        cache_days: int = CACHE_DAYS,
        progress: bool | PullListener | None = None,
    ) -> Self:
        """Open a CDM in a database.

        `NewUserCohort.read` and `CohortTable.read` find the people of their cohorts on the server.
        Afterwards each table is pulled when a question first needs it: the columns that riskset
        reads, of these people, and of the days that matter; and of the vocabulary, the concepts
        that occur. The CDM is never copied as a whole, and nothing on the server is changed.

        Parameters
        ----------
        connection : str, or connection of ADBC or DBAPI
            A URL such as ``"postgresql://user@host/database"``, in which ``${NAME}`` stands for an
            environment variable; or an open connection of your own, which no other work should use
            meanwhile.
        schema : str or sequence of str
            Schemas, as ``["cdm", "vocabulary", "results"]`` or ``"database.schema"``; each table
            comes from the first that has it. Names of schemas, tables and columns match in any
            case.
        dialect : str, optional
            The kind of database, where the connection does not say: postgresql, redshift,
            snowflake, bigquery, sqlserver, databricks or duckdb.
        password_variable : str, optional
            The environment variable that holds the password.
        keyring : str, optional
            The service under which the keyring of your system holds the password of the user.
        ignore, memory_limit, spill_folder
            As for a `Cdm`.
        cache_folder : path, optional
            Folder for what was pulled, in Parquet files that only your account can read. Default:
            the folder that the environment variable RISKSET_CACHE names, or else ``riskset`` in the
            user's folder of caches. What comes by a connection of your own is kept in a temporary
            folder until the CDM is closed: riskset does not know which database that is.
        cache_days : int
            Days for which it is not pulled again. With 0 it is deleted when the CDM is closed.
        progress : bool or function, optional
            Show what is pulled, in a progress bar. Default: only in a terminal. A function is
            called with the progress of each pull.

        Returns
        -------
        Cdm

        Raises
        ------
        CohortError
            "NoCredentials" (a variable, or the entry of the keyring, does not exist),
            "NotConnected", "LostConnection", "MissingRight", "MissingTable" or "QueryFailed";
            "NoPeople" if a table of people is needed before a cohort was read; and what a `Cdm`
            raises. Messages contain no password.
        InputError
            If the database is of an unknown kind, or a schema has no tables.
        MissingDependencyError
            If the driver is not installed.

        Examples
        --------
        >>> import duckdb
        >>> import riskset as rs
        >>> server = duckdb.connect()
        >>> for name, table in rs.simulate.toy_tables(500).items():
        ...     _ = server.register("given", table)
        ...     _ = server.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
        >>> arms = [rs.omop.ConceptSet(ids) for ids in ([974166, 1395058], [1308216, 1341927])]
        >>> with rs.omop.Cdm.connect(server, schema="main") as cdm:
        ...     rs.omop.Eligibility().select(cdm, rs.omop.NewUserCohort(*arms).read(cdm))
        StudyCohort(55 targets, 105 comparators)
        """
        cdm, schemas = cls.__new__(cls), _schemas(schema)
        warehouse = Warehouse.of(
            connection, dialect=dialect, password_variable=password_variable, keyring=keyring
        )

        def tables(opener: FileOpener) -> ServerTables:
            place = opener.scratch / "pulled"
            # Which database a given connection is to is not known, and tables of two may have the
            # same names and people.
            if warehouse.identity and cache_days:
                place = user_cache() if cache_folder is None else Path(cache_folder)
            store = TableStore(place, cache_days or CACHE_DAYS)
            return ServerTables(opener, warehouse, schemas, store, pull_listener(progress))

        copies = functools.cache(lambda: text_store(cache_folder, cache_days))
        try:
            cdm._begin(warehouse.shown, tables, copies, ignore, memory_limit, spill_folder)
        except BaseException:
            warehouse.close()
            raise
        return cdm

    @property
    def pulled(self) -> Mapping[str, CachedTable]:
        """What was pulled from a database so far, with the checksum of each file."""
        return self._found.pulled

    @property
    def is_whole(self) -> bool:
        """Whether the records of everybody are at hand. Of a database, only some people's are."""
        return not isinstance(self._found, ServerTables)

    def _begin(
        self,
        source: str,
        tables: Callable[[FileOpener], CdmTables],
        store: Callable[[], TableStore | None],
        ignore: str | Sequence[str],
        memory_limit: str | None,
        spill_folder: str | Path | None,
    ) -> None:
        self.source = source
        self._database = Database(memory_limit, spill_folder)
        self._folder = TemporaryDirectory(prefix="riskset-cdm-", dir=spill_folder)
        self._views: dict[tuple[str, ...], str] = {}
        self._notes: dict[str, Note] = {}
        self._notes_of: dict[tuple[str, ...], list[Note]] = {}
        self._listening: list[dict[str, Note]] = []
        self._tables: CdmTables | None = None
        try:
            self._opener = FileOpener(self._database, Path(self._folder.name), store)
            self._tables = tables(self._opener)
            ignored(self._tables, [ignore] if isinstance(ignore, str) else ignore)
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
        if self._tables is not None:
            self._tables.close()
        self._database.close()
        self._folder.cleanup()

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the available tables, in lower case."""
        return tuple(sorted(name for name in self._found.names if "." not in name))

    def has_table(self, name: str) -> bool:
        """Return whether there is a table, in any case of its name.

        A table of another schema of a DuckDB file has its schema before a dot: results.cohort.
        """
        return name.lower() in self._found.names

    @property
    def _found(self) -> CdmTables:
        assert self._tables is not None, "it is set when a Cdm begins"
        return self._tables

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
        return self._found.n_rows(table) if self._has(table) else 0

    def _has(self, table: str) -> bool:
        check_open(self._database, self.source)
        return table in self._found.names

    def arrow(self, table: str) -> Any:
        """Return a table without changes as an Arrow table.

        Raises
        ------
        CohortError
            "MissingTable".
        """
        stored = self._open(table, None)
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
        days: DayRange = ALL_DAYS,
    ) -> str:
        """SQL name of the clean columns of a table of the CDM, or of a file or data frame.

        `optional` columns are NULL if the table lacks them. If it is not `needed`, a table that
        does not exist is empty, with a note; and so is a table with none of `columns`, such as one
        of which only the header was loaded, as a row of data. Records of other than these `days`
        may be missing.
        """
        if isinstance(source, str) and self._has(source.lower()):
            source = source.lower()
        if isinstance(source, str) and is_file_name(source) and not self._has(source):
            source = Path(source)
        if isinstance(source, str) and not needed and self._is_absent(source, columns):
            listed = ", ".join(f"{absent(c)} AS {c}" for c in (*columns, *optional))
            return f"(SELECT {listed} WHERE false)"
        if not isinstance(source, str):
            return self._cast(self._open(source), _called(source), columns, optional)
        stored = self._open(source, (*columns, *optional), days)
        key = (stored.view, source, *columns, "", *optional)
        if key not in self._views:
            with self.noting() as heard:
                view = self._cast(stored, source, columns, optional)
            self._check_key(view, source, stored, columns)
            self._views[key], self._notes_of[key] = view, list(heard.values())
        for note in self._notes_of[key]:
            self._remember(note)
        return self._views[key]

    def _is_absent(self, table: str, columns: Sequence[str]) -> bool:
        """Whether a table counts as empty; a note says so."""
        if not self._has(table):
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

    def _check_key(
        self, view: str, table: str, stored: StoredTable, columns: Sequence[str]
    ) -> None:
        """Refuse a table that would be joined to a row more than once."""
        key = KEYS.get(table)
        if key is None or key not in columns:
            return
        again = f"SELECT {key} FROM {view} WHERE {key} IS NOT NULL GROUP BY 1 HAVING count(*) > 1"
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
        self._check_table(table)
        return {column.lower(): column for column in self._found.columns(table)}

    def note_absent(self, table: str, columns: Sequence[str]) -> None:
        """Note the columns that a table of the CDM lacks, and without which it says nothing."""
        if not self._has(table):
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

    def about(self, *people: SoughtPeople) -> None:
        """Say whom the questions that follow are about, in addition to those said before."""
        check_open(self._database, self.source)
        self._found.about(people)

    def about_concepts(self, concepts: Iterable[int], *, descendants: bool = False) -> None:
        """Say which concepts questions are about, or these and all their descendants."""
        self._found.about_concepts(concepts, descendants=descendants)

    def has_rows(self, table: str) -> bool:
        """Whether there is a table, and it has rows, of whomever."""
        return self._has(table) and self._found.has_rows(table)

    def fetch(self, needs: Needs) -> None:
        """Get tables that will be needed, as far as they exist, for all their days at once."""
        check_open(self._database, self.source)
        self._found.fetch(needs)

    @contextmanager
    def scratch(self) -> Iterator[Scratch]:
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

    def _open(
        self,
        source: object,
        columns: Sequence[str] | None = (),
        days: DayRange = ALL_DAYS,
    ) -> StoredTable:
        check_open(self._database, self.source)
        if isinstance(source, Path):
            return self._opener.open(source)
        if not isinstance(source, str):
            return self._database.add(source)
        self._check_table(source)
        return self._found.open(source, columns, days)

    def _check_table(self, table: str) -> None:
        if not self._has(table):
            listed = ", ".join(self.tables[:12]) or "none"
            raise CohortError(
                "MissingTable",
                f"{self.source} has no table {table}.",
                hint=f"a file or data frame of that name is needed; there are: {listed}"
                f"{', ...' if len(self.tables) > 12 else ''}.",
                details={"table": table},
            )

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
        if self._has("cdm_source"):
            view = self.view("cdm_source", (), SOURCE_FACTS)
            with file_errors(CDM, is_own=True):
                rows = self._database.sql(
                    f"SELECT {', '.join(SOURCE_FACTS)} FROM {view} ORDER BY ALL LIMIT 1"
                ).fetchall()
            for name, value in zip(SOURCE_FACTS, rows[0] if rows else (), strict=False):
                if value is not None and str(value).strip():
                    facts[name] = str(value)
        if "vocabulary_version" not in facts and self._has("vocabulary"):
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
        if not self._has("cdm_source"):
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


def _schemas(schema: str | Sequence[str]) -> list[str]:
    """The names of schemas; raises `InputError` if there is none."""
    named = [schema] if isinstance(schema, str) else schema
    if not isinstance(named, Sequence) or not all(isinstance(name, str) for name in named):
        raise InputError(
            f"`schema` must be the name of a schema, or several, but it is {schema!r}.",
            hint="for example ['cdm', 'vocabulary'].",
        )
    if not any(named):
        raise InputError(
            "`schema` names no schema.", hint="name those of the tables: ['cdm', 'vocabulary']."
        )
    return [*named]


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
