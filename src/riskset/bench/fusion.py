"""Scans, transformation and reductions: apart, as tuples, and in one pass: section 3.1.

One device offers its `KernelForm`s through an entry of `DEVICES`, a function of the vectors.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from riskset._errors import InputError
from riskset._version import __version__
from riskset.bench import fusion_kernels as kernels
from riskset.bench.experiment import ProgressCall
from riskset.bench.fusion_device import device_forms
from riskset.bench.fusion_kernels import KernelForm, Vectors
from riskset.bench.measure import processor, steady
from riskset.bench.record import BenchmarkRecord, grouped
from riskset.plot.timings import Figure, Panel, time_curves

__all__ = ["DEVICES", "FORMS", "ROWS", "Fusion", "cpu_forms"]

ROWS = (100_000, 177_828, 316_228, 562_341, 1_000_000)
FORMS = ("separate", "tuples", "fused")


def cpu_forms(v: Vectors) -> dict[str, KernelForm]:
    """One thread of the processor."""
    s0, s1, s2, first, second = np.empty((5, v.r.size))

    def three_scans() -> None:
        kernels.scan(v.r, s0)
        kernels.scan(v.xr, s1)
        kernels.scan(v.xxr, s2)

    def transform() -> None:
        kernels.transform(s0, s1, s2, v.event, first, second)

    def two_reductions() -> tuple[float, float]:
        return kernels.reduce(first), kernels.reduce(second)

    def separate() -> tuple[float, float]:
        three_scans()
        transform()
        return two_reductions()

    def tuple_scan() -> None:
        kernels.tuple_scan(v.r, v.xr, v.xxr, s0, s1, s2)

    def transform_reduce() -> tuple[float, float]:
        return kernels.transform_reduce(s0, s1, s2, v.event)

    def tuples() -> tuple[float, float]:
        tuple_scan()
        return transform_reduce()

    def fused() -> tuple[float, float]:
        return kernels.fused(v.r, v.xr, v.xxr, v.event)

    return {
        "separate": KernelForm(
            {
                "three scans": three_scans,
                "transformation": transform,
                "two reductions": two_reductions,
            },
            separate,
        ),
        "tuples": KernelForm(
            {"tuple scan": tuple_scan, "transformed reduction": transform_reduce}, tuples
        ),
        "fused": KernelForm({}, fused),
    }


DEVICES: dict[str, Callable[[Vectors], Mapping[str, KernelForm]]] = {
    "cpu": cpu_forms,
    "cuda": device_forms,
}
"""Every form of `FORMS` on each device; their calls return when the result is there."""


@dataclass(frozen=True)
class Fusion:
    """The options of `fusion`."""

    name: ClassVar[str] = "fusion"
    title: ClassVar[str] = "Scans, transformation and reductions: apart and fused"
    words: ClassVar[str] = (
        "Steps (2) to (4) of section 2.7 of Yang et al. (2024) for one covariate, on vectors from "
        "U(1, 2). 'above the best' is the largest relative difference of the two sums from the "
        "separate form. Seconds are per pass."
    )

    rows: Sequence[int] = ROWS
    device: str = "cpu"
    repeats: int = 5
    seed: int = 123
    peers: ClassVar[None] = None

    def __post_init__(self) -> None:
        if self.device not in DEVICES:
            raise InputError.wrong_option("device", self.device, tuple(DEVICES))

    def records(self, progress: ProgressCall) -> Iterator[BenchmarkRecord]:
        """Every form, and its steps, at every size."""
        for form in DEVICES[self.device](Vectors.draw(100, 1)).values():
            form.result()  # compiles
        for k, n in enumerate(sorted(self.rows)):
            progress(k / len(self.rows), f"{n:,} rows")
            forms = DEVICES[self.device](Vectors.draw(n, self.seed))
            expected = np.array(forms["separate"].result())
            for name in FORMS:
                form = forms[name]
                found = np.array(form.result())
                off = float((np.abs(found - expected) / np.abs(expected)).max())
                yield self._record(n, name, "in all", form.result, gap=off)
                for step, work in form.steps.items():
                    yield self._record(n, name, step, work)

    def _record(
        self, n: int, form: str, step: str, work: Callable[[], object], gap: float | None = None
    ) -> BenchmarkRecord:
        return BenchmarkRecord(
            experiment=self.name,
            n_rows=n,
            tool=f"{form}, {self.device}",
            version=__version__,
            threads=1 if self.device == "cpu" else None,
            step=step,
            gap=gap,
            processor=processor(),
            **steady(work, self.repeats),
        )

    def picture(self, records: Sequence[BenchmarkRecord]) -> Figure:
        """How many times faster than apart, as in the paper."""
        whole = [r for r in records if r.step == "in all"]
        apart = {r.n_rows: r.seconds for r in whole if r.tool.startswith("separate")}
        lines = {
            str(tool): (
                [float(r.n_rows or 0) for r in some],
                [float(apart[r.n_rows] or 0) / float(r.seconds or 1) for r in some],
            )
            for (tool,), some in grouped(whole, "tool")
        }
        return time_curves([Panel("", "rows", lines)], ylabel="times as fast as apart")
