"""How often 95 % intervals of clones of a grace period hold the truth, with weights and without.

    python bench/per_protocol_coverage.py      # the table of docs/coverage.md, in some minutes

Severity changes every ten days. It decides who starts a treatment at the end of an interval, it
leads to death, and the treatment lowers it. Compared are the risks if all started within 30 days,
and if nobody did. The true risks are those of a million people who follow the strategies. The seed
fixes all numbers.
"""

import argparse
import sys
import time
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import expit

import riskset as rs

INTERVALS, DAYS, GRACE = 10, 10, 30
TIMES = (60, 100)
Strategy = Literal["as they like", "within the period", "never"]


class Course(NamedTuple):
    """Severity by interval (INTERVALS, n), and of each of the n people the end and the start."""

    age: np.ndarray
    severity: np.ndarray
    end: np.ndarray
    died: np.ndarray
    start: np.ndarray


def course(n: int, rng: np.random.Generator, strategy: Strategy = "as they like") -> Course:
    """What happens to people who follow a strategy."""
    age = rng.normal(size=n)
    severity = 0.5 * age + rng.normal(size=n)
    end, died, start = np.full(n, float(INTERVALS * DAYS)), np.zeros(n, bool), np.full(n, np.inf)
    known = []
    for interval in range(INTERVALS):
        begin, after = interval * DAYS, (interval + 1) * DAYS
        if interval:
            fresh = 0.3 * age + 0.6 * rng.normal(size=n)
            severity = 0.7 * severity + fresh - 0.2 * (start <= begin)
        known.append(severity)
        rate = 0.006 * np.exp(0.7 * severity + 0.3 * age - 0.8 * (start <= begin))
        wait = rng.exponential(1 / rate)
        dies = ~died & (wait <= DAYS)
        end[dies] = begin + wait[dies]
        died |= dies
        starts = rng.random(n) < expit(0.9 * severity - 1.2)
        if strategy == "never":
            starts[:] = False
        elif strategy == "within the period" and after == GRACE:
            starts[:] = True
        start[starts & ~died & np.isinf(start)] = after
    return Course(age, np.array(known), end, died, start)


def truth(n: int, seed: int) -> np.ndarray:
    """Differences of the risks by all times."""
    risks = []
    for strategy in ("within the period", "never"):
        one = course(n, np.random.default_rng(seed), strategy)  # type: ignore[arg-type]
        risks.append([np.mean(one.died & (one.end <= at)) for at in TIMES])
    return np.asarray(risks[0]) - np.asarray(risks[1])


def estimates(n: int, rng: np.random.Generator) -> dict[str, Any]:
    """The differences of the risks of one cohort, with weights and without."""
    one, names = course(n, rng), {"time": "time", "event": "died"}
    people = pd.DataFrame(
        {"person": np.arange(n), "age": one.age, "time": one.end, "died": one.died.astype(int)}
    )
    people["start"] = np.where(np.isfinite(one.start), one.start, np.nan)
    rows = rs.split(people, range(DAYS, INTERVALS * DAYS, DAYS), **names, id=None, episode=None)
    rows["severity"] = one.severity[(rows["entry"] // DAYS).astype(int), rows["person"]]
    rows = rs.cohort.clone(
        rows, "start", grace=GRACE, window=DAYS, comparator="never", entry="entry", **names
    )
    y = rs.Surv(rows["time"], rows["died"], entry=rows["entry"])
    weights = rs.cohort.censoring_weights(
        y,
        rows["arm"],
        rows[["severity", "age"]],
        person=rows["person"],
        deviates=rows["deviates"],
        at_risk=rows["at_risk"],
    )
    found = {}
    for name, weight in (("weights for deviation", weights.weight), ("no weights", None)):
        clones = rs.cohort.Population(rows["arm"], person_id=rows["person"], sampling_weight=weight)
        found[name] = rs.cohort.risk_difference(y, clones, TIMES, interval="robust")
    return found


def main() -> None:
    """Print the table as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cohorts", type=int, default=300)
    parser.add_argument("--people", type=int, default=1000)
    parser.add_argument("--true-people", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=31)
    asked = parser.parse_args()
    begin, true = time.perf_counter(), truth(asked.true_people, asked.seed)
    all_found = [
        estimates(asked.people, np.random.default_rng([asked.seed, number]))
        for number in range(asked.cohorts)
    ]
    print(
        f"| estimate | day | covers the truth (± {100 * np.sqrt(0.0475 / asked.cohorts):.1f}%) | ",
        end="",
    )
    print("bias | standard deviation of estimates | mean standard error |")
    print("|---|---:|---:|---:|---:|---:|")
    for name in all_found[0]:
        own = [found[name] for found in all_found]
        for k, at in enumerate(TIMES):
            value, error, low, high = (
                np.array([getattr(one, part)[k] for one in own])
                for part in ("difference", "se", "lower", "upper")
            )
            covers = np.mean((low <= true[k]) & (true[k] <= high))
            numbers = (
                f"{covers:.1%}",
                f"{value.mean() - true[k]:+.4f}",
                f"{value.std(ddof=1):.4f}",
            )
            print(f"| {name} | {at} | {' | '.join(numbers)} | {error.mean():.4f} |")
    print(f"{time.perf_counter() - begin:.0f} seconds", file=sys.stderr)


if __name__ == "__main__":
    main()
