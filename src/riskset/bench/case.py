"""A simulated problem, and the judge of every answer to it."""

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np

from riskset._runtime import Runtime
from riskset._types import AnyArray, Features, Matrix, Rows
from riskset._version import __version__
from riskset.bench.measure import measure, processor
from riskset.bench.record import BenchmarkRecord
from riskset.data.design import Design
from riskset.data.outcome import Outcome, Surv
from riskset.estimators.cox import Cox
from riskset.estimators.crossval import CoxCV, FineGrayCV
from riskset.estimators.finegray import FineGray
from riskset.model.censoring import CensoringDistribution
from riskset.model.cox import CoxLoss
from riskset.model.finegray import FineGrayLoss
from riskset.model.loss import Loss
from riskset.model.penalty import L1, L2, ElasticNet, Penalty
from riskset.simulate import Simulation, simulate_cox, simulate_finegray
from riskset.solve.optimality import Problem, in_stored_units

__all__ = [
    "ESTIMATORS",
    "MODELS",
    "SELECTORS",
    "WARM_UP_ROWS",
    "Case",
    "Judged",
    "called",
    "penalty_of",
    "warm_up",
]

ESTIMATORS: Mapping[str, type[Cox] | type[FineGray]] = {"cox": Cox, "finegray": FineGray}
SELECTORS: Mapping[str, type[CoxCV] | type[FineGrayCV]] = {"cox": CoxCV, "finegray": FineGrayCV}
SIMULATORS = {"cox": simulate_cox, "finegray": simulate_finegray}
MODELS = tuple(ESTIMATORS)


class Judged(NamedTuple):
    """What an answer is worth."""

    objective: float
    kkt: float
    n_nonzero: int


@dataclass(frozen=True, eq=False)
class Case:
    """Data and a model.

    Attributes
    ----------
    model : "cox" or "finegray"
    cohort : Simulation
    names : tuple of str or None
        Of the covariates.
    ties : "breslow" or "efron"
    entry : (n,) float64 or None
        Times of late entry.
    """

    model: str
    cohort: Simulation
    names: tuple[str, ...] | None = None
    experiment: str = field(kw_only=True)
    ties: Literal["breslow", "efron"] = field(default="breslow", kw_only=True)
    entry: Rows | None = field(default=None, kw_only=True)

    @classmethod
    def draw(
        cls, experiment: str, model: str, n_rows: int, n_columns: int, density: float, seed: int
    ) -> "Case":
        """The paper's design."""
        cohort = SIMULATORS[model](n_rows, n_columns, density, seed)
        return cls(model, cohort, experiment=experiment)

    @functools.cached_property
    def _built(self) -> tuple[Design, float]:
        cohort = self.cohort
        built = measure(
            lambda: Design.from_csc(
                cohort.indptr, cohort.indices, None, cohort.time.size, self.names
            )
        )
        return built.result, built.seconds

    @property
    def design(self) -> Design:
        """The covariates."""
        return self._built[0]

    @property
    def seconds_to_build(self) -> float:
        """How long that took."""
        return self._built[1]

    @property
    def X(self) -> AnyArray | Design:
        """What a fit starts from."""
        return self.design

    @functools.cached_property
    def y(self) -> AnyArray:
        """Times and events."""
        return Surv(self.cohort.time, self.cohort.event, self.entry)

    @property
    def estimator(self) -> type[Cox] | type[FineGray]:
        """Who fits the model."""
        return ESTIMATORS[self.model]

    @functools.cached_property
    def loss(self) -> Loss:
        """The log partial likelihood."""
        outcome = Outcome.build(self.cohort.time, self.cohort.event, entry=self.entry, cause=1)
        runtime = Runtime.select("cpu")
        if self.model == "cox":
            return CoxLoss(outcome, self.ties, runtime)
        return FineGrayLoss(outcome, CensoringDistribution.estimate(outcome), runtime)

    @functools.cached_property
    def problem(self) -> Problem:
        """What the certificate needs to know once."""
        return Problem.prepare(self.design, self.loss)

    def judge(self, coef: Features, penalty: Penalty | None) -> Judged:
        """Objective and KKT residual of anybody's coefficients, in the user's units."""
        none = np.zeros(coef.size)
        l1, l2 = (none, none) if penalty is None else penalty.arrays(self.design.names)
        if not np.isfinite(coef).all():
            return Judged(np.inf, np.inf, int(np.count_nonzero(coef)))
        stored = coef * self.design.scale
        eta = self.design.product(stored, runtime=self.loss.runtime)
        now = self.loss.evaluate(eta)
        gradient = self.design.cross(now.residual, runtime=self.loss.runtime)
        in_units = in_stored_units(self.design, l1, l2)
        residual = self.problem.residual(now, gradient, stored, *in_units)
        return Judged(
            float(-now.log_likelihood + l1 @ np.abs(coef) + 0.5 * (l2 @ coef**2)),
            float(residual.max(initial=0.0)) / self.problem.kkt_scale,
            int(np.count_nonzero(coef)),
        )

    def judge_path(self, coefs: Matrix, penalties: Sequence[Penalty | None]) -> Judged:
        """That of the last of several penalties, with the largest KKT residual of all."""
        each = [self.judge(b, penalty) for b, penalty in zip(coefs, penalties, strict=True)]
        return each[-1]._replace(kkt=max(one.kkt for one in each))

    def fitted(
        self,
        penalty: Penalty | None,
        *,
        threads: int,
        tol: float,
        repeats: int = 1,
        enough: float = math.inf,
        then: Callable[[Any], object] = lambda model: None,
        options: Mapping[str, Any] = MappingProxyType({}),
        **known: Any,
    ) -> BenchmarkRecord:
        """How long a fit takes, and what it is worth; `then` is asked of the model, too."""
        ties: dict[str, Any] = {} if self.ties == "breslow" else {"ties": self.ties}
        model = self.estimator(
            penalty, tol=tol, n_threads=threads, max_iter=1000, **ties, **options
        )
        done = measure(lambda: then(model.fit(self.X, self.y)), repeats, enough)
        l1, l2 = (0.0, 0.0) if penalty is None else (penalty.l1, penalty.l2)
        facts: dict[str, Any] = {
            "threads": threads,
            "l1": l1,
            "l2": l2 or None,
            "tol": tol,
            "note": "" if model.status_ == "converged" else model.status_,
        }
        return self.record(
            **(facts | known), **done.times, **self.judge(model.coef_, penalty)._asdict()
        )

    @property
    def n_entries(self) -> int:
        """Non-zeros of the covariates."""
        return self.cohort.indices.size

    def write_columns(self, folder: Path) -> Mapping[str, object]:
        """Write the covariates as other programs read them; facts for the task."""
        self.cohort.indptr.astype(np.float64).tofile(folder / "indptr.bin")
        self.cohort.indices.tofile(folder / "indices.bin")
        return {}

    def record(self, **known: Any) -> BenchmarkRecord:
        """A record of this problem."""
        cohort = self.cohort
        facts: dict[str, Any] = {
            "experiment": self.experiment,
            "model": self.model,
            "n_rows": cohort.time.size,
            "n_columns": cohort.coef.size,
            "n_entries": self.n_entries,
            "n_events": int((cohort.event == 1).sum()),
            "version": __version__,
            "processor": processor(),
        }
        return BenchmarkRecord(**(facts | known))


def penalty_of(l1: float, l2: float = 0.0) -> Penalty | None:
    """None without a strength."""
    if l1 > 0 and l2 > 0:
        return ElasticNet(l1=l1, l2=l2)
    if l2 > 0:
        return L2(l2)
    return L1(l1) if l1 > 0 else None


def called(device: str) -> str:
    """What tables call riskset on a device."""
    return "riskset" if device == "cpu" else f"riskset, {device}"


WARM_UP_ROWS = 12_000
"""Rows of work that is not measured: enough for the kernels that only many rows need."""


def warm_up(model: str, **options: Any) -> None:
    """Have all kernels compiled, or loaded, by a fit that is not measured."""
    case = Case.draw("", model, WARM_UP_ROWS, 40, 0.05, 1)
    ESTIMATORS[model](**options).fit(case.design, case.y)
