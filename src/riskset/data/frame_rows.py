"""Rows of a data frame, taken in any order, with columns that are set, in its own library."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import narwhals as nw
import pyarrow as pa

from riskset._types import AnyArray, Index
from riskset.data.frame import as_table, eager_frame
from riskset.data.table import Table, TableWords

__all__ = ["FrameRows"]


class FrameRows:
    """A data frame whose rows can be taken, for a result of the same library.

    Lazy frames and relations are computed once and become Arrow tables.
    """

    def __init__(self, frame: object, name: str = "") -> None:
        self._eager = eager_frame(frame)
        native = self._eager if isinstance(self._eager, pa.Table) else self._eager.to_native()
        self.table: Table = replace(as_table(native), words=TableWords(name=name))

    def take(
        self, rows: Index, columns: Mapping[str, Any], same: Mapping[str, Index] | None = None
    ) -> Any:
        """The given rows, which may repeat, with `columns` set or added.

        Parameters
        ----------
        columns : mapping of str to (n_rows,) array of NumPy or Arrow
            Values of the result.
        same : mapping of str to (n_rows,) int64
            Columns whose values are those of other rows than `rows`.
        """
        if isinstance(self._eager, pa.Table):
            return _of_arrow(self._eager, rows, columns, same or {})
        taken = self._eager[rows]
        if self._eager.implementation.is_pandas_like():
            taken = _with_plain_index(self._eager, taken)
        for name, places in (same or {}).items():
            taken = _with(taken, name, self._eager.get_column(name)[places].to_native())
        for name, values in columns.items():
            made = nw.from_arrow(pa.table({name: values}), backend=self._eager.implementation)
            column = made.get_column(name)
            if self._eager.implementation.is_polars() and column.dtype == nw.Categorical:
                column = column.cast(nw.Enum(values.dictionary.to_pylist()))
            taken = _with(taken, name, column.to_native())
        return taken.to_native()

    def of_columns(self, columns: Mapping[str, AnyArray]) -> Any:
        """A frame of these columns, of the same library."""
        made = pa.table({name: pa.array(values) for name, values in columns.items()})
        if isinstance(self._eager, pa.Table):
            return made
        return nw.from_arrow(made, backend=self._eager.implementation).to_native()


def _with_plain_index(before: Any, taken: Any) -> Any:
    """Rows numbered anew if they were numbered before; labels of rows are repeated."""
    index = before.to_native().index
    is_plain = type(index).__name__ == "RangeIndex" and index.name is None
    return nw.from_native(taken.to_native().reset_index(drop=True)) if is_plain else taken


def _with(frame: Any, name: str, column: Any) -> Any:
    """A frame with a column set."""
    if frame.implementation.is_pandas_like():
        column = column.set_axis(frame.to_native().index)
    return frame.with_columns(nw.from_native(column, series_only=True).alias(name))


def _of_arrow(
    table: "pa.Table", rows: Index, columns: Mapping[str, Any], same: Mapping[str, Index]
) -> "pa.Table":
    names = table.column_names
    taken = table.select([name for name in names if name not in columns]).take(pa.array(rows))
    made = {name: taken.column(name) for name in taken.column_names}
    for name, places in same.items():
        made[name] = table.column(name).take(pa.array(places))
    made |= dict(columns)
    order = [*names, *(name for name in columns if name not in names)]
    return pa.table({name: made[name] for name in order})
