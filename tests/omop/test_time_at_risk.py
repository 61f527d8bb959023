"""Time at risk, events and new users, by hand."""

import pyarrow as pa
import pytest

import riskset as rs
from omop.by_hand import cdm_of, days, followed, on
from omop.toy import (
    COMPARATOR,
    TARGET,
    episodes,
    rows,
    toy,
)


def told(found):
    return rows(
        found.table, "person_id", "risk_start", "risk_end", "survival_time", "status", "end_reason"
    )


def test_as_started():
    found = followed([(1, 1, 0, 9)], observed=(-10, 700), events=[(1, 400)], risk_end=None)
    assert told(found) == [(1, 1, 700, 400, 1, "outcome")]


def test_fixed_days_after_the_start():
    found = followed([(1, 1, 0, 9)], risk_end=365, end_anchor="cohort start")
    assert told(found) == [(1, 1, 365, 365, 0, "maximum days")]


def test_most_days_are_days():
    found = followed([(1, 1, 0, 99)], max_days=30)
    assert told(found) == [(1, 1, 30, 30, 0, "maximum days")]


def test_from_the_end_of_exposure():
    options = {"start_anchor": "cohort end", "risk_end": 30}
    found = followed([(1, 1, 0, 9), (1, 2, 0, 9)], events=[(1, 9), (2, 10)], **options)
    # Person 1 has the outcome before the risk begins on day 10.
    assert told(found) == [(2, 10, 39, 1, 1, "outcome")]
    kept = followed([(1, 1, 0, 9)], events=[(1, 9)], remove_prior_outcome=False, **options)
    assert told(kept) == [(1, 10, 39, 30, 0, "cohort end")]


@pytest.mark.parametrize(("lookback", "left"), [(None, []), (100, [1]), (101, []), (0, [1])])
def test_lookback(lookback, left):
    """Only outcomes after day -lookback count as prior."""
    found = followed([(1, 1, 0, 9)], events=[(1, -100)], prior_outcome_lookback=lookback)
    assert [p for p, *_ in told(found)] == left
    assert found.status == ("one_arm_empty" if left else "empty")


def test_outcome_outside_observation_is_no_prior_outcome():
    found = followed([(1, 1, 0, 9)], observed=(-50, 50), events=[(1, -51), (1, 51)])
    assert told(found) == [(1, 1, 9, 9, 0, "cohort end")]
    assert found.events_outside_observation == 2
    assert [n.code for n in found.notes] == ["missing_table", "events_outside_observation"]


def test_nothing_happens_after_death():
    found = followed([(1, 1, 0, 90)], events=[(1, 31)], deaths=[(1, 30)], competing=())
    assert told(found) == [(1, 1, 30, 30, 0, "death")]
    assert found.events_outside_observation == 1


def test_death_on_the_last_day_of_observation_is_an_event():
    found = followed([(1, 1, 0, 90)], observed=(-10, 30), deaths=[(1, 30)])
    assert told(found) == [(1, 1, 30, 30, 2, "competing event")]
    # Observation may end because of the death, so this is the reason that is told.
    censored = followed([(1, 1, 0, 90)], observed=(-10, 30), deaths=[(1, 30)], competing=())
    assert told(censored) == [(1, 1, 30, 30, 0, "death")]


@pytest.mark.parametrize("competing", ["death", ()])
def test_who_dies_early_is_not_left_out_for_it(competing):
    """Fewest days at risk are days that were planned; death before the risk begins ends them."""
    records = [(1, 1, 0, 90), (0, 2, 0, 90), (0, 3, 0, 9), (1, 4, 0, 90)]
    deaths = [(1, 10), (3, 5), (4, 4)]
    found = followed(records, deaths=deaths, competing=competing, min_days_at_risk=30, risk_start=5)
    end = (2, "competing event") if competing else (0, "death")
    assert told(found) == [(1, 5, 10, 6, *end), (2, 5, 90, 86, 0, "cohort end")]


def test_death_within_a_time_at_risk_that_the_next_one_ends():
    records = [(1, 1, 0, 100), (1, 1, 50, 60), (0, 2, 0, 100), (0, 2, 50, 60)]
    found = followed(
        records, deaths=[(1, 20), (2, 55)], competing=(), censor_at_new_risk_window=True
    )
    assert told(found) == [
        (1, 1, 20, 20, 0, "death"),
        (2, 1, 50, 50, 0, "new time at risk"),
        (2, 1, 5, 5, 0, "death"),
    ]
    # The second exposure of person 1 is after death, and left out as soon as observed people are.
    assert [s.step for s in found.attrition.steps][2:4] == ["observed at index", "alive at index"]
    assert found.attrition.steps[3].removed_target == 1


def test_next_time_at_risk_ends_this_one():
    records = [(1, 1, 0, 100), (1, 1, 50, 60), (0, 2, 0, 5), (0, 2, 0, 7)]
    found = followed(records, censor_at_new_risk_window=True)
    assert told(found) == [
        (1, 1, 50, 50, 0, "new time at risk"),  # the next begins on day 51
        (1, 1, 10, 10, 0, "cohort end"),
        (2, 1, 7, 7, 0, "cohort end"),
    ]
    last = found.attrition.steps[-2]
    assert (last.step, last.removed_target, last.removed_comparator) == ("new time at risk", 0, 1)


def test_days_at_risk():
    records = [(1, 1, 0, 0), (1, 2, 0, 29), (0, 3, 0, 30)]
    found = followed(records, min_days_at_risk=30)
    assert [p for p, *_ in told(found)] == [3]
    assert found.attrition.steps[-1].step == "at least 30 days at risk"
    assert found.attrition.steps[-1].removed_target == 2


def test_events_of_every_kind():
    """One event a person: a diagnosis, one in hospital, a record of a cohort, a death, none."""
    records = [(1, p, 0, 90) for p in (1, 2, 3)] + [(0, p, 0, 90) for p in (4, 5)]
    extra = {
        "condition_occurrence": pa.table(
            {
                "person_id": [1, 2, 5],
                "condition_concept_id": [11, 11, 12],
                "condition_start_date": [on(10), on(20), on(5)],
            }
        ),
        "visit_occurrence": pa.table(
            {
                "person_id": [1, 2, 1],
                "visit_concept_id": [9202, 9201, 9201],
                "visit_start_date": [on(10), on(18), on(11)],
                "visit_end_date": [on(10), on(21), on(12)],
            }
        ),
        "records": pa.table(
            {
                "cohort_definition_id": [5, 6],
                "subject_id": [3, 5],
                "cohort_start_date": [on(30), on(31)],
            }
        ),
    }
    own = rs.omop.ConceptSet([11], descendants=False)
    kinds = {
        "a concept set": (own, {1: 10, 2: 20}),
        "in hospital": (rs.omop.Diagnosis(own, inpatient=True), {2: 20}),
        "a cohort": (rs.omop.CohortRecords(5, "records"), {3: 30}),
        "any cohort": (rs.omop.CohortRecords(None, "records"), {3: 30, 5: 31}),
        "death": ("death", {4: 40}),
        "several": ([own, "death"], {1: 10, 2: 20, 4: 40}),
    }
    rules = rs.omop.Eligibility(washout_days=0, restrict_to_common_period=False)
    with cdm_of(records, deaths=[(4, 40)], extra=extra) as cdm:
        start = rules.select(cdm, rs.omop.CohortTable(1, 0).read(cdm))
        for name, (event, expected) in kinds.items():
            found = rs.omop.TimeAtRisk().follow(cdm, start, event)
            told = rows(found.table, "person_id", "survival_time", "status")
            assert {p: day for p, day, status in told if status == 1} == expected, name
        with pytest.raises(rs.CohortError, match="the only event with a name is 'death'"):
            rs.omop.TimeAtRisk().follow(cdm, start, "stroke")


def exposures_of(records):
    """Records (person, concept, start, end, supply)."""
    names = ("drug_exposure_start_date", "drug_exposure_end_date")
    drugs = pa.table(
        {
            "person_id": [r[0] for r in records],
            "drug_concept_id": [r[1] for r in records],
            names[0]: [on(r[2]) for r in records],
            names[1]: pa.array([None if r[3] is None else on(r[3]) for r in records], pa.date32()),
            "days_supply": pa.array([r[4] for r in records], pa.int32()),
        }
    )
    persons = sorted({r[0] for r in records})
    periods = pa.table(
        {
            "person_id": persons,
            "observation_period_start_date": [on(-5)] * len(persons),
            "observation_period_end_date": [on(900)] * len(persons),
        }
    )
    return {"drug_exposure": drugs, "observation_period": periods}


def episodes_of(records, **options):
    sets = (rs.omop.ConceptSet([c], descendants=False) for c in (11, 22))
    with rs.omop.Cdm(exposures_of(records)) as cdm:
        return rs.omop.NewUserCohort(*sets, **options).read(cdm)


def test_ends_of_exposures():
    records = [
        (1, 11, 0, 9, 30),  # the end date comes first
        (2, 11, 0, None, 30),
        (3, 11, 0, None, 0),
        (4, 11, 0, None, None),
        (5, 11, 0, -3, 30),
        (6, 0, 0, 9, 9),
        (7, 33, 0, 9, 9),
    ]
    found = days(episodes_of(records))
    assert found == [(1, 1, 0, 9), (1, 2, 0, 29), (1, 3, 0, 0), (1, 4, 0, 0), (1, 5, 0, 0)]


def test_gaps_are_from_the_running_end():
    records = [(1, 11, 0, 99, 0), (1, 11, 5, 9, 0), (1, 11, 129, 139, 0), (1, 11, 170, 179, 0)]
    assert days(episodes_of(records)) == [(1, 1, 0, 139), (1, 1, 170, 179)]
    assert days(episodes_of(records, gap_days=31)) == [(1, 1, 0, 179)]
    more = days(episodes_of(records, end_extension_days=60))
    assert more == [(1, 1, 0, 169), (1, 1, 170, 239)]


def test_notes_of_exposures():
    found = episodes_of([(1, 11, 0, 400, 0), (2, 22, 300, 310, 0)])
    assert [note.code for note in found.notes] == ["long_exposures"]
    assert found.early == {"target": 1.0, "comparator": 0.0}


def test_eras():
    eras = rs.omop.NewUserCohort(TARGET, COMPARATOR, source="drug_era").read(toy())
    # Gaps of 30 days were already closed, so only overlaps of the two drugs of a class can differ.
    assert eras.table.equals(episodes().table)
