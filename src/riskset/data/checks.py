"""Checks of single columns of the input, and the messages when one fails.

Below `Outcome` and `Design` all numbers are finite float64 or int64 and all lengths agree; nothing
else in the package looks at raw input.
"""

import datetime
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from riskset._errors import InputError
from riskset._types import AnyArray, Rows

__all__ = [
    "BOOLEAN_TIME",
    "EXACT",
    "IN_DAYS",
    "MISSING",
    "MissingValuesError",
    "Places",
    "as_array",
    "as_finite",
    "as_numbers",
    "as_time_numbers",
    "complain_rows",
    "first_repeated",
    "is_duration",
    "is_missing",
    "are_counts",
    "is_number_type",
    "listed",
    "missing_rows",
    "refuse_inexact",
    "refuse_name",
    "shown",
]

T = TypeVar("T")

EXACT = 2**53
"""Above it float64 does not hold every whole number."""

NUMBERS = (Real, Decimal, np.integer, np.floating, np.bool_)
"""Types of objects that are numbers, but for the durations of NumPy, which are integers there."""

IN_DAYS = (
    "convert it to numbers of days, in pandas and polars with `column.dt.total_seconds() / 86400`."
)
"""What to do with a column of durations, whose unit only the user can choose."""

BOOLEAN_TIME = (
    "a time is a number, such as a number of days; check that time and event are not exchanged."
)

MISSING = "drop or impute these rows first; riskset never drops a row by itself."


class MissingValuesError(InputError):
    """A column has missing values."""


class EmptyColumnError(InputError):
    """A column has no value in any row."""


class Places:
    """How a message calls a column and a row: by argument and position, or by file, column, key."""

    def __init__(
        self,
        columns: Mapping[str, str] | None = None,
        row_name: Callable[[int], str] | None = None,
    ) -> None:
        self._columns = dict(columns or {})
        self._row_name = row_name or (lambda i: f"row {i}")

    def column(self, name: str) -> str:
        """The caller's word for an argument, `time` or "column 'futime' of lung.csv"."""
        return self._columns.get(name, f"`{name}`")

    def row(self, i: int) -> str:
        """The caller's word for row i."""
        return self._row_name(int(i))


def complain_rows(
    bad: NDArray[np.bool_],
    values: Any,
    column: str,
    must: str,
    places: Places,
    *,
    hint: str,
    error: type[InputError] = InputError,
) -> None:
    """Raise an `error` if any row is bad, naming how many there are and the first.

    `must` is a predicate, "must be finite" or "must not be negative"; the sentence ends by it.
    """
    where = np.flatnonzero(bad)
    if where.size == 0:
        return
    first = int(where[0])
    are = "is" if where.size == 1 else "are"
    if not must.startswith("must not "):
        are += " not"
    raise error(
        f"{column} {must}, but {where.size:,} of {bad.size:,} rows {are} "
        f"(first: {places.row(first)}, value {shown(values[first])}).",
        hint=hint,
    )


def listed(names: Iterable[object], most: int = 10) -> str:
    """The first names as a message shows them, and how many more there are."""
    words = list(map(repr, names))
    return ", ".join(words[:most]) + (f" and {len(words) - most:,} more" if words[most:] else "")


def first_repeated(names: Iterable[T]) -> T | None:
    """The first name that was there before, if any."""
    seen: set[T] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def shown(value: object) -> str:
    """A value as a message shows it: without the name of a NumPy or Arrow type."""
    if hasattr(value, "as_py"):
        return repr(value.as_py())
    if isinstance(value, np.ndarray):  # a row of a table
        return shown(value[0]) if value.size == 1 else repr(value.tolist())
    value = value.item() if isinstance(value, np.generic) else value
    return str(value) if isinstance(value, datetime.timedelta) else repr(value)


def refuse_name(values: object, column: str, n_rows: int | None) -> None:
    """Refuse the name of a column where the column itself is wanted."""
    if isinstance(values, str):
        rows = "rows" if n_rows is None else f"{n_rows:,} rows"
        raise InputError(
            f"{column} must be a column with a value for each of the {rows}, but it is the text "
            f"{values!r}.",
            hint=f"pass the column, such as data[{values!r}].",
        )


def is_number_type(kind: type) -> bool:
    """Whether objects of a type are numbers. Text is not, even if it consists of digits."""
    return issubclass(kind, NUMBERS) and not issubclass(kind, np.timedelta64)


def is_duration(value: object) -> bool:
    """Whether an object is a duration of Python, NumPy or pandas."""
    return isinstance(value, datetime.timedelta | np.timedelta64)


def is_missing(value: object) -> bool:
    """Whether an object stands for a missing value: None, NaN, NaT, or NA of pandas."""
    # NA is neither equal nor unequal to itself.
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def as_array(values: object, column: str, places: Places) -> AnyArray:
    """Values as an array; an error if a mask says that some are missing."""
    if isinstance(values, np.ma.MaskedArray):
        # One mask for each field, if the array has fields.
        mask = np.ascontiguousarray(np.ma.getmaskarray(values)).view(np.bool_)
        bad = mask.reshape(values.shape[0] if values.ndim else 1, -1).any(axis=1)
        if bad.any():
            raise InputError(
                f"{column} must not have missing values, but {int(bad.sum()):,} of {bad.size:,} "
                f"rows are masked (first: {places.row(int(np.argmax(bad)))}).",
                hint=MISSING,
            )
    array = np.asarray(values)
    if isinstance(values, (list, tuple)) and array.ndim == 1 and _was_changed(array, values):
        array = np.fromiter(values, dtype=object, count=len(values))
    if not array.dtype.isnative and array.dtype.names is None:
        array = array.astype(array.dtype.newbyteorder("="))
    return array


def _was_changed(array: AnyArray, values: Sequence[object]) -> bool:
    """Whether NumPy wrote numbers as text, or whole numbers as floats that do not hold them."""
    if array.dtype.kind in "US":
        return not all(isinstance(value, str | bytes) for value in values)
    return array.dtype.kind == "f" and any(
        isinstance(value, int) and abs(value) >= EXACT for value in values
    )


def are_counts(weight: Rows) -> NDArray[np.bool_]:
    """Which weights can be numbers of rows: whole, and small enough to be known exactly."""
    return np.asarray((weight == np.floor(weight)) & (weight < EXACT))


def missing_rows(array: AnyArray) -> NDArray[np.bool_]:
    """Which values stand for a missing one, by `is_missing`."""
    if array.dtype.kind in "fc":
        return np.isnan(array)
    if array.dtype.kind in "mM":
        return np.isnat(array)
    if array.dtype.kind in "OT":
        is_absent = np.fromiter(map(is_missing, array.flat), dtype=bool, count=array.size)
        return is_absent.reshape(array.shape)
    return np.zeros(array.shape, dtype=bool)


def as_numbers(
    values: object,
    name: str,
    n_rows: int | None,
    places: Places,
    *,
    missing_hint: str = MISSING,
) -> Rows:
    """A finite float64 column of the right length, or an error that says where it is not."""
    column = places.column(name)
    refuse_name(values, column, n_rows)
    array = as_array(values, column, places)
    if array.ndim == 2 and 1 in array.shape:
        array = array.reshape(-1)
    if array.ndim != 1:
        raise InputError(
            f"{column} must have one dimension, but its shape is {array.shape}.",
            hint="pass one number for each row.",
        )
    if n_rows is not None and array.size != n_rows:
        raise InputError(
            f"{column} must have one value for each of the {n_rows:,} rows, "
            f"but it has {array.size:,}.",
            hint="check that all arguments come from the same table.",
        )
    if array.dtype == object:
        array = _numbers_from_objects(array, column, places, missing_hint)
    if array.dtype.kind not in "buif":
        raise InputError(
            f"{column} must be numeric, but its type is {array.dtype} "
            f"(first: {places.row(0)}, value {shown(array[0]) if array.size else 'none'}).",
            hint=IN_DAYS
            if array.dtype.kind == "m"
            else "convert it to numbers; for dates, count the days since the start of follow-up.",
        )
    return as_finite(array, column, places, missing_hint)


def as_time_numbers(
    values: object,
    name: str,
    n_rows: int | None,
    places: Places,
    *,
    missing_hint: str = MISSING,
) -> Rows:
    """As `as_numbers`, but booleans are not times."""
    column = places.column(name)
    refuse_name(values, column, n_rows)
    given = values if isinstance(values, list | tuple) else as_array(values, column, places)
    if isinstance(given, np.ndarray) and given.dtype.kind not in "bO":
        return as_numbers(given, name, n_rows, places, missing_hint=missing_hint)
    of_rows = given.flat if isinstance(given, np.ndarray) else given
    for i, value in enumerate(of_rows):
        if isinstance(value, bool | np.bool_):
            raise InputError(
                f"{column} must hold numbers, but {places.row(i)} has {shown(value)}.",
                hint=BOOLEAN_TIME,
            )
    return as_numbers(values, name, n_rows, places, missing_hint=missing_hint)


def as_finite(array: AnyArray, column: str, places: Places, hint: str = MISSING) -> Rows:
    """A column of numbers as float64; an error if one is not finite or not exact in this type."""
    refuse_inexact(array, column, places)
    # Kernels are compiled once, for arrays that are contiguous and may be written to.
    numbers = np.require(array, np.float64, ["C", "W"])
    complain_rows(~np.isfinite(numbers), array, column, "must be finite", places, hint=hint)
    return numbers


def refuse_inexact(array: AnyArray, column: str, places: Places) -> None:
    """Refuse whole numbers that float64 does not hold, such as identifiers and nanoseconds."""
    if array.dtype.kind in "iu" and array.size:
        if max(int(array.max()), -int(array.min())) < EXACT:
            return
        complain_rows(
            (array >= EXACT) | (array <= -EXACT),
            array,
            column,
            "must stay below 2**53, beyond which floating point does not hold every whole number",
            places,
            hint="use a coarser unit, such as days instead of nanoseconds; identifiers are not "
            "numbers to calculate with.",
        )


def _numbers_from_objects(array: AnyArray, column: str, places: Places, hint: str) -> Rows:
    """Numbers of any type as float64. Text is not a number, even if it consists of digits."""
    missing = missing_rows(array)
    numbers = np.full(array.size, np.nan)
    for i in np.flatnonzero(~missing).tolist():
        value = array[i]
        if not is_number_type(type(value)):
            raise InputError(
                f"{column} must be numeric, but {places.row(i)} has {shown(value)}.",
                hint=IN_DAYS
                if is_duration(value)
                else "convert it to numbers, or encode it as categories.",
            )
        try:
            numbers[i] = float(value)
        except OverflowError:
            numbers[i] = np.inf
    complain_rows(missing, array, column, "must not be missing", places, hint=hint)
    return numbers
