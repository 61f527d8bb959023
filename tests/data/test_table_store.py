"""Tables kept as Parquet: found while they are young and whole."""

import datetime
import json
import os
import time

import pytest

import riskset as rs
from riskset.data import table_store
from riskset.data.database import Database
from riskset.data.documents import sealed
from riskset.data.table_store import TableStore, table_key, user_cache


def write(path):
    with Database() as database:
        return database.write_parquet("SELECT * FROM range(7)", path)


def refuse(path):
    raise AssertionError("it is there already")


def test_a_table_is_made_once(tmp_path):
    store = TableStore(tmp_path / "kept")
    made = store.find_or_make("a", "numbers", write)
    assert (made.n_rows, made.is_reused) == (7, False)
    found = TableStore(tmp_path / "kept").find_or_make("a", "numbers", refuse)
    assert (found.n_rows, found.is_reused, found.checksum) == (7, True, made.checksum)
    assert found.n_bytes == found.path.stat().st_size
    assert store.find("b") is None
    assert os.stat(tmp_path / "kept").st_mode & 0o777 == 0o700


def test_a_table_is_forgotten_after_its_days(tmp_path):
    store = TableStore(tmp_path, days=7)
    made = store.keep("a", "numbers", write)
    document = tmp_path / "a.json"
    content = json.loads(document.read_text())
    del content["sha256"]
    for days, is_found in ((6.9, True), (7.1, False)):
        made_then = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=days)
        document.write_text(json.dumps(sealed(content | {"made": made_then.isoformat()})))
        assert (store.find("a") is not None) == is_found
        assert (TableStore(tmp_path, days=7).find("a") is not None) == is_found
    assert not made.path.exists()  # nor is it left behind
    assert TableStore(tmp_path, days=0).keep("a", "numbers", write).n_rows == 7
    assert TableStore(tmp_path, days=0).find("a") is None


@pytest.mark.parametrize("name", ["a.parquet", "a.json"])
def test_a_damaged_table_does_not_count(tmp_path, name):
    store = TableStore(tmp_path)
    store.keep("a", "numbers", write)
    content = (tmp_path / name).read_text("latin-1")
    (tmp_path / name).write_text(content.replace("7", "8", 1) + "x", "latin-1")
    assert store.find("a") is None
    assert store.find_or_make("a", "numbers", write).n_rows == 7


def test_what_a_killed_run_left_is_removed_after_a_day(tmp_path):
    old, new = tmp_path / ".a-x.parquet", tmp_path / ".b-x.parquet"
    for path, age in ((old, 90_000), (new, 10)):
        path.write_bytes(b"")
        os.utime(path, (time.time() - age,) * 2)
    TableStore(tmp_path)
    assert (old.exists(), new.exists()) == (False, True)


def test_keys_and_the_folder_of_the_user(monkeypatch, tmp_path):
    assert table_key("a", 1) == table_key("a", 1) != table_key("a", 2)
    monkeypatch.setattr(table_store, "__version__", "another")
    assert table_key("a", 1) not in ("", table_key("a", 2))
    monkeypatch.setenv("RISKSET_CACHE", str(tmp_path))
    assert user_cache() == tmp_path
    monkeypatch.delenv("RISKSET_CACHE")
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert user_cache() == tmp_path / "riskset"
    (tmp_path / "file").write_text("")
    with pytest.raises(rs.InputError, match="is a file"):
        TableStore(tmp_path / "file")
