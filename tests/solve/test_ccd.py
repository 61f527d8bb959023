"""Coordinate descent ends where Newton's method does, or says that it did not."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from riskset._runtime import Runtime
from riskset.data.column_storage import BinaryColumns, DenseColumns, ValuedColumns
from riskset.data.design import Design
from riskset.data.outcome import Outcome
from riskset.model.censoring import CensoringDistribution
from riskset.model.cox import CoxLoss
from riskset.model.finegray import FineGrayLoss
from riskset.model.loss import Loss
from riskset.solve import ccd
from riskset.solve.fit import fit_by_newton
from riskset.solve.result import Solution
from solve.problems import random_problem, sparse_problem

TOL = 1e-10
RUNTIME = Runtime(1)
N = 150

PENALTIES = {"none": (0.0, 0.0), "l1": (2.0, 0.0), "l2": (0.0, 3.0), "both": (1.5, 1.0)}


def covariates(rng: np.random.Generator) -> np.ndarray:
    """Two columns of each kind of storage, of very different size and correlated."""
    z = rng.normal(size=(N, 6)) + 0.5 * rng.normal(size=(N, 1))
    z[:, :2] = z[:, :2] > 0.8
    z[:, 2:4] *= (z[:, 2:4] > 0.5) * [1e3, 1e-3]
    z[:, 4:] = 100.0 + z[:, 4:] * [20.0, 0.5]
    return z


def outcome(rng: np.random.Generator, x: np.ndarray, n_causes: int, **chosen: bool) -> Outcome:
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    time = np.ceil(15 * rng.exponential(np.exp(-0.3 * z.sum(axis=1) / 2)))
    event = rng.integers(0, n_causes + 1, N)
    extra: dict[str, object] = {"cause": 1}
    if chosen.get("entry"):
        extra["entry"] = time - rng.choice([0.5, 2, 5, 30], N)
    if chosen.get("strata"):
        extra["stratum"] = rng.integers(0, 4, N)
    if chosen.get("weights"):
        extra["weight"] = rng.choice([0.0, 1.0, 2.0, 0.5], N)
    if chosen.get("offset"):
        extra["offset"] = rng.normal(size=N)
    return Outcome.build(time, event, **extra)


def check_same(design: Design, loss: Loss, l1: np.ndarray, l2: np.ndarray, **more: object) -> None:
    exact = fit_by_newton(design, loss, l1, l2, tol=TOL)
    found = ccd.fit_by_ccd(design, loss, l1, l2, tol=TOL, max_iter=5000, **more)
    assert exact.status == found.status == "converged"
    assert found.kkt <= TOL
    spread = design.to_dense().std(axis=0)
    assert_allclose(found.coef * spread, exact.coef * spread, atol=1e-7, rtol=0)
    assert_allclose(found.objective, exact.objective, rtol=1e-10)
    assert_allclose(found.log_likelihood, exact.log_likelihood, rtol=1e-9)
    # The certificate is of the answer itself: nothing that sweeps carried along.
    now = loss.evaluate(loss.offset + design.dot(found.coef, runtime=RUNTIME))
    assert_allclose(now.log_likelihood, found.log_likelihood, rtol=1e-12)


ON = (False, True)


@pytest.mark.parametrize(
    ("ties", "penalty", "strata", "weights", "entry", "offset"),
    list(itertools.product(("breslow", "efron"), PENALTIES, ON, ON, ON, ON)),
)
def test_cox_as_newton(
    ties: str, penalty: str, strata: bool, weights: bool, entry: bool, offset: bool
) -> None:
    rng = np.random.default_rng([strata, weights, entry, offset, len(penalty)])
    x = covariates(rng)
    rows = outcome(rng, x, 1, strata=strata, weights=weights, entry=entry, offset=offset)
    size = x.std(axis=0)
    l1, l2 = PENALTIES[penalty]
    check_same(Design.from_dense(x), CoxLoss(rows, ties, RUNTIME), l1 * size, l2 * size**2)


@pytest.mark.parametrize(
    ("penalty", "strata", "weights", "groups", "offset"),
    list(itertools.product(PENALTIES, ON, ON, ON, ON)),
)
def test_finegray_as_newton(
    penalty: str, strata: bool, weights: bool, groups: bool, offset: bool
) -> None:
    rng = np.random.default_rng([strata, weights, groups, offset, len(penalty)])
    x = covariates(rng)
    rows = outcome(rng, x, 2, strata=strata, weights=weights, offset=offset)
    curves = CensoringDistribution.estimate(rows, group=rng.integers(0, 3, N) if groups else None)
    size = x.std(axis=0)
    l1, l2 = PENALTIES[penalty]
    check_same(Design.from_dense(x), FineGrayLoss(rows, curves, RUNTIME), l1 * size, l2 * size**2)


@pytest.mark.parametrize("seed", range(80))
def test_converged_means_optimal_and_infinite_means_separated(seed: int) -> None:
    problem = random_problem(seed)
    if problem is None:
        return
    solution = ccd.fit_by_ccd(problem.design, problem.loss, problem.l1, problem.l2, tol=1e-9)
    if solution.status == "max_iter":
        assert solution.kkt > 1e-9
        assert solution.n_iter == 200
        return
    assert problem.is_separated() == (solution.status == "infinite_estimate")
    if solution.status == "converged":
        assert solution.kkt <= 1e-9
        assert problem.kkt(solution.coef) <= 1e-7


def test_the_problems_have_columns_of_every_kind() -> None:
    design = Design.from_dense(covariates(np.random.default_rng(0)))
    assert {type(part): part.columns.tolist() for part in design.parts} == {
        BinaryColumns: [0, 1],
        ValuedColumns: [2, 3],
        DenseColumns: [4, 5],
    }


def test_unpenalised_beside_many_penalised_columns() -> None:
    problem = sparse_problem(3)
    problem.l1[[2, 9, 30]] = 0.0
    check_same(problem.design, problem.loss, problem.l1, problem.l2)


def test_dense_columns_are_taken_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("riskset.solve.risk_columns.MAX_DENSE_ENTRIES", 2 * N)
    rng = np.random.default_rng(4)
    x = 5.0 + rng.normal(size=(N, 7))
    loss = CoxLoss(outcome(rng, x, 1), "breslow", RUNTIME)
    check_same(Design.from_dense(x), loss, np.ones(7), np.zeros(7))


# ------------------------------------------------------------------- where the way is long


def correlated() -> tuple[Design, CoxLoss]:
    rng = np.random.default_rng(5)
    a = rng.normal(size=N)
    x = np.column_stack([a, a + 0.15 * rng.normal(size=N)])
    return Design.from_dense(x), CoxLoss(outcome(rng, x, 1), "breslow", RUNTIME)


def test_correlated_columns_take_many_sweeps_and_end_at_the_optimum() -> None:
    design, loss = correlated()
    slow = ccd.fit_by_ccd(design, loss, np.zeros(2), np.zeros(2), tol=TOL, max_iter=5000)
    assert 300 < slow.n_iter < 5000
    check_same(design, loss, np.zeros(2), np.zeros(2))


def test_stopping_early_is_said() -> None:
    design, loss = correlated()
    solution = ccd.fit_by_ccd(design, loss, np.zeros(2), np.zeros(2), tol=TOL, max_iter=20)
    assert solution.status == "max_iter"
    assert solution.n_iter == 20
    assert solution.kkt > TOL
    assert "stopped after 20 sweeps" in solution.notes[-1].message


def test_nothing_to_do_takes_no_sweep() -> None:
    problem = sparse_problem(11)
    huge = np.full(problem.l1.size, 1e5)
    solution = ccd.fit_by_ccd(problem.design, problem.loss, huge, problem.l2)
    assert (solution.status, solution.n_iter) == ("converged", 0)
    assert not solution.coef.any()


def test_warm_start_ends_where_a_cold_one_does() -> None:
    problem = sparse_problem(9)
    given = (problem.design, problem.loss)
    near = ccd.fit_by_ccd(*given, 1.2 * problem.l1, problem.l2, tol=TOL)
    cold = ccd.fit_by_ccd(*given, problem.l1, problem.l2, tol=TOL)
    warm = ccd.fit_by_ccd(*given, problem.l1, problem.l2, tol=TOL, start=near)
    assert warm.n_iter < cold.n_iter
    assert_allclose(warm.coef * problem.spread, cold.coef * problem.spread, atol=1e-7)


def rare_exposure() -> tuple[Design, CoxLoss, Solution]:
    """One of 100 events among the exposed, who are 30 % of the rows; and a start far away."""
    rng = np.random.default_rng(6)
    x = np.zeros((2000, 1))
    x[rng.permutation(2000)[:600]] = 1.0
    event = np.zeros(2000)
    event[np.flatnonzero(x[:, 0] == 0)[:99]] = event[np.flatnonzero(x[:, 0] == 1)[0]] = 1
    design = Design.from_dense(x)
    time = rng.permutation(2000) / 2000 + (1 - event) * 5
    loss = CoxLoss(Outcome.build(time, event == 1), "breslow", RUNTIME)
    answer = fit_by_newton(design, loss, np.zeros(1), np.zeros(1), tol=TOL)
    return design, loss, answer


def test_a_sweep_across_the_minimum_is_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    # From far below, where the likelihood is flat, regions have doubled when the slope changes.
    design, loss, answer = rare_exposure()
    taken_back = 0
    accept = ccd.CoordinateDescent._accept

    def counted(self: ccd.CoordinateDescent, moved: np.ndarray, objective: float) -> bool:
        nonlocal taken_back
        is_lower = accept(self, moved, objective)
        taken_back += not is_lower
        return is_lower

    monkeypatch.setattr(ccd.CoordinateDescent, "_accept", counted)
    far = replace(answer, coef=np.array([-12.9]))
    solution = ccd.fit_by_ccd(design, loss, np.zeros(1), np.zeros(1), tol=TOL, start=far)
    assert taken_back > 0
    assert solution.status == "converged"
    assert_allclose(solution.coef, answer.coef, rtol=1e-7)


def test_a_linear_predictor_that_no_exponent_holds() -> None:
    rng = np.random.default_rng(7)
    x = covariates(rng)
    rows = outcome(rng, x, 1).replace(offset=np.where(np.arange(N) < 5, -900.0, 0.0))
    size = x.std(axis=0)
    check_same(Design.from_dense(x), CoxLoss(rows, "breslow", RUNTIME), size, 0 * size)


def test_weights_so_small_that_totals_would_underflow() -> None:
    rng = np.random.default_rng(8)
    x = rng.normal(size=(40, 2))
    time = np.arange(40.0)
    rows = Outcome.build(time, rng.random(40) < 0.7, weight=np.where(time > 25, 1e-290, 1.0))
    check_same(Design.from_dense(x), CoxLoss(rows, "breslow", RUNTIME), np.ones(2), np.zeros(2))


@pytest.mark.parametrize("n_causes", [1, 2], ids=["cox", "finegray"])
def test_totals_whose_squares_would_underflow(n_causes: int) -> None:
    # The rows of one stratum are far below those of the others: exp(-400)^2 is 0.
    rng = np.random.default_rng(10)
    x = covariates(rng)
    rows = outcome(rng, x, n_causes, strata=True)
    rows = rows.replace(offset=np.where(rows.stratum == 0, -400.0, 0.0))
    loss: Loss = CoxLoss(rows, "breslow", RUNTIME)
    if n_causes > 1:
        loss = FineGrayLoss(rows, CensoringDistribution.estimate(rows), RUNTIME)
    size = x.std(axis=0)
    check_same(Design.from_dense(x), loss, size, 0 * size)


def test_an_infinite_estimate_is_found_and_its_limit() -> None:
    rng = np.random.default_rng(9)
    x = covariates(rng)
    rows = outcome(rng, x, 1)
    x[:, 0] = (rng.random(N) < 0.3) & ~rows.is_event  # nobody who has it fails
    design, loss = Design.from_dense(x), CoxLoss(rows, "breslow", RUNTIME)
    nothing = np.zeros(6)
    exact = fit_by_newton(design, loss, nothing, nothing, tol=TOL)
    found = ccd.fit_by_ccd(design, loss, nothing, nothing, tol=TOL)
    assert exact.status == found.status == "infinite_estimate"
    assert found.coef[0] == -np.inf
    assert_allclose(found.coef[1:], exact.coef[1:], rtol=1e-6)
    assert_allclose(found.log_likelihood, exact.log_likelihood, rtol=1e-10)


def test_collinear_and_constant_columns_are_left_out() -> None:
    problem = sparse_problem(15, p=8)
    x = np.c_[problem.x, problem.x[:, 0] - 2 * problem.x[:, 5], np.full(len(problem.x), 3.0)]
    nothing = np.zeros(10)
    loss = problem.loss
    solution = ccd.fit_by_ccd(Design.from_dense(x), loss, nothing, nothing, tol=TOL, max_iter=2000)
    assert solution.status == "converged"
    assert_array_equal(solution.aliased, [False] * 8 + [True, True])
    without = fit_by_newton(Design.from_dense(x[:, :8]), loss, nothing[:8], nothing[:8], tol=TOL)
    assert_allclose(solution.coef[:8] * problem.spread, without.coef * problem.spread, atol=1e-7)


def test_progress_is_reported_by_the_sweep() -> None:
    problem = sparse_problem(3)
    seen: list[tuple[int, float]] = []
    solution = ccd.fit_by_ccd(
        problem.design, problem.loss, problem.l1, problem.l2, report=lambda *x: seen.append(x)
    )
    assert [steps for steps, _ in seen] == list(range(solution.n_iter + 1))
    assert seen[-1][1] == solution.kkt
