"""Compiled kernels on disk: for one processor, in any folder, whole, and of the present sources."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import pytest

from riskset.kernels._jit import kernel
from riskset.kernels._jit_cache import KernelFiles, sources_digest
from source_tree import SOURCE

needs_jit = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="there is nothing to compile")

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


def test_processes_that_save_at_once_lose_nothing(tmp_path: Path) -> None:
    """One writer does not read what another has written, nor write over it."""
    one, other = (KernelFiles(str(tmp_path), "double-3.py311", "a" * 64) for _ in range(2))
    one.save(("int64",), "of whole numbers")
    other.save(("float64",), "of floats")
    assert one.load(("int64",)) == other.load(("int64",)) == "of whole numbers"
    assert one.load(("float64",)) == "of floats"
    assert one.load(("bool",)) is None


def test_a_folder_that_cannot_be_written_keeps_nothing(tmp_path: Path) -> None:
    """As on a full disk: what was compiled is used all the same."""
    files = KernelFiles(str(tmp_path / "absent"), "double-3.py311", "a" * 64)
    files.save("key", "content")
    assert files.load("key") is None


@pytest.mark.parametrize("left", [0, 10, 40, 60])
def test_a_damaged_file_counts_as_absent(tmp_path: Path, left: int) -> None:
    files = KernelFiles(str(tmp_path), "double-3.py311", "a" * 64)
    files.save("key", "x" * 100)
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:left])
    assert files.load("key") is None
    files.save("key", "y")
    assert files.load("key") == "y"


def test_forms_of_other_sources_are_not_loaded_and_leave(tmp_path: Path) -> None:
    old, new = (KernelFiles(str(tmp_path), "double-3.py311", s * 64) for s in "ab")
    old.save("key", 1)
    assert new.load("key") is None
    new.save("key", 2)
    assert old.load("key") is None
    assert len(list(tmp_path.iterdir())) == 1


def test_sources_of_a_kernel_are_all_that_it_imports(tmp_path: Path) -> None:
    """A constant or a vector loop may come from another file, whose change changes the kernel."""
    own = tmp_path / "sums_cpu.py"
    own.write_text("from riskset.kernels._vector import LANES\nTWO = 2\n")
    first = sources_digest(own)
    sources_digest.cache_clear()
    assert sources_digest(own) == first
    shared = SOURCE / "kernels" / "_vector.py"
    read = Path.read_text

    def changed(path: Path, encoding: str) -> str:
        return read(path, encoding) + ("# changed" if path == shared else "")

    sources_digest.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "read_text", changed)
        assert sources_digest(own) != first
    sources_digest.cache_clear()


@needs_jit
def test_a_literal_compiles_nothing_of_its_own() -> None:
    """A group that begins at 0 is the literal 0 in the first round of inference."""
    scope: dict[str, object] = {}
    exec("def twice(x):\n    return 2 * x", scope)  # text has no folder, and so no cache
    scope["twice"] = twice = kernel(scope["twice"])
    text = "def total(n):\n    g = s = 0\n    while g < n:\n        s += twice(g)\n        g += 1\n"
    exec(text + "    return s", scope)
    assert kernel(scope["total"])(4) == 12
    assert [repr(kinds) for kinds in twice.signatures] == ["(int64,)"]


@needs_jit
@pytest.mark.slow
def test_a_package_that_cannot_be_written_compiles_once(tmp_path: Path) -> None:
    """Not even root can write into a folder whose name is that of a file."""
    package = tmp_path / "site" / "riskset"
    shutil.copytree(SOURCE, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "kernels" / "__pycache__").write_text("")
    home = tmp_path / "home"
    home.mkdir()
    own = {**os.environ, "PYTHONPATH": str(package.parent), "HOME": str(home)}
    own |= {"XDG_CACHE_HOME": str(home / ".cache")}
    for name in ("NUMBA_CACHE_DIR", "RISKSET_JIT_CACHE"):
        own.pop(name, None)

    def hits() -> int:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM], env=own, capture_output=True, text=True, check=True
        )
        return int(done.stdout)

    assert [hits(), hits()] == [0, 1]
    assert (package / "kernels" / "__pycache__").read_text() == ""
