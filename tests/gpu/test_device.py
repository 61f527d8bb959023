"""What needs a GPU, and what is said without one."""

import sys

import numpy as np
import pytest

from gpu.calls import NAMES, records
from gpu.test_kernels import compare
from riskset._errors import DeviceError, MissingDependencyError
from riskset.kernels.cuda import device

REASON = device.why_no_device()
no_device = pytest.mark.skipif(REASON is None, reason="there is a GPU")


@pytest.fixture
def gpu() -> device.Device:
    if REASON is not None:
        pytest.skip(REASON.splitlines()[0])
    return device.open_device()


@pytest.mark.gpu
@pytest.mark.parametrize("name", NAMES)
def test_same_numbers_on_a_gpu(name: str, gpu: device.Device) -> None:
    for record in records(name):
        compare(record, gpu)


@pytest.mark.gpu
@pytest.mark.parametrize("name", NAMES)
def test_same_bits_again_on_a_gpu(name: str, gpu: device.Device) -> None:
    for record in records(name):
        first = {key: a.tobytes() for key, a in record.again(gpu).items()}
        assert {key: a.tobytes() for key, a in record.again(gpu).items()} == first


@pytest.mark.gpu
def test_too_large_an_array_is_told_in_bytes(gpu: device.Device) -> None:
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
