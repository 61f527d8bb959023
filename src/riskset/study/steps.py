"""Steps of a study that are done once: found again by what they depend on, in this run or a later.

A step's key is made of the settings that matter to it and of the keys of what it builds upon, down
to the contents of the files that were read. Its result is one file, which appears whole under its
name, so that a run that was killed goes on after the last step that it finished. The folder holds
data of single people; nothing in it is meant to be shared.
"""

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from riskset._errors import InputError
from riskset._types import AnyArray
from riskset._version import __version__
from riskset.data.documents import DAMAGED_ARCHIVE, checksum
from riskset.data.writers import lock, replacing

__all__ = ["Result", "Steps", "digest", "fingerprint"]

FACTS = "facts"
CONTENT = 8
"""What steps store; older stores are done again."""


@dataclass(frozen=True, eq=False)
class Result:
    """What a step found.

    Attributes
    ----------
    facts : dict
        What JSON can hold, infinities and NaN included.
    arrays : dict of arrays
        Of numbers or text.
    key : str
        What it depends on; the store sets it.
    """

    facts: dict[str, Any]
    arrays: dict[str, AnyArray] = field(default_factory=dict)
    key: str = ""


class Steps:
    """The store of a run, and how long each step took.

    Parameters
    ----------
    folder : Path
        Made if it is absent.

    Raises
    ------
    InputError
        If another run has the folder.

    Attributes
    ----------
    times : list of dict
        ``step``, ``what``, ``seconds``, ``reused`` of every step that was asked for, once.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = (folder / ".lock").open("ab")
        busy = InputError(
            f"another run writes into {str(folder.parent)!r}.",
            hint="wait until it has ended, or name another folder.",
        )
        try:
            lock(self._lock, busy)
        except InputError:
            self.close()
            raise
        for suffix in (".npz", ".rsd"):  # of a run that was killed
            for unfinished in folder.glob(f".*{suffix}"):
                unfinished.unlink()
        self._folder = folder
        self._known: set[str] = set()
        self.times: list[dict[str, object]] = []

    def close(self) -> None:
        """Let other runs have the folder."""
        self._lock.close()

    def path(self, name: str, key: str) -> Path:
        """Where a step keeps a file of its own."""
        return self._folder / f"{name}-{key}"

    def again(self, step: str, key: str) -> Result:
        """The result of a step that this run has done, from the store."""
        found = _load(self._place(step, key), key)
        assert found is not None, "the store was changed during the run"
        return found

    def _place(self, step: str, key: str) -> Path:
        return self.path(step.replace(" ", "-"), f"{key}.npz")

    def do(self, step: str, what: str, key: object, compute: Callable[[], Result]) -> Result:
        """The result of a step, from the store or computed and stored.

        Parameters
        ----------
        step : str
            Its kind, such as "propensity score".
        what : str
            What it is done for, for the record of times.
        key : object
            Everything that its result depends on, as JSON can hold it.
        compute : callable
        """
        own = digest(step, key)
        path = self._place(step, own)
        found = _load(path, own)
        reused = found is not None
        if found is None:
            started = time.perf_counter()
            made = compute()
            seconds = time.perf_counter() - started
            found = Result(made.facts, made.arrays, own)
            _save(path, found)
        if own not in self._known:
            self._known.add(own)
            seconds = 0.0 if reused else seconds
            self.times.append(
                {"step": step, "what": what, "seconds": round(seconds, 3), "reused": reused}
            )
        return found


def digest(*parts: object) -> str:
    """A short name for what parts say, the same in every run of this version."""
    text = json.dumps([__version__, CONTENT, *parts], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def fingerprint(path: Path) -> str:
    """SHA-256 of a file's contents."""
    return checksum(path)


def _save(path: Path, result: Result) -> None:
    text = json.dumps(result.facts, default=lambda value: value.item())  # numbers of NumPy
    facts = np.frombuffer(text.encode(), dtype=np.uint8)
    assert FACTS not in result.arrays
    with replacing(path) as (temporary,), temporary.open("wb") as file:
        arrays: dict[str, Any] = {FACTS: facts, **result.arrays}
        np.savez(file, **arrays)


def _load(path: Path, key: str) -> Result | None:
    """None if there is nothing, or nothing that can be read: then it is done again."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            arrays: Mapping[str, AnyArray] = {name: stored[name] for name in stored.files}
        facts = json.loads(arrays[FACTS].tobytes())
    except DAMAGED_ARCHIVE:
        return None
    return Result(facts, {name: a for name, a in arrays.items() if name != FACTS}, key)
