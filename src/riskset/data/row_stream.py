"""Rows that come from a database a batch at a time, as Arrow or as tuples of Python."""

import datetime
import decimal
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute

from riskset._errors import InputError

__all__ = ["RowStream", "chained", "stream_of_arrow", "stream_of_rows"]

LAST_DAY = 3_000_000
"""Days after 1970, some time after the year 10000: PostgreSQL has dates such as infinity."""


@dataclass(frozen=True, eq=False)
class RowStream:
    """Rows of one kind: the Arrow schema, and the batches, which can be read once."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]

    def table(self) -> pa.Table:
        """All rows at once."""
        return pa.Table.from_batches(self.batches, self.schema)


def stream_of_arrow(reader: pa.RecordBatchReader) -> RowStream:
    """What a driver gives as Arrow, without types that only this driver knows."""
    schema = pa.schema([pa.field(field.name, _storage(field.type)) for field in reader.schema])

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in reader:
            columns = [
                column.storage if isinstance(column, pa.ExtensionArray) else column
                for column in batch.columns
            ]
            for name, column in zip(schema.names, columns, strict=True):
                _check_days(name, column)
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    return RowStream(schema, batches())


def stream_of_rows(
    names: Sequence[str], blocks: Iterable[Sequence[Sequence[Any]]], usual: Mapping[str, str]
) -> RowStream:
    """Blocks of tuples; `usual` has the type ("int64", ...) of columns that begin with no value.

    Raises `InputError` if a column holds values of several types.
    """
    waiting = iter(blocks)
    first = next(waiting, [])
    columns = list(zip(*first, strict=True)) or [()] * len(names)
    types = [_type(column, usual[name]) for name, column in zip(names, columns, strict=True)]
    schema = pa.schema(list(zip(names, types, strict=True)))

    def batches() -> Iterator[pa.RecordBatch]:
        block = first
        while block:
            arrays = [
                _array(name, values, type_)
                for name, values, type_ in zip(names, zip(*block, strict=True), types, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)
            block = next(waiting, [])

    return RowStream(schema, batches())


def chained(streams: Iterable[RowStream]) -> RowStream:
    """Several streams, one after the other; they have the columns of the first."""
    waiting = iter(streams)
    first = next(waiting)

    def batches() -> Iterator[pa.RecordBatch]:
        yield from first.batches
        for stream in waiting:
            for batch in stream.batches:
                yield batch if batch.schema == first.schema else batch.cast(first.schema)

    return RowStream(first.schema, batches())


def _storage(type_: pa.DataType) -> pa.DataType:
    return type_.storage_type if isinstance(type_, pa.BaseExtensionType) else type_


UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
"""Units of points in time in a second."""


def _check_days(name: str, column: pa.Array) -> None:
    if pa.types.is_date32(column.type):
        counts, last = column.view(pa.int32()), LAST_DAY
    elif pa.types.is_timestamp(column.type):
        counts, last = column.view(pa.int64()), LAST_DAY * 86_400 * UNITS[column.type.unit]
    else:
        return
    extremes = pyarrow.compute.min_max(counts).as_py()
    if extremes["min"] is not None and max(-extremes["min"], extremes["max"]) > last:
        raise InputError(
            f"column {name} holds a value, such as infinity, that is not a day of the calendar.",
            hint="correct these rows where the CDM is made, or leave them out.",
        )


def _type(values: Sequence[Any], usual: str) -> pa.DataType:
    """By the first value; an empty column has its usual type."""
    value = next((value for value in values if value is not None), None)
    match value:
        case bool():
            return pa.bool_()
        case int():
            return pa.int64()
        case float():
            return pa.float64()
        case decimal.Decimal():
            # Numbers without decimals are identifiers, which floating point may not hold.
            is_whole = usual == "int64"
            return pa.int64() if is_whole else pa.float64()
        case datetime.datetime():
            return pa.timestamp("us", tz=None if value.tzinfo is None else "UTC")
        case datetime.date():
            return pa.date32()
        case None:
            return pa.type_for_alias(usual)
    return pa.string()


def _array(name: str, values: Sequence[Any], type_: pa.DataType) -> pa.Array:
    if pa.types.is_floating(type_):
        values = [None if value is None else float(value) for value in values]
    elif pa.types.is_string(type_):
        values = [None if value is None else str(value) for value in values]
    elif pa.types.is_int64(type_):
        values = [int(v) if isinstance(v, decimal.Decimal) and v == int(v) else v for v in values]
    try:
        return pa.array(values, type_)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise InputError(
            f"column {name} holds values of several types: {error}.",
            hint="correct these rows where the CDM is made, or leave them out.",
        ) from None
