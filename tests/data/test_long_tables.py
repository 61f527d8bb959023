"""Long tables equal wide ones, keys are exact, and nothing is left out without being counted."""

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from data import tables
from data.tables import BIG, OUTCOMES, long
from riskset._errors import InputError
from riskset.data.column_storage import BinaryColumns
from riskset.data.dataset import Dataset
from riskset.data.readers import read_dataset


@pytest.mark.parametrize("make", tables.FRAMES.values(), ids=tables.FRAMES)
def test_long_and_wide_together_in_every_library(make) -> None:  # type: ignore[no-untyped-def]
    covariates = long([9, 7, 9, 10], [1002, 1001, 1001, 1002], [1.0, 1.0, 1.0, 2.5])
    data = Dataset.from_long(make(OUTCOMES), make(covariates))
    assert data.design.names == ("age", "1001", "1002")
    assert data.design.keys == ("age", 1001, 1002)
    assert_array_equal(data.design.to_dense(), [[1, 1, 0], [2, 0, 0], [3, 1, 1], [4, 0, 2.5]])
    assert data.n_dropped == {}


@pytest.mark.parametrize("make", [pa.table, pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("kind", [int, str])
def test_keys_beyond_2_to_53_are_exact(make, kind) -> None:  # type: ignore[no-untyped-def]
    rows = [kind(BIG), kind(BIG + 1), kind(-BIG - 1)]
    outcomes = make({"rowId": rows, "time": [1, 2, 3], "y": [1, 0, 1]})
    covariates = make({"rowId": [rows[1], rows[0]], "covariateId": [kind(BIG + 1), kind(BIG)]})
    data = Dataset.from_long(outcomes, covariates)
    assert data.design.keys == (kind(BIG), kind(BIG + 1))
    assert data.design.names == (str(BIG), str(BIG + 1))
    assert list(data.row_keys) == rows
    assert_array_equal(data.design.to_dense(), [[1, 0], [0, 1], [0, 0]])


def test_columns_are_sorted_by_key() -> None:
    rows = [7, 7, 7]
    assert Dataset.from_long(OUTCOMES, long(rows, [10, 9, -1])).design.keys[1:] == (-1, 9, 10)
    texts = Dataset.from_long(OUTCOMES, long(rows, ["b", "10", "9"])).design.keys[1:]
    assert texts == ("10", "9", "b")


@pytest.mark.parametrize(
    "keys",
    [
        pa.array([5, 6], pa.uint64()),
        pa.array([5.0, 6.0]),
        pa.array([5.0, 6.0], pa.float32()),
        pa.array([5, 6], pa.decimal128(38, 0)),
        pa.array([5, 6], pa.int8()),
    ],
    ids=lambda k: str(k.type),
)
def test_whole_numbers_of_any_type_are_keys(keys: pa.Array) -> None:
    data = Dataset.from_long(OUTCOMES, long([7, 8], keys))
    assert data.design.keys == ("age", 5, 6)


def test_integers_and_text_meet_as_text() -> None:
    covariates = long(["9", "10"], pa.array(["a", "b"]).dictionary_encode())
    data = Dataset.from_long(OUTCOMES, covariates)
    assert_array_equal(data.design.to_dense()[:, 1:], [[0, 0], [0, 0], [1, 0], [0, 1]])
    texts = OUTCOMES.set_column(0, "rowId", OUTCOMES["rowId"].cast(pa.string()))
    data = Dataset.from_long(texts, long([9, 10], [1, 2]))
    assert_array_equal(data.design.to_dense()[:, 1:], [[0, 0], [0, 0], [1, 0], [0, 1]])


def test_columns_of_ones_store_no_values_and_the_order_of_entries_is_nothing() -> None:
    rng = np.random.default_rng(1)
    row, key = np.divmod(rng.permutation(4 * 50)[:90], 50)
    value = np.where(key % 5 == 0, rng.normal(size=90), 1.0)
    first = Dataset.from_long(OUTCOMES, long(row + 7, key, value)).design
    shuffled = rng.permutation(90)
    again = Dataset.from_long(
        OUTCOMES, long(row[shuffled] + 7, key[shuffled], value[shuffled])
    ).design
    assert again.keys == first.keys
    assert len(first.parts) == len(again.parts)
    for a, b in zip(first.parts, again.parts, strict=True):
        for name in vars(a):
            assert_array_equal(getattr(a, name), getattr(b, name))
    binary = {
        int(first.keys[j])
        for p in first.parts
        if isinstance(p, BinaryColumns)
        for j in p.columns
        if first.keys[j] != "age"
    }
    assert binary == {k for k in key.tolist() if k % 5}


def test_zeros_are_no_entries_and_are_counted() -> None:
    data = Dataset.from_long(OUTCOMES, long([7, 8, 9], [1, 1, 2], [1.0, 0.0, 0.0]))
    assert_array_equal(data.design.to_dense()[:, 1:], [[1, 0], [0, 0], [0, 0], [0, 0]])
    assert data.n_dropped == {"zero_entries": 2}


def test_booleans_and_integers_are_values() -> None:
    for values in ([True, False], [1, 0]):
        data = Dataset.from_long(OUTCOMES, long([7, 8], [1, 1], values))
        assert_array_equal(data.design.to_dense()[:, 1], [1, 0, 0, 0])


REPEATED = long(
    [7, 7, 8, 8, 8, 9, 9, 10], [1, 1, 2, 2, 2, 3, 4, 3], [1.0, 1.0, 0.5, -2.0, 0.25, 1.0, 3.0, 1.0]
)


def test_repeated_entries() -> None:
    with pytest.raises(
        InputError, match=r"3 of 8 entries .* before \(first: rowId 7, covariateId 1\).*\n.*'sum'"
    ):
        Dataset.from_long(OUTCOMES, REPEATED)
    total = Dataset.from_long(OUTCOMES, REPEATED, duplicates="sum")
    assert_array_equal(
        total.design.to_dense()[:, 1:],
        [[2, 0, 0, 0], [0, -1.25, 0, 0], [0, 0, 1, 3], [0, 0, 1, 0]],
    )
    largest = Dataset.from_long(OUTCOMES, REPEATED, duplicates="max")
    assert_array_equal(
        largest.design.to_dense()[:, 1:],
        [[1, 0, 0, 0], [0, 0.5, 0, 0], [0, 0, 1, 3], [0, 0, 1, 0]],
    )
    for data in (total, largest):
        assert data.n_dropped == {"repeated_entries": 3}
        (note,) = data.notes
        code = note.code
        message = note.message
        assert code == "dropped"
        assert message.endswith("covariate: 3.")
    with pytest.raises(InputError, match="`duplicates` must be 'error' or 'sum' or 'max'"):
        Dataset.from_long(OUTCOMES, REPEATED, duplicates="last")  # type: ignore[arg-type]


def test_a_zero_takes_part_in_the_merging_of_repeated_entries() -> None:
    again = long([7, 7, 8, 8], [1, 1, 1, 1], [-1.0, 0.0, 2.0, -2.0])
    assert Dataset.from_long(OUTCOMES, again, duplicates="max").design.to_dense()[
        :, 1
    ].tolist() == [
        0,
        2,
        0,
        0,
    ]
    assert not Dataset.from_long(OUTCOMES, again, duplicates="sum").design.to_dense()[1, 1]


def test_unknown_rows() -> None:
    covariates = long([7, 99, 98, 99], [1, 1, 2, 5])
    with pytest.raises(
        InputError,
        match=r"3 of 4 entries have a row key that the outcomes do not have "
        r"\(number of such keys: 2; first: rowId 98\).*\n.*unknown_rows='drop'",
    ):
        Dataset.from_long(OUTCOMES, covariates)
    data = Dataset.from_long(OUTCOMES, covariates, unknown_rows="drop")
    assert data.design.names == ("age", "1")  # 2 and 5 belong to nobody here
    assert data.n_dropped == {"unknown_rows": 3}
    with pytest.raises(InputError, match=r"none of the 2 entries .*column 'rowId'"):
        Dataset.from_long(OUTCOMES, long([1, 2], [1, 1]), unknown_rows="drop")


LONG_COMPLAINTS = {
    "no entries": (long([], pa.array([], pa.int64())), ["no entries", "leave `covariates` out"]),
    "row missing": (long([7, None], [1, 2]), ["'rowId'", "missing", "1 of 2"]),
    "key missing": (long([7, 8], [1, None]), ["'covariateId'", "missing", "1 of 2"]),
    "value missing": (
        long([7, 8], [1, 2], [1.0, None]),
        ["'covariateValue'", "finite", "1 of 2", "rowId 8, covariateId 2", "None"],
    ),
    "value nan": (long([7, 8], [1, 2], [1.0, np.nan]), ["rowId 8, covariateId 2", "nan"]),
    "value infinite": (long([7, 8], [1, 2], [-np.inf, 1.0]), ["rowId 7, covariateId 1", "-inf"]),
    "value text": (
        long([7, 8], [1, 2], ["1", "2"]),
        ["'covariateValue'", "holds text", "rowId 7, covariateId 1", "'1'"],
    ),
    "key fraction": (long([7, 8], [1.5, 2.0]), ["'covariateId'", "whole", "1 of 2", "1.5"]),
    "key inexact": (long([7, 8], [2.0**53, 1.0]), ["'covariateId'", "floating point", "64-bit"]),
    "key too large": (
        long([7, 8], pa.array([2**63, 1], pa.uint64())),
        ["'covariateId'", "64 bits", "9223372036854775808", "text"],
    ),
    "key date": (
        long([7, 8], pa.array([0, 1], pa.date32())),
        ["'covariateId'", "to be a key", "DATE"],
    ),
}


@pytest.mark.parametrize(("covariates", "words"), LONG_COMPLAINTS.values(), ids=LONG_COMPLAINTS)
def test_complaints_about_long_tables(covariates: pa.Table, words: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        Dataset.from_long(OUTCOMES, covariates)
    for word in (*words, "the long table"):
        assert word in str(caught.value)


def test_which_column_of_the_long_table_is_which() -> None:
    table = pa.table({"pid": [7, 9], "code": [1, 2], "amount": [2.0, 3.0]})
    with pytest.raises(InputError, match=r"identifies the row; it has 'pid', 'code', 'amount'"):
        Dataset.from_long(OUTCOMES, table)
    named = Dataset.from_long(OUTCOMES, table, covariate_columns=("pid", "code", "amount"))
    assert_array_equal(named.design.to_dense()[:, 1:], [[2, 0], [0, 0], [0, 3], [0, 0]])
    ones = Dataset.from_long(OUTCOMES, table, covariate_columns=("pid", "code"))
    assert_array_equal(ones.design.to_dense()[:, 1:], [[1, 0], [0, 0], [0, 1], [0, 0]])
    # The row key may have the name that it has in the outcomes.
    outcomes = OUTCOMES.rename_columns(["pid", "time", "y", "age"])
    known = table.rename_columns(["pid", "covariate", "value"])
    same = Dataset.from_long(outcomes, known, id="pid", event="y")
    assert_array_equal(same.design.to_dense(), named.design.to_dense())
    with pytest.raises(InputError, match=r"holds the value; it has 'pid', 'covariate', 'amount'"):
        Dataset.from_long(
            outcomes, table.rename_columns(["pid", "covariate", "amount"]), id="pid", event="y"
        )
    with pytest.raises(InputError, match=r"'codes' was not found in the long table.\n.*'code'"):
        Dataset.from_long(OUTCOMES, table, covariate_columns=("pid", "codes"))
    with pytest.raises(InputError, match="two or three columns"):
        Dataset.from_long(OUTCOMES, table, covariate_columns=("pid",))


def test_rows_must_be_identified_once() -> None:
    covariates = long([7], [1])
    with pytest.raises(InputError, match=r"which column of the data frame identifies the rows"):
        Dataset.from_long(OUTCOMES.rename_columns(["pid", "time", "event", "age"]), covariates)
    twice = OUTCOMES.set_column(0, "rowId", [[7, 8, 7, 8]])
    with pytest.raises(
        InputError, match=r"2 of 4 rows repeat a key \(first: row 2, as row 0, value 7\)"
    ):
        Dataset.from_long(twice, covariates)
    assert Dataset.from_frame(twice).design.n_rows == 4  # intervals of one person


def test_a_covariate_in_both_tables_is_refused() -> None:
    with pytest.raises(
        InputError, match="'age' is both a column of the data frame and a key of the long"
    ):
        Dataset.from_long(OUTCOMES, long([7], ["age"]))


@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.integers(0, 4), st.sampled_from([1.0, 1.0, -2.5, 3.0])),
        unique_by=lambda entry: entry[:2],
        min_size=1,
    ),
    st.permutations(range(6)),
    st.booleans(),
)
def test_long_is_wide(
    entries: list[tuple[int, int, float]], order: list[int], as_text: bool
) -> None:
    row, column, value = (np.array(v) for v in zip(*entries, strict=True))
    dense = np.zeros((6, 5))
    dense[row, column] = value
    ids = np.array([BIG + 10 * k for k in range(6)])
    keys = np.array([10**17 + 7 * k for k in range(5)])
    convert = (lambda a: [str(x) for x in a.tolist()]) if as_text else (lambda a: a)
    outcomes = pa.table({"rowId": convert(ids[order]), "time": np.arange(6), "y": [1, 0] * 3})
    data = Dataset.from_long(outcomes, long(convert(ids[row]), convert(keys[column]), value))
    present = np.unique(column)
    assert data.design.names == tuple(str(k) for k in keys[present])
    assert_array_equal(data.design.to_dense(), dense[order][:, present])
    wide = {str(keys[j]): dense[order, j] for j in present}
    assert_array_equal(
        Dataset.from_frame(outcomes.append_column("z", [dense[order, 0]])).design.to_dense()[:, 0],
        dense[order, 0],
    )
    frame = pa.table({name: outcomes[name] for name in outcomes.column_names} | wide)
    assert_array_equal(Dataset.from_frame(frame).design.to_dense(), data.design.to_dense())


def test_nan_among_ones_in_parquet(tmp_path: Path) -> None:
    # The extremes that the file keeps of its values leave NaN out.
    rows = pa.table({"rowId": [7, 8], "time": [1.0, 2.0], "event": [1, 0]})
    n = 50
    entries = pa.table(
        {
            "rowId": [7 + k % 2 for k in range(n)],
            "covariateId": list(range(n)),
            "covariateValue": [1.0] * 30 + [float("nan")] + [1.0] * (n - 31),
        }
    )
    pyarrow.parquet.write_table(rows, tmp_path / "rows.parquet")
    pyarrow.parquet.write_table(entries, tmp_path / "long.parquet")
    with pytest.raises(InputError, match="must be finite, but in 1 of 50 .* covariateId 30, .*nan"):
        read_dataset(tmp_path / "rows.parquet", id="rowId", covariates=tmp_path / "long.parquet")
