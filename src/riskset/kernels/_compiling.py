"""One line on a terminal when kernels have to be compiled, which takes seconds."""

import sys
import time

from numba.core import event

__all__ = ["CompilingNotice"]

PATIENCE = 1.0
"""Seconds of compiling before anything is said."""
TEXT = "riskset compiles its kernels for this machine. Later runs load them."


class CompilingNotice(event.Listener):
    """Says once on standard error that kernels of this package are compiled.

    It is said on a terminal or in a notebook, once `PATIENCE` seconds have passed. Kernels that are
    loaded from the cache are not compiled, so then nothing is said.
    """

    def __init__(self) -> None:
        self.is_wanted = True
        """Whether it may still be said."""
        self._spent, self._started, self._depth = 0.0, 0.0, 0

    # numba holds a lock while it compiles, so that only one thread is here.
    def on_start(self, event: event.Event) -> None:
        if self._depth == 0:
            function = event.data["dispatcher"].py_func
            if not str(function.__module__).startswith("riskset."):
                return
            self._started = time.monotonic()
        self._depth += 1
        self._say()

    def on_end(self, event: event.Event) -> None:
        if self._depth == 0:
            return
        self._say()
        self._depth -= 1
        if self._depth == 0:
            self._spent += time.monotonic() - self._started

    def _say(self) -> None:
        if self._spent + time.monotonic() - self._started < PATIENCE:
            return
        if self.is_wanted and _is_watched():
            print(TEXT, file=sys.stderr, flush=True)
        self.is_wanted = False


def _is_watched() -> bool:
    """Whether somebody sees standard error while it is written: in a terminal or a notebook."""
    return sys.stderr.isatty() or type(sys.stderr).__module__.startswith("ipykernel.")
