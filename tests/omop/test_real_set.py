"""A small CDM as it is published, with the faults that were counted in it with other programs."""

import numpy as np
import pyarrow as pa
import pytest

import riskset as rs
from omop.toy import REAL, rows

ACETAMINOPHEN, PENICILLIN = 1127433, 1713671


def exactly(*concepts):
    return rs.omop.ConceptSet(concepts, descendants=False)


@pytest.fixture(scope="module")
def real():
    with rs.omop.Cdm(REAL) as cdm:
        yield cdm


def test_it_opens(real):
    """Files that are no tables lie beside the tables, and many tables have no row."""
    assert repr(real) == "Cdm(28 persons, version 5.4, 38 tables)"
    assert real.notes == ()
    for empty in ("drug_era", "cohort", "concept_ancestor", "location", "cost"):
        assert real.n_rows(empty) == 0


def test_overview(real):
    found = {row[0]: row[1:] for row in rows(rs.omop.overview(real))}
    outside = {name: row[-1] for name, row in found.items()}
    assert outside == {
        "condition_occurrence": 1,
        "drug_exposure": 0,
        "procedure_occurrence": 1,
        "measurement": 4,
        "observation": 6,
        "visit_occurrence": 0,
        "death": 0,
    }
    assert {name: row[-2] for name, row in found.items() if name != "death"} == dict.fromkeys(
        [name for name in found if name != "death"], 0
    )
    assert found["measurement"][0] == 10040
    assert found["condition_occurrence"][0] == 470
    assert found["death"][:2] == (3, 3)
    firsts = {name: str(row[2]) for name, row in found.items()}
    assert firsts["procedure_occurrence"] == firsts["measurement"] == "1990-01-01"
    assert firsts["observation"].startswith("1955")


def test_no_descendants(real):
    with pytest.raises(rs.CohortError, match="concept_ancestor of .* is empty") as raised:
        rs.omop.NewUserCohort(rs.omop.ConceptSet([ACETAMINOPHEN]), exactly(PENICILLIN)).read(real)
    assert raised.value.code == "EmptyConceptAncestor"


@pytest.fixture(scope="module")
def study(real):
    both = rs.omop.NewUserCohort(exactly(ACETAMINOPHEN), exactly(PENICILLIN)).read(real)
    rules = rs.omop.Eligibility(
        remove_duplicates="keep first", washout_days=0, restrict_to_common_period=False
    )
    return both, rules.select(real, both)


def test_exposures(real, study):
    """Against the records one by one, without a database."""
    both, cohort = study
    names = ("person_id", "drug_concept_id", "drug_exposure_start_date")
    names += ("drug_exposure_end_date", "days_supply")
    records = rows(real.arrow("drug_exposure"), *names)
    assert sum(d == 0 and e == s for *_, s, e, d in records) == 95
    expected = []
    for arm, drug in ((1, ACETAMINOPHEN), (0, PENICILLIN)):
        for person in range(1, 29):
            spans = sorted({(s, e) for p, c, s, e, _ in records if (p, c) == (person, drug)})
            joined = []
            for start, end in spans:
                if joined and (start - joined[-1][1]).days <= 30:
                    joined[-1][1] = max(joined[-1][1], end)
                else:
                    joined.append([start, end])
            expected += [(arm, person, start, end) for start, end in joined]
    found = rows(both.table)
    assert sorted(found) == sorted(expected)
    first = {}
    for arm, person, start, _ in expected:
        first[arm, person] = min(start, first.get((arm, person), start))
    kept = {
        (p, arm)
        for arm, p in first
        if first[arm, p] < first.get((1 - arm, p), first[arm, p] + np.timedelta64(1, "D").item())
    }
    assert set(rows(cohort.table, "person_id", "treatment")) == kept


def test_death_on_the_last_day_of_observation(real):
    everybody = rs.omop.CohortTable(1, 2, first_days(real)).read(real)
    rules = rs.omop.Eligibility(washout_days=0, restrict_to_common_period=False)
    start = rules.select(real, everybody)
    without = rs.omop.TimeAtRisk(risk_end=None).follow(real, start, "death")
    assert without.column("end_reason").tolist().count("outcome") == 3
    died = without.column("status") == 1
    assert (without.column("survival_time")[died] == without.column("time_at_risk")[died]).all()
    days = without.column("time_at_risk")
    assert (days.min(), days.max()) == (161, 24248)
    as_competing = rs.omop.TimeAtRisk(risk_end=None).follow(real, start, exactly(99), "death")
    assert as_competing.column("end_reason").tolist().count("competing event") == 3


def first_days(cdm):
    """Two cohorts, by parity, that enter when their observation begins."""
    names = ("person_id", "observation_period_start_date")
    records = rows(cdm.arrow("observation_period"), *names)
    return pa.table(
        {
            "cohort_definition_id": [1 + p % 2 for p, _ in records],
            "subject_id": [p for p, _ in records],
            "cohort_start_date": [d for _, d in records],
            "cohort_end_date": [d for _, d in records],
        }
    )


def test_covariates(real, study):
    _, cohort = study
    settings = rs.omop.CovariateSettings(tuple(rs.omop.ANALYSES))
    found = rs.omop.Covariates.extract(real, cohort, settings)
    codes = [note.code for note in found.notes]
    assert {"eras_built", "no_ingredients", "no_roll_up", "no_ranges"} <= set(codes)
    again = rs.omop.Covariates.extract(real, cohort, settings)
    assert again.notes == found.notes
    assert again.table.equals(found.table)
    analyses = set(found.ref.column("analysis_id").to_pylist())
    assert not analyses & {210, 211, 212, 410, 411, 412, 413, 710, 711, 712}
    assert {1, 3, 5, 202, 402, 502, 702, 706, 802} <= analyses
    # Sexes are missing in this part of the vocabulary, but their names are known.
    assert {"gender = MALE", "gender = FEMALE"} <= set(found.names)
    # Races are missing as well, and count only where the vocabulary has them.
    assert 4 not in analyses
    assert "unknown_race" in codes
    assert len(set(found.names)) == len(found.names)
    assert any("(Unknown unit)" in name for name in found.names)
    # Neither arm is a covariate, though its drugs were recorded on the day of index.
    assert not {ACETAMINOPHEN, PENICILLIN} & set(found.ref.column("concept_id").to_pylist())
    design = found.design(cohort)
    assert np.isfinite(design.to_dense()).all()
    assert design.n_features == len(found.ids)


def test_race_0_is_no_race(real):
    people = first_days(real)
    rules = rs.omop.Eligibility(washout_days=0, restrict_to_common_period=False)
    cohort = rules.select(real, rs.omop.CohortTable(1, 2, people).read(real))
    found = rs.omop.Covariates.extract(real, cohort, rs.omop.CovariateSettings((1, 4)))
    assert cohort.table.num_rows == 28
    (note,) = (note for note in found.notes if note.code == "unknown_race")
    assert note.message.startswith(f"{28 - 4} rows of the cohort have a race_concept_id that")
