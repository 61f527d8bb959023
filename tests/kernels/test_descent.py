"""Descent is judged by the optimum it reaches, secant updates by the equation they meet."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from kernels.problems import frozen
from riskset._types import NewtonQuadratic
from riskset.kernels import (
    active_set_cpu,
    active_set_ref,
    descent_cpu,
    descent_ref,
    replicates_cpu,
    replicates_ref,
)

TIGHT = 1e-12


def quadratic(seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    q = int(rng.choice([1, 2, 5, 12, 30]))
    root = rng.normal(size=(q, q)) + 0.5 * rng.normal(size=(q, 1))
    if seed % 4 == 0:
        root[:, 0] = 0.0  # a column without curvature
    penalties = rng.uniform(0, 3, (2, q)) * (rng.random((2, q)) < 0.6)
    return {
        "curvature": frozen(root.T @ root / q),
        "gradient": frozen(3 * rng.normal(size=q)),
        "beta": frozen(rng.normal(size=q) * (rng.random(q) < 0.5)),
        "l1": frozen(penalties[0]),
        "l2": frozen(penalties[1]),
        "box": frozen(rng.choice([0.05, 1.0, 1e3], q)),
    }


def objective(p: dict[str, np.ndarray], d: np.ndarray) -> float:
    new = p["beta"] + d
    smooth = -p["gradient"] @ d + d @ p["curvature"] @ d / 2 + p["l2"] @ new**2 / 2
    return float(smooth + p["l1"] @ np.abs(new))


def gap(p: dict[str, np.ndarray], d: np.ndarray) -> float:
    """Largest descent that one coordinate still offers, in gradient units."""
    new = p["beta"] + d
    slope = -p["gradient"] + p["curvature"] @ d + p["l2"] * new
    right = slope + np.where(new >= 0, p["l1"], -p["l1"])
    left = -slope + np.where(new <= 0, p["l1"], -p["l1"])
    right[d >= p["box"]] = left[d <= -p["box"]] = 0.0
    used = np.diag(p["curvature"]) + p["l2"] > 0
    return float(np.maximum(-right, -left)[used].max(initial=0.0))


def minimise(module, p: dict[str, np.ndarray], sweeps: int = 20_000) -> tuple:
    step, image = np.zeros(p["beta"].size), np.zeros(p["beta"].size)
    count = module.minimise_quadratic(NewtonQuadratic(**p), TIGHT, sweeps, step, image)
    return count, step, image


@pytest.mark.parametrize("seed", range(40))
def test_the_optimum(seed: int) -> None:
    p = quadratic(seed)
    count, step, image = minimise(descent_cpu, p)
    assert count <= 20_000
    assert (np.abs(step) <= p["box"]).all()
    assert gap(p, step) < 1e-10
    assert_allclose(image, p["curvature"] @ step, rtol=1e-10, atol=1e-10)
    _, slow, _ = minimise(descent_ref, p)
    assert gap(p, slow) < 1e-10
    assert_allclose(objective(p, step), objective(p, slow), rtol=1e-12, atol=1e-12)


def test_it_says_when_it_did_not_converge() -> None:
    p = quadratic(3)
    assert minimise(descent_cpu, p, sweeps=1)[0] == 2
    assert minimise(descent_ref, p, sweeps=1)[0] == 2


def test_continuing_from_a_step_ends_at_once() -> None:
    p = quadratic(7)
    _, step, image = minimise(descent_cpu, p)
    before = step.copy()
    assert descent_cpu.minimise_quadratic(NewtonQuadratic(**p), 1e-9, 5, step, image) == 1
    assert_allclose(step, before, atol=1e-9)


@pytest.mark.parametrize("module", [descent_ref, descent_cpu])
@pytest.mark.parametrize("q", [1, 2, 17])
def test_secant_update(module, q: int, rng: np.random.Generator) -> None:
    root, truth = rng.normal(size=(q, q)), rng.normal(size=(q, q))
    b, truth = root.T @ root + np.eye(q), truth.T @ truth + np.eye(q)
    s = rng.normal(size=q)
    y, image = frozen(truth @ s), frozen(b @ s)
    updated = b.copy()
    module.secant_update(updated, y, image, float(s @ y), float(s @ image))
    assert_allclose(updated @ s, y, rtol=1e-10, atol=1e-10)
    assert_allclose(updated, updated.T, rtol=1e-12, atol=1e-12)
    assert np.linalg.eigvalsh(updated).min() > 0


def test_secant_updates_agree(rng: np.random.Generator) -> None:
    b, y, image = rng.normal(size=(6, 6)), rng.normal(size=6), rng.normal(size=6)
    fast, slow = b.copy(), b.copy()
    descent_cpu.secant_update(fast, y, image, 1.5, 0.7)
    descent_ref.secant_update(slow, y, image, 1.5, 0.7)
    assert_allclose(fast, slow, rtol=1e-13, atol=1e-13)
    assert_array_equal(np.isfinite(fast), True)


@pytest.mark.parametrize("module", [descent_ref, descent_cpu])
def test_sums_of_rows(module, rng: np.random.Generator) -> None:
    matrix, out = rng.normal(size=(5, 5)), np.ones(5)
    module.add_products(matrix, np.array([4, 1]), np.array([2.0, -0.5]), out)
    assert_allclose(out, 1 + 2 * matrix[4] - 0.5 * matrix[1], rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("module", [descent_ref, descent_cpu])
def test_copies_of_blocks(module, rng: np.random.Generator) -> None:
    matrix, out = rng.normal(size=(5, 5)), np.zeros((4, 4))
    module.copy_block(matrix, np.array([4, 1]), out, np.array([0, 3]))
    expected = np.zeros((4, 4))
    expected[0, 0], expected[0, 3], expected[3, 3] = matrix[4, 4], matrix[4, 1], matrix[1, 1]
    expected[3, 0] = matrix[1, 4]
    assert_array_equal(out, expected)


# ------------------------------------------------------------------------------ an active set


def minimise_active(
    module, p: dict[str, np.ndarray], start: np.ndarray, *, moves: int = 500, capacity: int = 99
) -> tuple[bool, np.ndarray, np.ndarray]:
    step, image, q = start.copy(), p["curvature"] @ start, start.size
    free = (p["beta"] + step != 0) | (p["l1"] == 0)
    active = np.flatnonzero(free & (np.abs(step) < p["box"]))
    m = active.size
    factor = np.full((max(min(q, capacity), m),) * 2, np.nan)
    hessian = p["curvature"][np.ix_(active, active)] + np.diag(p["l2"][active])
    factor[:m, :m] = np.linalg.cholesky(hessian).T
    active = np.append(active, np.zeros(q - m, dtype=np.int64))
    done = module.minimise_active(
        NewtonQuadratic(**p), TIGHT, moves, active, m, factor, step, image
    )
    return done, step, image


def curved(seed: int) -> dict[str, np.ndarray]:
    p = quadratic(seed)
    q = p["beta"].size
    return p | {"curvature": frozen(p["curvature"] + 0.01 * np.eye(q))}


@pytest.mark.parametrize("module", [active_set_ref, active_set_cpu])
@pytest.mark.parametrize("seed", range(40))
def test_the_optimum_by_an_active_set(module, seed: int) -> None:
    p = curved(seed)
    _, best, _ = minimise(descent_cpu, p)
    starts = [np.zeros(best.size)]
    for sweeps in (1, 5):
        starts.append(minimise(descent_cpu, p, sweeps)[1])
    for start in starts:
        done, step, image = minimise_active(module, p, start)
        assert done
        assert (np.abs(step) <= p["box"]).all()
        assert gap(p, step) < 1e-9
        assert_allclose(image, p["curvature"] @ step, rtol=1e-9, atol=1e-9)
        assert_allclose(objective(p, step), objective(p, best), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("seed", range(20))
def test_active_sets_agree_after_every_move(seed: int) -> None:
    p = curved(seed)
    start = np.zeros(p["beta"].size)
    for moves in range(1, 12):
        found = [
            minimise_active(m, p, start, moves=moves) for m in (active_set_ref, active_set_cpu)
        ]
        assert found[0][0] == found[1][0]
        assert_allclose(found[0][1], found[1][1], rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("module", [active_set_ref, active_set_cpu])
def test_an_active_set_without_room_says_that_it_did_not_end(module) -> None:
    p = quadratic(0) | {
        "curvature": np.eye(3), "gradient": np.array([3.0, 2.9, 2.8]), "beta": np.zeros(3),
        "l1": np.ones(3), "l2": np.zeros(3), "box": np.full(3, 9.0),
    }  # fmt: skip
    done, step, image = minimise_active(module, p, np.zeros(3), capacity=2)
    assert not done
    assert_allclose(step, [2.0, 1.9, 0.0])
    assert_array_equal(image, step)
    assert not minimise_active(module, p, np.zeros(3), moves=1)[0]
    twins = p | {"curvature": np.ones((3, 3))}
    done, step, _ = minimise_active(module, twins, np.zeros(3))
    assert not done  # the second repeats the first
    assert_allclose(step, [2.0, 0.0, 0.0], atol=1e-9)


@pytest.mark.parametrize("module", [active_set_ref, active_set_cpu])
@pytest.mark.parametrize("seed", range(20))
def test_an_active_set_hands_on_its_factor(module, seed: int) -> None:
    p = curved(seed)
    q = p["beta"].size
    active, factor = np.full(q, -1, dtype=np.int64), np.zeros((q, q))
    problem, (step, image) = NewtonQuadratic(**p), np.zeros((2, q))
    start = np.flatnonzero((p["beta"] != 0) | (p["l1"] == 0))
    active[: start.size] = start
    block = p["curvature"][np.ix_(start, start)] + np.diag(p["l2"][start])
    factor[: start.size, : start.size] = np.linalg.cholesky(block).T
    assert module.minimise_active(problem, 1e-10, 500, active, start.size, factor, step, image)
    is_free = ((p["beta"] + step != 0) | (p["l1"] == 0)) & (np.abs(step) < p["box"])
    assert_array_equal(np.sort(active[active >= 0]), np.flatnonzero(is_free))
    factored(module, p, active[active >= 0], factor)


def factored(module, p: dict[str, np.ndarray], free: np.ndarray, factor: np.ndarray) -> None:
    upper = np.triu(factor[: free.size, : free.size])
    block = p["curvature"][np.ix_(free, free)] + np.diag(p["l2"][free])
    assert_allclose(upper.T @ upper, block, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("module", [active_set_ref, active_set_cpu])
def test_coordinates_leave_a_factor_and_enter_it(module, rng: np.random.Generator) -> None:
    q, free = 12, np.array([7, 2, 9, 4, 0])
    root = rng.normal(size=(30, q))
    p = {"curvature": frozen(root.T @ root), "l2": frozen(rng.uniform(0, 2, q))}
    factor, active = np.zeros((9, 9)), np.full(9, -1, dtype=np.int64)
    assert module.exchange(p["curvature"], p["l2"], active, 0, factor, free)
    assert_array_equal(active, [*free, -1, -1, -1, -1])
    factored(module, p, free, factor)
    active[[0, 3]] = -1
    assert module.exchange(p["curvature"], p["l2"], active, 5, factor, np.array([11, 4, 5]))
    assert_array_equal(active, [2, 9, 0, 11, 4, 5, -1, -1, -1])
    factored(module, p, active[:6], factor)
    twins = np.ones((3, 3))
    assert not module.exchange(twins, np.zeros(3), active, 0, factor, np.array([0, 1]))


@pytest.mark.parametrize("module", [active_set_ref, active_set_cpu])
def test_a_factor_follows_what_is_added_and_taken_off(module, rng: np.random.Generator) -> None:
    root, plus = rng.normal(size=(30, 6)), rng.normal(size=6)
    whole = root.T @ root
    step = rng.normal(size=6)
    minus = whole @ step / np.sqrt(step @ whole @ step)  # leaves it singular but for `plus`
    factor = np.full((8, 8), np.nan)
    factor[:6, :6] = np.linalg.cholesky(whole).T
    assert module.update_factor(factor, 6, plus.copy(), minus.copy())
    upper = np.triu(factor[:6, :6])
    expected = whole + np.outer(plus, plus) - np.outer(minus, minus)
    assert_allclose(upper.T @ upper, expected, rtol=1e-9, atol=1e-9)
    factor[:6, :6] = np.linalg.cholesky(whole).T
    assert not module.update_factor(factor, 6, np.zeros(6), 1.1 * minus)


# ------------------------------------------------------------------------------ eight at once


def eight(seed: int) -> tuple[list[np.ndarray], list[dict[str, np.ndarray]]]:
    """The arguments of a kernel, and the problem of each lane."""
    rng = np.random.default_rng(1000 + seed)
    q, n_pairs = int(rng.choice([1, 4, 15])), int(rng.choice([0, 2, 6]))
    root = rng.normal(size=(q + 3, q)) + 0.5 * rng.normal(size=(q + 3, 1))
    shared, scale = root.T @ root / q + 0.1 * np.eye(q), rng.uniform(0.5, 2, 8)
    pairs = 0.3 * rng.normal(size=(q, n_pairs, 8))
    pairs[:, 1::2] *= 0.1  # what is taken off leaves the curvature positive
    gradient, beta = 3 * rng.normal(size=(q, 8)), rng.normal(size=(q, 8))
    beta *= rng.random((q, 8)) < 0.5
    l1, l2 = rng.uniform(0, 3, (2, q)) * (rng.random((2, q)) < 0.6)
    box, may_move = rng.choice([0.05, 1.0, 1e3], (q, 8)), rng.random((q, 8)) < 0.8
    sign = np.where(np.arange(n_pairs) % 2, -1.0, 1.0)
    lanes = []
    for k in range(8):
        use = may_move[:, k]
        own = scale[k] * shared + (pairs[:, :, k] * sign) @ pairs[:, :, k].T
        one = (own[np.ix_(use, use)], gradient[use, k], beta[use, k], l1[use], l2[use], box[use, k])
        lanes.append(dict(zip(quadratic(0), one, strict=True)))
    args = [shared, scale, pairs, gradient, beta, l1, l2, box, may_move, np.full(8, TIGHT)]
    return [frozen(a) for a in args], lanes


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("module", [replicates_cpu, replicates_ref])
def test_the_optimum_in_every_lane(module, seed: int) -> None:
    args, lanes = eight(seed)
    may_move = args[8]
    step, image = np.zeros(may_move.shape), np.zeros(may_move.shape)
    module.minimise_quadratics(*args, 5000, step, image)
    assert not step[~may_move].any()
    for k, lane in enumerate(lanes):
        use = may_move[:, k]
        assert (np.abs(step[use, k]) <= lane["box"]).all()
        assert gap(lane, step[use, k]) < 1e-10
        assert_allclose(image[use, k], lane["curvature"] @ step[use, k], rtol=1e-9, atol=1e-10)


def test_a_lane_does_not_see_the_others() -> None:
    args, _ = eight(7)
    results = []
    for company in (np.arange(8), np.array([3, 0, 0, 3, 1, 1, 1, 1])):
        chosen = [a[..., company] if a.ndim and a.shape[-1] == 8 else a for a in args]
        step, image = np.zeros(chosen[8].shape), np.zeros(chosen[8].shape)
        replicates_cpu.minimise_quadratics(*chosen, 50, step, image)
        results.append((step, image))
    for a, b in zip(*results, strict=True):
        assert_array_equal(a[:, 3], b[:, 3])
        assert_array_equal(a[:, 0], b[:, 1])
