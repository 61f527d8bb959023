"""New data are read as the data of the fit were."""

import json
import pickle

import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal

from data.tables import BIG, OUTCOMES, long
from riskset._errors import InputError
from riskset.data.dataset import Dataset
from riskset.data.schema import Schema


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
    names = ("sex=f", "sex=m", "5", str(BIG), str(BIG + 1))
    assert data.design.names == fitted().design.names == names
    assert data.design.factors == fitted().design.factors == (names[:2],)
    assert_array_equal(data.design.to_dense(), [[1, 0, 0, 0, 0], [0, 1, 0, 1, 3]])
    assert_array_equal(data.outcome_columns.offset, [0.5, 0.25])
    assert list(data.outcome_columns.strata[0]) == ["b", "c"]
    assert_array_equal(data.row_keys, [1, 2])
    assert data.n_dropped == {"unseen_covariates": 1, "entries_of_unseen_covariates": 1}
    (note,) = data.notes
    code = note.code
    message = note.message
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
    assert not again.design.to_dense()[:, 2:].any()


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
    (note,) = data.notes
    code = note.code
    message = note.message
    assert code == "no_entries"
    assert message.endswith("so the model's 3 covariates of such a table are 0 in every row.")
    assert not data.design.to_dense()[:, 2:].any()
    others = Dataset.from_schema(schema, new, long([3, 4], [5, 5], [1.0, 1.0]), unknown_rows="drop")
    assert others.n_dropped == {"unknown_rows": 2}
    assert [note.code for note in others.notes] == ["dropped", "no_entries"]


def test_complaints_about_new_data() -> None:
    data = fitted()
    new = pa.table({"rowId": [1], "age": [0.5], "sex": ["f"], "site": ["b"]})
    with pytest.raises(InputError, match="fitted with 3 covariates of a long table"):
        Dataset.from_schema(data.schema, new)
    with pytest.raises(InputError, match=r"'rowId' was not found"):
        Dataset.from_schema(data.schema, new.drop_columns(["rowId"]), long([1], [5]))
    # The linear predictor needs no stratum; an outcome does.
    without = new.drop_columns(["site"])
    assert Dataset.from_schema(data.schema, without, long([1], [5])).outcome_columns.strata == ()
    by_age = Dataset.from_frame(OUTCOMES, strata="age").schema
    with pytest.raises(InputError, match=r"'age' was not found"):
        Dataset.from_schema(by_age, OUTCOMES.drop_columns(["age"]), outcome=True)
    with pytest.raises(InputError, match="first: rowId 2"):
        Dataset.from_schema(data.schema, new, long([2], [5]))
    wide = Dataset.from_frame(OUTCOMES)
    with pytest.raises(InputError, match="without a long table"):
        Dataset.from_schema(wide.schema, OUTCOMES, long([7], [5]))
    assert Dataset.from_schema(wide.schema, pa.table({"age": [2]})).row_keys is None


def test_a_dataset_can_be_pickled() -> None:
    again = pickle.loads(pickle.dumps(fitted()))
    assert_array_equal(again.design.to_dense(), fitted().design.to_dense())
    assert again.outcome().n_events == 2
