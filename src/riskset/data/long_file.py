"""Long tables of covariates into the file of a design, larger than memory allows.

The database sorts the entries by block of rows, covariate and row, spilling to disk what does not
fit; each block is then a few thousand rows at a time. The design is the one that `long_design`
makes in memory, to the last bit.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from riskset._types import AnyArray, Index
from riskset.data.assemble import SHIFT
from riskset.data.database import StoredTable, reading
from riskset.data.design import Design
from riskset.data.design_build import Block, Plan, Spool, lay_out
from riskset.data.design_file import Contents, read_contents
from riskset.data.long_query import Found, LongColumns, LongQuery
from riskset.data.long_table import Duplicates, LongDesign, UnknownRows, check_options
from riskset.data.writers import check_target

__all__ = ["long_design_in_file", "stored_long_design"]


def long_design_in_file(
    path: Path,
    stored: StoredTable,
    columns: LongColumns,
    row_keys: AnyArray,
    *,
    duplicates: Duplicates = "error",
    unknown_rows: UnknownRows = "error",
) -> LongDesign:
    """As `long_design` of all covariates, built in the file `path` and opened.

    Raises
    ------
    InputError
        As `long_design`, or if the file cannot be written there.
    """
    check_options(duplicates, unknown_rows)
    check_target(path)
    with reading(stored.file):
        reader = LongQuery(stored, columns, row_keys)
        if unknown_rows == "drop":
            reader.drop_unknown_rows()
        found = reader.count(None)
        with Spool(path.absolute().parent, found.count.size) as spool:
            blocks = _Blocks(reader, found, duplicates)
            for block in blocks:
                spool.add(block)
            n_dropped = {
                **reader.n_dropped,
                "repeated_entries": int(blocks.repeated.sum()),
                "zero_entries": spool.n_zero,
            }
            about = {
                "long": [columns.row, columns.covariate, columns.value],
                "duplicates": duplicates,
                "unknown_rows": unknown_rows,
                "n_dropped": {name: n for name, n in n_dropped.items() if n},
            }
            names, place = tuple(map(str, found.keys)), found.place
            plan = Plan(row_keys.size, names, found.keys, place, blocks.groups(), row_keys, about)
            lay_out(path, spool, plan)
    return stored_long_design(path, read_contents(path, verify=False))


def stored_long_design(path: Path, contents: Contents) -> LongDesign:
    """The design of a file that is open, and what was left out when it was built."""
    design = Design.of_contents(contents, path)
    return LongDesign(design, contents.about.get("n_dropped", {}), design.n_features)


class _Blocks:
    """Entries as blocks; those of a row and covariate merged into one.

    Attributes
    ----------
    repeated : (p,) int64
        Entries of each covariate that were there before.
    """

    def __init__(self, reader: LongQuery, found: Found, duplicates: Duplicates) -> None:
        self._reader, self._found, self._duplicates = reader, found, duplicates
        self.repeated = np.zeros(found.count.size, np.int64)
        self._first: tuple[int, int] | None = None

    def groups(self) -> list[Index]:
        """Covariates whose every entry is 1 have parts of their own, unless sums make them more."""
        every = np.arange(self.repeated.size)
        ones = every < self._found.n_ones
        if self._duplicates == "sum":
            ones &= self.repeated == 0
        return [every[ones], every[~ones]]

    def __iter__(self) -> Iterator[Block]:
        for number, column, row, value in _by_block(self._reader, self._found):
            key = column.astype(np.int64) << SHIFT | row
            again = key[1:] == key[:-1]
            block = Block(number, column, row, value)
            if again.any():
                block = self._merged(block, again)
            yield block
        if self._duplicates == "error" and self.repeated.any():
            assert self._first is not None
            total = int(self._found.count.sum())
            raise self._reader.repeated_complaint(
                self._found, int(self.repeated.sum()), total, *self._first
            )

    def _merged(self, block: Block, again: AnyArray) -> Block:
        column, row, value = block.column, block.row, block.values()
        np.add.at(self.repeated, column[1:][again], 1)
        first = np.flatnonzero(np.append(True, ~again))
        if self._duplicates == "error":
            # The first column in the order of the design, and there the first row.
            place = self._found.place[column[1:][again]]
            at = int(np.argmin(place))
            mine = (int(place[at]), (block.number << SHIFT) + int(row[1:][again][at]))
            self._first = mine if self._first is None else min(self._first, mine)
        merge = np.maximum if self._duplicates == "max" else np.add
        merged = merge.reduceat(value, first)
        return Block(block.number, column[first], row[first], merged)


def _by_block(reader: LongQuery, found: Found) -> Iterator[Block]:
    """The sorted entries cut into blocks; columns of ones come first and have no values."""
    held: list[tuple[AnyArray, ...]] = []

    def cut(arrays: tuple[AnyArray, ...], number: int) -> Block:
        row, column, value = arrays
        head = int(np.searchsorted(column, found.n_ones)) if value.size else column.size
        return Block(number, column, row & ((1 << SHIFT) - 1), value[head:])

    for row, column, value in reader.sorted_entries(found):
        of_block = row >> SHIFT
        borders = np.flatnonzero(np.diff(of_block)) + 1
        for start, stop in zip([0, *borders], [*borders, row.size], strict=True):
            piece = (row[start:stop], column[start:stop], value[start:stop])
            if held and held[0][0][0] >> SHIFT != of_block[start]:
                yield cut(_joined(held), int(held[0][0][0] >> SHIFT))
                held = []
            held.append(piece)
    if held:
        yield cut(_joined(held), int(held[0][0][0] >> SHIFT))


def _joined(pieces: list[tuple[AnyArray, ...]]) -> tuple[AnyArray, ...]:
    return tuple(np.concatenate(arrays) for arrays in zip(*pieces, strict=True))
