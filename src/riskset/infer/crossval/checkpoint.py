"""A file that keeps every replicate that is done, so that work which was cut off goes on.

Its first line says what it belongs to, each further line holds one replicate. Lines are appended
whole, so that an interrupt costs at most the replicates then in flight. A replicate is used again
only if its rows, its penalty and the solution it started from are the same to the last bit: what
comes of a resumed run is what would have come of one run. The file is locked while a run has it.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from io import FileIO
from pathlib import Path
from typing import Self

import numpy as np

from riskset._errors import InputError
from riskset._runtime import Runtime
from riskset._types import AnyArray
from riskset._version import __version__
from riskset.data.design import Design
from riskset.data.documents import parse_json, sealed, unsealed
from riskset.data.outcome import Outcome
from riskset.data.writers import check_target, lock
from riskset.infer.crossval.scores import ReplicateScore, Scorer
from riskset.solve.optimality import Problem

__all__ = ["Checkpoint", "CheckpointError", "digest", "fingerprint"]

FORMAT = "riskset-checkpoint"
FORMAT_VERSION = 3


class CheckpointError(InputError):
    """A file that is not a checkpoint of this run, or cannot be used."""


def digest(*parts: AnyArray | str | float | bool | None) -> str:
    """A short name of arrays and values, different for all that differ."""
    found = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray) and part.dtype != object:
            found.update(f"{part.dtype.str}{part.shape}".encode())
            found.update(np.ascontiguousarray(part).tobytes())
        else:
            text = repr(part.tolist() if isinstance(part, np.ndarray) else part).encode()
            found.update(f"{len(text)}:".encode() + text)
    return found.hexdigest()[:32]


def fingerprint(problem: Problem, scorer: Scorer, tol: float, max_iter: int) -> dict[str, str]:
    """What replicates depend on, apart from their penalty."""
    loss = problem.loss
    likelihood: tuple[AnyArray, ...] = ()
    if loss.censoring is not None:
        likelihood = (loss.censoring.own, loss.censoring.at_events)
    return {
        "data": digest(
            _of_design(problem.design, loss.runtime), _of_outcome(loss.outcome), *likelihood
        ),
        "folds": digest(scorer.folds.assigned),
        "settings": digest(
            __version__,
            type(loss).__name__,
            loss.efron,
            scorer.score,
            scorer.censoring,
            float(tol),
            int(max_iter),
        ),
    }


def _of_design(design: Design, runtime: Runtime) -> str:
    # A random number for each row: any value that changes or moves changes a column's sum.
    probe = np.random.default_rng(20240229).standard_normal(design.n_rows)
    sums = design.cross(probe, runtime=runtime)
    return digest(",".join(map(repr, design.names)), design.center, design.scale, sums)


def _of_outcome(outcome: Outcome) -> str:
    return digest(
        outcome.time,
        outcome.event,
        int(outcome.cause),
        outcome.entry,
        outcome.weight,
        outcome.offset,
        outcome.stratum,
    )


class Checkpoint:
    """Replicates that are done, in memory and in a file, which is locked until `close`.

    Without a path it is in memory only; an empty file counts as a new one. `belongs_to` is the
    `fingerprint` of the run. CheckpointError if the file is something else, is damaged, is in use,
    or belongs to other data, folds or settings.
    """

    def __init__(
        self, path: str | os.PathLike[str] | None, belongs_to: Mapping[str, str] | None = None
    ) -> None:
        self._records: dict[tuple[str, int], ReplicateScore] = {}
        self._stream: FileIO | None = None
        if path is None:
            return
        path = Path(path)
        check_target(path)
        head = sealed({"format": FORMAT, "version": FORMAT_VERSION, **(belongs_to or {})})
        self._stream = open(path, "a+b", buffering=0)  # noqa: SIM115 - open until `close`
        try:
            busy = CheckpointError(
                f"`checkpoint` {path.name!r} is in use by another run.",
                hint="wait until that run has ended, or name another file for this one.",
            )
            lock(self._stream, busy)
            self._read(self._stream, path, head)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let another run have the file."""
        if self._stream is not None:
            self._stream.close()

    def _read(self, stream: FileIO, path: Path, head: Mapping[str, object]) -> None:
        stream.seek(0)
        content = stream.read()
        if not content:
            stream.write((json.dumps(head) + "\n").encode())
            return
        whole = content.rfind(b"\n") + 1
        lines = content[:whole].splitlines()
        self._check_head(path, lines, head)
        for number, line in enumerate(lines[1:], start=2):
            try:
                record = unsealed(parse_json(line))
                name = record.pop("key"), record.pop("replicate")
                self._records[name] = ReplicateScore.read(record)
            except (ValueError, KeyError, TypeError, AttributeError):
                raise CheckpointError(
                    f"{path.name} is damaged: line {number:,} is not a replicate.",
                    hint="delete that line and those after it, or the file.",
                ) from None
        if whole < len(content):  # a line that was cut off
            stream.truncate(whole)

    def _check_head(self, path: Path, lines: list[bytes], head: Mapping[str, object]) -> None:
        try:
            found = unsealed(parse_json(lines[0]))
            is_ours = found["format"] == FORMAT and found["version"] == FORMAT_VERSION
        except (ValueError, KeyError, TypeError, IndexError):
            is_ours = False
        if not is_ours:
            raise CheckpointError(
                f"`checkpoint` {path.name!r} is not a checkpoint of this version of riskset.",
                hint="name a file that does not exist yet.",
            )
        differ = [name for name in ("data", "folds", "settings") if found.get(name) != head[name]]
        if differ:
            words = {
                "data": "other data",
                "folds": "other folds",
                "settings": "other settings (score, censoring, ties, tolerance) or version",
            }
            raise CheckpointError(
                f"`checkpoint` {path.name!r} belongs to {' and '.join(words[d] for d in differ)}.",
                hint="name another file, or delete this one to start afresh.",
            )

    def get(self, key: str, replicate: int) -> ReplicateScore | None:
        """A replicate that was done before."""
        return self._records.get((key, replicate))

    def add(self, key: str, replicate: int, score: ReplicateScore) -> None:
        """Keep a replicate; when this returns, an interrupt cannot lose it."""
        self._records[key, replicate] = score
        if self._stream is None:
            return
        record = {"key": key, "replicate": replicate, **score._asdict()}
        line = json.dumps(sealed(record)) + "\n"
        self._stream.write(line.encode())
