"""Steps (2) to (4) of the paper's section 2.7 in three forms, on a GPU.

All three have the scan of `kernels/cuda/fused.cuh`, so what differs is fusion alone: how often
vectors are written to memory and read again, and how many kernels are launched. A pass is queued
and waited for, so its seconds contain what launching from Python takes, some 10 microseconds for
each kernel: below a few million rows this is what fusion saves first.
"""

from pathlib import Path

import numpy as np

from riskset.bench.fusion_kernels import KernelForm, Vectors
from riskset.kernels.cuda import device
from riskset.kernels.cuda.backend import Array, Backend
from riskset.kernels.cuda.launch import THREADS, TILE_ROWS
from riskset.kernels.cuda.signatures import kernels_in, signatures

__all__ = ["SOURCE", "Passes", "device_forms"]

SOURCE = (Path(__file__).parent / "fusion.cuh").read_text("utf-8")
KERNELS = {kernel.name: kernel for kernel in kernels_in(SOURCE, "fusion")}
FLOAT = np.dtype(np.float64)


class Passes:
    """The vectors and every intermediate result, in the memory of a backend."""

    def __init__(self, v: Vectors, backend: Backend) -> None:
        self.backend, self.n_rows = backend, v.r.size
        self.n_tiles = -(-self.n_rows // TILE_ROWS)
        starts = (np.arange(self.n_rows) == 0).astype(np.uint8)
        self.at = {
            "r": backend.upload(v.r),
            "xr": backend.upload(v.xr),
            "xxr": backend.upload(v.xxr),
            "event": backend.upload(v.event),
            "starts": backend.upload(starts),
            "ticket": backend.upload(np.zeros(1, dtype=np.int32)),
            "status": backend.upload(np.zeros(self.n_tiles, dtype=np.int32)),
            "sums": backend.empty((2,), FLOAT),
            "other": backend.empty((1,), FLOAT),
        }
        for name in ("s0", "s1", "s2", "first", "second"):
            self.at[name] = backend.empty((self.n_rows,), FLOAT)
        for name in ("own", "total"):
            self.at[name] = backend.empty((self.n_tiles, 3), FLOAT)
        for name in ("slope", "bend"):
            self.at[name] = backend.empty((self.n_tiles,), FLOAT)

    def _launch(self, name: str, n_blocks: int, **renamed: str) -> None:
        kernel = KERNELS.get(name) or signatures()[name]
        numbers = {"n_rows": self.n_rows, "n_tiles": self.n_tiles, "n_kinds": 1}
        if "second" in renamed and name == "finish":
            numbers["n_kinds"] = 2
        passed: list[Array | int | float] = []
        for parameter in kernel.parameters:
            key = renamed.get(parameter.name, parameter.name)
            passed.append(self.at[key] if parameter.is_array else numbers[key])
        self.backend.launch(kernel, (n_blocks, 1, 1), (THREADS, 1, 1), passed)

    def three_scans(self) -> None:
        """One vector after the other."""
        for x, out in (("r", "s0"), ("xr", "s1"), ("xxr", "s2")):
            self._launch("clear", 1)
            self._launch("scan_one", self.n_tiles, x=x, out=out)

    def tuple_scan(self) -> None:
        """All three at once."""
        self._launch("clear", 1)
        self._launch("scan_three", self.n_tiles)

    def transform(self) -> None:
        """Terms, written to memory."""
        self._launch("transform", -(-self.n_rows // THREADS))

    def two_reductions(self) -> None:
        """One sum after the other."""
        for x, partial, sums in (("first", "slope", "sums"), ("second", "bend", "other")):
            self._launch("reduce_one", self.n_tiles, x=x, partial=partial)
            self._launch("finish", 1, first=partial, sums=sums)

    def transform_reduce(self) -> None:
        """Both sums, their terms never written."""
        self._launch("transform_reduce", self.n_tiles, first="slope", second="bend")
        self._launch("finish", 1, first="slope", second="bend")

    def fused(self) -> None:
        """Everything in one pass, nothing written."""
        self._launch("clear", 1)
        self._launch("cox_fused", self.n_tiles, events="event")
        self._launch("finish", 1, first="slope", second="bend")

    def both(self) -> tuple[float, float]:
        """The two sums, where one kernel made them."""
        first, second = self.backend.download(self.at["sums"])
        return float(first), float(second)

    def one_by_one(self) -> tuple[float, float]:
        """The two sums, where each had its own reduction."""
        first = self.backend.download(self.at["sums"])[0]
        return float(first), float(self.backend.download(self.at["other"])[0])


def device_forms(v: Vectors) -> dict[str, KernelForm]:
    """On the GPU of this machine, or an error that says what is missing."""
    passes = Passes(v, device.open_device(SOURCE))
    plans = {
        "separate": {
            "three scans": passes.three_scans,
            "transformation": passes.transform,
            "two reductions": passes.two_reductions,
        },
        "tuples": {
            "tuple scan": passes.tuple_scan,
            "transformed reduction": passes.transform_reduce,
        },
        "fused": {"fused": passes.fused},
    }
    results = {"separate": passes.one_by_one, "tuples": passes.both, "fused": passes.both}

    def form(name: str) -> KernelForm:
        steps, result = plans[name], results[name]

        def waited(step: str) -> None:
            steps[step]()
            passes.backend.synchronise()

        def whole() -> tuple[float, float]:
            for step in steps.values():
                step()
            return result()

        alone = {step: (lambda step=step: waited(step)) for step in steps if len(steps) > 1}
        return KernelForm(alone, whole)

    return {name: form(name) for name in plans}
