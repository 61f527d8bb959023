"""From the sources to machine code, by NVRTC: without a GPU, and once for each kind of GPU."""

import hashlib
import io
import os
import re
import tempfile
from pathlib import Path
from typing import NamedTuple

from riskset._errors import DeviceError, MissingDependencyError
from riskset.kernels.cuda.signatures import FOLDER, topics

__all__ = ["OLDEST", "Used", "architectures", "machine_code", "program", "registers_used"]

OLDEST = 70
"""Earlier architectures (before Volta) have no independent threads in a warp."""
OPTIONS = {"std": "c++17"}

INSTALL = 'pip install "riskset[cuda]"'


def program() -> str:
    """All sources as one text."""
    texts = [(FOLDER / f"{name}.cuh").read_text("utf-8") for name in ("prelude", *topics())]
    return "\n".join(text.replace('#include "prelude.cuh"', "") for text in texts)


def architectures() -> list[int]:
    """What the installed NVRTC can compile for, as 90 for sm_90."""
    try:
        from cuda.bindings import nvrtc
    except ImportError as error:
        raise MissingDependencyError(
            "a GPU needs the packages cuda-core, cuda-bindings and nvidia-cuda-nvrtc-cu12, and not "
            f"all of them are installed ({error}).",
            hint=INSTALL,
        ) from None
    _, known = nvrtc.nvrtcGetSupportedArchs()
    return [arch for arch in known if arch >= OLDEST]


def _compile(source: str, arch: str, logs: io.StringIO | None = None) -> bytes:
    from cuda.core import Program, ProgramOptions

    verbose = {} if logs is None else {"ptxas_options": ["-v"]}
    options = ProgramOptions(arch=arch, **OPTIONS, **verbose)
    return bytes(Program(source, "c++", options).compile("cubin", logs=logs).code)


def machine_code(arch: int, folder: Path | None = None, more: str = "") -> bytes:
    """The kernels for one architecture, from the cache if they are there.

    Parameters
    ----------
    arch : int
        As 90 for sm_90.
    folder : Path, optional
        Where compiled kernels are kept; by default in the user's cache.
    more : str
        A source of other kernels, to follow them.

    Raises
    ------
    DeviceError
        If the installed NVRTC does not know the architecture.
    """
    known = architectures()
    if arch not in known:
        raise DeviceError(
            f"this GPU has compute capability {arch // 10}.{arch % 10}, and riskset compiles for "
            + ", ".join(f"{a // 10}.{a % 10}" for a in known)
            + ".",
            hint="use device='cpu', or for a newer GPU a newer riskset.",
        )
    from cuda.bindings import nvrtc

    source = program() + more
    key = "\0".join([source, str(OPTIONS), str(nvrtc.nvrtcVersion()), str(arch)])
    folder = folder or cache_folder()
    path = folder / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.cubin"
    if path.exists():
        return path.read_bytes()
    code = _compile(source, f"sm_{arch}")
    _keep(code, path)
    return code


def cache_folder() -> Path:
    """Where compiled kernels are kept between runs."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "riskset" / "cuda"


def _keep(code: bytes, path: Path) -> None:
    """Write a file that other processes see whole or not at all; without a cache, go without."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(code)
        Path(file.name).replace(path)
    except OSError:
        return


class Used(NamedTuple):
    """What a kernel takes of a multiprocessor."""

    registers: int
    spilled_bytes: int


def registers_used(arch: int, more: str = "") -> dict[str, Used]:
    """Registers of each kernel, and what did not fit into them."""
    logs = io.StringIO()
    _compile(program() + more, f"sm_{arch}", logs)
    found: dict[str, Used] = {}
    name, spilled = "", 0
    for line in logs.getvalue().splitlines():
        if entry := re.search(r"Compiling entry function '(\w+)'", line):
            name, spilled = entry[1], 0
        elif spills := re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", line):
            spilled = int(spills[1]) + int(spills[2])
        elif used := re.search(r"Used (\d+) registers", line):
            found[name] = Used(int(used[1]), spilled)
    return found
