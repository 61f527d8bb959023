"""Data sets from frames: long tables equal wide ones, keys are exact, new data are read alike."""

import json
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from data import tables
from riskset._errors import InputError
from riskset.data.dataset import Dataset
from riskset.data.parts import BinaryPart
from riskset.data.schema import Schema

BIG = 2**53
OUTCOMES = pa.table(
    {"rowId": [7, 8, 9, 10], "time": [5.0, 8.0, 2.0, 8.0], "y": [1, 0, 1, 0], "age": [1, 2, 3, 4]}
)


def long(rows: object, keys: object, values: object = None) -> pa.Table:
    columns = {"rowId": rows, "covariateId": keys}
    return pa.table(columns if values is None else columns | {"covariateValue": values})


# -------------------------------------------------------------------------------- from_frame


def test_roles_are_not_covariates() -> None:
    frame = pa.table(
        {
            "pid": ["a", "b", "c", "d"],
            "days": [5, 8, 2, 8],
            "start": [0, 1, 0, 2],
            "died": [True, False, True, False],
            "w": [1.0, 2.0, 0.0, 1.5],
            "site": ["x", "y", "x", "y"],
            "year": [2001, 2002, 2001, 2001],
            "off": [0.1, 0.2, 0.3, 0.4],
            "note": ["", "?", "", ""],
            "x": [1, 2, 3, 4],
        }
    )
    data = Dataset.from_frame(
        frame,
        time="days",
        event="died",
        entry="start",
        weight="w",
        strata=["site", "year"],
        offset="off",
        cluster="pid",
        id="pid",
        drop="note",
    )
    assert data.design.names == ("x",)
    assert list(data.row_keys) == ["a", "b", "c", "d"]
    outcome = data.outcome()
    assert_array_equal(outcome.time, [5, 8, 2, 8])
    assert_array_equal(outcome.event, [1, 0, 1, 0])
    assert_array_equal(outcome.entry, [0, 1, 0, 2])
    assert_array_equal(outcome.weight, [1, 2, 0, 1.5])
    assert_array_equal(outcome.offset, [0.1, 0.2, 0.3, 0.4])
    assert list(outcome.strata) == [("x", 2001), ("y", 2001), ("y", 2002)]
    assert_array_equal(outcome.stratum, [0, 2, 0, 1])
    assert_array_equal(outcome.cluster, [0, 1, 2, 3])


def test_a_cause_can_be_chosen_at_reading_or_later() -> None:
    frame = pa.table({"time": [1, 2, 3], "event": [0, 1, 2], "x": [1, 2, 3]})
    with pytest.raises(InputError, match=r"column 'event' must be 0 .*row 2, value 2.*\n.*`cause`"):
        Dataset.from_frame(frame).outcome()
    assert_array_equal(Dataset.from_frame(frame, cause=2).outcome().is_event, [0, 0, 1])
    assert_array_equal(Dataset.from_frame(frame).outcome(cause=1).is_event, [0, 1, 0])


def test_ohdsi_names_are_recognised_in_any_case_and_only_beside_a_row_id() -> None:
    columns = {
        "row_id": [3, 4, 5],
        "Time": [1, 2, 3],
        "Y": [0, 1, 1],
        "stratum_id": [1, 1, 2],
        "WEIGHTS": [1.0, 2.0, 3.0],
        "x": [0, 1, 0],
    }
    data = Dataset.from_frame(pa.table(columns))
    assert data.design.names == ("x",)
    assert_array_equal(data.outcome().weight, [1, 2, 3])
    assert data.outcome().n_strata == 2
    assert_array_equal(data.row_keys, [3, 4, 5])
    ((code, _, message),) = data.notes
    assert code == "recognised"
    assert "'stratum_id' as strata" in message
    assert "'WEIGHTS' as weight" in message
    other = dict(list(columns.items())[1:])
    assert Dataset.from_frame(pa.table(other), event="Y").design.names == (
        "stratum_id",
        "WEIGHTS",
        "x",
    )
    with pytest.raises(InputError, match=r"which column of the data frame holds the event.*'Y'"):
        Dataset.from_frame(pa.table(other))
    kept = Dataset.from_frame(pa.table(columns), drop=["stratum_id"], weight="x")
    assert kept.outcome().n_strata == 1
    assert kept.design.names == ("WEIGHTS",)


def test_times_are_rounded_to_tie() -> None:
    frame = pa.table({"time": [0.1 + 0.2, 0.3, 5.26], "event": [1, 1, 0], "x": [1, 2, 3]})
    assert Dataset.from_frame(frame).outcome().n_near_ties == 1
    rounded = Dataset.from_frame(frame, time_digits=1)
    assert rounded.outcome().n_near_ties == 0
    assert_array_equal(rounded.outcome().time, [0.3, 0.3, 5.3])
    late = frame.append_column("entry", [[0.0, 0.28, 1.0]])
    with pytest.raises(
        InputError,
        match=r"'entry' \(rounded to 1 decimals\) must be smaller than column 'time' \(rounded",
    ):
        Dataset.from_frame(late, entry="entry", time_digits=1).outcome()
    with pytest.raises(InputError, match="`time_digits` must be a whole number"):
        Dataset.from_frame(frame, time_digits=1.5)  # type: ignore[arg-type]


OUTCOME_COMPLAINTS = {
    "unknown column": ({"time": "tme"}, [r"`time` column 'tme'", "'time'"]),
    "unknown drop": ({"drop": ["agee"]}, ["`drop` column 'agee'", "'age'"]),
    "twice": ({"time": "age", "entry": "age"}, ["'age' is named both by `time` and by `entry`"]),
    "role and drop": ({"strata": "age", "drop": "age"}, ["'age' is named both by `strata`"]),
    "text event": ({"event": "status"}, ["'status'", "0 (censored)", "'dead'", "only you know"]),
    "date": ({"time": "day"}, ["'day' must be numeric", "count the days"]),
    "negative": ({"time": "low"}, ["'low' must not be negative", "row 1, pid 'b'", "-1.0"]),
    "gap": ({"weight": "gap"}, ["'gap' must not have missing", "row 2, pid 'c'"]),
    "id with gap": ({"id": "label"}, ["'label' must not have missing", "identifier"]),
    "stratum with gap": ({"strata": "label"}, ["'label' must not have missing", "label of their"]),
    "fraction as id": ({"id": "half"}, ["'half' must hold whole numbers", "row 0", "0.5"]),
    "text weight": (
        {"weight": "pid"},
        ["'pid' must be numeric, but 3 of 3 rows hold text", "row 0", "'a'"],
    ),
}


@pytest.mark.parametrize(("given", "words"), OUTCOME_COMPLAINTS.values(), ids=OUTCOME_COMPLAINTS)
def test_complaints_about_roles(given: dict[str, str], words: list[str]) -> None:
    frame = pl.DataFrame(
        {
            "pid": ["a", "b", "c"],
            "time": [1, 2, 3],
            "event": [1, 0, 1],
            "age": [4, 5, 6],
            "status": ["alive", "dead", "dead"],
            "day": pl.Series([0, 1, 2]).cast(pl.Date),
            "low": [1.0, -1.0, 2.0],
            "gap": [1.0, 2.0, None],
            "label": ["u", None, "v"],
            "half": [0.5, 1.0, 2.0],
        }
    )
    used = {"time": "time", "event": "event", "id": "pid", "drop": []} | given
    drop = [c for c in frame.columns if c not in ("age", *map(str, given.values()))]
    used["drop"] = [*([used["drop"]] if isinstance(used["drop"], str) else used["drop"])] or [
        c for c in drop if c not in used.values()
    ]
    with pytest.raises(InputError) as caught:
        Dataset.from_frame(frame, **used).outcome()  # type: ignore[arg-type]
    for word in words:
        assert word in str(caught.value)


def test_an_identifier_among_the_covariates_is_noted() -> None:
    frame = pa.table({"time": [1, 2, 3], "event": [0, 1, 1], "site_id": [1, 1, 2], "x": [3, 4, 6]})
    ((code, columns, message),) = Dataset.from_frame(frame).notes
    assert (code, columns) == ("identifier", ("site_id",))
    assert message.startswith("column 'site_id' looks like an identifier")
    assert Dataset.from_frame(frame, strata="site_id").notes == ()


def test_no_rows() -> None:
    with pytest.raises(InputError, match="the data frame has no rows"):
        Dataset.from_frame(OUTCOMES.slice(0, 0))


# -------------------------------------------------------------------------------- long tables


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
        if isinstance(p, BinaryPart)
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
        ((code, _, message),) = data.notes
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


# -------------------------------------------------------------------------------- new data


def fitted() -> Dataset:
    outcomes = OUTCOMES.append_column("sex", [["m", "f", "m", "f"]]).append_column(
        "site", [["a", "b", "a", "b"]]
    )
    covariates = long([7, 8, 9], [BIG, BIG + 1, 5], [1.0, 1.0, 2.0])
    return Dataset.from_long(outcomes, covariates, strata="site", offset="age")


def test_new_data_are_read_by_the_schema() -> None:
    schema = Schema.from_dict(json.loads(json.dumps(fitted().schema.to_dict())))
    assert schema.to_dict() == fitted().schema.to_dict()
    new = pa.table(
        {"site": ["b", "c"], "age": [0.5, 0.25], "sex": ["f", "m"], "rowId": [1, 2], "z": [0, 0]}
    )
    covariates = long([2, 1, 2], [BIG + 1, BIG + 2, BIG], [3.0, 1.0, 1.0])
    data = Dataset.from_schema(schema, new, covariates)
    assert data.design.names == fitted().design.names == ("sex=m", "5", str(BIG), str(BIG + 1))
    assert_array_equal(data.design.to_dense(), [[0, 0, 0, 0], [1, 0, 1, 3]])
    assert_array_equal(data.outcome_columns.offset, [0.5, 0.25])
    assert list(data.outcome_columns.strata[0]) == ["b", "c"]
    assert_array_equal(data.row_keys, [1, 2])
    assert data.n_dropped == {"unseen_covariates": 1, "entries_of_unseen_covariates": 1}
    ((code, _, message),) = data.notes
    assert code == "dropped"
    assert message.endswith("without their covariates: 1 (of 1 covariates; the model knows 2).")
    with pytest.raises(InputError, match="read without their outcomes"):
        data.outcome()


def test_new_data_with_outcomes_for_scoring() -> None:
    data = fitted()
    new = pa.table(
        {
            "rowId": [1, 2],
            "time": [3, 4],
            "y": [1, 0],
            "age": [0.5, 0.25],
            "sex": ["f", "m"],
            "site": ["b", "a"],
        }
    )
    none = long(pa.array([], pa.int64()), pa.array([], pa.int64()), pa.array([], pa.float64()))
    again = Dataset.from_schema(data.schema, new, none, outcome=True)
    assert_array_equal(again.outcome().time, [3, 4])
    assert not again.design.to_dense()[:, 1:].any()


def test_new_data_whose_covariates_are_all_unseen_are_refused() -> None:
    schema = fitted().schema
    new = pa.table({"rowId": [1, 2], "age": [1, 2], "sex": ["f", "m"], "site": ["b", "a"]})
    for keys in ([7, 8], ["7", "8"]):
        with pytest.raises(
            InputError,
            match=r"none of the 2 covariates of the long table \(such as covariateId '?7'?\) "
            r"is one of the 3 of the fit \(such as 5\)",
        ):
            Dataset.from_schema(schema, new, long([1, 2], keys, [1.0, 1.0]))


def test_a_long_table_without_entries_is_noted_in_new_data() -> None:
    schema = fitted().schema
    new = pa.table({"rowId": [1, 2], "age": [1, 2], "sex": ["f", "m"], "site": ["b", "a"]})
    none = long(pa.array([], pa.int64()), pa.array([], pa.int64()), pa.array([], pa.float64()))
    data = Dataset.from_schema(schema, new, none)
    ((code, _, message),) = data.notes
    assert code == "no_entries"
    assert message.endswith("so the model's 3 covariates of such a table are 0 in every row.")
    assert not data.design.to_dense()[:, 1:].any()
    others = Dataset.from_schema(schema, new, long([3, 4], [5, 5], [1.0, 1.0]), unknown_rows="drop")
    assert others.n_dropped == {"unknown_rows": 2}
    assert [code for code, _, _ in others.notes] == ["dropped", "no_entries"]


def test_complaints_about_new_data() -> None:
    data = fitted()
    new = pa.table({"rowId": [1], "age": [0.5], "sex": ["f"], "site": ["b"]})
    with pytest.raises(InputError, match="fitted with 3 covariates of a long table"):
        Dataset.from_schema(data.schema, new)
    with pytest.raises(InputError, match=r"'rowId' was not found"):
        Dataset.from_schema(data.schema, new.drop_columns(["rowId"]), long([1], [5]))
    with pytest.raises(InputError, match=r"'site' was not found"):
        Dataset.from_schema(data.schema, new.drop_columns(["site"]), long([1], [5]))
    with pytest.raises(InputError, match="first: rowId 2"):
        Dataset.from_schema(data.schema, new, long([2], [5]))
    wide = Dataset.from_frame(OUTCOMES)
    with pytest.raises(InputError, match="without a long table"):
        Dataset.from_schema(wide.schema, OUTCOMES, long([7], [5]))
    assert Dataset.from_schema(wide.schema, pa.table({"age": [2]})).row_keys is None


def test_a_dataset_can_be_pickled(tmp_path: Path) -> None:
    again = pickle.loads(pickle.dumps(fitted()))
    assert_array_equal(again.design.to_dense(), fitted().design.to_dense())
    assert again.outcome().n_events == 2
