"""Small pieces, so that small problems have many of them."""

from collections.abc import Iterator

import pytest

from riskset.data import device as data
from riskset.kernels.cuda import plan


@pytest.fixture(autouse=True)
def small_pieces() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "PIECE", 3)
        patch.setattr(plan, "CHUNK", 4)
        patch.setattr(data, "PANEL_ROWS", 32)
        patch.setattr(data, "PARTIAL_NUMBERS", 1000)
        yield
