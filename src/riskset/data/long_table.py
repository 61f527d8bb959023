"""Long tables of covariates, (row key, covariate key, value), as columns of a `Design`.

An entry of value 0 is no entry, rows without any entry are legal, and what is left out is counted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from riskset._errors import InputError
from riskset._keywords import setting
from riskset._types import AnyArray, Index
from riskset.data.database import StoredTable, reading
from riskset.data.design import Design
from riskset.data.long_query import Entries, Found, LongColumns, LongQuery
from riskset.data.parts import Part

__all__ = [
    "Duplicates",
    "LongColumns",
    "LongDesign",
    "LongTableFormat",
    "UnknownRows",
    "check_options",
    "find_columns",
    "long_design",
]

Duplicates = Literal["error", "sum", "max"]
UnknownRows = Literal["error", "drop"]

KNOWN_NAMES = (
    ("rowid", "row_id"),
    ("covariateid", "covariate_id", "covariate"),
    ("covariatevalue", "covariate_value", "value"),
)


@dataclass(frozen=True, kw_only=True)
class LongTableFormat:
    """How a long table of covariates is read."""

    covariate_columns: Sequence[str] | None = setting(
        None,
        "Columns (row, covariate) or (row, covariate, value) of the long table. OHDSI's names "
        "``rowId``, ``covariateId`` and ``covariateValue`` are recognised.",
    )
    duplicates: Duplicates | None = setting(
        None,
        'What to do with repeated entries of a row and covariate: "error", "sum" or "max". Default: '
        '"error" at a fit, and for new data as at the fit.',
    )
    unknown_rows: UnknownRows | None = setting(
        None,
        'What to do with entries whose row key is not in the table of outcomes: "error" or "drop". '
        'Default: "error" at a fit, and for new data as at the fit.',
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

    Parameters
    ----------
    names : (row, covariate) or (row, covariate, value), optional
    row : str, optional
        The column that identifies the rows of the outcomes table; looked for first.

    Raises
    ------
    InputError
        If a column is absent, or it is not clear which column is which.
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
    found = [next((lower[n] for n in known if n in lower), None) for known in KNOWN_NAMES]
    if row in columns:
        found[0] = row
    listed = ", ".join(map(repr, columns))
    how = "name the columns with covariate_columns=(row, covariate, value)"
    if found[0] is None or found[1] is None:
        lacks = "row" if found[0] is None else "covariate"
        raise InputError(
            f"it is not clear which column of {place} identifies the {lacks}; it has {listed}.",
            hint=f"{how}, or call them rowId, covariateId and covariateValue.",
        )
    if found[2] is None and len(columns) > 2:
        raise InputError(
            f"it is not clear which column of {place} holds the value; it has {listed}.",
            hint=f"{how}, or with covariate_columns=({found[0]!r}, {found[1]!r}) if every value "
            "is 1.",
        )
    return LongColumns(found[0], found[1], found[2])


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

    Parameters
    ----------
    row_keys : (n_rows,) int64 or text
        Keys of the rows of the design, in order, each once.
    keys : sequence of int or str, optional
        The columns wanted, for new data: keys beyond them are left out and counted, and those that
        do not occur give columns of zeros. By default all that occur.
    duplicates : {"error", "sum", "max"}
        What to do with a row and covariate given twice.
    unknown_rows : {"error", "drop"}
        What to do with entries whose row key is not in `row_keys`.

    Raises
    ------
    InputError
        If a key or value is missing, a value is not finite, a row is unknown, a row and covariate
        were given twice, or there are entries but none of `keys`.
    """
    check_options(duplicates, unknown_rows)
    with reading(stored.file):
        reader = LongQuery(stored, columns, row_keys)
        if unknown_rows == "drop":
            reader.drop_unknown_rows()
        columns_found = reader.count(keys)
        entries = reader.entries(columns_found)
    n_dropped = dict(reader.n_dropped)
    repeated = _sort_rows(entries)
    if repeated.any():
        if duplicates == "error":
            first = _first_repeated(columns_found, entries, repeated)
            total = int(entries.indices.size)
            raise reader.repeated_complaint(columns_found, int(repeated.sum()), total, *first)
        before = entries.indices.size
        entries = _merged(entries, repeated, duplicates)
        n_dropped["repeated_entries"] = before - entries.indices.size
    n_dropped["zero_entries"] = int(np.count_nonzero(entries.values == 0))
    design = _design(columns_found.keys, entries, row_keys.size)
    n_occurring = int(np.count_nonzero(columns_found.count))
    return LongDesign(design, {name: n for name, n in n_dropped.items() if n}, n_occurring)


def check_options(duplicates: str, unknown_rows: str) -> None:
    """Refuse words that are none of those `long_design` knows."""
    _check_option("duplicates", duplicates, ("error", "sum", "max"))
    _check_option("unknown_rows", unknown_rows, ("error", "drop"))


def _check_option(name: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise InputError(
            f"`{name}` must be {' or '.join(map(repr, known))}, but it is {value!r}.",
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


def _first_repeated(found: Found, entries: Entries, repeated: Index) -> tuple[int, int]:
    """Column of the design and row of the first entry that was given twice."""
    j = min(np.flatnonzero(repeated), key=lambda j: int(found.place[j]))
    rows, _ = entries.column(int(j))
    return int(found.place[j]), int(rows[:-1][rows[1:] == rows[:-1]][0])


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
    parts: list[Part] = []
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
        for part in some.parts:
            # Every kind of part is a dataclass with this field.
            parts.append(replace(part, columns=place[part.columns]))  # type: ignore[type-var]
    return Design(n_rows, tuple(map(str, keys)), keys, center, scale, tuple(parts))
