"""The host side of the kernels gives what the CPU gives: likelihoods, residuals, products."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from emulator.backend import Emulator, HostMemory, Reference
from emulator.build import MISSING, compiler
from gpu.backends import each_backend
from gpu.problems import DESIGNS, LIKELIHOODS, RUNTIME
from riskset.data.device import DeviceDesign
from riskset.kernels.cuda.reductions import LaneReductions
from riskset.model.device import DeviceLoss


@each_backend
@pytest.mark.parametrize("name", LIKELIHOODS)
def test_each_lane_is_its_replicate(name: str, make: type[HostMemory]) -> None:
    problem, backend = LIKELIHOODS[name], make()
    lanes = DeviceLoss(problem.loss, problem.parts, backend)
    now = lanes.evaluate(backend.upload(problem.eta))
    residual = backend.download(now.residual)
    expected = backend.download(lanes.expected(now.residual))
    assert now.is_safe.all()
    for k in range(len(problem.parts)):
        loss, eta = problem.lane(k)
        alone = loss.evaluate(eta)
        assert_allclose(lanes.n_events[k], loss.n_events, rtol=1e-13)
        assert_allclose(now.log_likelihood[k], alone.log_likelihood, rtol=1e-13, atol=1e-11)
        assert_allclose(residual[:, k], alone.residual, rtol=1e-11, atol=1e-12)
        assert_allclose(expected[:, k], alone.expected, rtol=1e-11, atol=1e-12)
    assert not residual[:, len(problem.parts) :].any()


@each_backend
def test_a_span_too_wide_is_said(make: type[HostMemory]) -> None:
    problem, backend = LIKELIHOODS["tied"], make()
    eta = problem.eta.copy()
    eta[7, 2] -= 600.0
    lanes = DeviceLoss(problem.loss, problem.parts, backend)
    is_safe = lanes.evaluate(backend.upload(eta)).is_safe
    assert is_safe.tolist() == [k != 2 for k in range(lanes.n_lanes)]


@each_backend
@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("name", DESIGNS)
def test_cross(name: str, power: int, make: type[HostMemory]) -> None:
    problem, backend = DESIGNS[name], make()
    design, r = DeviceDesign(problem.design, backend), backend.upload(problem.r)
    for columns in (None, problem.columns, problem.columns[:0]):
        found = backend.download(design.cross(r, columns, power=power))
        expected = problem.design.stored(columns).T ** power @ problem.r
        assert_allclose(found, expected.T, rtol=1e-12, atol=1e-12)


@each_backend
@pytest.mark.parametrize("name", DESIGNS)
def test_product(name: str, make: type[HostMemory]) -> None:
    problem, backend = DESIGNS[name], make()
    design = DeviceDesign(problem.design, backend)
    for columns, v in ((problem.columns, problem.v), (problem.columns[:0], problem.v[:, :0])):
        along = design.product(backend.upload(v), design.choose(columns))
        expected = problem.design.stored(columns) @ v.T
        assert_allclose(backend.download(along), expected, rtol=1e-12, atol=1e-12)


@each_backend
@pytest.mark.parametrize("n_rows", [1, 63, 64, 65, 4096, 4097])
def test_sums_of_any_number_of_rows(n_rows: int, make: type[HostMemory]) -> None:
    backend = make()
    x = np.random.default_rng(n_rows).normal(size=(n_rows, 3))
    sums, on_device = LaneReductions(backend), backend.upload(x)
    assert_allclose(sums.total(on_device), x.sum(axis=0), rtol=1e-12, atol=1e-12)
    low, high = map(backend.download, sums.extremes(on_device))
    np.testing.assert_array_equal(low[0], x.min(axis=0))
    np.testing.assert_array_equal(high[0], x.max(axis=0))


def test_a_lane_has_the_same_bits_in_any_company() -> None:
    if compiler is None:
        pytest.skip(MISSING)
    for name in ("no_ties", "late_strata_efron", "finegray_groups"):
        problem = LIKELIHOODS[name]
        bits = []
        for chosen in ([1], [0, 1, 2], range(len(problem.parts))):
            backend = Emulator(seed=5)
            lanes = DeviceLoss(problem.loss, [problem.parts[k] for k in chosen], backend)
            eta = np.zeros((problem.eta.shape[0], lanes.n_lanes))
            eta[:, : len(chosen)] = problem.eta[:, list(chosen)]
            now = lanes.evaluate(backend.upload(eta))
            at = list(chosen).index(1)
            residual = backend.download(now.residual)[:, at].tobytes()
            bits.append((float(now.log_likelihood[at]).hex(), residual))
        assert bits[0] == bits[1] == bits[2], name


def test_the_design_is_checked_against_the_cpu() -> None:
    problem = DESIGNS["several_hundred_rows"]
    backend = Reference()
    found = backend.download(DeviceDesign(problem.design, backend).cross(backend.upload(problem.r)))
    for k in range(found.shape[0]):
        alone = problem.design.cross(np.ascontiguousarray(problem.r[:, k]), runtime=RUNTIME)
        assert_allclose(found[k], alone, rtol=1e-12, atol=1e-12)
