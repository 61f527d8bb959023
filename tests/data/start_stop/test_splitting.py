"""Follow-up that is split at given times: against R's survSplit, and against the unsplit rows."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import reference
import riskset as rs
from riskset.data.start_stop.episodes import Cuts, cut_rows, search_groups
from storages import each_storage

GOLDEN = reference.read_json(reference.GOLDEN / "start_stop/start_stop.json")
SMALL = GOLDEN["split"]["input"]
CUTS = GOLDEN["split"]["cut"]
FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table}
each_library = pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)


def columns_of(frame):
    if isinstance(frame, pa.Table):
        return frame.to_pydict()
    return (
        frame.to_dict("list") if isinstance(frame, pd.DataFrame) else frame.to_dict(as_series=False)
    )


def sample(n=300, seed=4):
    rng = np.random.default_rng(seed)
    time = rng.integers(1, 30, n).astype(float)
    entry = np.floor(time * rng.uniform(0, 1, n) * rng.integers(0, 2, n))
    event = rng.choice([0, 1, 2], n, p=[0.4, 0.4, 0.2])
    x = np.column_stack([rng.normal(size=n), rng.integers(0, 2, n), rng.poisson(0.3, n)])
    return rs.Surv(time, event, entry=entry), x.astype(float)


def split_by_hand(entry, time, event, cuts):
    """One row at a time, one cut at a time."""
    out = []
    for i, (start, end, code) in enumerate(zip(entry, time, event, strict=True)):
        own = sorted(set(cuts if np.ndim(cuts) < 2 else cuts[i]))
        episode = 1 + sum(cut <= start for cut in own)
        for cut in [cut for cut in own if start < cut < end]:
            out.append((i, start, cut, 0, episode))
            start, episode = cut, episode + 1
        out.append((i, start, end, code, episode))
    return [np.array(column) for column in zip(*out, strict=True)]


# ------------------------------------------------------------------------------ against R


@each_library
def test_rows_are_those_of_survsplit(make) -> None:
    expected = GOLDEN["split"]
    frame = make({name: np.array(values) for name, values in SMALL.items()})
    found = rs.split(frame, CUTS, entry="entry")
    assert type(found) is type(frame)
    rows = columns_of(found)
    assert list(rows) == ["entry", "time", "event", "row", "episode"]
    for name in ("entry", "time", "episode", "row"):
        assert_array_equal(rows[name], expected[name])
    # R was asked for the event of code 1; other causes keep their codes here
    assert_array_equal(np.array(rows["event"]) == 1, np.array(expected["event"]) == 1)
    assert rows["event"][-1] == 2


def test_effects_by_episode_are_those_of_r() -> None:
    expected = GOLDEN["veteran_episodes"]
    table = pd.DataFrame(reference.read_table(reference.GOLDEN / "veteran.csv"))
    rows = rs.split(table, [90, 180])
    assert len(rows) == expected["n"]
    assert (rows["entry"].sum(), rows["time"].sum()) == (
        expected["tstart_sum"],
        expected["time_sum"],
    )
    for k in (1, 2, 3):
        rows[f"karno_{k}"] = rows["karno"] * (rows["episode"] == k)
    y = rs.Surv(rows["time"], rows["event"], entry=rows["entry"])
    model = rs.Cox(ties="efron").fit(rows[["trt", "prior", "karno_1", "karno_2", "karno_3"]], y)
    assert_allclose(model.coef_, list(expected["fit"]["coef"].values()), rtol=1e-7, atol=1e-9)
    assert_allclose(model.standard_error_, expected["fit"]["se"], rtol=1e-7)
    assert model.log_likelihood_ == pytest.approx(expected["fit"]["loglik"], rel=1e-10)


# ----------------------------------------------------------------------- against a plain loop


@pytest.mark.parametrize("with_entry", [True, False])
def test_common_cuts_agree_with_a_loop(with_entry) -> None:
    y, _ = sample()
    if not with_entry:
        y = rs.Surv(y["time"], y["event"])
    entry = y["entry"] if with_entry else np.zeros(len(y))
    cuts = [12, 3.5, 7, 7, 100, 0]
    found = rs.split(y, cuts)
    row, start, end, code, episode = split_by_hand(entry, y["time"], y["event"], cuts)
    for name, values in zip(
        ("row", "entry", "time", "event", "episode"), (row, start, end, code, episode), strict=True
    ):
        assert_array_equal(found[name], values)


def test_cuts_of_each_row_agree_with_a_loop() -> None:
    y, _ = sample(n=120)
    rng = np.random.default_rng(1)
    cuts = rng.integers(0, 30, (120, 4)).astype(float)
    row, start, end, code, episode = split_by_hand(y["entry"], y["time"], y["event"], cuts)
    found = rs.split(y, cuts)
    for name, values in zip(
        ("row", "entry", "time", "event", "episode"), (row, start, end, code, episode), strict=True
    ):
        assert_array_equal(found[name], values)


@each_library
def test_columns_and_common_cuts_together(make) -> None:
    frame = make({"time": [10.0, 10.0, 3.0], "event": [1, 0, 1], "switch": [4.0, None, 5.0]})
    rows = columns_of(rs.split(frame, ["switch", 6], id="person"))
    assert rows["person"] == [0, 0, 0, 1, 1, 2]
    assert rows["time"] == [4.0, 6.0, 10.0, 6.0, 10.0, 3.0]
    assert rows["event"] == [0, 0, 1, 0, 0, 1]
    assert rows["episode"] == [1, 2, 3, 1, 2, 1]


def test_search_in_groups_agrees_with_searchsorted() -> None:
    rng = np.random.default_rng(3)
    sizes = np.array([0, 5, 1, 0, 33, 2])
    ptr = np.concatenate([[0], np.cumsum(sizes)])
    values = np.concatenate([np.sort(rng.integers(0, 9, n)) for n in sizes]).astype(float)
    group, x = rng.integers(0, 6, 500), rng.integers(-1, 10, 500).astype(float)
    for after, side in ((True, "right"), (False, "left")):
        found = search_groups(values, ptr, group, x, after_equal=after)
        wanted = [
            ptr[g] + np.searchsorted(values[ptr[g] : ptr[g + 1]], v, side=side)
            for g, v in zip(group, x, strict=True)
        ]
        assert_array_equal(found, wanted)


def test_no_cuts_and_no_groups() -> None:
    pieces = cut_rows(np.zeros(2), np.ones(2), Cuts.common(np.zeros(0)), np.zeros(2, np.int64))
    assert pieces.episode.tolist() == [1, 1]
    assert pieces.is_last.all()


# ------------------------------------------------------- the same answers as the unsplit rows


@each_storage
@pytest.mark.parametrize("ties", ["breslow", "efron"])
def test_a_split_changes_no_estimate(store, ties) -> None:
    y, x = sample()
    design = store(x)
    whole = rs.Cox(ties=ties, cause=1).fit(design, y)
    pieces = rs.split(y, [4, 9.5, 15])
    assert len(pieces) > len(y)
    repeated = design.repeat_rows(np.bincount(pieces["row"]))
    assert_array_equal(repeated.to_dense(), design.to_dense()[pieces["row"]])
    split = rs.Cox(ties=ties, cause=1).fit(repeated, pieces)
    assert_allclose(split.coef_, whole.coef_, rtol=1e-8, atol=1e-10)
    assert_allclose(split.standard_error_, whole.standard_error_, rtol=1e-8)
    assert split.log_likelihood_ == pytest.approx(whole.log_likelihood_, rel=1e-12)
    residual = split.residuals(repeated, pieces, kind="martingale")
    summed = np.bincount(pieces["row"], residual)
    assert_allclose(summed, whole.residuals(design, y, kind="martingale"), atol=1e-9)


def frame_of(y, x):
    rng = np.random.default_rng(9)
    n = len(y)
    frame = pd.DataFrame(x, columns=["a", "b", "c"])
    frame["sex"] = pd.Categorical(rng.choice(["m", "f"], n), ["m", "f"])
    frame["time"], frame["event"], frame["entry"] = y["time"], y["event"], y["entry"]
    frame["w"], frame["site"], frame["o"] = (
        rng.uniform(0.2, 2, n),
        rng.integers(0, 4, n),
        rng.normal(size=n) / 5,
    )
    frame["person"] = [f"p{i}" for i in range(n)]
    return frame


def test_a_split_data_set_has_the_same_robust_variance() -> None:
    """Weights that are not counts make each person a cluster."""
    frame = frame_of(*sample())
    data = rs.Dataset.from_frame(
        frame, weight="w", strata="site", offset="o", id="person", cause=1, entry="entry"
    )
    pieces = rs.split(data, [4, 9.5, 15])
    assert pieces.n_rows > data.n_rows
    assert set(pieces.row_keys) == set(frame["person"])
    whole, split = rs.Cox().fit(data), rs.Cox().fit(pieces)
    assert split.covariates_ == whole.covariates_
    assert_allclose(split.coef_, whole.coef_, rtol=1e-8, atol=1e-10)
    assert_allclose(split.robust_standard_error_, whole.robust_standard_error_, rtol=1e-8)
    assert_allclose(split.confidence_interval().lower, whole.confidence_interval().lower, rtol=1e-8)


def test_a_split_frame_reads_as_the_whole_one() -> None:
    frame = frame_of(*sample())
    roles = {"weight": "w", "strata": "site", "offset": "o", "cause": 1, "entry": "entry"}
    rows = rs.split(frame, [4, 9.5, 15], entry="entry")
    assert rows["sex"].dtype == frame["sex"].dtype
    whole = rs.Cox().fit(rs.Dataset.from_frame(frame, drop="person", **roles))
    split = rs.Cox().fit(
        rs.Dataset.from_frame(rows, cluster="row", drop=["person", "episode"], **roles)
    )
    assert_allclose(split.coef_, whole.coef_, rtol=1e-8, atol=1e-10)
    assert_allclose(split.robust_standard_error_, whole.robust_standard_error_, rtol=1e-8)


# ---------------------------------------------------------------------------- kinds of columns


@each_library
def test_events_as_labels_and_as_booleans(make) -> None:
    frame = make({"time": [5.0, 9.0], "event": ["death", "none"], "x": ["u", None]})
    rows = columns_of(rs.split(frame, [3], censored="none", id=None, episode=None))
    assert rows["event"] == ["none", "death", "none", "none"]
    assert list(rows) == ["time", "event", "x", "entry"]
    assert pd.isna(rows["x"]).tolist() == [False, False, True, True]
    frame = make({"time": [5, 9], "event": [True, True]})
    rows = columns_of(rs.split(frame, [3]))
    assert rows["event"] == [False, True, False, True]
    assert rows["time"] == [3.0, 5.0, 3.0, 9.0]


def test_categories_of_events_stay() -> None:
    event = pd.Categorical(["death", "none", "relapse"], ["none", "death", "relapse"])
    frame = pd.DataFrame({"time": [5.0, 9.0, 4.0], "event": event})
    rows = rs.split(frame, [3], censored="none")
    assert rows["event"].dtype == frame["event"].dtype
    assert rows["event"].tolist() == ["none", "death", "none", "none", "none", "relapse"]


def test_labels_of_rows_are_repeated_and_numbers_are_not() -> None:
    frame = pd.DataFrame({"time": [5.0, 9.0], "event": [1, 0]})
    assert rs.split(frame, [3]).index.tolist() == [0, 1, 2, 3]
    assert rs.split(frame.set_index(pd.Index(["p", "q"])), [3]).index.tolist() == list("ppqq")


def test_causes_of_surv_and_fields_of_scikit_survival() -> None:
    y = rs.Surv([5.0, 8.0], ["relapse", "none"], censored="none")
    pieces = rs.split(y, [3])
    assert pieces["cause"].tolist() == ["", "relapse", "", ""]
    assert rs.Surv(pieces["time"], pieces["cause"], censored="")["event"].tolist() == [0, 1, 0, 0]
    own = np.array([(True, 5.0), (False, 8.0)], dtype=[("died", "?"), ("days", "f8")])
    pieces = rs.split(own, [3], id="person", episode=None)
    assert pieces.dtype.names == ("died", "days", "entry", "person")
    assert pieces["died"].tolist() == [False, True, False, False]


def test_lazy_frames_become_arrow() -> None:
    lazy = pl.LazyFrame({"time": [5.0, 9.0], "event": [1, 0]})
    assert rs.split(lazy, [3]).column("time").to_pylist() == [3.0, 5.0, 3.0, 9.0]


# --------------------------------------------------------------------------------- refusals

GOOD = {"time": [5.0, 9.0], "event": [1, 0]}


@pytest.mark.parametrize(
    ("columns", "keywords", "words"),
    [
        (GOOD, {"cuts": [np.nan]}, "`cuts` must be finite"),
        (GOOD, {"cuts": ["2020"]}, "'2020' was not found"),
        (GOOD, {"cuts": [[3.0], [4.0], [5.0]]}, "3 rows, but the data have 2"),
        (GOOD, {"cuts": [3], "id": "time"}, "column 'time' would have the name"),
        (GOOD, {"cuts": [3], "id": "episode"}, "name the same column"),
        (GOOD, {"cuts": [3], "start": 5.0}, "after the start of follow-up, 5, but 1 of 2 rows"),
        (GOOD, {"cuts": [3], "start": np.inf}, "`start` must be a finite number"),
        (GOOD, {"cuts": [3], "time": "tme"}, "'tme' was not found"),
        ({**GOOD, "entry": [0, 0]}, {"cuts": [3]}, "'entry' exists, but `entry` does not name it"),
        ({**GOOD, "entry": [0, 9]}, {"cuts": [3], "entry": "entry"}, "must be smaller than"),
        ({"time": [5.0, None], "event": [1, 0]}, {"cuts": [3]}, "missing|finite"),
        ({**GOOD, "d": pd.to_datetime(["2020", "2021"])}, {"cuts": "d"}, "must hold times"),
        ({"time": [5.0, 9.0], "event": ["a", "b"]}, {"cuts": [3]}, "which of them means"),
    ],
)
def test_refusals_name_the_place(columns, keywords, words) -> None:
    with pytest.raises(rs.InputError, match=words):
        rs.split(pd.DataFrame(columns), keywords.pop("cuts"), **keywords)


def test_refusals_for_arrays_and_data_sets() -> None:
    y = rs.Surv([5.0, 9.0], [1, 0])
    with pytest.raises(rs.InputError, match="`time` is for data frames"):
        rs.split(y, [3], time="time")
    with pytest.raises(rs.InputError, match="only a data frame has columns"):
        rs.split(y, ["switch"])
    with pytest.raises(rs.InputError, match="column 'time' would have the name"):
        rs.split(y, [3], id="time")
    with pytest.raises(rs.InputError, match="name the same column"):
        rs.split(y, [3], id="a", episode="a")
    with pytest.raises(rs.InputError, match="expected a data frame"):
        rs.split([1, 2], [3])
    with pytest.raises(rs.InputError, match="after the start of follow-up"):
        rs.split(rs.Surv([0.0, 9.0], [1, 0]), [3])


def test_a_start_before_zero_keeps_events_at_zero() -> None:
    y, x = rs.Surv([0.0, 9.0, 4.0, 6.0], [1, 1, 1, 0]), np.array([[1.0], [0.0], [2.0], [1.5]])
    pieces = rs.split(y, [3], start=-1)
    whole, split = rs.Cox().fit(x, y), rs.Cox().fit(x[pieces["row"]], pieces)
    assert_allclose(split.coef_, whole.coef_, rtol=1e-8)


def test_a_missing_cut_is_no_missing_row() -> None:
    with pytest.raises(rs.InputError, match="`cuts` must not be missing") as caught:
        rs.split(pa.table({"time": [5.0], "event": [1]}), [3, None])
    assert caught.value.hint == "leave missing times out."
