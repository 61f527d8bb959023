"""What is pulled from a database: the columns and keys of each table that riskset reads.

A question that needs a further column has it pulled then, so the lists are about time and not about
results.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from riskset.omop.columns import kind
from riskset.omop.record_tables import TABLES

__all__ = ["PERSON_KEYS", "SMALL", "VOCABULARY", "PulledTable", "pulled_table", "usual_types"]

PERSON_KEYS = ("person_id", "subject_id")
"""The columns that say whose record a row is; the second one is that of cohorts."""

SMALL = ("cdm_source", "concept_class", "domain", "relationship", "vocabulary")
"""Tables without data of people and of few rows, which are pulled whole."""

VOCABULARY = {
    "concept": "concept_id",
    "concept_ancestor": "descendant_concept_id",
    "concept_relationship": "concept_id_2",
}
"""Tables of the vocabulary, of which the rows of some concepts are pulled, and their key."""

VALUES = ("value_as_number", "value_as_concept_id", "unit_concept_id")

FURTHER: dict[str, tuple[str, ...]] = {
    "person": (
        *("gender_concept_id", "race_concept_id", "ethnicity_concept_id"),
        *("care_site_id", "provider_id", "year_of_birth", "month_of_birth", "day_of_birth"),
    ),
    "observation_period": ("observation_period_start_date", "observation_period_end_date"),
    "death": ("death_date", "cause_concept_id"),
    "condition_occurrence": ("condition_end_date",),
    "drug_exposure": ("drug_exposure_end_date", "days_supply"),
    "measurement": (*VALUES, "range_low", "range_high"),
    "observation": VALUES,
    "visit_occurrence": ("care_site_id",),
    "visit_detail": ("visit_detail_start_date", "visit_detail_end_date", "care_site_id"),
    "concept": (
        *("concept_name", "domain_id", "vocabulary_id", "concept_class_id", "standard_concept"),
        *("concept_code", "invalid_reason"),
    ),
    "concept_ancestor": ("ancestor_concept_id", "min_levels_of_separation"),
    "concept_relationship": ("concept_id_1", "relationship_id", "invalid_reason"),
}
"""Table -> columns beside its key, and beside the concept and the days that `TABLES` has."""

COHORT = ("cohort_definition_id", "cohort_start_date", "cohort_end_date")
"""Of any table of cohorts."""

ARROW_TYPES = {
    "id": "int64",
    "whole number": "int64",
    "date": "date32",
    "number": "float64",
    "text": "string",
}
"""What a column holds -> its type of Arrow, where its rows do not say."""


@dataclass(frozen=True)
class PulledTable:
    """How a table is pulled: by which column (`key`), and which columns beside those asked for.

    `start` and `end` are the columns of its days, if its records have a concept and days.
    """

    key: str
    columns: tuple[str, ...]
    start: str | None = None
    end: str | None = None


def pulled_table(name: str, there: Sequence[str]) -> PulledTable | None:
    """How a table with columns `there` is pulled; None if nothing says whose rows are whose."""
    if name in VOCABULARY:
        key = VOCABULARY[name]
        return PulledTable(key, (key, *FURTHER[name]))
    key = next((column for column in PERSON_KEYS if column in there), "")
    if not key:
        return None
    if name in TABLES:
        concept, start, end = TABLES[name]
        days = (start,) if end is None else (start, end)
        columns = (key, concept, *days, *FURTHER.get(name, ()))
        return PulledTable(key, columns, start, end)
    return PulledTable(key, (key, *(COHORT if key == "subject_id" else FURTHER.get(name, ()))))


def usual_types(columns: Sequence[str]) -> dict[str, str]:
    """Types of Arrow of columns, by what their names say."""
    return {column: ARROW_TYPES[kind(column)] for column in columns}
