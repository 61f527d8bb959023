"""A date is the calendar day that is written, in whatever zone, on a machine in any zone."""

import datetime
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from zoneinfo import ZoneInfo

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import riskset as rs
from omop.by_hand import day
from riskset.data.cohort_table import CohortTableFile, read_columns

WRITTEN = [day("2015-01-01"), day("2015-06-10"), day("2014-12-31")]
ZONES = ["America/New_York", "Asia/Tokyo", "Asia/Kolkata", "+09:00", "-05:30", "UTC"]
CLOCKS = {"midnight": (0, 0), "before midnight": (23, 30)}


def points(zone, clock):
    """Points in time on the days WRITTEN, by a clock of the zone."""
    if zone[0] in "+-":
        hours, minutes = map(int, zone[1:].split(":"))
        size = datetime.timedelta(hours=hours, minutes=minutes)
        own = datetime.timezone(size if zone[0] == "+" else -size)
    else:
        own = ZoneInfo(zone)
    return [datetime.datetime(d.year, d.month, d.day, *clock, tzinfo=own) for d in WRITTEN]


def read(source):
    """Days of death as they are read."""
    with rs.omop.Cdm(source) as cdm, cdm.scratch() as work:
        view = cdm.view("death", ("person_id", "death_date"))
        found = work.rows(f"SELECT death_date FROM {view} ORDER BY person_id")
        return [on for (on,) in found], [note.code for note in cdm.notes]


def arrow(zone, clock):
    times = pa.array(points(zone, clock), pa.timestamp("us", zone))
    return pa.table({"person_id": [1, 2, 3], "death_date": times})


@pytest.mark.parametrize("clock", CLOCKS.values(), ids=CLOCKS)
@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("library", ["arrow", "pandas", "polars", "objects", "files", "parts"])
def test_the_day_that_the_clock_showed(zone, clock, library, tmp_path):
    table = arrow(zone, clock)
    if library == "files":
        pq.write_table(table, tmp_path / "death.parquet")
        pyarrow.feather.write_feather(table, tmp_path / "also.arrow")
        assert read({"death": tmp_path / "also.arrow"})[0] == WRITTEN
        assert read(tmp_path)[0] == WRITTEN
        return
    if library == "parts":
        (tmp_path / "death").mkdir()
        for k in range(3):
            pq.write_table(table.slice(k, 1), tmp_path / "death" / f"{k}.parquet")
        assert read(tmp_path)[0] == WRITTEN
        return
    if library == "polars" and zone[0] in "+-":
        pytest.skip("polars has zones with names only")
    frame = {
        "arrow": lambda: table,
        "pandas": table.to_pandas,
        "polars": lambda: pl.from_arrow(table),
        "objects": lambda: pd.DataFrame(
            {"person_id": [1, 2, 3], "death_date": pd.Series(points(zone, clock), dtype=object)}
        ),
    }[library]()
    assert read({"death": frame})[0] == WRITTEN


def test_objects_of_several_zones():
    mixed = [points("America/New_York", (23, 30))[0], None, points("Asia/Tokyo", (0, 15))[2]]
    frame = pd.DataFrame({"person_id": [1, 2, 3], "death_date": pd.Series(mixed, dtype=object)})
    assert read({"death": frame})[0] == [WRITTEN[0], None, WRITTEN[2]]


def test_text_with_an_offset(tmp_path):
    own = [point.isoformat() for point in points("America/New_York", (23, 30))]
    frame = pd.DataFrame({"person_id": [1, 2, 3], "death_date": own})
    frame.to_csv(tmp_path / "death.csv", index=False)
    assert read({"death": frame})[0] == read(tmp_path)[0] == WRITTEN


def test_points_in_time_of_a_database_are_in_utc_with_a_note(tmp_path):
    """DuckDB keeps no zone: 00:00 in Tokyo is 15:00 of the day before in UTC."""
    with duckdb.connect(tmp_path / "cdm.duckdb") as connection:
        connection.execute("SET TimeZone = 'Asia/Tokyo'")
        connection.execute(
            "CREATE TABLE death AS SELECT * FROM (VALUES (1, TIMESTAMPTZ '2015-01-02 00:00:00'), "
            "(2, TIMESTAMPTZ '2015-06-10 09:00:00')) AS t(person_id, death_date)"
        )
        relation = connection.table("death")
        assert read({"death": relation}) == (WRITTEN[:2], ["no_time_zone"])
    assert read(tmp_path / "cdm.duckdb") == (WRITTEN[:2], ["no_time_zone"])


def test_infinite_dates_are_no_dates(tmp_path):
    with duckdb.connect(tmp_path / "cdm.duckdb") as connection:
        connection.execute(
            "CREATE TABLE death AS SELECT 1 AS person_id, DATE 'infinity' AS death_date"
        )
    with pytest.raises(rs.CohortError, match="1 value is not one") as raised:
        read(tmp_path / "cdm.duckdb")
    assert raised.value.code == "BadDate"


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Tokyo", "UTC"])
def test_years_of_a_table_of_people(zone, tmp_path):
    times = pa.array(points(zone, (0, 0)), pa.timestamp("us", zone))
    pq.write_table(pa.table({"start": times}), tmp_path / "t.parquet")
    found = read_columns(CohortTableFile(tmp_path / "t.parquet"), {"start": "year"})
    assert found["start"].tolist() == [2015, 2015, 2014]


@pytest.mark.slow
@pytest.mark.parametrize("machine", ["America/New_York", "Asia/Tokyo"])
def test_the_zone_of_the_machine_does_not_matter(machine):
    """All of the above in a process of another zone, without the tests that start one."""
    code = textwrap.dedent(
        f"""
        import time, datetime, pytest, sys
        assert datetime.datetime.now().astimezone().utcoffset()
        sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "-k", "not machine", {__file__!r}]))
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"TZ": machine},
        cwd=Path(__file__).parent.parent.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:]
