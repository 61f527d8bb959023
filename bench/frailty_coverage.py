"""How often 95 % intervals of Cox models with shared frailties hold the truth.

    python bench/frailty_coverage.py      # the table of docs/coverage.md, in about a minute

Rows of a cluster share a frailty that is drawn from a gamma or a log-normal distribution. One
covariate differs between the rows of a cluster, the other one is the same for all of them. The seed
fixes all numbers.
"""

import argparse
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any

import numpy as np

import riskset as rs

EFFECTS = np.array([0.7, 0.7])
VARIANCE = 0.5
QUANTILE = 1.959963984540054
SAMPLES = (("gamma", 200, 3), ("gamma", 50, 12), ("lognormal", 200, 3), ("lognormal", 50, 12))
"""Distribution of the frailties, number of clusters and rows of each."""
METHODS: dict[str, Callable[[], Any]] = {
    "`Cox`, clusters ignored": lambda: rs.Cox(n_threads=1),
    "`Cox`, robust": lambda: rs.Cox(n_threads=1),
    "`CoxFrailty`, gamma": lambda: rs.CoxFrailty("gamma", n_threads=1),
    "`CoxFrailty`, log-normal, ml": lambda: rs.CoxFrailty("lognormal", n_threads=1),
    "`CoxFrailty`, log-normal, reml": lambda: rs.CoxFrailty(
        "lognormal", frailty_method="reml", n_threads=1
    ),
}


def cohort(
    kind: str, n_clusters: int, size: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two covariates, outcomes and clusters; about a sixth of the rows are censored."""
    cluster = np.repeat(np.arange(n_clusters), size)
    if kind == "gamma":
        frailty = rng.gamma(1 / VARIANCE, VARIANCE, n_clusters)
    else:
        frailty = np.exp(rng.normal(0, np.sqrt(VARIANCE), n_clusters))
    within = (rng.random(cluster.size) < 0.5).astype(float)
    between = (rng.random(n_clusters) < 0.5).astype(float)[cluster]
    x = np.column_stack([within, between])
    event = rng.exponential(1 / (frailty[cluster] * np.exp(x @ EFFECTS)))
    end = rng.uniform(0.5, 3.0, cluster.size)
    return x, rs.Surv(np.minimum(event, end), event <= end), cluster


def answers(number: int, kind: str, n_clusters: int, size: int, seed: int) -> np.ndarray:
    """Estimates, standard errors and the variance by each method (5, 5) in one cohort."""
    sequence = np.random.SeedSequence(seed, spawn_key=(number,))
    x, y, cluster = cohort(kind, n_clusters, size, np.random.default_rng(sequence))
    out = []
    for name, method in METHODS.items():
        model = method().fit(x, y, cluster=None if "ignored" in name else cluster)
        error = model.robust_standard_error_ if "robust" in name else model.standard_error_
        out.append([*model.coef_, *error, getattr(model, "frailty_variance_", np.nan)])
    return np.array(out)


def lines(sample: tuple[str, int, int], found: np.ndarray) -> list[str]:
    """Of one kind of cohorts, from the answers (cohorts, methods, 5)."""
    kind, n_clusters, size = sample
    out = []
    for method, one in zip(METHODS, found.transpose(1, 2, 0), strict=True):
        covered = (np.abs(one[:2].T - EFFECTS) <= QUANTILE * one[2:4].T).mean(axis=0)
        means = one[:2].mean(axis=1)
        variance = "" if np.isnan(one[4]).any() else f"{one[4].mean():.2f}"
        out.append(
            f"| {kind}, {n_clusters} of {size} | {method} | {covered[0]:.1%} | {means[0]:.2f} | "
            f"{covered[1]:.1%} | {means[1]:.2f} | {variance} |"
        )
    return out


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description="Coverage with shared frailties.")
    parser.add_argument("--cohorts", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    error = np.sqrt(0.95 * 0.05 / options.cohorts)
    print(
        f"| frailties, clusters of rows | interval | within clusters (± {error:.1%}) | mean "
        "estimate | between clusters | mean estimate | mean variance |"
    )
    print("|---|---|---:|---:|---:|---:|---:|")
    with ProcessPoolExecutor() as pool:
        for sample in SAMPLES:
            kind, n_clusters, size = sample
            one = partial(answers, kind=kind, n_clusters=n_clusters, size=size, seed=options.seed)
            found = np.array(list(pool.map(one, range(options.cohorts), chunksize=5)))
            print("\n".join(lines(sample, found)))


if __name__ == "__main__":
    main(sys.argv[1:])
