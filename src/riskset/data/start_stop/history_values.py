"""Values of a history with others in their gaps: a given one, or those of the table of people."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from riskset._errors import InputError
from riskset._types import is_number
from riskset.data.table import Table, declared_values, kind_of, plain_values

__all__ = ["fill_with", "fill_with_column", "ordered_column"]


def ordered_column(table: Table, name: str) -> Any:
    """A column, as text if it has categories in the order in which they appeared."""
    array = table.array(name)
    return plain_values(array) if name in table.unordered else array


def fill_with(values: Any, before: object) -> Any:
    """An Arrow array with a given value in its gaps; categories keep their levels."""
    kind = kind_of(values.type)
    if kind in ("number", "bool", "missing") and is_number(before) and not np.isnan(before):
        is_whole = pa.types.is_integer(values.type) and float(before).is_integer()
        return (values if is_whole else values.cast(pa.float64())).fill_null(before)
    is_text = kind == "text" and isinstance(before, str)
    if is_text or (kind == "bool" and isinstance(before, (bool, np.bool_))):
        return values.fill_null(before)
    if kind == "category":
        levels = declared_values(pa.chunked_array([values]))
        if before in levels:
            at = values.indices.fill_null(levels.index(before))
            return pa.DictionaryArray.from_arrays(
                at, values.dictionary, ordered=values.type.ordered
            )
        raise InputError(
            f"`before` is {before!r}, which is not one of the categories of its history.",
            hint="give one of them, declare one more, or write the values as text.",
        )
    raise InputError(
        f"`before` is {before!r}, but the values of its history are of type {values.type}.",
        hint="give a value of the same type.",
    )


def fill_with_column(values: Any, column: Any, words: str) -> Any:
    """An Arrow array with the values of a column of the table of people in its gaps.

    If both are categories, the levels are those of the column, and after them further ones of the
    history, unless an order is declared.
    """
    if column.type == values.type and not pa.types.is_dictionary(values.type):
        return pc.if_else(values.is_null(), column, values)
    kinds = {kind_of(column.type), kind_of(values.type)}
    first, other = plain_values(column), plain_values(values)
    if kinds <= {"number", "bool", "missing"}:
        return pc.if_else(other.is_null(), first.cast(pa.float64()), other.cast(pa.float64()))
    if {kind_of(first.type), kind_of(other.type)} - {"missing"} != {"text"}:
        raise InputError(
            f"{words} has values of type {column.type}, but those of its history are of type "
            f"{values.type}.",
            hint="write both as numbers, or both as text.",
        )
    text = pa.large_string()
    joined = pc.if_else(other.is_null(), first.cast(text), other.cast(text))
    return _with_levels(joined, column, values, words) if "category" in kinds else joined


def _with_levels(joined: Any, column: Any, values: Any, words: str) -> Any:
    """Text as categories: those that a column, its history or both declare."""
    declared = [
        [level for level in declared_values(pa.chunked_array([one])) if level is not None]
        for one in (column, values)
        if pa.types.is_dictionary(one.type)
    ]
    is_ordered = any(getattr(one.type, "ordered", False) for one in (column, values))
    levels = list(dict.fromkeys(level for one in declared for level in one))
    at = pc.index_in(joined, value_set=pa.array(levels, joined.type))
    odd = at.is_null().to_numpy(zero_copy_only=False) & joined.is_valid().to_numpy(False)
    if odd.any() or (is_ordered and any(one != levels for one in declared)):
        what = (
            f"the value {joined[int(np.argmax(odd))].as_py()!r} is not one of them"
            if odd.any()
            else "those that its history declares are others, or in another order"
        )
        raise InputError(
            f"{words} and its history must have the same categories, but {what}.",
            hint="declare the same categories in both tables, or write both as text.",
        )
    return pa.DictionaryArray.from_arrays(at, pa.array(levels, joined.type), ordered=is_ordered)
