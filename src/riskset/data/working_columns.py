"""Some columns of a design, copied so that passes over them stream.

The columns of a working set lie scattered in the design, and most have a few ones in each block of
rows: passes would wait for memory, and spend their time between columns. A copy has them side by
side, and rare ones in larger blocks.
"""

from dataclasses import dataclass

import numpy as np

from riskset._runtime import Runtime
from riskset._types import Features, Index, Rows
from riskset.data.column_storage import BinaryColumns, StoredColumns
from riskset.data.design import Design
from riskset.kernels import matrix_cpu as kernels

__all__ = ["WorkingColumns"]

MAX_SHIFT = 16
"""Row numbers within a block have two bytes."""
MIN_BLOCKS = 6
"""Blocks are shared out among threads."""
MIN_SEGMENT = 64
"""Columns with fewer ones in a block, on average, are rare."""


@dataclass(frozen=True)
class WorkingColumns:
    """The operations of a `Design` on some of its columns (q,), in stored units.

    Each of the `parts` has its place among the columns, and the slots that are used.
    """

    n_rows: int
    size: int
    parts: tuple[tuple[StoredColumns, Index, Index], ...]
    runtime: Runtime

    @classmethod
    def of(cls, design: Design, columns: Index, runtime: Runtime) -> "WorkingColumns":
        """Copy sparse columns of ones, two bytes for each; others stay where they are."""
        parts: list[tuple[StoredColumns, Index, Index]] = []
        for part, slots, at in design.select(columns):
            if not isinstance(part, BinaryColumns):
                parts.append((part, slots, at))
                continue
            ones = np.zeros(slots.size, dtype=np.int64)
            for pointer in part.block_ptr:
                ones += pointer[slots + 1] - pointer[slots]
            is_rare = ones < MIN_SEGMENT * part.block_ptr.shape[0]
            for some, shift in ((~is_rare, part.shift), (is_rare, _large(part))):
                if some.any():
                    copied = _copied(part, slots[some], shift, runtime)
                    parts.append((copied, copied.columns, at[some]))
        return cls(design.n_rows, columns.size, tuple(parts), runtime)

    def __len__(self) -> int:
        return self.size

    def some(self, kept: Index) -> "WorkingColumns":
        """Some of these columns, in increasing order, without another copy."""
        place = np.full(self.size, -1, dtype=np.int64)
        place[kept] = np.arange(kept.size)
        parts = []
        for part, slots, at in self.parts:
            used = place[at] >= 0
            if used.any():
                parts.append((part, slots[used], place[at[used]]))
        return WorkingColumns(self.n_rows, kept.size, tuple(parts), self.runtime)

    def product(self, v: Features) -> Rows:
        """See `Design.product`."""
        out = np.zeros(self.n_rows)
        for part, slots, at in self.parts:
            w = v[at]
            used = np.flatnonzero(w)
            if used.size:
                part.product(slots[used], w[used], out, self.runtime)
        return out

    def cross(self, r: Rows, *, power: int = 1) -> Features:
        """See `Design.cross`."""
        out = np.zeros(self.size)
        for part, slots, at in self.parts:
            out[at] = part.cross(slots, r, self.runtime, power=power)
        return out

    def moments(self, r: Rows) -> tuple[Features, Features]:
        """`cross` of the columns and of their squares."""
        first, square = np.zeros(self.size), np.zeros(self.size)
        for part, slots, at in self.parts:
            first[at], square[at] = part.moments(slots, r, self.runtime)
        return first, square


def _large(part: BinaryColumns) -> int:
    """Blocks for rare columns: as large as leaves enough of them to share out."""
    shift, n_rows = part.shift, part.block_ptr.shape[0] << part.shift
    while shift < MAX_SHIFT and n_rows >> (shift + 1) >= MIN_BLOCKS:
        shift += 1
    return shift


def _copied(part: BinaryColumns, slots: Index, shift: int, runtime: Runtime) -> BinaryColumns:
    args = (part.block_ptr, part.row, slots, part.shift, shift, runtime)
    return BinaryColumns(np.arange(slots.size), *kernels.copy_slots(*args), shift)
