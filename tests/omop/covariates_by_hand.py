"""Covariates of a few people from tables that are written by hand."""

import datetime

import pyarrow as pa

import riskset as rs
from omop.toy import rows

DAY0 = datetime.date(2020, 1, 1)


def on(day):
    return DAY0 + datetime.timedelta(days=day)


TABLES = {
    "visit_occurrence": (
        "visit_concept_id",
        "visit_start_date",
        "visit_end_date",
        "care_site_id",
    ),
    "visit_detail": ("visit_detail_start_date", "visit_detail_end_date", "care_site_id"),
    "concept_relationship": ("concept_id_2", "relationship_id"),
    "condition_era": ("condition_concept_id", "condition_era_start_date", "condition_era_end_date"),
    "condition_occurrence": ("condition_concept_id", "condition_start_date", "condition_end_date"),
    "drug_era": ("drug_concept_id", "drug_era_start_date", "drug_era_end_date"),
    "drug_exposure": (
        "drug_concept_id",
        "drug_exposure_start_date",
        "drug_exposure_end_date",
        "days_supply",
    ),
    "procedure_occurrence": ("procedure_concept_id", "procedure_date"),
    "device_exposure": ("device_concept_id", "device_exposure_start_date"),
    "observation": (
        "observation_concept_id",
        "observation_date",
        "value_as_number",
        "unit_concept_id",
        "value_as_concept_id",
    ),
    "measurement": (
        "measurement_concept_id",
        "measurement_date",
        "value_as_number",
        "unit_concept_id",
        "range_low",
        "range_high",
        "measurement_id",
        "value_as_concept_id",
    ),
    "concept": (
        "concept_name",
        "domain_id",
        "vocabulary_id",
        "concept_class_id",
        "standard_concept",
        "concept_code",
    ),
    "concept_ancestor": ("descendant_concept_id", "min_levels_of_separation"),
    "person": (
        "year_of_birth",
        "month_of_birth",
        "day_of_birth",
        "gender_concept_id",
        "race_concept_id",
        "ethnicity_concept_id",
        "care_site_id",
    ),
}
KEYS = {
    "concept": "concept_id",
    "concept_ancestor": "ancestor_concept_id",
    "concept_relationship": "concept_id_1",
}


def table(name, records):
    """Records that start with the person, or the concept; days are relative to index."""
    columns = (KEYS.get(name, "person_id"), *TABLES[name])
    given = {}
    for k, column in enumerate(columns):
        values = [r[k] if k < len(r) else None for r in records]
        if column.endswith("_date"):
            given[column] = pa.array([None if v is None else on(v) for v in values], pa.date32())
        elif column in (*TABLES["concept"], "relationship_id"):
            given[column] = pa.array(values, pa.string())
        else:
            whole = all(v is None or float(v).is_integer() for v in values)
            given[column] = pa.array(values, pa.int64() if whole else pa.float64())
    return pa.table(given)


def covariates(records, analyses, *, people=(1, 2), drugs=(), days=0, **settings):
    """Sorted (person, name, value) of people who enter on 2020-01-01, target and comparators.

    They stay in the cohort for some `days`.
    """
    tables = {name: table(name, own) for name, own in records.items()}
    persons = sorted(people)
    tables.setdefault("person", table("person", [(p, 1950) for p in persons]))
    tables["observation_period"] = pa.table(
        {
            "person_id": persons,
            "observation_period_start_date": [on(-400)] * len(persons),
            "observation_period_end_date": [on(400)] * len(persons),
        }
    )
    both = pa.table(
        {
            "cohort_definition_id": [1 if p == 1 else 2 for p in persons],
            "subject_id": persons,
            "cohort_start_date": [DAY0] * len(persons),
            "cohort_end_date": [on(days)] * len(persons),
        }
    )
    chosen = rs.omop.CovariateSettings(analyses, **settings)
    with rs.omop.Cdm(tables) as cdm:
        episodes = rs.omop.CohortTable(1, 2, both, drugs=drugs).read(cdm)
        start = rs.omop.Eligibility(restrict_to_common_period=False).select(cdm, episodes)
        found = rs.omop.Covariates.extract(cdm, start, chosen)
        names = dict(zip(found.ids, found.names, strict=True))
        # row ids are 1, 2, ... by person
        entries = sorted(
            (persons[r - 1], names[i], v)
            for i, r, v in rows(found.table, "covariate_id", "row_id", "value")
        )
        return entries, found


def during(start, end=0):
    """The days of a window, as the names of covariates say them."""
    return f"during day {start} through {end} days relative to index"


def of_person(entries, person=1):
    return [name for p, name, _ in entries if p == person]
