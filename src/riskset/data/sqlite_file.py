"""Tables of a SQLite file, copied into the embedded database, which cannot read them by itself.

SQLite gives each value a type of its own, so a column takes the narrowest type that holds all of
its values exactly: whole numbers, numbers, or text.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import pyarrow as pa

from riskset._errors import InputError
from riskset.data.database import Database, quoted

__all__ = ["copy_sqlite_table", "sqlite_tables"]

CHUNK_ROWS = 1 << 18


def sqlite_tables(path: Path) -> dict[str, tuple[str, ...]]:
    """The tables and views of a file, with their columns; raises `InputError` if it is damaged."""
    with _opened(path) as connection:
        names = connection.execute(
            "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name"
        ).fetchall()
        return {
            name: tuple(row[1] for row in connection.execute(f"PRAGMA table_info({quoted(name)})"))
            for (name,) in names
        }


def copy_sqlite_table(database: Database, path: Path, table: str, columns: Sequence[str]) -> str:
    """Copy columns of a table into a temporary table of the database; its name."""
    with _opened(path) as connection:
        types = _types(connection, path, table, columns)
        listed = ", ".join(map(quoted, columns))
        cursor = connection.execute(f"SELECT {listed} FROM {quoted(table)}")
        name = database.new_name()
        schema = pa.schema(list(zip(columns, types, strict=True)))
        verb = f"CREATE TEMP TABLE {name} AS"
        for chunk in _chunks(cursor, schema):
            stored = database.add(chunk)
            database.execute(f"{verb} SELECT * FROM {stored.view}")
            database.forget(stored)
            verb = f"INSERT INTO {name}"
        return name


def _chunks(cursor: sqlite3.Cursor, schema: "pa.Schema") -> Iterator["pa.Table"]:
    """Rows as Arrow tables; one without rows comes first, so that there is one."""
    yield schema.empty_table()
    while rows := cursor.fetchmany(CHUNK_ROWS):
        arrays = [
            pa.array(_texts(values) if pa.types.is_string(field.type) else values, field.type)
            for field, values in zip(schema, zip(*rows, strict=True), strict=True)
        ]
        yield pa.Table.from_arrays(arrays, schema=schema)


def _texts(values: Sequence[object]) -> list[str | None]:
    """Values of a column of text, among which there may be numbers."""
    return [None if value is None else str(value) for value in values]


def _types(
    connection: sqlite3.Connection, path: Path, table: str, columns: Sequence[str]
) -> list["pa.DataType"]:
    asked = ", ".join(f"typeof({quoted(column)})" for column in columns)
    found = connection.execute(f"SELECT DISTINCT {asked} FROM {quoted(table)}").fetchall()
    types = []
    for k, column in enumerate(columns):
        kinds = {row[k] for row in found} - {"null"}
        if "blob" in kinds:
            raise InputError(
                f"column {column} of table {table} of {path.name} holds bytes.",
                hint="it must hold numbers or text.",
            )
        numbers = pa.float64() if "real" in kinds else pa.int64()
        types.append(pa.string() if "text" in kinds else numbers)
    return types


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            yield connection
    except sqlite3.Error as error:
        raise InputError(
            f"{path.name} cannot be read as a SQLite file: {error}.", hint="write it again."
        ) from None
