"""Curvature that is kept along a path: right, seldom made, and never what decides on an answer."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from riskset._runtime import Runtime
from riskset.data.design import Design
from riskset.data.outcome import Outcome
from riskset.model.cox import CoxLoss
from riskset.solve.active_factor import MIN_CARRIED, ActiveFactor
from riskset.solve.curvature import CurvatureModel
from riskset.solve.kept_curvature import KeptCurvature
from riskset.solve.optimality import Problem, in_stored_units
from riskset.solve.path import iterate_path
from riskset.solve.result import Solution
from storages import Store, each_storage

N_ROWS, N_COLUMNS, N_STRENGTHS = 1500, 40, 30


def _table() -> tuple[np.ndarray, Outcome]:
    rng = np.random.default_rng(5)
    x = rng.normal(size=(N_ROWS, N_COLUMNS)) * (rng.random((N_ROWS, N_COLUMNS)) < 0.6)
    x[:, 20:] += 0.7 * x[:, :20]
    x[:, ::9] = x[:, ::9] > 0
    risk = x[:, :12] @ rng.normal(0, 0.4, 12)
    time, end = rng.exponential(np.exp(-risk)), rng.exponential(2.0, N_ROWS)
    stratum = rng.integers(0, 2, N_ROWS)
    time, event = np.ceil(40 * np.minimum(time, end)), (time <= end).astype(np.int64)
    weight = rng.uniform(0.5, 2.0, N_ROWS)
    return x, Outcome.build(time, event, stratum=stratum, weight=weight, cause=1)


def _path(store: Store, n_threads: int) -> tuple[Problem, np.ndarray, list[Solution]]:
    x, outcome = _table()
    design, loss = store(x), CoxLoss(outcome, "efron", Runtime.select("cpu", n_threads))
    problem = Problem.prepare(design, loss)
    first = float(np.abs(problem.gradient_at_zero * design.scale).max())
    strengths = first * np.geomspace(1, 1e-3, N_STRENGTHS)
    none = np.zeros(N_COLUMNS)
    penalties = [(s + none, none) for s in strengths]
    return problem, strengths, list(iterate_path(design, loss, penalties, problem=problem))


@each_storage
def test_curvature_is_made_less_often_than_there_are_solutions(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, exact = [], CurvatureModel._exact

    def counted(self: CurvatureModel, columns: np.ndarray, *args: object, **kwargs: object):
        made.append(columns.size)
        return exact(self, columns, *args, **kwargs)

    monkeypatch.setattr(CurvatureModel, "_exact", counted)
    problem, strengths, path = _path(store, 1)
    assert sum(point.n_iter for point in path) <= 3.5 * N_STRENGTHS
    assert len(made) <= N_STRENGTHS
    for strength, point in zip(strengths, path, strict=True):
        stored = point.coef * problem.design.scale
        eta = problem.design.product(stored, runtime=problem.loss.runtime)
        now = problem.loss.evaluate(eta)
        gradient = problem.design.cross(now.residual, runtime=problem.loss.runtime)
        l1, l2 = in_stored_units(problem.design, np.full(N_COLUMNS, strength), np.zeros(N_COLUMNS))
        residual = problem.residual(now, gradient, stored, l1, l2).max() / problem.kkt_scale
        assert residual <= 1e-8
        assert_allclose(point.kkt, residual, atol=1e-12)


@each_storage
def test_bits_do_not_depend_on_threads(store: Store) -> None:
    (*_, one), (*_, two) = _path(store, 1), _path(store, 2)
    for a, b in zip(one, two, strict=True):
        assert_array_equal(a.coef, b.coef)


def _information(rng: np.random.Generator) -> np.ndarray:
    root = rng.normal(size=(60, 12))
    return root.T @ root


def test_columns_that_enter_were_made_before(rng: np.random.Generator) -> None:
    whole, made = _information(rng), []

    def exact(columns: np.ndarray) -> np.ndarray:
        made.append(columns)
        return whole[np.ix_(columns, columns)]

    def nearest(columns: np.ndarray, most: int) -> np.ndarray:
        return np.setdiff1d(np.arange(11), columns)[:most]

    kept = KeptCurvature(1000)
    first, is_new = kept.at(np.array([2, 5]), 0.1, exact, nearest)
    assert is_new
    assert_array_equal(first, whole[np.ix_([2, 5], [2, 5])])
    more = np.array([1, 2, 5, 7])
    found, is_new = kept.copy().at(more, 0.1, exact, nearest)
    assert not is_new
    assert_array_equal(found, whole[np.ix_(more, more)])
    assert len(made) == 1
    other, is_new = kept.at(np.array([2, 11]), 0.1, exact, nearest)
    assert is_new
    assert_array_equal(other, whole[np.ix_([2, 11], [2, 11])])


def test_what_it_learns_keeps_all_of_it_positive(rng: np.random.Generator) -> None:
    whole, truth = _information(rng), _information(rng)
    kept = KeptCurvature(1000)
    columns = np.array([0, 3, 4, 9])

    def exact(some: np.ndarray) -> np.ndarray:
        return whole[np.ix_(some, some)]

    def nearest(columns: np.ndarray, most: int) -> np.ndarray:
        return np.setdiff1d(np.arange(12), columns)[:most]

    before, _ = kept.at(columns, 0.1, exact, nearest)
    step = rng.normal(size=4)
    step[1] = 0.0
    image, y = before @ step, truth[np.ix_(columns, columns)] @ step
    kept.learn(step, image, y, float(y @ step), float(step @ image))
    after, is_new = kept.at(columns, 0.01, exact, nearest)
    assert not is_new
    assert_allclose(after @ step, y, rtol=1e-9, atol=1e-9)
    assert np.linalg.eigvalsh(kept.matrix).min() > 0


@pytest.mark.parametrize("l2_share", [0.0, 0.2])
def test_steps_carry_their_factor_along_a_path(
    l2_share: float, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    n, p = 500, 300
    x = rng.normal(size=(n, p)) + rng.normal(size=(n, 1))
    time = rng.exponential(np.exp(-x[:, :30] @ rng.normal(0, 0.3, 30)))
    outcome = Outcome.build(time, np.ones(n, dtype=np.int64), cause=1)
    design, loss = Design.from_dense(x), CoxLoss(outcome, "breslow", Runtime.select("cpu", 1))
    problem = Problem.prepare(design, loss)
    first = float(np.abs(problem.gradient_at_zero * design.scale).max())
    one = np.ones(p)
    penalties = [(s * one, l2_share * s * one) for s in first * np.geomspace(0.05, 0.005, 12)]
    made, make = [], ActiveFactor._make

    def counted(self: ActiveFactor, *given: Any) -> Any:
        made.append(1)
        return make(self, *given)

    monkeypatch.setattr(ActiveFactor, "_make", counted)
    path = list(iterate_path(design, loss, penalties, problem=problem))
    assert min(np.count_nonzero(point.coef) for point in path[2:]) > MIN_CARRIED
    n_steps = sum(point.n_iter for point in path)
    # Another strength of L2 needs a new one at its first step.
    assert len(made) <= (0.7 if l2_share else 0.5) * n_steps
    made.clear()
    monkeypatch.setattr(ActiveFactor, "learn", lambda self, *_: self.forget())
    afresh = list(iterate_path(design, loss, penalties, problem=problem))
    assert len(made) > 0.9 * sum(point.n_iter for point in afresh)
    for point, other in zip(path, afresh, strict=True):
        assert point.kkt <= 1e-8
        assert_allclose(point.objective, other.objective, rtol=1e-10)
        assert_allclose(point.coef, other.coef, atol=1e-6 * np.abs(other.coef).max())
