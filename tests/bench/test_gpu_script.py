"""`bench/gpu.sh`: clear without a GPU, within ten minutes, and no step stops the rest."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from emulator.build import MISSING, compiler

SCRIPT = Path(__file__).parents[2] / "bench" / "gpu.sh"


def run(out: Path, **more: str) -> subprocess.CompletedProcess[str]:
    own = {**os.environ, "OUT": str(out), "PYTHON": sys.executable, **more}
    return subprocess.run(["sh", str(SCRIPT)], env=own, capture_output=True, text=True)


@pytest.mark.skipif(shutil.which("nvidia-smi") is not None, reason="there may be a GPU")
def test_without_a_gpu_it_says_so_and_writes_nothing(tmp_path: Path) -> None:
    done = run(tmp_path / "out")
    assert done.returncode == 3
    assert "there is no NVIDIA GPU" in done.stderr
    assert not (tmp_path / "out").exists()


def test_the_limits_of_its_steps_leave_room_in_ten_minutes() -> None:
    text = SCRIPT.read_text("utf-8")
    on_a_gpu = text.split("if [ -z")[1].replace(text.split("= 1 ]; then")[-1].split("else")[0], "")
    limits = {name: int(n) for name, n in re.findall(r"step (\S+) (\d+)", on_a_gpu)}
    assert set(limits) == {
        "environment", "device", "tests", '"$tool"', '"fusion-$device"', '"crossval-$device"'
    }  # fmt: skip
    twice = sum(n for name, n in limits.items() if "$" in name)
    assert sum(limits.values()) + twice <= 600


@pytest.mark.slow
@pytest.mark.skipif(compiler is None, reason=MISSING)
def test_its_steps_on_the_emulator(tmp_path: Path) -> None:
    done = run(tmp_path, RISKSET_GPU_EMULATOR="1")
    assert done.returncode == 0, done.stdout + done.stderr
    summary = (tmp_path / "gpu-summary.txt").read_text("utf-8")
    assert re.search(r"^tests: ok, \d+ s$", summary, re.MULTILINE)
    assert "passed" in (tmp_path / "gpu-tests.log").read_text("utf-8")
    assert (tmp_path / "cpu" / "fusion.csv").exists()


def test_a_step_that_fails_does_not_stop_the_rest(tmp_path: Path) -> None:
    done = run(tmp_path, RISKSET_GPU_EMULATOR="1", PYTHON="/bin/false")
    assert done.returncode == 1
    summary = (tmp_path / "gpu-summary.txt").read_text("utf-8")
    assert summary.count("failed with status 1") == 2
