"""Subgroups and blocks by variables, which read alike for tables of people and for a CDM."""

from collections import Counter

import numpy as np
import pytest

import riskset as rs
from omop.toy import (
    ANALYSES,
    AT_RISK,
    COMPETING,
    ELIGIBILITY,
    EXPECTED,
    OUTCOME,
    SETTINGS,
    episodes,
    rows,
    toy,
)
from study.small import content, people, run

LAST_YEAR = "condition_era during day -365 through 0 days relative to index"
CHOLESTEROL = f"{LAST_YEAR}: Hyperlipidemia"

TEXT = f"""
title: Toy
data: {{cdm: toy-cdm}}
exposures:
  thiazides: {{concepts: {SETTINGS["target"]}}}
  ACE inhibitors: {{concepts: {SETTINGS["comparator"]}}}
comparisons:
  - {{target: thiazides, comparator: ACE inhibitors}}
outcomes:
  heart failure: {{concepts: [316139]}}
competing_events:
  infarction: {{concepts: [4329847]}}
  death: {{death: true}}
variables:
  age: {{column: age, borders: [50, 65]}}
  diabetes: {{covariate: 201826202}}
  high cholesterol: {{covariate: "{CHOLESTEROL}"}}
subgroups:
  sex: {{column: sex}}
  by age: {{column: age, label: Age at start}}
  by diabetes: {{column: diabetes}}
defaults:
  eligibility: {{restrict_to_common_period: false}}
  covariates: {{analyses: {ANALYSES}, age_method: completed_years}}
  propensity: {{penalty: l1, cross_validate: false, variance: 0.01}}
analyses:
  all: {{}}
  matched: {{match: {{caliper: none, within: [sex, age, diabetes]}}}}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("variables")
    rs.simulate.toy_cdm(place / "toy-cdm", EXPECTED["n_persons"], file_format="parquet")
    return place


@pytest.fixture(scope="module")
def found(folder):
    rs.study.run(rs.study.Study.parse(TEXT, folder), folder / "out")
    return rs.study.StudyResults.open(folder / "out" / "private")


def ages():
    """Sex, age and diabetes of those who are followed, person by person from the tables."""
    cohort = ELIGIBILITY.select(toy(), episodes())
    followed = AT_RISK.follow(toy(), cohort, OUTCOME, COMPETING)
    born = {
        p: (sex, year, month or 1, day or 1)
        for p, sex, year, month, day in rows(
            toy().arrow("person"),
            *("person_id", "gender_concept_id", "year_of_birth", "month_of_birth", "day_of_birth"),
        )
    }
    eras = rows(
        toy().arrow("condition_era"),
        *(
            "person_id",
            "condition_concept_id",
            "condition_era_start_date",
            "condition_era_end_date",
        ),
    )
    for person, arm, start in rows(followed.table, "person_id", "treatment", "index_date"):
        sex, year, *birthday = born[person]
        age = start.year - year - ([start.month, start.day] < birthday)
        part = "below 50" if age < 50 else "50 to below 65" if age < 65 else "65 or more"
        has = any(
            p == person and c == 201826 and s <= start and (start - e).days <= 365
            for p, c, s, e in eras
        )
        yield (
            arm,
            {
                "sex": {8507: "male", 8532: "female", 0: "unknown"}[sex],
                "by age": part,
                "by diabetes": "yes" if has else "no",
            },
        )


def test_levels_have_the_people_that_they_say(found):
    expected = Counter((arm, name, level) for arm, p in ages() for name, level in p.items())
    shown = {
        (arm, row["subgroup"], row["level"]): row[f"{word}_persons"]
        for row in found.rows("estimates", analysis="all", role="subgroup")
        for arm, word in ((1, "target"), (0, "comparator"))
    }
    assert {key: n for key, n in shown.items() if n} == expected
    order = [r["level"] for r in found.rows("estimates", analysis="all", subgroup="by age")]
    assert order == ["below 50", "50 to below 65", "65 or more"]
    assert found.study["subgroups"]["by age"] == {"label": "Age at start"}


def test_pairs_share_what_they_are_matched_within(found):
    (run_,) = found.rows("runs", analysis="matched")
    after = {
        r["name"]: (r["after_count_target"], r["after_count_comparator"])
        for r in found.rows("balance", adjustment=run_["adjustment"])
    }
    assert run_["status"] == "ok"
    for name in ("gender = MALE", "gender = FEMALE"):
        assert after[name][0] == after[name][1] > 0
    (diabetes,) = (r for n, r in after.items() if n == f"{LAST_YEAR}: Type 2 diabetes mellitus")
    assert diabetes[0] == diabetes[1] > 0
    words = found.study["analyses"]["matched"]["words"]["adjustment"]
    assert words.endswith("within sex, age, diabetes")


def test_a_variable_that_changes_is_made_anew_and_nothing_else(folder, found):
    text = TEXT.replace("[50, 65]", "[60]")
    again = rs.study.run(rs.study.Study.parse(text, folder), folder / "out")
    made = Counter(step["step"] for step in again.run["steps"] if not step["reused"])
    assert not {"cohort", "people", "propensity score", "time at risk"} & made.keys()
    assert made["subgroups"] == 1 + 3
    assert made["adjustment"] == 2  # that of the outcome, and the shared one


FAULTS = {
    "{column: sex}": [
        ("{column: gender}", "'gender' was not found in a CDM", "'age', 'diabetes'"),
        ("{column: sxe}", "'sxe' was not found in a CDM", "'sex'"),
    ],
    "within: [sex, age, diabetes]": [
        ("within: [sex, ages]", "variable 'ages' was not found in a CDM", "'age'"),
    ],
    "{column: age, borders: [50, 65]}": [
        ("{column: agee, borders: [50, 65]}", "column 'agee' was not found", "'age'"),
        ("{column: age, borders: [65, 50]}", "must increase, but they are 65, 50", ""),
        ("{column: sex, borders: [65]}", "but 'sex' is not numeric", "age and year"),
        ("{borders: [65]}", "needs one of column and covariate, but has neither", ""),
        ("{column: age, covariate: 8507001}", "but has both", ""),
        ("{covariate: 8507001, borders: [1]}", "only the levels yes and no", "leave them out"),
    ],
    "covariate: 201826202": [
        ("covariate: 201826210930", "analysis 930, but there are none", "'all' extracts 1, 3,"),
        ("covariate: 201826203", "analysis 203, but 'all' does not extract these", "202, 204"),
        (
            "covariate: gender = MALES",
            "'gender = MALES' was not found in the covariates of thia",
            "'gender = MALE'",
        ),
    ],
    f'covariate: "{CHOLESTEROL}"': [
        ("covariate: nothing of the kind", "'nothing of the kind' was not found", "it has"),
    ],
}


@pytest.mark.parametrize(
    ("old", "new", "message", "hint"),
    [(old, *case) for old, cases in FAULTS.items() for case in cases],
)
def test_faults_have_their_line(folder, old, new, message, hint):
    text = TEXT.replace(old, new)
    assert text != TEXT
    line = 1 + next(k for k, row in enumerate(text.splitlines()) if new in row)
    with pytest.raises(rs.InputError) as fault:
        rs.study.run(rs.study.Study.parse(text, folder), folder / "nothing")
    told, _, remedy = str(fault.value).partition("\nHint: ")
    assert told.startswith(f"study.yaml, line {line}")
    assert message in told
    assert hint in remedy


def test_single_years_of_age_are_no_subgroups(folder):
    text = TEXT.replace("column: age, borders: [50, 65]", "column: year").replace(
        "  age: {", "  years: {"
    )
    with pytest.raises(rs.InputError, match=r"line 20, subgroups.by age.column: every year of age"):
        rs.study.Study.parse(text, folder)


def test_a_table_is_parted_alike(tmp_path):
    columns = people(400)
    columns["start"] = np.array(["2010-03-01", "2011-04-01"], dtype="M8[D]")[np.arange(400) % 2]
    changes = {
        "data": content()["data"] | {"index_date": "start"},
        "variables": {"age": {"column": "age", "borders": [50, 62.5]}, "who": {"covariate": "x"}},
        "subgroups": {
            "age": {"column": "age"},
            "x": {"column": "who"},
            "time": {"column": "year"},
        },
        "analyses": {"crude": {}, "matched": {"match": {"caliper": None, "within": ["age"]}}},
    }
    found = run(tmp_path, columns, **changes)
    shown = {
        (r["subgroup"], r["level"]): r["target_persons"]
        for r in found.rows("estimates", role="subgroup", analysis="crude")
    }
    new, age = columns["drug"] == 1, columns["age"]
    assert shown == {
        ("age", "below 50"): (new & (age < 50)).sum(),
        ("age", "50 to below 62.5"): (new & (age >= 50) & (age < 62.5)).sum(),
        ("age", "62.5 or more"): (new & (age >= 62.5)).sum(),
        ("x", "no"): (new & (columns["x"] == 0)).sum(),
        ("x", "yes"): (new & (columns["x"] == 1)).sum(),
        ("time", "2010"): new[::2].sum(),
        ("time", "2011"): new[1::2].sum(),
    }
    # Age is still a covariate.
    assert {row["name"] for row in found.rows("balance", adjustment=1)} == {"x", "age"}


def test_a_table_names_the_variables_that_it_knows(tmp_path):
    with pytest.raises(
        rs.InputError, match=r"subgroups.a.column: column 'bund' was not found"
    ) as e:
        run(
            tmp_path,
            variables={"bound": {"column": "age", "borders": [60]}},
            subgroups={"a": {"column": "bund"}},
        )
    assert "'bound'" in str(e.value)
    with pytest.raises(rs.InputError, match=r"variables.b.covariate: covariate 'y'"):
        run(tmp_path, variables={"b": {"covariate": "y"}})
    with pytest.raises(rs.InputError, match=r"variables.b.column: column 'ag'"):
        run(tmp_path, variables={"b": {"column": "ag", "borders": [1]}})
