"""The likelihood of a logistic regression, by hand, by differences, and against its lanes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from model.cohorts import covariates
from riskset._runtime import Runtime
from riskset.data.design import Design
from riskset.kernels._vector import lane_rows
from riskset.model.curvature import sampled_information
from riskset.model.curvature_product import curvature_product
from riskset.model.logistic import LogisticLoss
from riskset.model.replicates_likelihood import LANES, LaneLoss, LogisticLanes, ReplicateWeights

RUNTIME = Runtime(1)
N = 150


def problem(
    seed: int = 0, n: int = N, weights: tuple[float, ...] = (1.0,)
) -> tuple[Design, LogisticLoss, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = covariates(rng, n, 2, ("binary", "valued", "dense"))
    eta = rng.normal(size=n)
    event = rng.random(n) < 1 / (1 + np.exp(1 - eta))
    loss = LogisticLoss.of(event, RUNTIME, weight=rng.choice(weights, n))
    return Design.from_dense(x), loss, eta


def slope(f: object, eta: np.ndarray, along: np.ndarray, h: float = 1e-3) -> np.ndarray:
    """Five-point difference of f along a direction: error O(h^4)."""
    two_back, back, on, two_on = (np.asarray(f(eta + k * h * along)) for k in (-2, -1, 1, 2))
    return (two_back - 8 * back + 8 * on - two_on) / (12 * h)


def test_by_hand_without_covariates() -> None:
    # 2 events of 5: every row has probability 2/5.
    loss = LogisticLoss.of(np.array([1, 0, 0, 1, 0]) > 0, RUNTIME)
    now = loss.evaluate(np.zeros(5))
    assert_allclose(now.intercept, np.log(2 / 3), rtol=1e-15)
    assert_allclose(now.log_likelihood, 2 * np.log(2 / 5) + 3 * np.log(3 / 5), rtol=1e-15)
    assert_allclose(now.residual, [3 / 5, -2 / 5, -2 / 5, 3 / 5, -2 / 5], rtol=1e-15)
    assert_allclose(now.expected, np.full(5, 6 / 25), rtol=1e-15)


def test_by_hand_with_two_odds() -> None:
    # Odds B and 4 B, one event: B / (1 + B) + 4 B / (1 + 4 B) = 1 for B = 1/2; 1/3 and 2/3.
    now = LogisticLoss.of(np.array([False, True]), RUNTIME).evaluate(np.log([1.0, 4.0]))
    assert_allclose(now.intercept, -np.log(2), rtol=1e-15)
    assert_allclose(now.residual, [-1 / 3, 1 / 3], rtol=1e-15)
    assert_allclose(now.expected, [2 / 9, 2 / 9], rtol=1e-15)
    assert_allclose(now.log_likelihood, np.log(4 / 9), rtol=1e-15)


@pytest.mark.parametrize("weights", [(1.0,), (0.0, 1.0, 2.5)])
def test_residuals_are_the_slope_in_eta(weights: tuple[float, ...]) -> None:
    _, loss, eta = problem(1, weights=weights)
    rng, now = np.random.default_rng(2), loss.evaluate(eta)
    assert abs(now.residual.sum()) < 1e-13 * N
    for _ in range(5):
        along = rng.normal(size=N)
        found = slope(lambda e: loss.evaluate(e).log_likelihood, eta, along)
        assert_allclose(now.residual @ along, found, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("weights", [(1.0,), (0.0, 1.0, 2.5)])
def test_information_is_the_slope_of_the_gradient(weights: tuple[float, ...]) -> None:
    design, loss, eta = problem(3, weights=weights)
    columns = np.arange(design.n_features)
    information = loss.information(design, eta, columns)
    product = curvature_product(loss, eta)
    size = np.sqrt(np.diag(information))
    for j in columns:
        along = design.product(np.eye(columns.size)[j], runtime=RUNTIME)
        found = -slope(
            lambda e: design.cross(loss.evaluate(e).residual, runtime=RUNTIME), eta, along
        )
        assert (np.abs(information[j] - found) <= 1e-8 * size[j] * size).all()
        found = design.cross(product(along), runtime=RUNTIME)
        assert (np.abs(information[j] - found) <= 1e-12 * size[j] * size).all()


def test_sampled_curvature_is_near_the_exact_one() -> None:
    design, loss, eta = problem(4, n=3_000)
    columns = np.arange(design.n_features)
    exact = loss.information(design, eta, columns)
    sampled = sampled_information(loss, design, eta, columns, 60_000)
    ratio = np.linalg.eigvals(np.linalg.solve(exact, sampled)).real
    assert ratio.min() > 0.9
    assert ratio.max() < 1.1


def test_a_constant_changes_nothing() -> None:
    _, loss, eta = problem(5)
    near, far = loss.evaluate(eta), loss.evaluate(eta + 900.0)
    assert_allclose(far.intercept, near.intercept - 900.0, rtol=1e-15)
    assert_allclose(far.log_likelihood, near.log_likelihood, rtol=1e-13)
    assert_allclose(far.residual, near.residual, atol=1e-12)


def test_huge_predictors_are_no_trouble() -> None:
    event = np.array([True, True, False, False])
    loss = LogisticLoss.of(event, RUNTIME)
    right = loss.evaluate(np.array([2e4, 1e4, -1e4, -2e4]))
    assert abs(right.log_likelihood) < 1e-300
    assert np.abs(right.residual).max() < 1e-300
    # The two in the middle are wrong: intercept 0, each 1e4 from its side.
    wrong = loss.evaluate(np.array([2e4, -1e4, 1e4, -2e4]))
    assert_allclose(wrong.log_likelihood, -2e4, rtol=1e-12)
    assert_allclose(wrong.residual, [0, 1, -1, 0], atol=1e-12)


def test_one_outcome_only_is_certain() -> None:
    _, loss, eta = problem(6)
    for weight, b in ((loss.outcome.is_event, np.inf), (~loss.outcome.is_event, -np.inf)):
        now = loss.replicate(weight.astype(float)).evaluate(eta)
        assert now.intercept == b
        assert abs(now.log_likelihood) < 1e-280
        assert np.abs(now.residual).max() < 1e-280


def test_a_weight_is_a_repeated_row_and_an_offset_is_part_of_eta() -> None:
    rng = np.random.default_rng(7)
    event, eta, count = rng.random(N) < 0.3, rng.normal(size=N), rng.integers(0, 4, N)
    weighted = LogisticLoss.of(event, RUNTIME, weight=count, offset=eta)
    assert_array_equal(weighted.offset, eta)
    a = weighted.evaluate(weighted.offset)
    b = LogisticLoss.of(np.repeat(event, count), RUNTIME).evaluate(np.repeat(eta, count))
    assert_allclose(a.log_likelihood, b.log_likelihood, rtol=1e-13)
    assert_allclose(a.intercept, b.intercept, rtol=1e-13)
    used = count > 0
    start = np.append(0, np.cumsum(count))[:-1][used]
    assert_allclose(a.residual[used] / count[used], b.residual[start], rtol=1e-12)


@pytest.mark.parametrize("n_parts", [1, 5, 8])
@pytest.mark.parametrize("shares", [(0, 1, 2), (0, 0.3, 1), (0, 1, 300)])
def test_each_lane_is_its_replicate(n_parts: int, shares: tuple[float, ...]) -> None:
    _, loss, _ = problem(n_parts, weights=(0.5, 1.0, 0.0))
    rng = np.random.default_rng(n_parts)
    parts = [ReplicateWeights(loss.outcome.weight * rng.choice(shares, N)) for _ in range(n_parts)]
    assert LaneLoss.can_be_made(loss)
    lanes = LaneLoss.build(loss, parts)
    assert isinstance(lanes, LogisticLanes)
    eta = lane_rows(N)
    eta[:] = rng.normal(size=(N, LANES)) * 3 + 700
    found = lanes.evaluate(eta)
    intercepts = lanes.intercepts(eta)
    assert found.is_safe.all()
    for k, part in enumerate(parts):
        exact = loss.replicate(*part).evaluate(np.ascontiguousarray(eta[:, k]))
        assert_allclose(intercepts[k], exact.intercept, rtol=1e-14)
        assert_allclose(found.log_likelihood[k], exact.log_likelihood, rtol=1e-12)
        assert_allclose(found.residual[:, k], exact.residual, rtol=1e-11, atol=1e-12)
        assert_allclose(lanes.expected(found.residual)[:, k], exact.expected, atol=1e-12)


def test_a_lane_does_not_depend_on_the_others() -> None:
    _, loss, _ = problem(8)
    rng = np.random.default_rng(8)
    parts = [ReplicateWeights(rng.integers(0, 2, N) * 1.0) for _ in range(LANES)]
    eta = lane_rows(N)
    eta[:] = rng.normal(size=(N, LANES)) * np.geomspace(0.1, 300, LANES)
    together = LaneLoss.build(loss, parts).evaluate(eta)
    for k in range(LANES):
        other = lane_rows(N)
        other[:] = 0.0
        other[:, k] = eta[:, k]
        mine = [part if m == k else ReplicateWeights(np.ones(N)) for m, part in enumerate(parts)]
        alone = LaneLoss.build(loss, mine).evaluate(other)
        assert alone.log_likelihood[k] == together.log_likelihood[k]
        assert_array_equal(alone.residual[:, k], together.residual[:, k])
