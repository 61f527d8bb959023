"""``riskset info``: what a report of a fault should mention."""

import importlib.metadata
import platform

from riskset._runtime import available_threads
from riskset._version import __version__
from riskset.cli.terminal import facts, output

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
    table.add_row("devices", "cpu")
    output().print(table)
