"""Parquet files whose columns have the types that a schema says, and nothing else.

A missing value is null, never NaN; so that NaN in a file can only mean damage, numbers are written
as null where they are NaN. Infinities stay.
"""

from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

__all__ = ["TYPES", "TypedTable", "read_typed", "stored_types", "write_typed"]

TYPES = {
    "text": pa.string(),
    "int": pa.int64(),
    "number": pa.float64(),
    "bool": pa.bool_(),
    "numbers": pa.list_(pa.field("element", pa.float64())),  # as Parquet calls it
}
"""Names of types in schemas -> how they are stored; "numbers" is a list of numbers."""

ROW_GROUP = 1 << 14

NAMES = {stored: name for name, stored in TYPES.items()}


class TypedTable:
    """A table in memory, with values of Python."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self._table.num_rows)

    def rows(self, /, **where: object) -> list[dict[str, Any]]:
        """Rows as dictionaries, those with the values given only; None where missing."""
        table = self._table
        for name, value in where.items():
            column = table.column(name)
            keep = np.array([v == value for v in column.to_pylist()], dtype=bool)
            table = table.filter(pa.array(keep))
        found: list[dict[str, Any]] = table.to_pylist()
        return found

    def columns(self) -> dict[str, list[Any]]:
        """Columns as lists; None where missing."""
        found: dict[str, list[Any]] = self._table.to_pydict()
        return found


def write_typed(path: Path, types: Mapping[str, str], rows: Iterable[Mapping[str, object]]) -> int:
    """Write rows, some at a time, and count them; a column that a row lacks is null."""
    schema = pa.schema([(name, TYPES[kind]) for name, kind in types.items()])
    left, n_rows = iter(rows), 0
    with pyarrow.parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        while chunk := list(islice(left, ROW_GROUP)):
            arrays = [
                pa.array([_value(row.get(name), kind) for row in chunk], TYPES[kind])
                for name, kind in types.items()
            ]
            writer.write_table(pa.table(arrays, schema=schema), row_group_size=ROW_GROUP)
            n_rows += len(chunk)
    return n_rows


def read_typed(path: Path) -> TypedTable:
    """Read a file of `write_typed`.

    Raises
    ------
    OSError, ValueError
        If it is no such file, or damaged.
    """
    return TypedTable(pyarrow.parquet.read_table(path))


def stored_types(path: Path) -> dict[str, str]:
    """Name and type of every column of a file, without reading it; raises as `read_typed`."""
    schema = pyarrow.parquet.read_schema(path)
    return {field.name: NAMES.get(field.type, str(field.type)) for field in schema}


def _value(value: object, kind: str) -> object:
    if value is None or (isinstance(value, float | np.floating) and np.isnan(value)):
        return None
    if kind == "text":
        return str(value)
    if kind == "numbers":
        return [float(v) for v in value]  # type: ignore[attr-defined]
    return {"int": int, "number": float, "bool": bool}[kind](value)
