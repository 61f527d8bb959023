"""A table with damaged bytes is read, or refused by its name; nothing else happens."""

import gzip

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

import riskset as rs
from mutations import flipped
from parameters import rest_is_slow

N_FLIPS = 25
"""Of each kind of change. With 600 and other seeds nothing else was found."""


def _table():
    rng = np.random.default_rng(1)
    n = 40
    return pa.table(
        {
            "time": np.ceil(rng.exponential(9, n)),
            "event": rng.integers(0, 2, n),
            "age": rng.normal(size=n).round(3),
            "site": rng.choice(["b", "a", "ünï"], n),
        }
    )


def _write(path):
    table = _table()
    if path.suffix == ".parquet":
        pa.parquet.write_table(table, path)
    elif path.name == "plain.feather":
        pa.feather.write_feather(table, path, compression="uncompressed")
    elif path.suffix == ".feather":
        pa.feather.write_feather(table, path)
    elif path.suffix == ".arrow":
        with pa.ipc.new_stream(path, table.schema) as stream:
            stream.write_table(table)
    elif path.suffix == ".gz":
        with gzip.open(path, "wb") as stream:
            pa.csv.write_csv(table, stream)
    else:
        delimiter = "\t" if path.suffix == ".tsv" else ","
        pa.csv.write_csv(table, path, pa.csv.WriteOptions(delimiter=delimiter))


@pytest.mark.parametrize(
    "name",
    rest_is_slow(
        ["t.csv", "t.parquet", "t.tsv", "t.csv.gz", "t.feather", "plain.feather", "t.arrow"], 2
    ),
)
def test_damaged_bytes(tmp_path, name):
    path = tmp_path / name
    _write(path)
    content = path.read_bytes()
    for what, damaged in flipped(content, N_FLIPS, seed=5):
        path.write_bytes(damaged)
        try:
            rs.read_dataset(path, time="time", event="event")
        except rs.InputError as error:
            message = str(error)
        except Exception as error:
            pytest.fail(f"{what}: {type(error).__name__}: {error}")
        else:
            continue
        assert name in message or "column" in message, message


def test_a_damaged_design_is_refused(tmp_path):
    path = tmp_path / "x.rsd"
    rs.Design.from_dense(np.random.default_rng(2).normal(size=(30, 3))).save(path)
    content = path.read_bytes()
    n_refused = 0
    for what, damaged in flipped(content, N_FLIPS, seed=6):
        path.write_bytes(damaged)
        try:
            rs.Design.open(path)
        except rs.InputError as error:
            n_refused += "x.rsd" in str(error)
        except Exception as error:
            pytest.fail(f"{what}: {type(error).__name__}: {error}")
    assert n_refused > N_FLIPS


@pytest.mark.parametrize("delimiter", [",", "\t"])
def test_a_nul_byte_in_a_covariate(tmp_path, delimiter):
    path = tmp_path / ("t.csv" if delimiter == "," else "t.tsv")
    rows = ["time,event,x", "1,1,2", "2,0,\x003", "3,1,4"]
    path.write_text("\n".join(rows).replace(",", delimiter) + "\n")
    with pytest.raises(
        rs.InputError, match=f"{path.name} is damaged: 1 value of column 'x' has a NUL"
    ):
        rs.read_dataset(path, time="time", event="event")


@pytest.mark.parametrize("name", ["t.csv", "t.tsv"])
def test_a_nul_byte_in_text(tmp_path, name):
    path = tmp_path / name
    _write(path)
    lines = path.read_bytes().split(b"\n")
    lines[3] = lines[3][:2] + b"\x00" + lines[3][2:]
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(rs.InputError, match=f"(?s){name}|column 'time'"):
        rs.read_dataset(path, time="time", event="event")


def test_a_damaged_table_of_a_cdm_is_refused_by_name(tmp_path):
    table = pa.table({"person_id": np.arange(5000), "year_of_birth": np.arange(5000) % 90 + 1920})
    path = tmp_path / "person.parquet"
    pa.parquet.write_table(table, path)
    content = bytearray(path.read_bytes())
    content[100:3000] = bytes(2900)
    path.write_bytes(content)
    with (
        rs.omop.Cdm(tmp_path) as cdm,
        pytest.raises(rs.InputError, match=r"person.parquet could not be read"),
    ):
        cdm.arrow("person")


def test_a_damaged_duckdb_file(tmp_path):
    path = tmp_path / "t.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.register("given", _table())
        connection.execute("CREATE TABLE people AS SELECT * FROM given")
    content = path.read_bytes()
    for damaged in (content[: len(content) // 2], content[:5000] + bytes(len(content) - 5000)):
        path.write_bytes(damaged)
        with pytest.raises(rs.InputError, match=r"t\.duckdb"):
            rs.read_dataset(path, time="time", event="event")
