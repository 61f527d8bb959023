"""A progress bar for work of more than two seconds on a terminal, or a line for each step."""

import sys
import time
from types import TracebackType
from typing import Literal, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

__all__ = ["PATIENCE", "ProgressBar", "time_left"]

PATIENCE = 2.0
"""Seconds of work before anything is shown."""


class ProgressBar:
    """A bar on standard error, for use in a ``with`` statement; `show` None: in a terminal only.

    With ``"steps"`` there is no bar: each step that ends is a line.
    """

    def __init__(self, title: str, show: bool | Literal["steps"] | None) -> None:
        self._title = title
        self._is_wanted = sys.stderr.isatty() if show is None else show is True
        self._has_steps = show == "steps"
        self._started = time.monotonic()
        self._bar: Progress | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Take the bar away; it comes again with the next update."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def end_step(self, what: str, seconds: float) -> None:
        """Say that a step has ended, and how long it took."""
        if self._has_steps:
            print(f"{self._title}: {what}, {seconds:.1f} s", file=sys.stderr, flush=True)

    def update(self, share: float, detail: str = "") -> None:
        """Move the bar to a share of the work, 0 to 1."""
        if not self._is_wanted or time.monotonic() - self._started < PATIENCE:
            return
        if self._bar is None:
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.fields[detail]}", markup=False),
                TimeElapsedColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._bar.add_task(self._title, total=1.0, detail=detail)
            self._bar.start()
        self._bar.update(self._bar.task_ids[0], completed=share, detail=detail)


def time_left(started: float, share: float) -> str:
    """Minutes and seconds until all is done, if it goes on as since `started` (monotonic)."""
    seconds = (time.monotonic() - started) * (1 - share) / share
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes}:{seconds:02d}"
