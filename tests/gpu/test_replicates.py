"""Replicates on a device are those of the CPU, with the same bits in batches of any size."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from emulator.backend import HostMemory, Reference
from gpu.backends import each_backend, emulated
from gpu.counting import Counting
from parameters import rest_is_slow
from riskset._errors import DeviceError
from riskset._runtime import Runtime
from riskset.data.design import Design
from riskset.infer.crossval.folds import Folds
from riskset.infer.crossval.scores import Scorer
from riskset.kernels.cuda import device
from riskset.model.device import DeviceLoss
from riskset.solve import replicates as engine
from riskset.solve import replicates_bundle as shared_lanes
from riskset.solve.fit import fit_by_newton
from riskset.solve.optimality import Problem
from riskset.solve.replicates import Replicate, ReplicateWeights, fit_replicates
from riskset.solve.replicates_bundle import BundleStart, ReplicateBundle
from riskset.solve.replicates_device import DeviceLanes, bytes_needed
from solve.test_replicates import KINDS, Cohort, N, multipliers, penalties


@pytest.fixture(autouse=True)
def many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "MIN_SHARED_ROWS", 1)


def on(
    where: str,
    kind: str,
    chosen: list[np.ndarray],
    *,
    tol: float = 1e-10,
    l1: float | None = None,
    separation: bool = True,
) -> list[Replicate]:
    cohort = Cohort(kind)
    loss = cohort.loss(np.arange(N), cohort.weight, Runtime(1, where))
    strengths = penalties(kind) if l1 is None else (np.full(12, l1), np.zeros(12))
    problem = Problem.prepare(Design.from_dense(cohort.x), loss)
    host = Problem.prepare(problem.design, cohort.loss(np.arange(N), cohort.weight))
    whole = fit_by_newton(problem.design, host.loss, *strengths, problem=host)
    parts = [lambda m=m: ReplicateWeights(cohort.weight * m, cohort.weight * m) for m in chosen]
    made = fit_replicates(problem, whole, *strengths, parts, tol=tol, separation=separation)
    return list(made)


@each_backend
@pytest.mark.parametrize("kind", rest_is_slow(KINDS, 3))
def test_a_replicate_is_that_of_the_cpu(
    kind: str,
    make: type[HostMemory],
    use: Callable[[HostMemory], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chosen = multipliers(3, 2)
    expected = on("cpu", kind, chosen)
    use(make())
    alone: list[ReplicateWeights] = []
    monkeypatch.setattr(engine._ReplicateTasks, "_alone", lambda _self, part: alone.append(part))
    found = on("cuda", kind, chosen)
    assert not alone
    for a, b in zip(found, expected, strict=True):
        assert a.status == b.status == "converged"
        assert a.kkt <= 1e-10
        assert_allclose(a.coef, b.coef, rtol=1e-7, atol=1e-9)
        assert_allclose(a.log_likelihood, b.log_likelihood, rtol=1e-10)


@pytest.mark.parametrize("kind", rest_is_slow(["efron", "finegray"], 1))
@emulated
def test_batches_of_any_size_have_the_same_bits(
    kind: str,
    make: type[HostMemory],
    use: Callable[[HostMemory], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Lanes find columns on their way, each others.
    monkeypatch.setattr(shared_lanes, "STRONG_RULE_SHARE", 1.0)
    monkeypatch.setattr(shared_lanes, "MAX_FULL_WORKING_SET", 1)
    chosen, found, widths = multipliers(9, 3)[1:], [], []
    take = DeviceLanes.take
    monkeypatch.setattr(
        DeviceLanes, "take", lambda self, fresh: (widths.append(fresh.sum()), take(self, fresh))
    )
    for most in (1, 4, 256):
        use(make())
        monkeypatch.setattr(engine, "MAX_DEVICE_LANES", most)
        found.append(on("cuda", kind, chosen, tol=1e-6, l1=6.0))
    assert max(widths) > 0
    for few, all_ in ((found[0], found[2]), (found[1], found[2])):
        for a, b in zip(few, all_, strict=True):
            assert_array_equal(a.coef, b.coef)
            assert (a.log_likelihood, a.kkt, a.n_iter) == (b.log_likelihood, b.kkt, b.n_iter)


@emulated
def test_what_lanes_cannot_do_is_done_by_the_cpu(
    make: type[HostMemory], use: Callable[[HostMemory], None]
) -> None:
    cohort = Cohort("breslow")
    never = (cohort.x[:, 0] == 0) | (cohort.event == 0)
    chosen = [never * 1.0, np.ones(N)]
    expected = on("cpu", "breslow", chosen)
    use(make())
    found = on("cuda", "breslow", chosen)
    assert [a.status for a in found] == [b.status for b in expected]
    assert found[0].status == "infinite_estimate"
    assert found[0].coef[0] == -np.inf
    for a, b in zip(found, expected, strict=True):
        assert_allclose(a.coef, b.coef, rtol=1e-6, atol=1e-8)


def test_a_wide_range_of_eta_is_left_to_the_cpu(use: Callable[[HostMemory], None]) -> None:
    rng = np.random.default_rng(5)
    x = np.column_stack([rng.random(N) < 0.3, rng.normal(size=(N, 3))])
    cohort = Cohort("breslow")
    cohort.offset = np.where(np.arange(N) == 7, -600.0, cohort.offset)
    use(Reference())
    found = {}
    for where in ("cpu", "cuda"):
        loss = cohort.loss(np.arange(N), cohort.weight, Runtime(1, where))
        problem = Problem.prepare(Design.from_dense(x), loss)
        l1, l2 = np.full(4, 1.0), np.zeros(4)
        whole = fit_by_newton(problem.design, loss.whole, l1, l2)
        part = lambda: ReplicateWeights(cohort.weight * (np.arange(N) % 5 > 0))  # noqa: E731
        (found[where],) = fit_replicates(problem, whole, l1, l2, [part], tol=1e-9)
    assert found["cuda"].status == found["cpu"].status == "converged"
    assert_array_equal(found["cuda"].coef, found["cpu"].coef)


@pytest.mark.parametrize("kind", rest_is_slow(["breslow", "finegray-groups", "efron", "entry"], 2))
def test_a_bundle_takes_no_more_memory_than_was_said(
    kind: str, use: Callable[[HostMemory], None]
) -> None:
    backend, cohort = Counting(1 << 40), Cohort(kind)
    use(backend)
    loss = cohort.loss(np.arange(N), cohort.weight, Runtime(1, "cuda"))
    problem = Problem.prepare(Design.from_dense(cohort.x), loss)
    l1, l2 = penalties(kind)
    whole = fit_by_newton(problem.design, loss, l1, l2, problem=problem)
    shared = BundleStart.prepare(problem, whole, l1, l2)
    assert problem.on_device is not None
    before = backend.used
    backend.most = 0
    for n_lanes in (1, 4, 24):
        once, each = bytes_needed(shared, loss)
        parts = [
            ReplicateWeights(cohort.weight * m, cohort.weight * m)
            for m in multipliers(4, 12)[:n_lanes]
        ]
        lanes = DeviceLanes(shared, problem.on_device, DeviceLoss(loss, parts, backend))
        ReplicateBundle(shared, lanes, 1e-6, 50).solve()
        del lanes
        assert backend.most - before <= once + n_lanes * each
        # The rows are what counts in large problems: they are not overstated by much.
        assert backend.most - before >= 0.4 * n_lanes * each


def test_little_memory_makes_small_batches_and_too_little_an_error(
    use: Callable[[HostMemory], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "bytes_needed", lambda *_: (1000, 200_000))
    chosen, sizes = multipliers(4, 4), []
    run = engine._ReplicateTasks.run
    monkeypatch.setattr(
        engine._ReplicateTasks, "run", lambda self, own: (sizes.append(len(own)), run(self, own))[1]
    )
    found = {}
    for lanes in (100, 5, 2):
        sizes.clear()
        backend = Counting(1000 + lanes * 200_000 + 60_000)
        use(backend)
        found[lanes] = [a.coef for a in on("cuda", "breslow", chosen)]
        assert sizes == {100: [8], 5: [4, 4], 2: [1] * 8}[lanes]
    for lanes in (5, 2):
        assert_allclose(found[lanes], found[100], rtol=1e-9, atol=1e-12)
    use(Counting(150_000))
    with pytest.raises(DeviceError) as told:
        on("cuda", "breslow", chosen)
    message = str(told.value)
    assert "one replicate needs 201,000 bytes of the GPU's memory" in message
    assert "are free" in message
    assert "Hint: use `device='cpu'`" in message


@pytest.mark.parametrize("kind", ["breslow", "efron"])
def test_by_default_too_little_memory_means_the_cpu(
    kind: str, use: Callable[[HostMemory], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = multipliers(4, 2)
    expected = on("cpu", kind, chosen)
    monkeypatch.setattr(device, "MIN_DESIGN_BYTES", 0)
    use(Counting(150_000))
    for a, b in zip(on("auto", kind, chosen), expected, strict=True):
        assert_array_equal(a.coef, b.coef)


@each_backend
@pytest.mark.parametrize("score", ["held_out", "difference"])
@pytest.mark.parametrize("kind", ["efron", "entry", "finegray-groups"])
def test_rows_left_out_are_scored_as_by_the_cpu(
    kind: str, score: str, make: type[HostMemory]
) -> None:
    cohort, rng = Cohort(kind), np.random.default_rng(8)
    loss = cohort.loss(np.arange(N), cohort.weight)
    folds = Folds(rng.integers(0, 3, (1, N)), (np.arange(3),))
    scorer = Scorer(Design.from_dense(cohort.x), loss, folds, score)
    parts = [scorer.part(*pair) for pair in scorer.folds]
    eta = rng.normal(size=(N, 3)) + loss.offset[:, None]
    eta[5, 1] += 600.0  # too wide for lanes
    found = scorer.measure(parts, eta, (), make())
    assert_allclose(found, scorer.measure(parts, eta), rtol=1e-10)
