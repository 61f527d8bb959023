"""How often 95 % intervals of a treatment effect hold the truth: Wald, profile and bootstrap.

    python bench/interval_coverage.py      # the table of docs/coverage.md, in under a minute
    python bench/interval_coverage.py --cohorts 600 --replicates 199

Cohorts are simulated with a known log hazard ratio of the treatment, two further covariates, and
random censoring: one where a third is treated, and a small one where few are. The seed fixes all
numbers.
"""

import argparse
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np

import riskset as rs

EFFECT = np.log(2.0)
LEVEL = 0.95


class Design(NamedTuple):
    """What cohorts of one kind have in common."""

    name: str
    n_rows: int
    treated: float


DESIGNS = (Design("a third treated", 150, 1 / 3), Design("few treated", 80, 0.08))
METHODS = ("wald", "profile", "bootstrap")


def cohort(design: Design, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Covariates, the treatment first, and an exponential outcome with about a third censored."""
    n = design.n_rows
    x = rng.normal(size=(n, 3))
    # Always somebody on both sides, and the other covariates differ between them.
    x[:, 0] = rng.permutation(np.arange(n) < round(design.treated * n))
    x[:, 1] += 0.5 * x[:, 0]
    failure = rng.exponential(np.exp(-(x @ [EFFECT, 0.5, -0.5])))
    censoring = rng.exponential(2.0, n)
    return x, rs.Surv(np.minimum(failure, censoring), failure <= censoring)


class Result(NamedTuple):
    """Over the cohorts of one design, by one method."""

    design: Design
    method: str
    covered: float
    below: float
    above: float
    width: float


def intervals(design: Design, number: int, replicates: int, seed: int) -> np.ndarray:
    """Ends of the interval of the treatment by each method (3, 2) in one cohort."""
    stream = np.random.SeedSequence(seed, spawn_key=(DESIGNS.index(design), number))
    x, y = cohort(design, np.random.default_rng(stream))
    ends = []
    with warnings.catch_warnings():
        # Infinite estimates, and resamples without a treated event, are part of the matter.
        warnings.simplefilter("ignore")
        model = rs.Cox(n_threads=1).fit(x, y)
        for method in METHODS:
            drawn = {"replicates": replicates, "seed": number} if method == "bootstrap" else {}
            found = model.confidence_interval("x0", method=method, level=LEVEL, **drawn)
            ends.append(found["x0"])
    return np.array(ends)


def summarise(design: Design, ends: np.ndarray) -> list[Result]:
    """Coverage of each method from the ends (cohorts, 3, 2); what is not defined does not cover."""
    out = []
    for method, (lower, upper) in zip(METHODS, ends.transpose(1, 2, 0), strict=True):
        covered = ((lower <= EFFECT) & (upper >= EFFECT)).mean()
        below, above = (upper < EFFECT).mean(), (lower > EFFECT).mean()
        with np.errstate(invalid="ignore"):
            width = np.where(np.isnan(lower), np.inf, upper - lower)
        out.append(Result(design, method, covered, below, above, float(np.median(width))))
    return out


def simulate(n_cohorts: int, replicates: int, seed: int) -> list[Result]:
    """Every method in the same cohorts, which the cores share."""
    out = []
    with ProcessPoolExecutor() as pool:
        for design in DESIGNS:
            one = partial(intervals, design, replicates=replicates, seed=seed)
            ends = np.array(list(pool.map(one, range(n_cohorts), chunksize=5)))
            out += summarise(design, ends)
    return out


def table(results: list[Result], n_cohorts: int) -> str:
    """As Markdown, with the standard error that coverage has by chance alone."""
    error = np.sqrt(LEVEL * (1 - LEVEL) / n_cohorts)
    lines = [
        f"| cohorts | interval | covers the truth (± {error:.1%}) | lies below | lies above | "
        "median width |",
        "|---|---|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {r.design.name}, n = {r.design.n_rows} | {r.method} | {r.covered:.1%} | "
        f"{r.below:.1%} | {r.above:.1%} | {r.width:.2f} |"
        for r in results
    ]
    return "\n".join(lines)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description="Coverage of three kinds of interval.")
    parser.add_argument("--cohorts", type=int, default=150)
    parser.add_argument("--replicates", type=int, default=99)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    started = time.perf_counter()
    results = simulate(options.cohorts, options.replicates, options.seed)
    print(table(results, options.cohorts))
    seconds = time.perf_counter() - started
    print(f"\n{options.cohorts:,} cohorts of each kind in {seconds:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
