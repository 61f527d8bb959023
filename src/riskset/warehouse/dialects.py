"""What databases do differently: quotes, dates, limits, temporary tables, and their catalogue.

Statements are written once, in plain SQL with the quotes and the date arithmetic of Snowflake, and
sqlglot translates them. It leaves some words as they are where a database lacks them, without
saying so. Hence the statements are few and plain, and a test reads each again in every dialect.
"""

from dataclasses import dataclass
from typing import Any

from riskset._errors import InputError, MissingDependencyError

__all__ = ["DIALECTS", "Dialect", "dialect_of", "translated"]

WRITTEN_IN = "snowflake"
"""The dialect that has what we write: quotes, CAST, and DATEADD for days."""

INFORMATION_SCHEMA = (
    "SELECT table_schema, table_name, column_name FROM {catalog}INFORMATION_SCHEMA.COLUMNS "
    "WHERE LOWER(table_schema) = {schema}"
)

# PostgreSQL's INFORMATION_SCHEMA hides tables that the account may not read; then a missing right
# would look like a missing table.
SYSTEM_CATALOGUE = (
    "SELECT n.nspname AS table_schema, c.relname AS table_name, a.attname AS column_name "
    "FROM pg_catalog.pg_attribute AS a JOIN pg_catalog.pg_class AS c ON c.oid = a.attrelid "
    "JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace "
    "WHERE a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'v', 'm', 'f', 'p') "
    "AND LOWER(n.nspname) = {schema}"
)


@dataclass(frozen=True)
class Dialect:
    """A kind of database.

    `sqlglot` is its name there. `catalogue` is a template of a statement of schema, table and
    column. `has_temporary` says whether a session may keep a temporary table, whose name begins
    with `temporary_prefix`; `drop` is what removes it.
    """

    kind: str
    sqlglot: str
    extra: str
    catalogue: str = INFORMATION_SCHEMA
    has_temporary: bool = True
    temporary_prefix: str = ""
    drop: str = "DROP TABLE"


DIALECTS = {
    dialect.kind: dialect
    for dialect in (
        Dialect("postgresql", "postgres", "postgresql", SYSTEM_CATALOGUE),
        Dialect("redshift", "redshift", "postgresql", SYSTEM_CATALOGUE),
        Dialect("snowflake", "snowflake", "snowflake"),
        # A temporary table of BigQuery lives as long as one script, or needs a session.
        Dialect(
            "bigquery",
            "bigquery",
            "bigquery",
            INFORMATION_SCHEMA.replace("{catalog}", "{catalog}{schema_name}."),
            has_temporary=False,
        ),
        Dialect("sqlserver", "tsql", "sqlserver", temporary_prefix="#"),
        # Databricks has temporary views in place of temporary tables.
        Dialect("databricks", "databricks", "databricks", drop="DROP VIEW"),
        # Each cursor of DuckDB is a session of its own.
        Dialect("duckdb", "duckdb", "", has_temporary=False),
    )
}
"""Kind of database -> what it does differently."""


def dialect_of(kind: str) -> Dialect:
    """The dialect of a kind of database; raises `InputError` if it is unknown."""
    if kind not in DIALECTS:
        raise InputError.wrong_option("dialect", kind, list(DIALECTS))
    return DIALECTS[kind]


def translated(statement: str, dialect: Dialect) -> str:
    """A statement as a database understands it."""
    glot = _sqlglot(dialect)
    (written,) = glot.transpile(
        statement,
        read=WRITTEN_IN,
        write=dialect.sqlglot,
        unsupported_level=glot.ErrorLevel.RAISE,
    )
    return str(written)


def _sqlglot(dialect: Dialect) -> Any:
    try:
        import sqlglot
    except ImportError:
        raise MissingDependencyError(
            "a CDM in a database needs the package sqlglot.",
            hint=f'pip install "riskset[{dialect.extra or "postgresql"}]"',
        ) from None
    return sqlglot
