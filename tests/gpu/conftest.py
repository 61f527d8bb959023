"""Small pieces, so that small problems have many of them, and a GPU in place of one."""

from collections.abc import Callable, Iterator

import pytest

from emulator.backend import HostMemory
from riskset.data import device as data
from riskset.kernels.cuda import device, scan_plan


@pytest.fixture(autouse=True)
def small_pieces() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan_plan, "PIECE", 3)
        patch.setattr(scan_plan, "CHUNK", 4)
        patch.setattr(data, "PANEL_ROWS", 32)
        patch.setattr(data, "PARTIAL_NUMBERS", 1000)
        yield


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Callable[[HostMemory], None]:
    """Make a backend the GPU of this machine."""
    return lambda backend: monkeypatch.setattr(device, "open_device", lambda: backend)
