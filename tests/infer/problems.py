"""Small Cox problems with every difficulty, and their answers straight from the definitions.

`Steps` writes the hazard as a list of single steps (one per event time for Breslow, one per tied
event for Efron), each with the risk set and the share of every row in it. Every quantity of the
package is then a sum over steps, in 80-bit floats, which hold exp(2000) without any shift.
"""

from dataclasses import dataclass, replace

import numpy as np

from riskset._runtime import Runtime
from riskset.data.design import Design
from riskset.data.outcome import Outcome
from riskset.infer.variance import GeneralizedInverse, influence
from riskset.model.cox import CoxLoss
from riskset.model.loss import Loss
from storages import Store

LONG = np.longdouble
RUNTIME = Runtime(1)


@dataclass(frozen=True)
class Problem:
    """An outcome and its covariates, with a linear predictor that is not the estimate."""

    outcome: Outcome
    x: np.ndarray
    eta: np.ndarray
    store: Store = Design.from_dense

    @property
    def design(self) -> Design:
        return self.store(self.x)

    def stored(self, store: Store) -> "Problem":
        """The same in another storage."""
        return replace(self, store=store)

    def loss(self, ties: str) -> CoxLoss:
        return CoxLoss(self.outcome, ties, RUNTIME)

    def take(self, rows: np.ndarray) -> "Problem":
        o = self.outcome
        return Problem(
            Outcome.build(
                o.time[rows],
                o.event[rows],
                entry=None if o.entry is None else o.entry[rows],
                weight=o.weight[rows],
                stratum=o.stratum[rows],
                offset=o.offset[rows],
                cluster=None if o.cluster is None else o.cluster[rows],
            ),
            self.x[rows],
            self.eta[rows],
            self.store,
        )


def make(
    n: int = 40,
    *,
    seed: int = 0,
    n_times: int = 12,
    late: bool = False,
    n_strata: int = 1,
    weights: tuple[float, ...] = (),
    shift: float = 0.0,
    p: int = 3,
) -> Problem:
    rng = np.random.default_rng(seed)
    time = rng.integers(1, n_times + 1, n).astype(float)
    event = rng.random(n) < 0.6
    event[0] = True
    weight = rng.choice(weights, n) if weights else None
    if weight is not None:
        weight[0] = 1.0
    x = rng.normal(size=(n, p))
    x[:, -1] = rng.random(n) < 0.4
    if p > 1:
        x[:, 0] = 40.0 + 10.0 * x[:, 0]
    eta = 0.7 * rng.normal(size=n) + shift
    outcome = Outcome.build(
        time,
        event,
        entry=time - rng.integers(1, n_times + 1, n) if late else None,
        weight=weight,
        stratum=rng.integers(0, n_strata, n) if n_strata > 1 else None,
        cluster=rng.integers(0, max(2, n // 3), n),
    )
    return Problem(outcome, x, eta)


def one_early_row() -> Problem:
    """The first row to fail has the linear predictor 2000."""
    problem = make(30, seed=5)
    time = problem.outcome.time + 1.0
    time[3] = 0.5
    event = problem.outcome.event.copy()
    event[3] = 1
    eta = problem.eta.copy()
    eta[3] = 2000.0
    return Problem(Outcome.build(time, event, cluster=problem.outcome.cluster), problem.x, eta)


PROBLEMS = {
    "ties": make(),
    "no_ties": make(30, seed=1, n_times=100_000),
    "strata": make(60, seed=2, n_strata=4),
    "late_entry": make(50, seed=3, late=True),
    "weights": make(50, seed=4, weights=(0.0, 1.0, 2.0)),
    "fractions": make(50, seed=6, weights=(0.3, 1.0, 2.7)),
    "everything": make(80, seed=7, late=True, n_strata=3, weights=(0.0, 0.5, 1.0, 2.0)),
    "eta_plus_800": make(40, seed=8, shift=800.0),
    "one_early_row": one_early_row(),
    "all_tied": make(12, seed=9, n_times=1),
    "one_row": make(1, seed=10),
    "two_rows": make(2, seed=11, n_times=2),
}


@dataclass(frozen=True)
class Steps:
    """Single steps of the hazard; arrays over (steps,) or (steps, rows), in the caller's order."""

    stratum: np.ndarray
    time: np.ndarray
    mass: np.ndarray
    hazard: np.ndarray
    share: np.ndarray
    risk: np.ndarray
    is_own: np.ndarray
    mean: np.ndarray

    @classmethod
    def of(cls, problem: Problem, ties: str, x: np.ndarray | None = None) -> "Steps":
        o = problem.outcome
        x = LONG(problem.x if x is None else x)
        entry = np.full(o.n_rows, -np.inf) if o.entry is None else o.entry
        is_event = o.is_event & (o.weight > 0)
        risk = o.weight * np.exp(LONG(problem.eta))
        out = []
        for s in np.unique(o.stratum):
            for t in np.unique(o.time[is_event & (o.stratum == s)]):
                tied = is_event & (o.stratum == s) & (o.time == t)
                at_risk = (o.stratum == s) & (entry < t) & (t <= o.time)
                m = int(tied.sum()) if ties == "efron" else 1
                for k in range(m):
                    share = at_risk * np.where(tied, LONG(1) - LONG(k) / m, LONG(1))
                    r = risk * share
                    mass = LONG(o.weight[tied].sum()) / m
                    mean = (r @ x) / r.sum()
                    out.append((s, t, mass, mass / r.sum(), share, r, tied / LONG(m), mean))
        return cls(*(np.array(column) for column in zip(*out, strict=True)))


def expected(problem: Problem, steps: Steps) -> np.ndarray:
    """Expected events of each row (n,), per unit of weight."""
    return np.exp(LONG(problem.eta)) * (steps.hazard @ steps.share)


def score_rows(problem: Problem, steps: Steps, x: np.ndarray) -> np.ndarray:
    """Score residuals (n, q) by summing (x - mean) dM over the steps."""
    out = np.zeros(x.shape, dtype=LONG)
    for k in range(steps.time.size):
        observed = steps.is_own[k]
        hazard = np.exp(LONG(problem.eta)) * steps.share[k] * steps.hazard[k]
        out += (observed - hazard)[:, None] * (LONG(x) - steps.mean[k])
    out[problem.outcome.weight == 0] = 0
    return out


def information(steps: Steps, x: np.ndarray, factor: np.ndarray | None = None) -> np.ndarray:
    """Sum over steps of factor times mass times the covariance of x over the risk set."""
    out = np.zeros((x.shape[1], x.shape[1]), dtype=LONG)
    for k in range(steps.time.size):
        centred = LONG(x) - steps.mean[k]
        f = LONG(1) if factor is None else factor[k]
        r = steps.risk[k] / steps.risk[k].sum()
        out += f * steps.mass[k] * (centred.T * r) @ centred
    return out


def newton(loss: CoxLoss, design: Design, n_steps: int = 25) -> np.ndarray:
    """Coefficients in the user's units, by plain Newton steps."""
    coef = np.zeros(design.n_features)
    every = np.arange(design.n_features)
    for _ in range(n_steps):
        eta = design.dot(coef) + loss.offset
        score = design.cross(loss.evaluate(eta).residual, runtime=loss.runtime)
        step = np.linalg.lstsq(loss.information(design, eta, every), score, rcond=1e-12)[0]
        coef = coef + step / design.scale
    return coef


def dfbeta_residuals(loss: Loss, design: Design, eta: np.ndarray, inverse: GeneralizedInverse):
    """Change of the coefficients per unit of each row's weight, in the user's units (n, p)."""
    values = influence(loss, design, eta, inverse, np.arange(design.n_features)) / design.scale
    weight = loss.outcome.weight[:, None]
    return np.divide(values, weight, out=np.zeros_like(values), where=weight > 0)
