"""Time, memory, and what they were measured on."""

import importlib.metadata
import math
import os
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from riskset._runtime import available_threads
from riskset._version import __version__

__all__ = ["Measurement", "machine", "measure", "processor", "steady", "version"]

T = TypeVar("T")

STATUS = Path("/proc/self/status")
CLEAR = Path("/proc/self/clear_refs")
PROCESSORS = Path("/proc/cpuinfo")
PACKAGES = ("numpy", "scipy", "numba")
MIN_SECONDS_MEASURED = 0.02
"""Seconds that `steady` measures at least; a single pass is too short for the clock."""


@dataclass(frozen=True)
class Measurement(Generic[T]):
    """What a piece of work gave and took.

    Attributes
    ----------
    result
        Of the last repetition.
    seconds, fastest, slowest : float
        Median and range over the repetitions.
    cpu : float
        CPU seconds of all threads, median over the repetitions.
    peak_mb : float or None
        Resident memory at the peak of the first beyond that before, in MiB (Linux only).
    """

    result: T
    seconds: float
    fastest: float
    slowest: float
    cpu: float
    peak_mb: float | None

    @property
    def times(self) -> dict[str, float | None]:
        """As fields of a `BenchmarkRecord`."""
        return {
            "seconds": self.seconds,
            "fastest": self.fastest,
            "slowest": self.slowest,
            "cpu": self.cpu,
            "peak_mb": self.peak_mb,
        }


def measure(work: Callable[[], T], repeats: int = 1, enough: float = math.inf) -> Measurement[T]:
    """Do it several times, or for `enough` seconds, and look at the memory of the first."""
    before = _resident("VmRSS") if _forget_peak() else None
    taken, busy = [], []
    peak: float | None = None
    for k in range(repeats):
        start, before_cpu = time.perf_counter(), time.process_time()
        result = work()
        taken.append(time.perf_counter() - start)
        busy.append(time.process_time() - before_cpu)
        if k == 0 and before is not None:
            peak = max(0.0, _resident("VmHWM") - before)
        if sum(taken) >= enough:
            break
    median, cpu = statistics.median(taken), statistics.median(busy)
    return Measurement(result, median, min(taken), max(taken), cpu, peak)


def steady(work: Callable[[], object], repeats: int, long: float | None = None) -> dict[str, Any]:
    """Seconds of one call as fields of a record; each repetition calls it many times."""
    often = math.ceil(
        (MIN_SECONDS_MEASURED if long is None else long) / max(measure(work, 3).fastest, 1e-7)
    )

    def many() -> None:
        for _ in range(often):
            work()

    done = measure(many, repeats)
    return {
        "seconds": done.seconds / often,
        "fastest": done.fastest / often,
        "slowest": done.slowest / often,
    }


def _resident(field: str) -> float:
    """Resident memory of this process in MiB, now (VmRSS) or at its peak (VmHWM)."""
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) / 1024


def _forget_peak() -> bool:
    """Let VmHWM start from the present."""
    try:
        CLEAR.write_text("5")
    except OSError:
        return False
    return STATUS.exists()


def processor() -> str:
    """The name of the processor, and how many cores there are to use."""
    name = platform.processor() or platform.machine()
    if PROCESSORS.exists():
        lines = PROCESSORS.read_text("utf-8", "replace").splitlines()
        named = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
        name = named[0] if named else name
    cores = available_threads()
    return f"{name}, {cores} core{'s' if cores > 1 else ''}"


def machine() -> list[str]:
    """Lines that say what was measured on: processor, memory, system, versions."""
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    memory = ""
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        size = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        memory = f", {size / 2**30:.0f} GiB of memory"
    return [
        f"{processor()}{memory}; {platform.system()} {platform.release()}; "
        f"Python {platform.python_version()}, riskset {__version__}, {packages}; "
        f"{time.strftime('%Y-%m-%d')}."
    ]


def version(package: str) -> str:
    """The installed version of a package."""
    return importlib.metadata.version(package)
