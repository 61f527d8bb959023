"""Small CDMs written by hand, in days from 2020-01-01."""

import datetime

import pyarrow as pa

import riskset as rs
from omop.toy import (
    rows,
)

DAY0 = datetime.date(2020, 1, 1)


def on(day):
    return DAY0 + datetime.timedelta(days=day)


def cdm_of(records, *, observed=(-1000, 1000), events=(), deaths=(), people=(), extra=None):
    """Records (arm, person, start, end) in days from 2020-01-01."""
    persons = sorted({p for _, p, *_ in records})
    tables = {
        "cohort": pa.table(
            {
                "cohort_definition_id": pa.array([a for a, *_ in records], pa.int32()),
                "subject_id": pa.array([p for _, p, *_ in records], pa.int32()),
                "cohort_start_date": pa.array([on(s) for *_, s, _ in records], pa.date32()),
                "cohort_end_date": pa.array([on(e) for *_, e in records], pa.date32()),
            }
        ),
        "observation_period": pa.table(
            {
                "person_id": persons,
                "observation_period_start_date": [on(observed[0])] * len(persons),
                "observation_period_end_date": [on(observed[1])] * len(persons),
            }
        ),
        "event": pa.table(
            {
                "person_id": pa.array([p for p, _ in events], pa.int64()),
                "event_date": pa.array([on(d) for _, d in events], pa.date32()),
            }
        ),
        "death": pa.table(
            {
                "person_id": pa.array([p for p, _ in deaths], pa.int64()),
                "death_date": pa.array([on(d) for _, d in deaths], pa.date32()),
            }
        ),
    }
    if people:
        tables["person"] = pa.table(
            {
                name: pa.array([p[k] for p in people], pa.int32())
                for k, name in enumerate(
                    ("person_id", "gender_concept_id", "year_of_birth", "month_of_birth")
                )
            }
        )
    return rs.omop.Cdm(tables | (extra or {}))


def followed(
    records, *, events=(), deaths=(), observed=(-1000, 1000), competing="death", **options
):
    rules = {"washout_days": 0, "restrict_to_common_period": False, "first_exposure_only": False}
    with cdm_of(records, observed=observed, events=events, deaths=deaths) as cdm:
        both = rs.omop.CohortTable(1, 0).read(cdm)
        start = rs.omop.Eligibility(remove_duplicates="keep all", **rules).select(cdm, both)
        return rs.omop.TimeAtRisk(**options).follow(cdm, start, cdm.arrow("event"), competing)


def days(found):
    return [
        (a, p, (s - DAY0).days, (e - DAY0).days)
        for a, p, s, e in rows(found.table, "treatment", "person_id", "start_date", "end_date")
    ]


PERIODS = {
    "person_id": [1, 2],
    "observation_period_start_date": ["2010-01-01", "2011-01-01"],
    "observation_period_end_date": ["2019-12-31", "2019-12-31"],
}


def day(text):
    return datetime.date.fromisoformat(text)


def code_of(raised):
    return raised.value.code
