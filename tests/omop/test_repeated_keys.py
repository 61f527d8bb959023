"""Keys that are there twice: refused where one row is meant, else each counts once."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import riskset as rs
from omop.by_hand import code_of, day
from omop.four_people import folder_of, follow, messages, tables, told
from omop.toy import COMPARATOR, TARGET, toy_tables


def twice(table):
    return pd.concat([table] * 2, ignore_index=True)


@pytest.mark.parametrize("rules", [{}, {"min_age": 18}, {"gender_concept_ids": (8507, 8532)}])
def test_persons(rules, tmp_path):
    own = tables()
    own["person"] = twice(own["person"])
    for source in (own, folder_of(own, tmp_path)):
        with pytest.raises(
            rs.CohortError, match="one row for each person_id, but 4 .* as 1, 2, 3"
        ) as raised:
            follow(source, **rules)
        assert code_of(raised) == "DuplicateId"
        details = raised.value.details
        assert (details["table"], details["column"], details["count"]) == ("person", "person_id", 4)
        assert details["file"] == ("" if source is own else "person.csv")
        assert details["ids"] == [1, 2, 3]


def test_persons_whose_rows_contradict_each_other():
    own = tables()
    own["person"] = pd.concat(
        [own["person"], own["person"].iloc[:1].assign(year_of_birth=1990)], ignore_index=True
    )
    with pytest.raises(rs.CohortError, match="1 value is there more than once"):
        follow(own, min_age=40)


def test_persons_in_covariates_and_characteristics():
    own = tables()
    with rs.omop.Cdm(own) as cdm:
        both = rs.omop.CohortTable(1, 2).read(cdm)
        rules = rs.omop.Eligibility(washout_days=0, restrict_to_common_period=False)
        cohort = rules.select(cdm, both)
    with rs.omop.Cdm(own | {"person": twice(own["person"])}) as cdm:
        for ask in (
            lambda: rs.omop.Covariates.extract(cdm, cohort),
            lambda: rs.omop.Covariates.extract(cdm, cohort, rs.omop.CovariateSettings((1, 2, 3))),
        ):
            with pytest.raises(rs.CohortError, match="one row for each person_id"):
                ask()


def test_records_of_cohorts_count_once():
    own = tables()
    own["cohort"] = twice(own["cohort"])
    found = follow(own, first_exposure_only=False, remove_duplicates="keep all")
    assert len(told(found)) == 4
    first = found.attrition.steps[0]
    assert (first.target_exposures, first.comparator_exposures) == (2, 2)
    assert messages(found)["repeated_records"] == (
        "4 records of the cohorts are there again and count once."
    )


def test_overlapping_records_of_cohorts():
    own = tables()
    again = own["cohort"].iloc[:1].assign(cohort_start_date=day("2015-12-31"))
    own["cohort"] = pd.concat([own["cohort"], again], ignore_index=True)
    found = follow(own, first_exposure_only=False)
    assert len(told(found)) == 5
    assert messages(found)["overlapping_records"].startswith(
        "1 record of the cohorts begins before"
    )
    later = own["cohort"].iloc[:1].assign(cohort_start_date=day("2016-01-01"))
    own["cohort"] = pd.concat([tables()["cohort"], later], ignore_index=True)
    assert "overlapping_records" not in messages(follow(own, first_exposure_only=False))


def test_other_tables_that_were_loaded_twice():
    """Periods, visits, records, deaths and the vocabulary count once, so nothing changes."""
    own = dict(toy_tables())
    doubled = {
        name: table if name in ("person", "cdm_source") else pa.concat_tables([table, table])
        for name, table in own.items()
    }
    outcome = rs.omop.Diagnosis(rs.omop.ConceptSet([316139]), inpatient=True)
    settings = rs.omop.CovariateSettings((1, 2, 3, 202, 210, 402, 410, 702, 706))
    found = []
    for source in (own, doubled):
        with rs.omop.Cdm(source) as cdm:
            cohorts = rs.omop.NewUserCohort(TARGET, COMPARATOR).read(cdm)
            cohort = rs.omop.Eligibility().select(cdm, cohorts)
            population = rs.omop.TimeAtRisk().follow(cdm, cohort, outcome, "death")
            covariates = rs.omop.Covariates.extract(cdm, cohort, settings)
            found.append((cohorts, cohort, population, covariates.table, covariates.ref))
    once, again = found
    for one, other in zip(once[:3], again[:3], strict=True):
        assert one.table.equals(other.table)
    assert once[0].early == again[0].early
    assert once[1].attrition.steps == again[1].attrition.steps
    assert once[3].equals(again[3])
    assert once[4].equals(again[4])


def test_names_of_a_concept_that_is_there_twice():
    """The same name, whatever the order of the rows."""
    concept = pd.DataFrame({"concept_id": [316139] * 2, "concept_name": ["Heart", "Failure"]})
    names, own = set(), tables()
    own["condition_occurrence"]["condition_start_date"] = day("2015-06-01")
    for rows_ in (concept, concept.iloc[::-1]):
        with rs.omop.Cdm(own | {"concept": rows_}) as cdm:
            both = rs.omop.CohortTable(1, 2).read(cdm)
            rules = rs.omop.Eligibility(washout_days=0, restrict_to_common_period=False)
            cohort = rules.select(cdm, both)
            found = rs.omop.Covariates.extract(cdm, cohort, rs.omop.CovariateSettings((202,)))
            names.update(n for n in found.names if "condition" in n)
    assert names
    assert all("Failure" in name for name in names)


def test_study_cohorts_of_other_programs():
    given = pd.DataFrame(
        {
            "person_id": [1, 1, 2],
            "treatment": [1, 1, 0],
            "index_date": ["2015-06-15", "20150615", "2015-06-15"],
            "days_from_obs_start": [400] * 3,
            "days_to_cohort_end": [90, 91, 90],
            "days_to_obs_end": [500] * 3,
        }
    )
    with pytest.raises(rs.CohortError, match=r"1 exposure is there .* of person 1\)") as raised:
        rs.omop.StudyCohort.from_table(given)
    assert code_of(raised) == "DuplicateId"
    assert rs.omop.StudyCohort.from_table(given.iloc[1:]).table.num_rows == 2


def test_rows_of_covariates():
    entries = pa.table({"row_id": [1, 2], "covariate_id": [1002, 1002], "value": [50.0, 60.0]})
    ref = pa.table({"covariate_id": [1002], "name": ["age in years"]})
    known = rs.omop.Covariates.from_tables(entries, ref, [1, 2])
    assert known.design(np.array([2, 1])).to_dense()[:, 0].tolist() == [60.0, 50.0]
    for ask in (
        lambda: known.design(np.array([2, 2])),
        lambda: rs.omop.Covariates.from_tables(entries, ref, [1, 2, 2]),
        lambda: rs.omop.Covariates.from_tables(entries, pa.concat_tables([ref, ref]), [1, 2]),
    ):
        with pytest.raises(rs.CohortError, match="more than once") as raised:
            ask()
        assert code_of(raised) == "DuplicateId"
    again = rs.omop.Covariates.from_tables(pa.concat_tables([entries, entries]), ref, [1, 2])
    with pytest.raises(rs.InputError, match="were given before"):
        again.design()


def test_two_frames_for_one_table():
    with pytest.raises(rs.CohortError, match="two frames for the table person") as raised:
        rs.omop.Cdm({"Person": tables()["person"], "person": tables()["person"]})
    assert code_of(raised) == "AmbiguousTable"
