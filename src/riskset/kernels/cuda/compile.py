"""From the sources to machine code, by NVRTC: without a GPU, and once for each kind of GPU."""

import hashlib
import os
import tempfile
from contextlib import suppress
from pathlib import Path

from riskset._errors import DeviceError, MissingDependencyError
from riskset.kernels.cuda.signatures import FOLDER, topics

__all__ = ["MIN_COMPUTE_CAPABILITY", "OPTIONS", "architectures", "machine_code", "program"]

MIN_COMPUTE_CAPABILITY = 70
"""Earlier architectures (before Volta) have no independent threads in a warp."""
OPTIONS = {"std": "c++17"}

INSTALL = 'pip install "riskset[cuda]"'
ELF_MAGIC = b"\x7fELF"
"""How machine code begins."""


def program() -> str:
    """All sources as one text."""
    texts = [(FOLDER / f"{name}.cuh").read_text("utf-8") for name in ("prelude", *topics())]
    return "\n".join(text.replace('#include "prelude.cuh"', "") for text in texts)


def architectures() -> list[int]:
    """What the installed NVRTC can compile for, as 90 for sm_90."""
    try:
        import cuda.core  # noqa: F401
        from cuda.bindings import nvrtc
    except ImportError as error:
        raise MissingDependencyError(
            "a GPU needs the packages cuda-core, cuda-bindings and nvidia-cuda-nvrtc-cu12, and not "
            f"all of them are installed ({error}).",
            hint=INSTALL,
        ) from None
    try:
        _, known = nvrtc.nvrtcGetSupportedArchs()
    except Exception as error:  # its library is looked for at the first call
        raise DeviceError(
            f"NVRTC, which compiles for a GPU, cannot be used ({type(error).__name__}: {error}).",
            hint=f"{INSTALL} brings it (nvidia-cuda-nvrtc-cu12); or use `device='cpu'`.",
        ) from None
    return [arch for arch in known if arch >= MIN_COMPUTE_CAPABILITY]


def _compile(source: str, arch: str) -> bytes:
    from cuda.core import Program, ProgramOptions

    options = ProgramOptions(arch=arch, **OPTIONS)
    return bytes(Program(source, "c++", options).compile("cubin").code)


def machine_code(arch: int, folder: Path | None = None, more: str = "") -> bytes:
    """The kernels for one architecture (90 for sm_90), and those of the source `more`.

    They come from the cache `folder`, by default the user's, if they are there.

    Raises
    ------
    DeviceError
        If the installed NVRTC does not know the architecture.
    """
    known = architectures()
    if arch not in known:
        raise DeviceError(
            f"this GPU has compute capability {arch // 10}.{arch % 10}, and the installed "
            "NVRTC compiles for " + ", ".join(f"{a // 10}.{a % 10}" for a in known) + ".",
            hint="use `device='cpu'`, or for a newer GPU a newer nvidia-cuda-nvrtc.",
        )
    from cuda.bindings import nvrtc

    source = program() + more
    key = "\0".join([source, str(OPTIONS), str(nvrtc.nvrtcVersion()), str(arch)])
    folder = folder or cache_folder()
    if folder is None:
        return _compile(source, f"sm_{arch}")
    path = folder / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.cubin"
    code = _kept(path)
    if code is None:
        code = _compile(source, f"sm_{arch}")
        _keep(code, path)
    return code


def cache_folder() -> Path | None:
    """Where compiled kernels are kept between runs; None: nowhere, for a user without a home."""
    try:
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:
        return None
    return Path(home) / "riskset" / "cuda"


def _kept(path: Path) -> bytes | None:
    """Machine code from the cache, if it is there and is some."""
    try:
        code = path.read_bytes()
    except OSError:
        return None
    return code if code.startswith(ELF_MAGIC) else None


def _keep(code: bytes, path: Path) -> None:
    """Write a file that other processes see whole or not at all; without a cache, go without."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        file = tempfile.NamedTemporaryFile(dir=path.parent, delete=False)  # noqa: SIM115
        try:
            with file:
                file.write(code)
            Path(file.name).replace(path)
        except OSError:  # a full disk
            Path(file.name).unlink()
