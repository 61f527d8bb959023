"""``riskset info``: what a report of a fault should mention."""

import importlib.metadata
import platform

from rich.markup import escape

from riskset._runtime import available_threads
from riskset._version import __version__
from riskset.cli.terminal import facts, output
from riskset.kernels.cuda import device

__all__ = ["info"]

PACKAGES = ("numpy", "scipy", "numba", "scikit-learn", "narwhals", "pyarrow", "duckdb")


def info() -> None:
    """Print versions, threads and devices."""
    table = facts()
    table.add_row("riskset", __version__)
    table.add_row("Python", f"{platform.python_version()} on {platform.platform(terse=True)}")
    for package in PACKAGES:
        table.add_row(package, importlib.metadata.version(package))
    table.add_row("threads", str(available_threads()))
    table.add_row(
        "devices", ", ".join(["cpu", *(["cuda"] if device.why_no_device() is None else [])])
    )
    table.add_row("GPU", _gpu())
    output().print(table)


def _gpu() -> str:
    reason = device.why_no_device()
    if reason is not None:
        return escape(f"not used: {reason}")
    memory = device.open_device().memory()
    return (
        f"{device.device_name()}, {memory.free / 1e9:.1f} of {memory.total / 1e9:.1f} GB free; "
        f"by default used for designs of at least {device.MIN_DESIGN_BYTES / 1e6:.0f} MB"
    )
