"""Labels of groups and identifiers of rows: which values are missing, and which are one label.

The only place that decides it, for arrays, data frames and files alike. Values keep their own type:
1 and 1.0 are one label, "1" is another, and a column that has both kinds is refused. Nothing passes
through a type that cannot hold it exactly.
"""

from collections.abc import Iterable, Sequence
from decimal import Decimal
from numbers import Rational
from typing import Any

import numpy as np
from numpy.typing import NDArray

from riskset._errors import InputError
from riskset._types import AnyArray, Index, Rows
from riskset.data.checks import (
    EXACT,
    Places,
    as_array,
    complain_rows,
    is_number_type,
    missing_rows,
    refuse_name,
    shown,
)

__all__ = [
    "as_clusters",
    "as_codes",
    "as_group_codes",
    "as_keys",
    "as_labels",
    "code_columns",
    "combine",
    "label_columns",
    "typed_labels",
]

OWN_LABEL = "give these rows a separate label, or drop them."
OWN_KEY = "give every row an identifier, or drop these rows."
SAME_KIND = "write all of them as text, or all as numbers."
AS_TEXT = "store identifiers as 64-bit integers or as text."
DECODE = "decode them, for example with numpy.char.decode(values, 'utf-8')."
MAX_INT64 = 2**63 - 1


def typed_labels(values: object, column: str, places: Places) -> tuple[AnyArray, NDArray[np.bool_]]:
    """Labels in the narrowest type, and which rows are missing (their values mean nothing).

    Whole numbers become int64 (uint64 if they need it), whatever type held them; other numbers
    float64; text an array of text. Labels of one other type (dates, tuples) stay as they are. An
    `InputError` if text and numbers are mixed, or floating-point numbers are too large to be exact.
    """
    array = as_array(values, column, places)
    missing = missing_rows(array)
    if array.dtype.kind == "S":
        raise InputError(f"{column} holds bytes, not text.", hint=DECODE)
    if array.dtype.kind == "T":
        array = array.astype(object)
    if array.dtype == object:
        array = _from_objects(array, missing, column, places)
    if array.dtype.kind == "f":
        array = _from_floats(array, missing, column, places)
    if array.dtype.kind == "M":
        days = array.astype("datetime64[D]")
        array = days if (days[~missing] == array[~missing]).all() else array.astype("M8[us]")
    if array.dtype.kind in "iu" and array.max(initial=0) <= MAX_INT64:
        array = array.astype(np.int64)
    return array, missing


def as_labels(values: object, name: str, n_rows: int, places: Places) -> AnyArray:
    """One label for each row, typed by `typed_labels`, none of them missing."""
    column = places.column(name)
    array, missing, original = _typed_rows(values, "label", column, n_rows, places)
    if array.dtype.kind in "fc":
        missing = missing | np.isinf(array)
    complain_rows(missing, original, column, "must not be missing", places, hint=OWN_LABEL)
    return array


def _typed_rows(
    values: object, what: str, column: str, n_rows: int | None, places: Places
) -> tuple[AnyArray, NDArray[np.bool_], AnyArray]:
    """`typed_labels` of a column with one value for each row, and the values as they are."""
    refuse_name(values, column, n_rows)
    array, missing = typed_labels(values, column, places)
    if array.ndim != 1 or n_rows not in (None, array.size):
        rows = "rows" if n_rows is None else f"{n_rows:,} rows"
        raise InputError(
            f"{column} must have one {what} for each of the {rows}, but its shape is "
            f"{tuple(getattr(values, 'shape', array.shape))}.",
            hint="check that all arguments come from the same table.",
        )
    return array, missing, as_array(values, column, places)


def as_codes(values: object, name: str, n_rows: int, places: Places) -> tuple[Index, AnyArray]:
    """`as_labels` as codes 0..k-1 in the sorted order of the labels, and the labels."""
    labels, codes = np.unique(as_labels(values, name, n_rows, places), return_inverse=True)
    return codes.reshape(-1).astype(np.int64), labels


def as_clusters(
    values: object, n_rows: int, places: Places, weight: Rows | None = None
) -> tuple[Index, AnyArray]:
    """Codes of clusters (n,), as by `as_codes`, of which rows of positive weight have several."""
    codes, labels = as_codes(values, "cluster", n_rows, places)
    used = codes if weight is None else codes[weight > 0]
    if used.size > 1 and (used == used[0]).all():
        raise InputError(
            f"{places.column('cluster')} has the same label in all rows, so the data do not say "
            "how results vary from one cluster to another.",
            hint="pass at least two clusters, such as people or hospitals; if each row is "
            "independent of the others, leave out `cluster` and any frailty.",
        )
    return codes, labels


def as_group_codes(
    values: object, name: str, n_rows: int, places: Places
) -> tuple[Index, AnyArray]:
    """`as_codes` of groups to show, in the order that a categorical type declares, if it does."""
    codes, labels = as_codes(values, name, n_rows, places)
    listed = _declared(values)
    if not listed:
        return codes, labels
    rank = {value: place for place, value in enumerate(listed)}
    order = np.argsort([rank[label] for label in labels.tolist()], kind="stable")
    return np.argsort(order)[codes].astype(np.int64), labels[order]


def _declared(values: object) -> list[object]:
    """The values that a categorical type declares: of pandas, polars or Arrow."""
    chunks = [c for c in getattr(values, "chunks", [values]) if hasattr(c, "dictionary")]
    if chunks:  # each chunk of an Arrow column may have its own dictionary
        every = (value for chunk in chunks for value in chunk.dictionary.to_pylist())
        return [value for value in dict.fromkeys(every) if value is not None]
    declared: Any = getattr(getattr(values, "dtype", None), "categories", None)
    if hasattr(declared, "tolist"):
        return list(declared.tolist())
    return list(declared.to_list()) if hasattr(declared, "to_list") else []


def label_columns(values: object) -> list[object]:
    """The columns that labels consist of: one, or those of a sequence or of a data frame."""
    if hasattr(values, "columns") and hasattr(values, "shape"):  # a data frame of any library
        names: Iterable[object] = getattr(values, "columns")  # noqa: B009
        names = getattr(values, "column_names", names)
        return [values[name] for name in names]  # type: ignore[index]
    first = values[0] if isinstance(values, (list, tuple)) and values else ""
    is_column = hasattr(first, "__len__") and not isinstance(first, (str, bytes))
    return list(values) if is_column else [values]  # type: ignore[call-overload]


def code_columns(values: object, name: str, n_rows: int, places: Places) -> tuple[Index, AnyArray]:
    """Labels, or the combinations of several columns of labels, as codes and labels.

    `values` is one column, a sequence of columns or a data frame. The codes 0..k-1 are in the
    sorted order of the labels, which for several columns are tuples.
    """
    columns = label_columns(values)
    coded = [as_codes(column, name, n_rows, places) for column in columns]
    if len(coded) == 1:
        return coded[0]
    codes, names = combine([(code, labels.tolist()) for code, labels in coded], n_rows)
    labels = np.empty(len(names), dtype=object)
    labels[:] = names
    return codes, labels


def combine(
    coded: Sequence[tuple[Index, list[object]]], n_rows: int
) -> tuple[Index, list[tuple[object, ...]]]:
    """Combinations that occur of several columns of codes, as codes and tuples of labels."""
    codes = np.zeros(n_rows, dtype=np.int64)
    tuples: list[tuple[object, ...]] = [()]
    for code, labels in coded:
        pairs, codes = np.unique(codes * len(labels) + code, return_inverse=True)
        codes = codes.reshape(-1).astype(np.int64)
        tuples = [(*tuples[k // len(labels)], labels[k % len(labels)]) for k in pairs.tolist()]
    return codes, tuples


def as_keys(values: object, name: str, n_rows: int | None, places: Places) -> AnyArray:
    """Identifiers of rows, exact: int64 or text.

    Raises `InputError` if one is missing, or is neither a whole number of 64 bits nor text.
    """
    column = places.column(name)
    array, missing, original = _typed_rows(values, "identifier", column, n_rows, places)
    complain_rows(missing, original, column, "must not be missing", places, hint=OWN_KEY)
    must = "must hold whole numbers or text to identify rows"
    if array.dtype.kind == "f":
        complain_rows(array != np.trunc(array), original, column, must, places, hint=AS_TEXT)
    if array.dtype == np.uint64 or (array.dtype == object and _kind(type(array[0])) == "number"):
        must = f"must hold whole numbers of at most {MAX_INT64}, or text"
        large = np.array([not abs(value) <= MAX_INT64 for value in array.tolist()], dtype=bool)
        complain_rows(large, original, column, must, places, hint="convert it to text.")
    if array.dtype.kind not in "iuU":
        first = array[0] if array.size else "none"
        raise InputError(
            f"{column} {must}, but its type is {_type_name(array)} (first: {places.row(0)}, "
            f"value {shown(first)}).",
            hint="name another column, or convert it to text.",
        )
    return array


def _from_objects(
    array: AnyArray, missing: NDArray[np.bool_], column: str, places: Places
) -> AnyArray:
    """Objects of one kind as an array of the type of this kind."""
    if array.ndim != 1:
        return array
    present = np.flatnonzero(~missing)
    kind_of = {type_: _kind(type_) for type_ in {type(array[i]) for i in present.tolist()}}
    kinds = set(kind_of.values())
    if bytes in kind_of:
        raise InputError(f"{column} holds bytes, not text.", hint=DECODE)
    if kinds == {"boolean", "number"}:  # True is 1, as everywhere in Python
        kinds = {"number"}
    if len(kinds) > 1:
        _complain_mixed(array, present, kind_of, column, places)
    kind = next(iter(kinds), "text")
    if kind not in ("text", "boolean", "number"):
        return array
    filled: AnyArray = np.full(array.size, "" if kind == "text" else 0, dtype=object)
    if kind != "number":
        filled[present] = array[present]
        return filled.astype(np.str_ if kind == "text" else np.bool_)
    values = [_plain_number(value) for value in array[present].tolist()]
    filled[present] = np.fromiter(values, dtype=object, count=len(values))
    large = np.zeros(array.size, dtype=bool)
    large[present] = [isinstance(v, float) and np.isfinite(v) and abs(v) >= EXACT for v in values]
    _complain_inexact(large, array, column, places)
    return _numbers(filled)


def _numbers(values: AnyArray) -> AnyArray:
    """Plain numbers in the narrowest type that holds all of them exactly, or as they are."""
    types = {type(v) for v in values.tolist()}
    least, most = (f(values.tolist(), default=0) for f in (min, max))
    if types <= {int}:
        if least >= -MAX_INT64 - 1 and most <= MAX_INT64:
            return values.astype(np.int64)
        return values.astype(np.uint64) if least >= 0 and most < 2**64 else values
    exact = all(not isinstance(v, int) or abs(v) < EXACT for v in values.tolist())
    return values.astype(np.float64) if types <= {int, float} and exact else values


def _plain_number(value: object) -> object:
    """A number as int if it is whole, else as float if that is exact."""
    if isinstance(value, np.generic):
        value = float(value) if isinstance(value, np.floating) else value.item()
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < EXACT else value
    if isinstance(value, Rational):  # int and bool, too
        return value.numerator if value.denominator == 1 else value
    assert isinstance(value, Decimal)
    if value.is_finite() and value == value.to_integral_value():
        return int(value)
    return float(value) if Decimal(repr(float(value))) == value else value


def _kind(type_: type) -> str:
    if issubclass(type_, str):
        return "text"
    if issubclass(type_, bool | np.bool_):
        return "boolean"
    if is_number_type(type_):
        return "number"
    return f"{type_.__module__}.{type_.__qualname__}".removeprefix("builtins.")


def _complain_mixed(
    array: AnyArray, rows: Index, kind_of: dict[type, str], column: str, places: Places
) -> None:
    kinds = [kind_of[type(array[i])] for i in rows.tolist()]
    first = kinds[0]
    other = next(k for k, kind in enumerate(kinds) if kind != first)
    i, j = int(rows[0]), int(rows[other])
    raise InputError(
        f"{column} mixes {_plural(first)} and {_plural(kinds[other])} ({places.row(i)} has "
        f"{shown(array[i])}, {places.row(j)} has {shown(array[j])}).",
        hint=SAME_KIND,
    )


def _plural(kind: str) -> str:
    known = {"text": "text", "boolean": "booleans", "number": "numbers"}
    return known.get(kind, f"objects of type {kind}")


def _from_floats(
    array: AnyArray, missing: NDArray[np.bool_], column: str, places: Places
) -> AnyArray:
    """Whole numbers as int64, so that a gap elsewhere in the column changes no label."""
    with np.errstate(invalid="ignore"):
        large = np.isfinite(array) & (np.abs(array) >= EXACT)
    _complain_inexact(large, array, column, places)
    filled = np.where(missing, 0, array)
    if np.isfinite(filled).all() and (filled == np.trunc(filled)).all():
        return filled.astype(np.int64)
    return array.astype(np.float64)


def _complain_inexact(
    large: NDArray[np.bool_], array: AnyArray, column: str, places: Places
) -> None:
    complain_rows(
        large.reshape(-1),
        array.reshape(-1),
        column,
        "must hold numbers below 2**53, because it is stored as floating point, which is not exact "
        "beyond",
        places,
        hint=AS_TEXT,
    )


def _type_name(array: AnyArray) -> str:
    return _kind(type(array.flat[0])) if array.dtype == object and array.size else str(array.dtype)
