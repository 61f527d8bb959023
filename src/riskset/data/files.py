"""Files of every format as tables of the embedded database.

Identifiers stay exact: no key passes through floating point, and a column of a CSV file is a number
only if every value of it is one.
"""

import csv
import gzip
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import TextIO

import duckdb
import pyarrow as pa
import pyarrow.parquet

from riskset._errors import InputError
from riskset.data.database import Database, StoredTable, quoted, reading, text
from riskset.data.table import NUMBER, pandas_index

__all__ = ["Identifiers", "file_format", "open_file"]

FORMATS = {
    "csv": (".csv", ".tsv", ".csv.gz", ".tsv.gz"),
    "parquet": (".parquet", ".pq"),
    "arrow": (".arrow", ".feather", ".ipc"),
    "duckdb": (".duckdb", ".ddb", ".db"),
}
CSV_MISSING = ("", "na", "n/a", "#n/a", "nan", "null")
"""What stands for a missing value, in any case and between any blanks."""

Identifiers = Callable[[Sequence[str]], Sequence[str]]
"""Which of the columns are identifiers or labels, to be kept as they are written."""


def file_format(path: Path) -> str:
    """csv, parquet, arrow or duckdb, by the ending of the name."""
    name = path.name.lower()
    for format_, endings in FORMATS.items():
        if name.endswith(endings):
            return format_
    known = ", ".join(ending for endings in FORMATS.values() for ending in endings)
    raise InputError(
        f"{path.name!r} does not say what kind of file it is.",
        hint=f"known endings are {known}.",
    )


def open_file(
    database: Database,
    path: Path,
    *,
    table: str | None = None,
    query: str | None = None,
    identifiers: Identifiers = lambda columns: (),
    prefix: str = "",
) -> StoredTable:
    """A file as a table of the database.

    Parameters
    ----------
    table, query : str, optional
        A table of a DuckDB file, or a query of its tables; not needed if it has one table only.
    identifiers : callable
        Gets the names of the columns and returns those to be kept as they are written; matters for
        CSV, whose columns have no type.
    prefix : str
        What stands before the arguments `table` and `query` where the caller has them.

    Raises
    ------
    InputError
        If the file is absent, empty, damaged or of an unknown format.
    """
    if not path.exists():
        raise InputError(f"there is no file {str(path)!r}.", hint=_neighbours(path))
    if path.is_dir():
        raise InputError(f"{str(path)!r} is a directory.", hint="name a file.")
    if path.stat().st_size == 0:
        raise InputError(f"{path.name} is empty.", hint="check how the file was written.")
    format_ = file_format(path)
    if format_ != "duckdb" and (table is not None or query is not None):
        raise InputError(
            f"`{prefix}table` and `{prefix}query` belong to a DuckDB file, but {path.name} is not "
            "one.",
            hint="leave them out.",
        )
    with reading(path.name):
        if format_ == "csv":
            return _open_csv(database, path, identifiers)
        if format_ == "parquet":
            return _open_parquet(database, path)
        if format_ == "arrow":
            return _open_arrow(database, path)
        return _open_duckdb(database, path, table, query, prefix)


def _neighbours(path: Path) -> str:
    known = {ending for endings in FORMATS.values() for ending in endings}
    try:
        near = sorted(p.name for p in path.parent.iterdir() if p.suffix.lower() in known)
    except OSError:
        return f"there is no directory {str(path.parent)!r} either."
    if not near:
        return f"the directory {str(path.parent)!r} holds no table."
    return f"the directory holds {', '.join(map(repr, near[:8]))}{', ...' if near[8:] else ''}."


# -------------------------------------------------------------------- Parquet, Arrow


def _open_parquet(database: Database, path: Path) -> StoredTable:
    try:
        schema = pyarrow.parquet.read_schema(path)
    except pa.ArrowException as error:
        raise InputError(
            f"{path.name} is not a complete Parquet file: {str(error).splitlines()[0]}",
            hint="write it again, or check its ending.",
        ) from None
    view = database.new_name()
    source = f"read_parquet({text(str(path))}, hive_partitioning = false)"
    database.execute(f"CREATE TEMP VIEW {view} AS SELECT * FROM {source}")
    index = pandas_index(schema.names, schema.metadata)
    return database.stored(view, path.name, schema.names, index)


def _open_arrow(database: Database, path: Path) -> StoredTable:
    try:
        with pa.memory_map(str(path)) as source:
            try:
                content = pa.ipc.open_file(source).read_all()
            except pa.ArrowInvalid:
                source.seek(0)
                content = pa.ipc.open_stream(source).read_all()
    except pa.ArrowException as error:
        raise InputError(
            f"{path.name} is not a complete Arrow or Feather file: {str(error).splitlines()[0]}",
            hint="write it again (Feather version 2), or check its ending.",
        ) from None
    return database.add(content, path.name)


# -------------------------------------------------------------------- DuckDB


def _tables_of(database: Database, alias: str) -> dict[str, str]:
    """Tables and views of an attached file: name -> qualified SQL name."""
    found = database.sql(
        "SELECT table_schema, table_name FROM information_schema.tables "
        f"WHERE table_catalog = {text(alias)} ORDER BY ALL"
    ).fetchall()
    return {
        name if schema == "main" else f"{schema}.{name}": ".".join(
            map(quoted, (alias, schema, name))
        )
        for schema, name in found
    }


def _choose_table(path: Path, known: dict[str, str], table: str | None, prefix: str) -> str:
    """SQL name of the table named, in any case, or of the only one."""
    if table is None:
        if len(known) == 1:
            return next(iter(known.values()))
        raise InputError(
            f"{path.name} has {len(known)} tables: {', '.join(map(repr, known))}."
            if known
            else f"{path.name} has no tables.",
            hint=f"choose one with `{prefix}table`, or give a `{prefix}query`.",
        )
    same = [k for k in known if k.lower() == table.lower()]
    if not same:
        raise InputError.unknown_name("table", table, known, place=path.name)
    return known[same[0]]


def _only_select(path: Path, query: str) -> str:
    """The query, if it is one statement that reads; reading data must not change any."""
    try:
        statements = duckdb.extract_statements(query)
    except duckdb.Error as error:
        reason = " ".join(str(error).split())
        raise InputError(
            f"the query of {path.name} cannot be read: {reason}", hint="correct the query."
        ) from None
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise InputError(
            f"the query of {path.name} must be one SELECT statement.",
            hint="run other statements with DuckDB itself first.",
        )
    return str(statements[0].query)


def _open_duckdb(
    database: Database, path: Path, table: str | None, query: str | None, prefix: str
) -> StoredTable:
    if table is not None and query is not None:
        raise InputError(
            f"both `{prefix}table` and `{prefix}query` were given.", hint="give one of them."
        )
    alias = database.attach(path)
    view = database.new_name()
    known = _tables_of(database, alias)
    if query is None:
        query = f"SELECT * FROM {_choose_table(path, known, table, prefix)}"
    query = _only_select(path, query)
    # Kept, because a view or a query may give its rows in another order each time it is asked.
    database.execute(f"USE {quoted(alias)}")
    try:
        database.execute(f"CREATE TEMP TABLE {view} AS {query.strip().rstrip(';')}\n")
    except (duckdb.ProgrammingError, duckdb.DataError) as error:
        reason = " ".join(str(error).split("Did you mean")[0].split())
        raise InputError(
            f"the query of {path.name} cannot be answered: {reason}",
            hint=f"the tables are {', '.join(known)}." if known else "the file has no tables.",
        ) from None
    finally:
        database.execute("USE memory")
    return database.stored(view, path.name)


# -------------------------------------------------------------------- CSV


def _open_text(path: Path) -> TextIO:
    if path.name.lower().endswith(".gz"):
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def _header(path: Path) -> tuple[str, list[str]]:
    """Separator and names of the columns, from the first line."""
    try:
        with _open_text(path) as lines:
            first = lines.readline()
            tab = ".tsv" in path.name.lower()
            comma = max(",;|\t", key=first.count)  # the first of equals, so a comma by default
            separator = "\t" if tab else comma
            lines.seek(0)
            names = next(csv.reader(lines, delimiter=separator))
            if path.name.lower().endswith(".gz"):
                # To the end, where the checksum stands: older databases read half a file silently.
                while lines.buffer.read(1 << 24):
                    pass
    except (UnicodeDecodeError, OSError, EOFError, zlib.error, csv.Error, StopIteration) as error:
        raise InputError(
            f"{path.name} could not be read as text: {error}.",
            hint="write it as CSV in UTF-8, with the names of the columns in the first line.",
        ) from None
    names = [name.strip() for name in names]
    for k, name in enumerate(names):
        if not name:
            raise InputError(
                f"column {k + 1} of {path.name} has no name.",
                hint="give it one, or leave it out; R writes such a column unless row.names = "
                "FALSE, pandas unless index=False.",
            )
        if name in names[:k]:
            raise InputError(
                f"{path.name} has two columns called {name!r}.", hint="rename one of them."
            )
    return separator, names


def _open_csv(database: Database, path: Path, identifiers: Identifiers) -> StoredTable:
    separator, names = _header(path)
    kept = [name for name in dict.fromkeys(identifiers(names)) if name in names]
    # The whole file decides about a type, not a sample of it. "Yes" and "t" are text, not booleans:
    # a column must not change its meaning with the format of the file.
    options = {
        "header": "true",
        "delim": text(separator),
        "quote": "'\"'",
        "escape": "'\"'",
        "skip": "0",
        "comment": "''",
        "nullstr": f"[{', '.join(map(text, _in_any_case(CSV_MISSING)))}]",
        "sample_size": "-1",
        "auto_type_candidates": "['BIGINT', 'DOUBLE', 'DATE', 'TIMESTAMP', 'VARCHAR']",
        "null_padding": "false",
        "ignore_errors": "false",
    }
    if kept:
        as_text = ", ".join(f"{text(name)}: 'VARCHAR'" for name in kept)
        options["types"] = f"{{{as_text}}}"
    listed = ", ".join(f"{option} = {value}" for option, value in options.items())
    staged = database.new_name()
    with _explaining_lines(path, separator, len(names)):
        database.execute(
            f"CREATE TEMP TABLE {staged} AS SELECT * FROM read_csv({text(str(path))}, {listed})"
        )
    stored = database.stored(staged, path.name, names)
    view = database.new_name()
    casts = _casts(stored, kept)
    replaced = f" REPLACE ({', '.join(casts)})" if casts else ""
    database.execute(f"CREATE TEMP VIEW {view} AS SELECT *{replaced} FROM {staged}")
    return database.stored(view, path.name, names)


def _in_any_case(words: Sequence[str]) -> list[str]:
    """All ways to write words in upper and lower case."""
    return [
        "".join(letters)
        for word in words
        for letters in product(*({c.lower(): 0, c.upper(): 0} for c in word))
    ]


def _casts(stored: StoredTable, kept: Sequence[str]) -> list[str]:
    """Conversions of the columns of a CSV file that are text only to its reader."""
    texts = [name for name, type_ in stored.types.items() if type_ == "VARCHAR"]
    if not texts:
        return []
    # The reader knows these codes only without blanks around them.
    missing = ", ".join(map(text, CSV_MISSING))
    present = {
        name: f"(CASE WHEN lower(trim({quoted(name)})) NOT IN ({missing}) THEN {quoted(name)} END)"
        for name in texts
    }
    tests = ", ".join(
        (_KEY_TYPE if name in kept else _TYPE).format(c=present[name]) for name in texts
    )
    found = stored.database.row(f"SELECT {tests} FROM {stored.view}")
    return [
        f"CAST({present[name]} AS {type_}) AS {quoted(name)}"
        for name, type_ in zip(texts, found, strict=True)
    ]


# 007 and 7 are different identifiers: only numbers as a program writes them are numbers.
_KEY_TYPE = """CASE WHEN count({c}) > 0
    AND bool_and(CAST(TRY_CAST({c} AS BIGINT) AS VARCHAR) IS NOT DISTINCT FROM trim({c}))
    THEN 'BIGINT' ELSE 'VARCHAR' END"""
_TYPE = f"""CASE WHEN count({{c}}) = 0 THEN 'VARCHAR'
    WHEN bool_and(lower({{c}}) IN ('true', 'false')) THEN 'BOOLEAN'
    WHEN count(TRY_CAST({{c}} AS DOUBLE)) = count({{c}})
        AND (bool_or(regexp_matches(lower({{c}}), '^[+-]?inf'))
        OR bool_and(regexp_full_match(trim({{c}}), {text(NUMBER.pattern)}))) THEN 'DOUBLE'
    ELSE 'VARCHAR' END"""


@contextmanager
def _explaining_lines(path: Path, separator: str, n_columns: int) -> Iterator[None]:
    """Name the line of a CSV file that has too few or too many fields."""
    try:
        yield
    except duckdb.Error:
        try:
            with _open_text(path) as lines:
                rows = csv.reader(lines, delimiter=separator)
                odd = next((row for row in rows if row and len(row) != n_columns), None)
        except UnicodeDecodeError:
            raise InputError(
                f"{path.name} is not text in UTF-8.", hint="convert it to UTF-8."
            ) from None
        except (csv.Error, EOFError, OSError, zlib.error):
            odd = None
        if odd is None:
            raise
        raise InputError(
            f"line {rows.line_num} of {path.name} has {len(odd)} fields, but the first line names "
            f"{n_columns} columns.",
            hint="correct the line; a field that holds the separator must stand in quotes.",
        ) from None
