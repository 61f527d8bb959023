"""`solver="ccd"` through the public API: values of other programs, and what it does not do."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning

import riskset as rs
from estimators import test_finegray_golden as finegray
from estimators import test_golden as cox
from reference import matrix

CCD = {"solver": "ccd", "tol": 1e-11, "max_iter": 3000}
"""Clinical covariates without a penalty are correlated."""


@pytest.mark.parametrize("block", [b for b in cox.BLOCKS if b.file != "flchain"], ids=str)
def test_cox_against_r(block):
    model = rs.Cox(ties=block.ties, cause=block.cause, **CCD)
    model.fit(block.x, block.y, **block.arguments)
    assert model.status_ == "converged"
    assert_allclose(model.coef_, list(block.expected["coef"].values()), rtol=1e-7)
    if "loglik" in block.expected:
        assert_allclose(model.log_likelihood_, block.expected["loglik"], rtol=1e-10)


@pytest.mark.parametrize("key", ["cyclops_l1", "cyclops_l2"])
def test_cox_against_cyclops(key):
    expected = cox.LUNG_FILE[key]
    penalty = cox.cyclops_penalty(expected, [k - 1 for k in expected["exclude"]])
    x = matrix(cox.LUNG.table, cox.LUNG_FILE["columns"])
    cox.check_cyclops(rs.Cox(penalty, **CCD).fit(x, cox.LUNG.y), expected)


@pytest.mark.parametrize("expected", cox.SPARSE, ids=lambda e: f"{e['prior']}-{e['variance']}")
def test_cox_against_cyclops_on_sparse_columns(expected):
    penalty = cox.cyclops_penalty(expected, [str(k) for k in expected["exclude"]])
    cox.check_cyclops(rs.Cox(penalty, **CCD).fit(cox.sparse_data()), expected)


@finegray.each_crr
def test_finegray_against_r(file, key):
    x, y, _ = finegray.data(file)
    expected = finegray.golden(file, key)
    model = rs.FineGray(cause=int(expected["failcode"]), **CCD).fit(x, y)
    assert model.status_ == "converged"
    assert_allclose(model.coef_, list(expected["coef"].values()), rtol=1e-7)
    assert_allclose(model.log_likelihood_, expected["loglik"], rtol=1e-10)


@pytest.mark.parametrize("expected", finegray.golden("sparse", "fgr"), ids=lambda e: e["variance"])
def test_finegray_against_cyclops_on_sparse_columns(expected):
    model = rs.FineGray(finegray.penalty(expected), **CCD).fit(finegray.sparse_data())
    finegray.check_cyclops(model, expected)


def test_sweeps_are_counted_and_the_limit_is_said(data):
    model = rs.Cox(solver="ccd", tol=1e-12, max_iter=2)
    with pytest.warns(ConvergenceWarning, match="stopped after 2 sweeps"):
        model.fit(*data)
    assert model.status_ == "max_iter"
    assert model.n_iter_ == 2


def test_a_path_is_followed_by_the_solver_of_the_model(data):
    kind = rs.L1(1.0)
    slow = rs.path(rs.Cox(kind, solver="ccd", tol=1e-10, max_iter=3000), *data, n_penalties=6)
    fast = rs.path(rs.Cox(kind, tol=1e-10), *data, n_penalties=6)
    assert set(slow.statuses) == {"converged"}
    assert_allclose(slow.coefs, fast.coefs, atol=1e-7)
    assert not np.array_equal(slow.coefs, fast.coefs)


def test_causes_are_fitted_by_it():
    x, y, _ = finegray.data("pbc")
    slow = rs.CauseSpecificCox(**CCD).fit(x, y)
    fast = rs.CauseSpecificCox(tol=1e-11).fit(x, y)
    for cause in fast.causes_:
        assert_allclose(slow.models_[cause].coef_, fast.models_[cause].coef_, rtol=1e-7)


def test_many_fits_at_once_are_refused(data):
    message = "fits many replicates at once.*'newton', but it is 'ccd'.\nHint: leave `solver` out"
    for model in (rs.CoxCV(rs.L1(), solver="ccd"), rs.FineGrayCV(solver="ccd")):
        with pytest.raises(rs.InputError, match=f"cross-validation {message}"):
            model.fit(*data)
    model = rs.Cox(solver="ccd").fit(*data)
    with pytest.raises(rs.InputError, match=f"cross-validation {message}"):
        rs.cross_validate(model, *data)
    with pytest.raises(rs.InputError, match=f"a bootstrap {message}"):
        model.bootstrap()
    assert len(model.set_params(solver="newton").bootstrap(replicates=3).statuses) == 3
