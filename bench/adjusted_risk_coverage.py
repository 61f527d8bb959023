"""How often 95 % intervals of adjusted risks hold the truth: with weights, and standardised.

    python bench/adjusted_risk_coverage.py      # the table of docs/coverage.md, in about a minute

A binary and a normal covariate lead to treatment and to the outcome. The outcome has constant
hazards, so that a Cox model with both covariates is right in each arm, as is the logistic score.
The true values are integrals over the covariates. The seed fixes all numbers.
"""

import argparse
import sys
import time
from collections import defaultdict
from typing import NamedTuple

import numpy as np
from scipy.special import expit

import riskset as rs

HORIZON = 12.0
RATE, EFFECT, BINARY, NORMAL = 0.03, 0.4, 0.7, 0.6
MEASURES = ("risk", "restricted mean")


def truth() -> np.ndarray:
    """Differences of the risk and of the restricted mean up to the horizon, over everybody."""
    node, weight = np.polynomial.hermite_e.hermegauss(80)
    means = []
    for a in (1, 0):
        of_arm = np.zeros(2)
        for binary, part in ((0, 0.6), (1, 0.4)):
            rate = RATE * np.exp(EFFECT * a + BINARY * binary + NORMAL * node)
            free = np.exp(-rate * HORIZON)
            values = np.array([1 - free, (1 - free) / rate])
            of_arm += part * (values @ weight) / weight.sum()
        means.append(of_arm)
    return np.asarray(means[0] - means[1])


def cohort(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Covariates (n, 2), treatment and outcome."""
    x = np.column_stack([rng.random(n) < 0.4, rng.normal(size=n)]).astype(float)
    treated = (rng.random(n) < expit(-0.5 + 0.8 * x[:, 0] + 0.8 * x[:, 1])).astype(int)
    rate = RATE * np.exp(EFFECT * treated + x @ [BINARY, NORMAL])
    event, censored = rng.exponential(1 / rate), rng.uniform(8, 40, n)
    return x, treated, rs.Surv(np.minimum(event, censored), (event <= censored).astype(int))


class Found(NamedTuple):
    """An estimate of each measure (2,) and the ends of its interval (2, 2)."""

    estimate: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


def intervals(n: int, rng: np.random.Generator) -> dict[str, Found]:
    """Every interval in one cohort."""
    x, treated, y = cohort(n, rng)
    score = rs.cohort.propensity_score(treated, x, penalty=None)
    weighted = rs.cohort.weight(score.people, "ate")
    found = {}
    for interval in ("robust", "stacked"):
        given = {"score_covariates": x} if interval == "stacked" else {}
        risk = rs.cohort.risk_difference(y, weighted, HORIZON, interval=interval, **given)
        mean = rs.cohort.restricted_mean(y, weighted, HORIZON, interval=interval, **given)
        found[f"weights, {interval}"] = Found(
            np.array([risk.difference[0], mean.difference[0, 0]]),
            np.array([risk.lower[0], mean.difference_lower[0, 0]]),
            np.array([risk.upper[0], mean.difference_upper[0, 0]]),
        )
    for by_arm in (True, False):
        own = rs.cohort.standardize(y, rs.cohort.Population(treated), x, HORIZON, by_arm=by_arm)
        name = "standardised, " + ("a model for each arm" if by_arm else "one model")
        found[name] = Found(
            own.difference[:2, 0], own.difference_lower[:2, 0], own.difference_upper[:2, 0]
        )
    return found


def main() -> None:
    """Print the table as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cohorts", type=int, default=250)
    parser.add_argument("--people", type=int, default=500)
    parser.add_argument("--seed", type=int, default=20)
    asked = parser.parse_args()
    begin, true = time.perf_counter(), truth()
    all_found = defaultdict(list)
    for number in range(asked.cohorts):
        rng = np.random.default_rng(np.random.SeedSequence(asked.seed, spawn_key=(number,)))
        for name, one in intervals(asked.people, rng).items():
            all_found[name].append(one)
    error = np.sqrt(0.95 * 0.05 / asked.cohorts)
    print(
        f"| estimate | measure | covers the truth (± {error:.1%}) | lies below | lies above | "
        "bias | median width |\n|---|---|---:|---:|---:|---:|---:|"
    )
    for name, several in all_found.items():
        estimate, lower, upper = (np.array(part) for part in zip(*several, strict=True))
        below, above = (upper < true).mean(axis=0), (lower > true).mean(axis=0)
        bias, width = estimate.mean(axis=0) - true, np.median(upper - lower, axis=0)
        for k, measure in enumerate(MEASURES):
            print(
                f"| {name} | {measure} | {1 - below[k] - above[k]:.1%} | {below[k]:.1%} | "
                f"{above[k]:.1%} | {bias[k]:+.4f} | {width[k]:.3f} |"
            )
    print(f"{time.perf_counter() - begin:.0f} seconds; the truth is {true}", file=sys.stderr)


if __name__ == "__main__":
    main()
