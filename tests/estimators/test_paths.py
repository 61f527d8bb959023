"""Paths of penalties."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

import riskset as rs


def test_path_is_the_fits_one_by_one(data):
    x, y = data
    kinds = [
        rs.L1(1.0, unpenalized=["x1"]),
        rs.L2(1.0),
        rs.ElasticNet(l1=3.0, l2=1.0, factor={"x2": 2.0}),
    ]
    for kind in kinds:
        result = rs.path(rs.Cox(kind, tol=1e-10), x, y, n_penalties=8, min_ratio=1e-3)
        assert len(result) == 8
        assert set(result.statuses) == {"converged"}
        assert (result.kkt <= 1e-10).all()
        assert_allclose(result.strengths[-1] / result.strengths[0], 1e-3)
        for k in (0, 3, 7):
            cold = rs.Cox(result.penalties[k], tol=1e-10).fit(x, y)
            assert_allclose(result.coefs[k], cold.coef_, rtol=1e-6, atol=1e-8)
            assert_allclose(result.log_likelihoods[k], cold.log_likelihood_, rtol=1e-10)
            assert_allclose(result.objectives[k], cold.objective_, rtol=1e-10)


def test_path_starts_where_the_first_coefficient_enters(data):
    x, y = data
    result = rs.path(rs.Cox(rs.L1(1.0, unpenalized=["x1"])), x, y, n_penalties=3)
    assert list(result.n_nonzero)[0] == 1
    below = rs.Cox(rs.L1(0.99 * result.strengths[0], unpenalized=["x1"])).fit(x, y)
    assert np.count_nonzero(below.coef_) == 2


@pytest.mark.parametrize("l1_ratio", [0.5, 1e-3, 1e-6])
def test_path_of_an_elastic_net_starts_with_zeros(data, l1_ratio):
    x, y = data
    penalty = rs.ElasticNet(l1=l1_ratio, l2=1 - l1_ratio)
    result = rs.path(rs.Cox(penalty), x, y, n_penalties=3, min_ratio=0.9)
    assert result.n_nonzero[0] == 0
    assert result.n_nonzero[1] == 1


def test_path_of_a_ridge_starts_as_an_elastic_net_with_little_l1(data):
    x, y = data
    ridge = rs.path(rs.Cox(rs.L2(1.0)), x, y, n_penalties=1)
    lasso = rs.path(rs.Cox(rs.L1(1.0)), x, y, n_penalties=1)
    assert_allclose(ridge.strengths, 1000 * lasso.strengths, rtol=1e-12)


def test_results_show_themselves_on_one_line(data):
    x, y = data
    result = rs.path(rs.Cox(rs.L1()), x, y, n_penalties=3)
    assert repr(result).startswith("PathResult(3 penalties, strength ")
    assert repr(result).endswith("4 covariates, 0 to 4 not 0; 3 converged)")
    test = rs.Cox().fit(x, y).test_proportionality(x, y)
    assert repr(test).startswith("ProportionalityTest(transform='km', 4 covariates, global chi-sq")
    assert f"on 4 df, p = {test.global_p_value:.4g})" in repr(test)


def test_path_of_given_penalties(data):
    x, y = data
    by_strength = rs.path(rs.Cox(rs.L1(9.0)), x, y, penalties=[10.0, 2.0])
    by_penalty = rs.path(rs.Cox(), x, y, penalties=[rs.L1(10.0), rs.L1(2.0)])
    assert_array_equal(by_strength.coefs, by_penalty.coefs)
    assert_array_equal(by_strength.strengths, [10.0, 2.0])


def test_models_of_a_path(data):
    x, y = data
    table = pd.DataFrame(x, columns=list("abcd"))
    result = rs.path(rs.Cox(rs.L1(1.0)), table, y, n_penalties=5)
    model = result.model(-1)
    assert model.penalty == result.penalties[-1]
    assert_allclose(model.coef_, result.coefs[-1], rtol=1e-6, atol=1e-9)
    cold = rs.Cox(result.penalties[-1]).fit(table, y)
    times = np.unique(y["time"])
    assert_allclose(
        model.predict_survival_function(table, times),
        cold.predict_survival_function(table, times),
        rtol=1e-6,
    )
    frame = result.to_frame()
    assert isinstance(frame, pd.DataFrame)
    assert list(frame["n_nonzero"]) == list(result.n_nonzero)


def test_a_path_says_when_it_did_not_converge(data):
    x, y = data
    with pytest.warns(ConvergenceWarning, match=r"of 4 solutions are not 'converged'"):
        result = rs.path(rs.Cox(rs.L1(1.0), max_iter=1, tol=1e-12), x, y, n_penalties=4)
    assert "max_iter" in result.statuses


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_penalties": 0}, "`n_penalties` must be a whole number"),
        ({"n_penalties": np.nan}, "`n_penalties` must be a whole number"),
        ({"n_penalties": None}, "`n_penalties` must be a whole number"),
        ({"min_ratio": 1.0}, "`min_ratio` must be between 0 and 1"),
        ({"min_ratio": "small"}, "`min_ratio` must be between 0 and 1"),
        ({"penalties": 3.0}, "`penalties` must be a sequence"),
        ({"penalties": []}, "`penalties` is empty"),
    ],
)
def test_impossible_paths(data, arguments, message):
    with pytest.raises(rs.InputError, match=message):
        rs.path(rs.Cox(rs.L1()), *data, **arguments)


@pytest.mark.parametrize("noise", [0.0, 1e-16])
def test_a_path_where_the_gradient_is_0(noise):
    """Each value of x has its opposite with the same outcome: every solution is the null model."""
    x = np.tile([1.0, -1.0], 40)[:, None] * (1 + noise * np.arange(80)[:, None])
    y = rs.Surv(np.repeat(np.arange(1.0, 41.0), 2), np.repeat(np.arange(40) % 2, 2))
    for penalty in (rs.L1(1.0), rs.L2(1.0)):
        result = rs.path(rs.Cox(penalty), x, y, n_penalties=5)
        np.testing.assert_allclose(result.coefs, 0, atol=1e-12)
        assert set(result.statuses) == {"converged"}
        # Of a column of ones and minus ones the gradient has the size of the root of 40 events.
        assert result.strengths[0] * penalty.l1 == pytest.approx(np.sqrt(40) * penalty.l1)
        assert [note.code for note in result.notes] == ["no_signal"]
    assert rs.path(rs.Cox(rs.L1()), x + np.arange(80)[:, None], y, n_penalties=2).notes == ()


def test_no_path_without_information(data):
    _, y = data
    with pytest.raises(rs.InputError, match="no penalised covariate carries information"):
        rs.path(rs.Cox(rs.L1()), np.ones((120, 2)), y)


@pytest.mark.parametrize(
    ("caller", "options"),
    [(rs.path, {}), (rs.cross_validate, {}), (rs.profile, {"parameter": "x0"})],
)
@pytest.mark.parametrize("wrong", [np.eye(3), rs.Cox, rs.CauseSpecificCox()])
def test_what_takes_a_model_refuses_other_things(caller, options, wrong):
    with pytest.raises(rs.InputError, match="takes a Cox or a Fine-Gray model first"):
        caller(wrong, np.eye(3), rs.Surv([1, 2, 3], [1, 0, 1]), **options)
