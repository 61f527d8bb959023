"""A study of a CDM whose dates contradict each other: attrition, reasons, warnings and report."""

import datetime
import sys

import pyarrow as pa
import pyarrow.csv
import pytest

import riskset as rs
from riskset._messages import Sentence, Value
from riskset.cli.main import main
from riskset.results.columns import sentence_columns
from study.small import hide

ARMS = ([974166, 1395058], [1308216, 1341927])
TEXT = """
title: Toy
data: {cdm: cdm}
exposures:
  thiazides: {concepts: [974166, 1395058]}
  ACE inhibitors: {concepts: [1308216, 1341927]}
comparisons:
  - {target: thiazides, comparator: ACE inhibitors}
outcomes:
  heart failure: {concepts: [316139]}
defaults:
  eligibility: {restrict_to_common_period: false}
  covariates: {analyses: [1, 3]}
analyses:
  crude: {time_at_risk: {risk_end: null}}
"""


def first_exposures(tables):
    arms = [rs.omop.ConceptSet(own) for own in ARMS]
    with rs.omop.Cdm(tables) as cdm:
        found = rs.omop.Eligibility(restrict_to_common_period=False).select(
            cdm, rs.omop.NewUserCohort(*arms).read(cdm)
        )
    return {r["person_id"]: (r["treatment"], r["index_date"]) for r in found.table.to_pylist()}


@pytest.fixture(scope="module")
def tables():
    """Of those who enter, the first twenty of an arm died before, ten more soon after."""
    own = rs.simulate.toy_tables(800)
    entered = first_exposures(own | {"death": own["death"].slice(0, 0)})
    deaths = []
    for arm in (0, 1):
        people = [person for person, (treatment, _) in sorted(entered.items()) if treatment == arm]
        for k, person in enumerate(people[:30]):
            day = entered[person][1] + datetime.timedelta(days=-5 if k < 20 else 7)
            deaths.append({"person_id": person, "death_date": day})
    return own | {"death": pa.Table.from_pylist(deaths)}


@pytest.fixture(scope="module")
def folder(tables, tmp_path_factory):
    place = tmp_path_factory.mktemp("study")
    (place / "cdm").mkdir()
    for name, table in tables.items():
        pyarrow.csv.write_csv(table, place / "cdm" / f"{name}.csv")
    (place / "study.yaml").write_text(TEXT)
    return place


@pytest.fixture(scope="module")
def found(folder):
    rs.study.run(rs.study.Study.read(folder / "study.yaml"), folder / "out")
    return rs.study.StudyResults.open(folder / "out" / "private")


def test_deaths_before_the_index_date_are_a_step(found):
    steps = found.rows("attrition")
    names = [row["step"] for row in steps]
    (row,) = (row for row in steps if row["step"] == "alive at index")
    assert names[names.index("alive at index") - 1] == "observed at index"
    assert (row["removed_target"], row["removed_comparator"]) >= (20, 20)


def test_reasons_of_the_end_of_follow_up(found):
    reasons = {(r["arm"], r["reason"]): r["count"] for r in found.rows("follow_up_ends")}
    assert reasons["target", "death"] + reasons["comparator", "death"] <= 20
    assert min(reasons["target", "death"], reasons["comparator", "death"]) > 0


def test_warnings(found):
    messages = {row["code"]: row["message"] for row in found.rows("warnings")}
    assert messages["death_before_index"].startswith("Exposures that start after the death")
    assert "observed after the death" in messages["observed_after_death"]


def test_the_report_shows_the_step_and_the_reason(folder, found):
    page = rs.report.write(found, folder / "report.html").read_text("utf-8")
    assert "alive at index" in page
    assert ">death<" in page


def test_what_is_shared_has_no_count_that_the_attrition_hides(found):
    rows = hide("warnings", found.rows("warnings"), 5)
    (row,) = (row for row in rows if row["code"] == "death_before_index")
    assert row["message"] == (
        "Exposures that start after the death of the person are left out (some exposures)."
    )
    text = "{a:record|records}, {b:person|people} and {c:exposure|exposures}"
    counts = {"a": Value("count", 1), "b": Value("count", 1), "c": Value("count", 12)}
    sentence = {"code": "x"} | sentence_columns("message", Sentence(text, counts))
    assert sentence["message"] == "1 record, 1 person and 12 exposures"
    (hidden,) = hide("warnings", [sentence], 5)
    assert hidden["message"] == "fewer than 5 records, fewer than 5 people and about 10 exposures"


def test_persons_that_are_there_twice_stop_a_study(folder, monkeypatch, capsys):
    lines = (folder / "cdm" / "person.csv").read_text().splitlines()
    (folder / "cdm" / "person.csv").write_text("\n".join([*lines, lines[1]]))
    out = str(folder / "again")
    arguments = ["riskset", "study", "run", str(folder / "study.yaml"), "--out", out]
    monkeypatch.setattr(sys, "argv", arguments)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert "table person (person.csv) must have one row for each person_id, but 1 value" in error
