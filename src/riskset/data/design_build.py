"""A design built in its file, some rows at a time: memory does not grow with the entries.

Entries are kept in a temporary file, block of rows by block, while what each column is shows itself
(of ones, of values, dense); then they are laid out in the file itself. The temporary file is gone
as soon as the process is, whatever ends it.
"""

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from riskset._errors import InputError
from riskset._types import AnyArray, Features, Index, Rows
from riskset.data.checks import MISSING, Places, as_array
from riskset.data.column_storage import SHIFT
from riskset.data.design_columns import (
    DENSE_ABOVE,
    as_float,
    canonical_csc,
    column_keys,
    column_names,
    dense_part,
    power_of_two,
)
from riskset.data.design_map import Draft, Section, as_arrays, drafting, head_of
from riskset.data.writers import check_target

__all__ = ["Block", "DesignLayout", "Spool", "lay_out", "write_blocks"]

BLOCK = 1 << SHIFT
INSIDE = BLOCK - 1


class Block(NamedTuple):
    """Entries of a block of up to 4096 rows, by column and then by row within the block.

    `value` has the values of the last entries; those before them are 1.
    """

    number: int
    column: AnyArray
    row: AnyArray
    value: Rows

    def values(self) -> Rows:
        """Of all entries."""
        return np.append(np.ones(self.column.size - self.value.size), self.value)


class Spool:
    """Blocks in a temporary file, and what is known of each column so far.

    Of each column (p,): the number of entries other than 0, whether they all are 1, and the sum of
    their squares, added up in the order of the rows as `columns_ref.describe` does. `n_zero` counts
    the entries of value 0, which are left out.
    """

    def __init__(self, folder: Path, n_columns: int) -> None:
        self._stream = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - open until `close`
        self._sizes: list[tuple[int, int, int]] = []
        self.count = np.zeros(n_columns, np.int64)
        self.only_ones = np.ones(n_columns, bool)
        self.squares = np.zeros(n_columns)
        self.n_zero = 0

    def __enter__(self) -> "Spool":
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def add(self, block: Block) -> None:
        """Keep a block; their numbers must rise."""
        number, column, row, value = block
        is_zero = np.append(np.zeros(column.size - value.size, bool), value == 0)
        if is_zero.any():
            self.n_zero += int(is_zero.sum())
            column, row, value = column[~is_zero], row[~is_zero], value[value != 0]
        head = column.size - value.size
        self.count += np.bincount(column, minlength=self.count.size)
        # Columns here without values are of whole numbers, whose sums do not depend on the order.
        self.squares += np.bincount(column[:head], minlength=self.count.size)
        with np.errstate(over="ignore"):
            np.add.at(self.squares, column[head:], value * value)
        self.only_ones[column[head:][value != 1]] = False
        if (value == 1).all():
            value = value[:0]
        self._sizes.append((number, column.size, value.size))
        for array, dtype in ((column, np.int32), (row, np.uint16), (value, np.float64)):
            self._stream.write(np.ascontiguousarray(array, dtype).data)

    def blocks(self, n_blocks: int) -> Iterator[Block]:
        """All blocks in order, those without entries too."""
        self._stream.seek(0)
        at = 0
        for number, m, k in [*self._sizes, (n_blocks, 0, 0)]:
            for empty in range(at, number):
                yield Block(empty, np.zeros(0, np.int32), np.zeros(0, np.uint16), np.zeros(0))
            at = number + 1
            if number < n_blocks:
                column, row = self._read(np.int32, m), self._read(np.uint16, m)
                yield Block(number, column, row, self._read(np.float64, k))

    def _read(self, dtype: type, count: int) -> AnyArray:
        return np.frombuffer(self._stream.read(count * np.dtype(dtype).itemsize), dtype)


# -------------------------------------------------------------------------------------- laying out


@dataclass(frozen=True)
class DesignLayout:
    """How the columns of a spool become those of a design.

    `place` (p,) maps columns of the spool to columns of the design. Each of `groups`, rising
    columns of the spool, has parts of its own, which add up in their order. See `Contents` for the
    rest.
    """

    n_rows: int
    names: tuple[str, ...]
    keys: tuple[int | str, ...]
    place: Index
    groups: Sequence[Index]
    row_keys: AnyArray | None
    about: Mapping[str, Any]


@dataclass
class _Target:
    """A part that is being filled."""

    kind: str
    columns: Index
    n_entries: int
    filled: int = 0


def lay_out(path: Path, spool: Spool, plan: DesignLayout) -> None:
    """Write the file from the spool."""
    n_rows, place = plan.n_rows, plan.place
    n_blocks = max(1, -(-n_rows // BLOCK))
    block_rows = min(BLOCK, max(1, n_rows))
    targets = _targets(spool, plan)
    center, scale = np.zeros(place.size), np.ones(place.size)
    for target in targets:
        if target.kind == "valued":
            c = target.columns
            scale[place[c]] = power_of_two(
                np.sqrt(spool.squares[c] / np.maximum(spool.count[c], 1))
            )
    sections = {"center": Section.of(center), "scale": Section.of(scale)}
    keys = as_arrays(plan.row_keys, n_rows)
    sections |= {name: Section.of(array) for name, array in keys.items()}
    numbers = []
    for k, target in enumerate(targets):
        q = target.columns.size
        sections[f"{k}.columns"] = Section("<i8", (q,))
        if target.kind == "dense":
            sections[f"{k}.blocks"] = Section("<f8", (n_blocks, q, block_rows))
            numbers.append({"kind": "dense", "n_rows": n_rows})
            continue
        sections[f"{k}.block_ptr"] = Section("<i8", (n_blocks, q + 1))
        sections[f"{k}.row"] = Section("<u2", (target.n_entries,))
        if target.kind == "valued":
            sections[f"{k}.value"] = Section("<f8", (target.n_entries,))
        numbers.append({"kind": target.kind, "shift": SHIFT})
    head = head_of(n_rows, plan.names, plan.keys, numbers, plan.about)
    with drafting(path, head, sections) as draft:
        _fill(draft, spool, targets, scale[place], n_blocks, block_rows)
        for k, target in enumerate(targets):
            columns = place[target.columns]
            draft.write(f"{k}.columns", 0, columns)
            if target.kind == "dense":
                _center(
                    draft, f"{k}.blocks", columns, (n_blocks, block_rows, n_rows), center, scale
                )
        for name, array in {"center": center, "scale": scale, **keys}.items():
            draft.write(name, 0, array)


def _targets(spool: Spool, plan: DesignLayout) -> list[_Target]:
    """The parts, as `assemble_csc` makes them of each group."""
    is_dense = ~spool.only_ones & (spool.count > DENSE_ABOVE * plan.n_rows)
    kinds = {
        "binary": spool.only_ones,
        "valued": ~spool.only_ones & ~is_dense,
        "dense": is_dense,
    }
    chosen = ((kind, group[which[group]]) for group in plan.groups for kind, which in kinds.items())
    return [_Target(kind, c, int(spool.count[c].sum())) for kind, c in chosen if c.size]


def _fill(
    draft: Draft,
    spool: Spool,
    targets: list[_Target],
    scale: Features,
    n_blocks: int,
    block_rows: int,
) -> None:
    """Write the entries; dense parts are not yet centred. `scale` is by column of the spool."""
    part_of, slot_of = np.zeros(scale.size, np.int64), np.zeros(scale.size, np.int64)
    for k, target in enumerate(targets):
        part_of[target.columns] = k
        slot_of[target.columns] = np.arange(target.columns.size)
    for block in spool.blocks(n_blocks):
        part, values = part_of[block.column], block.values()
        for k, target in enumerate(targets):
            mine = part == k
            q, column = target.columns.size, block.column[mine]
            row, value, slot = block.row[mine], values[mine], slot_of[column]
            if target.kind == "dense":
                dense = np.zeros((q, block_rows))
                dense[slot, row] = value
                draft.write(f"{k}.blocks", block.number * q * block_rows, dense)
                continue
            ends = target.filled + np.cumsum(np.bincount(slot, minlength=q))
            pointer = np.append(target.filled, ends)
            draft.write(f"{k}.block_ptr", block.number * (q + 1), pointer)
            draft.write(f"{k}.row", target.filled, row)
            if target.kind == "valued":
                draft.write(f"{k}.value", target.filled, value / scale[column])
            target.filled += row.size


def _center(
    draft: Draft,
    name: str,
    columns: Index,
    shape: tuple[int, int, int],
    center: Features,
    scale: Features,
) -> None:
    """Centre and scale the columns of a dense part, one at a time."""
    n_blocks, block_rows, n_rows = shape
    q = columns.size
    for s in range(q):
        starts = [(b * q + s) * block_rows for b in range(n_blocks)]
        x = np.concatenate([draft.read(name, start, block_rows) for start in starts])[:n_rows]
        part = dense_part(columns[s : s + 1], [x], n_rows, center, scale)
        for start, block in zip(starts, part.blocks, strict=True):
            draft.write(name, start, block)


# -------------------------------------------------------------------------------------- row blocks


def write_blocks(
    path: Path,
    blocks: Iterable[object],
    names: Sequence[str] | None = None,
    keys: Sequence[int | str] | None = None,
) -> None:
    """Build the file from blocks of rows; see `Design.from_blocks`."""
    check_target(path)
    stream = iter(blocks)
    block = next(stream, None)
    if block is None:
        raise InputError(
            "there are no blocks of rows.", hint="an exhausted iterator has no blocks."
        )
    first = _entries(block, 0, 0, ())
    p, n_rows = first.shape[1], first.shape[0]
    known = column_names(names, keys, p)

    def matrices() -> Iterator[sp.coo_array]:
        nonlocal n_rows
        yield first
        for number, block in enumerate(stream, start=1):
            matrix = _entries(block, number, n_rows, known)
            n_rows += matrix.shape[0]
            yield matrix

    with Spool(path.absolute().parent, p) as spool:
        for block in _recut(matrices(), p):
            spool.add(block)
        every = np.arange(p, dtype=np.int64)
        plan = DesignLayout(n_rows, known, column_keys(keys, known), every, [every], None, {})
        lay_out(path, spool, plan)


def _entries(block: object, number: int, first_row: int, names: Sequence[str]) -> sp.coo_array:
    """A block of rows as entries, each once and finite."""
    if sp.issparse(block):
        matrix = canonical_csc(block)
    else:
        array = as_array(block, f"block {number}", Places())
        if array.dtype == object or array.dtype.kind in "US":
            array = as_float(array)
        if array.ndim != 2 or array.dtype.kind not in "buif":
            raise InputError(
                f"block {number} must be a table of numbers, but its shape is {array.shape} and "
                f"its type {array.dtype}.",
                hint="pass arrays or sparse matrices of some rows and all columns.",
            )
        matrix = sp.csc_array(array)
    if names and matrix.shape[1] != len(names):
        raise InputError(
            f"block {number} has {matrix.shape[1]:,} columns, but block 0 has {len(names):,}.",
            hint="every block must have all columns, in one order.",
        )
    entries = matrix.tocoo()
    bad = np.flatnonzero(~np.isfinite(entries.data))
    if bad.size:
        i, j = int(entries.row[bad[0]]), int(entries.col[bad[0]])
        raise InputError(
            f"{bad.size:,} entries of block {number} are missing or infinite (first: row "
            f"{first_row + i} of all, column {names[j] if names else j!r}, value "
            f"{entries.data[bad[0]].item()!r}).",
            hint=MISSING,
        )
    return entries


def _recut(matrices: Iterable[sp.coo_array], p: int) -> Iterator[Block]:
    """Blocks of 4096 rows from pieces of any height."""
    held: list[tuple[AnyArray, AnyArray, AnyArray]] = []
    first = n_rows = 0

    def blocks(until: int) -> Iterator[Block]:
        """The blocks from `first` up to `until`; what is beyond stays."""
        row, column, value = (np.concatenate(arrays) for arrays in zip(*held, strict=True))
        order = np.argsort(((row >> SHIFT) * p + column << SHIFT) + (row & INSIDE))
        row, column, value = row[order], column[order], value[order]
        borders = np.searchsorted(row >> SHIFT, np.arange(first, until + 1))
        for number, a, b in zip(range(first, until), borders[:-1], borders[1:], strict=True):
            inside = (row[a:b] & INSIDE).astype(np.uint16)
            yield Block(number, column[a:b].astype(np.int32), inside, value[a:b])
        held[:] = [(row[borders[-1] :], column[borders[-1] :], value[borders[-1] :])]

    for matrix in matrices:
        row = matrix.row.astype(np.int64) + n_rows
        held.append((row, matrix.col.astype(np.int64), matrix.data.astype(np.float64)))
        n_rows += matrix.shape[0]
        if n_rows >> SHIFT > first:
            yield from blocks(n_rows >> SHIFT)
            first = n_rows >> SHIFT
    yield from blocks(-(-n_rows // BLOCK))
