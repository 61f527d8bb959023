"""Steps that are solved in the rows: they minimise the quadratic, and change no answer."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from riskset._runtime import Runtime
from riskset._types import NewtonQuadratic
from riskset.data.design import Design
from riskset.data.outcome import Outcome
from riskset.model.censoring import CensoringDistribution
from riskset.model.cox import CoxLoss
from riskset.model.finegray import FineGrayLoss
from riskset.model.logistic import LogisticLoss
from riskset.model.loss import Loss
from riskset.solve import prox_newton, row_space
from riskset.solve.curvature import CurvatureModel
from riskset.solve.fit import fit_by_newton
from riskset.solve.optimality import Problem
from riskset.solve.path import iterate_path
from riskset.solve.row_space import RowSpace
from storages import Store, each_storage

N_ROWS, N_COLUMNS = 40, 260
RUNTIME = Runtime(1)


def _table(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(N_ROWS, N_COLUMNS)) * (rng.random((N_ROWS, N_COLUMNS)) < 0.7)
    x[:, 1::3] += x[:, ::3][:, : x[:, 1::3].shape[1]]
    x[:, ::7] = x[:, ::7] > 0
    return x


def _outcome(x: np.ndarray, **options: object) -> Outcome:
    rng = np.random.default_rng(9)
    time = rng.exponential(np.exp(-x[:, :8] @ rng.normal(0, 0.7, 8)))
    event = rng.integers(0, 3, N_ROWS)
    return Outcome.build(np.ceil(20 * time), event, cause=1, **options)  # type: ignore[arg-type]


def _losses(x: np.ndarray) -> dict[str, Loss]:
    rng = np.random.default_rng(4)
    weight, stratum = rng.uniform(0.5, 2.0, N_ROWS), rng.integers(0, 2, N_ROWS)
    late = np.where(rng.random(N_ROWS) < 0.5, 0.0, 0.5)
    competing = _outcome(x)
    return {
        "breslow": CoxLoss(_outcome(x, weight=weight), "breslow", RUNTIME),
        "efron": CoxLoss(_outcome(x, stratum=stratum), "efron", RUNTIME),
        "late": CoxLoss(_outcome(x, entry=late), "breslow", RUNTIME),
        "finegray": FineGrayLoss(competing, CensoringDistribution.estimate(competing), RUNTIME),
        "logistic": LogisticLoss.of(x[:, 0] + x[:, 2] > 0.3, RUNTIME),
    }


@pytest.mark.parametrize("l1_share", [0.0, 0.2, 0.9])
@pytest.mark.parametrize("strength", [0.05, 3.0])
def test_a_step_minimises_the_quadratic(l1_share: float, strength: float) -> None:
    """The optimality conditions of each coefficient, from the whole matrix of curvature."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(N_ROWS, N_COLUMNS))
    root = rng.normal(size=(N_ROWS, N_ROWS - 5))
    w = root @ root.T
    columns = np.flatnonzero(rng.random(N_COLUMNS) < 0.8)
    design = Design.from_dense(x)
    space = RowSpace(design)
    z = design.stored(columns)
    for _ in range(3):  # from the second on, with what the last one left
        factor = rng.uniform(0.5, 2.0, columns.size)
        l1, l2 = strength * l1_share * factor, strength * (1.0 - l1_share) * factor
        beta = rng.normal(size=columns.size) * (rng.random(columns.size) < 0.3)
        gradient = 4.0 * strength * rng.normal(size=columns.size)
        known = NewtonQuadratic(
            np.zeros((0, 0)), gradient, beta, l1, l2, np.full(beta.size, np.inf)
        )
        step = space.step(w, columns, known, 1e-9 * strength)
        assert step is not None
        b = beta + step
        slope = gradient - z.T @ (w @ (z @ step)) - l2 * b
        excess = np.where(b != 0.0, slope - np.sign(b) * l1, np.maximum(np.abs(slope) - l1, 0.0))
        assert_allclose(excess, 0.0, atol=1e-8 * strength)
        assert (l1_share == 0.0) == bool((b != 0.0).all())


@pytest.mark.parametrize("kind", ["breslow", "efron", "late", "finegray", "logistic"])
@pytest.mark.parametrize("l1_share", [0.0, 0.3])
def test_answers_are_those_of_a_matrix(
    kind: str, l1_share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = _table(1)
    design, loss, strength = Design.from_dense(x), _losses(x)[kind], np.full(N_COLUMNS, 0.8)
    strength[[4, 7]] = 0.0
    penalty = l1_share * strength, (1.0 - l1_share) * strength
    calls = []
    step = RowSpace.step
    monkeypatch.setattr(RowSpace, "step", lambda *a: calls.append(1) or step(*a))
    found = fit_by_newton(design, loss, *penalty, tol=1e-10)
    assert calls
    monkeypatch.setattr(RowSpace, "suits", lambda *_: False)
    n_calls = len(calls)
    by_matrix = fit_by_newton(design, loss, *penalty, tol=1e-10)
    assert len(calls) == n_calls
    assert found.status == by_matrix.status == "converged"
    assert_allclose(found.objective, by_matrix.objective, rtol=1e-12)
    assert_allclose(found.coef, by_matrix.coef, atol=1e-8)


def test_where_a_step_fails_a_wide_design_needs_no_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    x = _table(1)
    design, loss, strength = Design.from_dense(x), _losses(x)["breslow"], np.full(N_COLUMNS, 0.8)
    expected = fit_by_newton(design, loss, 0.3 * strength, 0.7 * strength, tol=1e-9)
    monkeypatch.setattr(RowSpace, "step", lambda *_: None)
    monkeypatch.setattr(prox_newton, "MAX_FALLBACK_COLUMNS", 100)
    made = []
    monkeypatch.setattr(CurvatureModel, "at", lambda *_, **__: made.append(1))
    found = fit_by_newton(design, loss, 0.3 * strength, 0.7 * strength, tol=1e-9)
    assert not made
    assert found.status == "converged"
    assert_allclose(found.objective, expected.objective, rtol=1e-10)


@each_storage
def test_each_point_of_a_path_is_that_of_a_fit_alone(store: Store) -> None:
    x = _table(2)
    design, loss = store(x), _losses(x)["efron"]
    problem = Problem.prepare(design, loss)
    first = float(np.abs(problem.gradient_at_zero * design.scale).max())
    strengths = first * np.geomspace(1.0, 0.01, 12)
    factor = np.linspace(0.5, 1.5, N_COLUMNS)
    penalties = [(0.2 * s * factor, 0.8 * s * factor) for s in strengths]
    path = list(iterate_path(design, loss, penalties))
    for (l1, l2), point in zip(penalties[3::4], path[3::4], strict=True):
        alone = fit_by_newton(design, loss, l1, l2, tol=1e-10)
        assert point.status == "converged"
        assert_allclose(point.objective, alone.objective, rtol=1e-10)
        assert_allclose(point.coef, alone.coef, atol=1e-5)


def test_a_copy_and_what_it_is_a_copy_of_go_on_by_themselves() -> None:
    rng = np.random.default_rng(6)
    design = Design.from_dense(rng.normal(size=(N_ROWS, N_COLUMNS)))
    w = np.cov(rng.normal(size=(N_ROWS, 3 * N_ROWS)))

    def check(space: RowSpace, columns: np.ndarray, l2: float) -> None:
        z, none = design.stored(columns), np.zeros(columns.size)
        gradient = rng.normal(size=columns.size)
        known = NewtonQuadratic(np.zeros((0, 0)), gradient, none, none, none + l2, none + np.inf)
        expected = np.linalg.solve(z.T @ w @ z + l2 * np.eye(columns.size), gradient)
        assert_allclose(space.step(w, columns, known, 1e-11), expected)

    first = RowSpace(design)
    check(first, np.arange(130), 2.0)
    second = first.copy()
    check(first, np.arange(60, 200), 1.5)
    check(second, np.arange(100, 260), 3.0)
    check(first, np.arange(50, 220), 1.5)


def test_columns_that_are_too_many_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_space, "MAX_NUMBERS", 150 * N_ROWS)
    rng = np.random.default_rng(8)
    design = Design.from_dense(rng.normal(size=(N_ROWS, N_COLUMNS)))
    space = RowSpace(design)
    w = np.cov(rng.normal(size=(N_ROWS, 3 * N_ROWS)))
    for columns in (np.arange(130), np.arange(100, 240), np.arange(20, 160)):
        z, none = design.stored(columns), np.zeros(columns.size)
        gradient = rng.normal(size=columns.size)
        known = NewtonQuadratic(np.zeros((0, 0)), gradient, none, none, none + 2.0, none + np.inf)
        step = space.step(w, columns, known, 1e-11)
        assert step is not None
        assert_allclose(step, np.linalg.solve(z.T @ w @ z + 2.0 * np.eye(z.shape[1]), gradient))
        assert space.values.shape[0] <= 150
    assert not RowSpace.suits(design, np.ones(200), np.ones(200))


def test_it_suits_tables_with_few_rows_and_an_l2_part_on_penalised_columns() -> None:
    design = Design.from_dense(_table(1))
    l1, l2 = np.ones((2, N_COLUMNS))
    assert RowSpace.suits(design, l1, l2)
    assert not RowSpace.suits(design, l1[: 2 * N_ROWS], l2[: 2 * N_ROWS])
    l2[3] = 0.0
    assert not RowSpace.suits(design, l1, l2)
    l1[3] = 0.0  # without a penalty
    assert RowSpace.suits(design, l1, l2)
    l1[:15], l2[:15] = 0.0, 0.0
    assert not RowSpace.suits(design, l1, l2)
