"""The arguments of every kernel, read from its source: there is no second list to keep in step."""

import functools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["FOLDER", "TYPES", "Kernel", "KernelParameter", "kernels_in", "signatures", "topics"]

FOLDER = Path(__file__).parent

TYPES: dict[str, "np.dtype[Any]"] = {
    "double": np.dtype(np.float64),
    "int": np.dtype(np.int32),
    "Pointer": np.dtype(np.int64),
    "Flag": np.dtype(np.uint8),
    "ShortRow": np.dtype(np.uint16),
    "Word": np.dtype(np.uint64),
}
"""The one table of types: in the source of a kernel (`prelude.cuh`) -> of an array or number."""

KERNEL_PATTERN = re.compile(r"^\s*KERNEL\s+(\w+)\(([^)]*)\)", re.MULTILINE)
PARAMETER_PATTERN = re.compile(r"(const\s+)?(\w+)\s*(\*?)\s*(\w+)")


@dataclass(frozen=True)
class KernelParameter:
    """One argument: an array if `is_array`, which the kernel fills or changes if `is_filled`."""

    name: str
    type: str
    is_array: bool
    is_filled: bool

    @property
    def dtype(self) -> "np.dtype[Any]":
        """Type of the number, or of the array's elements."""
        return TYPES[self.type]


@dataclass(frozen=True)
class Kernel:
    """A kernel as its source declares it."""

    name: str
    topic: str
    parameters: tuple[KernelParameter, ...]


def topics() -> list[str]:
    """Names of the sources that hold kernels."""
    return sorted(path.stem for path in FOLDER.glob("*.cuh") if path.stem != "prelude")


def kernels_in(source: str, topic: str) -> list[Kernel]:
    """Every kernel that a source declares."""
    return [
        Kernel(name, topic, tuple(_parameter(text, name) for text in arguments.split(",")))
        for name, arguments in KERNEL_PATTERN.findall(source)
    ]


def _parameter(text: str, kernel: str) -> KernelParameter:
    match = PARAMETER_PATTERN.fullmatch(text.strip())
    assert match, f"{kernel}: cannot read the argument {text.strip()!r}"
    const, kind, star, name = match.groups()
    assert kind in TYPES, f"{kernel}: {kind!r} is not in the table of types"
    return KernelParameter(name, kind, bool(star), bool(star) and not const)


@functools.cache
def signatures() -> dict[str, Kernel]:
    """All kernels by name."""
    found: dict[str, Kernel] = {}
    for topic in topics():
        for kernel in kernels_in((FOLDER / f"{topic}.cuh").read_text("utf-8"), topic):
            assert kernel.name not in found, f"two kernels are called {kernel.name!r}"
            found[kernel.name] = kernel
    return found
