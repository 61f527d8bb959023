"""Data frames of any library, in and out, and the encoding of their columns as covariates.

Frames come in through narwhals and travel on as Arrow columns, one at a time. Nothing is guessed: a
missing value, a date, a level that was not there at the fit, or a column that looks like an
identifier is an error that names the column and the row.
"""

import importlib.util
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa

from riskset._errors import InputError
from riskset._types import AnyArray, Factors
from riskset.data.checks import (
    EXACT,
    MissingValuesError,
    complain_rows,
    first_repeated,
    is_number_type,
)
from riskset.data.design import Design
from riskset.data.levels import find_levels, level_codes, with_references
from riskset.data.missing_values import (
    MISSING_LEVEL,
    MissingRule,
    filled,
    missing_rows_of,
    missing_values_error,
    usual_value,
)
from riskset.data.table import Table, has_order, kind_of, numbers, pandas_index, refuse_empty

__all__ = [
    "LIBRARIES",
    "FrameEncoder",
    "as_table",
    "data_frame",
    "eager_frame",
    "result_library",
]

LIBRARIES = ("pandas", "polars", "pyarrow")
"""Libraries of the data frames of results."""

CHUNK_CELLS = 1 << 25
"""Cells of a file that are held at a time: 256 MB as float64."""

IDENTIFIER = re.compile(r"(?i:id|row_?id|.+_id)|.*[a-z](Id|ID)")
"""Names of columns that hold identifiers, or codes rather than amounts."""

MIN_ROWS_CONSECUTIVE = 10
"""In fewer rows, distinct consecutive numbers do not indicate an identifier."""

MIN_ROWS_DISTINCT = 100
"""In this many rows, distinct whole numbers indicate an identifier."""


def as_table(frame: object) -> Table:
    """A pandas, polars or Arrow frame, a DuckDB relation, or anything narwhals reads.

    Raises `InputError` if it is not a data frame, or its column names are not text or not unique.
    """
    if isinstance(frame, Table):
        return frame
    native = eager_frame(frame)
    if isinstance(native, pa.Table):
        _check_names(native.column_names)
        texts = {f.name for f in native.schema if kind_of(f.type) in ("text", "category")}
        return Table(
            tuple(native.column_names),
            native.num_rows,
            native.select,
            frozenset(texts),
            index=pandas_index(native.column_names, native.schema.metadata),
            unordered=frozenset(f.name for f in native.schema if not has_order(f)),
        )
    _check_names(native.columns)
    wrapped = native

    def fetch(wanted: Sequence[str]) -> "pa.Table":
        return pa.table({name: _arrow_column(wrapped, name) for name in wanted})

    maybe = (nw.String, nw.Categorical, nw.Enum, nw.Object, nw.Unknown)
    texts = {name for name, dtype in native.schema.items() if isinstance(dtype, maybe)}
    names = tuple(native.columns)
    index = pandas_index(names, None)
    is_polars = native.implementation.is_polars()
    kinds = native.schema.items()
    unordered = frozenset(name for name, kind in kinds if is_polars and kind == nw.Categorical)
    return Table(names, len(native), fetch, frozenset(texts), index=index, unordered=unordered)


def eager_frame(frame: object) -> "nw.DataFrame[Any] | pa.Table":
    """A data frame whose rows are all there: as an Arrow table, or as narwhals wraps others."""
    if isinstance(frame, pa.Table):
        return frame
    if isinstance(frame, (pa.RecordBatch, pa.RecordBatchReader)):
        return pa.table(frame) if isinstance(frame, pa.RecordBatch) else frame.read_all()
    try:
        wrapped = nw.from_native(frame)  # type: ignore[call-overload]
    except TypeError:
        raise InputError(
            f"expected a data frame, but got {type(frame).__module__}.{type(frame).__qualname__}.",
            hint="pass a pandas, polars or Arrow frame or a DuckDB relation; for a file on disk, "
            "call riskset.read_dataset.",
        ) from None
    except nw.exceptions.DuplicateError as error:
        raise InputError(
            f"the data frame has two columns of the same name: {error}.", hint="rename one of them."
        ) from None
    if isinstance(wrapped, nw.LazyFrame):
        # Once, and whole: asked twice, a lazy query may give its rows in another order.
        collected: pa.Table = wrapped.collect(backend="pyarrow").to_native()
        return collected
    eager: nw.DataFrame[Any] = wrapped
    return eager


def _check_names(names: Sequence[object]) -> None:
    for name in names:
        if not isinstance(name, str):
            raise InputError(
                f"the data frame has a column whose name is not text: {name!r}.",
                hint="rename it, for example df.columns = df.columns.astype(str).",
            )
    again = first_repeated(names)
    if again is not None:
        raise InputError(
            f"the data frame has two columns called {again!r}.", hint="rename one of them."
        )


def _arrow_column(frame: "nw.DataFrame[Any]", name: str) -> "pa.Array":
    column = frame.get_column(name)
    try:
        native = column.to_native()
        if str(getattr(native, "dtype", "")).startswith("Sparse["):  # of pandas
            return pa.array(native.sparse.to_dense(), from_pandas=True)
        type_ = getattr(native, "dtype", None)
        if isinstance(type_, np.dtype) and not type_.isnative:  # as files of other programs have it
            values = column.to_numpy().astype(type_.newbyteorder("="))
            return pa.array(values, from_pandas=True)
        array = column.to_arrow()
        is_object = isinstance(type_, np.dtype) and type_.kind == "O"
        if is_object and pa.types.is_timestamp(array.type) and array.type.tz is not None:
            # Values may have different zones, but a column of Arrow has only one.
            clocks = [None if v is None else v.replace(tzinfo=None) for v in column.to_list()]
            return pa.array(clocks, from_pandas=True)
        return array
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        objects = column.to_list()
        if all(_kind_of_object(value) == "numbers" for value in objects):
            return _numbers(objects)
        raise _mixed(name, objects, str(error)) from None


def _numbers(values: Sequence[Any]) -> "pa.Array":
    """Numbers of several types, exact if they are whole; None is missing."""
    if all(value is None or value % 1 == 0 for value in values):
        return pa.array([None if value is None else Decimal(int(value)) for value in values])
    return pa.array([None if value is None else float(value) for value in values])


def _mixed(name: str, values: Sequence[object], reason: str) -> InputError:
    """The error for a column of objects that are of several kinds, or of none that is known."""
    kinds = [_kind_of_object(value) for value in values]
    usual, at_most = Counter(kinds).most_common(1)[0]
    if at_most == len(kinds):
        return InputError(
            f"column {name!r} holds objects that are neither numbers nor text "
            f"({reason.splitlines()[0]}).",
            hint="convert it to numbers or to text, or leave it out with `drop`.",
        )
    first = next(i for i, kind in enumerate(kinds) if kind != usual)
    return InputError(
        f"column {name!r} mixes types: {at_most:,} of {len(kinds):,} rows hold {usual}, but "
        f"others do not (first: row {first}, value {values[first]!r}).",
        hint="convert it to numbers or to text, or leave it out with `drop`.",
    )


def _kind_of_object(value: object) -> str:
    """The kind of an object, as messages call it."""
    if isinstance(value, bool | np.bool_):
        return "booleans"
    if value is None or is_number_type(type(value)):
        return "numbers"
    return "text" if isinstance(value, str) else f"objects of type {type(value).__name__}"


def result_library(library: str | None) -> str | None:
    """The library of the data frames of results, for data of some library; None: the default."""
    return library if library in LIBRARIES else None


def data_frame(columns: Mapping[str, AnyArray], library: str | None) -> Any:
    """A data frame of named columns of equal length, of which the first labels the rows.

    `library` is one of `LIBRARIES`: in pandas, the first column is the index. None: pandas if it is
    installed, else Arrow, which always is.
    """
    if library is not None and library not in LIBRARIES:
        raise InputError.wrong_option("library", library, LIBRARIES)
    lists = {name: column.tolist() for name, column in columns.items()}
    if library == "polars":
        return nw.from_dict(lists, backend="polars").to_native()
    if library == "pyarrow" or not importlib.util.find_spec("pandas"):
        return nw.from_dict(lists, backend="pyarrow").to_native()
    return nw.from_dict(lists, backend="pandas").to_native().set_index(next(iter(columns)))


def arrow_table(columns: Mapping[str, AnyArray]) -> Any:
    """Arrays of numbers as an Arrow table, which shares their memory."""
    return pa.table({name: pa.array(column) for name, column in columns.items()})


class _Ahead:
    """Columns of a table by name, read some at a time if they come from a file."""

    def __init__(self, table: Table, names: Sequence[str]) -> None:
        self._table, self._names = table, list(names)
        self._place = {name: k for k, name in enumerate(names)}
        self._step = max(1, CHUNK_CELLS // max(1, table.n_rows)) if table.words.file else 1
        self._chunk: pa.Table = None
        self._held: frozenset[str] = frozenset()

    def __getitem__(self, name: str) -> "pa.ChunkedArray":
        if name not in self._held:
            start = self._place[name]
            wanted = self._names[start : start + self._step]
            self._chunk, self._held = None, frozenset(wanted)
            self._chunk = self._table.fetch(wanted)
        return self._chunk.column(name)


@dataclass(frozen=True)
class FrameEncoder:
    """Which columns of a table are covariates, and the levels of those that are categories.

    A column of numbers or booleans is one covariate of the same name. A column of text or
    categories gives one covariate ``column=level`` for every level, and the design knows that they
    belong together (`Design.factors`): models leave the first one out where they have to, which
    makes it the reference. Only levels that occur count. They have the order that a categorical
    type declares: pandas categories, an Enum of polars or DuckDB, an Arrow dictionary, a factor of
    R. Text and Categoricals of polars have no order, so their levels are sorted. A level that the
    caller chooses (`reference`) comes before all others. New data are encoded by the levels seen at
    the fit: the order of the columns does not matter, and columns that were not there at the fit
    are ignored.

    Missing values are errors, unless they get an indicator (see `missing_values`); `fills` has what
    then stands for them in columns of numbers.

    `identifiers`, known after `fit` only, are columns of whole numbers that look like identifiers,
    by their name or because each number occurs once (in 100 rows or more, or in 10 if consecutive).

    Examples
    --------
    >>> import pyarrow as pa
    >>> frame = pa.table({"age": [61, 70, 55], "sex": ["m", "f", "m"]})
    >>> encoder, design = FrameEncoder.fit(frame)
    >>> encoder.feature_names
    ('age', 'sex=f', 'sex=m')
    >>> design.factors
    (('sex=f', 'sex=m'),)
    >>> encoder.transform(pa.table({"sex": ["f"], "age": [48]})).to_dense()
    array([[48.,  1.,  0.]])
    >>> FrameEncoder.fit(frame, reference={"sex": "m"})[0].feature_names
    ('age', 'sex=m', 'sex=f')
    """

    columns: tuple[str, ...]
    levels: Mapping[str, tuple[str, ...]]
    fills: Mapping[str, float] = field(default_factory=dict)
    identifiers: tuple[str, ...] = field(default=(), compare=False)

    @classmethod
    def fit(
        cls,
        frame: object,
        columns: Sequence[str] | None = None,
        reference: Mapping[str, object] | None = None,
        missing: MissingRule = "error",
    ) -> tuple["FrameEncoder", Design]:
        """Learn the encoding of a frame, or of some of its columns, and apply it.

        `reference` gives the reference levels of columns of text or categories, and `missing` says
        what to do with missing values.

        Raises `InputError` if a value is missing or infinite, a column holds dates, lists or mixed
        types, a column of text looks like an identifier or like numbers, or there is no such
        reference.
        """
        table = as_table(frame)
        refuse_empty(table.n_rows, table.words.place)
        names = table.data_columns if columns is None else tuple(columns)
        for name in names:
            table.need(name)
        try:
            encoder = cls._learnt(table, names, reference or {}, missing)
            covariates = _Covariates(encoder, table)
            design = encoder._design(covariates, table)
        except MissingValuesError as error:
            raise missing_values_error(table, names, error) from None
        return replace(encoder, identifiers=tuple(covariates.identifiers)), design

    @classmethod
    def _learnt(
        cls,
        table: Table,
        names: tuple[str, ...],
        reference: Mapping[str, object],
        missing: MissingRule,
    ) -> "FrameEncoder":
        maybe = [name for name in names if name in table.texts]
        ahead = _Ahead(table, maybe)
        levels_of = {name: find_levels(table, name, ahead[name], missing) for name in maybe}
        levels = {name: found for name, found in levels_of.items() if found}
        fills = {}
        if missing == "indicator":
            rest = [name for name in names if name not in levels]
            ahead = _Ahead(table, rest)
            for name in rest:
                array = ahead[name]
                if missing_rows_of(array).any():
                    fills[name] = usual_value(table, name, array)
        encoder = cls(names, with_references(table, names, levels, reference), fills)
        encoder._check_feature_names(table)
        return encoder

    def transform(self, frame: object) -> Design:
        """Encode new data as at the fit.

        Raises `InputError` if a column is absent or of another kind than at the fit, a value is
        missing, or a level was not there at the fit.
        """
        table = as_table(frame)
        absent = [name for name in self.columns if name not in table.columns]
        if len(absent) == 1:
            table.need(absent[0])
        if absent:
            more = f" and {len(absent) - 5} more" if len(absent) > 5 else ""
            others = ", ..." if len(table.columns) > 8 else ""
            raise InputError(
                f"{table.words.place} lacks {len(absent)} of the {len(self.columns)} columns of "
                f"the fit: {', '.join(map(repr, absent[:5]))}{more}.",
                hint=f"it has {', '.join(map(repr, table.columns[:8]))}{others}.",
            )
        return self._design(_Covariates(self, table), table)

    def values(self, frame: object) -> Iterator[tuple[str, AnyArray]]:
        """Name and values of each column: numbers, or positions of levels."""
        table = as_table(frame)
        covariates = _Covariates(self, table)
        for name in self.columns:
            table.need(name)
            covariates.read(name)
            yield name, covariates.values_read

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the covariates."""
        return tuple(name for column in self.columns for name in self._features(column))

    @property
    def factors(self) -> Factors:
        """Of each column of categories the names of its covariates, one for every level."""
        return tuple(tuple(self._features(name)) for name in self.columns if name in self.levels)

    @property
    def single_level(self) -> tuple[str, ...]:
        """Columns of categories that have one level only."""
        return tuple(name for name, levels in self.levels.items() if len(levels) == 1)

    def to_dict(self) -> dict[str, object]:
        """The encoder as JSON can hold it."""
        return {
            "columns": list(self.columns),
            "levels": {k: list(v) for k, v in self.levels.items()},
            "fills": dict(self.fills),
        }

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> "FrameEncoder":
        """The inverse of `to_dict`."""
        levels = {name: tuple(known) for name, known in state["levels"].items()}
        return cls(tuple(state["columns"]), levels, dict(state.get("fills", {})))

    def _features(self, column: str) -> list[str]:
        levels = self.levels.get(column)
        if levels is not None:
            return [f"{column}={level}" for level in levels]
        return [column, f"{column}={MISSING_LEVEL}"] if column in self.fills else [column]

    def _design(self, covariates: Mapping[str, AnyArray], table: Table) -> Design:
        return Design.from_columns(covariates, n_rows=table.n_rows, factors=self.factors)

    def _check_feature_names(self, table: Table) -> None:
        seen: dict[str, str] = {}
        for column in self.columns:
            for name in self._features(column):
                if name in seen:
                    raise InputError(
                        f"two covariates of {table.words.place} are called {name!r}: one comes "
                        f"from column {seen[name]!r}, the other from column {column!r}.",
                        hint="rename one of these columns, or leave it out with `drop`.",
                    )
                seen[name] = column


class _Covariates(Mapping[str, AnyArray]):
    """The covariates by name, each made when it is asked for; quick if asked for in order.

    So a wide table needs the memory of its `Design` and a few columns, and a column of a
    thousand categories never becomes a thousand arrays.
    """

    def __init__(self, encoder: FrameEncoder, table: Table) -> None:
        self._encoder, self._table = encoder, table
        self._ahead = _Ahead(table, encoder.columns)
        self._source: dict[str, tuple[str, int]] = {
            name: (column, level)
            for column in encoder.columns
            for level, name in enumerate(encoder._features(column))
        }
        self._column: str | None = None
        self.values_read: AnyArray = np.zeros(0)
        self._missing: AnyArray = np.zeros(0, dtype=bool)
        self.identifiers: dict[str, None] = {}

    def __len__(self) -> int:
        return len(self._source)

    def __iter__(self) -> Iterator[str]:
        return iter(self._source)

    def __getitem__(self, feature: str) -> AnyArray:
        column, level = self._source[feature]
        known = self._encoder.levels.get(column)
        if column != self._column:
            self.read(column)
        if known is not None:
            return np.asarray(self.values_read == level)
        return self._missing if level else self.values_read

    def read(self, column: str) -> None:
        """Read a column: its numbers, or positions of levels, are then `values_read`."""
        self._column, levels = column, self._encoder.levels.get(column)
        array = self._ahead[column]
        if levels is not None:
            self.values_read = level_codes(self._table, column, array, levels)
            return
        if column in self._encoder.fills:
            self._missing = missing_rows_of(array)
            array = filled(array, self._encoder.fills[column])
        self.values_read = _covariate(self._table, column, array)
        if _is_identifier(column, self.values_read):
            self.identifiers[column] = None


def _covariate(table: Table, name: str, array: "pa.ChunkedArray") -> AnyArray:
    values = numbers(table, name, array)
    whole = values.dtype.kind in "iu" or pa.types.is_decimal(array.type)
    if whole and values.size and max(abs(int(values.max())), abs(int(values.min()))) >= EXACT:
        complain_rows(
            (values >= EXACT) | (values <= -EXACT),
            array,
            table.words.column(name),
            "must stay below 2**53",
            table.words.places(name),
            hint="such numbers look like identifiers: name the column with `id` or `cluster`, or "
            "leave it out with `drop`; if it is a measurement, convert it to float64.",
        )
    return values


def _is_identifier(name: str, values: AnyArray) -> bool:
    """Whether whole numbers identify rows, by their name or because each is there once."""
    if values.dtype.kind not in "iu" or not values.size:
        return False
    if IDENTIFIER.fullmatch(name):
        return True
    spread = int(values.max()) - int(values.min()) + 1
    is_enough = values.size >= (
        MIN_ROWS_CONSECUTIVE if spread == values.size else MIN_ROWS_DISTINCT
    )
    # A few rows suffice for most columns, without sorting all.
    return (
        is_enough
        and spread >= values.size
        and all(np.unique(part).size == part.size for part in (values[:MIN_ROWS_DISTINCT], values))
    )
