"""What runs kernels in the tests: their references, the emulator, a GPU if there is one."""

import pytest

from emulator.backend import Emulator, Reference
from emulator.build import MISSING, compiler
from riskset.kernels.cuda import device

REASON = device.why_no_device()

_REFERENCES = pytest.param(Reference, id="references")
_EMULATOR = pytest.param(
    lambda: Emulator(seed=11, resident=3),
    id="emulator",
    marks=pytest.mark.skipif(compiler is None, reason=MISSING),
)
_GPU = pytest.param(
    lambda: device.open_device(),
    id="gpu",
    marks=[
        pytest.mark.gpu,
        pytest.mark.skipif(REASON is not None, reason=str(REASON).splitlines()[0]),
    ],
)

emulated = pytest.mark.parametrize("make", [_EMULATOR, _GPU])
each_backend = pytest.mark.parametrize("make", [_REFERENCES, _EMULATOR, _GPU])
