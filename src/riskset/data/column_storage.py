"""The three ways a group of columns is stored, behind the same operations.

Columns are kept as ``(x - center) / scale`` with a scale that is a power of two, so that scaling
rounds nothing. Binary and valued sparse columns are never centred.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from riskset._runtime import Runtime
from riskset._types import AnyArray, Features, Index, Matrix, Rows
from riskset.kernels import gram_cpu
from riskset.kernels import matrix_cpu as kernels
from riskset.kernels import replicates_cpu as lanes

__all__ = ["BinaryColumns", "DenseColumns", "StoredColumns", "ValuedColumns"]


class StoredColumns(Protocol):
    """A group of columns of one kind."""

    @property
    def columns(self) -> Index:
        """Column of the design for each slot of the part."""

    @property
    def nbytes(self) -> int:
        """Bytes of storage."""

    def cross(self, slots: Index, r: Rows, runtime: Runtime, *, power: int = 1) -> Features:
        """``sum_i x[i, s]**power r[i]`` for each slot, in stored units."""

    def product(self, slots: Index, v: Features, out: Rows, runtime: Runtime) -> None:
        """``out[i] += sum_s x[i, s] v[s]``, in stored units."""

    def magnitude(self, slots: Index, v: Features, out: Rows, runtime: Runtime) -> None:
        """``out[i] += sum_s |x[i, s]| v[s]``: what the rounding of `product` is relative to."""

    def cross_lanes(self, slots: Index, r: Matrix, *, power: int = 1) -> Matrix:
        """`cross` of the eight columns of `r` (n, 8), in one thread."""

    def product_lanes(self, slots: Index, v: Matrix, out: Matrix) -> None:
        """`product` of the eight columns of `v`, in one thread."""

    def fill(self, slots: Index, rows: Index, out: Matrix) -> None:
        """``out[a, m] = x[rows[a], slots[m]]``, in stored units; `out` starts at zero."""


@dataclass(frozen=True)
class BinaryColumns:
    """Columns of zeros and ones: two bytes for each one, nothing for the values."""

    columns: Index
    block_ptr: Index
    row: AnyArray
    shift: int

    @property
    def nbytes(self) -> int:
        """Bytes of storage."""
        return self.block_ptr.nbytes + self.row.nbytes

    def cross(self, slots: Index, r: Rows, runtime: Runtime, *, power: int = 1) -> Features:
        """See `StoredColumns.cross`."""
        return kernels.cross_binary(self.block_ptr, self.row, slots, r, self.shift, runtime)

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

    def fill(self, slots: Index, rows: Index, out: Matrix) -> None:
        """See `StoredColumns.fill`."""
        _fill_sparse(self.block_ptr, self.row, np.zeros(0), self.shift, slots, rows, out)


@dataclass(frozen=True)
class ValuedColumns:
    """Sparse columns with values: ten bytes for each non-zero."""

    columns: Index
    block_ptr: Index
    row: AnyArray
    value: Rows
    shift: int

    @property
    def nbytes(self) -> int:
        """Bytes of storage."""
        return self.block_ptr.nbytes + self.row.nbytes + self.value.nbytes

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

    def fill(self, slots: Index, rows: Index, out: Matrix) -> None:
        """See `StoredColumns.fill`."""
        _fill_sparse(self.block_ptr, self.row, self.value, self.shift, slots, rows, out)

    def _blocks(self) -> Iterator[tuple[int, Index, AnyArray, Rows]]:
        """Each block alone: its first row, and the part that it is.

        The values may be in a file larger than memory, so only one block is copied at a time.
        """
        for b, pointer in enumerate(self.block_ptr):
            inside = slice(pointer[0], pointer[-1])
            yield b << self.shift, pointer[None] - pointer[0], self.row[inside], self.value[inside]


@dataclass(frozen=True)
class DenseColumns:
    """Columns of any numbers, centred: ``blocks[b, s]`` is column s in row block b."""

    columns: Index
    blocks: AnyArray
    n_rows: int

    @property
    def nbytes(self) -> int:
        """Bytes of storage."""
        return int(self.blocks.nbytes)

    def cross(self, slots: Index, r: Rows, runtime: Runtime, *, power: int = 1) -> Features:
        """See `StoredColumns.cross`."""
        if power == 1:
            return kernels.cross_dense(self.blocks, slots, r, runtime)
        out = np.empty(slots.size)
        for m, s in enumerate(slots):
            out[m] = r @ self.blocks[:, s].reshape(-1)[: self.n_rows] ** power
        return out

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

    def fill(self, slots: Index, rows: Index, out: Matrix) -> None:
        """See `StoredColumns.fill`."""
        block_rows = self.blocks.shape[2]
        out += self.blocks[
            (rows // block_rows)[:, None], slots[None, :], (rows % block_rows)[:, None]
        ]


def _fill_sparse(
    block_ptr: Index,
    row: AnyArray,
    value: Rows,
    shift: int,
    slots: Index,
    rows: Index,
    out: Matrix,
) -> None:
    order = np.argsort(rows, kind="stable")
    start = np.searchsorted(rows[order], np.arange((block_ptr.shape[0] << shift) + 1))
    gram_cpu.fill_sparse(block_ptr, row, value, shift, slots, start, order, out)
