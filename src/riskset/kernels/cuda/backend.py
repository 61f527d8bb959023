"""What the host asks of whatever runs the kernels."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from riskset._types import AnyArray
from riskset.kernels.cuda.signatures import Kernel

__all__ = ["FLOAT", "Array", "Backend", "Memory", "GridShape"]

FLOAT = np.dtype(np.float64)

GridShape = tuple[int, int, int]


@dataclass(frozen=True, eq=False)
class Array:
    """An array in the memory of a backend; only the backend knows its `handle`."""

    shape: tuple[int, ...]
    dtype: "np.dtype[Any]"
    handle: Any

    @property
    def size(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape))

    @property
    def nbytes(self) -> int:
        """Bytes of storage."""
        return self.size * self.dtype.itemsize


class Memory(NamedTuple):
    """Bytes of a backend's memory."""

    free: int
    total: int


class Backend(Protocol):
    """Memory, and something that runs kernels on it in the order of their launches."""

    def empty(self, shape: tuple[int, ...], dtype: "np.dtype[Any]") -> Array:
        """Memory that nobody has written to; a `DeviceError` says what is missing."""

    def upload(self, array: AnyArray) -> Array:
        """A copy of an array of the host."""

    def download(self, array: Array) -> AnyArray:
        """A copy on the host, once every launch before it has ended."""

    def launch(
        self,
        kernel: Kernel,
        grid: GridShape,
        block: GridShape,
        arguments: Sequence[Array | int | float],
    ) -> None:
        """Start a kernel; it may be running still when this returns."""

    def synchronise(self) -> None:
        """Wait until every launch has ended."""

    def memory(self) -> Memory:
        """How much memory there is, and how much of it is free."""
