"""The one way this package compiles a CPU kernel."""

import os
from collections.abc import Callable
from typing import TypeVar, cast

import numba

__all__ = ["kernel"]

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
