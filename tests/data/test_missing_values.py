"""Missing values of covariates: refused in one message, or shown by an indicator."""

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import riskset as rs
from riskset._errors import InputError
from riskset.data.frame import FrameEncoder
from riskset.data.schema import Schema

N = 120
rng = np.random.default_rng(5)
FRAME = pd.DataFrame(
    {
        "time": rng.integers(1, 60, N),
        "event": rng.integers(0, 2, N),
        "age": rng.normal(60, 9, N),
        "bmi": rng.normal(25, 3, N),
        "smoker": pd.array(rng.integers(0, 2, N), dtype="boolean"),
        "visits": pd.array(rng.integers(0, 9, N), dtype="Int64"),
        "site": rng.choice(list("abc"), N),
        "stage": pd.Categorical(rng.choice(["early", "late"], N), ["early", "late"]),
    }
)
GAPS = {
    "age": range(3, 12),
    "smoker": range(10, 20),
    "visits": range(0, 30, 3),
    "site": range(40, 50),
    "stage": range(45, 60),
}
GAPPY = FRAME.copy()
for name, rows in GAPS.items():
    GAPPY.loc[list(rows), name] = pd.NA if name in ("smoker", "visits") else None
COVARIATES = GAPPY.columns[2:].tolist()
FRAMES = {"pandas": lambda f: f, "polars": pl.from_pandas, "arrow": pa.Table.from_pandas}


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
def test_all_columns_are_in_one_message(make) -> None:
    with pytest.raises(InputError) as raised:
        rs.Dataset.from_frame(make(GAPPY))
    assert raised.value.message == (
        "5 covariates of the data frame have missing values: 'age' (9 rows, first: row 3), "
        "'smoker' (10 rows, first: row 10), 'visits' (10 rows, first: row 0), "
        "'site' (10 rows, first: row 40), 'stage' (15 rows, first: row 45)."
    )
    assert "set `missing` to 'indicator'" in raised.value.hint
    with pytest.raises(InputError, match=r"'age' must not have missing .* 9 of 120 .*row 3"):
        rs.Dataset.from_frame(make(GAPPY[["time", "event", "age", "bmi"]]))


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_files(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"t.{ending}"
    GAPPY.to_csv(path, index=False) if ending == "csv" else GAPPY.to_parquet(path)
    with pytest.raises(InputError, match=r"5 covariates of t.*: 'age' \(9 rows, first: data row 4"):
        rs.read_dataset(path)
    found = rs.read_dataset(path, missing="indicator")
    assert_array_equal(
        found.design.to_dense()[:, found.design.names.index("site=(missing)")],
        GAPPY["site"].isna(),
    )


def by_hand(frame: pd.DataFrame, fills: pd.DataFrame) -> dict[str, np.ndarray]:
    """The covariates, with what `fills` says for numbers that are missing."""
    out = {}
    for name in COVARIATES:
        column = frame[name]
        if name in ("site", "stage"):
            levels = ["a", "b", "c"] if name == "site" else ["early", "late"]
            out |= {f"{name}={v}": (column == v).fillna(False).to_numpy(float) for v in levels}
            out[f"{name}=(missing)"] = column.isna().to_numpy(float)
            continue
        fill = {"age": fills["age"].mean(), "smoker": 0, "visits": fills["visits"].mean()}
        out[name] = column.astype("Float64").fillna(fill.get(name, 0)).to_numpy(float)
        if name in fill:
            out[f"{name}=(missing)"] = column.isna().to_numpy(float)
    return out


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
def test_indicators_by_hand(make) -> None:
    data = rs.Dataset.from_frame(make(GAPPY), missing="indicator")
    expected = by_hand(GAPPY, GAPPY)
    assert data.design.names == tuple(expected)
    assert_allclose(data.design.to_dense(), np.column_stack([*expected.values()]), rtol=1e-14)
    assert data.design.factors[0][-1] == "site=(missing)"
    notes = {note.columns[0]: note.message for note in data.notes if note.code == "missing_values"}
    assert set(notes) == set(GAPS)
    assert notes["age"] == "column 'age' has no value in 9 rows, for which 'age=(missing)' stands."
    # New data get the mean of the fit, and may have no gap at all.
    schema = Schema.from_dict(data.schema.to_dict())
    for new in (GAPPY.iloc[::-1], FRAME, GAPPY.iloc[:5]):
        design = rs.Dataset.from_schema(schema, make(new.reset_index(drop=True))).design
        expected = by_hand(new, GAPPY)
        assert_allclose(design.to_dense(), np.column_stack([*expected.values()]), rtol=1e-14)


def test_without_a_penalty_the_number_filled_in_has_no_influence() -> None:
    fitted = rs.Cox().fit(rs.Dataset.from_frame(GAPPY, missing="indicator"))
    other = by_hand(GAPPY, GAPPY)
    other["age"] = np.where(GAPPY["age"].isna(), 0.0, other["age"])
    del other["site=a"], other["stage=early"]
    again = rs.Cox().fit(pd.DataFrame(other), rs.Surv(GAPPY["time"], GAPPY["event"]))
    assert again.covariates_ == fitted.covariates_
    kept = [name != "age=(missing)" for name in fitted.covariates_]
    assert_allclose(again.coef_[kept], fitted.coef_[kept], atol=1e-8)
    assert_allclose(again.log_likelihood_, fitted.log_likelihood_, rtol=1e-12)


def test_a_column_without_gaps_at_the_fit_must_have_none_later(tmp_path: Path) -> None:
    model = rs.Cox(rs.L2(1.0)).fit(rs.Dataset.from_frame(GAPPY, missing="indicator"))
    model.save(tmp_path / "fit.riskset")
    again = rs.load(tmp_path / "fit.riskset")
    assert_array_equal(again.predict(GAPPY), model.predict(GAPPY))
    new = GAPPY.assign(bmi=[np.nan, *GAPPY["bmi"][1:]])
    with pytest.raises(InputError, match="'bmi' must not have missing values"):
        again.predict(new)


def test_categories_of_numbers_and_of_several_dictionaries() -> None:
    dose = pd.DataFrame({"dose": pd.Categorical([10, None, 2, 10], [10, 2])})
    encoder, design = FrameEncoder.fit(dose, missing="indicator")
    assert design.names == ("dose=10", "dose=2", "dose=(missing)")
    assert_array_equal(design.to_dense(), [[1, 0, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0]])
    parts = [
        pa.DictionaryArray.from_arrays(
            pa.array([None, None], pa.int8()), pa.array([], pa.string())
        ),
        pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), ["2", None]),
    ]
    new = pa.table({"dose": pa.chunked_array(parts)})
    assert_array_equal(encoder.transform(new).to_dense()[:, 1:], [[0, 1], [0, 1], [1, 0], [0, 1]])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([None, None, None], "column 'x' has no value in any row"),
        ([1.5, None, float("inf")], "column 'x' must be finite"),
    ],
)
def test_what_has_no_mean(values: list[object], message: str) -> None:
    table = pa.table({"x": pa.array(values, pa.float64())})
    with pytest.raises(InputError, match=message):
        FrameEncoder.fit(table, missing="indicator")


def test_an_unknown_rule() -> None:
    with pytest.raises(InputError, match="`missing` must be 'error' or 'indicator'"):
        rs.Dataset.from_frame(FRAME, missing="drop")
