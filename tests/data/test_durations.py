"""Durations have no unit that is known, so that no column of them is read as numbers."""

import datetime
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

import riskset as rs
from data import tables
from riskset._types import is_number
from study import protocol_study, small

DAYS = [5, 3, 8, 9, 2, 7, 6, 4]
PEOPLE = {"id": range(8), "time": DAYS, "event": [1, 0] * 4, "entry": [0] * 8, "x": DAYS}
PER_PROTOCOL = {"pp": {"estimand": "per-protocol", "per_protocol": {"deviation": "stopped"}}}
ROLES = {"time": "time", "event": "event", "entry": "entry", "id": "id"}
UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def people(column: str, unit: str = "us") -> pa.Table:
    """A table in which one column holds durations."""
    whole = [86_400 * UNITS[unit] * day for day in DAYS]
    return pa.table(PEOPLE | {column: pa.array(whole, pa.duration(unit))})


def polars_parquet(table: pa.Table, stem: Path) -> Path:
    pl.from_arrow(table).write_parquet(stem.with_suffix(".parquet"))
    return stem.with_suffix(".parquet")


def database(table: pa.Table, stem: Path) -> Path:
    with duckdb.connect(str(stem.with_suffix(".duckdb"))) as connection:
        connection.register("content", table)
        connection.execute("CREATE TABLE people AS FROM content")
    return stem.with_suffix(".duckdb")


def parquet(table: pa.Table, stem: Path) -> Path:
    pa.parquet.write_table(table, stem.with_suffix(".parquet"))
    return stem.with_suffix(".parquet")


def feather(table: pa.Table, stem: Path) -> Path:
    pa.feather.write_feather(table, stem.with_suffix(".feather"))
    return stem.with_suffix(".feather")


def refused(call, *words: str) -> None:
    with pytest.raises(rs.InputError) as caught:
        call()
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("column", ["time", "event", "entry", "x"])
@pytest.mark.parametrize("write", [parquet, polars_parquet, feather, database])
def test_files(column, write, tmp_path):
    path = write(people(column), tmp_path / "people")
    words = (f"column {column!r} of {path.name} must be numeric", "duration", "5 days", "86400")
    refused(lambda: rs.read_dataset(path, **ROLES), *words)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("write", [parquet, polars_parquet, feather])
def test_every_unit_of_a_file(unit, write, tmp_path):
    table = people("time", unit)
    if write is polars_parquet and unit == "s":  # polars has no such durations
        table = people("time", "ms")
    path = write(table, tmp_path / "people")
    refused(lambda: rs.read_dataset(path, **ROLES), "'time'", "data row 1, id 0, value 5 days, 0")


def test_a_column_of_a_file_that_is_left_out_may_hold_durations(tmp_path):
    path = parquet(people("x"), tmp_path / "people")
    data = rs.read_dataset(path, **ROLES, drop=["x"])
    np.testing.assert_array_equal(data.outcome().time, DAYS)


@pytest.mark.parametrize("column", ["time", "event", "entry", "x"])
@pytest.mark.parametrize("make", tables.FRAMES.values(), ids=tables.FRAMES)
def test_frames(column, make):
    frame = make(people(column))
    words = (f"column {column!r}", "its type is duration", "value 5 days, 0:00:00", "86400")
    refused(lambda: rs.Dataset.from_frame(frame, **ROLES), *words)


def test_text_of_durations(tmp_path):
    known = pd.DataFrame(PEOPLE)
    for column in ("time", "x"):
        since = pd.to_timedelta(known["x"], unit="D") + pd.Timedelta(hours=6)
        frame = known.assign(**{column: since})
        frame.to_csv(tmp_path / "people.csv", index=False)
        refused(
            lambda: rs.read_dataset(tmp_path / "people.csv", **ROLES),
            f"column {column!r} of people.csv",
            "5 days 06:00:00" if column == "time" else "all of its 8 different values are dur",
            "86400",
        )


@pytest.mark.parametrize(
    "values",
    [
        np.array(DAYS, "timedelta64[D]"),
        [datetime.timedelta(days=day) for day in DAYS],
        np.array([np.timedelta64(day, "D") for day in DAYS] + [None], object)[:-1],
        pd.Series(pd.to_timedelta(DAYS, unit="D")),
        pl.Series([datetime.timedelta(days=day) for day in DAYS]),
    ],
    ids=["numpy", "python", "objects", "pandas", "polars"],
)
def test_arrays(values):
    event = PEOPLE["event"]
    refused(lambda: rs.Surv(values, event), "`time` must be numeric", "5 days", "86400")
    refused(lambda: rs.Surv(DAYS, event, entry=values), "`entry` must be numeric", "86400")
    y, x = rs.Surv(DAYS, event), np.asarray(values).reshape(-1, 1)
    refused(lambda: rs.Cox().fit(x, y), "X must be numeric", "86400")
    refused(lambda: rs.Cox().fit(np.ones((8, 1)), y, offset=values), "`offset`", "86400")


def test_scalars():
    assert is_number(np.int64(5))
    assert not is_number(np.timedelta64(5, "D"))


@pytest.mark.parametrize("unit", UNITS)
def test_values_of_long_tables(unit, tmp_path):
    long = pa.table(
        {"id": [1, 2], "covariateId": ["a", "b"], "covariateValue": people("x", unit)["x"][:2]}
    )
    outcomes = pa.table({"id": [1, 2], "time": [5, 7], "event": [1, 1]})
    message = ("column 'covariateValue' of", "must be numeric, but its type is duration", "86400")
    wide = parquet(outcomes, tmp_path / "people")
    roles = {"time": "time", "event": "event", "id": "id"}
    for path in (parquet(long, tmp_path / "long"), feather(long, tmp_path / "long")):
        refused(lambda p=path: rs.read_dataset(wide, **roles, covariates=p), *message)
    refused(lambda: rs.Dataset.from_long(outcomes, long, id="id"), *message[1:])


def test_histories():
    followed = pa.table({"person": [1, 2], "days": [10, 7], "died": [1, 0]})
    roles = {"id": "person", "time": "days", "event": "died"}
    day = people("x")["x"][:2]
    labs = {"person": [1, 2], "time": [0, 0], "value": [1.4, 2.2]}
    for column in ("time", "value"):
        table = pa.table(labs | {column: day})
        history = {"lab": rs.LastValue(table, "value")}
        refused(lambda h=history: rs.merge_histories(followed, h, **roles), repr(column), "86400")
    late = followed.set_column(1, "days", day)
    history = {"lab": rs.LastValue(pa.table(labs), "value")}
    refused(lambda: rs.merge_histories(late, history, **roles), "'days'", "86400")
    refused(lambda: rs.split(late, [3], time="days", event="died"), "'days'", "86400")


# --------------------------------------------------------------------------- times are no booleans


def test_booleans_are_no_times(tmp_path):
    event = np.array(PEOPLE["event"], bool)
    message = ("must hold numbers", "time and event are not exchanged")
    refused(lambda: rs.Surv(event, DAYS), "`time`", "row 0 has True", *message)
    refused(lambda: rs.Surv(list(event), DAYS), "`time`", "row 0 has True", *message)
    refused(lambda: rs.Surv(DAYS, event, entry=event), "`entry`", *message)
    y = np.array(list(zip(event, event, strict=True)), [("event", bool), ("time", bool)])
    refused(lambda: rs.Cox().fit(np.ones((8, 1)), y), "'time'", *message)
    for column in ("time", "entry"):
        table = pa.table(PEOPLE | {column: event})
        words = (f"column {column!r}", "its type is bool", *message)
        refused(lambda t=table: rs.Dataset.from_frame(t, **ROLES), *words)
        path = parquet(table, tmp_path / "people")
        refused(lambda p=path: rs.read_dataset(p, **ROLES), *words)
    labs = pa.table({"person": [1], "time": [True], "value": [1.4]})
    followed = pa.table({"person": [1], "days": [10], "died": [1]})
    history = {"lab": rs.LastValue(labs, "value")}
    roles = {"id": "person", "time": "days", "event": "died"}
    refused(lambda: rs.merge_histories(followed, history, **roles), "'time'", *message)


def test_a_boolean_event_weight_and_covariate_are_numbers():
    flag = [True, False] * 4
    frame = pa.table(PEOPLE | {"event": flag, "x": flag})
    data = rs.Dataset.from_frame(frame, **ROLES)
    np.testing.assert_array_equal(data.outcome().event, [1, 0] * 4)
    np.testing.assert_array_equal(data.design.to_dense(), np.reshape([1, 0] * 4, (-1, 1)))


# -------------------------------------------------------------------------------------- in studies


def check(folder: Path, people: dict[str, object], **data: object) -> None:
    pa.parquet.write_table(pa.table(people), folder / "people.parquet")
    data = small.content()["data"] | data
    rs.study.check_data(rs.study.Study(small.content(data=data), folder))


def test_a_table_of_people_of_a_study(tmp_path):
    people = small.people()
    lengths = pa.array([86_400 * int(day) for day in people["days"]], pa.duration("s"))
    words = ("of people.parquet must be numeric, but its type is duration", "86400")
    refused(lambda: check(tmp_path, people | {"days": lengths}), "column 'days'", *words)
    refused(lambda: check(tmp_path, people | {"x": lengths}), "column 'x'", *words)
    words = ("column 'days' of people.parquet must hold numbers", "its type is bool")
    refused(lambda: check(tmp_path, people | {"days": people["died"] == 1}), *words)


@pytest.mark.parametrize("column", ["stopped", "time", "value"])
def test_columns_of_a_per_protocol_study(column, tmp_path):
    people, labs = protocol_study.simulated(60)
    study = protocol_study.specification(analyses=PER_PROTOCOL)
    tables = {"people": people, "labs": labs}
    (name,) = (name for name, table in tables.items() if column in table)
    lengths = pa.array([86_400] * len(tables[name]["id"]), pa.duration("s"))
    changes = {"duration": lengths} | ({} if column == "value" else {"bool": lengths.is_valid()})
    for kind, values in changes.items():
        for other, table in tables.items():
            own = table | ({column: values} if other == name else {})
            pa.parquet.write_table(pa.table(own), tmp_path / f"{other}.parquet")
        refused(
            lambda: rs.study.check_data(rs.study.Study(study, tmp_path)),
            f"column {column!r} of {name}.parquet must",
            f"its type is {kind}",
        )
