"""Bootstrap replicates of a fit with a fixed L1 penalty, compared with that fit."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from riskset.bench.case import Case, called, warm_up
from riskset.bench.experiment import ProgressCall
from riskset.bench.fixed import titled
from riskset.bench.measure import measure
from riskset.bench.peers import Peers
from riskset.bench.record import BenchmarkRecord, grouped, line
from riskset.model.penalty import L1
from riskset.plot.timings import Figure, Panel, time_curves

__all__ = ["Resample"]


@dataclass(frozen=True)
class Resample:
    """The options of `bootstrap`; the L1 strength is that of a Laplace prior."""

    name: ClassVar[str] = "bootstrap"
    title: ClassVar[str] = "Bootstrap of a fit with a fixed L1 penalty"
    words: ClassVar[str] = (
        "Simulated cohorts as in section 3.2 of Yang et al. (2024), the rows drawn anew around one "
        "fit. The KKT residual and the objective are those of the fit; every replicate ends with a "
        "residual of at most 1e-5."
    )
    peers: ClassVar[Peers | None] = None

    models: Sequence[str] = ("cox", "finegray")
    rows: Sequence[int] = (100_000,)
    columns: int = 1000
    density: float = 0.05
    replicates: int = 200
    variance: float = 0.01
    device: str = "cpu"
    seed: int = 123

    def records(self, progress: ProgressCall) -> Iterator[BenchmarkRecord]:
        """A fit and its replicates, at each size."""
        penalty = L1.from_variance(self.variance)
        total = len(self.models) * len(self.rows)
        for k, (model, n) in enumerate((m, n) for m in self.models for n in sorted(self.rows)):
            progress(k / total, f"{titled(model)}, {n:,} rows: drawing")
            case = Case.draw(self.name, model, n, self.columns, self.density, self.seed)
            warm_up(model, penalty=penalty, device=self.device)
            fitted = case.estimator(penalty, device=self.device)
            fit = measure(lambda f=fitted, c=case: f.fit(c.design, c.y))  # type: ignore[misc]
            progress((k + 0.2) / total, f"{titled(model)}, {n:,} rows: resampling")
            name = case.design.names[0]
            drawn = measure(
                lambda f=fitted, x=name: f.bootstrap(self.replicates, parameters=[x], seed=1)  # type: ignore[misc]
            )
            failed = sum(status != "converged" for status in drawn.result.statuses)
            for step, done, note in (
                ("fit", fit, ""),
                (f"{self.replicates} replicates", drawn, f"{failed} not converged"),
            ):
                yield case.record(
                    tool=called(self.device),
                    step=step,
                    l1=penalty.strength,
                    note=note,
                    **done.times,
                    **case.judge(fitted.coef_, penalty)._asdict(),
                )

    def picture(self, records: Sequence[BenchmarkRecord]) -> Figure:
        """Seconds against rows, one panel for each model."""
        panels = []
        for (model,), found in grouped(records, "model"):
            lines = {str(step): line(some, "n_rows") for (step,), some in grouped(found, "step")}
            panels.append(Panel(titled(str(model)), "rows", lines))
        return time_curves(panels)
