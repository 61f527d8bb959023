"""Which values are missing, which are one label, and which identifiers are exact."""

import datetime
import json
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

import riskset as rs
from riskset._errors import InputError
from riskset.data.checks import Places, as_numbers
from riskset.data.labels import as_codes, as_keys, code_columns
from riskset.data.table import pandas_index

HERE = Places()


def objects(*values: object) -> np.ndarray:
    return np.fromiter(values, dtype=object, count=len(values))


@pytest.mark.parametrize(
    ("values", "labels", "codes"),
    [
        (objects(1, 1.0, 2, 2.0), [1, 2], [0, 0, 1, 1]),
        (objects(1, Decimal("1.00"), np.int8(2), np.float32(2)), [1, 2], [0, 0, 1, 1]),
        (objects(True, 1, 0), [0, 1], [1, 1, 0]),
        (objects(Decimal("0.1"), Decimal("0.10"), 0.1, 3), [0.1, 3.0], [0, 0, 0, 1]),
        (objects(2**53, 2**53 + 1, 1), [1, 2**53, 2**53 + 1], [1, 2, 0]),
        (objects(2**63 + 5, 7), [7, 2**63 + 5], [1, 0]),
        ([2**53 + 1, 2**53, 0.5], [0.5, 2**53, 2**53 + 1], [2, 1, 0]),
        (np.array([3.0, 1.0, 3.0]), [1, 3], [1, 0, 1]),
        (np.array([2.5, 1.0]), [1.0, 2.5], [1, 0]),
        (np.array([3, 1], dtype=">i4"), [1, 3], [1, 0]),
        (np.array([2**63 + 5, 7], dtype=np.uint64), [7, 2**63 + 5], [1, 0]),
        (pd.Series(["b", "a"], dtype="string"), ["a", "b"], [1, 0]),
        (pd.Categorical(["b", "a"], categories=["b", "a"]), ["a", "b"], [1, 0]),
        (pd.array([3, 1], dtype="Int64"), [1, 3], [1, 0]),
        (
            pd.Series(pd.to_datetime(["2020-01-02", "2020-01-01"])),
            [datetime.date(2020, 1, 1), datetime.date(2020, 1, 2)],
            [1, 0],
        ),
    ],
)
def test_equal_values_are_one_label_in_a_type_of_their_own(values, labels, codes):
    found, names = as_codes(values, "group", len(values), HERE)
    assert found.tolist() == codes
    assert names.tolist() == labels
    assert [type(name) for name in names.tolist()] == [type(label) for label in labels]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (objects(1, "1"), "mixes numbers and text (row 0 has 1, row 1 has '1')"),
        ([1, "1"], "mixes numbers and text (row 0 has 1, row 1 has '1')"),
        (objects("a", True), "mixes text and booleans (row 0 has 'a', row 1 has True)"),
        (["a", np.nan], "must not be missing, but 1 of 2 rows is (first: row 1, value nan)"),
        (pd.array(["a", None]), "must not be missing, but 1 of 2 rows is (first: row 1"),
        (pd.array([1, None], dtype="Int64"), "must not be missing, but 1 of 2 rows is (first: row"),
        (objects(1, Decimal("NaN")), "must not be missing, but 1 of 2 rows is (first: row 1"),
        (pd.Series(pd.to_datetime(["2020-01-02", None])), "must not be missing, but 1 of 2 rows"),
        (np.array([2.0**53, 1.0]), "1 of 2 rows is not (first: row 0, value 9007199254740992.0)"),
        (objects(2.0**60, 1), "1 of 2 rows is not (first: row 0, value 1.152921504606847e+18)"),
    ],
)
def test_labels_that_are_missing_mixed_or_inexact(values, words):
    with pytest.raises(InputError) as caught:
        as_codes(values, "group", 2, HERE)
    assert words in str(caught.value)
    assert str(caught.value).startswith("`group` m")


def test_columns_of_labels_come_as_a_list_or_a_frame():
    a, b = [1, 1.0, 2, 2], ["x", "y", "x", "x"]
    expected = [(1, "x"), (1, "y"), (2, "x")]
    frames = (pd.DataFrame({"a": a, "b": b}), pl.DataFrame({"a": a, "b": b}, strict=False))
    for values in ([np.array(a), np.array(b)], (a, b), *frames, pa.table({"a": a, "b": b})):
        codes, names = code_columns(values, "strata", 4, HERE)
        assert codes.tolist() == [0, 1, 2, 2]
        assert names.tolist() == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["b", "a"], ["b", "a"]),
        ([7.0, 3.0], [7, 3]),
        ([Decimal(2**60 + 1), 3], [2**60 + 1, 3]),
        (np.array([2**60 + 1, 3], dtype=np.uint64), [2**60 + 1, 3]),
        (np.array([2**60 + 1, 3], dtype=">u8"), [2**60 + 1, 3]),
    ],
)
def test_identifiers_are_exact(values, expected):
    assert as_keys(values, "id", 2, HERE).tolist() == expected


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (np.array([2**63, 7], dtype=np.uint64), "at most 9223372036854775807, or text"),
        (np.array([2.0**53, 7]), "below 2**53"),
        ([0.5, 1], "whole numbers or text to identify rows, but 1 of 2 rows is not (first: row 0"),
        ([True, False], "type is bool"),
        (["a", 1], "mixes text and numbers"),
        (["a", None], "must not be missing, but 1 of 2 rows is (first: row 1, value None)"),
        ([[1, 2], [3, 4]], "one identifier for each of the 2 rows"),
        ([2**64, 1], "at most 9223372036854775807, or text"),
    ],
)
def test_identifiers_that_are_none(values, words):
    with pytest.raises(InputError) as caught:
        as_keys(values, "id", 2, HERE)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (objects("1", "2"), "must be numeric, but row 0 has '1'"),
        (objects(1, b"2"), "must be numeric, but row 1 has b'2'"),
        (["1", 2], "must be numeric, but row 0 has '1'"),
        (pd.array([True, None], dtype="boolean"), "must not be missing, but 1 of 2 rows is (first"),
        (objects(1, 10**400), "must be finite"),
        (objects(1, 1j), "must be numeric, but row 1 has 1j"),
    ],
)
def test_text_and_gaps_are_no_numbers(values, words):
    with pytest.raises(InputError) as caught:
        as_numbers(values, "time", 2, HERE)
    assert words in str(caught.value)


def test_numbers_of_other_types_are_numbers():
    given = objects(Decimal("1.5"), np.float32(2), True, 3)
    assert_array_equal(as_numbers(given, "time", 4, HERE), [1.5, 2.0, 1.0, 3.0])


# ------------------------------------------------------------------------------ frames and files


def with_null_in_the_dictionary(codes: list[int]) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int8()), pa.array(["a", None, "b"]))


@pytest.mark.parametrize("role", ["covariate", "strata", "cluster", "id", "event", "weight"])
def test_a_null_inside_a_dictionary_is_missing(role):
    column = with_null_in_the_dictionary([0, 1, 2, 0, 1, 2, 0, 2])
    columns = {"time": [5.0, 8, 9, 3, 4, 7, 2, 6], "event": [1, 0, 1, 1, 1, 0, 1, 1]}
    columns["event" if role == "event" else "s"] = column
    roles = {"strata": {"strata": "s"}, "cluster": {"cluster": "s"}, "id": {"id": "s"}}
    given = roles.get(role, {"censored": "a"} if role == "event" else {})
    if role == "weight":
        numbers = pa.array([1.0, None, 2.0])
        columns["s"] = pa.DictionaryArray.from_arrays(column.indices, numbers)
    with pytest.raises(InputError, match=r"must not have missing values, but 2 of 8 rows have one"):
        rs.Dataset.from_frame(pa.table(columns), time="time", event="event", **given)


def test_a_null_in_the_dictionary_that_nobody_has_is_no_gap():
    table = pa.table({"x": with_null_in_the_dictionary([0, 2, 0]), "time": [1, 2, 3]})
    table = table.append_column("event", pa.array([1, 1, 0]))
    assert rs.Dataset.from_frame(table).design.names == ("x=a", "x=b")


@pytest.mark.parametrize("dtype", [">f8", ">f4", ">i4", ">i8", ">u2"])
def test_big_endian_columns_are_read(dtype):
    values = np.array([1, 2, 3, 4])
    frame = pd.DataFrame({"a": values.astype(dtype), "time": values.astype(dtype)})
    data = rs.Dataset.from_frame(frame.assign(event=np.array([1, 1, 0, 1], dtype=dtype)))
    assert_array_equal(data.design.to_dense()[:, 0], values)
    assert_array_equal(data.outcome().time, values)


def test_a_gap_in_a_big_endian_column_is_missing():
    frame = pd.DataFrame({"a": np.array([1, np.nan, 3], dtype=">f8"), "time": [1, 2, 3]})
    with pytest.raises(InputError, match="missing values, but 1 of 3 rows has one"):
        rs.Dataset.from_frame(frame.assign(event=1))


def test_clusters_of_decimals_are_exact():
    ids = pa.array([Decimal(10**18), Decimal(10**18 + 1), Decimal(10**18)], pa.decimal128(20, 0))
    table = pa.table({"time": [1, 2, 3], "event": [1, 1, 0], "site": ids})
    data = rs.Dataset.from_frame(table, cluster="site")
    assert data.outcome().cluster.tolist() == [0, 1, 0]


def concatenated() -> pd.DataFrame:
    """As pandas concatenates: the numbers of the rows repeat."""
    part = pd.DataFrame({"time": [3, 1, 2], "event": [1, 0, 1], "age": [60.0, 55.5, 71.0]})
    return pd.concat([part, part])


@pytest.mark.parametrize("name", ["t.parquet", "t.feather", "frame", "polars"])
def test_the_index_of_pandas_is_no_covariate(tmp_path: Path, name: str):
    frame, path = concatenated(), tmp_path / name
    table = pa.Table.from_pandas(frame)
    assert "__index_level_0__" in table.column_names
    if name == "frame":
        data = rs.Dataset.from_frame(table)
    elif name == "polars":  # which keeps the column, and forgets what it is
        data = rs.Dataset.from_frame(pl.from_arrow(table))
    else:
        frame.to_parquet(path) if name == "t.parquet" else pa.feather.write_feather(table, path)
        data = rs.read_dataset(path)
    assert data.design.names == ("age",)
    assert not data.notes


def test_an_index_with_a_name_has_a_role_if_it_is_given_one(tmp_path: Path):
    path = tmp_path / "t.parquet"
    frame = concatenated().assign(person=["a", "b", "c", "d", "e", "f"]).set_index("person")
    frame.to_parquet(path)
    data = rs.read_dataset(path)
    assert data.design.names == ("age",)
    (note,) = data.notes
    code = note.code
    columns = note.columns
    text = note.message
    assert (code, columns) == ("index", ("person",))
    assert "column 'person' of t.parquet is the index of a pandas frame" in text
    named = rs.read_dataset(path, id="person")
    assert named.row_keys.tolist() == ["a", "b", "c", "d", "e", "f"]
    assert not named.notes


def test_a_model_of_a_frame_predicts_for_its_arrow_table():
    frame = concatenated()
    y = rs.Surv(frame["time"], frame["event"])
    model = rs.Cox(penalty=rs.L2(1.0)).fit(frame[["age"]], y)
    table = pa.Table.from_pandas(frame[["age"]])
    assert_array_equal(model.predict(table), model.predict(frame[["age"]]))
    same = rs.Cox(penalty=rs.L2(1.0)).fit(table, y)
    assert_array_equal(same.coef_, model.coef_)


@pytest.mark.parametrize("about", [b"{", b"[]", b'{"index_columns": [{"kind": "range"}]}', b"{}"])
def test_metadata_that_name_no_index(about: bytes):
    assert pandas_index(["a"], {b"pandas": about}) == frozenset()
    named = json.dumps({"index_columns": ["a"]}).encode()
    assert pandas_index(["a", "b"], {b"pandas": named}) == {"a"}


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        (np.array([[1, "007"], [2, "008"]], dtype=object), "row 0, column 1 has '007'"),
        (np.array([["1.5", "2"]]), "row 0, column 0 has '1.5'"),
        (np.array([[1.0, None], [2.0, 3]], dtype=object), "column 'x1' contains NaN: 1 of 2 rows"),
        (np.array([[1.0, 2], [2.0, pd.NA]], dtype=object), "column 'x1' contains NaN: 1 of 2 row"),
    ],
)
def test_a_matrix_of_objects_holds_numbers_only(matrix, words):
    y = rs.Surv(np.arange(1, len(matrix) + 1), np.ones(len(matrix)))
    for use in (rs.Design.from_dense, lambda x: rs.Cox().fit(x, y)):
        with pytest.raises(InputError) as caught:
            use(matrix)
        assert words in str(caught.value)


def test_decimals_in_a_matrix_are_numbers():
    matrix = np.array([[Decimal("1.5"), 2], [True, np.float32(3)]], dtype=object)
    assert_array_equal(rs.Design.from_dense(matrix).to_dense(), [[1.5, 2.0], [1.0, 3.0]])


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (objects("1", "2"), "column 'a' must be numeric, but row 0 has '1'"),
        (objects(1, None), "column 'a' must not be missing, but 1 of 2 rows is (first: row 1"),
        (objects(1, pd.NA), "column 'a' must not be missing, but 1 of 2 rows is (first: row 1"),
        (np.array(["1", "2"]), "column 'a' must be numeric, but its type is <U1"),
        (np.array([1j, 2]), "column 'a' must be numeric, but its type is complex128"),
        (
            np.array(["2020-01-01", "2020-01-02"], "M8[D]"),
            "column 'a' must be numeric, but its typ",
        ),
        (np.array([2**53 + 1, 2]), "column 'a' must stay below 2**53"),
        (np.array([2**63 + 1, 2], dtype=np.uint64), "column 'a' must stay below 2**53"),
    ],
)
def test_columns_of_a_design_are_numbers(column, words):
    with pytest.raises(InputError) as caught:
        rs.Design.from_columns({"a": column})
    assert words in str(caught.value)


def test_whole_numbers_that_floats_do_not_hold_are_refused():
    large = np.array([[2**53 + 1, 1], [2**53, 0]])
    with pytest.raises(InputError, match=r"column 'x0' must stay below 2\*\*53, .* 2 of 2 rows"):
        rs.Design.from_dense(large)
    with pytest.raises(InputError, match=r"an entry of X must stay below 2\*\*53"):
        rs.Design.from_sparse(sp.csc_array(large))
    with pytest.raises(InputError, match=r"`time` must stay below 2\*\*53, .*1 of 2 rows is not"):
        rs.Surv(np.array([1_600_000_000_000_000_000 * 6, 5], dtype=np.uint64), [1, 0])
    for code in (2**60 + 1, 1e300):
        with pytest.raises(InputError, match=r"`event` must .*1 of 2 rows is not"):
            rs.Surv([1, 2], [1, code])


def test_objects_of_several_types_of_numbers_are_numbers():
    frame = pd.DataFrame({"time": [1, 2, 3], "event": [1, 0, 1]})
    mixed = rs.Dataset.from_frame(frame.assign(x=objects(1, 2.5, Decimal("3.1"))))
    assert_array_equal(mixed.design.to_dense()[:, 0], [1, 2.5, 3.1])
    large = objects(2**63 + 1, 2**63 + 2, 3)
    data = rs.Dataset.from_frame(frame.assign(x=large), cluster="x")
    assert data.outcome().cluster.tolist() == [1, 2, 0]
    with pytest.raises(InputError, match=r"'x' must stay below 2\*\*53"):
        rs.Dataset.from_frame(frame.assign(x=large))
    with pytest.raises(InputError, match="missing values, but 1 of 3 rows has one"):
        rs.Dataset.from_frame(frame.assign(x=objects(1, 2.5, None)))
