"""What a specification may say of the places, codes and times of a CDM."""

import json

import pytest

import riskset as rs
from omop.toy import write_duckdb

TEXT = """
title: Sources
data:
  cdm: all.duckdb
  schema: [cdm, results]
  ignore: [measurement]
  cohort_table: My_Cohorts
  memory_limit: 1GB
  spill_folder: spill
exposures:
  new: {cohort: 7}
  old: {cohort: 8}
comparisons:
  - {target: new, comparator: old}
outcomes:
  by id: {concepts: [316139]}
  by file: {concept_set: heart_failure.json}
  by flags: {concepts: [{concept: 316139}, {concept: 4329847, exclude: true}]}
  short: {concepts: [316139], time_at_risk: {risk_end: 30, end_anchor: cohort start}}
  looked back: {concepts: [316139], prior_outcome_lookback: 0}
  control: {concepts: [4329847], kind: negative control}
analyses:
  crude:
    propensity: none
    covariates: {analyses: [1, 3]}
    eligibility: {restrict_to_common_period: false}
    time_at_risk: {risk_end: none, end_anchor: observation end}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("sources")
    write_duckdb(place / "all.duckdb", 1500)
    item = {"concept": {"CONCEPT_ID": 316139}, "includeDescendants": True}
    (place / "heart_failure.json").write_text(json.dumps({"items": [item]}))
    return place


@pytest.fixture(scope="module")
def found(folder):
    rs.study.run(rs.study.Study.parse(TEXT, folder), folder / "out")
    return rs.study.StudyResults.open(folder / "out" / "private")


def _row(found, outcome):
    (row,) = found.rows("estimates", role="main", outcome=outcome)
    return row


def test_one_set_three_ways(found):
    counts = ("target_persons", "target_outcomes", "target_days", "comparator_outcomes")
    expected = [_row(found, "by id")[name] for name in counts]
    assert expected[1] > 0
    for outcome in ("by file", "by flags"):
        assert [_row(found, outcome)[name] for name in counts] == expected


def test_times_of_an_outcome_of_its_own(found):
    whole, short = _row(found, "by id"), _row(found, "short")
    assert short["target_persons"] == whole["target_persons"]
    assert 0 < short["target_days"] <= 30 * short["target_persons"] < whole["target_days"]
    assert _row(found, "looked back")["target_persons"] >= whole["target_persons"]
    words = found.study["outcomes"]["short"]["description"]
    assert words == (
        "This outcome has its own time at risk: as started: from 1 day after the start of "
        "exposure to 30 days after the start of exposure."
    )


def test_the_settings_do_not_name_folders_or_memory(found, folder):
    data = found.study["settings"]["data"]
    assert not {"memory_limit", "spill_folder"} & {*data}
    assert (folder / "spill").is_dir()
    assert found.study["settings"]["outcomes"]["by file"]["concept_set"] == "heart_failure.json"


def test_the_codes_are_listed(found):
    rows = found.rows("codes", list="by flags")
    assert [(row["concept_id"], row["excluded"]) for row in rows] == [
        (316139, False),
        (4329847, True),
    ]


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("heart_failure.json", "none.json", 17, "none.json' cannot be read"),
        ("ignore: [measurement]", "ignore: [measurements]", 4, "'measurements' was not found"),
        ("cohort_table: My_Cohorts", "cohort_table: cohorts", 4, "has no table cohorts"),
        ("cohort_table: My_Cohorts", "cohort_table: c.csv", 7, "no file or folder .*c.csv"),
        ("memory_limit: 1GB", "memory_limit: lots", 8, "`memory_limit` must be a number with"),
        ("{concept: 316139}", "{concept: -3}", 18, "whole numbers above 0, but one is -3"),
        ("kind: negative control", "tables: [visits]", 21, "`tables` must be .*'visits'"),
        ("risk_end: 30", "risk_end: 0", 19, "no person can be at risk: the last day is 0"),
        ("{concepts: [316139]}", "{concepts: [1], cohort: 2}", 16, "has concepts and cohort"),
    ],
)
def test_faults_have_their_line(folder, old, new, line, message):
    assert old in TEXT
    path = folder / "faulty.yaml"
    path.write_text(TEXT.replace(old, new, 1))
    with pytest.raises(rs.InputError, match=message) as caught:
        rs.study.run(rs.study.Study.read(path), folder / "faulty")
    assert str(caught.value).startswith(f"faulty.yaml, line {line}")
