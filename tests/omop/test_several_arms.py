"""Cohorts of three arms: by the rules in words, and the same whichever two are compared."""

import datetime

import numpy as np
import pandas as pd
import pytest

import riskset as rs
from omop.by_hand import day
from omop.four_people import deaths

N = 120
START = day("2015-01-01")


def episodes(seed=4):
    """Records of three cohorts."""
    rng = np.random.default_rng(seed)
    rows = {
        (int(person), int(cohort)): int(start)
        for person, cohort, start in zip(
            rng.integers(1, N + 1, 260), rng.integers(1, 4, 260), rng.integers(0, 900, 260),
            strict=True,
        )
    }  # fmt: skip
    return pd.DataFrame(
        {
            "cohort_definition_id": [cohort for _, cohort in rows],
            "subject_id": [person for person, _ in rows],
            "cohort_start_date": [START + datetime.timedelta(s) for s in rows.values()],
            "cohort_end_date": [START + datetime.timedelta(s + 400) for s in rows.values()],
        }
    )


def tables(cohort):
    ids = list(range(1, N + 1))
    return {
        "person": pd.DataFrame(
            {"person_id": ids, "gender_concept_id": 8507, "year_of_birth": 1950,
             "month_of_birth": 6, "day_of_birth": 15, "race_concept_id": 0,
             "ethnicity_concept_id": 0}
        ),
        "observation_period": pd.DataFrame(
            {"person_id": ids, "observation_period_start_date": [day("2010-01-01")] * N,
             "observation_period_end_date": [day("2020-12-31")] * N}
        ),
        "cohort": cohort,
        "death": deaths(),
    }  # fmt: skip


def by_rule(cohort, rule):
    """Person -> (arm, start, end), of people in the common period."""
    kept = {}
    for person, own in cohort.groupby("subject_id"):
        own = own.sort_values("cohort_start_date")
        starts = own["cohort_start_date"].tolist()
        if len(starts) > 1 and (starts[0] == starts[1] or rule == "remove all"):
            continue
        arm, start, end = own.iloc[0][
            ["cohort_definition_id", "cohort_start_date", "cohort_end_date"]
        ]
        if rule == "keep first, truncate to second" and len(starts) > 1 and starts[1] <= end:
            end = starts[1] - datetime.timedelta(1)
        kept[int(person)] = (int(arm), start, end)
    by_arm = cohort.groupby("cohort_definition_id")["cohort_start_date"]
    first, last = by_arm.min().max(), by_arm.max().min()
    return {p: one for p, one in kept.items() if first <= one[1] <= last}


def selected(cohort, arms, rule):
    with rs.omop.Cdm(tables(cohort)) as cdm:
        found = rs.omop.CohortTable(*arms[:2], others=tuple(arms[2:])).read(cdm)
        return rs.omop.Eligibility(remove_duplicates=rule, washout_days=0).select(cdm, found)


@pytest.mark.parametrize("rule", ["keep first, truncate to second", "keep first", "remove all"])
def test_the_first_of_all_arms_counts(rule):
    cohort = episodes()
    wanted = by_rule(cohort, rule)
    assert {arm for arm, _, _ in wanted.values()} == {1, 2, 3}
    for arms in ((1, 2, 3), (3, 1, 2), (2, 3, 1)):
        found = selected(cohort, arms, rule)
        names = {1: arms[0], 0: arms[1], 2: arms[2]}
        rows = zip(
            *(
                found.table.column(name).to_pylist()
                for name in ("person_id", "treatment", "index_date", "days_to_cohort_end")
            ),
            strict=True,
        )
        got = {
            person: (names[code], start, start + datetime.timedelta(days))
            for person, code, start, days in rows
        }
        assert got == wanted
        pair = found.compared()
        sizes = [sum(arm == one for arm, _, _ in wanted.values()) for one in arms[:2]]
        last = found.attrition.steps[-1]
        assert [last.target_exposures, last.comparator_exposures] == sizes
        assert pair.table.column("row_id").to_pylist() == list(range(1, sum(sizes) + 1))
        assert last.step == "period common to all cohorts"


def test_two_arms_are_as_before():
    cohort = episodes()
    found = selected(cohort[cohort["cohort_definition_id"] < 3], (1, 2), "keep first")
    assert found.compared() is found
    assert found.attrition.steps[-1].step == "period common to both cohorts"


def test_an_arm_twice_is_refused():
    with (
        rs.omop.Cdm(tables(episodes())) as cdm,
        pytest.raises(rs.CohortError, match="several arms are cohort 2"),
    ):
        rs.omop.CohortTable(1, 2, others=(2,)).read(cdm)


def test_drugs_of_all_arms_and_saving(tmp_path):
    target, comparator, other = (rs.omop.ConceptSet([c]) for c in (974166, 1308216, 1341927))
    new_users = rs.omop.NewUserCohort(target, comparator, others=(other,))
    with rs.omop.Cdm(rs.simulate.toy_tables(500)) as cdm:
        three = new_users.read(cdm)
        one, two = (
            rs.omop.NewUserCohort(target, last).read(cdm).table for last in (comparator, other)
        )
    assert three.drugs == (target, comparator, other)
    arm = three.table.column("treatment").to_numpy()
    counts = [np.count_nonzero(arm == k) for k in (1, 0, 2)]
    sizes = [t.num_rows - np.count_nonzero(t.column("treatment").to_numpy()) for t in (one, two)]
    assert counts[1:] == sizes
    assert f"{counts[2]} other exposures" in repr(three)
    rs.omop.save(new_users, tmp_path / "saved")
    assert rs.omop.load(tmp_path / "saved").others == (other,)
