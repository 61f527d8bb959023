"""Residuals against their definitions, by hand, and under changes that must not matter."""

from dataclasses import replace

import numpy as np
import pytest

from infer.problems import (
    LONG,
    PROBLEMS,
    Problem,
    Steps,
    dfbeta_residuals,
    expected,
    make,
    newton,
    score_rows,
)
from riskset.data.design import Design
from riskset.data.outcome import Outcome
from riskset.infer import residuals, variance
from storages import each_storage

each_problem = pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
each_ties = pytest.mark.parametrize("ties", ["breslow", "efron"])


@each_ties
@each_problem
def test_martingale_and_deviance_follow_the_definition(problem, ties):
    loss, outcome = problem.loss(ties), problem.outcome
    present = outcome.weight > 0
    e = expected(problem, Steps.of(problem, ties))
    martingale = outcome.is_event - e
    got = residuals.martingale_residuals(loss, problem.eta)
    np.testing.assert_allclose(got[present], martingale[present].astype(float), atol=1e-11)
    with np.errstate(divide="ignore"):
        inside = martingale + np.where(outcome.is_event, np.log(np.maximum(e, LONG("1e-4000"))), 0)
    deviance = np.sign(martingale) * np.sqrt(np.maximum(-2 * inside, 0))
    got = residuals.deviance_residuals(loss, problem.eta)
    np.testing.assert_allclose(got[present], deviance[present].astype(float), rtol=1e-8, atol=1e-7)


@each_storage
@each_ties
@each_problem
def test_score_residuals_follow_the_definition(store, problem, ties):
    problem = problem.stored(store)
    loss, design = problem.loss(ties), problem.design
    steps = Steps.of(problem, ties)
    got = residuals.score_residuals(loss, design, problem.eta)
    want = score_rows(problem, steps, problem.x).astype(float)
    np.testing.assert_allclose(got / design.scale, want / design.scale, rtol=1e-9, atol=1e-10)
    two = store(problem.x[:, [2, 0]])
    some = residuals.score_residuals(loss, two, problem.eta)
    np.testing.assert_allclose(some, got[:, [2, 0]], rtol=1e-12, atol=1e-12)


@each_ties
@each_problem
def test_score_and_schoenfeld_residuals_sum_to_the_gradient(problem, ties):
    loss, design, outcome = problem.loss(ties), problem.design, problem.outcome
    gradient = design.cross(loss.evaluate(problem.eta).residual, runtime=loss.runtime)
    rows = residuals.score_residuals(loss, design, problem.eta)
    np.testing.assert_allclose(outcome.weight @ rows / design.scale, gradient, atol=1e-9)
    events = residuals.schoenfeld_residuals(loss, design, problem.eta)
    total = outcome.weight[events.row] @ events.values
    np.testing.assert_allclose(total / design.scale, gradient, atol=1e-9)


@each_ties
@each_problem
def test_schoenfeld_residuals_follow_the_definition(problem, ties):
    loss, outcome = problem.loss(ties), problem.outcome
    steps = Steps.of(problem, ties)
    got = residuals.schoenfeld_residuals(loss, problem.design, problem.eta)
    assert set(got.row) == set(np.flatnonzero(outcome.is_event & (outcome.weight > 0)))
    keys = list(zip(got.stratum, got.time, got.row, strict=True))
    assert keys == sorted(keys)
    for row, value in zip(got.row, got.values, strict=True):
        own = steps.is_own[:, row] > 0
        want = problem.x[row] - steps.mean[own].mean(axis=0)
        np.testing.assert_allclose(value, want.astype(float), rtol=1e-9, atol=1e-9)


def test_by_hand():
    # Three rows, all failing, at 1, 2, 2 with eta = 0. Breslow: hazards 1/3 at 1 and 2/2 at 2.
    # Efron: 1/3, then 1/2 + 1/1, of which a tied row meets 1/2 + 1/2.
    outcome = Outcome.build([1.0, 2.0, 2.0], [1, 1, 1])
    problem = Problem(outcome, np.array([[0.0], [1.0], [3.0]]), np.zeros(3))
    breslow = residuals.martingale_residuals(problem.loss("breslow"), problem.eta)
    np.testing.assert_allclose(breslow, [2 / 3, -1 / 3, -1 / 3])
    efron = residuals.martingale_residuals(problem.loss("efron"), problem.eta)
    np.testing.assert_allclose(efron, [2 / 3, -1 / 3, -1 / 3])
    # Risk-set means 4/3 at 1 and 2 at 2, for both steps.
    events = residuals.schoenfeld_residuals(problem.loss("efron"), problem.design, problem.eta)
    np.testing.assert_allclose(events.values[:, 0], [-4 / 3, -1.0, 1.0])
    score = residuals.score_residuals(problem.loss("breslow"), problem.design, problem.eta)
    # Row 0: (0 - 4/3)(1 - 1/3); row 1: (1 - 2)(1 - 1) - (1 - 4/3)/3; row 2: -(3 - 4/3)/3.
    np.testing.assert_allclose(score[:, 0], [-8 / 9, 1 / 9, -5 / 9])


@each_ties
def test_deviance_keeps_its_digits_near_zero(ties):
    # An event beside one censored row of relative hazard 1e-9: M = 1e-9 to first order, and the
    # deviance residual is M (1 + M/3 + ...).
    problem = Problem(
        Outcome.build([2.0, 2.0], [1, 0]), np.zeros((2, 1)), np.array([0.0, np.log(1e-9)])
    )
    got = residuals.deviance_residuals(problem.loss(ties), problem.eta)
    assert got[0] == pytest.approx(1e-9, rel=1e-6)


@each_storage
@each_ties
@pytest.mark.parametrize("name", ["ties", "everything", "strata", "late_entry"])
def test_row_order_does_not_matter(store, name, ties):
    problem = PROBLEMS[name].stored(store)
    rows = np.random.default_rng(3).permutation(problem.outcome.n_rows)
    moved = problem.take(rows)
    for kind in (residuals.martingale_residuals, residuals.deviance_residuals):
        a, b = kind(problem.loss(ties), problem.eta), kind(moved.loss(ties), moved.eta)
        np.testing.assert_allclose(b, a[rows], rtol=1e-10, atol=1e-10)
    a = residuals.score_residuals(problem.loss(ties), problem.design, problem.eta)
    b = residuals.score_residuals(moved.loss(ties), moved.design, moved.eta)
    np.testing.assert_allclose(b, a[rows], rtol=1e-10, atol=1e-10)
    a = residuals.schoenfeld_residuals(problem.loss(ties), problem.design, problem.eta)
    b = residuals.schoenfeld_residuals(moved.loss(ties), moved.design, moved.eta)
    back = dict(zip(rows[b.row], b.values, strict=True))
    for row, value in zip(a.row, a.values, strict=True):
        np.testing.assert_allclose(back[row], value, rtol=1e-10, atol=1e-10)


@each_storage
def test_weight_two_is_the_row_twice_for_breslow(store):
    problem = PROBLEMS["weights"].stored(store)
    count = problem.outcome.weight.astype(int)
    rows = np.repeat(np.arange(count.size), count)
    twice = problem.take(rows)
    twice = replace(twice, outcome=twice.outcome.replace(weight=np.ones(rows.size)))
    present = np.flatnonzero(count)
    first = np.searchsorted(rows, present)
    loss, loss_twice = problem.loss("breslow"), twice.loss("breslow")
    a = residuals.score_residuals(loss, problem.design, problem.eta)
    b = residuals.score_residuals(loss_twice, twice.design, twice.eta)
    np.testing.assert_allclose(b[first], a[present], rtol=1e-9, atol=1e-9)
    a = residuals.martingale_residuals(loss, problem.eta)
    b = residuals.martingale_residuals(loss_twice, twice.eta)
    np.testing.assert_allclose(b[first], a[present], rtol=1e-10, atol=1e-10)


@each_storage
@each_ties
def test_strata_are_separate_problems(store, ties):
    problem = PROBLEMS["strata"].stored(store)
    whole = residuals.score_residuals(problem.loss(ties), problem.design, problem.eta)
    for s in range(problem.outcome.n_strata):
        rows = np.flatnonzero(problem.outcome.stratum == s)
        part = problem.take(rows)
        alone = residuals.score_residuals(part.loss(ties), part.design, part.eta)
        np.testing.assert_allclose(alone, whole[rows], rtol=1e-9, atol=1e-9)


@each_storage
@each_ties
def test_eta_plus_a_constant_changes_nothing(store, ties):
    problem = PROBLEMS["everything"].stored(store)
    loss, design = problem.loss(ties), problem.design
    for constant in (800.0, -3000.0):
        a = residuals.score_residuals(loss, design, problem.eta)
        b = residuals.score_residuals(loss, design, problem.eta + constant)
        np.testing.assert_allclose(b, a, rtol=1e-9, atol=1e-9)
        a = residuals.deviance_residuals(loss, problem.eta)
        b = residuals.deviance_residuals(loss, problem.eta + constant)
        np.testing.assert_allclose(b, a, rtol=1e-9, atol=1e-6)


@pytest.mark.parametrize("late", [False, True])
def test_dfbeta_is_the_derivative_of_the_estimate(late):
    problem = make(70, seed=21, late=late, weights=(0.7, 1.0, 1.6), p=2)
    loss, design = problem.loss("breslow"), problem.design
    coef = newton(loss, design)
    eta = design.dot(coef)
    inverse = variance.information_inverse(loss, design, eta)
    got = dfbeta_residuals(loss, design, eta, inverse)
    for row in (0, 11, 37, 69):
        ends = []
        for step in (-1e-4, 1e-4):
            weight = problem.outcome.weight.copy()
            weight[row] += step
            moved = replace(loss, outcome=problem.outcome.replace(weight=weight))
            ends.append(newton(moved, design))
        np.testing.assert_allclose(got[row], (ends[1] - ends[0]) / 2e-4, rtol=1e-5, atol=1e-8)


def test_many_columns_are_taken_in_blocks():
    problem = make(40, seed=14)
    x = np.random.default_rng(0).normal(size=(40, 70))
    design = Design.from_dense(x)
    whole = residuals.score_residuals(problem.loss("efron"), design, problem.eta)
    for j in (0, 31, 32, 69):
        alone = Design.from_dense(x[:, [j]])
        one = residuals.score_residuals(problem.loss("efron"), alone, problem.eta)
        np.testing.assert_allclose(one[:, 0], whole[:, j], rtol=1e-10, atol=1e-12)
