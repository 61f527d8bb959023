"""10 x 10 cross-validation of the L1 penalty, over rows and threads: section 3.3."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from riskset._runtime import available_threads
from riskset.bench.case import SELECTORS, Case, called
from riskset.bench.experiment import ProgressCall
from riskset.bench.fixed import titled
from riskset.bench.measure import measure
from riskset.bench.peers import Peers
from riskset.bench.record import BenchmarkRecord, grouped, line
from riskset.estimators.crossval import CoxCV, FineGrayCV
from riskset.model.penalty import L1
from riskset.plot.timings import Figure, Panel, time_curves

__all__ = ["ROWS", "CrossValidate"]

ROWS = (100_000, 500_000, 800_000, 1_000_000)


@dataclass(frozen=True)
class CrossValidate:
    """The options of `crossval`; variances of Laplace priors to compare instead of a search."""

    name: ClassVar[str] = "crossval"
    title: ClassVar[str] = "Cross-validation of the L1 penalty"
    words: ClassVar[str] = (
        "Simulated cohorts of section 3.3 of Yang et al. (2024). Every step ends with the fit of "
        "the chosen penalty, l1, to all rows, whose objective is shown. The KKT residual of "
        "riskset is the largest of all replicates and of that fit."
    )

    models: Sequence[str] = ("cox", "finegray")
    rows: Sequence[int] = ROWS
    columns: int = 1000
    density: float = 0.05
    folds: int = 10
    repeats: int = 10
    variances: Sequence[float] = ()
    threads: Sequence[int] = ()
    device: str = "cpu"
    seed: int = 123
    peers: Peers | None = None

    def records(self, progress: ProgressCall) -> Iterator[BenchmarkRecord]:
        """Ours with each number of threads, then the peers, at each size."""
        total = len(self.models) * len(self.rows)
        every = available_threads()
        threads = tuple(self.threads) or tuple(sorted({1, min(2, every), every}))
        for k, (model, n) in enumerate((m, n) for m in self.models for n in sorted(self.rows)):
            what = f"{titled(model)}, {n:,} rows"
            progress(k / total, f"{what}: drawing")
            self._warm_up(model)
            case = Case.draw(self.name, model, n, self.columns, self.density, self.seed)
            for i, t in enumerate(threads):
                progress((k + (i + 0.5) / (len(threads) + 1)) / total, f"{what}: {t} threads")
                yield self._ours(case, t)
            if self.peers is not None:
                progress((k + 0.9) / total, f"{what}: peers")
                yield from self.peers.records(
                    case, None, threads=max(threads), step=self._step, folds=self.folds,
                    repeats=self.repeats, seed=self.seed,
                )  # fmt: skip

    @property
    def _step(self) -> str:
        return f"{self.folds} folds x {self.repeats}"

    def _selector(
        self, model: str, threads: int | None, folds: int, repeats: int
    ) -> CoxCV | FineGrayCV:
        given = [L1.from_variance(v) for v in self.variances]
        return SELECTORS[model](
            penalties=given or None,
            folds=folds,
            repeats=repeats,
            n_threads=threads,
            device=self.device,
            seed=self.seed,
        )

    def _warm_up(self, model: str) -> None:
        small = Case.draw(self.name, model, 1000, 30, 0.1, 1)
        self._selector(model, None, 3, 1).fit(small.design, small.y)

    def _ours(self, case: Case, threads: int) -> BenchmarkRecord:
        model = self._selector(case.model, threads, self.folds, self.repeats)
        design = case.design
        done = measure(lambda: model.fit(design, case.y))
        found = model.cross_validation_
        judged = case.judge(model.coef_, model.best_penalty_)
        return case.record(
            tool=called(self.device),
            threads=threads,
            step=self._step,
            prepare=case.seconds_to_build,
            objective=judged.objective,
            n_nonzero=judged.n_nonzero,
            kkt=max(judged.kkt, found.largest_kkt),
            l1=model.best_penalty_.l1,
            note=f"{len(found.penalties)} penalties",
            **done.times,
        )

    def picture(self, records: Sequence[BenchmarkRecord]) -> Figure:
        """Seconds against threads, one panel for each model, one line for each size."""
        panels = []
        for (model,), found in grouped(records, "model"):
            lines = {}
            for (tool, n), some in grouped(found, "tool", "n_rows"):
                timed = [r for r in some if r.seconds is not None]
                if timed:
                    lines[f"{tool}, {n:,} rows"] = line(timed, "threads")
            panels.append(Panel(titled(str(model)), "threads", lines))
        return time_curves(panels)
