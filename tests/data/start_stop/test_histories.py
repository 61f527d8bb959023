"""Rows with start and stop from histories: against R's tmerge, and against a loop over records."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import reference
import riskset as rs
from riskset.data.start_stop import history_columns
from riskset.data.start_stop.history_columns import running_totals

FOLDER = reference.GOLDEN / "start_stop"
GOLDEN = reference.read_json(FOLDER / "start_stop.json")
FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table}
each_library = pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
R_NAMES = {"unknown_id": "missid"}
PLACES = ("early", "late", "gap", "within", "boundary", "leading", "trailing", "tied", "unknown_id")


def lists(frame):
    if isinstance(frame, pa.Table):
        return frame.to_pydict()
    return frame.to_dict("list" if isinstance(frame, pd.DataFrame) else False)


def columns_of(frame):
    """Columns as arrays; a missing value is NaN."""
    table = frame if isinstance(frame, pa.Table) else pa.table(frame)
    made = {}
    for name in table.column_names:
        made[name] = np.array([np.nan if v is None else v for v in table.column(name).to_pylist()])
    return made


def numbers(values):
    return np.array([np.nan if value is None else value for value in values], dtype=float)


def same_rows(found, expected, names):
    rows = columns_of(found)
    for ours, theirs in names.items():
        assert_array_equal(rows[ours].astype(float), numbers(expected[theirs]), err_msg=ours)


def counts_of(found, history):
    lines = columns_of(found.counts)
    (k,) = np.flatnonzero(lines["history"] == history)
    return {R_NAMES.get(name, name): int(lines[name][k]) for name in PLACES}


BASE = {"id": "id", "time": "fu", "entry": "t0", "event": "st"}


# ------------------------------------------------------------------------------- against R


@each_library
def test_every_operation_is_that_of_tmerge(make) -> None:
    golden = GOLDEN["operations"]
    base, long = make(golden["base"]), make(golden["long"])
    found = rs.merge_histories(
        base,
        {
            "value": rs.LastValue(long, "v", time="t"),
            "total": rs.RunningTotal(long, "v", time="t"),
            "n": rs.RunningTotal(long, time="t"),
            "ev": rs.EventTimes(long, time="t"),
            "code": rs.EventTimes(long, "v", time="t"),
            "nth": rs.EventTimes(long, time="t", numbered=True),
        },
        **BASE,
    )
    assert type(found.rows) is type(base)
    names = {"id": "id", "t0": "tstart", "fu": "tstop", "st": "died", "value": "value"}
    names |= {"n": "n", "ev": "ev", "code": "code", "nth": "nth"}
    same_rows(found.rows, golden["rows"], names)
    total = numbers(golden["rows"]["total"])  # NA before the first, where a total is 0 here
    assert_array_equal(columns_of(found.rows)["total"], np.nan_to_num(total))
    for history in ("value", "total", "n", "ev", "code", "nth"):
        assert counts_of(found, history) == golden["count"]


def test_records_of_one_time_are_those_of_tmerge() -> None:
    golden = GOLDEN["ties"]
    base, long = pa.table(GOLDEN["operations"]["base"]), pa.table(golden["long"])
    found = rs.merge_histories(
        base,
        {
            "value": rs.LastValue(long, "v", time="t", same_time="last"),
            "total": rs.RunningTotal(long, "v", time="t"),
            "nth": rs.EventTimes(long, time="t", numbered=True),
        },
        **BASE,
    )
    names = {"id": "id", "t0": "tstart", "fu": "tstop", "st": "died", "value": "value"}
    same_rows(found.rows, golden["rows"], names | {"nth": "nth"})
    total = numbers(golden["rows"]["total"])
    assert_array_equal(columns_of(found.rows)["total"], np.nan_to_num(total))
    assert counts_of(found, "value")["tied"] == golden["tied"]


@each_library
def test_gaps_are_those_of_tmerge(make) -> None:
    golden = GOLDEN["gaps"]
    base, long = make(golden["base"]), make(golden["long"])
    found = rs.merge_histories(
        base,
        {
            "value": rs.LastValue(long, "v", time="t"),
            "ev": rs.EventTimes(long, time="t"),
            "n": rs.RunningTotal(long, time="t"),
        },
        id="id",
        time="b",
        entry="a",
    )
    names = {"id": "id", "a": "tstart", "b": "tstop", "value": "value", "ev": "ev", "n": "n"}
    same_rows(found.rows, golden["rows"], names)
    assert counts_of(found, "value") == golden["count"]


def table_of(name):
    return pd.DataFrame(reference.read_table(FOLDER / f"{name}.csv"))


def test_pbcseq_of_the_vignette() -> None:
    golden = GOLDEN["pbcseq"]
    base, labs = table_of("pbc"), table_of("pbcseq")
    histories = {
        name: rs.LastValue(labs, column, time="day", missing="skip")
        for name, column in (
            ("ascites", "ascites"),
            ("bili", "bili"),
            ("albumin", "albumin"),
            ("protime", "protime"),
            ("alk", "alk.phos"),
        )
    }
    found = rs.merge_histories(base, histories, id="id", time="time", event="status")
    rows = found.rows
    assert len(rows) == golden["n"]
    head = {"id": "id", "entry": "tstart", "time": "tstop", "status": "death"}
    same_rows(rows.head(20), golden["head"], head | {"bili": "bili", "albumin": "albumin"})
    assert counts_of(found, "bili") == golden["count"]
    sums = golden["sums"]
    assert rows["entry"].sum() == sums["tstart"]
    assert rows["time"].sum() == sums["tstop"]
    for name in ("bili", "albumin", "protime", "alk", "ascites"):
        assert rows[name].sum() == pytest.approx(sums[name], rel=1e-12)
    assert rows["alk"].isna().sum() == sums["alk_missing"]
    y = rs.Surv(rows["time"], rows["status"], entry=rows["entry"])
    model = rs.Cox(ties="efron", cause=2).fit(np.log(rows[["bili", "protime"]]), y)
    assert_allclose(model.coef_, list(golden["fit"]["coef"].values()), rtol=1e-7)
    assert_allclose(model.standard_error_, golden["fit"]["se"], rtol=1e-7)
    assert model.log_likelihood_ == pytest.approx(golden["fit"]["loglik"], rel=1e-10)


def test_cgd_of_the_vignette() -> None:
    golden = GOLDEN["cgd"]
    base = table_of("cgd0")
    names = [f"etime{k}" for k in range(1, 8)]
    infections = base.melt("id", names, value_name="time").dropna(subset="time")
    histories = {
        "infect": rs.EventTimes(infections),
        "before": rs.RunningTotal(infections),
    }
    found = rs.merge_histories(base, histories, id="id", time="futime")
    rows = found.rows
    rows["enum"] = rows.groupby("id").cumcount() + 1
    names = {"id": "id", "entry": "tstart", "futime": "tstop", "infect": "infect", "enum": "enum"}
    same_rows(rows[list(names)], golden["rows"], names)
    assert (rows["before"] == rows["enum"] - 1).all()
    y = rs.Surv(rows["futime"], rows["infect"], entry=rows["entry"])
    X = rows[["treat", "steroids", "age", "enum"]]
    model = rs.Cox(ties="efron").fit(X, y, cluster=rows["id"])
    assert_allclose(model.coef_, list(golden["fit"]["coef"].values()), rtol=1e-7, atol=1e-9)
    assert_allclose(model.robust_standard_error_, golden["fit"]["robust_se"], rtol=1e-7)


@each_library
def test_heart_transplants(make) -> None:
    """A transplant is a period without an end, or a count of one."""
    golden = GOLDEN["jasa"]
    table = reference.read_table(FOLDER / "jasa.csv")
    base = make({name: table[name] for name in table if name != "txtime"})
    done = ~np.isnan(table["txtime"])
    transplants = make({"subject": table["subject"][done], "start": table["txtime"][done]})
    periods = make(
        {
            "subject": table["subject"][done],
            "start": table["txtime"][done],
            "end": np.full(done.sum(), 1e6),
        }
    )
    found = rs.merge_histories(
        base,
        {
            "trt": rs.ExposurePeriods(periods),
            "also": rs.RunningTotal(transplants, time="start"),
        },
        id="subject",
        time="futime",
        event="fustat",
    )
    rows = columns_of(found.rows)
    assert len(rows["trt"]) == golden["n"]
    assert rows["trt"].sum() == golden["trt"]
    assert_array_equal(rows["trt"], rows["also"])
    y = rs.Surv(rows["futime"], rows["fustat"], entry=rows["entry"])
    names = ["year", "age", "surgery", "trt"]
    model = rs.Cox().fit(np.column_stack([rows[name] for name in names]), y)
    assert_allclose(model.coef_, list(golden["fit"]["coef"].values()), rtol=1e-7)
    assert_allclose(model.standard_error_, golden["fit"]["se"], rtol=1e-7)


# ------------------------------------------------------------------- against a plain loop


def random_tables(seed=5, n=60, m=400):
    rng = np.random.default_rng(seed)
    entry = rng.integers(0, 5, n).astype(float)
    base = pd.DataFrame({"id": rng.permutation(n), "a": entry, "b": entry + rng.integers(1, 20, n)})
    base["d"] = rng.integers(0, 3, n)
    long = pd.DataFrame({"id": rng.integers(-5, n + 5, m), "t": rng.integers(-3, 28, m)})
    long["v"] = rng.normal(size=m)
    long["w"] = rng.integers(0, 4, m)
    long["label"] = rng.choice(["x", "y", "z"], m)
    long["end"] = long["t"] + rng.integers(0, 9, m)
    return base, long


def by_hand(long, person, start, end, what):
    """One value of one row."""
    own = long[long["id"] == person]
    past = own[own["t"] <= start].sort_values("t", kind="stable")
    at_last = past[past["t"] == past["t"].max()]
    active = own[(own["t"] <= start) & (own["end"] > start)]
    at_end = own[own["t"] == end]
    known = len(at_last) > 0
    return {
        "first": at_last["v"].iloc[0] if known else np.nan,
        "last": at_last["v"].iloc[-1] if known else np.nan,
        "min": at_last["v"].min(),
        "max": at_last["v"].max(),
        "mean": at_last["v"].mean(),
        "label": at_last["label"].iloc[-1] if known else "none",
        "n": len(past),
        "sum": past["w"].sum(),
        "total": past["v"].sum() + 10.0,
        "event": len(at_end) > 0,
        "code": (at_end["w"].max() + 1) if len(at_end) else 0,
        "nth": (own["t"] <= end).sum() if len(at_end) else 0,
        "on": len(active) > 0,
        "dose": active["w"].sum(),
        "top": active["v"].max() if len(active) else 0.0,
    }[what]


def histories_of(long):
    values = {
        rule: rs.LastValue(long, "v", time="t", same_time=rule)
        for rule in ("first", "last", "min", "max", "mean")
    }
    code = long.assign(code=long["w"] + 1)
    return {
        **values,
        "label": rs.LastValue(long, "label", time="t", same_time="last", before="none"),
        "n": rs.RunningTotal(long, time="t"),
        "sum": rs.RunningTotal(long, "w", time="t"),
        "total": rs.RunningTotal(long, "v", time="t", before=10),
        "event": rs.EventTimes(long, time="t"),
        "code": rs.EventTimes(code, "code", time="t", same_time="max"),
        "nth": rs.EventTimes(long, time="t", numbered=True),
        "on": rs.ExposurePeriods(long, start="t"),
        "dose": rs.ExposurePeriods(long, start="t", value="w", overlap="sum"),
        "top": rs.ExposurePeriods(long, start="t", value="v", overlap="max"),
    }


ROLES = {"id": "id", "time": "b", "entry": "a", "event": "d"}


@each_library
def test_values_agree_with_a_loop(make) -> None:
    base, long = random_tables()
    given = make({name: base[name].to_numpy() for name in base})
    histories = histories_of(long)
    rows = columns_of(rs.merge_histories(given, histories, **ROLES).rows)
    for name in histories:
        wanted = [
            by_hand(long, *key, name) for key in zip(rows["id"], rows["a"], rows["b"], strict=True)
        ]
        if name == "label":
            assert rows[name].tolist() == wanted
        else:
            assert_allclose(rows[name].astype(float), np.array(wanted, dtype=float), atol=1e-12)


def test_rows_cover_the_follow_up_and_keep_its_events() -> None:
    base, long = random_tables()
    rows = rs.merge_histories(base, histories_of(long), **ROLES).rows
    assert (rows["a"] < rows["b"]).all()
    days = rows.groupby("id", sort=False)[["a", "b", "d"]].agg({"a": "min", "b": "max", "d": "sum"})
    assert_array_equal(days.reset_index()[["id", "a", "b", "d"]], base[["id", "a", "b", "d"]])
    length = (rows["b"] - rows["a"]).groupby(rows["id"], sort=False).sum()
    assert_array_equal(length, base["b"] - base["a"])


def test_the_order_of_records_and_people_does_not_matter() -> None:
    base, long = random_tables()
    histories = histories_of(long)
    rows = rs.merge_histories(base, histories, **ROLES)
    mixed = long.sample(frac=1, random_state=1)
    other = rs.merge_histories(base.iloc[::-1], histories_of(mixed), **ROLES)
    names = [name for name in histories if name not in ("first", "last", "label")]
    columns = ["id", "a", "b", "d", *names]
    order = ["id", "a"]
    pd.testing.assert_frame_equal(
        rows.rows.sort_values(order)[columns].reset_index(drop=True),
        other.rows.sort_values(order)[columns].reset_index(drop=True),
    )
    assert lists(rows.counts) == lists(other.counts)


def test_a_merge_in_two_steps_is_that_in_one() -> None:
    base, long = random_tables()
    both = rs.merge_histories(base, histories_of(long), **ROLES).rows
    first, second = random_tables(seed=8)
    del first
    more = {"other": rs.RunningTotal(second, time="t")}
    together = rs.merge_histories(base, {**histories_of(long), **more}, **ROLES).rows
    step = rs.merge_histories(both, more, **ROLES).rows
    assert len(step) == len(together)
    for name in ("id", "a", "b", "d", "n", "label", "on", "other"):
        assert step[name].tolist() == together[name].tolist(), name


def test_periods_that_overlap_are_added_in_parts(monkeypatch) -> None:
    base = pa.table({"id": [1, 2], "time": [50.0, 50.0], "event": [1, 0]})
    nested = {"id": np.repeat([1, 2], 9), "start": np.tile(np.arange(9), 2)}
    nested["end"] = 20 - nested["start"]
    nested["dose"] = 0.1 * (1 + np.arange(18))
    made = []
    for size in (1, 7, 1 << 22):
        monkeypatch.setattr(history_columns, "MAX_SEGMENTS", size)
        for rule in ("sum", "max"):
            dose = rs.ExposurePeriods(pa.table(nested), value="dose", overlap=rule)
            made.append(rs.merge_histories(base, {"x": dose}, id="id").rows["x"].to_pylist())
    assert made[0] == made[2] == made[4]
    assert made[1] == made[3] == made[5]
    assert_allclose(made[0][8], 4.5)
    assert_allclose(made[1][8], 0.9)


def test_running_totals() -> None:
    rng = np.random.default_rng(0)
    sizes = np.array([0, 1, 17, 3, 0, 64])
    first = np.repeat(np.cumsum(sizes) - sizes, sizes)
    amount = rng.normal(size=sizes.sum())
    wanted = np.concatenate([np.cumsum(part) for part in np.split(amount, np.cumsum(sizes)[:-1])])
    assert_allclose(running_totals(amount, first), wanted, atol=1e-13)
    whole = rng.integers(0, 9, sizes.sum())
    assert running_totals(whole, first).dtype == np.int64


# ------------------------------------------------------------------- columns of other kinds


def test_a_column_of_people_is_the_value_until_the_first_record() -> None:
    base = pd.DataFrame({"id": ["p", "q"], "time": [9.0, 8.0], "event": [1, 0], "x": [7, 5]})
    labs = pl.DataFrame({"id": ["p"], "time": [4], "value": [2.5]})
    rows = rs.merge_histories(base, {"x": rs.LastValue(labs, "value")}, id="id").rows
    assert rows["x"].tolist() == [7.0, 2.5, 5.0]
    with pytest.raises(rs.InputError, match="has `before`, but the table of people"):
        rs.merge_histories(base, {"x": rs.LastValue(labs, "value", before=1)}, id="id")
    text = pl.DataFrame({"id": ["p"], "time": [4], "value": ["high"]})
    with pytest.raises(rs.InputError, match="values of type"):
        rs.merge_histories(base, {"x": rs.LastValue(text, "value")}, id="id")


def test_histories_without_records() -> None:
    base = pa.table({"id": [1], "time": [9.0], "event": [1]})
    none = pa.table({"id": pa.array([], pa.int64()), "time": pa.array([], pa.float64())})
    none = none.append_column("end", none["time"]).append_column("v", none["time"])
    histories = {
        "value": rs.LastValue(none, "v"),
        "mean": rs.LastValue(none, "v", same_time="mean", before=0),
        "n": rs.RunningTotal(none),
        "event2": rs.EventTimes(none),
        "on": rs.ExposurePeriods(none, start="time"),
    }
    rows = rs.merge_histories(base, histories, id="id").rows.to_pydict()
    assert rows["value"] == [None]
    assert [rows[name] for name in ("mean", "n", "event2", "on")] == [[0.0], [0], [0], [0]]


def test_a_value_before_the_first_may_be_a_fraction_but_not_of_another_kind() -> None:
    base = pd.DataFrame({"id": [1], "time": [9.0], "event": [1]})
    labs = pa.table({"id": [1], "time": [4], "value": [3], "text": ["3"]})
    rows = rs.merge_histories(base, {"x": rs.LastValue(labs, "value", before=0.5)}, id="id").rows
    assert rows["x"].tolist() == [0.5, 3.0]
    rows = rs.merge_histories(base, {"x": rs.LastValue(labs, "value", before=1)}, id="id").rows
    assert rows["x"].tolist() == [1, 3]
    flags = pa.table({"id": [1], "time": [4], "value": [True]})
    rows = rs.merge_histories(base, {"x": rs.LastValue(flags, "value", before=False)}, id="id").rows
    assert rows["x"].tolist() == [False, True]
    with pytest.raises(rs.InputError, match="values of its history are of type string"):
        rs.merge_histories(base, {"x": rs.LastValue(labs, "text", before=0.5)}, id="id")


LEVELS = ["low", "high"]  # not in the order of the alphabet


def level_of(values):
    return pd.Categorical(values, LEVELS, ordered=True)


def test_categories_keep_the_order_of_their_levels() -> None:
    base = pd.DataFrame({"id": [1, 2], "time": [9.0, 8.0], "event": [1, 0]})
    labs = pd.DataFrame({"id": [1], "time": [4], "value": level_of(["high"])})
    first = base.assign(x=level_of(["high", "low"]))
    for people, history in (
        (base, rs.LastValue(labs, "value")),
        (base, rs.LastValue(labs, "value", before="low")),
        (first, rs.LastValue(labs, "value")),
        (first, rs.LastValue(labs.assign(value="high"), "value")),
    ):
        as_polars = pl.from_pandas(people)
        if "x" in people:
            as_polars = as_polars.with_columns(pl.col("x").cast(pl.Enum(LEVELS)))
        for made in (people, as_polars, pa.Table.from_pandas(people)):
            x = rs.merge_histories(made, {"x": history}, id="id").rows["x"]
            if isinstance(x, pd.Series):
                assert x.cat.categories.tolist() == LEVELS
            elif isinstance(x, pl.Series):
                assert x.dtype == pl.Enum(LEVELS)
            else:
                assert x.combine_chunks().dictionary.to_pylist() == LEVELS
            assert pa.array(x).to_pylist()[1] == "high"


def test_levels_of_people_come_first_unless_an_order_is_declared() -> None:
    base = pd.DataFrame({"id": [1], "time": [9.0], "event": [1], "x": pd.Categorical(["b"], ["b"])})
    labs = pd.DataFrame({"id": [1], "time": [4], "value": pd.Categorical(["a"], ["a", "b"])})
    rows = rs.merge_histories(base, {"x": rs.LastValue(labs, "value")}, id="id").rows
    assert rows["x"].tolist() == ["b", "a"]
    assert rows["x"].cat.categories.tolist() == ["b", "a"]
    labs["value"] = labs["value"].cat.as_ordered()
    with pytest.raises(rs.InputError, match="must have the same categories, but those"):
        rs.merge_histories(base, {"x": rs.LastValue(labs, "value")}, id="id")
    labs["value"] = "c"
    with pytest.raises(rs.InputError, match="the value 'c' is not one of them"):
        rs.merge_histories(base, {"x": rs.LastValue(labs, "value")}, id="id")


def test_categories_in_the_order_in_which_they_appeared_become_text() -> None:
    base = pl.DataFrame({"id": [1], "time": [9.0], "event": [1]})
    values = pl.Series(["low"], dtype=pl.Categorical())
    labs = pl.DataFrame({"id": [1], "time": [4], "value": values})
    rows = rs.merge_histories(base, {"x": rs.LastValue(labs, "value", before="high")}, id="id").rows
    assert rows["x"].dtype == pl.String
    assert rows["x"].to_list() == ["high", "low"]


def test_names_of_ohdsi_are_recognised_and_events_are_optional() -> None:
    base = pd.DataFrame({"rowId": [1], "time": [9.0], "y": [1]})
    visits = {"n": rs.RunningTotal(pa.table({"rowId": [1], "time": [4]}))}
    rows = rs.merge_histories(base, visits, id="rowId").rows
    assert rows["y"].tolist() == [0, 1]
    rows = rs.merge_histories(base.drop(columns="y"), visits, id="rowId").rows
    assert rows.columns.tolist() == ["rowId", "time", "entry", "n"]
    with pytest.raises(rs.InputError, match="not clear which column of .* the end of follow-up"):
        rs.merge_histories(base.rename(columns={"time": "t"}), visits, id="rowId")
    with pytest.raises(rs.InputError, match="'died' was not found"):
        rs.merge_histories(base, visits, id="rowId", event="died")


def test_identifiers_of_large_numbers_are_exact() -> None:
    big = 2**60
    base = pd.DataFrame({"id": [big, big + 1], "time": [9.0, 9.0], "event": [1, 0]})
    visits = pa.table({"id": [big + 1], "time": [4]})
    rows = rs.merge_histories(base, {"n": rs.RunningTotal(visits)}, id="id").rows
    assert rows["n"].tolist() == [0, 0, 1]


# ------------------------------------------------------------------------ notes, refusals


def test_what_is_left_out_is_in_notes() -> None:
    base = pd.DataFrame({"id": [1, 2], "time": [9.0, 8.0], "event": [1, 0]})
    labs = pd.DataFrame({"id": [1, 1, 1, 7], "time": [4, 4, 20, 1], "value": [1.0, 1.0, 2.0, 3.0]})
    labs = pd.concat([labs, pd.DataFrame({"id": [1], "time": [6], "value": [np.nan]})])
    events = pd.DataFrame({"id": [1, 1], "time": [0, 30]})
    found = rs.merge_histories(
        base,
        {"x": rs.LastValue(labs, "value", missing="skip"), "e": rs.EventTimes(events)},
        id="id",
    )
    assert [(note.code, note.columns) for note in found.notes] == [
        ("history_unknown_id", ("x",)),
        ("history_missing", ("x",)),
        ("history_tied", ("x",)),
        ("history_late", ("x",)),
        ("history_leading", ("e",)),
        ("history_late", ("e",)),
        ("no_value", ("x",)),
    ]
    assert found.notes[-1].message == "history 'x': 2 rows have no value yet."
    assert repr(found) == "<StartStopRows: 3 rows, 7 notes>"


LABS = {"id": [1, 1], "time": [4.0, 4.0], "value": [1.0, 2.0]}


@pytest.mark.parametrize(
    ("history", "words"),
    [
        (lambda: rs.LastValue(pa.table(LABS), "value"), "several values .* time 4, rows 0 and 1"),
        (lambda: rs.LastValue(pa.table(LABS), "valu"), "'valu' was not found"),
        (lambda: rs.LastValue(pa.table(LABS), "value", same_time="mode"), "`same_time` must be"),
        (
            lambda: rs.LastValue(pa.table({**LABS, "value": ["a", "b"]}), "value", same_time="max"),
            "does not hold numbers",
        ),
        (lambda: rs.LastValue(pa.table({**LABS, "value": [1, None]}), "value"), "missing"),
        (
            lambda: rs.LastValue(pa.table(LABS), "value", same_time="last", before="x"),
            "`before` is 'x'",
        ),
        (
            lambda: rs.LastValue(
                pd.DataFrame(LABS).assign(value=level_of(["low", "low"])), "value", before="x"
            ),
            "`before` is 'x', which is not one of the categories",
        ),
        (lambda: rs.LastValue(pa.table(LABS), "v", "t"), "'v' was not found in the table of hist"),
        (lambda: rs.RunningTotal(pa.table(LABS), before=None), "must be a finite number"),
        (lambda: rs.RunningTotal(pa.table(LABS), before=np.nan), "must be a finite number"),
        (lambda: rs.LastValue(pa.table({**LABS, "id": ["1", "1"]}), "value"), "holds text"),
        (lambda: rs.LastValue(pa.table({**LABS, "time": [1, None]}), "value"), "missing"),
        (lambda: rs.EventTimes(pa.table(LABS), "value"), "several values"),
        (lambda: rs.EventTimes(pa.table({**LABS, "value": [0, 1]}), "value"), "at least 1"),
        (lambda: rs.EventTimes(pa.table(LABS), "value", numbered=True), "together with `code`"),
        (lambda: rs.RunningTotal(pa.table({**LABS, "value": [1, None]}), "value"), "missing"),
        (lambda: rs.RunningTotal(pa.table({**LABS, "value": ["a", "b"]}), "value"), "numeric"),
        (lambda: rs.ExposurePeriods(pa.table(LABS), start="time", end="value"), "must be at least"),
        (
            lambda: rs.ExposurePeriods(
                pa.table({**LABS, "end": [6.0, 7.0]}), start="time", end="end", value="value"
            ),
            "overlap once .* person 1, from 4",
        ),
        (lambda: pa.table(LABS), "must be a LastValue"),
    ],
)
def test_contradictions_are_refused(history, words) -> None:
    base = pa.table({"id": [1, 2], "time": [9.0, 8.0], "event": [1, 0]})
    with pytest.raises(rs.InputError, match=words):
        rs.merge_histories(base, {"x": history()}, id="id")


@pytest.mark.parametrize("histories", [None, [rs.RunningTotal(LABS)], {3: rs.RunningTotal(LABS)}])
def test_histories_have_names(histories) -> None:
    base = pa.table({"id": [1], "time": [9.0], "event": [1]})
    with pytest.raises(rs.InputError, match="must be a mapping|must be text, but one is 3"):
        rs.merge_histories(base, histories, id="id")
    if histories is not None:
        with pytest.raises(rs.InputError, match="must be a mapping|must be text, but one is 3"):
            rs.landmark(base, 2, histories, id="id")


def test_messages_name_the_table() -> None:
    base = pa.table({"id": [1], "time": [9.0], "event": [1]})
    labs = pa.table({"id": pa.array([None], pa.int64()), "time": [4.0]})
    with pytest.raises(rs.InputError, match="column 'id' of the table of history 'n' must not"):
        rs.merge_histories(base, {"n": rs.RunningTotal(labs)}, id="id")
    with pytest.raises(rs.InputError, match="'idd' was not found in the table of people"):
        rs.merge_histories(base, {"n": rs.RunningTotal(labs)}, id="idd")
    with pytest.raises(rs.InputError, match="end of follow-up; it has 'id', 'event'[.]"):
        rs.merge_histories(base.drop(["time"]), {"n": rs.RunningTotal(labs)}, id="id")


def test_tables_of_people_that_are_refused() -> None:
    visits = {"n": rs.RunningTotal(pa.table({"id": [1], "time": [4]}))}
    twice = pa.table({"id": [1, 1], "time": [9.0, 8.0], "event": [1, 0]})
    with pytest.raises(rs.InputError, match="row 0 and row 1 of person 1 do"):
        rs.merge_histories(twice, visits, id="id")
    taken = pa.table({"id": [1], "time": [9.0], "event": [1], "n": [3]})
    with pytest.raises(rs.InputError, match="would replace the column 'n'"):
        rs.merge_histories(taken, visits, id="id")
    with pytest.raises(rs.InputError, match="would replace the column 'entry'"):
        rs.merge_histories(taken, {"entry": visits["n"]}, id="id")


# ----------------------------------------------------------------------------- landmarks


def jasa():
    table = reference.read_table(FOLDER / "jasa.csv")
    base = pd.DataFrame({name: table[name] for name in table if name != "txtime"})
    done = ~np.isnan(table["txtime"])
    return base, pd.DataFrame({"subject": table["subject"][done], "time": table["txtime"][done]})


JASA = {"id": "subject", "time": "futime", "event": "fustat"}


def test_stacked_landmarks_are_those_of_r() -> None:
    golden = GOLDEN["landmark"]
    base, transplants = jasa()
    histories = {"trt": rs.RunningTotal(transplants)}
    found = rs.landmark(base, golden["at"], histories, horizon=golden["horizon"], **JASA)
    rows = found.rows
    assert (len(rows), rows["fustat"].sum()) == (golden["n"], golden["events"])
    counts = lists(found.counts)
    assert sum(counts["at_risk"]) == golden["n"]
    assert sum(counts["events"]) == golden["events"]
    assert set(np.add(counts["at_risk"], counts["ended"]) + counts["not_entered"]) == {len(base)}
    y = rs.Surv(rows["futime"], rows["fustat"], entry=rows["entry"])
    X = rows[["age", "surgery", "trt", "landmark"]]
    stacked = rs.Cox().fit(X.drop(columns="landmark"), y, strata=rows["landmark"],
                           cluster=rows["subject"])  # fmt: skip
    for model, name in ((stacked, "stacked"), (rs.Cox().fit(X, y, cluster=rows["subject"]),
                                               "unstratified")):  # fmt: skip
        fit = golden[name]
        assert_allclose(model.coef_, list(fit["coef"].values()), rtol=1e-7)
        assert_allclose(model.robust_standard_error_, fit["robust_se"], rtol=1e-7)
        assert model.log_likelihood_ == pytest.approx(fit["loglik"], rel=1e-10)


def test_one_landmark_with_a_new_clock_is_that_of_r() -> None:
    fit = GOLDEN["landmark"]["single"]
    base, transplants = jasa()
    histories = {"trt": rs.RunningTotal(transplants)}
    rows = rs.landmark(base, 30, histories, clock="restart", **JASA).rows
    assert (rows["entry"] == 0).all()
    y = rs.Surv(rows["futime"], rows["fustat"])
    model = rs.Cox().fit(rows[["age", "surgery", "trt"]], y)
    assert_allclose(model.coef_, list(fit["coef"].values()), rtol=1e-7)
    assert_allclose(model.standard_error_, fit["se"], rtol=1e-7)


@each_library
def test_landmarks_agree_with_a_loop(make) -> None:
    base, long = random_tables()
    histories = {k: h for k, h in histories_of(long).items() if not isinstance(h, rs.EventTimes)}
    given = make({name: base[name].to_numpy() for name in base})
    found = rs.landmark(given, [9, 4], histories, horizon=6, name="s", **ROLES)
    rows = columns_of(found.rows)
    wanted = [
        (i, s, s, min(b, s + 6), d if b <= s + 6 else 0)
        for s in (4, 9)
        for i, a, b, d in base.itertuples(index=False)
        if a <= s < b
    ]
    for name, values in zip(("id", "s", "a", "b", "d"), zip(*wanted, strict=True), strict=True):
        assert_array_equal(rows[name], values)
    for name in histories:
        values = [by_hand(long, i, s, s, name) for i, s, *_ in wanted]
        if name == "label":
            assert rows[name].tolist() == values
        else:
            assert_allclose(rows[name].astype(float), np.array(values, dtype=float), atol=1e-12)


@pytest.mark.parametrize(
    ("at", "keywords", "words"),
    [
        ([5000], {}, "nobody is at risk at the landmark 5000"),
        ([], {}, "`at` has no landmarks"),
        ([np.nan], {}, "`at` must be finite"),
        ([30], {"horizon": 0}, "`horizon` must be a positive number"),
        ([30], {"clock": "new"}, "`clock` must be"),
        ([30], {"name": "age"}, "'age' would have the name of another"),
        ([30], {"histories": {"e": rs.EventTimes(pa.table({}))}}, "a landmark has covariates only"),
    ],
)
def test_landmarks_that_are_refused(at, keywords, words) -> None:
    with pytest.raises(rs.InputError, match=words):
        rs.landmark(jasa()[0], at, **keywords, **JASA)


@pytest.mark.parametrize("clock", ["keep", "restart"])
def test_rounding_does_not_decide_what_is_within_the_horizon(clock) -> None:
    assert 0.7 + 0.1 < 0.8 < 0.9
    base = pa.table({"id": [1, 2], "time": [0.8, 0.9], "event": [1, 1]})
    rows = rs.landmark(base, 0.7, id="id", horizon=0.1, clock=clock).rows.to_pydict()
    assert rows["event"] == [1, 0]
    assert rows["time"][0] == rows["time"][1]  # who is censored then is at risk of the event


def test_a_landmark_needs_one_row_for_each_person() -> None:
    base = pa.table({"id": [1, 1], "a": [0, 4], "time": [4.0, 8.0], "event": [1, 0]})
    with pytest.raises(rs.InputError, match="needs one row for each person, but person 1 has"):
        rs.landmark(base, 2, id="id", entry="a")
