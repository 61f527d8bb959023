"""Device and threads: decided once, frozen, passed along; never global."""

import functools
import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import ParamSpec, TypeVar

import scipy.linalg  # noqa: F401  (its own BLAS is loaded before they are counted)
from threadpoolctl import ThreadpoolController

from riskset._errors import InputError

__all__ = ["Runtime", "available_memory", "available_threads", "one_blas_thread"]

P = ParamSpec("P")
T = TypeVar("T")
S = TypeVar("S")


def available_threads() -> int:
    """Number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


MEMORY_LIMITS = (
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
)
"""Where Linux says what a container may use: of control groups, version 2 and version 1."""


def available_memory() -> int | None:
    """Bytes of memory that this process may use: the machine's, or those of its container.

    None where the system does not say.
    """
    known = []
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        known.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for place in map(Path, MEMORY_LIMITS):
        written = place.read_text("ascii").strip() if place.is_file() else ""
        known += [int(written)] if written.isdigit() else []  # "max" where there is no limit
    return min(known, default=None)


@functools.cache
def _blas(process: int) -> ThreadpoolController:
    return ThreadpoolController()


def one_blas_thread(function: Callable[P, T]) -> Callable[P, T]:
    """Call `function` with one thread for linear algebra.

    Our products are many and small: threads of a BLAS cost more than they gain, wait for each other
    on a busy machine, and make the last bits depend on the number of cores.
    """

    @functools.wraps(function)
    def alone(*args: P.args, **kwargs: P.kwargs) -> T:
        with _blas(os.getpid()).limit(limits=1, user_api="blas"):
            return function(*args, **kwargs)

    return alone


class _Thread(threading.local):
    """The thread that asks."""

    is_worker = False
    """Whether it belongs to a pool."""


_THREAD = _Thread()


def _begin_worker() -> None:
    _THREAD.is_worker = True


@functools.cache
def _pool(process: int, n_workers: int) -> ThreadPoolExecutor:
    # Keyed by process: threads do not survive a fork, and a child must not wait for them.
    name = f"riskset-{process}"
    return ThreadPoolExecutor(n_workers, thread_name_prefix=name, initializer=_begin_worker)


@dataclass(frozen=True)
class Runtime:
    """Where kernels run: on `n_threads`, on which no result depends, and on a `device`.

    The device is "cpu", "cuda" or "auto": on a GPU, if there is one and it is faster.
    """

    n_threads: int
    device: str = "cpu"

    @classmethod
    def select(cls, device: str = "auto", n_threads: int | None = None) -> "Runtime":
        """Decide once, from what the user asked for."""
        if device not in ("auto", "cpu", "cuda"):
            raise InputError(
                f"`device` must be 'auto', 'cpu' or 'cuda', but it is {device!r}.",
                hint="leave it out to let riskset choose.",
            )
        if n_threads is None:
            return cls(available_threads(), device)
        if isinstance(n_threads, bool) or int(n_threads) != n_threads or n_threads < 1:
            raise InputError(
                f"`n_threads` must be a whole number of at least 1, but it is {n_threads!r}.",
                hint="leave it out to use every core.",
            )
        return cls(int(n_threads), device)

    def run(self, kernel: Callable[..., object], n_chunks: int, *args: object) -> None:
        """Call ``kernel(first, last, *args)`` over the chunks, shared out among the threads.

        The kernel must release the GIL and write each chunk's results to its own place.
        """
        n_shares = self._n_shares(n_chunks)
        if n_shares <= 1:
            kernel(0, n_chunks, *args)
            return
        edges = [n_chunks * s // n_shares for s in range(n_shares + 1)]
        pool = _pool(os.getpid(), self.n_threads)
        shares = [pool.submit(kernel, edges[s], edges[s + 1], *args) for s in range(1, n_shares)]
        kernel(edges[0], edges[1], *args)
        wait(shares)
        for share in shares:
            share.result()

    @one_blas_thread
    def map(self, task: Callable[[S], T], items: Iterable[S]) -> list[T]:
        """``[task(item), ...]``, the tasks shared out among the threads as they become free.

        What a task shares out itself runs in the thread of the task.
        """
        items = list(items)
        if self._n_shares(len(items)) <= 1:
            return [task(item) for item in items]
        return list(_pool(os.getpid(), self.n_threads).map(task, items))

    def _n_shares(self, n_parts: int) -> int:
        """Threads to share out parts of work among."""
        # A worker that waited for others of its pool would wait for ever if all of them did.
        return 1 if _THREAD.is_worker else min(self.n_threads, n_parts)
