"""Kinds of X and y, and what new data must have in common with the fit."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import riskset as rs
from estimators.samples import frame, frame_matrix, frame_outcome


def test_frames_of_every_library_are_one(data):
    columns, y = frame(), frame_outcome()
    expected = rs.Cox().fit(frame_matrix(columns), y)
    names = ("age", "dose", "smoker", "site=b", "site=c")
    frames = {
        "pandas": pd.DataFrame(columns),
        "categories": pd.DataFrame(columns).astype({"site": "category"}),
        "polars": pl.DataFrame(columns),
        "arrow": pa.table(columns),
    }
    for kind, table in frames.items():
        model = rs.Cox().fit(table, y)
        assert model.covariates_ == names, kind
        assert list(model.feature_names_in_) == list(columns)
        assert model.n_features_in_ == 4
        assert_array_equal(model.coef_, expected.coef_, kind)
        assert_array_equal(model.predict(table), expected.predict(frame_matrix(columns)), kind)
        assert model.score(table, y) == expected.score(frame_matrix(columns), y)


def test_levels_are_those_of_the_fit():
    columns, y = frame(), frame_outcome()
    table = pd.DataFrame(columns)
    model = rs.Cox().fit(table, y)
    one = table[table["site"] == "c"]
    assert_allclose(model.predict(one), model.predict(table)[table["site"] == "c"], rtol=1e-13)
    with pytest.raises(rs.InputError, match="level that was not there at the fit"):
        model.predict(table.assign(site="d"))
    with pytest.raises(rs.InputError, match="column 'site' held categories"):
        model.predict(table[["age", "dose", "smoker", "age"]].to_numpy(float))
    with pytest.raises(rs.InputError, match="yet now missing:\n- dose"):
        model.predict(table.drop(columns="dose"))


def test_names_follow_scikit_learn(data):
    x, y = data
    names = list("abcd")
    named = rs.Cox().fit(pd.DataFrame(x, columns=names), y)
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        assert_allclose(named.predict(x), named.predict(pd.DataFrame(x, columns=names)))
    plain = rs.Cox().fit(x, y)
    assert plain.covariates_ == ("x0", "x1", "x2", "x3")
    assert not hasattr(plain, "feature_names_in_")
    with pytest.warns(UserWarning, match="X has feature names, but Cox was fitted without"):
        assert_allclose(plain.predict(pl.DataFrame(x, names)), plain.predict(x))
    numbered = rs.Cox().fit(pd.DataFrame(x), y)
    assert not hasattr(numbered, "feature_names_in_")
    named.fit(x, y)
    assert not hasattr(named, "feature_names_in_")


def test_designs_keep_their_names(data):
    x, y = data
    design = rs.Design.from_sparse(sparse.csc_array(x), keys=[7, 2**53, 2**53 + 1, -1])
    model = rs.Cox(rs.L1(5.0, unpenalized=[str(2**53 + 1)])).fit(design, y)
    assert model.covariates_ == ("7", "9007199254740992", "9007199254740993", "-1")
    assert model.coef_[2] != 0
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        assert_array_equal(model.predict(design), model.predict(x))
    other = rs.Design.from_dense(x, names=["7", "a", "b", "c"])
    with pytest.raises(rs.InputError, match="'9007199254740992' is absent"):
        model.predict(other)


def test_a_data_set_brings_everything():
    columns, y = frame(), frame_outcome()
    rng = np.random.default_rng(6)
    roles = {
        "days": y["time"],
        "died": y["event"].astype(int),
        "late": np.zeros(90),
        "w": rng.integers(0, 3, 90),
        "ward": rng.choice(["u", "v"], 90).tolist(),
        "who": rng.integers(0, 30, 90),
        "shift": rng.normal(size=90),
    }
    read = rs.Dataset.from_frame(
        pd.DataFrame(roles | columns), time="days", event="died", entry="late", weight="w",
        strata="ward", cluster="who", offset="shift",
    )  # fmt: skip
    arguments = {"sample_weight": roles["w"], "strata": roles["ward"], "offset": roles["shift"]}
    surv = rs.Surv(roles["days"], roles["died"], roles["late"])
    table = pd.DataFrame(columns)
    model = rs.Cox().fit(read)
    same = rs.Cox().fit(table, surv, **arguments, cluster=roles["who"])
    assert_array_equal(model.coef_, same.coef_)
    assert_array_equal(model.robust_variance_, same.robust_variance_)
    assert model.n_dropped_ == {"rows_of_weight_0": int((roles["w"] == 0).sum())}
    assert model.score(read) == same.score(table, surv, **arguments)
    expected = same.predict_survival_function(
        table, [0.5, 1.0], strata=roles["ward"], offset=roles["shift"]
    )
    for new in (read, pd.DataFrame(roles | columns)):
        assert_array_equal(model.predict_survival_function(new, [0.5, 1.0]), expected)
        assert_array_equal(model.predict(new), same.predict(table, offset=roles["shift"]))
    assert_array_equal(
        model.residuals(read), same.residuals(table, surv, **arguments, cluster=roles["who"])
    )
    with pytest.raises(rs.InputError, match="`strata` was given together with a Dataset"):
        rs.Cox().fit(read, strata=roles["ward"])


def test_outcomes_of_other_packages(data):
    x, y = data
    expected = rs.Cox().fit(x, y)
    first = np.array(list(zip(y["event"], y["time"], strict=True)), [("cens", "?"), ("t", "f8")])
    last = np.array(list(zip(y["time"], y["event"], strict=True)), [("t", "f4"), ("dead", "?")])
    for other in (first, last):
        assert_array_equal(rs.Cox().fit(x, other).coef_, expected.coef_)
        assert expected.score(x, other) == expected.score(x, y)
    times = rs.Cox().fit(x, y["time"])
    everybody = rs.Cox().fit(x, rs.Surv(y["time"], np.ones(y.size)))
    assert_array_equal(times.coef_, everybody.coef_)
    assert_array_equal(rs.Cox().fit(x, pd.Series(y["time"])).coef_, everybody.coef_)


def test_competing_causes(data, rng):
    x, y = data
    codes = np.where(y["event"], rng.integers(1, 4, y.size), 0)
    several = rs.Surv(y["time"], codes)
    for cause in (1, 3):
        model = rs.Cox(cause=cause).fit(x, several)
        one = rs.Surv(y["time"], codes == cause)
        assert_array_equal(model.coef_, rs.Cox().fit(x, one).coef_)
        assert model.score(x, several) == rs.Cox().fit(x, one).score(x, one)
    with pytest.raises(rs.InputError, match="pass `cause`"):
        rs.Cox().fit(x, several)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "requires y to be passed"),
        (np.ones((5, 2)), "one time and event for each row, but its shape is .5, 2."),
        (np.ones(5, dtype=bool), "only True and False, so there are no times"),
        (np.ones(4), "X has 5 rows, but `y` has 4"),
        (np.array([1, 2, np.nan, 3, 4]), "`y` must be finite.*row 2"),
        (-np.arange(5.0), "`y` must not be negative.*row 1"),
        (np.zeros(5, [("a", "?"), ("b", "f8"), ("c", "f8")]), "fields 'event' and 'time'"),
    ],
)
def test_impossible_outcomes(y, message):
    with pytest.raises(rs.InputError, match=message):
        rs.Cox().fit(np.eye(5), y)


@pytest.mark.parametrize("model", [rs.Cox(), rs.FineGray()])
def test_a_frame_and_y_after_a_fit_on_a_dataset(model, data):
    x, y = data
    table = pd.DataFrame(x, columns=list("abcd"))
    table["time"], table["event"] = y["time"], y["event"].astype(int)
    table["site"] = np.arange(len(table)) % 3
    model.fit(rs.Dataset.from_frame(table, time="time", event="event", strata="site"))
    frame = table.drop(columns=["time", "event"])
    assert_array_equal(model.residuals(frame, y), model.residuals(table))
    got, want = model.test_proportionality(frame, y), model.test_proportionality(table)
    assert_array_equal(got.statistic, want.statistic)
    assert model.score(frame, y) == model.score(table)


def test_a_frame_with_y_has_no_censoring_groups(data):
    x, y = data
    table = pd.DataFrame(x, columns=list("abcd"))
    table["time"], table["event"] = y["time"], y["event"].astype(int)
    table["site"] = np.arange(len(table)) % 2
    model = rs.FineGray().fit(rs.Dataset.from_frame(table, censoring_group="site"))
    with pytest.raises(rs.InputError, match="groups of 'site'"):
        model.residuals(table.drop(columns=["time", "event"]), y)


def test_score_refuses_what_fit_refuses(data):
    x, y = data
    codes = rs.Surv(y["time"], np.where(y["event"], 1 + np.arange(len(y)) % 3, 0))
    model = rs.Cox().fit(x, y)
    with pytest.raises(rs.InputError, match="cause"):
        model.score(x, codes)
    with pytest.raises(rs.InputError, match="cause"):
        model.fit(x, codes)
    assert 0 <= rs.Cox(cause=2).fit(x, codes).score(x, codes) <= 1
