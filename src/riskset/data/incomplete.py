"""Columns with missing values: what is known of them, and frames in which other rows stand in.

An imputed value is always that of another row, its donor. So types, categories and units stay as
they are, whatever the library of the frame.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from riskset._errors import InputError
from riskset._types import AnyArray, Index
from riskset.data.frame import FrameEncoder, as_table, eager_frame
from riskset.data.levels import level_codes
from riskset.data.missing_values import MISSING_LEVEL, filled, missing_rows_of
from riskset.data.table import Table, finite_numbers

__all__ = ["Donors", "IncompleteColumn", "completed_frame", "completed_table", "read_incomplete"]

Donors = Mapping[str, tuple[Index, Index]]
"""By column: the rows whose values are missing, and the rows that lend them theirs."""


@dataclass(frozen=True, eq=False)
class IncompleteColumn:
    """A covariate as imputation models see it, complete or not.

    `values` (n,) are numbers, or codes 0, 1, ... of `n_levels` levels, which two different numbers
    are, too; they mean nothing where they are `missing` (n,). `n_levels` is 0 for other numbers.
    """

    name: str
    values: AnyArray
    missing: NDArray[np.bool_]
    n_levels: int

    @property
    def n_missing(self) -> int:
        """Number of rows without a value."""
        return int(self.missing.sum())


def read_incomplete(table: Table, columns: Sequence[str]) -> list[IncompleteColumn]:
    """Covariates of a table, checked as for a model.

    Raises `InputError` if a column cannot be a covariate, or has no value in any row.
    """
    encoder, _ = FrameEncoder.fit(table, columns, missing="indicator")
    return [_column(table, name, encoder) for name in columns]


def _column(table: Table, name: str, encoder: FrameEncoder) -> IncompleteColumn:
    array = table.array(name)
    missing = missing_rows_of(array)
    levels = encoder.levels.get(name)
    if levels is not None:
        n_levels = len([level for level in levels if level != MISSING_LEVEL])
        return IncompleteColumn(name, level_codes(table, name, array, levels), missing, n_levels)
    numbers = finite_numbers(table, name, filled(array, 0.0) if missing.any() else array)
    distinct = np.unique(numbers[~missing])
    if distinct.size > 2:
        return IncompleteColumn(name, numbers, missing, 0)
    return IncompleteColumn(name, np.searchsorted(distinct, numbers), missing, distinct.size)


def completed_table(table: Table, donors: Donors) -> Table:
    """The table with the values of donors where they are missing."""

    def fetch(wanted: Sequence[str]) -> "pa.Table":
        fetched = table.fetch(wanted)
        for name in wanted:
            if name in donors:
                place = fetched.column_names.index(name)
                array = fetched.column(name).take(pa.array(_rows(donors[name], table.n_rows)))
                fetched = fetched.set_column(place, fetched.schema.field(place), array)
        return fetched

    return Table(
        table.columns,
        table.n_rows,
        fetch,
        table.texts,
        table.words,
        table.index,
        table.unordered,
        table.coded,
    )


def completed_frame(frame: object, donors: Donors) -> Any:
    """The same for a data frame of any library, which stays one of that library."""
    if isinstance(frame, Table):
        raise InputError("a table of a file has no library.")
    native = eager_frame(frame)
    if isinstance(native, pa.Table):
        table = as_table(native)
        return completed_table(table, donors).fetch(table.columns)
    made = []
    for name, pair in donors.items():
        column = native.get_column(name)
        taken = column[_rows(pair, len(native)).tolist()]
        made.append(_with_index_of(taken, column).alias(name))
    return native.with_columns(*made).to_native()


def _with_index_of(taken: "nw.Series[Any]", column: "nw.Series[Any]") -> "nw.Series[Any]":
    """A series of pandas has an index, by which columns would be joined."""
    values, before = taken.to_native(), column.to_native()
    if hasattr(values, "set_axis"):
        return nw.from_native(values.set_axis(before.index), series_only=True)
    return taken


def _rows(pair: tuple[Index, Index], n_rows: int) -> Index:
    rows = np.arange(n_rows, dtype=np.int64)
    missing, donors = pair
    rows[missing] = donors
    return rows
