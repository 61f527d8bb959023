"""Tables kept as Parquet: found while they are young and whole."""

import datetime
import errno
import json
import os
import time
from pathlib import Path

import pytest

import riskset as rs
from riskset.data import table_store
from riskset.data.database import Database, file_errors
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
    assert found.path.stat().st_mode & 0o777 == 0o600
    assert found.made == made.made
    assert abs(datetime.datetime.now(datetime.UTC) - found.made).total_seconds() < 600


def test_files_of_the_user_and_rights_of_the_folder_are_left_alone(tmp_path):
    """A user may name the folder of a project, or one that is shared."""
    tmp_path.chmod(0o755)
    names = ("package.json", "person.parquet", f"{'0' * 32}.json", f"{'0' * 32}.parquet")
    for name in names:
        (tmp_path / name).write_text("{}")
        os.utime(tmp_path / name, (0, 0))
    TableStore(tmp_path, days=0)
    assert {path.name for path in tmp_path.iterdir()} == {*names}
    assert tmp_path.stat().st_mode & 0o777 == 0o755


def test_a_table_that_another_program_keeps_longer_is_not_deleted(tmp_path):
    kept = TableStore(tmp_path, days=30).keep("a", "numbers", write)
    assert TableStore(tmp_path, days=0).find("a") is None
    assert kept.path.exists()
    assert TableStore(tmp_path, days=30).find("a") is not None


def test_a_table_is_forgotten_after_its_days(tmp_path):
    store = TableStore(tmp_path, days=7)
    made = store.keep("a", "numbers", write)
    document = tmp_path / "riskset-a.json"
    content = json.loads(document.read_text())
    del content["sha256"]
    for days, is_found in ((6.9, True), (7.1, False)):
        made_then = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=days)
        document.write_text(json.dumps(sealed(content | {"made": made_then.isoformat()})))
        assert (store.find("a") is not None) == is_found
        assert (TableStore(tmp_path, days=7).find("a") is not None) == is_found
    assert made.path.exists()  # for a day, because another program may be reading it
    made_then = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=8.1)
    document.write_text(json.dumps(sealed(content | {"made": made_then.isoformat()})))
    TableStore(tmp_path, days=7)
    assert made.path.exists()  # another program may just have made it again
    os.utime(made.path, (made_then.timestamp(),) * 2)
    TableStore(tmp_path, days=7)
    assert not made.path.exists()
    assert not document.exists()
    assert TableStore(tmp_path, days=0).keep("a", "numbers", write).n_rows == 7
    assert TableStore(tmp_path, days=0).find("a") is None


@pytest.mark.parametrize("name", ["riskset-a.parquet", "riskset-a.json"])
def test_a_damaged_table_does_not_count(tmp_path, name):
    store = TableStore(tmp_path)
    store.keep("a", "numbers", write)
    content = (tmp_path / name).read_text("latin-1")
    (tmp_path / name).write_text(content.replace("7", "8", 1) + "x", "latin-1")
    assert store.find("a") is None
    assert store.find_or_make("a", "numbers", write).n_rows == 7


def test_what_a_killed_run_left_is_removed_after_a_day(tmp_path):
    old = [tmp_path / name for name in (".riskset-a-x.parquet", "tmp_.riskset-a-x.parquet")]
    new = tmp_path / ".riskset-b-x.parquet"
    for path, age in (*((path, 90_000) for path in old), (new, 10)):
        path.write_bytes(b"")
        os.utime(path, (time.time() - age,) * 2)
    TableStore(tmp_path)
    assert [*tmp_path.iterdir()] == [new]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_named(tmp_path):
    """As the file of the table, and not as an error of the embedded database."""
    store = TableStore(tmp_path)
    with pytest.raises(OSError, match=r"cannot be written: .* device.*riskset-a\.parquet"):
        store.keep("a", "numbers", lambda path: write(Path("/dev/full")))
    assert store.find("a") is None
    assert not [*tmp_path.iterdir()]


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


@pytest.mark.parametrize("days", [-1, 1.5, "7", None])
def test_days_that_are_none(tmp_path, days):
    with pytest.raises(rs.InputError, match="`cache_days` must be a whole number"):
        TableStore(tmp_path, days)


@pytest.mark.parametrize("memory", ["0GB", "1KB", "10MB", "61 MiB", 5])
def test_amounts_of_memory_in_which_nothing_is_computed(memory):
    with pytest.raises(rs.InputError, match="`memory_limit` must be"):
        Database(memory)


def test_a_folder_that_cannot_be_made_is_named(tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("pathlib.Path.mkdir", full)
    with pytest.raises(rs.InputError, match="cannot write into .*: No space left on device"):
        TableStore(tmp_path / "new")


def test_an_account_without_a_home_is_asked_for_a_folder(monkeypatch):
    def nowhere():
        raise RuntimeError("Could not determine home directory.")

    for name in ("RISKSET_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", nowhere)
    with pytest.raises(rs.InputError, match="no home folder") as caught:
        user_cache()
    assert "RISKSET_CACHE" in caught.value.hint


def test_too_little_memory_names_the_settings(tmp_path):
    rows = (
        "SELECT (random() * 1e9)::VARCHAR || repeat('x', 200) AS a FROM range(3000000) ORDER BY a"
    )
    with Database("64MB", tmp_path / "spill") as database:
        database.execute("SET max_temp_directory_size = '1MB'")
        for work in (
            lambda: database.write_parquet(rows, tmp_path / "a.parquet"),
            lambda: database.reason_against(f"CREATE TABLE b AS {rows}"),
        ):
            with pytest.raises(MemoryError, match="`memory_limit`") as caught:
                work()
            assert "`spill_folder`" in str(caught.value)
            assert "\nHint: " in str(caught.value)
            assert "SET " not in str(caught.value)  # the advice of the database
        with pytest.raises(MemoryError, match="`memory_limit`"), file_errors("a.csv"):
            database.sql(rows).to_arrow_table()
