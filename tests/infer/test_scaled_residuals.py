"""Scaled Schoenfeld residuals and their smooth curve against R's cox.zph and plot.cox.zph.

The numbers are those of tests/golden/make_zph.R.
"""

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import riskset as rs
from riskset._errors import NotDefinedError
from riskset.infer.scaled_residuals import natural_spline

GOLDEN = Path(__file__).parents[1] / "golden"
ZPH = json.loads((GOLDEN / "zph.json").read_text())
Z = 1.959963984540054


def table(name: str) -> np.ndarray:
    data = np.genfromtxt(GOLDEN / name, delimiter=",", names=True, deletechars="", dtype=float)
    return data[~np.isnan(data.view((float, len(data.dtype.names)))).any(axis=1)]


def zph_of(case: dict):
    data = table(case["file"])
    x = rs.Design.from_columns({name: data[name] for name in case["columns"]})
    if "start" in data.dtype.names:
        y = rs.Surv(data["stop"], data["event"] == 1, data["start"])
    else:
        y = rs.Surv(data["time"], data["event"] == 1)
    given = (
        {} if "sex" in case["columns"] or "stop" in data.dtype.names else {"strata": data["sex"]}
    )
    model = rs.Cox(ties=case["ties"], tol=1e-12).fit(x, y, **given)
    return model.test_proportionality(x, y, case["transform"], **given)


@pytest.mark.parametrize("name", list(ZPH))
def test_residuals_are_those_of_r(name: str) -> None:
    case = ZPH[name]
    found = zph_of(case).scaled_residuals()
    assert found.values.shape == (case["n"], len(case["columns"]))
    order = np.lexsort((found.values[:, 0], found.time))[: len(case["time"])]
    assert_allclose(found.time[order], case["time"])
    assert_allclose(found.transformed[order], case["x"], rtol=1e-9)
    assert_allclose(found.values[order], case["y"], rtol=1e-6, atol=1e-8)
    assert_allclose(found.values.sum(axis=0), case["sum"], rtol=1e-6, atol=1e-6)
    assert_allclose(found.variance, case["var"], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", list(ZPH))
def test_curves_are_those_of_r(name: str) -> None:
    case = ZPH[name]
    found = zph_of(case).scaled_residuals()
    for parameter, expected in zip(case["columns"], case["curves"], strict=True):
        curve = found.smooth(parameter)
        at = [0, 9, 19, 29, 39]
        assert_allclose(curve.transformed[at], expected["x"], rtol=1e-9)
        assert_allclose(curve.coef[at], expected["fit"], rtol=1e-6, atol=1e-8)
        half = np.array(expected["half"]) * Z / 2  # R's bands are two standard errors wide
        assert_allclose(curve.upper[at] - curve.coef[at], half, rtol=1e-6)
        assert_allclose(curve.coef[at] - curve.lower[at], half, rtol=1e-6)


def test_weighted_mean_is_the_estimate() -> None:
    """A row of weight 2 has the residuals of two rows."""
    data = table("veteran.csv")
    x = rs.Design.from_columns({"age": data["age"], "karno": data["karno"]})
    y = rs.Surv(data["time"], data["status" if "status" in data.dtype.names else "event"] == 1)
    weight = 1.0 + (np.arange(data.size) % 3 == 0)
    twice = np.repeat(np.arange(data.size), weight.astype(int))
    model = rs.Cox(ties="breslow", tol=1e-12).fit(x, y, sample_weight=weight)
    found = model.test_proportionality(x, y, sample_weight=weight).scaled_residuals()
    assert_allclose(found.weight @ found.values / found.weight.sum(), model.coef_, atol=1e-8)
    repeated = rs.Design.from_columns({"age": data["age"][twice], "karno": data["karno"][twice]})
    again = rs.Cox(ties="breslow", tol=1e-12).fit(repeated, y[twice])
    other = again.test_proportionality(repeated, y[twice]).scaled_residuals()
    assert_allclose(found.variance, other.variance, rtol=1e-7)
    np.testing.assert_allclose(found.values[0], other.values[0], rtol=1e-7)


def test_a_covariate_without_spread_in_a_stratum_has_no_residuals_there() -> None:
    rng = np.random.default_rng(5)
    stratum = np.repeat([0, 1], 60)
    x = np.column_stack([rng.normal(size=120), np.where(stratum == 0, rng.normal(size=120), 3.0)])
    y = rs.Surv(rng.exponential(1.0, 120), np.ones(120, dtype=bool))
    model = rs.Cox(tol=1e-12).fit(x, y, strata=stratum)
    found = model.test_proportionality(x, y, strata=stratum).scaled_residuals()
    outside = stratum[found.row] == 1
    np.testing.assert_array_equal(np.isnan(found.values[:, 1]), outside)
    assert np.isfinite(found.values[:, 0]).all()
    # In the first stratum both share the mean information of its 60 events.
    assert found.smooth("x1").coef.size == 40


def test_natural_splines_are_straight_beyond_their_knots() -> None:
    knots = np.array([0.0, 1.0, 2.5, 4.0])
    basis = natural_spline(np.linspace(-3, 7, 101), knots)
    assert np.linalg.matrix_rank(basis) == 4
    for part in (basis[:30], basis[71:]):  # below 0, and above 4
        assert_allclose(np.diff(part, 2, axis=0), 0, atol=1e-10)


def test_refusals() -> None:
    test = zph_of(ZPH["lung"])
    found = test.scaled_residuals()
    with pytest.raises(rs.InputError, match="did you mean 'age'"):
        found.smooth("agge")
    with pytest.raises(rs.InputError, match="`df` must be a whole number of at least 2"):
        found.smooth("age", df=1)
    with pytest.raises(rs.InputError, match="as many different times"):
        found.smooth("age", df=1000)
    again = pickle.loads(pickle.dumps(test))
    assert again.global_p_value == test.global_p_value
    with pytest.raises(NotDefinedError, match="that was pickled"):
        again.scaled_residuals()
