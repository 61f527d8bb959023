"""Predictions, curves, residuals and scores, also of infinite coefficients."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import riskset as rs
from estimators.samples import simulated


def test_curves_are_curves(data):
    x, y = data
    strata = x[:, 3] > 0
    model = rs.Cox(ties="efron").fit(x[:, :3], y, strata=strata)
    times = np.linspace(0, 2 * y["time"].max(), 40)
    survival = model.predict_survival_function(x[:, :3], times, strata=strata)
    hazard = model.predict_cumulative_hazard_function(x[:, :3], times, strata=strata)
    assert survival.shape == hazard.shape == (120, 40)
    assert ((survival >= 0) & (survival <= 1)).all()
    assert (np.diff(survival, axis=1) <= 0).all()
    assert (survival[:, 0] == 1).all()
    assert_allclose(survival[:, -1], survival[:, times >= y["time"].max()][:, 0])
    order = np.argsort(times)[::-1]
    shuffled = model.predict_survival_function(x[:, :3], times[order], strata=strata)
    assert_array_equal(shuffled, survival[:, order])
    with pytest.raises(rs.InputError, match="fitted with 2 strata"):
        model.predict_survival_function(x[:, :3], times)
    with pytest.raises(rs.InputError, match="'x' .row 0., a stratum that was not in the fit"):
        model.predict_survival_function(x[:1, :3], times, strata=["x"])


def test_curves_do_not_depend_on_the_origin_of_a_covariate(data):
    x, y = data
    far = x + np.array([0.0, 0.0, 1.7e9, 0.0])  # as seconds since 1970
    times = np.unique(y["time"])
    near, model = rs.Cox().fit(x, y), rs.Cox().fit(far, y)
    assert_allclose(model.coef_, near.coef_, rtol=1e-5)
    survival = model.predict_survival_function(far, times)
    assert_allclose(survival, near.predict_survival_function(x, times), atol=1e-5)
    assert survival.min() < 0.9
    one = model.predict_survival_function(far[5:6], times)
    assert_allclose(one[0], survival[5], rtol=1e-12)


def test_offsets_of_new_rows(data):
    x, y = data
    shift = x[:, 0] * 0.3
    model = rs.Cox().fit(x[:, 1:], y, offset=shift)
    assert_allclose(
        model.predict(x[:, 1:], offset=shift), model.predict(x[:, 1:]) + shift, rtol=1e-12
    )
    fixed = x @ np.append(0.3, model.coef_)
    assert_allclose(model.predict(x[:, 1:], offset=shift), fixed, rtol=1e-10)
    martingale = model.residuals(x[:, 1:], y, offset=shift)
    assert_allclose(martingale.sum(), 0, atol=1e-9)
    hazard = model.predict_cumulative_hazard_function(x[:, 1:], y["time"], offset=shift)
    assert_allclose(y["event"] - np.diag(hazard), martingale, rtol=1e-9)
    first = model.predict_cumulative_hazard_function(x[:1, 1:], 5.0, offset=shift[:1])
    assert first.shape == (1, 1)


def test_residuals_belong_to_their_rows(data):
    x, y = data
    model = rs.Cox().fit(x, y)
    assert_allclose(model.residuals(x, y, "score").sum(axis=0), 0, atol=1e-7)
    schoenfeld = model.residuals(x, y, "schoenfeld")
    assert_allclose(schoenfeld.values.sum(axis=0), 0, atol=1e-7)
    assert_array_equal(np.sort(schoenfeld.row), np.flatnonzero(y["event"]))
    deviance = model.residuals(x, y, "deviance")
    assert_array_equal(np.sign(deviance), np.sign(model.residuals(x, y)))
    with pytest.raises(rs.InputError, match="`kind` must be .* 'devience'.\n.*'deviance'"):
        model.residuals(x, y, "devience")


def infinite(rng, *, sign=-1):
    """Nobody exposed has an event, or only the exposed; a second covariate is ordinary."""
    x, y = simulated(rng, p=2)
    if sign < 0:
        exposed = (rng.random(120) < 0.3) & ~y["event"]
    else:
        exposed = (rng.random(120) < 0.3) | y["event"]
    return np.column_stack([exposed, x[:, 1]]), y, exposed == (sign > 0)


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("ties", ["breslow", "efron"])
def test_infinite_coefficients_predict_their_limits(rng, sign, ties):
    """Those who can have events are as without the others, who have none for certain."""
    x, y, can = infinite(rng, sign=sign)
    with pytest.warns(ConvergenceWarning, match="'x0'"):
        model = rs.Cox(ties=ties).fit(x, y)
    alone = rs.Cox(ties=ties).fit(x[can, 1:], y[can])
    times = np.unique(y["time"])
    assert model.coef_[0] == sign * np.inf
    assert_allclose(model.coef_[1], alone.coef_[0], rtol=1e-7)
    survival = model.predict_survival_function(x, times)
    assert (survival[~can] == 1).all()
    expected = alone.predict_survival_function(x[can, 1:], times)
    assert_allclose(survival[can], expected, rtol=1e-7)
    for kind in ("martingale", "deviance", "score"):
        residual = model.residuals(x, y, kind)
        assert_allclose(residual[~can], 0, atol=1e-12)
        ours, theirs = residual[can], alone.residuals(x[can, 1:], y[can], kind)
        assert_allclose(ours[:, 1:] if kind == "score" else ours, theirs, rtol=1e-6, atol=1e-7)
    # Unlike the transform "km", the identity does not depend on rows that no longer matter.
    test = model.test_proportionality(x, y, "identity")
    expected = alone.test_proportionality(x[can, 1:], y[can], "identity").statistic[0]
    assert_allclose(test.statistic[1], expected, rtol=1e-6)
    assert np.isnan(test.statistic[0])
    assert model.score(x, y) >= alone.score(x[can, 1:], y[can])


def test_infinite_coefficients_are_told_everywhere(rng):
    x, y, can = infinite(rng)
    with pytest.warns(ConvergenceWarning, match="'x0'"):
        model = rs.Cox().fit(x, y)
    eta = model.predict(x)
    assert (eta[~can] == -np.inf).all()
    assert_allclose(eta[can], model.coef_[1] * x[can, 1], rtol=1e-12)
    assert model.tests_.lr.df == 2
    assert np.isnan(model.tests_.wald.statistic)
    assert_array_equal(np.isnan(model.confidence_interval().lower), [True, False])
    table = model.summary()
    assert table["hazard_ratio"].iloc[0] == 0
    assert np.isnan(table["p"].iloc[0])


def test_infinite_coefficients_that_cancel(rng):
    """x0 + x1 is ordinary, x0 - x1 separates: both are infinite, but not for everybody."""
    n = 100
    both = rng.normal(size=n)
    apart = (rng.random(n) < 0.4).astype(float)
    time = np.ceil(8 * rng.exponential(np.exp(-both)))
    y = rs.Surv(time, (rng.random(n) < 0.7) & (apart == 0))
    x = np.column_stack([both + apart, both - apart])
    with pytest.warns(ConvergenceWarning, match="'x0', 'x1'"):
        model = rs.Cox().fit(x, y)
    assert_array_equal(model.coef_, [-np.inf, np.inf])
    can = apart == 0
    alone = rs.Cox().fit(both[can, None], y[can])
    eta = model.predict(x)
    assert (eta[~can] == -np.inf).all()
    assert_allclose(eta[can], alone.predict(both[can, None]), rtol=1e-6)
    times = np.unique(time)
    survival = model.predict_survival_function(x, times)
    assert (survival[~can] == 1).all()
    expected = alone.predict_survival_function(both[can, None], times)
    assert_allclose(survival[can], expected, rtol=1e-6)
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict_survival_function(x, times), survival)
    assert_array_equal(again.predict(x), eta)


def test_folds_without_comparable_pairs_have_no_score(data):
    x, y = data
    model = rs.Cox().fit(x, y)
    with pytest.warns(rs.RisksetWarning, match="no pair .* is comparable"):
        assert np.isnan(model.score(x[:3], rs.Surv([1, 2, 3], [0, 0, 0])))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert model.score(x[:3], rs.Surv([1, 2, 3], [1, 0, 0])) in (0.0, 0.5, 1.0)


# ------------------------------------------------------------------- what new rows must not be


@pytest.mark.parametrize("model", [rs.Cox(), rs.FineGray(), rs.CauseSpecificCox()], ids=repr)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"times": [1.0, np.nan]}, "`times` must be finite"),
        ({"times": np.ma.masked_array([1.0, 2.0], [False, True])}, "`times` must not have missing"),
        ({"times": ["5"]}, "`times` must be numeric"),
        ({"strata": None}, "2 strata, so each new row needs its stratum"),
        (
            {"strata": ["u", "w", "u"]},
            r"`strata` has 'w' \(row 1\), a stratum that was not in the fit, .*known: 'u', 'v'",
        ),
        ({"strata": ["u", "v"]}, "one label for each of the 3 rows, but its shape is .2,."),
        ({"strata": 3}, r"one label for each of the 3 rows, but its shape is \(\)"),
        ({"offset": [0.0, 1.0]}, "`offset` must have one value for each of the 3 rows"),
        ({"X": np.zeros((3, 2))}, "X has 2 features, but .* is expecting 4"),
        ({"X": np.zeros(4)}, "X must have two dimensions"),
    ],
)
def test_impossible_questions(model, arguments, message, data):
    x, y = data
    model = clone(model).fit(x, y, strata=np.array(["u", "v"])[np.arange(len(y)) % 2])
    given = {"X": x[:3], "times": [1.0, 2.0], "strata": ["u", "v", "u"]} | arguments
    with pytest.raises(rs.InputError, match=message):
        model.predict_survival_function(**given)


@pytest.mark.parametrize("model", [rs.Cox(), rs.FineGray()], ids=repr)
def test_a_score_needs_as_many_rows_as_outcomes(model, data):
    x, y = data
    with pytest.raises(rs.InputError, match="X has 3 rows, but `y` has 120"):
        clone(model).fit(x, y).score(x[:3], y)


def test_the_linear_predictor_needs_no_stratum():
    frame = pd.DataFrame(
        {"time": [5, 8, 12, 3, 9, 11, 7, 10], "event": [1, 0, 1, 1, 1, 0, 1, 1], "x": range(8)}
    ).assign(site=list("ABABABAB"), room=[1, 1, 2, 2, 1, 1, 2, 2])
    for strata in ("site", ["site", "room"]):
        drop = "room" if strata == "site" else ()
        model = rs.Cox(rs.L2(1.0)).fit(rs.Dataset.from_frame(frame, strata=strata, drop=drop))
        expected = model.coef_[0] * frame["x"]
        for new in (frame[["x"]], frame[["x", "room"]], frame.assign(site="D")):
            np.testing.assert_allclose(model.predict(new), expected, rtol=1e-12)
        with pytest.raises(rs.InputError, match=r"column 'site'.* is missing\."):
            model.predict_survival_function(frame[["x"]], [5.0])
        label = "'D'" if strata == "site" else r"\('D', 1\)"
        message = rf"column 'site'.* has {label} \(row 0\), a stratum that was not in the fit"
        with pytest.raises(rs.InputError, match=message):
            model.predict_survival_function(frame.assign(site="D"), [5.0])
