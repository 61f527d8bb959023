"""The sections that say where data are, who is exposed to what, and what happens to them.

Data are plain tables or an OMOP CDM, and exposures and outcomes are then columns or concepts.
"""

import datetime
from dataclasses import dataclass
from typing import Literal

from riskset.study.cdm_sections import RiskWindow
from riskset.study.document import key

__all__ = [
    "CdmData",
    "CdmExposure",
    "CdmOutcome",
    "Codes",
    "ConceptLine",
    "Covariates",
    "Data",
    "Exposure",
    "Outcome",
    "TableData",
    "TableExposure",
    "TableOutcome",
]

OutcomeKind = Literal["outcome", "negative control", "positive control"]


@dataclass(frozen=True)
class Covariates:
    """Where the covariates of plain tables are."""

    table: str | None = key("long table (row, covariate, value), or a design (.rsd)", None)
    columns: tuple[str, ...] | None = key(
        "columns of the table of people; left out: all that have no other use, or none if there is "
        "a long table",
        None,
    )
    drop: tuple[str, ...] = key("columns that are not covariates", ())
    unknown_rows: Literal["error", "drop"] = key("entries of people who are not there", "error")
    duplicates: Literal["error", "sum", "max"] = key("covariates given twice for one row", "error")


@dataclass(frozen=True, kw_only=True)
class Data:
    """What data of both kinds have."""

    name: str | None = key("what readers call the data; the name of the file, if left out", None)
    description: str = key("of the data", "")
    start: datetime.date | None = key("first day of the data", None)
    end: datetime.date | None = key("last day of the data", None)


@dataclass(frozen=True, kw_only=True)
class TableData(Data):
    """A table with one row for each exposure."""

    people: str = key("the table of people: CSV, Parquet, Arrow or DuckDB")
    treatment: str = key("its column that says who is exposed to what")
    table: str | None = key("name of the table in a DuckDB file", None)
    id: str | None = key("column that identifies rows; needed with a long table", None)
    person: str | None = key("column that identifies people, if they may enter twice", None)
    index_date: str | None = key("column of the first day, a date such as 2020-01-31", None)
    score: str | None = key("column of propensity scores, which are then not fitted", None)
    covariates: Covariates = key("where covariates are", Covariates)


@dataclass(frozen=True, kw_only=True)
class CdmData(Data):
    """An OMOP Common Data Model."""

    cdm: str = key("a folder or a zip archive of Parquet or CSV files, or a DuckDB file")
    schema: str | tuple[str, ...] = key(
        "schema of a DuckDB file, or several; each table comes from the first schema that has it",
        "main",
    )
    ignore: tuple[str, ...] = key("tables to treat as if they were not there", ())
    cohort_table: str = key(
        "table of the CDM, or a file, that holds the cohorts of exposures and outcomes", "cohort"
    )
    memory_limit: str | None = key(
        "memory that the embedded database may use before it writes to disk, such as 8GB; "
        "left out: 2GB",
        None,
    )
    spill_folder: str | None = key(
        "folder to which the database writes then; left out: the system's temporary folder", None
    )


@dataclass(frozen=True, kw_only=True)
class Exposure:
    """What targets and comparators of both kinds of data have."""

    label: str | None = key("what readers call it; its name, if left out", None)
    description: str = key("of the exposure", "")


@dataclass(frozen=True, kw_only=True)
class TableExposure(Exposure):
    """A target or comparator in a plain table."""

    value: str = key("in the column of the treatment")


@dataclass(frozen=True, kw_only=True)
class ConceptLine:
    """A concept with flags of its own; see `riskset.omop.ConceptItem`."""

    concept: int = key("id of the concept")
    descendants: bool = key("whether its descendants count, too", True)
    exclude: bool = key("whether it is taken out of the set", False)
    mapped: bool = key("whether codes that are mapped to it count, too", False)


@dataclass(frozen=True, kw_only=True)
class Codes:
    """Concepts of a CDM, or the records of a cohort that is there already."""

    concepts: tuple[int | ConceptLine, ...] = key("ids of concepts, or concepts with flags", ())
    concept_set: str | None = key(
        "file of a concept set that ATLAS exported, instead of concepts", None
    )
    descendants: bool = key("whether descendants of the ids count, too", True)
    exclude: tuple[int, ...] = key("ids of concepts to take out, with their descendants", ())
    cohort: int | None = key("cohort_definition_id in the cohort table, instead of concepts", None)


@dataclass(frozen=True, kw_only=True)
class CdmExposure(Exposure, Codes):
    """A target or comparator in a CDM: people who start one of some drugs."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What outcomes and controls of both kinds of data have."""

    label: str | None = key("what readers call it; its name, if left out", None)
    description: str = key("of the outcome", "")
    kind: OutcomeKind = key("whether it is a control", "outcome")
    true_hr: float | None = key("hazard ratio of a positive control", None, above=0)


@dataclass(frozen=True, kw_only=True)
class TableOutcome(Outcome):
    """An outcome or a control in a plain table."""

    time: str = key("column of the days at risk, the first and the last one counted")
    event: str = key("column of what ended them: 0 = censored, 1 = outcome, 2 = competing event")
    prior: str | None = key(
        "column that is 1 for people who had it before; they are left out", None
    )
    end_reason: str | None = key("column that says why follow-up ended", None)


@dataclass(frozen=True, kw_only=True)
class CdmOutcome(Outcome, Codes):
    """An outcome or a control in a CDM: the first diagnosis of some conditions."""

    inpatient: bool = key("whether records must start within an inpatient visit", False)
    tables: tuple[str, ...] | None = key(
        "tables to search for the concepts; left out: condition_occurrence, and observation, too, "
        "for negative controls",
        None,
    )
    death: bool = key("death from any cause, instead of concepts", False)
    time_at_risk: RiskWindow | None = key(
        "time at risk of this outcome, instead of that of the analyses", None
    )
    prior_outcome_lookback: int | None = key(
        "this outcome's own prior_outcome_lookback, instead of that of the time at risk",
        None,
        least=0,
    )
