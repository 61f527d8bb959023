"""The kernels as plain Python: indices out of bounds and divisions by zero raise there."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_kernels_run_as_python() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    # Counting bits multiplies words and keeps the low half on purpose.
    command += ["-W", "ignore:overflow encountered in scalar multiply:RuntimeWarning"]
    command.append(f"{Path(__file__).with_name('test_agreement.py')}::test_same_numbers")
    command.append(str(Path(__file__).with_name("test_ccd.py")))
    done = subprocess.run(
        command,
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
