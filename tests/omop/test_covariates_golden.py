"""Covariates of the golden study on the toy CDM."""

import numpy as np
import pytest

import riskset as rs
from omop.toy import COMPARATOR, EXPECTED, TARGET, checksum, cohort, population, rows, toy

ANALYSES = (1, 3, 202, 204, 402, 404, 502, 504, 702, 704)
GOLDEN = rs.omop.CovariateSettings(ANALYSES, age_method="completed_years")


@pytest.fixture(scope="module")
def golden():
    return rs.omop.Covariates.extract(toy(), cohort(), GOLDEN)


def test_entries(golden):
    person = dict(rows(cohort().table, "row_id", "person_id"))
    assert golden.n_entries == EXPECTED["covariate_rows"]
    assert len(golden.ids) == EXPECTED["covariate_columns"]
    assert max(golden.ids) == EXPECTED["max_covariate_id"]
    lines = sorted((person[r], i) for r, i in rows(golden.table, "row_id", "covariate_id"))
    assert checksum(lines) == EXPECTED["covariate_sha256"]
    assert set(golden.table.column("value").to_pylist()) == {1.0}


def test_most_frequent(golden):
    ids, n = np.unique(golden.table.column("covariate_id").to_numpy(), return_counts=True)
    order = np.lexsort((ids, -n))[:15]
    assert [[int(ids[k]), int(n[k])] for k in order] == EXPECTED["covariate_top"]


def test_table_is_sorted(golden):
    found = rows(golden.table, "covariate_id", "row_id")
    assert found == sorted(found)
    assert [str(f.type) for f in golden.table.schema] == ["int64", "int64", "double"]


def test_reference(golden):
    ref = golden.ref
    assert ref.column("column").to_pylist() == list(range(124))
    assert [str(f.type) for f in ref.schema] == [
        "int64",
        "string",
        "int32",
        "int64",
        "string",
        "int32",
        "int32",
        "bool",
        "bool",
        "int32",
        "int64",
        "int64",
    ]
    by_id = {row[0]: row[1:] for row in rows(ref)}
    assert by_id[320128202][:6] == (
        "condition_era during day -365 through 0 days relative to index: Essential hypertension",
        202,
        320128,
        "condition",
        -365,
        0,
    )
    assert by_id[8532001][:6] == ("gender = FEMALE", 1, 8532, "sex", None, None)
    assert by_id[13003][0] == "age group: 65 - 69"
    assert by_id[2000002003504][0] == (
        "procedure_occurrence during day -30 through 0 days relative to index: Toy spirometry"
    )


def test_design_of_a_population(golden):
    design = golden.design(population())
    assert (design.n_rows, design.keys, design.names) == (680, golden.ids, golden.names)
    in_rows = {r: k for k, r in enumerate(population().column("row_id").tolist())}
    dense = np.zeros((680, 124))
    for row, number in rows(golden.table, "row_id", "covariate_id"):
        if row in in_rows:
            dense[in_rows[row], golden.ids.index(number)] = 1
    np.testing.assert_array_equal(design.to_dense(), dense)
    people = population().people
    for same in (people, people.population, people.population.row_id):
        assert golden.design(same).n_rows == 680
    assert golden.design().n_rows == golden.design(cohort()).n_rows == 696


def test_the_study_goes_on(golden):
    design = golden.design(population())
    tidy = rs.cohort.tidy(design, population().people, analysis="ohdsi")
    # Somebody of no known sex is in the cohort, so neither sex is redundant.
    assert "gender = MALE" in tidy.design.names
    score = rs.cohort.propensity_score(population().people, tidy.design, penalty=rs.L2(1.0))
    assert score.status == "ok"


def test_unknown_rows(golden):
    with pytest.raises(
        rs.CohortError, match=r"1 row of the population is not .* row_id 697"
    ) as raised:
        golden.design([1, 697])
    assert raised.value.code == "UnknownRow"


def test_closed():
    with rs.omop.Cdm(rs.simulate.toy_tables(300)) as cdm:
        new = rs.omop.NewUserCohort(TARGET, COMPARATOR).read(cdm)
        start = rs.omop.Eligibility().select(cdm, new)
        found = rs.omop.Covariates.extract(cdm, start, GOLDEN)
    for late in (found.design, cdm.__repr__, lambda: rs.omop.Eligibility().select(cdm, new)):
        with pytest.raises(rs.CohortError, match="is closed") as raised:
            late()
        assert raised.value.code == "Closed"


def test_from_tables(golden):
    again = rs.omop.Covariates.from_tables(golden.table, golden.ref, golden.row_id)
    assert again.table.equals(golden.table)
    assert (again.design([5, 2]).to_dense() == golden.design([5, 2]).to_dense()).all()
