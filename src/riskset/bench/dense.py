"""Fits and paths on dense tables: few columns and many rows, or more columns than rows."""

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from riskset._errors import InputError
from riskset._runtime import available_threads
from riskset._types import Features, Matrix
from riskset.bench.case import Case
from riskset.bench.experiment import TOL, ProgressCall
from riskset.bench.measure import Measurement, measure
from riskset.bench.peers import Peers
from riskset.bench.record import BenchmarkRecord, grouped
from riskset.data.design import Design
from riskset.estimators.path import path
from riskset.model.penalty import L1
from riskset.plot import Figure, Panel, time_curves
from riskset.simulate import Simulation

__all__ = ["WORKS", "Dense", "DenseCase"]

WORKS = ("100000x20", "1000000x20", "300x2000x100", "500x10000x100", "2000x20000x100",
         "20000x200x56")  # fmt: skip
"""Rows, columns and, for a path, the number of strengths."""
N_SIGNALS = 20
"""Columns that matter."""
RATIO_WIDE, RATIO_LONG = 0.01, 1e-4
"""Last strength of a path divided by the first, with more columns than rows and with fewer."""


@dataclass(frozen=True, eq=False)
class DenseCase(Case):
    """Independent standard normal covariates `x` (n, p), of which 20 matter; a third censored."""

    x: Matrix = field(kw_only=True)

    @classmethod
    def normal(cls, experiment: str, n_rows: int, n_columns: int, seed: int) -> "DenseCase":
        """Draw the covariates and the times."""
        rng = np.random.default_rng(seed)
        x = rng.standard_normal((n_rows, n_columns))
        coef = np.zeros(n_columns)
        coef[:N_SIGNALS] = rng.normal(0, 0.3, coef[:N_SIGNALS].size)
        death, censored = rng.exponential(np.exp(-x @ coef)), rng.exponential(2.0, n_rows)
        time, event = np.minimum(death, censored), (death <= censored).astype(np.int64)
        nothing = np.zeros(0, dtype=np.int32)
        cohort = Simulation(np.zeros(n_columns + 1, dtype=np.int64), nothing, time, event, coef)
        return cls("cox", cohort, experiment=experiment, x=x)

    @functools.cached_property
    def _built(self) -> tuple[Design, float]:
        built = measure(lambda: Design.from_dense(self.x, self.names))
        return built.result, built.seconds

    @property
    def n_entries(self) -> int:
        """Numbers of the table."""
        return self.x.size

    def write_columns(self, folder: Path) -> Mapping[str, object]:
        """Write the table by columns; facts for the task."""
        np.asfortranarray(self.x).ravel(order="K").tofile(folder / "x.bin")
        return {"is_dense": 1}


@dataclass(frozen=True)
class DenseProblem:
    """One problem."""

    n_rows: int
    n_columns: int
    n_strengths: int

    @classmethod
    def parse(cls, text: str) -> "DenseProblem":
        """From ``ROWSxCOLUMNS`` or ``ROWSxCOLUMNSxSTRENGTHS``."""
        found = re.fullmatch(r"(\d+)x(\d+)(?:x(\d+))?", text)
        if found is None or any(int(part or 1) < 1 for part in found.groups()):
            raise InputError(
                f"`works` must be like 100000x20 or 300x2000x100, but {text!r} was given.",
                hint="give rows, columns and, for a path, the number of strengths.",
            )
        return cls(*(int(part or 0) for part in found.groups()))

    @property
    def step(self) -> str:
        """What is measured."""
        return "path" if self.n_strengths else "fit"


@dataclass(frozen=True)
class Dense:
    """The options of `dense`."""

    name: ClassVar[str] = "dense"
    title: ClassVar[str] = "Fits and paths on dense tables"
    words: ClassVar[str] = (
        "Cox models of independent standard normal covariates. A fit has no penalty, a path has an "
        "L1 penalty of decreasing strength. riskset starts from a NumPy array, and its time "
        "includes the conversion. Other programs have their default tolerances, and their time "
        "excludes 'prepare'. Objective and KKT residual are computed by riskset in double "
        "precision; of a path, the objective is that of the last strength and the residual the "
        "largest of all."
    )

    works: Sequence[str] = WORKS
    threads: Sequence[int] = ()
    repeats: int = 3
    seed: int = 123
    peers: Peers | None = None

    def records(self, progress: ProgressCall) -> Iterator[BenchmarkRecord]:
        """Ours with each number of threads, then the peers, on each problem."""
        works = [DenseProblem.parse(text) for text in self.works]
        every = available_threads()
        counts = tuple(self.threads) or tuple(sorted({1, min(2, every), every}))
        _warm_up()
        for k, work in enumerate(works):
            what = f"{work.n_rows:,} x {work.n_columns:,}"
            progress(k / len(works), f"{what}: fitting")
            case = DenseCase.normal(self.name, work.n_rows, work.n_columns, self.seed)
            strengths = _strengths(case, work.n_strengths)
            for threads in counts:
                yield self._ours(case, work, strengths, threads)
            if self.peers is not None:
                progress((k + 0.4) / len(works), f"{what}: peers")
                yield from self.peers.records(
                    case, float(strengths[-1]) if work.n_strengths else 0.0,
                    threads=max(counts), step=work.step,
                    strengths=strengths if work.n_strengths else None, has_default_tolerance=1,
                )  # fmt: skip

    def _ours(
        self, case: DenseCase, work: DenseProblem, strengths: Features, threads: int
    ) -> BenchmarkRecord:
        known: dict[str, Any] = {"threads": threads, "step": work.step, "tol": TOL}
        if not work.n_strengths:
            model = case.estimator(tol=TOL, n_threads=threads)
            fit = measure(partial(model.fit, case.x, case.y), self.repeats)
            judged = case.judge(model.coef_, None)
            return case.record(**known, l1=0.0, **fit.times, **judged._asdict())
        model = case.estimator(L1(1.0), tol=TOL, n_threads=threads)
        done: Measurement[Any] = measure(
            partial(path, model, case.x, case.y, penalties=strengths.tolist()), self.repeats
        )
        judged = case.judge_path(done.result.coefs, strengths)
        return case.record(**known, l1=float(strengths[-1]), **done.times, **judged._asdict())

    def picture(self, records: Sequence[BenchmarkRecord]) -> Figure:
        """Seconds on each problem, one panel for fits and one for paths."""
        panels = []
        for (step,), found in grouped(records, "step"):
            lines: dict[str, tuple[list[float], list[float]]] = {}
            for (tool, threads), some in grouped(found, "tool", "threads"):
                timed = sorted((r.n_entries or 0, r.seconds) for r in some if r.seconds is not None)
                if timed:
                    suffix = f", {threads} threads" if threads != 1 else ""
                    lines[f"{tool}{suffix}"] = (
                        [float(size) for size, _ in timed], [float(s) for _, s in timed]
                    )  # fmt: skip
            panels.append(Panel(str(step), "numbers in the table", lines))
        return time_curves(panels)


def _warm_up() -> None:
    """Have all kernels compiled, or loaded, by fits that are not measured."""
    few = DenseCase.normal("", 300, 5, 1)
    few.estimator().fit(few.x, few.y)
    wide = DenseCase.normal("", 80, 200, 1)
    path(wide.estimator(L1(1.0)), wide.x, wide.y, n_penalties=10)


def _strengths(case: DenseCase, n: int) -> NDArray[np.float64]:
    """From the strength at which every coefficient is 0, equally spaced on a log scale."""
    if n == 0:
        return np.zeros(1)
    problem = case.problem
    first = float(np.abs(problem.gradient_at_zero * case.design.scale).max())
    ratio = RATIO_WIDE if case.x.shape[1] > case.x.shape[0] else RATIO_LONG
    return first * np.geomspace(1.0, ratio, n)
