"""A simulated study of people who deviate for reasons that change with time."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import riskset as rs

MONTHS = 12
LENGTH = 30


def simulated(n=2000, seed=3, log_hr=-1.0, *, deviates=True):
    """People, and their measurements of severity every month.

    Severity raises the hazard of death. At the end of a month, people stop the new drug if they are
    worse, and the old one if they are better. The new drug lowers the hazard by exp(`log_hr`) as
    long as it is taken. Without `deviates`, nobody stops.
    """
    rng = np.random.default_rng(seed)
    age = rng.normal(size=n)
    arm = (rng.random(n) < 1 / (1 + np.exp(-0.5 * age))).astype(int)
    severity = 0.5 * age + rng.normal(size=n)
    days, died = np.full(n, float(MONTHS * LENGTH)), np.zeros(n, dtype=int)
    stopped = np.full(n, np.nan)
    alive, labs = np.ones(n, dtype=bool), []
    for month in range(MONTHS):
        start = month * LENGTH
        severity = 0.8 * severity + 0.6 * rng.normal(size=n) if month else severity
        labs.append((np.flatnonzero(alive), np.full(alive.sum(), start), severity[alive]))
        takes = (arm == 1) & np.isnan(stopped)
        rate = 0.0012 * np.exp(0.8 * severity + 0.4 * age + log_hr * takes)
        wait = np.ceil(rng.exponential(1 / rate))
        dies = alive & (wait <= LENGTH)
        days[dies], died[dies] = start + wait[dies], 1
        odds = np.exp(np.where(arm == 1, severity, -severity) - 2.5)
        leaves = alive & ~dies & (rng.random(n) < deviates * odds / (1 + odds))
        leaves &= np.isnan(stopped)
        stopped[leaves] = start + LENGTH
        alive &= ~dies
    people = {
        "id": np.arange(n) + 100,
        "drug": arm,
        "age": age,
        "days": days,
        "died": died,
        "stopped": stopped,
    }
    rows, times, values = (np.concatenate(column) for column in zip(*labs, strict=True))
    long = {
        "id": rows + 100,
        "time": times,
        "covariate": np.repeat("severity", rows.size),
        "value": values,
    }
    return people, long


def specification(**changes):
    """The study as a mapping."""
    return {
        "title": "Keep to it",
        "data": {
            "people": "people.parquet",
            "treatment": "drug",
            "id": "id",
            "covariates_over_time": {"table": "labs.parquet"},
        },
        "exposures": {"new": {"value": 1}, "old": {"value": 0}},
        "comparisons": [{"target": "new", "comparator": "old"}],
        "outcomes": {"death": {"time": "days", "event": "died"}},
        "defaults": {"propensity": {"penalty": "none"}, "weight": {"estimand": "ate"}},
        "analyses": {
            "itt": {"estimand": "intention-to-treat"},
            "pp": {"estimand": "per-protocol", "per_protocol": {"deviation": "stopped"}},
        },
        "sharing": {"blind": False},
        "risk_times": [180],
    } | changes


def write(folder, people, long):
    """The files of the study."""
    made = {name: pa.array(np.asarray(x), from_pandas=True) for name, x in people.items()}
    pq.write_table(pa.table(made), folder / "people.parquet")
    if long is not None:
        pq.write_table(pa.table(long), folder / "labs.parquet")


def run(folder, tables, **changes):
    """Results with what is private, of people and their measurements."""
    write(folder, *tables)
    rs.study.run(rs.study.Study(specification(**changes), folder), folder / "out")
    return rs.study.StudyResults.open(folder / "out" / "private")
