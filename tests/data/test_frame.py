"""Frames of every library give the same covariates, at the fit and after it."""

import datetime
import decimal
import json
import re
from collections.abc import Callable

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal

import riskset as rs
from data import tables
from riskset._errors import InputError
from riskset.data import frame as frame_module
from riskset.data.column_storage import BinaryColumns
from riskset.data.frame import FrameEncoder, as_table

PATIENTS = pa.table(
    {
        "site": ["b", "a", "c", "a"],
        "age": pa.array([61, 70, 55, 48], pa.int8()),
        "smoker": [True, False, True, True],
        "bmi": [22.5, 31.0, 27.25, 40.0],
        "stage": ["II", "I", "II", "I"],
    }
)
NAMES = ("site=a", "site=b", "site=c", "age", "smoker", "bmi", "stage=I", "stage=II")
MATRIX = [
    [0, 1, 0, 61, 1, 22.5, 0, 1],
    [1, 0, 0, 70, 0, 31.0, 1, 0],
    [0, 0, 1, 55, 1, 27.25, 0, 1],
    [1, 0, 0, 48, 1, 40.0, 1, 0],
]


@pytest.mark.parametrize("make", tables.FRAMES.values(), ids=tables.FRAMES)
def test_every_library_gives_the_same_covariates(make: Callable[[pa.Table], object]) -> None:
    patients = make(PATIENTS)
    encoder, design = FrameEncoder.fit(patients)
    names, matrix = NAMES, np.array(MATRIX)
    if make is tables.FRAMES["arrow dictionaries"]:  # in which values stand as they appeared
        order = [
            NAMES.index(f"site={site}") for site in dict.fromkeys(PATIENTS["site"].to_pylist())
        ]
        stages = dict.fromkeys(PATIENTS["stage"].to_pylist())
        order += [*range(3, 6), *(NAMES.index(f"stage={stage}") for stage in stages)]
        names, matrix = tuple(NAMES[j] for j in order), matrix[:, order]
    assert design.names == encoder.feature_names == names
    assert_array_equal(design.to_dense(), matrix)
    assert design.factors == (names[:3], names[-2:])
    assert (encoder == FrameEncoder.fit(PATIENTS)[0]) == (names == NAMES)


@pytest.mark.parametrize("make", tables.FRAMES.values(), ids=tables.FRAMES)
def test_new_data_are_encoded_by_the_levels_of_the_fit(
    make: Callable[[pa.Table], object],
) -> None:
    encoder, _ = FrameEncoder.fit(PATIENTS)
    new = pa.table(
        {
            "unused": ["x", "y"],
            "stage": ["II", "II"],
            "bmi": [20.0, 21.0],
            "age": pa.array([1.5, 2.5]),
            "smoker": pa.array([0, 1]),
            "site": ["c", "c"],
        }
    )
    design = encoder.transform(make(new))
    assert design.names == NAMES
    expected = [[0, 0, 1, 1.5, 0, 20, 0, 1], [0, 0, 1, 2.5, 1, 21, 0, 1]]
    assert_array_equal(design.to_dense(), expected)
    assert design.factors == (NAMES[:3], NAMES[-2:])


def test_categories_and_booleans_store_no_values() -> None:
    _, design = FrameEncoder.fit(PATIENTS)
    (binary,) = [p for p in design.parts if isinstance(p, BinaryColumns)]
    assert_array_equal(np.sort(binary.columns), [0, 1, 2, 4, 6, 7])


@pytest.mark.parametrize(
    "type_", [pa.int8(), pa.uint8(), pa.int16(), pa.uint32(), pa.int64(), pa.float32()], ids=str
)
def test_small_numbers_do_not_wrap(type_: pa.DataType) -> None:
    values = [100, 0, 127, 3, 1]
    _, design = FrameEncoder.fit(pa.table({"x": pa.array(values, type_)}))
    assert_array_equal(design.to_dense()[:, 0], values)
    assert_array_equal(design.dot(np.array([1e6])), np.array(values) * 1e6)


def test_decimals_are_numbers() -> None:
    cents = [decimal.Decimal("1.25"), decimal.Decimal("-2.50"), decimal.Decimal("0")]
    for frame in (pa.table({"x": cents}), pd.DataFrame({"x": cents})):
        assert_array_equal(FrameEncoder.fit(frame)[1].to_dense()[:, 0], [1.25, -2.5, 0])


def test_levels_have_the_declared_order() -> None:
    size = pd.Categorical(["mid", "low", "high"], ["low", "mid", "high", "huge"], ordered=True)
    dose = pd.Categorical([10, 2, 1], [10, 2, 1])
    encoder, design = FrameEncoder.fit(pd.DataFrame({"size": size, "dose": dose}))
    assert design.names == ("size=low", "size=mid", "size=high", "dose=10", "dose=2", "dose=1")
    # The same codes may come back as plain integers, as text, or as floats that are categories.
    for codes in ([2, 10], ["2", "10"], pd.Categorical([2.0, 10.0])):
        new = pd.DataFrame({"size": ["high", "high"], "dose": codes})
        expected = [[0, 0, 1, 0, 1, 0], [0, 0, 1, 1, 0, 0]]
        assert_array_equal(encoder.transform(new).to_dense(), expected)


AGES = ["young", "middle", "old", "unused"]
PEOPLE = ["old", "young", "middle", "old", "young"]
DECLARED = {
    "pandas": lambda: pd.DataFrame({"age": pd.Categorical(PEOPLE, AGES)}),
    "pandas ordered": lambda: pd.DataFrame({"age": pd.Categorical(PEOPLE, AGES, ordered=True)}),
    "polars": lambda: pl.DataFrame({"age": PEOPLE}, schema={"age": pl.Enum(AGES)}),
    "polars lazy": lambda: pl.LazyFrame({"age": PEOPLE}, schema={"age": pl.Enum(AGES)}),
    "arrow": lambda: _arrow_factor(),
    "duckdb": lambda: duckdb.sql(
        "SELECT age::ENUM('young', 'middle', 'old', 'unused') AS age FROM (VALUES ('old'), "
        "('young'), ('middle'), ('old'), ('young')) t(age)"
    ),
}


def _arrow_factor() -> pa.Table:
    """A factor of R, as Arrow has it; its second chunk has a dictionary of its own."""
    values = pa.chunked_array(
        [
            pa.DictionaryArray.from_arrays([2, 0, 1], AGES),
            pa.DictionaryArray.from_arrays([1, 0], ["young", "old"]),
        ]
    )
    return pa.table({"age": values})


@pytest.mark.parametrize("make", DECLARED.values(), ids=DECLARED)
def test_every_library_declares_the_order_of_levels(make: Callable[[], object]) -> None:
    assert FrameEncoder.fit(make())[1].names == ("age=young", "age=middle", "age=old")
    encoder, design = FrameEncoder.fit(make(), reference={"age": "middle"})
    assert design.names == ("age=middle", "age=young", "age=old")
    assert FrameEncoder.from_dict(encoder.to_dict()) == encoder


@pytest.mark.parametrize("lazy", [False, True])
def test_categoricals_of_polars_are_sorted(lazy: bool) -> None:
    frame = pl.DataFrame({"age": PEOPLE}, schema={"age": pl.Categorical})
    names = FrameEncoder.fit(frame.lazy() if lazy else frame)[1].names
    assert names == ("age=middle", "age=old", "age=young")


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ({"agee": "old"}, "column 'agee' was not found.*did you mean 'age'"),
        ({"age": "Old"}, "level 'Old' was not found in column 'age'.*did you mean 'old'"),
        ({"size": 1}, "`reference` gives a level of column 'size', which holds numbers"),
        ({"id": "a"}, "`reference` gives a level of column 'id', which is not a covariate"),
        ("age=old", "`reference` must give a level for each of its columns, but it is 'age=old'"),
    ],
)
def test_wrong_references(reference: object, message: str) -> None:
    frame = pa.table(
        {
            "age": PEOPLE,
            "size": [1.5, 2, 3, 4, 5],
            "id": list("abcde"),
            "time": [1, 2, 3, 4, 5],
            "event": [1, 0, 1, 0, 1],
        }
    )
    with pytest.raises(InputError, match=f"(?s){message}"):
        rs.Dataset.from_frame(frame, id="id", reference=reference)


def test_a_single_level_is_a_constant_and_is_reported() -> None:
    encoder, design = FrameEncoder.fit(pa.table({"x": [1, 2], "country": ["no", "no"]}))
    assert design.names == ("x", "country=no")
    assert_array_equal(design.to_dense()[:, 1], 1)
    assert encoder.single_level == ("country",)


def test_many_levels_and_a_file_read_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    codes = rng.integers(0, 60, 500)
    frame = pa.table(
        {"a": codes % 7, "hospital": [f"h{c:02d}" for c in codes], "b": codes, "c": codes / 8}
    )
    monkeypatch.setattr(frame_module, "CHUNK_CELLS", 1000)  # two columns of 500 rows
    table = as_table(frame)
    asked: list[list[str]] = []

    def fetch(names: object) -> pa.Table:
        asked.append(list(names))  # type: ignore[call-overload]
        return table.fetch(names)  # type: ignore[arg-type]

    words = frame_module.Table(table.columns, 500, fetch, table.texts).words
    in_pieces = frame_module.Table(
        table.columns, 500, fetch, table.texts, words.__class__("f.parquet")
    )
    _, design = FrameEncoder.fit(in_pieces)
    assert asked == [["hospital"], ["a", "hospital"], ["b", "c"]]
    assert design.n_features == 3 + 60
    expected = (codes[:, None] == np.arange(60)).astype(float)
    assert_array_equal(design.to_dense()[:, 1:61], expected)


def test_the_encoder_survives_json() -> None:
    encoder, _ = FrameEncoder.fit(PATIENTS)
    assert FrameEncoder.from_dict(json.loads(json.dumps(encoder.to_dict()))) == encoder


def test_no_columns_is_a_design_without_covariates() -> None:
    _, design = FrameEncoder.fit(PATIENTS, columns=())
    assert (design.n_rows, design.n_features) == (4, 0)


# -------------------------------------------------------------------------------- complaints

SPOILED = {
    "missing integer": ({"x": [1, None, 3]}, ["'x'", "missing", "1 of 3", "row 1"]),
    "missing boolean": ({"x": [True, None, None]}, ["'x'", "missing", "2 of 3", "row 1"]),
    "missing text": ({"x": ["a", "b", None]}, ["'x'", "missing", "1 of 3", "row 2"]),
    "all missing": ({"x": [None, None, None]}, ["'x'", "missing", "3 of 3", "row 0"]),
    "infinite": ({"x": [1.0, 2.0, np.inf]}, ["'x'", "finite", "1 of 3", "row 2", "inf"]),
    "date": (
        {"x": [datetime.date(2020, 1, d) for d in (1, 2, 3)]},
        ["'x'", "date", "2020-01-01", "count the days", "drop"],
    ),
    "time stamp": (
        {"x": [datetime.datetime(2020, 1, d) for d in (1, 2, 3)]},
        ["'x'", "date and time", "count the days"],
    ),
    "duration": (
        {"x": [datetime.timedelta(days=d) for d in (1, 2, 3)]},
        ["'x'", "duration", "numbers of days", "86400", "drop"],
    ),
    "list": ({"x": [[1], [2], [3]]}, ["'x'", "numeric", "list"]),
    "struct": ({"x": [{"a": 1}] * 3}, ["'x'", "numeric", "struct"]),
    "large integer": (
        {"x": [2**53 + 1, 1, 2]},
        ["'x'", "2**53", "1 of 3", "row 0", "9007199254740993", "identifiers", "`drop`"],
    ),
    "two of a name": (
        {"g": ["a", "b", "b"], "g=b": [1, 2, 3]},
        ["'g=b'", "column 'g'", "rename"],
    ),
}


@pytest.mark.parametrize("library", ["arrow", "pandas", "polars"])
@pytest.mark.parametrize(("columns", "words"), SPOILED.values(), ids=SPOILED)
def test_complaints_name_column_row_and_value(
    columns: dict[str, list[object]], words: list[str], library: str
) -> None:
    make = {"arrow": pa.table, "pandas": pd.DataFrame, "polars": pl.DataFrame}[library]
    if library != "arrow":  # the other libraries have types of their own for these
        words = [w for w in words if w not in ("list", "struct", "2020-01-01")]
    with pytest.raises(InputError) as caught:
        FrameEncoder.fit(make(columns))
    for word in words:
        assert word in str(caught.value)


def test_nan_is_missing_in_every_library() -> None:
    values = [1.0, float("nan"), 2.0]
    for make in (pa.table, pd.DataFrame, pl.DataFrame):
        with pytest.raises(InputError, match=r"column 'x' must .*1 of 3 rows.*row 1"):
            FrameEncoder.fit(make({"x": values}))


def test_identifiers_are_not_characteristics() -> None:
    names = [f"person {i}" for i in range(200)]
    with pytest.raises(InputError, match=r"'name' has 200 different values in 200 rows.*\n.*`id`"):
        FrameEncoder.fit(pa.table({"name": names}))
    halves = [f"pair {i // 4}" for i in range(400)]
    assert FrameEncoder.fit(pa.table({"name": halves}))[1].n_features == 100


def test_numbers_written_as_text() -> None:
    text = [str(i % 20) for i in range(100)]
    with pytest.raises(InputError, match=r"'x' is text, but all of its 20 .* are numbers"):
        FrameEncoder.fit(pa.table({"x": text}))
    text[37] = "<5"
    with pytest.raises(InputError, match=r"1 of its 21 .* \(first: row 37, value '<5'\)"):
        FrameEncoder.fit(pa.table({"x": text}))
    assert FrameEncoder.fit(pa.table({"x": pa.array(text).dictionary_encode()}))[1].n_features == 21
    codes = [f"{i % 20:03d}" for i in range(100)]  # leading zeros: codes, not numbers
    assert FrameEncoder.fit(pa.table({"x": codes}))[1].names[0] == "x=000"


ODD = ["N/A", "na", "null", "None", ".", "?", "-", "#N/A", "NA ", "", "nan", "1,000", "<5"]


@pytest.mark.parametrize("library", ["arrow", "pandas", "polars"])
@pytest.mark.parametrize("odd", ODD)
def test_one_odd_value_does_not_make_categories_of_numbers(odd: str, library: str) -> None:
    make = {"arrow": pa.table, "pandas": pd.DataFrame, "polars": pl.DataFrame}[library]
    for numbers in (["1", "2", "3"], ["1.5", "-2", "1e3", "+7"]):
        with pytest.raises(
            InputError,
            match=rf"'x' is text, because 1 of .* is not a number: {re.escape(repr(odd))} "
            r"\(first: row 2, .*\n.*recode.*categorical type.*letter",
        ):
            FrameEncoder.fit(make({"x": [*numbers[:2], odd, *numbers[2:]]}))


@pytest.mark.parametrize("numbers", [["+2", "1"], ["0.5", "1"], ["1,5", "2,5"], [" 1", "2.5 "]])
def test_few_numbers_written_as_text(numbers: list[str]) -> None:
    with pytest.raises(InputError, match="'x' is text, "):
        FrameEncoder.fit(pa.table({"x": numbers}))


@pytest.mark.parametrize(
    "levels",
    [
        ["yes", "no"],
        ["A", "B", "1?"],
        ["01", "2", "10"],
        ["01", "2", "?"],
        ["I", "II", "III"],
        ["1", "2", "3"],
        ["1", "2", "a", "b"],
        ["none", "1"],
        ["q1", "q2", "q3", "q4"],
        ["18-29", "30-44", "45"],
        ["1", "2", "a", "b", "c"],
    ],
    ids="|".join,
)
def test_levels_that_are_no_numbers(levels: list[str]) -> None:
    expected = tuple(f"x={level}" for level in sorted(levels))
    assert FrameEncoder.fit(pa.table({"x": levels}))[1].names == expected


def test_a_categorical_type_says_that_numbers_are_levels() -> None:
    levels = ["1", "2", "3", "N/A"]
    for frame in (
        pa.table({"x": pa.array(levels).dictionary_encode()}),
        pd.DataFrame({"x": pd.Categorical(levels)}),
        pl.DataFrame({"x": pl.Series(levels, dtype=pl.Categorical)}),
    ):
        assert FrameEncoder.fit(frame)[1].names == ("x=1", "x=2", "x=3", "x=N/A")


def test_whole_numbers_that_identify_rows_are_noticed() -> None:
    n = 20
    order = np.random.default_rng(3).permutation(n)
    frame = {
        "id": order % 3,
        "PatientId": order % 3,
        "PatientID": order % 3,
        "site_id": order % 2,
        "row": order + 100,
        "paid": order % 4,
        "gap": np.where(order == 0, n, order),
        "repeated": np.maximum(order, 1),
        "x_id": order / 2,
        "y_id": [f"y{k % 2}" for k in range(n)],
    }
    frame["gap"][0] = 2 * n
    encoder, _ = FrameEncoder.fit(pd.DataFrame(frame))
    assert encoder.identifiers == ("id", "PatientId", "PatientID", "site_id", "row")


def test_mixed_objects_are_named() -> None:
    frame = pd.DataFrame({"x": pd.Series([1, None, 2.5, "N/A"], dtype=object)})
    message = r"'x' mixes types: 3 of 4 rows hold numbers, .*\(first: row 3, value 'N/A'\)"
    with pytest.raises(InputError, match=message):
        FrameEncoder.fit(frame)


@pytest.mark.parametrize(
    ("usual", "odd", "what"),
    [
        (["1", "2", "3"], ["?", "."], "are not numbers: '.', '?'"),
        (["1"], ["."], "is not a number: '.'"),
        (["1", "2", "3"], ["low", "high"], "are not numbers: 'high', 'low'"),
        (["0", "1"], ["O", "l"], "are not numbers: 'O', 'l'"),
        ([f"{k}.5" for k in range(60)], ["1.5.2"], "is not a number: '1.5.2'"),
        (["2026-01-02", "2026-02-01"], ["?"], "is not a date: '?'"),
        (["TRUE", "FALSE"], ["-"], "is not a boolean: '-'"),
        (["TRUE", "FALSE"], ["1"], "is not a boolean: '1'"),
    ],
    ids=str,
)
def test_rare_odd_values_do_not_make_categories(
    usual: list[str], odd: list[str], what: str
) -> None:
    column = (usual * 60)[:60] + odd
    row = rf"\(first: row 60, value {re.escape(repr(odd[0]))}\)"
    with pytest.raises(InputError, match=rf"'x' is text, .* {re.escape(what)} {row}"):
        FrameEncoder.fit(pa.table({"x": column}))


@pytest.mark.parametrize("unit", [" y", "kg", " mmol"])
@pytest.mark.parametrize("every", [2, 3, 40])
def test_numbers_with_units_are_no_categories(unit: str, every: int) -> None:
    """Some or all numbers have a unit: dozens of levels, each of which would be a covariate."""
    ages = [f"{40 + k % 35}{unit * (k % every != 1)}" for k in range(400)]
    with pytest.raises(
        InputError, match=rf"'x' is text, because .* are not numbers: '40{unit}', .*'40{unit}'\)"
    ):
        FrameEncoder.fit(pa.table({"x": ages}))
    swapped = [f"{40 + k % 35}{unit * (k % every == 1)}" for k in range(400)]
    with pytest.raises(InputError, match=rf"'x' is text, because .*: '..{unit}'"):
        FrameEncoder.fit(pa.table({"x": swapped}))


def test_codes_of_numbers_and_letters_are_categories() -> None:
    codes = [f"{k % 6 + 1}{letter}" for k in range(40) for letter in "abcde"]
    assert FrameEncoder.fit(pa.table({"x": codes}))[1].n_features == 30
    doses = [f"{k % 5 * 10 + 10} mg" for k in range(40)]
    assert FrameEncoder.fit(pa.table({"x": doses}))[1].n_features == 5
    ranges = [f"{k} to {k + 4}" for k in range(0, 100, 5)] * 10
    assert FrameEncoder.fit(pa.table({"x": ranges}))[1].n_features == 20


def test_distinct_numbers_of_many_rows_are_noticed() -> None:
    numbers = np.random.default_rng(3).choice(10**6, 120, replace=False)
    frame = {"mrn": numbers, "paid": np.append(numbers[:-1], numbers[0])}
    assert FrameEncoder.fit(pd.DataFrame(frame))[0].identifiers == ("mrn",)
    fewer = {name: values[:99] for name, values in frame.items()}
    assert FrameEncoder.fit(pd.DataFrame(fewer))[0].identifiers == ()


def test_dates_written_as_text_are_dates() -> None:
    with pytest.raises(InputError, match=r"'x' is text, but all .* are dates .*\n.*days"):
        FrameEncoder.fit(pa.table({"x": ["2026-01-02", "2026-02-01"]}))


@pytest.mark.parametrize("third", ["unknown", "maybe"])
def test_three_answers_are_three_answers(third: str) -> None:
    frame = pa.table({"x": ["false", third, "true"] * 20})
    assert FrameEncoder.fit(frame)[1].n_features == 3


def test_text_with_a_level_in_every_row_is_an_identifier() -> None:
    names = [f"P{k}" for k in range(12)]
    with pytest.raises(InputError, match="12 different values in 12 rows"):
        FrameEncoder.fit(pa.table({"x": names}))
    assert FrameEncoder.fit(pa.table({"x": names[:11] + names[:1]}))[1].n_features == 11


def test_names_must_be_unique_text() -> None:
    with pytest.raises(InputError, match="two columns"):
        FrameEncoder.fit(pd.DataFrame([[1, 2]], columns=["a", "a"]))
    with pytest.raises(InputError, match="two columns"):
        FrameEncoder.fit(pa.table([[1], [2]], names=["a", "a"]))
    with pytest.raises(InputError, match="not text: 0"):
        FrameEncoder.fit(pd.DataFrame([[1, 2]]))
    with pytest.raises(InputError, match=r"expected a data frame, but got builtins\.list"):
        FrameEncoder.fit([1, 2])
    with pytest.raises(InputError, match=r"'agee' was not found .*\n.*'age'"):
        FrameEncoder.fit(PATIENTS, columns=["agee"])


def test_complaints_about_new_data() -> None:
    encoder, _ = FrameEncoder.fit(PATIENTS)
    unknown = PATIENTS.set_column(0, "site", [["a", "b", "z", "z"]])
    with pytest.raises(
        InputError, match=r"'site' has a level .* 2 of 4 .*row 2, value 'z'.*\n.*'a', 'b', 'c'"
    ):
        encoder.transform(unknown)
    with pytest.raises(InputError, match=r"'bmi' was not found.*\n"):
        encoder.transform(PATIENTS.drop_columns(["bmi"]))
    with pytest.raises(InputError, match=r"lacks 2 of the 5 columns of the fit: 'age', 'bmi'"):
        encoder.transform(PATIENTS.drop_columns(["bmi", "age"]))
    with pytest.raises(InputError, match=r"'age' must be numeric, but its type is text.*value 61"):
        encoder.transform(PATIENTS.set_column(1, "age", PATIENTS["age"].cast(pa.string())))
    with pytest.raises(InputError, match=r"'site' held categories.*'a', 'b', 'c'.*bool"):
        encoder.transform(PATIENTS.set_column(0, "site", [[True, True, False, False]]))
    with pytest.raises(InputError, match=r"'stage' must not have missing.*1 of 4.*row 3"):
        encoder.transform(PATIENTS.set_column(4, "stage", [["I", "I", "II", None]]))


def test_sparse_columns_of_pandas() -> None:
    frame = pd.get_dummies(pd.Series(["a", "b", "c", "b"]), sparse=True)
    _, design = FrameEncoder.fit(frame)
    assert_array_equal(design.to_dense(), frame.to_numpy())


@pytest.mark.parametrize("kind", ["duration", "time", "timestamp", "list", "struct", "interval"])
def test_types_that_are_no_covariates_are_named(kind: str) -> None:
    values = pa.array([1, 2, 3])
    columns = {
        "duration": values.cast(pa.duration("s")),
        "time": values.cast(pa.time64("us")),
        "timestamp": values.cast(pa.timestamp("us", "UTC")),
        "list": pa.array([[1], [2], [3]]),
        "struct": pa.array([{"a": 1}] * 3),
    }
    frame = (
        pd.DataFrame({"x": pd.cut(np.array([1.0, 2.0, 3.0]), 2)})
        if kind == "interval"
        else pa.table({"x": columns[kind]})
    )
    with pytest.raises(InputError, match=r"column 'x' must be numeric, but its .*\n.*`drop`"):
        FrameEncoder.fit(frame)


@pytest.mark.parametrize(
    "type_", ["Int64", "Float32", "UInt8", "int64[pyarrow]", "float16", "object"], ids=str
)
def test_all_numeric_types_of_pandas(type_: str) -> None:
    frame = pd.DataFrame({"x": pd.Series([1, 0, 3]).astype(type_)})
    assert_array_equal(FrameEncoder.fit(frame)[1].to_dense(), [[1], [0], [3]])
    assert_array_equal(
        FrameEncoder.fit(frame.assign(x=[decimal.Decimal(v) for v in (1, 0, 3)]))[1].to_dense(),
        [[1], [0], [3]],
    )


def test_percentages_are_no_categories_but_a_few_doses_are() -> None:
    shares = [f"{k % 12}.5%" for k in range(60)]
    with pytest.raises(
        InputError, match=r"'x' is text, because 12 of its 12 .*'0.5%'.*\n.*numeric"
    ):
        FrameEncoder.fit(pa.table({"x": shares}))
    doses = ["10%", "20%", "40%"]
    assert FrameEncoder.fit(pa.table({"x": doses}))[1].names == tuple(f"x={d}" for d in doses)
