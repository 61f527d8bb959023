"""The statements that are sent to a database, each plain SQL of one or two tables.

They are: the columns of a schema, whether a table has rows and how many, the people who have
certain records, a temporary table of them, the rows of some people or concepts, and a whole small
table. Names are quoted as the catalogue has them, so that their case and blanks do not matter.
"""

import datetime
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from riskset.data.database import quoted, text
from riskset.warehouse.dialects import Dialect

__all__ = [
    "MOST_IDS",
    "KeyRows",
    "RowLimits",
    "ServerTable",
    "catalogue",
    "count_rows",
    "drop_temporary",
    "first_row",
    "keyed_by_list",
    "keyed_by_table",
    "people_with_records",
    "temporary_table",
    "whole_table",
]

MOST_IDS = 1000
"""Ids in one list; SQL Server, Snowflake and Oracle take more slowly, or not at all."""


USUAL_NAME = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class ServerTable:
    """A table of a server: the names that the catalogue has, and its columns in lower case."""

    catalog: str
    schema: str
    name: str
    columns: Mapping[str, str] = field(hash=False)

    @property
    def sql(self) -> str:
        """Its name in a statement."""
        return f"{_qualifier(self.catalog)}{quoted(self.schema)}.{quoted(self.name)}"

    @property
    def words(self) -> str:
        """Its name in a message."""
        return ".".join(part for part in (self.catalog, self.schema, self.name) if part)

    def column(self, name: str) -> str:
        """A column of ``t`` in a statement."""
        return f"t.{quoted(self.columns[name])}"

    def listed(self, names: Sequence[str]) -> str:
        """Columns to be selected, under their names in lower case."""
        return ", ".join(f"{self.column(name)} AS {quoted(name)}" for name in names)


@dataclass(frozen=True)
class RowLimits:
    """Which rows are wanted of each key: those that overlap some days.

    A row lasts from `start` to `end` (columns; without `end` it is one day). `first` is in days
    after the first day of the key, `last` in days after its last one; None: any time.
    """

    start: str
    end: str | None = None
    first: int | None = None
    last: int | None = None


@dataclass(frozen=True)
class KeyRows:
    """Columns of the rows of a table whose column `key` is one of some keys."""

    table: ServerTable
    columns: tuple[str, ...]
    key: str
    limits: RowLimits | None = None
    where: str = ""
    """A further condition on ``t``."""


def catalogue(dialect: Dialect, catalog: str, schema: str) -> str:
    """Schema, table and column names of a schema, whose name matches in any case."""
    return dialect.catalogue.format(
        catalog=_qualifier(catalog), schema_name=quoted(schema), schema=_text(schema.lower())
    )


def first_row(table: ServerTable) -> str:
    """A row if there is any."""
    return f'SELECT 1 AS "found" FROM {table.sql} AS t LIMIT 1'


def count_rows(table: ServerTable) -> str:
    """Number of rows."""
    return f'SELECT COUNT(*) AS "n" FROM {table.sql} AS t'


def whole_table(table: ServerTable, columns: Sequence[str]) -> str:
    """All rows of a small table."""
    return f"SELECT {table.listed(columns)} FROM {table.sql} AS t"


def people_with_records(
    table: ServerTable, column: str, values: Sequence[int], person: str, day: str
) -> str:
    """People with a record of some values: ``id``, and ``first_day`` and ``last_day`` of these."""
    who, when = table.column(person), table.column(day)
    parts = [
        f'SELECT {who} AS "id", MIN({when}) AS "first_day", MAX({when}) AS "last_day" '
        f"FROM {table.sql} AS t WHERE {table.column(column)} IN ({_numbers(some)}) "
        f"AND {who} IS NOT NULL AND {when} IS NOT NULL GROUP BY {who}"
        for some in batches_of(values)
    ]
    return merged(parts)


def merged(parts: Sequence[str]) -> str:
    """People of several statements, each once."""
    if len(parts) == 1:
        return parts[0]
    return (
        'SELECT p."id", MIN(p."first_day") AS "first_day", MAX(p."last_day") AS "last_day" '
        f'FROM ({" UNION ALL ".join(parts)}) AS p GROUP BY p."id"'
    )


def temporary_table(name: str, query: str) -> str:
    """A table of people that lives as long as the session."""
    return f"CREATE TEMPORARY TABLE {quoted(name)} AS {query}"


def drop_temporary(dialect: Dialect, name: str) -> str:
    """Remove it."""
    return f"{dialect.drop} {quoted(dialect.temporary_prefix + name)}"


def keyed_by_table(rows: KeyRows, keys: str) -> str:
    """The rows whose key is in a temporary table with ``id``, ``first_day`` and ``last_day``."""
    tests = []
    if rows.limits is not None:
        bounds = {
            "first": f'DATEADD(DAY, {(rows.limits.first or 0) - 1}, k."first_day")',
            "last": f'DATEADD(DAY, {(rows.limits.last or 0) + 1}, k."last_day")',
        }
        tests = _overlaps(rows, bounds)
    return _select(
        rows, f'JOIN {quoted(keys)} AS k ON {rows.table.column(rows.key)} = k."id"', tests
    )


def keyed_by_list(
    rows: KeyRows,
    keys: Sequence[int],
    first_day: datetime.date | None = None,
    last_day: datetime.date | None = None,
) -> str:
    """The rows whose key is in a list; with limits, `first_day` and `last_day` are of all keys."""
    tests = [f"{rows.table.column(rows.key)} IN ({_numbers(keys)})"]
    if rows.limits is not None and first_day is not None and last_day is not None:
        first, last = (rows.limits.first or 0) - 1, (rows.limits.last or 0) + 1
        bounds = {
            "first": _date(first_day + datetime.timedelta(days=first)),
            "last": _date(last_day + datetime.timedelta(days=last)),
        }
        tests += _overlaps(rows, bounds)
    return _select(rows, "", tests)


def batches_of(values: Sequence[int]) -> list[Sequence[int]]:
    """Parts of a list, none of which is too long; an empty list is one part."""
    return [values[k : k + MOST_IDS] for k in range(0, len(values), MOST_IDS)] or [()]


def _qualifier(catalog: str) -> str:
    """What stands before a schema; a usual name as it is, so that the database folds its case."""
    if not catalog:
        return ""
    return f"{catalog if USUAL_NAME.fullmatch(catalog) else quoted(catalog)}."


def _select(rows: KeyRows, join: str, tests: Sequence[str]) -> str:
    conditions = [*tests, *([rows.where] if rows.where else [])]
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    of = f" {join}" if join else ""
    return f"SELECT {rows.table.listed(rows.columns)} FROM {rows.table.sql} AS t{of}{where}"


def _overlaps(rows: KeyRows, bounds: Mapping[str, str]) -> list[str]:
    """Tests of rows after the first bound, and before the last one.

    Bounds are a day outside: points in time, with hours, then count by their days. A row whose end
    is missing, or before its start, is that of its first day.
    """
    assert rows.limits is not None
    limits, start, tests = rows.limits, rows.table.column(rows.limits.start), []
    if limits.last is not None:
        tests.append(f"{start} < {bounds['last']}")
    if limits.first is not None:
        reaches = [f"{start} > {bounds['first']}"]
        if limits.end is not None:
            reaches.append(f"{rows.table.column(limits.end)} > {bounds['first']}")
        tests.append(f"({' OR '.join(reaches)})")
    return tests


def _text(value: str) -> str:
    """A text as a literal of the dialect that statements are written in, which has escapes."""
    return text(value.replace("\\", "\\\\"))


def _numbers(values: Sequence[int]) -> str:
    return ", ".join(str(int(value)) for value in values) or "NULL"  # of which nothing is one


def _date(day: datetime.date) -> str:
    return f"CAST({text(day.isoformat())} AS DATE)"
