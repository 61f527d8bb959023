"""Dates that contradict each other: who is left out or cut short, and the notes that say so."""

import pandas as pd
import pyarrow as pa
import pytest

import riskset as rs
from omop.by_hand import cdm_of, day, on
from omop.four_people import deaths, follow, messages, tables, told

# -------------------------------------------------------------------- deaths


def test_follow_up_ends_at_death():
    """2016-03-01 is day 260 after 2015-06-15; observation goes on for two months."""
    own = tables(death=deaths((2, "2016-03-01")))
    own["observation_period"].loc[1, "observation_period_end_date"] = day("2016-04-30")
    found = follow(own)
    names = ("person_id", "risk_end", "survival_time", "status", "end_reason")
    assert told(found, *names)[1] == (2, 260, 260, 0, "death")
    assert messages(found)["observed_after_death"] == (
        "1 exposure is observed after the death of the person; follow-up ends with the day of "
        "death."
    )
    as_competing = follow(own, competing="death")
    assert told(as_competing, *names)[1] == (2, 260, 260, 2, "competing event")
    as_outcome = follow(own, outcome="death")
    assert told(as_outcome, *names)[1] == (2, 260, 260, 1, "outcome")


def test_who_died_before_the_index_date_is_left_out():
    found = follow(tables(death=deaths((2, "2014-03-01"), (4, "2015-06-15"))))
    # Person 4 died on the index date, and so has no day at risk.
    assert [person for person, *_ in told(found)] == [1, 3]
    steps = {s.step: (s.removed_target, s.removed_comparator) for s in found.attrition.steps}
    assert steps["alive at index"] == (0, 1)
    assert steps["at least 1 day at risk"] == (0, 1)
    names = [s.step for s in found.attrition.steps]
    assert names[names.index("alive at index") - 1] == "observed at index"
    assert messages(found)["death_before_index"] == (
        "Exposures that start after the death of the person are left out (1 exposure)."
    )


def test_without_such_deaths_there_is_no_such_step():
    found = follow(tables(death=deaths((2, "2016-03-01"))))
    assert "alive at index" not in [s.step for s in found.attrition.steps]
    assert "death_before_index" not in messages(found)


def test_deaths_before_the_index_date_of_cohorts_of_other_programs():
    given = pd.DataFrame(
        {
            "person_id": [1, 2],
            "treatment": [1, 0],
            "index_date": ["2015-06-15"] * 2,
            "days_from_obs_start": [400, 400],
            "days_to_cohort_end": [90, 90],
            "days_to_obs_end": [500, 500],
        }
    )
    with rs.omop.Cdm(tables(death=deaths((2, "2014-03-01")))) as cdm:
        start = rs.omop.StudyCohort.from_table(given)
        found = rs.omop.TimeAtRisk(risk_start=-30).follow(cdm, start, "death")
    assert [s.step for s in found.attrition.steps][:2] == ["given cohorts", "alive at index"]
    assert told(found, "person_id") == [(1,)]
    assert "death_before_index" in messages(found)


def test_several_dates_of_death():
    found = follow(tables(death=deaths((2, "2016-03-02"), (2, "2016-03-01"), (3, "2016-03-01"))))
    assert told(found, "person_id", "risk_end")[1:3] == [(2, 260), (3, 260)]
    assert messages(found)["several_deaths"] == (
        "1 person of table death has several dates of death; the first counts."
    )


# -------------------------------------------------------------------- observation periods


def periods(*own):
    return pd.DataFrame(
        {
            "person_id": [person for person, *_ in own],
            "observation_period_start_date": [day(start) for _, start, _ in own],
            "observation_period_end_date": [day(end) for *_, end in own],
        }
    )


WHOLE = [(person, "2010-01-01", "2020-12-31") for person in (1, 3, 4)]
IN_TWO = periods((2, "2010-01-01", "2014-12-31"), (2, "2015-01-01", "2020-12-31"), *WHOLE)


def test_an_end_that_stands_for_none():
    own = tables()
    own["observation_period"]["observation_period_end_date"] = [day("9999-12-31")] * 4
    note = messages(follow(own))["end_not_known"]
    assert note.startswith("4 exposures are observed to 2099-01-01 or later")
    assert "study_end" in note
    assert "end_not_known" not in messages(follow(own, study_end="2020-12-31"))


def test_a_start_that_stands_for_none():
    own = tables()
    own["observation_period"].loc[0, "observation_period_start_date"] = day("1900-01-01")
    assert messages(follow(own))["start_not_known"].startswith("1 exposure is observed from before")
    assert "start_not_known" not in messages(follow(tables()))


def test_periods_without_a_day_between():
    found = follow(tables(observation_period=IN_TWO), washout_days=365)
    assert [person for person, *_ in told(found)] == [1, 3, 4]
    note = messages(found)["adjacent_observation_periods"]
    assert note.startswith(
        "1 exposure is in an observation period that follows or precedes another one"
    )
    joined = follow(
        tables(observation_period=IN_TWO), washout_days=365, join_observation_periods=True
    )
    assert told(joined, "person_id", "days_from_obs_start", "days_to_obs_end")[1] == (2, 1991, 2026)
    assert "adjacent_observation_periods" not in messages(joined)


def test_periods_with_a_day_between_are_two():
    own = periods((2, "2010-01-01", "2014-12-30"), (2, "2015-01-01", "2020-12-31"), *WHOLE)
    found = follow(tables(observation_period=own), join_observation_periods=True)
    assert told(found, "days_from_obs_start")[1] == (165,)
    assert "adjacent_observation_periods" not in messages(found)


def test_of_two_periods_with_one_start_the_longer_counts():
    own = periods((2, "2010-01-01", "2016-06-30"), (2, "2010-01-01", "2020-12-31"), *WHOLE)
    found = follow(tables(observation_period=own))
    assert told(found, "days_to_obs_end")[1] == (2026,)
    assert (
        "the longest of several that began on the same day"
        in (messages(found)["overlapping_observation_periods"])
    )


def test_a_period_that_ends_before_it_starts():
    own = periods((2, "2020-12-31", "2010-01-01"), *WHOLE)
    for join in (False, True):
        found = follow(tables(observation_period=own), join_observation_periods=join)
        assert [person for person, *_ in told(found)] == [1, 3, 4]
        assert messages(found)["end_before_start"] == (
            "1 record of observation_period ends before it starts, and does not count."
        )


def test_a_period_without_a_last_day():
    own = periods((2, "2010-01-01", "2020-12-31"), *WHOLE)
    own.loc[0, "observation_period_end_date"] = None
    for join in (False, True):
        found = follow(tables(observation_period=own), join_observation_periods=join)
        assert [person for person, *_ in told(found)] == [1, 3, 4]
        assert messages(found)["incomplete_period"] == (
            "1 record of observation_period has no first or no last day, and does not count."
        )


# -------------------------------------------------------------------- records


def test_drug_records_that_end_before_they_start():
    """They last one day, whatever their supply."""
    drugs = pa.table(
        {
            "person_id": [1, 2],
            "drug_concept_id": [11, 12],
            "drug_exposure_start_date": [on(0), on(0)],
            "drug_exposure_end_date": [on(-5), on(9)],
            "days_supply": [30, 30],
        }
    )
    arms = [rs.omop.ConceptSet([c], descendants=False) for c in (11, 12)]
    with cdm_of([(1, 1, 0, 0), (0, 2, 0, 0)], extra={"drug_exposure": drugs}) as cdm:
        found = rs.omop.NewUserCohort(*arms).read(cdm)
    assert found.table.column("end_date").to_pylist() == [on(0), on(9)]
    assert [note.message for note in found.notes] == [
        "1 record of drug_exposure of the arms ends before it starts, and lasts one day."
    ]


@pytest.mark.parametrize(
    ("start", "end", "status"), [(10, 5, 1), (9, 5, 0), (9, 11, 1)], ids=["first day", "not", "in"]
)
def test_visits_that_end_before_they_start(start, end, status):
    extra = {
        "condition_occurrence": pa.table(
            {"person_id": [1], "condition_concept_id": [11], "condition_start_date": [on(10)]}
        ),
        "visit_occurrence": pa.table(
            {
                "person_id": [1],
                "visit_concept_id": [9201],
                "visit_start_date": [on(start)],
                "visit_end_date": [on(end)],
            }
        ),
    }
    outcome = rs.omop.Diagnosis(rs.omop.ConceptSet([11], descendants=False), inpatient=True)
    rules = rs.omop.Eligibility(washout_days=0, restrict_to_common_period=False)
    with cdm_of([(1, 1, 0, 90), (0, 2, 0, 90)], extra=extra) as cdm:
        cohort = rules.select(cdm, rs.omop.CohortTable(1, 0).read(cdm))
        found = rs.omop.TimeAtRisk().follow(cdm, cohort, outcome)
    assert told(found, "status")[0] == (status,)
    assert ("end_before_start" in messages(found)) == (end < start)


def test_a_nesting_cohort_that_ends_before_it_starts():
    nested = pa.table(
        {
            "cohort_definition_id": [7, 7],
            "subject_id": [1, 2],
            "cohort_start_date": [day("2015-06-15"), day("2015-06-14")],
            "cohort_end_date": [day("2015-06-01"), day("2015-06-01")],
        }
    )
    found = follow(tables(), nesting_cohort=rs.omop.CohortRecords(7, nested))
    assert told(found, "person_id") == [(1,)]
    assert messages(found)["end_before_start"].startswith("2 records of cohort `7` end before they")
