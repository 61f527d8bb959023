"""One fit with a fixed L1 penalty over numbers of rows: section 3.2."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from riskset._runtime import available_threads
from riskset.bench.case import MODELS, Case, called, warm_up
from riskset.bench.experiment import STRENGTH, TOL, ProgressCall
from riskset.bench.measure import measure, version
from riskset.bench.peers import Peers
from riskset.bench.record import BenchmarkRecord, grouped, line
from riskset.model.penalty import L1
from riskset.plot.timings import Figure, Panel, time_curves

__all__ = ["ROWS", "Fixed", "titled"]

ROWS = (100_000, 177_828, 316_228, 562_341, 1_000_000)
TITLES = {"cox": "Cox", "finegray": "Fine-Gray"}


@dataclass(frozen=True)
class Fixed:
    """The options of `fixed`; a strength of 0 means no penalty."""

    name: ClassVar[str] = "fixed"
    title: ClassVar[str] = "One fit with a fixed L1 penalty"
    words: ClassVar[str] = (
        "Simulated cohorts of section 3.2 of Yang et al. (2024). 'X.T @ r' is one product of "
        "scipy, the least that any step of any first-order method needs. "
        "Objectives are minus the log "
        "partial likelihood plus the penalty; they and the KKT residuals are computed by riskset "
        "from everybody's coefficients. 'prepare' is what a tool needs to take over sparse columns."
    )

    models: Sequence[str] = MODELS
    rows: Sequence[int] = ROWS
    columns: int = 1000
    density: float = 0.05
    strength: float = STRENGTH
    threads: Sequence[int] = ()
    repeats: int = 3
    device: str = "cpu"
    seed: int = 123
    solvers: Sequence[str] = ("newton",)
    peers: Peers | None = None

    def records(self, progress: ProgressCall) -> Iterator[BenchmarkRecord]:
        """Ours with each number of threads, then the peers, at each size."""
        total = len(self.models) * len(self.rows)
        penalty = L1(self.strength) if self.strength > 0 else None
        for k, (model, n) in enumerate((m, n) for m in self.models for n in sorted(self.rows)):
            what = f"{titled(model)}, {n:,} rows"
            progress(k / total, f"{what}: drawing")
            case = Case.draw(self.name, model, n, self.columns, self.density, self.seed)
            yield self._product(case)
            for solver in self.solvers:
                progress((k + 0.2) / total, f"{what}: fitting")
                yield from self._fits(case, penalty, solver)
            if self.peers is not None:
                progress((k + 0.4) / total, f"{what}: peers")
                yield from self.peers.records(case, self.strength, threads=max(self._threads))

    @property
    def _threads(self) -> Sequence[int]:
        return tuple(self.threads) or tuple(sorted({1, available_threads()}))

    def _product(self, case: Case) -> BenchmarkRecord:
        x, r = case.cohort.X, np.random.default_rng(1).normal(size=case.cohort.time.size)
        done = measure(lambda: x.T @ r, self.repeats)
        del case.cohort.__dict__["X"]  # eight bytes per entry that are not needed any more
        return case.record(
            tool="scipy", version=version("scipy"), threads=1, step="X.T @ r", passes=1.0,
            **done.times,
        )  # fmt: skip

    def _fits(self, case: Case, penalty: L1 | None, solver: str) -> Iterator[BenchmarkRecord]:
        options: dict[str, Any] = {"solver": solver, "device": self.device}
        warm_up(case.model, penalty=penalty, **options)
        tool = called(self.device) + ("" if solver == "newton" else f" {solver}")
        for threads in self._threads:
            yield case.fitted(
                penalty, threads=threads, tol=TOL, repeats=self.repeats, options=options,
                tool=tool, prepare=case.seconds_to_build,
            )  # fmt: skip

    def picture(self, records: Sequence[BenchmarkRecord]) -> Figure:
        """Seconds against rows, one panel for each model."""
        panels = []
        for (model,), found in grouped(records, "model"):
            lines = {}
            for (tool, threads), some in grouped(found, "tool", "threads"):
                timed = [r for r in some if r.seconds is not None and r.is_as_good]
                if timed:
                    suffix = f", {threads} threads" if threads != 1 else ""
                    lines[f"{tool}{suffix}"] = line(timed, "n_rows")
            panels.append(Panel(titled(str(model)), "rows", lines))
        return time_curves(panels)


def titled(model: str) -> str:
    """What people call a model."""
    return TITLES[model]
