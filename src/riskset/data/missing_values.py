"""Covariates with missing values: refused, or shown to the model by an indicator.

With an indicator, a column of text or categories has one more level. A column of numbers gets the
mean of its known values (0, if these are 0 and 1) where a value is missing, and a covariate that is
1 there. Models without a penalty, or with an unpenalised indicator, do not depend on the number
that is filled in.

References
----------
Groenwold et al. (2012), Missing covariate data in clinical research: when and when not to use the
missing-indicator method for analysis, CMAJ 184, 1265-1269, doi:10.1503/cmaj.110977, on when its
estimates are biased.
"""

from collections.abc import Collection, Sequence
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from riskset._errors import counted
from riskset.data.checks import EmptyColumnError, MissingValuesError
from riskset.data.table import Table, finite_numbers, missing_hint, plain_values

__all__ = [
    "MISSING_LEVEL",
    "MissingRule",
    "missing_values_error",
    "empty_column",
    "filled",
    "indicator_places",
    "indicators_of",
    "missing_rows_of",
    "usual_value",
]

MissingRule = Literal["error", "indicator"]

MISSING_LEVEL = "(missing)"
"""Level of the missing values of a column, after all others."""

INDICATOR = (
    "drop or impute these rows first, or set `missing` to 'indicator'; riskset never drops a row "
    "by itself."
)

MAX_LISTED = 10
"""Columns with missing values that a message lists."""


def indicators_of(columns: Collection[str]) -> set[str]:
    """Names of the covariates that say where columns have no value."""
    return {f"{column}={MISSING_LEVEL}" for column in columns}


def indicator_places(names: Sequence[str]) -> dict[int, int]:
    """The place of each covariate whose values may be missing -> that of its indicator.

    The levels of a column of text or categories are covariates, too.

    >>> indicator_places(["age", "age=(missing)", "sex=f", "sex=m", "sex=(missing)", "bmi"])
    {0: 1, 2: 4, 3: 4}
    """
    place = {name: k for k, name in enumerate(names)}
    of = {
        name.removesuffix(f"={MISSING_LEVEL}"): k
        for name, k in place.items()
        if name.endswith(f"={MISSING_LEVEL}")
    }
    found = {}
    for k, name in enumerate(names):
        column = name if name in of else _column_of(name, of)
        if column is not None and of[column] != k and (column == name or column not in place):
            found[k] = of[column]
    return found


def _column_of(level: str, columns: Collection[str]) -> str | None:
    """The column of a level such as ``sex=f``."""
    parts = level.split("=")
    names = ("=".join(parts[:n]) for n in range(len(parts) - 1, 0, -1))
    return next((name for name in names if name in columns), None)


def missing_rows_of(array: "pa.ChunkedArray") -> NDArray[np.bool_]:
    """Rows (n,) without a value; NaN is one."""
    values = plain_values(array)
    missing = pc.is_null(values, nan_is_null=pa.types.is_floating(values.type))
    return np.asarray(missing.to_numpy(), dtype=bool)


def missing_values_error(
    table: Table, columns: Sequence[str], one: MissingValuesError
) -> MissingValuesError:
    """The error for all columns with missing values, of which `one` is that of the first."""
    first, n_missing = {}, {}
    for name in columns:
        missing = missing_rows_of(table.array(name))
        if missing.any():
            first[name], n_missing[name] = int(np.argmax(missing)), int(missing.sum())
    if len(first) < 2:
        return MissingValuesError(one.message, hint=missing_hint(table, INDICATOR))
    words = [
        f"{name!r} ({counted(n_missing[name], 'row')}, first: {table.words.row(row)})"
        for name, row in list(first.items())[:MAX_LISTED]
    ]
    more = f" and {len(first) - MAX_LISTED:,} more columns" if len(first) > MAX_LISTED else ""
    return MissingValuesError(
        f"{len(first):,} covariates of {table.words.place} have missing values: "
        f"{', '.join(words)}{more}.",
        hint=missing_hint(table, INDICATOR),
    )


def empty_column(table: Table, name: str) -> EmptyColumnError:
    """The error for a covariate without any value."""
    return EmptyColumnError(
        f"{table.words.column(name)} has no value in any row, so it cannot be a covariate.",
        hint="leave it out with `drop`.",
    )


def usual_value(table: Table, name: str, array: "pa.ChunkedArray") -> float:
    """What stands for the missing values of a column of numbers: its mean, or 0 of zeros and ones.

    Raises `EmptyColumnError` if the column has no value at all, and `InputError` if it has one that
    is not a finite number.
    """
    present = array.filter(pa.chunked_array([~missing_rows_of(array)]))
    if not len(present):
        raise empty_column(table, name)
    values = finite_numbers(table, name, present)
    is_binary = bool(np.isin(values, (0.0, 1.0)).all())
    return 0.0 if is_binary else float(values.mean())


def filled(array: "pa.ChunkedArray", value: float) -> "pa.ChunkedArray":
    """Numbers as float64, with a value where they are missing."""
    if pa.types.is_boolean(array.type):
        array = array.cast(pa.int8())
    if not pa.types.is_floating(array.type):
        return array.cast(pa.float64(), safe=False).fill_null(value)
    missing = pc.is_null(array, nan_is_null=True)
    return pc.if_else(missing, pa.scalar(value, pa.float64()), array.cast(pa.float64()))
