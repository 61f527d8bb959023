"""The design in the memory of a device, and its products with a vector for every replicate.

Replicates, here called lanes, share the design, which is copied once, as the CPU stores it. Arrays
of rows are (n, R), those of columns (R, q): see `riskset.kernels.cuda`.
"""

from dataclasses import dataclass, field

import numpy as np

from riskset._types import AnyArray, Index
from riskset.data.column_storage import (
    BinaryColumns,
    DenseColumns,
    SparseColumns,
    StoredColumns,
    ValuedColumns,
)
from riskset.data.design import Design
from riskset.kernels.cuda.backend import Array, Backend
from riskset.kernels.cuda.launch import Launcher

__all__ = ["DeviceColumns", "DeviceDesign"]

PANEL_ROWS = 1 << 14
"""Rows whose residuals stay in a device's cache while all columns read them."""
PARTIAL_NUMBERS = 1 << 25
"""Largest table of partial sums of X'r, in numbers."""


@dataclass(frozen=True)
class _Stored:
    """A part of the design: the part itself, and its arrays on the device."""

    part: StoredColumns
    arrays: dict[str, Array]


@dataclass(frozen=True)
class _Listed:
    """Chosen columns of a part, as X v reads them: sparse ones row by row."""

    stored: _Stored
    at: AnyArray
    slots: Array
    rows: dict[str, Array]


@dataclass(frozen=True)
class DeviceColumns:
    """Some columns of a design, ready for products: what `DeviceDesign.choose` makes."""

    columns: Index
    parts: tuple[_Listed, ...]


@dataclass
class DeviceDesign:
    """A design in the memory of a backend."""

    design: Design
    backend: Backend
    _stored: list[_Stored] = field(init=False)
    _launch: Launcher = field(init=False)

    def __post_init__(self) -> None:
        self._launch = Launcher(self.backend)
        self._stored = [_Stored(part, self._upload(part)) for part in self.design.parts]

    def _upload(self, part: StoredColumns) -> dict[str, Array]:
        if isinstance(part, DenseColumns):
            return {"blocks": self.backend.upload(part.blocks)}
        assert isinstance(part, SparseColumns)
        arrays = {"block_ptr": part.block_ptr, "row": part.row}
        if isinstance(part, ValuedColumns):
            arrays["value"] = part.value
        return {name: self.backend.upload(array) for name, array in arrays.items()}

    def _select(self, columns: Index | None) -> list[tuple[_Stored, AnyArray, AnyArray]]:
        stored = {id(s.part): s for s in self._stored}
        return [
            (stored[id(part)], slots.astype(np.int32), at.astype(np.int32))
            for part, slots, at in self.design.select(columns)
        ]

    # ------------------------------------------------------------------------------------ X'r

    def cross(self, r: Array, columns: Index | None = None, *, power: int = 1) -> Array:
        """``sum_i z[i, j]**power r[i]`` (R, q) of every lane of `r` (n, R); z: stored columns."""
        n_lanes = r.shape[1]
        width = self.design.n_features if columns is None else columns.size
        out = self.backend.empty((n_lanes, width), np.dtype(np.float64))
        for stored, slots, at in self._select(columns):
            panels = _panels(stored.part)
            step = max(8, PARTIAL_NUMBERS // (panels * n_lanes))
            for a in range(0, slots.size, step):
                some = slots[a : a + step]
                partial = self.backend.empty((panels, some.size, n_lanes), np.dtype(np.float64))
                self._cross_part(stored, some, r, power, partial)
                self._launch(
                    "combine_panels",
                    partial=partial,
                    to=self.backend.upload(at[a : a + step]),
                    n_panels=panels,
                    n_columns=some.size,
                    width=width,
                    n_lanes=n_lanes,
                    out=out,
                )
        return out

    def _cross_part(
        self, stored: _Stored, slots: AnyArray, r: Array, power: int, partial: Array
    ) -> None:
        part = stored.part
        arguments: dict[str, Array | int | float] = {
            **stored.arrays,
            "slots": self.backend.upload(slots),
            "r": r,
            "n_slots": part.columns.size,
            "n_columns": slots.size,
            "n_lanes": r.shape[1],
            "partial": partial,
        }
        if isinstance(part, DenseColumns):
            n_blocks, _, block_rows = part.blocks.shape
            self._launch(
                "cross_dense",
                **arguments,
                power=power,
                block_rows=block_rows,
                n_rows=part.n_rows,
                n_blocks=n_blocks,
                panel_blocks=_panel_blocks(block_rows),
            )
            return
        assert isinstance(part, SparseColumns)
        arguments |= {
            "shift": part.shift,
            "n_blocks": part.block_ptr.shape[0],
            "panel_blocks": _panel_blocks(1 << part.shift),
        }
        if isinstance(part, ValuedColumns):
            self._launch("cross_valued", **arguments, power=power)
        else:
            self._launch("cross_binary", **arguments)

    # ------------------------------------------------------------------------------------ X v

    def choose(self, columns: Index) -> DeviceColumns:
        """List some columns row by row, for products with them."""
        parts = []
        for stored, slots, at in self._select(columns):
            on_device = self.backend.upload(slots)
            rows = (
                {}
                if isinstance(stored.part, DenseColumns)
                else self._rows(stored, slots, on_device)
            )
            parts.append(_Listed(stored, at, on_device, rows))
        return DeviceColumns(columns, tuple(parts))

    def _rows(self, stored: _Stored, slots: AnyArray, on_device: Array) -> dict[str, Array]:
        part = stored.part
        assert isinstance(part, SparseColumns)
        n_rows, backend = self.design.n_rows, self.backend
        entries = np.diff(part.block_ptr, axis=1)[:, slots].sum(axis=1)
        base = np.append(0, np.cumsum(entries))
        has_value = isinstance(part, ValuedColumns)
        made = {
            "row_ptr": backend.empty((n_rows + 1,), np.dtype(np.int64)),
            "column": backend.empty((int(base[-1]),), np.dtype(np.int32)),
        }
        kept = backend.empty((int(base[-1]) if has_value else 0,), np.dtype(np.float64))
        self._launch(
            "list_rows",
            block_ptr=stored.arrays["block_ptr"],
            row=stored.arrays["row"],
            value=stored.arrays.get("value", kept),
            slots=on_device,
            base=backend.upload(base[:-1]),
            n_slots=part.columns.size,
            n_columns=slots.size,
            shift=part.shift,
            n_rows=n_rows,
            has_value=int(has_value),
            count=backend.empty((n_rows,), np.dtype(np.int32)),
            kept=kept,
            **made,
        )
        return made | ({"value": kept} if has_value else {})

    def product(self, v: Array, chosen: DeviceColumns) -> Array:
        """``sum_j z[i, j] v[j]`` (n, R) over the chosen columns, of every lane of `v` (R, q)."""
        n_lanes = v.shape[0]
        out = self.backend.empty((self.design.n_rows, n_lanes), np.dtype(np.float64))
        self._launch("fill", value=0.0, n_rows=self.design.n_rows, n_lanes=n_lanes, x=out)
        for listed in chosen.parts:
            picked = self.backend.empty((listed.at.size, n_lanes), np.dtype(np.float64))
            self._launch(
                "pick_columns",
                x=v,
                chosen=self.backend.upload(listed.at),
                width=v.shape[1],
                n_columns=listed.at.size,
                n_lanes=n_lanes,
                out=picked,
            )
            self._product_part(listed, picked, out)
        return out

    def _product_part(self, listed: _Listed, v: Array, out: Array) -> None:
        part, n_rows, n_lanes = listed.stored.part, self.design.n_rows, v.shape[1]
        if isinstance(part, DenseColumns):
            self._launch(
                "product_dense",
                blocks=listed.stored.arrays["blocks"],
                slots=listed.slots,
                v=v,
                n_slots=part.columns.size,
                n_columns=listed.at.size,
                block_rows=part.blocks.shape[2],
                n_rows=n_rows,
                n_lanes=n_lanes,
                out=out,
            )
            return
        name = "product_valued" if isinstance(part, ValuedColumns) else "product_binary"
        self._launch(name, v=v, n_rows=n_rows, n_lanes=n_lanes, out=out, **listed.rows)

    # ------------------------------------------------------------------------- samples of rows

    def bits(
        self,
        part: BinaryColumns,
        slots: Index,
        is_drawn: AnyArray,
        start: Index,
        place: Index,
        n_words: int,
    ) -> Array:
        """Sampled rows of some columns of a part, as `gram_ref.fill_bits` has them."""
        (stored,) = [s for s in self._stored if s.part is part]
        out = self.backend.empty((slots.size, n_words), np.dtype(np.uint64))
        self._launch(
            "fill_bits",
            **stored.arrays,
            slots=self.backend.upload(slots.astype(np.int32)),
            is_drawn=self.backend.upload(is_drawn),
            start=self.backend.upload(start.astype(np.int32)),
            place=self.backend.upload(place.astype(np.int32)),
            n_slots=part.columns.size,
            n_columns=slots.size,
            shift=part.shift,
            n_blocks=part.block_ptr.shape[0],
            n_words=n_words,
            bits=out,
        )
        return out


def _panel_blocks(block_rows: int) -> int:
    return max(1, PANEL_ROWS // block_rows)


def _panels(part: StoredColumns) -> int:
    if isinstance(part, DenseColumns):
        n_blocks, _, block_rows = part.blocks.shape
    else:
        assert isinstance(part, SparseColumns)
        n_blocks, block_rows = part.block_ptr.shape[0], 1 << part.shift
    return int(-(-n_blocks // _panel_blocks(block_rows)))
