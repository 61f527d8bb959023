"""Values of R's `finegray` of start-stop outcomes, and of a weighted `coxph` on its rows.

`golden/late/make_finegray_late.R` made them. R takes the weights of the expanded rows for known, so
its robust variance is that of G and H as given (`censoring_probability`).
"""

import functools

import numpy as np
import pytest
from numpy.testing import assert_allclose

import riskset as rs
from estimators.finegray import fit
from reference import GOLDEN, matrix, read_json, read_table
from riskset.model.censoring import CensoringDistribution

pytestmark = pytest.mark.portability

FOLDER = GOLDEN / "late"
MGUS2, PBCSEQ = ["male", "hgb", "mspike"], ["age", "log_bili", "albumin"]

CASES = {
    "mgus2_1": ("mgus2_age", MGUS2, {}),
    "mgus2_2": ("mgus2_age", MGUS2, {"cause": 2}),
    "mgus2_1_weighted": ("mgus2_age", MGUS2, {"weight": "weight"}),
    "mgus2_1_strata": ("mgus2_age", MGUS2[1:], {"strata": "male"}),
    "pbcseq_2": ("pbcseq", PBCSEQ, {"cause": 2}),
    "pbcseq_1": ("pbcseq", PBCSEQ, {}),
}

each_case = pytest.mark.parametrize("key", CASES)


@functools.cache
def case(key):
    """Expected values, covariates, `Surv`, arguments and parameters of a fit."""
    file, columns, about = CASES[key]
    table = read_table(FOLDER / f"{file}.csv")
    y = rs.Surv(table["stop"], table["event"], table["start"])
    data = {"cluster": table["id"]}
    parameters = {
        "cause": about.get("cause", 1),
        "censoring_ties": "finegray",
        "censoring_weights": "none",
        "person": "cluster",
    }
    if "weight" in about:
        data["sample_weight"] = table[about["weight"]]
    if "strata" in about:
        data["strata"] = parameters["censoring_group"] = table[about["strata"]]
    expected = read_json(FOLDER / "finegray_late.json")[key]
    return expected, matrix(table, columns), y, data, parameters


@functools.cache
def fitted(key):
    _, x, y, data, parameters = case(key)
    return fit(x, y, **data, **parameters)


@each_case
def test_coefficients_and_likelihood(key):
    expected, model = case(key)[0], fitted(key)
    assert model.status_ == "converged"
    assert model.n_rows_ == expected["n"]
    assert_allclose(model.coef_, expected["coef"], rtol=1e-8)
    assert_allclose(model.log_likelihood_, expected["loglik"], rtol=1e-11)
    assert_allclose(model.null_log_likelihood_, expected["loglik_null"], rtol=1e-11)
    assert_allclose(model.variance_, expected["vcov_naive"], rtol=1e-7, atol=1e-12)


@each_case
def test_weights_of_risk_sets(key):
    """Sums of weights over the risk sets at some times: covariates and coefficients are 0."""
    expected, x, y, data, parameters = case(key)
    if "strata" in data:
        return  # R adds up all strata
    null = rs.FineGray(rs.L1(1e9), **parameters).fit(x, y, **data).baseline_hazard()
    hazard = dict(zip(null.index, null["hazard"], strict=True))
    weight = data.get("sample_weight", np.ones(len(y)))
    for time, size in zip(expected["times"], expected["sizes"], strict=True):
        events = weight[(y["time"] == time) & (y["event"] == parameters["cause"])].sum()
        assert_allclose(events / hazard[time], size, rtol=1e-11)
    assert expected["largest_weight"] > 1.5  # H rises


@each_case
def test_baseline(key):
    expected, model = case(key)[0], fitted(key)
    if "cumulative_hazard" in expected:
        zero = np.zeros((1, model.coef_.size))
        got = model.predict_cumulative_hazard_function(zero, expected["times"])
        assert_allclose(got[0], expected["cumulative_hazard"], rtol=1e-8)


@each_case
def test_robust_variance(key):
    expected, x, y, data, parameters = case(key)
    root = np.sqrt(np.diag(expected["vcov_robust"]))
    # Estimated weights change the errors by at most a few percent here.
    assert_allclose(fitted(key).robust_standard_error_, root, rtol=0.02)
    if "censoring_group" in parameters:
        return  # probabilities of groups differ at one time
    own = own_probability(key)
    known = {name: parameters[name] for name in ("cause", "person")}
    model = fit(x, y, **data, **known, censoring_probability=own)
    assert_allclose(model.robust_variance_, expected["vcov_robust"], rtol=1e-6, atol=1e-11)


def own_probability(key):
    _, x, y, data, parameters = case(key)
    model = fitted(key)
    loss = model._fitted.training.loss
    assert isinstance(loss.censoring, CensoringDistribution)
    return loss.censoring.own
