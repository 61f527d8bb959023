"""What can run kernels without a GPU."""

import pytest

from emulator.backend import Emulator, Reference
from emulator.build import MISSING, compiler

_EMULATOR = pytest.param(
    lambda: Emulator(seed=11, resident=3),
    id="emulator",
    marks=pytest.mark.skipif(compiler is None, reason=MISSING),
)

emulated = pytest.mark.parametrize("make", [_EMULATOR])
each_backend = pytest.mark.parametrize(
    "make", [pytest.param(Reference, id="references"), _EMULATOR]
)
