"""Fits and paths on dense tables: few columns and many rows, or more columns than rows."""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from riskset._types import Matrix
from riskset.bench.case import SELECTORS, WARM_UP_ROWS, Case, penalty_of
from riskset.bench.experiment import TOL, WorkExperiment, dots
from riskset.bench.measure import Measurement, measure
from riskset.bench.record import BenchmarkRecord
from riskset.bench.works import DENSE, ChosenWork
from riskset.data.design import Design
from riskset.estimators.path import PathResult, path
from riskset.model.penalty import L1
from riskset.plot.timings import Figure
from riskset.simulate import Simulation

__all__ = ["Dense", "DenseCase"]

N_SIGNALS = 20
"""Columns that matter."""
RATIO_WIDE, RATIO_LONG = 0.01, 1e-4
"""Last strength of a path divided by the first, with more columns than rows and with fewer."""
N_TIMES = 300
FOLDS = 10
COMPETING_SHARE = 0.5
"""Of the censored rows of a Fine-Gray model."""


@dataclass(frozen=True, eq=False)
class DenseCase(Case):
    """Independent standard normal covariates `x` (n, p), of which 20 matter; a third censored."""

    x: Matrix = field(kw_only=True)

    @classmethod
    def normal(
        cls,
        experiment: str,
        n_rows: int,
        n_columns: int,
        seed: int,
        *,
        model: str = "cox",
        ties: Literal["breslow", "efron"] = "breslow",
        has_ties: bool = False,
        is_late: bool = False,
    ) -> "DenseCase":
        """Draw the covariates and the times."""
        rng = np.random.default_rng(seed)
        x = rng.standard_normal((n_rows, n_columns))
        coef = np.zeros(n_columns)
        coef[:N_SIGNALS] = rng.normal(0, 0.3, coef[:N_SIGNALS].size)
        death, censored = rng.exponential(np.exp(-x @ coef)), rng.exponential(2.0, n_rows)
        time, event = np.minimum(death, censored), (death <= censored).astype(np.int64)
        if has_ties:
            last = np.quantile(time, 0.99)
            time = np.ceil(np.minimum(time, last) * N_TIMES / last)
        if model == "finegray":
            event[(event == 0) & (rng.random(n_rows) < COMPETING_SHARE)] = 2
        entry = time * rng.uniform(0, 0.5, n_rows) if is_late else None
        nothing = np.zeros(0, dtype=np.int32)
        cohort = Simulation(np.zeros(n_columns + 1, dtype=np.int64), nothing, time, event, coef)
        return cls(model, cohort, experiment=experiment, ties=ties, entry=entry, x=x)

    @functools.cached_property
    def _built(self) -> tuple[Design, float]:
        built = measure(lambda: Design.from_dense(self.x, self.names))
        return built.result, built.seconds

    @property
    def X(self) -> Matrix:
        """The table as it comes."""
        return self.x

    @property
    def n_entries(self) -> int:
        """Numbers of the table."""
        return self.x.size

    def write_columns(self, folder: Path) -> Mapping[str, object]:
        """Write the table by columns; facts for the task."""
        np.asfortranarray(self.x).ravel(order="K").tofile(folder / "x.bin")
        return {"is_dense": 1}


@dataclass(frozen=True)
class Variant:
    """What makes a kind of work: how its data are drawn, what it fits, and what it needs."""

    data: Mapping[str, Any] = field(default_factory=dict)
    l1_ratio: float = 1.0
    then: Callable[[Any], object] = lambda model: None
    asked: Mapping[str, Any] = field(default_factory=dict)
    """Of peers."""


def _errors(model: Any) -> object:
    return model.standard_error_


def _robust_errors(model: Any) -> object:
    return model.robust_standard_error_


VARIANTS: Mapping[str, Variant] = {
    "fit": Variant(),
    "errors": Variant(then=_errors, asked={"needs": ("errors",)}),
    "ties": Variant({"has_ties": True}, then=_errors, asked={"needs": ("breslow", "errors")}),
    "efron": Variant(
        {"has_ties": True, "ties": "efron"}, then=_errors, asked={"needs": ("efron", "errors")}
    ),
    "late": Variant({"is_late": True}, then=_errors, asked={"needs": ("late", "errors")}),
    "robust": Variant(then=_robust_errors, asked={"needs": ("robust",), "robust": 1}),
    "path": Variant(),
    "net": Variant(l1_ratio=0.5),
    "finegray": Variant({"model": "finegray"}),
    "crossval": Variant(),
}


@dataclass(frozen=True)
class Dense(WorkExperiment):
    """The options of `dense`."""

    name: ClassVar[str] = "dense"
    title: ClassVar[str] = "Fits and paths on dense tables"
    words: ClassVar[str] = (
        "Independent standard normal covariates. A fit has no penalty; a path has one of "
        "decreasing strength. riskset starts from a NumPy array, and its time includes the "
        "conversion. Other programs have their default tolerances unless the table shows one, and "
        "their time excludes 'prepare'. Objective and KKT residual are computed by riskset in "
        "double precision; of a path, the objective is that of the last strength and the residual "
        "the largest of all."
    )
    kinds = DENSE

    def warm_up(self) -> None:
        """See `WorkExperiment.warm_up`."""
        for model in ("cox", "finegray"):
            wide = DenseCase.normal("", 80, 200, 1, model=model)
            path(wide.estimator(L1(1.0)), wide.x, wide.y, n_penalties=10)
        for variant in VARIANTS.values():
            few = DenseCase.normal("", WARM_UP_ROWS, 5, 1, **variant.data)
            few.fitted(None, threads=1, tol=TOL, then=variant.then)

    def measured(self, work: ChosenWork) -> Iterator[BenchmarkRecord]:
        """See `WorkExperiment.measured`."""
        variant = VARIANTS[work.kind]
        n_rows, n_columns, *_ = work.sizes
        case = DenseCase.normal(self.name, n_rows, n_columns, self.seed, **variant.data)
        if len(work.sizes) == 2:
            for threads in self.counts:
                yield case.fitted(
                    None, threads=threads, tol=TOL, then=variant.then, step=work.kind,
                    **self.timing,
                )  # fmt: skip
            yield from self.beside(case, 0.0, step=work.kind, **variant.asked)
            return
        strengths = _strengths(case, work.sizes[2], variant.l1_ratio)
        for threads in self.counts:
            one = self._path(case, work, strengths, threads)
            if work.kind != "crossval":
                yield one
                continue
            assert one.seconds is not None
            yield self._selected(case, threads, one.seconds)
        if work.kind != "crossval":
            l1, l2 = (share * float(strengths[-1]) for share in _shares(variant))
            yield from self.beside(case, l1, l2=l2, step=work.kind, strengths=strengths)

    def _path(
        self, case: DenseCase, work: ChosenWork, strengths: NDArray[np.float64], threads: int
    ) -> BenchmarkRecord:
        l1, l2 = _shares(VARIANTS[work.kind])
        each = (penalty_of(l1 * s, l2 * s) for s in strengths.tolist())
        penalties = [penalty for penalty in each if penalty is not None]
        last = penalties[-1]
        model = case.estimator(last, tol=TOL, n_threads=threads)
        done: Measurement[PathResult] = measure(
            partial(path, model, case.x, case.y, penalties=penalties), **self.timing
        )
        judged = case.judge_path(done.result.coefs, penalties)
        return case.record(
            threads=threads, step=work.kind, tol=TOL, l1=last.l1, l2=last.l2 or None,
            **done.times, **judged._asdict(),
        )  # fmt: skip

    def _selected(self, case: DenseCase, threads: int, path_seconds: float) -> BenchmarkRecord:
        model = SELECTORS[case.model](folds=FOLDS, repeats=1, n_threads=threads, seed=self.seed)
        done = measure(lambda: model.fit(case.x, case.y))
        found, penalty = model.cross_validation_, model.best_penalty_
        judged = case.judge(model.coef_, penalty)
        ratio = done.seconds / path_seconds
        return case.record(
            threads=threads, step="crossval", l1=penalty.l1, objective=judged.objective,
            n_nonzero=judged.n_nonzero, kkt=max(judged.kkt, found.largest_kkt),
            note=f"{len(found.penalties)} penalties, {ratio:.1f} paths", **done.times,
        )  # fmt: skip

    def picture(self, records: Sequence[BenchmarkRecord]) -> Figure:
        """Seconds of each program on each problem."""
        return dots(records)


def _shares(variant: Variant) -> tuple[float, float]:
    """Of L1 and L2 in a strength."""
    return variant.l1_ratio, 1 - variant.l1_ratio


def _strengths(case: DenseCase, n: int, l1_ratio: float = 1.0) -> NDArray[np.float64]:
    """From the strength at which every coefficient is 0, equally spaced on a log scale."""
    problem = case.problem
    first = float(np.abs(problem.gradient_at_zero * case.design.scale).max()) / l1_ratio
    ratio = RATIO_WIDE if case.x.shape[1] > case.x.shape[0] else RATIO_LONG
    return first * np.geomspace(1.0, ratio, n)
