"""How often 95 % intervals of predictions hold the truth, by the inverse information and robust.

    python bench/prediction_coverage.py      # the table of docs/coverage.md, in a minute or two
    python bench/prediction_coverage.py --cohorts 2000

Cohorts are simulated from models in which the predicted number is known. The seed fixes them.
"""

import argparse
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

import riskset as rs

N_ROWS = 300
EFFECT = np.array([0.7, -0.5])
OTHER = np.array([-0.3, 0.4])
ROW = np.array([[0.5, -0.5]])
AT = 0.5
SHARE = 0.6
"""Of the cause of interest in the Fine-Gray model, at covariates 0."""

VARIANCES = ("model", "robust")
Predicted = dict[str, tuple["rs.Predictions", float]]


class Result(NamedTuple):
    """Of one prediction by one variance, over the cohorts."""

    name: str
    variance: str
    covered: float
    below: float
    above: float
    ratio: float


def survivors(rng: np.random.Generator, rate: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Exponential times with random censoring, and who had the event."""
    time, censoring = rng.exponential(1 / rate), rng.exponential(1.5, rate.size)
    return np.minimum(time, censoring), time <= censoring


def cox(rng: np.random.Generator, variance: str) -> Predicted:
    """Survival, conditional survival and restricted mean of a Cox model."""
    x = rng.normal(size=(N_ROWS, 2))
    time, event = survivors(rng, np.exp(x @ EFFECT))
    model, rate = rs.Cox().fit(x, rs.Surv(time, event)), float(np.exp(ROW @ EFFECT)[0])
    of = model.predict_interval
    return {
        "Cox: survival": (of(ROW, AT, variance=variance), np.exp(-rate * AT)),
        "Cox: conditional survival": (
            of(ROW, 2 * AT, given=AT, variance=variance), np.exp(-rate * AT)
        ),
        "Cox: restricted mean": (
            model.predict_restricted_mean(ROW, 2 * AT, variance=variance),
            -np.expm1(-rate * 2 * AT) / rate,
        ),
    }  # fmt: skip


def pairs(rng: np.random.Generator, variance: str) -> Predicted:
    """Survival of a Cox model in whose table every person has two equal rows, as clusters."""
    x = rng.normal(size=(N_ROWS // 2, 2))
    time, event = survivors(rng, np.exp(x @ EFFECT))
    twice = np.repeat(np.arange(N_ROWS // 2), 2)
    model = rs.Cox().fit(x[twice], rs.Surv(time[twice], event[twice]), cluster=twice)
    truth = float(np.exp(-np.exp(ROW @ EFFECT) * AT)[0])
    return {
        "Cox, every row twice: survival": (
            model.predict_interval(ROW, AT, variance=variance),
            truth,
        )
    }


def fine_gray(rng: np.random.Generator, variance: str) -> Predicted:
    """Incidence of a Fine-Gray model, drawn as in the simulations of Fine and Gray (1999)."""
    x = rng.normal(size=(N_ROWS, 2))
    relative = np.exp(x @ EFFECT)
    never = (1 - SHARE) ** relative
    u = rng.random(N_ROWS)
    own = u < 1 - never
    with np.errstate(invalid="ignore"):
        first = -np.log1p(-(1 - (1 - np.where(own, u, 0.0)) ** (1 / relative)) / SHARE)
    time = np.where(own, first, rng.exponential(1 / np.exp(x @ OTHER)))
    censoring = rng.exponential(1.5, N_ROWS)
    event = np.where(time <= censoring, np.where(own, 1, 2), 0)
    model = rs.FineGray().fit(x, rs.Surv(np.minimum(time, censoring), event))
    truth = 1 - (1 - SHARE * -np.expm1(-AT)) ** float(np.exp(ROW @ EFFECT)[0])
    return {"Fine-Gray: incidence": (model.predict_interval(ROW, AT, variance=variance), truth)}


def causes(rng: np.random.Generator, variance: str) -> Predicted:
    """Incidence of a cause from cause-specific Cox models."""
    x = rng.normal(size=(N_ROWS, 2))
    rates = np.array([np.exp(x @ EFFECT), 0.7 * np.exp(x @ OTHER)])
    time, event = survivors(rng, rates.sum(axis=0))
    which = np.where(rng.random(N_ROWS) < rates[0] / rates.sum(axis=0), 1, 2)
    model = rs.CauseSpecificCox().fit(x, rs.Surv(time, event * which))
    own, other = float(np.exp(ROW @ EFFECT)[0]), 0.7 * float(np.exp(ROW @ OTHER)[0])
    truth = own / (own + other) * -np.expm1(-(own + other) * AT)
    found = model.predict_interval(ROW, AT, 1, variance=variance)
    return {"cause-specific: incidence": (found, truth)}


def measure(
    draw: Callable[[np.random.Generator, str], Predicted], variance: str, n_cohorts: int
) -> Iterator[Result]:
    """The results of one kind of cohort."""
    numbers: dict[str, list[tuple[float, float, float, float, float]]] = {}
    for rng in map(np.random.default_rng, np.random.SeedSequence(1).spawn(n_cohorts)):
        for name, (found, truth) in draw(rng, variance).items():
            values = (found.estimate, found.standard_error, found.lower, found.upper)
            numbers.setdefault(name, []).append((*(float(v[0, 0]) for v in values), truth))
    for name, rows in numbers.items():
        estimate, error, lower, upper, truth = np.array(rows).T
        below, above = float(np.mean(upper < truth)), float(np.mean(lower > truth))
        ratio = float(error.mean() / estimate.std(ddof=1))
        yield Result(name, variance, 1 - below - above, below, above, ratio)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cohorts", type=int, default=400)
    n_cohorts = parser.parse_args().cohorts
    spread = 100 * np.sqrt(0.95 * 0.05 / n_cohorts)
    print(
        f"| prediction | variance | covers the truth (± {spread:.1f}%) | lies below | lies above "
        "| mean standard error / standard deviation |"
    )
    print("|---|---|---:|---:|---:|---:|")
    for draw in (cox, pairs, fine_gray, causes):
        found = [r for variance in VARIANCES for r in measure(draw, variance, n_cohorts)]
        for r in sorted(found, key=lambda one: one.name):
            print(
                f"| {r.name} | {r.variance} | {r.covered:.1%} | {r.below:.1%} | {r.above:.1%} "
                f"| {r.ratio:.2f} |"
            )


if __name__ == "__main__":
    main()
