"""Where the tables of a data set are, and how the long table of covariates is read.

Readers take the fields of these classes as keywords, and the command line makes its options from
them; so this module imports nothing that takes long.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Literal

from riskset._settings import setting

__all__ = ["CovariateFile", "Duplicates", "LongTableFormat", "TableFiles", "UnknownRows"]

Duplicates = Literal["error", "sum", "max"]
UnknownRows = Literal["error", "drop"]


@dataclass(frozen=True, kw_only=True)
class LongTableFormat:
    """How a long table of covariates is read."""

    covariate_columns: Sequence[str] | None = setting(
        "columns (row, covariate) or (row, covariate, value) of the long table. OHDSI's names "
        "``rowId``, ``covariateId`` and ``covariateValue`` are recognised",
        None,
    )
    duplicates: Duplicates | None = setting(
        'what to do with repeated entries of a row and covariate: "error", "sum" or "max". '
        'Default: "error" at a fit, and for new data as at the fit',
        None,
    )
    unknown_rows: UnknownRows | None = setting(
        'what to do with entries whose row key is not in the table of outcomes: "error" or "drop". '
        'Default: "error" at a fit, and for new data as at the fit',
        None,
    )


@dataclass(frozen=True, kw_only=True)
class CovariateFile(LongTableFormat):
    """Where the long table of covariates is, and how it is read."""

    covariates: str | PathLike[str] | None = setting(
        "a long table (row key, covariate key, value) in a file of any format, the name of a table "
        "in the same DuckDB file, or the file of a design (.rsd) with the same rows in the same "
        "order",
        None,
    )
    covariates_table: str | None = setting(
        "if the long table is in a DuckDB file (which may be the same): the table to read", None
    )
    covariates_query: str | None = setting(
        "if the long table is in a DuckDB file: a query that returns it", None
    )


@dataclass(frozen=True, kw_only=True)
class TableFiles(CovariateFile):
    """Where the tables of a data set are, and how the long table of covariates is read."""

    table: str | None = setting(
        "for a DuckDB file: the table to read. Optional if the file has only one table", None
    )
    query: str | None = setting("for a DuckDB file: a query that returns the table to read", None)
    design_file: str | PathLike[str] | None = setting(
        "store the covariates of the long table in this file (.rsd) instead of in memory. It is "
        "built in bounded memory, and results are bit-identical. Later calls can use it as "
        "`covariates` instead of reading the long table again",
        None,
    )
