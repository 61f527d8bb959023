"""Read data sets from CSV, Parquet, Arrow and DuckDB files: wide tables and long tables."""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from riskset._errors import InputError
from riskset.data.beside import LongInput, StoredDesign
from riskset.data.database import Database, StoredTable
from riskset.data.dataset import Dataset, assemble, assemble_new
from riskset.data.design_file import is_design_file
from riskset.data.files import Identifiers, file_format, open_file
from riskset.data.long_table import Duplicates, UnknownRows, find_columns
from riskset.data.roles import Roles
from riskset.data.schema import LongOptions, Schema

__all__ = ["read_dataset", "read_new_data"]


def read_dataset(
    path: str | PathLike[str],
    *,
    covariates: str | PathLike[str] | None = None,
    table: str | None = None,
    query: str | None = None,
    time: str | None = None,
    event: str | None = None,
    entry: str | None = None,
    strata: str | Sequence[str] | None = None,
    weight: str | None = None,
    cluster: str | None = None,
    offset: str | None = None,
    censoring_group: str | None = None,
    id: str | None = None,
    drop: str | Sequence[str] = (),
    cause: int | str | None = None,
    censored: str | None = None,
    time_digits: int | None = None,
    covariate_columns: Sequence[str] | None = None,
    covariates_table: str | None = None,
    covariates_query: str | None = None,
    duplicates: Duplicates = "error",
    unknown_rows: UnknownRows = "error",
    design_file: str | PathLike[str] | None = None,
) -> Dataset:
    """Read a table of subjects and, optionally, a long table of covariates.

    Parameters
    ----------
    path : str or path
        A file with one row per subject or interval: CSV (.csv, .tsv, also .gz), Parquet, Arrow or
        Feather (.arrow, .feather, .ipc), or DuckDB (.duckdb, .db). Every column without a role is a
        covariate.
    covariates : str or path, optional
        A long table (row key, covariate key, value) in any of these formats, the name of a table in
        the DuckDB file `path`, or the file of a design (.rsd) with the same rows in the same order.
    table, query : str, optional
        For a DuckDB file: the table to read, or a query that returns it. Optional if the file has
        only one table.
    time, event, entry, strata, weight, cluster, offset, censoring_group
        See `Dataset.from_frame`.
    id, drop, cause, censored, time_digits
        See `Dataset.from_frame`.
    covariate_columns, duplicates, unknown_rows
        See `Dataset.from_long`.
    covariates_table, covariates_query : str, optional
        If `covariates` is a DuckDB file (which may be `path`): the table to read, or a query that
        returns it.
    design_file : path, optional
        Store the covariates of the long table in this file (.rsd) instead of in memory. It is built
        in bounded memory, and results are bit-identical. Later calls can use it as `covariates`
        instead of reading the long table again.

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
    """
    if not isinstance(path, (str, PathLike)):
        raise InputError(
            f"`path` must name a file, but it is a {type(path).__name__}.",
            hint="a data frame is read by Dataset.from_frame.",
        )
    path = Path(path)

    def roles_of(columns: Sequence[str]) -> Roles:
        return Roles.find(
            columns,
            path.name,
            time=time,
            event=event,
            entry=entry,
            weight=weight,
            cluster=cluster,
            offset=offset,
            censoring_group=censoring_group,
            id=id,
            strata=strata,
            drop=drop,
        )

    with Database() as database:
        stored = open_file(
            database, path, table=table, query=query, identifiers=lambda c: roles_of(c).labels
        )
        roles = roles_of(stored.columns)
        long: LongInput | None = None
        if covariates is not None and is_design_file(Path(covariates)):
            _refuse_with_design(
                Path(covariates),
                covariate_columns=covariate_columns,
                covariates_table=covariates_table,
                covariates_query=covariates_query,
                design_file=design_file,
            )
            long = StoredDesign.open(Path(covariates))
        elif covariates is not None:
            place, name = _long_place(path, covariates, covariates_table, covariates_query)

            def keys_of(columns: Sequence[str]) -> Sequence[str]:
                found = find_columns(columns, place.name, covariate_columns, roles.id)
                return (found.row, found.covariate)

            beside = _open_long(database, place, name, covariates_query, keys_of)
            found = find_columns(beside.data_columns, place.name, covariate_columns, roles.id)
            long = (beside, LongOptions(found, duplicates, unknown_rows))
        else:
            _refuse_alone(
                covariates_table=covariates_table,
                covariates_query=covariates_query,
                design_file=design_file,
            )
        return assemble(
            stored.table(),
            roles,
            long,
            cause=cause,
            censored=censored,
            time_digits=time_digits,
            design_file=None if design_file is None else Path(design_file),
        )


def read_new_data(
    schema: Schema,
    path: str | PathLike[str],
    *,
    covariates: str | PathLike[str] | None = None,
    table: str | None = None,
    query: str | None = None,
    covariate_columns: Sequence[str] | None = None,
    covariates_table: str | None = None,
    covariates_query: str | None = None,
    duplicates: Duplicates | None = None,
    unknown_rows: UnknownRows | None = None,
    outcome: bool = False,
) -> Dataset:
    """Read new data for a model like the data of its fit.

    Parameters
    ----------
    schema : Schema
        `Dataset.schema` of the fit.
    path, covariates, table, query, covariates_table, covariates_query
        See `read_dataset`. The formats may differ from those of the fit.
    covariate_columns, duplicates, unknown_rows, outcome
        See `Dataset.from_schema`.

    Raises
    ------
    InputError
        See `read_dataset` and `Dataset.from_schema`.
    """
    path = Path(path)
    with Database() as database:
        stored = open_file(
            database,
            path,
            table=table,
            query=query,
            # A few rows of a category may look like numbers or dates; they are levels all the same.
            identifiers=lambda c: (*schema.roles.labels, *schema.encoder.levels),
        )
        long = None
        if covariates is not None:
            if is_design_file(Path(covariates)):
                raise InputError(
                    f"{Path(covariates).name} is a design in a file, which serves for fits.",
                    hint="pass the long table of the new rows.",
                )
            place, name = _long_place(path, covariates, covariates_table, covariates_query)

            def options(columns: Sequence[str]) -> LongOptions:
                return schema.long_options(
                    columns, place.name, covariate_columns, duplicates, unknown_rows
                )

            def keys_of(columns: Sequence[str]) -> Sequence[str]:
                found = options(columns).columns
                return (found.row, found.covariate)

            beside = _open_long(database, place, name, covariates_query, keys_of)
            long = (beside, options(beside.data_columns))
        else:
            _refuse_alone(covariates_table=covariates_table, covariates_query=covariates_query)
        return assemble_new(schema, stored.table(), long, outcome=outcome)


def _refuse_alone(**given: object) -> None:
    for name, value in given.items():
        if value is not None:
            raise InputError(f"`{name}` needs `covariates`.", hint="name the file there.")


def _refuse_with_design(path: Path, **given: object) -> None:
    for name, value in given.items():
        if value is not None:
            raise InputError(
                f"`{name}` belongs to a long table, but {path.name} is a design in a file.",
                hint="leave it out.",
            )


def _long_place(
    path: Path, covariates: str | PathLike[str], table: str | None, query: str | None
) -> tuple[Path, str | None]:
    """The file of the long table, and its name in it if there is one to choose."""
    place = Path(covariates)
    is_name = table is None and query is None and not place.exists()
    if is_name and isinstance(covariates, str) and file_format(path) == "duckdb":
        try:
            file_format(place)
        except InputError:
            return path, covariates
    return place, table


def _open_long(
    database: Database, place: Path, name: str | None, query: str | None, keys_of: Identifiers
) -> StoredTable:
    return open_file(
        database, place, table=name, query=query, identifiers=keys_of, prefix="covariates_"
    )
