"""Every kernel on the emulator gives the numbers of its reference, in any order of threads."""

import importlib
import inspect

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from emulator.backend import Emulator, HostMemory, Recorded
from emulator.build import MISSING, compiler
from gpu.calls import NAMES, records
from parameters import rest_is_slow
from riskset.kernels.cuda.launch import SHAPES
from riskset.kernels.cuda.signatures import Kernel, signatures

needs_compiler = pytest.mark.skipif(compiler is None, reason=MISSING)

SEEDS = range(1, 9)
RESIDENT = (1, 2, 5, 40)


def compare(record: Recorded, backend: HostMemory) -> None:
    """The backend fills the same numbers from the same arguments."""
    got = record.again(backend)
    for name, exact in record.after.items():
        if exact.dtype.kind != "f":
            assert_array_equal(got[name], exact, err_msg=record.kernel.name)
            continue
        # The quadratic is solved by iterations.
        rtol, atol = (1e-8, 1e-9) if record.kernel.name == "minimise_quadratics" else (2e-12, 1e-13)
        assert_allclose(got[name], exact, rtol, atol, err_msg=f"{record.kernel.name}: {name}")


@needs_compiler
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", rest_is_slow(SEEDS, 1))
def test_same_numbers_in_any_order(name: str, seed: int) -> None:
    backend = Emulator(seed, RESIDENT[seed % len(RESIDENT)])
    for record in records(name):
        compare(record, backend)


@needs_compiler
@pytest.mark.parametrize("name", NAMES)
def test_same_bits_in_any_order(name: str) -> None:
    for record in records(name):
        first = {key: a.tobytes() for key, a in record.again(Emulator(0)).items()}
        for seed, resident in ((3, 1), (4, 7)):
            got = record.again(Emulator(seed, resident))
            assert {key: a.tobytes() for key, a in got.items()} == first, record.kernel.name


def test_every_kernel_is_launched() -> None:
    launched = {record.kernel.name for name in NAMES for record in records(name)}
    assert launched == set(signatures()) == set(SHAPES)


@pytest.mark.parametrize("kernel", signatures().values(), ids=lambda k: k.name)
def test_the_reference_has_the_same_arguments(kernel: Kernel) -> None:
    module = importlib.import_module(f"riskset.kernels.cuda.{kernel.topic}_ref")
    reference = getattr(module, kernel.name)
    assert list(inspect.signature(reference).parameters) == [p.name for p in kernel.parameters]
    assert kernel.name in module.__all__


def test_outputs_come_last() -> None:
    for kernel in signatures().values():
        filled = [p.is_filled for p in kernel.parameters]
        assert filled == sorted(filled), kernel.name


def test_arrays_are_checked_before_a_launch() -> None:
    from riskset.kernels.cuda.launch import Launcher

    backend = Emulator()
    launch, x = Launcher(backend), backend.upload(np.zeros((3, 2), dtype=np.float32))
    with pytest.raises(AssertionError, match="`x` must be an array of float64, not float32"):
        launch("fill", value=0.0, n_rows=3, n_lanes=2, x=x)
    with pytest.raises(AssertionError, match="fill takes value, n_rows, n_lanes, x"):
        launch("fill", value=0.0, x=x)
    with pytest.raises(AssertionError, match="`n_rows` must be int"):
        launch("fill", value=0.0, n_rows=3.0, n_lanes=2, x=backend.upload(np.zeros((3, 2))))
