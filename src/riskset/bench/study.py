"""The steps of a cohort study before its outcomes: propensity score, matching, balance.

Each at the size that it may have in claims data, on simulated people.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from scipy.special import expit

from riskset._runtime import available_threads
from riskset._types import Index, Rows
from riskset._version import __version__
from riskset.bench.cohort import COLUMNS, DENSITY, ROWS
from riskset.bench.experiment import ProgressCall
from riskset.bench.measure import measure, processor
from riskset.bench.record import BenchmarkRecord
from riskset.cohort.adjustments.matching import match
from riskset.cohort.covariates.covariate_balance import balance
from riskset.cohort.population import Population
from riskset.cohort.propensity.overlap import auc
from riskset.cohort.propensity.propensity_model import propensity_score
from riskset.data.column_statistics import entry_counts
from riskset.data.design import Design
from riskset.plot.timings import Figure, time_bars
from riskset.simulate import simulate_cohort

__all__ = ["PEOPLE", "DrawnPeople", "StudyBenchmark"]

PEOPLE, COVARIATES = 1_000_000, 10_000
MATCHED_DENSITY = 0.003
SIDES: tuple[Literal["before", "after"], ...] = ("before", "after")
CONFOUNDING = 1.0
"""Standard deviation of the log odds of treatment: with the true scores an AUC of about 0.75."""


@dataclass(frozen=True)
class StudyBenchmark:
    """The options of `study`; `rows` and `columns` are those of the propensity score."""

    name: ClassVar[str] = "study"
    title: ClassVar[str] = "Propensity score, matching and balance"
    words: ClassVar[str] = (
        "Simulated people. The propensity score is of covariates as in the cohort of "
        f"`riskset bench cohort`, of density {DENSITY:.2%}; 200 of them make treatment likelier or "
        f"less likely, so that its log odds have a standard deviation of {CONFOUNDING:g}. The KKT "
        "residual is the largest of all replicates and of the final fit. Matching is 1 to 1 on the "
        "true scores, within 0.2 standard deviations of their logits; balance is that of all "
        f"covariates, of density {MATCHED_DENSITY:.1%}, before and after it. The designs are there "
        "before the clock starts."
    )

    rows: int = ROWS
    columns: int = COLUMNS
    folds: int = 10
    repeats: int = 1
    people: int = PEOPLE
    covariates: int = COVARIATES
    threads: int | None = None
    seed: int = 123
    peers: ClassVar[None] = None

    def records(self, progress: ProgressCall) -> Iterator[BenchmarkRecord]:
        """Matching, balance, and the propensity score."""
        progress(0.0, "drawing people to match")
        self._warm_up()
        drawn = DrawnPeople.of(self.people, self.covariates, MATCHED_DENSITY, self.seed)
        scored = Population(drawn.treatment, expit(drawn.log_odds))
        progress(0.2, "matching")
        matched = measure(lambda: match(scored))
        pairs = f"{matched.result.n_target:,} pairs"
        yield self._record("match", scored.n_rows, None, note=pairs, **matched.times)
        progress(0.25, "balance")
        found = measure(lambda: balance(drawn.design, matched.result, n_threads=self.threads))
        before, after = (found.result.summary(side)["max"] for side in SIDES)
        note = f"largest difference {before:.3f} before, {after:.3f} after"
        yield self._record("balance", scored.n_rows, drawn.design, note=note, **found.times)
        progress(0.3, "drawing people for a propensity score")
        drawn = DrawnPeople.of(self.rows, self.columns, DENSITY, self.seed)
        progress(0.4, "propensity score")
        yield self.score(drawn)

    def score(self, drawn: "DrawnPeople") -> BenchmarkRecord:
        """The propensity score, by cross-validation."""
        design = drawn.design
        done = measure(
            lambda: propensity_score(
                drawn.treatment, design, folds=self.folds, repeats=self.repeats, seed=self.seed,
                n_threads=self.threads, progress=False,
            )
        )  # fmt: skip
        score = done.result
        cv, penalty = score.cross_validation, score.penalty
        facts: dict[str, Any] = {"kkt": score.kkt, "n_nonzero": int(np.count_nonzero(score.coef))}
        note: str = score.status
        if cv is not None and penalty is not None:
            facts |= {"kkt": max(score.kkt, cv.largest_kkt), "l1": penalty.l1}
            note = f"AUC {auc(score.people).auc:.3f}, {len(cv.penalties)} penalties"
        step = f"propensity score, {self.folds} folds x {self.repeats}"
        return self._record(step, design.n_rows, design, note=note, **facts, **done.times)

    def _record(
        self, step: str, n_rows: int, design: Design | None, **known: Any
    ) -> BenchmarkRecord:
        if design is not None:
            n_entries = int(entry_counts(design).sum())
            known |= {"n_columns": design.n_features, "n_entries": n_entries}
        return BenchmarkRecord(
            experiment=self.name, n_rows=n_rows, version=__version__, step=step,
            threads=available_threads() if self.threads is None else self.threads,
            processor=processor(), **known,
        )  # fmt: skip

    def _warm_up(self) -> None:
        """Compile by the same steps of few people."""
        few = DrawnPeople.of(2000, 30, 0.1, 1)
        score = propensity_score(few.treatment, few.design, folds=3, repeats=1, progress=False)
        balance(few.design, match(score.people))

    def picture(self, records: Sequence[BenchmarkRecord]) -> Figure:
        """Seconds of every step."""
        return time_bars({"Steps of a study": {r.step: float(r.seconds or 0) for r in records}})


class DrawnPeople(NamedTuple):
    """People with covariates as of claims, and a treatment that depends on some of them."""

    design: Design
    treatment: Index
    log_odds: Rows
    """The true ones."""

    @classmethod
    def of(cls, n: int, p: int, density: float, seed: int) -> "DrawnPeople":
        """Of n people with p covariates."""
        cohort = simulate_cohort(n, p + 1, density, seed, confounding=CONFOUNDING)
        last = cohort.indptr[-2]
        design = Design.from_csc(cohort.indptr[:-1], cohort.indices[:last], None, n)
        treatment = np.zeros(n, dtype=np.int64)
        treatment[cohort.indices[last:]] = 1
        risk = design.dot(cohort.coef[:-1])
        return cls(design, treatment, CONFOUNDING * (risk - risk.mean()) / risk.std())
