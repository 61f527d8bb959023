"""Steps without a matrix: the penalised quadratic is minimised, and fits end where others do."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from riskset._runtime import Runtime
from riskset._types import Features
from riskset.data import working_columns
from riskset.data.column_storage import DenseColumns
from riskset.data.design import Design
from riskset.data.outcome import Outcome
from riskset.data.working_columns import WorkingColumns
from riskset.model.cox import CoxLoss, Ties
from riskset.model.curvature_map import CurvatureMap
from riskset.solve import prox_newton
from riskset.solve.conjugate import conjugate_step
from riskset.solve.fit import fit_by_newton
from riskset.solve.optimality import Problem, violations
from solve.problems import random_problem, sparse_problem
from storages import Store, as_sparse, each_storage

RUNTIME = Runtime(2)


@each_storage
@pytest.mark.parametrize("n_rows", [300, 9_000])
def test_working_columns_are_those_of_the_design(store: Store, n_rows: int) -> None:
    rng = np.random.default_rng(n_rows)
    x = (rng.random((n_rows, 12)) < np.geomspace(0.001, 0.6, 12)) * 1.0
    x[:, 3:6] *= rng.normal(size=(n_rows, 3))
    x[:, 6] = rng.normal(size=n_rows)
    design, columns = store(x), np.array([0, 2, 3, 4, 6, 7, 9, 10, 11])
    r, v = rng.normal(size=n_rows), rng.normal(size=columns.size)
    v[2] = 0.0
    working = WorkingColumns.of(design, columns, RUNTIME)
    assert design.n_entries(columns) == sum(
        n_rows if isinstance(part, DenseColumns) else int(np.count_nonzero(x[:, j]))
        for part in design.parts
        for j in np.intersect1d(part.columns, columns)
    )
    kept = np.array([1, 2, 4, 5, 8])
    for own, at in ((working, columns), (working.some(kept), columns[kept])):
        w = v[: at.size]
        assert_allclose(own.product(w), design.product(w, at, runtime=RUNTIME), atol=1e-12)
        assert_allclose(own.cross(r), design.cross(r, at, runtime=RUNTIME), atol=1e-11)
        assert_allclose(own.moments(r), design.moments(r, at, runtime=RUNTIME), atol=1e-10)


def test_rare_columns_lie_in_large_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    x = (rng.random((50_000, 6)) < [0.0005, 0.3, 0.001, 0.2, 0.0, 0.002]) * 1.0
    design, columns, r = as_sparse(x), np.arange(6), rng.normal(size=50_000)
    shifts = []
    for blocks in (working_columns.MIN_BLOCKS, 1):
        monkeypatch.setattr(working_columns, "MIN_BLOCKS", blocks)
        working = WorkingColumns.of(design, columns, RUNTIME)
        shifts.append([part.shift for part, _, _ in working.parts])
        assert_allclose(working.cross(r), x.T @ r, atol=1e-9)
    assert shifts == [[12, 13], [12, 15]]


@pytest.mark.parametrize("accuracy", [0.3, 0.01])
@pytest.mark.parametrize("seed", range(8))
def test_the_quadratic_is_minimised(seed: int, accuracy: float) -> None:
    problem, rng = sparse_problem(seed), np.random.default_rng(seed)
    design, loss, columns = problem.design, problem.loss, np.arange(problem.l1.size)
    scale = design.scale
    beta = rng.normal(size=columns.size) * (rng.random(columns.size) < 0.5) * 0.3
    l1 = problem.l1 / scale * (rng.random(columns.size) < 0.9)
    l2 = np.full(columns.size, rng.choice([1e-3, 1.0]))
    eta = design.product(beta, runtime=RUNTIME)
    gradient = design.cross(loss.evaluate(eta).residual, runtime=RUNTIME)
    working = WorkingColumns.of(design, columns, RUNTIME)
    curvature = CurvatureMap.at(CoxLoss(problem.outcome, "breslow", RUNTIME), working, eta)
    step = conjugate_step(curvature, gradient, beta, l1, l2, accuracy)
    size = np.sqrt(curvature.diagonal + l2)
    before = violations(gradient, beta, l1, l2) / size
    after = violations(gradient - curvature(step), beta + step, l1, l2) / size
    # Columns whose condition is violated only now are for the next step.
    mine = (before > 0) | (beta + step != 0)
    assert np.linalg.norm(after[mine]) <= 2 * accuracy * np.linalg.norm(before)
    assert ((beta + step) == 0)[l1 > 0].any()


@pytest.mark.parametrize("ties", ["breslow", "efron"])
@pytest.mark.parametrize("seed", range(60))
def test_fits_end_where_those_with_a_matrix_do(
    monkeypatch: pytest.MonkeyPatch, seed: int, ties: Ties
) -> None:
    problem = random_problem(seed)
    if problem is None or problem.free.any():
        return
    loss = CoxLoss(problem.outcome, ties, RUNTIME)
    args = (problem.design, loss, problem.l1, problem.l2)
    by_matrix = fit_by_newton(*args, tol=1e-8)
    monkeypatch.setattr(prox_newton, "MAX_MATRIX_COLUMNS", 0)
    monkeypatch.setattr(prox_newton, "MAX_FALLBACK_COLUMNS", 0)
    by_map = fit_by_newton(*args, tol=1e-8)
    assert by_map.status == by_matrix.status == "converged"
    if ties == problem.ties:
        assert problem.kkt(by_map.coef) <= 1e-7
    assert_allclose(by_map.objective, by_matrix.objective, rtol=1e-10)


@pytest.mark.parametrize("rows_per_column", [prox_newton.MIN_ROWS_PER_COLUMN, 0])
@pytest.mark.parametrize("share", [0.1, 0.01])
@pytest.mark.parametrize("binary", [True, False])
def test_many_more_columns_than_rows(
    monkeypatch: pytest.MonkeyPatch, binary: bool, share: float, rows_per_column: int
) -> None:
    """The curvature vanishes in most directions, so conjugate gradients alone may come nowhere."""
    monkeypatch.setattr(prox_newton, "MIN_ROWS_PER_COLUMN", rows_per_column)
    rng = np.random.default_rng(0)
    n, p = 100, 2_500
    x = (rng.random((n, p)) < 0.05) * 1.0 if binary else rng.normal(size=(n, p))
    time, event = rng.permutation(n) + 1.0, rng.random(n) < 0.6
    loss = CoxLoss(Outcome.build(time, event), "breslow", RUNTIME)
    score = x.T @ loss.evaluate(np.zeros(n)).residual
    strength = share * float(np.abs(score).max())
    l1, l2 = np.full(p, strength), np.zeros(p)
    found = fit_by_newton(Design.from_dense(x), loss, l1, l2, tol=1e-8)
    assert found.status == "converged"
    gradient = x.T @ loss.evaluate(x @ found.coef).residual
    assert violations(gradient, found.coef, l1, l2).max() <= 1e-6 * np.abs(score).max()


def test_linear_predictors_too_far_apart_for_products(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prox_newton, "MAX_MATRIX_COLUMNS", 0)
    rng = np.random.default_rng(2)
    n, p = 60, 8
    x, offset = rng.normal(size=(n, p)), rng.normal(scale=400, size=n)
    event = rng.random(n) < 0.7
    outcome = Outcome.build(rng.permutation(n) + 1.0, event, offset=offset)
    loss = CoxLoss(outcome, "breslow", RUNTIME)
    found = fit_by_newton(Design.from_dense(x), loss, np.zeros(p), np.full(p, 0.5), tol=1e-8)
    assert found.status == "converged"
    gradient = x.T @ loss.evaluate(x @ found.coef + offset).residual
    assert_allclose(gradient, 0.5 * found.coef, atol=1e-5)


@pytest.mark.parametrize("l1", [4.0, 0.0])
def test_any_number_of_threads_gives_the_same_bits(
    l1: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prox_newton, "MAX_MATRIX_COLUMNS", 4)
    problem = sparse_problem(2, n=30_000, p=40)
    coefs = [
        fit_by_newton(
            problem.design,
            CoxLoss(problem.outcome, "breslow", Runtime(n_threads)),
            l1 * problem.l1,
            problem.l2 + (l1 == 0),
        ).coef
        for n_threads in (1, 3)
    ]
    assert coefs[0].any()
    assert coefs[0].tobytes() == coefs[1].tobytes()


def test_columns_that_are_copied_already_serve_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prox_newton, "MAX_MATRIX_COLUMNS", 4)
    problem = sparse_problem(4)
    columns = np.arange(0, problem.l1.size, 2)
    copied = columns, WorkingColumns.of(problem.design, columns, RUNTIME)
    first = Problem.prepare(problem.design, problem.loss, copied)
    some = columns[3:9]
    own = Problem.prepare(problem.design, problem.loss).working_columns(some)
    r = np.random.default_rng(4).normal(size=problem.x.shape[0])
    assert first.working_columns(some).cross(r).tobytes() == own.cross(r).tobytes()
    assert len(first.working_columns(np.array([0, 1]))) == 2


def test_steps_end_where_the_likelihood_no_longer_gains() -> None:
    # More columns than rows, a weak penalty, and a start far off: the minimum of the quadratic is
    # worse than the start.
    rng = np.random.default_rng(3)
    n, p = 80, 200
    x = (rng.random((n, p)) < 0.2) * 1.0
    design, columns = as_sparse(x), np.arange(p)
    loss = CoxLoss(
        Outcome.build(rng.exponential(size=n), np.ones(n, dtype=bool)), "breslow", RUNTIME
    )
    beta, l1, l2 = rng.normal(size=p), np.zeros(p), np.full(p, 0.01)

    def objective(at: Features) -> float:
        return 0.5 * float(l2 @ at**2) - loss.evaluate(x @ at).log_likelihood

    gradient = design.cross(loss.evaluate(x @ beta).residual, runtime=RUNTIME)
    information = loss.information(design, x @ beta, columns)
    newton = np.linalg.solve(information + np.diag(l2), gradient - l2 * beta)
    assert objective(beta + newton) > objective(beta)
    curvature = CurvatureMap.at(loss, WorkingColumns.of(design, columns, RUNTIME), x @ beta)
    step = conjugate_step(curvature, gradient, beta, l1, l2, 1e-6)
    assert objective(beta + step) < objective(beta)
    share_of_newton = min(objective(beta + share * newton) for share in (1.0, 0.5, 0.25))
    assert objective(beta + step) < share_of_newton
