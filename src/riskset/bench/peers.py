"""Other programs that fit the same models: which are here, what they can do, and their answers.

Each runs in a separate process, with a limit of time and of memory, so that none of them can end
the experiment; a failure is a line of the table. Arrays travel in files.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from riskset._types import Features
from riskset.bench.case import Case
from riskset.bench.record import BenchmarkRecord
from riskset.model.penalty import L1

__all__ = ["PEERS", "Absent", "Peer", "Peers"]

HERE = Path(__file__).parent / "peer_scripts"
MEMORY_SHARE = 0.8
"""Of the machine's memory, which a peer may use."""


@dataclass(frozen=True)
class Peer:
    """What another program can do.

    Attributes
    ----------
    language : "Python" or "R"
    models : tuple of str
    penalties : tuple of str
        "l1", "none".
    selects : bool
        Whether it chooses the penalty by cross-validation with a held-out likelihood.
    threads : bool
        Whether a fit can use several.
    has_paths : bool
        Whether it solves a sequence of L1 penalties.
    """

    language: str
    models: tuple[str, ...] = ("cox",)
    penalties: tuple[str, ...] = ("l1", "none")
    selects: bool = False
    threads: bool = False
    has_paths: bool = False

    def refuses(self, model: str, l1: float | None, is_path: bool = False) -> str | None:
        """Why it cannot do this, if so; `l1` None is a selection."""
        if is_path and not self.has_paths:
            return "has no paths"
        if model not in self.models:
            return "has no Fine-Gray model" if model == "finegray" else "has no Cox model"
        if l1 is None:
            return None if self.selects else "selects no penalty by held-out likelihood"
        if l1 > 0 and "l1" not in self.penalties:
            return "has no L1 penalty"
        if l1 == 0 and "none" not in self.penalties:
            return "always penalises"
        return None


PEERS: Mapping[str, Peer] = {
    "scikit-survival": Peer("Python", has_paths=True),
    "skglm": Peer("Python", penalties=("l1",)),
    "adelie": Peer("Python", threads=True, has_paths=True),
    "lifelines": Peer("Python"),
    "statsmodels": Peer("Python"),
    "glmnet": Peer("R", penalties=("l1",), has_paths=True),
    "survival": Peer("R", penalties=("none",)),
    "fastcmprsk": Peer("R", models=("finegray",), penalties=("l1",)),
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
    _too_slow: set[tuple[str, str, str]] = field(default_factory=set)

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
        threads: int = 1,
        step: str = "fit",
        strengths: Features | None = None,
        **options: Any,
    ) -> "list[BenchmarkRecord]":
        """The answers of all who can, one after the other.

        `l1` None is a selection; `strengths` are those of a path, which ends with `l1`.
        """
        return [
            self._record(case, name, l1, threads, step, strengths, options)
            for name in self.versions
            if PEERS[name].refuses(case.model, l1, strengths is not None) is None
        ]

    def _record(
        self,
        case: Case,
        name: str,
        l1: float | None,
        threads: int,
        step: str,
        strengths: Features | None,
        options: Mapping[str, Any],
    ) -> BenchmarkRecord:
        known: dict[str, Any] = {
            "tool": name,
            "version": self.versions[name],
            "threads": threads if PEERS[name].threads or PEERS[name].selects and l1 is None else 1,
            "step": step,
        }
        if (name, case.model, step) in self._too_slow:
            note = "not tried: a smaller problem took too long"
            return case.record(**known, note=note)
        with tempfile.TemporaryDirectory(prefix="riskset-bench-") as place:
            folder = Path(place)
            task = {"l1": 0.0 if l1 is None else l1, "threads": known["threads"], **options}
            hand_over(case, folder, task, strengths)
            note = self._run(name, folder)
            if note:
                if note.startswith("stopped"):
                    self._too_slow.add((name, case.model, step))
                return case.record(**known, note=note)
            answer = json.loads((folder / "answer.json").read_text())
            coef = np.fromfile(folder / "coef.bin")
        variance = answer.pop("variance", None)
        if l1 is None:
            l1 = float(np.sqrt(2 / variance))
        if strengths is None:
            judged = case.judge(coef, L1(l1) if l1 > 0 else None)
            return case.record(**known, l1=l1, **answer, **judged._asdict())
        coefs = coef.reshape(-1, case.cohort.coef.size)
        reached = strengths[: len(coefs)]
        judged = case.judge_path(coefs, reached)
        if reached.size < strengths.size:
            answer["note"] = f"ended after {reached.size} of {strengths.size} strengths"
        l1 = float(reached[-1])
        return case.record(**known, l1=l1, **answer, **judged._asdict())

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


def hand_over(
    case: Case, folder: Path, task: Mapping[str, Any], strengths: Features | None = None
) -> None:
    """Write a problem as ``task.json`` and raw arrays.

    ``indptr.bin`` and ``time.bin`` are float64, ``indices.bin`` and ``event.bin`` int32: what both
    Python and R can read. Sparse columns have no values: all are 1. Dense ones are ``x.bin``,
    float64, by columns, and the strengths of a path ``strengths.bin``.
    """
    cohort = case.cohort
    facts = {"n_rows": cohort.time.size, "n_columns": cohort.coef.size, "model": case.model}
    facts |= case.write_columns(folder)
    if strengths is not None:
        facts["n_strengths"] = strengths.size
        strengths.astype(np.float64).tofile(folder / "strengths.bin")
    (folder / "task.json").write_text(json.dumps(facts | dict(task)))
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


def _within_memory(command: list[str]) -> list[str]:
    """The same command, which fails for itself before the machine runs out of memory."""
    shell = shutil.which("sh")
    if shell is None or "SC_PHYS_PAGES" not in getattr(os, "sysconf_names", ()):
        return command
    size = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limit = int(MEMORY_SHARE * size / 1024)
    return [shell, "-c", 'ulimit -v "$0" 2>/dev/null; exec "$@"', str(limit), *command]
