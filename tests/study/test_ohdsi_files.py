"""Studies whose exposures and outcomes are in files of ATLAS and CohortGenerator."""

import json

import pytest

import riskset as rs
from ohdsi.definitions import concept_set, definition, item
from omop.toy import COMPARATOR, TARGET, write_duckdb

pytest.importorskip("duckcdm")

TEXT = """
title: Files of OHDSI
data: {cdm: all.duckdb, schema: [cdm], DATA}
exposures:
  new: {NEW}
  old: {OLD}
comparisons:
  - {target: new, comparator: old}
outcomes:
  failure: {FAILURE}
MORE
analyses:
  crude:
    propensity: none
    covariates: {analyses: [1, 3]}
    eligibility: {ELIGIBILITY}
    time_at_risk: {risk_end: none, end_anchor: observation end}
"""
TABLE = {"DATA": "cohort_table: Results.My_Cohorts", "NEW": "cohort: 7", "OLD": "cohort: 8"}
FAILURE = {"FAILURE": "concepts: [316139]"}
COUNTS = ("target_persons", "target_days", "target_outcomes", "comparator_outcomes", "hr")


def _first(concepts, domain="DrugExposure", days=90, **parts):
    listed = concept_set(0, *(item(c, includeDescendants=True) for c in concepts))
    end = {"DateOffset": {"DateField": "StartDate", "Offset": days}}
    return definition({domain: {"CodesetId": 0}}, listed, EndStrategy=end, **parts)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("files")
    write_duckdb(place / "all.duckdb", 1500)
    contents = {
        7: _first(TARGET.concepts),
        8: _first(COMPARATOR.concepts),
        # All records, as diagnoses are looked for by concepts.
        9: _first([316139], "ConditionOccurrence", 0, limit="All"),
        10: definition({"ObservationPeriod": {}}, limit="All"),
        11: definition({"Death": {}}),
    }
    (place / "set" / "cohorts").mkdir(parents=True)
    rows = [f"{k},cohort {k}" for k in contents]
    (place / "set" / "Cohorts.csv").write_text("\n".join(["cohort_id,cohort_name", *rows]))
    for k, content in contents.items():
        (place / "set" / "cohorts" / f"{k}.json").write_text(json.dumps(content))
        (place / f"cohort {k}.json").write_text(json.dumps(content))
    (place / "set" / "cohorts" / "12.json").write_text("{}")
    rows = ["101,infarction,4329847", "102,failure,316139"]
    (place / "controls.csv").write_text(
        "\n".join(["cohort_id,cohort_name,outcome_concept_id", *rows])
    )
    return place


def _study(folder, **parts):
    text = TEXT
    for name, value in {"MORE": "", "ELIGIBILITY": "", **FAILURE, **TABLE, **parts}.items():
        text = text.replace(name, value)
    return rs.study.Study.parse(text, folder)


def _results(folder, out, **parts):
    rs.study.run(_study(folder, **parts), out)
    return rs.study.StudyResults.open(out / "private")


def _numbers(found, outcome="failure"):
    (row,) = found.rows("estimates", role="main", outcome=outcome)
    return [row[name] for name in COUNTS]


@pytest.fixture(scope="module")
def by_table(folder, tmp_path_factory):
    """The arms of a cohort table of another schema, and an outcome by concepts."""
    found = _results(folder, tmp_path_factory.mktemp("table"))
    numbers = _numbers(found)
    assert numbers[2] > 0
    return numbers


FILES = {
    "NEW": "definition: cohort 7.json",
    "OLD": "definition: cohort 8.json",
    "FAILURE": "definition: cohort 9.json",
    "DATA": "memory_limit: 1GB",
}
FOLDER = {"DATA": "cohort_definitions: set", "FAILURE": "cohort: 9"}


@pytest.mark.parametrize("parts", [FILES, FOLDER, FOLDER | {"NEW": "definition: cohort 7.json"}])
def test_definitions_find_what_a_cohort_table_has(folder, tmp_path, by_table, parts):
    """The records of `write_duckdb` are first exposures of 90 days, and so are these."""
    assert _numbers(_results(folder, tmp_path, **parts)) == by_table


def test_what_is_said_of_definitions(folder, tmp_path):
    found = _results(folder, tmp_path, **FILES)
    codes = {(row["list"], row["concept_id"]) for row in found.rows("codes")}
    assert codes == {("failure", 316139)} | {
        (name, concept)
        for name, arm in (("new", TARGET), ("old", COMPARATOR))
        for concept in arm.concepts
    }
    settings = found.study["settings"]
    assert settings["exposures"]["new"]["definition"] == "cohort 7.json"
    page = rs.report.write(found, tmp_path / "report.html").read_text("utf-8")
    assert "cohort definition cohort 9.json" in page


def test_a_nesting_cohort_of_the_folder(folder, tmp_path, by_table):
    """Everybody is within observation, and nobody within the time after a death."""
    found = _results(folder, tmp_path / "a", **FOLDER, ELIGIBILITY="nesting_cohort: 10")
    assert _numbers(found) == by_table
    found = _results(folder, tmp_path / "b", **FOLDER, ELIGIBILITY="nesting_cohort: 11")
    (run,) = found.rows("runs")
    assert run["status"] == "empty"


def test_a_changed_definition_is_used(folder, tmp_path, by_table):
    """Steps of an earlier run are not reused for another definition in the same file."""
    parts = FILES | {"FAILURE": "definition: changing.json"}
    for domain, same in (("ConditionOccurrence", True), ("DrugExposure", False)):
        content = _first([316139], domain, 0, limit="All")
        (folder / "changing.json").write_text(json.dumps(content))
        assert (_numbers(_results(folder, tmp_path, **parts)) == by_table) == same


def test_a_list_of_negative_controls(folder, tmp_path, by_table):
    found = _results(folder, tmp_path, MORE="negative_controls: {file: controls.csv}")
    kinds = {name: one["kind"] for name, one in found.study["outcomes"].items()}
    negative = "negative control"
    assert kinds == {"failure": "outcome", "infarction": negative, "failure (102)": negative}
    assert _numbers(found) == by_table
    # One of the concepts is that of the outcome, and the toy has no observation of it.
    assert _numbers(found, "failure (102)")[:4] == by_table[:4]
    settings = found.study["settings"]["outcomes"]["infarction"]
    assert (settings["concepts"], settings["descendants"], settings["first"]) == (
        [4329847],
        False,
        False,
    )


def test_controls_as_cohorts(folder):
    more = "negative_controls: {file: controls.csv, cohorts: true}"
    outcomes = _study(folder, MORE=more).specification.outcomes
    assert [one.cohort for one in outcomes.values()] == [None, 101, 102]


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"NEW": "definition: absent.json"}, r"line 5.*exposures.new.definition.*cannot be read"),
        ({"NEW": "definition: controls.csv"}, "controls.csv is not valid JSON"),
        (
            {"NEW": "definition: cohort 7.json"},
            "defined by a cohort, but the other one by a cohort",
        ),
        ({"NEW": "concepts: [1]"}, "by concepts, but the other one by a cohort"),
        ({"NEW": "cohort: 7, definition: cohort 7.json"}, "but has cohort and definition"),
        ({**FOLDER, "NEW": "cohort: 17"}, r"line 5.*cohort '17' was not found in set.*\n.*'7'"),
        ({**FOLDER, "DATA": "cohort_definitions: none here"}, "has no file Cohorts.csv"),
        ({**FOLDER, "ELIGIBILITY": "nesting_cohort: 99"}, "line 16.*cohort '99' was not found"),
        ({"FAILURE": "concepts: [1], concept_set_member: a"}, "`concept_set` names none"),
        ({"MORE": "negative_controls: {file: none.csv}"}, "line 11.*none.csv' cannot be read"),
        ({"DATA": "cohort_table: results.other"}, "has no table results.other"),
    ],
)
def test_faults_have_their_line(folder, parts, message):
    with pytest.raises(rs.InputError, match=message):
        rs.study.check_data(_study(folder, **parts))


def test_a_definition_that_duckcdm_does_not_understand(folder):
    (folder / "odd.json").write_text(json.dumps(definition({"Oddity": {}})))
    parts = FILES | {"FAILURE": "definition: odd.json"}
    with pytest.raises(rs.InputError, match="line 10.*cannot be read"):
        _study(folder, **parts)
