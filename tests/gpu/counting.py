"""A backend that counts its memory."""

import weakref

import numpy as np

from emulator.backend import Reference
from riskset._errors import DeviceError
from riskset.kernels.cuda.backend import Array, Memory


class Counting(Reference):
    """Memory with an end."""

    def __init__(self, limit: int) -> None:
        self.limit, self.used, self.most, self.batches = limit, 0, 0, []

    def _count(self, array: Array) -> Array:
        self.used += array.nbytes
        self.most = max(self.most, self.used)
        weakref.finalize(array, self._give_back, array.nbytes)
        return array

    def _give_back(self, n_bytes: int) -> None:
        self.used -= n_bytes

    def empty(self, shape: tuple[int, ...], dtype: np.dtype) -> Array:
        return self._count(super().empty(shape, dtype))

    def upload(self, array: np.ndarray) -> Array:
        return self._count(super().upload(array))

    def memory(self) -> Memory:
        return Memory(self.limit - self.used, self.limit)


class Failing(Counting):
    """Memory that says there is plenty, and ends after so many arrays."""

    def __init__(self, n_arrays: int) -> None:
        super().__init__(1 << 40)
        self.n_arrays = n_arrays

    def _count(self, array: Array) -> Array:
        self.n_arrays -= 1
        if self.n_arrays < 0:
            raise DeviceError("the GPU has 0 bytes free, but some are needed.")
        return super()._count(array)
