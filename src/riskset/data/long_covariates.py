"""The covariates of a long table, or of a design in a file, added to those of the wide table."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np

from riskset._errors import InputError
from riskset._messages import Note
from riskset.data.database import Database, StoredTable
from riskset.data.design import Design
from riskset.data.design_map import Contents, is_design_file, read_contents
from riskset.data.files import file_format, open_file
from riskset.data.long_query import LongColumns
from riskset.data.long_table import (
    LongDesign,
    long_design,
    long_design_in_file,
    stored_long_design,
)
from riskset.data.notes import notes_on_entries
from riskset.data.schema import LongOptions
from riskset.data.table import Table
from riskset.data.table_files import CovariateFile, Duplicates, UnknownRows

__all__ = ["LongInput", "StoredDesign", "with_covariates", "open_covariates"]

OHDSI = ("rowId", "covariateId", "covariateValue")
"""Columns of new long tables for a design that came from none."""


class StoredDesign(NamedTuple):
    """A design in a file, open."""

    path: Path
    contents: Contents

    @classmethod
    def open(cls, path: Path) -> "StoredDesign":
        """Open and verify a file."""
        contents = read_contents(path)
        if contents.row_keys is None:
            raise InputError(
                f"{path.name} does not identify its rows, so it cannot be compared with a "
                "table of outcomes.",
                hint="save it with `row_keys`, or in Python fit riskset.Design.open(path) with y.",
            )
        return cls(path, contents)

    @property
    def options(self) -> LongOptions:
        """How the long table was read from which it was built."""
        about = self.contents.about
        return LongOptions(
            LongColumns(*about.get("long", OHDSI)),
            cast(Duplicates, about.get("duplicates", "error")),
            cast(UnknownRows, about.get("unknown_rows", "error")),
        )


LongInput = tuple[StoredTable, LongOptions] | StoredDesign
FindOptions = Callable[[Sequence[str], str], LongOptions]
"""How a long table is read, from its columns and the name of its file."""

Together = tuple[Design, LongOptions | None, Mapping[str, int], tuple[Note, ...]]


def open_covariates(
    database: Database,
    path: Path,
    asked: CovariateFile,
    design_file: Path | None,
    find: FindOptions,
) -> LongInput | None:
    """The long table or the design that `asked` names, open; None if it names no table.

    `path` is the table of subjects, which may hold the long table, too; `design_file` is where the
    covariates will be kept.
    """
    long_only = {
        "covariate_columns": asked.covariate_columns,
        "covariates_table": asked.covariates_table,
        "covariates_query": asked.covariates_query,
        "design_file": design_file,
    }
    if asked.covariates is None:
        del long_only["covariate_columns"]
        for name, value in long_only.items():
            if value is not None:
                raise InputError(f"`{name}` needs `covariates`.", hint="name the file there.")
        return None
    file = Path(asked.covariates)
    if is_design_file(file):
        for name, value in long_only.items():
            if value is not None:
                raise InputError(
                    f"`{name}` belongs to a long table, but {file.name} is a design in a file.",
                    hint="leave it out.",
                )
        return StoredDesign.open(file)
    place, table = _long_place(path, asked)

    def keys_of(columns: Sequence[str]) -> Sequence[str]:
        columns_found = find(columns, place.name).columns
        return (columns_found.row, columns_found.covariate)

    stored = open_file(
        database,
        place,
        table=table,
        query=asked.covariates_query,
        identifiers=keys_of,
        prefix="covariates_",
    )
    return stored, find(stored.data_columns, place.name)


def _long_place(path: Path, asked: CovariateFile) -> tuple[Path, str | None]:
    """The file of the long table, and its name in it if there is one to choose."""
    assert asked.covariates is not None
    place, table = Path(asked.covariates), asked.covariates_table
    is_name = table is None and asked.covariates_query is None and not place.exists()
    if is_name and isinstance(asked.covariates, str) and file_format(path) == "duckdb":
        try:
            file_format(place)
        except InputError:
            return path, asked.covariates
    return place, table


def with_covariates(
    wide: Design, table: Table, long: LongInput | None, design_file: Path | None = None
) -> Together:
    """All covariates, how those of the long table are read, and what to say of them.

    With a `design_file`, the covariates of the long table are kept there instead of in memory.
    """
    if long is None:
        return wide, None, {}, ()
    if isinstance(long, StoredDesign):
        place, options = long.path.name, long.options
        _check_rows(long, table)
        added = stored_long_design(*long)
    else:
        place, options = long[0].place, long[1]
        added = _long(long[0], options, table, design_file)
    known = set(wide.names)
    again = next((name for name in added.design.names if name in known), None)
    if again is not None:
        raise InputError(
            f"the covariate {again!r} is both a column of {table.words.place} and a key of "
            f"{place}.",
            hint="rename one of them, or leave the column out with `drop`.",
        )
    design = Design.stack([wide, added.design]) if wide.n_features else added.design
    notes = notes_on_entries(added.n_dropped, added.design.n_features, added.n_occurring)
    return design, replace(options, keys=added.design.keys), added.n_dropped, notes


def _long(
    stored: StoredTable, options: LongOptions, table: Table, design_file: Path | None
) -> LongDesign:
    keys = table.words.row_keys
    assert keys is not None
    how = {"duplicates": options.duplicates, "unknown_rows": options.unknown_rows}
    if design_file is not None:
        return long_design_in_file(design_file, stored, options.columns, keys, **how)  # type: ignore[arg-type]
    return long_design(stored, options.columns, keys, keys=options.keys, **how)  # type: ignore[arg-type]


def _check_rows(long: StoredDesign, table: Table) -> None:
    """The rows of the file must be those of the table, in the same order."""
    keys, stored = table.words.row_keys, long.contents.row_keys
    assert keys is not None
    assert stored is not None
    file, place = long.path.name, table.words.place
    remedy = f"build {file} again from this table, or pass the table it was built from."
    if stored.size != keys.size:
        raise InputError(
            f"{file} has {stored.size:,} rows, but {place} has {keys.size:,}.", hint=remedy
        )
    if keys.dtype.kind != stored.dtype.kind:  # one holds text
        keys, stored = keys.astype(str), stored.astype(str)
    differ = keys != stored
    if differ.any():
        at = int(np.argmax(differ))
        raise InputError(
            f"the rows of {file} are not those of {place}: {int(differ.sum()):,} of {keys.size:,} "
            f"differ (first: {table.words.row(at)}, where the file has {stored[at]!s}).",
            hint=remedy,
        )
