"""One table of the user as Arrow columns, and a column as an array of numbers, labels or keys.

Whatever holds the data, a `Table` hands out one column at a time, and knows how messages call its
columns and rows. Below it nothing is missing, infinite or of a wrong type.
"""

import datetime
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from riskset._errors import InputError
from riskset._types import AnyArray, Rows
from riskset.data.checks import (
    BOOLEAN_TIME,
    IN_DAYS,
    MISSING,
    MissingValuesError,
    Places,
    as_finite,
    complain_rows,
)
from riskset.data.labels import OWN_KEY, OWN_LABEL, as_keys, as_labels

__all__ = [
    "DAYS",
    "DURATION",
    "INDEX",
    "NUMBER",
    "Table",
    "TableWords",
    "check_present",
    "declared_values",
    "finite_numbers",
    "finite_times",
    "has_decimal_comma",
    "has_order",
    "is_number",
    "keys",
    "kind_of",
    "labels",
    "missing_hint",
    "numbers",
    "pandas_index",
    "plain_values",
    "refuse_empty",
    "type_words",
]

CODES = "in a CSV file an empty field, NA, N/A, #N/A, NaN and NULL are missing values; "
NUMBER = re.compile(r"[-+]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?")
DURATION = re.compile(
    r"-?[0-9]+ days?(,? [-+]?[0-9]{1,2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?)?"
    r"|-?P(?=.)([0-9]+[YMWD])*(T([0-9.]+[HMS])+)?"
)
"""How pandas, polars, Python and R write durations: 5 days 00:00:00, or P5DT0H."""

INDEX = re.compile(r"__index_level_[0-9]+__")
"""How pandas calls an index without a name."""

LEAVE_OUT = "leave the column out with `drop`."
DAYS = f"count the days since the start of follow-up, or {LEAVE_OUT}"


@dataclass(frozen=True)
class TableWords:
    """How messages call a table, its columns and its rows; `file` is "" for a data frame.

    Rows of a data frame count from 0, as its own positions do; rows of a file count from 1, without
    the header. `row_keys` (n_rows,) are the values of the column `id`, which identifies rows.
    `name` tells a data frame from others of the same call.
    """

    file: str = ""
    id: str | None = None
    row_keys: AnyArray | None = field(default=None, repr=False)
    name: str = ""

    @property
    def place(self) -> str:
        """The file, the name, or "the data frame"."""
        return self.file or self.name or "the data frame"

    def places(self, name: str) -> Places:
        """What the checks of one column call it and its rows."""
        return Places({name: self.column(name)}, self.row)

    def column(self, name: str) -> str:
        """A column."""
        place = self.file or self.name
        return f"column {name!r} of {place}" if place else f"column {name!r}"

    def row(self, i: int) -> str:
        """A row."""
        words = f"data row {i + 1}" if self.file else f"row {i}"
        if self.row_keys is None:
            return words
        key = self.row_keys[i]
        return f"{words}, {self.id} {key.item() if isinstance(key, np.generic) else key!r}"


@dataclass(frozen=True)
class Table:
    """One table of the user, in whatever form.

    `fetch` reads some columns, by name, as an Arrow table. `texts` are the columns that may hold
    text or categories, known without reading them; `unordered` are categories whose type has no
    order of its own; `index` are the columns of the index of a pandas frame. `coded` are columns of
    whole numbers, among `texts`, that were categories before a file stored them as numbers.
    """

    columns: tuple[str, ...]
    n_rows: int
    fetch: Callable[[Sequence[str]], "pa.Table"] = field(repr=False)
    texts: frozenset[str]
    words: TableWords = field(default_factory=TableWords)
    index: frozenset[str] = frozenset()
    unordered: frozenset[str] = frozenset()
    coded: frozenset[str] = frozenset()

    @property
    def data_columns(self) -> tuple[str, ...]:
        """The columns that are not an index."""
        return tuple(name for name in self.columns if name not in self.index)

    def array(self, name: str) -> "pa.ChunkedArray":
        """One column."""
        self.need(name)
        return self.fetch([name]).column(name)

    def need(self, name: str) -> None:
        """An `InputError` with the closest names if there is no such column."""
        if name not in self.columns:
            raise InputError.unknown_name("column", name, self.columns, place=self.words.place)


def refuse_empty(n_rows: int, place: str) -> None:
    """Refuse a table without rows."""
    if n_rows == 0:
        raise InputError(
            f"{place} has no rows.", hint="check the file, the query or the filter before it."
        )


def pandas_index(names: Sequence[str], metadata: Mapping[bytes, bytes] | None) -> frozenset[str]:
    """Columns in which pandas has stored the index of a frame, by name or the Arrow `metadata`.

    pandas numbers its rows, and writes these numbers into a Parquet file as a separate column
    once rows were concatenated, sorted or left out. They may have a role that the user
    names, but they are not covariates.
    """
    unnamed = {name for name in names if INDEX.fullmatch(name)}
    try:
        about = json.loads((metadata or {}).get(b"pandas", b"{}"))
        listed = about.get("index_columns", [])
    except (ValueError, AttributeError):
        listed = []
    return frozenset(unnamed.union(name for name in names if name in listed))


def kind_of(type_: "pa.DataType") -> str:
    """The kind of a type: number, bool, text, category, date, duration, missing or other."""
    types = pa.types
    if types.is_boolean(type_):
        return "bool"
    if types.is_integer(type_) or types.is_floating(type_) or types.is_decimal(type_):
        return "number"
    if types.is_string(type_) or types.is_large_string(type_) or types.is_string_view(type_):
        return "text"
    if types.is_dictionary(type_):
        inner = kind_of(type_.value_type)
        return "category" if inner in ("text", "number", "bool") else inner
    if types.is_duration(type_) or types.is_interval(type_):
        return "duration"
    if types.is_temporal(type_):
        return "date"
    return "missing" if types.is_null(type_) else "other"


def has_order(field: "pa.Field") -> bool:
    """Whether an Arrow column has categories whose order its type declares.

    That of a ``Categorical`` of polars is the order in which they appeared.
    """
    names = field.metadata or {}
    appeared = any(name.startswith(b"_PL_CATEGORICAL") for name in names)
    return pa.types.is_dictionary(field.type) and not appeared


def type_words(type_: "pa.DataType") -> str:
    """How messages call an Arrow type."""
    if pa.types.is_date(type_):
        return "date"
    if pa.types.is_timestamp(type_):
        return "date and time"
    known = {
        "text": "text",
        "category": "categorical",
        "duration": "duration",
        "missing": "empty",
    }
    return known.get(kind_of(type_), str(type_))


def plain_values(array: "pa.ChunkedArray") -> "pa.ChunkedArray":
    """The values of a categorical column, where a null may stand in the dictionary, too."""
    return array.cast(array.type.value_type) if pa.types.is_dictionary(array.type) else array


def declared_values(array: "pa.ChunkedArray") -> list[object]:
    """All values that a categorical type declares, in their order; chunks may have several."""
    chunks = array.unify_dictionaries().chunks
    return list(dict.fromkeys(chunks[0].dictionary.to_pylist())) if chunks else []


def check_present(table: Table, name: str, array: "pa.ChunkedArray", hint: str = MISSING) -> None:
    """Raise if the column has gaps."""
    values = plain_values(array)
    if values.null_count:
        bad = values.is_null().to_numpy()
        n = int(bad.sum())
        first = table.words.row(int(np.argmax(bad)))
        raise MissingValuesError(
            f"{table.words.column(name)} must not have missing values, but "
            f"{n:,} of {table.n_rows:,} rows {'has' if n == 1 else 'have'} one (first: {first}).",
            hint=missing_hint(table, hint),
        )


def missing_hint(table: Table, hint: str) -> str:
    """A hint on missing values, and how a text file writes them."""
    file = table.words.file.lower()
    return (CODES if ".csv" in file or ".tsv" in file else "") + hint


def numbers(table: Table, name: str, array: "pa.ChunkedArray", hint: str = MISSING) -> AnyArray:
    """A column of numbers or booleans without gaps as an array of its own numeric type.

    Raises `InputError` if the column is of another type, or a value is missing or infinite, for
    which `hint` is the remedy.
    """
    values = _present_numbers(table, name, array)
    if values.dtype.kind == "f":
        words = table.words
        bad, places = ~np.isfinite(values), words.places(name)
        error = MissingValuesError if np.isnan(values[bad]).any() else InputError
        words_of = words.column(name), "must be finite", places
        complain_rows(bad, array, *words_of, hint=hint, error=error)
    return values


def finite_numbers(table: Table, name: str, array: "pa.ChunkedArray") -> Rows:
    """As `numbers`, but as float64, which must hold every value exactly."""
    values = _present_numbers(table, name, array)
    return as_finite(values, table.words.column(name), Places(row_name=table.words.row))


def finite_times(table: Table, name: str, array: "pa.ChunkedArray") -> Rows:
    """As `finite_numbers`, but booleans are not times."""
    if kind_of(array.type) == "bool":
        raise InputError(
            f"{table.words.column(name)} must hold numbers, but its type is "
            f"{type_words(array.type)}.",
            hint=BOOLEAN_TIME,
        )
    return finite_numbers(table, name, array)


def _present_numbers(table: Table, name: str, array: "pa.ChunkedArray") -> AnyArray:
    kind = kind_of(array.type)
    if len(array) and array.null_count == len(array):
        check_present(table, name, array)
    if kind not in ("number", "bool", "missing"):
        raise _not_numeric(table, name, array, kind)
    check_present(table, name, array)
    if pa.types.is_decimal(array.type):
        return np.asarray(array.cast(pa.float64()).to_numpy())
    return np.asarray(array.to_numpy())


def _not_numeric(table: Table, name: str, array: "pa.ChunkedArray", kind: str) -> InputError:
    must = f"{table.words.column(name)} must be numeric"
    if kind == "text":
        odd = np.array([v is not None and not is_number(v) for v in array.to_pylist()], bool)
        if odd.any():
            at = int(np.argmax(odd))
            holds = "holds" if odd.sum() == 1 else "hold"
            return InputError(
                f"{must}, but {int(odd.sum()):,} of {table.n_rows:,} rows {holds} text (first: "
                f"{table.words.row(at)}, value {array[at].as_py()!r}).",
                hint=_text_hint(array[at].as_py()),
            )
    value = _shown_duration(array) if kind == "duration" else f", value {array[0].as_py()!s}"
    first = f" (first: {table.words.row(0)}{value})" if len(array) else ""
    other = f"convert it to numbers, or to text if these are categories, or {LEAVE_OUT}"
    return InputError(
        f"{must}, but its type is {type_words(array.type)}{first}.",
        hint={"date": DAYS, "duration": f"{IN_DAYS[:-1]}, or {LEAVE_OUT}"}.get(kind, other),
    )


def _shown_duration(array: "pa.ChunkedArray") -> str:
    """The first value of a column of durations for a message; "" for a missing one."""
    value = array[0]
    if not value.is_valid:
        return ""
    if pa.types.is_duration(array.type):
        value = value.cast(pa.duration("us"), safe=False)  # Python knows no nanoseconds
        return f", value {value.as_py()}"
    months, days, nanoseconds = value.as_py()
    rest = datetime.timedelta(days=days, microseconds=nanoseconds // 1000)
    return f", value {f'{months} months, ' if months else ''}{rest}"


def _text_hint(value: str) -> str:
    """What to do with a text where a number should be."""
    if has_decimal_comma(value):
        return "write decimals with a point instead of a comma."
    if DURATION.fullmatch(value.strip()):
        return IN_DAYS
    return "correct these values, or name another column."


def is_number(text: str) -> bool:
    """Whether a text is a number as programs write them; 007 is a code, and nan is missing."""
    return NUMBER.fullmatch(text.strip()) is not None


def has_decimal_comma(text: str) -> bool:
    """Whether a text is a number with a comma for its point; 1,000 may be a thousand."""
    whole, comma, decimals = text.strip().partition(",")
    return bool(comma) and len(decimals) != 3 and is_number(f"{whole}.{decimals}")


def labels(table: Table, name: str, array: "pa.ChunkedArray") -> AnyArray:
    """A column of group labels, as `riskset.data.labels` types them."""
    if kind_of(array.type) in ("date", "duration", "other"):
        raise InputError(
            f"{table.words.column(name)} must hold numbers or text, but its type is "
            f"{type_words(array.type)}.",
            hint=IN_DAYS if kind_of(array.type) == "duration" else "convert it to text.",
        )
    check_present(table, name, array, OWN_LABEL)
    return as_labels(_objects(array), name, table.n_rows, table.words.places(name))


def keys(table: Table, name: str, array: "pa.ChunkedArray") -> AnyArray:
    """A column of identifiers, exact: int64, or text as an object array.

    Raises `InputError` if identifiers are missing, are fractions, or are floating-point numbers too
    large to be exact.
    """
    if kind_of(array.type) in ("date", "duration", "other", "bool"):
        raise InputError(
            f"{table.words.column(name)} must hold whole numbers or text to identify rows, but its "
            f"type is {type_words(array.type)}.",
            hint="name another column, or convert it to text.",
        )
    check_present(table, name, array, OWN_KEY)
    row_keys = as_keys(_objects(array), name, table.n_rows, table.words.places(name))
    return row_keys.astype(object) if row_keys.dtype.kind == "U" else row_keys


def _objects(array: "pa.ChunkedArray") -> AnyArray:
    """A column without gaps in NumPy's own type, or as objects of Python."""
    array = plain_values(array)
    if kind_of(array.type) == "text":
        return np.array(array.to_pylist(), dtype=np.str_)
    if pa.types.is_decimal(array.type):
        return np.array([*array.to_pylist(), None], dtype=object)[:-1]
    return np.asarray(array.to_numpy())
