"""The options that say which tables a command reads, and which of their columns mean what."""

import csv
import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from riskset._errors import InputError
from riskset.cli.options import DATA, chosen, given, option_of, require
from riskset.data.column_roles import ColumnRoles
from riskset.data.missing_values import MissingRule
from riskset.data.table_files import Duplicates, TableFiles, UnknownRows
from riskset.data.writers import check_target

if TYPE_CHECKING:
    import riskset as rs
    from riskset.data.schema import Schema

__all__ = [
    "ColumnOptions",
    "FollowUpOptions",
    "PatientsFile",
    "TableOptions",
    "check_readable",
    "place",
]

MAX_DIGITS = 15
REPEATED = "May be repeated."

PatientsFile = Annotated[
    Path,
    typer.Argument(
        metavar="PATIENTS",
        help="Table with one row per subject: a CSV, Parquet, Arrow or DuckDB file.",
        show_default=False,
    ),
]


def check_readable(*inputs: Path) -> None:
    """Refuse files that exist but that this user may not read."""
    for path in inputs:
        if path.exists() and not os.access(path, os.R_OK):
            raise InputError(
                f"cannot read {str(path)!r}: permission denied.",
                hint="ask for permission, or copy the file.",
            )


column = partial(option_of, ColumnRoles, metavar="COL", panel=DATA)
place = partial(option_of, TableFiles, panel=DATA)


@dataclass(frozen=True, kw_only=True)
class FollowUpOptions:
    """The columns of follow-up."""

    time: str | None = column("time")
    event: str | None = column("event")
    censored: str | None = column("censored", metavar="LABEL")
    entry: str | None = column("entry")
    weight: str | None = column("weight", also=("sample_weight",))
    time_digits: int | None = column("time_digits", metavar="K")

    def __post_init__(self) -> None:
        digits = self.time_digits
        if digits is not None and not 0 <= digits <= MAX_DIGITS:
            raise InputError(
                f"--time-digits must be between 0 and {MAX_DIGITS}, but it is {digits}.",
                hint="it is the number of decimals to which times are rounded.",
            )


@dataclass(frozen=True, kw_only=True)
class ColumnOptions(FollowUpOptions):
    """What the columns of the table of patients mean."""

    id: str | None = column("id", more="Required with --covariates.")
    strata: list[str] | None = column("strata", more=REPEATED)
    cluster: str | None = column("cluster")
    offset: str | None = column("offset")
    drop: list[str] | None = column("drop", more=REPEATED)
    formula: str | None = column("formula", metavar="FORMULA")
    reference: list[str] | None = column("reference", metavar="COL=LEVEL", more=REPEATED)
    missing: MissingRule | None = column("missing", metavar=None)
    covariate_labels: Path | None = column("covariate_labels", metavar="FILE")

    def __post_init__(self) -> None:
        super().__post_init__()
        self._references()

    def roles(self, censoring_group: str | None) -> ColumnRoles:
        """What the columns mean, as readers take it."""
        drop = tuple(dict.fromkeys(self.drop or ()))
        made = {"drop": drop, "reference": self._references(), "censoring_group": censoring_group}
        return ColumnRoles(**chosen(self) | made)

    def _references(self) -> dict[str, str] | None:
        found: dict[str, str] = {}
        for text in self.reference or ():
            name, separator, level = text.partition("=")
            if not separator or not name:
                raise InputError(
                    f"--reference must be COL=LEVEL, but it is {text!r}.",
                    hint="for example --reference sex=male.",
                )
            if name in found:
                raise InputError(
                    f"--reference was given twice for column {name!r}.", hint="give it once."
                )
            found[name] = level
        return found or None


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """Where the table of patients is in its file, and the long table that goes with it."""

    table: str | None = place("table", metavar="NAME")
    query: str | None = place("query", metavar="SQL")
    covariates: str | None = place("covariates", metavar="LONG")
    covariates_table: str | None = place("covariates_table", metavar="NAME")
    covariates_query: str | None = place("covariates_query", metavar="SQL")
    covariate_columns: str | None = place("covariate_columns", metavar="ROW,COV[,VALUE]")
    duplicates: Duplicates | None = place("duplicates")
    unknown_rows: UnknownRows | None = place("unknown_rows")
    design_file: Path | None = place("design_file", metavar="FILE.rsd")

    def __post_init__(self) -> None:
        if not self._has_long:
            require(
                given(self, "covariate_columns", "duplicates", "unknown_rows", "design_file"),
                "--covariates",
                "leave it out, or name the long table; in a DuckDB file use --covariates-table or "
                "--covariates-query.",
            )

    @property
    def _has_long(self) -> bool:
        named = (self.covariates, self.covariates_table, self.covariates_query)
        return any(place is not None for place in named)

    def inputs(self, rows: Path) -> list[Path]:
        """The files that are read, the table of rows being in the first."""
        return [rows] if self.covariates is None else [rows, Path(self.covariates)]

    def read(self, rows: Path, columns: ColumnOptions, censoring_group: str | None) -> "rs.Dataset":
        """The table of a fit, and the long table that goes with it."""
        check_readable(*self.inputs(rows))
        if self.design_file is not None:
            check_target(self.design_file, suffixes=(".rsd",), inputs=self.inputs(rows))
        # Here, because it brings DuckDB and pyarrow.
        from riskset.data.readers import read_tables

        return read_tables(rows, columns.roles(censoring_group), TableFiles(**self._chosen(rows)))

    def read_new(self, schema: "Schema", rows: Path) -> "rs.Dataset":
        """New data, read as at the fit where no option says otherwise."""
        # Here, because it brings DuckDB and pyarrow.
        from riskset.data.readers import read_new_data

        if self.design_file is not None:
            raise InputError(
                "--design-file is for fits, not for predictions.", hint="leave it out."
            )
        check_readable(*self.inputs(rows))
        return read_new_data(schema, rows, **self._chosen(rows))

    def _chosen(self, rows: Path) -> dict[str, Any]:
        options = chosen(self)
        if self._has_long:  # in the file of the rows, if it has no file of its own
            options["covariates"] = self.covariates or rows
        if self.covariate_columns is not None:
            options["covariate_columns"] = self._names(self.covariate_columns)
        return options

    @staticmethod
    def _names(written: str) -> tuple[str, ...]:
        # As a line of CSV, so that a name with a comma can be quoted.
        (names,) = csv.reader([written], skipinitialspace=True)
        if len(names) not in (2, 3) or not all(names):
            raise InputError(
                "--covariate-columns must name two or three columns, separated by commas, but it "
                f"is {written!r}.",
                hint="for example --covariate-columns rowId,covariateId,covariateValue.",
            )
        return tuple(names)
