"""Objects that stay where they are made, one for each block of rows, and answer calls.

In processes of a Dask cluster they are actors: a call goes straight to the worker that has the
object. Its state lives there and nowhere else, so that it is gone with the worker.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from riskset._errors import RisksetError
from riskset.engine import dask_client, wait_for_worker

__all__ = ["Crew", "DaskCrew", "HomeCrew", "LostBlock"]


class LostBlock(RisksetError):  # noqa: N818  (as a fit sees it: it begins anew)
    """A worker is gone, and with it the blocks that it had."""


class Crew(Protocol):
    """The objects of all blocks."""

    n_blocks: int
    n_messages: int
    """Calls so far, of all blocks."""

    def call(self, method: str, *common: Any, each: Sequence[Any] | None = None) -> list[Any]:
        """Call a method of every object, with one of `each` before what is common to all."""

    def restore(self) -> int:
        """Make the objects anew that were lost with their process; how many these were."""


class HomeCrew:
    """Objects in this process, one after the other."""

    def __init__(
        self, make: Callable[[str, Any, int], Any], names: Sequence[str], items: Sequence[Any]
    ) -> None:
        self._objects = [make(name, item, 1) for name, item in zip(names, items, strict=True)]
        self.n_blocks, self.n_messages = len(items), 0

    def call(self, method: str, *common: Any, each: Sequence[Any] | None = None) -> list[Any]:
        """See `Crew`."""
        self.n_messages += self.n_blocks
        return [
            getattr(one, method)(*(() if each is None else (each[k],)), *common)
            for k, one in enumerate(self._objects)
        ]

    def restore(self) -> int:
        """See `Crew`: nothing is lost in this process."""
        return 0


class DaskCrew:
    """Objects in workers of Dask: of the current client, or of a cluster that is made here."""

    def __init__(
        self,
        make: Callable[[str, Any, int], Any],
        names: Sequence[str],
        items: Sequence[Any],
        n_workers: int,
        *,
        are_data: bool = False,
    ) -> None:
        self._client, self._close = dask_client(n_workers)
        self._make, self._names, self._items = make, names, items
        self._are_data = are_data
        self._futures: list[Any] = [None] * len(items)
        self._actors: list[Any] = [None] * len(items)
        self._where = [""] * len(items)
        self.n_blocks, self.n_messages = len(items), 0
        try:
            self.restore()
        except BaseException:
            self.close()
            raise

    @property
    def n_workers(self) -> int:
        """Workers that have blocks."""
        return len(set(self._where))

    def restore(self) -> int:
        """Make the objects that are missing, on the workers with fewest; how many these were."""
        wait_for_worker(self._client)
        threads = self._client.nthreads()
        there = [f is not None and f.status == "finished" for f in self._futures]
        load = Counter(dict.fromkeys(threads, 0))
        load.update(name for name, ok in zip(self._where, there, strict=True) if ok)
        missing = [k for k, ok in enumerate(there) if not ok]
        for k in missing:
            self._where[k] = where = min(sorted(threads), key=lambda name: load[name])
            load[where] += 1
            item = self._items[k]
            if self._are_data:  # too large for a message to the scheduler
                item = self._client.scatter(item, workers=[where], hash=False)
            self._futures[k] = self._client.submit(
                self._make, self._names[k], item, threads[where], actor=True, pure=False,
                workers=[where], allow_other_workers=False,
            )  # fmt: skip
        for k in missing:
            self._actors[k] = self._futures[k].result()
        return len(missing)

    def call(self, method: str, *common: Any, each: Sequence[Any] | None = None) -> list[Any]:
        """See `Crew`.

        Raises
        ------
        LostBlock
            If a worker is gone.
        """
        self.n_messages += self.n_blocks
        answers: list[Any] = []
        lost: tuple[int, Exception] | None = None
        for k, actor in enumerate(self._actors):
            try:
                first = () if each is None else (each[k],)
                answers.append(getattr(actor, method)(*first, *common))
            except RuntimeError as error:  # known to be gone
                lost = (k, error)
        out = []
        for k, answer in enumerate(answers):
            try:
                out.append(answer.result())
            except (OSError, RuntimeError) as error:
                # Dask has no exception for a lost worker; the objects raise others.
                if "Actor" not in str(error):
                    raise
                lost = (k, error)
        if lost is not None:
            k, cause = lost
            raise LostBlock(
                f"the worker {self._where[k]} is gone, and with it block {k} of the rows ({cause})."
            ) from cause
        return out

    def close(self) -> None:
        """Let go of the objects, and end what was started here."""
        self._actors, self._futures = [], []
        self._close()
