"""How often 95 % intervals of Fine and Gray's model with late entry hold the truth.

    python bench/late_entry_coverage.py      # the table of docs/coverage.md, in about a minute

Cohorts are simulated with a known log subdistribution hazard ratio of a binary covariate. A few
people are followed from the start. The others enter at random times, and are missing if they had an
event of either kind before. The seed fixes all numbers.
"""

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np

import riskset as rs

EFFECT = 0.7
SHARE = 0.5
"""Of people with covariate 0, those who have the event of interest at last."""
QUANTILE = 1.959963984540054
METHODS = (
    "robust, both distributions counted",
    "robust, weights taken for known",
    "weights of censoring alone",
)


def cohort(n_rows: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The covariate, and outcomes of those who enter before their event."""
    x = (rng.random(n_rows) < 0.5).astype(float)
    most = 1 - (1 - SHARE) ** np.exp(EFFECT * x)
    is_first = rng.random(n_rows) < most
    # F(t | x) = 1 - (1 - SHARE (1 - exp(-t)))^exp(EFFECT x), inverted below its limit.
    u = rng.random(n_rows) * most
    first = -np.log(1 - (1 - (1 - u) ** np.exp(-EFFECT * x)) / SHARE)
    event = np.where(is_first, first, rng.exponential(np.exp(-0.8 * x)))
    entry = np.maximum(rng.uniform(-0.1, 1.5, n_rows), 0.0)
    end = entry + rng.exponential(2.0, n_rows)
    seen = event > entry
    code = np.where(event <= end, np.where(is_first, 1, 2), 0)
    return x[seen, None], rs.Surv(np.minimum(event, end)[seen], code[seen], entry[seen])


def censoring_before(y: np.ndarray) -> np.ndarray:
    """G(time-), times being distinct."""
    order = np.argsort(y["time"])
    time = y["time"][order]
    at_risk = np.searchsorted(np.sort(y["entry"]), time) - np.arange(time.size)
    factor = np.where(y["event"][order] == 0, 1 - 1 / at_risk, 1.0)
    out = np.empty(time.size)
    out[order] = np.append(1.0, np.cumprod(factor)[:-1])
    return out


def entered_before(y: np.ndarray) -> np.ndarray:
    """H(time-), entries after time 0 being distinct."""
    late = np.sort(y["entry"][y["entry"] > 0])[::-1]
    there = np.searchsorted(np.sort(y["entry"]), late, side="right")
    there = there - np.searchsorted(np.sort(y["time"]), late, side="right")
    values = np.append(1.0, np.cumprod(1 - 1 / there))
    return values[np.searchsorted(-late, -y["time"], side="right")]


def answers(number: int, n_rows: int, seed: int) -> np.ndarray:
    """Estimate and standard error by each method (3, 2) in one cohort."""
    x, y = cohort(n_rows, np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(number,))))
    g = censoring_before(y)
    models = [
        rs.FineGray(n_threads=1, censoring_probability=given).fit(x, y)
        for given in (None, g * entered_before(y), g)
    ]
    return np.array([(m.coef_[0], m.robust_standard_error_[0]) for m in models])


def table(found: np.ndarray) -> str:
    """As Markdown, from the answers (cohorts, 3, 2)."""
    error = np.sqrt(0.95 * 0.05 / found.shape[0])
    lines = [
        f"| interval | covers the truth (± {error:.1%}) | mean estimate | standard deviation of "
        "estimates | mean standard error |",
        "|---|---:|---:|---:|---:|",
    ]
    for method, (estimate, own) in zip(METHODS, found.transpose(1, 2, 0), strict=True):
        covered = (np.abs(estimate - EFFECT) <= QUANTILE * own).mean()
        lines.append(
            f"| {method} | {covered:.1%} | {estimate.mean():.3f} | {estimate.std(ddof=1):.3f} | "
            f"{own.mean():.3f} |"
        )
    return "\n".join(lines)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description="Coverage with late entry.")
    parser.add_argument("--cohorts", type=int, default=400)
    parser.add_argument("--rows", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    one = partial(answers, n_rows=options.rows, seed=options.seed)
    with ProcessPoolExecutor() as pool:
        found = np.array(list(pool.map(one, range(options.cohorts), chunksize=5)))
    print(table(found))


if __name__ == "__main__":
    main(sys.argv[1:])
