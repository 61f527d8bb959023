"""Kernels compiled for one processor are never taken for those of another."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import numpy as np
from riskset.kernels.separation_cpu import peaks_nested
peaks_nested(np.zeros(3), np.array([0, 3]), np.array([True]))
print(sum(peaks_nested.stats.cache_hits.values()))
"""


@pytest.mark.slow
@pytest.mark.portability
def test_the_cache_knows_the_processor(tmp_path: Path) -> None:
    def hits(cpu: str) -> int:
        own = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "NUMBA_CPU_NAME": cpu}
        own.pop("NUMBA_CPU_FEATURES", None)
        own.pop("RISKSET_JIT_CACHE", None)
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM], env=own, capture_output=True, text=True, check=True
        )
        return int(done.stdout)

    assert hits("generic") == 0
    assert hits("generic") == 1
    assert hits("x86-64-v2") == 0  # nothing of it runs that this processor may not have
    assert hits("generic") == 1
