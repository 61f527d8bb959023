"""Cohorts of Circe definitions, made by duckcdm's SQL on the database of a CDM.

duckcdm is a translation of OHDSI's own programs (circe-be and SqlRender), so that a definition
means here what it means in ATLAS.
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from riskset._errors import CohortError, MissingDependencyError
from riskset.omop.cdm import Cdm
from riskset.omop.columns import kind

__all__ = ["CircePart", "cohort_table", "statements_of"]

COHORT = {
    "cohort_definition_id": "BIGINT",
    "subject_id": "BIGINT",
    "cohort_start_date": "DATE",
    "cohort_end_date": "DATE",
}
NEED = "ATLAS or another program can make the cohorts instead: name their table as `cohort_table`."

CircePart = tuple[int, str, str]
"""Number of a cohort, what messages call its definition, and the text of the JSON."""


def cohort_table(cdm: Cdm, definitions: Iterable[CircePart]) -> Any:
    """The records of cohorts as an Arrow table in the layout of table cohort."""
    database = cdm.database
    schema = database.new_name()
    database.execute(f"CREATE SCHEMA {schema}")
    try:
        columns = ", ".join(f"{name} {type_}" for name, type_ in COHORT.items())
        database.execute(f"CREATE TABLE {schema}.cohort ({columns})")
        for number, name, text in definitions:
            statements = statements_of(number, name, text, schema)
            _make_views(cdm, schema, " ".join(statements))
            with _temporary_tables(cdm, statements):
                for statement in statements:
                    reason = database.reason_against(statement)
                    if reason is not None:
                        raise CohortError(
                            "BadCohortDefinition",
                            f"{name} could not be used: {reason}",
                            hint=f"check the definition and the tables that it uses. {NEED}",
                            details={"cohort_definition_id": number},
                        )
        listed = ", ".join(COHORT)
        return database.sql(f"SELECT {listed} FROM {schema}.cohort ORDER BY ALL").to_arrow_table()
    finally:
        database.execute(f"DROP SCHEMA {schema} CASCADE")


def statements_of(number: int, name: str, text: str, schema: str) -> list[str]:
    """DuckDB's statements that add a cohort to table ``cohort`` of a schema, which has the CDM."""
    try:
        from duckcdm import circe, sqlrender
    except ImportError:
        raise MissingDependencyError(
            "cohort definitions of ATLAS need the package duckcdm, which is not installed.",
            hint=f"pip install 'riskset[ohdsi]'. {NEED}",
        ) from None
    try:
        options = circe.BuildExpressionQueryOptions(
            cohort_id=number,
            cdm_schema=schema,
            vocabulary_schema=schema,
            result_schema=schema,
            target_table=f"{schema}.cohort",
            generate_stats=False,
        )
        sql = circe.build_cohort_query(text, options)
        return list(sqlrender.split_sql(sqlrender.translate(sqlrender.render(sql), "duckdb")))
    # It also raises what Python does where a part of a definition is not what it expects.
    except (
        *(circe.CirceError, sqlrender.JavaError),
        *(AttributeError, LookupError, TypeError, ValueError),
    ) as error:
        raise CohortError(
            "BadCohortDefinition",
            f"{name} cannot be read: {error}",
            hint="export it from ATLAS again: tab Export, then JSON.",
            details={"cohort_definition_id": number},
        ) from None


def _make_views(cdm: Cdm, schema: str, sql: str) -> None:
    """Views of the tables that some SQL names, with the columns of the standard that it names."""
    from duckcdm.omop import cdm_fields

    words = {word.lower() for word in re.findall(r"\w+", sql)}
    named = {name.lower() for name in re.findall(rf"\b{schema}\.(\w+)", sql)} - {"cohort"}
    standard = cdm_fields()
    for table in sorted(named & {*standard}):
        columns = {column: type_ for column, type_ in standard[table] if column in words}
        columns = columns or dict(standard[table][:1])
        key = "person_id" if "person_id" in columns else next(iter(columns))
        others = [column for column in columns if column != key]
        made = ", ".join(f"{_typed(name, type_)} AS {name}" for name, type_ in columns.items())
        view = cdm.view(table, (key,), others, needed=False)
        cdm.database.execute(
            f"CREATE OR REPLACE VIEW {schema}.{table} AS SELECT {made} FROM {view}"
        )


def _typed(column: str, type_: str) -> str:
    """What riskset takes as text by its name may be a number or a time in the standard."""
    if kind(column) != "text" or type_ == "VARCHAR":
        return column
    return f"CAST(nullif(trim({column}), '') AS {type_})"


@contextmanager
def _temporary_tables(cdm: Cdm, statements: Iterable[str]) -> Iterator[None]:
    """Drop the temporary tables that statements make, though one of them fails."""
    try:
        yield
    finally:
        made = re.findall(r"CREATE\s+TEMP\s+TABLE\s+(\w+)", " ".join(statements), re.IGNORECASE)
        for name in made:
            cdm.database.execute(f"DROP TABLE IF EXISTS temp.{name}")
