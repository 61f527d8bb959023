"""Files of every format give the same data set; what is wrong in a file is named."""

import gzip
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from numpy.testing import assert_array_equal

import riskset as rs
from data import tables
from data.tables import write_text
from riskset._errors import InputError
from riskset.data.dataset import Dataset
from riskset.data.readers import read_dataset, read_new_data
from riskset.data.schema import Schema
from riskset.datasets import rhc_path

BIG = 2**53
CASES = Path(__file__).parents[1] / "cases"

PATIENTS = pa.table(
    {
        "pid": [BIG, BIG + 1, 3, 4],
        "days": [5.5, 8.0, 2.25, 8.0],
        "died": [True, False, True, False],
        "smoker": [False, True, True, True],
        "age": [61, 70, 55, 48],
        "bmi": [22.5, 31.0, 27.25, 40.0],
        "answer": ["Yes", "No", "Yes", "Yes"],
        "code": ["01", "2", "01", "10"],
        "clinic": ["north", "south", "north", "south"],
    }
)
COVARIATES = pa.table(
    {
        "rowId": [3, BIG + 1, 3, 4, BIG],
        "covariateId": [BIG, BIG, BIG + 1, 1, BIG + 1],
        "covariateValue": [1.0, 1.0, 1.0, -2.5, 1.0],
    }
)
ROLES = {"time": "days", "event": "died", "strata": "clinic", "id": "pid"}
NAMES = ("smoker", "age", "bmi", "answer=No", "answer=Yes", "code=01", "code=10", "code=2")
MATRIX = [
    [0, 61, 22.5, 0, 1, 1, 0, 0],
    [1, 70, 31.0, 1, 0, 0, 0, 1],
    [1, 55, 27.25, 0, 1, 1, 0, 0],
    [1, 48, 40.0, 0, 1, 0, 1, 0],
]
LONG_NAMES = ("1", str(BIG), str(BIG + 1))
LONG_MATRIX = [[0, 0, 1], [0, 1, 0], [0, 1, 1], [-2.5, 0, 0]]

each_format = pytest.mark.parametrize("format_", tables.WRITERS)


def check_outcome(data: Dataset) -> None:
    outcome = data.outcome()
    assert_array_equal(outcome.time, [5.5, 8, 2.25, 8])
    assert_array_equal(outcome.event, [1, 0, 1, 0])
    assert_array_equal(outcome.stratum, [0, 1, 0, 1])
    assert list(outcome.strata) == ["north", "south"]
    assert data.row_keys is not None
    assert data.row_keys.tolist() == [BIG, BIG + 1, 3, 4]


# -------------------------------------------------------------------------------- formats


@each_format
def test_a_wide_table_is_the_same_in_every_format(tmp_path: Path, format_: str) -> None:
    path = tables.WRITERS[format_](PATIENTS, tmp_path / "patients")
    data = read_dataset(path, **ROLES)
    assert data.design.names == NAMES
    assert_array_equal(data.design.to_dense(), MATRIX)
    check_outcome(data)
    assert data.schema == Dataset.from_frame(PATIENTS, **ROLES).schema


@each_format
def test_a_long_table_is_the_same_in_every_format(tmp_path: Path, format_: str) -> None:
    write = tables.WRITERS[format_]
    patients = write(PATIENTS, tmp_path / "patients")
    covariates = write(COVARIATES, tmp_path / "covariates")
    data = read_dataset(str(patients), covariates=str(covariates), **ROLES)
    assert data.design.names == (*NAMES, *LONG_NAMES)
    assert data.design.keys[-3:] == (1, BIG, BIG + 1)
    assert_array_equal(data.design.to_dense(), np.hstack([MATRIX, LONG_MATRIX]))
    check_outcome(data)


@each_format
def test_text_keys_and_no_values_in_every_format(tmp_path: Path, format_: str) -> None:
    write = tables.WRITERS[format_]
    pid = ["p1", "p2", "007", "7"]
    patients = write(PATIENTS.set_column(0, "pid", [pid]), tmp_path / "patients")
    long = pa.table({"pid": ["7", "007", "p1"], "covariate": ["E11.9", "010", "10"]})
    covariates = write(long, tmp_path / "covariates")
    data = read_dataset(patients, covariates=covariates, **ROLES)
    assert data.row_keys is not None
    assert list(data.row_keys) == pid
    assert data.design.keys[-3:] == ("010", "10", "E11.9")
    assert_array_equal(data.design.to_dense()[:, -3:], [[0, 1, 0], [0, 0, 0], [1, 0, 0], [0, 0, 1]])


@each_format
def test_new_data_of_another_format(tmp_path: Path, format_: str) -> None:
    write = tables.WRITERS[format_]
    fit = Dataset.from_long(PATIENTS, COVARIATES, **ROLES)
    schema = Schema.from_dict(fit.schema.to_dict())
    new = PATIENTS.select(["clinic", "code", "answer", "bmi", "age", "smoker", "pid"]).slice(1, 2)
    long = COVARIATES.slice(0, 3).append_column("analysisId", [[1, 1, 1]])
    data = read_new_data(
        schema, write(new, tmp_path / "new"), covariates=write(long, tmp_path / "long")
    )
    assert data.design.names == fit.design.names
    assert_array_equal(data.design.to_dense(), fit.design.to_dense()[[1, 2]])
    assert list(data.outcome_columns.strata[0]) == ["south", "north"]


@each_format
def test_the_order_of_rows_is_that_of_the_file(tmp_path: Path, format_: str) -> None:
    n = 20_000
    key = np.random.default_rng(0).permutation(n)
    frame = pa.table({"rowId": key, "time": key % 50, "y": key % 2, "x": key / 4})
    data = read_dataset(tables.WRITERS[format_](frame, tmp_path / "many"))
    assert_array_equal(data.row_keys, key)
    assert_array_equal(data.design.to_dense()[:, 0], key / 4)


def test_a_wide_file_is_read_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = read_dataset(tables.WRITERS["parquet"](PATIENTS, tmp_path / "p"), **ROLES)
    monkeypatch.setattr("riskset.data.frame.CHUNK_CELLS", 8)
    pieces = read_dataset(tmp_path / "p.parquet", **ROLES)
    assert_array_equal(pieces.design.to_dense(), whole.design.to_dense())


def test_the_bundled_cohort() -> None:
    path = rhc_path(categories=True)
    data = read_dataset(path, id="id")
    assert data.n_rows == 5735
    assert "fac_cat1=CHF" in data.design.names


# -------------------------------------------------------------------------------- DuckDB files


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "study.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.register("p", PATIENTS)
        connection.register("c", COVARIATES)
        connection.execute("CREATE TABLE patients AS SELECT * FROM p")
        connection.execute("CREATE SCHEMA big")
        connection.execute("CREATE TABLE big.Covariates AS SELECT * FROM c")
        connection.execute(
            "CREATE VIEW older AS SELECT pid, days, died, age FROM patients WHERE age > 50"
        )
    return path


def test_tables_views_and_queries_of_a_duckdb_file(database: Path) -> None:
    data = read_dataset(database, table="Patients", covariates="big.covariates", **ROLES)
    assert_array_equal(data.design.to_dense(), np.hstack([MATRIX, LONG_MATRIX]))
    named = read_dataset(
        database, table="patients", covariates=database, covariates_table="big.covariates", **ROLES
    )
    assert_array_equal(named.design.to_dense(), data.design.to_dense())
    older = read_dataset(database, table="older", time="days", event="died", id="pid")
    assert_array_equal(older.design.to_dense()[:, 0], [61, 70, 55])
    query = "WITH t AS (SELECT * FROM patients) SELECT days, died, age FROM t ORDER BY age; "
    asked = read_dataset(database, query=query, time="days", event="died")
    assert_array_equal(asked.design.to_dense()[:, 0], [48, 55, 61, 70])
    both = read_dataset(
        database,
        table="patients",
        covariates=database,
        covariates_query="SELECT * FROM big.covariates WHERE covariateId = 1 -- one",
        **ROLES,
    )
    assert both.design.names == (*NAMES, "1")


def test_complaints_about_a_duckdb_file(database: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"study.duckdb has 3 tables: .*'patients'.*\n.*`table`"):
        read_dataset(database)
    with pytest.raises(InputError, match=r"table 'patient' was not found .*\n.*'patients'"):
        read_dataset(database, table="patient")
    with pytest.raises(InputError, match="both `table` and `query`"):
        read_dataset(database, table="patients", query="SELECT 1")
    with pytest.raises(InputError, match=r"query of study.duckdb .*nothing_here.*\n.*patients"):
        read_dataset(database, query="SELECT * FROM nothing_here")
    with pytest.raises(InputError, match=r"table 'covariates' was not found in study.duckdb"):
        read_dataset(database, table="patients", covariates="covariates", **ROLES)
    with duckdb.connect(str(database)), pytest.raises(InputError, match=r"study.duckdb is in use"):
        read_dataset(database, table="patients", **ROLES)
    csv = tables.WRITERS["csv"](PATIENTS, tmp_path / "p")
    with pytest.raises(InputError, match=r"is for a DuckDB file, but p.csv is not one"):
        read_dataset(csv, table="patients")
    with pytest.raises(InputError, match="`covariates_query` needs `covariates`"):
        read_dataset(database, table="patients", covariates_query="SELECT 1", **ROLES)
    with pytest.raises(InputError, match="choose one with `covariates_table`"):
        read_dataset(database, table="patients", covariates=database, **ROLES)
    with pytest.raises(InputError, match="`covariates_table` is for a DuckDB file"):
        read_dataset(database, table="patients", covariates=csv, covariates_table="p", **ROLES)


def test_a_query_cannot_see_variables_of_the_program(database: Path) -> None:
    secret = PATIENTS
    assert secret.num_rows == 4
    with pytest.raises(InputError, match="secret"):
        read_dataset(database, query="SELECT * FROM secret")


# -------------------------------------------------------------------------------- files


def test_complaints_about_files(tmp_path: Path) -> None:
    good = tables.WRITERS["csv"](PATIENTS, tmp_path / "patients")
    with pytest.raises(InputError, match=r"no file .*patient.csv'.\n.*'patients.csv'"):
        read_dataset(tmp_path / "patient.csv")
    with pytest.raises(InputError, match=r"no file .*\n.*no directory"):
        read_dataset(tmp_path / "nowhere" / "patient.csv")
    with pytest.raises(InputError, match="is a directory"):
        read_dataset(tmp_path)
    with pytest.raises(InputError, match=r"'t.xlsx' does not say .*\n.*\.csv, .*\.parquet"):
        read_dataset(write_text(tmp_path / "t.xlsx", "x"))
    with pytest.raises(InputError, match=r"empty.csv is empty"):
        read_dataset(write_text(tmp_path / "empty.csv", ""))
    (tmp_path / "latin.csv").write_bytes("time,event,x\n1,1,é\n".encode("latin-1"))
    with pytest.raises(InputError, match=r"latin.csv .*\n.*UTF-8"):
        read_dataset(tmp_path / "latin.csv")
    with pytest.raises(InputError, match=r"no file .*long.csv"):
        read_dataset(good, covariates=tmp_path / "long.csv", **ROLES)
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress(b"time,event\n1,1\n" * 999)[:-30])
    with pytest.raises(InputError, match=r"cut.csv.gz could not be read"):
        read_dataset(tmp_path / "cut.csv.gz")


@pytest.mark.parametrize("format_", ["parquet", "feather", "arrow", "duckdb"])
@pytest.mark.parametrize("how", ["text", "cut"])
def test_a_damaged_file_is_named(tmp_path: Path, format_: str, how: str) -> None:
    path = tables.WRITERS[format_](PATIENTS, tmp_path / "patients")
    content = path.read_bytes()
    path.write_bytes(b"time,event\n1,1\n" * 50 if how == "text" else content[: len(content) // 3])
    with pytest.raises(InputError, match=path.name):
        read_dataset(path, **ROLES)


def test_parquet_columns_that_differ_in_case_only(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pa.parquet.write_table(pa.table({"time": [1], "event": [1], "x": [1], "X": [2]}), path)
    with pytest.raises(InputError, match=r"t.parquet has columns 'x' and 'X'"):
        read_dataset(path)


def test_complaints_name_the_long_file(tmp_path: Path) -> None:
    patients = tables.WRITERS["parquet"](PATIENTS, tmp_path / "patients")
    long = write_text(tmp_path / "long.csv", "rowId,covariateId,value\n3,1,1\n4,1,NA\n")
    with pytest.raises(InputError, match=r"'value' of long.csv .*rowId 4, covariateId 1"):
        read_dataset(patients, covariates=long, **ROLES)
    write_text(long, "rowId,covariateId,value\n3,1,1\n5,1,1\n")
    with pytest.raises(InputError, match=r"in long.csv, 1 of 2 .*first: rowId 5"):
        read_dataset(patients, covariates=long, **ROLES)
    write_text(long, "rowId,covariateId,value\n")
    with pytest.raises(InputError, match=r"long.csv has no entries"):
        read_dataset(patients, covariates=long, **ROLES)
    write_text(long, "rowId,covariateId,value\n3,1,abc\n")
    with pytest.raises(
        InputError, match=r"'value' of long.csv must .*rowId 3, covariateId 1, value 'abc'"
    ):
        read_dataset(patients, covariates=long, **ROLES)
    write_text(long, "row,key\n3,1\n")
    with pytest.raises(
        InputError, match=r"column of long.csv identifies the row; it has 'row', 'key'"
    ):
        read_dataset(patients, covariates=long, **ROLES)


def test_the_case_of_repeated_entries() -> None:
    case = CASES / "15-duplicate-row-covariate-entries"
    files = {"path": case / "outcomes.csv", "covariates": case / "input.csv"}
    with pytest.raises(InputError, match=r"in input.csv, .*rowId 104, covariateId 2002"):
        read_dataset(**files)
    total = read_dataset(**files, duplicates="sum")
    assert total.design.to_dense()[3].tolist() == [0.0, 0.8 + 0.4]
    assert total.n_dropped == {"repeated_entries": 1}
    assert read_dataset(**files, duplicates="max").design.to_dense()[3].tolist() == [0.0, 0.8]


def test_nothing_is_left_in_the_directory_of_temporary_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tables.WRITERS["csv"](PATIENTS, tmp_path / "patients")
    spill = tmp_path / "spill"
    spill.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(spill))
    read_dataset(path, **ROLES)
    with pytest.raises(InputError, match="column 'nothing' was not found"):
        read_dataset(path, time="nothing")
    assert list(spill.iterdir()) == []


def test_one_column_may_have_several_label_roles(tmp_path: Path) -> None:
    path = tables.WRITERS["csv"](PATIENTS, tmp_path / "p")
    roles = ROLES | {"cluster": "pid", "censoring_group": "clinic"}
    assert read_dataset(path, **roles).n_rows == 4
    for strata in (["clinic", "clinic"], 3):
        with pytest.raises(InputError, match="`strata`"):
            read_dataset(path, **ROLES | {"strata": strata})
    with pytest.raises(InputError, match=r"`path` must name a file.*\n.*from_frame"):
        read_dataset(PATIENTS)  # type: ignore[arg-type]


def test_levels_of_new_data_are_levels_whatever_they_look_like(tmp_path: Path) -> None:
    for k, level in enumerate(("1.50", "2020-01-01", "true", "7.0")):
        fit, new = tmp_path / f"fit{k}.csv", tmp_path / f"new{k}.csv"
        fit.write_text(f"time,event,x\n1,1,{level}\n2,0,z\n3,1,z\n")
        new.write_text(f"x\n{level}\n{level}\n")
        schema = read_dataset(fit).schema
        assert_array_equal(read_new_data(schema, new).design.to_dense(), [[1, 0], [1, 0]])


def test_a_column_of_gaps_is_missing_not_text(tmp_path: Path) -> None:
    path = tmp_path / "gaps.csv"
    path.write_text("time,event,x\n1,1,5\n2,0,6\n")
    schema = read_dataset(path).schema
    path.write_text("time,event,x\n1,1,NA\n2,0,NA\n")
    with pytest.raises(InputError, match="'x' of gaps.csv must not have missing"):
        read_new_data(schema, path)


def test_text_events_are_not_guessed() -> None:
    table = PATIENTS.set_column(2, "died", [["yes", "no", "yes", "no"]])
    with pytest.raises(InputError, match=r"'no', 'yes', but it is not known which.*\n.*`censored`"):
        Dataset.from_frame(table, **ROLES)


@pytest.mark.parametrize("more", ["; COPY (SELECT 1) TO '{out}'", "; SELECT 1"])
def test_a_query_is_one_select(tmp_path: Path, database: Path, more: str) -> None:
    out = tmp_path / "out.csv"
    query = "SELECT days, died, age FROM patients"
    for text in (query + more.format(out=out), f"COPY ({query}) TO '{out}'", ""):
        with pytest.raises(InputError, match="must be one SELECT"):
            read_dataset(database, query=text, time="days", event="died")
    assert not out.exists()


def test_a_decimal_comma_is_told(tmp_path: Path) -> None:
    (tmp_path / "comma.csv").write_text("id;time;event;a\n1;1;1;2,5\n2;2;0;3,5\n3;3;1;1,0\n")
    with pytest.raises(InputError, match="write decimals with a point"):
        read_dataset(tmp_path / "comma.csv", id="id")


def test_an_entry_without_a_key_is_located(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("id,time,event\n1,1,1\n2,2,0\n")
    (tmp_path / "long.csv").write_text("rowId,covariateId,covariateValue\n1,5,1\n2,,1\n")
    with pytest.raises(InputError, match=r"1 of 2 entries has one \(first: rowId 2\)"):
        read_dataset(tmp_path / "rows.csv", id="id", covariates=tmp_path / "long.csv")


@pytest.mark.parametrize("ending", ["parquet", "arrow", "duckdb"])
def test_files_declare_the_order_of_levels(ending: str, tmp_path: Path) -> None:
    ages = pa.DictionaryArray.from_arrays([2, 0, 1, 2], ["young", "middle", "old", "unused"])
    table = pa.table({"time": [1, 2, 3, 4], "event": [1, 0, 1, 0], "age": ages})
    path = tmp_path / f"t.{ending}"
    if ending == "parquet":
        pyarrow.parquet.write_table(table, path, row_group_size=1)
    elif ending == "arrow":
        pyarrow.feather.write_feather(table, path)
    else:
        with duckdb.connect(path) as connection:
            connection.execute("CREATE TYPE ages AS ENUM ('young', 'middle', 'old', 'unused')")
            connection.execute('CREATE TABLE t AS SELECT * REPLACE (age::ages AS age) FROM "table"')
    names = ("age=young", "age=middle", "age=old")
    assert read_dataset(path).design.names == names
    chosen = read_dataset(path, reference={"age": "old"})
    assert chosen.design.names == ("age=old", "age=young", "age=middle")
    # The levels of the fit are those of new data, whatever these declare.
    again = Schema.from_dict(chosen.schema.to_dict())
    new = table.set_column(2, "age", [table["age"].cast(pa.string())])
    assert_array_equal(
        Dataset.from_schema(again, new).design.to_dense(),
        [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0]],
    )


def test_categories_of_whole_numbers_stay_categories_in_parquet(tmp_path: Path) -> None:
    """Parquet stores them as numbers, and Arrow keeps their type beside them."""
    stage = [3, 1, 2, 1, 3, 2, 1, 2, 3, 1, 2, 3]
    frame = pd.DataFrame(
        {
            "stage": pd.Categorical(stage),
            "visits": [1, 2, 5, 3, 2, 9, 4, 1, 7, 2, 2, 6],
            "time": range(1, 13),
            "event": [1, 0, 1, 1, 0, 1] * 2,
        }
    )
    frame.to_parquet(tmp_path / "people.parquet")
    data = rs.read_dataset(tmp_path / "people.parquet", time="time", event="event")
    assert data.design.names == ("stage=1", "stage=2", "stage=3", "visits")
    in_memory = rs.Dataset.from_frame(frame, time="time", event="event")
    assert data.design.names == in_memory.design.names
    chosen = rs.read_dataset(
        tmp_path / "people.parquet", time="time", event="event", reference={"stage": "2"}
    )
    assert rs.Cox().fit(chosen).covariates_ == ("stage=1", "stage=3", "visits")


class NoWidgets:
    """A connection of DuckDB as in Jupyter without ipywidgets, which refuses one setting."""

    def __init__(self, real: duckdb.DuckDBPyConnection) -> None:
        self._real = real

    def execute(self, sql: str, *more: object) -> object:
        if "enable_progress_bar" in sql:
            raise duckdb.InvalidInputException("needs ipywidgets to render progress bars")
        return self._real.execute(sql, *more)

    def __getattr__(self, name: str) -> object:
        return getattr(self._real, name)


def test_files_are_read_in_jupyter_without_widgets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pyarrow.parquet.write_table(PATIENTS, tmp_path / "people.parquet")
    connect = duckdb.connect
    monkeypatch.setattr(duckdb, "connect", lambda *a, **k: NoWidgets(connect(*a, **k)))
    data = read_dataset(tmp_path / "people.parquet", time="days", event="died", id="pid")
    assert data.design.n_rows == PATIENTS.num_rows
