"""Values of cmprsk's crr, survival's finegray and Cyclops on real data, through the public API.

`golden/README.md` says how they were made. Tolerances: coefficients 1e-7, log likelihoods 1e-10,
robust variances 1e-6, jumps of the baseline 1e-8 and cumulative incidences 1e-7; Cyclops, which
stops early, 5e-6 absolute for coefficients and 3e-8 for log likelihoods.
"""

import functools

import numpy as np
import pytest
from numpy.testing import assert_allclose

import riskset as rs
from reference import GOLDEN, matrix, read_json, read_table
from riskset.data.outcome import Outcome
from riskset.model.censoring import CensoringDistribution

pytestmark = pytest.mark.portability

TOL = 1e-11

CRR = [
    ("mgus2", "crr_cause1"),
    ("mgus2", "crr_cause2"),
    ("pbc", "crr_death"),
    ("pbc", "crr_transplant"),
]
CYCLOPS = ["cyclops_fgr_l1", "cyclops_fgr_none", "cyclops_fgr_l2"]

# Keys of each file that are tested here.
TESTED = {
    "mgus2": {
        "crr_cause1",
        "crr_cause2",
        "finegray_coxph_breslow_cause1",
        "censoring_survival_left_limit_head",
        *CYCLOPS,
    },
    "pbc": {"crr_death", "crr_transplant"},
    "sparse": {"fgr"},
}


def golden(file, key):
    return read_json(GOLDEN / f"{file}.json")[key]


@functools.cache
def data(file):
    table = read_table(GOLDEN / f"{file}.csv")
    columns = golden(file, "columns")
    return matrix(table, columns), rs.Surv(table["time"], table["event"]), table


@functools.cache
def crr(file, key):
    x, y, _ = data(file)
    expected = golden(file, key)
    return rs.FineGray(cause=int(expected["failcode"]), tol=TOL).fit(x, y), expected


each_crr = pytest.mark.parametrize(("file", "key"), CRR, ids=lambda v: v)


@each_crr
def test_coefficients(file, key):
    model, expected = crr(file, key)
    assert model.status_ == "converged"
    assert model.kkt_ <= TOL
    assert model.n_rows_ == expected["n"]
    assert_allclose(model.coef_, list(expected["coef"].values()), rtol=1e-7)
    assert_allclose(model.log_likelihood_, expected["loglik"], rtol=1e-10)
    assert_allclose(model.null_log_likelihood_, expected["loglik_null"], rtol=1e-10)


@each_crr
def test_robust_variance(file, key):
    model, expected = crr(file, key)
    assert model.is_robust_
    variance = np.array(expected["vcov_robust"])
    assert_allclose(model.robust_variance_, variance, rtol=1e-6)
    assert_allclose(model.robust_standard_error_, np.sqrt(variance.diagonal()), rtol=1e-6)
    coef = np.array(list(expected["coef"].values()))
    assert_allclose(model.tests_.wald.statistic, coef @ np.linalg.solve(variance, coef), rtol=1e-6)


@each_crr
def test_baseline_jumps(file, key):
    model, expected = crr(file, key)
    frame = model.baseline_hazard()
    k = len(expected["baseline_times"])
    assert_allclose(np.asarray(frame.index)[:k], expected["baseline_times"], rtol=0)
    assert_allclose(np.asarray(frame["hazard"])[:k], expected["baseline_jumps"], rtol=1e-8)
    assert_allclose(
        np.asarray(frame["cumulative_hazard"])[:k],
        np.cumsum(expected["baseline_jumps"]),
        rtol=1e-8,
    )


@pytest.mark.parametrize("key", ["crr_cause1", "crr_cause2"])
def test_cumulative_incidence(key):
    model, expected = crr("mgus2", key)
    predict = expected["predict"]
    new = np.array([list(row.values()) for row in predict["newx"]])
    got = model.predict_cumulative_incidence(new, predict["times"])
    assert_allclose(got, np.transpose(predict["cif"]), rtol=1e-7)


def test_the_other_convention_for_tied_censorings():
    x, y, _ = data("mgus2")
    expected = golden("mgus2", "finegray_coxph_breslow_cause1")
    model = rs.FineGray(cause=1, censoring_ties="finegray", tol=TOL).fit(x, y)
    assert model.status_ == "converged"
    assert_allclose(model.coef_, list(expected["coef"].values()), rtol=1e-7)
    assert_allclose(model.null_log_likelihood_, expected["loglik"][0], rtol=1e-10)
    assert_allclose(model.log_likelihood_, expected["loglik"][1], rtol=1e-10)


def test_censoring_survival():
    _, _, table = data("mgus2")
    expected = golden("mgus2", "censoring_survival_left_limit_head")
    outcome = Outcome.build(table["time"], table["event"], cause=1)
    assert_allclose(
        CensoringDistribution.estimate(outcome).own[: len(expected)], expected, rtol=1e-12
    )


# -------------------------------------------------------------------------------------- Cyclops


def check_cyclops(model, expected):
    assert model.status_ == "converged"
    assert_allclose(model.coef_, list(expected["coef"].values()), rtol=0, atol=5e-6)
    assert_allclose(model.log_likelihood_, expected["loglik"], rtol=3e-8)


def penalty(expected):
    kinds = {"laplace": rs.L1, "normal": rs.L2}
    if expected["prior"] not in kinds:
        return None
    return kinds[expected["prior"]].from_variance(expected["variance"])


@pytest.mark.parametrize("key", CYCLOPS)
def test_cyclops(key):
    x, y, _ = data("mgus2")
    expected = golden("mgus2", key)
    check_cyclops(rs.FineGray(penalty(expected), tol=TOL).fit(x, y), expected)


@functools.cache
def sparse_data():
    return rs.read_dataset(
        GOLDEN / "sparse_outcomes.csv",
        covariates=GOLDEN / "sparse_covariates.csv",
        event="y_competing",
        drop="y",
    )


@pytest.mark.parametrize("expected", golden("sparse", "fgr"), ids=lambda e: f"{e['variance']}")
def test_cyclops_long_table(expected):
    assert list(sparse_data().design.names) == list(expected["coef"])
    check_cyclops(rs.FineGray(penalty(expected), tol=TOL).fit(sparse_data()), expected)
