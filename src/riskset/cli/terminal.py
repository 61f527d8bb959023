"""What the command line says, on standard output and standard error, 80 columns wide at most."""

import math
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, TextIO

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from riskset._messages import spoken
from riskset.cli.wording import COMMAND_LINE

__all__ = [
    "facts",
    "fail",
    "hush_compiling",
    "output",
    "plain_number",
    "plain_table",
    "progress_of",
    "ratio",
    "short",
    "spelled_warnings",
    "warn",
]

WIDTH = 80


def _console(stream: TextIO) -> Console:
    # Made anew for each use, because a caller may have replaced sys.stdout in between.
    # Without emoji, into which rich turns ":100:" of a name such as "matched 1:100".
    console = Console(file=stream, highlight=False, soft_wrap=False, emoji=False)
    console.width = min(console.width, WIDTH)
    return console


def output(least: int = 0) -> Console:
    """Standard output; `least` columns wide even where the terminal is not."""
    console = _console(sys.stdout)
    console.width = max(console.width, least)
    return console


def fail(message: str) -> None:
    """One error message on standard error, unwrapped so that programs can read it."""
    _console(sys.stderr).print(f"[bold red]Error:[/] {escape(message)}", soft_wrap=True)


def warn(message: str) -> None:
    """One warning on standard error."""
    _console(sys.stderr).print(f"[bold yellow]Warning:[/] {escape(message)}", soft_wrap=True)


def hush_compiling(is_quiet: bool) -> None:
    """With `--quiet`, do not say on a terminal that kernels are compiled."""
    if is_quiet:
        # Here, because it brings numba.
        from riskset.kernels._jit import NOTICE

        NOTICE.is_wanted = False


def progress_of(is_quiet: bool) -> bool | Literal["steps"] | None:
    """A bar on a terminal, lines where standard error is redirected, nothing with `--quiet`."""
    if is_quiet:
        return False
    return None if sys.stderr.isatty() else "steps"


@contextmanager
def spelled_warnings() -> Iterator[None]:
    """Warnings of the package in its own words, without file names and line numbers."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)

        def show(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            warn(spoken(message, COMMAND_LINE))

        warnings.showwarning = show
        yield


def facts() -> Table:
    """A table of two columns without lines: what, and its value."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    return table


def plain_table() -> Table:
    """A table with a line under its head and no others."""
    return Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1))


def ratio(log_ratio: float) -> str:
    """A hazard ratio, from its logarithm."""
    value = math.inf if log_ratio > 700 else math.exp(log_ratio)
    return f"{value:.3f}" if 0.01 <= value < 1000 else plain_number(value, 3)


def plain_number(value: float, digits: int = 4) -> str:
    """A number as a reader writes it, with `digits` significant: 0.1570, 1,235, 3.210e-09, inf."""
    if value != value:
        return ""
    if value == 0 or abs(value) == float("inf"):
        return f"{value:g}"
    if not 1e-4 <= abs(value) < 1e7:
        return f"{value:.{digits - 1}e}"
    decimals = digits - 1 - math.floor(math.log10(abs(value)))
    return f"{value:,.{max(0, decimals)}f}"


def short(text: str, limit: int) -> str:
    """A name cut to at most `limit` characters, free of markup."""
    return escape(text if len(text) <= limit else text[: limit - 3] + "...")
