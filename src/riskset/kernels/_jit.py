"""The one way this package compiles a CPU kernel."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core import event, types

from riskset.kernels._compiling import CompilingNotice
from riskset.kernels._jit_cache import KernelCache

__all__ = ["CACHE", "NOTICE", "folder_of", "kernel"]

F = TypeVar("F", bound=Callable[..., object])

CACHE = os.environ.get("RISKSET_JIT_CACHE", "1") == "1"
"""Whether compiled kernels are kept on disk."""

OPTIONS: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "no_cfunc_wrapper": True,  # nothing in C calls kernels, and it takes a twentieth of the time
}

NOTICE = CompilingNotice()
"""What says that kernels are compiled; see `CompilingNotice`."""
event.register("numba:compile", NOTICE)  # type: ignore[no-untyped-call]


def kernel(function: F) -> F:
    """Compile `function` with numba, without the GIL, and keep its type.

    No ``fastmath``: it may reorder a sum, and risk-set sums are ordered on purpose. No
    ``parallel``: `Runtime.run` shares out chunks among threads, which compiles four times faster,
    is safe under any threading layer, and fixes the order of every sum.
    """
    compiled = numba.njit(**OPTIONS)(function)
    if not numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        _widen_literals(compiled)
        if CACHE:
            _keep(compiled, function)
    return cast(F, compiled)


def folder_of(compiled: Callable[..., object]) -> Path | None:
    """Where the compiled forms of a kernel are kept; None if they are not."""
    cache = getattr(compiled, "_cache", None)
    return Path(cache.cache_path) if isinstance(cache, KernelCache) else None


def _keep(compiled: Any, function: Callable[..., object]) -> None:
    try:
        compiled._cache = KernelCache(function)
    except RuntimeError:
        # Neither the package nor the user's cache folder can be written: compile every time.
        return


def _widen_literals(compiled: Any) -> None:
    """Compile a kernel that another one calls with ``0`` for any whole number.

    Types are inferred in rounds. A variable that begins at 0 is the literal 0 in the first round,
    and numba would compile everything that is called with it a second time, for nothing.
    """
    as_it_was = compiled.get_call_template

    def get_call_template(args: Sequence[Any], kws: Mapping[str, Any]) -> Any:
        widened = {name: _widened(kind) for name, kind in kws.items()}
        return as_it_was(tuple(_widened(kind) for kind in args), widened)

    compiled.get_call_template = get_call_template


def _widened(kind: Any) -> Any:
    return types.unliteral(kind)  # type: ignore[no-untyped-call]
