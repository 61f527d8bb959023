"""Tables of records of people: where each keeps the concept and the days of a record."""

from typing import NamedTuple

__all__ = ["CONDITIONS", "ERAS", "TABLES", "RecordColumns"]


class RecordColumns(NamedTuple):
    """Where a table keeps the concept and the days of a record."""

    concept: str
    start: str
    end: str | None = None


ERAS = {"condition_era": "condition_occurrence", "drug_era": "drug_exposure"}
"""Eras, and the records that they are built from where they are missing."""

TABLES = {
    "condition_occurrence": RecordColumns("condition_concept_id", "condition_start_date"),
    "condition_era": RecordColumns(
        "condition_concept_id", "condition_era_start_date", "condition_era_end_date"
    ),
    "drug_exposure": RecordColumns("drug_concept_id", "drug_exposure_start_date"),
    "drug_era": RecordColumns("drug_concept_id", "drug_era_start_date", "drug_era_end_date"),
    "procedure_occurrence": RecordColumns("procedure_concept_id", "procedure_date"),
    "device_exposure": RecordColumns("device_concept_id", "device_exposure_start_date"),
    "measurement": RecordColumns("measurement_concept_id", "measurement_date"),
    "observation": RecordColumns("observation_concept_id", "observation_date"),
    "visit_occurrence": RecordColumns("visit_concept_id", "visit_start_date", "visit_end_date"),
}
"""Table of the CDM -> its columns. A record without an end is one day."""

CONDITIONS = RecordColumns("condition_concept_id", "condition_start_date", "condition_end_date")
"""Of condition_occurrence, for eras."""
