"""Compile kernels for the emulator: one shared library for each source, kept between runs."""

import ctypes
import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from riskset.kernels.cuda.compile import program
from riskset.kernels.cuda.signatures import FOLDER, Kernel, kernels_in, topics

HERE = Path(__file__).parent
HEADER = "cuda_emulator.hpp"
CACHE = Path(tempfile.gettempdir()) / f"riskset-emulator-{os.getuid()}"

compiler = shutil.which("g++")
MISSING = "g++ is not installed, and the emulator of the GPU needs it"


class Launch(ctypes.Structure):
    """`emulator::Launch` of schedule.hpp."""

    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("resident", ctypes.c_int),
        ("seed", ctypes.c_uint),
    )


@dataclass(frozen=True)
class Library:
    """The kernels of one source."""

    path: Path
    loaded: ctypes.CDLL

    def failure_of(self, name: str, launch: Launch, arguments: list[object]) -> str:
        """Run a kernel; what went wrong, or nothing.

        Parameters
        ----------
        arguments
            ctypes values, in the order of the parameters.
        """
        pointers = (ctypes.c_void_p * len(arguments))(
            *(ctypes.cast(ctypes.pointer(a), ctypes.c_void_p) for a in arguments)
        )
        run = getattr(self.loaded, f"emulate_{name}")
        run.restype = ctypes.c_char_p
        message = run(ctypes.byref(launch), pointers)
        return message.decode() if message else ""


def caller_of(kernel: Kernel) -> str:
    """A C function that unpacks the arguments of a launch, as a driver does."""
    unpacked = ", ".join(
        f"*({p.type}{'*' if p.is_array else ''}*)arguments[{k}]"
        for k, p in enumerate(kernel.parameters)
    )
    return (
        f"static void call_{kernel.name}(void** arguments) {{ {kernel.name}({unpacked}); }}\n"
        f'extern "C" const char* emulate_{kernel.name}'
        "(const emulator::Launch* launch, void** arguments) {\n"
        f"  bool ok = emulator::run(*launch, call_{kernel.name}, arguments);\n"
        "  return ok ? nullptr : emulator::machine.failure.c_str();\n}\n"
    )


def compiled(source: str, *, watched: bool = False) -> Path:
    """A shared library of the kernels of a source text, from the cache if it is there.

    Parameters
    ----------
    watched
        With the address sanitizer; its run-time library must be loaded before Python.
    """
    text = f'#include "{HEADER}"\n{source}\n'
    text += "".join(caller_of(kernel) for kernel in kernels_in(source, ""))
    options = ["-std=c++17", "-fPIC", "-fno-strict-aliasing", "-w"]
    options.append("-O1")
    if watched:
        # It must not look at stacks, because it knows nothing of fibers.
        options += ["-fsanitize=address", "--param", "asan-stack=0"]
    # Reading the emulator takes most of the time, so that is done once.
    headers = b"".join(path.read_bytes() for path in sorted(HERE.glob("*.hpp")))
    read = digest(*options, headers) + "-header"
    _make(f"{read}/{HEADER}.gch", *options, "-x", "c++-header", str(HERE / HEADER))
    prelude = (FOLDER / "prelude.cuh").read_bytes()
    return _make(
        digest(text, *options, headers, prelude) + ".so",
        *options, "-shared", f"-I{CACHE / read}", f"-I{HERE}", f"-I{FOLDER}", "-x", "c++", "-",
        text=text,
    )  # fmt: skip


def digest(*parts: str | bytes) -> str:
    made = hashlib.sha256()
    for part in parts:
        made.update(part.encode() if isinstance(part, str) else part)
        made.update(b"\0")
    return made.hexdigest()[:32]


def _make(name: str, *command: str, text: str | None = None) -> Path:
    """A file in the cache, compiled if it is not there."""
    assert compiler, MISSING
    path = CACHE / name
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
            made = Path(scratch) / "made"
            run = [compiler, *command, "-o", str(made)]
            done = subprocess.run(run, input=text, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            made.replace(path)
    return path


def source_of(topic: str, edit: tuple[str, str] | None = None) -> str:
    """The source of a topic, with a fault planted in it: some text, replaced by another."""
    text = (FOLDER / f"{topic}.cuh").read_text("utf-8")
    prelude = (FOLDER / "prelude.cuh").read_text("utf-8")
    text = text.replace('#include "prelude.cuh"', prelude.replace("#pragma once", ""))
    if edit is not None:
        assert text.count(edit[0]) == 1, f"{edit[0]!r} stands {text.count(edit[0])} times"
        text = text.replace(*edit)
    return text


@functools.cache
def library_of(source: str) -> Library:
    path = compiled(source)
    return Library(path, ctypes.CDLL(str(path)))


def libraries(edits: Mapping[str, tuple[str, str]] | None = None) -> dict[str, Library]:
    """The library of each topic: the same for all, but for those with a fault."""
    edits = edits or {}
    faulty = {topic: library_of(source_of(topic, edit)) for topic, edit in edits.items()}
    return {topic: faulty.get(topic) or library_of(program()) for topic in topics()}
