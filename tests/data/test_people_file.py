"""Columns of a table of people: the year of a date, whatever the file and whoever wrote it."""

import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data.tables import write_text
from riskset._errors import InputError
from riskset.data.cohort_table import CohortTableFile, read_columns


def years(path: Path) -> list[int]:
    return list(read_columns(CohortTableFile(path), {"start": "year"})["start"].tolist())


WRITTEN = {
    "iso": ["2014-12-31", "2015-01-01"],
    "compact": ["20141231", "20150101"],
    "with a time": ["2014-12-31 23:59:59", "2015-01-01T00:00:00"],
    "with a zone": ["2014-12-31T23:30:00-05:00", "2015-01-01T00:30:00+09:00"],
}


@pytest.mark.parametrize("written", WRITTEN.values(), ids=WRITTEN)
def test_dates_as_text(written: list[str], tmp_path: Path) -> None:
    path = write_text(tmp_path / "t.csv", "start\n" + "\n".join(written) + "\n")
    assert years(path) == [2014, 2015]
    pq.write_table(pa.table({"start": written}), tmp_path / "t.parquet")
    assert years(tmp_path / "t.parquet") == [2014, 2015]


def test_dates_as_dates_and_numbers(tmp_path: Path) -> None:
    for values in (
        pa.array([datetime.date(2014, 12, 31), datetime.date(2015, 1, 1)]),
        pa.array([20141231, 20150101]),
        pa.array(WRITTEN["iso"]).dictionary_encode(),
    ):
        pq.write_table(pa.table({"start": values}), tmp_path / "t.parquet")
        assert years(tmp_path / "t.parquet") == [2014, 2015]


@pytest.mark.parametrize("odd", ["06/01/2015", "31.12.2014", "2015-1-1", "2015-02-30", "soon"])
def test_other_ways_to_write_dates_are_refused(odd: str, tmp_path: Path) -> None:
    path = write_text(tmp_path / "t.csv", f"start\n2015-01-01\n{odd}\n")
    with pytest.raises(InputError, match=rf"'start' of t.csv must hold dates, .*row 2, .*'{odd}'"):
        years(path)


def test_what_holds_no_dates_is_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"start": [1.5, 2.5]}), tmp_path / "t.parquet")
    with pytest.raises(InputError, match="must hold dates, but its type is double"):
        years(tmp_path / "t.parquet")
