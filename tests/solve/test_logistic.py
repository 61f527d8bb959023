"""Logistic regression by the solver: against another program, certified anew, and to its limits."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression

from model.cohorts import covariates
from riskset._runtime import Runtime
from riskset.data.design import Design
from riskset.model.logistic import LogisticLoss
from riskset.model.replicates_likelihood import ReplicateWeights
from riskset.solve import prox_newton
from riskset.solve.fit import fit_by_newton
from riskset.solve.optimality import Problem
from riskset.solve.path import strength_max
from riskset.solve.replicates import fit_replicates
from riskset.solve.result import Solution
from storages import Store, each_storage

RUNTIME = Runtime(1)


def sample(n: int, each: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = covariates(rng, n, each, ("binary", "valued", "dense"))
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    eta = z @ rng.normal(size=x.shape[1]) * 0.3 - 0.7
    return x, rng.random(n) < 1 / (1 + np.exp(-eta))


def fit(
    x: np.ndarray,
    event: np.ndarray,
    l1: float = 0.0,
    l2: float = 0.0,
    *,
    weight: np.ndarray | None = None,
    offset: np.ndarray | None = None,
    store: Store = Design.from_dense,
) -> Solution:
    design = store(x)
    loss = LogisticLoss.of(event, RUNTIME, weight=weight, offset=offset)
    each = np.ones(design.n_features)
    return fit_by_newton(design, loss, l1 * each, l2 * each)


def intercept(x: np.ndarray, found: Solution) -> float:
    """In the user's units: the linear predictor of the solver may differ by a constant."""
    now = found.loss.evaluate(found.eta)
    return now.intercept + float(np.mean(found.eta - x @ found.coef))


def violation(
    x: np.ndarray, event: np.ndarray, found: Solution, l1: float, l2: float
) -> tuple[float, float]:
    """Largest violation of the conditions, per standard deviation of a column; of the intercept."""
    p = 1 / (1 + np.exp(-(x @ found.coef + intercept(x, found))))
    gradient = x.T @ (event - p) - l2 * found.coef
    moved = found.coef != 0
    v = np.where(
        moved, np.abs(gradient - l1 * np.sign(found.coef)), np.maximum(np.abs(gradient) - l1, 0)
    )
    return float((v / x.std(axis=0)).max()), abs(float(np.sum(event - p)))


@pytest.mark.parametrize("l2", [0.0, 3.0])
def test_as_scikit_learn(l2: float) -> None:
    x, event = sample(800, 4, 1)
    weight = np.random.default_rng(1).choice([0.5, 1.0, 2.0], 800)
    unit = x.std(axis=0)
    found = fit_by_newton(
        Design.from_dense(x),
        LogisticLoss.of(event, RUNTIME, weight=weight),
        np.zeros(unit.size),
        l2 * unit**2,
    )
    peer = LogisticRegression(
        C=1 / l2 if l2 else np.inf, tol=1e-12, max_iter=1000, solver="newton-cholesky"
    )
    peer.fit((x - x.mean(axis=0)) / unit, event, sample_weight=weight)
    assert found.status == "converged"
    assert_allclose(found.coef * unit, peer.coef_[0], rtol=1e-7, atol=1e-9)
    centred = peer.intercept_[0] - np.sum(peer.coef_[0] / unit * x.mean(axis=0))
    assert_allclose(intercept(x, found), centred, rtol=1e-7)


@pytest.mark.parametrize("share", [0.5, 0.05, 0.001])
@pytest.mark.parametrize("l2", [0.0, 1.0])
def test_the_certificate_holds(share: float, l2: float) -> None:
    x, event = sample(1_500, 10, 2)
    x = x / x.std(axis=0)
    design, loss = Design.from_dense(x), LogisticLoss.of(event, RUNTIME)
    most = strength_max(design, loss, np.ones(30))[0]
    found = fit(x, event, share * most, l2)
    assert found.status == "converged"
    assert found.kkt <= 1e-8
    worst, of_intercept = violation(x, event, found, share * most, l2)
    assert worst <= 1e-7 * np.abs(x.T @ (event - event.mean())).max()
    assert of_intercept < 1e-9
    assert np.count_nonzero(fit(x, event, 1.001 * most).coef) == 0
    assert np.count_nonzero(fit(x, event, 0.99 * most).coef) == 1


def test_sampled_curvature_comes_to_the_same_end(monkeypatch: pytest.MonkeyPatch) -> None:
    x, event = sample(4_000, 4, 3)
    exact = fit(x, event, 0.0, 1.0)
    monkeypatch.setattr("riskset.solve.curvature.EXACT_WORK", 0.0)
    sampled = fit(x, event, 0.0, 1.0)
    monkeypatch.setattr(prox_newton, "MAX_MATRIX_COLUMNS", 1)
    by_products = fit(x, event, 0.0, 1.0)
    for found in (sampled, by_products):
        assert found.status == "converged"
        assert_allclose(found.coef, exact.coef, rtol=1e-5)


@each_storage
def test_a_weight_is_a_repeated_row(store: Store) -> None:
    x, event = sample(300, 2, 4)
    count = np.random.default_rng(4).integers(0, 4, 300)
    weighted = fit(x, event, weight=count.astype(float), store=store)
    repeated = fit(np.repeat(x, count, axis=0), np.repeat(event, count), store=store)
    assert_allclose(weighted.coef, repeated.coef, rtol=1e-8)
    assert_allclose(weighted.log_likelihood, repeated.log_likelihood, rtol=1e-12)


@each_storage
def test_an_offset_is_taken_off(store: Store) -> None:
    x, event = sample(400, 2, 5)
    found = fit(x, event, store=store)
    shifted = fit(x, event, offset=x[:, 4] * found.coef[4], store=store)
    assert_allclose(shifted.coef[4] / found.coef[4], 0.0, atol=1e-7)
    assert_allclose(np.delete(shifted.coef, 4), np.delete(found.coef, 4), rtol=1e-6)


def test_columns_that_say_nothing_new() -> None:
    x, event = sample(400, 2, 6)
    found = fit(np.c_[x, np.full(400, 3.0), x[:, 0] + x[:, 1] - 2], event)
    assert_array_equal(np.flatnonzero(found.aliased), [6, 7])
    assert_allclose(found.coef[:6], fit(x, event).coef, rtol=1e-7)


SEPARATED = {
    # Columns, outcome; infinite coefficients; rows left in the limit.
    "complete": ([[0], [1], [2], [3]], [0, 0, 1, 1], [1], []),
    "downwards": ([[0], [1], [2], [3]], [1, 1, 0, 0], [-1], []),
    "quasi": ([[0], [1], [1], [2]], [0, 0, 1, 1], [1], [1, 2]),
    "two_columns": ([[0, 0], [2, 1], [1, 2], [3, 3], [0, 1]], [0, 1, 0, 1, 0], None, []),
    "rare": ([[0, 1], [1, 0], [0, 2], [0, 3], [0, 1]], [0, 1, 1, 0, 1], [1, 0], [0, 2, 3, 4]),
    "overlap": ([[0], [1], [2], [3]], [0, 1, 0, 1], [0], [0, 1, 2, 3]),
}


@pytest.mark.parametrize("name", SEPARATED)
def test_separation(name: str) -> None:
    x, event, signs, left = SEPARATED[name]
    x, event = np.array(x, dtype=float), np.array(event) > 0
    found = fit(x, event)
    if signs is not None:
        assert_array_equal(found.infinite, signs)
    assert_array_equal(np.flatnonzero(found.loss.outcome.weight), left)
    if not left:
        assert abs(found.log_likelihood) < 1e-280
    rest = np.array(left, dtype=int)
    if 0 < len(left) < event.size and found.coef.size > 1:
        # The finite part is the fit of what is left.
        assert_allclose(found.coef[1], fit(x[rest, 1:], event[rest]).coef[0], rtol=1e-6)


def test_the_limit_is_where_larger_coefficients_lead() -> None:
    x, event = sample(200, 2, 7)
    x[:, 0] = (np.arange(200) < 12) & event
    found = fit(x, event)
    assert found.status == "infinite_estimate"
    assert found.infinite.tolist() == [1, 0, 0, 0, 0, 0]
    held = fit(x[:, 1:], event, offset=30.0 * x[:, 0])
    assert_allclose(found.coef[1:], held.coef, rtol=1e-6)
    assert_allclose(found.log_likelihood, held.log_likelihood, rtol=1e-9)


@each_storage
def test_lanes_end_where_single_fits_do(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    x, event = sample(5_000, 4, 8)
    rng = np.random.default_rng(8)
    design, loss = store(x), LogisticLoss.of(event, Runtime(2))
    l1, l2 = 20.0 * x.std(axis=0), np.zeros(12)
    l1[5] = 0.0
    problem = Problem.prepare(design, loss)
    whole = fit_by_newton(design, loss, l1, l2, problem=problem)
    weights = [np.where(rng.random(5_000) < 0.1, 0.0, 1.0) for _ in range(10)]
    parts = [lambda w=w: ReplicateWeights(w) for w in weights]
    with monkeypatch.context() as patch:
        patch.setattr("riskset.solve.replicates._ReplicateTasks._alone", None)
        together = list(fit_replicates(problem, whole, l1, l2, parts, tol=1e-9))
    monkeypatch.setattr("riskset.solve.replicates.MIN_SHARED_ROWS", 10**9)
    alone = list(fit_replicates(problem, whole, l1, l2, parts, tol=1e-9))
    for one, other in zip(together, alone, strict=True):
        assert one.status == other.status == "converged"
        assert_allclose(one.coef * x.std(axis=0), other.coef * x.std(axis=0), atol=1e-7)
        assert_allclose(one.log_likelihood, other.log_likelihood, rtol=1e-9)
