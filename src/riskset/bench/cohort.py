"""A cohort of the size of the real study, from the choice of the penalty to intervals: section 3.4.

Nobody may see the study's data; these are simulated, with the same number of rows and covariates
and the same density (`riskset.simulate_cohort`), and the truth is known.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from riskset.bench.case import MODELS, SELECTORS, Case, called
from riskset.bench.experiment import ProgressCall
from riskset.bench.fixed import titled
from riskset.bench.measure import measure
from riskset.bench.record import BenchmarkRecord, grouped
from riskset.estimators.crossval import CoxCV, FineGrayCV
from riskset.model.penalty import L1
from riskset.plot.timings import Figure, time_bars
from riskset.simulate import Simulation, simulate_cohort

__all__ = ["COLUMNS", "ROWS", "TREATMENT", "CohortBenchmark"]

ROWS, COLUMNS = 434_866, 9_811
DENSITY = 0.0289
EVENTS = 0.015
COMPETING = {"cox": 0.0, "finegray": 0.03}
EFFECT = -0.2
TREATMENT = "treatment"


@dataclass(frozen=True)
class CohortBenchmark:
    """The options of `cohort`."""

    name: ClassVar[str] = "cohort"
    title: ClassVar[str] = "A cohort of the size of the real study"
    words: ClassVar[str] = (
        "Simulated like the study of section 3.4 of Yang et al. (2024): covariates from rare to "
        f"common, of density {DENSITY:.2%}; about {EVENTS:.1%} of the rows have the event, for "
        f"Fine-Gray {COMPETING['finegray']:.0%} more a competing one; 200 covariates have an "
        f"effect; the treatment is not penalised, its true coefficient is {EFFECT}. The KKT "
        "residual of a cross-validation is the largest of all replicates and of the final fit."
    )

    models: Sequence[str] = MODELS
    rows: int = ROWS
    columns: int = COLUMNS
    folds: int = 10
    repeats: int = 10
    replicates: int = 200
    threads: int | None = None
    device: str = "cpu"
    seed: int = 123
    peers: ClassVar[None] = None

    def records(self, progress: ProgressCall) -> Iterator[BenchmarkRecord]:
        """Every step of the analysis, for each model."""
        for k, model in enumerate(self.models):
            for share, detail, record in self._steps(model):
                if record is None:
                    progress((k + share) / len(self.models), f"{titled(model)}: {detail}")
                else:
                    yield record

    def _steps(self, model: str) -> Iterator[tuple[float, str, BenchmarkRecord | None]]:
        yield 0.0, "drawing", None
        self._warm_up(model)
        drawn = measure(lambda: self._draw(model, self.rows, self.columns))
        case = self._case(model, drawn.result)
        yield 0.0, "", case.record(step="draw", **drawn.times)
        yield 0.05, "cross-validation", None
        design = measure(lambda: case.design)
        yield 0.0, "", case.record(step="design", **design.times)
        fitted = self._selector(model, self.folds, self.repeats)
        done = measure(lambda: fitted.fit(case.design, case.y))
        penalty = fitted.best_penalty_
        judged = case.judge(fitted.coef_, penalty)
        found = fitted.cross_validation_
        step = f"{self.folds} folds x {self.repeats}, and the fit"
        threads = case.loss.runtime.n_threads if self.threads is None else self.threads
        facts: dict[str, Any] = {"threads": threads, "tool": called(self.device)}
        kkt = max(judged.kkt, found.largest_kkt)
        note = f"{len(found.penalties)} penalties"
        yield 0.0, "", case.record(
            step=step, l1=penalty.l1, note=note, objective=judged.objective,
            n_nonzero=judged.n_nonzero, kkt=kkt, **facts, **done.times,
        )  # fmt: skip
        yield 0.6, "profile likelihood of the treatment", None
        profile = measure(lambda: fitted.confidence_interval([TREATMENT], method="profile"))
        note = _said(*profile.result[TREATMENT])
        yield 0.0, "", case.record(step="profile interval", note=note, **facts, **profile.times)
        yield 0.7, "bootstrap of the treatment", None
        bootstrap = measure(
            lambda: fitted.bootstrap(self.replicates, self.seed, parameters=TREATMENT)
        )
        note = _said(*bootstrap.result.interval()[TREATMENT])
        if bootstrap.result.n_failed:
            note += f", {bootstrap.result.n_failed} failed"
        step = f"{self.replicates} bootstrap replicates"
        yield 0.0, "", case.record(step=step, note=note, **facts, **bootstrap.times)

    def _draw(self, model: str, rows: int, columns: int) -> Simulation:
        return simulate_cohort(
            rows, columns, DENSITY, self.seed, events=EVENTS, competing=COMPETING[model],
            treatment=EFFECT,
        )  # fmt: skip

    def _case(self, model: str, cohort: Simulation) -> Case:
        names = (*(f"x{j}" for j in range(cohort.coef.size - 1)), TREATMENT)
        return Case(model, cohort, names, experiment=self.name)

    def _selector(self, model: str, folds: int, repeats: int) -> CoxCV | FineGrayCV:
        return SELECTORS[model](
            L1(unpenalized=[TREATMENT]), folds=folds, repeats=repeats, seed=self.seed,
            n_threads=self.threads, max_iter=1000, device=self.device,
        )  # fmt: skip

    def _warm_up(self, model: str) -> None:
        """Compile by the same analysis of a small cohort with more events."""
        cohort = simulate_cohort(2000, 30, 0.1, 1, events=0.2, competing=5 * COMPETING[model])
        case = self._case(model, cohort)
        fitted = self._selector(model, 3, 1).fit(case.design, case.y)
        fitted.confidence_interval([TREATMENT], method="profile")
        fitted.bootstrap(40, 1, parameters=TREATMENT)

    def picture(self, records: Sequence[BenchmarkRecord]) -> Figure:
        """Seconds of every step."""
        return time_bars(
            {
                titled(str(model)): {r.step: float(r.seconds or 0) for r in some}
                for (model,), some in grouped(records, "model")
            }
        )


def _said(lower: float, upper: float) -> str:
    return f"{lower:.4f} to {upper:.4f}"
