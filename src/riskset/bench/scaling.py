"""What a fit costs as threads, rows, columns, density or events grow, the others held fixed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np

from riskset._runtime import available_threads
from riskset.bench.case import Case, warm_up
from riskset.bench.experiment import STRENGTH, TOL, ProgressCall
from riskset.bench.fixed import titled
from riskset.bench.measure import measure
from riskset.bench.record import BenchmarkRecord, grouped
from riskset.model.penalty import L1
from riskset.plot import Figure, Panel, time_curves

__all__ = ["Scaling", "Size"]


@dataclass(frozen=True)
class Size:
    """A problem; `events` is the share of its events that are kept, the others censored."""

    rows: int = 100_000
    columns: int = 1000
    density: float = 0.05
    events: float = 1.0
    threads: int = 1


@dataclass(frozen=True)
class Scaling:
    """The options of `scaling`: factors from the middle of the plot, and one base."""

    name: ClassVar[str] = "scaling"
    title: ClassVar[str] = "Cost of a fit against its size"
    words: ClassVar[str] = (
        "Simulated cohorts of section 3.2 of Yang et al. (2024), one fit with a fixed L1 penalty; "
        "the note names what varies. Fewer events: some of them counted as censored."
    )

    models: Sequence[str] = ("cox",)
    rows: int = 100_000
    columns: int = 1000
    density: float = 0.05
    factors: Sequence[float] = (0.1, 0.3, 1.0, 3.0, 10.0)
    shares: Sequence[float] = (0.01, 0.03, 0.1, 0.3, 1.0)
    repeats: int = 3
    seed: int = 123
    peers: ClassVar[None] = None

    def sizes(self) -> Iterator[tuple[str, Size]]:
        """What varies, and the problem."""
        every = available_threads()
        base = Size(self.rows, self.columns, self.density, 1.0, every)
        doubling = {2**k for k in range(every.bit_length()) if 2**k <= every}
        for threads in sorted(doubling | {every}):
            yield "threads", replace(base, threads=threads)
        for f in self.factors:
            yield "rows", replace(base, rows=round(f * self.rows))
        for f in self.factors:
            yield "columns", replace(base, columns=round(f * self.columns))
        for f in self.factors:
            if f * self.density <= 1:
                yield "density", replace(base, density=f * self.density)
        for share in self.shares:
            yield "events", replace(base, events=share)

    def records(self, progress: ProgressCall) -> Iterator[BenchmarkRecord]:
        """Vary one thing after the other."""
        jobs = [(model, what, size) for model in self.models for what, size in self.sizes()]
        penalty = L1(STRENGTH)
        known: tuple[object, Case] | None = None
        for k, (model, what, size) in enumerate(jobs):
            progress(k / len(jobs), f"{titled(model)}, {what}")
            warm_up(model, penalty=penalty)
            data = (model, replace(size, threads=1))
            if known is None or known[0] != data:
                known = data, self._case(model, size)
            case = known[1]
            fit = case.estimator(penalty, tol=TOL, max_iter=1000, n_threads=size.threads)
            done = measure(partial(fit.fit, case.design, case.y), self.repeats)
            yield case.record(
                threads=size.threads, l1=STRENGTH, tol=TOL, prepare=case.seconds_to_build,
                note=what, **done.times, **case.judge(fit.coef_, penalty)._asdict(),
            )  # fmt: skip

    def _case(self, model: str, size: Size) -> Case:
        case = Case.draw(self.name, model, size.rows, size.columns, size.density, self.seed)
        if size.events == 1:
            return case
        is_kept = np.random.default_rng(self.seed).random(size.rows) < size.events
        event = np.where(is_kept | (case.cohort.event != 1), case.cohort.event, 0)
        return replace(case, cohort=replace(case.cohort, event=event))

    def picture(self, records: Sequence[BenchmarkRecord]) -> Figure:
        """Seconds against each size."""
        panels = []
        values = {
            "threads": lambda r: r.threads,
            "rows": lambda r: r.n_rows,
            "columns": lambda r: r.n_columns,
            "density": lambda r: r.n_entries / r.n_rows / r.n_columns,
            "events": lambda r: r.n_events,
        }
        for (what,), found in grouped(records, "note"):
            lines = {
                titled(str(model)): (
                    [float(values[str(what)](r)) for r in some],
                    [float(r.seconds or 0) for r in some],
                )
                for (model,), some in grouped(found, "model")
            }
            panels.append(Panel(str(what), str(what), lines))
        return time_curves(panels)
