"""Coordinate descent, accelerated proximal gradient and Newton, to the same certificate.

The paper compares the first two in words (section 2.9). All three start at 0, run on the same
likelihood kernels, and end when the KKT residual over all columns is below the same bound.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import ClassVar

import numpy as np

from riskset._types import Features, Index, Rows
from riskset.bench.case import MODELS, Case, warm_up
from riskset.bench.experiment import STRENGTH, ProgressCall
from riskset.bench.fixed import titled
from riskset.bench.measure import measure
from riskset.bench.proximal import Accelerated
from riskset.bench.record import BenchmarkRecord, grouped, line
from riskset.data.column_storage import StoredColumns
from riskset.data.design import Design
from riskset.model.penalty import L1
from riskset.plot.timings import Figure, Panel, time_curves
from riskset.solve.ccd import CoordinateDescent
from riskset.solve.fit import fit_by_newton
from riskset.solve.optimality import Problem
from riskset.solve.prox_newton import Minimisation
from riskset.solve.result import Solution

__all__ = ["METHODS", "CountedDesign", "Solvers"]

MAX_ITER = 20_000


@dataclass(frozen=True, eq=False)
class CountedDesign(Design):
    """A design that counts how many of its non-zeros are read."""

    sizes: Index = field(kw_only=True)
    reads: list[int] = field(default_factory=lambda: [0], kw_only=True)

    @classmethod
    def of(cls, design: Design, sizes: Index) -> "CountedDesign":
        """The same covariates, with the number of non-zeros in each column."""
        return cls(
            **{f.name: getattr(design, f.name) for f in fields(Design) if f.init}, sizes=sizes
        )

    def select(self, columns: Index | None = None) -> list[tuple[StoredColumns, Index, Index]]:
        """What every operation but a product begins with."""
        self.reads[0] += int(self.sizes.sum() if columns is None else self.sizes[columns].sum())
        return super().select(columns)

    def product(self, v: Features, columns: Index | None = None, *, runtime: object) -> Rows:
        """It reads the columns that are multiplied by something."""
        columns = np.arange(self.n_features) if columns is None else columns
        used = np.flatnonzero(v)
        return super().product(v[used], columns[used], runtime=runtime)  # type: ignore[arg-type]


class CountedSweeps(CoordinateDescent):
    """Coordinate descent keeps a copy of the entries: each is read once, and once more to move."""

    def _sweep(self, active: Index) -> Features:
        moved = super()._sweep(active)
        design = self.problem.design
        assert isinstance(design, CountedDesign)
        design.reads[0] += int(design.sizes[active].sum() + design.sizes[moved != 0].sum())
        return moved


METHODS: Mapping[str, type[Minimisation]] = {
    "newton": Minimisation,
    "ccd": CountedSweeps,
    "proximal gradient": Accelerated,
}


@dataclass(frozen=True)
class Solvers:
    """The options of `solvers`."""

    name: ClassVar[str] = "solvers"
    title: ClassVar[str] = "Three solvers to the same KKT residual"
    words: ClassVar[str] = (
        "Simulated cohorts of section 3.2 of Yang et al. (2024), L1 penalty of strength "
        f"{STRENGTH:.4f}. All start at 0 with the same kernels. 'passes' is how "
        "often every non-zero was read, for "
        "products, for the sample of Newton's curvature, and for the coordinates; 'ccd' runs "
        "in one thread, the others in all."
    )

    models: Sequence[str] = MODELS
    rows: Sequence[int] = (100_000,)
    columns: int = 1000
    density: float = 0.05
    strength: float = STRENGTH
    tols: Sequence[float] = (1e-4, 1e-6, 1e-8)
    methods: Sequence[str] = tuple(METHODS)
    repeats: int = 1
    seed: int = 123
    peers: ClassVar[None] = None

    def records(self, progress: ProgressCall) -> Iterator[BenchmarkRecord]:
        """Every method to every tolerance."""
        jobs = [
            (model, n, method, tol)
            for model in self.models
            for n in self.rows
            for method in self.methods
            for tol in sorted(self.tols, reverse=True)
        ]
        case: Case | None = None
        for k, (model, n, method, tol) in enumerate(jobs):
            progress(k / len(jobs), f"{titled(model)}, {n:,} rows: {method} to {tol:g}")
            if case is None or (case.model, case.cohort.time.size) != (model, n):
                case = Case.draw(self.name, model, n, self.columns, self.density, self.seed)
                warm_up(model, penalty=L1(self.strength))
                small = Case.draw(self.name, model, 500, 10, 0.2, 1)
                for each in self.methods:
                    self._solve(small, small.problem, each, 1e-3)  # compiles
            yield self._record(case, method, tol)

    def _record(self, case: Case, method: str, tol: float) -> BenchmarkRecord:
        sizes = np.diff(case.cohort.indptr)
        design = CountedDesign.of(case.design, sizes)
        problem = Problem.prepare(design, case.loss)
        design.reads[0] = 0
        done = measure(lambda: self._solve(case, problem, method, tol), self.repeats)
        solution = done.result
        word = METHODS[method].unit + ("" if solution.n_iter == 1 else "s")
        return case.record(
            tool=method,
            threads=1 if method == "ccd" else case.loss.runtime.n_threads,
            l1=self.strength,
            tol=tol,
            passes=design.reads[0] / int(sizes.sum()) / self.repeats,
            note=f"{solution.n_iter:,} {word}"
            + ("" if solution.status == "converged" else f", {solution.status}"),
            **done.times,
            **case.judge(solution.coef, L1(self.strength))._asdict(),
        )

    def _solve(self, case: Case, problem: Problem, method: str, tol: float) -> Solution:
        l1 = np.full(case.design.n_features, self.strength)
        kind = METHODS[method]
        if kind is CountedSweeps and not isinstance(problem.design, CountedDesign):
            kind = CoordinateDescent
        return fit_by_newton(
            problem.design, problem.loss, l1, np.zeros_like(l1), tol=tol, max_iter=MAX_ITER,
            problem=problem, method=kind,
        )  # fmt: skip

    def picture(self, records: Sequence[BenchmarkRecord]) -> Figure:
        """Passes and seconds against the tolerance."""
        panels = []
        for (model, n), found in grouped(records, "model", "n_rows"):
            for what in ("passes", "seconds"):
                lines = {}
                for (tool,), some in grouped(found, "tool"):
                    ended = [r for r in some if r.note.count(",") == 0 or "max_iter" not in r.note]
                    if ended:
                        lines[str(tool)] = line(ended, "tol", what)
                title = f"{titled(str(model))}, {n:,} rows: {what}"
                panels.append(Panel(title, "KKT residual at most", lines))
        return time_curves(panels, ylabel="")
