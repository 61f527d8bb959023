"""Read data sets from CSV, Parquet, Arrow and DuckDB files: wide tables and long tables."""

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from riskset._errors import InputError
from riskset._keywords import keywords
from riskset._settings import setting
from riskset._types import AnyArray
from riskset.data.column_roles import ColumnRoles
from riskset.data.database import Database
from riskset.data.dataset import Dataset, assemble, assemble_new
from riskset.data.design_map import is_design_file
from riskset.data.files import open_file
from riskset.data.long_covariates import open_covariates
from riskset.data.schema import LongOptions, Schema
from riskset.data.table import labels
from riskset.data.table_files import TableFiles

__all__ = ["read_dataset", "read_labels", "read_new_data", "read_tables"]


@dataclass(frozen=True, kw_only=True)
class DatasetRequest(TableFiles, ColumnRoles):
    """Keywords of `read_dataset`."""


@dataclass(frozen=True, kw_only=True)
class NewDataRequest(TableFiles):
    """Keywords of `read_new_data`."""

    outcome: bool = setting("read time, event, entry, weight and cluster too, for scoring", False)


@keywords(DatasetRequest)
def read_dataset(path: str | PathLike[str], request: DatasetRequest) -> Dataset:
    r"""Read a table of subjects and, optionally, a long table of covariates.

    Parameters
    ----------
    path : str or path
        A file with one row per subject or interval: CSV (.csv, .tsv, also .gz), Parquet, Arrow or
        Feather (.arrow, .feather, .ipc), or DuckDB (.duckdb, .db). Every column without a role is a
        covariate.
    **keywords : the fields of `ColumnRoles`, `LongTableFormat` and `TableFiles`

    Returns
    -------
    Dataset

    Raises
    ------
    InputError
        If a file does not exist, is damaged or empty, a column does not exist, or a value is not
        valid. The message gives the file, the column, the row (its number from 1, without the
        header, and its key) and the value.

    Notes
    -----
    A CSV file must be in UTF-8, with column names in the first line. Separators are commas,
    semicolons, tabs or bars. Empty fields, ``NA``, ``N/A``, ``#N/A``, ``NaN`` and ``NULL``, in any
    case, are missing. A column is numeric if all values are numbers, boolean if all are true or
    false, and otherwise text. Identifiers with leading zeros stay text. A text column in which most
    values are numbers raises an error.

    DuckDB groups and joins long tables within 2 GB of memory and spills to the directory of
    temporary files. The result needs 2 bytes for every entry that is 1. Without repeated keys,
    results do not depend on the order of the entries, to the last bit.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import riskset as rs
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "people.csv")
    ...     written = path.write_text("id,days,died,age,sex\n1,5,1,61,m\n2,8,0,70,f\n")
    ...     data = rs.read_dataset(path, time="days", event="died", id="id")
    >>> data.design.names
    ('age', 'sex=f', 'sex=m')
    >>> data.outcome().time
    array([5., 8.])
    """
    if not isinstance(path, (str, PathLike)):
        raise InputError(
            f"`path` must name a file, but it is a {type(path).__name__}.",
            hint="a data frame is read by Dataset.from_frame.",
        )
    return read_tables(Path(path), request, request)


def read_tables(path: Path, columns: ColumnRoles, files: TableFiles) -> Dataset:
    """As `read_dataset`, with objects in place of keywords."""

    def long_options(names: Sequence[str], place: str) -> LongOptions:
        return LongOptions.find(files, names, place, roles.id)

    with Database() as database:
        stored = open_file(
            database,
            path,
            table=files.table,
            query=files.query,
            identifiers=lambda names: columns.find(names, path.name).label_columns,
        )
        roles = columns.find(stored.columns, path.name)
        kept = None if files.design_file is None else Path(files.design_file)
        long = open_covariates(database, path, files, kept, long_options)
        return assemble(stored.table(), columns, long, kept)


@keywords(NewDataRequest)
def read_new_data(schema: Schema, path: str | PathLike[str], request: NewDataRequest) -> Dataset:
    """Read new data for a model like the data of its fit.

    Parameters
    ----------
    schema : Schema
        `Dataset.schema` of the fit.
    path : str or path
        See `read_dataset`; the format may differ from that of the fit.
    **keywords : the fields of `LongTableFormat` and `TableFiles`, and `outcome`

    Raises
    ------
    InputError
        See `read_dataset` and `Dataset.from_schema`.
    """
    path, files = Path(path), request
    if files.design_file is not None:
        raise InputError("`design_file` is for fits, not for predictions.", hint="leave it out.")
    if files.covariates is not None and is_design_file(Path(files.covariates)):
        raise InputError(
            f"{Path(files.covariates).name} is a design in a file, which serves for fits.",
            hint="pass the long table of the new rows.",
        )

    def long_options(names: Sequence[str], place: str) -> LongOptions:
        return schema.long_options(names, place, files)

    with Database() as database:
        stored = open_file(
            database,
            path,
            table=files.table,
            query=files.query,
            # A few rows of a category may look like numbers or dates; they are levels all the same.
            identifiers=lambda _: (*schema.roles.label_columns, *schema.encoder.levels),
        )
        long = open_covariates(database, path, files, None, long_options)
        return assemble_new(schema, stored.table(), long, outcome=request.outcome)


def read_labels(
    path: Path,
    named: Sequence[tuple[str, str]],
    *,
    table: str | None = None,
    query: str | None = None,
) -> tuple[list[AnyArray], tuple[str, ...]]:
    """Labels of every row of a file, such as given folds, and all columns of the file.

    `named` lists pairs of what messages call a column, and its name.
    """
    names = [name for _, name in named]
    with Database() as database:
        stored = open_file(database, path, table=table, query=query, identifiers=lambda _: names)
        for what, name in named:
            if name not in stored.columns:
                raise InputError.unknown_name(
                    f"{what} column", name, stored.columns, place=path.name
                )
        whole = stored.table()
        return [labels(whole, name, whole.array(name)) for name in names], tuple(stored.columns)
