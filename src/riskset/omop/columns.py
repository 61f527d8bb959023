"""Columns of a CDM table as the types that the package computes with, checked as they are cast.

What a column holds follows from its name, so no list of tables is needed: the standard is strict
about names, and databases are loose about types.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from riskset.data.csv_file import CsvCast
from riskset.data.database import text
from riskset.data.dates import written_day
from riskset.data.table import NUMBER

__all__ = ["Cast", "ColumnContent", "absent", "cast", "has_zone", "kind", "text_casts"]

ColumnContent = Literal["id", "whole number", "date", "number", "text"]

TEXTS = {"relationship_id", "domain_id", "vocabulary_id", "concept_class_id"}
IDS = {"concept_id_1", "concept_id_2"}
NUMBERS = {"value_as_number", "range_low", "range_high"}
WHOLE = {
    "year_of_birth",
    "month_of_birth",
    "day_of_birth",
    "days_supply",
    "min_levels_of_separation",
    "max_levels_of_separation",
}
DAYS = {
    "treatment",
    "days_from_obs_start",
    "days_to_cohort_end",
    "days_to_obs_end",
}

# A column without any value has the type "NULL".
INTEGERS: tuple[str, ...] = ('"NULL"', "TINYINT", "SMALLINT", "INTEGER", "BIGINT")
INTEGERS += ("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "HUGEINT", "UHUGEINT")
EXACT = {"DOUBLE": 2**53, "FLOAT": 2**24}
"""A floating-point number from here on may stand for several whole numbers."""

SQL_TYPE = {
    "id": "BIGINT",
    "whole number": "BIGINT",
    "date": "DATE",
    "number": "DOUBLE",
    "text": "VARCHAR",
}


class Cast(NamedTuple):
    """How a column is cast.

    `value` is SQL of the value, NULL where it is missing or bad; `present` is SQL of what should
    have a value, None if no value of the type can be bad.
    """

    value: str
    present: str | None


def kind(column: str) -> ColumnContent:
    """What a column of this name holds."""
    if column in TEXTS:
        return "text"
    if column.endswith("_id") or column in IDS:
        return "id"
    if column.endswith("_date"):
        return "date"
    if column in WHOLE or column in DAYS:
        return "whole number"
    return "number" if column in NUMBERS else "text"


def has_zone(type_: str) -> bool:
    """Whether the database's type holds points in time, of which no zone is known."""
    return type_ == "TIMESTAMP WITH TIME ZONE"


def absent(column: str) -> str:
    """The value of a column that a table need not have."""
    return f"CAST(NULL AS {SQL_TYPE[kind(column)]})"


def text_casts(columns: Sequence[str]) -> Mapping[str, tuple[CsvCast, ...]]:
    """How the columns of a file of text are read: by the rule of their name, or as text.

    A column with a value that does not fit its rule stays text, for `cast` to complain of.
    """
    return {c: () if kind(c.lower()) == "text" else (_reading(c.lower()),) for c in columns}


def _reading(column: str) -> CsvCast:
    return lambda sql: cast(sql, "VARCHAR", column).value


def cast(sql: str, type_: str, column: str) -> Cast:
    """The cast of `sql`, of the database's type `type_`, to what `column` holds."""
    what = kind(column)
    if what == "text":
        return Cast(f"CAST({sql} AS VARCHAR)", None)
    if type_ == "VARCHAR" or type_.startswith("ENUM"):
        sql, type_ = f"nullif(trim(CAST({sql} AS VARCHAR)), '')", "VARCHAR"
    elif type_ in ("DOUBLE", "FLOAT"):
        sql = f"(CASE WHEN NOT isnan({sql}) THEN {sql} END)"
    if what == "date":
        return _date(sql, type_)
    if what == "number":
        known = type_ in (*INTEGERS, "DOUBLE", "FLOAT", "VARCHAR") or type_.startswith("DECIMAL")
        return Cast(f"TRY_CAST({sql} AS DOUBLE)" if known else "NULL::DOUBLE", sql)
    return _whole(sql, type_)


def _whole(sql: str, type_: str) -> Cast:
    tried = f"TRY_CAST({sql} AS BIGINT)"
    if type_ in INTEGERS:
        is_wide = type_ in ("UBIGINT", "HUGEINT", "UHUGEINT")
        return Cast(tried, sql if is_wide else None)
    if type_ == "VARCHAR":
        number = f"TRY_CAST({sql} AS DOUBLE)"
        is_number = f"regexp_full_match({sql}, {text(NUMBER.pattern)})"
        is_exact = _is_exact(number, "DOUBLE")
        return Cast(
            # As programs write them, which is found soonest; with a sign or zeros before them; as
            # numbers that have passed through floating point, such as 7.0 or 1e+05.
            f"(CASE WHEN CAST({tried} AS VARCHAR) = {sql} THEN {tried} "
            f"WHEN regexp_full_match({sql}, '[-+]?[0-9]+') THEN {tried} "
            f"WHEN {is_number} AND {is_exact} THEN CAST({number} AS BIGINT) END)",
            sql,
        )
    if type_ in ("DOUBLE", "FLOAT"):
        return Cast(f"(CASE WHEN {_is_exact(sql, type_)} THEN {tried} END)", sql)
    if type_.startswith("DECIMAL"):
        return Cast(f"(CASE WHEN {sql} = floor({sql}) THEN {tried} END)", sql)
    return Cast("NULL::BIGINT", sql)


def _is_exact(sql: str, type_: str) -> str:
    return f"{sql} = floor({sql}) AND abs({sql}) < {EXACT[type_]}"


def _date(sql: str, type_: str) -> Cast:
    if type_ == '"NULL"':
        return Cast(f"CAST({sql} AS DATE)", None)
    if type_ == "DATE" or type_.startswith("TIMESTAMP"):
        day = f"({sql} AT TIME ZONE 'UTC')" if has_zone(type_) else sql
        return Cast(f"(CASE WHEN isfinite({sql}) THEN CAST({day} AS DATE) END)", sql)
    if type_ == "VARCHAR":
        return Cast(written_day(sql), sql)
    number = _whole(sql, type_).value
    return Cast(f"CAST(try_strptime(CAST({number} AS VARCHAR), '%Y%m%d') AS DATE)", sql)
