"""Small cohorts with columns of every kind, for the tests of the likelihood."""

from dataclasses import dataclass, replace

import numpy as np

from riskset._runtime import Runtime
from riskset.data.design import Design
from riskset.data.outcome import Outcome
from riskset.model.cox import CoxLoss, Ties
from storages import Store

RUNTIME = Runtime(1)


@dataclass(frozen=True, eq=False)
class Cohort:
    """Covariates, an outcome, and a linear predictor near the truth."""

    x: np.ndarray
    design: Design
    outcome: Outcome
    eta: np.ndarray

    def loss(self, ties: Ties) -> CoxLoss:
        return CoxLoss(self.outcome, ties, RUNTIME)

    def stored(self, store: Store) -> "Cohort":
        """The same in another storage."""
        return replace(self, design=store(self.x))

    @property
    def columns(self) -> np.ndarray:
        return np.arange(self.design.n_features)

    def gradient(self, ties: Ties, eta: np.ndarray) -> np.ndarray:
        return self.design.cross(self.loss(ties).evaluate(eta).residual, runtime=RUNTIME)


KINDS = ("binary", "valued", "dense")


def covariates(rng: np.random.Generator, n: int, each: int, kinds: tuple[str, ...]) -> np.ndarray:
    """`each` columns of every kind, related to one another, in units of very different size."""
    burden = rng.normal(size=n)
    made = []
    for kind in kinds:
        level = 0.6 * burden[:, None] + rng.normal(size=(n, each))
        present = level > rng.uniform(0.3, 1.8, each)
        unit = 10.0 ** rng.integers(-3, 4, each)
        made.append(
            {
                "binary": present * 1.0,
                "valued": present * (2 + rng.exponential(size=(n, each))) * unit,
                "dense": (level + 5) * unit,
            }[kind]
        )
    return np.concatenate(made, axis=1)


def cohort(
    n: int,
    *,
    seed: int,
    each: int = 2,
    kinds: tuple[str, ...] = KINDS,
    n_times: int = 0,
    late: bool = False,
    n_strata: int = 1,
    weights: tuple[float, ...] = (),
    shift: float = 0.0,
    effect: float = 0.3,
) -> Cohort:
    rng = np.random.default_rng(seed)
    x = covariates(rng, n, each, kinds)
    z = (x - x.mean(axis=0)) / np.maximum(x.std(axis=0), 1e-300)
    eta = z @ (effect * rng.normal(size=x.shape[1]))
    time = rng.exponential(np.exp(-np.clip(eta, -4, 4)))
    time = time + 1e-3 if not n_times else np.ceil(n_times * time / np.quantile(time, 0.95))
    extra: dict[str, object] = {}
    if late:
        extra["entry"] = time * rng.choice([-1.0, 0.3, 0.8], n)
    if n_strata > 1:
        extra["stratum"] = rng.integers(0, n_strata, n)
    if weights:
        extra["weight"] = rng.choice(weights, n)
    outcome = Outcome.build(time, rng.random(n) < 0.6, **extra)
    return Cohort(x, Design.from_dense(x), outcome, eta + shift)


HALVES = (0.0, 1.0, 2.0, 0.5)

COHORTS = {
    "no_ties": cohort(70, seed=1),
    "tied": cohort(70, seed=2, n_times=8),
    "strata": cohort(90, seed=3, n_times=15, n_strata=4),
    "weights": cohort(80, seed=4, n_times=8, weights=HALVES),
    "late": cohort(80, seed=5, n_times=12, late=True),
    "late_strata_weights": cohort(120, seed=6, n_times=12, late=True, n_strata=3, weights=HALVES),
    "shifted": cohort(70, seed=7, n_times=8, shift=800.0),
    "wide": cohort(60, seed=8, n_times=8, effect=150.0),
    "wide_late": cohort(60, seed=9, n_times=8, effect=150.0, late=True),
}
