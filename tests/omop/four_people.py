"""Four people with an exposure on 2015-06-15; person 1 has heart failure on 2016-01-10."""

import pandas as pd

import riskset as rs
from omop.by_hand import day

HEART_FAILURE = rs.omop.ConceptSet([316139], descendants=False)
IDS = [1, 2, 3, 4]


def tables(**change):
    """The tables as pandas frames, some of them in other words."""
    own = {
        "person": pd.DataFrame(
            {
                "person_id": IDS,
                "gender_concept_id": [8507, 8532, 8507, 8532],
                "year_of_birth": [1950, 1960, 1970, 1940],
                "month_of_birth": [6, 1, 1, 1],
                "day_of_birth": [15, 1, 1, 1],
                "race_concept_id": [0] * 4,
                "ethnicity_concept_id": [0] * 4,
            }
        ),
        "observation_period": pd.DataFrame(
            {
                "person_id": IDS,
                "observation_period_start_date": [day("2010-01-01")] * 4,
                "observation_period_end_date": [day("2020-12-31")] * 4,
            }
        ),
        "cohort": pd.DataFrame(
            {
                "cohort_definition_id": [1, 2, 1, 2],
                "subject_id": IDS,
                "cohort_start_date": [day("2015-06-15")] * 4,
                "cohort_end_date": [day("2015-12-31")] * 4,
            }
        ),
        "death": deaths(),
        "condition_occurrence": pd.DataFrame(
            {
                "person_id": [1],
                "condition_concept_id": [316139],
                "condition_start_date": [day("2016-01-10")],
            }
        ),
    }
    return own | change


def deaths(*found):
    """Table death of pairs (person, day)."""
    return pd.DataFrame(
        {
            "person_id": pd.Series([person for person, _ in found], dtype="int64"),
            "death_date": pd.Series([day(on) for _, on in found], dtype="object"),
        }
    )


def folder_of(own, folder):
    """The tables as CSV files."""
    folder.mkdir(exist_ok=True)
    for name, table in own.items():
        table.to_csv(folder / f"{name}.csv", index=False)
    return folder


def follow(source, *, outcome=HEART_FAILURE, competing=(), at_risk=None, **rules):
    """Everybody followed to an outcome, as started unless `at_risk` says otherwise."""
    rules = {"washout_days": 0, "restrict_to_common_period": False} | rules
    window = rs.omop.TimeAtRisk(**({"risk_end": None} | (at_risk or {})))
    with rs.omop.Cdm(source) as cdm:
        both = rs.omop.CohortTable(1, 2).read(cdm)
        return window.follow(
            cdm, rs.omop.Eligibility(**rules).select(cdm, both), outcome, competing
        )


def told(population, *names):
    """Columns of the people who are followed, as tuples."""
    names = names or ("person_id", "index_date", "survival_time", "status")
    return list(zip(*(population.table.column(n).to_pylist() for n in names), strict=True))


def messages(population):
    """Its notes by code."""
    return {note.code: note.message for note in population.notes}
