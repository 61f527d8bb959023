"""Small random problems of every kind, and independent judges of an answer."""

import functools
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog

from riskset._errors import InputError
from riskset._runtime import Runtime
from riskset.data.design import Design
from riskset.data.outcome import Outcome
from riskset.kernels import risk_sets_ref as ref
from riskset.model.cox import CoxLoss

RUNTIME = Runtime(1)


@dataclass
class Random:
    x: np.ndarray
    outcome: Outcome
    ties: str
    l1: np.ndarray
    l2: np.ndarray

    @property
    def design(self) -> Design:
        return Design.from_dense(self.x)

    @property
    def loss(self) -> CoxLoss:
        return CoxLoss(self.outcome, self.ties, RUNTIME)

    @property
    def free(self) -> np.ndarray:
        return (self.l1 == 0) & (self.l2 == 0)

    @property
    def spread(self) -> np.ndarray:
        w = self.outcome.weight
        mean = w @ self.x / w.sum()
        spread = np.sqrt(w @ (self.x - mean) ** 2 / w.sum())
        binary = ((self.x == 0) | (self.x == 1)).all(axis=0)
        return np.where(binary | (spread == 0), 1.0, spread)

    def pass_at(self, coef: np.ndarray) -> ref.CoxPass:
        eta = self.x @ coef + self.outcome.offset
        return ref.cox_pass(eta, self.outcome.risk, self.ties == "efron", RUNTIME)

    def kkt(self, coef: np.ndarray) -> float:
        """The certificate, from the reference kernels and the formulas alone."""
        g = self.x.T @ self.pass_at(coef).residual
        scale = np.abs(self.x.T @ self.pass_at(np.zeros_like(coef)).residual) / self.spread
        u = g - self.l2 * coef
        at_zero = np.maximum(np.abs(u) - self.l1, 0.0)
        v = np.where(coef != 0, np.abs(u - self.l1 * np.sign(coef)), at_zero) / self.spread
        top = scale.max()
        return v.max() / (top if top > 1e-10 * self.outcome.sum_events else 1.0)

    def is_separated(self) -> bool:
        """Whether the estimate is infinite: the linear programme over all event-rival pairs."""
        risk = self.outcome.risk
        z = (self.x / self.spread)[risk.order][:, self.free]
        at_risk = ref._at_risk(risk)
        group = np.repeat(np.arange(risk.group_events.size), np.diff(risk.group_ptr))
        pairs = [
            z[at_risk[group[e]] & (risk.weight > 0)] - z[e]
            for e in np.flatnonzero(risk.event_weight > 0)
        ]
        a = np.concatenate(pairs)
        if a.shape[1] == 0 or not a.any():
            return False
        best = linprog(a.sum(axis=0), A_ub=a, b_ub=np.zeros(len(a)), bounds=(-1, 1))
        return best.fun < -1e-7


@functools.cache
def random_problems() -> dict[int, Random]:
    """By seed, those of `random_problem` that have events."""
    return {seed: p for seed in range(400) if (p := random_problem(seed)) is not None}


@functools.cache
def separated_problems() -> dict[int, Random]:
    """Those with an infinite estimate."""
    return {seed: p for seed, p in random_problems().items() if p.is_separated()}


def random_problem(seed: int) -> Random | None:
    """None if the draw has no events."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.choice([6, 10, 20, 40, 100])), int(rng.choice([1, 2, 3, 5, 8]))
    time = rng.integers(1, rng.choice([4, 10, 60]), n).astype(float)
    event = rng.random(n) < rng.choice([0.3, 0.7])
    extra = {}
    if rng.random() < 0.3:
        extra["entry"] = time - rng.choice([0.5, 1, 3, 20], n)
    if rng.random() < 0.3:
        extra["stratum"] = rng.integers(0, 3, n)
    if rng.random() < 0.3:
        extra["weight"] = rng.choice([0, 1, 2.0, 0.5], n)
    if rng.random() < 0.2:
        extra["offset"] = rng.normal(size=n)
    size = rng.choice([1e-6, 1, 1e6], p)
    binary = rng.random(p) < 0.5
    x = np.where(binary, rng.random((n, p)) < 0.3, rng.normal(size=(n, p)) * size)
    unit = np.maximum(x.std(axis=0), 1e-12)
    l1, l2 = np.zeros(p), np.zeros(p)
    mode = rng.choice(["none", "l1", "l2", "both"])
    if mode in ("l1", "both"):
        l1 = rng.uniform(0.05, 2, p) * unit
    if mode in ("l2", "both"):
        l2 = rng.uniform(0.05, 2, p) * unit**2
    if mode != "none" and rng.random() < 0.4:
        l1[0] = l2[0] = 0.0
    ties = str(rng.choice(["breslow", "efron"]))
    try:
        outcome = Outcome.build(time, event, **extra)
    except InputError:
        return None
    return Random(x, outcome, ties, l1, l2)


def sparse_problem(seed: int, *, n: int = 600, p: int = 60) -> Random:
    """Rare binary columns, a few with values, most without effect."""
    rng = np.random.default_rng(seed)
    x = (rng.random((n, p)) < rng.uniform(0.02, 0.4, p)) * 1.0
    x[:, :5] *= rng.normal(size=(n, 5))
    x[:, 5:8] = rng.normal(size=(n, 3)) * [1, 100, 0.01]
    beta = rng.normal(size=p) * (rng.random(p) < 0.2) / np.maximum(x.std(axis=0), 0.2)
    time = np.ceil(20 * rng.exponential(np.exp(-x @ beta)))
    outcome = Outcome.build(time, rng.random(n) < 0.6, stratum=rng.integers(0, 2, n))
    return Random(x, outcome, "breslow", np.full(p, 1.5), np.zeros(p))
