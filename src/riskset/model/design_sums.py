"""Who reads the design for sums over rows and over samples of them: the host, or a device.

What they return is small, and on the host.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from riskset._runtime import Runtime
from riskset._types import AnyArray, Features, Index, Matrix, Rows
from riskset.data.column_storage import BinaryColumns
from riskset.data.design import Design
from riskset.data.device import DeviceDesign
from riskset.kernels import gram_cpu as kernels
from riskset.kernels.cuda.backend import FLOAT
from riskset.kernels.cuda.launch import Launcher

__all__ = ["DeviceSums", "HostSums", "DesignSums"]

Bits = NDArray[np.uint64]
"""Slots of a sample as bits of words, one row of words a column."""


class DesignSums(Protocol):
    """Sums over the design."""

    @property
    def design(self) -> Design:
        """What is summed."""

    def cross(self, r: Rows, columns: Index | None = None, *, power: int = 1) -> Features:
        """See `Design.cross`."""

    def moments(self, r: Rows, columns: Index) -> Matrix:
        """See `Design.moments`."""

    def bits(
        self,
        part: BinaryColumns,
        slots: Index,
        is_drawn: AnyArray,
        start: Index,
        place: Index,
        n_words: int,
    ) -> Bits:
        """See `gram_ref.fill_bits`."""

    def binary_gram(self, bits: Bits) -> Matrix:
        """See `gram_ref.binary_gram`."""

    def bin_counts(self, bits: Bits, bin_word: Index) -> Matrix:
        """See `gram_ref.bin_counts`."""

    def gram(self, z: Matrix) -> Matrix:
        """``z' z``."""

    def mixed_gram(self, bits: Bits, z: Matrix) -> Matrix:
        """Sums of the columns of z over the slots of each binary column."""


@dataclass(frozen=True)
class HostSums:
    """Sums by the CPU."""

    design: Design
    runtime: Runtime

    def cross(self, r: Rows, columns: Index | None = None, *, power: int = 1) -> Features:
        return self.design.cross(r, columns, runtime=self.runtime, power=power)

    def moments(self, r: Rows, columns: Index) -> Matrix:
        return self.design.moments(r, columns, runtime=self.runtime)

    def bits(
        self,
        part: BinaryColumns,
        slots: Index,
        is_drawn: AnyArray,
        start: Index,
        place: Index,
        n_words: int,
    ) -> Bits:
        out = np.zeros((slots.size, n_words), dtype=np.uint64)
        kernels.fill_bits(
            part.block_ptr, part.row, part.shift, slots, is_drawn, start, place, out, self.runtime
        )
        return out

    def binary_gram(self, bits: Bits) -> Matrix:
        return kernels.binary_gram(bits, self.runtime)

    def bin_counts(self, bits: Bits, bin_word: Index) -> Matrix:
        return kernels.bin_counts(bits, bin_word)

    def gram(self, z: Matrix) -> Matrix:
        return z.T @ z

    def mixed_gram(self, bits: Bits, z: Matrix) -> Matrix:
        out = np.empty((bits.shape[0], z.shape[1]))
        step = max(1, (1 << 24) // (64 * bits.shape[1]))
        for k in range(0, bits.shape[0], step):
            ones = np.unpackbits(bits[k : k + step].view(np.uint8), axis=1, bitorder="little")
            out[k : k + step] = ones.astype(np.float64) @ z
        return out


class DeviceSums:
    """Sums by a device."""

    def __init__(self, on_device: DeviceDesign) -> None:
        self.design = on_device.design
        self._on_device = on_device
        self._backend = on_device.backend
        self._launch = Launcher(on_device.backend)

    def cross(self, r: Rows, columns: Index | None = None, *, power: int = 1) -> Features:
        found = self._on_device.cross(self._backend.upload(r[:, None]), columns, power=power)
        return np.asarray(self._backend.download(found)[0])

    def moments(self, r: Rows, columns: Index) -> Matrix:
        return np.stack([self.cross(r, columns, power=k) for k in (1, 2)])

    def bits(
        self,
        part: BinaryColumns,
        slots: Index,
        is_drawn: AnyArray,
        start: Index,
        place: Index,
        n_words: int,
    ) -> Bits:
        found = self._on_device.bits(part, slots, is_drawn, start, place, n_words)
        return np.asarray(self._backend.download(found))

    def _filled(self, name: str, shape: tuple[int, int], **arguments: AnyArray | int) -> Matrix:
        passed = {
            key: self._backend.upload(value) if isinstance(value, np.ndarray) else value
            for key, value in arguments.items()
        }
        out = self._backend.empty(shape, FLOAT)
        self._launch(name, **passed, out=out)
        return np.asarray(self._backend.download(out))

    def binary_gram(self, bits: Bits) -> Matrix:
        q, n_words = bits.shape
        return self._filled("binary_gram", (q, q), bits=bits, n_columns=q, n_words=n_words)

    def bin_counts(self, bits: Bits, bin_word: Index) -> Matrix:
        (q, n_words), n_bins = bits.shape, bin_word.size - 1
        return self._filled(
            "bin_counts", (n_bins, q), bits=bits, bin_word=bin_word.astype(np.int32),
            n_columns=q, n_words=n_words, n_bins=n_bins,
        )  # fmt: skip

    def gram(self, z: Matrix) -> Matrix:
        n_rows, m = z.shape
        return self._filled("dense_gram", (m, m), a=z, b=z, n_rows=n_rows, n_left=m, n_right=m)

    def mixed_gram(self, bits: Bits, z: Matrix) -> Matrix:
        (q, n_words), m = bits.shape, z.shape[1]
        return self._filled(
            "mixed_gram", (q, m), bits=bits, z=z, n_columns=q, n_words=n_words, n_dense=m
        )
