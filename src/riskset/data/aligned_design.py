"""The columns of one block of rows in units that all blocks share.

Each block was centred and scaled by itself; sums over several need one unit for each column.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from riskset._runtime import Runtime
from riskset._types import Features, Index, Matrix, Rows
from riskset.data.column_storage import SHIFT, BinaryColumns
from riskset.data.design import Design
from riskset.data.design_columns import power_of_two

__all__ = ["AlignedDesign", "aligned", "common_head"]


def common_head(heads: Sequence[Design]) -> Design:
    """Names and units of the columns of several designs, without their entries.

    A column is binary if it is in every block. Blocks of the same units keep them.
    """
    weight = np.array([head.n_rows for head in heads], dtype=np.float64)
    weight /= weight.sum()
    center = np.stack([head.center for head in heads])
    scale = np.stack([head.scale for head in heads])
    binary = np.all([head.is_binary for head in heads], axis=0)
    same = (center == center[0]).all(axis=0)
    middle = np.where(same, center[0], weight @ center)
    size = np.where(
        (scale == scale[0]).all(axis=0), scale[0], power_of_two(np.sqrt(weight @ scale**2))
    )
    columns = np.flatnonzero(binary)
    part = BinaryColumns(
        columns, np.zeros((1, columns.size + 1), np.int64), np.zeros(0, np.uint16), SHIFT
    )
    n_rows = sum(head.n_rows for head in heads)
    return Design(n_rows, heads[0].names, heads[0].keys, middle, size, (part,), heads[0].factors)


def aligned(design: Design, names: tuple[str, ...], keys: tuple[int | str, ...]) -> Design:
    """The same with more columns, which are 0, in another order."""
    place = {name: j for j, name in enumerate(names)}
    at = np.array([place[name] for name in design.names], dtype=np.int64)
    absent = np.setdiff1d(np.arange(len(names)), at)
    center, scale = np.zeros(len(names)), np.ones(len(names))
    center[at], scale[at] = design.center, design.scale
    n_blocks = max(1, (design.n_rows + (1 << SHIFT) - 1) >> SHIFT)
    nothing = np.zeros((n_blocks, absent.size + 1), np.int64), np.zeros(0, np.uint16)
    moved = [part.renumbered(at[part.columns]) for part in design.parts]
    parts = (*moved, BinaryColumns(absent, *nothing, SHIFT))
    return Design(design.n_rows, names, keys, center, scale, parts, design.factors)


@dataclass(frozen=True)
class AlignedDesign:
    """The operations of a `Design` on columns ``factor z + shift``, z being the stored ones."""

    design: Design
    factor: Features
    shift: Features
    runtime: Runtime

    @classmethod
    def of(cls, design: Design, head: Design, runtime: Runtime) -> "AlignedDesign":
        """In the units of `head`."""
        shift = (design.center - head.center) / head.scale
        return cls(design, design.scale / head.scale, shift, runtime)

    def _of(self, columns: Index | None) -> tuple[Features, Features]:
        return (
            (self.factor, self.shift)
            if columns is None
            else (self.factor[columns], self.shift[columns])
        )

    def cross(self, r: Rows, columns: Index | None = None, *, power: int = 1) -> Features:
        """See `Design.cross`."""
        factor, shift = self._of(columns)
        first = self.design.cross(r, columns, runtime=self.runtime)
        if power == 1:
            return np.asarray(factor * first + shift * r.sum())
        square = self.design.cross(r, columns, runtime=self.runtime, power=2)
        out = factor**2 * square + 2 * factor * shift * first + shift**2 * r.sum()
        return np.asarray(out)

    def product(self, v: Features, columns: Index | None = None) -> Rows:
        """See `Design.product`."""
        factor, shift = self._of(columns)
        return self.design.product(factor * v, columns, runtime=self.runtime) + float(shift @ v)

    def stored(self, columns: Index, rows: Index | None = None) -> Matrix:
        """See `Design.stored`."""
        factor, shift = self._of(columns)
        return self.design.stored(columns, rows) * factor + shift

    def sums(
        self, columns: Index, counts: Index, totals: Matrix, squares: Matrix
    ) -> tuple[Matrix, Matrix]:
        """Sums over sets of rows, and sums of products over all of them, in the common units."""
        factor, shift = self._of(columns)
        scaled = totals * factor
        cross = np.outer(scaled.sum(axis=0), shift)
        squares = squares * np.outer(factor, factor) + cross + cross.T
        squares += counts.sum() * np.outer(shift, shift)
        return scaled + counts[:, None] * shift, squares
