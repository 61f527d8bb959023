"""The section `data` of a specification: a table of people, or a CDM in files or a database."""

import datetime
from collections.abc import Iterator
from typing import Literal

from riskset._errors import InputError
from riskset._settings import Settings, bad_setting, setting, settings
from riskset._time_units import TimeUnit
from riskset.data.database import MEMORY_WORDS, checked_amount
from riskset.data.table_store import CACHE_DAYS
from riskset.imputation.settings import Imputation
from riskset.warehouse.address import REMEDY, database_name, has_secret

__all__ = [
    "CdmConnection",
    "CdmData",
    "CohortMethodFiles",
    "CovariatesOverTime",
    "Data",
    "TableCovariates",
    "TableData",
]


@settings
class TableCovariates(Settings):
    """Where the covariates of a table of people are."""

    table: str | None = setting("long table (row, covariate, value), or a design (.rsd)", None)
    covariate_columns: tuple[str, ...] | None = setting(
        "the columns of the long table: that of the row, of the covariate and, unless all values "
        "are 1, of the value; left out: OHDSI's rowId, covariateId and covariateValue",
        None,
    )
    columns: tuple[str, ...] | None = setting(
        "columns of the table of people; left out: all that have no other use, or none if there is "
        "a long table",
        None,
    )
    drop: tuple[str, ...] = setting("columns that are not covariates", ())
    reference: dict[str, str] = setting(
        "the reference levels of columns of text; left out: the first level of each", dict
    )
    missing: Literal["error", "indicator", "impute"] = setting(
        "what to do with missing values: refuse them, give each column an indicator of them, or "
        "impute them several times and pool the results",
        "error",
    )
    impute: Imputation | None = setting(
        "how missing values are imputed; left out: by the defaults", None
    )
    unknown_rows: Literal["error", "drop"] = setting(
        "what to do with entries of people who are not in the table", "error"
    )
    duplicates: Literal["error", "sum", "max"] = setting(
        "what to do with covariates that are given twice for one row", "error"
    )

    @property
    def is_imputed(self) -> bool:
        """Whether missing values are to be imputed."""
        return self.missing == "impute"

    @property
    def imputation(self) -> Imputation:
        """How they are imputed."""
        return self.impute or Imputation()

    def contradictions(self) -> Iterator[InputError]:
        """Only columns of the table of people are imputed, if that is asked for."""
        if self.is_imputed and self.table is not None:
            yield bad_setting(
                "missing",
                "`missing: impute` needs all covariates in the table of people, but `table` names "
                "another file.",
                "put the covariates into columns of the table of people.",
            )
        if not self.is_imputed and self.impute is not None:
            yield bad_setting(
                "impute",
                f"`impute` has settings, but `missing` is {self.missing}.",
                "set missing: impute, or leave impute out.",
            )


@settings
class CovariatesOverTime:
    """Measurements of covariates at any time, which per-protocol analyses use."""

    table: str = setting("long table with a row for each measurement: CSV, Parquet or Arrow")
    columns: tuple[str, str, str, str] = setting(
        "the columns of the `id` of the row of the table of people, of the time, of the covariate "
        "and of its value, which is a number; times are in the `time_unit` of the data, 0 is the "
        "start of the follow-up",
        ("id", "time", "covariate", "value"),
    )


@settings
class Data(Settings):
    """Keys that data of both kinds have."""

    name: str | None = setting(
        "the name of the data for readers; left out: the name of the file", None
    )
    description: str = setting("a description of the data", "")
    covariate_labels: str | None = setting(
        "a table of labels of covariates, with the columns `name`, `label`, `group`, `unit` and "
        "`reference`",
        None,
    )
    start: datetime.date | None = setting("the first day of the data", None)
    end: datetime.date | None = setting("the last day of the data", None)

    def contradictions(self) -> Iterator[InputError]:
        """Data start before they end."""
        if self.start is not None and self.end is not None and self.start > self.end:
            yield bad_setting(
                "end", f"the data end on {self.end}, before they start on {self.start}."
            )


@settings
class TableData(Data):
    """A table with one row for each exposure."""

    people: str = setting("the table of people: CSV, Parquet, Arrow or DuckDB", kw_only=True)
    treatment: str | None = setting(
        "the column of the exposure of each row; required unless the exposures are strategies", None
    )
    table: str | None = setting("the name of the table in a DuckDB file", None)
    id: str | None = setting("the column that identifies rows; required with a long table", None)
    person: str | None = setting("the column that identifies people, if they may enter twice", None)
    index_date: str | None = setting("the column of the index date, such as 2020-01-31", None)
    time_unit: TimeUnit = setting(
        "the unit of the times of outcomes; a year has 365.25 days", "days"
    )
    sampling_weight: str | None = setting(
        "the column of the sampling weights of a survey: how many people of the population a row "
        "represents; they are used before and after every adjustment, and in the score",
        None,
    )
    score: str | None = setting(
        "the column of given propensity scores; riskset then fits none", None
    )
    covariates: TableCovariates = setting("where the covariates are", TableCovariates)
    covariates_over_time: CovariatesOverTime | None = setting(
        "where covariates over time are, for per-protocol analyses", None
    )


@settings
class CdmConnection(Settings):
    """A connection to a database; see `riskset.omop.Cdm.connect`."""

    connection: str = setting(
        "the URL of a database, such as postgresql://user@host/database; ${NAME} stands for an "
        "environment variable, and a password as it is is refused"
    )
    schema: str | tuple[str, ...] = setting(
        "the schema of the tables, or several, such as [cdm, vocabulary, results]; each table "
        "comes from the first schema that has it"
    )
    password_variable: str | None = setting(
        "the environment variable that holds the password; left out, as for `keyring`: the files "
        "of the driver, such as ~/.pgpass",
        None,
    )
    keyring: str | None = setting(
        "the service under which the keyring of the system holds the password of the user", None
    )
    cache_days: int = setting(
        "days for which tables are not pulled again; 0: always pull them", CACHE_DAYS, least=0
    )

    def contradictions(self) -> Iterator[InputError]:
        """A specification holds no credentials, and at most one place of them."""
        if has_secret(self.connection):
            yield bad_setting("connection", "the URL holds a password or a token as it is.", REMEDY)
        if self.password_variable is not None and self.keyring is not None:
            yield bad_setting(
                "keyring", "`password_variable` and `keyring` were both given.", "keep one of them."
            )

    @property
    def name(self) -> str:
        """The name of the database, without host or credentials."""
        return database_name(self.connection)


@settings
class CdmData(Data):
    """An OMOP Common Data Model."""

    cdm: str | CdmConnection = setting(
        "a folder or a zip archive of Parquet or CSV files, a DuckDB file, or the connection to a "
        "database",
        kw_only=True,
    )
    schema: str | tuple[str, ...] = setting(
        "the schema of a DuckDB file, or several; each table comes from the first schema that has "
        "it",
        "main",
    )
    ignore: tuple[str, ...] = setting("tables that are treated as absent", ())
    cohort_table: str = setting(
        "table of the CDM, with its schema before a dot if that is another one, or a file, that "
        "holds the cohorts of exposures and outcomes",
        "cohort",
    )
    cohort_definitions: str | None = setting(
        "a folder of cohort definitions, as CohortGenerator keeps them, from which the cohorts of "
        "exposures and outcomes are made, instead of a cohort table",
        None,
    )
    memory_limit: str | None = setting(
        "the memory that the embedded database may use before it writes to disk, such as 8GB; "
        f"left out: {MEMORY_WORDS}",
        None,
    )
    spill_folder: str | None = setting(
        "the folder to which the database writes then; left out: one beside the steps", None
    )

    def contradictions(self) -> Iterator[InputError]:
        """An amount of memory has a unit, and a URL is given as a connection."""
        yield from super().contradictions()
        if self.memory_limit is not None:
            try:
                checked_amount(self.memory_limit)
            except InputError as error:
                yield bad_setting("memory_limit", error.message, error.hint)
        if isinstance(self.cdm, str) and "://" in self.cdm:
            yield bad_setting(
                "cdm",
                "a database needs its schemas beside its URL.",
                "write cdm: {connection: postgresql://..., schema: [cdm, vocabulary, results]}.",
            )


@settings
class CohortMethodFiles(Data):
    """Populations with outcomes and covariates, as R's CohortMethod saves them."""

    cohort_method_data: str | tuple[str, ...] = setting(
        "a file of saveCohortMethodData, or one for each comparison; exposures and outcomes are "
        "cohorts of the files",
        kw_only=True,
    )

    @property
    def names(self) -> tuple[str, ...]:
        """The files."""
        given = self.cohort_method_data
        return (given,) if isinstance(given, str) else given
