"""Fits, paths, cross-validation and the bootstrap on a device give what the CPU gives."""

import gc
import pickle
from collections.abc import Callable

import numpy as np
import pytest
from numpy.testing import assert_allclose

import riskset as rs
from emulator.backend import HostMemory, Reference
from gpu.backends import each_backend, emulated
from gpu.counting import Counting, Failing
from parameters import rest_is_slow
from riskset._errors import DeviceError
from riskset._runtime import Runtime
from riskset.data.design import Design
from riskset.kernels.cuda import device
from riskset.model.curvature import sampled_information
from riskset.model.design_sums import HostSums
from riskset.model.loss import Loss
from riskset.solve import curvature, path, prox_newton
from riskset.solve import replicates as engine
from riskset.solve.fit import fit_by_newton
from riskset.solve.optimality import Problem
from riskset.solve.result import Solution
from riskset.solve.rows import DeviceRows, HostRows
from solve.test_replicates import KINDS, Cohort, N, P, penalties

Use = Callable[[HostMemory], None]


class Passes:
    """Evaluations of the likelihood on a device and on the host."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.n_device = self.n_host = 0
        on_device, on_host = DeviceRows.evaluate, HostRows.evaluate

        def there(passes: DeviceRows, eta: object) -> object:
            self.n_device += 1
            return on_device(passes, eta)

        def here(passes: HostRows, eta: object) -> object:
            self.n_host += 1
            return on_host(passes, eta)

        monkeypatch.setattr(DeviceRows, "evaluate", there)
        monkeypatch.setattr(HostRows, "evaluate", here)


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> Passes:
    return Passes(monkeypatch)


def likelihood(kind: str, where: str, cohort: Cohort | None = None) -> Loss:
    cohort = cohort or Cohort(kind)
    return cohort.loss(np.arange(N), cohort.weight, Runtime(1, where))


def assert_same(found: Solution, expected: Solution, tol: float = 1e-9) -> None:
    assert found.status == expected.status
    assert found.kkt <= tol
    assert_allclose(found.objective, expected.objective, rtol=1e-9)
    assert_allclose(found.coef, expected.coef, rtol=1e-5, atol=1e-7)
    assert [note.code for note in found.notes] == [note.code for note in expected.notes]


@each_backend
@pytest.mark.parametrize("kind", KINDS)
def test_a_fit(
    kind: str,
    make: type[HostMemory],
    use: Use,
    passes: Passes,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    design, (l1, l2) = Design.from_dense(Cohort(kind).x), penalties(kind)
    expected = fit_by_newton(design, likelihood(kind, "cpu"), l1, l2, tol=1e-9)
    backend = make()
    if not isinstance(backend, Reference):
        monkeypatch.setattr(curvature, "EXACT_WORK", 0)  # and curvature is sampled
    use(backend)
    passes.n_host = 0
    found = fit_by_newton(design, likelihood(kind, "cuda"), l1, l2, tol=1e-9)
    assert_same(found, expected)
    # The host evaluates the answer alone, to certify it.
    assert passes.n_host == 1
    assert passes.n_device > 2


@pytest.mark.parametrize("kind", ["efron", "finegray"])
def test_working_sets_grow_along_a_path(
    kind: str, use: Use, passes: Passes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(curvature, "EXACT_WORK", 0)
    monkeypatch.setattr(prox_newton, "MAX_FULL_WORKING_SET", 1)
    monkeypatch.setattr(prox_newton, "MIN_WORKING_SET", 2)
    design = Design.from_dense(Cohort(kind).x)
    strengths = [(np.full(P, s), np.zeros(P)) for s in (20.0, 8.0, 3.0, 0.5)]
    expected = list(path.iterate_path(design, likelihood(kind, "cpu"), strengths))
    use(Reference())
    passes.n_host = 0
    found = list(path.iterate_path(design, likelihood(kind, "cuda"), strengths))
    for a, b in zip(found, expected, strict=True):
        assert_same(a, b, 1e-8)
    assert np.count_nonzero(found[-1].coef) > np.count_nonzero(found[0].coef)
    assert passes.n_host == 4


@emulated
def test_an_infinite_estimate_and_columns_that_cannot_be_estimated(
    make: type[HostMemory], use: Use
) -> None:
    cohort = Cohort("breslow")
    cohort.event[cohort.x[:, 0] == 1] = 0
    cohort.x[:, 3] = 1.0
    cohort.x[:, 4] = cohort.x[:, 5]
    design, zero = Design.from_dense(cohort.x), np.zeros(P)
    expected = fit_by_newton(design, likelihood("breslow", "cpu", cohort), zero, zero)
    use(make())
    found = fit_by_newton(design, likelihood("breslow", "cuda", cohort), zero, zero)
    assert found.status == expected.status == "infinite_estimate"
    assert [note.message for note in found.notes] == [note.message for note in expected.notes]
    assert found.coef[0] == -np.inf
    assert_allclose(found.coef, expected.coef, rtol=1e-5, atol=1e-7)
    assert_allclose(found.log_likelihood, expected.log_likelihood, rtol=1e-9)


@pytest.mark.parametrize("where", ["offset", "on the way"])
def test_a_wide_range_of_eta_is_left_to_the_cpu(
    where: str, use: Use, monkeypatch: pytest.MonkeyPatch
) -> None:
    cohort, (l1, l2) = Cohort("breslow"), penalties("breslow")
    if where == "offset":
        cohort.offset = np.where(np.arange(N) == 7, -600.0, cohort.offset)
    else:
        monkeypatch.setattr("riskset.model.device.MAX_ETA_SPAN", 2.3)
    design = Design.from_dense(cohort.x)
    expected = fit_by_newton(design, likelihood("breslow", "cpu", cohort), l1, l2)
    use(Reference())
    assert_same(
        fit_by_newton(design, likelihood("breslow", "cuda", cohort), l1, l2), expected, 1e-8
    )


def test_only_large_designs_are_sent_to_a_gpu_by_default(
    use: Use, passes: Passes, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(Reference())
    design, strengths = Design.from_dense(Cohort("breslow").x), penalties("breslow")
    fit_by_newton(design, likelihood("breslow", "auto"), *strengths)
    assert passes.n_device == 0
    monkeypatch.setattr(device, "MIN_DESIGN_BYTES", design.nbytes)
    fit_by_newton(design, likelihood("breslow", "auto"), *strengths)
    assert passes.n_device > 0


def test_by_default_a_gpu_needs_room_for_the_design_and_for_rows(
    use: Use, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device, "MIN_DESIGN_BYTES", 0)
    needed = 3 * 1000 + 400 * 50 + 2**30
    for limit, is_enough in ((needed - 1, False), (needed, True)):
        backend = Counting(limit)
        use(backend)
        assert (device.backend_for("auto", 1000, 50) is backend) == is_enough
        assert device.backend_for("cuda", 1000, 50) is backend


def test_a_problem_is_sent_to_other_processes_without_its_device(use: Use) -> None:
    use(Reference())
    problem = Problem.prepare(Design.from_dense(Cohort("breslow").x), likelihood("breslow", "cuda"))
    assert problem.on_device is not None
    _ = problem.device_loss, problem.sums
    assert "on_device" not in vars(pickle.loads(pickle.dumps(problem)))


@each_backend
@pytest.mark.parametrize("n_strata", [2, 90])
def test_curvature_is_sampled_as_on_the_host(
    n_strata: int, make: type[HostMemory], use: Use
) -> None:
    use(make())
    cohort = Cohort("breslow")
    cohort.stratum = np.arange(N) % n_strata
    cohort.x[:, 8] *= np.arange(N) % 7  # sparse, with values
    design, columns = Design.from_dense(cohort.x), np.array([0, 1, 4, 8, 9, 11])
    assert len({type(part) for part in design.parts}) == 3
    loss = likelihood("breslow", "cuda", cohort)
    made = [
        sampled_information(loss, design, loss.offset, columns, 3000, sums=sums)
        for sums in (HostSums(design, Runtime(1)), Problem.prepare(design, loss).sums)
    ]
    assert_allclose(made[1], made[0], rtol=1e-10, atol=1e-10)


# ---------------------------------------------------------------------------------- the estimators


def sample(kind: str) -> tuple[np.ndarray, np.ndarray]:
    cohort = Cohort(kind)
    y = rs.Surv(cohort.time, cohort.event)
    return cohort.x, y


@emulated
@pytest.mark.parametrize("kind", rest_is_slow(["breslow", "finegray"], 1))
def test_cross_validation_and_the_bootstrap(
    kind: str, make: type[HostMemory], use: Use, passes: Passes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "MIN_SHARED_ROWS", 1)
    x, y = sample(kind)
    cv, one = {
        "breslow": (rs.CoxCV, rs.Cox),
        "finegray": (rs.FineGrayCV, rs.FineGray),
    }[kind]
    use(make())
    grid = [rs.L1(8.0), rs.L1(2.0)]
    validated, drawn = {}, {}
    for where in ("cpu", "cuda"):
        options = {"device": where, "n_threads": 1, "cause": 1}
        validated[where] = cv(penalties=grid, folds=3, seed=1, **options).fit(x, y)
        model = one(rs.L1(2.0), **options).fit(x, y)
        drawn[where] = model.bootstrap(replicates=2, parameters=["x1", "x9"], seed=1)
    a, b = (validated[where].cross_validation_ for where in ("cuda", "cpu"))
    assert_allclose(a.scores, b.scores, rtol=1e-6)
    assert validated["cuda"].best_penalty_ == validated["cpu"].best_penalty_
    assert_allclose(validated["cuda"].coef_, validated["cpu"].coef_, rtol=1e-6, atol=1e-8)
    assert_allclose(drawn["cuda"].replicates, drawn["cpu"].replicates, rtol=1e-4, atol=1e-5)
    assert passes.n_device > 0


def test_memory_is_given_back_when_the_work_is_done(
    use: Use, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "MIN_SHARED_ROWS", 1)
    x, y = sample("breslow")
    on_gpu = {"device": "cuda", "cause": 1}
    model = rs.Cox(rs.L1(2.0, unpenalized=["x1"]), **on_gpu)
    work = {
        "fit": lambda: model.fit(x, y),
        "bootstrap": lambda: model.bootstrap(replicates=3, seed=1),
        "path": lambda: rs.path(model, x, y, n_penalties=3),
        "model of a path": lambda: rs.path(model, x, y, n_penalties=3).model(1),
        "cross-validation": lambda: rs.CoxCV(
            penalties=[rs.L1(8.0), rs.L1(2.0)], folds=3, **on_gpu
        ).fit(x, y),
    }
    gc.collect()
    gc.disable()  # a cycle of references would hold the memory until somebody looks for it
    try:
        for name, do in work.items():
            backend = Counting(1 << 40)
            use(backend)
            kept = do()
            assert backend.most > 0, name
            assert backend.used == 0, name
            del kept
    finally:
        gc.enable()


def work(model: str, where: str) -> np.ndarray:
    """Coefficients, or what else there is of numbers."""
    x, y = sample("breslow")
    options = {"device": where, "n_threads": 1, "cause": 1}
    one = rs.Cox(rs.L1(2.0, unpenalized=["x1"]), **options)
    grid = [rs.L1(8.0), rs.L1(2.0)]
    if model == "fit":
        return one.fit(x, y).coef_
    if model == "path":
        return rs.path(one, x, y, n_penalties=3).model(2).coef_
    if model == "cross-validation":
        cv = rs.CoxCV(penalties=grid, folds=3, seed=1, **options).fit(x, y)
        return cv.cross_validation_.scores
    return one.fit(x, y).bootstrap(replicates=2, parameters=["x1"], seed=1).replicates


@pytest.mark.parametrize("model", rest_is_slow(["fit", "path", "cross-validation", "bootstrap"], 1))
def test_by_default_the_cpu_takes_over_wherever_the_memory_ends(
    model: str, use: Use, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "MIN_SHARED_ROWS", 1)
    monkeypatch.setattr(curvature, "EXACT_WORK", 0)  # and curvature is sampled
    monkeypatch.setattr(device, "MIN_DESIGN_BYTES", 0)
    expected = work(model, "cpu")
    plenty = 1 << 30
    backend = Failing(plenty)
    use(backend)
    work(model, "auto")
    n_arrays = plenty - backend.n_arrays
    assert n_arrays > 100
    for most in {0, 1, 5, 10, 20, *np.linspace(30, n_arrays - 1, 8).astype(int)}:
        backend = Failing(most)
        use(backend)
        assert_allclose(work(model, "auto"), expected, rtol=1e-4, atol=1e-6)
        assert backend.n_arrays < 0
    use(Failing(n_arrays // 2))
    with pytest.raises(DeviceError, match="0 bytes free"):
        work(model, "cuda")


def test_a_fitted_model_predicts_without_a_gpu(use: Use, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = sample("breslow")
    use(Reference())
    model = rs.Cox(rs.L1(2.0), device="cuda", cause=1).fit(x, y)

    def absent() -> None:
        raise DeviceError("there is none.")

    monkeypatch.setattr(device, "open_device", absent)
    assert np.isfinite(model.predict(x)).all()
    with pytest.raises(DeviceError, match="there is none"):
        model.fit(x, y)
