"""Rows of a data frame, taken in any order, with columns that are set, in its own library."""

from collections.abc import Mapping
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa

from riskset._types import AnyArray, Index
from riskset.data.frame import as_table, eager_frame
from riskset.data.table import Table

__all__ = ["FrameRows"]


class FrameRows:
    """A data frame whose rows can be taken, for a result of the same library.

    Lazy frames and relations are computed once and become Arrow tables.
    """

    def __init__(self, frame: object) -> None:
        self._eager = eager_frame(frame)
        native = self._eager if isinstance(self._eager, pa.Table) else self._eager.to_native()
        self.table: Table = as_table(native)

    def take(
        self, rows: Index, columns: Mapping[str, AnyArray], same: Mapping[str, Index] | None = None
    ) -> Any:
        """The given rows, which may repeat, with `columns` set or added.

        Parameters
        ----------
        columns : mapping of str to (n_rows,) array
            Values of the result.
        same : mapping of str to (n_rows,) int64
            Columns whose values are those of other rows than `rows`.
        """
        names = list(self.table.columns)
        if isinstance(self._eager, pa.Table):
            return _of_arrow(self._eager, names, rows, columns, same or {})
        taken = self._eager[rows]
        if self._eager.implementation.is_pandas_like():
            taken = _with_plain_index(self._eager, taken)
        library = self._eager.implementation
        for name, places in (same or {}).items():
            taken = _with(taken, name, self._eager.get_column(name)[places].to_native(), library)
        for name, values in columns.items():
            made = nw.new_series(name, values, backend=library).to_native()
            taken = _with(taken, name, made, library)
        return taken.to_native()


def _with_plain_index(before: Any, taken: Any) -> Any:
    """Rows numbered anew if they were numbered before; labels of rows are repeated."""
    index = before.to_native().index
    is_plain = type(index).__name__ == "RangeIndex" and index.name is None
    return nw.from_native(taken.to_native().reset_index(drop=True)) if is_plain else taken


def _with(frame: Any, name: str, column: Any, library: Any) -> Any:
    """A frame with a column set."""
    if library.is_pandas_like():
        column = column.set_axis(frame.to_native().index)
    return frame.with_columns(nw.from_native(column, series_only=True).alias(name))


def _of_arrow(
    table: "pa.Table",
    names: list[str],
    rows: Index,
    columns: Mapping[str, AnyArray],
    same: Mapping[str, Index],
) -> "pa.Table":
    taken = table.select([name for name in names if name not in columns]).take(pa.array(rows))
    made = {name: taken.column(name) for name in taken.column_names}
    for name, places in same.items():
        made[name] = table.column(name).take(pa.array(places))
    made |= {name: pa.array(np.asarray(values)) for name, values in columns.items()}
    order = [*names, *(name for name in columns if name not in names)]
    return pa.table({name: made[name] for name in order})
