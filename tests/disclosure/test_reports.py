"""A report of private results shows no more than one of the shared results does."""

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import riskset as rs
from disclosure.test_attacks import SPECIFICATION, simulated
from report.parsed import parse
from riskset.data.documents import SEAL, checksum, sealed
from riskset.data.writers import write_json
from riskset.disclosure.engine import RULES, Disclosure
from riskset.disclosure.sentences import WITHHELD
from riskset.results.columns import GUARDED, KINDS
from riskset.results.rows import TABLES

LEAST = 5
CONTROL = {"time": "days", "event": "few", "kind": "negative control"}


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """A study with a control of few outcomes, a few rows of another treatment, few matches."""
    folder = tmp_path_factory.mktemp("reported")
    columns = simulated(250, 3)
    columns["drug"][:3] = 2
    few = np.zeros(250, dtype=int)
    few[[10, 20, 31]] = 1
    columns["few"] = few
    pq.write_table(pa.table(columns), folder / "people.parquet")
    analyses = {"matched": {"match": {}}, "trimmed": {"trim": {"symmetric": 0.49}, "match": {}}}
    outcomes = SPECIFICATION["outcomes"] | {"control": CONTROL}
    changes = {"analyses": analyses, "outcomes": outcomes}
    rs.study.run(rs.study.Study(SPECIFICATION | changes, folder), folder / "out")
    return folder / "out"


@pytest.fixture(scope="module")
def written(out):
    """Numbers and text of the page of the private results, and of that of the shared ones."""
    found = []
    for name in ("private", "results"):
        path = rs.report.write(out / name, out / f"{name}.html", date="2026-01-01")
        found.append((json.loads(path.with_suffix(".json").read_text()), parse(path)))
    return found


def numbers(content, key=""):
    """Every value of a document with the key that it is at, without the indexes of lists."""
    if isinstance(content, dict):
        for name, value in content.items():
            yield from numbers(value, name)
    elif isinstance(content, list):
        for value in content:
            yield from numbers(value, key)
    else:
        yield key, content


def test_every_number_and_sentence_is_that_of_the_shared_results(written):
    (private, page), (shared, other) = written
    assert list(numbers(private)) == list(numbers(shared))
    assert page.text == other.text


def test_no_table_of_private_results_has_a_small_count_once_it_is_shared(out):
    """Each table, each row and each guarded column; and each of the columns has a rule."""
    results = rs.study.StudyResults.open(out / "private")
    found = Disclosure(results.rows, TABLES, LEAST)
    n_hidden = dict.fromkeys(TABLES, 0)
    for name, table in TABLES.items():
        raw, shown = results.rows(name), found.shown(table)
        kinds = {column.name: column.kind for column in table.columns().values()}
        guarded = {column for column, kind in kinds.items() if kind in GUARDED}
        assert guarded <= (RULES[name].columns if name in RULES else set())
        for row in shown:
            for column, kind in kinds.items():
                value = row[column]
                if kind == "count" and value is not None:
                    assert not 0 < value < LEAST, (name, column, row)
                if kind == "private":
                    assert value is None, (name, column)
        n_hidden[name] = sum(1 for row in raw if row not in shown)
    for name in ("arms", "attrition", "balance", "controls", "curves", "estimates", "warnings"):
        assert n_hidden[name], f"nothing had to be hidden in {name}"


def test_what_is_shared_is_what_the_engine_makes_of_the_private_results(out):
    private, shared = (rs.study.StudyResults.open(out / name) for name in ("private", "results"))
    found = Disclosure(private.rows, TABLES, LEAST)
    for name, table in TABLES.items():
        columns = [column for column in table.columns() if column != "blinded"]
        rows = [[row[column] for column in columns] for row in found.shown(table)]
        assert rows == [[row[column] for column in columns] for row in shared.rows(name)], name


def test_sharing_twice_hides_no_more(out):
    shared = rs.study.StudyResults.open(out / "results")
    found = Disclosure(shared.rows, TABLES, LEAST)
    for name, table in TABLES.items():
        assert list(found.shown(table)) == shared.rows(name), name


def test_the_kinds_are_documented():
    text = (Path(__file__).parents[2] / "docs" / "disclosure.md").read_text("utf-8")
    for kind, about in KINDS.items():
        assert f"| `{kind}` | {about} |" in text


def test_sentences_have_no_small_numbers(out):
    private, shared = (rs.study.StudyResults.open(out / name) for name in ("private", "results"))
    (row,) = private.rows("warnings", code="other_treatments")
    assert row["message"].startswith("3 rows of 250 have")
    # With the numbers of both arms, that of all rows would tell the 3.
    assert private.study["data"]["sources"][0]["rows"] == 250
    assert shared.study["data"]["sources"][0]["rows"] is None
    (row,) = shared.rows("warnings", code="other_treatments")
    assert row["message"].startswith("fewer than 5 rows of about 250 have")


def test_results_of_earlier_versions_open_and_show_no_number_of_a_sentence(out, tmp_path):
    """They lack the values of sentences."""
    shutil.copytree(out / "private", tmp_path / "private")
    path = tmp_path / "private" / "study.json"
    study = json.loads(path.read_text())
    for name, column in (("runs", "reason"), ("ps", "reason"), ("warnings", "message")):
        file = path.with_name(f"{name}.parquet")
        pq.write_table(pq.read_table(file).drop_columns([f"{column}_values"]), file)
        study["tables"][name]["sha256"] = checksum(file)
    write_json(path, sealed({key: value for key, value in study.items() if key != SEAL}))
    results = rs.study.StudyResults.open(tmp_path / "private")
    (row,) = results.rows("warnings", code="other_treatments")
    assert row["message"].startswith("3 rows of 250 have")
    page = parse(rs.report.write(results, tmp_path / "report.html", date="2026-01-01"))
    assert str(WITHHELD) in page.text
    assert "rows of 250" not in page.text
