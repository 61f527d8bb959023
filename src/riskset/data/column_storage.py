"""The three ways a group of columns is stored, behind the same operations.

Columns are kept as ``(x - center) / scale`` with a scale that is a power of two, so that scaling
rounds nothing. Binary and valued sparse columns are never centred.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol, Self

import numpy as np

from riskset._runtime import Runtime
from riskset._types import AnyArray, Features, Index, Matrix, Rows
from riskset.kernels import columns_cpu, gram_cpu
from riskset.kernels import matrix_cpu as kernels
from riskset.kernels import replicates_cpu as lanes

__all__ = [
    "SHIFT",
    "BinaryColumns",
    "Csc",
    "DenseColumns",
    "SparseColumns",
    "StoredColumns",
    "ValuedColumns",
]

SHIFT = 12
"""Blocks of 4096 rows: 32 kB of residuals, one first-level cache."""

MIN_ROWS_SHARE = 4
"""Columns of more rows than this part of all are read as they lie, and not row by row."""

Csc = tuple[Index, AnyArray, Rows]
"""Pointers, row numbers and values of compressed sparse columns; no values: every entry is 1."""


class StoredColumns(Protocol):
    """A group of columns of one kind; `columns` has the column of the design of each slot."""

    columns: Index

    def renumbered(self, columns: Index) -> Self:
        """The same entries, as other columns of a design."""
        return replace(self, columns=columns)  # type: ignore[type-var]  # all are dataclasses

    @property
    def nbytes(self) -> int:
        """Bytes of storage."""

    def n_entries(self, slots: Index) -> int:
        """Numbers that an operation on some slots reads."""

    def cross(self, slots: Index, r: Rows, runtime: Runtime, *, power: int = 1) -> Features:
        """``sum_i x[i, s]**power r[i]`` for each slot, in stored units."""

    def moments(self, slots: Index, r: Rows, runtime: Runtime) -> Matrix:
        """`cross` of the columns and of their squares (2, m)."""
        return np.stack([self.cross(slots, r, runtime, power=k) for k in (1, 2)])

    def product(self, slots: Index, v: Features, out: Rows, runtime: Runtime) -> None:
        """``out[i] += sum_s x[i, s] v[s]``, in stored units."""

    def magnitude(self, slots: Index, v: Features, out: Rows, runtime: Runtime) -> None:
        """``out[i] += sum_s |x[i, s]| v[s]``: what the rounding of `product` is relative to."""

    def cross_lanes(self, slots: Index, r: Matrix, *, power: int = 1) -> Matrix:
        """`cross` of the eight columns of `r` (n, 8), in one thread."""

    def product_lanes(self, slots: Index, v: Matrix, out: Matrix) -> None:
        """`product` of the eight columns of `v`, in one thread."""

    def fill(self, slots: Index, rows: Index | None, out: Matrix) -> None:
        """``out[a, m] = x[rows[a], slots[m]]``, in stored units; `out` starts at zero.

        None stands for all rows in their order.
        """


@dataclass(frozen=True)
class SparseColumns(StoredColumns):
    """Columns as lists of their entries, one block of ``2**shift`` rows after the other."""

    columns: Index
    block_ptr: Index
    row: AnyArray
    shift: int

    @classmethod
    def laid_out(
        cls, columns: Index, csc: Csc, slots: Index, n_rows: int, runtime: Runtime
    ) -> Self:
        """The columns `slots` of compressed sparse columns."""
        ptr, row, _ = kernels.sparse_layout(*csc, slots, n_rows, SHIFT, runtime)
        return cls(columns, ptr, row, SHIFT)

    @property
    def values(self) -> Rows:
        """Values of all entries; none where every entry is 1."""
        return np.zeros(0)

    @property
    def nbytes(self) -> int:
        """Bytes of storage."""
        return self.block_ptr.nbytes + self.row.nbytes + self.values.nbytes

    def n_entries(self, slots: Index) -> int:
        """See `StoredColumns.n_entries`."""
        return sum(int((own[slots + 1] - own[slots]).sum()) for own in self.block_ptr)

    def to_csc(self, place: Index) -> Csc:
        """All slots as compressed sparse columns, with row i as ``place[i]``; -1: left out."""
        return columns_cpu.to_csc(self.block_ptr, self.row, self.values, self.shift, place)

    def taken(self, place: Index, n_rows: int, runtime: Runtime) -> Self:
        """The columns of some rows, with row i as ``place[i]``; -1: left out."""
        layout = self.block_ptr, self.row, self.values, self.shift
        ptr, row, value = kernels.taken_layout(*layout, place, n_rows, runtime)
        return self._of(ptr, row, value)

    def _of(self, block_ptr: Index, row: AnyArray, value: Rows) -> Self:
        """The same columns with other entries."""
        return replace(self, block_ptr=block_ptr, row=row)

    def fill(self, slots: Index, rows: Index | None, out: Matrix) -> None:
        """See `StoredColumns.fill`."""
        rows = np.arange(out.shape[0]) if rows is None else rows
        order = np.argsort(rows, kind="stable")
        start = np.searchsorted(rows[order], np.arange((self.block_ptr.shape[0] << self.shift) + 1))
        gram_cpu.fill_sparse(
            self.block_ptr, self.row, self.values, self.shift, slots, start, order, out
        )


class BinaryColumns(SparseColumns):
    """Columns of zeros and ones: two bytes for each one, nothing for the values."""

    def cross(self, slots: Index, r: Rows, runtime: Runtime, *, power: int = 1) -> Features:
        """See `StoredColumns.cross`."""
        return kernels.cross_binary(self.block_ptr, self.row, slots, r, self.shift, runtime)

    def moments(self, slots: Index, r: Rows, runtime: Runtime) -> Matrix:
        """See `StoredColumns.moments`."""
        first = self.cross(slots, r, runtime)
        return np.stack([first, first])

    def product(self, slots: Index, v: Features, out: Rows, runtime: Runtime) -> None:
        """See `StoredColumns.product`."""
        kernels.product_binary(self.block_ptr, self.row, slots, v, self.shift, out, runtime)

    def magnitude(self, slots: Index, v: Features, out: Rows, runtime: Runtime) -> None:
        """See `StoredColumns.magnitude`."""
        self.product(slots, v, out, runtime)

    def cross_lanes(self, slots: Index, r: Matrix, *, power: int = 1) -> Matrix:
        """See `StoredColumns.cross_lanes`."""
        out = np.zeros((slots.size, r.shape[1]))
        lanes.cross_sparse(self.block_ptr, self.row, None, slots, r, self.shift, out)
        return out

    def product_lanes(self, slots: Index, v: Matrix, out: Matrix) -> None:
        """See `StoredColumns.product_lanes`."""
        lanes.product_sparse(self.block_ptr, self.row, None, slots, v, self.shift, out)


@dataclass(frozen=True)
class ValuedColumns(SparseColumns):
    """Sparse columns with values: ten bytes for each non-zero."""

    value: Rows

    @classmethod
    def laid_out(
        cls, columns: Index, csc: Csc, slots: Index, n_rows: int, runtime: Runtime
    ) -> Self:
        """See `SparseColumns.laid_out`."""
        ptr, row, value = kernels.sparse_layout(*csc, slots, n_rows, SHIFT, runtime)
        return cls(columns, ptr, row, SHIFT, value)

    def _of(self, block_ptr: Index, row: AnyArray, value: Rows) -> Self:
        return replace(self, block_ptr=block_ptr, row=row, value=value)

    @property
    def values(self) -> Rows:
        """See `SparseColumns.values`."""
        return self.value

    def cross(self, slots: Index, r: Rows, runtime: Runtime, *, power: int = 1) -> Features:
        """See `StoredColumns.cross`."""
        return kernels.cross_valued(
            self.block_ptr, self.row, self.value, slots, r, self.shift, runtime, power
        )

    def product(self, slots: Index, v: Features, out: Rows, runtime: Runtime) -> None:
        """See `StoredColumns.product`."""
        kernels.product_valued(
            self.block_ptr, self.row, self.value, slots, v, self.shift, out, runtime
        )

    def magnitude(self, slots: Index, v: Features, out: Rows, runtime: Runtime) -> None:
        """See `StoredColumns.magnitude`."""
        for first, ptr, row, value in self._blocks():
            kernels.product_valued(
                ptr, row, np.abs(value), slots, v, self.shift, out[first:], runtime
            )

    def cross_lanes(self, slots: Index, r: Matrix, *, power: int = 1) -> Matrix:
        """See `StoredColumns.cross_lanes`."""
        out = np.zeros((slots.size, r.shape[1]))
        if power == 1:
            lanes.cross_sparse(self.block_ptr, self.row, self.value, slots, r, self.shift, out)
            return out
        for first, ptr, row, value in self._blocks():
            lanes.cross_sparse(ptr, row, value**power, slots, r[first:], self.shift, out)
        return out

    def product_lanes(self, slots: Index, v: Matrix, out: Matrix) -> None:
        """See `StoredColumns.product_lanes`."""
        lanes.product_sparse(self.block_ptr, self.row, self.value, slots, v, self.shift, out)

    def _blocks(self) -> Iterator[tuple[int, Index, AnyArray, Rows]]:
        """Each block alone: its first row, and the part that it is.

        The values may be in a file larger than memory, so only one block is copied at a time.
        """
        for b, pointer in enumerate(self.block_ptr):
            inside = slice(pointer[0], pointer[-1])
            yield b << self.shift, pointer[None] - pointer[0], self.row[inside], self.value[inside]


@dataclass(frozen=True)
class DenseColumns(StoredColumns):
    """Columns of any numbers, centred: ``blocks[b, s]`` is column s in row block b."""

    columns: Index
    blocks: AnyArray
    n_rows: int

    @property
    def nbytes(self) -> int:
        """Bytes of storage."""
        return int(self.blocks.nbytes)

    def n_entries(self, slots: Index) -> int:
        """See `StoredColumns.n_entries`."""
        return self.n_rows * slots.size

    def cross(self, slots: Index, r: Rows, runtime: Runtime, *, power: int = 1) -> Features:
        """See `StoredColumns.cross`."""
        return kernels.cross_dense(self.blocks, slots, r, runtime, power)

    def column(self, slot: int) -> Rows:
        """One stored column (n,); a copy."""
        return np.asarray(self.blocks[:, slot].reshape(-1)[: self.n_rows])

    def moments(self, slots: Index, r: Rows, runtime: Runtime) -> Matrix:
        """See `StoredColumns.moments`."""
        return kernels.moments_dense(self.blocks, slots, r, runtime)

    def product(self, slots: Index, v: Features, out: Rows, runtime: Runtime) -> None:
        """See `StoredColumns.product`."""
        kernels.product_dense(self.blocks, slots, v, out, runtime)

    def magnitude(self, slots: Index, v: Features, out: Rows, runtime: Runtime) -> None:
        """See `StoredColumns.magnitude`."""
        every = np.arange(slots.size, dtype=np.int64)
        for b, block in enumerate(self.blocks):
            rows = out[b * block.shape[1] : (b + 1) * block.shape[1]]
            kernels.product_dense(np.abs(block[None, slots]), every, v, rows, runtime)

    def cross_lanes(self, slots: Index, r: Matrix, *, power: int = 1) -> Matrix:
        """See `StoredColumns.cross_lanes`."""
        out = np.zeros((slots.size, r.shape[1]))
        if power == 1:
            lanes.cross_dense(self.blocks, slots, r, out)
            return out
        every = np.arange(slots.size, dtype=np.int64)
        for b, block in enumerate(self.blocks):
            lanes.cross_dense(block[None, slots] ** power, every, r[b * block.shape[1] :], out)
        return out

    def product_lanes(self, slots: Index, v: Matrix, out: Matrix) -> None:
        """See `StoredColumns.product_lanes`."""
        lanes.product_dense(self.blocks, slots, v, out)

    def fill(self, slots: Index, rows: Index | None, out: Matrix) -> None:
        """See `StoredColumns.fill`."""
        if rows is None:
            columns_cpu.fill_dense(self.blocks, slots, out)
            return
        if rows.size > self.n_rows // MIN_ROWS_SHARE:
            place = np.full(self.n_rows, -1)
            place[rows] = np.arange(rows.size)
            if np.count_nonzero(place >= 0) == rows.size:  # none is repeated
                columns_cpu.place_dense(self.blocks, slots, place, out, Runtime.select())
                return
        block_rows = self.blocks.shape[2]
        out[:] = self.blocks[
            (rows // block_rows)[:, None], slots[None, :], (rows % block_rows)[:, None]
        ]
