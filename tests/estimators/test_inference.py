"""Summaries, standard errors and intervals."""

import inspect

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import riskset as rs


def test_summary(data):
    x, y = data
    model = rs.Cox().fit(pd.DataFrame(x, columns=list("abcd")), y)
    table = model.summary(level=0.9)
    assert list(table.index) == list("abcd")
    assert_array_equal(table["coef"], model.coef_)
    assert_allclose(table["hazard_ratio"], np.exp(model.coef_))
    interval = model.confidence_interval(level=0.9)
    assert_allclose(table["hazard_ratio_upper"], np.exp(interval.upper))
    assert_allclose(table["hazard_ratio_lower"], np.exp(interval.lower))
    assert_allclose(table["z"], model.coef_ / model.standard_error_)
    assert (table["p"].to_numpy() < 0.05).tolist() == (abs(table["z"].to_numpy()) > 1.96).tolist()
    assert "robust_standard_error" not in table


def test_summary_speaks_the_library_of_the_user(data):
    x, y = data
    assert isinstance(rs.Cox().fit(pl.DataFrame(x), y).summary(), pl.DataFrame)
    assert isinstance(
        rs.Cox().fit(pa.table(dict(zip("abcd", x.T, strict=True))), y).summary(), pa.Table
    )
    assert isinstance(rs.Cox().fit(x, y).summary(), pd.DataFrame)


def test_summary_without_pandas(data, monkeypatch):
    monkeypatch.setattr("riskset.data.frame.importlib.util.find_spec", lambda name: None)
    table = rs.Cox().fit(*data).summary()
    assert isinstance(table, pa.Table)
    assert table["covariate"].to_pylist() == ["x0", "x1", "x2", "x3"]


def test_robust_errors(data, rng):
    x, y = data
    cluster = rng.integers(0, 25, 120)
    model = rs.Cox().fit(x, y, cluster=cluster)
    table = model.summary()
    assert_array_equal(table["robust_standard_error"], model.robust_standard_error_)
    assert_allclose(table["z"], model.coef_ / model.robust_standard_error_)
    robust = model.confidence_interval(["x1"], method="robust")
    half = 1.959963984540054 * model.robust_standard_error_[1]
    assert_allclose(robust["x1"], [model.coef_[1] - half, model.coef_[1] + half])
    # By hand: score residuals, summed by cluster, times the inverse information.
    scores = np.zeros((25, 4))
    np.add.at(scores, cluster, model.residuals(x, y, "score"))
    change = scores @ model.variance_
    assert_allclose(model.robust_variance_, change.T @ change, rtol=1e-9)
    alone = rs.Cox().fit(x, y)
    assert not alone.is_robust_
    change = alone.residuals(x, y, "score") @ alone.variance_
    assert_allclose(alone.robust_variance_, change.T @ change, rtol=1e-9)


def test_penalised_fits_have_no_standard_errors(data):
    x, y = data
    model = rs.Cox(rs.L1(1.0, unpenalized=["x0"])).fit(x, y)
    assert np.isnan(model.standard_error_).all()
    assert np.isnan(model.robust_variance_).all()
    assert np.isnan(model.summary()["p"]).all()
    for call in (
        lambda: model.confidence_interval("x0"),
        lambda: model.confidence_interval("x0", method="robust"),
        lambda: model.tests_,
        lambda: model.test_proportionality(x, y),
    ):
        with pytest.raises(rs.InputError, match="not defined for a penalised fit"):
            call()
    assert not hasattr(model, "tests_")
    assert "coef_" in dict(inspect.getmembers(model))
    nothing = rs.Cox(rs.L1(0.0)).fit(x, y)
    assert_allclose(nothing.standard_error_, rs.Cox().fit(x, y).standard_error_)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"method": "walt"},
            "must be 'wald', 'robust', 'profile' or 'bootstrap', but it is 'walt'.\n.*'wald'",
        ),
        ({"parameters": "x7"}, "'x7' was not found"),
        ({"parameters": 7}, "'7' was not found"),
        ({"parameters": ["x1", "x1"]}, "'x1' is named 2 times"),
        ({"method": "profile", "parameters": ["x1", "x1"]}, "'x1' is named 2 times"),
        # What another method uses is not passed over.
        ({"replicates": 200}, "`replicates` was given, but it is for `method='bootstrap'` alone"),
        ({"seed": 1}, "`seed` was given, .* and `method` is 'wald'"),
        ({"method": "profile", "type": "percentile"}, "`type` was given, .* is 'profile'"),
        ({"method": "robust", "penalized": True}, "`penalized` .* `method='profile'` alone"),
        ({"method": "bootstrap", "penalized": True}, "`penalized` .* is 'bootstrap'"),
        ({"level": 95}, "`level` must be between 0 and 1"),
    ],
)
def test_impossible_intervals(data, arguments, message):
    model = rs.Cox().fit(*data)
    with pytest.raises(rs.InputError, match=message):
        model.confidence_interval(**arguments)


def test_intervals_as_a_frame(data):
    interval = rs.Cox().fit(*data).confidence_interval(["x2", "x0"])
    assert interval.names == ("x2", "x0")
    table = interval.to_frame("polars")
    assert table.columns == ["covariate", "lower", "upper"]
    assert table["lower"].to_list() == [interval["x2"][0], interval["x0"][0]]


@pytest.mark.parametrize("kind", [rs.Cox, rs.FineGray])
@pytest.mark.parametrize("size", [1e-300, 1e-200, 1e200, 1e300])
def test_units_at_the_ends_of_floating_point(kind, size, data):
    x, y = data
    model, wanted = kind().fit(x * size, y), kind().fit(x, y)
    assert model.status_ == "converged"
    assert_allclose(model.coef_ * size, wanted.coef_, rtol=1e-6)
    assert_allclose(model.standard_error_ * size, wanted.standard_error_, rtol=1e-6)
    got, want = model.test_proportionality(x * size, y), wanted.test_proportionality(x, y)
    assert_allclose(got.statistic, want.statistic, rtol=1e-6)


@pytest.mark.parametrize("kind", [rs.Cox, rs.FineGray])
def test_collinear_columns_leave_the_errors_of_the_others(kind, data):
    x, y = data
    both = np.column_stack([np.ones(len(y)), x[:, 0], x[:, 1], x[:, 0] + x[:, 1]])
    alone = kind().fit(x[:, :2], y)
    with pytest.warns(rs.RisksetWarning, match="linear combination"):
        model = kind().fit(both, y)
    for name in ("standard_error_", "robust_standard_error_"):
        got, want = getattr(model, name), getattr(alone, name)
        assert np.isnan(got[[0, 3]]).all()
        assert_allclose(got[1:3], want, rtol=1e-8)
    for name in ("lr", "score", "wald"):
        got, want = getattr(model.tests_, name), getattr(alone.tests_, name)
        assert got.df == want.df == 2
        assert_allclose(got.statistic, want.statistic, rtol=1e-8)


@pytest.mark.parametrize("size", [1e-300, 1e300])
@pytest.mark.parametrize("entered", [False, True])
def test_robust_errors_do_not_depend_on_the_size_of_weights(size, entered, data):
    x, y = data
    rows = np.arange(len(y))
    late = {"entry": y["time"] * (rows % 4) / 8} if entered else {}
    event = np.where(rows % 3, y["event"], 2)
    for model, outcome, most in (
        (rs.Cox(), rs.Surv(y["time"], y["event"], **late), size),
        (rs.FineGray(), rs.Surv(y["time"], event, **late), 1e-100 if size < 1 else 1e100),
    ):
        plain = model.fit(x, outcome, cluster=rows).robust_standard_error_
        weight = np.full(len(y), most)
        scaled = model.fit(x, outcome, sample_weight=weight, cluster=rows)
        assert_allclose(scaled.robust_standard_error_, plain, rtol=1e-6)
    with pytest.raises(rs.InputError, match=r"the largest weight is 1e.300, .* 1e-120 to 1e.120"):
        model.fit(x, outcome, sample_weight=np.full(len(y), size))


@pytest.mark.parametrize("make", [rs.Cox, rs.FineGray, rs.CoxFrailty, rs.TimeEffectCox])
def test_a_single_cluster_is_refused(make) -> None:
    """The influences of its rows add up to 0, which was its robust standard error."""
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(50, 2)), rs.Surv(rng.exponential(size=50), np.ones(50))
    model = make({"x0": "log"}) if make is rs.TimeEffectCox else make()
    with pytest.raises(rs.InputError, match="`cluster` has the same label in all rows"):
        model.fit(x, y, cluster=np.full(50, 7))
    weight = np.where(np.arange(50) < 30, 1.0, 0.0)
    with pytest.raises(rs.InputError, match="`cluster` has the same label in all rows"):
        model.fit(x, y, cluster=np.arange(50) // 30, sample_weight=weight)
