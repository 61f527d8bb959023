"""Tests and intervals of coefficients."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from infer.problems import PROBLEMS, Steps, information, make, newton, score_rows
from riskset import _errors
from riskset.data.design import Design
from riskset.infer import variance, wald
from storages import each_storage

each_ties = pytest.mark.parametrize("ties", ["breslow", "efron"])


@each_ties
@pytest.mark.parametrize("name", ["ties", "strata", "everything"])
def test_score_tests_follow_the_definition(name, ties):
    problem = PROBLEMS[name]
    offset = np.random.default_rng(2).normal(size=problem.outcome.n_rows)
    at_null = replace(problem, outcome=problem.outcome.replace(offset=offset), eta=offset)
    loss, design = at_null.loss(ties), at_null.design
    steps = Steps.of(at_null, ties)
    rows = score_rows(at_null, steps, problem.x).astype(float) * problem.outcome.weight[:, None]
    u, v = rows.sum(axis=0), information(steps, problem.x).astype(float)
    got = wald.score_tests(loss, design, robust=True)
    assert got.score.statistic == pytest.approx(u @ np.linalg.solve(v, u), rel=1e-8)
    assert got.score.df == 3
    clusters = np.zeros((problem.outcome.cluster.max() + 1, 3))
    np.add.at(clusters, problem.outcome.cluster, rows)
    want = u @ np.linalg.solve(clusters.T @ clusters, u)
    assert got.robust.statistic == pytest.approx(want, rel=1e-7)
    assert wald.score_tests(loss, design).robust is None


@each_ties
def test_tests_agree_and_ignore_columns_that_repeat_others(ties):
    problem = make(400, seed=41, n_times=60)
    loss, design = problem.loss(ties), problem.design
    coef = newton(loss, design)
    eta = design.dot(coef)
    model = variance.model_covariance(loss, design, eta)
    robust = variance.robust_covariance(loss, design, eta, model.inverse)
    score = wald.score_tests(loss, design).score
    ratio = wald.likelihood_ratio_test(
        loss.evaluate(eta).log_likelihood, loss.evaluate(loss.offset).log_likelihood, score.df
    )
    tests = [score, ratio, wald.wald_test(coef, model), wald.wald_test(coef, robust)]
    statistics = np.array([test.statistic for test in tests])
    np.testing.assert_allclose(statistics[:3], statistics[0], rtol=0.02)
    assert {test.df for test in tests} == {3}
    assert wald.wald_test(coef, model).statistic == pytest.approx(
        coef @ np.linalg.solve(model.matrix, coef), rel=1e-9
    )
    assert wald.wald_test(coef, robust).statistic == pytest.approx(
        coef @ np.linalg.solve(robust.matrix, coef), rel=1e-9
    )
    # One column more that is the sum of two: the same tests, wherever the coefficients are put.
    wide = Design.from_dense(np.column_stack([problem.x, problem.x[:, 0] + problem.x[:, 2]]))
    for split in (0.0, 0.3):
        spread = np.array([coef[0] - split, coef[1], coef[2] - split, split])
        again = variance.model_covariance(loss, wide, eta)
        robust = variance.robust_covariance(loss, wide, eta, again.inverse)
        found = [wald.wald_test(spread, again), wald.wald_test(spread, robust)]
        np.testing.assert_allclose([t.statistic for t in found], statistics[2:], rtol=1e-7)
        assert [t.df for t in found] == [3, 3]
    again = wald.score_tests(loss, wide).score
    assert again.df == 3
    assert again.statistic == pytest.approx(score.statistic, rel=1e-9)


@pytest.mark.parametrize("size", [1e200, 1e-200])
def test_tests_do_not_depend_on_units(size):
    problem = PROBLEMS["everything"]
    factor = np.array([size, 1.0, 3.0])
    loss, coef = problem.loss("breslow"), np.array([0.3, -0.2, 0.1])
    found = []
    for f in (np.ones(3), factor):
        design = Design.from_dense(problem.x * f)
        model = variance.model_covariance(loss, design, problem.eta)
        robust = variance.robust_covariance(loss, design, problem.eta, model.inverse)
        tests = wald.score_tests(loss, design, robust=True)
        found.append(
            [
                tests.score,
                tests.robust,
                wald.wald_test(coef / f, model),
                wald.wald_test(coef / f, robust),
            ]
        )
    assert [t.df for t in found[1]] == [3, 3, 3, 3]
    np.testing.assert_allclose(*[[t.statistic for t in row] for row in found], rtol=1e-9)


@each_storage
@pytest.mark.parametrize("far", [1e3, 1e6, 1e9])
def test_the_score_test_does_not_see_distances_between_strata(store, far):
    problem = make(80, seed=33, n_strata=4)
    loss = problem.loss("efron")
    x = np.round(problem.x * 2**20) / 2**20  # so that the sum is exact
    near = wald.score_tests(loss, store(x)).score
    x = x + np.outer(problem.outcome.stratum, [far, 0.0, 0.0])
    got = wald.score_tests(loss, store(x)).score
    assert got.df == near.df == 3
    assert got.statistic == pytest.approx(near.statistic, rel=1e-8)


def test_fewer_clusters_than_columns():
    problem = PROBLEMS["ties"]
    outcome = problem.outcome.replace(cluster=np.arange(40) % 2)
    loss, design = replace(problem.loss("breslow"), outcome=outcome), problem.design
    coef = newton(loss, design)
    model = variance.model_covariance(loss, design, design.dot(coef))
    robust = variance.robust_covariance(loss, design, design.dot(coef), model.inverse)
    # The scores of two clusters sum to 0 at the estimate: one direction.
    assert wald.wald_test(coef, robust).df == 1


def test_p_values_and_intervals():
    test = wald.ChiSquareTest(7.3, 3)
    assert test.p_value == pytest.approx(stats.chi2.sf(7.3, 3), rel=1e-13)
    assert np.isnan(wald.ChiSquareTest(0.0, 0).p_value)
    z = np.array([-1.96, 0.0, 38.0])
    np.testing.assert_allclose(wald.normal_p_value(z), 2 * stats.norm.sf(np.abs(z)), rtol=1e-12)
    lower, upper = wald.wald_interval(np.array([1.0, 2.0]), np.array([0.5, np.nan]), 0.9)
    half = stats.norm.ppf(0.95) * 0.5
    np.testing.assert_allclose([lower[0], upper[0]], [1 - half, 1 + half], rtol=1e-14)
    assert np.isnan([lower[1], upper[1]]).all()
    for level in (0.0, 1.0, 95.0, np.nan, None, "0.95"):
        with pytest.raises(_errors.InputError, match="level"):
            wald.wald_interval(np.zeros(1), np.ones(1), level)


def test_the_likelihood_ratio_is_never_negative():
    assert wald.likelihood_ratio_test(-10.0, -10.0 + 1e-13, 2).statistic == 0.0
