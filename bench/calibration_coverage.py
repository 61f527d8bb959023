"""How often calibrated 95 % intervals hold the truth, by the number of control outcomes.

    python bench/calibration_coverage.py --studies 200      # the table of docs/coverage.md

Each study has estimates of control outcomes and of one outcome of interest. All of them carry a
systematic error with the mean 0.1 and a standard deviation that differs between the designs, and
their own standard errors, which are between 0.05 and 0.3. The seed fixes all numbers.
"""

import argparse
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np

from riskset.cohort.bias.empirical_null.fit import fit_null
from riskset.cohort.bias.empirical_null.regression import fit_error_model
from riskset.cohort.bias.empirical_null.regression_posterior import error_posterior

LEVEL, Z = 0.95, 1.959963984540054
BIAS = 0.1
SMALLEST_SE, LARGEST_SE = 0.05, 0.3
EFFECTS = np.log([1.5, 2.0, 4.0])
"""True log ratios of positive controls; the outcome of interest has log 2 beside them, else 0."""


class Design(NamedTuple):
    """What studies of one kind have in common."""

    n_negative: int
    n_positive: int
    sd: float


DESIGNS = (
    *(Design(n, 0, sd) for sd in (0.2, 0.1, 0.0) for n in (5, 10, 20, 50)),
    *(Design(n, n, 0.2) for n in (10, 20)),
)
METHODS = ("none", "maximum likelihood", "posterior")


def covered(number: int, design: Design, seed: int) -> list[bool]:
    """Whether the truth is in the interval of each method in one study."""
    stream = np.random.SeedSequence(seed, spawn_key=(DESIGNS.index(design), number))
    rng = np.random.default_rng(stream)
    truth = float(EFFECTS[1]) if design.n_positive else 0.0
    positive = np.resize(EFFECTS, design.n_positive)
    true = np.concatenate([np.zeros(design.n_negative), positive, [truth]])
    se = np.exp(rng.uniform(np.log(SMALLEST_SE), np.log(LARGEST_SE), true.size))
    found = true + rng.normal(BIAS, design.sd, true.size) + rng.normal(0, se)
    b, s, theta = found[:-1], se[:-1], true[:-1]
    estimate, error = float(found[-1]), float(se[-1])
    negative = theta == 0
    null = fit_null(b[negative], s[negative])
    half = Z * np.hypot(null.sd, error)
    ends = estimate - null.mean - half, estimate - null.mean + half
    posterior = error_posterior(b[negative], s[negative])
    if design.n_positive:
        ends = fit_error_model(b, s, theta).interval(estimate, error, LEVEL)[1:]
        posterior = error_posterior(b, s, theta)
    _, lower, upper = posterior.interval(estimate, error, LEVEL)
    return [
        abs(estimate - truth) < Z * error,
        # An end that is NaN is open.
        not (ends[0] > truth or ends[1] < truth),
        lower < truth < upper,
    ]


class Result(NamedTuple):
    """Coverage of each method over the studies of one design."""

    design: Design
    coverage: tuple[float, ...]


def simulate(n_studies: int, seed: int) -> list[Result]:
    """Every design in turn; the cores share its studies."""
    out = []
    with ProcessPoolExecutor() as pool:
        for design in DESIGNS:
            one = partial(covered, design=design, seed=seed)
            held = np.array(list(pool.map(one, range(n_studies), chunksize=25)))
            out.append(Result(design, tuple(held.mean(axis=0).tolist())))
    return out


def table(results: list[Result], n_studies: int) -> str:
    """As Markdown, with the standard error that coverage has by chance alone."""
    error = np.sqrt(LEVEL * (1 - LEVEL) / n_studies)
    lines = [
        "| systematic error, sd | controls | " + " | ".join(METHODS) + f" (± {error:.1%}) |",
        "|---:|---|" + "---:|" * len(METHODS),
    ]
    for design, coverage in results:
        controls = f"{design.n_negative} negative"
        if design.n_positive:
            controls += f", {design.n_positive} positive"
        cells = " | ".join(f"{share:.1%}" for share in coverage)
        lines.append(f"| {design.sd:g} | {controls} | {cells} |")
    return "\n".join(lines)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description="Coverage of calibrated intervals.")
    parser.add_argument("--studies", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    started = time.perf_counter()
    results = simulate(options.studies, options.seed)
    print(table(results, options.studies))
    seconds = time.perf_counter() - started
    print(f"\n{options.studies:,} studies of each kind in {seconds:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
