"""How often 95 % intervals of doubly robust estimates hold the truth, each model wrong in turn.

    python bench/doubly_robust_coverage.py      # the table of docs/coverage.md, in some minutes

A binary and a normal covariate lead to treatment, to the outcome and to being censored. All hazards
are constant, so that Cox models with both covariates are right in each arm, as is the logistic
score. A wrong model lacks the normal covariate. The true values are integrals over the covariates.
The seed fixes all numbers.
"""

import argparse
import sys
import time
from collections import defaultdict
from typing import Any

import numpy as np
from scipy.special import expit

import riskset as rs

HORIZON = 12.0
RATE, EFFECT, BINARY, NORMAL = 0.03, 0.4, 0.7, 0.8
LOSS, OF_LOSS = 0.02, 0.6
MEASURES = ("risk", "restricted mean")
WRONG = {
    "all models right": (),
    "outcome models wrong": ("outcome",),
    "score wrong": ("score",),
    "censoring wrong": ("censoring",),
    "score and censoring wrong": ("score", "censoring"),
    "outcome models and score wrong": ("outcome", "score"),
}
"""Which models are wrong in each row of the table."""


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
    treated = (rng.random(n) < expit(-0.3 + 0.6 * x[:, 0] + 0.7 * x[:, 1])).astype(int)
    event = rng.exponential(1 / (RATE * np.exp(EFFECT * treated + x @ [BINARY, NORMAL])))
    lost = rng.exponential(1 / (LOSS * np.exp(0.3 * treated + OF_LOSS * x[:, 1])))
    end = np.minimum(lost, rng.uniform(15, 40, n))
    return x, treated, rs.Surv(np.minimum(event, end), (event <= end).astype(int))


def estimates(n: int, rng: np.random.Generator) -> dict[str, Any]:
    """Every estimate in one cohort."""
    x, treated, y = cohort(n, rng)
    people = rs.cohort.Population(treated)
    found: dict[str, Any] = {}
    for name, wrong in WRONG.items():
        used = {
            model: x[:, :1] if model in wrong else x for model in ("outcome", "score", "censoring")
        }
        given = {f"{model}_covariates": used[model] for model in ("score", "censoring")}
        found[name] = rs.cohort.doubly_robust(y, people, used["outcome"], HORIZON, **given)
    crossed = rs.cohort.doubly_robust(y, people, x, HORIZON, folds=5)
    found["all models right, 5 folds"] = crossed
    found["standardised, outcome models wrong"] = rs.cohort.standardize(
        y, people, x[:, :1], HORIZON
    )
    return found


def main() -> None:
    """Print the table as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cohorts", type=int, default=250)
    parser.add_argument("--people", type=int, default=600)
    parser.add_argument("--seed", type=int, default=21)
    asked = parser.parse_args()
    begin, true = time.perf_counter(), truth()
    all_found = defaultdict(list)
    for number in range(asked.cohorts):
        rng = np.random.default_rng(np.random.SeedSequence(asked.seed, spawn_key=(number,)))
        for name, one in estimates(asked.people, rng).items():
            parts = (one.difference, one.difference_lower, one.difference_upper, one.difference_se)
            all_found[name].append(np.array([part[:2, 0] for part in parts]))
    error = np.sqrt(0.95 * 0.05 / asked.cohorts)
    print(
        f"| models | measure | covers the truth (± {error:.1%}) | bias | standard deviation of "
        "estimates | mean standard error |\n|---|---|---:|---:|---:|---:|"
    )
    for name, several in all_found.items():
        estimate, lower, upper, spread = np.array(several).swapaxes(0, 1)
        covers = ((lower <= true) & (true <= upper)).mean(axis=0)
        bias, varies = estimate.mean(axis=0) - true, estimate.std(axis=0, ddof=1)
        for k, measure in enumerate(MEASURES):
            print(
                f"| {name} | {measure} | {covers[k]:.1%} | {bias[k]:+.4f} | {varies[k]:.4f} | "
                f"{spread[:, k].mean():.4f} |"
            )
    print(f"{time.perf_counter() - begin:.0f} seconds; the truth is {true}", file=sys.stderr)


if __name__ == "__main__":
    main()
