"""How often 95 % intervals hold the truth where covariates have missing values.

    python bench/imputation_coverage.py      # the table of docs/coverage.md, in some minutes

Cohorts are simulated with a known Cox model of a treatment, a number and a category. Values of the
number and of the category are missing more often in people with an event, which depends on what is
observed only. Four analyses: of all values, of the rows without missing values, of data sets that
`riskset.impute` completes, and of data sets that scikit-learn's IterativeImputer draws. The seed
fixes all numbers.
"""

import argparse
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np
import pandas as pd

import riskset as rs

LEVEL = 0.95
TRUTH = {"treated": np.log(2.0), "number": 0.7, "group=b": -0.5, "group=c": 0.8}
METHODS = ("all values", "complete rows", "riskset.impute", "IterativeImputer")


def cohort(n: int, rng: np.random.Generator) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The data with and without all values."""
    number = rng.normal(size=n)
    group = np.array(list("abc"))[rng.choice(3, n, p=[0.5, 0.3, 0.2])]
    score = 0.8 * number + 0.8 * (group == "c")
    treated = (rng.random(n) < 1 / (1 + np.exp(-score))).astype(float)
    eta = TRUTH["treated"] * treated + TRUTH["number"] * number
    eta += TRUTH["group=b"] * (group == "b") + TRUTH["group=c"] * (group == "c")
    failure, censoring = rng.exponential(np.exp(-eta)), rng.exponential(2.0, n)
    columns = {"time": np.minimum(failure, censoring), "event": failure <= censoring}
    whole = pd.DataFrame({**columns, "treated": treated, "number": number, "group": group})
    part = whole.copy()
    odds = np.where(whole["event"], 0.0, -2.0) + 0.5 * treated
    for name in ("number", "group"):
        part.loc[rng.random(n) < 1 / (1 + np.exp(-odds)), name] = None
    return whole, part


def fit(frame: pd.DataFrame) -> rs.Cox:
    data = rs.Dataset.from_frame(frame, time="time", event="event", reference={"group": "a"})
    return rs.Cox(n_threads=1).fit(data)


def drawn_by_sklearn(frame: pd.DataFrame, m: int, seed: int) -> list[pd.DataFrame]:
    """Normal draws of numbers and of indicators of levels, of which the largest is the level."""
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer

    time_, event = frame["time"].to_numpy(), frame["event"].to_numpy().astype(int)
    levels = pd.get_dummies(frame["group"]).astype(float)
    levels[frame["group"].isna()] = np.nan
    x = np.column_stack([frame["treated"], frame["number"], levels, event, _hazard(time_, event)])
    made = []
    for k in range(m):
        imputer = IterativeImputer(sample_posterior=True, max_iter=10, random_state=seed * m + k)
        filled = imputer.fit_transform(x)
        one = frame.copy()
        one["number"] = filled[:, 1]
        one["group"] = np.array(list("abc"))[filled[:, 2:5].argmax(axis=1)]
        made.append(one)
    return made


def _hazard(time_: np.ndarray, event: np.ndarray) -> np.ndarray:
    order = np.argsort(time_)
    hazard = np.empty(time_.size)
    hazard[order] = np.cumsum(event[order] / np.arange(time_.size, 0, -1))
    return hazard


def intervals(number: int, n_rows: int, m: int, seed: int) -> np.ndarray:
    """Ends of the intervals by each method (4, p, 2) in one cohort."""
    stream = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(number,)))
    whole, part = cohort(n_rows, stream)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        imputed = rs.impute(
            part, time="time", event="event", datasets=m, seed=seed + number, n_threads=1
        )
        found = [
            fit(whole).confidence_interval(list(TRUTH), level=LEVEL),
            fit(part.dropna()).confidence_interval(list(TRUTH), level=LEVEL),
            rs.pool([fit(one) for one in imputed]).confidence_interval(list(TRUTH), level=LEVEL),
            rs.pool([fit(one) for one in drawn_by_sklearn(part, m, number)]).confidence_interval(
                list(TRUTH), level=LEVEL
            ),
        ]
    return np.array([[one[name] for name in TRUTH] for one in found])


def table(ends: np.ndarray) -> str:
    """As Markdown, from ends (cohorts, 4, p, 2)."""
    truth = np.array(list(TRUTH.values()))
    error = np.sqrt(LEVEL * (1 - LEVEL) / len(ends))
    names = ("treatment", "number", "level b", "level c")
    lines = [
        f"| analysis | {' | '.join(f'{name}: coverage' for name in names)} | treatment: bias | "
        "number: bias | treatment: median width |",
        "|---|" + "---:|" * (len(names) + 3),
    ]
    for k, method in enumerate(METHODS):
        lower, upper = ends[:, k, :, 0], ends[:, k, :, 1]
        covered = ((lower <= truth) & (truth <= upper)).mean(axis=0)
        bias = ((lower + upper) / 2 - truth).mean(axis=0)
        width = np.median(upper[:, 0] - lower[:, 0])
        shares = " | ".join(f"{share:.1%}" for share in covered)
        lines.append(f"| {method} | {shares} | {bias[0]:+.3f} | {bias[1]:+.3f} | {width:.2f} |")
    return "\n".join(lines) + f"\n\nvariation of coverage by chance: {error:.1%}"


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description="Coverage of intervals after imputation.")
    parser.add_argument("--cohorts", type=int, default=100)
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--datasets", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    started = time.perf_counter()
    one = partial(intervals, n_rows=options.rows, m=options.datasets, seed=options.seed)
    with ProcessPoolExecutor() as pool:
        ends = np.array(list(pool.map(one, range(options.cohorts), chunksize=5)))
    print(table(ends))
    seconds = time.perf_counter() - started
    print(f"\n{options.cohorts:,} cohorts in {seconds:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
