"""``riskset compile``: what it does ahead need not be done at the first fit."""

import errno
import os
import re
import subprocess
import sys
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool

import pytest

import riskset as rs
from riskset.cli import kernel_compilation
from riskset.cli.kernel_compilation import WORKS, _Drawn
from riskset.kernels import _jit_cache
from riskset.kernels._jit_cache import KernelFiles

FIT = """
import numpy as np, riskset as rs
rng = np.random.default_rng(0)
rs.Cox().fit(rng.normal(size=(50, 2)), rs.Surv(rng.exponential(size=50), rng.integers(0, 2, 50)))
"""


def run(*command, **environment):
    env = {**os.environ, **environment}
    return subprocess.run(
        [sys.executable, *command], env=env, capture_output=True, text=True, timeout=1200
    )


@pytest.mark.parametrize("name", WORKS)
def test_works_run(name):
    WORKS[name](_Drawn())


@pytest.mark.parametrize(
    ("environment", "cause", "remedy"),
    [
        ({"RISKSET_JIT_CACHE": "0"}, "RISKSET_JIT_CACHE is not 1", "unset it, or set it to 1"),
        ({"NUMBA_DISABLE_JIT": "1"}, "NUMBA_DISABLE_JIT is set", "unset it"),
        ({"NUMBA_CACHE_DIR": "/dev/null/x"}, "'/dev/null/x', which NUMBA_CACHE_DIR", "another fol"),
    ],
)
def test_kernels_that_cannot_be_kept_are_not_compiled(environment, cause, remedy):
    answer = run("-m", "riskset", "compile", **environment)
    assert answer.returncode == 2, answer.stderr
    assert "compiled kernels cannot be kept" in answer.stderr
    assert cause in answer.stderr.replace("`", "")
    assert remedy in answer.stderr
    assert answer.stdout == ""


def test_a_disk_without_room(monkeypatch, tmp_path):
    kernel_files = KernelFiles(str(tmp_path), "base", "0123456789abcdef")
    monkeypatch.setattr(kernel_compilation, "WORKS", {"a work": lambda _: kernel_files.save(1, 2)})
    monkeypatch.setattr(_jit_cache, "NOT_KEPT", [])
    assert kernel_compilation._work("a work")[1] is None
    assert kernel_files.load(1) == 2

    def no_room(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "replace", no_room)
    assert kernel_compilation._work("a work")[1] == "No space left on device"
    assert [path.suffix for path in tmp_path.iterdir()] == [".kernel"]


class AtOnce:
    """Does the work of a pool of processes in this one."""

    def __init__(self, *_, **__):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def submit(self, function, name):
        done = Future()
        try:
            done.set_result(function(name))
        except BrokenProcessPool as error:
            done.set_exception(error)
        return done


@pytest.mark.parametrize(
    ("work", "words"),
    [
        (lambda _: (0.0, "No space left on device"), ["No space left on device", "make room"]),
        (None, ["ended while it compiled the kernels for dense tables", "`--processes 1`"]),
    ],
)
def test_a_fault_on_the_way_names_cause_and_remedy(monkeypatch, tmp_path, work, words):
    def broken(_):
        raise BrokenProcessPool

    monkeypatch.setattr(kernel_compilation, "ProcessPoolExecutor", AtOnce)
    monkeypatch.setattr(kernel_compilation, "_folder", lambda: tmp_path)
    monkeypatch.setattr(kernel_compilation, "_work", work or broken)
    with pytest.raises(rs.InputError) as caught:
        kernel_compilation.compile_kernels(1)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.slow
def test_a_fit_after_it_compiles_nothing(tmp_path):
    found = lambda: {path.name for path in tmp_path.rglob("*.kernel")}  # noqa: E731
    answer = run("-m", "riskset", "compile", NUMBA_CACHE_DIR=str(tmp_path))
    assert answer.returncode == 0, answer.stderr
    number = int(re.search(r"compiled (\d+) kernels", answer.stdout).group(1))
    before = found()
    assert number == len(before) > 50
    assert run("-c", FIT, NUMBA_CACHE_DIR=str(tmp_path)).returncode == 0
    assert found() == before
