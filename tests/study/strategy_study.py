"""A simulated study of a treatment that people start within a grace period, or not."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import riskset as rs

END = 300
GRACE = 60


def simulated(n=1500, seed=11, log_hr=-0.7):
    """People whose severity decides about the start of a treatment and about death.

    From its start on, the treatment multiplies the daily hazard by exp(`log_hr`).
    """
    rng = np.random.default_rng(seed)
    severity = rng.normal(size=n)
    age = rng.normal(size=n)
    wait = rng.geometric(1 / (1 + np.exp(4.2 + 0.8 * severity))).astype(float)
    rate = 0.003 * np.exp(0.8 * severity + 0.3 * age)
    before = rng.exponential(1 / rate)
    after = wait + rng.exponential(1 / (rate * np.exp(log_hr)))
    time = np.ceil(np.where(before <= wait, before, after))
    days = np.minimum(time, END)
    return {
        "id": np.arange(n) + 100,
        "severity": severity,
        "age": age,
        "days": days,
        "died": (time <= END).astype(int),
        "surgery": np.where((wait <= days) & (wait < END), wait, np.nan),
    }


def specification(**changes):
    """The study as a mapping."""
    return {
        "title": "Start in time",
        "data": {"people": "people.parquet", "id": "id"},
        "exposures": {
            "early": {"treated_at": "surgery", "strategy": "start", "grace": GRACE},
            "not early": {"treated_at": "surgery", "strategy": "do not start", "grace": GRACE},
        },
        "comparisons": [{"target": "early", "comparator": "not early"}],
        "outcomes": {"death": {"time": "days", "event": "died"}},
        "defaults": {"estimand": "per-protocol", "propensity": None},
        "analyses": {"clones": {"per_protocol": {"every": 20}}},
        "sharing": {"blind": False},
        "risk_times": [200],
    } | changes


def write(folder, people):
    """The file of the study."""
    made = {name: pa.array(np.asarray(x), from_pandas=True) for name, x in people.items()}
    pq.write_table(pa.table(made), folder / "people.parquet")


def run(folder, people, **changes):
    """Results with what is private."""
    write(folder, people)
    rs.study.run(rs.study.Study(specification(**changes), folder), folder / "out")
    return rs.study.StudyResults.open(folder / "out" / "private")
