"""Work shared out among processes, of this machine or of several: joblib, Dask or Ray.

A task is written once to a folder that all workers see, a design to a file that they map into
memory; what is sent to a worker is a path and a number. A worker that dies costs what it was at,
which another one does again. What comes back has the bits of a run in one process.

Importing this module imports none of the three.
"""

import functools
import itertools
import logging
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar

from riskset._errors import InputError, MissingDependencyError, RisksetError
from riskset._runtime import one_blas_thread
from riskset._version import __version__
from riskset.data.design import Design

__all__ = ["ENGINES", "Workers", "check_engine", "dask_client", "wait_for_worker", "workers"]

S = TypeVar("S")
T = TypeVar("T")
Lost = tuple[type[BaseException], ...]

MAX_ATTEMPTS = 5
"""Times that a piece of work is given out before its workers' deaths are taken for its fault."""
MAX_WAIT_SECONDS = 60
"""Seconds to wait for the first worker of a cluster."""


class _Pool(Protocol):
    """What is asked of an engine."""

    n_workers: int
    lost: Lost
    """What the answer raises if its worker is gone."""
    attempts: int
    """Times that a piece of work is given out: few for an engine that itself does it again."""

    def submit(self, function: Callable[..., Any], *args: object) -> Any:
        """Begin a call; the handle of its answer."""

    def result(self, handle: Any) -> Any:
        """Wait for an answer."""

    def is_lost(self, handle: Any) -> bool:
        """Whether a call went down with a worker that had another one."""

    def cancel(self, handle: Any) -> None:
        """Forget a call, if that can be."""

    def close(self) -> None:
        """Give back what was started here."""


class Workers:
    """Processes that wait for work; made by `workers`."""

    def __init__(self, pool: _Pool, folder: Path) -> None:
        self._pool, self._folder = pool, folder
        self._number = itertools.count()
        self._designs: dict[int, tuple[Design, tuple[str, int]]] = {}

    @property
    def n_workers(self) -> int:
        """How many pieces of work are done at a time."""
        return self._pool.n_workers

    def map(self, task: Callable[[S], T], items: Sequence[S]) -> Iterator[T]:
        """``task(item)`` for each item, in order.

        A task must not use more than one thread, nor hold the workers.
        """
        place = self._written(task)

        def begin(item: S) -> Any:
            return self._pool.submit(_call, __version__, place, item)

        handles = [begin(item) for item in items]
        n_taken = 0
        try:
            for k, item in enumerate(items):
                for attempt in range(1, self._pool.attempts + 1):
                    try:
                        answer: T = self._pool.result(handles[k])
                        break
                    except self._pool.lost as error:
                        if attempt == self._pool.attempts:
                            raise RisksetError(
                                "worker after worker died at the same piece of work "
                                f"({type(error).__name__}: {error}).",
                                hint="they may have too little memory: use fewer of them.",
                            ) from error
                        handles[k] = begin(item)
                        for later in range(k + 1, len(items)):
                            if self._pool.is_lost(handles[later]):
                                handles[later] = begin(items[later])
                n_taken = k + 1
                yield answer
        finally:
            for handle in handles[n_taken:]:
                self._pool.cancel(handle)

    def _written(self, task: Callable[..., Any]) -> str:
        """The file of a task; its designs stay in files of their own."""
        import cloudpickle

        known = self._placed

        class Pickler(cloudpickle.CloudPickler):  # type: ignore[misc]
            def persistent_id(self, obj: object) -> object:
                return known(obj) if isinstance(obj, Design) else None

        place = self._folder / f"{next(self._number)}.task"
        with place.open("wb") as stream:
            Pickler(stream).dump(task)
        return str(place)

    def _placed(self, design: Design) -> tuple[str, int]:
        """Path and checksum of a design, which is written if it is in memory."""
        if design.source is not None:
            return design.source
        if id(design) not in self._designs:
            path = self._folder / f"{next(self._number)}.rsd"
            design.save(path)
            stored = Design.open(path, verify=False)
            assert stored.source is not None
            # The design too, so that no other one takes its number.
            self._designs[id(design)] = (design, stored.source)
        return self._designs[id(design)][1]


# ------------------------------------------------------------------------------- in the workers


@one_blas_thread
def _call(version: str, place: str, item: object) -> Any:
    if version != __version__:
        raise InputError(
            f"a worker has riskset {__version__}, but the work comes from riskset {version}.",
            hint="install the same version everywhere.",
        )
    return _task(place)(item)


@functools.lru_cache(maxsize=1)
def _task(place: str) -> Callable[[Any], Any]:
    import pickle

    class Unpickler(pickle.Unpickler):
        def persistent_load(self, pid: Any) -> Design:
            return _design(*pid)

    try:
        with open(place, "rb") as stream:
            task: Callable[[Any], Any] = Unpickler(stream).load()
    except FileNotFoundError:
        raise InputError(
            f"a worker does not see the file {place!r}.",
            hint="on several machines, set TMPDIR to a folder that all of them share.",
        ) from None
    return task


@functools.lru_cache(maxsize=4)
def _design(path: str, checksum: int) -> Design:
    design = Design.open(path, verify=False)
    if design.source != (path, checksum):
        raise InputError(f"{path!r} holds another design than it did.", hint="start the run again.")
    return design


# ------------------------------------------------------------------------------- the engines


class _Joblib:
    """Processes of this machine, those of joblib's own backend."""

    def __init__(self, n_threads: int) -> None:
        self.n_workers, self.attempts = n_threads, MAX_ATTEMPTS
        self.lost: Lost = (BrokenProcessPool,)

    def submit(self, function: Callable[..., Any], *args: object) -> Any:
        from joblib.externals.loky import get_reusable_executor

        return get_reusable_executor(max_workers=self.n_workers).submit(function, *args)

    def result(self, handle: Any) -> Any:
        return handle.result()

    def is_lost(self, handle: Any) -> bool:
        return handle.done() and isinstance(handle.exception(), self.lost)

    def cancel(self, handle: Any) -> None:
        handle.cancel()

    def close(self) -> None:
        """The processes wait for more, and end after five minutes."""


class _Dask:
    """The current Dask client, that of a scheduler named in Dask's settings, or a local cluster."""

    def __init__(self, n_threads: int) -> None:
        self._client, self.close = dask_client(n_threads)
        import distributed

        self.n_workers = sum(self._client.nthreads().values())
        self.lost: Lost = (CancelledError, distributed.KilledWorker)
        self.attempts = 2  # work that only stood in line where others died counts as killed too

    def submit(self, function: Callable[..., Any], *args: object) -> Any:
        return self._client.submit(function, *args, pure=False)

    def result(self, handle: Any) -> Any:
        return handle.result()

    def is_lost(self, handle: Any) -> bool:
        return False  # Dask does these again by itself

    def cancel(self, handle: Any) -> None:
        handle.release()


def dask_client(n_workers: int) -> tuple[Any, Callable[[], None]]:
    """A client of Dask, with at least one worker, and what gives back what was started for it.

    The current one; else of the scheduler named in Dask's settings; else of a local cluster.
    """
    try:
        import dask
        import distributed
    except ImportError:
        raise _missing("dask", "dask and distributed") from None
    opened = ExitStack()
    try:
        client = distributed.default_client()
    except ValueError:
        cluster = None
        if not dask.config.get("scheduler-address", None):
            cluster = opened.enter_context(
                distributed.LocalCluster(
                    n_workers=n_workers, threads_per_worker=1, dashboard_address=":0"
                )
            )
        client = opened.enter_context(distributed.Client(cluster))
    try:
        wait_for_worker(client)
    except RisksetError:
        opened.close()
        raise
    return client, opened.close


def wait_for_worker(client: Any) -> None:
    """Wait until a client of Dask has at least one worker."""
    try:
        client.wait_for_workers(1, timeout=MAX_WAIT_SECONDS)
    except TimeoutError:
        raise RisksetError(
            f"the Dask cluster has had no worker for {MAX_WAIT_SECONDS} seconds.",
            hint="start some.",
        ) from None


class _Ray:
    """The Ray that runs, or one of this machine."""

    def __init__(self, n_threads: int) -> None:
        try:
            import ray
        except ImportError:
            raise _missing("ray", "ray") from None
        self._ray = ray
        self._is_ours = not ray.is_initialized()
        if self._is_ours:
            cpus = None if "RAY_ADDRESS" in os.environ else n_threads
            ray.init(num_cpus=cpus, include_dashboard=False, logging_level=logging.ERROR)
        self._remote, self.attempts = ray.remote(max_retries=MAX_ATTEMPTS - 1)(_call), 1
        self.n_workers = max(1, int(ray.cluster_resources().get("CPU", 1)))
        self.lost: Lost = (ray.exceptions.WorkerCrashedError, ray.exceptions.NodeDiedError)

    def submit(self, function: Callable[..., Any], *args: object) -> Any:
        assert function is _call
        return self._remote.remote(*args)

    def result(self, handle: Any) -> Any:
        try:
            return self._ray.get(handle)
        except self._ray.exceptions.RayTaskError as error:
            raise error.cause or error from None

    def is_lost(self, handle: Any) -> bool:
        return False  # so does Ray

    def cancel(self, handle: Any) -> None:
        """What waits will not find its task; ray.cancel may abort this process (Ray 2.60)."""

    def close(self) -> None:
        if self._is_ours:
            self._ray.shutdown()


ENGINES: dict[str, Callable[[int], _Pool]] = {"joblib": _Joblib, "dask": _Dask, "ray": _Ray}


def _missing(extra: str, packages: str) -> MissingDependencyError:
    return MissingDependencyError(
        f"`engine={extra!r}` needs {packages}.", hint=f'pip install "riskset[{extra}]".'
    )


def check_engine(name: object) -> None:
    """Refuse an engine that is none of those there are."""
    if name is not None and name not in ENGINES:
        raise InputError.wrong_option("engine", name, ("None", *ENGINES))


@contextmanager
def workers(name: str | None, n_threads: int) -> Iterator[Workers | None]:
    """The workers of an engine, of which `n_threads` are started where none are running.

    None stands for threads of this process.
    """
    check_engine(name)
    if name is None:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="riskset-", ignore_cleanup_errors=True) as folder:
        pool = ENGINES[name](n_threads)
        try:
            yield Workers(pool, Path(folder))
        finally:
            pool.close()
