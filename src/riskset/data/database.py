"""The embedded database: tables larger than memory as views of one DuckDB connection."""

import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from riskset._errors import InputError
from riskset._messages import with_hint
from riskset._runtime import available_memory, available_threads
from riskset.data.frame import as_table
from riskset.data.row_stream import RowStream
from riskset.data.table import (
    Table,
    TableWords,
    declared_values,
    has_order,
    kind_of,
    pandas_index,
)
from riskset.data.writers import check_folder

__all__ = [
    "MEMORY_WORDS",
    "Database",
    "StoredTable",
    "batches",
    "check_case",
    "checked_amount",
    "durations",
    "local_times",
    "quoted",
    "file_errors",
    "text",
    "text_categories",
]

MEMORY_WORDS = "half of the memory"
"""What the database may hold by default before it spills to disk, for documentation."""

MEMORY_SHARE = 0.5
MEMORY_IF_UNKNOWN = "2GB"
"""Where the system does not say how much memory there is."""

MAX_CATEGORIES = 10_000
"""A column of more categories is read as text: it is not a covariate."""

BATCH_ROWS = 1 << 20

AMOUNT = re.compile(r"(?P<number>[0-9]+(\.[0-9]+)?) *(?P<unit>[KMGT]i?B)", re.IGNORECASE)


LEAST_MEMORY = 64e6
"""Bytes without which the database can hardly begin."""


def checked_amount(memory: str) -> str:
    """An amount of memory; raises `InputError` if it is not a number with a unit, or very small."""
    found = AMOUNT.fullmatch(memory.strip()) if isinstance(memory, str) else None
    if found is None:
        raise InputError(
            f"`memory_limit` must be a number with a unit, but it is {memory!r}.",
            hint="for example '8GB' or '500MB'.",
        )
    base = 1024 if found["unit"].lower().endswith("ib") else 1000
    if float(found["number"]) * base ** ("KMGT".index(found["unit"][0].upper()) + 1) < LEAST_MEMORY:
        raise InputError(
            f"`memory_limit` must be at least {LEAST_MEMORY / 1e6:.0f} MB, but it is {memory!r}.",
            hint="for example '8GB' or '500MB'.",
        )
    return memory.strip()


def default_memory() -> str:
    """What a database may hold if nothing else was said: `MEMORY_WORDS`."""
    known = available_memory()
    return MEMORY_IF_UNKNOWN if known is None else f"{int(known * MEMORY_SHARE) >> 20}MiB"


TO_INTERVAL = {
    "s": "to_seconds({})",
    "ms": "to_milliseconds({})",
    "us": "to_microseconds({})",
    "ns": "to_microseconds({} // 1000)",
}
"""SQL of an interval from a whole number, by its unit."""


def quoted(name: str) -> str:
    """A name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """A text as an SQL literal."""
    return "'" + value.replace("'", "''") + "'"


@dataclass(frozen=True)
class StoredTable:
    """A table that the database can read, as often as needed, in the same order of rows.

    `view` is its SQL name, `file` the name of its file, or "" for a data frame, `types` maps
    columns to DuckDB's names of their types, `index` has the columns of the index of a pandas
    frame, and `coded` those of whole numbers that were categories.
    """

    database: "Database" = field(repr=False)
    view: str
    file: str
    types: dict[str, str]
    index: frozenset[str] = frozenset()
    coded: frozenset[str] = frozenset()

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self.types)

    @property
    def data_columns(self) -> tuple[str, ...]:
        """The columns that are not an index."""
        return tuple(name for name in self.types if name not in self.index)

    @property
    def place(self) -> str:
        """The file; only long tables are stored without one."""
        return self.file or "the long table"

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        with file_errors(self.file):
            return int(self.database.row(f"SELECT count(*) FROM {self.view}")[0])

    def table(self) -> Table:
        """The table for reading column by column."""
        textual = ("VARCHAR", "ENUM", "UUID")
        return Table(
            columns=self.columns,
            n_rows=self.n_rows,
            fetch=self.fetch,
            texts=self.coded | {n for n, type_ in self.types.items() if type_.startswith(textual)},
            words=TableWords(self.file),
            index=self.index,
            coded=self.coded,
        )

    def fetch(self, names: Sequence[str]) -> "pa.Table":
        """Some columns as an Arrow table, rows in the order of the file."""
        wanted = ", ".join(map(quoted, names))
        with file_errors(self.file):
            return self.database.sql(f"SELECT {wanted} FROM {self.view}").to_arrow_table()


class Database:
    """A DuckDB connection with bounded memory and a folder to spill to; a context manager.

    Tables that it opened cannot be read after it is closed. By default it holds `MEMORY_WORDS`
    before it spills to the system's folder of temporary files.
    """

    def __init__(
        self, memory_limit: str | None = None, spill_folder: str | Path | None = None
    ) -> None:
        given = default_memory() if memory_limit is None else checked_amount(memory_limit)
        self.memory_limit, self.spill_folder = given, spill_folder
        if spill_folder is not None:
            check_folder(Path(spill_folder))
            Path(spill_folder).mkdir(parents=True, exist_ok=True)
        self._spill = tempfile.TemporaryDirectory(prefix="riskset-", dir=spill_folder)
        self._connection = duckdb.connect(
            ":memory:",
            config={
                "memory_limit": self.memory_limit,
                "temp_directory": self._spill.name,
                # Every thread holds buffers; more than eight read no faster.
                "threads": min(8, available_threads()),
                # A query of the user's must never see variables of the program.
                "python_enable_replacements": False,
            },
        )
        # Jupyter without ipywidgets refuses the setting, and draws no bar.
        with suppress(duckdb.InvalidInputException):
            self._connection.execute("SET enable_progress_bar = false")
        self._connection.execute("SET TimeZone = 'UTC'")  # whatever the zone of this machine
        self.is_closed = False
        self._count = 0
        self._attached: dict[str, str] = {}
        self._behind: dict[str, str] = {}

    def __enter__(self) -> "Database":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Forget all tables and delete what was spilled."""
        self.is_closed = True
        self._connection.close()
        self._spill.cleanup()

    # ---------------------------------------------------------------- SQL

    def sql(self, query: str) -> duckdb.DuckDBPyRelation:
        """A query as a relation, not yet run."""
        return self._connection.sql(query)

    def row(self, query: str) -> tuple[Any, ...]:
        """The only row of a query."""
        with _interruptible():
            (row,) = self._connection.execute(query).fetchall()
        return tuple(row)

    def execute(self, statement: str) -> None:
        """Run a statement."""
        with _interruptible():
            self._connection.execute(statement)

    def reason_against(self, statement: str) -> str | None:
        """Run a statement of another program; the reason why the database refuses it, if it does.

        Raises MemoryError if it needs more memory than the database may use.
        """
        try:
            self.execute(statement)
        except duckdb.OutOfMemoryException as error:
            raise too_little_memory("a query", error) from None
        except duckdb.Error as error:
            return _reason(error)
        return None

    def apart(self) -> "Database":
        """Another database with the same limits, for work of which this one shall keep nothing."""
        return Database(self.memory_limit, self.spill_folder)

    def write_parquet(self, query: str, path: Path) -> int:
        """Write the rows of a query to a Parquet file, in their order; their number.

        Raises OSError if a file cannot be written or read, such as on a full disk, and MemoryError
        if the database may use too little memory.
        """
        copy = f"COPY ({query}) TO {text(str(path))} (FORMAT parquet, COMPRESSION zstd)"
        try:
            (n_rows,) = self.row(copy)
        except duckdb.OutOfMemoryException as error:
            raise too_little_memory("writing a table", error) from None
        except duckdb.IOException as error:
            raise OSError(f"{error}") from None
        return int(n_rows)

    def write_stream(self, stream: RowStream, path: Path, tell: Callable[[int, int], None]) -> int:
        """Write rows as they come to a Parquet file; their number.

        They are sorted, so that the same rows give the same file. `tell` gets rows and bytes of
        each batch. An error of the stream is raised as it is.
        """
        failures: list[BaseException] = []  # KeyboardInterrupt is one

        def guarded() -> Iterator[pa.RecordBatch]:
            try:
                for batch in stream.batches:
                    tell(batch.num_rows, batch.nbytes)
                    yield batch
            except BaseException as error:
                failures.append(error)
                raise

        view = self.new_name()
        reader = pa.RecordBatchReader.from_batches(stream.schema, guarded())
        self._connection.register(view, reader)
        try:
            n_rows = self.write_parquet(f"SELECT * FROM {view} ORDER BY ALL", path)
        except (duckdb.Error, OSError, MemoryError, KeyboardInterrupt):
            if failures:
                # Not from the database's error, which would show a text of the driver.
                raise failures[0] from None
            raise
        finally:
            self._connection.unregister(view)
        return n_rows

    def add_stream(self, stream: RowStream) -> StoredTable:
        """Rows that fit into memory, as a table."""
        view = self.new_name()
        self._connection.register(view, stream.table())
        return self.stored(view, "")

    def attach(self, path: Path) -> str:
        """Open a DuckDB file for reading; the name of its catalog."""
        place = str(path.resolve())
        if place not in self._attached:
            alias = f"file_{len(self._attached) + 1}"
            try:
                self.execute(f"ATTACH {text(place)} AS {alias} (READ_ONLY, TYPE duckdb)")
            except duckdb.Error as error:
                if not _is_in_use(error):
                    reason = " ".join(str(error).replace(place, path.name).split())
                    raise InputError(
                        f"{path.name} cannot be opened as a DuckDB file: {reason}",
                        hint="write it again, or check its ending.",
                    ) from None
                raise InputError(
                    f"{path.name} is in use by another connection.",
                    hint="close it first.",
                ) from None
            self._attached[place] = alias
        return self._attached[place]

    def tables_of(self, alias: str) -> list[tuple[str, str]]:
        """Schema and name of the tables and views of an attached file, sorted."""
        return self.sql(
            "SELECT table_schema, table_name FROM information_schema.tables "
            f"WHERE table_catalog = {text(alias)} ORDER BY ALL"
        ).fetchall()

    def add(self, frame: object, file: str = "") -> StoredTable:
        """A data frame or Arrow table as a relation."""
        table = as_table(frame)
        content, view = table.fetch(table.columns), self.new_name()
        self._connection.register(view, content)
        # Relations have the zone of the session that asks, which says nothing of the data.
        is_relation = isinstance(frame, duckdb.DuckDBPyRelation)
        columns = {} if is_relation else local_times(content.schema)
        declared = {
            name: declared_values(content.column(name))
            for name in text_categories(content.schema)
            if name not in table.unordered
        }
        if columns := columns | self.enums(declared):
            behind, view = view, self.new_name()
            self._behind[view] = behind
            self.define(view, behind, columns)
        return self.stored(view, file, table.columns, table.index)

    def define(self, view: str, source: str, columns: Mapping[str, str]) -> None:
        """A view of a source, some of whose columns are given as SQL."""
        made = ", ".join(f"{sql} AS {quoted(name)}" for name, sql in columns.items())
        replaced = f" REPLACE ({made})" if made else ""
        self.execute(f"CREATE TEMP VIEW {view} AS SELECT *{replaced} FROM {source}")

    def enums(self, declared: Mapping[str, Sequence[object]]) -> dict[str, str]:
        """SQL of columns of text as categories, whose values are `declared` in their order."""
        out = {}
        for name, values in declared.items():
            words = [str(value) for value in values if value is not None]
            if 0 < len(words) <= MAX_CATEGORIES:
                kind = self.new_name()
                listed = ", ".join(map(text, words))
                self.execute(f"CREATE TEMP TYPE {kind} AS ENUM ({listed})")
                out[name] = f"{quoted(name)}::{kind}"
        return out

    def forget(self, stored: StoredTable) -> None:
        """Let go of a frame that was added."""
        if behind := self._behind.pop(stored.view, None):
            self.execute(f"DROP VIEW {stored.view}")
        self._connection.unregister(behind or stored.view)

    def new_name(self) -> str:
        """A name that no view has yet."""
        self._count += 1
        return f"table_{self._count}"

    def stored(
        self,
        view: str,
        file: str,
        columns: Sequence[str] | None = None,
        index: frozenset[str] = frozenset(),
        coded: frozenset[str] = frozenset(),
    ) -> StoredTable:
        """The table behind a view; `columns` are its true names, where they are known."""
        check_case(columns or (), file)
        described = self._connection.execute(f"DESCRIBE {view}").fetchall()
        types = {str(name): str(type_) for name, type_, *_ in described}
        index = index | pandas_index(tuple(types), None)
        return StoredTable(self, view, file, types, index, coded)


def local_times(schema: "pa.Schema") -> dict[str, str]:
    """SQL of columns of points in time, as what the clocks of their zones showed.

    Points in UTC are not changed: databases use it if they store no zone.
    """
    return {
        f.name: _clock(quoted(f.name), f.type.tz)
        for f in schema
        if pa.types.is_timestamp(f.type) and f.type.tz not in (None, "UTC")
    }


def durations(schema: "pa.Schema") -> dict[str, str]:
    """SQL of columns that Parquet stores as numbers, although they are durations."""
    return {
        f.name: TO_INTERVAL[f.type.unit].format(quoted(f.name))
        for f in schema
        if pa.types.is_duration(f.type)
    }


def text_categories(schema: "pa.Schema") -> list[str]:
    """Columns of text whose type declares their values in an order."""
    return [f.name for f in schema if has_order(f) and kind_of(f.type.value_type) == "text"]


def _clock(sql: str, zone: str) -> str:
    """SQL of what the clock of a zone showed; Arrow writes fixed zones as +09:00."""
    if zone[0] not in "+-":
        return f"{sql} AT TIME ZONE {text(zone)}"
    hours, minutes = map(int, zone[1:].split(":"))
    return f"({sql} AT TIME ZONE 'UTC') {zone[0]} INTERVAL '{60 * hours + minutes} minutes'"


def check_case(columns: Sequence[str], file: str) -> None:
    """Refuse names that differ in case only: SQL takes them for one."""
    seen: dict[str, str] = {}
    for name in columns:
        other = seen.setdefault(name.lower(), name)
        if other != name:
            raise InputError(
                f"{file or 'the long table'} has columns {other!r} and {name!r}, which differ "
                "at most in upper and lower case.",
                hint="rename one of them.",
            )


@contextmanager
def batches(relation: duckdb.DuckDBPyRelation) -> Iterator[Iterator["pa.RecordBatch"]]:
    """The rows of a query as Arrow batches, as they are found."""
    # The newer name; the older one warns where both exist.
    open_reader = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
    reader = open_reader(BATCH_ROWS)
    try:
        yield reader
    finally:
        reader.close()  # the connection answers nothing else while a result is open


def _is_in_use(error: duckdb.Error) -> bool:
    """Whether a file is open elsewhere; DuckDB has no type of error for that in all versions."""
    return "already attached" in str(error) or "set lock" in str(error)


OWN_FAULTS = (duckdb.BinderException, duckdb.CatalogException, duckdb.ParserException)
"""Errors of a statement that does not fit the tables, whatever their files hold."""


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let Ctrl-C be KeyboardInterrupt: DuckDB makes a plain RuntimeError of it, and of no fault."""
    try:
        yield
    except RuntimeError as error:
        if type(error) is not RuntimeError:
            raise
        raise KeyboardInterrupt from None


def _reason(error: duckdb.Error) -> str:
    """What the database says, without its advice."""
    return " ".join(str(error).split("\n\n")[0].split())


def too_little_memory(what: str, error: duckdb.OutOfMemoryException) -> MemoryError:
    """The error for work that needs more memory than the database may use, or more disk."""
    problem = f"{what} needs more memory than the database may use: {_reason(error)}."
    return MemoryError(
        with_hint(
            problem.replace("..", "."),
            "raise `memory_limit` (half of the memory by default), or let `spill_folder` name a "
            "folder on a disk with more space.",
        )
    )


@contextmanager
def file_errors(file: str, *, is_own: bool = False) -> Iterator[None]:
    """Turn an error of the database about a file into an `InputError`.

    Too little memory is a MemoryError. Without a `file`, other errors pass as they are. If the
    statement is our own (`is_own`), so do those that say that it does not fit the tables.
    """
    try:
        yield
    except duckdb.OutOfMemoryException as error:
        raise too_little_memory(f"reading {file or 'a table'}", error) from None
    except duckdb.Error as error:
        if not file or (is_own and isinstance(error, OWN_FAULTS)):
            raise
        raise InputError(
            f"{file} could not be read: {_reason(error)}",
            hint="check that the file is complete and of the format that its name says.",
        ) from None
