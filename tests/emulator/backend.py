"""A backend that runs kernels on the emulator, one that runs their references, and a recorder."""

import ctypes
import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from emulator.build import Launch, Library, libraries
from riskset.kernels.cuda.backend import Array, GridShape, Memory
from riskset.kernels.cuda.signatures import Kernel

C_NUMBERS = {"int": ctypes.c_int, "double": ctypes.c_double, "Pointer": ctypes.c_longlong}
UNWRITTEN = 0xCB


class HostMemory:
    """Arrays of a backend that are arrays of NumPy, and full of nonsense at first."""

    limit = 1 << 40

    def empty(self, shape: tuple[int, ...], dtype: np.dtype) -> Array:
        array = np.empty(shape, dtype)
        array.view(np.uint8).reshape(-1)[:] = UNWRITTEN
        return Array(array.shape, array.dtype, array)

    def upload(self, array: np.ndarray) -> Array:
        copy = np.array(array, order="C")
        return Array(copy.shape, copy.dtype, copy)

    def download(self, array: Array) -> np.ndarray:
        return array.handle.copy()

    def synchronise(self) -> None:
        pass

    def memory(self) -> Memory:
        return Memory(self.limit, self.limit)


@dataclass
class Emulator(HostMemory):
    """Kernels on the emulator, in an order of threads that a seed decides.

    Every launch has a seed of its own, made from `seed`; 0 runs threads in order.
    """

    seed: int = 0
    resident: int = 2
    sources: Mapping[str, Library] = field(default_factory=libraries)
    n_launches: int = 0

    def launch(
        self,
        kernel: Kernel,
        grid: GridShape,
        block: GridShape,
        arguments: Sequence[Array | int | float],
    ) -> None:
        self.n_launches += 1
        seed = (self.seed * 1_000_003 + self.n_launches) % 2**32 if self.seed else 0
        launch = Launch(grid, block, self.resident, seed)
        passed = [
            value.handle.ctypes.data_as(ctypes.c_void_p)
            if isinstance(value, Array)
            else C_NUMBERS[parameter.type](value)
            for parameter, value in zip(kernel.parameters, arguments, strict=True)
        ]
        failure = self.sources[kernel.topic].failure_of(kernel.name, launch, passed)
        if failure:
            raise RuntimeError(f"{kernel.name}: {failure}")


class Reference(HostMemory):
    """The references of the kernels: what a backend computes, by the plain formulas."""

    def launch(
        self,
        kernel: Kernel,
        grid: GridShape,
        block: GridShape,
        arguments: Sequence[Array | int | float],
    ) -> None:
        module = importlib.import_module(f"riskset.kernels.cuda.{kernel.topic}_ref")
        values = [a.handle if isinstance(a, Array) else a for a in arguments]
        getattr(module, kernel.name)(*values)


@dataclass(frozen=True)
class Recorded:
    """A launch: its arguments before, and those that it filled."""

    kernel: Kernel
    grid: GridShape
    block: GridShape
    before: list[np.ndarray | int | float]
    after: dict[str, np.ndarray]

    def again(self, backend: HostMemory) -> dict[str, np.ndarray]:
        """What another backend fills from the same arguments; inputs must stay as they are."""
        passed = [backend.upload(a) if isinstance(a, np.ndarray) else a for a in self.before]
        backend.launch(self.kernel, self.grid, self.block, passed)
        filled = {}
        for parameter, value, before in zip(
            self.kernel.parameters, passed, self.before, strict=True
        ):
            if parameter.is_filled:
                filled[parameter.name] = backend.download(value)
            elif parameter.is_array:
                assert value.handle.tobytes() == before.tobytes(), parameter.name
        return filled


class Recorder(Reference):
    """The references, with a record of every launch."""

    def __init__(self) -> None:
        self.records: list[Recorded] = []

    def launch(
        self,
        kernel: Kernel,
        grid: GridShape,
        block: GridShape,
        arguments: Sequence[Array | int | float],
    ) -> None:
        before = [a.handle.copy() if isinstance(a, Array) else a for a in arguments]
        super().launch(kernel, grid, block, arguments)
        after = {
            p.name: a.handle.copy()
            for p, a in zip(kernel.parameters, arguments, strict=True)
            if p.is_filled
        }
        self.records.append(Recorded(kernel, grid, block, before, after))
