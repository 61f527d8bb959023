"""A progress bar on a terminal for work that takes more than two seconds; silent otherwise."""

import sys
import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

__all__ = ["PATIENCE", "ProgressBar", "time_left"]

PATIENCE = 2.0
"""Seconds of work before anything is shown."""


class ProgressBar:
    """A bar on standard error, for use in a ``with`` statement; `show` None: in a terminal only."""

    def __init__(self, title: str, show: bool | None) -> None:
        self._title = title
        self._is_wanted = sys.stderr.isatty() if show is None else bool(show)
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
        if self._bar is not None:
            self._bar.stop()

    def update(self, share: float, detail: str = "") -> None:
        """Move the bar to a share of the work, 0 to 1."""
        if not self._is_wanted or time.monotonic() - self._started < PATIENCE:
            return
        if self._bar is None:
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.fields[detail]}"),
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
