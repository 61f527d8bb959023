"""Coordinate descent on a device: sweeps as on the CPU, and fits that end where others do."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import riskset as rs
from emulator.backend import Emulator, HostMemory, Reference
from emulator.build import MISSING, compiler
from gpu.backends import each_backend
from gpu.coordinates import COORDINATES, Visits
from gpu.problems import cox, finegray
from riskset._errors import DeviceError
from riskset._runtime import Runtime
from riskset.data.design import Design
from riskset.kernels import ccd_cpu
from riskset.model.loss import Loss
from riskset.solve import ccd
from riskset.solve.ccd_device import DeviceSweeps, stay_of
from riskset.solve.fit import fit_by_newton
from riskset.solve.risk_columns import RiskColumns

needs_compiler = pytest.mark.skipif(compiler is None, reason=MISSING)

TOL = 1e-10
Use = Callable[[HostMemory], None]


def on_cpu(problem: Visits, state: tuple[np.ndarray, ...], l1: np.ndarray, l2: np.ndarray) -> None:
    """The sweep of `DeviceSweeps.sweep`, by sums kept up to date rather than by scans."""
    loss, eta = problem.loss, problem.eta
    rule = stay_of(loss) if loss.tails else loss.efron
    if loss.tails:
        make, sweep = ccd_cpu.fg_state, ccd_cpu.fg_sweep
    else:
        make, sweep = ccd_cpu.cox_state, ccd_cpu.cox_sweep
    kept = make(eta, eta.max(), loss.risk, rule)
    every = np.arange(problem.design.n_features)
    for entries in RiskColumns(problem.design, loss.risk.order).batches(every):
        sweep(*entries, l1, l2, *state, kept, loss.risk, rule)


@each_backend
@pytest.mark.parametrize("name", COORDINATES)
def test_a_sweep_is_that_of_the_cpu(name: str, make: type[HostMemory]) -> None:
    problem, backend = COORDINATES[name], make()
    p = problem.design.n_features
    l1, l2 = np.linspace(0, 1, p), np.linspace(0.5, 0, p)
    states = [(np.linspace(-0.5, 0.5, p), np.full(p, 0.3), np.zeros(p)) for _ in range(2)]
    on_cpu(problem, states[0], l1, l2)
    start, shift = problem.eta[:, None], np.array([[problem.eta.max()]])
    eta = backend.upload(start)
    DeviceSweeps(problem.design, problem.loss, backend).sweep(
        np.arange(p), eta, backend.upload(shift), (l1, l2), states[1]
    )
    scale = problem.loss.n_events
    for found, expected, size in zip(states[1], states[0], (1, 1, scale), strict=True):
        assert_allclose(found, expected, rtol=1e-9, atol=1e-11 * size)
    moved = problem.design.stored(np.arange(p)) @ (states[0][0] - np.linspace(-0.5, 0.5, p))
    assert_allclose(backend.download(eta)[:, 0], problem.eta + moved, rtol=1e-12)


# ----------------------------------------------------------------------------- whole fits

FITS: dict[str, Loss] = {
    "breslow": cox(150, seed=41).loss,
    "efron_strata": cox(160, ties="efron", n_strata=3, seed=42).loss,
    "finegray": finegray(150, seed=43).loss,
    "finegray_strata_curves": finegray(160, groups=2, n_strata=2, n_times=40, seed=44).loss,
}
PENALTIES = {"none": (0.0, 0.0), "l1": (2.0, 0.0), "both": (1.0, 2.0)}


def covariates(n: int) -> Design:
    """Binary, sparse and dense columns, correlated and in very different units."""
    rng = np.random.default_rng(n)
    z = rng.normal(size=(n, 5)) + 0.5 * rng.normal(size=(n, 1))
    z[:, :2] = z[:, :2] > 0.6
    z[:, 2] *= (z[:, 2] > 0.3) * 1e3
    z[:, 4] = 100.0 + 0.5 * z[:, 4]
    return Design.from_dense(z)


def on(loss: Loss, where: str) -> Loss:
    return replace(loss, runtime=Runtime(1, where))


def with_offset(loss: Loss) -> Loss:
    rng = np.random.default_rng(loss.outcome.n_rows)
    return loss.shifted(rng.normal(size=loss.outcome.n_rows), loss.runtime)


def check_same(design: Design, loss: Loss, penalty: tuple[float, float]) -> None:
    size = design.to_dense().std(axis=0)
    l1, l2 = penalty[0] * size, penalty[1] * size**2
    exact = fit_by_newton(design, loss, l1, l2, tol=TOL)
    cpu = ccd.fit_by_ccd(design, loss, l1, l2, tol=TOL, max_iter=3000)
    found = ccd.fit_by_ccd(design, on(loss, "cuda"), l1, l2, tol=TOL, max_iter=3000)
    assert found.status == exact.status == cpu.status == "converged"
    assert found.kkt <= TOL
    assert_allclose(found.objective, exact.objective, rtol=1e-10)
    assert_allclose(found.coef * size, exact.coef * size, atol=1e-7, rtol=0)
    assert_array_equal(found.coef == 0, exact.coef == 0)
    # The same steps, but for rounding.
    assert abs(found.n_iter - cpu.n_iter) <= 2 + cpu.n_iter // 10


@pytest.fixture
def n_sweeps(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A number for each sweep on the device: of the coordinates in it."""
    made, sweep = [], DeviceSweeps.sweep

    def counted(self: DeviceSweeps, active: np.ndarray, *rest: object) -> None:
        made.append(active.size)
        sweep(self, active, *rest)

    monkeypatch.setattr(DeviceSweeps, "sweep", counted)
    return made


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("name", FITS)
def test_a_fit_by_the_references_is_newtons(
    name: str, penalty: str, use: Use, n_sweeps: list[int]
) -> None:
    use(Reference())
    loss = FITS[name]
    if penalty == "both":
        loss = with_offset(loss)
    check_same(covariates(loss.outcome.n_rows), loss, PENALTIES[penalty])
    assert len(n_sweeps) > 3


@needs_compiler
@pytest.mark.parametrize("name", FITS)
def test_a_fit_on_the_emulator_is_newtons(name: str, use: Use, n_sweeps: list[int]) -> None:
    use(Emulator(seed=13))
    loss = with_offset(FITS[name])
    check_same(covariates(loss.outcome.n_rows), loss, PENALTIES["both"])
    assert len(n_sweeps) > 3


def test_only_where_it_is_asked_for(use: Use, n_sweeps: list[int]) -> None:
    use(Reference())
    loss = FITS["breslow"]
    design, zero = covariates(loss.outcome.n_rows), np.zeros(5)
    ccd.fit_by_ccd(design, on(loss, "auto"), zero, zero)
    assert not n_sweeps


def test_wide_linear_predictors_are_left_to_the_cpu(use: Use, n_sweeps: list[int]) -> None:
    """An offset that spans more than one exponent holds."""
    use(Reference())
    loss = FITS["efron_strata"]
    n = loss.outcome.n_rows
    loss = loss.shifted(np.where(np.arange(n) % 5 == 0, -900.0, 0.0), loss.runtime)
    check_same(covariates(n), loss, PENALTIES["both"])
    assert not n_sweeps


def test_a_fit_that_runs_out_of_sweeps_says_so(use: Use) -> None:
    use(Reference())
    loss = FITS["breslow"]
    design, zero = covariates(loss.outcome.n_rows), np.zeros(5)
    found = ccd.fit_by_ccd(design, on(loss, "cuda"), zero, zero, tol=TOL, max_iter=2)
    assert found.status == "max_iter"
    assert "stopped after 2 sweeps" in found.notes[-1].message
    at_end = loss.evaluate(loss.offset + design.dot(found.coef, runtime=loss.runtime))
    assert_allclose(at_end.log_likelihood, found.log_likelihood, rtol=1e-12)


def test_an_infinite_estimate_is_found(use: Use) -> None:
    use(Reference())
    loss = FITS["breslow"]
    x = np.column_stack([loss.outcome.is_event, np.arange(loss.outcome.n_rows) % 3 == 0])
    design, zero = Design.from_dense(x.astype(float)), np.zeros(2)
    found = ccd.fit_by_ccd(design, on(loss, "cuda"), zero, zero)
    exact = fit_by_newton(design, loss, zero, zero)
    assert found.status == exact.status == "infinite_estimate"
    assert_array_equal(found.infinite, exact.infinite)
    assert_allclose(found.log_likelihood, exact.log_likelihood, rtol=1e-7)


def test_late_entry_is_refused(use: Use) -> None:
    use(Reference())
    loss = cox(60, late=True, seed=45).loss
    design, zero = covariates(60), np.zeros(5)
    with pytest.raises(DeviceError, match="enter later(.|\\n)*Hint: use `solver='newton'`"):
        ccd.fit_by_ccd(design, on(loss, "cuda"), zero, zero)


def test_an_estimator_takes_it(use: Use, n_sweeps: list[int]) -> None:
    use(Reference())
    rng = np.random.default_rng(46)
    x = (rng.random((80, 3)) < 0.4).astype(float)
    time, event = rng.exponential(np.exp(-x[:, 0])), rng.random(80) < 0.7
    y = np.array(list(zip(event, time, strict=True)), dtype=[("event", bool), ("time", float)])
    found = rs.Cox(solver="ccd", device="cuda").fit(x, y)
    assert n_sweeps
    assert_allclose(found.coef_, rs.Cox(device="cpu").fit(x, y).coef_, atol=1e-6)
