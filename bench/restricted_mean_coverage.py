"""How often 95 % intervals of restricted means hold the truth: trials, weights, strata, pairs.

    python bench/restricted_mean_coverage.py      # the table of docs/coverage.md, in some minutes

Hazards of the outcome cross, a competing event ends the follow-up of some people, and others are
censored. In the cohorts, a binary covariate leads to treatment and to the outcome. The true values
are sums over a fine grid of time. The seed fixes all numbers.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np

import riskset as rs

LEVEL = 0.95
HORIZON = 24.0
COMPETING = 1 / 60
SHAPE = (0.7, 1.5)
"""Of the Weibull hazard of the outcome without and with treatment."""
SCALE = (50.0, 30.0)
"""Of the same, without and with the covariate."""
TREATED = (0.3, 0.6)
"""Share of the treated without and with the covariate, half of the people having it."""
MEASURES = ("restricted_mean", "time_lost")


def truth(share: float) -> dict[str, np.ndarray]:
    """Means of each measure (2, measures), target first, if this share has the covariate."""
    edge = np.linspace(0, HORIZON, 6_001)
    middle, step = (edge[1:] + edge[:-1]) / 2, edge[1]
    means = []
    for a in (1, 0):
        of_arm = np.zeros(2)
        for x, part in ((0, 1 - share), (1, share)):
            free = np.exp(-((middle / SCALE[x]) ** SHAPE[a]) - COMPETING * middle)
            hazard = np.diff((edge / SCALE[x]) ** SHAPE[a])  # of each step
            lost = (free * hazard * (HORIZON - middle)).sum()
            of_arm += part * np.array([free.sum() * step, lost])
        means.append(of_arm)
    return {"difference": means[0] - means[1], "ratio": means[0] / means[1]}


def people(n: int, is_trial: bool, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Covariate, treatment and outcome: 1 is the outcome and 2 the competing event."""
    x = rng.permutation(np.arange(n) % 2)
    treated = (rng.random(n) < (0.5 if is_trial else np.array(TREATED)[x])).astype(int)
    scale, shape = np.array(SCALE)[x], np.array(SHAPE)[treated]
    times = np.array(
        [scale * rng.weibull(shape), rng.exponential(1 / COMPETING, n), rng.uniform(12, 60, n)]
    )
    return x, treated, rs.Surv(times.min(axis=0), np.array([1, 2, 0])[times.argmin(axis=0)])


class Found(NamedTuple):
    """The ends of an interval (measures, 2), and what it is of."""

    design: str
    method: str
    kind: str
    ends: np.ndarray
    truth: np.ndarray


def intervals(number: int, n: int, replicates: int, seed: int) -> list[Found]:
    """Every interval in one trial and one cohort."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(number,)))
    _, treated, y = people(n, True, rng)
    trial = rs.cohort.restricted_mean(y, rs.cohort.Population(treated), HORIZON)
    found = list(_of("trial", "robust", trial, truth(0.5)))
    x, treated, y = people(n, False, rng)
    # The score that was fitted: the share of the treated among those alike.
    score = np.array([treated[x == k].mean() for k in (0, 1)])[x]
    cohort = rs.cohort.Population(treated, score)
    weighted = rs.cohort.weight(cohort, "ate")
    strata = rs.cohort.stratify(cohort, 2)
    pairs = rs.cohort.match(cohort, ratio=1)
    share = x[pairs.kept & (treated == 1)].mean()
    drawn = {"interval": "bootstrap", "replicates": replicates, "seed": number}

    def readjust(rows: np.ndarray) -> rs.cohort.Adjustment:
        own, t = x[rows], treated[rows]
        again = np.array([t[own == k].mean() for k in (0, 1)])[own]
        return rs.cohort.weight(rs.cohort.Population(t, again), "ate")

    for design, method, adjusted, options, part in (
        ("weights", "robust", weighted, {}, 0.5),
        ("weights", "bootstrap with readjust", weighted, drawn | {"readjust": readjust}, 0.5),
        ("strata, standardized", "robust", strata, {"reading": "standardized"}, 0.5),
        ("matched pairs", "robust", pairs, {}, share),
    ):
        means = rs.cohort.restricted_mean(y, adjusted, HORIZON, **options)
        found += _of(design, method, means, truth(part))
    return found


def _of(
    design: str, method: str, means: rs.cohort.ArmRestrictedMeans, true: dict[str, np.ndarray]
) -> Iterator[Found]:
    for kind in ("difference", "ratio"):
        ends = [getattr(means, f"{kind}_{end}")[:2, 0] for end in ("lower", "upper")]
        yield Found(design, method, kind, np.array(ends).T, true[kind])


def table(cohorts: list[list[Found]]) -> str:
    """Coverage of every interval as Markdown."""
    error = np.sqrt(LEVEL * (1 - LEVEL) / len(cohorts))
    lines = [
        f"| data | variance | measure | covers the truth (± {error:.1%}) | lies below | "
        "lies above | median width |",
        "|---|---|---|---:|---:|---:|---:|",
    ]
    for same in zip(*cohorts, strict=True):
        ends = np.array([one.ends for one in same])
        true = np.array([one.truth for one in same])
        below, above = ends[..., 1] < true, ends[..., 0] > true
        width = np.median(ends[..., 1] - ends[..., 0], axis=0)
        for q, measure in enumerate(MEASURES):
            lines.append(
                f"| {same[0].design} | {same[0].method} | {same[0].kind}, "
                f"{measure.replace('_', ' ')} | {1 - (below | above)[:, q].mean():.1%} | "
                f"{below[:, q].mean():.1%} | {above[:, q].mean():.1%} | {width[q]:.2f} |"
            )
    return "\n".join(lines)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description="Coverage of intervals of restricted means.")
    parser.add_argument("--cohorts", type=int, default=400)
    parser.add_argument("--people", type=int, default=300)
    parser.add_argument("--replicates", type=int, default=99)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    started = time.perf_counter()
    one = partial(intervals, n=options.people, replicates=options.replicates, seed=options.seed)
    with ProcessPoolExecutor() as pool:
        cohorts = list(pool.map(one, range(options.cohorts), chunksize=5))
    print(table(cohorts))
    seconds = time.perf_counter() - started
    print(f"\n{options.cohorts:,} cohorts in {seconds:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
