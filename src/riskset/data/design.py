"""The covariate matrix: names, storage by type of column, and operations.

A `Design` keeps the order of rows of the caller and is independent of times and events. One design
serves every outcome, fold and bootstrap resample. Only `Outcome.risk` has the order of the risk
sets.
"""

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any, SupportsIndex

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from riskset._errors import InputError, counted
from riskset._runtime import Runtime
from riskset._types import AnyArray, Factors, Features, Index, Matrix, Rows
from riskset.data.checks import IN_DAYS, Places, as_array, as_numbers
from riskset.data.column_storage import BinaryColumns, DenseColumns, StoredColumns
from riskset.data.design_build import write_blocks
from riskset.data.design_columns import (
    ColumnBuilder,
    as_float,
    assemble_csc,
    canonical_csc,
    column_keys,
    column_names,
    repeat_rows,
    take_rows,
)
from riskset.data.design_map import Contents, read_contents, write_contents

__all__ = ["Design"]


@dataclass(frozen=True, eq=False, repr=False)
class Design:
    """Immutable matrix of the covariates of all rows.

    Attributes
    ----------
    n_rows : int
    names : tuple of str
        Names of the columns.
    keys : tuple
        Exact keys of the columns: 64-bit integers or text.
    center, scale : (p,) float64
        A stored column is ``(x - center) / scale``. Binary columns have 0 and 1.
    parts : tuple of `StoredColumns`
        Binary, valued sparse and dense columns.
    factors : tuple of tuple of str
        For each category, the names of its columns, one per level. Every row has exactly one level,
        so a model without a penalty leaves out the first one, the reference; see
        `riskset.model.references`. A name may refer to a column that the design no longer contains.
    source : (str, int) or None
        Path and checksum of the mapped file, which are pickled instead of the parts.

    Examples
    --------
    >>> import scipy.sparse
    >>> import riskset as rs
    >>> x = scipy.sparse.csc_array([[1, 0], [0, 0], [1, 1]])
    >>> design = rs.Design.from_sparse(x, ["a", "b"])
    >>> design.names, design.n_rows
    (('a', 'b'), 3)
    >>> design.is_binary
    array([ True,  True])
    >>> design.to_dense()
    array([[1., 0.],
           [0., 0.],
           [1., 1.]])
    """

    n_rows: int
    names: tuple[str, ...]
    keys: tuple[int | str, ...]
    center: Features
    scale: Features
    parts: tuple[StoredColumns, ...]
    factors: Factors = ()
    source: tuple[str, int] | None = field(default=None, init=False)

    def __repr__(self) -> str:
        size = f"{counted(self.n_rows, 'row')}, {counted(self.n_features, 'column')}"
        return f"<Design: {size}, {self.nbytes / 1e6:,.1f} MB>"

    # ---------------------------------------------------------------- construction

    @classmethod
    def from_dense(
        cls,
        x: object,
        names: Sequence[str] | None = None,
        keys: Sequence[int | str] | None = None,
        places: Places | None = None,
    ) -> "Design":
        """Create a design from a two-dimensional array."""
        array = as_array(x, "X", places or Places())
        if array.ndim != 2:
            raise InputError(
                f"X must have two dimensions (rows, columns), but its shape is {array.shape}.",
                hint="reshape your data: X.reshape(-1, 1) makes one column of a vector.",
            )
        if array.dtype == object or array.dtype.kind in "US":
            array = as_float(array)
        if array.dtype.kind not in "buif":
            raise InputError(
                f"X must be numeric, but its type is {array.dtype}.",
                hint=IN_DAYS
                if array.dtype.kind == "m"
                else "encode the columns as numbers, or pass a data frame with named columns.",
            )
        names = column_names(names, keys, array.shape[1])
        builder = ColumnBuilder(array.shape[0])
        builder.add_table(array, names, places)
        return cls(array.shape[0], names, column_keys(keys, names), *builder.build())

    @classmethod
    def from_columns(
        cls,
        columns: Mapping[str, AnyArray],
        n_rows: int | None = None,
        places: Places | None = None,
        factors: Factors = (),
    ) -> "Design":
        """Create a design from named one-dimensional columns of numbers."""
        names = tuple(columns)
        if n_rows is None:
            if not names:
                raise InputError("a design without columns needs the number of rows.")
            n_rows = len(columns[names[0]])
        builder = ColumnBuilder(n_rows)
        for name in names:
            builder.add(_column(columns[name], name, n_rows, places), name, places)
        return cls(n_rows, names, names, *builder.build(), factors)

    @classmethod
    def from_sparse(
        cls,
        x: object,
        names: Sequence[str] | None = None,
        keys: Sequence[int | str] | None = None,
        places: Places | None = None,
    ) -> "Design":
        """Create a design from a scipy.sparse matrix or array. Repeated entries raise an error."""
        if not sp.issparse(x):
            raise InputError(f"expected a scipy.sparse matrix, but got {type(x).__name__}.")
        shape: tuple[int, ...] = getattr(x, "shape")  # noqa: B009
        if len(shape) != 2:
            raise InputError(
                f"X must have two dimensions (rows, columns), but its shape is {shape}.",
                hint="reshape your data: X.reshape(-1, 1) makes one column of a vector.",
            )
        csc = canonical_csc(x)
        return cls.from_csc(
            csc.indptr.astype(np.int64),
            csc.indices,
            csc.data,
            csc.shape[0],
            names,
            keys,
            places=places,
        )

    @classmethod
    def from_csc(
        cls,
        indptr: Index,
        indices: AnyArray,
        values: AnyArray | None,
        n_rows: int,
        names: Sequence[str] | None = None,
        keys: Sequence[int | str] | None = None,
        *,
        places: Places | None = None,
        runtime: Runtime | None = None,
    ) -> "Design":
        """Create a design from compressed sparse columns, with rows in any order within a column.

        Parameters
        ----------
        values : (n_entries,) numbers or None
            None: all entries are 1.
        """
        names = column_names(names, keys, indptr.size - 1)
        center, scale, parts = assemble_csc(
            indptr, indices, values, n_rows, names, places or Places(), runtime or Runtime.select()
        )
        return cls(n_rows, names, column_keys(keys, names), center, scale, parts)

    @classmethod
    def stack(cls, designs: Sequence["Design"]) -> "Design":
        """Join designs of the same rows side by side."""
        if len({d.n_rows for d in designs}) != 1:
            raise InputError(
                "designs side by side must have the same rows, but they have "
                + ", ".join(f"{d.n_rows:,}" for d in designs)
                + " rows."
            )
        names = [name for d in designs for name in d.names]
        shift = np.cumsum([0, *(d.n_features for d in designs)])
        parts = tuple(
            part.renumbered(part.columns + shift[k])
            for k, d in enumerate(designs)
            for part in d.parts
        )
        return cls(
            designs[0].n_rows,
            column_names(names, None, len(names)),
            tuple(key for d in designs for key in d.keys),
            np.concatenate([d.center for d in designs]),
            np.concatenate([d.scale for d in designs]),
            parts,
            tuple(factor for d in designs for factor in d.factors),
        )

    def renamed(self, names: Mapping[str, str]) -> "Design":
        """The same columns with other names, in the categories, too; keys stay."""
        new = tuple(names.get(name, name) for name in self.names)
        factors = tuple(tuple(names.get(name, name) for name in one) for one in self.factors)
        return replace(self, names=column_names(new, None, len(new)), factors=factors)

    # ---------------------------------------------------------------- in a file

    @classmethod
    def from_blocks(
        cls,
        blocks: Iterable[object],
        path: str | PathLike[str],
        names: Sequence[str] | None = None,
        keys: Sequence[int | str] | None = None,
    ) -> "Design":
        """Create a design in a file from blocks of rows (arrays or sparse matrices), and open it.

        Memory holds a block and 4096 rows; dense columns need 30 bytes per row. The folder also
        needs space for a temporary file, 6 bytes for each 1 and 14 for any other entry.
        """
        write_blocks(Path(path), blocks, names, keys)
        return cls.open(path, verify=False)

    def save(self, path: str | PathLike[str], row_keys: AnyArray | None = None) -> None:
        """Write the design to a file that `open` maps into memory. The file is written atomically.

        Parameters
        ----------
        row_keys : (n_rows,) whole numbers or text, optional
            Identifiers of the rows, so that `riskset.read_dataset` can use the file as
            `covariates`.
        """
        known = (self.n_rows, self.names, self.keys, self.center, self.scale, self.parts)
        write_contents(Path(path), Contents(*known, row_keys, factors=self.factors))

    @classmethod
    def open(cls, path: str | PathLike[str], *, verify: bool = True) -> "Design":
        """Open a design whose columns stay in its file. Pages are read when they are used.

        Results are bit-identical to those of a design in memory.

        Parameters
        ----------
        verify : bool
            Compare the file with its checksums, which reads it once. Otherwise, a damaged file may
            give wrong results or end the process.

        Raises
        ------
        InputError
            If the file does not exist, is incomplete or damaged, or has another format or a later
            version.
        """
        return cls.of_contents(read_contents(Path(path), verify=verify), path)

    @classmethod
    def of_contents(cls, file: Contents, path: str | PathLike[str]) -> "Design":
        """The design of a file that is open."""
        known = (file.n_rows, file.names, file.keys, file.center, file.scale, file.parts)
        design = cls(*known, file.factors)
        object.__setattr__(design, "source", (str(Path(path).absolute()), file.checksum))
        return design

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[Any, ...]:
        return super().__reduce_ex__(protocol) if self.source is None else (_again, self.source)

    # ---------------------------------------------------------------- facts

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return len(self.names)

    @property
    def nbytes(self) -> int:
        """Bytes of storage."""
        return sum(part.nbytes for part in self.parts)

    @functools.cached_property
    def _position(self) -> dict[str, int]:
        return {name: j for j, name in enumerate(self.names)}

    def index_of(self, name: str) -> int:
        """Return the column number of a name; an `InputError` suggests the closest names."""
        if name not in self._position:
            raise InputError.unknown_name("covariate", name, self.names)
        return self._position[name]

    @functools.cached_property
    def _home(self) -> tuple[Index, Index]:
        part_of = np.zeros(self.n_features, dtype=np.int64)
        slot_of = np.zeros(self.n_features, dtype=np.int64)
        for k, part in enumerate(self.parts):
            part_of[part.columns] = k
            slot_of[part.columns] = np.arange(part.columns.size)
        return part_of, slot_of

    @functools.cached_property
    def is_binary(self) -> NDArray[np.bool_]:
        """Columns that hold only 0 and 1 (p,)."""
        out = np.zeros(self.n_features, dtype=bool)
        for part in self.parts:
            if isinstance(part, BinaryColumns):
                out[part.columns] = True
        return out

    def select(self, columns: Index | None = None) -> list[tuple[StoredColumns, Index, Index]]:
        """For each part that holds any of the columns: the part, its slots, places in `columns`."""
        if columns is None:
            return [(p, np.arange(p.columns.size, dtype=np.int64), p.columns) for p in self.parts]
        part_of, slot_of = self._home
        chosen = []
        for k, part in enumerate(self.parts):
            at = np.flatnonzero(part_of[columns] == k)
            if at.size:
                chosen.append((part, slot_of[columns[at]], at))
        return chosen

    def n_entries(self, columns: Index | None = None) -> int:
        """Numbers that an operation on some columns reads."""
        return sum(part.n_entries(slots) for part, slots, _ in self.select(columns))

    # ---------------------------------------------------------------- operations, stored units

    def cross(
        self, r: Rows, columns: Index | None = None, *, runtime: Runtime, power: int = 1
    ) -> Features:
        """``sum_i z[i, j]**power r[i]`` with z the stored columns; O(non-zeros)."""
        out = np.zeros(self.n_features if columns is None else columns.size)
        for part, slots, at in self.select(columns):
            out[at] = part.cross(slots, r, runtime, power=power)
        return out

    def moments(self, r: Rows, columns: Index | None = None, *, runtime: Runtime) -> Matrix:
        """`cross` of the columns and of their squares (2, q)."""
        out = np.zeros((2, self.n_features if columns is None else columns.size))
        for part, slots, at in self.select(columns):
            out[:, at] = part.moments(slots, r, runtime)
        return out

    def cross_lanes(self, r: Matrix, columns: Index | None = None, *, power: int = 1) -> Matrix:
        """`cross` of the eight columns of `r` (n, 8), in one thread."""
        out = np.zeros((self.n_features if columns is None else columns.size, r.shape[1]))
        for part, slots, at in self.select(columns):
            out[at] = part.cross_lanes(slots, r, power=power)
        return out

    def product_lanes(self, v: Matrix, columns: Index, out: Matrix) -> None:
        """Add `product` of the eight columns of `v` (q, 8) to `out` (n, 8), in one thread."""
        moved = np.flatnonzero(v.any(axis=1))
        for part, slots, at in self.select(columns[moved]):
            part.product_lanes(slots, np.ascontiguousarray(v[moved[at]]), out)

    def product(self, v: Features, columns: Index | None = None, *, runtime: Runtime) -> Rows:
        """``sum_j z[i, j] v[j]`` with z the stored columns; columns with v = 0 cost nothing."""
        out = np.zeros(self.n_rows)
        for part, slots, at in self.select(columns):
            w = v[at]
            used = np.flatnonzero(w)
            if used.size:
                part.product(slots[used], w[used], out, runtime)
        return out

    def magnitude(self, v: Features, columns: Index | None = None, *, runtime: Runtime) -> Rows:
        """``sum_j |z[i, j] v[j]|``: `product` is rounded by a few units of its last place."""
        out = np.zeros(self.n_rows)
        for part, slots, at in self.select(columns):
            w = np.abs(v[at])
            used = np.flatnonzero(w)
            if used.size:
                part.magnitude(slots[used], w[used], out, runtime)
        return out

    def stored(self, columns: Index | None = None, rows: Index | None = None) -> Matrix:
        """Stored columns as a dense (rows, columns) array."""
        n_rows = self.n_rows if rows is None else rows.size
        shape = n_rows, self.n_features if columns is None else columns.size
        chosen = self.select(columns)
        # Dense columns fill all there is.
        is_full = len(chosen) == 1 and isinstance(chosen[0][0], DenseColumns)
        out = np.empty(shape) if is_full else np.zeros(shape)
        for part, slots, at in chosen:
            if slots.size == out.shape[1] and (at[1:] > at[:-1]).all():
                part.fill(slots, rows, out)
                continue
            block = np.zeros((n_rows, slots.size))
            part.fill(slots, rows, block)
            out[:, at] = block
        return out

    def stored_column(self, column: int) -> Rows:
        """One stored column (n,); of a column that is stored dense this is one copy."""
        part, slot = self.parts[self._home[0][column]], int(self._home[1][column])
        if isinstance(part, DenseColumns):
            return part.column(slot)
        return self.stored(np.array([column]))[:, 0]

    # ---------------------------------------------------------------- operations, user's units

    def dot(
        self, coef: Features, columns: Index | None = None, *, runtime: Runtime | None = None
    ) -> Rows:
        """Compute ``X @ coef`` in the user's units."""
        runtime = runtime or Runtime.select()
        pick = slice(None) if columns is None else columns
        out = self.product(coef * self.scale[pick], columns, runtime=runtime)
        out += float(self.center[pick] @ coef)
        return out

    def to_dense(self, columns: Index | None = None, rows: Index | None = None) -> Matrix:
        """Return columns as a dense array in the user's units."""
        pick = slice(None) if columns is None else columns
        return self.stored(columns, rows) * self.scale[pick] + self.center[pick]

    def take_rows(self, rows: Index) -> "Design":
        """Return a design of some rows, in the given order."""
        rows = np.asarray(rows, dtype=np.int64)
        place = np.full(self.n_rows, -1, dtype=np.int64)
        place[rows] = np.arange(rows.size)
        if np.count_nonzero(place >= 0) != rows.size:
            raise InputError("rows must not repeat.", hint="give repeated rows a weight instead.")
        parts = take_rows(self.parts, rows, place)
        return replace(self, n_rows=rows.size, parts=parts)

    def repeat_rows(self, count: Index) -> "Design":
        """Return a design in which row i stands ``count[i]`` times, one after the other."""
        parts = repeat_rows(self.parts, count)
        return replace(self, n_rows=int(count.sum()), parts=parts)


def _again(path: str, checksum: int) -> Design:
    """Open a pickled design of a file again; `source` is its description."""
    design = Design.open(path, verify=False)
    if design.source != (path, checksum):
        raise InputError(
            f"{path!r} holds another design than when this one was pickled.",
            hint="keep the files of designs that are in use, or pickle the design anew.",
        )
    return design


def _column(values: object, name: str, n_rows: int, places: Places | None) -> AnyArray:
    """A column of numbers in their own type."""
    named = Places({name: f"column {name!r}"}, places.row if places else None)
    array = as_array(values, named.column(name), named)
    if array.dtype.kind in "buif":
        return array
    return as_numbers(array, name, n_rows, named)
