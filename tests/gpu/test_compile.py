"""NVRTC compiles every kernel for every GPU it knows, and all of it fits into registers."""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from gpu.registers import Used, registers_used
from riskset._errors import DeviceError
from riskset.kernels.cuda import compile as compiler
from riskset.kernels.cuda.signatures import signatures

pytest.importorskip("cuda.core", reason="the packages of the extra `cuda` are not installed")

MOST_REGISTERS = 64
"""Of each thread: four blocks of 256 threads then fill the registers of a multiprocessor."""


@pytest.fixture(scope="module")
def used_by_arch() -> dict[int, dict[str, Used]]:
    # NVRTC compiles one program at a time in a process.
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        known = compiler.architectures()
        return dict(zip(known, pool.map(registers_used, known), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("arch", compiler.architectures())
def test_every_kernel_fits_into_registers(
    arch: int, used_by_arch: dict[int, dict[str, Used]]
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


@pytest.mark.slow
def test_other_sources_are_compiled_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler.machine_code(80, tmp_path)
    source = compiler.program()
    monkeypatch.setattr(compiler, "program", lambda: source + "// another word\n")
    compiler.machine_code(80, tmp_path)
    assert len(list(tmp_path.iterdir())) == 2


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert compiler.machine_code(80, tmp_path / "file" / "cache")[:4] == b"\x7fELF"


@pytest.mark.slow
def test_a_file_that_is_no_machine_code_is_compiled_again(tmp_path: Path) -> None:
    code = compiler.machine_code(80, tmp_path)
    (kept,) = tmp_path.iterdir()
    for nonsense in (b"", b"no machine code"):
        kept.write_bytes(nonsense)
        assert compiler.machine_code(80, tmp_path) == code
        assert kept.read_bytes() == code


def test_a_user_without_a_home_has_no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", fail)
    monkeypatch.setattr(compiler, "_compile", lambda *_: b"code")
    assert compiler.machine_code(80) == b"code"


def test_a_full_disk_keeps_no_part_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    compiler._keep(b"code", tmp_path / "code.cubin")
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_gpu_is_named(tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match=r"has compute capability 6.0, and.* compiles for 7.0"):
        compiler.machine_code(60, tmp_path)
    with pytest.raises(DeviceError, match=r"Hint: .* a newer nvidia-cuda-nvrtc"):
        compiler.machine_code(60, tmp_path)
