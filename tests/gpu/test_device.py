"""What needs a GPU, and what is said without one."""

import ctypes
import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gpu.calls import NAMES, records
from gpu.test_kernels import compare
from riskset._errors import DeviceError, MissingDependencyError
from riskset.cli.info import info
from riskset.kernels.cuda import compile as compiler
from riskset.kernels.cuda import device

REASON = device.why_no_device()
no_device = pytest.mark.skipif(REASON is None, reason="there is a GPU")


@pytest.fixture
def gpu() -> device.CudaDevice:
    if REASON is not None:
        pytest.skip(REASON.splitlines()[0])
    return device.open_device()


@pytest.mark.gpu
@pytest.mark.parametrize("name", NAMES)
def test_same_numbers_on_a_gpu(name: str, gpu: device.CudaDevice) -> None:
    for record in records(name):
        compare(record, gpu)


@pytest.mark.gpu
@pytest.mark.parametrize("name", NAMES)
def test_same_bits_again_on_a_gpu(name: str, gpu: device.CudaDevice) -> None:
    for record in records(name):
        first = {key: a.tobytes() for key, a in record.again(gpu).items()}
        assert {key: a.tobytes() for key, a in record.again(gpu).items()} == first


@pytest.mark.gpu
def test_too_large_an_array_is_told_in_bytes(gpu: device.CudaDevice) -> None:
    total = gpu.memory().total
    with pytest.raises(DeviceError, match="bytes free, but [0-9,]+ are needed"):
        gpu.empty((2 * total,), np.dtype(np.uint8))


@no_device
def test_without_a_driver_it_is_said() -> None:
    pytest.importorskip("cuda.core", reason="the packages of the extra `cuda` are not installed")
    with pytest.raises(DeviceError, match=r"NVIDIA(.|\n)*Hint: .*device='cpu'"):
        device.open_device()


def test_without_the_packages_it_is_said_how_to_get_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    device._opened.cache_clear()
    with pytest.raises(MissingDependencyError, match=r'Hint: pip install "riskset\[cuda\]"'):
        device.open_device()
    told = device.why_no_device()
    assert told is not None
    assert "cuda-core" in told


# ------------------------------------------------------------------- what goes wrong while opening


class Driver:
    """Stands in for `cuda.core.Device` and what is made of one, on the host."""

    def __init__(self) -> None:
        self.name, self.compute_capability = "a card", (9, 0)
        self.default_stream = SimpleNamespace(sync=lambda: None)

    @classmethod
    def get_all_devices(cls) -> list[int]:
        return [0]

    def set_current(self) -> None:
        pass


class Pool:
    handle = 0

    def __init__(self, *_: object) -> None:
        pass

    def allocate(self, n_bytes: int, stream: object) -> SimpleNamespace:
        memory = np.zeros(n_bytes, np.uint8)
        return SimpleNamespace(handle=memory.ctypes.data, memory=memory)


def copy(to: int, address: int, n_bytes: int) -> tuple[int]:
    ctypes.memmove(to, address, n_bytes)
    return (0,)


def fill(stream: object, config: object, kernel: object, value: float, *rest: Any) -> None:
    rest[-1].memory.view(np.float64)[:] = value


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, object], None]]:
    """A card of the host; the function returned replaces a part of it."""
    core = pytest.importorskip("cuda.core", reason="the extra `cuda` is not installed")
    driver = pytest.importorskip("cuda.bindings.driver")
    code = SimpleNamespace(from_cubin=lambda _: SimpleNamespace(get_kernel=lambda name: name))
    parts = {
        "core.Device": Driver,
        "core.DeviceMemoryResource": Pool,
        "core.ObjectCode": code,
        "core.LaunchConfig": SimpleNamespace,
        "core.launch": fill,
        "driver.cuMemPoolSetAttribute": lambda *_: (0,),
        "driver.cuMemcpyDtoH": copy,
    }
    owners = {"core": core, "driver": driver, "compiler": compiler, "Driver": Driver, "Pool": Pool}

    def change(name: str, value: object) -> None:
        owner, own = name.split(".")
        monkeypatch.setattr(owners[owner], own, value)

    for name, value in parts.items():
        change(name, value)
    change("compiler.machine_code", lambda *_, **__: b"code")
    device._opened.cache_clear()
    yield change
    device._opened.cache_clear()


def fail(*_: object, **__: object) -> None:
    raise RuntimeError("CUDA_ERROR_OF_SOME_KIND")


def refuse(_: object) -> SimpleNamespace:
    return SimpleNamespace(get_kernel=fail)


def test_a_card_without_faults_is_opened(fake: object) -> None:
    assert device.why_no_device() is None


@pytest.mark.parametrize(
    ("part", "fault"),
    [
        ("Driver.get_all_devices", fail),
        ("Driver.set_current", fail),
        ("Pool.__init__", fail),
        ("Pool.allocate", fail),
        ("compiler.architectures", fail),
        ("compiler.machine_code", fail),
        ("core.ObjectCode", SimpleNamespace(from_cubin=fail)),
        ("core.ObjectCode", SimpleNamespace(from_cubin=refuse)),
        ("core.launch", fail),
    ],
)
def test_any_fault_while_opening_is_told_and_leaves_the_work_to_the_cpu(
    part: str,
    fault: object,
    fake: Callable[[str, object], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    fake(part, fault)
    with pytest.raises(DeviceError, match=r"CUDA_ERROR_OF_SOME_KIND(.|\n)*Hint: .*device='cpu'"):
        device.open_device()
    monkeypatch.setattr(device, "MIN_DESIGN_BYTES", 0)
    assert device.backend_for("auto", 1000, 10) is None
    info()
    assert "not used: " in capsys.readouterr().out


def test_kernels_that_compute_nonsense_are_found_out(fake: Callable[[str, object], None]) -> None:
    fake("core.launch", lambda *_: None)
    with pytest.raises(DeviceError, match="is wrong"):
        device.open_device()


def test_without_cuda_core_it_is_said_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("cuda.bindings")
    monkeypatch.setitem(sys.modules, "cuda.core", None)
    device._opened.cache_clear()
    told = device.why_no_device()
    assert told is not None
    assert 'pip install "riskset[cuda]"' in told
    info()
    assert 'pip install "riskset[cuda]"' in capsys.readouterr().out


def test_without_the_library_of_nvrtc_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    nvrtc = pytest.importorskip("cuda.bindings.nvrtc")
    monkeypatch.setattr(nvrtc, "nvrtcGetSupportedArchs", fail)
    device._opened.cache_clear()
    with pytest.raises(DeviceError, match=r"NVRTC.*SOME_KIND(.|\n)*nvidia-cuda-nvrtc"):
        device.open_device()
    assert device.why_no_device() is not None
