"""Variances against their definitions, and what cannot be identified."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from infer.problems import (
    PROBLEMS,
    RUNTIME,
    Steps,
    dfbeta_residuals,
    information,
    make,
    newton,
    score_rows,
)
from riskset.data.design import Design
from riskset.data.outcome import Outcome
from riskset.infer import variance
from riskset.model.censoring import CensoringDistribution
from riskset.model.cox import CoxLoss
from riskset.model.finegray import FineGrayLoss
from storages import each_storage

CASES = Path(__file__).parents[1] / "cases"

each_ties = pytest.mark.parametrize("ties", ["breslow", "efron"])
LARGE = {k: v for k, v in PROBLEMS.items() if k not in ("one_row", "two_rows", "one_early_row")}
each_problem = pytest.mark.parametrize("problem", LARGE.values(), ids=LARGE)


def by_definition(problem, ties):
    steps = Steps.of(problem, ties)
    inverse = np.linalg.inv(information(steps, problem.x).astype(float))
    rows = score_rows(problem, steps, problem.x).astype(float) @ inverse
    return inverse, rows * problem.outcome.weight[:, None]


@each_ties
@each_problem
def test_model_and_robust_covariance_follow_the_definition(problem, ties):
    loss, design = problem.loss(ties), problem.design
    inverse, dfbeta = by_definition(problem, ties)
    model = variance.model_covariance(loss, design, problem.eta)
    np.testing.assert_allclose(model.matrix, inverse, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(model.standard_error, np.sqrt(inverse.diagonal()), rtol=1e-8)
    assert model.rank == 3
    by_cluster = np.zeros((problem.outcome.cluster.max() + 1, 3))
    np.add.at(by_cluster, problem.outcome.cluster, dfbeta)
    got = variance.robust_covariance(loss, design, problem.eta, model.inverse)
    np.testing.assert_allclose(got.matrix, by_cluster.T @ by_cluster, rtol=1e-7, atol=1e-12)
    loss = replace(loss, outcome=problem.outcome.replace(cluster=None))
    got = variance.robust_covariance(loss, design, problem.eta, model.inverse, np.array([2]))
    np.testing.assert_allclose(got.matrix, (dfbeta.T @ dfbeta)[2:, 2:], rtol=1e-7)


def test_columns_without_information_are_marked_and_the_others_stay_right():
    problem = make(80, seed=31)
    a, b, c = problem.x.T
    x = np.column_stack([np.full(80, 7.0), a, c, a - 3 * c, b])
    design = Design.from_dense(x)
    loss = problem.loss("efron")
    got = variance.model_covariance(loss, design, problem.eta)
    assert got.rank == 3
    np.testing.assert_array_equal(got.identified, [False, False, False, False, True])
    np.testing.assert_array_equal(np.isnan(got.standard_error), ~got.identified)
    whole = variance.model_covariance(
        loss, Design.from_dense(np.column_stack([a, c, b])), problem.eta
    )
    assert got.standard_error[4] == pytest.approx(whole.standard_error[2], rel=1e-9)
    robust = variance.robust_covariance(loss, design, problem.eta, got.inverse)
    np.testing.assert_array_equal(np.isnan(robust.standard_error), ~got.identified)


def test_aliased_columns_are_held_fixed():
    problem = make(80, seed=31)
    a, b, c = problem.x.T
    design = Design.from_dense(np.column_stack([a, c, a - 3 * c, b]))
    loss = problem.loss("breslow")
    kept = np.array([0, 1, 3])
    got = variance.model_covariance(loss, design, problem.eta, kept)
    small = Design.from_dense(np.column_stack([a, c, b]))
    want = variance.model_covariance(loss, small, problem.eta)
    np.testing.assert_array_equal(got.identified, [True, True, False, True])
    np.testing.assert_allclose(got.matrix[np.ix_(kept, kept)], want.matrix, rtol=1e-9)
    robust = variance.robust_covariance(loss, design, problem.eta, got.inverse, kept)
    want = variance.robust_covariance(loss, small, problem.eta, want.inverse)
    np.testing.assert_allclose(robust.matrix, want.matrix, rtol=1e-8)


def test_a_column_constant_within_strata_has_no_information():
    problem = make(60, seed=32, n_strata=3)
    x = np.column_stack([problem.x[:, 1], problem.outcome.stratum * 1.7 + 1e4])
    got = variance.model_covariance(problem.loss("efron"), Design.from_dense(x), problem.eta)
    np.testing.assert_array_equal(got.identified, [True, False])


def test_no_information_at_all():
    outcome = Outcome.build([1.0, 2.0], [0, 1])
    loss = CoxLoss(outcome, "breslow", RUNTIME)
    design = Design.from_dense(np.array([[0.3], [0.9]]))
    got = variance.model_covariance(loss, design, np.zeros(2))
    assert got.rank == 0
    assert np.isnan(got.standard_error).all()


def test_no_columns():
    problem = PROBLEMS["ties"]
    design = Design.from_dense(np.zeros((40, 0)))
    got = variance.model_covariance(problem.loss("efron"), design, problem.eta)
    assert got.matrix.shape == (0, 0)
    assert variance.robust_covariance(
        problem.loss("efron"), design, problem.eta, got.inverse
    ).matrix.shape == (0, 0)


@each_storage
@each_ties
def test_units_change_the_covariance_and_nothing_else(store, ties):
    problem = PROBLEMS["everything"].stored(store)
    factor = np.array([1e6, 1e-6, 3.0])
    a = variance.model_covariance(problem.loss(ties), problem.design, problem.eta)
    scaled = store(problem.x * factor)
    b = variance.model_covariance(problem.loss(ties), scaled, problem.eta)
    np.testing.assert_allclose(b.standard_error * factor, a.standard_error, rtol=1e-9)
    a = variance.robust_covariance(problem.loss(ties), problem.design, problem.eta, a.inverse)
    b = variance.robust_covariance(problem.loss(ties), scaled, problem.eta, b.inverse)
    np.testing.assert_allclose(b.standard_error * factor, a.standard_error, rtol=1e-9)


@pytest.mark.parametrize("size", [1e200, 1e-200, 1e290, 1e-290])
def test_no_size_of_a_column_leaves_floating_point(size):
    problem = PROBLEMS["everything"]
    factor = np.array([size, 1.0, 3.0])
    loss, eta = problem.loss("efron"), problem.eta
    scaled = Design.from_dense(problem.x * factor)
    a = variance.model_covariance(loss, problem.design, eta)
    b = variance.model_covariance(loss, scaled, eta)
    assert b.rank == 3
    np.testing.assert_allclose(b.standard_error * factor, a.standard_error, rtol=1e-9)
    np.testing.assert_allclose(b.matrix[1:, 1:], a.matrix[1:, 1:] / [[1, 3], [3, 9]], rtol=1e-9)
    dfbeta = dfbeta_residuals(loss, scaled, eta, b.inverse) * factor
    want = dfbeta_residuals(loss, problem.design, eta, a.inverse)
    np.testing.assert_allclose(dfbeta, want, rtol=1e-8, atol=1e-12)
    a = variance.robust_covariance(loss, problem.design, eta, a.inverse)
    b = variance.robust_covariance(loss, scaled, eta, b.inverse)
    np.testing.assert_allclose(b.standard_error * factor, a.standard_error, rtol=1e-9)


@each_storage
@each_ties
@pytest.mark.parametrize("far", [1e3, 1e6, 1e9])
def test_distance_between_strata_changes_nothing(store, far, ties):
    problem = make(80, seed=33, n_strata=4)
    loss = problem.loss(ties)
    x = problem.x.copy()
    x[:, 0] = np.round(x[:, 0] * 2**20) / 2**20  # so that the sum is exact
    near = store(x)
    x = x + np.outer(problem.outcome.stratum, [far, 0.0, 0.0])
    a = variance.model_covariance(loss, near, problem.eta)
    b = variance.model_covariance(loss, store(x), problem.eta)
    assert b.rank == 3
    np.testing.assert_allclose(b.standard_error, a.standard_error, rtol=1e-8)
    a = variance.robust_covariance(loss, near, problem.eta, a.inverse)
    b = variance.robust_covariance(loss, store(x), problem.eta, b.inverse)
    np.testing.assert_allclose(b.standard_error, a.standard_error, rtol=1e-15 * far + 1e-9)


@each_storage
def test_levels_of_strata_change_nothing_in_fine_and_grays_model(store):
    problem = make(80, seed=33, n_strata=4).stored(store)
    o = problem.outcome
    cause = np.where(o.event != 0, 1 + np.arange(80) % 2, 0)
    outcome = Outcome.build(o.time, cause, stratum=o.stratum, cause=1)
    loss = FineGrayLoss(outcome, CensoringDistribution.estimate(outcome), RUNTIME)
    far = problem.eta + 900.0 * o.stratum
    a = variance.model_covariance(loss, problem.design, problem.eta)
    b = variance.model_covariance(loss, problem.design, far)
    np.testing.assert_allclose(b.matrix, a.matrix, rtol=1e-9)
    a = variance.robust_covariance(loss, problem.design, problem.eta, a.inverse)
    b = variance.robust_covariance(loss, problem.design, far, b.inverse)
    np.testing.assert_allclose(b.matrix, a.matrix, rtol=1e-9)


@each_storage
def test_weight_two_is_two_rows_of_one_cluster(store):
    problem = PROBLEMS["weights"].stored(store)
    count = problem.outcome.weight.astype(int)
    rows = np.repeat(np.arange(count.size), count)
    twice = problem.take(rows)
    outcome = twice.outcome.replace(weight=np.ones(rows.size), cluster=rows)
    twice = replace(twice, outcome=outcome)
    single = replace(problem, outcome=problem.outcome.replace(cluster=None))
    found = []
    for p in (single, twice):
        loss, design = p.loss("breslow"), p.design
        model = variance.model_covariance(loss, design, p.eta)
        robust = variance.robust_covariance(loss, design, p.eta, model.inverse)
        found.append((model.matrix, robust.matrix))
    np.testing.assert_allclose(found[1][0], found[0][0], rtol=1e-8)
    np.testing.assert_allclose(found[1][1], found[0][1], rtol=1e-8)


@each_storage
@each_ties
def test_weights_against_the_case(store, ties):
    folder = CASES / "10-case-weights-vs-replication"
    want = json.loads((folder / "expected.json").read_text())[ties]
    table = np.genfromtxt(folder / "input.csv", delimiter=",", names=True)
    outcome = Outcome.build(table["time"], table["event"], weight=table["weight"])
    design = store(table["x"][:, None])
    loss = CoxLoss(outcome, ties, RUNTIME)
    coef = newton(loss, design)
    np.testing.assert_allclose(coef, want["weighted_beta"], rtol=1e-10)
    model = variance.model_covariance(loss, design, design.dot(coef))
    np.testing.assert_allclose(model.standard_error, want["model_se"], rtol=1e-10)
    robust = variance.robust_covariance(loss, design, design.dot(coef), model.inverse)
    key = next(k for k in want if k.startswith("robust_se"))
    np.testing.assert_allclose(robust.standard_error, want[key], rtol=1e-8)


def test_generalized_inverse_is_an_inverse():
    rng = np.random.default_rng(0)
    a = rng.normal(size=(6, 4))
    matrix = a @ a.T
    got = variance.generalized_inverse(matrix)
    assert got.rank == 4
    np.testing.assert_allclose(got.contrasts.T @ got.basis, np.eye(4), atol=1e-10)
    np.testing.assert_allclose(got.contrasts @ got.contrasts.T, matrix, atol=1e-10)
    v = matrix @ rng.normal(size=6)
    assert got.form(v) == pytest.approx(v @ np.linalg.pinv(matrix) @ v, rel=1e-8)
