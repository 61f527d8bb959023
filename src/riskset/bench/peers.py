"""Other programs that fit the same models: which are here, what they can do, and their answers.

Each runs in a separate process, with a limit of time and of memory, so that none of them can end
the experiment; a failure is a line of the table. Arrays travel in files.
"""

import json
import operator
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from riskset._types import AnyArray, Features, Rows
from riskset.bench.case import Case, penalty_of
from riskset.bench.record import BenchmarkRecord

__all__ = ["OFFERS", "PEERS", "Absent", "Computed", "Peer", "Peers"]

HERE = Path(__file__).parent / "peer_scripts"
MEMORY_SHARE = 0.8
"""Of the machine's memory, which a peer may use."""
MAX_TABLE_SHARE = 0.2
"""Of it for a dense table, of which programs make copies."""


@dataclass(frozen=True)
class Peer:
    """What another program can do.

    Attributes
    ----------
    language : "Python" or "R"
    models : tuple of str
    penalties : tuple of str
        "l1", "l2", "net" (both), "none".
    selects : bool
        Whether it chooses the penalty by cross-validation with a held-out likelihood.
    threads : bool
        Whether a fit can use several.
    offers : tuple of str
        What else it can, of `OFFERS`.
    values : tuple of str
        What it computes besides fits; see `Peers.values`.
    is_sparse : bool
        Whether it takes a sparse matrix; otherwise the table is made dense.
    """

    language: str
    models: tuple[str, ...] = ("cox",)
    penalties: tuple[str, ...] = ("l1", "none")
    selects: bool = False
    threads: bool = False
    offers: tuple[str, ...] = ("breslow",)
    values: tuple[str, ...] = ()
    is_sparse: bool = True

    def refuses(
        self, model: str, l1: float | None, l2: float = 0.0, needs: Iterable[str] = ()
    ) -> str | None:
        """Why it cannot do this, if so; `l1` None is a selection, `needs` are of `OFFERS`."""
        missing = [need for need in needs if need not in self.offers]
        if missing:
            return f"has no {OFFERS[missing[0]]}"
        if model not in self.models:
            return "has no Fine-Gray model" if model == "finegray" else "has no Cox model"
        if l1 is None:
            return None if self.selects else "selects no penalty by held-out likelihood"
        if l1 == 0 and l2 == 0:
            return None if "none" in self.penalties else "always penalises"
        kind = "l1" if l2 == 0 else "net" if l1 > 0 else "l2"
        return None if kind in self.penalties else f"has no {PENALTY_NAMES[kind]} penalty"


OFFERS: Mapping[str, str] = {
    "paths": "paths",
    "breslow": "method of Breslow for ties",
    "efron": "method of Efron for ties",
    "late": "late entry",
    "errors": "standard errors",
    "robust": "robust standard errors",
}
PENALTY_NAMES = {"l1": "L1", "l2": "L2", "net": "elastic net"}

PEERS: Mapping[str, Peer] = {
    "scikit-survival": Peer(
        "Python",
        penalties=("l1", "net", "none"),
        offers=("paths", "breslow", "efron"),
        values=("concordance", "kaplan-meier"),
        is_sparse=False,
    ),
    "skglm": Peer("Python", penalties=("l1",)),
    "adelie": Peer(
        "Python",
        penalties=("l1", "l2", "net", "none"),
        threads=True,
        offers=("paths", "breslow", "efron", "late"),
    ),
    "lifelines": Peer(
        "Python",
        offers=("efron", "late", "errors", "robust"),
        values=("concordance", "kaplan-meier", "survival"),
        is_sparse=False,
    ),
    "statsmodels": Peer("Python", offers=("breslow", "efron", "late", "errors"), is_sparse=False),
    "glmnet": Peer("R", penalties=("l1", "l2", "net"), offers=("paths", "breslow", "late")),
    "survival": Peer(
        "R",
        penalties=("none",),
        offers=("breslow", "efron", "late", "errors", "robust"),
        values=(
            "concordance",
            "kaplan-meier",
            "cox-interval",
            "quantile",
            "mean",
            "logrank",
            "logrank-strata",
            "curve-clusters",
            "split",
            "merge",
            "finegray-late",
            "exact-ties",
            "frailty-gamma",
        ),
        is_sparse=False,
    ),
    "fastcmprsk": Peer("R", models=("finegray",), penalties=("l1",), is_sparse=False),
    "Cyclops": Peer("R", models=("cox", "finegray"), selects=True),
}


@dataclass(frozen=True)
class Absent:
    """Why a peer takes no part."""

    name: str
    reason: str


@dataclass
class Peers:
    """Those that were found, and who ran out of time.

    Attributes
    ----------
    versions : mapping of str to str
    absent : list of Absent
    limit : float
        Seconds that one fit may take.
    """

    versions: Mapping[str, str] = field(default_factory=dict)
    absent: Sequence[Absent] = ()
    limit: float = 600.0
    python: str = sys.executable
    rscript: str | None = None
    _too_slow: dict[Hashable, list[tuple[int, ...]]] = field(default_factory=dict)
    """Sizes of the problems of a kind at which time ran out."""

    @classmethod
    def find(cls, limit: float = 600.0, python: str | None = None) -> "Peers":
        """Ask an interpreter of Python and, if there is one, R for what is installed."""
        python, rscript = python or sys.executable, shutil.which("Rscript")
        versions = _ask([python, str(HERE / "peer_fits.py")])
        if rscript:
            versions |= _ask([rscript, str(HERE / "peer_fits.R")])
        absent = []
        for name, peer in PEERS.items():
            if name not in versions:
                is_missing_r = peer.language == "R" and not rscript
                reason = "Rscript was not found" if is_missing_r else "not installed"
                absent.append(Absent(name, reason))
        return cls(versions, absent, limit, python, rscript)

    @property
    def preface(self) -> list[str]:
        """What a table says of those who take no part."""
        if not self.absent:
            return []
        named = ", ".join(f"{a.name} ({a.reason})" for a in self.absent)
        return [f"Absent: {named}."]

    def records(
        self,
        case: Case,
        l1: float | None,
        *,
        l2: float = 0.0,
        threads: int | Sequence[int] = 1,
        step: str = "fit",
        strengths: Features | None = None,
        needs: Iterable[str] = (),
        **options: Any,
    ) -> "list[BenchmarkRecord]":
        """The answers of all who can, one after the other.

        `l1` None is a selection; `strengths` are those of a path, l1 and l2 together, which ends
        with `l1` and `l2`. `needs` are of `OFFERS`. Who can uses each number of `threads`.
        """
        found = []
        needs = (*needs, *(("paths",) if strengths is not None else ()))
        for name in self.versions:
            peer = PEERS[name]
            if peer.refuses(case.model, l1, l2, needs) is not None:
                continue
            has_threads = peer.threads or (peer.selects and l1 is None)
            task = {"l1": l1 or 0.0, **({"l2": l2} if l2 else {}), **options}
            for count in _counts(threads) if has_threads else (1,):
                found.append(
                    self._record(case, name, l1, l2, step, strengths, task | {"threads": count})
                )
        return found

    def _record(
        self,
        case: Case,
        name: str,
        l1: float | None,
        l2: float,
        step: str,
        strengths: Features | None,
        task: Mapping[str, Any],
    ) -> BenchmarkRecord:
        known = {"tool": name, "version": self.versions[name], "step": step}
        known["threads"] = task["threads"]
        size = case.cohort.time.size * case.cohort.coef.size * np.dtype(float).itemsize
        if not PEERS[name].is_sparse and size > MAX_TABLE_SHARE * (_memory() or np.inf):
            return case.record(**known, note=f"not tried: a dense table has {size / 1e9:,.0f} GB")
        n_strengths = 1 if strengths is None else strengths.size
        answer = self._answer(
            name,
            (case.model, step, task["threads"], "has_default_tolerance" in task),
            (case.cohort.time.size, case.cohort.coef.size, n_strengths),
            lambda folder: hand_over(case, folder, task, strengths),
        )
        if isinstance(answer, str):
            return case.record(**known, note=answer)
        return _judged(case, known, l1, l2, strengths, *answer)

    def values(self, what: str, arrays: Mapping[str, AnyArray], **facts: Any) -> "list[Computed]":
        """What all who can compute from some arrays: "concordance", "kaplan-meier", "survival".

        The numbers that they give are compared by whoever asks.
        """
        found = []
        for name, version in self.versions.items():
            if what not in PEERS[name].values:
                continue

            def write(folder: Path) -> None:
                task = {"threads": 1, "value": what, **facts}
                (folder / "task.json").write_text(json.dumps(task))
                for array, values in arrays.items():
                    values.tofile(folder / f"{array}.bin")

            answer = self._answer(name, what, (arrays["time"].size,), write)
            known = {"tool": name, "version": version, "threads": 1}
            if isinstance(answer, str):
                found.append(Computed(known | {"note": answer}, np.zeros(0)))
            else:
                found.append(Computed(known | answer[0], answer[1]))
        return found

    def _answer(
        self,
        name: str,
        problem: Hashable,
        sizes: tuple[int, ...],
        write: Callable[[Path], None],
    ) -> tuple[dict[str, Any], Rows] | str:
        """What it says of its work and its numbers; or why there is nothing."""
        slow = self._too_slow.setdefault((name, problem), [])
        if any(all(map(operator.ge, sizes, known)) for known in slow):
            return "not tried: a smaller problem took too long"
        with tempfile.TemporaryDirectory(prefix="riskset-bench-") as place:
            folder = Path(place)
            write(folder)
            note = self._run(name, folder)
            if note:
                if note.startswith("stopped"):
                    slow.append(sizes)
                return note
            answer = json.loads((folder / "answer.json").read_text())
            return answer, np.fromfile(folder / "coef.bin")

    def _run(self, name: str, folder: Path) -> str:
        """Let it work; what went wrong, or nothing."""
        if PEERS[name].language == "Python":
            command = [self.python, str(HERE / "peer_fits.py"), name, str(folder)]
        else:
            assert self.rscript is not None
            command = [self.rscript, str(HERE / "peer_fits.R"), name, str(folder)]
        threads = json.loads((folder / "task.json").read_text())["threads"]
        names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        environment |= dict.fromkeys(names, str(threads))
        try:
            done = subprocess.run(
                _within_memory(command),
                env=environment,
                capture_output=True,
                text=True,
                timeout=self.limit,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"stopped after {self.limit:.0f} s"
        if done.returncode == 0 and (folder / "answer.json").exists():
            return ""
        said = [line for line in done.stderr.splitlines() if "rror" in line]
        # The last error of Python, the only one of R; a process that was killed says nothing.
        return f"failed: {said[-1].strip()[:100]}" if said else f"ended: {done.returncode}"


def _counts(threads: int | Sequence[int]) -> Sequence[int]:
    return (threads,) if isinstance(threads, int) else threads


class Computed(NamedTuple):
    """Numbers of another program, and the fields of its record."""

    known: dict[str, Any]
    values: Rows


def _judged(
    case: Case,
    known: dict[str, Any],
    l1: float | None,
    l2: float,
    strengths: Features | None,
    answer: dict[str, Any],
    coef: Rows,
) -> BenchmarkRecord:
    """The record of somebody's coefficients, of the last strength of a path that was reached."""
    variance = answer.pop("variance", None)
    if l1 is None:
        l1 = float(np.sqrt(2 / variance))
    if strengths is None:
        judged = case.judge(coef, penalty_of(l1, l2))
    else:
        coefs = coef.reshape(-1, case.cohort.coef.size)
        reached = strengths[: len(coefs)]
        if reached.size < strengths.size:
            answer["note"] = f"ended after {reached.size} of {strengths.size} strengths"
        share = l1 / (l1 + l2)
        judged = case.judge_path(
            coefs, [penalty_of(share * s, (1 - share) * s) for s in reached.tolist()]
        )
        l1, l2 = share * float(reached[-1]), (1 - share) * float(reached[-1])
    return case.record(**known, l1=l1, l2=l2 or None, **answer, **judged._asdict())


def hand_over(
    case: Case, folder: Path, task: Mapping[str, Any], strengths: Features | None = None
) -> None:
    """Write a problem as ``task.json`` and raw arrays.

    ``indptr.bin`` and ``time.bin`` are float64, ``indices.bin`` and ``event.bin`` int32: what both
    Python and R can read. Sparse columns have no values: all are 1. Dense ones are ``x.bin``,
    float64, by columns, the strengths of a path ``strengths.bin``, and times of late entry
    ``entry.bin``.
    """
    cohort = case.cohort
    facts = {"n_rows": cohort.time.size, "n_columns": cohort.coef.size, "model": case.model}
    facts |= case.write_columns(folder)
    facts |= {"efron": 1} if case.ties == "efron" else {}
    facts |= {"late": 1} if case.entry is not None else {}
    if strengths is not None:
        facts["n_strengths"] = strengths.size
        strengths.astype(np.float64).tofile(folder / "strengths.bin")
    (folder / "task.json").write_text(json.dumps(facts | dict(task)))
    if case.entry is not None:
        case.entry.tofile(folder / "entry.bin")
    cohort.time.tofile(folder / "time.bin")
    cohort.event.astype(np.int32).tofile(folder / "event.bin")


def _ask(command: list[str]) -> dict[str, str]:
    try:
        done = subprocess.run(
            [*command, "--versions"], capture_output=True, text=True, timeout=120, check=True
        )
        found: dict[str, str] = json.loads(done.stdout.strip().splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return {}
    return {name: found[name] for name in PEERS if name in found}


def _memory() -> int | None:
    """Bytes that the machine has, where it says so."""
    if "SC_PHYS_PAGES" not in getattr(os, "sysconf_names", ()):
        return None
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _within_memory(command: list[str]) -> list[str]:
    """The same command, which fails for itself before the machine runs out of memory."""
    shell, size = shutil.which("sh"), _memory()
    if shell is None or size is None:
        return command
    limit = int(MEMORY_SHARE * size / 1024)
    return [shell, "-c", 'ulimit -v "$0" 2>/dev/null; exec "$@"', str(limit), *command]
