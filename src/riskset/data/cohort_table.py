"""The table of people of a cohort study: columns with a meaning, and covariates kept in a file."""

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from riskset._errors import InputError
from riskset._messages import Note
from riskset._types import AnyArray
from riskset.data.checks import complain_rows
from riskset.data.covariate_labels import CovariateLabels
from riskset.data.csv_file import TextRules, as_key
from riskset.data.database import Database
from riskset.data.dates import read_day
from riskset.data.design import Design
from riskset.data.files import open_file
from riskset.data.frame import FrameEncoder
from riskset.data.incomplete import Donors, IncompleteColumn, completed_table, read_incomplete
from riskset.data.long_covariates import open_covariates, with_covariates
from riskset.data.missing_values import MissingRule, missing_rows_of
from riskset.data.notes import notes_on_missing
from riskset.data.outcome_columns import identified
from riskset.data.schema import LongOptions
from riskset.data.table import (
    Table,
    check_present,
    declared_values,
    finite_times,
    keys,
    kind_of,
    labels,
    numbers,
    plain_values,
    type_words,
)
from riskset.data.table_files import CovariateFile, Duplicates, UnknownRows

__all__ = [
    "ColumnKind",
    "CohortTableFile",
    "columns_of",
    "covariates_of",
    "incomplete_covariates",
    "missing_by_column",
    "read_columns",
    "read_orders",
]

WRITE_DATES = "store dates as dates, or write them as 2020-01-31 or 20200131."
LEAVE_EMPTY = "leave the cell empty where there is no number."

ColumnKind = Literal["number", "optional number", "time", "label", "key", "year", "event"]


@dataclass(frozen=True)
class CohortTableFile:
    """Where a table of people is; `table` is for DuckDB files, and `id` has the keys of rows."""

    path: Path
    table: str | None = None
    id: str | None = None

    def open(
        self, database: Database, exact: Sequence[str] = (), as_text: Sequence[str] = ()
    ) -> Table:
        """The table; of a CSV file, columns `exact` are kept as they are written."""
        named = (*exact, *([] if self.id is None else [self.id]))
        casts = dict.fromkeys(named, (as_key,)) | dict.fromkeys(as_text, ())
        rules = TextRules(lambda _: casts)
        return open_file(database, self.path, table=self.table, rules=rules).table()


def columns_of(people: CohortTableFile) -> tuple[tuple[str, ...], frozenset[str]]:
    """Names of its columns, and those of them that hold the index of a pandas frame."""
    with Database() as database:
        table = people.open(database)
        return table.columns, table.index


def read_columns(people: CohortTableFile, wanted: Mapping[str, ColumnKind]) -> dict[str, AnyArray]:
    """Some columns of a table of people: numbers, times, labels, exact keys, or years of dates.

    An `InputError` names the row if a value is missing or of another kind; of an optional number,
    NaN stands for a missing value.
    """
    readers: dict[str, Callable[[Table, str, pa.ChunkedArray], AnyArray]] = {
        "number": numbers,
        "optional number": _optional_numbers,
        "time": finite_times,
        "label": labels,
        "key": keys,
        "year": _years,
        "event": _events,
    }
    if not wanted:
        return {}
    with Database() as database:
        exact = [name for name, kind in wanted.items() if kind == "key"]
        dates = [name for name, kind in wanted.items() if kind == "year"]
        opened = people.open(database, exact, dates)
        table = identified(opened, people.id, must_be_unique=False)
        return {n: readers[kind](table, n, table.array(n)) for n, kind in wanted.items()}


def read_orders(people: CohortTableFile, names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Levels of columns of text in the order that their categorical type declares."""
    with Database() as database:
        table = people.open(database)
        found = {name: table.array(name) for name in names if name in table.texts}
        return {
            name: tuple(map(str, declared_values(array)))
            for name, array in found.items()
            if pa.types.is_dictionary(array.type)
        }


def covariates_of(
    people: CohortTableFile,
    columns: Sequence[str],
    long: Path | None,
    design_file: Path,
    *,
    duplicates: Duplicates = "error",
    unknown_rows: UnknownRows = "error",
    covariate_columns: Sequence[str] | None = None,
    reference: Mapping[str, str] | None = None,
    missing: MissingRule = "error",
    labels: CovariateLabels | None = None,
    imputed: Collection[str] = (),
    donors: Donors | None = None,
) -> tuple[Design, tuple[Note, ...]]:
    """Covariates of everybody, in a file that is mapped into memory.

    `columns` of the table are covariates; see `FrameEncoder.fit` for `reference` and `missing`. Of
    `labels`, only the references count here; the design keeps the names of the columns.
    `long` is a long table (row, covariate, value) with `covariate_columns`, or a design. Writes
    `design_file` (.rsd). Rows without a value have that of their `donors`. No label may be about
    the missing values of columns that will be `imputed`.
    """
    long_design = design_file.with_name(f".{design_file.stem}-long.rsd")
    with Database() as database:
        table = identified(people.open(database), people.id, must_be_unique=long is not None)
        if donors:
            table = completed_table(table, donors)
        labels = labels or CovariateLabels()
        references = labels.references(reference, table, columns)
        encoder, wide = FrameEncoder.fit(table, columns, references, missing)
        asked = CovariateFile(
            covariates=long,
            duplicates=duplicates,
            unknown_rows=unknown_rows,
            covariate_columns=covariate_columns,
        )
        added = open_covariates(
            database,
            people.path,
            asked,
            None,
            lambda names, place: LongOptions.find(asked, names, place, people.id),
        )
        design, _, _, notes = with_covariates(wide, table, added, long_design)
        texts, has_long = table.texts, added is not None
        unknown = labels.check(
            design,
            columns=table.columns,
            texts=texts,
            has_long=has_long,
            imputed=imputed,
            place=table.words.place,
        )
        if long_design.exists() and not wide.n_features:
            os.replace(long_design, design_file)
        else:
            design.save(design_file)
            long_design.unlink(missing_ok=True)
        notes = (*notes_on_missing(table, encoder), *notes, *unknown)
    return Design.open(design_file, verify=False), notes


def missing_by_column(people: CohortTableFile, columns: Sequence[str]) -> dict[str, int]:
    """The number of missing values of those columns that have some."""
    with Database() as database:
        table = people.open(database)
        counts = {name: int(missing_rows_of(table.array(name)).sum()) for name in columns}
    return {name: n for name, n in counts.items() if n}


def incomplete_covariates(
    people: CohortTableFile, columns: Sequence[str]
) -> list[IncompleteColumn]:
    """Covariates of a table of people as imputation models see them."""
    with Database() as database:
        table = identified(people.open(database), people.id, must_be_unique=False)
        return read_incomplete(table, columns)


def _events(table: Table, name: str, array: "pa.ChunkedArray") -> AnyArray:
    """Codes, or labels if they are text."""
    is_text = kind_of(array.type) in ("text", "category")
    return labels(table, name, array) if is_text else numbers(table, name, array)


def _optional_numbers(table: Table, name: str, array: "pa.ChunkedArray") -> AnyArray:
    """Numbers, and NaN where there is none."""
    missing = np.asarray(pc.is_null(plain_values(array), nan_is_null=True))
    if missing.all():
        return np.full(missing.size, np.nan)
    if pa.types.is_boolean(array.type):
        raise InputError(
            f"{table.words.column(name)} must be numeric, but its type is "
            f"{type_words(array.type)}.",
            hint="write a number, and leave the cell empty where there is none.",
        )
    if kind_of(array.type) == "number":
        array = pc.fill_null(pc.if_else(pa.chunked_array([missing]), None, array), 0)
    values = numbers(table, name, array, LEAVE_EMPTY).astype(np.float64)
    return np.where(missing, np.nan, values)


def _years(table: Table, name: str, array: "pa.ChunkedArray") -> AnyArray:
    check_present(table, name, array)
    array = plain_values(array)
    kind = kind_of(array.type)
    if kind == "date":
        return np.asarray(pc.year(array).to_numpy()).astype(np.int64)
    if kind != "text" and not pa.types.is_integer(array.type):
        raise InputError(
            f"{table.words.column(name)} must hold dates, but its type is "
            f"{type_words(array.type)}.",
            hint=WRITE_DATES,
        )
    written = array.cast(pa.string()).combine_chunks().dictionary_encode()
    days = [read_day(value) for value in written.dictionary.to_pylist()]
    at = written.indices.to_numpy()
    bad = np.array([day is None for day in days], bool)[at]
    words = table.words
    places = words.places(name)
    complain_rows(bad, array, words.column(name), "must hold dates", places, hint=WRITE_DATES)
    years: AnyArray = np.array([0 if day is None else day.year for day in days], np.int64)[at]
    return years
