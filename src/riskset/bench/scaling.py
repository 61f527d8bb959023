"""What work costs as it grows: sparse tables with many rows and columns, curves, and one fit.

The last varies one property at a time: threads, rows, columns, density or events.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from riskset._runtime import available_threads
from riskset.bench.case import WARM_UP_ROWS, Case, penalty_of, warm_up
from riskset.bench.experiment import STRENGTH, TOL, WorkExperiment, dots
from riskset.bench.record import BenchmarkRecord, grouped
from riskset.bench.rows import VALUES, values
from riskset.bench.study import DrawnPeople, StudyBenchmark
from riskset.bench.works import SCALING, ChosenWork
from riskset.model.penalty import L1
from riskset.plot.timings import Figure, Panel, time_curves
from riskset.simulate import simulate_cohort

__all__ = ["Scaling", "Size"]

CLAIMS_DENSITY, CLAIMS_EVENTS = 0.0115, 0.3
STRENGTHS = {"l1": 5.0, "l1-growth": 30.0, "l2": 1.0}
"""Of covariates as of claims."""
GROWING = ("l1-growth", "l2")
"""Of the same strength for any number of columns."""
DENSITY_OF_SCORE = 0.005
FOLDS = 10
VARIED = {
    "by-threads": "threads",
    "by-rows": "rows",
    "by-columns": "columns",
    "by-density": "density",
    "by-events": "events",
}


@dataclass(frozen=True)
class Size:
    """A problem; `events` is the share of its events that are kept, the others censored."""

    rows: int = 100_000
    columns: int = 1000
    density: float = 0.05
    events: float = 1.0
    threads: int = 1


@dataclass(frozen=True)
class Scaling(WorkExperiment):
    """The options of `scaling`: works, and factors from the middle of each plot of one fit."""

    name: ClassVar[str] = "scaling"
    title: ClassVar[str] = "Cost of work against its size"
    words: ClassVar[str] = (
        "'fit', 'finegray' and the steps 'by-...': simulated cohorts of section 3.2 of Yang et al. "
        f"(2024), one fit with an L1 penalty of strength {STRENGTH:.4f}; the note names what "
        "varies. Fewer events: some of them counted as censored. 'l1' and 'l2': covariates from "
        f"rare to common as in claims data, {CLAIMS_DENSITY:.2%} ones, events in "
        f"{CLAIMS_EVENTS:.0%} of the rows. The designs are there before the clock starts, and "
        "'peak' is memory beyond them. Of curves, the note has the values that were found. Other "
        "programs have their default tolerances unless the table shows one, and their time "
        "excludes 'prepare'. Objective and KKT residual are computed by riskset."
    )
    kinds = SCALING

    density: float = 0.05
    factors: Sequence[float] = (0.1, 0.3, 1.0, 3.0, 10.0)
    shares: Sequence[float] = (0.01, 0.03, 0.1, 0.3, 1.0)

    def warm_up(self) -> None:
        """See `WorkExperiment.warm_up`."""
        for model in ("cox", "finegray"):
            warm_up(model, penalty=L1(STRENGTH))
        for penalty in (penalty_of(5.0), penalty_of(0.0, 1.0)):
            self._claims(WARM_UP_ROWS, 200).fitted(penalty, threads=2, tol=TOL)

    def measured(self, work: ChosenWork) -> Iterator[BenchmarkRecord]:
        """See `WorkExperiment.measured`."""
        if work.kind in VALUES:
            return values(self, work)
        if work.kind in VARIED:
            return self._varied(work)
        if work.kind == "propensity":
            return self._propensity(work)
        return self._fits(work)

    def _fits(self, work: ChosenWork) -> Iterator[BenchmarkRecord]:
        """One problem, ours and then the peers."""
        rows, columns = work.sizes
        if work.kind in STRENGTHS:
            case = self._claims(rows, columns)
        else:
            model = "cox" if work.kind == "fit" else work.kind
            case = Case.draw(self.name, model, rows, columns, self.density, self.seed)
        strength = work.strength or STRENGTHS.get(work.kind, STRENGTH)
        l1, l2 = (0.0, strength) if work.kind == "l2" else (strength, 0.0)
        counts = [max(self.counts)] if work.kind in STRENGTHS else self.counts
        for threads in counts:
            yield case.fitted(
                penalty_of(l1, l2), threads=threads, tol=TOL, step=work.kind,
                prepare=case.seconds_to_build, **self.timing,
            )  # fmt: skip
        yield from self.beside(case, l1, l2=l2, step=work.kind)

    def _claims(self, n_rows: int, n_columns: int) -> Case:
        cohort = simulate_cohort(n_rows, n_columns, CLAIMS_DENSITY, self.seed, events=CLAIMS_EVENTS)
        return Case("cox", cohort, experiment=self.name)

    def _propensity(self, work: ChosenWork) -> Iterator[BenchmarkRecord]:
        people = DrawnPeople.of(work.sizes[0], work.sizes[1], DENSITY_OF_SCORE, self.seed)
        study = StudyBenchmark(folds=FOLDS, repeats=1, threads=max(self.counts), seed=self.seed)
        yield replace(study.score(people), experiment=self.name, step=work.kind)

    def _varied(self, work: ChosenWork) -> Iterator[BenchmarkRecord]:
        """One fit of all sizes that a kind of work has."""
        known: tuple[Size, Case] | None = None
        for size in self.sizes(work):
            data = replace(size, threads=1)
            if known is None or known[0] != data:
                known = data, self._case(size)
            case = known[1]
            yield case.fitted(
                L1(STRENGTH), threads=size.threads, tol=TOL, step=work.kind,
                prepare=case.seconds_to_build, **self.timing,
            )  # fmt: skip

    def sizes(self, work: ChosenWork) -> Iterator[Size]:
        """The problems, of which one property varies."""
        every = available_threads()
        rows, columns = work.sizes
        base = Size(rows, columns, self.density, 1.0, every)
        what = VARIED[work.kind]
        if what == "threads":
            doubling = {2**k for k in range(every.bit_length()) if 2**k <= every}
            yield from (replace(base, threads=threads) for threads in sorted(doubling | {every}))
        elif what == "events":
            yield from (replace(base, events=share) for share in self.shares)
        elif what == "density":
            densities = (f * self.density for f in self.factors)
            yield from (replace(base, density=density) for density in densities if density <= 1)
        else:
            of = {"rows": rows, "columns": columns}[what]
            yield from (replace(base, **{what: round(f * of)}) for f in self.factors)

    def _case(self, size: Size) -> Case:
        case = Case.draw(self.name, "cox", size.rows, size.columns, size.density, self.seed)
        if size.events == 1:
            return case
        is_kept = np.random.default_rng(self.seed).random(size.rows) < size.events
        event = np.where(is_kept | (case.cohort.event != 1), case.cohort.event, 0)
        return replace(case, cohort=replace(case.cohort, event=event))

    def picture(self, records: Sequence[BenchmarkRecord]) -> Figure:
        """Seconds and memory against what varies; where nothing does, seconds alone."""
        steps = {str(step): found for (step,), found in grouped(records, "step")}
        panels = [_panel(step, "seconds", found) for step, found in steps.items() if step in VARIED]
        for step in GROWING:
            panels += [_panel(step, what, steps.get(step, [])) for what in UNITS]
        if any(panel.lines for panel in panels):
            return time_curves([panel for panel in panels if panel.lines], ylabel="")
        return dots(records)


SIZES = {
    "threads": lambda r: r.threads,
    "rows": lambda r: r.n_rows,
    "columns": lambda r: r.n_columns,
    "density": lambda r: r.n_entries / r.n_rows / r.n_columns,
    "events": lambda r: r.n_events,
}
UNITS = {"seconds": "seconds", "peak_mb": "MiB beyond the design"}


def _panel(step: str, what: str, found: Sequence[BenchmarkRecord]) -> Panel:
    """One quantity of one kind of work, a line for each competitor."""
    varies = VARIED.get(step, "columns" if step in GROWING else "rows")
    lines: dict[str, tuple[list[float], list[float]]] = {}
    by_tool = ("tool",) if varies == "threads" else ("tool", "threads")
    for (tool, *threads), some in grouped(found, *by_tool):
        timed = [r for r in some if getattr(r, what) and r.is_as_good]
        if timed:
            suffix = f", {threads[0]} threads" if threads and threads[0] != 1 else ""
            lines[f"{tool}{suffix}"] = (
                [float(SIZES[varies](r)) for r in timed],
                [float(getattr(r, what)) for r in timed],
            )
    return Panel(f"{step}: {UNITS[what]}", varies, lines, is_linear=step in GROWING)
