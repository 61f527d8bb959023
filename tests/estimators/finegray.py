"""Problems for Fine and Gray's model, and what they stand for, straight from the definitions."""

import warnings
from dataclasses import dataclass, field

import numpy as np
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

import riskset as rs
from reference import CASES, read_json, read_table
from riskset.data.outcome import Outcome

TOL = 1e-10


def case(number):
    """Expected values of a case, and its table."""
    (folder,) = CASES.glob(f"{number}-*")
    return read_json(folder / "expected.json"), read_table(folder / "input.csv")


def fit(x, y, penalty=None, *, sample_weight=None, strata=None, cluster=None, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", rs.RisksetWarning)
        model = rs.FineGray(penalty, tol=TOL, **parameters)
        return model.fit(x, y, sample_weight=sample_weight, strata=strata, cluster=cluster)


@dataclass(frozen=True, eq=False)
class Problem:
    """One small random data set with tied times."""

    x: np.ndarray
    time: np.ndarray
    event: np.ndarray
    weight: np.ndarray
    stratum: np.ndarray
    group: np.ndarray
    rng: np.random.Generator = field(repr=False)

    @property
    def y(self):
        return rs.Surv(self.time, self.event)

    def outcome(self, rows=slice(None), stratum=None):
        return Outcome.build(
            self.time[rows],
            self.event[rows],
            weight=self.weight[rows],
            stratum=None if stratum is None else stratum[rows],
            cause=1,
        )


@st.composite
def problems(draw, n=60, weighted=None):
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    x = np.column_stack([rng.normal(size=n), rng.random(n) < 0.5])
    time = np.ceil(draw(st.sampled_from([4, 12, 1000])) * rng.exponential(np.exp(-0.5 * x[:, 0])))
    event = rng.choice(3, size=n, p=draw(st.sampled_from([(0.3, 0.4, 0.3), (0.6, 0.2, 0.2)])))
    event[:6] = [1, 2, 0, 1, 2, 1]
    is_weighted = draw(st.booleans()) if weighted is None else weighted
    weight = rng.integers(1, 4, n).astype(float) if is_weighted else np.ones(n)
    return Problem(x, time, event, weight, rng.integers(0, 3, n), rng.integers(0, 2, n), rng)


def survival_before(time, event, weight, at, ties):
    """Kaplan-Meier of censoring, left limit, by its definition."""
    out = np.ones(len(at))
    for u in np.unique(time[event == 0]):
        leaves_before = (time == u) & (event != 0) & (ties == "finegray")
        at_risk = weight[(time >= u) & ~leaves_before].sum()
        factor = 1 - weight[(time == u) & (event == 0)].sum() / at_risk
        out *= np.where(np.asarray(at) > u, factor, 1.0)
    return out


def expanded(p, ties="crr", cause=1):
    """One row for each subject and time of an event at which it is at risk."""
    times = np.unique(p.time[p.event == cause])
    own = survival_before(p.time, p.event, p.weight, p.time, ties)
    at = survival_before(p.time, p.event, p.weight, times, ties)
    rows = []
    for i in range(p.time.size):
        competing = p.event[i] not in (0, cause)
        for k, t in enumerate(times):
            late = p.time[i] < t
            if late and not competing:
                break
            w = p.weight[i] * (at[k] / own[i] if late else 1.0)
            if w > 0:
                entry = times[k - 1] if k else 0.0
                rows.append((i, entry, t, p.event[i] == cause and p.time[i] == t, w))
    return [np.array(column) for column in zip(*rows, strict=True)]


def simulated(rng, n=400):
    x = rng.normal(size=(n, 3))
    time = np.ceil(10 * rng.exponential(np.exp(-0.7 * x[:, 0])))
    return x, rs.Surv(time, rng.choice(3, size=n, p=[0.3, 0.4, 0.3]))
