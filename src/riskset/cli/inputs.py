"""Which tables a command reads, and which of their columns mean what."""

import csv
import os
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import riskset as rs
from riskset._errors import InputError
from riskset.cli import options as opt
from riskset.data.writers import check_target

if TYPE_CHECKING:
    from riskset.data.column_roles import ColumnRoles
    from riskset.data.schema import Schema

__all__ = ["Columns", "Tables", "check_readable"]

MAX_DIGITS = 15

DesignFile = Annotated[
    Path | None,
    typer.Option(
        "--design-file",
        metavar="FILE.rsd",
        help="Keep the covariates of LONG here, not in memory; later it can stand for LONG.",
        rich_help_panel=opt.DATA,
    ),
]


def check_readable(*inputs: Path) -> None:
    """Complain about files that are there but closed to this user."""
    for path in inputs:
        if path.exists() and not os.access(path, os.R_OK):
            raise InputError(
                f"cannot read {str(path)!r}: no permission.", hint="ask for it, or copy the file."
            )


@dataclass(frozen=True, kw_only=True)
class Columns:
    """What the columns of the table of patients mean."""

    time: opt.Time = None
    event: opt.Event = None
    censored: opt.Censored = None
    id: opt.Id = None
    entry: opt.Entry = None
    strata: opt.Strata = None
    weight: opt.Weight = None
    cluster: opt.Cluster = None
    offset: opt.Offset = None
    drop: opt.Drop = None
    time_digits: opt.TimeDigits = None

    def __post_init__(self) -> None:
        check_digits(self.time_digits)

    def roles(self, censoring_group: str | None) -> "ColumnRoles":
        """What the columns mean, as readers take it."""
        # Here, because it brings NumPy.
        from riskset.data.column_roles import ColumnRoles

        named = {one.name: getattr(self, one.name) for one in fields(self)}
        named["drop"] = tuple(dict.fromkeys(self.drop or ()))
        return ColumnRoles(**named, censoring_group=censoring_group)


def check_digits(digits: int | None) -> None:
    """Refuse numbers of decimals that no time has."""
    if digits is not None and not 0 <= digits <= MAX_DIGITS:
        raise InputError(
            f"--time-digits must lie between 0 and {MAX_DIGITS}, but it is {digits}.",
            hint="it is the number of decimals to which times are rounded.",
        )


@dataclass(frozen=True, kw_only=True)
class Tables:
    """Where the table of patients is in its file, and the long table beside it."""

    table: opt.TableName = None
    query: opt.Query = None
    covariates: opt.Covariates = None
    covariates_table: opt.CovariatesTable = None
    covariates_query: opt.CovariatesQuery = None
    covariate_columns: opt.CovariateColumns = None
    duplicates: opt.DuplicateEntries = None
    unknown_rows: opt.UnknownEntries = None
    design_file: DesignFile = None

    def __post_init__(self) -> None:
        if self._has_long:
            return
        for option, value in (
            ("--covariate-columns", self.covariate_columns),
            ("--duplicates", self.duplicates),
            ("--unknown-rows", self.unknown_rows),
            ("--design-file", self.design_file),
        ):
            if value is not None:
                raise InputError(
                    f"{option} needs --covariates.",
                    hint="leave it out, or name the long table; inside a DuckDB file with "
                    "--covariates-table or --covariates-query.",
                )

    @property
    def _has_long(self) -> bool:
        named = (self.covariates, self.covariates_table, self.covariates_query)
        return any(place is not None for place in named)

    def inputs(self, rows: Path) -> list[Path]:
        """The files that are read, the table of rows being in the first."""
        return [rows] if self.covariates is None else [rows, Path(self.covariates)]

    def read(self, rows: Path, columns: Columns, censoring_group: str | None) -> "rs.Dataset":
        """The table of a fit, and the long table beside it."""
        check_readable(*self.inputs(rows))
        if self.design_file is not None:
            check_target(self.design_file, suffixes=(".rsd",), inputs=self.inputs(rows))
        # Here, because it brings DuckDB and pyarrow.
        from riskset.data.readers import TableFiles, read_tables

        duplicates, unknown = self.duplicates, self.unknown_rows
        files = TableFiles(
            covariates=self._place(rows),
            table=self.table,
            query=self.query,
            covariate_columns=self._names(),
            covariates_table=self.covariates_table,
            covariates_query=self.covariates_query,
            duplicates=None if duplicates is None else duplicates.value,
            unknown_rows=None if unknown is None else unknown.value,
            design_file=self.design_file,
        )
        return read_tables(rows, columns.roles(censoring_group), files)

    def read_new(self, schema: "Schema", rows: Path) -> "rs.Dataset":
        """New data, read as at the fit where no option says otherwise."""
        # Here, because it brings DuckDB and pyarrow.
        from riskset.data.readers import read_new_data

        if self.design_file is not None:
            raise InputError(
                "--design-file is for fits, not for predictions.", hint="leave it out."
            )
        check_readable(*self.inputs(rows))
        return read_new_data(
            schema,
            rows,
            covariates=self._place(rows),
            table=self.table,
            query=self.query,
            covariate_columns=self._names(),
            covariates_table=self.covariates_table,
            covariates_query=self.covariates_query,
            duplicates=None if self.duplicates is None else self.duplicates.value,
            unknown_rows=None if self.unknown_rows is None else self.unknown_rows.value,
        )

    def _place(self, rows: Path) -> str | Path | None:
        """The file of the long table: without one of its own, that of the rows."""
        return rows if self.covariates is None and self._has_long else self.covariates

    def _names(self) -> tuple[str, ...] | None:
        if self.covariate_columns is None:
            return None
        # As a line of CSV, so that a name with a comma can be quoted.
        (names,) = csv.reader([self.covariate_columns], skipinitialspace=True)
        if len(names) not in (2, 3) or not all(names):
            raise InputError(
                "--covariate-columns must name two or three columns, separated by commas, but it "
                f"is {self.covariate_columns!r}.",
                hint="for example --covariate-columns rowId,covariateId,covariateValue.",
            )
        return tuple(names)
