"""Slips of a specification, its files and data are told with their place and a remedy."""

import json
import re

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import riskset as rs
from riskset._errors import similar
from riskset._messages import Sentence, Value
from riskset.results.columns import sentence_columns
from study.small import content, hide, people, run

WITHHELD = "The sentence has numbers of the data and is in the private results."
TEXT = """title: Small
data: {people: people.parquet, treatment: drug, id: id}
exposures: {new: {value: 1}, old: {value: 0}}
comparisons: [{target: new, comparator: old}]
outcomes: {death: {time: days, event: died}}
analyses:
  weighted: {weight: {estimand: ato}}
"""


def told(folder, text, **changes):
    """What `riskset study check` says of a specification beside a table."""
    pq.write_table(pa.table(people(**changes)), folder / "people.parquet")
    (folder / "study.yaml").write_text(text)
    with pytest.raises(rs.InputError) as error:
        rs.study.check_data(rs.study.Study.read(folder / "study.yaml"))
    return str(error.value)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("estimand: ato", "estimand: ATT", "expected 'ate', 'att', .* is 'ATT'.\nHint: .* 'att'?"),
        (
            "people.parquet",
            "x.csv",
            "line 2, data.people: there is no file or folder '.*x.csv'.\nHint: paths",
        ),
        (
            "event: died",
            "event: drug",
            "line 5, .*event: column 'drug' is already used as data.treatment",
        ),
        ("time: days", "time: id", "line 5, .*time: column 'id' is already used as data.id"),
        ("event: died", "event: days", "column 'days' is already used as outcomes.death.time"),
        (
            "id: id",
            "id: id, start: 2020-01-01, end: 2019-12-31",
            "line 2, data.end: the data end on 2019-12-31, before they start on 2020-01-01",
        ),
        ("id: id", "id: id, table: b", "line 2, data.people: .*table` is for a DuckDB file"),
    ],
)
def test_slips_of_a_specification(tmp_path, old, new, words):
    assert re.search(words, told(tmp_path, TEXT.replace(old, new)), flags=re.DOTALL)


def test_rows_may_be_people():
    data = {"people": "p.parquet", "treatment": "drug", "id": "id", "person": "id"}
    assert rs.study.Study(content(data=data)).settings


def test_what_is_no_specification(tmp_path):
    with pytest.raises(rs.InputError, match="is a folder, not a file"):
        rs.study.Study.read(tmp_path)
    (tmp_path / "people.parquet").write_bytes(b"PAR1\x00\x01")
    with pytest.raises(rs.InputError, match=r"is not text: character 5 of it is.*\nHint: name"):
        rs.study.Study.read(tmp_path / "people.parquet")


def test_a_csv_without_rows(tmp_path):
    pyarrow.csv.write_csv(pa.table(people()).slice(0, 0), tmp_path / "people.csv")
    data = {"people": "people.csv", "treatment": "drug", "id": "id"}
    with pytest.raises(rs.InputError, match=r"people.csv has no rows"):
        rs.study.run(rs.study.Study(content(data=data), tmp_path), tmp_path / "out")


def test_rows_of_other_treatments_are_told_unless_they_are_few(tmp_path):
    columns = people()
    columns["drug"][:3] = 2
    private = run(tmp_path, columns)
    shared = rs.study.StudyResults.open(tmp_path / "out")
    words = "have a treatment that no exposure names, and are left out."
    for found, n in ((private, "3 rows of 200"), (shared, "fewer than 5 rows of about 200")):
        (row,) = found.rows("warnings", code="other_treatments")
        assert row["message"] == f"{n} {words}"


def test_sentences_lose_every_number_that_may_be_of_people():
    """A number is rounded, so that no difference of two of them tells a small one."""
    counts = {
        name: Value("count", n) for name, n in zip("abcde", (2, 1512, 76, 1998, 0), strict=True)
    }
    sentence = Sentence(
        "{a} of {b:,} rows; {name} has {c}, {d} and {e} people, {share} % since {day}",
        counts
        | {"name": Value("name", "'b 3'"), "share": Value("measure", 7.5)}
        | {"day": Value("setting", "2020-01-03")},
    )
    text = "2 of 1,512 rows; 'b 3' has 76, 1998 and 0 people, 7.5 % since 2020-01-03"
    kept = {"code": "some", "count": 1} | sentence_columns("message", sentence)
    assert kept["message"] == text
    (row,) = hide("warnings", [kept], 5)
    assert row["message"] == (
        "fewer than 5 of about 1,500 rows; 'b 3' has about 80, about 2000 and 0 people, ... % "
        "since 2020-01-03"
    )
    assert row["message_values"] is not None
    assert not {"1512", "76", "1998", "7.5"} & set(re.findall(r"[\d.]+", row["message_values"]))
    assert hide("warnings", [kept], 0)[0]["message"] == text
    assert hide("runs", [{"status": "ok", "reason": None}], 5)[0]["reason"] is None
    # What quotes rows of the data is not shown at all.
    quote = Sentence("data row {n} has {x}", {"n": Value("count", 17), "x": Value("name", "-3")})
    (run,) = hide("runs", [{"status": "bad_input"} | sentence_columns("reason", quote)], 5)
    assert run["reason"] == WITHHELD
    assert run["reason_values"] is None
    # Settings stay.
    limit = Sentence("there are fewer than {n} outcomes.", {"n": Value("setting", 10)})
    (row,) = hide("warnings", [{"code": "few_events"} | sentence_columns("message", limit)], 5)
    assert row["message"] == "there are fewer than 10 outcomes."


def test_sentences_of_earlier_versions_are_shared_without_their_numbers():
    """They have no kinds for their numbers."""
    (row,) = hide("warnings", [{"code": "some", "message": "3 people are left out."}], 5)
    assert row["message"] == WITHHELD
    (run,) = hide("runs", [{"status": "no_people", "reason": "no people are left."}], 5)
    assert run["reason"] == "no people are left."


def test_a_line_of_table1_that_nothing_is(tmp_path):
    sections = [{"section": "All", "covariates": ["age", "agee*"]}]
    found = run(tmp_path, table1=sections)
    assert {row["label"] for row in found.rows("table1") if row["covariate_id"]} == {"age"}
    (row,) = found.rows("warnings", code="unknown_covariate")
    assert row["message"] == "table1 lists 'agee*', but no covariate has that name."


ENTROPY = {"method": "entropy", "estimand": "att"}
WRONG_NAMES = {
    "exclude": (
        {"defaults": {"propensity": {"penalty": "none", "exclude": ["x", "agee"]}}},
        "defaults.propensity.exclude.1: covariate 'agee'",
    ),
    "table1": (
        {"table1": [{"section": "All", "covariates": ["x*", "no*", "agee"]}]},
        "table1.0.covariates.2: covariate 'agee'",
    ),
    "report": ({"report": {"covariates": ["agee"]}}, "report.covariates.0: covariate 'agee'"),
    "match": (
        {"analyses": {"one": {"match": {"mahalanobis": ["x", "agee"]}}}},
        "analyses.one.match.mahalanobis.1: covariate 'agee'",
    ),
    "coarsen": (
        {"analyses": {"one": {"coarsen": {"covariates": ["agee"]}}}},
        "analyses.one.coarsen.covariates.0: covariate 'agee'",
    ),
    "weight": (
        {"analyses": {"one": {"weight": {**ENTROPY, "covariates": ["agee"]}}}},
        "analyses.one.weight.covariates.0: covariate 'agee'",
    ),
    "products of weights": (
        {"analyses": {"one": {"weight": {**ENTROPY, "interactions": [["x", "agee"]]}}}},
        "analyses.one.weight.interactions.0.1: covariate 'agee'",
    ),
    "products of balance": (
        {"defaults": {"balance": {"interactions": [["agee", "x"]]}}},
        "defaults.balance.interactions.0.0: covariate 'agee'",
    ),
}


@pytest.mark.parametrize("section", WRONG_NAMES)
def test_covariates_that_the_data_do_not_have_are_faults_with_their_lines(tmp_path, section):
    changes, words = WRONG_NAMES[section]
    pq.write_table(pa.table(people()), tmp_path / "people.parquet")
    text = json.dumps(content(**changes), indent=1)
    file = tmp_path / "study.json"
    file.write_text(text)
    with pytest.raises(rs.InputError) as caught:
        rs.study.check_data(rs.study.Study.read(file))
    line = next(k for k, own in enumerate(text.splitlines(), 1) if "agee" in own)
    assert str(caught.value) == (
        f"study.json, line {line}, {words} was not found in the covariates.\n"
        "Hint: did you mean 'age'?"
    )


def test_a_covariate_that_nobody_has_is_a_reason_that_is_shared(tmp_path):
    """In a long table an unknown name may be a covariate that nobody has."""
    own = people()
    rows = [(i, name, 1.0) for i in own["id"] for name in ("v1", "v2") if i % 3 and i % 5 == 0]
    names = ("rowId", "covariateId", "covariateValue")
    long = pa.table(dict(zip(names, zip(*rows, strict=True), strict=True)))
    pq.write_table(long, tmp_path / "long.parquet")
    data = content()["data"] | {"covariates": {"table": "long.parquet"}}
    propensity = {"penalty": "none", "exclude": ["v22"]}
    run(tmp_path, own, data=data, defaults={"propensity": propensity})
    (row,) = rs.study.StudyResults.open(tmp_path / "out").rows("runs")
    assert row["status"] == "unknown_covariate"
    assert row["reason"] == (
        "`exclude` names 'v22', which is not a covariate of these people. Hint: did you mean 'v2'?"
    )


DRUGS = np.where(np.arange(200) % 2, "warfarin", "apixaban")


@pytest.mark.parametrize(
    ("value", "changes", "words"),
    [
        (
            "warfarine",
            {"drug": DRUGS},
            "line 3, exposures.new.value: value 'warfarine' was not found in 'drug'.\n"
            "Hint: did you mean 'warfarin'?",
        ),
        (
            "warfarin",
            {"drug": DRUGS, "age": [f"{40 + k % 30}{' y' * (k % 4 == 1)}" for k in range(200)]},
            "column 'age' of people.parquet is text, because 15 of its 45 different values are not "
            "numbers: '41 y', ",
        ),
        (
            "warfarin",
            {
                "drug": DRUGS,
                "age": pa.array([None, *range(199)]),
                "x": pa.array([*range(199), None]),
            },
            "2 covariates of people.parquet have missing values: 'x' (1 row, first: data row 200, "
            "id 209), 'age' (1 row, first: data row 1, id 10).",
        ),
        (
            "warfarin",
            {"drug": DRUGS, "days": np.where(np.arange(200) == 4, 0, 9)},
            "column 'days' of people.parquet must hold days above 0, but 1 row does not "
            "(first: data row 5, id 14, value 0)",
        ),
    ],
)
def test_data_are_checked_before_a_run(tmp_path, value, changes, words):
    text = TEXT.replace("value: 1", f"value: {value}").replace("value: 0", "value: apixaban")
    assert words in told(tmp_path, text, **changes)


def test_similar_names_in_any_case():
    assert similar("age", ["Age", "AGE", "sex"], 3) == ["Age", "AGE"]


@pytest.fixture(scope="module")
def cdm(tmp_path_factory):
    """A folder with a toy CDM in it, and the specification of the example."""
    folder = tmp_path_factory.mktemp("cdm")
    rs.simulate.toy_cdm(folder / "toy-cdm", 300, file_format="parquet")
    return folder


def told_of_a_cdm(folder, place):
    text = rs.study.example("cdm").replace("cdm: toy-cdm", f"cdm: {place}")
    (folder / "study.yaml").write_text(text)
    with pytest.raises(rs.InputError) as error:
        rs.study.check_data(rs.study.Study.read(folder / "study.yaml"))
    return str(error.value)


def test_what_is_no_cdm(cdm, tmp_path):
    rs.study.check_data(rs.study.Study.parse(rs.study.example("cdm"), cdm))
    (tmp_path / "part").mkdir()
    for table in ("person", "observation_period", "drug_exposure"):
        name = f"{table}.parquet"
        (tmp_path / "part" / name).write_bytes((cdm / "toy-cdm" / name).read_bytes())
    message = told_of_a_cdm(tmp_path, "part")
    assert "line 14, data.cdm: part has no table condition_occurrence." in message
    assert message.endswith("there are: drug_exposure, observation_period, person.")
    (tmp_path / "broken.duckdb").write_bytes(b"nothing" * 1000)
    message = told_of_a_cdm(tmp_path, "broken.duckdb")
    assert "line 14, data.cdm: broken.duckdb cannot be opened as a DuckDB file" in message
    assert str(tmp_path) not in message
    (tmp_path / "broken.zip").write_bytes(b"nothing")
    assert "line 14, data.cdm: broken.zip is not a comp" in told_of_a_cdm(tmp_path, "broken.zip")


def test_results_beside_the_tables_of_a_cdm_are_none_of_them(cdm):
    text = rs.study.example("cdm").replace("cdm: toy-cdm", "cdm: .")
    study = rs.study.Study.parse(text, cdm / "toy-cdm")
    rs.study.run(study, cdm / "toy-cdm" / "out")
    found = rs.study.run(study, cdm / "toy-cdm" / "out")
    assert all(step["reused"] for step in found.run["steps"])
    names = {source["name"] for source in found.study["data"]["sources"]}
    assert names == {file.name for file in (cdm / "toy-cdm").glob("*.parquet")}
