"""The cache of a run: results of steps, found again by what they depend on, now or in a later run.

The key of a step is made of the settings that matter to it and of the keys of what it builds upon,
down to the contents of the files that were read. Its result is one file, which appears whole under
its name, so that a run that was killed goes on after the last step that it finished. The folder
holds data of single people and must not be shared.
"""

import dataclasses
import hashlib
import json
import shutil
import time
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np

from riskset._errors import InputError
from riskset._messages import Note, Sentence
from riskset._types import AnyArray
from riskset._version import __version__
from riskset.cohort.adjustments.adjustment import Step
from riskset.data.documents import DAMAGED_ARCHIVE
from riskset.data.writers import lock, replacing
from riskset.results.columns import ResultRow

__all__ = ["SPILL", "ResultT", "StepCache", "StepResult", "digest"]

FACTS = "facts"
SPILL = "spill"
"""The folder for what the embedded database cannot hold in memory."""
CONTENT = 13
"""Version of what steps store; a result of another version is computed again."""


@dataclass(frozen=True, eq=False, kw_only=True)
class StepResult:
    """The result of a step; each step has a class with further fields.

    Fields may be numbers, text and lists of them, arrays, mappings of text to arrays, rows of
    results (`ResultRow`), notes and steps of an attrition. The cache sets `key`, which identifies
    what the result depends on, and `step`, the name of the step. A `status` other than "ok" stops
    the run, and `reason` says why in a sentence.
    """

    step_name: ClassVar[str]

    def __init_subclass__(cls, step: str = "") -> None:
        cls.step_name = step

    key: str = ""
    step: str = ""
    status: str = "ok"
    reason: Sentence | None = None
    notes: tuple[Note, ...] = ()


ResultT = TypeVar("ResultT", bound=StepResult)


class StepCache:
    """The results of the steps of a run, in a folder that no other run may use.

    `times` has ``step``, ``what``, ``seconds`` and ``reused`` of every step of the run, once.
    `tell` is called with what a step was and its seconds when it has ended.
    """

    def __init__(
        self, folder: Path, tell: Callable[[str, float], None] = lambda what, seconds: None
    ) -> None:
        self._tell = tell
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
        shutil.rmtree(self.place(SPILL), ignore_errors=True)  # of a run that was killed
        self._known: set[str] = set()
        self._elsewhere: set[tuple[str, str]] = set()
        self.times: list[dict[str, object]] = []

    def close(self) -> None:
        """Let other runs have the folder."""
        self._lock.close()

    def place(self, name: str) -> Path:
        """A folder beside the results of the steps."""
        return self._folder / name

    def end(
        self,
        step: str,
        what: str,
        seconds: float,
        *,
        reused: bool,
        words: str = "",
        **facts: object,
    ) -> None:
        """Record the time of a step that keeps its result elsewhere; `words` are shown for it.

        `facts` are recorded with it.
        """
        if not reused:
            self._tell(f"{step} ({words or what})", seconds)
        if (step, what) not in self._elsewhere or not reused:
            self._elsewhere.add((step, what))
            self._record(step, what, seconds, reused, **facts)

    def _record(self, step: str, what: str, seconds: float, reused: bool, **facts: object) -> None:
        ended = {"step": step, "what": what, "seconds": round(seconds, 3), "reused": reused}
        self.times.append(ended | facts)

    def path(self, name: str, key: str) -> Path:
        """Where a step keeps a further file."""
        return self._folder / f"{name}-{key}"

    def load(self, kind: type[ResultT], key: str) -> ResultT:
        """The result of a step that this run has finished."""
        result = _load(self._place(kind.step_name, key), kind, key, kind.step_name)
        assert result is not None, "the cache was changed during the run"
        return result

    def _place(self, step: str, key: str) -> Path:
        return self.path(step.replace(" ", "-"), f"{key}.npz")

    def get_or_compute(
        self,
        kind: type[ResultT],
        what: str,
        depends_on: object,
        compute: Callable[[], ResultT],
        *,
        step: str = "",
    ) -> ResultT:
        """The result of a step, from the cache or computed and kept.

        `depends_on` is everything that the result depends on, as JSON can hold it; `what` is what
        the step is done for, for `times`; `step` is its name, where a class has results of several.
        """
        step = step or kind.step_name
        key = digest(step, depends_on)
        path = self._place(step, key)
        result = _load(path, kind, key, step)
        seconds, reused = 0.0, result is not None
        if result is None:
            started = time.perf_counter()
            result = dataclasses.replace(compute(), key=key, step=step)
            seconds = time.perf_counter() - started
            _save(path, result)
            self._tell(f"{step} ({what})", seconds)
        if key not in self._known:
            self._known.add(key)
            self._record(step, what, seconds, reused)
        return result

    def get_or_resume(
        self,
        kind: type[ResultT],
        what: str,
        depends_on: object,
        compute: Callable[[Path], ResultT],
    ) -> ResultT:
        """As `get_or_compute`, with a file for replicates of cross-validations that are done.

        A step that was stopped goes on with them; once it is finished they are deleted.
        """
        replicates = self.path("replicates", f"{digest(kind.step_name, depends_on)}.jsonl")
        result = self.get_or_compute(kind, what, depends_on, lambda: compute(replicates))
        for done in replicates.parent.glob(f"{replicates.stem}*"):
            done.unlink()
        return result


def digest(*parts: object) -> str:
    """A short name for what parts say, the same in every run of this version."""
    text = json.dumps([__version__, CONTENT, *parts], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def _save(path: Path, result: StepResult) -> None:
    facts: dict[str, object] = {}
    arrays: dict[str, AnyArray] = {}
    for field in dataclasses.fields(result):
        value = getattr(result, field.name)
        if isinstance(value, np.ndarray):
            arrays[field.name] = value
        elif isinstance(value, dict) and _holds_arrays(_hints(type(result))[field.name]):
            arrays |= {f"{field.name}.{name}": array for name, array in value.items()}
        else:
            facts[field.name] = _stored(value)
    text = json.dumps(facts, default=lambda value: value.item())  # numbers of NumPy
    with replacing(path) as (temporary,), temporary.open("wb") as file:
        content: dict[str, Any] = {FACTS: np.frombuffer(text.encode(), dtype=np.uint8), **arrays}
        np.savez(file, **content)


def _stored(value: object) -> object:
    """A value as JSON can hold it."""
    if isinstance(value, ResultRow):
        return {name: known for name, known in value.items() if known is not None}
    if isinstance(value, Note):
        return value.to_fields()
    if isinstance(value, Sentence):
        return value.to_list()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if isinstance(value, list | tuple):
        return [_stored(one) for one in value]
    return value


def _load(path: Path, kind: type[ResultT], key: str, step: str) -> ResultT | None:
    """None if there is no result, or none that can be read: then it is computed again."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            arrays: Mapping[str, AnyArray] = {name: stored[name] for name in stored.files}
        facts = json.loads(arrays[FACTS].tobytes())
    except DAMAGED_ARCHIVE:
        return None
    values: dict[str, Any] = {}
    for name, hint in _hints(kind).items():
        if name in facts:
            values[name] = _restored(facts[name], hint)
        elif name in arrays:
            values[name] = arrays[name]
        elif _holds_arrays(hint):
            start = f"{name}."
            values[name] = {
                other.removeprefix(start): array
                for other, array in arrays.items()
                if other.startswith(start)
            }
    return kind(**(values | {"key": key, "step": step}))


def _hints(kind: type[StepResult]) -> dict[str, Any]:
    hints = typing.get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


def _holds_arrays(hint: Any) -> bool:
    return typing.get_origin(hint) is dict and typing.get_args(hint)[1] == AnyArray


def _restored(value: Any, hint: Any) -> Any:
    """A value of a field from what JSON held."""
    if value is None:
        return None
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return _restored(value, next(one for one in inner if one is not type(None)))
    if origin in (list, tuple):
        return origin(_restored(one, inner[0]) for one in value)
    if isinstance(hint, type) and issubclass(hint, ResultRow):
        return hint.of(value)
    if hint is Note:
        return Note.from_fields(value)
    if hint is Sentence:
        return Sentence.from_list(value)
    return Step(**value) if hint is Step else value
