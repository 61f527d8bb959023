"""Where a CDM is: schemas, tables to ignore, and the memory of the database."""

import datetime

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import riskset as rs
from omop.toy import write_duckdb


@pytest.fixture
def database(tmp_path):
    """A file with the tables of a CDM in one schema, and those of results in another one."""
    path = tmp_path / "all.duckdb"
    write_duckdb(path, 300)
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE results.person AS SELECT 1 AS person_id")
    return path


def test_the_first_schema_that_has_a_table_counts(database):
    n = rs.simulate.toy_tables(300)["person"].num_rows
    with rs.omop.Cdm(database, schema=["cdm", "results"]) as cdm:
        assert cdm.n_rows("person") == n
        assert "my_cohorts" in cdm.tables
    with rs.omop.Cdm(database, schema=["results", "cdm"]) as cdm:
        assert cdm.n_rows("person") == 1


def test_ignored_tables_are_not_there(database):
    with rs.omop.Cdm(database, schema="cdm", ignore=["DEATH", "concept"]) as cdm:
        assert not {"death", "concept"} & {*cdm.tables}
    with pytest.raises(rs.InputError, match=r"table 'deaths' was not found.*ignore.*\n.*'death'"):
        rs.omop.Cdm(database, schema="cdm", ignore=["deaths"])


def test_memory_and_spill_folder(database, tmp_path):
    place = tmp_path / "new" / "spill"
    with rs.omop.Cdm(database, schema="cdm", memory_limit="300MB", spill_folder=place) as cdm:
        (limit, folder) = cdm.database.row(
            "SELECT current_setting('memory_limit'), current_setting('temp_directory')"
        )
        assert limit.startswith("286")  # MiB
        assert folder.startswith(str(place))
    assert not list(place.iterdir())
    with pytest.raises(rs.InputError, match=r"with a unit, but it is 'much'\.\n.*'8GB'"):
        rs.omop.Cdm(database, schema="cdm", memory_limit="much")
    (tmp_path / "file").touch()
    with pytest.raises(rs.InputError, match="is a file"):
        rs.omop.Cdm(database, schema="cdm", spill_folder=tmp_path / "file")


def test_a_table_of_deaths_with_a_header_only(tmp_path):
    rs.simulate.toy_cdm(tmp_path / "cdm", 300, file_format="csv")
    (place,) = (tmp_path / "cdm").glob("death.csv*")
    place.unlink()
    (tmp_path / "cdm" / "death.csv").write_text("person_id,death_date,death_type_concept_id\n")
    new_users = rs.omop.NewUserCohort(
        rs.omop.ConceptSet([974166, 1395058]), rs.omop.ConceptSet([1308216, 1341927])
    )
    with rs.omop.Cdm(tmp_path / "cdm") as cdm:
        start = rs.omop.Eligibility().select(cdm, new_users.read(cdm))
        found = rs.omop.TimeAtRisk().follow(cdm, start, rs.omop.ConceptSet([316139]), "death")
        assert not np.any(found.column("status") == 2)


def test_events_from_any_table():
    tables = dict(rs.simulate.toy_tables(300))
    new_users = rs.omop.NewUserCohort(
        rs.omop.ConceptSet([974166, 1395058]), rs.omop.ConceptSet([1308216, 1341927])
    )
    rules = rs.omop.Eligibility(washout_days=0, restrict_to_common_period=False)
    window = rs.omop.TimeAtRisk(end_anchor="observation end", risk_end=None)
    with rs.omop.Cdm(tables) as cdm:
        start = rules.select(cdm, new_users.read(cdm))
    rows = start.table.to_pylist()[:2]
    first, second = (row["index_date"] for row in rows)
    tables["observation"] = pa.table(
        {
            "person_id": [rows[0]["person_id"]],
            "observation_concept_id": [555],
            "observation_date": [first + datetime.timedelta(days=5)],
        }
    )
    tables["procedure_occurrence"] = pa.table(
        {
            "person_id": [rows[1]["person_id"]],
            "procedure_concept_id": [555],
            "procedure_date": [second + datetime.timedelta(days=7)],
        }
    )
    own = rs.omop.ConceptSet([555], descendants=False)
    expected = {"observation": {0: 5}, "procedure_occurrence": {1: 7}}
    both = ("observation", "procedure_occurrence", "device_exposure")
    with rs.omop.Cdm(tables) as cdm:
        start = rules.select(cdm, new_users.read(cdm))
        for asked, found in ((t, e) for t, e in [*expected.items(), (both, {0: 5, 1: 7})]):
            table = window.follow(cdm, start, rs.omop.Diagnosis(own, tables=asked)).table
            had = {
                row["person_id"]: row["survival_time"]
                for row in table.to_pylist()
                if row["status"] == 1
            }
            assert had == {rows[k]["person_id"]: day for k, day in found.items()}
        with pytest.raises(rs.CohortError, match="has no table device_exposure"):
            window.follow(cdm, start, rs.omop.Diagnosis(own, tables="device_exposure"))
    with pytest.raises(rs.InputError, match=r"`tables` must be .*, but it is 'observations'"):
        rs.omop.Diagnosis(own, tables="observations")
