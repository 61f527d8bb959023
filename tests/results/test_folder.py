"""A folder of results is whole and as described, or refused with a reason."""

import dataclasses
import json
import math

import pytest

import riskset as rs
from riskset.results.folder import RUN_KEYS, STUDY_KEYS, StudyResults, write_results
from riskset.results.rows import TABLES

STUDY = dict.fromkeys(set(STUDY_KEYS) - {"format", "tables"}) | {
    "title": "Small",
    "settings_hash": "abc",
}
LAST = dict.fromkeys(set(RUN_KEYS) - {"study"})
WHO = {"target": "a", "comparator": "b", "outcome": "death", "analysis": "one"}


def written(folder, **tables):
    write_results(folder, STUDY, LAST, tables)
    return StudyResults.open(folder)


def test_what_was_written_is_read_with_its_types(tmp_path):
    row = WHO | {"name": "mdrr", "value": math.inf, "limit": 10, "verdict": "fail"}
    other = WHO | {"name": "ease", "value": math.nan, "verdict": "not_evaluated"}
    found = written(tmp_path / "results", diagnostics=[row, other])
    assert found.rows("diagnostics", name="mdrr") == [row]
    assert found.rows("diagnostics")[1]["value"] is None
    assert found.rows("runs") == []
    assert StudyResults.open(tmp_path).study["title"] == "Small"
    with pytest.raises(rs.InputError, match=r"'nane' was not found in diagnostics.*\n.*name"):
        found.rows("diagnostics", nane="ease")


def test_no_table_names_a_column_twice():
    for table in TABLES.values():
        paths = [column.path for column in table.columns().values()]
        assert len(paths) == len(set(paths)), table.table
        assert sorted(paths) == sorted(fields_of(table)), table.table


def fields_of(kind):
    """Where each value of a row is: in a field, or in a field of one of its groups."""
    for own in dataclasses.fields(kind):
        if dataclasses.is_dataclass(own.default):
            yield from ((own.name, *rest) for rest in fields_of(own.default))
        else:
            yield (own.name,)


def test_columns_and_values_that_do_not_belong_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"unknown column of follow_up: \['day'\]"):
        written(tmp_path / "r", follow_up=[WHO | {"arm": "target", "share": 0.5, "day": 3}])
    with pytest.raises(ValueError, match="column 'share' is missing"):
        written(tmp_path / "r", follow_up=[WHO | {"arm": "target"}])
    assert not (tmp_path / "r").exists()


def test_the_same_results_have_the_same_bytes_and_replace_older_ones(tmp_path):
    folder = tmp_path / "results"
    written(folder, follow_up=[WHO | {"arm": "target", "share": 0.5, "days": 3}])
    first = {p.name: p.read_bytes() for p in folder.iterdir()}
    (folder / "left over").touch()
    written(folder, follow_up=[WHO | {"arm": "target", "share": 0.5, "days": 3}])
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == first
    assert [p.name for p in tmp_path.iterdir()] == ["results"]


def test_unfinished_and_damaged_folders_are_told(tmp_path):
    folder = tmp_path / "results"
    with pytest.raises(rs.InputError, match=r"there is no folder.*\n.*--out"):
        StudyResults.open(folder)
    folder.mkdir()
    with pytest.raises(rs.InputError, match=r"has no study.json.*has not ended.*\n.*goes on where"):
        StudyResults.open(folder)

    def damaged(name, change, words):
        written(folder)
        change(folder / name)
        with pytest.raises(rs.InputError, match=words):
            StudyResults.open(folder)

    def half(path):
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])

    def other_format(path):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 99}))

    def other_title(path):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"title": "x", "date": "x"}))

    damaged("runs.parquet", half, "runs.parquet' is damaged: its checksum")
    damaged("runs.parquet", lambda p: p.unlink(), "'runs.parquet' of the results is missing")
    damaged("study.json", half, "study.json' is damaged")
    damaged("study.json", other_format, "has the format 99, but .* reads format 1")
    damaged("study.json", lambda p: p.write_text("{}"), "lacks the key 'format'")
    damaged("study.json", other_title, "study.json' .* does not agree with its checksum")
    damaged("run.json", other_title, "run.json' .* does not agree with its checksum")
    damaged("run.json", lambda p: p.unlink(), "'run.json' of the results is missing")
