"""Reading a CDM: every kind of source, loose types, and the faults with their words."""

import zipfile
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import riskset as rs
from omop.by_hand import PERIODS, code_of, day
from omop.toy import COMPARATOR, TARGET, toy_tables


def periods_of(cdm):
    view = cdm.view("observation_period", tuple(PERIODS))
    with cdm.scratch() as work:
        return work.rows(f"SELECT * FROM {view} ORDER BY 1")


CLEAN = [
    (1, day("2010-01-01"), day("2019-12-31")),
    (2, day("2011-01-01"), day("2019-12-31")),
]


# -------------------------------------------------------------------- sources


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("cdm")
    for name, table in toy_tables().items():
        pq.write_table(table, place / f"{name.upper()}.parquet")
    (place / "._person.parquet").write_bytes(b"\0" * 163)
    (place / "notes.txt").write_text("no table")
    return place


def new_users(cdm):
    with cdm:
        return rs.omop.NewUserCohort(TARGET, COMPARATOR).read(cdm).table


@pytest.fixture(scope="module")
def expected():
    return new_users(rs.omop.Cdm(toy_tables()))


def test_folder(folder, expected):
    assert new_users(rs.omop.Cdm(folder)).equals(expected)
    assert new_users(rs.omop.Cdm(str(folder.parent) + f"/{folder.name}")).equals(expected)


def test_archive(folder, expected, tmp_path):
    with zipfile.ZipFile(tmp_path / "cdm.zip", "w") as archive:
        for file in folder.iterdir():
            archive.write(file, f"toy/{file.name}")
        archive.write(folder / "._person.parquet", "__MACOSX/toy/person.parquet")
    assert new_users(rs.omop.Cdm(tmp_path / "cdm.zip")).equals(expected)


def test_tables_in_parts(expected, tmp_path):
    for name, own in toy_tables().items():
        (tmp_path / name).mkdir()
        half = own.num_rows // 2
        for k, part in enumerate((own.slice(0, half), own.slice(half))):
            pq.write_table(part, tmp_path / name / f"part-{k}.parquet")
    with rs.omop.Cdm(tmp_path) as cdm:
        assert (repr(cdm), cdm.tables[0]) == (
            "Cdm(2,000 persons, version 5.4, 13 tables)",
            "cdm_source",
        )
    assert new_users(rs.omop.Cdm(tmp_path)).equals(expected)
    (tmp_path / "drug_exposure" / "part-1.parquet").write_bytes(b"PAR1")
    with pytest.raises(rs.CohortError, match=r"part-1\.parquet is not a complete Parquet"):
        new_users(rs.omop.Cdm(tmp_path))
    for part in (tmp_path / "drug_exposure").iterdir():
        part.unlink()
    with pytest.raises(rs.CohortError, match="folder drug_exposure of .* holds no Parquet file"):
        new_users(rs.omop.Cdm(tmp_path))


def test_duckdb_schemas(expected, tmp_path):
    tables = toy_tables()
    with duckdb.connect(tmp_path / "data.duckdb") as connection:
        connection.execute("CREATE SCHEMA cdm; CREATE SCHEMA Vocab")
        for name, table in tables.items():
            schema = "Vocab" if name.startswith("concept") else "cdm"
            connection.register("given", table)
            connection.execute(f"CREATE TABLE {schema}.{name.upper()} AS SELECT * FROM given")
            connection.unregister("given")
    source = tmp_path / "data.duckdb"
    assert new_users(rs.omop.Cdm(source, schema=("CDM", "vocab"))).equals(expected)
    with pytest.raises(rs.InputError, match="schema 'cmd' was not found") as raised:
        rs.omop.Cdm(source, schema="cmd")
    assert "did you mean 'cdm'" in str(raised.value)


@pytest.mark.parametrize("library", ["pandas", "polars", "arrow", "csv"])
def test_frames(library, tmp_path):
    frame = pa.table({k.upper(): v for k, v in PERIODS.items()})
    if library == "csv":
        frame.to_pandas().to_csv(tmp_path / "Observation_Period.csv", index=False)
        source = tmp_path
    else:
        own = {"pandas": frame.to_pandas, "polars": lambda: pl.from_arrow(frame)}
        source = {"observation_period": own.get(library, lambda: frame)()}
    with rs.omop.Cdm(source) as cdm:
        assert periods_of(cdm) == CLEAN
        assert repr(cdm) == "Cdm(0 persons, unknown version, 1 table)"


@pytest.mark.parametrize(
    "dates",
    [
        ["2010-01-01", "2011-01-01"],
        [" 2010-01-01 00:00:00", "2011-01-01T10:30:00Z"],
        ["20100101", "2011-01-01"],
        [20100101, 20110101],
        [20100101.0, 20110101.0],
        [day("2010-01-01"), day("2011-01-01")],
        np.array(["2010-01-01", "2011-01-01T23:59"], "datetime64[us]"),
        pa.array(np.array(["2010-01-01", "2011-01-01T23:59"], "datetime64[us]")).cast(
            pa.timestamp("us", "UTC")
        ),
        pa.array(["20100101", "20110101"]).dictionary_encode(),
    ],
    ids=lambda dates: str(getattr(dates, "type", dates))[:40].replace("/", "-"),
)
@pytest.mark.parametrize(
    "ids",
    [
        ["1", "2"],
        [1.0, 2.0],
        [Decimal("1.000"), Decimal("2.000")],
        pa.array([1, 2], pa.int32()),
        pa.array([1, 2], pa.uint64()),
    ],
    ids=lambda ids: str(getattr(ids, "type", type(ids[0]).__name__)),
)
def test_types(dates, ids):
    own = {"person_id": ids, "observation_period_start_date": dates}
    with rs.omop.Cdm({"observation_period": pa.table(PERIODS | own)}) as cdm:
        assert periods_of(cdm) == CLEAN


def test_missing_values_stay_missing():
    frame = pd.DataFrame(
        {
            "person_id": [1.0, np.nan],
            "observation_period_start_date": ["2010-01-01", ""],
            "observation_period_end_date": [pd.NaT, pd.Timestamp("2019-12-31")],
        }
    )
    with rs.omop.Cdm({"observation_period": frame}) as cdm:
        assert periods_of(cdm) == [(1, day("2010-01-01"), None), (None, None, day("2019-12-31"))]


def test_large_ids_are_exact():
    with rs.omop.Cdm(
        {"observation_period": pa.table(PERIODS | {"person_id": [2**53 + 1, 7]})}
    ) as cdm:
        assert [row[0] for row in periods_of(cdm)] == [7, 2**53 + 1]


# -------------------------------------------------------------------- faults


@pytest.mark.parametrize(
    ("column", "values", "code", "words"),
    [
        ("person_id", ["1", "abc"], "BadId", "1 value is not one (such as 'abc')"),
        ("person_id", [1.5, 2.0], "BadId", "'1.5'"),
        ("person_id", [2.0**53, 2.0], "BadId", "whole number of 64 bits"),
        ("person_id", pa.array([2**63, 1], pa.uint64()), "BadId", "9223372036854775808"),
        ("person_id", [Decimal("1.5"), Decimal("2.0")], "BadId", "1.5"),
        ("observation_period_end_date", ["31.12.2019"] * 2, "BadDate", "2 values are not one"),
        ("observation_period_end_date", ["2019-02-30", "2019-12-31"], "BadDate", "2019-02-30"),
        ("observation_period_end_date", [20191331, 20191231], "BadDate", "20191331"),
        ("observation_period_end_date", ["12/31/19", None], "BadDate", "as 2020-01-31 or 20200131"),
        ("observation_period_end_date", [True, False], "BadDate", "true"),
    ],
)
def test_bad_values(column, values, code, words):
    table = pa.table(PERIODS | {column: values})
    with (
        rs.omop.Cdm({"observation_period": table}) as cdm,
        pytest.raises(rs.CohortError) as raised,
    ):
        periods_of(cdm)
    assert code_of(raised) == code
    assert words in str(raised.value)
    assert f"column {column} of table observation_period" in str(raised.value)
    assert raised.value.details["column"] == column
    assert 1 <= len(raised.value.details["examples"]) <= 3


def test_bad_values_name_the_file(tmp_path):
    (tmp_path / "death.csv").write_text("person_id,death_date\n1,soon\n")
    with rs.omop.Cdm(tmp_path) as cdm, pytest.raises(rs.CohortError, match=r"\(death\.csv\)"):
        cdm.view("death", ("person_id", "death_date"))


def test_missing_tables_and_columns():
    with rs.omop.Cdm({"Person": pa.table({"person_id": [1]})}) as cdm:
        with pytest.raises(rs.CohortError, match="frames has no table obs") as raised:
            periods_of(cdm)
        assert code_of(raised) == "MissingTable"
        assert "there are: person" in str(raised.value)
        with pytest.raises(rs.CohortError, match="has no column gender_concept_id") as raised:
            cdm.view("person", ("person_id", "gender_concept_id"))
        assert code_of(raised) == "MissingColumn"
        assert "it has person_id" in str(raised.value)
        empty = cdm.view("death", ("person_id", "death_date"), needed=False)
        with cdm.scratch() as work:
            assert work.rows(f"SELECT * FROM {empty}") == []
        assert [(n.code, "death" in n.message) for n in cdm.notes] == [("missing_table", True)]


def test_bad_files(tmp_path):
    (tmp_path / "person.parquet").write_bytes(b"\0" * 163)
    (tmp_path / "death.csv").write_bytes(b"")
    with rs.omop.Cdm(tmp_path) as cdm:
        for table, words in (("person", "not a complete Parquet file"), ("death", "is empty")):
            with pytest.raises(rs.CohortError, match=words) as raised:
                cdm.n_rows(table)
            assert code_of(raised) == "BadFile"
            assert raised.value.details["file"].startswith(str(tmp_path / table))
            # The remedy is a sentence of its own.
            assert raised.value.hint
            assert raised.value.hint not in raised.value.message
    (tmp_path / "cdm.zip").write_bytes(b"PK")
    with pytest.raises(rs.CohortError, match=r"cdm\.zip is not a complete zip") as raised:
        rs.omop.Cdm(tmp_path / "cdm.zip")
    assert code_of(raised) == "BadFile"


def test_two_files_for_one_table(tmp_path):
    for name in ("person.csv", "PERSON.csv.gz"):
        (tmp_path / name).write_text("person_id\n1\n")
    with pytest.raises(rs.CohortError, match="two files for the table person") as raised:
        rs.omop.Cdm(tmp_path)
    assert code_of(raised) == "AmbiguousTable"


def test_sources_that_are_none(tmp_path):
    with pytest.raises(rs.InputError, match="there is no file or folder"):
        rs.omop.Cdm(tmp_path / "nowhere")
    with pytest.raises(rs.InputError, match="mapping of table names to data frames"):
        rs.omop.Cdm(pa.table(PERIODS))
    (tmp_path / "person.csv").write_text("person_id\n1\n")
    with pytest.raises(rs.InputError, match="one file, but a CDM has many tables"):
        rs.omop.Cdm(tmp_path / "person.csv")


@pytest.mark.parametrize(
    ("written", "version"), [("v5.4", "5.4"), ("5.4", "5.4"), ("CDM v5.3.1", "5.3")]
)
def test_versions(written, version):
    with rs.omop.Cdm({"cdm_source": pa.table({"cdm_version": [written]})}) as cdm:
        assert (cdm.version, cdm.notes) == (version, ())


def test_unknown_version():
    with pytest.warns(rs.RisksetWarning, match=r"version '6\.0', but riskset knows 5\.3 and 5\.4"):
        cdm = rs.omop.Cdm({"cdm_source": pa.table({"cdm_version": ["6.0"]})})
    assert [note.code for note in cdm.notes] == ["unknown_version"]
    cdm.close()
