"""NVRTC compiles every kernel for every GPU it knows, and all of it fits into registers."""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from riskset._errors import DeviceError
from riskset.kernels.cuda import compile as compiler
from riskset.kernels.cuda.signatures import signatures

pytest.importorskip("cuda.core", reason="the packages of the extra `cuda` are not installed")

MOST_REGISTERS = 64
"""Of each thread: four blocks of 256 threads then fill the registers of a multiprocessor."""


@pytest.fixture(scope="module")
def used_by_arch() -> dict[int, dict[str, compiler.Used]]:
    # NVRTC compiles one program at a time in a process.
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        known = compiler.architectures()
        return dict(zip(known, pool.map(compiler.registers_used, known), strict=True))


@pytest.mark.parametrize("arch", compiler.architectures())
def test_every_kernel_fits_into_registers(
    arch: int, used_by_arch: dict[int, dict[str, compiler.Used]]
) -> None:
    used = used_by_arch[arch]
    assert set(used) == set(signatures())
    assert {name: u.spilled_bytes for name, u in used.items() if u.spilled_bytes} == {}
    assert max(u.registers for u in used.values()) <= MOST_REGISTERS


def test_volta_to_blackwell_are_known() -> None:
    assert {70, 75, 80, 86, 89, 90, 100, 120} <= set(compiler.architectures())


def test_machine_code_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = compiler.machine_code(80, tmp_path)
    assert code[:4] == b"\x7fELF"
    (kept,) = tmp_path.iterdir()
    assert kept.suffix == ".cubin"
    monkeypatch.setattr(compiler, "_compile", lambda *_: pytest.fail("compiled again"))
    assert compiler.machine_code(80, tmp_path) == code


def test_other_sources_are_compiled_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler.machine_code(80, tmp_path)
    source = compiler.program()
    monkeypatch.setattr(compiler, "program", lambda: source + "// another word\n")
    compiler.machine_code(80, tmp_path)
    assert len(list(tmp_path.iterdir())) == 2


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert compiler.machine_code(80, tmp_path / "file" / "cache")[:4] == b"\x7fELF"


def test_an_unknown_gpu_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        DeviceError, match="has compute capability 6.0, and riskset compiles for 7.0"
    ):
        compiler.machine_code(60, tmp_path)
