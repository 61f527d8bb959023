"""Files of every format as tables of the embedded database.

Identifiers stay exact: no key passes through floating point.
"""

import base64
from collections.abc import Callable, Sequence
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet

from riskset._errors import InputError
from riskset.data.csv_file import TextRules, as_key, open_csv
from riskset.data.database import (
    Database,
    StoredTable,
    durations,
    file_errors,
    local_times,
    quoted,
    text,
    text_categories,
)
from riskset.data.table import declared_values, pandas_index

__all__ = ["Identifiers", "file_format", "has_zones", "open_file"]

FORMATS = {
    "csv": (".csv", ".tsv", ".csv.gz", ".tsv.gz"),
    "parquet": (".parquet", ".pq"),
    "arrow": (".arrow", ".feather", ".ipc"),
    "duckdb": (".duckdb", ".ddb", ".db"),
}
DAMAGED_ARROW = (pa.ArrowException, OSError, UnicodeDecodeError, MemoryError)
"""What Arrow raises on damaged bytes; a wrong length may ask for more memory than there is."""

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
    rules: TextRules | None = None,
    prefix: str = "",
) -> StoredTable:
    """A file as a table of the database; raises `InputError` if that is not possible.

    `table` or `query` choose from a DuckDB file, unless it has one table only; `prefix` stands
    before these two arguments where the caller has them. CSV columns have no type: `identifiers`
    gets the names of the columns and returns those to be kept as they are written, and `rules`
    replace it.
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
            f"`{prefix}{'table' if query is None else 'query'}` is for a DuckDB file, but "
            f"{path.name} is not one.",
            hint="leave it out.",
        )
    with file_errors(path.name):
        if format_ == "csv":
            default = TextRules(lambda names: dict.fromkeys(identifiers(names), (as_key,)))
            return open_csv(database, path, rules or default)
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
    except DAMAGED_ARROW as error:
        raise _not_complete(path, "Parquet", error) from None
    view = database.new_name()
    source = f"read_parquet({text(str(path))}, hive_partitioning = false)"
    declared = {name: _categories(path, name) for name in text_categories(schema)}
    made = local_times(schema) | durations(schema) | database.enums(declared)
    database.define(view, source, made)
    index = pandas_index(schema.names, schema.metadata)
    return database.stored(view, path.name, schema.names, index, _coded(path, schema))


def _coded(path: Path, schema: "pa.Schema") -> frozenset[str]:
    """Columns that were categories of whole numbers, such as those of pandas.

    Parquet stores them as numbers; the schema that Arrow keeps beside them has their type.
    """
    kept = (pyarrow.parquet.read_metadata(path).metadata or {}).get(b"ARROW:schema")
    if kept is None:
        return frozenset()
    try:
        before = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(kept)))
    except (ValueError, pa.ArrowException):  # a note of another program under this name
        return frozenset()
    return frozenset(
        f.name
        for f in before
        if pa.types.is_dictionary(f.type)
        and pa.types.is_integer(f.type.value_type)
        and f.name in schema.names
        and pa.types.is_integer(schema.field(f.name).type)
    )


def _categories(path: Path, name: str) -> list[object]:
    """The values that the type of a column declares, which the database does not read."""
    values: dict[object, None] = {}
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            for group in range(file.num_row_groups):
                column = file.read_row_group(group, [name], use_threads=False).column(0)
                values.update(dict.fromkeys(declared_values(column)))
    except DAMAGED_ARROW as error:
        raise _not_complete(path, "Parquet", error) from None
    return list(values)


def _not_complete(path: Path, format_: str, error: BaseException) -> InputError:
    return InputError(
        f"{path.name} is not a complete {format_} file: {str(error).splitlines()[0]}",
        hint="write it again, or check its ending.",
    )


def has_zones(path: Path) -> bool:
    """Whether a Parquet file has points in time that `open_file` reads by the clocks of a zone."""
    return bool(local_times(pyarrow.parquet.read_schema(path)))


def _open_arrow(database: Database, path: Path) -> StoredTable:
    try:
        with pa.memory_map(str(path)) as source:
            try:
                content = pa.ipc.open_file(source).read_all()
            except pa.ArrowInvalid:
                source.seek(0)
                content = pa.ipc.open_stream(source).read_all()
        content.validate(full=True)  # offsets beyond the buffers would be read without a check
    except DAMAGED_ARROW as error:
        raise InputError(
            f"{path.name} is not a complete Arrow or Feather file: {str(error).splitlines()[0]}",
            hint="write it again (Feather version 2), or check its ending.",
        ) from None
    return database.add(content, path.name)


# -------------------------------------------------------------------- DuckDB


def _tables_of(database: Database, alias: str) -> dict[str, str]:
    """Tables and views of an attached file: name -> qualified SQL name."""
    return {
        name if schema == "main" else f"{schema}.{name}": ".".join(
            map(quoted, (alias, schema, name))
        )
        for schema, name in database.tables_of(alias)
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
            hint=f"choose one with `{prefix}table`.",
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
