"""The backend that runs kernels on an NVIDIA GPU, through cuda.core."""

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from riskset._errors import DeviceError, MissingDependencyError, RisksetError
from riskset._types import AnyArray
from riskset.kernels.cuda import compile as compiler
from riskset.kernels.cuda.backend import Array, Backend, GridShape, Memory
from riskset.kernels.cuda.launch import Launcher
from riskset.kernels.cuda.signatures import Kernel

__all__ = [
    "MIN_DESIGN_BYTES",
    "CudaDevice",
    "backend_for",
    "device_name",
    "open_device",
    "why_no_device",
]

MIN_DESIGN_BYTES = 20_000_000
"""Bytes of a smaller design, about two for each number in it, are left to the CPU by default: an
estimate, which takes launches to cost 5 microseconds each and a pass to need 50 of them."""
FREE_MEMORY_FACTOR, MIN_FREE_BYTES = 3, 1 << 30
"""By default, free memory must be this many times the size of the design, plus these bytes for
partial sums."""
BYTES_PER_ROW = 400
"""Plus these bytes for each row: the likelihood of a fit holds 30 to 70, with late entry up to 260
(if all rows have events), and its passes take some 60 more."""


def backend_for(device: str, n_bytes: int, n_rows: int) -> Backend | None:
    """The GPU if passes over a design of so many bytes and rows should be made there, else None.

    With ``device="cuda"`` it is the GPU whatever the size, or an error says why not.
    """
    if device == "cuda":
        return open_device()
    if device == "cpu" or n_bytes < MIN_DESIGN_BYTES or why_no_device() is not None:
        return None
    backend = open_device()
    least = FREE_MEMORY_FACTOR * n_bytes + BYTES_PER_ROW * n_rows + MIN_FREE_BYTES
    return backend if backend.memory().free >= least else None


def why_no_device() -> str | None:
    """Why the GPU cannot be used, or None if it can."""
    try:
        open_device()
    except (DeviceError, MissingDependencyError) as error:
        return str(error)
    return None


def device_name() -> str:
    """Name of the GPU in use."""
    return str(open_device().name)


def open_device(more: str = "") -> "CudaDevice":
    """The current GPU, its kernels and those of the source `more` compiled and loaded.

    It can be used in the thread that calls.

    Raises
    ------
    MissingDependencyError
        Without the packages of the `cuda` extra.
    DeviceError
        Without a driver or a GPU, or if anything goes wrong until a first kernel has run on it.
    """
    opened = _opened(more)
    opened.use()
    return opened


@functools.cache
def _opened(more: str) -> "CudaDevice":
    try:
        return _open(more)
    except RisksetError:
        raise
    except Exception as error:  # each layer of the driver has its own class
        raise _failure("be opened", error) from None


def _open(more: str) -> "CudaDevice":
    compiler.architectures()  # which says what to install
    from cuda import core

    try:
        devices = core.Device.get_all_devices()
    except Exception as error:
        raise DeviceError(
            f"no NVIDIA GPU is found ({type(error).__name__}: {error}).",
            hint="see whether nvidia-smi, which comes with the driver, lists it, and whether "
            "CUDA_VISIBLE_DEVICES hides it; or use `device='cpu'`.",
        ) from None
    if not devices:
        raise DeviceError("there is no NVIDIA GPU here.", hint="use `device='cpu'`.")
    return CudaDevice(core.Device(), more)


def _failure(what: str, error: Exception) -> DeviceError:
    """What the packages of NVIDIA complain about, as an error of riskset."""
    return DeviceError(
        f"the GPU cannot {what} ({type(error).__name__}: {error}).",
        hint="use `device='cpu'`, or see whether the GPU works and is free (nvidia-smi), and its "
        "driver is recent.",
    )


class CudaDevice:
    """One GPU: memory from a pool of its own, and one queue of work."""

    def __init__(self, device: Any, more: str = "") -> None:
        from cuda import core
        from cuda.bindings import driver

        self._core, self._driver, self._device = core, driver, device
        device.set_current()
        self.name = device.name
        self._stream = device.default_stream
        options = core.DeviceMemoryResourceOptions()
        self._pool = core.DeviceMemoryResource(device, options)
        # Memory once taken is kept: every pass asks for the same again.
        keep = driver.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
        self._call(
            driver.cuMemPoolSetAttribute, self._pool.handle, keep, driver.cuuint64_t(2**64 - 1)
        )
        major, minor = device.compute_capability
        self._code = core.ObjectCode.from_cubin(
            compiler.machine_code(10 * major + minor, more=more)
        )
        self._kernels: dict[str, Any] = {}
        self._try_out()

    def _try_out(self) -> None:
        """Run a kernel: only then does the driver read the machine code."""
        n_rows = 8
        x = self.empty((n_rows, 1), np.dtype(np.float64))
        Launcher(self)("fill", value=1.0, n_rows=n_rows, n_lanes=1, x=x)
        self.synchronise()
        if (self.download(x) != 1.0).any():
            raise DeviceError(
                "what the kernels compute on the GPU is wrong.",
                hint="use `device='cpu'`.",
            )

    def use(self) -> None:
        """Make it that of the current thread: a driver knows one for each."""
        try:
            self._device.set_current()
        except Exception as error:
            raise _failure("be used", error) from None

    def _call(self, function: Any, *arguments: Any) -> tuple[Any, ...]:
        """Call the driver, and raise what it complains about."""
        status, *values = function(*arguments)
        if int(status) != 0:
            raise DeviceError(
                f"the GPU reports {status.name} in {function.__name__}.",
                hint="use `device='cpu'`, or see whether another program took the GPU "
                "(nvidia-smi).",
            )
        return tuple(values)

    def empty(self, shape: tuple[int, ...], dtype: "np.dtype[Any]") -> Array:
        n_bytes = max(1, int(np.prod(shape)) * dtype.itemsize)
        try:
            buffer = self._pool.allocate(n_bytes, stream=self._stream)
        except Exception as error:
            # The name of the driver's status, which cuda.core keeps in the text alone.
            if "OUT_OF_MEMORY" not in str(error):
                raise _failure("give memory", error) from None
            raise DeviceError(
                f"the GPU has {self.memory().free:,} bytes free, but {n_bytes:,} are needed.",
                hint="use `device='cpu'`, or end other programs that use the GPU.",
            ) from None
        return Array(shape, dtype, buffer)

    def upload(self, array: AnyArray) -> Array:
        array = np.ascontiguousarray(array)
        out = self.empty(array.shape, array.dtype)
        if array.size:
            address = int(out.handle.handle)
            self._call(self._driver.cuMemcpyHtoD, address, array.ctypes.data, array.nbytes)
        return out

    def download(self, array: Array) -> AnyArray:
        out = np.empty(array.shape, array.dtype)
        if out.size:
            address = int(array.handle.handle)
            self._call(self._driver.cuMemcpyDtoH, out.ctypes.data, address, out.nbytes)
        return out

    def launch(
        self,
        kernel: Kernel,
        grid: GridShape,
        block: GridShape,
        arguments: Sequence[Array | int | float],
    ) -> None:
        passed = [
            value.handle if isinstance(value, Array) else parameter.dtype.type(value)
            for parameter, value in zip(kernel.parameters, arguments, strict=True)
        ]
        try:
            if kernel.name not in self._kernels:
                self._kernels[kernel.name] = self._code.get_kernel(kernel.name)
            config = self._core.LaunchConfig(grid=grid, block=block)
            self._core.launch(self._stream, config, self._kernels[kernel.name], *passed)
        except Exception as error:
            raise _failure(f"run {kernel.name!r}", error) from None

    def synchronise(self) -> None:
        try:
            self._stream.sync()
        except Exception as error:
            raise _failure("end its work", error) from None

    def memory(self) -> Memory:
        """See `Backend.memory`; memory that the pool keeps and nobody uses is free."""
        self.synchronise()
        free, total = self._call(self._driver.cuMemGetInfo)
        pool = self._pool.attributes
        return Memory(int(free) + pool.reserved_mem_current - pool.used_mem_current, int(total))
