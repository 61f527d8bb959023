"""Lists of negative controls, and the records of their concepts by hand."""

import pyarrow as pa
import pytest

import riskset as rs
from ohdsi.definitions import day, small_tables
from riskset.ohdsi import NegativeControl, read_negative_controls


@pytest.mark.parametrize(
    "text",
    [
        "cohort_id,cohort_name,outcome_concept_id\n101,nail,20\n102,wart,12\n",
        "cohortId,cohortName,outcomeConceptId\n101,nail,20\n102,wart,12\n",
        "\ufeffCOHORT_ID,OUTCOME_NAME,OUTCOME_CONCEPT_ID\n1.01e2,nail,20\n102,wart,12.0\n",
    ],
)
def test_columns_of_a_list(tmp_path, text):
    path = tmp_path / "controls.csv"
    path.write_text(text, encoding="utf-8")
    assert read_negative_controls(path) == (
        NegativeControl(101, "nail", 20),
        NegativeControl(102, "wart", 12),
    )


def test_rows_without_an_id_are_numbered(tmp_path):
    path = tmp_path / "controls.csv"
    path.write_text("outcome_concept_id,cohort_name\n20,nail\n12,NA\n")
    assert read_negative_controls(path) == (
        NegativeControl(1, "nail", 20),
        NegativeControl(2, "concept 12", 12),
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cohort_id,cohort_name\n1,nail\n", "line 2: `outcome_concept_id` must be a whole number"),
        ("cohort_id,outcome_concept_id\n1,20\n1,12\n", "line 3: the cohort_id 1 is also that of"),
        ("cohort_id,outcome_concept_id\n1,-2\n", "above 0, but it is '-2'"),
        ("cohort_id,outcome_concept_id\n", "controls.csv has no rows"),
    ],
)
def test_faulty_lists(tmp_path, text, message):
    path = tmp_path / "controls.csv"
    path.write_text(text)
    with pytest.raises(rs.CohortError, match=message):
        read_negative_controls(path)
    with pytest.raises(rs.CohortError, match="cannot be read: No such file"):
        read_negative_controls(tmp_path / "absent.csv")


def _with_observation():
    """Person 1 has the control on day 59 of 2012 as an observation, and twice as a condition."""
    tables = small_tables()
    tables["observation"] = pa.table(
        {
            "person_id": [1],
            "observation_concept_id": [20],
            "observation_date": [day("2012-04-29")],
        }
    )
    tables["condition_occurrence"] = pa.table(
        {
            "person_id": [1, 1, 3],
            "condition_concept_id": [20, 21, 20],
            "condition_start_date": [day("2011-06-01"), day("2012-05-09"), day("2013-02-01")],
        }
    )
    more = pa.table({"ancestor_concept_id": [20], "descendant_concept_id": [21]})
    tables["concept_ancestor"] = pa.concat_tables([tables["concept_ancestor"], more])
    return tables


@pytest.mark.parametrize(
    ("occurrence", "descendants", "days"),
    [
        # Of person 1 from 2012-03-01, of person 3 from 2013-01-01; the first day at risk is day 1.
        ("all", False, {1: 59, 3: 31}),
        ("all", True, {1: 59, 3: 31}),
        ("first", False, {3: 31}),
    ],
)
def test_records_by_hand(occurrence, descendants, days):
    cohort = rs.omop.StudyCohort.from_table(
        pa.table(
            {
                "person_id": [1, 3],
                "treatment": [1, 0],
                "index_date": [day("2012-03-01"), day("2013-01-01")],
                "days_from_obs_start": [790, 1096],
                "days_to_cohort_end": [2861, 2555],
                "days_to_obs_end": [2861, 2555],
            }
        )
    )
    at_risk = rs.omop.TimeAtRisk(remove_prior_outcome=False)
    outcome = NegativeControl(1, "nail", 20).diagnosis(
        occurrence=occurrence, descendants=descendants
    )
    with rs.omop.Cdm(_with_observation()) as cdm:
        found = at_risk.follow(cdm, cohort, outcome)
    rows = zip(found.column("person_id"), found.outcome, strict=True)
    assert {int(p): int(y["time"]) for p, y in rows if y["event"]} == days
