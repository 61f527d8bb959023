"""An answer is right when the conditions of optimality hold, judged apart from the solver."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from riskset.solve import curvature, prox_newton
from riskset.solve.fit import fit_by_newton
from riskset.solve.result import Solution
from solve.problems import Random, random_problem, sparse_problem

TOL = 1e-9


def solve(problem: Random, **options: object) -> Solution:
    return fit_by_newton(problem.design, problem.loss, problem.l1, problem.l2, tol=TOL, **options)


@pytest.mark.parametrize("seed", range(120))
def test_converged_means_optimal_and_infinite_means_separated(seed: int) -> None:
    problem = random_problem(seed)
    if problem is None:
        return
    solution = solve(problem)
    assert solution.status != "max_iter"
    assert problem.is_separated() == (solution.status == "infinite_estimate")
    if solution.status == "converged":
        assert solution.kkt <= TOL
        assert problem.kkt(solution.coef) <= 1e-7
        done = problem.pass_at(solution.coef)
        assert_allclose(solution.log_likelihood, done.log_likelihood, rtol=1e-11)


def test_the_certificate_is_the_one_the_formula_gives() -> None:
    problem = sparse_problem(3)
    rough = fit_by_newton(problem.design, problem.loss, problem.l1, problem.l2, tol=1e-3)
    assert 1e-9 < rough.kkt <= 1e-3
    assert_allclose(problem.kkt(rough.coef), rough.kkt, rtol=1e-6)


@pytest.mark.parametrize("ties", ["breslow", "efron"])
@pytest.mark.parametrize("entry", [False, True])
def test_the_sampled_curvature_leads_to_the_same_answer(
    monkeypatch: pytest.MonkeyPatch, ties: str, entry: bool
) -> None:
    problem = sparse_problem(5)
    problem.ties = ties
    if entry:
        time = problem.outcome.time
        late = np.random.default_rng(0).uniform(0, 1, time.size) * time
        problem.outcome = problem.outcome.replace(entry=late)
    exact = solve(problem)
    monkeypatch.setattr(curvature, "EXACT_WORK", 0.0)
    sampled = solve(problem)
    assert exact.status == sampled.status == "converged"
    assert problem.kkt(sampled.coef) <= 1e-7
    assert_allclose(sampled.objective, exact.objective, rtol=1e-13)
    assert_allclose(sampled.coef * problem.spread, exact.coef * problem.spread, atol=1e-6)


def test_working_sets_find_every_column(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = sparse_problem(7)
    whole = solve(problem)
    monkeypatch.setattr(prox_newton, "MAX_FULL_WORKING_SET", 4)
    monkeypatch.setattr(prox_newton, "MIN_WORKING_SET", 3)
    parts = solve(problem)
    assert parts.status == "converged"
    assert problem.kkt(parts.coef) <= 1e-7
    assert_allclose(parts.coef * problem.spread, whole.coef * problem.spread, atol=1e-6)
    assert np.array_equal(parts.coef != 0, whole.coef != 0)


def test_warm_start_ends_where_a_cold_one_does() -> None:
    problem = sparse_problem(9)
    near = fit_by_newton(problem.design, problem.loss, 1.2 * problem.l1, problem.l2, tol=TOL)
    warm, cold = solve(problem, start=near), solve(problem)
    assert warm.n_iter <= cold.n_iter
    assert_allclose(warm.coef * problem.spread, cold.coef * problem.spread, atol=1e-7)


def test_a_strong_penalty_gives_zero_without_a_step() -> None:
    problem = sparse_problem(11)
    problem.l1 = np.full(problem.l1.size, 1e5)
    solution = solve(problem)
    assert solution.status == "converged"
    assert solution.n_iter == 0
    assert not solution.coef.any()
    assert solution.log_likelihood == solution.null_log_likelihood


def test_stopping_early_is_said() -> None:
    problem = sparse_problem(13)
    solution = solve(problem, max_iter=2)
    assert solution.status == "max_iter"
    assert solution.kkt > TOL
    assert [note.code for note in solution.notes] == ["max_iter"]
    assert "after 2 steps" in solution.notes[0].message


def test_collinear_and_constant_columns_are_named() -> None:
    problem = sparse_problem(15, p=10)
    problem.l1[:] = 0.0
    x = problem.x
    problem.x = np.c_[x, x[:, 0] - 2 * x[:, 6], np.full(len(x), 3.0)]
    problem.l1 = problem.l2 = np.zeros(12)
    solution = solve(problem)
    assert solution.status == "converged"
    assert solution.aliased.tolist() == [False] * 10 + [True, True]
    assert {note.code: note.columns for note in solution.notes} == {
        "constant": ("x11",),
        "collinear": ("x0", "x6", "x10"),
    }
    problem.x, problem.l1, problem.l2 = x, np.zeros(10), np.zeros(10)
    assert_allclose(solution.coef[:10], solve(problem).coef, rtol=1e-7)
