"""Concept sets, cohorts of others, study cohorts: what is read, and the faults with their words."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import riskset as rs
from omop.by_hand import PERIODS, code_of, day
from omop.toy import COMPARATOR, TARGET, rows, toy_tables


def test_concept_sets():
    heart = rs.omop.ConceptSet([321588], exclude=[4329847])
    with rs.omop.Cdm(toy_tables()) as cdm:
        assert heart.ids(cdm) == (313217, 316139, 317576, 321588)
        assert rs.omop.ConceptSet([321588], descendants=False).ids(cdm) == (321588,)
        assert rs.omop.ConceptSet([99], descendants=True).ids(cdm) == (99,)
        assert rs.omop.ConceptSet([]).ids(cdm) == ()


@pytest.mark.parametrize("bad", [0, -1, 1.5, "316139", True])
def test_bad_concepts(bad):
    with pytest.raises(rs.CohortError, match="whole numbers above 0") as raised:
        rs.omop.ConceptSet([316139, bad])
    assert code_of(raised) == "BadConcept"


def test_empty_concept_ancestor():
    ancestors = toy_tables()["concept_ancestor"].slice(0, 0)
    for tables, word in (({}, "missing"), ({"concept_ancestor": ancestors}, "empty")):
        with (
            rs.omop.Cdm(tables) as cdm,
            pytest.raises(
                rs.CohortError, match=f"concept_ancestor of the mapping of data frames is {word}"
            ) as raised,
        ):
            rs.omop.ConceptSet([974166]).ids(cdm)
        assert code_of(raised) == "EmptyConceptAncestor"
        assert "descendants=False" in str(raised.value)


def cohort_table(**columns):
    given = {
        "cohort_definition_id": [1, 2],
        "subject_id": [1, 3],
        "cohort_start_date": ["2015-01-01", "2015-01-02"],
        "cohort_end_date": ["2014-12-31", None],
    }
    return pa.table(given | columns)


def test_cohorts_in_a_file(tmp_path):
    pq.write_table(cohort_table(), tmp_path / "cohorts.parquet")
    with rs.omop.Cdm({"observation_period": pa.table(PERIODS)}) as cdm:
        for source in (tmp_path / "cohorts.parquet", str(tmp_path / "cohorts.parquet")):
            assert rs.omop.CohortTable(1, 2, source).read(cdm).table.num_rows == 2


def test_ends_before_starts_are_counted():
    tables = {"observation_period": pa.table(PERIODS), "cohort": cohort_table()}
    with rs.omop.Cdm(tables) as cdm:
        found = rs.omop.CohortTable(1, 2).read(cdm)
    starts = rows(found.table, "start_date")
    assert rows(found.table, "end_date") == starts == [(day("2015-01-01"),), (day("2015-01-02"),)]
    assert [note.message for note in found.notes] == [
        "1 record of cohort `1` ends before it starts, and lasts one day."
    ]


def test_bad_cohorts():
    with rs.omop.Cdm({"observation_period": pa.table(PERIODS)}) as cdm:
        incomplete = cohort_table(subject_id=[1, None])
        with pytest.raises(
            rs.CohortError, match="1 record of cohort `2` has no subject_id"
        ) as raised:
            rs.omop.CohortTable(1, 2, incomplete).read(cdm)
        assert code_of(raised) == "BadCohort"
        with pytest.raises(rs.CohortError, match="both cohort 1"):
            rs.omop.CohortTable(1, 1).read(cdm)
        with pytest.raises(rs.CohortError, match="no table cohort"):
            rs.omop.CohortTable(1, 2).read(cdm)


def test_unknown_persons():
    tables = {"observation_period": pa.table(PERIODS), "person": pa.table({"person_id": [1, 2]})}
    with rs.omop.Cdm(tables) as cdm:
        both = rs.omop.CohortTable(1, 2, cohort_table()).read(cdm)
        with pytest.raises(rs.CohortError, match=r"1 person of the cohorts has no row") as raised:
            rs.omop.Eligibility().select(cdm, both)
    assert code_of(raised) == "UnknownPerson"
    assert raised.value.details == {"count": 1, "ids": [3]}


def test_bad_birth_dates():
    person = pa.table({"person_id": [1, 3], "year_of_birth": [1880, 2016]})
    tables = {"observation_period": pa.table(PERIODS | {"person_id": [1, 3]}), "person": person}
    with rs.omop.Cdm(tables) as cdm:
        both = rs.omop.CohortTable(1, 2, cohort_table()).read(cdm)
        with pytest.raises(rs.CohortError, match="2 people would be younger") as raised:
            rs.omop.Eligibility(min_age=18, restrict_to_common_period=False).select(cdm, both)
    assert code_of(raised) == "BadBirthDate"
    assert "person 1: 135, person 3: -1" in str(raised.value)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: rs.omop.Eligibility(washout_days=-1), "whole number of at least 0"),
        (lambda: rs.omop.Eligibility(remove_duplicates="keep frist"), "did you mean 'keep first'"),
        (lambda: rs.omop.Eligibility(study_start="01/02/2015"), "must be a date"),
        (lambda: rs.omop.Eligibility(max_cohort_size=0), "at least 1"),
        (lambda: rs.omop.Eligibility(min_age=65, max_age=64), "so no person can enter"),
        (
            lambda: rs.omop.Eligibility(study_start="2016-01-01", study_end="2015-12-31"),
            r"`study_end` \(2015-12-31\) comes before `study_start` \(2016-01-01\)",
        ),
        (lambda: rs.omop.Eligibility(age_method="years"), "age_method"),
        (lambda: rs.omop.TimeAtRisk(min_days_at_risk=0), "of at least 1, but it is 0"),
        (lambda: rs.omop.TimeAtRisk(risk_start=0.5), "`risk_start` must be a whole number"),
        (lambda: rs.omop.TimeAtRisk(end_anchor="cohort_end"), "did you mean 'cohort end'"),
        (lambda: rs.omop.TimeAtRisk(start_anchor="index"), "start_anchor"),
        (lambda: rs.omop.NewUserCohort(TARGET, COMPARATOR, gap_days=-1), "gap_days"),
        (lambda: rs.omop.NewUserCohort(TARGET, COMPARATOR, source="drugs"), "'drug_exposure'"),
    ],
)
def test_bad_settings(make, words):
    with pytest.raises(rs.InputError, match=words):
        make()


def given_cohort(**columns):
    given = {
        "person_id": [7, 3],
        "treatment": [1, 0],
        "index_date": ["2015-01-01", "20150301"],
        "days_from_obs_start": [400, 500],
        "days_to_cohort_end": [9, 0],
        "days_to_obs_end": [99, 0],
    }
    return pa.table(given | columns)


def test_study_cohorts_from_tables():
    given = rs.omop.StudyCohort.from_table(given_cohort())
    names = ("row_id", "person_id", "treatment", "index_date", "days_to_obs_end", "obs_end_reason")
    assert rows(given.table, *names) == [
        (1, 3, 0, day("2015-03-01"), 0, "observation end"),
        (2, 7, 1, day("2015-01-01"), 99, "observation end"),
    ]
    assert given.attrition.steps[0].target_persons == 1
    again = rs.omop.StudyCohort.from_table(given.table)
    assert again.table.equals(given.table)


@pytest.mark.parametrize(
    ("column", "values", "code", "words"),
    [
        ("days_to_obs_end", [99, -1], "BadCohort", r"in 1 row it is not \(such as of person 3\)"),
        ("days_to_cohort_end", [None, 1], "BadCohort", "must be at least 0"),
        ("treatment", [1, 2], "BadTreatment", "must be 1 or 0"),
        ("index_date", [None, None], "BadCohort", "in 2 rows"),
    ],
)
def test_bad_study_cohorts(column, values, code, words):
    with pytest.raises(rs.CohortError, match=words) as raised:
        rs.omop.StudyCohort.from_table(given_cohort(**{column: values}))
    assert code_of(raised) == code


@pytest.mark.parametrize(("washout", "status"), [(1461, "one_arm_empty"), (1523, "empty")])
def test_statuses(washout, status):
    """Person 1 is observed for 1460 days before index, person 3 for 1522."""
    periods = PERIODS | {
        "person_id": [1, 3],
        "observation_period_start_date": ["2011-01-01", "2011-01-01"],
    }
    tables = {"observation_period": pa.table(periods), "death": death_table(), "cohort": late()}
    rules = rs.omop.Eligibility(washout_days=washout, restrict_to_common_period=False)
    with rs.omop.Cdm(tables) as cdm:
        both = rs.omop.CohortTable(1, 2).read(cdm)
        found = rules.select(cdm, both)
        assert found.status == status
        with pytest.raises(
            rs.CohortError, match=f"{washout:,} days of prior observation"
        ) as raised:
            rules.select(cdm, both, strict=True)
        assert code_of(raised) == status
        followed = rs.omop.TimeAtRisk().follow(cdm, found, "death")
        assert (followed.status, followed.table.num_rows) == (status, int(status != "empty"))
        with pytest.raises(rs.CohortError) as raised:
            rs.omop.TimeAtRisk().follow(cdm, found, "death", strict=True)
        assert code_of(raised) == status
        covariates = rs.omop.Covariates.extract(cdm, found, rs.omop.CovariateSettings((6, 202)))
        assert covariates.design().n_rows == found.table.num_rows


def death_table():
    return pa.table(
        {"person_id": pa.array([], pa.int64()), "death_date": pa.array([], pa.date32())}
    )


def late():
    return cohort_table(
        cohort_start_date=["2014-12-31", "2015-03-03"], cohort_end_date=["2015-02-01", "2015-04-01"]
    )
