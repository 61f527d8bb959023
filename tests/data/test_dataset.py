"""Data sets from frames: every column has its role, and what is wrong with one is named."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal

from data.tables import OUTCOMES
from riskset._errors import InputError
from riskset.data.dataset import Dataset


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
    (note,) = data.notes
    code = note.code
    message = note.message
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
    "text event": (
        {"event": "status"},
        [
            "'status'",
            "'alive', 'dead'",
            "it is not known which of them means censored",
            "`censored`",
        ],
    ),
    "date": ({"time": "day"}, ["'day' must be numeric", "count the days"]),
    "negative": ({"time": "low"}, ["'low' must not be negative", "row 1, pid 'b'", "-1.0"]),
    "gap": ({"weight": "gap"}, ["'gap' must not have missing", "row 2, pid 'c'"]),
    "id with gap": ({"id": "label"}, ["'label' must not have missing", "identifier"]),
    "stratum with gap": ({"strata": "label"}, ["'label' must not have missing", "separate label"]),
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
    (note,) = Dataset.from_frame(frame).notes
    code = note.code
    columns = note.columns
    message = note.message
    assert (code, columns) == ("identifier", ("site_id",))
    assert message.startswith("column 'site_id' looks like an identifier")
    assert Dataset.from_frame(frame, strata="site_id").notes == ()


def test_no_rows() -> None:
    with pytest.raises(InputError, match="the data frame has no rows"):
        Dataset.from_frame(OUTCOMES.slice(0, 0))


@pytest.mark.parametrize("code", ["-", "?", ".", "NA", "n/a", ""])
def test_a_code_for_missing_values_among_words_is_a_level_and_noted(code: str) -> None:
    frame = pd.DataFrame({"time": [1, 2, 3], "event": 1, "color": ["red", code, "blue"]})
    data = Dataset.from_frame(frame)
    assert data.design.n_features == 3
    (note,) = data.notes
    what = note.code
    columns = note.columns
    message = note.message
    assert (what, columns) == ("missing_codes", ("color",))
    assert message.startswith(f"column 'color' has the level {code!r}")


def test_many_levels_are_noted() -> None:
    towns = [f"town {k % 51}" for k in range(120)]
    frame = pd.DataFrame({"time": np.arange(120), "event": 1, "town": towns})
    (note,) = Dataset.from_frame(frame).notes
    what = note.code
    columns = note.columns
    message = note.message
    assert (what, columns) == ("many_levels", ("town",))
    assert "51 levels, each of which is a covariate" in message
    frame["town"] = [f"town {k % 50}" for k in range(120)]
    assert Dataset.from_frame(frame).notes == ()
