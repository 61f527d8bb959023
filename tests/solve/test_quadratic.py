"""The inner problem is solved, whatever the correlation of its columns."""

import numpy as np
import pytest

from riskset._types import NewtonQuadratic
from riskset.solve import quadratic
from riskset.solve.active_factor import ActiveFactor
from riskset.solve.optimality import violations
from riskset.solve.quadratic import newton_step


def residual(b, g, beta, l1, l2, box, step):
    """Violation of the optimality conditions of the penalised quadratic in a box."""
    v = violations(g - b @ step, beta + step, l1, l2)
    u = g - b @ step - l2 * (beta + step)
    pushed_up = (step >= box) & (u - l1 * np.sign(beta + step) >= 0)
    pushed_down = (step <= -box) & (u - l1 * np.sign(beta + step) <= 0)
    return np.where(pushed_up | pushed_down, 0.0, v).max()


@pytest.mark.parametrize("seed", range(40))
def test_conditions_hold(seed: int) -> None:
    rng = np.random.default_rng(seed)
    q = int(rng.choice([1, 2, 5, 30]))
    rank = max(1, q - int(rng.integers(0, 2)))
    half = rng.normal(size=(q, rank)) @ rng.normal(size=(rank, rank)) + rng.normal(size=(q, 1))
    b = half @ half.T
    b[np.diag_indices(q)] *= 1 + 1e-9
    g = half @ rng.normal(size=rank) * 3
    beta = rng.normal(size=q) * (rng.random(q) < 0.5)
    l1 = rng.uniform(0, 2, q) * (rng.random() < 0.6)
    l2 = rng.uniform(0, 2, q) * (rng.random() < 0.5)
    box = np.full(q, rng.choice([0.1, 2.0, 50.0]))
    step, image = newton_step(NewtonQuadratic(b, g, beta, l1, l2, box), 1e-9 * np.abs(g).max())
    assert (np.abs(step) <= box * (1 + 1e-12)).all()
    np.testing.assert_allclose(image, b @ step, atol=1e-8 * np.abs(b).max())
    assert residual(b, g, beta, l1, l2, box, step) <= 1e-6 * np.abs(g).max()


def test_nearly_equal_columns_take_few_sweeps() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(50, 1)) + 1e-4 * rng.normal(size=(50, 6))
    b = x.T @ x
    g = x.T @ rng.normal(size=50)
    zero = np.zeros(6)
    box = np.full(6, 1e9)
    step, _ = newton_step(NewtonQuadratic(b, g, zero, zero, zero, box), 1e-10)
    np.testing.assert_allclose(b @ step, g, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("tiny", [1e-300, 1e-310, 2.5e-321])
def test_a_curvature_next_to_nothing_ends_at_the_box(tiny: float) -> None:
    # The minimum along the second coordinate is beyond the largest number.
    b, zero = np.diag([1.0, tiny]), np.zeros(2)
    step, image = newton_step(
        NewtonQuadratic(b, np.ones(2), zero, zero, zero, np.full(2, 2.0)), 1e-9
    )
    np.testing.assert_allclose(step, [1.0, 2.0])
    np.testing.assert_allclose(image, b @ step)


@pytest.mark.parametrize(("common", "is_fast"), [(0.0, True), (0.5, False)])
def test_an_active_set_is_factored_only_where_sweeps_are_slow(
    common: float, is_fast: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A few sweeps of q^2 products suffice for independent columns; a factor takes q^3 / 3.
    rng = np.random.default_rng(7)
    n, q = 20_000, 900
    x = np.sqrt(1 - common) * rng.normal(size=(n, q)) + np.sqrt(common) * rng.normal(size=(n, 1))
    b = x.T @ x
    beta, one, box = rng.normal(size=q), np.ones(q), np.full(q, 1e9)
    g = b @ rng.normal(size=q)
    sweeps, sweeps_before = [], []
    descend, begin = quadratic._descend, ActiveFactor.begin

    def count_sweeps(problem, tolerance, n_sweeps, step, image):
        sweeps.append(n_sweeps)
        return descend(problem, tolerance, n_sweeps, step, image)

    def count_begins(*given):
        sweeps_before.append(sum(sweeps))
        return begin(*given)

    monkeypatch.setattr(quadratic, "_descend", count_sweeps)
    monkeypatch.setattr(ActiveFactor, "begin", count_begins)
    step, _ = newton_step(NewtonQuadratic(b, g, beta, one, one, box), 1e-6 * np.abs(g).max())
    assert residual(b, g, beta, one, one, box, step) <= 1e-5 * np.abs(g).max()
    if is_fast:
        assert not sweeps_before
        assert sum(sweeps) <= 15
    else:
        assert sweeps_before[0] <= 6


def test_a_factor_is_carried_from_step_to_step(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(11)
    columns, made, make = np.arange(0, 500, 2), [], ActiveFactor._make
    q = columns.size
    half = rng.normal(size=(400, q)) + rng.normal(size=(400, 1))
    b, truth = half.T @ half, (half * rng.uniform(0.8, 1.2, (400, 1))).T @ half
    beta = rng.normal(size=q) * (rng.random(q) < 0.7)
    g = truth @ (rng.normal(size=q) * (rng.random(q) < 0.7))
    l1, l2, box = np.full(q, 50.0), rng.uniform(0, 2, q), np.full(q, 50.0)

    def counted(self, problem, free):
        made.append(free.size)
        return make(self, problem, free)

    monkeypatch.setattr(ActiveFactor, "_make", counted)
    kept = ActiveFactor()
    for k in range(6):
        problem = NewtonQuadratic(b, g, beta, l1, l2, box)
        n_new = len(made)
        step, image = newton_step(problem, 1e-9 * np.abs(g).max(), columns, kept)
        n_carried = len(made) - n_new
        fresh, fresh_image = newton_step(problem, 1e-9 * np.abs(g).max())
        np.testing.assert_allclose(step, fresh, atol=1e-9 * np.abs(fresh).max())
        np.testing.assert_allclose(image, fresh_image, atol=1e-8 * np.abs(fresh_image).max())
        assert residual(b, g, beta, l1, l2, box, step) <= 1e-6 * np.abs(g).max()
        assert 0 < np.count_nonzero(beta + step) < q
        assert n_carried == (1 if k == 0 else 0)
        # The next step is smaller, has another slope, and some of the columns leave.
        y = truth @ step
        sy, sbs = float(y @ step), float(step @ image)
        kept.learn(columns, y, image, sy, sbs)
        b = b + np.outer(y, y) / sy - np.outer(image, image) / sbs
        beta, g = beta + step, 0.9 * g + rng.normal(0, 5, q)
        stays = np.sort(rng.permutation(q)[: q - 5]) if q > 200 else np.arange(q)
        columns, b, truth = columns[stays], b[np.ix_(stays, stays)], truth[np.ix_(stays, stays)]
        beta, g, l1, l2, box = (v[stays] for v in (beta, g, l1, l2, box))
        q = columns.size
