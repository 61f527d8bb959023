"""Queries of the embedded database about one long table of covariates.

The database groups and joins in bounded memory; the entries stream into compressed sparse columns,
so that nothing larger than the result is ever held. Keys are 64-bit integers or text and stay
exact: they never pass through floating point.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from riskset._errors import InputError
from riskset._types import AnyArray, Index, Rows
from riskset.data.checks import IN_DAYS
from riskset.data.column_storage import SHIFT
from riskset.data.database import StoredTable, batches, quoted
from riskset.kernels.long_table_cpu import append_entries

__all__ = ["Entries", "LongTableColumns", "LongColumns", "LongQuery"]

# A column without any value has the type "NULL".
WHOLE = ('"NULL"', "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
LARGE = ("UBIGINT", "HUGEINT", "UHUGEINT")


@dataclass(frozen=True)
class LongColumns:
    """Names of the columns of a long table; without `value` every entry is 1."""

    row: str
    covariate: str
    value: str | None


@dataclass(frozen=True)
class _Key:
    """A key column as SQL."""

    sql: str
    is_text: bool

    def as_text(self) -> "_Key":
        return self if self.is_text else _Key(f"CAST({self.sql} AS VARCHAR)", True)


@dataclass(frozen=True)
class LongTableColumns:
    """The columns of the design: first the `n_ones` whose every entry is 1, then the others.

    `keys` are sorted, as the columns of the design are. In the order here, `place` (p,) is where a
    column stands in the design, and `count` (p,) is its number of entries.
    """

    keys: tuple[int | str, ...]
    place: Index
    count: Index
    n_ones: int


@dataclass(frozen=True)
class Entries:
    """Sparse columns in the order of `LongTableColumns`; values from ``indptr[n_ones]`` on."""

    indptr: Index
    indices: AnyArray
    values: Rows
    place: Index
    n_ones: int

    @property
    def first_value(self) -> int:
        """Entries from here on have a value."""
        return int(self.indptr[self.n_ones])

    def column(self, j: int) -> tuple[AnyArray, Rows | None]:
        """Rows of a column, and its values if it has any, as views."""
        start, stop = int(self.indptr[j]), int(self.indptr[j + 1])
        shift = self.first_value
        return self.indices[start:stop], (
            None if j < self.n_ones else self.values[start - shift : stop - shift]
        )


class LongQuery:
    """Queries about one long table; `drop_unknown` leaves out entries of rows not in the design."""

    def __init__(
        self, stored: StoredTable, columns: LongColumns, row_keys: AnyArray, *, drop_unknown: bool
    ) -> None:
        self.database, self.place, self.columns = stored.database, stored.place, columns
        self.row_keys = row_keys
        self.n_dropped: dict[str, int] = {}
        self._row = _key(stored, columns.row)
        self._covariate = _key(stored, columns.covariate)
        self._value = None if columns.value is None else self._numeric(stored, columns.value)
        self._row, self._rows = self._key_table(row_keys, self._row)
        self._source = f"{stored.view} AS l"
        if drop_unknown:
            (before,) = self.database.row(f"SELECT count(*) FROM {self._source}")
            self._source = (
                f"(SELECT l.* FROM {self._source} SEMI JOIN {self._rows} r "
                f"ON r.key = {self._row.sql}) AS l"
            )
            (after,) = self.database.row(f"SELECT count(*) FROM {self._source}")
            self.n_dropped["unknown_rows"] = before - after

    def _key_table(self, keys: AnyArray | Sequence[int | str], key: _Key) -> tuple[_Key, str]:
        """Keys and their positions as a table; integers meet text as text."""
        if len(keys) and isinstance(keys[0], str) != key.is_text:
            key = key.as_text()
            keys = [str(k) for k in keys]
        at = pa.array(np.arange(len(keys), dtype=np.int32))
        values = pa.array(keys, pa.large_string() if key.is_text else pa.int64())
        staged = self.database.add(pa.table({"key": values, "at": at}))
        name = self.database.new_name()
        self.database.execute(f"CREATE TEMP TABLE {name} AS SELECT * FROM {staged.view}")
        self.database.forget(staged)
        return key, name

    def _numeric(self, stored: StoredTable, column: str) -> str:
        """The value column as a double."""
        type_, name = stored.types[column], f"l.{quoted(column)}"
        if type_ in (*WHOLE, *LARGE, "FLOAT", "DOUBLE", "BOOLEAN") or type_.startswith("DECIMAL"):
            return f"CAST({name} AS DOUBLE)"
        must = f"column {column!r} of {self.place} must be numeric"
        if type_ != "VARCHAR":
            raise InputError(
                f"{must}, but its type is {'duration' if type_ == 'INTERVAL' else type_}.",
                hint=IN_DAYS
                if type_ == "INTERVAL"
                else "convert it to numbers, or name another column with `covariate_columns`.",
            )
        # In a CSV file with only a header every column is text.
        rows = self.database.sql(
            f"SELECT {self._row.sql}, {self._covariate.sql}, {name} FROM {stored.view} AS l "
            f"ORDER BY TRY_CAST({name} AS DOUBLE) IS NOT NULL LIMIT 1"
        ).fetchall()
        for row, covariate, value in rows:
            raise InputError(
                f"{must}, but it holds text (for example {self._entry_words(row, covariate)}, "
                f"value {value!r}).",
                hint="correct or convert it, or name another column with `covariate_columns`.",
            )
        return f"CAST({name} AS DOUBLE)"

    def count(self, wanted: Sequence[int | str] | None) -> LongTableColumns:
        """Group by covariate; check the covariate keys and the values."""
        value = self._value or "1.0"
        table = self.database.sql(
            f"SELECT {self._covariate.sql} AS key, count(*) AS n, count({value}) AS present, "
            f"min({value}) AS low, max({value}) AS high FROM {self._source} GROUP BY 1 ORDER BY 1"
        ).to_arrow_table()
        n, low, high = (table.column(name).to_numpy() for name in ("n", "low", "high"))
        keys = table.column("key").to_pylist()
        if wanted is None and not keys:
            raise self._empty_complaint()
        if None in keys:
            raise self._missing_complaint(self.columns.covariate)
        # The database sorts NaN above infinity, so the extremes show every bad value.
        if self._value and (
            (table.column("present").to_numpy() < n).any()
            or not np.isfinite(low).all()
            or not np.isfinite(high).all()
        ):
            raise self._value_complaint()
        ones = (low == 1) & (high == 1)
        if wanted is not None:
            keys, n, ones = self._only(wanted, keys, n, ones)
        place = np.concatenate([np.flatnonzero(ones), np.flatnonzero(~ones)])
        return LongTableColumns(tuple(keys), place, n[place].astype(np.int64), int(ones.sum()))

    def _only(
        self, wanted: Sequence[int | str], keys: list[int | str], n: AnyArray, ones: AnyArray
    ) -> tuple[list[int | str], AnyArray, AnyArray]:
        """The columns wanted, in their order; the others are counted as left out."""
        as_text = bool(wanted) and isinstance(wanted[0], str) != self._covariate.is_text
        at = {str(key) if as_text else key: k for k, key in enumerate(keys)}
        source = np.array([at.get(str(key) if as_text else key, -1) for key in wanted], np.int64)
        if keys and (source < 0).all():
            raise InputError(
                f"none of the {len(keys):,} covariates of {self.place} (such as "
                f"{self.columns.covariate} {keys[0]!r}) is one of the {len(wanted):,} of the fit "
                f"(such as {wanted[0]!r}).",
                hint="write the covariate keys as at the fit, or check which column they are in; "
                "rows without any entry are legal, and so is a table without entries.",
            )
        n = np.append(n, 0)
        left_out = int(n.sum() - n[source].sum())
        self.n_dropped["unseen_covariates"] = len(keys) - int((source >= 0).sum())
        self.n_dropped["entries_of_unseen_covariates"] = left_out
        return list(wanted), n[source], np.append(ones, True)[source]

    def entries(self, order: LongTableColumns) -> Entries:
        """Stream the entries into their columns."""
        covariate, columns = self._key_table([order.keys[j] for j in order.place], self._covariate)
        indptr = np.append(0, np.cumsum(order.count)).astype(np.int64)
        first_value = int(indptr[order.n_ones])
        indices = np.empty(int(indptr[-1]), np.int32)
        values = np.empty(indices.size - first_value)
        next_slot = indptr[:-1].copy()
        value = f", {self._value} AS value" if values.size else ""
        relation = self.database.sql(
            f"SELECT coalesce(r.at, -1) AS row, c.at AS covariate{value} FROM {self._source} "
            f"JOIN {columns} c ON c.key = {covariate.sql} "
            f"LEFT JOIN {self._rows} r ON r.key = {self._row.sql}"
        )
        no_values = np.zeros(0)
        is_unknown = False
        with batches(relation) as stream:
            for batch in stream:
                row, column = batch.column(0).to_numpy(), batch.column(1).to_numpy()
                is_unknown = bool(row.size) and int(row.min()) < 0
                if is_unknown:
                    break
                value_of = batch.column(2).to_numpy() if values.size else no_values
                append_entries(row, column, value_of, next_slot, first_value, indices, values)
        if is_unknown:
            raise self._unknown_row_complaint()
        return Entries(indptr, indices, values, order.place, order.n_ones)

    def sorted_entries(self, order: LongTableColumns) -> Iterator[tuple[AnyArray, AnyArray, Rows]]:
        """Row, column of `order` and value of all entries, by block of rows, column, row, value.

        The database sorts them by one number, and spills what is too large for its memory. Without
        a column of values the values are empty.
        """
        covariate, columns = self._key_table([order.keys[j] for j in order.place], self._covariate)
        p, inside = order.count.size, (1 << SHIFT) - 1
        has_values = self._value is not None and order.n_ones < p
        value = f", {self._value} AS value" if has_values else ""
        at = "CAST(r.at AS BIGINT)"
        relation = self.database.sql(
            f"SELECT coalesce((((({at} >> {SHIFT}) * {p} + c.at) << {SHIFT}) + ({at} & {inside})),"
            f" -1) AS place{value} FROM {self._source} "
            f"JOIN {columns} c ON c.key = {covariate.sql} "
            f"LEFT JOIN {self._rows} r ON r.key = {self._row.sql} ORDER BY ALL"
        )
        is_unknown = False
        with batches(relation) as stream:
            for batch in stream:
                place = batch.column(0).to_numpy()
                is_unknown = bool(place.size) and int(place[0]) < 0
                if is_unknown:
                    break
                block, column = np.divmod(place >> SHIFT, p)
                row = (block << SHIFT) + (place & inside)
                yield row, column, batch.column(1).to_numpy() if has_values else np.zeros(0)
        if is_unknown:
            raise self._unknown_row_complaint()

    # ---------------------------------------------------------------- complaints

    def _empty_complaint(self) -> InputError:
        left_out = self.n_dropped.get("unknown_rows", 0)
        if left_out:
            return InputError(
                f"none of the {left_out:,} entries of {self.place} belongs to a row of the "
                f"outcomes (column {self.columns.row!r}).",
                hint="check that both tables identify the rows in the same way.",
            )
        return InputError(
            f"{self.place} has no entries.", hint="leave `covariates` out if that is meant."
        )

    def _missing_complaint(self, column: str) -> InputError:
        total, present = self.database.row(
            f"SELECT count(*), count(l.{quoted(column)}) FROM {self._source}"
        )
        other = next(c for c in (self.columns.row, self.columns.covariate) if c != column)
        (key,) = self.database.row(
            f"SELECT l.{quoted(other)} FROM {self._source} WHERE l.{quoted(column)} IS NULL LIMIT 1"
        )
        n = total - present
        return InputError(
            f"column {column!r} of {self.place} must not have missing values, but "
            f"{n:,} of {total:,} entries {'has' if n == 1 else 'have'} one "
            f"(first: {other} {key}).",
            hint="every entry needs a row key and a covariate key; remove or complete these "
            "entries.",
        )

    def _value_complaint(self) -> InputError:
        bad = f"{self._value} IS NULL OR NOT isfinite({self._value})"
        total, count = self.database.row(
            f"SELECT count(*), count(*) FILTER ({bad}) FROM {self._source}"
        )
        # Sorted, not filtered: a filter trusts the extremes in a Parquet file, which leave out NaN.
        row, covariate, value = self.database.row(
            f"SELECT {self._row.sql}, {self._covariate.sql}, {self._value} FROM {self._source} "
            f"ORDER BY isfinite({self._value}) NULLS FIRST LIMIT 1"
        )
        return InputError(
            f"column {self.columns.value!r} of {self.place} must be finite, but in {count:,} of "
            f"{total:,} entries it is not (first: {self._entry_words(row, covariate)}, value "
            f"{value!r}).",
            hint="remove these entries or complete them; an absent entry counts as 0.",
        )

    def _unknown_row_complaint(self) -> InputError:
        key = self._row.sql
        (total,) = self.database.row(f"SELECT count(*) FROM {self._source}")
        count, rows, first, missing = self.database.row(
            f"SELECT count(*), count(DISTINCT {key}), min({key}), count(*) - count({key}) "
            f"FROM {self._source} ANTI JOIN {self._rows} r ON r.key = {key}"
        )
        if missing:
            return self._missing_complaint(self.columns.row)
        return InputError(
            f"in {self.place}, {count:,} of {total:,} entries have a row key that the outcomes do "
            f"not have (number of such keys: {rows:,}; first: {self.columns.row} {first!r}).",
            hint="pass `unknown_rows='drop'` to leave such entries out; their number is reported.",
        )

    def repeated_complaint(
        self, order: LongTableColumns, repeated: int, total: int, place: int, row: int
    ) -> InputError:
        """The error that names the first row and covariate given twice: `row` and `place`."""
        key = self.row_keys[row]
        words = self._entry_words(
            key.item() if isinstance(key, np.generic) else key, order.keys[place]
        )
        return InputError(
            f"in {self.place}, {repeated:,} of {total:,} entries have a row "
            f"and covariate that were given before (first: {words}).",
            hint="remove the repeated records, or pass `duplicates='sum'` to add them up or "
            "`duplicates='max'` to keep the largest value.",
        )

    def _entry_words(self, row: object, covariate: object) -> str:
        return f"{self.columns.row} {row!r}, {self.columns.covariate} {covariate!r}"


def _key(stored: StoredTable, column: str) -> _Key:
    """A key column as 64-bit integers or text, checked to be exact."""
    type_, name = stored.types[column], f"l.{quoted(column)}"
    words = f"column {column!r} of {stored.place}"
    if type_.startswith(("VARCHAR", "ENUM", "UUID")):
        return _Key(f"CAST({name} AS VARCHAR)", True)
    if type_ in WHOLE:
        return _Key(f"CAST({name} AS BIGINT)", False)
    if type_ in LARGE or type_.startswith("DECIMAL"):
        bad = f"TRY_CAST({name} AS BIGINT) IS NULL OR TRY_CAST({name} AS BIGINT) <> {name}"
        must = "must hold whole numbers of at most 64 bits"
    elif type_ in ("FLOAT", "DOUBLE"):
        # Above this limit floating point does not hold every whole number, so the key that was
        # meant is lost.
        limit = 2**24 if type_ == "FLOAT" else 2**53
        bad = f"NOT isfinite({name}) OR {name} <> trunc({name}) OR abs({name}) >= {limit}"
        must = f"must hold whole numbers below {limit:,}, because it is stored as floating point"
    else:
        raise InputError(
            f"{words} must hold whole numbers or text to be a key, but its type is {type_}.",
            hint="name another column with `covariate_columns`, or convert it to text.",
        )
    bad = f"{name} IS NOT NULL AND ({bad})"
    total, count, first = stored.database.row(
        f"SELECT count(*), count(*) FILTER ({bad}), first({name}) FILTER ({bad}) "
        f"FROM {stored.view} AS l"
    )
    if count:
        raise InputError(
            f"{words} {must}, but in {count:,} of {total:,} entries it does not (such as "
            f"{first!r}).",
            hint="write the keys as 64-bit integers or as text.",
        )
    return _Key(f"CAST({name} AS BIGINT)", False)
