"""From columns as they come to the stored parts of a `Design`, one column at a time."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from riskset._errors import InputError, counted
from riskset._runtime import Runtime
from riskset._types import AnyArray, Features, Index, Matrix, Rows
from riskset.data.checks import (
    IN_DAYS,
    MISSING,
    Places,
    first_repeated,
    is_duration,
    is_number_type,
    missing_rows,
    refuse_inexact,
    shown,
)
from riskset.data.column_storage import (
    SHIFT,
    BinaryColumns,
    DenseColumns,
    SparseColumns,
    StoredColumns,
    ValuedColumns,
)
from riskset.data.start_stop.episodes import ranges
from riskset.kernels import columns_cpu

__all__ = [
    "ColumnBuilder",
    "DENSE_ABOVE",
    "as_float",
    "assemble_csc",
    "canonical_csc",
    "column_keys",
    "column_names",
    "dense_blocks",
    "dense_part",
    "power_of_two",
    "take_columns",
    "take_rows",
]

MEDIAN_ROWS = 4096
"""Rows of which the median is taken, at least, of longer columns."""
MEDIAN_COLUMNS = 256
"""Columns whose medians are taken at once: a call takes longer than the median of few rows."""

MAX_SAFE_SQUARES = 1e200
"""A sum of squares up to this, and its reciprocal, has neither overflowed nor lost digits."""

DENSE_ABOVE = 0.5
"""A column with values other than 0 and 1 is stored dense above this share of non-zeros."""


def power_of_two(size: Features | float) -> Features:
    """The power of two closest to each size, 1 where the size is 0; dividing by it is exact."""
    safe = np.where((size > 0) & np.isfinite(size), size, 1.0)
    return np.asarray(np.exp2(np.clip(np.rint(np.log2(safe)), -1000, 1000)))


def assemble_csc(
    indptr: Index,
    indices: AnyArray,
    values: AnyArray | None,
    n_rows: int,
    names: tuple[str, ...],
    places: Places,
    runtime: Runtime,
) -> tuple[Features, Features, tuple[StoredColumns, ...]]:
    """Center, scale and parts of compressed sparse columns; see `Design.from_csc`."""
    p = indptr.size - 1
    indptr = np.ascontiguousarray(indptr, dtype=np.int64)
    indices = np.ascontiguousarray(indices)
    none = np.zeros(0)
    center, scale = np.zeros(p), np.ones(p)
    every = np.arange(p, dtype=np.int64)
    binary, valued, dense = every, every[:0], every[:0]
    data = none
    if values is not None and values.size:
        data = np.ascontiguousarray(values, dtype=np.float64)
        kind, squares = columns_cpu.describe(indptr, data, runtime)
        for j in np.flatnonzero(kind == columns_cpu.NOT_FINITE):
            of_column = slice(indptr[j], indptr[j + 1])
            _refuse_not_finite(names[j], data[of_column], "its entries", places, indices[of_column])
        if (kind == columns_cpu.HAS_ZERO).any():
            keep = data != 0
            indptr = np.append(0, np.cumsum(keep))[indptr].astype(np.int64)
            indices, data = indices[keep], data[keep]
            kind, squares = columns_cpu.describe(indptr, data, runtime)
        count = np.diff(indptr)
        is_binary = kind == columns_cpu.ONES
        is_dense = ~is_binary & (count > DENSE_ABOVE * n_rows)
        binary, dense = every[is_binary], every[is_dense]
        valued = every[~is_binary & ~is_dense]
        scale[valued] = power_of_two(np.sqrt(squares[valued] / np.maximum(count[valued], 1)))
    parts: list[StoredColumns] = []
    if binary.size:
        parts.append(
            BinaryColumns.laid_out(binary, (indptr, indices, none), binary, n_rows, runtime)
        )
    if valued.size:
        part = ValuedColumns.laid_out(valued, (indptr, indices, data), valued, n_rows, runtime)
        columns_cpu.divide(part.block_ptr, part.value, scale[valued])
        parts.append(part)
    if dense.size:
        columns = []
        for j in dense:
            x = np.zeros(n_rows)
            x[indices[indptr[j] : indptr[j + 1]]] = data[indptr[j] : indptr[j + 1]]
            columns.append(x)
        parts.append(dense_part(dense, columns, n_rows, center, scale))
    return center, scale, tuple(parts)


class ColumnBuilder:
    """Collects columns one at a time and sorts them by kind."""

    def __init__(self, n_rows: int) -> None:
        self.n_rows = n_rows
        self.sparse: list[tuple[int, AnyArray, AnyArray]] = []
        self.dense: list[tuple[int, Rows]] = []
        self.table: _Table | None = None
        self.count = 0

    def add(self, column: AnyArray, name: str, places: Places | None) -> None:
        """Check a column of finite numbers and file it as binary, valued sparse or dense."""
        if column.ndim != 1 or column.size != self.n_rows:
            raise InputError(
                f"column {name!r} must have one value for each of the {self.n_rows:,} rows, "
                f"but its shape is {column.shape}."
            )
        _check_finite(column, name, places)
        refuse_inexact(column, f"column {name!r}", places or Places())
        j, self.count = self.count, self.count + 1
        is_full = np.count_nonzero(column) > DENSE_ABOVE * self.n_rows
        if is_full and not (_is_binary(column[:64]) and _is_binary(column)):
            # Kernels are compiled once, for arrays that are contiguous and may be written to.
            self.dense.append((j, np.require(column, np.float64, ["C", "W"])))
            return
        at = np.flatnonzero(column)
        value = column[at]
        is_binary = bool((value == 1).all())
        self.sparse.append((j, at, value[:0] if is_binary else value.astype(np.float64)))

    def add_table(self, x: AnyArray, names: Sequence[str], places: Places | None) -> None:
        """`add` of all columns of a table (n, p).

        One that has its rows one after the other is read by rows, and its dense columns are stored
        from there.
        """
        p, others = x.shape[1], np.arange(x.shape[1])
        if x.size and x.dtype == np.float64 and x.flags.c_contiguous and x.flags.writeable:
            self.table = _Table.of(x)
            for j in self.table.odd:
                _check_finite(x[:, j], names[j], places)
            others = np.setdiff1d(others, self.table.columns)
        step = max(1, (1 << 22) // max(1, self.n_rows))
        for a in range(0, others.size, step):
            some = others[a : a + step]
            part = x if some.size == p else x[:, some]
            for j, column in zip(some.tolist(), np.ascontiguousarray(part.T), strict=True):
                self.count = j
                self.add(column, names[j], places)
        self.count = p

    def build(self) -> tuple[Features, Features, tuple[StoredColumns, ...]]:
        """Center, scale and parts."""
        runtime = Runtime.select()
        p = self.count
        center, scale = np.zeros(p), np.ones(p)
        parts: list[StoredColumns] = []
        for kind in (BinaryColumns, ValuedColumns):
            chosen = [
                (j, at, v)
                for j, at, v in self.sparse
                if (v.size < at.size or not at.size) == (kind is BinaryColumns)
            ]
            if not chosen:
                continue
            columns = np.array([j for j, _, _ in chosen], dtype=np.int64)
            indptr = np.append(0, np.cumsum([at.size for _, at, _ in chosen])).astype(np.int64)
            indices, values = np.concatenate([at for _, at, _ in chosen]), np.zeros(0)
            if kind is ValuedColumns:
                scale[columns] = power_of_two(np.array([_size_about(v, 0.0) for *_, v in chosen]))
                values = np.concatenate([v / scale[j] for j, _, v in chosen])
            every = np.arange(columns.size, dtype=np.int64)
            csc = (indptr, indices, values)
            parts.append(kind.laid_out(columns, csc, every, self.n_rows, runtime))
        if self.dense:
            at = np.array([j for j, _ in self.dense], dtype=np.int64)
            parts.append(dense_part(at, [x for _, x in self.dense], self.n_rows, center, scale))
        if self.table is not None and self.table.columns.size:
            parts.append(self.table.part(center, scale))
        return center, scale, tuple(parts)


class _Table(NamedTuple):
    """A table by rows (n, p), and which of its columns are dense.

    Of each of the `columns` (q,) there is a point in its middle, and its mean square about that.
    It may have lost digits in `odd` ones, which may hold numbers that are not finite, too.
    """

    x: Matrix
    columns: Index
    center: Features
    mean_square: Features
    odd: Index

    @classmethod
    def of(cls, x: Matrix) -> "_Table":
        n = x.shape[0]
        center = _medians(list(x.T), n)
        squares, n_values, n_others = columns_cpu.table_sums(x, center, Runtime.select())
        is_dense = (n_values > DENSE_ABOVE * n) & (n_others > 0)
        is_safe = (squares < MAX_SAFE_SQUARES) & (squares > 1 / MAX_SAFE_SQUARES)
        columns = np.flatnonzero(is_dense)
        odd = np.flatnonzero(is_dense & ~is_safe)
        return cls(x, columns, center[columns], squares[columns] / n, odd)

    def part(self, center: Features, scale: Features) -> DenseColumns:
        """The columns, centred and scaled, as `dense_part` does it."""
        size = np.sqrt(self.mean_square)
        for k in np.searchsorted(self.columns, self.odd):
            column = np.ascontiguousarray(self.x[:, self.columns[k]])
            size[k] = _size_about(column, float(self.center[k]))
        center[self.columns], scale[self.columns] = self.center, power_of_two(size)
        n_rows = self.x.shape[0]
        blocks = _empty_blocks(self.columns.size, n_rows)
        columns_cpu.store_table(
            self.x, self.columns, self.center, scale[self.columns], blocks, Runtime.select()
        )
        return DenseColumns(self.columns, blocks, n_rows)


def _size_about(x: Rows, center: float) -> float:
    """Root of the mean square of the distances from a point, without overflow."""
    peak, mean_square = columns_cpu.size_about(x, center)
    return float(peak * np.sqrt(mean_square))


def _check_finite(column: AnyArray, name: str, places: Places | None) -> None:
    """Refuse a column with NaN or infinities."""
    if column.dtype.kind != "f":
        return
    with np.errstate(all="ignore"):
        has_finite_sum = bool(np.isfinite(column.sum()))
    if not has_finite_sum:  # the sum of finite values may overflow, though
        _refuse_not_finite(name, column, f"{column.size:,} rows", places)


def _is_binary(column: AnyArray) -> bool:
    return bool(((column == 0) | (column == 1)).all())


def dense_part(
    columns: Index, values: Sequence[Rows], n_rows: int, center: Features, scale: Features
) -> DenseColumns:
    """Centre and scale dense columns; notes center and scale in the arrays given."""
    # About the median, and not the mean: one extreme value must not cost all others their digits.
    # That of some rows serves as well.
    center[columns] = _medians(values, n_rows)
    size = [_size_about(x, c) for x, c in zip(values, center[columns], strict=True)]
    scale[columns] = power_of_two(np.array(size))
    blocks = _empty_blocks(columns.size, n_rows)
    for k, x in enumerate(values):
        columns_cpu.store_dense(x, center[columns[k]], scale[columns[k]], k, blocks)
    return DenseColumns(columns, blocks, n_rows)


def _medians(values: Sequence[Rows], n_rows: int) -> Features:
    """Medians of columns, of some rows if there are many."""
    medians, step = np.zeros(len(values)), max(1, n_rows // MEDIAN_ROWS)
    if n_rows:
        for first in range(0, len(values), MEDIAN_COLUMNS):
            some = slice(first, first + MEDIAN_COLUMNS)
            medians[some] = np.median([x[::step] for x in values[some]], axis=1)
    return medians


def dense_blocks(values: list[Rows], n_rows: int) -> AnyArray:
    """Columns as ``(n_blocks, q, block_rows)``, the last block padded with zeros."""
    blocks = _empty_blocks(len(values), n_rows)
    for s, x in enumerate(values):
        columns_cpu.store_dense(x, 0.0, 1.0, s, blocks)
    return blocks


def _empty_blocks(n_columns: int, n_rows: int) -> AnyArray:
    block_rows = min(1 << SHIFT, max(1, n_rows))
    return np.zeros((max(1, -(-n_rows // block_rows)), n_columns, block_rows))


def take_rows(
    parts: Sequence[StoredColumns], rows: Index, place: Index
) -> tuple[StoredColumns, ...]:
    """Parts of some rows; `place` is the new number of each row, -1 for rows left out."""
    runtime = Runtime.select()
    taken: list[StoredColumns] = []
    for part in parts:
        if isinstance(part, DenseColumns):
            flat = [part.column(s)[rows] for s in range(part.columns.size)]
            taken.append(DenseColumns(part.columns, dense_blocks(flat, rows.size), rows.size))
            continue
        assert isinstance(part, SparseColumns)
        taken.append(part.taken(place, rows.size, runtime))
    return tuple(taken)


def repeat_rows(parts: Sequence[StoredColumns], count: Index) -> tuple[StoredColumns, ...]:
    """Parts in which row i stands ``count[i]`` times, one after the other."""
    runtime, n_rows = Runtime.select(), int(count.sum())
    row, first = np.repeat(np.arange(count.size), count), np.cumsum(count) - count
    repeated: list[StoredColumns] = []
    for part in parts:
        slots = np.arange(part.columns.size)
        if isinstance(part, DenseColumns):
            flat = [part.column(s)[row] for s in range(slots.size)]
            repeated.append(DenseColumns(part.columns, dense_blocks(flat, n_rows), n_rows))
            continue
        assert isinstance(part, SparseColumns)
        ptr, own, values = part.to_csc(np.arange(count.size))
        times = count[own]
        starts = np.concatenate([[0], np.cumsum(times)])[ptr]
        csc = starts, ranges(first[own], times), np.repeat(values, times[: values.size])
        repeated.append(part.laid_out(part.columns, csc, slots, n_rows, runtime))
    return tuple(repeated)


def take_columns(
    parts: Sequence[StoredColumns], columns: Index, n_rows: int
) -> tuple[StoredColumns, ...]:
    """Parts of some columns, given in ascending order, which become 0, 1, ..."""
    runtime, every = Runtime.select(), np.arange(n_rows)
    taken: list[StoredColumns] = []
    for part in parts:
        slots = np.flatnonzero(np.isin(part.columns, columns))
        if not slots.size:
            continue
        at = np.searchsorted(columns, part.columns[slots])
        if slots.size == part.columns.size:  # the whole part: nothing is copied
            taken.append(part.renumbered(at))
        elif isinstance(part, DenseColumns):
            taken.append(DenseColumns(at, np.ascontiguousarray(part.blocks[:, slots]), n_rows))
        else:
            assert isinstance(part, SparseColumns)
            taken.append(part.laid_out(at, part.to_csc(every), slots, n_rows, runtime))
    return tuple(taken)


def column_names(
    names: Sequence[str] | None, keys: Sequence[int | str] | None, p: int
) -> tuple[str, ...]:
    """Names of p columns, each once: those given, or of the keys, or x0, x1, ..."""
    if names is None:
        names = [f"x{j}" for j in range(p)] if keys is None else [str(key) for key in keys]
    names = tuple(map(str, names))
    if len(names) != p:
        raise InputError(f"there are {counted(p, 'column')}, but {counted(len(names), 'name')}.")
    again = first_repeated(names)
    if again is not None:
        raise InputError(f"two covariates are called {again!r}.", hint="rename one of the columns.")
    return names


def column_keys(keys: Sequence[int | str] | None, names: tuple[str, ...]) -> tuple[int | str, ...]:
    """Keys of columns, exact; the names where there are none."""
    return (
        names
        if keys is None
        else tuple(key.item() if isinstance(key, np.generic) else key for key in keys)
    )


def as_float(array: AnyArray) -> AnyArray:
    """An array of objects as numbers; an error shows the first value that is not a number.

    Text is not a number: digits in a table of mixed columns are codes as often as amounts.
    """
    if array.dtype == object:
        missing = missing_rows(array)
        filled = np.where(missing, np.nan, array)
        odd = {type_ for type_ in set(map(type, filled.flat)) if not is_number_type(type_)}
        bad = np.array([type(value) in odd for value in filled.flat], dtype=bool)
        if not odd:
            return filled.astype(np.float64)
    else:
        bad = np.ones(array.size, dtype=bool)
    at = np.unravel_index(int(np.argmax(bad)), array.shape)
    where = ", column ".join(map(str, at))
    raise InputError(
        f"X must be numeric, but row {where} has {shown(array[at])}.",
        hint=IN_DAYS
        if is_duration(array[at])
        else "encode it as numbers, or pass a data frame, whose text columns are encoded as "
        "categories.",
    )


def _refuse_not_finite(
    name: str, values: AnyArray, of: str, places: Places | None, rows: AnyArray | None = None
) -> None:
    """Refuse NaN and infinities in the values of a column, which may be those of some rows."""
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        first = values[bad[0]].item()
        row = int(bad[0] if rows is None else rows[bad[0]])
        # scikit-learn's tests look for the words NaN and infinity.
        raise InputError(
            f"column {name!r} contains {'NaN' if np.isnan(first) else 'infinity'}: {bad.size:,} of "
            f"{of} are missing or infinite (first: {(places or Places()).row(row)}, value "
            f"{first!r}).",
            hint=MISSING,
        )


def _complain_duplicates(x: sp.coo_array) -> None:
    order = np.lexsort((x.row, x.col))
    row, col = x.row[order], x.col[order]
    again = np.flatnonzero((row[1:] == row[:-1]) & (col[1:] == col[:-1]))
    k = int(again[0])
    raise InputError(
        f"X has {again.size:,} entries that were given before (first: row {row[k]}, "
        f"column {col[k]}).",
        hint="call X.sum_duplicates() if the sum is meant, or remove the repeated records.",
    )


def canonical_csc(x: sp.spmatrix | sp.sparray) -> sp.csc_array:
    """Compressed sparse columns without repeated entries; a repeated entry is an error."""
    if not x.dtype.isnative:
        x = x.astype(x.dtype.newbyteorder("="))
    csc = x.tocsc()
    if x.format == "coo" and csc.nnz < x.nnz:
        _complain_duplicates(x)
    if csc.dtype.kind not in "buif":
        raise InputError(
            f"X must be numeric, but its type is {csc.dtype}.", hint="convert it to float64."
        )
    refuse_inexact(csc.data, "an entry of X", Places(row_name=lambda i: f"entry {i}"))
    if not csc.has_canonical_format:
        clean = csc.copy()
        clean.has_canonical_format = False
        clean.sum_duplicates()
        if clean.nnz < csc.nnz:
            _complain_duplicates(csc.tocoo())
    return csc
