"""Products of covariates and functions of time: against `tt` of R's coxph."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import reference
import riskset as rs
from riskset.data.start_stop import time_interactions as module

GOLDEN = reference.read_json(reference.GOLDEN / "start_stop/start_stop.json")["tt"]
VETERAN = pd.DataFrame(reference.read_table(reference.GOLDEN / "veteran.csv"))
HEART = pd.DataFrame(reference.read_table(reference.GOLDEN / "heart.csv"))
LATE = {"time": "stop", "entry": "start"}


def log20(t):
    return np.log(t + 20)


def hundreds(t):
    return t / 100


CASES = {
    "log": (["trt", "prior", "karno"], {"karno": log20}),
    "plain_log": (["karno"], {"karno": "log"}),
    "identity": (["trt", "karno"], {"trt": hundreds}),
    "step": (["trt", "karno"], {"karno": [90, 180]}),
    "strata": (["karno"], {"karno": log20}),
    "late": (["age", "transplant"], {"age": hundreds}),
}


def fit(rows, names, ties, time="time", entry="entry", strata=None):
    added = [name for name in rows.columns if ":" in name]
    y = rs.Surv(rows[time], rows["event"], entry=rows[entry])
    strata = None if strata is None else rows[strata]
    return rs.Cox(ties=ties).fit(rows[[*names, *added]], y, strata=strata)


@pytest.mark.parametrize("ties", ["breslow", "efron"])
@pytest.mark.parametrize("case", CASES)
def test_estimates_are_those_of_tt(case, ties) -> None:
    golden = GOLDEN[ties][case]
    names, effects = CASES[case]
    table, roles = (HEART, LATE) if case == "late" else (VETERAN, {})
    strata = "stratum" if case == "strata" else None
    rows = rs.time_interactions(table, effects, strata=strata, **roles)
    model = fit(rows, names, ties, *roles.values(), strata=strata)
    assert_allclose(model.coef_, list(golden["coef"].values()), rtol=1e-6, atol=1e-9)
    assert_allclose(model.standard_error_, golden["se"], rtol=1e-6)
    assert model.log_likelihood_ == pytest.approx(golden["loglik"], rel=1e-10)


def test_strata_save_rows_and_change_nothing() -> None:
    few = rs.time_interactions(VETERAN, {"karno": "log"}, strata="stratum")
    many = rs.time_interactions(VETERAN, {"karno": "log"})
    assert len(few) < len(many) / 2
    found, other = (fit(rows, ["karno"], "breslow", strata="stratum") for rows in (few, many))
    assert_allclose(found.coef_, other.coef_, rtol=1e-8)


def test_a_fine_grid_comes_close_and_all_times_are_exact() -> None:
    exact = fit(rs.time_interactions(VETERAN, {"karno": "log"}), ["karno"], "breslow").coef_
    times = np.unique(VETERAN["time"])
    whole = rs.time_interactions(VETERAN, {"karno": "log"}, at=times)
    assert_allclose(fit(whole, ["karno"], "breslow").coef_, exact, rtol=1e-8)
    errors = [
        abs(fit(rs.time_interactions(VETERAN, {"karno": "log"}, at=k), ["karno"], "breslow").coef_
            - exact)[1]
        for k in (2, 6, 24)
    ]  # fmt: skip
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.05 * abs(exact[1])


def test_values_by_hand() -> None:
    table = pl.DataFrame({"time": [4, 9, 6], "event": [1, 1, 0], "x": [2.0, 3.0, 5.0]})
    rows = rs.time_interactions(table, {"x": lambda t: t**2}, id=None)
    assert rows["time"].to_list() == [4.0, 4.0, 9.0, 4.0, 6.0]
    assert rows["x:g(t)"].to_list() == [2 * 16.0, 3 * 16.0, 3 * 81.0, 5 * 16.0, 5 * 81.0]
    rows = rs.time_interactions(table, {"x": "identity"}, at=1)  # the mean of 4 and 9
    assert rows["x:t"].to_list() == [13.0, 19.5, 32.5]
    rows = rs.time_interactions(table, {"x": [5, 8]})
    assert [name for name in rows.columns if ":" in name] == ["x:(5,8]", "x:(8,inf)"]
    assert rows["x:(5,8]"].to_list() == [0, 0, 3, 0, 0, 5]
    assert rows["x:(8,inf)"].to_list() == [0, 0, 0, 3, 0, 0]


def test_steps_that_are_close_have_columns_of_their_own() -> None:
    table = pd.DataFrame({"time": [2e6], "event": [1], "x": [2.0]})
    rows = rs.time_interactions(table, {"x": [1234567, 1234567.25, 1234568]})
    made = ["x:(1234567,1234567.25]", "x:(1234567.25,1234568]", "x:(1234568,inf)"]
    assert [name for name in rows if ":" in name] == made
    assert_array_equal(rows[made], 2 * np.eye(4)[:, 1:])


def test_only_events_of_the_cause_cut() -> None:
    table = pd.DataFrame({"time": [4, 9, 6], "event": [1, 1, 2], "x": [2.0, 3.0, 5.0]})
    every = rs.time_interactions(table, {"x": "log"})
    one = rs.time_interactions(table, {"x": "log"}, cause=1)
    assert (len(every), len(one)) == (6, 5)
    assert one["event"].tolist() == [1, 0, 1, 0, 2]


def test_what_does_not_fit_is_refused(monkeypatch) -> None:
    monkeypatch.setattr(module, "free_memory", lambda: 10_000)
    with pytest.raises(
        rs.InputError, match="137 rows would become .*, but 0 GB are free"
    ) as caught:
        rs.time_interactions(VETERAN, {"karno": "log"})
    assert "at=50" in caught.value.hint
    monkeypatch.setattr(module, "free_memory", lambda: None)
    assert len(rs.time_interactions(VETERAN, {"karno": "log"}))


def test_free_memory_is_a_number_of_bytes() -> None:
    free = module.free_memory()
    assert free is None or free > 1 << 20


@pytest.mark.parametrize(
    ("effects", "keywords", "words"),
    [
        ({"karno": "exp"}, {}, "must be 'log', 'identity'"),
        ({"karn": "log"}, {}, "'karn' was not found"),
        ({"time": "log"}, {}, "part of the outcome"),
        ({"karno": []}, {}, "are empty"),
        ({"karno": [np.nan]}, {}, "must be finite"),
        ({"karno": lambda t: 1.0}, {}, "a number for each time"),
        ({"karno": lambda t: np.log(t - 50)}, {}, "not finite at the time 1"),
        ({"karno": "log"}, {"cause": 3}, "no row has an event of the cause 3"),
        ({"karno": "log"}, {"at": [np.inf]}, "`at` must be finite"),
        ({"karno": "log"}, {"id": "karno"}, "would have the name of another"),
        (["karno"], {}, "must be a mapping"),
        ({"karno": 5}, {}, "a sequence of times or a callable, but it is 5"),
        ({"karno": lambda t: t if t > 3 else 0}, {}, "failed for an array of .* ValueError"),
        ({"karno": lambda t: t.astype(str)}, {}, "and type <U"),
        ({"karno": "log"}, {"at": 0}, "a number of intervals, or the times between them"),
        ({"karno": [30]}, {"at": 5}, "`at` is for smooth functions"),
        ({"karno": [30]}, {"strata": "cel"}, "'cel' was not found"),
    ],
)
def test_refusals(effects, keywords, words) -> None:
    with pytest.raises(rs.InputError, match=words):
        rs.time_interactions(VETERAN, effects, **keywords)


def test_text_is_no_covariate() -> None:
    table = pd.DataFrame({"time": [4, 9], "event": [1, 1], "sex": ["m", "f"]})
    with pytest.raises(rs.InputError, match="must be numeric"):
        rs.time_interactions(table, {"sex": "log"})
    assert_array_equal(table["time"], [4, 9])
