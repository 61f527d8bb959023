"""Long tables of covariates, (row key, covariate key, value), as columns of a `Design`.

Entries of value 0 are ignored, rows without entries are valid, and what is left out is counted.

A long table that is larger than memory becomes the file of a design: the database sorts the entries
by block of rows, covariate and row, spilling to disk what does not fit, and each block is a few
thousand rows at a time. The design is the same, to the last bit, as the one made in memory.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import numpy as np

from riskset._errors import InputError
from riskset._types import AnyArray, Index
from riskset.data.column_storage import SHIFT, StoredColumns
from riskset.data.database import StoredTable, file_errors
from riskset.data.design import Design
from riskset.data.design_build import Block, DesignLayout, Spool, lay_out
from riskset.data.design_map import Contents, read_contents
from riskset.data.long_query import Entries, LongColumns, LongQuery, LongTableColumns
from riskset.data.table_files import Duplicates, UnknownRows
from riskset.data.writers import check_target

__all__ = [
    "LongColumns",
    "LongDesign",
    "check_options",
    "find_columns",
    "long_design",
    "long_design_in_file",
    "stored_long_design",
]

KNOWN_NAMES = (
    ("rowid", "row_id"),
    ("covariateid", "covariate_id", "covariate"),
    ("covariatevalue", "covariate_value", "value"),
)


@dataclass(frozen=True)
class LongDesign:
    """The covariates of a long table, counts of what was left out, and how many occur."""

    design: Design
    n_dropped: Mapping[str, int]
    n_occurring: int


def find_columns(
    columns: Sequence[str], place: str, names: Sequence[str] | None = None, row: str | None = None
) -> LongColumns:
    """Which column is which: those named, or the OHDSI names in any case.

    `row`, the column that identifies the rows of the outcomes table, comes before OHDSI's name. An
    `InputError` if a column is absent, or it is not clear which column is which.
    """
    if names is not None:
        if isinstance(names, str) or len(names) not in (2, 3):
            raise InputError(
                "`covariate_columns` must name two or three columns (row key, covariate key, "
                f"value), but it is {names!r}.",
                hint="for example ('rowId', 'covariateId', 'covariateValue').",
            )
        for name in names:
            if name not in columns:
                raise InputError.unknown_name("column", name, columns, place=place)
        return LongColumns(names[0], names[1], names[2] if len(names) == 3 else None)
    lower = {name.lower(): name for name in columns}
    named = [next((lower[n] for n in known if n in lower), None) for known in KNOWN_NAMES]
    if row in columns:
        named[0] = row
    listed = ", ".join(map(repr, columns))
    how = "name the columns with `covariate_columns=('row', 'covariate', 'value')`"
    if named[0] is None or named[1] is None:
        lacks = "row" if named[0] is None else "covariate"
        raise InputError(
            f"it is not clear which column of {place} identifies the {lacks}; it has {listed}.",
            hint=f"{how}, or call them rowId, covariateId and covariateValue.",
        )
    if named[2] is None and len(columns) > 2:
        raise InputError(
            f"it is not clear which column of {place} holds the value; it has {listed}.",
            hint=f"{how}, or with `covariate_columns=({named[0]!r}, {named[1]!r})` if every "
            "value is 1.",
        )
    return LongColumns(named[0], named[1], named[2])


def long_design(
    stored: StoredTable,
    columns: LongColumns,
    row_keys: AnyArray,
    *,
    keys: Sequence[int | str] | None = None,
    duplicates: Duplicates = "error",
    unknown_rows: UnknownRows = "error",
) -> LongDesign:
    """A long table as a design with one column for each covariate key, sorted by key.

    `row_keys` (n_rows,) are the keys of the rows of the design, each once. `keys` are the columns
    wanted, for new data: keys beyond them are left out and counted, and those that do not occur
    give columns of zeros; by default all that occur. Raises `InputError` if a key or value is
    missing, a value is not finite, a row is unknown, an entry is repeated, or there are entries but
    none of `keys`.
    """
    check_options(duplicates, unknown_rows)
    with file_errors(stored.file):
        reader = LongQuery(stored, columns, row_keys, drop_unknown=unknown_rows == "drop")
        order = reader.count(keys)
        entries = reader.entries(order)
    n_dropped = dict(reader.n_dropped)
    repeated = _sort_rows(entries)
    if repeated.any():
        if duplicates == "error":
            first = _first_repeated(order, entries, repeated)
            total = int(entries.indices.size)
            raise reader.repeated_complaint(order, int(repeated.sum()), total, *first)
        before = entries.indices.size
        entries = _merged(entries, repeated, duplicates)
        n_dropped["repeated_entries"] = before - entries.indices.size
    n_dropped["zero_entries"] = int(np.count_nonzero(entries.values == 0))
    design = _design(order.keys, entries, row_keys.size)
    n_occurring = int(np.count_nonzero(order.count))
    return LongDesign(design, {name: n for name, n in n_dropped.items() if n}, n_occurring)


def check_options(duplicates: str, unknown_rows: str) -> None:
    """Refuse words that `long_design` does not know."""
    for name, value, words in (
        ("duplicates", duplicates, get_args(Duplicates)),
        ("unknown_rows", unknown_rows, get_args(UnknownRows)),
    ):
        if value not in words:
            raise InputError(
                f"`{name}` must be {' or '.join(map(repr, words))}, but it is {value!r}.",
                hint="choose one of these, or leave it out.",
            )


def _sort_rows(entries: Entries) -> Index:
    """Sort every column by row, in place, so that the bits do not depend on the order of the file.

    Returns the number of entries of each column that were there before.
    """
    repeated = np.zeros(entries.indptr.size - 1, np.int64)
    for j in range(repeated.size):
        rows, values = entries.column(j)
        if values is None:
            rows.sort()
        else:
            if (rows[1:] > rows[:-1]).all():
                continue
            order = np.argsort(rows, kind="stable")
            in_order = rows[order]
            if (in_order[1:] == in_order[:-1]).any():
                # By value too, so that sums of repeated entries have the same bits.
                order = np.lexsort((values, rows))
            rows[:], values[:] = rows[order], values[order]
        repeated[j] = np.count_nonzero(rows[1:] == rows[:-1])
    return repeated


def _first_repeated(order: LongTableColumns, entries: Entries, repeated: Index) -> tuple[int, int]:
    """Column of the design and row of the first entry that was given twice."""
    j = min(np.flatnonzero(repeated), key=lambda j: int(order.place[j]))
    rows, _ = entries.column(int(j))
    return int(order.place[j]), int(rows[:-1][rows[1:] == rows[:-1]][0])


def _merged(entries: Entries, repeated: Index, how: Duplicates) -> Entries:
    """One entry for each row and covariate."""
    columns = []
    for j in range(repeated.size):
        rows, values = entries.column(j)
        if repeated[j]:
            first = np.flatnonzero(np.append(True, rows[1:] != rows[:-1]))
            if how == "sum":
                values = np.add.reduceat(np.ones(rows.size) if values is None else values, first)
            elif values is not None:
                values = np.maximum.reduceat(values, first)
            rows = rows[first]
        columns.append((j, rows, values))
    columns.sort(key=lambda column: column[2] is not None)
    valued = [values for _, _, values in columns if values is not None]
    return Entries(
        indptr=np.append(0, np.cumsum([rows.size for _, rows, _ in columns])).astype(np.int64),
        indices=np.concatenate([rows for _, rows, _ in columns]),
        values=np.concatenate(valued) if valued else np.zeros(0),
        place=entries.place[[j for j, _, _ in columns]],
        n_ones=len(columns) - len(valued),
    )


def _design(keys: tuple[int | str, ...], entries: Entries, n_rows: int) -> Design:
    """The columns in the order of their keys."""
    ones, p = entries.n_ones, len(keys)
    center, scale = np.zeros(p), np.ones(p)
    parts: list[StoredColumns] = []
    for pick, values in ((slice(0, ones), None), (slice(ones, p), entries.values)):
        place = entries.place[pick]
        if place.size == 0:
            continue
        start, stop, _ = pick.indices(p)
        ptr = entries.indptr[start : stop + 1]
        some = Design.from_csc(
            ptr - ptr[0],
            entries.indices[ptr[0] : ptr[-1]],
            values,
            n_rows,
            keys=[keys[j] for j in place],
        )
        center[place], scale[place] = some.center, some.scale
        parts += [part.renumbered(place[part.columns]) for part in some.parts]
    return Design(n_rows, tuple(map(str, keys)), keys, center, scale, tuple(parts))


# -------------------------------------------------------------------- into a file


def long_design_in_file(
    path: Path,
    stored: StoredTable,
    columns: LongColumns,
    row_keys: AnyArray,
    *,
    duplicates: Duplicates = "error",
    unknown_rows: UnknownRows = "error",
) -> LongDesign:
    """As `long_design` of all covariates, built in the file `path` and opened."""
    check_options(duplicates, unknown_rows)
    check_target(path)
    with file_errors(stored.file):
        reader = LongQuery(stored, columns, row_keys, drop_unknown=unknown_rows == "drop")
        order = reader.count(None)
        with Spool(path.absolute().parent, order.count.size) as spool:
            blocks = _Blocks(reader, order, duplicates)
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
            names, place = tuple(map(str, order.keys)), order.place
            plan = DesignLayout(
                row_keys.size, names, order.keys, place, blocks.groups(), row_keys, about
            )
            lay_out(path, spool, plan)
    return stored_long_design(path, read_contents(path, verify=False))


def stored_long_design(path: Path, contents: Contents) -> LongDesign:
    """The design of a file that is open, and what was left out when it was built."""
    design = Design.of_contents(contents, path)
    return LongDesign(design, contents.about.get("n_dropped", {}), design.n_features)


class _Blocks:
    """Entries as blocks; those of a row and covariate merged into one, and counted (`repeated`)."""

    def __init__(self, reader: LongQuery, order: LongTableColumns, duplicates: Duplicates) -> None:
        self._reader, self._order, self._duplicates = reader, order, duplicates
        self.repeated = np.zeros(order.count.size, np.int64)
        self._first: tuple[int, int] | None = None

    def groups(self) -> list[Index]:
        """Covariates whose every entry is 1, unless sums make them more, and the others."""
        every = np.arange(self.repeated.size)
        ones = every < self._order.n_ones
        if self._duplicates == "sum":
            ones &= self.repeated == 0
        return [every[ones], every[~ones]]

    def __iter__(self) -> Iterator[Block]:
        for number, column, row, value in _by_block(self._reader, self._order):
            key = column.astype(np.int64) << SHIFT | row
            again = key[1:] == key[:-1]
            block = Block(number, column, row, value)
            if again.any():
                block = self._merged(block, again)
            yield block
        if self._duplicates == "error" and self.repeated.any():
            assert self._first is not None
            total = int(self._order.count.sum())
            raise self._reader.repeated_complaint(
                self._order, int(self.repeated.sum()), total, *self._first
            )

    def _merged(self, block: Block, again: AnyArray) -> Block:
        column, row, value = block.column, block.row, block.values()
        np.add.at(self.repeated, column[1:][again], 1)
        first = np.flatnonzero(np.append(True, ~again))
        if self._duplicates == "error":
            # The first column in the order of the design, and there the first row.
            place = self._order.place[column[1:][again]]
            at = int(np.argmin(place))
            mine = (int(place[at]), (block.number << SHIFT) + int(row[1:][again][at]))
            self._first = mine if self._first is None else min(self._first, mine)
        merge = np.maximum if self._duplicates == "max" else np.add
        merged = merge.reduceat(value, first)
        return Block(block.number, column[first], row[first], merged)


def _by_block(reader: LongQuery, order: LongTableColumns) -> Iterator[Block]:
    """The sorted entries cut into blocks; columns of ones come first and have no values."""
    held: list[tuple[AnyArray, ...]] = []

    def cut(arrays: tuple[AnyArray, ...], number: int) -> Block:
        row, column, value = arrays
        head = int(np.searchsorted(column, order.n_ones)) if value.size else column.size
        return Block(number, column, row & ((1 << SHIFT) - 1), value[head:])

    for row, column, value in reader.sorted_entries(order):
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
