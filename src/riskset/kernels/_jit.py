"""The one way this package compiles a CPU kernel."""

import os
import time
from collections.abc import Callable
from typing import TypeVar, cast

import numba
from numba.core import event

__all__ = ["kernel", "when_compiling"]

F = TypeVar("F", bound=Callable[..., object])

CACHE = os.environ.get("RISKSET_JIT_CACHE", "1") == "1"


def kernel(function: F) -> F:
    """Compile `function` with numba, without the GIL, and keep its type.

    No ``fastmath``: it may reorder a sum, and risk-set sums are ordered on purpose. No
    ``parallel``: `Runtime.run` shares out chunks among threads, which compiles four times faster,
    is safe under any threading layer, and fixes the order of every sum.
    """
    try:
        compiled = numba.njit(cache=CACHE, nogil=True, error_model="numpy")(function)
    except RuntimeError:
        # Neither the package nor the user's cache folder can be written: compile every time.
        compiled = numba.njit(nogil=True, error_model="numpy")(function)
    return cast(F, compiled)


def when_compiling(tell: Callable[[], None], *, patience: float) -> None:
    """Call `tell` once, when kernels have been compiled for `patience` seconds.

    Kernels in numba's cache are loaded and not compiled, so then it is never called.
    """
    event.register("numba:compile", _Stopwatch(tell, patience))  # type: ignore[no-untyped-call]


class _Stopwatch(event.Listener):
    """Adds up the time of compilations; one may be inside another."""

    def __init__(self, tell: Callable[[], None], patience: float) -> None:
        self._tell: Callable[[], None] | None = tell
        self._patience = patience
        self._spent, self._started, self._depth = 0.0, 0.0, 0

    def on_start(self, event: object) -> None:
        now = time.monotonic()
        if self._depth == 0:
            self._started = now
        self._depth += 1
        if self._tell is not None and self._spent + now - self._started > self._patience:
            self._tell()
            self._tell = None

    def on_end(self, event: object) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._spent += time.monotonic() - self._started
